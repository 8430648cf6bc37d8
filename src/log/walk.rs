//! The way from the end of a session file to the parents of its entries, without an index.
//!
//! Nearly always the parent of an entry stands right before it, and one line is read. Where it does not, the entries on
//! the way back are noted by id and place: one of them may be the next parent, and where no entry before has the id, the
//! entry right before is the parent.

mod spent;

pub use spent::costs_of;

use super::{
    Grown, Placed, continue_behind,
    error::StoreError,
    index::{NEAR, Spot},
    lines::{Backwards, Line},
    pieces::{self, Form},
    source::Source,
};
use crate::{
    conversation::{
        entry::Entry,
        path::{self, Path},
        spending::Spending,
    },
    ids::EntryId,
};
use spent::Spent;
use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

/// A walk from the end of a file towards its beginning.
pub struct Walk<'s> {
    source: &'s Source,
    lines: Backwards<'s>,
    /// Entries that were read and passed by, the nearest first.
    passed: VecDeque<Passed>,
    /// Where the entry stands that was given last.
    at: Spot,
    /// How many entries were given or left behind so far.
    left: usize,
    /// The number of the first entry of each id, counted from the end, once the beginning of the file was reached.
    first: Option<HashMap<u64, usize>>,
    spent: Spent,
    keys: RandomState,
}

/// The outcome of reading a line.
enum Step {
    /// It is the wanted entry.
    Found(Arc<Entry>),
    /// Its entries were noted.
    Passed,
    /// There is no line before.
    Over,
}

/// An entry that was passed by: its id as a hash, and where it stands.
struct Passed {
    key: u64,
    spot: Spot,
}

impl<'s> Walk<'s> {
    /// From `end`, where a line ends.
    pub fn new(source: &'s Source, end: u64) -> Self {
        Self {
            source,
            lines: source.backwards(end),
            passed: VecDeque::new(),
            at: Spot { offset: end, length: 0 },
            left: 0,
            first: None,
            spent: Spent::default(),
            keys: RandomState::new(),
        }
    }

    /// The last entry for nothing, and for the entry that was given last its parent. None for a root.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn before(&mut self, child: Option<&Entry>) -> Result<Option<Arc<Entry>>, StoreError> {
        let parent = match child.map(|child| &child.parent) {
            None => None,
            Some(None) => return Ok(None),
            Some(Some(parent)) => Some(parent),
        };
        while self.passed.is_empty() {
            match self.read_line(parent)? {
                Step::Found(entry) => return Ok(Some(entry)),
                Step::Passed => {}
                Step::Over => return Ok(None),
            }
        }
        let place = match (parent, self.passed.front()) {
            (Some(parent), Some(nearest)) => {
                let (nearest, at) = (nearest.spot, self.at.offset);
                let found = if nearest.is_right_before(at) {
                    self.find(parent, usize::MAX)?
                } else {
                    match self.find(parent, NEAR)? {
                        None if self.source.is_blank(nearest.end()..at) => self.find(parent, usize::MAX)?,
                        found => found,
                    }
                };
                found.unwrap_or(0)
            }
            _ => 0,
        };
        let Some(found) = self.passed.drain(..=place).next_back() else { return Ok(None) };
        self.left += place + 1;
        self.at = found.spot;
        self.source.read(found.spot).map(Some)
    }

    /// The place of the nearest entry with this id among the `most` entries before.
    fn find(&mut self, id: &EntryId, most: usize) -> Result<Option<usize>, StoreError> {
        let key = self.keys.hash_one(id.as_str());
        if self.first.as_ref().is_some_and(|first| first.get(&key).is_none_or(|number| *number < self.left)) {
            return Ok(None);
        }
        let mut place = 0;
        while place < most {
            match self.passed.get(place) {
                Some(passed) if passed.key == key => return Ok(Some(place)),
                Some(_) => place += 1,
                None => {
                    if matches!(self.read_line(None)?, Step::Over) {
                        self.number_all();
                        return Ok(None);
                    }
                }
            }
        }
        Ok(None)
    }

    /// The whole file was read: from here on the entries that exist are known.
    fn number_all(&mut self) {
        let first = self.passed.iter().enumerate().map(|(place, passed)| (passed.key, self.left + place));
        self.first = Some(first.collect());
    }

    /// Reads the line before. The wanted entry is given at once if it is the line, everything else is noted.
    fn read_line(&mut self, wanted: Option<&EntryId>) -> Result<Step, StoreError> {
        let Some(line) = self.lines.before().map_err(self.source.failed())? else {
            self.spent.begins();
            return Ok(Step::Over);
        };
        if line.offset <= self.source.floor() {
            self.spent.begins();
        }
        if line.is_blank() {
            return Ok(Step::Passed);
        }
        if let Some(wanted) = wanted
            && self.passed.is_empty()
            && let Some(entry) = entry_of(&line, wanted)
        {
            self.at = line.spot();
            self.left += 1;
            self.spent.see(&entry);
            return Ok(Step::Found(entry));
        }
        let passed = |id: &str, spot| Passed { key: self.keys.hash_one(id), spot };
        match pieces::whole(&line, Form::Today) {
            Ok(head) => {
                self.spent.pass(&head, &line);
                self.passed.extend(head.id().map(|id| passed(&id, line.spot())));
            }
            Err(pieces) => {
                let with_id = pieces.iter().rev().filter_map(|piece| Some(passed(&piece.id()?, piece.spot(&line))));
                self.passed.extend(with_id);
            }
        }
        Ok(Step::Passed)
    }
}

