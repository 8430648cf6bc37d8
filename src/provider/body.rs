//! The body of an answer on its way in: events or one piece, the limits it must keep to, and whether it goes on.

use super::{Answer, Api, Delta, Request, Trouble, TroubleKind, codec, sse};
use crate::conversation::message::Usage;
use std::time::Duration;

/// A body on its way in.
pub struct Body {
    decoder: codec::Decoder,
    events: sse::Parser,
    limit: Limit,
    form: Form,
    /// The body so far, where it is one piece or its form is unclear; without the blanks before it.
    whole: Vec<u8>,
    /// The part whose pieces were told last.
    part: Option<usize>,
}

/// The worth of some bytes of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// More of the answer came.
    Progress,
    /// Only blanks, comments, pings and events without text came: a server that is alive, and an answer that does not
    /// go on.
    KeepAlive,
}

/// The form of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Events,
    Whole,
    Unclear,
}

impl Body {
    /// The body of an answer to `request` with this `content-type`, in lower case.
    #[must_use]
    pub fn new(api: Api, request: &Request, content_type: &str) -> Self {
        Self {
            decoder: codec::Decoder::new(api),
            events: sse::Parser::default(),
            limit: Limit::of(request),
            form: if content_type.contains("event-stream") { Form::Events } else { Form::Unclear },
            whole: Vec::new(),
            part: None,
        }
    }

    /// Takes the next bytes and reports the pieces of the answer in them.
    ///
    /// # Errors
    /// When they are an error, no part of an answer, or too many.
    pub fn take(&mut self, bytes: &[u8], told: &mut (dyn FnMut(&Delta) + Send)) -> Result<Worth, Trouble> {
        self.limit.bytes(bytes.len())?;
        if self.form == Form::Events {
            return self.take_events(bytes, told);
        }
        // Blanks before a body are not kept: its form is found in its first bytes, however many blanks come.
        let more = if self.whole.is_empty() { bytes.trim_ascii_start() } else { bytes };
        self.whole.extend_from_slice(more);
        if self.form == Form::Unclear {
            self.form = form_of(&self.whole);
        }
        match self.form {
            Form::Events => {
                let bytes = std::mem::take(&mut self.whole);
                self.take_events(&bytes, told)
            }
            Form::Whole | Form::Unclear if more.iter().all(u8::is_ascii_whitespace) => Ok(Worth::KeepAlive),
            Form::Whole | Form::Unclear => Ok(Worth::Progress),
        }
    }

    fn take_events(&mut self, bytes: &[u8], told: &mut (dyn FnMut(&Delta) + Send)) -> Result<Worth, Trouble> {
        let too_large = |_| Trouble::new(TroubleKind::Garbled, "an event of its stream has no end");
        let mut worth = Worth::KeepAlive;
        for event in self.events.push(bytes).map_err(too_large)? {
            // Nothing is read after the last event, whether it came with the same bytes or not.
            if self.over() {
                break;
            }
            for delta in self.decoder.event(&event)? {
                self.limit.delta(&delta)?;
                if let Delta::Text(text) | Delta::Thinking(text) | Delta::Call(text) = &delta
                    && !text.trim().is_empty()
                {
                    worth = Worth::Progress;
                }
                let part = self.decoder.part();
                if self.part != Some(part) {
                    self.part = Some(part);
                    told(&Delta::Part(part));
                }
                told(&delta);
            }
        }
        Ok(worth)
    }

    /// The tokens that were reported so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.decoder.usage()
    }

    /// Whether the last event came.
    #[must_use]
    pub fn over(&self) -> bool {
        self.decoder.over()
    }

    /// Whether the model has ended its answer. Only its tokens may follow.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.decoder.has_ended()
    }

    /// The answer, when no more bytes come. `page` is the trouble of a text that is a page for people.
    ///
    /// # Errors
    /// When its end did not come, or it is no answer.
    pub fn finish(mut self, page: impl FnOnce(&str) -> Option<Trouble>) -> Result<Answer, Trouble> {
        if self.form != Form::Events {
            let text = String::from_utf8_lossy(&self.whole);
            if let Some(trouble) = page(&text) {
                return Err(trouble);
            }
            self.decoder.whole(&text)?;
        }
        self.decoder.finish()
    }
}

