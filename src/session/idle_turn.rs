//! The turn of a session for idle maintenance. One session of a daemon has it at a time.

use std::{sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;

/// The turn of a session. Dropping it leaves the turn, or the queue.
pub(super) enum Turn {
    /// It is not asked for.
    No,
    /// It is in the queue.
    Waits { _queue: AbortOnDropHandle<()> },
    /// It has come.
    Comes { _end: AbortOnDropHandle<()> },
}

impl Turn {
    /// Waits in the queue of all sessions. `comes` gets the turn.
    pub fn wait(all: Arc<Semaphore>, comes: impl FnOnce(OwnedSemaphorePermit) + Send + 'static) -> Self {
        let queue = tokio::spawn(async move {
            if let Ok(permit) = all.acquire_owned().await {
                comes(permit);
            }
        });
        Self::Waits { _queue: AbortOnDropHandle::new(queue) }
    }

    /// Takes the turn for at most `longest`: a model that does not answer holds up one session, not all.
    pub fn take(permit: OwnedSemaphorePermit, longest: Duration) -> Self {
        let end = tokio::spawn(async move {
            tokio::time::sleep(longest).await;
            drop(permit);
        });
        Self::Comes { _end: AbortOnDropHandle::new(end) }
    }
}
