//! Requests and answers of Google's `generateContent`, from recordings and as rows.

use super::*;
use crate::{
    conversation::message::Usage,
    models::dialects,
    provider::{Answer, Delta, Part, Stop, ToolOutcome, Trouble, TroubleKind, sse},
};
use std::path::Path;

fn decode(pieces: &[&[u8]]) -> Result<(Vec<Delta>, Answer), Trouble> {
    let mut parser = sse::Parser::default();
    let mut decoder = Box::<Decoder>::default();
    let mut deltas = Vec::new();
    for piece in pieces {
        for event in parser.push(piece).expect("small") {
            deltas.extend(decoder.event(&event)?);
        }
    }
    Ok((deltas, decoder.finish()?))
}

fn whole(body: &str) -> Result<Answer, Trouble> {
    let mut decoder = Box::<Decoder>::default();
    decoder.whole(body)?;
    decoder.finish()
}

fn answer_of(recording: &str) -> Answer {
    decode(&[recording.as_bytes()]).expect("an answer").1
}

fn body(request: &Request) -> Value {
    encode(request, Delivery::Stream).body
}

fn contents_of(model: &str, turns: Vec<Turn>) -> Value {
    body(&Request { model: dialects::model(model), turns, ..Request::default() })["contents"].clone()
}

fn signed(text: &str, signature: &str) -> Part {
    Part::Text { text: text.into(), signature: Some(signature.into()) }
}

fn thought(text: &str, signature: Option<&str>) -> Part {
    Part::Thinking { text: text.into(), signature: signature.map(Into::into), redacted: false }
}

fn called(id: &str, name: &str, arguments: &str, signature: Option<&str>) -> Part {
    Part::Call { id: id.into(), name: name.into(), arguments: arguments.into(), signature: signature.map(Into::into) }
}

fn outcome(call: &str, name: &str, parts: Vec<Part>, is_error: bool) -> Turn {
    Turn::Result(ToolOutcome { call: call.into(), name: name.into(), parts, is_error })
}

fn image(mime: &str) -> Part {
    Part::Image { mime: mime.into(), data: "AAAA".into() }
}

const TEXT: &str = include_str!("../../../tests/recordings/google/text.sse");
const CALLS: &str = include_str!("../../../tests/recordings/google/thinking_and_calls.sse");
const WITHOUT_IDS: &str = include_str!("../../../tests/recordings/google/calls_without_ids.sse");
const MAX_TOKENS: &str = include_str!("../../../tests/recordings/google/max_tokens.sse");
const SAFETY: &str = include_str!("../../../tests/recordings/google/safety.sse");
const BLOCKED: &str = include_str!("../../../tests/recordings/google/blocked.sse");
const MALFORMED: &str = include_str!("../../../tests/recordings/google/malformed_call.sse");
const CUT: &str = include_str!("../../../tests/recordings/google/cut.sse");
const ERROR: &str = include_str!("../../../tests/recordings/google/error.sse");
const ERROR_BODY: &str = include_str!("../../../tests/recordings/google/error.json");
const WHOLE: &str = include_str!("../../../tests/recordings/google/whole.json");
const ARRAY: &str = include_str!("../../../tests/recordings/google/array.json");

#[test]
fn a_whole_request() {
    let request = Request {
        model: dialects::model("gemini-2.5-pro"),
        system: Some("Be brief.".into()),
        history: Vec::new(),
        turns: vec![Turn::User(vec![Part::text("What is this?"), image("image/gif"), Part::text("")])],
        tools: vec![json!({
            "name": "read", "description": "Reads.",
            "inputSchema": { "$schema": "x", "type": "object", "properties": { "path": { "const": "a" } } },
        })],
        tool_choice: ToolChoice::None,
        max_tokens: Some(300),
        ceiling: None,
        reasoning: Reasoning::Effort(Effort::Medium),
        cache: super::super::Cache::Prefix("s".into()),
        has_bound_thinking: false,
        compaction: None,
        question: None,
    };
    let expected = json!({
        "contents": [{ "role": "user", "parts": [
            { "text": "What is this?" },
            { "inlineData": { "mimeType": "image/gif", "data": "AAAA" } },
        ] }],
        "systemInstruction": { "parts": [{ "text": "Be brief." }] },
        "tools": [{ "functionDeclarations": [{
            "name": "read", "description": "Reads.",
            "parametersJsonSchema": { "$schema": "x", "type": "object", "properties": { "path": { "const": "a" } } },
        }] }],
        "toolConfig": { "functionCallingConfig": { "mode": "NONE" } },
        "generationConfig": {
            "maxOutputTokens": 300, "thinkingConfig": { "thinkingBudget": 8192, "includeThoughts": true },
        },
    });
    assert_eq!(body(&request), expected);
    let plain = Request { model: dialects::model("m"), turns: vec![Turn::user("Hi")], ..Request::default() };
    assert_eq!(body(&plain), json!({ "contents": [{ "role": "user", "parts": [{ "text": "Hi" }] }] }));
}

