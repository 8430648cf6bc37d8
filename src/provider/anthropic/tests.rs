//! Requests and answers of Anthropic's Messages, from recordings and as rows.

use super::*;
use crate::{
    conversation::message::Usage,
    models::dialects,
    provider::{
        Answer, Api, Delta, Part, Stop, ToolOutcome, Trouble, TroubleKind, Turn, reading, sse,
        turns::{Target, turns},
    },
};
use proptest::prelude::*;
use std::{borrow::Cow, collections::HashSet};

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../../../tests/recordings/anthropic/", $name))
    };
}

fn decode(stream: &str) -> Result<Answer, Trouble> {
    reading::at_every_cut(stream, |events| {
        let mut decoder = Box::<Decoder>::default();
        for event in events {
            decoder.event(event)?;
        }
        decoder.finish()
    })
}

fn thinking(text: &str, signature: Option<&str>, redacted: bool) -> Part {
    Part::Thinking { text: text.into(), signature: signature.map(str::to_owned), redacted }
}

fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::Call { id: id.into(), name: name.into(), arguments: arguments.into(), signature: None }
}

fn result(id: &str, parts: Vec<Part>, is_error: bool) -> Turn {
    Turn::Result(ToolOutcome { call: id.into(), name: "read".into(), parts, is_error })
}

fn used(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
    Usage { input, output, cache_read, cache_write, total: input + output + cache_read + cache_write }
}

#[test]
fn recordings() {
    let row = |stream: &str, parts: &[Part], usage: Usage, stop: Stop| {
        assert_eq!(decode(stream), Ok(Answer { parts: parts.to_vec(), usage, stop, ..Answer::default() }));
    };
    row(recorded!("text.sse"), &[Part::text("Grüße, Welt 🦀")], used(25, 15, 0, 0), Stop::Done);
    let parts = [
        thinking("I should look.", Some("EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/=="), false),
        thinking("", Some("EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw"), true),
        Part::text("Let me look."),
        call("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "read", r#"{"path": "a.rs"}"#),
        call("toolu_02", "list", "{}"),
    ];
    row(recorded!("thinking_and_call.sse"), &parts, used(472, 89, 0, 0), Stop::ToolUse);
    let parts = [thinking("", Some("EosnCkYICxIMMb3L"), false), Part::text("7.")];
    row(recorded!("hidden_thinking.sse"), &parts, used(25, 34, 0, 0), Stop::Done);
    row(recorded!("cached.sse"), &[Part::text("Hi.")], used(4, 6, 1800, 248), Stop::Done);
    row(recorded!("length.sse"), &[call("toolu_03", "write", "{\"text\": \"on")], used(25, 64, 0, 0), Stop::Length);
    let refused = Stop::Refused("This request was declined. (cyber)".into());
    row(recorded!("refusal.sse"), &[], used(25, 1, 0, 0), refused);
    row(recorded!("unknown.sse"), &[Part::text("Found it.")], used(25, 9, 0, 0), Stop::Done);
}

#[test]
fn what_is_no_answer() {
    let kind = |stream: &str| decode(stream).expect_err(stream).kind;
    assert!(decode(recorded!("error.sse")).expect_err("an error").transient());
    assert_eq!(kind(recorded!("cut.sse")), TroubleKind::CutOff);
    assert_eq!(kind(""), TroubleKind::CutOff);
    assert_eq!(kind("event: message_start\ndata: {\"type\":\"mess\n\n"), TroubleKind::Garbled);
    let denied = "data: {\"error\":{\"type\":\"authentication_error\",\"message\":\"invalid x-api-key\"}}\n\n";
    assert_eq!(kind(denied), TroubleKind::Denied);
}

#[test]
fn bodies_in_one_piece() {
    let whole = |body: &str| {
        let mut decoder = Box::<Decoder>::default();
        decoder.whole(body)?;
        decoder.finish()
    };
    let parts =
        vec![thinking("Hm.", Some("Eq=="), false), Part::text("Hello!"), call("toolu_1", "read", r#"{"path":"a.rs"}"#)];
    let answer = Answer { parts, usage: used(12, 6, 0, 0), stop: Stop::ToolUse, ..Answer::default() };
    assert_eq!(whole(recorded!("whole.json")), Ok(answer));
    assert_eq!(whole(recorded!("error.json")).expect_err("an error").kind, TroubleKind::Refused);
    assert_eq!(whole("{}").expect_err("no answer").kind, TroubleKind::Garbled);
}

#[test]
fn deltas() {
    let mut decoder = Box::<Decoder>::default();
    let mut deltas = |data: Value| {
        let event = sse::Event { name: None, data: data.to_string() };
        decoder.event(&event).expect("an event")
    };
    let begin = |block: Value| json!({ "type": "content_block_start", "index": 0, "content_block": block });
    let more = |delta: Value| json!({ "type": "content_block_delta", "index": 0, "delta": delta });
    assert_eq!(deltas(begin(json!({ "type": "text", "text": "" }))), []);
    assert_eq!(deltas(more(json!({ "type": "text_delta", "text": "a" }))), [Delta::Text("a".into())]);
    assert_eq!(deltas(begin(json!({ "type": "tool_use", "id": "1", "name": "f", "input": {} }))), []);
    assert_eq!(deltas(more(json!({ "type": "input_json_delta", "partial_json": "{" }))), [Delta::Call("{".into())],);
    assert_eq!(deltas(json!({ "type": "ping" })), []);
}

fn request(turns: Vec<Turn>) -> Request {
    Request { model: dialects::model("claude-sonnet-4-5"), turns, ..Request::default() }
}

#[test]
fn a_conversation_with_everything() {
    let image = Part::Image { mime: "image/png".into(), data: "AAAA".into() };
    let mut request = request(vec![
        Turn::user("Look"),
        Turn::Assistant(vec![
            thinking("hm", Some("Sig"), false),
            thinking("", Some("Data"), true),
            thinking("nobody signed this", None, false),
            Part::text("I look."),
            call("call_1|fc_1", "read", r#"{"path":"a"}"#),
            call("call_2", "read", "broken"),
        ]),
        result("call_1|fc_1", vec![Part::text("a"), image], true),
        result("call_2", vec![], true),
        Turn::user("And?"),
    ]);
    request.system = Some("Be short.".into());
    request.tools = vec![json!({ "name": "read", "description": "Reads.", "inputSchema": { "properties": {} } })];
    request.tool_choice = ToolChoice::None;
    request.cache = Cache::Prefix("session".into());
    let ephemeral = json!({ "type": "ephemeral" });
    let image = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } });
    let body = json!({
        "model": "claude-sonnet-4-5",
        "max_tokens": 8192,
        "system": [{ "type": "text", "text": "Be short.", "cache_control": ephemeral }],
        "tools": [{
            "name": "read", "description": "Reads.", "input_schema": { "properties": {}, "type": "object" },
        }],
        "tool_choice": { "type": "none" },
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "Look", "cache_control": ephemeral }] },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": "Sig" },
                { "type": "redacted_thinking", "data": "Data" },
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": "call_1", "name": "read", "input": { "path": "a" } },
                { "type": "tool_use", "id": "call_2", "name": "read", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "call_1", "content": [{ "type": "text", "text": "a" }, image] },
                { "type": "tool_result", "tool_use_id": "call_2", "content": "(no output)", "is_error": true },
                { "type": "text", "text": "And?", "cache_control": ephemeral },
            ] },
        ],
        "stream": true,
    });
    let encoded = encode(&request, Delivery::Stream);
    assert_eq!(encoded, Encoded::new("/v1/messages", body));
}

