//! Turns that the daemon runs, through the real binary, a provider on loopback and a client that executes tools.

use crate::{
    provider::{Asked, Format, Provider, Step},
    summarizing::{good_model, settings},
    support::{Daemon, Home, text_of},
    wire::{Dice, cases},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Longer than anything takes, even on a busy machine.
const LONG: Duration = Duration::from_secs(60);

pub fn tools() -> Value {
    json!([{"name": "read", "description": "Reads a file.",
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}])
}

pub fn daemon(provider: &Provider, format: Format, more: Value) -> (Daemon, String) {
    let home = Home::new();
    home.settings(&settings(provider, format, more));
    let mut daemon = Daemon::at(home);
    let session = daemon.new_session(json!({"cwd": "/project", "tools": tools()}));
    (daemon, session)
}

pub fn event(frame: &Value) -> &Value {
    &frame["params"]["event"]
}

pub fn kind(frame: &Value) -> &str {
    event(frame)["type"].as_str().or(frame["method"].as_str()).unwrap_or_default()
}

/// Answers tool calls until the frame is wanted. Returns the frames up to it.
pub fn serve(
    daemon: &mut Daemon,
    tool: &mut impl FnMut(&Value) -> Value,
    wanted: impl Fn(&Value) -> bool,
) -> Vec<Value> {
    let (mut frames, end) = (std::mem::take(&mut daemon.events), Instant::now() + LONG);
    while !frames.iter().any(&wanted) {
        let left = end.saturating_duration_since(Instant::now());
        let frame = daemon.frame_within(left).unwrap_or_else(|| panic!("it does not come; so far: {frames:#?}"));
        if frame["method"] == "tool/call" {
            let result = tool(&frame["params"]);
            daemon.send(&json!({"jsonrpc": "2.0", "id": frame["id"], "result": result}));
        }
        frames.push(frame);
    }
    frames
}

pub fn is(name: &'static str) -> impl Fn(&Value) -> bool {
    move |frame| kind(frame) == name
}

pub fn prompt(daemon: &mut Daemon, session: &str, message: &str) -> Value {
    daemon.ok("session/prompt", json!({"sessionId": session, "message": message}))
}

/// The text of a message.
pub fn text_in(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect(),
    }
}

/// The messages of the session: role and text.
fn said(daemon: &mut Daemon, session: &str) -> Vec<(String, String)> {
    let entries = daemon.ok("session/entries", json!({"sessionId": session, "types": ["message"], "limit": 10_000}));
    let entries = entries["entries"].as_array().expect("entries");
    entries
        .iter()
        .map(|it| (it["message"]["role"].as_str().expect("a role").to_owned(), text_in(&it["message"])))
        .collect()
}

fn roles(said: &[(String, String)]) -> Vec<&str> {
    said.iter().map(|(role, _)| role.as_str()).collect()
}

#[test]
fn a_turn_with_tools_runs_in_every_format() {
    for format in Format::ALL {
        let provider = Provider::start(format);
        provider.strict(true).script([
            Step::answer("I read both.")
                .tool_call("read", json!({"path": "a"}))
                .tool_call("read", json!({"path": "b"})),
            Step::answer("Both are fine, I think.").pieces(4),
        ]);
        let (mut daemon, session) = daemon(&provider, format, json!({}));
        let turn = prompt(&mut daemon, &session, "Look at a and b.")["turnId"].clone();
        let mut calls = Vec::new();
        let mut tool = |params: &Value| {
            assert_eq!((&params["turnId"], &params["deadlineMs"]), (&turn, &Value::Null), "{format:?}: {params:#}");
            calls.push(params["arguments"]["path"].as_str().expect("a path").to_owned());
            json!({"content": [{"type": "text", "text": format!("text of {}", params["arguments"]["path"])}]})
        };
        let frames = serve(&mut daemon, &mut tool, is("settled"));
        calls.sort();
        assert_eq!(calls, ["a", "b"]);
        let of_turn = |name: &'static str| frames.iter().filter(move |frame| kind(frame) == name);
        let mut told: BTreeMap<u64, String> = BTreeMap::new();
        let after = frames.iter().rposition(|frame| kind(frame) == "tool_end").expect("a result");
        for frame in frames[after..].iter().filter(|frame| kind(frame) == "message_delta") {
            assert_eq!(frame["params"]["turnId"], turn, "{frame:#}");
            let delta = event(frame);
            let of = told.entry(delta["contentIndex"].as_u64().expect("a place")).or_default();
            of.push_str(delta["text"].as_str().expect("a text"));
        }
        assert_eq!(told.into_values().collect::<String>(), "Both are fine, I think.", "{format:?}");
        assert_eq!((of_turn("tool_start").count(), of_turn("tool_end").count()), (2, 2), "{format:?}");
        let end = event(of_turn("turn_end").next().expect("an end")).clone();
        assert_eq!((&end["outcome"], &end["stopReason"]), (&json!("completed"), &json!("stop")), "{format:?}");
        let said = said(&mut daemon, &session);
        assert_eq!(roles(&said), ["user", "assistant", "toolResult", "toolResult", "assistant"], "{format:?}");
        let asked = provider.asked();
        assert!(asked.len() == 2 && asked.iter().all(|asked| asked.refused.is_none()), "{format:?}: {asked:#?}");
        assert!(asked[1].text().contains("text of"), "{format:?}");
    }
}

