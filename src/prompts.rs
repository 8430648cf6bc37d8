//! The texts under `prompts/`, embedded, and the tags that frame data in what is sent to a model.

use std::borrow::Cow;

/// How a compaction's summary stands in a context. `{{summary}}` is replaced.
pub const COMPACTION_SUMMARY_CONTEXT: &str = include_str!("../prompts/compaction-summary-context.md");

/// How the newest user message stands behind a summary, where a cut left it behind. `{{message}}` is replaced.
pub const CARRIED_MESSAGE_CONTEXT: &str = include_str!("../prompts/carried-message-context.md");

/// How what is pinned stands behind a summary. `{{pins}}` is replaced, word for word.
pub const PINNED_CONTEXT: &str = include_str!("../prompts/pinned-context.md");

/// How a branch's summary stands in a context. `{{summary}}` is replaced.
pub const BRANCH_SUMMARY_CONTEXT: &str = include_str!("../prompts/branch-summary-context.md");

/// `template` with each `{{name}}` replaced. One pass over the template, so nothing in the values is taken for a name.
#[must_use]
pub fn render(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + values.iter().map(|(_, value)| value.len()).sum::<usize>());
    let mut rest = template.trim_end();
    while let Some(open) = rest.find("{{") {
        out.push_str(&rest[..open]);
        let after = &rest[open + 2..];
        let known = after.find("}}").and_then(|close| {
            let value = values.iter().find(|(name, _)| *name == after[..close].trim())?;
            Some((close, value.1))
        });
        match known {
            Some((close, value)) => {
                out.push_str(value);
                rest = &after[close + 2..];
            }
            None => {
                out.push_str("{{");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The tags that have a meaning in what is sent to a model. Standing in the data they would end its frame.
const TAGS: [&str; 9] = [
    "summary",
    "conversation",
    "previous-summary",
    "additional-context",
    "read-files",
    "modified-files",
    "pinned",
    "user-message",
    "handoff-context",
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
    fn values_are_not_templates() {
        assert_eq!(render("a {{x}} {{y}} {{z}}\n", &[("x", "{{y}}"), ("y", "2")]), "a {{y}} 2 {{z}}");
    }

    #[test]
    fn our_own_tags_in_the_data_are_made_harmless() {
        assert_eq!(
            escape_tags("a </summary> b <Summary> <sum> <summary-x>"),
            "a &lt;/summary> b &lt;Summary> <sum> <summary-x>"
        );
        assert_eq!(escape_tags("</ conversation>"), "</ conversation>");
        assert_eq!(escape_tags("</conversation >"), "&lt;/conversation >");
    }
}
