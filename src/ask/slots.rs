//! A limit of how much work runs at the same time. The limit may change while some of it runs. Work in the
//! foreground never waits for work in the background.

use super::rank::Rank;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// Slots for work that runs at the same time.
#[derive(Debug, Default)]
pub struct Slots {
    taken: Mutex<Taken>,
    freed: Notify,
}

/// The number of slots that are taken.
#[derive(Debug, Default)]
struct Taken {
    foreground: u64,
    background: u64,
}

/// A slot. Dropping it frees it.
#[derive(Debug)]
pub struct Slot<'a> {
    slots: &'a Slots,
    in_foreground: bool,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.slots.lock().of(self.in_foreground) -= 1;
        self.slots.freed.notify_waiters();
    }
}

impl Taken {
    fn of(&mut self, in_foreground: bool) -> &mut u64 {
        if in_foreground { &mut self.foreground } else { &mut self.background }
    }

    /// Whether one more slot may be taken. Work in the foreground counts only work in the foreground; work in the
    /// background counts all.
    fn has_room(&self, in_foreground: bool, most: u64) -> bool {
        self.foreground + if in_foreground { 0 } else { self.background } < most
    }
}

impl Slots {
    fn lock(&self) -> std::sync::MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until fewer than `most` slots are taken, and takes one. A limit of zero counts as one.
    pub async fn take(&self, most: u64, rank: &Rank) -> Slot<'_> {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // A slot that is freed between the look and the wait wakes this task too.
            freed.as_mut().enable();
            let in_foreground = rank.is_foreground();
            {
                let mut taken = self.lock();
                if taken.has_room(in_foreground, most.max(1)) {
                    *taken.of(in_foreground) += 1;
                    return Slot { slots: self, in_foreground };
                }
            }
            match in_foreground {
                true => freed.await,
                false => tokio::select! {
                    biased;
                    () = freed => {}
                    () = rank.raised() => {}
                },
            }
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
        let (slots, rank) = (Slots::default(), Rank::foreground());
        let mut first = pin!(slots.take(0, &rank));
        let Poll::Ready(first) = poll(&mut first) else { panic!("one is always allowed") };
        let mut second = pin!(slots.take(1, &rank));
        assert!(poll(&mut second).is_pending());
        let mut more = pin!(slots.take(2, &rank));
        let Poll::Ready(more) = poll(&mut more) else { panic!("the limit is higher now") };
        drop(first);
        assert!(poll(&mut second).is_pending(), "the other one still runs");
        drop(more);
        assert!(poll(&mut second).is_ready());
    }

    #[test]
    fn work_in_the_foreground_does_not_wait_for_work_in_the_background() {
        let (slots, waited_for, ahead) = (Slots::default(), Rank::foreground(), Rank::background());
        let mut first = pin!(slots.take(1, &ahead));
        let Poll::Ready(_first) = poll(&mut first) else { panic!("the slot is free") };
        let mut second = pin!(slots.take(1, &waited_for));
        let Poll::Ready(second) = poll(&mut second) else { panic!("it waits for nothing") };
        let mut third = pin!(slots.take(1, &ahead));
        assert!(poll(&mut third).is_pending());
        drop(second);
        assert!(poll(&mut third).is_pending(), "the one in the background still runs");
    }

    #[test]
    fn work_that_is_moved_to_the_foreground_waits_no_longer() {
        let (slots, first, second) = (Slots::default(), Rank::background(), Rank::background());
        let mut running = pin!(slots.take(1, &first));
        let Poll::Ready(_running) = poll(&mut running) else { panic!("the slot is free") };
        let mut waiting = pin!(slots.take(1, &second));
        assert!(poll(&mut waiting).is_pending());
        second.raise();
        assert!(poll(&mut waiting).is_ready());
    }
}
