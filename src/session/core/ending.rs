//! The work that ends: operations with their notices, cancels, contexts that waited, and the log that comes back.

#[cfg(test)]
mod tests;

use super::{
    Core,
    base::{Ending, IndexBuild, following},
    command::Command,
    idle::{maintenance, rounds},
    parts::{log_gate::Back, waiting_contexts::WaitingContext},
    recovering,
    standing::Standing,
    step::{Ended, Write},
    transfers::{self, relaying, waiting},
    turns::Maintained,
    work::{Task, TransferPhase, Unbegun, Unstarted, Work},
    writing,
};
use crate::{
    conversation::path::Path,
    ids::OperationId,
    log::{Appended, Grown, error::StoreError},
    protocol::{
        errors::{Failure, Nothing},
        notices::Warning,
        types::{Cancelled, IdleSkipped, TURN},
    },
    session::{
        effects::{Ticket, TicketNumber, Turning},
        fault::{Fault, planted},
        jobs::{IndexBuilt, defect, transfer::TransferText},
        kind::{OperationKind, Product},
        log_work::{LogDone, LogFacts},
        operation::Operation,
        operations::{Asked, Cancelling, End, Kind as _},
        stop::Stop,
    },
    wire::outbox::About,
};

impl Standing<'_> {
    /// Whether operations that end before their starts may start and end now. A start follows the write before it, but not the
    /// answers that wait for counts. A compaction whose write was too late is still open when the log is back, and is written
    /// first. So is the entry which says that a compaction waits no more for the end of the turn: after its end event no restart
    /// brings it back.
    pub(super) fn may_end_unbegun(&self) -> bool {
        self.core.base.log.is_here()
            && !self.core.unbegun.is_empty()
            && !self.core.upkeep.after_turn.must_write(self.core.base.log.facts().access)
            && self.core.base.work.operation().is_none_or(|operation| !operation.is_open())
    }
}

/// Ends of operations.
impl Core {
    /// Ends an operation whose work is over, and the one around it. There is no work any more when the end is sent, so a client
    /// can act on it at once.
    pub(super) fn finish(&mut self, ended: Ended) {
        let Ended { operation, end, notice } = ended;
        let after = self.upkeep.notices_after(&mut self.base, &operation.kind, &end);
        let notices = notice.into_iter().chain(after).collect();
        if matches!(end, End::Completed(_)) {
            self.idle.rounds.compaction_completes();
        }
        self.upkeep.rests_after(&self.base.state, &operation.kind, &end);
        if matches!(operation.kind, OperationKind::Transfer(_)) {
            let is_due = Standing::of(self).decision().is_due();
            self.upkeep.transfer_ends(&self.base, &end, is_due);
        }
        self.base.waiting.go_on_after(&operation.kind, &end);
        if let End::Completed(product) = &end
            && (operation.kind == OperationKind::BY_CLIENT && product.new_session().is_none()
                || product.replaces_session())
        {
            self.leave_superseded();
        }
        match self.base.around.take() {
            Some(around) => self.finish_inside(around, operation, end, notices),
            None => {
                self.idle.rounds.arm(self.base.now);
                self.close(operation, end, notices);
            }
        }
    }

    /// Ends an operation and the one around it. The inner end comes first, and `notices` after both.
    fn finish_inside(&mut self, around: Operation, inner: Operation, end: End<Product>, notices: Vec<Warning>) {
        if !around.kind.is_idle() {
            self.idle.rounds.arm(self.base.now);
        }
        let end = if matches!(around.kind, OperationKind::Recovery(_)) {
            recovering::with_window(&self.base.state, end)
        } else {
            end
        };
        let outer = match &around.kind {
            OperationKind::Recovery(_) => {
                let outer = recovering::end_around(&end);
                self.recoveries.ends(&mut self.base, &around, &outer);
                outer
            }
            OperationKind::Idle { .. } => self.idle.rounds.compaction_ends(&end),
            _ => match relaying::end_around(&end) {
                Some(outer) => {
                    self.upkeep.relays.relayed(&outer);
                    self.upkeep.rests_after(&self.base.state, &around.kind, &outer);
                    outer
                }
                None => {
                    inner.finish(end, &self.base.sent_usage, Vec::new());
                    self.base.record_running();
                    return relaying::go_on_in_place(&mut self.base, around);
                }
            },
        };
        inner.finish(end, &self.base.sent_usage, Vec::new());
        self.close(around, outer, notices);
    }

