//! Anthropic Messages.

use super::{Event, Place, Turn};
use crate::provider::step::{Part, Stop};
use serde_json::{Value, json};

pub fn events(turn: &Turn) -> Vec<Event> {
    let mut message = body(turn);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    if message.get("usage").is_some() {
        message["usage"]["output_tokens"] = turn.counted(json!({"now": 1}))["now"].take();
    }
    let mut events =
        vec![Event::typed(json!({"type": "message_start", "message": message})), Event::typed(json!({"type": "ping"}))];
    for (at, part) in turn.answer.parts.iter().enumerate() {
        let delta = |delta: Value, place| {
            Event::typed(json!({"type": "content_block_delta", "index": at, "delta": delta})).at(place)
        };
        let (start, deltas) = match part {
            Part::Text(text) => {
                let deltas = turn.cut(text).into_iter();
                let deltas = deltas.map(|text| delta(json!({"type": "text_delta", "text": text}), Place::Delta));
                (json!({"type": "text", "text": ""}), deltas.collect())
            }
            Part::Thinking { text, signature } => {
                let deltas = turn.cut(text).into_iter();
                let deltas =
                    deltas.map(|text| delta(json!({"type": "thinking_delta", "thinking": text}), Place::Delta));
                let signed = delta(json!({"type": "signature_delta", "signature": signature}), Place::Frame);
                (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas.chain([signed]).collect())
            }
            Part::Redacted(data) => (json!({"type": "redacted_thinking", "data": data}), Vec::new()),
            Part::Call { name, args } => {
                let args = args.to_string();
                let pieces = std::iter::once("").chain(turn.cut(&args));
                let deltas =
                    pieces.map(|json| delta(json!({"type": "input_json_delta", "partial_json": json}), Place::Frame));
                let id = turn.nth_id("toolu_", at);
                (json!({"type": "tool_use", "id": id, "name": name, "input": {}}), deltas.collect::<Vec<_>>())
            }
            Part::Block(block) => (block.clone(), Vec::new()),
        };
        events.push(Event::typed(json!({"type": "content_block_start", "index": at, "content_block": start})));
        events.extend(deltas);
        events.push(Event::typed(json!({"type": "content_block_stop", "index": at})));
    }
    let mut end = json!({"type": "message_delta", "delta": {"stop_reason": stop(turn), "stop_sequence": null}});
    if !turn.answer.usage_left_out {
        end["usage"] = usage(turn);
    }
    events.push(Event::typed(end).at(Place::End));
    events.push(Event::typed(json!({"type": "message_stop"})).at(Place::End));
    events
}

pub fn body(turn: &Turn) -> Value {
    let block = |(at, part): (usize, &Part)| match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Thinking { text, signature } => json!({"type": "thinking", "thinking": text, "signature": signature}),
        Part::Redacted(data) => json!({"type": "redacted_thinking", "data": data}),
        Part::Call { name, args } => {
            json!({"type": "tool_use", "id": turn.nth_id("toolu_", at), "name": name, "input": args})
        }
        Part::Block(block) => block.clone(),
    };
    let content: Vec<Value> = turn.answer.parts.iter().enumerate().map(block).collect();
    let mut body = json!({
        "id": turn.id("msg_"), "type": "message", "role": "assistant", "model": turn.model, "content": content,
        "stop_reason": stop(turn), "stop_sequence": null,
    });
    if !turn.answer.usage_left_out {
        body["usage"] = usage(turn);
    }
    body
}

fn stop(turn: &Turn) -> &'static str {
    match turn.stop() {
        Stop::End => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::Length => "max_tokens",
        Stop::Window => "model_context_window_exceeded",
        Stop::Refusal | Stop::Safety => "refusal",
        Stop::Compaction => "compaction",
    }
}

fn usage(turn: &Turn) -> Value {
    let counted = turn.counted(json!({
        "input_tokens": turn.usage.input, "cache_creation_input_tokens": turn.usage.cache_write,
        "cache_read_input_tokens": turn.usage.cache_read, "output_tokens": turn.usage.output,
    }));
    if turn.stop() != Stop::Compaction {
        return counted;
    }
    let mut of_compaction = counted;
    of_compaction["type"] = json!("compaction");
    json!({"input_tokens": 0, "output_tokens": 0, "iterations": [of_compaction]})
}
