//! The dialect that each model name leads to, seen in the bodies of requests: thinking, limits, ids, cache keys, and
//! replayed reasoning.

use abridged::{
    models::dialects,
    provider::{Api, Cache, Delivery, Effort, Part, Reasoning, Request, ToolOutcome, Turn, codec},
};
use serde_json::{Value, json};

const OFF: Reasoning = Reasoning::Off;
const UNSAID: Reasoning = Reasoning::Unsaid;
const MINIMAL: Reasoning = Reasoning::Effort(Effort::Minimal);
const LOW: Reasoning = Reasoning::Effort(Effort::Low);
const MEDIUM: Reasoning = Reasoning::Effort(Effort::Medium);
const HIGH: Reasoning = Reasoning::Effort(Effort::High);
const HIGHEST: Reasoning = Reasoning::Effort(Effort::Highest);

/// A request of 1,000 tokens for a model.
fn request(model: &str) -> Request {
    Request {
        model: dialects::model(model),
        turns: vec![Turn::user("Hi")],
        max_tokens: Some(1_000),
        cache: Cache::Prefix("session".to_owned()),
        ..Request::default()
    }
}

fn body(api: Api, request: &Request) -> Value {
    codec::encode(api, request, Delivery::Whole).body
}

/// A conversation with a signed thought, a call and its result, at whose end an answer stands.
fn conversation() -> Vec<Turn> {
    let thought = Part::Thinking { text: "hm".to_owned(), signature: Some("U2ln".to_owned()), redacted: false };
    let call =
        Part::Call { id: "call_1".to_owned(), name: "f".to_owned(), arguments: "{}".to_owned(), signature: None };
    let image = Part::Image { mime: "image/png".to_owned(), data: "AAAA".to_owned() };
    let outcome = ToolOutcome { call: "call_1".to_owned(), name: "f".to_owned(), parts: vec![image], is_error: false };
    vec![
        Turn::user("Go"),
        Turn::Assistant(vec![thought, call]),
        Turn::Result(outcome),
        Turn::Assistant(vec![Part::text("So far")]),
    ]
}

fn tools() -> Vec<Value> {
    vec![json!({ "name": "f" })]
}

#[test]
fn thinking_at_anthropic() {
    let enabled = |budget: u64| json!({ "type": "enabled", "budget_tokens": budget });
    let adaptive = || json!({ "type": "adaptive" });
    let disabled = || json!({ "type": "disabled" });
    let none = Value::Null;
    let plain = |max: u64| json!([max, null, null]);
    let told = |model: &str, reasoning: Reasoning| {
        let body = body(Api::Anthropic, &Request { reasoning, ..request(model) });
        json!([body["max_tokens"], body.get("thinking"), body["output_config"].get("effort")])
    };
    let row = |models: &[&str], off: Value, low: Value, highest: Value| {
        for model in models {
            assert_eq!(told(model, UNSAID), plain(1_000), "{model}");
            assert_eq!(told(model, OFF), off, "{model} off");
            assert_eq!(told(model, LOW), low, "{model} low");
            assert_eq!(told(model, HIGHEST), highest, "{model} highest");
        }
    };
    row(
        &[
            "claude-2.1",
            "claude-3-opus-20240229",
            "anthropic.claude-3-5-sonnet-20241022-v2:0",
            "claude-3-5-haiku-latest",
        ],
        plain(1_000),
        plain(1_000),
        plain(1_000),
    );
    row(
        &[
            "claude-3-7-sonnet-latest",
            "claude-sonnet-4@20250514",
            "claude-sonnet-4-5",
            "claude-opus-4-1-20250805",
            "anthropic/claude-haiku-4.5",
            "MiniMax-M2",
            "kimi-k2.5",
            "anything",
        ],
        plain(1_000),
        // Thinking leaves 1,024 tokens for the answer.
        json!([5_096, enabled(4_072), none]),
        json!([25_576, enabled(24_552), none]),
    );
    let (low, highest) = (json!([5_096, adaptive(), "low"]), json!([25_576, adaptive(), "max"]));
    row(
        &["claude-opus-4-6", "anthropic/claude-opus-4.6", "claude-sonnet-4-6", "claude-opus-4-8"],
        plain(1_000),
        low.clone(),
        highest.clone(),
    );
    row(
        &[
            "claude-opus-5",
            "us.anthropic.claude-opus-5-v1:0",
            "claude-sonnet-5",
            "claude-haiku-5",
            "claude-haiku-5-5",
            "claude-opus-latest",
        ],
        json!([1_000, disabled(), none]),
        low.clone(),
        highest.clone(),
    );
    row(&["claude-sonnet-5-5"], json!([1_000, { "type": "between_tools" }, none]), low.clone(), highest.clone());
    row(
        &[
            "claude-opus-5-5",
            "claude-fable-5",
            "claude-fable-5-1",
            "claude-mythos-preview",
            "claude-opus-6",
            "claude-haiku-6",
        ],
        json!([5_096, none, "low"]),
        low,
        highest,
    );
}

