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

/// The most parts of an answer. Some of them are looked for among the others, and no model sends as many.
pub(super) const MOST_PARTS: usize = 4_096;

/// The items of an array, which become parts of an answer; none of any other value.
///
/// # Errors
/// When they are more than any answer has.
pub(super) fn parts(value: &Value) -> Result<&[Value], Trouble> {
    let parts = value.as_array().map(Vec::as_slice).unwrap_or_default();
    few(parts.len()).map(|()| parts)
}

/// Checks a number of parts.
///
/// # Errors
/// When they are more than any answer has.
pub(super) fn few(parts: usize) -> Result<(), Trouble> {
    let too_many = || Trouble::new(TroubleKind::Endless, format!("it has more than {MOST_PARTS} parts"));
    (parts <= MOST_PARTS).then_some(()).ok_or_else(too_many)
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

/// The arguments of a call as the model wrote them. They may be no object: they broke off, or the model wrote nonsense.
pub(super) fn arguments(text: &str) -> &str {
    match text.trim() {
        "" => "{}",
        text => text,
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
    /// Parts of answers are looked for among the others. Without a limit a server could keep a processor busy for hours.
    #[test]
    fn an_answer_with_more_parts_than_any_has_is_given_up() {
        use crate::provider::{Api, codec::Decoder, given, sse::Event};
        let many = |part: &dyn Fn(usize) -> Value| -> Vec<Value> { (0..=MOST_PARTS).map(part).collect() };
        let text = many(&|at| json!({"type": "text", "text": at.to_string()}));
        let calls = many(&|at| json!({"id": at.to_string(), "function": {"name": "r", "arguments": ""}}));
        let items =
            many(&|at| json!({"type": "function_call", "call_id": at.to_string(), "name": "r", "arguments": "{}"}));
        let parts = many(&|at| json!({"functionCall": {"name": at.to_string(), "args": {}}}));
        let whole = [
            (Api::Anthropic, json!({"content": text})),
            (Api::OpenaiChat, json!({"choices": [{"message": {"tool_calls": calls}}]})),
            (Api::OpenaiResponses, json!({"status": "completed", "output": items})),
            (Api::Google, json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})),
        ];
        for (api, body) in &whole {
            let trouble = Decoder::new(*api).whole(&body.to_string()).expect_err("too many parts");
            assert_eq!(trouble.kind, TroubleKind::Endless, "{api:?}: {trouble}");
        }
        let event = |api: Api, at: usize| match api {
            Api::Anthropic => {
                json!({"type": "content_block_start", "index": at, "content_block": {"type": "tool_use"}})
            }
            Api::OpenaiResponses => {
                json!({"type": "response.output_item.added", "output_index": at, "item": {"type": "message"}})
            }
            Api::Google => json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "r"}}]}}]}),
            _ => json!({"choices": [{"delta": {"tool_calls": [{"index": at, "function": {}}]}}]}),
        };
        for (api, _) in whole {
            let mut decoder = Decoder::new(api);
            let mut take = |at| decoder.event(&Event { name: None, data: event(api, at).to_string() });
            assert!((0..MOST_PARTS).all(|at| take(at).is_ok()), "{api:?}");
            assert_eq!(take(MOST_PARTS).expect_err("too many parts").kind, TroubleKind::Endless, "{api:?}");
        }
        let given_text = json!({"role": "assistant", "content": text}).to_string();
        let invalid = given::messages(Api::Anthropic, &[&given_text], &given::Beside::default(), None, Vec::new());
        assert_eq!(invalid.expect_err("too many parts").path, "messages[0]");
    }
}
