//! Answers that change nothing.

use super::state::State;
use crate::{
    entry::{self, Entry},
    ids::EntryId,
    protocol::{
        errors::Failure,
        types::{
            self, Branch, ContextAnswer, ContextParams, EntriesAnswer, EntriesParams, EntryAnswer, EntryParams,
            Thresholds, UsageAnswer,
        },
    },
    tokens::Estimator,
    tree::Path,
};
use serde_json::value::RawValue;
use std::{borrow::Cow, sync::Arc};

/// Entries of a page, if the client does not say.
const PAGE: usize = 1_000;

/// Bytes of a page, if the client does not say.
const PAGE_BYTES: usize = 1 << 20;

/// `session/context`.
///
/// # Errors
/// When the leaf is nowhere.
pub fn context(state: &State, params: &ContextParams) -> Result<ContextAnswer, Failure> {
    let path = path_at(state, params.leaf_entry_id.as_ref())?;
    let context = state.context(&path);
    Ok(ContextAnswer {
        messages: context.messages().iter().map(|message| types::Message(raw(&message.json()))).collect(),
        entry_ids: context.messages().iter().map(|message| message.entry.clone()).collect(),
        usage: state.measure(&path).usage,
        compaction_entry_id: context.compaction().cloned(),
        model: state.model(&path),
    })
}

/// `session/usage`.
#[must_use]
pub fn usage(state: &State) -> UsageAnswer {
    let path = state.path();
    let measure = state.measure(path);
    let why = measure.decision(path).why().to_owned();
    let estimator = match measure.estimator {
        Estimator::Tiktoken => "tiktoken",
        Estimator::Chars => "chars",
    };
    UsageAnswer {
        thresholds: Thresholds {
            threshold_tokens: measure.budget.threshold,
            target_tokens: measure.budget.target(),
            fixed_overhead_tokens: measure.budget.overhead(),
            summary_tokens: measure.budget.summary_cap(),
            keep_recent_tokens: measure.compaction.keep_recent_tokens,
            calibration: measure.calibration,
            estimator: estimator.to_owned(),
        },
        usage: measure.usage,
        why,
    }
}

/// `session/entries`.
///
/// # Errors
/// When the cursor is nowhere.
pub fn entries(state: &State, params: &EntriesParams) -> Result<EntriesAnswer, Failure> {
    let all: Vec<&Arc<Entry>>;
    let path: &Path;
    let in_order: &mut dyn Iterator<Item = &Arc<Entry>> = match (params.branch, &params.since) {
        (Some(Branch::All), None) => &mut state.tree.entries(),
        (Some(Branch::All), Some(since)) => {
            all = state.tree.after(since).ok_or_else(|| Failure::no_entry(since))?.collect();
            &mut all.into_iter()
        }
        (_, since) => {
            path = state.path();
            let from = match since {
                None => 0,
                Some(since) => match path.position(since) {
                    Some(place) => place + 1,
                    // The cursor is on a branch that was left: go on from where that branch leaves the path.
                    None => after_fork(state, path, since)?,
                },
            };
            &mut path[from..].iter()
        }
    };
    let wanted = |entry: &&Arc<Entry>| params.types.as_ref().is_none_or(|types| types.contains(&entry.kind));
    let limit = params.limit.unwrap_or(PAGE).max(1);
    let max_bytes = params.max_bytes.unwrap_or(PAGE_BYTES);
    let mut page = Vec::new();
    let mut bytes = 0;
    let mut last = None;
    let mut next_cursor = None;
    for entry in in_order.filter(wanted) {
        if page.len() == limit || !page.is_empty() && bytes + entry.line().len() > max_bytes {
            next_cursor = last;
            break;
        }
        bytes += entry.line().len();
        last = Some(entry.id.clone());
        page.push(wire(entry));
    }
    Ok(EntriesAnswer { entries: page, leaf_entry_id: state.visible_leaf(), next_cursor })
}

/// The place on the path behind the last entry it shares with the branch of `id`.
fn after_fork(state: &State, path: &Path, id: &EntryId) -> Result<usize, Failure> {
    let branch = state.tree.path_to(id).ok_or_else(|| Failure::no_entry(id))?;
    Ok(path.iter().zip(branch.iter()).take_while(|(a, b)| Arc::ptr_eq(a, b)).count())
}

/// `session/entry`.
///
/// # Errors
/// When there is none.
pub fn entry(state: &State, params: &EntryParams) -> Result<EntryAnswer, Failure> {
    let found = state.tree.get(&params.entry_id).ok_or_else(|| Failure::no_entry(&params.entry_id))?;
    Ok(EntryAnswer { entry: wire(found) })
}

/// An entry as it goes onto the wire.
#[must_use]
pub fn wire(entry: &Entry) -> types::Entry {
    types::Entry(raw(entry.line()))
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(entry::one_line(json).into_owned()).expect("lines and messages were read as JSON")
}

fn path_at<'a>(state: &'a State, leaf: Option<&EntryId>) -> Result<Cow<'a, Path>, Failure> {
    match leaf {
        None => Ok(Cow::Borrowed(state.path())),
        Some(leaf) => state.tree.path_to(leaf).map(Cow::Owned).ok_or_else(|| Failure::no_entry(leaf)),
    }
}
