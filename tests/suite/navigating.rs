//! `session/navigate`: the tree of a session, and the leaf that moves in it.

use crate::support::*;
use serde_json::{Value, json};
use std::path::PathBuf;

fn of(session: &str) -> Value {
    json!({"sessionId": session})
}

fn navigate(daemon: &mut Daemon, session: &str, target: &Value, more: Value) -> Result<Value, Value> {
    let mut params = json!({"sessionId": session, "targetEntryId": target, "wait": true});
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    daemon.call("session/navigate", params)
}

fn moved(daemon: &mut Daemon, session: &str, target: &Value, more: Value) -> Value {
    navigate(daemon, session, target, more).unwrap_or_else(|error| panic!("{error:#}"))
}

fn path_of(daemon: &mut Daemon, session: &str) -> PathBuf {
    daemon.ok("session/status", of(session))["session"]["path"].as_str().expect("a path").into()
}

fn leaf_of(daemon: &mut Daemon, session: &str) -> Value {
    daemon.ok("session/status", of(session))["session"]["leafEntryId"].clone()
}

fn reopen(daemon: &mut Daemon, session: &str) {
    let path = path_of(daemon, session);
    daemon.ok("session/close", of(session));
    daemon.load(&path);
}

/// The picture of the seeds: behind A one branch with B, C and D, and one with E and F. The leaf is D.
fn picture(daemon: &mut Daemon) -> (String, [Value; 6]) {
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let say = |daemon: &mut Daemon, message: Value, parent: Option<&Value>| {
        let mut params = json!({"sessionId": session, "messages": [message]});
        if let Some(parent) = parent {
            params["parentEntryId"] = parent.clone();
        }
        daemon.ok("session/append", params)["entryIds"][0].clone()
    };
    let a = say(daemon, assistant("A: the parser is ready."), None);
    let e = say(daemon, user("E: write the printer."), None);
    let f = say(daemon, assistant("F: the printer is written."), None);
    let b = say(daemon, user("B: write the lexer."), Some(&a));
    let c = say(daemon, assistant("C: the lexer is written."), None);
    let d = say(daemon, assistant("D: the lexer is tested."), None);
    (session.clone(), [a, b, c, d, e, f])
}

#[test]
fn a_session_goes_on_at_another_branch_and_the_leaf_is_on_disk() {
    let mut daemon = Daemon::start();
    let (session, [_, _, _, d, _, f]) = picture(&mut daemon);
    let (at_d, from) = (daemon.context(&session), daemon.events.len());
    let answer = moved(&mut daemon, &session, &f, json!({}));
    assert_eq!(answer["outcome"], "completed");
    assert_eq!((&answer["oldLeafId"], &answer["newLeafId"]), (&d, &f));
    assert_eq!((&answer["editorText"], &answer["summaryEntryId"]), (&Value::Null, &Value::Null));
    let events = daemon.events_since(from);
    let expected = ["status_changed", "entry_appended", "tree_changed", "status_changed", "settled"];
    assert_eq!(names(&events), expected);
    let change = event(&events, "tree_changed");
    assert_eq!(change, &json!({"type": "tree_changed", "oldLeafId": d, "newLeafId": f}));
    let at_f = daemon.context(&session);
    assert!(at_f["messages"].to_string().contains("printer is written") && !at_f.to_string().contains("lexer"));
    reopen(&mut daemon, &session);
    assert_eq!((leaf_of(&mut daemon, &session), daemon.context(&session)), (f, at_f));
    moved(&mut daemon, &session, &d, json!({}));
    assert_eq!(daemon.context(&session), at_d, "there and back is the identity");
    reopen(&mut daemon, &session);
    assert_eq!((leaf_of(&mut daemon, &session), daemon.context(&session)), (d, at_d));
}

#[test]
fn a_message_of_the_user_goes_to_the_editor_and_the_leaf_stands_before_it() {
    let mut daemon = Daemon::start();
    let (session, [a, b, _, _, e, _]) = picture(&mut daemon);
    let answer = moved(&mut daemon, &session, &b, json!({}));
    assert_eq!((&answer["newLeafId"], &answer["editorText"]), (&a, &json!("B: write the lexer.")));
    assert_eq!(daemon.context(&session)["messages"].as_array().map(Vec::len), Some(1));
    daemon.append(&session, &[user("B2: write a faster lexer.")]);
    let shown = daemon.context(&session)["messages"].to_string();
    assert!(shown.contains("faster") && !shown.contains("B: write"), "{shown}");
    let answer = moved(&mut daemon, &session, &e, json!({}));
    assert_eq!((&answer["newLeafId"], &answer["editorText"]), (&a, &json!("E: write the printer.")));
    let root = daemon.new_session(json!({"cwd": "/project"}));
    let first = daemon.append(&root, &[user("First."), assistant("Yes.")])["entryIds"][0].clone();
    let answer = moved(&mut daemon, &root, &first, json!({}));
    assert_eq!((&answer["newLeafId"], &answer["editorText"]), (&Value::Null, &json!("First.")));
    assert_eq!(daemon.context(&root)["messages"], json!([]));
    reopen(&mut daemon, &root);
    assert_eq!((leaf_of(&mut daemon, &root), &daemon.context(&root)["messages"]), (Value::Null, &json!([])));
}

