//! The compaction of a session, by its phase. Each phase holds the values that belong to it, so a plan without a request
//! or a draft without an operation cannot exist.

mod transfer;

pub(super) use transfer::{HandingOff, Navigating, Referring, Task, TransferPhase};

use crate::{
    compaction::draft::Draft,
    ids::{OperationId, SessionId},
    protocol::{
        errors::Failure,
        types::{CompactParams, CompactionResult},
    },
    session::{
        effects::Ticket,
        founding::Saved,
        jobs::{Focus, PlanMade},
        kind::{HandedOff, OperationKind, Product},
        operation::Operation,
        operations::{Asked, End, Kind as _},
        source::Source,
        stop::Stop,
    },
};

/// A request for a compaction whose start event was not sent yet.
pub(super) struct Request {
    /// The id of the operation that it becomes.
    pub id: OperationId,
    /// Its kind and cause.
    pub kind: OperationKind,
    /// Its params.
    pub params: CompactParams,
    /// The request of the client.
    pub asked: Asked<Ticket>,
    /// Stops the planning, and later the drafting.
    pub stop: Stop,
}

/// An operation that was cancelled before its start was sent.
pub(super) struct Unstarted {
    /// The id of the operation that it becomes.
    pub id: OperationId,
    /// Its kind and cause.
    pub kind: OperationKind,
    /// The request of the client.
    pub asked: Asked<Ticket>,
    /// Stops the planning.
    pub stop: Stop,
}

/// An operation that ends before its start was sent, with its end.
pub(super) struct Unbegun {
    pub request: Unstarted,
    pub end: End<Product>,
}

impl From<Request> for Unstarted {
    fn from(Request { id, kind, asked, stop, .. }: Request) -> Self {
        Self { id, kind, asked, stop }
    }
}

/// The compaction or the transfer of a session: at most one at a time.
#[derive(Default)]
pub(super) enum Work {
    /// No compaction.
    #[default]
    None,
    /// A plan is being made. No start event was sent.
    Planning(Request),
    /// A plan waits until the write before it is done, because its start follows the answer and the events of that write.
    Planned(Request, Box<Result<PlanMade, Failure>>),
    /// The plan of a compaction is being made, and its start was sent: no client asked for it, or it waited for the end of the
    /// turn.
    Preparing(Operation, Focus),
    /// A draft is being made.
    Drafting(Operation),
    /// A draft waits until the write before it is done.
    Drafted(Operation, Box<Draft>),
    /// The draft is being written. It is too late to stop it.
    Committing(Operation),
    /// A session is being made for the summary. It is too late to stop it, and other commands wait.
    Founding(Operation, Box<Founded>),
    /// A reference whose source is looked for, or was found while the log was out. No start event was sent.
    Referring(Referring, Option<Box<Result<Source, Failure>>>),
    /// A transfer.
    Transfer(Operation, TransferPhase),
}

/// The session that is being made, and the result of the operation that makes it.
pub(super) enum Founded {
    /// It begins with the summary of a compaction.
    Compaction { session: SessionId, result: Box<CompactionResult> },
    /// It begins with the document of a handoff, of which a file is saved, too.
    Handoff { made: HandedOff, saved: Option<Saved> },
}

impl Work {
    /// Takes the work out and leaves none.
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Whether a session is being made.
    pub fn founds(&self) -> bool {
        matches!(self, Self::Founding(..))
    }

    /// Whether work runs that is not idle maintenance.
    pub fn is_in_front(&self) -> bool {
        !self.is_none() && !self.is_idle()
    }

    /// Whether it is idle maintenance.
    pub fn is_idle(&self) -> bool {
        let kind = self.unstarted().map(|(_, kind)| kind);
        kind.or_else(|| self.operation().map(|operation| &operation.kind)).is_some_and(OperationKind::is_idle)
    }

    /// Refuses a request that changes the context while an operation is planned.
    ///
    /// # Errors
    /// `busy`.
    pub fn nothing_planned(&self) -> Result<(), Failure> {
        match self.unstarted() {
            None => Ok(()),
            Some((id, kind)) => Err(Failure::Busy { operation_id: id.clone(), kind: kind.name() }),
        }
    }

    /// Takes the compaction whose draft is being written.
    pub fn take_committing(&mut self) -> Option<Operation> {
        match self.take() {
            Self::Committing(operation) => Some(operation),
            other => {
                *self = other;
                None
            }
        }
    }

    /// The id of the compaction.
    pub fn id(&self) -> Option<&OperationId> {
        match self {
            Self::None => None,
            Self::Planning(request) | Self::Planned(request, _) => Some(&request.id),
            Self::Referring(request, _) => Some(&request.unstarted.id),
            Self::Preparing(operation, _)
            | Self::Drafting(operation)
            | Self::Drafted(operation, _)
            | Self::Committing(operation)
            | Self::Founding(operation, _)
            | Self::Transfer(operation, _) => Some(&operation.id),
        }
    }

    /// Takes out the request whose start was not sent, if it is the one with this id, or any without one.
    pub fn take_unstarted(&mut self, which: Option<&OperationId>) -> Option<Unstarted> {
        match self.take() {
            Self::Planning(request) | Self::Planned(request, _) if which.is_none_or(|which| *which == request.id) => {
                Some(request.into())
            }
            Self::Referring(request, _) if which.is_none_or(|which| *which == request.unstarted.id) => {
                Some(request.unstarted)
            }
            other => {
                *self = other;
                None
            }
        }
    }

    /// The id and the kind of the request whose start was not sent.
    pub fn unstarted(&self) -> Option<(&OperationId, &OperationKind)> {
        match self {
            Self::Planning(request) | Self::Planned(request, _) => Some((&request.id, &request.kind)),
            Self::Referring(Referring { unstarted, .. }, _) => Some((&unstarted.id, &unstarted.kind)),
            _ => None,
        }
    }

    /// The operation, if its start was sent.
    pub fn operation(&self) -> Option<&Operation> {
        match self {
            Self::Preparing(operation, _)
            | Self::Drafting(operation)
            | Self::Drafted(operation, _)
            | Self::Committing(operation)
            | Self::Founding(operation, _)
            | Self::Transfer(operation, _) => Some(operation),
            Self::None | Self::Planning(_) | Self::Planned(..) | Self::Referring(..) => None,
        }
    }

    /// The operation with this id, while its draft or its text is being made.
    pub fn drafting(&mut self, id: &OperationId) -> Option<&mut Operation> {
        match self {
            Self::Drafting(operation) | Self::Transfer(operation, TransferPhase::Making(_)) if operation.id == *id => {
                Some(operation)
            }
            _ => None,
        }
    }

    /// Whether the client cancelled the request that waits for it.
    pub fn request_cancelled(&self) -> bool {
        match self {
            Self::None => false,
            Self::Planning(request) | Self::Planned(request, _) => {
                request.asked.request().is_some_and(Ticket::cancelled)
            }
            Self::Referring(request, _) => request.unstarted.asked.request().is_some_and(Ticket::cancelled),
            Self::Preparing(operation, _)
            | Self::Drafting(operation)
            | Self::Drafted(operation, _)
            | Self::Committing(operation)
            | Self::Founding(operation, _)
            | Self::Transfer(operation, _) => operation.request_cancelled(),
        }
    }
}
