//! The core of one session: an input goes in, effects come out.
//!
//! The core knows no disk, no clock and no randomness. The time comes in with each input, new ids come from seeded stamps,
//! and the file is a log that is here or out. The same inputs at the same times give the same effects. The shell performs
//! the effects and is the only other place that knows a session.
//!
//! No command is handled while the log is out: an answer sees every append before it, and appends that arrive meanwhile
//! become the next write together.

mod agenda;
mod automatic;
mod background;
pub mod command;
pub mod commands;
mod costs;
mod counting;
mod due;
mod edit;
#[cfg(test)]
pub(super) mod held;
mod idle;
mod learning;
mod load;
pub mod parts;
pub mod recovering;
pub mod relayer;
mod standing;
mod switching;
#[cfg(test)]
mod tests;
mod transfers;
mod work;
mod writing;

use super::{
    effects::{Effect, Effects, IdleTurn, Ticket, TicketNumber},
    founding,
    hooks::Hooks,
    jobs::{IndexBuilt, PlanMade, progress::Progress, transfer::TransferText},
    log_work::{LogDone, LogFacts},
    operation::OpenOperations,
    source::Source,
    state::State,
};
use crate::{
    compaction::draft::Draft,
    conversation::entry::Stamps,
    ids::{OperationId, SessionId},
    log::Unfinished,
    models::learned::Learned,
    protocol::{errors::Failure, types::Usage},
    session::core::{
        agenda::Unit,
        background::{FileChanges, IndexWait},
        command::Command,
        commands::compacting::after_turn::AfterTurn,
        costs::Costs,
        counting::Counting,
        due::Upkeep,
        idle::Idle,
        parts::{held_contexts::HeldContexts, log_gate::LogGate, queue::Queue, reads::Reads},
        recovering::Recoveries,
        standing::Standing,
        work::{TransferPhase, Unbegun, Work},
    },
    settings::Layers,
};
use jiff::Timestamp;
use std::{sync::Arc, time::Instant};

/// An input of a session.
pub enum Input {
    /// A request, which waits for its turn.
    Command(Command, Ticket),
    /// `session/cancel`, with the operation that it names. It waits for nothing.
    Cancel(Option<OperationId>, Ticket),
    /// The client cancelled a request.
    RequestCancelled(TicketNumber),
    /// The settings below the session's own changed.
    Layers(Layers),
    /// The windows that providers taught changed.
    Windows(Learned),
    /// The hooks that the client answers changed.
    Hooks(Arc<Hooks>),
    /// The session's file was touched.
    FileTouched,
    /// The session ends when no operation runs.
    Finish,
    /// The session ends now. Running operations are cancelled.
    Stop,
    /// The next of what is due: a plan, a draft, costs, entries of other programs, or a command.
    Turn,
    /// The time of `wake_at` has come.
    Tick,
    /// Work on the log is done. Where it ended in a panic, the log is lost.
    Log(Option<LogDone>, LogFacts),
    /// A read was answered.
    Answered,
    /// The index was built, or cannot be built.
    Indexed(IndexBuilt),
    /// A plan was made, or cannot be made.
    Planned(OperationId, Result<PlanMade, Failure>),
    /// A report on a draft in the making.
    Reported(OperationId, Progress),
    /// A draft was made, or cannot be made.
    Drafted(OperationId, Result<Draft, Failure>),
    /// The text of a transfer was made, or cannot be made.
    Transferred(OperationId, Result<TransferText, Failure>),
    /// The source of a reference was found, or there is none.
    Sourced(OperationId, Result<Source, Failure>),
    /// A session was made for the summary of a compaction, or not.
    Founded(OperationId, founding::Outcome),
    /// Estimated entries were counted by the tokenizer.
    Counted,
    /// The turn of this session for idle maintenance has come, or it waits.
    IdleTurn(IdleTurn),
}

/// The time of an input, and the facts about the process that a session depends on.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The time of timers.
    pub now: Instant,
    /// The time of day.
    pub wall: Timestamp,
    /// Bytes that the other sessions keep in memory.
    pub awake_elsewhere: u64,
    /// Whether the tables of the tokenizer are loaded.
    pub tokenizer: bool,
}

/// Whether the session ends, and the requests that wait for the end.
enum Ending {
    No,
    WhenIdle,
    Now(Vec<Ticket>),
}

impl Ending {
    /// Whether the session starts work by itself: it does not end.
    fn goes_on(&self) -> bool {
        matches!(self, Self::No)
    }

    /// The session ends now.
    fn end_now(&mut self) {
        if !matches!(self, Self::Now(_)) {
            *self = Self::Now(Vec::new());
        }
    }
}

