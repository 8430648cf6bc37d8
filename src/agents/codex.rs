//! Sessions of Codex: one JSON object a line, `{timestamp, type, payload}`, with the items of OpenAI's Responses. The first versions
//! wrote the items themselves.
//!
//! Consecutive items of the model are one answer, which ends at the report of its usage. Events repeat what the items have, and only
//! the usage and rollbacks are read from them.

use super::{
    Agent, records,
    transcript::{About, Converted, Origin, Transcript},
};
use crate::{
    conversation::message::Message,
    ids::{EntryId, ModelRef},
    log::bytes::Bytes,
    provider::{
        Api,
        given::{self, Beside},
    },
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::{collections::HashMap, io::Error, ops::ControlFlow};

/// A line of the file.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default)]
    timestamp: Value,
    #[serde(default, rename = "type")]
    kind: Value,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
}

/// A record of the conversation.
struct Record {
    key: String,
    time: String,
    body: Body,
}

enum Body {
    /// A message of the user's side as an item.
    Said(String),
    /// An answer.
    Answer(Answer),
    /// A tool result.
    Result { call: String, content: Vec<Value>, is_error: bool },
    /// A compaction with its text.
    Compaction(String),
    /// The end of the last turns.
    Rollback(usize),
    /// The model and the thinking level from here on.
    Turn { model: Option<String>, effort: Option<String> },
}

#[derive(Default)]
struct Answer {
    /// The items in JSON.
    items: Vec<String>,
    usage: Option<Value>,
}

#[derive(Default)]
struct File {
    records: Vec<Record>,
    /// Whether the next item of the model belongs to the newest answer.
    is_open: bool,
    /// The sums of the newest report.
    sums: Value,
    meta: Value,
    title: Option<String>,
    created: Option<String>,
    left_out: Vec<&'static str>,
}

/// Whether a line begins a file of Codex.
#[must_use]
pub fn is_line(line: &Value) -> bool {
    let is_meta = line["type"] == "session_meta" && line["payload"].is_object();
    // The first versions.
    is_meta || line["id"].is_string() && line["timestamp"].is_string() && line.get("instructions").is_some()
}

