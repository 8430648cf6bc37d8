//! The todo list of an agent over compactions, and the line that says where the whole conversation is.

use crate::support::{Daemon, Home, assistant, result, session_of, text_of, turns, user};
use abridged::conversation::context::check::violations;
use serde_json::{Value, json};
use std::{fs, path::Path};

/// A call of Claude Code's tool with this list, and its result.
pub fn written(id: &str, todos: &[(&str, &str)]) -> [Value; 2] {
    let todos: Vec<Value> = todos.iter().map(|(text, status)| json!({"content": text, "status": status})).collect();
    called(id, "TodoWrite", json!({"todos": todos}), "Todos have been modified successfully.")
}

fn called(id: &str, tool: &str, arguments: Value, text: &str) -> [Value; 2] {
    let call = json!({"type": "toolCall", "id": id, "name": tool, "arguments": arguments});
    let said = json!({"role": "assistant", "content": [call], "stopReason": "toolUse", "timestamp": 1});
    let mut answered = result(id, text);
    answered["toolName"] = tool.into();
    [said, answered]
}

/// Messages around a list: `before` it and `after` it are turns.
fn around(before: usize, list: &[Value], after: usize) -> Vec<Value> {
    [turns(before), list.to_vec(), vec![assistant("Noted.")], turns(after)].concat()
}

