//! A read-only view of a session for its parts. A part keeps a state of its own, and sees of the others only these facts.

use crate::{
    conversation::entry::Stamps,
    session::{core::parts::contexts::Contexts, state::State},
};
use jiff::Timestamp;
use std::time::{Duration, Instant};

/// The facts of one input.
#[derive(Clone, Copy)]
pub(in crate::session::core) struct Facts<'a> {
    /// Entries, settings and model.
    pub state: &'a State,
    /// The contexts that clients were given.
    pub contexts: &'a Contexts,
    /// The time of timers.
    pub now: Instant,
    /// The time of day.
    pub wall: Timestamp,
}

impl<'a> Facts<'a> {
    /// The facts in these fields of the base. A part that changes is another field, so they are borrowed one by one.
    pub fn of(state: &'a State, contexts: &'a Contexts, now: Instant, stamps: &Stamps) -> Self {
        Self { state, contexts, now, wall: stamps.now() }
    }

    /// The time of day after a wait, in whole minutes, rounded up.
    pub fn time_of_day(&self, wait: Duration) -> String {
        let minute = Duration::from_secs(59);
        let at = self.wall.checked_add(wait.saturating_add(minute)).unwrap_or(self.wall);
        at.strftime("%H:%M UTC").to_string()
    }
}
