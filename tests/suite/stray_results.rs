//! Tool results that come when their call is on another branch.

use crate::support::*;
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

fn of(session: &str) -> Value {
    json!({"sessionId": session})
}

fn path_of(daemon: &mut Daemon, session: &str) -> PathBuf {
    daemon.ok("session/status", of(session))["session"]["path"].as_str().expect("a path").into()
}

fn lines(daemon: &mut Daemon, session: &str) -> Vec<Value> {
    let text = fs::read_to_string(path_of(daemon, session)).expect("a file");
    text.lines().map(|line| serde_json::from_str(line).expect("a line")).collect()
}

fn line_of(daemon: &mut Daemon, session: &str, id: &Value) -> Value {
    lines(daemon, session).into_iter().find(|line| line["id"] == *id).expect("an entry")
}

fn navigate(daemon: &mut Daemon, session: &str, target: &Value) {
    let answer = daemon.ok("session/navigate", json!({"sessionId": session, "targetEntryId": target, "wait": true}));
    assert_eq!(answer["outcome"], "completed");
}

fn leaf(daemon: &mut Daemon, session: &str) -> Value {
    daemon.ok("session/status", of(session))["session"]["leafEntryId"].clone()
}

fn reopen(daemon: &mut Daemon, session: &str) {
    let path = path_of(daemon, session);
    daemon.ok("session/close", of(session));
    daemon.load(&path);
}

/// A session that has left an answer with two open calls. The ids of the first answer and of the answer with the calls.
fn left_with_open_calls(daemon: &mut Daemon, params: Value) -> (String, Value, Value) {
    let session = daemon.new_session(params);
    let messages = [user("Look."), assistant("At what?"), user("At both."), calls(&["c1", "c2"])];
    let ids = daemon.append(&session, &messages)["entryIds"].clone();
    navigate(daemon, &session, &ids[1]);
    (session, ids[1].clone(), ids[3].clone())
}

