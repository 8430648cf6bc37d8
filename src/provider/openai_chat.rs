//! OpenAI's Chat Completions, also of compatible servers.
//!
//! Fields that only OpenAI's servers know are sent for OpenAI's models only: the default dialect suits a plain local
//! server.

use super::{
    Answer, Cache, Delivery, Delta, Encoded, Part, Reasoning, Request, Stop, ToolChoice,
    format::{Decode, WireFormat},
    levels::{Efforts, Level},
    reading, sse,
    steps::{self, Content, Ids, Returned, Said, Step, Tool},
    trouble::{Trouble, TroubleKind},
};
use crate::conversation::message::Usage;
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
    Encoded { path: "/chat/completions".into(), body }
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

/// An answer while it comes.
#[derive(Debug, Default)]
struct Decoder {
    parts: Vec<Growing>,
    refusal: String,
    usage: Usage,
    finish: Option<String>,
    /// The provider said that nothing follows.
    done: bool,
}

#[derive(Debug)]
enum Growing {
    Text(String),
    Thinking(String),
    Call { index: Option<u64>, id: String, name: String, arguments: String },
}

impl Decode for Decoder {
    fn event(&mut self, event: &sse::Event) -> Result<Vec<Delta>, Trouble> {
        match event.data.trim() {
            "" => Ok(Vec::new()),
            "[DONE]" => {
                self.done = true;
                Ok(Vec::new())
            }
            data => {
                let chunk = reading::json(data)?;
                failed(&chunk, data)?;
                Ok(self.take(&chunk, "delta"))
            }
        }
    }

    fn whole(&mut self, body: &str) -> Result<(), Trouble> {
        let answer = reading::json(body)?;
        failed(&answer, body)?;
        if !answer["choices"][0]["message"].is_object() {
            return Err(Trouble::new(TroubleKind::Garbled, body));
        }
        self.take(&answer, "message");
        self.done = true;
        Ok(())
    }

    /// An answer with `[DONE]` and without a reason counts as done if it has any part. A call whose arguments are no object
    /// keeps its place with empty arguments: they broke off where the answer reached its limit.
    fn finish(self: Box<Self>) -> Result<Answer, Trouble> {
        let finish = match &self.finish {
            Some(finish) => finish.as_str(),
            None if self.done && !self.parts.is_empty() => "stop",
            None => return Err(Trouble::new(TroubleKind::CutOff, "the stream ended without a finish_reason")),
        };
        let calls = self.parts.iter().any(|part| matches!(part, Growing::Call { .. }));
        let stop = match finish.to_ascii_lowercase().as_str() {
            "length" | "max_tokens" | "model_length" | "max_output_tokens" | "model_context_window_exceeded" => {
                Stop::Length
            }
            "content_filter" | "refusal" | "safety" | "sensitive" => Stop::Refused(finish.to_owned()),
            "error" | "network_error" | "insufficient_system_resource" => {
                return Err(Trouble::new(TroubleKind::Broken, format!("finish_reason {finish}")));
            }
            // Not every server says that it wants tools run, and some say so without a call.
            _ if calls => Stop::ToolUse,
            _ if !self.refusal.is_empty() => Stop::Refused(self.refusal),
            _ => Stop::Done,
        };
        let mut parts = Vec::new();
        let mut calls = 0;
        for part in self.parts {
            parts.push(match part {
                Growing::Text(text) => Part::text(text),
                Growing::Thinking(text) => Part::Thinking { text, signature: None, redacted: false },
                Growing::Call { id, name, arguments, .. } => {
                    calls += 1;
                    let arguments = reading::arguments(&arguments).to_owned();
                    Part::Call { id: reading::call_id(id, calls), name, arguments, signature: None }
                }
            });
        }
        Ok(Answer { parts, usage: self.usage, stop })
    }
}

