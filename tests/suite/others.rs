//! Other programs go on with files of this one: what pi's rules make of them.

use crate::{
    provider::{Format, Provider},
    summarizing::{good_model, settings},
    support::*,
};
use serde_json::{Value, json};
use std::{collections::HashMap, fs, path::Path};

/// A context by pi's rules, as far as entries matter: the summary in force, and what is shown with its edits applied.
#[derive(Debug)]
struct Shown {
    summary: Option<String>,
    entries: Vec<Value>,
}

impl Shown {
    fn of(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("a file");
        let lines: Vec<Value> = text.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let by_id: HashMap<&str, &Value> =
            lines.iter().map(|line| (line["id"].as_str().expect("an id"), line)).collect();
        let parent = |line: &&Value| line["parentId"].as_str().and_then(|id| by_id.get(id).copied());
        let mut branch: Vec<&Value> = std::iter::successors(lines.last(), parent).collect();
        branch.reverse();
        let latest = branch.iter().rposition(|line| line["type"] == "compaction");
        let start = latest.map_or(0, |place| {
            let kept = branch[..place].iter().position(|line| line["id"] == branch[place]["firstKeptEntryId"]);
            kept.unwrap_or(place)
        });
        let shown = &branch[start..];
        let edits: HashMap<&str, &Value> = shown
            .iter()
            .filter(|line| line["type"] == "context_edit")
            .map(|line| (line["targetId"].as_str().expect("a target"), &line["replacement"]))
            .collect();
        let mut entries = Vec::new();
        for line in shown {
            let mut line = (*line).clone();
            let is_message = line["type"] == "message";
            if !is_message && line["type"] != "custom_message" {
                continue;
            }
            match edits.get(line["id"].as_str().expect("an id")) {
                Some(Value::Null) => continue,
                Some(edit) if is_message => line["message"]["content"] = edit["content"].clone(),
                Some(edit) => line["content"] = edit["content"].clone(),
                None => {}
            }
            entries.push(line);
        }
        let summary = latest.map(|place| branch[place]["summary"].as_str().expect("a summary").to_owned());
        Self { summary, entries }
    }

    /// The contents of messages with the ids of their entries.
    fn messages(&self) -> Vec<(String, Value)> {
        let own = self.entries.iter().filter(|line| line["customType"] != "abridged.carried");
        own.map(|line| {
            let content = if line["type"] == "message" { &line["message"]["content"] } else { &line["content"] };
            (line["id"].as_str().expect("an id").to_owned(), blocks(content))
        })
        .collect()
    }

    /// The texts that stand in custom messages of ours.
    fn carried(&self) -> Vec<String> {
        let ours = self.entries.iter().filter(|line| line["customType"] == "abridged.carried");
        ours.map(|line| line["content"].as_str().expect("a text").to_owned()).collect()
    }
}

fn blocks(content: &Value) -> Value {
    match content.as_str() {
        Some(text) => json!([{"type": "text", "text": text}]),
        None => content.clone(),
    }
}

fn file_of(daemon: &mut Daemon, session: &str) -> std::path::PathBuf {
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    status["session"]["path"].as_str().expect("a path").into()
}

/// Both contexts have the same messages, and what the frame of ours repeats stands in lines for others.
fn agree(daemon: &mut Daemon, session: &str) -> Shown {
    let path = file_of(daemon, session);
    let shown = Shown::of(&path);
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let compaction = &context["compactionEntryId"];
    let ids = context["entryIds"].as_array().expect("ids");
    let messages = context["messages"].as_array().expect("messages");
    let mut ours = Vec::new();
    let mut frame = String::new();
    for (id, message) in ids.iter().zip(messages) {
        match id.as_str() {
            None if frame.is_empty() && compaction.is_string() => {
                frame = message["content"][0]["text"].as_str().expect("a text").to_owned();
            }
            Some(id) => ours.push((id.to_owned(), blocks(&message["content"]))),
            None => {}
        }
    }
    assert_eq!(shown.messages(), ours, "{}", fs::read_to_string(&path).expect("a file"));
    let behind = frame.rsplit("</summary>").next().unwrap_or_default();
    for carried in shown.carried() {
        assert_eq!(behind.matches(inner(&carried)).count(), 1, "{carried}\n{frame}");
    }
    let pinned = frame.contains("<pinned>") || frame.contains("<user-message>");
    assert_eq!(pinned && !awaits(messages), !shown.carried().is_empty(), "{frame}");
    match (compaction.as_str(), &shown.summary) {
        (None, None) => {}
        (None, Some(summary)) => assert!(summary.contains("was undone"), "{summary}"),
        (Some(id), summary) => {
            let entry = daemon.ok("session/entry", json!({"sessionId": session, "entryId": id}));
            assert_eq!(entry["entry"]["summary"].as_str(), summary.as_deref());
        }
    }
    shown
}

