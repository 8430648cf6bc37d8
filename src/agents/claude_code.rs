//! Sessions of Claude Code: one JSON object a line, a tree by `uuid` and `parentUuid`.
//!
//! An answer spans several lines, one for each block, with one message id and the same usage on each of them; it is one entry here.
//! Results of parallel calls hang on the lines of their calls, and follow each other here.

use super::{
    Agent,
    records::{self, owned},
    transcript::{About, Converted, Origin, Transcript},
};
use crate::{
    ids::{EntryId, ModelRef},
    log::bytes::Bytes,
    provider::{
        Api,
        given::{self, Beside},
    },
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use std::{
    collections::{HashMap, HashSet},
    io::Error,
    ops::ControlFlow,
};

/// The model of answers that Claude Code writes itself.
const SYNTHETIC: &str = "<synthetic>";

/// A line of the file, with the fields that are read.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: Value,
    subtype: Value,
    uuid: Value,
    parent_uuid: Value,
    logical_parent_uuid: Value,
    is_sidechain: Value,
    is_meta: Value,
    is_compact_summary: Value,
    is_api_error_message: Value,
    request_id: Value,
    timestamp: Value,
    cwd: Value,
    version: Value,
    git_branch: Value,
    compact_metadata: Value,
    attachment: Value,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

/// A message of the user's side or of the model.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Message<'a> {
    id: Value,
    model: Value,
    stop_reason: Value,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// A record of the conversation.
struct Record {
    /// The parent's line; `None` for a root.
    parent: Option<String>,
    /// Key of its entries.
    key: String,
    time: String,
    body: Body,
}

enum Body {
    /// A message of the user's side, as its content in JSON.
    User { content: String, is_meta: bool },
    /// An answer.
    Answer(Answer),
    /// A compaction with the line of its first kept message. Its summary comes in a later line.
    Compaction { summary: Option<String>, first_kept: Option<String>, tokens_before: u64 },
    /// A line that is no message and has a place in the tree.
    Link,
}

#[derive(Default)]
struct Answer {
    model: Option<String>,
    /// The blocks in JSON.
    blocks: Vec<String>,
    stop: Option<String>,
    usage: Option<String>,
    is_error: bool,
}

/// The records of a file.
#[derive(Default)]
struct File {
    records: Vec<Record>,
    /// The record of each line.
    places: HashMap<String, usize>,
    /// The record of each answer, by the ids of its message and request.
    answers: HashMap<(String, String), usize>,
    /// The record of each call.
    calls: HashMap<String, usize>,
    cwd: Option<String>,
    version: Option<String>,
    branch: Option<String>,
    created: Option<String>,
    custom_title: Option<String>,
    ai_title: Option<String>,
    /// Summaries that are titles, with the line that they are about.
    summaries: Vec<(String, String)>,
    left_out: Vec<&'static str>,
    /// The leaf that was active at the last prompt, where no message follows it.
    active: Option<String>,
    /// Whether the file is of a subagent.
    is_subagent: bool,
}

/// Whether a line is one of Claude Code.
#[must_use]
pub fn is_line(line: &Value) -> bool {
    line["sessionId"].is_string() && line["type"].is_string() && line.get("projectHash").is_none()
        || (line["type"] == "summary" && line["leafUuid"].is_string())
}

/// Reads a session. `stem` is the file's name without its ending, which is the session's id.
///
/// # Errors
/// When the file cannot be read.
pub fn read(file: &Bytes, stem: &str) -> Result<Converted, Error> {
    let mut read = File { is_subagent: stem.starts_with("agent-"), ..File::default() };
    records::each(file, |_, text| {
        match text.and_then(|text| serde_json::from_str::<Line<'_>>(text).ok()) {
            Some(line) => read.add(&line, text.unwrap_or_default()),
            None => read.left_out.push("lines that cannot be read"),
        }
        ControlFlow::Continue(())
    })?;
    Ok(read.converted(stem))
}

impl File {
    fn add(&mut self, line: &Line<'_>, text: &str) {
        if line.is_sidechain == true && !self.is_subagent {
            return self.left_out.push("lines of subagents");
        }
        let first = |own: &mut Option<String>, value: &Value| {
            if own.is_none() {
                *own = owned(value);
            }
        };
        first(&mut self.cwd, &line.cwd);
        first(&mut self.version, &line.version);
        first(&mut self.branch, &line.git_branch);
        first(&mut self.created, &line.timestamp);
        let kind = line.kind.as_str().unwrap_or_default();
        if !["last-prompt", "custom-title", "ai-title", "summary"].contains(&kind) {
            return self.record(kind, line);
        }
        let facts: Value = serde_json::from_str(text).unwrap_or_default();
        match kind {
            "last-prompt" => self.active = owned(&facts["leafUuid"]),
            "custom-title" => self.custom_title = owned(&facts["customTitle"]).or(self.custom_title.take()),
            "ai-title" => self.ai_title = owned(&facts["aiTitle"]).or(self.ai_title.take()),
            _ => self.summaries.extend(owned(&facts["leafUuid"]).zip(owned(&facts["summary"]))),
        }
    }

    /// Adds a line of the tree.
    fn record(&mut self, kind: &str, line: &Line<'_>) {
        let Some(uuid) = owned(&line.uuid) else { return };
        // A resumed session may repeat lines.
        if self.places.contains_key(&uuid) {
            return;
        }
        let parent = owned(&line.parent_uuid).or_else(|| owned(&line.logical_parent_uuid));
        let message = line.message.and_then(|message| serde_json::from_str::<Message<'_>>(message.get()).ok());
        let content = || message.as_ref().and_then(|message| message.content).map(RawValue::get);
        let body = match (kind, content()) {
            ("assistant", Some(content)) => return self.answer(uuid, parent, line, message.as_ref(), content),
            ("user", Some(content)) if line.is_compact_summary == true => {
                let text = text_of(content);
                let boundary = parent.as_ref().and_then(|parent| self.places.get(parent)).copied();
                match boundary.map(|at| &mut self.records[at].body) {
                    Some(Body::Compaction { summary, .. }) => {
                        *summary = Some(text);
                        Body::Link
                    }
                    _ => Body::Compaction { summary: Some(text), first_kept: None, tokens_before: 0 },
                }
            }
            ("user", Some(content)) => Body::User { content: content.to_owned(), is_meta: line.is_meta == true },
            ("attachment", _)
                if line.attachment["type"] == "queued_command" && !line.attachment["prompt"].is_null() =>
            {
                // Other modes are messages of the program, such as the end of a task.
                let mode = line.attachment["commandMode"].as_str();
                let is_meta = mode.is_some_and(|mode| mode != "prompt");
                Body::User { content: line.attachment["prompt"].to_string(), is_meta }
            }
            ("attachment", _) => {
                self.left_out.push("attachments");
                Body::Link
            }
            ("system", _) if line.subtype == "compact_boundary" => Body::Compaction {
                summary: None,
                first_kept: owned(&line.compact_metadata["preservedSegment"]["headUuid"])
                    .or_else(|| owned(&line.compact_metadata["preservedMessages"]["uuids"][0])),
                tokens_before: line.compact_metadata["preTokens"].as_u64().unwrap_or_default(),
            },
            _ => Body::Link,
        };
        self.push(uuid, parent, line, body);
    }

    fn push(&mut self, uuid: String, parent: Option<String>, line: &Line<'_>, body: Body) -> usize {
        let time = line.timestamp.as_str().unwrap_or_default().to_owned();
        let at = self.records.len();
        if !matches!(body, Body::Link) {
            self.active = None;
        }
        self.records.push(Record { parent, key: uuid.clone(), time, body });
        self.places.insert(uuid, at);
        at
    }

    /// Whether a line is on another branch than the last message. The leaf at the last prompt may be before the answer to it.
    fn is_elsewhere(&self, line: &str) -> bool {
        let Some(place) = self.places.get(line) else { return false };
        let is_message = |record: &Record| !matches!(record.body, Body::Link);
        let mut at = self.records.iter().rposition(is_message);
        let mut steps = 0;
        while let Some(above) = at.filter(|_| steps <= self.records.len()) {
            if above == *place {
                return false;
            }
            let parent = self.records[above].parent.as_ref();
            at = parent.and_then(|parent| self.places.get(parent)).copied();
            steps += 1;
        }
        true
    }

    /// Adds the block of a line to its answer.
    fn answer(
        &mut self,
        uuid: String,
        parent: Option<String>,
        line: &Line<'_>,
        message: Option<&Message<'_>>,
        content: &str,
    ) {
        let Some(message) = message else { return };
        let request = owned(&line.request_id).unwrap_or_default();
        let own = owned(&message.id).map(|id| (id, request));
        let at = match own.as_ref().and_then(|own| self.answers.get(own)).copied() {
            Some(at) => {
                self.places.insert(uuid, at);
                at
            }
            None => self.push(uuid, parent, line, Body::Answer(Answer::default())),
        };
        if let Some(own) = own {
            self.answers.insert(own, at);
        }
        let blocks = match serde_json::from_str::<Vec<&RawValue>>(content) {
            Ok(blocks) => blocks.into_iter().map(|block| block.get().to_owned()).collect(),
            Err(_) => vec![json!({ "type": "text", "text": text_of(content) }).to_string()],
        };
        for block in &blocks {
            let block: Value = serde_json::from_str(block).unwrap_or_default();
            if let Some(id) = owned(&block["id"]).filter(|_| block["type"] == "tool_use") {
                self.calls.insert(id, at);
            }
        }
        let Body::Answer(answer) = &mut self.records[at].body else { return };
        answer.blocks.extend(blocks);
        answer.model = owned(&message.model).or(answer.model.take());
        answer.stop = owned(&message.stop_reason).or(answer.stop.take());
        // The counts of the last line are whole: those before it were written while the answer came.
        answer.usage = message.usage.map(|usage| usage.get().to_owned()).or(answer.usage.take());
        answer.is_error |= line.is_api_error_message == true;
    }

    /// The session of the records.
    fn converted(self, stem: &str) -> Converted {
        let session_id = stem.to_owned();
        let created = self.created.clone().unwrap_or_default();
        let mut transcript = Transcript::new(Agent::ClaudeCode, &session_id, &created);
        self.left_out.iter().for_each(|kind| transcript.leave_out(kind));
        let unwritten = vec![None; self.records.len()];
        let mut tree = Tree { file: &self, heads: unwritten.clone(), tails: unwritten, results: HashMap::new() };
        for at in 0..self.records.len() {
            tree.write_after_parents(at, &mut transcript);
        }
        if let Some(active) = self.active.as_ref().filter(|active| self.is_elsewhere(active)) {
            let leaf = tree.after(Some(active), &transcript);
            transcript.continue_after(leaf);
        }
        let summary = self.summaries.iter().rev().find(|(leaf, _)| self.places.contains_key(leaf));
        let title = self.custom_title.or(self.ai_title).or_else(|| summary.map(|(_, summary)| summary.clone()));
        let origin = Origin {
            agent: Agent::ClaudeCode,
            session_id,
            version: self.version,
            parent_session_id: None,
            git_branch: self.branch,
        };
        transcript.finish(About { origin, cwd: self.cwd.unwrap_or_default(), created, title })
    }
}

/// The entries of records that were written.
struct Tree<'a> {
    file: &'a File,
    /// The first entry of a record.
    heads: Vec<Option<EntryId>>,
    /// The entry after which children of a record follow. `None` for a record that is not written yet.
    tails: Vec<Option<EntryId>>,
    /// The answers of records that are results.
    results: HashMap<usize, usize>,
}

impl Tree<'_> {
    /// The entry after which the children of a line follow; the newest one where its parent is not in the file.
    fn after(&self, line: Option<&String>, transcript: &Transcript) -> EntryId {
        let Some(line) = line else { return transcript.root() };
        let at = self.file.places.get(line).map(|at| self.results.get(at).unwrap_or(at));
        at.and_then(|at| self.tails[*at].clone()).unwrap_or_else(|| transcript.leaf())
    }

    /// Writes a record after those above it in the tree, which may stand later in the file.
    fn write_after_parents(&mut self, at: usize, transcript: &mut Transcript) {
        let mut above = vec![at];
        let mut seen = HashSet::from([at]);
        // Parents may lead in a circle.
        while let Some(next) = above.last().and_then(|at| self.unwritten_parent(*at)).filter(|next| seen.insert(*next))
        {
            above.push(next);
        }
        for at in above.into_iter().rev() {
            if self.tails[at].is_none() {
                self.write(at, transcript);
            }
        }
    }

    fn unwritten_parent(&self, at: usize) -> Option<usize> {
        let parent = self.file.records[at].parent.as_ref()?;
        self.file.places.get(parent).copied().filter(|parent| self.tails[*parent].is_none())
    }

    fn write(&mut self, at: usize, transcript: &mut Transcript) {
        let Record { parent, key, time, body } = &self.file.records[at];
        let after = self.after(parent.as_ref(), transcript);
        let written = match body {
            Body::Link => None,
            Body::Compaction { summary: None, .. } => {
                transcript.leave_out("compactions without a summary");
                None
            }
            Body::Compaction { summary: Some(summary), first_kept, tokens_before } => {
                // Nothing follows a boundary but its summary, so a missing parent is the end of the file so far.
                let after = if parent.is_none() { transcript.leaf() } else { after.clone() };
                let kept = first_kept.as_ref().and_then(|line| self.file.places.get(line));
                let kept = kept.and_then(|at| self.heads[*at].clone());
                transcript.continue_after(after);
                Some(transcript.compaction(key, time, summary, kept.as_ref(), *tokens_before))
            }
            Body::Answer(answer) => {
                transcript.continue_after(after.clone());
                answer.write(key, time, transcript)
            }
            Body::User { content, is_meta } => return self.user(at, &after, content, *is_meta, transcript),
        };
        self.heads[at].clone_from(&written);
        self.tails[at] = Some(written.unwrap_or(after));
    }

    /// Writes a message of the user's side: its results after those of the same answer, then the rest.
    fn user(&mut self, at: usize, after: &EntryId, content: &str, is_meta: bool, transcript: &mut Transcript) {
        let Record { key, time, .. } = &self.file.records[at];
        let User { results, rest } = User::read(content, transcript);
        let mut tail = after.clone();
        for (nth, (call, result)) in results.iter().enumerate() {
            let answer = self.file.calls.get(call).copied();
            let before = answer.and_then(|answer| self.tails[answer].clone());
            transcript.continue_after(before.unwrap_or_else(|| tail.clone()));
            let key = if nth == 0 { key.clone() } else { format!("{key}:{nth}") };
            let Some(written) = transcript.message(&key, time, &result.to_string()) else { continue };
            tail = written;
            self.heads[at].get_or_insert_with(|| tail.clone());
            if let Some(answer) = answer {
                self.tails[answer] = Some(tail.clone());
                self.results.insert(at, answer);
            }
        }
        if let Some(content) = rest {
            transcript.continue_after(tail.clone());
            let key = if results.is_empty() { key.clone() } else { format!("{key}:rest") };
            let written = match is_meta {
                true => Some(transcript.note(&key, time, "claude-code.meta", &content)),
                false => transcript.message(&key, time, &json!({ "role": "user", "content": content }).to_string()),
            };
            if let (Some(written), Some(answer)) = (&written, self.results.get(&at)) {
                self.tails[*answer] = Some(written.clone());
            }
            self.heads[at] = self.heads[at].take().or_else(|| written.clone());
            tail = written.unwrap_or(tail);
        }
        self.tails[at] = Some(tail);
    }
}

