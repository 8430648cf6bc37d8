//! Reports on a draft in the making, as events of its operation.

use crate::{
    ask::request::{RetryOutcome, Update},
    conversation::spending::Trigger,
    ids::OperationId,
    protocol::{errors::Failure, events::Stage},
    session::{
        core::{automatic::speculation::Ahead, base::Base, costs::FailedAhead},
        effects::Effect,
        jobs::progress::{HookStep, Progress},
    },
    summary::model::writer::Step,
};

/// Sends a step of a draft in the making. A cancelled draft sends nothing; its cost is still recorded.
pub(in crate::session::core) fn reported(base: &mut Base, ahead: &mut Ahead, id: &OperationId, progress: Progress) {
    let step = match progress {
        Progress::Summary(step) => step,
        Progress::Hook(step) => return hook_reported(base, id, &step),
    };
    let Base { work, lock, effects, costs, now, .. } = base;
    let record = |open| lock.record(open, effects);
    match (step, work.drafting(id)) {
        (Step::Request(_, Update::Spent(spent)), compaction) => {
            // A provider may report too few of them.
            if spent.trigger == Trigger::Speculative {
                let tokens = spent.usage.context_tokens().max(spent.sent);
                ahead.charge(id, tokens, compaction.as_deref(), *now);
            }
            costs.add(id.clone(), spent, *now);
        }
        (Step::Request(_, Update::AtStake(tokens)), compaction) => {
            if ahead.charge(id, tokens, compaction.as_deref(), *now) {
                costs.add_failed(FailedAhead { tokens, failure: None });
            }
        }
        (_, None) => {}
        (Step::Request(purpose, Update::RetryStart { attempt, most, delay, failed }), Some(operation)) => {
            operation.retry_starts(purpose.into(), attempt, most, delay, &Failure::from(&failed), record);
        }
        (Step::Request(purpose, Update::RetryEnd { attempt, outcome }), Some(operation)) => {
            let failure = match outcome {
                RetryOutcome::Answered => None,
                RetryOutcome::Failed(failed) => Some(Failure::from(&failed)),
                RetryOutcome::Cancelled => Some(Failure::Cancelled),
            };
            operation.retry_ends(purpose.into(), attempt, failure.as_ref(), record);
        }
        (step, Some(operation)) => operation.step(step),
    }
}

/// Sends a step of a hook. The client is asked after the start event.
fn hook_reported(base: &mut Base, id: &OperationId, step: &HookStep) {
    let Base { work, lock, effects, .. } = base;
    let Some(operation) = work.drafting(id) else { return };
    let record = |open| lock.record(open, effects);
    match step {
        HookStep::HookBegins { hook, sent } => {
            operation.hook_starts(*hook, record);
            operation.progress(Stage::Hook, 0, 1);
            effects.push(Effect::Open(sent.clone()));
        }
        HookStep::HookEnds { hook, outcome, why } => {
            operation.hook_ends(*hook, *outcome, why.clone(), record);
            operation.progress(Stage::Hook, 1, 1);
        }
    }
}
