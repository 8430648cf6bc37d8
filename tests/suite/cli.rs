//! The commands of the shell.

mod errors;
mod terminal;

use crate::{
    provider::{Format, Provider},
    summarizing::{held_model, settings},
    support::{Daemon, Home, binary, run, session_of, turns, user},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

/// The output of the demo.
fn demo(home: &Home, more: &[&str]) -> String {
    let mut command = home.command();
    command.arg("demo").args(more).env("TMPDIR", home.0.path());
    let (code, out, err) = run(command);
    assert_eq!(code, Some(0), "{out}\n{err}");
    assert_eq!(fs::read_dir(home.0.path()).expect("a folder").count(), 0, "nothing is left behind");
    out
}

/// The frames that the daemon sends in the demo.
fn frames_of_the_demo(home: &Home) -> Vec<Value> {
    let out = demo(home, &["--json"]);
    let mut directions = String::new();
    let mut frames = Vec::new();
    for line in out.lines() {
        let (direction, frame) = line.split_once(' ').expect("a direction");
        directions.push_str(direction);
        let frame: Value = serde_json::from_str(frame).expect("JSON");
        assert_eq!(frame["jsonrpc"], "2.0");
        frames.extend(Some(frame).filter(|_| direction == "<"));
    }
    assert!(directions.starts_with("><><"), "{directions}");
    frames
}

/// Numbers of tokens in a line, without the time of a compaction.
fn tokens_of(line: &str) -> Vec<u64> {
    let line = line.split_once(" ms:").map_or(line, |(_, rest)| rest);
    let words = line.split(|char: char| !char.is_ascii_digit() && char != ',');
    words.filter_map(|word| word.replace(',', "").parse().ok()).collect()
}

#[test]
fn the_demo_rescues_an_agent_on_one_screen() {
    let home = Home::new();
    let out = demo(&home, &[]);
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines.len() <= 30, "{} lines:\n{out}", lines.len());
    for line in &lines {
        assert!(line.chars().count() <= 80 && !line.contains('\u{1b}'), "{line}");
    }
    let place = |part: &str| {
        lines.iter().position(|line| line.contains(part)).unwrap_or_else(|| panic!("{part} is missing in:\n{out}"))
    };
    let parts = [
        "compaction_start   threshold",
        "the model refuses: This model's maximum context length is 16384 tokens",
        "recovery_start     overflow",
        "compaction_start   overflow",
        "recovery_end       recovered",
        "nothing is lost",
    ];
    let places: Vec<usize> = parts.iter().map(|part| place(part)).collect();
    assert!(places.is_sorted(), "{places:?} in:\n{out}");
    assert!(!out.contains("corriere-7731") && !out.contains("a81f37c2d94e"), "secrets stay out of it");
}

#[test]
fn the_demo_shows_its_summary_whole_and_in_eighty_columns() {
    let home = Home::new();
    let out = demo(&home, &["--summary"]);
    let (_, summary) = out.split_once("The summary that is in the context now\n\n").expect("its head");
    assert!(summary.starts_with("## Goal\n- ") && summary.contains("## Critical Context"), "{summary}");
    for line in summary.lines() {
        assert!(line.chars().count() <= 80 && !line.contains('\u{1b}'), "{line}");
    }
    let whole = frames_of_the_demo(&home)
        .iter()
        .rev()
        .find_map(|frame| frame["params"]["event"]["result"]["summary"].as_str().map(str::to_owned));
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(bare(summary), bare(&whole.expect("a summary")), "nothing is left out");
}

