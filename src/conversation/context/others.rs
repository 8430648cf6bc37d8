//! The view of other programs on a path: pi's rules for a context, as far as lines of ours have to be added for it.
//!
//! pi shows the entries from the first kept one of the last compaction on, each with its latest `context_edit` there.
//! It knows no pins, no undo and nothing that a compaction of ours carries. `lacking` compares that with the context
//! here and names the lines that make the two say the same. oh-my-pi follows the same rules without edits.

use super::{carried_frame, edits, is_sent, texts_of_pins, todos_frame, user_messages};
use crate::{
    conversation::{
        entry::{Body, ContextEdit, Entry, Mirror, Replacement},
        message::outline::Role,
        path::Path,
    },
    ids::{CallId, EntryId},
    prompts::{Prompt, Prompts},
};
use serde_json::{Value, value::RawValue};
use std::{collections::HashMap, sync::Arc};

/// A line that other programs lack.
#[derive(Debug, Clone)]
pub enum Lacking {
    /// A `context_edit`; with the compaction that carries it, where one does.
    Edit { edit: ContextEdit, compaction: Option<EntryId> },
    /// A `custom_message` that repeats the text of an entry before the cut.
    Carried { of: EntryId, text: String },
}

/// The lines that other programs lack behind the end of a path.
#[must_use]
pub fn lacking(path: &Path, prompts: &Prompts) -> Vec<Lacking> {
    let compaction = path.compaction();
    let shown = shown(path);
    let pins = path.pins();
    let wanted = edits(path, compaction);
    let seen = seen_edits(shown);
    let mut lines = Vec::new();

    let mut carried = carried(path, compaction, prompts);
    let mut waiting = WaitingCalls::default();
    for entry in shown {
        let seen = seen.get(&entry.id).map(Option::as_ref);
        if let Body::Mirror(Mirror::Carried { of }) = &entry.body {
            let content = content(entry);
            let needed =
                carried.iter().position(|(id, text)| id == of && content.as_ref() == Some(&text.as_str().into()));
            let wanted = match needed {
                Some(at) => {
                    carried.remove(at);
                    waiting = WaitingCalls::default();
                    None
                }
                None => Some(None),
            };
            lines.extend(edit(entry, seen, wanted, None));
        } else if is_sent(entry) {
            let pinned = pins.iter().any(|pin| pin.entry == entry.id);
            let wanted = match wanted.get(&entry.id) {
                // A pinned text stays as it is.
                Some(Some(_)) if pinned => None,
                wanted => wanted.map(Option::as_ref),
            };
            let is_left_out = matches!(wanted, Some(None));
            if !is_left_out && !waiting.may_follow(entry, wanted.flatten()) {
                lines.extend(edit(entry, seen, Some(None), None));
            } else {
                lines.extend(edit(entry, seen, wanted, carrier(path, compaction, &entry.id)));
            }
        }
    }
    // A text between a call and its results would make every later request invalid.
    if !awaits_results(path) {
        lines.extend(carried.into_iter().map(|(of, text)| Lacking::Carried { of, text }));
    }
    lines
}

/// The calls of the newest answer that still wait for their results. pi sends a result where it stands in the file: behind
/// anything but its call and other results it would be refused.
#[derive(Default)]
struct WaitingCalls(Vec<CallId>);

impl WaitingCalls {
    /// Goes on with an entry that pi sends, perhaps with another content. False for a result that no call waits for.
    fn may_follow(&mut self, entry: &Entry, replacement: Option<&Replacement>) -> bool {
        let Some(outline) = entry.outline() else {
            self.0.clear();
            return true;
        };
        match outline.role {
            Role::ToolResult => {
                let place = self.0.iter().position(|call| Some(call) == outline.answers.as_ref());
                place.map(|place| self.0.swap_remove(place)).is_some()
            }
            Role::Assistant if !outline.failed => {
                let calls = outline.calls.iter().map(|call| call.id.clone());
                self.0 = calls.filter(|call| replacement.is_none_or(|it| has_call(it, call))).collect();
                true
            }
            _ => {
                self.0.clear();
                true
            }
        }
    }
}

