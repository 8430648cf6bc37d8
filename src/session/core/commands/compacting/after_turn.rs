//! A compaction that a client asks for after the turn: it starts after the next complete answer without calls.
//!
//! It has its id from the beginning, so it can be named and cancelled. It occupies no slot and nothing is `busy` because of
//! it. Its start is sent when it starts, and it is planned for the context of that moment. An entry stores the request, so that
//! a restart brings it back. Where its work is done otherwise, it gives way: it starts, and ends as skipped.

pub(in crate::session::core) mod recorded;
mod stored;
#[cfg(test)]
mod tests;

use crate::{
    compaction::request::is_too_early,
    conversation::{
        entry::{self, Body, Stamps},
        message::outline::Role,
        path::Path,
    },
    ids::OperationId,
    log::{Access, Unfinished},
    protocol::{
        errors::{Failure, Nothing},
        types::{CancelAnswer, Cancelled, CompactParams, Initiator, WaitingOperation, When},
    },
    session::{
        core::{due::Due, step::Step, work::Request},
        effects::{Answer, Ticket},
        fault::{Fault, planted},
        kind::OperationKind,
        operations::{Asked, Kind as _},
        state::State,
        stop::Stop,
    },
};
use recorded::{Asker, Former};
use std::collections::HashSet;

/// The compaction that waits for the end of the turn, and its entry in the file.
#[derive(Default)]
pub(in crate::session::core) struct AfterTurn {
    /// The compaction, if a client asked for one.
    waiting: Option<Delayed>,
    /// Whether the newest entry about it on the path may be outdated.
    is_unwritten: bool,
    /// A cancelled compaction that a restart would bring back: the entry which says that it waits no more is not on disk.
    withdrawn: Option<Withdrawn>,
}

/// A compaction that waits for the end of the turn.
struct Delayed {
    request: Request,
    /// Time of the first request, in RFC 3339.
    since: String,
    /// Whether it waits for a message: the session was opened with it, or moved to another entry. A turn that was over before
    /// starts nothing.
    rests: bool,
}

/// A cancelled compaction whose entry is not on disk.
struct Withdrawn {
    id: OperationId,
    /// The cancels that name it, with their answers. They are answered when the entry is on disk.
    cancels: Vec<(Ticket, Vec<Cancelled>)>,
}

impl AfterTurn {
    /// Whether a request for a compaction after the turn is accepted.
    ///
    /// # Errors
    /// When another request waits for its end, or the context is too small.
    pub fn accepts(&self, params: &CompactParams, state: &State) -> Result<(), Failure> {
        if params.wait == Some(true)
            && let Some(Delayed { request: Request { id, kind, asked, .. }, .. }) = &self.waiting
            && asked.waits()
        {
            return Err(Failure::Busy { operation_id: id.clone(), kind: kind.name() });
        }
        if is_too_early(params.initiator.unwrap_or(Initiator::User), &state.measure()) {
            return Err(Failure::NothingToCompact(Nothing::BelowHalfThreshold));
        }
        Ok(())
    }

    /// Takes a request for a compaction after the turn. There is at most one: a second request has the id of the first, and
    /// its params count.
    pub fn ask(
        &mut self,
        params: CompactParams,
        asked: Asked<Ticket>,
        state: &State,
        stamps: &mut Stamps,
    ) -> Vec<Step> {
        let (asked, reply) = asked.for_later();
        let (id, asked, since, rests, former) = match self.waiting.take() {
            Some(Delayed { request: Request { id, asked: before, params, .. }, since, rests }) => {
                let former = Former { params, is_introduced: before.is_introduced() };
                (id, before.joined_by(asked), since, rests, Some(former))
            }
            None => (stamps.operation(), asked, entry::timestamp(stamps.now()), false, None),
        };
        self.waiting = Some(Delayed { request: request(id.clone(), params, asked), since, rests });
        self.write(Some(Asker { id, reply, former }), state, stamps)
    }

    /// The request for a compaction that ends before its start, because the session ends. It has the id of the one before.
    pub fn ask_at_end(&mut self, params: CompactParams, asked: Asked<Ticket>, stamps: &mut Stamps) -> Request {
        let (id, asked) = match (self.take(None), asked) {
            (Some(Request { id, asked: Asked::Introduced, .. }), Asked::Waits(ticket)) => (id, Asked::Joins(ticket)),
            (Some(Request { id, .. }), asked) => (id, asked),
            (None, asked) => (stamps.operation(), asked),
        };
        request(id, params, asked)
    }

    /// Whether a compaction waits.
    pub fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// The compaction as `session/status` lists it.
    pub fn status(&self) -> Option<WaitingOperation> {
        let Delayed { request: Request { id, kind, params, .. }, since, .. } = self.waiting.as_ref()?;
        Some(WaitingOperation {
            operation_id: id.clone(),
            kind: kind.name().to_owned(),
            reason: kind.cause(),
            when: When::AfterTurn,
            since: since.clone(),
            has_instructions: params.instructions.is_some(),
        })
    }

