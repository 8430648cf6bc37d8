//! A compaction in a session: request, plan, draft, write, result.

pub(in crate::session::core) mod after_turn;
pub(in crate::session::core) mod committing;
pub(in crate::session::core) mod delayed;
pub(in crate::session::core) mod ordering;
pub(in crate::session::core) mod reporting;
pub(in crate::session::core) mod result;
#[cfg(test)]
mod tests;
mod unapplied;

use crate::{
    ask::rank::Rank,
    compaction::{
        draft::Draft,
        request::{Cause, PlanRequest},
    },
    ids::OperationId,
    protocol::{
        SessionCompact,
        errors::Failure,
        events::{ChunkSource, Stage},
        types::{CompactParams, HookEvent, Initiator, SummaryMethod, Usage, When},
    },
    session::{
        core::{
            automatic::speculation::Ahead,
            base::Base,
            command::{Command, CommandMethod},
            commands::founding,
            standing::Standing,
            step::Step,
            upkeep::Upkeep,
            work::{Request, Unstarted, Work},
        },
        effects::Ticket,
        jobs::{Authors, Focus, Job, PlanMade, PlanOrder},
        kind::{OperationKind, Product},
        operation::Operation,
        operations::{Asked, End},
        stop::Stop,
    },
    summary::{
        SPLIT_TURN,
        made::{Made, PartOrigins, Rejected, SummaryPart},
    },
};
use after_turn::turn_is_over;
use ordering::ToDraft;

impl CommandMethod for SessionCompact {
    fn command(params: CompactParams) -> Command {
        Command::Compact(params)
    }
}

/// Whether a request for a compaction is valid here. `writes_now`: whether its plan is made now, for a write.
///
/// # Errors
/// When the path has changed, the file is read-only, or other work runs.
fn may_begin(base: &Base, params: &CompactParams, writes_now: bool) -> Result<(), Failure> {
    if let Some(expected) = &params.expected_leaf_id
        && !base.state.unchanged_since(expected)
    {
        return Err(Failure::ContentModified { leaf: base.state.visible_leaf() });
    }
    if !writes_now {
        return Ok(());
    }
    base.writable()?;
    base.work.nothing_planned()?;
    base.operations.room_for(&OperationKind::BY_CLIENT)
}

/// The time of a compaction that a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session::core) enum Time {
    /// Now, beside the session and without a write.
    Aside,
    Now,
    /// After the turn.
    Later,
}

impl Standing<'_> {
    /// The time of a compaction that a client asks for. One after the turn starts now, if the turn is over and maintenance may
    /// start.
    pub(in crate::session::core) fn time_of(&self, params: &CompactParams) -> Time {
        let may_start = || self.may_maintain() && turn_is_over(self.core.base.state.path());
        match params.when {
            _ if !params.writes() => Time::Aside,
            Some(When::AfterTurn) if !may_start() => Time::Later,
            _ => Time::Now,
        }
    }
}

/// Handles a request for a compaction.
pub(in crate::session::core) fn begin(
    base: &mut Base,
    upkeep: &mut Upkeep,
    params: CompactParams,
    ticket: Ticket,
    time: Time,
) -> Vec<Step> {
    let checked = match ticket.cancelled() {
        true => Err(Failure::Cancelled),
        // One after the turn is checked again when it starts.
        false => may_begin(base, &params, params.writes() && params.when != Some(When::AfterTurn)),
    };
    let authors = match checked.and_then(|()| contradicts(&params)).and_then(|()| Authors::of(&params)) {
        Ok(authors) => authors,
        Err(failure) => return vec![Step::fail(ticket, &failure)],
    };
    if time == Time::Later {
        return delayed::delay(base, &mut upkeep.after_turn, params, ticket);
    }
    if time == Time::Aside {
        match params.dry_run {
            Some(true) if params.draft != Some(true) => unapplied::plan(base, params, authors, ticket),
            _ => unapplied::begin(base, params, authors, ticket),
        }
        return Vec::new();
    }
    let request = requested_plan(base, &params);
    let (id, stop) = (base.stamps.operation(), Stop::default());
    upkeep.moves = founding::moved(&id, &params);
    base.effects.start(Job::Plan(PlanOrder { id: id.clone(), request, authors, former: None, stop: stop.clone() }));
    let asked = Asked::by(ticket, params.wait);
    base.work = Work::Planning(Request { id, kind: OperationKind::BY_CLIENT, params, asked, stop });
    Vec::new()
}

