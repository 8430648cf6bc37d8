//! The whole of a session: its tree, searches, pages, exports, deletion.

use crate::support::*;
use serde_json::{Value, json};
use std::fs;

/// A session with a branch: e0 … e7, then from e3 again.
fn branched(daemon: &mut Daemon) -> String {
    let path = session_of(&daemon.home, "branched", &turns(2));
    let session = daemon.load(&path);
    let other =
        json!({"sessionId": session, "messages": [user("Another way, with a Needle in it.")], "parentEntryId": "e3"});
    daemon.ok("session/append", other);
    session
}

#[test]
fn a_tree_has_every_entry_with_its_name() {
    let mut daemon = Daemon::start();
    let session = branched(&mut daemon);
    daemon.ok("session/label", json!({"sessionId": session, "targetEntryId": "e3", "label": "the fork"}));
    let tree = daemon.ok("session/tree", json!({"sessionId": session}));
    let nodes = tree["nodes"].as_array().expect("nodes");
    assert_eq!(nodes.len(), 10);
    assert_eq!(nodes[3]["label"], "the fork");
    assert_eq!((nodes[3]["role"].as_str(), nodes[3]["type"].as_str()), (Some("assistant"), Some("message")));
    assert!(nodes[3]["preview"].as_str().is_some_and(|preview| preview.starts_with("Looked at part_0")));
    assert_eq!(nodes[8]["parentId"], "e3");
    assert_eq!(tree["nextCursor"], Value::Null);
    let mut seen = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = daemon.ok("session/tree", json!({"sessionId": session, "limit": 4, "cursor": cursor}));
        seen.extend(page["nodes"].as_array().expect("nodes").clone());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(&seen, nodes);
    daemon.ok("session/label", json!({"sessionId": session, "targetEntryId": "e3", "label": null}));
    let tree = daemon.ok("session/tree", json!({"sessionId": session}));
    assert_eq!(tree["nodes"][3]["label"], Value::Null);
}

#[test]
fn pages_of_entries_miss_nothing_and_repeat_nothing() {
    let mut daemon = Daemon::start();
    let session = branched(&mut daemon);
    for (branch, expected) in [("all", 9), ("active", 5)] {
        let mut seen: Vec<String> = Vec::new();
        let mut since = Value::Null;
        loop {
            let page = daemon
                .ok("session/entries", json!({"sessionId": session, "branch": branch, "limit": 2, "since": since}));
            let ids = page["entries"].as_array().expect("entries").iter();
            seen.extend(ids.map(|entry| entry["id"].as_str().expect("an id").to_owned()));
            since = page["nextCursor"].clone();
            if since.is_null() {
                break;
            }
        }
        assert_eq!(seen.len(), expected, "{branch}: {seen:?}");
        for limit in 1..=expected {
            let mut back: Vec<String> = Vec::new();
            let mut before = json!("leaf");
            while !before.is_null() {
                let params = json!({"sessionId": session, "branch": branch, "limit": limit, "before": before});
                let page = daemon.ok("session/entries", params);
                let ids = page["entries"].as_array().expect("entries").iter();
                let ids = ids.map(|entry| entry["id"].as_str().expect("an id").to_owned());
                back = ids.chain(back).collect();
                before = page["nextCursor"].clone();
            }
            assert_eq!(back, seen, "{branch}, {limit} a page");
        }
    }
    let ids = |page: &Value| {
        page["entries"].as_array().expect("entries").iter().map(|it| it["id"].clone()).collect::<Vec<_>>()
    };
    let page = daemon.ok("session/entries", json!({"sessionId": session, "before": "e6"}));
    let path = daemon.ok("session/entries", json!({"sessionId": session}));
    assert!(!ids(&page).is_empty() && ids(&path).starts_with(&ids(&page)), "a cursor on a branch that was left");
    for (params, path) in [
        (json!({"sessionId": session, "before": "no"}), "not_found"),
        (json!({"sessionId": session, "before": "e1", "since": "e1"}), "invalid_params"),
    ] {
        assert_eq!(daemon.err("session/entries", params)["data"]["code"], path);
    }
    let after = daemon.ok("session/entries", json!({"sessionId": session, "since": "e6"}));
    assert_eq!(after["entries"].as_array().map(Vec::len), Some(1), "a cursor on a branch that was left");
}

/// All pages of one item each, as the timestamps of their items. Entries of one id differ in their time.
fn one_by_one(daemon: &mut Daemon, method: &str, items: &str, cursor: &str, mut params: Value) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.len() < 100 {
        let page = daemon.ok(method, params.clone());
        let times = page[items].as_array().expect("items").iter().map(|item| item["timestamp"].as_str());
        seen.extend(times.map(|time| time.expect("a time").to_owned()));
        if page["nextCursor"].is_null() {
            break;
        }
        params[cursor] = page["nextCursor"].clone();
    }
    seen
}

