//! The kinds of operations that a session runs. A new kind is a variant here and an arm in each method: its events, its
//! status, its place in the lock and its end after a crash follow from them.

use super::operations::{End, Ended, Kind, Standing};
use crate::{
    ids::OperationId,
    protocol::{
        errors::Failure,
        events::{Event, Reason, Strategy},
        types::{CompactAnswer, CompactionResult, StatusKind, Usage},
    },
};

/// A kind of operation, with its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    /// A compaction.
    Compaction(Reason),
}

impl OperationKind {
    /// Whether no client asked for it.
    #[must_use]
    pub fn is_automatic(self) -> bool {
        match self {
            Self::Compaction(reason) => reason != Reason::Manual,
        }
    }
}

impl OperationKind {
    /// The error of this operation for a person.
    fn failed(self, failure: &Failure) -> String {
        if self.is_automatic() { format!("Auto-compaction failed: {failure}") } else { failure.to_string() }
    }
}

/// The name of a compaction in the lock, in answers and in errors.
const COMPACTION: &str = "compaction";

impl Kind for OperationKind {
    type Product = Box<CompactionResult>;
    type Answer = CompactAnswer;

    fn name(&self) -> &'static str {
        match self {
            Self::Compaction(_) => COMPACTION,
        }
    }

    fn cause(&self) -> String {
        match self {
            Self::Compaction(reason) => {
                serde_json::to_value(reason).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
            }
        }
    }

    fn read(name: &str, cause: &str) -> Option<Self> {
        match name {
            COMPACTION => Some(Self::Compaction(Reason::read(cause))),
            _ => None,
        }
    }

    fn standing(&self) -> Standing {
        match self {
            Self::Compaction(_) => Standing::Foreground(StatusKind::Compacting),
        }
    }

    fn gives_way_to(&self, _: &Self) -> bool {
        match self {
            Self::Compaction(_) => false,
        }
    }

    fn start(&self, before: &Usage) -> Option<Event> {
        match *self {
            Self::Compaction(reason) => Some(Event::CompactionStart {
                reason,
                strategy: Strategy::ContextFull,
                tokens_before: before.context_tokens,
                context_window: before.context_window.unwrap_or(0),
                threshold_tokens: before.threshold_tokens.unwrap_or(0),
                will_retry: false,
            }),
        }
    }

    fn end(&self, ended: &Ended<'_, Self::Product>) -> Option<Event> {
        let failure = ended.end.failure();
        match *self {
            Self::Compaction(reason) => Some(Event::CompactionEnd {
                reason,
                outcome: ended.end.outcome(),
                result: ended.end.product().cloned(),
                new_session_id: None,
                error: failure.map(Failure::data),
                error_message: failure.map(|failure| self.failed(failure)),
                skipped_reason: ended.end.skipped().map(str::to_owned),
                will_retry: false,
                will_continue: false,
                duration_ms: u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX),
                usage: ended.usage.clone(),
            }),
        }
    }

    fn started(&self, id: &OperationId) -> CompactAnswer {
        match self {
            Self::Compaction(_) => CompactAnswer::Started { operation_id: id.clone() },
        }
    }

    fn ended(&self, id: &OperationId, end: &End<Self::Product>) -> CompactAnswer {
        match self {
            Self::Compaction(_) => CompactAnswer::Ended {
                operation_id: id.clone(),
                outcome: end.outcome(),
                result: end.product().cloned(),
                error: end.failure().map(Failure::data),
                skipped_reason: end.skipped().map(str::to_owned),
            },
        }
    }
}
