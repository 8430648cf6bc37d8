//! Maintenance of an idle session: its timer, its turn among the sessions of the daemon, its plan and its run.
//!
//! It starts at a tick alone, when nothing else runs or waits, and it gives way to everything else.

use crate::{
    compaction::request::Cause,
    ids::OperationId,
    protocol::{
        errors::Failure,
        events::Reason,
        notices::Warning,
        types::{CompactParams, IdleSkipped, Initiator, RunIdleAnswer, Usage},
    },
    session::{
        core::{
            Core,
            work::{Request, Work},
        },
        effects::{Effect, IdleTurn, Ticket, Turning},
        fault::{Fault, planted},
        jobs::{Authors, Focus, Job, PlanMade, PlanOrder},
        kind::{OperationKind, Product},
        operation::Operation,
        operations::{Asked, End, Place},
        stop::Stop,
    },
};
use std::time::{Duration, Instant};

/// The longest delay after failures: the longest time that the setting allows.
const LONGEST_DELAY: Duration = Duration::from_secs(86_400);

/// The idle maintenance of a session.
pub(in crate::session::core) struct Maintenance {
    /// The time of the last activity, or of the opening.
    active: Instant,
    /// The time from which the timer runs, if it runs.
    armed: Option<Instant>,
    /// Rounds that failed since the last compaction that completed.
    failures: u32,
    /// Whether nothing was to be compacted and the conversation has not changed since.
    exhausted: bool,
    /// The reason at the leaf when the bodies were dropped.
    at_sleep: Option<IdleSkipped>,
    round: Round,
}

/// A round of idle maintenance.
#[derive(Default)]
enum Round {
    /// There is none.
    #[default]
    No,
    /// It waits for its turn among the sessions.
    Waiting(Caller),
    /// It is the turn of this session. The round starts when the session is quiet.
    Mine(Caller),
    /// Its plan is being made.
    Planning,
    /// It runs.
    Running(Operation),
}

/// The cause of a round.
enum Caller {
    /// The timer.
    Timer,
    /// A `session/run_idle` that is not answered.
    Request(Ticket),
}

/// A round that was ended before its start. It is still to be answered.
#[must_use]
pub(in crate::session::core) struct Unstarted(Caller);

impl Maintenance {
    /// A session that is being opened. Its timer does not run.
    pub fn new(now: Instant) -> Self {
        Self { active: now, armed: None, failures: 0, exhausted: false, at_sleep: None, round: Round::No }
    }

    /// Starts the timer anew.
    pub fn arm(&mut self, now: Instant) {
        (self.active, self.armed) = (now, Some(now));
    }

    /// The time from an activity to the round. Each failure in a row doubles it.
    fn delay(&self, timeout: Duration) -> Duration {
        let doubled = 2_u32.saturating_pow(self.failures);
        timeout.saturating_mul(doubled).min(LONGEST_DELAY.max(timeout))
    }
}

impl Core {
    /// A client or another program is active: the timer starts anew, and a round ends, unless its result is being written.
    pub(in crate::session::core) fn is_active(&mut self) {
        self.idle.arm(self.now);
        self.idle_gives_way();
    }

    /// The conversation has changed: the timer starts anew, and there may be something to compact.
    pub(in crate::session::core) fn has_changed(&mut self) {
        (self.idle.maintenance.exhausted, self.idle.maintenance.at_sleep) = (false, None);
        self.is_active();
    }

    /// Ends a round for other work, unless its result is being written. That says nothing about the next maintenance.
    pub(in crate::session::core) fn idle_gives_way(&mut self) {
        if planted(Fault::IdleStays) {
            return;
        }
        self.end_unstarted_round(IdleSkipped::Busy);
        if let Round::Running(operation) = &self.idle.maintenance.round
            && !matches!(self.work, Work::Committing(_))
        {
            let (cancelling, rest) = (self.operations.cancel(Some(&operation.id)), self.upkeep.rest);
            self.end_cancelled(cancelling);
            self.upkeep.rest = rest;
        }
    }

