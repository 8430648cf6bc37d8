//! A session file as a tree: its shape in memory, and the content of each entry in the file until it is drawn.

use super::forest::{Forest, Node, Weight};
use crate::{
    conversation::{
        entry::{Body, Entry, VERSION},
        message::outline::Role,
    },
    ids::EntryId,
    log::{
        error::StoreError,
        header::{self, Found},
        history::library::{Bodies, Library},
        index::{Index, Labels, Place},
        repair::Repair,
        sealed::{Blocking, Sealed},
        source::Source,
    },
};
use std::{collections::HashSet, path::Path, sync::Arc};

/// A session file and the index of its entries. It is read without a lock.
pub(in crate::cli) struct SessionFile {
    /// The header.
    pub found: Found,
    /// Faults of the file.
    pub repairs: Vec<Repair>,
    library: Library,
    blocking: Blocking,
}

/// The entries of a session that a person sees: all but the lines that only programs read.
pub(super) struct Tree {
    /// Their shape.
    pub forest: Forest,
    /// By the number of an entry.
    entries: Vec<(Place, Box<str>)>,
    /// Compactions and resets that do not hold any more.
    undone: HashSet<u32>,
}

/// The bytes at the end of a file in which the compaction in force is looked for. A context of a million tokens has about four
/// million.
const END: u64 = 8 << 20;

/// The compaction in force, where the end of the file has it.
///
/// # Errors
/// When the file cannot be read, or is no session.
pub(in crate::cli) fn compaction_at_the_end(path: &Path) -> Result<Option<Arc<Entry>>, StoreError> {
    let found = header::peek(path)?;
    if found.header.version < VERSION {
        return Ok(None);
    }
    let source = Source::open(path.to_owned(), &found)?;
    let (end, _) = source.end(source.length().map_err(source.failed())?)?;
    let path = source.path_within(end, END)?.path;
    Ok(path.compaction().map(|place| path[place].clone()))
}

impl SessionFile {
    /// Reads the header of a file and the index of its entries.
    ///
    /// # Errors
    /// When the file cannot be read, or is no session.
    pub(in crate::cli) fn open(path: &Path) -> Result<Self, StoreError> {
        let found = header::peek(path)?;
        let source = Source::open(path.to_owned(), &found)?;
        let blocking = Blocking::is_allowed_here();
        if found.header.version < VERSION {
            // Entries of these versions have no ids in the file. They are read whole, as by a daemon.
            let loaded = source.load(&found, 0, &blocking)?;
            let library = loaded.history.library();
            let (index, bodies) = library
                .map_or_else(|| (Arc::default(), Bodies::Memory(Arc::default())), |library| library.into_parts());
            let library = Library::new(index, bodies);
            return Ok(Self { found, repairs: loaded.repairs, library, blocking });
        }
        let (end, tail) = source.end(source.length().map_err(source.failed())?)?;
        let made = source.index(end, &|| false)?;
        let (index, mut repairs) = made.map(|made| (made.index, made.repairs)).unwrap_or_default();
        repairs.extend(tail.repair(None));
        let bodies = Bodies::File(Sealed::from(source));
        Ok(Self { found, repairs, library: Library::new(Arc::new(index), bodies), blocking })
    }

    /// The title of the session.
    pub(in crate::cli) fn title(&self) -> Option<&str> {
        self.index().title().or(self.found.title.as_deref()).filter(|title| !title.is_empty())
    }

    fn index(&self) -> &Index {
        self.library.index()
    }

    /// The places of the active path, in the order of the file.
    pub(in crate::cli) fn active(&self) -> Vec<Place> {
        self.index().leaf().map(|leaf| self.index().path_to(leaf)).unwrap_or_default()
    }

