//! `session/handoff`: a new session that goes on from a document.

mod behind;
mod edges;

use crate::{
    pi_reader::Session,
    provider::{Asked, Format, Provider, Step, Stop},
    summarizing::{events as all_events, merge, settings},
    support::*,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf};

fn of(session: &str) -> Value {
    json!({"sessionId": session})
}

fn file_of(daemon: &mut Daemon, session: &str) -> PathBuf {
    daemon.ok("session/status", of(session))["session"]["path"].as_str().expect("a path").into()
}

fn call(daemon: &mut Daemon, session: &str, more: Value) -> Result<Value, Value> {
    let mut params = json!({"sessionId": session, "wait": true});
    merge(&mut params, more);
    daemon.call("session/handoff", params)
}

fn handed(daemon: &mut Daemon, session: &str, more: Value) -> Value {
    call(daemon, session, more).unwrap_or_else(|error| panic!("{error:#}"))
}

/// A document as a good model writes it.
fn document(word: &str) -> String {
    format!(
        "## Goal\nFinish the parser ({word}).\n\n## Constraints & Preferences\n- never change the lock files\n\n## State of \
         the Work\nThe parts were looked at.\n\n## What Was Learned\nvalue_1 is set.\n\n## Next Steps\n1. Run the tests.\n\n\
         ## Files to Read First\n- /project/src/call1.rs, the parser."
    )
}

/// Params of a session with all that lasts.
fn furnished() -> Value {
    json!({"cwd": "/project", "title": "Parser", "systemPrompt": "Be brief.", "thinkingLevel": "high",
        "settings": {"prune": {"protectTokens": 77}},
        "tools": [{"name": "read", "description": "Reads.", "inputSchema": {"type": "object", "properties": {}}}]})
}

/// A daemon whose model is at this provider, and a session of some turns with a title, a system prompt and a tool.
fn at(provider: &Provider, format: Format, more: Value) -> (Daemon, String) {
    let home = Home::new();
    home.settings(&settings(provider, format, more));
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(furnished());
    daemon.append(&session, &turns(4));
    (daemon, session)
}

/// A daemon without models, and a session of some turns.
fn without_models() -> (Daemon, String) {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(furnished());
    daemon.append(&session, &turns(4));
    (daemon, session)
}

/// The parts of a request that a provider caches: system prompt, tools and messages, without marks of the cache.
fn prefix(body: &Value) -> [Value; 3] {
    let of = |names: &[&str]| names.iter().map(|name| body[*name].clone()).find(|it| !it.is_null());
    let parts = [&["system", "systemInstruction", "instructions"][..], &["tools"], &["messages", "input", "contents"]];
    parts.map(|names| {
        let mut part = of(names).unwrap_or_default();
        unmark(&mut part);
        part
    })
}

fn unmark(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(unmark),
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(unmark);
        }
        _ => {}
    }
}

/// The message that asks Anthropic's models to go on.
fn filler() -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": "(Go on.)"}]})
}

/// The choice of tools in a request.
fn choice(asked: &Asked) -> Value {
    match asked.format {
        Format::Anthropic => asked.body["tool_choice"]["type"].clone(),
        Format::OpenAiChat | Format::OpenAiResponses => asked.body["tool_choice"].clone(),
        Format::Google => asked.body["toolConfig"]["functionCallingConfig"]["mode"].clone(),
    }
}

