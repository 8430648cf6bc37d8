//! Rounds of idle maintenance: the timer, the turn of this session among those of the daemon, and the round itself.

use crate::{
    protocol::{
        errors::Failure,
        types::{IdleSkipped, RunIdleAnswer},
    },
    session::{
        effects::{IdleTurn, Ticket, Turning},
        kind::Product,
        operations::{Asked, End},
    },
    settings::CompactionSettings,
};
use std::time::{Duration, Instant};

/// The longest delay after failures: the longest time that the setting allows.
const LONGEST_DELAY: Duration = Duration::from_secs(86_400);

/// The rounds of a session. At most one is under way.
pub(in crate::session::core) struct Rounds {
    /// The time of the last activity, or of the opening.
    active: Instant,
    /// The time from which the timer runs, if it runs.
    armed: Option<Instant>,
    /// Rounds that failed since the last compaction that completed.
    failures: u32,
    /// Whether nothing was to be compacted and the conversation has not changed since.
    exhausted: bool,
    /// The reason at the leaf when the bodies were dropped.
    at_sleep: Option<IdleSkipped>,
    /// The time until which the prompt cache is warm, when the bodies were dropped.
    warm_at_sleep: Option<Instant>,
    round: Round,
}

#[derive(Default)]
enum Round {
    /// There is none.
    #[default]
    No,
    /// It waits for its turn among the sessions.
    Waiting(Caller),
    /// It is the turn of this session. The round starts when the session is quiet.
    Mine(Caller),
    /// Its plan is being made.
    Planning,
    /// It runs.
    Running,
}

/// The cause of a round.
enum Caller {
    /// The timer.
    Timer,
    /// A `session/run_idle` that is not answered.
    Request(Ticket),
}

/// A round that was ended before its start. It is still to be answered.
#[must_use]
pub(in crate::session::core) struct UnstartedRound(Caller);

/// The next step of idle maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session::core) enum Next {
    Nothing,
    /// The timer has ended: a round asks for its turn, unless something objects.
    Check,
    /// The turn has come: the round is planned, unless something objects.
    Plan,
}

impl Rounds {
    /// The rounds of a session that is being opened. Their timer does not run.
    pub fn new(now: Instant) -> Self {
        Self {
            active: now,
            armed: None,
            failures: 0,
            exhausted: false,
            at_sleep: None,
            warm_at_sleep: None,
            round: Round::No,
        }
    }

    /// Starts the timer anew.
    pub fn arm(&mut self, now: Instant) {
        (self.active, self.armed) = (now, Some(now));
    }

    /// The conversation has changed: there may be something to compact.
    pub fn conversation_changes(&mut self) {
        (self.exhausted, self.at_sleep) = (false, None);
    }

    /// A compaction has completed: the next failure is the first.
    pub fn compaction_completes(&mut self) {
        self.failures = 0;
    }

    /// The bodies are about to be dropped. The reason at the leaf and the time until which the cache is warm are kept, if the timer
    /// runs.
    pub fn sleeps(&mut self, at_leaf: Option<IdleSkipped>, warm_until: Option<Instant>) {
        if self.armed.is_some() {
            (self.at_sleep, self.warm_at_sleep) = (at_leaf, warm_until);
        }
    }

    /// The reason at the leaf when the bodies were dropped.
    pub fn reason_at_sleep(&self) -> Option<IdleSkipped> {
        self.at_sleep
    }

    /// The time until which the prompt cache is warm, when the bodies were dropped.
    pub fn warm_at_sleep(&self) -> Option<Instant> {
        self.warm_at_sleep
    }

    /// Whether nothing was to be compacted, and the conversation has not changed since.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// The time at which the timer ends, where no round is under way.
    pub fn timer(&self, settings: &CompactionSettings) -> Option<Instant> {
        let timeout = Duration::from_secs(settings.idle_timeout_seconds);
        let runs = settings.idle_enabled && matches!(self.round, Round::No);
        self.armed.filter(|_| runs)?.checked_add(self.delay(timeout))
    }

    /// The time from an activity to the round. Each failure in a row doubles it.
    fn delay(&self, timeout: Duration) -> Duration {
        let doubled = 2_u32.saturating_pow(self.failures);
        timeout.saturating_mul(doubled).min(LONGEST_DELAY.max(timeout))
    }

    /// Whether the turn of this session has come.
    pub fn has_turn(&self) -> bool {
        matches!(self.round, Round::Mine(_))
    }

    /// The next step. The session is quiet.
    pub fn next(&mut self) -> Next {
        match self.round {
            Round::No => {
                self.armed = None;
                Next::Check
            }
            Round::Mine(_) => Next::Plan,
            Round::Waiting(_) | Round::Planning | Round::Running => Next::Nothing,
        }
    }

    /// The timer has ended: a round asks for its turn, unless there is an objection.
    pub fn timer_ends(&mut self, objection: Option<IdleSkipped>, now: Instant) -> Option<Turning> {
        match objection {
            None => self.ask(Caller::Timer),
            // Other work ends by itself, and starts no timer where it is in the background.
            Some(IdleSkipped::Busy) => {
                self.armed = Some(now);
                None
            }
            Some(_) => None,
        }
    }

