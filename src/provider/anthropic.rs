//! Anthropic's Messages, also as other providers offer it.

use super::{
    Answer, Cache, Delivery, Delta, Effort, Encoded, Part, Reasoning, Request, Stop, ToolChoice,
    format::{Decode, WireFormat},
    reading, sse,
    steps::{self, Call, Content, Ids, Returned, Said, Step, Tool},
    trouble::{Trouble, TroubleKind},
};
use crate::conversation::message::Usage;
use serde::Deserialize;
use serde_json::{Value, json};

/// The differences between models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dialect {
    /// The form of thinking.
    pub thinking: Thinking,
    /// The form of a request without thinking.
    pub off: Off,
    /// The model takes its earlier thinking back. Some models bind it to every byte before it (system prompt, tools,
    /// conversation) and refuse the request after a compaction or an edit; a request without any thinking is always
    /// valid.
    pub replays_thinking: bool,
    /// The model continues an answer at the end of a conversation, unless the request asks it to think.
    pub continues_answers: bool,
}

/// The form of thinking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// The model does not think.
    Unsupported,
    /// A budget in tokens.
    #[default]
    Budget,
    /// An effort; the model decides how much to think.
    Adaptive,
}

/// The form of a request without thinking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Off {
    /// The model thinks only when a request asks for it.
    #[default]
    Omitted,
    /// `disabled`.
    Disabled,
    /// `between_tools`, the least of a model that cannot be told not to think.
    BetweenTools,
    /// A low effort, for a model that has neither.
    LowEffort,
}

impl Default for Dialect {
    fn default() -> Self {
        Self { thinking: Thinking::Budget, off: Off::Omitted, replays_thinking: true, continues_answers: true }
    }
}

/// This wire format.
pub(super) struct Anthropic;

impl WireFormat for Anthropic {
    fn encode(&self, request: &Request, delivery: Delivery) -> Encoded {
        encode(request, delivery)
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("x-api-key", key.to_owned())
    }

    fn last_events(&self) -> &'static [&'static str] {
        &["message_stop"]
    }

    fn decoder(&self) -> Box<dyn Decode> {
        Box::<Decoder>::default()
    }
}

/// The path and the body of a request.
fn encode(request: &Request, delivery: Delivery) -> Encoded {
    let dialect = &request.model.dialect.anthropic;
    let steps = steps::steps(&request.turns, Ids::UpTo(64));
    let fields = dialect.thinking_fields(request, last_call_has_its_thinking(&steps));
    let mut body = json!({ "model": request.model.id, "max_tokens": fields.max_tokens });
    let cached = request.cache != Cache::Never;
    let system = request.system.as_deref().filter(|text| !text.trim().is_empty());
    if let Some(text) = system {
        body["system"] = json!([{ "type": "text", "text": text }]);
        mark(&mut body["system"][0], cached);
    }
    let given: Vec<Value> = steps::tools(&request.tools).map(tool).collect();
    let none_to_call = given.is_empty();
    // A conversation that uses tools is refused without them, so that stand-ins must do.
    let mut tools = if none_to_call { stand_ins(&steps) } else { given };
    if let Some(last) = tools.last_mut() {
        mark(last, cached && system.is_none());
        body["tools"] = tools.into();
        if none_to_call || request.tool_choice == ToolChoice::None {
            body["tool_choice"] = json!({ "type": "none" });
        }
    }
    let mut messages = messages(&steps, dialect, fields.asks());
    if cached {
        let users = messages.iter_mut().rev().filter(|message| message["role"] == "user");
        for user in users.take(2) {
            if let Some(last) = user["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
                mark(last, true);
            }
        }
    }
    body["messages"] = messages.into();
    if let Some(thinking) = fields.thinking {
        body["thinking"] = thinking;
    }
    if let Some(effort) = fields.effort {
        body["output_config"] = json!({ "effort": effort });
    }
    if delivery == Delivery::Stream {
        body["stream"] = true.into();
    }
    Encoded { path: "/v1/messages".into(), body }
}

/// The limit of an answer where a request has none, in tokens.
const MAX_TOKENS: u64 = 8_192;

/// The output limit that each model with a thinking budget has at least, in tokens; each adaptive model has twice that.
const MOST_WITH_BUDGET: u64 = 32_000;
const MOST_BY_ITSELF: u64 = 64_000;

/// The least budget there is, and the least that is left for the answer.
const LEAST: u64 = 1_024;

