//! The probes of a cut of a real session, and the measures of a text by them.

use super::{
    names::{MOST_NAMES, SHARED_WORDS, names, words},
    session::{Cut, Kind},
};
use abridged::{
    conversation::{entry::Entry, tokens},
    redact,
    settings::Settings,
    summary::{cleaner::Cleaner, files::FileLists, span::Span},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// Measures of a text, each a share; not a number where a cut has nothing to find.
#[derive(Debug, Clone, Copy)]
pub struct Measures {
    /// Names that are used later and stand in a line with their words.
    pub context: f64,
    /// Names that are used later.
    pub names: f64,
    pub requests: f64,
    pub rules: f64,
    pub modified: f64,
    pub errors: f64,
    /// Lines that stand in the text more than once, of all lines.
    pub repeated: f64,
    /// Secrets in the text; a number, not a share.
    pub secrets: f64,
    /// Filled share of the budget, or of the distinct lines where these are fewer.
    pub filled: f64,
}

/// A field of [`Measures`] by its name.
pub type Field = (&'static str, fn(&Measures) -> f64);

/// The fields of [`Measures`].
pub const FIELDS: [Field; 9] = [
    ("context", |it| it.context),
    ("names", |it| it.names),
    ("requests", |it| it.requests),
    ("rules", |it| it.rules),
    ("modified", |it| it.modified),
    ("errors", |it| it.errors),
    ("repeated", |it| it.repeated),
    ("secrets", |it| it.secrets),
    ("filled", |it| it.filled),
];

/// The probes of a cut.
pub struct Probes<'a> {
    pub gold: HashSet<&'a str>,
    /// Words of the original lines that hold a name of `gold`.
    lines: HashMap<&'a str, Vec<HashSet<String>>>,
    requests: Vec<HashSet<String>>,
    rules: Vec<HashSet<String>>,
    modified: Vec<String>,
    errors: Vec<HashSet<String>>,
    /// Size of the distinct lines of the span, in tokens.
    material: f64,
}

impl<'a> Probes<'a> {
    pub fn of(cut: &Cut<'a>) -> Self {
        let gold = cut.gold();
        let mut lines: HashMap<&str, Vec<HashSet<String>>> = HashMap::new();
        let mut distinct = HashSet::new();
        let mut material = 0.0;
        for (_, line) in cut.lines() {
            if distinct.insert(line.trim()) {
                material += f64::from(tokens::of_text(line)) + 1.0;
            }
            let held: HashSet<&str> = names(line).filter(|name| gold.contains(name)).collect();
            if !held.is_empty() {
                let of_line = words(line);
                held.into_iter().for_each(|name| lines.entry(name).or_default().push(of_line.clone()));
            }
        }
        let said: Vec<String> =
            cut.span.iter().filter(|piece| piece.kind == Kind::User).map(|piece| piece.texts.join("\n")).collect();
        let said = said.iter().filter(|text| is_own(text));
        let requests = said.clone().filter_map(|text| request(text)).collect();
        let rules = said.flat_map(|text| rules(text)).collect();
        let errors = cut.span.iter().filter(|piece| piece.kind == Kind::Result { failed: true });
        let errors = errors.filter_map(|piece| error(&piece.texts.join("\n"))).collect();
        Self { gold, lines, requests, rules, modified: modified(cut), errors, material }
    }

    pub fn measure(&self, text: &str, budget: u64) -> Measures {
        let (mut context, mut bare) = (HashSet::new(), HashSet::new());
        for line in text.lines() {
            let distinct: HashSet<&str> = names(line).collect();
            let few = distinct.len() <= MOST_NAMES;
            let mut of_line = None;
            for name in distinct {
                let Some((name, originals)) = self.lines.get_key_value(name) else { continue };
                bare.insert(*name);
                if !few || context.contains(name) {
                    continue;
                }
                let own = words(name);
                let of_line = of_line.get_or_insert_with(|| words(line));
                let shares = |original: &HashSet<String>| {
                    let shared = original.iter().filter(|word| of_line.contains(*word) && !own.contains(*word));
                    shared.take(SHARED_WORDS).count() == SHARED_WORDS
                };
                if originals.iter().any(shares) {
                    context.insert(*name);
                }
            }
        }
        let said: Vec<HashSet<String>> = text.lines().map(words).collect();
        let held = |wanted: &[HashSet<String>]| {
            let holds = |wanted: &&HashSet<String>| {
                said.iter()
                    .any(|line| wanted.iter().filter(|word| line.contains(*word)).count() * 10 >= wanted.len() * 6)
            };
            share(wanted.iter().filter(holds).count(), wanted.len())
        };
        let mut seen = HashSet::new();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| line.len() > 12).collect();
        let repeated = lines.iter().filter(|line| !seen.insert(**line)).count();
        Measures {
            context: share(context.len(), self.gold.len()),
            names: share(bare.len(), self.gold.len()),
            requests: held(&self.requests),
            rules: held(&self.rules),
            modified: share(
                self.modified.iter().filter(|path| text.contains(path.as_str())).count(),
                self.modified.len(),
            ),
            errors: held(&self.errors),
            repeated: share(repeated, lines.len()),
            secrets: f64::from(u8::from(redact::redact(text) != text)),
            filled: f64::from(tokens::of_text(text)) / (budget as f64).min(self.material * 0.9),
        }
    }
}

