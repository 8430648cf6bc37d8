//! Writing a session of a store: each append goes to the local file and to the store, and counts when the store has it.

#[cfg(test)]
mod tests;

use super::{
    cache::Cache,
    facts::Facts,
    pages::Pages,
    rows,
    server::{Fault, Held, Server, Standing},
};
use crate::{
    conversation::entry::Stamp,
    log::{Register, Unfinished, bytes::Bytes, error::StoreError, writer::Medium},
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// A session of a store that is written, with its local file.
#[derive(Debug)]
pub struct Stored<M> {
    path: PathBuf,
    local: M,
    server: Arc<dyn Server>,
    /// Shared with the register.
    held: Arc<Mutex<Held>>,
    /// The bytes of the local file.
    bytes: Bytes,
    /// The cache that the local file belongs to, with its bytes; `None` in memory.
    cached: Option<(Arc<Cache>, Arc<Pages>)>,
    unsettled: Unsettled,
}

/// Rows that the store may have, because the connection ended before the answer to their write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsettled {
    /// There are none.
    None,
    /// Those of the change that is being made.
    Current,
    /// Those of a change that was refused.
    Refused,
}

/// A change of the rows at the end.
enum Change<'a> {
    /// Rows after the last one.
    Append(&'a [Vec<u8>]),
    /// Rows in the place of those from this line on.
    Rewrite(u64, &'a [Vec<u8>]),
}

impl<M> Stored<M> {
    /// A session that is held, with its local file at `path`.
    #[must_use]
    pub fn new(path: PathBuf, local: M, server: Arc<dyn Server>, held: Held, bytes: Bytes) -> Self {
        Self { path, local, server, held: Arc::new(Mutex::new(held)), bytes, cached: None, unsettled: Unsettled::None }
    }

    /// The same with the cache of its file.
    #[must_use]
    pub fn cached_in(mut self, cache: Arc<Cache>, pages: Arc<Pages>) -> Self {
        self.cached = Some((cache, pages));
        self
    }

    fn held(&self) -> Held {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_held(&self, held: Held) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    /// The store has these lines by now.
    fn reached(&mut self, standing: Standing) {
        if let Some((_, pages)) = &self.cached {
            pages.has_generation(standing.generation);
        }
        self.set_held(Held { standing, ..self.held() });
    }

    /// Performs a change, whatever happens to the connection meanwhile. On an error nothing of it is there, or nothing will
    /// be: rows of an unknown fate are removed before the next change.
    fn change(&mut self, change: &Change<'_>) -> Result<(), Fault> {
        let mut attempt = 0;
        loop {
            let fault = match self.attempt(change) {
                Ok(()) => return Ok(()),
                Err(fault) => fault,
            };
            if !matches!(fault, Fault::Away(_) | Fault::Cut(_)) || !self.server.waits(attempt) {
                if self.unsettled == Unsettled::Current {
                    self.unsettled = Unsettled::Refused;
                }
                return Err(fault);
            }
            attempt += 1;
        }
    }

    fn attempt(&mut self, change: &Change<'_>) -> Result<(), Fault> {
        if self.unsettled != Unsettled::None {
            let known = self.held().standing;
            let held = self.server.settle(&self.held())?;
            let standing = held.standing.clone();
            self.set_held(Held { standing: known.clone(), ..held });
            let current = std::mem::replace(&mut self.unsettled, Unsettled::None) == Unsettled::Current;
            // No other daemon writes in this epoch, so new rows are those of the change that was cut off.
            if current && places(&standing) == places(&wanted(&known, change)) {
                self.reached(standing);
                return Ok(());
            }
            if places(&standing) != places(&known) {
                self.withdraw(&standing, &known)?;
            }
        }
        let held = self.held();
        let changed = match change {
            Change::Append([]) => return Ok(()),
            Change::Append(rows) => {
                let wanted = wanted(&held.standing, change);
                self.server.append(&held, rows, Facts::of(rows, held.standing.lines)).map(|()| wanted)
            }
            Change::Rewrite(from, rows) => self.server.rewrite(&held, *from, rows),
        };
        match changed {
            Ok(standing) => {
                self.reached(standing);
                Ok(())
            }
            Err(fault) => {
                if matches!(fault, Fault::Cut(_)) {
                    self.unsettled = Unsettled::Current;
                }
                Err(fault)
            }
        }
    }

    /// Removes rows that were refused and are there.
    fn withdraw(&mut self, standing: &Standing, known: &Standing) -> Result<(), Fault> {
        // The removal itself may have been cut off.
        if standing.lines == known.lines {
            self.reached(standing.clone());
            return Ok(());
        }
        if standing.generation != known.generation || standing.lines < known.lines {
            return Err(Fault::Changed("its lines in the store are not those that were written".to_owned()));
        }
        tracing::warn!(lines = standing.lines - known.lines, "lines of a refused append are removed from the store");
        let held = Held { standing: standing.clone(), ..self.held() };
        // Until it is known that they are gone, they may be there.
        self.unsettled = Unsettled::Refused;
        let standing = self.server.rewrite(&held, known.lines, &[])?;
        self.unsettled = Unsettled::None;
        self.reached(standing);
        Ok(())
    }

    fn failed(&self, fault: Fault) -> io::Error {
        let gone = || Fault::Changed("it was deleted from the store".to_owned());
        io::Error::other(if fault == Fault::Missing { gone() } else { fault }.at(&self.path))
    }

    /// The last line of the local file, up to a length, with its offset.
    fn last_line(&self, end: u64) -> io::Result<(u64, Vec<u8>)> {
        const BLOCK: u64 = 64 << 10;
        let mut line = Vec::new();
        let mut at = end;
        while at > 0 {
            let from = at.saturating_sub(BLOCK);
            let mut block = vec![0; usize::try_from(at - from).unwrap_or_default()];
            self.bytes.read_exact_at(&mut block, from)?;
            // The newline at the end belongs to the line.
            let inner = if at == end { block.len().saturating_sub(1) } else { block.len() };
            if let Some(newline) = memchr::memrchr(b'\n', &block[..inner]) {
                line.splice(..0, block[newline + 1..].iter().copied());
                return Ok((from + newline as u64 + 1, line));
            }
            line.splice(..0, block);
            at = from;
        }
        Ok((0, line))
    }
}

/// The state of the lines after a change.
fn wanted(standing: &Standing, change: &Change<'_>) -> Standing {
    match change {
        Change::Append(rows) => Standing {
            lines: standing.lines + rows.len() as u64,
            bytes: standing.bytes + rows::size(rows),
            whole: rows::are_whole(rows),
            ..standing.clone()
        },
        // Its generation is new, so it is known by that.
        Change::Rewrite(from, rows) => {
            Standing { generation: standing.generation + 1, lines: from + rows.len() as u64, ..standing.clone() }
        }
    }
}

/// The values by which a change is known to be there.
fn places(standing: &Standing) -> (i64, u64) {
    (standing.generation, standing.lines)
}

impl<M: Medium> Medium for Stored<M> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let standing = self.held().standing;
        if self.bytes.length()? != standing.bytes {
            let what = "another program wrote to its cache file".to_owned();
            return Err(io::Error::other(StoreError::Changed { path: self.path.clone(), what }));
        }
        self.local.append(bytes)?;
        let changed = if standing.whole {
            let rows: Vec<Vec<u8>> = rows::of(bytes).map(<[u8]>::to_vec).collect();
            self.change(&Change::Append(&rows))
        } else {
            let (_, mut last) = self.last_line(standing.bytes)?;
            last.extend_from_slice(bytes);
            let rows: Vec<Vec<u8>> = rows::of(&last).map(<[u8]>::to_vec).collect();
            self.change(&Change::Rewrite(standing.lines - 1, &rows))
        };
        changed.map_err(|fault| self.failed(fault))
    }

    /// The store has the bytes by then. The local file is a cache.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        let standing = self.held().standing;
        if length < standing.bytes {
            let (at, mut last) = self.last_line(standing.bytes)?;
            let Some(left) = length.checked_sub(at).and_then(|left| usize::try_from(left).ok()) else {
                return Err(io::Error::other("more than the last line would be cut off"));
            };
            last.truncate(left);
            let rows: Vec<Vec<u8>> = if last.is_empty() { Vec::new() } else { vec![last] };
            let change = Change::Rewrite(standing.lines - 1, &rows);
            self.change(&change).map_err(|fault| self.failed(fault))?;
        }
        self.local.cut(length)
    }

    fn keep_torn(&mut self, piece: &[u8]) -> io::Result<PathBuf> {
        self.local.keep_torn(piece)
    }

    fn remove_torn(&mut self, torn: &Path) -> io::Result<()> {
        self.local.remove_torn(torn)
    }

    fn replace(&mut self, bytes: &[u8], version: &str) -> io::Result<Bytes> {
        let rows: Vec<Vec<u8>> = rows::of(bytes).map(<[u8]>::to_vec).collect();
        self.change(&Change::Rewrite(0, &rows)).map_err(|fault| self.failed(fault))?;
        self.bytes = self.local.replace(bytes, version)?;
        // The record of the cache file is about the old one.
        self.cached = None;
        Ok(self.bytes.clone())
    }

    fn wait_for_others(&mut self) {
        self.local.wait_for_others();
    }

    fn stamp(&mut self) -> Stamp {
        self.local.stamp()
    }

    fn register(&self) -> Arc<dyn Register> {
        Arc::new(Recorded { server: self.server.clone(), held: self.held.clone() })
    }
}

impl<M> Drop for Stored<M> {
    fn drop(&mut self) {
        if self.unsettled == Unsettled::Refused
            && let Err(fault) = self.attempt(&Change::Append(&[]))
        {
            tracing::warn!(?fault, "lines of a refused append may have stayed in the store");
        }
        let held = self.held();
        if let Some((cache, pages)) = &self.cached {
            let Standing { lines, bytes, .. } = held.standing;
            cache.record(&self.path, pages, lines, bytes);
        }
        self.server.release(&held);
    }
}

/// The register of a session that is held.
#[derive(Debug)]
struct Recorded {
    server: Arc<dyn Server>,
    held: Arc<Mutex<Held>>,
}

impl Register for Recorded {
    fn record(&self, operations: Vec<Unfinished>) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.server.record(&held, operations);
    }
}
