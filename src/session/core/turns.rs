//! Turns that the daemon runs: a message of the user, requests to the model, and the calls of its answers, until it answers
//! without calls.
//!
//! A turn appends its messages as a host does, by the same writes, so that recoveries and compactions follow from them in the same
//! way. It asks the model again when no other work runs.

mod own;
pub(super) mod prompts;
pub(super) mod queued;
mod running;
mod staging;
#[cfg(test)]
mod tests;

pub(super) use own::Own;

use super::{base::Base, commands::context::Way, due::Due, parts::contexts::Identity, step::Step, work::Unstarted};
use crate::{
    ids::{EntryId, OperationId},
    prompts::Prompt,
    protocol::{
        errors::Failure,
        types::{Behavior, Cancelled, PromptMessage, Queue, TURN},
    },
    session::{
        effects::Ticket,
        jobs::{
            Job,
            turn::{AskOrder, RouteOrder, TurnOrder, TurnReport},
        },
        kind::{Opening, OperationKind, Product},
        operations::{Asked, End, Follows},
        state::State,
        stop::Stop,
    },
};
use own::What;
use prompts::Prompts;
use queued::Waiting;
use running::{Phase, Reminder, Running};
use std::collections::VecDeque;

/// The turn of a session, and the messages that wait for one.
#[derive(Default)]
pub(super) struct Turns {
    /// The turn whose start was not sent.
    starting: Option<Starting>,
    running: Option<Running>,
    /// The messages that wait.
    pub prompts: Prompts,
    /// Messages of turns that are to be written.
    unwritten: VecDeque<Own>,
}

/// A turn whose start was not sent: whether its model can be asked is being looked at, or its message is being written.
struct Starting {
    id: OperationId,
    /// The message; none for a turn on the context as it stands.
    message: Option<PromptMessage>,
    /// The message of the queue that it is.
    queued: Option<EntryId>,
    asked: Asked<Ticket>,
    /// The reason why the model cannot be asked.
    refused: Option<Failure>,
    /// Whether a cancel came before the start.
    is_cancelled: bool,
}

/// The end of maintenance, as far as a turn depends on it.
pub(super) enum Maintained {
    /// There is another context.
    Done,
    /// There is none.
    Not(Failure),
    /// It was cancelled.
    Cancelled,
}

impl Maintained {
    /// The end of an operation.
    pub fn of(end: &End<Product>) -> Self {
        match end {
            End::Completed(_) => Self::Done,
            End::Cancelled => Self::Cancelled,
            End::Failed(failure) => Self::Not(failure.clone()),
            End::Skipped(nothing) => Self::Not(Failure::NothingToCompact(*nothing)),
        }
    }
}

/// The work that follows messages of a turn.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outlook {
    /// The request is sent again, after a recovery or at once.
    pub repeats: bool,
    /// The context is compacted.
    pub compacts: bool,
}

impl Outlook {
    /// The outlook with this maintenance. `is_reported`: a failed answer waits for a decision.
    pub fn of(due: Option<&Due>, is_reported: bool) -> Self {
        Self {
            repeats: is_reported || matches!(due, Some(Due::Recovery(_) | Due::Repeat(_))),
            compacts: matches!(due, Some(Due::Compaction(_))),
        }
    }
}

/// The messages that wait for a turn, as the file has them.
#[must_use]
pub fn queue_in_file(state: &State) -> Queue {
    Prompts::recalled(state).queue()
}

impl Turns {
    /// The turns of an opened session: none runs, and the queue waits for a new message.
    pub fn recalled(base: &Base) -> Self {
        let prompts = Prompts::recalled(&base.state);
        Self { prompts, ..Self::default() }
    }

    /// The turn that runs or starts.
    pub fn id(&self) -> Option<&OperationId> {
        let running = self.running.as_ref().map(|running| &running.operation.id);
        running.or_else(|| self.starting.as_ref().map(|starting| &starting.id))
    }

    /// Refuses a request while a turn runs or starts.
    ///
    /// # Errors
    /// `busy`.
    pub fn none(&self) -> Result<(), Failure> {
        let busy = |id: &OperationId| Failure::Busy { operation_id: id.clone(), kind: TURN };
        self.id().map_or(Ok(()), |id| Err(busy(id)))
    }

