//! Summaries by the session's own model after the session's own request, which its provider has in its cache: through the real
//! binary and a provider on loopback with a cache of prefixes.

use crate::{
    provider::{Asked, Format, Provider, Step, claude::without_marks},
    summarizing::{good, good_model, merge, settings},
    support::{Daemon, Home, text_of},
};
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

/// A cache as Anthropic's page describes it: an entry is everything up to a marked block, and the messages in it hold for the
/// same choice of tools and the same thinking alone.
#[derive(Clone, Default)]
struct PrefixCache(Arc<Mutex<HashSet<String>>>);

impl PrefixCache {
    /// The share of a request that is read from the cache, and its size in characters. Marked parts are written.
    fn take(&self, body: &Value) -> (f64, usize) {
        let of_messages = json!([body["tool_choice"], body["thinking"]]).to_string();
        let mut prefix = without_marks(json!([body["tools"], body["system"]])).to_string() + &of_messages;
        let (mut read, mut entries) = (0, Vec::new());
        let mut cache = self.0.lock().expect("no panic");
        for message in body["messages"].as_array().expect("messages") {
            prefix.push_str(message["role"].as_str().expect("a role"));
            for block in message["content"].as_array().expect("blocks") {
                prefix.push_str(&without_marks(block.clone()).to_string());
                if cache.contains(&prefix) {
                    read = prefix.len();
                }
                if !block["cache_control"].is_null() {
                    entries.push(prefix.clone());
                }
            }
        }
        cache.extend(entries);
        (read as f64 / prefix.len() as f64, prefix.len())
    }

    /// The usage of a request.
    fn usage(&self, body: &Value) -> (u64, u64) {
        let (share, chars) = self.take(body);
        let tokens = chars as f64 / 4.0;
        let read = tokens * share;
        ((tokens - read) as u64, read as u64)
    }
}

/// A host whose model is asked with the bodies that the daemon gives.
struct Host {
    daemon: Daemon,
    session: String,
    cache: PrefixCache,
    turn: usize,
    /// The last body, with the answer to it.
    last: Value,
}

impl Host {
    fn start(settings: &str, cache: &PrefixCache) -> Self {
        let home = Home::new();
        home.settings(settings);
        let mut daemon = Daemon::at(home);
        let tools = json!([{"name": "shell", "description": "Runs a command.", "inputSchema": {"type": "object"}}]);
        let new = json!({"cwd": "/project", "systemPrompt": "Be brief.", "tools": tools});
        let session = daemon.new_session(new);
        Self { daemon, session, cache: cache.clone(), turn: 0, last: Value::Null }
    }

    fn of(&mut self, method: &str, mut params: Value) -> Value {
        params["sessionId"] = json!(self.session);
        self.daemon.ok(method, params)
    }

    fn append(&mut self, format: &str, message: Value) {
        self.of("session/append", json!({"format": format, "messages": [message]}));
    }

    /// A turn: a request, a call with its result, and an answer.
    fn turn(&mut self, words: usize) {
        self.turn += 1;
        let request = format!("Request {}: {}", self.turn, text_of(words, "look"));
        self.append("anthropic", json!({"role": "user", "content": request}));
        let id = format!("t{}", self.turn);
        self.answer(
            json!([{"type": "text", "text": "I look."}, {"type": "tool_use", "id": id, "name": "shell", "input": {}}]),
        );
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": text_of(words, "part")});
        self.append("anthropic", json!({"role": "user", "content": [result]}));
        self.answer(json!([{"type": "text", "text": format!("Answer {}.", self.turn)}]));
    }

    fn answer(&mut self, content: Value) {
        self.last = self.of("session/context", json!({"format": "anthropic"}))["body"].clone();
        let (input, read) = self.cache.usage(&self.last);
        let usage = json!({"input_tokens": input, "cache_read_input_tokens": read, "output_tokens": 20});
        let answer = json!({"role": "assistant", "content": content, "stop_reason": "end_turn", "usage": usage});
        self.append("anthropic", answer);
    }

