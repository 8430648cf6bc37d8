//! Every way a request can fail, and its code on the wire. The only place with numbers.

use crate::{
    compaction::{ladder::Floor, plan::NothingToDo},
    ids::{EntryId, OperationId},
    log::store::StoreError,
};
use jsonrpsee::types::ErrorObjectOwned;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Why a request failed. The text says what to do next.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// Not JSON.
    #[error("not JSON: {0}")]
    Parse(String),
    /// JSON, but no request.
    #[error("{0}")]
    InvalidRequest(String),
    /// A second `initialize`.
    #[error("this connection is initialized already; start another process for another client")]
    AlreadyInitialized,
    /// A frame over the limit.
    #[error("the frame has more than {limit} bytes and was skipped; send the data in smaller parts")]
    FrameTooLarge { limit: usize },
    /// No such method.
    #[error("there is no method `{0}`; rpc.discover lists those there are")]
    MethodNotFound(String),
    /// Params that are not what the method takes.
    #[error("{}{what}", if .path.is_empty() { String::new() } else { format!("{}: ", .path) })]
    InvalidParams { path: String, what: String },
    /// A defect of ours.
    #[error("{0}")]
    Internal(String),
    /// The client took it back.
    #[error("cancelled")]
    Cancelled,
    /// The session is not what the client thinks it is.
    #[error("the session has changed since; its leaf is {}", .leaf.as_ref().map_or("none", |leaf| leaf.as_str()))]
    ContentModified { leaf: Option<EntryId> },
    /// Too much at once.
    #[error("too many requests at once; send it again in {retry_after_ms} ms")]
    Overloaded { retry_after_ms: u64 },
    /// No such thing.
    #[error("{what}")]
    NotFound { kind: &'static str, what: String },
    /// Something runs already.
    #[error("a {kind} is running ({operation_id}); wait for its end event, or stop it with session/cancel")]
    Busy { operation_id: OperationId, kind: &'static str },
    /// Another process has the session.
    #[error("{what}")]
    Locked { pid: Option<u32>, what: String },
    /// There is nothing to compact.
    #[error("{}", match .0 {
        Nothing::AlreadyCompacted => "nothing came since the last compaction",
        Nothing::TooShort => "the conversation is shorter than what is kept as it is; a smaller keepRecentTokens would compact it",
        Nothing::BelowHalfThreshold => "the context is less than half full, and an agent may not compact it then; a user may",
    })]
    NothingToCompact(Nothing),
    /// Nothing makes the context small enough.
    #[error("even without its history the context does not fit: system prompt and tools take {} tokens, what is left {}, of a window of {}; use a larger model, fewer tools, or a shorter message", .0.system + .0.tools, .0.latest_turn, .0.window)]
    ContextOverflow(Floor),
    /// A model did not answer.
    #[error("{what}")]
    Provider {
        /// The provider's name.
        provider: String,
        /// The model's name there.
        model: String,
        /// The HTTP status, where there was one.
        status: Option<u16>,
        /// Whether it may work later.
        retryable: bool,
        /// What happened and what to do.
        what: String,
    },
    /// The operating system refused.
    #[error("{what}")]
    Storage { path: String, errno: Option<i32>, what: String },
    /// Not initialized yet.
    #[error("send `initialize` first")]
    NotInitialized,
    /// Another version of the protocol.
    #[error("protocol version {0} is not spoken here, only 1")]
    UnsupportedProtocolVersion(u32),
}

/// Why there is nothing to compact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    /// Nothing came since the last one.
    AlreadyCompacted,
    /// All of it is kept.
    TooShort,
    /// An agent asked too early.
    BelowHalfThreshold,
}

