//! The batch of tool calls at the end of a path. It is kept while the path grows, so a session with a long batch does not
//! read all of its results for each of them.

use super::{entry::Entry, message::outline::Role};
use crate::ids::CallId;
use std::{collections::HashSet, sync::Arc};

/// The calls of the newest answer, and the results behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    open: HashSet<CallId>,
    has_results: bool,
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
        if !entry.in_context() {
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
            }
            _ => *self = Self::default(),
        }
    }

    /// Whether calls of the newest answer have no result yet.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the newest message is a tool result.
    #[must_use]
    pub fn has_results(&self) -> bool {
        self.has_results
    }
}
