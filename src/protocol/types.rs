//! What goes in and out of the methods. Token counts are in tokens, timestamps RFC 3339 in UTC.

use super::errors::ErrorData;
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
#[derive(Debug, Clone, Default)]
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
        "Object".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

macro_rules! raw_json {
    ($(#[$doc:meta])* $name:ident, $schema:tt) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Box<RawValue>);

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

raw_json!(
    /// A message in pi's form, byte for byte.
    Message, {
        "description": "A message in pi's form. user: content. assistant: content blocks (text, thinking, toolCall), provider?, model?, usage?, stopReason?, errorMessage?. toolResult: toolCallId, toolName?, content, isError?. bashExecution: command, output, exitCode?. custom, developer: content.",
        "type": "object",
        "properties": {
            "role": { "enum": ["user", "assistant", "toolResult", "bashExecution", "custom", "developer"] },
            "content": { "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "object" } }] },
        },
        "required": ["role"],
    }
);
raw_json!(
    /// An entry of a session file, byte for byte.
    Entry, {
        "description": "An entry of a session file in pi's third version.",
        "type": "object",
        "properties": {
            "type": { "type": "string" },
            "id": { "type": "string" },
            "parentId": { "type": ["string", "null"] },
            "timestamp": { "type": "string" },
        },
        "required": ["type", "id", "parentId"],
    }
);

/// Params of `initialize`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InitializeParams {
    /// The version the client speaks; 1 if omitted.
    pub protocol_version: Option<u32>,
    /// Who it is.
    pub client_info: Option<ClientInfo>,
    /// The daemon ends when this process does.
    pub process_id: Option<i64>,
    /// What it can do.
    pub capabilities: Option<ClientCapabilities>,
}

/// Who a client is.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its name for people.
    pub title: Option<String>,
}

/// What a client can do.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientCapabilities {
    /// Which hooks it answers.
    pub hooks: Option<Object>,
    /// It can execute tools.
    pub tools: Option<Object>,
    /// It can run model calls.
    pub llm: Option<Object>,
    /// Which events it wants.
    pub events: Option<EventCapabilities>,
}

/// Which events a client wants.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EventCapabilities {
    /// Types it does not want.
    pub opt_out: Vec<String>,
}

/// The result of `initialize`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeAnswer {
    /// The version both speak.
    pub protocol_version: u32,
    /// Who we are.
    pub server_info: ServerInfo,
    /// What we can do.
    pub capabilities: ServerCapabilities,
    /// Our limits.
    pub limits: Limits,
    /// This life of the daemon: event numbers are unique within it.
    pub epoch: String,
    /// Where sessions live.
    pub data_dir: String,
}

/// Who we are.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ServerInfo {
    /// `abridged`.
    pub name: &'static str,
    /// Of the program.
    pub version: &'static str,
}

/// What we can do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerCapabilities {
    /// The methods that are answered.
    pub methods: Vec<&'static str>,
    /// The formats of `session/context`.
    pub context_formats: Vec<&'static str>,
    /// How summaries can be made.
    pub compaction_methods: Vec<&'static str>,
}

/// Our limits.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// A larger frame is skipped, in bytes.
    pub max_inbound_frame_bytes: usize,
    /// Events and notifications stay under this, in bytes.
    pub soft_outbound_frame_bytes: usize,
    /// More requests at once are refused.
    pub max_in_flight_requests: usize,
}

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
    /// Who said how large the window is.
    pub window_source: String,
    /// Where the tokens are.
    pub breakdown: Breakdown,
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
}

/// The result of `session/context`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextAnswer {
    /// The messages, valid for a provider.
    pub messages: Vec<Message>,
    /// The entry of each message; null for one that stands in for something missing.
    pub entry_ids: Vec<Option<EntryId>>,
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

/// Params of `session/cancel`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    /// In which session.
    pub session_id: SessionId,
    /// Only this one.
    #[serde(default)]
    pub operation_id: Option<OperationId>,
}

/// The result of `session/cancel`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CancelAnswer {
    /// What was stopped.
    pub cancelled: Vec<Cancelled>,
}

/// Something that was stopped.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// Its id.
    pub operation_id: OperationId,
    /// What it was.
    pub kind: String,
}

