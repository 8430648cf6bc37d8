//! Every error of a request, with its code on the wire. No other file has error numbers.

use super::codes::{Code, ErrorData, WhyNothing};
use crate::{
    ask::failed::Failed,
    compaction::{
        ladder::{Floor, NoDraft},
        plan::NothingToDo,
        request::NoPlan,
    },
    ids::{EntryId, OperationId},
    log::error::StoreError,
    settings::Problem,
};
use jsonrpsee::types::ErrorObjectOwned;
use rustix::io::Errno;
use serde_json::{Value, json};

/// `retryAfterMs` of a message for a full queue: about the time of a turn. A chosen number.
const TURN_MS: u64 = 5_000;

/// Error of a request. Its text says what to do next.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// The frame is not JSON.
    #[error("not JSON: {0}")]
    Parse(String),
    /// The frame is JSON and not a request.
    #[error("{0}")]
    InvalidRequest(String),
    /// `initialize` was sent twice.
    #[error("this connection is initialized already; start another process for another client")]
    AlreadyInitialized,
    /// The frame exceeds the limit.
    #[error("the frame has more than {limit} bytes and was skipped; send the data in smaller parts")]
    FrameTooLarge { limit: usize },
    /// The method does not exist.
    #[error("there is no method `{0}`; rpc.discover lists those there are")]
    MethodNotFound(String),
    /// The params do not fit the method.
    #[error("{}{what}", if .path.is_empty() { String::new() } else { format!("{}: ", .path) })]
    InvalidParams { path: String, what: String },
    /// A defect of the daemon.
    #[error("{0}")]
    Internal(String),
    /// The client cancelled the request.
    #[error("cancelled")]
    Cancelled,
    /// The daemon ended before the request did.
    #[error(
        "the daemon ended before this request; it may have been performed, so look at the session before you repeat it"
    )]
    Abandoned,
    /// The session's leaf is not the expected one.
    #[error("the session has changed since; its leaf is {}; read the new entries with session/entries, then send the request again", .leaf.as_ref().map_or("none", |leaf| leaf.as_str()))]
    ContentModified { leaf: Option<EntryId> },
    /// Too many requests are in flight.
    #[error("too many requests at once; send it again in {retry_after_ms} ms")]
    Overloaded { retry_after_ms: u64 },
    /// The queue of messages is full.
    #[error(
        "{waiting} messages wait in the queue, and it takes no more; wait for turns, or take them out with session/clear_queue"
    )]
    QueueFull { waiting: usize },
    /// The named thing does not exist.
    #[error("{what}")]
    NotFound { kind: &'static str, what: String },
    /// Another operation runs.
    #[error("a {kind} is running ({operation_id}); wait for {}, or stop it with session/cancel", told_by(.kind))]
    Busy { operation_id: OperationId, kind: &'static str },
    /// Another process owns the session.
    #[error("{what}")]
    Locked { pid: Option<u32>, what: String },
    /// Another daemon owns the session in the store.
    #[error("{what}")]
    Elsewhere { host: String, pid: Option<u32>, since: String, what: String },
    /// There is nothing to compact.
    #[error("{}", match .0 {
        Nothing::AlreadyCompacted => "nothing came since the last compaction",
        Nothing::Empty => "there is no message yet; append the conversation first",
        Nothing::TooShort => "the conversation is shorter than what is kept as it is; a smaller keepRecentTokens would compact it",
        Nothing::NoConversation => "there is nothing to hand off: the context has fewer than two messages; append the conversation first",
        Nothing::WouldNotShrink => "the context would not be smaller: a summary takes as much as what it replaces; instructions make it all the same",
        Nothing::BelowHalfThreshold => "the context is less than half full, and an agent may not compact it then; a user may",
        Nothing::Superseded => "another compaction, a reset or a handoff came before it and did its work",
    })]
    NothingToCompact(Nothing),
    /// No compaction makes the context small enough.
    #[error("{}", no_smaller(.0))]
    ContextOverflow(Floor),
    /// A context is larger than its window, and no maintenance makes it smaller now.
    #[error("{}{why}", does_not_fit(floor))]
    OverWindow { floor: Floor, why: String },
    /// A model request failed.
    #[error("{what}")]
    Provider {
        /// Name of the provider; none for a service of which no model is known.
        provider: Option<String>,
        /// Name of the model at the provider.
        model: Option<String>,
        /// HTTP status of the response, if there was one.
        status: Option<u16>,
        /// Whether a later try may succeed.
        retryable: bool,
        /// Cause and next step.
        what: String,
    },
    /// A file operation failed, or the session is read-only.
    #[error("{what}")]
    Storage { path: String, errno: Option<i32>, what: String },
    /// The store cannot be reached, or refused a request.
    #[error("{what}")]
    Store { path: String, retryable: bool, what: String },
    /// The request precedes `initialize`.
    #[error("send `initialize` first")]
    NotInitialized,
    /// The protocol version is not supported.
    #[error("protocol version {0} is not spoken here, only 1")]
    UnsupportedProtocolVersion(u32),
}

