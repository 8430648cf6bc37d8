//! Compactions that the daemon starts by itself, for a host that appends and asks for contexts.

use crate::support::{Daemon, Home, assistant, calls, result, text_of, user};
use serde_json::{Value, json};

/// A session whose model has this window, with estimates that can be foretold.
fn session(daemon: &mut Daemon, window: u64, compaction: &Value) -> String {
    let model = json!({"provider": "p", "id": "m", "contextWindow": window});
    let mut compaction = compaction.clone();
    if compaction["reserveTokens"].is_null() {
        compaction["reserveTokens"] = 16_384.into();
    }
    let settings = json!({"tokens": {"estimator": "chars"}, "models": [model], "compaction": compaction});
    daemon.new_session(json!({"cwd": "/project", "model": "p/m", "settings": settings}))
}

fn why(daemon: &mut Daemon, session: &str) -> String {
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    usage["why"].as_str().expect("a text").to_owned()
}

/// A request and its answer over the threshold of a window of 16,000.
fn over() -> [Value; 4] {
    [user(&text_of(3_000, "one")), assistant("Done."), user(&text_of(9_000, "two")), assistant("Done, too.")]
}

/// Two requests and answers over a threshold of 40,000.
fn large() -> [Value; 4] {
    [user(&text_of(25_000, "one")), assistant("Read."), user(&text_of(30_000, "two")), assistant("Read, too.")]
}

#[test]
fn an_append_over_the_threshold_names_the_compaction_that_follows_it() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 16_000, &json!({}));
    assert_eq!(daemon.append(&session, &over()[..2])["next"], json!({"type": "none"}));
    // Its answer follows the events of the append.
    daemon.ok("session/status", json!({"sessionId": session}));
    let before = daemon.events.len();
    let answer = daemon.append(&session, &over()[2..]);
    let next = &answer["next"];
    assert_eq!(
        *next,
        json!({"type": "maintenance", "operationId": next["operationId"], "reason": "threshold", "willRetry": false,
            "willContinue": false})
    );
    assert_eq!(daemon.events.len(), before, "the answer precedes all events");
    daemon.until("settled");
    let events: Vec<(&str, &Value)> = daemon.events[before..]
        .iter()
        .map(|frame| (frame["params"]["event"]["type"].as_str().expect("a type"), &frame["params"]["operationId"]))
        .filter(|(kind, _)| !["compaction_progress", "summary_chunk", "usage_updated"].contains(kind))
        .collect();
    let id = &next["operationId"];
    let expected = [
        ("entry_appended", &Value::Null),
        ("status_changed", &Value::Null),
        ("compaction_start", id),
        ("entry_appended", id),
        ("compaction_end", id),
        ("status_changed", &Value::Null),
        ("settled", &Value::Null),
    ];
    let outside = |kind: &str| kind.starts_with("status") || kind == "settled";
    let mut events: Vec<_> =
        events.into_iter().map(|(kind, of)| (kind, if outside(kind) { &Value::Null } else { of })).collect();
    // Entries for other programs follow the compaction.
    events.dedup();
    assert_eq!(events, expected);
    let of = |kind: &str| {
        let found = daemon.events.iter().map(|frame| &frame["params"]["event"]).find(|event| event["type"] == kind);
        found.expect("it was sent").clone()
    };
    let (start, end) = (of("compaction_start"), of("compaction_end"));
    assert_eq!((&start["reason"], &start["willRetry"]), (&json!("threshold"), &json!(false)));
    assert_eq!(start["tokensBefore"], answer["usage"]["contextTokens"]);
    assert_eq!((&end["reason"], &end["outcome"]), (&json!("threshold"), &json!("completed")));
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    assert!(usage["contextTokens"].as_u64() <= usage["thresholds"]["targetTokens"].as_u64(), "{usage:#}");
}

