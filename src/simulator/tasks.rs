//! Futures that run together, without a runtime. A future is polled when it is started and whenever it is woken, the lowest
//! number first.

use crate::ask::Pending;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Wake, Waker},
};

/// Polls between two moves of the clock after which a future counts as one that wakes itself for ever.
const MOST_POLLS: usize = 1_000_000;

/// Running futures by their numbers.
pub struct Tasks<T> {
    running: BTreeMap<u64, (Pending<'static, T>, Waker)>,
    woken: Woken,
}

/// The numbers of the futures that are to be polled.
#[derive(Clone, Default)]
struct Woken(Arc<Mutex<BTreeSet<u64>>>);

impl Woken {
    fn numbers(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes one future.
struct Alert {
    number: u64,
    woken: Woken,
}

impl Wake for Alert {
    fn wake(self: Arc<Self>) {
        self.woken.numbers().insert(self.number);
    }
}

impl<T> Default for Tasks<T> {
    fn default() -> Self {
        Self { running: BTreeMap::new(), woken: Woken::default() }
    }
}

impl<T> Tasks<T> {
    /// Starts a future. It is polled by the next [`Self::poll`].
    ///
    /// # Panics
    /// When a future with this number runs.
    pub fn start(&mut self, number: u64, future: impl Future<Output = T> + Send + 'static) {
        let waker = Waker::from(Arc::new(Alert { number, woken: self.woken.clone() }));
        let before = self.running.insert(number, (Box::pin(future), waker));
        assert!(before.is_none(), "a future with number {number} runs");
        self.woken.numbers().insert(number);
    }

    /// Drops a future. Returns whether it ran.
    pub fn stop(&mut self, number: u64) -> bool {
        self.running.remove(&number).is_some()
    }

    /// The numbers of the futures that run.
    pub fn running(&self) -> impl Iterator<Item = u64> {
        self.running.keys().copied()
    }

    /// Polls until all futures wait. Returns the results in the order in which they came.
    ///
    /// # Panics
    /// When a future wakes itself without end.
    pub fn poll(&mut self) -> Vec<(u64, T)> {
        let mut done = Vec::new();
        for _ in 0..MOST_POLLS {
            let Some(number) = self.woken.numbers().pop_first() else { return done };
            let Some((future, waker)) = self.running.get_mut(&number) else { continue };
            if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(waker)) {
                self.running.remove(&number);
                done.push((number, result));
            }
        }
        panic!("the futures {:?} wake themselves without end", self.running().collect::<Vec<_>>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{clock::Clock as _, rank::Rank, slots::Slots, virtual_clock::VirtualClock};
    use std::time::Duration;

    #[test]
    fn results_come_in_the_order_of_time_and_then_of_numbers() {
        let clock = VirtualClock::default();
        let mut tasks = Tasks::default();
        for (number, seconds) in [(3, 1), (1, 2), (2, 1)] {
            let clock = clock.clone();
            tasks.start(number, async move {
                clock.sleep_until(clock.now() + Duration::from_secs(seconds)).await;
                seconds
            });
        }
        let mut results = tasks.poll();
        while let Some(at) = clock.next_alarm() {
            clock.advance_to(at);
            results.extend(tasks.poll());
        }
        assert_eq!(results, [(2, 1), (3, 1), (1, 2)]);
    }

    #[test]
    fn a_future_that_ends_wakes_the_one_that_waits_for_it() {
        let (clock, slots) = (VirtualClock::default(), Arc::new(Slots::default()));
        let mut tasks = Tasks::default();
        for number in [2, 1] {
            let (clock, slots) = (clock.clone(), slots.clone());
            tasks.start(number, async move {
                let _slot = slots.take(1, &Rank::foreground()).await;
                clock.sleep_until(clock.now() + Duration::from_secs(1)).await;
            });
        }
        assert_eq!(tasks.poll(), []);
        clock.advance(Duration::from_secs(1));
        assert_eq!(tasks.poll(), [(1, ())]);
        clock.advance(Duration::from_secs(1));
        assert_eq!(tasks.poll(), [(2, ())]);
    }

    #[test]
    fn a_stopped_future_leaves_no_alarm() {
        let clock = VirtualClock::default();
        let mut tasks = Tasks::default();
        let waiting = clock.clone();
        tasks.start(1, async move { waiting.sleep_until(waiting.now() + Duration::from_secs(1)).await });
        assert_eq!(tasks.poll(), []);
        assert!(tasks.stop(1) && !tasks.stop(1) && clock.next_alarm().is_none());
        assert_eq!(tasks.running().count(), 0);
    }
}