/// Reads a session. `stem` is the file's name without its ending, which ends with the session's id.
///
/// # Errors
/// When the file cannot be read.
pub fn read(file: &Bytes, stem: &str) -> Result<Converted, Error> {
    let mut read = File::default();
    records::each(file, |number, text| {
        match text.and_then(|text| Some((text, serde_json::from_str::<Line<'_>>(text).ok()?))) {
            Some((text, line)) => read.add(number, text, &line),
            None => read.left_out.push("lines that cannot be read"),
        }
        ControlFlow::Continue(())
    })?;
    Ok(read.converted(stem))
}

/// The item that a line of the first versions is, or the payload of a line.
fn item_of<'a>(text: &'a str, line: &Line<'a>) -> &'a str {
    line.payload.map_or(text, RawValue::get)
}

impl File {
    fn add(&mut self, number: usize, text: &str, line: &Line<'_>) {
        let time = line.timestamp.as_str().unwrap_or_default();
        if self.created.is_none() && !time.is_empty() {
            self.created = Some(time.to_owned());
        }
        let item = item_of(text, line);
        let value: Value = serde_json::from_str(item).unwrap_or_default();
        let key = number.to_string();
        let record = |body| Record { key: key.clone(), time: time.to_owned(), body };
        match (line.kind.as_str(), line.payload.is_some()) {
            // A fork repeats the lines of its parent, with the parent's own first line.
            (Some("session_meta"), true) if self.meta.is_null() => self.meta = value,
            (None, false) if value["id"].is_string() && self.meta.is_null() => self.meta = value,
            (Some("turn_context"), true) => {
                let text = |name: &str| value[name].as_str().map(str::to_owned);
                self.push(record(Body::Turn { model: text("model"), effort: text("effort") }));
            }
            (Some("compacted"), true) => match compacted(&value) {
                Some(text) => self.push(record(Body::Compaction(text))),
                None => self.left_out.push("compactions without a text"),
            },
            (Some("event_msg"), true) => self.event(&value, record),
            (Some("response_item"), true) | (Some(_), false) => self.item(item, &value, record),
            _ => {}
        }
    }

    fn push(&mut self, record: Record) {
        self.is_open = false;
        self.records.push(record);
    }

    fn event(&mut self, event: &Value, record: impl Fn(Body) -> Record) {
        match event["type"].as_str() {
            Some("token_count") => self.usage(&event["info"]),
            Some("thread_rolled_back") => {
                let turns = event["num_turns"].as_u64().and_then(|turns| usize::try_from(turns).ok());
                self.push(record(Body::Rollback(turns.unwrap_or(0))));
            }
            Some("thread_name_updated") => self.title = event["thread_name"].as_str().map(str::to_owned),
            _ => {}
        }
    }

    /// Gives the newest answer its usage. A report is repeated where only the rate limits changed.
    fn usage(&mut self, info: &Value) {
        let (last, sums) = (&info["last_token_usage"], &info["total_token_usage"]);
        if !last.is_object() || (!sums.is_null() && *sums == self.sums) {
            return;
        }
        self.sums = sums.clone();
        self.is_open = false;
        let answer = self.records.iter_mut().rev().find_map(|record| match &mut record.body {
            Body::Answer(answer) => Some(answer),
            _ => None,
        });
        if let Some(answer) = answer.filter(|answer| answer.usage.is_none()) {
            answer.usage = Some(json!({
                "input_tokens": last["input_tokens"],
                "input_tokens_details": {
                    "cached_tokens": last["cached_input_tokens"],
                    "cache_write_tokens": last["cache_write_input_tokens"],
                },
                "output_tokens": last["output_tokens"],
                "output_tokens_details": { "reasoning_tokens": last["reasoning_output_tokens"] },
                "total_tokens": last["total_tokens"],
            }));
        }
    }

    fn item(&mut self, item: &str, value: &Value, record: impl Fn(Body) -> Record) {
        let call = |name: &Value, arguments: &Value| {
            let id = if value["call_id"].is_string() { &value["call_id"] } else { &value["id"] };
            json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments.to_string() })
        };
        match value["type"].as_str().unwrap_or_default() {
            "message" if value["role"] == "assistant" => self.answered(item.to_owned(), record),
            "message" if value["role"] == "system" => {
                let mut value = value.clone();
                value["role"] = "developer".into();
                self.push(record(Body::Said(value.to_string())));
            }
            "message" => self.push(record(Body::Said(item.to_owned()))),
            "reasoning" | "function_call" => self.answered(item.to_owned(), record),
            "custom_tool_call" => {
                let call = call(&value["name"], &json!({ "input": value["input"] }));
                self.answered(call.to_string(), record);
            }
            "local_shell_call" => {
                let call = call(&json!("local_shell"), &value["action"]);
                self.answered(call.to_string(), record);
            }
            kind if kind.ends_with("_call_output") => {
                let (content, is_error) = output(&value["output"]);
                let call = value["call_id"].as_str().unwrap_or_default().to_owned();
                self.push(record(Body::Result { call, content, is_error }));
            }
            "" => {}
            kind if kind.ends_with("_call") => self.left_out.push("calls of the provider's own tools"),
            _ => self.left_out.push("items of an unknown type"),
        }
    }

    /// Adds an item of the model.
    fn answered(&mut self, item: String, record: impl Fn(Body) -> Record) {
        match self.records.last_mut().map(|record| &mut record.body) {
            Some(Body::Answer(answer)) if self.is_open => answer.items.push(item),
            _ => {
                self.push(record(Body::Answer(Answer { items: vec![item], usage: None })));
                self.is_open = true;
            }
        }
    }

    fn converted(self, stem: &str) -> Converted {
        let meta = |name: &str| self.meta[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let session_id = meta("id").unwrap_or_else(|| stem.to_owned());
        let created = meta("timestamp").or(self.created.clone()).unwrap_or_default();
        let provider = meta("model_provider").unwrap_or_else(|| "openai".to_owned());
        let mut transcript = Transcript::new(Agent::Codex, &session_id, &created);
        self.left_out.iter().for_each(|kind| transcript.leave_out(kind));
        let mut writing = Writing { transcript, provider, turns: Vec::new(), calls: HashMap::new() };
        self.records.iter().for_each(|record| writing.write(record));
        let origin = Origin {
            agent: Agent::Codex,
            session_id,
            version: meta("cli_version"),
            parent_session_id: meta("forked_from_id"),
            git_branch: self.meta["git"]["branch"].as_str().map(str::to_owned),
        };
        let title = self.title.clone().filter(|title| !title.is_empty());
        writing.transcript.finish(About { origin, cwd: meta("cwd").unwrap_or_default(), created, title })
    }
}

/// The text of a compaction: of its message, else of the newest text that takes the place of the history. A provider's own
/// compaction has none that can be read, and the messages before it stay.
fn compacted(value: &Value) -> Option<String> {
    let message = value["message"].as_str().filter(|text| !text.is_empty());
    let history = value["replacement_history"].as_array();
    let is_sealed = |item: &Value| item["type"].as_str().is_some_and(|kind| kind.starts_with("compaction"));
    if message.is_none() && history.into_iter().flatten().any(is_sealed) {
        return None;
    }
    let texts = || {
        let items = history.into_iter().flatten().rev();
        let blocks = items.flat_map(|item| item["content"].as_array().into_iter().flatten());
        blocks.filter_map(|block| block["text"].as_str()).find(|text| !text.is_empty())
    };
    message.or_else(texts).map(str::to_owned)
}

/// The content of a tool's output in pi's form, and whether the call failed.
fn output(output: &Value) -> (Vec<Value>, bool) {
    let text = |text: &str| vec![json!({ "type": "text", "text": text })];
    match output {
        Value::String(said) => {
            let inner: Value = serde_json::from_str(said).unwrap_or_default();
            let code = inner["metadata"]["exit_code"].as_i64();
            (text(said), code.is_some_and(|code| code != 0))
        }
        Value::Array(blocks) => {
            // The name of anything else takes its place.
            let name = |block: &Value| block["type"].as_str().unwrap_or("block").replace('_', " ");
            let named = |block: &Value| json!({ "type": "text", "text": format!("[{}]", name(block)) });
            (blocks.iter().map(|block| shown(block).unwrap_or_else(|| named(block))).collect(), false)
        }
        Value::Object(fields) => {
            let failed = fields.get("success") == Some(&Value::Bool(false));
            let (content, _) = self::output(fields.get("content").unwrap_or(&Value::Null));
            (content, failed)
        }
        _ => (Vec::new(), false),
    }
}

/// A part of an output in pi's form.
fn shown(block: &Value) -> Option<Value> {
    if let Some(text) = block["text"].as_str() {
        return Some(json!({ "type": "text", "text": text }));
    }
    let url = block["image_url"].as_str()?;
    let (kind, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(json!({ "type": "image", "data": data, "mimeType": kind }))
}

/// Records that become entries.
struct Writing {
    transcript: Transcript,
    provider: String,
    /// The entry before each turn of the user.
    turns: Vec<EntryId>,
    /// The ids that calls have here, by their ids in the file.
    calls: HashMap<String, String>,
}

impl Writing {
    fn write(&mut self, Record { key, time, body }: &Record) {
        match body {
            Body::Turn { model, effort } => {
                if let Some(model) = model {
                    self.transcript.model(&format!("{key}:model"), time, &self.provider, model);
                }
                if let Some(effort) = effort {
                    self.transcript.thinking(&format!("{key}:effort"), time, effort);
                }
            }
            Body::Said(item) => self.said(key, time, item),
            Body::Answer(answer) => self.answer(key, time, answer),
            Body::Result { call, content, is_error } => {
                let id = self.calls.get(call).unwrap_or(call);
                let result = json!({ "role": "toolResult", "toolCallId": id, "content": content, "isError": is_error });
                self.transcript.message(key, time, &result.to_string());
            }
            Body::Compaction(text) => {
                self.transcript.compaction(key, time, text, None, 0);
            }
            Body::Rollback(turns) => {
                let left = self.turns.len().saturating_sub(*turns);
                if let Some(before) = self.turns.get(left).cloned() {
                    self.transcript.continue_after(before);
                    self.turns.truncate(left);
                }
            }
        }
    }

    fn said(&mut self, key: &str, time: &str, item: &str) {
        let made = given::messages(Api::OpenaiResponses, &[item], &Beside::default(), None, Vec::new());
        let json = match made.ok().and_then(|made| made.into_iter().next()) {
            Some(made) => made.json,
            None => {
                self.transcript.leave_out("parts of messages that cannot be read");
                let item: Value = serde_json::from_str(item).unwrap_or_default();
                let content: Vec<Value> = item["content"].as_array().into_iter().flatten().filter_map(shown).collect();
                let role = if item["role"] == "developer" { "developer" } else { "user" };
                json!({ "role": role, "content": content }).to_string()
            }
        };
        if is_turn(&json) {
            self.turns.push(self.transcript.leaf());
        }
        self.transcript.message(key, time, &json);
    }

    fn answer(&mut self, key: &str, time: &str, answer: &Answer) {
        let model = self.transcript.current_model().cloned();
        let usage = answer.usage.as_ref().and_then(|usage| serde_json::value::to_raw_value(usage).ok());
        let items: Vec<&str> = answer.items.iter().map(String::as_str).collect();
        let json = answer_of(&items, usage.as_deref(), model.as_ref()).or_else(|| {
            let is_whole = |item: &&str| answer_of(&[item], None, None).is_some();
            let whole: Vec<&str> = items.iter().copied().filter(is_whole).collect();
            (whole.len()..items.len()).for_each(|_| self.transcript.leave_out("items that cannot be read"));
            answer_of(&whole, None, model.as_ref())
        });
        let Some(json) = json else { return };
        if let Ok(Message::Assistant(answer)) = Message::parse(&json) {
            let ids = answer.calls().map(|call| call.id.as_str().to_owned());
            self.calls.extend(ids.map(|id| (id.split('|').next().unwrap_or_default().to_owned(), id)));
        }
        self.transcript.message(key, time, &json);
    }
}

/// An answer of these items in pi's form.
fn answer_of(items: &[&str], usage: Option<&RawValue>, model: Option<&ModelRef>) -> Option<String> {
    if items.is_empty() {
        return None;
    }
    let beside = Beside { usage, ..Beside::default() };
    let made = given::messages(Api::OpenaiResponses, items, &beside, model, Vec::new());
    made.ok()?.into_iter().next().map(|made| made.json)
}

/// Whether a message begins a turn. Codex puts texts of its own into the conversation as messages of the user.
fn is_turn(message: &str) -> bool {
    /// The beginnings of Codex's own texts.
    const OWN: [&str; 13] = [
        "# AGENTS.md instructions",
        "<INSTRUCTIONS>",
        "<app-context>",
        "<collaboration_mode>",
        "<environment_context>",
        "<hook_prompt",
        "<permissions instructions>",
        "<skill>",
        "<skills_instructions>",
        "<subagent_notification>",
        "<turn_aborted>",
        "<user_instructions>",
        "<user_shell_command>",
    ];
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    let first = message["content"].as_str().or_else(|| message["content"][0]["text"].as_str());
    message["role"] == "user" && !first.is_some_and(|text| OWN.iter().any(|own| text.trim_start().starts_with(own)))
}
