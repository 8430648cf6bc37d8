//! A session that goes on with a cold prompt cache: its costs in `usage`, the notice, and the compaction.

use crate::support::{Daemon, Home, assistant, header, text_of, user};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Settings of a model with a small window and these prices.
fn settings(mode: &str, cost: &Value) -> Value {
    let model = json!({"provider": "p", "id": "m", "contextWindow": 20_000, "cost": cost});
    json!({"tokens": {"estimator": "chars"}, "models": [model], "defaultModel": "p/m",
        "compaction": {"coldResume": mode, "keepRecentTokens": 1_000, "speculative": false}})
}

fn prices() -> Value {
    json!({"input": 1000, "output": 5000, "cacheRead": 100, "cacheWrite": 1250})
}

fn daemon(settings: &Value) -> Daemon {
    let home = Home::new();
    home.settings(&settings.to_string());
    Daemon::at(home)
}

/// A report of the model about this prompt.
fn reporting(text: &str, input: u64) -> Value {
    let mut answer = assistant(text);
    (answer["provider"], answer["model"]) = ("p".into(), "m".into());
    answer["usage"] = json!({"input": input, "output": 10, "cacheRead": 0, "cacheWrite": 0, "totalTokens": input + 10});
    answer
}

/// A file of about 12,000 tokens whose entries have this time.
fn file(home: &Home, time: &str) -> PathBuf {
    let messages = [
        user("Mend the store."),
        assistant(&text_of(5_000, "store")),
        user("Go on."),
        assistant(&text_of(5_000, "tests")),
        user("And now?"),
        reporting("Done.", 11_000),
    ];
    let mut lines = vec![header("s")];
    for (at, message) in messages.iter().enumerate() {
        let parent = at.checked_sub(1).map(|before| format!("e{before}"));
        lines.push(json!({"type": "message", "id": format!("e{at}"), "parentId": parent, "timestamp": time, "message": message}));
    }
    home.session("s.jsonl", &lines)
}

const LONG_AGO: &str = "2025-01-01T00:00:00.000Z";

