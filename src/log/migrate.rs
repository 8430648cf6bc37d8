//! Older session files in the form of today: pi's first and second version, and the survey's `keepLastMessages`.
//!
//! The first version has no ids. Those made here are a function of the session and the line's number, so that a file
//! opened twice without being written says the same twice.

use super::{
    bytes::Bytes,
    header::Found,
    indexing::{ZEROS, glued, glued_to_header, unreadable},
    lines,
    pieces::{self, Form, Piece},
};
use crate::{
    conversation::entry::{Entry, Header, VERSION},
    ids::{EntryId, SessionId},
    log::{index::Spot, repair::Repair},
    text::values,
};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::{io::Error, ops::ControlFlow, sync::Arc};

/// Reads an old file whole: what a line of it means depends on all before it.
///
/// # Errors
/// When it cannot be read.
pub fn read(file: &Bytes, found: &Found, length: u64) -> Result<(Vec<Arc<Entry>>, Vec<Repair>), Error> {
    let mut migration = Migration::of(&found.header);
    let mut repairs = Vec::new();
    let mut number = found.lines;
    // The header is entry 0.
    let mut index = 1;
    let on_header =
        found.end > 0 && found.end < length && lines::at(file, Spot { offset: found.end - 1, length: 1 })? != b"\n";
    lines::forwards(file, found.end, length, |line| {
        number += 1;
        if line.is_blank() {
            return ControlFlow::Continue(());
        }
        let pieces = pieces::of(&line, Form::Old);
        let mut entries = 0;
        let mut broken = None;
        for (piece, index) in pieces.iter().zip(index..) {
            match piece {
                Piece::Entry(range, _) => match value_of(&line.bytes[range.clone()]) {
                    Ok(value) => {
                        // One at a time: the values of a line take far more memory than its text.
                        migration.add(OldLine { number, nth: entries, index, value });
                        entries += 1;
                    }
                    Err(what) => broken = Some(what),
                },
                Piece::Broken(_, fault) => broken = Some(fault.what.clone()),
            }
        }
        index += pieces.len().max(1) as u64;
        if let Some(what) = broken {
            repairs.push(bad_line(number, &what, line.ended));
        } else if pieces.is_empty() && line.ended {
            repairs.push(bad_line(number, ZEROS, true));
        } else if entries == 1 && on_header && line.offset == found.end {
            repairs.push(glued_to_header(number));
        } else if entries > 1 {
            repairs.push(glued(entries, number));
        }
        ControlFlow::Continue(())
    })?;
    let Migration { entries, bad, .. } = migration;
    repairs.extend(entries.iter().filter_map(|entry| unreadable(entry)));
    repairs.extend(bad.into_iter().map(|(line, what)| bad_line(line, &what, true)));
    let version = found.header.version;
    let detail = format!("a version {version} file; the first write replaces it by version {VERSION} and keeps it");
    repairs.push(Repair { kind: "migrated", line: None, detail });
    Ok((entries, repairs))
}

fn bad_line(number: usize, what: &str, ended: bool) -> Repair {
    let (kind, detail) = if ended {
        ("corrupt_line", format!("{what}; the line is left as it is and everything else is loaded"))
    } else {
        ("torn_tail", "the last line is incomplete; it is left out, and stays in the old file that is kept".to_owned())
    };
    Repair { kind, line: Some(number), detail }
}

/// A line that was read but is no entry of today yet.
struct OldLine {
    /// Its number in the file, from one.
    number: usize,
    /// How many entries stand before it on the same line.
    nth: usize,
    /// Its index in the file as the first version counts: the header is 0, every entry counts once, blank lines do not.
    /// An entry that cannot be read any more counts, for it could be read when the index was written.
    index: u64,
    /// The line.
    value: Map<String, Value>,
}

/// The values of an entry, or the reason why it is none.
fn value_of(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let no_entry = || "not an object with a type".to_owned();
    let text = std::str::from_utf8(bytes).map_err(|_| no_entry())?;
    values::check(text).map_err(|too_many| too_many.to_string())?;
    serde_json::from_str(text).map_err(|_| no_entry())
}

/// The header of a file in the form of today.
pub fn to_header(header: &Header) -> Header {
    Header { version: VERSION, ..header.clone() }
}

