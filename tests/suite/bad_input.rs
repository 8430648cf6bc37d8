//! Input that no host and no provider is meant to send: the session goes on, and each context is valid and fits.

use crate::{
    hosts::wire,
    provider::{Format, objection},
    summarizing::merge,
    support::{Daemon, assistant, calls, event, failed, model, names, result, text_of, user},
};
use serde_json::{Value, json};

const WINDOW: u64 = 24_000;
const TOO_LONG: &str = "prompt is too long: 21000 tokens > 20000 maximum";

fn session(daemon: &mut Daemon) -> String {
    let settings = json!({"tokens": {"estimator": "chars"}, "models": [model("m", WINDOW)]});
    daemon.new_session(json!({"cwd": "/project", "model": "p/m", "settings": settings}))
}

/// A conversation of 6,000 tokens by characters, below the threshold.
fn history() -> Vec<Value> {
    vec![
        user(&text_of(3_000, "one")),
        assistant("Read."),
        user(&text_of(3_000, "two")),
        assistant("Read."),
        user("On."),
    ]
}

fn tokens(daemon: &mut Daemon, session: &str) -> u64 {
    daemon.context(session)["usage"]["contextTokens"].as_u64().expect("a number")
}

/// Each start has one end.
fn starts_have_ends(daemon: &Daemon) {
    for kind in ["compaction", "recovery"] {
        let (starts, ends) = (daemon.count(&format!("{kind}_start")), daemon.count(&format!("{kind}_end")));
        assert_eq!(starts, ends, "{kind}");
    }
}

#[test]
fn an_overflow_in_words_that_are_unknown_ends_the_turn_and_a_compaction_by_hand_makes_room() {
    let large = format!("Ujumbe huu ni mrefu kupita kiasi. {}", "x".repeat(200_000));
    let texts = [
        "Ujumbe huu ni mrefu kupita kiasi.",
        "Текст не вміщується.",
        r#"{"fault": {"number": 77, "why": ["size", 21000, 16000]}}"#,
        "<html><body><h1>413</h1><p>Yn rhy hir</p></body></html>",
        "E77",
        "\u{0}\u{1b}[31m\u{202e}🧨\r\n",
        &large,
    ];
    for text in texts {
        let mut daemon = Daemon::start();
        let session = session(&mut daemon);
        daemon.append(&session, &history());
        let before = tokens(&mut daemon, &session);
        for _ in 0..3 {
            assert_eq!(daemon.append(&session, &[failed(text)])["next"], json!({"type": "none"}), "{text:.80}");
        }
        assert_eq!(tokens(&mut daemon, &session), before, "the failed answers are in no context: {text:.80}");
        assert_eq!(daemon.count("recovery_start") + daemon.count("compaction_start"), 0, "{text:.80}");
        let by_hand = json!({"sessionId": session, "wait": true, "keepRecentTokens": 1_000});
        assert_eq!(daemon.ok("session/compact", by_hand)["outcome"], "completed", "{text:.80}");
        let context = daemon.context(&session)["messages"].to_string();
        assert!(context.contains("On."), "the newest request stays: {text:.80}");
        assert!(context.len() as u64 / 4 < before / 2, "{text:.80}");
    }
}

#[test]
fn two_overflows_at_once_are_one_recovery() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    daemon.append(&session, &history());
    // Two requests of the host were refused, in one append and in two that it sends without waiting.
    for appends in
        [vec![vec![failed(TOO_LONG), failed(TOO_LONG)]], vec![vec![failed(TOO_LONG)], vec![failed(TOO_LONG)]]]
    {
        let before = tokens(&mut daemon, &session);
        daemon.ok("session/status", json!({"sessionId": session}));
        let from = daemon.events.len();
        let count = appends.len();
        let sent: Vec<u64> = appends
            .into_iter()
            .map(|messages| daemon.begin("session/append", json!({"sessionId": session, "messages": messages})))
            .collect();
        let nexts: Vec<Value> =
            sent.into_iter().map(|id| daemon.answer(id).expect("it is appended")["next"].clone()).collect();
        assert!(nexts.iter().all(|next| next["willRetry"] == true), "{nexts:#?}");
        let context = daemon.context(&session);
        daemon.ok("session/status", json!({"sessionId": session}));
        let events = daemon.events_since(from);
        assert!(!context["messages"].to_string().contains("too long"), "no failed answer is in the context");
        assert!(context["usage"]["contextTokens"].as_u64() < Some(before), "{count} appends");
        let compactions = events.iter().filter(|(kind, _)| kind == "compaction_start").count();
        assert!(compactions <= 1, "{count} appends: {:?}", names(&events));
        assert_eq!(event(&events, "recovery_end")["outcome"], "recovered", "{count} appends");
        starts_have_ends(&daemon);
        daemon.append(&session, &[assistant("It fits."), user(&text_of(3_000, "more"))]);
        daemon.context(&session);
    }
}

