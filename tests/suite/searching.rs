//! Reads of a whole session: their work is linear, and a client can cancel them.

use crate::support::{Daemon, Home, header, session_of, user};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufWriter, Write},
    path::PathBuf,
};

/// The deadline of an answer in these tests breaks for work that grows with the product of text and query.
#[test]
fn a_long_query_is_searched_in_time_that_grows_with_text_and_query() {
    let mut daemon = Daemon::start();
    let text = "a".repeat(3_000_000);
    let path = session_of(&daemon.home, "long", &[user(&text), user(&format!("{text}b{}", "a".repeat(20_000)))]);
    let (in_file, in_memory) = (daemon.load(&path), daemon.new_session(json!({"cwd": "/p", "ephemeral": true})));
    daemon.append(&in_memory, &[user(&text)]);
    let mut search = |session: &str, query: String| {
        let found = daemon.ok("session/search", json!({"sessionId": session, "query": query}));
        found["matches"].as_array().expect("matches").len()
    };
    for query in [format!("{}b", "ab".repeat(10_000)), format!("{}b{0}b", "a".repeat(20_000))] {
        assert_eq!(search(&in_file, query.clone()), 0);
        assert_eq!(search(&in_memory, query), 0);
    }
    assert_eq!(search(&in_file, format!("{}B{0}", "A".repeat(20_000))), 1);
    assert_eq!(search(&in_file, "a".repeat(100_000)), 2);
    assert_eq!(search(&in_memory, "a".repeat(100_000)), 1);
}

/// Bytes that a process read so far.
fn read_by(daemon: &Daemon) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/io", daemon.pid())).expect("a process");
    let number = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    number.and_then(|number| number.parse().ok()).expect("a number")
}

/// A session file of so many messages of a megabyte.
fn large(home: &Home, messages: usize) -> PathBuf {
    let path = home.path("large.jsonl");
    let mut file = BufWriter::new(fs::File::create(&path).expect("a file"));
    writeln!(file, "{}", header("large")).expect("it is written");
    let text = "All work and no play. ".repeat(48_000);
    for at in 0..messages {
        let parent = at.checked_sub(1).map(|at| format!("e{at}"));
        let entry = json!({"type": "message", "id": format!("e{at}"), "parentId": parent, "message": user(&text)});
        writeln!(file, "{entry}").expect("it is written");
    }
    file.into_inner().expect("it is written");
    path
}

#[test]
fn reads_of_a_large_session_end_when_they_are_cancelled() {
    let mut daemon = Daemon::start();
    let path = large(&daemon.home, 300);
    let size = fs::metadata(&path).expect("a file").len();
    let session = daemon.load(&path);
    // The index is there: what reads by it does not wait.
    daemon.ok("session/tree", json!({"sessionId": session, "limit": 1}));
    let copy = daemon.home.path("copy.jsonl");
    for (method, params) in [
        ("session/search", json!({"query": "all work and much play"})),
        ("session/export", json!({"format": "jsonl", "path": copy})),
        ("session/tree", json!({})),
        ("session/entries", json!({"branch": "all", "maxBytes": 1 << 30})),
    ] {
        let mut params: Value = params;
        params["sessionId"] = json!(session);
        let before = read_by(&daemon);
        let id = daemon.begin(method, params);
        daemon.send(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}));
        let error = daemon.answer(id).expect_err("it is cancelled");
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32800), &json!("request_cancelled")), "{method}");
        // The read has ended before its answer.
        let read = read_by(&daemon) - before;
        assert!(read < size / 2, "{method}: {read} of {size} bytes were read");
        assert_eq!(daemon.ok("session/status", json!({"sessionId": session}))["operations"], json!([]));
    }
    let left: Vec<_> =
        fs::read_dir(daemon.home.path("")).expect("a folder").flatten().map(|it| it.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("copy")), "{left:?}");
}
