//! Summaries that are made before the threshold, through the real binary and a provider on loopback.

use crate::{
    provider::{Asked, Format, Provider, Step, Trouble},
    summarizing::{good_model, held_model, settings},
    support::{Daemon, Home, assistant, text_of, user},
};
use serde_json::{Value, json};
use std::sync::mpsc::Sender;

/// The threshold of a window of 100,000 tokens is 83,616. A summary begins over 73,164.
const NEAR: usize = 56_000;

/// A daemon with these settings of compaction, and a session that is near its threshold.
fn near(provider: &Provider, mut compaction: Value) -> (Daemon, String) {
    if compaction["speculative"].is_null() {
        compaction["speculative"] = true.into();
    }
    let home = Home::new();
    home.settings(&settings(provider, Format::Anthropic, json!({"compaction": compaction})));
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let first = [user("Look at the parser."), assistant(&text_of(NEAR / 2, "parser"))];
    let second = [user("And at the lexer."), assistant(&text_of(NEAR / 2, "lexer"))];
    let answer = daemon.append(&session, &[first, second].concat());
    assert_eq!(answer["next"], json!({"type": "none"}), "{answer:#}");
    (daemon, session)
}

/// The same while a model makes the summary. The model answers when the sender is dropped.
fn begun(provider: &Provider, compaction: Value) -> (Daemon, String, Sender<()>) {
    let (release, model) = held_model();
    provider.otherwise(model);
    let (daemon, session) = near(provider, compaction);
    provider.wait_for(1);
    (daemon, session, release)
}

/// The same while a model hangs. Later requests are answered.
fn hanging(provider: &Provider) -> (Daemon, String) {
    provider.script([Step::hang()]).otherwise(good_model);
    let (daemon, session) = near(provider, json!({}));
    provider.wait_for(1);
    (daemon, session)
}

fn why(daemon: &mut Daemon, session: &str) -> String {
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    usage["why"].as_str().expect("a text").to_owned()
}

/// The operations that run.
fn operations(daemon: &mut Daemon, session: &str) -> Vec<Value> {
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!(status["session"]["status"], json!({"type": "idle"}));
    status["operations"].as_array().expect("a list").clone()
}

/// Asks until the summary is ready: that has no event.
fn ready(daemon: &mut Daemon, session: &str) {
    while !why(daemon, session).contains("is ready and is spliced in") {}
}

/// Messages over the threshold.
fn more() -> [Value; 2] {
    [user(&text_of(8_000, "more")), assistant("Done.")]
}

#[test]
fn a_compaction_begins_with_the_summary_that_a_model_made_before_the_threshold() {
    let provider = Provider::start(Format::Anthropic);
    let (mut daemon, session, release) = begun(&provider, json!({}));
    let running = operations(&mut daemon, &session);
    let id = running[0]["operationId"].clone();
    assert_eq!((&running[0]["kind"], &running[0]["reason"]), (&json!("speculation"), &json!("threshold")));
    // The conversation goes on beside it.
    let meanwhile = daemon.append(&session, &[user("Which file is first?"), assistant("The lexer.")]);
    assert_eq!(meanwhile["next"], json!({"type": "none"}));
    daemon.context(&session);
    drop(release);
    ready(&mut daemon, &session);
    assert_eq!(operations(&mut daemon, &session), [json!(null); 0]);
    let events = daemon.kinds();
    assert!(events.iter().all(|kind| ["entry_appended", "usage_updated"].contains(&kind.as_str())), "{events:?}");

    let asked = provider.asked().len();
    let next = daemon.append(&session, &more())["next"].clone();
    assert_eq!((&next["operationId"], &next["reason"]), (&id, &json!("threshold")));
    let end = daemon.until("compaction_end")["params"].clone();
    assert_eq!(end["operationId"], id);
    assert_eq!((&end["event"]["outcome"], &end["event"]["result"]["method"]), (&json!("completed"), &json!("llm")));
    assert_eq!(provider.asked().len(), asked, "no model was asked for it");
    let context = daemon.context(&session)["messages"].to_string();
    assert!(context.contains("Which file is first?"), "the messages that came since are kept");
    assert!(!context.contains("Look at the parser."));
    let costs = daemon.ok("session/entries", json!({"sessionId": session, "types": ["usage"]}))["entries"].clone();
    let costs = costs.as_array().expect("entries");
    assert!(costs.len() == asked && costs.iter().all(|cost| cost["trigger"] == "speculative"), "{costs:#?}");
}