    fn compact(&mut self) -> Value {
        let answer = self.of("session/compact", json!({"keepRecentTokens": 600, "wait": true}));
        assert_eq!(answer["outcome"], "completed", "{answer:#}");
        answer["result"].clone()
    }
}

/// A provider whose model answers well, with the usage of its cache.
fn provider(cache: &PrefixCache) -> Provider {
    let (provider, cache) = (Provider::start(Format::Anthropic), cache.clone());
    provider.otherwise(move |asked: &Asked| {
        let (input, read) = cache.usage(&asked.body);
        good_model(asked).usage(input, 200, read, 0)
    });
    provider
}

fn own(provider: &Provider, more: Value) -> String {
    let model = json!({"provider": "anthropic", "id": "claude-opus-4-5", "api": "anthropic", "baseUrl": provider.base_url(),
        "contextWindow": 200_000, "cost": {"input": 5.0, "output": 25.0, "cacheRead": 0.5, "cacheWrite": 6.25}});
    let mut all =
        json!({"defaultModel": "anthropic/claude-opus-4-5", "models": [model], "compaction": {"enabled": false}});
    merge(&mut all, more);
    settings(provider, Format::Anthropic, all)
}

/// Fails where a request is not the body before it with one answer and one message more.
fn rides_on(asked: &Asked, body: &Value) {
    for field in ["system", "tools", "model", "tool_choice", "thinking"] {
        assert_eq!(asked.body[field], body[field], "{field}");
    }
    let (sent, before) = (&asked.body["messages"], body["messages"].as_array().expect("messages"));
    let sent = sent.as_array().expect("messages");
    assert_eq!(without_marks(json!(sent[..before.len()])), without_marks(json!(before)));
    assert_eq!(sent[before.len() - 1], before[before.len() - 1], "the mark of the last message stays");
    let roles: Vec<_> = sent[before.len()..].iter().map(|message| message["role"].as_str().expect("a role")).collect();
    assert_eq!(roles, ["assistant", "user"], "{sent:#?}");
}

#[test]
fn the_sessions_own_model_summarizes_after_the_request_that_its_provider_has_in_its_cache() {
    let cache = PrefixCache::default();
    let provider = provider(&cache);
    let mut host = Host::start(&own(&provider, json!({})), &cache);
    for _ in 0..7 {
        host.turn(8_000);
    }
    let size = host.of("session/usage", json!({}))["contextTokens"].as_u64().expect("a number");
    assert!(size > 100_000, "{size}");
    let result = host.compact();
    assert_eq!(
        (&result["method"], &result["form"], &result["rejected"]),
        (&json!("llm"), &json!("live_request"), &json!([])),
        "{result:#}"
    );
    let asked = provider.asked();
    rides_on(&asked[0], &host.last);
    let question = asked[0].body["messages"].as_array().expect("messages").last().expect("one").to_string();
    for words in ["## Goal", "The messages from ", "stay in the conversation"] {
        assert!(question.contains(words), "{words}: {question}");
    }
    let (usage, saved) = (&result["usage"], &result["saved"]);
    let number = |value: &Value| value.as_f64().expect("a number");
    let share = number(&usage["cacheRead"]) / (number(&usage["cacheRead"]) + number(&usage["input"]));
    assert!(share >= 0.9, "{share} of {usage} was read from the cache");
    assert_eq!(saved["tokens"], usage["cacheRead"]);
    let dollars = number(&usage["cacheRead"]) * 4.5 / 1e6;
    assert!((number(&saved["dollars"]) - dollars).abs() < 1e-6, "{saved} {dollars}");
    let told = json!({"entryId": result["entryId"], "form": "live_request", "saved": saved});
    assert_eq!(host.of("session/status", json!({}))["summary"], told);

    // A session that is loaded again has the same bytes.
    for _ in 0..3 {
        host.turn(8_000);
    }
    host.of("session/close", json!({}));
    let loaded = host.of("session/load", json!({}));
    assert_eq!(loaded["session"]["sessionId"], json!(host.session));
    let status = host.of("session/status", json!({}));
    assert_eq!(status["summary"]["form"], "live_request", "{status:#}");
    assert_eq!(host.compact()["form"], "live_request");
    let asked = provider.asked();
    let live = asked.iter().rev().find(|asked| !asked.body["tools"].is_null()).expect("a request with tools");
    rides_on(live, &host.last);
}

