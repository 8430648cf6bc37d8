//! Undo, pins, pruning, names and configuration: what they do to the context, and that nothing is lost by them.

use crate::support::*;
use serde_json::{Value, json};

fn context(daemon: &mut Daemon, session: &str) -> Value {
    daemon.ok("session/context", json!({"sessionId": session}))["messages"].clone()
}

/// The context as a daemon sees it that has only the file.
fn context_of_file(daemon: &mut Daemon, session: &str) -> Value {
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    let mut other = Daemon::start();
    let loaded = other.ok("session/load", json!({"path": status["session"]["path"], "readOnly": true}));
    let id = loaded["session"]["sessionId"].as_str().expect("an id").to_owned();
    context(&mut other, &id)
}

fn append(daemon: &mut Daemon, session: &str, messages: &[Value]) -> Vec<String> {
    let answer = daemon.ok("session/append", json!({"sessionId": session, "messages": messages}));
    let ids = answer["entryIds"].as_array().expect("ids");
    ids.iter().map(|id| id.as_str().expect("an id").to_owned()).collect()
}

fn times(context: &Value, text: &str) -> usize {
    context.to_string().matches(text).count()
}

fn loaded(daemon: &mut Daemon, name: &str, count: usize) -> String {
    let path = session_of(&daemon.home, name, &turns(count));
    daemon.load(&path)
}

#[test]
fn undo_gives_back_the_context_as_if_the_compaction_had_never_been() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "undo", 6);
    let before = context(&mut daemon, &session);
    let result = daemon.compact(&session, 300);
    append(&mut daemon, &session, &[user("and after that")]);
    let answer = daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    assert_ne!(answer["leafEntryId"], Value::Null);
    assert_eq!(answer["usage"]["source"], "estimate", "what was reported before says nothing now");
    let after = context(&mut daemon, &session);
    let kept = before.as_array().expect("messages").len();
    assert_eq!(after.as_array().expect("messages")[..kept], before.as_array().expect("messages")[..]);
    assert_eq!(times(&after, "and after that"), 1);
    assert_eq!(after, context_of_file(&mut daemon, &session));
    let entry = daemon.ok("session/entry", json!({"sessionId": session, "entryId": result["entryId"]}));
    assert_eq!(entry["entry"]["type"], "compaction", "it is still in the file");
    let error = daemon.err("session/undo_compaction", json!({"sessionId": session}));
    assert_eq!(
        (error["data"]["code"].as_str(), error["data"]["kind"].as_str()),
        (Some("not_found"), Some("compaction"))
    );
    let why = daemon.ok("session/usage", json!({"sessionId": session}));
    assert!(why["why"].is_string());
}

#[test]
fn two_compactions_are_undone_one_after_the_other() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "twice", 6);
    let whole = context(&mut daemon, &session);
    daemon.compact(&session, 900);
    let once = context(&mut daemon, &session);
    append(&mut daemon, &session, &turns(3));
    daemon.compact(&session, 100);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    let after = context(&mut daemon, &session);
    let length = once.as_array().expect("messages").len();
    assert_eq!(after.as_array().expect("messages")[..length], once.as_array().expect("messages")[..]);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    let after = context(&mut daemon, &session);
    let length = whole.as_array().expect("messages").len();
    assert_eq!(after.as_array().expect("messages")[..length], whole.as_array().expect("messages")[..]);
    assert_eq!(after, context_of_file(&mut daemon, &session));
    daemon.compact(&session, 100);
    assert_eq!(context(&mut daemon, &session), context_of_file(&mut daemon, &session));
}

#[test]
fn what_is_pinned_is_there_once_word_for_word_through_every_compaction() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "pins", 6);
    let odd = "Never touch </pinned> nor \"quotes\"\n\tnor ünïcode \u{2028}.";
    let text = daemon.ok("session/pin", json!({"sessionId": session, "text": odd}))["entryId"].clone();
    let entry = daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e2"}))["entryId"].clone();
    assert_eq!(entry, "e2");
    let result = daemon.ok("session/entry", json!({"sessionId": session, "entryId": "e2"}));
    let result = result["entry"]["message"]["content"][0]["text"].as_str().expect("a text").to_owned();
    let once = |context: &Value| {
        let all: Vec<&str> = strings(context);
        for text in [odd, result.as_str()] {
            assert_eq!(all.iter().map(|it| it.matches(text).count()).sum::<usize>(), 1, "{text}");
        }
    };
    once(&context(&mut daemon, &session));
    for round in 0..3 {
        append(&mut daemon, &session, &turns(2));
        daemon.compact(&session, 50);
        let now = context(&mut daemon, &session);
        once(&now);
        let summary = now[0]["content"][0]["text"].as_str().expect("a text");
        let (pins, rest) = (summary.find("<pinned>").expect("pins"), summary.find(odd).expect("the text"));
        assert!(pins < summary.find(&result).expect("the entry"), "round {round}");
        assert!(summary.find(&result) < Some(rest), "in the order of the path");
        assert_eq!(now, context_of_file(&mut daemon, &session));
    }
    let listed = daemon.ok("session/unpin", json!({"sessionId": session, "text": odd}))["entryId"].clone();
    assert_eq!(listed, text);
    daemon.ok("session/unpin", json!({"sessionId": session, "entryId": "e2"}));
    let now = context(&mut daemon, &session);
    assert_eq!(times(&now, "<pinned>"), 0);
    assert_eq!(now, context_of_file(&mut daemon, &session));
}

fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn what_was_compacted_away_can_be_pinned_afterwards() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "late", 6);
    daemon.compact(&session, 50);
    assert_eq!(times(&context(&mut daemon, &session), "<pinned>"), 0);
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e7"}));
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e3"}));
    let now = context(&mut daemon, &session);
    let pinned = |context: &Value| {
        let text = context[0]["content"][0]["text"].as_str().expect("a text").to_owned();
        text.split("<pinned>").nth(1).expect("pins").split("</pinned>").next().expect("an end").to_owned()
    };
    let text = pinned(&now);
    assert!(text.find("Looked at part_0: it is fine because") < text.find("Looked at part_1: it is fine because"));
    assert_eq!(now, context_of_file(&mut daemon, &session));
    append(&mut daemon, &session, &turns(2));
    daemon.compact(&session, 50);
    let now = context(&mut daemon, &session);
    assert_eq!(pinned(&now), text);
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    let now = context(&mut daemon, &session);
    assert_eq!(times(&now, "<pinned>"), 0, "it stands where it is again");
}

#[test]
fn pins_that_cannot_be_are_told() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "nopins", 3);
    for (params, path) in [
        (json!({}), "entryId"),
        (json!({"entryId": "e1", "text": "x"}), "entryId"),
        (json!({"text": "  \n"}), "text"),
        (json!({"text": "long ".repeat(12_000)}), "text"),
    ] {
        let mut params = params;
        params["sessionId"] = json!(session);
        let error = daemon.err("session/pin", params);
        assert_eq!(
            (error["data"]["code"].as_str(), error["data"]["path"].as_str()),
            (Some("invalid_params"), Some(path))
        );
    }
    let error = daemon.err("session/pin", json!({"sessionId": session, "entryId": "nowhere"}));
    assert_eq!(error["data"]["code"], "not_found");
    let label = daemon.ok("session/label", json!({"sessionId": session, "targetEntryId": "e1", "label": "x"}));
    let error = daemon.err("session/pin", json!({"sessionId": session, "entryId": label["entryId"]}));
    assert_eq!(error["data"]["path"], "entryId", "only messages");
    let error = daemon.err("session/unpin", json!({"sessionId": session, "entryId": "e1"}));
    assert_eq!((error["data"]["code"].as_str(), error["data"]["kind"].as_str()), (Some("not_found"), Some("pin")));
}

#[test]
fn old_results_give_way_to_a_line_and_stay_in_the_file() {
    let mut daemon = Daemon::start();
    let messages: Vec<Value> = (0..4)
        .flat_map(|at| {
            let id = format!("big{at}");
            [
                user(&format!("go {at}")),
                call_of(&id, "shell"),
                result_of(&id, "shell", &text_of(3_000, "big")),
                assistant("ok"),
            ]
        })
        .collect();
    let path = session_of(&daemon.home, "prune", &messages);
    let session = daemon.load(&path);
    let params = json!({"sessionId": session, "protectTokens": 3_000, "minimumSavings": 1_000});
    let mut dry = params.clone();
    dry["dryRun"] = json!(true);
    let planned = daemon.ok("session/prune", dry);
    let before = context(&mut daemon, &session);
    assert_eq!(times(&before, "Output truncated"), 0, "a dry run changes nothing");
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e2"}));
    let done = daemon.ok("session/prune", params.clone());
    assert_eq!(planned["entryIds"].as_array().map(Vec::len), Some(3));
    assert_eq!(done["entryIds"], json!(["e10", "e6"]), "not the newest, not the pinned one");
    assert!(done["tokensSaved"].as_u64().is_some_and(|saved| saved > 3_000));
    let event = daemon.until("pruned");
    assert_eq!(event["params"]["event"]["entryIds"], done["entryIds"]);
    let now = context(&mut daemon, &session);
    assert_eq!(times(&now, "[Output truncated - "), 2);
    assert_eq!(now, context_of_file(&mut daemon, &session));
    let entry = daemon.ok("session/entry", json!({"sessionId": session, "entryId": "e6"}));
    assert_eq!(entry["entry"]["message"], messages[6], "the whole result is still there");
    let again = daemon.ok("session/prune", params);
    assert_eq!(again, json!({"entryIds": [], "tokensSaved": 0}));
}

