//! Requests and answers of OpenAI's Responses, from recordings and as rows.

use super::*;
use crate::{
    conversation::message::Usage,
    models::dialects,
    provider::{Answer, Delta, Effort, Part, Stop, ToolOutcome, Trouble, TroubleKind, sse},
};
use std::path::Path;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/openai_responses")
}

fn events(decoder: &mut Decoder, pieces: &[&[u8]]) -> Result<Vec<Delta>, Trouble> {
    let mut parser = sse::Parser::default();
    let mut deltas = Vec::new();
    for piece in pieces {
        for event in parser.push(piece).expect("small") {
            deltas.extend(decoder.event(&event)?);
        }
    }
    Ok(deltas)
}

fn decode(pieces: &[&[u8]]) -> Result<(Vec<Delta>, Answer), Trouble> {
    let mut decoder = Box::<Decoder>::default();
    let deltas = events(&mut decoder, pieces)?;
    Ok((deltas, decoder.finish()?))
}

fn answer_of(recording: &str) -> Answer {
    decode(&[recording.as_bytes()]).expect("an answer").1
}

fn body(request: &Request) -> Value {
    encode(request, Delivery::Stream).body
}

fn input_of(turns: Vec<Turn>) -> Value {
    body(&Request { model: dialects::model("gpt-5.2"), turns, ..Request::default() })["input"].clone()
}

/// The items of an answer alone.
fn answered(parts: Vec<Part>) -> Value {
    let items = input_of(vec![Turn::user("Go"), Turn::Assistant(parts)]);
    let own = |item: &&Value| item["role"] != "user" && item["type"] != "function_call_output";
    items.as_array().expect("items").iter().filter(own).cloned().collect()
}

fn thought(signature: Option<&str>) -> Part {
    Part::Thinking { text: "hm".into(), signature: signature.map(Into::into), redacted: false }
}

fn called(id: &str, arguments: &str) -> Part {
    Part::Call { id: id.into(), name: "read".into(), arguments: arguments.into(), signature: None }
}

fn signed(text: &str, signature: &str) -> Part {
    Part::Text { text: text.into(), signature: Some(signature.into()) }
}

fn image() -> Part {
    Part::Image { mime: "image/png".into(), data: "AAAA".into() }
}

fn outcome(call: &str, parts: Vec<Part>) -> Turn {
    Turn::Result(ToolOutcome { call: call.into(), name: String::new(), parts, is_error: false })
}

const TEXT: &str = include_str!("../../../tests/recordings/openai_responses/text.sse");
const REASONING: &str = include_str!("../../../tests/recordings/openai_responses/reasoning_and_calls.sse");
const INCOMPLETE: &str = include_str!("../../../tests/recordings/openai_responses/incomplete.sse");
const FILTERED: &str = include_str!("../../../tests/recordings/openai_responses/filtered.sse");
const FAILED: &str = include_str!("../../../tests/recordings/openai_responses/failed.sse");
const ERROR: &str = include_str!("../../../tests/recordings/openai_responses/error.sse");
const REFUSAL: &str = include_str!("../../../tests/recordings/openai_responses/refusal.sse");
const CUT: &str = include_str!("../../../tests/recordings/openai_responses/cut.sse");
const SPARSE: &str = include_str!("../../../tests/recordings/openai_responses/sparse.sse");
const LATE_KEY: &str = include_str!("../../../tests/recordings/openai_responses/late_key.sse");
const WHOLE: &str = include_str!("../../../tests/recordings/openai_responses/whole.json");

#[test]
fn a_whole_request() {
    let request = Request {
        model: dialects::model("gpt-5.2"),
        system: Some("Be brief.".into()),
        history: Vec::new(),
        turns: vec![Turn::User(vec![Part::text("What is this?"), image(), Part::text("")])],
        tools: vec![json!({ "name": "read", "description": "Reads.", "inputSchema": { "type": "object" } })],
        tool_choice: ToolChoice::None,
        max_tokens: Some(3),
        ceiling: None,
        reasoning: Reasoning::Effort(Effort::Highest),
        cache: Cache::Prefix("s".repeat(80)),
        has_bound_thinking: false,
        compaction: None,
        question: None,
    };
    let expected = json!({
        "model": "gpt-5.2",
        "input": [{ "type": "message", "role": "user", "content": [
            { "type": "input_text", "text": "What is this?" },
            { "type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto" },
        ] }],
        "store": false,
        "stream": true,
        "instructions": "Be brief.",
        "tools": [{
            "type": "function", "name": "read", "description": "Reads.",
            "parameters": { "type": "object", "properties": {} }, "strict": false,
        }],
        "tool_choice": "none",
        "max_output_tokens": 16,
        "reasoning": { "effort": "xhigh", "summary": "auto" },
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "s".repeat(64),
    });
    let encoded = encode(&request, Delivery::Stream);
    assert_eq!(encoded, Encoded::new("/responses", expected));
    assert_eq!(encode(&request, Delivery::Whole).body.get("stream"), None);
}