    /// Ends a round that has not started, and answers its request.
    pub(in crate::session::core) fn end_unstarted_round(&mut self, why: IdleSkipped) {
        let unstarted = self.take_unstarted_round();
        self.answer_unstarted_round(unstarted, why);
    }

    fn take_unstarted_round(&mut self) -> Option<Unstarted> {
        let caller = match std::mem::take(&mut self.idle.maintenance.round) {
            Round::No => return None,
            Round::Running(operation) => {
                self.idle.maintenance.round = Round::Running(operation);
                return None;
            }
            Round::Waiting(caller) | Round::Mine(caller) => caller,
            Round::Planning => match self.work.take_unstarted(None) {
                Some(request) => {
                    request.stop.request();
                    Caller::of(request.asked)
                }
                None => Caller::Timer,
            },
        };
        Some(Unstarted(caller))
    }

    fn answer_unstarted_round(&mut self, unstarted: Option<Unstarted>, why: IdleSkipped) {
        if let Some(Unstarted(caller)) = unstarted {
            caller.skips(why);
            self.leave_turn();
        }
    }

    /// Takes a round that has not started where a cancel names no operation. A round has no id before its start.
    pub(in crate::session::core) fn cancel_unstarted_round(
        &mut self,
        which: Option<&OperationId>,
    ) -> Option<Unstarted> {
        which.is_none().then(|| self.take_unstarted_round()).flatten()
    }

    /// Answers the request of a round that a cancel took.
    pub(in crate::session::core) fn end_cancelled_round(&mut self, unstarted: Option<Unstarted>) {
        self.answer_unstarted_round(unstarted, IdleSkipped::Cancelled);
    }

    /// Ends a round whose request the client cancelled.
    pub(in crate::session::core) fn end_round_without_request(&mut self) {
        let cancelled = match &self.idle.maintenance.round {
            Round::Waiting(Caller::Request(ticket)) | Round::Mine(Caller::Request(ticket)) => ticket.cancelled(),
            Round::Planning => self.work.request_cancelled(),
            Round::No | Round::Waiting(_) | Round::Mine(_) | Round::Running(_) => false,
        };
        if cancelled {
            self.end_unstarted_round(IdleSkipped::Cancelled);
        }
    }

    /// Leaves the turn behind a round that was cancelled.
    pub(in crate::session::core) fn leave_ended_round(&mut self) {
        if let Round::Running(operation) = &self.idle.maintenance.round
            && !operation.is_open()
        {
            self.idle.maintenance.round = Round::No;
            self.leave_turn();
        }
    }

    fn leave_turn(&self) {
        if !planted(Fault::IdleTurnKept) {
            self.effects.push(Effect::IdleTurn(Turning::Leave));
        }
    }

    /// Whether work runs that is not idle maintenance.
    pub(in crate::session::core) fn works_in_front(&self) -> bool {
        !self.work.is_none() && !self.work.is_idle()
    }

    /// The time at which the timer ends.
    pub(super) fn maintains_at(&self) -> Option<Instant> {
        let (maintenance, settings) = (&self.idle.maintenance, &self.state.settings().settings.compaction);
        match &maintenance.round {
            Round::No if settings.idle_enabled && self.goes_on() => {
                let timeout = Duration::from_secs(settings.idle_timeout_seconds);
                maintenance.armed?.checked_add(maintenance.delay(timeout))
            }
            Round::No | Round::Mine(_) | Round::Waiting(_) | Round::Planning | Round::Running(_) => None,
        }
    }

    /// Whether a round is to start now.
    pub(super) fn has_turn(&self) -> bool {
        matches!(self.idle.maintenance.round, Round::Mine(_)) && self.index.build.is_none()
    }

