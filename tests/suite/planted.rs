//! Files in a folder of a stranger: nothing in the place of a file of ours is followed, waited for, read whole or
//! written over.

use crate::support::{Daemon, Home, run, session_of, turns, user};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{FileTypeExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// A file of the user that nobody may touch.
struct Precious(PathBuf);

impl Precious {
    const TEXT: &str = "ssh-ed25519 AAAA user@host\n";

    fn new(home: &Home) -> Self {
        let path = home.path("authorized_keys");
        fs::write(&path, Self::TEXT).expect("a file");
        Self(path)
    }

    fn is_as_it_was(&self) -> bool {
        fs::read_to_string(&self.0).is_ok_and(|text| text == Self::TEXT)
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}.{suffix}", path.display()))
}

/// Ways to plant something where the lock of a session would be.
type Plant = fn(&Path, &Precious);

const PLANTS: &[(&str, Plant)] = &[
    ("a link to a file", |lock, precious| symlink(&precious.0, lock).expect("a link")),
    ("a link to nothing", |lock, precious| symlink(precious.0.with_extension("none"), lock).expect("a link")),
    ("a link to a device", |lock, _| symlink("/dev/zero", lock).expect("a link")),
    ("a hard link", |lock, precious| fs::hard_link(&precious.0, lock).expect("a link")),
    ("a hard link to an empty file", |lock, precious| {
        let empty = precious.0.with_extension("empty");
        fs::write(&empty, "").and_then(|()| fs::hard_link(&empty, lock)).expect("a link");
    }),
    ("a FIFO", |lock, _| fifo(lock)),
    ("a folder", |lock, _| fs::create_dir(lock).expect("a folder")),
    ("other content", |lock, _| fs::write(lock, "dear diary").expect("a file")),
    ("a sparse file of 6 GB", |lock, _| {
        fs::File::create(lock).and_then(|file| file.set_len(6 << 30)).expect("a sparse file");
    }),
    ("a long file that begins as a lock", |lock, _| {
        fs::write(lock, format!("{{\"pid\":1}}{}", "x".repeat(20_000))).expect("a file");
    }),
];

#[test]
fn a_planted_lock_is_refused_and_the_session_can_be_looked_at() {
    let mut daemon = Daemon::start();
    let precious = Precious::new(&daemon.home);
    for (at, (name, plant)) in PLANTS.iter().enumerate() {
        let id = format!("planted{at}");
        let path = session_of(&daemon.home, &id, &turns(1));
        let lock = beside(&path, "lock");
        plant(&lock, &precious);
        let before = fs::symlink_metadata(&lock).expect("it is there");
        for method in ["session/load", "session/load"] {
            let error = daemon.err(method, json!({"path": path}));
            assert_eq!(error["data"]["code"], "storage_error", "{name}: {error}");
            assert_eq!(error["data"]["path"], json!(lock), "{name}");
            assert_eq!(error["data"]["retryable"], false, "{name}");
            let text = error["message"].as_str().expect("a text");
            assert!(text.contains("readOnly: true") && text.contains("emove it"), "{name}: {text}");
        }
        let loaded = daemon.ok("session/load", json!({"path": path, "readOnly": true}));
        assert_eq!(loaded["session"]["entryCount"], 4, "{name}");
        daemon.ok("session/close", json!({"sessionId": id}));
        let after = fs::symlink_metadata(&lock).expect("it is still there");
        assert_eq!((before.len(), before.modified().ok()), (after.len(), after.modified().ok()), "{name}");
        assert!(precious.is_as_it_was(), "{name}");
        assert!(!precious.0.with_extension("none").exists(), "{name}");
    }
    daemon.ok("ping", json!({}));
}

#[test]
fn a_lock_that_a_crash_left_is_taken() {
    let mut daemon = Daemon::start();
    for (at, left) in
        ["", "{\"pid\":1}", "{\"pid\":1}\"startedAt\":\"now\"}}", "{\"pid\":1,\"oper", "\0\0\0\0"].iter().enumerate()
    {
        let id = format!("left{at}");
        let path = session_of(&daemon.home, &id, &turns(1));
        let lock = beside(&path, "lock");
        fs::write(&lock, left).expect("a file");
        daemon.load(&path);
        let note: Value = serde_json::from_slice(&fs::read(&lock).expect("a lock")).expect("JSON");
        assert_eq!(note["pid"], daemon.pid(), "{left:?}");
        daemon.ok("session/close", json!({"sessionId": id}));
        assert!(!lock.exists(), "{left:?}");
    }
}

/// The process of the lock died inside three operations. The middle one has a kind that this version does not know.
#[test]
fn operations_that_a_crash_left_end_once_inner_ones_first() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "left", &turns(1));
    let lock = beside(&path, "lock");
    let operation = |id: &str, kind: &str, reason: &str| json!({"operationId": id, "kind": kind, "reason": reason, "startedAt": "2026-01-01T00:00:00Z"});
    let (outer, dream) = (operation("op-1", "compaction", "overflow"), operation("op-2", "dream", "night"));
    let inner = operation("op-3", "compaction", "idle");
    let record = json!({"pid": 1, "operation": inner, "operations": [outer, dream, inner]});
    fs::write(&lock, record.to_string()).expect("a lock");
    daemon.load(&path);
    daemon.ok("session/status", json!({"sessionId": "left"}));
    let told: Vec<Value> = daemon.events.iter().map(|frame| frame["params"].clone()).collect();
    let ids: Vec<&Value> = told.iter().map(|event| &event["operationId"]).collect();
    assert_eq!(ids, ["op-3", "op-2", "op-1"]);
    assert_eq!(daemon.kinds(), ["compaction_end", "notice", "compaction_end"]);
    for (event, reason) in [(&told[0]["event"], "idle"), (&told[2]["event"], "overflow")] {
        assert_eq!((&event["reason"], &event["outcome"]), (&json!(reason), &json!("failed")));
    }
    assert!(told[1]["event"]["detail"].as_str().expect("a detail").contains("\"dream\""));
    // The lock forgets them after the client has read them, which no answer waits for.
    let forgotten =
        || serde_json::from_slice(&fs::read(&lock).expect("a lock")).ok() == Some(json!({"pid": daemon.pid()}));
    let soon = Instant::now() + Duration::from_secs(20);
    while !forgotten() {
        assert!(
            Instant::now() < soon,
            "their ends would be sent again: {}",
            fs::read_to_string(&lock).expect("a lock")
        );
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn files_of_ours_are_for_their_owner_alone() {
    let mut daemon = Daemon::start();
    let cwd = daemon.home.path("work");
    let session = daemon.ok("session/new", json!({"cwd": cwd}))["session"].clone();
    let file = PathBuf::from(session["path"].as_str().expect("a path"));
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(&beside(&file, "lock")), 0o600);
    let torn = session_of(&daemon.home, "torn", &turns(1));
    let whole = fs::read(&torn).expect("a file");
    fs::write(&torn, [&whole[..], b"{\"type\":\"mess"].concat()).expect("a file");
    daemon.load(&torn);
    daemon.ok("session/append", json!({"sessionId": "torn", "messages": [user("on")]}));
    assert_eq!(mode(&beside(&torn, "torn")), 0o600);
    let export = daemon.home.path("out.md");
    daemon.ok("session/export", json!({"sessionId": "torn", "format": "markdown", "path": export}));
    assert_eq!(mode(&export), 0o600);
}

