//! Summaries ahead of the threshold: the time of a splice at any size of the file, and the time that requests lose while a
//! summary is being made.

use super::{
    Daemon, Report, median, milliseconds,
    models::Provider,
    sessions::{self, open_file},
};
use serde_json::{Value, json};
use std::{
    fs,
    net::TcpListener,
    path::Path,
    time::{Duration, Instant},
};

/// The splices of each size.
const ROUNDS: usize = 7;

/// Requests of each kind beside a summary that is being made.
const REQUESTS: usize = 400;

/// The distance of the context from the threshold at which the summary begins, in tokens.
const BELOW: u64 = 5_000;

/// A session that is loaded, `BELOW` its threshold.
fn near(file: &Path, url: &str, speculative: bool) -> Daemon {
    let model =
        json!({"provider": "bench", "id": "model", "api": "openai_chat", "baseUrl": url, "contextWindow": 1_000_000});
    let mut settings = json!({"defaultModel": "bench/model", "models": [model], "tokens": {"estimator": "chars"}});
    let mut daemon = Daemon::start();
    let loaded = daemon.call("session/load", json!({"path": file, "settings": settings}));
    if loaded["indexed"] != true {
        while !daemon.read().contains(r#""type":"index_ready""#) {}
    }
    let tokens = daemon.call("session/usage", json!({"sessionId": "bench"}))["contextTokens"].as_u64();
    let threshold = tokens.expect("a number") + BELOW;
    settings["compaction"] =
        json!({"thresholdTokens": threshold, "keepRecentTokens": 5_000, "speculative": speculative});
    daemon.call("settings/set", json!({"scope": "session", "sessionId": "bench", "patch": settings}));
    daemon
}

fn append(daemon: &mut Daemon, text: &str) -> Value {
    let message = json!({"role": "user", "content": text, "timestamp": 1});
    daemon.call("session/append", json!({"sessionId": "bench", "messages": [message]}))
}

/// The times of one splice: from the answer of the append that crosses the threshold to `compaction_end`, and from the
/// request to the answer of a context that waits for it.
fn spliced(file: &Path, provider: &Provider) -> (Duration, Duration) {
    let length = fs::metadata(file).expect("a file").len();
    let mut daemon = near(file, provider.url(), true);
    append(&mut daemon, "Go on.");
    loop {
        let usage = daemon.call("session/usage", json!({"sessionId": "bench"}));
        if usage["why"].as_str().is_some_and(|why| why.contains("is ready and is spliced in")) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let message = json!({"role": "user", "content": "word ".repeat(6_000), "timestamp": 1});
    let asked = Instant::now();
    daemon.send(1, "session/append", &json!({"sessionId": "bench", "messages": [message]}));
    daemon.send(2, "session/context", &json!({"sessionId": "bench", "wait": true}));
    daemon.flush();
    let (answer, answered) = daemon.answer_with_arrival();
    assert_eq!(answer["next"]["reason"], "threshold", "{answer:#}");
    let ended = loop {
        if daemon.read().contains(r#""type":"compaction_end""#) {
            break Instant::now();
        }
    };
    let event: Value = serde_json::from_str(daemon.line()).expect("JSON");
    assert_eq!(event["params"]["event"]["result"]["method"], "llm", "{event:#}");
    let (_, served) = daemon.answer_with_arrival();
    drop(daemon);
    open_file(file).set_len(length).expect("it is cut");
    (ended - answered, served - asked)
}

/// A provider that never answers.
fn silent() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    std::thread::spawn(move || listener.incoming().flatten().collect::<Vec<_>>());
    url
}

/// The times of appends and of contexts, in two sessions that take turns: beside a summary that is being made, and without
/// one.
fn beside(folder: &Path) -> [[Duration; 2]; 2] {
    let url = silent();
    let mut daemons = [true, false].map(|speculative| {
        let file = folder.join(format!("bench-{speculative}.jsonl"));
        sessions::session(&file, 20_000_000, true);
        let mut daemon = near(&file, &url, speculative);
        append(&mut daemon, "Go on.");
        let running = daemon.call("session/status", json!({"sessionId": "bench"}))["operations"].clone();
        assert_eq!(running.as_array().is_some_and(|running| !running.is_empty()), speculative, "{running}");
        daemon
    });
    let mut times = [[const { Vec::new() }; 2], [const { Vec::new() }; 2]];
    for _ in 0..REQUESTS {
        for (daemon, times) in daemons.iter_mut().zip(&mut times) {
            let started = Instant::now();
            append(daemon, "Go on.");
            times[0].push(started.elapsed());
            let started = Instant::now();
            daemon.send(1, "session/context", &json!({"sessionId": "bench"}));
            daemon.flush();
            let (_, arrival) = daemon.answer_with_arrival();
            times[1].push(arrival - started);
        }
    }
    times.map(|of| of.map(median))
}

/// Splices at each size, and requests beside a summary.
pub fn splices(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bench.jsonl");
    let provider = Provider::start();
    for (name, megabytes) in [("1 MB", 1), ("100 MB", 100), ("1 GB", 1_000)] {
        sessions::session(&file, megabytes * 1_000_000, true);
        open_file(&file).sync_all().expect("it is on disk");
        let runs: Vec<_> = (0..ROUNDS).map(|_| spliced(&file, &provider)).collect();
        let splice = milliseconds(median(runs.iter().map(|run| run.0).collect()));
        let wait = milliseconds(median(runs.iter().map(|run| run.1).collect()));
        report.add(format!("{name}: a splice, from the append's answer to compaction_end"), splice, "ms", "5 + fsync");
        report.add(format!("{name}: an append over the threshold, and the context behind it"), wait, "ms", "50");
    }
    let [with, without] = beside(folder.path());
    for (name, at) in [("append", 0), ("context", 1)] {
        report.add(format!("{name} beside a summary, without one"), milliseconds(without[at]), "ms", "");
        let ratio = with[at].as_secs_f64() / without[at].as_secs_f64();
        report.add(format!("{name} beside a summary, over one without"), ratio, "ratio", "1.05");
    }
}
