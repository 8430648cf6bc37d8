//! `abridged continue`: a session written for another agent, which goes on with it.

#![expect(clippy::disallowed_methods, reason = "writes a session of another agent")]

use super::found;
use crate::{
    agents::{
        Agent,
        homes::Homes,
        writing::{Conversation, claude_code, codex, opencode},
    },
    cli::{
        named::on_the_wire,
        print,
        session_commands::{Opened, Rights, open},
        wrap::print_sentences,
    },
    conversation::entry,
    ids::SessionId,
    prompts::{Prompt, Prompts, escape_frame},
    regular::{self, Links},
};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

/// Options of `abridged continue`.
pub struct Request {
    /// The file of a session, or the beginning of its id.
    pub session: PathBuf,
    /// The agent that goes on.
    pub agent: Agent,
    /// The working folder in which it goes on.
    pub cwd: Option<PathBuf>,
    /// The data folder, in the place of the one of the environment.
    pub data: Option<PathBuf>,
    /// As JSON.
    pub json: bool,
    /// The time of the writing.
    pub now: Timestamp,
}

/// A session that was written.
struct Written {
    path: PathBuf,
    id: String,
    /// The command that opens it.
    command: String,
}

/// Writes a session for another agent.
///
/// # Errors
/// When there is none, the agent's form is not written, or its folder cannot be written.
pub fn run(request: &Request) -> Result<i32, String> {
    let path = found::path(&request.session, request.data.as_deref())?;
    let homes = Homes::from_environment()?;
    let mut opened = open(Some(&path), request.data.as_deref(), Rights::Read)?;
    let cwd = match &request.cwd {
        Some(cwd) => std::path::absolute(cwd).map_err(|error| error.to_string())?,
        None => PathBuf::from(opened.session["cwd"].as_str().unwrap_or("/")),
    };
    // Agents name their folders by the real path.
    let cwd = fs::canonicalize(&cwd).unwrap_or(cwd);
    let id = SessionId::fresh(request.now).to_string();
    let written = match request.agent {
        Agent::Pi => in_pis_form(&mut opened, &homes.pi, "pi --session", &cwd, id, request.now)?,
        Agent::OhMyPi => in_pis_form(&mut opened, &homes.oh_my_pi, "omp --resume", &cwd, id, request.now)?,
        agent => in_form_of(agent, conversation(&mut opened, &cwd, id, request.now)?, &homes)?,
    };
    opened.client.end()?;
    let Written { path, id, command } = written;
    if request.json {
        let (path, cwd) = (path.display().to_string(), cwd.display().to_string());
        print::document(&json!({ "path": path, "sessionId": id, "cwd": cwd, "command": command }));
        return Ok(0);
    }
    if !cwd.is_dir() {
        print::note(&format!("there is no folder {}; name one with --cwd", cwd.display()));
    }
    print::line(&print::plain(&path.display().to_string()));
    print_sentences(&format!("{} goes on with it:", request.agent.title()));
    // On one line at every width, so that it can be pasted.
    print::line(&print::plain(&format!("cd {} && {command}", quoted(&cwd))));
    Ok(0)
}

/// A path as a word of a shell.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "/._-+".contains(char);
    if path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// The conversation as the next request would have it, with a summary where it does not fit.
fn conversation(opened: &mut Opened, cwd: &Path, id: String, now: Timestamp) -> Result<Conversation, String> {
    let context = opened.call("session/context", json!({}))?;
    let all = context["messages"].as_array().cloned().unwrap_or_default();
    let messages = match extract(opened)? {
        None => all,
        Some(made) => {
            let ids = context["entryIds"].as_array().map(Vec::as_slice).unwrap_or_default();
            let kept = ids.iter().position(|id| *id == made["firstKeptEntryId"] && !id.is_null());
            fitted(all, kept, made["summary"].as_str().unwrap_or_default())
        }
    };
    if messages.is_empty() {
        return Err("the session has no messages to go on with".to_owned());
    }
    let title = opened.session["title"].as_str().map(str::to_owned);
    Ok(Conversation { id, cwd: cwd.display().to_string(), title, now, messages })
}

/// A summary with the kept messages after it, and with the newest request of the user, where that is not among them.
fn fitted(mut all: Vec<Value>, kept: Option<usize>, summary: &str) -> Vec<Value> {
    let rest = all.split_off(kept.unwrap_or(all.len()));
    let frame = Prompts::default().render(Prompt::CompactionSummaryContext, &[("summary", &escape_frame(summary))]);
    let is_user = |message: &Value| message["role"] == "user";
    let request = if rest.iter().any(is_user) { None } else { all.into_iter().rfind(is_user) };
    let frame = json!({ "role": "user", "content": frame });
    std::iter::once(frame).chain(request).chain(rest).collect()
}