#[test]
fn a_summary_that_is_late_is_waited_for_where_the_context_is_nearly_full() {
    let provider = Provider::start(Format::Anthropic);
    let (mut daemon, session, release) = begun(&provider, json!({}));
    let id = operations(&mut daemon, &session)[0]["operationId"].clone();
    assert_eq!(daemon.append(&session, &more())["next"], json!({"type": "none"}));
    let why = why(&mut daemon, &session);
    assert!(why.contains("requests go on up to 91808 tokens"), "{why}");
    let next = daemon.append(&session, &more())["next"].clone();
    assert_eq!(next["operationId"], id);
    assert_eq!(daemon.until("compaction_start")["params"]["operationId"], id);
    assert_eq!(daemon.count("compaction_end"), 0);
    drop(release);
    let end = daemon.until("compaction_end")["params"]["event"].clone();
    assert_eq!((&end["outcome"], &end["result"]["method"]), (&json!("completed"), &json!("llm")), "{end:#}");
}

#[test]
fn a_late_summary_is_spliced_in_as_soon_as_it_is_ready() {
    let provider = Provider::start(Format::Anthropic);
    let (mut daemon, session, release) = begun(&provider, json!({}));
    assert_eq!(daemon.append(&session, &more())["next"], json!({"type": "none"}));
    drop(release);
    let end = daemon.until("compaction_end")["params"]["event"].clone();
    assert_eq!((&end["outcome"], &end["result"]["method"]), (&json!("completed"), &json!("llm")), "{end:#}");
    daemon.until("settled");
}

#[test]
fn a_model_that_never_answers_is_stopped_by_a_cancel_and_by_the_end_of_its_session() {
    for closes in [false, true] {
        let provider = Provider::start(Format::Anthropic);
        let (mut daemon, session) = hanging(&provider);
        let id = operations(&mut daemon, &session)[0]["operationId"].clone();
        if closes {
            daemon.ok("session/close", json!({"sessionId": session}));
        } else {
            let cancelled = daemon.ok("session/cancel", json!({"sessionId": session}))["cancelled"].clone();
            assert_eq!(cancelled, json!([{"operationId": id, "kind": "speculation"}]));
        }
        provider.wait_for_close(0);
        if closes {
            daemon.ok("session/load", json!({"sessionId": session}));
        }
        assert_eq!(operations(&mut daemon, &session), [json!(null); 0]);
        // A compaction of its own follows.
        let next = daemon.append(&session, &more())["next"].clone();
        assert_eq!((&next["reason"], next["operationId"] != id), (&json!("threshold"), true));
        assert_eq!(daemon.until("compaction_end")["params"]["event"]["outcome"], "completed");
    }
}

#[test]
fn a_summary_of_a_prefix_that_is_edited_is_thrown_away() {
    let provider = Provider::start(Format::Anthropic);
    let (mut daemon, session) = hanging(&provider);
    let entries = daemon.ok("session/entries", json!({"sessionId": session}))["entries"].clone();
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": entries[0]["id"]}));
    provider.wait_for_close(0);
    assert_eq!(operations(&mut daemon, &session), [json!(null); 0]);
    let asked = provider.asked().len();
    assert_eq!(daemon.append(&session, &more())["next"]["reason"], "threshold");
    assert_eq!(daemon.until("compaction_end")["params"]["event"]["outcome"], "completed");
    assert!(provider.asked().len() > asked, "a summary of its own");
    assert!(daemon.context(&session)["messages"].to_string().contains("Look at the parser."), "the pin stays");
}

#[test]
fn a_model_on_this_machine_is_not_asked_ahead_unless_the_settings_say_so() {
    for (speculative, expected) in [(json!("auto"), 0), (json!(false), 0), (json!(true), 1)] {
        let provider = Provider::start(Format::Anthropic);
        provider.otherwise(good_model);
        let (mut daemon, session) = near(&provider, json!({"speculative": speculative}));
        if expected > 0 {
            provider.wait_for(1);
        }
        daemon.append(&session, &[user("Go on."), assistant("Yes.")]);
        assert_eq!(provider.asked().len().min(1), expected, "{speculative}");
        assert_eq!(daemon.append(&session, &[more(), more()].concat())["next"]["reason"], "threshold");
        assert_eq!(daemon.until("compaction_end")["params"]["event"]["result"]["method"], "llm");
    }
}

#[test]
fn a_daemon_that_dies_while_a_summary_is_made_ahead_leaves_no_operation_behind() {
    let provider = Provider::start(Format::Anthropic);
    let (mut daemon, session, release) = begun(&provider, json!({}));
    daemon.kill();
    drop(release);
    let mut daemon = daemon.restarted();
    daemon.ok("session/load", json!({"sessionId": session}));
    assert_eq!(operations(&mut daemon, &session), [json!(null); 0]);
    assert!(
        !daemon.kinds().iter().any(|kind| kind.starts_with("compaction") || kind == "notice"),
        "{:?}",
        daemon.kinds()
    );
    assert_eq!(daemon.append(&session, &more())["next"]["reason"], "threshold");
    assert_eq!(daemon.until("compaction_end")["params"]["event"]["outcome"], "completed");
}

