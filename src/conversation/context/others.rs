//! The view of other programs on a path: pi's rules for a context, as far as lines of ours have to be added for it.
//!
//! pi shows the entries from the first kept one of the last compaction on, each with its latest `context_edit` there.
//! It knows no pins, no undo and nothing that a compaction of ours carries. `lacking` compares that with the context
//! here and names the lines that make the two say the same. oh-my-pi follows the same rules without edits.

use super::{carried_frame, edits, is_sent, loaded_frame, texts_of_pins, todos_frame, user_messages};
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
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// A line that other programs lack.
#[derive(Debug, Clone)]
pub enum Lacking {
    /// A `context_edit`; with the compaction that carries it, where one does.
    Edit { edit: ContextEdit, compaction: Option<EntryId> },
    /// A `custom_message` that repeats the text of an entry before the cut.
    Carried { of: EntryId, text: String },
}

/// The lines that other programs lack after the end of a path.
#[must_use]
pub fn lacking(path: &Path, prompts: &Prompts) -> Vec<Lacking> {
    let compaction = path.compaction();
    let shown = shown(path);
    let pinned = path.pinned();
    let wanted = edits(path, compaction);
    let seen = seen_edits(shown);
    let carrier = Carrier::of(path, compaction);
    let mut lines = Vec::new();

    let mut carried = Carried::of(carried(path, compaction, prompts));
    let mut waiting = WaitingCalls::default();
    for entry in shown {
        let seen = seen.get(&entry.id).map(Option::as_ref);
        if let Body::Mirror(Mirror::Carried { of }) = &entry.body {
            let wanted = match carried.takes(of, content(entry)) {
                true => {
                    waiting = WaitingCalls::default();
                    None
                }
                false => Some(None),
            };
            lines.extend(edit(entry, seen, wanted, None));
        } else if is_sent(entry) {
            let wanted = match wanted.get(&entry.id) {
                // A pinned text stays as it is.
                Some(Some(_)) if pinned.contains(&entry.id) => None,
                wanted => wanted.copied(),
            };
            let is_left_out = matches!(wanted, Some(None));
            if !is_left_out && !waiting.may_follow(entry, wanted.flatten()) {
                lines.extend(edit(entry, seen, Some(None), None));
            } else {
                lines.extend(edit(entry, seen, wanted, carrier.of_edit(&entry.id)));
            }
        }
    }
    // A text between a call and its results would make every later request invalid.
    if !awaits_results(path) {
        lines.extend(carried.rest().map(|(of, text)| Lacking::Carried { of, text }));
    }
    lines
}

/// The calls of the newest answer that still wait for their results. pi sends a result where it stands in the file: after
/// anything but its call and other results it would be refused.
#[derive(Default)]
struct WaitingCalls(HashMap<CallId, usize>);

impl WaitingCalls {
    /// Goes on with an entry that pi sends, perhaps with another content. False for a result that no call waits for.
    fn may_follow(&mut self, entry: &Entry, replacement: Option<&Replacement>) -> bool {
        let Some(outline) = entry.outline() else {
            self.0.clear();
            return true;
        };
        match outline.role {
            Role::ToolResult => {
                let open = outline.answers.as_ref().and_then(|call| self.0.get_mut(call));
                open.filter(|open| **open > 0).map(|open| *open -= 1).is_some()
            }
            Role::Assistant if !outline.failed => {
                let left = replacement.map(calls_of);
                self.0.clear();
                for call in &outline.calls {
                    if left.as_ref().is_none_or(|left| left.contains(call.id.as_str())) {
                        *self.0.entry(call.id.clone()).or_default() += 1;
                    }
                }
                true
            }
            _ => {
                self.0.clear();
                true
            }
        }
    }
}

/// The ids of the calls in a content.
fn calls_of(replacement: &Replacement) -> HashSet<String> {
    let content = replacement.content.read();
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let calls = blocks.iter().filter(|block| block["type"] == "toolCall");
    calls.filter_map(|call| call["id"].as_str().map(str::to_owned)).collect()
}

/// Whether one of these entries, which go after a path, is a result that no call waits for.
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
        None => Some(Replacement { content: content(entry).unwrap_or_default().into() }),
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

/// The compaction in force, and the entries whose edits it carries.
#[derive(Default)]
struct Carrier<'a> {
    compaction: Option<&'a EntryId>,
    targets: HashSet<&'a EntryId>,
}

impl<'a> Carrier<'a> {
    fn of(path: &'a Path, compaction: Option<usize>) -> Self {
        let Some(entry) = compaction.map(|place| &path[place]) else { return Self::default() };
        let edits = entry.compaction().and_then(|it| it.preserved()).map(|it| it.edits.as_slice()).unwrap_or_default();
        Self { compaction: Some(&entry.id), targets: edits.iter().map(|edit| &edit.target_id).collect() }
    }

    /// The compaction, where it carries an edit of this entry.
    fn of_edit(&self, target: &EntryId) -> Option<EntryId> {
        self.compaction.filter(|_| self.targets.contains(target)).cloned()
    }
}

/// Texts that the summary's frame repeats here, while lines are looked for that repeat them for other programs.
struct Carried {
    texts: Vec<Option<(EntryId, String)>>,
    /// The places of the texts of an entry.
    of_entries: HashMap<EntryId, Vec<usize>>,
}

impl Carried {
    fn of(texts: Vec<(EntryId, String)>) -> Self {
        let mut of_entries: HashMap<EntryId, Vec<usize>> = HashMap::new();
        for (place, (id, _)) in texts.iter().enumerate() {
            of_entries.entry(id.clone()).or_default().push(place);
        }
        Self { texts: texts.into_iter().map(Some).collect(), of_entries }
    }

    /// Takes the text of an entry that is this content. False where there is none.
    fn takes(&mut self, of: &EntryId, content: Option<Value>) -> bool {
        let Some(places) = self.of_entries.get_mut(of) else { return false };
        let is_it = |place: &usize| match &self.texts[*place] {
            Some((_, text)) => content.as_ref().and_then(Value::as_str) == Some(text),
            None => false,
        };
        let Some(found) = places.iter().position(is_it) else { return false };
        self.texts[places.remove(found)] = None;
        true
    }

    /// The texts that were not taken, in their order.
    fn rest(self) -> impl Iterator<Item = (EntryId, String)> {
        self.texts.into_iter().flatten()
    }
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
        carried.extend(loaded_frame(path, place, pins, prompts));
        carried.extend(todos_frame(path, place, first_kept, prompts));
        carried.extend(carried_frame(path, place, first_kept, pins, prompts));
    }
    carried
}

/// Whether the newest answer has calls without a result, and nothing but results came since.
#[must_use]
pub fn awaits_results(path: &[Arc<Entry>]) -> bool {
    let mut answered: HashSet<&CallId> = HashSet::new();
    for entry in path.iter().rev() {
        match entry.outline() {
            // No context has a call from before it.
            None if matches!(entry.body, Body::ResetBoundary(_)) => return false,
            Some(outline) if outline.role == Role::ToolResult => answered.extend(&outline.answers),
            Some(outline) if outline.role == Role::Assistant && !outline.failed => {
                return outline.calls.iter().any(|call| !answered.contains(&call.id));
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
    let mut carried: HashSet<(EntryId, String)> = carried(path, path.compaction(), prompts).into_iter().collect();
    if carried.is_empty() {
        return false;
    }
    for entry in shown(path) {
        if let Body::Mirror(Mirror::Carried { of }) = &entry.body
            && let Some(Value::String(text)) = content(entry)
        {
            carried.remove(&(of.clone(), text));
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
