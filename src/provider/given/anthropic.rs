//! Messages of Anthropic's Messages: those of a request, and the answer of the server.

use super::{
    Answered, Ending, Given, Piece, Returned,
    look::{Look, Spot, image_block, text_block},
};
use serde_json::{Value, json, value::RawValue};

pub(super) struct Anthropic;

impl Given for Anthropic {
    fn read(&self, message: Look<'_>) -> Result<Vec<Piece>, Spot> {
        match message.text("role")? {
            "user" => user(&message),
            "assistant" => {
                let stop = message.maybe_text("stop_reason")?.map(str::to_owned);
                let parts = answered(&message.need("content")?)?;
                Ok(vec![Piece::Answer(Answered { parts, stop, usage: message.raw("usage") })])
            }
            "system" => Err(message.wrong_at("role", super::SYSTEM)),
            other => Err(message.wrong_at("role", format!("unknown role `{other}`; expected user or assistant"))),
        }
    }

    fn body(&self, parts: &str, ending: Ending<'_>, usage: Option<&RawValue>) -> String {
        let stop = match ending {
            Ending::Done => "end_turn",
            Ending::Length => "max_tokens",
            Ending::Said(stop) => stop,
        };
        let usage = usage.map_or("null", RawValue::get);
        format!(r#"{{"content":[{parts}],"stop_reason":{},"usage":{usage}}}"#, Value::from(stop))
    }

    fn counts(&self) -> &'static [&'static str] {
        &["/input_tokens", "/output_tokens", "/cache_read_input_tokens", "/cache_creation_input_tokens"]
    }
}

/// The results of a user message, and the rest of it.
fn user(message: &Look<'_>) -> Result<Vec<Piece>, Spot> {
    let content = message.need("content")?;
    if let Some(text) = content.value.as_str() {
        return Ok(vec![Piece::Said(json!({ "role": "user", "content": text }))]);
    }
    let mut pieces = Vec::new();
    let mut rest = Vec::new();
    let blocks = content.items()?;
    for block in &blocks {
        match block.text("type")? {
            "tool_result" => pieces.push(Piece::Result(Returned {
                call: block.text("tool_use_id")?.to_owned(),
                name: String::new(),
                content: match block.get("content") {
                    None => Vec::new(),
                    Some(content) => match content.value.as_str() {
                        Some(text) => vec![text_block(text)],
                        None => content.items()?.iter().map(shown).collect::<Result<_, _>>()?,
                    },
                },
                is_error: block.value["is_error"] == true,
            })),
            _ => rest.push(shown(block)?),
        }
    }
    if !rest.is_empty() || blocks.is_empty() {
        pieces.push(Piece::Said(json!({ "role": "user", "content": rest })));
    }
    Ok(pieces)
}

/// A text or an image.
fn shown(block: &Look<'_>) -> Result<Value, Spot> {
    match block.text("type")? {
        "text" => Ok(text_block(block.text("text")?)),
        "image" => {
            let source = block.need("source")?;
            match source.text("type")? {
                "base64" => Ok(image_block(source.text("media_type")?, source.text("data")?)),
                other => Err(source.wrong_at("type", format!("unknown source `{other}` of an image; expected base64"))),
            }
        }
        other => {
            let problem = format!("unknown block `{other}` of a user; expected text, image or tool_result");
            Err(block.wrong_at("type", problem))
        }
    }
}

/// Whether a block is one of the server's own tools, or of its own compaction.
fn is_of_server(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use" | "container_upload" | "compaction")
        || kind.ends_with("_tool_result")
}

/// The blocks of an answer. Blocks of the server's own tools are left out when the answer is read.
fn answered(content: &Look<'_>) -> Result<Vec<String>, Spot> {
    if let Some(text) = content.value.as_str() {
        return Ok(vec![text_block(text).to_string()]);
    }
    let blocks = content.items()?;
    for block in &blocks {
        match block.text("type")? {
            "text" => drop(block.text("text")?),
            "thinking" => drop((block.text("thinking")?, block.maybe_text("signature")?)),
            "redacted_thinking" => drop(block.text("data")?),
            "tool_use" => drop((block.text("id")?, block.text("name")?, block.maybe_object("input")?)),
            kind if is_of_server(kind) => {}
            other => {
                let known = "text, thinking, redacted_thinking, tool_use or a block of the provider's own tools";
                return Err(block.wrong_at("type", format!("unknown block `{other}` of an answer; expected {known}")));
            }
        }
    }
    Ok(blocks.iter().map(Look::exact).collect())
}
