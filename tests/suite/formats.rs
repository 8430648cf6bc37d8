//! Contexts as requests in the words of each provider: whatever a session went through, none of them is refused.

use crate::{
    conservation::{self, World},
    provider::{Format, Provider, objection},
    support::*,
    wire::cases,
};
use abridged::{
    conversation::context,
    models::dialects,
    prompts::Prompts,
    provider::{
        Api, Cache, Delivery, Effort, Reasoning, Request, codec,
        turns::{self, Target},
    },
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{
    borrow::Cow,
    io::{Read, Write},
    net::TcpStream,
    path::PathBuf,
};

/// Models that each format is spoken with: those that think in one way, in another, and not at all.
const MODELS: &[(Format, &str)] = &[
    (Format::Anthropic, "anthropic/claude-sonnet-4-5"),
    (Format::Anthropic, "anthropic/claude-opus-4-6"),
    (Format::OpenAiChat, "openai/gpt-5.2"),
    (Format::OpenAiChat, "deepseek/deepseek-reasoner"),
    (Format::OpenAiChat, "mistral/devstral-medium"),
    (Format::OpenAiResponses, "openai/gpt-5.2"),
    (Format::OpenAiResponses, "local/llama"),
    (Format::Google, "google/gemini-2.5-pro"),
    (Format::Google, "google/gemini-3-pro-preview"),
];

/// Value of `api` in pi's files.
fn written(format: Format) -> &'static str {
    match format {
        Format::Anthropic => "anthropic-messages",
        Format::OpenAiChat => "openai-completions",
        Format::OpenAiResponses => "openai-responses",
        Format::Google => "google-generative-ai",
    }
}

/// The conversation of a body, without the marks of what is cached: they move along with its end.
fn conversation(format: Format, body: &Value) -> Vec<Value> {
    fn unmarked(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(unmarked),
            Value::Object(fields) => {
                fields.shift_remove("cache_control");
                fields.values_mut().for_each(unmarked);
            }
            _ => {}
        }
    }
    let name = match format {
        Format::Anthropic | Format::OpenAiChat => "messages",
        Format::OpenAiResponses => "input",
        Format::Google => "contents",
    };
    let mut said = body[name].clone();
    unmarked(&mut said);
    said.as_array().cloned().unwrap_or_else(|| panic!("no {name} in {body:#}"))
}

fn short(model: &str) -> &str {
    model.split_once('/').map_or(model, |(_, id)| id)
}

/// Posts a body as a host would, and hands on what the provider had against it.
fn refusal(provider: &Provider, format: Format, model: &str, body: &Value) -> Option<String> {
    let text = body.to_string();
    let request = format!(
        "POST {} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Type: application/json\r\n\
         anthropic-version: 2023-06-01\r\nContent-Length: {}\r\n\r\n{text}",
        format.path(short(model)),
        text.len(),
    );
    let mut socket = TcpStream::connect(provider.address()).expect("a connection");
    socket.write_all(request.as_bytes()).expect("the provider reads");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("text");
    (!answer.starts_with("HTTP/1.1 200")).then_some(answer)
}

fn tools() -> Value {
    let tool = |name: &str| json!({"name": name, "description": "Does it.", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}});
    json!([tool("read"), tool("mcp.files/list"), {"name": "now"}])
}

/// A daemon whose models are who they are by their names alone.
fn daemon() -> Daemon {
    let home = Home::new();
    home.settings(&json!({"tokens": {"estimator": "chars"}}).to_string());
    Daemon::at(home)
}

/// Opens a session for a model that thinks and has tools.
fn load(daemon: &mut Daemon, path: &PathBuf, model: &str) -> String {
    let params = json!({"path": path, "model": model, "systemPrompt": "Be brief.", "tools": tools()});
    daemon.ok("session/load", params)["session"]["sessionId"].as_str().expect("an id").to_owned()
}

fn body(daemon: &mut Daemon, session: &str, format: Format) -> Value {
    daemon.ok("session/context", json!({"sessionId": session, "format": format.api()}))["body"].take()
}

/// Lines of a file, each behind the one before where they say nothing else.
fn file(id: &str, lines: Vec<Value>) -> Vec<Value> {
    let mut before = Value::Null;
    let mut file = vec![header(id)];
    for (at, mut line) in lines.into_iter().enumerate() {
        if line.get("type").is_none() {
            line = json!({"type": "message", "message": line});
        }
        let id = json!(format!("n{at}"));
        for (name, value) in [("id", &id), ("parentId", &before), ("timestamp", &json!("2026-01-01T00:00:00.000Z"))] {
            if line.get(name).is_none() {
                line[name] = value.clone();
            }
        }
        before = line["id"].clone();
        file.push(line);
    }
    file
}