/// Refuses params of one request that exclude each other.
fn contradicts(params: &CompactParams) -> Result<(), Failure> {
    let refuse = |param, what: &str| Err(Failure::params(param, what));
    match (params.writes(), params.apply) {
        (true, _) if params.leaf_entry_id.is_some() => refuse(
            "leafEntryId",
            "a compaction is written at the session's leaf; move there with session/navigate, or give apply: false",
        ),
        (false, Some(false)) if params.new_session == Some(true) => {
            refuse("newSession", "apply: false writes nothing; leave out one of the two")
        }
        (false, Some(false)) if params.when == Some(When::AfterTurn) => {
            refuse("when", "apply: false answers now; leave out one of the two")
        }
        _ => Ok(()),
    }
}

/// The request for the plan of a compaction that a client asks for.
fn requested_plan(base: &Base, params: &CompactParams) -> PlanRequest {
    let initiator = params.initiator.unwrap_or(Initiator::User);
    let insists = params.instructions.is_some() || base.hooks.answers(HookEvent::SessionBeforeCompact);
    PlanRequest { insists, ..base.plan_request(params.keep_recent_tokens, initiator, Cause::Asked) }
}

/// Takes a plan. Its operation begins when the log is here, because its start follows the answer and the events of the
/// write before it.
pub(in crate::session::core) fn planned(
    base: &mut Base,
    id: &OperationId,
    result: Result<PlanMade, Failure>,
) -> Option<Step> {
    match base.work.take() {
        Work::Planning(request) if request.id == *id && base.log.is_free() => {
            return Some(begun(base, request, result));
        }
        Work::Planning(request) if request.id == *id => base.work = Work::Planned(request, Box::new(result)),
        Work::Preparing(operation, focus) if operation.id == *id => {
            return Some(match result {
                Ok(made) => Step::Draft(operation, made, focus),
                Err(failure) => Step::end(operation, no_draft(failure)),
            });
        }
        other => base.work = other,
    }
    None
}

/// Begins the compaction that was planned, or answers why there is no plan.
pub(in crate::session::core) fn begun(base: &mut Base, request: Request, result: Result<PlanMade, Failure>) -> Step {
    if request.kind.is_idle() {
        return Step::BeginRound(request, result);
    }
    let Request { id, kind, params, asked, stop } = request;
    match result {
        Ok(made) => {
            let usage = Usage::of(&made.planned.fullness, base.state.path());
            let operation = base.open(Unstarted { id, kind, asked, stop }, usage);
            Step::Draft(operation, made, Focus::of(params))
        }
        Err(failure) => {
            asked.into_request().into_iter().for_each(|ticket| ticket.fail(&failure));
            Step::AnswerContexts
        }
    }
}

/// Makes the draft of a plan.
pub(in crate::session::core) fn draft(
    base: &mut Base,
    ahead: &mut Ahead,
    mut operation: Operation,
    made: PlanMade,
    focus: Focus,
) {
    operation.progress(Stage::Summarizing, 0, 1);
    let rank = if operation.kind.is_idle() { Rank::background() } else { Rank::foreground() };
    let (id, stop) = (operation.id.clone(), operation.stop.clone());
    ordering::order(base, &operation.kind, ToDraft { id, made, focus, rank, stop, most: None });
    ahead.drafting_begins(base.now);
    base.work = Work::Drafting(operation);
}