/// The entry of a line, if it is the wanted one. The two ends of a line tell nearly always whether it is.
fn entry_of(line: &Line<'_>, wanted: &EntryId) -> Option<Arc<Entry>> {
    /// Ids stand within so many bytes of the beginning of a line in all files that were seen, or of its end where the
    /// message is written first.
    const END: usize = 256;
    let length = line.bytes.len().min(END);
    let finder = memchr::memmem::Finder::new(wanted.as_str());
    let (beginning, end) = (&line.bytes[..length], &line.bytes[line.bytes.len() - length..]);
    finder.find(beginning).or_else(|| finder.find(end))?;
    pieces::entry(line.bytes).ok().filter(|entry| !line.cut && entry.id == *wanted)
}

/// The last part of a path.
#[derive(Debug)]
pub struct Near {
    /// The entries that were read.
    pub path: Path,
    /// The costs that they tell.
    pub spent: Spending,
    /// Whether the context of the last entry begins among them.
    pub whole: bool,
}

impl Source {
    /// Reads backwards from `end` to where the context of the last entry begins, and at most this number of bytes.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn path_within(&self, end: u64, most: u64) -> Result<Near, StoreError> {
        let near = self.not_before(end.saturating_sub(most));
        let (path, mut spent) = near.path_and_costs(end, &|| false)?;
        if near.floor() == self.floor() || path.is_cut() {
            return Ok(Near { path, spent, whole: true });
        }
        // The lines that were not read stand before the first one, and that is not the first of the file.
        let carries = |entry: &Arc<Entry>| entry.preserved().is_some_and(|it| it.spent.is_some());
        spent.is_partial |= !path.iter().any(carries);
        Ok(Near { path: path.begins_later(), spent, whole: false })
    }

    /// Reads backwards from `end` to where the context of the last entry begins.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn path_from(&self, end: u64) -> Result<Path, StoreError> {
        self.path_behind(None, end)
    }

    /// The same, as it would be with an entry after the last line, where one is given.
    pub fn path_behind(&self, leaf: Option<Arc<Entry>>, end: u64) -> Result<Path, StoreError> {
        Ok(self.tail(leaf, end, &|| false)?.0)
    }

    /// The path from `end`, with the costs of the file as far as they stand in the lines that were read. `Stopped` where
    /// it is stopped.
    pub fn path_and_costs(&self, end: u64, stopped: &dyn Fn() -> bool) -> Result<(Path, Spending), StoreError> {
        self.tail(None, end, stopped)
    }

    fn tail(
        &self,
        leaf: Option<Arc<Entry>>,
        end: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(Path, Spending), StoreError> {
        let mut walk = Walk::new(self, end);
        let mut leaf = leaf;
        let path = path::gather(|child| match leaf.take() {
            Some(leaf) => Ok(Some(leaf)),
            None if stopped() => Err(StoreError::Stopped),
            None => walk.before(child),
        })?;
        if end <= self.floor() {
            walk.spent.begins();
        }
        Ok((path, walk.spent.sum()))
    }

    /// The appended entries, with the new path where they do not continue the one after `leaf`.
    pub fn grown(&self, entries: Vec<Placed>, leaf: Option<&EntryId>, end: u64) -> Result<Grown, StoreError> {
        let path = if continue_behind(&entries, leaf) { None } else { Some(self.path_from(end)?) };
        Ok(Grown { entries, path })
    }
}
