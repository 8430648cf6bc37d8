//! Corrections that do not name their subject: "no, use 9090" after "the port is 8080", "we are on Postgres 16 now", "make that 4
//! attempts rather than 6".

use crate::summary::{
    cues::values,
    prose::{content_words, sentences_of_line},
};
use regex::Regex;
use std::sync::LazyLock;

/// The longest correction, in characters.
const LONGEST: usize = 80;

/// Sentences of a message that are looked at. A message with more is a paste.
const MOST_SENTENCES: usize = 48;

/// Statements before the correction that it may name.
pub(in crate::summary) const LOOKED_AT: usize = 12;

/// The statements that the sentences of a message correct, with the new value in the place of the old one. `before`: the
/// statements so far, the newest last; those of the message before begin at `latest`.
pub(in crate::summary) fn corrections(said: &str, before: &[&str], latest: usize) -> Vec<String> {
    let sentences = said.lines().flat_map(sentences_of_line).map(str::trim).take(MOST_SENTENCES);
    let short = sentences.filter(|it| it.chars().count() <= LONGEST);
    let of_sentence = |sentence: &str| {
        let newest = || before.iter().rev().take(LOOKED_AT);
        let told = || newest().find_map(|old| named(sentence, old)).or_else(|| swapped(sentence, before, latest));
        bare(sentence, before.get(latest..).unwrap_or_default()).or_else(told)
    };
    short.filter_map(of_sentence).collect()
}

/// The statement with the value of a correction that says nothing else: "no, use 9090". It is about the only value of its form
/// in the message before.
fn bare(correction: &str, before: &[&str]) -> Option<String> {
    static BARE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?ix)^(?:(?:no|nope|nah|nein|non|actually|sorry|wait|oops|correction|nee|いや|不)[,:.、，]?\s?|make\s(?:it|that)\s)
              (?:(?:let'?s|let\sus|please|doch|lieber|rather|make\s(?:it|that)|use|take|it'?s|it\sis|it\sshould\sbe)\s)*
              (?P<value>[A-Za-z0-9_./:-]*[0-9][A-Za-z0-9_./:-]*?)(?:\s(?P<unit>[a-z%]{1,12}))?(?:にして|です)?[.!。]?$",
        )
    });
    let found = BARE.captures(correction)?;
    let new = only_number(&found["value"])?;
    let unit = found.name("unit").map_or("", |unit| unit.as_str()).to_lowercase();
    let fits = |old: &&&str| {
        let has_unit =
            unit.is_empty() || old.to_lowercase().split(|char: char| !char.is_alphanumeric()).any(|it| it == unit);
        has_unit && only_number(old).is_some_and(|old| shape(&old) == shape(&new))
    };
    let mut about = before.iter().filter(fits);
    let old = about.next().filter(|_| about.next().is_none())?;
    replaced(old, &new)
}

/// The statement with the new version of the thing that a correction names: "we are on Postgres 16 now".
fn named(correction: &str, statement: &str) -> Option<String> {
    static MOVED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)\b(?:moved|upgraded|switched|migrated|downgraded)\b|\b(?:it's|it is|we're on|we are on)\b.*\bnow\b",
        )
    });
    let new = only_number(correction).filter(|_| MOVED.is_match(correction))?;
    let old = only_number(statement).filter(|old| shape(old) == shape(&new))?;
    let name = |text: &str, value: &str| {
        let before = text.find(value).map(|at| text[..at].trim_end())?;
        let word = before.rsplit(' ').next()?.to_lowercase();
        (word.len() > 2 && word.chars().all(char::is_alphabetic) && word != "the").then_some(word)
    };
    let thing = name(correction, &new).filter(|thing| !["to", "on", "now", "from"].contains(&thing.as_str()))?;
    (name(statement, &old) == Some(thing)).then(|| replaced(statement, &new)).flatten()
}

/// The statement with the new value of a correction that names the old one, too: "make that 4 attempts rather than 6". It is about
/// the only statement with the old value that has a word of it. A correction without a subject is about the message before.
fn swapped(correction: &str, before: &[&str], latest: usize) -> Option<String> {
    const OTHERS: [&str; 12] = [
        "make",
        "that",
        "rather",
        "than",
        "meant",
        "instead",
        "longer",
        "actually",
        "sorry",
        "correction",
        "nimm",
        "statt",
    ];
    static SWAPS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?ix)(?:rather\sthan|instead\sof|and\snot|,\snot|no\slonger|not|statt|anstatt|nicht\s(?:mehr\s)?|au\slieu\sde|en\slugar\sde|en\svez\sde)\s(?P<old>[A-Za-z0-9_.:/-]+)",
        )
    });
    let told = with_digits(correction);
    let found = SWAPS.captures_iter(&told).find(|found| found["old"].bytes().any(|byte| byte.is_ascii_digit()))?;
    let old = only_number(&found["old"])?;
    let others: Vec<String> = numbers(&told).filter(|value| *value != old && shape(value) == shape(&old)).collect();
    let [new] = others.as_slice() else { return None };
    let lower = told.to_lowercase();
    let plain: Vec<&str> = lower.split(|char: char| !char.is_alphabetic()).filter(|it| !OTHERS.contains(it)).collect();
    let subject = content_words(&plain.join(" "));
    let place = if subject.is_empty() { latest } else { before.len().saturating_sub(LOOKED_AT) };
    let is_about = |statement: &str| {
        subject.is_empty() || content_words(&statement.to_lowercase()).intersection(&subject).next().is_some()
    };
    let of_value = |statement: &&&str| only_number(statement).as_ref() == Some(&old) && is_about(statement);
    let mut about = before.get(place..).unwrap_or_default().iter().filter(of_value);
    let statement = about.next().filter(|_| about.next().is_none())?;
    replaced(statement, new)
}

