//! Messages that a client appends in the format of a provider.

use crate::{provider::Format, support::Daemon};
use serde_json::{Value, json};

fn session(daemon: &mut Daemon, format: Format) -> String {
    let model = json!({"provider": "maker", "id": "m", "api": format.api(), "contextWindow": 32_000});
    let new = json!({"cwd": "/project", "model": "maker/m", "settings": {"models": [model]}});
    daemon.new_session(new)
}

fn appended(daemon: &mut Daemon, session: &str, format: Format, messages: Value, beside: Value) -> Value {
    let mut params = json!({"sessionId": session, "format": format.api(), "messages": messages});
    for (name, value) in beside.as_object().expect("fields") {
        params[name] = value.clone();
    }
    daemon.ok("session/append", params)
}

/// The conversation of the next request.
fn conversation(daemon: &mut Daemon, session: &str, format: Format) -> Value {
    let body = daemon.ok("session/context", json!({"sessionId": session, "format": format.api()}))["body"].clone();
    let names = ["messages", "input", "contents"];
    names.iter().find_map(|name| body.get(*name)).expect("a conversation").clone()
}

/// A request, an answer with a call, its usage, and the result.
fn turn(format: Format) -> (Value, Value, Value, Value) {
    match format {
        Format::Anthropic => (
            json!([{"role": "user", "content": [{"type": "text", "text": "Look."}]}]),
            json!([{"role": "assistant", "content": [
                {"type": "thinking", "thinking": "I look.", "signature": "EqQB+/=="},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "b.rs"}},
            ]}]),
            json!({"usage": {"input_tokens": 4, "output_tokens": 96, "cache_read_input_tokens": 900}, "stopReason": "tool_use"}),
            json!([{"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "one"},
                {"type": "text", "text": "And now?"},
            ]}]),
        ),
        Format::OpenAiChat => (
            json!([{"role": "user", "content": "Look."}]),
            json!([{"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{\"path\": \"b.rs\"}"}},
            ]}]),
            json!({"usage": {"prompt_tokens": 904, "completion_tokens": 96}, "stopReason": "tool_calls"}),
            json!([{"role": "tool", "tool_call_id": "call_1", "content": "one"}, {"role": "user", "content": "And now?"}]),
        ),
        Format::OpenAiResponses => (
            json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look."}]}]),
            json!([
                {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA+/=="},
                {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{\"path\": \"b.rs\"}", "id": "fc_1"},
            ]),
            json!({"usage": {"input_tokens": 904, "output_tokens": 96}, "stopReason": "completed"}),
            json!([
                {"type": "function_call_output", "call_id": "call_1", "output": "one"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And now?"}]},
            ]),
        ),
        Format::Google => (
            json!([{"role": "user", "parts": [{"text": "Look."}]}]),
            json!([{"role": "model", "parts": [
                {"functionCall": {"name": "read", "args": {"path": "b.rs"}}, "thoughtSignature": "BBBB"},
            ]}]),
            json!({"usage": {"promptTokenCount": 904, "candidatesTokenCount": 96}, "stopReason": "STOP"}),
            json!([{"role": "user", "parts": [
                {"functionResponse": {"name": "read", "response": {"output": "one"}}},
                {"text": "And now?"},
            ]}]),
        ),
    }
}

#[test]
fn a_turn_comes_back_as_it_was_appended() {
    let mut daemon = Daemon::start();
    for format in Format::ALL {
        let session = session(&mut daemon, format);
        let (asked, answer, end, results) = turn(format);
        // Appends that are sent at once are one write.
        let sent: Vec<u64> = [(&asked, &json!({})), (&answer, &end), (&results, &json!({}))]
            .into_iter()
            .map(|(messages, beside)| {
                let mut params = json!({"sessionId": session, "format": format.api(), "messages": messages});
                for (name, value) in beside.as_object().expect("fields") {
                    params[name] = value.clone();
                }
                daemon.begin("session/append", params)
            })
            .collect();
        let answers: Vec<Value> = sent
            .into_iter()
            .map(|id| daemon.answer(id).unwrap_or_else(|error| panic!("{format:?}: {error}")))
            .collect();
        let entries: Vec<usize> =
            answers.iter().map(|answer| answer["entryIds"].as_array().expect("ids").len()).collect();
        assert_eq!(entries, [1, 1, 2], "{format:?}");
        let given: Vec<Value> =
            [asked, answer, results].iter().flat_map(|it| it.as_array().expect("messages").clone()).collect();
        let mut context = conversation(&mut daemon, &session, format);
        if format == Format::Anthropic {
            for message in context.as_array_mut().expect("messages") {
                let blocks = message["content"].as_array_mut().expect("blocks");
                blocks
                    .iter_mut()
                    .for_each(|block| drop(block.as_object_mut().expect("a block").remove("cache_control")));
            }
        }
        assert_eq!(context, json!(given), "{format:?}");
        let usage = daemon.ok("session/usage", json!({"sessionId": session}));
        // A single report far above the estimate waits for another one, and its prompt is the same in each format.
        assert!(
            usage["why"].as_str().is_some_and(|why| why.contains("The report of 904 tokens")),
            "{format:?}: {usage}"
        );
    }
}

#[test]
fn a_failed_answer_is_in_the_session_and_in_no_context() {
    let mut daemon = Daemon::start();
    for format in Format::ALL {
        let session = session(&mut daemon, format);
        let (asked, ..) = turn(format);
        appended(&mut daemon, &session, format, asked.clone(), json!({}));
        let error = json!({"errorMessage": "529 overloaded_error", "stopReason": "error"});
        let failed = appended(&mut daemon, &session, format, json!([]), error);
        assert_eq!(failed["next"], json!({"type": "none"}), "{format:?}");
        assert_eq!(conversation(&mut daemon, &session, format).as_array().map(Vec::len), Some(1), "{format:?}");
        let entry = daemon.ok("session/entry", json!({"sessionId": session, "entryId": failed["entryIds"][0]}));
        let message = &entry["entry"]["message"];
        let told = [&message["stopReason"], &message["errorMessage"], &message["provider"], &message["model"]];
        assert_eq!(told, ["error", "529 overloaded_error", "maker", "m"], "{format:?}");
    }
}

#[test]
fn an_invalid_message_is_named_by_its_path() {
    let mut daemon = Daemon::start();
    let session = session(&mut daemon, Format::Anthropic);
    let hello = json!([{"role": "user", "content": "hello"}]);
    let answer = json!([{"role": "assistant", "content": "hello"}]);
    let pis = |usage: Value| json!([{"role": "assistant", "content": "hello", "usage": usage}]);
    let rows = [
        (json!({"messages": answer, "usage": {"input": 1}}), "usage"),
        (json!({"messages": answer, "stopReason": "stop"}), "stopReason"),
        (json!({"messages": answer, "format": "messages", "errorMessage": "no"}), "errorMessage"),
        (json!({"messages": hello, "format": "anthropic", "usage": {"input_tokens": 1}}), "usage"),
        (json!({"messages": answer, "format": "anthropic", "usage": {"input_tokens": "1k"}}), "usage.input_tokens"),
        (json!({"messages": answer, "format": "anthropic", "usage": {"input_tokens": "5000"}}), "usage.input_tokens"),
        (json!({"messages": pis(json!({"input": "5000"}))}), "messages[0].usage.input"),
        (json!({"messages": pis(json!([5_000, 1, 0, 0, 5_001]))}), "messages[0].usage"),
        (json!({"messages": answer, "format": "anthropic", "usage": [5_000, 1]}), "usage"),
        (json!({"messages": answer, "format": "anthropic", "usage": {"prompt_tokens": 1}}), "usage.prompt_tokens"),
        (json!({"messages": [], "format": "anthropic"}), "messages"),
        (json!({"messages": answer, "format": "bedrock"}), "format"),
        (json!({"messages": [hello[0], {"role": "user"}], "format": "google"}), "messages[0].parts"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "audio"}]}], "format": "anthropic"}),
            "messages[0].content[0].type",
        ),
    ];
    let leaf = |daemon: &mut Daemon| {
        daemon.ok("session/status", json!({"sessionId": session}))["session"]["leafEntryId"].clone()
    };
    let before = leaf(&mut daemon);
    for (mut params, path) in rows {
        params["sessionId"] = json!(session);
        let error = daemon.err("session/append", params.clone());
        assert_eq!(
            (&error["data"]["code"], &error["data"]["path"]),
            (&json!("invalid_params"), &json!(path)),
            "{params}: {error}"
        );
    }
    assert_eq!(leaf(&mut daemon), before);
}