struct Migration<'a> {
    header: &'a Header,
    /// The entries so far.
    entries: Vec<Arc<Entry>>,
    /// Lines that make no entry even now, with the reason.
    bad: Vec<(usize, String)>,
    /// The id of each entry with its index in the file.
    ids: Vec<(u64, EntryId)>,
    /// The entries since the last compaction, for counts of messages.
    since: Vec<Arc<Entry>>,
    last: Option<EntryId>,
}

impl<'a> Migration<'a> {
    fn of(header: &'a Header) -> Self {
        Self { header, entries: Vec::new(), bad: Vec::new(), ids: Vec::new(), since: Vec::new(), last: None }
    }

    /// Adds the next line.
    fn add(&mut self, line: OldLine) {
        let number = line.number;
        let text = Value::Object(self.line(line)).to_string();
        match Entry::parse(text.into()) {
            Ok(entry) => {
                let entry = Arc::new(entry);
                self.read(&entry);
                self.entries.push(entry);
            }
            Err(error) => self.bad.push((number, error.to_string())),
        }
    }

    fn line(&mut self, line: OldLine) -> Map<String, Value> {
        let OldLine { number, nth, index, mut value } = line;
        if self.header.version < 2 || !value.get("id").is_some_and(Value::is_string) {
            let id = stable_id(&self.header.id, number, nth);
            value.insert("id".into(), id.as_str().into());
            value.insert("parentId".into(), self.last.as_ref().map_or(Value::Null, |id| id.as_str().into()));
        }
        let id: EntryId = value.get("id").and_then(Value::as_str).unwrap_or_default().into();
        match value.get("type").and_then(Value::as_str) {
            Some("message") => {
                if let Some(role) = value.get_mut("message").and_then(|message| message.get_mut("role"))
                    && role == "hookMessage"
                {
                    *role = "custom".into();
                }
            }
            Some("compaction") => self.first_kept(&mut value, &id),
            _ => {}
        }
        self.ids.push((index, id.clone()));
        self.last = Some(id);
        value
    }

    /// Notes an entry for the counts of later compactions.
    fn read(&mut self, entry: &Arc<Entry>) {
        if entry.kind == "compaction" {
            self.since.clear();
        } else {
            self.since.push(entry.clone());
        }
    }

    /// The start of the turn of the `count`-th message from the end, but not past an earlier compaction.
    fn last_messages(&self, count: u64) -> Option<&EntryId> {
        let messages = (0..self.since.len()).rev().filter(|&at| self.since[at].outline().is_some());
        let first = messages.take(usize::try_from(count).unwrap_or(usize::MAX)).last()?;
        let start = (0..=first).rev().find(|&at| self.since[at].starts_turn());
        Some(&self.since[start.unwrap_or(0)].id)
    }

    /// Replaces an index into the file or a count of messages by the id of the first kept entry.
    fn first_kept(&self, value: &mut Map<String, Value>, own: &EntryId) {
        let index = value.remove("firstKeptEntryIndex").and_then(|index| index.as_u64());
        let count = value.remove("keepLastMessages").and_then(|count| count.as_u64());
        let kept = match (index, count) {
            (Some(index), _) => self.ids.iter().find(|(at, _)| *at >= index).map(|(_, id)| id),
            (None, Some(count)) => self.last_messages(count),
            (None, None) => return,
        };
        value.insert("firstKeptEntryId".into(), kept.unwrap_or(own).as_str().into());
    }
}

