//! `abridged watch`, beside a daemon and without one.

use crate::{
    provider::{Format, Provider},
    summarizing::{held_model, settings},
    support::{Daemon, Home, assistant, entries, header, run, text_of, turns, user},
};
use rustix::{
    process::{Pid, Signal, WaitOptions, kill_process, waitpid},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, channel},
    },
    time::{Duration, Instant},
};

/// Longer than a change takes to be seen, even on a busy machine, and shorter than the time after which the folder is
/// looked at without a notification.
const LONG: Duration = Duration::from_secs(25);

fn watch(home: &Home, more: &[&str]) -> Command {
    let mut command = home.command();
    command.arg("watch").args(more);
    command
}

/// The document of `--once --json`.
fn once(home: &Home) -> Value {
    let (code, out, err) = run(watch(home, &["--once", "--json"]));
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// The only session of `--once --json`.
fn only(home: &Home) -> Value {
    let document = once(home);
    assert_eq!(document["sessions"].as_array().map(Vec::len), Some(1), "{document:#}");
    document["sessions"][0].clone()
}

/// All files below a folder, with inode, time of change and content.
fn everything(folder: &Path) -> BTreeMap<PathBuf, (u64, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let about = path.symlink_metadata().expect("a file");
        let content = if about.is_file() { fs::read(&path).expect("a file") } else { Vec::new() };
        found.insert(path.clone(), (about.ino(), about.mtime(), about.mtime_nsec(), content));
        if about.is_dir() {
            found.extend(everything(&path));
        }
    }
    found
}

/// A session file in the data folder.
fn stored(home: &Home, id: &str, lines: &[Value]) -> PathBuf {
    let folder = home.path("data/sessions/--project--");
    fs::create_dir_all(&folder).expect("a folder");
    let lines: Vec<Value> = std::iter::once(header(id)).chain(lines.iter().cloned()).collect();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let path = folder.join(format!("2026-01-01T00-00-00-000Z_{id}.jsonl"));
    fs::write(&path, text).expect("a file");
    path
}

/// The file of a session in a list.
fn path_of(row: &Value) -> PathBuf {
    row["path"].as_str().expect("a path").into()
}

#[test]
fn a_daemon_at_work_is_seen_with_the_numbers_that_it_reports() {
    let provider = Provider::start(Format::Anthropic);
    let (release, model) = held_model();
    provider.otherwise(model);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let mut daemon = Daemon::at(home);
    let tools = json!([{"name": "read", "description": text_of(300, "tool"), "input_schema": {"type": "object"}}]);
    let session = daemon.new_session(
        json!({"cwd": "/project", "title": "Fix the parser", "systemPrompt": text_of(500, "system"), "tools": tools}),
    );
    let compare = |daemon: &mut Daemon| {
        let row = only(&daemon.home);
        let reported = daemon.ok("session/usage", json!({"sessionId": session}));
        for field in ["contextTokens", "contextWindow", "thresholdTokens", "percent", "source"] {
            assert_eq!(row["usage"][field], reported[field], "{field} of {row:#}");
        }
        assert_eq!((&row["sessionId"], &row["openIn"]), (&json!(session), &json!(daemon.pid())));
        row
    };
    daemon.append(&session, &turns(12));
    let row = compare(&mut daemon);
    assert_eq!(
        (&row["title"], &row["cwd"], &row["running"]),
        (&json!("Fix the parser"), &json!("/project"), &json!([]))
    );
    let mut reply = assistant("Go on.");
    let size = row["usage"]["contextTokens"].as_u64().expect("a size");
    reply["usage"] = json!({"input": size + 100, "output": 2, "cacheRead": 0, "cacheWrite": 0});
    daemon.append(&session, &[reply, user("Yes.")]);
    assert_eq!(compare(&mut daemon)["usage"]["source"], "provider");

    let answer = daemon.begin("session/compact", json!({"sessionId": session, "keepRecentTokens": 600, "wait": true}));
    provider.wait_for(1);
    let before = everything(daemon.home.0.path());
    let row = compare(&mut daemon);
    let (code, table, _) = run(watch(&daemon.home, &[]));
    assert!(code == Some(0) && table.contains("compaction ") && table.contains("1 session, at work"), "{table}");
    assert!(everything(daemon.home.0.path()) == before, "nothing is written");
    let operation = daemon.until("compaction_start")["params"]["operationId"].clone();
    assert_eq!(row["running"].as_array().map(Vec::len), Some(1), "{row:#}");
    assert_eq!((&row["running"][0]["kind"], &row["running"][0]["reason"]), (&json!("compaction"), &json!("manual")));
    assert_eq!(row["running"][0]["operationId"], operation);
    assert_eq!(row["maintenance"]["requests"], 0);

    drop(release);
    assert_eq!(daemon.answer(answer).expect("an answer")["outcome"], "completed");
    // The second compaction carries the costs before it.
    for round in 1..3 {
        daemon.append(&session, &[user("Thank you.")]);
        let row = compare(&mut daemon);
        assert_eq!(row["running"], json!([]));
        let costs = daemon.ok("session/entries", json!({"sessionId": session, "types": ["usage"]}))["entries"].clone();
        let costs = costs.as_array().expect("entries");
        let spent: u64 = costs.iter().filter_map(|entry| entry["usage"]["totalTokens"].as_u64()).sum();
        assert!(costs.len() >= round && spent > 0, "{costs:#?}");
        let expected =
            json!({"requests": costs.len(), "tokens": spent, "automaticTokens": 0, "dollars": null, "atLeast": false});
        assert_eq!(row["maintenance"], expected);
        daemon.append(&session, &turns(12));
        let params = json!({"sessionId": session, "keepRecentTokens": 600, "wait": true});
        assert_eq!(daemon.ok("session/compact", params)["outcome"], "completed");
    }

    daemon.end();
    assert_eq!(only(&daemon.home)["openIn"], Value::Null);
}