/// The details of the notices about cold caches.
fn notices(daemon: &Daemon) -> Vec<String> {
    let notices = daemon.events.iter().map(|event| &event["params"]["event"]);
    let cold = notices.filter(|event| event["type"] == "notice" && event["code"] == "cold_resume");
    cold.map(|event| event["detail"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Waits for all events before now.
fn settle(daemon: &mut Daemon, session: &str) -> Value {
    daemon.ok("session/usage", json!({"sessionId": session}))
}

#[test]
fn a_cold_session_is_priced_and_told_once() {
    let mut daemon = daemon(&settings("notice", &prices()));
    let path = file(&daemon.home, LONG_AGO);
    let loaded = daemon.ok("session/load", json!({"path": path}));
    let session = loaded["session"]["sessionId"].as_str().expect("an id").to_owned();
    let cold = &loaded["session"]["usage"]["coldResume"];
    let tokens = loaded["session"]["usage"]["contextTokens"].as_f64().expect("a size");
    assert_eq!(cold["tokens"].as_f64(), Some(tokens));
    assert_eq!(cold["cacheSeconds"], 3_600);
    assert!(cold["ageSeconds"].as_u64().expect("an age") > 86_400, "{cold:#}");
    let number = |name: &str| cold[name].as_f64().expect("a number");
    // All of it is written to the cache.
    assert!((number("cost") - tokens * 1_250.0 / 1e6).abs() < 1e-3, "{cold:#}");
    assert!(number("costAfter") < number("cost") / 2.0 && number("compactionCost") > 0.0, "{cold:#}");
    for _ in 0..4 {
        daemon.ok("session/load", json!({"path": path}));
    }
    let usage = settle(&mut daemon, &session);
    assert_eq!(usage["coldResume"]["cost"], cold["cost"]);
    daemon.append(&session, &[user("Go on.")]);
    settle(&mut daemon, &session);
    let told = notices(&daemon);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("tokens anew (about $") && told[0].contains("After session/compact"), "{told:?}");
    // An answer has written the cache again.
    daemon.append(&session, &[reporting("Yes.", 11_200)]);
    assert_eq!(settle(&mut daemon, &session).get("coldResume"), None);
    assert_eq!(daemon.count("compaction_start"), 0);
}

#[test]
fn nothing_is_told_of_a_warm_small_or_unknown_cache() {
    let now = jiff::Timestamp::now();
    let tomorrow = now + jiff::SignedDuration::from_hours(24);
    let minute = now - jiff::SignedDuration::from_secs(60);
    let small = json!({"provider": "p", "id": "m", "contextWindow": 200_000});
    let read_only = json!({"readOnly": true});
    let none = json!({});
    let large = settings("notice", &prices());
    let mut little = large.clone();
    little["models"] = json!([small]);
    for (settings, time, params, shows) in [
        (&large, minute.to_string(), &none, false),
        (&large, tomorrow.to_string(), &none, false),
        (&large, String::new(), &none, false),
        (&little, LONG_AGO.to_owned(), &none, false),
        (&large, LONG_AGO.to_owned(), &read_only, true),
        (&self::settings("off", &prices()), LONG_AGO.to_owned(), &none, true),
    ] {
        let mut daemon = daemon(settings);
        let path = file(&daemon.home, &time);
        let mut load = json!({ "path": path });
        load.as_object_mut().expect("an object").extend(params.as_object().expect("an object").clone());
        let loaded = daemon.ok("session/load", load);
        let session = loaded["session"]["sessionId"].as_str().expect("an id").to_owned();
        assert_eq!(settle(&mut daemon, &session).get("coldResume").is_some(), shows, "{time} {settings}");
        assert_eq!(notices(&daemon), Vec::<String>::new(), "{time} {settings}");
    }
}

#[test]
fn without_prices_nothing_is_said_about_money() {
    let mut daemon = daemon(&settings("notice", &Value::Null));
    let path = file(&daemon.home, LONG_AGO);
    let session = daemon.load(&path);
    let usage = settle(&mut daemon, &session);
    assert_eq!(usage["coldResume"].get("cost"), None, "{usage:#}");
    assert!(usage["coldResume"]["tokensAfter"].is_u64());
    let told = notices(&daemon);
    assert!(told.len() == 1 && !told[0].contains('$'), "{told:?}");
}

#[test]
fn a_cold_session_is_compacted_when_it_goes_on_and_not_when_it_is_opened() {
    let mut daemon = daemon(&settings("compact", &prices()));
    let path = file(&daemon.home, LONG_AGO);
    let session = daemon.load(&path);
    let usage = settle(&mut daemon, &session);
    assert_eq!((usage["code"].as_str(), daemon.count("compaction_start")), (Some("cold"), 0), "{usage:#}");
    let appended = daemon.append(&session, &[user("Go on.")]);
    assert_eq!(appended["next"]["type"], "maintenance", "{appended:#}");
    let end = daemon.until("compaction_end")["params"]["event"].clone();
    assert_eq!(end["outcome"], "completed", "{end:#}");
    daemon.until("settled");
    let after = settle(&mut daemon, &session);
    assert_eq!((after["code"].as_str(), after.get("coldResume")), (Some("below"), None), "{after:#}");
    assert!(after["contextTokens"].as_u64() < usage["contextTokens"].as_u64());
    assert_eq!(daemon.append(&session, &[user("And more.")])["next"], json!({"type": "none"}));
    assert_eq!((notices(&daemon).len(), daemon.count("compaction_start")), (0, 1));
}

#[test]
fn a_context_with_wait_compacts_a_cold_session_first() {
    let mut daemon = daemon(&settings("compact", &prices()));
    let path = file(&daemon.home, LONG_AGO);
    let session = daemon.load(&path);
    let context = daemon.ok("session/context", json!({"sessionId": session, "wait": true}));
    assert!(context["compactionEntryId"].is_string(), "{context:#}");
    assert_eq!(daemon.count("compaction_end"), 1);
}

#[test]
fn a_warm_session_over_the_bound_is_not_compacted() {
    let mut daemon = daemon(&settings("compact", &prices()));
    let path = file(&daemon.home, &jiff::Timestamp::now().to_string());
    let session = daemon.load(&path);
    assert_eq!(daemon.append(&session, &[user("Go on.")])["next"], json!({"type": "none"}));
    assert_eq!(settle(&mut daemon, &session)["code"], "below");
}
