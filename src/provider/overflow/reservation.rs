//! A refusal for the room kept for the answer: the input fits, and a smaller answer helps.

use super::{Overflow, is_far_off};
use serde::{Deserialize, Serialize};

/// A refused request whose input is below the limit and whose input and output together are over it, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    limit: u64,
    input: u64,
    output: u64,
}

impl Reservation {
    /// Least room for an answer. With less of it, a shorter context helps more.
    pub const LEAST_OUTPUT: u64 = 1_024;

    /// None where the input alone is too long, and where the numbers do not explain a refusal.
    #[must_use]
    pub fn of(limit: u64, input: u64, output: u64) -> Option<Self> {
        (input < limit && input.saturating_add(output) > limit).then_some(Self { limit, input, output })
    }

    /// The limit of input and output together.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The input.
    #[must_use]
    pub fn input(&self) -> u64 {
        self.input
    }

    /// The room kept for the answer.
    #[must_use]
    pub fn output(&self) -> u64 {
        self.output
    }

    /// The input of a request with this estimate. An input far off the estimate is that of another request, or a count of
    /// something else. A server that stops to count at the limit states one token more than fits.
    #[must_use]
    pub fn believed_input(&self, estimate: u64) -> u64 {
        match () {
            () if is_far_off(self.input, estimate) => estimate,
            () if self.input.saturating_add(self.output) == self.limit.saturating_add(1) => self.input.max(estimate),
            () => self.input,
        }
    }

    /// The input that the largest answer of the same request stands beside: no less than the provider counted.
    #[must_use]
    pub fn next_input(&self, estimate: u64) -> u64 {
        self.believed_input(estimate).max(self.input)
    }

    /// The largest answer of the same request, with this estimate. It is smaller than the refused one. None where not even
    /// the least answer fits.
    #[must_use]
    pub fn next_output(&self, estimate: u64) -> Option<u64> {
        self.output_beside(self.next_input(estimate))
    }

    /// The largest answer that fits beside an input, in tokens. A twentieth of the input stays free, because no two requests
    /// are alike. None where not even the least answer fits.
    #[must_use]
    pub fn output_beside(&self, input: u64) -> Option<u64> {
        (input.saturating_add(Self::LEAST_OUTPUT) <= self.limit).then(|| output_beside(input, self.limit))
    }

    /// The same as a refusal of the whole request.
    #[must_use]
    pub fn as_overflow(&self) -> Overflow {
        Overflow { limit: Some(self.limit), requested: Some(self.input.saturating_add(self.output)) }
    }
}

/// The largest answer beside an input in a window, with a twentieth of the input free, in tokens.
#[must_use]
pub fn output_beside(input: u64, window: u64) -> u64 {
    window.saturating_sub(input.saturating_add(input / 20)).max(Reservation::LEAST_OUTPUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reservation(limit: u64, input: u64, output: u64) -> Reservation {
        Reservation::of(limit, input, output).expect("a reservation")
    }

    #[test]
    fn only_an_input_that_fits_makes_a_reservation() {
        assert!(Reservation::of(1_048_576, 24_302, 1_048_576).is_some());
        assert!(Reservation::of(8_192, 8_191, 2).is_some());
        for (limit, input, output) in [
            (8_192, 8_192, 1),
            (8_192, 9_000, 0),
            (8_192, 8_000, 192),
            (0, 0, 10),
            (0, 10, 10),
            (8_192, u64::MAX, u64::MAX),
        ] {
            assert_eq!(Reservation::of(limit, input, output), None, "{input} + {output} of {limit}");
        }
        assert!(Reservation::of(8_192, 1, u64::MAX).is_some(), "no sum overflows");
    }

    #[test]
    fn an_answer_leaves_a_twentieth_of_the_input_free() {
        let refused = reservation(1_048_576, 24_302, 1_048_576);
        assert_eq!(refused.output_beside(24_302), Some(1_048_576 - 24_302 - 1_215));
        assert_eq!(refused.next_output(20_000), refused.output_beside(24_302), "the provider counted more");
        assert_eq!(refused.next_output(0), refused.output_beside(24_302), "the provider counted far more");
        assert_eq!(refused.output_beside(100_000), Some(1_048_576 - 105_000));
        assert_eq!(refused.output_beside(u64::MAX), None);
        let narrow = |input: u64| reservation(8_192, input, 8_192).output_beside(input);
        assert_eq!(narrow(7_000), Some(1_024), "at least 1,024");
        assert_eq!(narrow(7_168), Some(1_024));
        assert_eq!(narrow(7_169), None, "1,024 tokens do not fit");
    }

    #[test]
    fn an_input_far_off_the_estimate_is_not_believed() {
        let exact = reservation(32_768, 9_000, 32_768);
        for (estimate, believed) in
            [(9_000, 9_000), (3_000, 9_000), (2_999, 2_999), (27_000, 9_000), (27_001, 27_001), (0, 0)]
        {
            assert_eq!(exact.believed_input(estimate), believed, "{estimate}");
        }
    }

    #[test]
    fn a_count_that_stopped_at_the_limit_is_a_lower_bound() {
        let stopped = reservation(131_072, 28_673, 102_400);
        assert_eq!(stopped.believed_input(60_000), 60_000);
        assert_eq!(stopped.believed_input(20_000), 28_673);
        assert_eq!(reservation(131_072, 28_674, 102_400).believed_input(60_000), 28_674);
    }

    proptest! {
        #[test]
        fn the_next_answer_is_always_smaller(limit in 0_u64..200_000, input: u32, output: u32, estimate: u32) {
            let refused = Reservation::of(limit, input.into(), output.into());
            if let Some(next) = refused.and_then(|refused| refused.next_output(estimate.into())) {
                prop_assert!(next < u64::from(output));
                prop_assert!(next >= Reservation::LEAST_OUTPUT);
                prop_assert!(next + u64::from(input) <= limit);
            }
        }
    }
}
