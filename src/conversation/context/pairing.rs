//! The last step of a context: every call has its result right after it, every result its call, and no answer is
//! there that failed. Providers refuse a request otherwise, and go on refusing it for ever.

use super::{ContextMessage, Part};
use crate::conversation::{
    calls::{INTERRUPTED, Waiting},
    message::{
        Block, Message, ToolResult,
        outline::{Call, Role},
    },
};
use serde_json::json;
use std::ops::Range;

/// An answer. Its results follow it.
struct Answer {
    place: usize,
    /// Its calls among those of all answers.
    calls: Range<usize>,
}

/// The calls of a conversation and the places of their results. Messages are named by their places: a context may have more of
/// them than the memory has room for twice.
#[derive(Default)]
struct Pairs {
    answers: Vec<Answer>,
    /// The place of the result of each call; none where the call was interrupted.
    results: Vec<Option<usize>>,
}

impl Pairs {
    /// Pairs calls and results, by the rule of `calls::Waiting`.
    fn of(messages: &[ContextMessage]) -> Self {
        let mut pairs = Self::default();
        let mut waiting: Waiting<&str> = Waiting::default();
        for (place, message) in messages.iter().enumerate() {
            let outline = message.outline();
            match outline.role {
                Role::Assistant if !outline.failed && !outline.empty => {
                    let first = pairs.results.len();
                    // Of several calls with one id the first one is answered first.
                    for (at, call) in outline.calls.iter().enumerate().rev() {
                        waiting.call(call.id.as_str(), first + at);
                    }
                    pairs.results.resize(first + outline.calls.len(), None);
                    pairs.answers.push(Answer { place, calls: first..pairs.results.len() });
                }
                Role::ToolResult => {
                    let call = outline.answers.as_ref().and_then(|call| waiting.result(call.as_str()));
                    if let Some(call) = call {
                        pairs.results[call] = Some(place);
                    }
                }
                _ => {}
            }
        }
        pairs
    }
}

/// The messages of a conversation, each answer with the results of its calls after it.
pub(super) fn pair(messages: Vec<ContextMessage>) -> Vec<ContextMessage> {
    let Pairs { answers, results } = Pairs::of(&messages);
    let mut answers = answers.into_iter().peekable();
    let mut paired = Vec::with_capacity(messages.len());
    let mut messages: Vec<Option<ContextMessage>> = messages.into_iter().map(Some).collect();
    for place in 0..messages.len() {
        // The results that an answer before them has taken are gone.
        let Some(message) = messages[place].take() else { continue };
        if let Some(Answer { calls, .. }) = answers.next_if(|answer| answer.place == place) {
            let results = &results[calls];
            let interrupted = message.outline().calls.iter().zip(results).filter(|(_, result)| result.is_none());
            let stand_ins: Vec<_> = interrupted.map(|(call, _)| stand_in(call)).collect();
            paired.push(message);
            let mut found: Vec<usize> = results.iter().copied().flatten().collect();
            found.sort_unstable();
            paired.extend(found.into_iter().filter_map(|place| messages[place].take()));
            paired.extend(stand_ins);
        } else if stands_alone(&message) {
            paired.push(message);
        }
    }
    paired
}

/// Whether a message is sent that is no answer with calls and none of their results. No provider takes an answer that failed, a
/// result without a call, and a message without content.
fn stands_alone(message: &ContextMessage) -> bool {
    let outline = message.outline();
    match outline.role {
        Role::Assistant | Role::ToolResult => false,
        Role::User | Role::Developer | Role::Custom => !outline.silent,
        Role::System | Role::Summary | Role::Execution => true,
    }
}

/// The result of a call that was interrupted. It is not read from its JSON: a file may have hundreds of thousands of such calls.
fn stand_in(call: &Call) -> ContextMessage {
    let value = json!({
        "role": "toolResult", "toolCallId": call.id, "toolName": call.name,
        "content": [{ "type": "text", "text": INTERRUPTED }], "isError": true,
    });
    let result = ToolResult {
        call: call.id.clone(),
        tool: call.name.clone(),
        content: vec![Block::Text(INTERRUPTED.to_owned())],
        is_error: true,
        pruned: false,
    };
    ContextMessage::of_message(None, Part::StandIn, value.to_string(), Message::ToolResult(result))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_is_the_message_that_its_json_says() {
        let made = stand_in(&Call { id: "c\"1".into(), name: "read".to_owned() });
        let read = Message::parse(&made.json()).expect("a message");
        assert_eq!(format!("{:?}", made.message()), format!("{read:?}"));
        assert_eq!(made.outline().answers, Some("c\"1".into()));
    }
}
