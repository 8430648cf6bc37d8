//! Maintenance behind a handoff and a navigation.

use super::{at, document, edges::over, file_of, of, relaying};
use crate::{
    provider::{Asked, Format, Provider, Step},
    support::*,
};
use serde_json::{Value, json};
use std::sync::{
    Mutex,
    mpsc::{Sender, channel},
};

/// A provider whose answers wait until the sender is dropped.
fn held() -> (Provider, Sender<()>) {
    let provider = Provider::start(Format::Anthropic);
    let (release, held) = channel::<()>();
    let held = Mutex::new(held);
    provider.otherwise(move |_: &Asked| {
        let _: Result<(), _> = held.lock().expect("no panic").recv();
        Step::answer(&document("slow"))
    });
    (provider, release)
}

#[test]
fn maintenance_starts_behind_a_draft_and_a_cancelled_handoff_during_which_the_threshold_was_crossed() {
    for is_draft in [true, false] {
        let (provider, release) = held();
        let (mut daemon, session) = at(&provider, Format::Anthropic, json!({"compaction": {"speculative": false}}));
        let params = json!({"sessionId": session, "dryRun": is_draft, "wait": true});
        let waiting = daemon.begin("session/handoff", params);
        provider.wait_for(1);
        let from = daemon.events.len();
        let appended = daemon.append(&session, &over());
        assert_eq!(appended["next"], json!({"type": "none"}), "{appended:#}");
        if is_draft {
            drop(release);
        } else {
            daemon.ok("session/cancel", of(&session));
        }
        daemon.answer(waiting).expect("an answer");
        daemon.until("compaction_start");
        let events = daemon.events_since(from);
        let names = names(&events);
        let ends = names.iter().position(|name| *name == "handoff_end");
        let starts = names.iter().position(|name| *name == "compaction_start");
        assert!(ends.is_some() && ends < starts, "{names:?}");
        assert!(!names.contains(&"settled"), "the session works on: {names:?}");
        assert_eq!(event(&events, "compaction_start")["reason"], "threshold");
    }
}

#[test]
fn a_branch_over_the_threshold_stays_as_it_is_until_the_conversation_goes_on_there() {
    let settings = |enabled: bool| {
        json!({"defaultModel": "p/m", "models": [model("m", 30_000)], "tokens": {"estimator": "chars"},
            "compaction": {"enabled": enabled}})
        .to_string()
    };
    let home = Home::new();
    home.settings(&settings(false));
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let first = daemon.append(&session, &turns(2))["leafEntryId"].clone();
    let large = daemon.append(&session, &over()[..16])["leafEntryId"].clone();
    let go = |target: &Value| json!({"sessionId": session, "targetEntryId": target, "summarize": false, "wait": true});
    assert_eq!(daemon.ok("session/navigate", go(&first))["outcome"], "completed");
    let path = file_of(&mut daemon, &session);
    daemon.home.settings(&settings(true));
    let mut daemon = daemon.restarted();
    daemon.load(&path);
    let from = daemon.events.len();
    assert_eq!(daemon.ok("session/navigate", go(&large))["outcome"], "completed");
    daemon.until("settled");
    assert_eq!(daemon.ok("session/navigate", go(&first))["outcome"], "completed");
    assert_eq!(daemon.ok("session/navigate", go(&large))["newLeafId"], large);
    assert!(!names(&daemon.events_since(from)).contains(&"compaction_start"));
    assert_eq!(daemon.append(&session, &[user("Go on.")])["next"]["type"], "maintenance");
    daemon.until("compaction_end");
}

#[test]
fn messages_before_an_answer_that_failed_wait_for_the_new_session_too() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(Step::answer(&document("by maintenance")));
    let (mut daemon, session) = relaying(&provider);
    let mut more =
        vec![user("Write the printer."), assistant("Yes."), user("And the tests?"), failed("The line broke.")];
    more.push(user(&text_of(2_500, "printer")));
    let next = daemon.append(&session, &more)["next"].take();
    assert_eq!(next["reason"], "threshold", "{next:#}");
    let end = daemon.until("compaction_end")["params"]["event"].take();
    let new = end["newSessionId"].as_str().unwrap_or_else(|| panic!("{end:#}")).to_owned();
    let shown = daemon.context(&new)["messages"].clone();
    assert_eq!(shown.as_array().map(Vec::len), Some(3), "{shown:#}");
    assert!(shown[1].to_string().contains("And the tests?"), "{shown:#}");
    assert!(!provider.asked()[0].text().contains("And the tests?"), "the message waits for the new session");
}
