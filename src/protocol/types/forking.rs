//! Params and results of `session/fork`.

use crate::ids::{EntryId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `session/fork`. Without `entryId` the fork has the whole path to the leaf.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Entry at which the fork ends; on any branch. A marker is refused. `at` refuses a tool result that is not the last one
    /// of its batch.
    #[serde(default)]
    pub entry_id: Option<EntryId>,
    /// Whether the fork ends before that entry or with it. Default: `before`. Without `entryId` it is `at` the leaf.
    #[serde(default)]
    pub position: Option<ForkPosition>,
    /// Working folder of the fork; an absolute path. Default: that of the session.
    #[serde(default)]
    pub cwd: Option<String>,
}

/// The end of a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForkPosition {
    /// The entry and everything behind it stay behind.
    Before,
    /// The entry comes along.
    At,
}

/// Result of `session/fork`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkAnswer {
    /// The new session. It is open, and the client is subscribed to its events.
    pub session: super::SessionInfo,
    /// Text of the user's message, or of the `custom_message`, before which the fork ends; null where it ends elsewhere.
    pub editor_text: Option<String>,
}
