//! Logs without a file: the one of an ephemeral session, and a disk in memory for tests and simulations.

use super::{
    Access, Appended, Grown, Log, Stats, continue_behind, error::StoreError, history::History, index::Spot,
    lock::Unfinished, store::Opened,
};
use crate::{
    conversation::{
        entry::{Entry, Header},
        path::Path,
    },
    ids::EntryId,
    log::source::Placed,
};
use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The log of an ephemeral session, whose entries are kept by its `History` alone.
#[derive(Debug, Default)]
pub struct Ephemeral;

impl Log for Ephemeral {
    fn access(&self) -> Access {
        Access::Ephemeral
    }

    fn append(&mut self, _: &[String], _: Option<&EntryId>) -> Result<Appended, StoreError> {
        Ok(Appended::Written { at: 0, others: Vec::new() })
    }

    fn catch_up(&mut self, _: Option<&EntryId>) -> Result<Grown, StoreError> {
        Ok(Grown::default())
    }

    fn may_have_grown(&self) -> bool {
        false
    }

    fn end(&self) -> u64 {
        0
    }

    fn record(&mut self, _: Vec<Unfinished>) {}

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

/// One session file in memory. It outlives its logs, so that a test can crash one and open the next.
#[derive(Debug, Clone)]
pub struct Disk(Arc<Mutex<Content>>);

#[derive(Debug)]
struct Content {
    header: Header,
    /// Durable lines behind the header, with their entries.
    entries: Vec<Arc<Entry>>,
    running: Vec<Unfinished>,
    /// Number of the log that owns the file, from 1.
    owner: Option<u64>,
    /// Logs that were opened so far.
    opened: u64,
    full: bool,
}

/// Name of the file in errors.
const NAME: &str = "memory.jsonl";

impl Disk {
    /// A file with these first lines.
    ///
    /// # Errors
    /// When a line is not an entry.
    pub fn new(header: Header, lines: &[String]) -> Result<Self, StoreError> {
        let entries = parsed(lines)?;
        Ok(Self(Arc::new(Mutex::new(Content {
            header,
            entries,
            running: Vec::new(),
            owner: None,
            opened: 0,
            full: false,
        }))))
    }

    /// Opens the file for reading and appending.
    ///
    /// # Errors
    /// `Locked` while another log owns it.
    pub fn open(&self) -> Result<Opened, StoreError> {
        let mut content = self.content();
        if content.owner.is_some() {
            return Err(StoreError::Locked { pid: None });
        }
        content.opened += 1;
        let owner = content.opened;
        content.owner = Some(owner);
        Ok(Opened {
            header: content.header.clone(),
            title: None,
            history: History::in_memory(content.entries.clone()),
            repairs: Vec::new(),
            left_behind: content.running.clone(),
            log: Box::new(Memory { owner, known: content.entries.len(), disk: self.clone(), stats: Stats::default() }),
        })
    }

    /// Appends a line like a program that knows no lock.
    ///
    /// # Errors
    /// When the line is not an entry.
    pub fn append_as_another(&self, line: &str) -> Result<(), StoreError> {
        let entries = parsed(&[line.to_owned()])?;
        self.content().entries.extend(entries);
        Ok(())
    }

    /// Fills the disk: every append fails from here on.
    pub fn fill(&self) {
        self.content().full = true;
    }

    /// Makes room again after `fill`.
    pub fn make_room(&self) {
        self.content().full = false;
    }

    /// Ends the owner without a word, like a kill: the lock is free, and its record stays. The log of the owner changes
    /// nothing from here on.
    pub fn crash(&self) {
        self.content().owner = None;
    }

    /// Ids of the durable entries, in file order.
    #[must_use]
    pub fn ids(&self) -> Vec<EntryId> {
        self.content().entries.iter().map(|entry| entry.id.clone()).collect()
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The log of a `Disk`.
#[derive(Debug)]
struct Memory {
    disk: Disk,
    /// Its number as an owner.
    owner: u64,
    /// Number of entries that the session knows.
    known: usize,
    stats: Stats,
}

impl Memory {
    fn grown(&self, content: &Content, leaf: Option<&EntryId>) -> Grown {
        // A place in memory has no bytes; `History` counts entries itself.
        let nowhere = Spot { offset: 0, length: 0 };
        let entries: Vec<Placed> = content.entries[self.known..].iter().map(|entry| (entry.clone(), nowhere)).collect();
        let path = (!continue_behind(&entries, leaf)).then(|| Path::of(&content.entries));
        Grown { entries, path }
    }
}

impl Log for Memory {
    fn access(&self) -> Access {
        Access::Write
    }

    fn append(&mut self, lines: &[String], leaf: Option<&EntryId>) -> Result<Appended, StoreError> {
        let disk = self.disk.clone();
        let mut content = disk.content();
        if content.owner != Some(self.owner) {
            return Err(StoreError::ReadOnly { path: NAME.into(), why: "its owner has crashed".to_owned() });
        }
        if content.entries.len() > self.known {
            let grown = self.grown(&content, leaf);
            self.known = content.entries.len();
            return Ok(Appended::Behind(grown));
        }
        if content.full {
            let full = io::Error::from(io::ErrorKind::StorageFull);
            return Err(StoreError::Io {
                path: NAME.into(),
                what: "could not be written; nothing was changed",
                source: full,
            });
        }
        content.entries.extend(parsed(lines)?);
        self.known = content.entries.len();
        self.stats.writes += 1;
        self.stats.fsyncs += 1;
        Ok(Appended::Written { at: 0, others: Vec::new() })
    }

    fn catch_up(&mut self, leaf: Option<&EntryId>) -> Result<Grown, StoreError> {
        let disk = self.disk.clone();
        let content = disk.content();
        let grown = self.grown(&content, leaf);
        self.known = content.entries.len();
        Ok(grown)
    }

    fn may_have_grown(&self) -> bool {
        self.disk.content().entries.len() > self.known
    }

    fn end(&self) -> u64 {
        self.known as u64
    }

    fn record(&mut self, running: Vec<Unfinished>) {
        let mut content = self.disk.content();
        if content.owner == Some(self.owner) {
            content.running = running;
        }
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let mut content = self.disk.content();
        if content.owner == Some(self.owner) {
            content.owner = None;
        }
    }
}

fn parsed(lines: &[String]) -> Result<Vec<Arc<Entry>>, StoreError> {
    let entries = lines.iter().map(|line| Entry::parse(line.as_str().into()).map(Arc::new));
    entries
        .collect::<Result<_, _>>()
        .map_err(|error| StoreError::Foreign { path: PathBuf::from(NAME), what: error.to_string() })
}