#[test]
fn the_numbers_of_the_demo_are_those_of_its_events() {
    let home = Home::new();
    let frames = frames_of_the_demo(&home);
    let events: Vec<&Value> =
        frames.iter().map(|frame| &frame["params"]["event"]).filter(|it| it.is_object()).collect();
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("a number, not {value}"));
    let mut expected = Vec::new();
    for event in &events {
        match event["type"].as_str() {
            Some("compaction_start") => expected.push(vec![number(&event["tokensBefore"])]),
            Some("compaction_end") => {
                let result = &event["result"];
                expected.push(vec![number(&result["tokensBefore"]), number(&result["tokensAfter"])]);
            }
            _ => {}
        }
    }
    let sizes: Vec<u64> =
        frames.iter().filter_map(|frame| frame["result"]["usage"]["contextTokens"].as_u64()).collect();
    let out = demo(&home, &[]);
    let shown: Vec<Vec<u64>> =
        out.lines().filter(|line| line.trim_start().starts_with("compaction_")).map(tokens_of).collect();
    assert_eq!(shown, expected, "{out}");
    let bars: Vec<&str> = out.lines().filter(|line| line.contains('▕')).collect();
    assert!(bars.len() > 5, "{out}");
    for bar in bars {
        let size = *tokens_of(bar).last().unwrap_or_else(|| panic!("a size in {bar}"));
        // The id of an entry is part of an elided text, and its digits count.
        let near = |it: &u64| it.abs_diff(size) <= 16;
        assert!(sizes.iter().any(near), "{bar} shows a size that no answer has: {sizes:?}");
    }
}