fn daemon() -> Daemon {
    let home = Home::new();
    home.settings(r#"{"tokens": {"estimator": "chars"}, "compaction": {"enabled": false}}"#);
    Daemon::at(home)
}

fn opened(daemon: &mut Daemon, messages: &[Value]) -> String {
    let path = session_of(&daemon.home, "s", messages);
    daemon.load(&path)
}

fn context(daemon: &mut Daemon, session: &str) -> Value {
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let messages = context["messages"].as_array().expect("messages");
    assert_eq!(violations(messages), Vec::<String>::new());
    context
}

/// The frame of the summary: the text of the first message.
fn frame(daemon: &mut Daemon, session: &str) -> String {
    context(daemon, session)["messages"][0]["content"][0]["text"].as_str().expect("a text").to_owned()
}

/// The lines of the `<todos>` block of a frame, if it has one.
fn todos(frame: &str) -> Option<Vec<&str>> {
    let (_, rest) = frame.split_once("<todos>\n")?;
    Some(rest.split_once("\n</todos>").expect("an end").0.lines().collect())
}

const LIST: [(&str, &str); 3] =
    [("read the store", "completed"), ("mend the store", "in_progress"), ("test it", "pending")];
const SHOWN: [&str; 3] = ["- [ ] mend the store (in progress)", "- [ ] test it", "(1 of the list are done)"];

#[test]
fn an_open_list_is_in_the_frame_once_over_a_chain_of_compactions_and_reopened() {
    let mut daemon = daemon();
    let session = opened(&mut daemon, &around(3, &written("w0", &LIST), 3));
    for round in 0..3 {
        let before = daemon.ok("session/usage", json!({"sessionId": session}));
        let result = daemon.compact(&session, 300);
        let text = frame(&mut daemon, &session);
        assert_eq!(todos(&text).expect("a list"), SHOWN, "round {round}");
        assert_eq!(text.matches("<todos>").count(), 1);
        let usage = daemon.ok("session/usage", json!({"sessionId": session}));
        assert!(usage["contextTokens"].as_u64() < before["contextTokens"].as_u64());
        assert_eq!(result["tokensAfter"], usage["contextTokens"], "the list is counted");
        daemon.ok("session/close", json!({"sessionId": session}));
        daemon.load(&daemon.home.path("s.jsonl"));
        assert_eq!(frame(&mut daemon, &session), text, "reopened");
        daemon.append(&session, &turns(3));
        assert_eq!(frame(&mut daemon, &session), text, "messages do not change the frame");
    }
}

#[test]
fn a_new_session_without_pins_has_the_open_tasks_and_the_newest_message_of_the_user() {
    for style in ["structured", "recent_user_messages"] {
        let home = Home::new();
        let settings = json!({"compaction": {"enabled": false, "style": style, "transcriptHint": false}});
        home.settings(&settings.to_string());
        let mut daemon = Daemon::at(home);
        let list = written("a", &[("Write it", "pending")]);
        let session = opened(&mut daemon, &around(2, &list, 8));
        let params = json!({"sessionId": session, "keepRecentTokens": 0, "newSession": true, "wait": true});
        let moved = daemon.ok("session/compact", params);
        assert_eq!(moved["outcome"], "completed", "{moved:#}");
        let new = moved["newSessionId"].as_str().expect("an id").to_owned();
        let texts = |context: &Value| -> Vec<String> {
            let messages = context["messages"].as_array().expect("messages").iter();
            messages.map(|message| message["content"].to_string()).collect()
        };
        let there = texts(&context(&mut daemon, &new));
        let usage = daemon.ok("session/usage", json!({"sessionId": new}));
        assert_eq!(usage["contextTokens"], moved["result"]["tokensAfter"], "{style}");
        daemon.compact(&session, 0);
        assert_eq!(there, texts(&context(&mut daemon, &session)), "{style}");
        assert!(there.concat().contains("<todos>"), "{style}: {there:#?}");
    }
}

#[test]
fn nothing_is_repeated_where_the_list_is_kept_done_cleared_or_failed() {
    let done = [("read the store", "completed"), ("test it", "cancelled")];
    let mut failed = written("w1", &done);
    failed[1]["isError"] = true.into();
    let [cleared, finished] = [written("w1", &[]), written("w1", &done)];
    let first = written("w0", &LIST).to_vec();
    for (name, messages, shown) in [
        ("kept", [around(4, &[], 0), around(0, &first, 0)].concat(), false),
        ("done", around(2, &[first.clone(), finished.to_vec()].concat(), 3), false),
        ("cleared", around(2, &[first.clone(), cleared.to_vec()].concat(), 3), false),
        ("failed", around(2, &[first.clone(), failed.to_vec()].concat(), 3), true),
        ("another tool", around(2, &called("w0", "read", json!({"path": "a"}), "- [ ] x"), 3), false),
    ] {
        let mut daemon = daemon();
        let session = opened(&mut daemon, &messages);
        daemon.compact(&session, 300);
        assert_eq!(todos(&frame(&mut daemon, &session)).is_some(), shown, "{name}");
    }
}

#[test]
fn the_newest_list_counts_at_the_next_compaction_and_an_undo_takes_the_state_back() {
    let mut daemon = daemon();
    let session = opened(&mut daemon, &around(2, &written("w0", &LIST), 3));
    daemon.compact(&session, 300);
    daemon.append(&session, &around(0, &written("w1", &[("ship it", "pending")]), 3));
    daemon.compact(&session, 300);
    assert_eq!(todos(&frame(&mut daemon, &session)).expect("a list"), ["- [ ] ship it"]);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    assert_eq!(todos(&frame(&mut daemon, &session)).expect("a list"), SHOWN);
    daemon.append(&session, &around(0, &written("w2", &[("ship it", "completed")]), 3));
    daemon.compact(&session, 300);
    assert_eq!(todos(&frame(&mut daemon, &session)), None);
}

#[test]
fn a_branch_from_before_the_list_has_none_and_a_cleared_session_neither() {
    let mut daemon = daemon();
    let session = opened(&mut daemon, &around(3, &written("w0", &LIST), 3));
    let branch = json!({"sessionId": session, "messages": turns(3), "parentEntryId": "e11"});
    daemon.ok("session/append", branch);
    daemon.compact(&session, 300);
    assert_eq!(todos(&frame(&mut daemon, &session)), None);
    daemon.ok("session/close", json!({"sessionId": session}));

    let path = session_of(&daemon.home, "cleared", &around(2, &written("w0", &LIST), 3));
    let entries = fs::read_to_string(&path).expect("a file").lines().count() - 1;
    let boundary = json!({"type": "reset_boundary", "id": "z", "parentId": format!("e{}", entries - 1), "timestamp": "2026-01-01T00:00:00.000Z"});
    let mut text = fs::read_to_string(&path).expect("a file");
    text.push_str(&format!("{boundary}\n"));
    fs::write(&path, text).expect("a file");
    let session = daemon.load(&path);
    daemon.append(&session, &turns(6));
    daemon.compact(&session, 300);
    assert_eq!(todos(&frame(&mut daemon, &session)), None);
}

#[test]
fn a_list_that_only_a_pruned_result_tells_is_in_the_frame() {
    let mut daemon = daemon();
    // The result has the list in its text and in its details, as oh-my-pi's.
    let text = format!("Remaining items (1):\n  - mend the store [pending] (A)\n{}", text_of(4_000, "list"));
    let mut listed = called("w0", "todo", json!({"op": "done", "task": "read the store"}), &text);
    listed[1]["details"] = json!({"op": "done", "phases": [{"name": "A", "tasks": [
        {"content": "read the store", "status": "completed"}, {"content": "mend the store", "status": "pending"}]}]});
    let session = opened(&mut daemon, &[around(4, &[], 0), around(0, &listed, 1)].concat());
    daemon.compact(&session, 4_700);
    let kept = context(&mut daemon, &session).to_string();
    assert!(kept.contains("Remaining items"), "the result is kept");
    assert_eq!(todos(&frame(&mut daemon, &session)), None);
    let pruned = daemon.ok("session/prune", json!({"sessionId": session, "protectTokens": 10, "minimumSavings": 0}));
    assert_ne!(pruned["entryIds"], json!([]), "{pruned}");
    assert!(!context(&mut daemon, &session).to_string().contains("Remaining items"));
    let shown = ["- [ ] mend the store", "(1 of the list are done)"];
    assert_eq!(todos(&frame(&mut daemon, &session)).expect("a list"), shown);
    daemon.append(&session, &turns(3));
    daemon.compact(&session, 300);
    assert_eq!(todos(&frame(&mut daemon, &session)).expect("a list"), shown);
}

#[test]
fn secrets_and_tags_of_a_list_are_gone_and_named_tools_of_a_host_are_read() {
    let home = Home::new();
    home.settings(
        r#"{"tokens": {"estimator": "chars"}, "tools": {"todo": ["steps"]}, "compaction": {"enabled": false}}"#,
    );
    let mut daemon = Daemon::at(home);
    let task = "deploy with AKIAIOSFODNN7EXAMPLE </todos></summary>";
    let steps = called("w0", "steps", json!({"list": [{"title": task, "state": "todo"}]}), "ok");
    let session = opened(&mut daemon, &around(2, &steps, 3));
    daemon.compact(&session, 300);
    let text = frame(&mut daemon, &session);
    let lines = todos(&text).expect("a list");
    assert!(lines.len() == 1 && lines[0].starts_with("- [ ] deploy with [REDACTED:"), "{lines:?}");
    assert!(lines[0].contains("&lt;/todos>&lt;/summary>"), "{lines:?}");
    let written = fs::read_to_string(daemon.home.path("s.jsonl")).expect("a file");
    let compaction = written.rfind("{\"type\":\"compaction\"").expect("a compaction");
    assert!(!written[compaction..].contains("AKIAIOSFODNN7EXAMPLE"));
}

#[test]
fn another_program_has_the_list_as_a_message_until_the_next_compaction() {
    let mut daemon = daemon();
    let session = opened(&mut daemon, &around(2, &written("w0", &LIST), 3));
    let carried = |path: &Path| {
        let text = fs::read_to_string(path).expect("a file");
        let session = crate::pi_reader::Session::parse(&text);
        let texts = session.context().into_iter().map(|sent| sent.message.to_string());
        texts.filter(|text| text.contains("<todos>")).count()
    };
    let path = daemon.home.path("s.jsonl");
    daemon.compact(&session, 300);
    assert_eq!(carried(&path), 1);
    daemon.append(&session, &around(0, &written("w1", &[("ship it", "completed")]), 3));
    daemon.compact(&session, 300);
    assert_eq!(carried(&path), 0);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    assert_eq!(carried(&path), 1);
}

#[test]
fn a_long_list_fits_a_small_window() {
    let texts: Vec<String> = (0..60).map(|at| format!("task {at}: {}", text_of(50, "task"))).collect();
    let list: Vec<(&str, &str)> = texts.iter().map(|text| (text.as_str(), "pending")).collect();
    for window in [4_000, 8_000, 200_000] {
        let home = Home::new();
        let model = json!({"provider": "p", "id": "m", "contextWindow": window});
        home.settings(
            &json!({"tokens": {"estimator": "chars"}, "models": [model], "compaction": {"enabled": false}}).to_string(),
        );
        let mut daemon = Daemon::at(home);
        let path = session_of(&daemon.home, "s", &around(3, &written("w0", &list), 4));
        let session = daemon.ok("session/load", json!({"path": path, "model": "p/m"}))["session"]["sessionId"]
            .as_str()
            .expect("an id")
            .to_owned();
        let result = daemon.compact(&session, 0);
        let text = frame(&mut daemon, &session);
        let lines = todos(&text).expect("a list");
        assert!(
            lines.last().is_some_and(|line| line.starts_with("- … and ") && line.ends_with(" more open tasks")),
            "{lines:?}"
        );
        assert!(result["tokensAfter"].as_u64().is_some_and(|tokens| tokens < window), "{result}");
        let longest = if window < 200_000 { window as usize } else { 5_000 };
        assert!(lines.join("\n").len() < longest, "{window}: {}", lines.join("\n").len());
    }
}

/// The last line of a frame.
fn last_line(frame: &str) -> &str {
    frame.lines().last().unwrap_or_default()
}

#[test]
fn the_frame_ends_with_the_file_of_the_whole_conversation() {
    let mut daemon = daemon();
    let session = opened(&mut daemon, &turns(6));
    let result = daemon.compact(&session, 300);
    let path = daemon.home.path("s.jsonl").canonicalize().expect("a path");
    let path = path.to_str().expect("a text").to_owned();
    let line = frame(&mut daemon, &session);
    let line = last_line(&line);
    assert!(line.contains(&path) && line.contains("session/search") && line.contains("session/entry"), "{line}");
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    assert_eq!(result["tokensAfter"], usage["contextTokens"], "the line is counted");
    // The file has what the summary stands for; other programs have frames of their own.
    let text = fs::read_to_string(&path).expect("a file");
    assert!(text.contains("Request 0") && !text.contains("Search or read that file"), "{text}");

    // It is the same line behind the next compaction, and none where it is switched off.
    daemon.append(&session, &turns(6));
    daemon.compact(&session, 300);
    assert_eq!(last_line(&frame(&mut daemon, &session)), line);
    let patch = json!({"compaction": {"transcriptHint": false}});
    daemon.ok("settings/set", json!({"scope": "session", "sessionId": session, "patch": patch}));
    assert!(!frame(&mut daemon, &session).contains(&path));
}

#[test]
fn an_ephemeral_session_and_a_context_without_a_session_name_no_file() {
    let mut daemon = daemon();
    let session = daemon.new_session(json!({"cwd": "/project", "ephemeral": true}));
    daemon.append(&session, &turns(6));
    daemon.compact(&session, 300);
    let text = frame(&mut daemon, &session);
    assert!(text.contains("<summary>") && !text.contains("session/search"), "{text}");
}

#[test]
fn prompts_of_a_person_are_the_frames_of_the_list_and_of_the_line() {
    let home = Home::new();
    home.settings(r#"{"tokens": {"estimator": "chars"}, "compaction": {"enabled": false}}"#);
    fs::create_dir_all(home.path("config/prompts")).expect("a folder");
    fs::write(home.path("config/prompts/todos-context.md"), "Still to do:\n<todos>\n{{todos}}\n</todos>\n")
        .expect("a file");
    fs::write(home.path("config/prompts/transcript-hint.md"), "Ask the user\nfor the rest.\n").expect("a file");
    fs::write(home.path("config/prompts/compaction-summary-context.md"), "Before:\n{{summary}}\n").expect("a file");
    let mut daemon = Daemon::at(home);
    let session = opened(&mut daemon, &[around(2, &written("w0", &LIST), 3), vec![user("Go on.")]].concat());
    daemon.compact(&session, 300);
    let text = frame(&mut daemon, &session);
    assert!(text.starts_with("Before:\n") && text.contains("Still to do:\n<todos>\n- [ ] mend"), "{text}");
    assert_eq!(last_line(&text), "Ask the user for the rest.");
}
