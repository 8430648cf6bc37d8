//! The session file: whatever it looks like, whoever else has it, and however the daemon ends.

use crate::support::{Daemon, Home, assistant, entries, header, session_of, turns, user};
use abridged::log::{error, files, sealed::Blocking};
use serde_json::{Value, json};
use std::{fs, path::Path};

fn count(daemon: &mut Daemon, session: &str) -> usize {
    let page = daemon.ok("session/entries", json!({"sessionId": session, "branch": "all"}));
    page["entries"].as_array().expect("entries").len()
}

#[test]
fn what_was_answered_survives_a_kill() {
    let mut daemon = Daemon::start();
    let created = daemon.ok("session/new", json!({"cwd": "/project", "title": "Killed"}))["session"].clone();
    let session = created["sessionId"].clone();
    let path = created["path"].as_str().expect("a path").to_owned();
    assert!(path.contains("sessions/--project--/"), "{path}");
    let answer = daemon.ok("session/append", json!({"sessionId": session, "messages": turns(3)}));
    daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 50, "wait": true}));
    daemon.kill();
    let home = std::mem::replace(&mut daemon.home, Home::new());
    let mut daemon = Daemon::at(home);
    let loaded = daemon.ok("session/load", json!({"sessionId": session}));
    assert_eq!(loaded["session"]["title"], "Killed");
    assert_eq!(loaded["session"]["path"], path.as_str());
    assert_eq!(loaded["indexed"], true);
    for id in answer["entryIds"].as_array().expect("ids") {
        daemon.ok("session/entry", json!({"sessionId": session, "entryId": id}));
    }
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    assert!(context["compactionEntryId"].is_string());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn appends_that_come_together_share_their_writes() {
    let mut daemon = Daemon::start();
    let session = daemon.ok("session/new", json!({"cwd": "/project"}))["session"]["sessionId"].clone();
    let before =
        daemon.ok("session/status", json!({"sessionId": session}))["_meta"]["fsyncs"].as_u64().expect("a count");
    let sent: String = (0..64)
        .map(|id| {
            let params = json!({"sessionId": session, "messages": [user("x")]});
            format!("{}\n", json!({"jsonrpc": "2.0", "id": 500 + id, "method": "session/append", "params": params}))
        })
        .collect();
    daemon.write(sent.as_bytes());
    let mut answers = 0;
    while answers < 64 {
        answers += usize::from(daemon.frame()["result"]["entryIds"].is_array());
    }
    let after =
        daemon.ok("session/status", json!({"sessionId": session}))["_meta"]["fsyncs"].as_u64().expect("a count");
    // The pipe may hand them over in two pieces; one by one would be 64.
    assert!(after - before <= 6, "{} fsyncs", after - before);
}

#[test]
fn a_file_cut_at_any_byte_opens_with_every_whole_line_or_says_what_it_is() {
    let home = Home::new();
    let mut lines = vec![header("cut")];
    lines.extend(entries(&[user("first"), assistant("second"), user("third")]));
    let path = home.session("cut.jsonl", &lines);
    let bytes = fs::read(&path).expect("a file");
    let header_end = bytes.iter().position(|byte| *byte == b'\n').expect("a line");
    for length in 0..=bytes.len() {
        fs::write(&path, &bytes[..length]).expect("a file");
        match files::open(&path, &Blocking::is_allowed_here()) {
            Err(error::StoreError::Foreign { .. }) => {
                assert!(length < header_end, "{length}");
                assert_eq!(fs::read(&path).expect("a file").len(), length, "left as it was");
            }
            Err(error) => panic!("{length}: {error}"),
            Ok(files::Opened { mut log, history, repairs, .. }) => {
                let whole =
                    bytes[..length].split(|byte| *byte == b'\n').skip(1).filter(|line| line.ends_with(b"}}")).count();
                assert_eq!(history.entry_count(), Some(whole), "{length}");
                let torn = repairs.iter().any(|repair| repair.kind == "torn_tail");
                let line = r#"{"type":"custom","id":"new","parentId":null,"timestamp":"","customType":"x"}"#.to_owned();
                log.append(&[line], None).expect("a write");
                drop(log);
                let again = files::open_read_only(&path, &Blocking::is_allowed_here()).expect("it opens again");
                assert_eq!(again.history.entry_count(), Some(whole + 1), "{length}");
                assert!(again.repairs.is_empty(), "{length}: {:?}", again.repairs);
                let moved = home.path("cut.jsonl.torn");
                assert_eq!(moved.exists(), torn, "{length}");
                if torn {
                    let kept = fs::read(&moved).expect("a file");
                    assert!(bytes[..length].ends_with(&kept) && !kept.is_empty(), "nothing is lost");
                    fs::remove_file(&moved).expect("a file");
                }
            }
        }
    }
}

