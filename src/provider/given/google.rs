//! Contents of Google's `generateContent`: those of a request, the content of a candidate, and the whole answer.

use super::{
    Answered, Ending, Given, Piece, Returned,
    look::{Look, Spot, image_block, text_block},
};
use serde_json::{Value, json, value::RawValue};

pub(super) struct Google;

impl Given for Google {
    fn read(&self, content: Look<'_>) -> Result<Vec<Piece>, Spot> {
        if let Some(candidates) = content.get("candidates") {
            let candidates = candidates.items()?;
            let candidate = candidates.first().ok_or_else(|| content.wrong_at("candidates", "expected a candidate"))?;
            let stop = candidate.maybe_text("finishReason")?.map(str::to_owned);
            let parts = candidate.get("content").map(|content| answered(&content)).transpose()?.unwrap_or_default();
            return Ok(vec![Piece::Answer(Answered { parts, stop, usage: content.raw(self.usage()) })]);
        }
        match content.maybe_text("role")? {
            // A request may leave out the role of the user.
            None | Some("user" | "function") => user(&content),
            Some("model") => Ok(vec![Piece::Answer(Answered { parts: answered(&content)?, ..Answered::default() })]),
            Some("system") => Err(content.wrong_at("role", super::SYSTEM)),
            Some(other) => Err(content.wrong_at("role", format!("unknown role `{other}`; expected user or model"))),
        }
    }

    fn body(&self, parts: &str, ending: Ending<'_>, usage: Option<&RawValue>) -> String {
        let finish = match ending {
            Ending::Done => "STOP",
            Ending::Length => "MAX_TOKENS",
            Ending::Said(finish) => finish,
        };
        let usage = usage.map_or("null", RawValue::get);
        let finish = Value::from(finish);
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{parts}]}},"finishReason":{finish}}}],"usageMetadata":{usage}}}"#
        )
    }

    fn usage(&self) -> &'static str {
        "usageMetadata"
    }

    fn counts(&self) -> &'static [&'static str] {
        &[
            "/promptTokenCount",
            "/cachedContentTokenCount",
            "/toolUsePromptTokenCount",
            "/candidatesTokenCount",
            "/thoughtsTokenCount",
            "/totalTokenCount",
        ]
    }
}

/// The results of a user's content, and the rest of it.
fn user(content: &Look<'_>) -> Result<Vec<Piece>, Spot> {
    let mut pieces = Vec::new();
    let mut rest = Vec::new();
    for part in content.need("parts")?.items()? {
        if let Some(response) = part.maybe_object("functionResponse")? {
            pieces.push(Piece::Result(returned(&response)?));
        } else {
            rest.push(shown(&part)?);
        }
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Said(json!({ "role": "user", "content": rest })));
    }
    Ok(pieces)
}

fn shown(part: &Look<'_>) -> Result<Value, Spot> {
    if part.get("text").is_some() {
        return Ok(text_block(part.text("text")?));
    }
    match part.maybe_object("inlineData")? {
        Some(data) => Ok(image_block(data.text("mimeType")?, data.text("data")?)),
        None => Err(part.wrong("unknown part of a user; expected text, inlineData or functionResponse")),
    }
}

/// A result. A response that is one text under `output` or `error` is that text, and any other is its JSON.
fn returned(response: &Look<'_>) -> Result<Returned, Spot> {
    let result = response.need("response")?;
    let fields = result.value.as_object().ok_or_else(|| result.wrong("expected an object"))?;
    let only = |name: &str| fields.get(name).filter(|_| fields.len() == 1).and_then(Value::as_str);
    let (text, is_error) = match (only("output"), only("error")) {
        (Some(text), _) => (text.to_owned(), false),
        (_, Some(text)) => (text.to_owned(), true),
        (None, None) => (result.exact(), fields.contains_key("error")),
    };
    let mut content = vec![text_block(&text)];
    if let Some(parts) = response.get("parts") {
        for part in parts.items()? {
            content.push(shown(&part)?);
        }
    }
    Ok(Returned {
        call: response.maybe_text("id")?.unwrap_or_default().to_owned(),
        name: response.text("name")?.to_owned(),
        content,
        is_error,
    })
}

/// Members of a part that is one of the server's own tools.
const OF_SERVER: [&str; 4] = ["executableCode", "codeExecutionResult", "toolCall", "toolResponse"];

/// The parts of an answer. Parts of the server's own tools are left out when the answer is read.
fn answered(content: &Look<'_>) -> Result<Vec<String>, Spot> {
    // An answer that broke off at once has none.
    let Some(parts) = content.get("parts") else { return Ok(Vec::new()) };
    let parts = parts.items()?;
    for part in &parts {
        part.maybe_text("text")?;
        part.maybe_text("thoughtSignature")?;
        if let Some(call) = part.maybe_object("functionCall")? {
            call.text("name")?;
            call.maybe_object("args")?;
            continue;
        }
        let known = ["text", "thought", "thoughtSignature"];
        let is_known = |name: &String| known.iter().chain(&OF_SERVER).any(|known| known == name);
        if part.value.as_object().is_none_or(|fields| !fields.is_empty() && !fields.keys().any(is_known)) {
            let known = "text, functionCall or a part of the provider's own tools";
            return Err(part.wrong(format!("unknown part of an answer; expected {known}")));
        }
    }
    Ok(parts.iter().map(Look::exact).collect())
}
