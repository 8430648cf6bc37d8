//! OpenCode's database, which is only read.

#![expect(clippy::disallowed_methods, reason = "looks for the log of writes beside a database")]

use super::Stored;
use crate::conversation::entry::without_half_pairs;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A session in the database, for a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// The session that it was started from.
    pub parent: Option<String>,
    /// The working folder.
    pub cwd: String,
    /// The title.
    pub title: String,
    /// Time of its beginning, in milliseconds since 1970.
    pub created: i64,
    /// Time of its last change, in milliseconds since 1970.
    pub updated: i64,
    /// Size of its parts, in bytes.
    pub size: u64,
}

/// The sessions of a database, the newest first.
///
/// # Errors
/// When it cannot be read, or has other tables.
pub fn list(file: &Path) -> rusqlite::Result<Vec<Listed>> {
    let database = open(file)?;
    let mut rows = database.prepare(
        "SELECT id, parent_id, directory, title, time_created, time_updated,
                (SELECT coalesce(sum(length(CAST(data AS BLOB))), 0) FROM part WHERE part.session_id = session.id)
         FROM session ORDER BY time_updated DESC, id DESC",
    )?;
    let listed = rows.query_map([], |row| {
        Ok(Listed {
            id: row.get(0)?,
            parent: row.get(1)?,
            cwd: row.get(2)?,
            title: row.get(3)?,
            created: row.get(4)?,
            updated: row.get(5)?,
            size: row.get(6)?,
        })
    })?;
    // A row in another form hides no other one.
    Ok(listed.filter_map(Result::ok).collect())
}

/// Reads a session. `None` where the database has none with this id.
///
/// # Errors
/// When it cannot be read, or has other tables.
pub fn session(file: &Path, id: &str) -> rusqlite::Result<Option<Stored>> {
    let mut database = open(file)?;
    // One state of the database, also while OpenCode writes.
    let database = database.transaction()?;
    let mut sessions = database.prepare(
        "SELECT parent_id, directory, title, version, revert, time_created, time_updated FROM session WHERE id = ?1",
    )?;
    let info = |row: &Row<'_>| {
        let text = |at: usize| row.get::<_, Option<String>>(at);
        let revert = text(4)?.and_then(|revert| serde_json::from_str::<Value>(&revert).ok());
        Ok(json!({
            "id": id, "parentID": text(0)?, "directory": text(1)?, "title": text(2)?, "version": text(3)?,
            "revert": revert, "time": { "created": row.get::<_, i64>(5)?, "updated": row.get::<_, i64>(6)? },
        }))
    };
    let Some(info) = sessions.query_map([id], info)?.next().transpose()? else { return Ok(None) };
    let data = |row: &Row<'_>, at: usize| {
        let text: String = row.get(at)?;
        let whole = without_half_pairs(&text);
        Ok::<Value, rusqlite::Error>(serde_json::from_str(whole.as_deref().unwrap_or(&text)).unwrap_or_default())
    };
    let mut parts = database.prepare("SELECT data FROM part WHERE message_id = ?1 ORDER BY id")?;
    let mut messages =
        database.prepare("SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id")?;
    let mut stored = Stored { info, messages: Vec::new() };
    let mut rows = messages.query([id])?;
    while let Some(row) = rows.next()? {
        let message: String = row.get(0)?;
        let mut info = data(row, 1)?;
        info["id"] = message.clone().into();
        let parts = parts.query_map([&message], |row| data(row, 0))?.collect::<rusqlite::Result<Vec<Value>>>()?;
        stored.messages.push((info, parts));
    }
    Ok(Some(stored))
}

fn open(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    // A database without a log of writes has all of them. SQLite would make a log for the reading and leave it there.
    let is_whole = std::fs::metadata(beside(file)).map_or(true, |log| log.len() == 0);
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => char::from(byte).to_string(),
        other => format!("%{other:02x}"),
    };
    let path: String = file.as_os_str().as_encoded_bytes().iter().map(|byte| letter(*byte)).collect();
    Connection::open_with_flags(format!("file:{path}{}", if is_whole { "?immutable=1" } else { "" }), flags)
}

/// The log of writes that stands beside a database.
fn beside(file: &Path) -> PathBuf {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}
