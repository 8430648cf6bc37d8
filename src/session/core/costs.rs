//! Costs of model requests, from the answer of the model to the entries in the file.

mod budget;
mod failed;
mod hour;
mod recording;

use crate::{
    ask::spent::Spent,
    conversation::{
        entry::{Entry, Stamps},
        spending::Recent,
    },
    ids::OperationId,
    models::prices,
    session::{core::Moment, state::State},
};
use budget::Budget;
pub(super) use budget::Lack;
pub(super) use failed::{FailedAhead, FailureAhead};
pub(super) use hour::Hour;
use std::{sync::Arc, time::Instant};

/// The costs of a session.
pub(super) struct Costs {
    /// Costs that are not in the file yet, in the order in which they arose.
    waiting: Vec<(OperationId, Spent)>,
    /// The failures of summaries ahead that are not in the file yet.
    failed: Option<FailedAhead>,
    hour: Hour,
    budget: Budget,
}

/// Costs on their way to the disk, and the entries that record them.
pub(super) struct CostEntries {
    costs: Vec<(OperationId, Spent)>,
    failed: Option<FailedAhead>,
    /// The entries, each after the one before.
    pub entries: Vec<Arc<Entry>>,
}

impl Costs {
    /// The costs of a session that is opened. `file`: the tokens of automatic maintenance that its file has.
    pub fn opened(file: &Recent, at: &Moment) -> Self {
        Self { waiting: Vec::new(), failed: None, hour: Hour::opened(file, at.now, at.wall), budget: Budget::default() }
    }

    /// Adds the cost of a request that an operation sent.
    pub fn add(&mut self, operation: OperationId, spent: Spent, now: Instant) {
        if spent.trigger.is_automatic() {
            self.hour.add(spent.usage.context_tokens(), now);
        }
        self.waiting.push((operation, spent));
    }

    /// Adds a failure of a summary ahead.
    pub fn add_failed(&mut self, later: FailedAhead) {
        self.failed.get_or_insert_default().add(later);
    }

    /// Takes the tokens of automatic maintenance of the whole file.
    pub fn learn(&mut self, file: &Recent) {
        self.hour.learn(file);
    }

    /// Number of the costs and failures that are not on their way.
    pub fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.failed.is_some())
    }

    /// Whether all costs and failures are in the file or on their way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes all costs and failures, as entries after the leaf.
    pub fn take(&mut self, state: &State, stamps: &mut Stamps) -> CostEntries {
        let mut parent = state.path().last().map(|leaf| leaf.id.clone());
        let mut entries = Vec::new();
        let costs = std::mem::take(&mut self.waiting);
        for (operation, spent) in &costs {
            let stamp = stamps.stamp();
            let id = stamp.id.clone();
            let cost = prices::cost(&state.settings().settings, &spent.model, &spent.usage);
            let line = spent.line(&stamp, parent.as_ref(), operation, cost);
            if let Ok(entry) = Entry::parse(line.into()) {
                parent = Some(id);
                entries.push(Arc::new(entry));
            }
        }
        let failed = self.failed.take();
        entries.extend(failed.as_ref().and_then(|failed| failed.entry(stamps, parent.as_ref())));
        CostEntries { costs, failed, entries }
    }

    /// Puts back costs whose write has to be repeated, before those that arose since.
    pub fn put_back(&mut self, entries: CostEntries) {
        self.waiting.splice(0..0, entries.costs);
        if let Some(mut earlier) = entries.failed {
            earlier.add(self.failed.take().unwrap_or_default());
            self.failed = Some(earlier);
        }
    }
}

impl CostEntries {
    /// Number of the costs.
    pub fn len(&self) -> usize {
        self.costs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ask::purpose::Purpose,
        conversation::{message::Usage, spending::Trigger},
        ids::ModelRef,
        session::core::held::Held,
    };
    use jiff::Timestamp;
    use serde_json::Value;

    #[test]
    fn an_entry_has_the_cost_in_dollars_where_the_prices_are_known() {
        let usage = Usage { input: 1_000, output: 100, cache_read: 0, cache_write: 0, total: 0 };
        for (model, total) in [("anthropic/claude-haiku-4-5", 0.0015), ("p/m", 0.0)] {
            let (now, wall) = (Instant::now(), Timestamp::UNIX_EPOCH);
            let at = Moment { now, wall, awake_elsewhere: 0, tokenizer: false };
            let mut costs = Costs::opened(&Recent::default(), &at);
            let model = ModelRef::parse(model).expect("a name");
            let (purpose, trigger) = (Purpose::Compaction, Trigger::Idle);
            costs.add("op".into(), Spent { purpose, model, trigger, usage, estimated: false, sent: 0 }, now);
            let mut stamps = Stamps::seeded(1, Timestamp::UNIX_EPOCH);
            let entries = costs.take(Held::new().core.state(), &mut stamps).entries;
            let line: Value = serde_json::from_str(entries[0].line()).expect("JSON");
            assert_eq!(line["usage"]["cost"]["total"].as_f64(), Some(total));
        }
    }
}
