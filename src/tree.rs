//! The entries of a session as a tree, and the path through it that is the conversation now.

use crate::{
    entry::{Body, Entry},
    ids::EntryId,
};
use std::{collections::HashMap, ops::Deref, sync::Arc};

/// All entries in the order of the file. The leaf is what the last line says.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    /// The latest entry of each id, by its place.
    newest: HashMap<EntryId, usize>,
    /// The path to the leaf, kept because it is asked for all the time and nearly always only grows.
    active: Path,
}

#[derive(Debug)]
struct Node {
    entry: Arc<Entry>,
    /// Always an earlier place, so that no walk to the root can go in circles.
    parent: Option<usize>,
}

/// What a line said that the tree did not take literally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Oddity {
    /// The parent is nowhere before the entry; it became a root.
    MissingParent,
    /// An earlier entry has this id too.
    SameId,
}

/// The entries from a root to a leaf, made only by a tree.
#[derive(Debug, Clone, Default)]
pub struct Path {
    entries: Vec<Arc<Entry>>,
}

impl Tree {
    /// Adds the next line of the file and makes it the leaf. Its parent is the nearest earlier line with that id;
    /// without one it is a root.
    pub fn push(&mut self, entry: Arc<Entry>) -> Option<Oddity> {
        let parent = entry.parent.as_ref().map(|id| self.newest.get(id).copied());
        let place = self.nodes.len();
        let same_id = self.newest.insert(entry.id.clone(), place).is_some();
        self.nodes.push(Node { entry: entry.clone(), parent: parent.flatten() });
        // The leaf before is the line before.
        if parent.flatten() == place.checked_sub(1) {
            self.active.entries.push(entry);
        } else {
            self.active = self.path_from(place);
        }
        match parent {
            _ if same_id => Some(Oddity::SameId),
            Some(None) => Some(Oddity::MissingParent),
            _ => None,
        }
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

    /// The entry of an id; of two with the same, the later.
    #[must_use]
    pub fn get(&self, id: &EntryId) -> Option<&Arc<Entry>> {
        self.newest.get(id).map(|&place| &self.nodes[place].entry)
    }

    /// The last line's entry: what the next one follows.
    #[must_use]
    pub fn leaf(&self) -> Option<&Arc<Entry>> {
        self.nodes.last().map(|node| &node.entry)
    }

    /// Every entry, in the order of the file.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        self.nodes.iter().map(|node| &node.entry)
    }

    /// Every entry after the one of this id, in the order of the file.
    pub fn after(&self, id: &EntryId) -> Option<impl Iterator<Item = &Arc<Entry>>> {
        let place = *self.newest.get(id)?;
        Some(self.nodes[place + 1..].iter().map(|node| &node.entry))
    }

    /// The path to the leaf.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.active
    }

    /// The path to an entry.
    #[must_use]
    pub fn path_to(&self, id: &EntryId) -> Option<Path> {
        self.newest.get(id).map(|&place| self.path_from(place))
    }

    fn path_from(&self, leaf: usize) -> Path {
        let mut entries = Vec::new();
        let mut next = Some(leaf);
        while let Some(place) = next {
            let node = &self.nodes[place];
            entries.push(node.entry.clone());
            next = node.parent;
        }
        entries.reverse();
        Path { entries }
    }
}

impl Deref for Path {
    type Target = [Arc<Entry>];

    fn deref(&self) -> &[Arc<Entry>] {
        &self.entries
    }
}

impl Path {
    /// The path as it would be with one more entry behind its leaf.
    #[must_use]
    pub fn with(&self, entry: Arc<Entry>) -> Self {
        let mut entries = self.entries.clone();
        entries.push(entry);
        Self { entries }
    }