    /// Whether messages are to be written, or the queue.
    pub fn must_write(&self) -> bool {
        !self.unwritten.is_empty() || self.prompts.is_outdated()
    }

    /// Whether the turn asks its model as soon as no other work runs.
    pub fn asks(&self) -> bool {
        self.unwritten.is_empty() && self.running.as_ref().is_some_and(Running::is_ready)
    }

    /// Whether a turn goes on with messages that steer it.
    pub fn is_steered(&self) -> bool {
        self.running.is_some() && self.prompts.steers()
    }

    /// Whether a message of the queue begins a turn as soon as no other work runs.
    pub fn follows(&self) -> bool {
        self.prompts.is_next()
    }

    /// Starts a turn with a message of the user, or on the context as it stands.
    pub fn begin(&mut self, base: &mut Base, message: Option<PromptMessage>, ticket: Ticket) {
        self.prompts.go_on();
        let id = base.stamps.turn();
        self.start(base, Starting::of(id, message, None, Asked::by(ticket, None)));
    }

    /// Puts a message in the queue. The turn that runs takes it in, or the next one begins with it.
    /// `is_cancelled`: a cancel came after it, so it waits for the user.
    pub fn queue(
        &mut self,
        base: &mut Base,
        message: PromptMessage,
        behavior: Behavior,
        ticket: Ticket,
        is_cancelled: bool,
    ) -> Option<Step> {
        // The turn that it begins, where none takes it in.
        let own = base.stamps.turn();
        let steered = self.id().filter(|_| behavior == Behavior::Steer && !is_cancelled).cloned();
        let behavior = if steered.is_some() { behavior } else { Behavior::FollowUp };
        if !is_cancelled {
            self.prompts.go_on();
        }
        let waiting = Waiting { id: base.stamps.stamp().id, turn: own.clone(), message };
        self.prompts.add(base, waiting, behavior, steered.unwrap_or(own), ticket)
    }

    /// Takes all messages out of the queue, but the one whose turn starts.
    pub fn clear_queue(&mut self, base: &mut Base, ticket: Ticket) -> Option<Step> {
        let starts = self.starting.as_ref().and_then(|starting| starting.queued.as_ref());
        self.prompts.clear(base, starts, ticket)
    }

    /// Starts the turn of the next message of the queue.
    pub fn next(&mut self, base: &mut Base) {
        let Some(Waiting { id, turn, message }) = self.prompts.next().cloned() else { return };
        self.start(base, Starting::of(turn, Some(message), Some(id), Asked::Unasked));
    }

    fn start(&mut self, base: &mut Base, starting: Starting) {
        let (id, view) = (starting.id.clone(), base.state.view());
        let model = base.state.model(base.state.path());
        base.effects.start(Job::Turn(TurnOrder::Route(Box::new(RouteOrder { id, view, model }))));
        self.starting = Some(starting);
    }

    /// Takes a report of a step of the turn.
    pub fn reported(&mut self, base: &mut Base, id: &OperationId, report: TurnReport) {
        match report {
            TurnReport::Routed(refused) => self.routed(base, id, refused.as_ref().map(Failure::from)),
            TurnReport::Heard(update) => {
                if let Some(running) = self.running_as(id) {
                    running.heard(base, update);
                }
            }
            TurnReport::Answered(answer) => {
                if let Some(running) = self.running_as(id).filter(|running| running.is_asking()) {
                    let heard = running.request_ends(base, answer.failed.is_some());
                    self.unwritten.push_back(Own::answer(id.clone(), *answer, &heard));
                }
            }
            TurnReport::Executed(call, executed) => {
                if let Some(running) = self.running_as(id)
                    && let Some(name) = running.executed(base, &call, executed.is_error)
                {
                    self.unwritten.push_back(Own::result(id.clone(), call, &name, executed));
                }
            }
        }
    }

    fn running_as(&mut self, id: &OperationId) -> Option<&mut Running> {
        self.running.as_mut().filter(|running| running.operation.id == *id && running.operation.is_open())
    }