/// The file of the old session has only costs behind what it had.
fn unchanged(daemon: &mut Daemon, session: &str, context: &Value, file: &[u8]) {
    assert_eq!(daemon.context(session)["messages"], context["messages"]);
    let now = fs::read(file_of(daemon, session)).expect("a file");
    assert!(now.starts_with(file), "the old lines stay");
    let more = String::from_utf8(now[file.len()..].to_vec()).expect("text");
    assert!(more.lines().all(|line| line.contains(r#""type":"usage""#)), "{more}");
}

#[test]
fn the_request_is_the_next_one_of_the_session_with_one_message_more_in_every_format() {
    for format in Format::ALL {
        let provider = Provider::start(format);
        provider.otherwise(Step::answer(&document("by the model")));
        let (mut daemon, session) = at(&provider, format, json!({}));
        let body = daemon.ok("session/context", json!({"sessionId": session, "format": format.api()}))["body"].take();
        let answer = handed(&mut daemon, &session, json!({"goal": "Release </conversation> it."}));
        assert_eq!(answer["outcome"], "completed", "{format:?}: {answer:#}");
        assert_eq!(answer["document"], json!(document("by the model")), "{format:?}");
        let asked = provider.asked();
        assert_eq!(asked.len(), 1, "{format:?}");
        assert_eq!(asked[0].refused, None, "{format:?}");
        let ([system, tools, messages], [known_system, known_tools, known]) = (prefix(&asked[0].body), prefix(&body));
        assert_eq!((system, tools), (known_system, known_tools), "{format:?}");
        let (messages, known) = (messages.as_array().expect("a list"), known.as_array().expect("a list"));
        // Anthropic takes no conversation that ends with an answer.
        let known = known.strip_suffix(&[filler()][..]).unwrap_or(known);
        assert_eq!(&messages[..known.len()], known, "{format:?}");
        assert_eq!(messages.len(), known.len() + 1, "{format:?}");
        let last = messages[known.len()].to_string();
        assert!(last.contains("Files to Read First"), "{last}");
        assert!(last.contains("Release &lt;/conversation> it."), "{last}");
        let none = if format == Format::Google { "NONE" } else { "none" };
        assert_eq!(choice(&asked[0]), none, "{format:?}");
    }
}

#[test]
fn a_provider_that_refuses_the_choice_of_tools_is_asked_once_more_with_auto() {
    let refusal = json!({"error": {"message": "tool_choice 'none' is not supported, use 'auto'", "type": "invalid_request_error"}});
    let refused = || Step::status(400).body(&refusal.to_string());
    let provider = Provider::start(Format::OpenAiChat);
    provider.script([refused(), Step::answer(&document("by the model"))]);
    let (mut daemon, session) = at(&provider, Format::OpenAiChat, json!({}));
    let answer = handed(&mut daemon, &session, json!({}));
    assert_eq!(answer["document"], json!(document("by the model")), "{answer:#}");
    let asked = provider.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(choice(&asked[0]), "none");
    assert!(matches!(choice(&asked[1]), Value::Null) || choice(&asked[1]) == "auto", "{}", choice(&asked[1]));
    assert_eq!(prefix(&asked[0].body), prefix(&asked[1].body));

    // A second refusal is not about the choice, so the document is extracted.
    provider.script([refused(), refused()]);
    let answer = handed(&mut daemon, &session, json!({}));
    assert_eq!((provider.asked().len(), &answer["outcome"]), (4, &json!("completed")), "{answer:#}");
    assert!(!answer["document"].to_string().contains("by the model"));
}

#[test]
fn the_new_session_begins_with_the_document_and_all_that_lasts_and_the_old_one_stays() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(Step::answer(&document("by the model")));
    let (mut daemon, session) = at(&provider, Format::Anthropic, json!({}));
    let ids = daemon.append(&session, &[user("Never touch the generated files."), assistant("I will not.")]);
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": ids["entryIds"][0]}));
    daemon.ok("session/pin", json!({"sessionId": session, "text": "The port is 4711."}));
    let todos =
        json!({"todos": [{"id": "1", "content": "Write the printer", "status": "pending", "priority": "high"}]});
    let mut listed = calls(&["t1"]);
    listed["content"][0]["name"] = "todowrite".into();
    listed["content"][0]["arguments"] = todos;
    let mut told = result("t1", "ok");
    told["toolName"] = "todowrite".into();
    daemon.append(&session, &[listed, told, assistant("It is listed.")]);
    let path = file_of(&mut daemon, &session);
    let (before, old, from) = (daemon.context(&session), fs::read(&path).expect("a file"), daemon.events.len());
    let answer = handed(&mut daemon, &session, json!({"goal": " Release it. "}));
    let new = answer["newSessionId"].as_str().unwrap_or_else(|| panic!("{answer:#}")).to_owned();
    assert_eq!(answer["savedPath"], Value::Null);

    let events = daemon.events_since(from);
    let of_old: Vec<_> = events.iter().filter(|(_, params)| params["sessionId"] == *session).cloned().collect();
    let expected = ["status_changed", "handoff_start", "handoff_end", "status_changed", "settled", "session_replaced"];
    let names: Vec<&str> = names(&of_old).into_iter().filter(|name| *name != "entry_appended").collect();
    assert_eq!(names, expected, "{of_old:#?}");
    assert_eq!(event(&of_old, "status_changed")["status"]["type"], "handing_off");
    assert_eq!(event(&of_old, "handoff_start"), &json!({"type": "handoff_start", "goal": "Release it."}));
    let end = json!({"type": "handoff_end", "outcome": "completed", "newSessionId": new});
    assert_eq!(event(&of_old, "handoff_end"), &end);
    let replaced = json!({"type": "session_replaced", "newSessionId": new, "reason": "handoff"});
    assert_eq!(event(&of_old, "session_replaced"), &replaced);
    let chunks: String = all_events(&daemon, "summary_chunk")
        .filter(|chunk| chunk["source"] == "handoff")
        .filter_map(|chunk| chunk["text"].as_str())
        .collect();
    assert!(chunks.contains("by the model"), "{chunks}");
    unchanged(&mut daemon, &session, &before, &old);
    let spent = daemon.ok("session/status", of(&session))["spent"]["total"]["requests"].as_u64();
    assert_eq!(spent, Some(1), "the old session has the cost");

    let info = daemon.ok("session/status", of(&new))["session"].take();
    assert_eq!((&info["title"], &info["thinkingLevel"]), (&json!("Parser (2)"), &json!("high")));
    assert_eq!(info["model"], json!({"provider": "test", "id": "model"}));
    assert_eq!((&info["parentSession"], &info["cwd"]), (&json!(path), &json!("/project")));
    let of_new = daemon.ok("settings/get", of(&new));
    assert_eq!(of_new["settings"]["prune"]["protectTokens"], 77, "{of_new:#}");
    let body = daemon.ok("session/context", json!({"sessionId": new, "format": "anthropic"}))["body"].take();
    assert!(body["system"].to_string().contains("Be brief.") && body["tools"].to_string().contains("Reads."));

    let context = daemon.context(&new);
    assert_eq!(context["compactionEntryId"], Value::Null);
    let text = fs::read_to_string(file_of(&mut daemon, &new)).expect("a file");
    assert!(!text.contains(r#""type":"compaction""#), "{text}");
    let pi: Vec<String> = Session::parse(&text).context().iter().map(|sent| sent.message.to_string()).collect();
    for shown in [context["messages"].to_string(), pi.join("\n")] {
        for once in ["Never touch the generated files.", "The port is 4711.", "by the model", "Write the printer"] {
            assert_eq!(shown.matches(once).count(), 1, "{once} in {shown}");
        }
        assert!(!shown.contains("I will not.") && shown.contains("<handoff-context>"), "{shown}");
    }
    let entries = daemon.ok("session/entries", of(&new))["entries"].take();
    let entries = entries.as_array().expect("a list").clone();
    let carrier = entries.iter().find(|entry| entry["customType"] == "handoff").expect("the document");
    assert_eq!((&carrier["type"], &carrier["display"]), (&json!("custom_message"), &json!(true)));
    let details = &carrier["details"];
    assert_eq!((&details["document"], &details["goal"]), (&answer["document"], &json!("Release it.")));
    assert_eq!((&details["method"], &details["sessionId"]), (&json!("llm"), &json!(session)));

    daemon.append(&new, &[user("Go on."), assistant("I do.")]);
    let (more, path) = (daemon.context(&new), file_of(&mut daemon, &new));
    daemon.ok("session/close", of(&new));
    daemon.load(&path);
    assert_eq!(daemon.context(&new), more);
    let compacted = daemon.ok(
        "session/compact",
        json!({"sessionId": new, "keepRecentTokens": 0, "wait": true,
        "instructions": "all", "method": "extractive"}),
    );
    assert_eq!(compacted["outcome"], "completed", "{compacted:#}");
    assert_eq!(daemon.context(&new)["messages"].to_string().matches("The port is 4711.").count(), 1);
}

#[test]
fn without_a_model_the_document_is_extracted_and_a_notice_says_so() {
    let (mut daemon, session) = without_models();
    let from = daemon.events.len();
    let first = handed(&mut daemon, &session, json!({"goal": "Release it."}));
    assert_eq!(first["outcome"], "completed", "{first:#}");
    let document = first["document"].as_str().expect("a text");
    assert!(document.starts_with("## Goal\nRelease it.\n\n## Earlier Goal\n"), "{document}");
    assert!(document.contains("part_3") && document.contains("You must never change part_1.lock"), "{document}");
    let events = daemon.events_since(from);
    let notice = event(&events, "notice");
    assert!(notice["detail"].to_string().contains("was extracted, because no model can be asked"), "{notice:#}");
    assert_eq!(notice["code"], "document_extracted");
    let chunks: Vec<_> = all_events(&daemon, "summary_chunk").filter(|chunk| chunk["source"] == "handoff").collect();
    assert!(!chunks.is_empty());
    let again = handed(&mut daemon, &session, json!({"goal": "Release it.", "dryRun": true}));
    assert_eq!(again, json!({"document": document}), "the same conversation gives the same document");
}

#[test]
fn rejected_documents_lead_to_another_try_then_to_the_next_model_then_to_extraction() {
    let secret = document(
        "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijABCDEFGHIJ-AA",
    );
    for (name, step) in [
        ("empty", Step::empty()),
        ("cut off", Step::answer(&document("half")).stop(Stop::Length)),
        ("refusal", Step::answer("I'm sorry, I can't help with that.")),
        ("secret", Step::answer(&secret)),
        ("call", Step::call("read", json!({"path": "/x"}))),
    ] {
        let provider = Provider::start(Format::Anthropic);
        provider.strict(false).script([step.clone(), Step::answer(&document("second"))]);
        let (mut daemon, session) = at(&provider, Format::Anthropic, json!({}));
        let answer = handed(&mut daemon, &session, json!({}));
        assert_eq!(answer["document"], json!(document("second")), "{name}");
        let asked = provider.asked();
        assert!(asked[1].text().contains("could not be used"), "{name}");

        provider.otherwise(step);
        let from = daemon.events.len();
        let answer = handed(&mut daemon, &session, json!({}));
        assert_eq!(answer["outcome"], "completed", "{name}: {answer:#}");
        assert!(answer["document"].as_str().is_some_and(|text| text.contains("part_3") && !text.contains("sk-ant")));
        let events = daemon.events_since(from);
        assert!(event(&events, "notice")["detail"].to_string().contains("The last reason"), "{name}");
        assert_eq!(provider.asked().len(), 4, "{name}");
    }
}

/// Settings with a second model, which follows the session's own.
fn with_other(other: &Provider) -> Value {
    json!({"compaction": {"models": ["other/writer"]}, "models": [
        {"provider": "test", "id": "model", "api": "anthropic", "baseUrl": "http://127.0.0.1:1", "contextWindow": 100_000},
        {"provider": "other", "id": "writer", "api": "anthropic", "baseUrl": other.base_url(), "contextWindow": 100_000},
    ], "retry": {"enabled": false}})
}

#[test]
fn another_model_follows_the_sessions_own_and_gets_no_secrets() {
    let key =
        "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijABCDEFGHIJ-AA";
    let other = Provider::start(Format::Anthropic);
    other.otherwise(Step::answer(&document("by the other")));
    let (mut daemon, session) = at(&other, Format::Anthropic, with_other(&other));
    daemon.append(&session, &[user(&format!("The key is {key}.")), assistant("I know.")]);
    let answer = handed(&mut daemon, &session, json!({}));
    assert_eq!(answer["document"], json!(document("by the other")), "{answer:#}");
    let asked = other.asked();
    assert!(!asked[0].body.to_string().contains(key) && asked[0].text().contains("part_3"));

    // The model that the request names is the only one.
    let from = daemon.events.len();
    let failed = handed(&mut daemon, &session, json!({"model": "test/model"}));
    assert_eq!((&failed["outcome"], &failed["error"]["code"]), (&json!("failed"), &json!("provider_error")));
    assert_eq!((&failed["newSessionId"], &failed["document"]), (&Value::Null, &Value::Null));
    assert_eq!(other.asked().len(), 1);
    let events = daemon.events_since(from);
    assert_eq!(event(&events, "handoff_end")["error"]["code"], "provider_error");
    assert!(events.iter().all(|(kind, _)| kind != "session_replaced"), "{:?}", names(&events));
    let named = handed(&mut daemon, &session, json!({"model": "other/writer", "dryRun": true}));
    assert_eq!(named["document"], json!(document("by the other")));
}

#[test]
fn a_draft_is_edited_and_handed_in_byte_for_byte() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(Step::answer(&document("draft")));
    let (mut daemon, session) = at(&provider, Format::Anthropic, json!({}));
    let sessions = |daemon: &mut Daemon| daemon.ok("session/list", json!({}))["sessions"].as_array().map(Vec::len);
    let path = file_of(&mut daemon, &session);
    let (before, old) = (daemon.context(&session), fs::read(&path).expect("a file"));
    let draft = handed(&mut daemon, &session, json!({"goal": "Release it.", "dryRun": true}));
    assert_eq!(draft, json!({"document": document("draft")}));
    unchanged(&mut daemon, &session, &before, &old);
    assert_eq!(sessions(&mut daemon), Some(1));
    assert_eq!(daemon.count("session_replaced"), 0);

    let edited = format!("\n  {}\n</handoff-context> and more\u{a0}\n\n", draft["document"].as_str().expect("a text"));
    let checked = handed(&mut daemon, &session, json!({"document": edited, "dryRun": true}));
    assert_eq!(checked, json!({"document": edited}));
    let answer = handed(&mut daemon, &session, json!({"document": edited, "save": true}));
    assert_eq!((&answer["document"], provider.asked().len()), (&json!(edited), 1));
    let new = answer["newSessionId"].as_str().expect("an id").to_owned();
    let entries = daemon.ok("session/entries", of(&new))["entries"].take();
    let carrier = entries.as_array().expect("a list").iter().find(|it| it["customType"] == "handoff");
    let carrier = carrier.expect("the document");
    assert_eq!((&carrier["details"]["document"], &carrier["details"]["method"]), (&json!(edited), &json!("client")));
    let content = carrier["content"].as_str().expect("a text");
    assert_eq!(content.matches("</handoff-context>").count(), 1, "the document cannot end its frame: {content}");

    let saved = PathBuf::from(answer["savedPath"].as_str().expect("a path"));
    assert_eq!(fs::read_to_string(&saved).expect("a file"), edited);
    assert_eq!(saved.parent(), Some(file_of(&mut daemon, &new).with_extension("").as_path()));
    assert!(saved.file_name().is_some_and(|name| name.to_string_lossy().starts_with("handoff-")));
    // Other files in the folder are not of the session.
    let others = ["handoff-notes.md", "handoff-2026-01-01T00-00-00-000Z.md"].map(|name| saved.with_file_name(name));
    others.iter().for_each(|other| fs::write(other, "mine").expect("a file"));
    daemon.ok("session/delete", json!({"sessionId": new}));
    assert_eq!((saved.exists(), others.map(|other| other.exists())), (false, [true, true]));
}

#[test]
fn what_cannot_be_handed_off_is_refused_with_advice() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let refused = |daemon: &mut Daemon, session: &str, more: Value| call(daemon, session, more).expect_err("refused");
    for message in [None, Some(user("Hello."))] {
        message.iter().for_each(|message| drop(daemon.append(&session, std::slice::from_ref(message))));
        let error = refused(&mut daemon, &session, json!({}));
        assert_eq!(error["data"], json!({"code": "nothing_to_compact", "reason": "too_short", "retryable": false}));
        assert!(error["message"].to_string().contains("nothing to hand off"), "{error:#}");
    }
    daemon.append(&session, &turns(1));
    let huge = "word ".repeat(120_000);
    for (document, advice) in [("", "write the document"), (" \n\t", "write the document"), (&huge, "shorten it")] {
        for dry_run in [false, true] {
            let error = refused(&mut daemon, &session, json!({"document": document, "dryRun": dry_run}));
            assert_eq!(
                (&error["data"]["code"], &error["data"]["path"]),
                (&json!("invalid_params"), &json!("document"))
            );
            assert!(error["message"].to_string().contains(advice), "{error:#}");
        }
    }
    let memory = daemon.new_session(json!({"cwd": "/project", "ephemeral": true}));
    daemon.append(&memory, &turns(2));
    let error = refused(&mut daemon, &memory, json!({"save": true}));
    assert_eq!(error["data"]["path"], "save", "{error:#}");
    let answer = handed(&mut daemon, &memory, json!({}));
    let new = answer["newSessionId"].as_str().expect("an id");
    assert_eq!(daemon.ok("session/status", of(new))["session"]["path"], Value::Null);
    assert!(daemon.context(new)["messages"].to_string().contains("part_1"));
}

#[test]
fn a_cancel_at_any_time_leaves_everything_as_it_was() {
    for dry_run in [false, true] {
        let provider = Provider::start(Format::Anthropic);
        provider.otherwise(Step::hang());
        let (mut daemon, session) = at(&provider, Format::Anthropic, json!({}));
        let path = file_of(&mut daemon, &session);
        let (before, old, from) = (daemon.context(&session), fs::read(&path).expect("a file"), daemon.events.len());
        let params = json!({"sessionId": session, "wait": true, "dryRun": dry_run});
        let waiting = daemon.begin("session/handoff", params);
        provider.wait_for(1);
        let status = daemon.ok("session/status", of(&session));
        assert_eq!(status["operations"][0]["kind"], "handoff", "{status:#}");
        let busy = daemon.err("session/handoff", of(&session));
        assert_eq!((&busy["data"]["code"], &busy["data"]["kind"]), (&json!("busy"), &json!("handoff")));
        let busy = daemon.err("session/compact", of(&session));
        assert_eq!(busy["data"]["code"], "busy");
        let cancelled = daemon.ok("session/cancel", of(&session));
        assert_eq!(cancelled["cancelled"][0]["kind"], "handoff", "{cancelled:#}");
        let answer = daemon.answer(waiting).expect("an answer");
        assert_eq!((&answer["outcome"], &answer["newSessionId"]), (&json!("cancelled"), &Value::Null), "{answer:#}");
        provider.wait_for_close(0);
        let events = daemon.events_since(from);
        assert_eq!(event(&events, "handoff_end"), &json!({"type": "handoff_end", "outcome": "cancelled"}));
        assert_eq!(event(&events, "settled")["aborted"], true);
        assert!(events.iter().all(|(kind, _)| kind != "session_replaced"));
        unchanged(&mut daemon, &session, &before, &old);
        let list = daemon.ok("session/list", json!({}));
        assert_eq!(list["sessions"].as_array().map(Vec::len), Some(1), "{list:#}");
    }
}

#[test]
fn a_new_session_that_cannot_be_written_moves_nothing() {
    let (mut daemon, session) = without_models();
    let path = file_of(&mut daemon, &session);
    let (before, old) = (daemon.context(&session), fs::read(&path).expect("a file"));
    let folder = path.parent().expect("a folder").to_owned();
    let aside = folder.with_extension("aside");
    // A file stands in the place of the folder.
    fs::rename(&folder, &aside).expect("renamed");
    fs::write(&folder, "").expect("a file");
    let from = daemon.events.len();
    let answer = handed(&mut daemon, &session, json!({"save": true}));
    fs::remove_file(&folder).expect("removed");
    fs::rename(&aside, &folder).expect("renamed");
    assert_eq!(
        (&answer["outcome"], &answer["error"]["code"]),
        (&json!("failed"), &json!("storage_error")),
        "{answer:#}"
    );
    assert_eq!((&answer["newSessionId"], &answer["savedPath"]), (&Value::Null, &Value::Null));
    let events = daemon.events_since(from);
    assert!(event(&events, "handoff_end")["errorMessage"].to_string().contains("Handoff failed: "));
    assert!(events.iter().all(|(kind, _)| kind != "session_replaced"));
    unchanged(&mut daemon, &session, &before, &old);
    let files = fs::read_dir(&folder).expect("a folder").flatten().filter(|it| it.path().extension().is_some());
    assert_eq!(files.filter(|it| it.path().extension().is_some_and(|it| it == "jsonl")).count(), 1);
    assert_eq!(handed(&mut daemon, &session, json!({"save": true}))["outcome"], "completed");
}

#[test]
fn a_session_that_was_loaded_to_be_read_is_handed_off_too() {
    let (mut daemon, session) = without_models();
    let path = file_of(&mut daemon, &session);
    daemon.ok("session/close", of(&session));
    let old = fs::read(&path).expect("a file");
    daemon.ok("session/load", json!({"path": path, "readOnly": true}));
    let answer = handed(&mut daemon, &session, json!({"goal": "Release it."}));
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    assert_eq!(fs::read(&path).expect("a file"), old);
    let new = answer["newSessionId"].as_str().expect("an id");
    daemon.append(new, &[user("Go on.")]);
}

#[test]
fn messages_that_come_meanwhile_go_along_behind_the_document() {
    let provider = Provider::start(Format::Anthropic);
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    provider.otherwise(move |_: &Asked| {
        let _: Result<(), _> = held.lock().expect("no panic").recv();
        Step::answer(&document("slow"))
    });
    let (mut daemon, session) = at(&provider, Format::Anthropic, json!({}));
    let waiting = daemon.begin("session/handoff", json!({"sessionId": session, "wait": true}));
    provider.wait_for(1);
    daemon.append(&session, &[user("And mind the printer.")]);
    drop(release);
    let answer = daemon.answer(waiting).expect("an answer");
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    let new = answer["newSessionId"].as_str().expect("an id").to_owned();
    let context = daemon.context(&new);
    let messages = context["messages"].as_array().expect("a list");
    assert_eq!(messages.len(), 2, "{context:#}");
    assert!(messages[0].to_string().contains("slow") && messages[1].to_string().contains("mind the printer"));
    let path = file_of(&mut daemon, &new);
    daemon.ok("session/close", of(&new));
    daemon.load(&path);
    assert_eq!(daemon.context(&new)["messages"], context["messages"]);
}

#[test]
fn a_handoff_of_a_killed_daemon_is_ended_by_the_next_one() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(Step::hang());
    let (mut daemon, session) = at(&provider, Format::Anthropic, json!({}));
    let path = file_of(&mut daemon, &session);
    let started = daemon.ok("session/handoff", of(&session));
    provider.wait_for(1);
    daemon.kill();
    let mut daemon = daemon.restarted();
    let from = daemon.events.len();
    daemon.load(&path);
    daemon.ok("session/status", of(&session));
    let events = daemon.events_since(from);
    let ended = events.iter().find(|(kind, _)| kind == "handoff_end").unwrap_or_else(|| panic!("{events:#?}"));
    assert_eq!((&ended.1["operationId"], &ended.1["event"]["outcome"]), (&started["operationId"], &json!("failed")));
    let list = daemon.ok("session/list", json!({}));
    assert_eq!(list["sessions"].as_array().map(Vec::len), Some(1), "{list:#}");
}

#[test]
fn a_compacted_conversation_is_handed_off_with_its_summary() {
    let (mut daemon, session) = without_models();
    daemon.append(&session, &turns(8));
    let compacted = daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 0, "wait": true}));
    assert_eq!(compacted["outcome"], "completed", "{compacted:#}");
    let answer = handed(&mut daemon, &session, json!({}));
    let document = answer["document"].as_str().expect("a text");
    assert!(document.contains("part_7") && document.contains("You must never change part_0.lock"), "{document}");
    assert!(document.starts_with("## Goal\n"), "{document}");
}

