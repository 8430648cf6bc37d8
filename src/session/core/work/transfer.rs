//! The phases of a transfer. Each holds the values that belong to it.

use super::Unstarted;
use crate::{
    conversation::path::Path, ids::ModelRef, log::history::route::Route, redact::Clean,
    session::jobs::transfer::TransferText,
};

/// The phase of a transfer.
pub(in crate::session::core) enum TransferPhase {
    /// Its text is being made.
    Making(Box<Task>),
    /// Its text waits until the write before it is done.
    Made(Box<Task>, Option<TransferText>),
    /// Its entries are being written. It is too late to stop it.
    Writing {
        /// The model before.
        model: Option<ModelRef>,
    },
}

/// A request for a reference whose start event was not sent yet.
pub(in crate::session::core) struct Referring {
    /// The question.
    pub question: Option<Clean>,
    /// The operation that it becomes.
    pub unstarted: Unstarted,
}

/// The values of a transfer, from its request to its write.
pub(in crate::session::core) enum Task {
    /// A move to another entry of the tree.
    Navigation(Navigating),
    /// An extract from another session.
    Reference {
        /// Whether the client knows the id of the operation before its end.
        is_introduced: bool,
    },
    /// A new session that goes on from a document.
    Handoff(HandingOff),
}

/// A move to another entry of the tree.
pub(in crate::session::core) struct Navigating {
    /// The way.
    pub route: Route,
    /// The label of the request.
    pub label: Option<String>,
    /// Whether the client knows the id of the operation before its end.
    pub is_introduced: bool,
}

/// A new session that goes on from a document.
pub(in crate::session::core) struct HandingOff {
    /// The goal of the new session.
    pub goal: Option<Clean>,
    /// The conversation that the document covers.
    pub covered: Path,
    /// Whether only the document is wanted.
    pub is_draft: bool,
    /// Whether the document is saved beside the new session.
    pub saves: bool,
}

impl Task {
    /// Whether the client knows the id of the operation before its end.
    #[must_use]
    pub fn is_introduced(&self) -> bool {
        match self {
            Self::Navigation(navigating) => navigating.is_introduced,
            Self::Reference { is_introduced } => *is_introduced,
            Self::Handoff(_) => true,
        }
    }

    /// Whether its entries may stand between a call and its result.
    #[must_use]
    pub fn may_part_a_batch(&self) -> bool {
        match self {
            Self::Navigation(_) | Self::Handoff(_) => true,
            Self::Reference { .. } => false,
        }
    }
}
