//! The entries of a session: the entries of the context in memory, all others in the file.
//!
//! A file is read from its end to the beginning of the context. Another branch, a search and a list of all entries need the
//! index, which is built for the first request that needs it, or when the session is idle.

use super::{
    error::StoreError,
    index::{Index, Place, Spot},
    indexing::{Made, odd, push},
    repair::Repair,
    source::Source,
};
use crate::{
    conversation::{
        context,
        entry::{CarriedPin, Entry, Preserved},
        message::outline::Role,
        path::{self, Path},
    },
    ids::EntryId,
};
use std::sync::Arc;

/// Place of the entries that are not part of the path in memory.
#[derive(Debug, Clone)]
enum Bodies {
    /// In the file.
    File(Source),
    /// In memory: the session has no file, or a file of an older version.
    Memory(Arc<Vec<Arc<Entry>>>),
}

/// The entries of a session.
pub struct History {
    path: Path,
    index: Option<Arc<Index>>,
    bodies: Bodies,
    /// Counts of the path's entries, kept while their bodies are not.
    asleep: Option<Counts>,
}

/// All entries of a session, for a reader on another thread.
#[derive(Clone)]
pub struct Library {
    index: Arc<Index>,
    bodies: Bodies,
}

/// The entries of a session, for a reader without an index.
#[derive(Clone)]
pub struct Reader(Bodies);

/// Token counts of a path's entries, in their order.
struct Counts {
    first: Option<EntryId>,
    last: Option<EntryId>,
    tokens: Box<[Option<u32>]>,
}

/// An index that is to be built.
pub struct Indexing {
    source: Source,
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

/// Entries of an answer, some of which have to be read.
pub struct Wanted {
    source: Option<Source>,
    entries: Vec<Where>,
}

enum Where {
    Here(Arc<Entry>),
    There(Stand),
}

impl History {
    /// The history of a file that was read back to the beginning of its context.
    #[must_use]
    pub fn of_file(source: Source, path: Path, index: Option<Index>) -> Self {
        let mut history = Self { path, index: index.map(Arc::new), bodies: Bodies::File(source), asleep: None };
        if let Some(library) = history.library() {
            library.look_into_the_past(&mut history.path);
        }
        history
    }

    /// The history of a file of an older version, which is kept in memory until it is replaced; and the faults of its tree.
    #[must_use]
    pub fn of_old_file(entries: Vec<Arc<Entry>>) -> (Self, Vec<Repair>) {
        let mut history = Self::in_memory(Vec::new());
        let repairs = entries.into_iter().filter_map(|entry| history.add(entry)).collect();
        history.complete();
        (history, repairs)
    }

    /// The history of a session that is kept in memory alone.
    #[must_use]
    pub fn in_memory(entries: Vec<Arc<Entry>>) -> Self {
        let bodies = Bodies::Memory(Arc::default());
        let mut history = Self { path: Path::default(), index: Some(Arc::default()), bodies, asleep: None };
        entries.into_iter().for_each(|entry| drop(history.add(entry)));
        history.complete();
        history
    }

    /// The history of a new file that has these entries.
    #[must_use]
    pub fn of_new_file(source: Source, entries: Vec<Arc<Entry>>) -> Self {
        let mut index = Index::default();
        let mut offset = source.floor();
        for entry in &entries {
            let spot = Spot { offset, length: entry.line().len() as u32 };
            offset += u64::from(spot.length) + 1;
            push(&mut index, entry, spot, Some(&source));
        }
        Self { path: Path::of(&entries), index: Some(Arc::new(index)), bodies: Bodies::File(source), asleep: None }
    }

    /// The path to the leaf.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many entries there are, once that is known.
    #[must_use]
    pub fn entry_count(&self) -> Option<usize> {
        self.index.as_ref().map(|index| index.len())
    }

    /// The index, once there is one.
    #[must_use]
    pub fn index(&self) -> Option<&Index> {
        self.index.as_deref()
    }

    /// All of it, once there is an index.
    #[must_use]
    pub fn library(&self) -> Option<Library> {
        Some(Library { index: self.index.clone()?, bodies: self.bodies.clone() })
    }