#[test]
fn a_corrupt_line_in_the_middle_is_told_and_everything_else_is_there() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "corrupt", &turns(5));
    let text = fs::read_to_string(&path).expect("a file");
    let mut lines: Vec<&str> = text.lines().collect();
    let half = &lines[7][..30].to_owned();
    lines[7] = half;
    fs::write(&path, lines.join("\n") + "\n").expect("a file");
    let loaded = daemon.ok("session/load", json!({"path": path}));
    let kinds: Vec<(&str, Option<u64>)> = loaded["repairs"]
        .as_array()
        .expect("repairs")
        .iter()
        .map(|repair| (repair["kind"].as_str().expect("a kind"), repair["line"].as_u64()))
        .collect();
    assert_eq!(kinds, [("corrupt_line", Some(8))]);
    let session = loaded["session"]["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(count(&mut daemon, &session), 20, "a placeholder stands for the line");
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let seen: Vec<&str> = context["entryIds"].as_array().expect("ids").iter().filter_map(Value::as_str).collect();
    let expected: Vec<String> = (0..20).filter(|at| *at != 6).map(|at| format!("e{at}")).collect();
    assert_eq!(seen, expected, "everything before the line is in the context");
    daemon.ok("session/append", json!({"sessionId": session, "messages": [user("on we go")]}));
    let now = fs::read_to_string(&path).expect("a file");
    assert!(now.starts_with(&(lines.join("\n") + "\n")), "not a byte of the file was changed");
}

#[test]
fn what_is_no_session_is_told_with_what_to_do_and_left_alone() {
    let mut daemon = Daemon::start();
    let home = daemon.home.path("odd");
    fs::create_dir_all(&home).expect("a folder");
    let cases: [(&str, Option<&[u8]>, &str); 7] = [
        ("missing.jsonl", None, "not_found"),
        ("empty.jsonl", Some(b""), "invalid_params"),
        ("blank.jsonl", Some(b"\n\n"), "invalid_params"),
        ("text.md", Some(b"# Notes\n"), "invalid_params"),
        ("other.jsonl", Some(b"{\"type\":\"response\",\"id\":1}\n"), "invalid_params"),
        ("binary.bin", Some(b"\x00\xff\xfe\n"), "invalid_params"),
        ("number.json", Some(b"7"), "invalid_params"),
    ];
    for (name, bytes, expected) in cases {
        let path = home.join(name);
        if let Some(bytes) = bytes {
            fs::write(&path, bytes).expect("a file");
        }
        let error = daemon.err("session/load", json!({"path": path}));
        assert_eq!(error["data"]["code"], expected, "{name}: {error}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(name)), "{error}");
        assert_eq!(fs::read(&path).ok().as_deref(), bytes);
        assert!(!home.join(format!("{name}.lock")).exists(), "{name}: no litter");
    }
    let error = daemon.err("session/load", json!({"path": home}));
    assert_eq!(error["data"]["code"], "storage_error");
    assert_eq!(error["data"]["errno"], 21);
    let error = daemon.err("session/load", json!({"sessionId": "nobody"}));
    assert_eq!(error["data"]["kind"], "session");
    let error = daemon.err("session/load", json!({"path": "/dev/null"}));
    assert_eq!(error["data"]["code"], "invalid_params");
}

#[test]
fn a_session_of_another_process_is_locked_and_may_be_looked_at() {
    let mut first = Daemon::start();
    let path = session_of(&first.home, "shared", &turns(3));
    let session = first.load(&path);
    let mut second = Daemon::start();
    let error = second.err("session/load", json!({"path": path}));
    assert_eq!(error["code"], -32004);
    assert_eq!(error["data"]["pid"], first.pid());
    assert!(error["message"].as_str().is_some_and(|text| text.contains("readOnly: true")));
    let loaded = second.ok("session/load", json!({"path": path, "readOnly": true}));
    assert_eq!(loaded["session"]["entryCount"], 12);
    for (method, params) in [
        ("session/append", json!({"sessionId": session, "messages": [user("no")]})),
        ("session/compact", json!({"sessionId": session, "keepRecentTokens": 10})),
    ] {
        let error = second.err(method, params);
        assert_eq!(error["data"]["code"], "storage_error", "{method}");
    }
    second.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 10, "dryRun": true}));
    first.kill();
    let mut third = Daemon::start();
    assert_eq!(third.load(&path), session, "the lock died with its process");
}