    /// Whether this path is where `earlier` has grown to: nothing of it changed, only more came.
    #[must_use]
    pub fn grew_from(&self, earlier: &Self) -> bool {
        self.entries.len() >= earlier.entries.len()
            && earlier.entries.iter().zip(&self.entries).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// The leaf as clients see it: the last entry that is no marker of ours.
    #[must_use]
    pub fn visible_leaf(&self) -> Option<&Arc<Entry>> {
        self.entries.iter().rev().find(|entry| !entry.is_marker())
    }

    /// The place of an entry on the path.
    #[must_use]
    pub fn position(&self, id: &EntryId) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry.id == *id)
    }

    /// The place of the compaction that is in force: the latest one that was not undone, unless everything up to a
    /// later point was cleared.
    #[must_use]
    pub fn compaction(&self) -> Option<usize> {
        let mut undone: Vec<&str> = Vec::new();
        for (place, entry) in self.entries.iter().enumerate().rev() {
            match &entry.body {
                Body::ResetBoundary => return None,
                Body::Compaction(_) if !undone.contains(&entry.id.as_str()) => return Some(place),
                _ => {
                    if let Some(id) = entry.ours("undo").and_then(|data| data.get("compactionEntryId")?.as_str()) {
                        undone.push(id);
                    }
                }
            }
        }
        None
    }

    /// The place of the first entry that is sent as it is: the first kept one of the compaction in force, or the first
    /// after a cleared point. With a compaction that keeps nothing, its own place.
    #[must_use]
    pub fn first_kept(&self) -> usize {
        let cleared = |until: usize| {
            self.entries[..until]
                .iter()
                .rposition(|entry| matches!(entry.body, Body::ResetBoundary))
                .map_or(0, |place| place + 1)
        };
        match self.compaction() {
            None => cleared(self.entries.len()),
            Some(place) => {
                let Some(compaction) = self.entries[place].compaction() else { return place };
                let kept = match (&compaction.first_kept_entry_id, compaction.keep_last_messages) {
                    (Some(id), _) => self.entries[..place].iter().rposition(|entry| entry.id == *id),
                    (None, Some(count)) => self.last_messages(place, count),
                    (None, None) => None,
                };
                kept.map_or(place, |kept| kept.max(cleared(place)))
            }
        }
    }

    /// The place of the `count`-th message before `place`, but not past an earlier compaction.
    fn last_messages(&self, place: usize, count: u64) -> Option<usize> {
        let earlier = self.entries[..place].iter().rposition(|entry| entry.compaction().is_some());
        let since = earlier.map_or(0, |earlier| earlier + 1);
        let messages = (since..place).rev().filter(|&at| self.entries[at].message().is_some());
        messages.take(usize::try_from(count).unwrap_or(usize::MAX)).last()
    }

    /// The place of the last entry that changed what was sent before it: a compaction (undone or not), an edit, an
    /// undo, a cleared point. Usage reported before it says nothing about the context now.
    #[must_use]
    pub fn last_rewrite(&self) -> Option<usize> {
        self.entries.iter().rposition(|entry| {
            matches!(entry.body, Body::Compaction(_) | Body::ContextEdit(_) | Body::ResetBoundary)
                || entry.ours("undo").is_some()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(lines: &[(&str, &str)]) -> (Tree, Vec<Oddity>) {
        let mut tree = Tree::default();
        let mut odd = Vec::new();
        for (id, parent) in lines {
            let line = format!(r#"{{"type":"label","id":"{id}","parentId":"{parent}","targetId":"x"}}"#);
            odd.extend(tree.push(Arc::new(Entry::parse(line.into()).expect("a label"))));
        }
        (tree, odd)
    }

    fn ids(path: &Path) -> String {
        path.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_last_line_is_the_leaf_and_branches_are_left_aside() {
        let (tree, odd) = tree(&[("a", ""), ("b", "a"), ("c", "b"), ("d", "a")]);
        assert_eq!(ids(tree.path()), "a d");
        assert_eq!(ids(&tree.path_to(&"c".into()).expect("c is there")), "a b c");
        assert!(odd.is_empty());
    }

    #[test]
    fn cycles_same_ids_and_missing_parents_are_harmless() {
        let (tree, odd) = tree(&[("a", "b"), ("b", "a"), ("a", "b"), ("a", "a")]);
        assert_eq!(ids(tree.path()), "a b a a");
        assert_eq!(odd, [Oddity::MissingParent, Oddity::SameId, Oddity::SameId]);
    }
}
