//! Params and results of `settings/set`, `models/list` and `models/forget`.

use super::Object;
use crate::{
    ids::{ModelRef, SessionId},
    models::{catalog::ListedModel, learned::LearnedWindow},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `settings/set`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingsSetParams {
    /// Scope of the change.
    pub scope: Scope,
    /// Session that the scope refers to. With scope `global`: the session whose effective settings are returned.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// JSON merge patch. Null removes a value, so that the value of the next layer applies.
    pub patch: Object,
}

/// Scope of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The global settings file.
    Global,
    /// The settings file of the session's working folder.
    Project,
    /// The session.
    Session,
}

/// Params of `models/list`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelsListParams {
    /// Session whose own model is listed too.
    pub session_id: Option<SessionId>,
}

/// Result of `models/list`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ModelsListAnswer {
    /// Models of the settings in their order, then other models in use.
    pub models: Vec<ListedModel>,
}

/// Params of `models/forget`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct ModelsForgetParams {
    /// The model.
    pub model: ModelRef,
}

/// Result of `models/forget`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ModelsForgetAnswer {
    /// The windows that were forgotten, one for each server of the model. Empty where none was learned. A bound that a
    /// session keeps for itself, from a refusal without a limit, is forgotten, too, and is not listed.
    pub forgotten: Vec<LearnedWindow>,
}
