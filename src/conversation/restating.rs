//! The compaction line by which other programs have the context of a path, where the lines of the path do not tell them: after
//! an undo and a reset, and for a compaction in a form that they do not read. This program reads such a line as no compaction.

use super::{
    entry::{Body, Entry, Mirror, Preserved, Stamps},
    path::Path,
};
use crate::ids::EntryId;
use serde_json::{Value, json};
use std::sync::Arc;

/// The summary of a compaction line that keeps every message.
const NOTHING_SUMMARIZED: &str = "A compaction of this conversation was undone. All of its messages follow.";

/// The summary of the compaction line after a reset.
pub const CLEARED: &str = "The conversation before this point was cleared. None of it is part of this context.";

/// The reason why other programs have another context.
#[derive(Debug, Clone, Copy)]
enum Reason<'a> {
    /// They see the last reset, and no line after it that hides what stands before.
    Reset(&'a EntryId),
    /// They see this compaction, which was undone.
    Undone(&'a Entry),
    /// They see the compaction in force, which has not the fields that they read.
    Unreadable(&'a Entry),
}

impl Reason<'_> {
    /// The state in the line.
    fn preserved(self) -> Preserved {
        match self {
            Self::Reset(id) => Preserved { reset: Some(id.clone()), ..Preserved::default() },
            Self::Undone(entry) | Self::Unreadable(entry) => {
                Preserved { undone: Some(entry.id.clone()), ..Preserved::default() }
            }
        }
    }
}

/// Whether other programs need such a line at the end of a path.
#[must_use]
pub fn is_needed(path: &Path) -> bool {
    reason(path).is_some()
}

fn reason(path: &Path) -> Option<Reason<'_>> {
    let is_theirs =
        |entry: &Arc<Entry>| matches!(entry.body, Body::Compaction(_) | Body::Mirror(Mirror::Compaction { .. }));
    let theirs = path.iter().rposition(is_theirs);
    let reset = path.reset();
    if let Some(place) = reset.filter(|place| theirs.is_none_or(|theirs| theirs < *place)) {
        return Some(Reason::Reset(&path[place].id));
    }
    let theirs = &path[theirs?];
    match &theirs.body {
        Body::Compaction(compaction) if path.compaction().is_some_and(|place| Arc::ptr_eq(&path[place], theirs)) => {
            (!compaction.is_read_by_others()).then_some(Reason::Unreadable(theirs))
        }
        Body::Mirror(Mirror::Compaction { first_kept: Some(first) }) => {
            let shown = [path.get(path.first_kept()), reset.map(|place| &path[place])];
            let is_right = shown.into_iter().flatten().any(|entry| entry.id == *first);
            let undone = path.iter().rfind(|entry| entry.compaction().is_some()).filter(|_| !is_right)?;
            Some(Reason::Undone(undone))
        }
        _ => Some(Reason::Undone(theirs)),
    }
}

/// The line that they need.
#[must_use]
pub fn restated(path: &Path, stamps: &mut Stamps) -> Option<Arc<Entry>> {
    let reason = reason(path)?;
    let stamp = stamps.stamp();
    let in_force = path.compaction().map(|place| &path[place]);
    let (mut line, first): (Value, _) = match (reason, in_force) {
        (Reason::Reset(id), _) => {
            let files = json!({ "readFiles": [], "modifiedFiles": [] });
            (json!({ "type": "compaction", "summary": CLEARED, "tokensBefore": 0, "details": files }), Some(id))
        }
        (_, Some(entry)) => {
            (serde_json::from_str(entry.line()).ok()?, path.get(path.first_kept()).map(|entry| &entry.id))
        }
        (Reason::Undone(entry) | Reason::Unreadable(entry), None) => {
            let before = entry.compaction().map_or(0, |it| it.tokens_before() as u64);
            let line = json!({ "type": "compaction", "summary": NOTHING_SUMMARIZED, "tokensBefore": before });
            (line, path.get(path.first_kept()).map(|entry| &entry.id))
        }
    };
    let fields = line.as_object_mut()?;
    // It was paid for once.
    ["usage", "keepLastMessages"].iter().for_each(|name| drop(fields.remove(*name)));
    fields.entry("tokensBefore").or_insert(0.into());
    fields.insert("id".into(), json!(stamp.id));
    fields.insert("parentId".into(), json!(path.last().map(|leaf| &leaf.id)));
    fields.insert("timestamp".into(), stamp.timestamp.into());
    fields.insert("firstKeptEntryId".into(), json!(first));
    // pi drops the system messages before a compaction and reads this one.
    match path.system_prompt().message() {
        Some(message) => drop(fields.insert("systemMessage".into(), message)),
        None => drop(fields.remove("systemMessage")),
    }
    let mut data = match fields.remove("preserveData") {
        Some(Value::Object(data)) => data,
        _ => serde_json::Map::new(),
    };
    if data.contains_key("openaiRemoteCompaction") && !fields.contains_key("providerReplayThroughEntryId") {
        // The history has the kept part too. oh-my-pi shows it, and what stands after this entry.
        fields.insert("providerReplayThroughEntryId".into(), json!(in_force.map(|entry| &entry.id)));
    }
    data.insert("abridged".into(), reason.preserved().of_entry(&stamp.id));
    fields.insert("preserveData".into(), data.into());
    Entry::parse(line.to_string().into()).ok().map(Arc::new)
}
