//! Messages as pi writes them, read into typed values. What a message says is here; its exact bytes stay with the
//! entry it came from, because a provider may refuse a signed block that was re-serialized.

pub mod known;
mod measure;
pub mod outline;
pub mod system;

use crate::{
    conversation::tokens,
    ids::CallId,
    text::faults::{place_and_problem, without_position},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// API, provider or model of an answer that names none. Readers of the format need a text there.
pub const NO_MODEL: &str = "unknown";

/// A message by its role.
#[derive(Debug, Clone)]
pub enum Message {
    /// A message of the user.
    User(Content),
    /// An instruction written by an agent, not by the user.
    Developer(Content),
    /// A change of system prompt and tools that pi stored as a message: its texts, and the size of the tools it adds.
    System(Content),
    /// An answer of a model.
    Assistant(Assistant),
    /// A tool result.
    ToolResult(ToolResult),
    /// A command the user ran beside the model (`bashExecution`, oh-my-pi's `pythonExecution`).
    Execution(Execution),
    /// A message of an extension (`custom`, and `hookMessage` of older files), or oh-my-pi's `fileMention`.
    Custom(Content),
    /// A summary stored as a message (`branchSummary`, `compactionSummary`).
    Summary(String),
}

/// The blocks of a message.
pub type Content = Vec<Block>;

/// One block of a message's content.
#[derive(Debug, Clone)]
pub enum Block {
    /// Plain text.
    Text(String),
    /// Reasoning. A signed one must reach its provider byte for byte or not at all.
    Thinking { text: String, signed: bool },
    /// A call of a tool.
    ToolCall(ToolCall),
    /// An image, measured and forgotten: its bytes stay in the entry.
    Image(Image),
    /// A block this version does not know; passed on untouched. The number is its size in bytes.
    Other(usize),
}

/// A call of a tool by a model.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The model's name for this call.
    pub id: CallId,
    /// The tool.
    pub name: String,
    /// The arguments, as the JSON text that stands in the file.
    pub arguments: String,
}

/// An image without its bytes.
#[derive(Debug, Clone)]
pub struct Image {
    /// For example `image/png`.
    pub mime: String,
    /// Size of the base64 text, in bytes: what it costs on the wire.
    pub wire_bytes: usize,
    /// Estimated tokens, from its dimensions.
    pub tokens: u32,
}

/// An answer of a model.
#[derive(Debug, Clone)]
pub struct Assistant {
    /// Text, thinking and calls in order.
    pub content: Content,
    /// The provider that answered, where the file says so.
    pub provider: Option<String>,
    /// The model that answered, where the file says so.
    pub model: Option<String>,
    /// Token counts that the provider reported; none where one of them is invalid.
    pub usage: Option<Usage>,
    /// The path of the count in `usage` that is no number.
    pub invalid_usage: Option<String>,
    /// The reason of its end.
    pub stop: StopReason,
}

/// The reason of an answer's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// It was done.
    Stop,
    /// The output limit was reached.
    Length,
    /// It wants tools run.
    ToolUse,
    /// The request failed.
    Error,
    /// The user, or a program, stopped it.
    Aborted,
    /// Anything else; treated as an answer.
    Other,
}

/// The provider's own count of an answer, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input that was not cached.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input read from the provider's cache.
    pub cache_read: u64,
    /// Input written to the provider's cache.
    pub cache_write: u64,
    /// The provider's total; used where the parts are all zero.
    pub total: u64,
}

impl Usage {
    /// The tokens of both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            total: self.total.saturating_add(other.total),
        }
    }
}

/// A tool result.
#[derive(Debug, Clone)]
pub struct ToolResult {
    /// The call it answers.
    pub call: CallId,
    /// The tool, where the file says so.
    pub tool: String,
    /// The content of the result.
    pub content: Content,
    /// The tool failed.
    pub is_error: bool,
    /// oh-my-pi already cut this one.
    pub pruned: bool,
}

/// A command the user ran beside the model.
#[derive(Debug, Clone)]
pub struct Execution {
    /// The command or code.
    pub command: String,
    /// The output.
    pub output: String,
    /// Its exit code, where it ended by itself.
    pub exit_code: Option<i64>,
    /// The user asked for it not to be shown to the model.
    pub excluded: bool,
}

