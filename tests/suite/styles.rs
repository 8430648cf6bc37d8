//! The ways in which other agents make room: a reset, nothing kept, a new session, the newest messages of the user.

use crate::{
    pi_reader::Session,
    provider::{Format, Provider, Step},
    summarizing::{good_model, settings},
    support::*,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

fn of(session: &str) -> Value {
    json!({"sessionId": session})
}

fn file_of(daemon: &mut Daemon, session: &str) -> PathBuf {
    let status = daemon.ok("session/status", of(session));
    status["session"]["path"].as_str().expect("a path").into()
}

/// The context that pi reads from the file, frames included.
fn read_by_pi(daemon: &mut Daemon, session: &str) -> String {
    let text = fs::read_to_string(file_of(daemon, session)).expect("a file");
    let sent = Session::parse(&text).context();
    sent.iter().map(|it| it.message.to_string()).collect::<Vec<_>>().join("\n")
}

fn reopened(daemon: &mut Daemon, session: &str) -> Value {
    let path = file_of(daemon, session);
    daemon.ok("session/close", of(session));
    daemon.load(&path);
    daemon.context(session)
}

fn texts(context: &Value) -> String {
    context["messages"].to_string()
}

#[test]
fn a_reset_leaves_nothing_in_the_context_and_everything_in_the_file() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project", "title": "Parser", "systemPrompt": "Be brief."}));
    daemon.append(&session, &[user("Mend the lexer first."), assistant("The lexer is mended.")]);
    let before = daemon.ok("session/usage", of(&session))["contextTokens"].as_u64();
    let from = daemon.events.len();
    let answer = daemon.ok("session/reset", of(&session));
    assert_eq!(answer["entryId"], answer["leafEntryId"]);
    assert!(answer["usage"]["contextTokens"].as_u64() < before, "{answer:#}");
    let context = daemon.context(&session);
    assert_eq!((&context["messages"], &context["compactionEntryId"]), (&json!([]), &Value::Null));
    let events = daemon.events_since(from);
    let appended = events.iter().filter(|(kind, _)| kind == "entry_appended").count();
    assert_eq!(appended, 2, "the reset and the line for other programs: {events:#?}");

    let found = daemon.ok("session/search", json!({"sessionId": session, "query": "lexer"}));
    assert_eq!(found["matches"].as_array().map(Vec::len), Some(2), "{found:#}");
    daemon.append(&session, &[user("Now the printer.")]);
    let context = daemon.context(&session);
    assert_eq!(context["messages"].as_array().map(Vec::len), Some(1));
    assert_eq!(reopened(&mut daemon, &session), context);
    let pi = read_by_pi(&mut daemon, &session);
    assert!(pi.contains("was cleared") && pi.contains("printer") && !pi.contains("exer"), "{pi}");
    let status = daemon.ok("session/status", of(&session));
    assert_eq!(status["session"]["title"], "Parser");
    daemon.ok("session/configure", json!({"sessionId": session, "model": "anthropic/claude-sonnet-4-5"}));
    let body = daemon.ok("session/context", json!({"sessionId": session, "format": "anthropic"}));
    assert!(body["body"]["system"].to_string().contains("Be brief."), "{body:#}");
}

#[test]
fn pins_stay_over_a_reset_for_every_reader_and_over_the_compaction_behind_it() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let ids = daemon.append(&session, &[user("Never touch the generated files."), assistant("I will not.")]);
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": ids["entryIds"][0]}));
    daemon.ok("session/pin", json!({"sessionId": session, "text": "The port is 4711."}));
    daemon.ok("session/reset", of(&session));
    let check = |daemon: &mut Daemon, session: &str| {
        let shown = texts(&daemon.context(session));
        let again = texts(&reopened(daemon, session));
        for text in [shown, again, read_by_pi(daemon, session)] {
            for pinned in ["Never touch the generated files.", "The port is 4711."] {
                assert_eq!(text.matches(pinned).count(), 1, "{text}");
            }
            assert!(!text.contains("I will not."), "{text}");
        }
    };
    check(&mut daemon, &session);
    daemon.append(&session, &turns(6));
    let compacted = daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 100, "wait": true}));
    assert_eq!(compacted["outcome"], "completed", "{compacted:#}");
    check(&mut daemon, &session);
    daemon.ok("session/reset", of(&session));
    check(&mut daemon, &session);
    daemon.ok("session/unpin", json!({"sessionId": session, "text": "The port is 4711."}));
    assert!(!texts(&daemon.context(&session)).contains("4711"));
    assert!(!read_by_pi(&mut daemon, &session).contains("4711"));
}

#[test]
fn a_second_reset_writes_nothing_and_an_empty_session_can_be_reset() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let first = daemon.ok("session/reset", of(&session));
    let length = fs::read(file_of(&mut daemon, &session)).expect("a file").len();
    let second = daemon.ok("session/reset", of(&session));
    assert_eq!(first["entryId"], second["entryId"]);
    assert_eq!(fs::read(file_of(&mut daemon, &session)).expect("a file").len(), length);
    daemon.append(&session, &[user("hello")]);
    let third = daemon.ok("session/reset", of(&session));
    assert_ne!(third["entryId"], second["entryId"]);
    let error = daemon.err("session/compact", json!({"sessionId": session, "wait": true}));
    assert_eq!(error["data"]["code"], "nothing_to_compact", "{error:#}");
    let ephemeral = daemon.new_session(json!({"cwd": "/project", "ephemeral": true}));
    daemon.append(&ephemeral, &turns(2));
    daemon.ok("session/reset", of(&ephemeral));
    assert_eq!(daemon.context(&ephemeral)["messages"], json!([]));
    let gone = daemon.err("session/reset", of("nowhere"));
    assert_eq!(gone["data"]["code"], "not_found");
}

