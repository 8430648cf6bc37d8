//! Google's `generateContent`. Thoughts have signatures that go back on the parts they came with. The summaries of
//! thoughts are for people and do not go back.

use super::{
    Answer, Delivery, Delta, Effort, Encoded, Part, Reasoning, Request, Stop, ToolChoice, Trouble, TroubleKind, Turn,
    format::{Decode, WireFormat},
    levels::Level,
    reading, sse,
    steps::{self, Content, Ids, Returned, Said, Step, Tool},
};
use crate::conversation::message::Usage;
use serde::Deserialize;
use serde_json::{Value, json};

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
    let mut body = json!({ "contents": contents(dialect.generation, &request.turns) });
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
    Encoded { path: path(&request.model.id, delivery), body }
}

/// An answer while it comes.
#[derive(Debug, Default)]
struct Decoder {
    parts: Vec<Part>,
    /// Google's id of the answer.
    id: String,
    /// The reason of its end, and the server's message about it.
    finish: Option<(String, String)>,
    /// The reason for which the server blocked the request.
    blocked: Option<String>,
    tokens: Tokens,
}

/// The counts as Google has them: each chunk says all again, and the last one is right.
#[derive(Debug, Default)]
struct Tokens {
    prompt: u64,
    cached: u64,
    tools: u64,
    candidates: u64,
    thoughts: u64,
    total: u64,
}

impl Decode for Decoder {
    fn event(&mut self, event: &sse::Event) -> Result<Vec<Delta>, Trouble> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(Vec::new());
        }
        self.read(data)
    }

    /// A chunk, or an array of chunks: the stream of a proxy that leaves out `alt=sse`.
    fn whole(&mut self, body: &str) -> Result<(), Trouble> {
        self.read(body).map(|_| ())
    }

    fn finish(self: Box<Self>) -> Result<Answer, Trouble> {
        let stop = match (self.finish, self.blocked) {
            (None, Some(why)) => Stop::Refused(why),
            (None, None) => return Err(Trouble::new(TroubleKind::CutOff, "")),
            (Some((reason, said)), _) => stop(&reason, &said)?,
        };
        let calls = self.parts.iter().any(|part| matches!(part, Part::Call { .. }));
        let Tokens { prompt, cached, tools, candidates, thoughts, total } = self.tokens;
        Ok(Answer {
            parts: self.parts,
            usage: Usage {
                input: prompt.saturating_sub(cached).saturating_add(tools),
                output: candidates.saturating_add(thoughts),
                cache_read: cached,
                cache_write: 0,
                total,
            },
            stop: if stop == Stop::Done && calls { Stop::ToolUse } else { stop },
        })
    }
}

impl Decoder {
    fn read(&mut self, json: &str) -> Result<Vec<Delta>, Trouble> {
        let garbled = || Trouble::new(TroubleKind::Garbled, json);
        let mut deltas = Vec::new();
        match serde_json::from_str(json).map_err(|_| garbled())? {
            Value::Array(chunks) => {
                for chunk in &chunks {
                    self.chunk(chunk, &mut deltas)?;
                }
            }
            chunk @ Value::Object(_) => self.chunk(&chunk, &mut deltas)?,
            _ => return Err(garbled()),
        }
        Ok(deltas)
    }

