//! The rules of Anthropic's API about compactions on demand and bound thinking, as its pages state them: the list of models,
//! blocks with a signature, thinking that is signed with everything before it.

use super::{Asked, Step};
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The beta of compactions.
pub const COMPACTION: &str = "compact-2026-09-04";
/// The beta of the field that says what happens to thinking after other bytes.
pub const BINDING: &str = "thinking-binding-controls-2026-08-01";

/// A signature of a value.
pub fn sign(value: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    without_marks(value.clone()).to_string().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// A value without the marks of the cache, which bind nothing.
pub fn without_marks(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(|value| *value = without_marks(value.take()));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| *value = without_marks(value.take())),
        _ => {}
    }
    value
}

/// The signature of thinking that comes after these messages and blocks of its own answer.
pub fn of_thinking(body: &Value, messages: &[Value], blocks: &[Value]) -> String {
    sign(&json!([body["system"], body["tools"], messages, blocks]))
}

/// The block of a compaction with this text.
pub fn block(text: &str) -> Value {
    json!({"type": "compaction", "content": text, "signature": sign(&json!(["block", text])), "encrypted_content": null})
}

/// The list of models, of which these compact.
pub fn models(compact: &[&str]) -> Step {
    let models = compact.iter().map(|id| json!({"id": id, "type": "model", "capabilities": {"compaction": true}}));
    let other = json!({"id": "claude-2", "type": "model", "capabilities": {"compaction": false}});
    let list = json!({"data": models.chain([other]).collect::<Vec<_>>(), "has_more": false});
    Step::status(200).body(&list.to_string())
}

/// An error with a code of compactions.
pub fn error(status: u16, code: &str) -> Step {
    let error = json!({"type": "invalid_request_error", "message": format!("The request has a wrong block: {code}."),
        "details": {"error_code": code}});
    Step::status(status).body(&json!({"type": "error", "error": error}).to_string())
}

/// The objection to a request, as a code or a text.
pub fn objection(asked: &Asked) -> Option<String> {
    let body = &asked.body;
    let has_beta = |beta: &str| asked.header("anthropic-beta").unwrap_or_default().split(',').any(|it| it == beta);
    objection_to(body, &has_beta)
}

/// The same for a body with these betas.
pub fn objection_to(body: &Value, has_beta: &dyn Fn(&str) -> bool) -> Option<String> {
    let messages = body["messages"].as_array().expect("messages");
    let blocks = |message: &Value| message["content"].as_array().cloned().unwrap_or_default();
    let compactions: Vec<(usize, usize, Value)> = messages
        .iter()
        .enumerate()
        .flat_map(|(at, message)| blocks(message).into_iter().enumerate().map(move |(place, block)| (at, place, block)))
        .filter(|(_, _, block)| block["type"] == "compaction")
        .collect();
    let compacts = !compactions.is_empty() || !body["compaction"].is_null();
    if compacts && !has_beta(COMPACTION) {
        return Some(format!("the beta {COMPACTION} is missing"));
    }
    match compactions.as_slice() {
        [] => {}
        [(0, 0, given)] => {
            let text = given["content"].as_str().unwrap_or_default();
            if given["signature"] != block(text)["signature"] {
                return Some("compaction_signature_invalid".to_owned());
            }
            if without_marks(given.clone()) != block(text) {
                return Some("compaction_content_mismatch".to_owned());
            }
        }
        [_] => return Some("compaction_block_misplaced".to_owned()),
        _ => return Some("compaction_block_ambiguous".to_owned()),
    }
    let compaction = &body["compaction"];
    if !compaction.is_null() {
        let of_others = ["context_management", "stop_sequences"].iter().any(|field| !body[*field].is_null());
        let forces = ["any", "tool"].iter().any(|kind| body["tool_choice"]["type"] == *kind);
        let instructions = &compaction["instructions"];
        let is_long = instructions.as_str().is_some_and(|text| text.chars().count() > 16_384);
        if compaction["type"] != "summarize" || of_others || forces || is_long {
            return Some("a field that compactions do not go with".to_owned());
        }
        if messages.len() < 2 {
            return Some("compaction_nothing_to_summarize".to_owned());
        }
    }
    let drops = body["thinking"]["block_binding"]["prefix_mismatch_behavior"] == "drop_block";
    if drops && !has_beta(BINDING) {
        return Some(format!("the beta {BINDING} is missing"));
    }
    for (at, message) in messages.iter().enumerate().filter(|(_, message)| message["role"] == "assistant") {
        let blocks = blocks(message);
        for (place, block) in blocks.iter().enumerate().filter(|(_, block)| block["type"] == "thinking") {
            if block["signature"] != of_thinking(body, &messages[..at], &blocks[..place]) {
                return Some(format!("messages.{at}.content.{place}: The block is bound to a different conversation"));
            }
        }
    }
    None
}

/// The answer to a request for a compaction: a block whose text names the first words of each message of the user.
pub fn compacted(asked: &Asked) -> Step {
    let messages = asked.body["messages"].as_array().expect("messages");
    let texts = messages.iter().flat_map(|message| message["content"].as_array().cloned().unwrap_or_default());
    let words = texts.filter_map(|block| {
        let text = block["text"].as_str().or(block["content"].as_str().filter(|_| block["type"] == "compaction"))?;
        Some(text.split_whitespace().take(4).collect::<Vec<_>>().join(" "))
    });
    let words: Vec<String> = words.take(20).collect();
    Step::compaction(block(&format!("The provider's summary: {}", words.join("; "))))
}