/// The compaction that makes the context fit, where it is above its threshold. Nothing is written for it.
fn extract(opened: &mut Opened) -> Result<Option<Value>, String> {
    let usage = opened.call("session/usage", json!({}))?;
    let (context, threshold) = (usage["contextTokens"].as_u64(), usage["thresholdTokens"].as_u64());
    if threshold.is_none() || context <= threshold {
        return Ok(None);
    }
    let made = opened.call("session/compact", json!({ "apply": false, "wait": true, "method": "extractive" }))?;
    Ok(Some(made["result"].clone()).filter(|result| result["summary"].is_string()))
}

/// Writes a conversation in the form of an agent.
fn in_form_of(agent: Agent, conversation: Conversation, homes: &Homes) -> Result<Written, String> {
    let id = conversation.id.clone();
    let (path, text, command) = match agent {
        Agent::ClaudeCode => {
            let folder = homes.claude_code.join(claude_code::folder(&conversation.cwd));
            let path = folder.join(format!("{id}.jsonl"));
            (path, claude_code::lines(&conversation), format!("claude --resume {id}"))
        }
        Agent::Codex => {
            let path = homes.codex.join("sessions").join(codex::path(&conversation));
            (path, codex::lines(&conversation), format!("codex resume {id}"))
        }
        Agent::OpenCode => {
            let path = homes.opencode.join("abridged").join(format!("{id}.json"));
            let command = format!("opencode import {}", quoted(&path));
            (path, opencode::export(&conversation).to_string(), command)
        }
        other => {
            return Err(format!(
                "sessions of {} are read and not written; name pi, oh-my-pi, claude-code, codex or opencode",
                other.title()
            ));
        }
    };
    make_new(&path, |file| file.write_all(text.as_bytes()))?;
    Ok(Written { path, id, command })
}

/// Writes the session in pi's form, with every entry, and with a summary at its end where the context does not fit.
fn in_pis_form(
    opened: &mut Opened,
    sessions: &Path,
    command: &str,
    cwd: &Path,
    id: String,
    now: Timestamp,
) -> Result<Written, String> {
    let time = entry::timestamp(now);
    let folder = cwd.display().to_string().trim_start_matches('/').replace(['/', '\\', ':'], "-");
    let name = format!("{}_{id}.jsonl", time.replace([':', '.'], "-"));
    let path = sessions.join(format!("--{folder}--")).join(name);
    let compaction = compaction(opened, &time, now)?;
    // The export is whole before its header gets another id. It is in no folder of the agent.
    let export = std::env::temp_dir().join(format!("abridged-{id}.jsonl"));
    opened.call("session/export", json!({ "format": "jsonl", "path": on_the_wire(&export)? }))?;
    let original = opened.session["path"].clone();
    let copied = (|| {
        let failed = |error: io::Error| format!("{}: {error}", export.display());
        let mut lines = BufReader::new(regular::open(&export, Links::Followed).map_err(failed)?);
        let mut first = String::new();
        lines.read_line(&mut first).map_err(failed)?;
        let mut header: Value = serde_json::from_str(&first).map_err(|error| error.to_string())?;
        header["id"] = id.clone().into();
        header["timestamp"] = time.clone().into();
        header["cwd"] = cwd.display().to_string().into();
        header["parentSession"] = original;
        make_new(&path, |file| {
            file.write_all(format!("{header}\n").as_bytes())?;
            io::copy(&mut lines, file)?;
            compaction.iter().try_for_each(|line| file.write_all(format!("{line}\n").as_bytes()))
        })
    })();
    let _ = fs::remove_file(&export);
    copied?;
    let command = format!("{command} {}", quoted(&path));
    Ok(Written { path, id, command })
}

/// The entry of a compaction at the leaf, where the context is above its threshold.
fn compaction(opened: &mut Opened, time: &str, now: Timestamp) -> Result<Option<Value>, String> {
    let Some(result) = extract(opened)? else { return Ok(None) };
    let leaf = opened.call("session/entries", json!({ "before": "leaf", "limit": 1 }))?;
    let id = &SessionId::fresh(now).as_str().replace('-', "")[16..];
    let kept = if result["firstKeptEntryId"].is_null() { json!(id) } else { result["firstKeptEntryId"].clone() };
    Ok(Some(json!({
        "type": "compaction", "id": id, "parentId": leaf["leafEntryId"], "timestamp": time, "summary": result["summary"],
        "firstKeptEntryId": kept, "tokensBefore": result["tokensBefore"], "details": result["details"], "fromHook": false,
    })))
}

/// Makes a new file, all or nothing.
fn make_new(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), String> {
    make_folder(path)?;
    if path.symlink_metadata().is_ok() {
        return Err(format!("{} is there already; it was not changed", path.display()));
    }
    regular::make_whole(path, |error| error, write).map_err(|error| {
        format!("{} cannot be written: {error}; make its folder writable, then try again", path.display())
    })
}

fn make_folder(path: &Path) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut builder = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(builder.recursive(true), 0o700);
    builder.create(folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))
}
