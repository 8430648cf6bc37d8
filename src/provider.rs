//! Requests to models and their answers, in terms of no wire format. The codecs below are pure: a request becomes a body,
//! and the bytes of an answer become an `Answer` or a `Trouble`. `http` sends them.

pub mod address;
pub mod anthropic;
pub mod body;
pub mod codec;
pub mod dialect;
mod format;
pub mod given;
pub mod google;
mod halves;
pub mod http;
pub mod keys;
pub mod levels;
pub mod openai_chat;
pub mod openai_responses;
pub mod overflow;
pub mod reach;
mod reading;
pub mod sse;
mod steps;
pub mod summarizer;
pub mod trouble;
pub mod turns;

use crate::{conversation::message::Usage, redact::secret::Secret};
pub use dialect::{Dialect, Model};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
pub use trouble::{Reach, Trouble, TroubleKind};

/// The wire formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Chat Completions, which most others speak too.
    OpenaiChat,
    /// OpenAI's Responses.
    OpenaiResponses,
    /// Google's `generateContent`.
    Google,
    /// No wire format: the connected client asks the model.
    Client,
}

impl Api {
    /// The wire format of a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Anthropic, Self::OpenaiChat, Self::OpenaiResponses, Self::Google, Self::Client];
        all.into_iter().find(|api| api.name() == name)
    }

    /// Its name in settings and on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiResponses => "openai_responses",
            Self::Google => "google",
            Self::Client => "client",
        }
    }

    /// The wire format of a stored answer, by the name that is stored with it: our own names, and those of pi, which has
    /// several for one format. A provider takes its signatures back under each of them.
    #[must_use]
    pub fn written(name: &str) -> Option<Self> {
        match name {
            "anthropic-messages" => Some(Self::Anthropic),
            "openai-completions" => Some(Self::OpenaiChat),
            "openai-responses" | "openai-codex-responses" | "azure-openai-responses" => Some(Self::OpenaiResponses),
            "google-generative-ai" | "google-gemini-cli" | "google-vertex" => Some(Self::Google),
            name => Self::parse(name),
        }
    }

    /// The name under which pi stores answers in this wire format; `None` for a model that the client asks.
    #[must_use]
    pub fn pi_name(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("anthropic-messages"),
            Self::OpenaiChat => Some("openai-completions"),
            Self::OpenaiResponses => Some("openai-responses"),
            Self::Google => Some("google-generative-ai"),
            Self::Client => None,
        }
    }
}

/// The address of a model, and the means to get in.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The wire format.
    pub api: Api,
    /// The base URL as the provider's own SDK takes it.
    pub base_url: String,
    /// The source of the key.
    pub key: KeySource,
    /// More headers, for proxies.
    pub headers: Vec<(String, Secret)>,
}

/// The source of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// No key is needed.
    None,
    /// An environment variable.
    Variable(String),
    /// The first line of a command's output.
    Command(Vec<String>),
}

/// A request to a model.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The model.
    pub model: Model,
    /// The system prompt.
    pub system: Option<String>,
    /// The state that the provider made of the conversation before `turns`: items of OpenAI's Responses, or the block of
    /// Anthropic's own compaction. Other formats have no place for it.
    pub history: Vec<Value>,
    /// The conversation, oldest first.
    pub turns: Vec<Turn>,
    /// A message of the user after the conversation. What stands before it has the same bytes as without it, marks of the cache
    /// included.
    pub question: Option<String>,
    /// The tools, each `{name, description, inputSchema}`.
    pub tools: Vec<Value>,
    /// Whether the model may call the tools.
    pub tool_choice: ToolChoice,
    /// The limit of the answer, in tokens. Formats that need a number and get none take 8,192.
    pub max_tokens: Option<u64>,
    /// The limit of thinking and answer together, in tokens. Without it, a format that counts both adds the room for
    /// thinking to `max_tokens`.
    pub ceiling: Option<u64>,
    /// The amount of thinking.
    pub reasoning: Reasoning,
    /// Whether later requests begin with this one.
    pub cache: Cache,
    /// Whether the thinking in `turns` stands after the same bytes as when it was produced. Only then a model that binds its
    /// thinking gets it.
    pub has_bound_thinking: bool,
    /// The provider's own compaction of the conversation in the place of an answer. Only Anthropic's format has it.
    pub compaction: Option<OnDemand>,
}