    /// Sends the end of an operation, and answers the contexts that waited for it.
    pub(super) fn close(&mut self, operation: Operation, end: End<Product>, notices: Vec<Warning>) {
        self.settle();
        let turning = operation.kind.is_idle().then_some(Turning::Leave);
        let (kind, after) = (operation.kind.clone(), Maintained::of(&end));
        operation.finish(end, &self.base.sent_usage, notices);
        self.base.record_running();
        self.base.effects.turn_idle(turning);
        self.turns.maintained(&mut self.base, &kind, &after);
        self.answer_contexts();
    }

    /// Another compaction, a reset or a handoff has done the work of the compaction after the turn, which ends as skipped.
    pub(super) fn leave_superseded(&mut self) {
        let superseded = self.upkeep.after_turn.take(None);
        let end = End::Skipped(Nothing::Superseded);
        self.leave_unbegun(superseded.map(|request| Unbegun { request: request.into(), end }));
    }

    /// Ends operations that were cancelled before their starts were sent, or leaves them to the turns.
    pub(super) fn end_unstarted<R: Into<Unstarted>>(&mut self, requests: impl IntoIterator<Item = R>) {
        let cancelled = |request: Unstarted| Unbegun { request, end: End::Cancelled };
        self.leave_unbegun(requests.into_iter().map(Into::into).map(cancelled));
        if Standing::of(self).may_end_unbegun() {
            self.end_unbegun();
        }
    }

    /// Leaves operations that end before their starts to the turns. `settled` waits for their ends.
    fn leave_unbegun(&mut self, unbegun: impl IntoIterator<Item = Unbegun>) {
        let before = self.unbegun.len();
        self.unbegun.extend(unbegun);
        self.unbegun[before..].iter().for_each(|it| it.request.stop.request());
        self.settle();
    }

    /// Starts and ends the operations that end before their starts.
    pub(super) fn end_unbegun(&mut self) {
        while !self.unbegun.is_empty() {
            let Unbegun { request, end } = self.unbegun.remove(0);
            debug_assert!(self.base.around.is_none(), "no operation is around one that ends before its start");
            let operation = self.base.open(request, self.base.state.usage());
            self.finish(Ended { operation, end, notice: None });
        }
    }

    /// Answers the contexts that wait, if nothing holds them any more.
    pub(super) fn answer_contexts(&mut self) {
        self.settle();
        for WaitingContext { params, ticket, starts } in self.base.waiting.take() {
            self.context(params, ticket, starts);
        }
    }

    /// Sends `settled` where it waited for work, and none follows any more.
    pub(super) fn settle(&self) {
        self.base.operations.follow(Standing::of(self).follows());
    }
}

/// Transfers whose text is there.
impl Core {
    /// Delivers a text. The log is here. An extract waits until the open calls have their results.
    pub(super) fn deliver(&mut self, operation: Operation, task: Task, text: Option<TransferText>) {
        let goes_on = self.base.ending.goes_on() && !operation.is_stopped();
        if goes_on && waiting::must_wait(&self.base.state, &task) {
            self.settle();
            self.upkeep.extracts.wait(operation, task, text);
            return self.answer_contexts();
        }
        let step = transfers::deliver(&mut self.base, &mut self.turns.prompts, operation, task, text);
        self.follow(step);
    }
}

/// Cancels and the end of the session.
impl Core {
    /// Cancels the operation with this id, or without one all that runs and the compactions that wait for their turn. The
    /// answer goes out before the end events. Only the answer that names a compaction after the turn waits, for the entry
    /// after which no restart brings that one back.
    pub(super) fn cancel(&mut self, which: Option<&OperationId>, ticket: Ticket) {
        let access = self.base.log.facts().access;
        self.idle.rounds.arm(self.base.now);
        let all = which.is_none();
        let round = all.then(|| maintenance::take_unstarted(&mut self.base, &mut self.idle.rounds)).flatten();
        let cancelling = self.base.operations.cancel(which);
        let mut unstarted: Vec<Unstarted> = self.base.work.take_unstarted(which).into_iter().collect();
        unstarted.extend(self.upkeep.after_turn.withdraw(which, access).map(Unstarted::from));
        if which.is_none() {
            unstarted.extend(self.take_waiting());
        }
        let due = self.recoveries.cancel_due(which, self.base.log.follow_up());
        self.upkeep.switches.cancelled(which);
        let before = self.unbegun.iter().filter(|it| matches!(it.end, End::Cancelled)).map(|it| &it.request);
        let before = before.filter(|request| which.is_none_or(|which| *which == request.id));
        let named = |request: &Unstarted| Cancelled::of(request.id.clone(), request.kind.name());
        if which.is_none() {
            self.base.queue.cancel_turns();
        }
        let starting = self.turns.cancel_starting(which).map(|id| Cancelled::of(id, TURN));
        let all: Vec<_> = cancelling
            .named
            .iter()
            .cloned()
            .chain(before.chain(&unstarted).map(named))
            .chain(due)
            .chain(starting)
            .collect();
        let stops = which.is_none() || !all.is_empty();
        let answer = self.upkeep.after_turn.answer_cancel(ticket, all);
        self.follow(answer);
        if stops {
            self.turns.cancelled(&self.base, which);
        }
        self.end_stopped(round, unstarted, cancelling);
    }

