//! Sessions of other agents: whatever a file has, its entries form a tree with ids of their own, and the same bytes give the same
//! entries.

use abridged::{
    agents::{claude_code, codex, gemini, opencode, transcript::Converted},
    conversation::entry::Entry,
    log::bytes::Bytes,
};
use serde_json::Value;
use std::collections::HashSet;

/// The longest id of a session, in bytes.
const LONGEST_ID: usize = 256;

pub fn check(data: &[u8]) {
    let converted = all(data);
    converted.iter().for_each(properties);
    for (once, again) in converted.iter().zip(all(data)) {
        assert_eq!(once.lines(), again.lines(), "the same bytes give the same entries");
    }
}

/// The sessions that each reader makes of some bytes.
fn all(data: &[u8]) -> Vec<Converted> {
    let file = Bytes::Memory(data.to_vec().into());
    let text = String::from_utf8_lossy(data);
    let objects = text.lines().map(|line| serde_json::from_str::<Value>(line).ok());
    let mut converted = vec![
        claude_code::read(&file, "stem").expect("it is in memory"),
        codex::read(&file, "stem").expect("it is in memory"),
        gemini::read(objects, "stem", None),
    ];
    let export = serde_json::from_slice(data).ok().and_then(|export| opencode::of_export(&export));
    converted.extend(export.map(|stored| stored.converted()));
    converted
}

fn properties(converted: &Converted) {
    let id = converted.own_id();
    assert!((1..=LONGEST_ID).contains(&id.as_str().len()), "{id:?}");
    let header = converted.header(id, None);
    assert!(header.cwd.starts_with('/'), "{}", header.cwd);
    assert!(header.timestamp.parse::<jiff::Timestamp>().is_ok(), "{}", header.timestamp);
    let mut ids = HashSet::new();
    for line in converted.lines().lines() {
        let entry = Entry::parse(line.into()).expect("a line is an entry");
        assert!(entry.parent.as_ref().is_none_or(|parent| ids.contains(parent)), "a parent comes first: {line}");
        assert!(ids.insert(entry.id.clone()), "an id is that of one entry: {line}");
    }
}
