//! Undoes a compaction for every reader of the file. Here a marker does; other programs know none.
//!
//! The marker is the first line of an undo, and the undo is complete with it. The lines after it are for other programs.
//! A write may end between two lines, so no line after the marker carries state of this session.
//!
//! Where only lines without state follow the compaction, the marker is a child of the compaction's parent, and the
//! compaction leaves the path. Where messages, pins or settings follow, the marker is a child of the leaf, and a second
//! compaction line repeats the context from before: that of the compaction before it, or all messages. This program
//! reads that line as no compaction.
//!
//! A reset is undone in the first way alone: oh-my-pi reads no line that takes back a `reset_boundary` on its path.

use crate::{
    conversation::{
        entry::{Body, Entry, Stamps},
        mirroring::{entry_of, mirrors},
        path::Path,
    },
    prompts::Prompts,
};
use serde_json::json;
use std::sync::Arc;

/// An undo that still needs the path without the compaction or the reset, which has to be read.
pub struct Undoing {
    marker: Arc<Entry>,
    prompts: Arc<Prompts>,
}

/// Whether a path has a compaction or a reset that can be undone. One with which a session begins cannot.
#[must_use]
pub fn is_possible(path: &Path) -> bool {
    let Some(place) = path.foundation() else { return false };
    match path[place].preserved() {
        _ if path[place].compaction().is_none() => path[place + 1..].iter().all(|entry| may_leave(entry)),
        preserved => !preserved.is_some_and(|ours| ours.begins_session),
    }
}

/// The kind of the entries after a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Followed {
    /// At least one message, pin, setting or other entry that has to stay on the path.
    ByState,
    /// Only entries that may leave the path, or none.
    ByNothing,
}

impl Undoing {
    /// The undo of the compaction in force, or of a reset that nothing with state follows; `None` without one.
    #[must_use]
    pub fn of(path: &Path, prompts: &Arc<Prompts>, stamps: &mut Stamps) -> Option<Self> {
        let place = path.foundation()?;
        let (undone, later) = (path[place].clone(), &path[place + 1..]);
        let followed = if later.iter().all(|entry| may_leave(entry)) { Followed::ByNothing } else { Followed::ByState };
        let parent = match followed {
            Followed::ByState => path.last().map(|leaf| leaf.id.clone()),
            Followed::ByNothing => undone.parent.clone(),
        };
        let (kind, data) = match (undone.compaction(), followed) {
            (Some(_), _) => ("abridged.undo", json!({ "compactionEntryId": undone.id })),
            // The leaf moves back. The context is the one from before the reset, so automatic maintenance goes on.
            (None, Followed::ByNothing) => ("abridged.leaf", json!({ "resetEntryId": undone.id })),
            (None, Followed::ByState) => return None,
        };
        let fields = [("customType", kind.into()), ("data", data)];
        let marker = entry_of("custom", &stamps.stamp(), parent.as_ref(), &fields)?;
        Some(Self { marker, prompts: prompts.clone() })
    }

    /// The entry by which the compaction or the reset is undone.
    #[must_use]
    pub fn marker(&self) -> &Arc<Entry> {
        &self.marker
    }

    /// Every entry of the undo, and the path that they make. `path` ends with the marker.
    #[must_use]
    pub fn complete(&self, path: Path, stamps: &mut Stamps) -> (Vec<Arc<Entry>>, Path) {
        let mut path = path;
        let mirrors = mirrors(&path, &self.prompts, stamps);
        mirrors.iter().for_each(|entry| path.push(entry.clone()));
        (std::iter::once(self.marker.clone()).chain(mirrors).collect(), path)
    }
}