/// A user message behind a conversation that ends with an answer, for a model that does not continue answers.
const GO_ON: &str = "(Go on.)";

/// The fields of a request that set the thinking.
struct ThinkingFields {
    max_tokens: u64,
    thinking: Option<Value>,
    effort: Option<&'static str>,
}

impl ThinkingFields {
    /// Whether the request asks the model to think.
    fn asks(&self) -> bool {
        self.thinking.as_ref().is_some_and(|it| it["type"] == "enabled" || it["type"] == "adaptive")
    }
}

impl Dialect {
    /// Sets the thinking of a request. `may_have_budget`: see `last_call_has_its_thinking`.
    fn thinking_fields(&self, request: &Request, may_have_budget: bool) -> ThinkingFields {
        let ceiling = request.ceiling.unwrap_or(u64::MAX);
        let max_tokens = request.max_tokens.unwrap_or(MAX_TOKENS).min(ceiling);
        let plain = ThinkingFields { max_tokens, thinking: None, effort: None };
        let raised = |room: u64, most: u64| max_tokens.max(max_tokens.saturating_add(room).min(most)).min(ceiling);
        match (request.reasoning, self.thinking) {
            (Reasoning::Unsaid, _) | (Reasoning::Effort(_), Thinking::Unsupported) => plain,
            (Reasoning::Effort(effort), Thinking::Adaptive) => ThinkingFields {
                max_tokens: raised(effort.room(), MOST_BY_ITSELF),
                thinking: Some(json!({ "type": "adaptive" })),
                effort: Some(match effort {
                    Effort::Minimal | Effort::Low => "low",
                    Effort::Medium => "medium",
                    Effort::High => "high",
                    Effort::Highest => "max",
                }),
            },
            (Reasoning::Effort(effort), Thinking::Budget) => {
                let max_tokens = raised(effort.room(), MOST_WITH_BUDGET);
                let budget = effort.room().min(max_tokens.saturating_sub(LEAST));
                if budget < LEAST || !may_have_budget {
                    return plain;
                }
                let thinking = Some(json!({ "type": "enabled", "budget_tokens": budget }));
                ThinkingFields { max_tokens, thinking, effort: None }
            }
            (Reasoning::Off, _) => match self.off {
                Off::Omitted => plain,
                Off::Disabled => ThinkingFields { thinking: Some(json!({ "type": "disabled" })), ..plain },
                Off::BetweenTools => ThinkingFields { thinking: Some(json!({ "type": "between_tools" })), ..plain },
                Off::LowEffort => {
                    let max_tokens = raised(Effort::Low.room(), MOST_BY_ITSELF);
                    ThinkingFields { max_tokens, effort: Some("low"), ..plain }
                }
            },
        }
    }
}

