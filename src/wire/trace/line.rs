//! A line of a trace: one frame without its secrets, whole or its beginning.

use super::Direction;
use crate::{
    conversation::entry::timestamp,
    redact::redact,
    settings::masked,
    wire::transport::{LARGEST_FRAME, Piece},
};
use jiff::Timestamp;
use serde_json::{Value, json, value::RawValue};
use std::borrow::Cow;

/// A larger frame is cut, in bytes. A page of entries and an append with a few results are smaller.
pub(super) const MOST_SHOWN: usize = 64 << 10;

/// The bytes after the cut that are read for secrets which begin before it. No key but a block of a private key is longer, and
/// that one is recognized by its beginning.
const MARGIN: usize = 4 << 10;

/// Strings of JSON before values that are, or may be, secrets in a form that only their place tells: keys of settings, and an
/// event that may be dropped, which may have a piece of a text. The text of a frame that is not read as JSON ends before them.
const SECRET_PLACES: [&str; 6] =
    ["\"headers\"", "\"header\"", "\"apikeycommand\"", "\"baseurl\"", "\"remoteendpoint\"", "\"durable\":false"];

/// A frame, or its beginning.
pub(super) struct Shown {
    text: String,
    /// The size of the frame in bytes.
    whole: usize,
}

impl Shown {
    pub(super) fn of_bytes(frame: &[u8]) -> Self {
        let beginning = &frame[..frame.len().min(MOST_SHOWN + MARGIN)];
        let beginning = if frame.len() > MOST_SHOWN { beginning } else { frame };
        Self { text: String::from_utf8_lossy(beginning).into_owned(), whole: frame.len() }
    }

