//! Requests that make sense as the session stands, weighted so that sessions grow, compact, branch and recover.

use super::known::Known;
use crate::{
    support::{assistant, calls, failed, result, text_of, user},
    wire::Dice,
};
use serde_json::{Value, json};

/// Models of the settings of a case.
pub const MODELS: [&str; 4] = ["own/tiny", "own/small", "own/large", "other/unknown"];

pub type Request = (&'static str, Value);

/// Requests to be sent one after the other.
pub fn sensible(dice: &mut Dice, known: &Known, home: &str) -> Vec<Request> {
    let open: Vec<_> = known.sessions.iter().filter(|session| session.open).collect();
    // Few sessions, so that they become long.
    if open.is_empty() || known.sessions.len() < 6 && dice.below(80) == 0 {
        return vec![new(dice, home)];
    }
    let session = open[dice.below(open.len().min(2))];
    match dice.below(100) {
        0..45 => turn(dice, known, &session.id),
        45..56 => vec![reading(dice, known, &session.id, home)],
        56..66 => vec![compact(dice, &session.id)],
        66..76 => vec![tree(dice, known, &session.id, home)],
        76..86 => vec![marking(dice, known, &session.id)],
        86..92 => vec![settings(dice, known, &session.id)],
        _ => vec![living(dice, known, &session.id)],
    }
}

fn of(session: &str, more: Value) -> Value {
    let mut params = json!({"sessionId": session});
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    params
}

/// The same params without those that are null.
fn given(session: &str, more: Value) -> Value {
    let mut params = of(session, more);
    params.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
    params
}

fn maybe(dice: &mut Dice, one_in: usize, value: impl Into<Value>) -> Value {
    if dice.below(one_in) == 0 { value.into() } else { Value::Null }
}

fn new(dice: &mut Dice, home: &str) -> Request {
    let model = *dice.pick(&MODELS);
    let ephemeral = maybe(dice, 10, true);
    let title = maybe(dice, 3, "A title");
    let mut params = json!({"cwd": format!("{home}/project"), "model": model, "ephemeral": ephemeral, "title": title});
    if dice.below(3) == 0 {
        params["systemPrompt"] = json!(text_of(1 + dice.below(300), "system"));
        params["tools"] = json!([{"name": "read", "description": "reads", "inputSchema": {"type": "object"}}]);
    }
    if dice.below(4) == 0 {
        params["contextWindow"] = json!(*dice.pick(&[3_000, 6_000, 16_000]));
    }
    ("session/new", params)
}

fn size(dice: &mut Dice) -> usize {
    match dice.below(12) {
        0 => 0,
        1 => 1_500 + dice.below(3_000),
        2 => 8_000,
        _ => 10 + dice.below(400),
    }
}

fn words(dice: &mut Dice) -> String {
    let topic = format!("part{}", dice.below(1_000));
    let size = size(dice);
    format!("{topic}: you must keep {topic}.lock. {}", text_of(size, &topic))
}

/// Appends of a host in one turn, perhaps broken off anywhere.
fn turn(dice: &mut Dice, known: &Known, session: &str) -> Vec<Request> {
    let state = known.sessions.iter().find(|it| it.id == session).expect("it is known");
    let mut messages = Vec::new();
    if dice.below(5) > 0 {
        messages.push(user(&words(dice)));
    }
    for _ in 0..dice.below(3) {
        let ids: Vec<String> = (0..1 + dice.below(3)).map(|_| format!("call_{}", dice.below(40))).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        messages.push(calls(&ids));
        for id in &ids {
            if dice.below(12) > 0 {
                messages.push(result(id, &words(dice)));
            }
        }
    }
    messages.push(answer(dice, state.tokens));
    if dice.below(15) == 0 {
        messages.push(result("nobody", "a stray result"));
    }
    let mut requests = Vec::new();
    while !messages.is_empty() {
        let count = if dice.below(2) == 0 { messages.len() } else { 1 };
        let some: Vec<Value> = messages.drain(..count).collect();
        if dice.below(3) == 0 {
            let format = *dice.pick(&["messages", "anthropic", "openai_chat", "openai_responses", "google"]);
            let wait = maybe(dice, 4, true);
            requests.push(("session/context", given(session, json!({"format": format, "wait": wait}))));
        }
        let parent = if dice.below(25) == 0 { known.entry(dice, session) } else { None };
        let leaf = if dice.below(25) == 0 { known.entry(dice, session) } else { None };
        let context = state.context.clone().filter(|_| dice.below(2) == 0);
        let more = json!({"messages": some, "parentEntryId": parent, "expectedLeafId": leaf, "contextId": context});
        requests.push(("session/append", given(session, more)));
    }
    if dice.below(10) == 0 {
        requests.push(foreign(dice, session));
    }
    requests
}

/// An assistant message with a report that is right, wrong or missing, and every way to stop.
fn answer(dice: &mut Dice, tokens: u64) -> Value {
    let mut message = match dice.below(14) {
        0 => failed("prompt is too long: 9000 tokens > 8192 maximum"),
        1 => failed(["overloaded_error", "Rate limit: too many tokens per minute", ""][dice.below(3)]),
        2 => json!({"role": "assistant", "content": [], "stopReason": "length", "timestamp": 1}),
        3 => {
            let mut cut = calls(&["call_cut"]);
            cut["stopReason"] = json!("length");
            cut
        }
        4 => {
            json!({"role": "assistant", "content": [{"type": "text", "text": "stopped"}], "stopReason": "aborted", "timestamp": 1})
        }
        5 => {
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"}, {"type": "text", "text": words(dice)}], "stopReason": "stop", "timestamp": 1})
        }
        _ => assistant(&words(dice)),
    };
    let input = match dice.below(8) {
        0 => Some(0),
        1 => Some(dice.below(200_000) as u64),
        2 | 3 => None,
        _ => Some(tokens + dice.below(50) as u64),
    };
    if let Some(input) = input {
        message["usage"] =
            json!({"input": input, "output": 20, "cacheRead": 0, "cacheWrite": 0, "totalTokens": input + 20});
    }
    if dice.below(3) == 0 {
        let model = *dice.pick(&MODELS);
        let (provider, id) = model.split_once('/').expect("two parts");
        (message["provider"], message["model"]) = (json!(provider), json!(id));
    }
    message
}

/// An append in the words of a provider.
fn foreign(dice: &mut Dice, session: &str) -> Request {
    let text = words(dice);
    let (format, messages) = match dice.below(4) {
        0 => (
            "anthropic",
            json!([
                {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": text}]},
            ]),
        ),
        1 => (
            "openai_chat",
            json!([
                {"role": "user", "content": text},
                {"role": "assistant", "content": "fine", "tool_calls": [{"id": "c9", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "c9", "content": "done"},
            ]),
        ),
        2 => (
            "openai_responses",
            json!([
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]},
                {"type": "function_call", "call_id": "f1", "name": "read", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "f1", "output": "done"},
            ]),
        ),
        _ => (
            "google",
            json!([
                {"role": "user", "parts": [{"text": text}]},
                {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"out": "done"}}}]},
            ]),
        ),
    };
    let stop = maybe(dice, 4, "stop");
    ("session/append", given(session, json!({"messages": messages, "format": format, "stopReason": stop})))
}

