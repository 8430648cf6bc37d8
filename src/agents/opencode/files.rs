//! The files in which earlier versions of OpenCode kept a session: `storage/session/PROJECT/SESSION.json`,
//! `storage/message/SESSION/MESSAGE.json` and `storage/part/MESSAGE/PART.json`.

#![expect(clippy::disallowed_methods, reason = "reads the files of another agent")]

use super::Stored;
use crate::{conversation::entry::without_half_pairs, regular};
use serde_json::Value;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The largest file that is read, in bytes.
const LARGEST: u64 = 64 << 20;

/// Reads the session of a file below `storage/session`. `None` where the file is elsewhere, or no session.
///
/// # Errors
/// When a file cannot be read.
pub fn session(file: &Path) -> io::Result<Option<Stored>> {
    let Some(storage) = storage(file) else { return Ok(None) };
    let info = read(file)?;
    let Some(id) = info["id"].as_str().filter(|id| id.starts_with("ses")) else { return Ok(None) };
    let mut stored = Stored { messages: Vec::new(), info: info.clone() };
    for message in files_of(&storage.join("message").join(id))? {
        let info = read(&message)?;
        let parts = storage.join("part").join(info["id"].as_str().unwrap_or_default());
        let parts = files_of(&parts)?.iter().map(|part| read(part)).collect::<io::Result<Vec<Value>>>()?;
        stored.messages.push((info, parts));
    }
    let created = |message: &Value| message["time"]["created"].as_i64().unwrap_or_default();
    stored.messages.sort_by_key(|(info, _)| (created(info), info["id"].as_str().unwrap_or_default().to_owned()));
    Ok(Some(stored))
}

/// The storage folder of a session's file.
fn storage(file: &Path) -> Option<PathBuf> {
    let sessions = file.parent()?.parent()?;
    (sessions.file_name()? == "session").then(|| sessions.parent().map(Path::to_owned)).flatten()
}

/// The JSON files of a folder by their names, which sort by time. A folder that is missing has none.
fn files_of(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort_unstable();
    Ok(files)
}

fn read(file: &Path) -> io::Result<Value> {
    let bytes = regular::read(file, LARGEST)?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = without_half_pairs(&text);
    Ok(serde_json::from_str(whole.as_deref().unwrap_or(&text)).unwrap_or_default())
}
