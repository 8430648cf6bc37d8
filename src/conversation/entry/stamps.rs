//! Ids and timestamps of new entries, repeatable from a seed.

use crate::ids::{EntryId, OperationId, SessionId, random::SplitMix64};
use jiff::Timestamp;

/// The id and the timestamp of a new entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// Id of the entry.
    pub id: EntryId,
    /// Time of the entry, in the form of [`timestamp`].
    pub timestamp: String,
}

/// The source of stamps. Sources of one seed give the same ids in the same order.
#[derive(Debug, Clone)]
pub struct Stamps {
    random: SplitMix64,
    now: Timestamp,
}

impl Stamps {
    /// A source with this seed, at this time.
    #[must_use]
    pub fn seeded(seed: u64, now: Timestamp) -> Self {
        Self { random: SplitMix64::new(seed), now }
    }

    /// Sets the time of the stamps that follow.
    pub fn set_time(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The time of the next stamp.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The stamp of a new entry.
    #[must_use]
    pub fn stamp(&mut self) -> Stamp {
        Stamp { id: EntryId::of_bits(self.random.draw()), timestamp: timestamp(self.now) }
    }

    /// The id of a new operation.
    #[must_use]
    pub fn operation(&mut self) -> OperationId {
        OperationId::of_bits(self.random.draw())
    }

    /// The id of a new turn.
    #[must_use]
    pub fn turn(&mut self) -> OperationId {
        format!("turn-{:016x}", self.random.draw()).into()
    }

    /// The id of a new session.
    #[must_use]
    pub fn session(&mut self) -> SessionId {
        SessionId::of_bits(self.now, self.random.draw())
    }

    /// A source with ids of its own, for a job that makes entries beside the session. It keeps the time of this moment.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::seeded(self.random.draw(), self.now)
    }
}

/// A time as RFC 3339 with milliseconds, as pi writes it.
#[must_use]
pub fn timestamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// Milliseconds since 1970 of an RFC 3339 time; zero where it is not one.
#[must_use]
pub fn milliseconds(timestamp: &str) -> i64 {
    timestamp.parse::<Timestamp>().map(Timestamp::as_millisecond).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn seeded(seed: u64) -> Stamps {
        Stamps::seeded(seed, Timestamp::UNIX_EPOCH)
    }

    fn ids(stamps: &mut Stamps) -> Vec<EntryId> {
        (0..100).map(|_| stamps.stamp().id).collect()
    }

    #[test]
    fn the_ids_of_a_seed_never_change() {
        // The first numbers of the reference implementation.
        let mut stamps = seeded(0);
        assert_eq!(stamps.stamp().id.as_str(), "e220a8397b1dcdaf");
        assert_eq!(stamps.operation().as_str(), "op-6e789e6aa1b965f4");
        assert_eq!(stamps.stamp().id.as_str(), "06c45d188009454f", "leading zeros are kept");
        let mut stamps = seeded(1_234_567);
        assert_eq!(stamps.stamp().id.as_str(), format!("{:x}", 6_457_827_717_110_365_317_u64));
        assert_eq!(stamps.fork().stamp().id.as_str(), "0d367e33405bec1b");
    }

    #[test]
    fn a_seed_repeats_every_id_and_another_seed_repeats_none() {
        let (one, same, other) = (ids(&mut seeded(7)), ids(&mut seeded(7)), ids(&mut seeded(8)));
        assert_eq!(one, same);
        let all: HashSet<_> = one.iter().chain(&other).collect();
        assert_eq!(all.len(), 200);
    }

    #[test]
    fn a_fork_has_ids_of_its_own_and_repeats_with_its_seed() {
        let all = || {
            let mut stamps = seeded(7);
            let (mut first, mut second) = (stamps.fork(), stamps.fork());
            [ids(&mut first), ids(&mut stamps), ids(&mut second), ids(&mut first.fork())].concat()
        };
        assert_eq!(all(), all());
        assert_eq!(all().iter().collect::<HashSet<_>>().len(), 400);
    }

    #[test]
    fn a_stamp_has_the_time_that_was_set() {
        let time = |text: &str| text.parse::<Timestamp>().expect("a time");
        let mut stamps = Stamps::seeded(1, time("2026-01-02T03:04:05.006789Z"));
        assert_eq!(stamps.stamp().timestamp, "2026-01-02T03:04:05.006Z");
        stamps.set_time(time("2026-01-02T03:04:06Z"));
        assert_eq!(stamps.now(), time("2026-01-02T03:04:06Z"));
        assert_eq!(stamps.stamp().timestamp, "2026-01-02T03:04:06.000Z");
        assert_eq!(stamps.fork().stamp().timestamp, "2026-01-02T03:04:06.000Z");
    }
}
