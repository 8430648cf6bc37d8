//! Failed answers that were appended while maintenance ran. They are decided about behind it.

use super::judging::Judged;
use crate::{
    compaction::recovery::Verdict,
    conversation::{entry::Entry, message::outline::Role},
    ids::EntryId,
    session::{
        core::{Core, Ending, Write, due::DueRecovery, edit::Staged},
        operations::Asked,
    },
};
use std::sync::Arc;

/// A failed answer that waits for a decision.
pub(super) struct Reported {
    answer: Arc<Entry>,
    /// The size of the context that was rejected, in tokens.
    rejected: u64,
}

impl Core {
    /// Takes a failed answer. Where the path lacks its past, the decision needs the index.
    pub(in crate::session::core) fn report(&mut self, answer: Arc<Entry>) {
        if self.writable().is_err() || !matches!(self.ending, Ending::No) {
            return;
        }
        let rejected = self.state.measure().context_tokens;
        self.recoveries.reported.push(Reported { answer, rejected });
        if self.lacks_past() {
            self.start_indexing();
        }
    }

    /// Whether a failed answer waits for a decision.
    pub(in crate::session::core) fn has_reported(&self) -> bool {
        !self.recoveries.reported.is_empty()
    }

    /// Forgets the failed answers that wait for a decision.
    pub(in crate::session::core) fn forget_reported(&mut self) {
        self.recoveries.reported.clear();
    }

    /// Decides about the newest of the failed answers. Where the context is smaller now than the one that was rejected, or the
    /// conversation went on, it only leaves the context. Those before it leave the context in any case.
    pub(in crate::session::core) fn decide_reported(&mut self) {
        let mut reported = std::mem::take(&mut self.recoveries.reported);
        let Some(Reported { answer, rejected }) = reported.pop() else { return };
        if !self.may_maintain() {
            return self.answer_held();
        }
        let earlier: Vec<EntryId> =
            reported.iter().filter(|it| self.is_unusable(&it.answer)).map(|it| it.answer.id.clone()).collect();
        let judged = self.judge(&answer);
        let Some(Judged { verdict: Verdict::Unusable(trouble), .. }) = judged else {
            return self.remove(&earlier);
        };
        let path = self.state.path();
        let goes_on = |entry: &Arc<Entry>| entry.is_from(Role::User) || entry.is_from(Role::Assistant);
        let went_on = path.position(&answer.id).is_none_or(|place| path[place + 1..].iter().any(goes_on));
        if went_on || self.state.measure().context_tokens < rejected {
            return self.remove(&[earlier, vec![answer.id.clone()]].concat());
        }
        let due = judged.and_then(|judged| self.recovery(&judged, trouble, Asked::Unasked));
        match due {
            Some(due) => self.write_recovery(DueRecovery { earlier, ..due }),
            None => self.remove(&earlier),
        }
    }

    /// Whether an answer is on the path and no turn can go on from it.
    fn is_unusable(&self, answer: &Arc<Entry>) -> bool {
        let on_path = self.state.path().position(&answer.id).is_some();
        on_path && self.judge(answer).is_some_and(|judged| matches!(judged.verdict, Verdict::Unusable(_)))
    }

    /// Removes answers from the context. No recovery follows.
    fn remove(&mut self, answers: &[EntryId]) {
        let on_path = |id: &&EntryId| self.state.path().position(id).is_some();
        let answers: Vec<EntryId> = answers.iter().filter(on_path).cloned().collect();
        match self.removal(answers.iter()) {
            Ok(staged) if !staged.entries.is_empty() => self.write(Write::Removal(staged)),
            _ => self.answer_held(),
        }
    }

    /// Answers have left the context.
    pub(in crate::session::core) fn removed(&mut self, staged: &Staged) {
        self.count();
        staged.entries.iter().for_each(|entry| self.announce(entry, None));
        self.send_usage(self.state.usage());
        self.answer_held();
    }
}
