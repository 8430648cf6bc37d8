//! Answers of OpenAI's Chat Completions.

use crate::{
    conversation::message::Usage,
    provider::{
        Answer, Delta, Part, Stop,
        format::Decode,
        reading, sse,
        trouble::{Trouble, TroubleKind},
    },
};
use serde_json::Value;

/// An answer while it comes.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    parts: Vec<Growing>,
    refusal: String,
    usage: Usage,
    finish: Option<String>,
    /// The provider said that nothing follows.
    done: bool,
}

#[derive(Debug)]
enum Growing {
    Text(String),
    Thinking(String),
    Call { index: Option<u64>, id: String, name: String, arguments: String },
}

impl Decode for Decoder {
    fn event(&mut self, event: &sse::Event) -> Result<Vec<Delta>, Trouble> {
        match event.data.trim() {
            "" => Ok(Vec::new()),
            "[DONE]" => {
                self.done = true;
                Ok(Vec::new())
            }
            data => {
                let chunk = reading::json(data)?;
                failed(&chunk, data)?;
                self.take(&chunk, "delta")
            }
        }
    }

    fn whole(&mut self, body: &str) -> Result<(), Trouble> {
        let answer = reading::json(body)?;
        failed(&answer, body)?;
        if !answer["choices"][0]["message"].is_object() {
            return Err(Trouble::new(TroubleKind::Garbled, body));
        }
        self.take(&answer, "message")?;
        self.done = true;
        Ok(())
    }

    fn parts(&self) -> usize {
        self.parts.len()
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn has_ended(&self) -> bool {
        self.finish.is_some()
    }

    /// An answer with `[DONE]` and without a reason counts as done if it has any part. A call whose arguments are no object
    /// keeps its place with empty arguments: they broke off where the answer reached its limit.
    fn finish(self: Box<Self>) -> Result<Answer, Trouble> {
        let finish = match &self.finish {
            Some(finish) => finish.as_str(),
            None if self.done && !self.parts.is_empty() => "stop",
            None => return Err(Trouble::new(TroubleKind::CutOff, "the stream ended without a finish_reason")),
        };
        let calls = self.parts.iter().any(|part| matches!(part, Growing::Call { .. }));
        let stop = match finish.to_ascii_lowercase().as_str() {
            "length" | "max_tokens" | "model_length" | "max_output_tokens" | "model_context_window_exceeded" => {
                Stop::Length
            }
            "content_filter" | "refusal" | "safety" | "sensitive" => Stop::Refused(finish.to_owned()),
            "error" | "network_error" | "insufficient_system_resource" => {
                return Err(Trouble::new(TroubleKind::Broken, format!("finish_reason {finish}")));
            }
            // Not every server says that it wants tools run, and some say so without a call.
            _ if calls => Stop::ToolUse,
            _ if !self.refusal.is_empty() => Stop::Refused(self.refusal),
            _ => Stop::Done,
        };
        let mut parts = Vec::new();
        let mut calls = 0;
        for part in self.parts {
            parts.push(match part {
                Growing::Text(text) => Part::text(text),
                Growing::Thinking(text) => Part::Thinking { text, signature: None, redacted: false },
                Growing::Call { id, name, arguments, .. } => {
                    calls += 1;
                    let arguments = reading::arguments(&arguments).to_owned();
                    Part::Call { id: reading::call_id(id, calls), name, arguments, signature: None }
                }
            });
        }
        Ok(Answer { parts, usage: self.usage, stop, ..Answer::default() })
    }
}

impl Decoder {
    /// Takes a chunk, or a whole answer: they differ in where the message is.
    fn take(&mut self, chunk: &Value, place: &str) -> Result<Vec<Delta>, Trouble> {
        let choice = &chunk["choices"][0];
        // Groq and Moonshot have places of their own for it.
        let usages = [&chunk["usage"], &chunk["x_groq"]["usage"], &choice["usage"]];
        if let Some(usage) = usages.into_iter().find(|usage| usage.is_object()) {
            self.usage = tokens(usage);
        }
        let message = &choice[place];
        let mut deltas = Vec::new();
        let thinking = ["reasoning_content", "reasoning", "reasoning_text"];
        let thinking = thinking.into_iter().filter_map(|name| message[name].as_str()).find(|text| !text.is_empty());
        deltas.extend(thinking.and_then(|text| self.think(text)));
        match &message["content"] {
            Value::String(text) => deltas.extend(self.say(text)),
            // Some servers send the content of models that think as blocks.
            blocks @ Value::Array(_) => {
                for block in reading::parts(blocks)? {
                    deltas.extend(block["text"].as_str().and_then(|text| self.say(text)));
                    let thinking = block["thinking"].as_array().map(Vec::as_slice).unwrap_or_default();
                    deltas.extend(thinking.iter().filter_map(|it| self.think(it["text"].as_str()?)));
                }
            }
            _ => {}
        }
        self.refusal.push_str(message["refusal"].as_str().unwrap_or_default());
        for call in reading::parts(&message["tool_calls"])? {
            deltas.extend(self.call(reading::count(&call["index"]), &call["id"], &call["function"]));
        }
        if message["function_call"].is_object() {
            deltas.extend(self.call(None, &Value::Null, &message["function_call"]));
        }
        if let Some(finish) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.finish = Some(finish.to_owned());
        }
        Ok(deltas)
    }

