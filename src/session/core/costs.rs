//! Costs of model requests, from the answer of the model to the entries in the file.

use crate::{
    ask::spent::Spent,
    conversation::entry::{Entry, Stamps},
    ids::{EntryId, OperationId},
    models::prices,
    session::fault::{Fault, planted},
    settings::Settings,
};
use std::sync::Arc;

/// Costs that are not in the file yet, in the order in which they arose.
#[derive(Default)]
pub(super) struct Costs(Vec<(OperationId, Spent)>);

/// Costs on their way to the disk, and the entries that record them.
pub(super) struct CostEntries {
    costs: Vec<(OperationId, Spent)>,
    /// The entries, each behind the one before.
    pub entries: Vec<Arc<Entry>>,
}

impl Costs {
    /// Adds the cost of a request that an operation sent.
    pub fn add(&mut self, operation: OperationId, spent: Spent) {
        self.0.push((operation, spent));
    }

    /// Number of the costs that are not on their way.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether all costs are in the file or on their way.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes all costs, as entries behind `leaf`.
    pub fn take(&mut self, leaf: Option<&EntryId>, stamps: &mut Stamps, settings: &Settings) -> CostEntries {
        let mut parent = leaf.cloned();
        let mut entries = Vec::new();
        let costs = std::mem::take(&mut self.0);
        for (operation, spent) in &costs {
            let stamp = stamps.stamp();
            let id = stamp.id.clone();
            let cost = prices::cost(settings, &spent.model, &spent.usage);
            let line = spent.line(&stamp, parent.as_ref(), operation, cost);
            if let Ok(entry) = Entry::parse(line.into()) {
                parent = Some(id);
                entries.push(Arc::new(entry));
            }
        }
        if planted(Fault::CostDropped) {
            entries.pop();
        }
        CostEntries { costs, entries }
    }

    /// Puts back costs whose write has to be repeated, before those that arose since.
    pub fn put_back(&mut self, entries: CostEntries) {
        self.0.splice(0..0, entries.costs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ask::purpose::Purpose, conversation::message::Usage, ids::ModelRef};
    use jiff::Timestamp;
    use serde_json::Value;

    #[test]
    fn an_entry_has_the_cost_in_dollars_where_the_prices_are_known() {
        let usage = Usage { input: 1_000, output: 100, cache_read: 0, cache_write: 0, total: 0 };
        for (model, total) in [("anthropic/claude-haiku-4-5", 0.0015), ("p/m", 0.0)] {
            let mut costs = Costs::default();
            let model = ModelRef::parse(model).expect("a name");
            costs.add("op".into(), Spent { purpose: Purpose::Compaction, model, usage });
            let mut stamps = Stamps::seeded(1, Timestamp::UNIX_EPOCH);
            let entries = costs.take(None, &mut stamps, &Settings::default()).entries;
            let line: Value = serde_json::from_str(entries[0].line()).expect("JSON");
            assert_eq!(line["usage"]["cost"]["total"].as_f64(), Some(total));
        }
    }
}
