//! Params and results of the methods. Token counts are in tokens, timestamps are RFC 3339 in UTC.

mod browsing;
mod compaction;
mod connection;
mod fitting;
mod forking;
mod hooks;
mod importing;
mod kinds;
mod messages;
mod reading;
mod set_elsewhere;
mod settings;
mod shapes;
mod spending;
mod thinking;
mod tools;
mod transfers;
mod turns;
mod why;

pub use browsing::*;
pub use compaction::*;
pub use connection::*;
pub use fitting::*;
pub use forking::*;
pub use hooks::*;
pub use importing::*;
pub use kinds::{OperationName, ThingName};
pub use messages::MOST_MESSAGES;
pub use reading::*;
pub use set_elsewhere::SetElsewhere;
pub use settings::*;
pub use shapes::{AssistantMessage, Block, CallArguments, PromptBlock, ToolDefinition};
pub use spending::*;
pub use thinking::ThinkingLevel;
pub use tools::Tools;
pub use transfers::*;
pub use turns::*;
pub use why::WhyCode;

use crate::{
    compaction::{
        cold::ColdResume,
        gauge::{Fullness, Source},
        resting::AutoCompaction,
    },
    conversation::{entry, path::Path, undo},
    ids::{EntryId, OperationId, SessionId},
    models::ModelRef,
    settings::{Settings, TokenLimit},
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, value::RawValue};
use std::borrow::Cow;

/// Empty params.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct Nothing {}

/// An empty result.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Empty {}

/// Any JSON value.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct AnyJson(pub Value);

/// An object. `[]` is accepted too: an empty Lua table arrives in this form.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
    /// A message in pi's form, passed through byte for byte.
    Message, shapes::message
);
raw_json!(
    /// A message in pi's form, or in the form of a provider.
    GivenMessage, shapes::given_message
);
raw_json!(
    /// Token counts in the form of a provider.
    GivenUsage, shapes::given_usage
);
raw_json!(
    /// An entry of a session file, passed through byte for byte.
    Entry, shapes::entry
);

/// Params of a method that needs the session alone.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionParams {
    /// Id of the session.
    pub session_id: SessionId,
}

/// Params of `session/new`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewParams {
    /// Working folder of the session; an absolute path.
    pub cwd: String,
    /// Title of the session.
    #[serde(default)]
    pub title: Option<String>,
    /// Model of the session. Default: the setting `defaultModel`.
    #[serde(default)]
    pub model: Option<ModelRef>,
    /// Thinking level of the model.
    #[serde(default)]
    pub thinking_level: Option<ThinkingLevel>,
    /// System prompt.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// Tools of the model.
    #[serde(default)]
    pub tools: Option<Tools>,
    /// Path of the session that this session continues.
    #[serde(default)]
    pub parent_session: Option<String>,
    /// Keep the session in memory only.
    #[serde(default)]
    pub ephemeral: Option<bool>,
    /// Settings of this session.
    #[serde(default)]
    #[schemars(with = "Option<Settings>")]
    pub settings: Option<Object>,
    /// Size of the window of the session's model, in tokens, in place of that in `models`.
    #[serde(default)]
    pub context_window: Option<TokenLimit>,
    /// The longest answer of the session's model, in tokens.
    #[serde(default)]
    pub max_output_tokens: Option<TokenLimit>,
}

/// Params of `session/load`: one of `sessionId` and `path`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadParams {
    /// Id of a session in the data folder.
    pub session_id: Option<SessionId>,
    /// Path of a session file.
    pub path: Option<String>,
    /// Open without a lock and without the right to write.
    pub read_only: Option<bool>,
    /// Model of the session from here on.
    pub model: Option<ModelRef>,
    /// System prompt.
    pub system_prompt: Option<String>,
    /// Tools of the model.
    pub tools: Option<Tools>,
    /// Settings of this session.
    #[schemars(with = "Option<Settings>")]
    pub settings: Option<Object>,
    /// Size of the window of the session's model, in tokens, in place of that in `models`.
    pub context_window: Option<TokenLimit>,
    /// The longest answer of the session's model, in tokens.
    pub max_output_tokens: Option<TokenLimit>,
}

/// Result of methods that return one session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SessionAnswer {
    /// The session.
    pub session: SessionInfo,
}