/// The text between the tags of a frame.
fn inner(framed: &str) -> &str {
    let start = framed.find("<pinned>\n").map_or(0, |at| at + "<pinned>\n".len());
    let end = framed.rfind("\n</pinned>").unwrap_or(framed.len());
    &framed[start..end]
}

/// Whether the last answer waits for results: then nothing may stand behind it.
fn awaits(messages: &[Value]) -> bool {
    messages.last().is_some_and(|message| message.to_string().contains("the call was interrupted"))
}

fn loaded(daemon: &mut Daemon, name: &str, messages: &[Value]) -> String {
    let path = session_of(&daemon.home, name, messages);
    daemon.load(&path)
}

/// The context of a daemon that knows only the file, and of this one, are the same.
fn same_reopened(daemon: &mut Daemon, session: &str) {
    let path = file_of(daemon, session);
    let mut other = Daemon::start();
    let id = other.ok("session/load", json!({"path": path, "readOnly": true}))["session"]["sessionId"].clone();
    let here = daemon.ok("session/context", json!({"sessionId": session}));
    let there = other.ok("session/context", json!({"sessionId": id}));
    assert_eq!(here["messages"], there["messages"]);
    assert_eq!(here["entryIds"], there["entryIds"]);
    let leaf = |daemon: &mut Daemon, id: &Value| {
        daemon.ok("session/status", json!({"sessionId": id}))["session"]["leafEntryId"].clone()
    };
    assert_eq!(leaf(daemon, &json!(session)), leaf(&mut other, &id));
}

