//! The agent of the demo: a host with a loop of its own, which runs a model and tools and reports each message to the daemon.
//! Model and tools are a script, and the model counts its requests by rules of its own.

use super::{SESSION, screen::Screen};
use crate::cli::client::Client;
use serde_json::{Value, json};
use std::{collections::VecDeque, io::Write};

/// The window of the model, in tokens. It is small, so that a short session fills it.
const WINDOW: u64 = 16_384;

/// The settings of the demo: the model's window, and no other model for a summary. Counting by characters makes each run the
/// same.
pub(super) fn settings() -> Value {
    json!({
        "models": [{ "provider": "demo", "id": "scripted", "contextWindow": WINDOW }],
        "compaction": { "thresholdPercent": 70, "keepRecentTokens": 2_000, "transcriptHint": false },
        "tokens": { "estimator": "chars" },
    })
}

/// The end of a run.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Requests that the model answered.
    answered: u64,
    /// Requests that the model refused, because they were over its window.
    refused: u64,
    /// Messages that the agent reported.
    messages: usize,
    /// Messages that the session returns at the end.
    kept: usize,
}

impl Ended {
    /// Whether the agent came to the end of its script, and no message was lost.
    pub(super) fn rescued(&self) -> bool {
        self.answered > 0 && self.messages == self.kept
    }
}

/// The model and the tools: the messages that they say, in order.
struct Script {
    messages: VecDeque<Value>,
}

impl Script {
    /// The bundled session, and a request whose tool result is too large for the model.
    fn new() -> Self {
        let lines = SESSION.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let messages = lines.filter(|line| line["type"] == "message").map(|mut line| line["message"].take());
        let call = json!({ "type": "toolCall", "id": "call_log", "name": "bash",
            "arguments": { "command": "tail -210 /var/log/postbote/deliveries.log" } });
        let last = [
            json!({ "role": "user", "content": "One receiver still gets nothing. What does the log of tonight say?" }),
            json!({ "role": "assistant", "content": [call], "stopReason": "toolUse" }),
            json!({ "role": "toolResult", "toolCallId": "call_log", "toolName": "bash", "isError": false,
                "content": [{ "type": "text", "text": log() }] }),
            json!({ "role": "assistant", "stopReason": "stop",
                "content": [{ "type": "text", "text": "The receiver answers 503 to all four attempts of every delivery." }] }),
        ];
        Self { messages: messages.chain(last).collect() }
    }

    /// The next message, if it is of this role.
    fn next(&mut self, role: &str) -> Option<Value> {
        let first = self.messages.front()?;
        if first["role"] == role { self.messages.pop_front() } else { None }
    }

    /// Whether the model says more before the next request of the user.
    fn says_more(&self) -> bool {
        self.messages.front().is_some_and(|message| message["role"] == "assistant")
    }
}

/// Lines of digits. The model has a token for each of them, four times as many as an estimate by characters.
fn log() -> String {
    let line = |at: u64| {
        let (time, delivery) = (1_770_001_647_123_456 + at * 971_003, 412_907 + at * 13);
        format!("{time} {delivery:012} 010.000.007.031 503 {:09} {:016}\n", at * 128_017, at * 7_368_787_654_321)
    };
    (0..210).map(line).collect()
}

/// The tokens of a request by the count of the model.
fn tokens(body: &Value) -> u64 {
    let text = body.to_string();
    let digits = text.bytes().filter(u8::is_ascii_digit).count() as u64;
    digits + (text.len() as u64 - digits) / 4
}

/// Reports messages and asks the model until its answer has no calls, for each request of the user.
pub(super) fn run(mut client: Client, screen: &mut Screen<impl Write>) -> Result<Ended, String> {
    let params = json!({
        "cwd": "/home/ana/postbote", "title": "Retries for webhooks", "model": "demo/scripted",
        "systemPrompt": "You are a coding agent. Read before you write, and run the tests after each change.",
    });
    let opened = client.call("session/new", params)?;
    let id = opened["session"]["sessionId"].clone();
    screen.begins(&opened["session"]["usage"]);
    let mut agent = Agent { client, id, script: Script::new(), screen, ended: Ended::default() };
    agent.runs()?;
    let Agent { mut client, id, script, screen, mut ended } = agent;
    ended.kept = messages(&mut client, &id)?;
    client.call("shutdown", json!({}))?;
    client.end()?;
    if script.messages.is_empty() {
        screen.ends(ended.answered, ended.refused, ended.messages, ended.kept);
    } else {
        ended.answered = 0;
    }
    Ok(ended)
}

