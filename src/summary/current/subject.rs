//! The subject of a statement: the words before its verb.

use regex::Regex;
use std::{cmp::Reverse, sync::LazyLock};

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
        r"^(?:please |now |then |and |also |i |we |let's |they |have |just )*(?:change|set|update|raise|lower|increase|reduce|bump|switch|move)(?:d|ed)? (?:the |our |my )?([^.,;:]{2,60}?) (?:from \S+(?: \S+)? )?to (?:(?:\S+ )?\d|(?:mon|tues|wednes|thurs|fri|satur|sun)day)",
    )
    .expect("fixed")
});

/// Verbs of a change, as alternatives of a pattern.
const MOVED: &str = "moved|changed|raised|lowered|increased|reduced|set|extended|shifted|slipped|delayed|postponed|rescheduled|updated|bumped|pushed|switched";

/// Whether a word is the verb of a change.
pub(super) fn is_change(word: &str) -> bool {
    let is_form =
        |verb: &str| verb == word || verb.strip_suffix('d') == Some(word) || verb.strip_suffix("ed") == Some(word);
    MOVED.split('|').any(is_form)
}

/// Whether a sentence sets a value with a number.
pub(in crate::summary) fn sets_value(lower: &str) -> bool {
    SETS.is_match(lower)
}

/// The subject of a sentence, and its verb.
#[derive(Debug, Default)]
pub(super) struct Subject {
    /// The words before the verb.
    pub words: Vec<String>,
    /// The verb. Those of being are one.
    pub verb: &'static str,
    /// The end of the verb in the sentence.
    pub end: usize,
    /// Whether the verb says that a value changed.
    pub moves: bool,
    /// Whether it is a colon.
    pub colon: bool,
    /// Whether it tells of the past.
    pub past: bool,
}

/// Words that say nothing of a subject. Prepositions and owners do: my flight to Berlin is not your flight from Berlin.
const EMPTY: &[&str] = &[
    "the",
    "a",
    "an",
    "our",
    "this",
    "that",
    "these",
    "is",
    "are",
    "will",
    "be",
    "now",
    "current",
    "currently",
    "quick",
    "update",
    "correction",
    "actually",
    "please",
    "just",
    "so",
    "jetzt",
    "der",
    "die",
    "das",
    "new",
    "we",
    "there",
];

/// The subject of a sentence in small letters.
pub(super) fn subject(lower: &str) -> Subject {
    let has_meaning = |word: &String| !word.is_empty() && !EMPTY.contains(&word.as_str());
    if let Some(subject) = SETS.captures(lower).and_then(|found| found.get(1)) {
        let words = subject.as_str().split_whitespace().map(stem).filter(has_meaning).collect();
        let end = lower[subject.end()..].find(" to ").map_or(lower.len(), |at| subject.end() + at + " to ".len());
        return Subject { words, verb: "is", end, moves: true, ..Subject::default() };
    }
    const ENDS: [(&str, &str); 22] = [
        (" is ", "is"),
        (" are ", "are"),
        (" was ", "is"),
        (" were ", "is"),
        (" = ", "is"),
        (": ", "is"),
        (" wurde auf ", "is"),
        (" should be ", "is"),
        (" has to be ", "is"),
        (" stays ", "is"),
        (" ist ", "is"),
        (" est ", "is"),
        ("は", "is"),
        (" uses ", "uses"),
        (" runs on ", "runs on"),
        (" must be ", "must be"),
        (" listens on ", "listens on"),
        (" lives ", "lives"),
        (" has ", "has"),
        (" hat ", "has"),
        (" costs ", "costs"),
        (" takes place ", "is"),
    ];
    /// A verb that says that a value changed.
    static MOVES: LazyLock<Regex> = LazyLock::new(|| {
        let before = "(?:is|was|were|got|has|has been|have been)";
        Regex::new(&format!(r" (?:{before} )?(?:{MOVED})(?: back| up| down| out)?(?: from \S+(?: \S+)?)? to "))
            .expect("fixed")
    });
    // The longest of those that begin at one place: "was moved to" and no "was".
    let first = |from: usize| {
        let found =
            ENDS.iter().filter_map(|(end, verb)| Some((from + lower[from..].find(end)?, Reverse(end.len()), *verb)));
        let moves = MOVES.find(&lower[from..]).map(|found| (from + found.start(), Reverse(found.len()), "is"));
        found.chain(moves).min()
    };
    let Some((mut at, Reverse(mut len), mut verb)) = first(0) else {
        return Subject { end: lower.len(), ..Subject::default() };
    };
    // "By the way: the port of server 4 is 8004" is about the server.
    if lower[at..].starts_with(": ")
        && let Some((next, Reverse(of_next), verb_of_next)) = first(at + len)
        && !lower[at..next].contains([',', ';', '.', '$', '€'])
    {
        (at, len, verb) = (next, of_next, verb_of_next);
    }
    let said = lower[at..at + len].trim();
    let words = lower[..at].split_whitespace().map(stem).filter(has_meaning).collect();
    Subject {
        words,
        verb,
        end: at + len,
        moves: said.ends_with(" to") || said == "wurde auf",
        colon: said == ":",
        past: matches!(said, "was" | "were"),
    }
}
