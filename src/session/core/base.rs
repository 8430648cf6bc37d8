//! The base of a session: its entries, its log, its open operations, its effects and the time. The parts of the session work on
//! it, and it knows none of them.

mod counting;
pub(super) mod following;
mod indexing;
pub(super) mod learning;

pub(super) use counting::Counting;
pub(super) use indexing::{IndexBuild, IndexWait};

use learning::Learning;

use crate::{
    compaction::prune::cache::Cache,
    compaction::request::{Cause, PlanRequest},
    conversation::entry::{self, Stamps},
    ids::{ModelRef, OperationId},
    log::Unfinished,
    protocol::{
        errors::Failure,
        events::Event,
        types::{Initiator, Usage},
    },
    session::{
        core::{
            Moment,
            costs::{Costs, Lack},
            parts::{
                contexts::Contexts, facts::Facts, lock::Lock, log_gate::LogGate, queue::Queue, reads::Reads,
                waiting_contexts::WaitingContexts,
            },
            work::{Unstarted, Work},
        },
        effects::{Effects, Ticket},
        fault::{Fault, planted},
        hooks::Hooks,
        jobs::{Authors, Job, PlanOrder},
        kind::OperationKind,
        log_work::LogFacts,
        operation::{OpenOperations, Operation},
        operations::{Asked, Opening, Place, interrupted},
        state::State,
        stop::Stop,
    },
    wire::outbox::About,
};
use std::{sync::Arc, time::Instant};

/// The base of a session.
pub struct Base {
    pub(super) state: State,
    pub(super) log: LogGate,
    /// The compaction or the transfer that runs.
    pub(super) work: Work,
    /// The operation around it: a recovery, a round of idle maintenance, or maintenance that hands off.
    pub(super) around: Option<Operation>,
    pub(super) operations: OpenOperations,
    pub(super) lock: Lock,
    pub(super) effects: Effects,
    pub(super) queue: Queue,
    pub(super) reads: Reads,
    pub(super) index: IndexWait,
    pub(super) counting: Counting,
    /// Requests for the context that wait for the end of the compaction.
    pub(super) waiting: WaitingContexts,
    /// The contexts that clients were given last.
    pub(super) contexts: Contexts,
    pub(super) costs: Costs,
    /// Windows that providers taught.
    pub(super) learning: Learning,
    /// The hooks that the client answers.
    pub(super) hooks: Arc<Hooks>,
    /// The usage that was sent last.
    pub(super) sent_usage: Usage,
    pub(super) stamps: Stamps,
    /// The time of timers.
    pub(super) now: Instant,
    pub(super) ending: Ending,
}

/// Whether the session ends, and the requests that wait for the end.
pub(super) enum Ending {
    No,
    WhenIdle,
    Now(Vec<Ticket>),
}

impl Ending {
    /// Whether the session starts work by itself: it does not end.
    pub fn goes_on(&self) -> bool {
        matches!(self, Self::No)
    }

    /// Whether the session ends without waiting for work.
    pub fn is_now(&self) -> bool {
        matches!(self, Self::Now(_))
    }

    /// The session ends now.
    pub fn end_now(&mut self) {
        if !self.is_now() {
            *self = Self::Now(Vec::new());
        }
    }
}

impl Base {
    /// The base of an opened session. `seed` decides the ids of its entries and operations.
    pub fn new(state: State, log: LogFacts, seed: u64, at: &Moment) -> Self {
        let effects = Effects::default();
        Self {
            sent_usage: state.usage(),
            log: LogGate::here(log),
            work: Work::None,
            around: None,
            operations: OpenOperations::new(effects.clone(), at.now),
            lock: Lock::default(),
            effects,
            queue: Queue::default(),
            reads: Reads::default(),
            index: IndexWait::default(),
            counting: Counting::default(),
            waiting: WaitingContexts::default(),
            contexts: Contexts::default(),
            costs: Costs::opened(&state.history().spending().recent, at),
            learning: Learning::default(),
            hooks: Arc::default(),
            state,
            stamps: Stamps::seeded(seed, at.wall),
            now: at.now,
            ending: Ending::No,
        }
    }

    /// The time of an input.
    pub fn set_time(&mut self, at: &Moment) {
        self.now = at.now;
        self.stamps.set_time(at.wall);
        self.operations.set_time(at.now);
        self.state.tokenizer_is(at.tokenizer);
    }