#[test]
fn a_reset_is_undone_until_the_conversation_goes_on() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let ids = daemon.append(&session, &turns(4));
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": ids["entryIds"][0]}));
    let (before, pi) = (daemon.context(&session), read_by_pi(&mut daemon, &session));
    daemon.ok("session/reset", of(&session));
    daemon.ok("session/undo_compaction", of(&session));
    assert_eq!(daemon.context(&session)["messages"], before["messages"]);
    assert_eq!(read_by_pi(&mut daemon, &session), pi);
    assert_eq!(reopened(&mut daemon, &session)["messages"], before["messages"]);
    assert!(!daemon.ok("session/usage", of(&session))["why"].to_string().contains("undone"));

    daemon.ok("session/reset", of(&session));
    daemon.append(&session, &[user("Something else.")]);
    let error = daemon.err("session/undo_compaction", of(&session));
    assert_eq!(error["data"]["code"], "not_found");
    let last = ids["entryIds"].as_array().and_then(|ids| ids.last()).cloned().expect("an entry");
    daemon.ok("session/append", json!({"sessionId": session, "messages": [user("Go on.")], "parentEntryId": last}));
    let context = daemon.context(&session);
    let count = before["messages"].as_array().map_or(0, Vec::len);
    assert_eq!(context["messages"].as_array().map(Vec::len), Some(count + 1), "the branch before the reset goes on");
}

#[test]
fn a_reset_waits_for_no_compaction_and_writes_to_no_session_that_is_read_only() {
    let provider = Provider::start(Format::Anthropic);
    provider.script([Step::hang()]).otherwise(good_model);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &turns(20));
    let started = daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 100}));
    provider.wait_for(1);
    let error = daemon.err("session/reset", of(&session));
    assert_eq!(error["data"]["code"], "busy", "{error:#}");
    assert_eq!(error["data"]["operationId"], started["operationId"]);
    daemon.ok("session/cancel", of(&session));
    daemon.ok("session/reset", of(&session));
    assert_eq!(daemon.context(&session)["messages"], json!([]));

    let path = file_of(&mut daemon, &session);
    daemon.ok("session/close", of(&session));
    daemon.ok("session/load", json!({"path": path, "readOnly": true}));
    let error = daemon.err("session/reset", of(&session));
    assert_eq!(error["data"]["code"], "storage_error", "{error:#}");
}

#[test]
fn a_session_over_its_threshold_is_below_it_behind_a_reset_and_keeps_its_calibration() {
    let home = Home::new();
    home.settings(r#"{"tokens": {"estimator": "chars"}, "compaction": {"enabled": false}}"#);
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project", "contextWindow": 20_000}));
    let mut total = 2_000;
    for at in 0..8 {
        total += 3_000;
        let mut answer = assistant(&format!("Answer {at}."));
        answer["usage"] = json!({"input": total, "output": 10});
        daemon.append(&session, &[user(&text_of(2_400, "parser")), answer]);
    }
    let before = daemon.ok("session/usage", of(&session));
    assert!(before["contextTokens"].as_u64() > before["thresholdTokens"].as_u64(), "{before:#}");
    daemon.ok("session/reset", of(&session));
    let after = daemon.ok("session/usage", of(&session));
    assert!(after["contextTokens"].as_u64() < Some(4_000), "{after:#}");
    assert!(after["contextTokens"].as_u64() > Some(1_000), "the overhead that the reports show stays: {after:#}");
    assert_eq!(after["source"], "estimate");
    let path = file_of(&mut daemon, &session);
    daemon.ok("session/close", of(&session));
    daemon.ok("session/load", json!({"path": path, "contextWindow": 20_000}));
    let again = daemon.ok("session/usage", of(&session));
    assert_eq!(again["contextTokens"], after["contextTokens"], "{again:#}");
}

#[test]
fn a_large_file_is_opened_from_its_reset_on() {
    let home = Home::new();
    home.settings(r#"{"compaction": {"enabled": false}}"#);
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project", "title": "Large"}));
    let pinned = daemon.append(&session, &[user("Pinned words."), assistant("Yes.")]);
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": pinned["entryIds"][0]}));
    let block = "0123456789abcdef".repeat(64 * 1024);
    for at in 0..18 {
        daemon.append(&session, &[user(&format!("Part {at}: {block}"))]);
    }
    daemon.ok("session/reset", of(&session));
    daemon.append(&session, &[user("Behind it.")]);
    let before = daemon.context(&session);
    let mut daemon = {
        let path = file_of(&mut daemon, &session);
        assert!(fs::metadata(&path).expect("a file").len() > 17 << 20);
        daemon.ok("session/close", of(&session));
        let loaded = daemon.ok("session/load", json!({"path": path}));
        assert_eq!((&loaded["indexed"], &loaded["session"]["title"]), (&json!(false), &json!("Large")));
        daemon
    };
    let after = daemon.context(&session);
    assert_eq!(after["messages"], before["messages"]);
    assert!(texts(&after).contains("Pinned words.") && !texts(&after).contains("Part 1"));
}
