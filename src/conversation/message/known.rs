//! The members and the stop reasons of pi's messages. A misspelt one in a message of a host would be lost without an error.

use super::NotAMessage;
use crate::text::{
    members::{Form, misspelt},
    one_line, spelling,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap};

static BLOCK: Form = Form {
    members: &[
        "type",
        "text",
        "textSignature",
        "thinking",
        "thinkingSignature",
        "redacted",
        "id",
        "name",
        "arguments",
        "thoughtSignature",
        "data",
        "mimeType",
    ],
    below: &[],
    kinds: &[
        ("text", &["type", "text", "textSignature"]),
        ("thinking", &["type", "thinking", "thinkingSignature", "redacted"]),
        ("toolCall", &["type", "id", "name", "arguments", "thoughtSignature"]),
        ("image", &["type", "data", "mimeType"]),
    ],
    foreign: &[("args", "arguments"), ("input", "arguments")],
};

static COST: Form = Form::flat(&["input", "output", "cacheRead", "cacheWrite", "total"]);

/// The counts of a usage.
const COUNTS: [&str; 5] = ["input", "output", "cacheRead", "cacheWrite", "totalTokens"];

static USAGE: Form = Form::with(&[COUNTS[0], COUNTS[1], COUNTS[2], COUNTS[3], COUNTS[4], "cost"], &[("cost", &COST)]);

static ANSWER: Form = Form::with(
    &["role", "content", "api", "provider", "model", "usage", "stopReason", "errorMessage", "timestamp"],
    &[("content", &BLOCK), ("usage", &USAGE)],
);

static RESULT: Form =
    Form::with(&["role", "toolCallId", "toolName", "content", "isError", "timestamp"], &[("content", &BLOCK)]);

static EXECUTION: Form = Form::flat(&[
    "role",
    "command",
    "code",
    "output",
    "exitCode",
    "cancelled",
    "truncated",
    "excludeFromContext",
    "timestamp",
]);

static OTHER: Form = Form::with(&["role", "content", "customType", "display", "timestamp"], &[("content", &BLOCK)]);

/// The stop reasons of an answer.
const STOP_REASONS: [&str; 5] = ["stop", "length", "toolUse", "error", "aborted"];

/// The names that providers have for the stop reason `length`. A host may pass them on.
pub(super) const CUT_OFF: [&str; 5] =
    ["max_tokens", "max_output_tokens", "incomplete", "response.incomplete", "model_context_window_exceeded"];

/// The members of a message that its other members are judged by.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(borrow, default)]
    role: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

/// Checks that nothing of a message of a host is lost: its members and its stop reason are not misspelt, and its usage has a
/// count. A text that is no message passes: its reader refuses it.
///
/// # Errors
/// The first problem with its path.
pub fn check(json: &str) -> Result<(), NotAMessage> {
    let Ok(head) = serde_json::from_str::<Head<'_>>(json) else { return Ok(()) };
    let text = |value: Option<&RawValue>| value.and_then(|value| serde_json::from_str::<String>(value.get()).ok());
    let role = text(head.role);
    let form = match role.as_deref() {
        Some("assistant") => &ANSWER,
        Some("toolResult") => &RESULT,
        Some("bashExecution" | "pythonExecution") => &EXECUTION,
        _ => &OTHER,
    };
    if let Some(misspelt) = misspelt(json, form) {
        return Err(NotAMessage { problem: misspelt.to_string(), path: misspelt.path });
    }
    if role.as_deref() == Some("assistant") {
        text(head.stop_reason).map_or(Ok(()), |stop| check_stop_reason(&stop))?;
        head.usage.map_or(Ok(()), check_counts)?;
    }
    Ok(())
}

/// A host may pass on a stop reason of its provider, in any style, so only one with other letters is refused.
fn check_stop_reason(stop: &str) -> Result<(), NotAMessage> {
    // The status of an answer that came to its end looks like the one that did not.
    const OTHERS: [&str; 2] = ["complete", "completed"];
    let all = STOP_REASONS.into_iter().chain(CUT_OFF).chain(OTHERS);
    let meant = spelling::meant_member(stop, all).filter(|meant| !spelling::is_same(stop, meant));
    meant.map_or(Ok(()), |meant| {
        let (found, known) = (one_line(stop, 64), STOP_REASONS.join("`, `"));
        let problem = format!("unknown value `{found}`, expected one of `{known}`; did you mean `{meant}`?");
        Err(NotAMessage { path: "stopReason".to_owned(), problem })
    })
}

