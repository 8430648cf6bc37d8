//! The last step of a context: every call has its result right behind it, every result its call, and no answer is
//! there that failed. Providers refuse a request otherwise, and go on refusing it for ever.

use super::{ContextMessage, Part};
use crate::{
    conversation::{
        calls::{INTERRUPTED, Waiting},
        message::outline::{Call, Role},
    },
    ids::CallId,
};
use serde_json::json;

/// An answer with the results that were found for its calls, in the order they came; or any other message.
enum Group {
    Answer { answer: ContextMessage, open: Vec<Call>, results: Vec<ContextMessage> },
    Other(ContextMessage),
}

/// Pairs calls and results, by the rule of `calls::Waiting`.
pub(super) fn pair(messages: Vec<ContextMessage>) -> Vec<ContextMessage> {
    let mut groups: Vec<Group> = Vec::with_capacity(messages.len());
    let mut waiting: Waiting<CallId> = Waiting::default();
    for message in messages {
        let outline = message.outline();
        match outline.role {
            Role::Assistant if outline.failed || outline.empty => {}
            Role::Assistant => {
                let open = outline.calls.clone();
                for call in &open {
                    waiting.call(call.id.clone(), groups.len());
                }
                groups.push(Group::Answer { answer: message, open, results: Vec::new() });
            }
            Role::ToolResult => {
                let Some(call) = outline.answers.clone() else { continue };
                let place = waiting.result(&call);
                if let Some(Group::Answer { open, results, .. }) = place.map(|place| &mut groups[place]) {
                    let answered = open.iter().position(|it| it.id == call);
                    open.remove(answered.expect("an answer waits once for each of its open calls"));
                    results.push(message);
                }
            }
            // No provider takes a message without content, or with nothing but empty texts.
            Role::User | Role::Developer | Role::Custom if outline.silent => {}
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

fn stand_in(call: &Call) -> Option<ContextMessage> {
    let value = json!({
        "role": "toolResult", "toolCallId": call.id, "toolName": call.name,
        "content": [{ "type": "text", "text": INTERRUPTED }], "isError": true,
    });
    ContextMessage::made(None, Part::StandIn, &value)
}