    /// Whether the model can be asked is known. The message is written in any case.
    fn routed(&mut self, base: &mut Base, id: &OperationId, refused: Option<Failure>) {
        let Some(starting) = self.starting.as_mut().filter(|starting| starting.id == *id) else { return };
        starting.refused = refused;
        match &starting.message {
            Some(message) => {
                let own = Own::prompt(id.clone(), message, starting.queued.clone());
                self.unwritten.push_back(own);
            }
            None => self.started(base, id),
        }
    }

    /// The next write: messages of turns, as many as may stand together, or the queue.
    pub fn write(&mut self, base: &mut Base) -> Vec<Step> {
        if base.state.history().is_asleep() {
            return vec![Step::Wake];
        }
        if self.unwritten.is_empty() {
            return self.prompts.write_due(base).into_iter().collect();
        }
        let mut steps = Vec::new();
        let mut appends = Vec::new();
        while let Some(own) = self.unwritten.pop_front() {
            match staging::stage(base, own, &self.prompts, &appends) {
                Ok(append) => {
                    let is_last = append.may_be_recovered();
                    appends.push(append);
                    if is_last {
                        break;
                    }
                }
                Err(refused) => {
                    let (own, failure) = *refused;
                    steps.extend(self.not_written(base, own, &failure));
                }
            }
        }
        steps.extend(staging::write(base, appends));
        steps
    }

    /// The messages could not be written.
    pub fn not_written(&mut self, base: &mut Base, own: Own, failure: &Failure) -> Vec<Step> {
        self.prompts.pause(base);
        if let Some(starting) = self.starting.take_if(|starting| starting.id == own.turn) {
            return starting.asked.into_request().map(|ticket| Step::fail(ticket, failure)).into_iter().collect();
        }
        if self.running_as(&own.turn).is_some() {
            self.end(base, End::Failed(failure.clone()));
        }
        Vec::new()
    }

    /// Another program was faster: the messages are written again.
    pub fn again(&mut self, own: Own) {
        self.unwritten.push_front(own);
    }

    /// The messages with this one are on disk, and its turn starts before they are announced.
    pub fn begins(&mut self, base: &mut Base, own: &Own) {
        if matches!(own.what, What::Prompt) {
            let turn = own.turn.clone();
            self.started(base, &turn);
        }
    }

    /// Sends the start of the turn, and its end where it cannot go on.
    fn started(&mut self, base: &mut Base, id: &OperationId) {
        let Some(starting) = self.starting.take_if(|starting| starting.id == *id) else { return };
        let opening = if starting.message.is_some() { Opening::Prompt } else { Opening::Continue };
        let Starting { id, asked, refused, is_cancelled, .. } = starting;
        if let (Some(failure), Asked::Answered(_) | Asked::Batched(_), false) = (&refused, &asked, is_cancelled) {
            self.prompts.pause(base);
            return asked.into_request().into_iter().for_each(|ticket| ticket.fail(failure));
        }
        let stop = Stop::default();
        let unstarted = Unstarted { id, kind: OperationKind::Turn(opening), asked, stop };
        let operation = base.open(unstarted, base.state.usage());
        self.running = Some(Running::of(operation));
        match refused {
            _ if is_cancelled => self.end(base, End::Cancelled),
            Some(failure) => self.end(base, End::Failed(failure)),
            None => {}
        }
    }

    /// The messages are on disk and announced.
    pub fn written(&mut self, base: &mut Base, own: Own, outlook: Outlook) {
        if self.prompts.delivered(&own.delivered) {
            base.effects.emit(Default::default(), self.prompts.event());
        }
        let has_steering = self.prompts.steers();
        let Some(running) = self.running_as(&own.turn) else { return };
        let end = match own.what {
            What::Prompt | What::Steering | What::Reminder => {
                running.phase = Phase::Ready;
                None
            }
            What::Result => {
                running.result_is_written();
                None
            }
            What::Answer(said) => running.answered(base, *said, outlook, has_steering),
            What::Rest => None,
        };
        if let Some(own) = self.running_as(&own.turn).and_then(Running::unexecuted) {
            self.unwritten.extend(own);
        }
        if let Some(end) = end {
            self.end(base, end);
        }
    }

