//! The number of values and keys in a JSON text, counted without building them. A tree of small values takes some hundred
//! bytes for each byte of its text, so a text is counted before a tree is made of it.

use std::fmt;

/// The most values and keys of a JSON text of which a tree is made. The largest tree takes about 60 MB. A megabyte of
/// schemas has about 100,000, and a long text counts once.
pub const MOST: usize = 300_000;

/// Shorter texts are not counted, in bytes. They have fewer values and keys than the limit.
const ALWAYS_FEW: usize = 64 << 10;

/// A JSON text with more values and keys than the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooMany {
    /// The key of the outermost object whose value exceeds the limit; empty where the text is no object.
    pub key: String,
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it has more than {MOST} values and keys, and the most is {MOST}")
    }
}

/// Checks that a JSON text has no more values and keys than the limit. A text that is no JSON passes or not: its reader
/// refuses it.
///
/// # Errors
/// When it has more.
pub fn check(json: &str) -> Result<(), TooMany> {
    check_without(json, &[])
}

/// The same without the values of some keys of the outermost object, of which no tree is made.
///
/// # Errors
/// When the other values have more.
pub fn check_without(json: &str, raw: &[&str]) -> Result<(), TooMany> {
    if json.len() <= ALWAYS_FEW {
        return Ok(());
    }
    count(json, raw, MOST).map(drop)
}

/// Whether bytes are a JSON text with more values and keys than the limit. Short ones are not read.
#[must_use]
pub fn are_too_many(json: &[u8]) -> bool {
    json.len() > ALWAYS_FEW && std::str::from_utf8(json).is_ok_and(|json| check(json).is_err())
}

/// Counts values and keys up to a limit: one for each comma, colon and opening bracket outside of strings.
fn count(json: &str, raw: &[&str], most: usize) -> Result<usize, TooMany> {
    let bytes = json.as_bytes();
    let (mut at, mut depth, mut count) = (0, 0_usize, 1);
    // The newest string of the outermost object, and the newest key there.
    let (mut string, mut key) = ("", "");
    let mut counts = true;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = end_of_string(bytes, at + 1);
                if depth == 1 {
                    string = json.get(at + 1..end).unwrap_or_default();
                }
                at = end;
            }
            b'[' | b'{' => {
                depth += 1;
                count += usize::from(counts);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b':' => {
                count += usize::from(counts);
                if depth == 1 {
                    key = string;
                    counts = !raw.contains(&key);
                }
            }
            b',' => {
                counts |= depth == 1;
                count += usize::from(counts);
            }
            _ => {}
        }
        if count > most {
            let key = super::head(key, LONGEST_KEY).to_owned();
            return Err(TooMany { key });
        }
        at += 1;
    }
    Ok(count)
}

/// The longest key that an error names, in characters.
const LONGEST_KEY: usize = 64;

/// The place of the quote that ends a string which begins at `from`.
fn end_of_string(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[at.min(bytes.len())..]) {
        at += found;
        if bytes[at] == b'"' {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn of(json: &str) -> usize {
        count(json, &[], usize::MAX).expect("no limit")
    }

    #[test]
    fn values_and_keys_are_counted_outside_of_strings() {
        for (json, expected) in [
            ("1", 1),
            ("[]", 2),
            ("[1,2]", 3),
            (r#"{"a":1,"b":[2,3]}"#, 7),
            (r#""[[[,,,:::""#, 1),
            (r#"["a\",[[","b\\",3]"#, 4),
            (r#""without an end,,,"#, 1),
            (r#""\"#, 1),
        ] {
            assert_eq!(of(json), expected, "{json}");
        }
    }

    #[test]
    fn a_raw_value_is_not_counted_and_what_follows_it_is() {
        let json = r#"{"sessionId":"messages","messages":[{"messages":1},[2,3]],"patch":{"messages":[1,2,3]}}"#;
        let without = r#"{"sessionId":"messages","messages":"","patch":{"messages":[1,2,3]}}"#;
        assert_eq!(count(json, &["messages"], usize::MAX), Ok(of(without)));
        assert_eq!(count(json, &["messages"], 10), Err(TooMany { key: "patch".to_owned() }));
        assert_eq!(count(json, &[], 6), Err(TooMany { key: "messages".to_owned() }));
    }

    #[test]
    fn a_text_over_the_limit_is_refused_and_a_long_string_is_not() {
        let many = format!("[{}0]", r#"{"":1},"#.repeat(MOST / 3));
        assert_eq!(check(&many), Err(TooMany { key: String::new() }));
        assert_eq!(check(&format!("[{}0]", r#"{"":1},"#.repeat(MOST / 3 - 1))), Ok(()));
        assert_eq!(check(&json!(",".repeat(MOST + 1)).to_string()), Ok(()));
        assert!(of(&"[".repeat(ALWAYS_FEW)) < MOST);
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!(null)), any::<i32>().prop_map(|n| json!(n)), ".*".prop_map(|s| json!(s))];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                proptest::collection::vec((".*", inner), 0..8).prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    /// The values and keys of a tree.
    fn parts(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(parts).sum(),
            Value::Object(members) => members.values().map(|value| 1 + parts(value)).sum(),
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn the_count_is_that_of_the_tree(value in tree()) {
            // An empty array or object counts as if one value were in it.
            fn empty(value: &Value) -> usize {
                match value {
                    Value::Array(items) => usize::from(items.is_empty()) + items.iter().map(empty).sum::<usize>(),
                    Value::Object(members) => usize::from(members.is_empty()) + members.values().map(empty).sum::<usize>(),
                    _ => 0,
                }
            }
            prop_assert_eq!(of(&value.to_string()), parts(&value) + empty(&value));
        }
    }
}
