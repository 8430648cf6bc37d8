//! A compaction in a session: request, plan, draft, write, result.

pub(in crate::session::core) mod after_turn;
mod committing;
mod delayed;
pub mod planning;
pub(in crate::session::core) mod result;
#[cfg(test)]
mod tests;

use crate::{
    ask::{
        access::ModelAccess,
        purpose::Purpose,
        rank::Rank,
        request::{RetryOutcome, Update},
    },
    compaction::{
        draft::Draft,
        request::{Cause, Planned},
    },
    conversation::{entry, spending::Trigger},
    ids::OperationId,
    log::sealed::Blocking,
    protocol::{
        SessionCompact,
        errors::Failure,
        events::{ChunkSource, Stage},
        notices::Warning,
        types::{CompactParams, HookEvent, Initiator, SummaryMethod, Usage, When},
    },
    provider::Delta,
    session::{
        core::{
            Core,
            command::{Command, CommandMethod},
            commands::founding,
            costs::FailedAhead,
            parts::{facts::Facts, held_contexts::HeldContext},
            standing::Standing,
            transfers::relaying,
            work::{Request, Work},
        },
        effects::{Answer, Effect, Ticket},
        fault::{Fault, planted},
        hooks::Hooks,
        jobs::{
            self, Authors, DraftOrder, Focus, Job, PlanMade, PlanOrder,
            hooks::HookOrder,
            progress::{HookStep, Progress},
        },
        kind::{OperationKind, Product},
        operation::Operation,
        operations::{Asked, End, Opening, Place},
        stop::Stop,
    },
    summary::{
        SPLIT_TURN,
        made::{Made, PartOrigins, Rejected, SummaryPart},
        model::writer::Step,
    },
};
use after_turn::turn_is_over;
use std::{sync::Arc, time::Duration};

impl CommandMethod for SessionCompact {
    fn command(params: CompactParams) -> Command {
        Command::Compact(params)
    }
}

impl Standing<'_> {
    fn may_compact(&self, params: &CompactParams, dry_run: bool) -> Result<(), Failure> {
        if let Some(expected) = &params.expected_leaf_id
            && !self.core.state.unchanged_since(expected)
        {
            return Err(Failure::ContentModified { leaf: self.core.state.visible_leaf() });
        }
        if dry_run {
            return Ok(());
        }
        self.core.log.writable(&self.core.state)?;
        self.core.work.nothing_planned()?;
        self.core.operations.room_for(&OperationKind::BY_CLIENT)
    }

    /// Refuses a request that changes the context while an operation runs or is planned.
    pub(in crate::session::core) fn free(&self) -> Result<(), Failure> {
        if planted(Fault::BusyIgnored) {
            return Ok(());
        }
        self.core.work.nothing_planned()?;
        self.core.operations.idle()
    }
}

impl Core {
    pub(in crate::session::core) fn compact(&mut self, params: CompactParams, ticket: Ticket) {
        if ticket.cancelled() {
            return ticket.fail(&Failure::Cancelled);
        }
        let dry_run = params.dry_run == Some(true);
        let after_turn = !dry_run && params.when == Some(When::AfterTurn);
        if let Err(failure) = Standing::of(self).may_compact(&params, dry_run || after_turn) {
            return ticket.fail(&failure);
        }
        let authors = match Authors::of(&params) {
            Ok(authors) => authors,
            Err(failure) => return ticket.fail(&failure),
        };
        if after_turn && !(Standing::of(self).may_maintain() && turn_is_over(self.state.path())) {
            return self.delay(params, ticket);
        }
        let initiator = params.initiator.unwrap_or(Initiator::User);
        let mut request = planning::plan_request(&self.state, params.keep_recent_tokens, initiator, Cause::Asked);
        request.insists = insists(&params, self.hooks());
        if dry_run {
            let stop = self.reads.stop.clone();
            let read = move |access: &ModelAccess, blocking: &Blocking| {
                let stop = || stop.requested() || blocking.is_stopped();
                Answer::from(jobs::dry_run(request, &authors, access, &stop))
            };
            return self.reads.start_outside(ticket, read);
        }
        let (id, stop) = (self.stamps.operation(), Stop::default());
        self.upkeep.moves = founding::moved(&id, &params);
        self.effects.start(Job::Plan(PlanOrder { id: id.clone(), request, authors, former: None, stop: stop.clone() }));
        let asked = Asked::by(ticket, params.wait);
        self.work = Work::Planning(Request { id, kind: OperationKind::BY_CLIENT, params, asked, stop });
    }

    /// Takes a plan. Its operation begins when the log is here, because its start follows the answer and the events of the
    /// write before it.
    pub(in crate::session::core) fn planned(&mut self, id: &OperationId, result: Result<PlanMade, Failure>) {
        if self.upkeep.ahead.is(id) {
            return self.speculate(|ahead, facts| ahead.planned(result, facts));
        }
        match self.work.take() {
            Work::Planning(request) if request.id == *id && self.log.is_free() => self.begin(request, result),
            Work::Planning(request) if request.id == *id => self.work = Work::Planned(request, Box::new(result)),
            Work::Preparing(operation, focus) if operation.id == *id => match result {
                Ok(made) => self.draft(operation, made, focus),
                Err(failure) => self.finish(operation, no_draft(failure)),
            },
            other => self.work = other,
        }
    }