/// Params of `session/compact`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactParams {
    /// Which session.
    pub session_id: SessionId,
    /// What to keep above all.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Tokens kept as they are; taken as it is.
    #[serde(default)]
    pub keep_recent_tokens: Option<u64>,
    /// How the summary is made.
    #[serde(default)]
    pub method: Option<CompactMethod>,
    /// `now` if omitted.
    #[serde(default)]
    pub when: Option<When>,
    /// `user` if omitted. An agent is refused below half of the threshold.
    #[serde(default)]
    pub initiator: Option<Initiator>,
    /// Only says what it would do.
    #[serde(default)]
    pub dry_run: Option<bool>,
    /// Answers at the end.
    #[serde(default)]
    pub wait: Option<bool>,
    /// Only if this is still the leaf, or nothing that matters came since.
    #[serde(default)]
    pub expected_leaf_id: Option<EntryId>,
}

/// How a summary is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactMethod {
    /// By a model.
    Llm,
    /// Without one.
    Extractive,
}

/// When a compaction begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At once.
    Now,
    /// When the running turn has ended.
    AfterTurn,
}

/// Who wants a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Initiator {
    /// A person.
    User,
    /// The model itself.
    Agent,
}

/// The result of `session/compact`, by what was asked for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum CompactAnswer {
    /// It runs; its events follow.
    Started {
        /// Its id.
        operation_id: OperationId,
    },
    /// With `wait`: it ended.
    Ended {
        /// Its id.
        operation_id: OperationId,
        /// How.
        outcome: Outcome,
        /// What was written.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Box<CompactionResult>>,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
    },
    /// With `dryRun`: what it would do.
    DryRun {
        /// The plan.
        preparation: Preparation,
    },
}

/// How something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As it should.
    Completed,
    /// With an error.
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// There was nothing to do.
    Skipped,
}

/// A finished compaction.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// Its entry.
    pub entry_id: EntryId,
    /// The summary; null where the frame would pass 60 KiB: read the entry.
    pub summary: Option<String>,
    /// Two sentences for a person.
    pub short_summary: Option<String>,
    /// The first entry that is kept; null where nothing is.
    pub first_kept_entry_id: Option<EntryId>,
    /// Size of the context before.
    pub tokens_before: u64,
    /// Size of the context after, estimated.
    pub tokens_after: u64,
    /// The files, or anything of a hook's.
    pub details: Value,
    /// Whether a hook made it.
    pub from_hook: bool,
    /// How the summary was made.
    pub method: SummaryMethod,
    /// By which model.
    pub model: Option<ModelRef>,
    /// Every candidate that did not become the summary.
    pub rejected: Vec<Rejected>,
}

/// How a summary was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummaryMethod {
    /// By a model.
    Llm,
    /// By an endpoint.
    Remote,
    /// By the provider's own compaction.
    ProviderNative,
    /// Without a model.
    Extractive,
    /// By a hook.
    Hook,
}

/// A candidate that did not become the summary.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Rejected {
    /// How it was made.
    pub method: SummaryMethod,
    /// By which model.
    pub model: Option<ModelRef>,
    /// Why not.
    pub why: String,
}

/// What a compaction would do.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preparation {
    /// The first entry that would be kept; null where nothing would.
    pub first_kept_entry_id: Option<EntryId>,
    /// Messages of whole turns that would be summarized.
    pub messages_to_summarize: usize,
    /// Messages of the turn whose end would be kept.
    pub turn_prefix_messages: usize,
    /// Whether the cut would fall inside a turn.
    pub is_split_turn: bool,
    /// Size of the context now.
    pub tokens_before: u64,
    /// Size of the context after, at the most.
    pub tokens_after_estimate: u64,
    /// The summary that would go into the new one.
    pub previous_summary: Option<String>,
    /// Requests to a model that it would take.
    pub chunks: usize,
    /// Who would write the summary.
    pub summarizer: Summarizer,
    /// The files.
    pub file_ops: FileOps,
    /// Equal for two plans that would do the same to the same session.
    pub plan_hash: String,
}

/// Who writes a summary.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Summarizer {
    /// Nobody: `"extractive"`.
    Extractive(ExtractiveWord),
    /// A model.
    Model(ModelRef),
}

/// The word `extractive`.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExtractiveWord {
    /// `extractive`
    Extractive,
}

/// Files.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FileOps {
    /// Read and not changed.
    pub read: Vec<String>,
    /// Changed.
    pub modified: Vec<String>,
}

/// Params of `settings/get`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingsGetParams {
    /// As they are in force for this session.
    pub session_id: Option<SessionId>,
}

/// Params of `$/cancelRequest`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct CancelLspParams {
    /// The request's id.
    #[schemars(with = "Value")]
    pub id: Box<RawValue>,
}

/// Params of `$/cancel_request`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelAcpParams {
    /// The request's id.
    #[schemars(with = "Value")]
    pub request_id: Box<RawValue>,
}