/// Whether a content has the call with this id.
fn has_call(replacement: &Replacement, call: &CallId) -> bool {
    let blocks = replacement.content.as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().any(|block| block["type"] == "toolCall" && block["id"] == call.as_str())
}

/// Whether one of these entries, which go behind a path, is a result that no call waits for.
#[must_use]
pub fn has_stray_results(path: &Path, entries: &[Arc<Entry>]) -> bool {
    if !entries.iter().any(|entry| entry.is_from(Role::ToolResult)) {
        return false;
    }
    let mut batch = path.batch().clone();
    entries.iter().any(|entry| {
        let is_stray = batch.is_stray(entry);
        batch.push(entry);
        is_stray
    })
}

/// The entries that pi shows.
fn shown(path: &Path) -> &[Arc<Entry>] {
    let first_kept = |entry: &Arc<Entry>| match &entry.body {
        Body::Compaction(compaction) => Some(compaction.first_kept_entry_id.clone()),
        Body::Mirror(Mirror::Compaction { first_kept }) => Some(first_kept.clone()),
        _ => None,
    };
    let latest = path.iter().enumerate().rev().find_map(|(place, entry)| Some((place, first_kept(entry)?)));
    let Some((place, first_kept)) = latest else { return path };
    let kept = first_kept.and_then(|id| path[..place].iter().position(|entry| entry.id == id));
    &path[kept.unwrap_or(place)..]
}

/// The edits that pi applies to them: the latest for each target, of any program.
fn seen_edits(shown: &[Arc<Entry>]) -> HashMap<EntryId, Option<Replacement>> {
    let edit = |entry: &Arc<Entry>| match &entry.body {
        Body::ContextEdit(edit) | Body::Mirror(Mirror::Edit { edit, .. }) => {
            Some((edit.target_id.clone(), edit.replacement.clone()))
        }
        _ => None,
    };
    shown.iter().filter_map(edit).collect()
}

/// The line that brings an entry from the edit that pi sees to the one that is wanted; none where they are the same.
fn edit(
    entry: &Entry,
    seen: Option<Option<&Replacement>>,
    wanted: Option<Option<&Replacement>>,
    compaction: Option<EntryId>,
) -> Option<Lacking> {
    if seen.is_none() && wanted.is_none() {
        return None;
    }
    let replacement = match wanted {
        Some(replacement) => replacement.cloned(),
        // An entry without content of its own, such as a command, is shown whole despite an edit.
        None => Some(Replacement { content: content(entry).unwrap_or_default() }),
    };
    if seen.is_some_and(|seen| seen.map(|it| &it.content) == replacement.as_ref().map(|it| &it.content)) {
        return None;
    }
    let compaction = compaction.filter(|_| wanted.is_some());
    Some(Lacking::Edit { edit: ContextEdit { target_id: entry.id.clone(), replacement }, compaction })
}

/// The content of an entry as it stands in its line.
fn content(entry: &Entry) -> Option<Value> {
    #[derive(serde::Deserialize)]
    struct Content<'a> {
        #[serde(borrow)]
        content: &'a RawValue,
    }
    let json = entry.message_json().unwrap_or_else(|| entry.line());
    let content: Content<'_> = serde_json::from_str(json).ok()?;
    serde_json::from_str(content.content.get()).ok()
}

/// The compaction in force, where it carries an edit of this entry.
fn carrier(path: &Path, compaction: Option<usize>, target: &EntryId) -> Option<EntryId> {
    let entry = &path[compaction?];
    let edits = &entry.compaction()?.preserved()?.edits;
    edits.iter().any(|edit| edit.target_id == *target).then(|| entry.id.clone())
}

