//! pi's rules for reading a session file, on plain JSON. It shares no code with the daemon, so that the two can be held
//! against each other, and against requests that pi really sent.

use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

/// A session file as pi reads it.
pub struct Session {
    entries: Vec<Value>,
}

/// A message of a context, and the entry it comes from.
#[derive(Debug, Clone)]
pub struct Sent {
    pub entry: Value,
    pub message: Value,
}

impl Session {
    /// The entries of a file. Lines that are no JSON are skipped; the first other one must be a header with an id.
    pub fn parse(text: &str) -> Self {
        let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let header = lines.next().expect("a header");
        assert!(header["type"] == "session" && header["id"].is_string(), "not a header: {header}");
        Self { entries: lines.collect() }
    }

    /// The session's name: the last `session_info`, unless it is empty.
    pub fn title(&self) -> Option<&str> {
        let name = self.entries.iter().rev().find(|entry| entry["type"] == "session_info")?["name"].as_str()?;
        (!name.trim().is_empty()).then_some(name)
    }

    /// The last label of each entry that has one, in the order of the file.
    pub fn labels(&self) -> Vec<(Value, Value)> {
        let mut labels: Vec<(Value, Value)> = Vec::new();
        for entry in self.entries.iter().filter(|entry| entry["type"] == "label") {
            labels.retain(|(of, _)| *of != entry["targetId"]);
            if entry["label"].as_str().is_some_and(|label| !label.is_empty()) {
                labels.push((entry["targetId"].clone(), entry["label"].clone()));
            }
        }
        labels
    }

    /// The entries from the root to the last one of the file, which is the leaf.
    pub fn path(&self) -> Vec<&Value> {
        self.entries.last().map(|leaf| self.path_to(leaf)).unwrap_or_default()
    }

    /// The entries from the root to one of them. Of two entries with one id the later one counts.
    pub fn path_to<'a>(&'a self, leaf: &'a Value) -> Vec<&'a Value> {
        let by_id: HashMap<&str, &Value> =
            self.entries.iter().filter_map(|entry| Some((entry["id"].as_str()?, entry))).collect();
        let mut path = Vec::new();
        let mut seen = HashSet::new();
        let mut next = Some(leaf);
        while let Some(entry) = next {
            assert!(seen.insert(entry["id"].as_str()), "a circle, in which pi would not end, at {entry}");
            path.push(entry);
            next = entry["parentId"].as_str().and_then(|id| by_id.get(id).copied());
        }
        path.reverse();
        path
    }

    /// The messages of the context, in order. With a compaction on the path the last one comes first, with its
    /// checkpoint of the system prompt, then what stands from its first kept entry up to it, then what follows it.
    pub fn context(&self) -> Vec<Sent> {
        let path = self.path();
        let compaction = path.iter().rposition(|entry| entry["type"] == "compaction");
        let mut chosen: Vec<&Value> = match compaction {
            None => path.clone(),
            Some(place) => {
                let first = path[..place].iter().position(|entry| entry["id"] == path[place]["firstKeptEntryId"]);
                let kept = path[first.unwrap_or(place)..place].iter().copied();
                std::iter::once(path[place]).chain(kept.filter(|entry| !is_system(entry))).collect()
            }
        };
        chosen.extend(compaction.map(|place| &path[place + 1..]).unwrap_or_default());
        let edits: HashMap<&str, &Value> = chosen
            .iter()
            .filter(|entry| entry["type"] == "context_edit")
            .filter_map(|entry| Some((entry["targetId"].as_str()?, &entry["replacement"])))
            .collect();
        let mut context = Vec::new();
        for (at, entry) in chosen.into_iter().enumerate() {
            if entry["type"] == "compaction" && at > 0 {
                continue;
            }
            let edit = entry["id"].as_str().and_then(|id| edits.get(id).copied());
            let sent = |message| Sent { entry: entry.clone(), message };
            context.extend(messages(entry).into_iter().filter_map(|message| edited(message, edit)).map(sent));
        }
        context
    }
}

/// The messages of pi's request: failed answers are left out, and a call without a result gets one before the next message
/// of the user or the model. A result stays where it is.
pub fn requested(sent: Vec<Sent>) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    let mut waiting: Vec<Value> = Vec::new();
    let stand_in = |call: Value| json!({"role": "toolResult", "toolCallId": call, "content": []});
    for Sent { message, .. } in sent {
        match message["role"].as_str() {
            Some("system") => {}
            Some("bashExecution") if message["excludeFromContext"] == true => {}
            Some("toolResult") => {
                waiting.retain(|call| *call != message["toolCallId"]);
                messages.push(message);
            }
            Some("assistant") => {
                messages.extend(waiting.drain(..).map(stand_in));
                if matches!(message["stopReason"].as_str(), Some("error" | "aborted")) {
                    continue;
                }
                let blocks = message["content"].as_array().into_iter().flatten();
                waiting = blocks.filter(|it| it["type"] == "toolCall").map(|it| it["id"].clone()).collect();
                messages.push(message);
            }
            _ => {
                messages.extend(waiting.drain(..).map(stand_in));
                messages.push(json!({"role": "user", "content": message["content"]}));
            }
        }
    }
    messages.extend(waiting.into_iter().map(stand_in));
    messages
}

