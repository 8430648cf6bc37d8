//! No secret that was ever said stands in what is made of a session: not in a summary, not in what is told of one.

use crate::{
    canaries::{Canary, canaries},
    support::*,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf, process::Stdio};

/// A session with each canary in a text of the user, the arguments of a call, its result, a command and a file's path,
/// behind a compaction of another program that has them all, too.
fn planted(home: &Home, all: &[Canary]) -> PathBuf {
    let texts: Vec<&str> = all.iter().map(|canary| canary.text.as_str()).collect();
    let mut messages = vec![user("Set up the services. You must never change main.lock.")];
    messages.push(assistant("It is set up."));
    // A path has one line.
    let path = |text: &str| if text.contains('\n') { "lines".to_owned() } else { text.to_owned() };
    for (at, Canary { text, secret, .. }) in all.iter().enumerate() {
        let id = format!("call{at}");
        let quoted = json!({"stdin": text, "env": {"X": text}}).to_string();
        let arguments = json!({
            "path": format!("notes/{at} {}", path(text)), "content": text, "json": quoted,
            "nested": json!({"again": quoted}).to_string(),
        });
        messages.extend([
            user(&format!("You must always use this one, it is number {at}:\n{text}\nNever use another.")),
            json!({"role": "assistant", "content": [
                {"type": "text", "text": format!("I will use this, because it is right:\n{text}\n")},
                {"type": "toolCall", "id": id, "name": if at % 2 == 0 { "read" } else { "write" }, "arguments": arguments},
                {"type": "toolCall", "id": format!("todo{at}"), "name": "todo", "arguments":
                    {"todos": [{"content": format!("use\n{text}"), "status": "pending"}]}},
            ], "stopReason": "toolUse", "timestamp": 1}),
            json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "isError": at % 3 == 0, "timestamp": 1,
                "content": [{"type": "text", "text": format!("error: it failed with\n{text}\n{quoted}\n")}]}),
            result(&format!("todo{at}"), "done"),
            json!({"role": "bashExecution", "command": format!("./run <<E\n{text}\nE"), "output": text, "exitCode": 0, "timestamp": 1}),
            assistant(&format!("Decided to go with number {at} instead of the other one: {}", &secret[..2])),
        ]);
    }
    messages.extend([user("And what is left?"), assistant("Nothing is left.")]);
    let mut lines = vec![header("planted")];
    let mut entries = entries(&messages);
    // The first two messages are behind the compaction of another program.
    entries.insert(
        2,
        json!({"type": "compaction", "id": "earlier", "parentId": "e1", "timestamp": "2026-01-01T00:00:00.000Z",
            "summary": format!("## Goal\n{}\n\n## Constraints & Preferences\n{}\n\n## Critical Context\n{}\n",
                texts[0], texts.join("\n- "), texts.join("\n")),
            "shortSummary": texts.join("\n"), "firstKeptEntryId": "e1", "tokensBefore": 100,
            "details": {"readFiles": texts, "modifiedFiles": texts.iter().map(|text| format!("b/{}", path(text))).collect::<Vec<_>>()}}),
    );
    entries[3]["parentId"] = json!("earlier");
    lines.extend(entries);
    home.session("planted.jsonl", &lines)
}

/// The secret as it stands in the text of a string of JSON, so that it is found in a whole frame.
fn stands_in(text: &str, canary: &Canary) -> bool {
    let quoted = json!(canary.secret).to_string();
    text.contains(&canary.secret) || text.contains(quoted.trim_matches('"'))
}

fn nothing_of(all: &[Canary], what: &str, text: &str) {
    for canary in all {
        assert!(!stands_in(text, canary), "{what} tells {} ({}): {text}", canary.secret, canary.kind);
    }
}

/// A daemon that logs everything, to a file.
fn talkative(home: Home) -> (Daemon, PathBuf) {
    let log = home.path("log");
    let mut command = home.command();
    command.env("ABRIDGED_LOG", "trace").stderr(Stdio::from(fs::File::create(&log).expect("a file")));
    let mut daemon = Daemon::of(home, command);
    daemon.ok("initialize", json!({"protocolVersion": 1, "clientInfo": {"name": "test", "version": "0"}}));
    (daemon, log)
}