/// All that a host can append, without a look at an answer. Each batch is one request.
fn careless(turn: usize) -> Vec<Vec<Value>> {
    let (own, never) = (format!("own{turn}"), format!("never{turn}"));
    let cut = json!({"role": "assistant", "content": [], "stopReason": "length", "timestamp": 1});
    let request = vec![user(&format!("Turn {turn}: {}", text_of(300, "ask")))];
    let mut batches = vec![request];
    batches.extend(match turn % 6 {
        0 => vec![vec![failed(TOO_LONG)], vec![assistant("An answer that nobody asked for again.")]],
        1 => vec![vec![calls(&[&own])], vec![result(&own, &text_of(200, "own")), result(&own, "Again.")]],
        2 => vec![vec![result(&never, &text_of(200, "never"))], vec![assistant(&text_of(200, "answer"))]],
        // The results of a call that was cut off, and of one that has none.
        3 => vec![vec![calls(&[&own])], vec![cut], vec![result(&own, "Late.")]],
        4 => vec![vec![failed(TOO_LONG), failed("429: too many tokens per minute")]],
        _ => vec![vec![assistant(&text_of(250, "answer"))]],
    });
    batches
}

#[test]
fn a_host_that_ignores_next_and_never_waits_loses_nothing() {
    const TURNS: usize = 120;
    let mut daemon = Daemon::start();
    let session = session(&mut daemon);
    let (mut sent, mut expected) = (Vec::new(), Vec::new());
    for turn in 0..TURNS {
        for messages in careless(turn) {
            expected.extend(messages.iter().map(|message| message["content"].clone()));
            sent.push(daemon.begin("session/append", json!({"sessionId": session, "messages": messages})));
        }
        if turn % 10 == 0 {
            sent.push(daemon.begin("session/context", json!({"sessionId": session})));
        }
        // More requests at once are refused as `overloaded`.
        if sent.len() > 150 {
            sent.drain(..).for_each(|id| drop(daemon.answer(id).expect("an answer")));
        }
    }
    let last = daemon.begin("session/context", json!({"sessionId": session, "format": "anthropic"}));
    sent.drain(..).for_each(|id| drop(daemon.answer(id).expect("an answer")));
    let last = daemon.answer(last).expect("a context");
    assert!(last["usage"]["contextTokens"].as_u64() <= Some(WINDOW), "{}", last["usage"]);
    assert!(last["body"].to_string().contains(&format!("Turn {}: ", TURNS - 1)), "the newest request is there");
    assert_eq!(objection(Format::Anthropic, "m", last["body"].clone()), None);
    let usage = daemon.context(&session)["usage"].clone();
    starts_have_ends(&daemon);
    assert!(daemon.count("compaction_start") > 3, "{:?}", daemon.kinds());
    let mut stored = Vec::new();
    let mut after = Value::Null;
    loop {
        let mut params = json!({"sessionId": session});
        if !after.is_null() {
            params["since"] = after;
        }
        let page = daemon.ok("session/entries", params);
        let entries = page["entries"].as_array().expect("entries");
        stored.extend(entries.iter().filter(|it| it["type"] == "message").map(|it| it["message"]["content"].clone()));
        after = page["nextCursor"].clone();
        if after.is_null() {
            break;
        }
    }
    assert_eq!(stored.len(), expected.len());
    assert_eq!(stored, expected, "each message is stored once, in the order of the requests");
    let mut daemon = daemon.restarted();
    daemon.ok("session/load", json!({"sessionId": session}));
    assert_eq!(daemon.context(&session)["usage"]["contextTokens"], usage["contextTokens"]);
}

#[test]
fn results_of_calls_that_nobody_made_leave_valid_requests_in_every_format() {
    for format in Format::ALL {
        let mut daemon = Daemon::start();
        let session = session(&mut daemon);
        let call = wire::Call { id: "never".to_owned(), name: "read".to_owned() };
        let results = wire::results(format, std::slice::from_ref(&call), &[text_of(4_000, "never")]);
        let mut append = |messages: Vec<Value>, beside: Value| {
            let mut params = json!({"sessionId": session, "format": format.api(), "messages": messages});
            merge(&mut params, beside);
            daemon.ok("session/append", params)
        };
        let asked = append(vec![wire::user(format, "Look.")], json!({}));
        for _ in 0..10 {
            let next = append(results.clone(), json!({}));
            assert_eq!(next["next"], json!({"type": "none"}), "{format:?}");
            assert_eq!(next["usage"]["contextTokens"], asked["usage"]["contextTokens"], "{format:?}: it is not sent");
        }
        // The report of the next answer is no sign of a prompt that the provider cut.
        let mut answer = assistant("Looked.");
        answer["usage"] = json!({"input": 40, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 45});
        let answered = daemon.append(&session, &[answer, user("And now?")]);
        assert_eq!(answered["usage"]["source"], "provider", "{format:?}");
        let body = daemon.ok("session/context", json!({"sessionId": session, "format": format.api()}))["body"].clone();
        assert_eq!(objection(format, "m", body.clone()), None, "{format:?}: {body:#}");
        let text = body.to_string();
        assert!(text.contains("And now?") && !text.contains("never"), "{format:?}: {text:.400}");
    }
}