/// Reasons why there is nothing to compact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    /// No message follows the last compaction.
    AlreadyCompacted,
    /// There is no message.
    Empty,
    /// Every message is within the part that is kept.
    TooShort,
    /// A context without two messages is handed off.
    NoConversation,
    /// The context would not be smaller.
    WouldNotShrink,
    /// An agent asked below half of the threshold.
    BelowHalfThreshold,
    /// A compaction waited for the end of the turn, and another compaction, a reset or a handoff came before it.
    Superseded,
}

impl Nothing {
    /// The reason on the wire.
    #[must_use]
    pub fn code(self) -> WhyNothing {
        match self {
            Self::AlreadyCompacted => WhyNothing::AlreadyCompacted,
            Self::Empty | Self::TooShort | Self::NoConversation => WhyNothing::TooShort,
            Self::WouldNotShrink => WhyNothing::WouldNotShrink,
            Self::BelowHalfThreshold => WhyNothing::BelowHalfThreshold,
            Self::Superseded => WhyNothing::Superseded,
        }
    }
}

/// The event that tells the end of an operation of this kind.
fn told_by(kind: &str) -> &'static str {
    match kind {
        "navigation" | "reference" => "the event settled",
        _ => "its end event",
    }
}

/// The sentence on a context that is larger than its window. Empty for one that is not.
/// The error of a context that no compaction makes smaller: it is over its window, or a provider refused it below that.
fn no_smaller(floor: &Floor) -> String {
    let Floor { system, tools, latest_turn, window, .. } = *floor;
    match floor.size() > window {
        true => format!(
            "even without its history the context does not fit: system prompt and tools take {} tokens, and the newest messages \
             {latest_turn}, of a window of {window}; use a larger model, fewer tools, or a shorter message",
            system + tools
        ),
        false => format!(
            "no compaction makes the context smaller: without its history it has {} tokens, of a window of {window}; where the \
             provider refuses that, correct contextWindow in the settings of its model, or lower maxOutputTokens, the room that a \
             request keeps for the answer",
            floor.size()
        ),
    }
}

fn does_not_fit(floor: &Floor) -> String {
    match floor.size() > floor.window {
        true => format!("the context does not fit the window of {} tokens. ", floor.window),
        false => String::new(),
    }
}

impl Failure {
    /// Invalid params at `path`.
    pub fn params(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self::InvalidParams { path: path.into(), what: what.into() }
    }

    /// A problem of the message at place `at`, at a path inside of it.
    #[must_use]
    pub fn of_message(at: usize, path: &str, what: impl Into<String>) -> Self {
        match path {
            "" => Self::params(format!("messages[{at}]"), what),
            path => Self::params(format!("messages[{at}].{path}"), what),
        }
    }

