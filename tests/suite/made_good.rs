//! Lines that pi and oh-my-pi need and the file lacks: an append adds them.

use crate::{
    inherited::{as_there, compact, daemon, lines, path_of},
    pi_reader::{Session, requested},
    support::*,
};
use abridged::conversation::context::check::violations;
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

fn of(session: &str) -> Value {
    json!({"sessionId": session})
}

fn file(path: &PathBuf) -> Session {
    Session::parse(&fs::read_to_string(path).expect("a file"))
}

/// A provider takes the request that pi makes of the file. Returns the texts of that request.
fn taken(daemon: &mut Daemon, session: &str) -> String {
    let path = path_of(daemon, session);
    let request = requested(file(&path).context());
    assert_eq!(violations(&request), Vec::<String>::new(), "{}", fs::read_to_string(&path).expect("a file"));
    request.iter().map(Value::to_string).collect()
}

/// The number of edits of this program that leave an entry out.
fn left_out(daemon: &mut Daemon, session: &str) -> usize {
    let is_edit = |line: &&Value| line["type"] == "context_edit" && line["replacement"].is_null();
    lines(&path_of(daemon, session)).iter().filter(is_edit).filter(|line| line["abridged"] == json!({})).count()
}

fn reopened(daemon: &mut Daemon, session: &str) -> String {
    let path = path_of(daemon, session);
    daemon.ok("session/close", of(session));
    daemon.load(&path)
}

fn aborted(ids: &[&str]) -> Value {
    let mut answer = calls(ids);
    answer["stopReason"] = "aborted".into();
    answer
}

#[test]
fn pi_sends_no_result_that_no_call_waits_for() {
    let ask = || user("Read it.");
    for (name, messages, stray) in [
        ("behind a message of the user", vec![ask(), calls(&["c1"]), user("And?"), result("c1", "late-one")], 1),
        ("a second result", vec![ask(), calls(&["c1"]), result("c1", "first"), result("c1", "late-two")], 1),
        ("an aborted answer", vec![ask(), aborted(&["c1", "c2"]), result("c1", "late-1"), result("c2", "late-2")], 2),
        ("no call at all", vec![ask(), result("c9", "late-nine")], 1),
        ("two calls", vec![ask(), calls(&["c1", "c2"]), result("c2", "b"), result("c1", "a")], 0),
    ] {
        let mut daemon = daemon();
        let session = daemon.new_session(json!({"cwd": "/project"}));
        for message in messages {
            daemon.append(&session, &[message]);
            taken(&mut daemon, &session);
        }
        assert_eq!(left_out(&mut daemon, &session), stray, "{name}");
        let before = daemon.context(&session);
        daemon.append(&session, &[assistant("Read."), user("Go on."), calls(&["d1"]), result("d1", "read-again")]);
        let text = taken(&mut daemon, &session);
        assert!(text.contains("read-again") && !text.contains("late-"), "{name}: {text}");
        // The content stays here where it has a place.
        let ours = daemon.context(&session)["messages"].to_string();
        assert_eq!(ours.contains("late-one"), stray == 1 && name.starts_with("behind"), "{name}: {ours}");
        let entries = |context: &Value| context["entryIds"].as_array().map(Vec::len);
        assert_eq!(entries(&daemon.context(&session)), entries(&before).map(|count| count + 4), "{name}");
        let session = reopened(&mut daemon, &session);
        assert_eq!(daemon.context(&session)["messages"].to_string(), ours, "{name}");
        daemon.append(&session, &[assistant("Done.")]);
        taken(&mut daemon, &session);
        assert_eq!(left_out(&mut daemon, &session), stray, "{name}: no line is added twice");
    }
}

#[test]
fn a_result_behind_a_reset_is_not_sent_by_pi() {
    let mut daemon = daemon();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &[user("Read it."), calls(&["c1"])]);
    daemon.ok("session/reset", of(&session));
    daemon.append(&session, &[result("c1", "late-one")]);
    daemon.append(&session, &[user("Anew."), assistant("Yes.")]);
    let text = taken(&mut daemon, &session);
    assert!(text.contains("Anew.") && !text.contains("late-one"), "{text}");
}

/// The answer of an edit that leaves it out, and of one that another program leaves there before its results come.
#[test]
fn results_of_an_answer_that_left_the_context_are_not_sent_by_pi() {
    for after in [false, true] {
        let mut daemon = daemon();
        let path = session_of(&daemon.home, "s", &[user("Read it."), calls(&["c1"])]);
        let mut lines = lines(&path);
        let edit = json!({"type": "context_edit", "id": "edit", "parentId": "e1",
            "timestamp": "2026-01-01T00:00:00.000Z", "targetId": "e1", "replacement": null});
        let late = json!({"type": "message", "id": "late", "parentId": "edit",
            "timestamp": "2026-01-01T00:00:00.000Z", "message": result("c1", "late-one")});
        lines.extend([edit, late].into_iter().take(if after { 2 } else { 1 }));
        fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).expect("a file");
        let session = daemon.load(&path);
        if !after {
            daemon.append(&session, &[result("c1", "late-one")]);
        }
        daemon.append(&session, &[user("Go on.")]);
        let text = taken(&mut daemon, &session);
        assert!(!text.contains("late-one"), "{text}");
        assert_eq!(left_out(&mut daemon, &session), 1);
    }
}