    /// Takes the next step of idle maintenance. The session is quiet.
    pub(super) fn maintain_idle(&mut self) {
        let is_asleep = self.state.history().is_asleep();
        match std::mem::take(&mut self.idle.maintenance.round) {
            Round::No => {
                self.idle.maintenance.armed = None;
                let objection = if is_asleep { self.objection_asleep() } else { self.idle_objection() };
                match objection {
                    None => self.ask_for_turn(Caller::Timer),
                    // Other work ends by itself, and starts no timer where it is in the background.
                    Some(IdleSkipped::Busy) => self.idle.maintenance.armed = Some(self.now),
                    Some(_) => {}
                }
            }
            Round::Mine(caller) if is_asleep => {
                self.idle.maintenance.round = Round::Mine(caller);
                self.wake();
            }
            Round::Mine(caller) if self.lacks_past() => {
                self.idle.maintenance.round = Round::Mine(caller);
                self.start_indexing();
            }
            Round::Mine(caller) => match self.idle_objection() {
                Some(why) => {
                    caller.skips(why);
                    self.leave_turn();
                }
                None => self.plan_idle(caller),
            },
            other => self.idle.maintenance.round = other,
        }
    }

    fn ask_for_turn(&mut self, caller: Caller) {
        if planted(Fault::IdleTurnAssumed) {
            self.idle.maintenance.round = Round::Mine(caller);
            return;
        }
        self.idle.maintenance.round = Round::Waiting(caller);
        self.effects.push(Effect::IdleTurn(Turning::Ask));
    }

    /// The turn of this session among all has come, or it waits.
    pub(in crate::session::core) fn idle_turn(&mut self, turn: IdleTurn) {
        let round = &mut self.idle.maintenance.round;
        match (turn, std::mem::take(round)) {
            (IdleTurn::Comes, Round::Waiting(caller)) => *round = Round::Mine(caller),
            (IdleTurn::Waits, Round::Waiting(caller)) => {
                *round = Round::Waiting(Caller::Timer);
                caller.skips(IdleSkipped::Queued);
            }
            // It was left meanwhile.
            (IdleTurn::Comes, Round::No) => self.leave_turn(),
            (IdleTurn::Comes | IdleTurn::Waits, other) => *round = other,
        }
    }

    /// A `session/run_idle`: what the timer would start, at once.
    pub(in crate::session::core) fn run_idle(&mut self, ticket: Ticket) {
        if let Err(failure) = self.writable() {
            return ticket.fail(&failure);
        }
        match &self.idle.maintenance.round {
            Round::No => match self.idle_objection() {
                Some(why) => Caller::Request(ticket).skips(why),
                None => self.ask_for_turn(Caller::Request(ticket)),
            },
            Round::Waiting(_) => Caller::Request(ticket).skips(IdleSkipped::Queued),
            Round::Mine(_) | Round::Planning | Round::Running(_) => Caller::Request(ticket).skips(IdleSkipped::Busy),
        }
    }

    fn plan_idle(&mut self, caller: Caller) {
        let (id, stop) = (self.stamps.operation(), Stop::default());
        let request = self.plan_request(None, Initiator::User, Cause::Due);
        self.start(Job::Plan(PlanOrder {
            id: id.clone(),
            request,
            authors: Authors::Anyone,
            former: None,
            stop: stop.clone(),
        }));
        let seconds = self.now.saturating_duration_since(self.idle.maintenance.active).as_secs();
        let asked = match caller {
            Caller::Timer => Asked::Unasked,
            Caller::Request(ticket) => Asked::by(ticket, None),
        };
        let params = CompactParams::of(self.state.id.clone());
        self.work = Work::Planning(Request { id, kind: OperationKind::Idle { seconds }, params, asked, stop });
        self.idle.maintenance.round = Round::Planning;
    }

