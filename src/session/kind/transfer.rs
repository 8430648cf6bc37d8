//! Operations that carry knowledge to another place: to another branch of the tree, to a new session, or from another
//! session to this one.

use super::{
    Product,
    handoff::{HandedOff, Handoff},
};
use crate::{
    ids::{EntryId, OperationId, SessionId},
    protocol::{
        errors::Failure,
        events::Event,
        notices::{NoticeCode, Warning},
        types::{HandoffAnswer, NavigateAnswer, ReferenceAnswer, ReferenceParams, StatusKind},
    },
    session::operations::End,
};
use serde::Serialize;
use std::sync::Arc;

/// A kind of transfer, with the facts of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transfer {
    /// A move to another entry of the tree.
    Navigation(Navigation),
    /// A new session that goes on from a document.
    Handoff(Handoff),
    /// An extract from another session.
    Reference(Reference),
}

/// An extract from another session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The other session. A lock file does not name it.
    pub from: SessionId,
}

impl Reference {
    /// The extract that a client asks for.
    #[must_use]
    pub fn of(params: &ReferenceParams) -> Self {
        Self { from: params.from_session_id.clone() }
    }
}

/// A move to another entry of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Navigation {
    /// Leaf before. A lock file names neither this nor the following ones.
    pub old_leaf: Option<EntryId>,
    /// The entry that was asked for.
    pub target: EntryId,
    /// The deepest entry of both branches.
    pub common_ancestor: Option<EntryId>,
    /// Number of the entries that are left.
    pub entry_count: usize,
    /// Whether the branch that is left is summarized.
    pub summarizes: bool,
}

/// The result of a transfer.
#[derive(Debug)]
pub enum Transferred {
    /// The session has moved.
    Moved(Moved),
    /// An extract was written.
    Referred(Referred),
    /// A document was made, and a new session of it.
    HandedOff(Box<HandedOff>),
}

/// The result of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referred {
    /// The entry with the extract.
    pub entry: EntryId,
    /// The reason why no model wrote it, where one was asked.
    pub lack: Option<String>,
}

/// The result of a move to another entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Leaf before.
    pub left: Option<EntryId>,
    /// Leaf now.
    pub leaf: Option<EntryId>,
    /// The text of a user message as the target.
    pub editor_text: Option<String>,
    /// The entry with the summary.
    pub summary: Option<EntryId>,
    /// The way in which the summary is less than it was asked for.
    pub lack: Option<Lack>,
}

/// The way in which the summary of a branch is less than it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// It was extracted, because no model wrote a usable one. The last reason.
    Model(String),
    /// There is none, because the window has no room for it at the target.
    Room,
}

/// The answer of a request for a transfer.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum TransferAnswer {
    /// Of `session/navigate`.
    Navigate(NavigateAnswer),
    /// Of `session/reference`.
    Reference(ReferenceAnswer),
    /// Of `session/handoff`.
    Handoff(HandoffAnswer),
}

/// The name of a navigation in the lock, in answers and in errors.
const NAVIGATION: &str = "navigation";
/// The name of a navigation that summarizes.
const BRANCH_SUMMARY: &str = "branch_summary";
/// The name of a reference.
const REFERENCE: &str = "reference";
/// The name of a handoff.
const HANDOFF: &str = "handoff";

impl Transfer {
    pub(super) fn read(name: &str) -> Option<Self> {
        let navigation = |summarizes| {
            let (old_leaf, target, common_ancestor, entry_count) = (None, EntryId::from(""), None, 0);
            Self::Navigation(Navigation { old_leaf, target, common_ancestor, entry_count, summarizes })
        };
        match name {
            NAVIGATION => Some(navigation(false)),
            BRANCH_SUMMARY => Some(navigation(true)),
            REFERENCE => Some(Self::Reference(Reference { from: SessionId::from("") })),
            HANDOFF => Some(Self::Handoff(Handoff { goal: None, is_draft: false, document: Arc::default() })),
            _ => None,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Navigation(Navigation { summarizes: false, .. }) => NAVIGATION,
            Self::Navigation(Navigation { summarizes: true, .. }) => BRANCH_SUMMARY,
            Self::Reference(_) => REFERENCE,
            Self::Handoff(_) => HANDOFF,
        }
    }