    pub(super) fn of_pieces(pieces: &[Piece]) -> Self {
        let mut beginning = Vec::new();
        for piece in pieces {
            let room = (MOST_SHOWN + MARGIN).saturating_sub(beginning.len());
            let bytes = piece.as_str().as_bytes();
            beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        let whole = pieces.iter().map(|piece| piece.as_str().len()).sum();
        Self { text: String::from_utf8_lossy(&beginning).into_owned(), whole }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    fn is_whole(&self) -> bool {
        self.whole <= MOST_SHOWN
    }
}

/// The line of a frame: `at`, `direction` and `frame`. A frame that is no JSON, or not whole, is a text; `bytes` is the size
/// of a frame that is not whole.
pub(super) fn of_frame(at: Timestamp, direction: Direction, shown: &Shown) -> String {
    let at = timestamp(at);
    let direction = match direction {
        Direction::In => "in",
        Direction::Out => "out",
    };
    if shown.is_whole()
        && let Some(frame) = json_of(&shown.text)
    {
        return format!(r#"{{"at":"{at}","direction":"{direction}","frame":{frame}}}"#);
    }
    let text = text_of(shown);
    match text.len() == shown.text.len() && shown.is_whole() {
        true => json!({ "at": at, "direction": direction, "frame": text }),
        false => json!({ "at": at, "direction": direction, "bytes": shown.whole, "frame": text }),
    }
    .to_string()
}

/// The line of a frame of the client that the daemon skipped.
pub(super) fn of_skipped(at: Timestamp) -> String {
    let skipped = format!("a frame over {} MiB", LARGEST_FRAME >> 20);
    json!({ "at": timestamp(at), "direction": "in", "skipped": skipped }).to_string()
}

/// The line about frames that are not in the trace.
pub(super) fn of_missing(at: Timestamp, frames: u64) -> String {
    json!({ "at": timestamp(at), "missing": frames }).to_string()
}

/// The JSON of a frame without its secrets. `None` where it is no JSON.
fn json_of(text: &str) -> Option<Box<RawValue>> {
    let mut value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    masked::hide(&mut value);
    hide_pieces(&mut value);
    redact_texts(&mut value);
    // The name of a value may say that it is a secret.
    let redacted = redact(&value.to_string()).into_owned();
    RawValue::from_string(redacted.clone()).or_else(|_| serde_json::value::to_raw_value(&redacted)).ok()
}

/// The text of a frame without its secrets.
fn text_of(shown: &Shown) -> String {
    let lower = shown.text.to_ascii_lowercase();
    let places = SECRET_PLACES.iter().filter_map(|place| lower.find(place));
    let (end, margin) = match places.min() {
        Some(place) => (place, 0),
        None => (shown.text.len(), if shown.text.len() > MOST_SHOWN { MARGIN } else { 0 }),
    };
    let mut text = redact(&shown.text[..end]).into_owned();
    let mut end = text.len().saturating_sub(margin).min(MOST_SHOWN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

/// Replaces a piece of a text by its size: a secret may be divided between several. Pieces are in events that may be dropped.
fn hide_pieces(frame: &mut Value) {
    let Some(params) = frame.get_mut("params") else { return };
    if params["durable"] == false
        && let Some(Value::String(text)) = params.pointer_mut("/event/text")
    {
        *text = format!("[{} bytes]", text.len());
    }
}

/// Redacts each text of a frame, in its own characters and not as JSON has them.
fn redact_texts(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = redact(text) {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact_texts),
        Value::Object(fields) => fields.iter_mut().for_each(|(_, value)| redact_texts(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(frame: &[u8]) -> Value {
        let line = of_frame(Timestamp::UNIX_EPOCH, Direction::In, &Shown::of_bytes(frame));
        assert!(!line.contains('\n'), "{line}");
        serde_json::from_str(&line).expect("JSON")
    }

    #[test]
    fn a_frame_stays_and_its_secrets_go() {
        let frame =
            json!({"jsonrpc": "2.0", "id": 1, "params": {"text": "a\nb", "big": 18_446_744_073_709_551_615_u64}});
        let expected = json!({"at": "1970-01-01T00:00:00.000Z", "direction": "in", "frame": frame});
        assert_eq!(line(format!("{frame:#}").as_bytes()), expected, "over several lines, too");
        let key = format!(
            "sk-ant-{}",
            "api03-Hb7gTkQ2mVx9RzLw4NcY6pJdS8fA1uE5oGiK3tXnWqBvZlMrCyPhDs0jUeOaFi7kT2mVx9RzLw4NcY6pJdS8fA"
        );
        let settings = json!({"models": [{"headers": {"x-key": "hush"}, "baseUrl": "https://me:hush@host/v1", "apiKeyCommand": ["print", "hush"]}]});
        for frame in [
            json!({"params": {"content": format!("my key is {key}, and on")}}),
            json!({"params": {"text": format!("{{\"quoted\": \"{key}\"}}")}}),
            json!({"password": "correct-horse-hush-1"}),
            json!({"params": {"settings": settings}}),
            json!({"params": [{"patch": settings}]}),
            json!({"method": "session/event", "params": {"durable": false, "event": {"text": "hush"}}}),
        ] {
            for text in [frame.to_string(), format!("{frame}]")] {
                let line = line(text.as_bytes()).to_string();
                assert!(!line.contains(&key) && !line.contains("hush"), "{line}");
            }
        }
    }

    #[test]
    fn a_large_frame_is_cut_and_no_part_of_a_secret_is_left() {
        let key = format!("ghp_{}", "Hb7gTkQ2mVx9RzLw4NcY6pJdS8fA1uE5oGiK");
        for before in [MOST_SHOWN - 40, MOST_SHOWN - 20, MOST_SHOWN - 1, MOST_SHOWN + MARGIN - 20] {
            let text = format!("{{\"text\":\"{} {key} {}\"}}", "x ".repeat(before / 2), "y".repeat(MOST_SHOWN));
            let line = line(text.as_bytes());
            let shown = line["frame"].as_str().expect("a text");
            assert_eq!(line["bytes"], text.len());
            assert!(shown.len() <= MOST_SHOWN && shown.len() > MOST_SHOWN - 100, "{}", shown.len());
            assert!(!shown.contains("ghp_H"), "{}", &shown[shown.len() - 80..]);
            let pieces: Vec<Piece> =
                text.as_bytes().chunks(1_000).map(|it| Piece::Text(String::from_utf8_lossy(it).into())).collect();
            let pieces = of_frame(Timestamp::UNIX_EPOCH, Direction::In, &Shown::of_pieces(&pieces));
            assert_eq!(pieces, line.to_string());
        }
        let settings = json!({"models": [{"headers": {"x-key": "hush"}}], "more": "y".repeat(MOST_SHOWN)});
        assert!(!line(settings.to_string().as_bytes()).to_string().contains("hush"));
    }

    #[test]
    fn a_frame_that_is_no_json_is_a_text() {
        assert_eq!(line(b"{\"id\": 1")["frame"], "{\"id\": 1");
        assert_eq!(line(b"\xff no text")["frame"], "\u{fffd} no text");
        let cut = line(b"{\"models\": [{\"Headers\": {\"x\": \"hush\"}");
        assert_eq!((&cut["frame"], &cut["bytes"]), (&json!("{\"models\": [{"), &json!(37)));
    }
}
