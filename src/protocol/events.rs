//! The events of a session.

use super::{
    errors::ErrorData,
    types::{CompactionResult, Entry, Outcome, Repair, Status, Usage},
};
use crate::{
    ids::{EntryId, OperationId, SessionId},
    settings::{Settings, Source},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a client is told without having asked.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[schemars(rename = "SessionEvent")]
pub enum Event {
    /// An entry is on disk. A large one is announced by its type alone; its id is in the envelope.
    EntryAppended {
        /// The entry.
        #[serde(skip_serializing_if = "Option::is_none")]
        entry: Option<Entry>,
        /// Its type, where it is too large to be sent along.
        #[serde(skip_serializing_if = "Option::is_none")]
        entry_type: Option<String>,
    },
    /// A compaction begins.
    CompactionStart {
        /// Why.
        reason: Reason,
        /// What is done.
        strategy: Strategy,
        /// Size of the context now.
        tokens_before: u64,
        /// Size of the window.
        context_window: u64,
        /// Over this it is compacted.
        threshold_tokens: u64,
        /// Whether the turn is tried again afterwards.
        will_retry: bool,
    },
    /// How far it is.
    CompactionProgress {
        /// At what.
        stage: Stage,
        /// Steps done of this stage.
        done: usize,
        /// Steps of this stage.
        total: usize,
    },
    /// A piece of the summary.
    SummaryChunk {
        /// Which part of it.
        source: ChunkSource,
        /// Which try: pieces of an earlier one are void.
        attempt: u32,
        /// The piece.
        text: String,
    },
    /// A request to a model failed and is sent again after a while.
    RetryStart {
        /// What it is for.
        source: RetrySource,
        /// Which try again this will be, from 1.
        attempt: u32,
        /// So many there are at most.
        max_attempts: u32,
        /// After how long.
        delay_ms: u64,
        /// Why it failed.
        error: ErrorData,
        /// The same for a person.
        error_message: String,
    },
    /// How that went. Exactly one for each start.
    RetryEnd {
        /// What it is for.
        source: RetrySource,
        /// Whether there was an answer.
        success: bool,
        /// Which try again it was.
        attempt: u32,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
        /// The same for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// A compaction ended. Exactly one for each start.
    CompactionEnd {
        /// Why it ran.
        reason: Reason,
        /// How it ended.
        outcome: Outcome,
        /// What was written.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Box<CompactionResult>>,
        /// Where a handoff went.
        #[serde(skip_serializing_if = "Option::is_none")]
        new_session_id: Option<SessionId>,
        /// Why it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorData>,
        /// The same for a person.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
        /// Why there was nothing to do.
        #[serde(skip_serializing_if = "Option::is_none")]
        skipped_reason: Option<String>,
        /// Whether the turn is tried again now.
        will_retry: bool,
        /// Whether the session goes on by itself now.
        will_continue: bool,
        /// How long it took.
        duration_ms: u64,
        /// How full the context is now.
        usage: Usage,
    },
    /// How full the context is now.
    UsageUpdated {
        /// The whole value.
        usage: Usage,
    },
    /// What the session is doing now.
    StatusChanged {
        /// The whole value.
        status: Status,
    },
    /// Old tool results gave way to a line about each.
    Pruned {
        /// Which.
        entry_ids: Vec<EntryId>,
        /// What that frees, estimated.
        tokens_saved: u64,
        /// Why.
        why: String,
    },
    /// Every entry is known now: what needs that does not wait any more.
    IndexReady {
        /// How many there are.
        entry_count: usize,
        /// The session's name.
        title: Option<String>,
        /// What was odd about the file, beyond what `session/load` has said.
        repairs: Vec<Repair>,
    },
    /// The settings in force for this session are different now.
    SettingsChanged {
        /// All of them.
        settings: Box<Settings>,
        /// Where each value that is not a default comes from, by its dotted key.
        sources: BTreeMap<String, Source>,
    },
    /// Something a person may want to know.
    Notice {
        /// How much.
        severity: Severity,
        /// In a line.
        title: String,
        /// In more.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// Nothing will run any more without input.
    Settled {
        /// Whether somebody stopped it.
        aborted: bool,
    },
}

/// Why a compaction runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CompactionReason")]
pub enum Reason {
    /// Somebody asked for it.
    Manual,
    /// The context is over its threshold.
    Threshold,
    /// The provider refused the context as too long.
    Overflow,
    /// The answer was cut off.
    Incomplete,
    /// The user is away.
    Idle,
    /// The new model has a smaller window.
    ModelSwitch,
}

impl Reason {
    /// As it stands in a lock file.
    #[must_use]
    pub fn read(text: &str) -> Self {
        serde_json::from_value(text.into()).unwrap_or(Self::Manual)
    }
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "CompactionStrategy")]
pub enum Strategy {
    /// The old part is summarized in place.
    ContextFull,
    /// A new session goes on from a document.
    Handoff,
}

/// What a compaction is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Old results are cut.
    Pruning,
    /// A client is asked.
    Hook,
    /// The summary is made.
    Summarizing,
    /// What would result is measured.
    Checking,
    /// It is written.
    Writing,
}

/// Which part of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChunkSource {
    /// The whole turns.
    History,
    /// The beginning of the turn whose end is kept.
    TurnPrefix,
    /// A branch.
    Branch,
    /// A handoff's document.
    Handoff,
}

/// What a request to a model is for that is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetrySource {
    /// A turn.
    Turn,
    /// A summary of whole turns.
    History,
    /// A summary of the beginning of a turn.
    TurnPrefix,
    /// Two sentences for a person.
    ShortSummary,
    /// A summary of a branch.
    Branch,
    /// A handoff's document.
    Handoff,
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// To know.
    Info,
    /// To look at.
    Warning,
    /// To do something about.
    Error,
}

/// The params of `session/event`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// In which session.
    pub session_id: SessionId,
    /// In which life of the daemon.
    pub epoch: String,
    /// Its number: no gap within a session and epoch.
    pub seq: u64,
    /// When.
    pub ts: String,
    /// Whether it is kept for replay.
    pub durable: bool,
    /// About which entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<EntryId>,
    /// Of which operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<OperationId>,
    /// What happened.
    pub event: Event,
}

impl Event {
    /// Its `type`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::EntryAppended { .. } => "entry_appended",
            Self::CompactionStart { .. } => "compaction_start",
            Self::CompactionProgress { .. } => "compaction_progress",
            Self::SummaryChunk { .. } => "summary_chunk",
            Self::RetryStart { .. } => "retry_start",
            Self::RetryEnd { .. } => "retry_end",
            Self::CompactionEnd { .. } => "compaction_end",
            Self::UsageUpdated { .. } => "usage_updated",
            Self::StatusChanged { .. } => "status_changed",
            Self::Pruned { .. } => "pruned",
            Self::IndexReady { .. } => "index_ready",
            Self::SettingsChanged { .. } => "settings_changed",
            Self::Notice { .. } => "notice",
            Self::Settled { .. } => "settled",
        }
    }

    /// Whether it is kept for replay and dropped last.
    #[must_use]
    pub fn durable(&self) -> bool {
        !matches!(self, Self::SummaryChunk { .. } | Self::CompactionProgress { .. } | Self::UsageUpdated { .. })
    }

    /// Whether a later one of its kind says all that it says.
    #[must_use]
    pub fn replaced_by_next(&self) -> bool {
        matches!(self, Self::CompactionProgress { .. } | Self::UsageUpdated { .. })
    }
}