/// Whether the last answer may be followed by a request with a budget: the server refuses a budget where an answer calls
/// tools and does not begin with its thinking.
fn last_call_has_its_thinking(steps: &[Step<'_>]) -> bool {
    let last = steps.iter().rev().find_map(|step| match step {
        Step::Answer { said, .. } => Some(said),
        Step::User(_) => None,
    });
    last.is_none_or(|said| {
        steps::calls(said).next().is_none() || matches!(said.first(), Some(Said::Thinking { signature: Some(_), .. }))
    })
}

fn mark(block: &mut Value, cached: bool) {
    if cached {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
}

fn tool(tool: Tool<'_>) -> Value {
    let mut schema = tool.schema.cloned().unwrap_or_else(|| json!({}));
    schema["type"] = "object".into();
    json!({ "name": tool.name, "description": tool.description, "input_schema": schema })
}

/// A tool for each name that is called in `steps`.
fn stand_ins(steps: &[Step<'_>]) -> Vec<Value> {
    let mut names: Vec<&str> = Vec::new();
    for step in steps {
        let Step::Answer { said, .. } = step else { continue };
        for Call { name, .. } in steps::calls(said) {
            if !names.contains(&name.as_ref()) {
                names.push(name);
            }
        }
    }
    names.into_iter().map(|name| json!({ "name": name, "input_schema": { "type": "object" } })).collect()
}

fn messages(steps: &[Step<'_>], dialect: &Dialect, thinks: bool) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    // The results of the answer before: the next user message begins with them.
    let mut results: Vec<Value> = Vec::new();
    for step in steps {
        match step {
            Step::User(content) => {
                results.extend(content.iter().map(block));
                messages.push(json!({ "role": "user", "content": std::mem::take(&mut results) }));
            }
            Step::Answer { said, results: returned } => {
                if !results.is_empty() {
                    messages.push(json!({ "role": "user", "content": std::mem::take(&mut results) }));
                }
                messages.push(json!({ "role": "assistant", "content": answer(said, dialect) }));
                results.extend(returned.iter().map(result));
            }
        }
    }
    if !results.is_empty() {
        messages.push(json!({ "role": "user", "content": results }));
    }
    if messages.last().is_some_and(|last| last["role"] == "assistant") {
        if dialect.continues_answers && !thinks {
            trim_end(messages.last_mut());
        } else {
            messages.push(json!({ "role": "user", "content": [{ "type": "text", "text": GO_ON }] }));
        }
    }
    messages
}

fn result(result: &Returned<'_>) -> Value {
    let content = match result.content.as_slice() {
        [] => "(no output)".into(),
        [Content::Text(text)] => text.as_ref().into(),
        content => content.iter().map(block).collect::<Value>(),
    };
    let mut block = json!({ "type": "tool_result", "tool_use_id": result.id, "content": content });
    // A failure may only be told in text.
    if result.is_error && result.content.iter().all(|it| matches!(it, Content::Text(_))) {
        block["is_error"] = true.into();
    }
    block
}

fn block(content: &Content<'_>) -> Value {
    match content {
        Content::Text(text) => json!({ "type": "text", "text": text }),
        Content::Image { mime, data } => {
            json!({ "type": "image", "source": { "type": "base64", "media_type": mime, "data": data } })
        }
    }
}

fn answer(said: &[Said<'_>], dialect: &Dialect) -> Vec<Value> {
    let block = |said: &Said<'_>| match said {
        Said::Text { text, .. } => (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text })),
        Said::Thinking { .. } if !dialect.replays_thinking => None,
        Said::Thinking { signature, redacted: true, .. } => {
            Some(json!({ "type": "redacted_thinking", "data": (*signature)? }))
        }
        Said::Thinking { text, signature, .. } => {
            Some(json!({ "type": "thinking", "thinking": text, "signature": (*signature)? }))
        }
        Said::Call(call) => {
            let input: Value = serde_json::from_str(call.arguments).unwrap_or_else(|_| json!({}));
            Some(json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input }))
        }
    };
    // Thinking that nothing followed is not taken back.
    let end = said.iter().rposition(Said::is_something).map_or(0, |last| last + 1);
    said[..end].iter().filter_map(block).collect()
}

/// Trims the text at the end of an answer that the model continues: the server refuses white space there.
fn trim_end(answer: Option<&mut Value>) {
    let blocks = answer.and_then(|answer| answer["content"].as_array_mut());
    if let Some(Value::String(text)) = blocks.and_then(|blocks| blocks.last_mut()?.get_mut("text")) {
        text.truncate(text.trim_end().len());
    }
}

/// An answer while it comes.
#[derive(Debug, Default)]
struct Decoder {
    /// The blocks, by the provider's number for each.
    blocks: Vec<(u64, Growing)>,
    usage: Usage,
    stop: Option<Stop>,
    /// The provider said that nothing follows.
    done: bool,
}

#[derive(Debug)]
enum Growing {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Redacted(String),
    Call {
        id: String,
        name: String,
        /// The arguments at its beginning; in a stream an empty object.
        given: String,
        /// The arguments that came in pieces.
        arguments: String,
    },
    /// A block of a kind that this version does not know.
    Unknown,
}

impl Decode for Decoder {
    fn event(&mut self, event: &sse::Event) -> Result<Vec<Delta>, Trouble> {
        let data = event.data.trim();
        // Some gateways end every stream as OpenAI does.
        if data.is_empty() || data == "[DONE]" {
            return Ok(Vec::new());
        }
        let value = reading::json(data)?;
        let kind = value["type"].as_str().or(event.name.as_deref()).unwrap_or_default();
        failed(kind, &value, data)?;
        let at = reading::count(&value["index"]).unwrap_or(0);
        match kind {
            "message_start" => self.count(&value["message"]["usage"]),
            "content_block_start" => return Ok(self.begin(at, &value["content_block"])),
            "content_block_delta" => return Ok(self.go_on(at, &value["delta"]).into_iter().collect()),
            "message_delta" => {
                self.count(&value["usage"]);
                self.stop(&value["delta"]);
            }
            "message_stop" => self.done = true,
            _ => {}
        }
        Ok(Vec::new())
    }

