//! Google's `generateContent`. Thoughts have signatures that go back on the parts they came with. The summaries of
//! thoughts are for people and do not go back.

mod answer;
#[cfg(test)]
mod tests;

use self::answer::Decoder;
use super::{
    Delivery, Effort, Encoded, Reasoning, Request, ToolChoice, Turn,
    format::{Decode, WireFormat},
    levels::Level,
    reading,
    steps::{self, Content, Ids, Returned, Said, Step, Tool},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The differences between models.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dialect {
    /// The form of calls and results.
    pub generation: Generation,
    /// The form of thinking.
    pub thinking: Thinking,
}

/// The form of calls and results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Generation {
    /// Calls have no ids, and the images of a result stand beside it. Also models of other families.
    #[default]
    Second,
    /// Calls have ids, the first call of an answer needs a signature, and a result holds images.
    Third,
}

/// The form of thinking.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thinking {
    /// The model does not think, or cannot be told how much.
    #[default]
    Unset,
    /// By levels, least first.
    Levels(Vec<Level>),
    /// By a budget in tokens.
    Budget {
        /// The budget of a request without thinking.
        off: u64,
        /// The smallest budget of a request with thinking.
        least: u64,
        /// The largest budget.
        most: u64,
    },
}

/// This wire format.
pub(super) struct Google;

impl WireFormat for Google {
    fn encode(&self, request: &Request, delivery: Delivery) -> Encoded {
        encode(request, delivery)
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("x-goog-api-key", key.to_owned())
    }

    fn decoder(&self) -> Box<dyn Decode> {
        Box::<Decoder>::default()
    }
}

/// The path and the body of a request.
fn encode(request: &Request, delivery: Delivery) -> Encoded {
    let dialect = &request.model.dialect.google;
    let mut body = json!({ "contents": contents(dialect.generation, &request.all_turns()) });
    if let Some(system) = request.system.as_deref().filter(|system| !system.is_empty()) {
        body["systemInstruction"] = json!({ "parts": [{ "text": system }] });
    }
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = steps::tools(&request.tools).map(tool).collect();
        body["tools"] = json!([{ "functionDeclarations": declarations }]);
        if request.tool_choice == ToolChoice::None {
            body["toolConfig"] = json!({ "functionCallingConfig": { "mode": "NONE" } });
        }
    }
    if let Some(most) = request.max_tokens {
        body["generationConfig"]["maxOutputTokens"] = most.min(request.ceiling.unwrap_or(u64::MAX)).into();
    }
    if let Some(thinking) = dialect.thinking.config(request.reasoning) {
        body["generationConfig"]["thinkingConfig"] = thinking;
    }
    Encoded::new(path(&request.model.id, delivery), body)
}

/// Google's documented signature for calls that another model made. The third generation refuses calls without one.
const FOREIGN_CALL: &str = "skip_thought_signature_validator";
/// Images that may stand inside a result.
const IN_RESULTS: &[&str] = &["image/png", "image/jpeg", "image/webp"];
/// The text of a result that consists of images.
const SEE_IMAGES: &str = "(see the image)";

fn path(model: &str, delivery: Delivery) -> String {
    let model = model.trim_start_matches('/');
    // Tuned models and those of Vertex bring their own folder.
    let folder =
        if ["models/", "tunedModels/", "publishers/"].iter().any(|it| model.starts_with(it)) { "" } else { "models/" };
    let method = match delivery {
        Delivery::Whole => "generateContent",
        Delivery::Stream => "streamGenerateContent?alt=sse",
    };
    format!("/{folder}{}:{method}", percent_encoded(model))
}

