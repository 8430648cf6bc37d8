//! What goes in and out of the methods. Token counts are in tokens, timestamps RFC 3339 in UTC.

mod browsing;
mod compaction;
mod connection;
mod reading;
mod settings;
mod shapes;

pub use browsing::*;
pub use compaction::*;
pub use connection::*;
pub use reading::*;
pub use settings::*;

use crate::{
    ids::{EntryId, OperationId, SessionId},
    models::ModelRef,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, value::RawValue};
use std::borrow::Cow;

/// Params of nothing.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Nothing {}

/// An answer of nothing.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Empty {}

/// Any JSON.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct AnyJson(pub Value);

/// An object, or `[]`, which is how an empty Lua table arrives.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Object(pub Map<String, Value>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        match Value::deserialize(reader)? {
            Value::Object(map) => Ok(Self(map)),
            Value::Array(items) if items.is_empty() => Ok(Self::default()),
            Value::Null => Ok(Self::default()),
            _ => Err(serde::de::Error::custom("expected an object")),
        }
    }
}

impl JsonSchema for Object {
    fn schema_name() -> Cow<'static, str> {
        "AnyObject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "Any object.", "type": "object" })
    }
}

macro_rules! raw_json {
    ($(#[$doc:meta])* $name:ident, $schema:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Box<RawValue>);

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                $schema(generator)
            }
        }
    };
}

raw_json!(
    /// A message in pi's form, byte for byte.
    Message, shapes::message
);
raw_json!(
    /// An entry of a session file, byte for byte.
    Entry, shapes::entry
);

/// A session.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionParams {
    /// Which.
    pub session_id: SessionId,
}

/// Params of `session/new`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewParams {
    /// The folder it is about.
    pub cwd: String,
    /// Its name.
    #[serde(default)]
    pub title: Option<String>,
    /// Its model.
    #[serde(default)]
    pub model: Option<ModelRef>,
    /// How much the model thinks.
    #[serde(default)]
    pub thinking_level: Option<String>,
    /// What the model is told before everything.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// The tools the model is given, as they are sent to it.
    #[serde(default)]
    pub tools: Option<Vec<Value>>,
    /// The session it comes from.
    #[serde(default)]
    pub parent_session: Option<String>,
    /// Never on disk.
    #[serde(default)]
    pub ephemeral: Option<bool>,
    /// Settings of its own.
    #[serde(default)]
    pub settings: Option<Object>,
}

/// Params of `session/load`: one of `sessionId` and `path`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadParams {
    /// A session of the data folder.
    pub session_id: Option<SessionId>,
    /// A session file anywhere.
    pub path: Option<String>,
    /// Only to look at: no lock, no write.
    pub read_only: Option<bool>,
    /// Its model from here on.
    pub model: Option<ModelRef>,
    /// What the model is told before everything.
    pub system_prompt: Option<String>,
    /// The tools the model is given, as they are sent to it.
    pub tools: Option<Vec<Value>>,
    /// Settings of its own.
    pub settings: Option<Object>,
}

/// A session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionAnswer {
    /// The session.
    pub session: SessionInfo,
}

/// A loaded session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LoadAnswer {
    /// The session.
    pub session: SessionInfo,
    /// Whether all of the file is known already.
    pub indexed: bool,
    /// What was not as it should be, and is carried on with.
    pub repairs: Vec<Repair>,
}

/// Something in a file that was not as it should be.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Repair {
    /// For example `torn_tail` or `corrupt_line`.
    pub kind: String,
    /// The line, from one, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What was found, and what was done about it.
    pub detail: String,
}

/// A session as clients see it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Its id.
    pub session_id: SessionId,
    /// Its file; null for an ephemeral one.
    pub path: Option<String>,
    /// The folder it is about.
    pub cwd: String,
    /// Its name.
    pub title: Option<String>,
    /// When it began.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// The session it comes from.
    pub parent_session: Option<String>,
    /// The entry the next one follows.
    pub leaf_entry_id: Option<EntryId>,
    /// How many entries there are; null until indexed.
    pub entry_count: Option<usize>,
    /// Its model.
    pub model: Option<ModelRef>,
    /// How much the model thinks.
    pub thinking_level: String,
    /// What it is doing.
    pub status: Status,
    /// How full it is.
    pub usage: Usage,
}

/// What a session is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// In a word.
    #[serde(rename = "type")]
    pub kind: StatusKind,
    /// What runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<OperationId>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a session is doing, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusKind {
    /// Nothing.
    Idle,
    /// A turn.
    Running,
    /// A compaction.
    Compacting,
    /// Waiting to try again.
    Retrying,
    /// A handoff.
    HandingOff,
    /// A summary of a branch.
    SummarizingBranch,
    /// It ended badly.
    Error,
}

