//! Limits of `session/reference`: large questions, sources that say nothing, extracts that wait, and their ends.

use crate::support::*;
use serde_json::{Value, json};

fn of(session: &str) -> Value {
    json!({"sessionId": session})
}

fn refer(daemon: &mut Daemon, session: &str, from: &str, question: &str) -> Result<Value, Value> {
    let params = json!({"sessionId": session, "fromSessionId": from, "question": question, "wait": true});
    daemon.call("session/reference", params)
}

fn content(daemon: &mut Daemon, session: &str, entry: &Value) -> String {
    let entry = daemon.ok("session/entry", json!({"sessionId": session, "entryId": entry}))["entry"].clone();
    entry["content"].as_str().expect("a text").to_owned()
}

/// A session that knows a port.
fn knowing(daemon: &mut Daemon) -> String {
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &[user("Set up the gateway."), assistant("The gateway listens on port 4711.")]);
    session
}

#[test]
fn a_question_that_is_too_large_is_refused_and_one_at_the_limit_fits_a_small_window() {
    let home = Home::new();
    home.settings(
        &json!({"models": [model("small", 5_000)], "compaction": {"enabled": false},
        "tokens": {"estimator": "chars"}})
        .to_string(),
    );
    let mut daemon = Daemon::at(home);
    let source = knowing(&mut daemon);
    daemon.append(&source, &turns(60));
    let session = daemon.new_session(json!({"cwd": "/other", "model": "p/small"}));
    daemon.append(&session, &[user("Write a client."), assistant("On which port?")]);
    let error = refer(&mut daemon, &session, &source, &"Which port? ".repeat(400)).expect_err("it is too large");
    assert_eq!((&error["data"]["code"], &error["data"]["path"]), (&json!("invalid_params"), &json!("question")));
    assert!(error["message"].as_str().is_some_and(|text| text.contains("at most 500 tokens")), "{error:#}");
    // Both fit the half of the window that is free.
    let before = daemon.ok("session/usage", of(&session))["contextTokens"].as_u64().expect("tokens");
    let answer =
        refer(&mut daemon, &session, &source, &"Which gateway port, which value? ".repeat(40)).expect("it fits");
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    let after = daemon.ok("session/usage", of(&session))["contextTokens"].as_u64().expect("tokens");
    assert!(after - before <= (5_000 - before) / 2, "{before} {after}");
}

#[test]
fn a_source_that_says_nothing_of_its_own_is_refused() {
    let mut daemon = Daemon::start();
    let source = knowing(&mut daemon);
    let blank = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&blank, &[user("  "), assistant("\n")]);
    let quoting = daemon.new_session(json!({"cwd": "/project"}));
    refer(&mut daemon, &quoting, &source, "Which port?").expect("an extract");
    let session = daemon.new_session(json!({"cwd": "/other"}));
    for from in [&blank, &quoting] {
        let error = refer(&mut daemon, &session, from, "Which port?").expect_err("it says nothing");
        assert_eq!(
            (&error["data"]["code"], &error["data"]["path"]),
            (&json!("invalid_params"), &json!("fromSessionId"))
        );
    }
}

#[test]
fn extracts_in_a_source_do_not_hide_what_it_says_and_a_document_is_a_note() {
    let mut daemon = Daemon::start();
    let source = knowing(&mut daemon);
    let between = daemon.new_session(json!({"cwd": "/project"}));
    for _ in 0..3 {
        refer(&mut daemon, &between, &source, "Which port does the gateway use?").expect("an extract");
    }
    daemon.append(&between, &[user("The gateway port is 4712 from now on."), assistant("Noted.")]);
    let handed = daemon
        .ok("session/handoff", json!({"sessionId": between, "document": "The gateway port moved.", "wait": true}));
    let handed = handed["newSessionId"].as_str().expect("a session").to_owned();
    let session = daemon.new_session(json!({"cwd": "/other"}));
    let answer = refer(&mut daemon, &session, &between, "Which port does the gateway use?").expect("an extract");
    let text = content(&mut daemon, &session, &answer["entryId"]);
    assert!(text.contains("User: The gateway port is 4712") && !text.contains("4711"), "{text}");
    let answer = refer(&mut daemon, &session, &handed, "Which port does the gateway use?").expect("an extract");
    let text = content(&mut daemon, &session, &answer["entryId"]);
    assert!(text.contains("Note (handoff): ") && text.contains("The gateway port moved."), "{text}");
}

