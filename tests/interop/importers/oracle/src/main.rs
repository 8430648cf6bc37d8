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
    let (agent, codex_content) = match *agent {
        "claude-code" => (Agent::ClaudeCode, CodexContentMode::Auto),
        "codex" => (Agent::Codex, CodexContentMode::ResponseItems),
        "codex-events" => (Agent::Codex, CodexContentMode::Auto),
        "gemini-cli" => (Agent::GeminiCli, CodexContentMode::Auto),
        "opencode" => (Agent::OpenCode, CodexContentMode::Auto),
        "pi" => (Agent::Pi, CodexContentMode::Auto),
        other => return Err(format!("unknown agent {other}")),
    };
    let options = ReadOptions {
        max_file_bytes: None,
        max_line_bytes: None,
        tail: TailMode::AllowIncomplete,
        codex_content,
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
            return Ok(events.flatten().filter_map(|at| fact(at.record_type.as_deref(), at.value)).collect());
        }
    };
    let events = imported.map_err(|error| error.to_string())?.events;
    Ok(events.into_iter().filter_map(|at| fact(None, at.value)).collect())
}

/// An event; none for those of no interest.
fn fact(record: Option<&str>, event: Event) -> Option<Value> {
    let mut fact = match event {
        Event::Message(it) => json!({ "is": "message", "role": it.role, "text": it.text, "meta": it.is_meta }),
        Event::ToolCall(it) => {
            let arguments = match it.arguments {
                ToolArgs::Json(value) => value,
                ToolArgs::RawString(text) => Value::String(text),
                _ => Value::Null,
            };
            json!({ "is": "call", "id": it.id, "name": it.name, "arguments": arguments })
        }
        Event::ToolResult(it) => json!({ "is": "result", "id": it.call_id, "text": it.text, "isError": it.is_error }),
        Event::Usage(it) => json!({ "is": "usage", "key": it.dedup_key, "counts": it.counts }),
        _ => return None,
    };
    fact["record"] = record.into();
    Some(fact)
}
