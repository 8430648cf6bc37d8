//! Requests that are answered beside the session: reads, and drafts that are not applied.

#![expect(clippy::disallowed_methods, reason = "the time of the progress of a draft")]

use super::{Message, Shell, Waiting, send};
use crate::{
    ids::OperationId,
    log::sealed::Blocking,
    protocol::errors::Failure,
    session::{
        effects::{Answer, DraftRead, Read, SessionRead, TicketNumber},
        jobs::{draft::DraftJob, pool, progress::Progress},
        operation::summary_events::SummaryEvents,
        recording::{Given, LARGEST_ANSWER},
    },
    wire::outbox::About,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

impl Shell {
    /// Answers a request beside the session.
    pub(super) fn run_read(&mut self, request: TicketNumber, read: Read) {
        let (outside, read): (bool, SessionRead) = match read {
            Read::Session(read) => (false, read),
            Read::Outside(read) => {
                let access = self.shared.access.clone();
                (true, Box::new(move |blocking| read(&access, blocking)))
            }
            Read::Draft(read) => return self.read_draft(request, *read),
        };
        let (waiting, messages) = (self.requests.remove(&request), self.messages.clone());
        let recorded = self.recording.is_some();
        let stopped = stopped_with(&waiting, || ());
        tokio::task::spawn_blocking(move || {
            let blocking = Blocking::is_allowed_here().until(stopped);
            // Dropping the reply in a panic answers, too.
            let answer = catch_unwind(AssertUnwindSafe(|| read(&blocking)));
            // A replay reads the session to the end.
            let given =
                |answer: &&Answer| recorded && (outside || matches!(answer, Answer::Failed(Failure::Cancelled)));
            let given = answer.as_ref().ok().filter(given).map(|answer| Given::of(answer, LARGEST_ANSWER));
            if let (Ok(answer), Some(Waiting::Reply(reply))) = (answer, waiting) {
                answer.send(reply);
            }
            send(&messages, Message::Answered(request, given));
        });
    }

    /// Answers a request with a draft that changes nothing.
    fn read_draft(&mut self, request: TicketNumber, read: DraftRead) {
        let DraftRead { id, plan, answer, stop } = read;
        let report = self.unapplied(id);
        let (waiting, access) = (self.requests.remove(&request), self.shared.access.clone());
        let (session, messages, recorded) = (self.session.clone(), self.messages.clone(), self.recording.is_some());
        let stopped = stopped_with(&waiting, move || stop.request());
        tokio::spawn(async move {
            let reader = access.clone();
            let order = pool::planned(move || plan(&reader, &Blocking::is_allowed_here().until(stopped))).await;
            let draft = match order {
                Ok(order) => pool::unapplied(DraftJob { session, order, access, may_block: None }, report).await,
                Err(failure) => Err(failure),
            };
            let answer = answer(draft);
            let given = recorded.then(|| Given::of(&answer, LARGEST_ANSWER));
            if let Some(Waiting::Reply(reply)) = waiting {
                answer.send(reply);
            }
            send(&messages, Message::Answered(request, given));
        });
    }

    /// Sends the progress and the text of a draft that is not applied. They are the only events about it.
    fn unapplied(&self, id: Option<OperationId>) -> impl Fn(Progress) + Send + Sync + use<> {
        let (session, outbox) = (self.session.clone(), self.outbox.clone());
        let events = Mutex::<SummaryEvents>::default();
        move |progress| {
            let (Some(id), Progress::Summary(step)) = (&id, progress) else { return };
            // Under the lock, so that the events keep the order of the steps.
            let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
            for event in events.step(step, Instant::now()) {
                outbox.event(&session, &About::of(Some(id.clone()), &event), &event);
            }
        }
    }
}

/// Becomes true when a request is cancelled, with `also`.
fn stopped_with(waiting: &Option<Waiting>, also: impl Fn() + Send + 'static) -> Arc<AtomicBool> {
    let stopped = Arc::new(AtomicBool::new(false));
    if let Some(Waiting::Reply(reply)) = waiting {
        let stopped = stopped.clone();
        reply.on_cancel(move || {
            stopped.store(true, Ordering::Relaxed);
            also();
        });
    }
    stopped
}
