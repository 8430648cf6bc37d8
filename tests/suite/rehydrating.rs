//! Rehydration: the files and the loaded texts that a client is told after a compaction, and those that stay in the context.

use crate::support::{Daemon, Home, assistant, event, result, session_of, text_of, user};
use abridged::conversation::context::check::violations;
use serde_json::{Value, json};
use std::fs;

const KEY: &str = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF";

/// A call of a tool of Claude Code, with its result.
fn called(id: &str, tool: &str, arguments: Value, text: &str) -> [Value; 2] {
    let call = json!({"type": "toolCall", "id": id, "name": tool, "arguments": arguments});
    let said = json!({"role": "assistant", "content": [call], "stopReason": "toolUse", "timestamp": 1});
    let mut answered = result(id, text);
    answered["toolName"] = tool.into();
    [said, answered]
}

fn edit(id: &str, path: &str) -> [Value; 2] {
    called(id, "Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"}), "Edited.")
}

/// Turns without tools.
fn chat() -> Vec<Value> {
    let turn = |at: usize| [user(&format!("Question {at}?")), assistant(&text_of(200, &format!("answer{at}")))];
    (0..6).flat_map(turn).collect()
}

/// Work on files with a skill, then turns without either.
fn work() -> Vec<Value> {
    let skill = format!("Merge with care. The key is {KEY}.");
    let mut messages = vec![user("Mend the store.")];
    messages.extend(called("s0", "Skill", json!({"skill": "pdf"}), &skill));
    messages.extend(called("r0", "Read", json!({"file_path": "/project/CLAUDE.md"}), "Use tabs."));
    messages.extend(called("r1", "Read", json!({"file_path": "/project/src/read.rs"}), &text_of(400, "read")));
    messages.extend(edit("e0", "src/old.rs"));
    messages.extend(edit("e1", "/project/src/gone.rs"));
    messages.extend(edit("e2", "/project/src/new.rs"));
    messages.extend(called("b0", "Bash", json!({"command": "cargo test && rm src/gone.rs"}), "ok"));
    messages.push(assistant("Done."));
    [messages, chat()].concat()
}

fn daemon(settings: &Value) -> Daemon {
    let home = Home::new();
    home.settings(&settings.to_string());
    Daemon::at(home)
}

fn rehydrating() -> Value {
    json!({"tokens": {"estimator": "chars"}, "compaction": {"enabled": false, "rehydrate": true}})
}

fn frame(daemon: &mut Daemon, session: &str) -> String {
    let context = daemon.context(session);
    let messages = context["messages"].as_array().expect("messages");
    assert_eq!(violations(messages), Vec::<String>::new());
    messages[0]["content"][0]["text"].as_str().expect("a text").to_owned()
}

#[test]
fn the_end_of_a_compaction_names_files_and_skills_and_the_skills_stay() {
    let mut daemon = daemon(&rehydrating());
    let path = session_of(&daemon.home, "s", &work());
    let session = daemon.load(&path);
    let from = daemon.events.len();
    let answered = daemon.compact(&session, 300);
    let events = daemon.events_since(from);
    let told = &event(&events, "compaction_end")["result"]["rehydration"];
    assert_eq!(*told, answered["rehydration"], "the answer of `wait` has the same");
    let files = told["files"].as_array().expect("files");
    let named: Vec<_> = files.iter().map(|file| [&file["path"], &file["operation"]].map(Value::as_str)).collect();
    let expected =
        [["/project/src/new.rs", "changed"], ["/project/src/old.rs", "changed"], ["/project/src/read.rs", "read"]];
    assert_eq!(named, expected.map(|pair| pair.map(Some)), "{told:#}");
    assert_eq!(files[0]["tokens"], Value::Null, "it was never read whole");
    assert!((400..600).contains(&files[2]["tokens"].as_u64().expect("a size")), "{told:#}");
    let loaded: Vec<_> =
        told["loaded"].as_array().expect("loads").iter().map(|it| (&it["name"], &it["kept"])).collect();
    assert_eq!(loaded, [(&json!("CLAUDE.md"), &json!("whole")), (&json!("pdf"), &json!("whole"))]);
    assert_eq!(told["loaded"][1]["kind"], "skill");

    let text = frame(&mut daemon, &session);
    assert!(text.contains("<loaded>\n<skill name=\"pdf\">\nMerge with care."), "{text}");
    assert!(
        text.contains(
            "<instructions name=\"CLAUDE.md\" path=\"/project/CLAUDE.md\">\nUse tabs.\n</instructions>\n</loaded>"
        ),
        "{text}"
    );
    assert!(!text.contains(KEY), "{text}");
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    assert_eq!(usage["contextTokens"], answered["tokensAfter"], "the texts are counted");

    // Other programs read them in a line of their own.
    let lines = fs::read_to_string(&path).expect("a file");
    let carried = lines.lines().filter(|line| line.contains("abridged.carried") && line.contains("<loaded>"));
    assert_eq!(carried.count(), 1, "{lines}");

    // They stay over the next compaction, and after the session is opened again.
    daemon.append(&session, &chat());
    daemon.ok("session/close", json!({"sessionId": session}));
    let session = daemon.load(&path);
    assert_eq!(frame(&mut daemon, &session), text);
    let again = daemon.compact(&session, 300);
    assert_eq!(again["rehydration"]["files"], json!([]), "no file was touched since");
    assert_eq!(again["rehydration"]["loaded"].as_array().map(Vec::len), Some(2));
    assert!(frame(&mut daemon, &session).contains("<skill name=\"pdf\">\nMerge with care."));
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    assert_eq!(frame(&mut daemon, &session), text, "an undo leaves the texts of the compaction before");
}

