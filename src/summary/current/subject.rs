//! The subject of a statement: the words before its verb.

use regex::Regex;
use std::{cmp::Reverse, collections::BTreeSet, sync::LazyLock};

/// Words that say nothing of a subject.
pub(super) const FILLERS: &[&str] = &[
    "the",
    "a",
    "an",
    "our",
    "my",
    "your",
    "its",
    "this",
    "that",
    "these",
    "is",
    "are",
    "was",
    "will",
    "be",
    "been",
    "to",
    "of",
    "for",
    "in",
    "on",
    "at",
    "by",
    "and",
    "or",
    "with",
    "now",
    "new",
    "old",
    "current",
    "currently",
    "quick",
    "update",
    "correction",
    "actually",
    "please",
    "all",
    "any",
    "we",
    "i",
    "you",
    "it",
    "them",
    "keep",
    "must",
    "should",
    "user",
    "from",
    "previous",
    "under",
    "below",
    "above",
    "stay",
    "than",
    "has",
    "have",
    "had",
    "just",
    "so",
    "also",
    "as",
    "still",
    "not",
    "no",
    "do",
    "put",
    "every",
    "make",
    "set",
    "let",
    "never",
    "total",
    "explicit",
    "week",
    "today",
    "progress",
    "there",
    "want",
    "prefer",
    "preferred",
    "me",
    "own",
    "belong",
    "changed",
    "moved",
    "may",
    "get",
    "rather",
    "would",
    "jetzt",
    "fixed",
];
/// A word without the marks around it and the sign of the plural.
pub(super) fn stem(word: &str) -> String {
    let word = word.trim_matches(|char: char| !char.is_alphanumeric() && char != '-').trim_matches('-');
    let word = word.strip_suffix("'s").unwrap_or(word);
    if ["ss", "is", "as", "us"].iter().any(|end| word.ends_with(end)) {
        word.to_owned()
    } else {
        word.strip_suffix('s').unwrap_or(word).to_owned()
    }
}
/// The subject of a sentence that sets a value: "change the token lifetime to 60 minutes".
static SETS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"^(?:please |now |then |and |also )*(?:change|set|update|raise|lower|increase|reduce|bump|switch) (?:the |our |my )?([^.,;:]{2,60}?) (?:from \S+(?: \S+)? )?to (?:\S+ )?\d",
    )
    .expect("fixed")
});

/// Whether a sentence sets a value with a number.
pub(in crate::summary) fn sets_value(lower: &str) -> bool {
    SETS.is_match(lower)
}

/// The words before the verb, without fillers, the verb, and its end.
pub(super) fn subject(lower: &str) -> (BTreeSet<String>, &'static str, usize) {
    if let Some(subject) = SETS.captures(lower).and_then(|found| found.get(1)) {
        let words = subject.as_str().split_whitespace().map(stem);
        let end = lower[subject.end()..].find(" to ").map_or(lower.len(), |at| subject.end() + at + " to ".len());
        return (words.filter(|word| !FILLERS.contains(&word.as_str())).collect(), "is", end);
    }
    const ENDS: [(&str, &str); 28] = [
        (" is ", "is"),
        (" are ", "is"),
        (" was ", "is"),
        (" = ", "is"),
        (": ", "is"),
        (" moved to ", "is"),
        (" got moved to ", "is"),
        (" was moved to ", "is"),
        (" is moved to ", "is"),
        (" has moved to ", "is"),
        (" has been moved to ", "is"),
        (" got changed to ", "is"),
        (" was changed to ", "is"),
        (" has changed to ", "is"),
        (" has been changed to ", "is"),
        (" was pushed to ", "is"),
        (" wurde auf ", "is"),
        (" changed to ", "is"),
        (" stays ", "is"),
        (" ist ", "is"),
        ("は", "is"),
        (" uses ", "uses"),
        (" runs on ", "runs on"),
        (" must be ", "must be"),
        (" lives ", "lives"),
        (" has ", "has"),
        (" hat ", "has"),
        (" costs ", "costs"),
    ];
    // The longest of those that begin at one place: "was moved to" and no "was".
    let first = |from: usize| {
        let found =
            ENDS.iter().filter_map(|(end, verb)| Some((from + lower[from..].find(end)?, Reverse(end.len()), *verb)));
        found.min()
    };
    let Some((mut end, Reverse(mut len), mut verb)) = first(0) else { return (BTreeSet::new(), "", lower.len()) };
    // "By the way: the port of server 4 is 8004" is about the server.
    if lower[end..].starts_with(": ")
        && let Some((next, Reverse(of_next), verb_of_next)) = first(end + len)
        && !lower[end..next].contains([',', ';', '.', '$', '€'])
    {
        (end, len, verb) = (next, of_next, verb_of_next);
    }
    let words = lower[..end].split_whitespace().map(stem);
    (words.filter(|word| !word.is_empty() && !FILLERS.contains(&word.as_str())).collect(), verb, end + len)
}
