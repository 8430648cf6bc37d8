//! OpenAI Chat Completions, and what servers of the same format add to it for thinking.

use super::{Event, Place, Turn};
use crate::provider::step::{Part, Stop};
use serde_json::{Value, json};

pub fn events(turn: &Turn) -> Vec<Event> {
    let chunk = |choices: Value| {
        let mut chunk = json!({
            "id": turn.id("chatcmpl-"), "object": "chat.completion.chunk", "created": 1_790_000_000,
            "model": turn.model, "service_tier": "default", "choices": choices,
        });
        if turn.include_usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    };
    let delta = |delta: Value, finish: Value| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]))
    };
    let frame = |fields: Value| Event::data(delta(fields, Value::Null));
    let mut events = vec![frame(json!({"role": "assistant", "content": "", "refusal": null}))];
    let said = if turn.stop() == Stop::Refusal { "refusal" } else { "content" };
    let mut calls = 0;
    for part in &turn.answer.parts {
        match part {
            Part::Text(text) => {
                events.extend(turn.cut(text).into_iter().map(|text| frame(json!({said: text})).at(Place::Delta)));
            }
            Part::Thinking { text, .. } => {
                let thoughts = turn.cut(text).into_iter();
                events.extend(thoughts.map(|text| frame(json!({"reasoning_content": text})).at(Place::Delta)));
            }
            Part::Redacted(data) => {
                events.push(frame(json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": data}]})));
            }
            Part::Block(_) => panic!("only Anthropic has blocks"),
            Part::Call { name, args } => {
                let call = json!({"index": calls, "id": turn.nth_id("call_", calls), "type": "function", "function": {"name": name, "arguments": ""}});
                events.push(frame(json!({"tool_calls": [call]})));
                let args = args.to_string();
                let piece =
                    |piece: &str| frame(json!({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]}));
                events.extend(turn.cut(&args).into_iter().map(piece));
                calls += 1;
            }
        }
    }
    events.push(Event::data(delta(json!({}), json!(stop(turn)))).at(Place::End));
    if turn.include_usage && !turn.answer.usage_left_out {
        let mut last = chunk(json!([]));
        last["usage"] = usage(turn);
        events.push(Event::data(last).at(Place::End));
    }
    events.push(Event::raw("[DONE]").at(Place::End));
    events
}

pub fn body(turn: &Turn) -> Value {
    let (mut text, mut thoughts, mut hidden, mut calls) = (String::new(), String::new(), Vec::new(), Vec::new());
    for part in &turn.answer.parts {
        match part {
            Part::Text(more) => text.push_str(more),
            Part::Thinking { text, .. } => thoughts.push_str(text),
            Part::Redacted(data) => hidden.push(json!({"type": "reasoning.encrypted", "data": data})),
            Part::Block(_) => panic!("only Anthropic has blocks"),
            Part::Call { name, args } => calls.push(json!({
                "id": turn.nth_id("call_", calls.len()), "type": "function",
                "function": {"name": name, "arguments": args.to_string()},
            })),
        }
    }
    let mut message = json!({"role": "assistant", "content": null, "refusal": null, "annotations": []});
    if turn.stop() == Stop::Refusal {
        message["refusal"] = json!(text);
    } else if calls.is_empty() || !text.is_empty() {
        message["content"] = json!(text);
    }
    if !thoughts.is_empty() {
        message["reasoning_content"] = json!(thoughts);
    }
    if !hidden.is_empty() {
        message["reasoning_details"] = json!(hidden);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let mut body = json!({
        "id": turn.id("chatcmpl-"), "object": "chat.completion", "created": 1_790_000_000, "model": turn.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": stop(turn)}],
    });
    if !turn.answer.usage_left_out {
        body["usage"] = usage(turn);
    }
    body
}

fn stop(turn: &Turn) -> &'static str {
    match turn.stop() {
        Stop::End | Stop::Refusal => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::Length | Stop::Window => "length",
        Stop::Compaction => panic!("only Anthropic compacts"),
        Stop::Safety => "content_filter",
    }
}

fn usage(turn: &Turn) -> Value {
    let usage = turn.usage;
    turn.counted(json!({
        "prompt_tokens": usage.prompt(), "completion_tokens": usage.output,
        "total_tokens": usage.prompt() + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": turn.thought()},
    }))
}
