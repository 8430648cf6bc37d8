//! Characters that a stream cuts in two. JSON writes a character such as an emoji as a pair of escapes; a server that
//! streams UTF-16 code units may send one half in an event and the other in the next. Neither event is JSON for a reader
//! of UTF-8.

use super::sse::Event;
use std::{borrow::Cow, collections::HashMap};

/// Stands for half of a character whose other half did not come.
const LOST: &str = "\\ufffd";

/// The halves that wait for the next event.
#[derive(Debug, Default)]
pub(super) struct Halves {
    /// First halves as they were escaped, by the key of the text that they end.
    waiting: HashMap<String, String>,
}

impl Halves {
    /// The event with whole characters: a first half at the end of a text waits for the next text of the same key.
    pub(super) fn joined<'a>(&mut self, event: &'a Event) -> Cow<'a, Event> {
        if self.waiting.is_empty() && !may_have_halves(&event.data) {
            return Cow::Borrowed(event);
        }
        Cow::Owned(Event { name: event.name.clone(), data: self.join(&event.data) })
    }

    /// A whole body. A first half at the end of a text is left out: its other half will not come.
    pub(super) fn whole(body: &str) -> Cow<'_, str> {
        if !may_have_halves(body) {
            return Cow::Borrowed(body);
        }
        Cow::Owned(Self::default().join(body))
    }

    fn join(&mut self, json: &str) -> String {
        let mut out = String::with_capacity(json.len() + 16);
        let mut key = "";
        let mut rest = json;
        while let Some(quote) = rest.find('"') {
            out.push_str(&rest[..=quote]);
            rest = &rest[quote + 1..];
            let end = end_of_text(rest);
            let text = &rest[..end];
            let after = rest.get(end + 1..).unwrap_or_default();
            if after.trim_start().starts_with(':') {
                key = text;
                out.push_str(text);
            } else {
                self.text(key, text, &mut out);
            }
            rest = &rest[end..];
            if let Some(after) = rest.strip_prefix('"') {
                out.push('"');
                rest = after;
            }
        }
        out.push_str(rest);
        out
    }

    /// One text of this key, between its quotes.
    fn text(&mut self, key: &str, text: &str, out: &mut String) {
        let waited = self.waiting.remove(key);
        // An empty text brings no other half; the next one may.
        if text.is_empty() {
            self.waiting.extend(waited.map(|half| (key.to_owned(), half)));
            return;
        }
        let mut at = 0;
        if let Some(first) = waited {
            out.push_str(if matches!(unit(text, 0), Some(0xDC00..=0xDFFF)) { &first } else { LOST });
            if matches!(unit(text, 0), Some(0xDC00..=0xDFFF)) {
                out.push_str(&text[..6]);
                at = 6;
            }
        }
        while let Some(found) = text[at..].find('\\') {
            out.push_str(&text[at..at + found]);
            at += found;
            let length = match unit(text, at) {
                Some(0xD800..=0xDBFF) if matches!(unit(text, at + 6), Some(0xDC00..=0xDFFF)) => 12,
                Some(0xD800..=0xDBFF) if at + 6 == text.len() => {
                    self.waiting.insert(key.to_owned(), text[at..].to_owned());
                    return;
                }
                Some(0xD800..=0xDFFF) => {
                    out.push_str(LOST);
                    at += 6;
                    continue;
                }
                Some(_) => 6,
                // Any other escape is two characters; the second may be a backslash.
                None => text[at..].chars().take(2).map(char::len_utf8).sum(),
            };
            out.push_str(&text[at..at + length]);
            at += length;
        }
        out.push_str(&text[at..]);
    }
}

fn may_have_halves(json: &str) -> bool {
    [b"\\ud", b"\\uD"].iter().any(|escape| memchr::memmem::find(json.as_bytes(), *escape).is_some())
}

/// The UTF-16 code unit that is escaped at `at`.
fn unit(text: &str, at: usize) -> Option<u16> {
    u16::from_str_radix(text.get(at..at + 6)?.strip_prefix("\\u")?, 16).ok()
}

