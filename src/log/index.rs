//! Where everything of a session stands: for each entry its place in the file and its parent, about 50 bytes of memory.
//!
//! A session is opened by its tail alone; the index is what the rest of it is found by. Ids are kept as keyed hashes of
//! 64 bits: two of a million entries share one with a chance of one in thirty million, and whoever looks an entry up
//! compares the id that stands in the file.

use crate::{
    conversation::{
        entry::{Broken, Head, PLACEHOLDER, text},
        spending::{Cost, Spending},
    },
    ids::EntryId,
};
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState},
    ops::Range,
    sync::Arc,
};

/// Where a line stands in a file, without its newline. For a session in memory: the number of the entry, and nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    /// From the beginning of the file, in bytes.
    pub offset: u64,
    /// In bytes.
    pub length: u32,
}

/// The bytes between an entry and the entry before it in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// Nothing but blank lines.
    Blank,
    /// Something unreadable, which may have been an entry.
    Unreadable,
}

/// How far back the parent of an entry may be that does not stand right after the entry before it, in entries. Something
/// unreadable stands between them, which may have been its parent; to know that its id is not further back, all of the
/// file before would have to be read.
pub const NEAR: usize = 200;

impl Spot {
    /// Whether an entry at `offset` stands right after this one: on the next line, or on the same.
    #[must_use]
    pub fn is_right_before(self, offset: u64) -> bool {
        const CARRIAGE_RETURN_AND_NEWLINE: u64 = 2;
        offset <= self.end() + CARRIAGE_RETURN_AND_NEWLINE
    }

    /// The offset after the line.
    #[must_use]
    pub fn end(self) -> u64 {
        self.offset + u64::from(self.length)
    }
}

/// The number of an entry, in the order of the file, from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(u32);

impl Place {
    /// The number, to look something up in a list of all entries.
    #[must_use]
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

/// A fault of a line, which the index reads differently from its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Oddity {
    /// The parent is nowhere before the entry; it follows the entry before it, and the first one is a root.
    MissingParent,
    /// An earlier entry has this id too.
    SameId,
}

/// The index.
#[derive(Clone, Default)]
pub struct Index {
    nodes: Vec<Node>,
    /// The first places of runs, in their order. In a run each entry follows the one on the line before.
    runs: Vec<Place>,
    /// The parents of entries whose line names another one, or none.
    mended: HashMap<u32, Option<EntryId>>,
    /// The entry that was added last.
    last: Option<Last>,
    /// The latest entry of each id.
    newest: HashMap<u64, u32, BuildHasherDefault<AsItIs>>,
    /// Names of entries, by the hashes of their ids.
    labels: Arc<HashMap<u64, Label>>,
    title: Option<String>,
    /// The entry that says the title.
    titled_by: Option<Place>,
    /// Entries in the place of which something broken stands.
    broken: HashSet<u32>,
    /// Entries that say something about the session beside its messages: compactions, markers, models, names.
    landmarks: Vec<Place>,
    /// Markers that take a compaction or a reset back.
    undo_markers: Vec<Place>,
    /// The costs of all its entries.
    spending: Spending,
    keys: RandomState,
}

/// The last word on the name of an entry.
#[derive(Debug, Clone)]
struct Label {
    target: EntryId,
    /// The name; `None` where it was taken away.
    name: Option<String>,
    /// The entry that says so.
    by: Place,
}

/// Names that lines beside a path give to the session and to entries of the path.
#[derive(Debug, Default)]
pub struct NamedBeside {
    /// The title of the session; empty where a line takes it away.
    pub title: Option<String>,
    /// Entries with their names, in the order of the lines; no name where a line takes it away.
    pub labels: Vec<(EntryId, Option<String>)>,
}

/// The entry that was added last.
#[derive(Clone)]
struct Last {
    id: String,
    spot: Spot,
}

#[derive(Clone)]
struct Node {
    offset: u64,
    length: u32,
    /// Always an earlier place, so that no walk to the root can go in circles.
    parent: u32,
}

