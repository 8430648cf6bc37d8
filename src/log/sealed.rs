//! A session file that a session knows and does not read.
//!
//! The core of a session hands it on to work that runs elsewhere. Only code that may wait for the disk opens it.

use super::source::Source;

/// Proof that the caller may wait for the disk. The shell has it, and the core of a session has none.
#[derive(Debug)]
pub struct Blocking(());

impl Blocking {
    /// Declares that the calling thread may wait for the disk. A test names the files that call it.
    #[must_use]
    pub fn is_allowed_here() -> Self {
        Self(())
    }
}

/// A session file that is read elsewhere.
#[derive(Debug, Clone)]
pub struct Sealed(Source);

impl From<Source> for Sealed {
    fn from(source: Source) -> Self {
        Self(source)
    }
}

impl Sealed {
    /// The file, for reading.
    #[must_use]
    pub fn open(&self, _: &Blocking) -> &Source {
        &self.0
    }
}
