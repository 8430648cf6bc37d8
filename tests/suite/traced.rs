//! `abridged serve --trace`: the wire in a file, in its order and without its secrets.

use crate::support::{Daemon, Home, run, session_of, turns, user};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

/// A daemon that traces into the file `trace` of its home.
fn traced(home: Home) -> Daemon {
    let mut command = home.command();
    command.args(["serve", "--trace"]).arg(home.path("trace"));
    let mut daemon = Daemon::of(home, command);
    daemon.ok("initialize", json!({"protocolVersion": 1}));
    daemon
}

fn text(file: &Path) -> String {
    fs::read_to_string(file).expect("a trace")
}

fn lines(file: &Path) -> Vec<Value> {
    text(file)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[test]
fn each_frame_is_in_the_trace_in_its_order() {
    let mut daemon = traced(Home::new());
    let session = daemon.new_session(json!({"cwd": "/project"}));
    daemon.append(&session, &turns(4));
    daemon.write(b"no JSON\n");
    daemon.frame();
    daemon.ok("session/append", json!({"sessionId": session, "messages": [user(&"x".repeat(100_000))]}));
    daemon.end();
    let file = daemon.home.path("trace");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    let lines = lines(&file);
    let sent: Vec<&Value> = lines.iter().filter(|line| line["direction"] == "in").map(|line| &line["frame"]).collect();
    let methods: Vec<_> = sent.iter().map(|frame| frame["method"].as_str().unwrap_or_default()).collect();
    assert_eq!(methods[..3], ["initialize", "session/new", "session/append"]);
    assert_eq!(*sent[3], "no JSON");
    // The last frame is cut, and its answer is not.
    let cut = lines.iter().position(|line| line["bytes"].is_number()).expect("a frame that is cut");
    let shown = lines[cut]["frame"].as_str().expect("a text");
    assert!(shown.starts_with("{\"jsonrpc\"") && shown.len() <= 64 << 10, "{}", shown.len());
    assert!(lines[cut]["bytes"].as_u64() > Some(100_000));
    // Each answer comes after its request, and times only grow.
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line["direction"] == "in") {
        let id = &line["frame"]["id"];
        let answer = |line: &Value| {
            line["direction"] == "out" && line["frame"]["id"] == *id && line["frame"].get("result").is_some()
        };
        assert!(!id.is_number() || lines[at..].iter().any(answer), "{line} has no answer after it");
        assert!(!lines[..at].iter().any(answer) || id.is_null(), "{line} comes after its answer");
    }
    assert!(lines.is_sorted_by_key(|line| line["at"].as_str().expect("a time").to_owned()));
    let out = |kind: &str| {
        lines.iter().any(|line| line["direction"] == "out" && line["frame"]["params"]["event"]["type"] == kind)
    };
    assert!(out("entry_appended"), "events are in it");
}

