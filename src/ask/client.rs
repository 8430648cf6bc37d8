//! The client as one that runs models and answers hooks.

use super::{Pending, purpose::Purpose, request::Origin};
use crate::ids::{CallId, ModelRef, OperationId, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use std::{future, time::Duration};

/// Longest answer of a client, in bytes of JSON, to a hook too. 128,000 tokens of text, the most that a current model answers, take half.
pub const LARGEST_ANSWER: usize = 1 << 20;

/// Largest result of a tool, in bytes of JSON: as large as the largest message of `session/append` that a context shows whole.
pub const LARGEST_RESULT: usize = 16 << 20;

/// Asks the client.
pub trait Client: Send + Sync {
    /// Sends a request and waits for the assistant message that answers it. Dropping the future cancels the request.
    ///
    /// # Errors
    /// When the client does not answer with a message.
    fn complete(&self, completion: Completion) -> Pending<'_, Result<Value, Unanswered>>;

    /// Lets the client execute a tool and waits for its result. Dropping the future cancels the request. A client without
    /// tools is gone.
    ///
    /// # Errors
    /// When the client does not answer with a result.
    fn execute(&self, _: Execution) -> Pending<'_, Result<Executed, Unanswered>> {
        Box::pin(future::ready(Err(Unanswered::Gone)))
    }

    /// Calls a hook and waits for its answer, null included. Dropping the future cancels the request. A client without hooks
    /// is gone.
    ///
    /// # Errors
    /// When the client does not answer with a result.
    fn hook(&self, _: HookCall) -> Pending<'_, Result<Value, Unanswered>> {
        Box::pin(future::ready(Err(Unanswered::Gone)))
    }
}

/// A tool that the client executes.
#[derive(Debug, Clone)]
pub struct Execution {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: OperationId,
    /// The call.
    pub call: CallId,
    /// The name of the tool.
    pub name: String,
    /// The arguments of the call, as JSON.
    pub arguments: Box<RawValue>,
}

/// The result of a tool that the client executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Executed {
    /// A text, or blocks that are not checked yet.
    pub content: Value,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl Executed {
    /// The result of a tool that was not executed.
    #[must_use]
    pub fn failed(what: impl Into<String>) -> Self {
        Self { content: Value::String(what.into()), is_error: true }
    }
}

/// Call of a hook.
#[derive(Debug, Clone)]
pub struct HookCall {
    /// Name of the request.
    pub name: &'static str,
    /// Params, with their deadline.
    pub params: Value,
}

/// Request to a client.
#[derive(Debug, Clone)]
pub struct Completion {
    /// Session and operation of the request.
    pub origin: Origin,
    /// Purpose of the answer.
    pub purpose: Purpose,
    /// System prompt.
    pub system: Option<String>,
    /// Messages, in pi's form.
    pub messages: Vec<Value>,
    /// Tools of the conversation.
    pub tools: Vec<Value>,
    /// Largest answer, in tokens.
    pub max_tokens: u64,
    /// Model to ask.
    pub model: ModelRef,
    /// Time after which the answer is ignored. None: no limit.
    pub deadline: Option<Duration>,
}

/// Why a request to the client has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// The client answered with an error.
    #[error("the client answered: {0}")]
    Error(String),
    /// The client's answer is not what was asked for.
    #[error("the client's answer cannot be read: {0}")]
    Garbled(String),
    /// There is no client any more.
    #[error("the client is gone")]
    Gone,
}
