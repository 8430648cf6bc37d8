//! A session in the picture, and its form for programs.

use crate::{
    conversation::spending::Spending,
    ids::SessionId,
    log::{Unfinished, lock::Recorded},
    protocol::types::{ListedSession, Usage},
};
use jiff::Timestamp;
use serde::Serialize;
use std::path::PathBuf;

/// A session file and its lock, as they were read.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct Row {
    /// Id of the session.
    pub session_id: SessionId,
    /// Path of the file.
    pub path: String,
    /// Working folder.
    pub cwd: String,
    /// Path of the session that it was made from.
    pub parent_session: Option<String>,
    /// Title.
    pub title: Option<String>,
    /// Beginning of the first user message.
    pub preview: Option<String>,
    /// Time of the last change of the file.
    pub updated_at: String,
    /// Size of the file, in bytes.
    pub size_bytes: u64,
    /// The process that has the session open.
    pub open_in: Option<u32>,
    /// The operations that run, outer ones first.
    pub running: Vec<Unfinished>,
    /// The operations of a process that is gone. The next process that opens the session ends them.
    pub left_behind: Vec<Unfinished>,
    /// Fullness of the context; null where it cannot be read, or was not measured.
    pub usage: Option<Fullness>,
    /// Cost of maintenance.
    pub maintenance: Cost,
    /// The reason why the file cannot be measured.
    pub problem: Option<String>,
}

/// Fullness of a context.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct Fullness {
    /// The fields of `session/usage`.
    #[serde(flatten)]
    pub usage: Usage,
    /// Whether the context may be larger, because only the end of the file was read.
    pub at_least: bool,
}

/// Cost of the requests that no turn of the session is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct Cost {
    /// Number of the requests.
    pub requests: u64,
    /// Tokens that were sent and received.
    pub tokens: u64,
    /// The tokens of these that automatic maintenance took.
    pub automatic_tokens: u64,
    /// Price in dollars; null where the price of a request is not known.
    pub dollars: Option<f64>,
    /// Whether there may be more, because not all of the file was read.
    pub at_least: bool,
}

impl From<&Spending> for Cost {
    fn from(spending: &Spending) -> Self {
        let all = spending.all();
        Self {
            requests: all.requests,
            tokens: all.total,
            automatic_tokens: spending.automatic.total,
            dollars: (all.priced == all.requests).then_some(all.price as f64 / 1e6),
            at_least: spending.is_partial,
        }
    }
}

/// The outcome of measuring a file.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct Measured {
    /// Fullness of the context, or the reason why it is not known.
    pub usage: Result<Fullness, String>,
    /// Cost of maintenance.
    pub maintenance: Cost,
}

/// All sessions of a data folder.
#[derive(Debug)]
pub(in crate::cli) struct Picture {
    /// The folder of the sessions.
    pub folder: PathBuf,
    /// The sessions, the most recently changed one first.
    pub rows: Vec<Row>,
    /// Files that are no sessions or cannot be read, and folders that cannot be listed.
    pub left_out: Vec<PathBuf>,
    /// The reason why the folder cannot be listed.
    pub problem: Option<String>,
}

impl Row {
    /// A listed session with the record of its lock. `lives` says whether the process of the record is there.
    pub(in crate::cli) fn of(listed: ListedSession, lock: Option<Recorded>, lives: impl Fn(u32) -> bool) -> Self {
        let ListedSession { session_id, path, cwd, parent_session, title, preview, updated_at, size_bytes, .. } =
            listed;
        let (open_in, running, left_behind) = match lock {
            Some(Recorded { pid, operations }) if lives(pid) => (Some(pid), operations, Vec::new()),
            Some(Recorded { operations, .. }) => (None, Vec::new(), operations),
            None => (None, Vec::new(), Vec::new()),
        };
        Self {
            session_id,
            path,
            cwd,
            parent_session,
            title,
            preview,
            updated_at,
            size_bytes,
            open_in,
            running,
            left_behind,
            usage: None,
            maintenance: Cost::default(),
            problem: None,
        }
    }

    /// Takes the outcome of measuring the file.
    pub(in crate::cli) fn take(&mut self, measured: &Measured) {
        self.maintenance = measured.maintenance;
        (self.usage, self.problem) = match &measured.usage {
            Ok(usage) => (Some(usage.clone()), None),
            Err(why) => (None, Some(why.clone())),
        };
    }

    /// The last change of the file, or the start of an operation after it. It is the place in the list.
    pub(in crate::cli) fn last_event(&self) -> Option<Timestamp> {
        let times = self.running.iter().map(|operation| &operation.started_at).chain([&self.updated_at]);
        times.filter_map(|time| time.parse().ok()).max()
    }
}

