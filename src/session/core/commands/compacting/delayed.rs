//! A compaction that a client asks for after the turn: it starts after the next complete answer without calls.
//!
//! It has its id from the beginning, so it can be named and cancelled. It occupies no slot and nothing is `busy` because of
//! it. Its start is sent when it starts, and it is planned for the context of that moment. An entry stores the request, so that
//! a restart brings it back. Where its work is done otherwise, it gives way: it starts, and ends as skipped.

mod stored;
#[cfg(test)]
mod tests;

pub(in crate::session::core) use stored::Asker;

use crate::{
    compaction::request::{Cause, is_too_early},
    conversation::{
        entry::{self, Body},
        message::outline::Role,
    },
    ids::OperationId,
    log::Access,
    protocol::{
        errors::{Failure, Nothing},
        types::{Cancelled, CompactParams, Initiator, WaitingOperation, When},
    },
    session::{
        core::{
            Core,
            commands::compacting::BY_CLIENT,
            due::{Delayed, Due, Withdrawn},
            work::{Request, Unbegun, Work},
        },
        effects::Ticket,
        fault::{Fault, planted},
        jobs::{Authors, Focus, Job, PlanOrder},
        operations::{Asked, End, Kind as _, Place},
        stop::Stop,
    },
};
use std::collections::HashSet;

impl Core {
    /// Whether a compaction after the turn has to wait.
    pub(in crate::session::core) fn must_wait(&self) -> bool {
        !self.turn_is_over() || !self.may_maintain()
    }

    /// Takes a request for a compaction after the turn. There is at most one: a second request has the id of the first, and
    /// its params count.
    pub(in crate::session::core) fn delay(&mut self, params: CompactParams, ticket: Ticket) {
        if let Err(failure) = self.may_delay(&params) {
            return ticket.fail(&failure);
        }
        let asked = Asked::by(ticket, params.wait);
        if !self.goes_on() && !self.outlives_session(&asked) {
            let (id, known) = match self.take_delayed(None) {
                Some(before) => (before.id, Some(before.asked)),
                None => (self.stamps.operation(), None),
            };
            let asked = match (known, asked) {
                (Some(Asked::Introduced), Asked::Waits(ticket)) => Asked::Joins(ticket),
                (_, asked) => asked,
            };
            return self.end_unstarted([Request { id, kind: BY_CLIENT, params, asked, stop: Stop::default() }]);
        }
        let (asked, reply) = asked.for_later();
        let stop = Stop::default();
        let (delayed, former) = match self.upkeep.after_turn.waiting.take() {
            Some(Delayed { request: Request { id, asked: former, params: replaced, .. }, since, rests }) => {
                let request = Request { id, kind: BY_CLIENT, params, asked: former.joined_by(asked), stop };
                (Delayed { request, since, rests }, Some(replaced))
            }
            None => {
                let request = Request { id: self.stamps.operation(), kind: BY_CLIENT, params, asked, stop };
                let since = entry::timestamp(self.stamps.now());
                (Delayed { request, since, rests: false }, None)
            }
        };
        let id = delayed.request.id.clone();
        self.upkeep.after_turn.waiting = Some(delayed);
        self.write_delayed_for(Some(Asker { id, reply, former }));
    }

    fn may_delay(&self, params: &CompactParams) -> Result<(), Failure> {
        self.writable()?;
        if params.wait == Some(true)
            && let Some(Delayed { request: Request { id, kind, asked, .. }, .. }) = &self.upkeep.after_turn.waiting
            && asked.waits()
        {
            return Err(Failure::Busy { operation_id: id.clone(), kind: kind.name() });
        }
        if is_too_early(params.initiator.unwrap_or(Initiator::User), &self.state.measure()) {
            return Err(Failure::NothingToCompact(Nothing::BelowHalfThreshold));
        }
        Ok(())
    }

    /// Whether a compaction after the turn still waits when the session is opened again. A request that waits for its end is
    /// answered before the session ends, and the compaction ends with it.
    fn outlives_session(&self, asked: &Asked<Ticket>) -> bool {
        self.log_facts().access != Access::Ephemeral && !asked.waits()
    }

    /// The compaction after the turn, as `session/status` lists it.
    pub(in crate::session::core) fn delayed(&self) -> Option<WaitingOperation> {
        let Delayed { request: Request { id, kind, params, .. }, since, .. } =
            self.upkeep.after_turn.waiting.as_ref()?;
        Some(WaitingOperation {
            operation_id: id.clone(),
            kind: kind.name().to_owned(),
            reason: kind.cause(),
            when: When::AfterTurn,
            since: since.clone(),
            has_instructions: params.instructions.is_some(),
        })
    }