fn compact(dice: &mut Dice, session: &str) -> Request {
    let keep = if dice.below(3) > 0 { json!(dice.below(1_200)) } else { Value::Null };
    let more = json!({
        "keepRecentTokens": keep,
        "method": maybe(dice, 3, "extractive"),
        "model": maybe(dice, 5, "own/large"),
        "fallback": maybe(dice, 5, true),
        "instructions": maybe(dice, 5, "Keep the names of files."),
        "context": maybe(dice, 6, vec!["The build is green."]),
        "when": maybe(dice, 6, "after_turn"),
        "initiator": maybe(dice, 8, "agent"),
        "dryRun": maybe(dice, 6, true),
        "newSession": maybe(dice, 12, true),
        "wait": maybe(dice, 3, true),
    });
    ("session/compact", given(session, more))
}

fn tree(dice: &mut Dice, known: &Known, session: &str, home: &str) -> Request {
    let entry = known.entry(dice, session);
    match dice.below(12) {
        0..5 => {
            let summarize = maybe(dice, 2, true);
            let wait = maybe(dice, 3, true);
            let label = maybe(dice, 5, "here");
            let instructions = maybe(dice, 6, "Be brief.");
            let more = json!({"targetEntryId": entry.unwrap_or_else(|| "nowhere".to_owned()), "summarize": summarize, "wait": wait, "label": label, "instructions": instructions});
            ("session/navigate", given(session, more))
        }
        5 | 6 => {
            let position = maybe(dice, 2, *dice_position(entry.as_deref()));
            let cwd = maybe(dice, 4, format!("{home}/other"));
            ("session/fork", given(session, json!({"entryId": entry, "position": position, "cwd": cwd})))
        }
        7 | 8 => {
            let more = json!({
                "goal": maybe(dice, 2, "ship it"),
                "dryRun": maybe(dice, 4, true),
                "document": maybe(dice, 4, "# Handoff\nAll of it."),
                "wait": maybe(dice, 2, true),
            });
            ("session/handoff", given(session, more))
        }
        9 => {
            let from = dice.pick(&known.sessions).id.clone();
            let more =
                json!({"fromSessionId": from, "question": maybe(dice, 2, "which part?"), "wait": maybe(dice, 2, true)});
            ("session/reference", given(session, more))
        }
        10 => ("session/reset", of(session, json!({}))),
        _ => ("session/undo_compaction", of(session, json!({}))),
    }
}

