//! Every error's code and what its `error.data` carries, for documents. What fails when, and the texts, are in
//! `errors.rs`; a test holds the two together.

use super::errors::ErrorData;
use crate::ids::{EntryId, OperationId};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

macro_rules! errors {
    ($($(#[doc = $doc:literal])+ $number:literal $variant:ident = $name:literal
        { $($(#[doc = $field_doc:literal])+ $field:ident: $type:ty),* $(,)? })+) => {
        /// The number of each code in JSON-RPC's `error.code`. Several share one: branch on the name.
        pub const CODES: &[(i32, &str)] = &[$(($number, $name)),+];

        /// `error.data`: branch on `code`. `retryable` says whether the same request may work later.
        #[derive(JsonSchema)]
        #[schemars(tag = "code", rename_all_fields = "camelCase")]
        #[expect(dead_code, reason = "only its schema is used: errors are made in errors.rs")]
        enum Shape {
            $(
                $(#[doc = $doc])+
                #[schemars(rename = $name)]
                $variant {
                    retryable: bool,
                    $($(#[doc = $field_doc])+ $field: $type,)*
                },
            )+
        }
    };
}

errors! {
    /// Not JSON.
    -32700 ParseError = "parse_error" {}
    /// JSON, but no request.
    -32600 InvalidRequest = "invalid_request" {}
    /// A second `initialize`.
    -32600 AlreadyInitialized = "already_initialized" {}
    /// A frame over the limit; it was skipped.
    -32600 FrameTooLarge = "frame_too_large" {}
    /// No such method.
    -32601 MethodNotFound = "method_not_found" {}
    /// Params that are not what the method takes.
    -32602 InvalidParams = "invalid_params" {
        /// Where in the params, for example `messages[1].role`; empty for all of them.
        path: String,
    }
    /// A defect of the daemon.
    -32603 Internal = "internal" {}
    /// The client took the request back.
    -32800 RequestCancelled = "request_cancelled" {}
    /// The session is not what the client thinks it is.
    -32801 ContentModified = "content_modified" {
        /// Its leaf now.
        leaf_entry_id: Option<EntryId>,
    }
    /// Too many requests at once.
    -32001 Overloaded = "overloaded" {
        /// When to try again.
        retry_after_ms: u64,
    }
    /// No such thing.
    -32002 NotFound = "not_found" {
        /// What is not there: `session` or `entry`.
        kind: String,
    }
    /// Something runs already.
    -32003 Busy = "busy" {
        /// What runs.
        operation_id: OperationId,
        /// What it is.
        kind: String,
    }
    /// Another process has the session.
    -32004 Locked = "locked" {
        /// Which, if it said so.
        pid: Option<u32>,
    }
    /// There is nothing to compact.
    -32005 NothingToCompact = "nothing_to_compact" {
        /// Why.
        reason: WhyNothing,
    }
    /// Nothing makes the context small enough.
    -32007 ContextOverflow = "context_overflow" {
        /// What no compaction makes smaller.
        floor: ContextFloor,
        /// Size of the window, in tokens.
        context_window: u64,
    }
    /// A model did not answer.
    -32008 ProviderError = "provider_error" {
        /// The provider's name.
        provider: String,
        /// The model's name there.
        model: String,
        /// The HTTP status, where there was one.
        http_status: Option<u16>,
    }
    /// The disk refused, or the session is read-only.
    -32009 StorageError = "storage_error" {
        /// Which file.
        path: String,
        /// The system's number of the error, if it was the system.
        errno: Option<i32>,
    }
    /// Something before `initialize`.
    -32010 NotInitialized = "not_initialized" {}
    /// Another version of the protocol.
    -32022 UnsupportedProtocolVersion = "unsupported_protocol_version" {
        /// The versions that are spoken here.
        supported: Vec<u32>,
    }
}

/// Why there is nothing to compact.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum WhyNothing {
    /// Nothing came since the last compaction.
    AlreadyCompacted,
    /// All of it is kept.
    TooShort,
    /// An agent asked too early.
    BelowHalfThreshold,
}

/// What no compaction makes smaller, in tokens.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct ContextFloor {
    /// The system prompt.
    system: u64,
    /// The tools.
    tools: u64,
    /// What is pinned.
    pins: u64,
    /// The newest user message and what must stay with it.
    latest_turn: u64,
}

/// The error of an answer.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used: jsonrpsee writes it")]
pub struct ErrorObject {
    /// JSON-RPC's number.
    code: i32,
    /// What happened and what to do next, for a person.
    message: String,
    /// What to branch on.
    data: ErrorData,
}

impl JsonSchema for ErrorData {
    fn schema_name() -> Cow<'static, str> {
        "ErrorData".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Shape::json_schema(generator)
    }
}