/// A dangling link has no file behind it, and a file that is made at its name would be made where it leads.
#[test]
fn nothing_is_made_behind_a_dangling_link() {
    let mut daemon = Daemon::start();
    let elsewhere = daemon.home.path("elsewhere");
    let torn = session_of(&daemon.home, "torn", &turns(1));
    let whole = fs::read(&torn).expect("a file");
    fs::write(&torn, [&whole[..], b"{\"type\":\"mess"].concat()).expect("a file");
    symlink(&elsewhere, beside(&torn, "torn")).expect("a link");
    daemon.load(&torn);
    daemon.ok("session/append", json!({"sessionId": "torn", "messages": [user("on")]}));
    assert_eq!(fs::read(beside(&torn, "torn.2")).expect("the piece"), b"{\"type\":\"mess");

    let old = daemon.home.session(
        "old.jsonl",
        &[
            json!({"type": "session", "id": "old", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/p"}),
            json!({"type": "message", "timestamp": "2025-01-01T00:00:00.000Z", "message": user("one")}),
        ],
    );
    let bytes = fs::read(&old).expect("a file");
    for suffix in ["v1", "new"] {
        symlink(&elsewhere, beside(&old, suffix)).expect("a link");
    }
    daemon.load(&old);
    daemon.ok("session/append", json!({"sessionId": "old", "messages": [user("on")]}));
    assert_eq!(fs::read(beside(&old, "v1.2")).expect("the old file"), bytes);

    let export = daemon.home.path("export.jsonl");
    symlink(&elsewhere, &export).expect("a link");
    let error = daemon.err("session/export", json!({"sessionId": "old", "format": "jsonl", "path": export}));
    assert_eq!(error["data"]["code"], "storage_error");
    assert!(!elsewhere.exists());
}

#[test]
fn an_export_takes_no_file_away() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "kept", &turns(1));
    daemon.load(&path);
    let export = daemon.home.path("notes");
    fs::write(beside(&export, "new"), "mine").expect("a file");
    daemon.ok("session/export", json!({"sessionId": "kept", "format": "markdown", "path": export}));
    assert!(fs::read_to_string(&export).expect("the export").starts_with('#'));
    assert_eq!(fs::read_to_string(beside(&export, "new")).expect("a file"), "mine");
}

