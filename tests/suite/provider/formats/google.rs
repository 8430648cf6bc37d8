//! Google Gemini.

use super::{Event, Place, Turn};
use crate::provider::step::{Part, Stop};
use serde_json::{Value, json};

/// Every event is a response of its own; the counts grow with them.
pub fn events(turn: &Turn) -> Vec<Event> {
    if turn.stop() == Stop::Refusal {
        return vec![Event::data(body(turn)).at(Place::End)];
    }
    let chunk = |part: Value| {
        let mut chunk = frame(turn);
        chunk["candidates"] = json!([{"content": {"parts": [part], "role": "model"}, "index": 0}]);
        chunk
    };
    let mut events = Vec::new();
    for part in parts(turn) {
        let Some(text) = part["text"].as_str() else {
            events.push(Event::data(chunk(part)));
            continue;
        };
        let pieces = turn.cut(text);
        for (at, piece) in pieces.iter().enumerate() {
            let mut partial = part.clone();
            partial["text"] = json!(piece);
            // A signature comes with the last of what it signs.
            if at + 1 < pieces.len() {
                partial.as_object_mut().expect("a part").shift_remove("thoughtSignature");
            }
            events.push(Event::data(chunk(partial)).at(Place::Delta));
        }
        if pieces.is_empty() {
            events.push(Event::data(chunk(part)));
        }
    }
    let mut last = if events.is_empty() { body(turn) } else { chunk(json!({"text": ""})) };
    last["candidates"][0]["finishReason"] = json!(stop(turn));
    if !turn.answer.usage_left_out {
        last["usageMetadata"] = usage(turn);
    }
    events.push(Event::data(last).at(Place::End));
    events
}

pub fn body(turn: &Turn) -> Value {
    let mut body = frame(turn);
    if turn.stop() == Stop::Refusal {
        body["promptFeedback"] = json!({"blockReason": "PROHIBITED_CONTENT"});
    } else {
        let parts = parts(turn);
        let content =
            if parts.is_empty() { json!({"role": "model"}) } else { json!({"parts": parts, "role": "model"}) };
        body["candidates"] = json!([{"content": content, "finishReason": stop(turn), "index": 0}]);
    }
    if !turn.answer.usage_left_out {
        body["usageMetadata"] = usage(turn);
    }
    body
}

fn frame(turn: &Turn) -> Value {
    let mut frame = json!({"modelVersion": turn.model, "responseId": turn.id("response")});
    if !turn.answer.usage_left_out {
        frame["usageMetadata"] = turn.counted(json!({
            "promptTokenCount": turn.usage.prompt(), "totalTokenCount": turn.usage.prompt(),
        }));
    }
    frame
}

/// The parts; the signature of a thought stands at what it led to.
fn parts(turn: &Turn) -> Vec<Value> {
    let mut parts = Vec::new();
    let mut signature = None;
    for part in &turn.answer.parts {
        let mut said = match part {
            Part::Thinking { text, signature: signed } => {
                signature = Some(signed.clone());
                parts.push(json!({"text": text, "thought": true}));
                continue;
            }
            Part::Redacted(data) => {
                signature = Some(data.clone());
                continue;
            }
            Part::Text(text) => json!({"text": text}),
            Part::Block(_) => panic!("only Anthropic has blocks"),
            Part::Call { name, args } => json!({"functionCall": {"name": name, "args": args}}),
        };
        if let Some(signature) = signature.take() {
            said["thoughtSignature"] = json!(signature);
        }
        parts.push(said);
    }
    if let Some(signature) = signature {
        parts.push(json!({"text": "", "thoughtSignature": signature}));
    }
    parts
}

fn stop(turn: &Turn) -> &'static str {
    match turn.stop() {
        Stop::End | Stop::ToolUse | Stop::Refusal => "STOP",
        Stop::Length | Stop::Window => "MAX_TOKENS",
        Stop::Compaction => panic!("only Anthropic compacts"),
        Stop::Safety => "SAFETY",
    }
}

fn usage(turn: &Turn) -> Value {
    let usage = turn.usage;
    let thought = turn.thought();
    let mut counts = json!({
        "promptTokenCount": usage.prompt(), "candidatesTokenCount": usage.output - thought,
        "totalTokenCount": usage.prompt() + usage.output,
    });
    // Counts of nothing are left out there.
    if usage.cache_read > 0 {
        counts["cachedContentTokenCount"] = json!(usage.cache_read);
    }
    if thought > 0 {
        counts["thoughtsTokenCount"] = json!(thought);
    }
    turn.counted(counts)
}
