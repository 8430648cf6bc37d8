//! Anthropic's Messages, also as other providers offer it.

mod answer;
pub mod support;
#[cfg(test)]
mod tests;

use self::answer::Decoder;
use super::{
    Cache, Delivery, Effort, Encoded, OnDemand, Reasoning, Request, ToolChoice,
    format::{Decode, WireFormat},
    steps::{self, Call, Content, Ids, Returned, Said, Step, Tool},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;

/// The differences between models.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dialect {
    /// The form of thinking.
    pub thinking: Thinking,
    /// The form of a request without thinking.
    pub off: Off,
    /// The model binds its thinking to every byte before it (system prompt, tools, conversation), and refuses a request
    /// with thinking after other bytes. A request without any thinking is always valid.
    pub binds_thinking: bool,
    /// The model continues an answer at the end of a conversation, unless the request asks it to think.
    pub continues_answers: bool,
    /// The model may compact a conversation on demand. Its provider says whether it does.
    pub compacts: bool,
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
        Self {
            thinking: Thinking::Budget,
            off: Off::Omitted,
            binds_thinking: false,
            continues_answers: true,
            compacts: false,
        }
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
    // After a block an answer may come first.
    let steps = match request.history.first() {
        None => steps::steps(&request.turns, Ids::UpTo(64)),
        Some(_) => steps::continued(&request.turns, Ids::UpTo(64)),
    };
    let fields = dialect.thinking_fields(request, &steps);
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
    let mut messages = messages(&steps, fields.replays);
    match request.compaction {
        None if request.question.is_some() => {}
        None => end_with_a_question(&mut messages, dialect, &fields),
        Some(_) if messages.last().is_some_and(|last| last["role"] == "assistant") => trim_end(messages.last_mut()),
        Some(_) => {}
    }
    if cached {
        let users = messages.iter_mut().rev().filter(|message| message["role"] == "user");
        for user in users.take(2) {
            if let Some(last) = user["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
                mark(last, true);
            }
        }
    }
    if let Some(question) = &request.question {
        messages.push(json!({ "role": "user", "content": [{ "type": "text", "text": question }] }));
    }
    let mut betas = Vec::new();
    if let Some(block) = request.history.first() {
        if messages.is_empty() {
            messages.push(json!({ "role": "user", "content": [{ "type": "text", "text": GO_ON }] }));
        }
        messages.insert(0, json!({ "role": "assistant", "content": [block] }));
        betas.push(COMPACTION);
    }
    body["messages"] = messages.into();
    if let Some(OnDemand { instructions }) = &request.compaction {
        body["compaction"] = json!({ "type": "summarize" });
        if let Some(instructions) = instructions {
            body["compaction"]["instructions"] = instructions.as_str().into();
        }
        betas.push(COMPACTION);
    }
    if let Some(thinking) = fields.thinking {
        body["thinking"] = thinking;
    }
    if fields.replays && dialect.binds_thinking {
        // Where the server finds other bytes all the same, it leaves the thinking out and refuses nothing.
        body["thinking"]["block_binding"] = json!({ "prefix_mismatch_behavior": "drop_block" });
        betas.push(BINDING_CONTROLS);
    }
    if let Some(effort) = fields.effort {
        body["output_config"] = json!({ "effort": effort });
    }
    if delivery == Delivery::Stream {
        body["stream"] = true.into();
    }
    betas.dedup();
    let headers = Some(("anthropic-beta", betas.join(","))).filter(|_| !betas.is_empty());
    Encoded { headers: headers.into_iter().collect(), ..Encoded::new("/v1/messages", body) }
}

/// The beta of compactions on demand. Each request with a block names it, too.
pub const COMPACTION: &str = "compact-2026-09-04";

/// The beta in which a request says what happens to thinking that is bound to other bytes.
const BINDING_CONTROLS: &str = "thinking-binding-controls-2026-08-01";

/// Whether an error is about the field that says what happens to bound thinking, or about its beta.
#[must_use]
pub fn is_about_binding(error: &str) -> bool {
    let is_of_header = error.contains("anthropic-beta") && !error.contains(COMPACTION);
    is_of_header
        || ["block_binding", "prefix_mismatch_behavior", BINDING_CONTROLS].iter().any(|name| error.contains(name))
}

/// The limit of an answer where a request has none, in tokens.
const MAX_TOKENS: u64 = 8_192;

/// The output limit that each model with a thinking budget has at least, in tokens; each adaptive model has twice that.
const MOST_WITH_BUDGET: u64 = 32_000;
const MOST_BY_ITSELF: u64 = 64_000;