#[test]
fn a_usage_entry_has_the_fields_of_pi() {
    let home = Home::new();
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(good_model);
    home.settings(&settings(&provider, Format::OpenAiChat, json!({})));
    let mut daemon = Daemon::at(home);
    let session = loaded(&mut daemon, "usage", &turns(20));
    daemon.compact(&session, 600);
    let path = file_of(&mut daemon, &session);
    let text = fs::read_to_string(path).expect("a file");
    let mut seen = 0;
    for line in text.lines().filter(|line| line.contains(r#""type":"usage""#)) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["kind"], line["purpose"], "{line:#}");
        for part in ["input", "output", "cacheRead", "cacheWrite", "total"] {
            assert!(line["usage"]["cost"][part].is_number(), "{line:#}");
        }
        for part in ["input", "output", "cacheRead", "cacheWrite", "totalTokens"] {
            assert!(line["usage"][part].is_number(), "{line:#}");
        }
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn a_short_answer_is_stored_with_everything_pi_reads() {
    let mut daemon = Daemon::start();
    let new = daemon.ok("session/new", json!({"cwd": "/project"}));
    let session = new["session"]["sessionId"].as_str().expect("an id").to_owned();
    let messages = [
        json!({"role": "user", "content": "list the files"}),
        json!({"role": "assistant", "content": [{"type": "toolCall", "id": "c1", "name": "ls"}]}),
        json!({"role": "toolResult", "toolCallId": "c1", "content": "a.rs"}),
        json!({"role": "assistant", "content": "There is one."}),
    ];
    let answer = daemon.append(&session, &messages);
    assert_eq!(answer["usage"]["source"], "estimate", "a usage of zeros measures nothing");
    let entries = daemon.ok("session/entries", json!({"sessionId": session}))["entries"].clone();
    let message = |at: usize| entries[at]["message"].clone();
    assert_eq!(message(1)["stopReason"], "toolUse");
    assert_eq!(message(2)["toolName"], "ls");
    assert_eq!(message(2)["isError"], false);
    assert_eq!(message(3)["content"], json!([{"type": "text", "text": "There is one."}]));
    assert_eq!(message(3)["usage"]["cost"]["total"], 0);
    assert_eq!((&message(3)["provider"], &message(3)["api"]), (&json!("unknown"), &json!("unknown")));
    assert!((0..4).all(|at| message(at)["timestamp"].is_number()));
    let model = daemon.ok("session/status", json!({"sessionId": session}))["session"]["model"].clone();
    assert_eq!(model, Value::Null, "a placeholder names no model");
    daemon.ok("session/configure", json!({"sessionId": session, "model": "anthropic/claude-sonnet-4-5"}));
    daemon
        .append(&session, &[json!({"role": "user", "content": "and?"}), json!({"role": "assistant", "content": "no"})]);
    let entries = daemon.ok("session/entries", json!({"sessionId": session}))["entries"].clone();
    let last = entries.as_array().expect("entries").last().expect("one")["message"].clone();
    assert_eq!(
        (&last["provider"], &last["model"], &last["api"]),
        (&json!("anthropic"), &json!("claude-sonnet-4-5"), &json!("anthropic-messages"))
    );
}

/// A conversation that ends with results too large for the window.
fn large_results() -> Vec<Value> {
    let mut messages = turns(4);
    for at in 0..3 {
        let id = format!("big{at}");
        messages.extend([calls(&[&id]), result(&id, &text_of(9_000, &format!("big_{at}")))]);
    }
    messages.push(assistant("All read."));
    messages
}

fn small_window() -> Home {
    let home = Home::new();
    home.settings(
        &json!({
            "models": [{"provider": "p", "id": "m", "api": "client", "contextWindow": 32_768}],
            "defaultModel": "p/m", "tokens": {"estimator": "chars"}
        })
        .to_string(),
    );
    home
}

#[test]
fn elided_results_are_elided_for_pi_too_until_the_undo() {
    let mut daemon = Daemon::at(small_window());
    let session = loaded(&mut daemon, "elided", &large_results());
    agree(&mut daemon, &session);
    let answer = daemon.ok(
        "session/compact",
        json!({"sessionId": session, "method": "extractive", "keepRecentTokens": 28_000, "wait": true}),
    );
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    let leaf = daemon.ok("session/status", json!({"sessionId": session}))["session"]["leafEntryId"].clone();
    assert_eq!(leaf, answer["result"]["entryId"], "lines for others are no leaf");
    let shown = agree(&mut daemon, &session);
    assert!(shown.messages().iter().any(|(_, content)| content.to_string().contains("left out")), "{shown:#?}");
    daemon.append(&session, &[user("go on")]);
    agree(&mut daemon, &session);
    same_reopened(&mut daemon, &session);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    let shown = agree(&mut daemon, &session);
    assert!(shown.messages().iter().all(|(_, content)| !content.to_string().contains("left out")));
    same_reopened(&mut daemon, &session);
}

#[test]
fn an_undo_without_later_messages_takes_the_compaction_off_the_path() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "off", &turns(6));
    daemon.compact(&session, 300);
    agree(&mut daemon, &session);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    let shown = agree(&mut daemon, &session);
    assert_eq!(shown.summary, None);
    same_reopened(&mut daemon, &session);
}

#[test]
fn an_undo_keeps_the_pins_and_settings_since_the_compaction() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "since", &turns(6));
    daemon.compact(&session, 300);
    daemon.ok("session/configure", json!({"sessionId": session, "systemPrompt": "Be brief.", "thinkingLevel": "high"}));
    let pinned = daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e2"}));
    assert_eq!(pinned["entryId"], "e2");
    agree(&mut daemon, &session);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    agree(&mut daemon, &session);
    same_reopened(&mut daemon, &session);
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!(status["session"]["thinkingLevel"], "high", "what was said since holds");
    daemon.compact(&session, 300);
    let shown = agree(&mut daemon, &session);
    assert_eq!(shown.carried().iter().filter(|text| text.contains("<pinned>")).count(), 1, "the pin holds");
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    agree(&mut daemon, &session);
    same_reopened(&mut daemon, &session);
}

