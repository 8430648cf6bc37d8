//! A log that records the outcome of each call, with the bytes that other programs wrote.

use super::outcome::{Begin, Failing, LogCall, Outcome};
use crate::{
    ids::EntryId,
    log::{
        Access, Appended, Grown, Log, Register, Stats,
        bytes::{Bytes, Standing},
        error::StoreError,
    },
    regular::{self, Links},
};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// The last call of a log, until it is taken.
#[derive(Debug, Clone, Default)]
pub struct LastCall(Arc<Mutex<Option<LogCall>>>);

impl LastCall {
    /// Takes it.
    #[must_use]
    pub fn take(&self) -> Option<LogCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A log whose calls are recorded.
#[derive(Debug)]
pub struct Tapped {
    log: Box<dyn Log>,
    path: PathBuf,
    bytes: Option<Bytes>,
    last: LastCall,
}

impl Tapped {
    /// A log of the file at `path`. Its calls are left in `last`.
    #[must_use]
    pub fn new(log: Box<dyn Log>, path: PathBuf, last: LastCall) -> Self {
        let bytes = regular::open(&path, Links::Followed).ok().map(Bytes::from);
        Self { log, path, bytes, last }
    }

    fn note(&mut self, known: u64, outcome: Outcome, to: Option<u64>) {
        let replaced = !matches!(outcome, Outcome::Failed(..)) && self.was_replaced();
        if replaced {
            self.bytes = regular::open(&self.path, Links::Followed).ok().map(Bytes::from);
        }
        let (begin, from) = if replaced { (Begin::Replaced, 0) } else { (Begin::At(known), known) };
        let bytes = self.between(from, to);
        let call = LogCall { bytes: bytes.into(), from: begin, outcome, stats: self.log.stats() };
        *self.last.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
    }

    fn was_replaced(&self) -> bool {
        let standing = self.bytes.as_ref().and_then(|bytes| bytes.standing(&self.path).ok());
        matches!(standing, Some(Standing::Replaced))
    }

    /// The bytes between two offsets; without `to` up to the end.
    fn between(&self, from: u64, to: Option<u64>) -> Vec<u8> {
        let Some(bytes) = &self.bytes else { return Vec::new() };
        let to = to.or_else(|| bytes.length().ok()).unwrap_or(from);
        let mut between = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or(0)];
        match bytes.read_exact_at(&mut between, from) {
            Ok(()) => between,
            Err(error) => {
                tracing::warn!(%error, "bytes of the session file are missing in the recording");
                Vec::new()
            }
        }
    }
}

impl Log for Tapped {
    fn access(&self) -> Access {
        self.log.access()
    }

    fn append(&mut self, lines: &[String], leaf: Option<&EntryId>) -> Result<Appended, StoreError> {
        let known = self.log.end();
        let result = self.log.append(lines, leaf);
        let end = self.log.end();
        let (outcome, to) = match &result {
            Ok(Appended::Written { at, .. }) => (Outcome::Written, Some(*at)),
            Ok(Appended::Behind(_)) => (Outcome::Behind(end), Some(end)),
            Err(error) => (Outcome::Failed(end, Failing::from(error)), None),
        };
        self.note(known, outcome, to);
        result
    }

    fn catch_up(&mut self, leaf: Option<&EntryId>) -> Result<Grown, StoreError> {
        let known = self.log.end();
        let result = self.log.catch_up(leaf);
        let end = self.log.end();
        let (outcome, to) = match &result {
            Ok(_) => (Outcome::CaughtUp(end), Some(end)),
            Err(error) => (Outcome::Failed(end, Failing::from(error)), None),
        };
        self.note(known, outcome, to);
        result
    }

    fn may_have_grown(&self) -> bool {
        self.log.may_have_grown()
    }

    fn end(&self) -> u64 {
        self.log.end()
    }

    fn register(&self) -> Option<Arc<dyn Register>> {
        self.log.register()
    }

    fn stats(&self) -> Stats {
        self.log.stats()
    }
}
