//! Bytes and frames. Two framings, told apart by the first byte that is not blank: `{` or `[` begins lines of JSON, a
//! letter begins LSP's `Content-Length` headers. The content of a frame is not looked at.

use std::{
    io::{self, BufRead, Read, Write},
    ops::Range,
    sync::{Arc, OnceLock},
};

/// A larger frame is skipped, in bytes.
pub const LARGEST_FRAME: usize = 64 << 20;

/// The bytes at each end of a skipped frame that are kept. The id of an answer stands among them.
const KEPT_OF_SKIPPED: usize = 256;

/// The framing of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One JSON text a line.
    Ndjson,
    /// `Content-Length: N`, a blank line, N bytes.
    ContentLength,
}

/// The framing of a connection: chosen by its first byte, then used both ways.
pub type Chosen = Arc<OnceLock<Framing>>;

/// One item of the inbound stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Inbound {
    /// A frame.
    Frame(Vec<u8>),
    /// A frame over the limit; it was skipped.
    TooLarge(Ends),
    /// A header without a length. The beginning of the next frame is unknown.
    BrokenHeader(String),
}

/// The beginning and the end of a frame that was skipped.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ends {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Ends {
    /// Adds the next bytes of the frame.
    fn add(&mut self, bytes: &[u8]) {
        let room = KEPT_OF_SKIPPED - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let newest = &rest[rest.len().saturating_sub(KEPT_OF_SKIPPED)..];
        self.tail.extend_from_slice(newest);
        self.tail.drain(..self.tail.len().saturating_sub(KEPT_OF_SKIPPED));
    }

    /// Whether the frame seems to be an answer to the request with this id.
    #[must_use]
    pub fn answer(&self, id: &str) -> bool {
        let quoted = format!("\"{id}\"");
        let is_after = |at: usize, end: &[u8]| {
            let before = end[..at].trim_ascii_end();
            before.strip_suffix(b":").is_some_and(|before| before.trim_ascii_end().ends_with(b"\"id\""))
        };
        let names = |end: &[u8]| memchr::memmem::find_iter(end, quoted.as_bytes()).any(|at| is_after(at, end));
        names(&self.head) || names(&self.tail)
    }
}

/// Reads frames from a stream.
pub struct FrameReader<R> {
    input: R,
    framing: Chosen,
    largest: usize,
}

impl<R: BufRead> FrameReader<R> {
    /// Reads from `input`. `framing` may be chosen already.
    pub fn new(input: R, framing: Chosen, largest: usize) -> Self {
        Self { input, framing, largest }
    }

