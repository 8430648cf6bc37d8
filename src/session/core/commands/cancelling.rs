//! `session/cancel`, requests that the client cancels, and the end of a session that cancels what runs.

use crate::{
    ids::OperationId,
    protocol::{errors::Failure, types::Cancelled},
    session::{
        core::{
            Core,
            command::Command,
            commands::compacting::BY_CLIENT,
            work::{Request, Work},
        },
        effects::{Ticket, TicketNumber},
        fault::{Fault, planted},
        operations::{Asked, Cancelling, End, Kind as _, Place},
        stop::Stop,
    },
};

impl Core {
    /// Cancels the operation with this id, or without one all that runs and the compactions that wait for their turn. The
    /// answer goes out before the end events.
    pub(in crate::session::core) fn cancel(&mut self, which: Option<&OperationId>, ticket: Ticket) {
        if planted(Fault::CancelQueues) && !self.listens() {
            let which = which.cloned();
            let later = move |core: &mut Self, ticket| core.cancel(which.as_ref(), ticket);
            return self.queue.put_back(Command::with(later), ticket);
        }
        let cancelling = self.operations.cancel(which);
        let mut unstarted: Vec<Request> = self.work.take_unstarted(which).into_iter().collect();
        if which.is_none() {
            unstarted.extend(self.take_waiting_compactions());
        }
        let named =
            |request: &Request| Cancelled { operation_id: request.id.clone(), kind: request.kind.name().to_owned() };
        let all = cancelling.named.iter().cloned().chain(unstarted.iter().map(named));
        ticket.cancelled_these(all.filter(|_| !planted(Fault::CancelNamesNothing)).collect());
        self.end_cancelled(cancelling);
        self.begin_all_cancelled(unstarted);
    }

    /// Cancels what runs, but not a draft that is being written. The ends are sent at once, and late results are ignored.
    pub(in crate::session::core) fn stop_running(&mut self, which: Option<&OperationId>) {
        let cancelling = self.operations.cancel(which);
        self.end_cancelled(cancelling);
        let unstarted = self.work.take_unstarted(which).into_iter().collect();
        self.begin_all_cancelled(unstarted);
    }

    fn end_cancelled(&mut self, cancelling: Cancelling) {
        if cancelling.ends_nothing() {
            return;
        }
        self.operations.end_cancelled(cancelling, &self.sent_usage);
        if self.work.operation().is_some_and(|operation| !operation.is_open()) && !planted(Fault::LateResult) {
            self.work = Work::None;
        }
        self.record_running();
        self.answer_held();
    }

    /// Takes out the compactions that were sent before a cancel and have not been handled.
    fn take_waiting_compactions(&mut self) -> Vec<Request> {
        let (for_index, others) =
            std::mem::take(&mut self.index.commands).into_iter().partition(|(command, _)| command.can_be_cancelled());
        self.index.commands = others;
        let waiting: Vec<(Command, Ticket)> = for_index;
        let waiting = waiting.into_iter().chain(self.queue.take_out(Command::can_be_cancelled));
        let request = |(command, ticket)| match command {
            Command::Compact(params) => {
                let id = self.stamps.operation();
                Some(Request { id, kind: BY_CLIENT, params, ticket, stop: Stop::default() })
            }
            _ => None,
        };
        waiting.filter_map(request).collect()
    }

    /// Starts and ends the compactions that were cancelled before their starts were sent. While the log is out a start
    /// cannot be recorded: they are the next commands then.
    fn begin_all_cancelled(&mut self, requests: Vec<Request>) {
        requests.iter().for_each(|request| request.stop.request());
        if self.listens() {
            return requests.into_iter().for_each(|request| self.begin_cancelled(request));
        }
        for Request { id, kind, params, ticket, stop } in requests.into_iter().rev() {
            let begin = move |core: &mut Self, ticket| {
                core.begin_cancelled(Request { id, kind, params, ticket, stop });
            };
            self.queue.put_back(Command::with(begin), ticket);
        }
    }

    fn begin_cancelled(&mut self, request: Request) {
        let Request { id, kind, params, ticket, stop } = request;
        if !self.work.is_none() {
            return ticket.fail(&Failure::Cancelled);
        }
        let usage = self.state.usage();
        let opening = self.opening(kind, Place::Top(id), Asked::by(ticket, params.wait), usage, stop);
        self.record(self.operations.unfinished_with(&opening));
        let operation = self.operations.start(opening);
        self.finish(operation, End::Cancelled);
    }

    /// Answers a waiting request that the client cancelled. A compaction ends with its request. A command that waits for
    /// its turn is answered then.
    pub(in crate::session::core) fn request_cancelled(&mut self, request: TicketNumber) {
        self.effects.cancel(request);
        let held = std::mem::take(&mut self.held);
        for (params, ticket) in held {
            if ticket.cancelled() { ticket.fail(&Failure::Cancelled) } else { self.held.push((params, ticket)) }
        }
        if self.work.request_cancelled() {
            let id = self.work.id().cloned();
            self.stop_running(id.as_ref());
        }
    }
}
