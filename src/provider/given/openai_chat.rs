//! Messages of OpenAI's Chat Completions: those of a request, the message of an answer, and the whole answer.

use super::{
    Answered, Ending, Given, Piece, Returned,
    look::{Look, Spot, image_of_url, text_block},
};
use serde_json::{Value, json, value::RawValue};

pub(super) struct OpenaiChat;

impl Given for OpenaiChat {
    fn read(&self, message: Look<'_>) -> Result<Vec<Piece>, Spot> {
        if let Some(choices) = message.get("choices") {
            let choices = choices.items()?;
            let choice = choices.first().ok_or_else(|| message.wrong_at("choices", "expected a choice"))?;
            let stop = choice.maybe_text("finish_reason")?.map(str::to_owned);
            let parts = vec![answered(&choice.need("message")?)?];
            return Ok(vec![Piece::Answer(Answered { parts, stop, usage: message.raw("usage") })]);
        }
        match message.text("role")? {
            role @ ("user" | "developer") => {
                let content = shown(&message)?;
                Ok(vec![Piece::Said(json!({ "role": role, "content": content }))])
            }
            "tool" => Ok(vec![Piece::Result(Returned {
                call: message.text("tool_call_id")?.to_owned(),
                name: String::new(),
                content: match shown(&message)? {
                    Value::String(text) => vec![text_block(&text)],
                    Value::Array(blocks) => blocks,
                    _ => Vec::new(),
                },
                is_error: false,
            })]),
            "assistant" => {
                let parts = vec![answered(&message)?];
                Ok(vec![Piece::Answer(Answered { parts, ..Answered::default() })])
            }
            "system" => Err(message.wrong_at("role", super::SYSTEM)),
            other => {
                let problem = format!("unknown role `{other}`; expected user, assistant, tool or developer");
                Err(message.wrong_at("role", problem))
            }
        }
    }

    fn body(&self, parts: &str, ending: Ending<'_>, usage: Option<&RawValue>) -> String {
        let finish = match ending {
            Ending::Done => "stop",
            Ending::Length => "length",
            Ending::Said(finish) => finish,
        };
        let message = if parts.is_empty() { r#"{"role":"assistant"}"# } else { parts };
        let usage = usage.map_or("null", RawValue::get);
        format!(r#"{{"choices":[{{"message":{message},"finish_reason":{}}}],"usage":{usage}}}"#, Value::from(finish))
    }

    fn counts(&self) -> &'static [&'static str] {
        &[
            "/prompt_tokens",
            "/completion_tokens",
            "/total_tokens",
            "/prompt_tokens_details/cached_tokens",
            "/completion_tokens_details/reasoning_tokens",
            "/input_tokens",
            "/output_tokens",
        ]
    }
}

/// The text, or the texts and images, of a message.
fn shown(message: &Look<'_>) -> Result<Value, Spot> {
    let content = message.need("content")?;
    if let Some(text) = content.value.as_str() {
        return Ok(text.into());
    }
    let shown = |block: &Look<'_>| match block.text("type")? {
        "text" => Ok(text_block(block.text("text")?)),
        "image_url" => image_of_url(&block.need("image_url")?.need("url")?),
        other => Err(block.wrong_at("type", format!("unknown part `{other}`; expected text or image_url"))),
    };
    content.items()?.iter().map(shown).collect()
}

/// The message of an answer.
fn answered(message: &Look<'_>) -> Result<String, Spot> {
    match message.get("content") {
        Some(content) if !content.value.is_string() => {
            for block in content.items()? {
                match block.text("type")? {
                    "text" => drop(block.text("text")?),
                    "refusal" => drop(block.text("refusal")?),
                    other => {
                        let problem = format!("unknown part `{other}` of an answer; expected text or refusal");
                        return Err(block.wrong_at("type", problem));
                    }
                }
            }
        }
        _ => {}
    }
    if let Some(calls) = message.get("tool_calls") {
        for call in calls.items()? {
            call.text("id")?;
            let function = call.need("function")?;
            function.text("name")?;
            function.maybe_text("arguments")?;
        }
    }
    Ok(message.exact())
}
