//! Maintenance since the last progress of a conversation. Progress is a good answer, or a message of the user.
//!
//! The attempts stand in the log, so a restart does not begin a series anew.

use super::{
    entry::{Attempts, Body, Entry},
    message::outline::Outline,
    path::{Path, Places},
};
use crate::ids::EntryId;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The failure that an attempt recovers from, as an `abridged.attempt` entry names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attempted {
    /// A request was too long.
    Overflow,
    /// An answer was cut off.
    Incomplete,
    /// Either of them, and a larger model was chosen.
    Promotion,
    /// Either of them, of a request with a context that is no more, or of another model. The turn was repeated as it is.
    Repeat,
}

/// The data of an `abridged.attempt` entry.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Attempt {
    /// The failure.
    pub reason: Attempted,
}

/// Entries that left the context.
#[derive(Default)]
struct Removed<'a> {
    all: HashSet<&'a EntryId>,
    /// Those that were not looked up yet.
    new: Vec<&'a EntryId>,
    /// The place of the first one that is progress, of those that were looked up.
    first: Option<usize>,
}

impl<'a> Removed<'a> {
    fn add(&mut self, id: &'a EntryId) {
        self.all.insert(id);
        self.new.push(id);
    }

    /// The place of the first one that is progress.
    fn first_progress(&mut self, places: &Places<'_>) -> Option<usize> {
        for id in self.new.drain(..) {
            let progress = places.entry(id).filter(|entry| is_progress(entry));
            let place = progress.and_then(|_| places.of_entry(id));
            self.first = [self.first, place].into_iter().flatten().min();
        }
        self.first
    }
}

