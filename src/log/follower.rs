//! A session file that is read only, and the entries that other programs append to it.

#![expect(clippy::disallowed_methods, reason = "follows a session file")]

use super::{
    Access, Appended, Grown, Log, Stats,
    error::StoreError,
    lock::Unfinished,
    source::{Source, Tail},
};
use crate::ids::EntryId;
use std::fs;

/// A file that is read only, and the offset up to which it was read.
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