#[test]
fn a_count_of_the_tokenizer_is_estimated() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &turns(20));
    let counted =
        daemon.ok("session/usage", json!({"sessionId": session}))["contextTokens"].as_f64().expect("a number");
    let row = only(&daemon.home);
    assert_eq!(row["usage"]["estimator"], "chars");
    let estimated = row["usage"]["contextTokens"].as_f64().expect("a number");
    assert!((0.7..1.4).contains(&(estimated / counted)), "{estimated} of {counted}");
}

/// The lock of a session is held for its daemon alone. A reader that tested it would hold it for a moment.
#[test]
fn a_daemon_opens_sessions_while_they_are_watched_in_a_loop() {
    let mut daemon = Daemon::start();
    let home = Home(tempfile::tempdir().expect("a folder"));
    let path = stored(&home, "s", &entries(&turns(2)));
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ends.load(Ordering::SeqCst) {
                    let _ = abridged::log::lock::look(&path);
                }
            });
        }
        scope.spawn(|| {
            while !ends.load(Ordering::SeqCst) {
                assert!(once(&home)["sessions"][0].is_object());
            }
        });
        let mut failed = Vec::new();
        for _ in 0..200 {
            match daemon.call("session/load", json!({"path": path})) {
                Ok(loaded) => drop(daemon.ok("session/close", json!({"sessionId": loaded["session"]["sessionId"]}))),
                Err(error) => failed.push(error),
            }
        }
        ends.store(true, Ordering::SeqCst);
        assert!(failed.is_empty(), "{} of 200 fail: {:#}", failed.len(), failed[0]);
    });
}

#[test]
fn an_interrupted_operation_is_no_running_one() {
    let home = Home::new();
    let path = stored(&home, "s", &entries(&[user("hi")]));
    // A process that is gone.
    let mut child = Command::new("true").spawn().expect("it starts");
    let gone = child.id();
    child.wait().expect("it ends");
    let operation =
        json!({"operationId": "op", "kind": "compaction", "reason": "manual", "startedAt": "2026-01-01T00:00:00Z"});
    let lock = path.with_extension("jsonl.lock");
    fs::write(&lock, json!({"pid": gone, "operation": operation, "operations": [operation]}).to_string())
        .expect("a lock");
    let row = only(&home);
    assert_eq!((&row["openIn"], &row["running"], &row["leftBehind"]), (&Value::Null, &json!([]), &json!([operation])));
    for (pid, running) in [(std::process::id(), 1), (0, 0), (u32::MAX, 0)] {
        fs::write(&lock, json!({"pid": pid, "operations": [operation]}).to_string()).expect("a lock");
        let row = only(&home);
        assert_eq!(row["running"].as_array().map(Vec::len), Some(running), "{row:#}");
    }
    for broken in ["", "{\"pid\":", "something else"] {
        fs::write(&lock, broken).expect("a lock");
        assert_eq!(only(&home)["openIn"], Value::Null, "{broken}");
    }
}

