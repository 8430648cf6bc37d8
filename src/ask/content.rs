//! The texts of a request to a model. A reader other than the session's own model gets no secrets, so there are two ways to
//! make them: as they are for that model, and redacted for every other reader.

use crate::{
    provider::{self, Part, Turn},
    redact::{Clean, Secrets},
};
use serde_json::Value;

/// The texts of a request.
#[derive(Debug, Clone, Default)]
pub struct Content {
    system: Option<String>,
    history: Vec<Value>,
    turns: Vec<Turn>,
    tools: Vec<Value>,
    has_bound_thinking: bool,
    question: Option<String>,
    instructions: Option<String>,
}

impl Content {
    /// The live request of a session for its own model, byte for byte, so that the provider's cache holds.
    #[must_use]
    pub fn live(request: provider::Request) -> Self {
        let provider::Request { system, history, turns, tools, has_bound_thinking, .. } = request;
        Self { system, history, turns, tools, has_bound_thinking, question: None, instructions: None }
    }

    /// The same with instructions for the provider's own compaction.
    #[must_use]
    pub fn with_instructions(self, instructions: Option<Clean>) -> Self {
        Self { instructions: instructions.map(Clean::into_string), ..self }
    }

    /// A conversation for another reader.
    #[must_use]
    pub fn of(request: provider::Request, secrets: Secrets) -> Self {
        let mut content = Self::live(request);
        if secrets == Secrets::Redacted {
            content.has_bound_thinking = false;
            content.system = content.system.map(|text| secrets.clean(&text).into_string());
            content.turns.iter_mut().for_each(clean);
            // A block with a signature was made of what its model may see, and is of no use changed.
            let unsigned = content.history.iter_mut().filter(|item| item.get("signature").is_none());
            unsigned.chain(&mut content.tools).for_each(clean_value);
        }
        content
    }

    /// One question.
    #[must_use]
    pub fn asking(system: Clean, question: Clean) -> Self {
        let (system, turns) = (Some(system.into_string()), vec![Turn::user(question.into_string())]);
        Self { system, turns, ..Self::default() }
    }

    /// The same with one more message of the user at its end. It changes no byte before it.
    #[must_use]
    pub fn then(self, question: Clean) -> Self {
        Self { question: Some(question.into_string()), ..self }
    }

    /// The message of the user after its turns.
    #[must_use]
    pub fn question(&self) -> Option<&str> {
        self.question.as_deref()
    }

    /// The system prompt.
    #[must_use]
    pub fn system(&self) -> Option<&str> {
        self.system.as_deref()
    }

    /// The state that the provider made of the conversation before it.
    #[must_use]
    pub fn history(&self) -> &[Value] {
        &self.history
    }

    /// The instructions for the provider's own compaction, in the place of its prompt.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// The conversation, oldest first.
    #[must_use]
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Whether the thinking in its turns stands after the same bytes as when it was produced.
    #[must_use]
    pub fn has_bound_thinking(&self) -> bool {
        self.has_bound_thinking
    }

    /// The tools of the conversation, each `{name, description, inputSchema}`.
    #[must_use]
    pub fn tools(&self) -> &[Value] {
        &self.tools
    }
}

/// Redacts a turn.
fn clean(turn: &mut Turn) {
    let parts = match turn {
        Turn::User(parts) | Turn::Assistant(parts) => parts,
        Turn::Result(outcome) => &mut outcome.parts,
    };
    let redacted = |text: &str| Secrets::Redacted.clean(text).into_string();
    for part in parts {
        match part {
            Part::Text { text, .. } => *text = redacted(text),
            Part::Call { arguments, .. } => {
                let redacted = redacted(arguments);
                // A placeholder is no JSON everywhere.
                let readable = serde_json::from_str::<Value>(&redacted).is_ok();
                *arguments = if readable { redacted } else { "{}".to_owned() };
            }
            Part::Thinking { .. } | Part::Image { .. } => {}
        }
    }
}

/// Redacts the texts of a value. Ids, names and encrypted parts are of use only as they are.
pub fn clean_value(value: &mut Value) {
    const KEPT: [&str; 5] = ["id", "call_id", "name", "type", "encrypted_content"];
    match value {
        Value::String(text) => *text = Secrets::Redacted.clean(text).into_string(),
        Value::Array(items) => items.iter_mut().for_each(clean_value),
        Value::Object(fields) => {
            let is_kept = |name: &str, value: &Value| value.is_string() && KEPT.contains(&name);
            fields.iter_mut().filter(|(name, value)| !is_kept(name, value)).for_each(|(_, value)| clean_value(value));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