    /// Begins the compaction that was planned, or answers why there is no plan.
    pub(in crate::session::core) fn begin(&mut self, request: Request, result: Result<PlanMade, Failure>) {
        if request.kind.is_idle() {
            return self.begin_idle(request, result);
        }
        let Request { id, kind, params, asked, stop } = request;
        let made = match result {
            Ok(made) => made,
            Err(failure) => {
                asked.into_request().into_iter().for_each(|ticket| ticket.fail(&failure));
                return self.answer_held();
            }
        };
        let usage = Usage::of(&made.planned.fullness, self.state.path());
        let operation = self.open(kind, Place::Top(id), asked, usage, stop);
        self.draft(operation, made, Focus::of(params));
    }

    /// Starts an operation. A start is recorded before it is sent.
    pub(in crate::session::core) fn open(
        &self,
        kind: OperationKind,
        place: Place,
        asked: Asked<Ticket>,
        usage: Usage,
        stop: Stop,
    ) -> Operation {
        let started_at = entry::timestamp(self.stamps.now());
        let opening = Opening { kind, place, asked, usage, stop, started: self.now, started_at };
        self.upkeep.after_turn.record(self.operations.unfinished_with(&opening), &self.effects);
        self.operations.start(opening)
    }

    /// Makes the draft of a plan.
    pub(in crate::session::core) fn draft(&mut self, operation: Operation, made: PlanMade, focus: Focus) {
        operation.progress(Stage::Summarizing, 0, 1);
        let rank = if operation.kind.is_idle() { Rank::background() } else { Rank::foreground() };
        let (id, stop) = (operation.id.clone(), operation.stop.clone());
        self.order_draft(id, &operation.kind, made, focus, rank, stop);
        self.upkeep.ahead.drafting_begins(self.now);
        self.work = Work::Drafting(operation);
    }

    /// Starts the job that makes the draft of a plan. A compaction that was asked for has no deadline.
    pub(in crate::session::core) fn order_draft(
        &self,
        id: OperationId,
        kind: &OperationKind,
        made: PlanMade,
        focus: Focus,
        rank: Rank,
        stop: Stop,
    ) {
        let settings = self.state.settings().clone();
        let deadline = Duration::from_secs(settings.settings.compaction.deadline_seconds);
        let deadline = kind.is_automatic().then_some(deadline);
        let trigger = kind.trigger();
        let tokens = self.costs.tokens_for(
            trigger,
            self.upkeep.ahead.tokens(&Standing::of(self).facts()),
            &Standing::of(self).facts(),
        );
        let PlanMade { planned: Planned { plan, .. }, candidates, native, only } = made;
        let hooks = hooks_of(kind, self.hooks());
        self.effects.start(Job::Draft(DraftOrder {
            id,
            trigger,
            tokens,
            plan,
            candidates,
            native,
            only,
            focus,
            hooks,
            settings,
            deadline,
            rank,
            stop,
        }));
    }

    pub(in crate::session::core) fn drafted(&mut self, drafted: &OperationId, result: Result<Draft, Failure>) {
        if self.upkeep.ahead.is(drafted) {
            self.speculate(|ahead, facts| ahead.drafted(result, facts));
            return;
        }
        let mut operation = match self.work.take() {
            Work::Drafting(operation) if operation.id == *drafted => operation,
            other => {
                self.work = other;
                return;
            }
        };
        let result = if operation.kind.is_idle() { result.and_then(written) } else { result };
        let end = match result {
            _ if operation.is_stopped() => End::Cancelled,
            Ok(draft) => {
                self.upkeep.ahead.drafting_ends(self.now, &draft);
                if self.upkeep.ahead.is_outgrown(drafted, &draft, &self.state) {
                    let (id, stop) = (operation.id.clone(), operation.stop.clone());
                    let request = planning::plan_request(&self.state, None, Initiator::User, Cause::Due);
                    self.effects.start(Job::Plan(PlanOrder {
                        id,
                        request,
                        authors: Authors::Anyone,
                        former: None,
                        stop,
                    }));
                    self.work = Work::Preparing(operation, Focus::default());
                    return;
                }
                let extracted = draft.made.parts.as_deref().and_then(PartOrigins::extracted);
                if draft.made.is_extracted() {
                    operation.progress(Stage::Summarizing, 1, 1);
                    tell_chunks(&mut operation, &draft);
                } else if let Some(part) = extracted {
                    tell_part(&mut operation, &draft, part);
                }
                operation.progress(Stage::Checking, 1, 1);
                self.work = Work::Drafted(operation, Box::new(draft));
                return;
            }
            Err(failure) => no_draft(failure),
        };
        self.finish(operation, end);
    }