/// A session whose newest answer has a call without a result, and the id of the reference that waits for it.
fn waiting(daemon: &mut Daemon, source: &str) -> (String, String) {
    let session = daemon.new_session(json!({"cwd": "/other"}));
    daemon.append(&session, &[user("Look."), calls(&["c1"])]);
    let params = json!({"sessionId": session, "fromSessionId": source, "question": "Which port?"});
    let started = daemon.ok("session/reference", params);
    until_idle(daemon, &session);
    (session, started["operationId"].as_str().expect("an operation").to_owned())
}

fn until_idle(daemon: &mut Daemon, session: &str) {
    for _ in 0..1_000 {
        if daemon.ok("session/status", of(session))["session"]["status"]["type"] == "idle" {
            return;
        }
    }
    unreachable!("the session stays busy");
}

#[test]
fn a_session_goes_on_while_an_extract_waits_for_results() {
    let mut daemon = Daemon::start();
    let source = knowing(&mut daemon);
    let (session, operation) = waiting(&mut daemon, &source);
    let status = daemon.ok("session/status", of(&session));
    assert_eq!(status["operations"][0]["operationId"], operation.as_str());
    assert_eq!(status["session"]["status"]["type"], "idle", "{status:#}");
    daemon.ok("session/context", json!({"sessionId": session, "wait": true}));
    daemon.ok("session/fork", of(&session));
    let error = daemon.call("session/compact", json!({"sessionId": session, "wait": true})).expect_err("it is short");
    assert_eq!(error["data"]["code"], "nothing_to_compact", "{error:#}");
    let second = json!({"sessionId": session, "fromSessionId": source, "question": "Which gateway?"});
    daemon.ok("session/reference", second);
    until_idle(&mut daemon, &session);
    daemon.append(&session, &[result("c1", "one")]);
    let context = daemon.ok("session/context", json!({"sessionId": session, "wait": true}));
    let texts: Vec<String> = context["messages"].as_array().into_iter().flatten().map(Value::to_string).collect();
    assert_eq!(texts.len(), 5, "{context:#}");
    assert!(texts[3].contains("Which port?") && texts[4].contains("Which gateway?"), "{context:#}");
    assert_eq!(daemon.ok("session/status", of(&session))["operations"], json!([]));
}

#[test]
fn the_end_of_an_extract_that_is_not_written_is_told_with_its_operation() {
    let mut daemon = Daemon::start();
    let source = knowing(&mut daemon);
    let tells = |daemon: &Daemon, from: usize, operation: &str| {
        let told = |frame: &&Value| {
            frame["params"]["operationId"] == operation && frame["params"]["event"]["type"] == "notice"
        };
        daemon.events[from..].iter().filter(told).count()
    };
    let (session, operation) = waiting(&mut daemon, &source);
    let from = daemon.events.len();
    daemon.ok("session/cancel", json!({"sessionId": session, "operationId": operation}));
    daemon.ok("session/status", of(&session));
    assert_eq!(tells(&daemon, from, &operation), 1);

    let (session, operation) = waiting(&mut daemon, &source);
    let from = daemon.events.len();
    daemon.ok("session/close", of(&session));
    assert_eq!(tells(&daemon, from, &operation), 1, "no results come any more");

    let (session, operation) = waiting(&mut daemon, &source);
    let mut daemon = daemon.restarted();
    daemon.ok("session/load", of(&session));
    daemon.ok("session/status", of(&session));
    assert_eq!(tells(&daemon, 0, &operation), 1, "{:#?}", daemon.events);
}
