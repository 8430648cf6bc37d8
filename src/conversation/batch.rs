//! The batch of tool calls at the end of a path. It is kept while the path grows, so a session with a long batch does not
//! read all of its results for each of them.

use super::{
    entry::{Body, Entry},
    message::outline::Role,
};
use crate::ids::{CallId, EntryId};
use std::{collections::HashSet, sync::Arc};

/// The calls of the newest answer, and the results after it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    open: HashSet<CallId>,
    has_results: bool,
    /// The newest answer.
    answer: Option<EntryId>,
    /// Whether that answer is progress, and nothing but results and records follow it.
    follows_progress: bool,
}

impl Batch {
    /// The batch at the end of these entries.
    #[must_use]
    pub fn at_end_of(entries: &[Arc<Entry>]) -> Self {
        let is_result = |entry: &Entry| entry.outline().is_some_and(|outline| outline.role == Role::ToolResult);
        let first = entries.iter().rposition(|entry| entry.in_context() && !is_result(entry)).unwrap_or(0);
        let mut batch = Self::default();
        entries[first..].iter().for_each(|entry| batch.push(entry));
        batch
    }

    /// Goes on with an entry. A message that is no result closes the calls before it.
    pub fn push(&mut self, entry: &Entry) {
        if let Body::ContextEdit(edit) = &entry.body
            && edit.replacement.is_none()
            && self.answer.as_ref() == Some(&edit.target_id)
        {
            // The calls leave the context with their answer.
            *self = Self::default();
        }
        if !entry.in_context() {
            let is_record = entry.records_request() || entry.tells_of_request();
            self.follows_progress &= is_record;
            return;
        }
        match entry.outline() {
            Some(outline) if outline.role == Role::ToolResult => {
                if let Some(call) = &outline.answers {
                    self.open.remove(call);
                    self.has_results = true;
                }
            }
            Some(outline) if outline.role == Role::Assistant && !outline.failed => {
                self.open = outline.calls.iter().map(|call| call.id.clone()).collect();
                self.has_results = false;
                self.answer = Some(entry.id.clone());
                self.follows_progress = outline.is_progress();
            }
            _ => *self = Self::default(),
        }
    }

    /// Whether an entry is a result that no call of the newest answer waits for.
    #[must_use]
    pub fn is_stray(&self, entry: &Entry) -> bool {
        let answers = |call: Option<&CallId>| call.is_some_and(|call| self.open.contains(call));
        entry.outline().is_some_and(|outline| outline.role == Role::ToolResult && !answers(outline.answers.as_ref()))
    }

    /// The newest answer, where nothing but results and records follow it.
    #[must_use]
    pub fn answer(&self) -> Option<&EntryId> {
        self.answer.as_ref()
    }

    /// Whether calls of the newest answer have no result yet.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the newest answer is progress, and nothing but results and records follow it.
    #[must_use]
    pub fn follows_progress(&self) -> bool {
        self.follows_progress
    }

    /// Whether the newest message is a tool result.
    #[must_use]
    pub fn has_results(&self) -> bool {
        self.has_results
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn batch(lines: &[Value]) -> Batch {
        let entry = |(at, line): (usize, &Value)| {
            let mut line = line.clone();
            (line["id"], line["timestamp"]) = (format!("e{at}").into(), "2026-01-01T00:00:00.000Z".into());
            Arc::new(Entry::parse(line.to_string().into()).expect("an entry"))
        };
        Batch::at_end_of(&lines.iter().enumerate().map(entry).collect::<Vec<_>>())
    }

    #[test]
    fn an_answer_behind_results_begins_a_batch_of_its_own() {
        let answer = |calls: &[Value]| json!({"type": "message", "message": {"role": "assistant", "content": calls, "timestamp": 1}});
        let call = json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {}});
        let result = json!({"type": "message", "message": {"role": "toolResult", "toolCallId": "c", "toolName": "read",
            "content": [], "timestamp": 1}});
        let mut batch = batch(&[answer(&[call]), result]);
        assert!(batch.has_results() && !batch.is_open());
        let mut last = answer(&[]);
        (last["id"], last["timestamp"]) = ("last".into(), "2026-01-01T00:00:00.000Z".into());
        batch.push(&Entry::parse(last.to_string().into()).expect("an entry"));
        assert!(!batch.has_results(), "the newest message is an answer");
    }

    #[test]
    fn the_calls_of_an_answer_leave_with_it() {
        let user = json!({"type": "message", "message": {"role": "user", "content": "go", "timestamp": 1}});
        let call = json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {}});
        let message = json!({"role": "assistant", "content": [call], "stopReason": "length", "timestamp": 1});
        let answer = json!({"type": "message", "message": message});
        let edit = |target: &str, replacement: Value| json!({"type": "context_edit", "targetId": target, "replacement": replacement});
        for (behind, is_open) in [
            (edit("e1", Value::Null), false),
            (edit("e0", Value::Null), true),
            (edit("e1", json!({"content": "x"})), true),
        ] {
            let found = batch(&[user.clone(), answer.clone(), behind.clone()]);
            assert_eq!(found.is_open(), is_open, "{behind}");
        }
    }
}