    /// Sends a step of a draft in the making. A cancelled draft sends nothing; its cost is still recorded.
    pub(in crate::session::core) fn reported(&mut self, id: &OperationId, progress: Progress) {
        let step = match progress {
            Progress::Summary(step) => step,
            Progress::Hook(step) => return self.hook_reported(id, &step),
        };
        match (step, self.work.drafting(id)) {
            (Step::Request(_, Update::Spent(spent)), compaction) => {
                // A provider may report too few of them.
                if spent.trigger == Trigger::Speculative {
                    let tokens = spent.usage.context_tokens().max(spent.sent);
                    self.upkeep.ahead.charge(id, tokens, compaction.as_deref(), self.now);
                }
                self.costs.add(id.clone(), spent, self.now);
            }
            (Step::Request(_, Update::AtStake(tokens)), compaction) => {
                if self.upkeep.ahead.charge(id, tokens, compaction.as_deref(), self.now) {
                    self.costs.add_failed(FailedAhead { tokens, failure: None });
                }
            }
            (_, None) => {}
            (Step::Progress { done, total }, Some(operation))
                if matches!(operation.kind, OperationKind::Transfer(_)) =>
            {
                operation.moves_forward(Stage::Summarizing, done, total);
            }
            (Step::Progress { done, total }, Some(operation)) => operation.progress(Stage::Summarizing, done, total),
            (Step::Chunk { purpose, number }, Some(operation)) => {
                ChunkSource::of(purpose).into_iter().for_each(|source| operation.moves_to(source, number));
            }
            (Step::Request(purpose, update), Some(_)) => self.request_reported(id, purpose, update),
        }
    }

    /// Sends a report on a request to a model.
    fn request_reported(&mut self, id: &OperationId, purpose: Purpose, update: Update) {
        let Self { work, upkeep, effects, .. } = self;
        let Some(operation) = work.drafting(id) else { return };
        let record = |open| upkeep.after_turn.record(open, effects);
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
    fn hook_reported(&mut self, id: &OperationId, step: &HookStep) {
        let Self { work, upkeep, effects, .. } = self;
        let Some(operation) = work.drafting(id) else { return };
        let record = |open| upkeep.after_turn.record(open, effects);
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

    /// Ends an operation. There is no work any more when the end is sent, so a client can act on it at once.
    pub(in crate::session::core) fn finish(&mut self, operation: Operation, end: End<Product>) {
        self.finish_with(operation, end, None);
    }

    /// The same, with a notice about the work itself.
    fn finish_with(&mut self, operation: Operation, end: End<Product>, notice: Option<Warning>) {
        let facts = Facts::of(&self.state, &self.recoveries.contexts, self.now, &self.stamps);
        let after = match &operation.kind {
            OperationKind::Transfer(transfer) => transfer.notices(&end),
            kind => {
                let lack = self.costs.take_lack(&facts);
                let follows_handoffs = relaying::client_follows_handoffs(&self.state, &self.upkeep.relays);
                self.upkeep.told.notices_after(&facts, kind, &end, lack, follows_handoffs)
            }
        };
        let notices = notice.into_iter().chain(after).collect();
        self.rests_after(&operation.kind, &end);
        self.transfer_ends(&operation.kind, &end);
        self.held.go_on_after(&operation.kind, &end);
        if let End::Completed(product) = &end
            && (operation.kind == OperationKind::BY_CLIENT && product.new_session().is_none()
                || product.replaces_session())
        {
            self.leave_superseded();
        }
        if operation.kind.is_idle() {
            return self.finish_idle(operation, end, notices);
        }
        self.idle.rounds.arm(self.now);
        if self.upkeep.relays.around().is_some() {
            return self.finish_relay(operation, end, notices);
        }
        if matches!(operation.kind, OperationKind::Recovering(_)) {
            return self.finish_inside(operation, end, notices);
        }
        self.settle();
        operation.finish(end, &self.sent_usage, notices);
        self.record_running();
        self.answer_held();
    }

    pub(in crate::session::core) fn answer_held(&mut self) {
        self.settle();
        for HeldContext { params, ticket, starts } in self.held.take() {
            self.context(params, ticket, starts);
        }
    }
}

/// Whether a compaction is made even where it makes nothing smaller. A hook is asked about that.
pub(in crate::session::core) fn insists(params: &CompactParams, hooks: &Hooks) -> bool {
    params.instructions.is_some() || hooks.answers(HookEvent::SessionBeforeCompact)
}

/// The hooks that a compaction asks.
fn hooks_of(kind: &OperationKind, hooks: &Arc<Hooks>) -> Option<HookOrder> {
    let asks = hooks.concerns_compaction() && *kind != OperationKind::Speculation;
    asks.then(|| HookOrder { hooks: hooks.clone(), reason: kind.reason(), will_retry: kind.repeats_the_turn() })
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
fn tell_chunks(operation: &mut Operation, draft: &Draft) {
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
fn tell_part(operation: &mut Operation, draft: &Draft, part: SummaryPart) {
    let Some((history, prefix)) = draft.summary.text.split_once(SPLIT_TURN) else { return };
    let (source, text) = match part {
        SummaryPart::History => (ChunkSource::History, history),
        SummaryPart::TurnPrefix => (ChunkSource::TurnPrefix, prefix),
    };
    operation.moves_to(source, 1);
    operation.begins(source);
    operation.chunks(source, text);
}
