//! A clock for tests. It stands still while a future makes progress, and steps to the next alarm when it waits.

use super::{Pending, clock::Clock};
use std::{
    future,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

/// A clock that steps.
#[derive(Clone)]
pub struct SteppedClock(Arc<Mutex<State>>);

struct State {
    start: Instant,
    now: Instant,
    /// The instants that the future waits for since the last poll.
    alarms: Vec<Instant>,
}

impl Default for SteppedClock {
    fn default() -> Self {
        let start = Instant::now();
        Self(Arc::new(Mutex::new(State { start, now: start, alarms: Vec::new() })))
    }
}

impl SteppedClock {
    /// The time since the start.
    #[must_use]
    pub fn passed(&self) -> Duration {
        let state = self.state();
        state.now - state.start
    }

    /// Runs a future. The clock steps to the next alarm whenever nothing else happens.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            self.state().alarms.clear();
            if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return result;
            }
            let mut state = self.state();
            state.now = *state.alarms.iter().min().expect("the future waits for no alarm: it never ends");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic")
    }
}

impl Clock for SteppedClock {
    fn now(&self) -> Instant {
        self.state().now
    }

    fn timestamp_ms(&self) -> i64 {
        7
    }

    fn sleep_until(&self, at: Instant) -> Pending<'_, ()> {
        Box::pin(future::poll_fn(move |_| {
            let mut state = self.state();
            if state.now >= at {
                return Poll::Ready(());
            }
            state.alarms.push(at);
            Poll::Pending
        }))
    }

    fn chance(&self) -> u8 {
        0
    }
}