    /// Asks the model, if the context fits. Messages that steer the turn, and the one that lets it go on after a compaction, are
    /// written first.
    pub fn ask(&mut self, base: &mut Base, way: Way) {
        let Some(running) = self.running.as_mut().filter(|running| running.is_ready()) else { return };
        let turn = running.operation.id.clone();
        let steering: Vec<Waiting> = self.prompts.steering().to_vec();
        if !steering.is_empty() {
            running.phase = Phase::Writing;
            running.reminder = Reminder::None;
            return self.unwritten.push_back(Own::steering(turn, &steering));
        }
        if running.reminder == Reminder::Due {
            running.phase = Phase::Writing;
            running.reminder = Reminder::Given;
            let text = base.state.settings().prompts.get(Prompt::AutoContinue).to_owned();
            return self.unwritten.push_back(Own::reminder(turn, &text));
        }
        if let Way::TooLarge(floor) = way {
            let why = "The turn cannot go on.".to_owned();
            return self.end(base, End::Failed(Failure::OverWindow { floor, why }));
        }
        running.phase = Phase::Asking;
        running.begins();
        base.contexts.give(Identity::at_leaf(&base.state), true);
        let (view, path, stop) = (base.state.view(), base.state.path().clone(), running.operation.stop.clone());
        base.effects.start(Job::Turn(TurnOrder::Ask(Box::new(AskOrder { id: turn, view, path, stop }))));
    }

    /// Maintenance inside of the turn has ended.
    pub fn maintained(&mut self, base: &mut Base, kind: &OperationKind, end: &Maintained) {
        let continues = base.state.measure().compaction.auto_continue;
        let Some(running) = self.running.as_mut().filter(|running| running.operation.is_open()) else { return };
        if let Some(end) = running.maintained(kind, end, continues) {
            self.end(base, end);
        }
    }

    /// Ends the turn, after the maintenance that runs inside of it. After one that did not complete, the queue waits for the user.
    fn end(&mut self, base: &mut Base, end: End<Product>) {
        if let Some(running) = self.running.as_mut().filter(|_| base.maintains()) {
            running.phase = Phase::Ending(end);
            return;
        }
        let Some(running) = self.running.take() else { return };
        if !matches!(end, End::Completed(_)) {
            self.prompts.pause(base);
        }
        if self.prompts.is_next() {
            base.operations.follow(Follows::Work);
        }
        running.operation.finish(end, &base.sent_usage, Vec::new());
        base.record_running();
    }

    /// Cancels a turn whose start was not sent. It starts and ends when its message is on disk.
    pub fn cancel_starting(&mut self, which: Option<&OperationId>) -> Option<OperationId> {
        let starting = self.starting.as_mut().filter(|starting| which.is_none_or(|which| *which == starting.id))?;
        starting.is_cancelled = true;
        Some(starting.id.clone())
    }

    /// A cancel of all, or of an operation that it stops, was answered. Messages that waited for the end of that wait for the user.
    pub fn cancelled(&mut self, base: &Base, which: Option<&OperationId>) {
        if which.is_none() || self.id().is_none() {
            self.prompts.pause(base);
        }
    }

    /// A cancel ends these operations. The text that the user saw of an answer stays, and the session settles after it.
    pub fn cut(&mut self, cancelled: &[Cancelled]) {
        let Some(running) = &mut self.running else { return };
        if cancelled.iter().any(|it| it.turn_id.as_ref() == Some(&running.operation.id)) {
            self.unwritten.extend(running.rest());
        }
    }

    /// Takes in that the turn was ended by something else: a cancel, or an operation that it gives way to. The text that the user
    /// saw stays.
    pub fn tidy(&mut self, base: &mut Base) {
        let Some(mut running) = self.running.take_if(|running| !running.operation.is_open()) else { return };
        self.prompts.pause(base);
        self.unwritten.extend(running.rest());
    }
}

impl Starting {
    fn of(id: OperationId, message: Option<PromptMessage>, queued: Option<EntryId>, asked: Asked<Ticket>) -> Self {
        Self { id, message, queued, asked, refused: None, is_cancelled: false }
    }
}