impl Attempts {
    /// The attempts at the leaf of a path. A compaction carries those before it.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        if path.batch().follows_progress() {
            // A long batch is not searched.
            return Self::default();
        }
        Self::counted(path, Removed::default())
    }

    /// The attempts before an answer that is about to leave the context. It is no progress.
    #[must_use]
    pub fn before(path: &Path, answer: &EntryId) -> Self {
        let mut removed = Removed::default();
        removed.add(answer);
        Self::counted(path, removed)
    }

    fn counted<'a>(path: &'a Path, mut removed: Removed<'a>) -> Self {
        let (mut attempts, mut least, places) = (Self::default(), Self::default(), path.places());
        for (place, entry) in path.iter().enumerate().rev() {
            match &entry.body {
                Body::ResetBoundary(_) => break,
                // Those after the one in force were undone.
                Body::Compaction(compaction) if path.compaction().is_some_and(|in_force| place <= in_force) => {
                    attempts.compactions += 1;
                    // An answer that was no progress after all may have hidden attempts when the compaction was written.
                    let hidden = removed.first_progress(&places).is_some_and(|answer| answer < place);
                    if let Some(before) = compaction.preserved().map(|preserved| preserved.attempts) {
                        least = least.largest(attempts.plus(before));
                        if !hidden {
                            break;
                        }
                    }
                }
                Body::ContextEdit(edit) if edit.replacement.is_none() => removed.add(&edit.target_id),
                _ if is_progress(entry) && !removed.all.contains(&entry.id) => break,
                _ => attempts.add(entry),
            }
        }
        attempts.largest(least)
    }

    fn plus(self, other: Self) -> Self {
        self.with(other, u32::saturating_add)
    }

    /// The larger count of each kind. A path lacks entries that a compaction covers.
    fn largest(self, other: Self) -> Self {
        self.with(other, u32::max)
    }

    fn with(self, other: Self, count: impl Fn(u32, u32) -> u32) -> Self {
        Self {
            overflow: count(self.overflow, other.overflow),
            incomplete: count(self.incomplete, other.incomplete),
            compactions: count(self.compactions, other.compactions),
            promotions: count(self.promotions, other.promotions),
            repeats: count(self.repeats, other.repeats),
        }
    }

    fn add(&mut self, entry: &Entry) {
        match entry.ours("attempt").and_then(|data| Attempt::deserialize(data).ok()) {
            Some(Attempt { reason: Attempted::Overflow }) => self.overflow += 1,
            Some(Attempt { reason: Attempted::Incomplete }) => self.incomplete += 1,
            Some(Attempt { reason: Attempted::Promotion }) => self.promotions += 1,
            Some(Attempt { reason: Attempted::Repeat }) => self.repeats += 1,
            None => {}
        }
    }

    /// The number of maintenances. Most attempts are followed by a compaction.
    #[must_use]
    pub fn all(&self) -> u32 {
        self.compactions.max(self.recoveries())
    }

    /// The number of attempts to recover with the same model.
    #[must_use]
    pub fn recoveries(&self) -> u32 {
        self.overflow.saturating_add(self.incomplete)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

fn is_progress(entry: &Entry) -> bool {
    entry.outline().is_some_and(Outline::is_progress)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn attempts(lines: &[Value]) -> Attempts {
        Attempts::of(&path(lines))
    }

    fn path(lines: &[Value]) -> Path {
        let mut parent = Value::Null;
        let entries = lines.iter().enumerate().map(|(at, line)| {
            let mut line = line.clone();
            let id = format!("e{at}");
            line["id"] = json!(id);
            line["parentId"] = std::mem::replace(&mut parent, json!(id));
            line["timestamp"] = json!("2026-01-01T00:00:00.000Z");
            if let Some(Value::Object(ours)) = line.pointer_mut("/preserveData/abridged") {
                ours.insert("entryId".to_owned(), json!(id));
            }
            Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
        });
        let entries: Vec<Arc<Entry>> = entries.collect();
        let path = Path::of(&entries);
        let mut grown = Path::default();
        entries.iter().for_each(|entry| grown.push(entry.clone()));
        assert_eq!(Attempts::of(&path), Attempts::of(&grown), "a path that is read and a path that grows");
        assert_eq!(Attempts::of(&path), Attempts::counted(&path, Removed::default()), "with and without the batch");
        path
    }

    fn user() -> Value {
        json!({"type": "message", "message": {"role": "user", "content": "go", "timestamp": 1}})
    }

    fn answer(stop: &str) -> Value {
        json!({"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": "x"}],
            "stopReason": stop, "timestamp": 1}})
    }

    fn call() -> Value {
        let mut call = cut_in_call();
        call["message"]["stopReason"] = "toolUse".into();
        call
    }

    fn result() -> Value {
        json!({"type": "message", "message": {"role": "toolResult", "toolCallId": "c", "toolName": "read",
            "content": "x", "isError": false, "timestamp": 1}})
    }

    fn cut_in_call() -> Value {
        let mut answer = answer("length");
        answer["message"]["content"] = json!([{"type": "toolCall", "id": "c", "name": "read", "arguments": {}}]);
        answer
    }

    fn cut_before_any_text() -> Value {
        let mut answer = answer("length");
        answer["message"]["content"] = json!([{"type": "text", "text": ""}]);
        answer
    }

    fn attempt(reason: &str) -> Value {
        json!({"type": "custom", "customType": "abridged.attempt", "data": {"reason": reason}})
    }

    fn edit(target: &str, replacement: Value) -> Value {
        json!({"type": "context_edit", "targetId": target, "replacement": replacement})
    }

    fn compaction(attempts: Value) -> Value {
        json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "e0", "tokensBefore": 1,
            "preserveData": {"abridged": {"attempts": attempts}}})
    }

    #[test]
    fn attempts_count_from_the_last_progress() {
        let failed = answer("error");
        let empty = json!({"type": "message", "message": {"role": "assistant", "content": [], "stopReason": "stop",
            "timestamp": 1}});
        for (lines, expected) in [
            (vec![user(), failed.clone(), attempt("overflow")], (1, 0, 0)),
            (vec![user(), failed.clone(), attempt("overflow"), attempt("incomplete"), failed.clone()], (1, 1, 0)),
            (vec![attempt("overflow"), user(), failed.clone(), attempt("overflow")], (1, 0, 0)),
            (vec![user(), attempt("overflow"), answer("stop")], (0, 0, 0)),
            (vec![user(), attempt("incomplete"), answer("length"), edit("e2", Value::Null)], (0, 1, 0)),
            (vec![user(), attempt("incomplete"), answer("length"), edit("e2", json!({"content": "x"}))], (0, 0, 0)),
            (vec![user(), attempt("unknown")], (0, 0, 0)),
            (vec![user(), attempt("overflow"), call(), result()], (0, 0, 0)),
            (vec![user(), call(), result(), attempt("overflow")], (1, 0, 0)),
            (vec![user(), attempt("overflow"), call(), result(), edit("e2", Value::Null)], (1, 0, 0)),
            (vec![user(), attempt("overflow"), cut_in_call(), result()], (1, 0, 0)),
            (vec![user(), attempt("incomplete"), answer("length")], (0, 0, 0)),
            (vec![user(), attempt("incomplete"), cut_in_call()], (0, 1, 0)),
            (vec![user(), attempt("incomplete"), cut_before_any_text()], (0, 1, 0)),
            (vec![user(), attempt("overflow"), empty], (1, 0, 0)),
            (vec![attempt("overflow"), json!({"type": "reset_boundary"}), attempt("overflow")], (1, 0, 0)),
        ] {
            let found = attempts(&lines);
            assert_eq!((found.overflow, found.incomplete, found.compactions), expected, "{lines:?}");
        }
    }

    #[test]
    fn an_answer_that_is_about_to_be_removed_is_no_progress() {
        let path = path(&[user(), attempt("incomplete"), answer("length")]);
        assert!(Attempts::of(&path).is_none());
        assert_eq!(Attempts::before(&path, &"e2".into()).incomplete, 1);
        assert!(Attempts::before(&path, &"e1".into()).is_none());
    }

    #[test]
    fn an_answer_that_is_removed_behind_a_compaction_hides_no_attempt_before_it() {
        let lines = [user(), attempt("incomplete"), answer("length"), compaction(json!({})), edit("e2", Value::Null)];
        for (count, expected) in [(4, (0, 1)), (5, (1, 1))] {
            let found = attempts(&lines[..count]);
            assert_eq!((found.incomplete, found.compactions), expected, "{count} lines");
        }
        let covered = [answer("length"), compaction(json!({"overflow": 1})), edit("e0", Value::Null)];
        let found = attempts(&covered);
        assert_eq!((found.overflow, found.compactions), (1, 1), "the entries before the answer are not there");
        let later = [compaction(json!({"incomplete": 2})), answer("length"), edit("e1", Value::Null)];
        let found = attempts(&later);
        assert_eq!((found.incomplete, found.compactions), (2, 1), "the answer is newer than the compaction");
    }

    #[test]
    fn a_compaction_carries_the_attempts_before_it() {
        let before = json!({"overflow": 1, "incomplete": 1, "compactions": 3});
        let found = attempts(&[user(), attempt("overflow"), compaction(before), attempt("overflow")]);
        assert_eq!((found.overflow, found.incomplete, found.compactions), (2, 1, 4));
        assert_eq!(found.all(), 4);
        assert_eq!(Attempts { compactions: 1, ..found }.all(), 3);
        let found = attempts(&[user(), compaction(json!({"promotions": 1})), attempt("promotion")]);
        assert_eq!((found.promotions, found.all()), (2, 1), "a move to a larger model is no maintenance");
        let undone = json!({"type": "custom", "customType": "abridged.undo", "data": {"compactionEntryId": "e2"}});
        let found = attempts(&[user(), attempt("overflow"), compaction(json!({})), undone.clone()]);
        assert_eq!((found.overflow, found.compactions), (1, 0));
        let in_force = compaction(json!({"overflow": 1}));
        let found = attempts(&[user(), in_force, compaction(json!({"overflow": 2})), undone]);
        assert_eq!((found.overflow, found.compactions), (1, 1), "only the one in force counts");
    }
}