    pub(super) fn status(&self) -> StatusKind {
        match self {
            Self::Navigation(Navigation { summarizes: true, .. }) => StatusKind::SummarizingBranch,
            Self::Navigation(Navigation { summarizes: false, .. }) | Self::Reference(_) => StatusKind::Running,
            Self::Handoff(_) => StatusKind::HandingOff,
        }
    }

    pub(super) fn start(&self) -> Option<Event> {
        match self {
            Self::Navigation(Navigation { summarizes: false, .. }) | Self::Reference(_) => None,
            Self::Navigation(Navigation { old_leaf, target, common_ancestor, entry_count, summarizes: true }) => {
                Some(Event::BranchSummaryStart {
                    old_leaf_id: old_leaf.clone(),
                    target_entry_id: target.clone(),
                    common_ancestor_id: common_ancestor.clone(),
                    entry_count: *entry_count,
                })
            }
            Self::Handoff(handoff) => Some(handoff.start()),
        }
    }

    pub(super) fn end(&self, end: &End<Product>) -> Option<Event> {
        let failure = end.failure();
        match self {
            Self::Navigation(Navigation { summarizes: false, .. }) | Self::Reference(_) => None,
            Self::Navigation(Navigation { summarizes: true, .. }) => Some(Event::BranchSummaryEnd {
                outcome: end.outcome(),
                summary_entry_id: moved(end).and_then(|moved| moved.summary.clone()),
                error: failure.map(Failure::data),
                error_message: failure.map(|failure| self.failed(&failure.to_string())),
            }),
            Self::Handoff(handoff) => Some(handoff.end(handed_off(end), end)),
        }
    }

    /// The notice about an end that no event tells: an extract that is not written. An extract is told by its entry.
    pub(super) fn untold(&self, end: &End<Product>) -> Option<Warning> {
        let Self::Reference(_) = self else { return None };
        let detail = match end {
            End::Cancelled => "The reference was cancelled, and the session is as it was.".to_owned(),
            End::Failed(failure) => format!("{failure}."),
            End::Completed(_) | End::Skipped(_) => return None,
        };
        Some(self.failed_with(detail))
    }

    /// The event after everything else of it.
    pub(super) fn last(&self, end: &End<Product>) -> Option<Event> {
        match self {
            Self::Navigation(_) | Self::Reference(_) => None,
            Self::Handoff(_) => Handoff::last(handed_off(end)),
        }
    }

    /// The error of this transfer for a person.
    #[must_use]
    pub fn failed(&self, failure: &str) -> String {
        match self {
            Self::Navigation(Navigation { summarizes: true, .. }) => format!("Branch summary failed: {failure}"),
            Self::Navigation(Navigation { summarizes: false, .. }) => format!("Navigation failed: {failure}"),
            Self::Reference(_) => format!("Reference failed: {failure}"),
            Self::Handoff(handoff) => handoff.failed(failure),
        }
    }

    /// The notice about its failure.
    fn failed_with(&self, detail: String) -> Warning {
        let (code, title) = match self {
            Self::Navigation(_) => (NoticeCode::NavigationFailed, "The session has not moved"),
            Self::Reference(_) => (NoticeCode::ReferenceFailed, "Nothing was taken from the other session"),
            Self::Handoff(_) => (NoticeCode::HandoffFailed, "The session was not handed off"),
        };
        Warning::new(code, title, detail)
    }

    /// Whether its failure is told by its end event.
    #[must_use]
    pub fn has_events(&self) -> bool {
        match self {
            Self::Navigation(navigation) => navigation.summarizes,
            Self::Reference(_) => false,
            Self::Handoff(_) => true,
        }
    }