#[test]
fn a_session_that_is_no_regular_file_is_refused_at_once() {
    let mut daemon = Daemon::start();
    let pipe = daemon.home.path("pipe.jsonl");
    fifo(&pipe);
    let link = daemon.home.path("link.jsonl");
    symlink(&pipe, &link).expect("a link");
    for path in [&pipe, &link] {
        for read_only in [false, true] {
            let error = daemon.err("session/load", json!({"path": path, "readOnly": read_only}));
            assert_eq!(error["data"]["code"], "invalid_params", "{error}");
        }
    }
    assert!(fs::symlink_metadata(&pipe).expect("a FIFO").file_type().is_fifo());
    assert!(!beside(&pipe, "lock").exists());
}

/// A link to a session file is the file that it leads to: the lock is beside that, and every daemon finds it.
#[test]
fn a_link_to_a_session_is_the_session_it_leads_to() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "real", &turns(1));
    let folder = daemon.home.path("folder");
    fs::create_dir(&folder).expect("a folder");
    let link = folder.join("link.jsonl");
    symlink(&path, &link).expect("a link");
    let loaded = daemon.ok("session/load", json!({"path": link}));
    let real = path.canonicalize().expect("a path");
    assert_eq!(loaded["session"]["path"], json!(real));
    assert!(beside(&real, "lock").exists() && !beside(&link, "lock").exists());
    let mut second = Daemon::start();
    assert_eq!(second.err("session/load", json!({"path": path}))["data"]["code"], "locked");
    daemon.ok("session/append", json!({"sessionId": "real", "messages": [user("on")]}));
    assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
}

/// Caches are of ours alone. What lies in their place is replaced or ignored, and never followed.
#[test]
fn a_cache_in_whose_place_something_else_lies_is_ignored() {
    let home = Home::new();
    let precious = Precious::new(&home);
    fs::create_dir_all(home.path("data")).expect("a folder");
    fifo(&home.path("data/learned-windows.json"));
    symlink(&precious.0, home.path("data/sessions-list.json")).expect("a link");
    let mut daemon = Daemon::at(home);
    for at in 0..60 {
        daemon.ok("session/new", json!({"cwd": format!("/p{at}")}));
    }
    assert_eq!(daemon.ok("session/list", json!({}))["sessions"].as_array().map(Vec::len), Some(60));
    assert!(precious.is_as_it_was());
    let list = fs::symlink_metadata(daemon.home.path("data/sessions-list.json")).expect("a list");
    assert!(list.is_file());
}

/// A settings file of a project that is no regular file, or endless, costs a notice and nothing else.
#[test]
fn settings_of_a_project_that_are_no_file_are_ignored() {
    let mut daemon = Daemon::start();
    /// Puts something in the place of a file.
    type Place = fn(&Path);
    let plants: &[(&str, Place)] = &[
        ("a FIFO", |file| fifo(file)),
        ("a link to a FIFO", |file| {
            let pipe = file.with_file_name("pipe");
            fifo(&pipe);
            symlink(pipe, file).expect("a link");
        }),
        ("a link to a device", |file| symlink("/dev/zero", file).expect("a link")),
        ("6 GB", |file| fs::File::create(file).and_then(|file| file.set_len(6 << 30)).expect("a sparse file")),
    ];
    for (at, (name, plant)) in plants.iter().enumerate() {
        let cwd = daemon.home.path(&format!("project{at}"));
        let file = cwd.join(".abridged/settings.json");
        fs::create_dir_all(cwd.join(".abridged")).expect("a folder");
        plant(&file);
        daemon.events.clear();
        let session = daemon.ok("session/new", json!({"cwd": cwd}))["session"]["sessionId"].clone();
        let told = |frame: &Value| {
            frame["method"] == "notice"
                && frame["params"]["detail"].as_str().is_some_and(|text| text.contains(&file.display().to_string()))
        };
        assert!(daemon.events.iter().any(told), "{name}: {:#?}", daemon.events);
        let patch = json!({"compaction": {"keepRecentTokens": 7}});
        let set = json!({"scope": "project", "sessionId": session, "patch": patch});
        assert_eq!(daemon.err("settings/set", set)["data"]["code"], "storage_error", "{name}");
        assert!(!fs::symlink_metadata(&file).expect("it is there").is_dir());
    }
}

