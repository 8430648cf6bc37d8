//! The lives of a session: loads, closes, deletes and cancels in one go, and loads whose file does not answer.

use crate::{
    support::{Daemon, Home, header, session_of, turns, user},
    wire::command,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// Sends these requests as one write; their ids.
fn together(daemon: &mut Daemon, requests: &[(&str, Value)]) -> Vec<u64> {
    let ids: Vec<u64> = requests.iter().map(|_| daemon.take_id()).collect();
    let frame = |(id, (method, params)): (&u64, &(&str, Value))| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n"
    };
    let frames: String = ids.iter().zip(requests).map(frame).collect();
    daemon.write(frames.as_bytes());
    ids
}

fn of(session: &str) -> Value {
    json!({"sessionId": session})
}

fn append(session: &str) -> (&'static str, Value) {
    ("session/append", json!({"sessionId": session, "messages": [user("on")]}))
}

#[test]
fn a_load_behind_one_that_fails_and_a_close_opens_the_session() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "twice", &turns(1));
    for _ in 0..8 {
        let ids = together(
            &mut daemon,
            &[
                ("session/load", json!({"path": path, "settings": {"compaction": 7}})),
                ("session/close", of("twice")),
                ("session/load", json!({"path": path})),
                append("twice"),
            ],
        );
        assert_eq!(daemon.answer(ids[0]).expect_err("wrong settings")["data"]["path"], "settings.compaction");
        assert!(daemon.answer(ids[1]).is_err(), "nothing was open");
        assert!(daemon.answer(ids[2]).is_ok());
        assert!(daemon.answer(ids[3]).is_ok());
        let (method, params) = append("twice");
        daemon.ok(method, params);
        daemon.ok("session/load", of("twice"));
        daemon.ok("session/close", of("twice"));
    }
}

#[test]
fn requests_behind_a_load_that_fails_are_told_that_the_session_could_not_be_opened() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "kept", &turns(1));
    let wrong = json!({"path": path, "settings": {"compaction": 7}});
    let mut waited = 0;
    for _ in 0..20 {
        let requests = [("session/load", wrong.clone()), append("kept"), ("session/status", of("kept"))];
        let ids = together(&mut daemon, &requests);
        assert_eq!(daemon.answer(ids[0]).expect_err("wrong settings")["data"]["code"], "invalid_params");
        for id in &ids[1..] {
            let error = daemon.answer(*id).expect_err("it is not open");
            assert_eq!(error["data"], json!({"code": "not_found", "retryable": false, "kind": "session"}));
            let text = error["message"].as_str().expect("a text");
            waited += usize::from(text.starts_with("session kept could not be opened: settings.compaction"));
        }
    }
    // A request may also come after the end of the load.
    assert!(waited > 0);
}

#[test]
fn a_session_that_is_open_is_closed_by_a_close_behind_a_load_of_its_path() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "again", &turns(1));
    for _ in 0..10 {
        daemon.load(&path);
        let ids = together(
            &mut daemon,
            &[
                ("session/load", json!({"path": path})),
                ("session/close", of("again")),
                append("again"),
                ("session/load", json!({"path": path})),
                append("again"),
                ("session/close", of("again")),
            ],
        );
        let answers: Vec<bool> = ids.into_iter().map(|id| daemon.answer(id).is_ok()).collect();
        assert_eq!(answers, [true, true, false, true, true, true]);
        assert!(!Path::new(&format!("{}.lock", path.display())).exists());
    }
}

#[test]
fn a_cancel_behind_a_load_that_fails_finds_nothing() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "failing", &turns(1));
    let wrong = json!({"compaction": 7});
    daemon.load(&path);
    daemon.ok("session/close", of("failing"));
    for named in [json!({"path": path, "settings": wrong}), json!({"path": path, "settings": wrong, "readOnly": true})]
    {
        for _ in 0..5 {
            let ids = together(
                &mut daemon,
                &[
                    ("session/load", named.clone()),
                    ("session/cancel", of("failing")),
                    ("session/cancel", of("failing")),
                ],
            );
            assert!(daemon.answer(ids[0]).is_err());
            assert_eq!(daemon.answer(ids[1]).expect("an answer")["cancelled"], json!([]));
            assert_eq!(daemon.answer(ids[2]).expect("an answer")["cancelled"], json!([]));
        }
    }
    assert_eq!(daemon.err("session/cancel", of("nobody"))["data"]["code"], "not_found");
}

