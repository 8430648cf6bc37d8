//! Memory of requests about large sessions: what a request holds beside the session is bounded.

use crate::{support::*, wire::is_whole};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufWriter, Write},
    path::PathBuf,
};

/// The size of the sessions, in MB. In a run that is not whole it is a half.
fn size() -> u64 {
    if is_whole() { 48 } else { 24 }
}

/// The most memory that a request takes beside the session, in MB. It does not grow with the session.
const MOST: u64 = 64;

/// A session file of this size in turns with long results.
fn session(home: &Home, id: &str) -> PathBuf {
    let path = home.path(&format!("{id}.jsonl"));
    let mut out = BufWriter::new(fs::File::create(&path).expect("a file"));
    let (size, mut bytes, mut count, mut parent) = (size(), 0, 0, Value::Null);
    writeln!(out, "{}", header(id)).expect("it is written");
    for turn in 0.. {
        let topic = format!("part_{turn}");
        let text = text_of(2_000, &topic).replace(". ", ".\n\n");
        let found = if turn == 17 { "The wombat lives in the cellar." } else { "It is fine." };
        let said = assistant(&format!("{found} {}", &text[..600]));
        for message in [user(&format!("Look at {topic}.")), calls(&[&topic]), result(&topic, &text), said] {
            let id = format!("e{count}");
            let line = json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z",
                "message": message})
            .to_string();
            writeln!(out, "{line}").expect("it is written");
            (bytes, count, parent) = (bytes + line.len() as u64, count + 1, json!(id));
        }
        if bytes >= size << 20 {
            break;
        }
    }
    out.flush().expect("it is written");
    path
}

/// The most memory that a process had so far, in MB.
fn peak(daemon: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).expect("a number") / 1024
}

/// A daemon with a model, which nobody serves.
fn daemon() -> Daemon {
    let home = Home::new();
    let model = json!({"provider": "p", "id": "m", "api": "openai_chat", "baseUrl": "http://127.0.0.1:9/v1", "apiKey": "k",
        "contextWindow": 200_000});
    let settings = json!({"defaultModel": "p/m", "models": [model], "compaction": {"enabled": false},
        "retry": {"enabled": false}});
    home.settings(&settings.to_string());
    Daemon::at(home)
}

#[test]
fn a_handoff_of_a_large_session_takes_bounded_memory() {
    let mut daemon = daemon();
    let path = session(&daemon.home, "large");
    daemon.load(&path);
    let before = peak(&daemon);
    let answer = daemon.ok("session/handoff", json!({"sessionId": "large", "wait": true}));
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    let document = answer["document"].as_str().expect("a document");
    assert!(document.contains("Look at part_0.") && document.contains("It is fine."), "{}", &document[..1_000]);
    let more = peak(&daemon) - before;
    assert!(more <= MOST, "{more} MB beside a session of {} MB", size());
}

#[test]
fn a_reference_to_a_large_session_takes_bounded_memory() {
    let mut daemon = daemon();
    let path = session(&daemon.home, "large");
    daemon.load(&path);
    let receiver = daemon.new_session(json!({"cwd": "/project"}));
    let before = peak(&daemon);
    let params = json!({"sessionId": receiver, "fromSessionId": "large", "question": "Where does the wombat live?", "wait": true});
    let answer = daemon.ok("session/reference", params);
    assert_eq!(answer["outcome"], "completed", "{answer:#}");
    let text = daemon.context(&receiver)["messages"].to_string();
    assert!(text.contains("The wombat lives in the cellar."), "{}", &text[..1_000]);
    let more = peak(&daemon) - before;
    assert!(more <= MOST, "{more} MB beside a session of {} MB", size());
}
