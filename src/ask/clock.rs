//! Time and chance for requests to models. Tests bring their own.

#![expect(clippy::disallowed_methods, reason = "the clock of the real world")]

use super::Pending;
use std::time::{Duration, Instant};

/// Source of time and chance.
pub trait Clock: Send + Sync {
    /// The current instant.
    fn now(&self) -> Instant;

    /// The current time of day, in milliseconds since 1970.
    fn timestamp_ms(&self) -> i64;

    /// Waits until `at`. An instant in the past ends the wait at once.
    fn sleep_until(&self, at: Instant) -> Pending<'_, ()>;

    /// A random number.
    fn chance(&self) -> u8;
}

/// The result of `work`, where it ends before `until`. Otherwise `work` is dropped.
pub async fn within<T>(clock: &dyn Clock, until: Instant, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! { biased;
        done = work => Some(done),
        () = clock.sleep_until(until) => None,
    }
}

/// `now` and a duration. The far future where the sum is too large.
#[must_use]
pub fn after(now: Instant, duration: Duration) -> Instant {
    /// A year.
    const FAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);
    now.checked_add(duration).unwrap_or(now + FAR)
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn timestamp_ms(&self) -> i64 {
        crate::clock::now().as_millisecond()
    }

    fn sleep_until(&self, at: Instant) -> Pending<'_, ()> {
        Box::pin(tokio::time::sleep_until(at.into()))
    }

    fn chance(&self) -> u8 {
        uuid::Uuid::new_v4().as_bytes()[0]
    }
}
