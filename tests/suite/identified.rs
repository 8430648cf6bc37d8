//! Contexts with an identity: an answer, a failure and a report belong to the context that the request was made with.

use crate::support::{Daemon, Home, assistant, failed, model, text_of, user};
use serde_json::{Value, json};

/// A session with the models `p/large` and `p/small`, and a history of 12,000 tokens by characters whose two answers report
/// their requests as they are.
fn session(daemon: &mut Daemon) -> String {
    let settings = json!({
        "tokens": {"estimator": "chars"},
        "models": [model("large", 100_000), model("small", 40_000)],
        "compaction": {"keepRecentTokens": 2_000},
    });
    let session = daemon.new_session(json!({"cwd": "/project", "model": "p/large", "settings": settings}));
    for (topic, size) in [("one", 6_000), ("two", 12_000)] {
        daemon.append(&session, &[user(&text_of(6_000, topic))]);
        daemon.append(&session, &[reported(size)]);
    }
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    assert_eq!(usage["source"], "provider", "{usage}");
    session
}

/// An answer that reports a prompt of this size.
fn reported(input: u64) -> Value {
    let mut answer = assistant("Read.");
    answer["usage"] = json!({"input": input, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": input + 5});
    answer
}

fn context(daemon: &mut Daemon, session: &str, format: &str) -> Value {
    daemon.ok("session/context", json!({"sessionId": session, "format": format}))
}

fn append(daemon: &mut Daemon, session: &str, message: &Value, id: Option<&Value>) -> Value {
    let mut params = json!({"sessionId": session, "messages": [message]});
    if let Some(id) = id {
        params["contextId"] = id.clone();
    }
    daemon.ok("session/append", params)
}

fn compact(daemon: &mut Daemon, session: &str) -> u64 {
    let end = daemon.ok("session/compact", json!({"sessionId": session, "wait": true, "method": "extractive"}));
    assert_eq!(end["outcome"], "completed", "{end}");
    end["result"]["tokensAfter"].as_u64().expect("a size")
}

#[test]
fn a_report_of_the_context_before_a_compaction_counts_for_nothing_also_after_reopening() {
    for (named, asked) in [(true, false), (false, true), (true, true)] {
        let mut daemon = Daemon::start();
        let session = session(&mut daemon);
        // The request is on its way while the session is compacted.
        let format = if asked { "anthropic" } else { "messages" };
        let given = context(&mut daemon, &session, format);
        let after = compact(&mut daemon, &session);
        // A program beside the agent looks at the context.
        context(&mut daemon, &session, "messages");
        let answered = append(&mut daemon, &session, &reported(12_100), named.then_some(&given["contextId"]));
        assert_eq!(answered["next"]["type"], "none", "{answered}");
        assert_eq!(answered["usage"]["source"], "estimate", "{answered}");
        let size = answered["usage"]["contextTokens"].as_u64().expect("a size");
        assert!(size.abs_diff(after) < 100, "{size} after a compaction to {after}");
        let entries = daemon.ok("session/entries", json!({"sessionId": session}));
        let late: Vec<&Value> = entries["entries"].as_array().expect("entries").iter().collect();
        let late = late.iter().find(|entry| entry["customType"] == "abridged.report").expect("a marker");
        assert_eq!(late["data"]["entryId"], answered["entryIds"][0]);
        let path = daemon.ok("session/status", json!({"sessionId": session}))["session"]["path"].clone();
        let mut daemon = daemon.restarted();
        let loaded = daemon.ok("session/load", json!({"path": path}));
        assert_eq!(loaded["session"]["usage"]["contextTokens"], size, "{loaded}");
    }
}

#[test]
fn a_report_of_the_context_after_a_compaction_counts_at_once_and_starts_nothing() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    let after = compact(&mut daemon, &session);
    let given = context(&mut daemon, &session, "anthropic");
    let answered = append(&mut daemon, &session, &reported(after + 50), Some(&given["contextId"]));
    assert_eq!((&answered["usage"]["source"], &answered["next"]["type"]), (&json!("provider"), &json!("none")));
}

#[test]
fn a_late_answer_of_the_former_model_does_not_undo_the_choice_of_another() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    let given = context(&mut daemon, &session, "anthropic");
    daemon.ok("session/configure", json!({"sessionId": session, "model": "p/small"}));
    daemon.until("model_changed");
    let changes = daemon.count("model_changed");
    let mut late = reported(12_100);
    (late["provider"], late["model"]) = ("p".into(), "large".into());
    append(&mut daemon, &session, &late, Some(&given["contextId"]));
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!(status["session"]["model"]["id"], "small");
    assert_eq!(daemon.count("model_changed"), changes);
    let path = status["session"]["path"].clone();
    let mut daemon = daemon.restarted();
    assert_eq!(daemon.ok("session/load", json!({"path": path}))["session"]["model"]["id"], "small");
}