/// An answer of this model, with all that its provider signed.
fn signed(format: Format, model: &str, id: &str) -> Value {
    let (provider, model) = model.split_once('/').expect("provider/model");
    let (thought, text, call) = match format {
        Format::Anthropic => ("EqQBCgIYAh+/==".to_owned(), Value::Null, Value::Null),
        Format::OpenAiChat => ("reasoning_content".to_owned(), Value::Null, Value::Null),
        Format::OpenAiResponses => (
            json!({"id": format!("rs_{id}"), "type": "reasoning", "summary": [], "encrypted_content": "gAAAA+/=="})
                .to_string(),
            json!(json!({"v": 1, "id": format!("msg_{id}")}).to_string()),
            Value::Null,
        ),
        Format::Google => ("VGhvdWdodA==".to_owned(), json!("VGV4dA=="), json!("Q2FsbA==")),
    };
    let mut said = json!({"type": "text", "text": "Let me look."});
    let mut called =
        json!({"type": "toolCall", "id": format!("{id}|fc_{id}"), "name": "read", "arguments": {"path": "a.rs"}});
    if !text.is_null() {
        said["textSignature"] = text;
    }
    if !call.is_null() {
        called["thoughtSignature"] = call;
    }
    json!({
        "role": "assistant", "api": written(format), "provider": provider, "model": model, "stopReason": "toolUse",
        "content": [{"type": "thinking", "thinking": "Hm.", "thinkingSignature": thought}, said, called],
    })
}

