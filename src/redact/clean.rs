//! Redacted texts as a type. Requests to other readers and texts that stand for a conversation are built of them, so that a
//! text that was not redacted does not type-check there.

use super::{Told, redact, redact_telling};
use serde::{Deserialize, Serialize};
use std::{fmt, ops::Deref};

/// Whether secrets are removed from texts: the setting `redaction.enabled`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// They are redacted.
    Redacted,
    /// They stay.
    Sent,
}

/// A text without secrets, as far as the settings redact them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Clean(String);

impl Secrets {
    /// Redacts a text.
    #[must_use]
    pub fn clean(self, text: &str) -> Clean {
        match self {
            Self::Redacted => Clean(redact(text).into_owned()),
            Self::Sent => Clean(text.to_owned()),
        }
    }

    /// Redacts a text, with the values that labels in it and in earlier texts gave away.
    #[must_use]
    pub fn clean_with(self, text: &str, told: &mut Told) -> Clean {
        match self {
            Self::Redacted => {
                let (redacted, values) = redact_telling(text);
                told.add(values);
                Clean(told.redact(&redacted).into_owned())
            }
            Self::Sent => Clean(text.to_owned()),
        }
    }

    /// Whether a text may stand where clean ones do.
    #[must_use]
    pub fn allow(self, text: &str) -> bool {
        self == Self::Sent || redact(text) == text
    }
}

impl Clean {
    /// A text that is put together of clean ones and of prompts, or is a part of a clean one. A test lists the files that may
    /// say so.
    #[must_use]
    pub fn assembled(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl Deref for Clean {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