#[test]
fn an_undo_with_later_messages_brings_back_the_context_before_for_pi() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "back", &turns(6));
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e0"}));
    daemon.compact(&session, 900);
    daemon.append(&session, &turns(3));
    agree(&mut daemon, &session);
    daemon.compact(&session, 100);
    daemon.append(&session, &[user("a"), assistant("b")]);
    agree(&mut daemon, &session);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    let shown = agree(&mut daemon, &session);
    assert!(shown.summary.is_some(), "the first compaction holds again");
    same_reopened(&mut daemon, &session);
    daemon.append(&session, &[user("c"), assistant("d")]);
    agree(&mut daemon, &session);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    let shown = agree(&mut daemon, &session);
    assert_eq!(shown.carried(), Vec::<String>::new(), "what was carried stands in its place again");
    same_reopened(&mut daemon, &session);
    let error = daemon.err("session/undo_compaction", json!({"sessionId": session}));
    assert_eq!(error["data"]["kind"], "compaction");
    daemon.compact(&session, 300);
    agree(&mut daemon, &session);
    daemon.append(&session, &[user("e"), assistant("f")]);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    agree(&mut daemon, &session);
    same_reopened(&mut daemon, &session);
}

#[test]
fn pins_and_the_newest_request_reach_pi_once_and_go_when_unpinned() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "carried", &turns(6));
    daemon.ok("session/pin", json!({"sessionId": session, "text": "Never touch the lock files."}));
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e1"}));
    daemon.append(&session, &turns(1));
    daemon.compact(&session, 60);
    let shown = agree(&mut daemon, &session);
    let with = |shown: &Shown, text: &str| shown.carried().iter().filter(|carried| carried.contains(text)).count();
    assert_eq!(with(&shown, "Never touch the lock files."), 1);
    assert_eq!(with(&shown, "<user-message>"), 1, "{shown:#?}");
    // A later compaction, whose kept part has the lines of the first one in it, doubles nothing.
    daemon.append(&session, &[user("more"), assistant(&text_of(100, "more"))]);
    // oh-my-pi knows no edits: for it the line that is kept must be the only one.
    let path = file_of(&mut daemon, &session);
    let lines = || {
        let text = fs::read_to_string(&path).expect("a file");
        let ours = |line: &&str| line.contains("abridged.carried") && line.contains("Never touch the lock files.");
        text.lines().filter(ours).count()
    };
    assert_eq!(lines(), 1);
    daemon.compact(&session, 101);
    assert_eq!(lines(), 1);
    let shown = agree(&mut daemon, &session);
    assert_eq!(with(&shown, "Never touch the lock files."), 1);
    for _ in 0..3 {
        daemon.append(&session, &turns(2));
        daemon.compact(&session, 100);
        let shown = agree(&mut daemon, &session);
        assert_eq!(with(&shown, "Never touch the lock files."), 1);
    }
    daemon.ok("session/unpin", json!({"sessionId": session, "text": "Never touch the lock files."}));
    let shown = agree(&mut daemon, &session);
    assert_eq!(with(&shown, "Never touch the lock files."), 0);
    same_reopened(&mut daemon, &session);
}

/// A text of the user between a call and its results would make the request invalid.
#[test]
fn texts_wait_until_every_call_has_its_result() {
    let mut daemon = Daemon::start();
    let mut messages = turns(6);
    messages.extend([user("One more thing."), calls(&["x", "y"])]);
    let session = loaded(&mut daemon, "waits", &messages);
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e0"}));
    daemon.compact(&session, 1);
    assert_eq!(Shown::of(&file_of(&mut daemon, &session)).carried(), Vec::<String>::new());
    daemon.append(&session, &[result("x", "1")]);
    assert_eq!(Shown::of(&file_of(&mut daemon, &session)).carried(), Vec::<String>::new());
    let answer = daemon.append(&session, &[result("y", "2")]);
    assert_eq!(answer["entryIds"].as_array().expect("ids").len(), 1, "lines for others are not the client's");
    assert_eq!(answer["entryIds"][0], answer["leafEntryId"]);
    let shown = agree(&mut daemon, &session);
    assert_eq!(shown.carried().len(), 2);
    daemon.append(&session, &[assistant("done")]);
    assert_eq!(agree(&mut daemon, &session).carried().len(), 2);
}

/// A session with a pinned text and a compaction between a call and its result. The text is held back.
fn held_back(daemon: &mut Daemon) -> String {
    let mut messages = turns(6);
    messages.extend([user("One more thing."), calls(&["x"])]);
    let session = loaded(daemon, "held", &messages);
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e0"}));
    daemon.compact(&session, 1);
    session
}