    fn whole(&mut self, body: &str) -> Result<(), Trouble> {
        let value = reading::json(body)?;
        failed(value["type"].as_str().unwrap_or_default(), &value, body)?;
        let Some(blocks) = value["content"].as_array() else {
            return Err(Trouble::new(TroubleKind::Garbled, body));
        };
        for (at, block) in (0..).zip(blocks) {
            self.begin(at, block);
        }
        self.count(&value["usage"]);
        self.stop(&value);
        self.done = true;
        Ok(())
    }

    /// A call whose arguments are no object keeps its place with empty arguments: they broke off where the answer reached
    /// its limit.
    fn finish(self: Box<Self>) -> Result<Answer, Trouble> {
        if !self.done {
            return Err(Trouble::new(TroubleKind::CutOff, "the stream ended without its message_stop"));
        }
        let mut parts = Vec::new();
        let mut calls = 0;
        for (_, block) in self.blocks {
            parts.push(match block {
                Growing::Text(text) if !text.is_empty() => Part::text(text),
                Growing::Thinking { text, signature } if !text.is_empty() || !signature.is_empty() => {
                    Part::Thinking { text, signature: (!signature.is_empty()).then_some(signature), redacted: false }
                }
                Growing::Redacted(data) => {
                    Part::Thinking { text: String::new(), signature: Some(data), redacted: true }
                }
                Growing::Call { id, name, given, arguments } => {
                    calls += 1;
                    let arguments = if arguments.is_empty() { given } else { arguments };
                    let arguments = reading::arguments(&arguments).to_owned();
                    Part::Call { id: reading::call_id(id, calls), name, arguments, signature: None }
                }
                Growing::Text(_) | Growing::Thinking { .. } | Growing::Unknown => continue,
            });
        }
        let stop = match self.stop.unwrap_or_default() {
            Stop::Done if calls > 0 => Stop::ToolUse,
            Stop::ToolUse if calls == 0 => Stop::Done,
            stop => stop,
        };
        let Usage { input, output, cache_read, cache_write, .. } = self.usage;
        let usage = Usage { total: input + output + cache_read + cache_write, ..self.usage };
        Ok(Answer { parts, usage, stop })
    }
}

impl Decoder {
    /// Takes a block as it begins, or all of it.
    fn begin(&mut self, at: u64, block: &Value) -> Vec<Delta> {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        let mut deltas = Vec::new();
        let block = match block["type"].as_str().unwrap_or_default() {
            "text" => {
                deltas.push(Delta::Text(text("text")));
                Growing::Text(text("text"))
            }
            "thinking" => {
                deltas.push(Delta::Thinking(text("thinking")));
                Growing::Thinking { text: text("thinking"), signature: text("signature") }
            }
            "redacted_thinking" => Growing::Redacted(text("data")),
            "tool_use" => Growing::Call {
                id: text("id"),
                name: text("name"),
                given: block["input"].to_string(),
                arguments: String::new(),
            },
            _ => Growing::Unknown,
        };
        self.blocks.push((at, block));
        deltas.retain(|delta| matches!(delta, Delta::Text(it) | Delta::Thinking(it) if !it.is_empty()));
        deltas
    }

    fn go_on(&mut self, at: u64, delta: &Value) -> Option<Delta> {
        let text = |name: &str| delta[name].as_str().filter(|text| !text.is_empty());
        let block = self.blocks.iter_mut().rev().find(|(index, _)| *index == at);
        match (block.map(|(_, block)| block)?, delta["type"].as_str()?) {
            (Growing::Text(so_far), "text_delta") => {
                so_far.push_str(text("text")?);
                Some(Delta::Text(text("text")?.to_owned()))
            }
            (Growing::Thinking { text: so_far, .. }, "thinking_delta") => {
                so_far.push_str(text("thinking")?);
                Some(Delta::Thinking(text("thinking")?.to_owned()))
            }
            (Growing::Thinking { signature, .. }, "signature_delta") => {
                signature.push_str(text("signature")?);
                None
            }
            (Growing::Call { arguments, .. }, "input_json_delta") => {
                arguments.push_str(text("partial_json")?);
                Some(Delta::Call(text("partial_json")?.to_owned()))
            }
            _ => None,
        }
    }

