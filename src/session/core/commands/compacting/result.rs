//! The result of a compaction, as its end event and its answer carry it.

use crate::{
    compaction::draft::Draft,
    conversation::entry::{self, Entry},
    protocol::types::{CompactionResult, Extent, MessageUsage, Saved, ShortenedEntry},
    wire::transport::escaped_len,
};

/// The largest result that is sent with its summary, in bytes of JSON. The frame around it takes up to 2 KiB more, and no
/// frame may pass 60 KiB.
const LARGEST_RESULT: usize = 58 * 1024;

/// The result of a written compaction, as it is sent. Where the frame would be too large, the summary is left out, then as
/// much else as needed.
#[must_use]
pub fn sent(entry: &Entry, draft: &Draft) -> Option<Box<CompactionResult>> {
    whole(entry, draft).map(within_a_frame)
}

/// The result of a compaction, whole.
#[must_use]
pub fn whole(entry: &Entry, draft: &Draft) -> Option<Box<CompactionResult>> {
    let (entry_id, made, scale) = (&entry.id, draft.origin(), draft.plan.demand.scale);
    let compaction = entry.compaction()?;
    let first_kept = compaction.first_kept_entry_id.clone().filter(|id| id != entry_id);
    let tokens_after = serde_json::from_str::<serde_json::Value>(entry.line()).ok()?["tokensAfter"].as_u64()?;
    Some(Box::new(CompactionResult {
        entry_id: Some(entry_id.clone()),
        summary: Some(compaction.summary.clone()),
        short_summary: compaction.short_summary.clone(),
        first_kept_entry_id: first_kept,
        tokens_before: compaction.tokens_before() as u64,
        tokens_after,
        details: compaction.details.as_ref().map(entry::Unparsed::read).unwrap_or_default(),
        from_hook: compaction.from_hook(),
        method: made.method,
        saved: made.requests(None).and_then(Saved::of),
        model: made.by,
        form: made.form,
        parts: made.parts.map(|parts| *parts),
        rejected: made.rejected,
        usage: made.usage.map(MessageUsage::from),
        covered: Extent::of(draft.plan.summarized(), scale),
        kept: Extent::of(draft.plan.kept(), scale),
        lost: draft.lost.as_deref().cloned(),
        shortened: draft.shortened.iter().map(ShortenedEntry::from).collect(),
        rehydration: draft.rehydrated.as_deref().cloned(),
    }))
}

/// The result without the parts that would make its frame too large.
fn within_a_frame(mut result: Box<CompactionResult>) -> Box<CompactionResult> {
    let too_large = |result: &CompactionResult| escaped_len(entry::raw(result).get()) > LARGEST_RESULT;
    if too_large(&result) {
        result.summary = None;
    }
    if too_large(&result) {
        result.lost = None;
    }
    while too_large(&result) && halve(&mut result.details) {}
    while too_large(&result) && result.rejected.pop().is_some() {}
    if too_large(&result) {
        // The details of a hook have any size.
        result.details = serde_json::Value::Null;
    }
    if too_large(&result) {
        result.short_summary = None;
    }
    if too_large(&result) {
        result.rehydration = None;
    }
    while too_large(&result) && !result.shortened.is_empty() {
        result.shortened.truncate(result.shortened.len() * 9 / 10);
    }
    result
}

/// Takes the older half out of each list of files; the entry has all of them. False where the lists are empty.
fn halve(details: &mut serde_json::Value) -> bool {
    let mut gone = false;
    for list in ["readFiles", "modifiedFiles"] {
        if let Some(files) = details.get_mut(list).and_then(serde_json::Value::as_array_mut) {
            gone |= !files.is_empty();
            files.drain(..files.len().div_ceil(2));
        }
    }
    gone
}
