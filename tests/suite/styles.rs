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
    assert!(!texts(&daemon.context(&session)).contains("port is 4711"));
    assert!(!read_by_pi(&mut daemon, &session).contains("port is 4711"));
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

/// Compacts into a new session. Returns the answer and the id of that session.
fn moved(daemon: &mut Daemon, session: &str, keep: u64) -> (Value, String) {
    let params = json!({"sessionId": session, "keepRecentTokens": keep, "newSession": true, "wait": true});
    let answer = daemon.ok("session/compact", params);
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    let id = answer["newSessionId"].as_str().expect("an id").to_owned();
    (answer, id)
}

/// A session with all that lasts: title, system prompt, model, settings and pins.
fn furnished(daemon: &mut Daemon) -> String {
    let session = daemon.new_session(json!({"cwd": "/project", "title": "Parser", "systemPrompt": "Be brief.",
        "model": "anthropic/claude-sonnet-4-5", "thinkingLevel": "high", "settings": {"prune": {"protectTokens": 77}},
        "tools": [{"name": "read", "description": "Reads.", "inputSchema": {"type": "object"}}]}));
    let ids = daemon.append(&session, &[user("Never touch the generated files."), assistant("I will not.")]);
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": ids["entryIds"][0]}));
    daemon.ok("session/pin", json!({"sessionId": session, "text": "The port is 4711."}));
    daemon.append(&session, &turns(8));
    session
}

#[test]
fn a_summary_begins_a_session_with_all_that_lasts_and_the_old_one_stays() {
    let mut daemon = Daemon::start();
    let session = furnished(&mut daemon);
    let path = file_of(&mut daemon, &session);
    let (before, old) = (daemon.context(&session), fs::read(&path).expect("a file"));
    let from = daemon.events.len();
    let (answer, new) = moved(&mut daemon, &session, 0);
    let events = daemon.events_since(from);
    let end = event(&events, "compaction_end");
    assert_eq!((&end["newSessionId"], &end["outcome"]), (&json!(new), &json!("completed")), "{end:#}");
    assert_eq!(end["result"], answer["result"]);
    assert_eq!(events.iter().filter(|(kind, _)| kind == "entry_appended").count(), 0, "{events:#?}");
    unchanged(&mut daemon, &session, &before, &old);

    let status = daemon.ok("session/status", of(&new));
    let info = &status["session"];
    assert_eq!((&info["title"], &info["thinkingLevel"]), (&json!("Parser (2)"), &json!("high")));
    assert_eq!(info["model"], json!({"provider": "anthropic", "id": "claude-sonnet-4-5"}));
    assert_eq!(info["parentSession"], json!(path));
    assert_eq!(info["cwd"], "/project");
    let settings = daemon.ok("settings/get", of(&new));
    assert_eq!(settings["settings"]["prune"]["protectTokens"], 77, "{settings:#}");
    let list = daemon.ok("session/list", json!({}));
    assert!(list["sessions"].to_string().contains(&new), "{list:#}");
    let context = daemon.context(&new);
    assert_eq!(context["compactionEntryId"], answer["result"]["entryId"]);
    assert_eq!(context["messages"].as_array().map(Vec::len), Some(1), "{context:#}");
    let check = |text: String| {
        for pinned in ["Never touch the generated files.", "The port is 4711."] {
            assert_eq!(text.matches(pinned).count(), 1, "{text}");
        }
    };
    check(texts(&context));
    check(read_by_pi(&mut daemon, &new));
    let body = daemon.ok("session/context", json!({"sessionId": new, "format": "anthropic"}))["body"].take();
    assert!(body["system"].to_string().contains("Be brief.") && body["tools"].to_string().contains("Reads."));
    daemon.append(&new, &[user("Go on.")]);
    let more = daemon.context(&new);
    assert_eq!(reopened(&mut daemon, &new), more);
    daemon.ok("session/unpin", json!({"sessionId": new, "text": "The port is 4711."}));
    assert!(!texts(&daemon.context(&new)).contains("port is 4711"));
}

