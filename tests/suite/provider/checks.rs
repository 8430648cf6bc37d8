//! The provider itself, asked by a client that knows nothing but TCP.

use super::{Format, Provider, Step, Stop, Trouble};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
};

/// A connection that asks again and again.
struct Client {
    socket: BufReader<TcpStream>,
}

struct Answered {
    status: u16,
    headers: Vec<String>,
    body: Vec<u8>,
    /// The body came to its own end.
    whole: bool,
}

impl Client {
    fn to(provider: &Provider) -> Self {
        Self { socket: BufReader::new(TcpStream::connect(provider.address()).expect("a connection")) }
    }

    fn send(&mut self, path: &str, headers: &str, body: &Value) {
        let body = body.to_string();
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        self.socket.get_mut().write_all(request.as_bytes()).expect("the provider reads");
    }

    fn ask(&mut self, path: &str, headers: &str, body: &Value) -> Answered {
        self.send(path, headers, body);
        self.answer()
    }

    fn answer(&mut self) -> Answered {
        let first = self.line().expect("a status");
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let headers: Vec<String> = std::iter::from_fn(|| self.line()).take_while(|line| !line.is_empty()).collect();
        let length = headers.iter().find_map(|header| header.strip_prefix("content-length: "));
        let (body, whole) = match length {
            Some(length) => {
                let mut body = vec![0; length.parse().expect("a number")];
                let whole = self.socket.read_exact(&mut body).is_ok();
                (body, whole)
            }
            None => self.chunks(),
        };
        Answered { status, headers, body, whole }
    }

    fn chunks(&mut self) -> (Vec<u8>, bool) {
        let mut body = Vec::new();
        while let Some(size) = self.line() {
            let mut chunk = vec![0; usize::from_str_radix(&size, 16).expect("a size") + 2];
            if self.socket.read_exact(&mut chunk).is_err() {
                break;
            }
            if chunk.len() == 2 {
                return (body, true);
            }
            body.extend_from_slice(&chunk[..chunk.len() - 2]);
        }
        (body, false)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.socket.read_line(&mut line).ok().filter(|count| *count > 0)?;
        Some(line.trim_end().to_owned())
    }
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }

    /// The data of the events.
    fn data(&self) -> Vec<String> {
        let text = self.text().replace("\r\n", "\n");
        let (events, _) = text.rsplit_once("\n\n").unwrap_or_default();
        let data = |event: &str| {
            let lines = event.lines().filter_map(|line| line.strip_prefix("data: "));
            lines.collect::<Vec<_>>().join("\n")
        };
        events.split("\n\n").map(data).filter(|data| !data.is_empty()).collect()
    }

    fn events(&self) -> Vec<Value> {
        self.data().iter().filter_map(|data| serde_json::from_str(data).ok()).collect()
    }

    /// Every string that stands at this pointer of an event.
    fn joined(&self, pointer: &str) -> String {
        let events = self.events();
        events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect()
    }
}

/// The least a request needs.
fn least(format: Format, stream: bool) -> (&'static str, Value) {
    match format {
        Format::Anthropic => (
            "/v1/messages",
            json!({"model": "m", "max_tokens": 100, "stream": stream, "messages": [{"role": "user", "content": "Hello"}]}),
        ),
        Format::OpenAiChat => {
            let mut body = json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "Hello"}]});
            if stream {
                body["stream_options"] = json!({"include_usage": true});
            }
            ("/v1/chat/completions", body)
        }
        Format::OpenAiResponses => {
            ("/v1/responses", json!({"model": "m", "stream": stream, "store": false, "input": "Hello"}))
        }
        Format::Google => {
            let body = json!({"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]});
            let streaming = "/v1beta/models/m:streamGenerateContent?alt=sse";
            (if stream { streaming } else { "/v1beta/models/m:generateContent" }, body)
        }
    }
}

const VERSION: &str = "anthropic-version: 2023-06-01\r\n";

fn ask(provider: &Provider, format: Format, stream: bool) -> Answered {
    let (path, body) = least(format, stream);
    Client::to(provider).ask(path, VERSION, &body)
}

fn full() -> Step {
    let step = Step::answer("Grüße, 世界 🌍!").thinking("Hm, 🤔.", "c2ln").tool_call("read", json!({"path": "ä.rs"}));
    step.usage(100, 20, 30, 7).pieces(3)
}

