//! Texts of simulated conversations. Each names its number once, so that a reader finds it again.

pub mod texts;

const WORDS: [&str; 24] = [
    "parser",
    "reads",
    "the",
    "next",
    "line",
    "of",
    "src/lexer.rs",
    "and",
    "writes",
    "a",
    "token",
    "when",
    "cache",
    "is",
    "empty",
    "test",
    "fails",
    "because",
    "index",
    "counts",
    "from",
    "zero",
    "retry",
    "later.",
];

/// The text of this number, of about so many characters.
#[must_use]
pub fn text(number: u64, chars: u32) -> String {
    let chars = usize::try_from(chars).unwrap_or(usize::MAX);
    let mut text = String::with_capacity(chars.saturating_add(32));
    text.push_str(&format!("m{number}:"));
    let mut at = number;
    while text.len() < chars {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push(' ');
        text.push_str(WORDS[usize::try_from(at >> 33).unwrap_or(0) % WORDS.len()]);
    }
    text
}
