//! Values that hold no longer, as texts mention them.

use super::{Claim, context::bare, subject::stem};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Statements that are looked for inside of longer texts.
const MOST_REPLACED: usize = 100;
/// Values that no statement in force has, with the words of the statements that had them.
#[derive(Debug, Default)]
pub(in crate::summary) struct Outdated {
    values: HashMap<String, BTreeSet<String>>,
    /// The statements, in small letters.
    statements: HashSet<String>,
}

impl Outdated {
    /// The outdated values of statements.
    pub(in crate::summary) fn of(statements: &[&str], claims: &[Option<Claim>], holds: &[bool]) -> Self {
        let of = |held: bool| claims.iter().zip(holds).filter(move |(_, holds)| **holds == held);
        let in_force: BTreeSet<&String> =
            of(true).filter_map(|(claim, _)| claim.as_ref()).flat_map(|claim| &claim.values).collect();
        let mut values: HashMap<String, BTreeSet<String>> = HashMap::new();
        let mut replaced = HashSet::new();
        for ((claim, holds), statement) in claims.iter().zip(holds).zip(statements) {
            let Some(claim) = claim.as_ref().filter(|_| !holds) else { continue };
            replaced.insert(statement.to_lowercase());
            let words: BTreeSet<String> = statement.to_lowercase().split_whitespace().map(stem).collect();
            for value in claim.values.iter().filter(|value| !in_force.contains(value)) {
                let others =
                    words.iter().filter(|word| word.len() > 3 && *word != value && !claim.values.contains(*word));
                values.entry(value.clone()).or_default().extend(others.cloned());
            }
        }
        Self { values, statements: replaced }
    }

    /// Adds statements that hold no longer.
    pub(in crate::summary) fn add(&mut self, statements: impl IntoIterator<Item = String>) {
        self.statements.extend(statements.into_iter().map(|text| text.to_lowercase()));
    }

    /// Whether a text has a statement that holds no longer.
    pub(in crate::summary) fn is_repeated_in(&self, text: &str) -> bool {
        let lower = text.to_lowercase();
        self.statements.contains(lower.trim())
            || self.statements.iter().take(MOST_REPLACED).any(|it| lower.contains(it.as_str()))
    }

    /// Whether a text gives a value that is outdated, for the thing that had it.
    pub(in crate::summary) fn is_in(&self, text: &str) -> bool {
        if self.statements.is_empty() {
            return false;
        }
        if self.is_repeated_in(text) {
            return true;
        }
        let mut words = None;
        text.split_whitespace().any(|word| {
            let Some(others) = self.values.get(&bare(word).to_lowercase()) else { return false };
            let words =
                words.get_or_insert_with(|| text.to_lowercase().split_whitespace().map(stem).collect::<BTreeSet<_>>());
            others.is_empty() || others.intersection(words).next().is_some()
        })
    }
}
