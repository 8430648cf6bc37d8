//! The last step of a context: every call has its result right behind it, every result its call, and no answer is
//! there that failed. Providers refuse a request otherwise, and go on refusing it for ever.

use super::{ContextMessage, Part};
use crate::{
    ids::CallId,
    message::{Message, ToolCall},
};
use serde_json::json;

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
    for message in messages {
        match message.message() {
            Message::Assistant(answer) if answer.failed() || answer.content.is_empty() => {}
            Message::Assistant(answer) => {
                let open = answer.calls().cloned().collect();
                groups.push(Group::Answer { answer: message, open, results: Vec::new() });
            }
            Message::ToolResult(result) => {
                let call = result.call.clone();
                if let Some(results) = take_open(&mut groups, &call) {
                    results.push(message);
                }
            }
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

/// Marks the call as answered and gives the place for its result; none for a result that nobody asked for.
fn take_open<'a>(groups: &'a mut [Group], call: &CallId) -> Option<&'a mut Vec<ContextMessage>> {
    groups.iter_mut().rev().find_map(|group| match group {
        Group::Answer { open, results, .. } => {
            let at = open.iter().position(|it| it.id == *call)?;
            open.remove(at);
            Some(results)
        }
        Group::Other(_) => None,
    })
}

fn stand_in(call: &ToolCall) -> Option<ContextMessage> {
    let value = json!({
        "role": "toolResult", "toolCallId": call.id, "toolName": call.name,
        "content": [{ "type": "text", "text": INTERRUPTED }], "isError": true,
    });
    ContextMessage::made(None, Part::StandIn, &value)
}
