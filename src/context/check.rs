//! Would a provider take this list? Asked of the finished messages as JSON, knowing nothing of how they were made.

use super::ContextMessage;
use serde_json::Value;

/// Every reason for a provider to refuse the messages; none for a valid list.
#[must_use]
pub fn violations(messages: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    // The calls of the last answer that still wait for a result.
    let mut waiting: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "toolResult" {
            let id = message["toolCallId"].as_str().unwrap_or_default();
            match waiting.iter().position(|it| *it == id) {
                Some(place) => {
                    waiting.remove(place);
                }
                None => found.push(format!("message {at}: a result for {id:?}, which the answer before it did not call")),
            }
            continue;
        }
        if !waiting.is_empty() {
            found.push(format!("message {at}: calls without a result before it: {waiting:?}"));
            waiting.clear();
        }
        match role {
            "assistant" => {
                if matches!(message["stopReason"].as_str(), Some("error" | "aborted")) {
                    found.push(format!("message {at}: an answer that failed"));
                }
                let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
                if blocks.is_empty() {
                    found.push(format!("message {at}: an answer without content"));
                }
                waiting = blocks
                    .iter()
                    .filter(|block| block["type"] == "toolCall")
                    .filter_map(|block| block["id"].as_str())
                    .collect();
            }
            "user" | "developer" | "bashExecution" | "pythonExecution" | "custom" | "hookMessage" | "fileMention" => {}
            other => found.push(format!("message {at}: role {other:?} is for no provider")),
        }
    }
    if !waiting.is_empty() {
        found.push(format!("at the end: calls without a result: {waiting:?}"));
    }
    found
}

/// The same for messages of a context.
pub(super) fn violations_of(messages: &[ContextMessage]) -> Vec<String> {
    let values: Vec<Value> =
        messages.iter().map(|message| serde_json::from_str(&message.json()).unwrap_or_default()).collect();
    violations(&values)
}
