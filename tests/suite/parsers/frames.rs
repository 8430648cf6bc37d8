//! Frames of both framings. However the bytes arrive, the same frames are read, none of them is over the limit, and a frame
//! ends where its own bytes end.

use super::chunks::choices;
use abridged::wire::transport::{
    Chosen, Ends, FrameReader, Framing, Inbound, Piece, escaped_len, put_frame, write_pieces,
};
use serde_json::Value;
use std::io::BufReader;

pub fn check(data: &[u8]) {
    let Some(([limit, size], stream)) = choices(data) else { return };
    // Small, so that a small stream has frames over the limit.
    let largest = 2 * limit;
    let (framing, whole) = frames(stream, stream.len() + 1, largest, None);
    for size in [1, 1 + size % 64] {
        assert_eq!(frames(stream, size, largest, None).1, whole, "in pieces of {size} bytes");
    }
    let Some(framing) = framing else { return assert_eq!(whole, []) };
    let length: usize = whole.iter().map(|it| if let Inbound::Frame(frame) = it { frame.len() } else { 0 }).sum();
    assert!(length <= stream.len());
    for frame in &whole {
        match frame {
            Inbound::Frame(frame) => assert!(frame.len() <= largest),
            Inbound::TooLarge(_) => {}
            Inbound::BrokenHeader(what) => assert!(what.len() < 100, "{what}"),
        }
    }
    match framing {
        Framing::Ndjson => assert_eq!(whole, lines(stream, largest)),
        Framing::ContentLength => ends_where_its_bytes_end(stream, largest, &whole),
    }
    for frame in &whole {
        if let Inbound::Frame(frame) = frame {
            is_written_as_it_is_read(frame, size);
        }
    }
}

/// The framing and the frames of a stream that arrives in pieces of this size. Nothing is read behind a broken header.
fn frames(stream: &[u8], size: usize, largest: usize, framing: Option<Framing>) -> (Option<Framing>, Vec<Inbound>) {
    let chosen = Chosen::default();
    if let Some(framing) = framing {
        chosen.set(framing).expect("nobody chose before");
    }
    let mut reader = FrameReader::new(BufReader::with_capacity(size, stream), chosen.clone(), largest);
    let mut found = Vec::new();
    while let Some(frame) = reader.next_frame().expect("a slice can be read") {
        let is_broken = matches!(frame, Inbound::BrokenHeader(_));
        // The kept ends of a skipped frame are not compared here.
        let is_skipped = matches!(frame, Inbound::TooLarge(_));
        found.push(if is_skipped { Inbound::TooLarge(Ends::default()) } else { frame });
        if is_broken {
            break;
        }
    }
    (chosen.get().copied(), found)
}

/// The frames of lines, by another way.
fn lines(stream: &[u8], largest: usize) -> Vec<Inbound> {
    let is_before = |byte: &u8| b" \t\r\n\xEF\xBB\xBF".contains(byte);
    let start = stream.iter().position(|byte| !is_before(byte)).unwrap_or(stream.len());
    let mut found = Vec::new();
    for line in stream[start..].split_inclusive(|byte| *byte == b'\n') {
        let line = match line.strip_suffix(b"\n") {
            Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
            None => line,
        };
        if line.len() > largest {
            found.push(Inbound::TooLarge(Ends::default()));
        } else if !line.iter().all(u8::is_ascii_whitespace) {
            found.push(Inbound::Frame(line.to_vec()));
        }
    }
    found
}

/// A frame before a stream changes nothing in what is read of the stream.
fn ends_where_its_bytes_end(stream: &[u8], largest: usize, whole: &[Inbound]) {
    let start = stream.iter().position(u8::is_ascii_alphabetic).unwrap_or(0);
    for length in [0, 1, largest, largest + 1, largest + 9_000] {
        let body = vec![b'\n'; length];
        let longer = [format!("Content-Length: {length}\r\n\r\n").as_bytes(), &body, &stream[start..]].concat();
        let first = if length > largest { Inbound::TooLarge(Ends::default()) } else { Inbound::Frame(body) };
        let (_, found) = frames(&longer, 7, largest, None);
        assert_eq!((&found[0], &found[1..]), (&first, whole), "behind a frame of {length} bytes");
    }
}

/// JSON that is written and read is the same JSON, in both framings and in any pieces.
fn is_written_as_it_is_read(frame: &[u8], size: usize) {
    let Ok(json) = std::str::from_utf8(frame) else { return };
    let Ok(value) = serde_json::from_str::<Value>(json) else { return };
    if json.contains(['\n', '\r']) {
        return;
    }
    for framing in [Framing::Ndjson, Framing::ContentLength] {
        let mut out = Vec::new();
        put_frame(framing, json, &mut out);
        let (_, found) = frames(&out, 5, 1 << 20, Some(framing));
        let [Inbound::Frame(read)] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(serde_json::from_slice::<Value>(read).ok().as_ref(), Some(&value));
        assert_eq!(read.len(), escaped_len(json));
        let text = std::str::from_utf8(read).expect("it was a text");
        assert!(!text.contains(['\u{2028}', '\u{2029}']), "{text}");
        let mut again = Vec::new();
        put_frame(framing, text, &mut again);
        assert_eq!(again, out, "what is escaped stays so");
        let mut in_pieces = Vec::new();
        write_pieces(framing, &pieces(json, size), &mut in_pieces).expect("a vector takes all");
        assert_eq!(in_pieces, out);
    }
}

/// A text in pieces of about this size, of both kinds.
fn pieces(text: &str, size: usize) -> Vec<Piece> {
    let mut ends: Vec<usize> = (0..text.len()).step_by(1 + size % 16).filter(|at| text.is_char_boundary(*at)).collect();
    ends.push(text.len());
    let piece = |(at, ends): (usize, &[usize])| match at % 2 {
        0 => Piece::Text(text[ends[0]..ends[1]].to_owned()),
        _ => Piece::Part(text.into(), ends[0]..ends[1]),
    };
    ends.windows(2).enumerate().map(piece).collect()
}