    /// Whether the newest message is a complete answer without calls. An answer that failed, was cut off or was removed is
    /// repeated.
    pub(in crate::session::core) fn turn_is_over(&self) -> bool {
        if planted(Fault::TurnAssumed) {
            return true;
        }
        let mut removed = HashSet::new();
        for entry in self.state.path().iter().rev() {
            match (&entry.body, entry.outline()) {
                (Body::ContextEdit(edit), _) if edit.replacement.is_none() => {
                    removed.insert(&edit.target_id);
                }
                (_, Some(newest)) => {
                    let is_whole = newest.calls.is_empty() && !newest.failed && !newest.cut_off;
                    return newest.role == Role::Assistant && is_whole && !removed.contains(&entry.id);
                }
                _ => {}
            }
        }
        false
    }

    /// Whether a compaction waits for nothing but the end of the turn.
    pub(in crate::session::core) fn waits_no_more(&self) -> bool {
        self.upkeep.after_turn.waiting.as_ref().is_some_and(|delayed| !delayed.rests)
    }

    /// A message came: the turn that it belongs to may end the wait.
    pub(in crate::session::core) fn delayed_rests_no_more(&mut self) {
        if let Some(delayed) = &mut self.upkeep.after_turn.waiting {
            delayed.rests = false;
        }
    }

    /// Whether the compaction after the turn may start.
    pub(in crate::session::core) fn may_begin_delayed(&self) -> bool {
        self.waits_no_more() && !self.must_wait() && !planted(Fault::LaterForgotten)
    }

    /// The compaction after the turn, if it is due.
    pub(in crate::session::core) fn due_after_turn(&mut self) -> Option<Due> {
        if !self.may_begin_delayed() {
            return None;
        }
        self.take_delayed(None).map(|request| Due::Delayed(Box::new(request)))
    }

    /// Starts a compaction after the turn.
    pub(in crate::session::core) fn begin_delayed(&mut self, request: Request) {
        self.idle_gives_way();
        let Request { id, kind, params, asked, stop } = request;
        let opening = self.opening(kind, Place::Top(id.clone()), asked, self.state.usage(), stop.clone());
        let operation = self.start_operation(opening);
        self.delayed_has_begun(&id);
        self.moves(&id, &params);
        let initiator = params.initiator.unwrap_or(Initiator::User);
        let mut request = self.plan_request(params.keep_recent_tokens, initiator, Cause::Asked);
        request.insists = self.insists(&params);
        // It was checked when it was asked for.
        let authors = Authors::of(&params).unwrap_or_default();
        self.start(Job::Plan(PlanOrder { id, request, authors, former: None, stop }));
        self.work = Work::Preparing(operation, Focus::of(params));
    }

    /// Another compaction, a reset or a handoff has done the work of the compaction after the turn, which ends as skipped.
    pub(in crate::session::core) fn delayed_gives_way(&mut self) {
        let end = End::Skipped(Nothing::Superseded);
        let superseded = self.take_delayed(None).map(|request| Unbegun { request: request.into(), end });
        self.leave_unbegun(superseded);
    }

    /// Takes out the compaction after the turn, if it is the one with this id, or any without one.
    pub(in crate::session::core) fn take_delayed(&mut self, which: Option<&OperationId>) -> Option<Request> {
        self.take_delayed_if(|request| which.is_none_or(|which| *which == request.id))
    }

    /// Takes out the compaction after the turn, which a client cancels.
    pub(in crate::session::core) fn withdraw_delayed(&mut self, which: Option<&OperationId>) -> Option<Request> {
        let request = self.take_delayed(which)?;
        if self.must_write_delayed() && !planted(Fault::CancelNotWritten) {
            self.upkeep.after_turn.withdrawn = Some(Withdrawn { id: request.id.clone(), cancels: Vec::new() });
        }
        Some(request)
    }

    /// Answers a cancel. Where it names a compaction that a restart would bring back, the answer waits for its entry.
    pub(in crate::session::core) fn answer_cancel(&mut self, ticket: Ticket, all: Vec<Cancelled>) {
        match &mut self.upkeep.after_turn.withdrawn {
            Some(withdrawn) if all.iter().any(|it| it.operation_id == withdrawn.id) => {
                withdrawn.cancels.push((ticket, all));
            }
            _ => ticket.cancelled_these(all),
        }
    }

    /// Takes out the compaction after the turn at the end of the session, if it does not wait for the next opening.
    pub(in crate::session::core) fn take_delayed_at_end(&mut self) -> Option<Request> {
        let asked = self.upkeep.after_turn.waiting.as_ref().map(|delayed| &delayed.request.asked);
        let stays = asked.is_some_and(|asked| self.outlives_session(asked));
        self.take_delayed_if(|_| !stays)
    }

    /// Takes out the compaction after the turn, if the client cancelled the request that waits for it.
    pub(in crate::session::core) fn take_delayed_without_request(&mut self) -> Option<Request> {
        self.take_delayed_if(|request| request.asked.request().is_some_and(Ticket::cancelled))
    }

    fn take_delayed_if(&mut self, is_meant: impl FnOnce(&Request) -> bool) -> Option<Request> {
        let taken = self.upkeep.after_turn.waiting.take_if(|delayed| is_meant(&delayed.request))?;
        self.upkeep.after_turn.is_unwritten = true;
        Some(taken.request)
    }
}