#[test]
fn a_cancel_beside_a_close_is_answered() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "ending", &turns(1));
    for _ in 0..10 {
        daemon.load(&path);
        let ids = together(
            &mut daemon,
            &[("session/close", of("ending")), ("session/cancel", of("ending")), ("session/cancel", of("ending"))],
        );
        assert!(daemon.answer(ids[0]).is_ok());
        for id in &ids[1..] {
            assert_eq!(daemon.answer(*id).expect("an answer")["cancelled"], json!([]));
        }
    }
}

#[test]
fn a_session_is_deleted_once() {
    let mut daemon = Daemon::start();
    for in_the_data_folder in [true, false] {
        let (session, path) = if in_the_data_folder {
            let made = daemon.ok("session/new", json!({"cwd": "/p"}))["session"].clone();
            (made["sessionId"].as_str().expect("an id").to_owned(), made["path"].as_str().expect("a path").to_owned())
        } else {
            let path = session_of(&daemon.home, "elsewhere", &turns(1));
            (daemon.load(&path), path.display().to_string())
        };
        let ids = together(
            &mut daemon,
            &[
                ("session/delete", of(&session)),
                ("session/delete", of(&session)),
                ("session/load", json!({"path": path})),
            ],
        );
        assert!(daemon.answer(ids[0]).is_ok());
        for id in &ids[1..] {
            assert_eq!(daemon.answer(*id).expect_err("it is gone")["data"]["code"], "not_found");
        }
        assert!(!Path::new(&path).exists() && !Path::new(&format!("{path}.lock")).exists());
    }
    let ephemeral = daemon.ok("session/new", json!({"cwd": "/p", "ephemeral": true}))["session"]["sessionId"].clone();
    daemon.ok("session/delete", json!({"sessionId": ephemeral}));
}

/// A daemon in which no look at this file comes to an end, as on a network mount that does not answer.
fn with_silent_file(home: Home, file: &Path) -> Daemon {
    let mut silent = Command::new("strace");
    // Longer than a test waits for an answer. With `-I 2` a signal ends strace and every delay.
    silent.args(["-I", "2", "-f", "-o", "/dev/null", "-e", "trace=openat"]);
    silent.args(["-e", "inject=openat:delay_enter=200000000", "-P"]).arg(file);
    under(silent, home)
}

/// The file of `with_silent_file` answers from here on.
fn let_it_answer(daemon: &Daemon) {
    let killed = Command::new("kill").args(["-TERM", &daemon.pid().to_string()]).status();
    assert!(killed.expect("kill runs").success());
}

/// A daemon that another program runs.
fn under(mut program: Command, home: Home) -> Daemon {
    let direct = command(&home);
    program.arg(direct.get_program());
    program.envs(direct.get_envs().filter_map(|(name, value)| Some((name, value?)))).stderr(Stdio::null());
    let mut daemon = Daemon::of(home, program);
    daemon.ok("initialize", json!({}));
    daemon
}

