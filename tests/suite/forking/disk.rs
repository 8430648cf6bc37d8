//! Forks on a disk that is full, read-only or in the way, and forks whose daemon dies.

use super::{fork, lines, text};
use crate::{
    storage::Disk,
    support::*,
    wire::{Dice, is_whole},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// All files below a folder but the one that daemons keep for their lists.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.retain(|path| path.extension().is_none_or(|extension| extension != "json"));
    found.sort();
    found
}

fn listed(daemon: &mut Daemon) -> Vec<Value> {
    let answer = daemon.ok("session/list", json!({}));
    let sessions = answer["sessions"].as_array().expect("sessions").iter();
    sessions.map(|session| session["path"].clone()).collect()
}

#[test]
fn a_disk_that_is_full_or_read_only_leaves_no_part_of_a_fork_behind() {
    let home = Home::new();
    let Some(disk) = Disk::mount(home.path("data")) else { return };
    let mut daemon = Daemon::at(home);
    let path = session_of(&daemon.home, "large", &turns(120));
    assert!(fs::metadata(&path).expect("a file").len() > 128 << 10);
    let session = daemon.load(&path);
    let of = |more: Value| {
        let mut params = json!({"sessionId": session});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        params
    };
    let before = files(&daemon.home.path("data"));
    let error = daemon.err("session/fork", of(json!({})));
    assert_eq!((error["code"].as_i64(), error["data"]["errno"].as_i64()), (Some(-32009), Some(28)), "{error:#}");
    assert!(text(&error["message"]).contains("Make room"), "{error:#}");
    assert_eq!(files(&daemon.home.path("data")), before, "nothing is left behind");
    let error = daemon.err("session/fork", of(json!({"cwd": "/elsewhere"})));
    assert_eq!(error["data"]["errno"], 28, "{error:#}");
    assert!(!daemon.home.path("data/sessions/--elsewhere--").exists(), "a new project has no folder");
    assert_eq!(files(&daemon.home.path("data")), before, "nothing is left behind");
    assert_eq!(listed(&mut daemon), Vec::<Value>::new());
    // A smaller one has room.
    let small = fork(&mut daemon, of(json!({"entryId": "e8"})))["session"].clone();
    assert_eq!(listed(&mut daemon), [small["path"].clone()]);
    // A file that is open for writing would keep the disk writable.
    daemon.ok("session/close", json!({"sessionId": small["sessionId"]}));
    disk.make_read_only();
    let before = files(&daemon.home.path("data"));
    let error = daemon.err("session/fork", of(json!({"entryId": "e8"})));
    assert_eq!((&error["data"]["code"], &error["data"]["errno"]), (&json!("storage_error"), &json!(30)), "{error:#}");
    let error = daemon.err("session/fork", of(json!({"entryId": "e8", "cwd": "/other"})));
    assert_eq!((&error["data"]["code"], &error["data"]["errno"]), (&json!("storage_error"), &json!(30)), "{error:#}");
    assert_eq!(files(&daemon.home.path("data")), before);
    assert_eq!(daemon.context(&session)["messages"].as_array().map(Vec::len), Some(480), "the session stays");
    let home = std::mem::replace(&mut daemon.home, Home::new());
    drop(daemon);
    drop(disk);
    drop(home);
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &[user("One."), assistant("Two.")]);
    let folder = daemon.home.path("data/sessions/--other--");
    fs::write(&folder, "a file where the folder should be").expect("a file");
    let error = daemon.err("session/fork", json!({"sessionId": session, "cwd": "/other"}));
    assert_eq!(error["data"]["code"], "storage_error", "{error:#}");
    assert!(text(&error["data"]["path"]).contains("--other--"), "{error:#}");
    assert_eq!(listed(&mut daemon).len(), 1);
    fs::remove_file(&folder).expect("removed");
    fork(&mut daemon, json!({"sessionId": session, "cwd": "/other"}));
    assert_eq!(listed(&mut daemon).len(), 2);
}

/// A session of some megabytes that is one path.
fn large(home: &Home) -> PathBuf {
    let path = home.path("large.jsonl");
    let mut file = std::io::BufWriter::new(fs::File::create(&path).expect("a file"));
    let mut all = vec![header("large")];
    all.extend(entries(&vec![user(&"A long request. ".repeat(2_000)); 1_000]));
    all.iter().for_each(|line| writeln!(file, "{line}").expect("it is written"));
    file.flush().expect("it is written");
    path
}

