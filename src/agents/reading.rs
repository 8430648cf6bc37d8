//! Reads the session of another agent from its file, as the content of the file tells it.

#![expect(clippy::disallowed_methods, reason = "reads the files of other agents")]

use super::{
    Agent, claude_code, codex, gemini,
    opencode::{self, database, files},
    records,
    transcript::Converted,
};
use crate::{
    ids::SessionId,
    log::{bytes::Bytes, error::StoreError},
    regular::{self, Links},
};
use serde_json::Value;
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

/// Bytes at the beginning of a file from which its agent is told.
const HEAD: usize = 256 << 10;

/// Lines at the beginning of a file that are looked at. Titles and settings may stand before the first message.
const FIRST_LINES: usize = 20;

/// The largest file that is read, in bytes. Its entries are held in memory.
const LARGEST: u64 = 1 << 30;

/// The largest file that is one JSON document, in bytes.
const LARGEST_DOCUMENT: u64 = 256 << 20;

/// The most sessions of Codex that continue each other. A circle ends here, too.
const MOST_BASES: usize = 32;

/// The beginning of each SQLite file.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// The beginning of each file that zstd compressed.
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The path of a session in a database: `opencode.db#ses_…`.
#[must_use]
pub fn in_database(file: &Path, session: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push("#");
    path.push(session);
    path.into()
}

/// The file and the session of such a path.
#[must_use]
pub fn file_and_session(path: &Path) -> (PathBuf, Option<String>) {
    let split = path.to_str().and_then(|path| path.rsplit_once('#')).filter(|(_, session)| session.starts_with("ses"));
    match split {
        Some((file, session)) if !path.exists() => (file.into(), Some(session.to_owned())),
        _ => (path.to_owned(), None),
    }
}

