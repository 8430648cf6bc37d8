//! Automatic compaction after an undo: it rests, says so, and acts again in time.

use crate::support::{Daemon, assistant, model, text_of, user};
use serde_json::{Value, json};

fn settings() -> Value {
    let compaction = json!({"reserveTokens": 8_000, "keepRecentTokens": 2_000});
    json!({"tokens": {"estimator": "chars"}, "models": [model("m", 32_000)], "compaction": compaction})
}

/// A session of a model with a window of 32,000, compacted once, with the compaction undone.
fn undone(daemon: &mut Daemon) -> String {
    let session = daemon.new_session(json!({"cwd": "/project", "model": "p/m", "settings": settings()}));
    for topic in ["one", "two", "three"] {
        daemon.append(&session, &[user(&text_of(5_000, topic)), assistant("Done.")]);
    }
    let params = json!({"sessionId": session, "method": "extractive", "wait": true});
    assert_eq!(daemon.ok("session/compact", params)["outcome"], "completed");
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    session
}

fn usage(daemon: &mut Daemon, session: &str) -> Value {
    daemon.ok("session/usage", json!({"sessionId": session}))
}

#[test]
fn a_session_goes_on_for_many_turns_after_an_undo_and_is_compacted_in_time() {
    let mut daemon = Daemon::start();
    let session = undone(&mut daemon);
    assert_eq!(usage(&mut daemon, &session)["autoCompaction"], "resting");
    let from = daemon.events.len();
    for turn in 0..18 {
        daemon.append(&session, &[user(&text_of(1_500, &format!("turn{turn}")))]);
        let context = daemon.ok("session/context", json!({"sessionId": session, "format": "anthropic"}));
        assert!(context["usage"]["contextTokens"].as_u64() <= Some(32_000), "{context}");
        daemon.append(&session, &[assistant("Done.")]);
        let usage = usage(&mut daemon, &session);
        let why = usage["why"].as_str().expect("a text");
        match usage["contextTokens"].as_u64().expect("a number") {
            // Beyond the threshold of 24,000, and with half of the reserve free.
            24_001..=28_000 if daemon.count("compaction_end") == 1 => {
                assert_eq!(usage["autoCompaction"], "resting");
                assert!(why.contains("a compaction was undone here") && why.contains("28000"), "{why}");
            }
            _ => {}
        }
    }
    let events = daemon.events_since(from);
    let resumed: Vec<_> = events.iter().filter(|(_, it)| it["event"]["code"] == "auto_compaction_resumes").collect();
    assert_eq!(resumed.len(), 1, "{resumed:#?}");
    assert!(events.iter().any(|(kind, _)| kind == "compaction_start"));
    assert_eq!(usage(&mut daemon, &session)["autoCompaction"], true);
}

#[test]
fn the_rest_after_an_undo_is_known_again_after_a_kill() {
    let mut daemon = Daemon::start();
    let session = undone(&mut daemon);
    let before = usage(&mut daemon, &session);
    assert_eq!(before["autoCompaction"], "resting");
    daemon.kill();
    let mut daemon = daemon.restarted();
    let loaded = daemon.ok("session/load", json!({"sessionId": session, "settings": settings()}));
    assert_eq!(loaded["session"]["usage"]["autoCompaction"], "resting", "{loaded:#}");
    assert_eq!(usage(&mut daemon, &session), before);
}

#[test]
fn the_floor_of_an_overflow_is_what_cannot_shrink() {
    let mut daemon = Daemon::start();
    let settings = json!({"tokens": {"estimator": "chars"}, "models": [model("m", 8_000)],
        "compaction": {"enabled": false}});
    let session = daemon.new_session(json!({"cwd": "/project", "model": "p/m", "settings": settings,
        "systemPrompt": text_of(400, "system")}));
    for topic in ["one", "two", "three"] {
        daemon.append(&session, &[user(&text_of(3_000, topic)), assistant("Done.")]);
    }
    daemon.ok("session/pin", json!({"sessionId": session, "text": text_of(300, "pinned")}));
    daemon.append(&session, &[user(&text_of(1_000, "four")), assistant(&text_of(500, "five"))]);
    let error = daemon.err("session/context", json!({"sessionId": session, "format": "anthropic"}));
    assert_eq!(error["data"]["code"], "context_overflow", "{error:#}");
    let floor = |part: &str| error["data"]["floor"][part].as_u64().expect("a number");
    // Estimates by characters have a factor of safety.
    for (part, least) in [("system", 400), ("pins", 300), ("latestTurn", 1_500)] {
        let tokens = floor(part);
        assert!((least..=least * 8 / 5).contains(&tokens), "{part}: {tokens}");
    }
}

#[test]
fn a_context_over_the_window_between_the_calls_of_a_turn_is_compacted_with_mid_turn_off() {
    let mut daemon = Daemon::start();
    let settings = json!({"tokens": {"estimator": "chars"}, "models": [model("m", 16_000)],
        "compaction": {"midTurn": false}});
    let session = daemon.new_session(json!({"cwd": "/project", "model": "p/m", "settings": settings}));
    daemon.append(
        &session,
        &[user(&text_of(6_000, "one")), assistant("Done."), user("Read."), crate::support::calls(&["a"])],
    );
    let answer = daemon.append(&session, &[crate::support::result("a", &text_of(12_000, "a"))]);
    assert_eq!(answer["next"]["reason"], "threshold", "{answer:#}");
    let context = daemon.ok("session/context", json!({"sessionId": session, "format": "anthropic"}));
    assert!(context["usage"]["contextTokens"].as_u64() <= Some(16_000), "{context}");
}