#[test]
fn another_name_or_another_lock_file_makes_no_second_writer() {
    let mut first = Daemon::start();
    let path = session_of(&first.home, "shared", &turns(3));
    first.load(&path);
    let other_name = first.home.path("other.jsonl");
    fs::hard_link(&path, &other_name).expect("a second name");
    fs::remove_file(first.home.path("shared.jsonl.lock")).expect("the lock file");
    for path in [path.clone(), other_name] {
        let mut second = Daemon::start();
        let error = second.err("session/load", json!({"path": path}));
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32004), &json!("locked")), "{error}");
        second.ok("session/load", json!({"path": path, "readOnly": true}));
    }
    first.kill();
    Daemon::start().load(&path);
}

#[test]
fn an_old_file_is_replaced_at_the_first_write_and_kept() {
    let mut daemon = Daemon::start();
    let mut lines = vec![
        json!({"type": "session", "id": "old", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/p", "provider": "anthropic", "modelId": "claude", "thinkingLevel": "high"}),
    ];
    for message in turns(3) {
        lines.push(json!({"type": "message", "timestamp": "2025-01-01T00:00:00.000Z", "message": message}));
    }
    lines.push(json!({"type": "compaction", "timestamp": "2025-01-01T00:00:00.000Z", "summary": "So far.", "firstKeptEntryIndex": 9, "tokensBefore": 5}));
    lines.push(json!({"type": "message", "timestamp": "2025-01-01T00:00:00.000Z", "message": {"role": "hookMessage", "content": "from a hook"}}));
    let path = daemon.home.session("old.jsonl", &lines);
    let bytes = fs::read(&path).expect("a file");
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!(loaded["session"]["model"], json!({"provider": "anthropic", "id": "claude"}));
    assert_eq!(loaded["session"]["thinkingLevel"], "high");
    assert_eq!(loaded["repairs"][0]["kind"], "migrated");
    let session = loaded["session"]["sessionId"].as_str().expect("an id").to_owned();
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let texts: Vec<String> = context["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|message| {
            message["content"][0]["text"]
                .as_str()
                .or(message["content"].as_str())
                .unwrap_or_default()
                .chars()
                .take(9)
                .collect()
        })
        .collect();
    assert_eq!(texts, ["The earli", "Request 2", "", "The part_", "Looked at", "from a ho"]);
    assert_eq!(fs::read(&path).expect("a file"), bytes, "looking changes nothing");
    let ids = |daemon: &mut Daemon| -> Vec<Value> {
        let page = daemon.ok("session/entries", json!({"sessionId": session, "branch": "all"}));
        page["entries"].as_array().expect("entries").iter().map(|entry| entry["id"].clone()).collect()
    };
    let before = ids(&mut daemon);
    daemon.ok("session/append", json!({"sessionId": session, "messages": [user("new")]}));
    assert_eq!(fs::read(daemon.home.path("old.jsonl.v1")).expect("the old file"), bytes);
    daemon.ok("session/close", json!({"sessionId": session}));
    let again = daemon.ok("session/load", json!({"path": path}));
    assert_eq!(again["repairs"], json!([]));
    assert_eq!(ids(&mut daemon)[..before.len()], before[..], "the ids are what they were before it was written");
    let first = fs::read_to_string(&path).expect("a file").lines().next().map(str::to_owned).expect("a header");
    assert_eq!(serde_json::from_str::<Value>(&first).expect("JSON")["version"], 3);
}

#[test]
fn lines_of_other_programs_are_kept_and_understood() {
    let mut daemon = Daemon::start();
    let mut lines = vec![json!({"type": "title", "v": 1, "title": "From another agent", "pad": "   "}), header("omp")];
    lines.extend(entries(&[user("before"), assistant("gone")]));
    for (at, mut line) in [
        json!({"type": "reset_boundary"}),
        json!({"type": "service_tier_change", "serviceTier": "flex", "x": [1, 2]}),
        json!({"type": "message", "message": {"role": "toolResult", "toolCallId": "nobody", "content": []}}),
        json!({"type": "message", "message": {"role": "user", "content": "after"}}),
        json!({"type": "branch_summary", "fromId": "e1", "summary": "Tried the other way."}),
        json!({"type": "custom_message", "customType": "note", "content": "of an extension", "display": true}),
        json!({"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 0, "excludeFromContext": true}}),
        json!({"type": "message", "message": {"role": "nonsense"}}),
        json!({"type": "context_edit", "targetId": "x3", "replacement": {"content": "after, edited"}}),
    ]
    .into_iter()
    .enumerate()
    {
        line["id"] = json!(format!("x{at}"));
        line["parentId"] = json!(if at == 0 { "e1".to_owned() } else { format!("x{}", at - 1) });
        line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
        lines.push(line);
    }
    let path = daemon.home.session("omp.jsonl", &lines);
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!(loaded["session"]["title"], "From another agent");
    assert_eq!(loaded["repairs"][0]["kind"], "unreadable_entry", "a message of a role nobody knows");
    assert_eq!(loaded["repairs"][0]["line"], 12);
    let session = loaded["session"]["sessionId"].clone();
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let seen = context["messages"].as_array().expect("messages");
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[0]["content"], "after, edited");
    assert!(seen[1]["content"][0]["text"].as_str().is_some_and(|text| text.contains("Tried the other way.")));
    assert_eq!((seen[2]["role"].as_str(), seen[2]["content"].as_str()), (Some("user"), Some("of an extension")));
    assert_eq!(context["entryIds"], json!(["x3", "x4", "x5"]));
    for line in &lines[2..] {
        let entry = daemon.ok("session/entry", json!({"sessionId": session, "entryId": line["id"]}))["entry"].clone();
        assert_eq!(entry, *line);
    }
}

#[test]
fn a_disk_that_is_full_refuses_the_write_and_takes_the_next_one() {
    let home = Home::new();
    let script = format!("ulimit -f 40; exec {} serve", env!("CARGO_BIN_EXE_abridged"));
    let mut command = std::process::Command::new("bash");
    command
        .args(["-c", &script])
        .env("ABRIDGED_DATA_DIR", home.path("data"))
        .env("ABRIDGED_CONFIG_DIR", home.path("config"));
    let mut daemon = Daemon::of(home, command);
    daemon.ok("initialize", json!({}));
    let created = daemon.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
    let session = created["sessionId"].clone();
    let path = created["path"].as_str().expect("a path").to_owned();
    daemon.ok("session/append", json!({"sessionId": session, "messages": [user("small")]}));
    let bytes = fs::read(&path).expect("a file");
    let error =
        daemon.err("session/append", json!({"sessionId": session, "messages": [user(&"large ".repeat(20_000))]}));
    assert_eq!(error["code"], -32009);
    assert_eq!(error["data"]["errno"], 27);
    assert_eq!(error["data"]["path"], path.as_str());
    assert!(error["message"].as_str().is_some_and(|text| text.contains("Make room")), "{error}");
    assert_eq!(fs::read(&path).expect("a file"), bytes, "what was written of it is cut off again");
    assert_eq!(count(&mut daemon, session.as_str().expect("an id")), 1);
    daemon.ok("session/append", json!({"sessionId": session, "messages": [user("small again")]}));
    assert!(Path::new(&path).metadata().expect("a file").len() > bytes.len() as u64);
}

/// pi does not know our lock. What it appends is taken in, never overwritten, and ours goes on from there.
#[test]
fn what_another_program_appends_is_read_on() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "strange", &turns(20));
    let session = daemon.load(&path);
    let strange = |id: &str, parent: &str, end: &str| {
        let line = json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t", "message": user("from elsewhere")});
        let mut file = fs::OpenOptions::new().append(true).open(&path).expect("a file");
        std::io::Write::write_all(&mut file, format!("{line}{end}").as_bytes()).expect("a write");
    };
    strange("s1", "e79", "\n");
    let answer = daemon.ok("session/append", json!({"sessionId": session, "messages": [user("ours")]}));
    let ours =
        daemon.ok("session/entry", json!({"sessionId": session, "entryId": answer["entryIds"][0]}))["entry"].clone();
    assert_eq!(ours["parentId"], "s1");
    assert_eq!(daemon.until("entry_appended")["params"]["entryId"], "s1", "and it is announced");
    let leaf = ours["id"].as_str().expect("an id").to_owned();
    strange("s2", &leaf, "\n{\"type\":\"mess");
    let done = daemon.ok("session/compact", json!({"sessionId": session, "keepRecentTokens": 0, "wait": true}));
    assert_eq!(done["outcome"], "completed");
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    assert_eq!(context["entryIds"], json!([null, "s2"]), "what came meanwhile is kept");
    assert!(!daemon.home.path("strange.jsonl.torn").exists(), "nothing is cut while others may be writing");
    let again = files::open_read_only(&path, &Blocking::is_allowed_here()).expect("it opens");
    let kinds: Vec<&str> = again.repairs.iter().map(|repair| repair.kind).collect();
    assert_eq!(kinds, ["corrupt_line"], "the half line is there, and in nobody's way");
}

