//! Requests and answers of OpenAI's Chat Completions, from recordings and as rows.

use super::{answer::tokens, *};
use crate::{
    conversation::message::Usage,
    models::dialects,
    provider::{Answer, Delta, Effort, Part, Stop, ToolOutcome, Trouble, TroubleKind, Turn, reading, sse},
};
use proptest::prelude::*;

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../../../tests/recordings/openai_chat/", $name))
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

fn thinking(text: &str) -> Part {
    Part::Thinking { text: text.into(), signature: None, redacted: false }
}

fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::Call { id: id.into(), name: name.into(), arguments: arguments.into(), signature: None }
}

fn used(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Usage {
    Usage { input, output, cache_read, cache_write, total: input + output + cache_read + cache_write }
}

#[test]
fn recordings() {
    let row = |stream: &str, parts: &[Part], usage: Usage, stop: Stop| {
        assert_eq!(decode(stream), Ok(Answer { parts: parts.to_vec(), usage, stop, ..Answer::default() }));
    };
    row(recorded!("text.sse"), &[Part::text("Grüße, Welt 🦀")], used(86, 300, 1920, 0), Stop::Done);
    let calls = [call("call_aaa", "read", r#"{"path":"a.rs"}"#), call("call_bbb", "read", r#"{"path":"b.rs"}"#)];
    row(recorded!("parallel_calls.sse"), &calls, used(82, 40, 0, 0), Stop::ToolUse);
    let parts = [thinking("9.11 is smaller."), Part::text("9.8")];
    row(recorded!("deepseek.sse"), &parts, used(17, 13, 0, 0), Stop::Done);
    let parts = [thinking("The user greets."), Part::text("Hello!")];
    row(recorded!("openrouter.sse"), &parts, used(50, 42, 1000, 150), Stop::Done);
    let parts = [
        thinking("I should look."),
        call("call_ejieksiz", "read", r#"{"path":"a.rs"}"#),
        call("call_zz12ab34", "read", r#"{"path":"b.rs"}"#),
    ];
    row(recorded!("ollama.sse"), &parts, used(169, 15, 0, 0), Stop::ToolUse);
    let parts = [thinking("Let me see."), Part::text("It is 7.")];
    row(recorded!("llama_cpp.sse"), &parts, used(10, 29, 7, 0), Stop::Done);
    row(recorded!("groq.sse"), &[Part::text("Hi.")], used(20, 4, 0, 0), Stop::Done);
    row(recorded!("moonshot.sse"), &[Part::text("Hi.")], used(11, 13, 8, 0), Stop::Done);
    let parts = [thinking("Hm."), Part::text("Let me look."), call("D681PevKs", "read", r#"{"path": "a.rs"}"#)];
    row(recorded!("mistral.sse"), &parts, used(94, 30, 0, 0), Stop::ToolUse);
    let parts = [call("call_1", "read", r#"{"path":"a.rs"}"#), call("call_2", "list", r#"{"path":"."}"#)];
    row(recorded!("no_index.sse"), &parts, used(12, 5, 0, 0), Stop::ToolUse);
    let refused = Stop::Refused("content_filter".into());
    row(recorded!("content_filter.sse"), &[Part::text("I")], used(0, 0, 0, 0), refused);
    let refused = Stop::Refused("I can't help with that.".into());
    row(recorded!("refusal.sse"), &[], used(0, 0, 0, 0), refused);
    row(recorded!("broken_call.sse"), &[call("call_x", "write", "{\"text\":\"on")], used(0, 0, 0, 0), Stop::Length);
}

#[test]
fn what_is_no_answer() {
    let trouble = |stream: &str| decode(stream).expect_err(stream);
    assert!(trouble(recorded!("error.sse")).transient());
    assert_eq!(trouble(recorded!("cut.sse")).kind, TroubleKind::CutOff);
    assert_eq!(trouble("").kind, TroubleKind::CutOff);
    assert_eq!(trouble("data: [DONE]\n\n").kind, TroubleKind::CutOff);
    let broken = trouble(recorded!("openrouter_error.sse"));
    assert_eq!((broken.kind, broken.status), (TroubleKind::Broken, Some(502)));
    let refused = trouble(recorded!("groq_error.sse"));
    assert_eq!((refused.kind, refused.status), (TroubleKind::Refused, Some(400)));
    assert!(refused.to_string().contains("Failed to call a function"));
    assert_eq!(trouble("data: {\"choices\":[{\"del\n\n").kind, TroubleKind::Garbled);
    assert_eq!(trouble("data: {\"error\":\"model runner has unexpectedly stopped\"}\n\n").kind, TroubleKind::Refused);
    assert_eq!(trouble("data: {\"object\":\"error\",\"message\":\"x\",\"code\":503}\n\n").status, Some(503));
    let resources = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"insufficient_system_resource\"}]}\n\n";
    assert_eq!(trouble(resources).kind, TroubleKind::Broken);
}

#[test]
fn an_end_is_a_reason_or_the_last_event() {
    let chunk = |finish: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"x\"}}{finish}}}]}}\n\n");
    let stop = |stream: &str| decode(stream).map(|answer| answer.stop);
    assert_eq!(stop(&chunk(",\"finish_reason\":\"stop\"")), Ok(Stop::Done));
    assert_eq!(stop(&(chunk("") + "data: [DONE]\n\n")), Ok(Stop::Done));
    assert_eq!(stop(&chunk(",\"finish_reason\":\"model_length\"")), Ok(Stop::Length));
    assert_eq!(stop(&chunk(",\"finish_reason\":\"tool_calls\"")), Ok(Stop::Done));
    assert_eq!(stop(&chunk(",\"finish_reason\":\"tomorrow\"")), Ok(Stop::Done));
}

#[test]
fn bodies_in_one_piece() {
    let whole = |body: &str| {
        let mut decoder = Box::<Decoder>::default();
        decoder.whole(body)?;
        decoder.finish()
    };
    let answer =
        Answer { parts: vec![Part::text("Hello!")], usage: used(19, 10, 0, 0), stop: Stop::Done, ..Answer::default() };
    assert_eq!(whole(recorded!("whole.json")), Ok(answer));
    let throttled = whole(recorded!("error.json")).expect_err("an error");
    assert_eq!((throttled.kind, throttled.status), (TroubleKind::Throttled, Some(429)));
    let kind = |body: &str| whole(body).expect_err(body).kind;
    assert_eq!(kind("<html>"), TroubleKind::Garbled);
    assert_eq!(kind("{}"), TroubleKind::Garbled);
    assert_eq!(kind("[{\"error\":{\"code\":401,\"message\":\"no\"}}]"), TroubleKind::Denied);
    assert_eq!(kind("{\"detail\":\"Internal Server Error\"}"), TroubleKind::Broken);
}

#[test]
fn deltas() {
    let mut decoder = Box::<Decoder>::default();
    let mut deltas = |delta: Value| {
        let data = json!({ "choices": [{ "delta": delta }] }).to_string();
        decoder.event(&sse::Event { name: None, data }).expect("a chunk")
    };
    assert_eq!(deltas(json!({ "role": "assistant", "content": "" })), []);
    assert_eq!(
        deltas(json!({ "reasoning": "a", "reasoning_content": "a", "content": "b" })),
        [Delta::Thinking("a".into()), Delta::Text("b".into())],
    );
    let call = json!({ "tool_calls": [{ "index": 0, "function": { "name": "f", "arguments": "{" } }] });
    assert_eq!(deltas(call), [Delta::Call("{".into())]);
}

fn counted(usage: Value) -> Usage {
    tokens(&usage)
}

#[test]
fn counts() {
    assert_eq!(
        counted(json!({ "prompt_tokens": 10, "cached_tokens": "4", "completion_tokens": -1 })),
        used(6, 0, 4, 0)
    );
    // A proxy that counts the cache beside the prompt.
    let beside = json!({ "prompt_tokens": 3, "prompt_tokens_details": { "cached_tokens": 100 } });
    assert_eq!(counted(beside), used(3, 0, 100, 0));
    let xai = json!({
        "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 22,
        "completion_tokens_details": { "reasoning_tokens": 7 },
    });
    assert_eq!(counted(xai), used(10, 12, 0, 0));
}

fn request(turns: Vec<Turn>) -> Request {
    Request { model: dialects::model("llama3"), turns, ..Request::default() }
}

fn result(id: &str, parts: Vec<Part>) -> Turn {
    Turn::Result(ToolOutcome { call: id.into(), name: "read".into(), parts, is_error: false })
}

#[test]
fn a_plain_server_gets_a_plain_body() {
    let mut request = request(vec![Turn::user("Hi"), Turn::user("there")]);
    request.system = Some("Be short.".into());
    request.max_tokens = Some(100);
    request.reasoning = Reasoning::Effort(Effort::High);
    request.cache = Cache::Prefix("session".into());
    let encoded = encode(&request, Delivery::Stream);
    assert_eq!(encoded.path, "/chat/completions");
    let body = json!({
        "model": "llama3",
        "messages": [{ "role": "system", "content": "Be short." }, { "role": "user", "content": "Hi\n\nthere" }],
        "max_tokens": 100,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    assert_eq!(encoded.body, body);
    assert_eq!(encode(&request, Delivery::Whole).body.get("stream"), None);
}

#[test]
fn calls_results_and_images() {
    let image = Part::Image { mime: "image/png".into(), data: "AAAA".into() };
    let mut request = request(vec![
        Turn::user("Look"),
        Turn::Assistant(vec![
            thinking("hm"),
            call("call_1|fc_1", "read", r#"{"path":"a"}"#),
            call("call_2", "read", "broken"),
        ]),
        result("call_2", vec![]),
        result("call_1|fc_1", vec![Part::text("a"), image.clone()]),
        Turn::User(vec![Part::text("And?")]),
    ]);
    request.tools = vec![json!({ "name": "read", "description": "Reads.", "inputSchema": { "type": "object" } })];
    request.tool_choice = ToolChoice::None;
    let body = encode(&request, Delivery::Whole).body;
    let function = |arguments: &str| json!({ "name": "read", "arguments": arguments });
    let messages = json!([
        { "role": "user", "content": "Look" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "call_1", "type": "function", "function": function(r#"{"path":"a"}"#) },
            { "id": "call_2", "type": "function", "function": function("{}") },
        ] },
        { "role": "tool", "tool_call_id": "call_2", "content": "(no output)" },
        { "role": "tool", "tool_call_id": "call_1", "content": "a" },
        { "role": "user", "content": [
            { "type": "text", "text": IMAGES },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
            { "type": "text", "text": "And?" },
        ] },
    ]);
    assert_eq!(body["messages"], messages);
    assert_eq!(body["tool_choice"], "none");
    let parameters = json!({ "type": "object" });
    let function = json!({ "name": "read", "description": "Reads.", "parameters": parameters });
    assert_eq!(body["tools"], json!([{ "type": "function", "function": function }]));

    request.turns.pop();
    let last = encode(&request, Delivery::Whole).body["messages"][4].clone();
    assert_eq!((&last["role"], last["content"].as_array().map(Vec::len)), (&json!("user"), Some(2)));
}

#[test]
fn ids_for_mistral_and_thinking_for_deepseek() {
    let turns = vec![
        Turn::user("Go"),
        Turn::Assistant(vec![thinking("hm"), call("call_longer_than_nine", "f", "{}")]),
        result("call_longer_than_nine", vec![Part::text("x")]),
    ];
    let body = |model: &str| {
        encode(&Request { model: dialects::model(model), ..request(turns.clone()) }, Delivery::Whole).body
    };
    let mistral = body("mistralai/devstral-small");
    let id = mistral["messages"][1]["tool_calls"][0]["id"].as_str().expect("an id");
    assert!(id.len() == 9 && id.chars().all(|it| it.is_ascii_alphanumeric()), "{id}");
    assert_eq!(mistral["messages"][2]["tool_call_id"], id);
    assert_eq!(mistral["messages"][1].get("reasoning_content"), None);
    assert_eq!(body("deepseek-v4-pro")["messages"][1]["reasoning_content"], "hm");
    assert_eq!(body("moonshotai/Kimi-K2.5")["messages"][1]["reasoning_content"], "hm");
}

#[test]
fn limits_and_caches_are_openais_own() {
    let body = |model: &str| {
        let request = Request {
            model: dialects::model(model),
            max_tokens: Some(1000),
            reasoning: Reasoning::Effort(Effort::Low),
            cache: Cache::Prefix("s".repeat(70)),
            ..request(vec![Turn::user("x")])
        };
        encode(&request, Delivery::Whole).body
    };
    let row = |model: &str, new: Option<u64>, old: Option<u64>, key: bool| {
        let body = body(model);
        let found = (body["max_completion_tokens"].as_u64(), body["max_tokens"].as_u64());
        assert_eq!(found, (new, old), "{model}");
        assert_eq!(body["prompt_cache_key"].as_str().map(str::len), key.then_some(64), "{model}");
    };
    row("gpt-5.2", Some(1000 + 4096), None, true);
    row("o3", Some(1000 + 4096), None, true);
    row("gpt-5-chat-latest", Some(1000), None, true);
    row("gpt-4o-mini", None, Some(1000), true);
    row("chatgpt-4o-latest", None, Some(1000), true);
    row("gpt-oss:20b", None, Some(1000), false);
    row("olmo-3", None, Some(1000), false);
}

/// Every rule of the format that a conversation can break.
fn check(messages: &[Value]) {
    let mut ids = std::collections::HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut before = "";
    for message in messages {
        let role = message["role"].as_str().expect("a role");
        let content = &message["content"];
        assert!(role == "tool" || open.is_empty(), "without a result: {open:?}");
        match role {
            "user" => assert!(before != "user" && !content.is_null()),
            "assistant" => {
                assert!(before == "user" || before == "tool", "{before}");
                let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
                assert!(content.is_string() || !calls.is_empty());
                for call in calls {
                    let id = call["id"].as_str().expect("an id");
                    assert!(ids.insert(id), "twice: {id}");
                    open.push(id);
                }
            }
            "tool" => {
                let id = message["tool_call_id"].as_str();
                let place = open.iter().position(|it| Some(*it) == id).expect("its call");
                open.remove(place);
                assert!(!content.as_str().expect("a text").is_empty());
            }
            other => panic!("{other}"),
        }
        before = role;
    }
    assert!(open.is_empty());
    assert_eq!(messages[0]["role"], "user");
}

proptest! {
    #[test]
    fn whatever_was_said_is_valid(turns in steps::tests::any_conversation(), at in 0..3usize) {
        let model = ["llama3", "deepseek-v4-pro", "devstral"][at];
        let body = encode(&Request { model: dialects::model(model), ..request(turns) }, Delivery::Stream).body;
        check(body["messages"].as_array().expect("messages"));
    }
}
