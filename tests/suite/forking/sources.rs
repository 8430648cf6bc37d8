//! Forks of sessions of every kind: only read, in memory, of other programs, of old versions, damaged.

use super::{contents, fork, lines, text};
use crate::support::*;
use serde_json::{Value, json};
use std::{fs, path::Path};

#[test]
fn a_session_that_is_only_read_is_forked() {
    let mut daemon = Daemon::start();
    let path = session_of(&daemon.home, "read", &turns(2));
    let before = fs::read(&path).expect("a file");
    let loaded = daemon.ok("session/load", json!({"path": path, "readOnly": true}));
    let session = &loaded["session"]["sessionId"];
    let forked = fork(&mut daemon, json!({"sessionId": session, "entryId": "e4"}))["session"].clone();
    let id = text(&forked["sessionId"]).to_owned();
    daemon.append(&id, &[user("It can be written.")]);
    assert_eq!(daemon.context(&id)["messages"].as_array().map(Vec::len), Some(5));
    assert_eq!(fs::read(&path).expect("a file"), before);
}

#[test]
fn a_fork_of_a_session_in_memory_is_in_memory() {
    let mut daemon = Daemon::start();
    let session = daemon.new_session(
        json!({"cwd": "/project", "ephemeral": true, "systemPrompt": "Be brief.", "model": "openai/gpt-4.1"}),
    );
    let ids = daemon.append(&session, &[user("One."), assistant("Two."), user("Three.")])["entryIds"].clone();
    let answer = fork(&mut daemon, json!({"sessionId": session, "entryId": ids[2]}));
    let forked = &answer["session"];
    assert_eq!((&answer["editorText"], &forked["path"]), (&json!("Three."), &Value::Null));
    assert_eq!(forked["parentSession"], json!(session));
    assert_eq!(contents(&mut daemon, &forked["sessionId"]), ["One.", "Two."]);
    let body = |daemon: &mut Daemon, id: &Value| {
        let params = json!({"sessionId": id, "format": "openai_chat"});
        daemon.ok("session/context", params)["body"]["messages"][0].clone()
    };
    assert_eq!(body(&mut daemon, &forked["sessionId"])["content"], "Be brief.");
    assert!(!daemon.home.path("data/sessions/--project--").exists(), "nothing is on disk");
}

#[test]
fn a_file_of_an_old_version_is_forked_in_the_form_of_today_and_stays() {
    let mut daemon = Daemon::start();
    let time = "2026-01-01T00:00:00.000Z";
    let first = [
        json!({"type": "session", "id": "one", "timestamp": time, "cwd": "/project", "provider": "p", "modelId": "m", "thinkingLevel": "high"}),
        json!({"type": "message", "timestamp": time, "message": user("Old.")}),
        json!({"type": "message", "timestamp": time, "message": assistant("Older.")}),
        json!({"type": "message", "timestamp": time, "message": user("New.")}),
    ];
    let mut second = vec![header("two")];
    second[0]["version"] = json!(2);
    second.extend(entries(&[user("Old."), assistant("Older."), user("New.")]));
    for (name, given) in [("one", first.to_vec()), ("two", second)] {
        let path = daemon.home.session(&format!("{name}.jsonl"), &given);
        let before = fs::read(&path).expect("a file");
        let session = daemon.load(&path);
        let entries = daemon.ok("session/entries", json!({"sessionId": session}))["entries"].clone();
        let last = &entries[2]["id"];
        let answer = fork(&mut daemon, json!({"sessionId": session, "entryId": last}));
        assert_eq!(answer["editorText"], "New.", "{name}");
        let forked = &answer["session"];
        let head = fs::read_to_string(text(&forked["path"])).expect("a file");
        let head: Value = serde_json::from_str(head.lines().next().expect("a header")).expect("JSON");
        assert_eq!(head["version"], 3, "{name}");
        let lines = lines(text(&forked["path"]));
        assert_eq!(lines.len(), 2, "{name}: {lines:#?}");
        for (line, entry) in lines.iter().zip(entries.as_array().expect("entries")) {
            let line: Value = serde_json::from_str(line).expect("JSON");
            assert_eq!((&line["id"], &line["parentId"]), (&entry["id"], &entry["parentId"]), "{name}");
        }
        assert_eq!(contents(&mut daemon, &forked["sessionId"]), ["Old.", "Older."], "{name}");
        let value = |daemon: &mut Daemon, id: &Value, field: &str| {
            daemon.ok("session/status", json!({"sessionId": id}))["session"][field].clone()
        };
        for field in ["model", "thinkingLevel"] {
            let there = value(&mut daemon, &json!(session), field);
            assert_eq!(value(&mut daemon, &forked["sessionId"], field), there, "{name}: {field}");
        }
        assert_eq!(fs::read(&path).expect("a file"), before, "{name}: a fork writes nothing to it");
    }
}