/// Whether a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// It goes on.
    No,
    /// It ends if no command waits for it.
    WithoutCommands,
    /// It ends.
    Yes,
}

/// One session.
pub struct Core {
    state: State,
    log: LogGate,
    work: Work,
    operations: OpenOperations,
    effects: Effects,
    queue: Queue,
    /// Operations that end before their starts, cancelled ones above all. They start and end when the log is here and no other
    /// is open.
    cancelled: Vec<Unbegun>,
    costs: Costs,
    /// Requests for the context that wait for the end of the compaction.
    held: HeldContexts,
    reads: Reads,
    index: IndexWait,
    changes: FileChanges,
    idle: Idle,
    counting: Counting,
    upkeep: Upkeep,
    recoveries: Recoveries,
    ending: Ending,
    /// The usage that was sent last.
    sent_usage: Usage,
    stamps: Stamps,
    now: Instant,
}

impl Core {
    /// The core of an opened session. `left_behind`: operations that its last owner had not ended when it died, outer ones
    /// first. `seed` decides the ids of its entries and operations.
    #[must_use]
    pub fn new(state: State, left_behind: Vec<Unfinished>, log: LogFacts, seed: u64, at: &Moment) -> Self {
        let effects = Effects::default();
        let mut core = Self {
            sent_usage: state.usage(),
            log: LogGate::here(log),
            work: Work::None,
            operations: OpenOperations::new(effects.clone(), at.now),
            effects,
            queue: Queue::default(),
            cancelled: Vec::new(),
            costs: Costs::opened(&state.history().spending().recent, at),
            state,
            held: HeldContexts::default(),
            reads: Reads::default(),
            index: IndexWait::default(),
            changes: FileChanges::default(),
            idle: Idle::new(at.now),
            counting: Counting::default(),
            upkeep: Upkeep::default(),
            recoveries: Recoveries::default(),
            ending: Ending::No,
            stamps: Stamps::seeded(seed, at.wall),
            now: at.now,
        };
        core.upkeep.after_turn = AfterTurn::recalled(&core.state, log.access, &left_behind);
        core.end_interrupted(left_behind);
        core.tell_of_window();
        core
    }

    /// The effects that were not performed yet.
    #[must_use]
    pub fn effects(&self) -> &Effects {
        &self.effects
    }

    /// The id of the session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.state.id
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The hooks that the client answers for this session.
    #[must_use]
    pub fn hooks(&self) -> &Arc<Hooks> {
        &self.upkeep.hooks
    }

    /// Handles an input. Its effects are added to the list.
    pub fn on(&mut self, at: &Moment, input: Input) {
        self.now = at.now;
        self.stamps.set_time(at.wall);
        self.operations.set_time(at.now);
        self.state.tokenizer_is(at.tokenizer);
        match input {
            Input::Command(command, ticket) => {
                if command.is_activity() {
                    self.is_active();
                }
                self.queue.take_in(command, ticket);
            }
            Input::Cancel(which, ticket) => self.cancel(which.as_ref(), ticket),
            Input::RequestCancelled(request) => self.request_cancelled(request),
            Input::Layers(layers) => self.relayer(layers),
            Input::Windows(learned) => self.take_windows(learned),
            Input::Hooks(hooks) => self.upkeep.hooks = hooks,
            Input::FileTouched => self.changes.touched(),
            Input::Finish => {
                if self.ending.goes_on() {
                    self.ending = Ending::WhenIdle;
                    self.idle_gives_way();
                    let access = self.log.facts().access;
                    let delayed = self.upkeep.after_turn.take_at_end(access);
                    self.end_unstarted(delayed);
                    self.end_waiting();
                }
            }
            Input::Stop => {
                self.ending.end_now();
                self.stop_running(None);
                self.reads.stop.request();
                self.held.fail(&Failure::Cancelled);
            }
            Input::Turn => self.turn(),
            Input::Tick => self.tick(at),
            Input::Log(done, facts) => self.log_is_back(done, facts),
            Input::Answered => self.reads.answered(),
            Input::Indexed(built) => self.indexed(built),
            Input::Planned(id, result) => self.planned(&id, result),
            Input::Reported(id, step) => self.reported(&id, step),
            Input::Drafted(id, result) => self.drafted(&id, result),
            Input::Transferred(id, result) => self.transfer_made(&id, result),
            Input::Sourced(id, result) => self.sourced(&id, result),
            Input::Founded(id, result) => self.founded(&id, result),
            Input::Counted => self.counted(),
            Input::IdleTurn(turn) => {
                let turning = self.idle.rounds.turn(turn);
                self.effects.turn_idle(turning);
            }
        }
        if !self.ending.goes_on() || self.hooks().concerns_compaction() || self.upkeep.ahead.is_stale(&self.state) {
            self.speculate(|ahead, facts| ahead.throw_away(facts));
        }
        self.settle();
        self.share_memory();
    }

