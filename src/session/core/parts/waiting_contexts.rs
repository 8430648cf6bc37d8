//! Requests for the context that wait.

use crate::{
    protocol::{
        errors::Failure,
        types::{ContextParams, MessageFormat},
    },
    session::{
        effects::Ticket,
        kind::{OperationKind, Product},
        operations::End,
    },
};

/// A request for the context that waits.
pub(in crate::session::core) struct WaitingContext {
    pub params: ContextParams,
    pub ticket: Ticket,
    pub starts: Starts,
}

/// The work that a request for the context starts where the context lacks room in the window and no work runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session::core) enum Starts {
    /// The maintenance that is due.
    Maintenance,
    /// None. The maintenance before was fruitless, and the same decision would start it again.
    Nothing,
}

/// The requests for the context that wait, in the order of their arrival.
#[derive(Default)]
pub(in crate::session::core) struct WaitingContexts(Vec<WaitingContext>);

/// Whether a context over a known window is refused.
pub(in crate::session::core) fn must_fit(params: &ContextParams) -> bool {
    params.wait == Some(true) || params.format.and_then(MessageFormat::api).is_some()
}

impl WaitingContexts {
    /// The number of them.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a request.
    pub fn push(&mut self, context: WaitingContext) {
        self.0.push(context);
    }

    /// Takes all of them out.
    pub fn take(&mut self) -> Vec<WaitingContext> {
        std::mem::take(&mut self.0)
    }

    /// Answers all of them with an error.
    pub fn fail(&mut self, failure: &Failure) {
        self.take().into_iter().for_each(|context| context.ticket.fail(failure));
    }

    /// Answers those that the client has cancelled.
    pub fn end_cancelled(&mut self) {
        for context in self.take() {
            match context.ticket.cancelled() {
                true => context.ticket.fail(&Failure::Cancelled),
                false => self.push(context),
            }
        }
    }

    /// Sets the work that they start where they lack room in the window.
    pub fn start(&mut self, starts: Starts) {
        self.0.iter_mut().for_each(|context| context.starts = starts);
    }

    /// Whether one of them starts the maintenance that is due where less than half of the reserve is free for the answer.
    pub fn ask_for_room(&self) -> bool {
        self.0.iter().any(|context| context.starts == Starts::Maintenance && context.params.wait == Some(true))
    }

    /// Whether one of them starts the maintenance that is due where it is over the window.
    pub fn ask_for_maintenance(&self) -> bool {
        self.0.iter().any(|context| context.starts == Starts::Maintenance && must_fit(&context.params))
    }

    /// Sets the work that they start after this end of an operation. Messages that came meanwhile may be over the window, so a
    /// context starts the maintenance that is due. It starts none after automatic maintenance that did not complete, which would
    /// repeat itself, and none after a compaction that was cancelled. No context waits for idle maintenance.
    pub fn go_on_after(&mut self, kind: &OperationKind, end: &End<Product>) {
        if kind.is_idle() {
            return;
        }
        let is_fruitless = match end {
            // The conversation goes on in the new session. A summary of this one would be paid for nothing.
            End::Completed(product) => product.new_session().is_some(),
            End::Cancelled => !matches!(kind, OperationKind::Transfer(_)),
            End::Failed(_) | End::Skipped(_) => kind.is_automatic(),
        };
        self.start(if is_fruitless { Starts::Nothing } else { Starts::Maintenance });
    }
}
