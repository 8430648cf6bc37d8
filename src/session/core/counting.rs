//! Counting the estimated entries of a session by the tokenizer, in the background.

use crate::{
    conversation::entry::Entry,
    ids::EntryId,
    session::{core::Core, jobs::Job},
};
use std::{collections::HashSet, sync::Arc};

/// Whether entries are being counted.
#[derive(Default)]
pub(super) enum Counting {
    /// No entries are being counted.
    #[default]
    No,
    /// These entries are being counted.
    Running(HashSet<EntryId>),
}

impl Counting {
    /// Whether entries are being counted.
    pub fn runs(&self) -> bool {
        matches!(self, Self::Running(_))
    }
}

impl Core {
    /// Counts the estimated entries of the context in the background, unless they are few.
    pub(super) fn count(&mut self) {
        self.count_except(&HashSet::new());
    }

    /// A count is done.
    pub(super) fn counted(&mut self) {
        if let Counting::Running(done) = std::mem::take(&mut self.counting) {
            self.count_except(&done);
        }
        let answered = self.appends_were_counted();
        if self.work.is_none() {
            if !answered {
                self.send_usage(self.state.usage());
            }
            self.answer_held();
        }
    }

    fn count_except(&mut self, done: &HashSet<EntryId>) {
        if self.counting.runs()
            || self.state.history().is_asleep()
            || self.state.estimator() == self.state.wanted_estimator()
            || self.state.settle_estimator(done)
        {
            return;
        }
        let path = self.state.path();
        let left = |entry: &&Arc<Entry>| !done.contains(&entry.id);
        let entries: Vec<Arc<Entry>> = path[path.first_kept()..].iter().filter(left).cloned().collect();
        self.counting = Counting::Running(path[path.first_kept()..].iter().map(|entry| entry.id.clone()).collect());
        self.start(Job::Count(entries));
    }
}
