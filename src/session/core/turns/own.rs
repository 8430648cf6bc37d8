//! Messages that a turn appends: they are written and decided about like those of a host.

use super::queued::Waiting;
use crate::{
    ask::client::Executed,
    conversation::entry::raw,
    ids::{CallId, EntryId, OperationId, SessionId},
    protocol::types::{AppendParams, GivenMessage, PromptMessage},
    session::jobs::turn::{Refused, ToolCall, TurnAnswer},
};
use serde_json::{Value, json, value::RawValue};

/// Messages that a turn appends together.
pub(in crate::session::core) struct Own {
    /// The turn.
    pub turn: OperationId,
    /// The messages, as JSON.
    messages: Vec<Box<RawValue>>,
    /// The context that an answer was made for.
    context: Option<String>,
    /// The messages of the queue among them.
    pub delivered: Vec<EntryId>,
    pub(super) what: What,
}

/// The part of the turn that messages are.
pub(super) enum What {
    /// The message that the turn begins with.
    Prompt,
    /// Messages that steer it.
    Steering,
    /// The message that lets the model go on after a compaction.
    Reminder,
    /// An answer.
    Answer(Box<Said>),
    /// The result of a call.
    Result,
    /// The text of an answer that a cancel cut off.
    Rest,
}

/// An answer, as far as the turn depends on it.
pub(super) struct Said {
    /// Its calls.
    pub calls: Vec<ToolCall>,
    /// Its stop reason.
    pub stop: String,
    /// Its failure.
    pub failed: Option<Refused>,
}

impl Own {
    fn of(turn: OperationId, what: What, messages: Vec<Box<RawValue>>) -> Self {
        Self { turn, messages, context: None, delivered: Vec::new(), what }
    }

    /// The message that a turn begins with. `queued`: the message of the queue that it is.
    pub fn prompt(turn: OperationId, message: &PromptMessage, queued: Option<EntryId>) -> Self {
        let messages = vec![raw(&user(message, queued.as_ref()))];
        Self { delivered: queued.into_iter().collect(), ..Self::of(turn, What::Prompt, messages) }
    }

    /// Messages of the queue that steer the turn.
    pub fn steering(turn: OperationId, waiting: &[Waiting]) -> Self {
        let messages = waiting.iter().map(|waiting| raw(&user(&waiting.message, Some(&waiting.id)))).collect();
        let delivered = waiting.iter().map(|waiting| waiting.id.clone()).collect();
        Self { delivered, ..Self::of(turn, What::Steering, messages) }
    }

    /// The message that lets the model go on after a compaction.
    pub fn reminder(turn: OperationId, text: &str) -> Self {
        Self::of(turn, What::Reminder, vec![raw(&json!({"role": "developer", "content": text.trim()}))])
    }

    /// An answer of the model. `heard`: the text that the user saw of one that failed.
    pub fn answer(turn: OperationId, answer: TurnAnswer, heard: &str) -> Self {
        let TurnAnswer { mut message, context, stop, calls, failed } = answer;
        if !heard.trim().is_empty()
            && let Ok(mut whole) = serde_json::from_str::<Value>(message.get())
        {
            whole["content"] = json!([{"type": "text", "text": heard}]);
            message = raw(&whole);
        }
        let said = Box::new(Said { calls, stop, failed });
        Self { context, ..Self::of(turn, What::Answer(said), vec![message]) }
    }

    /// The result of a call.
    pub fn result(turn: OperationId, call: CallId, tool: &str, executed: Executed) -> Self {
        let Executed { content, is_error } = executed;
        let content = match content {
            Value::String(text) => json!([{"type": "text", "text": text}]),
            content => content,
        };
        let message = json!({"role": "toolResult", "toolCallId": call, "toolName": tool, "content": content, "isError": is_error});
        Self::of(turn, What::Result, vec![raw(&message)])
    }

    /// The text that the user saw of an answer that was cut off.
    pub fn rest(turn: OperationId, text: &str) -> Self {
        let message =
            json!({"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "aborted"});
        Self::of(turn, What::Rest, vec![raw(&message)])
    }

    /// The messages as an append has them.
    pub(super) fn params(&self, session: &SessionId) -> AppendParams {
        let messages = self.messages.iter().cloned().map(GivenMessage).collect();
        AppendParams::own(session.clone(), messages, self.context.clone())
    }
}

/// A message of the user. One of the queue names its place there, so that it is delivered once.
fn user(message: &PromptMessage, queued: Option<&EntryId>) -> Value {
    let mut made = json!({"role": "user", "content": message});
    if let Some(id) = queued {
        made["queuedId"] = json!(id);
    }
    made
}