fn call_of(id: &str, tool: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "toolCall", "id": id, "name": tool, "arguments": {}}], "stopReason": "toolUse", "timestamp": 1})
}

fn result_of(id: &str, tool: &str, text: &str) -> Value {
    let mut message = result(id, text);
    message["toolName"] = json!(tool);
    message
}

#[test]
fn what_changes_what_a_compaction_works_on_waits_for_its_end_and_the_rest_does_not() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "busy", 6);
    daemon.compact(&session, 300);
    let patch = json!({"compaction": {"enabled": false}});
    daemon.ok("settings/set", json!({"scope": "session", "sessionId": session, "patch": patch}));
    append(&mut daemon, &session, &[user(&text_of(400_000, "slow"))]);
    let running = daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 1}));
    let label = daemon.begin("session/label", json!({"sessionId": session, "targetEntryId": "e1", "label": "here"}));
    let undo = daemon.begin("session/undo_compaction", json!({"sessionId": session}));
    let prune = daemon.begin("session/prune", json!({"sessionId": session}));
    assert!(daemon.answer(label).is_ok());
    for id in [undo, prune] {
        let error = daemon.answer(id).expect_err("something runs");
        assert_eq!(
            (error["data"]["code"].as_str(), &error["data"]["operationId"]),
            (Some("busy"), &running["operationId"])
        );
    }
    daemon.ok("session/cancel", json!({"sessionId": session}));
    daemon.until("settled");
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
}

#[test]
fn what_is_configured_is_stored_with_the_session() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "configured", 2);
    let tools = json!([{"name": "shell", "description": "runs", "inputSchema": {"type": "object"}}]);
    let answer = daemon.ok(
        "session/configure",
        json!({"sessionId": session, "model": "p/m", "thinkingLevel": "high", "title": "A name", "systemPrompt": "Be brief.", "tools": tools}),
    );
    assert_eq!(answer["next"], json!({"type": "none"}));
    let expect = |session: &Value, system: bool| {
        assert_eq!(session["title"], "A name");
        assert_eq!(session["model"], json!({"provider": "p", "id": "m"}));
        assert_eq!(session["thinkingLevel"], "high");
        assert_eq!(session["usage"]["breakdown"]["system"].as_u64() > Some(0), system);
    };
    expect(&answer["session"], true);
    daemon.compact(&session, 1);
    daemon.ok("session/close", json!({"sessionId": session}));
    let loaded = daemon.ok("session/load", json!({"path": daemon.home.path("configured.jsonl")}));
    expect(&loaded["session"], true);
    let cleared = daemon.ok("session/configure", json!({"sessionId": session, "systemPrompt": null}));
    expect(&cleared["session"], false);
    assert!(cleared["session"]["usage"]["breakdown"]["tools"].as_u64() > Some(0), "left out: unchanged");
    let cleared = daemon.ok("session/configure", json!({"sessionId": session, "title": null, "thinkingLevel": null}));
    assert_eq!(
        (&cleared["session"]["title"], cleared["session"]["thinkingLevel"].as_str()),
        (&Value::Null, Some("off"))
    );
}

#[test]
fn settings_of_a_session_are_stored_with_it_too() {
    let mut daemon = Daemon::start();
    let session = loaded(&mut daemon, "own", 2);
    let set = |daemon: &mut Daemon, patch: Value| {
        daemon.call("settings/set", json!({"scope": "session", "sessionId": session, "patch": patch}))
    };
    let answer = set(&mut daemon, json!({"compaction": {"keepRecentTokens": 77}})).expect("a right patch");
    assert_eq!(answer["settings"]["compaction"]["keepRecentTokens"], 77);
    assert_eq!(answer["sources"]["compaction.keepRecentTokens"], "session");
    daemon.until("settings_changed");
    let error = set(&mut daemon, json!({"compaction": {"keepRecentTokens": "many"}})).expect_err("a wrong one");
    assert_eq!(error["data"]["path"], "patch.compaction.keepRecentTokens");
    daemon.ok("session/close", json!({"sessionId": session}));
    let path = daemon.home.path("own.jsonl");
    daemon.load(&path);
    let kept = daemon.ok("settings/get", json!({"sessionId": session}));
    assert_eq!(kept["settings"]["compaction"]["keepRecentTokens"], 77);
    let answer = set(&mut daemon, json!({"compaction": {"keepRecentTokens": null}})).expect("a right patch");
    assert_eq!(answer["settings"]["compaction"]["keepRecentTokens"], 20_000);
}

