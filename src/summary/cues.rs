//! Cues in the words of a sentence: whether it changes an earlier one, its label, its values.

use super::words::Words;
use std::{collections::BTreeSet, sync::LazyLock};

/// Whether a sentence changes an earlier one.
pub(super) fn changes(lower: &str) -> bool {
    static WORDS: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "now",
            "update",
            "updated",
            "correction",
            "actually",
            "changed",
            "moved to",
            "instead",
            "no longer",
            "rotated",
            "switched",
            "renamed",
            "rebased",
            "from now on",
            "rather",
            "replaced",
            "replaces",
            "new",
            "not any more",
            "anymore",
            "retired",
            "superseded",
            "jetzt",
            "ab sofort",
            "désormais",
            "ahora",
            "теперь",
            "现在",
            "改为",
        ])
    });
    WORDS.stand_in(lower)
}

/// The label that a statement begins with: a few words in capitals, or a word such as "Note", before a colon.
pub(super) fn label(text: &str) -> Option<&str> {
    let (label, rest) = text.split_once(": ")?;
    let capitals = label.len() >= 3
        && label.len() <= 28
        && label.chars().all(|char| char.is_ascii_uppercase() || matches!(char, ' ' | '_' | '-'));
    let word = [
        "note",
        "fyi",
        "important",
        "remember",
        "update",
        "correction",
        "reminder",
        "fact",
        "decision",
        "quick update",
        "korrektur",
        "hinweis",
    ];
    (capitals || word.contains(&label.to_lowercase().as_str())).then_some(label).filter(|_| !rest.trim().is_empty())
}

/// A text without the label that it begins with, if that tells nothing but its kind: "FACT", and not "STAGING" or "NEVER".
pub(super) fn without_label(text: &str) -> &str {
    const KINDS: &[&str] = &[
        "attention",
        "background",
        "constraint",
        "context",
        "correction",
        "decision",
        "fact",
        "fyi",
        "goal",
        "hard",
        "hinweis",
        "important",
        "info",
        "information",
        "korrektur",
        "nb",
        "note",
        "policy",
        "preference",
        "quick",
        "remember",
        "reminder",
        "requirement",
        "rule",
        "safety",
        "state",
        "statement",
        "update",
        "user",
    ];
    let is_kind = |label: &&str| label.split([' ', '_', '-']).all(|word| KINDS.contains(&word.to_lowercase().as_str()));
    label(text).filter(is_kind).map_or(text, |label| text[label.len() + 1..].trim_start())
}

/// The values of a text, in small letters: words with digits, amounts, addresses, and words in capitals. A text that `begins` a
/// sentence has its first word in capitals anyway; two such words are a name.
pub(super) fn values(text: &str, begins: bool) -> BTreeSet<String> {
    let is_capital = |word: &str| word.starts_with(char::is_uppercase);
    let mut words = text.split_whitespace();
    let named = begins && words.next().is_some_and(is_capital) && words.next().is_some_and(is_capital);
    let mut starts = begins && !named;
    let mut found = BTreeSet::new();
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|char: char| !char.is_alphanumeric() && !matches!(char, '$' | '€'));
        let digit = bare.bytes().any(|byte| byte.is_ascii_digit());
        let capital = bare.len() > 1 && is_capital(bare) && !starts;
        let joined = bare.len() > 3 && bare.contains(['/', '_', '@']);
        if digit || capital || joined {
            found.insert(bare.to_lowercase());
        }
        starts = word.ends_with(['.', '!', '?', ':']);
    }
    found
}