    /// Refuses a text at `path` that is too long.
    ///
    /// # Errors
    /// When it has more than `most` bytes.
    pub fn if_longer(path: &str, text: Option<&str>, most: usize) -> Result<(), Self> {
        match text.map_or(0, str::len) {
            length if length > most => {
                Err(Self::params(path, format!("it has {length} bytes, and the most is {most}; shorten it")))
            }
            _ => Ok(()),
        }
    }

    /// A path of the client that has to be absolute: the daemon runs in a folder that the client does not know.
    #[must_use]
    pub fn relative_path(param: &str, path: &str) -> Self {
        Self::params(param, format!("{path:?} is not absolute; give the whole path of the folder"))
    }

    /// Invalid settings in the params of a client.
    #[must_use]
    pub fn invalid_settings(problem: Problem) -> Self {
        let path = if problem.key.is_empty() { "settings".to_owned() } else { format!("settings.{}", problem.key) };
        Self::params(path, problem.what)
    }

    /// The session is not open in this daemon.
    #[must_use]
    pub fn no_session(id: &str) -> Self {
        Self::NotFound { kind: "session", what: format!("session {id} is not open here; open it with session/load") }
    }

    /// A session that could not be opened. This is the answer to requests that waited for the opening; the request that
    /// opens is answered with the failure itself.
    #[must_use]
    pub fn not_opened(id: &str, why: &Self) -> Self {
        Self::NotFound { kind: "session", what: format!("session {id} could not be opened: {why}") }
    }

    /// An id as it stands in an error: a client may send any text as one.
    #[must_use]
    pub fn shortened(id: &EntryId) -> String {
        const MOST: usize = 64;
        let mut named: String = id.as_str().chars().take(MOST).collect();
        if named.len() < id.as_str().len() {
            named.push('…');
        }
        named
    }

    /// The session has no such entry.
    #[must_use]
    pub fn no_entry(id: &EntryId) -> Self {
        let named = Self::shortened(id);
        Self::NotFound {
            kind: "entry",
            what: format!("there is no entry {named} in this session; session/entries lists them"),
        }
    }

