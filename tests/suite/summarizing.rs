//! Summaries by models, through the real binary and a provider on loopback.

use crate::{
    provider::{Asked, Format, Provider, Step},
    support::{Daemon, Home, assistant, entries, header, session_of, text_of, turns, user},
};
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    sync::{Mutex, mpsc},
    time::{Duration, Instant},
};

/// A summary as a good model writes it, with a word by which it is known again.
pub fn good(word: &str) -> String {
    format!(
        "## Goal\nFix the parser ({word}).\n\n## Constraints & Preferences\n- never change the lock files\n\n## Progress\n\
         ### Done\n- [x] looked at the parts\n### In Progress\n- [ ] the rest\n### Blocked\n(none)\n\n## Key Decisions\n\
         (none)\n\n## Next Steps\n1. go on\n\n## Critical Context\n- value_1 is set"
    )
}

/// A good model: it answers what each request asks for.
pub fn good_model(asked: &Asked) -> Step {
    let text = asked.text();
    let said = if text.contains("at most two sentences") {
        "Looked at the parts of the parser. The rest is to be done.".to_owned()
    } else if text.contains("the beginning of one long turn") {
        "## Original Request\nlook at everything\n\n## Early Progress\n- read the first parts\n\n## Context for the Rest\n- none"
            .to_owned()
    } else {
        good("by the model")
    };
    Step::answer(&said)
}

/// Settings with one model at this provider.
pub fn settings(provider: &Provider, format: Format, more: Value) -> String {
    let mut settings = json!({
        "defaultModel": "test/model",
        "models": [{"provider": "test", "id": "model", "api": format.api(), "baseUrl": provider.base_url(), "contextWindow": 100_000}],
        "tokens": {"estimator": "chars"},
        "retry": {"baseDelayMs": 100},
    });
    merge(&mut settings, more);
    settings.to_string()
}

pub fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

/// A daemon with these settings and a session of so many turns.
pub fn session(settings: &str, messages: &[Value]) -> (Daemon, String, PathBuf) {
    let home = Home::new();
    home.settings(settings);
    let path = session_of(&home, "s", messages);
    let mut daemon = Daemon::at(home);
    let id = daemon.load(&path);
    (daemon, id, path)
}

pub fn compact(daemon: &mut Daemon, session: &str, more: Value) -> Value {
    let mut params = json!({"sessionId": session, "keepRecentTokens": 600, "wait": true});
    merge(&mut params, more);
    daemon.ok("session/compact", params)
}

pub fn events<'a>(daemon: &'a Daemon, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    daemon.events.iter().map(|frame| &frame["params"]["event"]).filter(move |event| event["type"] == kind)
}

#[test]
fn a_model_writes_the_summary_in_every_format() {
    for format in Format::ALL {
        let provider = Provider::start(format);
        provider.otherwise(good_model);
        let (mut daemon, session, _) = session(&settings(&provider, format, json!({})), &turns(20));
        let answer = compact(&mut daemon, &session, json!({}));
        assert_eq!(answer["outcome"], "completed", "{answer:#}");
        let result = &answer["result"];
        assert_eq!(result["method"], "llm", "{format:?}: {result:#}");
        assert_eq!(result["model"], json!({"provider": "test", "id": "model"}));
        assert_eq!(result["rejected"], json!([]));
        assert!(result["summary"].as_str().expect("a text").contains("by the model"));
        assert_eq!(result["shortSummary"], "Looked at the parts of the parser. The rest is to be done.");
        let told: String = events(&daemon, "summary_chunk")
            .filter(|it| it["source"] == "history")
            .filter_map(|it| it["text"].as_str())
            .collect();
        assert!(told.contains("by the model"), "{told}");
        assert!(provider.asked().iter().all(|asked| asked.refused.is_none()), "{format:?}");
        let seen = daemon.ok("session/context", json!({"sessionId": session}))["messages"].clone();
        assert!(seen[0].to_string().contains("by the model"));
    }
}

/// A model that answers as `good_model` does, once the sender is dropped.
pub fn held_model() -> (mpsc::Sender<()>, impl Fn(&Asked) -> Step + Send + Sync + 'static) {
    let (release, held) = mpsc::channel();
    let held = Mutex::new(held);
    (release, move |asked: &Asked| {
        let _: Result<(), _> = held.lock().expect("no panic").recv();
        good_model(asked)
    })
}