/// The number of messages that a session has.
fn messages(client: &mut Client, id: &Value) -> Result<usize, String> {
    let mut count = 0;
    let mut since = Value::Null;
    loop {
        let params = json!({ "sessionId": id, "types": ["message"], "branch": "all", "since": since });
        let page = client.call("session/entries", params)?;
        count += page["entries"].as_array().map_or(0, Vec::len);
        since = page["nextCursor"].clone();
        if since.is_null() {
            return Ok(count);
        }
    }
}

struct Agent<'a, W: Write> {
    client: Client,
    id: Value,
    script: Script,
    screen: &'a mut Screen<W>,
    ended: Ended,
}

impl<W: Write> Agent<'_, W> {
    fn runs(&mut self) -> Result<(), String> {
        while let Some(request) = self.script.next("user") {
            self.screen
                .turn(request["content"].as_str().or(request["content"][0]["text"].as_str()).unwrap_or_default());
            self.report(vec![request])?;
            while self.step()? {}
        }
        Ok(())
    }

    /// Asks the model with the context of the session and runs the tools of its answer. Returns whether the turn goes on.
    fn step(&mut self) -> Result<bool, String> {
        /// A model that refuses more often than this is not asked again.
        const MOST_REFUSED: u64 = 3;
        let context =
            match self.client.call("session/context", json!({ "sessionId": self.id, "format": "openai_chat" })) {
                Ok(context) => context,
                Err(why) => return self.stops(&why),
            };
        let asked = tokens(&context["body"]);
        if asked > WINDOW {
            let refusal = format!(
                "This model's maximum context length is {WINDOW} tokens. However, your messages resulted in {asked} tokens."
            );
            self.screen.refusal(&refusal);
            self.ended.refused += 1;
            let failed = json!({ "role": "assistant", "content": [], "stopReason": "error", "errorMessage": refusal,
                "provider": "demo", "model": "scripted" });
            self.report(vec![failed])?;
            return if self.ended.refused > MOST_REFUSED { self.stops("the model refused again") } else { Ok(true) };
        }
        let Some(mut answer) = self.script.next("assistant") else { return Ok(false) };
        let written = tokens(&answer["content"]);
        answer["usage"] = json!({ "input": asked, "output": written, "totalTokens": asked + written });
        (answer["provider"], answer["model"]) = (json!("demo"), json!("scripted"));
        self.ended.answered += 1;
        self.report(vec![answer])?;
        let results: Vec<Value> = std::iter::from_fn(|| self.script.next("toolResult")).collect();
        if !results.is_empty() {
            self.report(results)?;
        }
        Ok(self.script.says_more())
    }

    /// Ends the script.
    fn stops(&mut self, why: &str) -> Result<bool, String> {
        self.screen.says(why);
        self.script.messages.push_back(Value::Null);
        Ok(false)
    }

    /// Reports messages. Where the answer names maintenance, its events are shown until the session has settled.
    fn report(&mut self, messages: Vec<Value>) -> Result<(), String> {
        self.ended.messages += messages.len();
        let answer = self.client.call("session/append", json!({ "sessionId": self.id, "messages": messages }))?;
        self.screen.usage(&answer["usage"]);
        let settles = answer["next"]["type"] == "maintenance";
        loop {
            let frame = match self.client.arrived() {
                Some(frame) => frame,
                None if settles => self.client.next_event()?,
                None => return Ok(()),
            };
            let event = &frame["params"]["event"];
            self.screen.event(event);
            if settles && event["type"] == "settled" {
                return Ok(());
            }
        }
    }
}
