//! Texts for another reader than the session's own model, and texts that stand for a conversation, have no secret: in each
//! body that a provider receives, each event and each line that is written.

use crate::{
    provider::{Asked, Format, Provider, Step},
    summarizing::{compact, good, good_model, merge, settings},
    support::{Daemon, Home, assistant, entries, header, text_of, turns, user},
};
use serde_json::{Value, json};
use std::{fs, path::Path};

/// A key in no text of this file.
fn key(place: &str) -> String {
    format!("{}-ant-api03-{place}0123456789abcdefABCDEF", "sk")
}

fn says(place: &str) -> String {
    format!("Use {} here.", key(place))
}

fn has_none(what: &str, text: &str, places: &[&str]) {
    for place in places {
        assert!(!text.contains(&key(place)), "{what} has the key of the {place}: {text}");
    }
}

/// A model of OpenAI that is the session's own, and another one, both at this provider.
fn two_models(provider: &Provider, more: Value) -> String {
    let model = |of: &str, id: &str| json!({"provider": of, "id": id, "api": "openai_responses", "baseUrl": provider.base_url(), "contextWindow": 100_000});
    let mut all = json!({"defaultModel": "openai/gpt-5", "models": [model("openai", "gpt-5"), model("work", "other")]});
    merge(&mut all, more);
    settings(provider, Format::OpenAiResponses, all)
}

fn document() -> String {
    "## Goal\nFinish the parser.\n\n## Constraints & Preferences\n- never change the lock files\n\n## State of the Work\nThe parts \
     were looked at.\n\n## What Was Learned\nvalue_1 is set.\n\n## Next Steps\n1. Run the tests.\n\n## Files to Read First\n- \
     /project/src/call1.rs, the parser."
        .to_owned()
}

/// Answers of a provider that compacts itself, and of its models.
fn answers(asked: &Asked) -> Step {
    match asked.path.ends_with("/compact") {
        true => Step::answer("c2VjcmV0LWhpc3Rvcnk="),
        false => good_model(asked),
    }
}

fn provider(answers: impl Fn(&Asked) -> Step + Send + Sync + 'static) -> Provider {
    let provider = Provider::start(Format::OpenAiResponses);
    provider.otherwise(answers);
    provider
}

fn bodies(provider: &Provider) -> String {
    provider.asked().iter().map(|asked| asked.body.to_string()).collect::<Vec<_>>().join("\n")
}

/// The lines of a session's file that a test did not write itself.
fn written(path: &Path, before: usize) -> String {
    fs::read_to_string(path).expect("a file").lines().skip(before).collect::<Vec<_>>().join("\n")
}

fn path_of(daemon: &mut Daemon, session: &str) -> String {
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    status["session"]["path"].as_str().expect("a path").to_owned()
}

#[test]
fn the_compaction_of_a_provider_has_no_secret_of_the_system_prompt_or_of_an_earlier_history() {
    let provider = provider(answers);
    let home = Home::new();
    home.settings(&two_models(&provider, json!({})));
    let said = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": says("history")}]});
    let item = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "dGhlaXJz"});
    let mut lines = vec![header("s")];
    lines.extend(entries(&turns(4)));
    lines.push(json!({"type": "compaction", "id": "c", "parentId": "e15", "timestamp": "2026-01-01T00:00:01.000Z",
        "summary": "## Goal\nx", "firstKeptEntryId": "e15", "tokensBefore": 9000,
        "preserveData": {"openaiRemoteCompaction": {"provider": "openai", "replacementHistory": [said, item], "compactionItem": item}}}));
    let path = home.session("s.jsonl", &lines);
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    let mut more = turns(12);
    more.push(user(&text_of(620, "next")));
    daemon.append(&session, &more);
    daemon.ok("session/configure", json!({"sessionId": session, "systemPrompt": says("prompt")}));
    let answer = compact(&mut daemon, &session, json!({}));
    assert_eq!(answer["result"]["method"], "provider_native", "{answer:#}");
    let sent = bodies(&provider);
    has_none("a request", &sent, &["prompt", "history"]);
    assert!(sent.contains("[REDACTED:anthropic-key]"), "{sent}");
    let native: Vec<_> = provider.asked().into_iter().filter(|asked| asked.path.ends_with("/compact")).collect();
    assert_eq!(native[0].body["input"][1], item, "an encrypted item stays as it is");
}