/// Histories of sessions, by name.
fn shapes() -> Vec<(&'static str, Vec<Value>)> {
    let image = |mime: &str| json!({"type": "image", "mimeType": mime, "data": "iVBORw0KGgo="});
    let shown = |id: &str, content: Value| json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": content, "isError": false});
    let failed = |reason: &str| json!({"role": "assistant", "content": [{"type": "text", "text": "half"}, {"type": "toolCall", "id": "h", "name": "read", "arguments": {}}], "stopReason": reason, "errorMessage": "overloaded"});
    let everybody: Vec<Value> = MODELS
        .iter()
        .enumerate()
        .flat_map(|(at, (format, model))| {
            let id = format!("s{at}");
            [signed(*format, model, &id), result(&format!("{id}|fc_{id}"), "fn main() {}")]
        })
        .collect();
    let odd_names = json!({"role": "assistant", "stopReason": "toolUse", "content": [
        {"type": "toolCall", "id": "functions.read:0", "name": "mcp.files/list", "arguments": {}},
        {"type": "toolCall", "id": "ä".repeat(80), "name": "", "arguments": "{\"cut\":"},
    ]});
    let wordy = json!({"role": "user", "content": "A word."});
    vec![
        ("a word", vec![wordy.clone()]),
        ("turns", turns(3)),
        ("nothing", vec![]),
        ("only configuration", vec![json!({"type": "session_info", "name": "x"})]),
        ("an answer first", vec![assistant("I begin. \n"), user("Do.")]),
        ("an answer last", vec![user("Say."), assistant("So far \n")]),
        ("answers in a row", vec![user("Say."), assistant("One."), assistant("Two."), calls(&["a"]), result("a", "x"), assistant("Three.")]),
        ("parallel calls", vec![user("Go."), calls(&["a", "b", "c"]), result("b", "2"), result("a", "1"), result("c", "3")]),
        ("missing results", vec![user("Go."), calls(&["a", "b"]), result("b", "2"), user("And?")]),
        ("a call at the end", vec![user("Go."), calls(&["a"])]),
        ("a late result", vec![user("Go."), calls(&["a"]), user("Meanwhile."), result("a", "late"), result("x", "nobody's")]),
        ("the same id again", vec![user("Go."), calls(&["0", "0"]), result("0", "a"), result("0", "b"), calls(&["0"]), result("0", "c"), user("x"), calls(&["0"]), result("0", "d")]),
        ("odd names", vec![user("Go."), odd_names, result("functions.read:0", "x"), result(&"ä".repeat(80), "")]),
        ("stopped answers", vec![user("Go."), failed("error"), failed("aborted"), result("h", "late"), assistant("Again.")]),
        ("cut off", vec![user("Go."), json!({"role": "assistant", "stopReason": "length", "content": [{"type": "thinking", "thinking": "hm"}]}), user("More.")]),
        ("empty texts", vec![user(""), user("Go."), json!({"role": "assistant", "content": [{"type": "text", "text": " "}], "stopReason": "stop"}), calls(&["a"]), shown("a", json!([])), user(" \n")]),
        ("images", vec![
            json!({"role": "user", "content": [image("image/png"), {"type": "text", "text": "Look."}, image("image/bmp"), {"type": "image", "mimeType": "image/png", "data": "blob:sha256:00"}]}),
            calls(&["a", "b", "c"]),
            shown("a", json!([image("image/png"), {"type": "text", "text": "one"}, image("image/gif")])),
            shown("b", json!([image("image/webp")])),
            json!({"role": "toolResult", "toolCallId": "c", "content": [image("image/jpeg")], "isError": true}),
            json!({"role": "user", "content": [image("image/png")]}),
        ]),
        ("everybody's signatures", [vec![user("Go.")], everybody.clone(), vec![assistant("Done."), user("Thanks.")]].concat()),
        ("a call goes on", [vec![user("Go.")], everybody].concat()),
        ("messages of programs", vec![
            json!({"role": "developer", "content": "Mind the tests."}),
            json!({"role": "bashExecution", "command": "ls", "output": "a.rs\n", "exitCode": 0}),
            json!({"role": "bashExecution", "command": "secret", "output": "", "exitCode": 0, "excludeFromContext": true}),
            json!({"role": "pythonExecution", "code": "1/0", "output": "```", "exitCode": 1}),
            json!({"role": "custom", "customType": "x", "content": "From an extension.", "display": true}),
            json!({"role": "hookMessage", "content": [{"type": "text", "text": "From a hook."}]}),
            json!({"role": "fileMention", "files": [{"path": "a.rs", "content": "fn main() {}"}]}),
            json!({"type": "custom_message", "customType": "x", "content": [{"type": "text", "text": "Typed in."}, image("image/png")], "display": false}),
            json!({"type": "branch_summary", "fromId": "n1", "summary": "Tried the other way."}),
            json!({"role": "branchSummary", "summary": "And another."}),
            json!({"role": "system", "content": "An old prompt."}),
            assistant("I see."),
        ]),
        ("compacted by another program", [
            turns(2),
            vec![json!({"type": "compaction", "summary": "They looked around.", "firstKeptEntryId": "n5", "tokensBefore": 900}), user("And now?")],
        ].concat()),
        ("cut inside a call", [
            turns(1),
            vec![json!({"type": "compaction", "summary": "S", "firstKeptEntryId": "n2", "tokensBefore": 900}), user("And now?")],
        ].concat()),
        ("edited", [
            turns(2),
            vec![
                json!({"type": "context_edit", "targetId": "n2", "replacement": {"content": "[cut]"}}),
                json!({"type": "context_edit", "targetId": "n3", "replacement": null}),
                json!({"type": "context_edit", "targetId": "n5", "replacement": {"content": "No call any more."}}),
            ],
        ].concat()),
    ]
}

#[test]
fn whatever_a_session_went_through_no_provider_refuses_it() {
    let providers = Format::ALL.map(|format| (format, Provider::start(format)));
    let mut daemon = daemon();
    for (at, (name, lines)) in shapes().into_iter().enumerate() {
        let path = daemon.home.session(&format!("{at}.jsonl"), &file(&format!("s{at}"), lines));
        for (format, model) in MODELS {
            for level in ["off", "high"] {
                let session = load(&mut daemon, &path, model);
                daemon.ok("session/configure", json!({"sessionId": session, "thinkingLevel": level, "model": model}));
                let answer = daemon.ok("session/context", json!({"sessionId": session, "format": format.api()}));
                let body = &answer["body"];
                let provider = &providers.iter().find(|(known, _)| known == format).expect("one for each").1;
                let refused = refusal(provider, *format, model, body);
                assert_eq!(refused, None, "{name} to {model} thinking {level}: {body:#}");
                assert_eq!(body.get("stream"), None);
                let fields: Vec<&String> = answer.as_object().expect("an object").keys().collect();
                assert_eq!(fields, ["body", "contextId", "usage", "compactionEntryId", "model", "maxOutputTokens"]);
                assert_eq!(
                    format!("{}/{}", answer["model"]["provider"], answer["model"]["id"]).replace('"', ""),
                    **model
                );
                assert_eq!(body["model"].as_str(), (*format != Format::Google).then_some(short(model)));
            }
        }
    }
}

