//! The job that makes the text of a transfer beside the session.

mod branch;
mod handoff;
mod reference;

pub use handoff::{DocumentOrigin, HandoffOrder, HandoffText, Maintenance};
pub use reference::{ReferenceOrder, ReferenceText};

use super::{defect, draft::caught, progress::Tell};
use crate::{
    ask::{access::ModelAccess, pool::Pool, request::Origin},
    conversation::path::Path,
    conversation::spending::Trigger,
    ids::{EntryId, ModelRef, OperationId},
    log::{history::route::Route, sealed::Blocking},
    models::candidates::{Candidate, Unfit},
    protocol::{errors::Failure, types::NavigateParams},
    redact::Clean,
    session::{hooks::Hooks, state::View, stop::Stop},
    settings::{Settings, Sourced},
    summary::{branch::LeftPin, made::Made},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A text that is to be made.
pub struct TransferOrder {
    /// Its operation.
    pub id: OperationId,
    /// The work.
    pub work: TransferWork,
    /// The settings in force.
    pub settings: Arc<Sourced>,
    /// The model of the session.
    pub model: Option<ModelRef>,
    /// Cancels the job.
    pub stop: Stop,
}

impl TransferOrder {
    /// The reason for which models are asked. The costs say it.
    #[must_use]
    pub fn trigger(&self) -> Trigger {
        match &self.work {
            TransferWork::Handoff(order) => order.maintenance.as_ref().map_or(Trigger::Manual, |it| it.trigger),
            TransferWork::Branch(_) | TransferWork::Reference(_) => Trigger::Manual,
        }
    }
}

/// The work of a transfer.
pub enum TransferWork {
    /// The summary of a branch that is left.
    Branch(Box<BranchOrder>),
    /// An extract from another session.
    Reference(Box<ReferenceOrder>),
    /// The document of a handoff.
    Handoff(Box<HandoffOrder>),
}

/// The summary of a branch, and the hook that takes part in the navigation.
pub struct BranchOrder {
    /// The way to the other branch.
    pub route: Route,
    /// The request.
    pub params: NavigateParams,
    /// Leaf before, as the client sees it.
    pub old_leaf: Option<EntryId>,
    /// The pins of the branch that is left and do not hold at the target.
    pub pins: Vec<LeftPin>,
    /// The view on the session, which measures the context at the target.
    pub view: View,
    /// The path of the old leaf.
    pub path: Path,
    /// Whether the provider of the session's model has the last request of that path in its cache.
    pub is_warm: bool,
    /// The hooks of the session.
    pub hooks: Arc<Hooks>,
    /// Whether the branch is summarized.
    pub summarizes: bool,
}

/// The text of a transfer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TransferText {
    /// Of a navigation.
    Branch(Box<BranchText>),
    /// Of a reference.
    Reference(ReferenceText),
    /// Of a handoff.
    Handoff(HandoffText),
}

/// The text of a navigation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchText {
    /// The summary of the branch that is left.
    pub summary: Option<BranchSummaryText>,
    /// The label of a hook.
    pub label: Option<String>,
    /// Whether the window has no room for a summary at the target.
    #[serde(default)]
    pub lacks_room: bool,
}

/// The summary of a branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummaryText {
    /// The whole text, with its lists of files.
    pub text: Clean,
    /// The `details` of its entry.
    pub details: Option<Value>,
    /// Its origin.
    pub made: Made,
}

impl TransferText {
    /// The text of a navigation.
    #[must_use]
    pub fn branch(&self) -> Option<&BranchText> {
        match self {
            Self::Branch(text) => Some(text),
            Self::Reference(_) | Self::Handoff(_) => None,
        }
    }

    /// The document of a handoff.
    #[must_use]
    pub fn handoff(self) -> Option<HandoffText> {
        match self {
            Self::Handoff(text) => Some(text),
            Self::Branch(_) | Self::Reference(_) => None,
        }
    }
}

/// A job: the order, and everything that it works with.
pub struct TransferJob {
    /// Session and operation.
    pub origin: Origin,
    /// The order.
    pub order: TransferOrder,
    /// Access to models.
    pub access: Arc<ModelAccess>,
    /// Makes the proof that a thread of the pool may wait for the disk.
    pub may_block: fn() -> Blocking,
}

/// Makes the text of a transfer. A panic is an error of the job. Dropping the future cancels its requests.
///
/// # Errors
/// When the job is cancelled, or no text can be made.
pub async fn transfer(job: TransferJob, pool: &dyn Pool, tell: Tell<'_>) -> Result<TransferText, Failure> {
    let TransferJob { origin, order, access, may_block } = job;
    let TransferOrder { work, settings, model, stop, .. } = order;
    let making = Making { origin: &origin, settings: &settings, model: model.as_ref(), access: &access, stop: &stop };
    let made = async {
        match work {
            TransferWork::Branch(order) => branch::text(&making, Arc::from(order), may_block, pool, tell)
                .await
                .map(Box::new)
                .map(TransferText::Branch),
            TransferWork::Reference(order) => {
                reference::reference(&making, Arc::from(order), pool, tell).await.map(TransferText::Reference)
            }
            TransferWork::Handoff(order) => {
                let around = handoff::Around { making: &making, may_block, pool, tell };
                handoff::document(*order, around).await.map(TransferText::Handoff)
            }
        }
    };
    let made = stop.unless_requested(caught(made)).await.unwrap_or(Some(Err(Failure::Cancelled)));
    made.unwrap_or_else(|| Err(defect()))
}

/// The values that the work of every transfer depends on.
struct Making<'a> {
    origin: &'a Origin,
    settings: &'a Arc<Sourced>,
    model: Option<&'a ModelRef>,
    access: &'a Arc<ModelAccess>,
    stop: &'a Stop,
}

/// The window of the first model that can be asked, in tokens. The others divide the material where theirs are smaller.
fn window_of(candidates: &[Result<Candidate, Unfit>]) -> Option<u64> {
    candidates.iter().find_map(|candidate| candidate.as_ref().ok()).map(|candidate| candidate.window)
}

/// The room for the material in a window, in tokens: without the reserve for the answer, and at least half of the window.
fn room_in(window: u64, settings: &Settings) -> u64 {
    window - settings.branch_summary.reserve_tokens.min(window / 2)
}
