//! The file of a session: reading it, following it, and the right to append to it.
//!
//! A session knows its file as a `Log`. `files` opens and creates the files of a data folder; `memory` has a disk for tests.

pub mod blobs;
pub mod bytes;
pub mod error;
pub mod files;
pub mod follower;
pub mod header;
pub mod history;
pub mod index;
pub mod indexing;
pub mod lines;
pub mod loading;
pub mod lock;
pub mod memory;
pub mod migrate;
pub mod names;
pub mod pieces;
pub mod repair;
pub mod sealed;
pub mod source;
pub mod store;

pub mod walk;
pub mod writer;

use crate::{
    conversation::{entry::Entry, path::Path},
    ids::{CallId, EntryId, OperationId},
};
use error::StoreError;
use index::{Gap, Spot};
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// The file of a session, as the session needs it. Reading back is the part of `history::History`, which comes with the
/// log when it is opened.
pub trait Log: fmt::Debug + Send {
    /// The rights that come with the log.
    fn access(&self) -> Access;

    /// Appends lines after `leaf`. When it returns `Written`, they are durable; on an error none of them is there. Lines
    /// of another program that were not read yet are returned instead, and nothing is written: the caller looks at them
    /// first.
    ///
    /// # Errors
    /// When the lines cannot be made durable. After a write that was not confirmed the log is read-only.
    fn append(&mut self, lines: &[String], leaf: Option<&EntryId>) -> Result<Appended, StoreError>;

    /// Reads the entries that other programs appended after `leaf`.
    ///
    /// # Errors
    /// When the file cannot be read, or bytes that were read before have changed.
    fn catch_up(&mut self, leaf: Option<&EntryId>) -> Result<Grown, StoreError>;

    /// Whether `catch_up` may find something. A cheap look: false only where it cannot.
    fn may_have_grown(&self) -> bool;

    /// End of the whole lines that were read or written, in bytes.
    fn end(&self) -> u64;

    /// The register of its lock. None where it has no lock.
    fn register(&self) -> Option<Arc<dyn Register>>;

    /// Disk operations so far.
    fn stats(&self) -> Stats;
}

/// The list of the open operations in a lock, for the next owner after a crash. It is written also while the log is out with
/// work, and not any more when the lock is free.
pub trait Register: fmt::Debug + Send + Sync {
    /// Records the open operations, outer ones first.
    fn record(&self, operations: Vec<Unfinished>);
}

/// Rights on a session's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The lock is held, and lines are appended.
    Write,
    /// The file is read and followed.
    Read,
    /// There is no file: the session ends with the daemon.
    Ephemeral,
}

/// Result of an append.
#[expect(clippy::large_enum_variant, reason = "one lives at a time")]
#[derive(Debug)]
pub enum Appended {
    /// The lines are durable, the first of them at this offset. Entries that another program appended at the same moment
    /// are before them.
    Written { at: u64, others: Vec<Placed> },
    /// Another program has appended these entries before. Nothing was written.
    Behind(Grown),
}

/// Entries of another program.
#[derive(Debug, Default)]
pub struct Grown {
    /// The entries, in file order.
    pub entries: Vec<Placed>,
    /// The new path, where the entries do not continue the old one.
    pub path: Option<Path>,
}

/// An operation that was started and not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unfinished {
    /// Its id.
    pub operation_id: OperationId,
    /// The name of its kind.
    pub kind: String,
    /// Its cause.
    #[serde(default)]
    pub reason: String,
    /// Time of its start.
    #[serde(default)]
    pub started_at: String,
    /// The hooks and retries inside of it that were started and not ended, in the order of their starts.
    #[serde(default, deserialize_with = "lock::readable_ones", skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Inside>,
}

/// A hook or a retry inside of an operation, by the names of the protocol. Another version may know other names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Inside {
    /// The client was asked.
    Hook {
        /// The hook.
        hook: String,
    },
    /// A request to a model is repeated.
    Retry {
        /// Purpose of the request.
        retry: String,
        /// Number of the retry, from 1.
        attempt: u32,
    },
    /// The client executes a tool.
    Tool {
        /// The call.
        call: CallId,
    },
}

/// An entry and its place in the file.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The entry.
    pub entry: Arc<Entry>,
    /// Its place.
    pub spot: Spot,
    /// The bytes between it and the entry before it.
    pub gap: Gap,
}

/// Disk operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Appends that reached the file, each of any number of lines.
    pub writes: u64,
    /// Calls of fsync after them.
    pub fsyncs: u64,
}

/// Whether entries simply continue the path after `leaf`. A compaction and an undo do not: either may bring back entries
/// that are not in memory.
fn continue_behind(entries: &[Placed], leaf: Option<&EntryId>) -> bool {
    let mut before = leaf;
    entries.iter().all(|Placed { entry, .. }| {
        let next = entry.parent.as_ref() == before && entry.undoes().is_none() && entry.compaction().is_none();
        before = Some(&entry.id);
        next
    })
}