/// A text with the words of small numbers as digits.
fn with_digits(text: &str) -> String {
    const WORDS: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    let digits = |word: &str| {
        let bare = word.trim_end_matches(['.', ',', '!']);
        let number = WORDS.iter().position(|it| bare.eq_ignore_ascii_case(it))?;
        Some(format!("{number}{}", &word[bare.len()..]))
    };
    text.split(' ').map(|word| digits(word).unwrap_or_else(|| word.to_owned())).collect::<Vec<_>>().join(" ")
}

/// A statement with another value, if it has one value once.
fn replaced(statement: &str, new: &str) -> Option<String> {
    let old = only_number(statement).filter(|old| old != new)?;
    (statement.matches(&old).count() == 1).then(|| statement.replacen(&old, new, 1))
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a fixed pattern")
}

/// The value with digits in a text that has one such value.
fn only_number(text: &str) -> Option<String> {
    static WIDE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d[\d.,]*"));
    let mut found = numbers(text);
    let (value, more) = (found.next()?, found.next());
    // Writing without blanks has no words around its numbers.
    let value = if value.is_ascii() { value } else { WIDE.find(&value)?.as_str().to_owned() };
    more.is_none().then_some(value)
}

/// The values with digits in a text.
fn numbers(text: &str) -> impl Iterator<Item = String> {
    values(text, true).into_iter().filter(|value| value.bytes().any(|byte| byte.is_ascii_digit()))
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
        let port = ["The port is 8080."];
        for (said, before, new) in [
            ("no, use 9090", port, "The port is 9090."),
            ("Actually let us use 25.", ["The max is 10."], "The max is 25."),
            ("no, 25 MB", ["The max upload is 10 MB."], "The max upload is 25 MB."),
            ("We upgraded, it's Postgres 16 now.", ["The database is Postgres 15."], "The database is Postgres 16."),
            ("we moved to Postgres 16 by the way", ["The database is Postgres 15."], "The database is Postgres 16."),
            ("いや、9090にして。", ["ポートは8080です。"], "ポートは9090です。"),
            ("no, use 9090", ["The port is 8080"], "The port is 9090"),
            ("make that 25", ["The max is 10."], "The max is 25."),
            ("it's Postgres 16 now", ["The database is Postgres 15."], "The database is Postgres 16."),
            ("no, use web2", ["The host is db1."], "The host is web2."),
        ] {
            assert_eq!(corrections(said, &before, 0), [new], "{said}");
        }
        for other in [
            "use 9090",
            "no",
            "no, version 1.2.3",
            "The team has 5 people now.",
            "we moved to Kafka 3",
            "No, 2 tests still fail.",
            "Actually line 42 looks wrong to me.",
            "Sorry, I was away for 20 minutes.",
            "wait 10 seconds before the retry",
            "nope, still 404",
            "Actually PR 77 is merged.",
            "make it 3 columns",
            "non, il y a 3 erreurs",
            "no, the retries, make it 5",
        ] {
            assert_eq!(corrections(other, &port, 0), [""; 0], "{other}");
        }
        for (said, old, new) in [
            ("Make that 4 attempts rather than six.", "The budget is 6 attempts.", "The budget is 4 attempts."),
            ("I meant 9090, not 8080", "The port is 8080.", "The port is 9090."),
            ("Nimm 90 statt 84.", "Der Beitrag liegt bei 84 Euro.", "Der Beitrag liegt bei 90 Euro."),
        ] {
            let before = ["The team has 5 people.", old, "We eat at noon."];
            assert_eq!(corrections(said, &before, 0), [new], "{said}");
        }
        for (said, old) in [
            ("The build shows 3 errors, not 4", "The retry budget is 4."),
            ("Look at issue 21, not 20.", "The pool size is 20."),
            ("There are 12 open bugs in the tracker, not 9.", "The lobby opens at 9."),
        ] {
            assert_eq!(corrections(said, &[old], 0), [""; 0], "{said}");
        }
        assert_eq!(corrections("I meant 9090, not 8080", &port, 1), [""; 0], "another message came after it");
        for other in ["not 8080 again", "I see 3 errors, not 4", "use 9090 or 9091, not 8080", "fix 2 of them, not 5"] {
            assert_eq!(corrections(other, &port, 1), [""; 0], "{other}");
        }
        assert_eq!(corrections("I meant 9090, not 8080", &["A listens on 8080.", "B is on 8080."], 2), [""; 0]);
        assert_eq!(corrections("不,还有3个错误", &["不要超过100行。"], 0), [""; 0]);
        assert_eq!(corrections("いや、エラーが3つあります", &["タイムアウトは30秒です。"], 0), [""; 0]);
        for (other, before) in [
            ("no, use 8080", "The port is 8080."),
            ("no, use v2", "The port is 8080."),
            ("no, use 1.3", "The range is 1-2."),
            ("no, 25 MB", "The max upload is 10.5 MB."),
            ("Postgres 16 is nice.", "The database is Postgres 15."),
            ("we moved to Postgres 16.1", "The database is Postgres 15."),
            ("we are on the 16 now", "It is on the 15."),
            ("We upgraded to PG 16.", "The database is PG 15."),
            ("we moved from 16 by the way", "It is away from 15."),
            (
                "We upgraded last night after a long discussion with the whole team, it's Postgres 16 now.",
                "The database is Postgres 15.",
            ),
        ] {
            assert_eq!(corrections(other, &[before], 0), [""; 0], "{other}");
        }
        assert_eq!(corrections("no, use 9090", &port, 1), [""; 0], "another message came after it");
        let two = ["The staging port is 8080.", "The prod port is 9090."];
        assert_eq!(corrections("no, use 8081", &two, 0), [""; 0], "of two it is not known which one");
    }
}
