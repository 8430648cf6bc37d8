//! Reports on requests without the secrets in their texts.

use crate::{ask::request::Update, provider::Delta, redact::Stream};
use std::sync::{Mutex, PoisonError};

/// Redacts the reports on a request.
pub struct Redacted {
    enabled: bool,
    text: Mutex<Stream>,
}

impl Redacted {
    /// Reports that are redacted, where that is `enabled`.
    #[must_use]
    pub fn new(enabled: bool) -> Self {
        Self { enabled, text: Mutex::new(Stream::new(enabled)) }
    }

    /// The report without secrets. None while a line is not complete, and for anything of an answer but its text.
    pub fn update(&self, update: Update) -> Option<Update> {
        let mut stream = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = |stream: &mut Stream| std::mem::replace(stream, Stream::new(self.enabled)).finish();
        let text = |text: Option<String>| text.map(|text| Update::Delta(Delta::Text(text)));
        match update {
            Update::Delta(Delta::Text(piece)) => text(stream.push(&piece)),
            Update::Complete => text(ended(&mut stream)),
            Update::Delta(_) => None,
            Update::Begins => {
                *stream = Stream::new(self.enabled);
                Some(Update::Begins)
            }
            other => Some(other),
        }
    }
}
