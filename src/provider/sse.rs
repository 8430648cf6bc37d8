//! Server-sent events out of bytes that come in any pieces: characters, lines and events may be cut anywhere.
//! The format is that of the HTML standard; ids and retry times mean nothing here and are skipped.

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Its lines of data, joined by newlines.
    pub data: String,
}

/// Events so far.
#[derive(Debug, Default)]
pub struct Parser {
    /// The line that has not ended.
    line: Vec<u8>,
    name: Option<String>,
    data: Option<String>,
    /// The last line ended with CR: an LF right after it belongs to it.
    after_cr: bool,
}

/// No event of a model is larger, in bytes; what claims to be would only fill the memory.
pub const LARGEST_EVENT: usize = 16 * 1024 * 1024;

/// An event grew over `LARGEST_EVENT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

impl Parser {
    /// Takes the next bytes and gives the events that end in them.
    ///
    /// # Errors
    /// When an event is larger than any can be.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLarge> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.line.extend_from_slice(rest);
                break;
            };
            self.line.extend_from_slice(&rest[..end]);
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            events.extend(self.line_ended());
        }
        let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
        if held > LARGEST_EVENT { Err(TooLarge) } else { Ok(events) }
    }

    /// Whether an event has begun and not ended: the stream was cut.
    #[must_use]
    pub fn in_event(&self) -> bool {
        self.data.is_some() || !self.line.is_empty()
    }

    fn line_ended(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let name = self.name.take();
            return self.data.take().map(|data| Event { name, data });
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_start_matches('\u{feff}');
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.name = Some(value.to_owned()),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(pieces: &[&[u8]]) -> Vec<(Option<String>, String)> {
        let mut parser = Parser::default();
        let events = pieces.iter().flat_map(|piece| parser.push(piece).expect("small"));
        events.map(|event| (event.name, event.data)).collect()
    }

    const STREAM: &str = "\u{feff}: hello\r\nevent: a\r\ndata: {\"x\":\r\ndata:  \"é–🦀\"}\r\n\r\n: ping\n\ndata\n\nid: 7\ndata: [DONE]\n\ndata: cut";

    #[test]
    fn comments_names_and_lines_of_data() {
        let expected = [
            (Some("a".to_owned()), "{\"x\":\n \"é–🦀\"}".to_owned()),
            (None, String::new()),
            (None, "[DONE]".to_owned()),
        ];
        assert_eq!(parse(&[STREAM.as_bytes()]), expected);
    }

    #[test]
    fn an_event_without_an_end_is_held_and_known() {
        let mut parser = Parser::default();
        assert!(!parser.in_event());
        parser.push(STREAM.as_bytes()).expect("small");
        assert!(parser.in_event());
    }

    #[test]
    fn an_event_that_never_ends_is_refused() {
        let mut parser = Parser::default();
        let line = format!("data: {}\n", "x".repeat(1 << 20));
        let refused = (0..20).any(|_| parser.push(line.as_bytes()).is_err());
        assert!(refused);
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(cuts in proptest::collection::vec(0..STREAM.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&STREAM.as_bytes()[from..cut]);
                from = cut;
            }
            pieces.push(&STREAM.as_bytes()[from..]);
            prop_assert_eq!(parse(&pieces), parse(&[STREAM.as_bytes()]));
        }
    }
}
