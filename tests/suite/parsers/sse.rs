//! Server-sent events: the same however the bytes arrive, and the same again where they are written as events.

use super::chunks::{choices, cuts};
use abridged::provider::sse::{Event, Parser};

pub fn check(data: &[u8]) {
    let Some(([size], stream)) = choices(data) else { return };
    let [whole, others @ ..] = cuts(stream, size).map(|pieces| events(&pieces));
    for other in others {
        assert_eq!(other, whole);
    }
    let (found, _) = whole;
    let length: usize = found.iter().map(|event| event.data.len()).sum();
    // A byte that is no UTF-8 becomes a character of three.
    assert!(length <= 3 * stream.len());
    for Event { name, data } in &found {
        assert!(!data.contains('\r'), "{data:?}");
        assert!(name.as_deref().is_none_or(|name| !name.contains(['\r', '\n'])), "{name:?}");
    }
    for end in ["\n", "\r", "\r\n"] {
        let written: String = found.iter().map(|event| text(event, end)).collect();
        assert_eq!(events(&[written.as_bytes()]), (found.clone(), false), "{written:?}");
    }
}

/// The events in pieces of a stream, and whether one has begun and not ended.
fn events(pieces: &[&[u8]]) -> (Vec<Event>, bool) {
    let mut parser = Parser::default();
    let events = pieces.iter().flat_map(|piece| parser.push(piece).expect("it is far below the limit")).collect();
    (events, parser.in_event())
}

/// An event as it is sent.
fn text(Event { name, data }: &Event, end: &str) -> String {
    let name = name.iter().map(|name| format!("event: {name}{end}"));
    let data = data.split('\n').map(|line| format!("data: {line}{end}"));
    name.chain(data).collect::<String>() + end
}