#[test]
fn the_compaction_that_begins_a_session_is_not_undone_and_a_later_one_is() {
    let mut daemon = Daemon::start();
    let session = furnished(&mut daemon);
    let parent = file_of(&mut daemon, &session);
    let (_, new) = moved(&mut daemon, &session, 200);
    let refused = |daemon: &mut Daemon| {
        let before = daemon.context(&new);
        let error = daemon.err("session/undo_compaction", of(&new));
        assert_eq!(error["data"]["code"], "not_found", "{error:#}");
        assert!(error["message"].to_string().contains(&*parent.to_string_lossy()), "{error:#}");
        assert_eq!(daemon.context(&new), before);
    };
    refused(&mut daemon);
    daemon.append(&new, &turns(8));
    let before = daemon.context(&new);
    daemon.ok("session/compact", json!({"sessionId": new, "keepRecentTokens": 200, "wait": true}));
    daemon.ok("session/undo_compaction", of(&new));
    assert_eq!(daemon.context(&new)["messages"], before["messages"]);
    reopened(&mut daemon, &new);
    refused(&mut daemon);
}

#[test]
fn kept_messages_go_along_and_the_new_context_is_the_one_that_the_old_session_would_have() {
    for keep in [0, 200, 900] {
        // The frame of a summary names the file of its session.
        let home = Home::new();
        home.settings(r#"{"compaction": {"transcriptHint": false}}"#);
        let mut daemon = Daemon::at(home);
        let session = furnished(&mut daemon);
        daemon.append(&session, &[user("Read both."), calls(&["a", "b"]), result("a", "first")]);
        let (answer, new) = moved(&mut daemon, &session, keep);
        let moved = daemon.context(&new);
        let kept: Vec<Value> =
            moved["entryIds"].as_array().expect("ids").iter().filter(|id| !id.is_null()).cloned().collect();
        assert!(!kept.is_empty(), "open calls stay");
        for id in &kept {
            let entry = |session: &str, daemon: &mut Daemon| {
                daemon.ok("session/entry", json!({"sessionId": session, "entryId": id}))
            };
            assert_eq!(entry(&new, &mut daemon), entry(&session, &mut daemon), "the same bytes");
        }
        let usage = daemon.ok("session/usage", of(&new));
        assert_eq!(usage["contextTokens"], answer["result"]["tokensAfter"]);
        let params = json!({"sessionId": session, "keepRecentTokens": keep, "wait": true});
        assert_eq!(daemon.ok("session/compact", params)["outcome"], "completed");
        let here = daemon.context(&session);
        assert_eq!(without_times(&moved["messages"]), without_times(&here["messages"]), "keeping {keep}");
        assert_eq!(reopened(&mut daemon, &new)["messages"], moved["messages"]);
        // The open call of the new session is answered there.
        daemon.append(&new, &[result("b", "second"), assistant("Both are read.")]);
        let pi = read_by_pi(&mut daemon, &new);
        assert!(pi.contains("second") && pi.contains("first"), "{pi}");
    }
}

fn unchanged(daemon: &mut Daemon, session: &str, context: &Value, file: &[u8]) {
    assert_eq!(daemon.context(session)["messages"], context["messages"]);
    let now = fs::read(file_of(daemon, session)).expect("a file");
    assert_eq!(String::from_utf8_lossy(&now), String::from_utf8_lossy(file));
}

fn without_times(messages: &Value) -> Value {
    let mut messages = messages.clone();
    for message in messages.as_array_mut().into_iter().flatten() {
        message.as_object_mut().expect("a message").remove("timestamp");
    }
    messages
}

#[test]
fn an_ephemeral_session_moves_into_an_ephemeral_one() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project", "ephemeral": true}));
    daemon.append(&session, &turns(8));
    let (_, new) = moved(&mut daemon, &session, 100);
    let status = daemon.ok("session/status", of(&new));
    assert_eq!((&status["session"]["path"], &status["session"]["parentSession"]), (&Value::Null, &json!(session)));
    assert!(texts(&daemon.context(&new)).contains("<summary>"));
}