    /// The file.
    #[must_use]
    pub fn source(&self) -> Option<&Source> {
        match &self.bodies {
            Bodies::File(source) => Some(source),
            Bodies::Memory(_) => None,
        }
    }

    /// Reads paths of the session away from it.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader(self.bodies.clone())
    }

    /// Adds an entry that was appended. One that does not go on where the path ends needs the new path along.
    pub fn push(&mut self, entry: Arc<Entry>, spot: Option<Spot>) {
        match spot {
            Some(spot) if self.source().is_some() => {
                if let (Some(index), Bodies::File(source)) = (&mut self.index, &self.bodies) {
                    push(Arc::make_mut(index), &entry, spot, Some(source));
                }
                if self.asleep.is_none() && self.path.continues_with(&entry) {
                    self.path.push(entry);
                }
            }
            _ => {
                self.add(entry);
                self.complete();
            }
        }
    }

    /// Adds an entry in memory.
    fn add(&mut self, entry: Arc<Entry>) -> Option<Repair> {
        let (Bodies::Memory(entries), Some(index)) = (&mut self.bodies, &mut self.index) else { return None };
        let index = Arc::make_mut(index);
        let spot = Spot { offset: entries.len() as u64, length: 0 };
        let oddity = push(index, &entry, spot, None);
        let mended = index.leaf().and_then(|place| index.mended_parent(place)).cloned();
        let entry = match mended {
            Some(parent) => entry.behind(parent),
            None => entry,
        };
        let id = entry.id.clone();
        Arc::make_mut(entries).push(entry.clone());
        // A compaction may keep entries from before a path that is cut.
        let lacks_kept = self.path.is_cut() && entry.compaction().is_some();
        if self.path.continues_with(&entry) && !lacks_kept {
            self.path.push(entry);
        } else {
            self.path = Path::of(entries);
        }
        oddity.map(|oddity| odd(&oddity, id.as_str(), None))
    }

    /// Takes a path that was gathered anew.
    pub fn set_path(&mut self, path: Path) {
        self.path = path;
    }

    /// Looks up what the path's context needs from before it, once everything that was appended is in the index.
    pub fn complete(&mut self) {
        if self.path.lacks_its_past()
            && let Some(library) = self.library()
        {
            library.look_into_the_past(&mut self.path);
        }
    }

    /// Lets go of what stands before the first kept entry, where it can be read again.
    pub fn trim(&mut self) {
        if self.source().is_some() {
            self.path.trim();
        }
    }

    /// How the index is made, where there is none yet.
    #[must_use]
    pub fn indexing(&self, end: u64) -> Option<Indexing> {
        let source = self.source().filter(|_| self.index.is_none())?.clone();
        Some(Indexing { source, end, path: self.path.clone() })
    }