#[test]
fn a_trace_of_headed_frames_has_their_content() {
    let home = Home::new();
    let mut command = home.command();
    command.args(["serve"]).env("ABRIDGED_TRACE", home.path("trace"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let frame = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    // Over several lines, which are one in the trace.
    let text = format!("{frame:#}");
    let mut to = child.stdin.take().expect("its input");
    write!(to, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("it reads");
    drop(to);
    let out = child.wait_with_output().expect("it ends").stdout;
    assert!(out.starts_with(b"Content-Length: "));
    let lines = lines(&home.path("trace"));
    let seen: Vec<_> = lines.iter().map(|line| (line["direction"].as_str(), line["frame"]["id"].as_u64())).collect();
    assert_eq!(seen, [(Some("in"), Some(1)), (Some("out"), Some(1))]);
    assert_eq!(lines[0]["frame"], frame);
}

#[test]
fn no_key_is_in_a_trace() {
    let key = format!("ghp_{}", "Hb7gTkQ2mVx9RzLw4NcY6pJdS8fA1uE5oGiK");
    let home = Home::new();
    let of = |word: &str| {
        json!({
            "models": [{"provider": "local", "id": "qwen", "baseUrl": format!("https://me:{word}@127.0.0.1/v1?key={word}"),
                "apiKeyCommand": ["print-key", word], "headers": {"x-own": word}}],
            "compaction": {"remoteEndpoint": format!("http://127.0.0.1:9/sum?token={word}")},
        })
    };
    home.settings(&of("hush-file").to_string());
    let mut daemon = traced(home);
    let session = daemon.new_session(json!({"cwd": "/project", "settings": of("hush-new")}));
    daemon.append(&session, &[user(&format!("The key is {key}, and DB_PASSWORD=hush-password-1."))]);
    daemon.ok("session/context", json!({"sessionId": session}));
    daemon.ok("settings/get", json!({"sessionId": session}));
    daemon.ok("settings/set", json!({"scope": "session", "sessionId": session, "patch": of("hush-patch")}));
    daemon.err(
        "settings/set",
        json!({"scope": "session", "sessionId": session, "patch": {"models": {"headers": {"x": "hush-header"}}}}),
    );
    daemon.write(
        b"{\"method\": \"settings/set\", \"params\": {\"patch\": {\"models\": [{\"headers\": {\"x\": \"hush-broken\"\n",
    );
    daemon.frame();
    daemon.end();
    let text = text(&daemon.home.path("trace"));
    let found: Vec<&str> = text.lines().filter(|line| line.contains("hush-") || line.contains(&key)).collect();
    assert!(found.is_empty(), "{found:#?}");
    assert!(text.contains("[REDACTED:github-token]") && text.contains("x-own"), "{text}");
}

/// Runs `serve --trace` with a file that cannot be made. Returns the text on stderr.
fn refused(file: &Path) -> String {
    let mut command = Home::new().command();
    command.args(["serve", "--trace"]).arg(file);
    let (code, out, err) = run(command);
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    err
}

#[test]
fn a_trace_that_cannot_be_made_is_refused_and_an_empty_variable_is_none() {
    let home = Home::new();
    fs::write(home.path("there"), "mine").expect("a file");
    assert!(refused(&home.path("there")).contains("there is something of this name already"));
    assert_eq!(fs::read_to_string(home.path("there")).expect("a file"), "mine");
    assert!(refused(&home.path("no/folder")).contains("the trace cannot be made"));
    assert!(refused(Path::new("/dev/full")).contains("there is something of this name already"));
    let mut command = home.command();
    command.arg("serve").envs([("ABRIDGED_TRACE", ""), ("ABRIDGED_RECORD", "")]);
    assert_eq!(run(command).0, Some(0));
}

#[test]
fn a_trace_ends_where_the_disk_is_full_and_no_frame_is_lost() {
    let home = Home::new();
    let plain = home.command();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 16; exec \"$0\" serve --trace \"$1\" 2>\"$2\""]);
    command.arg(plain.get_program()).args([home.path("trace"), home.path("stderr")]);
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut daemon = Daemon::of(home, command);
    daemon.ok("initialize", json!({"protocolVersion": 1}));
    let is_notice = |frame: &Value| frame["method"] == "notice";
    let mut pings = 0;
    while !daemon.events.iter().any(is_notice) {
        daemon.ok("ping", json!({}));
        pings += 1;
        assert!(pings < 100_000, "the trace does not end");
    }
    for _ in 0..100 {
        daemon.ok("ping", json!({}));
    }
    let notice = daemon.events.iter().find(|frame| is_notice(frame)).expect("a notice");
    assert_eq!((&notice["params"]["code"], &notice["params"]["severity"]), (&json!("trace_ended"), &json!("warning")));
    let (status, _) = daemon.end();
    assert!(status.success());
    assert_eq!(daemon.events.iter().filter(|frame| is_notice(frame)).count(), 1);
    let said = fs::read_to_string(daemon.home.path("stderr")).expect("a file");
    assert_eq!(said.matches("the trace has ended").count(), 1, "{said}");
}

#[test]
fn a_command_of_the_shell_traces_its_daemon() {
    let home = Home::new();
    let path = session_of(&home, "traced", &turns(20));
    let mut command = home.command();
    command.arg("compact").arg(&path).args(["--keep", "500", "--trace"]).arg(home.path("trace"));
    assert_eq!(run(command).0, Some(0));
    let methods: Vec<Value> = lines(&home.path("trace")).iter().map(|line| line["frame"]["method"].clone()).collect();
    assert!(methods.contains(&json!("session/load")) && methods.contains(&json!("session/compact")), "{methods:?}");
    let mut command = home.command();
    command.arg("undo").arg(&path).env("ABRIDGED_TRACE", home.path("of-undo"));
    assert_eq!(run(command).0, Some(0));
    assert!(text(&home.path("of-undo")).contains("session/undo_compaction"));
}
