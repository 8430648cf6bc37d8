//! A session of a store that another daemon writes: new rows are added to the local file, and read from there.

use super::{
    cache::Cache,
    pages::Pages,
    server::{Fault, From, Server, Standing},
};
use crate::{
    ids::{EntryId, SessionId},
    log::{Access, Appended, Grown, Log, Register, Stats, bytes::Paged as _, error::StoreError},
};
use std::{os::unix::fs::FileExt, path::PathBuf, sync::Arc};

/// The most bytes that are read at once.
const MOST: u64 = 4 << 20;

/// A session that is only read.
#[derive(Debug)]
pub struct Followed {
    /// The session.
    pub id: SessionId,
    /// Path of its local file.
    pub path: PathBuf,
    /// The lines that the local file has.
    pub standing: Standing,
    /// The database.
    pub server: Arc<dyn Server>,
    /// The cache of the local file.
    pub cache: Arc<Cache>,
    /// Its bytes.
    pub pages: Arc<Pages>,
    /// The log that reads the local file.
    pub follower: Box<dyn Log>,
}

impl Followed {
    /// Adds the rows that are new to the local file.
    fn bring(&mut self) -> Result<(), Fault> {
        let standing = self.server.look(&self.id)?;
        if standing.generation != self.standing.generation {
            return Err(Fault::Changed("its owner took lines back".to_owned()));
        }
        while self.standing.lines < standing.lines {
            let rows = self.server.read(&self.id, self.standing.generation, From::Line(self.standing.lines), MOST)?;
            if rows.is_empty() {
                return Err(Fault::Changed("lines are missing in the store".to_owned()));
            }
            for row in rows {
                let written = self.pages.file().write_all_at(&row, self.standing.bytes);
                written.map_err(|error| Fault::Source(error.to_string().into()))?;
                self.standing.lines += 1;
                self.standing.bytes += row.len() as u64;
            }
        }
        Ok(())
    }
}

impl Log for Followed {
    fn access(&self) -> Access {
        self.follower.access()
    }

    fn append(&mut self, lines: &[String], leaf: Option<&EntryId>) -> Result<Appended, StoreError> {
        self.follower.append(lines, leaf)
    }

    fn catch_up(&mut self, leaf: Option<&EntryId>) -> Result<Grown, StoreError> {
        self.bring().map_err(|fault| fault.at(&self.path))?;
        self.follower.catch_up(leaf)
    }

    fn may_have_grown(&self) -> bool {
        true
    }

    fn end(&self) -> u64 {
        self.follower.end()
    }

    fn register(&self) -> Option<Arc<dyn Register>> {
        None
    }

    fn stats(&self) -> Stats {
        self.follower.stats()
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.cache.record(&self.path, &self.pages, self.standing.lines, self.standing.bytes);
    }
}