    /// Whether the compaction is due: it waits for nothing but the end of the turn, and the turn is over.
    pub fn is_due(&self, path: &Path) -> bool {
        self.waiting.as_ref().is_some_and(|delayed| !delayed.rests)
            && turn_is_over(path)
            && !planted(Fault::LaterForgotten)
    }

    /// Takes out the compaction, if it is due.
    pub fn take_due(&mut self, path: &Path) -> Option<Due> {
        let request = if self.is_due(path) { self.take(None) } else { None };
        request.map(|request| Due::Delayed(Box::new(request)))
    }

    /// A message came: the turn that it belongs to may end the wait.
    pub fn message_came(&mut self) {
        if let Some(delayed) = &mut self.waiting {
            delayed.rests = false;
        }
    }

    /// The session is on another path, whose newest entry may be outdated.
    pub fn moved(&mut self, state: &State) {
        if let Some(delayed) = &mut self.waiting {
            delayed.rests = true;
        }
        self.is_unwritten = self.is_outdated(state);
    }

    /// The compaction has started, as one of these operations. Returns it if the file names it still.
    pub fn begun(&self, id: &OperationId, running: Vec<Unfinished>, state: &State) -> Option<Unfinished> {
        running.into_iter().find(|it| it.operation_id == *id).filter(|_| self.is_outdated(state))
    }

    /// Takes out the compaction, if it is the one with this id, or any without one.
    pub fn take(&mut self, which: Option<&OperationId>) -> Option<Request> {
        self.take_if(|request| which.is_none_or(|which| *which == request.id))
    }

    /// Takes out the compaction, which a client cancels.
    pub fn withdraw(&mut self, which: Option<&OperationId>, access: Access) -> Option<Request> {
        let request = self.take(which)?;
        if self.must_write(access) && !planted(Fault::CancelNotWritten) {
            self.withdrawn = Some(Withdrawn { id: request.id.clone(), cancels: Vec::new() });
        }
        Some(request)
    }

    /// Answers a cancel. Where it names a compaction that a restart would bring back, the answer waits for its entry.
    pub fn answer_cancel(&mut self, ticket: Ticket, all: Vec<Cancelled>) -> Option<Step> {
        match &mut self.withdrawn {
            Some(withdrawn) if all.iter().any(|it| it.operation_id.as_ref() == Some(&withdrawn.id)) => {
                withdrawn.cancels.push((ticket, all));
                None
            }
            _ => Some(cancelled((ticket, all))),
        }
    }

    /// Takes out the compaction at the end of the session, if it does not wait for the next opening.
    pub fn take_at_end(&mut self, access: Access) -> Option<Request> {
        self.take_if(|request| !outlives_session(&request.asked, access))
    }

    /// Takes out the compaction, if the client cancelled the request that waits for it.
    pub fn take_without_request(&mut self) -> Option<Request> {
        self.take_if(|request| request.asked.request().is_some_and(Ticket::cancelled))
    }

    fn take_if(&mut self, is_meant: impl FnOnce(&Request) -> bool) -> Option<Request> {
        let taken = self.waiting.take_if(|delayed| is_meant(&delayed.request))?;
        self.is_unwritten = true;
        Some(taken.request)
    }

    /// A compaction that waits for the next message.
    #[cfg(test)]
    pub fn resting(id: &str, params: CompactParams) -> Self {
        let delayed =
            Delayed { request: request(id.into(), params, Asked::Unasked), since: String::new(), rests: true };
        Self { waiting: Some(delayed), ..Self::default() }
    }
}

fn request(id: OperationId, params: CompactParams, asked: Asked<Ticket>) -> Request {
    Request { id, kind: OperationKind::BY_CLIENT, params, asked, stop: Stop::default() }
}

/// The answer of a cancel.
fn cancelled((ticket, cancelled): (Ticket, Vec<Cancelled>)) -> Step {
    Step::Answer(ticket, Answer::ok(&CancelAnswer { cancelled }))
}

/// Whether a compaction after the turn still waits when the session is opened again. A request that waits for its end is
/// answered before the session ends, and the compaction ends with it.
pub(in crate::session::core) fn outlives_session(asked: &Asked<Ticket>, access: Access) -> bool {
    access != Access::Ephemeral && !asked.waits()
}

/// Whether the newest message is a complete answer without calls. An answer that failed, was cut off or was removed is
/// repeated.
pub(in crate::session::core) fn turn_is_over(path: &Path) -> bool {
    if planted(Fault::TurnAssumed) {
        return true;
    }
    let mut removed = HashSet::new();
    for entry in path.iter().rev() {
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
