//! The log of a session, as far as the core knows it: here, out with a write, or out with a read.
//!
//! A write and its answers depend on the entries before it, so the log has one piece of work at a time, and nobody else knows
//! whether it is out.

use crate::{
    ids::OperationId,
    log::Access,
    protocol::errors::Failure,
    session::{core::command::Command, effects::Ticket, log_work::LogFacts, state::State, stop::Stop},
};

/// The work that a session starts after a write, without input.
#[derive(Clone)]
pub(in crate::session::core) enum FollowUp {
    /// Nothing that a client waits for.
    None,
    /// The context is measured again.
    Measure,
    /// A turn goes on, or its last message is announced.
    Turn,
    /// A failed answer has left the context.
    Removal,
    /// A recovery starts.
    Recovery {
        /// Its id.
        id: OperationId,
        /// Cancels it.
        stop: Stop,
    },
}

/// The log of a session.
pub(in crate::session::core) struct LogGate {
    /// The facts about the log, from before its work where it is out.
    facts: LogFacts,
    place: Place,
}

/// The place of the log.
enum Place {
    /// It is here, and work may be given to it.
    Here,
    /// It is here. The answers of a write wait until its entries are counted, because a compaction seems to be due.
    Counting,
    /// It is out with a write, which this work follows.
    Writing(FollowUp),
    /// It is out with a read.
    Reading,
    /// It is out with a read for this command, which is handled again after it.
    Fetching(Command, Ticket),
}

/// The work with which a log came back.
pub(in crate::session::core) enum Back {
    /// A write.
    Written,
    /// A read for this command.
    Fetched(Command, Ticket),
    /// Another read, or one whose command was cancelled.
    Read,
}

impl LogGate {
    /// A log that is here.
    pub fn here(facts: LogFacts) -> Self {
        Self { facts, place: Place::Here }
    }

    /// The facts about the log, from before its work where it is out.
    pub fn facts(&self) -> &LogFacts {
        &self.facts
    }

    /// Whether the log is here, and no answers wait for counts.
    pub fn is_free(&self) -> bool {
        matches!(self.place, Place::Here)
    }

    /// Whether the log is here, also while answers wait for counts.
    pub fn is_here(&self) -> bool {
        matches!(self.place, Place::Here | Place::Counting)
    }

    /// Whether entries may be written.
    ///
    /// # Errors
    /// `storage_error` for a session that was opened to be read.
    pub fn writable(&self, state: &State) -> Result<(), Failure> {
        match self.facts.access {
            Access::Read => Err(Failure::Storage {
                path: state.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default(),
                errno: None,
                what: "the session was loaded with readOnly: true; close it, then load it without, to write to it"
                    .to_owned(),
            }),
            Access::Write | Access::Ephemeral => Ok(()),
        }
    }

    /// The work that the session starts after the write that runs.
    pub fn follow_up(&self) -> &FollowUp {
        match &self.place {
            Place::Writing(follow_up) => follow_up,
            _ => &FollowUp::None,
        }
    }

    /// The log goes out with a write. `follow_up`: the work after it.
    pub fn writes(&mut self, follow_up: FollowUp) {
        self.place = Place::Writing(follow_up);
    }

    /// The log goes out with a read.
    pub fn reads(&mut self) {
        self.place = Place::Reading;
    }

    /// The log goes out with a read for a command.
    pub fn fetches(&mut self, command: Command, ticket: Ticket) {
        self.place = Place::Fetching(command, ticket);
    }

    /// The log is back.
    pub fn is_back(&mut self, facts: LogFacts) -> Back {
        self.facts = facts;
        match std::mem::replace(&mut self.place, Place::Here) {
            Place::Writing(_) => Back::Written,
            Place::Fetching(command, ticket) => Back::Fetched(command, ticket),
            Place::Reading | Place::Here | Place::Counting => Back::Read,
        }
    }

    /// The log was lost. Nothing can be written any more.
    pub fn is_lost(&mut self) {
        self.facts.access = Access::Read;
    }

    /// The answers of a write that is on disk wait for counts.
    pub fn waits_for_counts(&mut self) {
        self.place = Place::Counting;
    }

    /// The answers wait for counts no more. Returns whether they did.
    pub fn take_counted(&mut self) -> bool {
        let waited = matches!(self.place, Place::Counting);
        if waited {
            self.place = Place::Here;
        }
        waited
    }

    /// Takes out the command for which the log is out with a read, if a cancel stops it. The result of the read is ignored.
    pub fn take_fetching(&mut self) -> Option<(Command, Ticket)> {
        match std::mem::replace(&mut self.place, Place::Reading) {
            Place::Fetching(command, ticket) if command.can_be_cancelled() => Some((command, ticket)),
            other => {
                self.place = other;
                None
            }
        }
    }
}
