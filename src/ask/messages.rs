//! Turns as messages in pi's form, for a client that runs a model, and its assistant message as an answer.

use crate::{
    conversation::message::{Message, StopReason, Usage},
    ids::ModelRef,
    provider::{Answer, Api, Part, Reach, Stop, ToolOutcome, Turn, turns},
};
use serde_json::{Value, json};

/// The messages of a conversation that `model` continues.
#[must_use]
pub fn messages(turns: &[Turn], model: &ModelRef, timestamp_ms: i64) -> Vec<Value> {
    let blocks = |parts: &[Part]| parts.iter().map(Part::block).collect::<Vec<_>>();
    let message = |turn: &Turn| match turn {
        Turn::User(parts) => json!({ "role": "user", "content": blocks(parts), "timestamp": timestamp_ms }),
        Turn::Assistant(parts) => {
            let mut answer = Answer { parts: parts.clone(), ..Answer::default() };
            if answer.calls_a_tool() {
                answer.stop = Stop::ToolUse;
            }
            answer.message(Api::Client.name(), &model.provider, &model.id, timestamp_ms)
        }
        Turn::Result(ToolOutcome { call, name, parts, is_error }) => json!({
            "role": "toolResult",
            "toolCallId": call,
            "toolName": name,
            "content": blocks(parts),
            "isError": is_error,
            "timestamp": timestamp_ms,
        }),
    };
    turns.iter().map(message).collect()
}

/// Why a message is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// It cannot be read. The text says why.
    Unreadable(String),
    /// The model failed. The text is the provider's, and the usage counts.
    Failed { said: String, usage: Usage, reach: Reach },
}

/// The answer in an assistant message.
///
/// # Errors
/// When it is none, or says that the model failed.
pub fn answer(mut message: Value) -> Result<Answer, NoAnswer> {
    let unreadable = |what: &str| NoAnswer::Unreadable(what.to_owned());
    if !message.is_object() {
        return Err(unreadable("`message` is no message"));
    }
    if message.get("role").is_none() {
        message["role"] = "assistant".into();
    }
    let error = message["errorMessage"].as_str().map(str::to_owned);
    let json = message.to_string();
    let parsed = Message::parse(&json).map_err(|error| unreadable(&error.to_string()))?;
    let Message::Assistant(assistant) = parsed else {
        return Err(unreadable("`message` is no assistant message"));
    };
    let usage = assistant.usage.unwrap_or_default();
    if assistant.failed() {
        let said = error.unwrap_or_else(|| "it failed without a word".to_owned());
        let reach = if assistant.content.is_empty() { Reach::Refused } else { Reach::Sent };
        return Err(NoAnswer::Failed { said, usage, reach });
    }
    let stop = match assistant.stop {
        StopReason::Length => Stop::Length,
        StopReason::ToolUse => Stop::ToolUse,
        _ => Stop::Done,
    };
    Ok(Answer { parts: turns::parts(&json, &message, true), usage, stop, ..Answer::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::turns::{Target, turns};
    use std::borrow::Cow;

    fn model() -> ModelRef {
        ModelRef::parse("editor/writer").expect("a model")
    }

    #[test]
    fn turns_survive_the_way_through_messages() {
        let call =
            Part::Call { id: "c1".into(), name: "read".into(), arguments: r#"{"path":"a"}"#.into(), signature: None };
        let conversation = vec![
            Turn::user("Look at this."),
            Turn::Assistant(vec![Part::text("I will."), call]),
            Turn::Result(ToolOutcome {
                call: "c1".into(),
                name: "read".into(),
                parts: vec![Part::text("no such file")],
                is_error: true,
            }),
            Turn::Assistant(vec![Part::text("There is none.")]),
        ];
        let messages = messages(&conversation, &model(), 7);
        let roles: Vec<_> = messages
            .iter()
            .map(|it| (&it["role"], &it["timestamp"]))
            .map(|(role, at)| (role.as_str(), at.as_i64()))
            .collect();
        let roles_of = |names: [&'static str; 4]| names.map(|name| (Some(name), Some(7)));
        assert_eq!(roles, roles_of(["user", "assistant", "toolResult", "assistant"]));
        assert_eq!((&messages[1]["stopReason"], &messages[3]["stopReason"]), (&json!("toolUse"), &json!("stop")));
        let target = Target { api: Api::Client, provider: "editor", model: "writer" };
        assert_eq!(turns(messages.iter().map(|it| Cow::Owned(it.to_string())), &target), conversation);
    }

    #[test]
    fn signatures_of_an_answer_are_in_the_next_request() {
        let content = json!([
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "S1"},
            {"type": "thinking", "thinking": "", "thinkingSignature": "S2", "redacted": true},
            {"type": "text", "text": "I read.", "textSignature": "S3"},
            {"type": "toolCall", "id": "c", "name": "read", "arguments": {"n": 1}, "thoughtSignature": "S4"},
        ]);
        let read = answer(json!({"content": content, "stopReason": "toolUse"})).expect("an answer");
        let sent = messages(&[Turn::Assistant(read.parts)], &model(), 7);
        assert_eq!(sent[0]["content"], content);
    }

    #[test]
    fn a_message_is_an_answer_or_says_why_it_is_none() {
        let text = json!({"content": [{"type": "text", "text": "hi"}], "stopReason": "length", "usage": {"input": 3, "output": 1}});
        let read = answer(text).expect("an answer");
        assert_eq!((read.text().as_str(), &read.stop, read.usage.input), ("hi", &Stop::Length, 3));
        let failed = json!({"content": [], "stopReason": "error", "errorMessage": "overloaded", "usage": {"input": 5}});
        let Err(NoAnswer::Failed { said, usage, reach }) = answer(failed) else { panic!("an answer") };
        assert_eq!((said.as_str(), usage.input, reach), ("overloaded", 5, Reach::Refused));
        let begun = json!({"content": [{"type": "text", "text": "I"}], "stopReason": "error"});
        assert!(matches!(answer(begun), Err(NoAnswer::Failed { reach: Reach::Sent, .. })));
        for wrong in [json!("hi"), json!({"role": "user", "content": "hi", "timestamp": 1}), json!({"content": 7})] {
            assert!(matches!(answer(wrong.clone()), Err(NoAnswer::Unreadable(_))), "{wrong}");
        }
    }
}
