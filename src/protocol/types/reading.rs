//! Contexts and entries.

use super::{Entry, Message, Object, Usage};
use crate::{
    ids::{EntryId, SessionId},
    models::ModelRef,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `session/context`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextParams {
    /// Of which session.
    pub session_id: SessionId,
    /// At this entry instead of the leaf.
    #[serde(default)]
    pub leaf_entry_id: Option<EntryId>,
    /// In which form; `messages` if omitted.
    #[serde(default)]
    pub format: Option<ContextFormat>,
    /// Waits for running maintenance to end. Starts nothing.
    #[serde(default)]
    pub wait: Option<bool>,
}

/// The form of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextFormat {
    /// pi's messages.
    Messages,
    /// A request of Anthropic's Messages.
    Anthropic,
    /// A request of OpenAI's Chat Completions.
    OpenaiChat,
    /// A request of OpenAI's Responses.
    OpenaiResponses,
    /// A request of Google's `generateContent`. The model's name is in its address, so not in the body.
    Google,
}

/// The result of `session/context`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextAnswer {
    /// The messages, valid for a provider; with the format `messages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// The entry of each message; null for the frame of a summary and for a message that stands in for a missing one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_ids: Option<Vec<Option<EntryId>>>,
    /// The body of a request to the model, valid for its provider; with the other formats. Whether the answer is streamed
    /// is not said in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Object>,
    /// How full it is.
    pub usage: Usage,
    /// The compaction it is seen through.
    pub compaction_entry_id: Option<EntryId>,
    /// The model it is for.
    pub model: Option<ModelRef>,
}

/// Params of `session/entries`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntriesParams {
    /// Of which session.
    pub session_id: SessionId,
    /// Only those after this one.
    #[serde(default)]
    pub since: Option<EntryId>,
    /// `active` if omitted.
    #[serde(default)]
    pub branch: Option<Branch>,
    /// Only of these types.
    #[serde(default)]
    pub types: Option<Vec<String>>,
    /// At most so many; 1,000 if omitted.
    #[serde(default)]
    pub limit: Option<usize>,
    /// At most about so many bytes, but at least one entry; 1 MiB if omitted.
    #[serde(default)]
    pub max_bytes: Option<usize>,
}

/// Which entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Branch {
    /// The path to the leaf.
    Active,
    /// Every one, in the order of the file.
    All,
}

/// The result of `session/entries`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntriesAnswer {
    /// The page.
    pub entries: Vec<Entry>,
    /// The leaf.
    pub leaf_entry_id: Option<EntryId>,
    /// For the next page, as `since`; null where this is the last.
    pub next_cursor: Option<EntryId>,
}

/// Params of `session/entry`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryParams {
    /// Of which session.
    pub session_id: SessionId,
    /// Which.
    pub entry_id: EntryId,
}

/// The result of `session/entry`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EntryAnswer {
    /// The entry.
    pub entry: Entry,
}

/// Params of `session/subscribe`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeParams {
    /// Which session's events.
    pub session_id: SessionId,
    /// The last event that was seen: what is kept since follows again.
    #[serde(default)]
    pub after: Option<Seen>,
}

/// An event, by its place.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Seen {
    /// In which life of the daemon.
    pub epoch: String,
    /// Its number.
    pub seq: u64,
}

/// The result of `session/subscribe`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SubscribeAnswer {
    /// This life of the daemon.
    pub epoch: String,
    /// The number of the last event.
    pub seq: u64,
    /// Whether nothing durable was missed.
    pub status: Subscription,
    /// So many events follow again, in order, with their old numbers.
    pub replayed: usize,
    /// The session now; null where the events that follow say all of it.
    pub snapshot: Option<super::StatusAnswer>,
}

/// Whether a client that was away knows everything again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subscription {
    /// It does, with the events that follow.
    Ok,
    /// Some events are gone for good: begin with the snapshot.
    Expired,
}
