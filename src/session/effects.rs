//! The effects of an input, in their order, with the answers of requests among them.
//!
//! The core adds effects to a list and performs none. The shell performs them in the order of the list.

pub mod telling;
pub mod world;

use super::{
    forking::Forking,
    jobs::{DraftOrder, Job},
    log_work::LogWork,
    stop::Stop,
};
use crate::{
    ask::access::ModelAccess,
    compaction::draft::Draft,
    conversation::entry::raw,
    ids::OperationId,
    log::{Unfinished, sealed::Blocking},
    models::learned::Change,
    protocol::{
        errors::Failure,
        events::Event,
        types::{Status, StatusAnswer, SubscribeParams},
    },
    session::{
        fault::{Fault, planted},
        gate::Gate,
    },
    wire::{outbox::About, transport::Piece},
};
use serde::Serialize;
use serde_json::value::RawValue;
use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// An effect.
#[expect(clippy::large_enum_variant, reason = "most effects are events, which are the large ones")]
pub enum Effect {
    /// Records the open operations in the lock, outer ones first.
    Record(Vec<Unfinished>),
    /// Sets the status that other tasks read.
    Publish(Status),
    /// Sends an event.
    Emit(About, Event),
    /// Answers the request with this ticket.
    Answer(TicketNumber, Answer),
    /// Runs work on the log. Its result is an `Input::Log`. No other work on the log runs meanwhile.
    Log(LogWork),
    /// Runs a read beside the session and answers the request with its result. Its end is an `Input::Answered`.
    Read(TicketNumber, Read),
    /// Starts a job. Its reports and its result are inputs.
    Start(Box<Job>),
    /// Opens a gate before a step of a job.
    Open(Gate),
    /// Changes the windows that were learned, for all sessions.
    Teach(Change),
    /// Sets the number of bytes that the session keeps in memory.
    Share(u64),
    /// Subscribes the client and answers, with the events that it missed.
    Subscribe(TicketNumber, SubscribeParams, Box<StatusAnswer>),
    /// Unsubscribes the client and answers.
    Unsubscribe(TicketNumber),
    /// Hands a request over to the daemon, which waited for its turn in the session.
    HandOver(TicketNumber),
    /// Hands a fork over to the daemon, which makes and opens it and answers the request.
    Fork(TicketNumber, Box<Forking>),
    /// Asks for the turn of this session for idle maintenance, or leaves it. An `Input::IdleTurn` follows where it asks.
    IdleTurn(Turning),
}

/// A wish of a session about its turn among those that have idle maintenance. One session at a time has the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Turning {
    /// It asks for the turn.
    Ask,
    /// It leaves the turn, or the queue for it.
    Leave,
}

/// The turn of a session for idle maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleTurn {
    /// Other sessions are before it.
    Waits,
    /// It has come.
    Comes,
}

/// A read beside the session. It must not change the session.
pub enum Read {
    /// Its answer depends on the session alone.
    Session(SessionRead),
    /// It looks at the outside or writes there: keys in the environment, images, an export.
    Outside(OutsideRead),
    /// It makes a draft that is not applied.
    Draft(Box<DraftRead>),
}

/// The plan of a draft that is not applied.
pub type DraftPlan = Box<dyn FnOnce(&ModelAccess, &Blocking) -> Result<DraftOrder, Failure> + Send>;

/// A draft that answers a request and changes nothing.
pub struct DraftRead {
    /// The id in the events about its progress and its text; without one there are none.
    pub id: Option<OperationId>,
    /// Makes its order. Blocks.
    pub plan: DraftPlan,
    /// Makes the answer.
    pub answer: Box<dyn FnOnce(Result<Draft, Failure>) -> Answer + Send>,
    /// Cancels it.
    pub stop: Stop,
}

/// A read of the session.
pub type SessionRead = Box<dyn FnOnce(&Blocking) -> Answer + Send>;

/// A read of the session and of the outside.
pub type OutsideRead = Box<dyn FnOnce(&ModelAccess, &Blocking) -> Answer + Send>;

/// The number of a request, given by the shell.
pub type TicketNumber = u64;

/// The result of a request.
pub enum Answer {
    /// The result, as JSON.
    Result(Box<RawValue>),
    /// A large result, as JSON in pieces that make one line.
    Pieces(Vec<Piece>),
    /// The error.
    Failed(Failure),
}

impl Answer {
    /// A result.
    #[must_use]
    pub fn ok(result: &impl Serialize) -> Self {
        Self::Result(raw(result))
    }
}