/// How full a context is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens in the context.
    pub context_tokens: u64,
    /// Size of the window.
    pub context_window: Option<u64>,
    /// Of the window, 0 to 100 and over.
    pub percent: Option<f64>,
    /// Over this it is compacted.
    pub threshold_tokens: Option<u64>,
    /// Room kept for the next answer.
    pub reserve_tokens: u64,
    /// Who counted.
    pub source: UsageSource,
    /// Whether it is compacted by itself.
    pub auto_compaction: bool,
    /// Who said how large the window is: `setting`, `learned`, `catalog` or `default`.
    pub window_source: String,
    /// Where the tokens are.
    pub breakdown: Breakdown,
    /// How the estimated part was counted: `chars` until the tokenizer's tables are loaded, then `o200k_base` for good.
    pub estimator: String,
}

/// Who counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// The provider's last report, with an estimate of what came since.
    Provider,
    /// An estimate of everything.
    Estimate,
}

/// Where the tokens of a context are, estimated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Breakdown {
    /// The system prompt.
    pub system: u64,
    /// The tools.
    pub tools: u64,
    /// The summary.
    pub summary: u64,
    /// The messages.
    pub messages: u64,
}

/// Params of `session/list`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ListParams {
    /// Only those about this folder.
    pub cwd: Option<String>,
    /// Only those with this in their title, folder or first message.
    pub search: Option<String>,
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// At most so many; 100 if omitted.
    pub limit: Option<usize>,
}

/// The result of `session/list`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListAnswer {
    /// Newest first.
    pub sessions: Vec<ListedSession>,
    /// For the next page.
    pub next_cursor: Option<String>,
}

/// A session in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedSession {
    /// Its id.
    pub session_id: SessionId,
    /// Its file.
    pub path: String,
    /// The folder it is about.
    pub cwd: String,
    /// Its name.
    pub title: Option<String>,
    /// How its first user message begins.
    pub preview: Option<String>,
    /// When it last changed.
    pub updated_at: String,
    /// Size of the file.
    pub size_bytes: u64,
    /// What it is doing, if it is open here.
    pub status: Option<Status>,
}

/// The result of `session/status`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StatusAnswer {
    /// The session.
    pub session: SessionInfo,
    /// Messages that wait for their turn.
    pub queue: Queue,
    /// What runs.
    pub operations: Vec<RunningOperation>,
    /// How often the disk was touched: `{writes, fsyncs}`.
    #[serde(rename = "_meta")]
    pub meta: Value,
}

/// Messages that wait for their turn.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// For between two tool calls.
    pub steering: Vec<Queued>,
    /// For the end of the turn.
    pub follow_up: Vec<Queued>,
}

/// A message that waits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Queued {
    /// Its id.
    pub id: String,
    /// Its text.
    pub text: String,
}

/// Something that runs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunningOperation {
    /// Its id.
    pub operation_id: OperationId,
    /// What it is.
    pub kind: String,
    /// Why it runs.
    pub reason: String,
    /// Since when.
    pub started_at: String,
}

/// Params of `session/append`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendParams {
    /// To which session.
    pub session_id: SessionId,
    /// What happened, in order.
    pub messages: Vec<Message>,
    /// Behind this entry instead of the leaf.
    #[serde(default)]
    pub parent_entry_id: Option<EntryId>,
    /// Only if this is still the leaf, or nothing that matters came since.
    #[serde(default)]
    pub expected_leaf_id: Option<EntryId>,
}

/// The result of `session/append`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendAnswer {
    /// The new entries, in order.
    pub entry_ids: Vec<EntryId>,
    /// The leaf now.
    pub leaf_entry_id: Option<EntryId>,
    /// How full the context is now.
    pub usage: Usage,
    /// What the daemon does about it.
    pub next: Next,
}

/// What the daemon does after an append.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Next {
    /// Nothing.
    None,
    /// It makes room; its events follow.
    Maintenance {
        /// What runs.
        operation_id: OperationId,
        /// Why.
        reason: String,
        /// Whether the turn should be tried again afterwards.
        will_retry: bool,
    },
}

/// The result of `session/usage`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UsageAnswer {
    /// How full the context is.
    #[serde(flatten)]
    pub usage: Usage,
    /// What is compared with what.
    pub thresholds: Thresholds,
    /// Why it is or is not compacted now, for a person.
    pub why: String,
}

/// What is compared with what.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Thresholds {
    /// Over this it is compacted.
    pub threshold_tokens: u64,
    /// A compaction aims below this.
    pub target_tokens: u64,
    /// System prompt and tools: no compaction makes them smaller.
    pub fixed_overhead_tokens: u64,
    /// The largest summary.
    pub summary_tokens: u64,
    /// What is kept as it is.
    pub keep_recent_tokens: u64,
    /// Reported over estimated tokens; null before any report.
    pub calibration: Option<f64>,
    /// By what tokens are estimated: `tiktoken`, or `chars` until its tables are loaded.
    pub estimator: String,
}
