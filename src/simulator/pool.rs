//! Blocking work of jobs, on virtual time.

use crate::ask::{
    Pending,
    clock::{Clock as _, after},
    pool::{Blocking, Pool},
    virtual_clock::VirtualClock,
};
use std::time::Duration;

/// A pool on a virtual clock. Work takes no time itself and ends after a random wait, so that cancels come before its end
/// too.
pub struct VirtualPool {
    /// The clock.
    pub clock: VirtualClock,
    /// Longest wait. Zero: work ends at once.
    pub longest: Duration,
}

impl Pool for VirtualPool {
    fn run(&self, work: Blocking) -> Pending<'_, ()> {
        Box::pin(async {
            work();
            let longest = u64::try_from(self.longest.as_millis()).unwrap_or(u64::MAX);
            let wait = Duration::from_millis(self.clock.random_below(longest));
            self.clock.sleep_until(after(self.clock.now(), wait)).await;
        })
    }
}
