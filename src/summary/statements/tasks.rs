//! Sentences of the user about something that is to be done.

use regex::Regex;
use std::sync::LazyLock;

/// Whether a sentence says that something is to be done: "still to sort out: the photographer".
pub(in crate::summary) fn is_task(text: &str) -> bool {
    TASK.is_match(&text.replace('’', "'"))
}

/// A task in small letters, without the words by which it is one.
pub(in crate::summary) fn bare_task(lower: &str) -> String {
    const MARKS: [&str; 32] = [
        "still",
        "have",
        "has",
        "haven",
        "hasn",
        "need",
        "needs",
        "not",
        "yet",
        "remind",
        "forget",
        "todo",
        "to-do",
        "fixme",
        "open",
        "pending",
        "outstanding",
        "missing",
        "sort",
        "out",
        "noch",
        "muss",
        "müssen",
        "steht",
        "stehen",
        "offen",
        "nicht",
        "queda",
        "quedan",
        "pendiente",
        "pendientes",
        "reste",
    ];
    let words = lower.split(|char: char| !char.is_alphanumeric() && char != '-').filter(|word| !MARKS.contains(word));
    words.collect::<Vec<_>>().join(" ")
}

/// The words by which a sentence says that something is to be done.
static TASK: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
            r"(?ix)^(?:todo|to\sdo|to-do|fixme|open|pending|outstanding|offen|pendiente|à\sfaire)\s?[:：]
              | \bstill\s(?:to(?:\ssort\sout)?|needs?\sto|have\sto|has\sto|open|pending|outstanding|missing)\b | \b(?:have|has)\syet\sto\b
              | ^(?:please\s)?remind\s(?:me|us)\b | \b(?:don't|do\snot)\s(?:let\sme\s)?forget\sto\b
              | \b(?:we|i)\s(?:have|am|are)\s?(?:not|n't)\s(?:\w+\s){0,6}yet\b
              | \b(?:muss|müssen|steht|stehen)\snoch\b | \bnoch\s(?:offen|nicht\serledigt|zu\serledigen)\b
              | \b(?:queda|quedan)\s(?:por|pendientes?)\b | \b(?:falta|faltan)\s\w+(?:ar|er|ir)\b | ^(?:está\s|aún\s)?pendientes?\b | \bil\sreste\b | \bà\sfaire\b",
        )
        .expect("a fixed pattern")
});
