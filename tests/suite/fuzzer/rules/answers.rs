//! One answer a request: none is missing, none comes twice, none comes for nobody.

use super::{super::record::Asked, Line, Rule};
use std::collections::{BTreeMap, HashSet};

#[derive(Default)]
pub struct Answers {
    /// Requests without an answer, and their methods.
    waiting: BTreeMap<String, String>,
    answered: HashSet<String>,
    /// Frames with an id alone: answers to questions of the daemon, and invalid requests once a question was taken back.
    bare: HashSet<String>,
}

impl Answers {
    fn none_waits(&self) -> Result<(), String> {
        if self.waiting.is_empty() { Ok(()) } else { Err(format!("no answer to {:?}", self.waiting)) }
    }
}

impl Rule for Answers {
    fn name(&self) -> &'static str {
        "a request has one answer"
    }

    fn take(&mut self, line: &Line, of: Option<&Asked>) -> Result<(), String> {
        match line {
            Line::Started | Line::Killed => *self = Self::default(),
            Line::Sent(frame) => {
                if let (Some(id), Some(method)) = (frame.get("id"), frame["method"].as_str()) {
                    self.waiting.insert(id.to_string(), method.to_owned());
                } else if frame.get("result").is_none() && frame.get("error").is_none() {
                    self.bare.insert(frame["id"].to_string());
                }
            }
            Line::Got(frame) if frame.get("method").is_none() => {
                let id = frame["id"].to_string();
                if frame["error"]["code"] == -32600 && self.bare.remove(&id) {
                    return Ok(());
                }
                if self.waiting.remove(&id).is_none() {
                    let how = if self.answered.contains(&id) { "twice" } else { "though nobody asked" };
                    return Err(format!("{id} ({:?}) was answered {how}", of.map(|of| &of.method)));
                }
                self.answered.insert(id);
            }
            Line::Ended | Line::Overdue => return self.none_waits(),
            _ => {}
        }
        Ok(())
    }
}
