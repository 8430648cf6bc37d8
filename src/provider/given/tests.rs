//! Tests of messages in the formats of providers.

use super::*;
use crate::{
    models::dialects,
    provider::{
        Delivery, Request,
        turns::{Target, turns},
    },
};
use std::borrow::Cow;

const MODEL: (&str, &str) = ("maker", "m");

/// A conversation in each format: requests of the user, answers with everything that is signed, and results.
fn conversation(api: Api) -> Value {
    match api {
        Api::Anthropic => json!([
            { "role": "user", "content": [{ "type": "text", "text": "Look." }] },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "I look.", "signature": "EqQB+/==" },
                { "type": "redacted_thinking", "data": "EmwK+/==" },
                { "type": "text", "text": "Looking." },
                { "type": "tool_use", "id": "toolu_1", "name": "read", "input": { "path": "b.rs", "a": 1.50 } },
                { "type": "tool_use", "id": "toolu_2", "name": "read", "input": {} },
            ]},
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "toolu_1", "content": "one" },
                { "type": "tool_result", "tool_use_id": "toolu_2", "content": [
                    { "type": "text", "text": "two" },
                    { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
                ]},
                { "type": "text", "text": "And now?" },
            ]},
            { "role": "assistant", "content": [{ "type": "text", "text": "Done." }] },
            { "role": "user", "content": [{ "type": "text", "text": "Thanks." }] },
        ]),
        Api::OpenaiResponses => json!([
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Look." }] },
            { "id": "rs_1", "type": "reasoning", "summary": [{ "type": "summary_text", "text": "I look." }],
              "encrypted_content": "gAAA+/==" },
            { "type": "message", "role": "assistant",
              "content": [{ "type": "output_text", "text": "Looking.", "annotations": [] }],
              "id": "msg_1", "status": "completed" },
            { "type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{\"path\": \"b.rs\"}", "id": "fc_1" },
            { "type": "function_call", "call_id": "call_2", "name": "read", "arguments": "{}", "id": "fc_2" },
            { "type": "function_call_output", "call_id": "call_1", "output": "one" },
            { "type": "function_call_output", "call_id": "call_2", "output": [
                { "type": "input_text", "text": "two" },
                { "type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto" },
            ]},
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "And now?" }] },
        ]),
        Api::Google => json!([
            { "role": "user", "parts": [{ "text": "Look." }] },
            { "role": "model", "parts": [
                { "text": "I look.", "thought": true, "thoughtSignature": "AAAA" },
                { "text": "Looking.", "thoughtSignature": "CCCC" },
                { "functionCall": { "name": "read", "args": { "path": "b.rs" } }, "thoughtSignature": "BBBB" },
                { "functionCall": { "name": "list", "args": {} } },
                { "functionCall": { "name": "read", "args": { "path": "c.rs" } } },
            ]},
            { "role": "user", "parts": [
                { "functionResponse": { "name": "read", "response": { "output": "one" } } },
                { "functionResponse": { "name": "list", "response": { "error": "two" } } },
                { "functionResponse": { "name": "read", "response": { "output": "three" } } },
                { "text": "And now?" },
                { "inlineData": { "mimeType": "image/png", "data": "AAAA" } },
            ]},
            { "role": "model", "parts": [{ "text": "Done." }] },
            { "role": "user", "parts": [{ "text": "Thanks." }] },
        ]),
        _ => json!([
            { "role": "user", "content": "Look." },
            { "role": "assistant", "content": "Looking.", "tool_calls": [
                { "id": "call_1", "type": "function", "function": { "name": "read", "arguments": "{\"path\": \"b.rs\", \"n\": 12345678901234567890123}" } },
                { "id": "call_2", "type": "function", "function": { "name": "read", "arguments": "{}" } },
            ], "reasoning_content": "" },
            { "role": "tool", "tool_call_id": "call_1", "content": "one" },
            { "role": "tool", "tool_call_id": "call_2", "content": "two" },
            { "role": "user", "content": [
                { "type": "text", "text": "And now?" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
            ]},
            { "role": "assistant", "content": "Done." },
            { "role": "user", "content": "Thanks." },
        ]),
    }
}