/// The time that an answer has to go on. One rule for every body: only more of the answer counts. Times are counted from
/// the beginning of the body.
pub(super) struct Progress {
    stall: Duration,
    since: Duration,
    /// Bytes came since then that are not more of the answer.
    alive: bool,
}

impl Progress {
    /// An answer that must go on within `stall`.
    pub(super) fn new(stall: Duration) -> Self {
        Self { stall, since: Duration::ZERO, alive: false }
    }

    /// The end of its time.
    pub(super) fn until(&self) -> Duration {
        self.since + self.stall
    }

    /// Some bytes came.
    ///
    /// # Errors
    /// When its time was over before.
    pub(super) fn came(&mut self, worth: Worth, now: Duration) -> Result<(), Trouble> {
        match worth {
            Worth::Progress => (self.since, self.alive) = (now, false),
            Worth::KeepAlive if now >= self.until() => return Err(self.over()),
            Worth::KeepAlive => self.alive = true,
        }
        Ok(())
    }

    /// The trouble when its time is over.
    pub(super) fn over(&self) -> Trouble {
        let seconds = self.stall.as_secs();
        let what = if self.alive { "keep-alives and no more of the answer" } else { "nothing" };
        Trouble::new(TroubleKind::Stalled, format!("{what} came for {seconds} s"))
    }
}

/// Some servers send events and call them something else.
fn form_of(start: &[u8]) -> Form {
    const FIELDS: [&[u8]; 5] = [b"data:", b"event:", b":", b"id:", b"retry:"];
    let start = start.trim_ascii_start();
    match () {
        () if FIELDS.iter().any(|field| start.starts_with(field)) => Form::Events,
        () if FIELDS.iter().any(|field| field.starts_with(start)) => Form::Unclear,
        () => Form::Whole,
    }
}

/// The size that no useful answer exceeds. A larger answer would not end by itself.
struct Limit {
    most_bytes: u64,
    bytes: u64,
    most_text: u64,
    text: u64,
}

impl Limit {
    fn of(request: &Request) -> Self {
        /// No token has more bytes on the wire, with everything around it,
        const BYTES_OF_A_TOKEN: u64 = 2_048;
        /// and no text has more on an average. Thinking is not counted everywhere.
        const TEXT_OF_A_TOKEN: u64 = 32;
        let tokens = request.max_tokens.unwrap_or(64_000);
        Self {
            most_bytes: tokens.max(1_024).saturating_mul(BYTES_OF_A_TOKEN),
            bytes: 0,
            most_text: tokens.saturating_mul(TEXT_OF_A_TOKEN),
            text: 0,
        }
    }

    fn bytes(&mut self, more: usize) -> Result<(), Trouble> {
        self.bytes += more as u64;
        if self.bytes > self.most_bytes { Err(endless(self.bytes)) } else { Ok(()) }
    }

    fn delta(&mut self, delta: &Delta) -> Result<(), Trouble> {
        if let Delta::Text(text) | Delta::Call(text) = delta {
            self.text += text.len() as u64;
        }
        if self.text > self.most_text { Err(endless(self.text)) } else { Ok(()) }
    }
}

