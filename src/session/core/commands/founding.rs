//! `session/compact` with `newSession`: the summary begins a session of its own, and this one stays as it is.

mod fork;

use crate::{
    compaction::draft::Draft,
    ids::{EntryId, OperationId},
    protocol::types::CompactParams,
    session::{
        core::{
            Core,
            commands::compacting::result::sent,
            work::{Founded, Work},
        },
        founding::{Founding, Outcome},
        jobs::{Job, defect},
        kind::Product,
        operation::Operation,
        operations::End,
    },
};

/// The compaction whose summary goes into a new session, if its request says so.
pub(in crate::session::core) fn moved(id: &OperationId, params: &CompactParams) -> Option<OperationId> {
    (params.new_session == Some(true)).then(|| id.clone())
}

impl Core {
    /// Makes the session in which a draft takes effect. The result comes back as an input.
    pub(in crate::session::core) fn found(
        &mut self,
        operation: Operation,
        draft: &Draft,
        first_newer: Option<&EntryId>,
        tokens_after: u64,
    ) {
        let founding = Founding::of(&self.state, draft, first_newer, tokens_after, &mut self.stamps);
        let Some((result, founding)) =
            founding.and_then(|it| Some((sent(&it.carrier, &draft.origin(), &draft.shortened)?, it)))
        else {
            return self.finish(operation, End::Failed(defect()));
        };
        operation.commits();
        let founded = Founded::Compaction { session: founding.id().clone(), result };
        self.effects.start(Job::Found(operation.id.clone(), Box::new(founding)));
        self.work = Work::Founding(operation, Box::new(founded));
    }

    /// A session was made, or not.
    pub(in crate::session::core) fn founded(&mut self, id: &OperationId, outcome: Outcome) {
        let (operation, founded) = match self.work.take() {
            Work::Founding(operation, founded) if operation.id == *id => (operation, founded),
            other => {
                self.work = other;
                return;
            }
        };
        let end = match *founded {
            Founded::Handoff { made, saved } => Self::handed_over(made, saved, outcome),
            Founded::Compaction { session, result } => match outcome {
                Ok(_) => End::Completed(Product::Founded(result, session)),
                Err(failed) => End::Failed(failed.into()),
            },
        };
        self.finish(operation, end);
    }
}
