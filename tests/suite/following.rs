//! Other programs on the same files, and what is read of a large one.

use crate::support::*;
use serde_json::{Value, json};
use std::{fs::OpenOptions, io::Write, path::Path};

/// Appends lines like a program that knows no lock.
fn append_to(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).expect("a file");
    file.write_all(text.as_bytes()).expect("it is written");
}

fn line(id: &str, parent: &str, text: &str) -> String {
    format!("{}\n", json!({"type": "message", "id": id, "parentId": parent, "timestamp": "", "message": user(text)}))
}

fn ids(daemon: &mut Daemon, session: &str) -> Vec<String> {
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let ids = context["entryIds"].as_array().expect("ids").iter();
    ids.map(|id| id.as_str().unwrap_or("none").to_owned()).collect()
}

#[test]
fn what_another_program_appends_is_told_live() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "shared", &turns(1));
    let session = daemon.load(&path);
    append_to(&path, &line("x1", "e3", "from elsewhere"));
    let event = daemon.until("entry_appended");
    assert_eq!(event["params"]["entryId"], "x1");
    assert_eq!(ids(&mut daemon, &session), ["e0", "e1", "e2", "e3", "x1"]);
    // Half a line is none yet.
    let next = line("x2", "e1", "a branch of theirs");
    append_to(&path, &next[..20]);
    append_to(&path, &next[20..]);
    daemon.events.clear();
    let event = daemon.until("entry_appended");
    assert_eq!(event["params"]["entryId"], "x2");
    let now = ids(&mut daemon, &session);
    assert_eq!(now.iter().filter(|id| *id != "none").collect::<Vec<_>>(), ["e0", "e1", "x2"]);
    let mine = daemon.ok("session/append", json!({"sessionId": session, "messages": [user("mine")]}));
    let entry = daemon.ok("session/entry", json!({"sessionId": session, "entryId": mine["entryIds"][0]}));
    assert_eq!(entry["entry"]["parentId"], "x2");
}

/// An entry whose parent is no earlier entry continues the entry before it, and nothing leaves the context.
#[test]
fn a_branch_of_another_program_is_reported_where_messages_leave_the_context() {
    let broken = "{\"type\":\"message\",\"id\":\"x1\",\"timestamp\": no value\n".to_owned();
    for (lines, entry, left) in [
        (line("x1", "e1", "an earlier entry"), "x1", Some("the last 2 of")),
        (line("x1", "e1", "an earlier entry") + &line("x2", "x1", "and on"), "x2", Some("the last 2 of")),
        (line("x1", "e3", "the leaf"), "x1", None),
        (line("x1", "nowhere", "no entry"), "x1", None),
        (line("x1", "nowhere", "no entry") + &line("x2", "x1", "and on"), "x2", None),
        (broken, "x1", None),
    ] {
        let mut daemon = Daemon::start();
        let path = session_of(&daemon.home, "shared", &turns(1));
        let session = daemon.load(&path);
        append_to(&path, &lines);
        daemon
            .next_within(std::time::Duration::from_secs(60), |frame| frame["params"]["entryId"] == entry)
            .expect("it is announced");
        // A notice follows the entries before the next answer.
        let context = daemon.ok("session/context", json!({"sessionId": session}))["messages"].to_string();
        let notices = daemon.events.iter().filter(|event| event["params"]["event"]["type"] == "notice");
        let notices: Vec<_> = notices.map(|notice| notice["params"]["event"]["detail"].to_string()).collect();
        assert_eq!(notices.len(), usize::from(left.is_some()), "{lines}: {notices:?}");
        assert!(left.is_none_or(|left| notices[0].contains(left)), "{lines}: {notices:?}");
        assert_eq!(context.matches("Request 0").count(), 1, "{lines}: {context}");
    }
}