    /// The facts now, for a part.
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts::of(&self.state, &self.contexts, self.now, &self.stamps)
    }

    /// Whether entries may be written.
    ///
    /// # Errors
    /// `storage_error` for a session that was opened to be read.
    pub fn writable(&self) -> Result<(), Failure> {
        self.log.writable(&self.state)
    }

    /// Refuses a request that changes the context while an operation runs or is planned.
    ///
    /// # Errors
    /// `busy`.
    pub fn free(&self) -> Result<(), Failure> {
        if planted(Fault::BusyIgnored) {
            return Ok(());
        }
        self.work.nothing_planned()?;
        self.operations.idle()
    }

    /// The recovery whose compaction runs.
    pub fn recovery(&self) -> Option<&Operation> {
        self.around.as_ref().filter(|around| matches!(around.kind, OperationKind::Recovery(_)))
    }

    /// The maintenance whose handoff runs.
    pub fn relay(&self) -> Option<&Operation> {
        self.around.as_ref().filter(|around| matches!(around.kind, OperationKind::Relay(_)))
    }

    /// The round of idle maintenance whose compaction runs.
    pub fn round(&self) -> Option<&Operation> {
        self.around.as_ref().filter(|around| matches!(around.kind, OperationKind::Idle { .. }))
    }

    /// Starts an operation. `usage`: the usage before it.
    pub(super) fn open(&self, unstarted: Unstarted, usage: Usage) -> Operation {
        let Unstarted { id, kind, asked, stop } = unstarted;
        self.open_at(Place::Top(id), kind, asked, usage, stop)
    }

    /// Starts an operation inside of another one, which goes on around it and ends after it.
    pub fn open_inside(&mut self, around: Operation, kind: OperationKind, usage: Usage, stop: Stop) -> Operation {
        let place = around.part(self.stamps.operation());
        self.around = Some(around);
        self.open_at(place, kind, Asked::Introduced, usage, stop)
    }

    /// Whether maintenance runs.
    pub fn maintains(&self) -> bool {
        let is_maintenance = |operation: &Operation| !matches!(operation.kind, OperationKind::Transfer(_));
        self.around.is_some() || self.work.operation().is_some_and(is_maintenance)
    }

    /// A start is recorded before it is sent.
    fn open_at(&self, place: Place, kind: OperationKind, asked: Asked<Ticket>, usage: Usage, stop: Stop) -> Operation {
        let started_at = entry::timestamp(self.stamps.now());
        let opening = Opening { kind, place, asked, usage, stop, started: self.now, started_at };
        self.lock.record(self.operations.unfinished_with(&opening), &self.effects);
        self.operations.start(opening)
    }

    /// Records the open operations in the lock, for the process that finds it after a crash.
    pub fn record_running(&self) {
        self.lock.record(self.operations.unfinished(), &self.effects);
    }

    /// Names only the open operations in the lock.
    pub fn release_lock(&mut self) {
        if self.lock.release() {
            self.record_running();
        }
    }

    /// Sends the ends of operations whose process died before it ended them, outer ones first.
    pub fn end_interrupted(&mut self, left_behind: Vec<Unfinished>) {
        if left_behind.is_empty() {
            return;
        }
        for (operation, event) in interrupted::<OperationKind>(left_behind, &self.sent_usage) {
            self.effects.emit(About::of(Some(operation), &event), event);
        }
        self.record_running();
    }

    /// The request for the plan of a compaction at the leaf.
    pub fn plan_request(&self, keep_recent_tokens: Option<u64>, initiator: Initiator, cause: Cause) -> PlanRequest {
        let path = self.state.path().clone();
        let model = self.state.model(&path);
        PlanRequest {
            is_counted: self.state.estimator() == self.state.wanted_estimator(),
            settings: self.state.settings().clone(),
            learned: self.state.learned.clone(),
            instructions: self.state.instructions().clone(),
            cwd: Some(self.state.cwd().to_owned()),
            keep_recent_tokens,
            initiator,
            cause,
            insists: false,
            path,
            model,
        }
    }

    /// Whether the provider of the session's model has the last request in its cache, by the reports on the path and their age.
    pub fn is_cache_warm(&self) -> bool {
        let (path, settings) = (self.state.path(), &self.state.settings().settings);
        let model = self.state.model(path);
        matches!(Cache::of(path, model.as_ref(), self.stamps.now(), settings.prune.cache_seconds), Cache::Warm { .. })
    }

    /// Starts the job that plans maintenance for an operation. `former`: the model before the session's, which may write the
    /// summary.
    pub fn plan(&self, id: OperationId, cause: Cause, former: Option<ModelRef>, stop: Stop) {
        let request = self.plan_request(None, Initiator::User, cause);
        self.effects.start(Job::Plan(PlanOrder { id, request, authors: Authors::Anyone, former, stop }));
    }

    /// Whether the compaction that ends asked no model for lack of tokens.
    pub(super) fn take_lack(&mut self) -> Lack {
        let Self { costs, state, contexts, now, stamps, .. } = self;
        costs.take_lack(&Facts::of(state, contexts, *now, stamps))
    }

    /// Sends the fullness of the context, if it changed since the last event.
    pub fn send_usage(&mut self) {
        self.send_measured(self.state.usage());
    }

    /// The same with the usage that was just measured.
    pub fn send_measured(&mut self, usage: Usage) {
        if usage != self.sent_usage {
            self.sent_usage = usage.clone();
            self.effects.emit(About::default(), Event::UsageUpdated { usage });
        }
    }
}
