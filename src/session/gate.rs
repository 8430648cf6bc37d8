//! A gate before a step of a job: the session opens it when the start of the step is sent.

use tokio_util::sync::CancellationToken;

/// A gate that opens once.
#[derive(Debug, Clone, Default)]
pub struct Gate(CancellationToken);

impl Gate {
    /// Opens the gate.
    pub fn open(&self) {
        self.0.cancel();
    }

    /// Waits until the gate is open.
    pub async fn wait(&self) {
        self.0.cancelled().await;
    }
}
