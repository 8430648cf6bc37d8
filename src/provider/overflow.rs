//! The meaning of a provider's error: too long, too fast, not paid for, too many bytes.
//!
//! Every provider, and every proxy before one, has words of its own, and few have codes. So the texts are data: a row for
//! each way of saying it, with who says it. What merely sounds like an overflow is looked at first, because a compaction
//! throws detail away and waiting does not: "too many tokens" is also what one says who counts them by the minute.
//!
//! `tests/corpora/overflow.jsonl` has a text for every row, and says where it was seen or what it was made from.

mod patterns;
mod reservation;
mod sizes;
#[cfg(test)]
mod tests;

pub use reservation::{Reservation, output_beside};

use crate::text;
use patterns::{NEGATIVE, NEGATIVES, PAYLOAD, POSITIVE, decided};
use regex::Regex;
use serde::{Deserialize, Serialize};
use sizes::Sizes;
use std::sync::LazyLock;

/// An overflow: a request that a provider refused as too long, with the numbers in its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overflow {
    /// The model's window in tokens. None if the text states none, or one that no model has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// The size of the request, in tokens: all that had to fit, so with the room kept for the answer where the text adds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<u64>,
}

/// The meaning of a provider's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// More tokens than the model's window: a shorter context helps.
    Overflow(Overflow),
    /// More tokens than the model's window, and only because of the room kept for the answer: a smaller answer helps.
    Reserved(Reservation),
    /// Too much in too little time, or too many others: the same request goes through later.
    Throttled,
    /// Nothing left to spend, or nothing left of the day: neither waiting nor a shorter context helps.
    OutOfQuota,
    /// Bytes, media, or a 413 without a reason. An overflow only for a context that is nearly full.
    PayloadTooLarge,
    /// Anything else.
    Other,
}

/// The meaning of an error, from its HTTP status and its text: a message, a body of any form, or a library's text.
#[must_use]
pub fn meaning(status: Option<u16>, text: &str) -> Meaning {
    let text = plain(text);
    if let Some(row) = decided(&NEGATIVE, &text) {
        return NEGATIVES[row].1;
    }
    let status = status.or_else(|| stated_status(&text));
    // A status that says it all: who may not ask, or asks too often, has not been measured.
    match status {
        Some(401 | 403) => return Meaning::Other,
        Some(402) => return Meaning::OutOfQuota,
        Some(429 | 529) => return Meaning::Throttled,
        _ => {}
    }
    if let Some(sizes) = POSITIVE.iter().find_map(|row| Sizes::of(row, &text)) {
        return sizes.meaning();
    }
    if decided(&PAYLOAD, &text).is_some() || status == Some(413) {
        return Meaning::PayloadTooLarge;
    }
    if status == Some(503) { Meaning::Throttled } else { Meaning::Other }
}

/// Whether a size that a text states is not that of a request with this estimate: it is over three times the estimate, or
/// under a third of it. It teaches no window then.
#[must_use]
pub fn is_far_off(stated: u64, estimate: u64) -> bool {
    stated > estimate.saturating_mul(3) || estimate > stated.saturating_mul(3)
}

/// The status a library wrote into its message: first, or after a word for it.
static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern =
        r"(?i)(?:^\W{0,3}|\b(?:error|status|code|statuscode|status_code|http|api|failed)\W{1,4})([45][0-9]{2})\b";
    Regex::new(pattern).expect("the pattern is fixed and tested")
});

/// The status that an error's words begin with, or name.
pub(super) fn stated_status(text: &str) -> Option<u16> {
    STATUS.captures(text)?.get(1)?.as_str().parse().ok()
}

/// An error's text as the patterns expect it: one line, without the escapes of JSON in JSON and of HTML, with straight
/// apostrophes, and with the usual digits and brackets in the place of full-width ones.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for mut rest in said(text) {
        while let Some(next) = rest.chars().next() {
            let escape = ESCAPES.iter().find(|(escape, _)| rest.starts_with(escape));
            let (length, char) = escape.map_or((next.len_utf8(), next), |(escape, char)| (escape.len(), *char));
            rest = &rest[length..];
            match char {
                '\\' => {}
                char if char.is_whitespace() && plain.ends_with(' ') => {}
                char if char.is_whitespace() => plain.push(' '),
                // Between two numbers it ends the first one. A usual comma separates thousands.
                '，' => plain.push('，'),
                '\u{ff01}'..='\u{ff5e}' => plain.push(usual(char)),
                char => plain.push(char),
            }
        }
        plain.push(' ');
    }
    plain.trim().to_owned()
}

/// The ASCII character of a full-width one.
fn usual(full_width: char) -> char {
    /// Distance between both in Unicode.
    const DISTANCE: u32 = '！' as u32 - '!' as u32;
    (full_width as u32).checked_sub(DISTANCE).and_then(char::from_u32).unwrap_or(full_width)
}

/// A backslash that begins none of these is dropped, so escapes of escapes come out the same.
const ESCAPES: &[(&str, char)] = &[
    (r"\n", ' '),
    (r"\r", ' '),
    (r"\t", ' '),
    (r"\u003e", '>'),
    (r"\u003c", '<'),
    (r"\u0026", '&'),
    (r"\u0027", '\''),
    (r"\u0022", '"'),
    (r"\u2019", '\''),
    ("&gt;", '>'),
    ("&lt;", '<'),
    ("&#39;", '\''),
    ("&#x27;", '\''),
    ("&apos;", '\''),
    ("&quot;", '"'),
    ("&#34;", '"'),
    ("’", '\''),
];

/// The part of each end of a text that is searched, in characters. The middle is the text that an error quotes.
const END: usize = 16 * 1024;

/// The part of a text that is the error: the AI SDK's errors carry the whole request.
fn said(text: &str) -> impl Iterator<Item = &str> {
    let (before, after) = match (text.find("requestBodyValues"), text.rfind("statusCode")) {
        (Some(request), Some(answer)) if request < answer => (&text[..request], &text[answer..]),
        _ => (text, ""),
    };
    let ends = |text| match str::len(text) <= 2 * END {
        true => [text, ""],
        false => [text::head(text, END), text::tail(text, END)],
    };
    [before, after].into_iter().flat_map(ends).filter(|text| !text.is_empty())
}
