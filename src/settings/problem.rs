//! Problems of a layer of settings or of a prompt.

use serde::Serialize;
use std::{fmt, path::PathBuf};

/// A problem of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, where the problem is in one.
    pub file: Option<PathBuf>,
    /// The dotted key; empty where the text is no JSON at all.
    pub key: String,
    /// The line in its file, where it has one.
    pub line: Option<usize>,
    /// The problem, and what was expected.
    pub what: String,
    /// Its effect.
    pub flaw: Flaw,
    /// Its subject.
    pub subject: Subject,
}

/// The subject of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A setting, or a file of them.
    Settings,
    /// A text in the place of a prompt, or a folder of them.
    Prompts,
}

/// The effect of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// The layer is not used: it is no JSON object, or cannot be read.
    Broken,
    /// The value is not used; its old value or its default is, and the rest of the layer holds.
    Invalid,
    /// The nearest value of its range is used instead.
    Clamped,
    /// The key is no setting and is ignored.
    Unknown,
    /// The setting needs trust that the project does not have, and is ignored.
    Untrusted,
}

impl Problem {
    /// A layer that cannot be used.
    #[must_use]
    pub fn broken(what: String) -> Self {
        Self { file: None, key: String::new(), line: None, what, flaw: Flaw::Broken, subject: Subject::Settings }
    }

    /// Returns true where a value that was set is not used.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self.flaw, Flaw::Broken | Flaw::Invalid)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.what)
    }
}
