//! Costs of model requests, from the answer of the model to the entries in the file.

use crate::{
    ask::spent::Spent,
    conversation::entry::{Entry, Stamps},
    ids::{EntryId, OperationId},
    session::fault::{Fault, planted},
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
    pub fn take(&mut self, leaf: Option<&EntryId>, stamps: &mut Stamps) -> CostEntries {
        let mut parent = leaf.cloned();
        let mut entries = Vec::new();
        let costs = std::mem::take(&mut self.0);
        for (operation, spent) in &costs {
            let stamp = stamps.stamp();
            let id = stamp.id.clone();
            let line = spent.line(&stamp, parent.as_ref(), operation);
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
