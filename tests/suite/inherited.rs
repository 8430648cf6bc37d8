//! State of this program that oh-my-pi copied: `preserveData` of the last compaction is in the next one that it writes.

use crate::{
    pi_reader::{Session, plain},
    support::*,
    todos::written,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

/// A compaction that names the state of its own entry, and one of a version before that.
const NAMED: [bool; 2] = [true, false];

pub fn daemon() -> Daemon {
    let home = Home::new();
    home.settings(r#"{"tokens": {"estimator": "chars"}, "compaction": {"enabled": false}}"#);
    Daemon::at(home)
}

fn of(session: &str) -> Value {
    json!({"sessionId": session})
}

pub fn path_of(daemon: &mut Daemon, session: &str) -> PathBuf {
    daemon.ok("session/status", of(session))["session"]["path"].as_str().expect("a path").into()
}

pub fn compact(daemon: &mut Daemon, session: &str, keep: u64) {
    let params = json!({"sessionId": session, "method": "extractive", "keepRecentTokens": keep, "wait": true});
    assert_eq!(daemon.ok("session/compact", params)["outcome"], "completed");
}

pub fn lines(path: &PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a file");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The session after a compaction that oh-my-pi adds, with a turn behind it. The compaction keeps everything from the
/// message with this text on. Without `named` the file is one of a version whose state names no entry.
fn compacted_by_oh_my_pi(daemon: &mut Daemon, session: &str, kept_from: &str, named: bool) -> String {
    let path = path_of(daemon, session);
    daemon.ok("session/close", of(session));
    let mut lines = lines(&path);
    for line in lines.iter_mut().filter(|_| !named) {
        if let Some(Value::Object(ours)) = line.pointer_mut("/preserveData/abridged") {
            ours.remove("entryId").expect("state names its entry");
        }
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = Session::parse(&text);
    let on_path = file.path();
    let last = on_path.iter().rev().find(|entry| entry["type"] == "compaction").expect("a compaction");
    let kept = on_path.iter().find(|entry| entry["message"].to_string().contains(kept_from)).expect("it is kept");
    let mut data = last["preserveData"].clone();
    data.as_object_mut().expect("data").remove("openaiRemoteCompaction");
    let mut parent = lines.last().expect("a line")["id"].clone();
    let compaction = json!({"type": "compaction", "summary": "By oh-my-pi.", "firstKeptEntryId": kept["id"],
        "tokensBefore": 900, "preserveData": data, "details": {"readFiles": [], "modifiedFiles": []}});
    let said = |message: Value| json!({"type": "message", "message": message});
    for (at, mut line) in [compaction, said(user("Go on there.")), said(assistant("Gone on."))].into_iter().enumerate()
    {
        line["id"] = json!(format!("0badcaf{at}"));
        line["parentId"] = std::mem::replace(&mut parent, line["id"].clone());
        line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        lines.push(line);
    }
    fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).expect("a file");
    daemon.load(&path)
}

/// The context has the messages that oh-my-pi has, and the text of all of it.
pub fn as_there(daemon: &mut Daemon, session: &str) -> String {
    let context = daemon.context(session);
    let path = path_of(daemon, session);
    let sent = Session::parse(&fs::read_to_string(path).expect("a file")).context();
    let frame =
        |it: &&crate::pi_reader::Sent| it.entry["type"] == "compaction" || it.entry["customType"] == "abridged.carried";
    let theirs: Vec<Value> = sent.iter().filter(|it| !frame(it)).flat_map(|it| plain(&it.message)).collect();
    let messages = context["messages"].as_array().expect("messages");
    let own = messages.iter().zip(context["entryIds"].as_array().expect("ids")).filter(|(_, id)| id.is_string());
    let ours: Vec<Value> = own.flat_map(|(message, _)| plain(message)).collect();
    assert_eq!(ours, theirs);
    messages.iter().map(|message| message.to_string()).collect()
}

#[test]
fn a_compaction_of_oh_my_pi_holds_after_an_undo_here() {
    for (named, later) in NAMED.into_iter().flat_map(|named| [(named, true), (named, false)]) {
        let mut daemon = daemon();
        let session = daemon.new_session(json!({"cwd": "/project"}));
        daemon.append(&session, &turns(6));
        compact(&mut daemon, &session, 500);
        daemon.append(&session, &[user("Between."), assistant("Yes.")]);
        compact(&mut daemon, &session, 10);
        if later {
            daemon.append(&session, &[user("Later."), assistant("Yes.")]);
        }
        daemon.ok("session/undo_compaction", of(&session));
        daemon.append(&session, &[user("The last one."), assistant("Here.")]);
        let session = compacted_by_oh_my_pi(&mut daemon, &session, "The last one.", named);
        let text = as_there(&mut daemon, &session);
        assert!(text.contains("By oh-my-pi.") && !text.contains("Between."), "{named} {later}: {text}");
        assert_eq!(daemon.context(&session)["messages"].as_array().map(Vec::len), Some(5));
        assert_eq!(daemon.context(&session)["compactionEntryId"], "0badcaf0");
    }
}

#[test]
fn a_compaction_of_oh_my_pi_holds_after_a_reset_here() {
    for named in NAMED {
        let mut daemon = daemon();
        let session = daemon.new_session(json!({"cwd": "/project"}));
        daemon.append(&session, &turns(3));
        daemon.ok("session/reset", of(&session));
        daemon.append(&session, &turns(3));
        daemon.append(&session, &[user("The last one."), assistant("Here.")]);
        let session = compacted_by_oh_my_pi(&mut daemon, &session, "The last one.", named);
        let text = as_there(&mut daemon, &session);
        assert!(text.contains("By oh-my-pi."), "{named}: {text}");
        assert_eq!(daemon.context(&session)["messages"].as_array().map(Vec::len), Some(5));
    }
}

#[test]
fn copied_state_brings_nothing_back_that_changed_since() {
    for named in NAMED {
        let mut daemon = daemon();
        let session = daemon.new_session(json!({"cwd": "/project", "systemPrompt": "Old prompt.", "title": "Old",
            "model": "anthropic/claude-sonnet-4-5"}));
        daemon.append(&session, &turns(3));
        let gone = daemon.ok("session/pin", json!({"sessionId": session, "text": "Deploys happen on Tuesdays."}));
        daemon.ok("session/pin", json!({"sessionId": session, "text": "Never touch the lock files."}));
        daemon.append(&session, &[user("Make a list.")]);
        daemon.append(&session, &written("t1", &[("write the parser", "pending")]));
        daemon.append(&session, &[assistant(&text_of(200, "list"))]);
        compact(&mut daemon, &session, 50);
        let before = daemon.context(&session)["messages"].to_string();
        assert!(before.contains("Tuesdays") && before.contains("write the parser"), "{before}");
        assert!(before.contains("Make a list."), "the newest request is carried");

        daemon.ok("session/unpin", json!({"sessionId": session, "entryId": gone["entryId"]}));
        let changes = json!({"sessionId": session, "systemPrompt": "New prompt.", "title": "New"});
        daemon.ok("session/configure", changes);
        daemon.append(&session, &[user("Finish it.")]);
        daemon.append(&session, &written("t2", &[("write the parser", "completed")]));
        daemon.append(&session, &[assistant("Finished."), user("The last one."), assistant("Here.")]);
        let session = compacted_by_oh_my_pi(&mut daemon, &session, "The last one.", named);
        let check = |daemon: &mut Daemon| {
            let text = as_there(daemon, &session);
            assert!(!text.contains("Tuesdays") && !text.contains("write the parser"), "{named}: {text}");
            assert!(!text.contains("Make a list."), "{named}: {text}");
            assert_eq!(text.matches("Never touch the lock files.").count(), 1, "{named}: a pin in force: {text}");
            let params = json!({"sessionId": session, "format": "anthropic"});
            let body = daemon.ok("session/context", params)["body"].to_string();
            assert!(body.contains("New prompt.") && !body.contains("Old prompt."), "{body}");
            let status = daemon.ok("session/status", of(&session));
            assert_eq!(status["session"]["title"], "New");
        };
        check(&mut daemon);
        // The next compaction here takes over nothing of the copy either.
        daemon.append(&session, &turns(4));
        compact(&mut daemon, &session, 100);
        let text = daemon.context(&session)["messages"].to_string();
        assert!(!text.contains("Tuesdays") && text.matches("Never touch the lock files.").count() == 1, "{text}");
    }
}

#[test]
fn every_compaction_and_reset_names_its_own_entry() {
    let mut daemon = daemon();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &turns(6));
    compact(&mut daemon, &session, 500);
    daemon.append(&session, &turns(4));
    compact(&mut daemon, &session, 500);
    daemon.append(&session, &turns(1));
    daemon.ok("session/undo_compaction", of(&session));
    daemon.append(&session, &turns(4));
    let params = json!({"sessionId": session, "method": "extractive", "keepRecentTokens": 500, "newSession": true, "wait": true});
    let moved = daemon.ok("session/compact", params)["newSessionId"].as_str().expect("an id").to_owned();
    daemon.ok("session/reset", of(&moved));
    let mut seen = 0;
    for session in [session, moved] {
        for line in lines(&path_of(&mut daemon, &session)) {
            let Some(ours) = line.pointer("/preserveData/abridged") else { continue };
            assert_eq!(ours["entryId"], line["id"], "{line:#}");
            seen += 1;
        }
    }
    assert_eq!(seen, 6, "three of the first session, and three of the second");
}