    /// Starts the round that was planned. Without a plan nothing is sent.
    pub(in crate::session::core) fn begin_idle(&mut self, request: Request, result: Result<PlanMade, Failure>) {
        let Request { id, kind, asked, stop, .. } = request;
        self.idle.maintenance.round = Round::No;
        let made = match result {
            Ok(made) if self.is_below_idle_threshold(made.planned.fullness.context_tokens) => {
                return self.skip_planned(asked, IdleSkipped::BelowThreshold);
            }
            Ok(made) => made,
            Err(Failure::NothingToCompact(_)) => {
                self.idle.maintenance.exhausted = true;
                return self.skip_planned(asked, IdleSkipped::NothingToCompact);
            }
            Err(failure) => {
                self.idle.maintenance.failures = self.idle.maintenance.failures.saturating_add(1);
                asked.into_request().into_iter().for_each(|ticket| ticket.fail(&failure));
                return self.leave_turn();
            }
        };
        let usage = Usage::of(&made.planned.fullness, self.state.path());
        let opening = self.opening(kind, Place::Top(id), asked, usage.clone(), stop.clone());
        let round = self.start_operation(opening);
        let place = round.part(self.stamps.operation());
        let kind = OperationKind::Compaction(Reason::Idle);
        let opening = self.opening(kind, place, Asked::Introduced, usage, stop);
        let compaction = self.start_operation(opening);
        self.idle.maintenance.round = Round::Running(round);
        self.draft(compaction, made, Focus::default());
    }

    fn skip_planned(&self, asked: Asked<Ticket>, why: IdleSkipped) {
        Caller::of(asked).skips(why);
        self.leave_turn();
    }

    /// Ends the round around a compaction that has ended. The end of the compaction comes first, and `notices` after both.
    pub(in crate::session::core) fn finish_idle(
        &mut self,
        compaction: Operation,
        end: End<Product>,
        notices: Vec<Warning>,
    ) {
        let maintenance = &mut self.idle.maintenance;
        let around = match &end {
            End::Completed(_) => End::Completed(Product::Maintained),
            End::Cancelled => End::Cancelled,
            End::Failed(failure) => {
                // A path that has changed is no failure of the round.
                let fails = !matches!(failure, Failure::ContentModified { .. });
                maintenance.failures = maintenance.failures.saturating_add(u32::from(fails));
                End::Failed(failure.clone())
            }
            End::Skipped(nothing) => {
                maintenance.exhausted = true;
                End::Skipped(*nothing)
            }
        };
        let round = std::mem::take(&mut maintenance.round);
        compaction.finish(end, &self.sent_usage, Vec::new());
        if let Round::Running(round) = round {
            round.finish(around, &self.sent_usage, notices);
        }
        self.record_running();
        self.leave_turn();
        self.answer_held();
    }

    /// A compaction has completed: the next failure is the first.
    pub(in crate::session::core) fn idle_succeeds(&mut self) {
        self.idle.maintenance.failures = 0;
    }

    /// The bodies are about to be dropped: the reason at the leaf is kept, if the timer runs.
    pub(super) fn notes_leaf(&mut self) {
        if self.idle.maintenance.armed.is_some() {
            self.idle.maintenance.at_sleep = self.objection_at_leaf();
        }
    }

    /// The reason at the leaf when the bodies were dropped.
    pub(super) fn reason_at_sleep(&self) -> Option<IdleSkipped> {
        self.idle.maintenance.at_sleep
    }

    /// Whether nothing was to be compacted, and the conversation has not changed since.
    pub(super) fn is_exhausted(&self) -> bool {
        self.idle.maintenance.exhausted
    }
}

impl Caller {
    /// The request that a round was asked for by.
    fn of(asked: Asked<Ticket>) -> Self {
        asked.into_request().map_or(Self::Timer, Self::Request)
    }

    /// Answers that nothing starts. The timer is told nothing.
    fn skips(self, skipped: IdleSkipped) {
        match self {
            Self::Timer => {}
            Self::Request(ticket) if ticket.cancelled() => ticket.fail(&Failure::Cancelled),
            Self::Request(ticket) => ticket.ok(&RunIdleAnswer::Skipped { skipped }),
        }
    }
}
