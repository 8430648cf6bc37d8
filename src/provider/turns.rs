//! Turns of a request from stored messages. Signatures go back to their own provider byte for byte or not at all.

use super::{Api, Part, ToolOutcome, Turn};
use crate::prompts::{self, Prompt};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::borrow::Cow;

/// The model that a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// The wire format.
    pub api: Api,
    /// The provider.
    pub provider: &'a str,
    /// The model's name there.
    pub model: &'a str,
}

/// The turns of messages as pi writes them, in order. What is no message, failed, or was never meant for a model is left
/// out, and so are blocks that this version does not know.
pub fn turns<'a>(messages: impl IntoIterator<Item = Cow<'a, str>>, target: &Target<'_>) -> Vec<Turn> {
    turns_with(messages.into_iter().map(|json| (json, Thinking::Goes)), target)
}

/// Whether the thinking of a message goes back to its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// It goes back where the model is the one that signed it.
    Goes,
    /// It is left out.
    Stays,
}

/// The same, with the thinking of some messages left out.
pub fn turns_with<'a>(messages: impl IntoIterator<Item = (Cow<'a, str>, Thinking)>, target: &Target<'_>) -> Vec<Turn> {
    let turn = |(json, thinking): (Cow<'a, str>, Thinking)| {
        let mut turn = turn(&json, target)?;
        if let (Turn::Assistant(parts), Thinking::Stays) = (&mut turn, thinking) {
            parts.retain(|part| !matches!(part, Part::Thinking { .. }));
        }
        Some(turn)
    };
    messages.into_iter().filter_map(turn).collect()
}

/// Stands where an image's bytes are not in the message.
const IMAGE_ELSEWHERE: &str = "[An image, which is kept elsewhere and cannot be shown here.]";

fn turn(json: &str, target: &Target<'_>) -> Option<Turn> {
    let message = crate::conversation::message::value(json)?;
    let text = |text: String| Some(Turn::user(text));
    match message["role"].as_str()? {
        "user" | "developer" | "custom" | "hookMessage" => Some(Turn::User(shown(&message["content"]))),
        "assistant" if matches!(message["stopReason"].as_str(), Some("error" | "aborted")) => None,
        "assistant" => Some(Turn::Assistant(answered(json, &message, target))),
        "toolResult" => Some(Turn::Result(outcome(&message))),
        "bashExecution" | "pythonExecution" if message["excludeFromContext"] == true => None,
        "bashExecution" | "pythonExecution" => text(execution(&message)),
        "fileMention" => Some(Turn::User(message["files"].as_array()?.iter().flat_map(mentioned).collect())),
        "branchSummary" => text(summary(Prompt::BranchSummaryContext.embedded(), &message)),
        "compactionSummary" => text(summary(Prompt::CompactionSummaryContext.embedded(), &message)),
        _ => None,
    }
}

/// Texts and images of a content, which is a text, blocks or nothing.
fn shown(content: &Value) -> Vec<Part> {
    if let Some(text) = content.as_str() {
        return vec![Part::text(text)];
    }
    let block = |block: &Value| match block["type"].as_str()? {
        "text" => Some(Part::text(block["text"].as_str()?)),
        "image" => image(block),
        _ => None,
    };
    blocks(content).iter().filter_map(block).collect()
}

fn blocks(content: &Value) -> &[Value] {
    content.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn image(block: &Value) -> Option<Part> {
    let data = block["data"].as_str()?;
    if data.starts_with("blob:") {
        return Some(Part::text(IMAGE_ELSEWHERE));
    }
    let mime = block["mimeType"].as_str().unwrap_or("image/png");
    Some(Part::Image { mime: mime.to_owned(), data: data.to_owned() })
}

fn answered(json: &str, message: &Value, target: &Target<'_>) -> Vec<Part> {
    let api = message["api"].as_str().and_then(Api::written);
    let its_own = api == Some(target.api) && message["provider"] == target.provider;
    parts(json, message, its_own && message["model"] == target.model)
}

/// The parts of an assistant message. `its_own`: whether its signatures are those of the model.
pub fn parts(json: &str, message: &Value, its_own: bool) -> Vec<Part> {
    if let Some(text) = message["content"].as_str() {
        return vec![Part::text(text)];
    }
    let signature = |value: &Value| value.as_str().filter(|it| its_own && !it.is_empty()).map(str::to_owned);
    let written = arguments_as_written(json);
    let part = |(at, block): (usize, &Value)| match block["type"].as_str()? {
        "text" => {
            let text = block["text"].as_str()?.to_owned();
            Some(Part::Text { text, signature: signature(&block["textSignature"]) })
        }
        "thinking" if its_own => Some(Part::Thinking {
            text: block["thinking"].as_str().unwrap_or_default().to_owned(),
            signature: signature(&block["thinkingSignature"]),
            redacted: block["redacted"] == true,
        }),
        // oh-my-pi's form of it.
        "redactedThinking" if its_own => {
            Some(Part::Thinking { text: String::new(), signature: signature(&block["data"]), redacted: true })
        }
        "toolCall" => Some(Part::Call {
            id: block["id"].as_str()?.to_owned(),
            name: block["name"].as_str()?.to_owned(),
            arguments: match &block["arguments"] {
                Value::String(text) => text.clone(),
                Value::Null => "{}".to_owned(),
                other => written.get(at).cloned().flatten().unwrap_or_else(|| other.to_string()),
            },
            signature: signature(&block["thoughtSignature"]),
        }),
        _ => None,
    };
    blocks(&message["content"]).iter().enumerate().filter_map(part).collect()
}

/// The arguments of each block as they stand in the message: a number of twenty digits is no longer itself once it was
/// a `Value`.
fn arguments_as_written(json: &str) -> Vec<Option<String>> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        content: Vec<Block<'a>>,
    }
    #[derive(Deserialize)]
    struct Block<'a> {
        #[serde(borrow, default)]
        arguments: Option<&'a RawValue>,
    }
    let message: Option<Message<'_>> = serde_json::from_str(json).ok();
    let blocks = message.map(|message| message.content).unwrap_or_default();
    blocks.into_iter().map(|block| block.arguments.map(|it| it.get().to_owned())).collect()
}