/// Result of `session/load`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LoadAnswer {
    /// The session.
    pub session: SessionInfo,
    /// Whether the whole file is indexed already.
    pub indexed: bool,
    /// Faults found in the file, each with the way it was handled.
    pub repairs: Vec<Repair>,
}

/// A fault in a session file and the way it was handled.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Repair {
    /// Kind of the fault, for example `torn_tail` or `corrupt_line`.
    pub kind: String,
    /// Line number, counted from 1, for a fault of one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Fault and handling, for a person.
    pub detail: String,
}

/// State of a session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Id of the session.
    pub session_id: SessionId,
    /// Path of the file; null for an ephemeral session.
    pub path: Option<String>,
    /// Working folder.
    pub cwd: String,
    /// Title.
    pub title: Option<String>,
    /// Time at which the session was created.
    pub created_at: String,
    /// Time of the last change.
    pub updated_at: String,
    /// Path of the session that this session continues.
    pub parent_session: Option<String>,
    /// Entry at the end of the active path; the parent of the next entry.
    pub leaf_entry_id: Option<EntryId>,
    /// Number of entries; null until the file is indexed.
    pub entry_count: Option<usize>,
    /// Model of the session.
    pub model: Option<ModelRef>,
    /// Thinking level of the model.
    pub thinking_level: String,
    /// Activity of the session.
    pub status: Status,
    /// Fullness of the context.
    pub usage: Usage,
}

/// Activity of a session.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Kind of activity.
    #[serde(rename = "type")]
    pub kind: StatusKind,
    /// Id of the running operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<OperationId>,
    /// Reason of the running operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Kinds of activity.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusKind {
    /// No operation runs.
    #[default]
    Idle,
    /// A turn runs.
    Running,
    /// A compaction runs.
    Compacting,
    /// A failed request waits for its retry.
    Retrying,
    /// A handoff runs.
    HandingOff,
    /// A branch summary runs.
    SummarizingBranch,
    /// The last turn failed.
    Error,
}

/// Fullness of a context.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Size of the context.
    pub context_tokens: u64,
    /// Size of the model's window.
    pub context_window: Option<u64>,
    /// Size of the context in percent of the window; may exceed 100.
    pub percent: Option<f64>,
    /// Size above which the context is compacted.
    pub threshold_tokens: Option<u64>,
    /// Room that is reserved for the next answer.
    pub reserve_tokens: u64,
    /// Source of `contextTokens`.
    pub source: UsageSource,
    /// Whether automatic compaction is on. `"resting"`: it is, and a compaction was undone, so it acts when the context is near
    /// its window.
    pub auto_compaction: AutoCompaction,
    /// Source of `contextWindow`: `setting`, `learned`, `catalog` or `default`.
    pub window_source: String,
    /// Whether `session/undo_compaction` has a compaction or a reset to undo.
    pub can_undo: bool,
    /// Estimated share of each part of the context.
    pub breakdown: Breakdown,
    /// Estimator of the estimated part: `chars` until the tokenizer's tables are loaded, then `o200k_base` for good.
    pub estimator: String,
    /// Costs of the next request where the prompt cache is cold by the age of the newest report and the context is over
    /// `compaction.coldResumeTokens`. Only in the answers of `session/usage`, `session/load` and `session/status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cold_resume: Option<Box<ColdResume>>,
}

impl Usage {
    /// The fullness of a path.
    #[must_use]
    pub fn of(fullness: &Fullness, path: &Path) -> Self {
        let Fullness { context_tokens, summary_tokens: summary, budget, .. } = *fullness;
        let (system, tools) = (budget.system, budget.tools);
        Self {
            context_tokens,
            context_window: Some(budget.window),
            percent: Some((context_tokens as f64 / budget.window as f64 * 1_000.0).round() / 10.0),
            threshold_tokens: Some(budget.threshold),
            reserve_tokens: budget.reserve,
            source: match fullness.source {
                Source::Report => UsageSource::Provider,
                Source::Estimate => UsageSource::Estimate,
            },
            auto_compaction: fullness.auto_compaction(path),
            window_source: fullness.window_source.name().to_owned(),
            can_undo: undo::is_possible(path),
            breakdown: Breakdown {
                system,
                tools,
                summary,
                messages: context_tokens.saturating_sub(system + tools + summary),
            },
            estimator: fullness.scale.estimator().name().to_owned(),
            cold_resume: None,
        }
    }
}

