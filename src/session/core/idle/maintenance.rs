//! Idle maintenance in a session: its rounds start at a tick alone, when nothing else runs or waits, and give way to
//! everything else.

use super::{
    checks::{Check, is_below_threshold},
    rounds::{Step, Unstarted},
};
use crate::{
    compaction::request::Cause,
    protocol::{
        errors::Failure,
        events::Reason,
        notices::Warning,
        types::{CompactParams, IdleSkipped, Initiator, Usage},
    },
    session::{
        core::{
            Core,
            commands::compacting::planning,
            standing::Standing,
            work::{Request, Work},
        },
        effects::{Ticket, Turning},
        fault::{Fault, planted},
        jobs::{Authors, Focus, Job, PlanMade, PlanOrder},
        kind::{OperationKind, Product},
        operation::Operation,
        operations::{Asked, End, Place},
        stop::Stop,
    },
};

impl Standing<'_> {
    pub(super) fn idle_check(&self) -> Check<'_> {
        Check {
            facts: self.facts(),
            is_busy: !self.nothing_waits(),
            is_writable: self.core.log.writable(&self.core.state).is_ok(),
            rests: self.rests(),
            is_exhausted: self.core.idle.rounds.is_exhausted(),
            sent_tokens: self.core.sent_usage.context_tokens,
            at_sleep: self.core.idle.rounds.reason_at_sleep(),
        }
    }
}

impl Core {
    /// A client or another program is active: the timer starts anew, and a round ends, unless its result is being written.
    pub(in crate::session::core) fn is_active(&mut self) {
        self.idle.rounds.arm(self.now);
        self.idle_gives_way();
    }

    /// The conversation has changed: the timer starts anew, and there may be something to compact.
    pub(in crate::session::core) fn has_changed(&mut self) {
        self.idle.rounds.conversation_changes();
        self.is_active();
    }

    /// Ends a round for other work, unless its result is being written. That says nothing about the next maintenance.
    pub(in crate::session::core) fn idle_gives_way(&mut self) {
        if planted(Fault::IdleStays) {
            return;
        }
        self.end_unstarted_round(IdleSkipped::Busy);
        if let Some(operation) = self.idle.rounds.running()
            && !matches!(self.work, Work::Committing(_))
        {
            let (cancelling, rest) = (self.operations.cancel(Some(&operation.id)), self.upkeep.rest);
            self.end_cancelled(cancelling);
            self.upkeep.rest = rest;
        }
    }

    /// Takes a round that has not started. It has no id before its start.
    pub(in crate::session::core) fn take_unstarted_round(&mut self) -> Option<Unstarted> {
        let work = &mut self.work;
        self.idle.rounds.take_unstarted(|| {
            let request = work.take_unstarted(None)?;
            request.stop.request();
            Some(request.asked)
        })
    }

    /// Ends a round that has not started, and answers its request.
    pub(in crate::session::core) fn end_unstarted_round(&mut self, why: IdleSkipped) {
        let unstarted = self.take_unstarted_round();
        self.effects.turn_idle(unstarted.and_then(|round| round.ends(why)));
    }

    /// Takes the next step of idle maintenance. The session is quiet.
    pub(super) fn maintain_idle(&mut self) {
        match self.idle.rounds.next() {
            Step::Nothing => {}
            Step::Check => {
                let objection = Standing::of(self).idle_check().objection();
                let turning = self.idle.rounds.timer_ends(objection, self.now);
                self.effects.turn_idle(turning);
            }
            Step::Plan if self.state.history().is_asleep() => self.wake(),
            Step::Plan if self.state.lacks_past() => self.start_indexing(),
            Step::Plan => match Standing::of(self).idle_check().objection() {
                Some(why) => self.end_unstarted_round(why),
                None => self.plan_idle(),
            },
        }
    }

    /// A `session/run_idle`: starts the round that the timer would start, at once.
    pub(in crate::session::core) fn run_idle(&mut self, ticket: Ticket) {
        if let Err(failure) = self.log.writable(&self.state) {
            return ticket.fail(&failure);
        }
        let objection = Standing::of(self).idle_check().objection();
        let turning = self.idle.rounds.called(ticket, objection);
        self.effects.turn_idle(turning);
    }

    fn plan_idle(&mut self) {
        let (id, stop) = (self.stamps.operation(), Stop::default());
        let request = planning::plan_request(&self.state, None, Initiator::User, Cause::Due);
        let (authors, former) = (Authors::Anyone, None);
        self.effects.start(Job::Plan(PlanOrder { id: id.clone(), request, authors, former, stop: stop.clone() }));
        let (asked, seconds) = self.idle.rounds.plans(self.now);
        let params = CompactParams::of(self.state.id.clone());
        self.work = Work::Planning(Request { id, kind: OperationKind::Idle { seconds }, params, asked, stop });
    }

    /// Starts the round that was planned. Without a plan nothing is sent.
    pub(in crate::session::core) fn begin_idle(&mut self, request: Request, result: Result<PlanMade, Failure>) {
        let Request { id, kind, asked, stop, .. } = request;
        let rounds = &mut self.idle.rounds;
        let made = match result {
            Ok(made) if !is_below_threshold(made.planned.fullness.context_tokens, &self.state.settings().settings) => {
                made
            }
            other => {
                let turning = match other {
                    Ok(_) => rounds.is_skipped(asked, IdleSkipped::BelowThreshold),
                    Err(Failure::NothingToCompact(_)) => rounds.is_skipped(asked, IdleSkipped::NothingToCompact),
                    Err(failure) => rounds.is_not_begun(asked, &failure),
                };
                return self.effects.turn_idle(turning);
            }
        };
        let usage = Usage::of(&made.planned.fullness, self.state.path());
        let round = self.open(kind, Place::Top(id), asked, usage.clone(), stop.clone());
        let place = round.part(self.stamps.operation());
        let kind = OperationKind::Compaction(Reason::Idle);
        let compaction = self.open(kind, place, Asked::Introduced, usage, stop);
        self.idle.rounds.begins(round);
        self.draft(compaction, made, Focus::default());
    }

    /// Ends the round around a compaction that has ended. The end of the compaction comes first, and `notices` after both.
    pub(in crate::session::core) fn finish_idle(
        &mut self,
        compaction: Operation,
        end: End<Product>,
        notices: Vec<Warning>,
    ) {
        let (round, around) = self.idle.rounds.compaction_ends(&end);
        compaction.finish(end, &self.sent_usage, Vec::new());
        if let Some(round) = round {
            round.finish(around, &self.sent_usage, notices);
        }
        self.record_running();
        self.effects.turn_idle(Some(Turning::Leave));
        self.answer_held();
    }
}
