//! When a failed request is sent again: a pure decision.

use crate::{
    provider::{Trouble, TroubleKind},
    settings::RetrySettings,
};
use std::time::Duration;

/// Shortest wait before a retry, whatever a provider says: the smallest value of `retry.baseDelayMs`.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// Exponent at which waits stop to double. With the smallest first wait it is more than a day.
const MOST_DOUBLINGS: u32 = 20;

/// Rules for the retries of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Most retries of one request.
    pub most: u32,
    /// First wait. Each further one is twice as long.
    pub base: Duration,
    /// Longest wait that doubling leads to.
    pub max: Duration,
    /// Longest wait that is worth it. A request that has to wait longer fails.
    pub longest: Duration,
    /// Most retries after a silence. Each one waits as long again, and may pay for the request again.
    pub silences: u32,
    /// Most retries after a server could not be reached. A server that is down is down for longer than somebody waits for a
    /// summary.
    pub unreached: u32,
}

/// The retries of a request so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retries {
    /// All of them.
    pub all: u32,
    /// Those after a silence.
    pub silences: u32,
    /// Those after a server could not be reached.
    pub unreached: u32,
}

impl Retries {
    /// A retry begins after this failure.
    pub fn begin(&mut self, after: &Trouble) {
        self.all += 1;
        self.silences += u32::from(is_silence(after));
        self.unreached += u32::from(after.kind == TroubleKind::Unreachable);
    }
}

impl Policy {
    /// No retries.
    pub const NEVER: Self =
        Self { most: 0, base: Duration::ZERO, max: Duration::ZERO, longest: Duration::ZERO, silences: 0, unreached: 0 };

    /// The retries that the settings allow, with waits of at most `longest`, none after a silence, and one after a server could
    /// not be reached.
    #[must_use]
    pub fn of(settings: &RetrySettings, longest: Duration) -> Self {
        let most = if settings.enabled { u32::try_from(settings.max_retries).unwrap_or(u32::MAX) } else { 0 };
        let (base, max) = (Duration::from_millis(settings.base_delay_ms), Duration::from_millis(settings.max_delay_ms));
        Self { most, base, max, longest, silences: 0, unreached: 1 }
    }

    /// The wait before the next retry of a request after these. `chance` spreads the waits of
    /// several clients over a quarter of their length.
    ///
    /// None where the same request would not help, the retries are used up, or the wait is too long.
    #[must_use]
    pub fn wait(&self, trouble: &Trouble, retries: Retries, chance: u8) -> Option<Duration> {
        let is_silent_again = is_silence(trouble) && retries.silences >= self.silences;
        let is_down = trouble.kind == TroubleKind::Unreachable && retries.unreached >= self.unreached;
        if !trouble.transient() || is_silent_again || is_down || retries.all >= self.most {
            return None;
        }
        let delay = self.delay(retries.all, trouble.retry_after, chance);
        (delay <= self.longest).then_some(delay)
    }

    fn delay(&self, retries: u32, stated: Option<Duration>, chance: u8) -> Duration {
        let base = self.base.saturating_mul(1 << retries.min(MOST_DOUBLINGS)).min(self.max);
        let jitter = (base / 4 / u32::from(u8::MAX)).saturating_mul(u32::from(chance));
        // Chance alone does not make a wait too long.
        let own = base.saturating_add(jitter).min(self.longest.max(base));
        stated.filter(|wait| !wait.is_zero()).unwrap_or(own).max(SHORTEST_WAIT)
    }
}