impl Answer {
    fn write(&self, key: &str, time: &str, transcript: &mut Transcript) -> Option<EntryId> {
        let model = self.model.as_deref().filter(|model| *model != SYNTHETIC);
        if let Some(model) = model {
            transcript.model(&format!("{key}:model"), time, "anthropic", model);
        }
        let model = model.map(|id| ModelRef { provider: "anthropic".to_owned(), id: id.to_owned() });
        let known = self.blocks.iter().filter(|block| is_known(block)).map(String::as_str).collect::<Vec<_>>();
        (known.len()..self.blocks.len()).for_each(|_| transcript.leave_out("calls of the provider's own tools"));
        let read = |blocks: &[&str], usage: &str| {
            let stop = json!(self.stop);
            let message = format!(
                r#"{{"role":"assistant","content":[{}],"stop_reason":{stop},"usage":{usage}}}"#,
                blocks.join(",")
            );
            let text = self.is_error.then(|| blocks.iter().map(|block| block_text(block)).collect::<String>());
            let beside = Beside { error: text.as_deref(), ..Beside::default() };
            let made = given::messages(Api::Anthropic, &[message.as_str()], &beside, model.as_ref(), Vec::new());
            made.ok().and_then(|made| made.into_iter().next()).map(|made| made.json)
        };
        let usage = self.usage.as_deref().unwrap_or("null");
        let json = read(&known, usage).or_else(|| read(&known, "null")).or_else(|| {
            let whole: Vec<&str> = known.iter().copied().filter(|block| read(&[*block], "null").is_some()).collect();
            read(&whole, "null")
        });
        match json {
            Some(json) => transcript.message(key, time, &json),
            None => {
                transcript.leave_out("answers that cannot be read");
                None
            }
        }
    }
}