#[test]
fn files_that_are_no_sessions_are_left_out_and_broken_ones_are_measured_as_far_as_they_go() {
    let home = Home::new();
    let whole = stored(&home, "whole", &entries(&turns(3)));
    let torn = stored(&home, "torn", &entries(&turns(3)));
    let text = fs::read_to_string(&torn).expect("a file");
    fs::write(&torn, format!("{text}{}", &text[text.len() - 80..text.len() - 20])).expect("a file");
    let folder = whole.parent().expect("a folder");
    fs::write(folder.join("x_none.jsonl"), "no session\n").expect("a file");
    fs::write(folder.join("x_empty.jsonl"), "").expect("a file");
    symlink("nowhere", folder.join("x_link.jsonl")).expect("a link");
    assert!(Command::new("mkfifo").arg(folder.join("x_fifo.jsonl")).status().expect("mkfifo").success());
    let document = once(&home);
    let rows = document["sessions"].as_array().expect("sessions");
    assert_eq!(rows.len(), 2, "{document:#}");
    assert_eq!(rows[0]["usage"]["contextTokens"], rows[1]["usage"]["contextTokens"], "{document:#}");
    let left_out = document["leftOut"].as_array().expect("files");
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    let (_, table, _) = run(watch(&home, &["--once"]));
    assert!(table.contains("2 are no sessions, or not readable"), "{table}");
}

/// The file of an older version is read as a whole, so a long one is not measured.
#[test]
fn an_old_file_is_measured_if_it_is_short() {
    let home = Home::new();
    let old = |name: &str, words: usize| {
        let path = stored(&home, name, &[]);
        let header = r#"{"type":"session","id":"ID","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/project"}"#;
        let message = json!({"type": "message", "timestamp": "2026-01-01T00:00:00.000Z", "message": user(&"word ".repeat(words))});
        fs::write(&path, format!("{}\n{message}\n", header.replace("ID", name))).expect("a file");
    };
    old("long", 2_000_000);
    old("short", 1_000);
    let rows = once(&home)["sessions"].clone();
    let row = |name: &str| {
        let rows = rows.as_array().expect("sessions");
        rows.iter().find(|row| row["sessionId"] == name).unwrap_or_else(|| panic!("no {name} in {rows:#?}")).clone()
    };
    assert!(row("short")["usage"]["contextTokens"].as_u64().is_some_and(|tokens| tokens > 1_000), "{:#}", row("short"));
    assert!(row("long")["problem"].as_str().is_some_and(|problem| problem.contains("version")), "{:#}", row("long"));
    let (_, table, _) = run(watch(&home, &["--once"]));
    assert!(table.contains("unreadable"), "{table}");
}

#[test]
fn a_folder_without_sessions_says_what_to_do() {
    let home = Home::new();
    let said = |more: &[&str]| run(watch(&home, more));
    let (code, out, err) = said(&[]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.contains("No sessions here yet") && out.contains("--data DIR"), "{out}");
    assert_eq!(once(&home)["sessions"], json!([]));
    assert!(!home.path("data").exists() && !home.path("config").exists(), "nothing is made");
    let nowhere = home.path("nowhere").display().to_string();
    let (code, out, err) = said(&["--data", &nowhere]);
    assert_eq!((code, out.as_str(), err.lines().count()), (Some(1), "", 1), "{err}");
    assert!(err.contains(&nowhere) && err.contains("name the data folder of a daemon"), "{err}");
    fs::write(home.path("file"), "").expect("a file");
    let (code, _, err) = said(&["--data", &home.path("file").display().to_string()]);
    assert!(code == Some(1) && err.contains("it is no folder") && err.lines().count() == 1, "{err}");
    fs::create_dir_all(home.path("data")).expect("a folder");
    fs::write(home.path("data/sessions"), "").expect("a file");
    for more in [&["--once", "--json"][..], &["--once"], &["--json"], &[]] {
        let (code, out, err) = said(more);
        assert_eq!((code, out.as_str(), err.lines().count()), (Some(1), "", 1), "{err}");
        assert!(err.contains("cannot be listed"), "{err}");
    }
}