#[test]
fn each_message_of_the_queue_is_delivered_once_and_in_order_over_kills() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(|_: &Asked| Step::answer("Yes, of course.").pieces(3).drip(2));
    let (mut daemon, session) = daemon(&provider, Format::OpenAiChat, json!({}));
    let (mut dice, mut sent) = (Dice::new(3), Vec::new());
    for round in 0..cases("ABRIDGED_TURN_KILLS", 8, 200) {
        for number in 0..1 + dice.roll() % 3 {
            let text = format!("m{round}-{number}");
            let behavior = if dice.roll() % 3 == 0 { "steer" } else { "follow_up" };
            let id =
                daemon.begin("session/prompt", json!({"sessionId": session, "message": text, "behavior": behavior}));
            if daemon.answer(id).is_ok() {
                sent.push(text);
            }
        }
        // The kill comes at a random place of the turns.
        std::thread::sleep(Duration::from_millis(dice.roll() % 40));
        daemon.kill();
        daemon = daemon.restarted();
        daemon.ok("session/load", json!({"sessionId": session}));
        let queue = daemon.ok("session/status", json!({"sessionId": session}))["queue"].clone();
        let waiting: Vec<String> = ["steering", "followUp"]
            .iter()
            .flat_map(|list| queue[list].as_array().expect("a list").iter())
            .map(|it| it["text"].as_str().expect("a text").to_owned())
            .collect();
        let said = said(&mut daemon, &session);
        for text in &sent {
            let delivered = said.iter().filter(|(role, said)| role == "user" && said == text).count();
            let waits = waiting.iter().filter(|waiting| *waiting == text).count();
            assert_eq!(delivered + waits, 1, "{text}: delivered {delivered} times, {waits} wait");
        }
    }
    prompt(&mut daemon, &session, "the last");
    let all_is_done = |frame: &Value| kind(frame) == "settled";
    serve(&mut daemon, &mut |_| json!({"content": ""}), all_is_done);
    let status = daemon.ok("session/status", json!({"sessionId": session}));
    assert_eq!(status["queue"], json!({"steering": [], "followUp": []}));
    let said = said(&mut daemon, &session);
    for text in &sent {
        assert_eq!(said.iter().filter(|(role, said)| role == "user" && said == text).count(), 1, "{text}");
    }
}

#[test]
fn a_cancel_stops_a_silent_model_and_a_tool_that_never_answers() {
    let provider = Provider::start(Format::Anthropic);
    provider.script([Step::hang(), Step::call("read", json!({"path": "a"}))]);
    let (mut daemon, session) = daemon(&provider, Format::Anthropic, json!({}));
    let turn = prompt(&mut daemon, &session, "First.")["turnId"].clone();
    provider.wait_for(1);
    let cancelled = daemon.ok("session/cancel", json!({"sessionId": session}));
    assert_eq!(cancelled, json!({"cancelled": [{"turnId": turn, "kind": "turn"}]}));
    assert_eq!(event(&daemon.until("settled")), &json!({"type": "settled", "aborted": true}));
    provider.wait_for_close(0);
    daemon.events.clear();
    let turn = prompt(&mut daemon, &session, "Second.")["turnId"].clone();
    let call = daemon.next_within(LONG, |frame| frame["method"] == "tool/call").expect("a call");
    daemon.ok("session/cancel", json!({"sessionId": session, "operationId": turn}));
    let withdrawn = |frame: &Value| frame["method"] == "$/cancelRequest" && frame["params"]["id"] == call["id"];
    assert!(daemon.events.iter().any(withdrawn) || daemon.next_within(LONG, withdrawn).is_some());
    daemon.until("settled");
    daemon.send(&json!({"jsonrpc": "2.0", "id": call["id"], "result": {"content": "late"}}));
    let said = said(&mut daemon, &session);
    assert_eq!(roles(&said), ["user", "user", "assistant"], "a late result is ignored");
    assert_eq!((daemon.count("tool_start"), daemon.count("tool_end")), (1, 1));
}