/// A compaction that Anthropic makes on demand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OnDemand {
    /// The prompt in the place of the provider's own, of at most [`OnDemand::LONGEST`] characters.
    pub instructions: Option<String>,
}

impl OnDemand {
    /// The longest instructions that the provider takes, in characters.
    pub const LONGEST: usize = 16_384;
}

/// Whether a model may call tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It may not: the tools are declared because the conversation uses them.
    None,
}

/// The amount of thinking that a request asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reasoning {
    /// The request says nothing about thinking, as for a model that does not think.
    #[default]
    Unsaid,
    /// None, or the least that the provider allows.
    Off,
    /// An effort.
    Effort(Effort),
}

/// An effort of thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// The least there is.
    Minimal,
    /// A low effort.
    Low,
    /// The providers' default.
    Medium,
    /// A high effort.
    High,
    /// The most there is.
    Highest,
}

/// Whether a provider is asked to keep the beginning of a request for the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cache {
    /// No later request begins with this one.
    #[default]
    Never,
    /// Later requests begin with this one. The text is the same for all of them, such as a session's id.
    Prefix(String),
}

/// One step of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// A message of the user, or of a program in their place.
    User(Vec<Part>),
    /// An answer of a model.
    Assistant(Vec<Part>),
    /// A tool result.
    Result(ToolOutcome),
}

/// A tool result.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// The id of the call.
    pub call: String,
    /// The name of the tool; empty where it is unknown.
    pub name: String,
    /// Texts and images.
    pub parts: Vec<Part>,
    /// The tool failed.
    pub is_error: bool,
}

/// A piece of a turn. Signatures go back to their provider byte for byte or not at all. They are stored in pi's forms, so
/// that pi can continue a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Plain text.
    Text {
        /// The text.
        text: String,
        /// The provider's mark on it (pi's `textSignature`).
        signature: Option<String>,
    },
    /// Reasoning.
    Thinking {
        /// The text, as far as the provider shows it.
        text: String,
        /// Anthropic's signature or redacted data, Google's thought signature, or the whole reasoning item of OpenAI as
        /// JSON (pi's `thinkingSignature`).
        signature: Option<String>,
        /// The provider keeps the text to itself.
        redacted: bool,
    },
    /// A tool call.
    Call {
        /// The id of the call; in OpenAI's Responses `call_id|item_id`, as pi writes it.
        id: String,
        /// The name of the tool.
        name: String,
        /// The arguments as the model wrote them: the text of a JSON object, or a part of one, or nonsense.
        arguments: String,
        /// Google's thought signature (pi's `thoughtSignature`).
        signature: Option<String>,
    },
    /// An image.
    Image {
        /// The MIME type, such as `image/png`.
        mime: String,
        /// The bytes in base64.
        data: String,
    },
}

/// A piece of an answer in a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Delta {
    /// More text.
    Text(String),
    /// More reasoning.
    Thinking(String),
    /// More of a call's arguments.
    Call(String),
    /// The pieces after it are of the part at this place of the answer.
    Part(usize),
}

/// An answer of a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The parts, in order.
    pub parts: Vec<Part>,
    /// The usage that the provider reports, in tokens. The input excludes tokens read from or written to the cache.
    pub usage: Usage,
    /// The reason of its end.
    pub stop: Stop,
    /// More than a model answers.
    pub beside: Beside,
}

/// A part of an answer that no model sends.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Beside {
    /// Nothing.
    #[default]
    Nothing,
    /// A summarizer: the summary in two sentences.
    Short(String),
    /// The provider's own compaction: the items of OpenAI that stand for the conversation, or Anthropic's block alone.
    Items(Vec<Value>),
}

/// The reason of an answer's end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Stop {
    /// The model was done.
    #[default]
    Done,
    /// The limit of the output, or the window, was reached.
    Length,
    /// The model called tools.
    ToolUse,
    /// The provider or the model refused to answer. The text is the provider's reason.
    Refused(String),
}

/// The delivery of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// In one piece.
    Whole,
    /// As events.
    Stream,
}

