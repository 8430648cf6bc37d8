//! A compaction before it is written: the hook that edits its draft, the draft of a dry run, and the facts that it lost.

use crate::{
    provider::{Format, Provider},
    summarizing::{good_model, settings},
    support::{Daemon, Home, session_of, turns, user},
};
use serde_json::{Value, json};
use std::path::PathBuf;

const EDITED: &str = "## Goal\nWhat a person wrote.";

fn daemon(settings: Option<&str>) -> (Daemon, String, PathBuf) {
    let home = Home::new();
    settings.into_iter().for_each(|settings| home.settings(settings));
    let mut messages = turns(8);
    messages.insert(0, user("You must never touch the vendor folder."));
    let path = session_of(&home, "drafts", &messages);
    let mut daemon = Daemon::silent(home);
    let hooks = json!({"events": ["session_compact_draft"], "timeoutMs": 60_000});
    daemon.ok("initialize", json!({"protocolVersion": 1, "capabilities": {"hooks": hooks}}));
    let session = daemon.load(&path);
    (daemon, session, path)
}

/// Compacts, answers the hook, and returns its params and the end of the compaction.
fn compacted(daemon: &mut Daemon, session: &str, answer: Value) -> (Value, Value) {
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 400}));
    let asked = loop {
        let frame = daemon.frame();
        if frame["method"] == "hook/session_compact_draft" {
            break frame;
        }
        daemon.events.push(frame);
    };
    daemon.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
    daemon.until("settled");
    let mut ends = daemon.events.iter().map(|frame| &frame["params"]["event"]);
    let end = ends.rfind(|event| event["type"] == "compaction_end").expect("an end").clone();
    daemon.events.clear();
    (asked["params"].clone(), end)
}

#[test]
fn a_person_edits_the_summary_before_it_is_written() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    for settings in [None, Some(settings(&provider, Format::Anthropic, json!({})))] {
        let (mut daemon, session, _) = daemon(settings.as_deref());
        let answer = json!({"action": "replace", "compaction": {"summary": EDITED}});
        let (asked, end) = compacted(&mut daemon, &session, answer);
        let draft = &asked["draft"];
        assert_eq!(draft["method"], if settings.is_some() { "llm" } else { "extractive" });
        assert!(draft["summary"].as_str().is_some_and(|text| text.contains("## Goal")), "{draft:#}");
        assert!(draft["tokensAfter"].as_u64() < draft["tokensBefore"].as_u64());
        assert_eq!(draft["lost"]["rules"], json!([]), "{draft:#}");
        let result = &end["result"];
        assert_eq!(
            (&result["summary"], &result["method"], &result["fromHook"]),
            (&json!(EDITED), &json!("hook"), &json!(true))
        );
        assert_eq!(result["firstKeptEntryId"], draft["firstKeptEntryId"]);
        assert_eq!(result["lost"]["rules"][0], "You must never touch the vendor folder.");
        assert_eq!(result["usage"].is_null(), settings.is_none(), "the model's tokens were spent");
    }
}

#[test]
fn a_draft_goes_on_is_cancelled_or_stays_where_the_edit_is_refused() {
    let (mut daemon, session, path) = daemon(None);
    let before = std::fs::read(&path).expect("a file");
    let (_, end) = compacted(&mut daemon, &session, json!({"action": "cancel", "reason": "not now"}));
    assert_eq!(end["outcome"], "cancelled");
    assert_eq!(std::fs::read(&path).expect("a file"), before);
    let (asked, end) = compacted(&mut daemon, &session, json!({"action": "replace", "compaction": {"summary": " "}}));
    assert_eq!((&end["outcome"], &end["result"]["method"]), (&json!("completed"), &json!("extractive")));
    assert_eq!(end["result"]["summary"], asked["draft"]["summary"]);
    assert_eq!(end["result"]["rejected"][0]["method"], "hook", "{end:#}");
    daemon.ok("session/undo_compaction", json!({"sessionId": session}));
    let (asked, end) = compacted(&mut daemon, &session, Value::Null);
    assert_eq!(end["result"]["summary"], asked["draft"]["summary"]);
}

#[test]
fn a_dry_run_shows_the_draft_and_asks_no_hook() {
    let (mut daemon, session, path) = daemon(None);
    let before = std::fs::read(&path).expect("a file");
    let params = json!({"sessionId": session, "dryRun": true, "draft": true, "keepRecentTokens": 400});
    let shown = daemon.ok("session/compact", params);
    let plan = daemon.ok("session/compact", json!({"sessionId": session, "dryRun": true, "keepRecentTokens": 400}));
    assert_eq!(shown["preparation"], plan["preparation"]);
    assert_eq!(plan["draft"], Value::Null);
    assert_eq!(std::fs::read(&path).expect("a file"), before);
    let (asked, _) = compacted(&mut daemon, &session, Value::Null);
    assert_eq!(shown["draft"], asked["draft"]);
}

#[test]
fn a_plan_says_how_many_requests_are_sent() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let path = session_of(&home, "planned", &turns(60));
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    let plan = daemon.ok("session/compact", json!({"sessionId": session, "dryRun": true, "keepRecentTokens": 400}));
    let before = provider.asked().len();
    daemon.ok("session/compact", json!({"sessionId": session, "wait": true, "keepRecentTokens": 400}));
    let chunks = plan["preparation"]["chunks"].as_u64().expect("a number") as usize;
    let asked = provider.asked().len() - before;
    // The short summary is a request of its own.
    assert!(asked == chunks || asked == chunks + 1, "{asked} requests, {chunks} planned");
}
