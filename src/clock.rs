//! The time of the system's clock, as it is.

#![expect(clippy::disallowed_methods, reason = "the clock of the system")]

use jiff::Timestamp;
use std::time::SystemTime;

/// The time now. A clock that is set outside of the years that a timestamp can have gives the nearest one.
#[must_use]
pub fn now() -> Timestamp {
    nearest(SystemTime::now())
}

fn nearest(time: SystemTime) -> Timestamp {
    let end = if time < SystemTime::UNIX_EPOCH { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::try_from(time).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_clock_in_any_year_gives_a_time() {
        const YEAR: u64 = 31_557_600;
        let after = |years: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(years * YEAR);
        assert_eq!(nearest(after(50)).to_string(), "2020-01-01T12:00:00Z");
        assert_eq!(nearest(after(8_100)), Timestamp::MAX);
        assert_eq!(nearest(after(200_000_000_000)), Timestamp::MAX);
        assert_eq!(nearest(SystemTime::UNIX_EPOCH - Duration::from_secs(20_000 * YEAR)), Timestamp::MIN);
    }
}
