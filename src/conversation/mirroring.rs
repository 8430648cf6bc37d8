//! Entries for other programs, after the entries that make them necessary and in the same write.

use crate::{
    conversation::{
        context::others::{self, Lacking},
        entry::{self, CARRIED, Entry, Mark, Stamp, Stamps},
        path::Path,
        restating,
    },
    ids::EntryId,
    prompts::Prompts,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// The entries that other programs lack after the end of a path, each the child of the one before.
#[must_use]
pub fn mirrors(path: &Path, prompts: &Prompts, stamps: &mut Stamps) -> Vec<Arc<Entry>> {
    let restated = restating::restated(path, stamps);
    let grown = restated.clone().map(|entry| path.with(entry));
    let path = grown.as_ref().unwrap_or(path);
    let mut parent = path.last().map(|leaf| leaf.id.clone());
    let mut entries: Vec<_> = restated.into_iter().collect();
    for lacking in others::lacking(path, prompts) {
        let (kind, fields) = match lacking {
            Lacking::Edit { edit, compaction } => (
                "context_edit",
                vec![
                    ("targetId", json!(edit.target_id)),
                    ("replacement", json!(edit.replacement)),
                    ("abridged", json!(Mark { compaction_entry_id: compaction })),
                ],
            ),
            Lacking::Carried { of, text } => (
                "custom_message",
                vec![
                    ("customType", CARRIED.into()),
                    ("content", text.into()),
                    ("display", false.into()),
                    ("details", json!({ "entryId": of })),
                ],
            ),
        };
        // Our own lines are always entries; one that is none would only be missing for others.
        let Some(entry) = entry_of(kind, &stamps.stamp(), parent.as_ref(), &fields) else { continue };
        parent = Some(entry.id.clone());
        entries.push(entry);
    }
    entries
}

/// Whether other programs may lack a line after entries that go after a path. Cheap, except after a rewrite of the path
/// and where a result comes that no call waits for.
#[must_use]
pub fn may_be_needed(path: &Path, entries: &[Arc<Entry>], prompts: &Prompts) -> bool {
    let is_lacking = || restating::is_needed(path) || !others::lacking(path, prompts).is_empty();
    path.lacks_lines(is_lacking) || others::has_stray_results(path, entries) || others::may_lack_texts(path, prompts)
}

/// Adds to entries that go after a path those that other programs lack then.
#[must_use]
pub fn with_mirrors(path: &Path, entries: &[Arc<Entry>], prompts: &Prompts, stamps: &mut Stamps) -> Vec<Arc<Entry>> {
    let mut grown = path.clone();
    entries.iter().for_each(|entry| grown.push(entry.clone()));
    mirrors(&grown, prompts, stamps)
}

/// A new entry after `parent`.
pub fn entry_of(kind: &str, stamp: &Stamp, parent: Option<&EntryId>, fields: &[(&str, Value)]) -> Option<Arc<Entry>> {
    let raw: Vec<_> = fields.iter().map(|(name, value)| (*name, entry::raw(value))).collect();
    let fields: Vec<_> = raw.iter().map(|(name, value)| (*name, &**value)).collect();
    let line = entry::line(kind, stamp, parent, &fields);
    Entry::parse(line.into()).ok().map(Arc::new)
}