#[test]
fn texts_that_were_held_back_are_not_added_to_another_branch() {
    let mut daemon = Daemon::start();
    let session = held_back(&mut daemon);
    daemon.ok("session/append", json!({"sessionId": session, "messages": [user("elsewhere")], "parentEntryId": "e3"}));
    let shown = agree(&mut daemon, &session);
    assert_eq!((shown.summary, shown.entries.len()), (None, 5), "{:#?}", shown.entries);
}

#[test]
fn texts_that_were_held_back_follow_a_result_whose_client_names_the_leaf() {
    let mut daemon = Daemon::start();
    let session = held_back(&mut daemon);
    let leaf = daemon.ok("session/status", json!({"sessionId": session}))["session"]["leafEntryId"].clone();
    daemon.ok("session/append", json!({"sessionId": session, "messages": [result("x", "1")], "parentEntryId": leaf}));
    assert_eq!(agree(&mut daemon, &session).carried().len(), 2);
}

/// A pin, too, waits for the results, though a text of the compaction is there already.
#[test]
fn a_pin_between_a_call_and_its_result_reaches_pi_behind_the_result() {
    let mut daemon = Daemon::start();
    let mut messages = turns(6);
    messages.push(user("One more thing."));
    let session = loaded(&mut daemon, "late", &messages);
    daemon.append(&session, &[assistant(&text_of(100, "more"))]);
    daemon.compact(&session, 1);
    assert_eq!(agree(&mut daemon, &session).carried().len(), 1);
    daemon.append(&session, &[calls(&["x"])]);
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e0"}));
    assert_eq!(Shown::of(&file_of(&mut daemon, &session)).carried().len(), 1);
    daemon.append(&session, &[result("x", "1")]);
    assert_eq!(agree(&mut daemon, &session).carried().len(), 2);
    daemon.append(&session, &[assistant("done")]);
    assert_eq!(agree(&mut daemon, &session).carried().len(), 2);
}

/// A client that names the leaf it knows goes on behind the lines for other programs, too.
#[test]
fn an_append_behind_a_compaction_is_behind_its_lines_for_others() {
    let mut daemon = Daemon::at(small_window());
    let session = loaded(&mut daemon, "behind", &large_results());
    let answer = daemon.ok(
        "session/compact",
        json!({"sessionId": session, "method": "extractive", "keepRecentTokens": 28_000, "wait": true}),
    );
    let compaction = answer["result"]["entryId"].clone();
    let on = |daemon: &mut Daemon, text: &str| {
        daemon
            .ok("session/append", json!({"sessionId": session, "messages": [user(text)], "parentEntryId": compaction}))
    };
    on(&mut daemon, "go on");
    let elided = |shown: &Shown| shown.messages().iter().any(|(_, content)| content.to_string().contains("left out"));
    assert!(elided(&agree(&mut daemon, &session)));
    // And once more from there, as a branch.
    on(&mut daemon, "or do this");
    let shown = agree(&mut daemon, &session);
    assert!(elided(&shown) && !format!("{shown:?}").contains("go on"));
    same_reopened(&mut daemon, &session);
    // And from another branch.
    daemon.ok("session/append", json!({"sessionId": session, "messages": [user("elsewhere")], "parentEntryId": "e0"}));
    assert!(!elided(&agree(&mut daemon, &session)));
    on(&mut daemon, "back again");
    assert!(elided(&agree(&mut daemon, &session)));
}

/// Lines behind the leaf that a client knows are not lost when the client names that leaf.
#[test]
fn an_append_behind_the_leaf_is_behind_its_markers() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "leaf", &turns(2));
    daemon.ok(
        "session/configure",
        json!({"sessionId": session, "systemPrompt": "Be brief.", "model": "anthropic/claude-sonnet-4-5"}),
    );
    let leaf = daemon.ok("session/status", json!({"sessionId": session}))["session"]["leafEntryId"].clone();
    daemon.ok("session/configure", json!({"sessionId": session, "systemPrompt": "Be long."}));
    daemon.ok("session/append", json!({"sessionId": session, "messages": [user("go on")], "parentEntryId": leaf}));
    let body = daemon.ok("session/context", json!({"sessionId": session, "format": "anthropic"}))["body"].to_string();
    assert!(body.contains("Be long."), "{body}");
}