/// No parent.
const ROOT: u32 = u32::MAX;

/// The ids of a line.
pub struct Ids<'a> {
    id: Cow<'a, str>,
    /// The parent; `None` for a root, and an empty id, which no entry has, where the line says nothing of a parent.
    parent: Option<Cow<'a, str>>,
}

impl<'a> Ids<'a> {
    /// The ids of a whole entry; `None` where it has no id.
    fn of(head: &Head<'a>) -> Option<Self> {
        Some(Self { id: head.id()?, parent: head.parent() })
    }
}

impl<'a> From<&'a Broken> for Ids<'a> {
    fn from(broken: &'a Broken) -> Self {
        let parent = match &broken.parent {
            None => Some(""),
            Some(parent) => parent.as_ref().map(EntryId::as_str).filter(|parent| !parent.is_empty()),
        };
        Self { id: broken.id.as_str().into(), parent: parent.map(Cow::Borrowed) }
    }
}

impl Index {
    /// Adds the next entry of the file. Its parent is the nearest earlier entry with that id; without one it is the entry
    /// before, and the first entry is a root. Nothing where the line has no id. `is_blank` tells whether the bytes between
    /// two entries are blank lines.
    pub fn push(&mut self, head: &Head<'_>, spot: Spot, is_blank: impl FnOnce(Range<u64>) -> bool) -> Option<Oddity> {
        let oddity = self.push_ids(&Ids::of(head)?, spot, is_blank);
        if let Some(place) = self.leaf() {
            self.note(head, place);
        }
        oddity
    }

    /// The same for an entry of which nothing but the ids can be read.
    pub fn push_broken(&mut self, ids: &Ids<'_>, spot: Spot, is_blank: impl FnOnce(Range<u64>) -> bool) {
        self.push_ids(ids, spot, is_blank);
        self.broken.extend(self.leaf().map(|place| place.0));
    }

    fn push_ids(&mut self, ids: &Ids<'_>, spot: Spot, is_blank: impl FnOnce(Range<u64>) -> bool) -> Option<Oddity> {
        let id = self.key(&ids.id);
        let place = u32::try_from(self.nodes.len()).ok().filter(|place| *place != ROOT)?;
        let (parent, missing) = match &ids.parent {
            None => (ROOT, false),
            Some(named) => match self.parent_of(named, place, spot, is_blank) {
                Some(parent) => (parent, false),
                None => {
                    self.mended.insert(place, self.last.as_ref().map(|last| last.id.as_str().into()));
                    (place.checked_sub(1).unwrap_or(ROOT), place > 0 || !named.is_empty())
                }
            },
        };
        if parent == ROOT || parent + 1 != place {
            self.runs.push(Place(place));
        }
        self.nodes.push(Node { offset: spot.offset, length: spot.length, parent });
        let same_id = self.newest.insert(id, place).is_some();
        match &mut self.last {
            None => self.last = Some(Last { id: ids.id.clone().into_owned(), spot }),
            Some(last) => {
                last.id.clear();
                last.id.push_str(&ids.id);
                last.spot = spot;
            }
        }
        match (missing, same_id) {
            (true, _) => Some(Oddity::MissingParent),
            (false, true) => Some(Oddity::SameId),
            (false, false) => None,
        }
    }

    /// The place of the parent that an entry at `place` names.
    fn parent_of(&self, named: &str, place: u32, spot: Spot, is_blank: impl FnOnce(Range<u64>) -> bool) -> Option<u32> {
        let found = *self.newest.get(&self.key(named)).filter(|_| !named.is_empty())?;
        let is_near = (place - found) as usize <= NEAR;
        let behind_entry =
            |last: &Last| last.spot.is_right_before(spot.offset) || is_blank(last.spot.end()..spot.offset);
        (is_near || self.last.as_ref().is_some_and(behind_entry)).then_some(found)
    }

