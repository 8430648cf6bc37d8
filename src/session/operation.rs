//! An open operation, as the code holds it that runs it. It is made by sending the start, and it sends the end when it is
//! finished or dropped, so a start has an end on every path, a panic included.

mod forward;
pub mod listed;
pub mod summary_events;

use self::summary_events::SummaryEvents;
use super::{
    effects::{Effect, Effects, Ticket},
    fault::{Fault, planted},
    kind::OperationKind,
    operations::{self, Asked, Cancelling, End, Follows, Key, Kind, Opening, Operations, Place, Step},
    stop::Stop,
};
use crate::{
    ids::{CallId, OperationId},
    log::Unfinished,
    protocol::{
        errors::Failure,
        events::{ChunkSource, Event, HookOutcome, RetrySource, Stage},
        notices::Warning,
        types::{HookEvent, RunningOperation, Status, Usage},
    },
    summary::model::writer::Step as SummaryStep,
    wire::outbox::About,
};
use serde::Serialize;
use serde_json::value::RawValue;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The place where the steps of operations go.
pub trait Outlet<K: Kind>: Clone {
    /// A request that waits for an operation.
    type Request;

    /// Performs a step.
    fn perform(&self, step: Step<Self::Request, K::Answer>);
}

impl<K: Kind<Answer: Serialize>> Outlet<K> for Effects {
    type Request = Ticket;

    fn perform(&self, step: Step<Ticket, K::Answer>) {
        match step {
            Step::Publish(status) => self.push(Effect::Publish(status)),
            Step::Emit(id, event) => self.emit(About::of(id, &event), event),
            Step::Answer(ticket, answer) => ticket.ok(&answer),
        }
    }
}

/// The open operations of a session, shared by the session and the operations themselves: dropping one needs them.
pub struct OpenOperations<K: Kind = OperationKind, O: Outlet<K> = Effects> {
    operations: Arc<Mutex<Timed<K, O>>>,
    outlet: O,
}

/// Operations with the time of the input that is handled.
struct Timed<K: Kind, O: Outlet<K>> {
    operations: Operations<K, O::Request>,
    now: Instant,
}

impl<K: Kind, O: Outlet<K>> Clone for OpenOperations<K, O> {
    fn clone(&self) -> Self {
        Self { operations: self.operations.clone(), outlet: self.outlet.clone() }
    }
}

impl<K: Kind, O: Outlet<K>> OpenOperations<K, O> {
    /// No operations, whose steps go to `outlet`. The time is `now`.
    #[must_use]
    pub fn new(outlet: O, now: Instant) -> Self {
        Self { operations: Arc::new(Mutex::new(Timed { operations: Operations::default(), now })), outlet }
    }

    /// Sets the time.
    pub fn set_time(&self, now: Instant) {
        self.lock().now = now;
    }

