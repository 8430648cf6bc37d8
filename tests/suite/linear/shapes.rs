//! Sessions of unusual shapes, as a stranger may make them, and batches of many messages: whatever the shape, twice of it costs
//! at most a little more than twice.

use super::{
    by_hand,
    cost::{Cost, Meter, Runs},
    daemon, size,
};
use crate::{support::*, wire::is_whole};
use abridged::protocol::types::MOST_MESSAGES;
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufWriter, Write},
    path::PathBuf,
    time::Duration,
};

/// The part of the usual size: there are many shapes, and each has many entries.
const SMALLER: usize = 4;

/// A line of a session, by its place among the lines.
type Line = fn(usize) -> Value;

/// An answer with what stands beside its text.
fn answer(more: Value) -> Value {
    let mut message = assistant("ok");
    message.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    json!({"message": message})
}

/// An answer that reports its tokens.
fn reported(model: &str, input: usize) -> Value {
    answer(json!({"provider": "p", "model": model, "usage": {"input": input, "output": 5, "totalTokens": input + 5}}))
}

fn call(at: usize, tool: &str, arguments: Value) -> Value {
    let call = json!({"type": "toolCall", "id": format!("c{at}"), "name": tool, "arguments": arguments});
    json!({"message": {"role": "assistant", "content": [call], "stopReason": "toolUse", "timestamp": 1}})
}

fn before(at: usize) -> String {
    format!("e{}", at - 1)
}

/// The result of the call in the line before.
fn returned(at: usize) -> Value {
    json!({"message": result(&format!("c{}", at - 1), "found")})
}

fn ours(kind: &str, data: Value) -> Value {
    json!({"type": "custom", "customType": format!("abridged.{kind}"), "data": data})
}

fn edit(target: &str, replacement: Value) -> Value {
    json!({"type": "context_edit", "targetId": target, "replacement": replacement})
}

fn compaction(first_kept: &str) -> Value {
    json!({"type": "compaction", "summary": "S", "firstKeptEntryId": first_kept, "tokensBefore": 1})
}

fn pinned_text(at: usize) -> Value {
    json!({"type": "custom_message", "customType": "abridged.pin", "content": format!("pin {at}"), "display": true})
}

fn text() -> Value {
    json!({"message": user("text")})
}

fn system(more: Value) -> Value {
    let mut message = json!({"role": "system", "content": "x"});
    message.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    json!({"message": message})
}

