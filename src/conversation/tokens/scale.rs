//! The scale of a session: by which estimator, and times which factor, its sizes are measured.

use super::Estimator;

/// Factor of the tokenizer's estimate before the first report: other providers' tokenizers find more tokens in code than
/// OpenAI's.
const SAFE_TIKTOKEN: f64 = 1.2;

/// Factor of the estimate by characters before the first report: it was 21–27 % low on 881 real reports.
const SAFE_CHARS: f64 = 1.35;

/// Measures texts and estimates as one session and one model count. Every size that is compared with a window, a
/// threshold or a report goes through it.
///
/// An *estimate* is a number of tokens by the estimator alone. A *size* is that estimate times the factor, which is the
/// provider's count as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    estimator: Estimator,
    factor: f64,
}

impl Scale {
    /// The scale of a session whose provider reports `factor` times the estimate.
    #[must_use]
    pub const fn new(estimator: Estimator, factor: f64) -> Self {
        Self { estimator, factor }
    }

    /// The scale that is expected of a provider before its first report: rather above than below its count.
    #[must_use]
    pub fn expected(estimator: Estimator, provider: Option<&str>) -> Self {
        let factor = match (estimator, provider) {
            (Estimator::Chars, _) => SAFE_CHARS,
            // The vocabulary is OpenAI's own. Without a model no provider can count more.
            (Estimator::Tiktoken, None) => 1.0,
            (Estimator::Tiktoken, Some(provider)) if provider.starts_with("openai") => 1.0,
            (Estimator::Tiktoken, Some(_)) => SAFE_TIKTOKEN,
        };
        Self::new(estimator, factor)
    }

    /// The estimator.
    #[must_use]
    pub fn estimator(self) -> Estimator {
        self.estimator
    }

    /// Reported over estimated tokens.
    #[must_use]
    pub fn factor(self) -> f64 {
        self.factor
    }

    /// The estimate of a text, in tokens.
    #[must_use]
    pub fn estimate(self, text: &str) -> u64 {
        self.estimator.of_text(text)
    }

    /// The size of a text, in tokens.
    #[must_use]
    pub fn text(self, text: &str) -> u64 {
        self.size(self.estimate(text))
    }

    /// The size of something estimated, in tokens, rounded up.
    #[must_use]
    pub fn size(self, estimated: u64) -> u64 {
        (estimated as f64 * self.factor).ceil() as u64
    }

    /// The estimate of something that has `size` tokens, rounded down.
    #[must_use]
    pub fn unscaled(self, size: u64) -> u64 {
        /// A smaller factor comes from a report that is nonsense.
        const LEAST: f64 = 0.1;
        (size as f64 / self.factor.max(LEAST)) as u64
    }

    /// The largest estimate that surely fits into `size` tokens, rounded down: an estimate never counts for less than
    /// itself.
    #[must_use]
    pub fn fitting(self, size: u64) -> u64 {
        (size as f64 / self.factor.max(1.0)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_the_estimate_times_the_factor() {
        let scale = Scale::new(Estimator::Chars, 1.5);
        assert_eq!((scale.estimate("twelve chars"), scale.text("twelve chars")), (3, 5));
        assert_eq!((scale.unscaled(9), scale.fitting(9)), (6, 6));
        // The provider counts less than the estimate: as much as was estimated still fits.
        let scale = Scale::new(Estimator::Chars, 0.5);
        assert_eq!((scale.size(9), scale.unscaled(9), scale.fitting(9)), (5, 18, 9));
    }

    #[test]
    fn the_expected_scale_is_careful_with_other_tokenizers() {
        let factor = |estimator, provider| Scale::expected(estimator, provider).factor();
        assert_eq!(factor(Estimator::Tiktoken, Some("openai")), 1.0);
        assert_eq!(factor(Estimator::Tiktoken, None), 1.0);
        assert!(factor(Estimator::Tiktoken, Some("anthropic")) > 1.0);
        assert!(factor(Estimator::Chars, Some("openai")) > 1.0);
    }
}
