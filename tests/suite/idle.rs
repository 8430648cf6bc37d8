//! Idle maintenance through the real binary: its events, the activity that ends it, and its turn among the sessions.

use crate::support::{Daemon, Home, assistant, calls, event, names, text_of, user};
use serde_json::{Value, json};
use std::net::TcpListener;

/// A session with a conversation of about 6,000 tokens that ends with an answer. Its model is at this address; without one
/// summaries are extracted.
fn session(daemon: &mut Daemon, compaction: Value, model: Option<&TcpListener>) -> String {
    let mut listed = json!({"provider": "p", "id": "m", "contextWindow": 100_000});
    if let Some(model) = model {
        let address = model.local_addr().expect("an address");
        listed["api"] = "openai_chat".into();
        listed["baseUrl"] = format!("http://{address}/v1").into();
    }
    let mut settings = json!({"tokens": {"estimator": "chars"}, "models": [listed], "compaction": {
        "idleThresholdTokens": 5_000, "keepRecentTokens": 500,
    }});
    for (key, value) in compaction.as_object().into_iter().flatten() {
        settings["compaction"][key] = value.clone();
    }
    let session = daemon.new_session(json!({"cwd": "/project", "model": "p/m", "settings": settings}));
    let one = [user(&text_of(3_000, "one")), assistant("Read.")];
    daemon.append(&session, &one);
    daemon.append(&session, &[user(&text_of(3_000, "two")), assistant("Read, too.")]);
    session
}

/// A model that takes requests and never answers.
fn silent_model() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a port")
}

fn run_idle(daemon: &mut Daemon, session: &str) -> Value {
    daemon.ok("session/run_idle", json!({"sessionId": session}))
}

fn activity(daemon: &mut Daemon, session: &str) {
    daemon.send(&json!({"jsonrpc": "2.0", "method": "session/activity", "params": {"sessionId": session}}));
}

fn status(daemon: &mut Daemon, session: &str) -> Value {
    daemon.ok("session/status", json!({"sessionId": session}))
}

fn tokens(daemon: &mut Daemon, session: &str) -> u64 {
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    usage["contextTokens"].as_u64().expect("a number")
}

#[test]
fn a_session_whose_user_is_away_is_compacted_in_the_background() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, json!({"idleEnabled": true, "idleTimeoutSeconds": 1}), None);
    let before = tokens(&mut daemon, &session);
    let from = daemon.events.len();
    daemon.until("idle_end");
    let events = daemon.events_since(from);
    assert_eq!(
        names(&events),
        ["idle_start", "compaction_start", "entry_appended", "compaction_end", "idle_end"],
        "neither the status nor `settled` is sent"
    );
    let (start, end) = (event(&events, "idle_start"), event(&events, "idle_end"));
    assert_eq!(start["contextTokens"], before);
    assert!(start["idleSeconds"].as_u64() >= Some(1));
    assert_eq!(*end, json!({"type": "idle_end", "outcome": "completed"}));
    let compaction = event(&events, "compaction_start");
    assert_eq!((&compaction["reason"], &compaction["willRetry"]), (&json!("idle"), &json!(false)));
    for (kind, params) in &events {
        assert_eq!(params["operationId"], events[0].1["operationId"], "{kind}");
    }
    assert_eq!(status(&mut daemon, &session)["session"]["status"], json!({"type": "idle"}));
    assert!(tokens(&mut daemon, &session) < before);
}

#[test]
fn activity_ends_maintenance_and_a_read_does_not() {
    let (mut daemon, model) = (Daemon::start(), silent_model());
    let session = session(&mut daemon, json!({}), Some(&model));
    let id = run_idle(&mut daemon, &session)["operationId"].clone();
    daemon.until("compaction_start");
    let listed = status(&mut daemon, &session);
    assert_eq!(listed["session"]["status"], json!({"type": "idle"}));
    assert_eq!((&listed["operations"][0]["kind"], &listed["operations"][0]["operationId"]), (&json!("idle"), &id));
    let context = daemon.ok("session/context", json!({"sessionId": session, "format": "openai_chat", "wait": true}));
    assert!(context["compactionEntryId"].is_null(), "it is not held");
    assert_eq!(run_idle(&mut daemon, &session), json!({"skipped": "busy"}));
    assert_eq!(daemon.count("idle_end"), 0);
    let from = daemon.events.len();
    activity(&mut daemon, &session);
    daemon.until("idle_end");
    let events = daemon.events_since(from);
    assert_eq!(names(&events), ["compaction_end", "idle_end"]);
    assert_eq!(event(&events, "idle_end")["outcome"], "cancelled");
    // It was no cancel by the client: it may begin again.
    assert!(run_idle(&mut daemon, &session)["operationId"].is_string());
    let cancelled = daemon.ok("session/cancel", json!({"sessionId": session}));
    assert_eq!(cancelled["cancelled"][0]["kind"], "idle");
    assert_eq!(run_idle(&mut daemon, &session), json!({"skipped": "resting"}));
}

