//! The preparation of a compaction by a model: from the command to the head of the first request, of a session that was just
//! opened and that nothing has counted, and the memory that it takes.

use super::{
    Daemon, Report, median, milliseconds,
    models::Provider,
    sessions::{Writer, memory},
};
use serde_json::json;
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// The compactions of each session.
const ROUNDS: usize = 7;

/// One preparation.
struct Prepared {
    /// From the command to the head of the first request.
    head: Duration,
    /// The peak of the resident memory until the end of the compaction, in MB.
    peak: f64,
}

/// Compacts a copy of a session once.
fn prepared(file: &Path, provider: &Provider) -> Prepared {
    let copy = file.with_extension("copy.jsonl");
    fs::copy(file, &copy).expect("a copy");
    let model = json!({"provider": "bench", "id": "model", "api": "openai_chat", "baseUrl": provider.url(), "contextWindow": 200_000});
    let settings = json!({"defaultModel": "bench/model", "models": [model], "compaction": {"enabled": false}});
    let mut daemon = Daemon::start();
    daemon.call("session/load", json!({"path": copy, "settings": settings}));
    provider.forget_heads();
    let started = Instant::now();
    let done = daemon.call("session/compact", json!({"sessionId": "bench", "method": "llm", "wait": true}));
    assert_eq!(done["result"]["method"], "llm", "{done:#}");
    let (_, peak) = memory(&daemon);
    Prepared { head: provider.first_head() - started, peak }
}

/// The size of the part after the last compaction, in bytes.
const LIVE: u64 = 800_000;

/// The author of the compaction before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nobody,
    /// Its entry carries the pins, prompts and models from before it.
    Abridged,
    /// Its entry carries nothing, so the index has to be there first.
    Another,
}

fn write(file: &Path, megabytes: u64, before: Before) {
    let mut writer = Writer::new(file, "bench");
    let all = megabytes * 1_000_000;
    writer.turns(if before == Before::Nobody { all } else { all - LIVE });
    match before {
        Before::Nobody => {}
        Before::Another => writer.end_of(LIVE),
        Before::Abridged => {
            writer.flush();
            let mut daemon = Daemon::start();
            daemon.call("session/load", json!({"path": file, "settings": {"compaction": {"enabled": false}}}));
            let done = daemon.call("session/compact", json!({"sessionId": "bench", "wait": true}));
            assert_eq!(done["outcome"], "completed", "{done:#}");
            daemon.call("session/close", json!({"sessionId": "bench"}));
            writer.further(file).turns(LIVE);
        }
    }
}

/// The preparation at each size. The goals are 10 ms and 8 ms for each MB of the span, and 250 MB.
pub fn preparations(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bench.jsonl");
    let provider = Provider::start();
    let shapes: [(&str, u64, Before, &str); 5] = [
        ("1 MB flat", 1, Before::Nobody, "18"),
        ("10 MB flat", 10, Before::Nobody, "90"),
        ("100 MB flat", 100, Before::Nobody, "900"),
        ("100 MB, 0.8 MB since its compaction", 100, Before::Abridged, "20"),
        ("100 MB, 0.8 MB since that of another program", 100, Before::Another, ""),
    ];
    for (name, megabytes, before, goal) in shapes {
        write(&file, megabytes, before);
        let runs: Vec<Prepared> = (0..ROUNDS).map(|_| prepared(&file, &provider)).collect();
        let head = milliseconds(median(runs.iter().map(|run| run.head).collect()));
        report.add(format!("{name}: from session/compact to the head of the first request"), head, "ms", goal);
        let peak = runs.iter().map(|run| run.peak).fold(0.0, f64::max);
        let goal = if name == "100 MB flat" { "250" } else { "" };
        report.add(format!("{name}: peak of the memory"), peak, "MB", goal);
    }
}
