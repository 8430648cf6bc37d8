//! The conversation of a request that is appended to a new session makes the same request again, in each format of a provider.

use crate::{provider::Format, support::Daemon};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::cell::RefCell;

/// The smallest image that every provider takes, by its beginning.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A block, or a message, before its ids.
#[derive(Debug, Clone)]
enum Part {
    Text(String),
    Image,
}

#[derive(Debug, Clone)]
struct Call {
    parts: Vec<Part>,
    fails: bool,
    is_signed: bool,
    arguments: Value,
}

#[derive(Debug, Clone)]
enum Said {
    Text(String),
    Thought { text: String, is_signed: bool },
    Hidden,
    Call(Call),
}

#[derive(Debug, Clone)]
enum Turn {
    User(Vec<Part>),
    Plain { role: &'static str, text: String },
    Ran(String),
    Answer(Vec<Said>),
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-zA-Z0-9 .,é😀\u{2028}\"\\\\\n]{1,30}",
        1 => Just(String::new()),
        1 => Just("  ".to_owned()),
        1 => Just("{\"output\": \"x\"}".to_owned()),
        1 => Just("(no output)".to_owned()),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![3 => text().prop_map(Part::Text), 1 => Just(Part::Image)]
}

fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        Just(json!({"path": "src/a.rs", "n": 1, "f": 1.5, "deep": {"list": [null, true, "é"]}})),
        text().prop_map(|text| json!({ "text": text })),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    (prop::collection::vec(part(), 0..3), any::<bool>(), any::<bool>(), arguments())
        .prop_map(|(parts, fails, is_signed, arguments)| Call { parts, fails, is_signed, arguments })
}

fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        3 => text().prop_map(Said::Text),
        2 => (text(), any::<bool>()).prop_map(|(text, is_signed)| Said::Thought { text, is_signed }),
        1 => Just(Said::Hidden),
        3 => call().prop_map(Said::Call),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        3 => prop::collection::vec(part(), 0..4).prop_map(Turn::User),
        1 => (prop::sample::select(vec!["user", "developer", "custom"]), text())
            .prop_map(|(role, text)| Turn::Plain { role, text }),
        1 => text().prop_map(Turn::Ran),
        4 => prop::collection::vec(said(), 0..5).prop_map(Turn::Answer),
    ]
}

fn blocks(parts: &[Part]) -> Value {
    let block = |part: &Part| match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image => json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
    };
    parts.iter().map(block).collect()
}

/// The messages of a turn in pi's form, the answers by the model of the session.
fn messages(turn: &Turn, at: usize, format: Format) -> Vec<Value> {
    let said = match turn {
        Turn::User(parts) => return vec![json!({"role": "user", "content": blocks(parts)})],
        Turn::Plain { role, text } => return vec![json!({"role": role, "content": text})],
        Turn::Ran(output) => return vec![json!({"role": "bashExecution", "command": "ls", "output": output})],
        Turn::Answer(said) => said,
    };
    let (mut content, mut results) = (Vec::new(), Vec::new());
    for (nth, said) in said.iter().enumerate() {
        let signature = match format {
            // Items of OpenAI are signed as a whole.
            Format::OpenAiResponses => {
                json!({"id": format!("rs_{at}_{nth}"), "type": "reasoning", "summary": [], "encrypted_content": "gAAA+/=="})
                    .to_string()
            }
            _ => "EqQB+/==".to_owned(),
        };
        content.push(match said {
            Said::Text(text) => json!({"type": "text", "text": text}),
            Said::Thought { text, is_signed: true } => {
                json!({"type": "thinking", "thinking": text, "thinkingSignature": signature})
            }
            Said::Thought { text, .. } => json!({"type": "thinking", "thinking": text}),
            Said::Hidden => {
                json!({"type": "thinking", "thinking": "", "thinkingSignature": signature, "redacted": true})
            }
            Said::Call(call) => {
                let id = format!("call_{at}_{nth}");
                results.push(json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "isError": call.fails,
                    "content": blocks(&call.parts)}));
                let mut block = json!({"type": "toolCall", "id": id, "name": "read", "arguments": call.arguments});
                if call.is_signed && format == Format::Google {
                    block["thoughtSignature"] = json!("EqQB+/==");
                }
                block
            }
        });
    }
    let api = match format {
        Format::Anthropic => "anthropic-messages",
        Format::OpenAiChat => "openai-completions",
        Format::OpenAiResponses => "openai-responses",
        Format::Google => "google-generative-ai",
    };
    let mut all = vec![json!({"role": "assistant", "content": content, "api": api, "provider": "maker", "model": "m"})];
    all.extend(results);
    all
}

fn new_session(daemon: &mut Daemon, format: Format) -> String {
    let model = json!({"provider": "maker", "id": "m", "api": format.api(), "contextWindow": 200_000});
    let read = json!({"name": "read", "description": "Reads.", "inputSchema": {"type": "object"}});
    daemon.new_session(json!({"cwd": "/project", "model": "maker/m", "ephemeral": true, "systemPrompt": "Be brief.",
        "tools": [read], "settings": {"models": [model], "tokens": {"estimator": "chars"}}}))
}

fn body(daemon: &mut Daemon, session: &str, format: Format) -> Value {
    daemon.ok("session/context", json!({"sessionId": session, "format": format.api()}))["body"].take()
}

/// The conversation of a body.
fn conversation(body: &Value) -> &Value {
    ["messages", "input", "contents"].iter().find_map(|name| body.get(*name)).expect("a conversation")
}

/// The conversation of a request without the system prompt, which is given with the session, and without marks of the cache.
fn as_sent(body: &Value) -> Vec<Value> {
    let mut messages = conversation(body).as_array().expect("messages").clone();
    messages.retain(|message| message["role"] != "system");
    for block in messages.iter_mut().filter_map(|message| message.get_mut("content")?.as_array_mut()).flatten() {
        if let Some(block) = block.as_object_mut() {
            block.shift_remove("cache_control");
        }
    }
    messages
}

/// The first difference between the request of a conversation and the request of its appended conversation.
fn difference(daemon: &mut Daemon, turns: &[Turn], format: Format) -> Option<String> {
    let first = new_session(daemon, format);
    let messages: Vec<Value> = turns.iter().enumerate().flat_map(|(at, turn)| messages(turn, at, format)).collect();
    daemon.ok("session/append", json!({"sessionId": first, "messages": messages}));
    let before = body(daemon, &first, format);
    let second = new_session(daemon, format);
    let given = as_sent(&before);
    let append = json!({"sessionId": second, "format": format.api(), "messages": given});
    if let Err(error) = daemon.call("session/append", append) {
        return Some(format!("{format:?} {error}: {given:#?}"));
    }
    let after = body(daemon, &second, format);
    for session in [first, second] {
        daemon.ok("session/close", json!({"sessionId": session}));
    }
    daemon.events.clear();
    let (before, after) = (as_sent(&before), as_sent(&after));
    (before != after).then(|| format!("{format:?}\n{}\n{}", json!(before), json!(after)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_request_that_is_appended_makes_the_same_request(turns in prop::collection::vec(turn(), 1..7)) {
        thread_local! {
            static DAEMON: RefCell<Option<Daemon>> = const { RefCell::new(None) };
        }
        DAEMON.with_borrow_mut(|daemon| {
            let daemon = daemon.get_or_insert_with(Daemon::start);
            for format in Format::ALL {
                let found = difference(daemon, &turns, format);
                prop_assert!(found.is_none(), "{}", found.unwrap_or_default());
            }
            Ok(())
        })?;
    }
}