/// The least budget there is, and the least that is left for the answer.
const LEAST: u64 = 1_024;

/// A user message after a conversation that ends with an answer, for a model that does not continue answers.
const GO_ON: &str = "(Go on.)";

/// The fields of a request that set the thinking.
struct ThinkingFields {
    max_tokens: u64,
    thinking: Option<Value>,
    effort: Option<&'static str>,
    /// Whether earlier thinking goes back.
    replays: bool,
}

impl ThinkingFields {
    /// Whether the request asks the model to think.
    fn asks(&self) -> bool {
        self.thinking.as_ref().is_some_and(|it| it["type"] == "enabled" || it["type"] == "adaptive")
    }
}

impl Dialect {
    /// Whether the model cannot be told not to think.
    #[must_use]
    pub fn thinks_at_each_level(&self) -> bool {
        self.off == Off::LowEffort
    }

    /// Sets the thinking of a request.
    fn thinking_fields(&self, request: &Request, steps: &[Step<'_>]) -> ThinkingFields {
        let mut fields = self.asked(request, last_call_has_its_thinking(steps));
        if !self.binds_thinking {
            return ThinkingFields { replays: true, ..fields };
        }
        if !request.has_bound_thinking || !has_thinking(steps) {
            return fields;
        }
        // The binding is a part of the thinking that is asked for. A model of this kind thinks without being asked, too.
        if fields.thinking.is_none() && self.thinks_at_each_level() {
            fields.thinking = Some(json!({ "type": "adaptive" }));
        }
        // The other forms have no place for the binding.
        ThinkingFields { replays: fields.asks(), ..fields }
    }

    /// The thinking that a request asks for. `may_have_budget`: see `last_call_has_its_thinking`.
    fn asked(&self, request: &Request, may_have_budget: bool) -> ThinkingFields {
        let ceiling = request.ceiling.unwrap_or(u64::MAX);
        let max_tokens = request.max_tokens.unwrap_or(MAX_TOKENS).min(ceiling);
        let plain = ThinkingFields { max_tokens, thinking: None, effort: None, replays: false };
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
                ..plain
            },
            (Reasoning::Effort(effort), Thinking::Budget) => {
                let max_tokens = raised(effort.room(), MOST_WITH_BUDGET);
                let budget = effort.room().min(max_tokens.saturating_sub(LEAST));
                if budget < LEAST || !may_have_budget {
                    return plain;
                }
                let thinking = Some(json!({ "type": "enabled", "budget_tokens": budget }));
                ThinkingFields { max_tokens, thinking, ..plain }
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

/// Whether an answer has thinking that can go back.
fn has_thinking(steps: &[Step<'_>]) -> bool {
    let goes_back = |said: &Said<'_>| matches!(said, Said::Thinking { signature: Some(_), .. });
    steps.iter().any(|step| matches!(step, Step::Answer { said, .. } if said.iter().any(goes_back)))
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
    let (mut names, mut known): (Vec<&str>, HashSet<&str>) = (Vec::new(), HashSet::new());
    for step in steps {
        let Step::Answer { said, .. } = step else { continue };
        for Call { name, .. } in steps::calls(said) {
            if known.insert(name) {
                names.push(name);
            }
        }
    }
    names.into_iter().map(|name| json!({ "name": name, "input_schema": { "type": "object" } })).collect()
}

fn messages(steps: &[Step<'_>], replays: bool) -> Vec<Value> {
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
                messages.push(json!({ "role": "assistant", "content": answer(said, replays) }));
                results.extend(returned.iter().map(result));
            }
        }
    }
    if !results.is_empty() {
        messages.push(json!({ "role": "user", "content": results }));
    }
    messages
}

/// Ends a conversation so that the model answers.
fn end_with_a_question(messages: &mut Vec<Value>, dialect: &Dialect, fields: &ThinkingFields) {
    if messages.last().is_some_and(|last| last["role"] == "assistant") {
        if dialect.continues_answers && !fields.asks() {
            trim_end(messages.last_mut());
        } else {
            messages.push(json!({ "role": "user", "content": [{ "type": "text", "text": GO_ON }] }));
        }
    }
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

fn answer(said: &[Said<'_>], replays: bool) -> Vec<Value> {
    let block = |said: &Said<'_>| match said {
        Said::Text { text, .. } => (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text })),
        Said::Thinking { .. } if !replays => None,
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