/// A small disk of its own, where the test may make one.
pub struct Disk(std::path::PathBuf);

impl Disk {
    pub fn mount(at: std::path::PathBuf) -> Option<Self> {
        fs::create_dir_all(&at).expect("a folder");
        let mounted =
            std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=128k", "tmpfs"]).arg(&at).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(at));
        }
        eprintln!("SKIPPED: this user may not mount a disk");
        None
    }

    pub fn make_read_only(&self) {
        let done = std::process::Command::new("mount").args(["-o", "remount,ro"]).arg(&self.0).status();
        assert!(done.expect("mount runs").success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_real_disk_that_is_full_or_read_only_is_told_and_nothing_is_lost() {
    let home = Home::new();
    let Some(disk) = Disk::mount(home.path("data")) else { return };
    let mut daemon = Daemon::at(home);
    let created = daemon.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
    let session = created["sessionId"].clone();
    let path = created["path"].as_str().expect("a path").to_owned();
    daemon.ok("session/append", json!({"sessionId": session, "messages": turns(2)}));
    let bytes = fs::read(&path).expect("a file");
    let error = daemon.err("session/append", json!({"sessionId": session, "messages": [user(&"b".repeat(200_000))]}));
    assert_eq!((error["code"].as_i64(), error["data"]["errno"].as_i64()), (Some(-32009), Some(28)), "{error}");
    assert_eq!(fs::read(&path).expect("a file"), bytes);
    daemon.ok("session/append", json!({"sessionId": session, "messages": [user("small again")]}));
    daemon.ok("session/close", json!({"sessionId": session}));
    disk.make_read_only();
    let error = daemon.err("session/load", json!({"path": path}));
    assert_eq!(error["data"]["errno"], 30);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("readOnly: true")), "{error}");
    assert_eq!(daemon.ok("session/load", json!({"path": path, "readOnly": true}))["session"]["entryCount"], 9);
    assert_eq!(daemon.err("session/new", json!({"cwd": "/other"}))["data"]["errno"], 30);
    // The folder can only go when nothing is mounted in it any more.
    let home = std::mem::replace(&mut daemon.home, Home::new());
    drop(daemon);
    drop(disk);
    drop(home);
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let home = Home::new();
    fs::write(home.path("data"), "a file where the folder should be").expect("a file");
    let mut daemon = Daemon::at(home);
    let error = daemon.err("session/new", json!({"cwd": "/project"}));
    assert_eq!(error["data"]["code"], "storage_error");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("ABRIDGED_DATA_DIR")), "{error}");
    daemon.ok("session/new", json!({"cwd": "/project", "ephemeral": true}));
}

