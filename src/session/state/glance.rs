//! The size of a path that is only looked at.

use super::View;
use crate::conversation::{path::Path, tokens::Estimator};

impl View {
    /// The view that estimates the size of a path instead of counting it for long.
    #[must_use]
    pub fn at_a_glance(self, path: &Path) -> Self {
        /// Largest number of tokens that are counted for an answer: some milliseconds.
        const COUNTED_FOR_AN_ANSWER: u64 = 40_000;
        let tokens = path[path.first_kept()..].iter().map(|entry| u64::from(entry.tokens(Estimator::Chars)));
        let estimator = if tokens.sum::<u64>() <= COUNTED_FOR_AN_ANSWER { self.estimator } else { Estimator::Chars };
        Self { estimator, ..self }
    }
}