    /// Takes an index that was made, and what came behind it meanwhile.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn set_index(&mut self, indexed: Indexed, durable: u64) -> Result<(), StoreError> {
        let Indexed { mut index, end, path, .. } = indexed;
        if let Some(source) = self.source()
            && end < durable
        {
            source.index_on(&mut index, end, durable)?;
        }
        self.index = Some(Arc::new(index));
        if let Some(path) = path {
            self.path.learn_its_past_from(&path);
        }
        // A path that changed meanwhile, which hardly ever happens, is looked at here.
        if let Some(library) = self.library() {
            library.look_into_the_past(&mut self.path);
        }
        Ok(())
    }

    /// The entries at these places.
    #[must_use]
    pub fn wanted(&self, places: impl IntoIterator<Item = Place>) -> Wanted {
        let stands = places.into_iter().filter_map(|place| Some(Stand::of(self.index.as_ref()?, place)));
        let entries = stands.map(|stand| match &self.bodies {
            Bodies::File(_) => Where::There(stand),
            Bodies::Memory(entries) => Where::Here(entries[stand.spot.offset as usize].clone()),
        });
        Wanted { entries: entries.collect(), source: self.source().cloned() }
    }

    /// Lets go of the bodies, where they can be read again.
    pub fn sleep(&mut self) {
        if self.source().is_some() && self.asleep.is_none() {
            let tokens = self
                .path
                .iter()
                .map(|entry| entry.tokens_known(crate::conversation::tokens::Estimator::Tiktoken))
                .collect();
            let id = |entry: Option<&Arc<Entry>>| entry.map(|entry| entry.id.clone());
            self.asleep = Some(Counts { first: id(self.path.first()), last: id(self.path.last()), tokens });
            self.path = Path::default();
        }
    }

    /// The path is not known any more, and is read again when it is needed.
    pub fn forget_path(&mut self) {
        self.asleep = Some(Counts { first: None, last: None, tokens: Box::default() });
        self.path = Path::default();
    }

    /// Reads one entry that is not on the path.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn look_up(&self, id: &EntryId) -> Result<Option<Arc<Entry>>, StoreError> {
        let Some(library) = self.library() else { return Ok(None) };
        library.index.find(id).map(|place| library.body(place)).transpose()
    }

    /// Whether an entry is on the path to the leaf, also before what is in memory of it. Needs the index for that.
    #[must_use]
    pub fn is_on_path(&self, id: &EntryId) -> bool {
        let in_file = || {
            let index = self.index.as_ref()?;
            let place = index.find(id)?;
            let first = index.find(&self.path.first()?.id)?;
            Some(std::iter::successors(Some(first), |place| index.parent(*place)).any(|it| it == place))
        };
        self.path.position(id).is_some() || in_file() == Some(true)
    }

    /// Whether its bodies were let go of.
    #[must_use]
    pub fn is_asleep(&self) -> bool {
        self.asleep.is_some()
    }

    /// Takes the path again. It may have grown, or be another one.
    pub fn wake(&mut self, path: Path) {
        let id = |place: usize| path.get(place).map(|entry| &entry.id);
        if let Some(counts) = self.asleep.take()
            && counts.first.as_ref() == id(0)
            && counts.last.as_ref() == counts.tokens.len().checked_sub(1).and_then(id)
        {
            let known = path.iter().zip(counts.tokens).filter_map(|(entry, tokens)| Some((entry, tokens?)));
            known.for_each(|(entry, tokens)| entry.remember_tokens(tokens));
        }
        self.set_path(path);
    }
}

impl Indexing {
    /// Makes it, unless it is stopped; away from the session, because it may take a second.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn run(self, stopped: &dyn Fn() -> bool) -> Result<Option<Indexed>, StoreError> {
        let Self { source, end, mut path } = self;
        let Some(Made { index, repairs, .. }) = source.index(end, stopped)? else { return Ok(None) };
        let mut indexed = Indexed { index, end, path: None, repairs };
        if path.lacks_its_past() {
            let library = Library { index: Arc::new(indexed.index), bodies: Bodies::File(source) };
            library.look_into_the_past(&mut path);
            indexed.index = Arc::into_inner(library.index).expect("nobody else has it");
            indexed.path = Some(path);
        }
        Ok(Some(indexed))
    }
}

impl Reader {
    /// The path to an entry that is not appended yet. `end` is the length of the file.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn path_behind(&self, entry: Arc<Entry>, end: u64) -> Result<Path, StoreError> {
        match &self.0 {
            Bodies::File(source) => source.path_behind(Some(entry), end),
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
    /// The index.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    fn body(&self, place: Place) -> Result<Arc<Entry>, StoreError> {
        match &self.bodies {
            Bodies::File(source) => Stand::of(&self.index, place).read(source),
            Bodies::Memory(entries) => Ok(entries[self.index.spot(place).offset as usize].clone()),
        }
    }