/// The reason for which a text is not a message.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct NotAMessage {
    /// The path inside the message, such as `content[2].text`; empty for the message itself.
    pub path: String,
    /// The problem and the expected value.
    pub problem: String,
}

impl Usage {
    /// All tokens of the exchange: the size of the context right after this answer.
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        match self.input.saturating_add(self.output).saturating_add(self.cache_read).saturating_add(self.cache_write) {
            0 => self.total,
            sum => sum,
        }
    }
}

impl Usage {
    /// Reads a usage; none where it is null or a count is no number.
    #[must_use]
    pub fn read(json: &RawValue) -> Option<Self> {
        read_usage(json).ok().flatten()
    }

    /// The tokens of what was sent, without the answer; zero where only a total is known.
    #[must_use]
    pub fn prompt_tokens(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }
}

impl StopReason {
    fn read(text: &str) -> Self {
        // A host may pass on the name of its provider, in the style of that.
        let is = |name: &str| text.eq_ignore_ascii_case(name);
        match text {
            "stop" => Self::Stop,
            "toolUse" => Self::ToolUse,
            _ if is("length") || known::CUT_OFF.into_iter().any(is) => Self::Length,
            _ if is("error") => Self::Error,
            _ if is("aborted") => Self::Aborted,
            _ => Self::Other,
        }
    }
}

impl Assistant {
    /// The calls it made, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// A failed or stopped answer; never sent to a model, never a measure of the context.
    #[must_use]
    pub fn failed(&self) -> bool {
        matches!(self.stop, StopReason::Error | StopReason::Aborted)
    }

    /// The provider's count, where it can be believed: an answer that came through and is not all zero.
    #[must_use]
    pub fn measured(&self) -> Option<Usage> {
        self.usage.filter(|usage| !self.failed() && usage.context_tokens() > 0)
    }
}

impl Message {
    /// Reads one message from its JSON text.
    ///
    /// # Errors
    /// When it is not an object with a known `role` and that role's fields.
    pub fn parse(json: &str) -> Result<Self, NotAMessage> {
        let mut reader = serde_json::Deserializer::from_str(json);
        let wire: WireMessage<'_> = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let (path, problem) = place_and_problem(&error);
            NotAMessage { path, problem }
        })?;
        wire.into_message()
    }

    /// The blocks of the message; empty where it has none.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        match self {
            Self::User(content) | Self::Developer(content) | Self::System(content) | Self::Custom(content) => content,
            Self::Assistant(assistant) => &assistant.content,
            Self::ToolResult(result) => &result.content,
            Self::Execution(_) | Self::Summary(_) => &[],
        }
    }

    /// All text blocks, joined by newlines.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Execution(run) => format!("{}\n{}", run.command, run.output),
            Self::Summary(text) => text.clone(),
            _ => text_of(self.blocks()),
        }
    }
}

/// The text blocks of `blocks`, joined by newlines.
#[must_use]
pub fn text_of(blocks: &[Block]) -> String {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

/// The base64 texts of all images together, in bytes.
#[must_use]
pub fn image_bytes(blocks: &[Block]) -> usize {
    let of = |block: &Block| if let Block::Image(image) = block { image.wire_bytes } else { 0 };
    blocks.iter().map(of).sum()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMessage<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    provider: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(default)]
    pruned_at: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    output: Option<String>,
    #[serde(default)]
    exit_code: Option<i64>,
    #[serde(default)]
    exclude_from_context: Option<bool>,
    #[serde(default)]
    summary: Option<String>,
    #[serde(default)]
    files: Option<Vec<WireFile>>,
    #[serde(borrow, default)]
    sections: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools_added: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireFile {
    #[serde(default)]
    path: String,
    #[serde(default)]
    content: String,
}

/// Counts may arrive as floats (JavaScript) or as null.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct WireCounts {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    total_tokens: Option<f64>,
}

/// Counts by their names. serde also reads a list as a struct, and the numbers of a list have no meaning here.
struct WireUsage(WireCounts);

