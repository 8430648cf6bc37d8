//! The lines of a conversation that are worth most for what comes next, chosen under a budget.
//!
//! An agent later needs names (paths, identifiers, versions, hashes) in the line in which they stood: a name alone
//! says nothing. A name is worth more when it is rare, when it came up more than once, and when it came up late. Lines
//! are taken greedily by the worth of the names that no line before has brought, for their length.

use crate::{
    summary::ledger::{Said, Speaker},
    text,
};
use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap, HashSet},
};

/// A line that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picked {
    /// The piece of the conversation it stands in.
    pub piece: usize,
    /// Its number in that piece.
    pub line: usize,
    /// The line, perhaps clipped.
    pub text: String,
}

/// A longer line is clipped to this many characters.
const LONGEST: usize = 220;
/// Shorter lines say nothing by themselves.
const SHORTEST: usize = 12;
/// Names of one line that count; a line that is nothing but names is a listing.
const MOST_NAMES: usize = 12;
/// Characters a token takes at the least in transcripts with code: a cautious price.
const CHARS_PER_TOKEN: f64 = 3.2;
/// Cost of a line beside its text, in tokens: a bullet and its share of the label above.
const LINE_OVERHEAD: f64 = 6.0;

/// The best lines of the conversation within about `tokens`, in the order they were said. Lines with a word of `focus`
/// come before all others.
pub(super) fn pick(said: &[Said], tokens: u64, focus: &[String]) -> Vec<Picked> {
    let index = Index::of(said);
    let mut lines = index.lines(said, focus);
    let mut covered: HashSet<u32> = HashSet::new();
    let mut heap: BinaryHeap<Ranked> =
        lines.iter().enumerate().map(|(at, line)| Ranked { score: line.score(&index, &covered), at }).collect();
    let mut left = tokens as f64;
    let mut picked = Vec::new();
    while let Some(best) = heap.pop() {
        let line = &lines[best.at];
        if best.score <= 0.0 {
            break;
        }
        if line.cost > left {
            continue;
        }
        // The score was right when it was computed; names may have been covered since.
        let now = line.score(&index, &covered);
        if now < best.score && heap.peek().is_some_and(|next| now < next.score) {
            heap.push(Ranked { score: now, at: best.at });
            continue;
        }
        left -= line.cost;
        covered.extend(&line.names);
        picked.push(best.at);
    }
    picked.sort_unstable();
    picked
        .into_iter()
        .map(|at| {
            let line = &mut lines[at];
            Picked { piece: line.piece, line: line.number, text: text::one_line(line.text, LONGEST) }
        })
        .collect()
}

struct Ranked {
    score: f64,
    at: usize,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.at.cmp(&self.at))
    }
}
impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Ranked {}

struct Line<'a> {
    piece: usize,
    number: usize,
    text: &'a str,
    names: Vec<u32>,
    /// By who said it.
    weight: f64,
    /// In tokens.
    cost: f64,
    focused: bool,
}

impl Line<'_> {
    fn score(&self, index: &Index<'_>, covered: &HashSet<u32>) -> f64 {
        let new = self.names.iter().filter(|name| !covered.contains(name));
        let worth: f64 = new.map(|&name| index.worth[name as usize]).sum();
        let bonus = if self.focused { 1_000.0 } else { 0.0 };
        (worth * self.weight + bonus) / self.cost.powf(0.8)
    }
}

/// The names of a conversation and what each is worth.
struct Index<'a> {
    ids: HashMap<&'a str, u32>,
    worth: Vec<f64>,
}

