//! The messages of a host, in each form that the daemon reads.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// pi's messages. Frameworks with counts of their own report in this form.
    Plain,
    Anthropic,
    Chat,
    Responses,
    Google,
}

impl Dialect {
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "messages",
            Self::Anthropic => "anthropic",
            Self::Chat => "openai_chat",
            Self::Responses => "openai_responses",
            Self::Google => "google",
        }
    }

    pub fn user(self, text: &str) -> Value {
        match self {
            Self::Plain | Self::Anthropic | Self::Chat => json!({"role": "user", "content": text}),
            Self::Responses => {
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
            }
            Self::Google => json!({"role": "user", "parts": [{"text": text}]}),
        }
    }

    /// A request with an image of 750 × 750 pixels.
    pub fn user_with_image(self, text: &str) -> Value {
        let data = image();
        match self {
            Self::Plain => json!({"role": "user", "content": [{"type": "text", "text": text},
                {"type": "image", "mimeType": "image/png", "data": data}]}),
            Self::Anthropic => json!({"role": "user", "content": [{"type": "text", "text": text},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}]}),
            Self::Chat => json!({"role": "user", "content": [{"type": "text", "text": text},
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}}]}),
            Self::Responses | Self::Google => unimplemented!("no row sends images in this form"),
        }
    }

    /// The result of a call.
    pub fn result(self, call: &str, text: &str) -> Value {
        match self {
            Self::Plain => json!({"role": "toolResult", "toolCallId": call, "toolName": "read", "isError": false,
                "content": [{"type": "text", "text": text}]}),
            Self::Anthropic => {
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]})
            }
            Self::Chat => json!({"role": "tool", "tool_call_id": call, "content": text}),
            Self::Responses => json!({"type": "function_call_output", "call_id": call, "output": text}),
            Self::Google => {
                json!({"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": text}}}]})
            }
        }
    }

    /// The params of `session/append` for an answer: its text, perhaps a call and thinking, and its usage.
    pub fn answer(self, text: &str, call: Option<&str>, thinking: Option<&str>, usage: &Value) -> Value {
        let path = json!({"path": "src/parser.rs"});
        let called = |block: Value| call.map(|_| block);
        let messages = match self {
            Self::Plain => {
                let thought =
                    thinking.map(|text| json!({"type": "thinking", "thinking": text, "thinkingSignature": "c2ln"}));
                let stop = if call.is_some() { "toolUse" } else { "stop" };
                let call = called(json!({"type": "toolCall", "id": call, "name": "read", "arguments": path}));
                let blocks = [thought, Some(json!({"type": "text", "text": text})), call];
                let blocks: Vec<Value> = blocks.into_iter().flatten().collect();
                let mut answer = json!({"role": "assistant", "content": blocks, "stopReason": stop});
                if !usage.is_null() {
                    answer["usage"] = usage.clone();
                }
                return json!({"messages": [answer]});
            }
            Self::Anthropic => {
                let thought = thinking.map(|text| json!({"type": "thinking", "thinking": text, "signature": "c2ln"}));
                let called = called(json!({"type": "tool_use", "id": call, "name": "read", "input": path}));
                let blocks = [thought, Some(json!({"type": "text", "text": text})), called];
                let blocks: Vec<Value> = blocks.into_iter().flatten().collect();
                vec![json!({"role": "assistant", "content": blocks})]
            }
            Self::Chat => {
                let mut answer = json!({"role": "assistant", "content": text});
                if call.is_some() {
                    let function = json!({"name": "read", "arguments": path.to_string()});
                    answer["tool_calls"] = json!([{"id": call, "type": "function", "function": function}]);
                }
                vec![answer]
            }
            Self::Responses => {
                let said =
                    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
                let call =
                    json!({"type": "function_call", "call_id": call, "name": "read", "arguments": path.to_string()});
                [Some(said), called(call)].into_iter().flatten().collect()
            }
            Self::Google => {
                let call = called(json!({"functionCall": {"name": "read", "args": path}}));
                let parts: Vec<Value> = [Some(json!({"text": text})), call].into_iter().flatten().collect();
                vec![json!({"role": "model", "parts": parts})]
            }
        };
        let stop = match self {
            Self::Plain | Self::Responses => "completed",
            Self::Anthropic if call.is_some() => "tool_use",
            Self::Anthropic => "end_turn",
            Self::Chat if call.is_some() => "tool_calls",
            Self::Chat => "stop",
            Self::Google => "STOP",
        };
        json!({"messages": messages, "usage": usage, "stopReason": stop})
    }
}

impl Dialect {
    /// The size of the prompt by a report, in tokens.
    pub fn prompt(self, usage: &Value) -> u64 {
        let parts: &[&str] = match self {
            Self::Plain => &["input", "cacheRead", "cacheWrite"],
            Self::Anthropic => &["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"],
            Self::Chat => &["prompt_tokens"],
            Self::Responses => &["input_tokens"],
            Self::Google => &["promptTokenCount"],
        };
        parts.iter().filter_map(|part| usage[part].as_u64()).sum()
    }
}

/// The head of a PNG of 750 × 750 pixels, in base64.
fn image() -> String {
    format!("iVBORw0KGgoAAAANSUhEUgAAAu4AAALuCAYAAAAA{}", "A".repeat(400))
}