    fn chunk(&mut self, chunk: &Value, deltas: &mut Vec<Delta>) -> Result<(), Trouble> {
        if !chunk["error"].is_null() {
            let status = reading::count_at(chunk, "/error/code").and_then(|code| u16::try_from(code).ok());
            return Err(Trouble::of(status, &json!({ "error": chunk["error"] }).to_string(), None));
        }
        if let Some(id) = chunk["responseId"].as_str() {
            id.clone_into(&mut self.id);
        }
        self.tokens.read(&chunk["usageMetadata"]);
        let feedback = &chunk["promptFeedback"];
        if let Some(why) = feedback["blockReason"].as_str().filter(|why| !why.ends_with("_UNSPECIFIED")) {
            self.blocked = Some(with_words(why, reading::text(feedback, "blockReasonMessage")));
        }
        let candidate = &chunk["candidates"][0];
        for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
            deltas.extend(self.part(part));
        }
        if let Some(reason) = candidate["finishReason"].as_str().filter(|reason| !reason.ends_with("_UNSPECIFIED")) {
            self.finish = Some((reason.to_owned(), reading::text(candidate, "finishMessage").to_owned()));
        }
        Ok(())
    }

    fn part(&mut self, part: &Value) -> Option<Delta> {
        let signature = part["thoughtSignature"].as_str().filter(|it| !it.is_empty()).map(str::to_owned);
        let call = &part["functionCall"];
        if call.is_object() {
            let arguments = if call["args"].is_object() { call["args"].to_string() } else { "{}".to_owned() };
            let (id, name) = (self.call_id(reading::text(call, "id")), reading::text(call, "name").to_owned());
            self.parts.push(Part::Call { id, name, arguments: arguments.clone(), signature });
            return Some(Delta::Call(arguments));
        }
        let text = part["text"].as_str();
        if signature.is_none() && text.is_none_or(str::is_empty) {
            return None;
        }
        let more = text.unwrap_or_default();
        let thought = part["thought"] == true;
        // A stream cuts a text anywhere, and its signature comes with the last piece; a signed text is complete.
        match self.parts.last_mut() {
            Some(Part::Text { text, signature: mark @ None }) if !thought => {
                text.push_str(more);
                *mark = signature;
            }
            Some(Part::Thinking { text, signature: mark @ None, .. }) if thought => {
                text.push_str(more);
                *mark = signature;
            }
            _ if thought => self.parts.push(Part::Thinking { text: more.to_owned(), signature, redacted: false }),
            _ => self.parts.push(Part::Text { text: more.to_owned(), signature }),
        }
        match (more, thought) {
            ("", _) => None,
            (more, true) => Some(Delta::Thinking(more.to_owned())),
            (more, false) => Some(Delta::Text(more.to_owned())),
        }
    }

    /// Older models give their calls no ids, and some give two the same.
    fn call_id(&self, given: &str) -> String {
        let calls = self.parts.iter().filter_map(|part| match part {
            Part::Call { id, .. } => Some(id.as_str()),
            _ => None,
        });
        if !given.is_empty() && calls.clone().all(|id| id != given) {
            return given.to_owned();
        }
        let number = calls.count() + 1;
        if self.id.is_empty() { format!("call_{number}") } else { format!("call_{}_{number}", self.id) }
    }
}

impl Tokens {
    fn read(&mut self, metadata: &Value) {
        for (count, pointer) in [
            (&mut self.prompt, "/promptTokenCount"),
            (&mut self.cached, "/cachedContentTokenCount"),
            (&mut self.tools, "/toolUsePromptTokenCount"),
            (&mut self.candidates, "/candidatesTokenCount"),
            (&mut self.thoughts, "/thoughtsTokenCount"),
            (&mut self.total, "/totalTokenCount"),
        ] {
            *count = reading::count_at(metadata, pointer).unwrap_or(*count);
        }
    }
}

/// The end that a `finishReason` stands for.
fn stop(reason: &str, said: &str) -> Result<Stop, Trouble> {
    match reason {
        "STOP" => Ok(Stop::Done),
        "MAX_TOKENS" => Ok(Stop::Length),
        // The model stumbled over its own call; asked again, it mostly does not. No reason to see in it a refusal.
        "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" => {
            Err(Trouble::new(TroubleKind::Broken, with_words(reason, said)))
        }
        _ => Ok(Stop::Refused(with_words(reason, said))),
    }
}