    /// The path to an entry, as far back as its context needs, and what that needs from before; none where there is no
    /// such entry.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn path_to(&self, id: &EntryId) -> Result<Option<Path>, StoreError> {
        let Some(leaf) = self.index.find(id) else { return Ok(None) };
        let mut next = Some(leaf);
        let mut path = path::gather(|_| {
            let here = next;
            next = here.and_then(|place| self.index.parent(place));
            here.map(|place| self.body(place)).transpose()
        })?;
        self.look_into_the_past(&mut path);
        Ok(Some(path))
    }

    /// Finds what a context needs from before a path, where the compaction in force is another program's. What of it
    /// cannot be read is left out.
    pub fn look_into_the_past(&self, path: &mut Path) {
        if !path.lacks_its_past() {
            return;
        }
        let Some(first) = path.first().and_then(|entry| self.index.find(&entry.id)) else { return };
        let readable = |place: Place| {
            let entry = self.body(place);
            entry.inspect_err(|error| tracing::warn!(%error, "an entry before the path is left out")).ok()
        };
        let mut told = Path::default();
        self.index.landmarks_before(first).into_iter().filter_map(readable).for_each(|entry| told.push(entry));
        let mut past = Preserved::of(&told);
        let mut earlier = std::iter::successors(self.index.parent(first), |place| self.index.parent(*place));
        let newest = earlier.by_ref().filter_map(readable).find(|entry| entry.is_from(Role::User));
        past.newest_user_message = newest.map(|entry| context::carried(&entry));
        // A pin on the path may be of an entry that the other program's compaction left behind.
        let left_behind = path.pins().iter().filter(|pin| pin.text.is_none() && path.position(&pin.entry).is_none());
        for pin in left_behind {
            if past.pins.iter().all(|known| known.entry_id != pin.entry) {
                past.pins.push(CarriedPin { entry_id: pin.entry.clone(), text: None });
            }
        }
        past.pins.sort_by_key(|pin| self.index.find(&pin.entry_id));
        // Their texts stand somewhere before the path.
        for pin in past.pins.iter_mut().filter(|pin| pin.text.is_none()) {
            pin.text = self.index.find(&pin.entry_id).and_then(readable).map(|entry| entry.pinned_text());
        }
        path.learn_its_past(past);
    }
}

impl Wanted {
    /// Reads them one by one.
    pub fn read(self) -> impl Iterator<Item = Result<Arc<Entry>, StoreError>> {
        let Self { source, entries } = self;
        entries.into_iter().map(move |entry| match (entry, &source) {
            (Where::Here(entry), _) => Ok(entry),
            (Where::There(stand), Some(source)) => stand.read(source),
            (Where::There(_), None) => unreachable!("only entries in a file are not here"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompts::Prompts;
    use serde_json::{Value, json};

    fn user(id: &str, parent: &str) -> Value {
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "t", "message": {"role": "user", "content": id}})
    }

    fn compaction(id: &str, parent: &str, kept: &str) -> Value {
        json!({"type": "compaction", "id": id, "parentId": parent, "timestamp": "t", "summary": "s", "firstKeptEntryId": kept})
    }

    /// A branch reads the path anew, from the first entry that the compaction in force keeps.
    #[test]
    fn a_history_in_memory_has_what_a_compaction_keeps_from_before_its_path() {
        let told =
            [user("a", ""), user("b", "a"), user("c", "b"), compaction("d", "c", "c"), user("e", "d"), user("f", "d")];
        let entries = |lines: &[Value]| -> Vec<_> {
            lines.iter().map(|line| Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))).collect()
        };
        let context = |history: &History| -> Vec<String> {
            let context = context::build(history.path(), &Prompts::default());
            context.messages().iter().map(|message| message.json().into_owned()).collect()
        };
        let mut history = History::in_memory(entries(&told));
        assert!(history.path().is_cut() && context(&history)[0].contains("s\\n"));
        let keeps = compaction("g", "f", "b");
        let whole = [told.as_slice(), std::slice::from_ref(&keeps)].concat();
        history.push(entries(&[keeps]).remove(0), None);
        for history in [&history, &History::in_memory(entries(&whole)), &History::of_old_file(entries(&whole)).0] {
            let messages = context(history);
            // The summary, then b, c and f.
            assert_eq!(messages.len(), 4, "{messages:?}");
        }
        // A compaction that keeps nothing leaves the newest message of the user behind.
        let whole =
            [whole.as_slice(), &[compaction("h", "g", "h"), user("i", "c"), compaction("j", "h", "j")]].concat();
        let (history, _) = History::of_old_file(entries(&whole));
        let messages = context(&history);
        assert!(messages.len() == 1 && messages[0].contains("<user-message>\\nf\\n"), "{messages:?}");
    }
}
