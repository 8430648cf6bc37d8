//! Answers of Anthropic's Messages.

use crate::{
    conversation::message::Usage,
    provider::{
        Answer, Beside, Delta, Part, Stop,
        format::Decode,
        reading, sse,
        trouble::{Trouble, TroubleKind},
    },
};
use serde_json::Value;

/// An answer while it comes.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The blocks, by the provider's number for each.
    blocks: Vec<(u64, Growing)>,
    usage: Usage,
    /// The tokens of compactions, which `usage` does not have.
    of_compactions: Usage,
    /// The answer ended with a compaction.
    is_compaction: bool,
    stop: Option<Stop>,
    /// The provider said that nothing follows.
    done: bool,
}

#[derive(Debug)]
enum Growing {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Redacted(String),
    Call {
        id: String,
        name: String,
        /// The arguments at its beginning; in a stream an empty object.
        given: String,
        /// The arguments that came in pieces.
        arguments: String,
    },
    /// The block of a compaction. It comes whole.
    Compaction(Value),
    /// A block of a kind that this version does not know.
    Unknown,
}

impl Decode for Decoder {
    fn event(&mut self, event: &sse::Event) -> Result<Vec<Delta>, Trouble> {
        let data = event.data.trim();
        // Some gateways end every stream as OpenAI does.
        if data.is_empty() || data == "[DONE]" {
            return Ok(Vec::new());
        }
        let value = reading::json(data)?;
        let kind = value["type"].as_str().or(event.name.as_deref()).unwrap_or_default();
        failed(kind, &value, data)?;
        let at = reading::count(&value["index"]).unwrap_or(0);
        match kind {
            "message_start" => self.count(&value["message"]["usage"]),
            "content_block_start" => return Ok(self.begin(at, &value["content_block"])),
            "content_block_delta" => return Ok(self.go_on(at, &value["delta"]).into_iter().collect()),
            "message_delta" => {
                self.count(&value["usage"]);
                self.stop(&value["delta"]);
            }
            "message_stop" => self.done = true,
            _ => {}
        }
        Ok(Vec::new())
    }

    fn whole(&mut self, body: &str) -> Result<(), Trouble> {
        let value = reading::json(body)?;
        failed(value["type"].as_str().unwrap_or_default(), &value, body)?;
        if !value["content"].is_array() {
            return Err(Trouble::new(TroubleKind::Garbled, body));
        }
        for (at, block) in (0..).zip(reading::parts(&value["content"])?) {
            self.begin(at, block);
        }
        self.count(&value["usage"]);
        self.stop(&value);
        self.done = true;
        Ok(())
    }

    fn parts(&self) -> usize {
        self.blocks.len()
    }

    fn usage(&self) -> Usage {
        self.usage.plus(self.of_compactions)
    }

    /// A call whose arguments are no object keeps its place with empty arguments: they broke off where the answer reached
    /// its limit.
    fn finish(self: Box<Self>) -> Result<Answer, Trouble> {
        if !self.done {
            return Err(Trouble::new(TroubleKind::CutOff, "the stream ended without its message_stop"));
        }
        let usage = self.usage();
        let mut parts = Vec::new();
        let mut compactions = Vec::new();
        let mut calls = 0;
        for (_, block) in self.blocks {
            parts.push(match block {
                Growing::Compaction(block) => {
                    compactions.push(block);
                    continue;
                }
                Growing::Text(text) if !text.is_empty() => Part::text(text),
                Growing::Thinking { text, signature } if !text.is_empty() || !signature.is_empty() => {
                    Part::Thinking { text, signature: (!signature.is_empty()).then_some(signature), redacted: false }
                }
                Growing::Redacted(data) => {
                    Part::Thinking { text: String::new(), signature: Some(data), redacted: true }
                }
                Growing::Call { id, name, given, arguments } => {
                    calls += 1;
                    let arguments = if arguments.is_empty() { given } else { arguments };
                    let arguments = reading::arguments(&arguments).to_owned();
                    Part::Call { id: reading::call_id(id, calls), name, arguments, signature: None }
                }
                Growing::Text(_) | Growing::Thinking { .. } | Growing::Unknown => continue,
            });
        }
        let stop = match self.stop.unwrap_or_default() {
            Stop::Done if calls > 0 => Stop::ToolUse,
            Stop::ToolUse if calls == 0 => Stop::Done,
            stop => stop,
        };
        let Usage { input, output, cache_read, cache_write, .. } = usage;
        let usage = Usage { total: input + output + cache_read + cache_write, ..usage };
        let beside = match self.is_compaction && !compactions.is_empty() {
            true => Beside::Items(compactions),
            false => Beside::Nothing,
        };
        Ok(Answer { parts, usage, stop, beside })
    }
}