/// A session whose maintenance hands off: another one was handed off to it. The threshold is at 2,000 tokens.
fn relaying(provider: &Provider) -> (Daemon, String) {
    let compaction = json!({"strategy": "handoff", "thresholdTokens": 2_000, "speculative": false});
    let (mut daemon, first) = at(provider, Format::Anthropic, json!({"compaction": compaction}));
    let answer = handed(&mut daemon, &first, json!({"document": document("by hand")}));
    (daemon, answer["newSessionId"].as_str().unwrap_or_else(|| panic!("{answer:#}")).to_owned())
}

#[test]
fn with_the_strategy_maintenance_hands_off_once_the_host_has_asked_and_the_waiting_message_goes_along() {
    for waits in [false, true] {
        let provider = Provider::start(Format::Anthropic);
        provider.otherwise(Step::answer(&document("by maintenance")));
        let (mut daemon, session) = relaying(&provider);
        let (long, short) = (text_of(2_500, "printer"), "And the tests?".to_owned());
        let mut more = vec![user("Write the printer."), assistant(if waits { "Yes." } else { &long })];
        more.extend(waits.then(|| user(&format!("{short} {long}"))));
        daemon.events.clear();
        let next = daemon.append(&session, &more)["next"].take();
        assert_eq!((&next["type"], &next["reason"]), (&json!("maintenance"), &json!("threshold")), "{next:#}");
        daemon.until("settled");
        let events = daemon.events_since(0);
        let of_old: Vec<_> = events.iter().filter(|(_, params)| params["sessionId"] == *session).cloned().collect();
        let kinds: Vec<&str> = names(&of_old).into_iter().filter(|name| *name != "entry_appended").collect();
        let expected = [
            "status_changed",
            "compaction_start",
            "handoff_start",
            "handoff_end",
            "session_replaced",
            "compaction_end",
            "status_changed",
            "settled",
        ];
        assert_eq!(kinds, expected, "{of_old:#?}");
        assert_eq!(event(&of_old, "compaction_start")["strategy"], "handoff");
        let named = |kind: &str| of_old.iter().find(|(it, _)| it == kind).expect("an event").1["operationId"].clone();
        assert!(
            ["compaction_start", "handoff_start", "compaction_end"]
                .iter()
                .all(|kind| named(kind) == next["operationId"])
        );
        let end = event(&of_old, "compaction_end");
        let new = end["newSessionId"].as_str().expect("an id").to_owned();
        assert_eq!((&end["outcome"], &end["result"]), (&json!("completed"), &Value::Null), "{end:#}");
        let shown = daemon.context(&new)["messages"].clone();
        assert_eq!(shown.as_array().map(Vec::len), Some(1 + usize::from(waits)), "{shown:#}");
        assert!(shown[0].to_string().contains("by maintenance"));
        assert_eq!(shown.to_string().contains(&short), waits);
        let asked = provider.asked();
        assert_eq!(
            (asked.len(), asked[0].text().contains(&short)),
            (1, false),
            "the message waits for the new session"
        );
        let spent = daemon.ok("session/entries", json!({"sessionId": session, "types": ["usage"]}));
        assert_eq!(spent["entries"][0]["trigger"], "threshold", "{spent:#}");

        // A host that stays here is compacted in place.
        daemon.events.clear();
        let next = daemon.append(&session, &[user("Stay."), assistant("I stay.")])["next"].take();
        assert_eq!(next["type"], "maintenance", "{next:#}");
        let end = daemon.until("compaction_end")["params"]["event"].take();
        assert_eq!((&end["outcome"], &end["newSessionId"]), (&json!("completed"), &Value::Null), "{end:#}");
        assert_eq!(daemon.count("session_replaced"), 0);
    }
}

