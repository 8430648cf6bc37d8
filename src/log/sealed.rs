//! A session file that a session knows and does not read.
//!
//! The core of a session hands it on to work that runs elsewhere. Only code that may wait for the disk opens it.

use super::{error::StoreError, source::Source};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Proof that the caller may wait for the disk. The shell has it, and the core of a session has none.
#[derive(Debug)]
pub struct Blocking {
    /// True after the caller does not want the result any more.
    stopped: Option<Arc<AtomicBool>>,
}

impl Blocking {
    /// Declares that the calling thread may wait for the disk. A test names the files that call it.
    #[must_use]
    pub fn is_allowed_here() -> Self {
        Self { stopped: None }
    }

    /// The same until the flag is set. Readers look at it between entries.
    #[must_use]
    pub fn until(self, stopped: Arc<AtomicBool>) -> Self {
        Self { stopped: Some(stopped) }
    }

    /// The same without the flag, for work that must not stop in the middle.
    #[must_use]
    pub fn to_the_end(&self) -> Self {
        Self { stopped: None }
    }

    /// Whether the flag is set.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.as_ref().is_some_and(|stopped| stopped.load(Ordering::Relaxed))
    }

    /// Fails after the flag is set.
    ///
    /// # Errors
    /// `Stopped`.
    pub fn go_on(&self) -> Result<(), StoreError> {
        if self.is_stopped() { Err(StoreError::Stopped) } else { Ok(()) }
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