fn model() -> ModelRef {
    ModelRef { provider: MODEL.0.into(), id: MODEL.1.into() }
}

fn read(api: Api, messages: &Value, beside: &Beside<'_>) -> Result<Vec<Made>, Invalid> {
    let texts: Vec<String> = messages.as_array().expect("messages").iter().map(Value::to_string).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    super::messages(api, &texts, beside, Some(&model()), Vec::new())
}

/// The conversation of the next request, for messages in pi's form.
fn sent(api: Api, made: &[Made]) -> Value {
    let target = Target { api, provider: MODEL.0, model: MODEL.1 };
    let turns = turns(made.iter().map(|made| Cow::Borrowed(made.json.as_str())), &target);
    let request = Request { model: dialects::model(MODEL.1), turns, ..Request::default() };
    let body = codec::encode(api, &request, Delivery::Whole).body;
    let conversation = ["messages", "input", "contents"].iter().find_map(|name| body.get(*name));
    conversation.expect("a conversation").clone()
}

const FORMATS: [Api; 4] = [Api::Anthropic, Api::OpenaiChat, Api::OpenaiResponses, Api::Google];

#[test]
fn a_conversation_comes_back_in_its_own_bytes() {
    for api in FORMATS {
        let mut given = conversation(api);
        let made = read(api, &given, &Beside::default()).unwrap_or_else(|invalid| panic!("{api:?}: {invalid:?}"));
        if api == Api::OpenaiChat {
            // An unknown model gets no reasoning back.
            given[1].as_object_mut().expect("a message").remove("reasoning_content");
        }
        assert_eq!(sent(api, &made).to_string(), given.to_string(), "{api:?}");
        let roles: Vec<Value> =
            made.iter().map(|it| serde_json::from_str::<Value>(&it.json).expect("JSON")["role"].clone()).collect();
        let results = roles.iter().filter(|role| *role == "toolResult").count();
        assert_eq!(results, if api == Api::Google { 3 } else { 2 }, "{api:?}: {roles:?}");
    }
}

/// The last message with a usage, a stop reason and an error beside it.
fn end_of(api: Api, answer: &Value, usage: Option<Value>, stop: Option<&str>, error: Option<&str>) -> Value {
    let usage = usage.map(|usage| serde_json::value::to_raw_value(&usage).expect("JSON"));
    let beside = Beside { usage: usage.as_deref(), stop, error };
    let made = read(api, answer, &beside).unwrap_or_else(|invalid| panic!("{api:?}: {invalid:?}"));
    serde_json::from_str(&made.last().expect("a message").json).expect("JSON")
}

/// An answer with a text, and one with a call, in each format.
fn answers(api: Api) -> [Value; 2] {
    match api {
        Api::Anthropic => [
            json!([{ "role": "assistant", "content": "Hi." }]),
            json!([{ "role": "assistant", "content": [{ "type": "tool_use", "id": "1", "name": "f", "input": {} }] }]),
        ],
        Api::OpenaiResponses => [
            json!([{ "role": "assistant", "content": "Hi." }]),
            json!([{ "type": "function_call", "call_id": "1", "name": "f", "arguments": "{\"cut" }]),
        ],
        Api::Google => [
            json!([{ "role": "model", "parts": [{ "text": "Hi." }] }]),
            json!([{ "role": "model", "parts": [{ "functionCall": { "name": "f" } }] }]),
        ],
        _ => [
            json!([{ "role": "assistant", "content": "Hi." }]),
            json!([{ "role": "assistant", "content": null, "tool_calls": [
                { "id": "1", "type": "function", "function": { "name": "f", "arguments": "{\"cut" } },
            ]}]),
        ],
    }
}

