//! A context is one that a provider takes, and the same after its session was opened again.

use super::{super::record::Asked, Line, Rule, result};
use crate::provider::{Format, objection};
use abridged::conversation::context::check::violations;
use serde_json::Value;

#[derive(Default)]
pub struct Contexts;

impl Rule for Contexts {
    fn name(&self) -> &'static str {
        "a context is valid and stays"
    }

    fn take(&mut self, line: &Line, of: Option<&Asked>) -> Result<(), String> {
        if let Some(answer) = result(line, of, &["session/context"]) {
            return valid(answer, of.and_then(|of| of.params["format"].as_str()).unwrap_or("messages"));
        }
        match line {
            Line::Reopened { session, before, after } => same(before, after).map_err(|why| format!("{session}: {why}")),
            _ => Ok(()),
        }
    }
}

fn valid(answer: &Value, format: &str) -> Result<(), String> {
    if let Some(messages) = answer["messages"].as_array() {
        let found = violations(messages);
        if !found.is_empty() {
            return Err(format!("{found:?}"));
        }
        if answer["entryIds"].as_array().map(Vec::len) != Some(messages.len()) {
            return Err(format!("{} messages and {}", messages.len(), answer["entryIds"]));
        }
    }
    let Some(format) = Format::ALL.into_iter().find(|known| known.api() == format) else { return Ok(()) };
    match objection(format, "m", answer["body"].clone()) {
        Some(objection) => Err(format!("{format:?}: {objection}; {:.3000}", answer["body"].to_string())),
        None => Ok(()),
    }
}

fn same(before: &Value, after: &Value) -> Result<(), String> {
    for part in ["messages", "entryIds", "compactionEntryId", "model"] {
        if before[part] == after[part] {
            continue;
        }
        let (old, new) = (list(&before[part]), list(&after[part]));
        let at = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        let show =
            |of: &[Value]| of.get(at).map_or_else(|| "nothing".to_owned(), |it| format!("{:.600}", it.to_string()));
        return Err(format!("{part} differ at {at} of {}: {} became {}", old.len(), show(old), show(new)));
    }
    Ok(())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}