    /// The notices after its end.
    #[must_use]
    pub fn notices(&self, end: &End<Product>) -> Vec<Warning> {
        match end {
            // Without an end event the client would not learn of it. The end of a reference tells it by itself.
            End::Failed(failure) if !self.has_events() && !matches!(self, Self::Reference(_)) => {
                vec![self.failed_with(format!("{failure}."))]
            }
            end => {
                let lack = moved(end).and_then(|moved| moved.lack.as_ref()).map(Lack::notice);
                let handed_off = handed_off(end).and_then(HandedOff::notice);
                lack.into_iter().chain(handed_off).chain(referred(end).and_then(Referred::notice)).collect()
            }
        }
    }

    pub(super) fn started(&self, id: &OperationId) -> TransferAnswer {
        match self {
            Self::Navigation(_) => TransferAnswer::Navigate(NavigateAnswer::Started { operation_id: id.clone() }),
            Self::Reference(_) => TransferAnswer::Reference(ReferenceAnswer::Started { operation_id: id.clone() }),
            Self::Handoff(_) => TransferAnswer::Handoff(HandoffAnswer::Started { operation_id: id.clone() }),
        }
    }

    pub(super) fn ended(&self, id: &OperationId, end: &End<Product>) -> TransferAnswer {
        match self {
            Self::Navigation(Navigation { old_leaf, .. }) => {
                let moved = moved(end);
                TransferAnswer::Navigate(NavigateAnswer::Ended {
                    operation_id: id.clone(),
                    outcome: end.outcome(),
                    old_leaf_id: moved.map_or_else(|| old_leaf.clone(), |moved| moved.left.clone()),
                    new_leaf_id: match (moved, end.failure()) {
                        (Some(moved), _) => moved.leaf.clone(),
                        // Messages have come meanwhile.
                        (None, Some(Failure::ContentModified { leaf })) => leaf.clone(),
                        (None, _) => old_leaf.clone(),
                    },
                    editor_text: moved.and_then(|moved| moved.editor_text.clone()),
                    summary_entry_id: moved.and_then(|moved| moved.summary.clone()),
                    error: end.failure().map(Failure::data),
                    error_message: end.failure().map(|failure| self.failed(&failure.to_string())),
                })
            }
            Self::Reference(_) => TransferAnswer::Reference(ReferenceAnswer::Ended {
                operation_id: id.clone(),
                outcome: end.outcome(),
                entry_id: referred(end).map(|referred| referred.entry.clone()),
                error: end.failure().map(Failure::data),
                error_message: end.failure().map(|failure| self.failed(&failure.to_string())),
            }),
            Self::Handoff(handoff) => TransferAnswer::Handoff(handoff.ended(id, handed_off(end), end)),
        }
    }
}

fn handed_off(end: &End<Product>) -> Option<&HandedOff> {
    match end.product() {
        Some(Product::Transferred(Transferred::HandedOff(made))) => Some(made),
        _ => None,
    }
}

fn referred(end: &End<Product>) -> Option<&Referred> {
    match end.product() {
        Some(Product::Transferred(Transferred::Referred(referred))) => Some(referred),
        _ => None,
    }
}

impl Referred {
    fn notice(&self) -> Option<Warning> {
        let why = self.lack.as_ref()?;
        let detail = format!(
            "The extract has the passages with most words of the question, because no model wrote a usable one. The last \
             reason: {why}. session/entry of the other session returns each entry whole."
        );
        Some(Warning::new(NoticeCode::ReferenceExtracted, "No model could write the extract", detail))
    }
}

impl Lack {
    fn notice(&self) -> Warning {
        match self {
            Self::Model(why) => {
                let detail = format!(
                    "The summary of the branch was extracted, because no model wrote a usable one; details may be lost. The \
                     last reason: {why}. The branch itself is unchanged: session/navigate goes back to it."
                );
                Warning::new(NoticeCode::BranchSummaryExtracted, "No model could write the summary", detail)
            }
            Self::Room => {
                let detail = "The window has no room for a summary beside the context at the target. Compact the session \
                              with session/compact, navigate back and ask for the summary again.";
                Warning::new(NoticeCode::BranchNotSummarized, "The branch was left without a summary", detail)
            }
        }
    }
}

fn moved(end: &End<Product>) -> Option<&Moved> {
    match end.product() {
        Some(Product::Transferred(Transferred::Moved(moved))) => Some(moved),
        _ => None,
    }
}
