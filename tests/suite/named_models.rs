//! The model of a session that its host names.

use crate::{
    provider::{Format, Provider},
    summarizing::{good_model, settings},
    support::{Daemon, Home, assistant, turns, user},
};
use serde_json::{Value, json};
use std::fs;

#[test]
fn the_model_that_a_host_names_is_the_sessions_also_behind_a_restart() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(good_model);
    let home = Home::new();
    home.settings(&settings(&provider, Format::OpenAiChat, json!({})));
    let mut daemon = Daemon::at(home);
    let new = json!({"cwd": "/project", "model": "hostcorp/big-1", "contextWindow": 50_000});
    let made = daemon.ok("session/new", new)["session"].clone();
    let big = json!({"provider": "hostcorp", "id": "big-1"});
    assert_eq!((&made["model"], &made["usage"]["contextWindow"]), (&big, &json!(50_000)));
    let session = made["sessionId"].as_str().expect("an id").to_owned();
    daemon.append(&session, &[user("hi"), assistant("hello")]);
    let text = fs::read_to_string(made["path"].as_str().expect("a path")).expect("a file");
    let answer = text.lines().find(|line| line.contains(r#""role":"assistant""#)).expect("an answer");
    let answer: Value = serde_json::from_str(answer).expect("JSON");
    assert_eq!((&answer["message"]["provider"], &answer["message"]["model"]), (&json!("hostcorp"), &json!("big-1")));

    // Its summaries are written by the default, which can be asked.
    daemon.append(&session, &turns(20));
    let params = json!({"sessionId": session, "keepRecentTokens": 500, "wait": true});
    let compacted = daemon.ok("session/compact", params);
    assert_eq!(compacted["result"]["model"], json!({"provider": "test", "id": "model"}), "{compacted:#}");
    assert_eq!(daemon.ok("session/status", json!({"sessionId": session}))["session"]["model"], big);

    let other = json!({"provider": "hostcorp", "id": "small-1"});
    let configured = daemon.ok("session/configure", json!({"sessionId": session, "model": "hostcorp/small-1"}));
    assert_eq!(configured["session"]["model"], other);
    assert_eq!(configured["session"]["usage"]["contextWindow"], 128_000, "nobody states its window");
    let changed = daemon.until("model_changed")["params"]["event"].clone();
    assert_eq!((&changed["from"], &changed["to"]), (&big, &other), "{changed:#}");
    let mut daemon = daemon.restarted();
    let path = made["path"].clone();
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!(loaded["session"]["model"], other);
}

#[test]
fn a_session_without_a_model_has_the_default() {
    let home = Home::new();
    home.settings(&json!({"defaultModel": "test/model"}).to_string());
    let mut daemon = Daemon::at(home);
    let made = daemon.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
    assert_eq!(made["model"], json!({"provider": "test", "id": "model"}));
}