#[test]
fn without_a_document_and_between_calls_the_strategy_summarizes_in_place() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(Step::unauthorized());
    let (mut daemon, session) = relaying(&provider);
    daemon.events.clear();
    daemon.append(&session, &[user("Write the printer."), assistant(&text_of(2_500, "printer"))]);
    daemon.until("compaction_end");
    daemon.until("settled");
    let events = daemon.events_since(0);
    let end = event(&events, "compaction_end");
    assert_eq!((&end["outcome"], &end["newSessionId"]), (&json!("completed"), &Value::Null), "{end:#}");
    assert_eq!(end["result"]["method"], "extractive", "{end:#}");
    assert_eq!(event(&events, "handoff_end")["outcome"], "failed");
    let told = events.iter().filter(|(kind, _)| kind == "notice").map(|(_, params)| &params["event"]["title"]);
    assert!(told.clone().any(|title| title == "The conversation was not handed off"), "{:?}", told.collect::<Vec<_>>());

    let (mut daemon, session) = relaying(&provider);
    daemon.events.clear();
    daemon.append(&session, &[user("Read it."), calls(&["a"])]);
    daemon.append(&session, &[result("a", &text_of(2_500, "printer"))]);
    daemon.until("compaction_end");
    let events = daemon.events_since(0);
    assert_eq!(event(&events, "compaction_start")["strategy"], "context_full");
    assert!(events.iter().all(|(kind, _)| kind != "handoff_start"), "{:?}", names(&events));
}

