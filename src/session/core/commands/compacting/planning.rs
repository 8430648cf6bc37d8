//! The request for the plan of a compaction.

use crate::{
    compaction::request::{Cause, PlanRequest},
    protocol::types::Initiator,
    session::state::State,
};

pub(in crate::session::core) fn plan_request(
    state: &State,
    keep_recent_tokens: Option<u64>,
    initiator: Initiator,
    cause: Cause,
) -> PlanRequest {
    let path = state.path().clone();
    let model = state.model(&path);
    PlanRequest {
        settings: state.settings().clone(),
        learned: state.learned.clone(),
        instructions: state.instructions().clone(),
        keep_recent_tokens,
        initiator,
        cause,
        insists: false,
        path,
        model,
    }
}
