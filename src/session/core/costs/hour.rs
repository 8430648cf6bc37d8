//! The tokens of automatic maintenance in the last hour.
//!
//! Two clocks are at work. Tokens that are spent while the session is open age by the clock of timers, which no one sets.
//! A time of day that jumps forward therefore forgets none of them, and one that jumps back keeps none for longer. The time
//! in which a machine sleeps does not count. Tokens from before the opening age by the time of day in their entries, read
//! once: entries from the future count as entries of the opening. They age by the clock of timers from there on.

use crate::conversation::spending::Recent;
use jiff::Timestamp;
use std::time::{Duration, Instant};

/// Tokens of the last hour. Times are milliseconds since the opening.
pub(in crate::session::core) struct Hour {
    opened: Instant,
    opened_at: Timestamp,
    /// Tokens from before the opening, as far as they are known.
    before: Recent,
    since: Recent,
}

impl Hour {
    /// The last hour of a session that is opened now. `file`: the tokens that its file has, by the time of day.
    pub fn opened(file: &Recent, now: Instant, wall: Timestamp) -> Self {
        let before = file.by(wall.as_millisecond(), 0);
        Self { opened: now, opened_at: wall, before, since: Recent::default() }
    }

    /// Takes the tokens of the whole file in the place of those that were known at the opening. Entries that are not older
    /// than the opening are those of this session, which it knows.
    pub fn learn(&mut self, file: &Recent) {
        let opened_at = self.opened_at.as_millisecond();
        self.before = file.until(opened_at).by(opened_at, 0);
    }

    /// Adds tokens.
    pub fn add(&mut self, tokens: u64, now: Instant) {
        let now = self.millis(now);
        self.before.forget(now);
        self.since.forget(now);
        self.since.add(now, tokens);
    }

    /// Tokens of the last hour.
    pub fn tokens(&self, now: Instant) -> u64 {
        let now = self.millis(now);
        self.before.in_hour(now).saturating_add(self.since.in_hour(now))
    }

    /// The time until no more than `most` tokens are of the last hour.
    pub fn falls_to(&self, most: u64, now: Instant) -> Duration {
        let now = self.millis(now);
        let at = self.before.and(&self.since).falls_to(most, now);
        Duration::from_millis(u64::try_from(at.saturating_sub(now)).unwrap_or(0))
    }

    /// The list by the time of day, for the entry of a compaction.
    pub fn by_wall(&self, now: Instant, wall: Timestamp) -> Recent {
        let now = self.millis(now);
        let mut all = self.before.and(&self.since);
        all.forget(now);
        all.by(now, wall.as_millisecond())
    }

    fn millis(&self, now: Instant) -> i64 {
        i64::try_from(now.saturating_duration_since(self.opened).as_millis()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const MINUTES: i64 = 60_000;

    /// A file with tokens that were spent so many minutes after the time of the opening.
    fn file(items: &[(i64, u64)]) -> Recent {
        let mut recent = Recent::default();
        items.iter().for_each(|(minute, tokens)| recent.add(wall(*minute).as_millisecond(), *tokens));
        recent
    }

    fn wall(minute: i64) -> Timestamp {
        Timestamp::from_millisecond(1_800_000_000_000 + minute * MINUTES).expect("a time")
    }

    fn opened(items: &[(i64, u64)]) -> (Hour, Instant) {
        let now = Instant::now();
        (Hour::opened(&file(items), now, wall(0)), now)
    }

    #[test]
    fn tokens_of_the_file_and_of_this_life_are_of_the_last_hour() {
        let (mut hour, now) = opened(&[(-90, 1), (-50, 2), (-1, 4)]);
        hour.add(8, now + 5 * MINUTE);
        for (minute, expected) in [(5, 14), (10, 14), (11, 12), (59, 12), (60, 8), (65, 8), (66, 0)] {
            assert_eq!(hour.tokens(now + minute * MINUTE), expected, "{minute}");
        }
        for (most, minutes) in [(14, 0), (13, 6), (12, 6), (11, 55), (8, 55), (7, 61)] {
            assert_eq!(hour.falls_to(most, now + 5 * MINUTE), minutes * MINUTE, "{most}");
        }
    }

    #[test]
    fn entries_of_a_clock_that_was_ahead_count_from_the_opening_for_an_hour() {
        let (hour, now) = opened(&[(1_440, 7)]);
        assert_eq!((hour.tokens(now), hour.tokens(now + 60 * MINUTE)), (7, 7));
        assert_eq!(hour.tokens(now + 61 * MINUTE), 0, "they do not block for a day");
    }

    #[test]
    fn a_time_of_day_that_jumps_changes_nothing_in_an_open_session() {
        let (mut hour, now) = opened(&[(-10, 3)]);
        hour.add(5, now);
        for jump in [-1_440, 0, 1_440] {
            // A compaction in the middle of a jump carries ages, and another opening finds them.
            let carried = hour.by_wall(now + 20 * MINUTE, wall(20 + jump));
            let later = Hour::opened(&carried, now, wall(20 + jump));
            for (minute, expected) in [(0, 8), (30, 8), (31, 5), (40, 5), (41, 0)] {
                assert_eq!(later.tokens(now + minute * MINUTE), expected, "{jump}: {minute}");
                assert_eq!(hour.tokens(now + (20 + minute) * MINUTE), expected, "{jump}: {minute}");
            }
        }
    }

    #[test]
    fn an_index_adds_what_the_opening_did_not_know_and_nothing_twice() {
        let (mut hour, now) = opened(&[]);
        hour.add(8, now + MINUTE);
        hour.learn(&file(&[(-90, 1), (-50, 2), (1, 8)]));
        assert_eq!(hour.tokens(now + 2 * MINUTE), 10);
        assert_eq!(hour.tokens(now + 11 * MINUTE), 8);
    }
}