impl Decoder {
    /// Takes a chunk, or a whole answer: they differ in where the message is.
    fn take(&mut self, chunk: &Value, place: &str) -> Vec<Delta> {
        let choice = &chunk["choices"][0];
        // Groq and Moonshot have places of their own for it.
        let usages = [&chunk["usage"], &chunk["x_groq"]["usage"], &choice["usage"]];
        if let Some(usage) = usages.into_iter().find(|usage| usage.is_object()) {
            self.usage = tokens(usage);
        }
        let message = &choice[place];
        let mut deltas = Vec::new();
        let thinking = ["reasoning_content", "reasoning", "reasoning_text"];
        let thinking = thinking.into_iter().filter_map(|name| message[name].as_str()).find(|text| !text.is_empty());
        deltas.extend(thinking.and_then(|text| self.think(text)));
        match &message["content"] {
            Value::String(text) => deltas.extend(self.say(text)),
            // Some servers send the content of models that think as blocks.
            Value::Array(blocks) => {
                for block in blocks {
                    deltas.extend(block["text"].as_str().and_then(|text| self.say(text)));
                    let thinking = block["thinking"].as_array().map(Vec::as_slice).unwrap_or_default();
                    deltas.extend(thinking.iter().filter_map(|it| self.think(it["text"].as_str()?)));
                }
            }
            _ => {}
        }
        self.refusal.push_str(message["refusal"].as_str().unwrap_or_default());
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            deltas.extend(self.call(reading::count(&call["index"]), &call["id"], &call["function"]));
        }
        if message["function_call"].is_object() {
            deltas.extend(self.call(None, &Value::Null, &message["function_call"]));
        }
        if let Some(finish) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.finish = Some(finish.to_owned());
        }
        deltas
    }

    fn say(&mut self, more: &str) -> Option<Delta> {
        if more.is_empty() {
            return None;
        }
        match self.parts.last_mut() {
            Some(Growing::Text(text)) => text.push_str(more),
            _ => self.parts.push(Growing::Text(more.to_owned())),
        }
        Some(Delta::Text(more.to_owned()))
    }

    fn think(&mut self, more: &str) -> Option<Delta> {
        if more.is_empty() {
            return None;
        }
        match self.parts.last_mut() {
            Some(Growing::Thinking(text)) => text.push_str(more),
            _ => self.parts.push(Growing::Thinking(more.to_owned())),
        }
        Some(Delta::Thinking(more.to_owned()))
    }

    /// More of a call. Servers tell calls apart by their index, or give all of them the same and send each in one
    /// piece, or give none at all.
    fn call(&mut self, at: Option<u64>, id: &Value, function: &Value) -> Option<Delta> {
        let new_id = id.as_str().unwrap_or_default();
        let new_name = function["name"].as_str().unwrap_or_default();
        let more = match &function["arguments"] {
            Value::String(text) => text.clone(),
            whole @ Value::Object(_) => whole.to_string(),
            _ => String::new(),
        };
        let continued = self.parts.iter().rposition(|part| match part {
            Growing::Call { index, id, .. } if at.is_some() => {
                *index == at && (new_id.is_empty() || id.is_empty() || id == new_id)
            }
            Growing::Call { id, .. } => {
                if new_id.is_empty() {
                    new_name.is_empty()
                } else {
                    id == new_id
                }
            }
            _ => false,
        });
        match continued.map(|place| &mut self.parts[place]) {
            Some(Growing::Call { id, name, arguments, .. }) => {
                if id.is_empty() {
                    new_id.clone_into(id);
                }
                if name.is_empty() {
                    new_name.clone_into(name);
                }
                arguments.push_str(&more);
            }
            _ => self.parts.push(Growing::Call {
                index: at,
                id: new_id.to_owned(),
                name: new_name.to_owned(),
                arguments: more.clone(),
            }),
        }
        (!more.is_empty()).then_some(Delta::Call(more))
    }
}

/// An error in the place of an answer, or of a piece of it.
fn failed(chunk: &Value, said: &str) -> Result<(), Trouble> {
    let chunk = chunk.get(0).unwrap_or(chunk);
    let inner = [&chunk["error"], &chunk["choices"][0]["error"]];
    match inner.into_iter().find(|error| error.is_object() || error.is_string()) {
        Some(error) => Err(reading::failure(error, said)),
        // Several servers and gateways put it beside.
        None if chunk["object"] == "error" || chunk["type"] == "error" => Err(reading::failure(chunk, said)),
        None if chunk["choices"].is_null() && ["message", "detail"].iter().any(|name| !chunk[*name].is_null()) => {
            Err(reading::failure(chunk, said))
        }
        None => Ok(()),
    }
}