#[test]
fn stop_reasons_of_each_provider() {
    let row = |api, stop: Option<&str>, [text, call]: [&str; 2]| {
        let stops = answers(api).map(|answer| end_of(api, &answer, None, stop, None)["stopReason"].clone());
        assert_eq!(stops, [text, call], "{api:?}: {stop:?}");
    };
    for api in FORMATS {
        row(api, None, ["stop", "toolUse"]);
        row(api, Some("stop"), ["stop", "toolUse"]);
        row(api, Some("toolUse"), ["stop", "toolUse"]);
        row(api, Some("length"), ["length", "length"]);
        row(api, Some("error"), ["error", "error"]);
        row(api, Some("aborted"), ["aborted", "aborted"]);
    }
    row(Api::Anthropic, Some("end_turn"), ["stop", "toolUse"]);
    row(Api::Anthropic, Some("tool_use"), ["stop", "toolUse"]);
    row(Api::Anthropic, Some("stop_sequence"), ["stop", "toolUse"]);
    row(Api::Anthropic, Some("max_tokens"), ["length", "length"]);
    row(Api::Anthropic, Some("model_context_window_exceeded"), ["length", "length"]);
    row(Api::Anthropic, Some("refusal"), ["error", "error"]);
    row(Api::OpenaiChat, Some("tool_calls"), ["stop", "toolUse"]);
    row(Api::OpenaiChat, Some("content_filter"), ["error", "error"]);
    row(Api::OpenaiResponses, Some("completed"), ["stop", "toolUse"]);
    row(Api::OpenaiResponses, Some("incomplete"), ["length", "length"]);
    row(Api::OpenaiResponses, Some("response.incomplete"), ["length", "length"]);
    row(Api::OpenaiResponses, Some("max_output_tokens"), ["length", "length"]);
    row(Api::OpenaiResponses, Some("content_filter"), ["error", "error"]);
    row(Api::OpenaiResponses, Some("failed"), ["error", "error"]);
    row(Api::Google, Some("STOP"), ["stop", "toolUse"]);
    row(Api::Google, Some("MAX_TOKENS"), ["length", "length"]);
    row(Api::Google, Some("SAFETY"), ["error", "error"]);
    row(Api::Google, Some("MALFORMED_FUNCTION_CALL"), ["error", "error"]);
}

#[test]
fn usages_of_each_provider() {
    let row = |api, usage: Value, [input, output, read, write]: [u64; 4]| {
        let told = end_of(api, &answers(api)[0], Some(usage), None, None)["usage"].clone();
        let total = input + output + read + write;
        let expected =
            json!({"input": input, "output": output, "cacheRead": read, "cacheWrite": write, "totalTokens": total});
        assert_eq!(told, expected, "{api:?}");
    };
    row(
        Api::Anthropic,
        json!({"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 10,
            "service_tier": "standard"}),
        [7, 5, 90, 10],
    );
    row(
        Api::OpenaiChat,
        json!({"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105, "prompt_tokens_details": {"cached_tokens": 90}}),
        [10, 5, 90, 0],
    );
    row(
        Api::OpenaiResponses,
        json!({"input_tokens": 100, "output_tokens": 5, "total_tokens": 105, "input_tokens_details": {"cached_tokens": 90}}),
        [10, 5, 90, 0],
    );
    row(
        Api::Google,
        json!({"promptTokenCount": 100, "candidatesTokenCount": 5, "thoughtsTokenCount": 3, "totalTokenCount": 108,
            "cachedContentTokenCount": 90}),
        [10, 8, 90, 0],
    );
    for api in FORMATS {
        row(api, json!({}), [0; 4]);
        row(api, Value::Null, [0; 4]);
    }
}

#[test]
fn a_whole_answer_brings_its_end() {
    let row = |api, answer: Value| {
        let message = end_of(api, &json!([answer]), None, None, None);
        let ends = [&message["stopReason"], &message["usage"]["totalTokens"], &message["content"][0]["text"]];
        assert_eq!(ends, [&json!("length"), &json!(12), &json!("Hi.")], "{api:?}");
    };
    row(
        Api::Anthropic,
        json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Hi."}],
            "stop_reason": "max_tokens", "usage": {"input_tokens": 10, "output_tokens": 2}}),
    );
    row(
        Api::OpenaiChat,
        json!({"object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."},
            "finish_reason": "length"}], "usage": {"prompt_tokens": 10, "completion_tokens": 2}}),
    );
    row(
        Api::OpenaiResponses,
        json!({"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}],
            "usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}}),
    );
    row(
        Api::Google,
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "MAX_TOKENS"}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12}}),
    );
}

