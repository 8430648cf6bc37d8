//! Anthropic Messages.

use super::{Asked, Verdict, list, only, plain, require, text};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const FIELDS: &[&str] = &[
    "model",
    "messages",
    "max_tokens",
    "system",
    "metadata",
    "stop_sequences",
    "stream",
    "temperature",
    "top_k",
    "top_p",
    "tools",
    "tool_choice",
    "thinking",
    "container",
    "mcp_servers",
    "service_tier",
    "context_management",
    "output_config",
    "output_format",
    "cache_control",
    "compaction",
];

const BLOCKS: &[&str] = &[
    "text",
    "image",
    "document",
    "search_result",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
    "server_tool_use",
    "web_search_tool_result",
    "compaction",
];

pub fn check(asked: &Asked, body: &Map<String, Value>, limit: Option<u64>) -> Verdict {
    require(asked.header("anthropic-version").is_some(), || "anthropic-version: header is required".to_owned())?;
    only(body, FIELDS, |name| format!("{name}: Extra inputs are not permitted"))?;
    for name in ["model", "messages", "max_tokens"] {
        require(body.contains_key(name), || format!("{name}: Field required"))?;
    }
    let body = &asked.body;
    output(body, asked.model(), limit)?;
    system(&body["system"])?;
    tools(body)?;
    let messages = list(&body["messages"]);
    require(!messages.is_empty(), || "messages: at least one message is required".to_owned())?;
    let blocks = list(&messages[0]["content"]);
    let is_block = blocks.len() == 1 && blocks[0]["type"] == "compaction";
    require(is_block || messages[0]["role"] == "user", || {
        "messages: first message must use the \"user\" role".to_owned()
    })?;
    for (at, message) in messages.iter().enumerate() {
        content(messages, at, message)?;
    }
    pairs(messages)?;
    thinking(body, messages)?;
    let marked = marks(body);
    require(marked <= 4, || format!("A maximum of 4 blocks with cache_control may be provided. Found {marked}."))
}

fn output(body: &Value, model: &str, limit: Option<u64>) -> Verdict {
    let Some(max) = body["max_tokens"].as_u64() else {
        return Err("max_tokens: Input should be a valid integer".to_owned());
    };
    require(max >= 1, || "max_tokens: Input should be greater than or equal to 1".to_owned())?;
    let limit = limit.unwrap_or(u64::MAX);
    require(max <= limit, || {
        format!("max_tokens: {max} > {limit}, which is the maximum allowed number of output tokens for {model}")
    })
}

fn system(system: &Value) -> Verdict {
    require(system.is_null() || system.is_string() || system.is_array(), || {
        "system: Input should be a valid list".to_owned()
    })?;
    let full = list(system).iter().all(|block| !text(block, "text").is_empty());
    require(full, || "system: text content blocks must be non-empty".to_owned())
}