/// A session below the threshold of 2,000 tokens with the strategy `handoff`. Its client declares these capabilities.
fn declaring(provider: &Provider, capabilities: Value) -> (Daemon, String) {
    let compaction = json!({"strategy": "handoff", "thresholdTokens": 2_000, "speculative": false});
    let home = Home::new();
    home.settings(&settings(provider, Format::Anthropic, json!({"compaction": compaction})));
    let mut daemon = Daemon::silent(home);
    daemon.ok("initialize", json!({"protocolVersion": 1, "capabilities": capabilities}));
    let session = daemon.new_session(furnished());
    daemon.append(&session, &[user("Write the parser."), assistant("I wrote it.")]);
    (daemon, session)
}

#[test]
fn maintenance_hands_off_without_an_earlier_handoff_only_for_a_client_that_follows_replaced_sessions() {
    for (capabilities, strategy) in [(json!({"sessionReplaced": {}}), "handoff"), (json!({}), "context_full")] {
        let provider = Provider::start(Format::Anthropic);
        provider.otherwise(Step::answer(&document("by maintenance")));
        let (mut daemon, session) = declaring(&provider, capabilities);
        let from = daemon.events.len();
        let more = [user("Write the printer."), assistant(&text_of(2_500, "printer"))];
        let next = daemon.append(&session, &more)["next"].take();
        assert_eq!(next["reason"], "threshold", "{next:#}");
        daemon.until("settled");
        let events = daemon.events_since(from);
        assert_eq!(event(&events, "compaction_start")["strategy"], strategy);
        let end = event(&events, "compaction_end");
        assert_eq!(end["outcome"], "completed", "{end:#}");
        let replaced = events.iter().find(|(kind, _)| kind == "session_replaced");
        let new = replaced.map(|(_, params)| params["event"]["newSessionId"].clone()).unwrap_or_default();
        assert_eq!(end["newSessionId"], new, "{strategy}");
        let told = events.iter().any(|(_, params)| params["event"]["code"] == "handoff_not_automatic");
        assert_eq!((new.is_string(), told), (strategy == "handoff", strategy != "handoff"), "{strategy}");
        let Some(new) = new.as_str() else { continue };

        // A client declares it for all its sessions, also for the new one.
        daemon.append(new, &[user("Write the tests."), assistant(&text_of(2_500, "tests"))]);
        let end = daemon.until("compaction_end")["params"]["event"].take();
        assert!(end["newSessionId"].is_string(), "{end:#}");
    }
}

