//! Sessions of unusual shapes, as a stranger may make them, and batches of many small messages: whatever the shape, twice of it
//! costs at most a little more than twice.

use super::{
    cost::{Cost, Meter, Runs},
    home, size,
};
use crate::support::*;
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufWriter, Write},
    path::PathBuf,
};

/// The part of the usual size: there are many shapes, and each has many entries.
const SMALLER: usize = 4;

/// A line of a session: its place among the lines, and whether it is an entry.
type Line = fn(usize) -> Value;

/// The shapes, each by its lines. A line without a parent is behind the one before it.
const SHAPES: [(&str, Line); 17] = [
    ("small messages", |at| json!({"message": user(&format!("message {at}"))})),
    ("answers with calls that have no results", |at| json!({"message": calls(&[&format!("c{at}")])})),
    ("results without calls", |at| json!({"message": result(&format!("c{at}"), "found")})),
    ("calls and results", |at| match at % 2 {
        0 => json!({"message": calls(&[&format!("c{at}")])}),
        _ => json!({"message": result(&format!("c{}", at - 1), "found")}),
    }),
    ("calls of one id", |at| match at % 2 {
        0 => json!({"message": calls(&["c"])}),
        _ => json!({"message": result("c", "found")}),
    }),
    ("entries behind the first one", |at| json!({"message": user("branch"), "parentId": "e0", "at": at})),
    ("entries without an earlier parent", |at| json!({"message": user("lost"), "parentId": format!("x{at}")})),
    ("roots", |at| json!({"message": user("root"), "parentId": null, "at": at})),
    ("entries of one id", |_| json!({"message": user("again"), "id": "e0"})),
    ("edits", |at| match at % 2 {
        0 => json!({"message": user("text")}),
        _ => json!({"type": "context_edit", "targetId": format!("e{}", at - 1), "replacement": {"content": "less"}}),
    }),
    ("edits of one entry", |at| match at {
        0 => json!({"message": user("text")}),
        _ => json!({"type": "context_edit", "targetId": "e0", "replacement": {"content": "less"}}),
    }),
    (
        "pins",
        |at| json!({"type": "custom_message", "customType": "abridged.pin", "content": format!("pin {at}"), "display": true}),
    ),
    ("pinned entries", |at| match at % 2 {
        0 => json!({"message": user("text")}),
        _ => json!({"type": "custom", "customType": "abridged.pin", "data": {"entryId": format!("e{}", at - 1)}}),
    }),
    ("labels", |at| json!({"type": "label", "targetId": "e0", "label": format!("label {at}")})),
    ("compactions", |at| match at % 2 {
        0 => json!({"message": user("text")}),
        _ => {
            json!({"type": "compaction", "summary": "S", "firstKeptEntryId": format!("e{}", at - 1), "tokensBefore": 1})
        }
    }),
    ("undone compactions", |at| match at % 3 {
        0 => json!({"message": user("text")}),
        1 => {
            json!({"type": "compaction", "summary": "S", "firstKeptEntryId": format!("e{}", at - 1), "tokensBefore": 1})
        }
        _ => {
            json!({"type": "custom", "customType": "abridged.undo", "data": {"compactionEntryId": format!("e{}", at - 1)}})
        }
    }),
    ("costs", |_| json!({"type": "usage", "purpose": "compaction", "usage": {"input": 5, "output": 1}})),
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
        ("session/compact", of(json!({"dryRun": true}))),
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
    let mut daemon = Daemon::at(home());
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

#[test]
fn twice_of_any_shape_costs_at_most_a_little_more_than_twice() {
    let size = size() / SMALLER;
    let mut broken = Vec::new();
    for (writing, ending) in WRITINGS {
        // The shapes differ in their entries, so the other writings need only some of them.
        let shapes = SHAPES.iter().filter(|(name, _)| writing == WRITINGS[0].0 || *name == SHAPES[0].0);
        for (shape, line) in shapes {
            let name = |(at, (method, _)): (usize, &(&str, Cost))| format!("{shape}, {writing}: {method} ({at})");
            let mut runs: Vec<Runs> = Vec::new();
            let mut names: Vec<String> = Vec::new();
            while names.is_empty() || runs.iter().any(Runs::go_on) {
                let (half, all) = (costs(*line, ending, size / 2), costs(*line, ending, size));
                names = all.iter().enumerate().map(name).collect();
                runs.resize_with(all.len(), Runs::default);
                let both = half.iter().zip(&all).map(|((_, half), (_, all))| (*half, *all));
                runs.iter_mut().zip(both).for_each(|(runs, both)| runs.push(both));
            }
            broken.extend(names.iter().zip(&runs).filter_map(|(name, runs)| runs.verdict(name)));
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