#[test]
fn a_session_of_ours_stays_valid_through_compactions_pins_and_prunings() {
    let providers = Format::ALL.map(|format| (format, Provider::start(format)));
    // The line that names the file is larger than the little that the last compactions summarize.
    let home = Home::new();
    home.settings(&json!({"tokens": {"estimator": "chars"}, "compaction": {"transcriptHint": false}}).to_string());
    let mut daemon = Daemon::at(home);
    let mut messages = turns(12);
    for place in [2, 6, 10] {
        messages[place]["toolName"] = "bash".into();
        messages[place]["content"][0]["text"] = text_of(3_000, "log").into();
    }
    let path = session_of(&daemon.home, "s", &messages);
    let session = load(&mut daemon, &path, "anthropic/claude-sonnet-4-5");
    let id = json!({"sessionId": session});
    let mut looks = 0;
    let mut look = |daemon: &mut Daemon| {
        looks += 1;
        let mut sizes = Vec::new();
        for (format, provider) in &providers {
            let body = body(daemon, &session, *format);
            assert_eq!(
                refusal(provider, *format, "anthropic/claude-sonnet-4-5", &body),
                None,
                "look {looks}: {body:#}"
            );
            assert!(body.to_string().contains("never change part_0.lock"), "look {looks}");
            sizes.push(body.to_string().len());
        }
        sizes
    };
    let before = look(&mut daemon);
    daemon.ok("session/pin", json!({"sessionId": session, "entryId": "e0"}));
    daemon.ok("session/pin", json!({"sessionId": session, "text": "Never push."}));
    let pruned = daemon.ok("session/prune", json!({"sessionId": session, "protectTokens": 500, "minimumSavings": 1}));
    assert_ne!(pruned["entryIds"], json!([]));
    let smaller = look(&mut daemon);
    for keep in [1_000, 300, 1] {
        let params = json!({"sessionId": session, "keepRecentTokens": keep, "wait": true});
        assert_eq!(daemon.ok("session/compact", params)["outcome"], "completed");
        look(&mut daemon);
        daemon.ok("session/append", json!({"sessionId": session, "messages": turns(2)}));
        look(&mut daemon);
    }
    let smallest = look(&mut daemon);
    assert!(before.iter().zip(&smaller).all(|(before, after)| after < before));
    assert!(smaller.iter().zip(&smallest).all(|(before, after)| after < before));
    daemon.ok("session/undo_compaction", id);
    look(&mut daemon);
    let old = daemon.ok("session/context", json!({"sessionId": session, "leafEntryId": "e6", "format": "google"}));
    assert_eq!(objection(Format::Google, "m", old["body"].clone()), None);
    assert!(!old["body"].to_string().contains("Request 2:"), "as it was at an earlier entry");
}

/// An edit replaces the content of any entry that is sent. An entry that is not sent stays unsent when it is edited.
#[test]
fn an_edit_is_what_is_sent_whatever_it_is_about() {
    let edit = |target: &str, content: &str| json!({"type": "context_edit", "targetId": target, "replacement": {"content": content}});
    let lines = vec![
        user("Go."),
        json!({"role": "branchSummary", "summary": "old summary"}),
        json!({"role": "bashExecution", "command": "old command", "output": "", "exitCode": 0}),
        json!({"role": "bashExecution", "command": "x", "output": "", "exitCode": 0, "excludeFromContext": true}),
        json!({"role": "system", "content": "An old prompt."}),
        json!({"type": "session_info", "name": "x"}),
        edit("n1", "new summary"),
        edit("n2", "new command"),
        edit("n3", "hidden"),
        edit("n4", "hidden"),
        edit("n5", "hidden"),
    ];
    let mut daemon = daemon();
    let path = daemon.home.session("s.jsonl", &file("s", lines));
    let session = load(&mut daemon, &path, "anthropic/claude-sonnet-4-5");
    let body = body(&mut daemon, &session, Format::Anthropic);
    let texts: Vec<&str> = body["messages"][0]["content"]
        .as_array()
        .expect("blocks")
        .iter()
        .filter_map(|it| it["text"].as_str())
        .collect();
    assert_eq!(texts, ["Go.", "new summary", "new command"]);
}

