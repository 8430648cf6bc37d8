//! Lines as they are written to a session file.

use super::stamps::Stamp;
use crate::ids::EntryId;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A line to be written: the base fields of every entry around what is special to it.
#[must_use]
pub fn line(kind: &str, stamp: &Stamp, parent: Option<&EntryId>, fields: &[(&str, &RawValue)]) -> String {
    let text = |value: &str| serde_json::to_string(value).expect("a text is always JSON");
    let mut line = format!(
        r#"{{"type":{},"id":{},"parentId":{},"timestamp":{}"#,
        text(kind),
        text(stamp.id.as_str()),
        parent.map_or_else(|| "null".to_owned(), |parent| text(parent.as_str())),
        text(&stamp.timestamp),
    );
    for (name, value) in fields {
        line.push_str(&format!(",{}:{}", text(name), one_line(value.get())));
    }
    line.push('}');
    line
}

/// A value as it goes into a line.
#[must_use]
pub fn raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("maps with text keys and numbers are always JSON")
}

/// Newlines between the tokens of a JSON text are white space; in a file of lines they would be its end.
#[must_use]
pub fn one_line(json: &str) -> Cow<'_, str> {
    match memchr::memchr2(b'\n', b'\r', json.as_bytes()) {
        Some(_) => json.replace(['\n', '\r'], " ").into(),
        None => json.into(),
    }
}