    /// Code of the error.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Parse(_) => Code::ParseError,
            Self::InvalidRequest(_) => Code::InvalidRequest,
            Self::AlreadyInitialized => Code::AlreadyInitialized,
            Self::FrameTooLarge { .. } => Code::FrameTooLarge,
            Self::MethodNotFound(_) => Code::MethodNotFound,
            Self::InvalidParams { .. } => Code::InvalidParams,
            Self::Internal(_) => Code::Internal,
            Self::Cancelled | Self::Abandoned => Code::RequestCancelled,
            Self::ContentModified { .. } => Code::ContentModified,
            Self::Overloaded { .. } | Self::QueueFull { .. } => Code::Overloaded,
            Self::NotFound { .. } => Code::NotFound,
            Self::Busy { .. } => Code::Busy,
            Self::Locked { .. } | Self::Elsewhere { .. } => Code::Locked,
            Self::NothingToCompact(_) => Code::NothingToCompact,
            Self::ContextOverflow(_) | Self::OverWindow { .. } => Code::ContextOverflow,
            Self::Provider { .. } => Code::ProviderError,
            Self::Storage { .. } | Self::Store { .. } => Code::StorageError,
            Self::NotInitialized => Code::NotInitialized,
            Self::UnsupportedProtocolVersion(_) => Code::UnsupportedProtocolVersion,
        }
    }

    /// Fields for a program.
    #[must_use]
    pub fn data(&self) -> ErrorData {
        let rest = match self {
            Self::InvalidParams { path, .. } => json!({ "path": path }),
            Self::ContentModified { leaf } => json!({ "leafEntryId": leaf }),
            Self::Overloaded { retry_after_ms } => json!({ "retryAfterMs": retry_after_ms }),
            Self::QueueFull { .. } => json!({ "retryAfterMs": TURN_MS }),
            Self::NotFound { kind, .. } => json!({ "kind": kind }),
            Self::Busy { operation_id, kind } => {
                json!({ "operationId": operation_id, "kind": kind })
            }
            Self::Locked { pid, .. } => json!({ "pid": pid, "host": null, "since": null }),
            Self::Elsewhere { host, pid, since, .. } => json!({ "pid": pid, "host": host, "since": since }),
            Self::NothingToCompact(reason) => json!({ "reason": reason.code() }),
            Self::ContextOverflow(floor) | Self::OverWindow { floor, .. } => json!({
                "floor": { "system": floor.system, "tools": floor.tools, "pins": floor.pins, "latestTurn": floor.latest_turn },
                "contextWindow": floor.window,
            }),
            Self::Provider { provider, model, status, .. } => {
                json!({ "provider": provider, "model": model, "httpStatus": status })
            }
            Self::Storage { path, errno, .. } => json!({ "path": path, "errno": errno }),
            Self::Store { path, .. } => json!({ "path": path, "errno": null }),
            Self::UnsupportedProtocolVersion(_) => json!({ "supported": [super::VERSION] }),
            _ => json!({}),
        };
        let Value::Object(rest) = rest else { unreachable!("every one of them is an object") };
        let retryable = match self {
            // A session that is read-only stays so, and has no errno.
            Self::Storage { errno, .. } => errno.is_some_and(may_pass),
            Self::Provider { retryable, .. } | Self::Store { retryable, .. } => *retryable,
            Self::Overloaded { .. }
            | Self::QueueFull { .. }
            | Self::Busy { .. }
            | Self::Locked { .. }
            | Self::Elsewhere { .. }
            | Self::ContentModified { .. } => true,
            _ => false,
        };
        ErrorData { code: self.code().name().to_owned(), retryable, rest }
    }

    /// The error of a JSON-RPC response.
    #[must_use]
    pub fn object(&self) -> ErrorObjectOwned {
        ErrorObjectOwned::owned(self.code().number(), self.to_string(), Some(self.data()))
    }
}

/// Whether an error of the operating system may be gone when the same request comes again: room on the disk, resources of
/// the machine, a file server. A wrong kind of file, a missing permission or a name that is too long stays until somebody
/// changes the file system.
fn may_pass(errno: i32) -> bool {
    [
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::IO,
        Errno::INTR,
        Errno::AGAIN,
        Errno::BUSY,
        Errno::TXTBSY,
        Errno::NOMEM,
        Errno::NOBUFS,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOLCK,
        Errno::DEADLK,
        Errno::STALE,
        Errno::TIMEDOUT,
        Errno::HOSTDOWN,
        Errno::HOSTUNREACH,
        Errno::NETDOWN,
        Errno::NETUNREACH,
        Errno::CONNRESET,
    ]
    .iter()
    .any(|it| it.raw_os_error() == errno)
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
            StoreError::Owned { host, pid, since } => Self::Elsewhere { host, pid, since, what },
            StoreError::Stored { path, retryable, .. } => {
                Self::Store { path: path.display().to_string(), retryable, what }
            }
            StoreError::Missing(_) => Self::NotFound { kind: "session", what },
            StoreError::Foreign { .. } => Self::params("path", what),
            StoreError::Stopped => Self::Cancelled,
            StoreError::Io { path, .. }
            | StoreError::Planted { path, .. }
            | StoreError::ReadOnly { path, .. }
            | StoreError::LineTooLong { path, .. }
            | StoreError::Changed { path, .. } => Self::Storage { path: path.display().to_string(), errno, what },
        }
    }
}

impl From<NoDraft> for Failure {
    fn from(reason: NoDraft) -> Self {
        match reason {
            NoDraft::Cancelled => Self::Cancelled,
            NoDraft::TooLarge(floor) => Self::ContextOverflow(floor),
            NoDraft::WouldNotShrink => Self::NothingToCompact(Nothing::WouldNotShrink),
        }
    }
}

