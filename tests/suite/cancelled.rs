//! A request that takes long is answered soon after its `$/cancelRequest`, normally or with `request_cancelled`. Nothing is timed:
//! how long an answer takes is the number of pings that are answered before it, one after the other.

use crate::{
    support::*,
    wire::{is_whole, number},
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

/// The size of the session, in MB, where the environment names no other.
const SIZE: u64 = 6;

/// The environment variable with another size, in MB.
const SIZE_VARIABLE: &str = "ABRIDGED_CANCELLED_MB";

/// The size of a session that is forked, in MB. The index of a smaller fork is made with it, and is not left in its middle.
const FORKED: u64 = 24;

/// The answer to a cancelled request comes at most so late: this part of the pings before the answer of the whole request, and
/// those before the answer of a load, or half of the whole. A step of the work that is under way is not left in its middle.
const PART: usize = 3;

/// The most runs of a request whose answer seems to come late: another process may have the processors for a while. A request
/// that does not hear its cancellation is late each time.
const RUNS: usize = 3;

/// The requests of a run that is not whole: one that reads, and one that asks models and writes.
const SOME: [&str; 2] = ["session/load", "session/navigate"];

/// A request runs after so many pings.
const SOON: usize = 300;

/// A request.
struct Request {
    method: &'static str,
    params: fn(&Home) -> Value,
    /// Whether the session is open before it.
    opened: Opened,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Opened {
    Before,
    /// The request itself opens it.
    Not,
}

/// Requests about the session `large`. Those that write come last. An append is not among them: its messages are written whole
/// as soon as they are read, and its time is that of the frame. Nor are a pruning and a compaction as a dry run, which are made in
/// one step: for a context of a million tokens that takes less than a tenth of a second.
fn requests() -> Vec<Request> {
    fn of(more: Value) -> Value {
        let mut params = json!({"sessionId": "large"});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        params
    }
    let request = |method, params| Request { method, params, opened: Opened::Before };
    vec![
        Request { opened: Opened::Not, ..request("session/load", |home| json!({"path": home.path("large.jsonl")})) },
        request("session/entries", |_| of(json!({"branch": "all", "limit": 1_000, "maxBytes": 1 << 30}))),
        request("session/search", |_| of(json!({"query": "nowhere to be found"}))),
        request("session/context", |_| of(json!({}))),
        request("session/context", |_| of(json!({"format": "anthropic"}))),
        request("session/tree", |_| of(json!({}))),
        request("session/export", |home| of(json!({"format": "markdown", "path": home.path("exported.md")}))),
        request("session/export", |home| of(json!({"format": "jsonl", "path": home.path("exported.jsonl")}))),
        request("session/compact", |_| of(json!({"wait": true, "keepRecentTokens": 5}))),
        request("session/handoff", |_| of(json!({"wait": true}))),
        request(
            "session/reference",
            |_| json!({"sessionId": "small", "fromSessionId": "large", "question": "Where is part_3?", "wait": true}),
        ),
        request("session/navigate", |_| of(json!({"targetEntryId": "e3", "summarize": true, "wait": true}))),
        request("session/fork", |_| of(json!({}))),
    ]
}

/// The text of a session file of turns with small results: many entries for its size.
fn session(id: &str, size: usize) -> String {
    let (mut text, mut count, mut parent) = (format!("{}\n", header(id)), 0, Value::Null);
    for turn in 0.. {
        let topic = format!("part_{turn}");
        let found = text_of(200, &topic);
        for message in
            [user(&format!("Look at {topic}.")), calls(&[&topic]), result(&topic, &found), assistant("It is fine.")]
        {
            let id = format!("e{count}");
            let line = json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
                "message": message});
            text.push_str(&format!("{line}\n"));
            (count, parent) = (count + 1, json!(id));
        }
        if text.len() >= size {
            break;
        }
    }
    text
}

/// Writes a session file.
fn write(home: &Home, id: &str, text: &str) -> PathBuf {
    let path = home.path(&format!("{id}.jsonl"));
    fs::write(&path, text).expect("it is written");
    path
}

/// The number of pings that are answered before the answer to a request, or from its cancellation to the answer, and that answer.
/// No ping is counted where the answer comes before the cancellation.
fn pings_before(request: &Request, large: &str, is_cancelled: Cancelled) -> (usize, Result<Value, Value>) {
    let home = Home::new();
    let model = json!({"provider": "p", "id": "m", "api": "openai_chat", "contextWindow": 1_000_000_000});
    let settings = json!({"tokens": {"estimator": "chars"}, "compaction": {"enabled": false}, "models": [model],
        "defaultModel": "p/m"});
    home.settings(&settings.to_string());
    let mut daemon = Daemon::at(home);
    let small = write(&daemon.home, "small", &session("small", 5_000));
    daemon.load(&small);
    let path = write(&daemon.home, "large", large);
    if request.opened == Opened::Before {
        let answer = daemon.ok("session/load", json!({"path": path}));
        if answer["indexed"] != json!(true) {
            daemon.until("index_ready");
        }
    }
    let params = (request.params)(&daemon.home);
    let id = daemon.begin(request.method, params);
    let mut pings = 0;
    let mut counts = is_cancelled == Cancelled::Never;
    for at in 0.. {
        if is_cancelled == Cancelled::After(at) {
            daemon.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
            counts = true;
        }
        daemon.ok("ping", json!({}));
        let is_answer = |frame: &Value| frame["id"] == id && frame.get("method").is_none();
        if daemon.events.iter().any(is_answer) {
            break;
        }
        pings += usize::from(counts);
    }
    let answer = daemon.answer(id);
    daemon.end();
    (pings, answer)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cancelled {
    /// After so many pings.
    After(usize),
    Never,
}

/// A run in which the answer to a cancelled request comes late. `before`: the number of pings before its cancellation.
fn is_late(request: &Request, large: &str, step: usize, before: usize) -> Option<String> {
    let (whole, answer) = pings_before(request, large, Cancelled::Never);
    assert!(answer.is_ok(), "{}: {answer:?}", request.method);
    let (until, answer) = pings_before(request, large, Cancelled::After(before));
    let is_right = answer.as_ref().err().is_none_or(|error| error["code"] == json!(-32800));
    assert!(is_right, "{}: {answer:?}", request.method);
    (until > whole / PART + step.min(whole / 2)).then(|| format!("{}: {until} of {whole} pings", request.method))
}

#[test]
fn a_long_request_is_answered_soon_after_it_is_cancelled() {
    let size = number(SIZE_VARIABLE, SIZE);
    let [large, forked] = [size, size.max(FORKED)].map(|size| session("large", (size as usize) << 20));
    let mut late = Vec::new();
    let some = |request: &Request| is_whole() || SOME.contains(&request.method);
    let requests = requests();
    let load = requests.iter().find(|request| request.method == "session/load").expect("a load");
    let (step, _) = pings_before(load, &large, Cancelled::Never);
    for request in requests.iter().filter(|request| some(request)) {
        let large = if request.method == "session/fork" { &forked } else { &large };
        for before in [0, SOON] {
            let runs: Vec<String> = (0..RUNS).map_while(|_| is_late(request, large, step, before)).collect();
            late.extend((runs.len() == RUNS).then_some(runs));
        }
    }
    assert!(late.is_empty(), "{late:#?}");
}
