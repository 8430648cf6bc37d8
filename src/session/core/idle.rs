//! The idle time of a session, and the work for which it waits.

mod checks;
pub(super) mod maintenance;
pub(super) mod rounds;
#[cfg(test)]
mod tests;

use super::{base::Base, parts::facts::Facts, standing::Standing};
use crate::{compaction::prune::cache::Cache, log::history::History, session::effects::Effect};
use rounds::Rounds;
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
    /// Its maintenance.
    pub rounds: Rounds,
}

/// Work for an idle session, with its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdleWork {
    Maintain(Instant),
    Index(Instant),
    Sleep(Instant),
}

impl Idle {
    /// An idle time that begins at the opening of a session.
    pub fn new(now: Instant) -> Self {
        Self { since: now, used: false, shared: 0, rounds: Rounds::new(now) }
    }

    /// Starts the idle time anew.
    pub fn touch(&mut self, now: Instant) {
        self.since = now;
        self.used = true;
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

/// The facts that the work of an idle session depends on.
struct Rest<'a> {
    facts: Facts<'a>,
    /// Whether the session starts work by itself.
    goes_on: bool,
    /// Whether the index is being built.
    is_indexing: bool,
    /// Whether work in the background needs the bodies.
    needs_bodies: bool,
    /// Bytes that the other sessions keep in memory.
    awake_elsewhere: u64,
}

impl Idle {
    /// The next work of a quiet session. Maintenance whose turn has come is first: it needs the bodies.
    fn work(&self, rest: &Rest) -> Option<IdleWork> {
        if self.rounds.has_turn() && !rest.is_indexing {
            return Some(IdleWork::Maintain(rest.facts.now));
        }
        let timer = self.rounds.timer(&rest.facts.state.settings().settings.compaction).filter(|_| rest.goes_on);
        // Idle maintenance is only advisable, and it would make a warm cache useless.
        let timer = timer.map(|timer| timer.max(self.warm_until(&rest.facts).unwrap_or(timer)));
        timer.map(IdleWork::Maintain).into_iter().chain(self.resting_work(rest)).min_by_key(IdleWork::at)
    }

    /// The time until which the prompt cache of the conversation is warm, if it is. A session without its bodies has that from the
    /// time at which they were dropped.
    fn warm_until(&self, facts: &Facts<'_>) -> Option<Instant> {
        if facts.state.history().is_asleep() {
            return self.rounds.warm_at_sleep();
        }
        let (path, kept) = (facts.state.path(), facts.state.settings().settings.prune.cache_seconds);
        match Cache::of(path, facts.state.model(path).as_ref(), facts.wall, kept) {
            Cache::Warm { age } => facts.now.checked_add(Duration::from_secs(kept.saturating_sub(age) + 1)),
            Cache::Cold(_) => None,
        }
    }

    /// The next work on the file and the memory.
    fn resting_work(&self, rest: &Rest) -> Option<IdleWork> {
        let history = rest.facts.state.history();
        history.source()?;
        if history.index().is_none() {
            return (!rest.is_indexing).then_some(IdleWork::Index(self.since + INDEXES_AFTER));
        }
        let stays = history.is_asleep() || rest.needs_bodies;
        (!stays).then(|| IdleWork::Sleep(self.sleeps_at(rest.awake_elsewhere)))
    }

    /// The bytes that the session keeps in memory, where the others do not know them yet.
    pub fn shares(&mut self, bytes: u64) -> Option<Effect> {
        (std::mem::replace(&mut self.shared, bytes) != bytes).then_some(Effect::Share(bytes))
    }
}

impl IdleWork {
    /// Its time.
    pub fn at(&self) -> Instant {
        match *self {
            Self::Maintain(at) | Self::Index(at) | Self::Sleep(at) => at,
        }
    }
}

impl Standing<'_> {
    /// The next work of an idle session. `awake_elsewhere`: bytes that the other sessions keep in memory.
    pub fn idle_work(&self, awake_elsewhere: u64) -> Option<IdleWork> {
        self.core.idle.work(&self.rest(awake_elsewhere)?)
    }

    /// The time until which the prompt cache of the conversation is warm, if it is.
    pub fn warm_until(&self) -> Option<Instant> {
        self.core.idle.warm_until(&self.facts())
    }

    /// Whether the session may sleep, now or later.
    pub fn may_sleep(&self) -> bool {
        let rest = self.rest(0);
        rest.is_some_and(|rest| matches!(self.core.idle.resting_work(&rest), Some(IdleWork::Sleep(_))))
    }

    /// The facts about the rest of a quiet session. `awake_elsewhere`: bytes that the other sessions keep in memory.
    fn rest(&self, awake_elsewhere: u64) -> Option<Rest<'_>> {
        self.is_quiet().then(|| Rest {
            facts: self.facts(),
            goes_on: self.core.base.ending.goes_on(),
            is_indexing: !self.core.base.index.build.is_none(),
            needs_bodies: self.core.base.counting.runs() || self.core.upkeep.ahead.runs(),
            awake_elsewhere,
        })
    }
}

/// Drops the bodies of the entries, which can be read again.
pub(super) fn sleep(base: &mut Base, idle: &mut Idle) {
    base.state.change(History::sleep);
    base.effects.extend(idle.shares(0));
}
