//! The file of the session: its bytes stay, and what is announced and answered is durable.

use super::{Rule, Verdict, broken, require};
use crate::{
    conversation::{
        entry::{Body, Entry},
        message::Message,
    },
    ids::EntryId,
    log::{Access, memory::Disk},
    session::log_work::LogWork,
};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// A whole, durable line.
#[derive(Debug)]
struct Line {
    text: Box<str>,
    entry: Option<Arc<Entry>>,
    /// The place of its parent.
    parent: Option<usize>,
    written_by: Writer,
    /// Whether it is a tool result that went to another branch than the line before.
    is_stray: bool,
}

/// The program that wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// The session, or a life of it before.
    Session,
    /// Another program.
    Another,
}

/// The file, as it was seen.
#[derive(Debug, Default)]
pub struct File {
    /// Whether the session has a file.
    is_there: bool,
    /// The bytes of the lines.
    bytes: Vec<u8>,
    /// Number of the bytes that this life found, also of those that are not durable or not a whole line.
    found: usize,
    lines: Vec<Line>,
    /// The newest line of each entry.
    newest: HashMap<EntryId, usize>,
    /// Broken lines whose ids can be read.
    broken: HashMap<EntryId, usize>,
    /// The lines before this one are announced, or older than this life.
    announced: usize,
    /// Entries that were given to the log in this life.
    given: HashSet<EntryId>,
    /// An undo is being written: its entries are made by the writer.
    undo_is_out: bool,
    /// A move to another path is being written: the writer may add an entry about the compaction after the turn.
    move_is_out: bool,
    /// Entries of this life may follow any other one.
    branches: bool,
    /// Whether another program has written.
    another_wrote: bool,
}

impl File {
    /// A life begins: entries up to here are not announced.
    pub fn opens(&mut self, disk: &Disk, access: Access) -> Verdict {
        self.is_there = access != Access::Ephemeral;
        if !self.is_there {
            *self = Self::default();
            // The header of a file that is not there.
            self.lines.push(Line {
                text: "".into(),
                entry: None,
                parent: None,
                written_by: Writer::Session,
                is_stray: false,
            });
        }
        // The first lines are the session's own.
        self.undo_is_out |= self.lines.is_empty();
        self.look(disk)?;
        self.stays(disk, 0)?;
        self.announced = self.lines.len();
        self.found = disk.length();
        self.given.clear();
        (self.undo_is_out, self.move_is_out, self.branches) = (false, false, false);
        Ok(())
    }

    /// Reads the lines that are new.
    pub fn look(&mut self, disk: &Disk) -> Verdict {
        if !self.is_there {
            return Ok(());
        }
        let new = disk.durable(|bytes| match bytes.get(self.bytes.len()..) {
            Some(new) if !new.is_empty() => new.to_vec(),
            _ => Vec::new(),
        });
        let Some(end) = new.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        for line in new[..=end].split_inclusive(|byte| *byte == b'\n') {
            let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned();
            self.add(text)?;
        }
        self.bytes.extend_from_slice(&new[..=end]);
        Ok(())
    }

