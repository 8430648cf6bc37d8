//! Summaries ahead of the threshold: the size at which one begins, from the growth of the session and the time that its
//! summaries take, and the size up to which requests go on while one is being made.

use crate::models::Budget;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Bounds of the headroom that needs no measurement: an eighth of the threshold within these, in tokens.
const HEADROOM: std::ops::RangeInclusive<u64> = 8_192..=32_000;

/// Most sizes that are kept to measure the growth: a long turn has about as many appends.
const MOST_SIZES: usize = 64;

/// Most times that are kept to measure the summaries.
const MOST_TIMES: usize = 5;

/// The longest time that a summary is expected to take. The time of one that a suspended machine interrupted says nothing.
const LONGEST: Duration = Duration::from_secs(300);

/// The size of a context at which its summary begins, in tokens. `growth`: tokens by which the context is expected to grow
/// while the summary is made. It is at least half of the threshold.
#[must_use]
pub fn begins_at(budget: &Budget, growth: u64) -> u64 {
    let usual = (budget.threshold / 8).clamp(*HEADROOM.start(), *HEADROOM.end());
    budget.threshold - usual.max(growth).min(budget.threshold / 2)
}

/// The largest context over the threshold that does not wait for its summary, in tokens: half of the reserve stays free for
/// the answer.
#[must_use]
pub fn waits_beyond(budget: &Budget) -> u64 {
    (budget.window - budget.reserve / 2).max(budget.threshold)
}

/// Whether a context of this size, in tokens, leaves room for the conversation behind a compaction: a sixteenth of the
/// threshold. Otherwise the next compaction would be due with the next messages.
#[must_use]
pub fn leaves_room(tokens: u64, budget: &Budget) -> bool {
    tokens <= budget.threshold - budget.threshold / 16
}

/// The speed of a session: the growth of its context, and the times of its summaries.
#[derive(Debug, Clone, Default)]
pub struct Speed {
    /// Sizes of the context after appends, oldest first, in tokens.
    sizes: VecDeque<(Instant, u64)>,
    /// Times that models took for the newest summaries, oldest first.
    times: VecDeque<Duration>,
}

impl Speed {
    /// Adds the size of the context after an append, in tokens.
    pub fn grew_to(&mut self, now: Instant, tokens: u64) {
        // After a compaction or an undo it grows anew.
        if self.sizes.back().is_some_and(|(_, last)| *last > tokens) {
            self.sizes.clear();
        }
        self.sizes.push_back((now, tokens));
        if self.sizes.len() > MOST_SIZES {
            self.sizes.pop_front();
        }
    }

    /// Adds the time that a model took for a summary.
    pub fn took(&mut self, time: Duration) {
        self.times.push_back(time.min(LONGEST));
        if self.times.len() > MOST_TIMES {
            self.times.pop_front();
        }
    }