#[test]
fn a_fork_whose_daemon_is_killed_is_whole_or_is_not_there() {
    let mut daemon = Daemon::start();
    let source = large(&daemon.home);
    let whole = lines(&source.display().to_string());
    let mut dice = Dice::new(15);
    let (mut made, mut missing) = (0, 0);
    let session = daemon.load(&source);
    let started = Instant::now();
    fork(&mut daemon, json!({"sessionId": session}));
    let whole_fork = started.elapsed();
    // Later and later, from before the first byte until behind the answer, which other work on the machine may delay.
    for round in 0..48 {
        if round >= 12 && made > 0 && missing > 0 {
            break;
        }
        daemon.load(&source);
        let known = listed(&mut daemon).len();
        // The index is there from here on.
        daemon.ok("session/tree", json!({"sessionId": session, "limit": 1}));
        daemon.begin("session/fork", json!({"sessionId": session}));
        std::thread::sleep(whole_fork * round / 8 + Duration::from_micros(dice.below(3_000) as u64));
        daemon = daemon.restarted();
        let after = listed(&mut daemon);
        match after.len() - known {
            0 => missing += 1,
            1 => made += 1,
            more => panic!("{more} sessions of one fork"),
        }
        for path in &after {
            assert!(lines(text(path)) == whole, "a part of a fork is listed");
        }
    }
    assert!(made > 0 && missing > 0, "{made} forks are there, {missing} are not");
    let session = listed(&mut daemon)[0].clone();
    let loaded = daemon.ok("session/load", json!({"path": session}));
    assert_eq!((&loaded["repairs"], &loaded["session"]["leafEntryId"]), (&json!([]), &json!("e999")));
}

/// The end of a large fork is not read again.
#[test]
fn a_large_fork_is_the_session_that_its_file_says() {
    let home = Home::new();
    home.settings(r#"{"tokens": {"estimator": "chars"}, "compaction": {"enabled": false, "transcriptHint": false}}"#);
    let mut daemon = Daemon::at(home);
    let source = large(&daemon.home);
    let session = daemon.load(&source);
    let of = |more: Value| {
        let mut params = json!({"sessionId": session});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        params
    };
    daemon.ok("session/pin", of(json!({"entryId": "e10"})));
    daemon.ok("session/configure", of(json!({"title": "Large", "thinkingLevel": "low"})));
    let compacted = daemon.ok("session/compact", of(json!({"keepRecentTokens": 20_000, "wait": true})));
    assert_eq!(compacted["outcome"], "completed", "{compacted:#}");
    daemon.append(&session, &turns(2));
    daemon.ok("session/label", of(json!({"targetEntryId": "e999", "label": "the last"})));
    let all = [json!({}), json!({"entryId": "e998", "position": "at"}), json!({"entryId": "e900"})];
    // The first of them is the whole path.
    let some = if is_whole() { &all[..] } else { &all[..2] };
    for more in some {
        let forked = fork(&mut daemon, of(more.clone()))["session"].clone();
        let id = text(&forked["sessionId"]).to_owned();
        let look = |daemon: &mut Daemon| {
            let context = daemon.ok("session/context", json!({"sessionId": id}));
            let status = daemon.ok("session/status", json!({"sessionId": id}));
            let facts =
                ["title", "leafEntryId", "thinkingLevel", "model"].map(|field| status["session"][field].clone());
            (context, facts, status["spent"].clone())
        };
        let here = look(&mut daemon);
        daemon.ok("session/close", json!({"sessionId": id}));
        let loaded = daemon.ok("session/load", json!({"path": forked["path"]}));
        assert_eq!(loaded["repairs"], json!([]), "{more}");
        let there = look(&mut daemon);
        assert!(here == there, "{more}: {:#?}\n{:#?}", here.1, there.1);
        // It grows, and the index of its file agrees with it.
        daemon.append(&id, &[user("More."), assistant("Yes.")]);
        let tree = daemon.ok("session/tree", json!({"sessionId": id, "limit": 10_000}));
        let count = lines(text(&forked["path"])).len();
        assert_eq!(tree["nodes"].as_array().map(Vec::len), Some(count), "{more}");
        daemon.ok("session/close", json!({"sessionId": id}));
    }
}
