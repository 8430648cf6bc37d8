//! Entries at which a path may end: a session goes on there, or a fork ends there.

use super::library::Library;
use crate::{
    conversation::{
        entry::{Body, Entry},
        message::{Message, outline::Role, text_of},
        path::Path,
    },
    ids::EntryId,
    log::{error::StoreError, index::Place, sealed::Blocking},
};
use std::{collections::HashSet, iter, sync::Arc};

/// The reason why no path ends at an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPoint {
    /// There is no such entry.
    Unknown,
    /// The entry is a line of this program. The nearest entry before it that is none.
    Marker(Option<EntryId>),
    /// The path would end in the middle of a batch of calls: more results follow. The last one of them.
    InBatch(EntryId),
}

impl Library {
    /// An entry of the conversation: its place, and the entry itself.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn conversed(
        &self,
        id: &EntryId,
        blocking: &Blocking,
    ) -> Result<Result<(Place, Arc<Entry>), NoPoint>, StoreError> {
        let Some(place) = self.index().find(id) else { return Ok(Err(NoPoint::Unknown)) };
        let entry = self.body(place, blocking)?;
        if entry.is_marker() {
            return Ok(Err(NoPoint::Marker(self.shown_from(self.index().parent(place), blocking)?)));
        }
        Ok(Ok((place, entry)))
    }

    /// The id of the nearest entry from this place towards the root that is no line of ours.
    pub(super) fn shown_from(&self, from: Option<Place>, blocking: &Blocking) -> Result<Option<EntryId>, StoreError> {
        for place in iter::successors(from, |place| self.index().parent(*place)) {
            let entry = self.body(place, blocking)?;
            if !entry.is_marker() {
                return Ok(Some(entry.id.clone()));
            }
        }
        Ok(None)
    }

    /// The newest of our own lines that stand after an entry with no other line between: pins, values, lines for other
    /// programs. They belong to the state in which the session was at this entry last.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn behind_markers(&self, place: Place, blocking: &Blocking) -> Result<Place, StoreError> {
        let (mut newest, mut belong) = (place, HashSet::from([place]));
        for next in self.index().after(Some(place)) {
            if self.index().parent(next).is_some_and(|parent| belong.contains(&parent))
                && self.body(next, blocking)?.is_marker()
            {
                belong.insert(next);
                newest = next;
            }
        }
        Ok(newest)
    }

    /// The path to an entry with our own lines right after it: the state of the session when it goes on there. None where
    /// there is no such entry.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn path_at(&self, id: &EntryId, blocking: &Blocking) -> Result<Option<Path>, StoreError> {
        let Some(place) = self.index().find(id) else { return Ok(None) };
        let end = match self.body(place, blocking)?.is_marker() {
            true => place,
            false => self.behind_markers(place, blocking)?,
        };
        self.path_to_place(end, blocking).map(Some)
    }

    /// Refuses the end of a path in the middle of a batch of calls: the last message is a tool result, and more results of
    /// its batch follow.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn ends_batch(&self, end: Place, blocking: &Blocking) -> Result<Result<(), NoPoint>, StoreError> {
        let mut batch = HashSet::new();
        for place in iter::successors(Some(end), |place| self.index().parent(*place)) {
            let entry = self.body(place, blocking)?;
            batch.insert(place);
            if entry.is_from(Role::ToolResult) {
                break;
            }
            if entry.in_context() {
                return Ok(Ok(()));
            }
        }
        let mut last = None;
        for next in self.index().after(Some(end)) {
            if !self.index().parent(next).is_some_and(|parent| batch.contains(&parent)) {
                continue;
            }
            let entry = self.body(next, blocking)?;
            let is_result = entry.is_from(Role::ToolResult);
            if is_result {
                last = Some(entry.id.clone());
            }
            if is_result || !entry.in_context() {
                batch.insert(next);
            }
        }
        Ok(last.map_or(Ok(()), |last| Err(NoPoint::InBatch(last))))
    }
}

/// The text that a user goes on editing where a path ends before an entry: that of a message of the user, or of an
/// extension that speaks in the user's place. None for any other entry.
#[must_use]
pub fn editor_text(entry: &Entry) -> Option<String> {
    match &entry.body {
        Body::CustomMessage(custom) if !entry.is_pinned_text() => Some(text_of(&custom.content)),
        Body::Message(_) => match entry.message()? {
            Message::User(content) => Some(text_of(content)),
            _ => None,
        },
        _ => None,
    }
}