impl Picture {
    /// The number of sessions in which an operation runs.
    pub(in crate::cli) fn at_work(&self) -> usize {
        at_work(&self.rows)
    }
}

/// The number of these sessions in which an operation runs.
pub(in crate::cli) fn at_work(rows: &[Row]) -> usize {
    rows.iter().filter(|row| !row.running.is_empty()).count()
}

/// Sorts the sessions: the most recently changed one first. Sessions of the same time keep their order.
pub(in crate::cli) fn sort(rows: &mut [Row]) {
    rows.sort_by_cached_key(|row| std::cmp::Reverse(row.last_event()));
}

#[cfg(test)]
pub(in crate::cli) mod tests {
    use super::*;
    use crate::conversation::{
        message::Usage,
        spending::{Cost as Spent, Trigger},
    };

    /// A session with this name, changed at this second of an hour.
    pub(in crate::cli) fn row(name: &str, second: u32) -> Row {
        let listed = ListedSession {
            session_id: name.into(),
            path: format!("/data/sessions/--project--/{name}.jsonl"),
            cwd: "/home/user/project".to_owned(),
            parent_session: None,
            parent_session_id: None,
            title: Some(name.to_owned()),
            preview: None,
            created_at: "2026-01-01T00:00:00.000Z".to_owned(),
            updated_at: format!("2026-01-01T00:{:02}:{:02}.000Z", second / 60, second % 60),
            entry_count: None,
            percent: None,
            size_bytes: 1_000,
            status: None,
        };
        Row::of(listed, None, |_| true)
    }

    pub(in crate::cli::watch) fn operation(kind: &str, reason: &str, started_at: &str) -> Unfinished {
        let (kind, reason) = (kind.to_owned(), reason.to_owned());
        Unfinished { operation_id: "op".into(), kind, reason, started_at: started_at.to_owned(), inside: Vec::new() }
    }

    #[test]
    fn operations_run_while_their_process_lives() {
        let listed = || {
            let Row { session_id, path, cwd, parent_session, title, preview, updated_at, size_bytes, .. } = row("a", 0);
            ListedSession {
                session_id,
                path,
                cwd,
                parent_session,
                parent_session_id: None,
                title,
                preview,
                created_at: updated_at.clone(),
                updated_at,
                entry_count: None,
                percent: None,
                size_bytes,
                status: None,
            }
        };
        let operations = vec![operation("compaction", "manual", "2026-01-01T00:00:00Z")];
        let lock = Recorded { pid: 7, operations: operations.clone() };
        let alive = Row::of(listed(), Some(lock.clone()), |pid| pid == 7);
        assert_eq!((alive.open_in, &alive.running, alive.left_behind.len()), (Some(7), &operations, 0));
        let dead = Row::of(listed(), Some(lock), |_| false);
        assert_eq!((dead.open_in, dead.running.len(), &dead.left_behind), (None, 0, &operations));
        let closed = Row::of(listed(), None, |_| true);
        assert_eq!((closed.open_in, closed.running.len(), closed.left_behind.len()), (None, 0, 0));
    }

    #[test]
    fn a_price_is_that_of_all_requests_or_not_known() {
        let cost = |prices: &[Option<u64>]| {
            let mut spending = Spending { is_partial: true, ..Spending::default() };
            for price in prices {
                let usage = Usage { input: 100, output: 10, ..Usage::default() };
                spending.add(&Spent {
                    purpose: "compaction".to_owned(),
                    trigger: Trigger::Idle,
                    usage,
                    price: *price,
                    at: 0,
                });
            }
            Cost::from(&spending)
        };
        let known = Cost { requests: 2, tokens: 220, automatic_tokens: 220, dollars: Some(0.75), at_least: true };
        assert_eq!(cost(&[Some(500_000), Some(250_000)]), known);
        assert_eq!(cost(&[Some(500_000), None]), Cost { dollars: None, ..known });
    }

    #[test]
    fn the_start_of_an_operation_is_a_change() {
        let mut rows = vec![row("old", 10), row("new", 30), row("working", 20), row("same", 30)];
        rows[2].running = vec![operation("compaction", "manual", "2026-01-01T00:00:40Z")];
        rows[0].running = vec![operation("compaction", "manual", "no time")];
        sort(&mut rows);
        let names: Vec<&str> = rows.iter().map(|row| row.session_id.as_str()).collect();
        assert_eq!(names, ["working", "new", "same", "old"]);
    }
}
