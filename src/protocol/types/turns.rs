//! Turns that the daemon runs, and the messages that wait for one.

use super::{PromptBlock, Tools, tools};
use crate::ids::{OperationId, SessionId};
use base64::{Engine, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Params of `session/prompt`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// The message: a text, or content blocks in pi's form (`text` and `image`).
    pub message: PromptMessage,
    /// Delivery while a turn runs. Default: `follow_up`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behavior: Option<Behavior>,
}

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "a message is a text, or an array of content blocks")]
pub enum PromptMessage {
    /// A text.
    Text(String),
    /// Content blocks.
    Blocks(#[schemars(with = "Vec<PromptBlock>")] Vec<Value>),
}

impl PromptMessage {
    /// The texts, joined by newlines. An image is a word in brackets.
    #[must_use]
    pub fn text(&self) -> String {
        let of = |block: &Value| match block["text"].as_str() {
            Some(text) => text.to_owned(),
            None => "[image]".to_owned(),
        };
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => blocks.iter().map(of).collect::<Vec<_>>().join("\n"),
        }
    }
}

impl PromptMessage {
    /// Whether it is a text, or blocks of text and images.
    ///
    /// # Errors
    /// The first block that is neither.
    pub fn check(&self) -> Result<(), String> {
        let Self::Blocks(blocks) = self else { return Ok(()) };
        for (at, block) in blocks.iter().enumerate() {
            let is_right = match block["type"].as_str() {
                Some("text") => block["text"].is_string(),
                Some("image") => block["data"].is_string() && block["mimeType"].is_string(),
                _ => false,
            };
            if let Some(data) = block["data"].as_str()
                && block["type"] == "image"
                && let Err(error) = STANDARD.decode(data)
            {
                return Err(format!(
                    "the data of the image in block {at} is no base64 ({error}); a provider refuses it"
                ));
            }
            if !is_right {
                return Err(format!(
                    "block {at} is neither {{type: \"text\", text}} nor {{type: \"image\", data, mimeType}}"
                ));
            }
        }
        Ok(())
    }

    /// Whether it says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Blocks(blocks) => {
                blocks.iter().all(|block| block["text"].as_str().is_some_and(|text| text.trim().is_empty()))
            }
        }
    }
}

/// The delivery of a message while a turn runs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Behavior {
    /// In the running turn, before its next request to the model.
    Steer,
    /// In a turn of its own after the running one.
    #[default]
    FollowUp,
}

/// Result of `session/prompt`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptAnswer {
    /// Id of the turn that answers the message.
    pub turn_id: OperationId,
    /// Whether the turn has started.
    pub disposition: Disposition,
}

/// The state of a message that was accepted. It is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// Its turn has started.
    Started,
    /// It waits in the queue.
    Queued,
}

/// Params of `tools/set`.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolsSetParams {
    /// Id of the session. Default: all sessions that begin later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The tools. Each has a schema of its arguments.
    #[serde(deserialize_with = "tools::executable")]
    pub tools: Tools,
}

/// Result of `session/continue`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContinueAnswer {
    /// Id of the turn.
    pub turn_id: OperationId,
}
