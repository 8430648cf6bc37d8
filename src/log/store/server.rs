//! The database of a store, as the sessions need it: who owns a session, its lines, and the ways in which a request can fail.

use super::facts::Facts;
use crate::{
    ids::SessionId,
    log::{Unfinished, error::StoreError},
};
use std::{fmt, path::Path};

/// The database of a store. Its methods wait for it.
pub trait Server: fmt::Debug + Send + Sync {
    /// Makes a session that this daemon owns. All lines are there, or none.
    ///
    /// # Errors
    /// `Exists` where the store has a session with this id.
    fn create(&self, about: &About, rows: &mut Rows<'_>) -> Result<Held, Fault>;

    /// The state of a session that is only read.
    ///
    /// # Errors
    /// `Missing` where the store has no such session.
    fn look(&self, id: &SessionId) -> Result<Standing, Fault>;

    /// Makes this daemon the owner of a session.
    ///
    /// # Errors
    /// `Owned` where a daemon that lives owns it; `Missing`.
    fn take(&self, id: &SessionId) -> Result<Held, Fault>;

    /// Appends rows after the lines that the owner knows. All of them are durable, or none is there.
    ///
    /// # Errors
    /// `Owned` where the session has another owner by now. After `Cut` the rows may be there.
    fn append(&self, held: &Held, rows: &[Vec<u8>], facts: Facts) -> Result<(), Fault>;

    /// Replaces the rows from a line on. The session gets a new generation.
    ///
    /// # Errors
    /// As `append`.
    fn rewrite(&self, held: &Held, from: u64, rows: &[Vec<u8>]) -> Result<Standing, Fault>;

    /// Takes the session again after a request whose end is not known, and says how it stands. A request of before that is
    /// still on its way does nothing from here on.
    ///
    /// # Errors
    /// `Owned` where the session has another owner by now.
    fn settle(&self, held: &Held) -> Result<Held, Fault>;

    /// Reads rows before or after a line, as many as have about this number of bytes, and one at least. They are in the order
    /// in which they are read.
    ///
    /// # Errors
    /// `Changed` where the session has another generation by now.
    fn read(&self, id: &SessionId, generation: i64, from: From, bytes: u64) -> Result<Vec<Vec<u8>>, Fault>;

    /// Records the operations that run, for the next owner. It does not wait.
    fn record(&self, held: &Held, operations: Vec<Unfinished>);

    /// Gives a session up. Operations that are still recorded stay for the next owner.
    fn release(&self, held: &Held);

    /// Deletes a session that no other daemon owns.
    ///
    /// # Errors
    /// `Owned`, `Missing`.
    fn delete(&self, id: &SessionId) -> Result<(), Fault>;

    /// Waits before a request is repeated after `Away` or `Cut`. False where it should not be repeated any more. `attempt`
    /// counts from 0.
    fn waits(&self, attempt: u32) -> bool;
}

/// A source of rows, a few at a time. An empty list ends them.
pub type Rows<'a> = dyn FnMut() -> Result<Vec<Vec<u8>>, StoreError> + 'a;

/// A direction of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// Forward from this line.
    Line(u64),
    /// Backward from the line before this one.
    Before(u64),
}

/// The facts about a session that its header tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its id.
    pub id: SessionId,
    /// Path of its file below the folder of the sessions.
    pub name: String,
    /// Its working folder.
    pub cwd: String,
    /// Time of its creation, as the header has it.
    pub created: String,
    /// The session that it was made from, as the header has it.
    pub parent: Option<String>,
}

/// The state of a session's lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Changes when lines that were there change.
    pub generation: i64,
    /// Number of lines.
    pub lines: u64,
    /// Their size, in bytes.
    pub bytes: u64,
    /// Whether the last line ends with a newline.
    pub whole: bool,
    /// Path of the file below the folder of the sessions.
    pub name: String,
    /// The working folder.
    pub cwd: String,
}

/// A session that this daemon owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The session.
    pub id: SessionId,
    /// Number of this ownership. Every write names it.
    pub epoch: i64,
    /// The lines.
    pub standing: Standing,
    /// The operations that the last owner did not end, outer ones first.
    pub left_behind: Vec<Unfinished>,
}

/// The daemon that owns a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its machine.
    pub host: String,
    /// Its process there.
    pub pid: Option<u32>,
    /// The time since which it owns the session, by the clock of the database, RFC 3339.
    pub since: String,
}

/// Failure of a request to the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It cannot be reached. Nothing was sent.
    Away(String),
    /// The connection ended before the answer. The request was performed or not.
    Cut(String),
    /// Another daemon owns the session.
    Owned(Owner),
    /// There is no such session.
    Missing,
    /// There is a session with this id.
    Exists,
    /// Lines that were read before have changed.
    Changed(String),
    /// The database refused the request, and nothing was done.
    Refused {
        /// The reason, and the way out.
        why: String,
        /// Whether the same request may succeed later.
        retryable: bool,
    },
    /// The source of the rows failed.
    Source(Box<str>),
}

impl Fault {
    /// The error of the session whose file is at this path.
    #[must_use]
    pub fn at(self, path: &Path) -> StoreError {
        let stored = |what: String, retryable| StoreError::Stored { path: path.to_owned(), what, retryable };
        match self {
            Self::Away(why) => {
                stored(format!("the store cannot be reached ({why}); nothing was changed. Try again"), true)
            }
            Self::Cut(why) => {
                let what = format!(
                    "the store did not answer ({why}). This daemon takes the request back when it answers; try again. After a \
                     restart of this daemon look at the session first: the request may be in it"
                );
                stored(what, true)
            }
            Self::Owned(Owner { host, pid, since }) => StoreError::Owned { host, pid, since },
            Self::Missing => StoreError::Missing(path.to_owned()),
            Self::Exists => {
                stored("the store has a session with this id; pull it, or delete it first".to_owned(), false)
            }
            Self::Changed(what) => StoreError::Changed { path: path.to_owned(), what },
            Self::Refused { why, retryable } => stored(format!("the store refused it: {why}"), retryable),
            Self::Source(why) => stored(why.into(), false),
        }
    }
}