#[test]
fn a_pinned_text_is_whole_for_pi_though_it_was_edited() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "whole", &turns(2));
    let edit = json!({"type": "context_edit", "id": "edit", "targetId": "e0", "replacement": {"content": "Edited elsewhere."}});
    let session = continue_elsewhere(&mut daemon, &session, &[edit]);
    let edited = |shown: &Shown| format!("{shown:?}").contains("Edited elsewhere.");
    assert!(edited(&agree(&mut daemon, &session)));
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e0"}));
    assert!(!edited(&agree(&mut daemon, &session)));
    daemon.ok("session/unpin", json!({"sessionId": session, "entryId": "e0"}));
    assert!(edited(&agree(&mut daemon, &session)));
}

/// Appends a line as a program does that has read the file up to `parent` only.
fn write_stale(path: &Path, parent: &str, id: &str) {
    let line = json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z", "message": user("from elsewhere")});
    let mut file = fs::OpenOptions::new().append(true).open(path).expect("a file");
    std::io::Write::write_all(&mut file, format!("{line}\n").as_bytes()).expect("a line");
}

#[test]
fn a_program_that_goes_on_from_an_earlier_entry_is_noticed() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "stale", &turns(2));
    let path = file_of(&mut daemon, &session);
    let answer = daemon.append(&session, &[user("not read there"), assistant("nor this")]);
    let leaf = answer["leafEntryId"].as_str().expect("an id").to_owned();
    write_stale(&path, "e7", "other1");
    let notice = daemon.until("notice")["params"]["event"].clone();
    assert_eq!(notice["severity"], "warning");
    let detail = notice["detail"].as_str().expect("a text");
    assert!(detail.contains("the last 2 of") && detail.contains(&format!("parentEntryId {leaf}")), "{detail}");
    agree(&mut daemon, &session);
    // The way back that the notice names.
    daemon.ok("session/append", json!({"sessionId": session, "messages": [user("back")], "parentEntryId": leaf}));
    let shown = agree(&mut daemon, &session);
    assert!(format!("{shown:?}").contains("not read there") && !format!("{shown:?}").contains("from elsewhere"));
}

#[test]
fn a_program_that_goes_on_from_the_leaf_is_no_surprise() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "fresh", &turns(2));
    let path = file_of(&mut daemon, &session);
    write_stale(&path, "e7", "other1");
    write_stale(&path, "other1", "other2");
    daemon.next_within(std::time::Duration::from_secs(30), |frame| frame["params"]["entryId"] == "other2");
    daemon.ok("ping", json!({}));
    assert!(!daemon.kinds().contains(&"notice".to_owned()), "{:#?}", daemon.events);
    agree(&mut daemon, &session);
}

