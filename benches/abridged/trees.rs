//! Sessions with branches: forks, and the context of any leaf.

use super::{
    Daemon, Report, median, milliseconds,
    sessions::{self, Writer},
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{BufReader, Read, Write},
    path::Path,
    time::{Duration, Instant},
};

/// Bytes of the sessions here.
const BYTES: u64 = 100_000_000;

/// Branches of the tree.
const BRANCHES: usize = 25;

/// The active part of a branch, in bytes.
const ACTIVE: u64 = 2_000_000;

/// A fork of all of a session, beside a copy of its bytes that is on disk, too.
pub fn forks(report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bench.jsonl");
    for (name, compacted) in [("100 MB", false), ("100 MB, its end compacted", true)] {
        sessions::session(&file, BYTES, compacted);
        let mut daemon = Daemon::start();
        daemon.call("session/load", json!({"path": file, "readOnly": true}));
        // The index is there from here on.
        daemon.call("session/tree", json!({"sessionId": "bench", "limit": 1}));
        let mut forks = Vec::new();
        let mut copies = Vec::new();
        for round in 0..7 {
            let copy = daemon.home().join(format!("copy-{round}"));
            let started = Instant::now();
            plain_copy(&file, &copy);
            copies.push(started.elapsed());
            let started = Instant::now();
            let answer = daemon.call("session/fork", json!({"sessionId": "bench"}));
            forks.push(started.elapsed());
            let forked = answer["session"].clone();
            daemon.call("session/close", json!({"sessionId": forked["sessionId"]}));
            let path = forked["path"].as_str().expect("a path");
            let sizes = [Path::new(path), &copy].map(|path| fs::metadata(path).expect("a file").len());
            assert!(sizes[0].abs_diff(sizes[1]) < 1_000, "all of it is in the fork");
            for path in [Path::new(path), &copy] {
                fs::remove_file(path).expect("removed");
            }
        }
        let (fork, copy) = (median(forks), median(copies));
        report.add(format!("fork of {name}"), milliseconds(fork), "ms", "");
        report.add(format!("copy of its bytes to the disk, {name}"), milliseconds(copy), "ms", "");
        report.add(format!("fork of {name}, by the copy"), fork.as_secs_f64() / copy.as_secs_f64(), "times", "1.5");
    }
}

/// Copies a file through memory, as any program does, until it is on disk.
fn plain_copy(from: &Path, to: &Path) {
    let mut from = BufReader::new(File::open(from).expect("a file"));
    let mut to = File::create(to).expect("a file");
    let mut piece = vec![0; 1 << 20];
    loop {
        let count = from.read(&mut piece).expect("it is read");
        if count == 0 {
            break;
        }
        to.write_all(&piece[..count]).expect("it is written");
    }
    to.sync_all().expect("it is on disk");
}

/// A tree of so many branches behind a common beginning, each with a compaction and an active part of its own. Returns
/// their leaves.
fn tree(path: &Path) -> Vec<String> {
    let mut writer = Writer::new(path, "bench");
    writer.turns(BYTES / BRANCHES as u64);
    let root = writer.parent.clone();
    let leaf = |writer: &mut Writer| {
        writer.parent.clone_from(&root);
        let end = writer.bytes + BYTES / BRANCHES as u64;
        writer.turns(end - ACTIVE);
        writer.end_of(ACTIVE);
        writer.parent.clone().expect("a leaf")
    };
    (0..BRANCHES).map(|_| leaf(&mut writer)).collect()
}

/// The context of each leaf of a tree, and a navigation to it.
pub fn leaves(report: &mut Report) {
    let mut daemon = Daemon::start();
    let file = daemon.home().join("bench.jsonl");
    let leaves = tree(&file);
    let size = fs::metadata(&file).expect("a file").len();
    assert!(size > BYTES, "{size} bytes");
    daemon.call("session/load", json!({"path": file}));
    daemon.call("session/tree", json!({"sessionId": "bench", "limit": 1}));
    let (mut contexts, mut moves, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for leaf in &leaves {
        let (time, bytes) = timed(&mut daemon, "session/context", &json!({"sessionId": "bench", "leafEntryId": leaf}));
        assert!(bytes > ACTIVE as usize / 2, "the context has {bytes} bytes");
        contexts.push(time);
    }
    for leaf in leaves.iter().rev() {
        let params = json!({"sessionId": "bench", "targetEntryId": leaf, "summarize": false, "wait": true});
        moves.push(timed(&mut daemon, "session/navigate", &params).0);
        after.push(timed(&mut daemon, "session/context", &json!({"sessionId": "bench"})).0);
    }
    let worst = contexts.iter().max().copied().unwrap_or_default();
    report.add("context of a leaf in a tree of 100 MB, median", milliseconds(median(contexts)), "ms", "20");
    report.add("context of a leaf in a tree of 100 MB, slowest", milliseconds(worst), "ms", "");
    report.add("navigation to a leaf in a tree of 100 MB, median", milliseconds(median(moves)), "ms", "");
    report.add("context behind the navigation, median", milliseconds(median(after)), "ms", "20");
}

/// The time until the line of an answer is there, and its length. The client does not read it as JSON.
fn timed(daemon: &mut Daemon, method: &str, params: &Value) -> (Duration, usize) {
    let started = Instant::now();
    daemon.send(1, method, params);
    daemon.flush();
    loop {
        let line = daemon.read();
        if line.starts_with(r#"{"jsonrpc":"2.0","id":1"#) {
            assert!(line.starts_with(r#"{"jsonrpc":"2.0","id":1,"result""#), "{}", &line[..line.len().min(500)]);
            return (started.elapsed(), line.len());
        }
    }
}