    /// Cancels what runs, but not a draft that is being written. The ends are sent at once, and late results are ignored.
    pub(super) fn stop_running(&mut self, which: Option<&OperationId>) {
        let all = which.is_none();
        let round = all.then(|| maintenance::take_unstarted(&mut self.base, &mut self.idle.rounds)).flatten();
        let cancelling = self.base.operations.cancel(which);
        self.recoveries.cancel_due(which, self.base.log.follow_up());
        self.upkeep.switches.cancelled(which);
        let access = self.base.log.facts().access;
        let delayed = match which {
            Some(_) => self.upkeep.after_turn.take(which),
            None => self.upkeep.after_turn.take_at_end(access),
        };
        let unstarted = self.base.work.take_unstarted(which).into_iter().chain(delayed.map(Unstarted::from));
        let unstarted = unstarted.collect();
        self.end_stopped(round, unstarted, cancelling);
    }

    /// Ends the work that a cancel has taken out.
    fn end_stopped(
        &mut self,
        round: Option<rounds::UnstartedRound>,
        unstarted: Vec<Unstarted>,
        cancelling: Cancelling,
    ) {
        self.base.effects.turn_idle(round.and_then(|round| round.ends(IdleSkipped::Cancelled)));
        let cancelled = |request: Unstarted| Unbegun { request, end: End::Cancelled };
        self.leave_unbegun(unstarted.into_iter().map(cancelled));
        self.end_cancelled(cancelling);
        self.end_unstarted([] as [Unstarted; 0]);
    }

    /// Ends the operations that a cancel selected. Contexts that waited for them, or for a decision that the cancel has
    /// dropped, are answered.
    fn end_cancelled(&mut self, cancelling: Cancelling) {
        if !cancelling.ends_nothing() {
            // A transfer whose write is under way completes.
            if let Work::Transfer(_, TransferPhase::Making(_) | TransferPhase::Made(..)) = &self.base.work {
                let is_due = Standing::of(self).decision().is_due();
                self.upkeep.transfer_ends(&self.base, &End::Cancelled, is_due);
            }
            self.turns.cut(&cancelling.named);
            self.settle();
            self.base.operations.end_cancelled(cancelling, &self.base.sent_usage);
            self.upkeep.extracts.forget_ended();
            if let Some(operation) = self.base.work.operation()
                && operation.has_ended()
            {
                let kind = self.base.relay().map_or(&operation.kind, |around| &around.kind).clone();
                let outer = self.base.around.as_ref().map_or(&operation.kind, |around| &around.kind).clone();
                self.upkeep.rests_after(&self.base.state, &kind, &End::Cancelled);
                self.base.waiting.go_on_after(&kind, &End::Cancelled);
                self.base.work = Work::None;
                self.base.around = None;
                let turning = self.idle.rounds.leave_cancelled();
                self.base.effects.turn_idle(turning);
                self.turns.maintained(&mut self.base, &outer, &Maintained::Cancelled);
            }
            self.base.record_running();
        }
        self.answer_contexts();
    }

    /// Takes out the compactions and transfers that were sent before a cancel and have not been handled.
    fn take_waiting(&mut self) -> Vec<Unstarted> {
        let fetching = self.base.log.take_fetching();
        let for_index = self.base.index.commands.take_out(Command::can_be_cancelled);
        let queued = self.base.queue.take_out(Command::can_be_cancelled);
        let waiting = fetching.into_iter().chain(for_index).chain(queued);
        let request = |(command, ticket)| {
            let (kind, wait) = match command {
                Command::Compact(params) => (OperationKind::BY_CLIENT, params.wait),
                Command::Transfer(request) => (transfers::kind_of(&self.base.state, &request), request.wait()),
                _ => return None,
            };
            let (id, asked) = (self.base.stamps.operation(), Asked::by(ticket, wait));
            Some(Unstarted { id, kind, asked, stop: Stop::default() })
        };
        waiting.filter_map(request).collect()
    }

