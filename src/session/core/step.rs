//! The steps that follow from the verbs of the parts of a session.

use super::{
    base::Base,
    commands::append::Append,
    costs::FailedAhead,
    due::{Due, DueRecovery},
    edit::{EditWrite, Staged},
    parts::log_gate::FollowUp,
    transfers::delivery::Delivery,
    turns::{Own, queued::QueueWritten},
    work::{Request, Task, Unstarted},
};
use crate::{
    compaction::draft::Draft,
    conversation::{entry::Entry, undo::Undoing},
    protocol::{errors::Failure, notices::Warning},
    session::{
        core::commands::compacting::{after_turn::recorded::Recorded, ordering::ToDraft},
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

    /// Messages of a turn could not be written.
    OwnNotWritten(Box<Own>, Failure),
    /// Messages of a turn are written again.
    OwnAgain(Box<Own>),
    /// The queue of messages is on disk, or not.
    Queue(QueueWritten),

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
    /// An operation is cancelled before its start.
    Cancel(Unstarted),
    /// The work of an operation is over.
    End(Ended),
    /// A summary that was made ahead is over. Its operation has no events.
    EndAhead(Operation),
    /// The failure of a summary ahead is recorded.
    RecordFailure(FailedAhead),
}

/// The steps of a verb, in their order. They are performed: a request or an operation in a step that is dropped fails. A verb
/// without a result has nothing that follows.
#[must_use]
pub(super) struct Steps(Vec<Step>);

impl Steps {
    /// Nothing follows.
    pub fn none() -> Self {
        Self(Vec::new())
    }
}

impl From<()> for Steps {
    fn from((): ()) -> Self {
        Self::none()
    }
}

impl From<Step> for Steps {
    fn from(step: Step) -> Self {
        Self(vec![step])
    }
}

impl From<Option<Step>> for Steps {
    fn from(step: Option<Step>) -> Self {
        Self(step.into_iter().collect())
    }
}

impl From<Vec<Step>> for Steps {
    fn from(steps: Vec<Step>) -> Self {
        Self(steps)
    }
}

impl IntoIterator for Steps {
    type Item = Step;
    type IntoIter = std::vec::IntoIter<Step>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
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
    fn follow_up(&self) -> FollowUp {
        FollowUp::None
    }
}