#[test]
fn a_move_to_the_leaf_writes_nothing_and_a_label_names_its_target() {
    let mut daemon = Daemon::start();
    let (session, [a, _, _, d, _, f]) = picture(&mut daemon);
    let file = path_of(&mut daemon, &session);
    let before = std::fs::read(&file).expect("a file");
    let answer = moved(&mut daemon, &session, &d, json!({}));
    assert_eq!((&answer["outcome"], &answer["newLeafId"]), (&json!("completed"), &d));
    assert_eq!(std::fs::read(&file).expect("a file"), before);
    let from = daemon.events.len();
    let answer = moved(&mut daemon, &session, &a, json!({"label": "the fork"}));
    assert_eq!(answer["newLeafId"], a);
    assert_eq!(event(&daemon.events_since(from), "tree_changed")["label"], "the fork");
    moved(&mut daemon, &session, &f, json!({}));
    reopen(&mut daemon, &session);
    let tree = daemon.ok("session/tree", of(&session));
    let node = tree["nodes"].as_array().into_iter().flatten().find(|node| node["id"] == a).expect("A");
    assert_eq!(node["label"], "the fork");
}

#[test]
fn the_model_of_the_other_branch_is_in_force_and_the_client_is_told() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project", "model": "anthropic/claude-sonnet-4-5"}));
    let first = daemon.append(&session, &[user("One.")])["entryIds"][0].clone();
    daemon.ok("session/configure", json!({"sessionId": session, "model": "openai/gpt-5"}));
    let second = daemon.append(&session, &[user("Two."), user("Three.")])["entryIds"][1].clone();
    let from = daemon.events.len();
    let label = daemon.ok("session/label", json!({"sessionId": session, "targetEntryId": first, "label": "x"}));
    assert!(label["entryId"].is_string());
    moved(&mut daemon, &session, &first, json!({}));
    let events = daemon.events_since(from);
    let (claude, gpt) =
        (json!({"provider": "anthropic", "id": "claude-sonnet-4-5"}), json!({"provider": "openai", "id": "gpt-5"}));
    let told = json!({"type": "model_changed", "from": gpt, "to": claude, "reason": "restore"});
    assert_eq!(event(&events, "model_changed"), &told);
    let kinds = names(&events);
    let at = |kind| kinds.iter().position(|it| *it == kind);
    assert!(at("tree_changed") < at("model_changed") && at("model_changed") < at("settled"), "{kinds:?}");
    assert_eq!(daemon.ok("session/status", of(&session))["session"]["model"], claude);
    moved(&mut daemon, &session, &second, json!({}));
    assert_eq!(daemon.ok("session/status", of(&session))["session"]["model"], gpt);
    let from = daemon.events.len();
    daemon.append(&session, &[user("Four.")]);
    moved(&mut daemon, &session, &second, json!({}));
    assert!(!names(&daemon.events_since(from)).contains(&"model_changed"), "the same model");
}

#[test]
fn a_target_that_is_no_point_of_the_conversation_is_refused_and_nothing_moves() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let messages = [user("Look."), calls(&["c1", "c2"]), result("c1", "one"), result("c2", "two"), assistant("Done.")];
    let ids = daemon.append(&session, &messages)["entryIds"].clone();
    let pin = daemon.ok("session/pin", json!({"sessionId": session, "entryId": ids[0]}));
    let file = path_of(&mut daemon, &session);
    let before = std::fs::read_to_string(&file).expect("a file");
    let marker = before.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok()).expect("a line");
    assert_eq!((&marker["customType"], &pin["entryId"]), (&json!("abridged.pin"), &ids[0]));
    let unknown = navigate(&mut daemon, &session, &json!("nowhere"), json!({})).expect_err("unknown");
    assert_eq!((&unknown["data"]["code"], &unknown["data"]["kind"]), (&json!("not_found"), &json!("entry")));
    for (target, advice) in [(&ids[2], &ids[3]), (&marker["id"], &ids[4])] {
        let error = navigate(&mut daemon, &session, target, json!({})).expect_err("no point of the conversation");
        assert_eq!(
            (&error["data"]["code"], &error["data"]["path"]),
            (&json!("invalid_params"), &json!("targetEntryId"))
        );
        let advice = advice.as_str().expect("an id");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(advice)), "{error:#}");
    }
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), before);
    assert_eq!(leaf_of(&mut daemon, &session), ids[4]);
    let answer = moved(&mut daemon, &session, &ids[3], json!({}));
    assert_eq!(answer["newLeafId"], ids[3], "the last result of a batch");
    daemon.load(&file);
}