/// All that is told of a compaction of `path`, and the line it wrote.
fn compacted(daemon: &mut Daemon, path: &PathBuf) -> (Value, Vec<(&'static str, String)>, Value) {
    let session = daemon.load(path);
    let params = json!({"sessionId": session, "keepRecentTokens": 20, "dryRun": true});
    let plan = daemon.ok("session/compact", params)["preparation"].clone();
    let mut told = vec![("the plan", plan.to_string())];
    daemon.events.clear();
    let params = json!({"sessionId": session, "keepRecentTokens": 20, "wait": true, "instructions": "keep the keys"});
    let done = daemon.ok("session/compact", params);
    assert_eq!(done["outcome"], "completed", "{done}");
    told.push(("the answer", done.to_string()));
    let text = fs::read_to_string(path).expect("a file");
    let entry: Value = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .rfind(|it: &Value| it["type"] == "compaction")
        .expect("a compaction");
    // The entry, and the lines for other programs behind it.
    let at = text.rfind("{\"type\":\"compaction\"").expect("its line");
    let line = text[at..].to_owned();
    told.extend([("the entry", line), ("the events", json!(daemon.events).to_string())]);
    (plan, told, entry)
}

#[test]
fn there_are_enough_canaries() {
    let all = canaries();
    let mut kinds: Vec<&str> = all.iter().map(|canary| canary.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert!(kinds.len() >= 60 && all.len() > 120, "{} of {} kinds", all.len(), kinds.len());
    assert!(all.iter().all(|canary| canary.text.contains(&canary.secret)));
}

#[test]
fn no_secret_is_in_a_summary_or_in_what_is_told_of_it() {
    let all = canaries();
    // A few at a time, so that a summary has room for what they stand in.
    for some in all.chunks(16) {
        let home = Home::new();
        let path = planted(&home, some);
        let before = fs::read(&path).expect("a file");
        let (mut daemon, log) = talkative(home);
        let (plan, told, entry) = compacted(&mut daemon, &path);
        assert!(plan["previousSummary"].as_str().is_some_and(|summary| summary.contains("[REDACTED:")));
        assert!(entry["summary"].as_str().is_some_and(|summary| summary.contains("[REDACTED:")));
        for (what, text) in &told {
            nothing_of(some, what, text);
        }
        assert!(fs::read(&path).expect("a file").starts_with(&before), "what was said keeps its bytes");
        // Once more, on top of our own.
        let session =
            daemon.events.iter().find_map(|frame| frame["params"]["sessionId"].as_str()).expect("an event").to_owned();
        let texts: Vec<Value> = some.iter().map(|canary| assistant(&canary.text)).collect();
        let mut messages = vec![user("Go on with them.")];
        messages.extend(texts);
        messages.extend([user("And now?"), assistant("It is done.")]);
        daemon.ok("session/append", json!({"sessionId": session, "messages": messages}));
        let (_, told, _) = compacted(&mut daemon, &path);
        for (what, text) in &told {
            nothing_of(some, what, text);
        }
        let (status, _) = daemon.end();
        assert!(status.success());
        nothing_of(some, "the log", &fs::read_to_string(&log).expect("a file"));
    }
}

#[test]
fn with_redaction_off_everything_is_as_it_was() {
    let home = Home::new();
    home.settings(r#"{"redaction": {"enabled": false}}"#);
    let some: Vec<Canary> = canaries().into_iter().take(4).collect();
    let path = planted(&home, &some);
    let (mut daemon, _) = talkative(home);
    let (plan, told, entry) = compacted(&mut daemon, &path);
    let earlier = plan["previousSummary"].as_str().expect("a summary");
    let summary = entry["summary"].as_str().expect("a summary");
    assert!(some.iter().all(|canary| stands_in(earlier, canary)));
    assert!(some.iter().any(|canary| stands_in(summary, canary)), "{summary}");
    assert!(told.iter().all(|(_, text)| !text.contains("[REDACTED:")));
}
