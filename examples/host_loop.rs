//! A host with an agent loop of its own: it runs the model and the tools, and abridged keeps the session in the window.
//! Usage: `host_loop BASE_URL MODEL WINDOW [ABRIDGED] < requests of the user, one a line`
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a program reads its arguments and prints")]
use serde_json::{Value, json};
use std::{error::Error, io, io::prelude::*, process::Command, process::Stdio};

/// Sends a request to the provider and returns its answer as an assistant message. The error is the provider's text.
fn ask(base_url: &str, request: &Value) -> Result<Value, Box<dyn Error>> {
    let url = format!("{base_url}/chat/completions");
    let args = ["-s", "-w", "%{errormsg}", "-H", "content-type: application/json", "--data-binary", "@-", &url];
    let mut curl = Command::new("curl").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    write!(curl.stdin.take().ok_or("no pipe")?, "{request}")?;
    let text = String::from_utf8(curl.wait_with_output()?.stdout)?;
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    let choice = answer["choices"].get(0).ok_or(text)?;
    let mut content = vec![json!({"type": "text", "text": choice["message"]["content"].as_str().unwrap_or("")})];
    for it in choice["message"]["tool_calls"].as_array().into_iter().flatten() {
        let args: Value = serde_json::from_str(it["function"]["arguments"].as_str().unwrap_or("{}"))?;
        content.push(json!({"type": "toolCall", "id": it["id"], "name": it["function"]["name"], "arguments": args}));
    }
    let reason = choice["finish_reason"].as_str().unwrap_or("stop").replace("tool_calls", "toolUse");
    let usage = json!({"input": answer["usage"]["prompt_tokens"], "output": answer["usage"]["completion_tokens"]});
    Ok(json!({"role": "assistant", "content": content, "stopReason": reason, "usage": usage}))
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, url, model, window, program @ ..] = args.as_slice() else { return Err("see the usage".into()) };
    let mut daemon = Command::new(program.first().map_or("abridged", String::as_str));
    let mut daemon = daemon.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (requests, frames) = daemon.stdin.as_mut().zip(daemon.stdout.take()).ok_or("no pipes")?;
    let mut frames = io::BufReader::new(frames).lines().map_while(|line| serde_json::from_str(&line.ok()?).ok());
    // Sends a request to the daemon, with the method as its id, and returns its result. Events before it are skipped.
    let mut call = |method: &str, params: Value| -> Result<Value, Box<dyn Error>> {
        writeln!(requests, "{}", json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))?;
        let answer: Value = frames.find(|frame: &Value| frame["id"] == method).ok_or("the daemon ended")?;
        answer.get("error").map_or_else(|| Ok(answer["result"].clone()), |error| Err(error.to_string().into()))
    };
    call("initialize", json!({"protocolVersion": 1}))?;
    let tool = json!({"name": "read", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}});
    let (name, size) = (format!("local/{model}"), window.parse::<u64>()?);
    let model = json!({"provider": "local", "id": model, "api": "openai_chat", "baseUrl": url, "contextWindow": size});
    let new = json!({"cwd": std::env::current_dir()?, "model": name, "tools": [tool], "settings": {"models": [model]}});
    let id = call("session/new", new)?["session"]["sessionId"].take();
    let failed = |error| json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": error});
    let result = |tool: &Value| json!({"role": "toolResult", "toolCallId": tool["id"], "content": "3 lines"});
    for request in io::stdin().lines() {
        let (mut news, mut redo) = (vec![json!({"role": "user", "content": request?})], false);
        while redo || !news.is_empty() {
            (!redo).then(|| call("session/append", json!({"sessionId": id, "messages": news}))).transpose()?;
            let context = call("session/context", json!({"sessionId": id, "format": "openai_chat"}));
            let Ok(context) = context.inspect_err(|error| println!("no answer: {error}")) else { break };
            let answer = ask(url, &context["body"]).unwrap_or_else(|error| failed(error.to_string()));
            redo = call("session/append", json!({"sessionId": id, "messages": [answer]}))?["next"]["willRetry"] == true;
            println!("{}", answer.get("errorMessage").unwrap_or(&answer["content"][0]["text"]));
            news = answer["content"].as_array().into_iter().flatten().skip(1).filter(|_| !redo).map(result).collect();
        }
    }
    Ok(daemon.wait().map(drop)?)
}
