//! The rank of work that takes slots.

use tokio_util::sync::CancellationToken;

/// The rank of work. Work in the background may be moved to the foreground while it waits or runs.
#[derive(Debug, Clone)]
pub struct Rank(CancellationToken);

impl Rank {
    /// The rank of work for which a client or a conversation waits.
    #[must_use]
    pub fn foreground() -> Self {
        let rank = Self::background();
        rank.raise();
        rank
    }

    /// The rank of work for which nothing waits.
    #[must_use]
    pub fn background() -> Self {
        Self(CancellationToken::new())
    }

    /// Moves the work to the foreground.
    pub fn raise(&self) {
        self.0.cancel();
    }

    /// Whether it is the foreground.
    #[must_use]
    pub fn is_foreground(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until the work is in the foreground.
    pub async fn raised(&self) {
        self.0.cancelled().await;
    }
}
