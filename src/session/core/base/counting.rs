//! Counting the estimated entries of a session by the tokenizer, in the background.

use super::Base;
use crate::{conversation::entry::Entry, ids::EntryId, session::jobs::Job};
use std::{collections::HashSet, sync::Arc};

/// Whether entries are being counted.
#[derive(Default)]
pub(in crate::session::core) enum Counting {
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

impl Base {
    /// Counts the estimated entries of the context in the background, unless they are few.
    pub fn count(&mut self) {
        self.count_except(&HashSet::new());
    }

    /// The same, unless work runs or is planned that may rewrite the context: a compaction leaves little to count.
    pub fn count_at_rest(&mut self) {
        if self.free().is_ok() {
            self.count();
        }
    }

    /// A count is done. Entries that came meanwhile are counted next.
    pub fn counted(&mut self) {
        if let Counting::Running(done) = std::mem::take(&mut self.counting) {
            self.count_except(&done);
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
        self.effects.start(Job::Count(entries));
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        protocol::{SessionEntries, events::Event, types::Outcome},
        session::{
            core::{
                Input,
                held::{Held, answer, built, events, job, log_work, outcomes},
            },
            effects::Effect,
        },
        settings::{Layers, layers::Source},
    };
    use serde_json::json;

    /// A session over its threshold, without an index, that counts with a tokenizer whose tables are not loaded.
    fn uncounted() -> Held {
        let mut held = Held::indexed_below(0);
        let settings = json!({"tokens": {"estimator": "auto"}, "compaction": {"thresholdTokens": 1_000}});
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
        held
    }

    /// An append is written, and its answer waits for counts.
    fn write_uncounted(held: &mut Held, number: u64) {
        assert_eq!(answer(&held.write(number), number), None, "the decision waits for counts");
    }

    fn counted(held: &mut Held) -> Vec<Effect> {
        held.at.tokenizer = true;
        held.feed(Input::Counted)
    }

    #[test]
    fn a_compaction_that_is_cancelled_while_answers_wait_for_counts_ends_immediately() {
        let mut held = uncounted();
        write_uncounted(&mut held, 1);
        held.compact(2);
        let cancelled = held.cancel(3);
        assert_eq!(outcomes(&cancelled), [Outcome::Cancelled]);
        assert!(answer(&cancelled, 1).is_none() && answer(&cancelled, 2).is_some());
        let appended = answer(&counted(&mut held), 1).expect("an answer");
        assert_eq!(appended["next"]["type"], "maintenance", "the compaction that is due starts");
    }

    #[test]
    fn an_index_that_is_made_while_answers_wait_for_counts_is_taken_behind_them() {
        let mut held = uncounted();
        held.call::<SessionEntries>(1, json!({"branch": "all"}));
        let index = job(held.turn());
        write_uncounted(&mut held, 2);
        assert!(held.feed(built(index)).is_empty(), "the entries of the write are not announced");
        let effects = counted(&mut held);
        assert!(answer(&effects, 2).is_some());
        let rest = log_work(effects).expect("the index lacks the new entry");
        assert!(events(&held.back(rest)).any(|event| matches!(event, Event::IndexReady { .. })));
    }
}