#[test]
fn a_count_inside_of_an_answer_is_a_number() {
    for (usage, path) in
        [(json!({"input_tokens": "5000"}), "messages[0].usage.input_tokens"), (json!([7]), "messages[0].usage")]
    {
        let answer = json!([{"role": "assistant", "content": "Hi.", "usage": usage}]);
        assert_eq!(read(Api::Anthropic, &answer, &Beside::default()).expect_err("no usage").path, path);
    }
    let answer = json!([{"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}}],
        "usageMetadata": {"promptTokenCount": "10"}}]);
    let invalid = read(Api::Google, &answer, &Beside::default()).expect_err("no usage");
    assert_eq!(invalid.path, "messages[0].usageMetadata.promptTokenCount");
}

#[test]
fn a_failed_answer_needs_no_message() {
    for api in FORMATS {
        let failed = end_of(api, &json!([]), None, None, Some("prompt is too long"));
        let expected = json!({"role": "assistant", "content": [], "api": api.pi_name(), "provider": "maker", "model": "m",
            "usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0},
            "stopReason": "error", "errorMessage": "prompt is too long"});
        assert_eq!(failed, expected);
        let cut = end_of(api, &json!([]), None, Some("length"), None);
        assert_eq!((&cut["stopReason"], &cut["content"]), (&json!("length"), &json!([])), "{api:?}");
        let aborted = end_of(api, &answers(api)[0], None, Some("aborted"), Some("by the user"));
        assert_eq!((&aborted["stopReason"], &aborted["errorMessage"]), (&json!("aborted"), &json!("by the user")));
        assert_eq!(read(api, &json!([]), &Beside::default()), Ok(Vec::new()));
    }
}

#[test]
fn the_end_belongs_to_the_last_answer() {
    for api in FORMATS {
        let [answer, _] = answers(api);
        let user = conversation(api)[0].clone();
        let messages = json!([answer[0], user, answer[0]]);
        let beside = Beside { error: Some("it failed"), ..Beside::default() };
        let made = read(api, &messages, &beside).expect("messages");
        let stop = |made: &Made| serde_json::from_str::<Value>(&made.json).expect("JSON")["stopReason"].clone();
        assert_eq!(made.iter().map(stop).collect::<Vec<_>>(), [json!("stop"), Value::Null, json!("error")]);
        for (beside, name) in
            [(beside, "errorMessage"), (Beside { stop: Some("stop"), ..Beside::default() }, "stopReason")]
        {
            let invalid = read(api, &json!([answer[0], user]), &beside).expect_err("the user said it");
            assert_eq!(invalid.path, name, "{api:?}: {invalid:?}");
        }
    }
}