fn dice_position(entry: Option<&str>) -> &'static &'static str {
    if entry.is_some_and(|entry| entry.len() % 2 == 0) { &"at" } else { &"before" }
}

fn marking(dice: &mut Dice, known: &Known, session: &str) -> Request {
    let entry = known.entry(dice, session);
    match dice.below(9) {
        0 | 1 => ("session/undo_compaction", of(session, json!({}))),
        2 => ("session/pin", given(session, json!({"entryId": entry.unwrap_or_default()}))),
        3 => ("session/pin", of(session, json!({"text": format!("pinned {}", dice.below(5))}))),
        4 => ("session/unpin", given(session, json!({"entryId": entry.unwrap_or_default()}))),
        5 => ("session/unpin", of(session, json!({"text": format!("pinned {}", dice.below(5))}))),
        6 => {
            let label = if dice.below(3) == 0 { Value::Null } else { json!("a label") };
            ("session/label", of(session, json!({"targetEntryId": entry.unwrap_or_default(), "label": label})))
        }
        _ => {
            let dry = maybe(dice, 4, true);
            (
                "session/prune",
                given(session, json!({"protectTokens": dice.below(500), "minimumSavings": 0, "dryRun": dry})),
            )
        }
    }
}

fn reading(dice: &mut Dice, known: &Known, session: &str, home: &str) -> Request {
    let entry = known.entry(dice, session);
    match dice.below(10) {
        0 => (
            "session/entries",
            given(
                session,
                json!({"branch": maybe(dice, 2, "all"), "since": maybe(dice, 2, entry), "limit": 1 + dice.below(40)}),
            ),
        ),
        1 => ("session/entry", given(session, json!({"entryId": entry.unwrap_or_default()}))),
        2 => ("session/search", of(session, json!({"query": format!("part{}", dice.below(1_000)), "limit": 5}))),
        3 => ("session/tree", given(session, json!({"limit": 1 + dice.below(50), "cursor": maybe(dice, 2, entry)}))),
        4 => ("session/usage", of(session, json!({}))),
        5 | 6 => (
            "session/context",
            given(session, json!({"leafEntryId": maybe(dice, 2, entry), "wait": maybe(dice, 3, true)})),
        ),
        7 => {
            let format = *dice.pick(&["jsonl", "markdown"]);
            (
                "session/export",
                of(session, json!({"format": format, "path": format!("{home}/out/{}.{format}", dice.below(5))})),
            )
        }
        8 => ("session/list", json!({"limit": 1 + dice.below(5)})),
        _ => ("session/status", of(session, json!({}))),
    }
}

