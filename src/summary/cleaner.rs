//! The cleaning of texts of a conversation for every way to a summary.

use crate::{
    prompts::escape_tags,
    redact::{Clean, Secrets, Told},
    settings::Settings,
};
use std::{borrow::Cow, cell::RefCell, collections::HashMap};

/// Cleans texts: their secrets and control characters go, and our tags are made harmless. It keeps results, because the drafts
/// of one plan clean the same texts again.
#[derive(Debug)]
pub struct Cleaner {
    secrets: Secrets,
    todo_tools: Vec<String>,
    known: RefCell<Known>,
}

/// Texts and their cleaned forms.
#[derive(Debug, Default)]
struct Known {
    cleaned: HashMap<Box<str>, Clean>,
    /// The size of both, in bytes.
    bytes: usize,
    /// Secrets of these texts.
    told: Told,
}

/// The largest size of the results that a cleaner keeps, in bytes: a context of a million tokens.
const KEPT_CLEANED: usize = 8 << 20;

impl Cleaner {
    /// A cleaner with these settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let todo_tools = settings.tools.todo.clone();
        Self { secrets: settings.redaction.secrets(), todo_tools, known: RefCell::default() }
    }

    /// Whether secrets are removed.
    #[must_use]
    pub fn secrets(&self) -> Secrets {
        self.secrets
    }

    /// Tools that hold a todo list, beside the known ones.
    #[must_use]
    pub fn todo_tools(&self) -> &[String] {
        &self.todo_tools
    }

    /// The cleaned form of a text.
    #[must_use]
    pub fn clean(&self, text: &str) -> Clean {
        if let Some(known) = self.known.borrow().cleaned.get(text) {
            return known.clone();
        }
        let mut known = self.known.borrow_mut();
        let cleaned = self.secrets.clean_with(&without_controls(text), &mut known.told);
        let cleaned = Clean::assembled(escape_tags(&cleaned));
        let bytes = known.bytes + text.len() + cleaned.len();
        if bytes <= KEPT_CLEANED {
            known.bytes = bytes;
            known.cleaned.insert(text.into(), cleaned.clone());
        }
        cleaned
    }

    /// A text of cleaned ones without the secrets that later texts gave away.
    #[must_use]
    pub fn cleaned_again(&self, text: &str) -> Clean {
        Clean::assembled(self.known.borrow().told.redact(text))
    }
}

/// The cleaned form of a text.
#[must_use]
pub fn clean(secrets: Secrets, text: &str) -> Clean {
    Clean::assembled(escape_tags(&secrets.clean(&without_controls(text))))
}

/// A text without characters that control a terminal or the direction of writing. An end of a line other than `\n` is a
/// blank: a reader that divides lines there would take the words after it for a heading.
fn without_controls(text: &str) -> Cow<'_, str> {
    /// The beginning of a code that colours text or moves the cursor. Its end is a letter.
    const CODE: &str = "\u{1b}[";
    let ends_a_line = |char| matches!(char, '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let turns = |char| matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_control = |char: char| char.is_control() && !matches!(char, '\n' | '\t') || turns(char) || ends_a_line(char);
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_control) {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        if let Some(code) = from.strip_prefix(CODE) {
            rest = code.trim_start_matches(|char: char| char.is_ascii_digit() || matches!(char, ';' | '?'));
            rest = rest.strip_prefix(|char: char| char.is_ascii_alphabetic()).unwrap_or(rest);
            continue;
        }
        let mut chars = from.chars();
        let is_end = chars.next().is_some_and(ends_a_line);
        rest = chars.as_str();
        if is_end && !(from.starts_with('\r') && rest.starts_with('\n')) {
            kept.push(' ');
        }
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_one_text_goes_from_the_others() {
        let cleaner = Cleaner::new(&Settings::default());
        let before = cleaner.clean("I logged in with Zx81Wombat77");
        assert_eq!(&*cleaner.clean("The password is Zx81Wombat77."), "The password is [REDACTED:secret]");
        assert_eq!(&*cleaner.clean("Zx81Wombat77 works"), "[REDACTED:secret] works");
        assert_eq!(&*cleaner.cleaned_again(&before), "I logged in with [REDACTED:secret]");
    }

    #[test]
    fn a_text_has_no_ends_of_lines_but_one_and_no_controls() {
        for (text, cleaned) in [
            ("make\u{2028}## Goal\u{2029}- x\u{85}y\u{b}z\u{c}", "make ## Goal - x y z "),
            ("a\r\nb\rc\n\td", "a\nb c\n\td"),
            ("a\0b\u{7}\u{9b}c\u{7f}", "abc"),
            ("\u{1b}[1;31mred\u{1b}[0m \u{1b}[?25l\u{1b}", "red "),
            ("\u{202e}live\u{202c} \u{2066}x\u{2069}", "live x"),
            ("plain 👩‍💻 می\u{200c}خواهم", "plain 👩‍💻 می\u{200c}خواهم"),
        ] {
            for secrets in [Secrets::Redacted, Secrets::Sent] {
                assert_eq!(&*clean(secrets, text), cleaned, "{text:?}");
            }
        }
        assert_eq!(&*clean(Secrets::Redacted, "DB_\u{0}PASSWORD=hunter2hunter2"), "DB_PASSWORD=[REDACTED:secret]");
    }
}