/// Source of a context's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// The provider's last report, plus an estimate of the entries after it.
    Provider,
    /// An estimate of the whole context.
    Estimate,
}

/// Estimated share of each part of a context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Breakdown {
    /// System prompt.
    pub system: u64,
    /// Tools.
    pub tools: u64,
    /// Summary.
    pub summary: u64,
    /// Messages.
    pub messages: u64,
}

/// Params of `session/list`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ListParams {
    /// Only sessions with this working folder.
    pub cwd: Option<String>,
    /// Only sessions with this text in their title, folder or first message.
    pub search: Option<String>,
    /// `nextCursor` of the page before.
    pub cursor: Option<String>,
    /// Largest number of sessions. Default: 100.
    pub limit: Option<usize>,
}

/// Result of `session/list`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListAnswer {
    /// Sessions, newest first.
    pub sessions: Vec<ListedSession>,
    /// Cursor of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

/// A session in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedSession {
    /// Id of the session.
    pub session_id: SessionId,
    /// Path of the file.
    pub path: String,
    /// Working folder.
    pub cwd: String,
    /// File of the session that it comes from, as its header names it; null where it comes from none. The id of that
    /// session where it had no file.
    pub parent_session: Option<String>,
    /// Id of the session that it comes from; null where it comes from none, or the name of its file does not tell it.
    pub parent_session_id: Option<SessionId>,
    /// Title.
    pub title: Option<String>,
    /// Beginning of the first user message.
    pub preview: Option<String>,
    /// Time at which the session was created.
    pub created_at: String,
    /// Time of the last change.
    pub updated_at: String,
    /// Number of entries; null until the daemon has indexed the file.
    pub entry_count: Option<usize>,
    /// Size of the context in percent of the window; null until the daemon has opened the session.
    pub percent: Option<f64>,
    /// Size of the file, in bytes.
    pub size_bytes: u64,
    /// Activity; null for a session that is not open in this daemon.
    pub status: Option<Status>,
}

/// Result of `session/status`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StatusAnswer {
    /// The session.
    pub session: SessionInfo,
    /// Queued messages.
    pub queue: Queue,
    /// Operations that run.
    pub operations: Vec<RunningOperation>,
    /// Compactions that wait for the end of the turn. The session is not busy because of them.
    pub waiting: Vec<WaitingOperation>,
    /// Tokens that models took for work beside the turns.
    pub spent: Spent,
    /// The requests for the summary in force. Absent where no model was asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryStatus>,
    /// Hooks that the client answers for this session. Absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<HooksInForce>,
    /// Number of disk operations: `{writes, fsyncs}`.
    #[serde(rename = "_meta")]
    pub meta: Value,
}

/// The requests for the summary in force.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SummaryStatus {
    /// Compaction of the summary.
    pub entry_id: EntryId,
    /// Form of the requests; null where no model wrote the summary, and for a provider's own compaction.
    pub form: Option<entry::SummaryForm>,
    /// Savings by the provider's cache; null where nothing was read from it.
    pub saved: Option<Saved>,
}

/// Messages that wait to be sent to the model.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// Messages for the next pause between two tool calls.
    pub steering: Vec<Queued>,
    /// Messages for the end of the turn.
    pub follow_up: Vec<Queued>,
}

/// A queued message.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Queued {
    /// Id of the message.
    pub id: String,
    /// Text of the message.
    pub text: String,
}

/// A running operation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunningOperation {
    /// Id of the operation.
    pub operation_id: OperationId,
    /// Kind of the operation.
    #[schemars(with = "OperationName")]
    pub kind: String,
    /// Reason of the operation.
    pub reason: String,
    /// Time of its start.
    pub started_at: String,
}

/// An operation that was asked for and waits for its start.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingOperation {
    /// Id of the operation. `session/cancel` takes it.
    pub operation_id: OperationId,
    /// Kind of the operation: `compaction`.
    pub kind: String,
    /// Reason of the operation.
    pub reason: String,
    /// Event for which it waits.
    pub when: When,
    /// Time of the request.
    pub since: String,
    /// Whether it has instructions for the summary.
    pub has_instructions: bool,
}