#[test]
fn one_file_is_compacted_from_the_shell() {
    let home = Home::new();
    let path = session_of(&home, "shell", &turns(30));
    let bytes = fs::read(&path).expect("a file");
    let compact = |more: &[&str]| {
        let mut command = home.command();
        command.arg("compact").arg(&path).args(more);
        run(command)
    };
    let (code, out, _) = compact(&["--dry-run", "--keep", "1000"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("Would summarize") && out.contains("Nothing was changed."), "{out}");
    assert_eq!(fs::read(&path).expect("a file"), bytes);
    let (code, out, err) = compact(&[]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("shorter than what is kept"), "{err}");
    let (code, out, _) = compact(&["--keep", "1000", "--json", "--instructions", "part_3"]);
    assert_eq!(code, Some(0));
    let answer: Value = serde_json::from_str(out.lines().last().expect("a line")).expect("JSON");
    assert_eq!(answer["outcome"], "completed");
    let now = fs::read(&path).expect("a file");
    assert!(now.starts_with(&bytes) && now.len() > bytes.len());
    let mut command = home.command();
    command.arg("compact").arg(home.path("nothing.jsonl"));
    let (code, _, err) = run(command);
    assert_eq!(code, Some(1));
    assert!(err.contains("there is no file"), "{err}");
}

#[test]
fn help_and_version_are_there() {
    for (arguments, part) in [
        (vec!["--version"], "abridged 0."),
        (vec!["--help"], "JSON-RPC"),
        (vec!["serve", "--help"], "content-length"),
        (vec!["demo", "--help"], "--base-url"),
        (vec!["compact", "--help"], "--dry-run"),
        (vec!["schema", "--help"], "--out"),
        (vec!["doctor", "--help"], "--ask"),
        (vec!["watch", "--help"], "--once"),
        (vec!["sessions", "--help"], "--limit"),
        (vec!["tree", "--help"], "--all"),
        (vec!["completions", "bash"], "doctor"),
        (vec!["completions", "zsh"], "#compdef abridged"),
        (vec!["completions", "fish"], "doctor"),
        (vec!["completions", "elvish"], "doctor"),
        (vec!["completions", "powershell"], "doctor"),
    ] {
        let mut command = binary();
        command.args(&arguments);
        let (code, out, _) = run(command);
        assert_eq!(code, Some(0), "{arguments:?}");
        assert!(out.contains(part), "{arguments:?}: {out}");
    }
    let mut command = binary();
    command.arg("frobnicate");
    assert_eq!(run(command).0, Some(2));
}

/// Report of the doctor on a folder: exit code and JSON.
fn doctor(home: &Home) -> (Option<i32>, Value) {
    fs::create_dir_all(home.path("project")).expect("a folder");
    let mut command = home.command();
    command.args(["doctor", "--json"]).current_dir(home.path("project")).env_remove("LOCAL_KEY");
    let (code, out, err) = run(command);
    (code, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}\n{err}")))
}

#[test]
fn the_doctor_says_where_everything_is_and_who_says_what() {
    let home = Home::new();
    let (code, found) = doctor(&home);
    assert_eq!((code, &found["problems"], &found["values"]), (Some(0), &json!([]), &json!([])));
    assert_eq!(found["settings"]["path"], json!(home.path("config/settings.json")));
    assert_eq!(found["settings"]["setBy"], "ABRIDGED_CONFIG_DIR");
    assert!(!home.path("config").exists() && !home.path("data").exists(), "it only looks");

    home.settings(r#"{ "models": [{ "provider": "local", "id": "qwen", "baseUrl": "http://me:hush@host/v1" }] }"#);
    let mut daemon = crate::support::Daemon::at(home);
    daemon.ok("session/new", json!({"cwd": "/project"}));
    let (_, found) = doctor(&daemon.home);
    assert_eq!(found["data"]["sessions"], 1);
    assert_eq!(found["values"], json!([{"key": "models", "value": ["local/qwen"], "source": "global"}]));
    assert!(!found.to_string().contains("hush"));
    assert_eq!(found["problems"], json!([]), "the lock of a process that lives is no problem");
    let mut command = daemon.home.command();
    command.arg("doctor").current_dir(daemon.home.path("project"));
    let (code, out, _) = run(command);
    assert_eq!(code, Some(0));
    assert!(out.contains("1 session, ") && out.contains("nothing is wrong") && !out.contains("hush"), "{out}");
    daemon.kill();
    let (code, found) = doctor(&daemon.home);
    let what = found["problems"][0]["what"].as_str().unwrap_or_default();
    assert!(code == Some(0) && what.contains(&format!("process {}, which is gone", daemon.pid())), "{found:#}");
}

#[test]
fn the_doctor_names_what_is_broken() {
    let home = Home::new();
    home.settings("{\n \"compaction\": { \"reserveTokens\": [] } }");
    fs::create_dir_all(home.path("project/.abridged")).expect("a folder");
    let own = "{ \"redaction\": {}, \n \"colour\": \"red\" }";
    fs::write(home.path("project/.abridged/settings.json"), own).expect("a file");
    fs::write(home.path("data"), "in the place of a folder").expect("a file");
    let (code, found) = doctor(&home);
    assert_eq!(code, Some(1));
    let problems = found["problems"].as_array().expect("problems");
    let seen: Vec<_> = problems
        .iter()
        .map(|it| {
            let file = it["file"].as_str().and_then(|file| file.rsplit('/').next());
            (it["weight"].as_str(), file, it["line"].as_u64(), it["key"].as_str())
        })
        .collect();
    let expected = [
        (Some("broken"), Some("settings.json"), Some(2), Some("compaction.reserveTokens")),
        (Some("broken"), Some("data"), None, None),
        (Some("odd"), Some("settings.json"), Some(2), Some("colour")),
        (Some("odd"), Some("settings.json"), Some(1), Some("redaction")),
    ];
    assert_eq!(seen, expected, "{found:#}");
}

/// A block of the README, by what stands behind its fence.
fn block(fence: &str) -> &'static str {
    let readme = include_str!("../../README.md");
    let Some((_, after)) = readme.split_once(fence) else { panic!("README.md has no {fence}") };
    let (code, _) = after.trim_start_matches(|char| char != '\n').split_once("```").expect("a fence ends");
    code
}

/// The README's lines for a client that runs models, in the README's client.
#[test]
fn the_client_of_the_readme_runs_models() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        eprintln!("SKIPPED: python3 is not installed");
        return;
    }
    let events = "        if \"method\" in frame:\n";
    let client = block("```python client");
    assert!(client.contains(events));
    let model = "def run_model(system, prompt):\n    return 'It is Rotterdam.' if 'two sentences' in prompt else '## Goal\\nName the largest harbour.'\n\n";
    let client = client
        .replace(
            events,
            &format!("{}        elif \"method\" in frame:\n", block("```python model").trim_start_matches('\n')),
        )
        .replace("protocolVersion=1", "protocolVersion=1, capabilities={'llm': {}}")
        .replace("cwd=\"/tmp\"", "cwd=\"/tmp\", model=\"editor/writer\"");
    let home = Home::new();
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_abridged")).parent().expect("a folder");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    fs::write(home.path("client"), format!("{model}{client}")).expect("a file");
    let mut command = std::process::Command::new("python3");
    command
        .arg(home.path("client"))
        .env("PATH", path)
        .env("ABRIDGED_DATA_DIR", home.path("data"))
        .env("ABRIDGED_CONFIG_DIR", home.path("config"));
    let (code, out, err) = run(command);
    assert_eq!(code, Some(0), "{out}\n{err}");
    assert!(out.contains("'method': 'llm'") && out.contains("Name the largest harbour."), "{out}\n{err}");
}

