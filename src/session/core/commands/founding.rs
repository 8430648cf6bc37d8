//! `session/compact` with `newSession`: the summary begins a session of its own, and this one stays as it is.

mod fork;

use crate::{
    compaction::draft::Draft,
    ids::{EntryId, OperationId},
    protocol::types::CompactParams,
    session::{
        core::{
            base::Base,
            commands::compacting::result::sent,
            step::Step,
            transfers::handing_off::handed_over,
            turns::prompts::Prompts,
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

/// Makes the session in which a draft takes effect. The result comes back as an input.
pub(in crate::session::core) fn found(
    base: &mut Base,
    operation: Operation,
    draft: &Draft,
    first_newer: Option<&EntryId>,
    tokens_after: u64,
) -> Option<Step> {
    let founding = Founding::of(&base.state, draft, first_newer, tokens_after, &mut base.stamps);
    let Some((result, founding)) = founding.and_then(|it| Some((sent(&it.carrier, draft)?, it))) else {
        return Some(Step::end(operation, End::Failed(defect())));
    };
    operation.commits();
    let founded = Founded::Compaction { session: founding.id().clone(), result };
    base.effects.start(Job::Found(operation.id.clone(), Box::new(founding)));
    base.work = Work::Founding(operation, Box::new(founded));
    None
}

/// A session was made, or not.
pub(in crate::session::core) fn founded(
    base: &mut Base,
    prompts: &mut Prompts,
    id: &OperationId,
    outcome: Outcome,
) -> Option<Step> {
    let (operation, founded) = match base.work.take() {
        Work::Founding(operation, founded) if operation.id == *id => (operation, founded),
        other => {
            base.work = other;
            return None;
        }
    };
    let end = match *founded {
        Founded::Handoff { made, saved } => handed_over(made, saved, outcome),
        Founded::Compaction { session, result } => match outcome {
            Ok(_) => End::Completed(Product::Founded(result, session)),
            Err(failed) => End::Failed(failed.into()),
        },
    };
    prompts.replaced(base, operation, end)
}
