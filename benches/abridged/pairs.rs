//! This binary against an older one: both run in turn, and the ratio of each pair counts. A ratio of 1.05 means that this
//! binary takes 5 % longer.

use super::{Daemon, Report, sessions};
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// The number of pairs behind each ratio.
const PAIRS: usize = 10;

/// A time that one run of a binary takes.
type Measure = fn(&Path, &Sessions) -> Duration;

/// A name on the command line, a row of the report, and its measure.
const ROWS: &[(&str, &str, Measure)] = &[
    ("start", "start of the process to its first answer, 15 times", start),
    ("pings", "5,000 pings, one by one", pings),
    ("appends", "100 durable appends of 1 kB, one by one", appends),
    ("long", "100 durable appends behind 6,000 entries", appends_behind_many),
    ("memory", "2,000 appends in memory behind 1M tokens", appends_in_memory),
    ("compaction", "load, context and compaction of 1,000 messages", compaction),
    ("folders", "session/new in 200 folders", new_in_folders),
    ("open", "1 GB: load and first context, the shortest of 5", open_large),
    ("index", "1 GB: index", index_large),
    ("sessions", "300 sessions of 100 kB, loaded", many_sessions),
];

/// The files that the measures share.
struct Sessions {
    folder: tempfile::TempDir,
}

/// Adds a row for each measure that is `named`.
pub fn measure(report: &mut Report, old: &Path, named: &impl Fn(&str) -> bool) {
    let rows: Vec<_> = ROWS.iter().filter(|(name, ..)| named(name)).collect();
    let files = Sessions { folder: tempfile::tempdir().expect("a folder") };
    let (new, old) = (&files.copy("new", Path::new(super::daemon::THIS)), &files.copy("old", old));
    if rows.iter().any(|(name, ..)| ["open", "index"].contains(name)) {
        sessions::session(&files.large(), 1_000_000_000, true);
    }
    sessions::session(&files.small(), 1_300_000, false);
    for at in 0..300 {
        sessions::named_session(&files.one_of_many(at), &format!("many-{at}"), 100_000);
    }
    for (_, row, measure) in rows {
        measure(new, &files);
        let mut ratios: Vec<f64> = (0..PAIRS)
            .map(|pair| {
                // The second of two runs may find warmer caches, so the order alternates too.
                let (ours, theirs) = if pair % 2 == 0 {
                    let ours = measure(new, &files);
                    (ours, measure(old, &files))
                } else {
                    let theirs = measure(old, &files);
                    (measure(new, &files), theirs)
                };
                ours.as_secs_f64() / theirs.as_secs_f64()
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        let median = (ratios[PAIRS / 2 - 1] + ratios[PAIRS / 2]) / 2.0;
        report.add(format!("{row}, new by old"), median, "times", "1.05");
    }
}

impl Sessions {
    /// A copy of a binary. The start of a process depends on the way in which its file was written: the output of a linker
    /// starts 10 to 20 % slower than a copy with the same bytes.
    fn copy(&self, name: &str, binary: &Path) -> std::path::PathBuf {
        let copy = self.folder.path().join(name);
        fs::copy(binary, &copy).expect("a binary");
        copy
    }

    fn large(&self) -> std::path::PathBuf {
        self.folder.path().join("large.jsonl")
    }

    fn small(&self) -> std::path::PathBuf {
        self.folder.path().join("small.jsonl")
    }

    fn one_of_many(&self, at: usize) -> std::path::PathBuf {
        self.folder.path().join(format!("many-{at}.jsonl"))
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn start(binary: &Path, _: &Sessions) -> Duration {
    timed(|| (0..15).for_each(|_| drop(Daemon::of(binary))))
}

fn pings(binary: &Path, _: &Sessions) -> Duration {
    let mut daemon = Daemon::of(binary);
    timed(|| {
        for _ in 0..5_000 {
            daemon.write(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n");
            daemon.flush();
            daemon.read();
        }
    })
}

fn append_hundred(daemon: &mut Daemon, session: &Value) -> Duration {
    let params = json!({"sessionId": session, "messages": [{"role": "user", "content": "x".repeat(1_000)}]});
    timed(|| {
        for _ in 0..100 {
            daemon.call("session/append", params.clone());
        }
    })
}

fn new_session(daemon: &mut Daemon, folder: &str) -> Value {
    daemon.call("session/new", json!({"cwd": folder}))["session"]["sessionId"].clone()
}

fn appends(binary: &Path, _: &Sessions) -> Duration {
    let mut daemon = Daemon::of(binary);
    let session = new_session(&mut daemon, "/bench");
    append_hundred(&mut daemon, &session)
}

fn appends_behind_many(binary: &Path, _: &Sessions) -> Duration {
    let mut daemon = Daemon::of(binary);
    let session = new_session(&mut daemon, "/bench");
    let turn = [json!({"role": "user", "content": "Go on."}), json!({"role": "assistant", "content": "Done."})];
    let messages: Vec<&Value> = turn.iter().cycle().take(6_000).collect();
    daemon.call("session/append", json!({"sessionId": session, "messages": messages}));
    append_hundred(&mut daemon, &session)
}

/// Appends without a disk, far below the threshold: the cost of everything but the fsync.
fn appends_in_memory(binary: &Path, _: &Sessions) -> Duration {
    let mut daemon = Daemon::of(binary);
    let model = json!({"provider": "bench", "id": "model", "contextWindow": 4_000_000});
    let params = json!({"cwd": "/bench", "ephemeral": true, "model": "bench/model", "settings": {"models": [model]}});
    let session = daemon.call("session/new", params)["session"]["sessionId"].clone();
    let message = json!({"role": "user", "content": "Look at the next part. ".repeat(170)});
    let messages: Vec<&Value> = std::iter::repeat_n(&message, 1_000).collect();
    daemon.call("session/append", json!({"sessionId": session, "messages": messages}));
    (0..20).map(|_| append_hundred(&mut daemon, &session)).sum()
}

fn compaction(binary: &Path, files: &Sessions) -> Duration {
    let mut daemon = Daemon::of(binary);
    let file = daemon.home().join("bench.jsonl");
    fs::copy(files.small(), &file).expect("a file");
    timed(|| {
        daemon.call("session/load", json!({"path": file}));
        daemon.call("session/context", json!({"sessionId": "bench"}));
        let done = daemon.call("session/compact", json!({"sessionId": "bench", "wait": true}));
        assert_eq!(done["outcome"], "completed");
    })
}

fn new_in_folders(binary: &Path, _: &Sessions) -> Duration {
    let mut daemon = Daemon::of(binary);
    let folders: Vec<String> = (0..200)
        .map(|at| {
            let folder = daemon.home().join(format!("project-{at}"));
            fs::create_dir(&folder).expect("a folder");
            folder.display().to_string()
        })
        .collect();
    timed(|| {
        for folder in &folders {
            new_session(&mut daemon, folder);
        }
    })
}

/// The index is built beside it and takes the disk and a processor at any time, so the shortest one counts.
fn open_large(binary: &Path, files: &Sessions) -> Duration {
    let times = (0..5).map(|_| sessions::open_with(Daemon::of(binary), &files.large()).context);
    times.min().unwrap_or_default()
}

fn index_large(binary: &Path, files: &Sessions) -> Duration {
    sessions::open_with(Daemon::of(binary), &files.large()).index
}

fn many_sessions(binary: &Path, files: &Sessions) -> Duration {
    let mut daemon = Daemon::of(binary);
    timed(|| {
        for at in 0..300 {
            daemon.call("session/load", json!({"path": files.one_of_many(at), "readOnly": true}));
        }
    })
}
