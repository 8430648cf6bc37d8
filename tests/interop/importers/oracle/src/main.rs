//! Reads sessions with the crate agent-sessions: a line of stdin is `AGENT<tab>FILE` or `AGENT<tab>FILE<tab>SESSION` for a session in a
//! database. Each is answered by a line of JSON: `{"facts": […]}` in the order of the file, or `{"error": …}`.

use agent_sessions::{
    Agent, CodexContentMode, Event, ReadOptions, SessionFile, TailMode, ToolArgs, import_database, import_session, read,
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, Write, stdin, stdout},
    path::Path,
};

fn main() {
    for line in stdin().lock().lines() {
        let line = line.expect("text on stdin");
        let fields: Vec<&str> = line.split('\t').collect();
        let answer = facts(&fields).map_or_else(|error| json!({ "error": error }), |facts| json!({ "facts": facts }));
        let mut out = stdout().lock();
        writeln!(out, "{answer}").and_then(|()| out.flush()).expect("an open stdout");
    }
}

fn facts(fields: &[&str]) -> Result<Vec<Value>, String> {
    let [agent, path, session @ ..] = fields else { return Err("a line is AGENT<tab>FILE[<tab>SESSION]".to_owned()) };
    let agent = match *agent {
        "claude-code" => Agent::ClaudeCode,
        "codex" => Agent::Codex,
        "gemini-cli" => Agent::GeminiCli,
        "opencode" => Agent::OpenCode,
        "pi" => Agent::Pi,
        other => return Err(format!("unknown agent {other}")),
    };
    let options = ReadOptions {
        max_file_bytes: None,
        max_line_bytes: None,
        tail: TailMode::AllowIncomplete,
        // The items are the model's history; the events beside them repeat a part of it.
        codex_content: CodexContentMode::ResponseItems,
        ..ReadOptions::default()
    };
    let path = Path::new(path);
    let imported = match (session, agent) {
        ([session], _) => import_database(agent, path, session, &options),
        (_, Agent::GeminiCli | Agent::OpenCode) => import_session(agent, path, &options),
        // A streaming reader goes on after a line that it cannot read.
        _ => {
            let file = SessionFile::inspect(agent, path).map_err(|error| error.to_string())?;
            let events = read(&file, &options).map_err(|error| error.to_string())?;
            return Ok(events.flatten().filter_map(|at| fact(at.record_id, at.value)).collect());
        }
    };
    let events = imported.map_err(|error| error.to_string())?.events;
    Ok(events.into_iter().filter_map(|at| fact(at.record_id, at.value)).collect())
}

/// An event; none for those of no interest. A record that a file repeats has its id twice.
fn fact(record: Option<String>, event: Event) -> Option<Value> {
    Some(match event {
        Event::Message(it) => json!({ "is": "message", "role": it.role, "text": it.text }),
        Event::ToolCall(it) => {
            let arguments = match it.arguments {
                ToolArgs::Json(value) => value,
                ToolArgs::RawString(text) => Value::String(text),
                _ => Value::Null,
            };
            json!({ "is": "call", "id": it.id, "name": it.name, "arguments": arguments })
        }
        Event::ToolResult(it) => {
            json!({ "is": "result", "id": it.call_id, "text": it.text, "output": it.output, "isError": it.is_error })
        }
        Event::Usage(it) => json!({ "is": "usage", "record": record, "key": it.dedup_key, "counts": it.counts }),
        _ => return None,
    })
}
