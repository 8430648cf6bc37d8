//! The size limit of frames that nobody asked for, and of errors. A larger one is shortened where it is made.

use super::transport::escaped_len;
use crate::text::shortened;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The size that no notification and no error reaches, in bytes of JSON as it is written. From the contract.
pub const SOFT_FRAME: usize = 60 << 10;

/// Limits of the texts in bytes, and of the members of lists and maps, in the order in which they are tried. No id, no name
/// and no enum value of ours has as many bytes as a text of the last row, and no type of ours has as many fields.
const LIMITS: [(usize, usize); 6] =
    [(16 << 10, usize::MAX), (4 << 10, usize::MAX), (1 << 10, usize::MAX), (1 << 10, 256), (256, 64), (128, 48)];

/// A notification as JSON, below the limit. `_meta.shortened` of one that was larger names the request
/// `whole`, or is `true` where none returns it.
pub fn notification(method: &str, params: impl Serialize, whole: Option<&str>) -> String {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: P,
    }
    fn json(method: &str, params: impl Serialize) -> String {
        let notification = Notification { jsonrpc: "2.0", method, params };
        serde_json::to_string(&notification).expect("our own types are always JSON")
    }
    let frame = json(method, &params);
    if escaped_len(&frame) < SOFT_FRAME {
        return frame;
    }
    let Ok(Value::Object(mut params)) = serde_json::to_value(params) else { return frame };
    let request = whole.map_or(Value::Bool(true), Value::from);
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert("shortened".to_owned(), request);
    }
    let mut params = Value::Object(params);
    shorten(&mut params, |params| escaped_len(&json(method, params)) < SOFT_FRAME);
    json(method, params)
}

/// A value that fits, with shorter texts and lists where it does not.
pub fn shorten(value: &mut Value, fits: impl Fn(&Value) -> bool) {
    for (bytes, members) in LIMITS {
        if fits(value) {
            return;
        }
        limit(value, bytes, members);
    }
}

fn limit(value: &mut Value, bytes: usize, members: usize) {
    match value {
        Value::String(text) => *text = shortened(std::mem::take(text), bytes),
        Value::Array(items) => {
            items.truncate(members);
            items.iter_mut().for_each(|item| limit(item, bytes, members));
        }
        Value::Object(map) => {
            let fields = std::mem::take(map).into_iter().take(members);
            *map = Map::from_iter(fields.map(|(key, mut value)| {
                limit(&mut value, bytes, members);
                (shortened(key, bytes), value)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{
        notifications::{Notification as _, SessionsChanged, SettingsChanged},
        whole_of,
    };
    use proptest::prelude::*;

    #[test]
    fn a_notification_over_the_limit_is_shortened_and_names_the_request_for_the_whole() {
        let small = notification("n", json!({"title": "a".repeat(50_000)}), None);
        assert!(small.contains(&"a".repeat(50_000)) && !small.contains("_meta"));
        let long = "ü\u{2028}".repeat(20_000);
        let (settings, list) = (whole_of(SettingsChanged::NAME), whole_of(SessionsChanged::NAME));
        for (params, whole, named) in [
            (json!({"title": long, "code": "short"}), None, json!(true)),
            (json!({"settings": {"a": long}, "code": "short"}), settings, json!(settings)),
            (json!({"paths": vec!["p".repeat(500); 5_000], "code": "short"}), list, json!(list)),
        ] {
            let text = notification("n", params, whole);
            assert!(escaped_len(&text) < SOFT_FRAME, "{}", escaped_len(&text));
            let frame: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!((&frame["method"], &frame["jsonrpc"]), (&json!("n"), &json!("2.0")));
            let params = &frame["params"];
            assert_eq!((&params["_meta"]["shortened"], &params["code"]), (&named, &json!("short")));
        }
        assert_eq!(shortened("üüü".to_owned(), 6), "üüü");
        assert_eq!(shortened("üüü".to_owned(), 5), "ü…");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn every_notification_is_below_the_limit(
            texts in proptest::collection::vec((0_usize..40_000, any::<bool>()), 0..40),
            lists in 0_usize..3_000,
        ) {
            let texts: Vec<String> = texts.into_iter().map(|(length, wide)| if wide { "\u{2028}" } else { "x" }.repeat(length)).collect();
            let map: Map<String, Value> = texts.iter().map(|text| (text.clone(), json!(text))).collect();
            let text = notification("n", json!({"texts": texts, "map": map, "list": vec![json!([1, {"a": "b"}]); lists]}), None);
            prop_assert!(escaped_len(&text) < SOFT_FRAME);
        }
    }
}
