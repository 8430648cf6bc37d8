//! Common parts of all providers' answers: counts that come in any form, errors inside an answer, and calls
//! that broke off.

use super::trouble::{Trouble, TroubleKind};
use serde_json::{Map, Value};

/// A count of tokens: a number, or a text with one. None where there is none; nothing below zero, and nothing larger
/// than any context.
pub(super) fn count(value: &Value) -> Option<u64> {
    const MOST: f64 = 1e12;
    let number = match value {
        Value::Number(number) => number.as_f64()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    Some(if number < MOST { number as u64 } else { 0 })
}

/// The count at a JSON pointer; nothing where there is none.
pub(super) fn count_at(json: &Value, pointer: &str) -> Option<u64> {
    json.pointer(pointer).and_then(count)
}

/// The text of a field; empty where there is none.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The JSON of an event or a body.
pub(super) fn json(text: &str) -> Result<Value, Trouble> {
    serde_json::from_str(text).map_err(|_| Trouble::new(TroubleKind::Garbled, text))
}

/// An error inside an answer whose status was good. Some servers put the status they mean beside the message.
pub(super) fn failure(error: &Value, said: &str) -> Trouble {
    let codes = [&error["code"], &error["status_code"], &error["status"]];
    let status = codes.into_iter().filter_map(count).find(|code| (400..600).contains(code));
    Trouble::of(status.and_then(|status| u16::try_from(status).ok()), said, None)
}

/// The arguments of a call as an object; an empty one where they are none, as in a call that was cut.
pub(super) fn object(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}

/// The arguments of a call, or none where they are no object: they broke off, or the model wrote nonsense.
pub(super) fn arguments(text: &str) -> &str {
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(_) => text.trim(),
        Err(_) => "{}",
    }
}

/// A name for the call that is the `nth` of its answer and came without one.
pub(super) fn call_id(id: String, nth: usize) -> String {
    if id.is_empty() { format!("call_{nth}") } else { id }
}

/// The result of `decode` for `stream`, whole and cut into two at every place: always the same.
#[cfg(test)]
pub(super) fn at_every_cut<T: PartialEq + std::fmt::Debug>(
    stream: &str,
    decode: impl Fn(&[super::sse::Event]) -> T,
) -> T {
    let events = |pieces: &[&[u8]]| {
        let mut parser = super::sse::Parser::default();
        pieces.iter().flat_map(|piece| parser.push(piece).expect("small")).collect::<Vec<_>>()
    };
    let bytes = stream.as_bytes();
    let whole = decode(&events(&[bytes]));
    for cut in 1..bytes.len() {
        assert_eq!(decode(&events(&[&bytes[..cut], &bytes[cut..]])), whole, "cut at {cut}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(decode(&events(&single)), whole, "byte by byte");
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts() {
        let row = |value: Value, expected: Option<u64>| assert_eq!(count(&value), expected, "{value}");
        row(json!(7), Some(7));
        row(json!(7.9), Some(7));
        row(json!("7"), Some(7));
        row(json!(" 7.0 "), Some(7));
        row(json!(-7), Some(0));
        row(json!(1e30), Some(0));
        row(json!("NaN"), Some(0));
        row(json!("many"), None);
        row(json!(null), None);
        row(json!([7]), None);
    }

    #[test]
    fn the_status_that_an_error_names() {
        let row = |error: Value, expected: Option<u16>| assert_eq!(failure(&error, "x").status, expected, "{error}");
        row(json!({ "code": 502 }), Some(502));
        row(json!({ "code": "429" }), Some(429));
        row(json!({ "code": "tool_use_failed", "status_code": 400 }), Some(400));
        row(json!({ "code": 1301 }), None);
        row(json!({ "status": "UNAVAILABLE" }), None);
        row(json!("overloaded"), None);
    }
}
