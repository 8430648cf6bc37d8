//! `session/fork`: a path as a session of its own.

use crate::support::*;
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

/// The lines of a session file without its header.
fn lines(path: &str) -> Vec<String> {
    fs::read_to_string(path).expect("a file").lines().skip(1).map(str::to_owned).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// The contents of a context's messages.
fn contents(daemon: &mut Daemon, session: &Value) -> Vec<String> {
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let messages = context["messages"].as_array().expect("messages").iter();
    messages
        .map(|message| match &message["content"] {
            Value::String(text) => text.clone(),
            blocks => blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect(),
        })
        .collect()
}

fn fork(daemon: &mut Daemon, params: Value) -> Value {
    daemon.ok("session/fork", params)
}

/// The survey's session: u1, a1, u2, a2, a compaction that keeps two messages, u3, a3, u4, a4.
fn compacted_in_the_middle(home: &Home) -> PathBuf {
    let mut parent = Value::Null;
    let mut lines = vec![header("picture")];
    for id in ["u1", "a1", "u2", "a2", "c", "u3", "a3", "u4", "a4"] {
        let mut line =
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z"});
        match id.split_at(1) {
            ("u", _) => line["message"] = user(id),
            ("a", _) => line["message"] = assistant(id),
            _ => {
                line["type"] = "compaction".into();
                line["summary"] = "They met.".into();
                line["firstKeptEntryId"] = "u2".into();
                line["tokensBefore"] = 100.into();
            }
        }
        parent = id.into();
        lines.push(line);
    }
    home.session("picture.jsonl", &lines)
}

#[test]
fn a_fork_behind_a_compaction_has_it_and_one_before_it_has_none() {
    let mut daemon = Daemon::start();
    let path = compacted_in_the_middle(&daemon.home);
    let session = daemon.load(&path);
    let source = lines(&path.display().to_string());

    let answer = fork(&mut daemon, json!({"sessionId": session, "entryId": "u3"}));
    assert_eq!(answer["editorText"], "u3");
    let forked = &answer["session"];
    assert_eq!(lines(text(&forked["path"])), source[..5], "u1, a1, u2, a2 and the compaction");
    assert_eq!((&forked["leafEntryId"], &forked["parentSession"]), (&json!("c"), &json!(path)));
    let seen = contents(&mut daemon, &forked["sessionId"]);
    assert!(seen.len() == 3 && seen[0].contains("They met.") && seen[1..] == ["u2", "a2"], "{seen:#?}");

    let answer = fork(&mut daemon, json!({"sessionId": session, "entryId": "u2"}));
    assert_eq!(answer["editorText"], "u2");
    let forked = &answer["session"];
    assert_eq!(lines(text(&forked["path"])), source[..2], "u1 and a1");
    assert_eq!(contents(&mut daemon, &forked["sessionId"]), ["u1", "a1"], "the compaction is undone");

    assert_eq!(lines(&path.display().to_string()), source, "the session stays as it is");
}