#[test]
fn what_is_signed_goes_back_to_its_own_model_byte_for_byte_and_to_no_other() {
    let mut daemon = daemon();
    for (at, (format, model)) in MODELS.iter().enumerate() {
        let answer = signed(*format, model, "x");
        let id = answer["content"][2]["id"].as_str().expect("an id");
        let path = daemon.home.session(
            &format!("{at}.jsonl"),
            &file(&format!("s{at}"), vec![user("Go."), answer.clone(), result(id, "x"), user("On.")]),
        );
        let session = load(&mut daemon, &path, model);
        let own = body(&mut daemon, &session, *format);
        let said = conversation(*format, &own);
        let thought = answer["content"][0]["thinkingSignature"].as_str().expect("a signature");
        match format {
            Format::Anthropic => {
                assert_eq!(said[1]["content"][0], json!({"type": "thinking", "thinking": "Hm.", "signature": thought}));
            }
            Format::OpenAiChat => {
                let wanted = model.starts_with("deepseek").then_some("Hm.");
                let message = said.iter().find(|message| message["role"] == "assistant").expect("an answer");
                assert_eq!(message["reasoning_content"].as_str(), wanted);
            }
            Format::OpenAiResponses => {
                let item: Value = serde_json::from_str(thought).expect("JSON");
                assert_eq!(said[1], item);
                assert_eq!((&said[2]["id"], &said[3]["id"]), (&json!("msg_x"), &json!("fc_x")));
                assert_eq!(said[3]["call_id"], "x");
            }
            Format::Google => {
                let parts = &said[1]["parts"];
                assert_eq!(parts[0], json!({"text": "Hm.", "thought": true, "thoughtSignature": thought}));
                assert_eq!(
                    (&parts[1]["thoughtSignature"], &parts[2]["thoughtSignature"]),
                    (&json!("VGV4dA=="), &json!("Q2FsbA=="))
                );
            }
        }
        // Another model of the same provider, and the same model in other words.
        let (provider, _) = model.split_once('/').expect("provider/model");
        let session = load(&mut daemon, &path, &format!("{provider}/another"));
        let elsewhere = [body(&mut daemon, &session, *format)];
        let session = load(&mut daemon, &path, model);
        let others = Format::ALL.iter().filter(|other| *other != format);
        let others: Vec<Value> = others.map(|other| body(&mut daemon, &session, *other)).collect();
        for body in elsewhere.iter().chain(&others) {
            let text = body.to_string();
            for foreign in ["Hm.", "EqQBCgIYAh", "gAAAA", "rs_x", "msg_x", "fc_x", "VGhvdWdodA", "VGV4dA", "Q2FsbA"] {
                assert!(!text.contains(foreign), "{foreign} of {model} in {body:#}");
            }
            assert!(text.contains("Let me look."));
        }
    }
}

#[test]
fn our_own_names_of_formats_mean_the_same_as_those_of_pi() {
    let mut daemon = daemon();
    let (format, model) = (Format::Anthropic, "anthropic/claude-sonnet-4-5");
    let mut answer = signed(format, model, "x");
    answer["api"] = "anthropic".into();
    let path = daemon.home.session("s.jsonl", &file("s", vec![user("Go."), answer, result("x|fc_x", "x")]));
    let session = load(&mut daemon, &path, model);
    assert!(body(&mut daemon, &session, format).to_string().contains("EqQBCgIYAh"));
}