#[test]
fn results_find_their_calls() {
    let open = |calls: &[(&str, &str)]| {
        calls.iter().map(|(id, name)| OpenCall { id: (*id).into(), name: (*name).into() }).collect::<Vec<_>>()
    };
    let row = |api, calls: &[(&str, &str)], result: Value, expected: &str| {
        let made = super::messages(api, &[&result.to_string()], &Beside::default(), None, open(calls));
        let message: Value = serde_json::from_str(&made.expect("a result")[0].json).expect("JSON");
        assert_eq!(message["toolCallId"], expected, "{result}");
    };
    let google = |name: &str| json!({"parts": [{"functionResponse": {"name": name, "response": {}}}]});
    let calls = [("call_1", "read"), ("call_2", "list"), ("call_3", "read")];
    row(Api::Google, &calls, google("read"), "call_1");
    row(Api::Google, &calls, google("list"), "call_2");
    row(Api::Google, &calls, google("write"), "call_write");
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "x"});
    row(Api::OpenaiResponses, &[("call_1|fc_1", "read")], output("call_1"), "call_1|fc_1");
    row(Api::OpenaiResponses, &[("call_1|fc_1", "read")], output("call_2"), "call_2");
    let tool = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
    row(Api::OpenaiChat, &[("0", "read"), ("a|b", "read")], tool("a|b"), "a|b");
}