fn percent_encoded(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// `parameters` knows a dialect of its own and refuses what it does not know, such as `$schema` or `const`;
/// `parametersJsonSchema` takes any JSON Schema.
fn tool(tool: Tool<'_>) -> Value {
    let mut declaration = json!({ "name": tool.name, "description": tool.description });
    if let Some(schema) = tool.schema {
        declaration["parametersJsonSchema"] = schema.clone();
    }
    declaration
}

/// The contents so far.
struct Turns {
    contents: Vec<Value>,
    /// The parts of the current user content.
    user: Vec<Value>,
}

impl Turns {
    fn user_is_done(&mut self) {
        if !self.user.is_empty() {
            self.contents.push(json!({ "role": "user", "parts": std::mem::take(&mut self.user) }));
        }
    }
}

fn contents(generation: Generation, turns: &[Turn]) -> Value {
    let mut taken = Turns { contents: Vec::new(), user: Vec::new() };
    for step in steps::steps(turns, Ids::UpTo(64)) {
        match step {
            Step::User(content) => taken.user.extend(content.iter().map(said)),
            Step::Answer { said, results: returned } => {
                taken.user_is_done();
                taken.contents.push(json!({ "role": "model", "parts": answered(&said, generation) }));
                taken.user = results(&said, returned, generation);
            }
        }
    }
    taken.user_is_done();
    taken.contents.into()
}

fn said(content: &Content<'_>) -> Value {
    match content {
        Content::Text(text) => json!({ "text": text }),
        Content::Image { mime, data } => inline(mime, data),
    }
}

fn inline(mime: &str, data: &str) -> Value {
    json!({ "inlineData": { "mimeType": mime, "data": data } })
}

/// Only the first of parallel calls is signed by Google.
fn answered(said: &[Said<'_>], generation: Generation) -> Vec<Value> {
    let mut first = true;
    let piece = |said: &Said<'_>| {
        let (mut json, signature) = match said {
            Said::Text { text, signature } => (json!({ "text": text }), usable(*signature)),
            Said::Thinking { text, signature, .. } => {
                (json!({ "text": text, "thought": true }), Some(usable(*signature)?))
            }
            Said::Call(call) => {
                let mut json = json!({ "name": call.name, "args": reading::object(call.arguments) });
                if generation == Generation::Third {
                    json["id"] = call.id.as_str().into();
                }
                let signed = generation == Generation::Third && std::mem::take(&mut first);
                let foreign = signed.then_some(FOREIGN_CALL);
                (json!({ "functionCall": json }), usable(call.signature).or(foreign))
            }
        };
        match signature {
            Some(signature) => json["thoughtSignature"] = signature.into(),
            None if !said.is_something() => return None,
            None => {}
        }
        Some(json)
    };
    said.iter().filter_map(piece).collect()
}

/// Signatures are bytes in base64; anything else would make the whole request a wrong one.
fn usable(signature: Option<&str>) -> Option<&str> {
    let base64 = |char: char| char.is_ascii_alphanumeric() || "+/-_=".contains(char);
    signature.filter(|it| !it.is_empty() && it.chars().all(base64))
}

/// The results of one answer, in the order of its calls: where calls have no ids, that order is what tells them apart.
fn results(said: &[Said<'_>], returned: Vec<Returned<'_>>, generation: Generation) -> Vec<Value> {
    // No two calls of a request have one name.
    let mut returned: HashMap<String, Returned<'_>> = returned.into_iter().map(|it| (it.id.clone(), it)).collect();
    let mut images = Vec::new();
    let mut parts = Vec::new();
    for call in steps::calls(said) {
        let Some(of_call) = returned.remove(&call.id) else { continue };
        let (part, beside) = result(&of_call, &call.name, generation);
        parts.push(part);
        if !beside.is_empty() {
            images.push(json!({ "text": format!("Images of {}:", call.name) }));
            images.extend(beside);
        }
    }
    parts.extend(images);
    parts
}

/// A result, and the images that only fit beside it.
fn result(returned: &Returned<'_>, name: &str, generation: Generation) -> (Value, Vec<Value>) {
    let third = generation == Generation::Third;
    let mut texts = Vec::new();
    let mut inside = Vec::new();
    let mut beside = Vec::new();
    for content in &returned.content {
        match content {
            Content::Text(text) => texts.push(text.as_ref()),
            Content::Image { mime, data } if third && IN_RESULTS.contains(mime) => inside.push(inline(mime, data)),
            Content::Image { mime, data } => beside.push(inline(mime, data)),
        }
    }
    if texts.is_empty() && !(inside.is_empty() && beside.is_empty()) {
        texts.push(SEE_IMAGES);
    }
    let key = if returned.is_error { "error" } else { "output" };
    let mut response = json!({ "name": name, "response": { key: texts.join("\n") } });
    if third {
        response["id"] = returned.id.as_str().into();
    }
    if !inside.is_empty() {
        response["parts"] = inside.into();
    }
    (json!({ "functionResponse": response }), beside)
}

impl Thinking {
    /// The `thinkingConfig`; `None` where the request says nothing about thinking or the model cannot be told. Asked for
    /// an effort, the model also shows a summary of its thoughts.
    fn config(&self, reasoning: Reasoning) -> Option<Value> {
        let effort = match reasoning {
            Reasoning::Unsaid => return None,
            Reasoning::Off => None,
            Reasoning::Effort(effort) => Some(effort),
        };
        let mut config = match self {
            Self::Unset => return None,
            Self::Levels(levels) => {
                let level = Level::among(levels, reasoning)?;
                json!({ "thinkingLevel": level.name().to_ascii_uppercase() })
            }
            Self::Budget { off, least, most } => {
                let budget = match effort {
                    None => *off,
                    Some(Effort::Minimal) => *least,
                    Some(Effort::Low) => 1_024,
                    Some(Effort::Medium) => 8_192,
                    Some(Effort::High) => 24_576,
                    Some(Effort::Highest) => *most,
                };
                json!({ "thinkingBudget": budget })
            }
        };
        if effort.is_some() {
            config["includeThoughts"] = true.into();
        }
        Some(config)
    }
}
