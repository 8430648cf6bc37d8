//! Sessions of other agents: read where they lie, imported, listed, and written for another agent.

use crate::support::{Daemon, Home, binary};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Output,
};

/// A session of Claude Code: an answer over three lines with two calls in parallel, whose results fork its tree; a branch that
/// was left; a message that came while the model worked.
fn claude_code() -> String {
    let line = |kind: &str, uuid: &str, parent: Option<&str>, message: Value| {
        json!({
            "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "cwd": "/project", "version": "2.1.9",
            "isSidechain": false, "timestamp": "2026-03-01T10:00:00.000Z", "requestId": "req_1", "message": message,
        })
    };
    let answer = |output: u64, block: Value| {
        json!({
            "id": "msg_1", "role": "assistant", "model": "claude-test", "content": [block], "stop_reason": null,
            "usage": {"input_tokens": 3, "output_tokens": output, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5},
        })
    };
    let call =
        |id: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": format!("run {id}")}});
    let result = |id: &str, is_error: bool| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": format!("out {id}"), "is_error": is_error}]});
    let said = |text: &str| json!({"role": "user", "content": text});
    let mut queued = line("attachment", "q", Some("r1"), Value::Null);
    queued["attachment"] = json!({"type": "queued_command", "prompt": "Also the docs."});
    let lines = [
        json!({"type": "summary", "summary": "A title of another file", "leafUuid": "elsewhere"}),
        line("user", "u1", None, said("First try.")),
        line("user", "u2", None, said("Run both.")),
        line("assistant", "a1", Some("u2"), answer(1, json!({"type": "text", "text": "Both run."}))),
        line("assistant", "a2", Some("a1"), answer(1, call("t1"))),
        line("assistant", "a3", Some("a2"), answer(70, call("t2"))),
        line("user", "r1", Some("a2"), result("t1", false)),
        line("user", "r2", Some("a3"), result("t2", true)),
        queued,
        json!({"type": "ai-title", "aiTitle": "Runs both", "sessionId": "s"}),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

/// A session of Codex: an answer of three items with its usage reported twice, a turn that was rolled back, and a compaction.
fn codex() -> String {
    let line =
        |kind: &str, payload: Value| json!({"timestamp": "2026-03-01T10:00:00.000Z", "type": kind, "payload": payload});
    let item = |payload: Value| line("response_item", payload);
    let said = |text: &str| {
        item(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}))
    };
    let spoken = |text: &str| {
        item(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}))
    };
    let usage = || {
        let counts = json!({
            "input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 9, "reasoning_output_tokens": 4, "total_tokens": 109,
        });
        line(
            "event_msg",
            json!({"type": "token_count", "info": {"total_token_usage": counts, "last_token_usage": counts}}),
        )
    };
    let lines = [
        line(
            "session_meta",
            json!({"id": "c-1", "timestamp": "2026-03-01T10:00:00Z", "cwd": "/project", "model_provider": "openai"}),
        ),
        line("turn_context", json!({"model": "gpt-test", "effort": "high"})),
        said("<environment_context>a machine</environment_context>"),
        said("Apply it."),
        line("event_msg", json!({"type": "user_message", "message": "Apply it."})),
        spoken("It is applied."),
        item(
            json!({"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": "*** Begin Patch"}),
        ),
        usage(),
        usage(),
        item(
            json!({"type": "custom_tool_call_output", "call_id": "call_1", "output": "{\"output\":\"no\",\"metadata\":{\"exit_code\":1}}"}),
        ),
        said("A wrong turn."),
        spoken("A wrong answer."),
        line("event_msg", json!({"type": "thread_rolled_back", "num_turns": 1})),
        line("compacted", json!({"message": "It was applied."})),
        said("And now?"),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

/// A session of Gemini CLI in lines, of which a message was taken back.
fn gemini() -> String {
    let lines = [
        json!({"sessionId": "g-1", "projectHash": "h", "startTime": "2026-03-01T10:00:00Z"}),
        json!({"id": "1", "timestamp": "2026-03-01T10:00:01Z", "type": "user", "content": [{"text": "Read it."}]}),
        json!({
            "id": "2", "timestamp": "2026-03-01T10:00:02Z", "type": "gemini", "content": "", "model": "gemini-test",
            "tokens": {"input": 50, "cached": 20, "output": 5, "thoughts": 3, "tool": 0, "total": 58},
            "toolCalls": [{
                "id": "k", "name": "read_file", "args": {"path": "a"}, "status": "error",
                "result": [{"functionResponse": {"id": "k", "name": "read_file", "response": {"error": "no file"}}}],
            }],
        }),
        json!({"id": "3", "timestamp": "2026-03-01T10:00:03Z", "type": "user", "content": "A slip."}),
        json!({"$rewindTo": "3"}),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

/// An export of OpenCode: two steps in one answer, a compaction that keeps the newest turn, and a turn that was taken back.
fn opencode() -> String {
    let user = |id: &str, part: Value| json!({"info": {"id": id, "role": "user", "time": {"created": 1_772_359_200_000_u64}}, "parts": [part]});
    let assistant = |id: &str, extra: Value, parts: Value| {
        let mut info = json!({
            "id": id, "role": "assistant", "providerID": "loop", "modelID": "small", "time": {"created": 1_772_359_200_000_u64},
        });
        extra.as_object().expect("fields").iter().for_each(|(name, value)| info[name] = value.clone());
        json!({"info": info, "parts": parts})
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let tokens = json!({"input": 30, "output": 4, "reasoning": 2, "cache": {"read": 10, "write": 0}});
    let tool = json!({
        "type": "tool", "tool": "bash", "callID": "o1",
        "state": {"status": "completed", "input": {"command": "ls"}, "output": "a.txt", "time": {"start": 1, "end": 2}},
    });
    let export = json!({
        "info": {
            "id": "ses_1", "directory": "/project", "title": "Lists files", "version": "1.18.0",
            "time": {"created": 1_772_359_200_000_u64}, "revert": {"messageID": "msg_6"},
        },
        "messages": [
            user("msg_1", text("List it.")),
            assistant("msg_2", json!({}), json!([
                {"type": "step-start"}, tool, {"type": "step-finish", "tokens": tokens},
                {"type": "step-start"}, text("One file."), {"type": "step-finish", "tokens": tokens},
            ])),
            user("msg_3", text("Again.")),
            user("msg_4", json!({"type": "compaction", "tail_start_id": "msg_3"})),
            assistant("msg_5", json!({"summary": true}), json!([text("One file was listed.")])),
            user("msg_6", text("Taken back.")),
        ],
    });
    export.to_string()
}

/// The sessions in files of a folder.
fn files(home: &Home) -> [PathBuf; 4] {
    let files = [
        ("claude/s.jsonl", claude_code()),
        ("codex/rollout-2026-03-01T10-00-00-c-1.jsonl", codex()),
        ("gemini/chats/session-1.jsonl", gemini()),
        ("opencode/export.json", opencode()),
    ];
    files.map(|(name, text)| {
        let path = home.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("written");
        path
    })
}

/// The texts of a message.
fn text_of(message: &Value) -> String {
    let blocks = message["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    message["content"].as_str().map_or_else(|| blocks.collect(), str::to_owned)
}

/// The messages of a context: role, text, names of the calls, and whether a result failed.
fn context(daemon: &mut Daemon, session: &str) -> Vec<(String, String, bool)> {
    let context = daemon.ok("session/context", json!({"sessionId": session}));
    let messages = context["messages"].as_array().expect("messages");
    let shown = |message: &Value| {
        let calls = message["content"].as_array().into_iter().flatten().filter_map(|block| block["name"].as_str());
        let said = text_of(message);
        // The frame of a summary names the file.
        let said = said.split("The whole conversation is in").next().unwrap_or_default();
        let text = format!("{said}{}", calls.map(|name| format!("[{name}]")).collect::<String>());
        (message["role"].as_str().expect("a role").to_owned(), text, message["isError"] == true)
    };
    messages.iter().map(shown).collect()
}

fn is(message: &(String, String, bool), role: &str, text: &str, failed: bool) -> bool {
    message.0 == role && message.1 == text && message.2 == failed
}

fn load(daemon: &mut Daemon, path: &Path) -> (String, Value) {
    let loaded = daemon.ok("session/load", json!({"path": path, "readOnly": true}));
    (loaded["session"]["sessionId"].as_str().expect("an id").to_owned(), loaded)
}

#[test]
fn an_answer_of_claude_code_over_several_lines_is_one_with_all_results_after_it() {
    let mut daemon = Daemon::start();
    let [file, ..] = files(&daemon.home);
    let before = fs::read(&file).expect("a file");
    let (session, loaded) = load(&mut daemon, &file);
    assert_eq!(loaded["session"]["title"], "Runs both");
    assert_eq!(loaded["session"]["cwd"], "/project");
    let said = context(&mut daemon, &session);
    let expected = [
        ("user", "Run both.", false),
        ("assistant", "Both run.[Bash][Bash]", false),
        ("toolResult", "out t1", false),
        ("toolResult", "out t2", true),
        ("user", "Also the docs.", false),
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (message, (role, text, failed)) in said.iter().zip(expected) {
        assert!(is(message, role, text, failed), "{message:?}");
    }
    let entries = daemon.ok("session/entries", json!({"sessionId": session, "branch": "all", "types": ["message"]}));
    let entries = entries["entries"].as_array().expect("entries");
    assert!(entries.iter().any(|entry| text_of(&entry["message"]) == "First try."), "the branch that was left is kept");
    let answer = entries.iter().find(|entry| entry["message"]["role"] == "assistant").expect("an answer");
    let usage = &answer["message"]["usage"];
    assert_eq!(
        (&usage["input"], &usage["output"], &usage["cacheRead"], &usage["cacheWrite"]),
        (&json!(3), &json!(70), &json!(40), &json!(5)),
        "the last line has the whole counts"
    );
    assert_eq!(fs::read(&file).expect("a file"), before);
}

#[test]
fn items_of_codex_are_one_answer_with_the_usage_once_and_a_rollback_is_a_branch() {
    let mut daemon = Daemon::start();
    let [_, file, ..] = files(&daemon.home);
    let (session, loaded) = load(&mut daemon, &file);
    assert_eq!((session.as_str(), &loaded["session"]["thinkingLevel"]), ("c-1", &json!("high")));
    let said = context(&mut daemon, &session);
    assert!(said[0].1.contains("It was applied."), "{said:#?}");
    assert!(said.iter().any(|message| is(message, "user", "And now?", false)));
    assert!(!said.iter().any(|message| message.1.contains("wrong")), "{said:#?}");
    let entries = daemon.ok("session/entries", json!({"sessionId": session, "branch": "all", "types": ["message"]}));
    let messages: Vec<&Value> =
        entries["entries"].as_array().expect("entries").iter().map(|entry| &entry["message"]).collect();
    assert!(messages.iter().any(|message| text_of(message) == "A wrong answer."));
    let answers: Vec<_> = messages.iter().filter(|message| message["role"] == "assistant").collect();
    assert_eq!(answers.len(), 2, "{answers:#?}");
    assert_eq!(answers[0]["content"][1]["arguments"], json!({"input": "*** Begin Patch"}));
    let usage = &answers[0]["usage"];
    assert_eq!(
        (&usage["input"], &usage["cacheRead"], &usage["output"], &usage["totalTokens"]),
        (&json!(40), &json!(60), &json!(9), &json!(109))
    );
    let result = messages.iter().find(|message| message["role"] == "toolResult").expect("a result");
    assert_eq!((&result["isError"], &result["toolName"]), (&json!(true), &json!("apply_patch")));
}

#[test]
fn a_message_of_gemini_that_was_taken_back_is_on_no_path() {
    let mut daemon = Daemon::start();
    let [_, _, file, _] = files(&daemon.home);
    fs::write(daemon.home.path("gemini/.project_root"), "/project\n").expect("written");
    let (session, loaded) = load(&mut daemon, &file);
    assert_eq!((session.as_str(), &loaded["session"]["cwd"]), ("g-1", &json!("/project")));
    let said = context(&mut daemon, &session);
    assert_eq!(said.len(), 3, "{said:#?}");
    assert!(is(&said[0], "user", "Read it.", false) && is(&said[1], "assistant", "[read_file]", false));
    assert!(is(&said[2], "toolResult", "no file", true));
    let usage = daemon.ok("session/entries", json!({"sessionId": session, "types": ["message"]}));
    let usage = &usage["entries"][1]["message"]["usage"];
    assert_eq!((&usage["input"], &usage["output"], &usage["cacheRead"]), (&json!(30), &json!(8), &json!(20)));
}

#[test]
fn steps_of_opencode_are_answers_and_its_compaction_keeps_the_tail() {
    let mut daemon = Daemon::start();
    let [.., file] = files(&daemon.home);
    let (session, loaded) = load(&mut daemon, &file);
    assert_eq!((session.as_str(), &loaded["session"]["title"]), ("ses_1", &json!("Lists files")));
    let said = context(&mut daemon, &session);
    assert!(said[0].1.contains("One file was listed."), "{said:#?}");
    assert!(is(&said[1], "user", "Again.", false) && said.len() == 2, "{said:#?}");
    let entries = daemon.ok("session/entries", json!({"sessionId": session, "branch": "all", "types": ["message"]}));
    let roles: Vec<&str> = entries["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| entry["message"]["role"].as_str().expect("a role"))
        .collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant", "user", "user"]);
}

#[test]
fn a_session_of_another_agent_is_only_read_and_imported_whole() {
    let mut daemon = Daemon::start();
    for file in files(&daemon.home) {
        let refused = daemon.err("session/load", json!({"path": file}));
        assert_eq!(refused["data"]["path"], "readOnly");
        assert!(refused["message"].as_str().expect("a text").contains("session/import"), "{refused}");
        let (session, _) = load(&mut daemon, &file);
        let read = context(&mut daemon, &session);
        let ids = |daemon: &mut Daemon, session: &str| {
            let page = daemon.ok("session/entries", json!({"sessionId": session, "branch": "all"}));
            page["entries"].as_array().expect("entries").iter().map(|it| it["id"].to_string()).collect::<Vec<_>>()
        };
        let of_read = ids(&mut daemon, &session);
        daemon.ok("session/close", json!({"sessionId": session}));
        let imported = daemon.ok("session/import", json!({"path": file, "title": "Imported"}));
        let (own, origin) = (&imported["session"], &imported["origin"]);
        assert_eq!((&own["title"], origin["sessionId"].as_str()), (&json!("Imported"), Some(session.as_str())));
        assert_eq!(own["parentSession"].as_str(), file.canonicalize().expect("a file").to_str());
        let own = own["sessionId"].as_str().expect("an id").to_owned();
        assert_eq!(context(&mut daemon, &own), read);
        let of_import = ids(&mut daemon, &own);
        assert!(of_read.iter().all(|id| of_import.contains(id)), "an import has every entry, by the same ids");
        daemon.append(&own, &[json!({"role": "user", "content": "Going on."})]);
        let said = context(&mut daemon, &own);
        assert_eq!(said.last().map(|message| message.1.as_str()), Some("Going on."), "an import is written to");
        let entries = daemon.ok("session/entries", json!({"sessionId": own, "branch": "all", "types": ["custom"]}));
        assert_eq!(entries["entries"][0]["customType"], "abridged.imported");
        daemon.ok("session/close", json!({"sessionId": own}));
    }
    let missing = daemon.home.path("none.jsonl");
    assert_eq!(daemon.err("session/import", json!({"path": missing}))["data"]["code"], "not_found");
    fs::write(&missing, "no session\n").expect("written");
    assert_eq!(daemon.err("session/import", json!({"path": missing}))["data"]["path"], "path");
    let relative = daemon.err("session/import", json!({"path": missing, "cwd": "here"}));
    assert_eq!(relative["data"]["path"], "cwd");
}

#[test]
fn a_file_names_no_place_outside_of_the_data_folder() {
    let mut daemon = Daemon::start();
    for (name, text) in [
        ("t.jsonl", claude_code().replace("2026-03-01T10:00:00.000Z", "/../../../../outside")),
        ("rollout-t.jsonl", codex().replace("2026-03-01T10:00:00Z", "/../../../../outside")),
        ("session-t.jsonl", gemini().replace("2026-03-01T10:00:00Z", "/../../../../outside")),
    ] {
        let text = text.replace("\"/project\"", "\"../relative\"");
        let file = daemon.home.path(name);
        fs::write(&file, text).expect("written");
        let imported = daemon.ok("session/import", json!({"path": file}));
        let session = &imported["session"];
        let path = Path::new(session["path"].as_str().expect("a path"));
        assert!(path.starts_with(daemon.home.path("data/sessions")), "{}", path.display());
        assert!(!path.to_string_lossy().contains("..") && path.exists(), "{}", path.display());
        assert_eq!(session["cwd"], "/", "a relative folder is none");
    }
}

#[test]
fn an_odd_beginning_and_half_of_a_character_lose_nothing() {
    let mut daemon = Daemon::start();
    let snapshots: String = (0..40)
        .map(|nth| {
            format!("{}\n", json!({"type": "file-history-snapshot", "messageId": nth, "snapshot": "x".repeat(20_000)}))
        })
        .collect();
    let text = format!("\u{feff}{snapshots}{}", claude_code().replace("Run both.", "Run both \\ud83e."));
    let file = daemon.home.path("odd.jsonl");
    fs::write(&file, text.replace('\n', "\r\n")).expect("written");
    let (session, _) = load(&mut daemon, &file);
    let said = context(&mut daemon, &session);
    assert!(is(&said[0], "user", "Run both \u{fffd}.", false) && said.len() == 5, "{said:#?}");
    let file = daemon.home.path("odd.json");
    fs::write(&file, opencode().replace("Again.", "Again \\udd00.")).expect("written");
    let (session, _) = load(&mut daemon, &file);
    let said = context(&mut daemon, &session);
    assert!(is(&said[1], "user", "Again \u{fffd}.", false), "{said:#?}");
}

#[test]
fn a_session_in_the_database_of_opencode_is_read_and_nothing_is_left_beside_it() {
    let mut daemon = Daemon::start();
    let folder = daemon.home.path("db");
    fs::create_dir(&folder).expect("a folder");
    let file = folder.join("opencode.db");
    let export: Value = serde_json::from_str(&opencode()).expect("JSON");
    let database = rusqlite::Connection::open(&file).expect("a database");
    database
        .execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE session (id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT, revert TEXT,
                                   time_created INTEGER, time_updated INTEGER);
             CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
             CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);
             INSERT INTO session VALUES ('ses_1', NULL, '/project', 'Lists files', '1.18.0', '{\"messageID\":\"msg_6\"}', 1, 2);",
        )
        .expect("made");
    for message in export["messages"].as_array().expect("messages") {
        let id = message["info"]["id"].as_str().expect("an id");
        let values = (id, "ses_1", 1, message["info"].to_string());
        database.execute("INSERT INTO message VALUES (?1, ?2, ?3, ?4)", values).expect("added");
        for (nth, part) in message["parts"].as_array().expect("parts").iter().enumerate() {
            let values = (format!("prt_{id}_{nth:03}"), id, "ses_1", part.to_string());
            database.execute("INSERT INTO part VALUES (?1, ?2, ?3, ?4)", values).expect("added");
        }
    }
    let names = || {
        let entries = fs::read_dir(&folder).expect("a folder").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let path = PathBuf::from(format!("{}#ses_1", file.display()));
    // While OpenCode has it open, and after it has closed it.
    let mut said = Vec::new();
    let (session, _) = load(&mut daemon, &path);
    said.push(context(&mut daemon, &session));
    daemon.ok("session/close", json!({"sessionId": session}));
    database.close().expect("closed");
    assert_eq!(names(), ["opencode.db"]);
    let (session, loaded) = load(&mut daemon, &path);
    said.push(context(&mut daemon, &session));
    assert_eq!(names(), ["opencode.db"], "the reader leaves nothing");
    assert_eq!((session.as_str(), &loaded["session"]["title"]), ("ses_1", &json!("Lists files")));
    assert!(is(&said[0][1], "user", "Again.", false), "{said:#?}");
    assert_eq!(said[0], said[1]);
    let refused = daemon.err("session/load", json!({"path": file, "readOnly": true}));
    assert!(refused["message"].as_str().expect("a text").contains("1 sessions"), "{refused}");
}

/// Runs a command in a home folder with the sessions of all agents.
fn command(home: &Home, arguments: &[&str]) -> Output {
    let mut command = binary();
    for name in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR", "XDG_DATA_HOME"] {
        command.env_remove(name);
    }
    command.args(arguments).env("HOME", home.path("user"));
    command.env("ABRIDGED_DATA_DIR", home.path("data")).env("ABRIDGED_CONFIG_DIR", home.path("config"));
    command.output().expect("it runs")
}

fn document(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A home folder in which the agents keep their sessions.
fn machine(home: &Home) {
    let all = [
        (".claude/projects/-project/00000000-0000-4000-8000-000000000001.jsonl", claude_code()),
        (".codex/sessions/2026/03/01/rollout-2026-03-01T10-00-00-c-1.jsonl", codex()),
        (".gemini/tmp/project/chats/session-1.jsonl", gemini()),
        (".claude/projects/-project/agent-1.jsonl", claude_code()),
    ];
    for (name, text) in all {
        let path = home.path("user").join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }
}

#[test]
fn all_sessions_of_a_machine_are_listed_and_each_goes_on_in_another_agent() {
    let home = Home::new();
    machine(&home);
    let listed = document(&command(&home, &["sessions", "--all", "--json"]));
    let mut listed: Vec<(String, String, String)> = listed["sessions"]
        .as_array()
        .expect("sessions")
        .iter()
        .map(|it| {
            let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
            (text("agent"), text("sessionId"), text("title"))
        })
        .collect();
    listed.sort();
    let claude_code = "00000000-0000-4000-8000-000000000001";
    let row = |agent: &str, id: &str, title: &str| (agent.to_owned(), id.to_owned(), title.to_owned());
    assert_eq!(
        listed,
        [
            row("claude-code", claude_code, "Runs both"),
            row("codex", "c-1", "Apply it."),
            row("gemini-cli", "g-1", "Read it."),
        ]
    );
    let mut daemon = Daemon::start();
    for target in ["pi", "oh-my-pi", "claude-code", "codex", "opencode"] {
        let written = document(&command(&home, &["continue", "00000000", "--in", target, "--cwd", "/tmp", "--json"]));
        let path = PathBuf::from(written["path"].as_str().expect("a path"));
        assert!(path.starts_with(home.path("user")), "{}", path.display());
        let (session, loaded) = load(&mut daemon, &path);
        assert_eq!(loaded["session"]["cwd"], "/tmp", "{target}");
        let said = context(&mut daemon, &session);
        let texts: Vec<&str> = said.iter().map(|message| message.1.as_str()).collect();
        let expected = ["Run both.", "Both run.[Bash][Bash]", "out t1", "out t2", "Also the docs."];
        assert_eq!(texts, expected, "{target}");
        daemon.ok("session/close", json!({"sessionId": session}));
    }
    let refused = command(&home, &["continue", "nothing", "--in", "pi"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("sessions --all"), "{said}");
    let other = home.path("other");
    let imported = document(&command(&home, &["import", "c-1", "--json", "--data", other.to_str().expect("text")]));
    assert!(Path::new(imported["session"]["path"].as_str().expect("a path")).starts_with(&other), "{imported:#}");
    let imported = document(&command(&home, &["import", "g-1", "--json"]));
    assert_eq!(imported["origin"]["agent"], "gemini_cli");
}

/// A session of Claude Code that was compacted twice: the first time nothing was kept, the second time the newest answer. Its turns
/// are so long that they do not fit a small window.
fn compacted(turns: usize) -> String {
    let mut lines = Vec::new();
    let mut add = |kind: &str, uuid: &str, parent: Option<&str>, more: Value| {
        let mut line = json!({
            "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "cwd": "/project", "isSidechain": false,
            "timestamp": "2026-03-01T10:00:00.000Z",
        });
        more.as_object().expect("fields").iter().for_each(|(name, value)| line[name] = value.clone());
        lines.push(format!("{line}\n"));
    };
    let said = |text: &str| json!({"message": {"role": "user", "content": text}});
    let answer = |id: &str, text: &str| {
        let content = json!([{"type": "text", "text": text}]);
        json!({"message": {"id": id, "role": "assistant", "model": "claude-test", "content": content}})
    };
    let summary = |text: &str| json!({"isCompactSummary": true, "message": {"role": "user", "content": text}});
    add("user", "u1", None, said("The port is 7421. Never restart the gateway."));
    add("assistant", "a1", Some("u1"), answer("m1", "Noted."));
    let before =
        json!({"subtype": "compact_boundary", "logicalParentUuid": "a1", "compactMetadata": {"preTokens": 900}});
    add("system", "b1", None, before);
    add("user", "s1", Some("b1"), summary("The first summary."));
    let mut parent = "s1".to_owned();
    for turn in 0..turns {
        let (question, reply) = (format!("q{turn}"), format!("r{turn}"));
        let long = format!("Look at module_{turn}. {}", "It has a long description. ".repeat(120));
        add("user", &question, Some(&parent), said(&long));
        add("assistant", &reply, Some(&question), answer(&format!("n{turn}"), &format!("Module {turn} is fine.")));
        parent = reply;
    }
    let kept = json!({"preTokens": 5_000, "preservedSegment": {"headUuid": parent, "tailUuid": parent}});
    let after = json!({"subtype": "compact_boundary", "logicalParentUuid": parent, "compactMetadata": kept});
    add("system", "b2", None, after);
    add("user", "s2", Some("b2"), summary("The second summary."));
    add("user", "last", Some("s2"), said("And the next module?"));
    lines.concat()
}

#[test]
fn a_compaction_of_claude_code_is_one_with_the_messages_that_it_kept() {
    let mut daemon = Daemon::start();
    let file = daemon.home.path("compacted.jsonl");
    fs::write(&file, compacted(3)).expect("written");
    let (session, _) = load(&mut daemon, &file);
    let said = context(&mut daemon, &session);
    assert!(said[0].1.contains("The second summary.") && !said[0].1.contains("The first summary."), "{said:#?}");
    assert!(is(&said[1], "assistant", "Module 2 is fine.", false), "{said:#?}");
    assert!(is(&said[2], "user", "And the next module?", false) && said.len() == 3, "{said:#?}");
    let page = daemon.ok("session/entries", json!({"sessionId": session, "branch": "all", "types": ["compaction"]}));
    let sizes: Vec<&Value> =
        page["entries"].as_array().expect("entries").iter().map(|it| &it["tokensBefore"]).collect();
    assert_eq!(sizes, [&json!(900), &json!(5_000)]);
}

#[test]
fn a_context_that_does_not_fit_begins_with_a_summary_in_the_next_agent() {
    let home = Home::new();
    // The turns without the compactions: too much for the window of the settings.
    let text = compacted(60);
    let text: String = text
        .lines()
        .filter(|line| !line.contains("\"system\"") && !line.contains("isCompactSummary"))
        .map(|line| {
            format!(
                "{}\n",
                line.replace("\"parentUuid\":\"s1\"", "\"parentUuid\":\"a1\"")
                    .replace("\"parentUuid\":\"s2\"", "\"parentUuid\":\"r59\"")
            )
        })
        .collect();
    let file = home.path("user/.claude/projects/-project/00000000-0000-4000-8000-000000000002.jsonl");
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(&file, text).expect("written");
    let model = json!({"provider": "anthropic", "id": "claude-test", "api": "anthropic", "contextWindow": 16_000});
    home.settings(&json!({ "models": [model] }).to_string());
    let mut daemon = Daemon::start();
    for target in ["pi", "codex", "claude-code"] {
        let written = document(&command(
            &home,
            &["continue", "00000000-0000-4000-8000-000000000002", "--in", target, "--cwd", "/tmp", "--json"],
        ));
        let path = PathBuf::from(written["path"].as_str().expect("a path"));
        let (session, _) = load(&mut daemon, &path);
        let said = context(&mut daemon, &session);
        assert!(said.len() < 60, "{target}: {}", said.len());
        assert!(said[0].1.contains("<summary>") && said[0].1.contains("7421"), "{target}: {:#?}", said[0]);
        assert!(is(said.last().expect("a message"), "user", "And the next module?", false), "{target}");
        daemon.ok("session/close", json!({"sessionId": session}));
    }
}

#[test]
fn a_path_that_is_no_text_is_refused_and_hides_no_other_session() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    let home = Home::new();
    machine(&home);
    let odd = home.path("user/.claude/projects/-project").join(OsStr::from_bytes(b"b\xffad.jsonl"));
    fs::write(&odd, claude_code()).expect("written");
    let listed = document(&command(&home, &["sessions", "--all", "--json"]));
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(4), "{listed:#}");
    for arguments in [["import", "b"].as_slice(), &["continue", "b", "--in", "codex"]] {
        let refused = command(&home, arguments);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{said}");
        assert!(said.contains("UTF-8"), "{said}");
    }
}

#[test]
fn the_hook_puts_the_facts_of_the_condensed_part_into_the_next_context() {
    use std::{io::Write as _, process::Stdio};
    let home = Home::new();
    let [claude_code, codex, ..] = files(&home);
    let hook = |input: &Value| {
        let mut command = binary();
        command.args(["hook", "session-start"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut hook = command.spawn().expect("it starts");
        hook.stdin.take().expect("a pipe").write_all(input.to_string().as_bytes()).expect("it reads");
        let output = hook.wait_with_output().expect("it ends");
        assert!(output.status.success(), "an agent is never stopped");
        (String::from_utf8(output.stdout).expect("text"), String::from_utf8(output.stderr).expect("text"))
    };
    for (file, fact) in [(&claude_code, "Run both"), (&codex, "Apply it")] {
        let (out, _) = hook(&json!({"source": "compact", "transcript_path": file}));
        let answer: Value = serde_json::from_str(&out).expect("JSON");
        let output = &answer["hookSpecificOutput"];
        assert_eq!(
            (answer.as_object().map(serde_json::Map::len), &output["hookEventName"]),
            (Some(1), &json!("SessionStart"))
        );
        let context = output["additionalContext"].as_str().expect("a text");
        assert!(context.contains(fact) && context.len() <= 10_000, "{context}");
        for source in ["startup", "resume", "clear"] {
            assert_eq!(hook(&json!({"source": source, "transcript_path": file})), (String::new(), String::new()));
        }
    }
    let (out, error) = hook(&json!({"source": "compact", "transcript_path": home.path("gone.jsonl")}));
    assert!(out.is_empty() && error.contains("no transcript"), "{error}");
    let (out, error) = hook(&json!("no input"));
    assert!(out.is_empty() && error.contains("SessionStart"), "{error}");
}

#[test]
fn a_session_of_another_agent_is_not_deleted() {
    let mut daemon = Daemon::start();
    let [file, ..] = files(&daemon.home);
    let before = fs::read(&file).expect("a file");
    let (session, _) = load(&mut daemon, &file);
    let refused = daemon.err("session/delete", json!({"sessionId": session}));
    assert_eq!(refused["data"]["code"], "invalid_params", "{refused}");
    assert_eq!(fs::read(&file).expect("it is there"), before);
}
