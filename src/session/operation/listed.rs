//! The operations that the lock of a session lists: those that are open, and those whose end waits for the client to read.
//!
//! A process that dies takes the frames along that it has not written. An end among them is sent by the next owner of the
//! file, which finds the operation in the lock.

use crate::{
    log::{Register, Unfinished},
    wire::outbox::Outbox,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The list in the lock of a session.
#[derive(Debug, Clone)]
pub struct Listed(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    register: Arc<dyn Register>,
    lists: Mutex<Lists>,
}

#[derive(Debug)]
struct Lists {
    /// The open operations.
    open: Vec<Unfinished>,
    /// The operations in the lock.
    listed: Vec<Unfinished>,
    /// Number of the ends, or groups of them, that were not written to the client.
    leaving: usize,
}

impl Listed {
    /// The list of a lock that has these operations of the owner before.
    #[must_use]
    pub fn new(register: Arc<dyn Register>, left_behind: &[Unfinished]) -> Self {
        let lists = Lists { open: left_behind.to_vec(), listed: left_behind.to_vec(), leaving: 0 };
        Self(Arc::new(Shared { register, lists: Mutex::new(lists) }))
    }

    /// Lists the open operations. Those that have ended stay in the list until the frames before are written.
    pub fn record(&self, open: Vec<Unfinished>, outbox: &Outbox) {
        let is_leaving = {
            let mut lists = self.0.lists();
            let listed = with_ended(&lists.listed, &open);
            let is_leaving = with_ended(&lists.open, &open) != open;
            lists.leaving += usize::from(is_leaving);
            lists.listed.clone_from(&listed);
            lists.open = open;
            self.0.register.record(listed);
            is_leaving
        };
        if is_leaving {
            let listed = self.0.clone();
            outbox.when_written(move || listed.left());
        }
    }

    /// Lists the open operations alone: the session ends.
    pub fn settle(&self) {
        self.0.settle(&mut self.0.lists());
    }
}

impl Shared {
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The frames before are written.
    fn left(&self) {
        let mut lists = self.lists();
        lists.leaving = lists.leaving.saturating_sub(1);
        if lists.leaving == 0 {
            self.settle(&mut lists);
        }
    }

    fn settle(&self, lists: &mut Lists) {
        lists.listed.clone_from(&lists.open);
        self.register.record(lists.open.clone());
    }
}

/// The open operations with those that were listed before, outer ones first.
fn with_ended(before: &[Unfinished], open: &[Unfinished]) -> Vec<Unfinished> {
    let is_same = |a: &Unfinished, b: &Unfinished| a.operation_id == b.operation_id && a.kind == b.kind;
    let kept = before.iter().map(|old| match open.iter().find(|new| is_same(old, new)) {
        None => old.clone(),
        Some(new) => {
            let begun = new.inside.iter().filter(|inside| !old.inside.contains(inside)).cloned();
            Unfinished { inside: old.inside.iter().cloned().chain(begun).collect(), ..new.clone() }
        }
    });
    let begun = open.iter().filter(|new| !before.iter().any(|old| is_same(old, new))).cloned();
    kept.chain(begun).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{log::Inside, wire::transport::Chosen};

    /// A lock that remembers its last record: ids and the hooks inside.
    #[derive(Debug, Default)]
    struct Lock(Mutex<String>);

    impl Register for Lock {
        fn record(&self, operations: Vec<Unfinished>) {
            let hook = |inside: &Inside| match inside {
                Inside::Hook { hook } => format!(".{hook}"),
                Inside::Retry { attempt, .. } => format!(".{attempt}"),
                Inside::Tool { call } => format!(".{call}"),
            };
            let words = operations.iter().map(|it| {
                let inside: String = it.inside.iter().map(hook).collect();
                format!("{}{inside}", it.operation_id.as_str())
            });
            *self.0.lock().expect("a record") = words.collect::<Vec<_>>().join(" ");
        }
    }

    /// Operations, each with the hooks inside of it after dots.
    fn operations(text: &str) -> Vec<Unfinished> {
        let operation = |word: &str| {
            let mut names = word.split('.');
            Unfinished {
                operation_id: names.next().unwrap_or_default().into(),
                kind: "compaction".to_owned(),
                reason: String::new(),
                started_at: String::new(),
                inside: names.map(|hook| Inside::Hook { hook: hook.to_owned() }).collect(),
            }
        };
        text.split_whitespace().map(operation).collect()
    }

    #[test]
    fn what_has_ended_is_listed_until_its_end_is_written() {
        for (left_behind, records, unwritten, written) in [
            ("", &["a"][..], "a", "a"),
            ("", &["a", ""], "a", ""),
            ("", &["a", "a b", "a"], "a b", "a"),
            ("", &["a", "a b", "a", "a c"], "a b c", "a c"),
            ("", &["a", "a.h", "a", "a.g"], "a.h.g", "a.g"),
            ("", &["a", "a.h", "a", "a", ""], "a.h", ""),
            ("x y", &[""], "x y", ""),
            ("x y", &["", "a"], "x y a", "a"),
        ] {
            let (lock, outbox) = (Arc::new(Lock::default()), Outbox::new());
            let listed = Listed::new(lock.clone(), &operations(left_behind));
            outbox.answer("{}".to_owned(), 0);
            for record in records {
                listed.record(operations(record), &outbox);
            }
            let record = || lock.0.lock().expect("a record").clone();
            assert_eq!(record(), unwritten, "{left_behind}: {records:?}");
            outbox.close();
            outbox.write_to(Vec::new(), &Chosen::default());
            assert_eq!(record(), written, "{left_behind}: {records:?}");
        }
    }

    #[test]
    fn a_session_that_ends_lists_what_is_open_alone() {
        let (lock, outbox) = (Arc::new(Lock::default()), Outbox::new());
        let listed = Listed::new(lock.clone(), &[]);
        outbox.answer("{}".to_owned(), 0);
        for record in ["a", "a b", "a"] {
            listed.record(operations(record), &outbox);
        }
        listed.settle();
        assert_eq!(*lock.0.lock().expect("a record"), "a");
    }
}