#[test]
fn a_session_that_is_only_looked_at_follows_its_owner() {
    let mut owner = Daemon::start();
    let path = session_of(&owner.home, "owned", &turns(4));
    let mut watcher = Daemon::start();
    let seen = watcher.ok("session/load", json!({"path": path, "readOnly": true}))["session"]["sessionId"].clone();
    let session = owner.load(&path);
    let appended = owner.ok("session/append", json!({"sessionId": session, "messages": [user("news")]}));
    let event = watcher.until("entry_appended");
    assert_eq!(event["params"]["entryId"], appended["entryIds"][0]);
    watcher.events.clear();
    owner.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 200, "wait": true}));
    watcher.until("entry_appended");
    let theirs = watcher.ok("session/context", json!({"sessionId": seen}));
    let ours = owner.ok("session/context", json!({"sessionId": session}));
    assert_eq!(theirs["messages"], ours["messages"]);
}

#[test]
fn a_file_that_was_replaced_or_deleted_is_not_written_to() {
    for gone in [true, false] {
        let mut daemon = Daemon::start();
        let path = session_of(&daemon.home, "gone", &turns(1));
        let session = daemon.load(&path);
        std::fs::remove_file(&path).expect("a file");
        if !gone {
            session_of(&daemon.home, "gone", &turns(2));
        }
        let error = daemon.err("session/append", json!({"sessionId": session, "messages": [user("lost?")]}));
        assert_eq!(error["data"]["code"], "storage_error");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("load it again")), "{error}");
        assert_eq!(ids(&mut daemon, &session).len(), 4, "it can still be read");
        assert_eq!(path.exists(), !gone);
    }
}

#[test]
fn a_request_about_a_file_that_was_cut_says_what_to_do_next() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "cut", &turns(100));
    let session = daemon.load(&path);
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
    file.set_len(500).expect("it is cut");
    let exported = daemon.home.path("exported.jsonl");
    for (method, more) in [
        ("session/search", json!({"query": "nowhere to be found"})),
        ("session/fork", json!({})),
        ("session/export", json!({"format": "jsonl", "path": exported})),
    ] {
        let mut params = more;
        params["sessionId"] = json!(session);
        let error = daemon.err(method, params);
        assert_eq!(error["data"]["code"], "storage_error", "{method}: {error}");
        let text = error["message"].as_str().expect("a message");
        assert!(text.contains("it is shorter than it was") && text.contains("load it again"), "{method}: {text}");
    }
    let params = json!({"sessionId": session, "wait": true, "keepRecentTokens": 100, "method": "extractive"});
    let ended = daemon.ok("session/compact", params);
    assert_eq!((ended["outcome"].as_str(), ended["error"]["code"].as_str()), (Some("failed"), Some("storage_error")));
    assert!(ended["errorMessage"].as_str().is_some_and(|text| text.contains("load")), "{ended}");
}

#[test]
fn a_session_of_another_program_is_announced() {
    let mut daemon = Daemon::start();
    let own = daemon.ok("session/new", json!({"cwd": "/somewhere"}))["session"]["path"].clone();
    let folder = daemon.home.path("data/sessions/--elsewhere--");
    // Until the folder is watched nothing is told; so it is done until it is.
    let told = (0..200).find_map(|at| {
        std::fs::create_dir_all(&folder).expect("a folder");
        let name = format!("{at}.jsonl");
        std::fs::write(folder.join(&name), format!("{}\n", header(&name))).expect("a file");
        daemon.next_within(std::time::Duration::from_millis(300), |frame| frame["method"] == "sessions_changed")
    });
    let paths = told.expect("somebody is told")["params"]["paths"].clone();
    assert!(paths.to_string().contains("--elsewhere--") && !paths.to_string().contains(own.as_str().expect("a path")));
}

