//! Sessions of OpenCode: a session with its messages, each with parts. They lie in a SQLite database; earlier versions had one JSON
//! file for each of them, and `opencode export` writes all of a session into one.

pub mod database;
pub mod files;

use super::{
    Agent,
    records::owned,
    transcript::{About, Converted, Origin, Transcript},
};
use crate::{conversation::entry, ids::EntryId};
use jiff::Timestamp;
use serde_json::{Value, json};

/// A session as OpenCode stores it.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The session, in the form of an export.
    pub info: Value,
    /// Its messages in their order, each with its parts in their order.
    pub messages: Vec<(Value, Vec<Value>)>,
}

/// Reads an export.
#[must_use]
pub fn of_export(export: &Value) -> Option<Stored> {
    let is_session = export["info"]["id"].as_str().is_some_and(|id| id.starts_with("ses"));
    let messages = export["messages"].as_array().filter(|_| is_session)?;
    let messages = messages.iter().map(|message| {
        let parts = message["parts"].as_array().cloned().unwrap_or_default();
        (message["info"].clone(), parts)
    });
    Some(Stored { info: export["info"].clone(), messages: messages.collect() })
}

/// A time in milliseconds as RFC 3339; empty where it is none.
fn time(milliseconds: &Value) -> String {
    let time = milliseconds.as_i64().and_then(|time| Timestamp::from_millisecond(time).ok());
    time.map(entry::timestamp).unwrap_or_default()
}

impl Stored {
    /// The session in pi's form.
    #[must_use]
    pub fn converted(&self) -> Converted {
        let id = self.info["id"].as_str().unwrap_or_default();
        let created = time(&self.info["time"]["created"]);
        let mut writing = Writing {
            transcript: Transcript::new(Agent::OpenCode, id, &created),
            entries: Vec::new(),
            kept: None,
            reverted: None,
        };
        let revert = self.info["revert"]["messageID"].as_str();
        for (info, parts) in &self.messages {
            writing.message(info, parts, revert);
        }
        let Writing { mut transcript, reverted, .. } = writing;
        if let Some(before) = reverted {
            transcript.continue_after(before);
        }
        let origin = Origin {
            agent: Agent::OpenCode,
            session_id: id.to_owned(),
            version: owned(&self.info["version"]),
            parent_session_id: owned(&self.info["parentID"]),
            git_branch: None,
        };
        let cwd = owned(&self.info["directory"]).unwrap_or_default();
        transcript.finish(About { origin, cwd, created, title: owned(&self.info["title"]) })
    }
}

struct Writing {
    transcript: Transcript,
    /// The messages so far, each with its first entry.
    entries: Vec<(String, Option<EntryId>)>,
    /// The first message that the next compaction keeps.
    kept: Option<String>,
    /// The entry before the messages that the user took back.
    reverted: Option<EntryId>,
}

impl Writing {
    fn message(&mut self, info: &Value, parts: &[Value], revert: Option<&str>) {
        let id = info["id"].as_str().unwrap_or_default();
        if revert == Some(id) {
            self.reverted = Some(self.transcript.leaf());
        }
        let created = time(&info["time"]["created"]);
        // A compaction that failed has a message, too.
        let is_summary = info["summary"] == true && !info["error"].is_object();
        let first = match (info["role"].as_str(), is_summary) {
            (Some("user"), _) => self.user(id, &created, parts),
            (Some("assistant"), true) => self.summary(id, &created, parts),
            (Some("assistant"), false) => self.assistant(id, &created, info, parts),
            _ => {
                self.transcript.leave_out("messages of an unknown role");
                None
            }
        };
        self.entries.push((id.to_owned(), first));
    }

    fn user(&mut self, id: &str, created: &str, parts: &[Value]) -> Option<EntryId> {
        let mut content = Vec::new();
        for part in parts {
            match part["type"].as_str().unwrap_or_default() {
                "text" if part["ignored"] == true => self.transcript.leave_out("texts that models do not get"),
                "text" => content.extend(text(part)),
                // The text of a file has a part of its own.
                "file" if part["mime"] == "text/plain" || part["mime"] == "application/x-directory" => {}
                "file" => content.push(self.file(part)),
                "compaction" => self.kept = owned(&part["tail_start_id"]),
                _ => self.transcript.leave_out("parts that are no text and no file"),
            }
        }
        let message = json!({ "role": "user", "content": content });
        if content.is_empty() { None } else { self.transcript.message(id, created, &message.to_string()) }
    }

    /// An image; the name of another file takes its place.
    fn file(&mut self, part: &Value) -> Value {
        let url = part["url"].as_str().unwrap_or_default();
        let data = url.strip_prefix("data:").and_then(|url| url.split_once(";base64,"));
        match data.filter(|(kind, _)| kind.starts_with("image/")) {
            Some((kind, data)) => json!({ "type": "image", "data": data, "mimeType": kind }),
            None => {
                self.transcript.leave_out("files that are no images");
                let name = part["filename"].as_str().unwrap_or("file");
                json!({ "type": "text", "text": format!("[{name}]") })
            }
        }
    }

    fn summary(&mut self, id: &str, created: &str, parts: &[Value]) -> Option<EntryId> {
        let texts = parts.iter().filter(|part| part["type"] == "text").filter_map(|part| part["text"].as_str());
        let text = texts.collect::<Vec<_>>().join("\n");
        // The message itself may have no entry.
        let kept = self.kept.take().and_then(|kept| {
            let from = self.entries.iter().position(|(message, _)| *message == kept)?;
            self.entries[from..].iter().find_map(|(_, entry)| entry.clone())
        });
        if text.is_empty() {
            self.transcript.leave_out("compactions without a summary");
            return None;
        }
        Some(self.transcript.compaction(id, created, &text, kept.as_ref(), 0))
    }

