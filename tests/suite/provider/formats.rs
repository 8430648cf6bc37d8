//! The form of an answer in each wire format, as a stream of events and as one body.

mod anthropic;
mod chat;
mod google;
mod responses;

use super::{
    Format,
    step::{Answer, Part, Stop, Usage},
};
use serde_json::{Value, json};

/// One event of a stream.
#[derive(Debug, Clone)]
pub struct Event {
    pub name: Option<String>,
    pub data: Data,
    pub place: Place,
}

#[derive(Debug, Clone)]
pub enum Data {
    Json(Value),
    /// A line that is not JSON, such as `[DONE]`.
    Raw(String),
}

/// Role of an event, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Frame,
    /// A piece of text or of thinking.
    Delta,
    /// The model's end: why it stopped, what it used, and the mark of the end.
    End,
}

impl Event {
    pub fn data(data: Value) -> Self {
        Self { name: None, data: Data::Json(data), place: Place::Frame }
    }

    pub fn named(name: &str, data: Value) -> Self {
        Self { name: Some(name.to_owned()), ..Self::data(data) }
    }

    /// An event that is called what its data says it is.
    pub fn typed(data: Value) -> Self {
        let name = data["type"].as_str().expect("a type").to_owned();
        Self::named(&name, data)
    }

    pub fn raw(text: &str) -> Self {
        Self { name: None, data: Data::Raw(text.to_owned()), place: Place::Frame }
    }

    pub fn at(mut self, place: Place) -> Self {
        self.place = place;
        self
    }
}

/// An answer to one request.
pub struct Turn<'a> {
    /// Which request it answers, from 1: ids are made of it.
    pub number: usize,
    pub model: &'a str,
    pub answer: &'a Answer,
    pub usage: Usage,
    pub pieces: usize,
    /// Whether a stream was asked to end with its usage (Chat Completions).
    pub include_usage: bool,
}

impl Turn<'_> {
    pub fn id(&self, prefix: &str) -> String {
        format!("{prefix}{:06}", self.number)
    }

    /// The id of a call or an item, which is one of several.
    pub fn nth_id(&self, prefix: &str, at: usize) -> String {
        format!("{prefix}{:06}_{at}", self.number)
    }

    pub fn stop(&self) -> Stop {
        let calls = self.answer.parts.iter().any(|part| matches!(part, Part::Call { .. }));
        self.answer.stop.unwrap_or(if calls { Stop::ToolUse } else { Stop::End })
    }

    /// The text, cut into pieces between characters.
    pub fn cut<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let each = text.chars().count().div_ceil(self.pieces).max(1);
        let mut starts: Vec<usize> = text.char_indices().map(|(at, _)| at).step_by(each).collect();
        starts.push(text.len());
        starts.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
    }

    /// Tokens of what was thought.
    pub fn thought(&self) -> u64 {
        let thought = self.answer.parts.iter().map(|part| match part {
            Part::Thinking { text, .. } | Part::Redacted(text) => text.chars().count() as u64 / 4,
            Part::Text(_) | Part::Call { .. } | Part::Block(_) => 0,
        });
        thought.sum::<u64>().min(self.usage.output)
    }

    /// The usage as this server writes numbers; nothing where it counts nothing.
    pub fn counted(&self, mut usage: Value) -> Value {
        fn quoted(value: &mut Value) {
            match value {
                Value::Number(number) => *value = json!(number.to_string()),
                Value::Object(fields) => fields.values_mut().for_each(quoted),
                _ => {}
            }
        }
        if self.answer.numbers_as_strings {
            quoted(&mut usage);
        }
        usage
    }
}

/// The stream of an answer.
pub fn events(format: Format, turn: &Turn) -> Vec<Event> {
    match format {
        Format::Anthropic => anthropic::events(turn),
        Format::OpenAiChat => chat::events(turn),
        Format::OpenAiResponses => responses::events(turn),
        Format::Google => google::events(turn),
    }
}

/// The same answer as one body.
pub fn body(format: Format, turn: &Turn) -> Value {
    match format {
        Format::Anthropic => anthropic::body(turn),
        Format::OpenAiChat => chat::body(turn),
        Format::OpenAiResponses => responses::body(turn),
        Format::Google => google::body(turn),
    }
}

/// Result of OpenAI's compaction endpoint for a conversation.
pub fn compacted(turn: &Turn, input: &Value) -> Value {
    responses::compacted(turn, input)
}