/// A session file of more than 16 MB, so that it is opened by its end alone.
fn large(home: &Home, marked: bool) -> std::path::PathBuf {
    let mut lines: Vec<Value> = vec![header("large")];
    let filler = text_of(4_000, "filler");
    let mut parent = Value::Null;
    let add = |lines: &mut Vec<Value>, mut line: Value, parent: &mut Value| {
        let id = json!(format!("n{}", lines.len()));
        line["id"] = id.clone();
        line["parentId"] = parent.clone();
        line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        lines.push(line);
        *parent = id;
    };
    if marked {
        let data = json!({"systemPrompt": "A prompt from the very beginning."});
        add(&mut lines, json!({"type": "custom", "customType": "abridged.session", "data": data}), &mut parent);
        add(&mut lines, json!({"type": "session_info", "name": "An old name"}), &mut parent);
        add(
            &mut lines,
            json!({"type": "custom_message", "customType": "abridged.pin", "content": "An old pin.", "display": true}),
            &mut parent,
        );
    }
    for at in 0..560 {
        add(&mut lines, json!({"type": "message", "message": user(&format!("Question {at}. {filler}"))}), &mut parent);
        add(
            &mut lines,
            json!({"type": "message", "message": assistant(&format!("Answer {at}. {filler}"))}),
            &mut parent,
        );
    }
    let first = parent.clone();
    add(
        &mut lines,
        json!({"type": "compaction", "summary": "All of it.", "firstKeptEntryId": first, "tokensBefore": 9}),
        &mut parent,
    );
    add(&mut lines, json!({"type": "message", "message": user("The end.")}), &mut parent);
    home.session("large.jsonl", &lines)
}

#[test]
fn a_large_file_is_opened_by_its_end_and_everything_else_is_found() {
    let mut daemon = Daemon::start();
    let path = large(&daemon.home, false);
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!((&loaded["indexed"], &loaded["session"]["entryCount"]), (&json!(false), &Value::Null));
    let session = loaded["session"]["sessionId"].as_str().expect("an id").to_owned();
    // Sent before the index is there: they wait for it.
    let first = daemon.begin("session/entry", json!({"sessionId": session, "entryId": "n1"}));
    let tree = daemon.begin("session/tree", json!({"sessionId": session, "limit": 2}));
    let old = daemon.begin("session/context", json!({"sessionId": session, "leafEntryId": "n4"}));
    let now = daemon.begin("session/context", json!({"sessionId": session}));
    assert_eq!(daemon.answer(now).expect("a context")["messages"].as_array().map(Vec::len), Some(3));
    let text = daemon.answer(first).expect("an entry")["entry"]["message"]["content"][0]["text"].clone();
    assert!(text.as_str().is_some_and(|text| text.starts_with("Question 0.")));
    assert_eq!(daemon.answer(tree).expect("a tree")["nodes"][1]["id"], "n2");
    assert_eq!(daemon.answer(old).expect("a context")["messages"].as_array().map(Vec::len), Some(4));
    let ready = daemon.until("index_ready");
    assert_eq!(ready["params"]["event"]["entryCount"], 1_122);
    let branch = json!({"sessionId": session, "messages": [user("from the beginning")], "parentEntryId": "n2"});
    daemon.ok("session/append", branch);
    let mut branched = ids(&mut daemon, &session);
    assert_eq!(branched.len(), 3);
    assert_eq!(branched.drain(..2).collect::<Vec<_>>(), ["n1", "n2"]);
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!(status["session"]["entryCount"], 1_123);
}

#[test]
fn what_stands_before_a_compaction_of_another_program_comes_back_with_the_index() {
    let mut daemon = Daemon::start();
    let path = large(&daemon.home, true);
    let session = daemon.load(&path);
    let ready = daemon.until("index_ready");
    assert_eq!(ready["params"]["event"]["title"], "An old name");
    let status = daemon.ok("session/status", json!({"sessionId": session}))["session"].clone();
    assert_eq!(status["title"], "An old name");
    assert!(status["usage"]["breakdown"]["system"].as_u64() > Some(0), "{status:#}");
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let summary = context["messages"][0]["content"][0]["text"].as_str().expect("a text");
    assert_eq!(summary.matches("An old pin.").count(), 1);
    // And it goes on with the next compaction, which carries it.
    daemon.ok("session/append", json!({"sessionId": session, "messages": turns(4)}));
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 100, "wait": true}));
    daemon.ok("session/close", json!({"sessionId": session}));
    daemon.load(&path);
    let status = daemon.ok("session/status", json!({"sessionId": session}))["session"].clone();
    assert_eq!(
        (status["title"].as_str(), status["entryCount"].as_u64()),
        (Some("An old name"), None),
        "without the index"
    );
    assert!(status["usage"]["breakdown"]["system"].as_u64() > Some(0));
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let summary = context["messages"][0]["content"][0]["text"].as_str().expect("a text");
    assert_eq!(summary.matches("An old pin.").count(), 1);
}

