//! Results whose calls are on another branch. A result goes after its call, and the leaf of the session stays.

use super::{Unstaged, given::staged_before};
use crate::{
    conversation::{
        entry::{self, Entry, Stamps},
        message::Message,
        mirroring,
    },
    ids::{CallId, EntryId},
    log::history::homes::{Branch, Home},
    protocol::{errors::Failure, types::AppendParams},
    session::{
        core::{commands::append::Append, edit::NotStaged},
        log_work::{Fetch, Fetched, HomesOrder},
        state::State,
    },
};
use serde_json::json;
use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// The branches of the results of an append whose calls are not at hand.
#[derive(Default)]
pub(super) struct Strays {
    /// The branch of each such result, by its place among the messages.
    branches: HashMap<usize, Home>,
    /// The newest entry after the end of each branch.
    ends: HashMap<EntryId, EntryId>,
}

impl Strays {
    /// The branches of the results of an append. The calls of nearly all results are on the path.
    ///
    /// # Errors
    /// When the branches have to be read first, or the append has to be the first one of a write.
    pub fn of(
        messages: &[(usize, Cow<'_, str>)],
        state: &State,
        before: &[Append],
        params: &AppendParams,
    ) -> Result<Self, Unstaged> {
        let unknown = unknown(messages, state, before, params);
        if unknown.is_empty() {
            return Ok(Self::default());
        }
        if !before.is_empty() {
            return Err(Unstaged::Alone);
        }
        let calls: Vec<CallId> = unknown.iter().map(|(_, call)| call.clone()).collect();
        let leaf = state.path().last().map(|leaf| leaf.id.clone());
        let parent = params.parent_entry_id.as_ref();
        match &state.fetched {
            Some(Fetched::Homes(found)) if found.calls == calls && found.leaf == leaf => {
                let branches = unknown.into_iter().map(|(at, _)| at).zip(found.homes.iter().cloned()).collect();
                Ok(Self { branches, ends: HashMap::new() })
            }
            _ => {
                let library = state.history().library().ok_or(NotStaged::NeedsIndex)?;
                let wanted = parent.and_then(|parent| {
                    let place = library.index().find(parent)?;
                    Some((parent.clone(), state.history().wanted(library.index().after(Some(place)))))
                });
                let order =
                    HomesOrder { calls, seen_from: parent.cloned().or(leaf.clone()), leaf, mirrors: wanted, library };
                Err(NotStaged::NeedsEntries(Fetch::Homes(Box::new(order))).into())
            }
        }
    }

    /// The tool of the call that the result at this place answers.
    pub fn tool(&self, at: usize) -> Option<String> {
        self.branches.get(&at)?.tool.clone()
    }

    /// The entry after which the result at this place goes, where that is another branch.
    ///
    /// # Errors
    /// When the request names a parent on a branch that the call is not on.
    pub fn parent(&self, at: usize, params: &AppendParams) -> Result<Option<EntryId>, Failure> {
        let Some(Home { call, branch: Branch::Elsewhere(end), .. }) = self.branches.get(&at) else { return Ok(None) };
        if let Some(parent) = &params.parent_entry_id {
            let what = format!(
                "the call {call} of a result is on another branch than entry {parent}; leave out parentEntryId, and the \
                 result goes behind its call"
            );
            return Err(Failure::params("parentEntryId", what));
        }
        Ok(Some(self.ends.get(end).unwrap_or(end).clone()))
    }

    /// The result at this place is this entry. The next one of its branch goes after it.
    pub fn placed(&mut self, at: usize, id: &EntryId) {
        if let Some(Home { branch: Branch::Elsewhere(end), .. }) = self.branches.get(&at) {
            self.ends.insert(end.clone(), id.clone());
        }
    }
}

/// The calls that results of an append answer and that are neither in the append nor on its path, each with the place of
/// the result.
fn unknown(
    messages: &[(usize, Cow<'_, str>)],
    state: &State,
    before: &[Append],
    params: &AppendParams,
) -> Vec<(usize, CallId)> {
    let mut own: HashSet<CallId> = HashSet::new();
    let mut asked: Vec<(usize, CallId)> = Vec::new();
    for (at, json) in messages {
        // Both have it: a call as its type, a result as the name of a field.
        if !json.contains("toolCall") {
            continue;
        }
        match Message::parse(json) {
            Ok(Message::Assistant(answer)) => own.extend(answer.calls().map(|call| call.id.clone())),
            Ok(Message::ToolResult(result)) if !own.contains(&result.call) => asked.push((*at, result.call)),
            _ => {}
        }
    }
    let missing = not_at_hand(&asked, state, before, params);
    asked.iter().filter(|(_, call)| missing.contains(call)).cloned().collect()
}

/// The calls that are not on the path of an append, as far as that is in memory. The path is read once for all of them.
fn not_at_hand<'a>(
    asked: &'a [(usize, CallId)],
    state: &State,
    before: &[Append],
    params: &AppendParams,
) -> HashSet<&'a CallId> {
    let path = state.path();
    let moves = before.iter().any(|append| append.params.parent_entry_id.is_some());
    let end = match &params.parent_entry_id {
        _ if moves => 0,
        None => path.len(),
        Some(parent) => path.position(parent).map_or(0, |place| place + 1),
    };
    let mut missing: HashSet<&CallId> = asked.iter().map(|(_, call)| call).collect();
    for entry in staged_before(before).chain(path[..end].iter().rev()) {
        if missing.is_empty() {
            break;
        }
        for call in entry.outline().into_iter().flat_map(|outline| &outline.calls) {
            missing.remove(&call.id);
        }
    }
    missing
}

/// The line after a result on another branch: the last line of a file is the leaf.
///
/// # Errors
/// When it is no entry, which is a defect.
pub(super) fn leaf_again(
    parent: Option<&EntryId>,
    leaf: Option<&EntryId>,
    stamps: &mut Stamps,
) -> Result<Arc<Entry>, Failure> {
    let fields = [("customType", "abridged.leaf".into()), ("data", json!({ "targetEntryId": leaf }))];
    let stamp: entry::Stamp = stamps.stamp();
    let defect = || Failure::Internal("a marker of the leaf is no entry, which is a defect of abridged".to_owned());
    mirroring::entry_of("custom", &stamp, parent, &fields).ok_or_else(defect)
}
