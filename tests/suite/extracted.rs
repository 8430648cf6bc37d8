//! Summaries of a large session, compared with recorded ones: a change of the extraction shows as a difference in
//! `tests/golden/extracted`. `UPDATE_EXTRACTED=1` writes the files anew.

use crate::{
    provider::{Asked, Format, Provider},
    summarizing::{compact, good_model, merge, session, settings},
    support::{assistant, result, text_of, turns, user},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{env, fmt::Write, fs, path::Path};

fn call(id: &str, tool: &str, arguments: Value) -> Value {
    json!({
        "role": "assistant", "stopReason": "toolUse", "timestamp": 1,
        "content": [{"type": "toolCall", "id": id, "name": tool, "arguments": arguments}],
    })
}

fn failure(id: &str, text: &str) -> Value {
    merged(result(id, text), json!({"isError": true, "toolName": "bash"}))
}

fn merged(mut value: Value, more: Value) -> Value {
    merge(&mut value, more);
    value
}

/// A session of 60 turns with rules, decisions, failures, tasks, edited files, a secret and long results.
fn long_session() -> Vec<Value> {
    let mut messages = vec![user(
        "Rewrite the settings reader so that it reports each invalid key. You must never touch vendor/. Use tabs.",
    )];
    for turn in 0..60 {
        let id = |name: &str| format!("{name}{turn}");
        messages.push(user(&format!("Step {turn}: check module_{turn} and fix the value limit_{turn}.")));
        messages.push(call(&id("read"), "read", json!({"path": format!("src/module_{turn}.rs")})));
        messages.push(result(&id("read"), &text_of(120 + turn * 7, &format!("module_{turn}"))));
        if turn % 3 == 0 {
            let edit = json!({"path": format!("src/module_{turn}.rs"), "oldText": "a", "newText": "b"});
            messages.push(call(&id("edit"), "edit", edit));
            messages.push(result(&id("edit"), "Successfully replaced 1 block."));
        }
        if turn % 5 == 1 {
            messages.push(call(&id("bash"), "bash", json!({"command": format!("cargo test module_{turn}")})));
            let said = format!("error[E0308]: mismatched types\n --> src/module_{turn}.rs:{turn}:5\ntest failed");
            messages.push(failure(&id("bash"), &said));
        }
        if turn % 7 == 2 {
            let todos = json!({"todos": [
                {"content": format!("read module_{turn}"), "status": "completed"},
                {"content": format!("fix limit_{turn}"), "status": "in_progress"},
                {"content": "update the changelog", "status": "pending"},
            ]});
            messages.push(call(&id("todo"), "todo_write", todos));
            messages.push(result(&id("todo"), "The list was saved."));
        }
        messages.push(assistant(&format!(
            "I decided to keep limit_{turn} in src/module_{turn}.rs, because the reader needs it. The key is \
             password=hunter2hunter2. {}",
            text_of(30, "answer")
        )));
    }
    messages.push(user("Ab jetzt bitte immer auf Deutsch antworten, und niemals Tests löschen."));
    messages.extend(turns(3));
    messages.push(call("last", "bash", json!({"command": "cargo test"})));
    messages.push(result("last", &text_of(700, "last")));
    messages.push(assistant("Alles läuft."));
    messages
}

/// The dry run, the summary and the size of a compaction.
fn recorded(daemon: &mut crate::support::Daemon, id: &str, params: &Value) -> String {
    // Ids of appended entries differ from run to run, and the previous summary is in the record already.
    let none = json!({"preparation": {"planHash": null, "firstKeptEntryId": null, "previousSummary": null}});
    let dry = merged(compact(daemon, id, merged(params.clone(), json!({"dryRun": true}))), none);
    let answer = compact(daemon, id, params.clone());
    let result = &answer["result"];
    let mut text = String::new();
    let dry = serde_json::to_string_pretty(&dry).expect("JSON");
    let _ = writeln!(text, "{dry}\n\ntokensAfter: {}\nshort: {}\n", result["tokensAfter"], result["shortSummary"]);
    let _ = writeln!(text, "{}", result["summary"].as_str().expect("a summary"));
    text
}

fn check(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/extracted").join(name);
    if env::var_os("UPDATE_EXTRACTED").is_some() {
        fs::write(&path, found).expect("a file");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{name} differs from its record; this run:\n{found}");
}

#[test]
fn an_extracted_summary_is_the_recorded_one() {
    for (estimator, name) in [("chars", "chars.md"), ("auto", "tokenizer.md")] {
        let settings = json!({"tokens": {"estimator": estimator}, "compaction": {"reserveTokens": 4_000, "transcriptHint": false}}).to_string();
        let (mut daemon, id, _) = session(&settings, &long_session());
        for entry in ["e3", "e40"] {
            daemon.ok("session/pin", json!({"sessionId": id, "entryId": entry}));
        }
        let mut text = String::new();
        // The second one continues the first, and the third one splits a turn in a few tokens.
        for params in [
            json!({"method": "extractive", "keepRecentTokens": 14_000, "instructions": "focus on limit_7"}),
            json!({"method": "extractive", "keepRecentTokens": 4_000}),
            json!({"method": "extractive", "keepRecentTokens": 200}),
        ] {
            daemon.ok("session/append", json!({"sessionId": id, "messages": [user("Go on.")]}));
            text.push_str(&recorded(&mut daemon, &id, &params));
            text.push_str("\n=====\n\n");
        }
        check(name, &text);
    }
}

#[test]
fn the_requests_for_a_summary_are_the_recorded_ones() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(good_model);
    let settings = settings(&provider, Format::OpenAiChat, json!({}));
    let (mut daemon, id, _) = session(&settings, &long_session());
    let mut text = String::new();
    for keep in [14_000, 200] {
        let answer = compact(&mut daemon, &id, json!({"keepRecentTokens": keep}));
        assert_eq!(answer["result"]["method"], "llm", "{answer:#}");
        let _ = writeln!(text, "{}\n", answer["result"]["summary"].as_str().expect("a summary"));
        daemon.ok("session/append", json!({"sessionId": id, "messages": [user("Go on.")]}));
    }
    let digest = |asked: &Asked| {
        let text = asked.text();
        format!("request of {} characters: {:x}\n", text.chars().count(), Sha256::digest(text.as_bytes()))
    };
    // The parts of a summary are asked for at the same time.
    let mut requests: Vec<String> = provider.asked().iter().map(digest).collect();
    requests.sort();
    text.extend(requests);
    check("requests.md", &text);
}
