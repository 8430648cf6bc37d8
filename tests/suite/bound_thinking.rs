//! Thinking that a model binds to everything before it goes back where it is valid, and nowhere else. The provider signs each
//! thinking with a hash of what stood before it.

use crate::{
    support::*,
    wire::{Dice, cases},
};
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};

const MODEL: &str = "anthropic/claude-opus-5-5";
const HEADER: &str = "thinking-binding-controls-2026-08-01";

/// A JSON value without the marks of the cache, which bind nothing.
fn without_marks(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(|value| *value = without_marks(value.take()));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| *value = without_marks(value.take())),
        _ => {}
    }
    value
}

/// The signature of thinking after these messages and these blocks of its own answer.
fn signature(body: &Value, messages: &[Value], blocks: &[Value]) -> String {
    let mut hasher = DefaultHasher::new();
    without_marks(json!([body["system"], body["tools"], messages, blocks])).to_string().hash(&mut hasher);
    format!("{:x}", hasher.finish())
}

/// The answers in a request whose thinking goes back. Fails where some of it is bound to something else.
fn replayed(answer: &Value) -> usize {
    let body = &answer["body"];
    let messages = body["messages"].as_array().expect("messages");
    let mut found = 0;
    for (at, message) in messages.iter().enumerate().filter(|(_, message)| message["role"] == "assistant") {
        let blocks = message["content"].as_array().expect("blocks");
        for (place, block) in blocks.iter().enumerate().filter(|(_, block)| block["type"] == "thinking") {
            let expected = signature(body, &messages[..at], &blocks[..place]);
            assert_eq!(block["signature"], json!(expected), "message {at} of {body:#}");
            found += 1;
        }
    }
    // The header and the field come together, and with thinking alone.
    let controls = answer["headers"]["anthropic-beta"] == HEADER;
    let drops = body["thinking"]["block_binding"]["prefix_mismatch_behavior"] == "drop_block";
    assert_eq!([controls, drops], [found > 0; 2], "{answer:#}");
    found
}

/// A host whose model thinks in each answer.
struct Host {
    daemon: Daemon,
    session: String,
    turn: usize,
}

impl Host {
    fn start() -> Self {
        let home = Home::new();
        let model = json!({"provider": "anthropic", "id": "claude-opus-5-5", "contextWindow": 60_000});
        let other = json!({"provider": "anthropic", "id": "claude-opus-4-6", "contextWindow": 60_000});
        let settings = json!({"models": [model, other], "compaction": {"speculative": false, "enabled": false}});
        home.settings(&settings.to_string());
        let mut daemon = Daemon::at(home);
        let tools = json!([{"name": "shell", "inputSchema": {"type": "object"}}]);
        let session = daemon.new_session(json!({"cwd": "/project", "model": MODEL, "thinkingLevel": "high",
            "systemPrompt": "Be brief.", "tools": tools}));
        Self { daemon, session, turn: 0 }
    }

    fn of(&mut self, method: &str, mut params: Value) -> Result<Value, Value> {
        params["sessionId"] = json!(self.session);
        self.daemon.call(method, params)
    }

    fn context(&mut self) -> Value {
        self.of("session/context", json!({"format": "anthropic"})).expect("a context")
    }

    fn append(&mut self, message: Value) {
        let params = json!({"format": "anthropic", "messages": [message]});
        self.of("session/append", params).expect("it is appended");
    }

    fn say(&mut self) {
        self.turn += 1;
        let text = format!("Request {}: {}", self.turn, text_of(300, "look"));
        self.append(json!({"role": "user", "content": text}));
    }

    /// Asks the model, and takes its answer. Returns the number of answers whose thinking went back, where it thought itself.
    fn answer(&mut self, calls: usize) -> Option<usize> {
        let context = self.context();
        let thinks = context["model"].as_str() == Some(MODEL) || context["model"]["id"] == "claude-opus-5-5";
        let found = replayed(&context);
        let messages = context["body"]["messages"].as_array().expect("messages").clone();
        let signed = signature(&context["body"], &messages, &[]);
        let mut content = vec![];
        if thinks {
            content.push(json!({"type": "thinking", "thinking": "Hm.", "signature": signed}));
        }
        content.push(json!({"type": "text", "text": format!("Answer {}.", self.turn)}));
        content.extend(
            (0..calls).map(
                |at| json!({"type": "tool_use", "id": format!("t{}_{at}", self.turn), "name": "shell", "input": {}}),
            ),
        );
        self.append(json!({"role": "assistant", "content": content}));
        thinks.then_some(found)
    }

    fn results(&mut self, calls: usize) {
        for at in 0..calls {
            let id = format!("t{}_{at}", self.turn);
            let block = json!({"type": "tool_result", "tool_use_id": id, "content": text_of(400, "part")});
            self.append(json!({"role": "user", "content": [block]}));
        }
    }

    /// A turn with a call. Returns the numbers of both requests.
    fn turn(&mut self) -> [Option<usize>; 2] {
        self.say();
        let first = self.answer(1);
        self.results(1);
        [first, self.answer(0)]
    }
}