#[test]
fn a_handoff_has_no_secret_of_its_goal_its_instructions_or_a_document_of_the_client() {
    for model in ["openai/gpt-5", "work/other"] {
        let provider = provider(|_| Step::answer(&document()));
        let home = Home::new();
        home.settings(&two_models(&provider, json!({})));
        let mut daemon = Daemon::at(home);
        let session = daemon.new_session(json!({"cwd": "/project", "systemPrompt": says("prompt")}));
        daemon.append(&session, &turns(4));
        daemon.append(&session, &[user(&says("talk")), assistant("I will.")]);
        let answer = daemon.ok(
            "session/handoff",
            json!({"sessionId": session, "goal": says("goal"), "instructions": says("instructions"), "wait": true,
                "model": {"provider": model.split('/').next(), "id": model.split('/').nth(1)}}),
        );
        assert_eq!(answer["outcome"], "completed", "{answer:#}");
        let sent = bodies(&provider);
        has_none("a request", &sent, &["goal", "instructions"]);
        if model == "work/other" {
            has_none("a request to another model", &sent, &["prompt", "talk"]);
        } else {
            assert!(sent.contains(&key("prompt")) && sent.contains(&key("talk")), "its own model reads from its cache");
        }
        let new = answer["newSessionId"].as_str().expect("an id").to_owned();
        let stored = fs::read_to_string(path_of(&mut daemon, &new)).expect("a file");
        assert!(stored.contains("Use [REDACTED:anthropic-key] here."), "the goal is stored: {stored}");
        let of_client = format!("{}\n\n{}", document(), says("document"));
        let draft = json!({"sessionId": session, "document": of_client, "dryRun": true});
        let draft = daemon.ok("session/handoff", draft)["document"].clone();
        has_none("a draft", draft.as_str().expect("a text"), &["document"]);
        let answer = daemon
            .ok("session/handoff", json!({"sessionId": session, "document": of_client, "save": true, "wait": true}));
        let by_client =
            fs::read_to_string(path_of(&mut daemon, answer["newSessionId"].as_str().expect("an id"))).expect("a file");
        let saved = fs::read_to_string(answer["savedPath"].as_str().expect("a path")).expect("a file");
        let places = ["goal", "instructions", "document"];
        for (what, text) in [("a session", &stored), ("a session", &by_client), ("the saved document", &saved)] {
            has_none(what, text, &places);
        }
        has_none("an answer", &answer.to_string(), &places);
        has_none("an event", &json!(daemon.events).to_string(), &places);
    }
}

#[test]
fn an_extracted_handoff_has_no_secret_of_its_goal() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &turns(4));
    let answer = daemon.ok(
        "session/handoff",
        json!({"sessionId": session, "goal": says("goal"), "instructions": says("instructions"), "wait": true}),
    );
    let new = answer["newSessionId"].as_str().expect("an id").to_owned();
    let stored = fs::read_to_string(path_of(&mut daemon, &new)).expect("a file");
    has_none("a session", &stored, &["goal", "instructions"]);
    has_none("an event", &json!(daemon.events).to_string(), &["goal", "instructions"]);
}

