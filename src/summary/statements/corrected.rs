//! Corrections that do not name their subject: "no, use 9090" after "the port is 8080", "we are on Postgres 16 now".

use crate::summary::{cues::values, prose::sentences_of_line};
use regex::Regex;
use std::sync::LazyLock;

/// The longest correction, in characters.
const LONGEST: usize = 80;

/// Statements before the correction that it may be about.
const LOOKED_AT: usize = 12;

/// The statements that the sentences of a message correct, with the new value in the place of the old one. `before`: the
/// statements so far, the newest last.
pub(in crate::summary) fn corrections<'a>(
    said: &str,
    before: impl DoubleEndedIterator<Item = &'a str> + Clone,
) -> Vec<String> {
    let sentences = said.lines().flat_map(sentences_of_line).map(str::trim).filter(|it| it.chars().count() <= LONGEST);
    sentences
        .filter_map(|sentence| before.clone().rev().take(LOOKED_AT).find_map(|old| corrected(sentence, old)))
        .collect()
}

/// A statement with the value of a correction, if that is about it.
fn corrected(correction: &str, statement: &str) -> Option<String> {
    static REFUSES: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)^(?:(?:no|nope|nah|nein|non|actually|sorry|wait|oops|correction|nee|doch)\b[,:.]?\s|make (?:it|that)\s|いや|不)",
        )
    });
    static MOVED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:moved|upgraded|switched|migrated|downgraded)\b|\b(?:it's|it is|we're on|we are on)\b.*\bnow\b",
        )
    });
    let new = only_number(correction)?;
    let old = only_number(statement).filter(|old| old != &new && shape(old) == shape(&new))?;
    let named = |text: &str, value: &str| {
        let before = text.find(value).map(|at| text[..at].trim_end());
        before.and_then(|before| before.rsplit(' ').next()).map(str::to_lowercase)
    };
    let is_about =
        REFUSES.is_match(correction) || MOVED.is_match(correction) && named(correction, &new) == named(statement, &old);
    (is_about && statement.matches(&old).count() == 1).then(|| statement.replacen(&old, &new, 1))
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a fixed pattern")
}

/// The value with digits in a text that has one such value.
fn only_number(text: &str) -> Option<String> {
    static WIDE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d[\d.,]*"));
    let has_digit = |value: &String| value.bytes().any(|byte| byte.is_ascii_digit());
    let mut found = values(text, true).into_iter().filter(has_digit);
    let (value, more) = (found.next()?, found.next());
    // Writing without blanks has no words around its numbers.
    let value = if value.is_ascii() { value } else { WIDE.find(&value)?.as_str().to_owned() };
    more.is_none().then_some(value)
}

/// The form of a value: numbers are of one form, versions of another.
fn shape(value: &str) -> String {
    let mut shape: Vec<char> = value
        .chars()
        .map(|char| {
            if char.is_ascii_digit() {
                '9'
            } else if char.is_alphabetic() {
                'a'
            } else {
                char
            }
        })
        .collect();
    shape.dedup();
    shape.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_without_a_subject_is_about_the_statement_before_it() {
        let before = ["The database is Postgres 15.", "The max upload is 10 MB", "The port is 8080."];
        for (said, new) in [
            ("no, use 9090", "The port is 9090."),
            ("Actually let us use 25.", "The port is 25."),
            ("We upgraded, it's Postgres 16 now.", "The database is Postgres 16."),
            ("we moved to Postgres 16 by the way", "The database is Postgres 16."),
        ] {
            assert_eq!(corrections(said, before.iter().copied()), [new], "{said}");
        }
        assert_eq!(corrections("いや、9090にして。", ["ポートは8080です。"].into_iter()), ["ポートは9090です。"]);
        for other in ["use 9090", "no", "no, version 1.2.3", "The team has 5 people now.", "we moved to Kafka 3"] {
            assert_eq!(corrections(other, before.iter().copied()), [""; 0], "{other}");
        }
    }
}