#[test]
fn tools_stand_there_where_they_are_used() {
    let turns = vec![
        Turn::user("Go"),
        Turn::Assistant(vec![call("1", "read", "{}"), call("2", "mcp.list", "{}"), call("3", "read", "{}")]),
        Turn::user("Now sum up."),
    ];
    let mut request = Request { cache: Cache::Prefix("s".into()), ..request(turns) };
    let body = encode(&request, Delivery::Whole).body;
    let tools = json!([
        { "name": "read", "input_schema": { "type": "object" } },
        { "name": "mcp_list", "input_schema": { "type": "object" }, "cache_control": { "type": "ephemeral" } },
    ]);
    assert_eq!((&body["tools"], &body["tool_choice"]), (&tools, &json!({ "type": "none" })));
    request.turns = vec![Turn::user("Hi")];
    request.tool_choice = ToolChoice::None;
    let body = encode(&request, Delivery::Whole).body;
    assert_eq!((body.get("tools"), body.get("tool_choice"), body.get("stream")), (None, None, None));
}

#[test]
fn a_conversation_that_ends_with_an_answer() {
    let last = |model: &str, reasoning: Reasoning| {
        let turns = vec![Turn::user("Go"), Turn::Assistant(vec![Part::text("So far \n")])];
        let request = Request { model: dialects::model(model), reasoning, ..request(turns) };
        encode(&request, Delivery::Whole).body["messages"].as_array().and_then(|it| it.last().cloned())
    };
    let trimmed = json!({ "role": "assistant", "content": [{ "type": "text", "text": "So far" }] });
    let answered = json!({ "role": "user", "content": [{ "type": "text", "text": GO_ON }] });
    assert_eq!(last("claude-sonnet-4-5", Reasoning::Unsaid), Some(trimmed));
    assert_eq!(last("claude-sonnet-4-5", Reasoning::Effort(Effort::Low)), Some(answered.clone()));
    assert_eq!(last("claude-opus-4-6", Reasoning::Unsaid), Some(answered));
}