#[test]
fn paths() {
    let rows = [
        ("gemini-2.5-pro", "/models/gemini-2.5-pro:generateContent"),
        ("models/gemini-2.5-pro", "/models/gemini-2.5-pro:generateContent"),
        ("tunedModels/mine", "/tunedModels/mine:generateContent"),
        ("publishers/google/models/gemini-3-pro", "/publishers/google/models/gemini-3-pro:generateContent"),
        ("ä b?key=1#:x", "/models/%C3%A4%20b%3Fkey%3D1%23%3Ax:generateContent"),
    ];
    for (model, expected) in rows {
        assert_eq!(path(model, Delivery::Whole), expected);
    }
    assert_eq!(path("a", Delivery::Stream), "/models/a:streamGenerateContent?alt=sse");
}

#[test]
fn signatures_go_back_on_the_parts_they_came_with() {
    let model = |parts: Value| json!({ "role": "model", "parts": parts });
    let call = |id: &str| json!({ "name": "read", "args": { "n": 1 }, "id": id });
    let rows = [
        (
            vec![thought("hm", None), signed("So", "AA=="), called("a", "read", "{\"n\":1}", Some("BB=="))],
            json!([{ "text": "So", "thoughtSignature": "AA==" }, { "functionCall": call("a"), "thoughtSignature": "BB==" }]),
        ),
        // Of a thought only the signature matters, and an empty text may carry one.
        (
            vec![thought("hm", Some("AA==")), Part::text("So"), signed("", "BB=="), Part::text("")],
            json!([
                { "text": "hm", "thought": true, "thoughtSignature": "AA==" },
                { "text": "So" },
                { "text": "", "thoughtSignature": "BB==" },
            ]),
        ),
        // The first of parallel calls needs one, the others none.
        (
            vec![called("a", "read", "{\"n\":1}", None), called("b", "read", "{\"n\":1}", None)],
            json!([
                { "functionCall": call("a"), "thoughtSignature": "skip_thought_signature_validator" },
                { "functionCall": call("b") },
            ]),
        ),
        // A signature that is not base64 comes from another provider.
        (vec![signed("So", r#"{"v":1,"id":"msg_1"}"#)], json!([{ "text": "So" }])),
    ];
    for (parts, expected) in rows {
        let turns = vec![Turn::user("Hi"), Turn::Assistant(parts.clone())];
        assert_eq!(contents_of("gemini-3-pro-preview", turns)[1], model(expected), "{parts:?}");
    }
    let older = contents_of("gemini-2.5-pro", vec![Turn::Assistant(vec![called("a", "read", "{\"n\":1}", None)])]);
    assert_eq!(older[1], model(json!([{ "functionCall": { "name": "read", "args": { "n": 1 } } }])));
}

#[test]
fn nasty_conversations() {
    let turns = vec![
        Turn::Assistant(vec![Part::text(""), Part::text("Reading.")]),
        Turn::Assistant(vec![called("a|x", "read", "{\"path\":", None), called("b", "look", "{}", None)]),
        outcome("b", "", vec![image("image/png"), image("image/gif")], false),
        outcome("a|x", "other", vec![Part::text("no"), Part::text(""), Part::text("file")], true),
        outcome("?", "", vec![], false),
        Turn::User(vec![Part::text("")]),
        Turn::user("Go on"),
        Turn::user("please"),
        Turn::Assistant(vec![thought("hm", None)]),
        Turn::user("now"),
    ];
    let png = json!({ "inlineData": { "mimeType": "image/png", "data": "AAAA" } });
    let gif = json!({ "inlineData": { "mimeType": "image/gif", "data": "AAAA" } });
    let texts = [json!({ "text": "Go on" }), json!({ "text": "please" }), json!({ "text": "now" })];
    let newer = json!([
        { "role": "user", "parts": [{ "text": "(The conversation goes on.)" }] },
        { "role": "model", "parts": [
            { "text": "Reading." },
            {
                "functionCall": { "name": "read", "args": {}, "id": "a" },
                "thoughtSignature": "skip_thought_signature_validator",
            },
            { "functionCall": { "name": "look", "args": {}, "id": "b" } },
        ] },
        { "role": "user", "parts": [
            { "functionResponse": { "name": "read", "response": { "error": "no\nfile" }, "id": "a" } },
            { "functionResponse": {
                "name": "look", "response": { "output": "(see the image)" }, "id": "b", "parts": [png],
            } },
            { "text": "Images of look:" }, gif, texts[0], texts[1], texts[2],
        ] },
    ]);
    assert_eq!(contents_of("gemini-3-flash-preview", turns.clone()), newer);
    let older = json!([
        { "functionResponse": { "name": "read", "response": { "error": "no\nfile" } } },
        { "functionResponse": { "name": "look", "response": { "output": "(see the image)" } } },
        { "text": "Images of look:" }, png, gif, texts[0], texts[1], texts[2],
    ]);
    assert_eq!(contents_of("gemini-2.5-flash", turns)[2]["parts"], older);
}

#[test]
fn a_text_its_thoughts_and_what_it_cost() {
    let (deltas, answer) = decode(&[TEXT.as_bytes()]).expect("an answer");
    let summary = "**Looking**\n\nIt is short.";
    let expected =
        [Delta::Thinking(summary.into()), Delta::Text("Grüße".into()), Delta::Text("! All tests pass. 🦀".into())];
    assert_eq!(deltas, expected);
    let parts = vec![thought(summary, None), signed("Grüße! All tests pass. 🦀", "CpcBAdHtim9aQ0z+/w==")];
    let usage = Usage { input: 476, output: 70, cache_read: 1024, cache_write: 0, total: 1570 };
    assert_eq!(answer, Answer { parts, usage, stop: Stop::Done, ..Answer::default() });
}

#[test]
fn calls_with_and_without_ids() {
    let answer = answer_of(CALLS);
    let expected = [
        thought("**Planning**\n\nTwo reads can go together.", None),
        Part::text("I'll read both."),
        called("k2v9xq1a", "read", r#"{"path":"src/a.rs","limit":10}"#, Some("EpEDCo4DAdHtim+/zz==")),
        called("k2v9xq1b", "read", r#"{"path":"src/ä.rs"}"#, None),
    ];
    assert_eq!(answer.parts, expected);
    assert_eq!(answer.stop, Stop::ToolUse);
    let expected = [
        called("call_w7Xo-a_1_1", "ls", "{}", None),
        called("call_w7Xo-a_1_2", "ls", r#"{"path":"src"}"#, Some("CiQB0e2Kb8==")),
    ];
    assert_eq!(answer_of(WITHOUT_IDS).parts, expected);
    let twice = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","id":"x"}},
        {"functionCall":{"name":"b","id":"x"}}]},"finishReason":"STOP"}]}"#;
    let expected = [called("x", "a", "{}", None), called("call_2", "b", "{}", None)];
    assert_eq!(whole(twice).expect("an answer").parts, expected);
}

/// A decoded answer that is encoded again equals the server's answer, but for the summaries of thoughts.
#[test]
fn what_goes_back_is_what_came() {
    let again = contents_of("gemini-3.1-pro-preview", vec![Turn::user("Hi"), Turn::Assistant(answer_of(CALLS).parts)]);
    let mut came = Vec::new();
    for data in CALLS.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let chunk: Value = serde_json::from_str(data).expect("JSON");
        let parts = chunk["candidates"][0]["content"]["parts"].as_array().expect("parts").clone();
        came.extend(parts.into_iter().filter(|part| part["thought"] != true && part["text"] != ""));
    }
    assert_eq!(again[1]["parts"], Value::Array(came));
    let text = contents_of("gemini-2.5-flash", vec![Turn::user("Hi"), Turn::Assistant(answer_of(TEXT).parts)]);
    assert_eq!(text[1]["parts"][0]["thoughtSignature"], "CpcBAdHtim9aQ0z+/w==");
    let body: Value = serde_json::from_str(WHOLE).expect("JSON");
    let parts = whole(WHOLE).expect("an answer").parts;
    let again = contents_of("gemini-2.5-flash", vec![Turn::user("Hi"), Turn::Assistant(parts)]);
    assert_eq!(again[1]["parts"], body["candidates"][0]["content"]["parts"]);
}

