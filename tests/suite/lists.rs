//! The values that a list, a tree or a search shows without a second request.

use crate::support::{Daemon, assistant, header, text_of, turns, user};
use serde_json::{Value, json};

fn listed(daemon: &mut Daemon, session: &str) -> Value {
    let answer = daemon.ok("session/list", json!({}));
    let sessions = answer["sessions"].as_array().expect("sessions");
    sessions.iter().find(|it| it["sessionId"] == session).unwrap_or_else(|| panic!("{session} in {answer}")).clone()
}

#[test]
fn a_list_has_the_sizes_of_open_sessions_and_keeps_them() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project", "contextWindow": 20_000}));
    // More than a list reads of a file.
    let long = text_of(30_000, "long");
    daemon.append(&session, &[user(&long), assistant("Yes.")]);
    let status = daemon.ok("session/status", json!({"sessionId": session}))["session"].take();
    let row = listed(&mut daemon, &session);
    assert_eq!(row["createdAt"], status["createdAt"]);
    assert_eq!(row["entryCount"], status["entryCount"]);
    assert_eq!(row["percent"], status["usage"]["percent"]);
    assert!(row["percent"].as_f64().is_some_and(|percent| percent > 10.0), "{row}");
    daemon.ok("session/close", json!({"sessionId": session}));
    let closed = listed(&mut daemon, &session);
    assert_eq!(closed["status"], Value::Null);
    assert_eq!((&closed["percent"], &closed["entryCount"]), (&row["percent"], &row["entryCount"]));
    let mut daemon = daemon.restarted();
    let unknown = listed(&mut daemon, &session);
    assert_eq!((&unknown["percent"], &unknown["entryCount"]), (&Value::Null, &Value::Null), "nothing was opened");
    assert_eq!(unknown["createdAt"], row["createdAt"]);
}

#[test]
fn a_list_counts_the_entries_of_small_files_and_names_parents_by_their_ids() {
    let mut daemon = Daemon::start();
    let parent = daemon.new_session(json!({"cwd": "/project", "title": "The parent"}));
    daemon.append(&parent, &[user("One."), assistant("Two."), user("Three.")]);
    let fork =
        daemon.ok("session/fork", json!({"sessionId": parent, "entryId": Value::Null}))["session"]["sessionId"].take();
    let fork = fork.as_str().expect("an id").to_owned();
    let counts = [&parent, &fork].map(|id| listed(&mut daemon, id)["entryCount"].clone());
    let mut daemon = daemon.restarted();
    assert_eq!([&parent, &fork].map(|id| listed(&mut daemon, id)["entryCount"].clone()), counts);
    assert_eq!(listed(&mut daemon, &fork)["parentSessionId"], parent.as_str());
    assert_eq!(listed(&mut daemon, &parent)["parentSessionId"], Value::Null);
}

/// A session with a branch, a compaction that was undone and one that holds.
fn branched(daemon: &mut Daemon) -> String {
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &turns(6));
    let first = daemon.compact(&session, 10);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    daemon.append(&session, &[user("The wombat goes on."), assistant("It does.")]);
    let second = daemon.compact(&session, 10);
    assert_ne!(first, second);
    session
}

