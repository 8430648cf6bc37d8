//! The steps that follow from the verbs of the parts of a session.

use super::{
    commands::append::Append,
    costs::FailedAhead,
    due::{Due, DueRecovery},
    edit::Staged,
    transfers::Delivery,
    work::{Request, Task, Unstarted},
    writing::edits::EditWrite,
};
use crate::{
    compaction::draft::Draft,
    conversation::entry::Entry,
    protocol::{errors::Failure, notices::Warning},
    session::{
        core::{
            commands::compacting::{ToDraft, after_turn::Recorded},
            parts::log_gate::Write,
        },
        effects::{Answer, Ticket},
        jobs::{Focus, PlanMade, transfer::TransferText},
        kind::Product,
        operation::Operation,
        operations::End,
    },
};
use std::sync::Arc;

/// A step that follows from the work of a part, and that the part cannot perform alone. The core performs the steps of a verb in
/// their order, each with all that follows from it.
#[expect(clippy::large_enum_variant, reason = "a few steps live for a moment")]
pub(super) enum Step {
    /// Entries go to the disk.
    Write(Box<dyn Write>),
    /// An entry is on disk.
    Announce(Arc<Entry>),
    /// A request is answered.
    Answer(Ticket, Answer),
    /// The client is warned.
    Warn(Warning),
    /// The lock names no operation but those that are open.
    Release,
    /// The path of a sleeping session is read.
    Wake,
    /// Requests for the context that wait are answered, if nothing holds them any more.
    AnswerContexts,

    /// Appends are on disk. Their answers may wait for counts.
    Appended(Vec<Append>),
    /// Appends are answered, and the maintenance that is due starts.
    AnswerAppends(Vec<Append>),
    /// The entries of an edit are on disk. Its answer may wait for counts.
    Edited(Box<EditWrite>),
    /// An edit is answered, and the maintenance that is due starts.
    AnswerEdit(Box<EditWrite>),
    /// The entry about the compaction after the turn is on disk, or not.
    AfterTurn(Recorded),

    /// Maintenance starts.
    Start(Due),
    /// A compaction starts, if it is still due.
    StartIfDue,
    /// A round of idle maintenance was planned, or cannot be planned.
    BeginRound(Request, Result<PlanMade, Failure>),
    /// The draft of a plan is made.
    Draft(Operation, PlanMade, Focus),
    /// The draft of a summary ahead is made.
    DraftAhead(ToDraft),
    /// A recovery whose entries were written, or could not be, starts.
    Recover(DueRecovery, Result<Staged, Failure>),
    /// A draft was made, and is written.
    Commit(Operation, Box<Draft>),
    /// The text of a transfer was made, and is delivered.
    Deliver(Operation, Task, Option<TransferText>),
    /// The entries of a transfer are on disk, or could not be written.
    Delivered(Box<Delivery>, Result<(), Failure>),
    /// An operation that has not started is cancelled.
    Unbegun(Unstarted),
    /// The work of an operation is over.
    End(Ended),
    /// A summary that was made ahead is over. Its operation has no events.
    EndAhead(Operation),
    /// The failure of a summary ahead is recorded.
    RecordFailure(FailedAhead),
}

/// An operation whose work is over, with its end.
pub(super) struct Ended {
    pub operation: Operation,
    pub end: End<Product>,
    /// A notice about the work itself, after the end.
    pub notice: Option<Warning>,
}

impl Step {
    /// A request fails.
    pub fn fail(ticket: Ticket, failure: &Failure) -> Self {
        Self::Answer(ticket, Answer::Failed(failure.clone()))
    }

    /// The work of an operation is over.
    pub fn end(operation: Operation, end: End<Product>) -> Self {
        Self::End(Ended { operation, end, notice: None })
    }
}
