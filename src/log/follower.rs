//! A session file that is read only, and the entries that other programs append to it.

use super::{
    Access, Appended, Grown, Log, Register, Stats,
    bytes::Standing,
    error::StoreError,
    source::{Source, Tail},
};
use crate::ids::EntryId;
use std::sync::Arc;

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
        let looked = self.source.bytes().standing(path);
        let changed = |what: &str| Err(StoreError::Changed { path: path.to_owned(), what: what.to_owned() });
        let length = match looked.map_err(StoreError::io(path, "cannot be looked at"))? {
            Standing::Same(length) if length < self.durable => return changed("it became shorter"),
            Standing::Same(length) => length,
            Standing::Replaced => return changed("it was replaced by another file"),
            Standing::Gone(error) => return Err(StoreError::io(path, "cannot be looked at")(error)),
        };
        if length == self.durable {
            return Ok(Grown::default());
        }
        if self.old {
            return changed("it was written to in its old version");
        }
        self.source.is_what_it_was(self.durable, &self.ending)?;
        let (entries, durable) = self.source.entries_between(self.durable, length)?;
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

    fn register(&self) -> Option<Arc<dyn Register>> {
        None
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}