impl<'de> Deserialize<'de> for WireUsage {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Counts;
        impl<'de> Visitor<'de> for Counts {
            type Value = WireUsage;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with numbers of tokens")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<WireUsage, A::Error> {
                WireCounts::deserialize(MapAccessDeserializer::new(fields)).map(WireUsage)
            }
        }
        reader.deserialize_map(Counts)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBlock<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    thinking: Option<Cow<'a, str>>,
    #[serde(default)]
    thinking_signature: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<Cow<'a, str>>,
    #[serde(default)]
    mime_type: Option<String>,
}

impl WireMessage<'_> {
    fn into_message(self) -> Result<Message, NotAMessage> {
        // pi reads a missing content as none.
        let content = || self.content.map_or_else(|| Ok(Vec::new()), |content| read_content(content.get()));
        Ok(match self.role.as_ref() {
            "user" => Message::User(content()?),
            "developer" => Message::Developer(content()?),
            "system" => {
                let mut blocks = content()?;
                blocks.extend(system::section_texts(self.sections).into_iter().map(Block::Text));
                match system::tools_size(self.tools_added) {
                    0 => {}
                    size => blocks.push(Block::Other(size)),
                }
                Message::System(blocks)
            }
            "custom" | "hookMessage" => Message::Custom(content()?),
            "assistant" => {
                let (usage, invalid_usage) = match self.usage.map(read_usage).transpose() {
                    Ok(usage) => (usage.flatten(), None),
                    Err(place) => (None, Some(place)),
                };
                Message::Assistant(Assistant {
                    content: content()?,
                    provider: self.provider,
                    model: self.model,
                    usage,
                    invalid_usage,
                    stop: self.stop_reason.as_deref().map_or(StopReason::Stop, StopReason::read),
                })
            }
            "toolResult" => Message::ToolResult(ToolResult {
                call: match &self.tool_call_id {
                    Some(id) => id.as_str().into(),
                    None => {
                        let problem = "a toolResult message needs the id of the call it answers".to_owned();
                        return Err(NotAMessage { path: "toolCallId".into(), problem });
                    }
                },
                content: content()?,
                tool: self.tool_name.unwrap_or_default(),
                is_error: self.is_error.unwrap_or(false),
                pruned: self.pruned_at.is_some(),
            }),
            "bashExecution" | "pythonExecution" => Message::Execution(Execution {
                command: match self.command.or(self.code) {
                    Some(command) => command,
                    None => {
                        return Err(NotAMessage { path: "command".into(), problem: "what was run is missing".into() });
                    }
                },
                output: self.output.unwrap_or_default(),
                exit_code: self.exit_code,
                excluded: self.exclude_from_context.unwrap_or(false),
            }),
            "fileMention" => Message::Custom(
                self.files
                    .unwrap_or_default()
                    .into_iter()
                    .map(|file| Block::Text(format!("{}\n{}", file.path, file.content)))
                    .collect(),
            ),
            "branchSummary" | "compactionSummary" => Message::Summary(self.summary.unwrap_or_default()),
            other => {
                return Err(NotAMessage {
                    path: "role".into(),
                    problem: format!(
                        "unknown role `{other}`; expected user, assistant, toolResult, bashExecution, custom or developer"
                    ),
                });
            }
        })
    }
}

/// A usage, or null. A count that is no number costs the usage and not the message: with the others alone a context
/// would look smaller than it is.
///
/// # Errors
/// The path of the first invalid count.
fn read_usage(json: &RawValue) -> Result<Option<Usage>, String> {
    let mut reader = serde_json::Deserializer::from_str(json.get());
    let read: Result<Option<WireUsage>, _> = serde_path_to_error::deserialize(&mut reader);
    read.map(|usage| usage.map(Usage::from)).map_err(|error| match error.path().to_string().as_str() {
        "." | "?" => "usage".to_owned(),
        path => format!("usage.{}", path.trim_start_matches("?.")),
    })
}

