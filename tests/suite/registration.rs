//! `hooks/set` and the hooks of `initialize`, by the real binary.

use crate::support::{Daemon, Home, entries, header, user};
use serde_json::{Value, json};
use std::fs;

/// The hooks of a session as its status shows them; null where there is none.
fn hooks(daemon: &mut Daemon, session: &str) -> Value {
    daemon.ok("session/status", json!({"sessionId": session}))["hooks"].clone()
}

/// The names of the hooks of a session.
fn events(daemon: &mut Daemon, session: &str) -> Value {
    hooks(daemon, session)["events"].clone()
}

fn set(daemon: &mut Daemon, params: Value) {
    assert_eq!(daemon.ok("hooks/set", params), Value::Null);
}

/// A daemon that was greeted with these hooks. The notices behind the answer are the second value.
fn greeted(hooks: &Value) -> (Daemon, Vec<Value>) {
    let mut daemon = Daemon::silent(Home::new());
    daemon.ok("initialize", json!({"capabilities": {"hooks": hooks}}));
    // Notices are sent behind the answer and before the answer to a later request.
    daemon.ok("ping", json!({}));
    let notices = daemon.events.iter().filter(|frame| frame["method"] == "notice").map(|it| it["params"].clone());
    let notices = notices.collect();
    (daemon, notices)
}

#[test]
fn a_session_shows_the_hooks_in_force() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/p"}));
    assert_eq!(hooks(&mut daemon, &session), Value::Null);
    set(&mut daemon, json!({"events": ["hook/session_compacting", "session_before_compact", "session_compacting"]}));
    let default = json!({"events": ["session_before_compact", "session_compacting"], "timeoutMs": 30_000, "onFailure": "continue"});
    assert_eq!(hooks(&mut daemon, &session), default);
    let other = daemon.new_session(json!({"cwd": "/p", "ephemeral": true}));
    assert_eq!(hooks(&mut daemon, &other), default);
    let own = json!({"events": ["session_before_tree"], "sessionIds": [other, other], "timeoutMs": 100, "onFailure": "abort"});
    set(&mut daemon, own);
    assert_eq!(
        hooks(&mut daemon, &other),
        json!({"events": ["session_before_tree"], "timeoutMs": 100, "onFailure": "abort"})
    );
    assert_eq!(hooks(&mut daemon, &session), default);
    // A registration replaces the one before it whole.
    set(&mut daemon, json!({"events": ["session_compacting"], "sessionIds": [other]}));
    let replaced = json!({"events": ["session_compacting"], "timeoutMs": 30_000, "onFailure": "continue"});
    assert_eq!(hooks(&mut daemon, &other), replaced);
    set(&mut daemon, json!({"events": []}));
    assert_eq!((hooks(&mut daemon, &session), hooks(&mut daemon, &other)), (Value::Null, replaced));
    set(&mut daemon, json!({"events": [], "sessionIds": [other]}));
    assert_eq!(hooks(&mut daemon, &other), Value::Null);
}

#[test]
fn a_session_without_a_registration_of_its_own_uses_the_default_one_again() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/p"}));
    set(&mut daemon, json!({"events": ["session_compacting"]}));
    set(&mut daemon, json!({"events": ["session_before_tree"], "sessionIds": [session]}));
    assert_eq!(events(&mut daemon, &session), json!(["session_before_tree"]));
    set(&mut daemon, json!({"events": [], "sessionIds": [session]}));
    assert_eq!(events(&mut daemon, &session), json!(["session_compacting"]));
}

