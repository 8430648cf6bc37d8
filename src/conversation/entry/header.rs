//! The first line of a session file.

use crate::ids::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The first line of a session file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// Always `session`.
    #[serde(rename = "type")]
    pub kind: HeaderKind,
    /// The format's version; missing in the first one.
    #[serde(default = "first_version")]
    pub version: u32,
    /// The session.
    pub id: SessionId,
    /// When it began, RFC 3339.
    #[serde(default)]
    pub timestamp: String,
    /// The folder it is about.
    #[serde(default)]
    pub cwd: String,
    /// The file of the session it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// oh-my-pi keeps the title here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Fields of other programs, kept.
    #[serde(flatten)]
    pub rest: serde_json::Map<String, Value>,
}

/// The one value a header's `type` may have.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeaderKind {
    /// `session`
    Session,
}

fn first_version() -> u32 {
    1
}
