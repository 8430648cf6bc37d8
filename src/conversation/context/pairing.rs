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
use std::ops::Range;

/// An answer with the results that were found for its calls, in the order they came; or any other message.
enum Group {
    Answer { answer: ContextMessage, calls: Range<usize>, results: Vec<ContextMessage> },
    Other(ContextMessage),
}

/// Pairs calls and results, by the rule of `calls::Waiting`.
pub(super) fn pair(messages: Vec<ContextMessage>) -> Vec<ContextMessage> {
    let mut groups: Vec<Group> = Vec::with_capacity(messages.len());
    // The calls of all answers, each with the place of its answer, until its result comes.
    let mut open: Vec<Option<(Call, usize)>> = Vec::new();
    let mut waiting: Waiting<CallId> = Waiting::default();
    for message in messages {
        let outline = message.outline();
        match outline.role {
            Role::Assistant if outline.failed || outline.empty => {}
            Role::Assistant => {
                let first = open.len();
                open.extend(outline.calls.iter().map(|call| Some((call.clone(), groups.len()))));
                // Of several calls with one id the first one is answered first.
                for (at, call) in outline.calls.iter().enumerate().rev() {
                    waiting.call(call.id.clone(), first + at);
                }
                groups.push(Group::Answer { answer: message, calls: first..open.len(), results: Vec::new() });
            }
            Role::ToolResult => {
                let Some(call) = outline.answers.clone() else { continue };
                let answered = waiting.result(&call).and_then(|at| open[at].take());
                if let Some((_, place)) = answered
                    && let Group::Answer { results, .. } = &mut groups[place]
                {
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
            Group::Answer { answer, calls, results } => {
                paired.push(answer);
                paired.extend(results);
                paired.extend(open[calls].iter().flatten().filter_map(|(call, _)| stand_in(call)));
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