#[test]
fn an_invalid_value_is_named_by_its_path() {
    let row = |api, message: Value, path: &str| {
        let invalid = read(api, &json!([message]), &Beside::default()).expect_err(path);
        assert_eq!(invalid.path, path, "{invalid:?}");
        assert!(!invalid.problem.contains("at line"), "{invalid:?}");
    };
    use Api::{Anthropic, Google, OpenaiChat, OpenaiResponses};
    for api in FORMATS {
        let first = match api {
            Google => "messages[0].parts",
            OpenaiResponses => "messages[0].type",
            _ => "messages[0].role",
        };
        row(api, json!("hi"), first);
        row(api, json!({"type": "message", "role": "system", "content": "x", "parts": []}), "messages[0].role");
        row(api, json!({"type": "message", "role": "owner", "content": "x", "parts": []}), "messages[0].role");
    }
    row(Anthropic, json!({"role": "user"}), "messages[0].content");
    row(Anthropic, json!({"role": "user", "content": 7}), "messages[0].content");
    row(Anthropic, json!({"role": "user", "content": [{"type": "text"}]}), "messages[0].content[0].text");
    row(Anthropic, json!({"role": "user", "content": [{"type": "document"}]}), "messages[0].content[0].type");
    row(Anthropic, json!({"role": "user", "content": [{"type": "tool_result"}]}), "messages[0].content[0].tool_use_id");
    row(
        Anthropic,
        json!({"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}),
        "messages[0].content[0].source.type",
    );
    row(
        Anthropic,
        json!({"role": "assistant", "content": [{"type": "text", "text": ""}, {"type": "tool_use", "id": "1"}]}),
        "messages[0].content[1].name",
    );
    row(
        Anthropic,
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": "{"}]}),
        "messages[0].content[0].input",
    );
    row(OpenaiChat, json!({"role": "user"}), "messages[0].content");
    row(OpenaiChat, json!({"role": "tool", "content": "x"}), "messages[0].tool_call_id");
    row(
        OpenaiChat,
        json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x"}}]}),
        "messages[0].content[0].image_url.url",
    );
    row(
        OpenaiChat,
        json!({"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {}}}]}),
        "messages[0].tool_calls[0].function.arguments",
    );
    row(OpenaiChat, json!({"choices": []}), "messages[0].choices");
    row(OpenaiChat, json!({"choices": [{"message": {"tool_calls": 7}}]}), "messages[0].choices[0].message.tool_calls");
    row(OpenaiResponses, json!({"type": "function_call_output", "output": "x"}), "messages[0].call_id");
    row(OpenaiResponses, json!({"type": "function_call_outptu_output", "output": "x"}), "messages[0].type");
    row(OpenaiResponses, json!({"type": "function_call", "call_id": "1", "name": "f"}), "messages[0].arguments");
    row(OpenaiResponses, json!({"output": [{"type": "function_call"}]}), "messages[0].output[0].call_id");
    row(OpenaiResponses, json!({"role": "user", "content": [{"type": "input_file"}]}), "messages[0].content[0].type");
    row(Google, json!({"role": "user", "parts": [{"fileData": {}}]}), "messages[0].parts[0]");
    // Blocks of an answer that are neither understood nor of a provider's own tools.
    let of_answer = |block: Value| json!({"role": "assistant", "content": [{"type": "text", "text": "x"}, block]});
    row(Anthropic, of_answer(json!({"type": "txet", "text": "x"})), "messages[0].content[1].type");
    row(OpenaiChat, of_answer(json!({"type": "audio", "id": "a"})), "messages[0].content[1].type");
    row(
        OpenaiResponses,
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_image"}]}),
        "messages[0].content[0].type",
    );
    row(
        OpenaiResponses,
        json!({"output": [{"type": "custom_tool_call", "call_id": "c"}]}),
        "messages[0].output[0].type",
    );
    row(Google, json!({"role": "model", "parts": [{"text": "x"}, {"inlineData": {}}]}), "messages[0].parts[1]");
    row(Google, json!({"role": "model", "parts": [7]}), "messages[0].parts[0]");
    row(
        Google,
        json!({"role": "user", "parts": [{"functionResponse": {"name": "f"}}]}),
        "messages[0].parts[0].functionResponse.response",
    );
    row(Google, json!({"role": "model", "parts": [{"functionCall": {}}]}), "messages[0].parts[0].functionCall.name");
    row(Google, json!({"candidates": []}), "messages[0].candidates");
    for (usage, path) in [
        (json!({"input_tokens": "many", "prompt_tokens": "many", "promptTokenCount": "many"}), None),
        (json!({"input": 7, "output": 7}), Some("usage")),
        (json!({"input_tokens": "5000", "prompt_tokens": "5000", "promptTokenCount": "5000"}), None),
        (json!([7]), Some("usage")),
    ] {
        for api in FORMATS {
            let raw = serde_json::value::to_raw_value(&usage).expect("JSON");
            let beside = Beside { usage: Some(&raw), ..Beside::default() };
            let invalid = read(api, &answers(api)[0], &beside).expect_err("no usage");
            let of_a_field = || invalid.path.starts_with("usage.");
            assert!(path.map_or_else(of_a_field, |path| invalid.path == path), "{invalid:?}");
        }
    }
}

/// The only message, or the last one, that was read.
fn last(api: Api, messages: &Value, beside: &Beside<'_>) -> Value {
    let made = read(api, messages, beside).expect("readable");
    serde_json::from_str(&made.last().expect("a message").json).expect("JSON")
}

#[test]
fn results_without_an_id_take_the_first_open_call_of_their_tool() {
    let calls = [("call_1", "read"), ("call_2", "list"), ("call_3", "read")];
    let open = || calls.map(|(id, name)| OpenCall { id: id.into(), name: name.into() }).to_vec();
    let response = |id: Option<&str>| {
        let mut response = json!({ "name": "read", "response": { "output": "x" } });
        if let Some(id) = id {
            response["id"] = id.into();
        }
        json!({ "role": "user", "parts": [{ "functionResponse": response }] })
    };
    let said = json!({ "role": "model", "parts": [{ "text": "Done." }] });
    for (messages, expected) in [
        (vec![response(Some("call_1")), response(None)], ["call_1", "call_3"]),
        (vec![response(Some("other")), response(None)], ["other", "call_1"]),
        (vec![said, response(None)], ["", "call_read"]),
    ] {
        let texts: Vec<String> = messages.iter().map(Value::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let made = super::messages(Api::Google, &texts, &Beside::default(), None, open()).expect("readable");
        let id = |made: &Made| {
            let message: Value = serde_json::from_str(&made.json).expect("JSON");
            message["toolCallId"].as_str().unwrap_or_default().to_owned()
        };
        assert_eq!(made.iter().map(id).collect::<Vec<_>>(), expected, "{messages:?}");
    }
}

#[test]
fn results_say_whether_they_are_errors() {
    let google = |response: Value| {
        let part = json!({ "functionResponse": { "name": "read", "response": response } });
        let message = last(Api::Google, &json!([{ "role": "user", "parts": [part] }]), &Beside::default());
        (message["content"][0]["text"].as_str().expect("a text").to_owned(), message["isError"] == true)
    };
    assert_eq!(google(json!({ "output": "x" })), ("x".to_owned(), false));
    assert_eq!(google(json!({ "output": "x", "more": 1 })), (r#"{"output":"x","more":1}"#.to_owned(), false));
    assert_eq!(google(json!({ "error": { "code": 1 } })), (r#"{"error":{"code":1}}"#.to_owned(), true));
    let result = json!({ "type": "tool_result", "tool_use_id": "a", "content": "x", "is_error": true });
    let anthropic = json!([{ "role": "user", "content": [result] }]);
    assert_eq!(last(Api::Anthropic, &anthropic, &Beside::default())["isError"], true);
    let chat = json!([{ "role": "tool", "tool_call_id": "a", "content": "x" }]);
    let chat = last(Api::OpenaiChat, &chat, &Beside::default());
    assert_eq!((&chat["isError"], chat.get("toolName")), (&json!(false), None), "the format names no tool");
}

#[test]
fn a_message_of_the_user_without_content_is_one() {
    for (api, message) in [
        (Api::Anthropic, json!([{ "role": "user", "content": [] }])),
        (Api::Google, json!([{ "role": "user", "parts": [] }])),
    ] {
        assert_eq!(last(api, &message, &Beside::default()), json!({ "role": "user", "content": [] }));
    }
}

#[test]
fn fields_beside_an_answer_count_for_more_than_those_inside() {
    let inside = json!([{ "choices": [{ "message": { "role": "assistant", "content": "x" }, "finish_reason": "length" }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 1 } }]);
    let usage = RawValue::from_string(r#"{"prompt_tokens":9,"completion_tokens":null}"#.to_owned()).expect("JSON");
    let own = last(Api::OpenaiChat, &inside, &Beside::default());
    assert_eq!((&own["stopReason"], &own["usage"]["input"]), (&json!("length"), &json!(5)));
    let beside = Beside { usage: Some(&usage), stop: Some("stop"), error: None };
    let given = last(Api::OpenaiChat, &inside, &beside);
    assert_eq!((&given["stopReason"], &given["usage"]["input"]), (&json!("stop"), &json!(9)));
    for stop in ["aborted", "cancelled", "response.cancelled"] {
        let given = last(Api::OpenaiChat, &inside, &Beside { stop: Some(stop), ..Beside::default() });
        assert_eq!(given["stopReason"], "aborted", "{stop}");
    }
}

#[test]
fn arguments_that_are_no_object_become_an_empty_one() {
    let call = |arguments: &str| {
        let call = json!({ "id": "a", "type": "function", "function": { "name": "f", "arguments": arguments } });
        let message = json!([{ "role": "assistant", "content": null, "tool_calls": [call] }]);
        last(Api::OpenaiChat, &message, &Beside::default())["content"][0]["arguments"].clone()
    };
    for (arguments, expected) in [(r#"{"a":1}"#, json!({ "a": 1 })), ("[1]", json!({})), ("7", json!({}))] {
        assert_eq!(call(arguments), expected, "{arguments}");
    }
}

#[test]
fn an_incomplete_response_ends_for_its_reason_and_no_item_is_referred_to() {
    let response = |reason: Value| {
        let item =
            json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "x" }] });
        let response = json!([{ "status": "incomplete", "incomplete_details": reason, "output": [item] }]);
        last(Api::OpenaiResponses, &response, &Beside::default())["stopReason"].clone()
    };
    assert_eq!(response(json!({ "reason": "max_output_tokens" })), "length");
    assert_eq!(response(json!({ "reason": "content_filter" })), "error");
    assert_eq!(response(Value::Null), "length");
    let reference = json!([{ "type": "item_reference", "id": "msg_1" }]);
    let invalid = read(Api::OpenaiResponses, &reference, &Beside::default()).expect_err("no item");
    assert_eq!(invalid.path, "messages[0].type");
}
