//! The end of a compaction by a model: from the last byte of its summary to `compaction_end`, at any size of the file.

use super::{
    Daemon, Report, median, milliseconds,
    models::Provider,
    sessions::{self, open_file},
};
use serde_json::{Value, json};
use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

/// The compactions of each size.
const ROUNDS: usize = 7;

/// The times of one compaction.
struct Ended {
    /// From the last byte of the summary to the end. A request for the short summary is between them.
    since_summary: Duration,
    /// From the last byte of the last answer to the end.
    since_answer: Duration,
}

/// Compacts a session once. Its file is afterwards as it was.
fn compacted(file: &Path, provider: &Provider) -> Ended {
    let length = fs::metadata(file).expect("a file").len();
    let model = json!({"provider": "bench", "id": "model", "api": "openai_chat", "baseUrl": provider.url(), "contextWindow": 400_000});
    let settings = json!({"defaultModel": "bench/model", "models": [model]});
    let mut daemon = Daemon::start();
    let loaded = daemon.call("session/load", json!({"path": file, "settings": settings}));
    if loaded["indexed"] != true {
        while !daemon.read().contains(r#""type":"index_ready""#) {}
    }
    // Counted, so that only the compaction is measured.
    daemon.call("session/compact", json!({"sessionId": "bench", "dryRun": true}));
    daemon.call("session/compact", json!({"sessionId": "bench", "method": "llm"}));
    let end = loop {
        if daemon.read().contains(r#""type":"compaction_end""#) {
            break Instant::now();
        }
    };
    let event: Value = serde_json::from_str(daemon.line()).expect("JSON");
    assert_eq!(event["params"]["event"]["result"]["method"], "llm", "{event:#}");
    let (summary, last) = provider.last_bytes();
    drop(daemon);
    open_file(file).set_len(length).expect("it is cut");
    Ended { since_summary: end - summary, since_answer: end - last }
}

/// The time of an fsync behind an append of 10 kB.
fn fsync(file: &Path) -> Duration {
    let length = fs::metadata(file).expect("a file").len();
    let mut out: File = OpenOptions::new().append(true).open(file).expect("a file");
    let times = (0..21)
        .map(|_| {
            out.write_all(&[b'x'; 10_000]).expect("it is written");
            let started = Instant::now();
            out.sync_data().expect("it is on disk");
            started.elapsed()
        })
        .collect();
    out.set_len(length).expect("it is cut");
    median(times)
}

/// The end of a compaction at each size, beside an fsync of the same file.
pub fn endings(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bench.jsonl");
    let provider = Provider::start();
    for (name, megabytes) in [("1 MB", 1), ("100 MB", 100), ("1 GB", 1_000)] {
        sessions::session(&file, megabytes * 1_000_000, true);
        open_file(&file).sync_all().expect("it is on disk");
        let runs: Vec<Ended> = (0..ROUNDS).map(|_| compacted(&file, &provider)).collect();
        let of = |part: fn(&Ended) -> Duration| milliseconds(median(runs.iter().map(part).collect()));
        let fsync = milliseconds(fsync(&file));
        report.add(
            format!("{name}: from the summary's last byte to compaction_end"),
            of(|run| run.since_summary),
            "ms",
            "10 + fsync",
        );
        report.add(format!("{name}: from the last answer's last byte to it"), of(|run| run.since_answer), "ms", "");
        report.add(format!("{name}: an fsync of 10 kB at its end"), fsync, "ms", "");
    }
}
