//! The first line of a session file.

use crate::ids::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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

/// The field of a header in which this program keeps its own values.
const OURS: &str = "abridged";

impl Header {
    /// Marks a session whose lines come from a file outside of the data folder. Such lines have a say in harmless settings
    /// only, wherever they stand.
    pub fn mark_foreign(&mut self) {
        self.rest.insert(OURS.to_owned(), json!({"foreign": true}));
    }

    /// Whether the lines of the session come from a file outside of the data folder.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.rest.get(OURS).is_some_and(|ours| ours["foreign"] == true)
    }
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