#[test]
fn a_context_that_waits_for_an_automatic_handoff_starts_no_summary_of_the_session_that_is_left() {
    let provider = Provider::start(Format::Anthropic);
    // The document is written when all requests are sent.
    let (sent, all) = std::sync::mpsc::channel::<()>();
    let all = std::sync::Mutex::new(all);
    provider.otherwise(move |_: &crate::provider::Asked| {
        let _ = all.lock().expect("nobody panics with it").recv();
        Step::answer(&document("by maintenance"))
    });
    let (mut daemon, session) = declaring(&provider, json!({"sessionReplaced": {}}));
    daemon.ok("session/configure", json!({"sessionId": session, "contextWindow": 16_384}));
    let messages = [user("Write the printer."), assistant(&text_of(1_600, "printer")), user(&text_of(16_000, "tests"))];
    for (id, method, params) in [
        (701, "session/append", json!({"messages": messages})),
        (702, "session/append", json!({"messages": [user("And the docs?")]})),
        (703, "session/context", json!({"wait": true})),
    ] {
        let mut params = params;
        params["sessionId"] = json!(session);
        daemon.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }
    drop(sent);
    daemon.answer(701).expect("an append");
    let next = daemon.answer(702).expect("an append")["next"].take();
    assert_eq!((&next["type"], &next["reason"]), (&json!("maintenance"), &json!("threshold")), "{next:#}");
    let refused = daemon.answer(703).expect_err("it is over the window");
    assert_eq!(refused["data"]["code"], "context_overflow", "{refused:#}");
    assert_eq!(provider.asked().len(), 1, "the document alone");
    let new = daemon.until("session_replaced")["params"]["event"]["newSessionId"].take();
    let (new, text) = (new.as_str().expect("an id"), refused["message"].as_str().expect("a text"));
    assert!(
        text.contains(&format!("Session {new} goes on in the place of this one: open it with session/load")),
        "{text}"
    );
}

