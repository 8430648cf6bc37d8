//! A daemon that is killed inside of an operation: hooks and retries end, too, when the session is loaded, inner ones first.

use crate::{
    provider::{Asked, Format, Provider, Step},
    summarizing::{good_model, settings},
    support::{Daemon, Home, LONG, assistant, text_of, turns, user},
};
use serde_json::{Value, json};
use std::{
    fs,
    path::PathBuf,
    sync::{Mutex, mpsc},
};

/// A daemon of a client that answers these hooks, with a session of some turns.
fn at(home: Home, hooks: &[&str]) -> (Daemon, String) {
    let mut daemon = Daemon::silent(home);
    let hooks = json!({"events": hooks, "timeoutMs": 60_000});
    daemon.ok("initialize", json!({"protocolVersion": 1, "capabilities": {"hooks": hooks}}));
    let compaction = json!({"keepRecentTokens": 200, "idleThresholdTokens": 1_000});
    let settings = json!({"tokens": {"estimator": "chars"}, "compaction": compaction});
    let session = daemon.new_session(json!({"cwd": "/project", "settings": settings}));
    daemon.append(&session, &turns(8));
    (daemon, session)
}

/// The home of a daemon whose model is at this provider. A retry waits for as long as it may.
fn home_of(provider: &Provider) -> Home {
    let home = Home::new();
    let retry = json!({"retry": {"baseDelayMs": 20_000}});
    home.settings(&settings(provider, Format::OpenAiChat, retry));
    home
}

fn path_of(daemon: &mut Daemon, session: &str) -> PathBuf {
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    status["session"]["path"].as_str().expect("a path").into()
}

/// Waits for a request of this hook, and returns it.
fn is_asked(daemon: &mut Daemon, hook: &str) -> Value {
    let method = format!("hook/{hook}");
    loop {
        let frame = daemon.frame();
        daemon.events.push(frame.clone());
        if frame["method"] == method {
            return frame;
        }
    }
}

/// Kills the daemon, loads the session with another one, and returns what ends there: the type, the outcome and the id.
fn ends_of_next(daemon: Daemon, session: &str) -> Vec<(String, Value, Value)> {
    let epoch = daemon.events.iter().find_map(|frame| frame["params"].get("epoch")).cloned();
    let mut daemon = daemon.restarted();
    daemon.ok("session/load", json!({"sessionId": session}));
    let before = daemon.kinds();
    assert!(!before.iter().any(|kind| kind.ends_with("_end")), "before the answer: {before:?}");
    daemon.ok("session/status", json!({"sessionId": session}));
    let ends = daemon.events_since(0).into_iter().filter(|(kind, _)| kind.ends_with("_end"));
    let ends: Vec<_> = ends
        .map(|(kind, params)| {
            assert_ne!(Some(&params["epoch"]), epoch.as_ref(), "an end of the next owner");
            let event = &params["event"];
            let outcome = if kind == "retry_end" { &event["success"] } else { &event["outcome"] };
            let says = event["errorMessage"].as_str().is_some_and(|why| why.contains("ended before"));
            assert!(says || kind == "idle_end", "{event:#}");
            (kind, outcome.clone(), params["operationId"].clone())
        })
        .collect();
    // They are told once.
    daemon.ok("session/close", json!({"sessionId": session}));
    let from = daemon.events.len();
    daemon.ok("session/load", json!({"sessionId": session}));
    daemon.ok("session/status", json!({"sessionId": session}));
    assert!(daemon.events_since(from).iter().all(|(kind, _)| !kind.ends_with("_end")), "{:#?}", daemon.events);
    ends
}

fn expected(id: &Value, ends: &[(&str, Value)]) -> Vec<(String, Value, Value)> {
    ends.iter().map(|(kind, outcome)| ((*kind).to_owned(), outcome.clone(), id.clone())).collect()
}

#[test]
fn a_hook_that_is_open_when_the_daemon_is_killed_ends_before_its_compaction() {
    let (mut daemon, session) = at(Home::new(), &["session_before_compact"]);
    let id = daemon.ok("session/compact", json!({"sessionId": session}))["operationId"].clone();
    is_asked(&mut daemon, "session_before_compact");
    let ends = ends_of_next(daemon, &session);
    assert_eq!(ends, expected(&id, &[("hook_end", json!("error")), ("compaction_end", json!("failed"))]));
}

#[test]
fn a_hook_that_has_ended_when_the_daemon_is_killed_does_not_end_again() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(Step::hang());
    let (mut daemon, session) = at(home_of(&provider), &["session_before_compact"]);
    let id = daemon.ok("session/compact", json!({"sessionId": session}))["operationId"].clone();
    let asked = is_asked(&mut daemon, "session_before_compact");
    daemon.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "continue"}}));
    provider.wait_for(1);
    assert_eq!(daemon.until("hook_end")["params"]["event"]["outcome"], "ok");
    // A later request: the record of the end is written.
    daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!(ends_of_next(daemon, &session), expected(&id, &[("compaction_end", json!("failed"))]));
}

#[test]
fn a_retry_that_waits_when_the_daemon_is_killed_ends_before_its_operation() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(Step::server_error());
    for (method, end) in [("session/compact", "compaction_end"), ("session/handoff", "handoff_end")] {
        let (mut daemon, session) = at(home_of(&provider), &[]);
        let id = daemon.ok(method, json!({"sessionId": session}))["operationId"].clone();
        daemon.until("retry_start");
        let ends = ends_of_next(daemon, &session);
        let (retries, last) = ends.split_at(ends.len() - 1);
        assert_eq!(last, expected(&id, &[(end, json!("failed"))]), "{ends:?}");
        assert!(
            !retries.is_empty()
                && retries.iter().all(|it| [it.clone()] == *expected(&id, &[("retry_end", json!(false))])),
            "{ends:?}"
        );
    }
}

