//! The job that makes the text of a transfer beside the session.

use super::{
    blocking::{Pool, blocking},
    progress::Tell,
};
use crate::{
    ask::{access::ModelAccess, request::Origin},
    conversation::tokens::{Estimator, Scale},
    ids::{ModelRef, OperationId},
    log::history::route::Route,
    protocol::{errors::Failure, types::NavigateParams},
    session::stop::Stop,
    settings::Sourced,
    summary::{
        extractive::{self, Cleaner},
        span::Span,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
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

/// The work of a transfer.
pub enum TransferWork {
    /// The summary of a branch that is left.
    Branch(Box<BranchOrder>),
}

/// The summary of a branch, and the hook that takes part in the navigation.
pub struct BranchOrder {
    /// The way to the other branch.
    pub route: Route,
    /// The request.
    pub params: NavigateParams,
    /// Whether the branch is summarized.
    pub summarizes: bool,
}

/// The text of a transfer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TransferText {
    /// Of a navigation.
    Branch(BranchText),
}

/// The text of a navigation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchText {
    /// The summary of the branch that is left.
    pub summary: Option<BranchSummaryText>,
    /// The label of a hook.
    pub label: Option<String>,
}

/// The summary of a branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummaryText {
    /// The whole text, with its lists of files.
    pub text: String,
    /// The `details` of its entry.
    pub details: Value,
    /// Whether a hook supplied it.
    pub from_hook: bool,
}

impl TransferText {
    /// The text of a navigation.
    #[must_use]
    pub fn branch(&self) -> Option<&BranchText> {
        match self {
            Self::Branch(text) => Some(text),
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
}

/// Makes the text of a transfer. Dropping the future cancels its requests.
///
/// # Errors
/// When the job is cancelled, or no text can be made.
pub async fn transfer(job: TransferJob, pool: &dyn Pool, _tell: Tell<'_>) -> Result<TransferText, Failure> {
    let TransferJob { order, .. } = job;
    let TransferOrder { work, settings, stop, .. } = order;
    match work {
        TransferWork::Branch(branch) => {
            let stopped = stop.clone();
            let extracted = move || Ok(extracted(&branch, &settings, &|| stopped.requested()));
            let summary = stop.unless_requested(blocking(pool, extracted)).await.unwrap_or(Err(Failure::Cancelled))?;
            Ok(TransferText::Branch(BranchText { summary, label: None }))
        }
    }
}

fn extracted(branch: &BranchOrder, settings: &Sourced, stop: &dyn Fn() -> bool) -> Option<BranchSummaryText> {
    if !branch.summarizes {
        return None;
    }
    let summary = extractive::summarize(&extractive::Request {
        span: Span::of(&branch.route.left),
        instructions: branch.params.instructions.as_deref(),
        cap: 4_000,
        settings: &settings.settings,
        cleaner: &Cleaner::new(&settings.settings),
        scale: Scale::new(Estimator::Chars, 1.0),
        stop,
    });
    let details = json!({"readFiles": summary.files.read_files, "modifiedFiles": summary.files.modified_files});
    Some(BranchSummaryText { text: summary.text, details, from_hook: false })
}
