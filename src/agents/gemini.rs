//! Sessions of Gemini CLI: one JSON object, or one object a line. In lines a message with an id that was there before replaces it,
//! `$rewindTo` takes messages back, and `$set` with messages replaces the history: a compression.

use super::{
    Agent,
    transcript::{About, Converted, Origin, Transcript},
};
use crate::ids::EntryId;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// The beginning of the text of a compression.
const SNAPSHOT: &str = "<state_snapshot>";

/// A step of the history, in the order of the file.
enum Step {
    /// A message, by its place among the messages.
    Message(usize),
    /// The user took back this message and those after it.
    Rewind(String),
    /// A summary took the place of what is before this message. An answer of Gemini CLI itself follows it.
    Compression { key: String, time: String, summary: String, first_kept: Option<String>, answer: Option<String> },
}

#[derive(Default)]
struct File {
    meta: Value,
    steps: Vec<Step>,
    messages: Vec<Value>,
    /// The places of the messages by their ids.
    places: HashMap<String, usize>,
    left_out: Vec<&'static str>,
    /// Summaries of compressions and the answers to them, which are Gemini CLI's own texts.
    of_compressions: HashSet<String>,
}

/// Whether an object begins a session of Gemini CLI.
#[must_use]
pub fn is_session(object: &Value) -> bool {
    object["sessionId"].is_string() && object["projectHash"].is_string()
}

/// Reads a session from the objects of its file. `stem` is the file's name without its ending, the id of a session without one, and
/// `cwd` the project's folder, where it is known.
#[must_use]
pub fn read(objects: impl IntoIterator<Item = Option<Value>>, stem: &str, cwd: Option<String>) -> Converted {
    let mut file = File::default();
    for object in objects {
        match object {
            Some(object) => file.add(object),
            None => file.left_out.push("lines that cannot be read"),
        }
    }
    file.converted(stem, cwd)
}

/// The parts of a content: a text, a part, or several.
fn parts_of(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![json!({ "text": text })],
        Value::Array(parts) => {
            let whole = |part: &Value| part.as_str().map_or_else(|| part.clone(), |text| json!({ "text": text }));
            parts.iter().map(whole).collect()
        }
        Value::Object(_) => vec![content.clone()],
        _ => Vec::new(),
    }
}