/// A request in a wire format.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// The path after the base URL, with its leading slash.
    pub path: String,
    /// The JSON body.
    pub body: Value,
    /// Headers that the body needs, beside those of its format. Each name occurs once.
    pub headers: Vec<(&'static str, String)>,
}

impl Encoded {
    /// A request whose body needs no headers of its own.
    #[must_use]
    pub fn new(path: impl Into<String>, body: Value) -> Self {
        Self { path: path.into(), body, headers: Vec::new() }
    }
}

impl Request {
    /// The conversation with the message after it.
    #[must_use]
    pub fn all_turns(&self) -> Cow<'_, [Turn]> {
        match &self.question {
            None => Cow::Borrowed(&self.turns),
            Some(question) => Cow::Owned(self.turns.iter().cloned().chain([Turn::user(question.clone())]).collect()),
        }
    }
}

impl Effort {
    /// The tokens of thinking at this effort, where a limit counts thinking and answer.
    #[must_use]
    pub fn room(self) -> u64 {
        match self {
            Self::Minimal => 1_024,
            Self::Low => 4_096,
            Self::Medium => 8_192,
            Self::High => 16_384,
            Self::Highest => 24_576,
        }
    }
}

impl Part {
    /// Plain text without a provider's mark.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), signature: None }
    }
}

impl Turn {
    /// A user's plain text.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(vec![Part::text(text)])
    }
}

impl Answer {
    /// The texts, joined by newlines.
    #[must_use]
    pub fn text(&self) -> String {
        let text = |part: &Part| match part {
            Part::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    }

    /// Whether it calls a tool.
    #[must_use]
    pub fn calls_a_tool(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call { .. }))
    }

    /// The assistant message in pi's form.
    #[must_use]
    pub fn message(&self, api: &str, provider: &str, model: &str, timestamp_ms: i64) -> Value {
        let (stop, error) = self.stop.in_pis_form();
        let mut message = json!({
            "role": "assistant",
            "content": self.parts.iter().map(Part::block).collect::<Vec<_>>(),
            "api": api,
            "provider": provider,
            "model": model,
            "usage": self.usage_in_pis_form(),
            "stopReason": stop,
            "timestamp": timestamp_ms,
        });
        if let Some(error) = error {
            message["errorMessage"] = error.into();
        }
        message
    }

    /// The usage in pi's form.
    fn usage_in_pis_form(&self) -> Value {
        let Usage { input, output, cache_read, cache_write, .. } = self.usage;
        json!({
            "input": input, "output": output, "cacheRead": cache_read, "cacheWrite": cache_write,
            "totalTokens": self.usage.context_tokens(),
        })
    }
}

impl Stop {
    /// The stop reason in pi's form, and the text of the error.
    fn in_pis_form(&self) -> (&'static str, Option<String>) {
        match self {
            Self::Done => ("stop", None),
            Self::Length => ("length", None),
            Self::ToolUse => ("toolUse", None),
            Self::Refused(why) => ("error", Some(format!("the provider refused to answer: {why}"))),
        }
    }
}

impl Part {
    /// The content block in pi's form.
    #[must_use]
    pub fn block(&self) -> Value {
        let mut block = match self {
            Self::Text { text, .. } => json!({ "type": "text", "text": text }),
            Self::Thinking { text, redacted, .. } => {
                let mut block = json!({ "type": "thinking", "thinking": text });
                if *redacted {
                    block["redacted"] = true.into();
                }
                block
            }
            Self::Call { id, name, arguments, .. } => {
                let arguments: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
                json!({ "type": "toolCall", "id": id, "name": name, "arguments": arguments })
            }
            Self::Image { mime, data } => json!({ "type": "image", "mimeType": mime, "data": data }),
        };
        let (key, signature) = match self {
            Self::Text { signature, .. } => ("textSignature", signature.as_ref()),
            Self::Thinking { signature, .. } => ("thinkingSignature", signature.as_ref()),
            Self::Call { signature, .. } => ("thoughtSignature", signature.as_ref()),
            Self::Image { .. } => return block,
        };
        if let Some(signature) = signature {
            block[key] = signature.as_str().into();
        }
        block
    }
}
