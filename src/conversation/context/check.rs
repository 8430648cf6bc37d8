//! Would a provider take this list? Asked of the finished messages, knowing nothing of how they were made.

use super::ContextMessage;
use crate::conversation::message::outline::Role;
use serde_json::Value;
use std::collections::HashMap;

/// The part of a message that a provider checks.
enum Seen<'a> {
    Answer { calls: Vec<&'a str>, failed: bool, empty: bool },
    Result(&'a str),
    Other,
    Unknown(&'a str),
}

/// Every reason for a provider to refuse messages as they stand on the wire; none for a valid list.
#[must_use]
pub fn violations(messages: &[Value]) -> Vec<String> {
    check(messages.iter().map(|message| match message["role"].as_str().unwrap_or_default() {
        "assistant" => {
            let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
            let calls = blocks.iter().filter(|block| block["type"] == "toolCall");
            Seen::Answer {
                calls: calls.map(|call| call["id"].as_str().unwrap_or_default()).collect(),
                failed: matches!(message["stopReason"].as_str(), Some("error" | "aborted")),
                empty: blocks.is_empty(),
            }
        }
        "toolResult" => Seen::Result(message["toolCallId"].as_str().unwrap_or_default()),
        "user" | "developer" | "bashExecution" | "pythonExecution" | "custom" | "hookMessage" | "fileMention" => {
            Seen::Other
        }
        other => Seen::Unknown(other),
    }))
}

/// The same for the messages of a context, at every rebuild.
pub(super) fn violations_of(messages: &[ContextMessage]) -> Vec<String> {
    check(messages.iter().map(|message| {
        let outline = message.outline();
        match outline.role {
            Role::Assistant => Seen::Answer {
                calls: outline.calls.iter().map(|call| call.id.as_str()).collect(),
                failed: outline.failed,
                empty: outline.empty,
            },
            Role::ToolResult => Seen::Result(outline.answers.as_ref().map_or("", |call| call.as_str())),
            Role::System => Seen::Unknown("system"),
            Role::Summary => Seen::Unknown("summary"),
            Role::User | Role::Developer | Role::Execution | Role::Custom => Seen::Other,
        }
    }))
}

fn check<'a>(messages: impl Iterator<Item = Seen<'a>>) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = Waiting::default();
    for (at, message) in messages.enumerate() {
        if let Seen::Result(id) = message {
            if !waiting.takes(id) {
                found.push(format!("message {at}: a result for {id:?}, which the answer before it did not call"));
            }
            continue;
        }
        if let Some(open) = waiting.end() {
            found.push(format!("message {at}: calls without a result before it: {open:?}"));
        }
        match message {
            Seen::Answer { calls, failed, empty } => {
                if failed {
                    found.push(format!("message {at}: an answer that failed"));
                }
                if empty {
                    found.push(format!("message {at}: an answer without content"));
                }
                waiting.begin(calls);
            }
            Seen::Unknown(role) => found.push(format!("message {at}: role {role:?} is for no provider")),
            Seen::Other | Seen::Result(_) => {}
        }
    }
    if let Some(open) = waiting.end() {
        found.push(format!("at the end: calls without a result: {open:?}"));
    }
    found
}

/// The calls of the last answer.
#[derive(Default)]
struct Waiting<'a> {
    calls: Vec<&'a str>,
    /// Number of the calls of each id that still wait for a result.
    open: HashMap<&'a str, usize>,
}

impl<'a> Waiting<'a> {
    fn begin(&mut self, calls: Vec<&'a str>) {
        self.open.clear();
        calls.iter().for_each(|call| *self.open.entry(call).or_default() += 1);
        self.calls = calls;
    }

    /// Takes a result. False where no call waits for it.
    fn takes(&mut self, id: &str) -> bool {
        self.open.get_mut(id).filter(|open| **open > 0).map(|open| *open -= 1).is_some()
    }

    /// Ends them, and returns those that had no result.
    fn end(&mut self) -> Option<Vec<&'a str>> {
        let calls = std::mem::take(&mut self.calls);
        let open: Vec<&str> = calls.into_iter().filter(|call| self.takes(call)).collect();
        (!open.is_empty()).then_some(open)
    }
}
