//! A session that begins with a document about another one.

use super::{Begun, Founding, Keeping, header};
use crate::{
    conversation::{
        context,
        entry::{CarriedTodos, Entry, Stamps},
    },
    ids::EntryId,
    log::names,
    prompts::{Prompt, escape_tags, escape_within},
    redact::Clean,
    session::state::State,
};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// `customType` of the message with the document.
pub const HANDOFF: &str = "handoff";

/// A document with which a session begins.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// The text, as it was written.
    pub text: &'a Clean,
    /// More `details` of its entry.
    pub details: &'a Value,
    /// The open tasks of the agent.
    pub todos: Option<&'a CarriedTodos>,
    /// Entries that came after the document was asked for. They follow it.
    pub newer: &'a [Arc<Entry>],
}

/// A file with a document, beside the file of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The name in the folder.
    pub name: String,
    /// The text.
    pub text: Clean,
}

impl Saved {
    /// The path of the file, for a session with this file: in the folder with the name of the session, as oh-my-pi has it.
    #[must_use]
    pub fn path(&self, session: &Path) -> PathBuf {
        session.with_extension("").join(&self.name)
    }
}

impl Founding {
    /// The session that begins with a document. It has the values of the other one, and its pins as pinned texts. None where
    /// a line is no entry, which is a defect.
    #[must_use]
    pub fn with_document(state: &State, document: &Document<'_>, stamps: &mut Stamps) -> Option<Self> {
        let path = state.path();
        let kept = path.len() - document.newer.len();
        let mut begun = Begun::default();
        begun.add_values(state, stamps)?;
        begun.add_pins(&context::texts_of_pins(path, kept, path.pins()), stamps)?;
        let prompts = &state.settings().prompts;
        let escaped = escape_within(document.text, "handoff-context");
        let mut content = prompts.render(Prompt::HandoffContext, &[("document", &escaped)]);
        let lines = document.todos.map(CarriedTodos::lines).unwrap_or_default();
        if !lines.is_empty() {
            content.push_str("\n\n");
            content.push_str(&prompts.render(Prompt::TodosContext, &[("todos", &escape_tags(&lines))]));
        }
        let mut details = json!({"document": document.text, "sessionId": state.id, "leafEntryId": leaf(state, kept)});
        if let (Value::Object(details), Value::Object(more)) = (&mut details, document.details) {
            details.extend(more.clone());
        }
        let fields = [
            ("customType", HANDOFF.into()),
            ("content", content.into()),
            ("display", true.into()),
            ("details", details),
        ];
        begun.add("custom_message", stamps.stamp(), &fields)?;
        let carrier = begun.entries.last()?.clone();
        begun.lead_to(document.newer.first(), state, stamps.stamp())?;
        begun.entries.extend(document.newer.iter().cloned());
        let header = header(state, stamps);
        Some(Self { header, entries: begun.entries, carrier, saved: None, keeping: Keeping::like(state) })
    }

    /// The same with the document in a file, too.
    #[must_use]
    pub fn saving(self, text: Clean) -> Self {
        let name = names::of_document(&self.header.timestamp);
        Self { saved: Some(Saved { name, text }), ..self }
    }
}

/// The last entry that a document covers.
fn leaf(state: &State, kept: usize) -> Option<EntryId> {
    state.path()[..kept].iter().rev().find(|entry| !entry.is_marker()).map(|entry| entry.id.clone())
}
