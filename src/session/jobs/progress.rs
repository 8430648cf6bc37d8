//! Steps of a draft in the making, as its job reports them.

use crate::{
    protocol::{events::HookOutcome, types::HookEvent},
    session::gate::Gate,
    summary::model::writer::Step,
};
use serde::{Deserialize, Serialize};

/// Step of a draft in the making.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Progress {
    /// Of a summary by models.
    Summary(Step),
    /// Of a hook.
    Hook(HookStep),
}

/// Receives the steps of a draft.
pub type Tell<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// Step of a hook.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HookStep {
    /// The client is asked.
    HookBegins {
        /// The hook.
        hook: HookEvent,
        /// Opens when its start was sent. The request to the client waits for that.
        #[serde(skip)]
        sent: Gate,
    },
    /// The client answered, or its time is over.
    HookEnds {
        /// The hook.
        hook: HookEvent,
        /// The outcome.
        outcome: HookOutcome,
        /// The reason of a cancel, or of a failure.
        why: Option<String>,
    },
}