/// Texts that the summary's frame repeats here, each in its frame and with its entry.
fn carried(path: &Path, compaction: Option<usize>, prompts: &Prompts) -> Vec<(EntryId, String)> {
    if path.foundation().is_none() {
        return Vec::new();
    }
    let (first_kept, pins) = (path.first_kept(), path.pins());
    let framed = |(of, text): (EntryId, String)| (of, prompts.render(Prompt::PinnedContext, &[("pins", &text)]));
    let mut carried: Vec<_> = texts_of_pins(path, first_kept, pins).into_iter().map(framed).collect();
    if let Some(place) = compaction {
        carried.extend(user_messages(path, place, pins).map(|said| (said.entry_id.clone(), said.text.clone())));
        carried.extend(todos_frame(path, place, first_kept, prompts));
        carried.extend(carried_frame(path, place, first_kept, pins, prompts));
    }
    carried
}

/// Whether the newest answer has calls without a result, and nothing but results came since.
#[must_use]
pub fn awaits_results(path: &[Arc<Entry>]) -> bool {
    let mut answered: Vec<&CallId> = Vec::new();
    for entry in path.iter().rev() {
        match entry.outline() {
            // No context has a call from before it.
            None if matches!(entry.body, Body::ResetBoundary(_)) => return false,
            Some(outline) if outline.role == Role::ToolResult => answered.extend(&outline.answers),
            Some(outline) if outline.role == Role::Assistant && !outline.failed => {
                return outline.calls.iter().any(|call| !answered.contains(&&call.id));
            }
            None if !entry.in_context() => {}
            _ => return false,
        }
    }
    false
}

/// Whether other programs lack a text that was held back because calls had no results yet. Cheap where no text has to be
/// carried.
#[must_use]
pub fn may_lack_texts(path: &Path, prompts: &Prompts) -> bool {
    let mut carried = carried(path, path.compaction(), prompts);
    if carried.is_empty() {
        return false;
    }
    for entry in shown(path) {
        if let Body::Mirror(Mirror::Carried { of }) = &entry.body {
            let content = content(entry);
            carried.retain(|(id, text)| id != of || content.as_ref() != Some(&text.as_str().into()));
        }
    }
    !carried.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{context, entry::Stamps, mirroring};
    use serde_json::json;

    #[test]
    fn an_edit_that_restores_a_pinned_entry_holds_until_the_entry_is_unpinned() {
        let prompts = Prompts::default();
        let (mut path, mut stamps) = (Path::default(), Stamps::seeded(0, jiff::Timestamp::UNIX_EPOCH));
        // Adds a line and the lines that other programs lack then. Returns those lines and the context.
        let mut add = |line: Value| {
            path.push(Arc::new(Entry::parse(line.to_string().into()).expect("an entry")));
            let mirrors = mirroring::mirrors(&path, &prompts, &mut stamps);
            let lines =
                mirrors.iter().map(|entry| serde_json::from_str(entry.line()).expect("JSON")).collect::<Vec<Value>>();
            mirrors.into_iter().for_each(|entry| path.push(entry));
            let messages = context::build(&path, &prompts);
            let texts: String = messages.messages().iter().map(|message| message.message().text()).collect();
            (lines, texts)
        };
        let edits = json!([{"targetId": "r", "replacement": {"content": "[left out]"}}]);
        let pin = |kind: &str| json!({"type": "custom", "id": kind, "customType": kind, "data": {"entryId": "r"}});
        add(json!({"type": "message", "id": "r", "message": {"role": "user", "content": "Whole."}}));
        let (lines, texts) = add(
            json!({"type": "compaction", "id": "c", "summary": "s", "firstKeptEntryId": "r", "tokensBefore": 9, "preserveData": {"abridged": {"entryId": "c", "edits": edits}}}),
        );
        assert_eq!((lines.len(), &lines[0]["abridged"]), (1, &json!({"compactionEntryId": "c"})));
        assert!(texts.contains("[left out]"), "{texts}");
        let (lines, texts) = add(pin("abridged.pin"));
        assert_eq!((lines.len(), &lines[0]["replacement"]["content"]), (1, &json!("Whole.")));
        assert_eq!(lines[0]["abridged"], json!({}), "the compaction does not carry this edit");
        assert!(texts.contains("Whole."), "{texts}");
        let (_, texts) = add(pin("abridged.unpin"));
        assert!(texts.contains("[left out]"), "{texts}");
    }
}