fn settings(dice: &mut Dice, known: &Known, session: &str) -> Request {
    let patches = [
        json!({"compaction": {"speculative": true}}),
        json!({"compaction": {"speculative": false, "keepRecentTokens": 300}}),
        json!({"compaction": {"idleEnabled": true, "idleTimeoutSeconds": 1, "idleThresholdTokens": 500}}),
        json!({"compaction": {"thresholdTokens": 2_000}}),
        json!({"compaction": {"thresholdPercent": 40, "keepRecentTokens": null}}),
        json!({"compaction": {"enabled": false}}),
        json!({"compaction": {"enabled": true, "strategy": "context_full"}}),
        json!({"compaction": {"strategy": "handoff"}}),
        json!({"compaction": {"style": "recent_user_messages"}}),
        json!({"compaction": {"models": ["own/large", "other/unknown"]}}),
        json!({"prune": {"protectTokens": 100, "minimumSavings": 10, "protectedTools": []}}),
        json!({"branchSummary": {"enabled": true}}),
        json!({"compaction": {"thresholdTokens": "many"}}),
    ];
    match dice.below(8) {
        0..3 => {
            let patch = dice.pick(&patches).clone();
            let scope = *dice.pick(&["session", "session", "session", "project", "global"]);
            ("settings/set", of(session, json!({"scope": scope, "patch": patch})))
        }
        3 => ("settings/get", of(session, json!({}))),
        4 => {
            let hooks =
                [json!([]), json!(["session_before_compact"]), json!(["session_compacting", "session_before_tree"])];
            let failure = *dice.pick(&["continue", "abort"]);
            let only = maybe(dice, 2, vec![session.to_owned()]);
            let mut params =
                json!({"events": dice.pick(&hooks), "timeoutMs": 100 + dice.below(300), "onFailure": failure});
            if !only.is_null() {
                params["sessionIds"] = only;
            }
            ("hooks/set", params)
        }
        5 => ("models/list", json!({})),
        6 => ("models/forget", json!({"model": dice.pick(&MODELS)})),
        _ => {
            let model = *dice.pick(&MODELS);
            let model = maybe(dice, 2, model);
            let window = 2_500 + dice.below(20_000);
            let window = maybe(dice, 4, window);
            let title = maybe(dice, 3, format!("title {}", known.compactions));
            ("session/configure", given(session, json!({"model": model, "contextWindow": window, "title": title})))
        }
    }
}

fn living(dice: &mut Dice, known: &Known, session: &str) -> Request {
    let state = known.sessions.iter().find(|it| it.id == session).expect("it is known");
    match dice.below(12) {
        0 | 1 => {
            let operation = (!known.operations.is_empty()).then(|| dice.pick(&known.operations).clone());
            ("session/cancel", given(session, json!({"operationId": maybe(dice, 2, operation)})))
        }
        2 => ("session/run_idle", of(session, json!({}))),
        3 => ("session/unsubscribe", of(session, json!({}))),
        4 | 5 => {
            let after = json!({"epoch": state.epoch, "seq": state.seq.saturating_sub(dice.below(40) as u64)});
            ("session/subscribe", given(session, json!({"after": maybe(dice, 2, after)})))
        }
        6 if dice.below(3) == 0 => ("session/continue", of(session, json!({}))),
        6 if dice.below(2) == 0 => {
            let behavior = *dice.pick(&["steer", "follow_up"]);
            let behavior = maybe(dice, 2, behavior);
            (
                "session/prompt",
                given(session, json!({"message": format!("prompt {}", known.compactions), "behavior": behavior})),
            )
        }
        6 => ("session/clear_queue", of(session, json!({}))),
        7 => ("session/close", of(session, json!({}))),
        8 => {
            let other = dice.pick(&known.sessions).id.clone();
            ("session/load", given(&other, json!({"readOnly": maybe(dice, 8, true)})))
        }
        9 if dice.below(4) == 0 => ("session/delete", of(session, json!({}))),
        10 => ("session/status", of(session, json!({}))),
        _ => ("session/load", json!({"sessionId": dice.pick(&known.sessions).id})),
    }
}
