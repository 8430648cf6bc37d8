//! Loading a session file: the path from its end, its index where that is quick, and its faults.

use super::{
    error::StoreError,
    header::Found,
    history::History,
    history::library::{Bodies, Library},
    index::{Index, Spot},
    indexing::unreadable,
    migrate,
    repair::{self, Repair},
    sealed::{Blocking, Sealed},
    source::{Source, Tail},
};
use crate::{
    conversation::{
        entry::{Entry, VERSION},
        path::Path,
    },
    ids::EntryId,
};
use std::sync::Arc;

/// A session file that was read.
pub struct Loaded {
    /// The entries.
    pub history: History,
    /// Faults of the file.
    pub repairs: Vec<Repair>,
    /// End of the whole lines in bytes; the newline of the last one may be missing.
    pub durable: u64,
    /// End of the file.
    pub tail: Tail,
}

impl Source {
    /// Reads the file so that the session can be worked with, with its index where its lines end within `indexed_at_once`
    /// bytes.
    ///
    /// # Errors
    /// When it cannot be read, or the caller does not want it any more.
    pub fn load(self, found: &Found, indexed_at_once: u64, blocking: &Blocking) -> Result<Loaded, StoreError> {
        let length = self.length().map_err(self.failed())?;
        if found.header.version < VERSION {
            let (entries, repairs) = migrate::read(self.bytes(), found, length).map_err(self.failed())?;
            let tail = Tail::Old { entries: entries.len() };
            let (history, oddities) = History::of_old_file(entries);
            let repairs = repair::distinct(repairs.into_iter().chain(oddities).collect());
            return Ok(Loaded { history, repairs, durable: length, tail });
        }
        let (durable, tail) = self.end(length)?;
        let mut repairs = Vec::new();
        let mut index = None;
        let mut torn_line = None;
        if durable <= indexed_at_once {
            let made = self.index(durable, &|| blocking.is_stopped())?.ok_or(StoreError::Stopped)?;
            torn_line = Some(made.lines + usize::from(self.ends_line(durable)?));
            index = Some(made.index);
            repairs = made.repairs;
        }
        repairs.extend(tail.repair(torn_line));
        if found.header.version > VERSION {
            let version = found.header.version;
            let detail = format!("version {version} is newer than {VERSION}, which is what is understood here");
            repairs.push(Repair { kind: "newer_version", line: None, detail });
        }
        let (mut path, spent) = self.path_and_costs(durable, &|| blocking.is_stopped())?;
        repairs.extend(repair::distinct(self.unreadable(&path, index.as_ref())?));
        let index = index.map(Arc::new);
        let source = Sealed::from(self);
        if let Some(index) = &index {
            let library = Library::new(index.clone(), Bodies::File(source.clone()));
            library.complete(&mut path, &[], blocking);
        }
        let history = History::of_file(source, path, index).with_costs(spent);
        Ok(Loaded { history, repairs, durable, tail })
    }

    /// Entries of a path that are not in the form of their type, by their lines where an index knows those.
    fn unreadable(&self, path: &Path, index: Option<&Index>) -> Result<Vec<Repair>, StoreError> {
        // An index names those that are too large.
        let named = |entry: &Entry| index.is_some() && entry.is_too_large();
        let entries = path.iter().filter(|entry| !named(entry));
        let found = entries.filter_map(|entry| Some((unreadable(entry)?, &entry.id)));
        let (mut repairs, ids): (Vec<Repair>, Vec<&EntryId>) = found.unzip();
        let Some(index) = index else { return Ok(repairs) };
        let spots: Vec<Option<Spot>> = ids.into_iter().map(|id| Some(index.spot(index.find(id)?))).collect();
        let known: Vec<Spot> = spots.iter().flatten().copied().collect();
        let mut numbers = self.line_numbers(&known)?.into_iter();
        for (repair, _) in repairs.iter_mut().zip(spots).filter(|(_, spot)| spot.is_some()) {
            repair.line = numbers.next();
        }
        Ok(repairs)
    }
}
