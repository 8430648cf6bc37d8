//! Would a provider take this list? Asked of the finished messages, knowing nothing of how they were made.

use super::ContextMessage;
use crate::conversation::message::outline::Role;
use serde_json::Value;

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
    // The calls of the last answer that still wait for a result.
    let mut waiting: Vec<&str> = Vec::new();
    for (at, message) in messages.enumerate() {
        if let Seen::Result(id) = message {
            match waiting.iter().position(|it| *it == id) {
                Some(place) => {
                    waiting.remove(place);
                }
                None => {
                    found.push(format!("message {at}: a result for {id:?}, which the answer before it did not call"))
                }
            }
            continue;
        }
        if !waiting.is_empty() {
            found.push(format!("message {at}: calls without a result before it: {waiting:?}"));
            waiting.clear();
        }
        match message {
            Seen::Answer { calls, failed, empty } => {
                if failed {
                    found.push(format!("message {at}: an answer that failed"));
                }
                if empty {
                    found.push(format!("message {at}: an answer without content"));
                }
                waiting = calls;
            }
            Seen::Unknown(role) => found.push(format!("message {at}: role {role:?} is for no provider")),
            Seen::Other | Seen::Result(_) => {}
        }
    }
    if !waiting.is_empty() {
        found.push(format!("at the end: calls without a result: {waiting:?}"));
    }
    found
}
