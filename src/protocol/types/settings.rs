//! Settings, and what is told about them.

use super::Object;
use crate::{ids::SessionId, models::catalog::ListedModel};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `settings/set`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingsSetParams {
    /// Where it is changed.
    pub scope: Scope,
    /// Of which session, or of which session's project. With scope `global`, for whom the answer is.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// What is changed. null takes a value out, so that what lies below it holds.
    pub patch: Object,
}

/// Where settings are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// In the global settings file.
    Global,
    /// In the settings file of the session's folder.
    Project,
    /// In the session.
    Session,
}

/// Params of `models/list`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelsListParams {
    /// As this session sees them, with its own model.
    pub session_id: Option<SessionId>,
}

/// The result of `models/list`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ModelsListAnswer {
    /// Those of the settings in their order, then those that are only used.
    pub models: Vec<ListedModel>,
}
