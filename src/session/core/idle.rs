//! The idle time of a session, and the work for which it waits.

mod checks;
mod maintenance;
#[cfg(test)]
mod tests;

use crate::{
    log::history::History,
    session::core::{Core, Moment},
};
use maintenance::Maintenance;
use std::time::{Duration, Instant};

/// An idle session drops the bodies of its entries after this time.
const SLEEPS_AFTER: Duration = Duration::from_secs(60);

/// Bytes of lines that the other sessions keep before a session that was opened and never used drops its bodies early.
/// With the parsed parts the memory is about one and a half times that.
const MANY_AWAKE: u64 = 24 << 20;
const UNUSED_SLEEPS_AFTER: Duration = Duration::from_millis(200);

/// Bytes of lines that the other sessions keep before a used session drops its bodies early. Reading them again costs
/// 4 ms for each megabyte.
const TOO_MANY_AWAKE: u64 = 256 << 20;
const USED_SLEEPS_AFTER: Duration = Duration::from_secs(5);

/// Idle time before the index is built in the background.
const INDEXES_AFTER: Duration = Duration::from_millis(50);

/// Time between a failed index and the next try: a disk may come back.
const RETRIES_AFTER: Duration = Duration::from_secs(10);

/// The idle time of a session.
pub(super) struct Idle {
    since: Instant,
    /// Whether the session had a request since it was opened.
    used: bool,
    /// Bytes of lines that the session keeps in memory, as it said last.
    shared: u64,
    maintenance: Maintenance,
}

/// Work for an idle session, with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdleWork {
    Maintain(Instant),
    Index(Instant),
    Sleep(Instant),
}

impl Idle {
    /// An idle time that begins at the opening of a session.
    pub fn new(now: Instant) -> Self {
        Self { since: now, used: false, shared: 0, maintenance: Maintenance::new(now) }
    }

    /// Starts the idle time anew.
    pub fn touch(&mut self, now: Instant) {
        self.since = now;
        self.used = true;
    }

    /// Starts the timer of idle maintenance anew.
    pub fn arm(&mut self, now: Instant) {
        self.maintenance.arm(now);
    }

    /// Delays the next work after a failure, so that it is not tried in a loop.
    pub fn postpone(&mut self, now: Instant) {
        self.since = now + RETRIES_AFTER;
    }

    /// The time at which the bodies are dropped.
    fn sleeps_at(&self, awake_elsewhere: u64) -> Instant {
        self.since
            + match self.used {
                false if awake_elsewhere > MANY_AWAKE => UNUSED_SLEEPS_AFTER,
                true if awake_elsewhere > TOO_MANY_AWAKE => USED_SLEEPS_AFTER,
                _ => SLEEPS_AFTER,
            }
    }
}

impl Core {
    /// The time of the next work of an idle session. `awake_elsewhere`: bytes that the other sessions keep in memory.
    #[must_use]
    pub fn wake_at(&self, awake_elsewhere: u64) -> Option<Instant> {
        match self.idle_work(awake_elsewhere)? {
            IdleWork::Maintain(at) | IdleWork::Index(at) | IdleWork::Sleep(at) => Some(at),
        }
    }

    /// Performs the work of an idle session, if it is time.
    pub(super) fn tick(&mut self, at: &Moment) {
        match self.idle_work(at.awake_elsewhere) {
            Some(IdleWork::Maintain(due)) if due <= at.now => self.maintain_idle(),
            Some(IdleWork::Index(due)) if due <= at.now => self.start_indexing(),
            Some(IdleWork::Sleep(due)) if due <= at.now => {
                self.notes_leaf();
                self.state.change(History::sleep);
                self.sleep_ahead();
                self.share(0);
            }
            _ => {}
        }
    }

    /// The next work of an idle session. Maintenance whose turn has come is first: it needs the bodies.
    fn idle_work(&self, awake_elsewhere: u64) -> Option<IdleWork> {
        if !self.is_quiet() {
            return None;
        }
        if self.has_turn() {
            return Some(IdleWork::Maintain(self.now));
        }
        let at = |work: &IdleWork| match *work {
            IdleWork::Maintain(at) | IdleWork::Index(at) | IdleWork::Sleep(at) => at,
        };
        let maintain = self.maintains_at().map(IdleWork::Maintain);
        maintain.into_iter().chain(self.resting_work(awake_elsewhere)).min_by_key(at)
    }

    /// The next work on the file and the memory of an idle session.
    fn resting_work(&self, awake_elsewhere: u64) -> Option<IdleWork> {
        let history = self.state.history();
        history.source()?;
        if history.index().is_none() {
            return self.index.build.is_none().then_some(IdleWork::Index(self.idle.since + INDEXES_AFTER));
        }
        let stays = history.is_asleep() || self.counting.runs() || self.upkeep.ahead.runs();
        (!stays).then(|| IdleWork::Sleep(self.idle.sleeps_at(awake_elsewhere)))
    }

    /// Says how much memory a session takes that may sleep.
    pub(super) fn share_memory(&mut self) {
        if self.is_quiet() && matches!(self.resting_work(0), Some(IdleWork::Sleep(_))) {
            self.share(self.state.path().bytes());
        }
    }

    fn share(&mut self, bytes: u64) {
        if bytes != self.idle.shared {
            self.idle.shared = bytes;
            self.effects.push(crate::session::effects::Effect::Share(bytes));
        }
    }
}
