//! Time and chance for requests to models. Tests bring their own.

use super::Pending;
use std::time::Instant;

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
