//! Logs without a file: the one of an ephemeral session, and a disk in memory for tests and simulations.

use super::{
    Access, Appended, Grown, Log, Register, Stats, Unfinished,
    bytes::{Bytes, Shared},
    error::StoreError,
    files::{self, Opened},
    header::{self, header_line},
    sealed::Blocking,
    source::Source,
    store::{
        memory::Database,
        rows,
        server::{About, Fault, Server as _},
        stored::Stored,
    },
    writer::Medium,
};
use crate::{
    conversation::entry::{Entry, Header, Stamp, timestamp},
    ids::{EntryId, SessionId},
};
use jiff::Timestamp;
use std::{
    io, mem,
    path::{Path, PathBuf},
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

    fn register(&self) -> Option<Arc<dyn Register>> {
        None
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

/// One session file in memory with its lock. It outlives its logs, so that a test can crash one and open the next. It is
/// read and written by the code of a file on disk, and nothing of it depends on the time or on chance.
#[derive(Debug, Clone)]
pub struct Disk(Arc<Mutex<Content>>);

#[derive(Debug)]
struct Content {
    bytes: Shared,
    /// Number of the bytes that were made durable.
    synced: usize,
    /// Operations of the lock's record.
    running: Vec<Unfinished>,
    /// Number of the log that owns the file, from 1.
    owner: Option<u64>,
    /// Logs that were opened so far.
    opened: u64,
    /// Files up to this size are indexed when they are opened, in bytes.
    indexed_at_once: u64,
    faults: Faults,
    /// The database that has the lines. The file is a cache of them.
    store: Option<Database>,
    /// Bytes of another program that come right before the next append.
    racing: Vec<u8>,
    /// Bytes of another program that come while the owner waits for them.
    on_their_way: Vec<u8>,
    /// Pieces of lines that were moved aside.
    torn: Vec<Vec<u8>>,
    /// Files of an older version that were replaced.
    kept: Vec<Vec<u8>>,
}

/// Faults that are still to come.
#[derive(Debug, Default)]
struct Faults {
    /// Bytes that the disk has room for; any number without a value.
    room: Option<usize>,
    /// The next fsync fails.
    sync: Option<Unconfirmed>,
    /// The owner is gone when the next append has left this number of its bytes.
    torn_after: Option<usize>,
}

/// The bytes after the last fsync when an fsync fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unconfirmed {
    /// They are there.
    Kept,
    /// They are gone.
    Lost,
}

/// Name of the file in errors.
const NAME: &str = "memory.jsonl";

impl Disk {
    /// A file with this header and these lines.
    ///
    /// # Errors
    /// When a line is not an entry.
    pub fn new(header: Header, lines: &[String]) -> Result<Self, StoreError> {
        lines.iter().try_for_each(|line| is_entry(line))?;
        let header = header_line(&header);
        let lines = std::iter::once(header.as_str()).chain(lines.iter().map(String::as_str));
        Ok(Self::of(lines.flat_map(|line| [line, "\n"]).collect::<String>().into_bytes()))
    }

    /// A file of these bytes, whatever they are.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Content {
            synced: bytes.len(),
            bytes: bytes.into(),
            running: Vec::new(),
            owner: None,
            opened: 0,
            indexed_at_once: 0,
            faults: Faults::default(),
            store: None,
            racing: Vec::new(),
            on_their_way: Vec::new(),
            torn: Vec::new(),
            kept: Vec::new(),
        })))
    }

    /// Keeps the lines in a database from here on. Each opening makes the file of them anew.
    ///
    /// # Errors
    /// When the database refuses them.
    pub fn keep_in(&self, database: &Database) -> Result<(), StoreError> {
        let found = header::of(Path::new(NAME), &self.shared())?;
        let about = About {
            id: found.header.id,
            name: format!("memory/{NAME}"),
            cwd: found.header.cwd,
            created: found.header.timestamp,
            parent: None,
        };
        let bytes = self.bytes();
        let mut batches = vec![rows::of(&bytes).map(<[u8]>::to_vec).collect::<Vec<_>>()];
        let server = database.connected(0, 0);
        let held = server.create(&about, &mut || Ok(batches.pop().unwrap_or_default()));
        server.release(&held.map_err(|fault| fault.at(Path::new(NAME)))?);
        self.content().store = Some(database.clone());
        Ok(())
    }

    /// Opens a session of a database.
    fn open_stored(&self, database: &Database) -> Result<Opened, StoreError> {
        /// Attempts of a request before it is refused.
        const PATIENCE: u32 = 2;
        let at = |fault: Fault| fault.at(Path::new(NAME));
        let number = {
            let mut content = self.content();
            content.opened += 1;
            content.owner = Some(content.opened);
            content.opened
        };
        let owner = Owner { disk: self.clone(), number };
        // The lock of the file is no part of it.
        let server = database.connected(u32::try_from(number).unwrap_or(u32::MAX), PATIENCE);
        let id = header::of(Path::new(NAME), &self.shared())?.header.id;
        let held = server.take(&id).map_err(at)?;
        {
            let mut content = self.content();
            content.bytes = database.file(&id).unwrap_or_default().into();
            content.synced = content.bytes.length();
        }
        let bytes = self.shared();
        let found = header::of(Path::new(NAME), &bytes)?;
        let source = Source::of(NAME.into(), bytes.clone(), &found);
        let (indexed_at_once, left_behind) = (self.content().indexed_at_once, held.left_behind.clone());
        let medium = Stored::new(NAME.into(), owner, Arc::new(server), held, bytes);
        files::load(source, found, indexed_at_once, medium, left_behind, &Blocking::is_allowed_here())
    }

    /// Opens the file for reading and appending, like a large file without its index.
    ///
    /// # Errors
    /// `Locked` while another log owns it; those of a file on disk, and those of a database that has the lines.
    pub fn open(&self) -> Result<Opened, StoreError> {
        let store = self.content().store.clone();
        if let Some(database) = store {
            return self.open_stored(&database);
        }
        let (owner, indexed_at_once, left_behind) = {
            let mut content = self.content();
            if content.owner.is_some() {
                return Err(StoreError::Locked { pid: None });
            }
            content.opened += 1;
            content.owner = Some(content.opened);
            (content.opened, content.indexed_at_once, content.running.clone())
        };
        // The lock is released with it, also on an error.
        let medium = Owner { disk: self.clone(), number: owner };
        let bytes = self.shared();
        let found = header::of(Path::new(NAME), &bytes)?;
        let source = Source::of(NAME.into(), bytes, &found);
        files::load(source, found, indexed_at_once, medium, left_behind, &Blocking::is_allowed_here())
    }

    /// Opens the file for reading only.
    ///
    /// # Errors
    /// Those of a file on disk.
    pub fn open_read_only(&self) -> Result<Opened, StoreError> {
        let indexed_at_once = self.content().indexed_at_once;
        let store = self.content().store.clone();
        if let Some(file) = store.and_then(|database| database.file(&self.id()?)) {
            self.content().bytes = file.into();
        }
        let bytes = self.shared();
        let found = header::of(Path::new(NAME), &bytes)?;
        files::follow(Source::of(NAME.into(), bytes, &found), found, indexed_at_once, &Blocking::is_allowed_here())
    }

    /// Files up to this size have their index when they are opened, in bytes. It is zero at first.
    pub fn index_at_once(&self, largest: u64) {
        self.content().indexed_at_once = largest;
    }

    /// Appends a line like a program that knows no lock.
    ///
    /// # Errors
    /// When the line is not an entry.
    pub fn append_as_another(&self, line: &str) -> Result<(), StoreError> {
        is_entry(line)?;
        self.write_as_another(format!("{line}\n").as_bytes());
        Ok(())
    }

    /// Appends bytes like a program that knows no lock, for example half a line. They are durable.
    pub fn write_as_another(&self, bytes: &[u8]) {
        self.content().write_as_another(bytes);
    }

    /// Appends bytes like another program, right before the next append of the owner: when the owner has looked already.
    pub fn race(&self, bytes: &[u8]) {
        self.content().racing.extend_from_slice(bytes);
    }

    /// Appends bytes like another program when the owner waits for the rest of a line.
    pub fn send_when_awaited(&self, bytes: &[u8]) {
        self.content().on_their_way.extend_from_slice(bytes);
    }

    /// Fills the disk: every append fails from here on, and nothing of it is written.
    pub fn fill(&self) {
        self.leave_room(0);
    }

    /// Leaves room for a number of bytes: an append that needs more is written in part, fails, and is cut off again.
    pub fn leave_room(&self, bytes: usize) {
        self.content().faults.room = Some(bytes);
    }

    /// Makes room again.
    pub fn make_room(&self) {
        self.content().faults.room = None;
    }

    /// Lets the next fsync fail. The log is read-only from then on.
    pub fn fail_sync_once(&self, unconfirmed: Unconfirmed) {
        self.content().faults.sync = Some(unconfirmed);
    }

    /// Ends the owner without a word, like a kill: the lock is free, and its record stays. The log of the owner changes
    /// nothing from here on.
    pub fn crash(&self) {
        let mut content = self.content();
        let owner = content.owner.take();
        if let (Some(owner), Some(database)) = (owner, &content.store) {
            database.kill(u32::try_from(owner).unwrap_or(u32::MAX));
        }
    }

    /// Ends the owner during its next append, which leaves this number of its bytes. With as many as the append has, the
    /// lines are durable, and the answer is lost.
    pub fn crash_torn(&self, bytes: usize) {
        self.content().faults.torn_after = Some(bytes);
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.content().bytes.to_vec()
    }

    /// Size of the file, in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.content().bytes.length()
    }

    /// Looks at the bytes that were made durable.
    pub fn durable<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        let store = self.content().store.clone();
        if let Some(database) = store {
            return look(&self.id().and_then(|id| database.file(&id)).unwrap_or_default());
        }
        let (bytes, synced) = {
            let content = self.content();
            (content.bytes.clone(), content.synced)
        };
        bytes.look(synced, look)
    }

    /// Whether a log owns the file.
    #[must_use]
    pub fn is_owned(&self) -> bool {
        self.content().owner.is_some()
    }

    /// Operations of the lock's record, outer ones first: those that the next owner finds.
    #[must_use]
    pub fn running(&self) -> Vec<Unfinished> {
        let store = self.content().store.clone();
        match store {
            Some(database) => self.id().map(|id| database.running(&id)).unwrap_or_default(),
            None => self.content().running.clone(),
        }
    }

    fn id(&self) -> Option<SessionId> {
        header::of(Path::new(NAME), &self.shared()).ok().map(|found| found.header.id)
    }

    /// Ids of the entries on whole lines, in file order. None where the file is no session.
    #[must_use]
    pub fn ids(&self) -> Vec<EntryId> {
        let bytes = self.shared();
        let entries = header::of(Path::new(NAME), &bytes).and_then(|found| {
            let source = Source::of(NAME.into(), bytes, &found);
            let length = source.length().map_err(source.failed())?;
            source.entries_between(source.floor(), length)
        });
        entries
            .map(|(entries, _)| entries.into_iter().map(|placed| placed.entry.id.clone()).collect())
            .unwrap_or_default()
    }

    /// Pieces of lines that were moved aside, in their order.
    #[must_use]
    pub fn torn(&self) -> Vec<Vec<u8>> {
        self.content().torn.clone()
    }

    fn shared(&self) -> Bytes {
        Bytes::Memory(self.content().bytes.clone())
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content, while the log with this number holds the lock.
    fn content_of(&self, number: u64) -> Result<MutexGuard<'_, Content>, io::Error> {
        let content = self.content();
        if content.owner == Some(number) { Ok(content) } else { Err(io::Error::other("its owner has crashed")) }
    }
}

