//! Methods that a summary is compared with, unmodified, each within a budget in tokens.

use super::{
    names::{names, words},
    session::{Cut, Kind, Piece},
};
use abridged::conversation::tokens;
use std::collections::{BTreeSet, HashMap, HashSet};

/// A method: a name and a text for a cut within a budget.
pub type Method = (&'static str, fn(&Cut<'_>, u64) -> String);

/// The methods. The last one is nothing but names, and must lose in context.
pub const METHODS: &[Method] = &[
    ("truncation", truncation),
    ("head+tail", head_and_tail),
    ("observation masking", masking),
    ("TextRank", textrank),
    ("centroid", centroid),
    ("word dropper", dropper),
    ("names only", names_only),
];

/// The span without a limit: what any method can reach.
pub const CEILING: Method = ("whole span", |cut, _| transcript(cut.span).join("\n"));

fn size(line: &str) -> u64 {
    u64::from(tokens::of_text(line)) + 1
}

/// The transcript, line by line, with a label at the first line of each text.
fn transcript(span: &[Piece]) -> Vec<String> {
    let mut lines = Vec::new();
    for piece in span {
        for (number, text) in piece.texts.iter().enumerate() {
            let label = match piece.kind {
                Kind::User => "[User]: ",
                Kind::Assistant if number == 0 => "[Assistant]: ",
                Kind::Assistant => "[Tool call]: ",
                Kind::Result { .. } => "[Tool result]: ",
                Kind::Other => "",
            };
            for (at, line) in text.lines().enumerate() {
                lines.push(if at == 0 { format!("{label}{line}") } else { line.to_owned() });
            }
        }
    }
    lines
}

fn newest(lines: &[String], budget: u64) -> Vec<String> {
    let mut left = budget;
    let mut taken: Vec<String> = Vec::new();
    for line in lines.iter().rev() {
        let size = size(line);
        if size > left {
            break;
        }
        left -= size;
        taken.push(line.clone());
    }
    taken.reverse();
    taken
}

fn truncation(cut: &Cut<'_>, budget: u64) -> String {
    newest(&transcript(cut.span), budget).join("\n")
}

fn head_and_tail(cut: &Cut<'_>, budget: u64) -> String {
    let lines = transcript(cut.span);
    let mut left = budget / 2;
    let fits = |line: &&String| {
        let size = size(line);
        let fits = size <= left;
        left -= size.min(left);
        fits
    };
    let head: Vec<String> = lines.iter().take_while(fits).cloned().collect();
    let tail = newest(&lines[head.len()..], budget / 2);
    [head, tail].concat().join("\n")
}

/// The transcript with each tool result as one line that says how long it was.
fn masking(cut: &Cut<'_>, budget: u64) -> String {
    let mut lines = Vec::new();
    for piece in cut.span {
        match piece.kind {
            Kind::Result { .. } => {
                let count: usize = piece.texts.iter().map(|text| text.lines().count()).sum();
                lines.push(format!("[Tool result]: ({count} lines omitted)"));
            }
            _ => lines.extend(transcript(std::slice::from_ref(piece))),
        }
    }
    newest(&lines, budget).join("\n")
}

/// Distinct lines with a few words, with their words.
fn distinct(cut: &Cut<'_>) -> Vec<(String, Vec<String>)> {
    let mut seen = HashSet::new();
    let lines = cut.lines().map(|(_, line)| line.trim());
    let lines = lines.filter(|line| line.len() >= 12 && seen.insert(line.to_owned()));
    lines
        .map(|line| {
            let mut words: Vec<String> = words(line).into_iter().collect();
            words.sort_unstable();
            (line.to_owned(), words)
        })
        .collect()
}

/// The best lines by their scores, in their order.
fn best(lines: &[(String, Vec<String>)], scores: &[f64], budget: u64) -> String {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]).then(one.cmp(other)));
    let mut left = budget;
    let mut taken = BTreeSet::new();
    for at in order {
        let size = size(&lines[at].0);
        if size <= left {
            left -= size;
            taken.insert(at);
        }
        if left < 8 {
            break;
        }
    }
    taken.into_iter().map(|at| lines[at].0.as_str()).collect::<Vec<_>>().join("\n")
}