#[test]
fn replayed_thinking_and_continued_answers_at_anthropic() {
    let row = |models: &[&str], replays: bool, continues: bool| {
        for model in models {
            let request = Request { turns: conversation(), ..request(model) };
            let messages = body(Api::Anthropic, &request)["messages"].clone();
            let messages = messages.as_array().expect("messages");
            let first = &messages[1]["content"][0]["type"];
            assert_eq!(first, if replays { "thinking" } else { "tool_use" }, "{model}");
            let last = &messages[messages.len() - 1]["role"];
            assert_eq!(last, if continues { "assistant" } else { "user" }, "{model}");
        }
    };
    row(&["claude-3-opus-20240229", "claude-sonnet-4-5", "MiniMax-M2", "anything"], true, true);
    row(&["claude-opus-4-6", "claude-opus-5", "claude-mythos-preview", "claude-fable-5"], true, false);
    row(&["claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-1", "claude-opus-6"], false, false);
}

#[test]
fn efforts_at_openai_chat() {
    // For no word, off, minimal, low, medium, high and highest; without tools, then with tools.
    let row = |models: &[&str], plain: [&str; 7], tooled: [&str; 7]| {
        for model in models {
            for (tools, expected) in [(Vec::new(), plain), (tools(), tooled)] {
                let all = [UNSAID, OFF, MINIMAL, LOW, MEDIUM, HIGH, HIGHEST];
                let found = all.map(|reasoning| {
                    let request = Request { reasoning, tools: tools.clone(), ..request(model) };
                    body(Api::OpenaiChat, &request)["reasoning_effort"].as_str().unwrap_or("").to_owned()
                });
                assert_eq!(found, expected, "{model}, {} tools", tools.len());
            }
        }
    };
    const NOTHING: [&str; 7] = [""; 7];
    const NONE: [&str; 7] = ["none"; 7];
    const TO_HIGH: [&str; 7] = ["", "low", "low", "low", "medium", "high", "high"];
    row(
        &[
            "llama3",
            "qwen3:8b",
            "gpt-4o",
            "gpt-4.1-mini",
            "gpt-35-turbo",
            "gpt-3.5-turbo",
            "chatgpt-4o-latest",
            "grok-4",
            "mistral-small",
            "glm-5",
            "kimi-k2.5",
            "olmo-3",
            "o1-mini",
            "o1-preview",
            "o3-pro",
            "o3-deep-research",
            "gpt-5-chat-latest",
            "gpt-5-pro",
            "gpt-5.2-chat-latest",
            "gpt-5.4-pro",
            "ft:gpt-5",
            "gpt-daybreak",
        ],
        NOTHING,
        NOTHING,
    );
    row(
        &["o1", "o3-mini", "openai/o4-mini", "gpt-5.1-codex", "gpt-5-codex", "openai/gpt-oss-120b", "gpt-oss:20b"],
        TO_HIGH,
        TO_HIGH,
    );
    row(&["gpt-5.2-codex", "gpt-5.3-codex"], TO_HIGH, ["low", "low", "low", "low", "medium", "high", "high"]);
    let five = ["", "minimal", "minimal", "low", "medium", "high", "high"];
    row(&["gpt-5", "gpt-5-2025-08-07", "gpt-5-nano", "azure/GPT-5"], five, five);
    let next = ["", "none", "low", "low", "medium", "high", "high"];
    row(&["gpt-5.1", "gpt-5.1-2025-11-13"], next, next);
    row(
        &["gpt-5.2", "openai/gpt-5.4", "gpt-5.6-terra", "gpt-6"],
        ["", "none", "low", "low", "medium", "high", "xhigh"],
        NONE,
    );
    let asked = ["", "", "low", "low", "medium", "high", "high"];
    row(&["deepseek-v4-flash", "google/gemini-3-pro", "anthropic/claude-opus-4.6"], asked, asked);
}