    /// The next frame; `None` at the end of the stream.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub fn next_frame(&mut self) -> io::Result<Option<Inbound>> {
        let framing = match self.framing.get() {
            Some(framing) => *framing,
            None => match self.first_byte()? {
                None => return Ok(None),
                Some(byte) => {
                    let found = if byte.is_ascii_alphabetic() { Framing::ContentLength } else { Framing::Ndjson };
                    *self.framing.get_or_init(|| found)
                }
            },
        };
        match framing {
            Framing::Ndjson => self.line(),
            Framing::ContentLength => self.headed(),
        }
    }

    /// Skips blanks and a byte order mark. Returns the byte after them, which stays in the stream.
    fn first_byte(&mut self) -> io::Result<Option<u8>> {
        loop {
            let buffer = self.input.fill_buf()?;
            match buffer.first() {
                None => return Ok(None),
                Some(b' ' | b'\t' | b'\r' | b'\n' | 0xEF | 0xBB | 0xBF) => self.input.consume(1),
                Some(byte) => return Ok(Some(*byte)),
            }
        }
    }

    fn line(&mut self) -> io::Result<Option<Inbound>> {
        loop {
            let mut line = Vec::new();
            let limit = self.largest as u64 + 2;
            let read = self.input.by_ref().take(limit).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(None);
            }
            if line.last() == Some(&b'\n') {
                line.pop();
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
            } else if read as u64 == limit {
                let mut ends = Ends::default();
                ends.add(&line);
                self.skip_line(&mut ends)?;
                return Ok(Some(Inbound::TooLarge(ends)));
            }
            if line.len() > self.largest {
                let mut ends = Ends::default();
                ends.add(&line);
                return Ok(Some(Inbound::TooLarge(ends)));
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(Inbound::Frame(line)));
            }
        }
    }

    fn skip_line(&mut self, ends: &mut Ends) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            let (used, done) = match memchr::memchr(b'\n', buffer) {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            ends.add(&buffer[..used]);
            self.input.consume(used);
            if done {
                return Ok(());
            }
        }
    }

    fn skip(&mut self, mut length: u64) -> io::Result<Ends> {
        let mut ends = Ends::default();
        while length > 0 {
            let buffer = self.input.fill_buf()?;
            let used = buffer.len().min(usize::try_from(length).unwrap_or(usize::MAX));
            if used == 0 {
                break;
            }
            ends.add(&buffer[..used]);
            self.input.consume(used);
            length -= used as u64;
        }
        Ok(ends)
    }

    fn headed(&mut self) -> io::Result<Option<Inbound>> {
        /// Longer than any header that is one.
        const LONGEST_HEADER: u64 = 8 * 1024;
        let broken = |what: &str| Ok(Some(Inbound::BrokenHeader(what.to_owned())));
        let mut length = None;
        let mut begun = false;
        loop {
            let mut line = Vec::new();
            self.input.by_ref().take(LONGEST_HEADER).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return if begun { broken("the stream ended inside a header") } else { Ok(None) };
            }
            if line.last() != Some(&b'\n') {
                return broken("a header line has no end");
            }
            let line = String::from_utf8_lossy(&line);
            let line = line.trim();
            match line.split_once(':') {
                // Blank lines before the header are tolerated; the one after it ends it.
                None if line.is_empty() && !begun => {}
                None if line.is_empty() => break,
                None => return broken("a header line has no colon"),
                Some((name, value)) => {
                    begun = true;
                    if name.trim().eq_ignore_ascii_case("content-length") {
                        match value.trim().parse::<u64>() {
                            Ok(found) => length = Some(found),
                            Err(_) => return broken("Content-Length is not a number"),
                        }
                    }
                }
            }
        }
        let Some(length) = length else {
            return broken("a header has no Content-Length");
        };
        if length > self.largest as u64 {
            return Ok(Some(Inbound::TooLarge(self.skip(length)?)));
        }
        let mut frame = Vec::new();
        self.input.by_ref().take(length).read_to_end(&mut frame)?;
        Ok(Some(Inbound::Frame(frame)))
    }
}

/// Adds a frame to what is written next. `json` is one line.
pub fn put_frame(framing: Framing, json: &str, out: &mut Vec<u8>) {
    let escaped = escape_separators(json.as_bytes());
    let json = escaped.as_deref().unwrap_or(json.as_bytes());
    match framing {
        Framing::Ndjson => {
            out.extend_from_slice(json);
            out.push(b'\n');
        }
        Framing::ContentLength => {
            out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", json.len()).as_bytes());
            out.extend_from_slice(json);
        }
    }
}

/// A piece of a frame's JSON.
#[derive(Debug, Clone)]
pub enum Piece {
    /// A text that was made for the frame.
    Text(String),
    /// A part of a line that is kept elsewhere and shared.
    Part(Arc<str>, Range<usize>),
}

impl Piece {
    /// The text of the piece.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Part(line, range) => &line[range.clone()],
        }
    }
}

/// Writes a frame of many pieces, none of which is copied: together they may be as large as a session.
///
/// # Errors
/// When the client has closed its end.
pub fn write_pieces(framing: Framing, pieces: &[Piece], out: &mut impl Write) -> io::Result<()> {
    if framing == Framing::ContentLength {
        let length: usize = pieces.iter().map(|piece| escaped_len(piece.as_str())).sum();
        write!(out, "Content-Length: {length}\r\n\r\n")?;
    }
    for piece in pieces {
        let json = piece.as_str().as_bytes();
        out.write_all(escape_separators(json).as_deref().unwrap_or(json))?;
    }
    if framing == Framing::Ndjson { out.write_all(b"\n") } else { Ok(()) }
}

/// Length of a JSON text when it is written, in bytes.
#[must_use]
pub fn escaped_len(json: &str) -> usize {
    json.len() + 3 * separators(json.as_bytes()).count()
}

/// The places of U+2028 and U+2029, with their escapes.
fn separators(json: &[u8]) -> impl Iterator<Item = (usize, &'static [u8])> {
    const BEGINNING: &[u8] = &[0xE2, 0x80];
    memchr::memmem::find_iter(json, BEGINNING).filter_map(|at| match json.get(at + 2) {
        Some(0xA8) => Some((at, b"\\u2028".as_slice())),
        Some(0xA9) => Some((at, b"\\u2029".as_slice())),
        _ => None,
    })
}

