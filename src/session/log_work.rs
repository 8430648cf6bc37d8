//! Work on the log of a session. It runs away from the session, one at a time, with the log in its hands.

use crate::{
    conversation::{
        entry::{Entry, Stamps},
        path::Path,
        tokens::Estimator,
        undo::Undoing,
    },
    ids::{CallId, EntryId},
    log::{
        Access, Appended, Grown, Log, Placed, Stats,
        error::StoreError,
        history::{
            homes::Home,
            library::{IndexRest, Indexed, Library, Reader, Wanted},
            points::NoPoint,
            route::Route,
        },
        index::{Gap, Spot},
        sealed::{Blocking, Sealed},
    },
};
use std::sync::Arc;

/// Work on the log.
pub enum LogWork {
    /// Appends entries.
    Append(Box<AppendWork>),
    /// Reads the path without a compaction, and appends the entries that undo the compaction.
    Undo(Box<UndoWork>),
    /// Reads the path again.
    Wake(Sealed, Option<Library>),
    /// Reads the entries that other programs appended after this leaf.
    CatchUp(Option<EntryId>, Option<Library>),
    /// Reads entries that a request is about.
    Fetch(Fetch),
    /// Adds the rest to an index.
    Index(Box<IndexRest>),
}

/// Entries that a request is about and that are not in memory.
pub enum Fetch {
    /// The entry with this id, which stands at this place.
    Entry(EntryId, Wanted),
    /// The lines for other programs that belong to an entry. They stand right after it, before any other entry of these.
    Mirrors(EntryId, Wanted),
    /// The way from the leaf to another entry.
    Route(RouteOrder),
    /// The branches of calls.
    Homes(Box<HomesOrder>),
}

/// The order to find the branches of calls.
pub struct HomesOrder {
    /// The calls.
    pub calls: Vec<CallId>,
    /// The end of the path that the branches are seen from.
    pub seen_from: Option<EntryId>,
    /// The leaf.
    pub leaf: Option<EntryId>,
    /// The entry that the request names as a parent, and the entries after it.
    pub mirrors: Option<(EntryId, Wanted)>,
    /// The entries of the session.
    pub library: Library,
}

/// The branches of calls.
#[derive(Debug, Clone)]
pub struct Homes {
    /// The calls.
    pub calls: Vec<CallId>,
    /// The leaf.
    pub leaf: Option<EntryId>,
    /// The entry that the request names as a parent, and the last line for other programs that belongs to it.
    pub mirrors: Option<(EntryId, EntryId)>,
    /// The branches.
    pub homes: Vec<Home>,
}

/// The order to find the way to an entry.
pub struct RouteOrder {
    /// The entry.
    pub target: EntryId,
    /// The leaf.
    pub leaf: Option<EntryId>,
    /// The entries of the session.
    pub library: Library,
    /// Whether the entries of the branch that is left are read.
    pub reads_left: bool,
}

/// Entries that were fetched.
#[derive(Debug, Clone)]
pub enum Fetched {
    /// An entry; `None` where another one stands at its place.
    Entry(EntryId, Option<Arc<Entry>>),
    /// An entry, and the last line for other programs that belongs to it; itself where there is none.
    Mirrors(EntryId, EntryId),
    /// The way from the leaf to an entry, or the reason why there is none.
    Route(EntryId, Box<Result<Route, NoPoint>>),
    /// The branches of calls.
    Homes(Box<Homes>),
}

/// Makes entries for the same write as a move to another path. None where that path needs none.
pub type Adds = Box<dyn FnOnce(&Path) -> Vec<Arc<Entry>> + Send>;

/// Both together. The second ones follow the first ones.
#[must_use]
pub fn both(first: Option<Adds>, second: Option<Adds>) -> Option<Adds> {
    match (first, second) {
        (Some(first), Some(second)) => Some(Box::new(move |there: &Path| {
            let mut added = first(there);
            let there = added.iter().fold(there.clone(), |there, entry| there.with(entry.clone()));
            added.extend(second(&there));
            added
        })),
        (first, second) => first.or(second),
    }
}

/// Entries that are to be appended.
pub struct AppendWork {
    /// The entries.
    pub entries: Vec<Arc<Entry>>,
    /// The leaf before them.
    pub leaf: Option<EntryId>,
    /// Whether they simply continue the path. If not, the path is read again after them.
    pub continues: bool,
    /// The file, where there is one.
    pub source: Option<Sealed>,
    /// The index, where there is one.
    pub library: Option<Library>,
    /// Makes more entries where they do not continue the path, for the path that they lead to.
    pub adds: Option<Adds>,
    /// The path that they lead to, where the session knows it without an index.
    pub leads_to: Option<Path>,
    /// The entries are counted by this estimator before the result goes back. The time is the writer's, and every answer
    /// has counts in the place of estimates.
    pub count: Option<Estimator>,
}