/// The settings of the README are settings.
#[test]
fn the_settings_of_the_readme_are_right() {
    let home = Home::new();
    home.settings(block("```json settings"));
    let (_, found) = doctor(&home);
    let broken = found["problems"].as_array().expect("problems").iter().filter(|it| it["weight"] == "broken");
    assert_eq!(broken.count(), 0, "{found:#}");
    assert_eq!(found["models"][0]["asking"]["key"], "command pass …");
}

/// The clients of the README, run as they stand there.
#[test]
fn the_clients_of_the_readme_work() {
    for (program, fence) in [("bash", "```sh client"), ("python3", "```python client")] {
        let code = block(fence);
        if std::process::Command::new(program).arg("--version").output().is_err() {
            eprintln!("SKIPPED: {program} is not installed");
            continue;
        }
        let home = Home::new();
        let folder = std::path::Path::new(env!("CARGO_BIN_EXE_abridged")).parent().expect("a folder");
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
        let file = home.path("client");
        fs::write(&file, code).expect("a file");
        let mut command = std::process::Command::new(program);
        command
            .arg(&file)
            .env("PATH", path)
            .env("ABRIDGED_DATA_DIR", home.path("data"))
            .env("ABRIDGED_CONFIG_DIR", home.path("config"));
        let (code, out, err) = run(command);
        assert_eq!(code, Some(0), "{program}: {out}\n{err}");
        assert!(out.contains("completed"), "{program}: {out}\n{err}");
    }
}

/// A command with these arguments over a data folder.
fn command(home: &Home, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = home.command();
    command.args(arguments);
    run(command)
}

