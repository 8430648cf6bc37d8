//! The table of errors: number, name and the fields of `error.data`. `errors.rs` has the errors themselves, with their
//! texts and values; a test holds the values to the fields.

use super::types::{OperationName, ThingName};
use crate::ids::{EntryId, OperationId};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

macro_rules! errors {
    ($($(#[doc = $doc:literal])+ $number:literal $variant:ident = $name:literal
        { $($(#[doc = $field_doc:literal])+ $field:ident: $type:ty),* $(,)? })+) => {
        /// JSON-RPC's `error.code` for each name. Names share numbers, so branch on the name.
        pub const CODES: &[(i32, &str)] = &[$(($number, $name)),+];

        /// Code of an error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            /// JSON-RPC's `error.code`.
            #[must_use]
            pub fn number(self) -> i32 {
                match self {
                    $(Self::$variant => $number,)+
                }
            }

            /// `error.data.code`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        /// `error.data`: branch on `code`. With `retryable`, the same request may succeed later.
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
    /// The frame is not JSON.
    -32700 ParseError = "parse_error" {}
    /// The frame is JSON and not a request.
    -32600 InvalidRequest = "invalid_request" {}
    /// `initialize` was sent twice.
    -32600 AlreadyInitialized = "already_initialized" {}
    /// The frame exceeds the limit and was skipped.
    -32600 FrameTooLarge = "frame_too_large" {}
    /// The method does not exist.
    -32601 MethodNotFound = "method_not_found" {}
    /// The params do not fit the method.
    -32602 InvalidParams = "invalid_params" {
        /// Path in the params, for example `messages[1].role`; empty for the params as a whole.
        path: String,
    }
    /// A defect of the daemon.
    -32603 Internal = "internal" {}
    /// The client cancelled the request.
    -32800 RequestCancelled = "request_cancelled" {}
    /// The session's leaf is not the expected one.
    -32801 ContentModified = "content_modified" {
        /// Current leaf.
        leaf_entry_id: Option<EntryId>,
    }
    /// Too many requests are in flight.
    -32001 Overloaded = "overloaded" {
        /// Delay before the next try, in milliseconds.
        retry_after_ms: u64,
    }
    /// The named thing does not exist.
    -32002 NotFound = "not_found" {
        /// Kind of the thing.
        kind: ThingName,
    }
    /// Another operation runs.
    -32003 Busy = "busy" {
        /// Id of that operation.
        operation_id: OperationId,
        /// Kind of that operation.
        kind: OperationName,
    }
    /// Another process owns the session.
    -32004 Locked = "locked" {
        /// Its process id, if the lock names one.
        pid: Option<u32>,
        /// Its machine, where the session is in a store.
        host: Option<String>,
        /// The time since which it owns the session, where that is in a store.
        since: Option<String>,
    }
    /// There is nothing to compact.
    -32005 NothingToCompact = "nothing_to_compact" {
        /// Reason.
        reason: WhyNothing,
    }
    /// No compaction makes the context small enough.
    -32007 ContextOverflow = "context_overflow" {
        /// Parts that a compaction cannot reduce.
        floor: ContextFloor,
        /// Size of the window, in tokens.
        context_window: u64,
    }
    /// A model request failed.
    -32008 ProviderError = "provider_error" {
        /// Name of the provider; null for a service of which no model is known.
        provider: Option<String>,
        /// Name of the model at the provider; null for such a service.
        model: Option<String>,
        /// HTTP status of the response, if there was one.
        http_status: Option<u16>,
    }
    /// An operation on a file or on the store failed, or the session is read-only.
    -32009 StorageError = "storage_error" {
        /// Path of the file.
        path: String,
        /// The system's error number, for an error of the operating system.
        errno: Option<i32>,
    }
    /// The request precedes `initialize`.
    -32010 NotInitialized = "not_initialized" {}
    /// The protocol version is not supported.
    -32022 UnsupportedProtocolVersion = "unsupported_protocol_version" {
        /// Supported versions.
        supported: Vec<u32>,
    }
}

/// Reasons why there is nothing to compact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WhyNothing {
    /// No message follows the last compaction.
    AlreadyCompacted,
    /// Every message is within the part that is kept, or there is none.
    TooShort,
    /// The context would not be smaller.
    WouldNotShrink,
    /// An agent asked below half of the threshold.
    BelowHalfThreshold,
    /// A compaction waited for the end of the turn, and another compaction, a reset or a handoff came before it.
    Superseded,
}

/// Parts that a compaction cannot reduce, in tokens.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct ContextFloor {
    /// System prompt.
    system: u64,
    /// Tools.
    tools: u64,
    /// Pins.
    pins: u64,
    /// Newest user message and the messages that must stay with it.
    latest_turn: u64,
}

/// Error of a response.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used: jsonrpsee writes it")]
pub struct ErrorObject {
    /// JSON-RPC's error number.
    code: i32,
    /// Cause and next step, for a person.
    message: String,
    /// Fields for a program.
    data: ErrorData,
}

/// `error.data`, with the schema of `Shape`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// Name of the error.
    pub code: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// Fields of this error alone.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl JsonSchema for ErrorData {
    fn schema_name() -> Cow<'static, str> {
        "ErrorData".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Shape::json_schema(generator)
    }
}
