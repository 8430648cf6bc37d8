//! OpenAI's Responses. The server keeps nothing between requests: reasoning comes encrypted and goes back as it came.
//! Other servers send only some of the events; the last event stands in for the missing ones.

mod answer;
pub mod compact;
#[cfg(test)]
mod tests;

use self::answer::Decoder;
use super::{
    Cache, Delivery, Encoded, Reasoning, Request, ToolChoice, Turn,
    format::{Decode, WireFormat},
    levels::{Efforts, Level},
    reading,
    steps::{self, Call, Content, Ids, Returned, Said, Step, Tool},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;

/// The differences between models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dialect {
    /// The levels of thinking that the model takes. It refuses a request with another one.
    pub efforts: Efforts,
    /// The model compacts a conversation at a `compaction_trigger` at its end.
    #[serde(default)]
    pub compacts: bool,
}

impl Default for Dialect {
    /// The three levels that servers have in common, for requests that ask for an effort.
    fn default() -> Self {
        let efforts = Efforts { thinks: false, levels: vec![Level::Low, Level::Medium, Level::High] };
        Self { efforts, compacts: false }
    }
}

/// This wire format.
pub(super) struct OpenaiResponses;

impl WireFormat for OpenaiResponses {
    fn encode(&self, request: &Request, delivery: Delivery) -> Encoded {
        encode(request, delivery)
    }

    fn last_events(&self) -> &'static [&'static str] {
        &["response.completed", "response.incomplete", "response.failed"]
    }

    fn decoder(&self) -> Box<dyn Decode> {
        Box::<Decoder>::default()
    }
}

/// The path and the body of a request.
fn encode(request: &Request, delivery: Delivery) -> Encoded {
    let mut body = json!({
        "model": request.model.id,
        "input": input(request),
        "store": false,
    });
    if delivery == Delivery::Stream {
        body["stream"] = true.into();
    }
    if let Some(system) = request.system.as_deref().filter(|system| !system.is_empty()) {
        body["instructions"] = system.into();
    }
    if !request.tools.is_empty() {
        body["tools"] = steps::tools(&request.tools).map(tool).collect();
        if request.tool_choice == ToolChoice::None {
            body["tool_choice"] = "none".into();
        }
    }
    if let Some(most) = request.max_tokens {
        body["max_output_tokens"] = most.min(request.ceiling.unwrap_or(u64::MAX)).max(LEAST_OUTPUT).into();
    }
    let Efforts { thinks, levels } = &request.model.dialect.openai_responses.efforts;
    let asked = matches!(request.reasoning, Reasoning::Effort(_));
    if let Some(level) = request.model.dialect.openai_responses.efforts.level(request.reasoning) {
        body["reasoning"] = json!({ "effort": level.name() });
        if asked {
            body["reasoning"]["summary"] = "auto".into();
        }
    }
    // Models that do not think refuse a request that asks for their encrypted reasoning.
    if (*thinks || asked) && !levels.is_empty() {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if let Cache::Prefix(prefix) = &request.cache {
        body["prompt_cache_key"] = prefix.chars().take(LONGEST_CACHE_KEY).collect::<String>().into();
    }
    Encoded::new("/responses", body)
}

/// The least `max_output_tokens` that is taken.
const LEAST_OUTPUT: u64 = 16;
/// The longest `prompt_cache_key` that is taken, in characters.
const LONGEST_CACHE_KEY: usize = 64;
/// The output of a tool that returned nothing.
const NO_OUTPUT: &str = "(no output)";

fn input(request: &Request) -> Vec<Value> {
    let mut items = appended(request.history.clone(), &request.turns);
    let asks = |question: &String| json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": question }] });
    items.extend(request.question.as_ref().map(asks));
    items.extend(request.compaction.as_ref().map(|_| json!({ "type": "compaction_trigger" })));
    items
}

fn appended(history: Vec<Value>, turns: &[Turn]) -> Vec<Value> {
    // No item is taken twice, should one answer stand twice in a conversation.
    let mut used: HashSet<String> = history.iter().filter_map(|item| item["id"].as_str().map(str::to_owned)).collect();
    let mut items = history;
    let ids = Ids::UpTo(LONGEST_ID);
    // After a history an answer may come first.
    for step in if items.is_empty() { steps::steps(turns, ids) } else { steps::continued(turns, ids) } {
        match step {
            Step::User(said) => items.push(json!({ "type": "message", "role": "user", "content": content(&said) })),
            Step::Answer { said, results } => {
                items.extend(answer(&said, &mut used));
                items.extend(results.iter().map(result));
            }
        }
    }
    items
}

fn content(content: &[Content<'_>]) -> Vec<Value> {
    let piece = |content: &Content<'_>| match content {
        Content::Text(text) => json!({ "type": "input_text", "text": text }),
        Content::Image { mime, data } => {
            let url = format!("data:{mime};base64,{data}");
            json!({ "type": "input_image", "image_url": url, "detail": "auto" })
        }
    };
    content.iter().map(piece).collect()
}

/// Reasoning is only taken right before what it led to, and what it led to only with it, where both are named by their
/// ids. So items are named where all their reasoning goes along, and reasoning that led to nothing stays behind.
fn answer(said: &[Said<'_>], used: &mut HashSet<String>) -> Vec<Value> {
    let reasoning = |said: &Said<'_>| match said {
        Said::Thinking { signature, .. } => {
            let item = signature.and_then(sendable);
            Some(item.filter(|item| item["id"].is_null() || used.insert(reading::text(item, "id").to_owned())))
        }
        _ => None,
    };
    let thoughts: Vec<_> = said.iter().filter_map(reasoning).collect();
    let named = !thoughts.is_empty() && thoughts.iter().all(Option::is_some);
    let mut thoughts = thoughts.into_iter();
    let mut items = Vec::new();
    let mut waiting = Vec::new();
    for piece in said {
        let item = match piece {
            Said::Thinking { .. } => {
                waiting.extend(thoughts.next().flatten());
                continue;
            }
            Said::Text { text, signature } if piece.is_something() => message(text, *signature, named),
            Said::Text { .. } => continue,
            Said::Call(made) => call(made, named),
        };
        items.append(&mut waiting);
        items.push(item);
    }
    for item in items.iter_mut().filter(|item| item["type"] != "reasoning" && !item["id"].is_null()) {
        if !used.insert(reading::text(item, "id").to_owned()) {
            item.as_object_mut().map(|item| item.shift_remove("id"));
        }
    }
    items
}

/// The item in a reasoning's signature, if the server can do something with it: one that it neither keeps nor finds
/// inside is an error to it.
fn sendable(signature: &str) -> Option<Value> {
    let item: Value = serde_json::from_str(signature).ok()?;
    let encrypted = !reading::text(&item, "encrypted_content").is_empty();
    let open = item["content"].as_array().is_some_and(|content| !content.is_empty());
    (item["type"] == "reasoning" && (encrypted || open)).then_some(item)
}

fn message(text: &str, signature: Option<&str>, named: bool) -> Value {
    let mut item = json!({
        "type": "message",
        "role": "assistant",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }],
    });
    let (id, phase) = signature.map(read_signature).unwrap_or_default();
    if named && id.starts_with("msg_") && id.len() <= LONGEST_ID {
        item["id"] = id.into();
        item["status"] = "completed".into();
    }
    if let Some(phase @ ("commentary" | "final_answer")) = phase.as_deref() {
        item["phase"] = phase.into();
    }
    item
}

