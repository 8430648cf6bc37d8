//! Compactions that wait for the end of the turn: listed, in nobody's way, and there again after a restart.

use crate::support::{Daemon, assistant, calls, event, long_session, model, names, result, user};
use serde_json::{Value, json};

/// The events up to the next `settled`.
fn settled(daemon: &mut Daemon, from: usize) -> Vec<(String, Value)> {
    daemon.until("settled");
    daemon.events_since(from)
}

/// A session within a turn, with a compaction that waits for its end, and the id of that compaction.
fn waiting(daemon: &mut Daemon) -> (String, Value) {
    let session = long_session(daemon, &json!({"keepRecentTokens": 1_000}));
    daemon.append(&session, &[user("Read it."), calls(&["a"])]);
    let params = json!({"sessionId": session, "when": "after_turn", "keepRecentTokens": 1_000,
        "instructions": "Keep the numbers."});
    let id = daemon.ok("session/compact", params)["operationId"].clone();
    (session, id)
}

fn listed(daemon: &mut Daemon, session: &str) -> Value {
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!((&status["session"]["status"]["type"], &status["operations"]), (&json!("idle"), &json!([])));
    status["waiting"].clone()
}

fn load(daemon: &mut Daemon, session: &str) {
    let models = json!({"tokens": {"estimator": "chars"}, "models": [model("large", 100_000)]});
    daemon.ok("session/load", json!({"sessionId": session, "settings": models}));
}

/// The turn goes on and ends. Returns the answer of its last append.
fn end_turn(daemon: &mut Daemon, session: &str) -> Value {
    assert_eq!(daemon.append(session, &[result("a", "short")])["next"]["type"], "none");
    daemon.append(session, &[assistant("It is read.")])
}

#[test]
fn a_compaction_that_waits_is_listed_and_nothing_is_busy() {
    let mut daemon = Daemon::start();
    let (session, id) = waiting(&mut daemon);
    let waiting = listed(&mut daemon, &session);
    assert_eq!(waiting.as_array().map(Vec::len), Some(1));
    let it = &waiting[0];
    assert_eq!((&it["operationId"], &it["kind"], &it["reason"]), (&id, &json!("compaction"), &json!("manual")));
    assert_eq!((&it["when"], &it["hasInstructions"]), (&json!("after_turn"), &json!(true)));
    let dry = daemon.ok("session/compact", json!({"sessionId": session, "dryRun": true}));
    assert!(dry["preparation"].is_object());
    let forked = daemon.ok("session/fork", json!({"sessionId": session}))["session"]["sessionId"].clone();
    assert_eq!(listed(&mut daemon, forked.as_str().expect("an id")), json!([]));
    daemon.ok("session/prune", json!({"sessionId": session}));
    daemon.ok("session/configure", json!({"sessionId": session, "title": "A title"}));
    assert_eq!(listed(&mut daemon, &session)[0]["operationId"], id);
}

#[test]
fn a_compaction_that_waits_gives_way_to_a_compaction_a_reset_and_a_handoff() {
    for (method, mut params) in [
        ("session/compact", json!({"wait": true, "keepRecentTokens": 1_000, "instructions": "All."})),
        ("session/reset", json!({})),
        ("session/handoff", json!({"wait": true, "document": "Go on with the numbers."})),
    ] {
        let mut daemon = Daemon::start();
        let (session, id) = waiting(&mut daemon);
        daemon.append(&session, &[result("a", "short")]);
        let from = daemon.events.len();
        params["sessionId"] = session.as_str().into();
        let done = daemon.ok(method, params);
        assert!(method == "session/reset" || done["outcome"] == "completed", "{method}: {done:#}");
        assert_eq!(listed(&mut daemon, &session), json!([]), "{method}");
        let events = daemon.events_since(from);
        let of_it = events.iter().filter(|(_, params)| params["operationId"] == id);
        assert_eq!(of_it.map(|(kind, _)| kind.as_str()).collect::<Vec<_>>(), ["compaction_start", "compaction_end"]);
        let end = events.iter().rev().find(|(kind, _)| kind == "compaction_end").expect("an end");
        assert_eq!(
            (&end.1["event"]["outcome"], &end.1["event"]["skippedReason"]),
            (&json!("skipped"), &json!("superseded"))
        );
        assert_eq!(daemon.append(&session, &[user("More."), assistant("Done.")])["next"]["type"], "none", "{method}");
        let mut daemon = daemon.restarted();
        load(&mut daemon, &session);
        assert_eq!(listed(&mut daemon, &session), json!([]), "{method}");
    }
}

#[test]
fn a_compaction_that_waits_is_there_again_after_a_kill_and_runs_once() {
    let mut daemon = Daemon::start();
    let (session, id) = waiting(&mut daemon);
    let mut daemon = daemon.restarted();
    load(&mut daemon, &session);
    assert_eq!(listed(&mut daemon, &session)[0]["operationId"], id);
    let from = daemon.events.len();
    let next = end_turn(&mut daemon, &session)["next"].clone();
    assert_eq!((&next["operationId"], &next["reason"]), (&id, &json!("manual")));
    let events = settled(&mut daemon, from);
    let end = event(&events, "compaction_end");
    assert_eq!(end["outcome"], "completed", "{end:#}");
    let mut daemon = daemon.restarted();
    load(&mut daemon, &session);
    assert_eq!(listed(&mut daemon, &session), json!([]));
    assert_eq!(daemon.append(&session, &[user("More."), assistant("Done.")])["next"]["type"], "none");
}

