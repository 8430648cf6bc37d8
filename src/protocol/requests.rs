//! What the daemon asks of the client, each said once. The client answers as it would any request; its id is a string of
//! ours, and `$/cancelRequest` takes it back.

use crate::ids::{ModelRef, OperationId, SessionId};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A request to the client: its name, what comes with it, and what is answered.
pub trait ClientRequest {
    /// On the wire.
    const NAME: &'static str;
    /// Its params.
    type Params: Serialize + JsonSchema;
    /// What it is answered.
    type Answer: DeserializeOwned + JsonSchema;
}

/// A request to the client as documents describe it.
pub struct ClientRequestDoc {
    /// On the wire.
    pub name: &'static str,
    /// What it asks for.
    pub doc: &'static str,
    /// The schema of its params.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of its answer.
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
    /// Asks the client to run a model. Only of one that said so at `initialize`.
    LlmComplete = "llm/complete": LlmCompleteParams => LlmCompleteAnswer;
}

/// Params of `llm/complete`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LlmCompleteParams {
    /// For which session.
    pub session_id: SessionId,
    /// Of which operation.
    pub operation_id: OperationId,
    /// What the answer is for.
    pub purpose: Purpose,
    /// What the model is told before everything.
    pub system: String,
    /// The conversation, in pi's shapes.
    pub messages: Vec<Value>,
    /// The tools it knows; it must not call them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Value>>,
    /// The most it may answer, in tokens.
    pub max_tokens: u64,
    /// Which model; the client's choice where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// An answer after so many milliseconds is too late; null: whenever.
    pub deadline_ms: Option<u64>,
}

/// What a model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To go on with the conversation.
    Turn,
    /// A summary of whole turns.
    Compaction,
    /// A summary of the beginning of a turn.
    TurnPrefix,
    /// Two sentences for a person.
    ShortSummary,
    /// A summary of a branch.
    BranchSummary,
    /// A document for another session.
    Handoff,
}

impl Purpose {
    /// Its name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Compaction => "compaction",
            Self::TurnPrefix => "turn_prefix",
            Self::ShortSummary => "short_summary",
            Self::BranchSummary => "branch_summary",
            Self::Handoff => "handoff",
        }
    }
}

/// The answer to `llm/complete`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct LlmCompleteAnswer {
    /// An assistant message, with `usage` where it is known and `stopReason`.
    pub message: Value,
}
