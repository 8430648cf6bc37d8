//! The cost of each method grows with its input and no faster: twice the size costs at most 2.3 times. Nothing is timed. The costs
//! are the bytes that the daemon reads and writes, the memory that it takes at the peak, and the work of its processors.

mod cost;
mod shapes;

use crate::{support::*, wire::number};
use cost::{Cost, Meter, Runs};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// The larger size in MB, where the environment names no other. The other one is half of it.
const SIZE: u64 = 1;

/// The environment variable with another larger size, in MB.
const SIZE_VARIABLE: &str = "ABRIDGED_LINEAR_MB";

/// The larger size, in bytes.
fn size() -> usize {
    (number(SIZE_VARIABLE, SIZE) as usize) << 20
}

/// Whether the environment names the size.
fn by_hand() -> bool {
    std::env::var_os(SIZE_VARIABLE).is_some()
}

/// A daemon that maintains nothing by itself. Its allocator has one arena. With several, a peak depends on the threads that work by
/// chance, and requests are run again.
fn daemon() -> Daemon {
    let home = home();
    let mut command = home.command();
    command.env("MALLOC_ARENA_MAX", "1");
    let mut daemon = Daemon::of(home, command);
    daemon.ok("initialize", json!({"protocolVersion": 1}));
    daemon
}

/// The settings of a daemon that maintains nothing by itself.
fn home() -> Home {
    let home = Home::new();
    let model = json!({"provider": "p", "id": "m", "api": "openai_chat", "contextWindow": 1_000_000_000});
    let settings = json!({"tokens": {"estimator": "chars"}, "compaction": {"enabled": false}, "models": [model],
        "defaultModel": "p/m"});
    home.settings(&settings.to_string());
    home
}

