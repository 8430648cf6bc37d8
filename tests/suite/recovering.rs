//! Recoveries: a host reports an answer that a turn cannot go on from, and gets a context to repeat the turn with.

use crate::support::{Daemon, Home, assistant, calls, event, failed, model, names, result, text_of, user};
use serde_json::{Value, json};

fn settings(models: &[Value]) -> Value {
    json!({"tokens": {"estimator": "chars"}, "models": models})
}

fn session_with(daemon: &mut Daemon, settings: &Value) -> String {
    daemon.new_session(json!({"cwd": "/project", "model": "p/m", "settings": settings}))
}

fn session(daemon: &mut Daemon, window: u64) -> String {
    session_with(daemon, &settings(&[model("m", window)]))
}

/// A history of this many tokens by characters, below the threshold.
fn history(tokens: usize) -> Vec<Value> {
    let half = tokens / 2;
    vec![
        user(&text_of(half, "one")),
        assistant("Read."),
        user(&text_of(half, "two")),
        assistant("Read, too."),
        user("And now?"),
    ]
}

const TOO_LONG: &str = "prompt is too long: 21000 tokens > 16000 maximum";

/// An answer that ended at its output limit.
fn cut(content: Value, input: u64, output: u64) -> Value {
    json!({"role": "assistant", "content": content, "stopReason": "length", "timestamp": 1,
        "usage": {"input": input, "output": output, "cacheRead": 0, "cacheWrite": 0, "totalTokens": input + output}})
}

#[test]
fn a_refused_context_is_compacted_and_the_turn_is_repeated() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 40_000);
    daemon.append(&session, &history(14_000));
    let before = daemon.context(&session)["usage"]["contextTokens"].as_u64().expect("a number");
    daemon.ok("session/status", json!({"sessionId": session}));
    let from = daemon.events.len();
    let answer = daemon.append(&session, &[failed(TOO_LONG)]);
    assert_eq!(daemon.events.len(), from, "the answer precedes all events");
    let id = &answer["next"]["operationId"];
    let next = json!({"type": "maintenance", "operationId": id, "reason": "overflow", "willRetry": true,
        "willContinue": false});
    assert_eq!(answer["next"], next);
    let held = daemon.context(&session);
    let events = daemon.events_since(from);
    // The refusal states a smaller window than the settings.
    let (told, events): (Vec<_>, Vec<_>) = events.into_iter().partition(|(kind, _)| kind == "notice");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        names(&events),
        [
            "entry_appended",
            "status_changed",
            "recovery_start",
            "compaction_start",
            "entry_appended",
            "compaction_end",
            "recovery_end",
            "status_changed",
            "settled",
        ],
        "a context that waits is answered behind the recovery"
    );
    let appended: Vec<&Value> = events.iter().take(3).map(|(_, params)| &params["event"]["entry"]).collect();
    assert_eq!(appended[0]["id"], answer["leafEntryId"]);
    assert_eq!((&appended[1]["type"], &appended[1]["targetId"]), (&json!("context_edit"), &answer["leafEntryId"]));
    assert_eq!(appended[1]["replacement"], Value::Null);
    assert_eq!(appended[2]["customType"], "abridged.attempt");
    let start = event(&events, "recovery_start");
    let expected = json!({"type": "recovery_start", "reason": "overflow", "removedEntryId": answer["leafEntryId"],
        "action": "compact"});
    assert_eq!(*start, expected);
    let (started, ended) = (event(&events, "compaction_start"), event(&events, "compaction_end"));
    assert_eq!((&started["reason"], &started["willRetry"]), (&json!("overflow"), &json!(true)));
    assert_eq!((&ended["outcome"], &ended["willRetry"]), (&json!("completed"), &json!(true)));
    let end = json!({"type": "recovery_end", "outcome": "recovered", "willRetry": true});
    assert_eq!(*event(&events, "recovery_end"), end);
    for (kind, params) in &events {
        if ["recovery_start", "compaction_start", "compaction_end", "recovery_end"].contains(&kind.as_str()) {
            assert_eq!(params["operationId"], *id, "{kind}");
        }
    }
    let after = held["usage"]["contextTokens"].as_u64().expect("a number");
    assert!(after * 100 <= before * 80, "{after} of {before}");
    assert!(after <= 16_000, "the stated window is known from here on: {after}");
    assert!(held["messages"].to_string().contains("And now?"), "the newest request is there");
    assert!(!held["messages"].to_string().contains("too long"), "the failed answer is not");
}

