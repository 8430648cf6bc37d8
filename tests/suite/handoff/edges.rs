//! Handoffs at their limits: secrets, long params, a small window, little output, a disk that fails.

use super::{at, document, file_of, furnished, handed, of, with_other, without_models};
use crate::{
    provider::{Format, Provider, Step},
    summarizing::{merge, settings},
    support::*,
};
use serde_json::{Value, json};
use std::fs;

const KEY: &str =
    "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijABCDEFGHIJ-AA";

/// Messages that lead over the threshold of a model with this provider.
pub(super) fn over() -> Vec<Value> {
    (0..30).flat_map(|at| [user(&text_of(4_000, &format!("part {at}"))), assistant("I see.")]).collect()
}

#[test]
fn no_part_of_a_request_to_another_model_has_secrets() {
    let other = Provider::start(Format::Anthropic);
    other.otherwise(Step::answer(&document("by the other")));
    let home = Home::new();
    home.settings(&settings(&other, Format::Anthropic, with_other(&other)));
    let mut daemon = Daemon::at(home);
    let mut params = furnished();
    merge(
        &mut params,
        json!({"systemPrompt": format!("Use {KEY}."), "tools": [{"name": "read", "description": format!("Reads with {KEY}."),
            "inputSchema": {"type": "object", "properties": {"name": {"type": "string", "description": KEY}}}}]}),
    );
    let session = daemon.new_session(params);
    daemon.append(&session, &turns(3));
    let wishes = json!({"goal": format!("Release with {KEY}."), "instructions": format!("Keep {KEY}.")});
    let answer = handed(&mut daemon, &session, wishes);
    assert_eq!(answer["document"], json!(document("by the other")), "{answer:#}");
    let body = other.asked()[0].body.to_string();
    assert!(!body.contains(KEY), "{body}");
    assert!(body.contains("Reads with") && body.contains("Release with") && body.contains("Keep "), "{body}");
}

#[test]
fn the_sessions_own_model_gets_a_goal_without_secrets() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(Step::answer(&document("by the model")));
    let (mut daemon, session) = at(&provider, Format::Anthropic, json!({}));
    let wishes = json!({"goal": format!("Release with {KEY}."), "instructions": format!("Keep {KEY}.")});
    assert_eq!(handed(&mut daemon, &session, wishes)["outcome"], "completed");
    assert!(!provider.asked()[0].body.to_string().contains(KEY));
}

#[test]
fn a_goal_or_instructions_of_more_than_8000_characters_are_refused() {
    let (mut daemon, session) = without_models();
    for name in ["goal", "instructions"] {
        let error = daemon.err("session/handoff", json!({"sessionId": session, name: "ä".repeat(8_001)}));
        assert_eq!(
            (&error["data"]["code"], &error["data"]["path"]),
            (&json!("invalid_params"), &json!(name)),
            "{error:#}"
        );
        let answer = handed(&mut daemon, &session, json!({name: "ä".repeat(8_000), "dryRun": true}));
        assert!(answer["document"].is_string(), "{answer:#}");
    }
}

#[test]
fn an_extracted_document_with_a_long_goal_fits_a_small_window() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(
        json!({"cwd": "/project", "contextWindow": 6_000, "settings": {"tokens": {"estimator": "chars"}}}),
    );
    daemon.append(&session, &turns(4));
    let answer = handed(&mut daemon, &session, json!({"goal": "Release it soon. ".repeat(470)}));
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    let usage = daemon.ok("session/usage", of(answer["newSessionId"].as_str().expect("an id")));
    assert!(usage["contextTokens"].as_u64() <= usage["thresholdTokens"].as_u64(), "{usage:#}");
}

#[test]
fn a_window_that_a_refusal_tells_limits_the_document() {
    let provider = Provider::start(Format::Anthropic);
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "prompt is too long: 90000 tokens > 6000 maximum"}});
    provider.otherwise(Step::status(400).body(&refusal.to_string()));
    let (mut daemon, session) = at(&provider, Format::Anthropic, json!({}));
    daemon.append(&session, &over()[..20]);
    let answer = handed(&mut daemon, &session, json!({}));
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    let old = daemon.ok("session/usage", of(&session));
    assert_eq!(old["contextWindow"], 6_000, "{old:#}");
    let new = daemon.ok("session/usage", of(answer["newSessionId"].as_str().expect("an id")));
    assert_eq!(new["contextWindow"], 100_000, "one refusal in another session: {new:#}");
    assert!(new["contextTokens"].as_u64() <= old["thresholdTokens"].as_u64(), "{new:#}");
}

