//! Counts as servers send them: numbers, texts, floats, null or below zero.

use serde_json::Value;

/// The count at a JSON pointer; nothing where there is none.
#[must_use]
pub fn at(json: &Value, pointer: &str) -> Option<u64> {
    let count = match json.pointer(pointer)? {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    // No answer is larger; what claims to be is no count. Casting turns NaN and what is below zero into zero.
    const MOST: f64 = 1e12;
    Some(if count < MOST { count as u64 } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whatever_looks_like_a_count_is_one() {
        let rows = [
            (json!(12), Some(12)),
            (json!(12.7), Some(12)),
            (json!("12"), Some(12)),
            (json!(" 12.0 "), Some(12)),
            (json!(-3), Some(0)),
            (json!("-3"), Some(0)),
            (json!("NaN"), Some(0)),
            (json!(1e300), Some(0)),
            (json!(null), None),
            (json!("many"), None),
            (json!({}), None),
        ];
        for (value, expected) in rows {
            assert_eq!(at(&json!({ "a": { "b": value } }), "/a/b"), expected, "{value}");
        }
        assert_eq!(at(&json!({}), "/a/b"), None);
    }
}