    fn add(&mut self, text: String) -> Verdict {
        let place = self.lines.len();
        // The first line is the header.
        let entry = if place == 0 { None } else { Entry::parse(text.as_str().into()).ok().map(Arc::new) };
        let Some(entry) = entry else {
            let written_by = if place == 0 { Writer::Session } else { Writer::Another };
            self.another_wrote |= place > 0;
            // A broken line whose id can be read stands in the tree, after the entry before it.
            let parent = self.lines.iter().rposition(|line| line.entry.is_some());
            if let Some((_, rest)) = text.split_once(r#""id":""#).filter(|_| place > 0)
                && let Some((id, _)) = rest.split_once('"')
            {
                self.broken.insert(id.into(), place);
            }
            self.lines.push(Line { text: text.into(), entry: None, parent, written_by, is_stray: false });
            return Ok(());
        };
        let is_added = self.move_is_out && entry.is_ours("after_turn");
        let ours = self.undo_is_out || is_added || self.given.contains(&entry.id);
        self.another_wrote |= !ours;
        // A parent that no earlier line has is the entry before.
        let before = || self.lines.iter().rposition(|line| line.entry.is_some());
        let place_of = |id: &EntryId| self.newest.get(id).or_else(|| self.broken.get(id)).copied();
        let parent = entry.parent.as_ref().and_then(|parent| place_of(parent).or_else(before));
        let before = self.lines.iter().rposition(|line| !line.is_stray);
        let is_stray = ours && self.goes_to_its_call(&entry, parent, before);
        let before = before.map(|before| &self.lines[before]).filter(|line| line.written_by == Writer::Session);
        if let Some(before) = before.and_then(|line| line.entry.as_ref())
            && ours
            && !self.undo_is_out
            && !self.branches
            && !is_stray
            // A move has rules of its own.
            && !entry.is_ours("leaf")
            && !matches!(entry.body, Body::BranchSummary(_))
        {
            require(entry.parent.as_ref() == Some(&before.id), Rule::Chained, || {
                format!("{:?} follows {:?} and not {:?}", entry.id, entry.parent, before.id)
            })?;
        }
        self.newest.insert(entry.id.clone(), place);
        let written_by = if ours { Writer::Session } else { Writer::Another };
        self.lines.push(Line { text: text.into(), entry: Some(entry), parent, written_by, is_stray });
        Ok(())
    }

    /// Whether an entry is a tool result whose call is on the path of its parent, and not on the one of the line before.
    fn goes_to_its_call(&self, entry: &Entry, parent: Option<usize>, before: Option<usize>) -> bool {
        let Some(Message::ToolResult(result)) = entry.message() else { return false };
        let calls = |other: &Arc<Entry>| {
            other.outline().is_some_and(|outline| outline.calls.iter().any(|call| call.id == result.call))
        };
        let is_there = || parent != before && self.above(parent).any(calls);
        let is_here = || self.above(before.filter(|before| *before > 0)).any(calls);
        // The entry of the call may share its line with a piece of another one.
        let shared = entry.parent.as_ref().filter(|parent| !self.newest.contains_key(*parent));
        let line = shared.and_then(|parent| self.broken_line_with(parent));
        let is_on_it = || line.is_some_and(|line| line.contains(result.call.as_str()));
        (is_there() || is_on_it()) && !is_here()
    }

    /// Whether a line is a tool result that went to another branch than the line before.
    pub fn is_stray(&self, place: usize) -> bool {
        self.lines[place].is_stray
    }

    /// A tool result of the session stands on the branch of its call, if the file has the call.
    pub fn results_stand_at_their_calls(&self, place: usize) -> Verdict {
        let Some(entry) = self.entry(place).filter(|_| !self.another_wrote) else { return Ok(()) };
        let Some(Message::ToolResult(result)) = entry.message() else { return Ok(()) };
        let calls = |other: &Arc<Entry>| {
            other.outline().is_some_and(|outline| outline.calls.iter().any(|call| call.id == result.call))
        };
        let known = self.lines[..place].iter().filter_map(|line| line.entry.as_ref()).any(calls);
        require(!known || self.above(Some(place)).any(calls), Rule::ResultAtItsCall, || {
            format!("{:?} answers {:?}, which is on another branch", entry.id, result.call)
        })
    }

    /// The lines that were seen stand as they stood. Costs the whole file, so it is done at some steps only.
    pub fn stays(&self, disk: &Disk, step: u64) -> Verdict {
        let often = if self.bytes.len() < 1 << 16 { 4 } else { 64 };
        if !self.is_there {
            return Ok(());
        }
        if !step.is_multiple_of(often) {
            return disk.durable(|bytes| {
                require(bytes.len() >= self.bytes.len(), Rule::BytesStay, || {
                    format!("{} durable bytes are left of {}", bytes.len(), self.bytes.len())
                })
            });
        }
        let changed = disk.durable(|bytes| match bytes.get(..self.bytes.len()) {
            Some(there) if there == self.bytes => None,
            Some(there) => Some(there.iter().zip(&self.bytes).take_while(|(new, old)| new == old).count()),
            None => Some(bytes.len()),
        });
        changed.map_or(Ok(()), |at| broken(Rule::BytesStay, format!("byte {at} is another one")))
    }

    /// Work is given to the log. `branches`: an entry may follow any other one.
    pub fn given(&mut self, work: &LogWork, branches: bool) -> Verdict {
        self.undo_is_out = matches!(work, LogWork::Undo(_));
        self.move_is_out = matches!(work, LogWork::Append(work) if work.adds.is_some());
        self.branches = branches;
        if let LogWork::Append(work) = work {
            self.given.extend(work.entries.iter().map(|entry| entry.id.clone()));
            if !self.is_there {
                // Memory is written at once.
                return work.entries.iter().try_for_each(|entry| self.add(entry.line().to_owned()));
            }
        }
        Ok(())
    }

    /// The log is here, and the effects of its work were performed. Further lines are those of another program.
    pub fn log_is_here(&mut self) {
        (self.undo_is_out, self.move_is_out) = (false, false);
    }

    /// An entry is announced, with its line where that is sent. Returns its place.
    pub fn announced(&mut self, id: &EntryId, sent: Option<&str>) -> Result<usize, super::Violation> {
        let has_id = |line: &Line| line.entry.as_ref().is_some_and(|entry| entry.id == *id);
        let Some(place) = self.lines[self.announced..].iter().position(has_id).map(|at| at + self.announced) else {
            if !self.is_there && self.undo_is_out && !self.newest.contains_key(id) {
                self.add(sent.unwrap_or_default().to_owned())?;
                self.announced = self.lines.len();
                return Ok(self.announced - 1);
            }
            return match self.newest.get(id) {
                // Its line is glued to a piece of another program.
                None if self.is_on_broken_line(id) => Ok(0),
                Some(place) => broken(Rule::AnnouncedOnce, format!("{id:?} of line {place} was announced before")),
                None => broken(Rule::AnnouncedIsDurable, format!("{id:?} is not on the disk")),
            };
        };
        let ours = |line: &&Line| line.written_by == Writer::Session;
        let skipped = self.lines[self.announced..place].iter().filter(ours).find_map(|line| line.entry.as_ref());
        if let Some(skipped) = skipped {
            return broken(Rule::AnnouncedInOrder, format!("{id:?} is announced before {:?}", skipped.id));
        }
        self.announced = place + 1;
        let line = &self.lines[place].text;
        match sent {
            Some(sent) if sent != &**line && !same(sent, line) => {
                broken(Rule::AnnouncedIsDurable, format!("{id:?} is announced as {sent} and stands as {line}"))
            }
            _ => Ok(place),
        }
    }

    /// Every line of the session was announced.
    pub fn at_rest(&self) -> Verdict {
        let left = self.lines[self.announced..].iter().filter(|line| line.written_by == Writer::Session);
        let left: Vec<_> = left.filter_map(|line| Some(&line.entry.as_ref()?.id)).collect();
        require(left.is_empty(), Rule::AnnouncedInOrder, || format!("{left:?} were not announced"))
    }

    /// The most bytes of entries in memory: the lines, and placeholders of the broken pieces that have an id.
    pub fn most_in_memory(&self) -> u64 {
        /// A placeholder without its id, at most.
        const PLACEHOLDER: usize = 256;
        let broken = self.lines.iter().filter(|line| line.entry.is_none());
        let pieces: usize = broken.map(|line| line.text.matches("\"id\"").count()).sum();
        let bytes = self.bytes.len().max(self.found);
        if self.is_there { (bytes + pieces * PLACEHOLDER) as u64 } else { u64::MAX }
    }

    /// Whether this life found bytes after the last whole line. A session reads an entry there that lacks its newline.
    pub fn is_unfinished(&self) -> bool {
        self.is_there && self.found > self.bytes.len()
    }

    /// Number of the lines.
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Whether another program has written.
    pub fn another_wrote(&self) -> bool {
        self.another_wrote
    }

    /// The place of the newest line with this id.
    pub fn newest(&self, id: &EntryId) -> Option<usize> {
        self.newest.get(id).copied()
    }

    /// Whether a line that is no entry has this id.
    pub fn is_on_broken_line(&self, id: &EntryId) -> bool {
        self.broken_line_with(id).is_some()
    }

    /// The text of a line that is no entry and has this id.
    pub fn broken_line_with(&self, id: &EntryId) -> Option<&str> {
        let mut broken = self.lines.iter().filter(|line| self.another_wrote && line.entry.is_none());
        broken.find(|line| line.text.contains(id.as_str())).map(|line| &*line.text)
    }

    /// Whether the line was announced.
    pub fn is_announced(&self, place: usize) -> bool {
        place < self.announced
    }

    /// The id of the parent of a line.
    pub fn parent(&self, place: usize) -> Option<&EntryId> {
        self.lines[place].entry.as_ref()?.parent.as_ref()
    }

    /// The text of a line.
    pub fn line(&self, place: usize) -> &str {
        &self.lines[place].text
    }

    /// The entry of a line.
    pub fn entry(&self, place: usize) -> Option<&Arc<Entry>> {
        self.lines.get(place)?.entry.as_ref()
    }

    /// Whether a value of the line is this text.
    pub fn says(&self, place: usize, text: &str) -> bool {
        fn has(value: &Value, text: &str) -> bool {
            match value {
                Value::String(it) => it == text,
                Value::Array(items) => items.iter().any(|it| has(it, text)),
                Value::Object(fields) => fields.values().any(|it| has(it, text)),
                _ => false,
            }
        }
        serde_json::from_str(self.line(place)).is_ok_and(|value| has(&value, text))
    }

    /// The number of costs that the file has of an operation.
    pub fn costs_of(&self, operation: &str) -> usize {
        let usages = self.lines.iter().filter(|line| {
            line.entry.as_ref().is_some_and(|entry| matches!(entry.body, Body::Usage)) && line.text.contains(operation)
        });
        usages.count()
    }

    /// The line of the edit that removes an entry from the context.
    pub fn removal_of(&self, id: &EntryId) -> Option<usize> {
        let removes = |line: &Line| match line.entry.as_ref().map(|entry| &entry.body) {
            Some(Body::ContextEdit(edit)) => edit.target_id == *id && edit.replacement.is_none(),
            _ => false,
        };
        self.lines.iter().rposition(removes)
    }

    /// All entries, in the order of the file.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.lines.iter().filter_map(|line| line.entry.clone()).collect()
    }

