//! Params and results of `session/import`.

use super::{Repair, SessionInfo};
use crate::agents::transcript::Origin;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `session/import`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportParams {
    /// Path of the session of another agent: of its file, or of OpenCode's database with `#` and the id of the session.
    pub path: String,
    /// Working folder of the session; an absolute path. Default: the one in the file.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Title of the session. Default: the one in the file.
    #[serde(default)]
    pub title: Option<String>,
}

/// Result of `session/import`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportAnswer {
    /// The new session. It is open, and the client is subscribed to its events.
    pub session: SessionInfo,
    /// The origin of the session.
    pub origin: Origin,
    /// Parts of the file that are in no entry, by their kind.
    pub repairs: Vec<Repair>,
}
