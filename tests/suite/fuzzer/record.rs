//! The record of a case: everything that was sent and said, held against the rules line by line.

use super::rules::{self, Rule};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    fmt::{self, Write as _},
    path::PathBuf,
};

/// Frames and requests that a report shows.
const SHOWN: usize = 50;

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum Line {
    /// A process was started.
    Started,
    /// The client sent a frame; the requests of a batch are one line each.
    Sent(Value),
    /// The daemon sent a frame; the answers of a batch are one line each.
    Got(Value),
    /// The process was killed, and everything it had said was read.
    Killed,
    /// The process ended after the end of its stdin, and everything it had said was read.
    Ended,
    /// The text that the process wrote to its stderr.
    Logged(String),
    /// The client waited as long as it waits for anything, and there was no frame.
    Overdue,
    /// Every file in the home of the daemon.
    Files(BTreeMap<PathBuf, Vec<u8>>),
    /// The test wrote these bytes over a file.
    Rewritten(PathBuf, Vec<u8>),
    /// Contexts of a session before and after it was closed and opened, with nothing between.
    Reopened { session: String, before: Value, after: Value },
}

/// A request of the client.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    pub params: Value,
}

impl Asked {
    pub fn session(&self) -> &str {
        self.params["sessionId"].as_str().unwrap_or_default()
    }
}

/// A rule that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub rule: &'static str,
    pub why: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.why)
    }
}

pub struct Record {
    lines: Vec<Line>,
    /// Requests of the running process by their ids.
    asked: HashMap<String, Asked>,
    rules: Vec<Box<dyn Rule>>,
}

impl Record {
    pub fn new() -> Self {
        Self { lines: Vec::new(), asked: HashMap::new(), rules: rules::all() }
    }

    /// # Errors
    /// The first rule that the line breaks.
    pub fn push(&mut self, line: Line) -> Result<(), Broken> {
        match &line {
            Line::Started => self.asked.clear(),
            Line::Sent(frame) if frame.get("id").is_some() && frame["method"].is_string() => {
                let method = frame["method"].as_str().unwrap_or_default().to_owned();
                self.asked.insert(frame["id"].to_string(), Asked { method, params: frame["params"].clone() });
            }
            _ => {}
        }
        let of = match &line {
            Line::Got(frame) if frame.get("method").is_none() => self.asked.get(&frame["id"].to_string()),
            _ => None,
        };
        let broken = self.rules.iter_mut().find_map(|rule| {
            let why = rule.take(&line, of).err()?;
            Some(Broken { rule: rule.name(), why })
        });
        self.lines.push(line);
        broken.map_or(Ok(()), Err)
    }

    /// The request that a frame answers.
    pub fn asked(&self, answer: &Value) -> Option<&Asked> {
        if answer.get("method").is_some() { None } else { self.asked.get(&answer["id"].to_string()) }
    }

    /// Number of the lines so far.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The lines from this place on.
    pub fn since(&self, from: usize) -> &[Line] {
        &self.lines[from..]
    }

    /// The last lines, long texts and lists shortened.
    pub fn shown(&self) -> String {
        let mut text = String::new();
        let shown = self.lines.iter().filter_map(shown);
        let all: Vec<String> = shown.collect();
        let from = all.len().saturating_sub(SHOWN);
        if from > 0 {
            let _ = writeln!(text, "  … {from} lines before");
        }
        for line in &all[from..] {
            let _ = writeln!(text, "  {line}");
        }
        text
    }

    /// Every line as it was.
    pub fn whole(&self) -> String {
        let line = |line: &Line| match line {
            Line::Files(files) => format!("files {:?}\n", files.keys().collect::<Vec<_>>()),
            Line::Sent(frame) => format!("> {frame}\n"),
            Line::Got(frame) => format!("< {frame}\n"),
            other => format!("{other:?}\n"),
        };
        self.lines.iter().map(line).collect()
    }
}

fn shown(line: &Line) -> Option<String> {
    Some(match line {
        Line::Sent(frame) => format!("> {}", shortened(frame)),
        Line::Got(frame) => {
            let kind = &frame["params"]["event"]["type"];
            let long = !frame["result"]["openrpc"].is_null() || !frame["result"]["serverInfo"].is_null();
            if long || kind == "usage_updated" || kind == "summary_chunk" || kind == "compaction_progress" {
                return None;
            }
            format!("< {:.420}", shortened(frame).to_string())
        }
        Line::Files(_) => return None,
        Line::Rewritten(path, _) => format!("= {} was changed", path.display()),
        Line::Reopened { session, .. } => format!("= {session} was opened again"),
        Line::Logged(text) if text.is_empty() => return None,
        other => format!("= {:.300}", format!("{other:?}")),
    })
}

/// The same frame with long texts and lists cut.
fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > 90 => {
            let begin: String = text.chars().take(60).collect();
            Value::String(format!("{begin}…({})", text.len()))
        }
        Value::Array(items) => {
            let mut short: Vec<Value> = items.iter().take(8).map(shortened).collect();
            if items.len() > 8 {
                short.push(Value::String(format!("…({})", items.len())));
            }
            Value::Array(short)
        }
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.chars().take(60).collect::<String>(), shortened(value))).collect()
        }
        other => other.clone(),
    }
}