/// Reads a session. `None` where the file is of no other agent that is known here.
///
/// # Errors
/// When the file cannot be read, or says in a way that can be mended why it is not.
pub fn read(path: &Path) -> Result<Option<Converted>, StoreError> {
    let (file, session) = file_and_session(path);
    let failed = || StoreError::io(path, "cannot be read");
    if !file.is_file() {
        return Ok(None);
    }
    let bytes = Bytes::from(regular::open(&file, Links::Followed).map_err(failed())?);
    let head = bytes.beginning(HEAD).map_err(failed())?;
    let foreign = |what: String| StoreError::Foreign { path: path.to_owned(), what };
    let is_large = bytes.length().map_err(failed())? > LARGEST;
    if head.starts_with(SQLITE) {
        return of_database(path, &file, session.as_deref()).map(Some);
    }
    if head.starts_with(ZSTD) {
        return Err(foreign("it is compressed; unpack it with zstd -d, and give the path of the result".to_owned()));
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match agent_of_lines(&head) {
        Some(agent) if is_large => {
            let what =
                format!("it is a session of {} of more than {LARGEST} bytes, the most that is read", agent.title());
            Err(foreign(what))
        }
        Some(Agent::ClaudeCode) => claude_code::read(&bytes, &stem).map(Some).map_err(failed()),
        Some(Agent::Codex) => {
            let bytes = match base_of(&head) {
                Some(_) => {
                    let own = up_to(&bytes, LARGEST).map_err(failed())?;
                    Bytes::Memory(with_base(&file, own, MOST_BASES)?.into())
                }
                None => bytes,
            };
            codex::read(&bytes, &stem).map(Some).map_err(failed())
        }
        Some(Agent::GeminiCli) => {
            let mut objects = Vec::new();
            records::each(&bytes, |_, text| {
                objects.push(text.and_then(|text| serde_json::from_str::<Value>(text).ok()));
                ControlFlow::Continue(())
            })
            .map_err(failed())?;
            Ok(Some(gemini::read(objects, project_root(&file))))
        }
        Some(_) => Ok(None),
        None if file.extension().is_some_and(|ending| ending == "json") => of_document(&file).map_err(failed()),
        None => Ok(None),
    }
}

/// The beginning of a session of another agent.
#[derive(Debug, Clone)]
pub struct Peeked {
    /// The agent.
    pub agent: Agent,
    /// Its id in that agent.
    pub id: SessionId,
    /// The working folder; empty where the beginning of the file has none.
    pub cwd: String,
}

/// Looks at the beginning of a file, or at a whole document. `None` where the file is of no other agent that is known here.
///
/// # Errors
/// As those of [`read`].
pub fn peek(path: &Path) -> Result<Option<Peeked>, StoreError> {
    let (file, _) = file_and_session(path);
    let failed = || StoreError::io(path, "cannot be read");
    if !file.is_file() {
        return Ok(None);
    }
    let head = Bytes::from(regular::open(&file, Links::Followed).map_err(failed())?);
    let head = head.beginning(HEAD).map_err(failed())?;
    let whole = || {
        let of = |session: Converted| Peeked {
            agent: session.about.origin.agent,
            id: session.own_id(),
            cwd: session.about.cwd,
        };
        Ok(read(path)?.map(of))
    };
    let Some(agent) = agent_of_lines(&head) else { return whole() };
    let lines: Vec<Value> = lines_of(&head).collect();
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (id, cwd) = match agent {
        Agent::ClaudeCode => (stem, lines.iter().find_map(|line| line["cwd"].as_str()).map(str::to_owned)),
        Agent::Codex => {
            let metas = lines.iter().filter(|line| line["type"] == "session_meta").map(|line| &line["payload"]);
            // The first versions.
            let meta = metas.chain(&lines).next();
            let text = |name: &str| meta.and_then(|meta| meta[name].as_str()).map(str::to_owned);
            (text("id").unwrap_or(stem), text("cwd"))
        }
        Agent::GeminiCli => {
            let id = lines.iter().find_map(|line| line["sessionId"].as_str()).unwrap_or(&stem);
            (id.to_owned(), project_root(&file))
        }
        _ => return whole(),
    };
    Ok(Some(Peeked { agent, id: id.into(), cwd: cwd.unwrap_or_default() }))
}

/// The first lines that are JSON.
fn lines_of(head: &[u8]) -> impl Iterator<Item = Value> {
    let lines = head.split(|byte| *byte == b'\n').filter(|line| !line.iter().all(u8::is_ascii_whitespace));
    lines.take(FIRST_LINES).filter_map(|line| serde_json::from_slice(line).ok())
}

/// The agent of a file of JSON lines, by its first lines.
fn agent_of_lines(head: &[u8]) -> Option<Agent> {
    for line in lines_of(head) {
        if line["type"] == "session" {
            return None;
        }
        let is = [
            (Agent::GeminiCli, gemini::is_session(&line)),
            (Agent::ClaudeCode, claude_code::is_line(&line)),
            (Agent::Codex, codex::is_line(&line)),
        ];
        if let Some((agent, _)) = is.into_iter().find(|(_, is)| *is) {
            return Some(agent);
        }
    }
    None
}

/// The first bytes of a file, at most this number.
fn up_to(bytes: &Bytes, most: u64) -> std::io::Result<Vec<u8>> {
    let most = most.min(bytes.length()?);
    bytes.beginning(usize::try_from(most).unwrap_or(usize::MAX))
}

/// The session of Codex that a file continues, and the number of its bytes that belong to the history.
fn base_of(beginning: &[u8]) -> Option<(String, u64)> {
    let meta = lines_of(beginning).next()?;
    let base = &meta["payload"]["history_base"];
    Some((base["thread_id"].as_str()?.to_owned(), base["end_byte_offset"].as_u64()?))
}

/// The bytes of a session of Codex, with those that it continues after its first line, which says which session it is.
fn with_base(file: &Path, own: Vec<u8>, most: usize) -> Result<Vec<u8>, StoreError> {
    let Some((id, end)) = base_of(&own) else { return Ok(own) };
    let missing = |what: &str| {
        let what =
            format!("it continues the session {id} of Codex, {what}; put that file beside it, and load it again");
        StoreError::Foreign { path: file.to_owned(), what }
    };
    if most == 0 {
        return Err(missing("which continues too many others"));
    }
    let base = rollout(file, &id).ok_or_else(|| missing("which is not among its sessions"))?;
    let failed = || StoreError::io(&base, "cannot be read");
    let bytes = Bytes::from(regular::open(&base, Links::Followed).map_err(failed())?);
    let before = up_to(&bytes, end.min(LARGEST)).map_err(failed())?;
    let before = with_base(&base, before, most - 1)?;
    let first = memchr::memchr(b'\n', &own).map_or(own.len(), |end| end + 1);
    Ok([&own[..first], &before, b"\n", &own[first..]].concat())
}

/// The file of another session of Codex, among the sessions around a file.
fn rollout(file: &Path, id: &str) -> Option<PathBuf> {
    fn find(folder: &Path, ending: &str, levels: usize) -> Option<PathBuf> {
        let entries: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().collect();
        let named = entries.iter().find(|entry| entry.file_name().to_string_lossy().ends_with(ending));
        named.map(std::fs::DirEntry::path).or_else(|| {
            let folders = entries.iter().filter(|entry| levels > 0 && entry.file_type().is_ok_and(|it| it.is_dir()));
            folders.into_iter().find_map(|entry| find(&entry.path(), ending, levels - 1))
        })
    }
    let ending = format!("-{id}.jsonl");
    let is_home =
        |folder: &&Path| folder.file_name().is_some_and(|name| name == "sessions" || name == "archived_sessions");
    match file.ancestors().skip(1).find(is_home) {
        Some(sessions) => {
            let home = sessions.parent()?;
            ["sessions", "archived_sessions"].into_iter().find_map(|folder| find(&home.join(folder), &ending, 3))
        }
        None => find(file.parent()?, &ending, 0),
    }
}

fn of_database(path: &Path, file: &Path, session: Option<&str>) -> Result<Converted, StoreError> {
    let foreign = |what: String| StoreError::Foreign { path: path.to_owned(), what };
    let unread = |error: rusqlite::Error| foreign(format!("it is no database of OpenCode that can be read ({error})"));
    let Some(session) = session else {
        let listed = database::list(file).map_err(unread)?;
        return Err(foreign(format!(
            "it holds {} sessions of OpenCode; add # and the id of one to the path, as abridged sessions --all lists them",
            listed.len()
        )));
    };
    match database::session(file, session).map_err(unread)? {
        Some(stored) => Ok(stored.converted()),
        None => Err(foreign(format!("it has no session {session}; abridged sessions --all lists those that it has"))),
    }
}

/// A session in one JSON document.
fn of_document(file: &Path) -> std::io::Result<Option<Converted>> {
    let document: Value = match serde_json::from_slice(&regular::read(file, LARGEST_DOCUMENT)?) {
        Ok(document) => document,
        Err(_) => return Ok(None),
    };
    if gemini::is_session(&document) {
        return Ok(Some(gemini::read([Some(document)], project_root(file))));
    }
    if let Some(stored) = opencode::of_export(&document) {
        return Ok(Some(stored.converted()));
    }
    Ok(files::session(file)?.map(|stored| stored.converted()))
}

/// The project's folder of a session of Gemini CLI, which stands beside the folder of its sessions.
fn project_root(file: &Path) -> Option<String> {
    let project = file.parent()?.parent()?;
    let root = regular::read(&project.join(".project_root"), 64 << 10).ok()?;
    String::from_utf8(root).ok().map(|root| root.trim().to_owned()).filter(|root| !root.is_empty())
}
