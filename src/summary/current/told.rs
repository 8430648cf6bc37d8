//! The value that a statement without a topic tells of its subject.

use super::{
    context::{bare, clauses},
    subject::Subject,
};
use std::collections::BTreeSet;

/// The words after the verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// The words of the first clause that are no part of the value: "on", "in Berlin", "for guests".
    rest: Vec<String>,
    /// The same of all clauses.
    whole: Vec<String>,
    kind: Kind,
    /// Whether a subject may have several of such values: somebody is allergic to two things.
    several: bool,
    /// Whether the verb says that a value changed.
    moves: bool,
}

/// The kinds of values. A day takes no place of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Clock,
    Day,
    Path,
    Name,
}

/// Words that say nothing beside a value.
const EMPTY: [&str; 20] = [
    "the",
    "a",
    "an",
    "our",
    "now",
    "actually",
    "just",
    "instead",
    "again",
    "currently",
    "really",
    "only",
    "please",
    "jetzt",
    "der",
    "die",
    "das",
    "désormais",
    "new",
    "still",
];

/// Words before a value that tell how it belongs to its subject.
const PREPOSITIONS: [&str; 27] = [
    "at", "on", "in", "for", "from", "to", "with", "by", "of", "under", "below", "above", "near", "behind", "per",
    "am", "um", "bei", "mit", "für", "von", "à", "en", "pour", "de", "gegen", "zu",
];

impl Told {
    /// The end of a sentence in small letters, after its verb, with these values.
    pub(super) fn of(subject: &Subject, said: &str, values: &BTreeSet<String>) -> Self {
        let words_of = |text: &str| -> Vec<String> {
            text.split_whitespace().map(bare).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let clause = clauses(said).next().unwrap_or(said);
        let words = words_of(clause);
        let is_value = |word: &String| values.contains(word);
        let start = words.iter().position(is_value).unwrap_or(words.len());
        let len = words[start..].iter().take_while(|word| is_value(word)).count();
        let (before, value, after) = (&words[..start], &words[start..start + len], &words[start + len..]);
        let is_preposition = |word: &&String| PREPOSITIONS.contains(&word.as_str());
        let is_empty = |word: &&String| EMPTY.contains(&word.as_str());
        // "Allergic to X", "the contact at Y", "in charge of room 5": there may be another.
        let content = before.iter().position(|word| !is_preposition(&word) && !is_empty(&word));
        let relates = content.is_some_and(|at| before[at..].iter().any(|word| is_preposition(&word)));
        let is_number = value.iter().all(|word| kind(word) == Kind::Number);
        let of_verb = match subject.verb {
            "has" | "uses" | "runs on" | "must be" | "are" => !is_number,
            _ => false,
        };
        let rest: Vec<String> = before.iter().chain(after).filter(|word| !is_empty(word)).cloned().collect();
        let whole = rest.iter().cloned().chain(words_of(&said[clause.len()..])).collect();
        let kind = value.first().map_or(Kind::Name, |word| kind(word));
        let is_name = matches!(kind, Kind::Name | Kind::Path);
        // A colon sets a number if nothing else comes after it.
        let of_colon = subject.colon && (!rest.is_empty() || is_name);
        // A thing is at one address.
        let is_address = kind == Kind::Path && before.last().is_some_and(|word| word == "at");
        let lies = before.last().is_some_and(|word| is_preposition(&word)) && is_name && !is_address;
        Self { rest, whole, kind, several: relates || of_verb || of_colon || lies, moves: subject.moves }
    }

    /// Whether this, the later one, takes the place of an older one.
    pub(super) fn replaces(&self, older: &Self, changes: bool) -> bool {
        let is_preposition = |word: &&String| PREPOSITIONS.contains(&word.as_str());
        let same = match self.moves {
            // "The meeting is on Tuesday", "the meeting moved to Thursday".
            true => self
                .rest
                .iter()
                .filter(|word| !is_preposition(word))
                .eq(older.whole.iter().filter(|word| !is_preposition(word))),
            // An older statement with one more fact stays.
            false => self.rest == older.whole,
        };
        same && self.kind == older.kind && (changes || !self.several && !older.several)
    }
}

fn kind(value: &str) -> Kind {
    const DAYS: [&str; 28] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "montag",
        "dienstag",
        "mittwoch",
        "donnerstag",
        "freitag",
        "samstag",
        "sonntag",
        "lundi",
        "mardi",
        "mercredi",
        "jeudi",
        "vendredi",
        "samedi",
        "dimanche",
        "lunes",
        "martes",
        "miércoles",
        "jueves",
        "viernes",
        "sábado",
        "domingo",
    ];
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_clock = value.split_once(':').is_some_and(|(hours, minutes)| digits(hours) && digits(minutes));
    match value {
        _ if is_clock => Kind::Clock,
        _ if DAYS.contains(&value) => Kind::Day,
        _ if value.starts_with(|char: char| char.is_ascii_digit() || matches!(char, '$' | '€')) => Kind::Number,
        _ if value.contains(['/', '@']) || value.contains('.') => Kind::Path,
        _ => Kind::Name,
    }
}
