//! Limits that hold whatever settings, providers and clients do.

use crate::{
    provider::{Asked, Format, Provider, Step},
    support::{Daemon, Home, assistant, at_once, entries, header, text_of, user},
};
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    path::Path,
    thread,
    time::Duration,
};

/// A session about `cwd` with something to compact.
fn session_about(daemon: &mut Daemon, cwd: &Path) -> String {
    let turn = |at: usize| [user(&text_of(280, &format!("part_{at}"))), assistant(&format!("value_{at} is set."))];
    let messages: Vec<Value> = (0..20).flat_map(turn).collect();
    let mut head = header("bounded");
    head["cwd"] = json!(cwd);
    let lines: Vec<Value> = std::iter::once(head).chain(entries(&messages)).collect();
    let path = daemon.home.session("bounded.jsonl", &lines);
    daemon.load(&path)
}

/// A home whose only model is asked at `provider`, with a folder for a project.
fn home_of(provider: &Provider, more: &[(&str, Value)]) -> Home {
    let home = Home::new();
    let mut settings = json!({
        "models": [{"provider": "first", "id": "model", "contextWindow": 100_000, "api": "anthropic",
            "baseUrl": provider.base_url()}],
        "compaction": {"models": ["first/model"]},
        "tokens": {"estimator": "chars"},
    });
    for (key, value) in more {
        settings[*key] = value.clone();
    }
    home.settings(&settings.to_string());
    std::fs::create_dir_all(home.path("project/.abridged")).expect("a folder");
    home
}

/// A cloned folder must not make the daemon hammer a provider, each time with the conversation.
#[test]
fn a_project_cannot_ask_for_more_retries_than_the_default() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(Step::server_error());
    let home = home_of(&provider, &[("retry", json!({"baseDelayMs": 100}))]);
    let folder = home.path("project");
    let hostile = json!({"retry": {"maxRetries": 1_000_000, "baseDelayMs": 0, "maxDelayMs": 0}});
    std::fs::write(folder.join(".abridged/settings.json"), hostile.to_string()).expect("a file");
    let mut daemon = Daemon::at(home);
    let session = session_about(&mut daemon, &folder);
    let result = daemon.compact(&session, 500);
    assert_eq!(result["method"], "extractive");
    assert_eq!(provider.asked().len(), 4, "one request and three retries");
}

#[test]
fn nobody_asks_for_more_than_ten_retries() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(Step::server_error());
    let most = json!({"maxRetries": 10, "baseDelayMs": 100, "maxDelayMs": 100});
    let mut daemon = Daemon::at(home_of(&provider, &[("retry", most)]));
    let folder = daemon.home.path("project");
    let session = session_about(&mut daemon, &folder);
    assert_eq!(daemon.compact(&session, 500)["method"], "extractive");
    assert_eq!(provider.asked().len(), 11);
    let more = json!({"scope": "global", "patch": {"retry": {"maxRetries": 11}}});
    assert_eq!(daemon.err("settings/set", more)["data"]["path"], "patch.retry.maxRetries");
}

/// A provider that states a window one token smaller with each request would be asked again for each of them.
#[test]
fn a_manual_compaction_ends_after_a_number_of_requests() {
    let provider = Provider::start(Format::Anthropic);
    let window = std::sync::atomic::AtomicU64::new(90_000);
    provider.otherwise(move |_: &Asked| {
        let window = window.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
        let message = format!("This model's maximum context length is {window} tokens.");
        let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
        Step::status(400).body(&error.to_string())
    });
    let mut daemon = Daemon::at(home_of(&provider, &[]));
    let folder = daemon.home.path("project");
    let session = session_about(&mut daemon, &folder);
    let result = daemon.compact(&session, 500);
    assert_eq!(result["method"], "extractive");
    let why = result["rejected"][0]["why"].as_str().expect("a text");
    assert!(why.contains("too many requests for one summary"), "{why}");
    // Planned is one for the history.
    assert_eq!(provider.asked().len(), 1 + 12);
}

/// A server that answers every request with this head, then with `drip` every fifty milliseconds until nobody listens.
fn dripping(content_type: &'static str, drip: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            thread::spawn(move || {
                // The request is not read to its end: it fits into the buffers of the socket.
                let _ = stream.read(&mut [0; 1 << 16]);
                let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n\r\n");
                let mut sent = stream.write_all(head.as_bytes());
                while sent.is_ok() {
                    sent = stream.write_all(drip.as_bytes()).and_then(|()| stream.flush());
                    thread::sleep(Duration::from_millis(50));
                }
            });
        }
    });
    address
}

#[test]
fn an_answer_of_nothing_but_keep_alives_is_given_up() {
    let drips = [
        ("application/json", " "),
        ("text/event-stream", "\n\n"),
        ("text/event-stream", ": ping\n\n"),
        ("text/event-stream", "event: ping\ndata: {\"type\": \"ping\"}\n\n"),
        ("", "\n"),
    ];
    at_once(drips, |(kind, drip)| {
        let home = Home::new();
        let model = json!({"provider": "drips", "id": "m", "contextWindow": 100_000, "api": "anthropic",
            "baseUrl": format!("http://{}", dripping(kind, drip))});
        let settings = json!({"models": [model], "compaction": {"models": ["drips/m"], "stallSeconds": 1},
            "tokens": {"estimator": "chars"}});
        home.settings(&settings.to_string());
        let mut daemon = Daemon::at(home);
        let folder = daemon.home.path("");
        let session = session_about(&mut daemon, &folder);
        let result = daemon.compact(&session, 500);
        let rejected = result["rejected"].as_array().expect("a list");
        assert_eq!(rejected.len(), 1, "{result:#}");
        let why = rejected[0]["why"].as_str().expect("a text");
        assert!(why.contains("keep-alives and no more of the answer came for 1 s"), "{why}");
    });
}

