//! A session of OpenCode in the form of its export, which `opencode import` reads.

use super::{Conversation, Part, Said, text};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The version of OpenCode whose form it is.
const VERSION: &str = "1.18.33";

/// The export.
#[must_use]
pub fn export(conversation: &Conversation) -> Value {
    let session = format!("ses_{}", conversation.id.replace('-', ""));
    let mut writing = Writing { session: session.clone(), cwd: conversation.cwd.clone(), messages: Vec::new() };
    // OpenCode sorts by the times, and the summary of a context may be newer than the messages after it.
    let milliseconds = |time: &str| time.parse().map(Timestamp::as_millisecond).unwrap_or_default();
    let mut earliest = conversation.said().map(|(time, _)| milliseconds(&time)).min().unwrap_or_default();
    for (time, said) in conversation.said() {
        let is_first = writing.messages.is_empty();
        let time = if is_first { earliest } else { milliseconds(&time).max(earliest) };
        earliest = time;
        match &said {
            Said::User(parts) => writing.user(time, parts),
            Said::Answer { parts, model } => writing.answer(time, parts, model),
            Said::Result { call, parts, is_error } => writing.result(time, call, parts, *is_error),
        }
    }
    let now = conversation.now.as_millisecond();
    json!({
        "info": {
            "id": session, "slug": session, "projectID": "global", "directory": conversation.cwd, "version": VERSION,
            "title": conversation.title.as_deref().unwrap_or("Continued session"),
            "time": { "created": now, "updated": now },
        },
        "messages": writing.messages,
    })
}

struct Writing {
    session: String,
    cwd: String,
    messages: Vec<Value>,
}

impl Writing {
    /// An id whose order is that of the file.
    fn message_id(&self) -> String {
        format!("msg_{}{:06}", &self.session[4..], self.messages.len())
    }

    fn part(&self, message: &str, nth: usize, mut part: Value) -> Value {
        part["id"] = format!("prt_{}{nth:04}", &message[4..]).into();
        part["sessionID"] = self.session.clone().into();
        part["messageID"] = message.into();
        part
    }

    fn user(&mut self, time: i64, parts: &[Part<'_>]) {
        let id = self.message_id();
        let part = |part: &Part<'_>| match part {
            Part::Text(text) => Some(json!({ "type": "text", "text": text })),
            Part::Image { data, kind } => {
                let url = format!("data:{kind};base64,{data}");
                Some(json!({ "type": "file", "mime": kind, "filename": "image", "url": url }))
            }
            Part::Call { .. } => None,
        };
        let parts = parts.iter().filter_map(part).enumerate();
        let parts: Vec<Value> = parts.map(|(nth, part)| self.part(&id, nth, part)).collect();
        let info = json!({
            "id": id, "sessionID": self.session, "role": "user", "time": { "created": time }, "agent": "build",
            "model": { "providerID": "unknown", "modelID": "unknown" },
        });
        self.messages.push(json!({ "info": info, "parts": parts }));
    }

    fn answer(&mut self, time: i64, parts: &[Part<'_>], model: &str) {
        let id = self.message_id();
        let asked = self.messages.iter().rev().map(|it| &it["info"]).find(|info| info["role"] == "user");
        let parent = asked.map(|info| info["id"].clone()).unwrap_or_default();
        let part = |part: &Part<'_>| match part {
            Part::Text(text) => Some(json!({ "type": "text", "text": text })),
            Part::Call { id, name, arguments } => {
                // Its result comes with a later message.
                let state = json!({
                    "status": "error", "input": arguments, "error": "interrupted", "time": { "start": time, "end": time },
                });
                Some(json!({ "type": "tool", "tool": name, "callID": id, "state": state }))
            }
            Part::Image { .. } => None,
        };
        let parts = parts.iter().filter_map(part).enumerate();
        let parts: Vec<Value> = parts.map(|(nth, part)| self.part(&id, nth, part)).collect();
        let info = json!({
            "id": id, "sessionID": self.session, "role": "assistant", "parentID": parent, "mode": "build",
            "agent": "build", "path": { "cwd": self.cwd, "root": self.cwd }, "cost": 0,
            "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } },
            "providerID": "unknown", "modelID": model, "time": { "created": time, "completed": time }, "finish": "stop",
        });
        self.messages.push(json!({ "info": info, "parts": parts }));
    }

    /// Gives a call its result.
    fn result(&mut self, time: i64, call: &str, parts: &[Part<'_>], is_error: bool) {
        let messages = self.messages.iter_mut().rev();
        let all = messages.flat_map(|message| message["parts"].as_array_mut().into_iter().flatten());
        let Some(part) = all.into_iter().find(|part| part["callID"] == call) else { return };
        let own = part["id"].as_str().unwrap_or_default().to_owned();
        let (session, message) = (part["sessionID"].clone(), part["messageID"].clone());
        let images = parts.iter().enumerate().filter_map(|(nth, image)| match image {
            Part::Image { data, kind } => Some(json!({
                "id": format!("{own}{nth:02}"), "sessionID": session, "messageID": message, "type": "file",
                "mime": kind, "url": format!("data:{kind};base64,{data}"),
            })),
            _ => None,
        });
        let attachments: Vec<Value> = images.collect();
        let start = part["state"]["time"]["start"].clone();
        let input = part["state"]["input"].clone();
        let time = json!({ "start": start, "end": time });
        // A failed call of OpenCode has no place for images.
        part["state"] = match is_error && attachments.is_empty() {
            true => json!({ "status": "error", "input": input, "error": text(parts), "time": time }),
            false => json!({
                "status": "completed", "input": input, "output": text(parts), "title": "", "metadata": {}, "time": time,
            }),
        };
        if !attachments.is_empty() {
            part["state"]["attachments"] = attachments.into();
        }
    }
}
