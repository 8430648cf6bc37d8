//! Promises that were broken once, each as small as it could be made.

use crate::{
    provider::{Asked, Format, Provider, Step},
    summarizing::{compact, good, good_model, session, settings},
    support::{Daemon, Home, assistant, session_of, text_of, turns, user},
    wire::{Peer, command},
};
use serde_json::{Value, json};
use std::{fs, io::Write, process::Stdio};

/// The session is told to end when it is idle before what was held behind its load has been handed to it.
#[test]
fn what_was_sent_behind_a_load_is_answered_at_the_end_of_stdin() {
    let home = Home::new();
    let path = session_of(&home, "last", &[user("one")]);
    let mut asked = format!(
        "{{\"id\":1,\"method\":\"initialize\"}}\n{{\"id\":2,\"method\":\"session/load\",\"params\":{}}}\n",
        json!({"path": path, "readOnly": true})
    );
    for id in 3..8 {
        asked.push_str(&format!(
            "{{\"id\":{id},\"method\":\"session/context\",\"params\":{{\"sessionId\":\"last\"}}}}\n"
        ));
    }
    for run in 0..10 {
        let mut child = command(&home).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary starts");
        child.stdin.take().expect("a pipe").write_all(asked.as_bytes()).expect("the daemon reads");
        let out = String::from_utf8(child.wait_with_output().expect("an end").stdout).expect("text");
        assert!(!out.contains("\"error\""), "run {run}: {out}");
    }
}

fn message(id: &str, parent: &str, text: &str) -> String {
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t", "message": user(text)}).to_string()
}

fn append_to(path: &std::path::Path, text: &str) {
    let mut file = fs::OpenOptions::new().append(true).open(path).expect("a file");
    file.write_all(text.as_bytes()).expect("a write");
}

fn ids(peer: &mut Peer) -> Value {
    peer.ok("session/context", json!({"sessionId": "s"}))["entryIds"].take()
}

/// Some programs write the newline before the line. Whoever opens the file takes such a line; whoever has it open moves
/// it aside as torn.
#[test]
fn a_whole_line_of_another_program_without_its_newline_stays() {
    let home = Home::new();
    let path = session_of(&home, "s", &[user("one")]);
    let mut peer = Peer::start(&home);
    peer.ok("session/load", json!({"path": path}));
    append_to(&path, &message("s1", "e0", "two"));
    peer.ok("session/append", json!({"sessionId": "s", "messages": [user("three")]}));
    assert_eq!(ids(&mut peer).as_array().map(Vec::len), Some(3), "{}", fs::read_to_string(&path).expect("a file"));
}

/// The two entries stand on one line now. Its owner reads both and goes on behind the second.
#[test]
fn an_entry_that_another_program_glues_to_the_last_line_is_read_by_its_owner() {
    let home = Home::new();
    let path = session_of(&home, "s", &[user(&text_of(9, "one")), assistant("two")]);
    let text = fs::read_to_string(&path).expect("a file");
    fs::write(&path, text.trim_end()).expect("a file");
    let mut peer = Peer::start(&home);
    peer.ok("session/load", json!({"path": path}));
    append_to(&path, &format!("{}\n", message("s1", "e1", "three")));
    let answer = peer.ok("session/append", json!({"sessionId": "s", "messages": [user("four")]}));
    let four = answer["entryIds"][0].clone();
    let ids = |peer: &mut Peer| peer.ok("session/context", json!({"sessionId": "s"}))["entryIds"].clone();
    assert_eq!(ids(&mut peer), json!(["e0", "e1", "s1", four]));
    peer.ok("session/close", json!({"sessionId": "s"}));
    let loaded = peer.ok("session/load", json!({"path": path}));
    assert_eq!(loaded["repairs"][0]["kind"], "glued_entries");
    assert_eq!(ids(&mut peer), json!(["e0", "e1", "s1", four]));
}

/// A provider that quotes the key it was sent may escape it as JSON allows, and a model may write it into its answer.
#[test]
fn a_key_that_comes_back_in_other_letters_is_gone_too() {
    const KEY: &str = "mykey/abcdef/123456";
    let provider = Provider::start(Format::OpenAiChat);
    let refused = |body: &str| Step::status(401).header("content-type", "application/json").body(body);
    provider
        .script([
            refused(r#"{"error":{"message":"wrong key: mykey\/abcdef\/123456"}}"#),
            refused(r#"{"error":{"message":"wrong key: \u006dykey/abcdef/123456"}}"#),
            refused(r#"{"error":"{\"message\":\"wrong key: mykey\\\/abcdef\\\/123456\"}"}"#),
        ])
        .otherwise(Step::answer(&format!("{}\n- the key is {KEY}", good("KEY"))));
    let mut set: Value = serde_json::from_str(&settings(&provider, Format::OpenAiChat, json!({}))).expect("JSON");
    set["models"][0]["apiKeyCommand"] = json!(["printf", "%s", KEY]);
    let (mut daemon, id, path) = session(&set.to_string(), &turns(20));
    for _ in 0..4 {
        compact(&mut daemon, &id, json!({}));
        daemon.ok("session/append", json!({"sessionId": id, "messages": turns(10)}));
    }
    let told = serde_json::to_string(&daemon.events).expect("JSON");
    let kept = std::fs::read_to_string(path).expect("a file");
    for text in [&told, &kept] {
        assert!(!text.contains("abcdef") && text.contains("[REDACTED:key]"), "{text}");
    }
}

/// Neither a result nor an error is an answer too, and nobody waits for a better one.
#[test]
fn an_answer_with_nothing_in_it_is_an_answer() {
    let home = Home::new();
    let path = session_of(&home, "s", &turns(12));
    let mut daemon = Daemon::silent(home);
    daemon.ok("initialize", json!({"capabilities": {"llm": {}}}));
    let model = json!({"path": path, "model": "some/model"});
    let session = daemon.ok("session/load", model)["session"]["sessionId"].clone();
    let id = daemon.begin("session/compact", json!({"sessionId": session, "keepRecentTokens": 300, "wait": true}));
    // The summary has two parts, and each is asked for.
    for _ in 0..2 {
        let asked = loop {
            let frame = daemon.frame();
            if frame["method"] == "llm/complete" {
                break frame["id"].clone();
            }
        };
        daemon.send(&json!({"jsonrpc": "2.0", "id": asked}));
    }
    let result = daemon.answer(id).expect("an answer")["result"].clone();
    assert_eq!(result["method"], "extractive");
    assert_eq!(result["rejected"][0]["error"]["code"], "provider_error");
}

/// The summary is there; a model that never writes the line about it holds nothing back.
#[test]
fn a_short_summary_that_does_not_come_is_not_waited_for() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(|asked: &Asked| match asked.text().contains("at most two sentences") {
        true => Step::hang(),
        false => good_model(asked),
    });
    let settings = settings(&provider, Format::Anthropic, json!({"compaction": {"stallSeconds": 1}}));
    let (mut daemon, id, _) = session(&settings, &turns(20));
    let result = compact(&mut daemon, &id, json!({}))["result"].clone();
    assert_eq!(result["method"], "llm");
    assert!(result["shortSummary"].as_str().expect("a text").contains("Last asked: "), "{result:#}");
}
