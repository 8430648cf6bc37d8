//! OpenAI's Chat Completions, also of compatible servers.
//!
//! Fields that only OpenAI's servers know are sent for OpenAI's models only: the default dialect suits a plain local
//! server.

mod answer;
#[cfg(test)]
mod tests;

use self::answer::Decoder;
use super::{
    Cache, Delivery, Encoded, Reasoning, Request, ToolChoice,
    format::{Decode, WireFormat},
    levels::{Efforts, Level},
    steps::{self, Content, Ids, Returned, Said, Step, Tool},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The differences between models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dialect {
    /// The field for the limit of the output.
    pub limit: Limit,
    /// The server takes a `prompt_cache_key`.
    pub cache_key: bool,
    /// The form of call ids.
    pub call_ids: CallIds,
    /// The server refuses an answer with calls that comes back without its thinking, even if that is empty.
    pub replays_thinking: bool,
    /// The levels of thinking that the model takes.
    pub efforts: Efforts,
    /// Thinking in a request with tools.
    pub with_tools: WithTools,
}

/// The field for the limit of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which counts thinking too.
    MaxCompletionTokens,
}

/// The form of call ids.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallIds {
    /// Up to 40 characters, OpenAI's limit.
    #[default]
    UpToForty,
    /// Exactly nine letters and digits.
    NineCharacters,
}

/// Thinking in a request with tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithTools {
    /// As in any request.
    #[default]
    AsAsked,
    /// The least level, unless the request asks for an effort.
    OffUnlessAsked,
    /// The least level: the model takes tools in this format only while it does not think.
    Off,
}

impl From<CallIds> for Ids {
    fn from(ids: CallIds) -> Self {
        match ids {
            CallIds::UpToForty => Self::UpTo(40),
            CallIds::NineCharacters => Self::Nine,
        }
    }
}

/// This wire format.
pub(super) struct OpenaiChat;

impl WireFormat for OpenaiChat {
    fn encode(&self, request: &Request, delivery: Delivery) -> Encoded {
        encode(request, delivery)
    }

    fn decoder(&self) -> Box<dyn Decode> {
        Box::<Decoder>::default()
    }
}

/// The path and the body of a request.
fn encode(request: &Request, delivery: Delivery) -> Encoded {
    let dialect = &request.model.dialect.openai_chat;
    let level = dialect.level(request.reasoning, &request.tools);
    let ceiling = request.ceiling.unwrap_or(u64::MAX);
    let mut body = json!({ "model": request.model.id, "messages": messages(request, dialect) });
    if !request.tools.is_empty() {
        body["tools"] = steps::tools(&request.tools).map(tool).collect();
        if request.tool_choice == ToolChoice::None {
            body["tool_choice"] = "none".into();
        }
    }
    if let Some(most) = request.max_tokens {
        match dialect.limit {
            Limit::MaxTokens => body["max_tokens"] = most.min(ceiling).into(),
            Limit::MaxCompletionTokens => {
                let thinking = level.map_or(0, Level::room);
                body["max_completion_tokens"] = most.saturating_add(thinking).min(ceiling).into();
            }
        }
    }
    if let Some(level) = level {
        body["reasoning_effort"] = level.name().into();
    }
    if let (true, Cache::Prefix(key)) = (dialect.cache_key, &request.cache) {
        body["prompt_cache_key"] = key.chars().take(LONGEST_CACHE_KEY).collect::<String>().into();
    }
    if delivery == Delivery::Stream {
        body["stream"] = true.into();
        body["stream_options"] = json!({ "include_usage": true });
    }
    Encoded::new("/chat/completions", body)
}

/// OpenAI's limit of a `prompt_cache_key`, in characters.
const LONGEST_CACHE_KEY: usize = 64;

/// Before the images of tool results, which only a user can show.
const IMAGES: &str = "[The images of the tool results above:]";