#[test]
fn a_signed_text_is_complete() {
    let body = r#"{"candidates":[{"content":{"parts":[{"text":"a","thoughtSignature":"AA=="},{"text":"b"},
        {"text":"c"},{"executableCode":{}},{"text":"d","thought":true},{"thoughtSignature":"BB=="}]},
        "finishReason":"STOP"}]}"#;
    let streamed = [signed("a", "AA=="), Part::text("bc"), thought("d", None), signed("", "BB==")];
    assert_eq!(whole(&format!("[{body}]")).expect("an answer").parts, streamed);
    let given = [signed("a", "AA=="), Part::text("b"), Part::text("c"), thought("d", None), signed("", "BB==")];
    assert_eq!(whole(body).expect("an answer").parts, given, "each part of a whole answer stays");
}

#[test]
fn ends_that_are_none() {
    let stop = |recording| answer_of(recording).stop;
    assert_eq!(stop(MAX_TOKENS), Stop::Length);
    assert_eq!(answer_of(MAX_TOKENS).text(), "The first half of");
    assert_eq!(stop(SAFETY), Stop::Refused("SAFETY".into()));
    assert_eq!(stop(BLOCKED), Stop::Refused("PROHIBITED_CONTENT".into()));
    let trouble = |recording: &str| decode(&[recording.as_bytes()]).expect_err("trouble");
    assert_eq!(trouble(CUT).kind, TroubleKind::CutOff);
    assert_eq!(trouble("").kind, TroubleKind::CutOff);
    let malformed = trouble(MALFORMED);
    assert!(malformed.transient() && malformed.said.starts_with("MALFORMED_FUNCTION_CALL: "), "{malformed:?}");
    let error = trouble(ERROR);
    assert!(error.transient() && error.status == Some(503), "{error:?}");
    assert_eq!(trouble("data: <html>\n\n").kind, TroubleKind::Garbled);
    assert_eq!(trouble("data: 7\n\n").kind, TroubleKind::Garbled);
}

