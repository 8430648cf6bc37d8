//! Requests to the client. The client answers them like any request. Their ids are strings of the daemon, and the
//! daemon cancels them with `$/cancelRequest`.

mod hooks;
mod tree;

pub use hooks::*;
pub use tree::*;

pub use crate::ask::purpose::Purpose;
use crate::{
    ids::{CallId, ModelRef, OperationId, SessionId},
    protocol::types::{AssistantMessage, CallArguments, Message, PromptMessage, ToolDefinition},
};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

/// A request to the client: its name, params and result.
pub trait ClientRequest {
    /// Name on the wire.
    const NAME: &'static str;
    /// Type of the params.
    type Params: Serialize + JsonSchema;
    /// Type of the result.
    type Answer: DeserializeOwned + JsonSchema;
}

/// A request to the client in the documents.
pub struct ClientRequestDoc {
    /// Name on the wire.
    pub name: &'static str,
    /// Description.
    pub doc: &'static str,
    /// Schema of the params.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// Schema of the result.
    pub answer: fn(&mut SchemaGenerator) -> Schema,
}

macro_rules! client_requests {
    ($($(#[doc = $doc:literal])+ $request:ident = $name:literal: $params:ty => $answer:ty;)+) => {
        $(
            $(#[doc = $doc])+
            pub struct $request;
            impl ClientRequest for $request {
                const NAME: &'static str = $name;
                type Params = $params;
                type Answer = $answer;
            }
        )+

        /// Every request to the client, in the order of the contract.
        #[must_use]
        pub fn client_requests() -> Vec<ClientRequestDoc> {
            vec![$(ClientRequestDoc {
                name: $name,
                doc: concat!($($doc),+),
                params: SchemaGenerator::subschema_for::<$params>,
                answer: SchemaGenerator::subschema_for::<$answer>,
            }),+]
        }
    };
}

client_requests! {
    /// Asks whether a compaction goes on, is cancelled, or takes the summary of the answer. Sent after the start event, only
    /// to a client that registered this hook.
    HookBeforeCompact = "hook/session_before_compact": BeforeCompactParams => BeforeCompactAnswer;

    /// Asks for a prompt, lines and data for the summary that is about to be written. Sent only to a client that registered
    /// this hook.
    HookCompacting = "hook/session_compacting": CompactingParams => CompactingAnswer;

    /// Asks whether a compaction with this summary is written, is cancelled, or takes the summary of the answer. Sent after every
    /// check, only to a client that registered this hook, and not for a summary of a hook.
    HookCompactDraft = "hook/session_compact_draft": CompactDraftParams => BeforeCompactAnswer;

    /// Asks whether the leaf moves to another entry, stays, or takes the summary of the answer. Sent before every navigation, only
    /// to a client that registered this hook.
    HookBeforeTree = "hook/session_before_tree": BeforeTreeParams => BeforeTreeAnswer;

    /// Asks the client to execute a tool, in a turn that the daemon runs. Several calls of one answer are sent at once.
    ToolCall = "tool/call": ToolCallParams => ToolCallAnswer;

    /// Asks the client to run a model. Sent only to a client that declared the capability `llm`.
    LlmComplete = "llm/complete": LlmCompleteParams => LlmCompleteAnswer;
}

/// Params of `llm/complete`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LlmCompleteParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the operation; absent for a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<OperationId>,
    /// Id of the turn; absent for any other purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<OperationId>,
    /// Purpose of the answer.
    pub purpose: Purpose,
    /// System prompt.
    pub system: String,
    /// Messages, in pi's form.
    #[schemars(with = "Vec<Message>")]
    pub messages: Vec<Value>,
    /// Tools of the conversation. The model may call them in a turn, and in nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<ToolDefinition>>")]
    pub tools: Option<Vec<Value>>,
    /// Largest answer, in tokens.
    pub max_tokens: u64,
    /// Model to ask. Default: the client's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Time after which the answer is ignored, in milliseconds; null for no limit.
    pub deadline_ms: Option<u64>,
}

/// Params of `tool/call`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the turn.
    pub turn_id: OperationId,
    /// Id of the call.
    pub tool_call_id: CallId,
    /// Name of the tool.
    pub name: String,
    /// Arguments of the call.
    #[schemars(with = "CallArguments")]
    pub arguments: Box<RawValue>,
    /// Null: a tool may take any time. The request is cancelled with its turn.
    pub deadline_ms: Option<u64>,
}

/// Result of `tool/call`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", expecting = "an object with the `content` of the result")]
pub struct ToolCallAnswer {
    /// Content blocks, or a text.
    pub content: PromptMessage,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: Option<bool>,
}

/// Result of `llm/complete`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct LlmCompleteAnswer {
    /// An assistant message with `stopReason`, and with `usage` where it is known.
    #[schemars(with = "AssistantMessage")]
    pub message: Value,
}