#[test]
fn a_report_that_comes_while_a_model_summarizes_is_in_the_size_of_the_compaction() {
    let provider = Provider::start(Format::Anthropic);
    let (release, model) = held_model();
    provider.otherwise(model);
    let (mut daemon, session, path) = session(&settings(&provider, Format::Anthropic, json!({})), &turns(12));
    let answer = daemon.begin("session/compact", json!({"sessionId": session, "keepRecentTokens": 600, "wait": true}));
    provider.wait_for(1);
    let usage = |daemon: &mut Daemon| daemon.ok("session/usage", json!({"sessionId": session}));
    let overhead = 20_000;
    // Two reports agree on an overhead that nobody announced.
    for topic in ["first", "second"] {
        daemon.ok("session/append", json!({"sessionId": session, "messages": [user(&text_of(600, topic))]}));
        let reported = overhead + usage(&mut daemon)["contextTokens"].as_u64().expect("a number");
        let mut reply = assistant("Go on.");
        reply["usage"] = json!({"input": reported, "output": 2, "cacheRead": 0, "cacheWrite": 0});
        daemon.ok("session/append", json!({"sessionId": session, "messages": [reply]}));
    }
    drop(release);
    let done = daemon.answer(answer).expect("an answer");
    assert_eq!((&done["outcome"], &done["result"]["method"]), (&json!("completed"), &json!("llm")), "{done:#}");
    let file = std::fs::read_to_string(&path).expect("a file");
    let line = file.lines().rfind(|line| line.contains(r#""type":"compaction""#)).expect("a compaction");
    let line: Value = serde_json::from_str(line).expect("JSON");
    let carried = &line["preserveData"]["abridged"];
    assert!(carried["overhead"].as_u64().is_some_and(|carried| carried.abs_diff(overhead) < 2_000), "{carried}");
    assert_eq!(carried["calibrations"].as_array().map(Vec::len), Some(1), "{carried}");
    assert_eq!(line["tokensAfter"], usage(&mut daemon)["contextTokens"]);
}

/// A window that a provider states is learned, whichever model the refused request was for.
#[test]
fn a_window_that_a_failed_answer_states_is_learned() {
    let home = Home::new();
    let mut daemon = Daemon::at(home);
    let new = json!({"cwd": "/project", "model": "some/model"});
    let session = daemon.ok("session/new", new)["session"]["sessionId"].clone();
    let failed = json!({
        "role": "assistant", "content": [], "stopReason": "error", "provider": "some", "model": "model", "timestamp": 1,
        "errorMessage": "400 This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    });
    let answer = daemon.ok("session/append", json!({"sessionId": session, "messages": [user("hi"), failed]}));
    assert_eq!(answer["usage"]["contextWindow"], 8192);
    assert_eq!(answer["usage"]["windowSource"], "learned");
    let models = daemon.ok("models/list", json!({"sessionId": session}))["models"].clone();
    assert_eq!(models[0]["contextWindow"], json!({"value": 8192, "source": "learned"}));
    // The next daemon knows it too.
    let kept = daemon.home.path("data/learned-windows.json");
    let end = Instant::now() + Duration::from_secs(20);
    while !kept.exists() {
        assert!(Instant::now() < end, "what was learned is not kept");
        std::thread::sleep(Duration::from_millis(5));
    }
    let home = std::mem::replace(&mut daemon.home, Home::new());
    drop(daemon);
    let mut daemon = Daemon::at(home);
    let new = json!({"cwd": "/project", "model": "some/model"});
    let usage = daemon.ok("session/new", new)["session"]["usage"].clone();
    assert_eq!(usage["windowSource"], "learned");
}

/// A rate limit states numbers too, and they are no window.
#[test]
fn a_rate_limit_teaches_nothing() {
    let mut daemon = Daemon::start();
    let session =
        daemon.ok("session/new", json!({"cwd": "/project", "model": "some/model"}))["session"]["sessionId"].clone();
    let failed = json!({
        "role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
        "errorMessage": "429 Request too large for gpt-4 on tokens per min (TPM): Limit 10000, Requested 12000.",
    });
    let answer = daemon.ok("session/append", json!({"sessionId": session, "messages": [user("hi"), failed]}));
    assert_eq!(answer["usage"]["windowSource"], "default");
}

/// A session file may come from anybody. It must not send a conversation, or a key, to an address of its own.
#[test]
fn a_file_of_somebody_else_names_no_model_to_ask() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(good_model);
    let home = Home::new();
    let evil: Value = serde_json::from_str(&settings(&provider, Format::OpenAiChat, json!({}))).expect("JSON");
    let mut lines = vec![header("s")];
    lines.extend(entries(&turns(12)));
    let leaf = lines.last().expect("an entry")["id"].clone();
    lines.push(json!({
        "type": "custom", "id": "x", "parentId": leaf, "timestamp": "2026-01-01T00:00:00.000Z",
        "customType": "abridged.session", "data": {"settings": evil},
    }));
    let path = home.session("s.jsonl", &lines);
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    let result = compact(&mut daemon, &session, json!({}))["result"].clone();
    assert_eq!(result["method"], "extractive");
    assert_eq!(result["rejected"], json!([]));
    assert!(provider.asked().is_empty());
    // Settings that a client stores in the session hold while it is open.
    daemon.ok("settings/set", json!({"scope": "session", "sessionId": session, "patch": evil}));
    daemon.ok("session/append", json!({"sessionId": session, "messages": turns(6)}));
    assert_eq!(compact(&mut daemon, &session, json!({}))["result"]["method"], "llm");
}