/// OpenAI counts what came from the cache into the prompt. A proxy that does not is found by its sum.
fn tokens(usage: &Value) -> Usage {
    let first = |counts: &[&Value]| counts.iter().find_map(|count| reading::count(count)).unwrap_or(0);
    let details = &usage["prompt_tokens_details"];
    let prompt = first(&[&usage["prompt_tokens"], &usage["input_tokens"]]);
    let cache_read = first(&[&details["cached_tokens"], &usage["prompt_cache_hit_tokens"], &usage["cached_tokens"]]);
    let cache_write = first(&[&details["cache_write_tokens"]]);
    let mut output = first(&[&usage["completion_tokens"], &usage["output_tokens"]]);
    let reasoning = first(&[&usage["completion_tokens_details"]["reasoning_tokens"]]);
    // xAI counts thinking beside the answer, all others within it.
    if reasoning > 0 && first(&[&usage["total_tokens"]]) == prompt + output + reasoning {
        output += reasoning;
    }
    let input = prompt.checked_sub(cache_read + cache_write).unwrap_or(prompt);
    Usage { input, output, cache_read, cache_write, total: input + output + cache_read + cache_write }
}

#[cfg(test)]
mod tests {
    use super::super::Effort;
    use super::super::{ToolOutcome, Turn};
    use super::*;
    use crate::models::dialects;
    use proptest::prelude::*;

    macro_rules! recorded {
        ($name:literal) => {
            include_str!(concat!("../../tests/recordings/openai_chat/", $name))
        };
    }

    fn decode(stream: &str) -> Result<Answer, Trouble> {
        reading::at_every_cut(stream, |events| {
            let mut decoder = Box::<Decoder>::default();
            for event in events {
                decoder.event(event)?;
            }
            decoder.finish()
        })
    }

    fn thinking(text: &str) -> Part {
        Part::Thinking { text: text.into(), signature: None, redacted: false }
    }

    fn call(id: &str, name: &str, arguments: &str) -> Part {
        Part::Call { id: id.into(), name: name.into(), arguments: arguments.into(), signature: None }
    }

    fn used(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
        Usage { input, output, cache_read, cache_write, total: input + output + cache_read + cache_write }
    }