/// The longest id of an item or a call that is taken, in characters.
const LONGEST_ID: usize = 64;

/// The id and the phase in pi's `textSignature`, which older versions wrote as the bare id.
fn read_signature(signature: &str) -> (String, Option<String>) {
    match serde_json::from_str::<Value>(signature) {
        Ok(json) if json.is_object() => {
            (reading::text(&json, "id").to_owned(), json["phase"].as_str().map(std::borrow::ToOwned::to_owned))
        }
        _ => (signature.to_owned(), None),
    }
}

fn write_signature(id: &str, phase: Option<String>) -> Option<String> {
    if id.is_empty() && phase.is_none() {
        return None;
    }
    let mut json = json!({ "v": 1, "id": id });
    if let Some(phase) = phase {
        json["phase"] = phase.into();
    }
    Some(json.to_string())
}

fn call(call: &Call<'_>, named: bool) -> Value {
    let mut item =
        json!({ "type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments });
    let name = call.item.filter(|item| named && item.starts_with("fc_") && item.len() <= LONGEST_ID);
    if let Some(name) = name {
        item["id"] = name.into();
    }
    item
}

fn result(result: &Returned<'_>) -> Value {
    let text = |content: &Content<'_>| match content {
        Content::Text(text) => Some(text.to_string()),
        Content::Image { .. } => None,
    };
    let output: Value = match result.content.iter().map(text).collect::<Option<Vec<_>>>() {
        Some(texts) if texts.is_empty() => NO_OUTPUT.into(),
        Some(texts) => texts.join("\n").into(),
        None => content(&result.content).into(),
    };
    json!({ "type": "function_call_output", "call_id": result.id, "output": output })
}

fn tool(tool: Tool<'_>) -> Value {
    let mut parameters = tool.schema.cloned().unwrap_or_else(|| json!({ "type": "object" }));
    // An object of which nothing is said is refused.
    if parameters["type"] == "object" && parameters["properties"].is_null() {
        parameters["properties"] = json!({});
    }
    json!({
        "type": "function", "name": tool.name, "description": tool.description, "parameters": parameters,
        "strict": false,
    })
}