#[test]
fn a_client_that_runs_models_gives_an_answer_whose_blocks_are_one_delta_each() {
    let home = Home::new();
    let model = json!({"provider": "editor", "id": "m", "api": "client", "contextWindow": 50_000});
    home.settings(
        &json!({"defaultModel": "editor/m", "models": [model], "tokens": {"estimator": "chars"}}).to_string(),
    );
    let mut daemon = Daemon::silent(home);
    daemon.ok("initialize", json!({"protocolVersion": 1, "capabilities": {"llm": {}, "tools": {}}}));
    let session = daemon.new_session(json!({"cwd": "/project", "systemPrompt": "Be kind."}));
    let turn = prompt(&mut daemon, &session, "Hello.")["turnId"].clone();
    let asked = daemon.next_within(LONG, |frame| frame["method"] == "llm/complete").expect("a request");
    let params = &asked["params"];
    assert_eq!((&params["turnId"], &params["purpose"], &params["deadlineMs"]), (&turn, &json!("turn"), &Value::Null));
    assert_eq!((&params["system"], &params["operationId"]), (&json!("Be kind."), &Value::Null));
    let content = json!([{"type": "text", "text": "Hi."}, {"type": "text", "text": "You."}]);
    let message = json!({"role": "assistant", "content": content, "stopReason": "stop",
        "usage": {"input": 30, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 35}});
    daemon.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"message": message}}));
    daemon.until("settled");
    let deltas = daemon.events.iter().filter(|frame| kind(frame) == "message_delta").map(event);
    let deltas: Vec<_> = deltas.map(|delta| (delta["contentIndex"].clone(), delta["text"].clone())).collect();
    assert_eq!(deltas, [(json!(0), json!("Hi.")), (json!(1), json!("You."))]);
    assert_eq!(said(&mut daemon, &session)[1], ("assistant".to_owned(), "Hi.You.".to_owned()));
}

#[test]
fn a_wrong_result_of_a_tool_is_told_to_the_model_and_the_turn_goes_on() {
    let [large, too_large] = [17, 65].map(|megabytes| json!({"content": "x".repeat(megabytes << 20)}));
    let results = [json!({"content": 7}), json!({}), json!({"content": [{"type": "video"}]}), large, too_large];
    let provider = Provider::start(Format::OpenAiChat);
    for _ in 0..results.len() + 1 {
        provider.script([Step::call("read", json!({"path": "a"}))]);
    }
    provider.otherwise(|_: &Asked| Step::answer("I see."));
    let (mut daemon, session) = daemon(&provider, Format::OpenAiChat, json!({}));
    prompt(&mut daemon, &session, "Read.");
    for number in 0..results.len() + 1 {
        let call = daemon.next_within(LONG, |frame| frame["method"] == "tool/call").expect("a call");
        let answer = match results.get(number) {
            Some(result) => json!({"jsonrpc": "2.0", "id": call["id"], "result": result}),
            None => json!({"jsonrpc": "2.0", "id": call["id"], "error": {"code": 1, "message": "no such disk"}}),
        };
        daemon.send(&answer);
    }
    daemon.until("settled");
    let said = said(&mut daemon, &session);
    let told: Vec<&str> = said.iter().filter(|(role, _)| role == "toolResult").map(|(_, text)| text.as_str()).collect();
    assert!(told.len() == 6 && told.iter().all(|text| text.len() < 1_000), "{told:?}");
    let parts = ["cannot be read", "cannot be read", "cannot be read", "bytes", "was skipped", "no such disk"];
    for (text, part) in told.iter().zip(parts) {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(said.last(), Some(&("assistant".to_owned(), "I see.".to_owned())));
}

#[test]
fn tools_are_set_for_a_session_or_for_those_that_begin_later() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(|_: &Asked| Step::answer("Yes."));
    let (mut daemon, session) = daemon(&provider, Format::OpenAiChat, json!({}));
    let tool = |name: &str| json!([{"name": name, "description": "", "inputSchema": {"type": "object"}}]);
    assert_eq!(daemon.ok("tools/set", json!({"sessionId": session, "tools": tool("write")})), Value::Null);
    assert_eq!(daemon.ok("tools/set", json!({"tools": tool("search")})), Value::Null);
    let later = daemon.new_session(json!({"cwd": "/project"}));
    for session in [&session, &later] {
        prompt(&mut daemon, session, "Hello.");
        daemon.until("settled");
        daemon.events.clear();
    }
    let names: Vec<Value> = provider.asked().iter().map(|it| it.body["tools"][0]["function"]["name"].clone()).collect();
    assert_eq!(names, ["write", "search"]);
    for (wrong, part) in [
        (json!([{"name": "a"}]), "inputSchema"),
        (json!([{}]), "no name"),
        (json!([tool("a")[0], tool("a")[0]]), "two tools"),
    ] {
        let error = daemon.err("tools/set", json!({"tools": wrong}));
        assert!(error["message"].as_str().is_some_and(|text| text.contains(part)), "{error:#}");
    }
}

