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
mod base;
pub mod command;
pub mod commands;
mod costs;
mod due;
mod edit;
mod ending;
#[cfg(test)]
pub(super) mod held;
mod idle;
pub mod parts;
pub mod recovering;
pub mod standing;
mod starting;
mod step;
#[cfg(test)]
mod tests;
mod transfers;
pub mod turns;
mod upkeep;
mod work;
mod writing;

use super::{
    effects::{Effect, Effects, IdleTurn, Ticket, TicketNumber},
    founding as new_session,
    hooks::Hooks,
    jobs::{IndexBuilt, PlanMade, progress::Progress, transfer::TransferText, turn::TurnReport},
    kind::OperationKind,
    log_work::{LogDone, LogFacts},
    source::Source,
    state::State,
};
use crate::{
    compaction::draft::Draft,
    ids::OperationId,
    log::Unfinished,
    models::learned::Learned,
    protocol::errors::Failure,
    session::core::{
        agenda::Unit,
        automatic::{cold::ColdPauses, speculating},
        base::{Base, Ending, following::FileChanges},
        command::Command,
        commands::{
            compacting::{self, after_turn::AfterTurn, committing, ordering, reporting},
            context::Way,
            founding, settings, turns as prompting,
        },
        idle::{Idle, maintenance},
        recovering::Recoveries,
        standing::Standing,
        step::{Step, Steps, Write},
        transfers::referring,
        turns::Turns,
        upkeep::Upkeep,
        work::{TransferPhase, Unbegun, Work},
        writing::{appends, edits},
    },
    settings::Layers,
    wire::outbox::About,
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
    /// A report of a step of a turn.
    Turned(OperationId, TurnReport),
    /// The source of a reference was found, or there is none.
    Sourced(OperationId, Result<Source, Failure>),
    /// A session was made for the summary of a compaction, or not.
    Founded(OperationId, new_session::Outcome),
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

/// One session: a router. An input goes to the parts that it concerns, and the steps that follow from their verbs are performed in
/// one order. `starting` has the work that may start, and `ending` the work that ends.
pub struct Core {
    base: Base,
    /// Operations that end before their starts, cancelled ones above all. They start and end when the log is here and no other
    /// is open.
    unbegun: Vec<Unbegun>,
    /// The write with which the log is out.
    write: Option<Box<dyn Write>>,
    /// The answers of a write that wait for counts.
    uncounted: Option<Step>,
    changes: FileChanges,
    idle: Idle,
    upkeep: Upkeep,
    recoveries: Recoveries,
    turns: Turns,
}

#[expect(clippy::unit_arg, reason = "an arm is one expression, also where nothing follows")]
impl Core {
    /// The core of an opened session. `left_behind`: operations that its last owner had not ended when it died, outer ones
    /// first. `seed` decides the ids of its entries and operations.
    #[must_use]
    pub fn new(state: State, left_behind: Vec<Unfinished>, log: LogFacts, seed: u64, at: &Moment) -> Self {
        let (after_turn, begun) = AfterTurn::recalled(&state, log.access, &left_behind);
        let mut base = Base::new(state, log, seed, at);
        base.lock.keep(begun);
        base.end_interrupted(left_behind);
        base.report_window();
        let mut cold = ColdPauses::default();
        cold.report(&base);
        Self {
            turns: Turns::recalled(&base),
            base,
            unbegun: Vec::new(),
            write: None,
            uncounted: None,
            changes: FileChanges::default(),
            idle: Idle::new(at.now),
            upkeep: Upkeep { after_turn, cold, ..Upkeep::default() },
            recoveries: Recoveries::default(),
        }
    }

    /// The effects that were not performed yet.
    #[must_use]
    pub fn effects(&self) -> &Effects {
        &self.base.effects
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.base.state
    }

    /// The hooks that the client answers for this session.
    #[must_use]
    pub fn hooks(&self) -> &Arc<Hooks> {
        &self.base.hooks
    }

    /// Handles an input. Its effects are added to the list.
    pub fn on(&mut self, at: &Moment, input: Input) {
        self.base.set_time(at);
        let steps: Steps = match input {
            Input::Command(command, ticket) => {
                if command.is_activity() {
                    self.is_active();
                }
                self.base.queue.take_in(command, ticket).into()
            }
            Input::Cancel(which, ticket) => self.cancel(which.as_ref(), ticket).into(),
            Input::RequestCancelled(request) => self.request_cancelled(request).into(),
            Input::Layers(layers) => settings::relayer::relayer(&mut self.base, layers).into(),
            Input::Windows(learned) => self.base.take_windows(learned).into(),
            Input::Hooks(hooks) => {
                self.base.hooks = hooks;
                Steps::none()
            }
            Input::FileTouched => self.changes.touched().into(),
            Input::Finish => self.end_when_idle().into(),
            Input::Stop => {
                self.base.ending.end_now();
                self.stop_running(None);
                self.base.reads.stop.request();
                self.base.waiting.fail(&Failure::Cancelled).into()
            }
            Input::Turn => self.turn(),
            Input::Tick => self.tick(at).into(),
            Input::Log(done, facts) => self.log_is_back(done, facts).into(),
            Input::Answered => self.base.reads.answered().into(),
            Input::Indexed(built) => self.indexed(built).into(),
            Input::Planned(id, result) if self.upkeep.ahead.is(&id) => {
                self.upkeep.ahead.planned(result, &self.base.facts()).into()
            }
            Input::Planned(id, result) => compacting::planned(&mut self.base, &id, result).into(),
            Input::Reported(id, step) => reporting::reported(&mut self.base, &mut self.upkeep.ahead, &id, step).into(),
            Input::Drafted(id, result) if self.upkeep.ahead.is(&id) => {
                self.upkeep.ahead.drafted(result, &self.base.facts()).into()
            }
            Input::Drafted(id, result) => {
                compacting::drafted(&mut self.base, &mut self.upkeep.ahead, &id, result).into()
            }
            Input::Transferred(id, result) => transfers::made(&mut self.base, &id, result).into(),
            Input::Turned(id, report) => self.turns.reported(&mut self.base, &id, report).into(),
            Input::Sourced(id, result) => referring::sourced(&mut self.base, &id, result).into(),
            Input::Founded(id, result) => {
                founding::founded(&mut self.base, &mut self.turns.prompts, &id, result).into()
            }
            Input::Counted => self.counted().into(),
            Input::IdleTurn(turn) => {
                let turning = self.idle.rounds.turn(turn);
                self.base.effects.turn_idle(turning).into()
            }
        };
        self.follow(steps);
        self.turns.tidy(&mut self.base);
        let ends = !self.base.ending.goes_on() || self.base.hooks.concerns_compaction();
        if ends || self.upkeep.ahead.is_stale(&self.base.state) {
            let steps = self.upkeep.ahead.throw_away(&self.base.facts());
            self.follow(steps);
        }
        self.settle();
        if Standing::of(self).may_sleep() {
            self.base.effects.extend(self.idle.shares(self.base.state.path().bytes()));
        }
    }

    /// Whether a `Turn` has something to do.
    #[must_use]
    pub fn is_due(&self) -> bool {
        Standing::of(self).unit().is_some()
    }

    /// The time of the next work of an idle session. `awake_elsewhere`: bytes that the other sessions keep in memory.
    #[must_use]
    pub fn wake_at(&self, awake_elsewhere: u64) -> Option<Instant> {
        Some(Standing::of(self).idle_work(awake_elsewhere)?.at())
    }

    /// Whether the session takes commands now. Until then they wait outside.
    #[must_use]
    pub fn takes_commands(&self) -> bool {
        self.base.log.is_free() && !self.base.work.founds() && !self.base.ending.is_now() && self.base.queue.has_room()
    }

    /// Whether the session is over.
    #[must_use]
    pub fn over(&self) -> Over {
        match self.base.ending {
            Ending::WhenIdle if Standing::of(self).is_idle() => Over::WithoutCommands,
            Ending::Now(_)
                if Standing::of(self).is_quiet()
                    && self.base.index.build.is_none()
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
    pub fn end(self) -> Vec<Ticket> {
        let Base { ending, mut index, mut queue, mut waiting, state, .. } = self.base;
        let gone = Failure::no_session(state.id.as_str());
        let mut closes = match ending {
            Ending::Now(tickets) => tickets,
            Ending::No | Ending::WhenIdle => Vec::new(),
        };
        for (command, ticket) in index.commands.drain().chain(queue.drain()) {
            if command.closes() { closes.push(ticket) } else { ticket.fail(&gone) }
        }
        waiting.fail(&gone);
        closes
    }

    /// Does the next unit of the agenda.
    fn turn(&mut self) -> Steps {
        let Some(unit) = Standing::of(self).unit() else { return Steps::none() };
        match unit {
            Unit::Contexts => Steps::none(),
            Unit::AfterTurnEntry => {
                let (base, after_turn) = (&mut self.base, &mut self.upkeep.after_turn);
                after_turn.write_due(base.writable(), &base.state, &mut base.stamps).into()
            }
            Unit::Unbegun => self.end_unbegun().into(),
            Unit::Begin | Unit::Commit => match self.base.work.take() {
                Work::Planned(request, result) => compacting::begun(&mut self.base, request, *result).into(),
                Work::Referring(request, Some(result)) => {
                    referring::begin_reference(&mut self.base, request, *result).into()
                }
                Work::Drafted(operation, draft) => Step::Commit(operation, draft).into(),
                Work::Transfer(operation, TransferPhase::Made(task, text)) => {
                    Step::Deliver(operation, *task, text).into()
                }
                other => {
                    self.base.work = other;
                    Steps::none()
                }
            },
            Unit::Costs => {
                let costs = self.base.costs.take(&self.base.state, &mut self.base.stamps);
                Step::Write(Box::new(costs)).into()
            }
            Unit::FailedAnswers => self.decide_reported().into(),
            Unit::Switch => self.decide_switch().into(),
            Unit::Extract => {
                self.idle_gives_way();
                self.upkeep.extracts.next().into()
            }
            Unit::AfterTransfer => self.decide_after_transfer().into(),
            Unit::AfterTurn => self.upkeep.after_turn.take_due(self.base.state.path()).map(Step::Start).into(),
            Unit::TurnMessages => self.turns.write(&mut self.base).into(),
            Unit::Ask => match Standing::of(self).way_of_turn() {
                Way::Maintain => self.maintain().into(),
                way => self.turns.ask(&mut self.base, way).into(),
            },
            Unit::NextTurn => self.turns.next(&mut self.base).into(),
            Unit::Ahead => self.decide_ahead().into(),
            Unit::FileChanges => {
                self.changes.read();
                self.base.catch_up().into()
            }
            Unit::Command => {
                if let Some((command, ticket)) = self.base.queue.next() {
                    self.idle.touch(self.base.now);
                    let steps = self.handle(command, ticket);
                    self.follow(steps);
                    // For this command alone: the next one may find another file.
                    self.base.state.fetched = None;
                }
                Steps::none()
            }
        }
    }

    fn handle(&mut self, command: Command, ticket: Ticket) -> Steps {
        if command.disturbs_turns()
            && !ticket.cancelled()
            && let Err(busy) = self.turns.none()
        {
            return ticket.fail(&busy).into();
        }
        match command {
            Command::Activity => ticket.ok(&()).into(),
            command if Standing::of(self).waits_for_index(&command) => self.base.await_index(command, ticket).into(),
            command if self.base.state.history().is_asleep() && !command.closes() => {
                self.base.queue.put_back(command, ticket);
                self.base.wake().into()
            }
            Command::Append(params) => appends::begin(&mut self.base, params, ticket).into(),
            Command::Edit(edit) => edits::begin(&mut self.base, edit, ticket).into(),
            Command::Compact(params) => {
                let time = Standing::of(self).time_of(&params);
                let steps = compacting::begin(&mut self.base, &mut self.upkeep, params, ticket, time);
                self.follow(steps);
                self.base.count_at_rest().into()
            }
            Command::Turn(request) => {
                let step = prompting::begin(&mut self.base, &mut self.turns, *request, ticket);
                self.upkeep.cold.report(&self.base);
                step.into()
            }
            Command::Transfer(request) => {
                transfers::begin(&mut self.base, &mut self.upkeep.relays, *request, ticket).into()
            }
            Command::Call(call) => {
                call(self, ticket);
                // Not at the opening: a client may open a thousand sessions and look at one.
                self.base.count_at_rest().into()
            }
            Command::HandOver => ticket.leave_to(Effect::HandOver).into(),
            Command::Close => {
                // The contexts that wait start nothing any more.
                self.base.ending = Ending::Now(vec![ticket]);
                self.stop_running(None);
                self.base.reads.stop.request();
                // Those that waited for counts.
                self.answer_contexts().into()
            }
        }
    }

    /// Performs steps in their order, each with all that follows from it.
    fn follow(&mut self, steps: impl Into<Steps>) {
        for step in steps.into() {
            let next = self.step(step);
            self.follow(next);
        }
    }

    fn step(&mut self, step: Step) -> Steps {
        let Self { base, upkeep, idle, turns, .. } = self;
        match step {
            Step::Write(mut write) => {
                let work = writing::work(base, &upkeep.after_turn, &turns.prompts, &mut *write);
                base.log.writes(write.follow_up());
                base.effects.push(Effect::Log(work));
                self.write = Some(write);
                Steps::none()
            }
            Step::Announce(entry) => base.effects.announce(&entry, None).into(),
            Step::Answer(ticket, answer) => ticket.answer(answer).into(),
            Step::Warn(warning) => base.effects.emit(About::default(), warning.into()).into(),
            Step::Release => base.release_lock().into(),
            Step::Wake => base.wake().into(),
            Step::AnswerContexts => self.answer_contexts().into(),

            Step::Appended(appends) => self.appended(appends).into(),
            Step::AnswerAppends(appends) => self.answer_appends(appends).into(),
            Step::Edited(write) => self.edited(write).into(),
            Step::AnswerEdit(write) => self.answer_edit(*write).into(),
            Step::AfterTurn(outcome) => upkeep.after_turn.recorded(outcome, &base.state, &mut base.stamps).into(),

            Step::OwnNotWritten(own, failure) => turns.not_written(base, *own, &failure).into(),
            Step::OwnAgain(own) => turns.again(*own).into(),
            Step::Queue(outcome) => turns.prompts.recorded(base, outcome).into(),

            Step::Start(due) => self.start(due).into(),
            Step::StartIfDue => self.start_if_due().into(),
            Step::BeginRound(request, result) => maintenance::begin(base, &mut idle.rounds, request, result).into(),
            Step::Draft(operation, made, focus) => {
                compacting::draft(base, &mut upkeep.ahead, operation, made, focus).into()
            }
            Step::DraftAhead(draft) => ordering::order(base, &OperationKind::Speculation, draft).into(),
            Step::Recover(due, written) => self.recover(due, written).into(),
            Step::Commit(operation, draft) => {
                committing::commit(base, upkeep, &turns.prompts, operation, *draft).into()
            }
            Step::Deliver(operation, task, text) => self.deliver(operation, task, text).into(),
            Step::Delivered(delivery, result) => {
                if result.is_ok() {
                    self.recoveries.forget_failed(&self.base.state);
                    self.has_changed();
                }
                transfers::delivered(&mut self.base, &mut self.upkeep.switches, *delivery, result).into()
            }
            Step::Cancel(request) => self.end_unstarted([request]).into(),
            Step::End(ended) => self.finish(ended).into(),
            Step::EndAhead(operation) => speculating::end(base, operation).into(),
            Step::RecordFailure(failed) => base.costs.add_failed(failed).into(),
        }
    }
}
