//! The provider of a row: it counts each request by a tokenizer of its own, and knows which part its cache had.

use serde_json::Value;
use std::collections::HashMap;

/// How the provider counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// Its tokens for each piece of a text.
    pub factor: f64,
    /// Tokens of each request that no message and no announcement shows: a system prompt and tools of the host.
    pub unannounced: u64,
    /// Tokens of an image.
    pub image: u64,
    /// Whether thinking of earlier turns counts.
    pub thinking: bool,
    /// The largest prompt that its server reads, and the size that it cuts a larger one to, without a word.
    pub cut: Option<(u64, u64)>,
}

/// A request and its answer in the provider's own count.
#[derive(Debug, Clone, Copy, Default)]
pub struct Exchange {
    /// All tokens of the request.
    pub prompt: u64,
    /// Those that the server read.
    pub read: u64,
    /// Those that the cache had.
    pub cached: u64,
    /// Those of the system prompt and the tools.
    pub fixed: u64,
    /// The text and the calls of the answer.
    pub output: u64,
    /// Reasoning that no message shows.
    pub hidden: u64,
    /// Characters of the request.
    pub characters: u64,
}

impl Exchange {
    /// Tokens of the request that the cache lacked.
    pub fn fresh(&self) -> u64 {
        self.prompt - self.cached
    }
}

/// The exchanges of a session in their order. The last one is to be reported.
#[derive(Debug, Default)]
pub struct History {
    pub exchanges: Vec<Exchange>,
    /// The first exchange of the turn.
    pub turn: usize,
}

impl History {
    pub fn now(&self) -> Exchange {
        *self.exchanges.last().expect("an exchange")
    }

    pub fn previous(&self) -> Exchange {
        self.exchanges.iter().rev().nth(1).copied().unwrap_or_default()
    }

    /// The exchanges of the turn.
    pub fn steps(&self) -> &[Exchange] {
        &self.exchanges[self.turn..]
    }
}

/// Adds a number of each exchange.
pub fn sum(exchanges: &[Exchange], of: fn(&Exchange) -> u64) -> u64 {
    exchanges.iter().map(of).sum()
}

/// A provider in the middle of a session.
pub struct Provider {
    pub counts: Counts,
    pub history: History,
    /// The parts of the newest request in their order, each with its tokens.
    before: Vec<(String, u64)>,
    known: HashMap<String, u64>,
}

impl Provider {
    pub fn new(counts: Counts) -> Self {
        Self { counts, history: History::default(), before: Vec::new(), known: HashMap::new() }
    }

    /// Takes a request, and returns the number of its tokens.
    pub fn ask(&mut self, body: &Value, announced: &str, answer: &str, hidden: u64) -> u64 {
        let messages = ["messages", "contents", "input"].iter().find_map(|name| body[name].as_array());
        let messages = messages.expect("messages");
        let parts: Vec<(String, u64)> = messages.iter().map(|it| (it.to_string(), self.value("", it) + 4)).collect();
        let apart = ["system", "tools", "instructions", "systemInstruction"];
        let fixed: u64 = apart.iter().map(|name| self.value("", &body[name])).sum();
        let fixed = fixed + self.text(announced) + self.counts.unannounced;
        let same = parts.iter().zip(&self.before).take_while(|(now, then)| now.0 == then.0).count();
        let cached = match self.before.is_empty() {
            true => 0,
            false => fixed + parts[..same].iter().map(|(_, tokens)| tokens).sum::<u64>(),
        };
        let prompt = fixed + parts.iter().map(|(_, tokens)| tokens).sum::<u64>();
        let read = self.counts.cut.filter(|(most, _)| prompt > *most).map_or(prompt, |(_, rest)| rest);
        let characters = parts.iter().map(|(text, _)| text.chars().count() as u64).sum();
        let output = self.text(answer);
        self.before = parts;
        self.history.exchanges.push(Exchange { prompt, read, cached, fixed, output, hidden, characters });
        prompt
    }

    /// The tokens of the texts in a value.
    fn value(&mut self, name: &str, value: &Value) -> u64 {
        const SILENT: [&str; 14] = [
            "type",
            "role",
            "id",
            "call_id",
            "tool_use_id",
            "tool_call_id",
            "toolCallId",
            "api",
            "provider",
            "model",
            "stopReason",
            "signature",
            "thinkingSignature",
            "thoughtSignature",
        ];
        match value {
            Value::String(_) if SILENT.contains(&name) => 0,
            Value::String(_) if name == "thinking" && !self.counts.thinking => 0,
            Value::String(text) if ["data", "url"].contains(&name) && text.len() > 60 => self.counts.image,
            Value::String(text) => self.text(text),
            Value::Array(values) => values.iter().map(|value| self.value(name, value)).sum(),
            Value::Object(fields) => fields.iter().map(|(name, value)| self.value(name, value)).sum(),
            _ => 0,
        }
    }

    fn text(&mut self, text: &str) -> u64 {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let tokens = (pieces(text) as f64 * self.counts.factor).round() as u64;
        self.known.insert(text.to_owned(), tokens);
        tokens
    }

    /// Another model answers from now on.
    pub fn other_model(&mut self, factor: f64) {
        self.counts.factor = factor;
        self.before.clear();
        self.known.clear();
    }

    /// The host announces a part of its system prompt.
    pub fn announced(&mut self, prompt: &str) {
        self.counts.unannounced -= self.text(prompt);
    }
}

/// The pieces of a text: a word of up to seven letters, three digits, a sign, or a character of another script. It is no
/// tokenizer of the daemon.
fn pieces(text: &str) -> u64 {
    let (mut count, mut letters, mut digits) = (0, 0, 0);
    for character in text.chars() {
        letters = if character.is_ascii_alphabetic() { letters + 1 } else { 0 };
        digits = if character.is_ascii_digit() { digits + 1 } else { 0 };
        let begins = match character {
            ' ' => false,
            _ if letters > 0 => letters % 7 == 1,
            _ if digits > 0 => digits % 3 == 1,
            _ => true,
        };
        count += u64::from(begins);
    }
    count
}