#[test]
fn anthropic_speaks_of_blocks() {
    let provider = Provider::start(Format::Anthropic);
    provider.otherwise(full());
    for step in [full(), full().split_utf8()] {
        provider.script([step]);
        let streamed = ask(&provider, Format::Anthropic, true);
        assert!(streamed.whole && streamed.headers.contains(&"transfer-encoding: chunked".to_owned()));
        assert_eq!(streamed.joined("/delta/text"), "Grüße, 世界 🌍!");
        assert_eq!(streamed.joined("/delta/thinking"), "Hm, 🤔.");
        assert_eq!(streamed.joined("/delta/signature"), "c2ln");
        assert_eq!(streamed.joined("/delta/partial_json"), r#"{"path":"ä.rs"}"#);
        let events = streamed.events();
        let usage = &events[0]["message"]["usage"];
        assert_eq!((&usage["input_tokens"], &usage["cache_read_input_tokens"]), (&json!(100), &json!(30)));
        assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");
        assert_eq!(events[events.len() - 2]["usage"]["output_tokens"], 20);
        assert_eq!(events[events.len() - 1]["type"], "message_stop");
    }
    let whole = ask(&provider, Format::Anthropic, false).json();
    assert_eq!(whole["content"][1], json!({"type": "text", "text": "Grüße, 世界 🌍!"}));
    assert_eq!(whole["content"][2]["input"], json!({"path": "ä.rs"}));
}

#[test]
fn chat_completions_speak_of_choices() {
    let provider = Provider::start(Format::OpenAiChat);
    provider.otherwise(full());
    for step in [full(), full().split_utf8()] {
        provider.script([step]);
        let streamed = ask(&provider, Format::OpenAiChat, true);
        assert_eq!(streamed.joined("/choices/0/delta/content"), "Grüße, 世界 🌍!");
        assert_eq!(streamed.joined("/choices/0/delta/reasoning_content"), "Hm, 🤔.");
        assert_eq!(streamed.joined("/choices/0/delta/tool_calls/0/function/arguments"), r#"{"path":"ä.rs"}"#);
        assert_eq!(streamed.joined("/choices/0/finish_reason"), "tool_calls");
        assert_eq!(streamed.data().last().map(String::as_str), Some("[DONE]"));
        let events = streamed.events();
        let usage = &events.last().expect("the usage")["usage"];
        assert_eq!((&usage["prompt_tokens"], &usage["completion_tokens"]), (&json!(137), &json!(20)));
        assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 30);
    }
    let whole = ask(&provider, Format::OpenAiChat, false).json();
    assert_eq!(whole["choices"][0]["message"]["content"], "Grüße, 世界 🌍!");
    assert_eq!(whole["usage"]["total_tokens"], 157);
}

#[test]
fn responses_speak_of_items() {
    let provider = Provider::start(Format::OpenAiResponses);
    provider.otherwise(full().stop(Stop::Length));
    for step in [full(), full().split_utf8()] {
        provider.script([step]);
        let streamed = ask(&provider, Format::OpenAiResponses, true);
        let events = streamed.events();
        let of = |kind: &str| -> String {
            let events = events.iter().filter(|event| event["type"] == kind);
            events.filter_map(|event| event["delta"].as_str()).collect()
        };
        assert_eq!(of("response.output_text.delta"), "Grüße, 世界 🌍!");
        assert_eq!(of("response.reasoning_summary_text.delta"), "Hm, 🤔.");
        assert_eq!(of("response.function_call_arguments.delta"), r#"{"path":"ä.rs"}"#);
        let numbers: Vec<u64> = events.iter().filter_map(|event| event["sequence_number"].as_u64()).collect();
        assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
        let end = events.last().expect("an end");
        assert_eq!((&end["type"], &end["response"]["status"]), (&json!("response.completed"), &json!("completed")));
        assert_eq!(end["response"]["output"][0]["encrypted_content"], "c2ln");
        assert_eq!(end["response"]["usage"]["input_tokens_details"]["cached_tokens"], 30);
    }
    let cut = ask(&provider, Format::OpenAiResponses, true);
    assert_eq!(cut.events().last().expect("an end")["type"], "response.incomplete");
    let whole = ask(&provider, Format::OpenAiResponses, false).json();
    assert_eq!(whole["incomplete_details"]["reason"], "max_output_tokens");
    let input = json!({"model": "m", "input": [{"role": "user", "content": "Hello"}]});
    let compacted = Client::to(&provider).ask("/v1/responses/compact", "", &input).json();
    assert_eq!(compacted["output"][0]["content"], "Hello");
    assert_eq!(compacted["output"][1]["type"], "compaction");
}

#[test]
fn google_speaks_of_candidates() {
    let provider = Provider::start(Format::Google);
    provider.otherwise(full());
    for step in [full(), full().split_utf8()] {
        provider.script([step]);
        let streamed = ask(&provider, Format::Google, true);
        let events = streamed.events();
        let parts: Vec<&Value> = events.iter().map(|event| &event["candidates"][0]["content"]["parts"][0]).collect();
        let texts = |thought: bool| -> String {
            let parts = parts.iter().filter(|part| (part["thought"] == true) == thought);
            parts.filter_map(|part| part["text"].as_str()).collect()
        };
        assert_eq!((texts(true), texts(false)), ("Hm, 🤔.".to_owned(), "Grüße, 世界 🌍!".to_owned()));
        assert_eq!(parts.iter().filter(|part| part["thoughtSignature"] == "c2ln").count(), 1);
        assert_eq!(parts[parts.len() - 2]["functionCall"]["args"], json!({"path": "ä.rs"}));
        let end = events.last().expect("an end");
        assert_eq!(end["candidates"][0]["finishReason"], "STOP");
        let usage = &end["usageMetadata"];
        assert_eq!((&usage["promptTokenCount"], &usage["cachedContentTokenCount"]), (&json!(137), &json!(30)));
        assert_eq!(usage["candidatesTokenCount"].as_u64().zip(usage["thoughtsTokenCount"].as_u64()), Some((19, 1)));
    }
    let whole = ask(&provider, Format::Google, false).json();
    assert_eq!(whole["candidates"][0]["content"]["parts"][1]["text"], "Grüße, 世界 🌍!");
    provider.script([Step::answer("no").stop(Stop::Refusal)]);
    assert_eq!(ask(&provider, Format::Google, false).json()["promptFeedback"]["blockReason"], "PROHIBITED_CONTENT");
}

#[test]
fn steps_come_in_order_on_one_connection() {
    for format in Format::ALL {
        let provider = Provider::start(format);
        provider.script([
            Step::rate_limited(3),
            Step::answer("one").usage(1, 2, 0, 0).numbers_as_strings(),
            Step::html_proxy(502),
            Step::answer("plain").json(),
        ]);
        provider.otherwise(|asked: &super::Asked| Step::answer(&format!("{} {}", asked.model(), asked.text())));
        let mut client = Client::to(&provider);
        let (path, body) = least(format, true);
        let limited = client.ask(path, VERSION, &body);
        assert_eq!(limited.status, 429);
        assert!(limited.headers.contains(&"retry-after: 3".to_owned()) && limited.json()["error"].is_object());
        let strings = client.ask(path, VERSION, &body).text();
        assert!(strings.contains(r#"":"2""#), "{strings}");
        let page = client.ask(path, VERSION, &body);
        assert!(page.status == 502 && page.text().starts_with("<!DOCTYPE"));
        let plain = client.ask(path, VERSION, &body);
        assert!(plain.headers.contains(&"content-type: application/json".to_owned()) && plain.json().is_object());
        let (path, body) = least(format, false);
        assert!(client.ask(path, VERSION, &body).text().contains("m Hello"));
        let asked = provider.wait_for(5);
        assert!(asked.iter().all(|one| one.connection == 0 && one.refused.is_none() && !one.closed_early));
        assert_eq!(asked[0].header("content-type"), Some("application/json"));
        assert_eq!(client.ask("/v2/nothing", VERSION, &body).status, 404);
    }
}

#[test]
fn a_window_is_enforced_in_the_providers_words() {
    let said = [
        (Format::Anthropic, "prompt is too long: 1001 tokens > 1000 maximum"),
        (Format::OpenAiChat, "maximum context length is 1000 tokens"),
        (Format::OpenAiResponses, "exceeds the context window"),
        (Format::Google, "input token count (1001) exceeds the maximum number of tokens allowed (1000)"),
    ];
    for (format, words) in said {
        let provider = Provider::start(format);
        provider.window(1000).script([Step::answer("It fits.")]);
        let (path, body) = least(format, false);
        let large = body.to_string().replace("Hello", &"x".repeat(4004));
        let mut client = Client::to(&provider);
        let refused = client.ask(path, VERSION, &serde_json::from_str(&large).expect("JSON"));
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains(words), "{}", refused.text());
        assert_eq!(provider.asked()[0].refused, Some(Trouble::Overflow));
        assert!(client.ask(path, VERSION, &body).text().contains("It fits."));
        assert!(ask(provider.script([Step::overflow()]), format, true).text().contains(&words[..20]));
    }
    let provider = Provider::start(Format::Anthropic);
    provider.window(1000).truncates(5);
    let (path, mut body) = least(Format::Anthropic, false);
    body["max_tokens"] = json!(1000);
    let refused = Client::to(&provider).ask(path, VERSION, &body).text();
    assert!(refused.contains("exceed context limit: 2 + 1000 > 1000"), "{refused}");
    body["max_tokens"] = json!(10);
    body["messages"][0]["content"] = json!("x".repeat(400));
    assert_eq!(Client::to(&provider).ask(path, VERSION, &body).json()["usage"]["input_tokens"], 5);
}

#[test]
fn a_key_is_required_where_the_format_has_it() {
    let keys = [
        (Format::Anthropic, "x-api-key: sk-1\r\n", 401),
        (Format::OpenAiChat, "Authorization: Bearer sk-1\r\n", 401),
        (Format::OpenAiResponses, "Authorization: Bearer sk-1\r\n", 401),
        (Format::Google, "x-goog-api-key: sk-1\r\n", 400),
    ];
    for (format, header, status) in keys {
        let provider = Provider::start(format);
        provider.key("sk-1");
        let (path, body) = least(format, false);
        assert_eq!(Client::to(&provider).ask(path, VERSION, &body).status, status);
        assert_eq!(Client::to(&provider).ask(path, &format!("{VERSION}{header}"), &body).status, 200);
    }
}

#[test]
fn what_the_provider_would_refuse_is_refused() {
    let call = |id: &str| json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "read", "input": {}}]});
    let result =
        |id: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"}]});
    let user = json!({"role": "user", "content": "Go on."});
    let marked = json!({"role": "user", "content": vec![json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}); 5]});
    let enabled = json!({"type": "enabled", "budget_tokens": 100});
    let chat_call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}]});
    let tool = json!({"role": "tool", "tool_call_id": "c", "content": "ok"});
    let item = json!({"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "ok"});
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let asks = json!({"role": "user", "parts": [{"text": "Hi"}]});
    let calls = json!({"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]});
    let answers = |name: &str| json!({"role": "user", "parts": [{"functionResponse": {"name": name, "response": {}}}]});
    let rows: Vec<(Format, &str, Value, &str)> = vec![
        (Format::Anthropic, "messages", json!([user, call("a"), result("a")]), ""),
        (Format::Anthropic, "messages", json!([call("a"), result("a")]), "first message"),
        (Format::Anthropic, "messages", json!([user, call("a"), user]), "were found without `tool_result`"),
        (Format::Anthropic, "messages", json!([user, call("a"), user, result("a")]), "were found without"),
        (Format::Anthropic, "messages", json!([user, result("a")]), "unexpected `tool_use_id`"),
        (Format::Anthropic, "messages", json!([user, call("a|b"), result("a|b")]), "should match pattern"),
        (
            Format::Anthropic,
            "messages",
            json!([{"role": "user", "content": [{"type": "text", "text": ""}]}]),
            "non-empty",
        ),
        (Format::Anthropic, "messages", json!([marked]), "A maximum of 4 blocks"),
        (Format::Anthropic, "max_tokens", Value::Null, "max_tokens"),
        (Format::Anthropic, "max_tokens", json!(5000), "5000 > 4096"),
        (Format::Anthropic, "tool_choice", json!({"type": "auto"}), "while providing tools"),
        (Format::Anthropic, "thinking", enabled, "greater than or equal to 1024"),
        (Format::Anthropic, "store", json!(false), "store: Extra inputs"),
        (Format::OpenAiChat, "messages", json!([user, chat_call, tool, user]), ""),
        (Format::OpenAiChat, "messages", json!([user, tool]), "must be a response to a preceeding"),
        (Format::OpenAiChat, "messages", json!([user, chat_call, user]), "must be followed by tool messages"),
        (Format::OpenAiChat, "messages", json!([user, {"role": "assistant", "content": null}]), "expected a string"),
        (Format::OpenAiChat, "max_output_tokens", json!(5), "Unrecognized request argument"),
        (Format::OpenAiChat, "max_tokens", json!(5000), "at most 4096"),
        (Format::OpenAiChat, "stream_options", json!({}), "only allowed when 'stream'"),
        (Format::OpenAiResponses, "input", json!([user, item, output]), ""),
        (Format::OpenAiResponses, "input", json!([user, item]), "No tool output found"),
        (Format::OpenAiResponses, "input", json!([user, output]), "No tool call found"),
        (
            Format::OpenAiResponses,
            "input",
            json!([user, reasoning, item, output]),
            "not found. Items are not persisted",
        ),
        (Format::OpenAiResponses, "store", json!(true), "Store must be"),
        (Format::OpenAiResponses, "previous_response_id", json!("resp_1"), "Previous response"),
        (Format::OpenAiResponses, "messages", json!([]), "Unknown parameter"),
        (Format::Google, "contents", json!([asks, calls, answers("read")]), ""),
        (Format::Google, "contents", json!([asks, calls, asks]), "number of function response parts"),
        (Format::Google, "contents", json!([asks, calls, answers("write")]), "names of the function responses"),
        (Format::Google, "contents", json!([asks, answers("read")]), "function response turn comes immediately"),
        (Format::Google, "contents", json!([calls, answers("read")]), "function call turn comes immediately"),
        (Format::Google, "contents", json!([{"role": "assistant", "parts": [{"text": "x"}]}]), "valid role"),
        (Format::Google, "messages", json!([]), "Unknown name"),
    ];
    for (format, field, value, words) in rows {
        let provider = Provider::start(format);
        provider.output_limit(4096);
        let (path, mut body) = least(format, false);
        body[field] = value;
        let answered = Client::to(&provider).ask(path, VERSION, &body);
        if words.is_empty() {
            assert_eq!(answered.status, 200, "{body}: {}", answered.text());
            continue;
        }
        assert!(matches!(answered.status, 400 | 404), "{body}");
        let message = answered.json()["error"]["message"].clone();
        assert!(message.as_str().is_some_and(|message| message.contains(words)), "{body}: {message}");
        provider.strict(false);
        assert_eq!(Client::to(&provider).ask(path, VERSION, &body).status, 200, "{body}");
    }
}

#[test]
fn streams_break_as_they_are_told_to() {
    for format in Format::ALL {
        let provider = Provider::start(format);
        let text = Step::answer("one two three").pieces(3).drip(1);
        provider.script([
            text.clone(),
            text.clone().cut_after(2),
            text.clone().ends_clean_without_end_event(),
            text.clone().without_last_event(),
            text.clone().malformed_event(),
            text.clone().error_in_stream(Trouble::Overloaded),
            Step::empty(),
            Step::only_thinking(),
            Step::error_in_200(Trouble::Overflow),
        ]);
        let next = || ask(&provider, format, true);
        let (whole, cut, endless, markless, malformed) = (next(), next(), next(), next(), next());
        assert!(whole.whole && !cut.whole && endless.whole && markless.whole && malformed.whole);
        assert_eq!(cut.data().len(), 2);
        let ends = if format == Format::Google || format == Format::OpenAiResponses { 1 } else { 2 };
        assert!(endless.data().len() <= whole.data().len() - ends);
        assert_eq!(markless.data().len(), whole.data().len() - 1);
        assert_eq!(malformed.events().len(), whole.events().len());
        assert_eq!(malformed.data().len(), whole.data().len() + 1);
        let failed = next();
        let end = failed.events().pop().expect("an error");
        assert!(end["error"].is_object() || end["response"]["error"].is_object(), "{end}");
        assert!(failed.text().contains("one") && !failed.text().contains("three"));
        assert!(next().whole && next().whole);
        let odd = next();
        assert!(odd.status == 200 && odd.json()["error"].is_object());
    }
}

#[test]
fn it_sees_that_a_client_left_and_lets_nobody_wait_for_it() {
    for format in Format::ALL {
        let provider = Provider::start(format);
        provider.script([
            Step::hang(),
            Step::endless(),
            Step::answer("x").hang_after(1),
            Step::answer("y").drip(60_000),
        ]);
        let (path, body) = least(format, true);
        for at in 0..4 {
            let mut client = Client::to(&provider);
            client.send(path, VERSION, &body);
            provider.wait_for(at + 1);
            if at > 0 {
                // Something was said before it left.
                assert!(client.line().is_some_and(|line| line.contains("200")));
            }
            assert!(!provider.asked()[at].closed_early);
            drop(client);
            assert!(!provider.wait_for_close(at)[at].complete);
        }
        provider.script([Step::hang()]);
        let mut client = Client::to(&provider);
        client.send(path, VERSION, &body);
        provider.wait_for(5);
        drop(provider);
        assert!(client.line().is_none());
    }
}