fn is_system(entry: &Value) -> bool {
    entry["type"] == "message" && entry["message"]["role"] == "system"
}

/// The message that an entry adds to the context.
fn messages(entry: &Value) -> Vec<Value> {
    let summary = |role: &str| json!({"role": role, "summary": entry["summary"]});
    match entry["type"].as_str() {
        Some("message") => {
            let mut message = entry["message"].clone();
            if message["content"].is_null() && message["role"] != "bashExecution" {
                message["content"] = json!([]);
            }
            vec![message]
        }
        Some("custom_message") => {
            vec![json!({"role": "custom", "customType": entry["customType"], "content": entry["content"]})]
        }
        Some("branch_summary") if entry["summary"].as_str().is_some_and(|text| !text.is_empty()) => {
            vec![summary("branchSummary")]
        }
        Some("compaction") => {
            let system = entry.get("systemMessage").filter(|message| message.is_object()).cloned();
            system.into_iter().chain([summary("compactionSummary")]).collect()
        }
        _ => Vec::new(),
    }
}

/// A message under the last edit of its entry; none where that leaves it out.
fn edited(mut message: Value, edit: Option<&Value>) -> Option<Value> {
    let Some(edit) = edit else { return Some(message) };
    if edit.is_null() {
        return None;
    }
    let role = message["role"].as_str().unwrap_or_default().to_owned();
    if ["user", "assistant", "toolResult", "custom"].contains(&role.as_str()) {
        message["content"] = match &edit["content"] {
            Value::String(text) if ["assistant", "toolResult"].contains(&role.as_str()) => {
                json!([{"type": "text", "text": text}])
            }
            content => content.clone(),
        };
    }
    Some(message)
}

/// A message of a session in a form in which two programs can be compared: its texts, images and calls in order, each
/// with the role that a provider sees. Nothing for what no provider gets: failed answers, system prompts, thinking.
pub fn plain(message: &Value) -> Vec<Value> {
    let content = |role: &str| parts(&json!({"role": role}), &message["content"]);
    match message["role"].as_str() {
        Some("assistant") if matches!(message["stopReason"].as_str(), Some("error" | "aborted")) => Vec::new(),
        Some("assistant") => content("assistant"),
        Some("toolResult") => parts(&json!({"answers": message["toolCallId"]}), &message["content"]),
        Some("branchSummary" | "compactionSummary") => {
            vec![json!({"frame": message["summary"].as_str().map(str::trim)})]
        }
        Some("bashExecution") if message["excludeFromContext"] == true => Vec::new(),
        Some("bashExecution") => vec![json!({"ran": message["command"]})],
        Some("user" | "custom" | "developer") => content("user"),
        _ => Vec::new(),
    }
}

/// The same of a message of OpenAI's chat completions.
pub fn plain_chat(message: &Value) -> Vec<Value> {
    if message.get("frame").is_some() {
        return vec![message.clone()];
    }
    match message["role"].as_str() {
        Some("assistant") => {
            let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
            let call = |call: &Value| {
                let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                let arguments: Value = serde_json::from_str(arguments).expect("arguments are JSON");
                json!({"call": call["id"], "name": call["function"]["name"], "arguments": arguments})
            };
            let texts = parts(&json!({"role": "assistant"}), &message["content"]);
            texts.into_iter().chain(calls.iter().map(call)).collect()
        }
        Some("tool") => parts(&json!({"answers": message["tool_call_id"]}), &message["content"]),
        Some("user") => parts(&json!({"role": "user"}), &message["content"]),
        _ => Vec::new(),
    }
}

/// The parts of a content, each added to what they have in common.
fn parts(of: &Value, content: &Value) -> Vec<Value> {
    let with = |key: &str, value: &Value| {
        let mut part = of.clone();
        part[key] = value.clone();
        part
    };
    let text = |text: &str| match text {
        "" => None,
        text if of["role"] == "user" => Some(framed(text).unwrap_or_else(|| with("text", &json!(text)))),
        text => Some(with("text", &json!(text))),
    };
    let image = |kind: &str, data: &str| with("image", &json!([kind, data]));
    let part = |block: &Value| match block["type"].as_str() {
        Some("text") => text(block["text"].as_str()?),
        Some("image") => Some(image(block["mimeType"].as_str()?, block["data"].as_str()?)),
        Some("image_url") => {
            let (kind, data) = block["image_url"]["url"].as_str()?.strip_prefix("data:")?.split_once(";base64,")?;
            Some(image(kind, data))
        }
        Some("toolCall") => Some(json!({"call": block["id"], "name": block["name"], "arguments": block["arguments"]})),
        Some("thinking") => None,
        _ => Some(with("block", block)),
    };
    match content {
        Value::String(content) => text(content).into_iter().collect(),
        content => content.as_array().into_iter().flatten().filter_map(part).collect(),
    }
}

/// A text that a program put into the user's mouth: a summary in its frame, a command that was run.
fn framed(text: &str) -> Option<Value> {
    let between = |start: &str, end: &str| {
        let from = text.find(start)? + start.len();
        Some(text[from..from + text[from..].find(end)?].trim())
    };
    match between("<summary>\n", "</summary>") {
        Some(summary) => Some(json!({"frame": summary})),
        None if text.starts_with("Ran ") => Some(json!({"ran": between("`", "`")?})),
        None => None,
    }
}