    /// The times that are kept, in milliseconds.
    #[must_use]
    pub fn times(&self) -> Vec<u64> {
        self.times.iter().map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).collect()
    }

    /// Takes the times that a compaction carries, where none was measured since.
    pub fn recall(&mut self, times: &[u64]) {
        if self.times.is_empty() {
            times.iter().for_each(|time| self.took(Duration::from_millis(*time)));
        }
    }

    /// The time that the next summary is expected to take: the median of the newest ones.
    #[must_use]
    pub fn expected(&self) -> Option<Duration> {
        let mut times: Vec<Duration> = self.times.iter().copied().collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }

    /// Tokens by which the context is expected to grow while a summary is made, with half as many again: the most by which
    /// it grew in such a time. 0 where nothing was measured.
    #[must_use]
    pub fn growth(&self) -> u64 {
        let Some(time) = self.expected() else { return 0 };
        let mut most = 0;
        let mut from = 0;
        for (until, (end, tokens)) in self.sizes.iter().enumerate() {
            while end.saturating_duration_since(self.sizes[from].0) > time && from + 1 < until {
                from += 1;
            }
            most = most.max(tokens - self.sizes[from].1);
        }
        most + most / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::CompactionSettings;

    fn budget(window: u64) -> Budget {
        Budget::of(window, &CompactionSettings::default(), 0, 0)
    }

    #[test]
    fn a_summary_begins_an_eighth_below_the_threshold_within_bounds() {
        for (window, threshold, begins) in [
            (200_000, 170_000, 148_750),
            (1_000_000, 850_000, 818_000),
            (64_000, 48_000, 39_808),
            // Half of a small threshold.
            (16_000, 12_000, 6_000),
        ] {
            let budget = budget(window);
            assert_eq!((budget.threshold, begins_at(&budget, 0)), (threshold, begins), "window {window}");
        }
    }

    #[test]
    fn a_summary_begins_earlier_where_the_session_grows_fast_and_never_below_half_of_the_threshold() {
        let budget = budget(200_000);
        assert_eq!(begins_at(&budget, 20_000), 148_750, "the usual headroom is enough");
        assert_eq!(begins_at(&budget, 50_000), 120_000);
        assert_eq!(begins_at(&budget, 500_000), 85_000);
    }

    #[test]
    fn requests_go_on_while_half_of_the_reserve_is_free() {
        assert_eq!(waits_beyond(&budget(200_000)), 191_808);
        let late = CompactionSettings { threshold_percent: 99, ..CompactionSettings::default() };
        assert_eq!(waits_beyond(&Budget::of(200_000, &late, 0, 0)), 198_000, "never below the threshold");
    }

    #[test]
    fn a_sixteenth_of_the_threshold_stays_free() {
        let budget = budget(200_000);
        assert!(leaves_room(159_375, &budget));
        assert!(!leaves_room(159_376, &budget));
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_growth_is_the_most_in_the_time_of_a_summary_and_half_as_much() {
        let start = Instant::now();
        let mut speed = Speed::default();
        let sizes = [(0, 1_000), (10, 3_000), (20, 9_000), (26, 11_000), (100, 14_000), (500, 15_000)];
        for (at, tokens) in sizes {
            speed.grew_to(start + seconds(at), tokens);
        }
        assert_eq!(speed.growth(), 0, "no summary was measured");
        speed.took(seconds(16));
        assert_eq!(speed.growth(), 12_000, "8,000 tokens between 10 and 26 seconds");
        // A compaction.
        speed.grew_to(start + seconds(600), 5_000);
        speed.grew_to(start + seconds(601), 6_000);
        assert_eq!(speed.growth(), 1_500);
    }

    #[test]
    fn one_append_counts_however_long_ago_the_one_before_was() {
        let start = Instant::now();
        let mut speed = Speed::default();
        speed.took(seconds(5));
        speed.grew_to(start, 10_000);
        speed.grew_to(start + seconds(3_600), 40_000);
        assert_eq!(speed.growth(), 45_000);
    }

    #[test]
    fn the_median_of_the_newest_times_is_expected_and_none_is_longer_than_five_minutes() {
        let mut speed = Speed::default();
        assert_eq!(speed.expected(), None);
        speed.took(seconds(86_400));
        assert_eq!(speed.expected(), Some(seconds(300)));
        for time in [4, 6, 7, 5] {
            speed.took(seconds(time));
        }
        assert_eq!(speed.expected(), Some(seconds(6)), "of 300, 4, 6, 7 and 5");
        speed.took(seconds(8));
        speed.took(seconds(9));
        assert_eq!(speed.expected(), Some(seconds(7)), "of 6, 7, 5, 8 and 9");
    }

    #[test]
    fn times_that_a_compaction_carries_are_those_of_a_session_without_its_own() {
        let mut speed = Speed::default();
        speed.recall(&[4_000, 86_400_000]);
        assert_eq!(speed.times(), [4_000, 300_000]);
        speed.recall(&[1_000]);
        assert_eq!(speed.times(), [4_000, 300_000]);
    }

    #[test]
    fn few_sizes_are_kept() {
        let start = Instant::now();
        let mut speed = Speed::default();
        for at in 0..1_000 {
            speed.grew_to(start + seconds(at), at);
        }
        assert_eq!(speed.sizes.len(), MOST_SIZES);
    }
}