#[test]
fn a_new_session_that_cannot_be_written_fails_the_compaction_and_changes_nothing() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &turns(8));
    let path = file_of(&mut daemon, &session);
    let (before, old) = (daemon.context(&session), fs::read(&path).expect("a file"));
    let plan = daemon.ok(
        "session/compact",
        json!({"sessionId": session, "keepRecentTokens": 0, "newSession": true, "dryRun": true}),
    );
    assert_eq!(plan["preparation"]["firstKeptEntryId"], Value::Null);
    // A link in the place of the folder leads to a file, so nothing can be made in it.
    let folder = path.parent().expect("a folder").to_owned();
    let aside = folder.with_extension("aside");
    fs::rename(&folder, &aside).expect("renamed");
    fs::write(&folder, "").expect("a file");
    let params = json!({"sessionId": session, "keepRecentTokens": 0, "newSession": true, "wait": true});
    let answer = daemon.ok("session/compact", params);
    fs::remove_file(&folder).expect("removed");
    fs::rename(&aside, &folder).expect("renamed");
    assert_eq!(
        (&answer["outcome"], &answer["error"]["code"]),
        (&json!("failed"), &json!("storage_error")),
        "{answer:#}"
    );
    assert_eq!((&answer["newSessionId"], &answer["result"]), (&Value::Null, &Value::Null));
    unchanged(&mut daemon, &session, &before, &old);
    assert_eq!(
        fs::read_dir(&folder)
            .expect("a folder")
            .flatten()
            .filter(|it| it.path().extension().is_some_and(|it| it == "jsonl"))
            .count(),
        1
    );
    moved(&mut daemon, &session, 0);
}

#[test]
fn a_compaction_after_the_turn_moves_too_and_its_cost_stays_with_the_old_session() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &turns(20));
    daemon.append(&session, &[user("Read it."), calls(&["a"])]);
    daemon.ok(
        "session/compact",
        json!({"sessionId": session, "keepRecentTokens": 100, "newSession": true, "when": "after_turn"}),
    );
    daemon.append(&session, &[result("a", "It is short."), assistant("Done.")]);
    let end = daemon.until("compaction_end")["params"]["event"].take();
    let new = end["newSessionId"].as_str().expect("an id").to_owned();
    assert!(texts(&daemon.context(&new)).contains("Done."));
    let cost = |daemon: &mut Daemon, session: &str| daemon.ok("session/status", of(session))["spent"]["total"].clone();
    let (old, new) = (cost(&mut daemon, &session), cost(&mut daemon, &new));
    assert!(old["requests"].as_u64() > Some(0), "{old:#}");
    assert_eq!(new["requests"].as_u64().unwrap_or_default(), 0, "{new:#}");
}

/// A daemon in Codex's style, and a session of some turns.
fn in_style(compaction: Value) -> (Daemon, String) {
    let home = Home::new();
    let mut settings = json!({"style": "recent_user_messages", "enabled": false});
    settings.as_object_mut().expect("an object").extend(compaction.as_object().expect("an object").clone());
    home.settings(&json!({"tokens": {"estimator": "chars"}, "compaction": settings}).to_string());
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project", "contextWindow": 60_000}));
    (daemon, session)
}

fn compacted(daemon: &mut Daemon, session: &str) -> Value {
    let answer = daemon.ok("session/compact", json!({"sessionId": session, "wait": true}));
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    answer["result"].clone()
}

#[test]
fn a_new_session_without_pins_has_the_messages_that_stand_before_the_summary() {
    let (mut daemon, session) = in_style(json!({"transcriptHint": false}));
    daemon.append(&session, &turns(6));
    let (answer, new) = moved(&mut daemon, &session, 0);
    let begun = daemon.context(&new);
    let usage = daemon.ok("session/usage", of(&new));
    assert_eq!(usage["contextTokens"], answer["result"]["tokensAfter"]);
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 0, "wait": true}));
    let here = daemon.context(&session);
    assert!(here["messages"].as_array().map(Vec::len) > Some(2), "{here:#}");
    assert_eq!(without_times(&begun["messages"]), without_times(&here["messages"]));
}