/// The shapes, each by its lines. A line without a parent is behind the one before it.
const SHAPES: &[(&str, Line)] = &[
    ("small messages", |at| json!({"message": user(&format!("message {at}"))})),
    ("answers with calls that have no results", |at| call(at, "read", json!({"path": "a"}))),
    ("results without calls", |at| json!({"message": result(&format!("c{at}"), "found")})),
    ("calls and results", |at| match at % 2 {
        0 => call(at, "read", json!({"path": format!("src/{at}.rs")})),
        _ => returned(at),
    }),
    ("calls of one id", |at| json!({"message": if at % 2 == 0 { calls(&["c"]) } else { result("c", "found") }})),
    ("reads of one file", |at| if at % 2 == 0 { call(at, "read", json!({"path": "a"})) } else { returned(at) }),
    ("edits of files", |at| match at % 2 {
        0 => call(at, "edit", json!({"path": format!("src/{at}.rs")})),
        _ => returned(at),
    }),
    ("todo lists", |at| match at % 2 {
        0 => call(at, "todo_write", json!({"todos": [{"content": format!("task {at}"), "status": "pending"}]})),
        _ => returned(at),
    }),
    (
        "commands",
        |at| json!({"message": {"role": "bashExecution", "command": format!("ls {at}"), "output": "a", "exitCode": 0}}),
    ),
    ("entries behind the first one", |at| json!({"message": user("branch"), "parentId": "e0", "at": at})),
    ("entries without an earlier parent", |at| json!({"message": user("lost"), "parentId": format!("x{at}")})),
    ("roots", |at| json!({"message": user("root"), "parentId": null, "at": at})),
    ("entries of one id", |_| json!({"message": user("again"), "id": "e0"})),
    ("edits", |at| if at % 2 == 0 { text() } else { edit(&before(at), json!({"content": "less"})) }),
    ("edits of one entry", |at| if at == 0 { text() } else { edit("e0", json!({"content": "less"})) }),
    ("removed answers", |at| if at % 2 == 0 { answer(json!({})) } else { edit(&before(at), Value::Null) }),
    ("failed answers", |_| json!({"message": failed("prompt is too long: 202128 tokens > 200000 maximum")})),
    ("attempts", |_| ours("attempt", json!({"reason": "overflow"}))),
    ("pins", pinned_text),
    ("pinned entries", |at| if at % 2 == 0 { text() } else { ours("pin", json!({"entryId": before(at)})) }),
    ("pins before each other", |at| {
        let next = format!("x{}", at.saturating_sub(1));
        ours("pin", json!({"entryId": format!("x{at}"), "text": "t", "before": next}))
    }),
    ("pins and their removal", |at| match at % 3 {
        0 => text(),
        1 => ours("pin", json!({"entryId": before(at)})),
        _ => ours("unpin", json!({"entryId": before(at - 1)})),
    }),
    ("pins that are repeated for others", |at| match at % 2 {
        0 => pinned_text(at),
        _ => json!({"type": "custom_message", "customType": "abridged.carried", "content": format!("pin {}", at - 1),
            "display": false, "details": {"entryId": before(at)}}),
    }),
    ("labels", |at| json!({"type": "label", "targetId": "e0", "label": format!("label {at}")})),
    ("compactions", |at| if at % 2 == 0 { text() } else { compaction(&before(at)) }),
    ("undone compactions", |at| match at % 3 {
        0 => text(),
        1 => compaction(&before(at)),
        _ => ours("undo", json!({"compactionEntryId": before(at)})),
    }),
    ("resets", |at| if at % 2 == 0 { text() } else { json!({"type": "reset_boundary"}) }),
    ("summaries of branches", |at| json!({"type": "branch_summary", "fromId": "e0", "summary": format!("B {at}")})),
    ("costs", |_| json!({"type": "usage", "purpose": "compaction", "usage": {"input": 5, "output": 1}})),
    ("reports", |at| if at % 2 == 0 { text() } else { reported("m", 100 + 20 * at) }),
    ("reports of many models", |at| reported(&format!("m{at}"), 100 + at)),
    ("reports about less", |at| match at % 2 {
        0 => reported("m", 100 + 20 * at),
        _ => ours("report", json!({"entryId": before(at), "without": {"from": "e0", "to": before(at)}})),
    }),
    ("system messages", |at| {
        system(
            json!({"sections": {format!("s{at}"): "text"}, "toolsAdded": [{"name": format!("t{at}"), "inputSchema": {}}]}),
        )
    }),
    ("system messages and reports", |at| match at % 2 {
        0 => system(json!({"sections": {format!("s{at}"): "text"}})),
        _ => reported("m", 100 + 20 * at),
    }),
    ("system prompts of clients", |at| ours("session", json!({"systemPrompt": format!("P {at}"), "tools": []}))),
    ("titles", |at| json!({"type": "session_info", "name": format!("N{at}")})),
    ("changes of the model", |at| json!({"type": "model_change", "provider": "p", "modelId": format!("m{at}")})),
];

/// Ways to write the lines.
/// A name, and the text after a line with a number.
type Writing = (&'static str, fn(usize) -> &'static str);

const WRITINGS: [Writing; 3] = [
    ("a line each", |_| "\n"),
    ("all on one line", |_| ""),
    ("behind garbage", |_| "\n{\"type\":\"message\",\"id\":\n"),
];

/// A session file of this shape and size, in bytes.
fn session(home: &Home, line: Line, ending: fn(usize) -> &'static str, size: usize) -> PathBuf {
    let path = home.path("shaped.jsonl");
    let mut out = BufWriter::new(fs::File::create(&path).expect("a file"));
    writeln!(out, "{}", header("shaped")).expect("it is written");
    let mut bytes = 0;
    for at in 0_usize.. {
        if bytes >= size {
            break;
        }
        let mut entry = json!({"type": "message", "id": format!("e{at}"), "timestamp": "2026-01-01T00:00:00.000Z",
            "parentId": at.checked_sub(1).map(|before| format!("e{before}"))});
        entry.as_object_mut().expect("an object").extend(line(at).as_object().expect("an object").clone());
        let text = format!("{entry}{}", ending(at));
        out.write_all(text.as_bytes()).expect("it is written");
        bytes += text.len();
    }
    out.write_all(b"\n").and_then(|()| out.flush()).expect("it is written");
    path
}