#[test]
fn the_lines_behind_a_leaf_belong_to_it() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let ids = daemon.append(&session, &turns(4))["entryIds"].clone();
    let (leaf, other) = (&ids[15], &ids[1]);
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 100, "wait": true}));
    daemon.append(&session, &[assistant("Behind the compaction.")]);
    daemon.ok("session/undo_compaction", of(&session));
    let behind = leaf_of(&mut daemon, &session);
    let at_leaf = daemon.context(&session);
    assert_eq!(at_leaf["compactionEntryId"], Value::Null);
    let asked = |daemon: &mut Daemon, leaf: &Value| {
        daemon.ok("session/context", json!({"sessionId": session, "leafEntryId": leaf}))
    };
    assert_eq!(asked(&mut daemon, &behind), at_leaf, "the undo belongs to the leaf");
    moved(&mut daemon, &session, other, json!({}));
    assert_eq!(asked(&mut daemon, &behind), at_leaf, "also from another branch");
    daemon.ok("session/reset", of(&session));
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": ids[0]}));
    let (cleared, at_cleared) = (leaf_of(&mut daemon, &session), daemon.context(&session));
    assert!(at_cleared["messages"].to_string().contains("<pinned>"));
    moved(&mut daemon, &session, leaf, json!({}));
    assert_eq!(asked(&mut daemon, &cleared), at_cleared, "the pin belongs to the leaf");
    moved(&mut daemon, &session, &cleared, json!({}));
    assert_eq!(daemon.context(&session), at_cleared);
    moved(&mut daemon, &session, &behind, json!({}));
    assert_eq!(daemon.context(&session), at_leaf);
}

#[test]
fn an_entry_is_entered_in_the_state_in_which_it_was_left() {
    let mut daemon = Daemon::start();
    let (session, [a, b, _, _, _, f]) = picture(&mut daemon);
    let prompt = |daemon: &mut Daemon| daemon.context(&session)["usage"]["breakdown"]["system"] != 0;
    moved(&mut daemon, &session, &a, json!({}));
    daemon.ok("session/configure", json!({"sessionId": session, "systemPrompt": "Be brief."}));
    assert_eq!(leaf_of(&mut daemon, &session), a);
    moved(&mut daemon, &session, &f, json!({}));
    assert!(!prompt(&mut daemon));
    moved(&mut daemon, &session, &a, json!({}));
    assert!(prompt(&mut daemon));
    moved(&mut daemon, &session, &f, json!({}));
    // Before B the path has no prompt.
    assert_eq!(moved(&mut daemon, &session, &b, json!({}))["newLeafId"], a);
    assert!(!prompt(&mut daemon));
    moved(&mut daemon, &session, &f, json!({}));
    moved(&mut daemon, &session, &a, json!({}));
    assert!(!prompt(&mut daemon), "there and back is the identity");
}

#[test]
fn a_read_only_session_stays_and_an_ephemeral_one_moves() {
    let mut daemon = Daemon::start();
    let (session, [a, ..]) = picture(&mut daemon);
    let file = path_of(&mut daemon, &session);
    daemon.ok("session/close", of(&session));
    daemon.ok("session/load", json!({"path": file, "readOnly": true}));
    let error = navigate(&mut daemon, &session, &a, json!({})).expect_err("read-only");
    assert_eq!(error["data"]["code"], "storage_error");
    let ephemeral = daemon.new_session(json!({"cwd": "/project", "ephemeral": true}));
    let ids = daemon.append(&ephemeral, &[user("One."), assistant("Two."), user("Three.")])["entryIds"].clone();
    let answer = moved(&mut daemon, &ephemeral, &ids[1], json!({}));
    assert_eq!((&answer["newLeafId"], leaf_of(&mut daemon, &ephemeral)), (&ids[1], ids[1].clone()));
    assert_eq!(daemon.context(&ephemeral)["messages"].as_array().map(Vec::len), Some(2));
}

#[test]
fn texts_of_a_request_have_limits_and_an_error_shows_the_beginning_of_a_long_id() {
    let mut daemon = Daemon::start();
    let (session, [a, ..]) = picture(&mut daemon);
    let texts = [("label", 1_024), ("instructions", 64 * 1_024)];
    for (field, most) in texts {
        let error = navigate(&mut daemon, &session, &a, json!({field: "x".repeat(most + 1)})).expect_err("too long");
        assert_eq!((&error["data"]["code"], &error["data"]["path"]), (&json!("invalid_params"), &json!(field)));
        assert!(error["message"].as_str().is_some_and(|text| text.contains(&most.to_string())), "{error:#}");
    }
    let label = |label: String| json!({"sessionId": session, "targetEntryId": a, "label": label});
    let error = daemon.err("session/label", label("x".repeat(1_025)));
    assert_eq!((&error["data"]["code"], &error["data"]["path"]), (&json!("invalid_params"), &json!("label")));
    daemon.ok("session/label", label("x".repeat(1_024)));
    let error = navigate(&mut daemon, &session, &json!("y".repeat(100_000)), json!({})).expect_err("unknown");
    assert_eq!(error["data"]["code"], "not_found");
    let message = error["message"].as_str().expect("a text");
    assert!(message.contains("yyyy…") && message.len() < 200, "{message}");
    moved(&mut daemon, &session, &a, json!({"label": "x".repeat(1_024), "instructions": "x".repeat(64 * 1_024)}));
}
