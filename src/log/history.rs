//! The entries of a session: the entries of the context in memory, all others in the file.
//!
//! A file is read from its end to the beginning of the context. Another branch, a search and a list of all entries need the
//! index, which is built for the first request that needs it, or when the session is idle. Nothing here reads the file: a
//! `library` does that, elsewhere.

pub mod homes;
pub mod library;
pub mod past;
pub mod points;
pub mod route;
mod undone;

use super::{
    Placed,
    index::{Gap, Index, Place, Spot},
    indexing::{odd, push},
    repair::Repair,
    sealed::Sealed,
};
use crate::{
    conversation::{entry::Entry, path::Path, spending::Spending},
    ids::EntryId,
};
use library::{Bodies, IndexRest, Indexed, Indexing, Library, Reader, Wanted};
use std::sync::Arc;

/// The entries of a session.
pub struct History {
    path: Path,
    index: Option<Arc<Index>>,
    bodies: Bodies,
    /// Counts of the path's entries, kept while their bodies are not.
    asleep: Option<Counts>,
    /// The costs of the entries without an index, as far as they are known. The index knows all of them.
    spent: Spending,
}

/// Token counts of a path's entries, in their order.
struct Counts {
    first: Option<EntryId>,
    last: Option<EntryId>,
    tokens: Box<[Option<u32>]>,
}

impl History {
    /// The history of a file whose `path` was read back to the beginning of its context.
    #[must_use]
    pub fn of_file(source: Sealed, path: Path, index: Option<Arc<Index>>) -> Self {
        Self { path, index, bodies: Bodies::File(source), asleep: None, spent: Spending::default() }
    }

    /// The same with the costs of the file, as far as they are known without an index.
    #[must_use]
    pub fn with_costs(self, spent: Spending) -> Self {
        Self { spent, ..self }
    }

    /// The history of a file of an older version, which is kept in memory until it is replaced; and the faults of its tree.
    #[must_use]
    pub fn of_old_file(entries: Vec<Arc<Entry>>) -> (Self, Vec<Repair>) {
        let mut history = Self::in_memory(Vec::new());
        let repairs = entries.into_iter().filter_map(|entry| history.add(entry)).collect();
        history.complete_in_memory();
        (history, repairs)
    }

    /// The history of a session that is kept in memory alone.
    #[must_use]
    pub fn in_memory(entries: Vec<Arc<Entry>>) -> Self {
        let bodies = Bodies::Memory(Arc::default());
        let (path, index) = (Path::default(), Some(Arc::default()));
        let mut history = Self { path, index, bodies, asleep: None, spent: Spending::default() };
        entries.into_iter().for_each(|entry| drop(history.add(entry)));
        history.complete_in_memory();
        history
    }

    /// The history of a new file that has these entries, the first of them at an offset in bytes.
    #[must_use]
    pub fn of_new_file(source: Sealed, mut offset: u64, entries: Vec<Arc<Entry>>) -> Self {
        let mut index = Index::default();
        for entry in &entries {
            let spot = Spot { offset, length: entry.line().len() as u32 };
            offset += u64::from(spot.length) + 1;
            push(&mut index, &Placed { entry: entry.clone(), spot, gap: Gap::Blank });
        }
        Self::of_file(source, Path::of(&entries), Some(Arc::new(index)))
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

    /// The costs of all entries. Without an index they are those that the end of the file tells.
    #[must_use]
    pub fn spending(&self) -> &Spending {
        self.index.as_ref().map_or(&self.spent, |index| index.spending())
    }

    /// The index, once there is one.
    #[must_use]
    pub fn index(&self) -> Option<&Index> {
        self.index.as_deref()
    }

    /// All of it, once there is an index.
    #[must_use]
    pub fn library(&self) -> Option<Library> {
        Some(Library::new(self.index.clone()?, self.bodies.clone()))
    }

    /// The file.
    #[must_use]
    pub fn source(&self) -> Option<&Sealed> {
        match &self.bodies {
            Bodies::File(source) => Some(source),
            Bodies::Memory(_) => None,
        }
    }

    /// Reads paths of the session away from it.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::new(self.bodies.clone())
    }

    /// Adds an entry that was appended. One that does not go on where the path ends needs the new path along.
    pub fn push(&mut self, placed: Placed) {
        if self.source().is_none() {
            self.add(placed.entry);
            return self.complete_in_memory();
        }
        match &mut self.index {
            Some(index) => drop(push(Arc::make_mut(index), &placed)),
            None => placed.entry.cost().iter().for_each(|cost| self.spent.add(cost)),
        }
        if self.asleep.is_none() && self.path.continues_with(&placed.entry) {
            self.path.push(placed.entry);
        }
    }

    /// Adds an entry in memory.
    fn add(&mut self, entry: Arc<Entry>) -> Option<Repair> {
        let (Bodies::Memory(entries), Some(index)) = (&mut self.bodies, &mut self.index) else { return None };
        let index = Arc::make_mut(index);
        let spot = Spot { offset: entries.len() as u64, length: 0 };
        let oddity = push(index, &Placed { entry: entry.clone(), spot, gap: Gap::Unreadable });
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

    /// Completes the path of a session in memory with the values from before it. The path of a file comes completed.
    pub fn complete_in_memory(&mut self) {
        if let (Bodies::Memory(entries), Some(index)) = (&self.bodies, &self.index) {
            past::complete(index, &mut self.path, |place| Some(entries[index.spot(place).offset as usize].clone()));
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
        Some(Indexing::new(source, end, self.path.clone()))
    }

    /// The work that an index still needs before the session of this history takes it; none where the session has no file.
    #[must_use]
    pub fn rest_of(&self, indexed: Indexed) -> Option<IndexRest> {
        Some(IndexRest::new(indexed, self.source()?.clone(), self.path.clone()))
    }

    /// Takes an index that covers the file and the path.
    pub fn set_index(&mut self, indexed: Indexed) {
        let (index, path) = indexed.into_parts();
        self.index = Some(Arc::new(index));
        if let Some(path) = path {
            self.path.learn_its_past_from(&path);
        }
    }

    /// The entries at these places, once there is an index.
    #[must_use]
    pub fn wanted(&self, places: impl IntoIterator<Item = Place>) -> Wanted {
        match &self.index {
            Some(index) => Wanted::of(index, &self.bodies, places),
            None => Wanted::of(&Index::default(), &self.bodies, []),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{conversation::context, prompts::Prompts};
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
        let entry = entries(&[keeps]).remove(0);
        history.push(Placed { entry, spot: Spot { offset: 0, length: 0 }, gap: Gap::Blank });
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
