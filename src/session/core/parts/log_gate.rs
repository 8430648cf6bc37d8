//! The log of a session, as far as the core knows it: here, out with a write, or out with a read.
//!
//! A write and its answers depend on the entries before it, so the log has one piece of work at a time, and nobody else knows
//! whether it is out.

use crate::{
    conversation::{entry::Entry, undo::Undoing},
    log::Access,
    protocol::errors::Failure,
    session::{
        core::{base::Base, command::Command, due::DueRecovery, step::Step},
        effects::Ticket,
        log_work::LogFacts,
        state::State,
    },
};
use std::sync::Arc;

/// Entries on their way to the disk, with the requests that they answer and the work that follows them.
pub(in crate::session::core) trait Write: Send {
    /// The entries, in the order of the file.
    fn entries(&self) -> Vec<Arc<Entry>>;

    /// An undo, whose entries depend on the path without the compaction.
    fn take_undoing(&mut self) -> Option<Undoing> {
        None
    }

    /// Takes the entry that was written after the others, where they move the session to another path.
    fn take_added(&mut self, _: Arc<Entry>) {}

    /// Sets the entries that an undo became.
    fn set_undone(&mut self, _: Vec<Arc<Entry>>) {}

    /// The steps after the entries are on disk and on the path.
    fn written(self: Box<Self>, base: &mut Base) -> Vec<Step>;

    /// The steps after the entries could not be written.
    fn not_written(self: Box<Self>, base: &mut Base, failure: &Failure) -> Vec<Step>;

    /// The steps after another program was faster, and its entries are on the path: the write begins again.
    fn again(self: Box<Self>, base: &mut Base) -> Vec<Step>;

    /// The steps after a panic has lost the log. Requests are answered when they are dropped.
    fn lost(self: Box<Self>) -> Vec<Step> {
        Vec::new()
    }

    /// The work that the session starts after the write.
    fn follow_up(&self) -> FollowUp<'_> {
        FollowUp::None
    }
}

/// The work that a session starts after a write, without input.
pub(in crate::session::core) enum FollowUp<'a> {
    /// Nothing that a client waits for.
    None,
    /// The context is measured again.
    Measure,
    /// A failed answer has left the context.
    Removal,
    /// The recovery starts.
    Recovery(&'a DueRecovery),
}

/// Requests whose entries are on disk, and whose answers wait for counts.
pub(in crate::session::core) trait Unanswered: Send {
    /// The step that answers them.
    fn counted(self: Box<Self>) -> Step;
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
    Counting(Box<dyn Unanswered>),
    /// It is out with a write.
    Writing(Box<dyn Write>),
    /// It is out with a read.
    Reading,
    /// It is out with a read for this command, which is handled again after it.
    Fetching(Command, Ticket),
}

/// The work with which a log came back.
pub(in crate::session::core) enum Back {
    /// A write.
    Written(Box<dyn Write>),
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
        matches!(self.place, Place::Here | Place::Counting(_))
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
    pub fn follow_up(&self) -> FollowUp<'_> {
        match &self.place {
            Place::Writing(write) => write.follow_up(),
            _ => FollowUp::None,
        }
    }

    /// The log goes out with a write.
    pub fn writes(&mut self, write: Box<dyn Write>) {
        self.place = Place::Writing(write);
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
            Place::Writing(write) => Back::Written(write),
            Place::Fetching(command, ticket) => Back::Fetched(command, ticket),
            Place::Reading | Place::Here | Place::Counting(_) => Back::Read,
        }
    }

    /// The log was lost. Nothing can be written any more.
    pub fn is_lost(&mut self) {
        self.facts.access = Access::Read;
    }

    /// The answers of a write that is on disk wait for counts.
    pub fn waits_for_counts(&mut self, unanswered: Box<dyn Unanswered>) {
        self.place = Place::Counting(unanswered);
    }

    /// Takes the answers that waited for counts.
    pub fn take_unanswered(&mut self) -> Option<Box<dyn Unanswered>> {
        match std::mem::replace(&mut self.place, Place::Here) {
            Place::Counting(unanswered) => Some(unanswered),
            other => {
                self.place = other;
                None
            }
        }
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