/// An undo that is to be written.
pub struct UndoWork {
    /// The undo.
    pub undoing: Undoing,
    /// The leaf before it.
    pub leaf: Option<EntryId>,
    /// The entries of the session.
    pub reader: Reader,
    /// The index, where there is one.
    pub library: Option<Library>,
    /// Makes the ids of its entries.
    pub stamps: Stamps,
    /// Makes more entries, for the path that it leads to.
    pub adds: Option<Adds>,
}

/// A result of work on the log.
pub enum LogDone {
    /// A write, with the new path where the entries do not continue the old one.
    Wrote {
        /// The result.
        appended: Result<Appended, StoreError>,
        /// The new path.
        path: Option<Result<Path, StoreError>>,
        /// The entries of an undo, which were made after the path that it restores.
        undone: Option<Vec<Arc<Entry>>>,
        /// The entries that were added for the new path.
        added: Vec<Arc<Entry>>,
    },
    /// The path was read again.
    Woke(Result<Path, StoreError>),
    /// The entries of other programs were read.
    CaughtUp(Result<Grown, StoreError>),
    /// Entries were fetched.
    Fetched(Result<Fetched, StoreError>),
    /// An index has its rest.
    Indexed(Result<Indexed, StoreError>),
}

/// The facts about a log that its session knows while the log is elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct LogFacts {
    /// The rights.
    pub access: Access,
    /// End of the whole lines that were read or written, in bytes.
    pub end: u64,
    /// Disk operations so far.
    pub stats: Stats,
}

impl LogFacts {
    /// The facts about a log.
    #[must_use]
    pub fn of(log: &dyn Log) -> Self {
        Self { access: log.access(), end: log.end(), stats: log.stats() }
    }
}

impl LogWork {
    /// Performs the work. Blocks.
    pub fn run(self, log: &mut dyn Log, blocking: &Blocking) -> LogDone {
        match self {
            Self::Append(work) => work.run(log, blocking),
            Self::Undo(work) => work.run(log, blocking),
            Self::Wake(source, library) => {
                let path = source.open(blocking).path_from(log.end());
                LogDone::Woke(path.map(|path| with_its_past(path, library.as_ref(), &[], blocking)))
            }
            // Most changes are the session's own writes.
            Self::CatchUp(..) if !log.may_have_grown() => LogDone::CaughtUp(Ok(Grown::default())),
            Self::CatchUp(leaf, library) => {
                let grown = log.catch_up(leaf.as_ref());
                LogDone::CaughtUp(grown.map(|grown| grown_with_its_past(grown, library.as_ref(), blocking)))
            }
            Self::Fetch(fetch) => LogDone::Fetched(fetch.run(log.end(), blocking)),
            Self::Index(rest) => LogDone::Indexed(rest.run(log.end(), blocking)),
        }
    }
}

impl Fetch {
    fn run(self, end: u64, blocking: &Blocking) -> Result<Fetched, StoreError> {
        match self {
            Self::Entry(id, wanted) => {
                let entry = wanted.read(blocking).next().transpose()?.filter(|entry| entry.id == id);
                Ok(Fetched::Entry(id, entry))
            }
            Self::Mirrors(id, wanted) => {
                let last = last_mirror(&id, wanted, blocking)?;
                Ok(Fetched::Mirrors(id, last))
            }
            Self::Homes(order) => {
                let HomesOrder { calls, seen_from, leaf, mirrors, library } = *order;
                let homes = library.homes(&calls, seen_from.as_ref(), end, blocking)?;
                let mirrors = mirrors.map(|(parent, wanted)| {
                    let last = last_mirror(&parent, wanted, blocking)?;
                    Ok::<_, StoreError>((parent, last))
                });
                Ok(Fetched::Homes(Box::new(Homes { calls, leaf, mirrors: mirrors.transpose()?, homes })))
            }
            Self::Route(RouteOrder { target, leaf, library, reads_left }) => {
                let route = library.route(&target, leaf.as_ref(), reads_left, blocking)?;
                Ok(Fetched::Route(target, Box::new(route)))
            }
        }
    }
}

