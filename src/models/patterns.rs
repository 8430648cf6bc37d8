//! Patterns of model names: globs with versions.
//!
//! | in a pattern | fits |
//! |---|---|
//! | `*` | any text, also none |
//! | `{a,b}` | one of several texts |
//! | `<5.2..5.4>` | a version in the range; each end may be missing, and an end without a minor number includes all of them |
//! | any other text | itself |
//!
//! The end of a pattern is the end of a word: `gpt-5` fits `gpt-5-mini` and neither `gpt-5.1` nor `gpt-50`.

use serde::Deserialize;
use std::ops::RangeInclusive;

/// A pattern of model names.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern {
    pieces: Vec<Piece>,
    scope: Scope,
}

/// A model's name in lower case.
#[derive(Debug)]
pub struct Name(String);

/// The part of a name that a pattern describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The part after the last slash.
    Last,
    /// The whole name: the pattern has a slash.
    Whole,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Any,
    OneOf(Vec<String>),
    Version(RangeInclusive<Version>),
}

/// Major and minor number.
type Version = (u32, u32);

impl Name {
    /// The name of a model at its provider.
    #[must_use]
    pub fn of(id: &str) -> Self {
        Self(id.to_ascii_lowercase())
    }

    fn part(&self, scope: Scope) -> &str {
        match scope {
            Scope::Last => self.0.rsplit('/').next().unwrap_or_default(),
            Scope::Whole => &self.0,
        }
    }
}

impl Pattern {
    /// Whether a name fits.
    #[must_use]
    pub fn fits(&self, name: &Name) -> bool {
        fits(&self.pieces, name.part(self.scope).as_bytes(), 0) == Some(true)
    }
}

/// Compares `name` from `at` on. `None`: another place for the `*` before may fit. The first version after a `*` decides,
/// so that a date further on is never taken for one.
fn fits(pieces: &[Piece], name: &[u8], at: usize) -> Option<bool> {
    let Some((piece, rest)) = pieces.split_first() else {
        let inside = |byte: &u8| *byte == b'.' || byte.is_ascii_alphanumeric();
        return (!name.get(at).is_some_and(inside)).then_some(true);
    };
    let behind = |text: &str| fits(rest, name, at + name.get(at..)?.strip_prefix(text.as_bytes()).map(|_| text.len())?);
    match piece {
        Piece::Text(text) => behind(text),
        Piece::OneOf(texts) => texts.iter().find_map(|text| behind(text)),
        Piece::Any if rest.is_empty() => Some(true),
        Piece::Any => (at..=name.len()).find_map(|at| {
            let inside = at > 0 && name[at - 1].is_ascii_alphanumeric();
            let misplaced = inside && matches!(rest.first(), Some(Piece::Version(_)));
            if misplaced { None } else { fits(rest, name, at) }
        }),
        Piece::Version(range) => {
            let (version, end) = version(name, at)?;
            Some(range.contains(&version) && fits(rest, name, end) == Some(true))
        }
    }
}

/// The version at a place, and its end: `5`, `5.2` or `5-2`.
fn version(name: &[u8], at: usize) -> Option<(Version, usize)> {
    let (major, end) = number(name, at)?;
    let minor = match name.get(end) {
        Some(b'.' | b'-') => number(name, end + 1),
        _ => None,
    };
    Some(minor.map_or(((major, 0), end), |(minor, end)| ((major, minor), end)))
}

