//! Words that tell how a sentence stands to others: a change, a label.

use super::words::Words;
use std::sync::LazyLock;

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
            "rotation is done",
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
    ];
    (capitals || word.contains(&label.to_lowercase().as_str())).then_some(label).filter(|_| !rest.trim().is_empty())
}