/// The input of a method that has a size.
enum Sized {
    /// A session of this size: params about it.
    Session(fn(&str) -> Value),
    /// A session of this size that a compaction stands in, and params about it.
    Compacted(fn(&str) -> Value),
    /// A session of this size that is not open, and params for its path.
    Closed(fn(PathBuf) -> Value),
    /// A session of another agent of this size, and params for its path.
    Foreign(fn(PathBuf) -> Value),
    /// A session of this size, and params with the path of a new file.
    To(fn(&str, PathBuf) -> Value),
    /// Params with a text of this size about a small session. A text may be refused.
    Text(fn(&str, String) -> Value),
    /// So many small sessions, a kilobyte each.
    Sessions(fn() -> Value),
    /// Nothing, for this reason.
    Nothing(&'static str),
}

use Sized::{Closed, Compacted, Foreign, Nothing, Session, Sessions, Text, To};

const NO_PARAMS: &str = "it takes no params";
const SIGNAL: &str = "it is a signal about a session, and reads nothing of it";

/// Every method, each with its inputs that have a size.
fn table() -> Vec<(&'static str, Vec<Sized>)> {
    fn of(id: &str) -> Value {
        json!({"sessionId": id})
    }
    fn with(id: &str, more: Value) -> Value {
        let mut params = of(id);
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        params
    }
    vec![
        ("initialize", vec![Nothing("it is answered once, and its names are clipped")]),
        ("initialized", vec![Nothing(NO_PARAMS)]),
        ("shutdown", vec![Nothing(NO_PARAMS)]),
        ("exit", vec![Nothing(NO_PARAMS)]),
        ("ping", vec![Nothing(NO_PARAMS)]),
        ("rpc.discover", vec![Nothing(NO_PARAMS)]),
        ("session/new", vec![Text(|_, text| json!({"cwd": "/project", "systemPrompt": text}))]),
        (
            "session/load",
            vec![Closed(|path| json!({"path": path})), Foreign(|path| json!({"path": path, "readOnly": true}))],
        ),
        ("session/list", vec![Sessions(|| json!({})), Text(|_, text| json!({"search": text}))]),
        ("session/close", vec![Session(of)]),
        ("session/delete", vec![Session(of)]),
        ("session/status", vec![Session(of)]),
        (
            "session/append",
            vec![
                Session(|id| with(id, json!({"messages": [user("Go on.")]}))),
                Text(|id, text| with(id, json!({"messages": [user(&text)]}))),
                Text(|id, text| {
                    let messages: Vec<Value> = (0..text.len() / 1_000).map(|_| user(&text[..900])).collect();
                    with(id, json!({"messages": messages}))
                }),
            ],
        ),
        ("session/context", vec![Session(of), Session(|id| with(id, json!({"format": "openai_chat"}))), Compacted(of)]),
        ("session/entries", vec![Session(|id| with(id, json!({"branch": "all", "limit": 1_000})))]),
        ("session/entry", vec![Session(|id| with(id, json!({"entryId": "e1"})))]),
        (
            "session/search",
            vec![
                Session(|id| with(id, json!({"query": "not to be found"}))),
                Session(|id| with(id, json!({"query": "Look at part_0."}))),
                Text(|id, text| with(id, json!({"query": text}))),
            ],
        ),
        ("session/tree", vec![Session(of)]),
        ("session/usage", vec![Session(of)]),
        ("session/run_idle", vec![Session(of)]),
        ("session/activity", vec![Nothing(SIGNAL)]),
        ("session/cancel", vec![Nothing(SIGNAL)]),
        (
            "context/fit",
            vec![
                Text(|_, text| json!({"messages": [user(&text)], "contextWindow": 8_000})),
                Text(|_, text| {
                    let messages: Vec<Value> = (0..text.len() / 1_000).map(|_| user(&text[..900])).collect();
                    json!({"messages": messages, "contextWindow": 8_000})
                }),
            ],
        ),
        (
            "session/compact",
            vec![
                Session(|id| with(id, json!({"wait": true}))),
                Session(|id| with(id, json!({"dryRun": true}))),
                Text(|id, text| with(id, json!({"wait": true, "keepRecentTokens": 5, "instructions": text}))),
            ],
        ),
        ("session/undo_compaction", vec![Compacted(of)]),
        ("session/reset", vec![Session(of)]),
        (
            "session/navigate",
            vec![
                Session(|id| with(id, json!({"targetEntryId": "e3", "wait": true}))),
                Session(|id| with(id, json!({"targetEntryId": "e3", "summarize": true, "wait": true}))),
            ],
        ),
        (
            "session/reference",
            vec![
                Session(
                    |id| json!({"sessionId": "small", "fromSessionId": id, "question": "Where is part_3?", "wait": true}),
                ),
                Text(|id, text| with(id, json!({"fromSessionId": "small", "question": text, "wait": true}))),
            ],
        ),
        (
            "session/handoff",
            vec![
                Session(|id| with(id, json!({"wait": true}))),
                Text(|id, text| with(id, json!({"document": text, "wait": true}))),
            ],
        ),
        ("session/prune", vec![Session(of)]),
        (
            "session/pin",
            vec![Session(|id| with(id, json!({"entryId": "e1"}))), Text(|id, text| with(id, json!({"text": text})))],
        ),
        ("session/unpin", vec![Text(|id, text| with(id, json!({"text": text})))]),
        ("session/label", vec![Text(|id, text| with(id, json!({"targetEntryId": "e1", "label": text})))]),
        (
            "session/configure",
            vec![
                Text(|id, text| with(id, json!({"systemPrompt": text}))),
                Text(|id, text| with(id, json!({"title": text}))),
            ],
        ),
        ("session/fork", vec![Session(|id| with(id, json!({"entryId": "e3"}))), Session(of)]),
        ("session/import", vec![Foreign(|path| json!({"path": path}))]),
        ("session/clear_queue", vec![Nothing("the queue is bounded")]),
        ("session/prompt", vec![Text(|id, text| with(id, json!({"message": text})))]),
        ("session/continue", vec![Nothing("it makes the context that session/context makes")]),
        (
            "tools/set",
            vec![Text(|id, text| {
                let tool = json!({"name": "read", "description": text, "inputSchema": {"type": "object"}});
                with(id, json!({"tools": [tool]}))
            })],
        ),
        (
            "session/export",
            vec![
                To(|id, path| with(id, json!({"format": "jsonl", "path": path}))),
                To(|id, path| with(id, json!({"format": "markdown", "path": path}))),
            ],
        ),
        ("session/subscribe", vec![Nothing("the events that are kept are bounded")]),
        ("session/unsubscribe", vec![Nothing(SIGNAL)]),
        ("models/list", vec![Nothing("the catalog and the settings are bounded")]),
        ("models/forget", vec![Text(|_, text| json!({"model": format!("p/{text}")}))]),
        ("settings/get", vec![Session(of)]),
        (
            "settings/set",
            vec![Text(|id, text| {
                with(id, json!({"scope": "session", "patch": {"models": [{"provider": "p", "id": text}]}}))
            })],
        ),
        (
            "hooks/set",
            vec![Text(|_, text| {
                let ids: Vec<String> =
                    (0..text.len() / 40).map(|at| format!("a-session-that-is-not-open-{at:08}")).collect();
                json!({"events": ["session_compacting"], "sessionIds": ids})
            })],
        ),
        ("$/cancelRequest", vec![Nothing("an id is compared with those of at most 256 requests")]),
        ("$/cancel_request", vec![Nothing("an id is compared with those of at most 256 requests")]),
    ]
}

/// The lines of sessions by their size. They are the same for each method.
static LINES: Mutex<BTreeMap<usize, Arc<str>>> = Mutex::new(BTreeMap::new());

/// The lines of a session of this size: turns with ids `e0`, `e1` and so on.
fn lines(size: usize) -> Arc<str> {
    let mut known = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = known.entry(size).or_insert_with(|| {
        let (mut lines, mut count, mut parent) = (String::new(), 0, Value::Null);
        for turn in 0.. {
            let topic = format!("part_{turn}");
            let text = text_of(1_000, &topic);
            let messages =
                [user(&format!("Look at {topic}.")), calls(&[&topic]), result(&topic, &text), assistant("It is fine.")];
            for message in messages {
                let id = format!("e{count}");
                let line = json!({"type": "message", "id": id, "parentId": parent,
                    "timestamp": "2026-01-01T00:00:00.000Z", "message": message});
                lines.push_str(&format!("{line}\n"));
                (count, parent) = (count + 1, json!(id));
            }
            if lines.len() >= size {
                break;
            }
        }
        lines.into()
    });
    Arc::clone(lines)
}

/// A session file of this size.
fn session(home: &Home, id: &str, size: usize) -> PathBuf {
    let path = home.path(&format!("{id}.jsonl"));
    fs::write(&path, format!("{}\n{}", header(id), lines(size))).expect("it is written");
    path
}

/// A session of Claude Code of this size.
fn foreign(home: &Home, size: usize) -> PathBuf {
    let (mut text, mut parent) = (String::new(), Value::Null);
    for turn in 0.. {
        let (question, answer) = (format!("q{turn}"), format!("a{turn}"));
        let said = json!([{"type": "text", "text": text_of(1_000, &question)}]);
        let lines = [
            json!({"type": "user", "uuid": question, "parentUuid": parent, "message": {"role": "user", "content": "Look."}}),
            json!({"type": "assistant", "uuid": answer, "parentUuid": question,
                "message": {"id": answer, "role": "assistant", "content": said}}),
        ];
        for mut line in lines {
            line["sessionId"] = json!("foreign");
            line["cwd"] = json!("/project");
            text.push_str(&format!("{line}\n"));
        }
        parent = json!(answer);
        if text.len() >= size {
            break;
        }
    }
    let path = home.path("foreign.jsonl");
    fs::write(&path, text).expect("it is written");
    path
}

/// The cost of a request with an input of this size, in bytes.
fn cost(method: &str, input: &Sized, size: usize) -> Option<Cost> {
    let mut daemon = daemon();
    let opened = |daemon: &mut Daemon, id: &str, size: usize| {
        let path = session(&daemon.home, id, size);
        let answer = daemon.ok("session/load", json!({"path": path}));
        if answer["indexed"] != json!(true) {
            daemon.until("index_ready");
        }
    };
    opened(&mut daemon, "small", 10_000);
    let is_text = matches!(input, Text(_));
    let params = match input {
        Session(params) => {
            opened(&mut daemon, "large", size);
            params("large")
        }
        Compacted(params) => {
            opened(&mut daemon, "large", size);
            daemon.ok("session/compact", json!({"sessionId": "large", "wait": true}));
            params("large")
        }
        To(params) => {
            opened(&mut daemon, "large", size);
            params("large", daemon.home.path("exported"))
        }
        Closed(params) => params(session(&daemon.home, "large", size)),
        Foreign(params) => params(foreign(&daemon.home, size)),
        Text(params) => params("small", "ab ".repeat(size / 3)),
        Sessions(params) => {
            for at in 0..size >> 12 {
                let id = daemon.new_session(json!({"cwd": "/project", "title": format!("Session {at}")}));
                daemon.append(&id, &[user("Hello.")]);
                daemon.ok("session/close", json!({"sessionId": id}));
            }
            params()
        }
        Nothing(_) => return None,
    };
    let meter = Meter::start(&daemon);
    let answer = daemon.call(method, params);
    assert!(is_text || answer.is_ok(), "{method}: {answer:?}");
    // The rest of a load goes on beside the session.
    if method == "session/load" && answer.is_ok_and(|answer| answer["indexed"] != json!(true)) {
        daemon.until("index_ready");
    }
    let cost = meter.stop(&daemon);
    daemon.end();
    Some(cost)
}

#[test]
fn the_table_has_every_method() {
    let served = Daemon::start().ok("rpc.discover", json!({}));
    let served = served["methods"].as_array().expect("methods").iter();
    let served: BTreeSet<String> = served.filter_map(|method| Some(method["name"].as_str()?.to_owned())).collect();
    let listed: BTreeSet<String> = table().into_iter().map(|(method, _)| method.to_owned()).collect();
    assert!(!served.is_empty());
    let reasoned = |input: &Sized| !matches!(input, Nothing(reason) if reason.is_empty());
    assert!(table().iter().all(|(_, inputs)| !inputs.is_empty() && inputs.iter().all(reasoned)));
    assert_eq!(listed, served, "each method names its inputs with a size, or the reason why it has none");
}

#[test]
fn twice_the_size_costs_at_most_a_little_more_than_twice() {
    let size = size();
    let rows = table()
        .into_iter()
        .flat_map(|(method, inputs)| inputs.into_iter().enumerate().map(move |(at, input)| (method, at, input)));
    let broken = rows.filter_map(|(method, at, input)| {
        let runs = Runs::of(|| Some((cost(method, &input, size / 2)?, cost(method, &input, size)?)))?;
        runs.verdict(&format!("{method} ({at})"))
    });
    let broken: Vec<String> = broken.collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn twice_the_models_of_the_settings_cost_at_most_a_little_more_than_twice() {
    let cost = |count: usize| {
        let home = Home::new();
        let models: Vec<Value> = (0..count).map(|at| json!({"provider": "p", "id": format!("m{at}")})).collect();
        home.settings(&json!({ "models": models }).to_string());
        let mut daemon = Daemon::at(home);
        let meter = Meter::start(&daemon);
        assert_eq!(daemon.ok("models/list", json!({}))["models"].as_array().map(Vec::len), Some(count));
        Some(meter.stop(&daemon))
    };
    let runs = Runs::of(|| Some((cost(8_000)?, cost(16_000)?))).expect("it has a size");
    assert_eq!(runs.verdict("models/list"), None);
}