impl Dialect {
    /// The level of thinking that a request names. `None` where the model, or the server it may be on, takes none.
    fn level(&self, reasoning: Reasoning, tools: &[Value]) -> Option<Level> {
        let reasoning = match (self.with_tools, reasoning) {
            _ if tools.is_empty() => reasoning,
            (WithTools::Off, _) | (WithTools::OffUnlessAsked, Reasoning::Unsaid) => Reasoning::Off,
            _ => reasoning,
        };
        self.efforts.level(reasoning)
    }
}

fn tool(tool: Tool<'_>) -> Value {
    let parameters = tool.schema.cloned().unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    json!({
        "type": "function",
        "function": { "name": tool.name, "description": tool.description, "parameters": parameters },
    })
}

fn messages(request: &Request, dialect: &Dialect) -> Vec<Value> {
    let mut messages = Vec::new();
    if let Some(system) = request.system.as_deref().filter(|text| !text.trim().is_empty()) {
        messages.push(json!({ "role": "system", "content": system }));
    }
    let steps = steps::steps(&request.turns, dialect.call_ids.into());
    let mut images: Vec<Content<'_>> = Vec::new();
    for step in steps {
        match step {
            Step::User(content) => {
                images.extend(content);
                messages.push(user(&std::mem::take(&mut images)));
            }
            Step::Answer { said, results } => {
                if !images.is_empty() {
                    messages.push(user(&std::mem::take(&mut images)));
                }
                messages.push(answer(&said, dialect));
                for result in results {
                    messages.push(returned(&result));
                    images.extend(result.content.into_iter().filter(|it| matches!(it, Content::Image { .. })));
                }
                if !images.is_empty() {
                    images.insert(0, Content::Text(IMAGES.into()));
                }
            }
        }
    }
    if !images.is_empty() {
        messages.push(user(&images));
    }
    messages.extend(request.question.as_ref().map(|question| user(&[Content::Text(question.as_str().into())])));
    messages
}

/// Texts alone are one text: not every server takes blocks.
fn user(content: &[Content<'_>]) -> Value {
    let block = |content: &Content<'_>| match content {
        Content::Text(text) => json!({ "type": "text", "text": text }),
        Content::Image { mime, data } => {
            json!({ "type": "image_url", "image_url": { "url": format!("data:{mime};base64,{data}") } })
        }
    };
    let content = match texts(content) {
        texts if texts.len() == content.len() => texts.join("\n\n").into(),
        _ => content.iter().map(block).collect::<Value>(),
    };
    json!({ "role": "user", "content": content })
}

fn texts<'a>(content: &'a [Content<'_>]) -> Vec<&'a str> {
    let text = |content: &'a Content<'_>| match content {
        Content::Text(text) => Some(text.as_ref()),
        Content::Image { .. } => None,
    };
    content.iter().filter_map(text).collect()
}

fn answer(said: &[Said<'_>], dialect: &Dialect) -> Value {
    let joined = |pick: fn(&Said<'_>) -> Option<String>| said.iter().filter_map(pick).collect::<Vec<_>>().join("\n");
    let text = joined(|it| match it {
        Said::Text { text, .. } => (!text.trim().is_empty()).then(|| (*text).to_owned()),
        _ => None,
    });
    let mut message = json!({ "role": "assistant", "content": (!text.is_empty()).then_some(text) });
    let calls: Vec<Value> = steps::calls(said)
        .map(|call| {
            let function = json!({ "name": call.name, "arguments": call.arguments });
            json!({ "id": call.id, "type": "function", "function": function })
        })
        .collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
        if dialect.replays_thinking {
            let thinking = joined(|it| match it {
                Said::Thinking { text, redacted: false, .. } => Some((*text).to_owned()),
                _ => None,
            });
            message["reasoning_content"] = thinking.into();
        }
    }
    message
}

fn returned(result: &Returned<'_>) -> Value {
    let content = match texts(&result.content).join("\n") {
        text if !text.is_empty() => text,
        _ if result.content.is_empty() => "(no output)".to_owned(),
        _ => "(an image, shown below)".to_owned(),
    };
    json!({ "role": "tool", "tool_call_id": result.id, "content": content })
}
