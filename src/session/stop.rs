//! Stopping work from outside.

use tokio_util::sync::CancellationToken;

/// Stops work from any task.
#[derive(Debug, Clone, Default)]
pub struct Stop(CancellationToken);

impl Stop {
    /// Requests the stop.
    pub fn request(&self) {
        self.0.cancel();
    }

    /// Whether the stop was requested.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until the stop is requested.
    pub async fn wait(&self) {
        self.0.cancelled().await;
    }
}