impl<'a> Index<'a> {
    fn of(said: &'a [Said]) -> Self {
        struct Seen {
            pieces: u32,
            last: usize,
            asked_for: bool,
        }
        let mut ids = HashMap::new();
        let mut seen: Vec<Seen> = Vec::new();
        for (piece, said) in said.iter().enumerate() {
            for name in names(&said.text) {
                let id = *ids.entry(name).or_insert_with(|| {
                    seen.push(Seen { pieces: 0, last: usize::MAX, asked_for: false });
                    seen.len() as u32 - 1
                });
                let it = &mut seen[id as usize];
                if it.last != piece {
                    it.pieces += 1;
                    it.last = piece;
                }
                it.asked_for |= matches!(said.speaker, Speaker::User | Speaker::Call);
            }
        }
        let all = said.len().max(1) as f64;
        let worth = |it: &Seen| {
            let rare = (1.0 + all / f64::from(it.pieces)).ln();
            let again = if it.pieces > 1 { 1.6 } else { 1.0 };
            let late = 0.3 + 0.7 * ((it.last + 1) as f64 / all).powi(2);
            let asked = if it.asked_for { 1.4 } else { 1.0 };
            rare * again * late * asked
        };
        let worth = seen.iter().map(worth).collect();
        Self { ids, worth }
    }

    fn lines(&self, said: &'a [Said], focus: &[String]) -> Vec<Line<'a>> {
        let mut known: HashSet<&str> = HashSet::new();
        let mut lines = Vec::new();
        for (piece, it) in said.iter().enumerate() {
            let weight = match it.speaker {
                Speaker::Assistant => 1.3,
                Speaker::User => 1.2,
                Speaker::Result { failed: true } => 1.2,
                Speaker::Result { failed: false } | Speaker::Aside => 0.9,
                Speaker::Call => 0.7,
            };
            for (number, line) in it.text.lines().enumerate() {
                let line = line.trim();
                if line.len() < SHORTEST || !known.insert(line) {
                    continue;
                }
                let line = text::head(line, LONGEST);
                let mut ids: Vec<u32> = names(line).filter_map(|name| self.ids.get(name).copied()).collect();
                ids.sort_unstable();
                ids.dedup();
                ids.truncate(MOST_NAMES);
                let focused = !focus.is_empty() && {
                    let lower = line.to_lowercase();
                    focus.iter().any(|word| lower.contains(word.as_str()))
                };
                if ids.is_empty() && !focused {
                    continue;
                }
                let cost = line.chars().count() as f64 / CHARS_PER_TOKEN + LINE_OVERHEAD;
                lines.push(Line { piece, number, text: line, names: ids, weight, cost, focused });
            }
        }
        lines
    }
}

/// The names in a text: words with something in them that plain words have not.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    let inside = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | '/' | '-' | '@' | '#' | '~');
    text.split(move |char| !inside(char))
        .map(|word| word.trim_matches(['.', '-', '/', '#', '~']))
        .filter(|word| (3..=96).contains(&word.len()) && is_name(word))
}

fn is_name(word: &str) -> bool {
    let bytes = word.as_bytes();
    if !bytes.iter().any(u8::is_ascii_alphabetic) {
        return false;
    }
    let joined = bytes.iter().any(|byte| matches!(byte, b'_' | b'/' | b'@' | b'.'));
    let digit = bytes.iter().any(u8::is_ascii_digit);
    let camel = bytes.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    joined || digit || camel
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::Clean;

    fn said(speaker: Speaker, text: &str) -> Said {
        Said { speaker, label: Clean::assembled("x"), text: Clean::assembled(text) }
    }

    #[test]
    fn names_are_told_from_words() {
        let found: Vec<&str> = names("see src/main.rs, parseHeader() and v1.2 of user_id; the end. (a/b)").collect();
        assert_eq!(found, ["src/main.rs", "parseHeader", "v1.2", "user_id", "a/b"]);
    }

    #[test]
    fn late_and_repeated_names_come_first_and_nothing_comes_twice() {
        let pieces = [
            said(Speaker::Result { failed: false }, "an old line about old_thing here\nfiller without any of them"),
            said(Speaker::User, "please look at retry_budget now"),
            said(Speaker::Assistant, "the value of retry_budget is set in limits.rs at the top"),
            said(Speaker::Assistant, "the value of retry_budget is set in limits.rs at the top"),
        ];
        let picked = pick(&pieces, 30, &[]);
        assert_eq!(picked[0].text, "the value of retry_budget is set in limits.rs at the top");
        assert_eq!(picked.len(), 1, "{picked:?}");
        let focused = pick(&pieces, 24, &["filler".to_owned()]);
        assert_eq!(focused[0].text, "filler without any of them");
    }
}