#[test]
fn a_session_is_read_searched_undone_and_exported_from_the_shell() {
    let home = Home::new();
    let mut daemon = Daemon::at(home);
    let id = daemon.new_session(json!({"cwd": "/project"}));
    let entries = daemon.append(&id, &turns(12))["entryIds"].take();
    let (_, _) = daemon.end();
    let home = &daemon.home;
    let first = entries[0].as_str().expect("an id");
    let (code, _, err) = command(home, &["show", &id]);
    assert_eq!(code, Some(1));
    assert!(err.contains("no summary") && err.contains("abridged compact"), "{err}");
    let (code, out, err) = command(home, &["compact", &id[..20], "--keep", "500"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("abridged show") && out.contains("abridged undo"), "{out}");
    // The newest session is the default.
    for arguments in [vec!["show"], vec!["show", &id]] {
        let (code, out, _) = command(home, &arguments);
        assert_eq!(code, Some(0));
        assert!(out.contains(" · compaction · ") && out.contains("## Goal"), "{out}");
    }
    let (_, out, _) = command(home, &["show", &id, &first[..10], "--json"]);
    let entry: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(entry["id"], first);
    let (code, out, _) = command(home, &["search", &id, "PART_3", "--limit", "2"]);
    assert_eq!((code, out.lines().count()), (Some(0), 2), "{out}");
    assert_eq!(command(home, &["search", &id, "wombat"]).0, Some(1));
    let (_, out, _) = command(home, &["tail", &id, "-n", "3"]);
    assert_eq!(out.lines().count(), 3, "{out}");
    assert!(out.lines().last().is_some_and(|line| line.contains("compaction")), "{out}");
    let (code, out, _) = command(home, &["undo", &id]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("Undone: the context has "), "{out}");
    assert_eq!(command(home, &["undo", &id]).0, Some(1));
    let path = home.path("out.md");
    let out = path.to_str().expect("a path");
    assert_eq!(command(home, &["export", &id, out]).0, Some(0));
    assert!(fs::read_to_string(&path).expect("a file").contains("part_3"));
    let (code, _, err) = command(home, &["export", &id, out]);
    assert_eq!(code, Some(1), "{err}");
}

#[test]
fn a_dry_run_needs_no_lock_and_events_are_printed_as_they_come() {
    let home = Home::new();
    let path = session_of(&home, "held", &turns(30));
    let mut daemon = Daemon::at(home);
    daemon.load(&path);
    let name = path.to_str().expect("a path");
    let (code, out, err) = command(&daemon.home, &["compact", name, "--dry-run", "--keep", "1000"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("Nothing was changed."), "{out}");
    let (code, _, err) = command(&daemon.home, &["compact", name, "--keep", "1000"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("open"), "another program has it: {err}");
    daemon.end();
    let (code, _, err) = command(&daemon.home, &["compact", name]);
    assert_eq!(code, Some(1));
    assert!(err.contains("--keep") && !err.contains("keepRecentTokens"), "{err}");
    let (code, out, _) = command(&daemon.home, &["compact", name, "--keep", "1000", "--json"]);
    assert_eq!(code, Some(0));
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert!(kinds.contains(&"compaction_start") && kinds.contains(&"compaction_end"), "{kinds:?}");
    assert_eq!(lines.last().expect("a result")["outcome"], "completed");
}

#[test]
fn ctrl_c_cancels_a_compaction_and_frees_its_file() {
    let provider = Provider::start(Format::Anthropic);
    let (_go_on, held) = held_model();
    provider.otherwise(held);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let path = session_of(&home, "interrupted", &turns(30));
    let before = fs::read(&path).expect("a file");
    let mut command = home.command();
    command.arg("compact").arg(&path).args(["--keep", "1000"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    provider.wait_for(1);
    let pid = rustix::process::Pid::from_raw(child.id().try_into().expect("a pid")).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is there");
    let ended = child.wait_with_output().expect("it ends");
    let out = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(ended.status.code(), Some(130), "{out}");
    assert!(out.contains("Cancelled: nothing was written"), "{out}");
    assert_eq!(fs::read(&path).expect("a file"), before);
    let mut daemon = Daemon::at(home);
    daemon.load(&path);
}

#[test]
fn a_followed_session_shows_what_another_program_appends() {
    let home = Home::new();
    let path = session_of(&home, "followed", &turns(2));
    let mut command = home.command();
    command.arg("tail").arg("--follow").arg(&path).args(["-n", "1"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut next = || lines.next().expect("a line").expect("text");
    next();
    let mut daemon = Daemon::at(home);
    let session = daemon.load(&path);
    daemon.append(&session, &[user("The wombat digs.")]);
    assert!(next().ends_with("The wombat digs."), "the new entry, once");
    daemon.append(&session, &[user("It sleeps.")]);
    assert!(next().ends_with("It sleeps."));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}
