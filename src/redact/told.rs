//! Values that a label gave away once: they are secrets where no label stands, too.

use super::named::is_reference;
use crate::text;
use aho_corasick::{AhoCorasick, MatchKind};
use std::{borrow::Cow, ops::Range};

/// The values of a conversation. Of many the first ones count, so that a search stays cheap.
#[derive(Debug, Default)]
pub struct Told {
    values: Vec<Box<str>>,
    search: Option<AhoCorasick>,
}

/// The largest number of values.
const MOST: usize = 64;

impl Told {
    /// Takes values of secrets in. Those that may be a word, a number, a file, an address or a name of code are left out.
    pub(super) fn add(&mut self, values: Vec<Box<str>>) {
        let before = self.values.len();
        for value in values {
            let value = value.trim_end_matches(['.', '!', '?', ':']);
            if self.values.len() < MOST && is_telling(value) && self.values.iter().all(|known| &**known != value) {
                self.values.push(value.into());
            }
        }
        if self.values.len() > before {
            // A value may begin with another one.
            let search =
                AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(self.values.iter().map(|it| &**it));
            self.search = search.ok();
        }
    }

    /// A text without these values.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(search) = &self.search else { return Cow::Borrowed(text) };
        let found = search.find_iter(text).map(|found| found.range()).filter(|range| is_whole(text, range));
        super::blocks::replaced(text, found.map(|range| (range, "secret")).collect())
    }
}

/// Whether a value is told from all other words of a conversation.
fn is_telling(value: &str) -> bool {
    const LENGTHS: std::ops::RangeInclusive<usize> = 8..=256;
    let has = |of: fn(&u8) -> bool| value.bytes().any(|byte| of(&byte));
    let is_path = value.contains(['/', '@', '(', ';']) || value.starts_with(['.', '~']) || has_extension(value);
    LENGTHS.contains(&value.len())
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && !value.contains(char::is_whitespace)
        && !is_path
        && !is_reference(value)
}

/// Whether a value ends like the name of a file or a host.
fn has_extension(value: &str) -> bool {
    value
        .rsplit_once('.')
        .is_some_and(|(_, end)| (1..=5).contains(&end.len()) && end.bytes().all(|it| it.is_ascii_lowercase()))
}

/// Whether the words before a value say that it is a password. Tokens and keys are told by their own form, and the values that
/// code gives to such names are often names of code.
pub(super) fn is_password(before: &str) -> bool {
    /// The longest label with the words after it, in characters. A line may be a whole file.
    const NEAR: usize = 40;
    const NAMES: [&str; 11] = [
        "pass",
        "pwd",
        "pw",
        "kennwort",
        "contraseña",
        "senha",
        "mot de passe",
        "пароль",
        "密码",
        "パスワード",
        "비밀번호",
    ];
    let line = text::tail(before, NEAR).rsplit('\n').next().unwrap_or_default().to_lowercase();
    NAMES.iter().any(|name| line.contains(name))
}

/// Whether a value is no part of a longer word.
fn is_whole(text: &str, range: &Range<usize>) -> bool {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    !text[..range.start].ends_with(is_word) && !text[range.end..].starts_with(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::Secrets;

    #[test]
    fn a_value_is_a_secret_wherever_it_stands() {
        let text = "I log in with Zx81Wombat77, Zx81Wombat77x and lenient99. The password is Zx81Wombat77.";
        let mut told = Told::default();
        let cleaned = Secrets::Redacted.clean_with(text, &mut told);
        let expected =
            "I log in with [REDACTED:secret], Zx81Wombat77x and lenient99. The password is [REDACTED:secret]";
        assert_eq!(&*cleaned, expected);
        assert_eq!(told.redact(expected), expected);
        for (text, gone) in [
            ("DB_PASSWORD=lenient99", "lenient99"),
            ("contraseña: perro2024x", "perro2024x"),
            ("password = Zx81Wombat77x", "Zx81Wombat77x"),
        ] {
            assert!(!Secrets::Redacted.clean_with(text, &mut told).contains(gone));
            assert_eq!(&*Secrets::Redacted.clean_with(&format!("use {gone}"), &mut told), "use [REDACTED:secret]");
        }
        for code in ["let token = Token2Kind;", "TOKEN=gpt-4o-mini", "const secret = sha256sum;"] {
            let before = told.values.len();
            let _ = Secrets::Redacted.clean_with(code, &mut told);
            assert_eq!(told.values.len(), before, "{code}");
        }
        let sent = Secrets::Sent.clean_with("The password is Zx81Wombat77.", &mut told);
        assert_eq!(&*sent, "The password is Zx81Wombat77.");
    }

    #[test]
    fn a_password_is_named_right_before_its_value() {
        assert!(is_password("the password is ") && is_password("x\nDB_PASSWORD="));
        assert!(!is_password("token = ") && !is_password("password\ntoken = "));
        assert!(!is_password(&format!("password {} token = ", "é".repeat(30))));
    }

    #[test]
    fn words_numbers_and_paths_are_no_values() {
        let mut told = Told::default();
        for value in [
            "short1",
            "wonderful",
            "12345678",
            "/run/secret1",
            "${TOKEN_12}",
            "two words 99",
            "oauth2.rs",
            "user1@host.com",
            "feature/login-2",
        ] {
            told.add(vec![value.into()]);
        }
        assert!(told.search.is_none(), "{told:?}");
        told.add((0..MOST + 9).map(|at| format!("password{at}x").into()).collect());
        assert_eq!(told.values.len(), MOST);
    }
}
