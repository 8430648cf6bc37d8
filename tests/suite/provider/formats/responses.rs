//! OpenAI Responses.

use super::{Event, Place, Turn};
use crate::provider::step::{Part, Stop};
use serde_json::{Value, json};

/// Sequence numbers are given when an event is sent.
pub fn events(turn: &Turn) -> Vec<Event> {
    let whole = body(turn);
    let mut started = whole.clone();
    started["status"] = json!("in_progress");
    started["output"] = json!([]);
    for absent in ["usage", "incomplete_details"] {
        started[absent] = Value::Null;
    }
    let mut events = vec![
        Event::typed(json!({"type": "response.created", "response": started})),
        Event::typed(json!({"type": "response.in_progress", "response": started})),
    ];
    for (at, item) in whole["output"].as_array().expect("items").iter().enumerate() {
        let mut begun = item.clone();
        let told = tell(turn, at, item, &mut begun);
        events.push(Event::typed(json!({"type": "response.output_item.added", "output_index": at, "item": begun})));
        events.extend(told);
        events.push(Event::typed(json!({"type": "response.output_item.done", "output_index": at, "item": item})));
    }
    let kind = if whole["status"] == "incomplete" { "response.incomplete" } else { "response.completed" };
    events.push(Event::typed(json!({"type": kind, "response": whole})).at(Place::End));
    events
}

/// The events of an item; what they bring is taken out of how it began.
fn tell(turn: &Turn, at: usize, item: &Value, begun: &mut Value) -> Vec<Event> {
    let event = |kind: &str, fields: Value| {
        let mut data = json!({"type": format!("response.{kind}"), "item_id": item["id"], "output_index": at});
        data.as_object_mut().expect("fields").extend(fields.as_object().expect("fields").clone());
        Event::typed(data)
    };
    match item["type"].as_str() {
        Some("reasoning") => {
            begun["summary"] = json!([]);
            begun["encrypted_content"] = json!("");
            let Some(text) = item["summary"][0]["text"].as_str() else { return Vec::new() };
            let part = |text: &str| json!({"summary_index": 0, "part": {"type": "summary_text", "text": text}});
            let mut events = vec![event("reasoning_summary_part.added", part(""))];
            let deltas = turn.cut(text).into_iter().map(|text| json!({"summary_index": 0, "delta": text}));
            events.extend(deltas.map(|fields| event("reasoning_summary_text.delta", fields).at(Place::Delta)));
            events.push(event("reasoning_summary_text.done", json!({"summary_index": 0, "text": text})));
            events.push(event("reasoning_summary_part.done", part(text)));
            events
        }
        Some("function_call") => {
            begun["status"] = json!("in_progress");
            begun["arguments"] = json!("");
            let args = item["arguments"].as_str().expect("arguments");
            let deltas = turn.cut(args).into_iter();
            let mut events: Vec<Event> =
                deltas.map(|piece| event("function_call_arguments.delta", json!({"delta": piece}))).collect();
            events.push(event("function_call_arguments.done", json!({"arguments": args})));
            events
        }
        Some("compaction") => Vec::new(),
        _ => {
            begun["status"] = json!("in_progress");
            begun["content"] = json!([]);
            let part = &item["content"][0];
            let (kind, field) =
                if part["type"] == "refusal" { ("refusal", "refusal") } else { ("output_text", "text") };
            let text = part[field].as_str().expect("a text");
            let mut empty = part.clone();
            empty[field] = json!("");
            let mut events = vec![event("content_part.added", json!({"content_index": 0, "part": empty}))];
            let deltas = turn.cut(text).into_iter().map(|text| json!({"content_index": 0, "delta": text}));
            events.extend(deltas.map(|fields| event(&format!("{kind}.delta"), fields).at(Place::Delta)));
            events.push(event(&format!("{kind}.done"), json!({"content_index": 0, field: text})));
            events.push(event("content_part.done", json!({"content_index": 0, "part": part})));
            events
        }
    }
}

pub fn body(turn: &Turn) -> Value {
    let reason = match turn.stop() {
        Stop::Length | Stop::Window => Some("max_output_tokens"),
        Stop::Compaction => panic!("only Anthropic compacts"),
        Stop::Safety => Some("content_filter"),
        Stop::End | Stop::ToolUse | Stop::Refusal => None,
    };
    let status = if reason.is_some() { "incomplete" } else { "completed" };
    let item = |(at, part): (usize, &Part)| match part {
        Part::Thinking { text, signature } => json!({
            "id": turn.nth_id("rs_", at), "type": "reasoning", "summary": [{"type": "summary_text", "text": text}],
            "encrypted_content": signature,
        }),
        Part::Redacted(data) => {
            json!({"id": turn.nth_id("rs_", at), "type": "reasoning", "summary": [], "encrypted_content": data})
        }
        Part::Text(text) => {
            let content = if turn.stop() == Stop::Refusal {
                json!({"type": "refusal", "refusal": text})
            } else {
                json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
            };
            json!({"id": turn.nth_id("msg_", at), "type": "message", "status": status, "content": [content], "role": "assistant"})
        }
        Part::Block(block) => block.clone(),
        Part::Call { name, args } => json!({
            "id": turn.nth_id("fc_", at), "type": "function_call", "status": status, "arguments": args.to_string(),
            "call_id": turn.nth_id("call_", at), "name": name,
        }),
    };
    let output: Vec<Value> = turn.answer.parts.iter().enumerate().map(item).collect();
    json!({
        "id": turn.id("resp_"), "object": "response", "created_at": 1_790_000_000, "status": status, "error": null,
        "incomplete_details": reason.map(|reason| json!({"reason": reason})), "model": turn.model, "output": output,
        "parallel_tool_calls": true, "store": false, "usage": usage(turn),
    })
}

/// The messages of the user as they were, and the rest as an item nobody can read.
pub fn compacted(turn: &Turn, input: &Value) -> Value {
    let items = input.as_array().map_or(&[][..], Vec::as_slice);
    let mut output: Vec<Value> = items.iter().filter(|item| item["role"] == "user").cloned().collect();
    let text: String = turn
        .answer
        .parts
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
        .collect();
    output.push(json!({"id": turn.id("cmp_"), "type": "compaction", "encrypted_content": text}));
    json!({
        "id": turn.id("resp_"), "object": "response.compaction", "created_at": 1_790_000_000, "output": output,
        "usage": usage(turn),
    })
}

fn usage(turn: &Turn) -> Value {
    if turn.answer.usage_left_out {
        return Value::Null;
    }
    let usage = turn.usage;
    turn.counted(json!({
        "input_tokens": usage.prompt(), "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": turn.thought()},
        "total_tokens": usage.prompt() + usage.output,
    }))
}
