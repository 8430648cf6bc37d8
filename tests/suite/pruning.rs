//! Pruning that pays: superseded reads first, and no broken prompt cache for less than the pruning saves.

use crate::support::{Daemon, Home, assistant, calls, result, session_of, text_of, user};
use serde_json::{Value, json};

/// A session with this threshold, whose model has these prices.
fn session(daemon: &mut Daemon, threshold: u64, cost: &Value) -> String {
    let model = json!({"provider": "p", "id": "m", "contextWindow": 200_000, "cost": cost});
    let settings =
        json!({"tokens": {"estimator": "chars"}, "models": [model], "compaction": {"thresholdTokens": threshold}});
    daemon.new_session(json!({"cwd": "/project", "model": "p/m", "settings": settings}))
}

fn of_bash(id: &str, tokens: usize) -> [Value; 2] {
    let mut shown = result(id, &text_of(tokens, id));
    shown["toolName"] = "bash".into();
    [calls(&[id]), shown]
}

/// Reads a file with a protected tool.
fn of_read(id: &str, path: &str, tokens: usize) -> [Value; 2] {
    let mut call = calls(&[id]);
    call["content"][0]["name"] = "read".into();
    call["content"][0]["arguments"] = json!({ "path": path });
    let mut shown = result(id, &text_of(tokens, id));
    shown["toolName"] = "read".into();
    [call, shown]
}

/// An answer of the session's model that reports this much cached input.
fn reporting(cached: u64, input: u64) -> Value {
    let mut answer = assistant("Read.");
    (answer["provider"], answer["model"]) = ("p".into(), "m".into());
    answer["usage"] = json!({"input": input, "output": 10, "cacheRead": cached, "cacheWrite": 0,
        "totalTokens": input + cached + 10});
    answer
}

/// 22,000 tokens of old results before 110,000 that stay.
fn little_before_much() -> Vec<Value> {
    let mut messages = vec![user("Read all.")];
    messages.extend(of_bash("c0", 11_000));
    messages.extend(of_bash("c1", 11_000));
    messages.push(user(&text_of(65_000, "pasted")));
    (2..6).for_each(|at| messages.extend(of_bash(&format!("c{at}"), 11_000)));
    messages
}

fn why(daemon: &mut Daemon, session: &str) -> String {
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    usage["why"].as_str().expect("a text").to_owned()
}

#[test]
fn a_warm_cache_is_not_broken_for_less_than_that_saves() {
    let mut daemon = Daemon::start();
    // A price list without cache prices.
    for (cost, says) in [
        (Value::Null, "no prices are known; assumed are 0.10"),
        (json!({"input": 3, "output": 15}), "prices of the cache are assumed: 0.10"),
    ] {
        let session = session(&mut daemon, 120_000, &cost);
        let mut messages = little_before_much();
        messages.push(reporting(120_000, 12_000));
        let appended = daemon.append(&session, &messages);
        assert_eq!(appended["next"]["reason"], "threshold", "{}", appended["usage"]);
        let why = why(&mut daemon, &session);
        assert!(why.contains("No results were pruned: it saves") && why.contains("the prompt cache is warm"), "{why}");
        assert!(why.contains(says) && why.contains('$') == cost.is_object(), "{why}");
        daemon.until("settled");
        assert_eq!(daemon.count("pruned"), 0);
        daemon.events.clear();
    }
}

#[test]
fn a_cache_that_is_cold_costs_nothing() {
    // The same results with answers that report no cached tokens.
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 148_000, &Value::Null);
    let mut messages = little_before_much();
    messages.push(reporting(0, 160_000));
    assert_eq!(daemon.append(&session, &messages)["next"], json!({"type": "none"}));
    let event = daemon.until("pruned")["params"]["event"].clone();
    let reason = event["why"].as_str().expect("a text");
    assert!(reason.contains("breaks no prompt cache: no answer reports cached tokens"), "{reason}");
    assert_eq!(event["entryIds"].as_array().map(Vec::len), Some(2), "{event:#}");
    let said = why(&mut daemon, &session);
    assert!(said.contains("nothing to do") && said.contains("Old results were pruned: it saves"), "{said}");
    assert_eq!(daemon.count("compaction_start"), 0);
}

#[test]
fn a_session_that_is_resumed_has_a_cold_cache() {
    let home = Home::new();
    let model = json!({"provider": "p", "id": "m", "contextWindow": 200_000});
    let compaction = json!({"thresholdTokens": 120_000});
    let settings = json!({"tokens": {"estimator": "chars"}, "models": [model], "compaction": compaction});
    home.settings(&settings.to_string());
    let mut messages = little_before_much();
    // A file from 1970: the provider forgot its prompt long ago.
    messages.push(reporting(107_000, 12_000));
    let path = session_of(&home, "resumed", &messages);
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    assert_eq!(daemon.append(&session, &[user(&text_of(2_000, "more"))])["next"], json!({"type": "none"}));
    let event = daemon.until("pruned")["params"]["event"].clone();
    let reason = event["why"].as_str().expect("a text");
    assert!(reason.contains("s old, and a prompt is cached for 300 s"), "{reason}");
}

#[test]
fn superseded_reads_leave_first_and_alone_where_that_is_enough() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 90_000, &Value::Null);
    let mut messages = vec![user("Read all.")];
    (0..3).for_each(|at| messages.extend(of_bash(&format!("c{at}"), 11_000)));
    // The newest read is within the newest 40,000 tokens, and so is the one before it.
    (3..7).for_each(|at| messages.extend(of_read(&format!("c{at}"), "src/main.rs", 15_000)));
    let appended = daemon.append(&session, &messages);
    assert_eq!(appended["next"], json!({"type": "none"}), "{}", appended["usage"]);
    let event = daemon.until("pruned")["params"]["event"].clone();
    assert!(event["why"].as_str().expect("a text").contains("superseded reads of files: 3;"), "{event:#}");
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let texts: Vec<String> = context["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter(|message| message["role"] == "toolResult")
        .map(|message| message["content"].to_string())
        .collect();
    let older = |text: &String| text.contains("[Older read of this file left out, a newer one follows - ");
    assert_eq!(texts.iter().map(older).collect::<Vec<_>>(), [false, false, false, true, true, true, false]);
    assert!(texts.iter().all(|text| !text.contains("[Output truncated")), "the old results stay");
    let id = event["entryIds"][0].as_str().expect("an id");
    let entry = daemon.ok("session/entry", json!({"sessionId": session, "entryId": id}));
    assert!(entry.to_string().len() > 15_000, "its text is in the file");
}

#[test]
fn a_pruning_that_a_client_asks_for_is_made_and_says_what_it_saves() {
    let mut daemon = Daemon::start();
    let session =
        session(&mut daemon, 190_000, &json!({"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}));
    let mut messages = little_before_much();
    messages.push(reporting(120_000, 12_000));
    daemon.append(&session, &messages);
    let answer = daemon.ok("session/prune", json!({"sessionId": session}));
    assert_eq!(answer["entryIds"].as_array().map(Vec::len), Some(2), "{answer:#}");
    let event = daemon.until("pruned")["params"]["event"].clone();
    let reason = event["why"].as_str().expect("a text");
    assert!(reason.starts_with("session/prune was called; it saves ") && reason.contains("costs $"), "{reason}");
}