#[test]
fn every_wrong_registration_is_refused_and_changes_nothing() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/p"}));
    set(&mut daemon, json!({"events": ["session_compacting"], "timeoutMs": 1_000}));
    let before = hooks(&mut daemon, &session);
    let long = "i".repeat(1_025);
    let crowd: Vec<_> = (0..10_001).map(|at| format!("session-{at}")).collect();
    let right = ["session_before_compact"];
    for (params, path, parts) in [
        (json!({}), "events", vec!["missing"]),
        (json!({"events": null}), "events", vec!["null", "a list"]),
        (json!({"events": "session_compacting"}), "events", vec!["session_compacting", "a list"]),
        (json!({"events": {"session_compacting": true}}), "events", vec!["object", "a list"]),
        (json!({"events": [7]}), "events[0]", vec!["7", "a string"]),
        (json!({"events": ["session_compacting", "session_compact"]}), "events[1]", vec!["session_compact\"", "mean"]),
        (json!({"events": ["sessionBeforeCompact"]}), "events[0]", vec!["mean `session_before_compact`"]),
        (json!({"events": ["tool_call"]}), "events[0]", vec!["\"tool_call\"", "The hooks are", "session_before_tree"]),
        (json!({"events": [""]}), "events[0]", vec!["The hooks are"]),
        (json!({"events": ["hook/hook/session_compacting"]}), "events[0]", vec!["mean `session_compacting`"]),
        (json!({"events": right, "sessionIds": []}), "sessionIds", vec!["is empty", "leave `sessionIds` out"]),
        (json!({"events": right, "sessionIds": session}), "sessionIds", vec!["a list"]),
        (json!({"events": right, "sessionIds": [session, 7]}), "sessionIds[1]", vec!["a string"]),
        (json!({"events": right, "sessionIds": [""]}), "sessionIds[0]", vec!["is empty"]),
        (json!({"events": right, "sessionIds": [long]}), "sessionIds[0]", vec!["1025 bytes", "1024"]),
        (json!({"events": right, "sessionIds": crowd}), "sessionIds", vec!["10001", "10000", "events: []"]),
        (json!({"events": right, "timeoutMs": 99}), "timeoutMs", vec!["99 ms", "100 to 600000 ms"]),
        (json!({"events": right, "timeoutMs": 600_001}), "timeoutMs", vec!["600001 ms", "100 to 600000 ms"]),
        (json!({"events": right, "timeoutMs": 0}), "timeoutMs", vec!["100 to 600000 ms"]),
        (json!({"events": right, "timeoutMs": -1}), "timeoutMs", vec!["-1", "a whole number"]),
        (json!({"events": right, "timeoutMs": 1.5}), "timeoutMs", vec!["1.5", "a whole number"]),
        (json!({"events": right, "timeoutMs": "1000"}), "timeoutMs", vec!["a whole number"]),
        (json!({"events": right, "timeoutMs": u64::MAX}), "timeoutMs", vec!["100 to 600000 ms"]),
        (json!({"events": right, "onFailure": "panic"}), "onFailure", vec!["panic", "continue", "abort"]),
        (json!({"events": right, "onFailure": true}), "onFailure", vec!["true", "`continue`, `abort`"]),
        (json!(["session_compacting"]), "", vec!["an object with names"]),
    ] {
        let error = daemon.err("hooks/set", params.clone());
        let shown = params.to_string().chars().take(200).collect::<String>();
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32602), &json!("invalid_params")), "{shown}");
        assert_eq!(error["data"]["path"], path, "{shown}: {error}");
        let message = error["message"].as_str().expect("a text");
        let missing: Vec<_> = parts.iter().filter(|part| !message.contains(**part)).collect();
        assert!(missing.is_empty(), "{shown}: {message} lacks {missing:?}");
        assert!(message.len() < 500, "{shown}: {message}");
        assert_eq!(hooks(&mut daemon, &session), before, "{shown}");
    }
    // No params, and null.
    for frame in [r#""params":null"#, r#""params":[]"#] {
        let id = daemon.take_id();
        daemon.write(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"hooks/set",{frame}}}{}"#, "\n").as_bytes());
        assert_eq!(daemon.answer(id).expect_err("no events")["data"]["path"], "events");
    }
}