#[test]
fn the_same_session_is_the_same_body_and_what_is_appended_changes_its_end() {
    for (format, model) in MODELS {
        let mut daemon = daemon();
        let params = json!({"cwd": "/project", "model": model, "systemPrompt": "Be brief.", "tools": tools(), "thinkingLevel": "high"});
        let session = daemon.ok("session/new", params)["session"]["sessionId"].as_str().expect("an id").to_owned();
        let mut before: Vec<Value> = Vec::new();
        for round in 0..4 {
            let id = format!("r{round}");
            let answers = [
                vec![user("Look.")],
                vec![signed(*format, model, &id), result(&format!("{id}|fc_{id}"), "fn main() {}")],
                vec![
                    calls(&["a", "b"]),
                    result("b", "1"),
                    json!({"role": "toolResult", "toolCallId": "a", "toolName": "read", "content": [{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}], "isError": false}),
                ],
                vec![
                    assistant("It is fine. \n"),
                    user("And?"),
                    json!({"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 0}),
                ],
                vec![assistant("So."), assistant("That is it.")],
            ];
            for messages in answers {
                let last = messages.len() == 2 && messages[1]["role"] == "assistant";
                daemon.ok("session/append", json!({"sessionId": session, "messages": messages}));
                let asked = ["session/context"; 2]
                    .map(|method| daemon.begin(method, json!({"sessionId": session, "format": format.api()})));
                let [one, two] = asked.map(|id| daemon.answer(id).expect("a context")["body"].take());
                assert_eq!(one.to_string(), two.to_string());
                // A model is not asked behind its own answer.
                if !last {
                    let now = conversation(*format, &one);
                    let end = before.len().min(now.len());
                    // A user's message joins the one before it.
                    let same = if messages[0]["role"] == "user" { end.saturating_sub(1) } else { end };
                    assert_eq!(now[..same], before[..same], "{model}, round {round}");
                    before = now;
                }
            }
        }
        let fixed = |body: &Value| [body["system"].clone(), body["tools"].clone(), body["prompt_cache_key"].clone()];
        let last = body(&mut daemon, &session, *format);
        daemon.ok("session/append", json!({"sessionId": session, "messages": [user("One more.")]}));
        assert_eq!(fixed(&body(&mut daemon, &session, *format)), fixed(&last));
        let openai = model.starts_with("openai/") || *format == Format::OpenAiResponses;
        assert_eq!(last["prompt_cache_key"].as_str(), openai.then_some(session.as_str()));
        let marks = last.to_string().matches("cache_control").count();
        assert_eq!(marks, if *format == Format::Anthropic { 3 } else { 0 });
    }
}

#[test]
fn an_answer_is_asked_for_that_fits() {
    let provider = |format| Provider::start(format);
    for (format, id, level) in [
        (Format::Anthropic, "claude-sonnet-4-5", "xhigh"),
        (Format::Anthropic, "claude-opus-4-6", "high"),
        (Format::OpenAiChat, "gpt-5.1", "high"),
        (Format::OpenAiChat, "llama", "off"),
        (Format::OpenAiResponses, "gpt-5.1", "medium"),
        (Format::Google, "gemini-2.5-pro", "low"),
    ] {
        for (window, most) in [(20_000, Some(3_000)), (9_000, Some(8_000)), (9_000, None), (3_100, Some(4_000))] {
            let home = Home::new();
            let mut own = json!({"provider": "own", "id": id, "contextWindow": window, "reasoning": true});
            if let Some(most) = most {
                own["maxOutputTokens"] = json!(most);
            }
            home.settings(&json!({"models": [own], "tokens": {"estimator": "chars"}}).to_string());
            let path = session_of(&home, "s", &turns(9));
            let mut daemon = Daemon::at(home);
            let params = json!({"path": path, "model": format!("own/{id}")});
            let session = daemon.ok("session/load", params)["session"]["sessionId"].as_str().expect("an id").to_owned();
            daemon.ok("session/configure", json!({"sessionId": session, "thinkingLevel": level}));
            let answer = daemon.ok("session/context", json!({"sessionId": session, "format": format.api()}));
            let tokens = answer["usage"]["contextTokens"].as_u64().expect("a number");
            let left = window - tokens.min(window);
            // A hundredth of the window and a twentieth of the estimate stay free, but at most half of the room.
            assert_eq!(answer["usage"]["source"], "estimate");
            let room = (left - (window / 100).max(tokens / 20).min(left / 2)).max(1);
            let provider = provider(format);
            provider.output_limit(most.unwrap_or(room).min(room).max(16));
            let model = format!("own/{id}");
            assert_eq!(refusal(&provider, format, &model, &answer["body"]), None, "{window} {most:?}: {answer:#}");
            let asked = provider.asked()[0].max_output();
            match (most, format) {
                // Less is not taken.
                (Some(most), Format::OpenAiResponses) => assert_eq!(asked, Some(most.min(room).max(16))),
                (Some(most), _) => assert_eq!(asked, Some(most.min(room))),
                (None, Format::Anthropic) => assert_eq!(asked, Some(room)),
                (None, _) => assert_eq!(asked, None),
            }
        }
    }
}

#[test]
fn thinking_is_what_the_session_says() {
    let mut daemon = daemon();
    let path = session_of(&daemon.home, "s", &[user("Go.")]);
    let mut of = |model: &str, level: &str, format: Format| {
        let session = load(&mut daemon, &path, model);
        daemon.ok("session/configure", json!({"sessionId": session, "thinkingLevel": level, "model": model}));
        let body = body(&mut daemon, &session, format);
        let said = ["/thinking/budget_tokens", "/output_config/effort", "/reasoning_effort", "/reasoning/effort"];
        let said = said.iter().chain(&["/generationConfig/thinkingConfig/thinkingBudget"]);
        said.filter_map(|pointer| body.pointer(pointer)).next().cloned().unwrap_or(Value::Null)
    };
    let rows = [
        ("anthropic/claude-sonnet-4-5", "off", Format::Anthropic, Value::Null),
        ("anthropic/claude-sonnet-4-5", "minimal", Format::Anthropic, json!(1024)),
        ("anthropic/claude-sonnet-4-5", "high", Format::Anthropic, json!(16384)),
        ("anthropic/claude-opus-4-6", "xhigh", Format::Anthropic, json!("max")),
        ("openai/gpt-5.1", "off", Format::OpenAiResponses, json!("none")),
        ("openai/gpt-5.1", "medium", Format::OpenAiResponses, json!("medium")),
        ("openai/gpt-4.1", "high", Format::OpenAiResponses, Value::Null),
        ("openai/gpt-5.1", "low", Format::OpenAiChat, json!("low")),
        ("google/gemini-2.5-flash", "off", Format::Google, json!(0)),
        ("google/gemini-2.5-flash", "medium", Format::Google, json!(8192)),
        ("local/llama", "off", Format::OpenAiResponses, Value::Null),
        ("local/llama", "low", Format::OpenAiResponses, json!("low")),
    ];
    for (model, level, format, expected) in rows {
        assert_eq!(of(model, level, format), expected, "{model} {level}");
    }
}

#[test]
fn a_file_of_version_1_says_its_model_and_how_much_it_thinks_in_its_header() {
    let mut daemon = daemon();
    let header = json!({"type": "session", "id": "old", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/", "provider": "anthropic", "modelId": "claude-sonnet-4-5", "thinkingLevel": "low"});
    let message =
        |message: Value| json!({"type": "message", "timestamp": "2025-01-01T00:00:00.000Z", "message": message});
    let lines: Vec<Value> =
        std::iter::once(header).chain(turns(2).into_iter().map(message)).chain([message(user("Now?"))]).collect();
    let path = daemon.home.session("old.jsonl", &lines);
    let session = daemon.load(&path);
    for format in Format::ALL {
        let body = body(&mut daemon, &session, format);
        assert_eq!(objection(format, "claude-sonnet-4-5", body.clone()), None, "{body:#}");
        if format == Format::Anthropic {
            assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": 4096}));
            assert_eq!(body["model"], "claude-sonnet-4-5");
        }
    }
}

#[test]
fn a_request_needs_a_model_and_a_format_that_there_is() {
    let mut daemon = Daemon::start();
    let session = daemon.ok("session/new", json!({"cwd": "/"}))["session"]["sessionId"].clone();
    let error = daemon.err("session/context", json!({"sessionId": session, "format": "anthropic"}));
    assert_eq!(
        (error["data"]["code"].as_str(), error["data"]["path"].as_str()),
        (Some("invalid_params"), Some("format"))
    );
    assert!(error["message"].as_str().expect("a text").contains("session/configure"), "{error:#}");
    let answer = daemon.ok("session/context", json!({"sessionId": session, "format": "messages"}));
    assert_eq!((&answer["messages"], &answer["entryIds"], answer.get("body")), (&json!([]), &json!([]), None));
    let error = daemon.err("session/context", json!({"sessionId": session, "format": "cohere"}));
    assert_eq!(
        (error["data"]["code"].as_str(), error["data"]["path"].as_str()),
        (Some("invalid_params"), Some("format"))
    );
    let text = error["message"].as_str().expect("a text");
    assert!(
        ["messages", "anthropic", "openai_chat", "openai_responses", "google"].iter().all(|it| text.contains(it)),
        "{text}"
    );
    daemon.ok("session/configure", json!({"sessionId": session, "model": "anthropic/claude-sonnet-4-5"}));
    let body = daemon.ok("session/context", json!({"sessionId": session, "format": "anthropic"}))["body"].take();
    assert_eq!(objection(Format::Anthropic, "", body), None);
}

/// A step of a session, with content that only providers write.
#[derive(Debug, Clone)]
enum Event {
    Step(conservation::Step),
    Signed(usize, bool),
    Odd(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => conservation::step().prop_map(Event::Step),
        1 => (0..MODELS.len(), any::<bool>()).prop_map(|(model, answered)| Event::Signed(model, answered)),
        1 => (0..ODD).prop_map(Event::Odd),
    ]
}

/// How many odd messages there are.
const ODD: usize = 9;

fn odd(at: usize) -> Value {
    let image = |mime: &str| json!({"type": "image", "mimeType": mime, "data": "AAAA"});
    match at {
        0 => json!({"role": "user", "content": [image("image/png"), image("image/tiff")]}),
        1 => json!({"role": "bashExecution", "command": "ls", "output": "", "exitCode": 2}),
        2 => json!({"role": "developer", "content": " "}),
        3 => {
            json!({"role": "toolResult", "toolCallId": "call_0", "content": [image("image/gif"), {"type": "text", "text": "x"}], "isError": true})
        }
        4 => {
            json!({"role": "assistant", "content": [{"type": "text", "text": ""}, {"type": "thinking", "thinking": "x"}], "stopReason": "length"})
        }
        5 => {
            json!({"role": "assistant", "content": [{"type": "toolCall", "id": "call_0|fc_1", "name": "a b", "arguments": [1]}, {"type": "toolCall", "id": "", "name": "", "arguments": null}]})
        }
        6 => json!({"role": "user", "content": ""}),
        7 => json!({"role": "assistant", "content": "just text "}),
        _ => json!({"role": "branchSummary", "summary": "x"}),
    }
}

fn happen(world: &mut World, event: &Event) {
    let mut say = |message: Value| drop(world.add(json!({"type": "message", "message": message})));
    match event {
        Event::Step(step) => world.take(step),
        Event::Odd(at) => say(odd(*at)),
        Event::Signed(at, answered) => {
            let (format, model) = MODELS[*at];
            say(signed(format, model, "x"));
            if *answered {
                say(result("x|fc_x", "y"));
            }
        }
    }
}

/// The request for a list of messages.
fn request(messages: &[String], (format, model): (Format, &str), reasoning: Reasoning, with_tools: bool) -> Value {
    let api = Api::parse(format.api()).expect("a format");
    let (provider, id) = model.split_once('/').expect("provider/model");
    let target = Target { api, provider, model: id };
    let tools: Vec<Value> = serde_json::from_value(tools()).expect("tools");
    let request = Request {
        model: dialects::model(id),
        system: with_tools.then(|| "Be brief.".to_owned()),
        turns: turns::turns(messages.iter().map(|json| Cow::Borrowed(json.as_str())), &target),
        tools: if with_tools { tools } else { Vec::new() },
        max_tokens: Some(4_000),
        ceiling: Some(6_000),
        reasoning,
        cache: Cache::Prefix("s".to_owned()),
        ..Request::default()
    };
    codec::encode(api, &request, Delivery::Whole).body
}

fn nobody_objects(messages: &[String], reasoning: Reasoning, with_tools: bool) {
    for (format, model) in MODELS {
        let body = request(messages, (*format, *model), reasoning, with_tools);
        let objection = objection(*format, short(model), body.clone());
        assert_eq!(objection, None, "{model}: {body:#}\nof {messages:#?}");
    }
}

fn any_reasoning() -> impl Strategy<Value = Reasoning> {
    prop_oneof![
        Just(Reasoning::Unsaid),
        Just(Reasoning::Off),
        Just(Reasoning::Effort(Effort::Low)),
        Just(Reasoning::Effort(Effort::Highest)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases("ABRIDGED_FORMATS", 100, 200), max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_history_leads_to_a_request_that_is_refused(
        events in prop::collection::vec(event(), 1..60), reasoning in any_reasoning(), with_tools: bool,
    ) {
        let mut world = World::default();
        for event in &events {
            happen(&mut world, event);
        }
        let context = context::build(&world.path(), &Prompts::default());
        let messages: Vec<String> = context.messages().iter().map(|message| message.json().into_owned()).collect();
        nobody_objects(&messages, reasoning, with_tools);
    }

    /// The codecs rely on nobody: not even on a context that was made valid before.
    #[test]
    fn no_list_of_messages_leads_to_a_request_that_is_refused(
        messages in prop::collection::vec(any_message(), 0..14), reasoning in any_reasoning(), with_tools: bool,
    ) {
        nobody_objects(&messages, reasoning, with_tools);
    }
}

fn any_message() -> impl Strategy<Value = String> {
    let id = || prop_oneof!["[012]", Just("x|fc_x".to_owned())];
    prop_oneof![
        (0..ODD).prop_map(odd),
        (0..MODELS.len()).prop_map(|at| signed(MODELS[at].0, MODELS[at].1, "x")),
        prop::collection::vec(id(), 1..3).prop_map(|ids| calls(&ids.iter().map(String::as_str).collect::<Vec<_>>())),
        (id(), "[a ]{0,2}").prop_map(|(id, text)| result(&id, &text)),
        "[a ]{0,2}".prop_map(|text| user(&text)),
        "[a ]{0,2}".prop_map(|text| assistant(&text)),
    ]
    .prop_map(|message| message.to_string())
}
