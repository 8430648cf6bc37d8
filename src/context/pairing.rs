//! The last step of a context: every call has its result right behind it, every result its call, and no answer is
//! there that failed. Providers refuse a request otherwise, and go on refusing it for ever.

use super::{ContextMessage, Part};
use crate::{
    ids::CallId,
    message::{Block, Message, ToolCall},
};
use serde_json::json;
use std::collections::HashMap;

/// What a model reads where a call was never answered.
const INTERRUPTED: &str = "[No result: the call was interrupted.]";

/// An answer with the results that were found for its calls, in the order they came; or any other message.
enum Group {
    Answer { answer: ContextMessage, open: Vec<ToolCall>, results: Vec<ContextMessage> },
    Other(ContextMessage),
}

/// Pairs calls and results. A result belongs to the nearest earlier answer that still waits for its id: ids repeat
/// within a session, because some models number their calls from zero each time.
pub(super) fn pair(messages: Vec<ContextMessage>) -> Vec<ContextMessage> {
    let mut groups: Vec<Group> = Vec::with_capacity(messages.len());
    // The answers that wait for an id, by their places, the nearest last.
    let mut waiting: HashMap<CallId, Vec<usize>> = HashMap::new();
    for message in messages {
        match message.message() {
            Message::Assistant(answer) if answer.failed() || answer.content.is_empty() => {}
            Message::Assistant(answer) => {
                let open: Vec<ToolCall> = answer.calls().cloned().collect();
                for call in &open {
                    waiting.entry(call.id.clone()).or_default().push(groups.len());
                }
                groups.push(Group::Answer { answer: message, open, results: Vec::new() });
            }
            Message::ToolResult(result) => {
                let call = result.call.clone();
                let place = waiting.get_mut(&call).and_then(Vec::pop);
                if let Some(Group::Answer { open, results, .. }) = place.map(|place| &mut groups[place]) {
                    let answered = open.iter().position(|it| it.id == call);
                    open.remove(answered.expect("an answer waits once for each of its open calls"));
                    results.push(message);
                }
            }
            other if says_nothing(other) => {}
            _ => groups.push(Group::Other(message)),
        }
    }
    let mut paired = Vec::with_capacity(groups.len());
    for group in groups {
        match group {
            Group::Other(message) => paired.push(message),
            Group::Answer { answer, open, results } => {
                paired.push(answer);
                paired.extend(results);
                paired.extend(open.iter().filter_map(stand_in));
            }
        }
    }
    paired
}

/// A message without content, or with nothing but empty texts: no provider takes one.
fn says_nothing(message: &Message) -> bool {
    let empty = |block: &Block| matches!(block, Block::Text(text) if text.is_empty());
    match message {
        Message::User(blocks) | Message::Developer(blocks) | Message::Custom(blocks) => blocks.iter().all(empty),
        _ => false,
    }
}

fn stand_in(call: &ToolCall) -> Option<ContextMessage> {
    let value = json!({
        "role": "toolResult", "toolCallId": call.id, "toolName": call.name,
        "content": [{ "type": "text", "text": INTERRUPTED }], "isError": true,
    });
    ContextMessage::made(None, Part::StandIn, &value)
}
