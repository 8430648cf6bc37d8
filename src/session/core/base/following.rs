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
    use crate::{
        protocol::{SessionContext, SessionEntries, SessionPin},
        session::{
            core::{
                Input, Over,
                command::Command,
                held::{
                    Held, answer, answered, built, compacted_messages, events, job, log_work, message, notices, usages,
                },
            },
            effects::{Effect, Ticket},
            jobs::{IndexBuilt, Job},
            log_work::{LogDone, LogWork},
        },
        settings::{Layers, layers::Source},
    };
    use serde_json::json;
    use std::time::Duration;

    /// Asks for all entries. Without an index one is built.
    fn asks_for_all(held: &mut Held, number: u64) -> Job {
        held.call::<SessionEntries>(number, json!({"branch": "all"}));
        job(held.turn())
    }

    fn is_ready(effects: &[Effect]) -> bool {
        events(effects).any(|event| matches!(event, Event::IndexReady { .. }))
    }

    fn failed() -> StoreError {
        StoreError::Changed { path: "/held".into(), what: "it was cut".to_owned() }
    }

    #[test]
    fn an_index_whose_work_panicked_is_built_for_the_next_request() {
        let mut held = Held::indexed_below(0);
        assert!(matches!(asks_for_all(&mut held, 1), Job::Index(..)));
        let effects = held.feed(Input::Indexed(IndexBuilt::Lost));
        assert_eq!(answer(&effects, 1), Some("internal".into()));
        assert!(matches!(asks_for_all(&mut held, 2), Job::Index(..)));
    }

    #[test]
    fn an_index_that_is_made_during_a_write_is_taken_behind_it() {
        let mut held = Held::indexed_below(0);
        let index = asks_for_all(&mut held, 1);
        held.append(2);
        let work = log_work(held.turn()).expect("a write");
        assert!(held.feed(built(index)).is_empty());
        let rest = log_work(held.back(work)).expect("the index lacks the new entry");
        assert!(matches!(rest, LogWork::Index(_)));
        assert!(is_ready(&held.back(rest)));
        assert!(held.turn().iter().any(|effect| matches!(effect, Effect::Read(1, _))));
    }

    #[test]
    fn a_session_with_an_index_that_waits_for_the_log_ends_behind_its_write() {
        let begin = || {
            let mut held = Held::indexed_below(0);
            let index = asks_for_all(&mut held, 1);
            held.append(2);
            let work = log_work(held.turn()).expect("a write");
            held.feed(built(index));
            (held, work)
        };
        let (mut stopped, work) = begin();
        stopped.feed(Input::Stop);
        assert_eq!(stopped.core.over(), Over::No);
        assert_eq!(answered(&stopped.back(work)), [2]);
        let (mut lost, _) = begin();
        assert_eq!(answered(&lost.lose_log()), [2]);
        for held in [stopped, lost] {
            assert_eq!(held.core.over(), Over::Yes);
            let effects = held.core.effects().clone();
            assert!(held.core.end().is_empty());
            assert_eq!(answer(&effects.take(), 1), Some("not_found".into()));
        }
    }

    #[test]
    fn a_ready_index_sends_no_usage_during_a_compaction() {
        let mut held = Held::indexed_below(0);
        let index = asks_for_all(&mut held, 1);
        held.begin_draft(2);
        let layers = json!({"tokens": {"estimator": "chars"}, "compaction": {"reserveTokens": 9_000}});
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, layers)])));
        let effects = held.feed(built(index));
        assert!(is_ready(&effects));
        assert_eq!(usages(&effects), 0);
    }

    #[test]
    fn an_index_that_failed_is_tried_again_later() {
        let mut held = Held::indexed_below(0);
        held.at.now = held.core.wake_at(0).expect("an idle session builds its index");
        assert!(matches!(job(held.feed(Input::Tick)), Job::Index(..)));
        held.feed(Input::Indexed(IndexBuilt::Failed(failed())));
        assert!(held.core.wake_at(0).is_some_and(|at| at >= held.at.now + Duration::from_secs(10)));
    }

    #[test]
    fn a_close_behind_a_write_that_waits_for_the_index_closes_without_an_index() {
        let mut held = Held::of(&compacted_messages(), 0);
        held.edit::<SessionPin>(1, json!({"text": "keep this"}));
        held.send(2, Command::Close);
        held.turn();
        assert_eq!(answered(&held.turn()), [0; 0]);
        assert_eq!(answered(&held.feed(Input::Indexed(IndexBuilt::Lost))), [1]);
        held.turn();
        assert_eq!(held.core.over(), Over::Yes);
        assert_eq!(held.core.end().iter().map(Ticket::number).collect::<Vec<_>>(), [2]);
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

    #[test]
    fn a_request_is_answered_whose_index_is_lost_with_the_log() {
        let mut held = Held::indexed_below(0);
        let index = asks_for_all(&mut held, 1);
        held.append(2);
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        let rest = log_work(held.feed(built(index)));
        assert!(matches!(rest, Some(LogWork::Index(_))), "the index lacks a line");
        let effects = held.lose_log();
        assert_eq!(answer(&effects, 1), Some("internal".into()));
        assert_eq!(held.core.over(), Over::Yes);
    }

    /// A refusal after a compaction of another program, whose index is being built, and a context that waits.
    fn refused() -> Held {
        let mut held = Held::of(&compacted_messages(), 0);
        let answer = json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
            "errorMessage": "context_length_exceeded"});
        held.append_with(1, json!({"messages": [answer]}));
        let work = log_work(held.turn()).expect("a write");
        assert!(matches!(job(held.back(work)), Job::Index(..)));
        held.call::<SessionContext>(2, json!({"wait": true}));
        assert_eq!(answered(&held.turn()), [0; 0]);
        held
    }

    #[test]
    fn a_context_behind_a_refusal_is_answered_where_the_index_cannot_be_built() {
        let mut held = refused();
        assert_eq!(answered(&held.feed(Input::Indexed(IndexBuilt::Failed(failed())))), [2]);
    }

    #[test]
    fn a_context_behind_a_refusal_waits_for_no_index_in_a_session_that_finishes() {
        let mut held = refused();
        held.feed(Input::Finish);
        assert_eq!(answered(&held.turn()), [2]);
    }
}