impl Content {
    fn write_as_another(&mut self, bytes: &[u8]) {
        self.bytes.append(bytes);
        self.synced = self.bytes.length();
    }
}

/// The log that owns a `Disk`, until it crashes or ends.
#[derive(Debug)]
struct Owner {
    disk: Disk,
    number: u64,
}

impl Owner {
    /// The content, while the lock is held.
    fn content(&self) -> Result<MutexGuard<'_, Content>, io::Error> {
        self.disk.content_of(self.number)
    }
}

/// The register of the lock that the log with this number holds.
#[derive(Debug)]
struct Held {
    disk: Disk,
    number: u64,
}

impl Register for Held {
    fn record(&self, operations: Vec<Unfinished>) {
        if let Ok(mut content) = self.disk.content_of(self.number) {
            content.running = operations;
        }
    }
}

impl Medium for Owner {
    fn append(&mut self, bytes: &[u8]) -> Result<(), io::Error> {
        let mut content = self.content()?;
        let racing = mem::take(&mut content.racing);
        if !racing.is_empty() {
            content.write_as_another(&racing);
        }
        if let Some(left) = content.faults.torn_after.take() {
            content.write_as_another(&bytes[..left.min(bytes.len())]);
            let owner = content.owner.take();
            if let (Some(owner), Some(database)) = (owner, &content.store) {
                database.kill(u32::try_from(owner).unwrap_or(u32::MAX));
            }
            return Err(io::Error::other("its owner has crashed"));
        }
        let room = content.faults.room.unwrap_or(usize::MAX).min(bytes.len());
        content.bytes.append(&bytes[..room]);
        content.faults.room = content.faults.room.map(|left| left - room);
        if room == bytes.len() { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }

    fn sync(&mut self) -> Result<(), io::Error> {
        let mut content = self.content()?;
        let failed = content.faults.sync.take();
        if failed == Some(Unconfirmed::Lost) {
            content.bytes.cut(content.synced);
        }
        content.synced = content.bytes.length();
        if failed.is_some() { Err(io::Error::other("the disk failed")) } else { Ok(()) }
    }

    fn cut(&mut self, length: u64) -> Result<(), io::Error> {
        let mut content = self.content()?;
        let before = content.bytes.length();
        content.bytes.cut(usize::try_from(length).unwrap_or(usize::MAX));
        let freed = before - content.bytes.length();
        content.faults.room = content.faults.room.map(|room| room + freed);
        content.synced = content.synced.min(content.bytes.length());
        Ok(())
    }

    fn keep_torn(&mut self, piece: &[u8]) -> Result<PathBuf, io::Error> {
        let mut content = self.content()?;
        if content.faults.room.is_some_and(|room| room < piece.len()) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        content.torn.push(piece.to_vec());
        Ok(format!("{NAME}.torn").into())
    }

    fn remove_torn(&mut self, _: &Path) -> Result<(), io::Error> {
        self.content()?.torn.pop();
        Ok(())
    }

    fn replace(&mut self, bytes: &[u8], _: &str) -> Result<Bytes, io::Error> {
        let mut content = self.content()?;
        if content.faults.room.is_some_and(|room| room < bytes.len()) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let old = mem::replace(&mut content.bytes, bytes.to_vec().into());
        old.replace();
        content.kept.push(old.to_vec());
        content.synced = bytes.len();
        Ok(Bytes::Memory(content.bytes.clone()))
    }

    fn wait_for_others(&mut self) {
        let mut content = self.disk.content();
        let sent = mem::take(&mut content.on_their_way);
        if !sent.is_empty() {
            content.write_as_another(&sent);
        }
    }

    fn stamp(&mut self) -> Stamp {
        // No entry before it stands at the same place.
        let place = self.disk.content().bytes.length();
        Stamp { id: EntryId::of_bits(place as u64), timestamp: timestamp(Timestamp::UNIX_EPOCH) }
    }

    fn register(&self) -> Arc<dyn Register> {
        Arc::new(Held { disk: self.disk.clone(), number: self.number })
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Ok(mut content) = self.content() {
            content.owner = None;
        }
    }
}

fn is_entry(line: &str) -> Result<(), StoreError> {
    let parsed = Entry::parse(line.into());
    parsed.map(drop).map_err(|error| StoreError::Foreign { path: NAME.into(), what: error.to_string() })
}
