//! Names and words of a text, by the definitions in `docs/FIDELITY.md`. The product has its own.

use std::collections::HashSet;

/// Names of one line that count. A line with more of them is a listing, and counts for none.
pub const MOST_NAMES: usize = 12;

/// Words beside a name that a line has to share with an original line, so that the name counts.
pub const SHARED_WORDS: usize = 2;

/// The names in a text: paths, identifiers, hashes, versions. Each as often as it occurs.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    let inside = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '/' | '-' | '@');
    let words = text.split(move |char: char| !inside(char));
    words.map(|word| word.trim_matches(['.', '-', '/', '@'])).filter(|word| is_name(word))
}

fn is_name(word: &str) -> bool {
    let bytes = word.as_bytes();
    if !(4..=100).contains(&bytes.len()) {
        return false;
    }
    let letters = bytes.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    if letters == 0 {
        // A version.
        return digits > 2 && bytes.iter().filter(|byte| **byte == b'.').count() == 2;
    }
    let path = word.contains('/') || bytes.windows(2).any(|pair| pair[0] == b'.' && pair[1].is_ascii_alphabetic());
    let snake = word.contains('_');
    let camel = bytes.windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    path || snake || camel || digits > 0
}

/// The words of a text, in small letters: letters and digits, at least three of them.
pub fn words(text: &str) -> HashSet<String> {
    let words = text.split(|char: char| !char.is_alphanumeric());
    words.filter(|word| word.chars().count() >= 3).map(str::to_lowercase).collect()
}
