//! Reads the session of another agent from its file, as the content of the file tells it.

#![expect(clippy::disallowed_methods, reason = "reads the files of other agents")]

use super::{
    Agent, claude_code, codex, gemini,
    opencode::{self, database, files},
    records,
    transcript::{Converted, own_id},
};
use crate::{
    conversation::entry::without_half_pairs,
    ids::SessionId,
    log::{bytes::Bytes, error::StoreError},
    regular::{self, Links},
};
use serde_json::Value;
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

/// Bytes at the beginning of a file from which databases and compressed files are told.
const HEAD: usize = 16;

/// Lines at the beginning of a file that are looked at. Titles, settings and snapshots may stand before the first message.
const FIRST_LINES: usize = 1_000;

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
    match Beginning::of(&bytes).map_err(failed())?.map(|beginning| beginning.agent) {
        Some(agent) if is_large => {
            let what =
                format!("it is a session of {} of more than {LARGEST} bytes, the most that is read", agent.title());
            Err(foreign(what))
        }
        Some(Agent::ClaudeCode) => claude_code::read(&bytes, &stem).map(Some).map_err(failed()),
        Some(Agent::Codex) => {
            let mut continues = false;
            records::each(&bytes, |_, first| {
                continues = first.is_some_and(|first| base_of(first.as_bytes()).is_some());
                ControlFlow::Break(())
            })
            .map_err(failed())?;
            let bytes = if continues {
                let own = up_to(&bytes, LARGEST).map_err(failed())?;
                Bytes::Memory(with_base(&file, own, MOST_BASES)?.into())
            } else {
                bytes
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
            Ok(Some(gemini::read(objects, &stem, project_root(&file))))
        }
        _ if !is_document(&file) => Ok(None),
        _ => of_document(&file).map_err(failed()),
    }
}

/// Whether a file is one JSON document, by its name.
fn is_document(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "json")
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
    let bytes = Bytes::from(regular::open(&file, Links::Followed).map_err(failed())?);
    let Some(Beginning { agent, id, cwd }) = Beginning::of(&bytes).map_err(failed())? else {
        let of = |session: Converted| Peeked {
            agent: session.about.origin.agent,
            id: session.own_id(),
            cwd: session.about.cwd,
        };
        return Ok(read(path)?.map(of));
    };
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let id = id.filter(|_| agent != Agent::ClaudeCode).unwrap_or(stem);
    let root = || (agent == Agent::GeminiCli).then(|| project_root(&file)).flatten();
    Ok(Some(Peeked { agent, id: own_id(&id), cwd: cwd.or_else(root).unwrap_or_default() }))
}

/// The first lines of a file of JSON lines that say whose it is.
struct Beginning {
    agent: Agent,
    /// The id of the session, where the lines have it.
    id: Option<String>,
    /// The working folder.
    cwd: Option<String>,
}

impl Beginning {
    /// The beginning of a file; none where no line says an agent.
    fn of(bytes: &Bytes) -> std::io::Result<Option<Self>> {
        let mut found: Option<Self> = None;
        records::each(bytes, |number, text| {
            let line: Value = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            if found.is_none() {
                found = Self::of_line(&line);
            }
            if let Some(found) = found.as_mut().filter(|found| found.cwd.is_none()) {
                found.cwd = line["cwd"].as_str().map(str::to_owned);
            }
            let is_known = found.as_ref().is_some_and(|found| found.cwd.is_some() || found.agent != Agent::ClaudeCode);
            if is_known || line["type"] == "session" || number >= FIRST_LINES {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    fn of_line(line: &Value) -> Option<Self> {
        let is = [
            (Agent::GeminiCli, gemini::is_session(line)),
            (Agent::ClaudeCode, claude_code::is_line(line)),
            (Agent::Codex, codex::is_line(line)),
        ];
        let (agent, _) = is.into_iter().find(|(_, is)| *is)?;
        // The first versions of Codex have no payload.
        let meta = if line["payload"].is_object() { &line["payload"] } else { line };
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let id = match agent {
            Agent::GeminiCli => text(&line["sessionId"]),
            Agent::Codex => text(&meta["id"]),
            _ => None,
        };
        Some(Self { agent, id, cwd: text(&meta["cwd"]) })
    }
}

/// The first bytes of a file, at most this number.
fn up_to(bytes: &Bytes, most: u64) -> std::io::Result<Vec<u8>> {
    let most = most.min(bytes.length()?);
    bytes.beginning(usize::try_from(most).unwrap_or(usize::MAX))
}

/// The session of Codex that a file continues, and the number of its bytes that belong to the history.
fn base_of(beginning: &[u8]) -> Option<(String, u64)> {
    let first = beginning.split(|byte| *byte == b'\n').next()?;
    let meta: Value = serde_json::from_slice(first).ok()?;
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
    fn find(folder: &Path, id: &str, levels: usize) -> Option<PathBuf> {
        let entries: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().collect();
        // A thread that was reverted has the id of its revision at the end.
        let is_named = |name: &str| {
            let stem = name.strip_suffix(".jsonl").and_then(|name| name.strip_suffix(id));
            stem.is_some_and(|stem| stem.ends_with(['-', '_']))
        };
        let named = entries.iter().find(|entry| is_named(&entry.file_name().to_string_lossy()));
        named.map(std::fs::DirEntry::path).or_else(|| {
            let folders = entries.iter().filter(|entry| levels > 0 && entry.file_type().is_ok_and(|it| it.is_dir()));
            folders.into_iter().find_map(|entry| find(&entry.path(), id, levels - 1))
        })
    }
    let is_home =
        |folder: &&Path| folder.file_name().is_some_and(|name| name == "sessions" || name == "archived_sessions");
    match file.ancestors().skip(1).find(is_home) {
        Some(sessions) => {
            let home = sessions.parent()?;
            ["sessions", "archived_sessions"].into_iter().find_map(|folder| find(&home.join(folder), id, 3))
        }
        None => find(file.parent()?, id, 0),
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

/// A JSON document. Half of a character becomes U+FFFD.
fn document(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?.trim_start_matches('\u{feff}');
    let whole = without_half_pairs(text);
    serde_json::from_str(whole.as_deref().unwrap_or(text)).ok()
}

/// A session in one JSON document.
fn of_document(file: &Path) -> std::io::Result<Option<Converted>> {
    let Some(document) = document(&regular::read(file, LARGEST_DOCUMENT)?) else { return Ok(None) };
    if gemini::is_session(&document) {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        return Ok(Some(gemini::read([Some(document)], &stem, project_root(file))));
    }
    if let Some(stored) = opencode::of_export(&document) {
        return Ok(Some(stored.converted()));
    }
    Ok(files::session(file)?.map(|stored| stored.converted()))
}

/// The project's folder of a session of Gemini CLI, which stands beside the folder of its sessions.
pub(super) fn project_root(file: &Path) -> Option<String> {
    let project = file.parent()?.parent()?;
    let root = regular::read(&project.join(".project_root"), 64 << 10).ok()?;
    String::from_utf8(root).ok().map(|root| root.trim().to_owned()).filter(|root| !root.is_empty())
}