/// U+2028 and U+2029 end a line for JavaScript. They can only stand inside strings, where they may be escaped.
fn escape_separators(json: &[u8]) -> Option<Vec<u8>> {
    let mut out: Option<Vec<u8>> = None;
    let mut copied = 0;
    for (at, escape) in separators(json) {
        let out = out.get_or_insert_with(|| Vec::with_capacity(json.len() + 16));
        out.extend_from_slice(&json[copied..at]);
        out.extend_from_slice(escape);
        copied = at + 3;
    }
    let mut out = out?;
    out.extend_from_slice(&json[copied..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads `bytes` handed over in pieces of `size`.
    fn frames(bytes: &[u8], size: usize, largest: usize) -> Vec<Inbound> {
        let input = io::BufReader::with_capacity(size, bytes);
        let mut reader = FrameReader::new(input, Chosen::default(), largest);
        let mut found = Vec::new();
        while let Some(frame) = reader.next_frame().expect("a slice can be read") {
            found.push(frame);
        }
        found
    }

    fn frame(text: &str) -> Inbound {
        Inbound::Frame(text.as_bytes().to_vec())
    }

    fn too_large(text: &str) -> Inbound {
        let mut ends = Ends::default();
        ends.add(text.as_bytes());
        Inbound::TooLarge(ends)
    }

    #[test]
    fn both_framings_are_read_however_the_bytes_arrive() {
        let lines = "\u{feff}\n  \n{\"a\":1}\r\n\n[2]\n{\"half\"".as_bytes();
        let headed = "Content-Length: 7\r\nContent-Type: x\r\n\r\n{\"a\":1}content-length:3\n\n[2]".as_bytes();
        for size in 1..headed.len() {
            assert_eq!(frames(lines, size, 99), [frame("{\"a\":1}"), frame("[2]"), frame("{\"half\"")]);
            assert_eq!(frames(headed, size, 99), [frame("{\"a\":1}"), frame("[2]")]);
        }
    }

    #[test]
    fn a_frame_over_the_limit_is_skipped_and_the_next_one_read() {
        assert_eq!(frames(b"[1111111111]\n[2]\n", 3, 5), [too_large("[1111111111]\n"), frame("[2]")]);
        assert_eq!(frames(b"[11]\n[111]\n", 3, 5), [frame("[11]"), frame("[111]")]);
        assert_eq!(
            frames(b"Content-Length: 9\r\n\r\n[1234567]Content-Length: 3\r\n\r\n[2]", 4, 5),
            [too_large("[1234567]"), frame("[2]")]
        );
    }

    #[test]
    fn a_skipped_answer_is_told_by_its_id_at_either_end() {
        let text = "x".repeat(2_000);
        for (frame, is_answer) in [
            (format!(r#"{{"jsonrpc":"2.0","id": "srv-7","result":"{text}"}}"#), true),
            (format!(r#"{{"jsonrpc":"2.0","result":"{text}","id" :"srv-7"}}"#), true),
            (format!(r#"{{"jsonrpc":"2.0","id":"srv-71","result":"{text}"}}"#), false),
            (format!(r#"{{"jsonrpc":"2.0","id":"a","method":"srv-7","params":"{text}"}}"#), false),
            (format!(r#"{{"jsonrpc":"2.0","id":"a","params":"{text} "id":"srv-7" {text}"}}"#), false),
        ] {
            let mut ends = Ends::default();
            frame.as_bytes().chunks(100).for_each(|piece| ends.add(piece));
            assert_eq!(ends.answer("srv-7"), is_answer, "{}", &frame[..40]);
            assert!(ends.head.len() == KEPT_OF_SKIPPED && ends.tail.len() == KEPT_OF_SKIPPED);
        }
    }

    #[test]
    fn a_broken_header_is_told() {
        for bytes in ["Content-Length: many\r\n\r\n", "hello\n", "Content-Type: x\r\n\r\n", "Content-Length: 3\r\n"] {
            assert!(matches!(frames(bytes.as_bytes(), 8, 99)[0], Inbound::BrokenHeader(_)), "{bytes}");
        }
    }

    #[test]
    fn line_separators_are_escaped_on_the_way_out() {
        let mut out = Vec::new();
        put_frame(Framing::Ndjson, "\"a\u{2028}b\u{2029}—\"", &mut out);
        assert_eq!(String::from_utf8(out).expect("text"), "\"a\\u2028b\\u2029—\"\n");
    }
}
