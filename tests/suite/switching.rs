//! Changes of the model and of its limits by `session/configure`, for a host that asks for contexts to send.

use crate::support::{Daemon, assistant, calls, event, long_session, names, result, text_of, user};
use serde_json::{Value, json};

fn configure(daemon: &mut Daemon, session: &str, mut params: Value) -> Value {
    params["sessionId"] = session.into();
    daemon.ok("session/configure", params)
}

fn context(session: &str) -> Value {
    json!({"sessionId": session, "wait": true})
}

#[test]
fn a_smaller_model_is_given_a_conversation_that_it_holds() {
    let mut daemon = Daemon::start();
    let session = long_session(&mut daemon, &json!({}));
    daemon.ok("session/status", json!({"sessionId": session}));
    let from = daemon.events.len();
    let configured = configure(&mut daemon, &session, json!({"model": "p/small"}));
    assert_eq!(daemon.events.len(), from, "the answer precedes all events");
    let id = &configured["next"]["operationId"];
    let next = json!({"type": "maintenance", "operationId": id, "reason": "model_switch", "willRetry": false,
        "willContinue": false});
    assert_eq!(configured["next"], next);
    let held = daemon.context(&session);
    let events = daemon.events_since(from);
    assert_eq!(
        names(&events),
        [
            "entry_appended",
            "model_changed",
            "status_changed",
            "compaction_start",
            "entry_appended",
            "compaction_end",
            "status_changed",
            "settled"
        ]
    );
    let changed = json!({"type": "model_changed", "from": {"provider": "p", "id": "large"},
        "to": {"provider": "p", "id": "small"}, "reason": "user"});
    assert_eq!(*event(&events, "model_changed"), changed);
    let (start, end) = (event(&events, "compaction_start"), event(&events, "compaction_end"));
    assert_eq!((&start["reason"], &start["contextWindow"]), (&json!("model_switch"), &json!(16_000)));
    assert_eq!((&end["reason"], &end["outcome"]), (&json!("model_switch"), &json!("completed")));
    assert_eq!(held["model"]["id"], "small");
    let usage = &held["usage"];
    assert!(usage["contextTokens"].as_u64() <= usage["thresholdTokens"].as_u64(), "{usage:#}");
    // The way back needs no compaction.
    assert_eq!(configure(&mut daemon, &session, json!({"model": "p/large"}))["next"]["type"], "none");
}

#[test]
fn every_switch_turns_the_compaction_behind_a_change_of_the_model_off() {
    for compaction in [json!({"enabled": false}), json!({"strategy": "off"})] {
        let mut daemon = Daemon::start();
        let session = long_session(&mut daemon, &compaction);
        let configured = configure(&mut daemon, &session, json!({"model": "p/small"}));
        assert_eq!(configured["next"]["type"], "none");
        let refused = daemon.err("session/context", context(&session));
        assert_eq!(refused["data"]["code"], "context_overflow");
        assert!(refused["message"].as_str().expect("a text").contains("automatic compaction is off"), "{refused:#}");
        assert!(daemon.count("compaction_start") == 0);
        // The larger model takes it as it is.
        configure(&mut daemon, &session, json!({"model": "p/large"}));
        daemon.context(&session);
    }
}

#[test]
fn a_change_in_the_middle_of_a_batch_is_followed_by_a_compaction_behind_it() {
    let mut daemon = Daemon::start();
    let session = long_session(&mut daemon, &json!({}));
    daemon.append(&session, &[user("Read it."), calls(&["a"])]);
    let configured = configure(&mut daemon, &session, json!({"model": "p/small"}));
    assert_eq!(configured["next"]["type"], "none");
    let refused = daemon.err("session/context", context(&session));
    assert_eq!(refused["data"]["code"], "context_overflow");
    assert!(refused["message"].as_str().expect("a text").contains("tool calls have no result yet"), "{refused:#}");
    assert_eq!(daemon.append(&session, &[result("a", "short")])["next"]["reason"], "threshold");
    let context = daemon.context(&session);
    assert!(context["messages"].to_string().contains("short"), "the batch is kept whole");
}

#[test]
fn a_restart_behind_a_change_of_the_model_goes_on_with_it() {
    let mut daemon = Daemon::start();
    let session = long_session(&mut daemon, &json!({}));
    configure(&mut daemon, &session, json!({"model": "p/small"}));
    let mut daemon = daemon.restarted();
    let loaded = daemon.ok("session/load", json!({"sessionId": session}));
    assert_eq!(loaded["session"]["model"]["id"], "small");
    let context = daemon.context(&session);
    let usage = &context["usage"];
    assert!(usage["contextTokens"].as_u64() <= usage["contextWindow"].as_u64(), "{usage:#}");
}

