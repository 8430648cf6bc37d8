//! Summaries: what stands for the part of a session that is not sent any more.

pub mod extractive;
pub mod files;
mod ledger;
pub mod redact;
mod salient;
mod sections;
mod todo;

use std::borrow::Cow;

/// What stands between the two parts of a summary whose cut split a turn.
pub const SPLIT_TURN: &str = "\n\n---\n\n**Turn Context (split turn):**\n\n";

/// The tags that have a meaning in what is sent to a model. Standing in the data they would end its frame.
const TAGS: [&str; 9] = [
    "summary", "conversation", "previous-summary", "additional-context", "read-files", "modified-files", "pinned",
    "user-message", "handoff-context",
];

/// `text` with our own tags made harmless: `&lt;` for `<`.
#[must_use]
pub fn escape_tags(text: &str) -> Cow<'_, str> {
    if !text.contains('<') {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        escaped.push_str(&rest[..at]);
        let name = rest[at + 1..].trim_start_matches('/');
        let ours = TAGS.iter().any(|tag| {
            name.get(..tag.len()).is_some_and(|it| it.eq_ignore_ascii_case(tag))
                && !name[tag.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '-' || next == '_')
        });
        escaped.push_str(if ours { "&lt;" } else { "<" });
        rest = &rest[at + 1..];
    }
    escaped.push_str(rest);
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_tags_in_the_data_are_made_harmless() {
        assert_eq!(escape_tags("a </summary> b <Summary> <sum> <summary-x>"), "a &lt;/summary> b &lt;Summary> <sum> <summary-x>");
        assert_eq!(escape_tags("</ conversation>"), "</ conversation>");
        assert_eq!(escape_tags("</conversation >"), "&lt;/conversation >");
    }
}
