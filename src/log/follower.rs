//! A session file that is only read, and what other programs append to it.

use super::{
    Access, Appended, Grown, Log, Stats, continue_behind,
    error::StoreError,
    history::{Placed, Source, Tail},
    index::Spot,
    lines,
    lock::Unfinished,
};
use crate::ids::EntryId;
use std::fs;

/// A file that is only looked at, and how far it was read.
#[derive(Debug)]
pub struct Follower {
    source: Source,
    /// An old version is replaced as a whole by its owner's first write.
    old: bool,
    durable: u64,
    ending: Vec<u8>,
}

impl Follower {
    /// Of a file that was read up to here.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn new(source: Source, durable: u64, tail: Tail) -> Result<Self, StoreError> {
        let ending = source.ending(durable)?;
        Ok(Self { source, old: matches!(tail, Tail::Old { .. }), durable, ending })
    }
}

impl Log for Follower {
    fn access(&self) -> Access {
        Access::Read
    }

    /// Nothing is written: a caller checks the access first.
    fn append(&mut self, _: &[String], _: Option<&EntryId>) -> Result<Appended, StoreError> {
        let why = "it was opened for reading".to_owned();
        Err(StoreError::ReadOnly { path: self.source.path().to_owned(), why })
    }

    fn catch_up(&mut self, leaf: Option<&EntryId>) -> Result<Grown, StoreError> {
        let path = self.source.path();
        let now = fs::metadata(path).map_err(StoreError::io(path, "cannot be looked at"))?;
        let then = self.source.file().metadata().map_err(StoreError::io(path, "cannot be looked at"))?;
        let replaced = {
            use std::os::unix::fs::MetadataExt;
            (now.dev(), now.ino()) != (then.dev(), then.ino())
        };
        if replaced || now.len() < self.durable {
            let what = if replaced { "it was replaced by another file" } else { "it became shorter" };
            return Err(StoreError::Changed { path: path.to_owned(), what: what.to_owned() });
        }
        if now.len() == self.durable {
            return Ok(Grown::default());
        }
        if self.old {
            let what = "it was written to in its old version".to_owned();
            return Err(StoreError::Changed { path: path.to_owned(), what });
        }
        self.source.is_what_it_was(self.durable, &self.ending)?;
        let (entries, durable) = self.source.entries_between(self.durable, now.len())?;
        self.durable = durable;
        self.ending = self.source.ending(durable)?;
        self.source.grown(entries, leaf, durable)
    }

    fn may_have_grown(&self) -> bool {
        true
    }

    fn end(&self) -> u64 {
        self.durable
    }

    fn record(&mut self, _: Vec<Unfinished>) {}

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

impl Source {
    /// The bytes right before a place in the file.
    pub fn ending(&self, at: u64) -> Result<Vec<u8>, StoreError> {
        /// As many as the end of any entry has that is unlike that of another: its text or its id.
        const ENOUGH: u64 = 64;
        let length = at.min(ENOUGH);
        let at_end = self.length().map_err(StoreError::io(self.path(), "cannot be looked at"))? >= at;
        if !at_end {
            return Ok(Vec::new());
        }
        let spot = Spot { offset: at - length, length: length as u32 };
        lines::at(self.file(), spot).map_err(StoreError::io(self.path(), "cannot be read"))
    }

    /// A file that was cut and then grew again is another one, though it is longer than before.
    pub fn is_what_it_was(&self, at: u64, ending: &[u8]) -> Result<(), StoreError> {
        if self.ending(at)? == ending {
            return Ok(());
        }
        let what = "what was read of it is not there any more".to_owned();
        Err(StoreError::Changed { path: self.path().to_owned(), what })
    }

    /// The appended entries, with the new path where they do not continue the one behind `leaf`.
    pub fn grown(&self, entries: Vec<Placed>, leaf: Option<&EntryId>, end: u64) -> Result<Grown, StoreError> {
        let path = if continue_behind(&entries, leaf) { None } else { Some(self.path_from(end)?) };
        Ok(Grown { entries, path })
    }
}