    #[test]
    fn recordings() {
        let row = |stream: &str, parts: &[Part], usage: Usage, stop: Stop| {
            assert_eq!(decode(stream), Ok(Answer { parts: parts.to_vec(), usage, stop }));
        };
        row(recorded!("text.sse"), &[Part::text("Grüße, Welt 🦀")], used(86, 300, 1920, 0), Stop::Done);
        let calls = [call("call_aaa", "read", r#"{"path":"a.rs"}"#), call("call_bbb", "read", r#"{"path":"b.rs"}"#)];
        row(recorded!("parallel_calls.sse"), &calls, used(82, 40, 0, 0), Stop::ToolUse);
        let parts = [thinking("9.11 is smaller."), Part::text("9.8")];
        row(recorded!("deepseek.sse"), &parts, used(17, 13, 0, 0), Stop::Done);
        let parts = [thinking("The user greets."), Part::text("Hello!")];
        row(recorded!("openrouter.sse"), &parts, used(50, 42, 1000, 150), Stop::Done);
        let parts = [
            thinking("I should look."),
            call("call_ejieksiz", "read", r#"{"path":"a.rs"}"#),
            call("call_zz12ab34", "read", r#"{"path":"b.rs"}"#),
        ];
        row(recorded!("ollama.sse"), &parts, used(169, 15, 0, 0), Stop::ToolUse);
        let parts = [thinking("Let me see."), Part::text("It is 7.")];
        row(recorded!("llama_cpp.sse"), &parts, used(10, 29, 7, 0), Stop::Done);
        row(recorded!("groq.sse"), &[Part::text("Hi.")], used(20, 4, 0, 0), Stop::Done);
        row(recorded!("moonshot.sse"), &[Part::text("Hi.")], used(11, 13, 8, 0), Stop::Done);
        let parts = [thinking("Hm."), Part::text("Let me look."), call("D681PevKs", "read", r#"{"path": "a.rs"}"#)];
        row(recorded!("mistral.sse"), &parts, used(94, 30, 0, 0), Stop::ToolUse);
        let parts = [call("call_1", "read", r#"{"path":"a.rs"}"#), call("call_2", "list", r#"{"path":"."}"#)];
        row(recorded!("no_index.sse"), &parts, used(12, 5, 0, 0), Stop::ToolUse);
        let refused = Stop::Refused("content_filter".into());
        row(recorded!("content_filter.sse"), &[Part::text("I")], used(0, 0, 0, 0), refused);
        let refused = Stop::Refused("I can't help with that.".into());
        row(recorded!("refusal.sse"), &[], used(0, 0, 0, 0), refused);
        row(recorded!("broken_call.sse"), &[call("call_x", "write", "{}")], used(0, 0, 0, 0), Stop::Length);
    }

    #[test]
    fn what_is_no_answer() {
        let trouble = |stream: &str| decode(stream).expect_err(stream);
        assert!(trouble(recorded!("error.sse")).transient());
        assert_eq!(trouble(recorded!("cut.sse")).kind, TroubleKind::CutOff);
        assert_eq!(trouble("").kind, TroubleKind::CutOff);
        assert_eq!(trouble("data: [DONE]\n\n").kind, TroubleKind::CutOff);
        let broken = trouble(recorded!("openrouter_error.sse"));
        assert_eq!((broken.kind, broken.status), (TroubleKind::Broken, Some(502)));
        let refused = trouble(recorded!("groq_error.sse"));
        assert_eq!((refused.kind, refused.status), (TroubleKind::Refused, Some(400)));
        assert!(refused.to_string().contains("Failed to call a function"));
        assert_eq!(trouble("data: {\"choices\":[{\"del\n\n").kind, TroubleKind::Garbled);
        assert_eq!(
            trouble("data: {\"error\":\"model runner has unexpectedly stopped\"}\n\n").kind,
            TroubleKind::Refused
        );
        assert_eq!(trouble("data: {\"object\":\"error\",\"message\":\"x\",\"code\":503}\n\n").status, Some(503));
        let resources = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"insufficient_system_resource\"}]}\n\n";
        assert_eq!(trouble(resources).kind, TroubleKind::Broken);
    }

    #[test]
    fn an_end_is_a_reason_or_the_last_event() {
        let chunk = |finish: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"x\"}}{finish}}}]}}\n\n");
        let stop = |stream: &str| decode(stream).map(|answer| answer.stop);
        assert_eq!(stop(&chunk(",\"finish_reason\":\"stop\"")), Ok(Stop::Done));
        assert_eq!(stop(&(chunk("") + "data: [DONE]\n\n")), Ok(Stop::Done));
        assert_eq!(stop(&chunk(",\"finish_reason\":\"model_length\"")), Ok(Stop::Length));
        assert_eq!(stop(&chunk(",\"finish_reason\":\"tool_calls\"")), Ok(Stop::Done));
        assert_eq!(stop(&chunk(",\"finish_reason\":\"tomorrow\"")), Ok(Stop::Done));
    }

    #[test]
    fn bodies_in_one_piece() {
        let whole = |body: &str| {
            let mut decoder = Box::<Decoder>::default();
            decoder.whole(body)?;
            decoder.finish()
        };
        let answer = Answer { parts: vec![Part::text("Hello!")], usage: used(19, 10, 0, 0), stop: Stop::Done };
        assert_eq!(whole(recorded!("whole.json")), Ok(answer));
        let throttled = whole(recorded!("error.json")).expect_err("an error");
        assert_eq!((throttled.kind, throttled.status), (TroubleKind::Throttled, Some(429)));
        let kind = |body: &str| whole(body).expect_err(body).kind;
        assert_eq!(kind("<html>"), TroubleKind::Garbled);
        assert_eq!(kind("{}"), TroubleKind::Garbled);
        assert_eq!(kind("[{\"error\":{\"code\":401,\"message\":\"no\"}}]"), TroubleKind::Denied);
        assert_eq!(kind("{\"detail\":\"Internal Server Error\"}"), TroubleKind::Broken);
    }

    #[test]
    fn deltas() {
        let mut decoder = Box::<Decoder>::default();
        let mut deltas = |delta: Value| {
            let data = json!({ "choices": [{ "delta": delta }] }).to_string();
            decoder.event(&sse::Event { name: None, data }).expect("a chunk")
        };
        assert_eq!(deltas(json!({ "role": "assistant", "content": "" })), []);
        assert_eq!(
            deltas(json!({ "reasoning": "a", "reasoning_content": "a", "content": "b" })),
            [Delta::Thinking("a".into()), Delta::Text("b".into())],
        );
        let call = json!({ "tool_calls": [{ "index": 0, "function": { "name": "f", "arguments": "{" } }] });
        assert_eq!(deltas(call), [Delta::Call("{".into())]);
    }

    fn counted(usage: Value) -> Usage {
        tokens(&usage)
    }

    #[test]
    fn counts() {
        assert_eq!(
            counted(json!({ "prompt_tokens": 10, "cached_tokens": "4", "completion_tokens": -1 })),
            used(6, 0, 4, 0)
        );
        // A proxy that counts the cache beside the prompt.
        let beside = json!({ "prompt_tokens": 3, "prompt_tokens_details": { "cached_tokens": 100 } });
        assert_eq!(counted(beside), used(3, 0, 100, 0));
        let xai = json!({
            "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 22,
            "completion_tokens_details": { "reasoning_tokens": 7 },
        });
        assert_eq!(counted(xai), used(10, 12, 0, 0));
    }

    fn request(turns: Vec<Turn>) -> Request {
        Request { model: dialects::model("llama3"), turns, ..Request::default() }
    }

    fn result(id: &str, parts: Vec<Part>) -> Turn {
        Turn::Result(ToolOutcome { call: id.into(), name: "read".into(), parts, is_error: false })
    }

    #[test]
    fn a_plain_server_gets_a_plain_body() {
        let mut request = request(vec![Turn::user("Hi"), Turn::user("there")]);
        request.system = Some("Be short.".into());
        request.max_tokens = Some(100);
        request.reasoning = Reasoning::Effort(Effort::High);
        request.cache = Cache::Prefix("session".into());
        let encoded = encode(&request, Delivery::Stream);
        assert_eq!(encoded.path, "/chat/completions");
        let body = json!({
            "model": "llama3",
            "messages": [{ "role": "system", "content": "Be short." }, { "role": "user", "content": "Hi\n\nthere" }],
            "max_tokens": 100,
            "stream": true,
            "stream_options": { "include_usage": true },
        });
        assert_eq!(encoded.body, body);
        assert_eq!(encode(&request, Delivery::Whole).body.get("stream"), None);
    }

    #[test]
    fn calls_results_and_images() {
        let image = Part::Image { mime: "image/png".into(), data: "AAAA".into() };
        let mut request = request(vec![
            Turn::user("Look"),
            Turn::Assistant(vec![
                thinking("hm"),
                call("call_1|fc_1", "read", r#"{"path":"a"}"#),
                call("call_2", "read", "broken"),
            ]),
            result("call_2", vec![]),
            result("call_1|fc_1", vec![Part::text("a"), image.clone()]),
            Turn::User(vec![Part::text("And?")]),
        ]);
        request.tools = vec![json!({ "name": "read", "description": "Reads.", "inputSchema": { "type": "object" } })];
        request.tool_choice = ToolChoice::None;
        let body = encode(&request, Delivery::Whole).body;
        let function = |arguments: &str| json!({ "name": "read", "arguments": arguments });
        let messages = json!([
            { "role": "user", "content": "Look" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "call_1", "type": "function", "function": function(r#"{"path":"a"}"#) },
                { "id": "call_2", "type": "function", "function": function("{}") },
            ] },
            { "role": "tool", "tool_call_id": "call_2", "content": "(no output)" },
            { "role": "tool", "tool_call_id": "call_1", "content": "a" },
            { "role": "user", "content": [
                { "type": "text", "text": IMAGES },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
                { "type": "text", "text": "And?" },
            ] },
        ]);
        assert_eq!(body["messages"], messages);
        assert_eq!(body["tool_choice"], "none");
        let parameters = json!({ "type": "object" });
        let function = json!({ "name": "read", "description": "Reads.", "parameters": parameters });
        assert_eq!(body["tools"], json!([{ "type": "function", "function": function }]));

        request.turns.pop();
        let last = encode(&request, Delivery::Whole).body["messages"][4].clone();
        assert_eq!((&last["role"], last["content"].as_array().map(Vec::len)), (&json!("user"), Some(2)));
    }

    #[test]
    fn ids_for_mistral_and_thinking_for_deepseek() {
        let turns = vec![
            Turn::user("Go"),
            Turn::Assistant(vec![thinking("hm"), call("call_longer_than_nine", "f", "{}")]),
            result("call_longer_than_nine", vec![Part::text("x")]),
        ];
        let body = |model: &str| {
            encode(&Request { model: dialects::model(model), ..request(turns.clone()) }, Delivery::Whole).body
        };
        let mistral = body("mistralai/devstral-small");
        let id = mistral["messages"][1]["tool_calls"][0]["id"].as_str().expect("an id");
        assert!(id.len() == 9 && id.chars().all(|it| it.is_ascii_alphanumeric()), "{id}");
        assert_eq!(mistral["messages"][2]["tool_call_id"], id);
        assert_eq!(mistral["messages"][1].get("reasoning_content"), None);
        assert_eq!(body("deepseek-v4-pro")["messages"][1]["reasoning_content"], "hm");
        assert_eq!(body("moonshotai/Kimi-K2.5")["messages"][1]["reasoning_content"], "hm");
    }

    #[test]
    fn limits_and_caches_are_openais_own() {
        let body = |model: &str| {
            let request = Request {
                model: dialects::model(model),
                max_tokens: Some(1000),
                reasoning: Reasoning::Effort(Effort::Low),
                cache: Cache::Prefix("s".repeat(70)),
                ..request(vec![Turn::user("x")])
            };
            encode(&request, Delivery::Whole).body
        };
        let row = |model: &str, new: Option<u64>, old: Option<u64>, key: bool| {
            let body = body(model);
            let found = (body["max_completion_tokens"].as_u64(), body["max_tokens"].as_u64());
            assert_eq!(found, (new, old), "{model}");
            assert_eq!(body["prompt_cache_key"].as_str().map(str::len), key.then_some(64), "{model}");
        };
        row("gpt-5.2", Some(1000 + 4096), None, true);
        row("o3", Some(1000 + 4096), None, true);
        row("gpt-5-chat-latest", Some(1000), None, true);
        row("gpt-4o-mini", None, Some(1000), true);
        row("chatgpt-4o-latest", None, Some(1000), true);
        row("gpt-oss:20b", None, Some(1000), false);
        row("olmo-3", None, Some(1000), false);
    }

    /// Every rule of the format that a conversation can break.
    fn check(messages: &[Value]) {
        let mut ids = std::collections::HashSet::new();
        let mut open: Vec<&str> = Vec::new();
        let mut before = "";
        for message in messages {
            let role = message["role"].as_str().expect("a role");
            let content = &message["content"];
            assert!(role == "tool" || open.is_empty(), "without a result: {open:?}");
            match role {
                "user" => assert!(before != "user" && !content.is_null()),
                "assistant" => {
                    assert!(before == "user" || before == "tool", "{before}");
                    let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
                    assert!(content.is_string() || !calls.is_empty());
                    for call in calls {
                        let id = call["id"].as_str().expect("an id");
                        assert!(ids.insert(id), "twice: {id}");
                        open.push(id);
                    }
                }
                "tool" => {
                    let id = message["tool_call_id"].as_str();
                    let place = open.iter().position(|it| Some(*it) == id).expect("its call");
                    open.remove(place);
                    assert!(!content.as_str().expect("a text").is_empty());
                }
                other => panic!("{other}"),
            }
            before = role;
        }
        assert!(open.is_empty());
        assert_eq!(messages[0]["role"], "user");
    }

    proptest! {
        #[test]
        fn whatever_was_said_is_valid(turns in steps::tests::any_conversation(), at in 0..3usize) {
            let model = ["llama3", "deepseek-v4-pro", "devstral"][at];
            let body = encode(&Request { model: dialects::model(model), ..request(turns) }, Delivery::Stream).body;
            check(body["messages"].as_array().expect("messages"));
        }
    }
}