#[test]
fn a_failure_belongs_to_the_model_of_its_context() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    daemon.ok("session/configure", json!({"sessionId": session, "model": "p/small"}));
    context(&mut daemon, &session, "anthropic");
    daemon.ok("session/configure", json!({"sessionId": session, "model": "p/large"}));
    let refused = failed("prompt is too long: 12100 tokens > 9000 maximum");
    let answered = append(&mut daemon, &session, &refused, None);
    let entry = json!({"sessionId": session, "entryId": answered["entryIds"][0]});
    assert_eq!(daemon.ok("session/entry", entry)["entry"]["message"]["model"], "small");
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    assert_eq!(usage["contextWindow"], 100_000, "{usage}");
}

#[test]
fn the_first_answer_that_names_a_model_gives_it_to_the_session_with_an_event() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &[user("Go on.")]);
    let mut answer = assistant("Done.");
    (answer["provider"], answer["model"]) = ("p".into(), "other".into());
    daemon.append(&session, &[answer.clone()]);
    let changed = daemon.until("model_changed");
    assert_eq!(changed["params"]["event"]["to"], json!({"provider": "p", "id": "other"}), "{changed}");
    daemon.append(&session, &[user("And now?"), answer]);
    daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!(daemon.count("model_changed"), 1);
}

#[test]
fn a_context_id_that_is_none_is_refused_and_nothing_is_stored() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    let before = daemon.ok("session/status", json!({"sessionId": session}))["session"]["entryCount"].clone();
    for id in ["", "e1", "p/large|e1"] {
        let params = json!({"sessionId": session, "messages": [assistant("Read.")], "contextId": id});
        let error = daemon.err("session/append", params);
        assert_eq!((&error["data"]["code"], &error["data"]["path"]), (&json!("invalid_params"), &json!("contextId")));
    }
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!(status["session"]["entryCount"], before);
}

#[test]
fn a_context_of_another_session_is_refused_and_nothing_follows_from_it() {
    let mut daemon = Daemon::start();
    let [one, other] = [(); 2].map(|()| session(&mut daemon));
    daemon.ok("session/configure", json!({"sessionId": other, "model": "p/small"}));
    let foreign = context(&mut daemon, &other, "anthropic")["contextId"].clone();
    let before = daemon.ok("session/status", json!({"sessionId": one}))["session"]["entryCount"].clone();
    let refusal = failed("prompt is too long: 12100 tokens > 11000 maximum");
    for id in [foreign, json!("p/large|feedbeef||"), json!("p/small||feedbeef|"), json!("|||feedbeef")] {
        let params = json!({"sessionId": one, "messages": [refusal], "contextId": id});
        let error = daemon.err("session/append", params);
        assert_eq!(
            (&error["data"]["code"], &error["data"]["path"]),
            (&json!("invalid_params"), &json!("contextId")),
            "{id}"
        );
        assert!(error["message"].as_str().is_some_and(|text| text.contains("leave contextId out")), "{error}");
    }
    let status = daemon.ok("session/status", json!({"sessionId": one}))["session"].take();
    assert_eq!((&status["entryCount"], &status["usage"]["contextWindow"]), (&before, &json!(100_000)));
    let usage = daemon.ok("session/usage", json!({"sessionId": other}));
    assert_eq!((&usage["contextWindow"], &usage["windowSource"]), (&json!(40_000), &json!("setting")));
    append(&mut daemon, &one, &assistant("Read."), None);
}

#[test]
fn a_context_of_the_parent_of_another_branch_and_from_before_a_restart_is_understood() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    let given = context(&mut daemon, &session, "anthropic")["contextId"].clone();
    let fork = daemon.ok("session/fork", json!({"sessionId": session}))["session"]["sessionId"].clone();
    append(&mut daemon, fork.as_str().expect("an id"), &assistant("Read in the fork."), Some(&given));
    let status = daemon.ok("session/status", json!({"sessionId": session}))["session"].take();
    let mut daemon = daemon.restarted();
    daemon.ok("session/load", json!({"path": status["path"]}));
    append(&mut daemon, &session, &assistant("Read after the restart."), Some(&given));
    let entries = daemon.ok("session/entries", json!({"sessionId": session}))["entries"].take();
    let first = entries.as_array().and_then(|all| all.iter().find(|it| it["type"] == "message")).expect("a message");
    daemon.ok("session/navigate", json!({"sessionId": session, "targetEntryId": first["id"], "wait": true}));
    append(&mut daemon, &session, &assistant("Read on another branch."), Some(&given));
}

/// Another program may give its entries any ids.
#[test]
fn a_context_of_entries_with_odd_ids_is_understood() {
    let home = Home::new();
    let lines = [
        json!({"type": "session", "version": 3, "id": "odd", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/project"}),
        json!({"type": "message", "id": "a|b%7C", "parentId": null, "timestamp": "2026-01-01T00:00:01.000Z",
            "message": {"role": "user", "content": "Go on.", "timestamp": 1}}),
    ];
    let path = home.path("odd.jsonl");
    std::fs::write(&path, lines.map(|line| format!("{line}\n")).concat()).expect("a file");
    let mut daemon = Daemon::at(home);
    let loaded = daemon.ok("session/load", json!({"path": path}));
    let session = loaded["session"]["sessionId"].as_str().expect("an id").to_owned();
    let given = daemon.context(&session)["contextId"].clone();
    append(&mut daemon, &session, &assistant("Done."), Some(&given));
}