#[test]
fn a_retry_that_has_ended_when_the_daemon_is_killed_does_not_end_again() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.script([Step::server_error()]).otherwise(|asked: &Asked| {
        let first = asked.text().contains("at most two sentences");
        if first { Step::hang() } else { good_model(asked) }
    });
    let home = Home::new();
    home.settings(&settings(&provider, Format::OpenAiChat, json!({})));
    let (mut daemon, session) = at(home, &[]);
    let id = daemon.ok("session/compact", json!({"sessionId": session}))["operationId"].clone();
    assert_eq!(daemon.until("retry_end")["params"]["event"]["success"], true);
    provider.wait_until("the last request", |asked| asked.iter().any(|it| it.text().contains("at most two sentences")));
    daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!(ends_of_next(daemon, &session), expected(&id, &[("compaction_end", json!("failed"))]));
}

#[test]
fn a_hook_inside_of_idle_maintenance_ends_first_of_three() {
    let (mut daemon, session) = at(Home::new(), &["session_before_compact"]);
    let id = daemon.ok("session/run_idle", json!({"sessionId": session}))["operationId"].clone();
    is_asked(&mut daemon, "session_before_compact");
    let ends = [("hook_end", json!("error")), ("compaction_end", json!("failed")), ("idle_end", json!("failed"))];
    assert_eq!(ends_of_next(daemon, &session), expected(&id, &ends));
}

#[test]
fn a_hook_of_a_navigation_ends_also_where_the_navigation_has_no_events() {
    for (summarize, last) in [(false, None), (true, Some(("branch_summary_end", json!("failed"))))] {
        let (mut daemon, session) = at(Home::new(), &["session_before_tree"]);
        let entries = daemon.ok("session/entries", json!({"sessionId": session}))["entries"].clone();
        let params = json!({"sessionId": session, "targetEntryId": entries[1]["id"], "summarize": summarize});
        let id = daemon.ok("session/navigate", params)["operationId"].clone();
        is_asked(&mut daemon, "session_before_tree");
        let ends: Vec<_> = [("hook_end", json!("error"))].into_iter().chain(last).collect();
        assert_eq!(ends_of_next(daemon, &session), expected(&id, &ends), "{summarize}");
    }
}

#[test]
fn an_end_that_the_client_has_not_read_is_sent_by_the_next_owner() {
    let provider = Provider::start(Format::OpenAiChat);
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    provider.otherwise(move |_: &Asked| {
        let _: Result<(), _> = held.lock().expect("no panic").recv();
        Step::answer("## Goal\nFinish the parser.\n\n## Next Steps\n1. Run the tests of the parser and of the lexer.")
    });
    let home = Home::new();
    home.settings(&settings(&provider, Format::OpenAiChat, json!({})));
    let (mut daemon, session) = at(home, &[]);
    daemon.append(&session, &[user(&text_of(20_000, "parser")), assistant("Read.")]);
    let path = path_of(&mut daemon, &session);
    let id = daemon.ok("session/handoff", json!({"sessionId": session}))["operationId"].clone();
    daemon.until("handoff_start");
    provider.wait_for(1);
    // The pipe is full: nothing behind these answers is read.
    daemon.pause();
    for _ in 0..4 {
        daemon.begin("session/context", json!({"sessionId": session}));
    }
    drop(release);
    // The append waits for the end of the handoff.
    daemon.begin("session/append", json!({"sessionId": session, "messages": [user("behind the handoff")]}));
    while !fs::read_to_string(&path).expect("a file").contains("behind the handoff") {}
    daemon.kill();
    daemon.resume();
    while let Some(frame) = daemon.frame_within(LONG) {
        daemon.events.push(frame);
    }
    assert_eq!(daemon.count("handoff_end"), 0, "it died with the process");
    assert_eq!(ends_of_next(daemon, &session), expected(&id, &[("handoff_end", json!("failed"))]));
}

#[test]
fn a_lock_of_another_version_is_read_as_far_as_it_is_understood() {
    for (inside, first) in [
        (String::new(), None),
        (
            r#","inside":[{"hook":"session_compacting","since":7},{"dream":1},{"hook":"at_dawn"}]"#.to_owned(),
            Some("hook_end"),
        ),
        (
            r#","inside":[{"retry":"history","attempt":2,"delayMs":9},{"retry":"dream","attempt":1}]"#.to_owned(),
            Some("retry_end"),
        ),
    ] {
        let (mut daemon, session) = at(Home::new(), &[]);
        let path = path_of(&mut daemon, &session);
        daemon.ok("session/close", json!({"sessionId": session}));
        let operation = format!(
            r#""operationId":"a","kind":"compaction","reason":"manual","startedAt":"2026-01-01T00:00:00Z"{inside}"#
        );
        let record = format!(r#"{{"pid":7,"operations":[{{{operation},"mood":"calm"}}],"weather":"fine"}}"#);
        fs::write(path.with_file_name(format!("{}.lock", path.file_name().expect("a name").to_string_lossy())), record)
            .expect("a lock");
        let kinds: Vec<String> = ends_of_next(daemon, &session).into_iter().map(|(kind, ..)| kind).collect();
        let expected: Vec<&str> = first.into_iter().chain(["compaction_end"]).collect();
        assert_eq!(kinds, expected, "{inside}");
    }
}