/// A session near the threshold, whose summaries ahead are asked of this provider without retries.
fn near_the_threshold(provider: &Provider) -> (Daemon, String) {
    let home = Home::new();
    let set = json!({"compaction": {"speculative": true}, "retry": {"enabled": false}});
    home.settings(&settings(provider, Format::OpenAiChat, set));
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let first = [user("Look at the parser."), assistant(&text_of(NEAR / 2, "parser"))];
    let second = [user("And at the lexer."), assistant(&text_of(NEAR / 2, "lexer"))];
    daemon.append(&session, &[first, second].concat());
    (daemon, session)
}

/// Six rounds near the threshold with a provider that always answers so. Other settings let a summary begin again after one
/// that was refused.
fn six_rounds(step: Step) -> (Provider, Daemon, String) {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(move |_: &Asked| step.clone());
    let (mut daemon, session) = near_the_threshold(&provider);
    for round in 0..6 {
        while why(&mut daemon, &session).contains("is being made ahead") {}
        let patch = json!({"compaction": {"keepRecentTokens": 10_000 + round}});
        daemon.ok("settings/set", json!({"scope": "session", "sessionId": session, "patch": patch}));
        daemon.append(&session, &[user("Go on."), assistant("Yes.")]);
    }
    while why(&mut daemon, &session).contains("is being made ahead") {}
    (provider, daemon, session)
}

/// The end of a daemon or of its session between two rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    Close,
    Kill,
}

#[test]
fn requests_that_fail_are_bounded_over_closes_and_kills_and_a_failure_rests_over_them() {
    // With other settings in each round the bound holds, and without them the rest.
    let cases = [(Between::Close, true), (Between::Kill, true), (Between::Close, false), (Between::Kill, false)];
    for (between, changes) in cases {
        let provider = Provider::start(Format::OpenAiChat);
        provider.otherwise(move |_: &Asked| Step::server_error());
        let (mut daemon, session) = near_the_threshold(&provider);
        for round in 0..6 {
            while why(&mut daemon, &session).contains("is being made ahead") {}
            // The failure is written before the next message.
            daemon.append(&session, &[user("Go on."), assistant("Yes.")]);
            match between {
                Between::Close => drop(daemon.ok("session/close", json!({"sessionId": session}))),
                Between::Kill => daemon = daemon.restarted(),
            }
            daemon.ok("session/load", json!({"sessionId": session}));
            if changes {
                let patch = json!({"compaction": {"keepRecentTokens": 10_000 + round}});
                daemon.ok("settings/set", json!({"scope": "session", "sessionId": session, "patch": patch}));
            }
            daemon.append(&session, &[user("Go on."), assistant("Yes.")]);
        }
        while why(&mut daemon, &session).contains("is being made ahead") {}
        let tokens: u64 = provider.asked().iter().map(Asked::tokens).sum();
        let said = why(&mut daemon, &session);
        assert!(said.contains("status 500"), "the true cause: {said}");
        match changes {
            true => {
                assert!((100_000..=200_000).contains(&tokens), "{tokens} tokens were sent");
                assert!(said.contains("No setting raises this bound. The next one may begin at "), "{said}");
            }
            // One summary, of a request for each of its two parts.
            false => assert_eq!(provider.asked().len(), 2, "{said}"),
        }
        let entries = daemon.ok("session/entries", json!({"sessionId": session, "types": ["custom"]})).to_string();
        let (records, ends) = (entries.matches("speculation_failed").count(), entries.matches("\"why\"").count());
        assert!(ends > 0 && records <= ends + provider.asked().len() && (changes || ends == 1), "{entries}");
    }
}

#[test]
fn requests_that_fail_after_a_provider_may_have_read_them_are_bounded_and_are_no_cost() {
    let broken = Step::answer("## Goal\nparse").pieces(4).error_in_stream(Trouble::Server);
    for step in [broken, Step::server_error()] {
        let (provider, mut daemon, session) = six_rounds(step);
        let why = why(&mut daemon, &session);
        assert!(why.contains("those of the last hour that came to nothing took"), "{why}");
        let tokens: u64 = provider.asked().iter().map(Asked::tokens).sum();
        assert!((100_000..=200_000).contains(&tokens), "{tokens} tokens were sent");
        let status = daemon.ok("session/status", json!({"sessionId": session}));
        assert_eq!(status["spent"]["total"]["requests"], 0, "{status:#}");
        assert_eq!(status["spent"]["lastHour"]["tokens"], 0);
    }
}

#[test]
fn requests_that_a_provider_evidently_did_not_read_take_nothing_of_the_bound() {
    let (provider, mut daemon, session) = six_rounds(Step::unauthorized());
    let why = why(&mut daemon, &session);
    assert!(!why.contains("came to nothing took"), "{why}");
    assert!(provider.asked().len() >= 6, "{}", provider.asked().len());
}