#[test]
fn a_compaction_that_was_cancelled_is_gone_after_a_kill() {
    let mut daemon = Daemon::start();
    let (session, id) = waiting(&mut daemon);
    let cancelled = daemon.ok("session/cancel", json!({"sessionId": session, "operationId": id}));
    assert_eq!(cancelled["cancelled"][0]["operationId"], id);
    daemon.until("compaction_end");
    let mut daemon = daemon.restarted();
    load(&mut daemon, &session);
    assert_eq!(listed(&mut daemon, &session), json!([]));
    assert_eq!(end_turn(&mut daemon, &session)["next"]["type"], "none");
}

#[test]
fn a_kill_right_after_the_answer_of_a_cancel_brings_nothing_back() {
    let mut daemon = Daemon::start();
    for round in 0..8 {
        let (session, id) = waiting(&mut daemon);
        let which = if round % 2 == 0 { id.clone() } else { Value::Null };
        let mut params = json!({"sessionId": session, "operationId": which});
        params.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
        let cancelled = daemon.ok("session/cancel", params);
        daemon = daemon.restarted();
        assert_eq!(cancelled["cancelled"][0]["operationId"], id);
        load(&mut daemon, &session);
        assert_eq!(listed(&mut daemon, &session), json!([]), "round {round}");
    }
}

#[test]
fn a_compaction_that_waits_outlives_a_close() {
    let mut daemon = Daemon::start();
    let (session, id) = waiting(&mut daemon);
    daemon.ok("session/close", json!({"sessionId": session}));
    daemon.ok("session/load", json!({"sessionId": session, "readOnly": true}));
    assert_eq!(listed(&mut daemon, &session), json!([]), "a session that is only read compacts nothing");
    daemon.ok("session/close", json!({"sessionId": session}));
    load(&mut daemon, &session);
    assert_eq!(listed(&mut daemon, &session)[0]["operationId"], id);
    assert_eq!(end_turn(&mut daemon, &session)["next"]["operationId"], id);
}

#[test]
fn a_compaction_after_the_turn_waits_for_an_answer_without_calls() {
    let mut daemon = Daemon::start();
    let session = long_session(&mut daemon, &json!({"keepRecentTokens": 1_000}));
    daemon.append(&session, &[user("Read it."), calls(&["a"])]);
    let params = json!({"sessionId": session, "when": "after_turn"});
    let id = daemon.ok("session/compact", params.clone())["operationId"].clone();
    assert_eq!(daemon.ok("session/compact", params.clone())["operationId"], id, "there is one at a time");
    let mut dry = params.clone();
    dry["dryRun"] = true.into();
    assert!(daemon.ok("session/compact", dry)["preparation"].is_object());
    assert_eq!(daemon.append(&session, &[result("a", "short")])["next"]["type"], "none");
    let from = daemon.events.len();
    let next = daemon.append(&session, &[assistant("It is read.")])["next"].clone();
    assert_eq!((&next["operationId"], &next["reason"]), (&id, &json!("manual")));
    let events = settled(&mut daemon, from);
    assert_eq!(
        names(&events),
        [
            "entry_appended",
            "status_changed",
            "compaction_start",
            "entry_appended",
            "compaction_end",
            "status_changed",
            "settled"
        ]
    );
    assert_eq!(event(&events, "compaction_end")["outcome"], "completed");
    // The turn is over: the next one starts immediately, and has nothing to do.
    let refused = daemon.err("session/compact", params);
    assert_eq!(refused["data"]["code"], "nothing_to_compact", "{refused:#}");
}

#[test]
fn a_compaction_after_the_turn_ends_with_a_cancel_and_with_the_session() {
    let mut daemon = Daemon::start();
    let session = long_session(&mut daemon, &json!({}));
    daemon.append(&session, &[user("Go on.")]);
    let params = json!({"sessionId": session, "when": "after_turn", "wait": true});
    let waiting = daemon.begin("session/compact", params.clone());
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!(status["session"]["status"]["type"], "idle");
    let cancelled = daemon.ok("session/cancel", json!({"sessionId": session}));
    let ended = daemon.answer(waiting).expect("an end");
    assert_eq!(ended["outcome"], "cancelled");
    assert_eq!(ended["operationId"], cancelled["cancelled"][0]["operationId"]);
    let from = daemon.events.len();
    let waiting = daemon.begin("session/compact", params);
    daemon.ok("session/close", json!({"sessionId": session}));
    assert_eq!(daemon.answer(waiting).expect("an end")["outcome"], "cancelled");
    let events = daemon.events_since(from);
    assert_eq!(event(&events, "compaction_end")["outcome"], "cancelled");
}

#[test]
fn an_agent_is_refused_below_half_of_the_threshold_after_the_turn_too() {
    let mut daemon = Daemon::start();
    let session = long_session(&mut daemon, &json!({}));
    daemon.append(&session, &[user("Go on.")]);
    for when in ["now", "after_turn"] {
        let params = json!({"sessionId": session, "when": when, "initiator": "agent"});
        let refused = daemon.err("session/compact", params);
        assert_eq!(refused["data"]["reason"], "below_half_threshold", "{when}");
    }
}