    /// Later counts replace earlier ones, but for the zeros of gateways that only know one half at a time.
    fn count(&mut self, usage: &Value) {
        let places = [
            (&mut self.usage.input, "input_tokens"),
            (&mut self.usage.output, "output_tokens"),
            (&mut self.usage.cache_read, "cache_read_input_tokens"),
            (&mut self.usage.cache_write, "cache_creation_input_tokens"),
        ];
        for (place, name) in places {
            if let Some(count @ 1..) = reading::count(&usage[name]) {
                *place = count;
            }
        }
    }

    fn stop(&mut self, end: &Value) {
        let Some(reason) = end["stop_reason"].as_str() else { return };
        let details = &end["stop_details"];
        let why = [&details["explanation"], &details["category"]].into_iter().find_map(|it| it.as_str());
        self.stop = Some(match reason {
            "max_tokens" | "model_context_window_exceeded" => Stop::Length,
            "tool_use" => Stop::ToolUse,
            "refusal" => Stop::Refused(why.unwrap_or(reason).to_owned()),
            _ => Stop::Done,
        });
    }
}

/// An error in the place of an answer, or of an event of it.
fn failed(kind: &str, value: &Value, said: &str) -> Result<(), Trouble> {
    match &value["error"] {
        error if kind == "error" || error.is_object() || error.is_string() => Err(reading::failure(error, said)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{
        Api, ToolOutcome, Turn,
        turns::{Target, turns},
    };
    use super::*;
    use crate::models::dialects;
    use proptest::prelude::*;
    use std::{borrow::Cow, collections::HashSet};

    macro_rules! recorded {
        ($name:literal) => {
            include_str!(concat!("../../tests/recordings/anthropic/", $name))
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

    fn thinking(text: &str, signature: Option<&str>, redacted: bool) -> Part {
        Part::Thinking { text: text.into(), signature: signature.map(str::to_owned), redacted }
    }

    fn call(id: &str, name: &str, arguments: &str) -> Part {
        Part::Call { id: id.into(), name: name.into(), arguments: arguments.into(), signature: None }
    }

    fn result(id: &str, parts: Vec<Part>, is_error: bool) -> Turn {
        Turn::Result(ToolOutcome { call: id.into(), name: "read".into(), parts, is_error })
    }

    fn used(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
        Usage { input, output, cache_read, cache_write, total: input + output + cache_read + cache_write }
    }

    #[test]
    fn recordings() {
        let row = |stream: &str, parts: &[Part], usage: Usage, stop: Stop| {
            assert_eq!(decode(stream), Ok(Answer { parts: parts.to_vec(), usage, stop }));
        };
        row(recorded!("text.sse"), &[Part::text("Grüße, Welt 🦀")], used(25, 15, 0, 0), Stop::Done);
        let parts = [
            thinking("I should look.", Some("EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/=="), false),
            thinking("", Some("EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw"), true),
            Part::text("Let me look."),
            call("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "read", r#"{"path": "a.rs"}"#),
            call("toolu_02", "list", "{}"),
        ];
        row(recorded!("thinking_and_call.sse"), &parts, used(472, 89, 0, 0), Stop::ToolUse);
        let parts = [thinking("", Some("EosnCkYICxIMMb3L"), false), Part::text("7.")];
        row(recorded!("hidden_thinking.sse"), &parts, used(25, 34, 0, 0), Stop::Done);
        row(recorded!("cached.sse"), &[Part::text("Hi.")], used(4, 6, 1800, 248), Stop::Done);
        row(recorded!("length.sse"), &[call("toolu_03", "write", "{}")], used(25, 64, 0, 0), Stop::Length);
        let refused = Stop::Refused("This request was declined.".into());
        row(recorded!("refusal.sse"), &[], used(25, 1, 0, 0), refused);
        row(recorded!("unknown.sse"), &[Part::text("Found it.")], used(25, 9, 0, 0), Stop::Done);
    }

    #[test]
    fn what_is_no_answer() {
        let kind = |stream: &str| decode(stream).expect_err(stream).kind;
        assert!(decode(recorded!("error.sse")).expect_err("an error").transient());
        assert_eq!(kind(recorded!("cut.sse")), TroubleKind::CutOff);
        assert_eq!(kind(""), TroubleKind::CutOff);
        assert_eq!(kind("event: message_start\ndata: {\"type\":\"mess\n\n"), TroubleKind::Garbled);
        let denied = "data: {\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}}\n\n";
        assert_eq!(kind(denied), TroubleKind::Denied);
    }

    #[test]
    fn bodies_in_one_piece() {
        let whole = |body: &str| {
            let mut decoder = Box::<Decoder>::default();
            decoder.whole(body)?;
            decoder.finish()
        };
        let parts = vec![
            thinking("Hm.", Some("Eq=="), false),
            Part::text("Hello!"),
            call("toolu_1", "read", r#"{"path":"a.rs"}"#),
        ];
        let answer = Answer { parts, usage: used(12, 6, 0, 0), stop: Stop::ToolUse };
        assert_eq!(whole(recorded!("whole.json")), Ok(answer));
        assert_eq!(whole(recorded!("error.json")).expect_err("an error").kind, TroubleKind::Refused);
        assert_eq!(whole("{}").expect_err("no answer").kind, TroubleKind::Garbled);
    }

    #[test]
    fn deltas() {
        let mut decoder = Box::<Decoder>::default();
        let mut deltas = |data: Value| {
            let event = sse::Event { name: None, data: data.to_string() };
            decoder.event(&event).expect("an event")
        };
        let begin = |block: Value| json!({ "type": "content_block_start", "index": 0, "content_block": block });
        let more = |delta: Value| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
        assert_eq!(deltas(begin(json!({ "type": "text", "text": "" }))), []);
        assert_eq!(deltas(more(json!({ "type": "text_delta", "text": "a" }))), [Delta::Text("a".into())]);
        assert_eq!(deltas(begin(json!({ "type": "tool_use", "id": "1", "name": "f", "input": {} }))), []);
        assert_eq!(deltas(more(json!({ "type": "input_json_delta", "partial_json": "{" }))), [Delta::Call("{".into())],);
        assert_eq!(deltas(json!({ "type": "ping" })), []);
    }

    fn request(turns: Vec<Turn>) -> Request {
        Request { model: dialects::model("claude-sonnet-4-5"), turns, ..Request::default() }
    }

    #[test]
    fn a_conversation_with_everything() {
        let image = Part::Image { mime: "image/png".into(), data: "AAAA".into() };
        let mut request = request(vec![
            Turn::user("Look"),
            Turn::Assistant(vec![
                thinking("hm", Some("Sig"), false),
                thinking("", Some("Data"), true),
                thinking("nobody signed this", None, false),
                Part::text("I look."),
                call("call_1|fc_1", "read", r#"{"path":"a"}"#),
                call("call_2", "read", "broken"),
            ]),
            result("call_1|fc_1", vec![Part::text("a"), image], true),
            result("call_2", vec![], true),
            Turn::user("And?"),
        ]);
        request.system = Some("Be short.".into());
        request.tools = vec![json!({ "name": "read", "description": "Reads.", "inputSchema": { "properties": {} } })];
        request.tool_choice = ToolChoice::None;
        request.cache = Cache::Prefix("session".into());
        let ephemeral = json!({ "type": "ephemeral" });
        let image =
            json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } });
        let body = json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 8192,
            "system": [{ "type": "text", "text": "Be short.", "cache_control": ephemeral }],
            "tools": [{
                "name": "read", "description": "Reads.", "input_schema": { "properties": {}, "type": "object" },
            }],
            "tool_choice": { "type": "none" },
            "messages": [
                { "role": "user", "content": [{ "type": "text", "text": "Look", "cache_control": ephemeral }] },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "hm", "signature": "Sig" },
                    { "type": "redacted_thinking", "data": "Data" },
                    { "type": "text", "text": "I look." },
                    { "type": "tool_use", "id": "call_1", "name": "read", "input": { "path": "a" } },
                    { "type": "tool_use", "id": "call_2", "name": "read", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "call_1", "content": [{ "type": "text", "text": "a" }, image] },
                    { "type": "tool_result", "tool_use_id": "call_2", "content": "(no output)", "is_error": true },
                    { "type": "text", "text": "And?", "cache_control": ephemeral },
                ] },
            ],
            "stream": true,
        });
        let encoded = encode(&request, Delivery::Stream);
        assert_eq!(encoded, Encoded { path: "/v1/messages".into(), body });
    }

    #[test]
    fn tools_stand_there_where_they_are_used() {
        let turns = vec![
            Turn::user("Go"),
            Turn::Assistant(vec![call("1", "read", "{}"), call("2", "mcp.list", "{}"), call("3", "read", "{}")]),
            Turn::user("Now sum up."),
        ];
        let mut request = Request { cache: Cache::Prefix("s".into()), ..request(turns) };
        let body = encode(&request, Delivery::Whole).body;
        let tools = json!([
            { "name": "read", "input_schema": { "type": "object" } },
            { "name": "mcp_list", "input_schema": { "type": "object" }, "cache_control": { "type": "ephemeral" } },
        ]);
        assert_eq!((&body["tools"], &body["tool_choice"]), (&tools, &json!({ "type": "none" })));
        request.turns = vec![Turn::user("Hi")];
        request.tool_choice = ToolChoice::None;
        let body = encode(&request, Delivery::Whole).body;
        assert_eq!((body.get("tools"), body.get("tool_choice"), body.get("stream")), (None, None, None));
    }

    #[test]
    fn a_conversation_that_ends_with_an_answer() {
        let last = |model: &str, reasoning: Reasoning| {
            let turns = vec![Turn::user("Go"), Turn::Assistant(vec![Part::text("So far \n")])];
            let request = Request { model: dialects::model(model), reasoning, ..request(turns) };
            encode(&request, Delivery::Whole).body["messages"].as_array().and_then(|it| it.last().cloned())
        };
        let trimmed = json!({ "role": "assistant", "content": [{ "type": "text", "text": "So far" }] });
        let answered = json!({ "role": "user", "content": [{ "type": "text", "text": GO_ON }] });
        assert_eq!(last("claude-sonnet-4-5", Reasoning::Unsaid), Some(trimmed));
        assert_eq!(last("claude-sonnet-4-5", Reasoning::Effort(Effort::Low)), Some(answered.clone()));
        assert_eq!(last("claude-opus-4-6", Reasoning::Unsaid), Some(answered));
    }

    #[test]
    fn what_each_model_is_told_about_thinking() {
        let told = |model: &str, reasoning: Reasoning, max_tokens: u64| {
            let request = Request {
                model: dialects::model(model),
                reasoning,
                max_tokens: Some(max_tokens),
                ..Request::default()
            };
            let body = encode(&request, Delivery::Whole).body;
            json!([body["max_tokens"], body.get("thinking"), body["output_config"].get("effort")])
        };
        let row = |model: &str, reasoning: Reasoning, expected: Value| {
            assert_eq!(told(model, reasoning, 4000), expected, "{model} {reasoning:?}");
        };
        let (off, high) = (Reasoning::Off, Reasoning::Effort(Effort::High));
        let enabled = |budget: u64| json!({ "type": "enabled", "budget_tokens": budget });
        let adaptive = json!({ "type": "adaptive" });
        row("claude-3-5-haiku-latest", high, json!([4000, null, null]));
        row("claude-sonnet-4-5", off, json!([4000, null, null]));
        row("claude-sonnet-4-5", Reasoning::Effort(Effort::Minimal), json!([5024, enabled(1024), null]));
        row("claude-sonnet-4-5", high, json!([20384, enabled(16384), null]));
        row("kimi-k2.5", high, json!([20384, enabled(16384), null]));
        row("claude-opus-4-6", off, json!([4000, null, null]));
        row("claude-opus-4-6", high, json!([20384, adaptive, "high"]));
        row("claude-opus-4-8", Reasoning::Effort(Effort::Highest), json!([28576, adaptive, "max"]));
        row("claude-opus-5", off, json!([4000, { "type": "disabled" }, null]));
        row("claude-haiku-5-5", off, json!([4000, { "type": "disabled" }, null]));
        row("claude-sonnet-5-5", off, json!([4000, { "type": "between_tools" }, null]));
        row("claude-opus-5-5", off, json!([8096, null, "low"]));
        row("claude-fable-5", off, json!([8096, null, "low"]));
        row("claude-fable-5", Reasoning::Unsaid, json!([4000, null, null]));
        // A limit that leaves no room is not raised beyond what the model has.
        assert_eq!(told("claude-opus-4-1", high, 32_000), json!([32_000, enabled(16_384), null]));
        assert_eq!(told("claude-opus-4-1", high, 40_000), json!([40_000, enabled(16_384), null]));
    }

    #[test]
    fn thinking_that_is_bound_to_what_came_before_stays_away() {
        let turns = vec![
            Turn::user("Go"),
            Turn::Assistant(vec![thinking("hm", Some("Sig"), false), call("1", "f", "{}")]),
            result("1", vec![Part::text("x")], false),
        ];
        let body = |model: &str, reasoning: Reasoning, turns: &[Turn]| {
            let request = Request { model: dialects::model(model), reasoning, ..request(turns.to_vec()) };
            encode(&request, Delivery::Whole).body
        };
        let first = |model: &str| body(model, Reasoning::Unsaid, &turns)["messages"][1]["content"][0]["type"].clone();
        assert_eq!(first("claude-opus-5"), "thinking");
        for bound in ["claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-1", "claude-opus-6"] {
            assert_eq!(first(bound), "tool_use");
        }
        // Where thinking has a budget, a call that lost its thinking rules it out.
        let budget = Reasoning::Effort(Effort::Low);
        assert_eq!(body("claude-sonnet-4-5", budget, &turns)["thinking"]["type"], "enabled");
        let mut lost = turns.clone();
        lost[1] = Turn::Assistant(vec![call("1", "f", "{}")]);
        assert_eq!(body("claude-sonnet-4-5", budget, &lost).get("thinking"), None);
        assert_eq!(body("claude-sonnet-4-5", budget, &lost)["max_tokens"], 8192);
    }

    #[test]
    fn what_a_provider_signed_comes_back_as_it_was() {
        let target = Target { api: Api::Anthropic, provider: "anthropic", model: "claude-opus-4-8" };
        let answer = decode(recorded!("thinking_and_call.sse")).expect("an answer");
        let message = answer.message("anthropic-messages", target.provider, target.model, 0).to_string();
        let user = json!({ "role": "user", "content": "Go" }).to_string();
        let turns = turns([Cow::Owned(user), Cow::Owned(message)], &target);
        let request = Request { model: dialects::model(target.model), turns, ..Request::default() };
        let content = encode(&request, Delivery::Whole).body["messages"][1]["content"].clone();
        let signature = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/==";
        let data = "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw";
        assert_eq!(content[0], json!({ "type": "thinking", "thinking": "I should look.", "signature": signature }));
        assert_eq!(content[1], json!({ "type": "redacted_thinking", "data": data }));
        assert_eq!(content[3]["id"], "toolu_01T1x1fJ34qAmk2tNTrN7Up6");
    }

    /// Every rule of the format that a conversation can break.
    fn check(body: &Value) {
        let messages = body["messages"].as_array().expect("messages");
        assert_eq!(messages[0]["role"], "user");
        let mut ids = HashSet::new();
        let mut marks = 0;
        let mut open: Vec<&str> = Vec::new();
        for pair in messages.windows(2) {
            assert_ne!(pair[0]["role"], pair[1]["role"]);
        }
        for message in messages {
            let blocks = message["content"].as_array().expect("blocks");
            assert!(!blocks.is_empty());
            let results = blocks.iter().take_while(|block| block["type"] == "tool_result").count();
            for (at, block) in blocks.iter().enumerate() {
                marks += usize::from(block.get("cache_control").is_some());
                let id = |name: &str| block[name].as_str().expect("an id");
                match block["type"].as_str().expect("a type") {
                    "text" => assert!(!block["text"].as_str().expect("a text").trim().is_empty()),
                    "tool_use" => {
                        assert!((1..=64).contains(&id("id").len()));
                        assert!(id("id").chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-'));
                        assert!(ids.insert(id("id")), "twice: {}", id("id"));
                        assert!(block["input"].is_object() && body["tools"].is_array());
                        open.push(id("id"));
                    }
                    "tool_result" => {
                        assert!(at < results, "a result behind other content");
                        let place = open.iter().position(|it| *it == id("tool_use_id")).expect("its call");
                        open.remove(place);
                    }
                    "thinking" => assert!(block["signature"].is_string() && at + 1 < blocks.len()),
                    "redacted_thinking" => assert!(block["data"].is_string() && at + 1 < blocks.len()),
                    "image" => assert_eq!(block["source"]["type"], "base64"),
                    other => panic!("{other}"),
                }
            }
            assert!(message["role"] == "assistant" || open.is_empty(), "without a result: {open:?}");
        }
        assert!(marks <= 4 && open.is_empty());
    }

    proptest! {
        #[test]
        fn whatever_was_said_is_valid(turns in steps::tests::any_conversation(), at in 0..4usize, system: bool) {
            let model = ["claude-sonnet-4-5", "claude-opus-4-8", "claude-opus-5-5", "MiniMax-M2"][at];
            let request = Request {
                model: dialects::model(model),
                system: system.then(|| "s".into()),
                reasoning: Reasoning::Effort(Effort::Low),
                cache: Cache::Prefix("s".into()),
                ..request(turns)
            };
            check(&encode(&request, Delivery::Stream).body);
        }
    }
}