#[test]
fn a_client_states_the_limits_of_its_model() {
    let mut daemon = Daemon::start();
    let created =
        daemon.ok("session/new", json!({"cwd": "/p", "model": "p/m", "contextWindow": 9_000, "maxOutputTokens": 700}));
    let session = created["session"]["sessionId"].as_str().expect("an id").to_owned();
    let usage = &created["session"]["usage"];
    assert_eq!((&usage["contextWindow"], &usage["windowSource"]), (&json!(9_000), &json!("setting")));
    daemon.append(&session, &[user("Go on.")]);
    let output = |daemon: &mut Daemon| daemon.context(&session)["maxOutputTokens"].clone();
    assert_eq!(output(&mut daemon), 700);
    let listed = daemon.ok("models/list", json!({"sessionId": session}));
    assert_eq!(listed["models"][0]["contextWindow"], json!({"value": 9_000, "source": "session"}), "{listed:#}");
    // They belong to the model.
    let window = |answer: &Value| answer["session"]["usage"]["contextWindow"].clone();
    assert_eq!(window(&configure(&mut daemon, &session, json!({"model": "p/other"}))), 128_000);
    assert_eq!(window(&configure(&mut daemon, &session, json!({"model": "p/m"}))), 9_000);
    assert_eq!(window(&configure(&mut daemon, &session, json!({"contextWindow": 8_000}))), 8_000);
    assert_eq!(output(&mut daemon), 700, "the other limit stays");
    // They are stored with the session.
    let mut daemon = daemon.restarted();
    assert_eq!(window(&daemon.ok("session/load", json!({"sessionId": session}))), 8_000);
    assert_eq!(output(&mut daemon), 700);
    let given = daemon.ok("session/load", json!({"sessionId": session, "contextWindow": 7_000}));
    assert_eq!(window(&given), 7_000);
    assert_eq!(output(&mut daemon), 700);
    // Null clears them.
    let cleared = configure(&mut daemon, &session, json!({"contextWindow": null, "maxOutputTokens": null}));
    assert_eq!(window(&cleared), 128_000);
    assert_eq!(cleared["session"]["usage"]["windowSource"], "default");
    assert_ne!(output(&mut daemon), 700);
}

#[test]
fn a_session_without_a_model_has_limits_too() {
    let mut daemon = Daemon::start();
    let created = daemon.ok("session/new", json!({"cwd": "/p", "contextWindow": 9_000}));
    let session = created["session"]["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(created["session"]["usage"]["contextWindow"], 9_000);
    let configured = configure(&mut daemon, &session, json!({"contextWindow": 6_000}));
    assert_eq!(configured["session"]["usage"]["contextWindow"], 6_000);
}

#[test]
fn a_smaller_window_is_a_change_of_the_model() {
    let mut daemon = Daemon::start();
    let session = long_session(&mut daemon, &json!({}));
    let from = daemon.events.len();
    let configured = configure(&mut daemon, &session, json!({"contextWindow": 16_000}));
    assert_eq!(configured["next"]["reason"], "model_switch");
    let held = daemon.context(&session);
    assert!(held["usage"]["contextTokens"].as_u64() <= Some(13_600), "{held:#}");
    assert_eq!(held["usage"]["contextWindow"], 16_000);
    let events = daemon.events_since(from);
    assert!(!names(&events).contains(&"model_changed"), "the model is the same");
    assert_eq!(event(&events, "compaction_end")["outcome"], "completed");
}

#[test]
fn limits_that_are_none_are_refused() {
    let mut daemon = Daemon::start();
    let session = long_session(&mut daemon, &json!({}));
    for limit in [json!(0), json!(-1), json!(1.5), json!(1_000_000_001), json!("many")] {
        for key in ["contextWindow", "maxOutputTokens"] {
            for (method, mut params) in [
                ("session/configure", json!({"sessionId": session})),
                ("session/new", json!({"cwd": "/p"})),
                ("session/load", json!({"sessionId": session})),
            ] {
                params[key] = limit.clone();
                let refused = daemon.err(method, params);
                assert_eq!(
                    (&refused["data"]["code"], &refused["data"]["path"]),
                    (&json!("invalid_params"), &json!(key))
                );
            }
        }
    }
}

/// The new events of the session that a compaction sends, up to `settled`.
fn settled(daemon: &mut Daemon, from: usize) -> Vec<(String, Value)> {
    daemon.until("settled");
    daemon.events_since(from)
}

#[test]
fn the_strategy_handoff_summarizes_in_place_and_says_so_once() {
    let mut daemon = Daemon::start();
    let session = long_session(&mut daemon, &json!({"strategy": "handoff"}));
    let from = daemon.events.len();
    let configured = configure(&mut daemon, &session, json!({"model": "p/small"}));
    assert_eq!(configured["next"]["reason"], "model_switch");
    settled(&mut daemon, from);
    let more = [user(&text_of(15_000, "three")), assistant("Read.")];
    assert_eq!(daemon.append(&session, &more)["next"]["reason"], "threshold");
    daemon.context(&session);
    daemon.ok("session/status", json!({"sessionId": session}));
    let events = daemon.events_since(from);
    let starts = events.iter().filter(|(kind, _)| kind == "compaction_start");
    assert!(starts.clone().all(|(_, params)| params["event"]["strategy"] == "context_full"));
    assert_eq!(starts.count(), 2);
    let told = events.iter().filter(|(kind, params)| {
        kind == "notice" && params["event"]["detail"].as_str().is_some_and(|text| text.contains("\"handoff\""))
    });
    assert_eq!(told.count(), 1);
}
