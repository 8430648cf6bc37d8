//! A whole session file: its header, its lines, and the path to its leaf. What is read of it does not depend on how it is
//! read, and a write leaves every byte of it where it is.

use super::chunks::choices;
use abridged::{
    conversation::{
        context::{self, check::violations},
        entry::{Entry, VERSION},
        path::Path as ContextPath,
        tokens::Estimator,
    },
    log::{
        Appended,
        bytes::Bytes,
        files::{INDEXED_AT_ONCE, Opened},
        header::{self, header_line},
        lines::{self, Backwards, Line},
        memory::Disk,
        sealed::Blocking,
    },
    prompts::Prompts,
};
use serde_json::Value;
use std::{ops::ControlFlow, path::Path};

/// The longest error about a file, in bytes. Its path and a part of its content are in it.
const LONGEST_ERROR: usize = 1_000;

pub fn check(data: &[u8]) {
    let Some(([split], file)) = choices(data) else { return };
    if file.is_empty() {
        return;
    }
    lines_are_the_same_backwards(file);
    let found = match header::find(Path::new("s.jsonl"), file) {
        Ok(found) => found,
        Err(error) => {
            let error = error.to_string();
            return assert!(error.len() <= LONGEST_ERROR, "{error}");
        }
    };
    let again = header::find(Path::new("s.jsonl"), header_line(&found.header).as_bytes()).expect("a header");
    assert_eq!(header_line(&again.header), header_line(&found.header));
    let disk = Disk::of(file.to_vec());
    disk.index_at_once(INDEXED_AT_ONCE);
    let opened = match disk.open_read_only() {
        Ok(opened) => opened,
        Err(error) => return assert!(error.to_string().len() <= LONGEST_ERROR, "{error}"),
    };
    let path = opened.history.path();
    is_taken_by_a_provider(path);
    if found.header.version >= VERSION {
        is_the_same_by_its_index(&opened);
        is_the_same_without_an_index(file, &opened);
        is_the_same_in_two_parts(file, split, &opened);
    }
    keeps_its_bytes(file, &found.header.version);
}

fn lines_are_the_same_backwards(file: &[u8]) {
    let bytes = Bytes::Memory(file.to_vec().into());
    let copy = |line: Line<'_>| (line.offset, line.next, line.ended, line.bytes.to_vec());
    let (mut there, mut back) = (Vec::new(), Vec::new());
    let each = |line: Line<'_>| {
        there.push(copy(line));
        ControlFlow::Continue(())
    };
    lines::forwards(&bytes, 0, file.len() as u64, each).expect("it can be read");
    let mut backwards = Backwards::new(&bytes, 0, file.len() as u64);
    while let Some(line) = backwards.before().expect("it can be read") {
        back.push(copy(line));
    }
    back.reverse();
    assert_eq!(there, back);
}

/// Messages of a path, as they are sent. A provider takes them.
fn is_taken_by_a_provider(path: &ContextPath) {
    let context = context::build(path, &Prompts::default());
    let messages: Vec<_> = context.messages().iter().map(|it| serde_json::from_str::<Value>(&it.json())).collect();
    if let Ok(messages) = messages.into_iter().collect::<Result<Vec<_>, _>>() {
        assert_eq!(violations(&messages), Vec::<String>::new());
    }
    let sum: u64 = context.messages().iter().map(|it| u64::from(it.tokens(Estimator::Chars))).sum();
    assert_eq!(context.tokens(Estimator::Chars), sum);
    let _ = (path.title(), path.model(), path.session_data(), path.system_prompt(), path.thinking_level(), path.pins());
    for (before, entry) in path.iter().zip(path.iter().skip(1)) {
        assert_eq!(entry.parent.as_ref(), Some(&before.id), "each is the parent of the next");
    }
}

/// Each entry with the one it follows. The parent of the first is not looked for where more stands before it.
fn chain(path: &ContextPath) -> Vec<(String, Option<String>)> {
    let parent = |at: usize| path[at].parent.as_ref().filter(|_| at > 0 || !path.is_cut()).map(ToString::to_string);
    (0..path.len()).map(|at| (path[at].id.to_string(), parent(at))).collect()
}

fn sent(path: &ContextPath) -> Vec<String> {
    context::build(path, &Prompts::default()).messages().iter().map(|it| it.json().into_owned()).collect()
}

