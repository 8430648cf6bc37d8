//! Session files with holes: zeros without a newline that take no room on the disk. Their size costs nothing.

use crate::support::{Daemon, Home, header, session_of, turns, user};
use serde_json::{Value, json};
use std::{
    fs,
    io::Read,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Stdio,
    sync::mpsc::channel,
    time::Duration,
};

/// The size of the files. Reading one takes half an hour.
const HUGE: u64 = 4 << 40;

/// Only ends a test that hangs.
const HANGS: Duration = Duration::from_secs(120);

fn grow(path: &Path, bytes: u64) {
    fs::File::options().append(true).open(path).and_then(|file| file.set_len(bytes)).expect("a sparse file");
}

/// Bytes that a process read so far.
fn read_by(daemon: &Daemon) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/io", daemon.pid())).expect("a process");
    let number = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    number.and_then(|number| number.parse().ok()).expect("a number")
}

/// The output of a command. It is killed where it hangs.
fn printed(home: &Home, arguments: &[&str]) -> String {
    let mut child =
        home.command().args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut out = child.stdout.take().expect("a pipe");
    let (send, ended) = channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = out.read_to_string(&mut text);
        let _ = send.send(text);
    });
    let Ok(text) = ended.recv_timeout(HANGS) else {
        child.kill().and_then(|()| child.wait()).expect("a child");
        panic!("{arguments:?} hangs");
    };
    assert!(child.wait().expect("a child").success(), "{text}");
    text
}

/// A session in the data folder that ends in a hole.
fn listed(home: &Home, id: &str) -> PathBuf {
    let folder = home.path("data/sessions/--project--");
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join(format!("{id}.jsonl"));
    fs::rename(session_of(home, id, &turns(2)), &path).expect("a file");
    grow(&path, HUGE);
    path
}

#[test]
fn a_session_that_ends_in_a_hole_is_refused_and_read_up_to_it_without_reading_the_hole() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "hole", &turns(2));
    let whole = fs::metadata(&path).expect("a file").len();
    grow(&path, HUGE);
    let before = read_by(&daemon);
    let error = daemon.err("session/load", json!({"path": path}));
    assert_eq!((&error["data"]["code"], &error["data"]["path"]), (&json!("storage_error"), &json!(path)));
    let text = error["message"].as_str().expect("a message");
    assert!(text.contains(&format!("byte {whole}")) && text.contains("cut the file there"), "{text}");
    let loaded = daemon.ok("session/load", json!({"path": path, "readOnly": true}));
    assert_eq!(loaded["repairs"][0]["kind"], "torn_tail");
    assert_eq!(daemon.context("hole")["entryIds"].as_array().map(Vec::len), Some(8));
    let (id, copy) = (json!("hole"), daemon.home.path("copy.jsonl"));
    daemon.ok("session/tree", json!({"sessionId": id}));
    daemon.ok("session/search", json!({"sessionId": id, "query": "nothing of this"}));
    daemon.ok("session/export", json!({"sessionId": id, "format": "jsonl", "path": copy}));
    assert_eq!(daemon.err("session/append", json!({"sessionId": id, "messages": [user("x")]}))["code"], -32009);
    let read = read_by(&daemon) - before;
    assert!(read < 64 << 20, "{read} bytes were read");
}

/// Every line is shorter than a line may be.
#[test]
fn lines_with_holes_in_them_are_skipped_without_reading_the_holes() {
    const EACH: u64 = 100 << 20;
    const LINES: u64 = 400;
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "holes", &turns(2));
    let begin = fs::metadata(&path).expect("a file").len();
    let file = fs::File::options().write(true).open(&path).expect("a file");
    for line in 1..=LINES {
        file.write_all_at(b"\n", begin + line * EACH).expect("a newline");
    }
    let entry = json!({"type": "message", "id": "last", "parentId": "e7", "message": user("after the holes")});
    file.write_all_at(format!("{entry}\n").as_bytes(), begin + LINES * EACH + 1).expect("an entry");
    let before = read_by(&daemon);
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!(loaded["indexed"], false);
    let ready = daemon.until("index_ready")["params"]["event"].clone();
    assert_eq!(ready["entryCount"], 9);
    assert_eq!(ready["repairs"][0]["kind"], "corrupt_line");
    assert_eq!(daemon.context("holes")["entryIds"].as_array().map(Vec::len), Some(9));
    let read = read_by(&daemon) - before;
    assert!(read < 400 << 20, "{read} bytes were read");
}

#[test]
fn a_file_that_is_a_hole_costs_the_commands_nothing_and_its_problem_is_named() {
    let home = Home::new();
    let path = listed(&home, "endless");
    for command in ["sessions", "watch"] {
        let arguments = [&[command, "--json"][..], if command == "watch" { &["--once"] } else { &[] }].concat();
        let document: Value = serde_json::from_str(&printed(&home, &arguments)).expect("JSON");
        let problem = document["sessions"][0]["problem"].as_str().unwrap_or_default();
        assert!(problem.contains("has no end") && problem.contains("endless.jsonl"), "{document:#}");
    }
    assert!(printed(&home, &["doctor"]).contains("1 session"));
    let tree = printed(&home, &["tree", path.to_str().expect("a path")]);
    assert!(tree.contains("1 fault"), "{tree}");
    let file = fs::File::create(&path).expect("a file");
    file.write_all_at(format!("{}\n", header("endless")).as_bytes(), 0)
        .and_then(|()| file.set_len(HUGE))
        .expect("a file");
    printed(&home, &["sessions"]);
    printed(&home, &["doctor"]);
}