#[test]
fn a_second_refusal_is_answered_by_thirty_percent_less_and_a_third_ends_the_turn() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 100_000);
    daemon.append(&session, &history(40_000));
    let refuse =
        |daemon: &mut Daemon| daemon.append(&session, &[failed("the request exceeds the available context size")]);
    let size = |context: &Value| context["usage"]["contextTokens"].as_u64().expect("a number");
    let first = size(&daemon.context(&session));
    assert_eq!(refuse(&mut daemon)["next"]["willRetry"], true);
    let second = size(&daemon.context(&session));
    assert!(second < first, "{second} of {first}");
    assert_eq!(refuse(&mut daemon)["next"]["willRetry"], true);
    let third = size(&daemon.context(&session));
    assert!(third * 10 <= second * 7, "{third} of {second}");
    let from = daemon.events.len();
    let last = refuse(&mut daemon);
    assert_eq!((&last["next"]["reason"], &last["next"]["willRetry"]), (&json!("overflow"), &json!(false)));
    let refused = daemon.err("session/context", json!({"sessionId": session, "wait": true}));
    assert_eq!(refused["data"]["code"], "context_overflow", "{refused:#}");
    let events = daemon.events_since(from);
    assert_eq!(
        names(&events),
        ["entry_appended", "status_changed", "recovery_start", "recovery_end", "status_changed", "settled"]
    );
    let end = event(&events, "recovery_end");
    assert_eq!((&end["outcome"], &end["willRetry"]), (&json!("failed"), &json!(false)));
    let message = end["errorMessage"].as_str().expect("a text");
    assert!(message.starts_with("Context overflow recovery failed: "), "{message}");
    assert!(refused["message"].as_str().expect("a text").contains("Context overflow recovery failed: "), "{refused:#}");
    // As the session stands it is still shown.
    daemon.ok("session/context", json!({"sessionId": session}));
    // A message of the user is a new beginning.
    daemon.append(&session, &[user("Then shorter.")]);
    daemon.context(&session);
    assert_eq!(refuse(&mut daemon)["next"]["willRetry"], true);
}

#[test]
fn a_compaction_at_the_threshold_leaves_both_attempts_to_refusals() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 40_000);
    daemon.append(&session, &history(20_000)[..4]);
    let mut waiting = vec![user(&text_of(10_000, "three"))];
    waiting.extend((0..4).map(|at| user(&text_of(1_000, &format!("more {at}")))));
    let answer = daemon.append(&session, &waiting);
    assert_eq!(answer["next"]["reason"], "threshold", "{answer:#}");
    let mut recover = |expected: &str| {
        let before = daemon.context(&session)["usage"]["contextTokens"].as_u64().expect("a number");
        let from = daemon.events.len();
        let answer = daemon.append(&session, &[failed("prompt is too long")]);
        assert_eq!(answer["next"]["reason"], "overflow", "{answer:#}");
        // It is answered or refused after the recovery.
        drop(daemon.call("session/context", json!({"sessionId": session, "wait": true})));
        let events = daemon.events_since(from);
        let end = event(&events, "recovery_end");
        assert_eq!(end["outcome"], expected, "{end:#}");
        (before, end["errorMessage"].as_str().unwrap_or_default().to_owned())
    };
    let (first, _) = recover("recovered");
    let (second, _) = recover("recovered");
    let (third, why) = recover("failed");
    assert!(second <= first && third <= second * 7 / 10, "{first}, {second}, {third}");
    assert!(why.contains("refused it 3 times in a row, and 2 attempts"), "{why}");
    assert!(why.contains("although the window of its model has 40000") && why.contains("models/forget"), "{why}");
}

#[test]
fn a_restart_goes_on_with_the_attempts() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 100_000);
    daemon.append(&session, &history(40_000));
    let refuse =
        |daemon: &mut Daemon| daemon.append(&session, &[failed("the request exceeds the available context size")]);
    for _ in 0..2 {
        refuse(&mut daemon);
        daemon.context(&session);
    }
    let mut daemon = daemon.restarted();
    daemon.ok("session/load", json!({"sessionId": session}));
    assert_eq!(refuse(&mut daemon)["next"]["willRetry"], false);
}