#[test]
fn a_large_message_that_waits_does_not_count_in_the_request_for_the_document() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(Step::answer(&document("by maintenance")));
    let (mut daemon, session) = declaring(&provider, json!({"sessionReplaced": {}}));
    let from = daemon.events.len();
    let said = text_of(1_600, "printer");
    let waits = format!("And the tests? {}", text_of(16_000, "tests"));
    daemon.append(&session, &[user("Write the printer."), assistant(&said), user(&waits)]);
    daemon.until("settled");
    let asked = provider.asked();
    assert_eq!(asked.len(), 1, "the document is written at the first attempt");
    assert!(!asked[0].text().contains("And the tests?") && asked[0].tokens() > 512, "{}", asked[0].tokens());
    let events = daemon.events_since(from);
    let end = event(&events, "compaction_end");
    let new = end["newSessionId"].as_str().unwrap_or_else(|| panic!("{end:#} {:#?}", event(&events, "handoff_end")));
    let shown = daemon.context(new)["messages"].to_string();
    assert!(shown.contains("by maintenance") && shown.contains("And the tests?"), "{shown:.400}");
}

#[test]
fn a_server_that_cuts_the_request_for_a_document_is_found_out_by_its_text_and_not_by_its_thinking() {
    for (kind, key, is_cut) in [("text", "text", true), ("thinking", "thinking", false)] {
        let provider = Provider::start(Format::Anthropic);
        provider.otherwise(|_: &Asked| Step::answer(&document("by the model")).usage(600, 100, 0, 0));
        let (mut daemon, session) = at(&provider, Format::Anthropic, json!({}));
        let mut long = assistant("Done.");
        long["content"] = json!([{"type": kind, key: text_of(6_000, "long")}, {"type": "text", "text": "Done."}]);
        daemon.append(&session, &[user("Think."), long]);
        let from = daemon.events.len();
        let answer = handed(&mut daemon, &session, json!({}));
        assert_eq!(answer["document"] == json!(document("by the model")), !is_cut, "{kind}: {answer:#}");
        let told =
            daemon.events_since(from).iter().any(|(_, params)| params.to_string().contains("its server cuts prompts"));
        assert_eq!(told, is_cut, "{kind}");
    }
}

