//! The instructions of a model beside the messages: the system prompt and the tools.

use super::{
    entry::Entry,
    message::{outline::Role, system::SystemPrompt},
    tokens::{self, Estimator, Size},
};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// The system prompt and the tools that a client gave. An `abridged.session` entry stores them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Given {
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// The tools.
    pub tools: Option<Vec<Value>>,
}

/// The system prompt and the tools in force, with their sizes.
#[derive(Debug, Default)]
pub struct Instructions {
    system_prompt: Option<String>,
    tools: Option<Vec<Value>>,
    /// One system message in pi's form, if no client gave a system prompt or tools.
    message: Option<Value>,
    sizes: (Size, Size),
}

/// The difference between two instructions, in estimated tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Difference {
    /// The growth of the system prompt and the tools that both have. Negative where they shrank or were removed.
    pub growth: i64,
    /// The size of a system prompt or tools that the earlier instructions do not have. A provider may have received them
    /// before they were announced.
    pub added: u64,
}

impl Instructions {
    /// The instructions that a client gave, or else those that the system messages of the path declare.
    #[must_use]
    pub fn new(given: Given, declared: &SystemPrompt) -> Self {
        let message = declared.message().filter(|_| given == Given::default());
        let system_prompt = given.system_prompt.or_else(|| declared.text());
        let tools = given.tools.or_else(|| declared.tools());
        let length = |text: &str| Size::of_chars(tokens::utf16_len(text));
        let system = system_prompt.as_deref().map_or_else(Size::nothing, length);
        let tools_size = tools.as_deref().map_or_else(Size::nothing, |tools| {
            Size::of_chars(tools.iter().map(|tool| tokens::utf16_len(&tool.to_string())).sum())
        });
        Self { system_prompt, tools, message, sizes: (system, tools_size) }
    }

    /// The system prompt.
    #[must_use]
    pub fn system_prompt(&self) -> Option<&str> {
        self.system_prompt.as_deref()
    }

    /// The tools.
    #[must_use]
    pub fn tools(&self) -> Option<&[Value]> {
        self.tools.as_deref()
    }

    /// The leading system message in pi's form, if all of it comes from system messages.
    #[must_use]
    pub fn message(&self) -> Option<&Value> {
        self.message.as_ref()
    }

    /// The estimated tokens of the system prompt and of the tools. With `Tiktoken` the first call counts, which may take a
    /// while.
    #[must_use]
    pub fn tokens(&self, estimator: Estimator) -> (u64, u64) {
        let (system, tools) = &self.sizes;
        let system = system.tokens(estimator, || self.system_prompt().map_or(0, tokens::of_text));
        let of_tool = |tool: &Value| tokens::of_text(&tool.to_string());
        let tools = tools.tokens(estimator, || self.tools().unwrap_or_default().iter().map(of_tool).sum());
        (u64::from(system), u64::from(tools))
    }

    /// Whether both have the same texts.
    #[must_use]
    pub fn are_the_same_as(&self, other: &Self) -> bool {
        self.system_prompt().unwrap_or_default() == other.system_prompt().unwrap_or_default()
            && self.tools().unwrap_or_default() == other.tools().unwrap_or_default()
    }

    /// The difference to earlier instructions.
    #[must_use]
    pub fn difference(&self, earlier: &Self, estimator: Estimator) -> Difference {
        let mut difference = Difference::default();
        if self.system_prompt == earlier.system_prompt && self.tools == earlier.tools {
            return difference;
        }
        let ((system, tools), (system_before, tools_before)) = (self.tokens(estimator), earlier.tokens(estimator));
        let mut part = |known_before: bool, before: u64, now: u64| match known_before {
            true => difference.growth += now as i64 - before as i64,
            false => difference.added += now,
        };
        part(earlier.system_prompt.is_some(), system_before, system);
        part(earlier.tools.is_some(), tools_before, tools);
        difference
    }
}

/// The instructions that the entries of a path announce, entry by entry. Instructions that a client gives for a load alone
/// are not on the path.
#[derive(Debug, Clone, Default)]
pub struct Announced {
    given: Given,
    declared: SystemPrompt,
    instructions: Arc<Instructions>,
}

impl Announced {
    /// Takes the next entry of the path. Returns the instructions before it if the entry announces others.
    pub fn take(&mut self, entry: &Entry) -> Option<Arc<Instructions>> {
        if let Some(data) = entry.ours("session") {
            self.given = Given::deserialize(data).unwrap_or_default();
        } else if entry.is_from(Role::System) {
            let message = entry.message_json().and_then(|json| serde_json::from_str(json).ok())?;
            self.declared.apply(&message);
        } else {
            return None;
        }
        Some(self.renew())
    }

    /// Takes the instructions that the entry carries which the context begins with.
    pub fn restore(&mut self, foundation: &Entry) {
        if let Some(data) = foundation.preserved().and_then(|preserved| preserved.session.as_ref()) {
            self.given = Given::deserialize(data).unwrap_or_default();
        }
        self.declared = SystemPrompt::default();
        if let Some(message) = foundation.carried_system_message() {
            self.declared.apply(message);
        }
        // The entries before it are not always in memory.
        self.instructions = Arc::default();
        self.renew();
    }

    /// Reads the instructions again. Returns those before.
    fn renew(&mut self) -> Arc<Instructions> {
        let mut now = Instructions::new(self.given.clone(), &self.declared);
        // A part that was announced and then cleared is known to be empty: later reports do not contain it.
        if self.instructions.system_prompt.is_some() {
            now.system_prompt.get_or_insert_default();
        }
        if self.instructions.tools.is_some() {
            now.tools.get_or_insert_default();
        }
        std::mem::replace(&mut self.instructions, Arc::new(now))
    }

    /// The instructions up to the last entry.
    #[must_use]
    pub fn instructions(&self) -> &Instructions {
        &self.instructions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn given(system_prompt: Option<&str>, tools: Option<&[Value]>) -> Instructions {
        let given = Given { system_prompt: system_prompt.map(str::to_owned), tools: tools.map(<[Value]>::to_vec) };
        Instructions::new(given, &SystemPrompt::default())
    }

    #[test]
    fn a_part_that_was_never_announced_is_added_and_another_one_grows() {
        let (short, long) = ("x".repeat(400), "x".repeat(1_000));
        let tools = [json!({"name": "y".repeat(389)})];
        let between = |before: &Instructions, now: &Instructions| now.difference(before, Estimator::Chars);
        let (nothing, prompt) = (Instructions::default(), given(Some(&short), None));
        assert_eq!(between(&nothing, &prompt), Difference { growth: 0, added: 100 });
        assert_eq!(between(&prompt, &prompt), Difference::default());
        assert_eq!(between(&prompt, &nothing), Difference { growth: -100, added: 0 });
        let all = given(Some(&long), Some(&tools));
        assert_eq!(between(&prompt, &all), Difference { growth: 150, added: 100 });
        assert_eq!(between(&all, &given(Some(&short), Some(&[]))), Difference { growth: -250, added: 0 });
    }
}