#[test]
fn an_answer_that_is_cut_off_is_kept_repeated_or_makes_room() {
    let text = json!([{"type": "text", "text": "The first half of"}]);
    let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
    let nothing = json!([]);
    for (content, input, output, action) in [
        (text.clone(), 10_000, 500, None),
        (call, 10_000, 500, Some("retry")),
        (nothing, 10_000, 500, Some("retry")),
        (json!([{"type": "thinking", "thinking": text_of(23_000, "thought")}]), 0, 9_900, Some("compact")),
    ] {
        let mut daemon = Daemon::start();
        let session = session(&mut daemon, 40_000);
        daemon.append(&session, &history(9_000));
        daemon.context(&session);
        let from = daemon.events.len();
        let answer = daemon.append(&session, &[cut(content.clone(), input, output)]);
        let context = daemon.context(&session);
        daemon.ok("session/status", json!({"sessionId": session}));
        let events = daemon.events_since(from);
        let there = context["messages"].as_array().expect("messages").last().expect("one")["role"] == "assistant";
        match action {
            None => {
                assert_eq!(answer["next"], json!({"type": "none"}));
                let notice = event(&events, "notice");
                assert_eq!((&notice["severity"], &notice["code"]), (&json!("warning"), &json!("answer_cut_off")));
                assert!(there, "the text stays");
            }
            Some(action) => {
                assert_eq!(
                    (&answer["next"]["reason"], &answer["next"]["willRetry"]),
                    (&json!("incomplete"), &json!(true))
                );
                assert_eq!(event(&events, "recovery_start")["action"], action);
                assert_eq!(event(&events, "recovery_end")["outcome"], "recovered");
                assert_eq!(names(&events).contains(&"compaction_start"), action == "compact");
                assert!(!there, "the answer left the context");
            }
        }
    }
}

#[test]
fn an_answer_is_cut_off_three_times_and_then_ends_the_turn() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 40_000);
    daemon.append(&session, &history(9_000));
    let cut_off = |daemon: &mut Daemon| daemon.append(&session, &[cut(json!([]), 10_000, 500)])["next"].clone();
    for _ in 0..3 {
        assert_eq!(cut_off(&mut daemon)["willRetry"], true);
        daemon.context(&session);
    }
    assert_eq!(cut_off(&mut daemon)["willRetry"], false);
    daemon.until("recovery_end");
    let refused = daemon.err("session/context", json!({"sessionId": session, "wait": true}));
    assert_eq!(refused["data"]["code"], "context_overflow");
    let mut ends =
        daemon.events.iter().map(|frame| &frame["params"]["event"]).filter(|event| event["type"] == "recovery_end");
    let message = ends.next_back().expect("an end")["errorMessage"].as_str().expect("a text").to_owned();
    assert!(message.starts_with("Incomplete response recovery failed: "), "{message}");
}

#[test]
fn a_client_that_switches_models_is_promoted() {
    for (switches, action) in [(true, "promote_model"), (false, "compact")] {
        let mut daemon = Daemon::silent(Home::new());
        let capabilities = if switches { json!({"modelSwitch": {}}) } else { json!({}) };
        daemon.ok("initialize", json!({"protocolVersion": 1, "capabilities": capabilities}));
        let mut small = model("m", 20_000);
        small["promoteTo"] = json!("p/large");
        let session = session_with(&mut daemon, &settings(&[small, model("large", 200_000)]));
        daemon.append(&session, &history(6_000));
        daemon.context(&session);
        let from = daemon.events.len();
        let answer = daemon.append(&session, &[failed("prompt is too long: 21000 tokens > 20000 maximum")]);
        let context = daemon.context(&session);
        let events = daemon.events_since(from);
        assert_eq!(event(&events, "recovery_start")["action"], action);
        let expected: &[&str] = match switches {
            true => &[
                "entry_appended",
                "status_changed",
                "recovery_start",
                "entry_appended",
                "model_changed",
                "recovery_end",
                "status_changed",
                "settled",
            ],
            false => &[
                "entry_appended",
                "status_changed",
                "recovery_start",
                "compaction_start",
                "entry_appended",
                "compaction_end",
                "recovery_end",
                "status_changed",
                "settled",
            ],
        };
        assert_eq!(names(&events), expected);
        assert_eq!(answer["next"]["willRetry"], true);
        if switches {
            let changed = event(&events, "model_changed");
            let expected = json!({"type": "model_changed", "from": {"provider": "p", "id": "m"},
                "to": {"provider": "p", "id": "large"}, "reason": "promotion"});
            assert_eq!(*changed, expected);
            assert_eq!(context["model"], json!({"provider": "p", "id": "large"}));
        }
    }
}