#[test]
fn in_the_style_of_codex_an_image_without_a_text_leaves_a_word_behind() {
    let (mut daemon, session) = in_style(json!({}));
    daemon.append(&session, &turns(6));
    let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    daemon.append(&session, &[json!({"role": "user", "content": [image]}), assistant("A cat.")]);
    compacted(&mut daemon, &session);
    let texts = said(&daemon.context(&session));
    assert!(texts[texts.len() - 2].contains("a message without text"), "{texts:#?}");
}

/// The texts of the messages of a context, in order.
fn said(context: &Value) -> Vec<String> {
    let messages = context["messages"].as_array().expect("messages").iter();
    messages.map(|message| message["content"][0]["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn in_the_style_of_codex_the_messages_of_the_user_stand_before_the_summary() {
    let (mut daemon, session) = in_style(json!({}));
    for at in 0..6 {
        let request = format!("Request {at}: mend part {at}.");
        daemon.append(
            &session,
            &[
                user(&request),
                calls(&[&format!("c{at}")]),
                result(&format!("c{at}"), &text_of(900, "lexer")),
                assistant("Mended."),
            ],
        );
    }
    let plan = daemon.ok("session/compact", json!({"sessionId": session, "dryRun": true}));
    assert_eq!(plan["preparation"]["firstKeptEntryId"], Value::Null, "{plan:#}");
    let whole = daemon.context(&session);
    let result = compacted(&mut daemon, &session);
    assert!(
        result["tokensAfter"].as_u64() <= plan["preparation"]["tokensAfterEstimate"].as_u64(),
        "{result:#} {plan:#}"
    );
    let context = daemon.context(&session);
    let texts = said(&context);
    let expected: Vec<String> = (0..6).map(|at| format!("Request {at}: mend part {at}.")).collect();
    assert_eq!((&texts[..6], texts.len()), (&expected[..], 7), "{texts:#?}");
    assert!(texts[6].contains("<summary>") && !texts[6].contains("<user-message>"), "{}", texts[6]);
    assert_eq!(daemon.ok("session/usage", of(&session))["contextTokens"], result["tokensAfter"]);
    assert_eq!(reopened(&mut daemon, &session), context);
    let pi = read_by_pi(&mut daemon, &session);
    for request in &expected {
        assert!(pi.contains(&format!("\"{request}\"")), "{pi}");
    }

    daemon.append(&session, &[user("Request 6: mend part 6."), assistant("Mended.")]);
    compacted(&mut daemon, &session);
    let texts = said(&daemon.context(&session));
    assert_eq!(
        (texts[0].as_str(), texts[6].as_str(), texts.len()),
        (expected[0].as_str(), "Request 6: mend part 6.", 8)
    );
    daemon.ok("session/undo_compaction", of(&session));
    let texts = said(&daemon.context(&session));
    assert_eq!((texts.len(), texts.last().map(String::as_str)), (9, Some("Mended.")));
    daemon.ok("session/undo_compaction", of(&session));
    let count = whole["messages"].as_array().map_or(0, Vec::len);
    assert_eq!(daemon.context(&session)["messages"].as_array().map(Vec::len), Some(count + 2));
}

#[test]
fn twenty_thousand_tokens_of_messages_stay_and_the_oldest_of_them_loses_its_middle() {
    let (mut daemon, session) = in_style(json!({"reserveTokens": 1_000}));
    let request = |at: usize| format!("Request {at} begins. {} Request {at} ends.", "word ".repeat(3_000));
    for at in 0..8 {
        daemon.append(&session, &[user(&request(at)), assistant("Yes.")]);
    }
    let ids = daemon.append(&session, &[user("Pinned words."), assistant("Yes.")]);
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": ids["entryIds"][0]}));
    let result = compacted(&mut daemon, &session);
    let texts = said(&daemon.context(&session));
    let whole = texts.iter().filter(|text| (0..8).any(|at| **text == request(at))).count();
    let oldest = 8 - whole - 1;
    assert!(whole >= 2 && texts.len() == whole + 2, "{:?}", texts.iter().map(String::len).collect::<Vec<_>>());
    assert!(
        texts[0].starts_with(&format!("Request {oldest} begins."))
            && texts[0].ends_with(&format!("Request {oldest} ends."))
    );
    assert!(texts[0].contains("the middle of this message was left out"));
    assert_eq!((&texts[1], &texts[whole]), (&request(oldest + 1), &request(7)));
    // Before any report a token of an unknown model counts for up to a third more.
    let tokens: usize = texts[..=whole].iter().map(|text| text.len() / 4).sum();
    assert!((13_000..=20_000).contains(&tokens), "{tokens}");
    assert_eq!(texts.concat().matches("Pinned words.").count(), 1);
    assert!(result["tokensAfter"].as_u64() < Some(30_000), "{result:#}");

    // In a smaller window there are fewer of them.
    daemon.ok("session/configure", json!({"sessionId": session, "contextWindow": 16_000}));
    daemon.append(&session, &[user("The last one."), assistant("Yes.")]);
    let result = compacted(&mut daemon, &session);
    assert!(result["tokensAfter"].as_u64() < Some(13_000), "{result:#}");
    let texts = said(&daemon.context(&session));
    assert_eq!(texts[texts.len() - 2], "The last one.");
    assert_eq!(texts.iter().filter(|text| *text == "The last one.").count(), 1);
    assert!(!texts.concat().contains("<user-message>"));
}

#[test]
fn a_style_is_a_setting_of_any_layer_and_an_unknown_one_is_a_problem() {
    let (mut daemon, session) = in_style(json!({}));
    daemon.append(&session, &turns(6));
    daemon.ok(
        "settings/set",
        json!({"scope": "session", "sessionId": session, "patch": {"compaction": {"style": "structured", "keepRecentTokens": 100}}}),
    );
    compacted(&mut daemon, &session);
    let first = said(&daemon.context(&session));
    assert!(first[0].contains("<summary>"), "{first:#?}");
    let patch = json!({"compaction": {"style": "recent"}});
    let error = daemon.err("settings/set", json!({"scope": "session", "sessionId": session, "patch": patch}));
    assert_eq!(error["data"]["code"], "invalid_params", "{error:#}");
    assert!(error["message"].to_string().contains("recent_user_messages"), "{error:#}");
    daemon.ok(
        "settings/set",
        json!({"scope": "session", "sessionId": session, "patch": {"compaction": {"style": null}}}),
    );
    daemon.append(&session, &turns(2));
    compacted(&mut daemon, &session);
    let texts = said(&daemon.context(&session));
    assert!(texts[0].starts_with("Request ") && texts.last().is_some_and(|it| it.contains("<summary>")), "{texts:#?}");
    // An open call and its request stay behind the summary.
    daemon.append(&session, &[user("Read it."), calls(&["a"])]);
    compacted(&mut daemon, &session);
    let context = daemon.context(&session);
    let roles: Vec<&str> = context["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .rev()
        .take(3)
        .filter_map(|it| it["role"].as_str())
        .collect();
    assert_eq!(roles, ["toolResult", "assistant", "user"], "{context:#}");
    assert_eq!(texts.concat().matches("Read it.").count(), 0);
    assert_eq!(said(&context).iter().filter(|text| *text == "Read it.").count(), 1);
}

/// The notices behind the last `compaction_end`. They follow the change of the status and precede `settled`.
fn notices(daemon: &mut Daemon) -> Vec<Value> {
    daemon.until("settled");
    let events = daemon.events_since(0);
    let names = names(&events);
    let end = names.iter().rposition(|kind| *kind == "compaction_end").expect("an end");
    assert_eq!(names[end + 1], "status_changed", "{names:?}");
    assert_eq!(names.last(), Some(&"settled"), "{names:?}");
    let told = events[end + 2..].iter().filter(|(kind, _)| kind == "notice");
    let told: Vec<Value> = told.map(|(_, params)| params["event"].clone()).collect();
    assert_eq!(told.len(), names.iter().filter(|kind| **kind == "notice").count(), "{names:?}");
    told
}

#[test]
fn from_the_third_compaction_on_a_notice_follows_once_in_an_hour_where_models_write_the_summaries() {
    for (by_model, expected) in [(true, [0, 0, 1, 0, 0, 0]), (false, [0; 6])] {
        assert_eq!(repeated(by_model), expected, "by a model: {by_model}");
    }
}

/// The notices about repeated compactions behind each of six, with a reset before the fifth.
fn repeated(by_model: bool) -> Vec<usize> {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    let home = Home::new();
    if by_model {
        home.settings(&settings(&provider, Format::Anthropic, json!({})));
    }
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let mut told = Vec::new();
    for at in 0..6 {
        daemon.append(&session, &turns(6));
        if at == 4 {
            daemon.ok("session/reset", of(&session));
            daemon.append(&session, &turns(6));
        }
        daemon.events.clear();
        let params = json!({"sessionId": session, "keepRecentTokens": 100, "wait": true});
        assert_eq!(daemon.ok("session/compact", params)["outcome"], "completed");
        let notices = notices(&mut daemon);
        assert!(notices.iter().all(|it| it["detail"].to_string().contains("session/handoff")), "{notices:#?}");
        told.push(notices.iter().filter(|it| it["title"].to_string().contains("repeated compactions")).count());
    }
    told
}

#[test]
fn keeping_nothing_leaves_the_summary_and_the_newest_message_of_the_user_for_every_trigger_and_method() {
    for (by_model, trigger) in
        [(false, "manual"), (true, "manual"), (false, "threshold"), (true, "threshold"), (false, "overflow")]
    {
        let provider = Provider::start(Format::Anthropic);
        provider.otherwise(good_model);
        let home = Home::new();
        let compaction = json!({"keepRecentTokens": 0, "speculative": false, "enabled": trigger != "manual"});
        home.settings(&match by_model {
            true => settings(&provider, Format::Anthropic, json!({"compaction": compaction})),
            false => json!({"tokens": {"estimator": "chars"}, "compaction": compaction}).to_string(),
        });
        let mut daemon = Daemon::at(home);
        let session = daemon.new_session(json!({"cwd": "/project", "contextWindow": 60_000}));
        let ids = daemon.append(&session, &[user("Never touch the generated files."), assistant("I will not.")]);
        daemon.ok("session/pin", json!({"sessionId": session, "entryId": ids["entryIds"][0]}));
        daemon.append(&session, &turns(6));
        daemon.append(&session, &[user("Mend it all."), calls(&["a"]), result("a", &text_of(600, "lexer"))]);
        match trigger {
            "manual" => {
                daemon.append(&session, &[assistant("Done.")]);
                let answer = daemon.ok("session/compact", json!({"sessionId": session, "wait": true}));
                assert_eq!(answer["outcome"], "completed", "{answer:#}");
            }
            "threshold" => {
                let tokens = daemon.ok("session/usage", of(&session))["contextTokens"].as_u64().expect("a size");
                let patch = json!({"compaction": {"thresholdTokens": tokens * 7 / 10}});
                daemon.ok("settings/set", json!({"scope": "session", "sessionId": session, "patch": patch}));
                daemon.append(&session, &[assistant("Done.")]);
            }
            _ => {
                daemon.append(&session, &[failed("prompt is too long: 70000 tokens > 60000 maximum")]);
            }
        }
        let end = daemon.until("compaction_end")["params"]["event"].take();
        let what = format!("{trigger} by a model: {by_model}, {end:#}");
        assert_eq!((&end["outcome"], &end["reason"]), (&json!("completed"), &json!(trigger)), "{what}");
        assert_eq!(end["result"]["method"], if by_model { "llm" } else { "extractive" }, "{what}");
        assert_eq!(end["result"]["firstKeptEntryId"], Value::Null, "{what}");
        daemon.until("settled");
        let context = daemon.context(&session);
        let shown = texts(&context);
        assert_eq!(context["messages"].as_array().map(Vec::len), Some(1), "{what} {context:#}");
        assert_eq!(shown.matches("Never touch the generated files.").count(), 1, "{what} {shown}");
        assert!(shown.contains("<user-message>\\nMend it all.\\n"), "{what} {shown}");
        assert_eq!(reopened(&mut daemon, &session), context, "{what}");
    }
}
