//! The way from the leaf of a session to another entry of its tree.

use super::{
    library::Library,
    points::{NoPoint, editor_text},
};
use crate::{
    conversation::{entry::Entry, message::outline::Role, path::Path},
    ids::EntryId,
    log::{error::StoreError, index::Place, sealed::Blocking},
};
use std::{collections::HashSet, sync::Arc};

/// A way from the leaf to another entry.
#[derive(Debug, Clone)]
pub struct Route {
    /// The line from which it leads: the last one of the path before. None for an empty path.
    pub from: Option<EntryId>,
    /// The entry that was asked for.
    pub target: Arc<Entry>,
    /// The line after which the session goes on: the target or the last of our own lines after it. For a message of the
    /// user it is the line before. None: before the first line.
    pub parent: Option<EntryId>,
    /// The leaf as clients see it afterwards.
    pub leaf: Option<EntryId>,
    /// The text of a user message as the target.
    pub editor_text: Option<String>,
    /// The deepest entry that the path of the target shares with the path of the leaf. It is no line of ours.
    pub common_ancestor: Option<EntryId>,
    /// The entries of the branch that is left, oldest first, without our own lines. Empty where they are not asked for.
    pub left: Vec<Arc<Entry>>,
    /// The path after which the session goes on. Empty where the entries that are left are not asked for.
    pub there: Path,
    /// Whether the entries that are left were asked for.
    pub reads_left: bool,
}

impl Library {
    /// The way from `leaf` to `target`, with the entries that are left where `reads_left` says so.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn route(
        &self,
        target: &EntryId,
        leaf: Option<&EntryId>,
        reads_left: bool,
        blocking: &Blocking,
    ) -> Result<Result<Route, NoPoint>, StoreError> {
        let index = self.index();
        let (place, entry) = match self.conversed(target, blocking)? {
            Ok(found) => found,
            Err(none) => return Ok(Err(none)),
        };
        if let Err(none) = self.ends_batch(place, blocking)? {
            return Ok(Err(none));
        }
        let editor_text = editor_text(&entry).filter(|_| entry.is_from(Role::User));
        let parent = match &editor_text {
            Some(_) => index.parent(place),
            None => Some(self.behind_markers(place, blocking)?),
        };
        let old: Vec<Place> = leaf.and_then(|leaf| index.find(leaf)).map_or_else(Vec::new, |leaf| index.path_to(leaf));
        let shared: HashSet<Place> = old.iter().copied().collect();
        let common = std::iter::successors(Some(place), |place| index.parent(*place)).find(|it| shared.contains(it));
        let left =
            old.iter().skip_while(|it| common.is_some() && Some(**it) != common).skip(usize::from(common.is_some()));
        let there = match parent {
            Some(place) if reads_left => self.path_to_place(place, blocking)?,
            _ => Path::default(),
        };
        Ok(Ok(Route {
            from: leaf.cloned(),
            parent: parent.map(|place| self.id_of(place, blocking)).transpose()?,
            there,
            reads_left,
            leaf: self.shown_from(parent, blocking)?,
            common_ancestor: self.shown_from(common, blocking)?,
            left: if reads_left { self.shown(left.copied(), blocking)? } else { Vec::new() },
            target: entry,
            editor_text,
        }))
    }

    fn id_of(&self, place: Place, blocking: &Blocking) -> Result<EntryId, StoreError> {
        Ok(self.body(place, blocking)?.id.clone())
    }

    /// The entries at these places that are no lines of ours.
    fn shown(&self, places: impl Iterator<Item = Place>, blocking: &Blocking) -> Result<Vec<Arc<Entry>>, StoreError> {
        let entries: Result<Vec<_>, _> = places.map(|place| self.body(place, blocking)).collect();
        Ok(entries?.into_iter().filter(|entry| !entry.is_marker()).collect())
    }
}
