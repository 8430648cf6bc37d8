//! `abridged sessions`, beside a daemon and without one.

use crate::support::{Daemon, Home, assistant, entries, header, run, turns, user};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::MetadataExt, path::PathBuf};

fn sessions(home: &Home, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = home.command();
    command.arg("sessions").args(arguments);
    run(command)
}

fn document(home: &Home, more: &[&str]) -> Value {
    let (code, out, err) = sessions(home, &[&["--json"], more].concat());
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// The lines of the list.
fn lines(home: &Home, more: &[&str]) -> Vec<String> {
    let (code, out, err) = sessions(home, more);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    for line in out.lines() {
        assert!(line.chars().count() <= 80 && !line.contains('\u{1b}'), "{line}");
    }
    out.lines().map(str::to_owned).collect()
}

/// A session file in the data folder, changed at this second.
fn stored(home: &Home, id: &str, second: u64, fields: Value) -> PathBuf {
    let folder = home.path("data/sessions/--project--");
    fs::create_dir_all(&folder).expect("a folder");
    let mut head = header(id);
    for (name, value) in fields.as_object().expect("an object") {
        head[name] = value.clone();
    }
    let lines: Vec<Value> = std::iter::once(head).chain(entries(&[user(&format!("I am {id}"))])).collect();
    let path = folder.join(format!("2026-01-01T00-00-00-000Z_{id}.jsonl"));
    fs::rename(home.session("new.jsonl", &lines), &path).expect("a file");
    let changed = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_767_225_600 + second);
    fs::File::options().write(true).open(&path).expect("a file").set_modified(changed).expect("a time");
    path
}

fn ids(document: &Value) -> Vec<&str> {
    let sessions = document["sessions"].as_array().expect("sessions");
    sessions.iter().map(|session| session["sessionId"].as_str().expect("an id")).collect()
}

/// A session that begins with the summary of another one, in the numbers of the daemon.
#[test]
fn a_session_stands_below_the_one_that_it_was_made_from() {
    let mut daemon = Daemon::start();
    let parent = daemon.new_session(json!({"cwd": "/project", "title": "First"}));
    daemon.append(&parent, &turns(12));
    let params = json!({"sessionId": parent, "keepRecentTokens": 600, "newSession": true, "wait": true});
    let child = daemon.ok("session/compact", params)["newSessionId"].as_str().expect("an id").to_owned();
    let mut reply = assistant("Go on.");
    reply["usage"] = json!({"input": 2_350, "output": 2, "cacheRead": 0, "cacheWrite": 0});
    daemon.append(&child, &[user("Here?"), reply]);

    let found = document(&daemon.home, &[]);
    assert_eq!(ids(&found), [child.as_str(), &parent], "the newest one is the first one");
    let listed = daemon.ok("session/list", json!({}));
    for row in 0..2 {
        let (row, listed) = (&found["sessions"][row], &listed["sessions"][row]);
        for field in ["sessionId", "path", "cwd", "title", "preview", "updatedAt", "sizeBytes", "parentSession"] {
            assert_eq!(row[field], listed[field], "{field}");
        }
    }
    let usage = daemon.ok("session/usage", json!({"sessionId": child}));
    for field in ["contextTokens", "contextWindow", "percent", "source"] {
        assert_eq!(found["sessions"][0]["usage"][field], usage[field], "{field}");
    }
    assert_eq!(listed["sessions"][0]["percent"], usage["percent"], "the daemon's list counts in the same way");
    assert_eq!(
        (&found["sessions"][0]["parentSessionId"], &found["sessions"][1]["parentSessionId"]),
        (&json!(parent), &Value::Null)
    );
    assert_eq!((&found["more"], &found["leftOut"]), (&json!(0), &json!([])));

    let lines = lines(&daemon.home, &[]);
    assert!(lines.len() == 3 && lines[0].starts_with("id ") && lines[0].contains(" from "), "{lines:#?}");
    let ids: Vec<&str> = lines.iter().map(|line| line.split(' ').next().expect("a word")).collect();
    assert!(parent.starts_with(ids[1]) && child.starts_with(ids[2]) && ids[1] != ids[2], "{lines:#?}");
    assert!(
        lines[1].contains(" First ") && lines[2].contains(&format!(" {} ", ids[1])) && lines[2].contains(" ╰ "),
        "{lines:#?}"
    );
    // Each id names its session.
    for (short, id) in [(ids[1], &parent), (ids[2], &child)] {
        let mut command = daemon.home.command();
        command.args(["tree", "--json", short]);
        let (_, out, _) = run(command);
        let tree: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
        assert_eq!(tree["sessionId"], json!(id));
    }
}