fn share(found: usize, all: usize) -> f64 {
    if all == 0 { f64::NAN } else { found as f64 / all as f64 }
}

/// Whether a message is the user's own, and not the text of a harness.
fn is_own(text: &str) -> bool {
    let text = text.trim();
    !text.starts_with('<') && !text.starts_with("# AGENTS.md") && !text.starts_with("Caveat:") && !text.starts_with('[')
}

/// The first words of a request, up to twelve; none for an acknowledgement.
fn request(text: &str) -> Option<HashSet<String>> {
    let line = text.lines().find(|line| words(line).len() >= 4)?;
    let first: Vec<&str> = line.split_whitespace().take(12).collect();
    Some(words(&first.join(" ")))
}

/// The short sentences with a word of a rule.
fn rules(text: &str) -> impl Iterator<Item = HashSet<String>> {
    const WORDS: [&str; 5] = ["must ", "never ", "always ", "don't ", "do not "];
    let sentences = text.lines().flat_map(|line| line.split_inclusive(". "));
    let is_rule = |sentence: &&str| {
        let lower = sentence.to_lowercase();
        (20..200).contains(&sentence.len())
            && !sentence.trim_end().ends_with('?')
            && !sentence.contains(['=', '{', '<', '`', '|'])
            && !sentence.contains("//")
            && WORDS.iter().any(|word| lower.contains(word))
    };
    sentences.filter(is_rule).map(words).filter(|words| words.len() > 3)
}

/// The first line of a failed result that reads like an error.
fn error(text: &str) -> Option<HashSet<String>> {
    let line = text.lines().find(|line| {
        let lower = line.to_lowercase();
        line.len() < 300
            && ["error", "failed", "cannot", "not found", "no such"].iter().any(|word| lower.contains(word))
    })?;
    let of_line = words(line);
    (of_line.len() >= 3).then_some(of_line)
}

/// The files that calls of the span write or edit, the newest 50.
fn modified(cut: &Cut<'_>) -> Vec<String> {
    let entries: Vec<Arc<Entry>> = cut.span.iter().map(|piece| piece.entry.clone()).collect();
    let settings = Settings::default();
    let cleaner = Cleaner::new(&settings);
    let lists = FileLists::of(&Span::of(&entries), &settings.tools.files, &|path| cleaner.clean(path));
    let count = lists.modified_files.len();
    lists.modified_files.into_iter().skip(count.saturating_sub(50)).collect()
}