#[test]
fn a_load_whose_file_does_not_answer_holds_back_its_session_alone() {
    let home = Home::new();
    let mut first = Daemon::at(home);
    let slow = first.ok("session/new", json!({"cwd": "/slow"}))["session"].clone();
    first.end();
    let home = std::mem::replace(&mut first.home, Home::new());
    let (other, third) = (session_of(&home, "other", &turns(1)), session_of(&home, "third", &turns(1)));
    let mut daemon = with_silent_file(home, Path::new(slow["path"].as_str().expect("a path")));
    let slow = slow["sessionId"].as_str().expect("an id");
    daemon.load(&other);
    let load = daemon.begin("session/load", json!({"sessionId": slow, "readOnly": true}));
    let behind = daemon.begin("session/status", of(slow));
    let again = daemon.begin("session/load", json!({"sessionId": slow, "readOnly": true}));
    // Open sessions, other paths and ids are served.
    let (method, params) = append("other");
    daemon.ok(method, params);
    daemon.load(&third);
    daemon.ok("session/status", of("third"));
    let fresh = daemon.ok("session/new", json!({"cwd": "/p"}))["session"]["sessionId"].clone();
    daemon.ok("session/close", json!({"sessionId": fresh}));
    daemon.ok("session/load", json!({"sessionId": fresh}));
    daemon.ok("session/close", of("other"));
    daemon.load(&other);
    let compact = daemon.begin("session/compact", json!({"sessionId": slow, "keepRecentTokens": 1}));
    assert_eq!(daemon.ok("session/cancel", of(slow))["cancelled"], json!([]));
    assert_eq!(daemon.answer(compact).expect_err("cancelled")["data"]["code"], "request_cancelled");
    let answered = |frame: &Value| [load, behind, again].iter().any(|id| frame["id"] == *id);
    assert!(!daemon.events.iter().any(answered), "the file does not answer yet");
    let_it_answer(&daemon);
    assert!(daemon.answer(load).is_ok());
    assert_eq!(daemon.answer(behind).expect("it is open")["session"]["sessionId"], slow);
    assert!(daemon.answer(again).is_ok());
}

/// The file of a new session is there before the session is open, and the watcher sees it.
#[test]
fn a_new_session_is_no_news_however_slow_the_disk_is() {
    let home = Home::new();
    let folder = home.path("data/sessions/--p--");
    fs::create_dir_all(&folder).expect("a folder");
    let mut slow = Command::new("strace");
    slow.args(["-f", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=300000"]);
    let mut daemon = under(slow, home);
    // Once this is told, the folder is watched.
    let told = |frame: &Value| frame["method"] == "sessions_changed";
    for at in 0.. {
        fs::write(folder.join(format!("other{at}.jsonl")), format!("{}\n", header("other"))).expect("a file");
        if daemon.next_within(Duration::from_millis(500), told).is_some() {
            break;
        }
        assert!(at < 100, "the folder is not watched");
    }
    while daemon.next_within(Duration::from_millis(300), told).is_some() {}
    let made = daemon.ok("session/new", json!({"cwd": "/p"}))["session"]["path"].clone();
    let other = daemon.ok("session/new", json!({"cwd": "/q"}))["session"]["path"].clone();
    daemon.ok("ping", json!({}));
    let ours = |frame: &Value| {
        let paths = frame["params"]["paths"].as_array();
        paths.is_some_and(|paths| paths.contains(&made) || paths.contains(&other))
    };
    assert!(!daemon.events.iter().any(|frame| told(frame) && ours(frame)), "{:#?}", daemon.events);
}

#[test]
fn requests_for_nobody_wait_only_so_long_for_a_load_that_does_not_answer() {
    let home = Home::new();
    let slow = session_of(&home, "slow", &turns(1));
    let (other, third) = (session_of(&home, "other", &turns(1)), session_of(&home, "third", &turns(1)));
    let mut daemon = with_silent_file(home, &slow);
    daemon.load(&other);
    let load = daemon.begin("session/load", json!({"path": slow}));
    let again = daemon.begin("session/load", json!({"path": slow}));
    let behind = daemon.begin("session/status", of("nobody"));
    // Open sessions and other paths are served.
    let (method, params) = append("other");
    daemon.ok(method, params);
    daemon.load(&third);
    daemon.ok("session/close", of("third"));
    let early = |frame: &Value| [load, again].iter().any(|id| frame["id"] == *id);
    assert!(!daemon.events.iter().any(early), "the load is not decided");
    assert_eq!(daemon.answer(behind).expect_err("nobody")["data"]["code"], "not_found");
    assert!(!daemon.events.iter().any(early), "the load is not decided");
    // From here on nothing waits for it.
    assert_eq!(daemon.err("session/delete", of("nobody"))["data"]["code"], "not_found");
    assert!(!daemon.events.iter().any(early));
    let_it_answer(&daemon);
    assert!(daemon.answer(load).is_ok());
    assert!(daemon.answer(again).is_ok());
}