#[test]
fn answers_in_one_piece() {
    let answer = whole(WHOLE).expect("an answer");
    let expected =
        [signed("Both are read.", "AdHtim9w"), called("call_w7Xo-a_1_1", "write", r#"{"path":"b","n":1.0}"#, None)];
    assert_eq!(answer.parts, expected);
    assert_eq!(answer.usage, Usage { input: 100, output: 40, cache_read: 400, cache_write: 0, total: 540 });
    assert_eq!(whole(ARRAY).expect("an answer").text(), "In pieces.");
    assert_eq!(whole(ERROR_BODY).expect_err("trouble").status, Some(429));
    for (body, kind) in [("<html>", TroubleKind::Garbled), ("{}", TroubleKind::CutOff), ("[]", TroubleKind::CutOff)] {
        assert_eq!(whole(body).expect_err("trouble").kind, kind, "{body}");
    }
}

#[test]
fn however_its_bytes_are_cut_an_answer_is_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/google");
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "sse") {
            continue;
        }
        let bytes = std::fs::read(&path).expect("a recording");
        let expected = decode(&[&bytes]);
        assert_eq!(decode(&bytes.chunks(1).collect::<Vec<_>>()), expected, "{} byte by byte", path.display());
        for cut in 0..bytes.len() {
            let (before, after) = bytes.split_at(cut);
            assert_eq!(decode(&[before, after]), expected, "{} cut at {cut}", path.display());
        }
    }
}