#[test]
fn thinking_goes_back_up_to_the_last_rewrite() {
    let mut host = Host::start();
    assert_eq!(host.turn(), [Some(0), Some(1)]);
    assert_eq!(host.turn(), [Some(2), Some(3)]);
    let compacted = host.of("session/compact", json!({"keepRecentTokens": 100, "wait": true})).expect("an outcome");
    assert_eq!(compacted["outcome"], "completed", "{compacted:#}");
    assert_eq!(host.turn(), [Some(0), Some(1)]);
    host.of("session/undo_compaction", json!({})).expect("it is undone");
    assert_eq!(host.turn(), [Some(0), Some(1)]);
    // A pin stands at the end, and a title is nothing that a model gets.
    host.of("session/pin", json!({"text": "Keep this."})).expect("it is pinned");
    host.of("session/configure", json!({"title": "Title"})).expect("it is configured");
    assert_eq!(host.turn(), [Some(2), Some(3)]);
    let pruned = host.of("session/prune", json!({"protectTokens": 50, "minimumSavings": 0})).expect("it is pruned");
    assert_ne!(pruned["entryIds"], json!([]), "{pruned:#}");
    assert_eq!(host.turn(), [Some(0), Some(1)]);
    host.of("session/configure", json!({"systemPrompt": "Be long."})).expect("it is configured");
    assert_eq!(host.turn(), [Some(0), Some(1)]);
    // A model's thinking is its own: another one gets none, and gets no header.
    host.of("session/configure", json!({"model": "anthropic/claude-opus-4-6"})).expect("it is configured");
    assert_eq!(host.turn(), [None, None]);
    host.of("session/configure", json!({"model": MODEL})).expect("it is configured");
    assert_eq!(host.turn(), [Some(2), Some(3)]);
    // What is loaded again is the same.
    host.daemon.ok("session/close", json!({"sessionId": host.session}));
    host.daemon.ok("session/load", json!({"sessionId": host.session}));
    assert_eq!(host.turn(), [Some(4), Some(5)]);
}

#[test]
fn a_level_without_thinking_sends_none_back_to_a_model_that_takes_the_level() {
    for (model, goes) in [("claude-opus-5-5", true), ("claude-haiku-5-5", false)] {
        let mut host = Host::start();
        let model = format!("anthropic/{model}");
        host.of("session/configure", json!({"model": model, "thinkingLevel": "off"})).expect("it is configured");
        host.say();
        let signed =
            signature(&host.context()["body"], host.context()["body"]["messages"].as_array().expect("some"), &[]);
        let content =
            json!([{"type": "thinking", "thinking": "Hm.", "signature": signed}, {"type": "text", "text": "Yes."}]);
        host.append(json!({"role": "assistant", "content": content}));
        host.say();
        let context = host.context();
        assert_eq!(replayed(&context) > 0, goes, "{context:#}");
    }
}

/// Whatever a session goes through, no thinking is sent to where it is invalid, and that of the last request is sent where nothing
/// was rewritten since.
#[test]
fn thinking_is_valid_after_anything_that_a_session_goes_through() {
    let mut seen = 0;
    for seed in 0..u64::from(cases("ABRIDGED_BOUND", 2, 6)) {
        let (mut host, mut dice) = (Host::start(), Dice::new(seed + 1));
        host.turn();
        for _ in 0..100 {
            let mut is_plain = false;
            match dice.below(14) {
                0 => drop(host.of("session/compact", json!({"keepRecentTokens": dice.below(600), "wait": true}))),
                1 => drop(host.of("session/undo_compaction", json!({}))),
                2 => drop(host.of("session/pin", json!({"text": format!("Pin {}.", host.turn)}))),
                3 => drop(host.of("session/unpin", json!({"text": format!("Pin {}.", host.turn)}))),
                4 => drop(host.of("session/prune", json!({"protectTokens": 50, "minimumSavings": 0}))),
                5 => {
                    let prompt = format!("Prompt {}.", dice.below(2));
                    drop(host.of("session/configure", json!({ "systemPrompt": prompt })));
                }
                6 => {
                    let tool = json!({"name": "shell", "description": format!("{}", dice.below(2)), "inputSchema": {"type": "object"}});
                    drop(host.of("tools/set", json!({ "tools": [tool] })));
                }
                7 => {
                    let entries = host.of("session/entries", json!({"branch": "active"})).expect("entries");
                    let entries = entries["entries"].as_array().expect("entries");
                    let target = dice.pick(entries)["id"].clone();
                    drop(host.of("session/navigate", json!({"targetEntryId": target, "wait": true})));
                }
                8 => {
                    let model = *dice.pick(&[MODEL, "anthropic/claude-opus-4-6"]);
                    drop(host.of("session/configure", json!({ "model": model })));
                }
                9 => {
                    // A message between calls and results, and results that come late or never.
                    host.say();
                    host.answer(2);
                    host.say();
                    if dice.below(2) == 0 {
                        host.results(dice.below(3));
                    }
                }
                10 => {
                    // Two answers in a row.
                    host.answer(0);
                    host.answer(0);
                }
                11 => {
                    host.daemon.ok("session/close", json!({"sessionId": host.session}));
                    host.daemon.ok("session/load", json!({"sessionId": host.session}));
                }
                _ => is_plain = true,
            }
            let [first, second] = host.turn();
            seen += first.unwrap_or(0);
            assert!(
                !is_plain || second.is_none_or(|second| second > 0),
                "seed {seed}: the answer of this turn goes back"
            );
        }
    }
    assert!(seen > 100, "{seen} answers went back in first requests");
}