#[test]
fn odd_lines_of_a_large_file_are_told_when_they_are_found() {
    let mut daemon = Daemon::start();
    let path = large(&daemon.home, false);
    let text = std::fs::read_to_string(&path).expect("a file");
    let mut lines: Vec<&str> = text.lines().collect();
    lines[9] = "{\"type\":\"mess";
    std::fs::write(&path, lines.join("\n") + "\n{\"type\":\"message\",\"id\":\"torn").expect("a file");
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!(loaded["repairs"][0]["kind"], "torn_tail");
    let ready = daemon.until("index_ready");
    let kinds: Vec<(&str, u64)> = ready["params"]["event"]["repairs"]
        .as_array()
        .expect("repairs")
        .iter()
        .map(|repair| (repair["kind"].as_str().expect("a kind"), repair["line"].as_u64().expect("a line")))
        .collect();
    assert_eq!(kinds, [("corrupt_line", 10), ("missing_parent", 11)]);
}

#[test]
fn an_operation_whose_daemon_died_ends_with_the_next_one() {
    let home = Home::new();
    let path = session_of(&home, "died", &[user(&text_of(600_000, "slow")), assistant("ok"), user("on")]);
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    let answer = daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 1}));
    daemon.until("compaction_start");
    daemon.kill();
    let mut next = Daemon::start();
    let id = next.begin("session/load", json!({"path": path}));
    next.answer(id).expect("it is free");
    let before: Vec<String> = next.kinds();
    assert_eq!(before, Vec::<String>::new(), "nothing is told before the answer");
    let end = next.until("compaction_end");
    assert_eq!(end["params"]["operationId"], answer["operationId"]);
    assert_eq!(end["params"]["event"]["outcome"], "failed");
    next.ok("session/close", json!({"sessionId": session}));
    next.events.clear();
    next.load(&path);
    next.ok("session/status", json!({"sessionId": session}));
    assert!(!next.kinds().contains(&"compaction_end".to_owned()), "once");
}

/// Two programs write as fast as they can, and only one of them knows of a lock.
#[test]
fn nothing_is_lost_where_another_program_writes_at_the_same_time() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "race", &turns(1));
    let session = daemon.load(&path);
    let theirs = path.clone();
    let other = std::thread::spawn(move || {
        for at in 0..150 {
            let text = std::fs::read_to_string(&theirs).expect("a file");
            // The last whole line that somebody wrote.
            let leaf = text.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
            let leaf = leaf.expect("a line")["id"].as_str().expect("an id").to_owned();
            append_to(&theirs, &line(&format!("their{at}"), &leaf, &"x".repeat(at * 40)));
        }
    });
    let mut mine = Vec::new();
    while !other.is_finished() || mine.len() < 20 {
        let answer = daemon.ok("session/append", json!({"sessionId": session, "messages": [user("mine")]}));
        mine.push(answer["entryIds"][0].as_str().expect("an id").to_owned());
    }
    other.join().expect("it wrote everything");
    let text = std::fs::read_to_string(&path).expect("a file");
    let in_file: Vec<String> = text
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).expect("a whole line")["id"].as_str().expect("an id").to_owned()
        })
        .collect();
    for id in (0..150).map(|at| format!("their{at}")).chain(mine) {
        assert_eq!(in_file.iter().filter(|it| **it == id).count(), 1, "{id}");
    }
    // Its picture is the file's, at the latest when it was told of the last line.
    let shown = |daemon: &mut Daemon| {
        let entries = daemon.ok("session/entries", json!({"sessionId": session, "branch": "all"}));
        let entries = entries["entries"].as_array().expect("entries").clone();
        entries.iter().map(|entry| entry["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    let agrees = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        shown(&mut daemon) == in_file[1..]
    });
    assert!(agrees, "{:?} but {:?}", shown(&mut daemon), &in_file[1..]);
}