/// The trouble of an answer that is longer than any useful one.
pub(super) fn endless(bytes: u64) -> Trouble {
    Trouble::new(TroubleKind::Endless, format!("{bytes} bytes came and no end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_known_by_their_beginning() {
        for start in ["data: x", "event: x", "\n: ping", "id:1", "retry: 7"] {
            assert_eq!(form_of(start.as_bytes()), Form::Events, "{start}");
        }
        for start in ["", "\r\n", "d", "ev", "retry"] {
            assert_eq!(form_of(start.as_bytes()), Form::Unclear, "{start}");
        }
        for start in ["{", "<html>", "dat:", "[1"] {
            assert_eq!(form_of(start.as_bytes()), Form::Whole, "{start}");
        }
    }

    fn chat(content_type: &str) -> Body {
        Body::new(Api::OpenaiChat, &Request::default(), content_type)
    }

    /// An event of a chat with this text.
    fn event(text: &str) -> String {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text:?}}}}}]}}\n\n")
    }

    #[test]
    fn only_more_of_the_answer_is_progress() {
        use Worth::{KeepAlive, Progress};
        let rows = [
            ("text/event-stream", " ".to_owned(), KeepAlive),
            ("text/event-stream", "\n\n".to_owned(), KeepAlive),
            ("text/event-stream", ": ping\n\n".to_owned(), KeepAlive),
            ("text/event-stream", "data:\n".to_owned(), KeepAlive),
            ("text/event-stream", "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n".to_owned(), KeepAlive),
            ("text/event-stream", event(""), KeepAlive),
            ("text/event-stream", event(" \n"), KeepAlive),
            ("text/event-stream", event("x"), Progress),
            ("", event(" "), KeepAlive),
            ("", event("x"), Progress),
            ("application/json", " \t\r\n".to_owned(), KeepAlive),
            ("application/json", "{".to_owned(), Progress),
            ("application/json", "  d".to_owned(), Progress),
        ];
        for (content_type, bytes, expected) in rows {
            let took = chat(content_type).take(bytes.as_bytes(), &mut |_| {}).expect("a part of an answer");
            assert_eq!(took, expected, "{content_type}: {bytes:?}");
        }
        let mut body = chat("application/json");
        body.take(b"{\"choices\":", &mut |_| {}).expect("a part of an answer");
        assert_eq!(body.take(b"      ", &mut |_| {}).expect("blanks"), KeepAlive);
    }

    #[test]
    fn an_answer_that_does_not_go_on_is_given_up_whatever_keeps_it_alive() {
        let second = Duration::from_secs(1);
        let mut progress = Progress::new(10 * second);
        for at in 1..10 {
            progress.came(Worth::KeepAlive, at * second).expect("in time");
        }
        assert_eq!(progress.until(), 10 * second);
        let over = progress.came(Worth::KeepAlive, 10 * second).expect_err("too late");
        assert_eq!(
            (over.kind, over.said.as_str()),
            (TroubleKind::Stalled, "keep-alives and no more of the answer came for 10 s")
        );
        progress.came(Worth::Progress, 11 * second).expect("it came");
        assert_eq!(progress.until(), 21 * second);
        assert_eq!(progress.over().said, "nothing came for 10 s");
    }

    /// Bytes that were looked at are not looked at again, so the work grows with the bytes alone.
    #[test]
    fn blanks_before_a_body_are_not_kept() {
        let mut body = chat("application/json");
        let blanks = [b' '; 1 << 10];
        for _ in 0..(8 << 10) {
            body.take(&blanks, &mut |_| {}).expect("blanks");
        }
        assert_eq!((body.form, body.whole.len()), (Form::Unclear, 0));
        let answer = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}"#;
        body.take(answer.as_bytes(), &mut |_| {}).expect("an answer");
        assert_eq!(body.finish(|_| None).expect("an answer").text(), "x");
    }

    #[test]
    fn nothing_counts_behind_the_last_event_however_the_bytes_arrive() {
        let stop = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
        let late = "data: {\"error\":{\"message\":\"late\"}}\n\n";
        let stream = [event("x"), stop.to_owned(), "data: [DONE]\n\n".to_owned(), late.to_owned()];
        for pieces in [vec![stream.concat()], stream.to_vec()] {
            let mut body = chat("text/event-stream");
            for piece in pieces {
                if !body.over() {
                    body.take(piece.as_bytes(), &mut |_| {}).expect("a part of an answer");
                }
            }
            assert_eq!(body.finish(|_| None).expect("an answer").text(), "x");
        }
    }
}