fn outcome(message: &Value) -> ToolOutcome {
    let mut parts = shown(&message["content"]);
    // oh-my-pi cut this one: its images went.
    if !message["prunedAt"].is_null() {
        parts.retain(|part| matches!(part, Part::Text { .. }));
    }
    ToolOutcome {
        call: message["toolCallId"].as_str().unwrap_or_default().to_owned(),
        name: message["toolName"].as_str().unwrap_or_default().to_owned(),
        parts,
        is_error: message["isError"] == true,
    }
}

/// A command the user ran beside the model, and what came of it.
fn execution(message: &Value) -> String {
    let command = message["command"].as_str().or(message["code"].as_str()).unwrap_or_default();
    let mut text = format!("I ran this beside you:\n{}", fenced(command));
    match message["output"].as_str().unwrap_or_default().trim_end() {
        "" => text.push_str("\n(no output)"),
        output => text.push_str(&format!("\nIt printed:\n{}", fenced(output))),
    }
    if message["cancelled"] == true {
        text.push_str("\n(it was stopped)");
    } else if let Some(code) = message["exitCode"].as_i64().filter(|code| *code != 0) {
        text.push_str(&format!("\nExit code: {code}"));
    }
    if let (true, Some(path)) = (message["truncated"] == true, message["fullOutputPath"].as_str()) {
        text.push_str(&format!("\nThe output was cut; all of it is in {path}"));
    }
    text
}