impl From<&Failed> for Failure {
    fn from(failed: &Failed) -> Self {
        Self::Provider {
            provider: failed.model.as_ref().map(|model| model.provider.clone()),
            model: failed.model.as_ref().map(|model| model.id.clone()),
            status: failed.status,
            retryable: failed.retryable,
            what: failed.to_string(),
        }
    }
}

impl From<NoPlan> for Failure {
    fn from(reason: NoPlan) -> Self {
        match reason {
            NoPlan::Cancelled => Self::Cancelled,
            NoPlan::NothingToDo(nothing) => nothing.into(),
        }
    }
}

impl From<NothingToDo> for Failure {
    fn from(nothing: NothingToDo) -> Self {
        Self::NothingToCompact(match nothing {
            NothingToDo::AlreadyCompacted => Nothing::AlreadyCompacted,
            NothingToDo::Empty => Nothing::Empty,
            NothingToDo::TooShort => Nothing::TooShort,
            NothingToDo::WouldNotShrink => Nothing::WouldNotShrink,
            NothingToDo::BelowHalfThreshold => Nothing::BelowHalfThreshold,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ids::ModelRef,
        models::candidates::{Candidate, Way},
        provider::{Trouble, TroubleKind},
    };

    #[test]
    fn a_context_without_history_is_over_its_window_or_the_window_is_wrong() {
        let text = |window| {
            let floor = Floor { system: 100, tools: 20, pins: 30, latest_turn: 207, window };
            Failure::ContextOverflow(floor).to_string()
        };
        let over = text(300);
        assert!(over.contains("does not fit") && over.contains("a window of 300; use a larger model"), "{over}");
        let below = text(16_000);
        assert!(!below.contains("does not fit") && below.contains("has 357 tokens, of a window of 16000"), "{below}");
        assert!(below.contains("contextWindow") && below.contains("maxOutputTokens"), "{below}");
    }

    #[test]
    fn a_storage_error_is_retryable_where_the_cause_may_pass() {
        let retryable = |errno: Option<Errno>| {
            let errno = errno.map(Errno::raw_os_error);
            Failure::Storage { path: "/s".to_owned(), errno, what: String::new() }.data().retryable
        };
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::IO, Errno::MFILE, Errno::INTR, Errno::STALE] {
            assert!(retryable(Some(errno)), "{errno}");
        }
        let lasting = [
            Errno::ISDIR,
            Errno::NOTDIR,
            Errno::ACCESS,
            Errno::PERM,
            Errno::ROFS,
            Errno::NAMETOOLONG,
            Errno::LOOP,
            Errno::NOENT,
            Errno::EXIST,
            Errno::FBIG,
            Errno::INVAL,
            Errno::NOTSUP,
        ];
        for errno in lasting {
            assert!(!retryable(Some(errno)), "{errno}");
        }
        assert!(!retryable(None));
    }

    #[test]
    fn a_request_that_waited_for_a_session_learns_why_it_is_not_open() {
        let failure = Failure::not_opened("s1", &Failure::params("settings.compaction", "expected an object"));
        let told = "session s1 could not be opened: settings.compaction: expected an object";
        assert_eq!((failure.data().code.as_str(), failure.to_string().as_str()), ("not_found", told));
        assert_eq!(failure.data().rest["kind"], "session");
    }

    #[test]
    fn an_entry_stores_the_error_data_of_the_wire() {
        let model = ModelRef::parse("some/model").expect("a model");
        let candidate = Candidate { model, window: 1_000, output: None, thinks: false, way: Way::Client };
        let trouble = Trouble { status: Some(503), ..Trouble::new(TroubleKind::Broken, "overloaded") };
        let failed = Failed::new(&candidate, &trouble);
        let sent = serde_json::to_string(&Failure::from(&failed).data()).expect("JSON");
        assert_eq!(failed.data().to_string(), sent);
    }
}