    /// Answers a waiting request that the client cancelled. A compaction ends with its request. A command that waits for
    /// its turn is answered then.
    pub(super) fn request_cancelled(&mut self, request: TicketNumber) {
        self.base.effects.cancel(request);
        self.base.waiting.end_cancelled();
        if self.idle.rounds.request_cancelled(|| self.base.work.request_cancelled()) {
            maintenance::end_unstarted(&mut self.base, &mut self.idle.rounds, IdleSkipped::Cancelled);
        }
        let delayed = self.upkeep.after_turn.take_without_request();
        self.end_unstarted(delayed);
        if let Some(id) = self.upkeep.extracts.without_request() {
            self.stop_running(Some(&id));
        }
        if self.base.work.request_cancelled() {
            let id = self.base.work.id().cloned();
            self.stop_running(id.as_ref());
        }
    }

    /// The session ends when no operation runs. What waits for the client ends now.
    pub(super) fn end_when_idle(&mut self) {
        if !self.base.ending.goes_on() {
            return;
        }
        self.base.ending = Ending::WhenIdle;
        self.idle_gives_way();
        let access = self.base.log.facts().access;
        let delayed = self.upkeep.after_turn.take_at_end(access);
        self.end_unstarted(delayed);
        // The client that executes the tools and reads the answer is gone.
        if let Some(id) = self.turns.id().cloned() {
            self.turns.cancel_starting(None);
            self.stop_running(Some(&id));
        }
        // No results come any more.
        self.upkeep.extracts.operations().iter().for_each(|id| self.stop_running(Some(id)));
    }

    /// A client or another program is active: the timer of idle maintenance starts anew, and a round ends, unless its result is
    /// being written.
    pub(super) fn is_active(&mut self) {
        self.idle.rounds.arm(self.base.now);
        self.idle_gives_way();
    }

    /// The conversation has changed: there may be something to compact.
    pub(super) fn has_changed(&mut self) {
        self.idle.rounds.conversation_changes();
        self.is_active();
    }

    /// Ends a round of idle maintenance for other work, unless its result is being written. That says nothing about the next
    /// one.
    pub(super) fn idle_gives_way(&mut self) {
        if planted(Fault::IdleStays) {
            return;
        }
        maintenance::end_unstarted(&mut self.base, &mut self.idle.rounds, IdleSkipped::Busy);
        if let Some(round) = self.base.round()
            && !matches!(self.base.work, Work::Committing(_))
        {
            let (cancelling, rest) = (self.base.operations.cancel(Some(&round.id)), self.upkeep.rest);
            self.end_cancelled(cancelling);
            self.upkeep.rest = rest;
        }
    }
}

/// Results of work on the log and on the index.
impl Core {
    /// The log is back.
    pub(super) fn log_is_back(&mut self, done: Option<LogDone>, facts: LogFacts) {
        let (back, write) = (self.base.log.is_back(facts), self.write.take());
        let Some(done) = done else {
            self.log_is_lost();
            return self.follow(write.map_or_else(Vec::new, |write| write.lost()));
        };
        match (done, back, write) {
            (LogDone::Wrote { appended, path, undone, added }, Back::Written, Some(mut write)) => {
                added.into_iter().for_each(|added| write.take_added(added));
                undone.into_iter().for_each(|undone| write.set_undone(undone));
                self.wrote(appended, path, write);
            }
            (LogDone::Woke(path), Back::Read, _) => self.woke(path),
            (LogDone::CaughtUp(Ok(grown)), Back::Read, _) => self.take_in(grown),
            (LogDone::CaughtUp(Err(error)), Back::Read, _) => {
                let event = self.changes.lost(&error);
                event.into_iter().for_each(|event| self.base.effects.emit(About::default(), event));
            }
            (LogDone::Indexed(result), Back::Read, _) => {
                self.indexed(result.map_or_else(IndexBuilt::Failed, IndexBuilt::Made));
            }
            (LogDone::Fetched(fetched), Back::Fetched(command, ticket), _) => {
                writing::fetched(&mut self.base, fetched, command, ticket);
            }
            // A cancel has taken the command.
            (LogDone::Fetched(_), Back::Read, _) => {}
            _ => tracing::error!("a result of the log belongs to no work"),
        }
        self.continue_indexing();
    }

