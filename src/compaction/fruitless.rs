//! Summaries ahead of the threshold that came to nothing: the rest after one that no model wrote, and the bound of the
//! tokens that they take.

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

/// The most tokens that summaries without use take in an hour.
#[must_use]
pub fn most(window: u64) -> u64 {
    window.saturating_mul(MOST_WINDOWS)
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
}
