//! Thinking that a model binds to everything before it goes back where it is valid, and nowhere else. The provider signs each
//! thinking with a hash of what stood before it.

use crate::{
    provider::{Asked, Format, Provider, Step, claude},
    summarizing::{self, good_model},
    support::*,
    turning,
    wire::{Dice, cases},
};
use serde_json::{Value, json};

const MODEL: &str = "anthropic/claude-opus-5-5";
const HEADER: &str = "thinking-binding-controls-2026-08-01";

/// The signature of thinking after these messages and these blocks of its own answer.
fn signature(body: &Value, messages: &[Value], blocks: &[Value]) -> String {
    claude::of_thinking(body, messages, blocks)
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
    let betas = answer["headers"]["anthropic-beta"].as_str().unwrap_or_default();
    let has_beta = |beta: &str| betas.split(',').any(|it| it == beta);
    assert_eq!(claude::objection_to(body, &has_beta), None, "{body:#}");
    let controls = has_beta(HEADER);
    let drops = body["thinking"]["block_binding"]["prefix_mismatch_behavior"] == "drop_block";
    assert_eq!([controls, drops], [found > 0; 2], "{answer:#}");
    found
}

/// A host whose model thinks in each answer.
struct Host {
    daemon: Daemon,
    session: String,
    turn: usize,
    /// The turn of the last answer.
    answered: usize,
    /// Whether answers have usage.
    reports: bool,
    /// The requests with a block of the provider's own compaction.
    blocks: usize,
}

impl Host {
    fn start() -> Self {
        Self::with("claude-opus-5-5", json!({}))
    }

    /// A host whose first model compacts on demand at this provider.
    fn compacting_at(provider: &Provider) -> Self {
        let at = json!({"api": "anthropic", "baseUrl": provider.base_url(), "nativeCompaction": true});
        Self::with("claude-opus-5-5", at)
    }

    fn with(id: &str, more: Value) -> Self {
        let home = Home::new();
        let mut model = json!({"provider": "anthropic", "id": id, "contextWindow": 60_000});
        model.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let other = json!({"provider": "anthropic", "id": "claude-opus-4-6", "contextWindow": 60_000});
        let settings = json!({"models": [model, other], "compaction": {"speculative": false, "enabled": false}});
        home.settings(&settings.to_string());
        let mut daemon = Daemon::at(home);
        let tools = json!([{"name": "shell", "inputSchema": {"type": "object"}}]);
        let session = daemon.new_session(json!({"cwd": "/project", "model": MODEL, "thinkingLevel": "high",
            "systemPrompt": "Be brief.", "tools": tools}));
        Self { daemon, session, turn: 0, answered: 0, reports: false, blocks: 0 }
    }

    fn of(&mut self, method: &str, mut params: Value) -> Result<Value, Value> {
        params["sessionId"] = json!(self.session);
        self.daemon.call(method, params)
    }

    /// Closes the session and loads it with these params.
    fn reload(&mut self, params: Value) {
        self.of("session/close", json!({})).expect("it is closed");
        self.of("session/load", params).expect("it is loaded");
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
        self.answer_after(calls, |_| ())
    }

    /// The same. `meanwhile` happens before the answer comes.
    fn answer_after(&mut self, calls: usize, meanwhile: impl FnOnce(&mut Self)) -> Option<usize> {
        let context = self.context();
        let thinks = context["model"].as_str() == Some(MODEL) || context["model"]["id"] == "claude-opus-5-5";
        let found = replayed(&context);
        self.blocks += usize::from(context["body"]["messages"][0]["content"][0]["type"] == "compaction");
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
        self.answered = self.turn;
        meanwhile(self);
        let usage = json!({"input_tokens": context["usage"]["contextTokens"], "output_tokens": 20});
        let mut answer = json!({"role": "assistant", "content": content, "stop_reason": "end_turn"});
        if self.reports {
            answer["usage"] = usage;
        }
        let of = context["contextId"].clone();
        self.of("session/append", json!({"format": "anthropic", "messages": [answer], "contextId": of}))
            .expect("it is appended");
        thinks.then_some(found)
    }

