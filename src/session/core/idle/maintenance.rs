//! Idle maintenance in a session: its rounds start at a tick alone, when nothing else runs or waits, and give way to
//! everything else.

use super::{
    checks::{Check, is_below_threshold},
    rounds::{Next, Rounds, UnstartedRound},
};
use crate::{
    compaction::request::Cause,
    protocol::{
        errors::Failure,
        events::Reason,
        types::{CompactParams, IdleSkipped, Usage},
    },
    session::{
        core::{
            base::Base,
            standing::Standing,
            step::Step,
            work::{Request, Unstarted, Work},
        },
        effects::Ticket,
        jobs::{Focus, PlanMade},
        kind::OperationKind,
        stop::Stop,
    },
};

impl Standing<'_> {
    pub(in crate::session::core) fn idle_check(&self) -> Check<'_> {
        Check {
            facts: self.facts(),
            is_busy: !self.nothing_waits(),
            is_writable: self.core.base.writable().is_ok(),
            rests: self.rests(),
            is_exhausted: self.core.idle.rounds.is_exhausted(),
            sent_tokens: self.core.base.sent_usage.context_tokens,
            at_sleep: self.core.idle.rounds.reason_at_sleep(),
        }
    }
}

/// The next step of idle maintenance, where the session is quiet.
pub(in crate::session::core) fn go_on(base: &mut Base, rounds: &mut Rounds, objection: Option<IdleSkipped>) {
    match rounds.next() {
        Next::Nothing => {}
        Next::Check => base.effects.turn_idle(rounds.timer_ends(objection, base.now)),
        Next::Plan if base.state.history().is_asleep() => base.wake(),
        Next::Plan if base.state.lacks_past() => base.start_indexing(),
        Next::Plan => match objection {
            Some(why) => end_unstarted(base, rounds, why),
            None => plan(base, rounds),
        },
    }
}

/// A `session/run_idle`: starts the round that the timer would start, at once.
pub(in crate::session::core) fn run(
    base: &mut Base,
    rounds: &mut Rounds,
    ticket: Ticket,
    objection: Option<IdleSkipped>,
) {
    match base.writable() {
        Ok(()) => base.effects.turn_idle(rounds.called(ticket, objection)),
        Err(failure) => ticket.fail(&failure),
    }
}

/// Takes a round that has not started. It has no id before its start.
pub(in crate::session::core) fn take_unstarted(base: &mut Base, rounds: &mut Rounds) -> Option<UnstartedRound> {
    rounds.take_unstarted(|| {
        let request = base.work.take_unstarted(None)?;
        request.stop.request();
        Some(request.asked)
    })
}

/// Ends a round that has not started, and answers its request.
pub(in crate::session::core) fn end_unstarted(base: &mut Base, rounds: &mut Rounds, why: IdleSkipped) {
    let unstarted = take_unstarted(base, rounds);
    base.effects.turn_idle(unstarted.and_then(|round| round.ends(why)));
}

fn plan(base: &mut Base, rounds: &mut Rounds) {
    let (id, stop) = (base.stamps.operation(), Stop::default());
    base.plan(id.clone(), Cause::Due, None, stop.clone());
    let (asked, seconds) = rounds.plans(base.now);
    let params = CompactParams::of(base.state.id.clone());
    base.work = Work::Planning(Request { id, kind: OperationKind::Idle { seconds }, params, asked, stop });
}

/// Starts the round that was planned. Without a plan nothing is sent.
pub(in crate::session::core) fn begin(
    base: &mut Base,
    rounds: &mut Rounds,
    request: Request,
    result: Result<PlanMade, Failure>,
) -> Option<Step> {
    let Request { id, kind, asked, stop, .. } = request;
    let made = match result {
        Ok(made) if !is_below_threshold(made.planned.fullness.context_tokens, &base.state.settings().settings) => made,
        other => {
            base.effects.turn_idle(match other {
                Ok(_) => rounds.is_skipped(asked, IdleSkipped::BelowThreshold),
                Err(Failure::NothingToCompact(_)) => rounds.is_skipped(asked, IdleSkipped::NothingToCompact),
                Err(failure) => rounds.is_not_begun(asked, &failure),
            });
            return None;
        }
    };
    let usage = Usage::of(&made.planned.fullness, base.state.path());
    let round = base.open(Unstarted { id, kind, asked, stop: stop.clone() }, usage.clone());
    let compaction = base.open_inside(round, OperationKind::Compaction(Reason::Idle), usage, stop);
    rounds.begins();
    Some(Step::Draft(compaction, made, Focus::default()))
}