    fn lock(&self) -> MutexGuard<'_, Timed<K, O>> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn perform(&self, steps: Vec<Step<O::Request, K::Answer>>) {
        steps.into_iter().for_each(|step| self.outlet.perform(step));
    }

    /// Starts an operation.
    pub fn start(&self, opening: Opening<K, O::Request>) -> Operation<K, O> {
        let (kind, stop) = (opening.kind.clone(), opening.stop.clone());
        let (key, id, steps) = self.lock().operations.start(opening);
        self.perform(steps);
        Operation { id, kind, stop, key, operations: self.clone(), events: SummaryEvents::default() }
    }

    /// Records whether the session starts more work without input.
    pub fn follow(&self, follows: Follows) {
        let steps = self.lock().operations.follow(follows);
        self.perform(steps);
    }

    /// Selects the operations that a cancel ends, and publishes the status as it will be.
    #[must_use]
    pub fn cancel(&self, which: Option<&OperationId>) -> Cancelling {
        let (cancelling, steps) = self.lock().operations.cancel(which);
        self.perform(steps);
        cancelling
    }

    /// Ends the operations that a cancel selected.
    pub fn end_cancelled(&self, cancelling: Cancelling, usage: &Usage) {
        let steps = {
            let Timed { operations, now } = &mut *self.lock();
            operations.end_cancelled(cancelling, usage, *now)
        };
        self.perform(steps);
    }

    /// The status of the session.
    #[must_use]
    pub fn status(&self) -> Status {
        self.lock().operations.status()
    }

    /// Whether an operation of this name is open.
    #[must_use]
    pub fn runs(&self, name: &str) -> bool {
        self.lock().operations.runs(name)
    }

    /// As `session/status` lists them.
    #[must_use]
    pub fn list(&self) -> Vec<RunningOperation> {
        self.lock().operations.list()
    }

    /// As the lock lists them.
    #[must_use]
    pub fn unfinished(&self) -> Vec<Unfinished> {
        self.lock().operations.unfinished()
    }

    /// As the lock lists them, with one that is about to start.
    #[must_use]
    pub fn unfinished_with(&self, opening: &Opening<K, O::Request>) -> Vec<Unfinished> {
        self.lock().operations.unfinished_with(opening)
    }

    /// Refuses what changes the context while an operation in the foreground runs.
    ///
    /// # Errors
    /// `Busy`, with the operation.
    pub fn idle(&self) -> Result<(), Failure> {
        refuse(self.lock().operations.busy())
    }

    /// Refuses an operation that has to wait for another one.
    ///
    /// # Errors
    /// `Busy`, with the other one.
    pub fn room_for(&self, kind: &K) -> Result<(), Failure> {
        refuse(self.lock().operations.blocking(kind))
    }
}

fn refuse(busy: Option<(&OperationId, &'static str)>) -> Result<(), Failure> {
    busy.map_or(Ok(()), |(id, kind)| Err(Failure::Busy { operation_id: id.clone(), kind }))
}

impl Asked<Ticket> {
    /// A request of a client, with its `wait`.
    #[must_use]
    pub fn by(ticket: Ticket, wait: Option<bool>) -> Self {
        match wait {
            Some(true) => Self::Waits(ticket),
            _ if ticket.in_batch() => Self::Batched(ticket),
            _ => Self::Answered(ticket),
        }
    }
}

impl<W> Asked<W> {
    /// Whether the request is answered after the end.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self, Self::Waits(_) | Self::Joins(_))
    }

    /// The request, if it is not answered.
    #[must_use]
    pub fn request(&self) -> Option<&W> {
        match self {
            Self::Answered(request) | Self::Batched(request) | Self::Waits(request) | Self::Joins(request) => {
                Some(request)
            }
            Self::Introduced | Self::Unasked => None,
        }
    }

    /// The request of an operation that starts later, and the request that is answered before that.
    #[must_use]
    pub fn for_later(self) -> (Self, Option<W>) {
        match self {
            Self::Answered(request) => (Self::Introduced, Some(request)),
            Self::Batched(request) => (Self::Unasked, Some(request)),
            later => (later, None),
        }
    }

    /// This request and a newer one for the same operation, both `for_later`. A request that waits for the end goes on
    /// waiting, and an id that was introduced stays so.
    #[must_use]
    pub fn joined_by(self, newer: Self) -> Self {
        match (self, newer) {
            (Self::Waits(request), Self::Introduced) | (Self::Introduced, Self::Waits(request)) => Self::Joins(request),
            (Self::Unasked, newer) => newer,
            (known, _) => known,
        }
    }

    /// Whether an answer introduces the operation before its start.
    #[must_use]
    pub fn is_introduced(&self) -> bool {
        matches!(self, Self::Introduced | Self::Joins(_))
    }

    /// The request that stays after a newer one for the same operation was refused.
    #[must_use]
    pub fn left_by_newer(older: Option<W>, is_introduced: bool) -> Self {
        match (older, is_introduced) {
            (Some(request), true) => Self::Joins(request),
            (Some(request), false) => Self::Waits(request),
            (None, true) => Self::Introduced,
            (None, false) => Self::Unasked,
        }
    }

    /// Takes out the request, if it is not answered.
    #[must_use]
    pub fn into_request(self) -> Option<W> {
        match self {
            Self::Answered(request) | Self::Batched(request) | Self::Waits(request) | Self::Joins(request) => {
                Some(request)
            }
            Self::Introduced | Self::Unasked => None,
        }
    }
}

