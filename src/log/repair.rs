//! Faults of a session file that loading handles and reports.

use std::collections::HashSet;

/// A fault in a session file and the way it was handled.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Repair {
    /// `torn_tail`, `corrupt_line`, `glued_entries`, `unreadable_entry`, `invalid_usage`, `invalid_setting`,
    /// `missing_parent`, `same_id`, `migrated`, `newer_version`, or `more` for the number of further repairs.
    pub kind: &'static str,
    /// Line number, counted from 1, for a fault of one line.
    pub line: Option<usize>,
    /// Fault and handling, for a person.
    pub detail: String,
}

/// Each repair once, in order. Entries on one line, or with one id, may need the same repair several times.
#[must_use]
pub fn distinct(mut repairs: Vec<Repair>) -> Vec<Repair> {
    let mut seen = HashSet::new();
    repairs.retain(|repair| seen.insert(repair.clone()));
    repairs
}
