//! A log in memory whose outcomes are the recorded ones.

use super::outcome::{Begin, LogCall, Outcome};
use crate::{
    ids::EntryId,
    log::{
        Access, Appended, Grown, Log, Placed, Register, Stats,
        bytes::{Bytes, Shared},
        error::StoreError,
        header,
        index::Spot,
        memory::Ephemeral,
        source::Source,
    },
};
use std::{io, sync::Arc};

/// The log of a replay.
#[derive(Debug)]
pub enum PlayedLog {
    /// Of a file.
    File(Box<Played>),
    /// Of a session without a file.
    Ephemeral(Ephemeral),
}

/// A log of a file in memory.
#[derive(Debug)]
pub struct Played {
    access: Access,
    shared: Shared,
    source: Source,
    end: u64,
    /// Number of entries that were known at the opening.
    known: usize,
    stats: Stats,
    next: Option<LogCall>,
}

impl PlayedLog {
    /// The log of a file that is known up to `end`, in bytes. `known` is the number of its entries.
    #[must_use]
    pub fn of(access: Access, shared: Shared, source: Source, end: u64, known: usize, stats: Stats) -> Self {
        Self::File(Box::new(Played { access, shared, source, end, known, stats, next: None }))
    }

    /// Sets the outcome of the next call.
    pub fn next(&mut self, call: Option<LogCall>) {
        if let Self::File(log) = self {
            log.next = call;
        }
    }

    /// The log.
    pub fn as_log(&mut self) -> &mut dyn Log {
        match self {
            Self::File(log) => &mut **log,
            Self::Ephemeral(log) => log,
        }
    }

    /// The log, to look at.
    #[must_use]
    pub fn as_ref_log(&self) -> &dyn Log {
        match self {
            Self::File(log) => &**log,
            Self::Ephemeral(log) => log,
        }
    }

    /// The bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Self::File(log) => Some(log.shared.to_vec()),
            Self::Ephemeral(_) => None,
        }
    }
}

impl Played {
    /// The recorded call, and the entries that other programs wrote before its outcome. Their bytes are in the file then.
    fn call(&mut self) -> Result<(LogCall, Vec<Placed>), StoreError> {
        let call = self.next.take().ok_or_else(|| self.failed("the recording has no outcome for this call"))?;
        self.stats = call.stats;
        let bytes = call.bytes.to_vec().ok_or_else(|| self.failed("its bytes are no base64"))?;
        match call.from {
            Begin::At(from) => {
                self.shared.cut(usize::try_from(from).unwrap_or(usize::MAX));
                self.shared.append(&bytes);
                let to = match call.outcome {
                    Outcome::Written => self.shared.length() as u64,
                    Outcome::Behind(end) | Outcome::CaughtUp(end) => end,
                    Outcome::Failed(end, _) => {
                        self.end = end;
                        return Ok((call, Vec::new()));
                    }
                };
                let (entries, _) = self.source.entries_between(from, to)?;
                self.end = to;
                Ok((call, entries))
            }
            Begin::Replaced => {
                self.shared = Shared::from(bytes);
                let bytes = Bytes::Memory(self.shared.clone());
                let found = header::of(self.source.path(), &bytes)?;
                self.source = Source::of(self.source.path().to_owned(), bytes, &found);
                self.end = self.shared.length() as u64;
                let (entries, _) = self.source.entries_between(self.source.floor(), self.end)?;
                // The session keeps the entries of an old file in memory.
                let nowhere = Spot { offset: 0, length: 0 };
                Ok((
                    call,
                    entries.into_iter().skip(self.known).map(|placed| Placed { spot: nowhere, ..placed }).collect(),
                ))
            }
        }
    }

    fn failed(&self, what: &'static str) -> StoreError {
        StoreError::io(self.source.path(), what)(io::Error::other("the recording does not fit"))
    }
}

impl Log for Played {
    fn access(&self) -> Access {
        self.access
    }

    fn append(&mut self, lines: &[String], leaf: Option<&EntryId>) -> Result<Appended, StoreError> {
        let (call, others) = self.call()?;
        match call.outcome {
            Outcome::Written => {
                let at = self.end;
                for line in lines {
                    self.shared.append(line.as_bytes());
                    self.shared.append(b"\n");
                }
                self.end = self.shared.length() as u64;
                Ok(Appended::Written { at, others })
            }
            Outcome::Behind(end) => Ok(Appended::Behind(self.source.grown(others, leaf, end)?)),
            Outcome::CaughtUp(_) => Err(self.failed("the recorded call read, and this one writes")),
            Outcome::Failed(_, failing) => Err(failing.into()),
        }
    }

    fn catch_up(&mut self, leaf: Option<&EntryId>) -> Result<Grown, StoreError> {
        let (call, others) = self.call()?;
        match call.outcome {
            Outcome::CaughtUp(end) => self.source.grown(others, leaf, end),
            Outcome::Failed(_, failing) => Err(failing.into()),
            Outcome::Written | Outcome::Behind(_) => Err(self.failed("the recorded call wrote, and this one reads")),
        }
    }

    fn may_have_grown(&self) -> bool {
        self.next.is_some()
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn register(&self) -> Option<Arc<dyn Register>> {
        None
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}