#[test]
fn a_host_loop_of_two_hundred_turns_stays_in_its_window() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 16_000, &json!({}));
    let mut named = std::collections::HashSet::new();
    for turn in 0..200 {
        let asked = daemon.append(&session, &[user(&format!("Turn {turn}: {}", text_of(150, "ask")))]);
        let context = daemon.context(&session);
        let tokens = context["usage"]["contextTokens"].as_u64().expect("a number");
        assert!(tokens <= 16_000, "turn {turn}: {tokens}");
        assert!(context["messages"].to_string().contains(&format!("Turn {turn}: ")), "the newest request is there");
        let answered = daemon.append(&session, &[assistant(&text_of(250, "answer"))]);
        named.extend([asked, answered].iter().filter_map(|it| it["next"]["operationId"].as_str().map(str::to_owned)));
    }
    daemon.context(&session);
    assert!(named.len() > 5, "{named:?}");
    let starts = daemon.count("compaction_start");
    let ends = daemon.count("compaction_end");
    assert_eq!((starts, ends), (named.len(), named.len()));
}

#[test]
fn open_tool_calls_wait_for_their_last_result() {
    for mid_turn in [true, false] {
        let mut daemon = Daemon::start();
        let session = session(&mut daemon, 16_000, &json!({"midTurn": mid_turn}));
        daemon.append(&session, &over()[..2]);
        let none = json!({"type": "none"});
        let next = |daemon: &mut Daemon, message: Value| daemon.append(&session, &[message])["next"].clone();
        assert_eq!(next(&mut daemon, user("Read both.")), none);
        assert_eq!(next(&mut daemon, calls(&["a", "b"])), none);
        assert_eq!(next(&mut daemon, result("b", &text_of(7_000, "b"))), none);
        assert!(why(&mut daemon, &session).contains("tool calls have no result yet"));
        let last = next(&mut daemon, result("a", "short"));
        if mid_turn {
            assert_eq!(last["reason"], "threshold");
        } else {
            assert_eq!(last, none);
            assert!(why(&mut daemon, &session).contains("compaction.midTurn is false"));
            assert_eq!(next(&mut daemon, assistant("Both are read."))["reason"], "threshold");
        }
        daemon.until("settled");
    }
}

#[test]
fn every_switch_turns_it_off_and_usage_says_which() {
    for (compaction, says) in [
        (json!({"enabled": false}), "compaction.enabled is false"),
        (json!({"strategy": "off"}), "compaction.strategy is \"off\""),
        (json!({"enabled": false, "strategy": "off"}), "compaction.enabled is false"),
    ] {
        let mut daemon = Daemon::start();
        let session = session(&mut daemon, 16_000, &compaction);
        assert_eq!(daemon.append(&session, &over())["next"], json!({"type": "none"}));
        assert!(why(&mut daemon, &session).contains(says), "{compaction}");
        assert!(daemon.count("compaction_start") == 0);
        let done = daemon.ok("session/compact", json!({"sessionId": session, "wait": true}));
        assert_eq!(done["outcome"], "completed", "a manual call always works");
    }
    let home = Home::new();
    let mut command = home.command();
    command.arg("serve").env("ABRIDGED_DISABLE_AUTOCOMPACT", "1");
    let mut daemon = Daemon::of(home, command);
    daemon.ok("initialize", json!({"protocolVersion": 1}));
    let session = session(&mut daemon, 16_000, &json!({}));
    assert_eq!(daemon.append(&session, &over())["next"], json!({"type": "none"}));
    assert!(why(&mut daemon, &session).contains("compaction.enabled is false"));
}

#[test]
fn a_cancelled_compaction_waits_for_the_user_or_for_growth() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 128_000, &json!({"thresholdTokens": 40_000}));
    let answer = daemon.append(&session, &large());
    let cancelled = daemon.ok("session/cancel", json!({"sessionId": session}));
    assert_eq!(cancelled["cancelled"][0]["operationId"], answer["next"]["operationId"]);
    let end = daemon.until("compaction_end");
    assert_eq!(end["params"]["event"]["outcome"], "cancelled");
    daemon.until("settled");
    assert_eq!(daemon.append(&session, &[assistant("On.")])["next"], json!({"type": "none"}));
    assert!(why(&mut daemon, &session).contains("did not complete"));
    let grown = daemon.append(&session, &[assistant(&text_of(4_000, "more"))]);
    assert_eq!(grown["next"]["reason"], "threshold");
    daemon.ok("session/cancel", json!({"sessionId": session}));
    let asked = daemon.append(&session, &[user("Go on.")]);
    assert_eq!(asked["next"]["reason"], "threshold");
    let done = daemon.context(&session);
    assert!(done["usage"]["contextTokens"].as_u64() < Some(40_000), "{}", done["usage"]);
}