/// TextRank over the newest 900 lines: an edge is the number of common words over the logarithms of both lengths.
fn textrank(cut: &Cut<'_>, budget: u64) -> String {
    const LINES: usize = 900;
    let all = distinct(cut);
    let lines = &all[all.len().saturating_sub(LINES)..];
    let mut ids: HashMap<&str, u32> = HashMap::new();
    let of: Vec<Vec<u32>> = lines
        .iter()
        .map(|(_, words)| {
            let mut of: Vec<u32> = words
                .iter()
                .map(|word| {
                    let next = ids.len() as u32;
                    *ids.entry(word).or_insert(next)
                })
                .collect();
            of.sort_unstable();
            of
        })
        .collect();
    let mut edges: Vec<Vec<(usize, f64)>> = vec![Vec::new(); lines.len()];
    for one in 0..of.len() {
        for other in one + 1..of.len() {
            let shared = common(&of[one], &of[other]);
            if shared > 0 {
                let weight = shared as f64 / ((of[one].len() as f64 + 1.0).ln() + (of[other].len() as f64 + 1.0).ln());
                edges[one].push((other, weight));
                edges[other].push((one, weight));
            }
        }
    }
    let sums: Vec<f64> = edges.iter().map(|edges| edges.iter().map(|(_, weight)| weight).sum()).collect();
    let mut scores = vec![1.0; lines.len()];
    for _ in 0..20 {
        let rank = |at: usize| -> f64 {
            0.15 + 0.85 * edges[at].iter().map(|(from, weight)| scores[*from] * weight / sums[*from]).sum::<f64>()
        };
        scores = (0..lines.len()).map(rank).collect();
    }
    best(lines, &scores, budget)
}

fn common(one: &[u32], other: &[u32]) -> usize {
    let (mut at, mut to, mut shared) = (0, 0, 0);
    while at < one.len() && to < other.len() {
        match one[at].cmp(&other[to]) {
            std::cmp::Ordering::Less => at += 1,
            std::cmp::Ordering::Greater => to += 1,
            std::cmp::Ordering::Equal => {
                shared += 1;
                at += 1;
                to += 1;
            }
        }
    }
    shared
}

/// Lines by the cosine of their TF-IDF vector and that of the whole span.
fn centroid(cut: &Cut<'_>, budget: u64) -> String {
    let lines = distinct(cut);
    let mut found: HashMap<&str, f64> = HashMap::new();
    lines.iter().flat_map(|(_, words)| words).for_each(|word| *found.entry(word).or_default() += 1.0);
    let all = lines.len() as f64;
    let idf = |word: &str| (all / found[word]).ln();
    let length: f64 = found.iter().map(|(word, count)| (count * idf(word)).powi(2)).sum::<f64>().sqrt();
    let score = |words: &[String]| -> f64 {
        let dot: f64 = words.iter().map(|word| idf(word) * found[word.as_str()] * idf(word)).sum();
        let own: f64 = words.iter().map(|word| idf(word).powi(2)).sum::<f64>().sqrt();
        if own == 0.0 { 0.0 } else { dot / own / length.max(1e-9) }
    };
    let scores: Vec<f64> = lines.iter().map(|(_, words)| score(words)).collect();
    best(&lines, &scores, budget)
}

/// Keeps the words with the largest self-information, in their lines: a word of the conversation is dropped where its share of
/// all words is above a limit that the budget sets.
fn dropper(cut: &Cut<'_>, budget: u64) -> String {
    let lines: Vec<&str> = cut.lines().map(|(_, line)| line.trim()).filter(|line| !line.is_empty()).collect();
    let mut counts: HashMap<&str, u32> = HashMap::new();
    lines.iter().flat_map(|line| line.split_whitespace()).for_each(|word| *counts.entry(word).or_default() += 1);
    let kept = |most: f64| -> Vec<String> {
        // Of words that occur equally often, the later ones stay.
        let mut seen: HashMap<&str, u32> = HashMap::new();
        let mut kept = Vec::new();
        for line in lines.iter().rev() {
            let words = line.split_whitespace().filter(|word| {
                let times = seen.entry(word).or_default();
                *times += 1;
                f64::from(counts[*word]) <= most && *times == 1
            });
            let line = words.collect::<Vec<_>>().join(" ");
            if !line.is_empty() {
                kept.push(line);
            }
        }
        kept.reverse();
        kept
    };
    let most = [32.0, 16.0, 8.0, 4.0, 3.0, 2.0, 1.0];
    let total = |lines: &[String]| lines.iter().map(|line| size(line)).sum::<u64>();
    let fitting = most.into_iter().map(kept).find(|lines| total(lines) <= budget);
    newest(&fitting.unwrap_or_else(|| kept(1.0)), budget).join("\n")
}

/// Names and nothing else, newest first.
fn names_only(cut: &Cut<'_>, budget: u64) -> String {
    let mut seen = HashSet::new();
    let mut left = budget;
    let mut out = Vec::new();
    let mut all: Vec<&str> = cut.lines().flat_map(|(_, line)| names(line)).collect();
    all.reverse();
    for name in all {
        if seen.insert(name) {
            let size = size(name);
            if size > left {
                break;
            }
            left -= size;
            out.push(name);
        }
    }
    out.join(" ")
}