    /// Whether a `Turn` has something to do.
    #[must_use]
    pub fn is_due(&self) -> bool {
        Standing::of(self).unit().is_some()
    }

    /// Whether the session takes commands now. Until then they wait outside.
    #[must_use]
    pub fn takes_commands(&self) -> bool {
        self.log.is_free() && !self.work.founds() && !matches!(self.ending, Ending::Now(_)) && self.queue.has_room()
    }

    /// Whether the session is over.
    #[must_use]
    pub fn over(&self) -> Over {
        match self.ending {
            Ending::WhenIdle if Standing::of(self).is_idle() => Over::WithoutCommands,
            Ending::Now(_)
                if Standing::of(self).is_quiet()
                    && self.index.build.is_none()
                    && !Standing::of(self).is_pending(Unit::Costs) =>
            {
                Over::Yes
            }
            _ => Over::No,
        }
    }

    /// Ends the session. Everything is on disk, and no work runs. The tickets of its closes are to be answered when the file
    /// is closed.
    #[must_use]
    pub fn end(mut self) -> Vec<Ticket> {
        let gone = Failure::no_session(self.state.id.as_str());
        let mut closes = match std::mem::replace(&mut self.ending, Ending::No) {
            Ending::Now(tickets) => tickets,
            Ending::No | Ending::WhenIdle => Vec::new(),
        };
        for (command, ticket) in self.index.commands.drain().chain(self.queue.drain()) {
            if command.closes() { closes.push(ticket) } else { ticket.fail(&gone) }
        }
        self.held.fail(&gone);
        closes
    }

    /// Does the next unit of the agenda.
    fn turn(&mut self) {
        match Standing::of(self).unit() {
            None | Some(Unit::Contexts) => {}
            Some(Unit::AfterTurnEntry) => {
                let writable = self.log.writable(&self.state);
                let steps = self.upkeep.after_turn.write_due(writable, &self.state, &mut self.stamps);
                self.follow_after_turn(steps);
            }
            Some(Unit::Unbegun) => self.begin_all_cancelled(),
            Some(Unit::Begin | Unit::Commit) => match self.work.take() {
                Work::Planned(request, result) => self.begin(request, *result),
                Work::Referring(request, Some(result)) => self.begin_reference(request, *result),
                Work::Drafted(operation, draft) => self.commit(operation, *draft),
                Work::Transfer(operation, TransferPhase::Made(task, text)) => self.deliver(operation, *task, text),
                other => self.work = other,
            },
            Some(Unit::Costs) => {
                let costs = self.costs.take(&self.state, &mut self.stamps);
                self.write(Box::new(costs));
            }
            Some(Unit::FailedAnswers) => self.decide_reported(),
            Some(Unit::Switch) => self.decide_switch(),
            Some(Unit::Extract) => self.deliver_waiting(),
            Some(Unit::AfterTransfer) => self.decide_behind_transfer(),
            Some(Unit::AfterTurn) => {
                let due = self.due_after_turn();
                self.start_due(due);
            }
            Some(Unit::Ahead) => self.decide_ahead(),
            Some(Unit::FileChanges) => self.catch_up(),
            Some(Unit::Command) => {
                if let Some((command, ticket)) = self.queue.next() {
                    self.idle.touch(self.now);
                    self.handle(command, ticket);
                    // For this command alone: the next one may find another file.
                    self.state.fetched = None;
                }
            }
        }
    }

    fn handle(&mut self, command: Command, ticket: Ticket) {
        match command {
            Command::Activity => ticket.ok(&()),
            command if Standing::of(self).waits_for_index(&command) => self.await_index(command, ticket),
            command if self.state.history().is_asleep() && !command.closes() => {
                self.queue.put_back(command, ticket);
                self.wake();
            }
            Command::Append(params) => self.append(params, ticket),
            Command::Edit(edit) => self.edit(edit, ticket),
            Command::Compact(params) => {
                self.compact(params, ticket);
                self.count();
            }
            Command::Transfer(request) => self.transfer(*request, ticket),
            Command::Call(call) => {
                call(self, ticket);
                // Not at the opening: a client may open a thousand sessions and look at one.
                self.count();
            }
            Command::HandOver => ticket.leave_to(Effect::HandOver),
            Command::Close => self.leave(ticket),
        }
    }
}