    /// The parent of an entry, where it is another than its line names.
    #[must_use]
    pub fn mended_parent(&self, place: Place) -> Option<&Option<EntryId>> {
        self.mended.get(&place.0)
    }

    /// Whether the line of an entry can stand as it is in another file: it is whole, and names the parent that the entry
    /// has.
    #[must_use]
    pub fn stands_as_it_is(&self, place: Place) -> bool {
        !self.mended.contains_key(&place.0) && !self.broken.contains(&place.0)
    }

    /// The names that lines beside a path give to the session and to its entries. `path`: places from the root on.
    #[must_use]
    pub fn named_beside(&self, path: &[Place]) -> NamedBeside {
        let is_on_path = |place: &Place| path.binary_search(place).is_ok();
        let titled_beside = self.titled_by.is_some_and(|by| !is_on_path(&by));
        let mut labels: Vec<&Label> = self.labels.values().filter(|label| !is_on_path(&label.by)).collect();
        labels.retain(|label| self.find(&label.target).as_ref().is_some_and(is_on_path));
        labels.sort_unstable_by_key(|label| label.by);
        NamedBeside {
            title: self.title.clone().filter(|_| titled_beside),
            labels: labels.into_iter().map(|label| (label.target.clone(), label.name.clone())).collect(),
        }
    }

    fn note(&mut self, head: &Head<'_>, place: Place) {
        match head.kind.as_ref() {
            "label" => {
                let Some(target) = head.target_id.and_then(text) else { return };
                let name = head.label.and_then(text).filter(|label| !label.is_empty()).map(Cow::into_owned);
                let key = self.key(&target);
                let label = Label { target: target.into_owned().into(), name, by: place };
                Arc::make_mut(&mut self.labels).insert(key, label);
            }
            "usage" | "model_usage" => Cost::of(head).iter().for_each(|cost| self.spending.add(cost)),
            "session_info" => {
                self.title = head.name.and_then(text).map(Cow::into_owned);
                self.titled_by = Some(place);
                self.landmarks.push(place);
            }
            "title_change" => {
                self.title = head.title.and_then(text).map(Cow::into_owned);
                self.titled_by = Some(place);
                self.landmarks.push(place);
            }
            "custom" => match head.custom_type.and_then(text) {
                Some(kind) if kind == PLACEHOLDER => drop(self.broken.insert(place.0)),
                Some(kind) if kind.starts_with("abridged.") => {
                    self.landmarks.push(place);
                    if kind == "abridged.undo" || kind == "abridged.leaf" {
                        self.undo_markers.push(place);
                    }
                }
                _ => {}
            },
            "compaction" | "model_change" | "thinking_level_change" | "reset_boundary" | "custom_message" => {
                self.landmarks.push(place);
            }
            _ => {}
        }
    }