fn stable_id(session: &SessionId, number: usize, nth: usize) -> EntryId {
    let place = if nth == 0 { format!("{session}:{number}") } else { format!("{session}:{number}:{nth}") };
    let digest = Sha256::digest(place);
    let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    hex.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kept(lines: &[Value]) -> Vec<String> {
        let header: Header =
            serde_json::from_value(json!({"type": "session", "id": "s", "cwd": "/"})).expect("a header");
        let mut migration = Migration::of(&header);
        for (at, value) in lines.iter().enumerate() {
            let value = value.as_object().expect("an object").clone();
            migration.add(OldLine { number: at + 2, nth: 0, index: at as u64 + 1, value });
        }
        let Migration { entries, bad, .. } = migration;
        assert!(bad.is_empty(), "{bad:?}");
        let context = crate::conversation::context::build(
            &crate::conversation::path::Path::of(&entries),
            &crate::prompts::Prompts::default(),
        );
        context.messages().iter().skip(1).map(|message| message.message().text()).collect()
    }

    fn messages(names: &str) -> Vec<Value> {
        let message = |name: &str| {
            let role = if name.starts_with('u') { "user" } else { "assistant" };
            json!({"type": "message", "message": {"role": role, "content": [{"type": "text", "text": name}]}})
        };
        names.split(' ').map(message).collect()
    }

    fn compaction(keep: u64) -> Vec<Value> {
        vec![json!({"type": "compaction", "summary": "s", "keepLastMessages": keep})]
    }

    /// The id that the last compaction of a file keeps first, as a place among its entries.
    fn first_kept(text: &str) -> Option<usize> {
        let file = Bytes::Memory(text.as_bytes().to_vec().into());
        let found = crate::log::header::find(std::path::Path::new("old.jsonl"), text.as_bytes()).expect("a header");
        let (entries, _) = read(&file, &found, text.len() as u64).expect("it is read");
        let compaction = entries.iter().rev().find_map(|entry| entry.compaction()).expect("a compaction");
        entries.iter().position(|entry| Some(&entry.id) == compaction.first_kept_entry_id.as_ref())
    }

    #[test]
    fn an_index_of_the_first_kept_entry_counts_entries_and_not_lines() {
        let header = json!({"type": "session", "id": "s", "timestamp": "t", "cwd": "/"}).to_string();
        let lines: Vec<String> = messages("u1 a1 u2 a2 u3").iter().map(Value::to_string).collect();
        let [u1, a1, u2, a2, u3] = lines.try_into().expect("five");
        let kept = json!({"type": "compaction", "summary": "s", "firstKeptEntryIndex": 3}).to_string();
        let torn = &u1[..u1.len() / 2];
        for (text, expected) in [
            (format!("{header}\n{u1}\n{a1}\n{u2}\n{a2}\n{u3}\n{kept}\n"), 2),
            (format!("{header}\n\n{u1}\n \n{a1}\n{u2}\n{a2}\n{u3}\n{kept}\n"), 2),
            (format!("\n{header}\n{u1}\n{a1}\n{u2}\n{a2}\n{u3}\n{kept}\n"), 2),
            (format!("{header}\n{u1}{a1}\n{u2}\n{a2}\n{u3}\n{kept}\n"), 2),
            (format!("{header}{u1}\n{a1}\n{u2}\n{a2}\n{u3}\n{kept}\n"), 2),
            // An entry that cannot be read any more still counts.
            (format!("{header}\n{torn}\n{a1}\n{u2}\n{a2}\n{u3}\n{kept}\n"), 1),
            (format!("{header}\n{torn}{a1}\n{u2}\n{a2}\n{u3}\n{kept}\n"), 1),
            (format!("{header}\n\0\0\n{a1}\n{u2}\n{a2}\n{u3}\n{kept}\n"), 1),
        ] {
            assert_eq!(first_kept(&text), Some(expected), "{text}");
        }
    }

    #[test]
    fn keep_last_messages_keeps_whole_turns_back_to_the_last_compaction() {
        let first = [messages("u1 a1 u2 a2 u3 a3 u4 a4"), compaction(4), messages("u5 a5")].concat();
        assert_eq!(kept(&first), ["u3", "a3", "u4", "a4", "u5", "a5"]);
        let second = [first.clone(), messages("u6 a6 t6 a6b u7 a7"), compaction(3)].concat();
        assert_eq!(kept(&second), ["u6", "a6", "t6", "a6b", "u7", "a7"]);
        // The turn of a6 starts before the compaction.
        let split = [first.clone(), compaction(1), messages("a6 u7 a7"), compaction(3)].concat();
        assert_eq!(kept(&split), ["a6", "u7", "a7"]);
        let too_many = [first.clone(), compaction(10)].concat();
        assert_eq!(kept(&too_many), ["u5", "a5"]);
        let nothing = [first, compaction(0), messages("u6")].concat();
        assert_eq!(kept(&nothing), ["u6"]);
    }
}
