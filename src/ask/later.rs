//! A value that comes later, while tasks wait for it.

use tokio::sync::SetOnce;

/// A value that comes once.
#[derive(Debug)]
pub struct Later<T>(SetOnce<T>);

impl<T> Default for Later<T> {
    fn default() -> Self {
        Self(SetOnce::new())
    }
}

impl<T> Later<T> {
    /// A value that is there.
    #[must_use]
    pub fn now(value: T) -> Self {
        Self(SetOnce::new_with(Some(value)))
    }

    /// The value comes. The first one stays.
    pub fn come(&self, value: T) {
        // The error is the value that came too late.
        let _ = self.0.set(value);
    }

    /// The value, where it is there.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// Waits for the value.
    pub async fn wait(&self) -> &T {
        self.0.wait().await
    }
}

/// Runs both. An error of the first one ends the second.
///
/// # Errors
/// Those of the first one.
pub async fn both<A, B, E>(
    first: impl Future<Output = Result<A, E>>,
    second: impl Future<Output = B>,
) -> Result<(A, B), E> {
    tokio::try_join!(first, async { Ok(second.await) })
}
