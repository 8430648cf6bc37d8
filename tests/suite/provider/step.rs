//! A step of the script: an answer or a fault, and the way in which it is sent.

use super::faults::Trouble;
use std::time::Duration;

/// One request's fate. Every step can be used with every format; what a format has no place for, it leaves out.
#[derive(Debug, Clone)]
pub struct Step {
    pub what: What,
    pub manner: Manner,
}

#[derive(Debug, Clone)]
pub enum What {
    Answer(Answer),
    /// An error of HTTP, with the provider's own body unless one is given.
    Status {
        code: Option<u16>,
        trouble: Trouble,
        body: Option<String>,
    },
    /// Nothing, ever.
    Hang,
}

/// Content of an answer.
#[derive(Debug, Clone)]
pub struct Answer {
    pub parts: Vec<Part>,
    pub stop: Option<Stop>,
    /// Counted from the texts unless given.
    pub usage: Option<Usage>,
    pub usage_left_out: bool,
    pub numbers_as_strings: bool,
}

#[derive(Debug, Clone)]
pub enum Part {
    /// The signature is Anthropic's signature, the encrypted content of a Responses item, and the thought signature of
    /// Google's next part.
    Thinking {
        text: String,
        signature: String,
    },
    /// Thinking nobody may read.
    Redacted(String),
    Text(String),
    Call {
        name: String,
        args: serde_json::Value,
    },
    /// A block of Anthropic's format that comes whole.
    Block(serde_json::Value),
}

/// Why the model stopped; without one it had said everything, or called a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    End,
    ToolUse,
    Length,
    /// The window was full: Anthropic has a reason for it, the others call it length.
    Window,
    /// The model did not want to. Google blocks the prompt instead.
    Refusal,
    /// A filter cut in.
    Safety,
    /// Anthropic compacted the conversation. The usage is that of the compaction.
    Compaction,
}

/// As Anthropic counts: `input` is what neither came from the cache nor went into it. The other formats report the sum
/// of the three as their prompt. Thinking is part of `output`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl Usage {
    pub fn prompt(&self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }
}

/// How it goes over the wire.
#[derive(Debug, Clone)]
pub struct Manner {
    pub headers: Vec<(String, String)>,
    pub json: bool,
    pub pieces: usize,
    pub drip: Duration,
    pub torn: bool,
    pub malformed: bool,
    pub trouble: Option<Trouble>,
    pub end: End,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Whole,
    /// In the middle of the event after so many, or of a body that is sent whole.
    Cut(usize),
    /// Nothing comes after so many.
    Hang(usize),
    /// In order, but the model's end and its usage never came.
    Unfinished,
    /// In order, but without the mark of the end: `message_stop`, `[DONE]`, `response.completed`.
    Unmarked,
    Never,
}

impl Step {
    /// The model says this.
    pub fn answer(text: &str) -> Self {
        Self::parts(vec![Part::Text(text.to_owned())])
    }

    /// Well-formed, and nothing in it.
    pub fn empty() -> Self {
        Self::parts(Vec::new())
    }

    /// Thinks and then says nothing.
    pub fn only_thinking() -> Self {
        Self::empty().thinking("Let me think about that.", "c2lnbmF0dXJl")
    }

    /// Calls a tool and says nothing.
    pub fn call(name: &str, args: serde_json::Value) -> Self {
        Self::empty().tool_call(name, args)
    }

    /// The block of Anthropic's compaction.
    pub fn compaction(block: serde_json::Value) -> Self {
        Self::parts(vec![Part::Block(block)]).stop(Stop::Compaction)
    }

    /// An item of OpenAI's Responses that is no message.
    pub fn item(item: serde_json::Value) -> Self {
        Self::parts(vec![Part::Block(item)])
    }

    fn parts(parts: Vec<Part>) -> Self {
        let answer = Answer { parts, stop: None, usage: None, usage_left_out: false, numbers_as_strings: false };
        Self::new(What::Answer(answer))
    }

    fn new(what: What) -> Self {
        let manner = Manner {
            headers: Vec::new(),
            json: false,
            pieces: 2,
            drip: Duration::ZERO,
            torn: false,
            malformed: false,
            trouble: None,
            end: End::Whole,
        };
        Self { what, manner }
    }

    /// Takes the request and never answers.
    pub fn hang() -> Self {
        Self::new(What::Hang)
    }

    /// Says the same word for ever, every five milliseconds.
    pub fn endless() -> Self {
        let mut step = Self::answer("again ").drip(5);
        step.manner.end = End::Never;
        step
    }

    /// An HTTP status, with the body this provider gives it.
    pub fn status(code: u16) -> Self {
        Self::new(What::Status { code: Some(code), trouble: Trouble::of(code), body: None })
    }

    /// The provider's response to this trouble, with the status it has there.
    pub fn trouble(trouble: Trouble) -> Self {
        Self::new(What::Status { code: None, trouble, body: None })
    }

    pub fn rate_limited(retry_after_seconds: u64) -> Self {
        Self::trouble(Trouble::RateLimited).header("retry-after", &retry_after_seconds.to_string())
    }

    pub fn overloaded() -> Self {
        Self::trouble(Trouble::Overloaded)
    }

    pub fn server_error() -> Self {
        Self::trouble(Trouble::Server)
    }