#[test]
fn nodes_of_a_tree_say_what_is_active_hidden_and_undone() {
    let mut daemon = Daemon::start();
    let session = branched(&mut daemon);
    let tree = daemon.ok("session/tree", json!({"sessionId": session}));
    let nodes = tree["nodes"].as_array().expect("nodes");
    let compactions: Vec<&Value> = nodes.iter().filter(|node| node["type"] == "compaction").collect();
    assert_eq!(compactions.len(), 2);
    let flags = |node: &Value| ["active", "hidden", "undone"].map(|key| node[key].as_bool().expect("a flag"));
    assert_eq!(flags(compactions[0]), [false, false, true], "the undone one left the path");
    assert_eq!(flags(compactions[1]), [true, false, false]);
    for node in nodes {
        assert!(node["preview"].as_str().is_some_and(|text| !text.is_empty()), "{node}");
        let is_message = node["type"] == "message";
        assert!(!is_message || node["tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{node}");
        assert_eq!(node["hidden"] == true, !is_message && node["type"] != "compaction", "{node}");
    }
    let marker = nodes.iter().find(|node| node["customType"] == "abridged.undo").expect("the marker");
    assert_eq!(flags(marker), [true, true, false]);
}

#[test]
fn pages_of_a_search_miss_nothing_and_say_where_a_match_stands() {
    let mut daemon = Daemon::start();
    let entry = |id: &str, parent: Option<&str>, text: &str| {
        json!({"type": "message", "id": id, "parentId": parent,
        "timestamp": "2026-01-01T00:00:00.000Z", "message": user(text)})
    };
    let lines = [
        header("searched"),
        entry("a", None, "a wombat"),
        entry("b", Some("a"), "a wombat on a branch"),
        entry("c", Some("a"), "nothing"),
        entry("d", Some("c"), "WOMBAT again"),
        entry("e", Some("d"), "wombat, wombat"),
    ];
    let path = daemon.home.session("searched.jsonl", &lines);
    // Two entries on one line: a write of another program lost its newline.
    let text = std::fs::read_to_string(&path).expect("a file");
    let at = text.trim_end().rfind('\n').expect("lines");
    std::fs::write(&path, format!("{}{}", &text[..at], &text[at + 1..])).expect("a file");
    let in_file = daemon.load(&path);
    let in_memory = daemon.new_session(json!({"cwd": "/project", "ephemeral": true}));
    daemon.append(&in_memory, &[user("wombat"), user("no"), user("wombats"), user("a wombat")]);
    for (session, expected) in [(&in_file, 4), (&in_memory, 3)] {
        let all = daemon.ok("session/search", json!({"sessionId": session, "query": "wombat"}));
        assert_eq!((all["matches"].as_array().map(Vec::len), &all["nextCursor"]), (Some(expected), &Value::Null));
        for limit in 1..=expected {
            let mut seen = Vec::new();
            let mut cursor = Value::Null;
            loop {
                let params = json!({"sessionId": session, "query": "wombat", "limit": limit, "cursor": cursor});
                let page = daemon.ok("session/search", params);
                let matches = page["matches"].as_array().expect("matches");
                assert!(matches.len() <= limit);
                seen.extend(matches.clone());
                cursor = page["nextCursor"].clone();
                if cursor.is_null() {
                    break;
                }
            }
            assert_eq!(json!(seen), all["matches"], "{limit} a page");
        }
    }
    let found = daemon.ok("session/search", json!({"sessionId": in_file, "query": "wombat"}))["matches"].take();
    let where_it_stands = |at: usize| (&found[at]["entryId"], &found[at]["active"], &found[at]["role"]);
    assert_eq!(where_it_stands(0), (&json!("e"), &json!(true), &json!("user")));
    assert_eq!(where_it_stands(2), (&json!("b"), &json!(false), &json!("user")));
    assert_eq!(found[0]["timestamp"], "2026-01-01T00:00:00.000Z");
    let error = daemon.err("session/search", json!({"sessionId": in_file, "query": "wombat", "cursor": "x"}));
    assert_eq!(error["data"]["path"], "cursor");
}

#[test]
fn usage_says_whether_there_is_something_to_undo_and_why_nothing_happens() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    assert_eq!((&usage["canUndo"], &usage["code"]), (&json!(false), &json!("below")));
    let error = daemon.err("session/compact", json!({"sessionId": session, "wait": true}));
    assert_eq!(error["data"]["reason"], "too_short");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("no message yet")), "{error}");
    daemon.append(&session, &turns(6));
    daemon.compact(&session, 10);
    assert_eq!(daemon.ok("session/usage", json!({"sessionId": session}))["canUndo"], true);
    assert_eq!(
        daemon.err("session/compact", json!({"sessionId": session, "wait": true}))["data"]["reason"],
        "already_compacted"
    );
    let undone = daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    assert_eq!(undone["usage"]["canUndo"], false);
    daemon.ok("session/reset", json!({"sessionId": session}));
    assert_eq!(daemon.ok("session/usage", json!({"sessionId": session}))["canUndo"], true);
    daemon.append(&session, &[user("And on.")]);
    assert_eq!(daemon.ok("session/usage", json!({"sessionId": session}))["canUndo"], false);
    daemon.err("session/undo_compaction", json!({"sessionId": session}));
}
