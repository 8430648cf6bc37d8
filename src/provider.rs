//! What a model is asked and what it answers, whatever the wire format. The codecs below are pure: a request becomes a
//! body, the bytes of an answer become an `Answer` or a `Trouble`. Who sends them is in `http`.

pub mod anthropic;
mod body;
pub mod codec;
pub mod dialect;
mod format;
pub mod google;
mod halves;
pub mod http;
pub mod keys;
pub mod levels;
pub mod openai_chat;
pub mod openai_responses;
pub mod overflow;
mod reading;
pub mod sse;
mod steps;
pub mod trouble;
pub mod turns;

use crate::{conversation::message::Usage, secret::Secret};
pub use dialect::{Dialect, Model};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
pub use trouble::{Trouble, TroubleKind};

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
    /// None: the connected client asks the model.
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

    /// The wire format that an answer came in, by what is written with it: our own names, and those of pi, which has one
    /// for each way to the same format. What a provider signed in one of them it takes back in the other.
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

    /// The name under which pi stores answers in this wire format; none for a model that the client asks.
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

/// Where a model is asked.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// In which words.
    pub api: Api,
    /// What the provider's own SDK takes.
    pub base_url: String,
    /// Where its key is.
    pub key: KeySource,
    /// More headers, for proxies.
    pub headers: Vec<(String, Secret)>,
}

/// Where a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// None is needed.
    None,
    /// In an environment variable.
    Variable(String),
    /// In the first line that a command prints.
    Command(Vec<String>),
}

/// What a model is asked.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The model.
    pub model: Model,
    /// What it is told before everything.
    pub system: Option<String>,
    /// The conversation, oldest first.
    pub turns: Vec<Turn>,
    /// The tools it knows, each `{name, description, inputSchema}`.
    pub tools: Vec<Value>,
    /// Whether it may call them.
    pub tool_choice: ToolChoice,
    /// The most it may answer, in tokens. Formats that need a number and get none take 8,192.
    pub max_tokens: Option<u64>,
    /// The most that its thinking and its answer may take together, in tokens. Where nobody says so, a format that counts
    /// both adds the room for thinking to `max_tokens`.
    pub ceiling: Option<u64>,
    /// How much it thinks first.
    pub reasoning: Reasoning,
    /// Whether the request is the beginning of later ones.
    pub cache: Cache,
}

/// Whether a model may call tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// No: the tools only stand there because the conversation uses them.
    None,
}

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reasoning {
    /// Nothing is said about it, as for a model that does not think.
    #[default]
    Unsaid,
    /// Not at all, or as little as the provider lets a model think that always does.
    Off,
    /// As much as that.
    Effort(Effort),
}

/// How much a model that thinks does so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// As little as there is.
    Minimal,
    /// A little.
    Low,
    /// As providers do by themselves.
    Medium,
    /// A lot.
    High,
    /// As much as there is.
    Highest,
}

/// Whether a provider is asked to keep the beginning of a request for the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cache {
    /// It is asked once.
    #[default]
    Never,
    /// More will follow that begin alike; the text is the same for all of them, such as a session's id.
    Prefix(String),
}

/// One step of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// What the user, or a program in their place, says.
    User(Vec<Part>),
    /// What a model answered.
    Assistant(Vec<Part>),
    /// What a tool returned.
    Result(ToolOutcome),
}

/// What a tool returned.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// The call it answers.
    pub call: String,
    /// The tool; empty where nobody noted it.
    pub name: String,
    /// Texts and images.
    pub parts: Vec<Part>,
    /// The tool failed.
    pub is_error: bool,
}

/// A piece of a turn. Signatures and the like are the provider's own and go back to it byte for byte or not at all; they
/// are kept in pi's forms, so that pi can go on with a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Plain text.
    Text {
        /// It.
        text: String,
        /// The provider's mark on it (pi's `textSignature`).
        signature: Option<String>,
    },
    /// Reasoning.
    Thinking {
        /// It, as far as the provider shows it.
        text: String,
        /// Anthropic's signature or redacted data, Google's thought signature, or the whole reasoning item of OpenAI as
        /// JSON (pi's `thinkingSignature`).
        signature: Option<String>,
        /// The provider keeps the text to itself.
        redacted: bool,
    },
    /// A call of a tool.
    Call {
        /// The model's name for this call. With OpenAI's Responses `call_id|item_id`, as pi writes it.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments as JSON text.
        arguments: String,
        /// Google's thought signature (pi's `thoughtSignature`).
        signature: Option<String>,
    },
    /// An image.
    Image {
        /// For example `image/png`.
        mime: String,
        /// Its bytes in base64.
        data: String,
    },
}

/// A piece of an answer while it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More reasoning.
    Thinking(String),
    /// More of a call's arguments.
    Call(String),
}

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// In order.
    pub parts: Vec<Part>,
    /// What the provider says it cost, in tokens. Input without what was read from or written to the cache.
    pub usage: Usage,
    /// Why it ended.
    pub stop: Stop,
}

/// Why an answer ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Stop {
    /// The model was done.
    #[default]
    Done,
    /// The limit of the output, or the window, was reached.
    Length,
    /// It wants tools run.
    ToolUse,
    /// The provider, or the model, does not want to answer this. The text is the provider's word for why.
    Refused(String),
}

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// In one piece.
    Whole,
    /// As events.
    Stream,
}

/// A request in a provider's own words.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// What comes behind the base URL, with its leading slash.
    pub path: String,
    /// The JSON body.
    pub body: Value,
}

impl Effort {
    /// The tokens it may take beside the answer, where a limit counts both.
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

    /// As pi writes an assistant message.
    #[must_use]
    pub fn message(&self, api: &str, provider: &str, model: &str, timestamp_ms: i64) -> Value {
        let Usage { input, output, cache_read, cache_write, .. } = self.usage;
        let (stop, error) = match &self.stop {
            Stop::Done => ("stop", None),
            Stop::Length => ("length", None),
            Stop::ToolUse => ("toolUse", None),
            Stop::Refused(why) => ("error", Some(format!("the provider refused to answer: {why}"))),
        };
        let mut message = json!({
            "role": "assistant",
            "content": self.parts.iter().map(Part::block).collect::<Vec<_>>(),
            "api": api,
            "provider": provider,
            "model": model,
            "usage": {
                "input": input, "output": output, "cacheRead": cache_read, "cacheWrite": cache_write,
                "totalTokens": self.usage.context_tokens(),
            },
            "stopReason": stop,
            "timestamp": timestamp_ms,
        });
        if let Some(error) = error {
            message["errorMessage"] = error.into();
        }
        message
    }
}

impl Part {
    /// As pi writes a block.
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
                let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
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