impl Decoder {
    /// Takes a block as it begins, or all of it.
    fn begin(&mut self, at: u64, block: &Value) -> Vec<Delta> {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        let mut deltas = Vec::new();
        let block = match block["type"].as_str().unwrap_or_default() {
            "text" => {
                deltas.push(Delta::Text(text("text")));
                Growing::Text(text("text"))
            }
            "thinking" => {
                deltas.push(Delta::Thinking(text("thinking")));
                Growing::Thinking { text: text("thinking"), signature: text("signature") }
            }
            "redacted_thinking" => Growing::Redacted(text("data")),
            "tool_use" => Growing::Call {
                id: text("id"),
                name: text("name"),
                given: block["input"].to_string(),
                arguments: String::new(),
            },
            "compaction" => Growing::Compaction(block.clone()),
            _ => Growing::Unknown,
        };
        self.blocks.push((at, block));
        deltas.retain(|delta| matches!(delta, Delta::Text(it) | Delta::Thinking(it) if !it.is_empty()));
        deltas
    }

    fn go_on(&mut self, at: u64, delta: &Value) -> Option<Delta> {
        let text = |name: &str| delta[name].as_str().filter(|text| !text.is_empty());
        let block = self.blocks.iter_mut().rev().find(|(index, _)| *index == at);
        match (block.map(|(_, block)| block)?, delta["type"].as_str()?) {
            (Growing::Text(so_far), "text_delta") => {
                so_far.push_str(text("text")?);
                Some(Delta::Text(text("text")?.to_owned()))
            }
            (Growing::Thinking { text: so_far, .. }, "thinking_delta") => {
                so_far.push_str(text("thinking")?);
                Some(Delta::Thinking(text("thinking")?.to_owned()))
            }
            (Growing::Thinking { signature, .. }, "signature_delta") => {
                signature.push_str(text("signature")?);
                None
            }
            (Growing::Call { arguments, .. }, "input_json_delta") => {
                arguments.push_str(text("partial_json")?);
                Some(Delta::Call(text("partial_json")?.to_owned()))
            }
            _ => None,
        }
    }

    /// Later counts replace earlier ones, but for the zeros of gateways that only know one half at a time.
    fn count(&mut self, usage: &Value) {
        count(&mut self.usage, usage);
        let iterations = usage["iterations"].as_array().map(Vec::as_slice).unwrap_or_default();
        let of_compactions = iterations.iter().filter(|it| it["type"] == "compaction").map(|it| {
            let mut usage = Usage::default();
            count(&mut usage, it);
            usage
        });
        if let Some(all) = of_compactions.reduce(Usage::plus) {
            self.of_compactions = all;
        }
    }

    fn stop(&mut self, end: &Value) {
        let Some(reason) = end["stop_reason"].as_str() else { return };
        let details = &end["stop_details"];
        let why = match (details["explanation"].as_str(), details["category"].as_str()) {
            (Some(why), Some(category)) => Some(format!("{why} ({category})")),
            (why, category) => why.or(category).map(str::to_owned),
        };
        self.is_compaction = reason == "compaction";
        self.stop = Some(match reason {
            "max_tokens" | "model_context_window_exceeded" => Stop::Length,
            "tool_use" => Stop::ToolUse,
            "refusal" => Stop::Refused(why.unwrap_or_else(|| reason.to_owned())),
            _ => Stop::Done,
        });
    }
}

/// Takes the counts of a report.
fn count(usage: &mut Usage, report: &Value) {
    let places = [
        (&mut usage.input, "input_tokens"),
        (&mut usage.output, "output_tokens"),
        (&mut usage.cache_read, "cache_read_input_tokens"),
        (&mut usage.cache_write, "cache_creation_input_tokens"),
    ];
    for (place, name) in places {
        if let Some(count @ 1..) = reading::count(&report[name]) {
            *place = count;
        }
    }
}

/// An error in the place of an answer, or of an event of it.
fn failed(kind: &str, value: &Value, said: &str) -> Result<(), Trouble> {
    match &value["error"] {
        error if kind == "error" || error.is_object() || error.is_string() => Err(reading::failure(error, said)),
        _ => Ok(()),
    }
}