    fn say(&mut self, more: &str) -> Option<Delta> {
        if more.is_empty() {
            return None;
        }
        match self.parts.last_mut() {
            Some(Growing::Text(text)) => text.push_str(more),
            _ => self.parts.push(Growing::Text(more.to_owned())),
        }
        Some(Delta::Text(more.to_owned()))
    }

    fn think(&mut self, more: &str) -> Option<Delta> {
        if more.is_empty() {
            return None;
        }
        match self.parts.last_mut() {
            Some(Growing::Thinking(text)) => text.push_str(more),
            _ => self.parts.push(Growing::Thinking(more.to_owned())),
        }
        Some(Delta::Thinking(more.to_owned()))
    }

    /// More of a call. Servers tell calls apart by their index, or give all of them the same and send each in one
    /// piece, or give none at all.
    fn call(&mut self, at: Option<u64>, id: &Value, function: &Value) -> Option<Delta> {
        let new_id = id.as_str().unwrap_or_default();
        let new_name = function["name"].as_str().unwrap_or_default();
        let more = match &function["arguments"] {
            Value::String(text) => text.clone(),
            whole @ Value::Object(_) => whole.to_string(),
            _ => String::new(),
        };
        let continued = self.parts.iter().rposition(|part| match part {
            Growing::Call { index, id, .. } if at.is_some() => {
                *index == at && (new_id.is_empty() || id.is_empty() || id == new_id)
            }
            Growing::Call { id, .. } => {
                if new_id.is_empty() {
                    new_name.is_empty()
                } else {
                    id == new_id
                }
            }
            _ => false,
        });
        match continued.map(|place| &mut self.parts[place]) {
            Some(Growing::Call { id, name, arguments, .. }) => {
                if id.is_empty() {
                    new_id.clone_into(id);
                }
                if name.is_empty() {
                    new_name.clone_into(name);
                }
                arguments.push_str(&more);
            }
            _ => self.parts.push(Growing::Call {
                index: at,
                id: new_id.to_owned(),
                name: new_name.to_owned(),
                arguments: more.clone(),
            }),
        }
        (!more.is_empty()).then_some(Delta::Call(more))
    }
}

/// An error in the place of an answer, or of a piece of it.
fn failed(chunk: &Value, said: &str) -> Result<(), Trouble> {
    let chunk = chunk.get(0).unwrap_or(chunk);
    let inner = [&chunk["error"], &chunk["choices"][0]["error"]];
    match inner.into_iter().find(|error| error.is_object() || error.is_string()) {
        Some(error) => Err(reading::failure(error, said)),
        // Several servers and gateways put it beside.
        None if chunk["object"] == "error" || chunk["type"] == "error" => Err(reading::failure(chunk, said)),
        None if chunk["choices"].is_null() && ["message", "detail"].iter().any(|name| !chunk[*name].is_null()) => {
            Err(reading::failure(chunk, said))
        }
        None => Ok(()),
    }
}

/// OpenAI counts what came from the cache into the prompt. A proxy that does not is found by its sum.
pub(super) fn tokens(usage: &Value) -> Usage {
    let first = |counts: &[&Value]| counts.iter().find_map(|count| reading::count(count)).unwrap_or(0);
    let details = &usage["prompt_tokens_details"];
    let prompt = first(&[&usage["prompt_tokens"], &usage["input_tokens"]]);
    let cache_read = first(&[&details["cached_tokens"], &usage["prompt_cache_hit_tokens"], &usage["cached_tokens"]]);
    let cache_write = first(&[&details["cache_write_tokens"]]);
    let mut output = first(&[&usage["completion_tokens"], &usage["output_tokens"]]);
    let reasoning = first(&[&usage["completion_tokens_details"]["reasoning_tokens"]]);
    // xAI counts thinking beside the answer, all others within it.
    if reasoning > 0 && first(&[&usage["total_tokens"]]) == prompt + output + reasoning {
        output += reasoning;
    }
    let input = prompt.checked_sub(cache_read + cache_write).unwrap_or(prompt);
    Usage { input, output, cache_read, cache_write, total: input + output + cache_read + cache_write }
}
