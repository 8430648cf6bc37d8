//! Colours, where there is a terminal to show them.

#![expect(clippy::disallowed_methods, reason = "a command of a person")]

use std::io::IsTerminal;

/// Colours texts, or leaves them as they are.
pub(super) struct Paint {
    on: bool,
}

impl Paint {
    /// For stdout. `NO_COLOR` is heeded.
    pub(super) fn for_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { on: std::io::stdout().is_terminal() && !unwanted }
    }

    /// None.
    pub(super) fn off() -> Self {
        Self { on: false }
    }

    /// Whether a terminal shows them.
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    fn with(&self, code: &str, text: &str) -> String {
        if self.on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(super) fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }

    pub(super) fn dim(&self, text: &str) -> String {
        self.with("2", text)
    }

    pub(super) fn red(&self, text: &str) -> String {
        self.with("31", text)
    }

    pub(super) fn green(&self, text: &str) -> String {
        self.with("32", text)
    }

    pub(super) fn yellow(&self, text: &str) -> String {
        self.with("33", text)
    }

    /// Characters of a bold text that take no room on the screen.
    pub(super) fn width_of_bold(&self) -> usize {
        if self.on { 8 } else { 0 }
    }
}