#[test]
fn an_append_during_a_compaction_names_it_and_follows_it() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 128_000, &json!({"thresholdTokens": 40_000}));
    let first = daemon.append(&session, &large());
    let second = daemon.append(&session, &[user("And on.")]);
    assert_eq!(second["next"], first["next"]);
    let context = daemon.context(&session);
    assert!(!context["compactionEntryId"].is_null());
    assert!(context["messages"].to_string().contains("And on."));
}

#[test]
fn a_decision_waits_for_counts() {
    let mut daemon = Daemon::start();
    // 48,000 blanks are 12,000 tokens by their characters and a few by the tokenizer.
    let model = json!({"provider": "p", "id": "m", "contextWindow": 16_000});
    let settings = json!({"models": [model]});
    let session = daemon.new_session(json!({"cwd": "/project", "model": "p/m", "settings": settings}));
    let blanks = " ".repeat(48_000);
    let answer = daemon.append(&session, &[user(&format!("a{blanks}b")), assistant("Yes.")]);
    assert_eq!(answer["next"], json!({"type": "none"}), "{}", answer["usage"]);
    assert_eq!(answer["usage"]["estimator"], "o200k_base");
    assert!(answer["usage"]["contextTokens"].as_u64() < Some(2_000), "{}", answer["usage"]);
}

#[test]
fn old_tool_results_are_cut_before_anything_is_summarized() {
    let mut daemon = Daemon::start();
    let model = json!({"provider": "p", "id": "m", "contextWindow": 200_000});
    let settings =
        json!({"tokens": {"estimator": "chars"}, "models": [model], "compaction": {"thresholdTokens": 90_000}});
    let session = daemon.new_session(json!({"cwd": "/project", "model": "p/m", "settings": settings}));
    let mut messages = vec![user("Read all.")];
    for at in 0..9 {
        let id = format!("c{at}");
        let mut shown = result(&id, &text_of(11_000, &id));
        shown["toolName"] = "bash".into();
        messages.extend([calls(&[&id]), shown]);
    }
    let answer = daemon.append(&session, &messages);
    assert_eq!(answer["next"], json!({"type": "none"}), "nobody has to wait");
    assert!(answer["usage"]["contextTokens"].as_u64() > Some(90_000));
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    assert!(context["usage"]["contextTokens"].as_u64() < Some(70_000), "{}", context["usage"]);
    assert!(context["compactionEntryId"].is_null());
    let text = context["messages"].to_string();
    assert!(text.contains("[Output truncated - "));
    assert!(text.contains("c8") && daemon.count("compaction_start") == 0);
    let pruned = daemon.until("pruned")["params"]["event"].clone();
    let why = pruned["why"].as_str().expect("a text");
    assert!(why.starts_with("the context was over the threshold; it saves ") && why.contains("breaks no"), "{why}");
    assert!(pruned["tokensSaved"].as_u64() > Some(20_000));
}

#[test]
fn a_request_over_the_window_waits_for_the_maintenance_that_is_due() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 16_000, &json!({"enabled": false}));
    daemon.append(&session, &over());
    daemon.append(&session, &[user(&text_of(9_000, "three")), assistant("Yes.")]);
    for params in [json!({"wait": true}), json!({"format": "anthropic"})] {
        let mut params = params;
        params["sessionId"] = session.clone().into();
        let error = daemon.err("session/context", params);
        assert_eq!(error["data"]["code"], "context_overflow", "{error:#}");
        assert_eq!(error["data"]["contextWindow"], 16_000);
    }
    assert!(daemon.call("session/context", json!({"sessionId": session})).is_ok(), "messages as they stand");
    let patch = json!({"compaction": {"enabled": true}});
    daemon.ok("settings/set", json!({"scope": "session", "sessionId": session, "patch": patch}));
    let fits = daemon.ok("session/context", json!({"sessionId": session, "format": "anthropic"}));
    assert!(fits["usage"]["contextTokens"].as_u64() <= Some(16_000), "{}", fits["usage"]);
    assert!(fits["maxOutputTokens"].as_u64() > Some(0));
    assert!(!fits["compactionEntryId"].is_null());
    let before_start = |frame: &&Value| frame["params"]["event"]["type"] != "compaction_start";
    let start = daemon.until("compaction_start");
    let id = start["params"]["operationId"].as_str().expect("an id");
    assert!(daemon.events.iter().take_while(before_start).all(|frame| !frame.to_string().contains(id)));
}

