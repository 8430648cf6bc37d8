//! The last step of a context: every call has its result right behind it, every result its call, and no answer is
//! there that failed. Providers refuse a request otherwise, and go on refusing it for ever.

use super::{ContextMessage, Part};
use crate::{
    conversation::message::outline::{Call, Role},
    ids::CallId,
};
use serde_json::json;
use std::collections::HashMap;

/// What a model reads where a call was never answered.
const INTERRUPTED: &str = "[No result: the call was interrupted.]";

/// An answer with the results that were found for its calls, in the order they came; or any other message.
enum Group {
    Answer { answer: ContextMessage, open: Vec<Call>, results: Vec<ContextMessage> },
    Other(ContextMessage),
}

/// Pairs calls and results. A result belongs to the nearest earlier answer that still waits for its id: ids repeat
/// within a session, because some models number their calls from zero each time.
pub(super) fn pair(messages: Vec<ContextMessage>) -> Vec<ContextMessage> {
    let mut groups: Vec<Group> = Vec::with_capacity(messages.len());
    // The answers that wait for an id, by their places, the nearest last.
    let mut waiting: HashMap<CallId, Vec<usize>> = HashMap::new();
    for message in messages {
        let outline = message.outline();
        match outline.role {
            Role::Assistant if outline.failed || outline.empty => {}
            Role::Assistant => {
                let open = outline.calls.clone();
                for call in &open {
                    waiting.entry(call.id.clone()).or_default().push(groups.len());
                }
                groups.push(Group::Answer { answer: message, open, results: Vec::new() });
            }
            Role::ToolResult => {
                let Some(call) = outline.answers.clone() else { continue };
                let place = waiting.get_mut(&call).and_then(Vec::pop);
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
