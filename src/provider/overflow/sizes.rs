//! The numbers in the text of a refusal: the limit, the whole request, its input and the room kept for its answer.

use super::{Meaning, Overflow, Reservation, patterns::NUMBER};
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// No model that agents use has a smaller window, and error codes and counts of messages are often smaller.
pub(super) const SMALLEST_WINDOW: u64 = 512;
/// No model has a larger one, and limits in bytes often are.
const LARGEST_WINDOW: u64 = 20_000_000;

/// The numbers of a refusal, in tokens, as far as its text states them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    limit: Option<u64>,
    /// Input and room for the answer together.
    requested: Option<u64>,
    input: Option<u64>,
    output: Option<u64>,
}

/// A part of a request in the brackets after its size: `64 in the messages`, `732 of tool input`, `256 for the completion`.
static PART: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = format!(r"(?i)(?<tokens>{NUMBER}) (?:of|in|for|from) (?:the |your )?(?<kind>[a-z ]+)");
    Regex::new(&pattern).expect("the pattern is fixed and tested")
});

/// The part that is the room for the answer.
static ANSWER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)completion|output|answer|response").expect("the pattern is fixed and tested"));

impl Sizes {
    /// The numbers that a row of the table finds in a text. None where it does not match.
    pub fn of(row: &Regex, text: &str) -> Option<Self> {
        let first = row.captures(text)?;
        let limits = || row.captures_iter(text).filter_map(|again| number(&again, "limit"));
        // A text with two limits, as of a gateway that asked two models, does not say which one holds.
        let is_one = limits().all(|limit| Some(limit) == number(&first, "limit"));
        let (parts_in, parts_out) = first.name("parts").map(|parts| parts_of(parts.as_str())).unwrap_or_default();
        let requested = number(&first, "requested");
        let output = number(&first, "answer").or(parts_out);
        let stated = number(&first, "input").or(parts_in);
        // The rest of the request is input, also where the text names only a part of it.
        let rest = requested.zip(output).map(|(requested, output)| requested.saturating_sub(output));
        let input = stated.max(rest);
        let sum = input.map(|input| input.saturating_add(output.unwrap_or(0)));
        Some(Self {
            limit: number(&first, "limit").filter(|limit| is_one && is_window(*limit)),
            requested: requested.max(sum),
            input,
            output,
        })
    }

    /// The meaning of the refusal.
    pub fn meaning(self) -> Meaning {
        let Self { limit, requested, input, output } = self;
        let reservation = || Reservation::of(limit?, input?, output?);
        reservation().map_or(Meaning::Overflow(Overflow { limit, requested }), Meaning::Reserved)
    }
}

/// Whether a model may have a window of this size.
pub(super) fn is_window(tokens: u64) -> bool {
    (SMALLEST_WINDOW..=LARGEST_WINDOW).contains(&tokens)
}

/// The input and the room for the answer in a list of parts.
fn parts_of(parts: &str) -> (Option<u64>, Option<u64>) {
    let (mut input, mut output) = (None, None);
    for part in PART.captures_iter(parts) {
        let sum = if ANSWER.is_match(&part["kind"]) { &mut output } else { &mut input };
        let tokens = number(&part, "tokens").unwrap_or(0);
        *sum = Some(sum.map_or(tokens, |before: u64| before.saturating_add(tokens)));
    }
    (input, output)
}

fn number(numbers: &Captures<'_>, name: &str) -> Option<u64> {
    let text = numbers.name(name)?.as_str().replace(',', "").to_ascii_lowercase();
    let units = [('k', 1_000.0), ('m', 1_000_000.0), ('万', 10_000.0)];
    let (digits, unit) =
        units.iter().find_map(|(name, unit)| Some((text.strip_suffix(*name)?, *unit))).unwrap_or((&text, 1.0));
    let value: f64 = digits.parse().ok()?;
    Some((value * unit).round() as u64)
}