/// Whether a block of an answer is read. Others are calls of the provider's own tools, and their results.
fn is_known(block: &str) -> bool {
    let block: Value = serde_json::from_str(block).unwrap_or_default();
    block["type"].as_str().is_some_and(|kind| ["text", "thinking", "redacted_thinking", "tool_use"].contains(&kind))
}

fn block_text(block: &str) -> String {
    let block: Value = serde_json::from_str(block).unwrap_or_default();
    block["text"].as_str().unwrap_or_default().to_owned()
}

/// The text of a content: of a string, or of its text blocks.
fn text_of(content: &str) -> String {
    match serde_json::from_str::<Value>(content).unwrap_or_default() {
        Value::String(text) => text,
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// A message of the user's side.
struct User {
    /// Tool results with their calls.
    results: Vec<(String, Value)>,
    /// Text and images.
    rest: Option<Value>,
}

impl User {
    fn read(content: &str, transcript: &mut Transcript) -> Self {
        let blocks = match serde_json::from_str::<Value>(content).unwrap_or_default() {
            Value::Array(blocks) => blocks,
            text => return Self { results: Vec::new(), rest: Some(text).filter(Value::is_string) },
        };
        let mut results = Vec::new();
        let mut rest = Vec::new();
        for block in blocks {
            match (block["type"].as_str(), block["tool_use_id"].as_str()) {
                (Some("tool_result"), Some(call)) => {
                    let content = match &block["content"] {
                        Value::String(text) => vec![json!({ "type": "text", "text": text })],
                        Value::Array(blocks) => blocks.iter().map(|block| shown(block, transcript)).collect(),
                        _ => Vec::new(),
                    };
                    let is_error = block["is_error"] == true;
                    let result =
                        json!({ "role": "toolResult", "toolCallId": call, "content": content, "isError": is_error });
                    results.push((call.to_owned(), result));
                }
                _ => rest.push(shown(&block, transcript)),
            }
        }
        Self { results, rest: (!rest.is_empty()).then_some(Value::Array(rest)) }
    }
}

/// A text or an image in pi's form. The name of anything else takes its place.
fn shown(block: &Value, transcript: &mut Transcript) -> Value {
    let source = &block["source"];
    match (block["type"].as_str(), block["text"].as_str(), source["data"].as_str()) {
        (Some("text"), Some(text), _) => json!({ "type": "text", "text": text }),
        (Some("image"), _, Some(data)) if source["type"] == "base64" => {
            let kind = source["media_type"].as_str().unwrap_or("image/png");
            json!({ "type": "image", "data": data, "mimeType": kind })
        }
        (kind, ..) => {
            transcript.leave_out("documents and other blocks of the user's side");
            let name = kind.unwrap_or("block").replace('_', " ");
            json!({ "type": "text", "text": format!("[{name}]") })
        }
    }
}
