//! A clock that stands still until it is moved, with chance from a seed. Futures that share it wait for alarms.

use super::{Pending, clock::Clock};
use crate::ids::random::SplitMix64;
use std::{
    collections::BTreeMap,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

/// The time of day at which a clock starts, in milliseconds since 1970: 2026-01-01T00:00:00Z.
const FIRST_MORNING: i64 = 1_767_225_600_000;

/// A clock in virtual time. Its clones are the same clock. The default one has no chance: its random numbers are zero.
#[derive(Clone)]
pub struct VirtualClock(Arc<Mutex<State>>);

struct State {
    start: Instant,
    now: Instant,
    /// The difference of the time of day from `FIRST_MORNING` and the time since the start, in milliseconds.
    shifted: i64,
    /// None: random numbers are zero.
    random: Option<SplitMix64>,
    /// Futures that wait, by their instant and a number of their own.
    alarms: BTreeMap<(Instant, u64), Waker>,
    /// Number of the next alarm.
    next: u64,
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::of(None)
    }
}

impl VirtualClock {
    /// A clock whose chance has this seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self::of(Some(SplitMix64::new(seed)))
    }

    #[expect(clippy::disallowed_methods, reason = "an `Instant` has no other origin; all times are relative to it")]
    fn of(random: Option<SplitMix64>) -> Self {
        let start = Instant::now();
        Self(Arc::new(Mutex::new(State { start, now: start, shifted: 0, random, alarms: BTreeMap::new(), next: 0 })))
    }

    /// The time since the start.
    #[must_use]
    pub fn passed(&self) -> Duration {
        let state = self.state();
        state.now - state.start
    }

    /// The earliest instant that a future waits for. It may be in the past until that future is polled.
    #[must_use]
    pub fn next_alarm(&self) -> Option<Instant> {
        self.state().alarms.first_key_value().map(|((at, _), _)| *at)
    }

    /// Moves the clock and wakes the futures that wait for an instant up to `at`. An instant in the past moves nothing.
    pub fn advance_to(&self, at: Instant) {
        let mut state = self.state();
        state.now = state.now.max(at);
        let due: Vec<Waker> = state.alarms.range(..=(state.now, u64::MAX)).map(|(_, waker)| waker.clone()).collect();
        drop(state);
        due.into_iter().for_each(Waker::wake);
    }

    /// Moves the clock by a duration.
    pub fn advance(&self, by: Duration) {
        self.advance_to(super::clock::after(self.now(), by));
    }

    /// Sets the time of day forward or back, in milliseconds. Instants stay: a computer that sleeps, or that is set to
    /// another time, wakes no future.
    pub fn shift_wall(&self, by: i64) {
        let mut state = self.state();
        state.shifted = state.shifted.saturating_add(by);
    }

    /// A random number below `end`; 0 where `end` is 0.
    #[must_use]
    pub fn random_below(&self, end: u64) -> u64 {
        self.state().random.as_mut().map_or(0, |random| random.below(end))
    }

    /// Runs a future. The clock moves to the next alarm whenever nothing else happens.
    ///
    /// # Panics
    /// When the future waits and no alarm will wake it.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return result;
            }
            self.advance_to(self.next_alarm().expect("the future waits for no alarm: it never ends"));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        self.state().now
    }

    fn timestamp_ms(&self) -> i64 {
        let state = self.state();
        let passed = i64::try_from((state.now - state.start).as_millis()).unwrap_or(i64::MAX);
        FIRST_MORNING.saturating_add(passed).saturating_add(state.shifted)
    }

    fn sleep_until(&self, at: Instant) -> Pending<'_, ()> {
        Box::pin(Alarm { clock: self, at, number: None })
    }

    fn chance(&self) -> u8 {
        u8::try_from(self.random_below(256)).unwrap_or(0)
    }
}

/// A future that waits. Dropping it takes it off the clock.
struct Alarm<'a> {
    clock: &'a VirtualClock,
    at: Instant,
    number: Option<u64>,
}

impl Future for Alarm<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock;
        let mut state = clock.state();
        if state.now >= self.at {
            return Poll::Ready(());
        }
        let number = *self.number.get_or_insert_with(|| {
            state.next += 1;
            state.next
        });
        state.alarms.insert((self.at, number), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.clock.state().alarms.remove(&(self.at, number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_moves_to_the_alarms_in_their_order() {
        let clock = VirtualClock::default();
        let start = clock.now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut alarms: Vec<_> = [3, 1, 2].map(|seconds| clock.sleep_until(after(seconds))).into();
        let mut due = || {
            let mut context = Context::from_waker(Waker::noop());
            let before = alarms.len();
            alarms.retain_mut(|alarm| alarm.as_mut().poll(&mut context).is_pending());
            before - alarms.len()
        };
        assert_eq!((due(), clock.next_alarm()), (0, Some(after(1))));
        clock.advance_to(after(2));
        assert_eq!((due(), clock.next_alarm()), (2, Some(after(3))));
        drop(alarms);
        assert_eq!(clock.next_alarm(), None, "a dropped future waits for nothing");
        clock.advance_to(start);
        assert_eq!(clock.passed(), Duration::from_secs(2), "it does not move back");
    }

    #[test]
    fn the_time_of_day_moves_apart_from_the_instants() {
        let clock = VirtualClock::default();
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.timestamp_ms(), FIRST_MORNING + 1_000);
        clock.shift_wall(-60_000);
        assert_eq!((clock.timestamp_ms(), clock.passed()), (FIRST_MORNING - 59_000, Duration::from_secs(1)));
    }

    #[test]
    fn chance_repeats_with_its_seed() {
        let drawn = |seed| {
            let clock = VirtualClock::seeded(seed);
            [(); 20].map(|()| clock.chance())
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }
}
