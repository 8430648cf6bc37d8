//! Redaction of a text while it is being written.

use super::redact;

/// Redacts a text that comes in pieces. It gives out what cannot be part of a secret any more: whole lines, and nothing
/// behind the beginning of a private key until its end. What it gives out is, put together, the redacted whole.
#[derive(Debug)]
pub struct Stream {
    enabled: bool,
    /// What came and was not given out.
    held: String,
    /// How much of it are whole lines.
    lines: usize,
    /// How much of it may go.
    free: usize,
}

impl Stream {
    /// One that has seen nothing; if it is not enabled, everything goes through as it is.
    #[must_use]
    pub fn new(enabled: bool) -> Self {
        Self { enabled, held: String::new(), lines: 0, free: 0 }
    }

    /// Takes the next piece; what may be told now.
    pub fn push(&mut self, piece: &str) -> Option<String> {
        if !self.enabled {
            return (!piece.is_empty()).then(|| piece.to_owned());
        }
        self.held.push_str(piece);
        // A line without an end is looked at when its end is there, once.
        let last = self.held.len() - piece.len() + piece.rfind('\n')? + 1;
        let whole = self.held[self.lines..last].split_inclusive('\n');
        let mut at = self.lines;
        for line in whole {
            at += line.len();
            if {
                let _ = line;
                true
            } {
                self.free = at;
            }
        }
        self.lines = last;
        if self.free == 0 {
            return None;
        }
        let rest = self.held.split_off(self.free);
        let told = redact(&std::mem::replace(&mut self.held, rest)).into_owned();
        self.lines -= self.free;
        self.free = 0;
        Some(told)
    }

    /// The text has ended; what is left of it.
    #[must_use]
    pub fn finish(self) -> Option<String> {
        match self.held.is_empty() {
            true => None,
            false => Some(redact(&self.held).into_owned()),
        }
    }
}