    /// An answer: each of its steps is one, with the results of its calls after it.
    fn assistant(&mut self, id: &str, created: &str, info: &Value, parts: &[Value]) -> Option<EntryId> {
        if let (Some(provider), Some(model)) = (info["providerID"].as_str(), info["modelID"].as_str()) {
            self.transcript.model(&format!("{id}:model"), created, provider, model);
        }
        let mut steps: Vec<Step> = Vec::new();
        for part in parts {
            let kind = part["type"].as_str().unwrap_or_default();
            if steps.is_empty() || kind == "step-start" && steps.last().is_some_and(|step| !step.is_empty()) {
                steps.push(Step::default());
            }
            let Some(step) = steps.last_mut() else { continue };
            match kind {
                "text" => step.blocks.extend(text(part)),
                "reasoning" => step.blocks.push(thinking(part)),
                "tool" => step.call(part, &mut |file| self.file(file)),
                "step-finish" => step.usage = usage(&part["tokens"], &part["cost"]),
                "step-start" | "snapshot" | "patch" | "retry" => {}
                "file" => step.blocks.push(self.file(part)),
                _ => self.transcript.leave_out("parts of answers of an unknown type"),
            }
        }
        let last = steps.len().saturating_sub(1);
        let mut first = None;
        for (nth, step) in steps.into_iter().enumerate() {
            let error = Some(&info["error"]).filter(|error| nth == last && error.is_object());
            let key = if nth == 0 { id.to_owned() } else { format!("{id}:{nth}") };
            let written = step.write(&key, created, info, error, &mut self.transcript);
            first = first.or(written);
        }
        first
    }
}

/// A step of an answer.
#[derive(Default)]
struct Step {
    blocks: Vec<Value>,
    /// Results with the times at which they came.
    results: Vec<(String, Value)>,
    usage: Option<Value>,
}

impl Step {
    fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    fn call(&mut self, part: &Value, file: &mut dyn FnMut(&Value) -> Value) {
        let state = &part["state"];
        let (call, tool) = (&part["callID"], &part["tool"]);
        let arguments = if state["input"].is_object() { state["input"].clone() } else { json!({}) };
        self.blocks.push(json!({ "type": "toolCall", "id": call, "name": tool, "arguments": arguments }));
        let (text, is_error) = match state["status"].as_str() {
            Some("completed") => (&state["output"], false),
            Some("error") => (&state["error"], true),
            // It has no result, and a context says so.
            _ => return,
        };
        let mut content = vec![json!({ "type": "text", "text": text.as_str().unwrap_or_default() })];
        let attached = state["attachments"].as_array().into_iter().flatten();
        content.extend(attached.map(file));
        let result = json!({
            "role": "toolResult", "toolCallId": call, "toolName": tool, "content": content, "isError": is_error,
        });
        self.results.push((time(&state["time"]["end"]), result));
    }

    fn write(
        self,
        key: &str,
        created: &str,
        info: &Value,
        error: Option<&Value>,
        transcript: &mut Transcript,
    ) -> Option<EntryId> {
        if self.is_empty() && error.is_none() {
            return None;
        }
        let mut message = json!({ "role": "assistant", "content": self.blocks });
        if let Some(usage) = self.usage.or_else(|| usage(&info["tokens"], &info["cost"])) {
            message["usage"] = usage;
        }
        if info["finish"] == "length" {
            message["stopReason"] = "length".into();
        }
        if let Some(error) = error {
            let is_abort = error["name"] == "MessageAbortedError";
            message["stopReason"] = if is_abort { "aborted" } else { "error" }.into();
            message["errorMessage"] = error["data"]["message"].as_str().or(error["name"].as_str()).into();
        }
        let written = transcript.message(key, created, &message.to_string());
        for (nth, (time, result)) in self.results.iter().enumerate() {
            transcript.message(&format!("{key}:result:{nth}"), time, &result.to_string());
        }
        written
    }
}

/// A text in pi's form.
fn text(part: &Value) -> Option<Value> {
    part["text"].as_str().map(|text| json!({ "type": "text", "text": text }))
}

fn thinking(part: &Value) -> Value {
    let mut block = json!({ "type": "thinking", "thinking": part["text"].as_str().unwrap_or_default() });
    let signature = part["metadata"].as_object().into_iter().flatten().find_map(|(_, data)| data["signature"].as_str());
    if let Some(signature) = signature {
        block["thinkingSignature"] = signature.into();
    }
    block
}

/// A usage in pi's form. The output of OpenCode is without the reasoning.
fn usage(tokens: &Value, cost: &Value) -> Option<Value> {
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    if !tokens.is_object() {
        return None;
    }
    let (input, output) = (count(&tokens["input"]), count(&tokens["output"]) + count(&tokens["reasoning"]));
    let (read, write) = (count(&tokens["cache"]["read"]), count(&tokens["cache"]["write"]));
    let mut usage = json!({
        "input": input, "output": output, "cacheRead": read, "cacheWrite": write,
        "totalTokens": input + output + read + write,
    });
    if cost.is_number() {
        usage["cost"] = json!({ "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost });
    }
    Some(usage)
}
