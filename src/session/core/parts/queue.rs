//! The commands of a session that wait for their turn.

use crate::{
    protocol::errors::Failure,
    session::{core::command::Command, effects::Ticket},
};
use std::collections::VecDeque;

/// Commands with which the queue counts as full: as many as wait in the mailbox.
pub const FULL: usize = 1_024;

/// The most commands in a queue. A cancel takes in what waits in the mailbox, so that it finds the compactions there.
const MOST: usize = 2 * FULL;

/// `retryAfterMs` of a request that is refused because too many wait.
pub const TRY_AGAIN: u64 = 50;

/// The commands that wait, in the order of the wire.
#[derive(Default)]
pub(in crate::session::core) struct Queue(VecDeque<(Command, Ticket)>);

impl Queue {
    /// Adds a command after all others. Refuses it when too many wait.
    pub fn take_in(&mut self, command: Command, ticket: Ticket) {
        if self.0.len() >= MOST {
            return ticket.fail(&Failure::Overloaded { retry_after_ms: TRY_AGAIN });
        }
        self.0.push_back((command, ticket));
    }

    /// Takes out the next command.
    pub fn next(&mut self) -> Option<(Command, Ticket)> {
        self.0.pop_front()
    }

    /// Puts a command before all others: it was taken out and has to wait.
    pub fn put_back(&mut self, command: Command, ticket: Ticket) {
        self.0.push_front((command, ticket));
    }

    /// Takes out all commands.
    pub fn drain(&mut self) -> impl DoubleEndedIterator<Item = (Command, Ticket)> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }

    /// Takes out the commands that `wanted` selects. The others keep their order.
    pub fn take_out(&mut self, wanted: impl Fn(&Command) -> bool) -> Vec<(Command, Ticket)> {
        let (taken, left): (Vec<_>, Vec<_>) = self.drain().partition(|(command, _)| wanted(command));
        self.0.extend(left);
        taken
    }

    /// A cancel came: the messages that wait begin no turn.
    pub fn cancel_turns(&mut self) {
        for (command, _) in &mut self.0 {
            if let Command::Turn(request) = command {
                request.cancelled = true;
            }
        }
    }

    /// Whether a command waits that `wanted` selects.
    pub fn has(&self, wanted: impl Fn(&Command) -> bool) -> bool {
        self.0.iter().any(|(command, _)| wanted(command))
    }

    /// Number of the commands that wait.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no command waits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether commands from the mailbox may come in.
    pub fn has_room(&self) -> bool {
        self.0.len() < FULL
    }
}
