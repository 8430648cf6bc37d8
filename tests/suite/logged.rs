//! The log on stderr: a picture of the work of a daemon, without texts and keys.

use crate::{
    provider::{Asked, Format, Provider},
    summarizing::{good_model, settings},
    support::{Daemon, Home, run, session_of, turns, user},
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    process::Stdio,
};

/// The log of a small session at this level: an append, a compaction by a model, and one that is refused.
fn log(level: &str) -> String {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(|asked: &Asked| good_model(asked));
    let home = Home::new();
    let mut own: Value = serde_json::from_str(&settings(&provider, Format::Anthropic, json!({}))).expect("JSON");
    own["models"][0]["headers"] = json!({"x-gateway": "hush-header"});
    own["models"][0]["apiKeyEnv"] = json!("LOGGED_KEY");
    home.settings(&own.to_string());
    let mut command = home.command();
    command.args(["serve", "--log", level]).env("LOGGED_KEY", "hush-key");
    command.stderr(Stdio::from(File::create(home.path("log")).expect("a file")));
    let mut daemon = Daemon::of(home, command);
    daemon.ok("initialize", json!({"protocolVersion": 1}));
    let session = daemon.new_session(json!({"cwd": "/project", "title": "hush-title"}));
    daemon.append(&session, &turns(16));
    daemon.append(&session, &[user("The hush-text of a message.")]);
    let done = daemon.compact(&session, 600);
    assert_eq!(done["method"], "llm", "{done:#}");
    daemon
        .err("session/compact", json!({"sessionId": session, "model": "no/such", "instructions": "hush-instructions"}));
    daemon.end();
    fs::read_to_string(daemon.home.path("log")).expect("a log")
}

#[test]
fn the_log_shows_the_work_of_a_daemon_and_no_text_of_it() {
    let info = log("info");
    let parts = [
        "INFO abridged::daemon::serve: serving version=",
        "session opened session=",
        "compaction started session=",
        "a model is asked session=",
        "a model answered session=",
        "compaction ended session=",
        "session closed session=",
        "ended code=0",
    ];
    let places = parts.map(|part| info.find(part).unwrap_or_else(|| panic!("{part} is missing in:\n{info}")));
    assert!(places.is_sorted(), "{places:?} in:\n{info}");
    let end = info.lines().find(|line| line.contains("compaction ended")).expect("a line");
    for part in ["outcome=\"completed\"", "method=\"llm\"", "tokens_before=", "tokens_after=", "duration_ms="] {
        assert!(end.contains(part), "{part} is missing in: {end}");
    }
    assert!(!info.contains("DEBUG") && log("warn").is_empty());
    let debug = log("debug");
    for part in ["request method=\"session/append\"", "entry appended", "request failed id=", "context measured"] {
        assert!(debug.contains(part), "{part} is missing in:\n{debug}");
    }
    // The libraries below write headers into theirs.
    let trace = log("trace");
    for text in [&info, &debug, &trace] {
        let foreign = text.lines().find(|line| !line.contains(" abridged::"));
        assert!(foreign.is_none() && !text.contains("hush-") && !text.contains("part_3"), "{foreign:?} in:\n{text}");
    }
}

#[test]
fn a_command_of_the_shell_gives_its_level_to_its_daemon() {
    let home = Home::new();
    let path = session_of(&home, "logged", &turns(20));
    let mut command = home.command();
    command.args(["--log", "info", "compact"]).arg(&path).args(["--keep", "500"]);
    let (code, out, err) = run(command);
    assert!(code == Some(0) && err.contains("compaction ended session=logged"), "{out}{err}");
    let mut command = home.command();
    command.arg("undo").arg(&path);
    assert_eq!(run(command).2, "", "the usual level shows nothing");
}
