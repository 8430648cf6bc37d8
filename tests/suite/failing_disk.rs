//! A disk that does not confirm a write, made by strace where that is installed.

use crate::{
    support::{Home, user},
    wire::{Peer, command},
};
use serde_json::{Value, json};
use std::{
    fs,
    process::{Command, Stdio},
};

/// A daemon, of each of whose threads the `when`th fdatasync fails. Nothing where strace may not do that.
fn failing(home: &Home, when: usize) -> Option<Peer> {
    let inject = format!("inject=fdatasync:error=EIO:when={when}");
    let strace = |what: Command| {
        let mut traced = Command::new("strace");
        traced.args(["-f", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", &inject]);
        traced.arg(what.get_program()).args(what.get_args());
        for (name, value) in what.get_envs() {
            match value {
                Some(value) => traced.env(name, value),
                None => traced.env_remove(name),
            };
        }
        traced
    };
    let quiet = strace(Command::new("true")).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !quiet.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: there is no strace, or it may not trace here");
        return None;
    }
    let mut peer = Peer::of(strace(command(home)));
    peer.ok("initialize", json!({}));
    Some(peer)
}

#[test]
fn a_write_that_the_disk_does_not_confirm_makes_the_session_read_only() {
    let home = Home::new();
    let Some(mut peer) = failing(&home, 3) else { return };
    let session = peer.ok("session/new", json!({"cwd": "/project"}))["session"].clone();
    let (id, path) = (session["sessionId"].clone(), session["path"].as_str().expect("a path").to_owned());
    let append = |peer: &mut Peer, n: usize| {
        peer.call("session/append", json!({"sessionId": id, "messages": [user(&format!("message {n}"))]}))
    };
    // Some thread comes to its third write sooner or later.
    let mut acknowledged = Vec::new();
    let error = (0..200)
        .find_map(|n| match append(&mut peer, n) {
            Ok(answer) => {
                acknowledged.push((answer["entryIds"][0].clone(), user(&format!("message {n}"))));
                None
            }
            Err(error) => Some(error),
        })
        .expect("a write fails");
    let is = |error: &Value, text: &str| {
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32009), &json!("storage_error")), "{error}");
        assert_eq!(error["data"]["path"], path.as_str());
        assert!(error["message"].as_str().is_some_and(|message| message.contains(text)), "{error}");
    };
    is(&error, "did not confirm");
    assert_eq!(error["data"]["errno"], 5);
    // The next one would be confirmed, and is not tried.
    let bytes = fs::read(&path).expect("a file");
    for n in 500..503 {
        is(&append(&mut peer, n).expect_err("writing is over"), "read-only");
    }
    for (method, params) in [
        ("session/label", json!({"sessionId": id, "targetEntryId": acknowledged[0].0, "label": "x"})),
        ("session/configure", json!({"sessionId": id, "title": "x"})),
        ("session/pin", json!({"sessionId": id, "text": "x"})),
    ] {
        is(&peer.call(method, params).expect_err("writing is over"), "read-only");
    }
    assert_eq!(fs::read(&path).expect("a file"), bytes, "nothing is written any more");

    // Everything that was acknowledged, and nothing else, is what the session is.
    let all_there = |peer: &mut Peer, more: usize| {
        let context = peer.ok("session/context", json!({"sessionId": id}));
        let messages = context["messages"].as_array().expect("messages");
        let sent: Vec<&Value> = acknowledged.iter().map(|(_, message)| message).collect();
        assert_eq!(messages[..sent.len()].iter().collect::<Vec<_>>(), sent);
        assert!(messages.len() <= sent.len() + more, "{messages:#?}");
        for (entry, message) in &acknowledged {
            let answer = peer.ok("session/entry", json!({"sessionId": id, "entryId": entry}));
            assert_eq!(answer["entry"]["message"], *message);
        }
    };
    all_there(&mut peer, 0);
    peer.ok("session/close", json!({"sessionId": id}));
    peer.ok("session/load", json!({"path": path}));
    // An unconfirmed entry may be there or not.
    all_there(&mut peer, 1);
    // The lock is released with it.
    peer.end();

    let mut peer = Peer::start(&home);
    peer.ok("session/load", json!({"path": path}));
    all_there(&mut peer, 1);
    append(&mut peer, 900).expect("the disk confirms again");
    all_there(&mut peer, 2);
    peer.end();
}