/// A session of oh-my-pi keeps its images in files of their own.
#[test]
fn images_beside_a_session_come_along() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/oh-my-pi");
    let mut daemon = Daemon::start();
    let agent = daemon.home.path("agent");
    fs::create_dir_all(agent.join("sessions/-project")).expect("a folder");
    fs::create_dir_all(agent.join("blobs")).expect("a folder");
    for blob in fs::read_dir(golden.join("blobs")).expect("a folder").flatten() {
        fs::copy(blob.path(), agent.join("blobs").join(blob.file_name())).expect("a copy");
    }
    let path = agent.join("sessions/-project/pictures.jsonl");
    fs::copy(golden.join("tools-and-images.jsonl"), &path).expect("a copy");
    let session = daemon.load(&path);
    let there = daemon.context(&session);
    assert!(there["messages"].to_string().contains("\"mimeType\""), "the session has images");
    let forked = fork(&mut daemon, json!({"sessionId": session}))["session"].clone();
    // The folder of the other program may go.
    daemon.ok("session/close", json!({"sessionId": session}));
    daemon.ok("session/close", json!({"sessionId": forked["sessionId"]}));
    fs::remove_dir_all(&agent).expect("removed");
    let id = daemon.load(Path::new(text(&forked["path"])));
    let here = daemon.context(&id);
    assert_eq!(here["messages"], there["messages"]);
    assert!(!here["messages"].to_string().contains("blob:sha256:"), "every reference leads to its image");
}

#[test]
fn settings_of_a_session_from_elsewhere_stay_without_trust_in_its_forks() {
    let mut daemon = Daemon::start();
    let unsafe_settings = json!({"settings": {"compaction": {"remoteEndpoint": "http://127.0.0.1:9/"}}});
    let lines = [
        header("foreign"),
        json!({"type": "custom", "id": "s", "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z", "customType": "abridged.session", "data": unsafe_settings}),
        json!({"type": "message", "id": "u", "parentId": "s", "timestamp": "2026-01-01T00:00:00.000Z", "message": user("One.")}),
    ];
    let path = daemon.home.session("foreign.jsonl", &lines);
    let mut session = daemon.load(&path);
    let endpoint = |daemon: &mut Daemon, id: &str| {
        daemon.ok("settings/get", json!({"sessionId": id}))["settings"]["compaction"]["remoteEndpoint"].clone()
    };
    let there = endpoint(&mut daemon, &session);
    assert_ne!(there, "http://127.0.0.1:9/");
    // A fork of a fork, opened again from the data folder.
    for _ in 0..2 {
        let forked = fork(&mut daemon, json!({"sessionId": session}))["session"].clone();
        session = text(&forked["sessionId"]).to_owned();
        assert_eq!(endpoint(&mut daemon, &session), there);
        daemon.ok("session/close", json!({"sessionId": session}));
        daemon.ok("session/load", json!({"sessionId": session}));
        assert_eq!(endpoint(&mut daemon, &session), there);
    }
}

/// Entries whose parent is nowhere, two entries of one id, a broken line on the path.
#[test]
fn damaged_paths_are_forked_as_they_are_read() {
    let mut daemon = Daemon::start();
    let entry = |id: &str, parent: &str, message: Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z", "message": message});
    let given = [
        header("damaged"),
        entry("a", "", user("One.")),
        entry("b", "nowhere", assistant("Two.")),
        json!("BROKEN"),
        entry("d", "c", assistant("Four.")),
        entry("a", "d", user("Five.")),
        entry("e", "a", assistant("Six.")),
    ];
    let broken = r#"{"type":"message","id":"c","parentId":"b","message":{"role":"user","conte"#;
    let path = daemon.home.path("damaged.jsonl");
    let text_of_file: String = given.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&path, text_of_file.replace("\"BROKEN\"", broken)).expect("a file");
    let session = daemon.load(&path);
    let there = contents(&mut daemon, &json!(session));
    assert_eq!(there, ["One.", "Two.", "Four.", "Five.", "Six."]);
    let forked = fork(&mut daemon, json!({"sessionId": session}))["session"].clone();
    assert_eq!(contents(&mut daemon, &forked["sessionId"]), there);
    let lines = lines(text(&forked["path"]));
    let ids: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("each line is JSON now")).collect();
    for pair in ids.windows(2) {
        assert_eq!(pair[1]["parentId"], pair[0]["id"], "each line names its parent: {lines:#?}");
    }
    daemon.ok("session/close", json!({"sessionId": forked["sessionId"]}));
    let loaded = daemon.ok("session/load", json!({"path": forked["path"]}));
    assert_eq!(contents(&mut daemon, &loaded["session"]["sessionId"]), there);
    let answer = fork(&mut daemon, json!({"sessionId": session, "entryId": "b", "position": "at"}));
    assert_eq!(contents(&mut daemon, &answer["session"]["sessionId"]), ["One.", "Two."]);
}
