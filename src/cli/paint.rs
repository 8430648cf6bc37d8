//! Colours, where there is a terminal to show them.
//!
//! A painted text has marks, which a printer turns into sequences of the terminal.

#![expect(clippy::disallowed_methods, reason = "a command of a person")]

use std::io::IsTerminal;

/// The marks and their sequences. The marks are noncharacters of Unicode: no text has them for a reason of its own.
const MARKS: [(char, &str); 6] = [
    (BOLD, "\u{1b}[1m"),
    (DIM, "\u{1b}[2m"),
    (RED, "\u{1b}[31m"),
    (GREEN, "\u{1b}[32m"),
    (YELLOW, "\u{1b}[33m"),
    (END, "\u{1b}[0m"),
];

const BOLD: char = '\u{fdd0}';
const DIM: char = '\u{fdd1}';
const RED: char = '\u{fdd2}';
const GREEN: char = '\u{fdd3}';
const YELLOW: char = '\u{fdd4}';
const END: char = '\u{fdd5}';

/// The sequence of a mark.
pub(super) fn sequence(mark: char) -> Option<&'static str> {
    MARKS.iter().find(|(it, _)| *it == mark).map(|(_, sequence)| *sequence)
}

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

    /// For a terminal, whatever stdout is.
    #[cfg(test)]
    pub(super) fn on() -> Self {
        Self { on: true }
    }

    /// None.
    pub(super) fn off() -> Self {
        Self { on: false }
    }

    /// Whether a terminal shows them.
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    fn with(&self, mark: char, text: &str) -> String {
        if self.on { format!("{mark}{text}{END}") } else { text.to_owned() }
    }

    pub(super) fn bold(&self, text: &str) -> String {
        self.with(BOLD, text)
    }

    pub(super) fn dim(&self, text: &str) -> String {
        self.with(DIM, text)
    }

    pub(super) fn red(&self, text: &str) -> String {
        self.with(RED, text)
    }

    pub(super) fn green(&self, text: &str) -> String {
        self.with(GREEN, text)
    }

    pub(super) fn yellow(&self, text: &str) -> String {
        self.with(YELLOW, text)
    }

    /// Marks of a bold text. They take no room on the screen.
    pub(super) fn width_of_bold(&self) -> usize {
        if self.on { 2 } else { 0 }
    }
}
