//! The first line of a session file, by which it is known to be one.

#![expect(clippy::disallowed_methods, reason = "reads a session file")]

use super::bytes::Bytes;
use crate::{conversation::entry::Header, log::error::StoreError, regular};
use serde_json::Value;
use std::{fs, io, path::Path};

/// As much of a file is looked at for its header as pi looks at, in bytes.
pub const LONGEST: usize = 1 << 20;

/// The longest id of a session, in bytes. Every event carries it. Those of all programs that were seen have 36.
const LONGEST_ID: usize = 1_024;

/// How much is read at first, in bytes.
const FIRST_BLOCK: usize = 4 << 10;

/// A header and where it stands.
#[derive(Debug)]
pub struct Found {
    /// The header.
    pub header: Header,
    /// The title, from oh-my-pi's line before it or from the header itself.
    pub title: Option<String>,
    /// Where the entries begin, in bytes.
    pub end: u64,
    /// How many lines stand before the entries.
    pub lines: usize,
}

/// Reads the header and nothing else.
///
/// # Errors
/// When the file is missing, or is no session.
pub fn peek(path: &Path) -> Result<Found, StoreError> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing(path.to_owned()),
        _ => StoreError::io(path, "cannot be read")(error),
    })?;
    if metadata.is_dir() {
        let source = io::Error::from_raw_os_error(21);
        return Err(StoreError::io(path, "is a folder; give the path of the session file in it")(source));
    }
    if !metadata.is_file() {
        return Err(StoreError::Foreign { path: path.to_owned(), what: "it is a device or a pipe".to_owned() });
    }
    let file = regular::open(path, regular::Links::Followed).map_err(StoreError::io(path, "cannot be read"))?;
    of(path, &file.into())
}

/// Reads the header of an open file and nothing else.
///
/// # Errors
/// When the file cannot be read, or is no session.
pub fn of(path: &Path, bytes: &Bytes) -> Result<Found, StoreError> {
    let read = |most| bytes.beginning(most).map_err(StoreError::io(path, "cannot be read"));
    // Nearly every header is in the first four kilobytes.
    let head = read(FIRST_BLOCK)?;
    let found = find(path, &head);
    match &found {
        Ok(there) if there.end <= head.len() as u64 => found,
        _ if head.len() < FIRST_BLOCK => found,
        _ => find(path, &read(LONGEST)?),
    }
}

/// The header in the beginning of a file, after oh-my-pi's title line where there is one.
///
/// # Errors
/// When it is no session.
pub fn find(path: &Path, beginning: &[u8]) -> Result<Found, StoreError> {
    let foreign = |what: &str| StoreError::Foreign { path: path.to_owned(), what: what.to_owned() };
    let mut title = None;
    let mut at = 0;
    let mut lines = 0;
    loop {
        let rest = beginning.get(at..).filter(|rest| !rest.is_empty());
        let rest = rest.ok_or_else(|| foreign("it is empty; make a session with session/new"))?;
        let newline = memchr::memchr(b'\n', rest);
        let line = &rest[..newline.unwrap_or(rest.len())];
        let begin = at;
        at += line.len() + 1;
        lines += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let text = match std::str::from_utf8(line) {
            Ok(text) => text,
            // An entry may stand on the same line, and be cut off here or be broken.
            Err(error) => std::str::from_utf8(&line[..error.valid_up_to()]).unwrap_or_default(),
        };
        let marks = text.len() - text.trim_start_matches('\u{feff}').len();
        let mut values = serde_json::Deserializer::from_str(&text[marks..]).into_iter::<Value>();
        let value = values.next().and_then(Result::ok).ok_or_else(|| {
            foreign(match newline {
                _ if std::str::from_utf8(line).is_err() => "its first line is not UTF-8",
                Some(_) => "its first line is not JSON",
                None => "its only line is not whole JSON",
            })
        })?;
        let rest = marks + values.byte_offset();
        if !text[rest..].trim().is_empty() || text.len() < line.len() {
            // An entry stands on the same line, or the next line of the head.
            at = begin + rest;
            lines -= 1;
        }
        match value["type"].as_str() {
            Some("title") if title.is_none() => {
                title = Some(value["title"].as_str().unwrap_or_default().to_owned());
            }
            Some("session") => {
                let header: Header = serde_json::from_value(value)
                    .map_err(|error| foreign(&format!("its header is not one of a session ({error})")))?;
                match header.id.as_str().len() {
                    0 => return Err(foreign("its header has an empty id")),
                    1..=LONGEST_ID => {}
                    length => {
                        let what = format!("the id in its header has {length} bytes; {LONGEST_ID} are the most");
                        return Err(foreign(&what));
                    }
                }
                let title = title.filter(|title| !title.is_empty()).or_else(|| header.title.clone());
                return Ok(Found { header, title, end: at as u64, lines });
            }
            _ => return Err(foreign("its first line is not a header {\"type\":\"session\",\"id\":…}")),
        }
    }
}

/// The line of a header of a new file.
///
/// # Errors
/// When it is so long that no reader would find it.
pub fn new_line(path: &Path, header: &Header) -> Result<String, StoreError> {
    let line = header_line(header);
    if line.len() < LONGEST {
        return Ok(line);
    }
    let what =
        format!("its header would have {} bytes, and {LONGEST} are the most; shorten its title and paths", line.len());
    Err(StoreError::Foreign { path: path.to_owned(), what })
}

/// A header as it stands in a file, without its newline.
#[must_use]
pub fn header_line(header: &Header) -> String {
    serde_json::to_string(header).expect("a header is always JSON")
}