#[test]
fn requests_over_the_window_that_come_during_a_compaction_wait_for_its_end() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 16_000, &json!({}));
    let messages = [user(&text_of(6_000, "one")), assistant("Yes."), user(&text_of(14_000, "two")), assistant("Yes.")];
    let asked = daemon.begin("session/append", json!({"sessionId": session, "messages": messages}));
    let formats = ["anthropic", "openai_chat", "google"];
    let contexts =
        formats.map(|format| daemon.begin("session/context", json!({"sessionId": session, "format": format})));
    assert_eq!(daemon.answer(asked).expect("it is appended")["next"]["reason"], "threshold");
    for context in contexts {
        let usage = daemon.answer(context).expect("a context")["usage"].clone();
        assert!(usage["contextTokens"].as_u64() <= Some(16_000), "{usage}");
    }
}

#[test]
fn a_context_of_another_leaf_over_its_window_is_refused() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 16_000, &json!({"enabled": false}));
    let first = daemon.append(&session, &[user("Begin.")])["leafEntryId"].clone();
    let large = daemon.append(&session, &[user(&text_of(20_000, "large"))])["leafEntryId"].clone();
    let on = daemon.append(&session, &[assistant("On the same path.")]);
    assert!(!on["leafEntryId"].is_null());
    let params = json!({"sessionId": session, "messages": [user("Elsewhere.")], "parentEntryId": first});
    for _ in 0..2 {
        let ask = json!({"sessionId": session, "leafEntryId": large, "format": "anthropic"});
        assert_eq!(daemon.err("session/context", ask)["data"]["code"], "context_overflow");
        let messages = json!({"sessionId": session, "leafEntryId": large});
        assert!(daemon.call("session/context", messages).is_ok());
        // The second round asks for a leaf on another branch.
        daemon.ok("session/append", params.clone());
    }
}

#[test]
fn one_turn_that_is_too_large_is_condensed_too() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 16_000, &json!({}));
    let next = daemon.append(&session, &[user(&text_of(60_000, "giant")), assistant("Read.")])["next"].clone();
    assert_eq!(next["reason"], "threshold");
    let end = daemon.until("compaction_end")["params"]["event"].clone();
    assert_eq!(end["outcome"], "completed", "{end:#}");
    let context = daemon.ok("session/context", json!({"sessionId": session, "format": "anthropic"}));
    assert!(context["usage"]["contextTokens"].as_u64() <= Some(13_600), "{}", context["usage"]);
    assert!(context["body"].to_string().contains("The giant module"), "the newest request is there");
}

#[test]
fn a_threshold_that_cannot_be_met_starts_nothing_and_says_so() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 16_000, &json!({"thresholdTokens": 1}));
    for at in 0..4 {
        let appended = daemon.append(&session, &[user(&format!("Request {at}.")), assistant("Done.")]);
        assert_eq!(appended["next"]["type"], "none");
        assert_eq!(appended["usage"]["thresholdTokens"], 1);
    }
    let said = why(&mut daemon, &session);
    assert!(said.contains("over the threshold of 1, which no compaction can meet"), "{said}");
    assert!(said.contains("A compaction is due over 8000"), "{said}");
    daemon.append(&session, &over());
    let end = daemon.until("compaction_end")["params"]["event"].clone();
    assert_eq!(end["outcome"], "completed", "{end:#}");
    let starts = daemon.count("compaction_start");
    assert_eq!(starts, 1);
}

#[test]
fn a_request_over_the_threshold_with_nothing_before_it_starts_nothing_until_it_is_answered() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 16_000, &json!({}));
    let request = user(&text_of(8_000, "large"));
    assert_eq!(daemon.append(&session, std::slice::from_ref(&request))["next"]["type"], "none");
    let said = why(&mut daemon, &session);
    assert!(said.contains("nothing before the newest messages, which no model has read, can be summarized"), "{said}");
    assert_eq!(daemon.append(&session, &[assistant("Read.")])["next"]["reason"], "threshold");
    assert_eq!(daemon.until("compaction_end")["params"]["event"]["outcome"], "completed");
}

