//! A limit of how much work runs at the same time. The limit may change while some of it runs.

use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// Slots for work that runs at the same time.
#[derive(Debug, Default)]
pub struct Slots {
    taken: Mutex<u64>,
    freed: Notify,
}

/// A slot. Dropping it frees it.
#[derive(Debug)]
pub struct Slot<'a>(&'a Slots);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.freed.notify_waiters();
    }
}

impl Slots {
    /// Waits until fewer than `most` slots are taken, and takes one. A limit of zero counts as one.
    pub async fn take(&self, most: u64) -> Slot<'_> {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // A slot that is freed between the look and the wait wakes this task too.
            freed.as_mut().enable();
            {
                let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
                if *taken < most.max(1) {
                    *taken += 1;
                    return Slot(self);
                }
            }
            freed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        pin::{Pin, pin},
        task::{Context, Poll, Waker},
    };

    fn poll<'a>(taking: &mut Pin<&mut impl Future<Output = Slot<'a>>>) -> Poll<Slot<'a>> {
        taking.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_slot_is_taken_when_one_is_free() {
        let slots = Slots::default();
        let mut first = pin!(slots.take(0));
        let Poll::Ready(first) = poll(&mut first) else { panic!("one is always allowed") };
        let mut second = pin!(slots.take(1));
        assert!(poll(&mut second).is_pending());
        let mut more = pin!(slots.take(2));
        let Poll::Ready(more) = poll(&mut more) else { panic!("the limit is higher now") };
        drop(first);
        assert!(poll(&mut second).is_pending(), "the other one still runs");
        drop(more);
        assert!(poll(&mut second).is_ready());
    }
}