#[test]
fn titles_are_read_and_written_as_oh_my_pi_does() {
    let mut daemon = Daemon::start();
    let new = daemon.ok("session/new", json!({"cwd": "/project", "title": "The parser", "model": "local/qwen"}));
    let text = fs::read_to_string(new["session"]["path"].as_str().expect("a path")).expect("a file");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&lines[0]["title"], &lines[0]["titleSource"]), (&json!("The parser"), &json!("user")));
    assert_eq!((&lines[1]["modelId"], &lines[1]["model"]), (&json!("qwen"), &json!("local/qwen")));
    let mut theirs = header("theirs");
    theirs["title"] = "old".into();
    let renamed = json!({"type": "title_change", "id": "t", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z", "title": "new", "source": "user"});
    let path = daemon.home.session("theirs.jsonl", &[theirs, renamed]);
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!(loaded["session"]["title"], "new");
}

#[test]
fn images_of_oh_my_pi_are_sent() {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use sha2::{Digest, Sha256};
    let mut daemon = Daemon::start();
    let bytes = b"the bytes of an image";
    let hash = format!("{:x}", Sha256::digest(bytes));
    let (folder, blobs) = (daemon.home.path("agent/sessions/-project"), daemon.home.path("agent/blobs"));
    fs::create_dir_all(&folder).expect("a folder");
    fs::create_dir_all(&blobs).expect("a folder");
    fs::write(blobs.join(&hash), bytes).expect("a file");
    let image = |hash: &str| json!({"type": "image", "data": format!("blob:sha256:{hash}"), "mimeType": "image/png"});
    let message = json!({"role": "user", "content": [image(&hash), image(&"0".repeat(64))], "timestamp": 1});
    let path =
        daemon.home.session("agent/sessions/-project/s.jsonl", &[header("images"), entries(&[message])[0].clone()]);
    let session = daemon.load(&path);
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let content = &context["messages"][0]["content"];
    assert_eq!(content[0]["data"], STANDARD.encode(bytes));
    assert_eq!(content[1]["data"], format!("blob:sha256:{}", "0".repeat(64)));
    daemon.ok("session/configure", json!({"sessionId": session, "model": "anthropic/claude-sonnet-4-5"}));
    let body = daemon.ok("session/context", json!({"sessionId": session, "format": "anthropic"}))["body"].to_string();
    assert!(body.contains(&STANDARD.encode(bytes)) && body.contains("kept elsewhere"), "{body}");
}

fn elide(daemon: &mut Daemon, session: &str) -> Value {
    let params = json!({"sessionId": session, "method": "extractive", "keepRecentTokens": 28_000, "wait": true});
    let answer = daemon.ok("session/compact", params);
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    answer["result"].clone()
}

fn elided(shown: &Shown) -> usize {
    shown.messages().iter().filter(|(_, content)| content.to_string().contains("left out")).count()
}

/// Appends lines as another program does that has read everything, while no daemon has the session.
fn continue_elsewhere(daemon: &mut Daemon, session: &str, lines: &[Value]) -> String {
    let path = file_of(daemon, session);
    daemon.ok("session/close", json!({"sessionId": session}));
    let mut text = fs::read_to_string(&path).expect("a file");
    for line in lines {
        let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
        let mut line = line.clone();
        line["parentId"] = last["id"].clone();
        line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        text.push_str(&format!("{line}\n"));
    }
    fs::write(&path, text).expect("a file");
    daemon.load(&path)
}

#[test]
fn what_was_elided_stays_so_when_another_program_compacts() {
    let mut daemon = Daemon::at(small_window());
    let session = loaded(&mut daemon, "over", &large_results());
    let result = elide(&mut daemon, &session);
    let before = elided(&agree(&mut daemon, &session));
    assert!(before > 0);
    let theirs = json!({"type": "compaction", "id": "theirs", "summary": "By another program.", "firstKeptEntryId": result["firstKeptEntryId"], "tokensBefore": 9});
    let session = continue_elsewhere(&mut daemon, &session, &[theirs]);
    let shown = agree(&mut daemon, &session);
    assert_eq!((elided(&shown), shown.summary.as_deref()), (before, Some("By another program.")));
}

#[test]
fn a_later_edit_of_another_program_outlives_the_next_compaction() {
    let mut daemon = Daemon::at(small_window());
    let session = loaded(&mut daemon, "edited", &large_results());
    elide(&mut daemon, &session);
    let shown = agree(&mut daemon, &session);
    let target = shown.messages().into_iter().rev().find(|(_, content)| content.to_string().contains("left out"));
    let target = target.expect("an elided result").0;
    let edit = json!({"type": "context_edit", "id": "edit", "targetId": target, "replacement": {"content": "Edited elsewhere."}});
    let lines = [edit, json!({"type": "message", "id": "more", "message": user("more")})];
    let session = continue_elsewhere(&mut daemon, &session, &lines);
    agree(&mut daemon, &session);
    daemon.compact(&session, 9_500);
    let shown = agree(&mut daemon, &session);
    assert!(format!("{shown:?}").contains("Edited elsewhere."));
}

/// The compaction carries everything itself; its lines for others may be lost with the end of a write.
#[test]
fn a_write_that_ends_behind_its_compaction_changes_nothing_here() {
    let mut daemon = Daemon::at(small_window());
    let session = loaded(&mut daemon, "torn", &large_results());
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e0"}));
    elide(&mut daemon, &session);
    let whole = daemon.ok("session/context", json!({"sessionId": session}))["messages"].clone();
    let path = file_of(&mut daemon, &session);
    daemon.ok("session/close", json!({"sessionId": session}));
    let text = fs::read_to_string(&path).expect("a file");
    let end = text.find(r#"{"type":"compaction""#).and_then(|at| Some(at + text[at..].find('\n')? + 1));
    let end = end.expect("a compaction");
    assert!(text[end..].contains("context_edit") && text[end..].contains("abridged.carried"));
    fs::write(&path, &text[..end]).expect("a file");
    daemon.load(&path);
    assert_eq!(daemon.ok("session/context", json!({"sessionId": session}))["messages"], whole);
    // The next change brings the lines.
    daemon.append(&session, &[user("go on")]);
    agree(&mut daemon, &session);
}

/// An undo is one line here. The lines behind it are for other programs.
#[test]
fn a_torn_undo_loses_no_settings_and_no_pins() {
    let mut daemon = Daemon::start();
    let new = daemon.ok("session/new", json!({"cwd": "/project", "systemPrompt": "Old.", "title": "old"}));
    let session = new["session"]["sessionId"].as_str().expect("an id").to_owned();
    let ids = daemon.append(&session, &turns(6))["entryIds"].clone();
    daemon.compact(&session, 300);
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": ids[1]}));
    daemon.ok(
        "session/configure",
        json!({"sessionId": session, "systemPrompt": "New.", "title": "new", "model": "anthropic/claude-sonnet-4-5"}),
    );
    let path = file_of(&mut daemon, &session);
    let before = fs::read(&path).expect("a file").len();
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    daemon.ok("session/close", json!({"sessionId": session}));
    let lines = fs::read(&path).expect("a file");
    let mut undone = Vec::new();
    let ends = (before..lines.len()).filter(|&at| lines[at - 1] == b'\n');
    let mut cuts: Vec<usize> = (before..lines.len()).step_by(101).chain(ends).chain([lines.len()]).collect();
    cuts.sort_unstable();
    for cut in cuts {
        let torn = daemon.home.path(&format!("torn{cut}.jsonl"));
        fs::write(&torn, &lines[..cut]).expect("a file");
        let loaded = daemon.ok("session/load", json!({"path": torn}))["session"].clone();
        let id = loaded["sessionId"].clone();
        assert_eq!((&loaded["title"], &loaded["model"]["id"]), (&json!("new"), &json!("claude-sonnet-4-5")), "{cut}");
        let body = daemon.ok("session/context", json!({"sessionId": id, "format": "anthropic"}))["body"].to_string();
        assert!(body.contains("New.") && !body.contains("Old."), "{cut}: {body}");
        let context = daemon.ok("session/context", json!({"sessionId": id}));
        undone.push(context["compactionEntryId"].is_null());
        daemon.ok("session/unpin", json!({"sessionId": id, "entryId": ids[1]}));
        daemon.ok("session/close", json!({"sessionId": id}));
    }
    assert!(undone.is_sorted() && undone.first() == Some(&false) && undone.last() == Some(&true), "{undone:?}");
}

#[test]
fn an_undo_is_the_same_without_a_file_and_for_one_who_follows() {
    let mut daemon = Daemon::start();
    let new = daemon.ok("session/new", json!({"cwd": "/project", "ephemeral": true}));
    let memory = new["session"]["sessionId"].as_str().expect("an id").to_owned();
    daemon.append(&memory, &turns(6));
    let session = loaded(&mut daemon, "followed", &turns(6));
    let path = file_of(&mut daemon, &session);
    let mut follower = Daemon::start();
    let id = follower.ok("session/load", json!({"path": path, "readOnly": true}))["session"]["sessionId"].clone();
    let texts = |daemon: &mut Daemon, session: &Value| {
        let messages = daemon.ok("session/context", json!({"sessionId": session}))["messages"].clone();
        let texts = |message: &Value| blocks(&message["content"]).to_string();
        messages.as_array().expect("messages").iter().map(texts).collect::<Vec<String>>()
    };
    let (memory, session) = (json!(memory), json!(session));
    for later in [false, true, false] {
        for session in [&memory, &session] {
            let session = session.as_str().expect("an id");
            daemon.compact(session, 300);
            if later {
                daemon.append(session, &turns(1));
            }
            daemon.ok("session/undo_compaction", json!({"sessionId": session}));
        }
        let here = texts(&mut daemon, &session);
        assert_eq!(texts(&mut daemon, &memory), here);
        let text = fs::read_to_string(&path).expect("a file");
        let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
        let seen = |frame: &Value| frame["params"]["entryId"] == last["id"];
        if !follower.events.iter().any(seen) {
            follower.next_within(std::time::Duration::from_secs(30), seen).expect("the last line is told");
        }
        assert_eq!(texts(&mut follower, &id), here);
    }
}