    /// Lets go of room for more: most sessions get no more for a long time.
    pub fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.runs.shrink_to_fit();
        self.landmarks.shrink_to_fit();
        self.newest.shrink_to_fit();
    }

    /// The markers that may take a compaction or a reset back, in the order of the file.
    #[must_use]
    pub fn undo_markers(&self) -> &[Place] {
        &self.undo_markers
    }

    /// The costs of all its entries.
    #[must_use]
    pub fn spending(&self) -> &Spending {
        &self.spending
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The latest entry of an id.
    #[must_use]
    pub fn find(&self, id: &EntryId) -> Option<Place> {
        self.newest.get(&self.key(id.as_str())).copied().map(Place)
    }

    /// Whether some id is that of several entries.
    #[must_use]
    pub fn has_twins(&self) -> bool {
        self.newest.len() < self.nodes.len()
    }

    /// The cursor after an entry: its id, with its offset where the id means a later entry.
    #[must_use]
    pub fn cursor(&self, place: Place, id: &EntryId) -> EntryId {
        if self.find(id) == Some(place) { id.clone() } else { format!("{id}@{}", self.spot(place).offset).into() }
    }

    /// The entry of a cursor. Every id is the cursor after the latest entry of that id.
    #[must_use]
    pub fn find_cursor(&self, cursor: &EntryId) -> Option<Place> {
        let earlier = || {
            let (id, offset) = cursor.as_str().rsplit_once('@')?;
            let offset: u64 = offset.parse().ok()?;
            self.find(&id.into())?;
            let place = self.nodes.binary_search_by_key(&offset, |node| node.offset).ok()?;
            Some(Place(u32::try_from(place).ok()?))
        };
        self.find(cursor).or_else(earlier)
    }

    /// The entry that another one follows.
    #[must_use]
    pub fn parent(&self, place: Place) -> Option<Place> {
        match self.nodes[place.0 as usize].parent {
            ROOT => None,
            parent => Some(Place(parent)),
        }
    }

    /// The last line.
    #[must_use]
    pub fn leaf(&self) -> Option<Place> {
        self.nodes.len().checked_sub(1).map(|last| Place(last as u32))
    }

    /// Where an entry stands.
    #[must_use]
    pub fn spot(&self, place: Place) -> Spot {
        let node = &self.nodes[place.0 as usize];
        Spot { offset: node.offset, length: node.length }
    }

    /// Every entry after `after`, or every one, in the order of the file.
    pub fn after(&self, after: Option<Place>) -> impl DoubleEndedIterator<Item = Place> + use<> {
        let from = after.map_or(0, |place| place.0 + 1);
        (from..self.nodes.len() as u32).map(Place)
    }

    /// Every entry before `before`, or every one, in the order of the file.
    pub fn until(&self, before: Option<Place>) -> impl DoubleEndedIterator<Item = Place> + use<> {
        let end = before.map_or(self.nodes.len() as u32, |place| place.0);
        (0..end).map(Place)
    }

    /// The places from the root to an entry.
    #[must_use]
    pub fn path_to(&self, place: Place) -> Vec<Place> {
        let mut path: Vec<Place> = std::iter::successors(Some(place), |place| self.parent(*place)).collect();
        path.reverse();
        path
    }

    /// The last place that the paths to two entries have in common. The cost is that of the runs after it.
    #[must_use]
    pub fn last_in_common(&self, one: Option<Place>, other: Option<Place>) -> Option<Place> {
        let (mut one, mut other) = (one?, other?);
        loop {
            // An entry stands after those that it follows.
            let (later, earlier) = (one.max(other), one.min(other));
            let start = self.run_of(later);
            if start <= earlier {
                return Some(earlier);
            }
            (one, other) = (self.parent(start)?, earlier);
        }
    }

    /// The first place of the run of an entry.
    fn run_of(&self, place: Place) -> Place {
        let behind = self.runs.partition_point(|start| *start <= place);
        behind.checked_sub(1).map_or(place, |run| self.runs[run])
    }

    /// The names that were given to entries, as they are now.
    #[must_use]
    pub fn labels(&self) -> Labels {
        Labels { names: self.labels.clone(), keys: self.keys.clone() }
    }

    /// The session's name, as the last entry about it has it; empty where that takes it away.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The entries before `place` on its path that say something about the session beside its messages, oldest first.
    #[must_use]
    pub fn landmarks_before(&self, place: Place) -> Vec<Place> {
        let mut found = Vec::new();
        let mut landmarks = self.landmarks.iter().rev().peekable();
        let mut next = self.parent(place);
        while let Some(here) = next {
            while landmarks.next_if(|landmark| **landmark > here).is_some() {}
            if landmarks.peek() == Some(&&here) {
                found.push(here);
            }
            next = self.parent(here);
        }
        found.reverse();
        found
    }

    fn key(&self, id: &str) -> u64 {
        self.keys.hash_one(id)
    }
}

/// Names of entries.
#[derive(Debug, Clone)]
pub struct Labels {
    names: Arc<HashMap<u64, Label>>,
    keys: RandomState,
}