#[test]
fn a_wrong_part_of_the_hooks_of_initialize_is_left_out_with_a_notice() {
    for (claimed, expected, parts) in [
        (json!(null), Value::Null, vec![]),
        (json!({}), Value::Null, vec![]),
        (json!([]), Value::Null, vec![]),
        (json!({"events": []}), Value::Null, vec![]),
        (json!({"events": ["hook/session_compacting"]}), json!(["session_compacting", 30_000, "continue"]), vec![]),
        (
            json!({"events": ["session_compacting"], "timeoutMs": 5_000, "onFailure": "abort", "more": 1}),
            json!(["session_compacting", 5_000, "abort"]),
            vec![],
        ),
        (
            json!({"events": ["compacting", "session_compacting"], "timeoutMs": 5, "onFailure": "die"}),
            json!(["session_compacting", 100, "continue"]),
            vec!["events[0]", "mean `session_compacting`", "timeoutMs", "100 ms hold", "onFailure"],
        ),
        (json!({"events": "session_compacting"}), Value::Null, vec!["`events` is no list"]),
        (json!("session_compacting"), Value::Null, vec!["no object"]),
        (json!(true), Value::Null, vec!["no object"]),
        (json!({"events": vec!["x"; 50_000]}), Value::Null, vec!["events[0]", "and 49995 more"]),
    ] {
        let (mut daemon, notices) = greeted(&claimed);
        let shown = claimed.to_string().chars().take(200).collect::<String>();
        let session = daemon.new_session(json!({"cwd": "/p"}));
        let found = match hooks(&mut daemon, &session) {
            Value::Null => Value::Null,
            hooks => json!([hooks["events"][0], hooks["timeoutMs"], hooks["onFailure"]]),
        };
        assert_eq!(found, expected, "{shown}");
        assert_eq!(notices.len(), usize::from(!parts.is_empty()), "{shown}: {notices:#?}");
        for notice in notices {
            assert_eq!(notice["severity"], "warning");
            let detail = notice["detail"].as_str().expect("a text");
            assert!(parts.iter().all(|part| detail.contains(part)) && detail.len() < 2_000, "{shown}: {detail}");
        }
    }
}

#[test]
fn a_registration_holds_for_the_requests_behind_it() {
    let home = Home::new();
    let messages: Vec<_> = (0..10).map(|at| user(&format!("message {at}"))).collect();
    let path = home.session("s.jsonl", &[vec![header("named")], entries(&messages)].concat());
    let mut daemon = Daemon::at(home);
    // Requests in one write, about a session that is not open: each finds the registration before it.
    let names = ["session_before_compact", "session_compacting", "session_before_tree"];
    let mut begun = vec![daemon.begin("hooks/set", json!({"events": [names[0]], "sessionIds": ["named"]}))];
    daemon.begin("session/load", json!({"path": path}));
    for name in names {
        begun.push(daemon.begin("hooks/set", json!({"events": [name], "sessionIds": ["named"]})));
        begun.push(daemon.begin("session/status", json!({"sessionId": "named"})));
        // A session that is being opened handles both behind its opening.
        let status = daemon.answer(*begun.last().expect("a request")).expect("a status");
        assert_eq!(status["hooks"]["events"], json!([name]));
    }
    set(&mut daemon, json!({"events": [], "sessionIds": ["named"]}));
    assert_eq!(hooks(&mut daemon, "named"), Value::Null);
}

#[test]
fn a_registration_stays_over_a_close_and_goes_with_the_session() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/p"}));
    daemon.append(&session, &[user("hello")]);
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    let path = status["session"]["path"].as_str().expect("a file").to_owned();
    let copy = fs::read(&path).expect("a file");
    let own = json!({"events": ["session_compacting"], "sessionIds": [session]});
    set(&mut daemon, own.clone());
    daemon.ok("session/close", json!({"sessionId": session}));
    daemon.ok("session/load", json!({"sessionId": session}));
    assert_eq!(events(&mut daemon, &session), json!(["session_compacting"]));
    daemon.ok("session/delete", json!({"sessionId": session}));
    fs::write(&path, &copy).expect("a file");
    daemon.load(path.as_ref());
    assert_eq!(hooks(&mut daemon, &session), Value::Null);
    // A registration behind the delete is about the session that comes next.
    set(&mut daemon, own.clone());
    let delete = daemon.begin("session/delete", json!({"sessionId": session}));
    let again = daemon.begin("hooks/set", own);
    daemon.answer(delete).expect("deleted");
    daemon.answer(again).expect("registered");
    fs::write(&path, &copy).expect("a file");
    daemon.load(path.as_ref());
    assert_eq!(events(&mut daemon, &session), json!(["session_compacting"]));
}

