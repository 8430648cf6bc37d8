//! The entries that may be summarized, and those among them that stay: messages that no model has read, and open calls.

use super::{
    Demand,
    cut::{Kind, Step},
};
use crate::{
    conversation::{
        entry::{Body, Entry},
        message::outline::{Call, Role},
        tokens::Estimator,
    },
    ids::EntryId,
};
use std::{collections::HashSet, sync::Arc};

/// The entries after the last answer among `entries`: no model has read them.
#[must_use]
pub fn unread(entries: &[Arc<Entry>]) -> &[Arc<Entry>] {
    &entries[newest_answer(entries).map_or(0, |answer| answer + 1)..]
}

/// The ids of these entries.
#[must_use]
pub fn unread_ids(entries: &[Arc<Entry>]) -> HashSet<&EntryId> {
    unread(entries).iter().map(|entry| &entry.id).collect()
}

/// Entries that may be summarized, and those among them that are in no context: answers that failed or were removed.
pub(super) struct Window<'a> {
    entries: &'a [Arc<Entry>],
    removed: HashSet<&'a EntryId>,
}

/// The place of the newest answer. An answer that failed or was removed does not count: nothing shows that its model has read the
/// entries before it. An empty one counts: the model had nothing to say. Reads only the end of the entries, because an edit follows the entry that it removes.
fn newest_answer(entries: &[Arc<Entry>]) -> Option<usize> {
    let mut removed: HashSet<&EntryId> = HashSet::new();
    let answers =
        |entry: &Entry| entry.outline().is_some_and(|outline| outline.role == Role::Assistant && !outline.failed);
    entries.iter().rposition(|entry| match &entry.body {
        Body::ContextEdit(edit) if edit.replacement.is_none() => {
            removed.insert(&edit.target_id);
            false
        }
        _ => answers(entry) && !removed.contains(&entry.id),
    })
}

/// The places of the messages of the user that no model has read, oldest first. Reads only the end of the entries.
pub(in crate::compaction) fn unread_requests(entries: &[Arc<Entry>]) -> Vec<usize> {
    let unread = unread(entries);
    let (first, window) = (entries.len() - unread.len(), Window::of(unread));
    let waits = |entry: &Entry| entry.is_from(Role::User) && entry.in_context() && !window.is_gone(entry);
    unread.iter().enumerate().filter(|(_, entry)| waits(entry)).map(|(place, _)| first + place).collect()
}

impl<'a> Window<'a> {
    pub(super) fn of(entries: &'a [Arc<Entry>]) -> Self {
        let removed = entries.iter().filter_map(|entry| match &entry.body {
            Body::ContextEdit(edit) if edit.replacement.is_none() => Some(&edit.target_id),
            _ => None,
        });
        Self { entries, removed: removed.collect() }
    }

    /// Whether an entry is in no context.
    fn is_gone(&self, entry: &Entry) -> bool {
        entry.outline().is_some_and(|outline| outline.failed) || self.removed.contains(&entry.id)
    }

    pub(super) fn steps(&self, estimator: Estimator) -> Vec<Step> {
        self.entries.iter().map(|entry| self.step(entry, estimator)).collect()
    }

    /// An entry that is in no context adds nothing to the tail. pi counts failed answers, so its tail may be shorter by them.
    fn step(&self, entry: &Arc<Entry>, estimator: Estimator) -> Step {
        let kind = match &entry.body {
            Body::Compaction(_) => Kind::Compaction,
            _ if self.is_gone(entry) => Kind::Metadata,
            _ if entry.starts_turn() => Kind::TurnStart,
            Body::Message(body) if entry.in_context() => match body.outline.role {
                Role::ToolResult => Kind::ToolResult,
                Role::System => Kind::Metadata,
                _ => Kind::Message,
            },
            _ => Kind::Metadata,
        };
        let tokens = match kind {
            Kind::Metadata | Kind::Compaction => 0,
            _ => u64::from(entry.tokens(estimator)),
        };
        Step { kind, tokens }
    }

    /// The place of the first entry that stays while it has room: one that stays in any case, or an answer whose results no
    /// model has read. A request that names the size of the tail names that answer's place, too, and an empty tail has none.
    pub(super) fn stays(&self, demand: &Demand) -> Option<usize> {
        let batch = self.unread_batch().filter(|_| !demand.explicit && demand.keep > 0);
        self.must_stay(demand).into_iter().chain(batch).min()
    }

    /// The place of the first entry that stays in any case: an answer whose calls are open, or a message of the user that no
    /// model has read. A request that names the size of the tail names that message's place, too.
    pub(super) fn must_stay(&self, demand: &Demand) -> Option<usize> {
        let request = || unread_requests(self.entries).first().map(|place| self.with_later_results(*place));
        self.pending().or_else(|| request().filter(|_| !demand.explicit))
    }

    /// A place among the unread entries, or that of the newest answer if one of its results comes later than the place.
    fn with_later_results(&self, place: usize) -> usize {
        self.unread_batch().filter(|_| self.last_result() > Some(place)).unwrap_or(place)
    }

    /// The place of the last result.
    fn last_result(&self) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry.is_from(Role::ToolResult) && !self.is_gone(entry))
    }

    /// The place of the newest answer if results of its calls follow it.
    fn unread_batch(&self) -> Option<usize> {
        let answer = newest_answer(self.entries)?;
        let has_calls = self.entries[answer].outline().is_some_and(|outline| !outline.calls.is_empty());
        (has_calls && self.last_result() > Some(answer)).then_some(answer)
    }

    /// The place from which on fewer messages of the user stay that no model has read: about the newer half of those from
    /// `first` on. `None` where that leaves only the newest one, or would part a result from its call.
    pub(super) fn fewer_requests(&self, first: usize) -> Option<usize> {
        let mut requests = unread_requests(self.entries);
        requests.retain(|place| *place >= first);
        let last_result = self.last_result();
        let may_begin: Vec<usize> = requests.iter().copied().filter(|place| last_result < Some(*place)).collect();
        may_begin.get(may_begin.len() / 2).copied().filter(|place| requests.first() != Some(place))
    }

    /// The place of the last answer if it has open calls and only results follow it.
    pub(super) fn pending(&self) -> Option<usize> {
        let mut answered = HashSet::new();
        for (place, entry) in self.entries.iter().enumerate().rev() {
            match entry.outline() {
                _ if self.is_gone(entry) => {}
                Some(outline) if outline.role == Role::ToolResult => answered.extend(&outline.answers),
                Some(outline) if outline.role == Role::Assistant => {
                    let open = |call: &Call| !answered.contains(&call.id);
                    return outline.calls.iter().any(open).then_some(place);
                }
                None if !entry.in_context() => {}
                _ => return None,
            }
        }
        None
    }
}