/// Whether a provider or client was silent: it was waited for already.
fn is_silence(trouble: &Trouble) -> bool {
    matches!(trouble.kind, TroubleKind::Stalled | TroubleKind::Late)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(30);

    fn policy(base_delay_ms: u64) -> Policy {
        let settings = RetrySettings { base_delay_ms, max_delay_ms: u64::MAX, ..RetrySettings::default() };
        Policy::of(&settings, LONGEST)
    }

    /// So many retries, none after a silence.
    fn after(all: u32) -> Retries {
        Retries { all, ..Retries::default() }
    }

    fn throttled(retry_after: Option<Duration>) -> Trouble {
        Trouble { retry_after, ..Trouble::new(TroubleKind::Throttled, "") }
    }

    #[test]
    fn waits_double_and_follow_the_providers_word() {
        let seconds = Duration::from_secs;
        for retries in 0..3 {
            let shortest = policy(2_000).wait(&throttled(None), after(retries), 0);
            let longest = policy(2_000).wait(&throttled(None), after(retries), u8::MAX).expect("a wait");
            assert_eq!(shortest, Some(seconds(2 << retries)));
            assert!(longest > seconds(2 << retries).mul_f64(1.24) && longest <= seconds(2 << retries).mul_f64(1.25));
        }
        let first = |base, stated| policy(base).wait(&throttled(stated), after(0), u8::MAX);
        assert_eq!(first(29_000, None), Some(LONGEST), "chance does not make it too long");
        assert_eq!(first(31_000, None), None);
        assert_eq!(first(2_000, Some(seconds(1))), Some(seconds(1)));
        assert_eq!(first(2_000, Some(LONGEST)), Some(LONGEST));
        assert_eq!(first(2_000, Some(seconds(31))), None, "another model answers sooner");
        assert!(first(2_000, Some(Duration::ZERO)) >= Some(seconds(2)));
        assert_eq!(first(0, None), Some(SHORTEST_WAIT));
        assert_eq!(first(2_000, Some(Duration::from_nanos(1))), Some(SHORTEST_WAIT));
    }

    #[test]
    fn a_wait_has_a_limit_and_no_number_is_too_large() {
        let most = Policy { most: u32::MAX, longest: Duration::MAX, ..policy(2_000) };
        let capped = Policy { max: Duration::from_secs(60), ..most };
        assert_eq!(capped.wait(&throttled(None), after(9), 0), Some(Duration::from_secs(60)));
        let endless = Policy { base: Duration::from_millis(u64::MAX), max: Duration::MAX, ..most };
        assert!(endless.wait(&throttled(None), after(u32::MAX - 1), u8::MAX) > Some(Duration::from_millis(u64::MAX)));
    }

    #[test]
    fn a_request_is_repeated_as_often_as_the_settings_say() {
        let waits = |policy: Policy| {
            (0..9).filter(|retries| policy.wait(&throttled(None), after(*retries), 0).is_some()).count()
        };
        let set = |enabled, max_retries| RetrySettings { enabled, max_retries, ..RetrySettings::default() };
        assert_eq!(waits(Policy::of(&set(true, 3), LONGEST)), 3);
        assert_eq!(waits(Policy::of(&set(true, 0), LONGEST)), 0);
        assert_eq!(waits(Policy::of(&set(false, 3), LONGEST)), 0);
        assert_eq!(waits(Policy::NEVER), 0);
    }

    #[test]
    fn only_a_passing_trouble_is_worth_a_retry() {
        use TroubleKind::*;
        let retried = |kind: TroubleKind| policy(2_000).wait(&Trouble::new(kind, ""), after(0), 0).is_some();
        for kind in [Throttled, Broken, Unreachable, CutOff] {
            assert!(retried(kind), "{kind:?}");
        }
        let lasting = [
            TooLarge, OutOfQuota, Denied, NotFound, Untrusted, Endless, Garbled, TooMany, NoTokens, Unwilling, Refused,
        ];
        let waited_for = [Stalled, Late, OutOfTime];
        for kind in lasting.into_iter().chain(waited_for) {
            assert!(!retried(kind), "{kind:?}");
        }
    }

    #[test]
    fn a_silent_provider_is_asked_again_as_often_as_the_policy_says() {
        let policy = Policy { silences: 1, ..policy(2_000) };
        let (silent, broken) = (Trouble::new(TroubleKind::Stalled, ""), Trouble::new(TroubleKind::Broken, ""));
        let mut retries = Retries::default();
        assert!(policy.wait(&silent, retries, 0).is_some());
        retries.begin(&silent);
        assert_eq!(policy.wait(&silent, retries, 0), None, "it was silent twice");
        assert!(policy.wait(&broken, retries, 0).is_some(), "it answered");
        retries.begin(&broken);
        assert_eq!(retries, Retries { all: 2, silences: 1, unreached: 0 });
    }

    #[test]
    fn a_server_that_is_down_is_asked_once_more_and_for_a_turn_as_often_as_any() {
        let down = Trouble::new(TroubleKind::Unreachable, "");
        let mut retries = Retries::default();
        retries.begin(&down);
        assert_eq!(policy(2_000).wait(&down, retries, 0), None);
        assert!(policy(2_000).wait(&throttled(None), retries, 0).is_some(), "it is there");
        let patient = Policy { unreached: u32::MAX, ..policy(2_000) };
        assert!(patient.wait(&down, retries, 0).is_some());
    }
}