#[test]
fn pages_miss_nothing_where_several_entries_have_one_id() {
    let mut daemon = Daemon::start();
    let header = json!({"type": "session", "version": 3, "id": "twins", "timestamp": "t", "cwd": "/p"});
    let entry = |time: usize, id: &str, parent: Option<&str>| json!({"type": "message", "id": id, "parentId": parent, "timestamp": time.to_string(), "message": user(id)});
    let mut compaction = json!({"type": "compaction", "id": "d", "parentId": "c", "timestamp": "6", "summary": "s", "firstKeptEntryId": "d", "tokensBefore": 1});
    let lines = vec![
        header,
        entry(0, "a", None),
        entry(1, "b", Some("a")),
        entry(2, "b", Some("b")),
        entry(3, "c", Some("b")),
        // Off the path, with an id of the path.
        entry(4, "b", Some("a")),
        entry(5, "c", Some("c")),
        compaction.clone(),
        entry(7, "e", Some("d")),
    ];
    let all: Vec<String> = (0..8).map(|time| time.to_string()).collect();
    let active = ["0", "1", "2", "3", "5", "6", "7"];
    let path = daemon.home.session("twins.jsonl", &lines);
    let session = daemon.load(&path);
    let entries = json!({"sessionId": session, "branch": "all", "limit": 1});
    assert_eq!(one_by_one(&mut daemon, "session/entries", "entries", "since", entries), all);
    let entries = json!({"sessionId": session, "branch": "active", "limit": 1});
    assert_eq!(one_by_one(&mut daemon, "session/entries", "entries", "since", entries), active);
    for (branch, expected) in [("all", &all[..]), ("active", &active.map(str::to_owned)[..])] {
        let entries = json!({"sessionId": session, "branch": branch, "limit": 1, "before": "leaf"});
        let mut back = one_by_one(&mut daemon, "session/entries", "entries", "before", entries);
        back.reverse();
        assert_eq!(back, expected, "{branch}");
    }
    let tree = json!({"sessionId": session, "limit": 1});
    assert_eq!(one_by_one(&mut daemon, "session/tree", "nodes", "cursor", tree), all);

    // The whole path is in memory.
    compaction["type"] = json!("custom");
    let path = daemon.home.session(
        "whole.jsonl",
        &[
            &[json!({"type": "session", "version": 3, "id": "whole", "timestamp": "t", "cwd": "/p"})],
            &lines[1..7],
            &[compaction, lines[8].clone()],
        ]
        .concat(),
    );
    let session = daemon.load(&path);
    let entries = json!({"sessionId": session, "limit": 1});
    assert_eq!(one_by_one(&mut daemon, "session/entries", "entries", "since", entries), active);
    let entries = json!({"sessionId": session, "limit": 1, "before": "leaf"});
    let mut back = one_by_one(&mut daemon, "session/entries", "entries", "before", entries);
    back.reverse();
    assert_eq!(back, active);
    // The id of the third entry on the path is also that of a later entry elsewhere.
    let page = daemon.ok("session/entries", json!({"sessionId": session, "limit": 3}));
    let rest = json!({"sessionId": session, "branch": "all", "since": page["nextCursor"]});
    assert_eq!(one_by_one(&mut daemon, "session/entries", "entries", "since", rest), ["3", "4", "5", "6", "7"]);
    let unknown = daemon.err("session/entries", json!({"sessionId": session, "since": "b@1"}));
    assert_eq!(unknown["message"].as_str().map(|text| text.contains("b@1")), Some(true), "{unknown}");
}