/// Contexts that wait for a compaction, whose model never answers, are in flight until it is cancelled.
#[test]
fn the_announced_number_of_requests_is_in_flight_and_the_next_is_refused() {
    let home = Home::new();
    let settings = json!({
        "models": [{"provider": "host", "id": "model", "contextWindow": 100_000, "api": "client"}],
        "compaction": {"models": ["host/model"]},
        "tokens": {"estimator": "chars"},
    });
    home.settings(&settings.to_string());
    let mut daemon = Daemon::silent(home);
    let limits = daemon.ok("initialize", json!({"capabilities": {"llm": {}}}))["limits"].clone();
    assert_eq!((&limits["maxInFlightRequests"], &limits["maxBatchRequests"]), (&json!(256), &json!(256)));
    let folder = daemon.home.path("");
    let session = session_about(&mut daemon, &folder);
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 500}));
    while daemon.frame()["method"] != "llm/complete" {}
    let waiting = |daemon: &mut Daemon| daemon.begin("session/context", json!({"sessionId": session, "wait": true}));
    let accepted: Vec<u64> = (0..256).map(|_| waiting(&mut daemon)).collect();
    let refused = waiting(&mut daemon);
    let error = daemon.answer(refused).expect_err("one too many");
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32001), &json!("overloaded")));
    assert!(error["data"]["retryAfterMs"].is_u64());
    assert_eq!(daemon.ok("ping", json!({})), json!({}));
    daemon.ok("session/cancel", json!({"sessionId": session}));
    for id in accepted {
        assert!(daemon.answer(id).expect("a context")["messages"].is_array());
    }
}

#[test]
fn a_batch_with_too_many_members_is_answered_once() {
    let mut daemon = Daemon::start();
    let members = vec!["1"; 5_000_000].join(",");
    daemon.write(format!("[{members}]\n").as_bytes());
    let answer = daemon.frame();
    assert_eq!((&answer["id"], &answer["error"]["data"]["code"]), (&Value::Null, &json!("invalid_request")));
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    daemon.send(&json!(vec![ping; 256]));
    assert_eq!(daemon.frame().as_array().map(Vec::len), Some(256));
}

/// A session file from elsewhere says no more than a project, and one from a version with other ranges still opens.
#[test]
fn settings_stored_with_a_session_are_held_within_their_ranges() {
    let mut daemon = Daemon::start();
    let settings =
        json!({"retry": {"maxRetries": 9, "baseDelayMs": 0, "maxDelayMs": 5_000}, "prune": {"minimumSavings": 7}});
    let data = json!({"type": "custom", "customType": "abridged.session", "id": "s0", "parentId": null,
        "timestamp": "2026-01-01T00:00:00.000Z", "data": {"settings": settings}});
    let path = daemon.home.session("elsewhere.jsonl", &[header("elsewhere"), data]);
    let loaded = daemon.ok("session/load", json!({"path": path}));
    let repairs: Vec<String> = loaded["repairs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| format!("{}: {}", it["kind"].as_str().unwrap_or("?"), it["detail"].as_str().unwrap_or("?")))
        .collect();
    let expected = [
        "invalid_setting: stored with the session: retry.baseDelayMs: 0; expected 100 to 600000",
        "invalid_setting: stored with the session: retry.maxRetries: 9; a session file may set 0 to 3",
    ];
    assert_eq!(repairs, expected);
    let id = &loaded["session"]["sessionId"];
    let held = daemon.ok("settings/get", json!({"sessionId": id}))["settings"].clone();
    assert_eq!(held["retry"], json!({"enabled": true, "maxRetries": 3, "baseDelayMs": 2_000, "maxDelayMs": 5_000}));
    assert_eq!(held["prune"]["minimumSavings"], 7);
}

#[test]
fn an_answer_of_the_client_that_cannot_be_read_is_not_answered() {
    let home = Home::new();
    let settings = json!({
        "models": [{"provider": "host", "id": "model", "contextWindow": 100_000, "api": "client"}],
        "compaction": {"models": ["host/model"]},
        "retry": {"enabled": false},
        "tokens": {"estimator": "chars"},
    });
    home.settings(&settings.to_string());
    let mut daemon = Daemon::silent(home);
    daemon.ok("initialize", json!({"capabilities": {"llm": {}}}));
    let folder = daemon.home.path("");
    let session = session_about(&mut daemon, &folder);
    let params = json!({"sessionId": session, "keepRecentTokens": 500, "wait": true});
    let compaction = daemon.begin("session/compact", params);
    loop {
        let frame = daemon.frame();
        if frame["method"] == "llm/complete" {
            let id = &frame["id"];
            let twice = format!("{{\"jsonrpc\": \"2.0\", \"id\": {id}, \"result\": {{}}, \"result\": {{}}}}\n");
            daemon.write(twice.as_bytes());
        } else if frame["id"] == compaction {
            let result = &frame["result"];
            assert_eq!(result["result"]["method"], "extractive", "{frame:#}");
            assert!(result.to_string().contains("duplicate field"), "{frame:#}");
            break;
        } else {
            assert!(frame.get("id").is_none_or(Value::is_string), "an answer to an answer: {frame}");
        }
    }
    // One that nobody asked for.
    daemon.write(b"{\"jsonrpc\": \"2.0\", \"id\": \"none\", \"error\": {}, \"error\": {}}\n");
    assert_eq!(daemon.ok("ping", json!({})), json!({}));
}