/// Whether an entry after a compaction may leave the path together with it: a model does not see it, and it is no state
/// of the session.
fn may_leave(entry: &Entry) -> bool {
    matches!(entry.body, Body::Mirror(_)) || entry.records_request()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{conversation::entry::PLACEHOLDER, ids::EntryId};
    use serde_json::Value;

    /// A path of these lines, each the child of the one before.
    fn path(lines: &[Value]) -> Path {
        let mut parent = Value::Null;
        let mut entry = |line: &Value| {
            let mut line = line.clone();
            line["parentId"] = std::mem::replace(&mut parent, line["id"].clone());
            Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
        };
        Path::of(&lines.iter().map(&mut entry).collect::<Vec<_>>())
    }

    fn stamps() -> Stamps {
        Stamps::seeded(0, jiff::Timestamp::UNIX_EPOCH)
    }

    fn message(id: &str, role: &str, content: &str) -> Value {
        json!({"type": "message", "id": id, "message": {"role": role, "content": content}})
    }

    fn compaction(id: &str) -> Value {
        json!({"type": "compaction", "id": id, "summary": id, "tokensBefore": 9, "firstKeptEntryId": "none"})
    }

    /// The compaction line that an undo writes where a second compaction and two messages follow `lines`.
    fn restated(lines: &[Value]) -> Value {
        let later = [message("u8", "user", "more"), compaction("second"), message("u9", "user", "last")];
        let whole = path(&[lines, &later].concat());
        let mut stamps = stamps();
        let undoing = Undoing::of(&whole, &Arc::default(), &mut stamps).expect("a compaction");
        let (entries, _) = undoing.complete(whole.with(undoing.marker().clone()), &mut stamps);
        let mut lines = entries.iter().filter(|entry| entry.kind == "compaction").map(|entry| entry.line());
        serde_json::from_str(lines.next().expect("a compaction line")).expect("JSON")
    }

    #[test]
    fn a_seed_repeats_every_line_of_an_undo() {
        let later = [message("u2", "user", "b"), compaction("second"), message("u3", "user", "c")];
        let first = json!({"type": "compaction", "id": "first", "summary": "s", "firstKeptEntryId": "u1",
            "preserveData": {"abridged": {"entryId": "first", "edits": [{"targetId": "u1", "replacement": {"content": "short"}}]}}});
        let whole = path(&[&[message("u1", "user", "a"), first][..], &later].concat());
        let lines = |seed: u64| -> Vec<String> {
            let mut stamps = Stamps::seeded(seed, jiff::Timestamp::UNIX_EPOCH);
            let undoing = Undoing::of(&whole, &Arc::default(), &mut stamps).expect("a compaction");
            let (entries, _) = undoing.complete(whole.with(undoing.marker().clone()), &mut stamps);
            entries.iter().map(|entry| entry.line().to_owned()).collect()
        };
        let ids = |lines: &[String]| {
            lines.iter().map(|line| Entry::parse(line.as_str().into()).expect("an entry").id).collect::<Vec<_>>()
        };
        assert_eq!(lines(7), lines(7));
        let mut expected = Stamps::seeded(7, jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(ids(&lines(7)), [expected.stamp().id, expected.stamp().id, expected.stamp().id]);
        assert!(lines(7).iter().all(|line| line.contains(r#""timestamp":"1970-01-01T00:00:00.000Z""#)));
    }

    #[test]
    fn the_repeated_compaction_has_no_cost_and_counts_no_messages() {
        let mut first = compaction("first");
        first.as_object_mut().expect("an object").remove("firstKeptEntryId");
        first["usage"] = json!({"input": 5});
        first["keepLastMessages"] = json!(1);
        let line = restated(&[message("u1", "user", "a"), message("u2", "user", "b"), first]);
        assert_eq!((&line["usage"], &line["keepLastMessages"]), (&Value::Null, &Value::Null));
        assert_eq!((&line["summary"], &line["firstKeptEntryId"]), (&json!("first"), &json!("u2")));
    }

    #[test]
    fn the_repeated_compaction_has_the_system_message_of_the_leaf() {
        let mut first = compaction("first");
        first["systemMessage"] = json!({"role": "system", "content": "", "sections": {"date": "Monday"}});
        let change = |section: Value| json!({"type": "message", "id": "s", "message": {"role": "system", "content": "", "sections": {"date": section}}});
        let line = restated(&[first.clone(), change(json!("Tuesday"))]);
        assert_eq!(line["systemMessage"]["sections"], json!({"date": "Tuesday"}));
        let line = restated(&[first, change(Value::Null)]);
        assert_eq!(line.get("systemMessage"), None, "the only section was removed");
        let line = restated(&[message("s", "system", "Be brief.")]);
        assert_eq!(line["systemMessage"]["content"], "Be brief.", "no compaction is before the one that is undone");
    }

    #[test]
    fn the_history_of_a_provider_is_replayed_up_to_the_compaction_that_is_repeated() {
        let mut first = compaction("first");
        first["preserveData"] = json!({"openaiRemoteCompaction": {"provider": "openai", "replacementHistory": []}});
        let line = restated(&[message("u1", "user", "a"), first]);
        assert_eq!(line["providerReplayThroughEntryId"], "first");
        assert_eq!(line["preserveData"]["openaiRemoteCompaction"]["provider"], "openai");
        let mut first = compaction("first");
        first["preserveData"] = json!({"openaiRemoteCompaction": {"provider": "openai", "replacementHistory": []}});
        first["providerReplayThroughEntryId"] = json!("u1");
        let line = restated(&[message("u1", "user", "a"), first]);
        assert_eq!(line["providerReplayThroughEntryId"], "u1", "the entries behind that one are no part of it");
        let line = restated(&[message("u1", "user", "a"), compaction("first")]);
        assert_eq!(line.get("providerReplayThroughEntryId"), None);
    }

    #[test]
    fn a_broken_line_stays_on_the_path_of_an_undo() {
        let parent = |last: Option<Value>| {
            let lines = [message("u1", "user", "a"), compaction("c")].into_iter().chain(last);
            let path = path(&lines.collect::<Vec<_>>());
            Undoing::of(&path, &Arc::default(), &mut stamps()).expect("a compaction").marker().parent.clone()
        };
        let id = |id: &str| Some(EntryId::from(id));
        assert_eq!(parent(None), id("u1"));
        assert_eq!(parent(Some(json!({"type": "usage", "id": "n"}))), id("u1"));
        let broken = json!({"type": "custom", "id": "broken", "customType": PLACEHOLDER, "data": {}});
        assert_eq!(parent(Some(broken)), id("broken"));
    }
}
