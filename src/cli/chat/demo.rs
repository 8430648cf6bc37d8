//! The model of `abridged chat --demo`: it answers from what it was sent, so that a person sees what a compaction keeps.

use serde_json::{Value, json};

/// The window of the model, in tokens.
const WINDOW: u64 = 6_000;

/// The settings with the model.
pub(super) fn settings() -> Value {
    let model =
        json!({"provider": "demo", "id": "echo", "api": "client", "contextWindow": WINDOW, "maxOutputTokens": 800});
    json!({"models": [model], "defaultModel": "demo/echo", "compaction": {"keepRecentTokens": 1_200}})
}

/// The answer to a request. Only turns are answered: the summaries are extracted.
pub(super) fn answer(params: &Value) -> Value {
    if params["purpose"] != "turn" {
        return json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "it writes no summaries"});
    }
    let messages = params["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<String> = messages.iter().filter(|message| message["role"] == "user").map(text_of).collect();
    let newest = texts.last().map(String::as_str).unwrap_or_default();
    let first = texts.first().map(String::as_str).unwrap_or_default();
    let text = format!(
        "You said: {}\n\nMessages that I was sent: {}. The first one begins with: {}\n\n{}",
        beginning(newest, 200),
        messages.len(),
        beginning(first, 120),
        "This paragraph only fills the window, so that a compaction comes after some messages. ".repeat(30)
    );
    json!({"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop"})
}

fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks.as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect(),
    }
}

/// The beginning of a text, on one line.
fn beginning(text: &str, most: usize) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(most).collect()
}
