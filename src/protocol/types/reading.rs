//! Params and results of the methods that read a context, entries and events.

use super::{Entry, Message, Object, Usage};
use crate::{
    ids::{EntryId, SessionId},
    models::ModelRef,
    provider::Api,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Params of `session/context`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Entry at which the path ends. Default: the leaf. The size of a long context of another entry is estimated by
    /// characters (`usage.estimator`), unless the context has to fit.
    #[serde(default)]
    pub leaf_entry_id: Option<EntryId>,
    /// Format of the context. Default: `messages`.
    #[serde(default)]
    pub format: Option<MessageFormat>,
    /// Answer after running maintenance has ended. Over the window, and where less than half of the reserve is free for the
    /// answer of the model, the request starts the maintenance that is due.
    #[serde(default)]
    pub wait: Option<bool>,
}

/// Format of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageFormat {
    /// Messages in pi's form.
    Messages,
    /// Anthropic's Messages API. A context is a request body.
    Anthropic,
    /// OpenAI's Chat Completions API. A context is a request body.
    OpenaiChat,
    /// OpenAI's Responses API. A context is a request body.
    OpenaiResponses,
    /// Google's `generateContent`. A context is a request body without the model, which is part of the URL.
    Google,
}

impl MessageFormat {
    /// The wire format of a provider; `None` for pi's messages.
    #[must_use]
    pub fn api(self) -> Option<Api> {
        match self {
            Self::Messages => None,
            Self::Anthropic => Some(Api::Anthropic),
            Self::OpenaiChat => Some(Api::OpenaiChat),
            Self::OpenaiResponses => Some(Api::OpenaiResponses),
            Self::Google => Some(Api::Google),
        }
    }
}

/// Result of `session/context`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextAnswer {
    /// Messages, valid for a provider. Present with the format `messages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// Entry of each message; null for the frame of a summary and for a placeholder message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_ids: Option<Vec<Option<EntryId>>>,
    /// Request body, valid for its provider. Present with the other formats. The client adds the streaming flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Object>,
    /// Headers that the body needs beside those of its provider, by name. A client sends them with the body. Absent if the
    /// body needs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// The reason for which the provider's own compaction is not in the body, as a sentence. Absent where it is, or where there
    /// is none of this provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Id of the context. `session/append` takes it with the answer that was made for the context.
    pub context_id: String,
    /// Fullness of the context.
    pub usage: Usage,
    /// Compaction in force.
    pub compaction_entry_id: Option<EntryId>,
    /// Model of the context.
    pub model: Option<ModelRef>,
    /// Largest answer that the window and the model leave room for.
    pub max_output_tokens: Option<u64>,
}

/// Params of `session/entries`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntriesParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Cursor: only entries after this one. An entry id, which means the latest entry with that id, or a `nextCursor`.
    #[serde(default)]
    pub since: Option<EntryId>,
    /// Selection of entries. Default: `active`.
    #[serde(default)]
    pub branch: Option<Branch>,
    /// Only entries of these types.
    #[serde(default)]
    pub types: Option<Vec<String>>,
    /// Largest number of entries. Default: 1,000.
    #[serde(default)]
    pub limit: Option<usize>,
    /// Approximate largest size of the page, in bytes; at least one entry is returned. Default: 1 MiB.
    #[serde(default)]
    pub max_bytes: Option<usize>,
    /// Cursor: only entries before this one, the newest page first, each page in file order. An entry id, a `nextCursor`, or
    /// `leaf` for the entries up to the end. Not together with `since`.
    #[serde(default)]
    pub before: Option<EntryId>,
}

/// Selection of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Branch {
    /// The active path.
    Active,
    /// Every entry, in file order.
    All,
}

/// Result of `session/entries`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntriesAnswer {
    /// Entries of the page.
    pub entries: Vec<Entry>,
    /// Leaf of the active path.
    pub leaf_entry_id: Option<EntryId>,
    /// Cursor of the next page, for `since` or for `before`, whichever the request has; null on the last page. A page with a cursor
    /// may be shorter than `limit`.
    pub next_cursor: Option<EntryId>,
}

/// Params of `session/entry`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the entry.
    pub entry_id: EntryId,
}

/// Result of `session/entry`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EntryAnswer {
    /// The entry as it was written.
    pub entry: Entry,
}

/// Params of `session/subscribe`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Last event that the client has seen. Retained events after it are sent again.
    #[serde(default)]
    pub after: Option<Seen>,
}

/// Position of an event.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Seen {
    /// Run of the daemon.
    pub epoch: String,
    /// Number of the event.
    pub seq: u64,
}

/// Result of `session/subscribe`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SubscribeAnswer {
    /// Id of this run of the daemon.
    pub epoch: String,
    /// Number of the last event.
    pub seq: u64,
    /// Whether every durable event after `after` is retained.
    pub status: Subscription,
    /// Number of events that are sent again, in order and with their old numbers.
    pub replayed: usize,
    /// State of the session; null where the events that follow are complete.
    pub snapshot: Option<super::StatusAnswer>,
}

/// Completeness of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subscription {
    /// The events that follow are complete.
    Ok,
    /// Some events are lost. The snapshot replaces them.
    Expired,
}