#[test]
fn a_cancel_ends_maintenance_that_hands_off_and_nothing_is_left() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(Step::hang());
    let (mut daemon, session) = relaying(&provider);
    let from = daemon.events.len();
    let next = daemon.append(&session, &[user("Write it."), assistant(&text_of(2_500, "printer"))])["next"].take();
    provider.wait_for(1);
    let cancelled = daemon.ok("session/cancel", json!({"sessionId": session, "operationId": next["operationId"]}));
    assert_eq!(cancelled["cancelled"], json!([{"operationId": next["operationId"], "kind": "compaction"}]));
    provider.wait_for_close(0);
    daemon.ok("session/status", of(&session));
    let events = daemon.events_since(from);
    for kind in ["handoff_end", "compaction_end"] {
        assert_eq!(event(&events, kind)["outcome"], "cancelled", "{kind}");
    }
    assert_eq!(daemon.append(&session, &[assistant("More.")])["next"]["type"], "none", "it rests");
    assert_eq!(daemon.ok("session/list", json!({}))["sessions"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_client_that_runs_models_writes_the_document_and_no_retry_is_lost() {
    let home = Home::new();
    home.settings(
        &json!({"defaultModel": "editor/m", "retry": {"baseDelayMs": 100},
        "models": [{"provider": "editor", "id": "m", "api": "client", "contextWindow": 100_000}]})
        .to_string(),
    );
    let mut daemon = Daemon::silent(home);
    daemon.ok("initialize", json!({"capabilities": {"llm": {}}}));
    let session = daemon.new_session(furnished());
    daemon.append(&session, &turns(2));
    let waiting = daemon.begin("session/handoff", json!({"sessionId": session, "goal": "Release it.", "wait": true}));
    for text in [None, Some(document("by the client"))] {
        let asked = daemon.next_within(std::time::Duration::from_secs(20), |frame| frame["method"] == "llm/complete");
        let asked = asked.expect("a request");
        let params = &asked["params"];
        assert_eq!((&params["purpose"], &params["system"]), (&json!("handoff"), &json!("Be brief.")), "{params:#}");
        assert_eq!(params["tools"][0]["name"], "read");
        let messages = params["messages"].as_array().expect("a list");
        assert_eq!(messages.len(), 9, "{params:#}");
        assert!(messages[8].to_string().contains("Release it.") && messages[2]["role"] == "toolResult");
        let message = match text {
            Some(text) => json!({"content": [{"type": "text", "text": text}], "usage": {"input": 900, "output": 90}}),
            None => json!({"content": [], "stopReason": "error", "errorMessage": "overloaded"}),
        };
        daemon.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"message": message}}));
    }
    let answer = daemon.answer(waiting).expect("an answer");
    assert_eq!(answer["document"], json!(document("by the client")), "{answer:#}");
    let sources = |kind| all_events(&daemon, kind).map(|event| event["source"].clone()).collect::<Vec<_>>();
    assert_eq!((sources("retry_start"), sources("retry_end")), (vec![json!("handoff")], vec![json!("handoff")]));
}