    pub fn overflow() -> Self {
        Self::trouble(Trouble::Overflow)
    }

    pub fn unauthorized() -> Self {
        Self::trouble(Trouble::Unauthorized)
    }

    pub fn model_not_found() -> Self {
        Self::trouble(Trouble::ModelNotFound)
    }

    pub fn insufficient_quota() -> Self {
        Self::trouble(Trouble::Quota)
    }

    /// The page of something in between that is no provider.
    pub fn html_proxy(code: u16) -> Self {
        let page = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head>\n<body><h1>Sign in to the network</h1></body></html>\n";
        Self::status(code).header("content-type", "text/html; charset=utf-8").body(page)
    }

    /// 200 OK with the body of an error.
    pub fn error_in_200(trouble: Trouble) -> Self {
        Self::new(What::Status { code: Some(200), trouble, body: None })
    }

    /// Thinks before it says anything.
    pub fn thinking(self, text: &str, signature: &str) -> Self {
        self.thought(Part::Thinking { text: text.to_owned(), signature: signature.to_owned() })
    }

    /// Thinks what nobody may read: redacted thinking, an encrypted reasoning item, a thought signature.
    pub fn redacted(self, data: &str) -> Self {
        self.thought(Part::Redacted(data.to_owned()))
    }

    fn thought(self, part: Part) -> Self {
        self.with(|answer| {
            let thought = |part: &Part| matches!(part, Part::Thinking { .. } | Part::Redacted(_));
            let at = answer.parts.iter().position(|part| !thought(part)).unwrap_or(answer.parts.len());
            answer.parts.insert(at, part);
        })
    }

    /// Says something more.
    pub fn text(self, text: &str) -> Self {
        self.with(|answer| answer.parts.push(Part::Text(text.to_owned())))
    }

    /// Calls a tool after what it said.
    pub fn tool_call(self, name: &str, args: serde_json::Value) -> Self {
        self.with(|answer| answer.parts.push(Part::Call { name: name.to_owned(), args }))
    }

    pub fn stop(self, stop: Stop) -> Self {
        self.with(|answer| answer.stop = Some(stop))
    }

    pub fn usage(self, input: u64, output: u64, cache_read: u64, cache_write: u64) -> Self {
        self.with(|answer| answer.usage = Some(Usage { input, output, cache_read, cache_write }))
    }

    /// Some servers count nothing.
    pub fn without_usage(self) -> Self {
        self.with(|answer| answer.usage_left_out = true)
    }

    /// Some gateways write `"12"` for 12.
    pub fn numbers_as_strings(self) -> Self {
        self.with(|answer| answer.numbers_as_strings = true)
    }

    fn with(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        match &mut self.what {
            What::Answer(answer) => change(answer),
            other => panic!("only an answer has this, not {other:?}"),
        }
        self
    }

    /// A header of the response; it replaces one of the same name.
    pub fn header(self, name: &str, value: &str) -> Self {
        self.mannered(|manner| manner.headers.push((name.to_ascii_lowercase(), value.to_owned())))
    }

    /// The body of a status.
    pub fn body(mut self, text: &str) -> Self {
        match &mut self.what {
            What::Status { body, .. } => *body = Some(text.to_owned()),
            other => panic!("only a status has a body of its own, not {other:?}"),
        }
        self
    }

    /// One JSON body although a stream was asked for.
    pub fn json(self) -> Self {
        self.mannered(|manner| manner.json = true)
    }

    /// Every text, thought and argument comes in so many deltas.
    pub fn pieces(self, count: usize) -> Self {
        self.mannered(|manner| manner.pieces = count.max(1))
    }

    /// A pause between the events.
    pub fn drip(self, millis: u64) -> Self {
        self.mannered(|manner| manner.drip = Duration::from_millis(millis))
    }

    /// Writes that cut characters and events in the middle, CRLF at the ends of lines, comments between the events and
    /// data of several lines.
    pub fn split_utf8(self) -> Self {
        self.mannered(|manner| manner.torn = true)
    }

    /// One event in the middle that is no JSON.
    pub fn malformed_event(self) -> Self {
        self.mannered(|manner| manner.malformed = true)
    }

    /// An error comes in the stream after the first delta, or at once if there is none; nothing comes after it.
    pub fn error_in_stream(self, trouble: Trouble) -> Self {
        self.mannered(|manner| manner.trouble = Some(trouble))
    }

    /// The connection is closed in the middle of the event after so many, or of a body that is sent whole.
    pub fn cut_after(self, events: usize) -> Self {
        self.mannered(|manner| manner.end = End::Cut(events))
    }

    /// Nothing comes after so many events, and the connection stays.
    pub fn hang_after(self, events: usize) -> Self {
        self.mannered(|manner| manner.end = End::Hang(events))
    }

    /// The stream ends in order although the model did not: no stop reason, no usage, no mark of the end.
    pub fn ends_clean_without_end_event(self) -> Self {
        self.mannered(|manner| manner.end = End::Unfinished)
    }

    /// The model ended and only the mark of the end is not there.
    pub fn without_last_event(self) -> Self {
        self.mannered(|manner| manner.end = End::Unmarked)
    }

    fn mannered(mut self, change: impl FnOnce(&mut Manner)) -> Self {
        change(&mut self.manner);
        self
    }
}
