//! Reports on a draft in the making, as events of its operation.

use crate::{
    ask::{
        purpose::Purpose,
        request::{RetryOutcome, Update},
    },
    conversation::spending::Trigger,
    ids::OperationId,
    protocol::{
        errors::Failure,
        events::{ChunkSource, Stage},
    },
    provider::Delta,
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
    match (step, base.work.drafting(id)) {
        (Step::Request(_, Update::Spent(spent)), compaction) => {
            // A provider may report too few of them.
            if spent.trigger == Trigger::Speculative {
                let tokens = spent.usage.context_tokens().max(spent.sent);
                ahead.charge(id, tokens, compaction.as_deref(), base.now);
            }
            base.costs.add(id.clone(), spent, base.now);
        }
        (Step::Request(_, Update::AtStake(tokens)), compaction) => {
            if ahead.charge(id, tokens, compaction.as_deref(), base.now) {
                base.costs.add_failed(FailedAhead { tokens, failure: None });
            }
        }
        (_, None) => {}
        (Step::Progress { done, total, model }, Some(operation)) => {
            operation.progress_of(Stage::Summarizing, done, total, model);
        }
        (Step::Chunk { purpose, number }, Some(operation)) => {
            ChunkSource::of(purpose).into_iter().for_each(|source| operation.moves_to(source, number));
        }
        (Step::Request(purpose, update), Some(_)) => request_reported(base, id, purpose, update),
    }
}

/// Sends a report on a request to a model.
fn request_reported(base: &mut Base, id: &OperationId, purpose: Purpose, update: Update) {
    let Base { work, lock, effects, .. } = base;
    let Some(operation) = work.drafting(id) else { return };
    let record = |open| lock.record(open, effects);
    match (update, ChunkSource::of(purpose)) {
        (Update::Begins, Some(source)) => operation.begins(source),
        (Update::Delta(Delta::Text(text)), Some(source)) => operation.chunks(source, &text),
        (Update::RetryStart { attempt, most, delay, failed }, _) => {
            operation.retry_starts(purpose.into(), attempt, most, delay, &Failure::from(&failed), record);
        }
        (Update::RetryEnd { attempt, outcome }, _) => {
            let failure = match outcome {
                RetryOutcome::Answered => None,
                RetryOutcome::Failed(failed) => Some(Failure::from(&failed)),
                RetryOutcome::Cancelled => Some(Failure::Cancelled),
            };
            operation.retry_ends(purpose.into(), attempt, failure.as_ref(), record);
        }
        (Update::Begins | Update::Delta(_) | Update::Complete | Update::Spent(_) | Update::AtStake(_), _) => {}
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