#[test]
fn what_each_model_is_told_about_thinking() {
    let told = |model: &str, reasoning: Reasoning, max_tokens: u64| {
        let request =
            Request { model: dialects::model(model), reasoning, max_tokens: Some(max_tokens), ..Request::default() };
        let body = encode(&request, Delivery::Whole).body;
        json!([body["max_tokens"], body.get("thinking"), body["output_config"].get("effort")])
    };
    let row = |model: &str, reasoning: Reasoning, expected: Value| {
        assert_eq!(told(model, reasoning, 4000), expected, "{model} {reasoning:?}");
    };
    let (off, high) = (Reasoning::Off, Reasoning::Effort(Effort::High));
    let enabled = |budget: u64| json!({ "type": "enabled", "budget_tokens": budget });
    let adaptive = json!({ "type": "adaptive" });
    row("claude-3-5-haiku-latest", high, json!([4000, null, null]));
    row("claude-sonnet-4-5", off, json!([4000, null, null]));
    row("claude-sonnet-4-5", Reasoning::Effort(Effort::Minimal), json!([5024, enabled(1024), null]));
    row("claude-sonnet-4-5", high, json!([20384, enabled(16384), null]));
    row("kimi-k2.5", high, json!([20384, enabled(16384), null]));
    row("claude-opus-4-6", off, json!([4000, null, null]));
    row("claude-opus-4-6", high, json!([20384, adaptive, "high"]));
    row("claude-opus-4-8", Reasoning::Effort(Effort::Highest), json!([28576, adaptive, "max"]));
    row("claude-opus-5", off, json!([4000, { "type": "disabled" }, null]));
    row("claude-haiku-5-5", off, json!([4000, { "type": "disabled" }, null]));
    row("claude-sonnet-5-5", off, json!([4000, { "type": "between_tools" }, null]));
    row("claude-opus-5-5", off, json!([8096, null, "low"]));
    row("claude-fable-5", off, json!([8096, null, "low"]));
    row("claude-fable-5", Reasoning::Unsaid, json!([4000, null, null]));
    // A limit that leaves no room is not raised beyond what the model has.
    assert_eq!(told("claude-opus-4-1", high, 32_000), json!([32_000, enabled(16_384), null]));
    assert_eq!(told("claude-opus-4-1", high, 40_000), json!([40_000, enabled(16_384), null]));
}

#[test]
fn thinking_that_is_bound_to_what_came_before_stays_away() {
    let turns = vec![
        Turn::user("Go"),
        Turn::Assistant(vec![thinking("hm", Some("Sig"), false), call("1", "f", "{}")]),
        result("1", vec![Part::text("x")], false),
    ];
    let encoded = |model: &str, reasoning: Reasoning, has_bound_thinking: bool, turns: &[Turn]| {
        let model = dialects::model(model);
        encode(&Request { model, reasoning, has_bound_thinking, ..request(turns.to_vec()) }, Delivery::Whole)
    };
    let body = |model: &str, reasoning: Reasoning, turns: &[Turn]| encoded(model, reasoning, false, turns).body;
    let first = |model: &str| body(model, Reasoning::Unsaid, &turns)["messages"][1]["content"][0]["type"].clone();
    assert_eq!(first("claude-opus-5"), "thinking");
    for bound in ["claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-1", "claude-opus-6"] {
        assert_eq!(first(bound), "tool_use");
    }
    // Where it is bound to the bytes of this request, it goes back, with the wish to drop it rather than refuse it.
    let adaptive = json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    for (model, reasoning, goes) in [
        ("claude-opus-5-5", Reasoning::Effort(Effort::High), true),
        ("claude-haiku-5-5", Reasoning::Effort(Effort::Low), true),
        // It thinks unasked.
        ("claude-opus-5-5", Reasoning::Off, true),
        ("claude-fable-5-1", Reasoning::Unsaid, true),
        ("claude-haiku-5-5", Reasoning::Off, false),
        ("claude-sonnet-5-5", Reasoning::Unsaid, false),
    ] {
        let Encoded { body: sent, headers, .. } = encoded(model, reasoning, true, &turns);
        let kind = &sent["messages"][1]["content"][0]["type"];
        assert_eq!(kind, if goes { "thinking" } else { "tool_use" }, "{model} {reasoning:?}");
        assert_eq!(sent["thinking"] == adaptive, goes, "{model} {reasoning:?}: {}", sent["thinking"]);
        assert_eq!(headers == [("anthropic-beta", BINDING_CONTROLS.to_owned())], goes, "{model} {reasoning:?}");
    }
    let between = encoded("claude-sonnet-5-5", Reasoning::Off, true, &turns).body;
    // This form has no place for the wish.
    assert_eq!(between["thinking"], json!({"type": "between_tools"}));
    assert_eq!(between["messages"][1]["content"][0]["type"], "tool_use");
    // A request without thinking says nothing of it.
    let Encoded { body: sent, headers, .. } = encoded("claude-opus-5-5", Reasoning::Off, true, &[Turn::user("Go")]);
    assert_eq!((sent.get("thinking"), headers), (None, Vec::new()));
    let other = encoded("claude-opus-5", Reasoning::Effort(Effort::High), true, &turns);
    assert!(other.headers.is_empty() && other.body["thinking"].get("block_binding").is_none());
    // Where thinking has a budget, a call that lost its thinking rules it out.
    let budget = Reasoning::Effort(Effort::Low);
    assert_eq!(body("claude-sonnet-4-5", budget, &turns)["thinking"]["type"], "enabled");
    let mut lost = turns.clone();
    lost[1] = Turn::Assistant(vec![call("1", "f", "{}")]);
    assert_eq!(body("claude-sonnet-4-5", budget, &lost).get("thinking"), None);
    assert_eq!(body("claude-sonnet-4-5", budget, &lost)["max_tokens"], 8192);
}