/// The last of the lines for other programs that stand right after an entry; the entry where there is none.
fn last_mirror(of: &EntryId, behind: Wanted, blocking: &Blocking) -> Result<EntryId, StoreError> {
    let mut last = of.clone();
    for entry in behind.read(blocking) {
        match entry? {
            entry if entry.goes_with_entry() && entry.parent.as_ref() == Some(&last) => last = entry.id.clone(),
            _ => break,
        }
    }
    Ok(last)
}

impl AppendWork {
    fn run(self, log: &mut dyn Log, blocking: &Blocking) -> LogDone {
        let Self { mut entries, leaf, continues, source, library, adds, leads_to, count } = self;
        // A walk from the end reads everything up to a parent that lies far back.
        let mut by_index = match &library {
            Some(library) if !continues => library.path_behind(&entries, blocking).transpose(),
            _ => None,
        };
        let there = by_index.as_ref().and_then(|path| path.as_ref().ok()).or(leads_to.as_ref());
        let added = adds.zip(there).map(|(adds, there)| adds(there)).unwrap_or_default();
        for added in &added {
            entries.push(added.clone());
            if let Some(Ok(path)) = &mut by_index {
                path.push(added.clone());
            }
        }
        let appended = log.append(&lines(&entries), leaf.as_ref());
        let path = match (&appended, source) {
            (Ok(Appended::Written { at, others }), Some(source)) if !continues || !others.is_empty() => {
                let by_index = by_index.filter(|_| others.is_empty());
                let path = by_index.unwrap_or_else(|| source.open(blocking).path_from(log.end()));
                let new: Vec<Placed> = others.iter().cloned().chain(placed(&entries, *at)).collect();
                Some(path.map(|path| with_its_past(path, library.as_ref(), &new, blocking)))
            }
            _ => None,
        };
        let appended = appended.map(|appended| match appended {
            Appended::Behind(grown) => Appended::Behind(grown_with_its_past(grown, library.as_ref(), blocking)),
            written @ Appended::Written { .. } => written,
        });
        if count == Some(Estimator::Tiktoken) {
            entries.iter().for_each(|entry| entry.count());
            if let Some(Ok(path)) = &path {
                path[path.first_kept()..].iter().for_each(|entry| entry.count());
            }
        }
        LogDone::Wrote { appended, path, undone: None, added }
    }
}

impl UndoWork {
    fn run(self, log: &mut dyn Log, blocking: &Blocking) -> LogDone {
        let Self { undoing, leaf, reader, library, mut stamps, adds } = self;
        match reader.path_behind(undoing.marker().clone(), log.end(), blocking) {
            Ok(path) => {
                let path = with_its_past(path, library.as_ref(), &[], blocking);
                let (mut entries, mut path) = undoing.complete(path, &mut stamps);
                for added in adds.map(|adds| adds(&path)).unwrap_or_default() {
                    path.push(added.clone());
                    entries.push(added);
                }
                let appended = match log.append(&lines(&entries), leaf.as_ref()) {
                    Ok(Appended::Behind(grown)) => {
                        Ok(Appended::Behind(grown_with_its_past(grown, library.as_ref(), blocking)))
                    }
                    appended => appended,
                };
                LogDone::Wrote { appended, path: Some(Ok(path)), undone: Some(entries), added: Vec::new() }
            }
            Err(error) => LogDone::Wrote { appended: Err(error), path: None, undone: None, added: Vec::new() },
        }
    }
}

fn lines(entries: &[Arc<Entry>]) -> Vec<String> {
    entries.iter().map(|entry| entry.line().to_owned()).collect()
}

/// Entries that were written as lines, the first of them at an offset.
pub fn placed(entries: &[Arc<Entry>], at: u64) -> impl Iterator<Item = Placed> {
    let mut offset = at;
    entries.iter().map(move |entry| {
        let spot = Spot { offset, length: entry.line().len() as u32 };
        offset = spot.end() + 1;
        // A log writes right after an entry, wherever a parent is not near.
        Placed { entry: entry.clone(), spot, gap: Gap::Unreadable }
    })
}

/// A path with the values from before its first entry, as far as an index with these new entries knows them.
fn with_its_past(mut path: Path, library: Option<&Library>, new: &[Placed], blocking: &Blocking) -> Path {
    if let Some(library) = library {
        library.complete(&mut path, new, blocking);
    }
    path
}

fn grown_with_its_past(grown: Grown, library: Option<&Library>, blocking: &Blocking) -> Grown {
    let Grown { entries, path } = grown;
    let path = path.map(|path| with_its_past(path, library, &entries, blocking));
    Grown { entries, path }
}