/// `text` in a fence that nothing in it closes.
fn fenced(text: &str) -> String {
    let longest = text.split(|it| it != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// A file the user pointed at.
fn mentioned(file: &Value) -> Vec<Part> {
    let path = file["path"].as_str().unwrap_or_default();
    let mut parts = match file["content"].as_str().unwrap_or_default() {
        "" => vec![Part::text(format!("I mean the file {path}"))],
        content => vec![Part::text(format!("I mean the file {path}:\n{}", fenced(content)))],
    };
    parts.extend(image(&file["image"]));
    parts
}

fn summary(template: &str, message: &Value) -> String {
    prompts::render(template, &[("summary", message["summary"].as_str().unwrap_or_default())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TARGET: Target<'_> = Target { api: Api::Anthropic, provider: "anthropic", model: "claude-opus-4-8" };

    fn read(message: Value) -> Vec<Turn> {
        turns([Cow::Owned(message.to_string())], &TARGET)
    }

    fn answer(model: &str) -> Value {
        json!({
            "role": "assistant", "api": "anthropic-messages", "provider": "anthropic", "model": model,
            "content": [
                { "type": "thinking", "thinking": "hm", "thinkingSignature": "Sig+/==" },
                { "type": "thinking", "thinking": "[hidden]", "thinkingSignature": "Data", "redacted": true },
                { "type": "redactedThinking", "data": "More" },
                { "type": "text", "text": "Look.", "textSignature": "{\"v\":1}" },
                { "type": "anthropicServerTool", "block": {} },
                { "type": "toolCall", "id": "c|fc", "name": "read", "arguments": {"b": 1}, "thoughtSignature": "Th" },
            ],
        })
    }

    #[test]
    fn what_is_signed_goes_back_to_who_signed_it() {
        let thinking = |text: &str, signature: &str, redacted| Part::Thinking {
            text: text.into(),
            signature: Some(signature.into()),
            redacted,
        };
        let parts = vec![
            thinking("hm", "Sig+/==", false),
            thinking("[hidden]", "Data", true),
            thinking("", "More", true),
            Part::Text { text: "Look.".into(), signature: Some("{\"v\":1}".into()) },
            Part::Call {
                id: "c|fc".into(),
                name: "read".into(),
                arguments: "{\"b\":1}".into(),
                signature: Some("Th".into()),
            },
        ];
        assert_eq!(read(answer("claude-opus-4-8")), [Turn::Assistant(parts)]);
    }

    #[test]
    fn a_format_has_several_names() {
        let signed = |api: &str| {
            let mut message = answer("claude-opus-4-8");
            message["api"] = api.into();
            matches!(&read(message)[0], Turn::Assistant(parts) if matches!(parts[0], Part::Thinking { .. }))
        };
        assert!(signed("anthropic-messages") && signed("anthropic"));
        assert!(!signed("bedrock-converse-stream") && !signed("openai-completions") && !signed(""));
    }

    #[test]
    fn nobody_else_sees_it() {
        let mut elsewhere = answer("claude-opus-4-8");
        elsewhere["provider"] = "openrouter".into();
        let mut unnamed = answer("claude-opus-4-8");
        unnamed.as_object_mut().expect("an object").remove("api");
        let call =
            Part::Call { id: "c|fc".into(), name: "read".into(), arguments: "{\"b\":1}".into(), signature: None };
        let parts = vec![Part::text("Look."), call];
        for message in [answer("claude-opus-4-7"), elsewhere, unnamed] {
            assert_eq!(read(message), [Turn::Assistant(parts.clone())]);
        }
    }

    #[test]
    fn arguments_stay_as_they_were_written() {
        let json = r#"{"role":"assistant","content":[{"type":"text","text":"x"},
            {"type":"toolCall","id":"1","name":"f","arguments":{"n":12345678901234567890123, "f":1.10}}]}"#;
        let read = turns([Cow::Borrowed(json)], &TARGET);
        let Turn::Assistant(parts) = &read[0] else { panic!("{read:?}") };
        let Part::Call { arguments, .. } = &parts[1] else { panic!("{parts:?}") };
        assert_eq!(arguments, r#"{"n":12345678901234567890123, "f":1.10}"#);
    }

    #[test]
    fn everything_else_is_said_by_the_user() {
        let row = |message: Value, expected: &str| {
            assert_eq!(read(message), [Turn::user(expected)]);
        };
        row(json!({ "role": "user", "content": "hi" }), "hi");
        row(json!({ "role": "developer", "content": [{ "type": "text", "text": "hi" }] }), "hi");
        row(json!({ "role": "custom", "customType": "x", "content": "hi", "display": false }), "hi");
        row(json!({ "role": "hookMessage", "content": "hi" }), "hi");
        row(
            json!({ "role": "bashExecution", "command": "ls", "output": "a\n", "exitCode": 0 }),
            "I ran this beside you:\n```\nls\n```\nIt printed:\n```\na\n```",
        );
        row(
            json!({ "role": "bashExecution", "command": "false", "output": "", "exitCode": 1 }),
            "I ran this beside you:\n```\nfalse\n```\n(no output)\nExit code: 1",
        );
        row(
            json!({ "role": "pythonExecution", "code": "x", "output": "```", "cancelled": true, "exitCode": 130 }),
            "I ran this beside you:\n```\nx\n```\nIt printed:\n````\n```\n````\n(it was stopped)",
        );
        row(
            json!({ "role": "fileMention", "files": [{ "path": "/a", "content": "b" }] }),
            "I mean the file /a:\n```\nb\n```",
        );
        let summary = read(json!({ "role": "compactionSummary", "summary": "It went well." }));
        assert!(matches!(&summary[0], Turn::User(parts)
            if matches!(&parts[0], Part::Text { text, .. } if text.contains("<summary>\nIt went well.\n</summary>"))));
    }

    #[test]
    fn what_is_for_no_model_is_left_out() {
        for message in [
            json!({ "role": "system", "content": "x" }),
            json!({ "role": "bashExecution", "command": "x", "excludeFromContext": true }),
            json!({ "role": "assistant", "stopReason": "aborted", "content": [{ "type": "text", "text": "x" }] }),
            json!({ "role": "tomorrow", "content": "x" }),
            json!("x"),
        ] {
            assert_eq!(read(message), []);
        }
        assert_eq!(turns([Cow::Borrowed("{")], &TARGET), []);
        assert_eq!(read(json!({ "role": "user", "content": null })), [Turn::User(Vec::new())]);
        assert_eq!(read(json!({ "role": "user" })), [Turn::User(Vec::new())]);
    }

    #[test]
    fn results_and_images() {
        let image = |data: &str| json!({ "type": "image", "data": data, "mimeType": "image/jpeg" });
        let mut message = json!({
            "role": "toolResult", "toolCallId": "c", "toolName": "read", "isError": true,
            "content": [image("AAAA"), image("blob:sha256:00ff"), { "type": "text", "text": "x" }],
        });
        let shown = Part::Image { mime: "image/jpeg".into(), data: "AAAA".into() };
        let outcome =
            |parts| Turn::Result(ToolOutcome { call: "c".into(), name: "read".into(), parts, is_error: true });
        let texts = vec![Part::text(IMAGE_ELSEWHERE), Part::text("x")];
        assert_eq!(read(message.clone()), [outcome([vec![shown], texts.clone()].concat())]);
        message["prunedAt"] = 1.into();
        assert_eq!(read(message), [outcome(texts)]);
    }
}