    /// A `session/run_idle`: a round asks for its turn at once, unless there is an objection.
    pub fn called(&mut self, ticket: Ticket, objection: Option<IdleSkipped>) -> Option<Turning> {
        let caller = Caller::Request(ticket);
        let why = match &self.round {
            Round::No => objection,
            Round::Waiting(_) => Some(IdleSkipped::Queued),
            Round::Mine(_) | Round::Planning | Round::Running => Some(IdleSkipped::Busy),
        };
        match why {
            None => self.ask(caller),
            Some(why) => {
                caller.skips(why);
                None
            }
        }
    }

    fn ask(&mut self, caller: Caller) -> Option<Turning> {
        self.round = Round::Waiting(caller);
        Some(Turning::Ask)
    }

    /// The turn of this session among all has come, or it waits.
    pub fn turn(&mut self, turn: IdleTurn) -> Option<Turning> {
        match (turn, std::mem::take(&mut self.round)) {
            (IdleTurn::Comes, Round::Waiting(caller)) => self.round = Round::Mine(caller),
            (IdleTurn::Waits, Round::Waiting(caller)) => {
                self.round = Round::Waiting(Caller::Timer);
                caller.skips(IdleSkipped::Queued);
            }
            // It was left meanwhile.
            (IdleTurn::Comes, Round::No) => return Some(Turning::Leave),
            (IdleTurn::Comes | IdleTurn::Waits, other) => self.round = other,
        }
        None
    }

    /// The plan of a round whose turn has come is being made. Returns the request that it answers and the idle time in
    /// seconds.
    pub fn plans(&mut self, now: Instant) -> (Asked<Ticket>, u64) {
        let asked = match std::mem::replace(&mut self.round, Round::Planning) {
            Round::Mine(Caller::Request(ticket)) => Asked::by(ticket, None),
            _ => Asked::Unasked,
        };
        (asked, now.saturating_duration_since(self.active).as_secs())
    }

    /// A round that was planned does not start, and its request is answered.
    pub fn is_not_begun(&mut self, asked: Asked<Ticket>, why: &Failure) -> Option<Turning> {
        self.failures = self.failures.saturating_add(1);
        self.round = Round::No;
        asked.into_request().into_iter().for_each(|ticket| ticket.fail(why));
        Some(Turning::Leave)
    }

    /// A round that was planned has nothing to do, and its request is answered.
    pub fn is_skipped(&mut self, asked: Asked<Ticket>, why: IdleSkipped) -> Option<Turning> {
        self.exhausted |= why == IdleSkipped::NothingToCompact;
        self.round = Round::No;
        Caller::of(asked).skips(why);
        Some(Turning::Leave)
    }

    /// A round that was planned has started.
    pub fn begins(&mut self) {
        self.round = Round::Running;
    }

    /// The compaction of the round that runs has ended. Returns the end of the round.
    pub fn compaction_ends(&mut self, end: &End<Product>) -> End<Product> {
        self.round = Round::No;
        match end {
            End::Completed(_) => End::Completed(Product::Maintained),
            End::Cancelled => End::Cancelled,
            End::Failed(failure) => {
                // A path that has changed is no failure of the round.
                let fails = !matches!(failure, Failure::ContentModified { .. });
                self.failures = self.failures.saturating_add(u32::from(fails));
                End::Failed(failure.clone())
            }
            End::Skipped(nothing) => {
                self.exhausted = true;
                End::Skipped(*nothing)
            }
        }
    }

    /// Leaves the turn, if the round that runs was cancelled.
    pub fn leave_cancelled(&mut self) -> Option<Turning> {
        if !matches!(self.round, Round::Running) {
            return None;
        }
        self.round = Round::No;
        Some(Turning::Leave)
    }

    /// Takes a round that has not started. `planned`: takes the request whose plan is being made.
    pub fn take_unstarted(&mut self, planned: impl FnOnce() -> Option<Asked<Ticket>>) -> Option<UnstartedRound> {
        match std::mem::take(&mut self.round) {
            Round::No => None,
            Round::Running => {
                self.round = Round::Running;
                None
            }
            Round::Waiting(caller) | Round::Mine(caller) => Some(UnstartedRound(caller)),
            Round::Planning => Some(UnstartedRound(planned().map_or(Caller::Timer, Caller::of))),
        }
    }

    /// Whether the client cancelled the request of a round that has not started. `planned`: the same of the request whose plan
    /// is being made.
    pub fn request_cancelled(&self, planned: impl FnOnce() -> bool) -> bool {
        match &self.round {
            Round::Waiting(Caller::Request(ticket)) | Round::Mine(Caller::Request(ticket)) => ticket.cancelled(),
            Round::Planning => planned(),
            Round::No | Round::Waiting(_) | Round::Mine(_) | Round::Running => false,
        }
    }
}

impl UnstartedRound {
    /// Answers its request, and leaves the turn.
    pub fn ends(self, why: IdleSkipped) -> Option<Turning> {
        self.0.skips(why);
        Some(Turning::Leave)
    }
}

impl Caller {
    /// The request that a round was asked for by.
    fn of(asked: Asked<Ticket>) -> Self {
        asked.into_request().map_or(Self::Timer, Self::Request)
    }

    /// Answers that nothing starts. The timer is told nothing.
    fn skips(self, skipped: IdleSkipped) {
        match self {
            Self::Timer => {}
            Self::Request(ticket) if ticket.cancelled() => ticket.fail(&Failure::Cancelled),
            Self::Request(ticket) => ticket.ok(&RunIdleAnswer::Skipped { skipped }),
        }
    }
}
