//! The hooks of `examples/`: programs of their own that take part in the compaction of a session file.

use crate::{
    examples::says,
    provider::{Format, Provider},
    summarizing::{good_model, settings},
    support::{Daemon, Home, binary, session_of, turns, without_keys},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _, stderr},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

/// The command that runs an example. `None` where its language is not installed, and the log says so.
fn command(name: &str) -> Option<Command> {
    let (program, runs) = match name.rsplit_once('.') {
        Some((_, "py")) => {
            ("python3", says("python3", &["-c", "import sys; print(sys.version_info >= (3, 9))"], "True"))
        }
        _ => ("node", says("node", &["-p", "process.features.typescript"], "strip")),
    };
    if runs.is_none() {
        // The harness captures `eprintln!` only.
        writeln!(stderr(), "skipped: examples/{name}: {program} is missing or too old").expect("it is written");
        return None;
    }
    let mut command = Command::new(program);
    command.arg(example(name));
    Some(command)
}

/// Runs an example on a session file. Returns the outcome that it prints, with the result or the error.
fn run(home: &Home, mut command: Command, arguments: &[&Path]) -> (String, Value) {
    command
        .args(arguments)
        .arg(binary().get_program())
        .env("ABRIDGED_DATA_DIR", home.path("data"))
        .env("ABRIDGED_CONFIG_DIR", home.path("config"))
        .env_remove("ABRIDGED_DISABLE_AUTOCOMPACT")
        .stdin(Stdio::null());
    without_keys(&mut command);
    let output = command.output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {error}", output.status);
    let text = String::from_utf8(output.stdout).expect("text");
    let (outcome, rest) = text.trim_end().split_once(' ').expect("an outcome");
    (outcome.to_owned(), serde_json::from_str(rest).unwrap_or_else(|_| json!(rest)))
}

/// The newest compaction of a session file.
fn compaction(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("a file");
    let mut entries = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    entries.rfind(|entry| entry["type"] == "compaction").expect("a compaction")
}

/// Appends turns to a session file. Returns its home.
fn grown(home: Home, path: &Path) -> Home {
    let mut daemon = Daemon::at(home);
    let session = daemon.load(path);
    daemon.append(&session, &turns(40)[120..]);
    daemon.ok("session/close", json!({"sessionId": session}));
    std::mem::replace(&mut daemon.home, Home::new())
}

#[test]
fn a_summarizer_of_its_own_writes_each_summary() {
    let Some(python) = command("own_summarizer.py") else { return };
    let provider = Provider::start(Format::Anthropic);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let path = session_of(&home, "shell", &turns(30));
    let (outcome, result) = run(&home, python, &[&path]);
    assert_eq!((outcome.as_str(), &result["method"], &result["fromHook"]), ("completed", &json!("hook"), &json!(true)));
    let first = compaction(&path);
    let summary = first["summary"].as_str().expect("a text");
    assert!(summary.starts_with("The requests of the user so far:\n- Request 0: look at part_0."), "{summary}");
    assert!(result["tokensAfter"].as_u64() < result["tokensBefore"].as_u64(), "{result}");
    assert_eq!((&first["fromExtension"], &first["details"]), (&json!(true), &json!({"modified": []})));
    // The next one has the summary before it, and only newer messages to read.
    let home = grown(home, &path);
    let (outcome, result) = run(&home, command("own_summarizer.py").expect("Python"), &[&path]);
    assert_eq!((outcome.as_str(), &result["method"]), ("completed", &json!("hook")));
    let second = compaction(&path);
    let summary = second["summary"].as_str().expect("a text");
    for request in ["- Request 0:", "- Request 29:", "- Request 32:"] {
        assert_eq!(summary.matches(request).count(), 1, "{request} in {summary}");
    }
    let (outcome, why) = run(&home, command("own_summarizer.py").expect("Python"), &[&path]);
    assert_eq!(outcome, "refused");
    assert!(why.as_str().is_some_and(|why| why.starts_with("nothing_to_compact")), "{why}");
    assert!(provider.asked().is_empty(), "no model is asked");
}

#[test]
fn a_memory_adds_its_facts_once_and_finds_its_data_again() {
    let Some(python) = command("memory_backend.py") else { return };
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let (path, memory) = (session_of(&home, "shell", &turns(30)), home.path("memory"));
    fs::write(&memory, "The user likes tabs.\nThe port is 8,080.\n").expect("a file");
    let told = |from: usize, fact: &str| {
        let asked = provider.asked();
        asked[from..].iter().filter(|one| one.text().contains(&format!("Known to the user's memory: {fact}"))).count()
    };
    let (outcome, result) = run(&home, python, &[&path, &memory]);
    assert_eq!((outcome.as_str(), &result["method"], &result["fromHook"]), ("completed", &json!("llm"), &json!(false)));
    assert!(told(0, "The user likes tabs.") > 0 && told(0, "The port is 8,080.") > 0);
    assert_eq!(compaction(&path)["preserveData"]["memoryBackend"], json!({"told": 2}));
    let (home, before) = (grown(home, &path), provider.asked().len());
    fs::write(&memory, "The user likes tabs.\nThe port is 8,080.\nThe tests need a database.\n").expect("a file");
    let (outcome, _) = run(&home, command("memory_backend.py").expect("Python"), &[&path, &memory]);
    assert_eq!(outcome, "completed");
    assert!(told(before, "The tests need a database.") > 0);
    assert_eq!(told(before, "The user likes tabs."), 0, "the summary has it");
    assert_eq!(compaction(&path)["preserveData"]["memoryBackend"], json!({"told": 3}));
}