#[test]
fn what_a_provider_signed_comes_back_as_it_was() {
    let target = Target { api: Api::Anthropic, provider: "anthropic", model: "claude-opus-4-8" };
    let answer = decode(recorded!("thinking_and_call.sse")).expect("an answer");
    let message = answer.message("anthropic-messages", target.provider, target.model, 0).to_string();
    let user = json!({ "role": "user", "content": "Go" }).to_string();
    let turns = turns([Cow::Owned(user), Cow::Owned(message)], &target);
    let request = Request { model: dialects::model(target.model), turns, ..Request::default() };
    let content = encode(&request, Delivery::Whole).body["messages"][1]["content"].clone();
    let signature = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+/==";
    let data = "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIw";
    assert_eq!(content[0], json!({ "type": "thinking", "thinking": "I should look.", "signature": signature }));
    assert_eq!(content[1], json!({ "type": "redacted_thinking", "data": data }));
    assert_eq!(content[3]["id"], "toolu_01T1x1fJ34qAmk2tNTrN7Up6");
}

/// Every rule of the format that a conversation can break.
fn check(body: &Value) {
    let messages = body["messages"].as_array().expect("messages");
    assert_eq!(messages[0]["role"], "user");
    let mut ids = HashSet::new();
    let mut marks = 0;
    let mut open: Vec<&str> = Vec::new();
    for pair in messages.windows(2) {
        assert_ne!(pair[0]["role"], pair[1]["role"]);
    }
    for message in messages {
        let blocks = message["content"].as_array().expect("blocks");
        assert!(!blocks.is_empty());
        let results = blocks.iter().take_while(|block| block["type"] == "tool_result").count();
        for (at, block) in blocks.iter().enumerate() {
            marks += usize::from(block.get("cache_control").is_some());
            let id = |name: &str| block[name].as_str().expect("an id");
            match block["type"].as_str().expect("a type") {
                "text" => assert!(!block["text"].as_str().expect("a text").trim().is_empty()),
                "tool_use" => {
                    assert!((1..=64).contains(&id("id").len()));
                    assert!(id("id").chars().all(|it| it.is_ascii_alphanumeric() || it == '_' || it == '-'));
                    assert!(ids.insert(id("id")), "twice: {}", id("id"));
                    assert!(block["input"].is_object() && body["tools"].is_array());
                    open.push(id("id"));
                }
                "tool_result" => {
                    assert!(at < results, "a result behind other content");
                    let place = open.iter().position(|it| *it == id("tool_use_id")).expect("its call");
                    open.remove(place);
                }
                "thinking" => assert!(block["signature"].is_string() && at + 1 < blocks.len()),
                "redacted_thinking" => assert!(block["data"].is_string() && at + 1 < blocks.len()),
                "image" => assert_eq!(block["source"]["type"], "base64"),
                other => panic!("{other}"),
            }
        }
        assert!(message["role"] == "assistant" || open.is_empty(), "without a result: {open:?}");
    }
    assert!(marks <= 4 && open.is_empty());
}

proptest! {
    #[test]
    fn whatever_was_said_is_valid(turns in steps::tests::any_conversation(), at in 0..4usize, system: bool) {
        let model = ["claude-sonnet-4-5", "claude-opus-4-8", "claude-opus-5-5", "MiniMax-M2"][at];
        let request = Request {
            model: dialects::model(model),
            system: system.then(|| "s".into()),
            reasoning: Reasoning::Effort(Effort::Low),
            cache: Cache::Prefix("s".into()),
            ..request(turns)
        };
        check(&encode(&request, Delivery::Stream).body);
    }
}
