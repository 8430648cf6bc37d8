//! Summaries ahead of the threshold that came to nothing: the rest behind one that no model wrote, and the bound of the
//! tokens that they take.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// The time for which tokens count.
const HOUR: Duration = Duration::from_secs(3_600);

/// Most tokens that summaries without use may take in an hour, in windows.
const MOST_WINDOWS: u64 = 2;

/// A summary ahead that no model wrote. The next one begins where there is a quarter more to summarize, or where the threshold
/// was crossed, whatever the user says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The size of the context at its begin, in tokens.
    pub context_tokens: u64,
    /// The size of the entries that were to be summarized, in tokens.
    pub span: u64,
}

impl Refused {
    /// The least size of a context at which another one may begin, in tokens.
    #[must_use]
    pub fn until(self, threshold: u64) -> u64 {
        let grown = self.context_tokens.saturating_add((self.span / 4).max(1));
        if self.context_tokens <= threshold { grown.min(threshold.saturating_add(1)) } else { grown }
    }

    /// Whether a context of this size waits.
    #[must_use]
    pub fn holds(self, context_tokens: u64, threshold: u64) -> bool {
        context_tokens < self.until(threshold)
    }
}

/// Tokens of the last hour.
#[derive(Debug, Clone, Default)]
pub struct Wasted(VecDeque<(Instant, u64)>);

impl Wasted {
    /// Adds tokens.
    pub fn add(&mut self, tokens: u64, now: Instant) {
        self.0.retain(|(at, _)| is_recent(*at, now));
        if tokens > 0 {
            self.0.push_back((now, tokens));
        }
    }

    /// Adds tokens that were spent so long ago.
    pub fn add_earlier(&mut self, tokens: u64, age: Duration, now: Instant) {
        // A clock that cannot show the time is younger than an hour.
        self.add(0, now);
        if tokens > 0 && age < HOUR {
            self.0.push_back((now.checked_sub(age).unwrap_or(now), tokens));
        }
    }

    /// Tokens of the last hour.
    #[must_use]
    pub fn tokens(&self, now: Instant) -> u64 {
        let recent = self.0.iter().filter(|(at, _)| is_recent(*at, now));
        recent.fold(0, |sum: u64, (_, tokens)| sum.saturating_add(*tokens))
    }

    /// Tokens that the next one may take in this window.
    #[must_use]
    pub fn left(&self, window: u64, now: Instant) -> u64 {
        most(window).saturating_sub(self.tokens(now))
    }
}

/// The most tokens that summaries without use take in an hour.
#[must_use]
pub fn most(window: u64) -> u64 {
    window.saturating_mul(MOST_WINDOWS)
}

fn is_recent(at: Instant, now: Instant) -> bool {
    now.saturating_duration_since(at) < HOUR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_one_rests_until_a_quarter_came_or_the_threshold_was_crossed() {
        let refused = Refused { context_tokens: 1_000, span: 800 };
        for (threshold, until) in [(2_000, 1_200), (1_100, 1_101), (1_000, 1_001), (999, 1_200)] {
            assert_eq!(refused.until(threshold), until, "threshold {threshold}");
            assert!(refused.holds(until - 1, threshold) && !refused.holds(until, threshold));
        }
        assert_eq!(Refused { context_tokens: 5, span: 0 }.until(99), 6, "never at once");
    }

    #[test]
    fn tokens_of_an_hour_are_bounded_by_two_windows() {
        let start = Instant::now();
        let minute = |minutes: u64| start + Duration::from_secs(minutes * 60);
        let mut wasted = Wasted::default();
        wasted.add(700, minute(0));
        wasted.add(900, minute(30));
        wasted.add(0, minute(30));
        assert_eq!((wasted.tokens(minute(59)), wasted.left(1_000, minute(59))), (1_600, 400));
        assert_eq!((wasted.tokens(minute(60)), wasted.left(1_000, minute(60))), (900, 1_100));
        wasted.add(u64::MAX, minute(61));
        assert_eq!(wasted.left(1_000, minute(61)), 0);
    }

    #[test]
    fn tokens_from_before_the_opening_count_by_their_age() {
        let now = Instant::now() + Duration::from_secs(7_200);
        let mut wasted = Wasted::default();
        wasted.add_earlier(5, Duration::from_secs(3_599), now);
        wasted.add_earlier(7, Duration::from_secs(3_600), now);
        assert_eq!(wasted.tokens(now), 5);
        assert_eq!(wasted.tokens(now + Duration::from_secs(1)), 0);
    }
}