#[test]
fn two_files_of_one_session_are_not_mixed_up() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "twin", &turns(2));
    let copy = daemon.home.path("copy.jsonl");
    fs::copy(&path, &copy).expect("a copy");
    let session = daemon.load(&path);
    assert_eq!(daemon.load(&path), session, "loading it again describes it");
    let error = daemon.err("session/load", json!({"path": copy}));
    assert_eq!(error["data"]["path"], "path");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("close that one first")), "{error}");
}

/// A strange line leaves the lines before it in the context.
#[test]
fn odd_lines_cut_nothing_off() {
    let mut daemon = Daemon::start();
    let mut lines = vec![header("odd")];
    lines.extend(entries(&[user("first"), assistant("second")]));
    let path = daemon.home.session("odd.jsonl", &lines);
    let mut text = fs::read_to_string(&path).expect("a file");
    text.push_str(r#"{"type":"weird","id":"w","parentId":"e1","timestamp":7,"name":{"x":1},"label":[]}"#);
    text.push('\n');
    text.push_str(r#"{"type":"message","id":"m","parentId":"w","timestamp":"t","message":{"role":"user","content":"cut emoji \ud83d"}}"#);
    text.push('\n');
    fs::write(&path, &text).expect("a file");
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!(loaded["repairs"], json!([]));
    let session = loaded["session"]["sessionId"].clone();
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    assert_eq!(context["entryIds"], json!(["e0", "e1", "m"]));
    assert_eq!(context["messages"][2]["content"], "cut emoji \u{fffd}");
    assert_eq!(fs::read_to_string(&path).expect("a file"), text);
}

#[test]
fn keep_last_messages_is_understood_in_a_file_of_today_too() {
    let mut daemon = Daemon::start();
    let mut lines = vec![header("counted")];
    lines.extend(entries(&turns(3)));
    lines.push(json!({"type": "compaction", "id": "c", "parentId": "e11", "timestamp": "t", "summary": "S", "keepLastMessages": 4, "tokensBefore": 1}));
    let path = daemon.home.session("counted.jsonl", &lines);
    let session = daemon.load(&path);
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    assert_eq!(context["entryIds"], json!([null, "e8", "e9", "e10", "e11"]));
}

#[test]
fn what_came_to_an_old_file_since_it_was_opened_is_in_the_new_one() {
    let mut daemon = Daemon::start();
    let old = |message: Value| json!({"type": "message", "timestamp": "2025-01-01T00:00:00.000Z", "message": message});
    let lines = [
        json!({"type": "session", "id": "grown", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/p"}),
        old(user("one")),
        old(assistant("two")),
    ];
    let path = daemon.home.session("grown.jsonl", &lines);
    let session = daemon.load(&path);
    let mut text = fs::read_to_string(&path).expect("a file");
    text.push_str(&format!("{}\n", old(user("three, from elsewhere"))));
    fs::write(&path, &text).expect("a file");
    daemon.ok("session/append", json!({"sessionId": session, "messages": [assistant("four")]}));
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let texts: Vec<&str> = context["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|it| it["content"][0]["text"].as_str().expect("a text"))
        .collect();
    assert_eq!(texts, ["one", "two", "three, from elsewhere", "four"]);
    assert_eq!(fs::read_to_string(daemon.home.path("grown.jsonl.v1")).expect("the old file"), text);
}

#[test]
fn requests_behind_a_close_or_a_load_find_the_session() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "wire", &turns(3));
    let load = daemon.begin("session/load", json!({"path": path}));
    let append = daemon.begin("session/append", json!({"sessionId": "wire", "messages": [user("pipelined")]}));
    let nobody = daemon.begin("session/status", json!({"sessionId": "nobody"}));
    let dry = daemon.begin("session/compact", json!({"sessionId": "wire", "keepRecentTokens": 10, "dryRun": true}));
    let close = daemon.begin("session/close", json!({"sessionId": "wire"}));
    let again = daemon.begin("session/load", json!({"path": path}));
    let status = daemon.begin("session/status", json!({"sessionId": "wire"}));
    assert!(daemon.answer(load).is_ok());
    assert!(daemon.answer(append).is_ok());
    assert_eq!(daemon.answer(nobody).expect_err("nobody")["data"]["code"], "not_found");
    match daemon.answer(dry) {
        Ok(answer) => assert!(answer["preparation"].is_object()),
        Err(error) => assert_eq!(error["data"]["code"], "request_cancelled", "{error}"),
    }
    assert!(daemon.answer(close).is_ok());
    assert!(daemon.answer(again).is_ok());
    assert_eq!(daemon.answer(status).expect("it is open")["session"]["entryCount"], 13);
    assert!(daemon.home.path("wire.jsonl.lock").exists());
    daemon.ok("session/close", json!({"sessionId": "wire"}));
    assert!(!daemon.home.path("wire.jsonl.lock").exists(), "no litter");
}

#[test]
fn a_session_that_is_open_takes_what_a_second_load_gives() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "given", &turns(1));
    let session = daemon.ok("session/load", json!({"path": path, "readOnly": true}))["session"]["sessionId"].clone();
    let error = daemon.err("session/append", json!({"sessionId": session, "messages": [user("x")]}));
    assert_eq!(error["data"]["retryable"], false);
    assert_eq!(daemon.err("session/load", json!({"path": path}))["data"]["path"], "readOnly");
    daemon.ok("session/close", json!({"sessionId": session}));
    daemon.load(&path);
    let settings = json!({"models": [{"provider": "p", "id": "m", "contextWindow": 5_000}]});
    let loaded = daemon.ok("session/load", json!({"path": path, "model": "p/m", "settings": settings}));
    assert_eq!(loaded["session"]["usage"]["contextWindow"], 5_000);
    let error = daemon.err("session/load", json!({"path": path, "settings": {"compaction": 7}}));
    assert_eq!(error["data"]["path"], "settings.compaction");
}

/// A key that is there twice makes a line no entry, whoever reads it: it is told, and everything else is there.
#[test]
fn a_line_with_a_key_twice_is_told_and_in_nobodys_way() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "keys", &turns(2));
    let mut text = fs::read_to_string(&path).expect("a file");
    text.push_str("{\"type\":\"model_change\",\"id\":\"m\",\"parentId\":\"e7\",\"timestamp\":\"x\",\"timestamp\":\"y\",\"provider\":\"p\",\"modelId\":\"q\"}\n");
    let compaction = json!({"type": "compaction", "id": "c", "parentId": "e7", "summary": "s", "firstKeptEntryId": "c", "tokensBefore": 1});
    text.push_str(&format!("{compaction}\n"));
    fs::write(&path, text).expect("a file");
    let loaded = daemon.ok("session/load", json!({"path": path}));
    assert_eq!(loaded["repairs"][0]["kind"], "corrupt_line");
    let session = loaded["session"]["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(daemon.ok("session/tree", json!({"sessionId": session}))["nodes"].as_array().map(Vec::len), Some(10));
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    assert_eq!(context["messages"].as_array().map(Vec::len), Some(1));
}
