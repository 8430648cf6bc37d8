//! Messages of the user that no model has read: a compaction that maintenance starts summarizes none of them while they fit.

use super::super::Open;
use crate::{
    conversation::{
        entry::{Body, Entry},
        message::outline::Role,
    },
    ids::EntryId,
    protocol::{
        events::Reason,
        types::{CompactionResult, SummaryMethod},
    },
    simulator::observer::{Rule, Verdict, file::File, require},
};
use std::sync::Arc;

/// The most tokens of a message that loses its middle: beginning, end, and the note between them.
const LEAST_OF_A_MESSAGE: u64 = 150;

/// Whether a compaction that completed leaves the messages that no model has read in the context. A client or a hook that names
/// the kept part may leave them out, and so may a compaction where their ends take half of the window.
pub(super) fn stays(open: &Open, reason: Reason, result: &CompactionResult, file: &File) -> Verdict {
    let place = open.announced.iter().copied().rev();
    let place = place.into_iter().find(|at| file.entry(*at).is_some_and(|it| Some(&it.id) == result.entry_id.as_ref()));
    let named = reason == Reason::Manual || result.method == SummaryMethod::Hook;
    let Some(place) = place.filter(|_| !named && !file.another_wrote()) else { return Ok(()) };
    let above: Vec<&Arc<Entry>> = file.above(Some(place)).collect();
    let first_kept = above[0].compaction().and_then(|compaction| compaction.first_kept_entry_id.as_ref());
    let kept = above.iter().position(|entry| Some(&entry.id) == first_kept).map_or(1, |last| last + 1);
    let unread = unread(&above[1..]);
    let is_pinned = |id: &EntryId| {
        above.iter().any(|entry| entry.ours("pin").is_some_and(|data| data["entryId"].as_str() == Some(id.as_str())))
    };
    let is_kept = |id: &EntryId| above[..kept].iter().any(|entry| entry.id == *id);
    let summarized = unread.iter().find(|entry| !is_kept(&entry.id) && !is_pinned(&entry.id));
    let least = unread.len() as u64 * LEAST_OF_A_MESSAGE;
    // A context that was refused is as large as the window at most.
    let window = if reason == Reason::Overflow { open.window.min(result.tokens_before) } else { open.window };
    require(summarized.is_none() || least > window / 2, Rule::UnreadStays, || {
        let summarized = summarized.map(|entry| &entry.id);
        format!("{:?} summarizes {summarized:?}, one of {} messages that no model has read", open.id, unread.len())
    })
}

/// The messages of the user after the last answer, newest first. `above`: a path, newest entry first.
fn unread<'a>(above: &[&'a Arc<Entry>]) -> Vec<&'a Arc<Entry>> {
    let (mut removed, mut undone): (Vec<&EntryId>, Vec<EntryId>) = (Vec::new(), Vec::new());
    let mut covered_before: Option<&EntryId> = None;
    let mut has_compaction = false;
    let mut unread = Vec::new();
    for entry in above {
        undone.extend(entry.undoes());
        match &entry.body {
            Body::ResetBoundary(_) => break,
            Body::ContextEdit(edit) if edit.replacement.is_none() => removed.push(&edit.target_id),
            Body::Compaction(compaction) if !has_compaction && !undone.contains(&entry.id) => {
                has_compaction = true;
                match &compaction.first_kept_entry_id {
                    Some(first) if *first != entry.id => covered_before = Some(first),
                    _ => break,
                }
            }
            _ if removed.contains(&&entry.id) => {}
            _ if entry.is_from(Role::User) => unread.push(*entry),
            _ if entry.outline().is_some_and(|it| it.role == Role::Assistant && !it.failed) => break,
            _ => {}
        }
        if covered_before == Some(&entry.id) {
            break;
        }
    }
    unread
}