    /// A panic has lost the log: the session ends, and waiting requests are answered. Nothing can be written any more.
    fn log_is_lost(&mut self) {
        self.base.log.is_lost();
        match self.base.work.take() {
            Work::Committing(operation) | Work::Transfer(operation, TransferPhase::Writing { .. }) => {
                self.finish(Ended { operation, end: End::Failed(defect()), notice: None });
            }
            other => self.base.work = other,
        }
        self.stop_running(None);
        if self.base.lock.keeps() {
            let steps = self.upkeep.after_turn.lost();
            self.follow(steps);
        }
        if !planted(Fault::LostLogGoesOn) {
            self.base.ending.end_now();
        }
        if let Some(indexed) = self.base.index.build.take_made() {
            self.indexed(IndexBuilt::Made(indexed));
        } else if matches!(self.base.index.build, IndexBuild::Rest) {
            self.indexed(IndexBuilt::Lost);
        }
    }

    /// A write is done. Where another program was faster, its entries are added, and the write is tried again after them.
    fn wrote(
        &mut self,
        appended: Result<Appended, StoreError>,
        path: Option<Result<Path, StoreError>>,
        write: Box<dyn Write>,
    ) {
        let steps = match appended {
            Ok(Appended::Written { at, others }) => {
                let is_moved = matches!(path, Some(Ok(_)));
                writing::place(&mut self.base, at, &others, &write.entries(), path);
                if is_moved {
                    self.upkeep.after_turn.moved(&self.base.state);
                    self.turns.prompts.moved(&self.base);
                }
                write.written(&mut self.base)
            }
            Ok(Appended::Behind(grown)) => {
                self.take_in(grown);
                write.again(&mut self.base)
            }
            Err(error) => write.not_written(&mut self.base, &Failure::from(error)),
        };
        self.follow(steps);
    }

    /// Adds the entries of another program.
    fn take_in(&mut self, grown: Grown) {
        if grown.entries.is_empty() {
            return;
        }
        self.has_changed();
        if following::take_in(&mut self.base, grown) {
            self.upkeep.after_turn.moved(&self.base.state);
            self.turns.prompts.moved(&self.base);
        }
    }

    /// The path of a sleeping session was read, or not.
    fn woke(&mut self, path: Result<Path, StoreError>) {
        match path {
            Ok(path) => {
                self.base.state.change(|history| history.wake(path));
                let steps = self.upkeep.ahead.wake(&self.base.facts());
                self.follow(steps);
                // A compaction leaves little to count.
                if !self.base.queue.has(Command::compacts) {
                    self.base.count();
                }
            }
            Err(error) => {
                let failure = Failure::from(error);
                maintenance::end_unstarted(&mut self.base, &mut self.idle.rounds, IdleSkipped::Busy);
                // A close needs no path.
                for (_, ticket) in self.base.queue.take_out(|command| !command.closes()) {
                    ticket.fail(&failure);
                }
            }
        }
    }

    /// The index was built, or cannot be built.
    pub(super) fn indexed(&mut self, built: IndexBuilt) {
        let Some(index) = self.base.take_index(built) else { return };
        if index.is_err() {
            self.idle.postpone(self.base.now);
            maintenance::end_unstarted(&mut self.base, &mut self.idle.rounds, IdleSkipped::Busy);
            self.recoveries.forget_reported();
            self.answer_contexts();
        }
        self.base.pass_on_waiting(&index);
        if index.is_err() {
            self.answer_contexts();
        }
    }

    /// Takes an index that was made while the log was out or answers waited for counts, or starts one that is asked for.
    fn continue_indexing(&mut self) {
        if let Some(indexed) = self.base.index.build.take_made() {
            self.indexed(IndexBuilt::Made(indexed));
        } else if !self.base.index.commands.is_empty() {
            self.base.start_indexing();
        }
    }

    /// Estimated entries were counted. The requests that waited for the counts go on.
    pub(super) fn counted(&mut self) {
        self.base.counted();
        let answers = !self.base.counting.runs() && self.base.log.take_counted();
        if answers {
            let uncounted = self.uncounted.take();
            self.follow(uncounted);
        }
        if !self.base.work.is_in_front() {
            if !answers {
                self.base.send_usage();
            }
            self.answer_contexts();
        }
        if answers {
            self.continue_indexing();
        }
    }
}