#[test]
fn a_file_that_was_cut_and_grew_again_is_noticed() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "regrown", &turns(2));
    let session = daemon.load(&path);
    let text = std::fs::read_to_string(&path).expect("a file");
    let kept: String = text.lines().take(3).map(|line| format!("{line}\n")).collect();
    // In place, as an editor may do it.
    let mut file = OpenOptions::new().write(true).truncate(true).open(&path).expect("a file");
    file.write_all((kept + &line("x", "e1", &"y".repeat(text.len()))).as_bytes()).expect("it is written");
    let error = daemon.err("session/append", json!({"sessionId": session, "messages": [user("lost?")]}));
    assert_eq!(error["data"]["code"], "storage_error");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("load it again")), "{error}");
}

#[test]
fn who_looks_at_an_old_file_is_told_when_its_owner_writes_it_anew() {
    let mut owner = Daemon::start();
    let old = json!({"type": "session", "id": "old", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/p"});
    let path =
        owner.home.session("old.jsonl", &[old, json!({"type": "message", "timestamp": "t", "message": user("hi")})]);
    let mut watcher = Daemon::start();
    watcher.ok("session/load", json!({"path": path, "readOnly": true}));
    let session = owner.load(&path);
    owner.ok("session/append", json!({"sessionId": session, "messages": [user("news")]}));
    let notice = watcher.until("notice");
    assert!(
        notice["params"]["event"]["detail"].as_str().is_some_and(|text| text.contains("load it again")),
        "{notice}"
    );
}

/// A compaction of another program carries nothing; what was pinned and configured before it is there all the same.
#[test]
fn a_compaction_of_another_program_takes_nothing_away() {
    for keeps in ["q", "e6"] {
        let mut daemon = Daemon::start();
        let path = session_of(&daemon.home, "theirs", &turns(2));
        let session = daemon.load(&path);
        daemon.ok("session/configure", json!({"sessionId": session, "systemPrompt": "Be brief.", "model": "p/m"}));
        daemon.ok("session/pin", json!({"sessionId": session, "text": "A pinned text."}));
        daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e3"}));
        let appended = daemon.ok("session/append", json!({"sessionId": session, "messages": [user("the newest")]}));
        let leaf = appended["leafEntryId"].clone();
        let compaction = json!({"type": "compaction", "id": "q", "parentId": leaf, "timestamp": "t", "summary": "Theirs.", "firstKeptEntryId": keeps, "tokensBefore": 1});
        append_to(&path, &format!("{compaction}\n"));
        daemon
            .next_within(std::time::Duration::from_secs(60), |frame| frame["params"]["entryId"] == "q")
            .expect("it is told");
        let mut fresh = Daemon::start();
        let id = fresh.ok("session/load", json!({"path": path, "readOnly": true}))["session"]["sessionId"].clone();
        let theirs = fresh.ok("session/context", json!({"sessionId": id}));
        let ours = daemon.ok("session/context", json!({"sessionId": session}));
        assert_eq!(ours["messages"], theirs["messages"], "{keeps}");
        let text = ours["messages"].to_string();
        assert_eq!(text.matches("Looked at part_0").count(), 1, "{text}");
        assert_eq!((text.matches("A pinned text.").count(), text.matches("the newest").count()), (1, 1), "{text}");
        assert_eq!(ours["model"], json!({"provider": "p", "id": "m"}));
        assert!(ours["usage"]["breakdown"]["system"].as_u64() > Some(0));
    }
}
