//! Readers of a session's entries, for work beside the session. They are made without a look at the disk, and each of their
//! readings needs the proof that it may wait for it.

mod copying;
mod growing;

use super::past;
use crate::{
    conversation::{entry::Entry, path::Path},
    ids::EntryId,
    log::{
        Placed,
        error::StoreError,
        index::{Index, Place, Spot},
        indexing::{Made, push},
        repair::Repair,
        sealed::{Blocking, Sealed},
        source::Source,
    },
};
use std::{iter, sync::Arc};

/// Place of the entries that are not part of the path in memory.
#[derive(Debug, Clone)]
pub enum Bodies {
    /// In the file.
    File(Sealed),
    /// In memory: the session has no file, or a file of an older version.
    Memory(Arc<Vec<Arc<Entry>>>),
}

/// All entries of a session, by their index.
#[derive(Clone)]
pub struct Library {
    index: Arc<Index>,
    bodies: Bodies,
}

/// The entries of a session, for a reader without an index.
#[derive(Clone)]
pub struct Reader(Bodies);

/// An index that is to be built.
pub struct Indexing {
    source: Sealed,
    end: u64,
    path: Path,
}

/// An index that was built, up to an offset of the file.
pub struct Indexed {
    index: Index,
    end: u64,
    /// The session's path, completed with values from before its first entry.
    path: Option<Path>,
    /// Faults of the lines.
    pub repairs: Vec<Repair>,
}

/// An index that lacks the entries after its end, or values from before the session's path.
pub struct IndexRest {
    indexed: Indexed,
    source: Sealed,
    path: Path,
}

/// Entries of an answer, some of which have to be read.
pub struct Wanted {
    source: Option<Sealed>,
    entries: Vec<Where>,
}

enum Where {
    Here(Arc<Entry>),
    There(Stand),
}

impl Indexing {
    /// An index of everything up to `end`, with the values from before `path`.
    #[must_use]
    pub fn new(source: Sealed, end: u64, path: Path) -> Self {
        Self { source, end, path }
    }

    /// Builds the index, unless it is stopped. This may take a second.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn run(self, stopped: &dyn Fn() -> bool, blocking: &Blocking) -> Result<Option<Indexed>, StoreError> {
        let Self { source, end, path } = self;
        let Some(Made { index, repairs, .. }) = source.open(blocking).index(end, stopped)? else { return Ok(None) };
        let mut indexed = Indexed { index, end, path: None, repairs };
        indexed.complete(path, source.open(blocking));
        Ok(Some(indexed))
    }
}

impl Indexed {
    /// Whether the index covers the file up to `end` and knows everything that `path` lacks.
    #[must_use]
    pub fn covers(&self, end: u64, path: &Path) -> bool {
        let knows = |first: &EntryId| {
            self.path.as_ref().and_then(|path| path.first()).is_some_and(|known| known.id == *first)
                || self.index.find(first).is_none()
        };
        self.end >= end && (!path.lacks_its_past() || path.first().is_none_or(|first| knows(&first.id)))
    }

    /// The index, and the session's path as it was completed.
    #[must_use]
    pub fn into_parts(self) -> (Index, Option<Path>) {
        (self.index, self.path)
    }

    fn complete(&mut self, mut path: Path, source: &Source) {
        if path.lacks_its_past() {
            past::complete(&self.index, &mut path, |place| readable(Stand::of(&self.index, place).read(source)));
            self.path = Some(path);
        }
    }
}

impl IndexRest {
    /// The rest of an index, for a session with this path.
    #[must_use]
    pub fn new(indexed: Indexed, source: Sealed, path: Path) -> Self {
        Self { indexed, source, path }
    }

    /// Adds the rest up to `end`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn run(self, end: u64, blocking: &Blocking) -> Result<Indexed, StoreError> {
        let Self { mut indexed, source, path } = self;
        let source = source.open(blocking);
        if indexed.end < end {
            source.index_on(&mut indexed.index, indexed.end, end)?;
            indexed.end = end;
        }
        indexed.complete(path, source);
        Ok(indexed)
    }
}

impl Reader {
    /// A reader of these entries.
    #[must_use]
    pub fn new(bodies: Bodies) -> Self {
        Self(bodies)
    }

    /// The path to an entry that is not appended yet. `end` is the length of the file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn path_behind(&self, entry: Arc<Entry>, end: u64, blocking: &Blocking) -> Result<Path, StoreError> {
        match &self.0 {
            Bodies::File(source) => source.open(blocking).path_behind(Some(entry), end),
            Bodies::Memory(entries) => Ok(Path::of(&[entries.as_slice(), &[entry]].concat())),
        }
    }
}