/// Cuts the file behind each line of a write, from its first line on, and loads each.
fn torn(daemon: &mut Daemon, session: &str, write: impl FnOnce(&mut Daemon), check: impl Fn(&mut Daemon, &str, usize)) {
    let path = path_of(daemon, session);
    let before = fs::read_to_string(&path).expect("a file").lines().count();
    write(daemon);
    daemon.ok("session/close", of(session));
    let text = fs::read_to_string(&path).expect("a file");
    let count = text.lines().count();
    assert!(count > before + 1, "lines for others follow");
    for lines in before + 1..=count {
        let torn = daemon.home.path(&format!("torn{lines}.jsonl"));
        let cut: String = text.lines().take(lines).map(|line| format!("{line}\n")).collect();
        fs::write(&torn, cut).expect("a file");
        let session = daemon.load(&torn);
        check(daemon, &session, lines - before);
        daemon.ok("session/close", of(&session));
    }
}

#[test]
fn the_lines_of_a_torn_undo_come_with_the_next_append() {
    for chain in [false, true] {
        let mut daemon = daemon();
        let session = daemon.new_session(json!({"cwd": "/project"}));
        let ids = daemon.append(&session, &turns(6))["entryIds"].clone();
        daemon.ok("session/pin", json!({"sessionId": session, "entryId": ids[0]}));
        compact(&mut daemon, &session, 500);
        daemon.append(&session, &turns(2));
        if chain {
            compact(&mut daemon, &session, 100);
            daemon.append(&session, &[user("Later."), assistant("Yes.")]);
            daemon.ok("session/undo_compaction", of(&session));
        }
        let undo = |daemon: &mut Daemon| drop(daemon.ok("session/undo_compaction", of(&session)));
        torn(&mut daemon, &session.clone(), undo, |daemon, session, _| {
            let before = daemon.context(session)["messages"].as_array().map(Vec::len);
            daemon.append(session, &[user("Go on."), assistant("Yes.")]);
            as_there(daemon, session);
            let count = lines(&path_of(daemon, session)).len();
            let after = daemon.context(session)["messages"].as_array().map(Vec::len);
            assert_eq!(after, before.map(|count| count + 2));
            daemon.append(session, &[user("And on.")]);
            as_there(daemon, session);
            assert_eq!(lines(&path_of(daemon, session)).len(), count + 1, "the lines are there now");
        });
    }
}

#[test]
fn the_lines_of_a_torn_reset_come_with_the_next_append() {
    let mut daemon = daemon();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &turns(3));
    daemon.ok("session/pin", json!({"sessionId": session, "text": "Never touch the lock files."}));
    let reset = |daemon: &mut Daemon| drop(daemon.ok("session/reset", of(&session)));
    torn(&mut daemon, &session.clone(), reset, |daemon, session, written| {
        daemon.append(session, &[user("Anew."), assistant("Yes.")]);
        let text = as_there(daemon, session);
        assert!(text.contains("Never touch the lock files."), "{text}");
        let sent = taken(daemon, session);
        assert!(!sent.contains("Request 1"), "{written}: {sent}");
        assert_eq!(sent.matches("Never touch the lock files.").count(), 1, "{written}: {sent}");
        let count = lines(&path_of(daemon, session)).len();
        daemon.append(session, &[user("And on.")]);
        assert_eq!(lines(&path_of(daemon, session)).len(), count + 1);
    });
}

/// A compaction of the survey's form, which says neither its first kept entry nor the size before it.
#[test]
fn a_compaction_that_counts_its_messages_gets_a_line_for_others() {
    let mut daemon = daemon();
    let path = session_of(&daemon.home, "s4", &turns(4));
    let mut written = lines(&path);
    let last = written.last().expect("a line")["id"].clone();
    written.push(json!({"type": "compaction", "id": "c", "parentId": last, "timestamp": "2026-01-01T00:00:00.000Z",
        "summary": "In the survey's form.", "keepLastMessages": 3}));
    let text: String = written.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&path, &text).expect("a file");
    let session = daemon.load(&path);
    let before = daemon.context(&session)["messages"].clone();
    assert_eq!(fs::read_to_string(&path).expect("a file"), text, "opening writes nothing");
    daemon.append(&session, &[user("Go on."), assistant("Yes.")]);
    let shown = as_there(&mut daemon, &session);
    assert!(shown.contains("In the survey's form."), "{shown}");
    let context = daemon.context(&session);
    assert_eq!(context["compactionEntryId"], "c");
    assert_eq!(context["messages"].as_array().map(Vec::len), before.as_array().map(|it| it.len() + 2));
    let file = file(&path);
    let on_path = file.path();
    let seen = on_path.iter().rev().find(|entry| entry["type"] == "compaction").expect("a compaction");
    assert!(seen["tokensBefore"].is_number() && seen["firstKeptEntryId"].is_string(), "{seen:#}");
    assert_eq!((&seen["summary"], &seen["keepLastMessages"]), (&json!("In the survey's form."), &Value::Null));
    let count = lines(&path).len();
    let session = reopened(&mut daemon, &session);
    assert_eq!(daemon.context(&session)["messages"], context["messages"]);
    daemon.append(&session, &[user("And on.")]);
    assert_eq!(lines(&path).len(), count + 1);
    daemon.ok("session/undo_compaction", of(&session));
    as_there(&mut daemon, &session);
}