#[test]
fn a_search_finds_words_on_every_branch_and_behind_every_compaction() {
    let mut daemon = Daemon::start();
    let session = branched(&mut daemon);
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 1, "wait": true}));
    let found = daemon.ok("session/search", json!({"sessionId": session, "query": "NEEDLE in"}));
    let matches = found["matches"].as_array().expect("matches");
    assert!(matches.iter().any(|it| it["snippet"].as_str().is_some_and(|text| text.contains("with a Needle in it"))));
    let old = daemon.ok("session/search", json!({"sessionId": session, "query": "part_1_value", "limit": 1}));
    assert_eq!(old["matches"][0]["entryId"], "e6");
    let ids = daemon.ok("session/search", json!({"sessionId": session, "query": "toolResult"}));
    assert_eq!(ids["matches"], json!([]), "what nobody said is not found");
    let error = daemon.err("session/search", json!({"sessionId": session, "query": " "}));
    assert_eq!(error["data"]["path"], "query");
    let ephemeral = daemon.ok("session/new", json!({"cwd": "/tmp", "ephemeral": true}))["session"]["sessionId"].clone();
    daemon.ok("session/append", json!({"sessionId": ephemeral, "messages": [user("kept in memory")]}));
    let found = daemon.ok("session/search", json!({"sessionId": ephemeral, "query": "in memory"}));
    assert_eq!(found["matches"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_export_is_a_session_that_opens_or_a_text_that_reads() {
    // The frame of a summary names the file, and that of the copy is another one.
    let start = || {
        let home = Home::new();
        home.settings(r#"{"compaction": {"transcriptHint": false}}"#);
        Daemon::at(home)
    };
    let mut daemon = start();
    let session = branched(&mut daemon);
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 1, "wait": true}));
    let context = daemon.ok("session/context", json!({"sessionId": session}))["messages"].clone();
    let file = daemon.home.path("export.jsonl");
    let answer = daemon.ok("session/export", json!({"sessionId": session, "format": "jsonl", "path": file}));
    assert_eq!(answer["path"], json!(file));
    let mut other = start();
    let id = other.load(&file);
    assert_eq!(other.ok("session/context", json!({"sessionId": id}))["messages"], context);
    let error = daemon.err("session/export", json!({"sessionId": session, "format": "jsonl", "path": file}));
    assert_eq!(error["data"]["code"], "storage_error", "nothing is overwritten");
    let text = daemon.home.path("export.md");
    daemon.ok("session/export", json!({"sessionId": session, "format": "markdown", "path": text}));
    let text = fs::read_to_string(text).expect("a file");
    assert!(text.contains("## User\n\nRequest 0") && text.contains("Another way") && text.contains("**Calls read**"));
    assert!(!text.contains("Request 1"), "the other branch is not in it");
    let error = daemon.err("session/export", json!({"sessionId": session, "format": "pdf", "path": "x"}));
    assert_eq!(error["data"]["path"], "format");
}

#[test]
fn a_deleted_session_is_gone_and_one_of_somebody_else_is_not() {
    let mut daemon = Daemon::start();
    let new = daemon.ok("session/new", json!({"cwd": "/tmp"}))["session"].clone();
    let file = std::path::PathBuf::from(new["path"].as_str().expect("a path"));
    daemon.ok("session/delete", json!({"sessionId": new["sessionId"]}));
    assert!(!file.exists());
    assert_eq!(fs::read_dir(file.parent().expect("a folder")).expect("a folder").count(), 0, "no litter");
    let error = daemon.err("session/status", json!({"sessionId": new["sessionId"]}));
    assert_eq!(error["data"]["code"], "not_found");
    let error = daemon.err("session/delete", json!({"sessionId": new["sessionId"]}));
    assert_eq!(error["data"]["code"], "not_found");

    // A file that only resembles an export stays, and earlier requests are done before.
    let path = session_of(&daemon.home, "among", &turns(1));
    let session = daemon.load(&path);
    for name in ["among.jsonl.newsletter", "among.jsonl.v10", "among.jsonl.torn.3"] {
        fs::write(daemon.home.path(name), "x").expect("a file");
    }
    let append = daemon.begin("session/append", json!({"sessionId": session, "messages": [user("last words")]}));
    let delete = daemon.begin("session/delete", json!({"sessionId": session}));
    let load = daemon.begin("session/load", json!({"sessionId": session}));
    assert!(daemon.answer(append).is_ok() && daemon.answer(delete).is_ok());
    assert_eq!(daemon.answer(load).expect_err("it is gone")["data"]["code"], "not_found");
    assert!(!path.exists() && !daemon.home.path("among.jsonl.torn.3").exists());
    assert!(daemon.home.path("among.jsonl.newsletter").exists() && daemon.home.path("among.jsonl.v10").exists());

    let mine = daemon.ok("session/new", json!({"cwd": "/tmp"}))["session"].clone();
    let mut command = daemon.home.command();
    command.env("ABRIDGED_LOG", "error");
    let mut other = Daemon::of(Home::new(), command);
    other.ok("initialize", json!({}));
    let error = other.err("session/delete", json!({"sessionId": mine["sessionId"]}));
    assert_eq!(
        (error["data"]["code"].as_str(), error["data"]["pid"].as_u64()),
        (Some("locked"), Some(u64::from(daemon.pid())))
    );
    daemon.ok("session/close", json!({"sessionId": mine["sessionId"]}));
    other.ok("session/delete", json!({"sessionId": mine["sessionId"]}));
    let ephemeral = daemon.ok("session/new", json!({"cwd": "/tmp", "ephemeral": true}))["session"]["sessionId"].clone();
    daemon.ok("session/delete", json!({"sessionId": ephemeral}));
}

#[test]
fn nothing_waits_in_a_queue() {
    let mut daemon = Daemon::start();
    let session = branched(&mut daemon);
    let queue = daemon.ok("session/clear_queue", json!({"sessionId": session}));
    assert_eq!(queue, json!({"steering": [], "followUp": []}));
}
