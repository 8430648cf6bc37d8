//! A session of Codex. Its version 0.171 resumed files of this form.

use super::{Conversation, Part, Said, push, text};
use crate::conversation::entry;
use serde_json::{Value, json};

/// The path of the file below `sessions`: a folder for each day, and a name with the time and the id.
#[must_use]
pub fn path(conversation: &Conversation) -> String {
    let time = conversation.now.strftime("%Y-%m-%dT%H-%M-%S");
    format!("{}/rollout-{time}-{}.jsonl", conversation.now.strftime("%Y/%m/%d"), conversation.id)
}

/// The lines of the session. A provider is not named: Codex resumes no session of another one than that of its settings.
#[must_use]
pub fn lines(conversation: &Conversation) -> String {
    let mut lines = String::new();
    let now = entry::timestamp(conversation.now);
    let meta = json!({
        "id": conversation.id, "timestamp": now, "cwd": conversation.cwd, "originator": "abridged",
        "cli_version": env!("CARGO_PKG_VERSION"), "source": "cli",
    });
    push(&mut lines, &json!({ "timestamp": now, "type": "session_meta", "payload": meta }));
    for (time, said) in conversation.said() {
        let mut line = |kind: &str, payload: Value| {
            push(&mut lines, &json!({ "timestamp": time, "type": kind, "payload": payload }));
        };
        match &said {
            Said::User(parts) => {
                let content: Vec<Value> = parts.iter().filter_map(|part| input(part)).collect();
                line("response_item", json!({ "type": "message", "role": "user", "content": content }));
                // The list of sessions shows those that have such an event.
                line("event_msg", json!({ "type": "user_message", "message": text(parts), "images": [] }));
            }
            Said::Answer { parts, .. } => {
                let said = text(parts);
                if !said.is_empty() {
                    let content = json!([{ "type": "output_text", "text": said }]);
                    line("response_item", json!({ "type": "message", "role": "assistant", "content": content }));
                    line("event_msg", json!({ "type": "agent_message", "message": said }));
                }
                for part in parts {
                    let Part::Call { id, name, arguments } = part else { continue };
                    let call = json!({
                        "type": "function_call", "name": name, "arguments": arguments.to_string(), "call_id": id,
                    });
                    line("response_item", call);
                }
            }
            Said::Result { call, parts, .. } => {
                let has_images = parts.iter().any(|part| matches!(part, Part::Image { .. }));
                let output = match has_images {
                    true => parts.iter().filter_map(|part| input(part)).collect::<Vec<Value>>().into(),
                    false => Value::from(text(parts)),
                };
                line("response_item", json!({ "type": "function_call_output", "call_id": call, "output": output }));
            }
        }
    }
    lines
}

fn input(part: &Part<'_>) -> Option<Value> {
    match part {
        Part::Text(text) => Some(json!({ "type": "input_text", "text": text })),
        Part::Image { data, kind } => {
            Some(json!({ "type": "input_image", "image_url": format!("data:{kind};base64,{data}") }))
        }
        Part::Call { .. } => None,
    }
}