#[test]
fn a_finished_document_is_in_the_answer_of_a_handoff_that_fails_behind_it() {
    let (mut daemon, session) = without_models();
    let folder = file_of(&mut daemon, &session).parent().expect("a folder").to_owned();
    let aside = folder.with_extension("aside");
    fs::rename(&folder, &aside).expect("renamed");
    fs::write(&folder, "").expect("a file");
    let from = daemon.events.len();
    let answer = handed(&mut daemon, &session, json!({}));
    fs::remove_file(&folder).expect("removed");
    fs::rename(&aside, &folder).expect("renamed");
    assert_eq!((&answer["outcome"], &answer["error"]["code"]), (&json!("failed"), &json!("storage_error")));
    let finished = answer["document"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
    let events = daemon.events_since(from);
    let told = event(&events, "handoff_end")["errorMessage"].to_string();
    assert!(told.contains("`document`"), "{told}");
    let again = handed(&mut daemon, &session, json!({"document": finished}));
    assert_eq!((&again["outcome"], &again["document"]), (&json!("completed"), &json!(finished)));
}

#[test]
fn thinking_leaves_room_for_the_document_within_the_output_of_the_model() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(Step::answer(&document("by the model")));
    let (mut daemon, session) = at(
        &provider,
        Format::Anthropic,
        json!({"models": [{"provider": "test", "id": "claude-3-7-sonnet", "api": "anthropic",
            "baseUrl": provider.base_url(), "contextWindow": 100_000, "maxOutputTokens": 8_192, "reasoning": true}],
            "defaultModel": "test/claude-3-7-sonnet"}),
    );
    assert_eq!(handed(&mut daemon, &session, json!({}))["outcome"], "completed");
    let body = provider.asked()[0].body.clone();
    let (most, thinking) = (body["max_tokens"].as_u64(), body["thinking"]["budget_tokens"].as_u64().unwrap_or(0));
    assert_eq!(most, Some(8_192), "{body:#}");
    assert!(thinking > 0 && most.unwrap_or(0) - thinking >= 4_096, "{most:?} {thinking}");
}

#[test]
fn a_saved_document_goes_with_its_session_and_files_of_others_stay() {
    let (mut daemon, session) = without_models();
    for foreign in [false, true] {
        let answer = handed(&mut daemon, &session, json!({"save": true}));
        let new = answer["newSessionId"].as_str().expect("an id").to_owned();
        let saved = std::path::PathBuf::from(answer["savedPath"].as_str().expect("a path"));
        let folder = saved.parent().expect("a folder").to_owned();
        if foreign {
            fs::write(folder.join("notes.md"), "mine").expect("a file");
        }
        daemon.ok("session/close", of(&new));
        daemon.ok("session/delete", of(&new));
        assert!(!saved.exists());
        assert_eq!(folder.exists(), foreign);
    }
}

#[test]
fn a_list_shows_the_goal_or_the_document_of_a_session_without_a_request() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &turns(3));
    for (goal, preview) in [(Some("Release it."), "Release it."), (None, "Take the parser.")] {
        let answer =
            handed(&mut daemon, &session, json!({"goal": goal, "document": "\n Take the parser.\nThen stop."}));
        daemon.ok("session/close", of(answer["newSessionId"].as_str().expect("an id")));
        let rows = daemon.ok("session/list", json!({}))["sessions"].take();
        let rows = rows.as_array().expect("rows").clone();
        let row = rows.iter().find(|row| row["sessionId"] == answer["newSessionId"]);
        assert_eq!(row.map(|row| row["preview"].clone()), Some(json!(preview)), "{rows:#?}");
    }
}

#[test]
fn an_overflow_of_a_session_that_was_handed_off_names_the_session_that_goes_on() {
    let (mut daemon, session) = without_models();
    let new = handed(&mut daemon, &session, json!({}))["newSessionId"].take();
    let new = new.as_str().expect("an id");
    daemon.ok("session/configure", json!({"sessionId": session, "contextWindow": 20_000}));
    let off = json!({"scope": "session", "sessionId": session, "patch": {"compaction": {"enabled": false}}});
    daemon.ok("settings/set", off);
    daemon.append(&session, &over());
    let refused = daemon.err("session/context", json!({"sessionId": session, "wait": true}));
    assert_eq!(refused["data"]["code"], "context_overflow", "{refused:#}");
    let text = refused["message"].as_str().expect("a text");
    assert!(text.contains(new) && text.contains("session/load"), "{text}");
    // A session that nobody handed off names none.
    let other = daemon.new_session(json!({"cwd": "/project", "model": "some/model", "contextWindow": 20_000,
        "settings": {"compaction": {"enabled": false}}}));
    daemon.append(&other, &over());
    let refused = daemon.err("session/context", json!({"sessionId": other, "wait": true}));
    assert!(refused["message"].as_str().is_some_and(|text| !text.contains("session/load")), "{refused:#}");
}