/// The end of a text that begins after its quote.
fn end_of_text(text: &str) -> usize {
    let mut at = 0;
    while let Some(found) = memchr::memchr2(b'"', b'\\', &text.as_bytes()[at..]) {
        at += found;
        match text.as_bytes()[at] {
            b'"' => return at,
            _ => at += 2,
        }
        if at >= text.len() {
            break;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Api, codec, sse};

    fn joined(events: &[&str]) -> Vec<String> {
        let mut halves = Halves::default();
        let event = |data: &&str| Event { name: None, data: (*data).to_owned() };
        events.iter().map(|data| halves.joined(&event(data)).data.clone()).collect()
    }

    #[test]
    fn halves_find_each_other_by_their_key() {
        let rows: [(&[&str], &[&str]); 9] = [
            (&[r#"{"t":"a\ud83d"}"#, r#"{"t":"\ude00b"}"#], &[r#"{"t":"a"}"#, r#"{"t":"\ud83d\ude00b"}"#]),
            (
                &[r#"{"t":"\uD83D"}"#, r#"{"t":""}"#, r#"{"t":"\uDE00"}"#],
                &[r#"{"t":""}"#, r#"{"t":""}"#, r#"{"t":"\uD83D\uDE00"}"#],
            ),
            (
                &[r#"{"t":"\ud83d","u":"\ud83e"}"#, r#"{"u":"\udd80","t":"\ude00"}"#],
                &[r#"{"t":"","u":""}"#, r#"{"u":"\ud83e\udd80","t":"\ud83d\ude00"}"#],
            ),
            (&[r#"{"t":"\ud83d"}"#, r#"{"t":"x"}"#], &[r#"{"t":""}"#, r#"{"t":"\ufffdx"}"#]),
            (&[r#"{"t":"\ud83dx\ude00"}"#], &[r#"{"t":"\ufffdx\ufffd"}"#]),
            (&[r#"{"t":"\ud83d\ud83d"}"#, r#"{"t":"\ude00"}"#], &[r#"{"t":"\ufffd"}"#, r#"{"t":"\ud83d\ude00"}"#]),
            (&[r#"{"t":"\ud83d\ude00 \\ud83d"}"#], &[r#"{"t":"\ud83d\ude00 \\ud83d"}"#]),
            (&[r#"["\ud83d", "\\"]"#], &[r#"["", "\ufffd\\"]"#]),
            (&[r#"{"t": "\ud83d"#], &[r#"{"t": ""#]),
        ];
        for (events, expected) in rows {
            assert_eq!(joined(events), expected, "{events:?}");
        }
    }

    /// An emoji as two halves in two deltas, in each format.
    #[test]
    fn an_answer_with_a_character_in_two_deltas_is_whole() {
        let chat =
            |text: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
        let anthropic = |text: &str| {
            format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
            )
        };
        let google = |text: &str| {
            format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}}}}]}}\n\n")
        };
        let responses = |text: &str| {
            format!(
                "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":\"{text}\"}}\n\n"
            )
        };
        type DeltaOf<'a> = &'a dyn Fn(&str) -> String;
        let formats: [(Api, DeltaOf<'_>); 4] = [
            (Api::OpenaiChat, &chat),
            (Api::Anthropic, &anthropic),
            (Api::Google, &google),
            (Api::OpenaiResponses, &responses),
        ];
        for (api, delta) in formats {
            let start = match api {
                Api::Anthropic => {
                    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
                }
                _ => "",
            };
            let stream = start.to_owned() + &delta("so \\ud83d") + &delta("\\ude00 it is");
            let mut decoder = codec::Decoder::new(api);
            let mut told = String::new();
            for event in sse::Parser::default().push(stream.as_bytes()).expect("small") {
                for delta in decoder.event(&event).unwrap_or_else(|trouble| panic!("{api:?}: {trouble}")) {
                    let crate::provider::Delta::Text(text) = delta else { panic!("{delta:?}") };
                    told.push_str(&text);
                }
            }
            assert_eq!(told, "so 😀 it is", "{api:?}");
        }
    }
}