fn tools(body: &Value) -> Verdict {
    let tools = list(&body["tools"]);
    let mut names = BTreeSet::new();
    for (at, tool) in tools.iter().enumerate() {
        // Tools of the provider have a type and no schema.
        let own = tool["type"].as_str().is_some_and(|kind| kind != "custom");
        require(plain(text(tool, "name"), 128), || {
            format!("tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        })?;
        require(own || tool["input_schema"].is_object(), || format!("tools.{at}.custom.input_schema: Field required"))?;
        require(names.insert(text(tool, "name")), || "tools: Tool names must be unique.".to_owned())?;
    }
    let choice = &body["tool_choice"];
    if choice.is_null() {
        return Ok(());
    }
    require(!tools.is_empty(), || "tool_choice: may only be specified while providing tools".to_owned())?;
    match text(choice, "type") {
        "auto" | "any" | "none" => Ok(()),
        "tool" => {
            let name = text(choice, "name");
            require(names.contains(name), || format!("Tool '{name}' not found in provided tools"))
        }
        other => Err(format!(
            "tool_choice: Input tag '{other}' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'"
        )),
    }
}

fn content(messages: &[Value], at: usize, message: &Value) -> Verdict {
    let last = at + 1 == messages.len();
    let role = text(message, "role");
    require(role == "user" || role == "assistant", || {
        format!("messages: Unexpected role \"{role}\". Allowed roles are \"user\" or \"assistant\"")
    })?;
    let fields = message.as_object().map(|fields| {
        only(fields, &["role", "content"], |name| format!("messages.{at}.{name}: Extra inputs are not permitted"))
    });
    fields.unwrap_or(Ok(()))?;
    let content = &message["content"];
    require(content.is_string() || content.is_array(), || format!("messages.{at}.content: Field required"))?;
    let empty = content.as_str().is_some_and(str::is_empty) || content.as_array().is_some_and(Vec::is_empty);
    require(!empty || (last && role == "assistant"), || {
        format!(
            "messages.{at}: all messages must have non-empty content except for the optional final assistant message"
        )
    })?;
    for (nth, block) in list(content).iter().enumerate() {
        let place = format!("messages.{at}.content.{nth}");
        one(&place, role, block)?;
    }
    let ending = content.as_str().or_else(|| list(content).last().and_then(|block| block["text"].as_str()));
    let trailing = ending.is_some_and(|text| text.ends_with(char::is_whitespace));
    require(!(last && role == "assistant" && trailing), || {
        "messages: final assistant content cannot end with trailing whitespace".to_owned()
    })
}

fn one(place: &str, role: &str, block: &Value) -> Verdict {
    let kind = text(block, "type");
    require(BLOCKS.contains(&kind), || {
        format!("{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
    })?;
    let lacks = |name: &str| format!("{place}.{kind}.{name}: Field required");
    let id = |name: &str| {
        require(block[name].is_string(), || lacks(name))?;
        require(plain(text(block, name), usize::MAX), || {
            format!("{place}.{kind}.{name}: String should match pattern '^[a-zA-Z0-9_-]+$'")
        })
    };
    match kind {
        "text" => {
            require(!text(block, "text").is_empty(), || "messages: text content blocks must be non-empty".to_owned())?;
            require(!text(block, "text").trim().is_empty(), || {
                "messages: text content blocks must contain non-whitespace text".to_owned()
            })
        }
        "image" => image(place, &block["source"]),
        "tool_use" => {
            require(role == "assistant", || {
                "messages: `tool_use` blocks can only be in `assistant` messages".to_owned()
            })?;
            id("id")?;
            require(plain(text(block, "name"), 200), || {
                format!("{place}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,200}}$'")
            })?;
            require(block["input"].is_object(), || {
                format!("{place}.tool_use.input: Input should be a valid dictionary")
            })
        }
        "tool_result" => {
            require(role == "user", || "messages: `tool_result` blocks can only be in `user` messages".to_owned())?;
            id("tool_use_id")?;
            let full =
                list(&block["content"]).iter().all(|part| part["type"] != "text" || !text(part, "text").is_empty());
            require(full, || "messages: text content blocks must be non-empty".to_owned())?;
            let mut images = list(&block["content"]).iter().filter(|part| part["type"] == "image");
            images.try_for_each(|part| image(place, &part["source"]))
        }
        "thinking" | "redacted_thinking" => {
            let needed: &[&str] = if kind == "thinking" { &["thinking", "signature"] } else { &["data"] };
            for name in needed {
                require(block[*name].is_string(), || lacks(name))?;
            }
            require(block["cache_control"].is_null(), || {
                format!("{place}.{kind}.cache_control: Extra inputs are not permitted")
            })
        }
        _ => Ok(()),
    }
}

fn image(place: &str, source: &Value) -> Verdict {
    if source["type"] != "base64" {
        return Ok(());
    }
    let known = ["image/jpeg", "image/png", "image/gif", "image/webp"].contains(&text(source, "media_type"));
    require(known, || {
        format!(
            "{place}.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
        )
    })?;
    require(!text(source, "data").is_empty(), || format!("{place}.image.source.base64: image cannot be empty"))
}

/// Every call is answered in the very next message, before anything else in it, and nothing else is.
fn pairs(messages: &[Value]) -> Verdict {
    let of = |message: &Value, kind: &str, name: &str| -> Vec<String> {
        let blocks = list(&message["content"]).iter().filter(|block| block["type"] == kind);
        blocks.map(|block| text(block, name).to_owned()).collect()
    };
    let mut known = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let calls = of(message, "tool_use", "id");
        require(calls.iter().all(|id| known.insert(id.clone())), || {
            "messages: `tool_use` ids must be unique".to_owned()
        })?;
        let before = if at == 0 { Vec::new() } else { of(&messages[at - 1], "tool_use", "id") };
        for (nth, block) in list(&message["content"]).iter().enumerate() {
            let id = text(block, "tool_use_id");
            require(block["type"] != "tool_result" || before.iter().any(|known| known == id), || {
                format!(
                    "messages.{at}.content.{nth}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
            })?;
        }
        let answers = of(message, "tool_result", "tool_use_id");
        let twice = answers.iter().enumerate().find(|(nth, id)| answers[..*nth].contains(id));
        require(twice.is_none(), || {
            format!(
                "messages.{at}.content: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {}",
                twice.expect("one").1
            )
        })?;
        // Results stand at the head of the next message; behind a text they are not found.
        let next = messages.get(at + 1).filter(|next| next["role"] == "user");
        let head = next.map_or(&[][..], |next| list(&next["content"]));
        let head: Vec<&str> = head
            .iter()
            .take_while(|block| block["type"] == "tool_result")
            .map(|block| text(block, "tool_use_id"))
            .collect();
        let open: Vec<&str> = calls.iter().map(String::as_str).filter(|id| !head.contains(id)).collect();
        require(open.is_empty(), || {
            format!(
                "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
                open.join(", ")
            )
        })?;
    }
    Ok(())
}

fn thinking(body: &Value, messages: &[Value]) -> Verdict {
    if body["thinking"]["type"] != "enabled" {
        return Ok(());
    }
    let budget = body["thinking"]["budget_tokens"].as_u64();
    let budget = budget.ok_or_else(|| "thinking.enabled.budget_tokens: Field required".to_owned())?;
    require(budget >= 1024, || {
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024".to_owned()
    })?;
    require(body["max_tokens"].as_u64().is_some_and(|max| max > budget), || {
        "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size".to_owned()
    })?;
    require(body["temperature"].as_f64().is_none_or(|one| (one - 1.0).abs() < f64::EPSILON), || {
        "`temperature` may only be set to 1 when thinking is enabled.".to_owned()
    })?;
    require(!["any", "tool"].contains(&text(&body["tool_choice"], "type")), || {
        "Thinking may not be enabled when tool_choice forces tool use.".to_owned()
    })?;
    // A turn that goes on after its tools must show what was thought before them.
    let last = messages.iter().rposition(|message| message["role"] == "assistant");
    let Some(at) = last else { return Ok(()) };
    let blocks = list(&messages[at]["content"]);
    let called = blocks.iter().any(|block| block["type"] == "tool_use");
    let first = blocks.first().map_or("", |block| text(block, "type"));
    require(!called || ["thinking", "redacted_thinking"].contains(&first), || {
        format!(
            "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
        )
    })
}

fn marks(value: &Value) -> usize {
    match value {
        Value::Array(parts) => parts.iter().map(marks).sum(),
        Value::Object(fields) => {
            let marked = fields.get("cache_control").is_some_and(Value::is_object);
            usize::from(marked) + fields.values().map(marks).sum::<usize>()
        }
        _ => 0,
    }
}