fn roles(context: &Value) -> Vec<String> {
    let messages = context["messages"].as_array().expect("messages");
    messages.iter().filter_map(|message| message["role"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_result_goes_behind_its_call_and_the_leaf_stays() {
    for reopened in [false, true] {
        let mut daemon = Daemon::start();
        let (session, here, call) = left_with_open_calls(&mut daemon, json!({"cwd": "/project"}));
        if reopened {
            reopen(&mut daemon, &session);
        }
        let before = daemon.context(&session);
        let from = daemon.events.len();
        let answer = daemon.append(&session, &[result("c1", "one")]);
        assert_eq!(answer["entryIds"].as_array().map(Vec::len), Some(1), "{answer:#}");
        assert_eq!((&answer["leafEntryId"], &answer["next"]["type"]), (&here, &json!("none")));
        let entry = line_of(&mut daemon, &session, &answer["entryIds"][0]);
        assert_eq!((&entry["parentId"], &entry["message"]["toolName"]), (&call, &json!("read")));
        assert_eq!(daemon.context(&session)["messages"], before["messages"]);
        let events = daemon.events_since(from);
        assert_eq!(event(&events, "entry_appended")["entry"]["id"], answer["entryIds"][0]);
        let second = daemon.append(&session, &[result("c2", "two")]);
        let behind = line_of(&mut daemon, &session, &second["entryIds"][0]);
        assert_eq!(behind["parentId"], answer["entryIds"][0], "the results of one answer stand in a row");
        reopen(&mut daemon, &session);
        assert_eq!(leaf(&mut daemon, &session), here);
        assert_eq!(daemon.context(&session)["messages"], before["messages"]);
        navigate(&mut daemon, &session, &second["entryIds"][0]);
        let there = daemon.context(&session);
        assert_eq!(roles(&there), ["user", "assistant", "user", "assistant", "toolResult", "toolResult"]);
        assert!(!there.to_string().contains("interrupted"), "{there:#}");
    }
}

#[test]
fn results_and_messages_of_one_append_go_each_to_its_branch() {
    let mut daemon = Daemon::start();
    for ephemeral in [false, true] {
        let (session, here, call) =
            left_with_open_calls(&mut daemon, json!({"cwd": "/project", "ephemeral": ephemeral}));
        let messages = [result("c1", "one"), user("Go on here."), result("c2", "two")];
        let answer = daemon.append(&session, &messages);
        let ids = &answer["entryIds"];
        assert_eq!((ids.as_array().map(Vec::len), &answer["leafEntryId"]), (Some(3), &ids[1]));
        let parent = |daemon: &mut Daemon, id: &Value| {
            daemon.ok("session/entry", json!({"sessionId": session, "entryId": id}))["entry"]["parentId"].clone()
        };
        assert_eq!(parent(&mut daemon, &ids[0]), call);
        assert_eq!(parent(&mut daemon, &ids[2]), ids[0]);
        let context = daemon.context(&session);
        assert_eq!(roles(&context), ["user", "assistant", "user"]);
        assert_eq!(context["entryIds"][1], here);
        let more = daemon.append(&session, &[assistant("Yes."), calls(&["d1"]), result("d1", "here")]);
        assert_eq!(more["leafEntryId"], more["entryIds"][2]);
        let context = daemon.context(&session);
        assert_eq!(roles(&context), ["user", "assistant", "user", "assistant", "assistant", "toolResult"]);
        assert!(!context.to_string().contains("two"), "{context:#}");
    }
}

#[test]
fn a_call_id_that_both_branches_have_means_the_active_path() {
    let mut daemon = Daemon::start();
    let (session, _, call) = left_with_open_calls(&mut daemon, json!({"cwd": "/project"}));
    daemon.append(&session, &[user("Again."), calls(&["c1"])]);
    let answer = daemon.append(&session, &[result("c1", "of the new branch")]);
    assert_eq!(answer["leafEntryId"], answer["entryIds"][0]);
    let stray = daemon.append(&session, &[result("c2", "of the old branch")]);
    assert_eq!(stray["leafEntryId"], answer["entryIds"][0]);
    assert_eq!(line_of(&mut daemon, &session, &stray["entryIds"][0])["parentId"], call);
    let nowhere = daemon.append(&session, &[result("c9", "of no call")]);
    assert_eq!(nowhere["leafEntryId"], nowhere["entryIds"][0], "a result without a call goes behind the leaf");
}

#[test]
fn a_parent_on_another_branch_than_the_call_is_refused() {
    let mut daemon = Daemon::start();
    let (session, here, call) = left_with_open_calls(&mut daemon, json!({"cwd": "/project"}));
    let before = lines(&mut daemon, &session);
    let error = daemon
        .err("session/append", json!({"sessionId": session, "messages": [result("c1", "one")], "parentEntryId": here}));
    assert_eq!((&error["data"]["code"], &error["data"]["path"]), (&json!("invalid_params"), &json!("parentEntryId")));
    assert_eq!(lines(&mut daemon, &session), before);
    let params = json!({"sessionId": session, "messages": [result("c1", "one")], "parentEntryId": call});
    let answer = daemon.ok("session/append", params);
    assert_eq!(answer["leafEntryId"], answer["entryIds"][0], "the branch of the call is a right parent");
}

#[test]
fn results_that_are_sent_at_once_behind_other_appends_find_their_branches() {
    let mut daemon = Daemon::start();
    let (session, _, call) = left_with_open_calls(&mut daemon, json!({"cwd": "/project"}));
    let send = |daemon: &mut Daemon, message: Value| {
        daemon.begin("session/append", json!({"sessionId": session, "messages": [message]}))
    };
    let sent = [
        send(&mut daemon, user("One.")),
        send(&mut daemon, result("c1", "one")),
        send(&mut daemon, assistant("Two.")),
        send(&mut daemon, result("c2", "two")),
        send(&mut daemon, user("Three.")),
    ];
    let answers: Vec<Value> = sent.into_iter().map(|id| daemon.answer(id).expect("an answer")).collect();
    assert_eq!(line_of(&mut daemon, &session, &answers[1]["entryIds"][0])["parentId"], call);
    assert_eq!(line_of(&mut daemon, &session, &answers[3]["entryIds"][0])["parentId"], answers[1]["entryIds"][0]);
    assert_eq!(roles(&daemon.context(&session)), ["user", "assistant", "user", "assistant", "user"]);
}

#[test]
fn a_result_finds_its_call_behind_compactions_and_undos_of_either_branch() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let first = daemon.append(&session, &turns(8))["entryIds"].clone();
    let call = daemon.append(&session, &[user("At both."), calls(&["x1"])])["entryIds"][1].clone();
    navigate(&mut daemon, &session, &first[15]);
    daemon.append(&session, &turns(6));
    let compact = json!({"sessionId": session, "method": "extractive", "keepRecentTokens": 500, "wait": true});
    assert_eq!(daemon.ok("session/compact", compact)["outcome"], "completed");
    reopen(&mut daemon, &session);
    let before = daemon.context(&session);
    let answer = daemon.append(&session, &[result("x1", "late")]);
    assert_eq!(line_of(&mut daemon, &session, &answer["entryIds"][0])["parentId"], call);
    assert_eq!(daemon.context(&session)["messages"], before["messages"]);
    daemon.ok("session/undo_compaction", of(&session));
    let context = daemon.context(&session);
    assert_eq!(context["compactionEntryId"], Value::Null);
    assert!(!context.to_string().contains("late"), "{context:#}");
    let fork =
        daemon.ok("session/fork", json!({"sessionId": session, "entryId": answer["entryIds"][0], "position": "at"}));
    let forked = fork["session"]["sessionId"].as_str().expect("an id").to_owned();
    let context = daemon.context(&forked);
    assert_eq!(roles(&context).last().map(String::as_str), Some("toolResult"));
    assert!(context.to_string().contains("late"));
}

#[test]
fn a_result_on_its_way_during_a_summary_of_its_branch_stays_with_its_call() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let messages = [user("Look."), assistant("At what?"), user("At it."), calls(&["c1"])];
    let ids = daemon.append(&session, &messages)["entryIds"].clone();
    let params = json!({"sessionId": session, "targetEntryId": ids[1], "summarize": true, "wait": true});
    let (navigation, append) = (
        daemon.begin("session/navigate", params),
        daemon.begin("session/append", json!({"sessionId": session, "messages": [result("c1", "one")]})),
    );
    let moved = daemon.answer(navigation).expect("an answer");
    let answer = daemon.answer(append).expect("an answer");
    assert_eq!(line_of(&mut daemon, &session, &answer["entryIds"][0])["parentId"], ids[3], "{moved:#}");
    let context = daemon.context(&session);
    match moved["outcome"].as_str() {
        Some("completed") => assert!(!roles(&context).contains(&"toolResult".to_owned()), "{context:#}"),
        _ => assert_eq!(
            (&moved["error"]["code"], &answer["leafEntryId"]),
            (&json!("content_modified"), &answer["entryIds"][0])
        ),
    }
}

#[test]
fn of_two_other_branches_with_the_call_the_one_without_a_result_is_meant() {
    let mut daemon = Daemon::start();
    let (session, here, call) = left_with_open_calls(&mut daemon, json!({"cwd": "/project"}));
    daemon.append(&session, &[user("Again."), calls(&["c1"]), result("c1", "again"), assistant("Done.")]);
    navigate(&mut daemon, &session, &here);
    let answer = daemon.append(&session, &[result("c1", "late")]);
    assert_eq!(line_of(&mut daemon, &session, &answer["entryIds"][0])["parentId"], call);
    assert_eq!(leaf(&mut daemon, &session), here);
}
