//! Items of OpenAI's Responses: those of a request's `input`, those of an answer's `output`, and the whole answer.

use super::{
    Answered, Ending, Given, Piece, Returned,
    look::{Look, Spot, image_of_url, text_block},
};
use serde_json::{Value, json, value::RawValue};

pub(super) struct OpenaiResponses;

impl Given for OpenaiResponses {
    fn read(&self, item: Look<'_>) -> Result<Vec<Piece>, Spot> {
        if let Some(output) = item.get("output").filter(|_| item.get("type").is_none()) {
            let reason = item.get("incomplete_details").and_then(|it| it.value["reason"].as_str());
            let stop = reason.or(item.maybe_text("status")?).map(str::to_owned);
            let mut parts = Vec::new();
            for piece in output.items()? {
                parts.push(answered(&piece)?);
            }
            return Ok(vec![Piece::Answer(Answered { parts, stop, usage: item.raw("usage") })]);
        }
        let kind = match item.maybe_text("type")? {
            Some(kind) => kind,
            None if item.get("role").is_some() => "message",
            None => return Err(item.wrong_at("type", "missing field `type`")),
        };
        match kind {
            "message" => match item.text("role")? {
                role @ ("user" | "developer") => {
                    let content = shown(&item.need("content")?)?;
                    Ok(vec![Piece::Said(json!({ "role": role, "content": content }))])
                }
                "assistant" => Ok(vec![Piece::Item(answered(&item)?)]),
                "system" => Err(item.wrong_at("role", super::SYSTEM)),
                other => {
                    let problem = format!("unknown role `{other}`; expected user, assistant or developer");
                    Err(item.wrong_at("role", problem))
                }
            },
            "function_call_output" => Ok(vec![Piece::Result(Returned {
                call: item.text("call_id")?.to_owned(),
                name: String::new(),
                content: match shown(&item.need("output")?)? {
                    Value::String(text) => vec![text_block(&text)],
                    Value::Array(blocks) => blocks,
                    _ => Vec::new(),
                },
                is_error: false,
            })]),
            kind if kind.ends_with("_output") || kind == "item_reference" => {
                Err(item.wrong_at("type", format!("unknown item `{kind}`; expected message or function_call_output")))
            }
            _ => Ok(vec![Piece::Item(answered(&item)?)]),
        }
    }

    fn body(&self, parts: &str, ending: Ending<'_>, usage: Option<&RawValue>) -> String {
        let incomplete = match ending {
            Ending::Length | Ending::Said("incomplete" | "response.incomplete") => Some("max_output_tokens"),
            Ending::Said(reason @ ("max_output_tokens" | "content_filter")) => Some(reason),
            Ending::Done | Ending::Said(_) => None,
        };
        let end = match incomplete {
            Some(reason) => format!(r#""status":"incomplete","incomplete_details":{}"#, json!({ "reason": reason })),
            None => r#""status":"completed""#.to_owned(),
        };
        format!(r#"{{{end},"output":[{parts}],"usage":{}}}"#, usage.map_or("null", RawValue::get))
    }

    fn counts(&self) -> &'static [&'static str] {
        &[
            "/input_tokens",
            "/output_tokens",
            "/total_tokens",
            "/input_tokens_details/cached_tokens",
            "/input_tokens_details/cache_write_tokens",
        ]
    }
}

/// A text, or texts and images.
fn shown(content: &Look<'_>) -> Result<Value, Spot> {
    if let Some(text) = content.value.as_str() {
        return Ok(text.into());
    }
    let shown = |block: &Look<'_>| match block.text("type")? {
        "input_text" | "text" => Ok(text_block(block.text("text")?)),
        "input_image" => image_of_url(&block.need("image_url")?),
        other => Err(block.wrong_at("type", format!("unknown part `{other}`; expected input_text or input_image"))),
    };
    content.items()?.iter().map(shown).collect()
}

/// Items of tools that the server executes.
const OF_SERVER: [&str; 9] = [
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "tool_search_call",
    "compaction",
];

/// An item of an answer. Items of the server's own tools are left out when the answer is read.
fn answered(item: &Look<'_>) -> Result<String, Spot> {
    match item.maybe_text("type")?.unwrap_or("message") {
        "message" => {
            let content = item.need("content")?;
            if let Some(text) = content.value.as_str() {
                let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
                return Ok(json!({ "type": "message", "role": "assistant", "content": content }).to_string());
            }
            for block in content.items()? {
                match block.text("type")? {
                    "output_text" => drop(block.text("text")?),
                    "refusal" => drop(block.text("refusal")?),
                    other => {
                        let problem = format!("unknown part `{other}` of an answer; expected output_text or refusal");
                        return Err(block.wrong_at("type", problem));
                    }
                }
            }
        }
        "function_call" => drop((item.text("call_id")?, item.text("name")?, item.text("arguments")?)),
        "reasoning" => {}
        kind if OF_SERVER.contains(&kind) => {}
        other => {
            let known = "message, reasoning, function_call or an item of the provider's own tools";
            return Err(item.wrong_at("type", format!("unknown item `{other}` of an answer; expected {known}")));
        }
    }
    Ok(item.exact())
}