/// Params of `session/append`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Messages in the order in which they happened. In a provider's format: messages, items or contents of a request, and
    /// answers; a message with several tool results becomes several entries.
    #[serde(deserialize_with = "messages::read")]
    #[schemars(length(max = 50_000))]
    pub messages: Vec<GivenMessage>,
    /// Format of the messages. Default: `messages`.
    #[serde(default)]
    pub format: Option<MessageFormat>,
    /// Usage of the answer at the end of messages in a provider's format, in the fields of that provider.
    #[serde(default)]
    pub usage: Option<GivenUsage>,
    /// Stop reason of that answer, as the provider states it; also `error` or `aborted`.
    #[serde(default)]
    pub stop_reason: Option<String>,
    /// The provider's error text; the answer failed. With no message, the answer is empty.
    #[serde(default)]
    pub error_message: Option<String>,
    /// Parent of the first entry. Default: the leaf; for a tool result whose call is on another branch, the end of that
    /// branch, and the leaf stays.
    #[serde(default)]
    pub parent_entry_id: Option<EntryId>,
    /// Expected leaf. The request fails if another message or compaction follows this entry.
    #[serde(default)]
    pub expected_leaf_id: Option<EntryId>,
    /// `contextId` of the context that the answer was made for. Default: the last context in a provider's format or with
    /// `wait`, else the path before the answer. A report of a context that was rewritten since counts for nothing. The context
    /// of another session is invalid, unless this one is a fork that has its entries.
    #[serde(default)]
    pub context_id: Option<String>,
}

impl AppendParams {
    /// Messages that the daemon appends itself. `context_id`: the context that an answer was made for.
    #[must_use]
    pub fn own(session_id: SessionId, messages: Vec<GivenMessage>, context_id: Option<String>) -> Self {
        Self {
            session_id,
            messages,
            format: None,
            usage: None,
            stop_reason: None,
            error_message: None,
            parent_entry_id: None,
            expected_leaf_id: None,
            context_id,
        }
    }
}

/// Result of `session/append`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendAnswer {
    /// Ids of the new entries, in order.
    pub entry_ids: Vec<EntryId>,
    /// Leaf after the append.
    pub leaf_entry_id: Option<EntryId>,
    /// Fullness of the context after the append.
    pub usage: Usage,
    /// Maintenance that follows.
    pub next: Next,
}

/// Maintenance that follows an append, or a change of the model.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Next {
    /// No maintenance.
    #[default]
    None,
    /// A maintenance operation. Its events follow.
    Maintenance {
        /// Id of the operation.
        operation_id: OperationId,
        /// Reason of the operation.
        reason: String,
        /// Whether the client repeats the turn afterwards.
        will_retry: bool,
        /// Whether the session continues without input afterwards.
        will_continue: bool,
    },
    /// The request fits with a smaller answer. Nothing runs.
    Retry {
        /// Always true: the client repeats the turn.
        will_retry: bool,
        /// Largest answer of the next request, in tokens. The next context carries it.
        max_output_tokens: u64,
        /// Reason, for a person.
        why: String,
    },
}

/// Result of `session/usage`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UsageAnswer {
    /// Fullness of the context.
    #[serde(flatten)]
    pub usage: Usage,
    /// Sizes that the decision compares.
    pub thresholds: Thresholds,
    /// Reason why the context is compacted now or not, for a person.
    pub why: String,
    /// The same reason for a program.
    pub code: WhyCode,
}

/// Sizes that the decision to compact compares.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Thresholds {
    /// Size above which the context is compacted.
    pub threshold_tokens: u64,
    /// Size below which a compaction brings the context.
    pub target_tokens: u64,
    /// Size of system prompt and tools, which a compaction cannot reduce.
    pub fixed_overhead_tokens: u64,
    /// Largest size of a summary.
    pub summary_tokens: u64,
    /// Size of the newest messages that are kept verbatim.
    pub keep_recent_tokens: u64,
    /// Ratio of reported to estimated tokens; null before the first report.
    pub calibration: Option<f64>,
    /// Estimator: `tiktoken`, or `chars` until its tables are loaded.
    pub estimator: String,
}
