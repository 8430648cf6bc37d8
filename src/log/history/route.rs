//! The way from the leaf of a session to another entry of its tree.

use super::library::Library;
use crate::{
    conversation::{
        entry::Entry,
        message::{Message, outline::Role, text_of},
    },
    ids::EntryId,
    log::{error::StoreError, index::Place, sealed::Blocking},
};
use std::{collections::HashSet, sync::Arc};

/// A way from the leaf to another entry.
#[derive(Debug, Clone)]
pub struct Route {
    /// The entry that was asked for.
    pub target: Arc<Entry>,
    /// The line behind which the session goes on: the target or the last of our own lines behind it. For a message of the
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
}

/// The reason why a session cannot go on at an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoRoute {
    /// There is no such entry.
    Unknown,
    /// The entry is a line of this program. The nearest entry before it that is none.
    Marker(Option<EntryId>),
    /// The entry is a tool result, and more results of its batch follow. The last one of them.
    InBatch(EntryId),
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
    ) -> Result<Result<Route, NoRoute>, StoreError> {
        let index = self.index();
        let Some(place) = index.find(target) else { return Ok(Err(NoRoute::Unknown)) };
        let entry = self.body(place, blocking)?;
        if entry.is_marker() {
            return Ok(Err(NoRoute::Marker(self.shown_from(index.parent(place), blocking)?)));
        }
        if let Some(last) = self.last_of_batch(place, &entry, blocking)? {
            return Ok(Err(NoRoute::InBatch(last)));
        }
        let editor_text = text_for_editor(&entry);
        let parent = match &editor_text {
            Some(_) => index.parent(place),
            None => Some(self.behind_markers(place, blocking)?),
        };
        let old: Vec<Place> = leaf.and_then(|leaf| index.find(leaf)).map_or_else(Vec::new, |leaf| index.path_to(leaf));
        let shared: HashSet<Place> = old.iter().copied().collect();
        let common = std::iter::successors(Some(place), |place| index.parent(*place)).find(|it| shared.contains(it));
        let left =
            old.iter().skip_while(|it| common.is_some() && Some(**it) != common).skip(usize::from(common.is_some()));
        Ok(Ok(Route {
            parent: parent.map(|place| self.id_of(place, blocking)).transpose()?,
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

    /// The id of the nearest entry from this place towards the root that is no line of ours.
    fn shown_from(&self, from: Option<Place>, blocking: &Blocking) -> Result<Option<EntryId>, StoreError> {
        for place in std::iter::successors(from, |place| self.index().parent(*place)) {
            let entry = self.body(place, blocking)?;
            if !entry.is_marker() {
                return Ok(Some(entry.id.clone()));
            }
        }
        Ok(None)
    }

    /// The last of our own lines that stand right behind an entry: pins, values, lines for other programs. They belong to
    /// the state of the session at this entry.
    fn behind_markers(&self, place: Place, blocking: &Blocking) -> Result<Place, StoreError> {
        let mut last = place;
        for next in self.index().after(Some(place)) {
            if self.index().parent(next) == Some(last) && self.body(next, blocking)?.is_marker() {
                last = next;
            }
        }
        Ok(last)
    }

    /// The last result of the batch of a tool result, where more results follow it.
    fn last_of_batch(&self, place: Place, entry: &Entry, blocking: &Blocking) -> Result<Option<EntryId>, StoreError> {
        if !is_result(entry) {
            return Ok(None);
        }
        let mut batch = HashSet::from([place]);
        let mut last = None;
        for next in self.index().after(Some(place)) {
            if !self.index().parent(next).is_some_and(|parent| batch.contains(&parent)) {
                continue;
            }
            let entry = self.body(next, blocking)?;
            if is_result(&entry) {
                last = Some(entry.id.clone());
            }
            if is_result(&entry) || !entry.in_context() {
                batch.insert(next);
            }
        }
        Ok(last)
    }
}

fn is_result(entry: &Entry) -> bool {
    entry.outline().is_some_and(|outline| outline.role == Role::ToolResult)
}

/// The text of a message that a user edits to send it again. None for any other entry.
fn text_for_editor(entry: &Entry) -> Option<String> {
    match entry.message()? {
        Message::User(content) => Some(text_of(content)),
        _ => None,
    }
}