/// Requests about the session, the reading ones first. Each may be refused.
fn requests(home: &Home) -> Vec<(&'static str, Value)> {
    let of = |more: Value| {
        let mut params = json!({"sessionId": "shaped"});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        params
    };
    vec![
        ("session/load", json!({"path": home.path("shaped.jsonl")})),
        ("session/context", of(json!({}))),
        ("session/context", of(json!({"format": "anthropic"}))),
        ("session/context", of(json!({"entryId": "e1"}))),
        ("session/entries", of(json!({"branch": "all", "limit": 1_000}))),
        ("session/search", of(json!({"query": "nowhere to be found"}))),
        ("session/tree", of(json!({}))),
        ("session/usage", of(json!({}))),
        ("session/compact", of(json!({"dryRun": true, "keepRecentTokens": 5}))),
        ("session/export", of(json!({"format": "markdown", "path": home.path("exported")}))),
        ("session/append", of(json!({"messages": [user("On.")]}))),
        ("session/prune", of(json!({}))),
        ("session/pin", of(json!({"text": "Never change it."}))),
        ("session/fork", of(json!({}))),
        ("session/handoff", of(json!({"wait": true}))),
        ("session/compact", of(json!({"wait": true, "keepRecentTokens": 5}))),
        ("session/undo_compaction", of(json!({}))),
        ("session/navigate", of(json!({"targetEntryId": "e1", "summarize": true, "wait": true}))),
        ("session/close", of(json!({}))),
    ]
}

/// The cost of each request about a session of this shape.
fn costs(line: Line, ending: fn(usize) -> &'static str, size: usize) -> Vec<(&'static str, Cost)> {
    let mut daemon = daemon();
    session(&daemon.home, line, ending, size);
    let requests = requests(&daemon.home);
    let mut cost = |(method, params): (&'static str, Value)| {
        let meter = Meter::start(&daemon);
        let answer = daemon.call(method, params);
        // The rest of a load goes on beside the session.
        if method == "session/load" && answer.is_ok_and(|answer| answer["indexed"] != json!(true)) {
            daemon.until("index_ready");
        }
        (method, meter.stop(&daemon))
    };
    let costs = requests.into_iter().map(&mut cost).collect();
    daemon.end();
    costs
}