#[test]
fn without_the_setting_nothing_is_told_and_nothing_stays() {
    let mut settings = rehydrating();
    settings["compaction"]["rehydrate"] = false.into();
    for settings in [settings, json!({"tokens": {"estimator": "chars"}, "compaction": {"enabled": false}})] {
        let mut daemon = daemon(&settings);
        let path = session_of(&daemon.home, "s", &work());
        let session = daemon.load(&path);
        let answered = daemon.compact(&session, 300);
        assert_eq!(answered.get("rehydration"), None);
        assert!(!frame(&mut daemon, &session).contains("<loaded>"));
    }
}

#[test]
fn a_skill_of_two_hundred_kilobytes_is_clipped_with_a_note() {
    let mut daemon = daemon(&rehydrating());
    let mut messages = vec![user("Mend the store.")];
    messages.extend(called("s0", "skill", json!({"name": "pdf"}), &text_of(50_000, "pdf")));
    messages.push(assistant("Loaded."));
    let session = session_of(&daemon.home, "s", &[messages, chat()].concat());
    let session = daemon.load(&session);
    let answered = daemon.compact(&session, 300);
    assert_eq!(answered["rehydration"]["loaded"][0]["kept"], "clipped", "{answered:#}");
    assert!(answered["tokensAfter"].as_u64().expect("a size") < 8_000, "{}", answered["tokensAfter"]);
    let text = frame(&mut daemon, &session);
    assert!(text.contains("characters of this text were left out; load it again to have them"), "{text}");
}

#[test]
fn a_result_that_is_not_applied_keeps_no_text() {
    let mut daemon = daemon(&rehydrating());
    let path = session_of(&daemon.home, "s", &work());
    let session = daemon.load(&path);
    let params = json!({"sessionId": session, "keepRecentTokens": 300, "apply": false, "wait": true});
    let told = daemon.ok("session/compact", params)["result"]["rehydration"].clone();
    assert_eq!(told["files"].as_array().map(Vec::len), Some(3), "{told:#}");
    assert!(told["loaded"].as_array().expect("loads").iter().all(|load| load["kept"] == "none"), "{told:#}");
}

#[test]
fn reads_and_skills_under_the_names_of_agents_are_not_pruned() {
    let mut daemon =
        daemon(&json!({"tokens": {"estimator": "chars"}, "prune": {"protectTokens": 0, "minimumSavings": 0}}));
    let mut messages = vec![user("Read all.")];
    for (at, (tool, argument)) in
        [("Read", "file_path"), ("read_file", "path"), ("Skill", "skill"), ("Bash", "command")].into_iter().enumerate()
    {
        let name = format!("file-{at}");
        messages.extend(called(&format!("c{at}"), tool, json!({ argument: name }), &text_of(500, tool)));
    }
    messages.push(assistant("Done."));
    let session = session_of(&daemon.home, "s", &messages);
    let session = daemon.load(&session);
    let pruned = daemon.ok("session/prune", json!({"sessionId": session}));
    let ids = pruned["entryIds"].as_array().expect("ids");
    assert_eq!(ids.len(), 1, "{pruned:#}");
    let entry = daemon.ok("session/entry", json!({"sessionId": session, "entryId": ids[0]}));
    assert_eq!(entry["entry"]["message"]["toolName"], "Bash");
}
