//! Google Gemini.

use super::{Asked, Verdict, list, only, plain, require, text};
use serde_json::{Map, Value};

const FIELDS: &[&str] = &[
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "generationConfig",
    "safetySettings",
    "cachedContent",
    "labels",
    "model",
];

const CONFIG: &[&str] = &[
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "responseModalities",
    "candidateCount",
    "maxOutputTokens",
    "temperature",
    "topP",
    "topK",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "responseLogprobs",
    "logprobs",
    "thinkingConfig",
    "mediaResolution",
];

const PARTS: &[&str] = &[
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "thought",
    "thoughtSignature",
    "videoMetadata",
    "partMetadata",
];

pub fn check(asked: &Asked, body: &Map<String, Value>, limit: Option<u64>) -> Verdict {
    let unknown = |place: &'static str| {
        move |name: &str| format!("Invalid JSON payload received. Unknown name \"{name}\"{place}: Cannot find field.")
    };
    only(body, FIELDS, unknown(""))?;
    let body = &asked.body;
    if let Some(config) = body["generationConfig"].as_object() {
        only(config, CONFIG, unknown(" at 'generation_config'"))?;
    }
    options(body, limit)?;
    let contents = list(&body["contents"]);
    require(!contents.is_empty(), || "* GenerateContentRequest.contents: contents is not specified".to_owned())?;
    for (at, content) in contents.iter().enumerate() {
        one(at, content)?;
    }
    pairs(contents)?;
    let first = contents[0]["role"].as_str().unwrap_or("user");
    require(first == "user" && calls(&contents[0], "functionResponse").is_empty(), || {
        "Please ensure that multiturn requests begin with a user turn.".to_owned()
    })?;
    signatures(asked.model(), contents)
}

fn options(body: &Value, limit: Option<u64>) -> Verdict {
    let config = &body["generationConfig"];
    if let Some(max) = config["maxOutputTokens"].as_u64() {
        let limit = limit.unwrap_or(u64::MAX - 1);
        require((1..=limit).contains(&max), || {
            format!(
                "Unable to submit request because it has a maxOutputTokens value of {max} but the supported range is from 1 (inclusive) to {} (exclusive). Update the value and try again.",
                limit + 1
            )
        })?;
    }
    let thinking = &config["thinkingConfig"];
    require(thinking["thinkingBudget"].is_null() || thinking["thinkingLevel"].is_null(), || {
        "You can only set only one of thinking budget and thinking level.".to_owned()
    })?;
    let declared = list(&body["tools"]).iter().flat_map(|tool| list(&tool["functionDeclarations"]));
    for (at, function) in declared.enumerate() {
        require(plain(&text(function, "name").replace(['.', ':'], "_"), 64), || {
            format!(
                "* GenerateContentRequest.tools[0].function_declarations[{at}].name: Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
            )
        })?;
    }
    let system = &body["systemInstruction"];
    require(system.is_null() || !list(&system["parts"]).is_empty(), || {
        "* GenerateContentRequest.system_instruction.parts: contents.parts must not be empty.".to_owned()
    })
}

fn one(at: usize, content: &Value) -> Verdict {
    let role = content["role"].as_str().unwrap_or("user");
    require(role == "user" || role == "model", || "Please use a valid role: user, model.".to_owned())?;
    let parts = list(&content["parts"]);
    require(!parts.is_empty(), || {
        format!("* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty.")
    })?;
    for (nth, part) in parts.iter().enumerate() {
        let place = format!("contents[{at}].parts[{nth}]");
        let Some(fields) = part.as_object() else {
            return Err(format!(
                "Invalid value at '{place}' (type.googleapis.com/google.ai.generativelanguage.v1beta.Part)"
            ));
        };
        only(fields, PARTS, |name| {
            format!("Invalid JSON payload received. Unknown name \"{name}\" at '{place}': Cannot find field.")
        })?;
        require(PARTS[..7].iter().any(|name| fields.contains_key(*name)), || {
            format!(
                "* GenerateContentRequest.{place}.data: required oneof field 'data' must have one initialized field"
            )
        })?;
        let (call, response) = (&part["functionCall"], &part["functionResponse"]);
        let object = |value: &Value| value.is_null() || value.is_object();
        for (name, field, value) in
            [("function_call", "args", &call["args"]), ("function_response", "response", &response["response"])]
        {
            require(object(value), || {
                format!(
                    "Invalid value at '{place}.{name}.{field}' (type.googleapis.com/google.protobuf.Struct), {value}"
                )
            })?;
        }
        for (name, value) in [("function_call", call), ("function_response", response)] {
            require(value.is_null() || !text(value, "name").is_empty(), || {
                format!("* GenerateContentRequest.{place}.{name}.name: Name cannot be empty.")
            })?;
        }
        require(response.is_null() || !response["response"].is_null(), || {
            format!("* GenerateContentRequest.{place}.function_response.response: field is required.")
        })?;
    }
    Ok(())
}

/// The names of the calls or of the responses in a content.
fn calls<'a>(content: &'a Value, kind: &str) -> Vec<&'a str> {
    let parts = list(&content["parts"]).iter().filter(|part| part[kind].is_object());
    parts.map(|part| text(&part[kind], "name")).collect()
}

fn pairs(contents: &[Value]) -> Verdict {
    for (at, content) in contents.iter().enumerate() {
        let called = calls(content, "functionCall");
        require(called.is_empty() || content["role"] == "model", || {
            "Please ensure that function call turn comes immediately after a user turn or after a function response turn.".to_owned()
        })?;
        let mut answered = contents.get(at + 1).map_or_else(Vec::new, |next| calls(next, "functionResponse"));
        if !called.is_empty() {
            require(at > 0 && contents[at - 1]["role"] != "model", || {
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn.".to_owned()
            })?;
            require(called.len() == answered.len(), || {
                "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".to_owned()
            })?;
            let mut called = called.clone();
            called.sort_unstable();
            answered.sort_unstable();
            require(called == answered, || {
                "Please ensure that the names of the function responses are those of the function calls.".to_owned()
            })?;
        }
        let before = if at == 0 { Vec::new() } else { calls(&contents[at - 1], "functionCall") };
        require(calls(content, "functionResponse").is_empty() || !before.is_empty(), || {
            "Please ensure that function response turn comes immediately after a function call turn.".to_owned()
        })?;
    }
    Ok(())
}

/// From the third generation on, the calls of the turn that goes on must carry what was thought before them.
fn signatures(model: &str, contents: &[Value]) -> Verdict {
    if !model.starts_with("gemini-3") {
        return Ok(());
    }
    let asked = |content: &Value| content["role"] != "model" && calls(content, "functionResponse").is_empty();
    let turn = contents.iter().rposition(asked).unwrap_or(0);
    for content in &contents[turn..] {
        let call = list(&content["parts"]).iter().find(|part| part["functionCall"].is_object());
        require(call.is_none_or(|part| part["thoughtSignature"].is_string()), || {
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance.".to_owned()
        })?;
    }
    Ok(())
}
