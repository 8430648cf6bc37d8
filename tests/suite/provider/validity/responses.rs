//! OpenAI Responses, without anything stored.

use super::{Asked, Verdict, list, only, picture, plain, require, text, unsupported};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const FIELDS: &[&str] = &[
    "model",
    "input",
    "instructions",
    "stream",
    "stream_options",
    "store",
    "include",
    "reasoning",
    "text",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_output_tokens",
    "max_tool_calls",
    "temperature",
    "top_p",
    "top_logprobs",
    "metadata",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "truncation",
    "user",
    "background",
    "conversation",
    "previous_response_id",
    "context_management",
];

const COMPACT_FIELDS: &[&str] = &["model", "input", "instructions", "previous_response_id", "prompt_cache_key"];

pub fn check(asked: &Asked, body: &Map<String, Value>, limit: Option<u64>) -> Verdict {
    let compact = asked.path.ends_with("/compact");
    let known = if compact { COMPACT_FIELDS } else { FIELDS };
    only(body, known, |name| format!("Unknown parameter: '{name}'."))?;
    for name in ["model", "input"] {
        require(body.contains_key(name), || format!("Missing required parameter: '{name}'."))?;
    }
    let body = &asked.body;
    require(compact || body["store"] == false, || "Store must be set to false".to_owned())?;
    let previous = text(body, "previous_response_id");
    require(body["previous_response_id"].is_null(), || format!("Previous response with id '{previous}' not found."))?;
    options(body, limit)?;
    if body["input"].is_string() {
        return Ok(());
    }
    let items = list(&body["input"]);
    require(!items.is_empty(), || {
        "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead."
            .to_owned()
    })?;
    for (at, item) in items.iter().enumerate() {
        one(items, at, item)?;
    }
    let mut ids = BTreeSet::new();
    for id in items.iter().filter_map(|item| item["id"].as_str()) {
        require(ids.insert(id), || {
            format!("Duplicate item found with id {id}. Remove duplicate items from your input and try again.")
        })?;
    }
    pairs(items)
}

fn options(body: &Value, limit: Option<u64>) -> Verdict {
    if let Some(max) = body["max_output_tokens"].as_u64() {
        require(max >= 16, || {
            format!(
                "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got {max} instead."
            )
        })?;
        let limit = limit.unwrap_or(u64::MAX);
        require(max <= limit, || {
            format!(
                "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= {limit}, but got {max} instead."
            )
        })?;
    }
    for (at, tool) in list(&body["tools"]).iter().enumerate() {
        let own = tool["type"] != "function";
        require(own || !text(tool, "name").is_empty(), || format!("Missing required parameter: 'tools[{at}].name'."))?;
        require(own || plain(text(tool, "name"), 64), || {
            format!(
                "Invalid 'tools[{at}].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            )
        })?;
    }
    let choice = &body["tool_choice"];
    let forced = choice.is_object() || choice == "required";
    require(!forced || !list(&body["tools"]).is_empty(), || {
        "Tool choice 'required' must be specified with 'tools' parameter.".to_owned()
    })
}

fn one(items: &[Value], at: usize, item: &Value) -> Verdict {
    let place = format!("input[{at}]");
    let id = text(item, "id");
    require(id.len() <= 64, || {
        format!(
            "Invalid '{place}.id': string too long. Expected a string with maximum length 64, but got a string with length {} instead.",
            id.len()
        )
    })?;
    let begins = |prefix: &str| {
        require(id.is_empty() || id.starts_with(prefix), || {
            format!("Invalid '{place}.id': '{id}'. Expected an ID that begins with '{prefix}'.")
        })
    };
    let needs =
        |name: &str| require(!item[name].is_null(), || format!("Missing required parameter: '{place}.{name}'."));
    // A message may leave its type out.
    match item["type"].as_str().unwrap_or("message") {
        "message" => {
            let role = text(item, "role");
            require(["user", "assistant", "system", "developer"].contains(&role), || {
                format!(
                    "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
                )
            })?;
            needs("content")?;
            let (known, names): (&[&str], _) = if role == "assistant" {
                (&["output_text", "refusal"], "'output_text' and 'refusal'")
            } else {
                (&["input_text", "input_image", "input_file"], "'input_text', 'input_image', and 'input_file'")
            };
            if role == "assistant" {
                begins("msg")?;
            }
            for part in list(&item["content"]) {
                let kind = text(part, "type");
                require(known.contains(&kind), || format!("Invalid value: '{kind}'. Supported values are: {names}."))?;
                require(kind != "input_image" || picture(text(part, "image_url")), unsupported)?;
            }
            Ok(())
        }
        "function_call" => {
            begins("fc")?;
            ["call_id", "name", "arguments"].into_iter().try_for_each(needs)?;
            require(text(item, "call_id").len() <= 64, || {
                format!(
                    "Invalid '{place}.call_id': string too long. Expected a string with maximum length 64, but got a string with length {} instead.",
                    text(item, "call_id").len()
                )
            })?;
            require(plain(text(item, "name"), 64), || {
                format!(
                    "Invalid '{place}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
                )
            })?;
            require(item["arguments"].is_string(), || {
                format!("Invalid type for '{place}.arguments': expected a string, but got an object instead.")
            })
        }
        "function_call_output" => {
            ["call_id", "output"].into_iter().try_for_each(needs)?;
            let mut images = list(&item["output"]).iter().filter(|part| part["type"] == "input_image");
            require(images.all(|part| picture(text(part, "image_url"))), unsupported)
        }
        "reasoning" => {
            begins("rs")?;
            needs("summary")?;
            // Without its content it can only be looked up, and nothing was stored.
            require(!text(item, "encrypted_content").is_empty(), || {
                format!(
                    "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
                )
            })?;
            let next = items[at + 1..].iter().find(|next| next["type"] != "reasoning");
            let said = next.is_some_and(|next| next["role"] == "assistant" || next["type"] == "function_call");
            require(said, || {
                format!("Item '{id}' of type 'reasoning' was provided without its required following item.")
            })
        }
        "compaction" | "compaction_summary" => needs("encrypted_content"),
        "compaction_trigger" => Ok(()),
        "item_reference" => Err(format!(
            "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
        )),
        other => Err(format!(
            "Invalid value: '{other}'. Supported values are: 'message', 'reasoning', 'function_call', 'function_call_output', and 'compaction'."
        )),
    }
}

fn pairs(items: &[Value]) -> Verdict {
    let ids = |items: &[Value], kind: &str| -> Vec<String> {
        let items = items.iter().filter(|item| item["type"] == kind);
        items.map(|item| text(item, "call_id").to_owned()).collect()
    };
    for (at, item) in items.iter().enumerate() {
        let id = text(item, "call_id");
        if item["type"] == "function_call_output" {
            require(ids(&items[..at], "function_call").iter().any(|known| known == id), || {
                format!("No tool call found for function call output with call_id {id}.")
            })?;
        }
        if item["type"] == "function_call" {
            require(ids(&items[at..], "function_call_output").iter().any(|known| known == id), || {
                format!("No tool output found for function call {id}.")
            })?;
        }
    }
    Ok(())
}