#[test]
fn a_promotion_needs_a_model_with_a_known_larger_window_that_takes_the_context() {
    let promotions = |large: Value, enabled: bool, learn: Option<u64>| {
        let mut daemon = Daemon::silent(Home::new());
        daemon.ok("initialize", json!({"protocolVersion": 1, "capabilities": {"modelSwitch": {}}}));
        let mut small = model("m", 20_000);
        small["promoteTo"] = json!("p/large");
        let mut settings = settings(&[small, large]);
        settings["contextPromotion"] = json!({ "enabled": enabled });
        let session = session_with(&mut daemon, &settings);
        daemon.append(&session, &history(6_000));
        if let Some(window) = learn {
            let mut refusal = failed(&format!("prompt is too long: {} tokens > {window} maximum", window + 1));
            refusal["provider"] = json!("p");
            refusal["model"] = json!("large");
            daemon.append(&session, &[refusal, user("Go on.")]);
        }
        daemon.context(&session);
        let from = daemon.events.len();
        daemon.append(&session, &[failed("prompt is too long: 21000 tokens > 20000 maximum")]);
        daemon.context(&session);
        event(&daemon.events_since(from), "recovery_start")["action"].clone()
    };
    assert_eq!(promotions(model("large", 200_000), true, None), "promote_model");
    assert_eq!(promotions(model("large", 200_000), false, None), "compact", "it is off");
    assert_eq!(promotions(model("large", 20_000), true, None), "compact", "the window is not larger");
    assert_eq!(promotions(model("large", 20_001), true, Some(13_000)), "compact", "its provider serves less");
    assert_eq!(promotions(json!({"provider": "p", "id": "large"}), true, None), "compact", "nobody says its window");
    let mut full = model("large", 200_000);
    full["compaction"] = json!({"thresholdTokens": 5_000});
    assert_eq!(promotions(full, true, None), "compact", "the context is over the threshold of the larger model");
}

#[test]
fn a_context_over_the_threshold_moves_to_a_larger_model() {
    for enabled in [true, false] {
        let mut daemon = Daemon::silent(Home::new());
        daemon.ok("initialize", json!({"protocolVersion": 1, "capabilities": {"modelSwitch": {}}}));
        let mut small = model("m", 16_000);
        small["promoteTo"] = json!("p/large");
        let mut settings = settings(&[small, model("large", 200_000)]);
        settings["compaction"] = json!({"enabled": enabled});
        let session = session_with(&mut daemon, &settings);
        let answer = daemon.append(&session, &history(12_000));
        assert_eq!(answer["next"], json!({"type": "none"}));
        let context = daemon.context(&session);
        assert_eq!(context["model"], json!({"provider": "p", "id": "large"}), "without automatic compaction, too");
        assert!(daemon.count("model_changed") > 0);
        assert!(daemon.count("compaction_start") == 0);
    }
}

#[test]
fn a_failure_behind_a_newer_compaction_only_repeats_the_turn() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 40_000);
    daemon.append(&session, &history(14_000));
    daemon.context(&session);
    daemon.ok("session/compact", json!({"sessionId": session, "wait": true, "keepRecentTokens": 2_000}));
    let from = daemon.events.len();
    let answer = daemon.append(&session, &[failed(TOO_LONG)]);
    assert_eq!(answer["next"]["willRetry"], true);
    daemon.context(&session);
    let events = daemon.events_since(from);
    assert_eq!(event(&events, "recovery_start")["action"], "retry");
    assert!(!names(&events).contains(&"compaction_start"));
}

#[test]
fn errors_of_another_meaning_start_no_recovery() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 40_000);
    daemon.append(&session, &history(9_000));
    for error in ["429: too many tokens per minute", "overloaded", "das Gespräch ist voll", ""] {
        assert_eq!(daemon.append(&session, &[failed(error)])["next"], json!({"type": "none"}), "{error}");
    }
    let earlier = [failed("context_length_exceeded"), user("Another question.")];
    assert_eq!(daemon.append(&session, &earlier)["next"], json!({"type": "none"}), "an earlier error is history");
}

#[test]
fn without_automatic_compaction_a_refusal_ends_the_turn() {
    for compaction in [json!({"enabled": false}), json!({"strategy": "off"})] {
        let mut daemon = Daemon::start();
        let mut settings = settings(&[model("m", 40_000)]);
        settings["compaction"] = compaction;
        let session = session_with(&mut daemon, &settings);
        daemon.append(&session, &history(14_000));
        assert_eq!(daemon.append(&session, &[failed("context_length_exceeded")])["next"], json!({"type": "none"}));
        assert_eq!(daemon.append(&session, &[cut(json!([]), 9_000, 10)])["next"]["reason"], "incomplete", "a retry");
    }
}