#[test]
fn a_delete_that_fails_keeps_the_registration() {
    let home = Home::new();
    let mut daemon = Daemon::at(home);
    set(&mut daemon, json!({"events": ["session_compacting"], "sessionIds": ["named"]}));
    let error = daemon.err("session/delete", json!({"sessionId": "named"}));
    assert_eq!(error["data"]["code"], "not_found");
    let path = daemon.home.session("s.jsonl", &[header("named")]);
    daemon.load(&path);
    assert_eq!(events(&mut daemon, "named"), json!(["session_compacting"]));
}

#[test]
fn an_ephemeral_session_takes_its_registration_along() {
    let mut daemon = Daemon::start();
    let crowd: Vec<_> = (1..10_000).map(|at| format!("session-{at}")).collect();
    set(&mut daemon, json!({"events": ["session_compacting"], "sessionIds": crowd}));
    for _ in 0..3 {
        let session = daemon.new_session(json!({"cwd": "/p", "ephemeral": true}));
        // There is room for one.
        set(&mut daemon, json!({"events": ["session_compacting"], "sessionIds": [session]}));
        daemon.ok("session/close", json!({"sessionId": session}));
    }
}

#[test]
fn thousands_of_registrations_in_a_row_are_answered_once_each_and_the_last_one_holds() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/p"}));
    let names = ["session_before_compact", "session_compacting", "session_before_tree"];
    for lot in 0..20 {
        let ids: Vec<_> = (0..100)
            .map(|at| {
                let name = names[(lot + at) % names.len()];
                let whose = if at % 2 == 0 { json!([session, "other"]) } else { json!(null) };
                daemon.begin("hooks/set", json!({"events": [name], "sessionIds": whose, "timeoutMs": 100 + at}))
            })
            .collect();
        for id in ids {
            assert_eq!(daemon.answer(id), Ok(Value::Null));
        }
    }
    let last = json!({"events": ["session_before_compact"], "timeoutMs": 198, "onFailure": "continue"});
    assert_eq!(hooks(&mut daemon, &session), last);
    assert!(daemon.events.iter().all(|frame| frame["method"] != "notice"), "{:#?}", daemon.events);
}

#[test]
fn registrations_of_a_batch_hold_in_their_order() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/p"}));
    let member = |id: usize, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": format!("b{id}"), "method": method, "params": params});
    let status = |id| member(id, "session/status", json!({"sessionId": session}));
    daemon.send(&json!([
        member(0, "hooks/set", json!({"events": ["session_compacting"]})),
        member(1, "hooks/set", json!({"events": ["nonsense"]})),
        member(2, "hooks/set", json!({"events": ["session_before_compact"], "sessionIds": [session]})),
        {"jsonrpc": "2.0", "method": "hooks/set", "params": {"events": ["session_before_tree"], "sessionIds": [session]}},
        status(3),
    ]));
    let answers = daemon.frame();
    let answers = answers.as_array().expect("a batch");
    let of = |id: &str| answers.iter().find(|answer| answer["id"] == id).expect("an answer");
    assert_eq!(answers.len(), 4);
    assert_eq!((&of("b0")["result"], &of("b2")["result"]), (&Value::Null, &Value::Null));
    assert_eq!(of("b1")["error"]["data"]["path"], "events[0]");
    // A notification registers, too.
    assert_eq!(of("b3")["result"]["hooks"]["events"], json!(["session_before_tree"]));
}

#[test]
fn a_registration_does_not_outlive_the_daemon() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/p"}));
    daemon.append(&session, &[user("hello")]);
    set(&mut daemon, json!({"events": ["session_compacting"]}));
    set(&mut daemon, json!({"events": ["session_compacting"], "sessionIds": [session]}));
    let mut daemon = daemon.restarted();
    daemon.ok("session/load", json!({"sessionId": session}));
    assert_eq!(hooks(&mut daemon, &session), Value::Null);
}