#[test]
fn a_request_over_the_window_is_clipped_and_never_summarized_by_the_maintenance_that_it_starts() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 16_000, &json!({}));
    let appended = daemon.append(&session, &[user(&text_of(60_000, "giant"))]);
    assert_eq!(appended["next"]["reason"], "threshold");
    let end = daemon.until("compaction_end")["params"]["event"].clone();
    assert_eq!(end["outcome"], "completed", "{end:#}");
    let context = daemon.context(&session);
    assert!(context["usage"]["contextTokens"].as_u64() <= Some(8_000), "{}", context["usage"]);
    assert_eq!(context["entryIds"].as_array().and_then(|ids| ids.last()), Some(&appended["entryIds"][0]));
    let text = context["messages"].as_array().and_then(|all| all.last()).expect("a message").to_string();
    assert!(text.contains("The giant module") && text.contains("has all of it"), "{text:.300}");
    let entry = daemon.ok("session/entry", json!({"sessionId": session, "entryId": appended["entryIds"][0]}));
    assert_eq!(entry["entry"]["message"]["content"], user(&text_of(60_000, "giant"))["content"]);
}

/// A message with images of so many bytes.
fn shown(bytes: &[usize]) -> Value {
    let image = |bytes: &usize| json!({"type": "image", "mimeType": "image/png", "data": "A".repeat(*bytes)});
    let mut message = user("Look at this.");
    let mut content = vec![json!({"type": "text", "text": "Look at this."})];
    content.extend(bytes.iter().map(image));
    message["content"] = content.into();
    message
}

/// The images of a context, in bytes.
fn image_bytes(daemon: &mut Daemon, session: &str) -> Vec<usize> {
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let messages = context["messages"].as_array().expect("messages").iter();
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter_map(|block| block["data"].as_str().map(str::len)).collect()
}

#[test]
fn images_over_their_bytes_leave_far_below_the_threshold() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 200_000, &json!({}));
    daemon.append(&session, &[shown(&[4_000_000, 3_000_000]), assistant("Seen.")]);
    daemon.append(&session, &[shown(&[8_000_000])]);
    assert_eq!(image_bytes(&mut daemon, &session), [4_000_000, 3_000_000, 8_000_000]);
    let appended = daemon.append(&session, &[assistant("Seen."), shown(&[100])]);
    assert_eq!(appended["next"]["type"], "none");
    let pruned = daemon.until("pruned")["params"]["event"].clone();
    assert_eq!(pruned["why"], "the images had 15000100 bytes, over the budget of 15000000");
    assert_eq!(pruned["entryIds"].as_array().map(Vec::len), Some(1), "{pruned:#}");
    assert_eq!(image_bytes(&mut daemon, &session), [3_000_000, 8_000_000, 100]);
    assert!(why(&mut daemon, &session).contains("nothing to do"));
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let notice = context["messages"][0]["content"][1]["text"].as_str().expect("a notice").to_owned();
    assert!(notice.contains("has it (session/entry of abridged returns it)"), "{notice}");
    let starts = daemon.count("compaction_start");
    assert_eq!(starts, 0);
}

#[test]
fn images_over_their_bytes_stay_where_automatic_compaction_is_off() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 200_000, &json!({"enabled": false}));
    daemon.append(&session, &[shown(&[8_000_000]), assistant("Seen."), shown(&[8_000_000])]);
    assert_eq!(image_bytes(&mut daemon, &session), [8_000_000, 8_000_000]);
    let said = why(&mut daemon, &session);
    assert!(said.contains("images of the context have 16000000 bytes") && said.contains("is off"), "{said}");
}

#[test]
fn usage_that_cannot_be_true_does_not_stop_a_session() {
    for reported in [50_000_u64, 1_000_000_000] {
        let mut daemon = Daemon::start();
        let session = session(&mut daemon, 16_000, &json!({}));
        let mut lie = assistant("Yes.");
        lie["usage"] =
            json!({"input": reported, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": reported + 1});
        daemon.append(&session, &[user("Are you there?"), lie]);
        daemon.append(&session, &[user("And now?")]);
        let context = daemon.ok("session/context", json!({"sessionId": session, "format": "anthropic", "wait": true}));
        assert!(context["usage"]["contextTokens"].as_u64() < Some(1_000), "{}", context["usage"]);
        assert!(context["body"].to_string().contains("And now?"));
    }
}

#[test]
fn a_session_that_is_only_read_says_so() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 16_000, &json!({"enabled": false}));
    daemon.append(&session, &over());
    daemon.ok("session/close", json!({"sessionId": session}));
    let model = json!({"provider": "p", "id": "m", "contextWindow": 16_000});
    let settings = json!({"tokens": {"estimator": "chars"}, "models": [model]});
    daemon.ok("session/load", json!({"sessionId": session, "readOnly": true, "settings": settings}));
    assert!(why(&mut daemon, &session).contains("readOnly: true"));
}