#[test]
fn limits_cache_keys_and_ids_at_openai_chat() {
    let row = |models: &[&str], completion: Option<u64>, cached: bool, id: &str, replays: bool| {
        for model in models {
            let request = Request { turns: conversation(), reasoning: LOW, ..request(model) };
            let body = body(Api::OpenaiChat, &request);
            let old = if completion.is_none() { Some(1_000) } else { None };
            assert_eq!(body["max_completion_tokens"].as_u64(), completion, "{model}");
            assert_eq!(body["max_tokens"].as_u64(), old, "{model}");
            assert_eq!(body.get("prompt_cache_key").is_some(), cached, "{model}");
            let answer = &body["messages"][1];
            assert_eq!(answer["tool_calls"][0]["id"].as_str().map(str::len), Some(id.len()), "{model}");
            assert_eq!(answer.get("reasoning_content").is_some(), replays, "{model}");
        }
    };
    const ID: &str = "call_1";
    const NINE: &str = "123456789";
    row(&["gpt-5.2", "o3", "gpt-5.1-codex", "gpt-7"], Some(1_000 + 4_096), true, ID, false);
    row(&["gpt-5-chat-latest", "gpt-5-pro", "o1-mini"], Some(1_000), true, ID, false);
    row(&["gpt-4o-mini", "chatgpt-4o-latest", "gpt-4.1", "gpt-35-turbo"], None, true, ID, false);
    row(&["gpt-oss:20b", "olmo-3", "gpt-daybreak", "ft:gpt-4o", "claude-opus-4.6", "llama3"], None, false, ID, false);
    row(&["deepseek-v4-pro", "moonshotai/Kimi-K2.5", "deepseek/r9"], None, false, ID, true);
    row(&["mistralai/devstral-small", "codestral-latest", "mixtral-8x7b"], None, false, NINE, false);
}

#[test]
fn efforts_at_openai_responses() {
    // For no word, off, minimal, low, medium, high and highest; then whether reasoning is asked for where no word is said.
    let row = |models: &[&str], expected: [&str; 7], thinks: bool| {
        for model in models {
            let all = [UNSAID, OFF, MINIMAL, LOW, MEDIUM, HIGH, HIGHEST];
            let found = all.map(|reasoning| {
                let body = body(Api::OpenaiResponses, &Request { reasoning, ..request(model) });
                let effort = body["reasoning"]["effort"].as_str().unwrap_or("").to_owned();
                let summary = body["reasoning"]["summary"] == "auto";
                assert_eq!(summary, !effort.is_empty() && matches!(reasoning, Reasoning::Effort(_)), "{model}");
                effort
            });
            assert_eq!(found, expected, "{model}");
            let asked =
                |reasoning| body(Api::OpenaiResponses, &Request { reasoning, ..request(model) })["include"].is_array();
            assert_eq!((asked(UNSAID), asked(OFF), asked(HIGH)), (thinks, thinks, !expected[5].is_empty()), "{model}");
        }
    };
    row(
        &[
            "gpt-3.5-turbo",
            "gpt-4",
            "gpt-4o-mini",
            "gpt-4.1",
            "gpt-4.5-preview",
            "o1-mini",
            "o1-preview",
            "o3-deep-research",
            "o4-mini-deep-research",
            "gpt-5-search-api",
            "gpt-5-chat-latest",
            "chatgpt-4o-latest",
            "ft:gpt-4o-2024-08-06:me::1",
        ],
        [""; 7],
        false,
    );
    row(
        &[
            "o1",
            "o1-pro",
            "o3-mini",
            "ft:o4-mini-2025-04-16:me::1",
            "codex-mini-latest",
            "gpt-oss:20b",
            "gpt-5-codex",
            "gpt-5.1-codex",
            "gpt-5.3",
            "gpt-6.1-sol",
            "gpt-7",
        ],
        ["", "low", "low", "low", "medium", "high", "high"],
        true,
    );
    row(&["gpt-5-pro", "gpt-5-pro-2025-10-06"], ["", "high", "high", "high", "high", "high", "high"], true);
    row(
        &["gpt-5", "openai/gpt-5-mini-2025-08-07", "GPT-5"],
        ["", "minimal", "minimal", "low", "medium", "high", "high"],
        true,
    );
    row(
        &["gpt-5.1-codex-max", "gpt-5.2-codex", "gpt-5.3-codex"],
        ["", "low", "low", "low", "medium", "high", "xhigh"],
        true,
    );
    row(&["gpt-5.1"], ["", "none", "low", "low", "medium", "high", "high"], true);
    row(
        &["gpt-5.2-pro", "gpt-5.4-pro", "gpt-5.5-pro"],
        ["", "medium", "medium", "medium", "medium", "high", "xhigh"],
        true,
    );
    row(&["gpt-5.2", "gpt-5.4-mini", "gpt-5.5"], ["", "none", "low", "low", "medium", "high", "xhigh"], true);
    row(
        &["gpt-5.6-luna", "gpt-5.6-sol", "gpt-5.6-terra", "gpt-6-luna", "gpt-6-sol", "gpt-6.1-terra", "gpt-daybreak"],
        ["", "none", "low", "low", "medium", "high", "max"],
        true,
    );
    row(&["gpt-7-pro", "gpt-5.9-pro"], ["", "medium", "medium", "medium", "medium", "high", "high"], true);
    row(&["qwen3", "grok-4", "llama", "o5", "gpt-4.2"], ["", "", "low", "low", "medium", "high", "high"], false);
}