impl Labels {
    /// The name of an entry.
    #[must_use]
    pub fn of(&self, id: &EntryId) -> Option<&str> {
        self.names.get(&self.keys.hash_one(id.as_str()))?.name.as_deref()
    }
}

/// Keys that are hashes already are not hashed again.
#[derive(Clone, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only whole keys are ever hashed; this keeps the trait's promise for anything else.
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn index(lines: &[(&str, &str, &str)]) -> (Index, Vec<Oddity>) {
        let mut index = Index::default();
        let mut odd = Vec::new();
        for (offset, (kind, id, parent)) in lines.iter().enumerate() {
            let line = json!({"type": kind, "id": id, "parentId": parent, "name": "n"}).to_string();
            let head = Head::read(&line).expect("a line");
            odd.extend(index.push(&head, Spot { offset: offset as u64, length: 1 }, |_| false));
        }
        (index, odd)
    }

    fn path(index: &Index, id: &str) -> Vec<u64> {
        let place = index.find(&id.into()).expect("it is there");
        index.path_to(place).into_iter().map(|place| index.spot(place).offset).collect()
    }

    #[test]
    fn a_parent_is_the_nearest_earlier_line_of_that_id() {
        let (index, odd) =
            index(&[("message", "a", "b"), ("message", "b", "a"), ("message", "a", "b"), ("x", "a", "a")]);
        assert_eq!(path(&index, "a"), [0, 1, 2, 3]);
        assert_eq!(path(&index, "b"), [0, 1]);
        assert_eq!(odd, [Oddity::MissingParent, Oddity::SameId, Oddity::SameId]);
    }

    #[test]
    fn two_paths_end_in_common_where_one_leaves_the_other() {
        let (index, _) = index(&[
            ("message", "a", ""),
            ("message", "b", "a"),
            ("message", "c", "b"),
            ("message", "d", "a"),
            ("message", "e", "c"),
            ("message", "other root", ""),
        ]);
        let place = |id: &str| index.find(&id.into());
        for (one, other, common) in [
            ("e", "d", Some("a")),
            ("d", "e", Some("a")),
            ("e", "b", Some("b")),
            ("e", "e", Some("e")),
            ("e", "other root", None),
        ] {
            assert_eq!(index.last_in_common(place(one), place(other)), common.and_then(place), "{one} {other}");
        }
        assert_eq!(index.last_in_common(place("e"), None), None);
    }

    proptest! {
        #[test]
        fn paths_of_any_tree_have_their_last_place_in_common(
            parents in proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..24),
        ) {
            let ids: Vec<String> = (0..parents.len()).map(|at| at.to_string()).collect();
            let parent = |at: usize| match &parents[at] {
                _ if at == 0 => "",
                (true, _) => &ids[at - 1],
                (false, of) => &ids[of.index(at)],
            };
            let lines: Vec<_> = (0..ids.len()).map(|at| ("message", ids[at].as_str(), parent(at))).collect();
            let (index, _) = index(&lines);
            for (one, other) in ids.iter().flat_map(|one| ids.iter().map(move |other| (one, other))) {
                let (first, second) = (path(&index, one), path(&index, other));
                let common = first.iter().zip(&second).take_while(|(one, other)| one == other).last();
                let place = |id: &String| index.find(&id.as_str().into());
                let found = index.last_in_common(place(one), place(other)).map(|place| index.spot(place).offset);
                prop_assert_eq!(found, common.map(|(offset, _)| *offset));
            }
        }
    }

    #[test]
    fn landmarks_are_those_of_the_path() {
        let (index, _) = index(&[
            ("compaction", "a", ""),
            ("message", "b", "a"),
            ("session_info", "c", "a"),
            ("model_change", "d", "b"),
            ("message", "e", "d"),
        ]);
        let leaf = index.leaf().expect("there are entries");
        let offsets: Vec<u64> =
            index.landmarks_before(leaf).into_iter().map(|place| index.spot(place).offset).collect();
        assert_eq!(offsets, [0, 3]);
        assert_eq!(index.title(), Some("n"));
    }
}
