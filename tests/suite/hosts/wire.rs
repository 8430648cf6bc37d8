//! The messages of a host in each wire format, and a connection to its provider.

use crate::provider::{Format, Provider};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
};

/// Header of a refusal that the provider's window does not explain.
pub const FAULT: &str = "x-fault";

/// A kept connection to a provider.
pub struct Connection {
    address: SocketAddr,
    socket: BufReader<TcpStream>,
    format: Format,
}

/// A response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub text: String,
    /// Whether the response has the header [`FAULT`].
    pub fault: bool,
}

impl Connection {
    pub fn to(provider: &Provider, format: Format) -> Self {
        let address = provider.address();
        Self { address, socket: connected(address), format }
    }

    /// Sends a request. The answer is none if the connection ends in the middle of it; the next request has a new one.
    pub fn post(&mut self, model: &str, body: &Value) -> Option<Response> {
        let (path, body) = (self.format.path(model), body.to_string());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nanthropic-version: 2023-06-01\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.socket.get_mut().write_all((head + &body).as_bytes()).expect("the provider reads");
        let status = self.line().split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let (mut length, mut fault) = (0, false);
        loop {
            let line = self.line();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().expect("a number");
            }
            fault |= line.starts_with(FAULT);
        }
        let mut body = vec![0; length];
        if self.socket.read_exact(&mut body).is_err() {
            self.socket = connected(self.address);
            return None;
        }
        Some(Response { status, text: String::from_utf8(body).expect("text"), fault })
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.socket.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }
}

fn connected(address: SocketAddr) -> BufReader<TcpStream> {
    let socket = TcpStream::connect(address).expect("a connection");
    socket.set_nodelay(true).expect("a socket");
    BufReader::new(socket)
}

/// The end of an answer, as a host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Whole,
    Length,
}

/// A call in an answer.
#[derive(Debug, Clone)]
pub struct Call {
    /// Empty where the format has none.
    pub id: String,
    pub name: String,
}

/// An answer, taken apart as a host does it.
pub struct Answer {
    /// Messages or items for the session.
    pub messages: Vec<Value>,
    /// Fields of `session/append` beside them.
    pub beside: Value,
    pub calls: Vec<Call>,
    pub ended: Ended,
}

/// A request of the user.
pub fn user(format: Format, text: &str) -> Value {
    match format {
        Format::Anthropic | Format::OpenAiChat => json!({"role": "user", "content": text}),
        Format::OpenAiResponses => {
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
        }
        Format::Google => json!({"role": "user", "parts": [{"text": text}]}),
    }
}

/// The results of the calls of an answer.
pub fn results(format: Format, calls: &[Call], texts: &[String]) -> Vec<Value> {
    let each = calls.iter().zip(texts);
    match format {
        Format::Anthropic => {
            let block = |(call, text): (&Call, &String)| json!({"type": "tool_result", "tool_use_id": call.id, "content": text});
            vec![json!({"role": "user", "content": each.map(block).collect::<Vec<_>>()})]
        }
        Format::OpenAiChat => {
            each.map(|(call, text)| json!({"role": "tool", "tool_call_id": call.id, "content": text})).collect()
        }
        Format::OpenAiResponses => each
            .map(|(call, text)| json!({"type": "function_call_output", "call_id": call.id, "output": text}))
            .collect(),
        Format::Google => {
            let part = |(call, text): (&Call, &String)| json!({"functionResponse": {"name": call.name, "response": {"output": text}}});
            vec![json!({"role": "user", "parts": each.map(part).collect::<Vec<_>>()})]
        }
    }
}

/// Takes an answer apart.
pub fn answer(format: Format, body: &Value) -> Answer {
    let texts = |values: Option<&Vec<Value>>, kind: &str| -> Vec<Value> {
        values.into_iter().flatten().filter(|value| value["type"] == kind).cloned().collect()
    };
    let call = |id: &Value, name: &Value| Call {
        id: id.as_str().unwrap_or_default().to_owned(),
        name: name.as_str().expect("a name").to_owned(),
    };
    let (messages, usage, stop, calls) = match format {
        Format::Anthropic => {
            let calls = texts(body["content"].as_array(), "tool_use");
            let calls = calls.iter().map(|block| call(&block["id"], &block["name"])).collect();
            let message = json!({"role": "assistant", "content": body["content"]});
            (vec![message], &body["usage"], &body["stop_reason"], calls)
        }
        Format::OpenAiChat => {
            let choice = &body["choices"][0];
            let calls = choice["message"]["tool_calls"].as_array().into_iter().flatten();
            let calls = calls.map(|it| call(&it["id"], &it["function"]["name"])).collect();
            (vec![choice["message"].clone()], &body["usage"], &choice["finish_reason"], calls)
        }
        Format::OpenAiResponses => {
            let calls = texts(body["output"].as_array(), "function_call");
            let calls = calls.iter().map(|item| call(&item["call_id"], &item["name"])).collect();
            (body["output"].as_array().expect("items").clone(), &body["usage"], &body["status"], calls)
        }
        Format::Google => {
            let candidate = &body["candidates"][0];
            let parts = candidate["content"]["parts"].as_array().into_iter().flatten();
            let calls = parts.filter_map(|part| part.get("functionCall"));
            let calls = calls.map(|it| call(&it["id"], &it["name"])).collect();
            (vec![candidate["content"].clone()], &body["usageMetadata"], &candidate["finishReason"], calls)
        }
    };
    let stop_reason = stop.as_str().expect("a stop reason");
    let ended = match stop_reason {
        "max_tokens" | "model_context_window_exceeded" | "length" | "incomplete" | "MAX_TOKENS" => Ended::Length,
        _ => Ended::Whole,
    };
    Answer { messages, beside: json!({"usage": usage, "stopReason": stop_reason}), calls, ended }
}