    /// The entries above the newest line that was announced, that one included. Lines of a write that was not confirmed may
    /// stand after it.
    pub fn announced_chain(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.above(self.announced.checked_sub(1).filter(|last| *last > 0))
    }

    /// The entries from the last line to the root, newest first.
    pub fn chain(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.above(self.lines.len().checked_sub(1).filter(|last| *last > 0))
    }

    /// The entries from a line to the root, the line's own first.
    pub fn above(&self, place: Option<usize>) -> impl Iterator<Item = &Arc<Entry>> {
        let places = std::iter::successors(place, |place| self.lines[*place].parent);
        places.filter_map(|place| self.lines[place].entry.as_ref())
    }

    /// The nearest entry above a line that is wanted.
    pub fn first_above(&self, place: usize, wanted: impl Fn(&Entry) -> bool) -> Option<&Arc<Entry>> {
        self.above(self.lines[place].parent).find(|entry| wanted(entry))
    }
}

/// Whether two lines have the same fields. The parent may be the one of the tree.
fn same(sent: &str, stands: &str) -> bool {
    let read = |line: &str| {
        let mut value: Value = serde_json::from_str(line).ok()?;
        value.as_object_mut()?.remove("parentId");
        Some(value)
    };
    matches!((read(sent), read(stands)), (Some(sent), Some(stands)) if sent == stands)
}
