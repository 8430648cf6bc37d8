//! Texts whose trees would take some hundred times their bytes: requests are refused, and entries of a file are kept and not
//! read. The memory of the daemon grows with the bytes alone.

use crate::support::*;
use serde_json::{Value, json};
use std::fs;

/// Members of a list of small values, in bytes. A tree of each list takes more than a gigabyte.
const BYTES: usize = 8 << 20;

/// The most memory of a daemon in these tests, in MB.
const MOST: u64 = 300;

/// A list with so many bytes of small values.
fn list(bytes: usize) -> String {
    format!("[{}0]", r#"{"":1},"#.repeat(bytes / 7))
}

/// The most memory that a process had so far, in MB.
fn peak(daemon: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).expect("a number") / 1024
}

/// The error of a request whose params are given as text.
fn refused(daemon: &mut Daemon, method: &str, params: &str) -> Value {
    let id = daemon.take_id();
    daemon.write(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#).as_bytes());
    daemon.write(b"\n");
    daemon.answer(id).expect_err("it is refused")
}

#[test]
fn requests_with_more_values_than_the_limit_are_refused_and_cost_little() {
    let mut daemon = Daemon::start();
    let id = daemon.new_session(json!({"cwd": "/project"}));
    let many = list(BYTES);
    let call = format!(
        r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"a","name":"b","arguments":{{"x":{many}}}}}]}}"#
    );
    let result = format!(r#"{{"role":"toolResult","toolCallId":"a","toolName":"b","content":[],"details":{many}}}"#);
    let used = format!(
        r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"b","input":{{"x":{many}}}}}]}}"#
    );
    for (method, params, path) in [
        ("settings/set", format!(r#"{{"scope":"session","sessionId":"{id}","patch":{{"x":{many}}}}}"#), "patch"),
        ("settings/set", format!(r#"{{"scope":"global","patch":{{"x":{many}}}}}"#), "patch"),
        ("session/new", format!(r#"{{"cwd":"/project","settings":{{"x":{many}}}}}"#), "settings"),
        (
            "session/configure",
            format!(r#"{{"sessionId":"{id}","tools":[{{"name":"a","inputSchema":{{"x":{many}}}}}]}}"#),
            "tools",
        ),
        ("session/status", format!(r#"{{"sessionId":"{id}","_meta":{many}}}"#), "_meta"),
        (
            "session/append",
            format!(r#"{{"sessionId":"{id}","messages":[{{"role":"user","content":{many}}}]}}"#),
            "messages[0]",
        ),
        ("session/append", format!(r#"{{"sessionId":"{id}","messages":[{call}]}}"#), "messages[0]"),
        (
            "session/append",
            format!(r#"{{"sessionId":"{id}","messages":[{{"role":"user","content":"x"}},{result}]}}"#),
            "messages[1]",
        ),
        (
            "session/append",
            format!(r#"{{"sessionId":"{id}","format":"anthropic","messages":[{used}]}}"#),
            "messages[0]",
        ),
    ] {
        let error = refused(&mut daemon, method, &params);
        let told = (error["data"]["code"].as_str(), error["data"]["path"].as_str());
        assert_eq!(told, (Some("invalid_params"), Some(path)), "{method}: {error}");
        let text = error["message"].as_str().expect("a message");
        assert!(text.contains("more than 300000 values and keys") && text.contains("large data as one text"), "{text}");
    }
    assert!(peak(&daemon) < MOST, "{} MB", peak(&daemon));
    assert_eq!(daemon.context(&id)["messages"], json!([]));
}

#[test]
fn messages_are_the_only_params_that_stay_text() {
    let served = Daemon::start().ok("rpc.discover", json!({}));
    let has = |method: &&Value| {
        method["params"].as_array().is_some_and(|params| params.iter().any(|it| it["name"] == "messages"))
    };
    let methods = served["methods"].as_array().expect("methods").iter();
    assert_eq!(
        methods.filter(has).map(|method| &method["name"]).collect::<Vec<_>>(),
        ["session/append", "context/fit"]
    );
}

#[test]
fn an_append_with_more_messages_than_the_limit_is_refused_and_costs_little() {
    let mut daemon = Daemon::start();
    let id = daemon.new_session(json!({"cwd": "/project"}));
    let messages = vec![r#"{"role":"user","content":"x"}"#; 400_000].join(",");
    let error = refused(&mut daemon, "session/append", &format!(r#"{{"sessionId":"{id}","messages":[{messages}]}}"#));
    let text = error["message"].as_str().expect("a message");
    assert_eq!(
        (error["data"]["code"].as_str(), error["data"]["path"].as_str()),
        (Some("invalid_params"), Some("messages"))
    );
    assert!(text.contains("at most 50000 messages; send the rest in another one"), "{text}");
    assert!(peak(&daemon) < MOST, "{} MB", peak(&daemon));
}

/// The line of an entry whose fields are given as text.
fn line(kind: &str, id: &str, parent: &str, fields: &str) -> String {
    let timestamp = "2026-01-01T00:00:00.000Z";
    format!(r#"{{"type":"{kind}","id":"{id}","parentId":"{parent}","timestamp":"{timestamp}",{fields}}}"#)
}

#[test]
fn entries_with_more_values_than_the_limit_are_kept_and_named_and_not_read() {
    let many = list(BYTES);
    let call = format!(r#"[{{"type":"toolCall","id":"a","name":"b","arguments":{{"x":{many}}}}}]"#);
    let planted = [
        ("custom", format!(r#""customType":"abridged.session","data":{{"settings":{{"x":{many}}}}}"#)),
        ("custom", format!(r#""customType":"other","data":{many}"#)),
        ("message", format!(r#""message":{{"role":"assistant","content":{call},"stopReason":"toolUse"}}"#)),
        ("compaction", format!(r#""summary":"S","firstKeptEntryId":"e0","tokensBefore":5,"details":{many}"#)),
        ("branch_summary", format!(r#""fromId":"e0","summary":"B","details":{many}"#)),
        ("context_edit", format!(r#""targetId":"e0","replacement":{{"content":{many}}}"#)),
        ("reset_boundary", format!(r#""systemMessage":{many}"#)),
    ];
    let home = Home::new();
    let first = json!({"type": "message", "id": "e0", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z",
        "message": user("Look at the parser.")});
    let mut lines = vec![header("planted").to_string(), first.to_string()];
    for (at, (kind, fields)) in planted.iter().enumerate() {
        lines.push(line(kind, &format!("e{}", at + 1), &format!("e{at}"), fields));
    }
    let path = home.path("planted.jsonl");
    let bytes = lines.join("\n") + "\n";
    fs::write(&path, &bytes).expect("a file");

    let mut daemon = Daemon::at(home);
    let loaded = daemon.ok("session/load", json!({"path": path}));
    let mut repairs = loaded["repairs"].as_array().expect("repairs").clone();
    if loaded["indexed"] != json!(true) {
        repairs = daemon.until("index_ready")["params"]["event"]["repairs"].as_array().expect("repairs").clone();
    }
    let id = loaded["session"]["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(daemon.context(&id)["entryIds"], json!(["e0"]));
    let named: Vec<_> = repairs.iter().map(|it| (it["kind"].as_str(), it["line"].as_u64())).collect();
    let expected: Vec<_> = (0..planted.len()).map(|at| (Some("unreadable_entry"), Some(at as u64 + 3))).collect();
    assert_eq!(named, expected, "{repairs:#?}");
    assert!(repairs.iter().all(|it| it["detail"].as_str().is_some_and(|it| it.contains("300000 values and keys"))));
    assert_eq!(fs::read_to_string(&path).expect("a file"), bytes, "nothing of the file is changed");
    daemon.append(&id, &[user("Go on.")]);
    assert_eq!(daemon.context(&id)["messages"].as_array().map(Vec::len), Some(2));
    assert!(peak(&daemon) < MOST, "{} MB", peak(&daemon));
}

#[test]
fn many_entries_below_the_limit_stay_text() {
    let some = list(600_000);
    for (kind, fields) in [
        ("custom", format!(r#""customType":"other","data":{some}"#)),
        ("branch_summary", format!(r#""fromId":"e0","summary":"B","details":{some}"#)),
        ("context_edit", format!(r#""targetId":"e0","replacement":{{"content":{some}}}"#)),
    ] {
        let home = Home::new();
        let first = json!({"type": "message", "id": "e0", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z",
            "message": user("Look at the parser.")});
        let mut lines = vec![header("planted").to_string(), first.to_string()];
        lines.extend((1..25).map(|at| line(kind, &format!("e{at}"), &format!("e{}", at - 1), &fields)));
        let path = home.path("planted.jsonl");
        fs::write(&path, lines.join("\n") + "\n").expect("a file");
        let mut daemon = Daemon::at(home);
        let loaded = daemon.ok("session/load", json!({"path": path}));
        assert_eq!(loaded["session"]["entryCount"], 25, "{kind}");
        assert!(peak(&daemon) < MOST, "{kind}: {} MB", peak(&daemon));
    }
}

#[test]
fn entries_of_an_old_version_are_read_one_at_a_time() {
    let home = Home::new();
    let path = home.path("old.jsonl");
    let mut lines = vec![json!({"type": "session", "id": "old", "cwd": "/project"}).to_string()];
    // Each is below the limit.
    let some = list(600_000);
    let entry = |data: &str| format!(r#"{{"type":"custom","customType":"other","data":{data}}}"#);
    lines.extend((0..12).map(|_| entry(&some)));
    lines.push(entry(&list(BYTES)));
    lines.push(json!({"type": "message", "message": user("Look at the parser.")}).to_string());
    fs::write(&path, lines.join("\n") + "\n").expect("a file");
    let mut daemon = Daemon::at(home);
    let loaded = daemon.ok("session/load", json!({"path": path}));
    let repairs = loaded["repairs"].as_array().expect("repairs");
    let named: Vec<_> = repairs.iter().map(|it| (it["kind"].as_str(), it["line"].as_u64())).collect();
    assert_eq!(named, [(Some("corrupt_line"), Some(14)), (Some("migrated"), None)], "{repairs:#?}");
    let id = loaded["session"]["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(daemon.context(&id)["messages"].as_array().map(Vec::len), Some(1));
    assert!(peak(&daemon) < MOST, "{} MB", peak(&daemon));
}

#[test]
fn settings_that_are_longer_than_a_file_of_them_are_ignored_and_refused() {
    let long = json!({"compaction": {"reserveTokens": 500}, "zebra": "x".repeat(1 << 20)});
    let home = Home::new();
    let data = json!({"type": "custom", "customType": "abridged.session", "id": "s0", "parentId": null,
        "timestamp": "2026-01-01T00:00:00.000Z", "data": {"systemPrompt": "Be brief.", "settings": long}});
    let path = home.session("long.jsonl", &[header("long"), data]);
    let mut daemon = Daemon::at(home);
    let loaded = daemon.ok("session/load", json!({"path": path}));
    let detail = loaded["repairs"][0]["detail"].as_str().expect("a repair");
    assert!(detail.contains("bytes, and the most is 1048576"), "{detail}");
    assert_eq!(loaded["repairs"][0]["kind"], "invalid_setting");
    let held = daemon.ok("settings/get", json!({"sessionId": "long"}))["settings"].clone();
    assert_ne!(held["compaction"]["reserveTokens"], 500);
    let error = daemon.err("session/new", json!({"cwd": "/project", "settings": long}));
    assert_eq!(
        (error["data"]["code"].as_str(), error["data"]["path"].as_str()),
        (Some("invalid_params"), Some("settings"))
    );
}