/// A text, blocks, or null.
fn read_content(json: &str) -> Result<Content, NotAMessage> {
    let wrong = |path: String, problem: String| NotAMessage { path, problem };
    match json.as_bytes().first() {
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(text) => Ok(vec![Block::Text(text)]),
            Err(error) => Err(wrong("content".into(), without_position(&error.to_string()))),
        },
        Some(b'[') => {
            let mut reader = serde_json::Deserializer::from_str(json);
            let blocks: Vec<WireBlock<'_>> = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
                let (path, problem) = place_and_problem(&error);
                wrong(format!("content{path}"), problem)
            })?;
            blocks.iter().enumerate().map(|(at, block)| block.block(at)).collect()
        }
        Some(b'n') => Ok(Vec::new()),
        _ => Err(wrong("content".into(), "expected a text or an array of blocks".into())),
    }
}

impl WireBlock<'_> {
    fn block(&self, at: usize) -> Result<Block, NotAMessage> {
        let need = |field: &str| NotAMessage {
            path: format!("content[{at}].{field}"),
            problem: format!("a `{}` block needs `{field}`", self.kind),
        };
        Ok(match self.kind.as_ref() {
            "text" => Block::Text(self.text.clone().ok_or_else(|| need("text"))?.into_owned()),
            "thinking" => Block::Thinking {
                text: self.thinking.clone().unwrap_or_default().into_owned(),
                signed: self.thinking_signature.is_some(),
            },
            "toolCall" => Block::ToolCall(ToolCall {
                id: self.id.as_deref().ok_or_else(|| need("id"))?.into(),
                name: self.name.clone().ok_or_else(|| need("name"))?,
                arguments: self.arguments.map_or_else(|| "{}".to_owned(), |arguments| arguments.get().to_owned()),
            }),
            "image" => {
                let data = self.data.as_ref().ok_or_else(|| need("data"))?;
                Block::Image(Image {
                    mime: self.mime_type.clone().unwrap_or_else(|| "image/png".to_owned()),
                    wire_bytes: data.len(),
                    tokens: tokens::of_image(data),
                })
            }
            other => Block::Other(other.len() + self.text.as_ref().map_or(0, |text| text.len())),
        })
    }
}

impl From<WireUsage> for Usage {
    fn from(WireUsage(wire): WireUsage) -> Self {
        // No context is larger; what claims to be is no count. NaN and negatives become zero.
        const MOST: f64 = 1e12;
        let count = |value: Option<f64>| value.filter(|count| *count < MOST).unwrap_or(0.0) as u64;
        Self {
            input: count(wire.input),
            output: count(wire.output),
            cache_read: count(wire.cache_read),
            cache_write: count(wire.cache_write),
            total: count(wire.total_tokens),
        }
    }
}

/// The `errorMessage` of a message, as JSON.
#[must_use]
pub fn error_of(json: &str) -> Option<String> {
    value(json)?["errorMessage"].as_str().map(str::to_owned)
}

/// A JSON text as a value. A number that is too large for any reader becomes null: it must not take along what stands
/// beside it. None where the text is no JSON.
#[must_use]
pub fn value(json: &str) -> Option<Value> {
    match serde_json::from_str(json) {
        Ok(value) => Some(value),
        Err(_) => lenient(serde_json::from_str(json).ok()?, DEEPEST),
    }
}

/// Deeper values are not read, as by serde_json.
const DEEPEST: usize = 127;

fn lenient(json: &RawValue, depth: usize) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(json.get()) {
        return Some(value);
    }
    let depth = depth.checked_sub(1)?;
    Some(match json.get().as_bytes().first()? {
        b'{' => {
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json.get()).ok()?;
            let fields = fields.into_iter().map(|(name, value)| Some((name, lenient(value, depth)?)));
            Value::Object(fields.collect::<Option<_>>()?)
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(json.get()).ok()?;
            Value::Array(items.into_iter().map(|item| lenient(item, depth)).collect::<Option<_>>()?)
        }
        b'-' | b'0'..=b'9' => Value::Null,
        _ => return None,
    })
}

/// The offset of `part`, a slice of `whole`.
pub(crate) fn offset_in(whole: &str, part: &RawValue) -> usize {
    part.get().as_ptr() as usize - whole.as_ptr() as usize
}