/// A usage without any of the counts would be read as one of zeros.
fn check_counts(usage: &RawValue) -> Result<(), NotAMessage> {
    let Ok(usage) = serde_json::from_str::<BTreeMap<Cow<'_, str>, IgnoredAny>>(usage.get()) else { return Ok(()) };
    if usage.is_empty() || COUNTS.iter().chain(&["cost"]).any(|count| usage.contains_key(*count)) {
        return Ok(());
    }
    let problem = format!("it has no count; expected {}", COUNTS.join(", "));
    Err(NotAMessage { path: "usage".to_owned(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::message::{Message, StopReason};

    #[test]
    fn a_misspelt_member_of_each_role_is_refused() {
        for (json, path, meant) in [
            (r#"{"role":"assistant","content":[],"stopReson":"stop"}"#, "stopReson", "stopReason"),
            (r#"{"role":"assistant","content":[],"usage":{"ouput":7}}"#, "usage.ouput", "output"),
            (
                r#"{"role":"assistant","content":[],"usage":{"cost":{"totla":7,"total":1,"inptu":1}}}"#,
                "usage.cost.inptu",
                "input",
            ),
            (
                r#"{"role":"assistant","content":[{"type":"toolCall","arguemnts":{}}]}"#,
                "content[0].arguemnts",
                "arguments",
            ),
            (r#"{"role":"toolResult","tool_call_id":"c","content":""}"#, "tool_call_id", "toolCallId"),
            (r#"{"role":"toolResult","toolCallId":"c","isEror":true}"#, "isEror", "isError"),
            (r#"{"role":"bashExecution","comand":"ls"}"#, "comand", "command"),
            (r#"{"role":"custom","contnt":"x"}"#, "contnt", "content"),
            (r#"{"rol":"user","conten":"x"}"#, "conten", "content"),
            (
                r#"{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"n","args":{}}]}"#,
                "content[0].args",
                "arguments",
            ),
        ] {
            let found = check(json).expect_err(json);
            assert_eq!(found.path, path);
            assert!(found.problem.ends_with(&format!("did you mean {meant:?}?")), "{found:?}");
        }
        for json in [
            r#"{"role":"user","content":"x","stopReson":"a member of the host"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"x","fileType":"md","argument":1}],"detail":1,"timestamps":[]}"#,
            r#"{"role":"assistant","content":[],"usage":{"input":1,"inputs":2,"reasoning":3},"responseId":"r","duration":1}"#,
            r#"{"role":"assistant","content":[],"usage":{},"stopReason":null}"#,
            r#"{"role":"assistant","content":[],"usage":{"cost":{}}}"#,
            "7",
        ] {
            assert!(check(json).is_ok(), "{json}");
        }
    }

    #[test]
    fn an_answer_that_was_cut_off_is_known_by_the_names_of_the_providers() {
        for (stop, expected) in [
            ("length", StopReason::Length),
            ("max_tokens", StopReason::Length),
            ("MAX_TOKENS", StopReason::Length),
            ("response.incomplete", StopReason::Length),
            ("Length", StopReason::Length),
            ("ERROR", StopReason::Error),
            ("refusal", StopReason::Other),
        ] {
            let json = format!(r#"{{"role":"assistant","content":[],"stopReason":"{stop}"}}"#);
            let Ok(Message::Assistant(answer)) = Message::parse(&json) else { panic!("{json}") };
            assert_eq!(answer.stop, expected, "{stop}");
        }
    }

    #[test]
    fn misspelt_stop_reasons_and_usages_without_a_count_are_refused() {
        let check = |members: &str| check(&format!(r#"{{"role":"assistant","content":[],{members}}}"#));
        for known in ["toolUse", "tool_use", "STOP", "LENGTH", "max_tokens", "complete", "refusal"] {
            assert!(check(&format!(r#""stopReason":"{known}""#)).is_ok(), "{known}");
        }
        for (members, path, part) in [
            (r#""stopReason":"stpo""#, "stopReason", "`error`, `aborted`; did you mean `stop`?"),
            (r#""stopReason":"tolUse""#, "stopReason", "did you mean `toolUse`?"),
            (r#""stopReason":"max_token""#, "stopReason", "did you mean `max_tokens`?"),
            (r#""usage":{"input_tokens":7,"output_tokens":1}"#, "usage", "expected input, output"),
        ] {
            let refused = check(members).expect_err(members);
            assert_eq!(refused.path, path);
            assert!(refused.problem.contains(part), "{}", refused.problem);
        }
    }
}
