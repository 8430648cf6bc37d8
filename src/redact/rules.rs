//! The form of a rule, and the checks that rules share.

use super::named::{is_in_a_table, is_plausible, is_random, is_reference, is_stand_in, names_an_algorithm};
use base64::{Engine, prelude::BASE64_STANDARD};
use regex::{Captures, Match, Regex};
use std::{ops::Deref, sync::OnceLock};

/// A kind of secret.
pub(super) struct Rule {
    pub kind: &'static str,
    /// One of these stands in every match. The pattern goes over the lines that have one, and over no others.
    pub hints: &'static [&'static str],
    /// Of a place, the group `secret`, `single` or `double` is what goes. A key goes as a whole.
    pub pattern: &'static str,
    pub value: Value,
    /// A further condition of each line with a match, where it costs less than the pattern.
    pub needs: fn(&str) -> bool,
}

/// Part of a match that is the secret.
pub(super) enum Value {
    Always,
    /// Only what looks like one.
    If(fn(&Captures<'_>) -> bool),
    /// The same, after a name that only a secret has.
    IfNamed(fn(&Captures<'_>) -> bool),
    /// The values of its `name=value` pairs.
    Pairs,
    /// The strings that are members of its object.
    Members,
    /// The strings in the columns of secrets, of rows whose `columns` have names.
    Columns,
}

pub(super) const fn rule(
    kind: &'static str,
    hints: &'static [&'static str],
    pattern: &'static str,
    value: Value,
) -> Rule {
    Rule { kind, hints, pattern, value, needs: |_| true }
}

impl Rule {
    pub(super) const fn needing(self, needs: fn(&str) -> bool) -> Self {
        Self { needs, ..self }
    }
}

/// A pattern that is compiled when it is first used: few texts have the hints of many rules.
pub(super) struct Pattern {
    text: String,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), compiled: OnceLock::new() }
    }
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.compiled.get_or_init(|| Regex::new(&self.text).expect("the patterns are fixed and tested"))
    }
}

/// The secret of a match: without quotes, or in one of the two kinds of them.
pub(super) fn secret_of<'a>(found: &Captures<'a>) -> Option<Match<'a>> {
    ["secret", "single", "double", "bare"].into_iter().find_map(|group| found.name(group))
}

/// The text of it.
pub(super) fn secret<'a>(found: &Captures<'a>) -> &'a str {
    secret_of(found).map_or("", |secret| secret.as_str())
}

pub(super) fn random(found: &Captures<'_>) -> bool {
    is_random(secret(found))
}

pub(super) fn no_reference(found: &Captures<'_>) -> bool {
    !is_reference(secret(found))
}

/// Not a word that stands for a secret in a manual, either.
pub(super) fn no_stand_in(found: &Captures<'_>) -> bool {
    !is_stand_in(secret(found))
}

/// Digits and letters, and nothing that stands for a secret.
pub(super) fn chosen(found: &Captures<'_>) -> bool {
    let secret = secret(found);
    let has = |of: fn(&u8) -> bool| secret.bytes().any(|byte| of(&byte));
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && !is_stand_in(secret)
}

/// The same, and no result of a measurement: `12.5ms`, `10of12`.
pub(super) fn chosen_and_no_count(found: &Captures<'_>) -> bool {
    let unit = secret(found).trim_start_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '/' | '%'));
    let counts = unit.len() < secret(found).len() && unit.bytes().take_while(u8::is_ascii_alphabetic).count() <= 2;
    chosen(found) && !counts
}

/// Not the name of a test after its verdict: `PASS: test_login2`, `PASS: gcc.dg/pr123.c`.
pub(super) fn chosen_and_no_test(found: &Captures<'_>) -> bool {
    let verdict = found.name("verdict").is_some();
    !(verdict && names_a_test(secret(found))) && chosen(found)
}

fn names_a_test(text: &str) -> bool {
    let of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:[]".contains(&byte);
    let of_a_file = text.rsplit_once('.').is_some_and(|(name, ending)| {
        let letters = ending.bytes().all(|byte| byte.is_ascii_lowercase());
        !name.is_empty() && (1..=4).contains(&ending.len()) && letters
    });
    let begins = ["test", "Test", "check"].iter().any(|word| text.starts_with(word));
    text.bytes().all(of_a_name) && (begins || of_a_file || text.contains(['/', ':']))
}