#[test]
fn a_report_over_the_window_alone_starts_nothing() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 40_000);
    daemon.append(&session, &history(14_000));
    for mut answer in [calls(&["a", "b"]), assistant("It is done.")] {
        answer["usage"] =
            json!({"input": 41_000, "output": 10, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 41_010});
        let appended = daemon.append(&session, &[answer]);
        assert_eq!(appended["next"], json!({"type": "none"}));
        assert_eq!(appended["usage"]["source"], "estimate");
    }
    assert!(daemon.context(&session)["messages"].to_string().contains("It is done."));
    assert_eq!(daemon.count("compaction_start"), 0);
}

#[test]
fn a_server_that_cuts_prompts_shows_its_window_and_its_answers_stay() {
    for (learns, provider) in [(true, "ollama"), (false, "ollama"), (true, "p")] {
        let mut daemon = Daemon::start();
        let mut settings = settings(&[]);
        settings["tokens"]["learnWindow"] = json!(learns);
        // The model has no server, and its retries would only take time.
        settings["retry"] = json!({"enabled": false});
        let model = format!("{provider}/m");
        let session = daemon.new_session(json!({"cwd": "/project", "model": model, "settings": settings}));
        daemon.append(&session, &history(14_000));
        let mut answered = Value::Null;
        for (number, input) in [(1, 4_096), (2, 4_090), (3, 4_096)] {
            let mut answer = assistant(&format!("Answer {number}."));
            answer["usage"] =
                json!({"input": input, "output": 10, "cacheRead": 0, "cacheWrite": 0, "totalTokens": input + 10});
            answered = daemon.append(&session, &[user(&text_of(600, "more")), answer]);
        }
        let usage = daemon.ok("session/usage", json!({"sessionId": session}));
        if !learns || provider != "ollama" {
            assert_eq!(answered["next"], json!({"type": "none"}), "{provider}");
            assert_eq!(usage["windowSource"], "default", "{provider}");
            continue;
        }
        assert_eq!((&usage["contextWindow"], &usage["windowSource"]), (&json!(4_096), &json!("learned")));
        assert_eq!(daemon.until("notice")["params"]["event"]["code"], "prompt_cut");
        let fits = daemon.context(&session);
        assert!(fits["usage"]["contextTokens"].as_u64() <= Some(4_096), "{fits:#}");
        let entries = daemon.ok("session/entries", json!({"sessionId": session, "types": ["context_edit"]}));
        let edits = entries["entries"].as_array().expect("entries");
        assert!(edits.iter().all(|edit| !edit["replacement"].is_null()), "no answer leaves the context: {edits:#?}");
        assert_eq!(daemon.count("recovery_start"), 0);
    }
}

#[test]
fn the_newest_result_keeps_its_ends_when_it_is_refused() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 40_000);
    daemon.append(&session, &history(4_000));
    let large = format!("BEGIN {} END", text_of(9_000, "log"));
    daemon.append(&session, &[calls(&["a"]), result("a", &large)]);
    assert_eq!(daemon.append(&session, &[failed(TOO_LONG)])["next"]["reason"], "overflow");
    let context = daemon.context(&session);
    let messages = context["messages"].as_array().expect("messages");
    let last = messages.last().expect("a message");
    assert_eq!(last["role"], "toolResult", "the batch that the model has not seen stays: {context:#}");
    let text = last["content"][0]["text"].as_str().expect("a text");
    assert!(text.starts_with("BEGIN ") && text.ends_with(" END") && text.len() < large.len(), "{text}");
}

#[test]
fn a_recovery_can_be_cancelled() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 40_000);
    daemon.append(&session, &history(14_000));
    let refusal = json!({"sessionId": session, "messages": [failed("context_length_exceeded")]});
    let append = daemon.begin("session/append", refusal);
    let cancel = daemon.begin("session/cancel", json!({"sessionId": session}));
    let next = daemon.answer(append).expect("an answer")["next"].clone();
    let cancelled = daemon.answer(cancel).expect("an answer");
    // The cancel may have been earlier than the append, or later than the recovery.
    daemon.context(&session);
    let starts = daemon.count("recovery_start");
    let ends = daemon.count("recovery_end");
    assert_eq!((starts, ends), (1, 1));
    let ended = daemon.events.iter().find(|frame| frame["params"]["event"]["type"] == "recovery_end").expect("an end");
    let named = cancelled["cancelled"].as_array().expect("a list");
    // The summary that begins ahead may be named, too.
    if let Some(named) = named.iter().find(|named| named["kind"] == "recovery") {
        assert_eq!((&named["operationId"], &named["kind"]), (&next["operationId"], &json!("recovery")));
        assert_eq!(ended["params"]["event"]["outcome"], "cancelled");
    } else {
        assert_eq!(ended["params"]["event"]["outcome"], "recovered");
    }
}
