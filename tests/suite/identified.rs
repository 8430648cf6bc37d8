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

/// The size of the session's context as clients see it, and its source.
fn size(daemon: &mut Daemon, session: &str) -> (u64, Value) {
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    (usage["contextTokens"].as_u64().expect("a size"), usage["source"].clone())
}

#[test]
fn a_message_that_comes_while_the_model_runs_is_no_part_of_the_reported_request() {
    for named in [true, false] {
        let mut daemon = Daemon::start();
        let session = session(&mut daemon);
        let mut reports = 12_010;
        for topic in ["three", "four", "five"] {
            daemon.append(&session, &[user(&text_of(2_000, topic))]);
            reports += 2_000;
            let given = context(&mut daemon, &session, "anthropic");
            // The user types while the model runs.
            daemon.append(&session, &[user(&text_of(6_000, "more"))]);
            let answered = append(&mut daemon, &session, &reported(reports), named.then_some(&given["contextId"]));
            let found = answered["usage"]["contextTokens"].as_u64().expect("a size");
            reports += 6_000;
            assert!(found.abs_diff(reports) < 400, "named {named}: {found} instead of {reports}");
            assert_eq!(answered["usage"]["source"], "provider", "named {named}: {answered}");
            reports += 10;
        }
        let before = size(&mut daemon, &session);
        let path = daemon.ok("session/status", json!({"sessionId": session}))["session"]["path"].clone();
        let mut daemon = daemon.restarted();
        daemon.ok("session/load", json!({"path": path}));
        assert_eq!(size(&mut daemon, &session), before, "named {named}");
    }
}

#[test]
fn a_message_that_the_host_sends_along_is_a_part_of_the_reported_request() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    // The host reads the context once, and keeps the conversation by itself.
    context(&mut daemon, &session, "anthropic");
    let mut reports = 12_010;
    for topic in ["three", "four", "five"] {
        daemon.append(&session, &[user(&text_of(6_000, topic))]);
        reports += 6_000;
        let answered = append(&mut daemon, &session, &reported(reports), None);
        let found = answered["usage"]["contextTokens"].as_u64().expect("a size");
        assert!(found.abs_diff(reports) < 400, "{found} instead of {reports}");
        assert_eq!(answered["usage"]["source"], "provider", "{answered}");
        reports += 10;
    }
    let entries = daemon.ok("session/entries", json!({"sessionId": session}));
    let markers = entries["entries"].as_array().expect("entries").iter();
    assert!(markers.filter(|entry| entry["customType"] == "abridged.report").count() <= 1, "one for each context");
}

#[test]
fn messages_of_the_same_append_are_a_part_of_the_request_of_its_last_answer() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    let given = context(&mut daemon, &session, "anthropic");
    let params = json!({"sessionId": session, "contextId": given["contextId"],
        "messages": [user(&text_of(6_000, "three")), reported(18_010)]});
    let answered = daemon.ok("session/append", params);
    assert_eq!(answered["usage"]["source"], "provider", "{answered}");
    assert!(answered["usage"]["contextTokens"].as_u64().expect("a size").abs_diff(18_010) < 100, "{answered}");
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

/// A refusal of a request of 24,900 tokens by this model.
fn refused_by(id: &str) -> Value {
    let mut answer = failed("prompt is too long: 24900 tokens > 20000 maximum");
    (answer["provider"], answer["model"]) = (json!("p"), json!(id));
    answer
}

/// Reports a refusal, and returns the action of its recovery after its end.
fn action(daemon: &mut Daemon, session: &str, refusal: &Value) -> Value {
    daemon.events.clear();
    let answered = append(daemon, session, refusal, None);
    assert_eq!(answered["next"]["type"], "maintenance", "{answered}");
    let start = daemon.until("recovery_start");
    daemon.until("recovery_end");
    start["params"]["event"]["action"].clone()
}

#[test]
fn a_late_refusal_of_another_model_compacts_nothing_and_one_that_comes_again_does() {
    for other in ["small", "somebody-else"] {
        let mut daemon = Daemon::start();
        let session = session(&mut daemon);
        daemon.append(&session, &[user(&text_of(6_000, "three"))]);
        context(&mut daemon, &session, "anthropic");
        assert_eq!(action(&mut daemon, &session, &refused_by(other)), "retry", "{other}");
        assert_eq!(daemon.count("compaction_start"), 0, "{other}");
        context(&mut daemon, &session, "anthropic");
        assert_eq!(action(&mut daemon, &session, &refused_by(other)), "compact", "{other}");
    }
}

#[test]
fn a_good_answer_lets_a_late_refusal_of_another_model_be_late_again() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    for topic in ["three", "four"] {
        daemon.append(&session, &[user(&text_of(6_000, topic))]);
        assert_eq!(action(&mut daemon, &session, &refused_by("small")), "retry", "{topic}");
        daemon.append(&session, &[assistant("Done.")]);
    }
}

/// The actions of refusals that are reported one after another, with a restart after each, until one recovery fails.
fn actions(mut refusal: impl FnMut(&mut Daemon, &str, usize) -> (Value, Option<Value>)) -> Vec<String> {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    daemon.append(&session, &[user(&text_of(6_000, "three"))]);
    let mut actions = Vec::new();
    for at in 0..12 {
        let (refusal, given) = refusal(&mut daemon, &session, at);
        daemon.events.clear();
        append(&mut daemon, &session, &refusal, given.as_ref());
        let start = daemon.until("recovery_start");
        let end = daemon.until("recovery_end");
        actions.push(start["params"]["event"]["action"].as_str().expect("an action").to_owned());
        if end["params"]["event"]["willRetry"] == false {
            break;
        }
        let path = daemon.ok("session/status", json!({"sessionId": session}))["session"]["path"].take();
        daemon = daemon.restarted();
        daemon.ok("session/load", json!({"path": path}));
    }
    actions
}

#[test]
fn refusals_of_ever_new_models_and_of_an_old_context_repeat_a_turn_three_times() {
    let changing = actions(|daemon, session, at| {
        context(daemon, session, "anthropic");
        (refused_by(&format!("deployment-{at}")), None)
    });
    let mut old = None;
    let cached = actions(|daemon, session, _| {
        let given = context(daemon, session, "anthropic")["contextId"].clone();
        (failed("prompt is too long: 24900 tokens > 20000 maximum"), Some(old.get_or_insert(given).clone()))
    });
    assert_eq!(changing[..4], ["retry", "retry", "retry", "compact"], "{changing:?}");
    assert_eq!(cached[..5], ["compact", "retry", "retry", "retry", "compact"], "{cached:?}");
    assert!(changing.len() < 12 && cached.len() < 12, "{changing:?} {cached:?}");
}

/// A host that reports no counts appends whole answers to contexts that it was handed out. A proxy refuses one of its requests
/// for the limit of another model.
#[test]
fn a_limit_below_a_context_that_the_model_answered_teaches_nothing() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    daemon.append(&session, &[user(&text_of(6_000, "three"))]);
    let given = context(&mut daemon, &session, "anthropic")["contextId"].clone();
    append(&mut daemon, &session, &assistant("Done."), Some(&given));
    daemon.append(&session, &[user("Go on.")]);
    let window = daemon.ok("session/usage", json!({"sessionId": session}))["contextWindow"].clone();
    append(&mut daemon, &session, &failed("prompt is too long: 24900 tokens > 3000 maximum"), None);
    daemon.until("recovery_end");
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    assert_eq!((&usage["contextWindow"], &usage["windowSource"] == "learned"), (&window, false), "{usage}");
    context(&mut daemon, &session, "anthropic");
}