#[test]
fn thinking_at_google() {
    // For off, minimal, low, medium, high and highest.
    let row = |models: &[&str], expected: [Value; 6]| {
        for model in models {
            let told = |reasoning| {
                let body = body(Api::Google, &Request { reasoning, ..request(model) });
                let config = &body["generationConfig"]["thinkingConfig"];
                let shows = matches!(reasoning, Reasoning::Effort(_)) && !config.is_null();
                assert_eq!(config["includeThoughts"], if shows { json!(true) } else { Value::Null }, "{model}");
                let said = [&config["thinkingLevel"], &config["thinkingBudget"]].into_iter().find(|it| !it.is_null());
                said.cloned().unwrap_or(Value::Null)
            };
            assert_eq!(told(UNSAID), Value::Null, "{model}");
            assert_eq!([OFF, MINIMAL, LOW, MEDIUM, HIGH, HIGHEST].map(told), expected, "{model}");
        }
    };
    let all = |words: [&str; 6]| words.map(|word| if word.is_empty() { Value::Null } else { word.into() });
    let budgets = |tokens: [u64; 6]| tokens.map(Value::from);
    row(
        &[
            "gemini-1.5-pro",
            "gemini-2.0-flash",
            "gemini-2.5-flash-image",
            "gemini-3-pro-image-preview",
            "gemini-2.5-flash-preview-tts",
            "gemini-live-2.5-flash",
            "gemini-2.5-computer-use-preview-10-2025",
            "gemini-exp-1206",
            "gemini-robotics-er-2-preview",
            "gemma-3-27b-it",
            "llama",
            "",
        ],
        all([""; 6]),
    );
    row(
        &["gemini-2.5-flash", "models/gemini-2.5-flash", "gemini-2.5-flash-preview-09-2025"],
        budgets([0, 128, 1_024, 8_192, 24_576, 24_576]),
    );
    row(&["gemini-2.5-flash-lite"], budgets([0, 512, 1_024, 8_192, 24_576, 24_576]));
    row(&["gemini-2.5-pro", "gemini-2.5-pro-preview-05-06"], budgets([128, 128, 1_024, 8_192, 24_576, 32_768]));
    row(&["gemini-3-pro-preview"], all(["LOW", "LOW", "LOW", "HIGH", "HIGH", "HIGH"]));
    row(
        &["gemini-3-flash-preview", "gemini-3.1-flash-lite", "gemini-3.6-flash"],
        all(["MINIMAL", "MINIMAL", "LOW", "MEDIUM", "HIGH", "HIGH"]),
    );
    row(
        &[
            "gemini-3.1-pro-preview",
            "gemini-3.7-flash",
            "gemini-3.8-flash",
            "gemini-flash-latest",
            "gemini-pro-latest",
            "gemini-flash-lite-latest",
            "gemini-3-flash-latest",
            "gemini-4-argon",
            "publishers/google/models/gemini-3.1-pro-preview",
        ],
        all(["LOW", "LOW", "LOW", "MEDIUM", "HIGH", "HIGH"]),
    );
    row(&["gemma-4-31b-it", "gemma4"], all(["MINIMAL", "MINIMAL", "HIGH", "HIGH", "HIGH", "HIGH"]));
}

/// Since the third generation calls have ids and foreign calls a signature, and a result shows its images.
#[test]
fn calls_at_google() {
    let row = |models: &[&str], newer: bool| {
        for model in models {
            let request = Request { turns: conversation(), ..request(model) };
            let contents = body(Api::Google, &request)["contents"].clone();
            let call = contents[1]["parts"].as_array().and_then(|parts| parts.last()).expect("a call");
            assert_eq!(call["functionCall"].get("id").is_some(), newer, "{model}");
            assert_eq!(call.get("thoughtSignature").is_some(), newer, "{model}");
            let result = &contents[2]["parts"][0]["functionResponse"];
            assert_eq!((result.get("id").is_some(), result.get("parts").is_some()), (newer, newer), "{model}");
        }
    };
    row(&["gemini-1.5-pro", "gemini-2.5-pro", "gemini-live-2.5-flash", "gemma-4-31b-it", "llama"], false);
    row(
        &[
            "gemini-3-pro-preview",
            "gemini-3-pro-image-preview",
            "gemini-flash-latest",
            "gemini-4-argon",
            "models/gemini-3.1-pro-preview",
        ],
        true,
    );
}