/// Takes a draft.
pub(in crate::session::core) fn drafted(
    base: &mut Base,
    ahead: &mut Ahead,
    id: &OperationId,
    result: Result<Draft, Failure>,
) -> Option<Step> {
    let mut operation = match base.work.take() {
        Work::Drafting(operation) if operation.id == *id => operation,
        other => {
            base.work = other;
            return None;
        }
    };
    let result = if operation.kind.is_idle() { result.and_then(written) } else { result };
    let draft = match result {
        _ if operation.is_stopped() => return Some(Step::end(operation, End::Cancelled)),
        Ok(draft) => draft,
        Err(failure) => return Some(Step::end(operation, no_draft(failure))),
    };
    ahead.drafting_ends(base.now, &draft);
    if ahead.is_outgrown(id, &draft, &base.state) {
        base.plan(operation.id.clone(), Cause::Due, None, operation.stop.clone());
        base.work = Work::Preparing(operation, Focus::default());
        return None;
    }
    let extracted = draft.made.parts.as_deref().and_then(PartOrigins::extracted);
    if draft.made.is_extracted() {
        operation.arrives(Stage::Summarizing);
        send_chunks(&mut operation, &draft);
    } else if let Some(part) = extracted {
        send_part(&mut operation, &draft, part);
    }
    operation.progress(Stage::Checking, 1, 1);
    base.work = Work::Drafted(operation, Box::new(draft));
    None
}

/// The end of a compaction that has no draft.
fn no_draft(failure: Failure) -> End<Product> {
    match failure {
        Failure::Cancelled => End::Cancelled,
        Failure::NothingToCompact(nothing) => End::Skipped(nothing),
        failure => End::Failed(failure),
    }
}

/// A draft of idle maintenance. Nothing waits for it, and a later summary knows more than an extracted one.
///
/// # Errors
/// When models were asked and none wrote the summary.
fn written(draft: Draft) -> Result<Draft, Failure> {
    let Made { method: SummaryMethod::Extractive, rejected, unaffordable: None, .. } = &draft.origin() else {
        return Ok(draft);
    };
    let asked = |it: &&Rejected| it.method != SummaryMethod::Hook;
    let Some(last) = rejected.iter().rev().find(asked) else { return Ok(draft) };
    let (provider, model) = last.model.clone().map(|model| (model.provider, model.id)).unzip();
    let what = format!("no model wrote a usable summary; the last reason: {}", last.why);
    Err(Failure::Provider { provider, model, status: None, retryable: true, what })
}

/// The pieces of a summary, its two parts apart.
fn send_chunks(operation: &mut Operation, draft: &Draft) {
    for source in [ChunkSource::History, ChunkSource::TurnPrefix] {
        operation.moves_to(source, 1);
        operation.begins(source);
    }
    let text = &draft.summary.text;
    match text.split_once(SPLIT_TURN) {
        Some((history, prefix)) => {
            operation.chunks(ChunkSource::History, history);
            operation.chunks(ChunkSource::TurnPrefix, prefix);
        }
        None if draft.plan.history().is_empty() && draft.plan.previous().is_none() => {
            operation.chunks(ChunkSource::TurnPrefix, text);
        }
        None => operation.chunks(ChunkSource::History, text),
    }
}

/// The pieces of the part that was extracted. Those of the other part were sent as a model wrote them.
fn send_part(operation: &mut Operation, draft: &Draft, part: SummaryPart) {
    let Some((history, prefix)) = draft.summary.text.split_once(SPLIT_TURN) else { return };
    let (source, text) = match part {
        SummaryPart::History => (ChunkSource::History, history),
        SummaryPart::TurnPrefix => (ChunkSource::TurnPrefix, prefix),
    };
    operation.moves_to(source, 1);
    operation.begins(source);
    operation.chunks(source, text);
}