/// Place of an entry in the file, and its parent where the line names another one.
struct Stand {
    spot: Spot,
    mended: Option<Option<EntryId>>,
}

impl Stand {
    fn of(index: &Index, place: Place) -> Self {
        Self { spot: index.spot(place), mended: index.mended_parent(place).cloned() }
    }

    fn read(&self, source: &Source) -> Result<Arc<Entry>, StoreError> {
        let entry = source.read(self.spot)?;
        Ok(match &self.mended {
            Some(parent) => entry.behind(parent.clone()),
            None => entry,
        })
    }
}

impl Library {
    /// The entries of this index.
    #[must_use]
    pub fn new(index: Arc<Index>, bodies: Bodies) -> Self {
        Self { index, bodies }
    }

    /// The index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The place of the entries.
    pub(super) fn bodies(&self) -> &Bodies {
        &self.bodies
    }

    /// The index, and the place of the entries.
    #[must_use]
    pub fn into_parts(self) -> (Arc<Index>, Bodies) {
        (self.index, self.bodies)
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn body(&self, place: Place, blocking: &Blocking) -> Result<Arc<Entry>, StoreError> {
        blocking.go_on()?;
        match &self.bodies {
            Bodies::File(source) => Stand::of(&self.index, place).read(source.open(blocking)),
            Bodies::Memory(entries) => Ok(entries[self.index.spot(place).offset as usize].clone()),
        }
    }

    /// The path to an entry, as far back as its context needs, with the values from before it; none where there is no
    /// such entry.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn path_to(&self, id: &EntryId, blocking: &Blocking) -> Result<Option<Path>, StoreError> {
        self.index.find(id).map(|place| self.path_to_place(place, blocking)).transpose()
    }

    /// The same for the place of an entry.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn path_to_place(&self, place: Place, blocking: &Blocking) -> Result<Path, StoreError> {
        let mut path = self.gather(iter::empty(), Some(place), blocking)?;
        self.complete(&mut path, &[], blocking);
        Ok(path)
    }

    /// Completes a path with the values from before its first entry. `new`: entries that the file has and the index lacks,
    /// in file order.
    pub fn complete(&self, path: &mut Path, new: &[Placed], blocking: &Blocking) {
        let body = |library: &Self, place| readable(library.body(place, blocking));
        let begins_in_new =
            |first: &Arc<Entry>| self.index.find(&first.id).is_none() && new.iter().any(|it| it.entry.id == first.id);
        if path.lacks_its_past() && path.first().is_some_and(begins_in_new) {
            // The index of the session gets these entries when the work is back.
            let mut grown = self.clone();
            let index = Arc::make_mut(&mut grown.index);
            for placed in new {
                push(index, placed);
            }
            return past::complete(&grown.index, path, |place| body(&grown, place));
        }
        past::complete(&self.index, path, |place| body(self, place));
    }
}

fn readable(entry: Result<Arc<Entry>, StoreError>) -> Option<Arc<Entry>> {
    entry.inspect_err(|error| tracing::warn!(%error, "an entry before the path is left out")).ok()
}

impl Wanted {
    /// The entries at these places.
    #[must_use]
    pub fn of(index: &Index, bodies: &Bodies, places: impl IntoIterator<Item = Place>) -> Self {
        let stands = places.into_iter().map(|place| Stand::of(index, place));
        let entries = stands.map(|stand| match bodies {
            Bodies::File(_) => Where::There(stand),
            Bodies::Memory(entries) => Where::Here(entries[stand.spot.offset as usize].clone()),
        });
        let source = match bodies {
            Bodies::File(source) => Some(source.clone()),
            Bodies::Memory(_) => None,
        };
        Self { entries: entries.collect(), source }
    }

    /// Reads them one by one, until it is stopped.
    pub fn read(self, blocking: &Blocking) -> impl Iterator<Item = Result<Arc<Entry>, StoreError>> {
        let Self { source, entries } = self;
        entries.into_iter().map(move |entry| {
            blocking.go_on()?;
            match (entry, &source) {
                (Where::Here(entry), _) => Ok(entry),
                (Where::There(stand), Some(source)) => stand.read(source.open(blocking)),
                (Where::There(_), None) => unreachable!("only entries in a file are not here"),
            }
        })
    }
}