#[test]
fn maintenance_gives_way_to_a_compaction_that_the_client_asks_for() {
    let (mut daemon, model) = (Daemon::start(), silent_model());
    let session = session(&mut daemon, json!({}), Some(&model));
    run_idle(&mut daemon, &session);
    daemon.until("compaction_start");
    let from = daemon.events.len();
    let params = json!({"sessionId": session, "method": "extractive", "wait": true});
    assert_eq!(daemon.ok("session/compact", params)["outcome"], "completed");
    let events = daemon.events_since(from);
    let order =
        ["compaction_end", "idle_end", "status_changed", "compaction_start", "entry_appended", "compaction_end"];
    assert_eq!(names(&events)[..6], order);
    assert_eq!(event(&events, "compaction_end")["outcome"], "cancelled");
}

#[test]
fn a_request_to_run_says_why_nothing_runs() {
    let mut daemon = Daemon::start();
    let small = session(&mut daemon, json!({"idleThresholdTokens": 50_000}), None);
    assert_eq!(run_idle(&mut daemon, &small), json!({"skipped": "below_threshold"}));
    let off = session(&mut daemon, json!({"enabled": false}), None);
    assert_eq!(run_idle(&mut daemon, &off), json!({"skipped": "disabled"}));
    let session = session(&mut daemon, json!({}), None);
    daemon.append(&session, &[user("Read both.")]);
    assert_eq!(run_idle(&mut daemon, &session), json!({"skipped": "unanswered_message"}));
    daemon.append(&session, &[calls(&["a"])]);
    assert_eq!(run_idle(&mut daemon, &session), json!({"skipped": "unanswered_call"}));
    daemon.append(&session, &[user("Leave it."), assistant("I do.")]);
    assert!(run_idle(&mut daemon, &session)["operationId"].is_string());
    daemon.until("idle_end");
    assert_eq!(run_idle(&mut daemon, &session), json!({"skipped": "below_threshold"}));
    daemon.ok("session/close", json!({"sessionId": session}));
    daemon.ok("session/load", json!({"sessionId": session, "readOnly": true}));
    let error = daemon.err("session/run_idle", json!({"sessionId": session}));
    assert_eq!(error["data"]["code"], "storage_error");
}

#[test]
fn one_session_at_a_time_has_maintenance() {
    let (mut daemon, model) = (Daemon::start(), silent_model());
    let first = session(&mut daemon, json!({}), Some(&model));
    let second = session(&mut daemon, json!({}), None);
    assert!(run_idle(&mut daemon, &first)["operationId"].is_string());
    assert_eq!(run_idle(&mut daemon, &second), json!({"skipped": "queued"}));
    assert_eq!(run_idle(&mut daemon, &second), json!({"skipped": "queued"}));
    activity(&mut daemon, &first);
    let ended = |daemon: &mut Daemon| {
        let end = daemon.until("idle_end")["params"].clone();
        daemon.events.clear();
        (end["sessionId"].clone(), end["event"]["outcome"].clone())
    };
    assert_eq!(ended(&mut daemon), (json!(first), json!("cancelled")));
    assert_eq!(ended(&mut daemon), (json!(second), json!("completed")));
}

#[test]
fn a_model_that_does_not_answer_holds_up_no_other_session() {
    let mut daemon = Daemon::silent(Home::new());
    daemon.ok("initialize", json!({"protocolVersion": 1, "capabilities": {"llm": {}}}));
    let [first, second] = [(); 2].map(|()| session(&mut daemon, json!({"stallSeconds": 1}), None));
    assert!(run_idle(&mut daemon, &first)["operationId"].is_string());
    assert_eq!(run_idle(&mut daemon, &second), json!({"skipped": "queued"}));
    let start = loop {
        let start = daemon.until("idle_start")["params"].clone();
        daemon.events.clear();
        if start["sessionId"] == second {
            break start;
        }
    };
    assert!(start["operationId"].is_string());
    let running = status(&mut daemon, &first)["operations"].clone();
    assert!(running.as_array().is_some_and(|all| !all.is_empty()), "the first one still waits: {running}");
}

#[test]
fn maintenance_of_a_daemon_that_was_killed_has_its_ends_when_the_session_is_loaded() {
    let (mut daemon, model) = (Daemon::start(), silent_model());
    let session = session(&mut daemon, json!({}), Some(&model));
    let id = run_idle(&mut daemon, &session)["operationId"].clone();
    daemon.until("compaction_start");
    let mut daemon = daemon.restarted();
    daemon.ok("session/load", json!({"sessionId": session}));
    daemon.until("idle_end");
    let events = daemon.events_since(0);
    assert_eq!(names(&events), ["compaction_end", "idle_end"]);
    for (kind, params) in &events {
        assert_eq!((&params["operationId"], &params["event"]["outcome"]), (&id, &json!("failed")), "{kind}");
    }
}