    fn results(&mut self, calls: usize) {
        for at in 0..calls {
            let id = format!("t{}_{at}", self.answered);
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
    // A session that is loaded again has the same bytes.
    host.reload(json!({}));
    assert_eq!(host.turn(), [Some(4), Some(5)]);
}

#[test]
fn thinking_of_an_answer_that_lacks_a_message_stays_away() {
    let mut host = Host::start();
    host.turn();
    host.say();
    assert_eq!(host.answer_after(1, |host| host.say()), Some(2));
    host.results(1);
    assert_eq!(host.answer(0), Some(0), "the message of the user stands before the answer now");
    assert_eq!(host.turn(), [Some(1), Some(2)]);
}

#[test]
fn a_fork_after_a_compaction_sends_none_of_the_copied_thinking() {
    let mut host = Host::start();
    for _ in 0..3 {
        host.turn();
    }
    host.of("session/compact", json!({"keepRecentTokens": 100, "wait": true})).expect("an outcome");
    host.turn();
    let forked = host.of("session/fork", json!({})).expect("a fork");
    host.session = forked["session"]["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(host.turn(), [Some(0), Some(1)]);
}

/// A server that drops thinking or clears results counts another prompt than the one that was sent.
#[test]
fn an_answer_to_a_request_that_its_server_changed_anchors_nothing() {
    let dropped =
        json!({"input_transformations": [{"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "x"}]});
    let allowed =
        json!({"input_transformations": [{"type": "thinking_mismatch_allowed", "path": "messages.1.content.0"}]});
    let edits = json!([{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 1, "cleared_input_tokens": 900}]);
    let cleared = json!({"context_management": {"applied_edits": edits}});
    let unchanged = json!({"context_management": {"applied_edits": []}, "input_transformations": []});
    let compacted = json!({"usage": {"input_tokens": 900, "output_tokens": 5,
        "iterations": [{"type": "compaction", "input_tokens": 2_000}, {"type": "message", "input_tokens": 900}]}});
    for (more, source, replayed_then) in [
        (compacted, "estimate", 0),
        (dropped, "estimate", 0),
        (cleared, "estimate", 0),
        (allowed, "provider", 2),
        (unchanged, "provider", 2),
    ] {
        let mut host = Host::start();
        host.say();
        host.answer(0);
        host.say();
        let context = host.context();
        let body = &context["body"];
        let signed = signature(body, body["messages"].as_array().expect("messages"), &[]);
        let mut answer = json!({"role": "assistant", "stop_reason": "end_turn",
            "content": [{"type": "thinking", "thinking": "Hm.", "signature": signed}, {"type": "text", "text": "Yes."}],
            "usage": {"input_tokens": context["usage"]["contextTokens"], "output_tokens": 5}});
        answer.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        host.append(answer);
        host.say();
        let context = host.context();
        assert_eq!(context["usage"]["source"], source, "{more:#}: {}", context["usage"]);
        assert_eq!(replayed(&context), replayed_then, "{more:#}");
    }
}

#[test]
fn thinking_under_the_instructions_of_a_load_goes_back_under_no_other_ones() {
    let mut host = Host::start();
    assert_eq!(host.turn(), [Some(0), Some(1)]);
    host.reload(json!({"systemPrompt": "Of this load."}));
    assert_eq!(host.turn(), [Some(0), Some(0)]);
    host.reload(json!({}));
    assert_eq!(host.turn(), [Some(0), Some(1)]);
}

#[test]
fn a_branch_from_an_answer_knows_that_its_request_was_another_one() {
    let mut host = Host::start();
    host.turn();
    host.say();
    host.answer_after(0, Host::say);
    let entries = host.of("session/entries", json!({"branch": "active"})).expect("entries");
    let entries = entries["entries"].as_array().expect("entries");
    let answer =
        entries.iter().rfind(|entry| entry["message"]["role"] == "assistant").expect("an answer")["id"].clone();
    let message = json!({"role": "user", "content": "On a branch."});
    let branch = json!({"format": "anthropic", "messages": [message], "parentEntryId": answer});
    host.of("session/append", branch).expect("it is appended");
    assert_eq!(replayed(&host.context()), 0);
}

#[test]
fn an_answer_to_a_request_that_failed_before_is_bound_to_the_same_request() {
    let mut host = Host { reports: true, ..Host::start() };
    host.turn();
    host.say();
    let failed = |host: &mut Host| {
        let failed = json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "overloaded"});
        host.of("session/append", json!({"messages": [failed]})).expect("it is appended");
    };
    assert_eq!(host.answer_after(0, failed), Some(2));
    host.say();
    assert_eq!(replayed(&host.context()), 3);
}

#[test]
fn a_session_without_tools_sends_no_thinking_after_a_call() {
    let mut host = Host::start();
    host.session = host.daemon.new_session(json!({"cwd": "/project", "model": MODEL, "thinkingLevel": "high"}));
    host.say();
    host.answer(0);
    host.say();
    assert_eq!(host.answer(1), Some(1));
    host.results(1);
    assert_eq!(host.answer(0), Some(0), "the tools of the request are made up from the calls");
}

/// The thinking is most of the conversation, so that a request without it is much smaller than the conversation.
#[test]
fn a_summary_without_thinking_is_not_taken_for_a_cut_prompt() {
    let provider = Provider::start(Format::Anthropic);
    provider.strict(true).otherwise(good_model);
    let thinking = |at: usize| {
        let content = json!([{"type": "thinking", "thinking": text_of(3_000, &format!("thought_{at}")), "thinkingSignature": "c2ln"},
            {"type": "text", "text": format!("Answer {at} is long enough to be one.")}]);
        json!({"role": "assistant", "content": content, "timestamp": 1})
    };
    let messages: Vec<Value> =
        (0..8).flat_map(|at| [user(&format!("Request {at}: {}", text_of(60, "look"))), thinking(at)]).collect();
    let model =
        json!({"provider": "test", "id": "claude-opus-5-5", "api": "anthropic", "baseUrl": provider.base_url()});
    let settings = json!({"defaultModel": "test/claude-opus-5-5", "models": [model]});
    let (mut daemon, id, _) = summarizing::session(&settings.to_string(), &messages);
    let done = daemon.ok("session/compact", json!({"sessionId": id, "keepRecentTokens": 100, "wait": true}));
    assert_eq!(done["result"]["method"], "llm", "{done:#}");
    assert!(done["result"]["rejected"].as_array().is_none_or(Vec::is_empty), "{done:#}");
    assert!(provider.asked().iter().all(|asked| !asked.text().contains("thought_")));
}

#[test]
fn a_turn_of_the_daemon_sends_thinking_back_with_the_header() {
    let provider = Provider::start(Format::Anthropic);
    provider.strict(true).script([
        Step::answer("I look.").thinking("Hm.", "c2ln").tool_call("read", json!({"path": "a"})),
        Step::answer("It is fine."),
    ]);
    let model = json!({"provider": "test", "id": "claude-opus-5-5", "api": "anthropic", "baseUrl": provider.base_url(),
        "contextWindow": 100_000, "headers": {"anthropic-beta": "another-beta"}});
    let more = json!({"defaultModel": "test/claude-opus-5-5", "models": [model]});
    let (mut daemon, session) = turning::daemon(&provider, Format::Anthropic, more);
    turning::prompt(&mut daemon, &session, "Look at a.");
    let mut tool = |_: &Value| json!({"content": [{"type": "text", "text": "text"}]});
    turning::serve(&mut daemon, &mut tool, turning::is("settled"));
    let asked = provider.asked();
    assert!(asked.len() == 2 && asked.iter().all(|asked| asked.refused.is_none()), "{asked:#?}");
    let betas = |asked: &Asked| -> Vec<String> {
        let betas = asked.headers.iter().filter(|(name, _)| name == "anthropic-beta");
        betas.map(|(_, value)| value.clone()).collect()
    };
    assert_eq!(betas(&asked[0]), ["another-beta"]);
    assert_eq!(betas(&asked[1]), [format!("another-beta,{HEADER}")]);
    assert_eq!(asked[1].body["messages"][1]["content"][0]["signature"], "c2ln");
    assert_eq!(asked[1].body["thinking"]["block_binding"]["prefix_mismatch_behavior"], "drop_block");
}

/// A gateway that knows the models and not the field that says what happens to bound thinking.
#[test]
fn a_server_that_refuses_the_binding_is_asked_without_thinking_from_then_on() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(|asked: &Asked| match &asked.body["thinking"]["block_binding"] {
        Value::Null => Step::answer("I look.").thinking("Hm.", "c2ln"),
        _ => Step::status(400)
            .body(r#"{"error": {"message": "thinking.block_binding: Extra inputs are not permitted"}}"#),
    });
    let model = json!({"provider": "test", "id": "claude-opus-5-5", "api": "anthropic", "baseUrl": provider.base_url(),
        "contextWindow": 100_000});
    let more = json!({"defaultModel": "test/claude-opus-5-5", "models": [model]});
    let (mut daemon, session) = turning::daemon(&provider, Format::Anthropic, more);
    for text in ["One.", "Two.", "Three."] {
        turning::prompt(&mut daemon, &session, text);
        let frames = turning::serve(&mut daemon, &mut |_: &Value| json!({}), turning::is("settled"));
        assert!(frames.iter().all(|frame| turning::kind(frame) != "error"), "{frames:#?}");
    }
    let refused: Vec<bool> =
        provider.asked().iter().map(|asked| !asked.body["thinking"]["block_binding"].is_null()).collect();
    assert_eq!(refused, [false, true, false, false]);
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

/// Thinking that a request has is valid, and the thinking of the last request is in it if nothing was rewritten since.
#[test]
fn thinking_is_valid_in_random_sessions() {
    let seen = (0..u64::from(cases("ABRIDGED_BOUND", 2, 6)))
        .map(|seed| random_session(&mut Host::start(), seed))
        .sum::<usize>();
    assert!(seen > 100, "{seen} times thinking went back");
}

/// The same where the provider compacts. Its block is where it is valid: `Host::context` has the provider's objections.
#[test]
fn requests_with_blocks_are_valid_in_random_sessions() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(|asked: &Asked| match claude::objection(asked) {
        Some(code) => claude::error(400, &code),
        None if asked.body["compaction"].is_null() => good_model(asked),
        None => claude::compacted(asked),
    });
    let (mut blocks, mut seen) = (0, 0);
    for seed in 0..u64::from(cases("ABRIDGED_BOUND", 2, 6)) {
        let mut host = Host::compacting_at(&provider);
        seen += random_session(&mut host, seed + 100);
        blocks += host.blocks;
    }
    let objections: Vec<_> = provider.asked().iter().filter_map(claude::objection).collect();
    assert!(objections.is_empty(), "{objections:?}");
    assert!(seen > 50 && blocks > 10, "{seen} times thinking went back, and {blocks} times a block");
}

/// A random session. Returns the number of requests in which thinking went back.
fn random_session(host: &mut Host, seed: u64) -> usize {
    let (mut dice, mut seen) = (Dice::new(seed + 1), 0);
    host.turn();
    host.turn();
    for _ in 0..100 {
        let mut is_plain = false;
        match dice.below(20) {
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
                // Before the first one stand the tools.
                let is_message = |entry: &&Value| entry["type"] == "message";
                let entries: Vec<&Value> =
                    entries["entries"].as_array().expect("entries").iter().filter(is_message).collect();
                let target = dice.pick(&entries)["id"].clone();
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
                host.reload(json!({}));
            }
            12 => {
                // The user writes while the model answers.
                host.say();
                host.answer_after(dice.below(2), |host| host.say());
            }
            13 => {
                host.say();
                host.answer_after(1, |host| drop(host.of("session/pin", json!({"text": "Meanwhile."}))));
                host.results(1);
            }
            14 => {
                let level = *dice.pick(&["off", "low", "high"]);
                drop(host.of("session/configure", json!({ "thinkingLevel": level })));
            }
            15 => {
                host.say();
                let prompt = format!("Prompt {}.", dice.below(2));
                host.answer_after(0, |host| drop(host.of("session/configure", json!({ "systemPrompt": prompt }))));
            }
            16 => {
                host.say();
                let compact = json!({"keepRecentTokens": 300, "wait": true});
                host.answer_after(0, |host| drop(host.of("session/compact", compact)));
            }
            17 => {
                host.append(json!({"role": "user", "content": " \n"}));
                host.answer(0);
            }
            _ => is_plain = true,
        }
        let [first, second] = host.turn();
        seen += first.unwrap_or(0);
        assert!(!is_plain || second.is_none_or(|second| second > 0), "seed {seed}: the answer of this turn goes back");
    }
    seen
}