/// Compares the costs of some requests, each named by its method and its number.
fn compare(name: &str, mut costs: impl FnMut(usize) -> Vec<(&'static str, Cost)>, size: usize) -> Vec<String> {
    let (mut runs, mut names): (Vec<Runs>, Vec<String>) = (Vec::new(), Vec::new());
    while names.is_empty() || runs.iter().any(Runs::go_on) {
        let (half, all) = (costs(size / 2), costs(size));
        assert_eq!(half.len(), all.len(), "{name}: both sizes have the same requests");
        names = all.iter().enumerate().map(|(at, (method, _))| format!("{name}: {method} ({at})")).collect();
        runs.resize_with(all.len(), Runs::default);
        let both = half.iter().zip(&all).map(|((_, half), (_, all))| (*half, *all));
        runs.iter_mut().zip(both).for_each(|(runs, both)| runs.push(both));
    }
    names.iter().zip(&runs).filter_map(|(name, runs)| runs.verdict(name)).collect()
}

/// The rows of a table: all in a run that is whole or by hand, or else every fourth.
fn some<T>(rows: &[T]) -> impl Iterator<Item = &T> {
    rows.iter().step_by(if is_whole() || by_hand() { 1 } else { 4 })
}

#[test]
fn twice_of_any_shape_costs_at_most_a_little_more_than_twice() {
    let size = size() / SMALLER;
    let mut broken = Vec::new();
    for (writing, ending) in WRITINGS {
        // The shapes differ in their entries, so the other writings need only one of them.
        let shapes = some(SHAPES).filter(|(name, _)| writing == WRITINGS[0].0 || *name == SHAPES[0].0);
        for (shape, line) in shapes {
            broken.extend(compare(&format!("{shape}, {writing}"), |size| costs(*line, ending, size), size));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The silence that ends the events of a request.
const QUIET: Duration = Duration::from_millis(50);

/// Params of appends, by the number of messages.
type Batch = fn(usize) -> Vec<Value>;

/// An answer with so many calls.
fn answer_with_calls(count: usize) -> Value {
    let ids: Vec<String> = (0..count).map(|at| format!("c{at}")).collect();
    calls(&ids.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The results of these calls.
fn results(count: usize) -> impl Iterator<Item = Value> {
    (0..count).map(|at| result(&format!("c{at}"), "f"))
}

/// Batches, each with the bytes of one of its messages.
const BATCHES: &[(&str, usize, Batch)] = &[
    ("small messages", 30, |count| vec![json!({"messages": vec![json!({"role": "user", "content": "x"}); count]})]),
    ("calls and results", 165, |count| {
        let message = |at: usize| {
            json!(if at.is_multiple_of(2) { calls(&[&at.to_string()]) } else { result(&(at - 1).to_string(), "f") })
        };
        vec![json!({"messages": (0..count).map(message).collect::<Vec<Value>>()})]
    }),
    ("an answer with many calls, and their results", 250, |count| {
        let messages = std::iter::once(answer_with_calls(count)).chain(results(count));
        vec![json!({"messages": messages.collect::<Vec<_>>()})]
    }),
    ("an answer with many calls, and their results later", 250, |count| {
        let answer = json!({"messages": [answer_with_calls(count)]});
        vec![answer, json!({"messages": results(count).collect::<Vec<_>>()})]
    }),
    ("results without calls", 150, |count| vec![json!({"messages": results(count).collect::<Vec<_>>()})]),
    ("blocks of a message", 28, |count| {
        // A message has at most so many blocks: each has five values and keys.
        let count = count.min(50_000);
        vec![json!({"messages": [{"role": "user", "content": vec![json!({"type": "text", "text": "x"}); count]}]})]
    }),
    ("calls and results of OpenAI", 190, |count| {
        let message = |at: usize| match at % 2 {
            0 => {
                json!({"type": "function_call", "call_id": at.to_string(), "name": "r", "arguments": "{}", "id": format!("fc{at}")})
            }
            _ => json!({"type": "function_call_output", "call_id": (at - 1).to_string(), "output": "f"}),
        };
        vec![json!({"format": "openai_responses", "messages": (0..count).map(message).collect::<Vec<Value>>()})]
    }),
    ("results of OpenAI without calls", 130, |count| {
        let message = |at: usize| json!({"role": "tool", "tool_call_id": format!("z{at}"), "content": "f"});
        vec![json!({"format": "openai_chat", "messages": (0..count).map(message).collect::<Vec<Value>>()})]
    }),
    ("calls and results of Google", 160, |count| {
        let message = |at| match at % 2 {
            0 => json!({"role": "model", "parts": [{"functionCall": {"name": "r", "args": {}}}]}),
            _ => json!({"role": "user", "parts": [{"functionResponse": {"name": "r", "response": {"output": "f"}}}]}),
        };
        vec![json!({"format": "google", "messages": (0..count).map(message).collect::<Vec<Value>>()})]
    }),
];

/// An append as several, each with as many messages as one may have.
fn in_parts(append: &Value) -> Vec<Value> {
    let messages = append["messages"].as_array().expect("messages");
    let part = |messages: &[Value]| {
        let mut append = append.clone();
        append["messages"] = json!(messages);
        append
    };
    messages.chunks(MOST_MESSAGES).map(part).collect()
}

#[test]
fn twice_of_any_batch_costs_at_most_a_little_more_than_twice() {
    let batch = |batch: Batch, bytes: usize, size: usize| {
        let mut daemon = daemon();
        let id = daemon.new_session(json!({"cwd": "/project"}));
        let formats = ["messages", "anthropic", "openai_chat", "openai_responses", "google"];
        // A large one is sent in parts, which have one cost.
        let appends = batch(size / bytes).into_iter().map(|mut append| {
            append["sessionId"] = json!(id);
            ("session/append", in_parts(&append))
        });
        // One cost for all formats: the memory at the peak of one of them depends on the memory that those before it gave back.
        let contexts = formats.map(|format| json!({"sessionId": id, "format": format})).to_vec();
        let next = json!({"sessionId": id, "messages": [user("Go on.")]});
        let requests = appends.chain([("session/context", contexts), ("session/append", vec![next])]);
        let cost = |(method, all): (&'static str, Vec<Value>)| {
            let meter = Meter::start(&daemon);
            for params in all {
                daemon.ok(method, params);
            }
            // The events of an append follow its answer. They are no cost of the request after it.
            while daemon.frame_within(QUIET).is_some() {}
            (method, meter.stop(&daemon))
        };
        let costs = requests.map(cost).collect();
        daemon.end();
        costs
    };
    // Messages of a few bytes are many at half of the usual size, too.
    let size = if by_hand() { size() } else { size() / 2 };
    let broken = some(BATCHES).flat_map(|(name, bytes, of)| compare(name, |size| batch(*of, *bytes, size), size));
    let broken: Vec<String> = broken.collect();
    assert!(broken.is_empty(), "{broken:#?}");
}