#[test]
fn a_read_only_session_takes_no_notes() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "looked-at", &turns(2));
    let id = daemon.ok("session/load", json!({"path": path, "readOnly": true}))["session"]["sessionId"].clone();
    for (method, params) in [
        ("session/label", json!({"targetEntryId": "e1", "label": "x"})),
        ("session/pin", json!({"text": "x"})),
        ("session/configure", json!({"title": "x"})),
        ("session/undo_compaction", json!({})),
    ] {
        let mut params = params;
        params["sessionId"] = id.clone();
        let error = daemon.err(method, params);
        assert_eq!(error["data"]["code"], "storage_error", "{method}");
    }
}

#[test]
fn what_was_given_for_this_time_outlives_a_change_of_something_else() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "given", &turns(2));
    let given =
        json!({"path": path, "systemPrompt": "Be brief.", "settings": {"compaction": {"keepRecentTokens": 77}}});
    let session = daemon.ok("session/load", given)["session"]["sessionId"].as_str().expect("an id").to_owned();
    let configured = daemon.ok("session/configure", json!({"sessionId": session, "title": "Named"}));
    assert!(configured["session"]["usage"]["breakdown"]["system"].as_u64() > Some(0));
    let settings = daemon.ok("settings/set", json!({"scope": "session", "sessionId": session, "patch": {}}));
    assert_eq!(settings["settings"]["compaction"]["keepRecentTokens"], 77);
    let error = daemon.err("session/configure", json!({"sessionId": session, "model": null}));
    assert_eq!(error["data"]["path"], "model");
}

#[test]
fn an_answer_that_failed_cannot_be_pinned() {
    let mut daemon = Daemon::start();
    let mut failed = assistant("half of an ans");
    failed["stopReason"] = json!("error");
    let path = session_of(&daemon.home, "failed", &[user("go"), failed, user("again")]);
    let session = daemon.load(&path);
    let error = daemon.err("session/pin", json!({"sessionId": session, "entryId": "e1"}));
    assert_eq!(error["data"]["path"], "entryId");
}

/// The system prompt and the tools are those of the branch, in the running daemon as after opening the file again.
#[test]
fn a_branch_without_the_system_prompt_and_the_tools_is_sent_without_them() {
    let tools = json!([{"name": "shell", "description": "runs", "inputSchema": {"type": "object"}}]);
    for ours in [true, false] {
        let mut daemon = Daemon::start();
        let (session, path) = if ours {
            let created = daemon.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
            (created["sessionId"].as_str().expect("an id").to_owned(), created["path"].clone())
        } else {
            let path = session_of(&daemon.home, "branches", &turns(1));
            (daemon.load(&path), json!(path))
        };
        let first = append(&mut daemon, &session, &turns(2))[1].clone();
        let configure = json!({"sessionId": session, "model": "p/m", "systemPrompt": "Be brief.", "tools": tools});
        daemon.ok("session/configure", configure);
        append(&mut daemon, &session, &turns(1));
        let request = |daemon: &mut Daemon| {
            let asked = json!({"sessionId": session, "format": "openai_chat"});
            daemon.call("session/context", asked).map(|answer| answer["body"].clone())
        };
        let body = request(&mut daemon).expect("a request");
        assert!(body.to_string().contains("Be brief.") && body["tools"][0].is_object(), "{body:#}");
        // Without a model of its own the branch says no request; it is given again.
        let other = json!({"sessionId": session, "parentEntryId": first, "messages": turns(1)});
        daemon.ok("session/append", other);
        daemon.ok("session/configure", json!({"sessionId": session, "model": "p/m"}));
        let live = request(&mut daemon).expect("a request");
        daemon.ok("session/close", json!({"sessionId": session}));
        daemon.ok("session/load", json!({"path": path}));
        let reopened = request(&mut daemon).expect("a request");
        assert_eq!(live, reopened, "ours: {ours}");
        assert!(!live.to_string().contains("Be brief.") && live.get("tools").is_none(), "ours: {ours}: {live:#}");
    }
}