#[test]
fn a_folder_of_another_user_is_named() {
    if rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: root reads every folder");
        return;
    }
    let home = Home::new();
    let folder = stored(&home, "s", &[]).parent().expect("a folder").to_owned();
    let allow = |folder: &Path, mode| fs::set_permissions(folder, fs::Permissions::from_mode(mode)).expect("a mode");
    allow(&folder, 0);
    let document = once(&home);
    assert_eq!((&document["sessions"], &document["leftOut"]), (&json!([]), &json!([folder])));
    let sessions = home.path("data/sessions");
    allow(&sessions, 0);
    let (code, out, err) = run(watch(&home, &[]));
    assert_eq!((code, out.as_str(), err.lines().count()), (Some(1), "", 1), "{err}");
    assert!(err.contains("Permission denied") && err.contains("as the user of the daemon"), "{err}");
    allow(&sessions, 0o700);
    allow(&folder, 0o700);
}

/// Of another data folder, with more files than the daemon's list would write its cache for.
#[test]
fn a_thousand_sessions_are_listed_and_nothing_is_written() {
    let home = Home::new();
    for number in 0..1_000 {
        stored(&home, &format!("s{number:03}"), &entries(&[user("hi"), assistant("hello")]));
    }
    let before = everything(home.0.path());
    let (code, out, err) = run(watch(&home, &["--json", "--once", "--data", &home.path("data").display().to_string()]));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let document: Value = serde_json::from_str(&out).expect("JSON");
    let rows = document["sessions"].as_array().expect("sessions");
    assert_eq!(rows.len(), 1_000);
    assert!(rows.iter().all(|row| row["usage"]["contextTokens"].as_u64().is_some_and(|tokens| tokens > 0)));
    assert!(everything(home.0.path()) == before, "nothing is written");
}

/// A context is measured from the end of its file to its last compaction, and over 8 MiB at most.
#[test]
fn the_end_of_a_long_file_is_enough() {
    let home = Home::new();
    home.settings(r#"{"tokens": {"estimator": "chars"}, "compaction": {"enabled": false}}"#);
    let long: Vec<Value> = (0..10).map(|_| user(&"word ".repeat(200_000))).collect();
    let path = stored(&home, "s", &entries(&long));
    let row = only(&home);
    assert_eq!((&row["usage"]["atLeast"], &row["maintenance"]["atLeast"]), (&json!(true), &json!(true)), "{row:#}");
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    let tokens =
        |daemon: &mut Daemon| daemon.ok("session/usage", json!({"sessionId": session}))["contextTokens"].clone();
    let all = tokens(&mut daemon).as_u64().expect("a number");
    let read = row["usage"]["contextTokens"].as_u64().expect("a number");
    assert!(read < all && read > all / 2, "{read} of {all}");
    let mut reply = assistant("Go on.");
    reply["usage"] = json!({"input": all + 5_000, "output": 2, "cacheRead": 0, "cacheWrite": 0});
    daemon.append(&session, &[reply]);
    let row = only(&daemon.home);
    assert_eq!((&row["usage"]["atLeast"], &row["usage"]["contextTokens"]), (&json!(false), &tokens(&mut daemon)));
    let compacted = daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 600, "wait": true}));
    assert_eq!(compacted["outcome"], "completed");
    daemon.append(&session, &[user("And now?")]);
    let row = only(&daemon.home);
    assert_eq!((&row["usage"]["atLeast"], &row["usage"]["contextTokens"]), (&json!(false), &tokens(&mut daemon)));
}

/// The first entry that a compaction keeps may be farther away. The compaction says how large the context was.
#[test]
fn a_compaction_that_keeps_more_than_is_read_is_enough() {
    let home = Home::new();
    let models = json!([{"provider": "test", "id": "large", "contextWindow": 8_000_000}]);
    let settings = json!({"tokens": {"estimator": "chars"}, "defaultModel": "test/large", "models": models});
    home.settings(&settings.to_string());
    let mut messages = turns(12);
    messages.extend((0..10).flat_map(|_| [user(&"word ".repeat(200_000)), assistant("Yes.")]));
    let path = stored(&home, "s", &entries(&messages));
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    let params = json!({"sessionId": session, "keepRecentTokens": 2_300_000, "wait": true});
    let compacted = daemon.ok("session/compact", params);
    assert_eq!(compacted["outcome"], "completed", "{compacted:#}");
    let usage = daemon.ok("session/usage", json!({"sessionId": session}));
    assert!(usage["contextTokens"].as_u64().is_some_and(|tokens| tokens > 2_000_000), "{usage:#}");
    let row = only(&daemon.home);
    assert_eq!((&row["usage"]["atLeast"], &row["usage"]["contextTokens"]), (&json!(false), &usage["contextTokens"]));
}

