//! Effects that tell the client something.

use super::Effects;
use crate::{
    conversation::entry::{self, Entry},
    ids::OperationId,
    protocol::{
        events::{Event, Severity},
        notices::{NoticeCode, Warning},
        types,
    },
    wire::{outbox::About, transport},
};
use serde_json::value::RawValue;

/// Size above which an entry is announced by its id and type alone, in bytes.
const LARGEST_ANNOUNCED: usize = 48 * 1024;

impl Effects {
    /// Announces an entry that is on disk.
    pub fn announce(&self, entry: &Entry, operation: Option<OperationId>) {
        self.announce_of(entry, About { operation, ..About::default() });
    }

    /// Announces an entry that is on disk, and that a turn made.
    pub fn announce_of_turn(&self, entry: &Entry, turn: Option<OperationId>) {
        self.announce_of(entry, About { turn, ..About::default() });
    }

    fn announce_of(&self, entry: &Entry, about: About) {
        let whole = transport::escaped_len(entry.line()) <= LARGEST_ANNOUNCED;
        let event = Event::EntryAppended {
            entry: whole.then(|| wire(entry)),
            entry_type: (!whole).then(|| entry.kind.clone()),
        };
        self.emit(About { entry: Some(entry.id.clone()), ..about }, event);
    }

    /// Sends a warning.
    pub fn warn(&self, code: NoticeCode, title: &'static str, detail: impl Into<String>) {
        self.emit(About::default(), Warning::new(code, title, detail).into());
    }

    /// Sends an information.
    pub fn inform(&self, code: NoticeCode, title: &str, detail: String) {
        let event = Event::Notice { severity: Severity::Info, code, title: title.to_owned(), detail: Some(detail) };
        self.emit(About::default(), event);
    }
}

/// An entry on the wire: its line, with the parent that it has in the tree.
#[must_use]
pub fn wire(entry: &Entry) -> types::Entry {
    let line = entry.line_with_parent();
    types::Entry(RawValue::from_string(entry::one_line(&line).into_owned()).expect("lines were read as JSON"))
}