/// A number of one or two digits that is a word, and its end. Longer ones are dates.
fn number(name: &[u8], at: usize) -> Option<(u32, usize)> {
    let digits = name.get(at..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let end = at + digits;
    if !(1..=2).contains(&digits) || name.get(end).is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    Some((std::str::from_utf8(&name[at..end]).ok()?.parse().ok()?, end))
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let invalid = |why: &str| format!("the pattern `{text}` {why}");
        let scope = if text.contains('/') { Scope::Whole } else { Scope::Last };
        let mut pieces = Vec::new();
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let (piece, behind) = match first {
                '*' => (Piece::Any, &rest[1..]),
                '{' => {
                    let (inner, behind) = rest[1..].split_once('}').ok_or_else(|| invalid("has no } for its {"))?;
                    (Piece::OneOf(inner.split(',').map(str::to_owned).collect()), behind)
                }
                '<' => {
                    let (inner, behind) = rest[1..].split_once('>').ok_or_else(|| invalid("has no > for its <"))?;
                    (Piece::Version(range(inner).ok_or_else(|| invalid("has no version between < and >"))?), behind)
                }
                '}' | '>' => return Err(invalid("closes what it did not open")),
                _ => {
                    let end = rest.find(['*', '{', '<', '}', '>']).unwrap_or(rest.len());
                    (Piece::Text(rest[..end].to_owned()), &rest[end..])
                }
            };
            pieces.push(piece);
            rest = behind;
        }
        Ok(Self { pieces, scope })
    }
}

/// The range `5.2..5.4`, `5..`, `..5` or `5.2`.
fn range(text: &str) -> Option<RangeInclusive<Version>> {
    let bound = |text: &str, missing: Version, minor: u32| match text.split_once('.') {
        _ if text.is_empty() => Some(missing),
        Some((major, minor)) => Some((major.parse().ok()?, minor.parse().ok()?)),
        None => Some((text.parse().ok()?, minor)),
    };
    let (from, to) = match text.split_once("..") {
        Some(ends) => ends,
        None if text.is_empty() => return None,
        None => (text, text),
    };
    Some(bound(from, (0, 0), 0)?..=bound(to, (u32::MAX, u32::MAX), u32::MAX)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, name: &str) -> bool {
        Pattern::try_from(pattern.to_owned()).expect("a pattern").fits(&Name::of(name))
    }

    #[test]
    fn a_pattern_ends_at_the_end_of_a_word() {
        for name in ["gpt-5", "GPT-5", "gpt-5-mini", "gpt-5:x", "openai/gpt-5@y"] {
            assert!(fits("gpt-5", name), "{name}");
        }
        for name in ["gpt-5.1", "gpt-50", "gpt-5o", "my-gpt-5", "gpt-5/other", ""] {
            assert!(!fits("gpt-5", name), "{name}");
        }
        assert!(fits("gpt-5*", "gpt-5o"));
    }

    #[test]
    fn a_star_is_any_text_and_braces_are_one_of_several() {
        assert!(fits("*a*b*", "xaxbx") && fits("*a*b*", "ab") && !fits("*a*b*", "ba"));
        assert!(fits("{,ft:}{o1,o3}", "ft:o3-mini") && fits("{,ft:}{o1,o3}", "o1") && !fits("{o1,o3}", "ft:o1"));
        assert!(fits("*/x", "a/b/x") && !fits("*/x", "x"), "a slash makes it the whole name");
        assert!(fits("*ä*", "xäx") && fits("*", ""));
    }

    #[test]
    fn a_version_is_the_first_short_number() {
        for (pattern, name, expected) in [
            ("m-<5.2..5.4>", "m-5.2", true),
            ("m-<5.2..5.4>", "m-5-4-mini", true),
            ("m-<5.2..5.4>", "m-5.5", false),
            ("m-<5.2..5.4>", "m-5", false),
            ("m-<5..>", "m-5", true),
            ("m-<5..>", "m-12.3", true),
            ("m-<..5>", "m-5.9", true),
            ("m-<..5>", "m-6", false),
            ("m-<5>", "m-5.9", true),
            ("m-<5.0>", "m-5-2025-08-07", true),
            ("m-<5.0>", "m-5.1", false),
            ("m-<..>", "m-4o", false),
            ("m-<..>", "m-20250807", false),
            ("m<..>", "m4", true),
            ("m*<..>*", "m-x-20250807", false),
            ("m*<5..>*", "m-4-x-7", false),
            ("m*<..>*", "m-x4", false),
            ("*m-*<4.6>*", "a.m-x-4-6-20260205-v1:0", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn an_invalid_pattern_is_an_error() {
        for text in ["{a", "<5", "a}", "<>", "<x..>", "a>"] {
            assert!(Pattern::try_from(text.to_owned()).expect_err(text).contains(text));
        }
    }
}