#[test]
fn messages_that_come_during_a_compaction_are_compacted_behind_it() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 16_000, &json!({}));
    let one = |at: u32| json!({"sessionId": session, "messages": [user(&format!("Request {at}. {}", text_of(200, "small")))]});
    let appends: Vec<u64> = (0..200).map(|at| daemon.begin("session/append", one(at))).collect();
    let context = daemon.begin("session/context", json!({"sessionId": session, "wait": true}));
    for append in appends {
        assert!(daemon.answer(append).is_ok());
    }
    let context = daemon.answer(context).expect("a context");
    // Half of the reserve of 8,000 tokens is free for the answer, unless three compactions in a row were not enough.
    let most = if daemon.count("compaction_start") < 3 { 12_000 } else { 16_000 };
    assert!(context["usage"]["contextTokens"].as_u64() <= Some(most), "{}", context["usage"]);
    assert!(context["messages"].to_string().contains("Request 199."));
}

#[test]
fn a_context_that_leaves_less_than_half_of_the_reserve_for_the_answer_is_compacted_first() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 16_000, &json!({"enabled": false}));
    for turn in 0..11 {
        daemon.append(&session, &[user(&text_of(480, &format!("ask{turn}"))), assistant(&text_of(480, "answer"))]);
    }
    let enabled =
        |on: bool| json!({"sessionId": session, "scope": "session", "patch": {"compaction": {"enabled": on}}});
    let size = |daemon: &mut Daemon| {
        let context = daemon.ok("session/context", json!({"sessionId": session, "wait": true}));
        context["usage"]["contextTokens"].as_u64().expect("a size")
    };
    let before = size(&mut daemon);
    assert!((12_001..=16_000).contains(&before), "{before}");
    daemon.ok("settings/set", enabled(true));
    let after = size(&mut daemon);
    assert!(after <= 8_000, "{after}");
    assert_eq!(daemon.count("compaction_start"), 1);
}

#[test]
fn the_smallest_windows_do_not_loop() {
    for window in [1, 10, 100] {
        let mut daemon = Daemon::start();
        let session = session(&mut daemon, window, &json!({}));
        daemon.append(&session, &[user(&text_of(200, "more than there is room for"))]);
        let error = daemon.err("session/context", json!({"sessionId": session, "wait": true}));
        assert_eq!(error["data"]["code"], "context_overflow", "{error:#}");
        assert!(error["message"].as_str().is_some_and(|it| it.contains("none can help")), "{error:#}");
        let starts = daemon.count("compaction_start");
        assert_eq!(starts, 0);
    }
}

/// The system prompt and the tools of some hosts are larger than the threshold, and are not given with the session.
#[test]
fn an_overhead_over_the_threshold_that_was_not_announced_starts_no_compaction_behind_each_answer() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, 16_000, &json!({}));
    for turn in 0..24 {
        daemon.append(&session, &[user(&text_of(100, &format!("ask{turn}")))]);
        let context = daemon.context(&session);
        let size: usize =
            context["messages"].as_array().expect("messages").iter().map(|it| it.to_string().len() / 4).sum();
        let input = 14_000 + size;
        let mut answer = assistant(&text_of(100, &format!("answer{turn}")));
        answer["usage"] =
            json!({"input": input, "output": 100, "cacheRead": 0, "cacheWrite": 0, "totalTokens": input + 100});
        daemon.append(&session, &[answer]);
        if turn == 5 {
            let why = why(&mut daemon, &session);
            assert!(why.contains("no compaction can help"), "{why}");
        }
    }
    daemon.context(&session);
    let compactions = daemon.count("compaction_start");
    // The window is full again every few turns.
    assert!((1..=12).contains(&compactions), "{compactions} compactions");
}
