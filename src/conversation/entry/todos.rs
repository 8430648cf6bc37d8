//! The todo list of an agent, as a compaction carries it.

use crate::ids::EntryId;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The open tasks of an agent at a compaction.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CarriedTodos {
    /// The entry that changed the list last.
    pub entry_id: EntryId,
    /// The entry from which on the messages themselves tell the list. Missing where it is older than they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<EntryId>,
    /// The open tasks, in order.
    pub open: Vec<Todo>,
    /// Number of open tasks that are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// Number of tasks that are done.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub done: usize,
}

/// A task and its state.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Todo {
    /// The name by which its tool knows it, if it has one beside its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The task.
    pub text: String,
    /// Its state.
    pub state: TodoState,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    /// It is not begun, or waits for something.
    Open,
    /// It is under way.
    Doing,
    /// It is finished or was given up.
    Done,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl CarriedTodos {
    /// The list as lines, the form of a summary's tasks.
    #[must_use]
    pub fn lines(&self) -> String {
        let mut lines = String::new();
        for todo in &self.open {
            let id = todo.id.as_ref().map(|id| format!("#{id} ")).unwrap_or_default();
            let doing = if todo.state == TodoState::Doing { " (in progress)" } else { "" };
            let _ = writeln!(lines, "- [ ] {id}{}{doing}", todo.text);
        }
        if self.more > 0 {
            let _ = writeln!(lines, "- … and {} more open tasks", self.more);
        }
        if self.done > 0 {
            let _ = writeln!(lines, "({} of the list are done)", self.done);
        }
        lines.truncate(lines.trim_end().len());
        lines
    }
}