impl<T: Serialize> From<Result<T, Failure>> for Answer {
    fn from(result: Result<T, Failure>) -> Self {
        match result {
            Ok(result) => Self::ok(&result),
            Err(failure) => Self::Failed(failure),
        }
    }
}

/// The effects that were not performed yet. Clones share one list.
#[derive(Clone, Default)]
pub struct Effects(Arc<Mutex<List>>);

#[derive(Default)]
struct List {
    effects: Vec<Effect>,
    /// Open requests that the client cancelled.
    cancelled: HashSet<TicketNumber>,
}

impl Effects {
    fn list(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an effect.
    pub fn push(&self, effect: Effect) {
        self.list().effects.push(effect);
    }

    /// Adds effects.
    pub fn extend(&self, effects: impl IntoIterator<Item = Effect>) {
        self.list().effects.extend(effects);
    }

    /// Starts a job.
    pub fn start(&self, job: Job) {
        self.push(Effect::Start(Box::new(job)));
    }

    /// Asks for the turn of the session for idle maintenance among all, or leaves it.
    pub fn turn_idle(&self, turning: Option<Turning>) {
        self.extend(turning.map(Effect::IdleTurn));
    }

    /// Adds an event.
    pub fn emit(&self, about: About, event: Event) {
        self.push(Effect::Emit(about, event));
    }

    /// Takes all effects.
    #[must_use]
    pub fn take(&self) -> Vec<Effect> {
        std::mem::take(&mut self.list().effects)
    }

    /// Moves all effects after those in `into`.
    pub fn drain_into(&self, into: &mut Vec<Effect>) {
        into.append(&mut self.list().effects);
    }

    /// Records that the client cancelled a request.
    pub(super) fn cancel(&self, request: TicketNumber) {
        self.list().cancelled.insert(request);
    }

    /// Number of the open requests that the client cancelled.
    pub(super) fn cancelled(&self) -> usize {
        self.list().cancelled.len()
    }

    /// The ticket of a request.
    #[must_use]
    pub fn ticket(&self, number: TicketNumber, sent: Sent) -> Ticket {
        Ticket { number, sent, open: true, effects: self.clone() }
    }
}

/// The way in which a request was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sent {
    /// By itself.
    Alone,
    /// In a batch. Its answer leaves with the others, so it cannot introduce an id before events name it.
    InBatch,
}

/// The right and the duty to answer one request. A ticket that is dropped answers with `internal`.
pub struct Ticket {
    number: TicketNumber,
    sent: Sent,
    open: bool,
    effects: Effects,
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({})", self.number)
    }
}

impl Ticket {
    /// The number of the request.
    #[must_use]
    pub fn number(&self) -> TicketNumber {
        self.number
    }

    /// Answers with a result.
    pub fn ok(self, result: &impl Serialize) {
        self.answer(Answer::ok(result));
    }

    /// Answers with an error.
    pub fn fail(self, failure: &Failure) {
        self.answer(Answer::Failed(failure.clone()));
    }

    /// Answers with a result or an error.
    pub fn with<T: Serialize>(self, result: Result<T, Failure>) {
        self.answer(result.into());
    }

    /// Answers.
    pub fn answer(mut self, answer: Answer) {
        self.close(answer);
    }

    /// Leaves the answer to an effect.
    pub fn leave_to(mut self, effect: impl FnOnce(TicketNumber) -> Effect) {
        self.open = false;
        let mut list = self.effects.list();
        list.cancelled.remove(&self.number);
        list.effects.push(effect(self.number));
    }

    /// Whether the client cancelled the request.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.effects.list().cancelled.contains(&self.number)
    }

    /// The way in which the request was sent.
    #[must_use]
    pub fn sent(&self) -> Sent {
        self.sent
    }

    /// Whether the request is a member of a batch.
    #[must_use]
    pub fn in_batch(&self) -> bool {
        self.sent == Sent::InBatch
    }

    fn close(&mut self, answer: Answer) {
        if std::mem::take(&mut self.open) {
            let mut list = self.effects.list();
            if !planted(Fault::CancelledRemembered) {
                list.cancelled.remove(&self.number);
            }
            list.effects.push(Effect::Answer(self.number, answer));
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.open {
            self.close(Answer::Failed(Failure::Internal(
                "this request ended without an answer, which is a defect of abridged; the session can be loaded again"
                    .to_owned(),
            )));
        }
    }
}
