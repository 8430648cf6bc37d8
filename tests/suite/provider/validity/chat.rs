//! OpenAI Chat Completions.

use super::{Verdict, list, only, picture, plain, require, text, unsupported};
use serde_json::{Map, Value};

const FIELDS: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "n",
    "stop",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "reasoning_effort",
    "verbosity",
    "seed",
    "user",
    "store",
    "metadata",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "frequency_penalty",
    "presence_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "modalities",
    "prediction",
    "audio",
    "web_search_options",
];

pub fn check(body: &Map<String, Value>, limit: Option<u64>) -> Verdict {
    only(body, FIELDS, |name| format!("Unrecognized request argument supplied: {name}"))?;
    for name in ["model", "messages"] {
        require(body.contains_key(name), || format!("Missing required parameter: '{name}'."))?;
    }
    let body = &Value::Object(body.clone());
    require(!text(body, "model").is_empty(), || "you must provide a model parameter".to_owned())?;
    options(body, limit)?;
    let messages = list(&body["messages"]);
    require(!messages.is_empty(), || {
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."
            .to_owned()
    })?;
    for (at, message) in messages.iter().enumerate() {
        one(at, message)?;
    }
    pairs(messages)
}

fn options(body: &Value, limit: Option<u64>) -> Verdict {
    require(body["stream"] == true || body["stream_options"].is_null(), || {
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.".to_owned()
    })?;
    require(body["max_tokens"].is_null() || body["max_completion_tokens"].is_null(), || {
        "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.".to_owned()
    })?;
    for name in ["max_tokens", "max_completion_tokens"] {
        let Some(max) = body[name].as_u64() else {
            require(body[name].is_null(), || format!("Invalid type for '{name}': expected an integer."))?;
            continue;
        };
        require(max >= 1, || {
            format!("Invalid '{name}': integer below minimum value. Expected a value >= 1, but got {max} instead.")
        })?;
        let limit = limit.unwrap_or(u64::MAX);
        require(max <= limit, || {
            format!(
                "{name} is too large: {max}. This model supports at most {limit} completion tokens, whereas you provided {max}."
            )
        })?;
    }
    require(body["tools"].is_null() || !list(&body["tools"]).is_empty(), || "[] is too short - 'tools'".to_owned())?;
    for (at, tool) in list(&body["tools"]).iter().enumerate() {
        require(tool["type"] == "function" && plain(text(&tool["function"], "name"), 64), || {
            format!(
                "Invalid 'tools[{at}].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            )
        })?;
    }
    for name in ["tool_choice", "parallel_tool_calls"] {
        require(body[name].is_null() || !body["tools"].is_null(), || {
            format!("Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.")
        })?;
    }
    Ok(())
}

fn one(at: usize, message: &Value) -> Verdict {
    let role = text(message, "role");
    let known = ["system", "developer", "user", "assistant", "tool"].contains(&role);
    require(known, || {
        format!(
            "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
        )
    })?;
    let content = &message["content"];
    let said = content.as_str().is_some_and(|text| !text.is_empty()) || !list(content).is_empty();
    let calls = &message["tool_calls"];
    require(calls.is_null() || !list(calls).is_empty(), || format!("[] is too short - 'messages.{at}.tool_calls'"))?;
    if role == "assistant" {
        require(said || !calls.is_null() || message["refusal"].is_string(), || {
            format!("Invalid value for 'messages[{at}].content': expected a string, got null.")
        })?;
    } else {
        // A tool may have nothing to say.
        let something = said || (role == "tool" && content.is_string());
        require(something, || format!("Invalid value for 'messages[{at}].content': expected a string, got null."))?;
        require(calls.is_null(), || format!("'tool_calls' is not supported with this role: 'messages[{at}]'."))?;
    }
    for (nth, part) in list(content).iter().enumerate() {
        let kind = text(part, "type");
        require(["text", "image_url", "input_audio", "file", "refusal"].contains(&kind), || {
            format!(
                "Invalid value: '{kind}'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'."
            )
        })?;
        require(kind != "image_url" || role == "user", || {
            format!(
                "Invalid 'messages[{at}]'. Image URLs are only allowed for messages with role 'user', but this message with role '{role}' contains an image URL."
            )
        })?;
        let url = text(&part["image_url"], "url");
        require(kind != "image_url" || picture(url), unsupported)?;
        require(kind != "text" || part["text"].is_string(), || {
            format!("Missing required parameter: 'messages[{at}].content[{nth}].text'.")
        })?;
    }
    for (nth, call) in list(calls).iter().enumerate() {
        let place = format!("messages[{at}].tool_calls[{nth}]");
        let id = text(call, "id");
        require(!id.is_empty(), || format!("Missing required parameter: '{place}.id'."))?;
        require(id.len() <= 40, || {
            format!(
                "Invalid '{place}.id': string too long. Expected a string with maximum length 40, but got a string with length {} instead.",
                id.len()
            )
        })?;
        require(call["type"] == "function", || format!("Missing required parameter: '{place}.type'."))?;
        require(plain(text(&call["function"], "name"), 64), || {
            format!(
                "Invalid '{place}.function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            )
        })?;
        require(call["function"]["arguments"].is_string(), || {
            format!("Invalid type for '{place}.function.arguments': expected a string, but got an object instead.")
        })?;
    }
    Ok(())
}

/// Every answer of a tool belongs to a call before it, and all calls are answered before anybody else speaks.
fn pairs(messages: &[Value]) -> Verdict {
    let mut open: Vec<&str> = Vec::new();
    let mut called = false;
    let unanswered = |open: &[&str]| {
        require(open.is_empty(), || {
            format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                open.join(", ")
            )
        })
    };
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = text(message, "tool_call_id");
            require(!id.is_empty(), || format!("Missing required parameter: 'messages[{at}].tool_call_id'."))?;
            require(called, || {
                "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.".to_owned()
            })?;
            let Some(nth) = open.iter().position(|known| *known == id) else {
                return Err(format!(
                    "Invalid parameter: 'tool_call_id' of '{id}' not found in 'tool_calls' of previous message."
                ));
            };
            open.remove(nth);
            continue;
        }
        unanswered(&open)?;
        open = list(&message["tool_calls"]).iter().map(|call| text(call, "id")).collect();
        called = !open.is_empty();
    }
    unanswered(&open)
}
