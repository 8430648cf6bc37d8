//! Writes a conversation as a session of another agent, which goes on with it.
//!
//! A conversation is the messages of a context in pi's form: each call has its result, and each result its call. Thinking is left out:
//! it belongs to the model and the request that it was made for.

pub mod claude_code;
pub mod codex;
pub mod opencode;

use crate::conversation::entry;
use jiff::Timestamp;
use serde_json::{Value, json};

/// A conversation that another agent goes on with.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// Its id in that agent.
    pub id: String,
    /// The working folder.
    pub cwd: String,
    /// The title.
    pub title: Option<String>,
    /// The time of the writing.
    pub now: Timestamp,
    /// The messages.
    pub messages: Vec<Value>,
}

/// A part of a message.
enum Part<'a> {
    Text(&'a str),
    Image { data: &'a str, kind: &'a str },
    Call { id: String, name: &'a str, arguments: &'a Value },
}

/// A message.
enum Said<'a> {
    User(Vec<Part<'a>>),
    Answer { parts: Vec<Part<'a>>, model: &'a str },
    Result { call: String, parts: Vec<Part<'a>>, is_error: bool },
}

/// The parts of a content: a text, or blocks.
fn parts(content: &Value) -> Vec<Part<'_>> {
    if let Some(text) = content.as_str() {
        return vec![Part::Text(text)];
    }
    content.as_array().into_iter().flatten().filter_map(part).filter(|part| !matches!(part, Part::Text(""))).collect()
}

/// A block as a part; none for thinking.
fn part(block: &Value) -> Option<Part<'_>> {
    match block["type"].as_str()? {
        "text" => Some(Part::Text(block["text"].as_str()?)),
        "image" => {
            Some(Part::Image { data: block["data"].as_str()?, kind: block["mimeType"].as_str().unwrap_or("image/png") })
        }
        "toolCall" => Some(Part::Call {
            id: call_id(block["id"].as_str()?),
            name: block["name"].as_str()?,
            arguments: &block["arguments"],
        }),
        _ => None,
    }
}

/// The id of a call in the letters that every provider takes. The id of an item of OpenAI stands after that of its call.
fn call_id(id: &str) -> String {
    let id = id.split('|').next().unwrap_or_default();
    id.chars().map(|char| if char.is_ascii_alphanumeric() || "_-".contains(char) { char } else { '_' }).collect()
}

impl Conversation {
    /// The messages with their times, RFC 3339.
    fn said(&self) -> impl Iterator<Item = (String, Said<'_>)> {
        self.messages.iter().filter_map(|message| {
            let content = parts(&message["content"]);
            let said = match message["role"].as_str()? {
                "assistant" => Said::Answer { parts: content, model: message["model"].as_str().unwrap_or("unknown") },
                "toolResult" => Said::Result {
                    call: call_id(message["toolCallId"].as_str()?),
                    parts: content,
                    is_error: message["isError"] == true,
                },
                _ => Said::User(content),
            };
            let time = message["timestamp"].as_i64().and_then(|time| Timestamp::from_millisecond(time).ok());
            Some((entry::timestamp(time.unwrap_or(self.now)), said))
        })
    }
}

/// The texts of a content on one string.
fn text(parts: &[Part<'_>]) -> String {
    let texts = parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(*text) } else { None });
    texts.collect::<Vec<_>>().join("\n")
}

/// A line of a file.
fn push(lines: &mut String, line: &Value) {
    lines.push_str(&line.to_string());
    lines.push('\n');
}

/// Text for the place of a content without any part.
fn or_empty(blocks: Vec<Value>) -> Vec<Value> {
    if blocks.is_empty() { vec![json!({ "type": "text", "text": "(empty)" })] } else { blocks }
}
