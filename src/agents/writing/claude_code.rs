//! A session of Claude Code. Its version 2.1.197 resumed files of this form.

use super::{Conversation, Part, Said, or_empty, push};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The version that the lines name: the form is that of this one.
const VERSION: &str = "2.1.197";

/// The longest folder name that is not shortened, in letters.
const LONGEST_FOLDER: usize = 200;

/// The folder of the sessions of a working folder, below `projects`.
#[must_use]
pub fn folder(cwd: &str) -> String {
    let name: String = cwd
        .encode_utf16()
        .map(|unit| char::from_u32(u32::from(unit)).filter(char::is_ascii_alphanumeric).unwrap_or('-'))
        .collect();
    if name.len() <= LONGEST_FOLDER {
        return name;
    }
    // Claude Code tells longer names apart by a hash of the path, in base 36.
    let hash = cwd.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    format!("{}-{}", &name[..LONGEST_FOLDER], base_36(hash.unsigned_abs()))
}

fn base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

/// The lines of the session.
#[must_use]
pub fn lines(conversation: &Conversation) -> String {
    let mut lines = String::new();
    let mut parent = Value::Null;
    for (nth, (time, said)) in conversation.said().enumerate() {
        let uuid = uuid(&conversation.id, nth);
        let mut line = json!({
            "parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": conversation.cwd,
            "sessionId": conversation.id, "version": VERSION, "gitBranch": "", "uuid": uuid, "timestamp": time,
        });
        let content = |parts: &[Part<'_>]| or_empty(parts.iter().map(block).collect());
        match &said {
            Said::User(parts) => {
                line["type"] = "user".into();
                line["message"] = json!({ "role": "user", "content": content(parts) });
            }
            Said::Result { call, parts, is_error } => {
                let result = json!({
                    "type": "tool_result", "tool_use_id": call, "content": content(parts), "is_error": is_error,
                });
                line["type"] = "user".into();
                line["message"] = json!({ "role": "user", "content": [result] });
            }
            Said::Answer { parts, model } => {
                let calls = parts.iter().any(|part| matches!(part, Part::Call { .. }));
                let id = uuid.replace('-', "");
                line["type"] = "assistant".into();
                line["requestId"] = format!("req_{id}").into();
                line["message"] = json!({
                    "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": model,
                    "content": content(parts), "stop_reason": if calls { "tool_use" } else { "end_turn" },
                    "stop_sequence": null,
                    "usage": {
                        "input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0,
                    },
                });
            }
        }
        push(&mut lines, &line);
        parent = uuid.into();
    }
    if let Some(title) = &conversation.title {
        push(&mut lines, &json!({ "type": "custom-title", "customTitle": title, "sessionId": conversation.id }));
    }
    lines
}

fn block(part: &Part<'_>) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image { data, kind } => {
            json!({ "type": "image", "source": { "type": "base64", "media_type": kind, "data": data } })
        }
        Part::Call { id, name, arguments } => json!({ "type": "tool_use", "id": id, "name": name, "input": arguments }),
    }
}

/// A UUID of a line: the same each time for the same session and place.
fn uuid(session: &str, nth: usize) -> String {
    let digest = Sha256::digest(format!("{session}:{nth}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}