/// An operation that has started. Its end is sent when it is finished or dropped, if not before: an operation around it
/// that ends, ends it too.
pub struct Operation<K: Kind = OperationKind, O: Outlet<K> = Effects> {
    /// Its id.
    pub id: OperationId,
    /// Its kind and cause.
    pub kind: K,
    /// Stops its work. Requested at the latest when it has ended.
    pub stop: Stop,
    key: Key,
    operations: OpenOperations<K, O>,
    events: SummaryEvents,
}

impl<K: Kind, O: Outlet<K>> Operation<K, O> {
    /// Whether its end was not sent.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.operations.lock().operations.is_open(self.key)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !self.is_open() && !planted(Fault::LateResult)
    }

    /// Whether its work was cancelled.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.requested() && !planted(Fault::LateResult)
    }

    /// A place inside of it, for an operation with an id of its own.
    #[must_use]
    pub fn inside(&self, id: OperationId) -> Place {
        Place::Inside(self.key, id)
    }

    /// A place for a part of it. The id is used where it has ended.
    #[must_use]
    pub fn part(&self, spare: OperationId) -> Place {
        Place::PartOf(self.key, spare)
    }

    /// Its result is being written: a cancel does not end it any more.
    pub fn commits(&self) {
        self.operations.lock().operations.commits(self.key);
    }

    /// The write has to be repeated: until then a cancel ends it.
    pub fn commits_no_more(&self) {
        self.operations.lock().operations.commits_no_more(self.key);
    }

    /// It waits for the client, and the session goes on as without it.
    pub fn waits(&self) {
        let steps = self.operations.lock().operations.waits(self.key);
        self.operations.perform(steps);
    }

    /// It goes on after its wait. `introduced`: the client knows its id.
    pub fn goes_on(&self, introduced: bool) {
        let steps = self.operations.lock().operations.goes_on(self.key, introduced);
        self.operations.perform(steps);
    }

    /// Sends an event of this operation, unless it has ended.
    pub fn emit(&self, event: Event) {
        if !self.has_ended() {
            self.operations.outlet.perform(Step::Emit(Some(self.id.clone()), event));
        }
    }

    /// Sends its progress, if it is more than what was sent before. Another model may begin anew.
    pub fn progress(&mut self, stage: Stage, done: usize, total: usize) {
        let now = self.operations.lock().now;
        if let Some(event) = self.events.progress(stage, (done, total), None, now) {
            self.emit(event);
        }
    }

    /// Sends the progress and the text of a step of its summary.
    pub fn step(&mut self, step: SummaryStep) {
        let now = self.operations.lock().now;
        self.events.step(step, now).into_iter().for_each(|event| self.emit(event));
    }

    /// Sends that all steps of a stage are done.
    pub fn arrives(&mut self, stage: Stage) {
        let all = self.events.all(stage);
        self.progress(stage, all, all);
    }

    /// Moves on to a chunk of a source, counted from 1.
    pub fn moves_to(&mut self, source: ChunkSource, chunk: u32) {
        self.events.moves_to(source, chunk);
    }

    /// Begins the chunk of a source anew: the text that was sent of the source before is void.
    pub fn begins(&mut self, source: ChunkSource) {
        self.events.begins(source);
    }

    /// Sends that a request is repeated after `delay`, once `record` has the open operations with it.
    pub fn retry_starts(
        &self,
        source: RetrySource,
        attempt: u32,
        most: u32,
        delay: Duration,
        failure: &Failure,
        record: impl FnOnce(Vec<Unfinished>),
    ) {
        if self.operations.lock().operations.retry_starts(self.key, source, attempt) {
            record(self.operations.unfinished());
            self.emit(Event::RetryStart {
                source,
                attempt,
                max_attempts: most,
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                error: failure.data(),
                error_message: failure.to_string(),
            });
        }
    }

    /// Sends the outcome of a repeated request. Then `record` has the open operations without it.
    pub fn retry_ends(
        &self,
        source: RetrySource,
        attempt: u32,
        failure: Option<&Failure>,
        record: impl FnOnce(Vec<Unfinished>),
    ) {
        if self.operations.lock().operations.retry_ends(self.key, source, attempt) {
            self.emit(operations::retry_end(source, attempt, failure));
            record(self.operations.unfinished());
        }
    }

    /// Sends that the client is asked, once `record` has the open operations with the hook.
    pub fn hook_starts(&self, hook: HookEvent, record: impl FnOnce(Vec<Unfinished>)) {
        let starts = {
            let Timed { operations, now } = &mut *self.operations.lock();
            operations.hook_starts(self.key, hook, *now)
        };
        if starts {
            record(self.operations.unfinished());
            self.emit(Event::HookStart { hook });
        }
    }

    /// Sends the outcome of a hook. Then `record` has the open operations without it.
    pub fn hook_ends(
        &self,
        hook: HookEvent,
        outcome: HookOutcome,
        why: Option<String>,
        record: impl FnOnce(Vec<Unfinished>),
    ) {
        let took = {
            let Timed { operations, now } = &mut *self.operations.lock();
            operations.hook_ends(self.key, hook).map(|since| now.saturating_duration_since(since))
        };
        if let Some(took) = took {
            self.emit(operations::hook_end(hook, outcome, took, why));
            record(self.operations.unfinished());
        }
    }

    /// Sends that the client is asked to execute a tool, once `record` has the open operations with it.
    pub fn tool_starts(
        &self,
        call: CallId,
        name: String,
        arguments: Box<RawValue>,
        record: impl FnOnce(Vec<Unfinished>),
    ) {
        if self.operations.lock().operations.tool_starts(self.key, call.clone()) {
            record(self.operations.unfinished());
            self.emit(Event::ToolStart { tool_call_id: call, name, arguments });
        }
    }

    /// Sends that a call has its result. Then `record` has the open operations without it.
    pub fn tool_ends(&self, call: &CallId, is_error: bool, record: impl FnOnce(Vec<Unfinished>)) {
        if self.operations.lock().operations.tool_ends(self.key, call) {
            self.emit(Event::ToolEnd { tool_call_id: call.clone(), is_error });
            record(self.operations.unfinished());
        }
    }

    /// Sends text of the summary, piece by piece.
    pub fn chunks(&self, source: ChunkSource, text: &str) {
        self.events.text(source, text).into_iter().for_each(|event| self.emit(event));
    }

    /// Ends it, with the notices after its end.
    pub fn finish(self, end: End<K::Product>, usage: &Usage, notices: Vec<Warning>) {
        let steps = {
            let Timed { operations, now } = &mut *self.operations.lock();
            operations.end(self.key, end, Some(usage), notices, *now)
        };
        self.operations.perform(steps);
    }
}

impl Operation {
    /// Whether the client cancelled a request that waits for the end.
    #[must_use]
    pub fn request_cancelled(&self) -> bool {
        self.operations.lock().operations.waiting(self.key).iter().any(Ticket::cancelled)
    }
}

impl<K: Kind, O: Outlet<K>> Drop for Operation<K, O> {
    fn drop(&mut self) {
        let mut timed = self.operations.lock();
        let Timed { operations, now } = &mut *timed;
        if operations.is_open(self.key) {
            let what = format!(
                "the {} ended unexpectedly, which is a defect of abridged; nothing was changed",
                self.kind.name()
            );
            let end = End::Failed(Failure::Internal(what));
            let steps = operations.end(self.key, end, None, Vec::new(), *now);
            drop(timed);
            self.operations.perform(steps);
        }
    }
}
