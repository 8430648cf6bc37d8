//! The instructions of a model beside the messages: the system prompt and the tools.

use super::state::SessionData;
use crate::conversation::{
    path::Path,
    tokens::{self, Estimator, Size},
};
use serde_json::Value;

/// The system prompt and the tools in force, with their sizes.
#[derive(Debug, Default)]
pub struct Instructions {
    system_prompt: Option<String>,
    tools: Option<Vec<Value>>,
    /// The system message that stands for what the path declares, where nobody gave anything else.
    message: Option<Value>,
    sizes: (Size, Size),
}

impl Instructions {
    /// The instructions that a client gave or stored, else those that the system messages of the path declare.
    #[must_use]
    pub fn new(data: &SessionData, path: &Path) -> Self {
        let declared = path.system_prompt();
        let system_prompt = data.system_prompt.clone().or_else(|| declared.text());
        let tools = data.tools.clone().or_else(|| declared.tools());
        let given = data.system_prompt.is_some() || data.tools.is_some();
        let message = declared.message().filter(|_| !given);
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

    /// The leading system message in pi's form, where all of it comes from such messages.
    #[must_use]
    pub fn message(&self) -> Option<&Value> {
        self.message.as_ref()
    }

    /// The estimated tokens of the system prompt and of the tools.
    #[must_use]
    pub fn tokens(&self, estimator: Estimator) -> (u64, u64) {
        let (system, tools) = &self.sizes;
        let (system, tools) = match estimator {
            Estimator::Chars => (system.chars(), tools.chars()),
            Estimator::Tiktoken => (
                system.counted(|| self.system_prompt().map_or(0, tokens::of_text)),
                tools.counted(|| {
                    self.tools().unwrap_or_default().iter().map(|it| tokens::of_text(&it.to_string())).sum()
                }),
            ),
        };
        (u64::from(system), u64::from(tools))
    }
}
