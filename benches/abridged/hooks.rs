//! Hooks of compactions: the time that a client adds that answers at once.

use super::{
    Daemon, Report, median, milliseconds,
    sessions::{self, open_file},
};
use serde_json::{Value, json};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Compactions of each kind.
const ROUNDS: usize = 60;

/// Size of the session, in bytes.
const SIZE: u64 = 1_000_000;

/// The time of one compaction without a model, and the hooks that were answered.
fn compacted(daemon: &mut Daemon, answer: &str) -> (Duration, usize) {
    let started = Instant::now();
    let params = json!({"sessionId": "bench", "method": "extractive", "keepRecentTokens": 5_000, "wait": true});
    daemon.send(1, "session/compact", &params);
    daemon.flush();
    let mut hooks = 0;
    loop {
        daemon.read();
        let arrival = started.elapsed();
        let frame: Value = serde_json::from_str(daemon.line()).expect("JSON");
        match frame["method"].as_str() {
            Some(method) if method.starts_with("hook/") => {
                let reply = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{answer}}}\n", frame["id"]);
                daemon.write(reply.as_bytes());
                daemon.flush();
                hooks += 1;
            }
            Some(_) => {}
            None => {
                assert_eq!(frame["result"]["outcome"], "completed", "{frame:#}");
                return (arrival, hooks);
            }
        }
    }
}

/// The median time of compactions whose hooks are answered like this.
fn times(folder: &Path, answers: [(&str, usize, &str); 3]) -> [Duration; 3] {
    let file = folder.join("bench.jsonl");
    sessions::session(&file, SIZE, false);
    open_file(&file).sync_all().expect("it is on disk");
    let mut daemon = Daemon::start();
    daemon.call("session/load", json!({"path": file, "settings": {"tokens": {"estimator": "chars"}}}));
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for ((events, asked, answer), times) in answers.iter().zip(&mut times) {
            let events: Value = serde_json::from_str(events).expect("JSON");
            daemon.call("hooks/set", json!({"events": events, "timeoutMs": 60_000}));
            let (took, hooks) = compacted(&mut daemon, answer);
            assert_eq!(hooks, *asked);
            times.push(took);
            daemon.call("session/undo_compaction", json!({"sessionId": "bench"}));
        }
    }
    times.map(median)
}

/// The time of a compaction with hooks, and without.
pub fn hooks(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder");
    let both = r#"["session_before_compact", "session_compacting"]"#;
    let replaces = r#"{"action": "replace", "compaction": {"summary": "The parser was read."}}"#;
    let [without, with, replaced] =
        times(folder.path(), [("[]", 0, "null"), (both, 2, "null"), (r#"["session_before_compact"]"#, 1, replaces)]);
    report.add("1 MB: a compaction without a model and without hooks", milliseconds(without), "ms", "");
    report.add("the same with two hooks that are answered at once", milliseconds(with), "ms", "");
    let added = (milliseconds(with) - milliseconds(without)) / 2.0;
    report.add("added by one hook that is answered at once", added, "ms", "2");
    report.add("the same with a hook that supplies the summary", milliseconds(replaced), "ms", "");
}
