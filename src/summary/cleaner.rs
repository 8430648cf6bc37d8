//! The cleaning of texts of a conversation for every way to a summary.

use crate::{
    prompts::escape_tags,
    redact::{Clean, Secrets},
    settings::Settings,
};
use std::{cell::RefCell, collections::HashMap};

/// Cleans texts: their secrets go, and our tags are made harmless. It keeps results, because the drafts of one plan clean
/// the same texts again.
#[derive(Debug)]
pub struct Cleaner {
    secrets: Secrets,
    todo_tools: Vec<String>,
    known: RefCell<Known>,
}

/// Texts and their cleaned forms.
#[derive(Debug, Default)]
struct Known {
    cleaned: HashMap<Box<str>, Clean>,
    /// The size of both, in bytes.
    bytes: usize,
}

/// The largest size of the results that a cleaner keeps, in bytes: a context of a million tokens.
const KEPT_CLEANED: usize = 8 << 20;

impl Cleaner {
    /// A cleaner with these settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let todo_tools = settings.tools.todo.clone();
        Self { secrets: settings.redaction.secrets(), todo_tools, known: RefCell::default() }
    }

    /// Whether secrets are removed.
    #[must_use]
    pub fn secrets(&self) -> Secrets {
        self.secrets
    }

    /// Tools that hold a todo list, beside the known ones.
    #[must_use]
    pub fn todo_tools(&self) -> &[String] {
        &self.todo_tools
    }

    /// The cleaned form of a text.
    #[must_use]
    pub fn clean(&self, text: &str) -> Clean {
        if let Some(known) = self.known.borrow().cleaned.get(text) {
            return known.clone();
        }
        let cleaned = clean(self.secrets, text);
        let mut known = self.known.borrow_mut();
        let bytes = known.bytes + text.len() + cleaned.len();
        if bytes <= KEPT_CLEANED {
            known.bytes = bytes;
            known.cleaned.insert(text.into(), cleaned.clone());
        }
        cleaned
    }
}

/// The cleaned form of a text.
#[must_use]
pub fn clean(secrets: Secrets, text: &str) -> Clean {
    Clean::assembled(escape_tags(&secrets.clean(text)))
}