/// `error.data`: what clients branch on. Its schema is in `codes.rs`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// Which error.
    pub code: String,
    /// Whether the same request may work later.
    pub retryable: bool,
    /// What is special to this one.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Failure {
    /// Params at `path` that are not what they should be.
    pub fn params(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self::InvalidParams { path: path.into(), what: what.into() }
    }

    /// A session that is not open here.
    #[must_use]
    pub fn no_session(id: &str) -> Self {
        Self::NotFound { kind: "session", what: format!("session {id} is not open here; open it with session/load") }
    }

    /// An entry that is not in the session.
    #[must_use]
    pub fn no_entry(id: &EntryId) -> Self {
        Self::NotFound {
            kind: "entry",
            what: format!("there is no entry {id} in this session; session/entries lists them"),
        }
    }

    fn number_and_name(&self) -> (i32, &'static str) {
        match self {
            Self::Parse(_) => (-32700, "parse_error"),
            Self::InvalidRequest(_) => (-32600, "invalid_request"),
            Self::AlreadyInitialized => (-32600, "already_initialized"),
            Self::FrameTooLarge { .. } => (-32600, "frame_too_large"),
            Self::MethodNotFound(_) => (-32601, "method_not_found"),
            Self::InvalidParams { .. } => (-32602, "invalid_params"),
            Self::Internal(_) => (-32603, "internal"),
            Self::Cancelled => (-32800, "request_cancelled"),
            Self::ContentModified { .. } => (-32801, "content_modified"),
            Self::Overloaded { .. } => (-32001, "overloaded"),
            Self::NotFound { .. } => (-32002, "not_found"),
            Self::Busy { .. } => (-32003, "busy"),
            Self::Locked { .. } => (-32004, "locked"),
            Self::NothingToCompact(_) => (-32005, "nothing_to_compact"),
            Self::ContextOverflow(_) => (-32007, "context_overflow"),
            Self::Provider { .. } => (-32008, "provider_error"),
            Self::Storage { .. } => (-32009, "storage_error"),
            Self::NotInitialized => (-32010, "not_initialized"),
            Self::UnsupportedProtocolVersion(_) => (-32022, "unsupported_protocol_version"),
        }
    }

    /// What clients branch on.
    #[must_use]
    pub fn data(&self) -> ErrorData {
        let rest = match self {
            Self::InvalidParams { path, .. } => json!({ "path": path }),
            Self::ContentModified { leaf } => json!({ "leafEntryId": leaf }),
            Self::Overloaded { retry_after_ms } => json!({ "retryAfterMs": retry_after_ms }),
            Self::NotFound { kind, .. } => json!({ "kind": kind }),
            Self::Busy { operation_id, kind } => {
                json!({ "operationId": operation_id, "kind": kind })
            }
            Self::Locked { pid, .. } => json!({ "pid": pid }),
            Self::NothingToCompact(reason) => json!({ "reason": match reason {
                Nothing::AlreadyCompacted => "already_compacted",
                Nothing::TooShort => "too_short",
                Nothing::BelowHalfThreshold => "below_half_threshold",
            } }),
            Self::ContextOverflow(floor) => json!({
                "floor": { "system": floor.system, "tools": floor.tools, "pins": floor.pins, "latestTurn": floor.latest_turn },
                "contextWindow": floor.window,
            }),
            Self::Provider { provider, model, status, .. } => {
                json!({ "provider": provider, "model": model, "httpStatus": status })
            }
            Self::Storage { path, errno, .. } => json!({ "path": path, "errno": errno }),
            Self::UnsupportedProtocolVersion(_) => json!({ "supported": [super::VERSION] }),
            _ => json!({}),
        };
        let Value::Object(rest) = rest else { unreachable!("every one of them is an object") };
        let retryable = match self {
            // The disk may have room again; a session that is read-only stays so.
            Self::Storage { errno, .. } => errno.is_some(),
            Self::Provider { retryable, .. } => *retryable,
            Self::Overloaded { .. } | Self::Busy { .. } | Self::Locked { .. } | Self::ContentModified { .. } => true,
            _ => false,
        };
        ErrorData { code: self.number_and_name().1.to_owned(), retryable, rest }
    }

    /// As it goes onto the wire.
    #[must_use]
    pub fn object(&self) -> ErrorObjectOwned {
        ErrorObjectOwned::owned(self.number_and_name().0, self.to_string(), Some(self.data()))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let what = error.to_string();
        let errno = match &error {
            StoreError::Io { source, .. } => source.raw_os_error(),
            _ => None,
        };
        match error {
            StoreError::Locked { pid } => Self::Locked { pid, what },
            StoreError::Missing(_) => Self::NotFound { kind: "session", what },
            StoreError::Foreign { .. } => Self::params("path", what),
            StoreError::Io { path, .. }
            | StoreError::Planted { path, .. }
            | StoreError::ReadOnly { path, .. }
            | StoreError::LineTooLong { path, .. }
            | StoreError::Changed { path, .. } => Self::Storage { path: path.display().to_string(), errno, what },
        }
    }
}

impl From<NothingToDo> for Failure {
    fn from(nothing: NothingToDo) -> Self {
        Self::NothingToCompact(match nothing {
            NothingToDo::AlreadyCompacted => Nothing::AlreadyCompacted,
            NothingToDo::TooShort => Nothing::TooShort,
        })
    }
}