#[test]
fn a_memory_that_cannot_be_read_stops_no_compaction() {
    let Some(python) = command("memory_backend.py") else { return };
    let home = Home::new();
    let path = session_of(&home, "shell", &turns(30));
    let (outcome, result) = run(&home, python, &[&path, &home.path("missing")]);
    assert_eq!((outcome.as_str(), &result["method"]), ("completed", &json!("extractive")));
    assert_eq!(compaction(&path)["preserveData"]["memoryBackend"], Value::Null);
}

#[test]
fn hooks_in_typescript_cancel_a_compaction_and_add_notes_to_it() {
    let Some(node) = command("hooks.mts") else { return };
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(good_model);
    let home = Home::new();
    home.settings(&settings(&provider, Format::Anthropic, json!({})));
    let path = session_of(&home, "shell", &turns(30));
    let (hold, notes) = (path.with_extension("jsonl.hold"), path.with_extension("jsonl.notes"));
    fs::write(&hold, "").expect("a file");
    let (outcome, _) = run(&home, node, &[&path]);
    assert_eq!(outcome, "cancelled");
    assert!(provider.asked().is_empty());
    fs::remove_file(&hold).expect("a file");
    fs::write(&notes, "The deploy is on Friday.\n").expect("a file");
    let (outcome, result) = run(&home, command("hooks.mts").expect("Node"), &[&path]);
    assert_eq!((outcome.as_str(), &result["method"]), ("completed", &json!("llm")));
    assert!(provider.asked().iter().any(|one| one.text().contains("The deploy is on Friday.")));
}

#[test]
fn the_hook_of_the_summarizer_is_short() {
    let python = fs::read_to_string(example("own_summarizer.py")).expect("a file");
    let (_, hook) = python.split_once("# The hook").expect("the hook");
    let (hook, _) = hook.split_once("\nHOOKS = ").expect("its end");
    let lines = hook.lines().skip(1).filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 30, "{lines}");
}

#[test]
fn an_agent_for_editors_shows_one_compaction_from_start_to_end() {
    let Some(command) = command("acp_agent.py") else { return };
    let home = Home::new();
    let mut command = command;
    command
        .arg("builtin/echo")
        .arg(binary().get_program())
        .env("ABRIDGED_DATA_DIR", home.path("data"))
        .env("ABRIDGED_CONFIG_DIR", home.path("config"))
        .env_remove("ABRIDGED_DISABLE_AUTOCOMPACT");
    without_keys(&mut command);
    let mut agent = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = agent.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(agent.stdout.take().expect("a pipe")).lines();
    let mut updates: Vec<Value> = Vec::new();
    let mut ids = 0..;
    let mut ask = |method: &str, params: Value| -> Value {
        let id: i32 = ids.next().expect("an id");
        writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .expect("it is read");
        for line in lines.by_ref() {
            let frame: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
            if frame["id"] == id && frame.get("method").is_none() {
                return frame["result"].clone();
            }
            updates.push(frame["params"]["update"].clone());
        }
        panic!("the agent ended");
    };
    ask("initialize", json!({"protocolVersion": 1, "clientCapabilities": {"session": {"compaction": {}}}}));
    let session = ask("session/new", json!({"cwd": "/tmp", "mcpServers": []}))["sessionId"].clone();
    for step in 0..20 {
        let prompt = json!([{"type": "text", "text": format!("step {step}")}]);
        ask("session/prompt", json!({"sessionId": session, "prompt": prompt}));
    }
    drop(stdin);
    assert!(agent.wait().expect("it ends").success());
    let kind = |update: &Value| update["sessionUpdate"].as_str().unwrap_or_default().to_owned();
    let of_compactions: Vec<&Value> = updates.iter().filter(|update| kind(update).starts_with("compaction")).collect();
    let (first, last) = (of_compactions[0], of_compactions[of_compactions.len() - 1]);
    assert_eq!(
        (&first["status"], &last["status"]),
        (&json!("in_progress"), &json!("completed")),
        "{of_compactions:#?}"
    );
    assert!(of_compactions.iter().any(|update| kind(update) == "compaction_summary_chunk"));
    let ends = of_compactions
        .iter()
        .filter(|update| update["compactionId"] == first["compactionId"] && update["status"] == "completed");
    assert_eq!(ends.count(), 1, "{of_compactions:#?}");
}
