//! Answers of Google's `generateContent`.

use crate::{
    conversation::message::Usage,
    provider::{Answer, Delta, Part, Stop, Trouble, TroubleKind, format::Decode, reading, sse},
};
use serde_json::{Value, json};

/// An answer while it comes.
#[derive(Debug, Default)]
pub(super) struct Decoder {
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

/// The places where the texts of an answer are cut into parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// In a stream.
    Anywhere,
    /// In a whole answer: each part is one of its own, and goes back as it is.
    Nowhere,
}

impl Decode for Decoder {
    fn event(&mut self, event: &sse::Event) -> Result<Vec<Delta>, Trouble> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(Vec::new());
        }
        self.read(data, Cut::Anywhere)
    }

    /// A chunk, or an array of chunks: the stream of a proxy that leaves out `alt=sse`.
    fn whole(&mut self, body: &str) -> Result<(), Trouble> {
        self.read(body, Cut::Nowhere).map(|_| ())
    }

    fn parts(&self) -> usize {
        self.parts.len()
    }

    fn usage(&self) -> Usage {
        let Tokens { prompt, cached, tools, candidates, thoughts, total } = self.tokens;
        Usage {
            input: prompt.saturating_sub(cached).saturating_add(tools),
            output: candidates.saturating_add(thoughts),
            cache_read: cached,
            cache_write: 0,
            total,
        }
    }

    fn finish(self: Box<Self>) -> Result<Answer, Trouble> {
        let usage = self.usage();
        let stop = match (self.finish, self.blocked) {
            (None, Some(why)) => Stop::Refused(why),
            (None, None) => return Err(Trouble::new(TroubleKind::CutOff, "")),
            (Some((reason, said)), _) => stop(&reason, &said)?,
        };
        let calls = self.parts.iter().any(|part| matches!(part, Part::Call { .. }));
        let stop = if stop == Stop::Done && calls { Stop::ToolUse } else { stop };
        Ok(Answer { parts: self.parts, usage, stop, ..Answer::default() })
    }
}

impl Decoder {
    fn read(&mut self, json: &str, cut: Cut) -> Result<Vec<Delta>, Trouble> {
        let garbled = || Trouble::new(TroubleKind::Garbled, json);
        let mut deltas = Vec::new();
        match serde_json::from_str(json).map_err(|_| garbled())? {
            Value::Array(chunks) => {
                for chunk in &chunks {
                    self.chunk(chunk, Cut::Anywhere, &mut deltas)?;
                }
            }
            chunk @ Value::Object(_) => self.chunk(&chunk, cut, &mut deltas)?,
            _ => return Err(garbled()),
        }
        Ok(deltas)
    }

    fn chunk(&mut self, chunk: &Value, cut: Cut, deltas: &mut Vec<Delta>) -> Result<(), Trouble> {
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
        reading::few(self.parts.len())?;
        for part in reading::parts(&candidate["content"]["parts"])? {
            deltas.extend(self.part(part, cut));
        }
        if let Some(reason) = candidate["finishReason"].as_str().filter(|reason| !reason.ends_with("_UNSPECIFIED")) {
            self.finish = Some((reason.to_owned(), reading::text(candidate, "finishMessage").to_owned()));
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, cut: Cut) -> Option<Delta> {
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
        match self.parts.last_mut().filter(|_| cut == Cut::Anywhere) {
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
