//! Calls on their way to a provider that did not make them itself: ids and arguments in forms that all of them take.

use serde_json::{Map, Value};

/// The longest id of a call that every provider takes, in characters.
const LONGEST_ID: usize = 64;

/// An id of letters, digits, `_` and `-`, not too long. Different ids stay different when they are shortened.
#[must_use]
pub fn id(id: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() || "_-".contains(char) { char } else { '_' };
    let mut plain: String = id.chars().map(plain).collect();
    if plain.len() > LONGEST_ID {
        let mark = format!("_{:016x}", fnv1a(id.as_bytes()));
        plain.truncate(LONGEST_ID - mark.len());
        plain.push_str(&mark);
    }
    plain
}

/// Arguments as the object that all providers want; an empty one where the text is none, as in a call that was cut.
#[must_use]
pub fn arguments(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// Always the same number for the same bytes, also tomorrow.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_fit_stay() {
        assert_eq!(id("toolu_01-Ab"), "toolu_01-Ab");
        assert_eq!(id("functions.read:0"), "functions_read_0");
    }

    #[test]
    fn long_ids_stay_different() {
        let [a, b] = ["a", "b"].map(|end| id(&format!("{}{end}", "x".repeat(100))));
        assert_eq!((a.len(), b.len()), (LONGEST_ID, LONGEST_ID));
        assert_ne!(a, b);
    }

    #[test]
    fn arguments_are_always_an_object() {
        assert_eq!(arguments(r#"{"b":1,"a":2}"#).keys().collect::<Vec<_>>(), ["b", "a"]);
        for text in ["", "{\"a\":", "[1]", "null", "7"] {
            assert!(arguments(text).is_empty(), "{text}");
        }
    }
}