#[test]
fn a_transcript_is_sent_where_the_cache_is_cold_or_another_model_summarizes() {
    type Case = (&'static str, fn(&mut Host), Value);
    let other = json!({"provider": "anthropic", "id": "claude-haiku-4-5", "contextWindow": 200_000});
    let cases: [Case; 5] = [
        (
            "no answer reports a cache",
            |host| host.append("anthropic", json!({"role": "user", "content": "Go on."})),
            json!({}),
        ),
        (
            "the context was rewritten",
            |host| {
                host.turn(300);
                host.of("session/configure", json!({"systemPrompt": "Be long."}));
            },
            json!({}),
        ),
        (
            "the answer is old",
            |host| {
                host.turn(300);
                // Longer than `cacheSeconds`, whose unit is the second.
                std::thread::sleep(std::time::Duration::from_millis(2_100));
            },
            json!({"prune": {"cacheSeconds": 1}}),
        ),
        (
            "another model is named",
            |host| host.turn(300),
            json!({"compaction": {"models": ["anthropic/claude-haiku-4-5"]}}),
        ),
        (
            "another model answered last",
            |host| {
                host.turn(300);
                host.of("session/configure", json!({"model": "anthropic/claude-haiku-4-5"}));
            },
            json!({}),
        ),
    ];
    for (name, before, more) in cases {
        let cache = PrefixCache::default();
        let provider = provider(&cache);
        let mut all: Value = serde_json::from_str(&own(&provider, more)).expect("settings");
        let mut other = other.clone();
        merge(&mut other, json!({"api": "anthropic", "baseUrl": provider.base_url()}));
        all["models"].as_array_mut().expect("models").push(other);
        let mut host = Host::start(&all.to_string(), &cache);
        for at in 0..6 {
            host.append(
                "anthropic",
                json!({"role": "user", "content": format!("Early request {at}: {}", text_of(300, "look"))}),
            );
            host.append("anthropic", json!({"role": "assistant", "content": format!("Early answer {at}.")}));
        }
        before(&mut host);
        let result = host.compact();
        assert_eq!((&result["method"], &result["form"]), (&json!("llm"), &json!("transcript")), "{name}: {result:#}");
        assert!(provider.asked().iter().all(|asked| asked.body["tools"].is_null()), "{name}");
    }
}

/// A host that formats the request by itself, so that the daemon's bytes are in no cache.
#[test]
fn a_request_that_read_nothing_from_the_cache_is_not_made_again() {
    let (cache, elsewhere) = (PrefixCache::default(), PrefixCache::default());
    let provider = provider(&elsewhere);
    let mut host = Host::start(&own(&provider, json!({})), &cache);
    let mut forms = Vec::new();
    for _ in 0..3 {
        for _ in 0..4 {
            host.turn(600);
        }
        forms.push(host.compact()["form"].clone());
        elsewhere.0.lock().expect("no panic").clear();
    }
    assert_eq!(forms, ["live_request", "transcript", "live_request"]);
}

#[test]
fn a_secret_that_the_model_has_seen_is_not_in_its_summary() {
    const KEY: &str = "sk-ant-api03-0123456789abcdefghijABCDEFGHIJ";
    let cache = PrefixCache::default();
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(|asked: &Asked| {
        assert!(asked.body["tools"].is_null() || asked.text().contains(KEY), "the live request is as it is");
        if asked.body["tools"].is_null() {
            good_model(asked)
        } else {
            Step::answer(&good(&format!("with the key {KEY}")))
        }
    });
    let mut host = Host::start(&own(&provider, json!({})), &cache);
    host.append("anthropic", json!({"role": "user", "content": format!("The key is {KEY}.")}));
    host.answer(json!([{"type": "text", "text": "I see."}]));
    for _ in 0..3 {
        host.turn(600);
    }
    let result = host.compact();
    assert_eq!(result["form"], "live_request", "{result:#}");
    assert!(!result.to_string().contains(KEY) && result["summary"].to_string().contains("[REDACTED"), "{result:#}");
    let of_summary = |frame: &&Value| frame["params"]["event"]["type"] == "summary_chunk";
    let chunks: Vec<_> = host.daemon.events.iter().filter(of_summary).map(Value::to_string).collect();
    assert!(!chunks.is_empty() && chunks.iter().all(|chunk| !chunk.contains(KEY)), "{chunks:?}");
}

#[test]
fn an_answer_that_is_no_summary_is_asked_for_again_and_then_by_a_transcript() {
    type Fault = (&'static str, fn() -> Step, &'static str, usize);
    let faults: [Fault; 3] = [
        ("a call", || Step::call("shell", json!({})), "it called a tool", 1),
        ("prose", || Step::answer("Fine."), "none of the headings", 2),
        ("an error", || Step::status(400), "status 400", 1),
    ];
    for (name, fault, why, requests) in faults {
        let cache = PrefixCache::default();
        let provider = Provider::start(Format::Anthropic);
        provider
            .otherwise(move |asked: &Asked| if asked.body["tools"].is_null() { good_model(asked) } else { fault() });
        let mut host = Host::start(&own(&provider, json!({})), &cache);
        for _ in 0..4 {
            host.turn(600);
        }
        let result = host.compact();
        assert_eq!((&result["method"], &result["form"]), (&json!("llm"), &json!("transcript")), "{name}: {result:#}");
        let rejected = result["rejected"].as_array().expect("a list");
        assert_eq!(rejected.len(), requests, "{name}: {rejected:?}");
        let said = rejected[0]["why"].as_str().expect("a text");
        assert!(said.contains(why) && said.contains("the session's own request"), "{name}: {said}");
        // The session asks so no more.
        let asked = provider.asked().len();
        for _ in 0..4 {
            host.turn(600);
        }
        assert_eq!(host.compact()["form"], "transcript", "{name}");
        assert!(provider.asked()[asked..].iter().all(|asked| asked.body["tools"].is_null()), "{name}");
    }
}

#[test]
fn a_branch_is_summarized_after_the_request_of_its_leaf() {
    let cache = PrefixCache::default();
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(|_: &Asked| Step::answer("## Goal\nTry a branch.\n\n## Outcome\n- [x] it was tried\n\n## Findings\n- nothing\n\n## Files\n(none)\n\n## Open\n(none)"));
    let mut host = Host::start(&own(&provider, json!({})), &cache);
    for _ in 0..4 {
        host.turn(400);
    }
    let entries = host.of("session/entries", json!({"branch": "active", "types": ["message"]}))["entries"].clone();
    let target = entries.as_array().expect("entries")[3]["id"].clone();
    let answer = host.of("session/navigate", json!({"targetEntryId": target, "summarize": true, "wait": true}));
    let asked = provider.asked();
    assert!(!asked.is_empty() && !asked[0].body["tools"].is_null(), "{answer:#}");
    rides_on(&asked[0], &host.last);
    let question = asked[0].body["messages"].as_array().expect("messages").last().expect("one").to_string();
    assert!(question.contains("are that branch") && question.contains("Request 2"), "{question}");
}
