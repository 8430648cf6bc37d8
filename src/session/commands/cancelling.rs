//! `session/cancel`, requests that the client cancels, and the end of a session that cancels what runs.

use crate::{
    ids::OperationId,
    protocol::{errors::Failure, types::Cancelled},
    session::{
        Session,
        command::Command,
        commands::compacting::BY_CLIENT,
        handle::CancelReply,
        operations::{Asked, Cancelling, End, Kind as _, Opening, Place},
        stop::Stop,
        work::{Request, Work},
    },
};

impl Session {
    /// Cancels the operation with this id, or without one all that runs and the compactions that wait for their turn. The
    /// answer goes out before the end events.
    pub(in crate::session) fn cancel(&mut self, which: Option<&OperationId>, reply: CancelReply) {
        let cancelling = self.operations.cancel(which);
        let mut unstarted: Vec<Request> = self.work.take_unstarted(which).into_iter().collect();
        if which.is_none() {
            unstarted.extend(self.take_waiting_compactions());
        }
        let named =
            |request: &Request| Cancelled { operation_id: request.id.clone(), kind: request.kind.name().to_owned() };
        reply.answer(cancelling.named.iter().cloned().chain(unstarted.iter().map(named)).collect());
        self.end_cancelled(cancelling);
        unstarted.into_iter().for_each(|request| self.begin_cancelled(request));
    }

    /// Cancels what runs, but not a draft that is being written. The ends are sent at once, and late results are ignored.
    pub(in crate::session) fn stop_running(&mut self, which: Option<&OperationId>) {
        let cancelling = self.operations.cancel(which);
        self.end_cancelled(cancelling);
        if let Some(request) = self.work.take_unstarted(which) {
            self.begin_cancelled(request);
        }
    }

    fn end_cancelled(&mut self, cancelling: Cancelling) {
        if cancelling.ends_nothing() {
            return;
        }
        self.operations.end_cancelled(cancelling, &self.told);
        if self.work.operation().is_some_and(|operation| !operation.is_open()) {
            self.work = Work::None;
        }
        self.record_running();
        self.answer_waiting();
    }

    /// Takes out the compactions that were sent before a cancel and have not been handled.
    fn take_waiting_compactions(&mut self) -> Vec<Request> {
        let mut taken = Vec::new();
        for command in std::mem::take(&mut self.commands) {
            match command {
                Command::Compact(params, reply) if params.dry_run != Some(true) => {
                    taken.push(Request {
                        id: OperationId::fresh(),
                        kind: BY_CLIENT,
                        params,
                        reply,
                        stop: Stop::default(),
                    });
                }
                command => self.commands.push_back(command),
            }
        }
        taken
    }

    /// Starts and ends a compaction that was cancelled before its start was sent.
    fn begin_cancelled(&mut self, request: Request) {
        let Request { id, kind, params, reply, stop } = request;
        stop.request();
        if !self.work.is_none() {
            return reply.fail(&Failure::Cancelled);
        }
        let usage = self.state.usage();
        let opening = Opening::now(kind, Place::Top(id), Asked::by(reply, params.wait), usage, stop);
        let operation = self.operations.start(opening);
        self.finish(operation, End::Cancelled);
    }

    /// Answers the waiting requests that the client cancelled. A compaction ends with its request.
    pub(in crate::session) fn end_cancelled_requests(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        for (params, reply) in waiting {
            if reply.cancelled() { reply.fail(&Failure::Cancelled) } else { self.waiting.push((params, reply)) }
        }
        if self.work.request_cancelled() {
            let id = self.work.id().cloned();
            self.stop_running(id.as_ref());
        }
    }
}
