//! The rules that hold whatever a client sends. They know the record of a case and nothing of the daemon.

mod answers;
mod contexts;
mod defects;
mod files;
mod frames;
mod numbers;
mod operations;
mod planted;

use super::record::{Asked, Line};
use serde_json::Value;

/// One rule, asked of each line of a record in order.
pub trait Rule: Send {
    fn name(&self) -> &'static str;

    /// # Errors
    /// Why the rule does not hold.
    fn take(&mut self, line: &Line, of: Option<&Asked>) -> Result<(), String>;
}

pub fn all() -> Vec<Box<dyn Rule>> {
    vec![
        Box::<frames::Frames>::default(),
        Box::<defects::Defects>::default(),
        Box::<answers::Answers>::default(),
        Box::<numbers::Numbers>::default(),
        Box::<operations::Operations>::default(),
        Box::<files::Files>::default(),
        Box::<contexts::Contexts>::default(),
    ]
}

/// An event of a session.
struct Event<'a> {
    session: &'a str,
    epoch: &'a str,
    seq: u64,
    kind: &'a str,
    params: &'a Value,
}

impl<'a> Event<'a> {
    fn of(line: &'a Line) -> Option<Self> {
        let Line::Got(frame) = line else { return None };
        if frame["method"] != "session/event" {
            return None;
        }
        let params = &frame["params"];
        Some(Self {
            session: params["sessionId"].as_str()?,
            epoch: params["epoch"].as_str()?,
            seq: params["seq"].as_u64()?,
            kind: params["event"]["type"].as_str()?,
            params,
        })
    }
}

/// The result of a request to one of these methods that went well.
fn result<'a>(line: &'a Line, of: Option<&Asked>, methods: &[&str]) -> Option<&'a Value> {
    match line {
        Line::Got(frame) if of.is_some_and(|of| methods.contains(&of.method.as_str())) => frame.get("result"),
        _ => None,
    }
}