fn with_words(reason: &str, said: &str) -> String {
    if said.is_empty() { reason.to_owned() } else { format!("{reason}: {said}") }
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
fn results(said: &[Said<'_>], mut returned: Vec<Returned<'_>>, generation: Generation) -> Vec<Value> {
    let mut images = Vec::new();
    let mut parts = Vec::new();
    for call in steps::calls(said) {
        let Some(at) = returned.iter().position(|it| it.id == call.id) else { continue };
        let (part, beside) = result(&returned.swap_remove(at), &call.name, generation);
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

#[cfg(test)]
mod tests {
    use super::super::ToolOutcome;
    use super::*;
    use crate::models::dialects;
    use std::path::Path;

    fn decode(pieces: &[&[u8]]) -> Result<(Vec<Delta>, Answer), Trouble> {
        let mut parser = sse::Parser::default();
        let mut decoder = Box::<Decoder>::default();
        let mut deltas = Vec::new();
        for piece in pieces {
            for event in parser.push(piece).expect("small") {
                deltas.extend(decoder.event(&event)?);
            }
        }
        Ok((deltas, decoder.finish()?))
    }

    fn whole(body: &str) -> Result<Answer, Trouble> {
        let mut decoder = Box::<Decoder>::default();
        decoder.whole(body)?;
        decoder.finish()
    }

    fn answer_of(recording: &str) -> Answer {
        decode(&[recording.as_bytes()]).expect("an answer").1
    }

    fn body(request: &Request) -> Value {
        encode(request, Delivery::Stream).body
    }

    fn contents_of(model: &str, turns: Vec<Turn>) -> Value {
        body(&Request { model: dialects::model(model), turns, ..Request::default() })["contents"].clone()
    }

    fn signed(text: &str, signature: &str) -> Part {
        Part::Text { text: text.into(), signature: Some(signature.into()) }
    }

    fn thought(text: &str, signature: Option<&str>) -> Part {
        Part::Thinking { text: text.into(), signature: signature.map(Into::into), redacted: false }
    }

    fn called(id: &str, name: &str, arguments: &str, signature: Option<&str>) -> Part {
        Part::Call {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            signature: signature.map(Into::into),
        }
    }

    fn outcome(call: &str, name: &str, parts: Vec<Part>, is_error: bool) -> Turn {
        Turn::Result(ToolOutcome { call: call.into(), name: name.into(), parts, is_error })
    }

    fn image(mime: &str) -> Part {
        Part::Image { mime: mime.into(), data: "AAAA".into() }
    }

    const TEXT: &str = include_str!("../../tests/recordings/google/text.sse");
    const CALLS: &str = include_str!("../../tests/recordings/google/thinking_and_calls.sse");
    const WITHOUT_IDS: &str = include_str!("../../tests/recordings/google/calls_without_ids.sse");
    const MAX_TOKENS: &str = include_str!("../../tests/recordings/google/max_tokens.sse");
    const SAFETY: &str = include_str!("../../tests/recordings/google/safety.sse");
    const BLOCKED: &str = include_str!("../../tests/recordings/google/blocked.sse");
    const MALFORMED: &str = include_str!("../../tests/recordings/google/malformed_call.sse");
    const CUT: &str = include_str!("../../tests/recordings/google/cut.sse");
    const ERROR: &str = include_str!("../../tests/recordings/google/error.sse");
    const ERROR_BODY: &str = include_str!("../../tests/recordings/google/error.json");
    const WHOLE: &str = include_str!("../../tests/recordings/google/whole.json");
    const ARRAY: &str = include_str!("../../tests/recordings/google/array.json");

    #[test]
    fn a_whole_request() {
        let request = Request {
            model: dialects::model("gemini-2.5-pro"),
            system: Some("Be brief.".into()),
            turns: vec![Turn::User(vec![Part::text("What is this?"), image("image/gif"), Part::text("")])],
            tools: vec![json!({
                "name": "read", "description": "Reads.",
                "inputSchema": { "$schema": "x", "type": "object", "properties": { "path": { "const": "a" } } },
            })],
            tool_choice: ToolChoice::None,
            max_tokens: Some(300),
            ceiling: None,
            reasoning: Reasoning::Effort(Effort::Medium),
            cache: super::super::Cache::Prefix("s".into()),
        };
        let expected = json!({
            "contents": [{ "role": "user", "parts": [
                { "text": "What is this?" },
                { "inlineData": { "mimeType": "image/gif", "data": "AAAA" } },
            ] }],
            "systemInstruction": { "parts": [{ "text": "Be brief." }] },
            "tools": [{ "functionDeclarations": [{
                "name": "read", "description": "Reads.",
                "parametersJsonSchema": { "$schema": "x", "type": "object", "properties": { "path": { "const": "a" } } },
            }] }],
            "toolConfig": { "functionCallingConfig": { "mode": "NONE" } },
            "generationConfig": {
                "maxOutputTokens": 300, "thinkingConfig": { "thinkingBudget": 8192, "includeThoughts": true },
            },
        });
        assert_eq!(body(&request), expected);
        let plain = Request { model: dialects::model("m"), turns: vec![Turn::user("Hi")], ..Request::default() };
        assert_eq!(body(&plain), json!({ "contents": [{ "role": "user", "parts": [{ "text": "Hi" }] }] }));
    }

    #[test]
    fn paths() {
        let rows = [
            ("gemini-2.5-pro", "/models/gemini-2.5-pro:generateContent"),
            ("models/gemini-2.5-pro", "/models/gemini-2.5-pro:generateContent"),
            ("tunedModels/mine", "/tunedModels/mine:generateContent"),
            ("publishers/google/models/gemini-3-pro", "/publishers/google/models/gemini-3-pro:generateContent"),
            ("ä b?key=1#:x", "/models/%C3%A4%20b%3Fkey%3D1%23%3Ax:generateContent"),
        ];
        for (model, expected) in rows {
            assert_eq!(path(model, Delivery::Whole), expected);
        }
        assert_eq!(path("a", Delivery::Stream), "/models/a:streamGenerateContent?alt=sse");
    }

    #[test]
    fn signatures_go_back_on_the_parts_they_came_with() {
        let model = |parts: Value| json!({ "role": "model", "parts": parts });
        let call = |id: &str| json!({ "name": "read", "args": { "n": 1 }, "id": id });
        let rows = [
            (
                vec![thought("hm", None), signed("So", "AA=="), called("a", "read", "{\"n\":1}", Some("BB=="))],
                json!([{ "text": "So", "thoughtSignature": "AA==" }, { "functionCall": call("a"), "thoughtSignature": "BB==" }]),
            ),
            // Of a thought only the signature matters, and an empty text may carry one.
            (
                vec![thought("hm", Some("AA==")), Part::text("So"), signed("", "BB=="), Part::text("")],
                json!([
                    { "text": "hm", "thought": true, "thoughtSignature": "AA==" },
                    { "text": "So" },
                    { "text": "", "thoughtSignature": "BB==" },
                ]),
            ),
            // The first of parallel calls needs one, the others none.
            (
                vec![called("a", "read", "{\"n\":1}", None), called("b", "read", "{\"n\":1}", None)],
                json!([
                    { "functionCall": call("a"), "thoughtSignature": "skip_thought_signature_validator" },
                    { "functionCall": call("b") },
                ]),
            ),
            // What is no base64 is not Google's.
            (vec![signed("So", r#"{"v":1,"id":"msg_1"}"#)], json!([{ "text": "So" }])),
        ];
        for (parts, expected) in rows {
            let turns = vec![Turn::user("Hi"), Turn::Assistant(parts.clone())];
            assert_eq!(contents_of("gemini-3-pro-preview", turns)[1], model(expected), "{parts:?}");
        }
        let older = contents_of("gemini-2.5-pro", vec![Turn::Assistant(vec![called("a", "read", "{\"n\":1}", None)])]);
        assert_eq!(older[1], model(json!([{ "functionCall": { "name": "read", "args": { "n": 1 } } }])));
    }

    #[test]
    fn nasty_conversations() {
        let turns = vec![
            Turn::Assistant(vec![Part::text(""), Part::text("Reading.")]),
            Turn::Assistant(vec![called("a|x", "read", "{\"path\":", None), called("b", "look", "{}", None)]),
            outcome("b", "", vec![image("image/png"), image("image/gif")], false),
            outcome("a|x", "other", vec![Part::text("no"), Part::text(""), Part::text("file")], true),
            outcome("?", "", vec![], false),
            Turn::User(vec![Part::text("")]),
            Turn::user("Go on"),
            Turn::user("please"),
            Turn::Assistant(vec![thought("hm", None)]),
            Turn::user("now"),
        ];
        let png = json!({ "inlineData": { "mimeType": "image/png", "data": "AAAA" } });
        let gif = json!({ "inlineData": { "mimeType": "image/gif", "data": "AAAA" } });
        let texts = [json!({ "text": "Go on" }), json!({ "text": "please" }), json!({ "text": "now" })];
        let newer = json!([
            { "role": "user", "parts": [{ "text": "(The conversation goes on.)" }] },
            { "role": "model", "parts": [
                { "text": "Reading." },
                {
                    "functionCall": { "name": "read", "args": {}, "id": "a" },
                    "thoughtSignature": "skip_thought_signature_validator",
                },
                { "functionCall": { "name": "look", "args": {}, "id": "b" } },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": { "name": "read", "response": { "error": "no\nfile" }, "id": "a" } },
                { "functionResponse": {
                    "name": "look", "response": { "output": "(see the image)" }, "id": "b", "parts": [png],
                } },
                { "text": "Images of look:" }, gif, texts[0], texts[1], texts[2],
            ] },
        ]);
        assert_eq!(contents_of("gemini-3-flash-preview", turns.clone()), newer);
        let older = json!([
            { "functionResponse": { "name": "read", "response": { "error": "no\nfile" } } },
            { "functionResponse": { "name": "look", "response": { "output": "(see the image)" } } },
            { "text": "Images of look:" }, png, gif, texts[0], texts[1], texts[2],
        ]);
        assert_eq!(contents_of("gemini-2.5-flash", turns)[2]["parts"], older);
    }

    #[test]
    fn a_text_its_thoughts_and_what_it_cost() {
        let (deltas, answer) = decode(&[TEXT.as_bytes()]).expect("an answer");
        let summary = "**Looking**\n\nIt is short.";
        let expected =
            [Delta::Thinking(summary.into()), Delta::Text("Grüße".into()), Delta::Text("! All tests pass. 🦀".into())];
        assert_eq!(deltas, expected);
        let parts = vec![thought(summary, None), signed("Grüße! All tests pass. 🦀", "CpcBAdHtim9aQ0z+/w==")];
        let usage = Usage { input: 476, output: 70, cache_read: 1024, cache_write: 0, total: 1570 };
        assert_eq!(answer, Answer { parts, usage, stop: Stop::Done });
    }

    #[test]
    fn calls_with_and_without_ids() {
        let answer = answer_of(CALLS);
        let expected = [
            thought("**Planning**\n\nTwo reads can go together.", None),
            Part::text("I'll read both."),
            called("k2v9xq1a", "read", r#"{"path":"src/a.rs","limit":10}"#, Some("EpEDCo4DAdHtim+/zz==")),
            called("k2v9xq1b", "read", r#"{"path":"src/ä.rs"}"#, None),
        ];
        assert_eq!(answer.parts, expected);
        assert_eq!(answer.stop, Stop::ToolUse);
        let expected = [
            called("call_w7Xo-a_1_1", "ls", "{}", None),
            called("call_w7Xo-a_1_2", "ls", r#"{"path":"src"}"#, Some("CiQB0e2Kb8==")),
        ];
        assert_eq!(answer_of(WITHOUT_IDS).parts, expected);
        let twice = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","id":"x"}},
            {"functionCall":{"name":"b","id":"x"}}]},"finishReason":"STOP"}]}"#;
        let expected = [called("x", "a", "{}", None), called("call_2", "b", "{}", None)];
        assert_eq!(whole(twice).expect("an answer").parts, expected);
    }

    /// A decoded answer that is encoded again equals the server's answer, but for the summaries of thoughts.
    #[test]
    fn what_goes_back_is_what_came() {
        let again =
            contents_of("gemini-3.1-pro-preview", vec![Turn::user("Hi"), Turn::Assistant(answer_of(CALLS).parts)]);
        let mut came = Vec::new();
        for data in CALLS.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let chunk: Value = serde_json::from_str(data).expect("JSON");
            let parts = chunk["candidates"][0]["content"]["parts"].as_array().expect("parts").clone();
            came.extend(parts.into_iter().filter(|part| part["thought"] != true && part["text"] != ""));
        }
        assert_eq!(again[1]["parts"], Value::Array(came));
        let text = contents_of("gemini-2.5-flash", vec![Turn::user("Hi"), Turn::Assistant(answer_of(TEXT).parts)]);
        assert_eq!(text[1]["parts"][0]["thoughtSignature"], "CpcBAdHtim9aQ0z+/w==");
        let body: Value = serde_json::from_str(WHOLE).expect("JSON");
        let parts = whole(WHOLE).expect("an answer").parts;
        let again = contents_of("gemini-2.5-flash", vec![Turn::user("Hi"), Turn::Assistant(parts)]);
        assert_eq!(again[1]["parts"], body["candidates"][0]["content"]["parts"]);
    }

    #[test]
    fn a_signed_text_is_complete() {
        let body = r#"{"candidates":[{"content":{"parts":[{"text":"a","thoughtSignature":"AA=="},{"text":"b"},
            {"text":"c"},{"executableCode":{}},{"text":"d","thought":true},{"thoughtSignature":"BB=="}]},
            "finishReason":"STOP"}]}"#;
        let expected = [signed("a", "AA=="), Part::text("bc"), thought("d", None), signed("", "BB==")];
        assert_eq!(whole(body).expect("an answer").parts, expected);
    }

    #[test]
    fn ends_that_are_none() {
        let stop = |recording| answer_of(recording).stop;
        assert_eq!(stop(MAX_TOKENS), Stop::Length);
        assert_eq!(answer_of(MAX_TOKENS).text(), "The first half of");
        assert_eq!(stop(SAFETY), Stop::Refused("SAFETY".into()));
        assert_eq!(stop(BLOCKED), Stop::Refused("PROHIBITED_CONTENT".into()));
        let trouble = |recording: &str| decode(&[recording.as_bytes()]).expect_err("trouble");
        assert_eq!(trouble(CUT).kind, TroubleKind::CutOff);
        assert_eq!(trouble("").kind, TroubleKind::CutOff);
        let malformed = trouble(MALFORMED);
        assert!(malformed.transient() && malformed.said.starts_with("MALFORMED_FUNCTION_CALL: "), "{malformed:?}");
        let error = trouble(ERROR);
        assert!(error.transient() && error.status == Some(503), "{error:?}");
        assert_eq!(trouble("data: <html>\n\n").kind, TroubleKind::Garbled);
        assert_eq!(trouble("data: 7\n\n").kind, TroubleKind::Garbled);
    }

    #[test]
    fn answers_in_one_piece() {
        let answer = whole(WHOLE).expect("an answer");
        let expected =
            [signed("Both are read.", "AdHtim9w"), called("call_w7Xo-a_1_1", "write", r#"{"path":"b","n":1.0}"#, None)];
        assert_eq!(answer.parts, expected);
        assert_eq!(answer.usage, Usage { input: 100, output: 40, cache_read: 400, cache_write: 0, total: 540 });
        assert_eq!(whole(ARRAY).expect("an answer").text(), "In pieces.");
        assert_eq!(whole(ERROR_BODY).expect_err("trouble").status, Some(429));
        for (body, kind) in [("<html>", TroubleKind::Garbled), ("{}", TroubleKind::CutOff), ("[]", TroubleKind::CutOff)]
        {
            assert_eq!(whole(body).expect_err("trouble").kind, kind, "{body}");
        }
    }

    #[test]
    fn however_its_bytes_are_cut_an_answer_is_the_same() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/google");
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "sse") {
                continue;
            }
            let bytes = std::fs::read(&path).expect("a recording");
            let expected = decode(&[&bytes]);
            assert_eq!(decode(&bytes.chunks(1).collect::<Vec<_>>()), expected, "{} byte by byte", path.display());
            for cut in 0..bytes.len() {
                let (before, after) = bytes.split_at(cut);
                assert_eq!(decode(&[before, after]), expected, "{} cut at {cut}", path.display());
            }
        }
    }
}
