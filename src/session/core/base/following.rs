//! Entries that other programs add to the file of a session.

use super::Base;
use crate::{
    conversation::path::Path,
    ids::EntryId,
    log::{Access, Grown, error::StoreError},
    protocol::{
        events::{Event, Severity},
        notices::NoticeCode,
    },
};
use std::collections::HashSet;

/// Changes of the file that other programs made.
#[derive(Default)]
pub(in crate::session::core) struct FileChanges {
    /// The file was touched and not read since.
    pending: bool,
    /// The client knows that bytes of the file were changed, beyond appends.
    reported: bool,
}

impl FileChanges {
    /// The file was touched.
    pub(in crate::session::core) fn touched(&mut self) {
        self.pending = true;
    }

    /// Whether the file was touched and not read since.
    pub(in crate::session::core) fn is_pending(&self) -> bool {
        self.pending
    }

    /// The file is read now.
    pub(in crate::session::core) fn read(&mut self) {
        self.pending = false;
    }

    /// The file cannot be followed any more. One notice is enough.
    pub(in crate::session::core) fn lost(&mut self, error: &StoreError) -> Option<Event> {
        let is_news = !std::mem::replace(&mut self.reported, true);
        is_news.then(|| Event::Notice {
            severity: Severity::Error,
            code: NoticeCode::FileChanged,
            title: "The session's file was changed".to_owned(),
            detail: Some(error.to_string()),
        })
    }
}

/// Adds the entries of another program. Returns whether the session is on another path.
pub(in crate::session::core) fn take_in(base: &mut Base, grown: Grown) -> bool {
    let follows = base.log.facts().access == Access::Write;
    let left = if follows { left_by(&grown, base.state.path()) } else { None };
    let is_moved = grown.path.is_some();
    base.state.change(|history| {
        for placed in &grown.entries {
            history.push(placed.clone());
        }
        if let Some(path) = grown.path {
            history.wake(path);
        }
        history.complete_in_memory();
    });
    base.count();
    for placed in &grown.entries {
        base.effects.announce(&placed.entry, None);
    }
    if !base.state.history().is_asleep() {
        base.send_usage();
    }
    if let Some((messages, leaf)) = left {
        base.effects.warn(
            NoticeCode::SessionBranched,
            "Another program went on from an earlier entry",
            format!(
                "It had not read the last {messages} of this session's messages. They are a branch of their own \
                 now, up to entry {leaf}, and are not in the context. Nothing is lost. To go on from them, call \
                 session/append with parentEntryId {leaf}. Two programs that write to one session should take turns."
            ),
        );
    }
    is_moved && !base.state.history().is_asleep()
}

/// Number of messages that left a path because another program continued from an earlier entry, and the last of their branch.
fn left_by(grown: &Grown, path: &Path) -> Option<(usize, EntryId)> {
    // Without a new path they continue the old one.
    let after = grown.path.as_ref()?;
    let new: HashSet<&EntryId> = grown.entries.iter().map(|placed| &placed.entry.id).collect();
    // The parent that a line names may be none of the tree.
    let base = after.iter().rev().find(|entry| !new.contains(&entry.id)).map(|entry| &entry.id);
    let base = base.or_else(|| after.first()?.parent.as_ref());
    // A path that is not in memory does not show where the new entries continue.
    let place = base.and_then(|base| path.position(base)).map_or(0, |place| place + 1);
    let left = path[place..].iter().filter(|entry| entry.in_context()).count();
    (left > 0).then(|| Some((left, path.visible_leaf()?.clone()))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{
        core::{
            Input,
            held::{Held, log_work, message, notices, usages},
        },
        log_work::LogDone,
    };

    fn failed() -> StoreError {
        StoreError::Changed { path: "/held".into(), what: "it was cut".to_owned() }
    }

    #[test]
    fn a_changed_file_is_reported_once() {
        let mut held = Held::new();
        let mut touched = || {
            held.feed(Input::FileTouched);
            held.turn();
            let facts = held.facts();
            let effects = held.feed(Input::Log(Some(LogDone::CaughtUp(Err(failed()))), facts));
            notices(&effects).len()
        };
        assert_eq!([touched(), touched()], [1, 0]);
    }

    #[test]
    fn entries_of_another_program_are_followed_by_the_usage() {
        let mut held = Held::new();
        held.disk.append_as_another(&message("other", Some("e39"))).expect("an entry");
        held.feed(Input::FileTouched);
        let work = log_work(held.turn()).expect("a read");
        let effects = held.back(work);
        assert_eq!(usages(&effects), 1);
        assert!(notices(&effects).is_empty());
    }

    #[test]
    fn a_program_that_goes_on_from_an_earlier_entry_is_reported() {
        let mut held = Held::new();
        held.disk.append_as_another(&message("other", Some("e10"))).expect("an entry");
        held.feed(Input::FileTouched);
        let work = log_work(held.turn()).expect("a read");
        assert_eq!(notices(&held.back(work)), ["Another program went on from an earlier entry"]);
    }
}