#[test]
fn a_reference_has_no_secret_of_its_question_or_of_a_message_in_its_place() {
    for with_model in [false, true] {
        let provider = provider(|asked: &Asked| {
            let extract = good("by the model");
            if asked.text().contains("question") { Step::answer(&extract) } else { good_model(asked) }
        });
        let home = Home::new();
        if with_model {
            home.settings(&two_models(&provider, json!({})));
        }
        let mut daemon = Daemon::at(home);
        let source = daemon.new_session(json!({"cwd": "/project"}));
        daemon
            .append(&source, &[user(&format!("The port is 4711. {}", says("source"))), assistant("Port 4711 it is.")]);
        let session = daemon.new_session(json!({"cwd": "/other"}));
        // The message that stands in for a question is cut in the middle of its key.
        let long = format!("{} {}", "port ".repeat(195), says("message"));
        daemon.append(&session, &[user(&long), assistant("Which port?")]);
        let path = path_of(&mut daemon, &session);
        let before = fs::read_to_string(&path).expect("a file").lines().count();
        for more in [json!({}), json!({"question": format!("Which port has {}?", key("question"))})] {
            let mut params = json!({"sessionId": session, "fromSessionId": source, "wait": true});
            merge(&mut params, more);
            let answer = daemon.ok("session/reference", params);
            assert_eq!(answer["outcome"], "completed", "{answer:#}");
        }
        let (sent, stored) = (bodies(&provider), written(Path::new(&path), before));
        assert_eq!(with_model, !sent.is_empty());
        for (what, text) in [("a request", &sent), ("a line", &stored)] {
            has_none(what, text, &["question", "message", "source"]);
            assert!(!text.contains("api03-message"), "{what} has a part of the key: {text}");
        }
        assert!(stored.contains("Which port has [REDACTED:anthropic-key]?"), "{stored}");
    }
}

#[test]
fn the_summary_of_a_branch_has_no_secret_of_a_pin_or_of_a_summary_on_it() {
    for with_model in [false, true] {
        let provider = provider(good_model);
        let home = Home::new();
        if with_model {
            home.settings(&two_models(&provider, json!({})));
        }
        let item = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "dGhlaXJz"});
        let mut lines = vec![header("s")];
        lines.extend(entries(&turns(4)));
        lines.push(json!({"type": "compaction", "id": "c", "parentId": "e15", "timestamp": "2026-01-01T00:00:01.000Z",
            "summary": format!("## Goal\nFix it.\n\n## Critical Context\n- {}", says("summary")), "shortSummary": says("summary"),
            "firstKeptEntryId": "e15", "tokensBefore": 9000, "method": "provider_native",
            "preserveData": {"openaiRemoteCompaction": {"provider": "openai", "replacementHistory": [item], "compactionItem": item}}}));
        let path = home.session("s.jsonl", &lines);
        let mut daemon = Daemon::at(home);
        let session = daemon.load(&path);
        daemon.append(&session, &[user(&says("message")), assistant("I will."), user("Go on."), assistant("Done.")]);
        let ids = daemon.context(&session)["entryIds"].as_array().expect("ids").clone();
        let pinned = ids.iter().rev().nth(3).expect("a message");
        daemon.ok("session/pin", json!({"sessionId": session, "entryId": pinned}));
        daemon.ok("session/pin", json!({"sessionId": session, "text": says("pin")}));
        let before = fs::read_to_string(&path).expect("a file").lines().count();
        let params = json!({"sessionId": session, "targetEntryId": "e3", "summarize": true, "wait": true});
        let answer = daemon.ok("session/navigate", params);
        assert_eq!(answer["outcome"], "completed", "{answer:#}");
        let stored = written(&path, before);
        assert!(stored.contains("branch_summary") && stored.contains("[REDACTED:anthropic-key]"), "{stored}");
        for (what, text) in [("a request", bodies(&provider)), ("a line", stored)] {
            has_none(what, &text, &["pin", "summary", "message"]);
        }
    }
}

#[test]
fn with_redaction_off_a_goal_and_a_question_stay_as_they_are() {
    let home = Home::new();
    home.settings(r#"{"redaction": {"enabled": false}}"#);
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &turns(4));
    let other = daemon.new_session(json!({"cwd": "/project"}));
    let answer = daemon.ok("session/handoff", json!({"sessionId": session, "goal": says("goal"), "wait": true}));
    let question = says("question");
    daemon.ok(
        "session/reference",
        json!({"sessionId": other, "fromSessionId": session, "question": question, "wait": true}),
    );
    let new = answer["newSessionId"].as_str().expect("an id").to_owned();
    for (session, place) in [(new, "goal"), (other, "question")] {
        let stored = fs::read_to_string(path_of(&mut daemon, &session)).expect("a file");
        assert!(stored.contains(&key(place)), "{stored}");
    }
}
