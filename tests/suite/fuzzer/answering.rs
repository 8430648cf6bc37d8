//! The client's side of the daemon's questions: hooks and models that answer well, in a wrong form, with an error, twice,
//! late or never.

use crate::{
    summarizing::good,
    support::{assistant, text_of},
    wire::Dice,
};
use serde_json::{Value, json};

/// Frames that answer a question: those for now, and those for later.
#[derive(Debug, Default)]
pub struct Answering {
    pub now: Vec<Value>,
    pub later: Vec<Value>,
}

pub fn answering(dice: &mut Dice, question: &Value) -> Answering {
    let id = &question["id"];
    let right = json!({"jsonrpc": "2.0", "id": id, "result": right(dice, question)});
    let mut answers = Answering::default();
    match dice.below(20) {
        0..10 => answers.now.push(right),
        10..13 => answers.now.push(json!({"jsonrpc": "2.0", "id": id, "result": wrong(dice)})),
        13 | 14 => answers.now.push(error(dice, id)),
        15 => answers.now.extend([right.clone(), right]),
        16 => answers.now.extend([right, error(dice, id)]),
        17 => answers.later.push(right),
        18 => answers.now.push(json!({"jsonrpc": "2.0", "id": id})),
        _ => {}
    }
    answers
}

fn error(dice: &mut Dice, id: &Value) -> Value {
    let message = *dice.pick(&[
        "broken",
        "",
        "prompt is too long: 9000 tokens > 8192 maximum",
        "Rate limit exceeded, too many tokens per minute",
        "overloaded_error",
        "invalid api key",
    ]);
    let error = match dice.below(5) {
        0 => json!("broken"),
        1 => json!({"code": "x"}),
        _ => json!({"code": -32000, "message": message}),
    };
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

fn wrong(dice: &mut Dice) -> Value {
    let shapes = [
        json!(7),
        json!([]),
        json!({}),
        json!("continue"),
        json!({"action": "explode"}),
        json!({"action": "replace"}),
        json!({"action": "replace", "compaction": {"summary": 7}}),
        json!({"action": "replace", "compaction": {"summary": "x", "firstKeptEntryId": "nobody"}}),
        json!({"action": "replace", "summary": 7}),
        json!({"prompt": 7, "context": "text"}),
        json!({"message": 7}),
        json!({"message": {"role": "user", "content": "me?"}}),
        json!({"message": {"role": "assistant", "content": []}}),
        json!({"message": {"role": "assistant", "content": [{"type": "toolCall", "id": "a", "name": "read", "arguments": {}}]}}),
        json!({"message": assistant("I cannot help with that.")}),
        json!({"message": assistant(&text_of(9_000, "long"))}),
        json!({"message": {"role": "assistant", "content": [{"type": "text", "text": "cut"}], "stopReason": "length"}}),
        json!({"message": {"role": "assistant", "content": [{"type": "text", "text": 7}], "usage": {"input": -1}}}),
    ];
    dice.pick(&shapes).clone()
}

fn right(dice: &mut Dice, question: &Value) -> Value {
    let decision = dice.below(4);
    match (question["method"].as_str().unwrap_or_default(), decision) {
        ("llm/complete", _) => {
            let mut message = assistant(&good("by the client"));
            let input = question["params"]["messages"].to_string().len() / 4;
            message["usage"] = json!({"input": input, "output": 100, "cacheRead": 0, "cacheWrite": 0});
            json!({"message": message})
        }
        ("hook/session_compacting", 0) => json!({"context": ["The build is green."], "preserveData": {"memory": [1]}}),
        ("hook/session_compacting", 1) => json!({"prompt": "Summarize in one paragraph."}),
        ("hook/session_compacting", _) => json!({}),
        ("hook/session_before_compact", 0) => {
            json!({"action": "replace", "compaction": {"summary": good("by the hook"), "details": {"own": true}}})
        }
        ("hook/session_before_tree", 0) => json!({"action": "replace", "summary": {"summary": good("of the branch")}}),
        (_, 1) => json!({"action": "cancel", "reason": "not now"}),
        _ => json!({"action": "continue"}),
    }
}
