//! Frames that nobody asked for, and errors, stay under the announced size whatever settings, params and files hold.

use crate::support::{Daemon, header, user};
use serde_json::{Value, json};

/// The announced limit, in bytes.
const SOFT: usize = 60 << 10;

/// Every event and notification so far is below the limit. Returns those of this name or type.
fn of<'a>(daemon: &'a Daemon, name: &str) -> Vec<&'a Value> {
    for frame in &daemon.events {
        assert!(frame.to_string().len() < SOFT, "{} bytes: {}", frame.to_string().len(), &frame.to_string()[..200]);
    }
    let named = |frame: &&Value| frame["method"] == name || frame["params"]["event"]["type"] == name;
    daemon.events.iter().filter(named).collect()
}

#[test]
fn settings_that_do_not_fit_are_announced_with_the_request_that_returns_them() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let models: Vec<Value> = (0..400)
        .map(|at| json!({"provider": "p", "id": format!("{at}-{}", "m".repeat(200)), "contextWindow": 100_000}))
        .collect();
    for patch in [json!({"compaction": {"instructions": "x".repeat(50_000)}}), json!({"models": models})] {
        for scope in ["session", "global"] {
            let params = json!({"scope": scope, "sessionId": session, "patch": patch});
            // A setting may be refused as too long, which is no frame over the limit either.
            if let Err(error) = daemon.call("settings/set", params) {
                assert!(error.to_string().len() < SOFT, "{error}");
            }
        }
    }
    daemon.ok("settings/get", json!({"sessionId": session}));
    let announced = of(&daemon, "settings_changed");
    let shortened = announced.iter().filter(|frame| frame["params"]["_meta"]["shortened"] == "settings/get").count();
    assert!(shortened >= 2, "{shortened} of {}", announced.len());
}

#[test]
fn long_paths_and_unknown_keys_are_shortened_in_notices_answers_and_errors() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": format!("/{}", "long/".repeat(20_000)), "title": "t"}));
    daemon.append(&session, &[user("x")]);
    let key = "q".repeat(100_000);
    let answer = daemon.ok("session/status", json!({"sessionId": session, &key: 1}));
    let ignored = answer["_meta"]["ignored"].to_string();
    assert!(ignored.len() < 1_000 && ignored.contains("qqq…"), "{ignored}");
    // The answer is null, so the key is in a notice.
    daemon.ok("session/unsubscribe", json!({"sessionId": session, &key: 1}));
    for (method, params) in [
        (key.as_str(), json!({})),
        ("session/load", json!({"path": format!("/{key}")})),
        ("session/status", json!({"sessionId": key})),
        ("session/append", json!({"sessionId": session, "messages": [{"role": key}]})),
        ("settings/set", json!({"scope": "global", "patch": {&key: 1}})),
    ] {
        let error = daemon.err(method, params);
        assert!(error.to_string().len() < SOFT && error["data"]["code"].is_string(), "{}", error.to_string().len());
    }
    daemon.ok("ping", json!({}));
    assert_eq!(of(&daemon, "notice").iter().filter(|it| it["params"]["code"] == "params_ignored").count(), 1);
}

#[test]
fn a_session_whose_id_is_longer_than_any_is_refused() {
    let mut daemon = Daemon::start();
    let home = &daemon.home;
    let (long, just) = (
        home.session("long.jsonl", &[header(&"i".repeat(1_025))]),
        home.session("just.jsonl", &[header(&"i".repeat(1_024))]),
    );
    let error = daemon.err("session/load", json!({"path": long}));
    assert_eq!(error["data"]["code"], "invalid_params");
    let text = error["message"].as_str().expect("a message");
    assert!(text.contains("long.jsonl") && text.contains("1025 bytes; 1024 are the most"), "{text}");
    assert_eq!(daemon.load(&just).len(), 1_024);
}