/// The second member of a pair. Without quotes it is a name of the program, unless its digits stand between letters.
pub(super) fn second_of_a_pair(found: &Captures<'_>) -> bool {
    match found.name("bare") {
        Some(_) => {
            let stem = secret(found).trim_end_matches(|char: char| char.is_ascii_digit());
            stem.bytes().any(|byte| byte.is_ascii_digit()) && is_in_a_table("password", secret(found))
        }
        None => no_stand_in(found),
    }
}

/// Words of a wallet, which make no sentence.
pub(super) fn no_sentence(found: &Captures<'_>) -> bool {
    const OF_SENTENCES: [&str; 16] = [
        "the", "and", "for", "with", "from", "your", "you", "are", "was", "has", "have", "not", "must", "which", "its",
        "our",
    ];
    !secret(found).split_ascii_whitespace().any(|word| OF_SENTENCES.contains(&word))
}

/// Words of a phrase, and not a sentence about it. No phrase has small words, which are easy to guess.
pub(super) fn no_instruction(found: &Captures<'_>) -> bool {
    const OF_SENTENCES: [&str; 25] = [
        "a", "an", "as", "at", "be", "by", "choose", "enter", "for", "if", "in", "is", "it", "not", "of", "on", "or",
        "same", "set", "some", "that", "to", "type", "use", "when",
    ];
    let is_of_sentence = |word: &str| OF_SENTENCES.iter().any(|it| word.eq_ignore_ascii_case(it));
    no_sentence(found) && !secret(found).split_ascii_whitespace().any(is_of_sentence)
}

/// After a host there is a port, after a user a password.
pub(super) fn password_of_url(found: &Captures<'_>) -> bool {
    let secret = secret(found);
    let port = secret.split(['/', '?', '#']).next().unwrap_or_default();
    let only_port = port.len() < secret.len() && port.bytes().all(|byte| byte.is_ascii_digit());
    !only_port && !secret.contains("://") && !is_reference(secret)
}

/// Whether a pair of a cookie authenticates a user, rather than choosing a language.
pub(super) fn is_cookie(name: &str, value: &str) -> bool {
    const SESSIONS: [&str; 9] = ["sess", "sid", "auth", "token", "jwt", "csrf", "xsrf", "remember", "login"];
    const ATTRIBUTES: [&str; 8] =
        ["path", "domain", "expires", "max-age", "samesite", "version", "comment", "priority"];
    let name = name.to_ascii_lowercase();
    if ATTRIBUTES.contains(&name.as_str()) || is_reference(value) || value.contains(['(', '[']) {
        return false;
    }
    let session = SESSIONS.iter().any(|word| name.contains(word)) && is_plausible("token", value);
    session || is_random(value)
}

/// The same for a cookie whose name and value stand apart.
pub(super) fn cookie(found: &Captures<'_>) -> bool {
    is_cookie(&found["name"], secret(found))
}

/// Whether a decoded `Basic …` credential has the form user and password.
pub(super) fn names_a_user(found: &Captures<'_>) -> bool {
    let text = secret(found).trim_end_matches('=');
    let padded = format!("{text}{}", &"==="[..(4 - text.len() % 4) % 4]);
    let decoded = BASE64_STANDARD.decode(padded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.is_some_and(|text| text.contains(':') && text.chars().all(|char| !char.is_control()))
}

/// Whether the value of a header is a credential and not a word of prose.
pub(super) fn credential(found: &Captures<'_>) -> bool {
    let text = secret(found);
    is_random(text) || text.bytes().any(|byte| byte.is_ascii_digit()) && is_plausible("token", text)
}

pub(super) fn behind_its_name(found: &Captures<'_>) -> bool {
    is_plausible(&found["name"], secret(found))
}

/// After a blank there may be a sentence about the flag: its words have small letters and nothing else.
pub(super) fn behind_its_flag(found: &Captures<'_>) -> bool {
    let word = secret(found).trim_end_matches(['.', ',', ';', ':', ')']);
    let prose = found["between"].trim().is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    !prose && behind_its_name(found)
}

/// "The password is …": letters and digits, and no name of an algorithm. What is quoted may be any word with a digit.
pub(super) fn told_in_prose(found: &Captures<'_>) -> bool {
    let text = secret(found).trim_end_matches(['.', '!', '?', ':']);
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let letters = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    digits && letters && text.len() >= 6 && !names_an_algorithm(text) && !is_reference(text)
}