/// The doctor looks at every file of the data folder, and at nothing but its beginning.
#[test]
fn the_doctor_names_what_lies_in_the_place_of_a_lock() {
    let home = Home::new();
    let folder = home.path("data/sessions/--project--");
    fs::create_dir_all(&folder).expect("a folder");
    let precious = Precious::new(&home);
    let planted: Vec<PathBuf> = PLANTS
        .iter()
        .enumerate()
        .map(|(at, (_, plant))| {
            let lock = folder.join(format!("s{at}.jsonl.lock"));
            plant(&lock, &precious);
            lock
        })
        .collect();
    fifo(&folder.join("pipe.jsonl"));
    let mut command = home.command();
    command.args(["doctor", "--json"]);
    let (code, out, err) = run(command);
    let found: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}\n{err}"));
    let named =
        |lock: &&PathBuf| found["problems"].as_array().is_some_and(|it| it.iter().any(|it| it["file"] == json!(lock)));
    let missed: Vec<_> =
        planted.iter().zip(PLANTS).filter(|(lock, _)| !named(lock)).map(|(_, plant)| plant.0).collect();
    assert_eq!((code, missed), (Some(0), vec![]), "{found:#}");
    assert_eq!(found["data"]["sessions"], 0, "a FIFO is no session");
    assert!(precious.is_as_it_was());
}

/// Everything that a session file can say, with characters that a terminal acts on.
const HOSTILE: &str = "x\u{1b}[2Jy\u{9b}31m\u{7f}\u{202e}\u{2028}forged\nrow\rz\u{7}";

/// The characters of an output that a terminal acts on, but for the ends of lines.
fn acting(output: &str) -> Vec<char> {
    let acts = |char: &char| {
        *char != '\n' && (char.is_control() || matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}'))
    };
    output.chars().filter(acts).collect()
}

#[test]
fn no_text_of_a_session_file_acts_on_a_terminal() {
    let home = Home::new();
    let folder = home.path("data/sessions/--project--");
    fs::create_dir_all(&folder).expect("a folder");
    let text = format!("{HOSTILE} {}", "word ".repeat(30_000));
    for number in 0..2 {
        let id = format!("same{HOSTILE}{number}");
        let usage = json!({"type": "usage", "id": "u", "parentId": null, "timestamp": "2026-01-01T00:00:00Z",
            "purpose": HOSTILE, "usage": {"input": 1, "output": 1}});
        let message = |at: usize, role: &str| {
            let message = json!({"role": role, "content": text, "timestamp": 1});
            json!({"type": "message", "id": format!("{HOSTILE}{at}"), "parentId": null, "timestamp": HOSTILE,
                "message": message})
        };
        let head = json!({"type": "session", "version": 3, "id": id, "cwd": HOSTILE, "timestamp": HOSTILE,
            "title": HOSTILE, "parentSession": HOSTILE});
        let lines = [head, usage, message(0, "user"), message(1, "assistant"), message(2, HOSTILE)];
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(folder.join(format!("{HOSTILE}{number}.jsonl")), lines).expect("a file");
        fs::write(folder.join(format!("{HOSTILE}{number}.jsonl.lock")), "other").expect("a file");
    }
    let file = folder.join(format!("{HOSTILE}0.jsonl"));
    let file = file.to_str().expect("a path");
    for arguments in [
        vec!["doctor"],
        vec!["doctor", "--json"],
        vec!["sessions"],
        vec!["sessions", "--json"],
        vec!["watch", "--once"],
        vec!["watch", "--once", "--json"],
        vec!["tree", "same"],
        vec!["tree", file],
        vec!["tree", file, "--all"],
        vec!["tree", file, "--json"],
        vec!["compact", file, "--dry-run"],
        vec!["compact", file],
        vec!["compact", file, "--json"],
        // A shell that expands `*.jsonl` gives names as arguments that the command does not take.
        vec!["tree", "same", file],
        vec!["compact", file, file],
        vec![HOSTILE],
        vec!["--log", HOSTILE, "doctor"],
    ] {
        let mut command = home.command();
        command.args(&arguments);
        let (code, out, err) = run(command);
        assert!(code.is_some() && !(out.is_empty() && err.is_empty()), "{arguments:?}: {code:?}");
        assert_eq!((acting(&out), acting(&err)), (vec![], vec![]), "{arguments:?}\n{out}\n{err}");
        let forged = out.lines().chain(err.lines()).any(|line| line.starts_with("forged") || line.starts_with("row"));
        assert!(!forged, "{arguments:?}\n{out}\n{err}");
        if arguments.contains(&"--json") && code == Some(0) {
            serde_json::from_str::<Value>(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {out}"));
        }
    }
}