fn text_of(content: &Value) -> String {
    parts_of(content).iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

impl File {
    fn add(&mut self, object: Value) {
        if let Some(target) = object["$rewindTo"].as_str() {
            self.rewind(target);
        } else if object["id"].is_string() {
            self.message(object);
        } else if let Some(set) = object.get("$set") {
            match set["messages"].as_array() {
                Some(messages) => self.replaced(messages),
                None => self.about(set),
            }
        } else {
            self.about(&object);
            for message in object["messages"].as_array().into_iter().flatten() {
                self.message(message.clone());
            }
        }
    }

    /// Takes back a message and those after it; all of them where it is unknown. Their ids may come again.
    fn rewind(&mut self, target: &str) {
        let from = self.places.get(target).copied().unwrap_or_default();
        if !self.of_compressions.contains(target) {
            self.places.retain(|_, at| *at < from);
        }
        self.steps.push(Step::Rewind(target.to_owned()));
    }

    /// Facts beside the messages, the newest of each.
    fn about(&mut self, facts: &Value) {
        let Some(facts) = facts.as_object() else { return };
        if !self.meta.is_object() {
            self.meta = json!({});
        }
        for (name, value) in facts.iter().filter(|(name, _)| *name != "messages") {
            // The identity of a session is that of its first line.
            let is_first = ["sessionId", "startTime"].contains(&name.as_str()) && self.meta[name].is_string();
            if !is_first {
                self.meta[name] = value.clone();
            }
        }
    }

    fn message(&mut self, message: Value) {
        let id = message["id"].as_str().unwrap_or_default().to_owned();
        if self.of_compressions.contains(&id) {
            return;
        }
        match self.places.get(&id) {
            Some(at) => {
                // A resumed session writes its messages again without these.
                let before = std::mem::replace(&mut self.messages[*at], message);
                for name in ["toolCalls", "tokens", "model", "thoughts"] {
                    if self.messages[*at].get(name).is_none() && before.get(name).is_some() {
                        self.messages[*at][name] = before[name].clone();
                    }
                }
            }
            None => {
                self.places.insert(id, self.messages.len());
                self.steps.push(Step::Message(self.messages.len()));
                self.messages.push(message);
            }
        }
    }

    /// Another history: a compression, or the same messages again.
    fn replaced(&mut self, messages: &[Value]) {
        let has = |id: &str| self.places.contains_key(id) || self.of_compressions.contains(id);
        let is_known = |message: &&Value| message["id"].as_str().is_some_and(has);
        let is_summary =
            |message: &Value| !is_known(&message) && text_of(&message["content"]).trim_start().starts_with(SNAPSHOT);
        let Some(at) = messages.iter().position(is_summary) else {
            return messages.iter().for_each(|message| self.message(message.clone()));
        };
        let summary = &messages[at];
        let kept = messages.iter().filter(is_known).find(|message| !is_context(message));
        let owned = |name: &str| summary[name].as_str().unwrap_or_default().to_owned();
        let answer = messages.get(at + 1).filter(|answer| answer["type"] == "gemini" && !is_known(answer));
        let own = [Some(summary), answer].into_iter().flatten();
        let own: Vec<String> = own.filter_map(|message| message["id"].as_str().map(str::to_owned)).collect();
        self.steps.push(Step::Compression {
            key: owned("id"),
            time: owned("timestamp"),
            summary: text_of(&summary["content"]),
            first_kept: kept.and_then(|message| message["id"].as_str()).map(str::to_owned),
            answer: answer.and_then(|answer| answer["id"].as_str()).map(str::to_owned),
        });
        self.of_compressions.extend(own);
    }

    fn converted(self, stem: &str, cwd: Option<String>) -> Converted {
        let fact = |name: &str| self.meta[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let session_id = fact("sessionId").unwrap_or_else(|| stem.to_owned());
        let created = fact("startTime").unwrap_or_default();
        let mut transcript = Transcript::new(Agent::GeminiCli, &session_id, &created);
        self.left_out.iter().for_each(|kind| transcript.leave_out(kind));
        // The entry before each message, and its first one.
        let mut before: HashMap<&str, EntryId> = HashMap::new();
        let mut entries: HashMap<&str, EntryId> = HashMap::new();
        let mut writing = Writing { transcript, answered: HashSet::new() };
        for step in &self.steps {
            match step {
                Step::Message(at) => {
                    let message = &self.messages[*at];
                    let id = message["id"].as_str().unwrap_or_default();
                    before.insert(id, writing.transcript.leaf());
                    if let Some(entry) = writing.message(message) {
                        entries.insert(id, entry);
                    }
                }
                Step::Rewind(target) => {
                    // An unknown target takes all messages back.
                    let to = before.get(target.as_str()).cloned().unwrap_or_else(|| writing.transcript.root());
                    writing.transcript.continue_after(to);
                }
                Step::Compression { key, time, summary, first_kept, answer } => {
                    let kept = first_kept.as_deref().and_then(|id| entries.get(id));
                    before.insert(key, writing.transcript.leaf());
                    let entry = writing.transcript.compaction(key, time, summary, kept, 0);
                    before.extend(answer.as_deref().map(|answer| (answer, entry)));
                }
            }
        }
        let origin =
            Origin { agent: Agent::GeminiCli, session_id, version: None, parent_session_id: None, git_branch: None };
        let folder = self.meta["directories"][0].as_str().map(str::to_owned);
        let title = fact("summary");
        writing.transcript.finish(About { origin, cwd: cwd.or(folder).unwrap_or_default(), created, title })
    }
}

/// Whether a message is the text about the machine that Gemini CLI puts before the conversation.
fn is_context(message: &Value) -> bool {
    message["type"] == "user" && text_of(&message["content"]).starts_with("<session_context>")
}

/// The messages that become entries.
struct Writing {
    transcript: Transcript,
    /// The calls whose results are written: a history may have them twice.
    answered: HashSet<String>,
}

impl Writing {
    /// Writes a message. Returns its first entry.
    fn message(&mut self, message: &Value) -> Option<EntryId> {
        let key = message["id"].as_str().unwrap_or_default();
        let time = message["timestamp"].as_str().unwrap_or_default();
        match message["type"].as_str() {
            Some("user") if is_context(message) => {
                let text = text_of(&message["content"]);
                Some(self.transcript.note(key, time, "gemini-cli.context", &text.into()))
            }
            Some("user") => self.user(key, time, message),
            Some("gemini") => self.answer(key, time, message),
            _ => {
                self.transcript.leave_out("messages of the interface");
                None
            }
        }
    }

    /// A message of the user, or the results of calls.
    fn user(&mut self, key: &str, time: &str, message: &Value) -> Option<EntryId> {
        let mut content = Vec::new();
        let mut first = None;
        let parts = parts_of(&message["content"]);
        // Images beside a result belong to it.
        let has_results = parts.iter().any(|part| part["functionResponse"].is_object());
        let images: Vec<Value> =
            parts.iter().filter(|part| has_results && part["inlineData"].is_object()).cloned().collect();
        for (nth, part) in parts.into_iter().enumerate() {
            let response = &part["functionResponse"];
            if !response.is_object() {
                if !images.contains(&part) {
                    content.extend(shown(&part, &mut self.transcript));
                }
                continue;
            }
            let of_result = [vec![part.clone()], images.clone()].concat();
            let call = json!({ "id": response["id"], "name": response["name"], "result": of_result });
            let written = self.result(&call, &format!("{key}:result:{nth}"), time);
            first = first.or(written);
        }
        if content.is_empty() {
            return first;
        }
        let written = self.transcript.message(key, time, &json!({ "role": "user", "content": content }).to_string());
        first.or(written)
    }

    /// An answer, and the results of its calls.
    fn answer(&mut self, key: &str, time: &str, message: &Value) -> Option<EntryId> {
        if let Some(model) = message["model"].as_str() {
            self.transcript.model(&format!("{key}:model"), time, "google", model);
        }
        let mut blocks = Vec::new();
        for thought in message["thoughts"].as_array().into_iter().flatten() {
            let texts = ["subject", "description"].map(|name| thought[name].as_str().unwrap_or_default());
            blocks.push(json!({ "type": "thinking", "thinking": texts.join("\n").trim() }));
        }
        let mut calls = message["toolCalls"].as_array().cloned().unwrap_or_default();
        let are_parts = calls.is_empty();
        for part in parts_of(&message["content"]) {
            match part["text"].as_str() {
                Some(text) if part["thought"] == true => blocks.push(json!({ "type": "thinking", "thinking": text })),
                _ if part["functionCall"].is_object() => {
                    if are_parts {
                        calls.push(part["functionCall"].clone());
                    }
                }
                _ => blocks.extend(shown(&part, &mut self.transcript)),
            }
        }
        for (nth, call) in calls.iter_mut().enumerate() {
            if !call["id"].is_string() {
                call["id"] = format!("{key}-{nth}").into();
            }
            let arguments = if call["args"].is_object() { call["args"].clone() } else { json!({}) };
            blocks.push(json!({ "type": "toolCall", "id": call["id"], "name": call["name"], "arguments": arguments }));
        }
        let mut answer = json!({ "role": "assistant", "content": blocks });
        if let Some(usage) = usage(&message["tokens"]) {
            answer["usage"] = usage;
        }
        let written = self.transcript.message(key, time, &answer.to_string());
        for (nth, call) in calls.iter().enumerate() {
            let time = call["timestamp"].as_str().unwrap_or(time);
            self.result(call, &format!("{key}:result:{nth}"), time);
        }
        written
    }

    /// Writes the result of a call, once.
    fn result(&mut self, call: &Value, key: &str, time: &str) -> Option<EntryId> {
        let parts = parts_of(&call["result"]);
        let id = call["id"].as_str().unwrap_or_default();
        if parts.is_empty() || !self.answered.insert(id.to_owned()) {
            return None;
        }
        let mut is_error = matches!(call["status"].as_str(), Some("error" | "cancelled"));
        let mut content = Vec::new();
        for part in parts {
            let response = &part["functionResponse"]["response"];
            if !response.is_object() {
                content.extend(shown(&part, &mut self.transcript));
                continue;
            }
            is_error |= response["error"].is_string();
            let text = response["output"].as_str().or(response["error"].as_str());
            let text = text.map_or_else(|| response.to_string(), str::to_owned);
            content.push(json!({ "type": "text", "text": text }));
            for nested in parts_of(&part["functionResponse"]["parts"]) {
                content.extend(shown(&nested, &mut self.transcript));
            }
        }
        let result = json!({
            "role": "toolResult", "toolCallId": id, "toolName": call["name"], "content": content, "isError": is_error,
        });
        self.transcript.message(key, time, &result.to_string())
    }
}

/// A text or an image in pi's form.
fn shown(part: &Value, transcript: &mut Transcript) -> Option<Value> {
    let data = &part["inlineData"];
    match (part["text"].as_str(), data["data"].as_str(), data["mimeType"].as_str()) {
        (Some(text), ..) => Some(json!({ "type": "text", "text": text })),
        (None, Some(data), Some(kind)) if kind.starts_with("image/") => {
            Some(json!({ "type": "image", "data": data, "mimeType": kind }))
        }
        _ => {
            transcript.leave_out("parts that are no text and no image");
            None
        }
    }
}

/// A usage in pi's form. Gemini's input contains the cached part, and its output does not contain the thoughts.
fn usage(tokens: &Value) -> Option<Value> {
    if !tokens.is_object() {
        return None;
    }
    let count = |name: &str| tokens[name].as_u64().unwrap_or_default();
    let read = count("cached");
    let input = (count("input") + count("tool")).saturating_sub(read);
    let output = count("output") + count("thoughts");
    Some(json!({
        "input": input, "output": output, "cacheRead": read, "cacheWrite": 0, "totalTokens": input + output + read,
    }))
}