    /// The places of compactions and resets that do not hold any more.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(in crate::cli) fn undone(&self, active: &[Place]) -> Result<HashSet<Place>, StoreError> {
        self.library.undone(active, &self.blocking)
    }

    /// The labels of the entries.
    pub(super) fn labels(&self) -> Labels {
        self.index().labels()
    }

    /// Gives every entry in file order.
    ///
    /// # Errors
    /// When the file cannot be read, or by `each`.
    pub(in crate::cli) fn each_entry<E: From<StoreError>>(
        &self,
        mut each: impl FnMut(Place, Arc<Entry>) -> Result<(), E>,
    ) -> Result<(), E> {
        for place in self.index().after(None) {
            each(place, self.library.body(place, &self.blocking)?)?;
        }
        Ok(())
    }

    /// The entry at a place.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(in crate::cli) fn entry(&self, place: Place) -> Result<Option<Arc<Entry>>, StoreError> {
        self.library.body(place, &self.blocking).map(Some)
    }

    /// The place of the entry that an entry follows.
    pub(in crate::cli) fn parent(&self, place: Place) -> Option<Place> {
        self.index().parent(place)
    }

    /// The place of the entry with an id.
    pub(in crate::cli) fn place(&self, id: &EntryId) -> Option<Place> {
        self.index().find(id)
    }

    /// The entry with this id.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(in crate::cli) fn find(&self, id: &str) -> Result<Option<Arc<Entry>>, StoreError> {
        self.index().find(&id.into()).map(|place| self.entry(place)).transpose().map(Option::flatten)
    }

    /// The leaf as clients see it: the last entry of the active path that is no marker.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn leaf(&self) -> Result<Option<EntryId>, StoreError> {
        let mut next = self.index().leaf();
        while let Some(place) = next {
            match self.entry(place)? {
                Some(entry) if !entry.is_marker() => return Ok(Some(entry.id.clone())),
                _ => next = self.index().parent(place),
            }
        }
        Ok(None)
    }

    /// The lines of labels that stand beside a conversation and that nothing follows: they are no branches of it. A navigation
    /// writes its label after the leaf that it leaves, and the conversation may go on from there.
    fn lone_labels(&self) -> Result<HashSet<usize>, StoreError> {
        let mut kinds = Vec::new();
        self.each_entry(|place, entry| {
            kinds.push((place, entry.is_marker(), matches!(entry.body, Body::Label { .. })));
            Ok::<(), StoreError>(())
        })?;
        let leaf = self.index().leaf();
        let mut followed = HashSet::new();
        for (place, is_marker, is_label) in kinds.iter().rev() {
            let is_said = leaf == Some(*place) || !is_marker && !is_label;
            if is_said || followed.contains(&place.number()) {
                followed.extend(self.index().parent(*place).map(Place::number));
            }
        }
        let says_nothing = |place: &Place| {
            let (_, is_marker, is_label) = kinds[place.number()];
            (is_marker || is_label) && !followed.contains(&place.number()) && leaf != Some(*place)
        };
        let is_lone = |place: &Place| {
            let mut above = std::iter::successors(self.index().parent(*place), |place| self.index().parent(*place));
            above.find(|place| !says_nothing(place)).is_some_and(|before| followed.contains(&before.number()))
        };
        let labels = kinds.iter().filter(|(_, _, is_label)| *is_label).map(|(place, ..)| *place);
        Ok(labels.filter(|place| says_nothing(place) && is_lone(place)).map(Place::number).collect())
    }

    /// The tree as a person sees it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn tree(&self) -> Result<Tree, StoreError> {
        let labels = self.labels();
        let lone = self.lone_labels()?;
        let (mut nodes, mut entries) = (Vec::new(), Vec::new());
        // The number of each entry, or of the nearest one before a marker.
        let mut numbers: Vec<Option<u32>> = Vec::new();
        self.each_entry(|place, entry| {
            let parent = self.index().parent(place).and_then(|parent| numbers[parent.number()]);
            if entry.is_marker() || lone.contains(&place.number()) {
                numbers.push(parent);
                return Ok::<(), StoreError>(());
            }
            numbers.push(u32::try_from(nodes.len()).ok());
            nodes.push(Node { parent, weight: weight(&entry, &labels) });
            entries.push((place, entry.id.as_str().into()));
            Ok(())
        })?;
        let leaf = self.index().leaf().and_then(|place| numbers[place.number()]);
        let forest = Forest::new(nodes, leaf);
        let undone = self.undone(&self.active())?;
        let undone = undone.into_iter().filter_map(|place| numbers[place.number()]);
        Ok(Tree { forest, entries, undone: undone.collect() })
    }
}

impl Tree {
    /// The id of an entry.
    pub(super) fn id(&self, number: u32) -> &str {
        &self.entries[number as usize].1
    }

    /// An entry.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn entry(&self, number: u32, file: &SessionFile) -> Result<Option<Arc<Entry>>, StoreError> {
        file.entry(self.entries[number as usize].0)
    }

    /// Whether an entry is a compaction or a reset that was undone.
    pub(super) fn is_undone(&self, number: u32) -> bool {
        self.undone.contains(&number)
    }
}

fn weight(entry: &Entry, labels: &Labels) -> Weight {
    match &entry.body {
        Body::Compaction(_) | Body::BranchSummary(_) | Body::ResetBoundary(_) => Weight::Landmark,
        _ if labels.of(&entry.id).is_some() => Weight::Landmark,
        _ if entry.is_from(Role::User) => Weight::User,
        _ => Weight::Plain,
    }
}