#[test]
fn the_newest_sessions_of_a_folder_are_listed() {
    let home = Home::new();
    for number in 0..30u64 {
        let cwd = if number % 3 == 0 { "/other" } else { "/project" };
        stored(&home, &format!("{number:02}-session"), number, json!({ "cwd": cwd }));
    }
    let found = document(&home, &[]);
    assert_eq!((ids(&found).len(), ids(&found)[0], &found["more"]), (20, "29-session", &json!(10)));
    let lines_of_20 = lines(&home, &[]);
    assert_eq!((lines_of_20.len(), lines_of_20[21].as_str()), (22, "and 10 more (--limit)"));
    let found = document(&home, &["--cwd", "/other/", "--limit", "3"]);
    assert_eq!((ids(&found), &found["more"]), (vec!["27-session", "24-session", "21-session"], &json!(7)));
    assert_eq!(lines(&home, &["--limit", "100"]).len(), 31);
    let nothing = lines(&home, &["--cwd", "/elsewhere"]);
    assert_eq!(nothing, ["No session has the folder /elsewhere; without --cwd there are 30."]);
    let (code, out, err) = sessions(&home, &["--limit", "0"]);
    assert!(code == Some(2) && out.is_empty() && err.contains("--limit"), "{err}");
}

/// Forks of one session, a chain, and parents that are gone or go in a circle.
#[test]
fn chains_and_forks_are_drawn() {
    let home = Home::new();
    let root = stored(&home, "root", 1, json!({}));
    let fork = stored(&home, "fork", 2, json!({ "parentSession": root }));
    stored(&home, "tip", 9, json!({ "parentSession": fork }));
    stored(&home, "side", 3, json!({ "parentSession": root }));
    stored(&home, "orphan", 8, json!({"parentSession": "/gone/2025-01-01T00-00-00-000Z_lost.jsonl"}));
    stored(&home, "first", 4, json!({"parentSession": "second"}));
    stored(&home, "second", 5, json!({"parentSession": "first"}));
    let lines = lines(&home, &[]);
    let order: Vec<&str> = lines[1..].iter().map(|line| line.split(' ').next().expect("an id")).collect();
    assert_eq!(order, ["root", "side", "fork", "tip", "orphan", "first", "second"], "{lines:#?}");
    for (id, parent, levels) in [
        ("side", "root", " ├ I am side"),
        ("fork", "root", " ╰ I am fork"),
        ("tip", "fork", "   ╰ I am tip"),
        ("orphan", "lost", " I am orphan"),
    ] {
        let line = lines.iter().find(|line| line.starts_with(id)).expect("a line");
        assert!(line.contains(&format!(" {parent} ")) && line.contains(levels), "{line}");
    }
    // The parent is below the limit: its id says where the session is from.
    let newest = document(&home, &["--limit", "1"]);
    assert_eq!((ids(&newest), &newest["sessions"][0]["parentSessionId"]), (vec!["tip"], &json!("fork")));
}

#[test]
fn files_that_are_no_sessions_are_counted_and_nothing_is_written() {
    let home = Home::new();
    let path = stored(&home, "whole", 1, json!({}));
    fs::write(path.with_file_name("text.jsonl"), "hello\n").expect("a file");
    let before = fs::metadata(&path).expect("a file");
    let files = || fs::read_dir(path.parent().expect("a folder")).expect("a folder").count();
    let count = files();
    let lines = lines(&home, &[]);
    assert_eq!(lines[2], "1 file is no session, or not readable (--json names it)");
    let found = document(&home, &[]);
    assert!(found["leftOut"][0].as_str().is_some_and(|file| file.ends_with("text.jsonl")), "{found:#}");
    assert_eq!(found["folder"], json!(home.path("data/sessions")));
    let after = fs::metadata(&path).expect("a file");
    assert_eq!((before.mtime_nsec(), before.ino(), count), (after.mtime_nsec(), after.ino(), files()));
    assert!(!home.path("data/sessions-list.json").exists(), "the list of a daemon is not written either");
}

#[test]
fn a_folder_without_sessions_says_what_to_do() {
    let home = Home::new();
    let (code, out, _) = sessions(&home, &[]);
    assert!(
        code == Some(0) && out.contains("yet. A daemon writes one at session/new.") && out.contains("--data"),
        "{out}"
    );
    assert_eq!(document(&home, &[])["sessions"], json!([]));
    assert!(!home.path("data").exists(), "it only looks");
    let (code, _, err) = sessions(&home, &["--data", "/nowhere/at/all"]);
    assert!(code == Some(1) && err.contains("/nowhere/at/all") && err.contains("name the data folder"), "{err}");
}
