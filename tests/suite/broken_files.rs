//! Session files with lines as nobody would write them.

use crate::{
    mutator::{mutant, mutations, seed},
    support::{Daemon, Home, assistant, calls, entries, header, result, user},
    wire::Dice,
};
use abridged::{
    conversation::{
        context::{self, check::violations},
        entry::{Entry, Head},
    },
    log::{
        files,
        index::{Index, Spot},
        sealed::Blocking,
    },
    prompts::Prompts,
};
use serde_json::{Value, json};
use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

/// A session with everything that has fields of its own.
fn lines() -> Vec<String> {
    let messages =
        [user("one"), calls(&["a", "b"]), result("a", "x"), result("b", "y"), assistant("two"), user("three")];
    let mut lines = entries(&messages);
    for more in [
        json!({"type": "context_edit", "targetId": "e2", "replacement": {"content": "less"}}),
        json!({"type": "custom", "customType": "abridged.pin", "data": {"entryId": "e0", "at": "t"}}),
        json!({"type": "compaction", "summary": "S", "firstKeptEntryId": "e4", "tokensBefore": 7, "details": {"readFiles": ["a"]},
               "preserveData": {"abridged": {"entryId": "e8", "pins": [{"entryId": "e0", "text": "one", "at": "t"}], "edits": []}}}),
        json!({"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 0}}),
        json!({"type": "compaction", "summary": "S4", "keepLastMessages": 2, "tokensBefore": 1}),
        json!({"type": "custom", "customType": "abridged.undo", "data": {"compactionEntryId": "e10"}}),
        json!({"type": "custom_message", "customType": "note", "content": [{"type": "text", "text": "n"}], "display": true}),
        json!({"type": "branch_summary", "fromId": "e3", "summary": "B"}),
        json!({"type": "label", "targetId": "e0", "label": "L"}),
        json!({"type": "session_info", "name": "N"}),
        json!({"type": "model_change", "provider": "p", "modelId": "m"}),
        json!({"type": "thinking_level_change", "thinkingLevel": "low"}),
        json!({"type": "custom", "customType": "abridged.session", "data": {"systemPrompt": "P", "tools": [], "settings": {}}}),
        json!({"type": "usage", "purpose": "compaction", "usage": {"input": 1}}),
        json!({"type": "reset_boundary"}),
        json!({"type": "message", "message": {"role": "user", "content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]}}),
        json!({"type": "message", "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "h", "thinkingSignature": "s"}],
               "usage": {"input": 5, "output": 6, "totalTokens": 11}, "provider": "p", "model": "m", "stopReason": "stop"}}),
    ] {
        let mut line = more;
        line["id"] = json!(format!("e{}", lines.len()));
        line["parentId"] = json!(format!("e{}", lines.len() - 1));
        line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        lines.push(line);
    }
    lines.iter().map(Value::to_string).collect()
}

/// Opens a file in which some lines are broken: what is whole is there, and the context is one a provider takes.
fn open_broken(path: &Path, broken: &[usize], lines: &[String], head_is_right: bool) {
    let opened = match files::open_read_only(path, &Blocking::is_allowed_here()) {
        Ok(opened) => opened,
        Err(error) => return assert!(!head_is_right, "{error}"),
    };
    let context = context::build(opened.history.path(), &Prompts::default());
    let messages = context.messages().iter().map(|it| serde_json::from_str(&it.json()).expect("a message is JSON"));
    assert_eq!(violations(&messages.collect::<Vec<_>>()), Vec::<String>::new());
    if !head_is_right {
        return;
    }
    let index = opened.history.index().expect("a small file has an index at once");
    let blocking = Blocking::is_allowed_here();
    let found = opened.history.wanted(index.after(None)).read(&blocking).map(|entry| entry.expect("it can be read"));
    let found: Vec<_> = found.map(|entry| entry.line().to_owned()).collect();
    for (at, line) in lines.iter().enumerate().filter(|(at, _)| !broken.contains(at)) {
        assert!(found.contains(line), "line {at} is whole and is not found");
    }
}

/// The line is quarantined like any other that is no entry; before, the whole session could not be opened.
#[test]
fn a_line_with_a_field_twice_takes_nothing_else_away() {
    let mut daemon = Daemon::start();
    let lines = [
        header("twice").to_string(),
        r#"{"type":"session_info","id":"a","parentId":null,"timestamp":"t","timestamp":"u","name":"N"}"#.to_owned(),
        json!({"type": "message", "id": "b", "parentId": "a", "timestamp": "t", "message": user("one")}).to_string(),
        json!({"type": "compaction", "id": "c", "parentId": "b", "timestamp": "t", "summary": "S", "firstKeptEntryId": "b"})
            .to_string(),
    ];
    let path = daemon.home.path("twice.jsonl");
    fs::write(&path, lines.join("\n") + "\n").expect("a file");
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!((&loaded["repairs"][0]["kind"], &loaded["repairs"][0]["line"]), (&json!("corrupt_line"), &json!(2)));
    let page = daemon.ok("session/entries", json!({"sessionId": "twice", "branch": "all"}));
    let ids: Vec<&Value> = page["entries"].as_array().expect("entries").iter().map(|entry| &entry["id"]).collect();
    assert_eq!(ids, ["a", "b", "c"], "a placeholder stands for the line");
    assert_eq!(page["entries"][0]["customType"], "abridged.corrupt");
}

#[test]
fn mutated_session_files_are_read_with_everything_that_is_whole() {
    /// So many lines are broken for each file that is read.
    const TOGETHER: usize = 8;
    let mut dice = Dice::new(seed());
    let home = Home::new();
    let path = home.path("broken.jsonl");
    let lines = lines();
    let head = vec![header("broken").to_string()];
    for round in 0..mutations() / TOGETHER {
        let mut index = Index::default();
        let mut now: Vec<Vec<u8>> = lines.iter().map(|line| line.clone().into_bytes()).collect();
        let mut broken = Vec::new();
        for _ in 0..TOGETHER {
            let mutant = mutant(&mut dice, &lines);
            let text = String::from_utf8_lossy(&mutant);
            let read = catch_unwind(AssertUnwindSafe(|| {
                drop(Entry::parse((*text).into()));
                let head = Head::read(&text).ok();
                head.and_then(|head| index.push(&head, Spot { offset: 0, length: 0 }, |_| false));
            }));
            assert!(read.is_ok(), "{text}");
            let at = dice.below(now.len());
            now[at] = mutant;
            broken.push(at);
        }
        let places: Vec<_> = index.after(None).collect();
        places.iter().for_each(|place| drop(index.path_to(*place)));
        let head_is_right = dice.below(8) > 0;
        let first = if head_is_right { head[0].clone().into_bytes() } else { mutant(&mut dice, &head) };
        let mut bytes = [vec![first], now].concat().join(&b'\n');
        if dice.below(4) > 0 {
            bytes.push(b'\n');
        } else {
            // The end is broken off too; what of it is whole is not known.
            broken.push(lines.len() - 1);
        }
        fs::write(&path, &bytes).expect("a file");
        let opened = catch_unwind(AssertUnwindSafe(|| open_broken(&path, &broken, &lines, head_is_right)));
        assert!(opened.is_ok(), "seed {}, round {round}:\n{}", seed(), String::from_utf8_lossy(&bytes));
    }
}

/// A count that is no number costs the usage of its answer and nothing else.
#[test]
fn an_answer_with_an_invalid_usage_stays_in_the_context() {
    for usage in [r#"{"input":"12","output":1}"#, r#"{"input":true}"#, r#"{"totalTokens":1e400}"#] {
        let mut daemon = Daemon::start();
        let messages = [user("What is it?"), assistant("It is a parser."), user("Go on.")];
        let lines: Vec<Value> = std::iter::once(header("odd")).chain(entries(&messages)).collect();
        let path = daemon.home.session("odd.jsonl", &lines);
        let text = std::fs::read_to_string(&path).expect("a file");
        let at = text.find("\"role\":\"assistant\"").expect("an answer");
        std::fs::write(&path, format!("{}\"usage\":{usage},{}", &text[..at], &text[at..])).expect("a file");
        let loaded = daemon.ok("session/load", json!({"path": path, "model": "anthropic/claude-sonnet-4-5"}));
        let kinds: Vec<&Value> = loaded["repairs"].as_array().expect("a list").iter().map(|it| &it["kind"]).collect();
        assert_eq!(kinds, ["invalid_usage"], "{loaded:#}");
        assert_eq!(loaded["session"]["usage"]["source"], "estimate");
        let session = &loaded["session"]["sessionId"];
        for (format, pointer) in [("anthropic", "/body/messages"), ("openai_chat", "/body/messages")] {
            let context = daemon.ok("session/context", json!({"sessionId": session, "format": format}));
            let sent = context.pointer(pointer).expect("messages").to_string();
            assert!(sent.contains("It is a parser."), "{usage}: {sent}");
        }
        let message = json!({"role": "assistant", "content": "x", "usage": {"input": "12"}});
        let error = daemon.err("session/append", json!({"sessionId": session, "messages": [message]}));
        assert_eq!(error["data"]["path"], "messages[0].usage.input", "{error}");
    }
}
