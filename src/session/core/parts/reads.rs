//! Reads beside the session: each answers its request, and the session goes on meanwhile.

use super::queue;
use crate::{
    ask::access::ModelAccess,
    log::sealed::Blocking,
    protocol::errors::Failure,
    session::{
        effects::{Answer, DraftRead, Effect, Read, Ticket},
        stop::Stop,
    },
};

/// The most reads that run at the same time. A read beyond them is refused.
const MOST: usize = 1_024;

/// Requests that only read. Each runs beside the session and has its own answer.
#[derive(Default)]
pub(in crate::session::core) struct Reads {
    /// The number of them that run.
    running: usize,
    /// Stops the building of the index.
    pub stop: Stop,
}

impl Reads {
    /// The number of them that run.
    pub fn len(&self) -> usize {
        self.running
    }

    /// Whether none runs.
    pub fn is_empty(&self) -> bool {
        self.running == 0
    }

    /// Runs a read, which answers its request.
    pub fn start(&mut self, ticket: Ticket, read: impl FnOnce(&Blocking) -> Answer + Send + 'static) {
        self.spawn(ticket, Read::Session(Box::new(read)));
    }

    /// Runs a read that looks at the outside, or writes there.
    pub fn start_outside(
        &mut self,
        ticket: Ticket,
        read: impl FnOnce(&ModelAccess, &Blocking) -> Answer + Send + 'static,
    ) {
        self.spawn(ticket, Read::Outside(Box::new(read)));
    }

    /// Makes a draft that answers its request.
    pub fn start_draft(&mut self, ticket: Ticket, read: DraftRead) {
        self.spawn(ticket, Read::Draft(Box::new(read)));
    }

    fn spawn(&mut self, ticket: Ticket, read: Read) {
        if self.running >= MOST {
            return ticket.fail(&Failure::Overloaded { retry_after_ms: queue::TRY_AGAIN });
        }
        self.running += 1;
        ticket.leave_to(|number| Effect::Read(number, read));
    }

    /// A read was answered.
    pub fn answered(&mut self) {
        self.running -= 1;
    }
}