#[test]
fn a_message_during_a_compaction_is_answered_after_it() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(good_model);
    let (mut daemon, session) = daemon(&provider, Format::OpenAiChat, json!({}));
    for number in 0..8 {
        daemon.append(
            &session,
            &[crate::support::user(&format!("{number} {}", text_of(900, "part"))), crate::support::assistant("Read.")],
        );
    }
    let compact = daemon.begin("session/compact", json!({"sessionId": session, "keepRecentTokens": 500, "wait": true}));
    daemon.until("compaction_start");
    assert_eq!(prompt(&mut daemon, &session, "And now?")["disposition"], "queued");
    assert_eq!(daemon.answer(compact).expect("an answer")["outcome"], "completed");
    daemon.until("turn_end");
    assert_eq!(roles(&said(&mut daemon, &session)[16..]), ["user", "assistant"]);
    let read_only = daemon.ok("session/close", json!({"sessionId": session}));
    assert_eq!(read_only, Value::Null);
    daemon.ok("session/load", json!({"sessionId": session, "readOnly": true}));
    let error = daemon.err("session/prompt", json!({"sessionId": session, "message": "Hello."}));
    assert_eq!(error["data"]["code"], "storage_error");
}

#[test]
fn a_message_whose_model_cannot_be_asked_is_kept_and_the_error_says_how_it_is_sent() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(|_: &Asked| Step::answer("Yes."));
    let (mut daemon, session) = daemon(&provider, Format::OpenAiChat, json!({"defaultModel": "nobody/none"}));
    let error = daemon.err("session/prompt", json!({"sessionId": session, "message": "Hello."}));
    assert_eq!(error["data"]["code"], "provider_error");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("session/continue")), "{error:#}");
    daemon.ok("session/configure", json!({"sessionId": session, "model": "test/model"}));
    let answer = daemon.ok("session/continue", json!({"sessionId": session}));
    assert_eq!(answer, json!({"turnId": answer["turnId"]}));
    daemon.until("turn_end");
    assert_eq!(roles(&said(&mut daemon, &session)), ["user", "assistant"]);
}

#[test]
fn a_model_that_is_silent_is_asked_once_more_and_a_second_silence_ends_the_turn() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.script([Step::hang(), Step::answer("I was asleep."), Step::hang(), Step::hang()]);
    let (mut daemon, session) = daemon(&provider, Format::OpenAiChat, json!({"compaction": {"stallSeconds": 1}}));
    for (outcome, requests) in [("completed", 2), ("failed", 4)] {
        prompt(&mut daemon, &session, "Hello.");
        let end = event(&daemon.until("turn_end")).clone();
        assert_eq!((&end["outcome"], provider.asked().len()), (&json!(outcome), requests), "{end:#}");
        assert_eq!(daemon.count("retry_start"), 1);
        daemon.until("settled");
        daemon.events.clear();
    }
}

#[test]
fn an_answer_that_has_ended_counts_although_its_stream_stays_open() {
    let provider = Provider::start(Format::OpenAiChat);
    // The fourth event is the end. Neither the tokens nor `[DONE]` follow.
    provider.script([Step::answer("Yes.").hang_after(4), Step::answer("I was asked again.")]);
    let (mut daemon, session) = daemon(&provider, Format::OpenAiChat, json!({"compaction": {"stallSeconds": 1}}));
    prompt(&mut daemon, &session, "Hello.");
    daemon.until("turn_end");
    assert_eq!(said(&mut daemon, &session)[1], ("assistant".to_owned(), "Yes.".to_owned()));
    assert_eq!((provider.asked().len(), daemon.count("retry_start")), (1, 0));
}