#[test]
fn a_plain_request_says_nothing_more() {
    let request = Request { model: dialects::model("llama"), turns: vec![Turn::user("Hi")], ..Request::default() };
    let expected = json!({
        "model": "llama",
        "input": [{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Hi" }] }],
        "store": false,
        "stream": true,
    });
    assert_eq!(body(&request), expected);
}

#[test]
fn encrypted_reasoning_is_only_asked_of_models_that_think() {
    let asked = |model: &str, reasoning| {
        let request = Request { model: dialects::model(model), reasoning, ..Request::default() };
        body(&request)["include"].is_array()
    };
    assert!(asked("gpt-5", Reasoning::Unsaid));
    assert!(asked("grok-4", Reasoning::Effort(Effort::Low)));
    assert!(!asked("grok-4", Reasoning::Unsaid));
    assert!(!asked("gpt-4.1", Reasoning::Effort(Effort::Low)));
}

#[test]
fn reasoning_goes_back_as_it_came_and_only_before_what_it_led_to() {
    let key = r#"{"id":"rs_1","type":"reasoning","encrypted_content":"e","summary":[],"x":1}"#;
    let item: Value = serde_json::from_str(key).expect("JSON");
    let said = |more: Value| {
        let mut item = json!({
            "type": "message", "role": "assistant",
            "content": [{ "type": "output_text", "text": "So", "annotations": [] }],
        });
        item.as_object_mut().expect("object").extend(more.as_object().expect("object").clone());
        item
    };
    let made = |id: Option<&str>| {
        let mut item = json!({ "type": "function_call", "call_id": "c", "name": "read", "arguments": "{}" });
        if let Some(id) = id {
            item["id"] = id.into();
        }
        item
    };
    let v1 = r#"{"v":1,"id":"msg_1","phase":"commentary"}"#;
    let with_id = json!({ "id": "msg_1", "status": "completed", "phase": "commentary" });
    let rows = [
        (
            vec![thought(Some(key)), signed("So", v1), called("c|fc_1", "{}")],
            json!([item, said(with_id), made(Some("fc_1"))]),
        ),
        // An older signature, and an id of another kind.
        (
            vec![thought(Some(key)), signed("So", "msg_1"), called("c|x", "{}")],
            json!([item, said(json!({ "id": "msg_1", "status": "completed" })), made(None)]),
        ),
        // Reasoning without an answer and empty items are left out.
        (vec![thought(Some(key))], json!([])),
        (vec![thought(Some(key)), Part::text("")], json!([])),
        (vec![called("c|fc_1", "{}"), thought(Some(key))], json!([made(None)])),
        // Without its reasoning nothing has a name.
        (
            vec![thought(None), signed("So", v1), called("c|fc_1", "{}")],
            json!([said(json!({ "phase": "commentary" })), made(None)]),
        ),
        (
            vec![thought(Some(key)), Part::text("So"), thought(None), called("c|fc_1", "{}")],
            json!([item, said(json!({})), made(None)]),
        ),
        // Reasoning of which the server knows nothing.
        (
            vec![thought(Some(r#"{"id":"rs_1","type":"reasoning","summary":[]}"#)), called("c|fc_1", "{}")],
            json!([made(None)]),
        ),
        (vec![thought(Some("EqQB")), Part::text("So")], json!([said(json!({}))])),
    ];
    for (parts, expected) in rows {
        assert_eq!(answered(parts.clone()), expected, "{parts:?}");
    }
}

#[test]
fn nasty_conversations() {
    let turns = vec![
        Turn::Assistant(vec![Part::text("")]),
        Turn::Assistant(vec![called("a|fc_1", "{\"path\":"), called("functions.read:1", "{\"n\":1}")]),
        outcome("functions.read:1", vec![Part::text("two"), Part::text("")]),
        outcome("a|fc_1", vec![image(), Part::text("one")]),
        outcome("a|fc_1", vec![]),
        Turn::Assistant(vec![called("a|fc_1", "{}")]),
        outcome("a|fc_1", vec![]),
        Turn::User(vec![Part::text("")]),
        Turn::user("Go on"),
    ];
    let expected = json!([
        { "type": "message", "role": "user", "content": [
            { "type": "input_text", "text": "(The conversation goes on.)" },
        ] },
        { "type": "function_call", "call_id": "a", "name": "read", "arguments": "{}" },
        { "type": "function_call", "call_id": "functions_read_1", "name": "read", "arguments": "{\"n\":1}" },
        { "type": "function_call_output", "call_id": "functions_read_1", "output": "two" },
        { "type": "function_call_output", "call_id": "a", "output": [
            { "type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto" },
            { "type": "input_text", "text": "one" },
        ] },
        { "type": "function_call", "call_id": "a_2", "name": "read", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "a_2", "output": "(no output)" },
        { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Go on" }] },
    ]);
    assert_eq!(input_of(turns), expected);
}

#[test]
fn a_text_and_what_it_cost() {
    let (deltas, answer) = decode(&[TEXT.as_bytes()]).expect("an answer");
    let texts = ["Grüße", "! The tests ", "pass. 🦀"];
    assert_eq!(deltas, texts.map(|text| Delta::Text(text.into())));
    let usage = Usage { input: 176, output: 9, cache_read: 1024, cache_write: 0, total: 1209 };
    let parts = vec![signed(&texts.concat(), r#"{"v":1,"id":"msg_01a"}"#)];
    assert_eq!(answer, Answer { parts, usage, stop: Stop::Done, ..Answer::default() });
}

#[test]
fn reasoning_and_parallel_calls() {
    let (deltas, answer) = decode(&[REASONING.as_bytes()]).expect("an answer");
    let summary = "**Reading first**\n\nThe file is unknown.\n\nTwo reads can go together.";
    let told = |pick: fn(&Delta) -> Option<&str>| deltas.iter().filter_map(pick).collect::<String>();
    assert_eq!(told(|it| if let Delta::Thinking(text) = it { Some(text) } else { None }), summary);
    assert_eq!(told(|it| if let Delta::Text(text) = it { Some(text) } else { None }), "I'll read both.");
    let Part::Thinking { text, signature: Some(signature), .. } = &answer.parts[0] else { panic!("{answer:?}") };
    assert_eq!(text, summary);
    assert!(REASONING.contains(&format!("\"item\":{signature}}}")), "not byte for byte: {signature}");
    let rest = [
        signed("I'll read both.", r#"{"v":1,"id":"msg_02b","phase":"commentary"}"#),
        called("call_A1|fc_02c", r#"{"path":"src/a.rs"}"#),
        called("call_A2|fc_02d", r#"{"path":"src/ä.rs"}"#),
    ];
    assert_eq!(answer.parts[1..], rest);
    assert_eq!(answer.stop, Stop::ToolUse);
    assert_eq!((answer.usage.input, answer.usage.cache_read, answer.usage.output), (512, 1536, 310));
}

/// A decoded answer that is encoded again equals the server's answer, value by value.
#[test]
fn what_goes_back_is_what_came() {
    for recording in [REASONING, SPARSE, LATE_KEY] {
        let answer = answer_of(recording);
        let last = recording.lines().rev().find_map(|line| line.strip_prefix("data: {")).expect("an event");
        let last: Value = serde_json::from_str(&format!("{{{last}")).expect("JSON");
        let again = answered(answer.parts);
        let output = last["response"]["output"].as_array().expect("items");
        assert_eq!(again.as_array().map(Vec::len), Some(output.len()));
        for (ours, theirs) in again.as_array().expect("items").iter().zip(output) {
            if ours["type"] == "reasoning" {
                assert_eq!(ours, theirs);
            } else {
                for key in ["id", "call_id", "arguments", "name", "phase"] {
                    assert_eq!(ours[key], theirs[key], "{key}");
                }
            }
        }
    }
}

#[test]
fn ends_that_are_none() {
    let stop = |recording| answer_of(recording).stop;
    assert_eq!(stop(INCOMPLETE), Stop::Length);
    assert_eq!(answer_of(INCOMPLETE).text(), "The first half");
    assert_eq!(stop(FILTERED), Stop::Refused("content_filter".into()));
    assert_eq!(stop(REFUSAL), Stop::Refused("I can't help with that.".into()));
    let trouble = |recording: &str| decode(&[recording.as_bytes()]).expect_err("trouble");
    assert_eq!(trouble(CUT).kind, TroubleKind::CutOff);
    assert_eq!(trouble("").kind, TroubleKind::CutOff);
    let failed = trouble(FAILED);
    assert_eq!(failed.kind, TroubleKind::Broken);
    assert!(!failed.said.contains("instructions"), "{}", failed.said);
    assert!(trouble(ERROR).said.contains("exceeds the context window"));
    assert_eq!(trouble("data: <html>\n\n").kind, TroubleKind::Garbled);
    assert!(trouble("data: {\"error\":{\"message\":\"server_error\"}}\n\n").transient());
}

#[test]
fn servers_that_say_little() {
    let answer = answer_of(SPARSE);
    assert!(matches!(&answer.parts[0], Part::Thinking { text, signature: Some(_), .. } if text == "A look is due."));
    assert_eq!(answer.parts[1], signed("Let me look.", r#"{"v":1,"id":"msg_new"}"#));
    assert_eq!(answer.parts[2], called("call_7|fc_7", "{}"));
    assert_eq!(answer.usage, Usage { input: 40, output: 12, total: 52, ..Usage::default() });

    // Only the last event; texts that end without the others; a call that nobody ended.
    let last = SPARSE.lines().filter(|line| line.contains("completed")).collect::<String>();
    assert_eq!(answer_of(&format!("{last}\n\n")).parts, answer.parts);
    let event = |json: Value| format!("data: {json}\n\n");
    let completed = event(json!({ "type": "response.completed", "response": { "output": [] } }));
    let text = event(json!({ "type": "response.output_text.delta", "delta": "Hi" }));
    assert_eq!(answer_of(&(text + &completed)).parts, [Part::text("Hi")]);
    let added = event(json!({ "type": "response.output_item.added", "output_index": 0, "item":
        { "type": "function_call", "id": "fc_1", "call_id": "c", "name": "read", "arguments": "" } }));
    let grown = |delta: &str| {
        event(json!({ "type": "response.function_call_arguments.delta", "output_index": 0, "delta": delta }))
    };
    assert_eq!(answer_of(&(added.clone() + &grown("{}") + &completed)).parts, [called("c|fc_1", "{}")]);
    let half = added + &grown("{\"path\":") + &completed;
    assert_eq!(decode(&[half.as_bytes()]).expect_err("trouble").kind, TroubleKind::CutOff);
}

#[test]
fn the_key_of_reasoning_may_come_at_the_end() {
    let Part::Thinking { signature: Some(signature), .. } = &answer_of(LATE_KEY).parts[0] else { panic!() };
    assert!(sendable(signature).is_some());
}

#[test]
fn an_answer_in_one_piece() {
    let whole = |body: &str| {
        let mut decoder = Box::<Decoder>::default();
        decoder.whole(body)?;
        decoder.finish()
    };
    let answer = whole(WHOLE).expect("an answer");
    assert_eq!(answer.stop, Stop::ToolUse);
    assert_eq!(answer.text(), "Both are read.");
    assert_eq!(answer.usage, Usage { input: 100, output: 60, cache_read: 400, cache_write: 0, total: 560 });
    let Part::Thinking { signature: Some(signature), .. } = &answer.parts[0] else { panic!("{answer:?}") };
    assert!(WHOLE.contains(signature.as_str()));
    let rows = [
        ("<html></html>", TroubleKind::Garbled),
        ("{}", TroubleKind::Garbled),
        ("[]", TroubleKind::Garbled),
        ("{\"status\":\"queued\"}", TroubleKind::CutOff),
        ("{\"error\":{\"message\":\"server_error\"}}", TroubleKind::Broken),
        ("{\"status\":\"failed\",\"error\":{\"code\":\"server_error\"},\"output\":[]}", TroubleKind::Broken),
    ];
    for (body, kind) in rows {
        assert_eq!(whole(body).expect_err("trouble").kind, kind, "{body}");
    }
}

#[test]
fn however_its_bytes_are_cut_an_answer_is_the_same() {
    for entry in std::fs::read_dir(folder()).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "sse") {
            continue;
        }
        let bytes = std::fs::read(&path).expect("a recording");
        let expected = decode(&[&bytes]);
        assert_eq!(decode(&bytes.chunks(1).collect::<Vec<_>>()), expected, "{} byte by byte", path.display());
        let step = if bytes.len() > 2048 { 23 } else { 1 };
        for cut in (0..bytes.len()).step_by(step) {
            let (before, after) = bytes.split_at(cut);
            assert_eq!(decode(&[before, after]), expected, "{} cut at {cut}", path.display());
        }
    }
}