fn is_the_same_by_its_index(opened: &Opened) {
    let (history, blocking) = (&opened.history, Blocking::is_allowed_here());
    let index = history.index().expect("a small file has an index");
    assert_eq!(Some(index.len()), history.entry_count());
    for entry in history.wanted(index.after(None)).read(&blocking) {
        let entry = entry.expect("what is in the index can be read");
        assert!(index.find(&entry.id).is_some(), "{}", entry.id);
    }
    if let Some(leaf) = history.path().last() {
        let library = history.library().expect("an index");
        let by_index = library.path_to(&leaf.id, &blocking).expect("it can be read").expect("the leaf is there");
        assert_eq!(chain(&by_index), chain(history.path()));
    }
}

/// A large file is opened by a walk from its end.
fn is_the_same_without_an_index(file: &[u8], opened: &Opened) {
    let walked = Disk::of(file.to_vec()).open_read_only().expect("it opens as before");
    let path = walked.history.path();
    assert_eq!(chain(path), chain(opened.history.path()));
    // The entries before the compaction of another program are looked up when the index is there.
    if !path.lacks_its_past() {
        assert_eq!(sent(path), sent(opened.history.path()));
    }
}

/// A session that was open while the second part came knows the same.
fn is_the_same_in_two_parts(file: &[u8], split: usize, whole: &Opened) {
    let newlines: Vec<usize> = (0..file.len()).filter(|at| file[*at] == b'\n').collect();
    let Some(newline) = newlines.get(split % newlines.len().max(1)) else { return };
    let (first, second) = file.split_at(newline + 1);
    let disk = Disk::of(first.to_vec());
    disk.index_at_once(INDEXED_AT_ONCE);
    // The header may stand in the second part.
    let Ok(Opened { mut history, log: mut follower, .. }) = disk.open_read_only() else { return };
    disk.write_as_another(second);
    let leaf = history.path().last().map(|leaf| leaf.id.clone());
    let grown = follower.catch_up(leaf.as_ref()).expect("it is read on");
    grown.entries.into_iter().for_each(|placed| history.push(placed));
    if let Some(path) = grown.path {
        history.set_path(path);
    }
    // A last line without a newline may still be on its way.
    if history.entry_count() == whole.history.entry_count() {
        assert_eq!(history.path().last().map(|leaf| &leaf.id), whole.history.path().last().map(|leaf| &leaf.id));
        // A session reads what stands before the compaction of another program when it has the new path.
        if !history.path().lacks_its_past() {
            assert_eq!(sent(history.path()), sent(whole.history.path()));
        }
    } else {
        assert!(!file.ends_with(b"\n"));
    }
}

/// An entry that is appended is the leaf, and what stood in the file before still does.
fn keeps_its_bytes(file: &[u8], version: &u32) {
    let disk = Disk::of(file.to_vec());
    disk.index_at_once(INDEXED_AT_ONCE);
    let Ok(Opened { history, mut log, .. }) = disk.open() else { return };
    let leaf = history.path().last().map(|leaf| leaf.id.clone());
    let parent = serde_json::to_string(&leaf).expect("an id is JSON");
    let id = "an id that no other entry has";
    let line = format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:00.000Z","message":{{"role":"user","content":"on"}}}}"#
    );
    match log.append(std::slice::from_ref(&line), leaf.as_ref()) {
        Ok(Appended::Written { .. }) => {}
        Ok(Appended::Behind(grown)) => return assert!(!grown.entries.is_empty()),
        Err(error) => return assert!(error.to_string().len() <= LONGEST_ERROR, "{error}"),
    }
    drop(log);
    let now = disk.bytes();
    assert!(now.ends_with(format!("{line}\n").as_bytes()));
    let torn = disk.torn().concat();
    let kept = if *version < VERSION { &[][..] } else { &file[..file.len() - torn.len()] };
    assert!(now.starts_with(kept) && file.ends_with(&torn), "{}", String::from_utf8_lossy(&now));
    let reopened = disk.open_read_only().expect("it opens again");
    let path = reopened.history.path();
    assert_eq!(path.last().map(|leaf| leaf.id.as_str()), Some(id));
    assert_eq!(path.last().and_then(|leaf| leaf.parent.clone()), leaf);
    assert!(Entry::parse(line.into()).is_ok());
}