#[test]
fn a_window_comes_from_the_settings_of_the_project_and_of_the_session() {
    let home = Home::new();
    let project = home.path("project");
    let mut daemon = Daemon::at(home);
    let new = json!({"cwd": project, "model": "some/model", "settings": {"compaction": {"reserveTokens": 7_000}}, "contextWindow": 50_000});
    daemon.new_session(new);
    let usage = only(&daemon.home)["usage"].clone();
    assert_eq!((&usage["contextWindow"], &usage["reserveTokens"]), (&json!(50_000), &json!(7_000)), "{usage:#}");
}

/// A watcher with pipes, and its lines.
struct Stream {
    child: Child,
    lines: Receiver<Value>,
}

impl Stream {
    fn start(home: &Home) -> Self {
        let mut command = watch(home, &["--json"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// The next line that is wanted.
    fn until(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + LONG;
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if wanted(&line) => return line,
                Ok(line) => seen.push(line),
                Err(_) => panic!("it is never printed, only {seen:#?}"),
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn each_change_is_an_object_on_a_line() {
    let provider = Provider::start(Format::Anthropic);
    let (release, model) = held_model();
    provider.otherwise(model);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    // The folder is not there yet.
    let stream = Stream::start(&home);
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project"}));
    let mine = |line: &Value| line["sessionId"] == json!(session);
    stream.until(mine);
    daemon.append(&session, &turns(12));
    let reported = daemon.ok("session/usage", json!({"sessionId": session}))["contextTokens"].clone();
    stream.until(|line| mine(line) && line["usage"]["contextTokens"] == reported);
    daemon.begin("session/compact", json!({"sessionId": session, "keepRecentTokens": 600}));
    let running = |line: &Value| line["running"][0]["kind"] == "compaction";
    let row = stream.until(|line| mine(line) && running(line));
    // A process that is killed changes no file.
    daemon.kill();
    let left = stream.until(|line| mine(line) && !running(line));
    assert_eq!((&left["leftBehind"], &left["openIn"]), (&row["running"], &Value::Null), "{left:#}");
    let file = path_of(&left);
    fs::remove_file(&file).expect("removed");
    let gone = stream.until(|line| line["removed"] == true);
    assert_eq!(path_of(&gone), file);
    drop(release);
}

/// A pseudo terminal with a watcher in it.
struct Screen {
    child: Child,
    /// The end of the person.
    master: File,
    /// The end of the watcher.
    slave: File,
    written: Receiver<Vec<u8>>,
    seen: String,
}

const SMALL: Winsize = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
const TINY: Winsize = Winsize { ws_row: 6, ws_col: 40, ws_xpixel: 0, ws_ypixel: 0 };

/// The way out of the other screen.
const LEAVE: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

impl Screen {
    fn start(home: &Home) -> Self {
        Self::of(home, "xterm", SMALL)
    }

    fn of(home: &Home, term: &str, size: Winsize) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("it can be opened");
        let name = ptsname(&master, Vec::new()).expect("a name").into_string().expect("text");
        let slave = File::options().read(true).write(true).open(name).expect("the other end");
        tcsetwinsize(&master, size).expect("a size");
        let end = || Stdio::from(slave.try_clone().expect("a descriptor"));
        let mut command = watch(home, &[]);
        command.env("TERM", term).env_remove("NO_COLOR").stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().expect("it starts");
        let master = File::from(master);
        let mut reader = master.try_clone().expect("a descriptor");
        let (sender, written) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, master, slave, written, seen: String::new() }
    }

    /// Waits until the output since the last time ends with a picture that has this text.
    fn until(&mut self, text: &str) -> String {
        let end = Instant::now() + LONG;
        loop {
            let picture =
                self.seen.rsplit("\u{1b}[H").find(|picture| picture.ends_with("\u{1b}[J")).unwrap_or_default();
            if picture.contains(text) {
                return std::mem::take(&mut self.seen).rsplit("\u{1b}[H").next().unwrap_or_default().to_owned();
            }
            self.read(end, text);
        }
    }

    fn read(&mut self, end: Instant, text: &str) {
        let bytes = self.written.recv_timeout(end.saturating_duration_since(Instant::now()));
        let bytes = bytes.unwrap_or_else(|_| panic!("{text:?} is never shown: {:?}", self.seen));
        self.seen.push_str(&String::from_utf8_lossy(&bytes));
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a pid")).expect("a pid")
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is there");
    }

    fn resize(&self, size: Winsize) {
        tcsetwinsize(&self.master, size).expect("a size");
        // It is no terminal of a session of processes, which would get the signal.
        self.signal(Signal::WINCH);
    }

    /// Whether keys are read one by one and not shown.
    fn is_single(&self) -> bool {
        let modes = tcgetattr(&self.slave).expect("modes").local_modes;
        !modes.intersects(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits for the end: the exit code. The terminal is as it was then.
    fn ends(mut self) -> Option<i32> {
        let end = Instant::now() + LONG;
        while !self.seen.ends_with(LEAVE) {
            self.read(end, "the end");
        }
        let status = self.child.wait().expect("it ends");
        assert!(!self.is_single(), "the keys are as they were");
        status.code()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_terminal_shows_changes_follows_its_size_and_is_left_as_it_was() {
    let home = Home::new();
    for number in 0..30 {
        stored(&home, &format!("s{number:02}"), &entries(&[user(&format!("request {number:02}"))]));
    }
    let mut daemon = Daemon::at(home);
    let mut screen = Screen::start(&daemon.home);
    let picture = screen.until("and 9 more");
    assert!(screen.is_single());
    assert_eq!(picture.matches("\r\n").count(), 23, "{picture:?}");
    assert!(picture.contains("q quits") && !picture.ends_with('\n'), "{picture:?}");
    // A new session is the first one.
    daemon.new_session(json!({"cwd": "/project", "title": "The newest \u{1b}[2J one"}));
    let picture = screen.until("The newest [2J one");
    let place = |text: &str| picture.find(text).unwrap_or(usize::MAX);
    assert!(place("The newest") < place("request") && picture.contains("open"), "{picture:?}");
    screen.resize(TINY);
    let picture = screen.until("and 28 more");
    assert_eq!(picture.matches("\r\n").count(), 5, "{picture:?}");
    screen.resize(SMALL);
    screen.until("and 10 more");
    screen.master.write_all(b"xq").expect("keys");
    assert_eq!(screen.ends(), Some(0));
}

#[test]
fn a_signal_ends_the_picture_and_leaves_the_terminal_as_it_was() {
    let home = Home::new();
    for (signal, code) in [(Signal::INT, 0), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut screen = Screen::start(&home);
        screen.until("No sessions here yet");
        // Nothing else draws a picture of an empty folder again.
        screen.resize(TINY);
        screen.until("No sessions here yet");
        screen.signal(signal);
        assert_eq!(screen.ends(), Some(code), "{signal:?}");
    }
}

#[test]
fn a_stopped_picture_gives_the_terminal_back_until_it_goes_on() {
    let home = Home::new();
    let mut screen = Screen::start(&home);
    screen.until("No sessions here yet");
    screen.signal(Signal::TSTP);
    let end = Instant::now() + LONG;
    while !screen.seen.ends_with(LEAVE) {
        screen.read(end, "the way out");
    }
    // A signal to go on that comes before the stop has no effect.
    waitpid(Some(screen.pid()), WaitOptions::UNTRACED).expect("it stops");
    assert!(!screen.is_single(), "the keys are as they were");
    screen.signal(Signal::CONT);
    screen.until("No sessions here yet");
    screen.master.write_all(b"q").expect("a key");
    assert_eq!(screen.ends(), Some(0));
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_gets_the_table_once() {
    let home = Home::new();
    let mut screen = Screen::of(&home, "dumb", TINY);
    let end = Instant::now() + LONG;
    while !screen.seen.contains("--data DIR") {
        screen.read(end, "the table");
    }
    assert_eq!(screen.child.wait().expect("it ends").code(), Some(0));
    assert!(!screen.seen.contains("\u{1b}[?") && !screen.is_single(), "{:?}", screen.seen);
}
