//! The worth of token counts that come from outside: from hosts, providers and files of other programs.
//!
//! Hosts misreport: they leave out the cached part of a prompt, count it twice, add up the steps of a turn, or pass on the
//! count of another model. A report is therefore evidence. It is compared with the plain estimate of the request that it is
//! about, and with the reports before it. A report that is not believed changes nothing: the estimate counts.
//!
//! - A report that no request could have had is refused at once.
//! - A report near the expectation is believed. The first one after a rewrite has nothing to be compared with but the
//!   estimate, so it counts as a size and starts nothing until a later report agrees with it.
//! - Any other report waits. A later report that is above the expectation by the same number of tokens confirms it: system
//!   prompts, tools and media that nobody announced add a constant. Sums over steps and doubled counts grow with the context.

mod grounds;
mod series;

pub use grounds::Grounds;
pub use series::{Series, Standing};

use crate::conversation::{
    message::{Usage, outline::Outline},
    tokens::Estimator,
};

/// Smallest estimate that a report is held against, in tokens. In smaller requests the additions of a provider weigh more than
/// the messages.
pub const SMALLEST_ESTIMATE: u64 = 2_000;

/// Least part of the solid estimate that a prompt has, in percent. On 3,203 reports of 22 real sessions no honest one was
/// below it.
const LEAST_PERCENT: u64 = 60;

/// Largest prompt that a report can be about, in tokens. No model has a larger window.
const LARGEST: u64 = 20_000_000;

/// Smallest window that saturation can show, in tokens. Error codes and counts of messages are often smaller.
const SMALLEST_WINDOW: u64 = 1_024;

/// The plain estimate of the messages of a request, in tokens, without any factor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// All messages.
    pub all: u64,
    /// The part that every request contains: without images, whose price differs by provider, and without thinking, which
    /// providers leave out of later requests.
    pub solid: u64,
}

impl Estimate {
    /// The estimate of the same messages and one more, of so many tokens.
    #[must_use]
    pub fn with(self, outline: Option<&Outline>, tokens: u64) -> Self {
        Self { all: self.all + tokens, solid: self.solid + outline.map_or(tokens, |outline| outline.solid(tokens)) }
    }

    /// The estimate without some of the messages.
    #[must_use]
    pub fn without(self, messages: Self) -> Self {
        Self { all: self.all.saturating_sub(messages.all), solid: self.solid.saturating_sub(messages.solid) }
    }
}

/// The expected line from the estimate of a request to its prompt, before a report of the same context.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Reported over estimated tokens.
    pub factor: f64,
    /// Reported tokens beside the messages: system prompt and tools.
    pub overhead: f64,
    /// Whether the model's own reports gave the line. Otherwise it is a guess.
    pub is_learned: bool,
}

impl Line {
    fn at(self, estimated: u64) -> f64 {
        self.overhead + self.factor * estimated as f64
    }
}

/// The circumstances that a report is judged in.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The expected line.
    pub line: Line,
    /// The window that the host, a setting or the catalog names, in tokens. Learned and default windows bound nothing.
    pub window: Option<u64>,
    /// The estimator of the request.
    pub estimator: Estimator,
    /// Whether the estimate covers the whole request. A path that begins in the middle covers less.
    pub is_whole: bool,
}

/// A report of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// The prompt with its cached part, in tokens.
    pub prompt: u64,
    /// The prompt without the part that was read from a cache, where the report states both.
    pub uncached: Option<u64>,
}

impl Report {
    /// The prompt that a usage reports. `None` where it reports no input.
    #[must_use]
    pub fn of(usage: &Usage) -> Option<Self> {
        let prompt = usage.prompt_tokens();
        let uncached = (usage.cache_read > 0).then_some(usage.input.saturating_add(usage.cache_write));
        (prompt > 0).then_some(Self { prompt, uncached })
    }
}

/// The judgement of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is the size of its request.
    Believed,
    /// It is near the estimate, and no other report of this context confirms it yet. It counts as a size and starts nothing.
    Unconfirmed,
    /// It waits for a report that confirms it, and changes nothing until then.
    Waits,
    /// It changes nothing.
    Refused(Doubt),
}

/// The reason why a report is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// It is smaller than the messages of the request.
    TooSmall,
    /// It is larger than the window of the model, and the estimate is not.
    OverWindow,
    /// It contains the cached part twice.
    CountedTwice,
    /// It is far from the expectation, and a later report contradicts it.
    Contradicted,
}

impl Doubt {
    /// The likely cause, as a question to the author of the host.
    #[must_use]
    pub fn question(self) -> &'static str {
        match self {
            Self::TooSmall => "Is cacheRead missing, or did the server cut the prompt?",
            Self::OverWindow => "Is this a sum over the steps of a turn?",
            Self::CountedTwice => "Does input already contain cacheRead?",
            Self::Contradicted => "Is this a sum over the steps of a turn, or the count of another model?",
        }
    }
}

/// Whether a prompt of this size can be the request whose messages have this estimate, as far as a smallest size tells.
#[must_use]
pub fn is_too_small(prompt: u64, solid: u64) -> bool {
    solid >= SMALLEST_ESTIMATE && prompt.saturating_mul(100) < solid.saturating_mul(LEAST_PERCENT)
}

/// The least size of a request with messages of this estimate, in tokens. None where additions may weigh more than these.
#[must_use]
pub fn least_prompt(estimate: u64) -> Option<u64> {
    (estimate >= SMALLEST_ESTIMATE).then(|| estimate / 100 * LEAST_PERCENT)
}

/// The tokens of an answer in later requests. The reported output contains reasoning that no later request has, or counts all
/// steps of a turn. It is taken where it is near the estimate of the answer.
#[must_use]
pub fn answer(output: u64, estimated: u64) -> u64 {
    /// Deviation that is no sign of reasoning, in tokens: the frame of a message and of its calls.
    const FRAME: u64 = 64;
    let most = estimated.saturating_mul(135) / 100 + FRAME;
    let least = (estimated / 2).saturating_sub(FRAME);
    if (least..=most).contains(&output) { output } else { estimated }
}

/// Whether a report can be the cost of a request of the daemon's own, of which the estimate of what was sent is known. A report
/// below a quarter of it would let requests pass a limit on costs, and one far above it would stop them.
#[must_use]
pub fn is_credible_cost(usage: &Usage, sent: u64) -> bool {
    /// Largest ratio of a cost to the estimate of its request. Dense text reaches about three.
    const MOST: u64 = 4;
    /// Tokens that any request may cost beside its estimate: an answer with reasoning.
    const ALLOWANCE: u64 = 64_000;
    (sent / 4..=sent.saturating_mul(MOST).saturating_add(ALLOWANCE)).contains(&usage.context_tokens())
}

/// The prompt of a request of the daemon's own: the report as far as it is credible, else the estimate of what was sent. Such a
/// request has no overhead that nobody announced.
#[must_use]
pub fn own_prompt(reported: u64, sent: u64) -> u64 {
    /// Tokens that a provider may add to a request.
    const ADDED: u64 = 8_000;
    if reported <= sent.saturating_mul(2).saturating_add(ADDED) { reported } else { sent }
}

/// Whether an answer without an error is an overflow: its prompt is over the window, or all but fills it and left no room for a
/// single token of the answer.
#[must_use]
pub fn is_silent_overflow(prompt: u64, output: u64, stopped_for_length: bool, window: u64) -> bool {
    let full = prompt.saturating_mul(100) >= window.saturating_mul(99);
    window > 0 && (prompt > window || stopped_for_length && output == 0 && full)
}

/// Whether a report shows that its provider keeps prompts, however wrong its numbers are. A wrong answer costs a later
/// pruning, or one prompt that is written to the cache again. Nothing leaves the context for it.
#[must_use]
pub fn shows_a_cache(usage: &Usage) -> bool {
    usage.cache_read > 0 || usage.cache_write > 0
}

/// The window of a server that cut the prompt of a request of the daemon's own, in tokens: the part that it read, if that is far
/// less than the plain estimate of what was sent. A single such report is enough to reject a summary.
#[must_use]
pub fn served(reported: u64, sent: u64) -> Option<u64> {
    /// Smallest window that such a report shows, in tokens. Smaller counts are other numbers.
    const SMALLEST: u64 = 512;
    Some(reported).filter(|tokens| is_too_small(*tokens, sent) && *tokens >= SMALLEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_counts_where_it_is_near_the_answer() {
        assert_eq!(answer(10, 3), 10);
        assert_eq!(answer(1_200, 1_000), 1_200);
        assert_eq!(answer(9_000, 1_000), 1_000, "hidden reasoning");
        assert_eq!(answer(0, 1_000), 1_000, "not reported");
        assert_eq!(answer(u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn a_cost_is_near_what_was_sent() {
        let usage = |input| Usage { input, ..Usage::default() };
        for (reported, sent, credible) in [
            (1, 50_000, false),
            (12_499, 50_000, false),
            (12_500, 50_000, true),
            (264_000, 50_000, true),
            (264_001, 50_000, false),
            (u64::MAX, 50_000, false),
            (0, 0, true),
        ] {
            assert_eq!(is_credible_cost(&usage(reported), sent), credible, "{reported} of {sent}");
        }
    }

    #[test]
    fn a_prompt_of_the_daemon_is_what_it_sent_where_the_report_cannot_be() {
        assert_eq!(own_prompt(28_000, 10_000), 28_000);
        assert_eq!(own_prompt(28_001, 10_000), 10_000);
        assert_eq!(own_prompt(u64::MAX, u64::MAX), u64::MAX);
    }

    #[test]
    fn an_answer_without_an_error_overflows_by_its_numbers() {
        for (prompt, output, length, window, overflows) in [
            (200_001, 500, false, 200_000, true),
            (200_001, 0, true, 200_000, true),
            (200_000, 500, false, 200_000, false),
            (198_000, 0, true, 200_000, true),
            (197_999, 0, true, 200_000, false),
            (199_000, 1, true, 200_000, false),
            (199_000, 0, false, 200_000, false),
            (0, 0, true, 0, false),
            (u64::MAX, 0, false, 1_000_000, true),
            (0, 0, true, u64::MAX, false),
        ] {
            assert_eq!(is_silent_overflow(prompt, output, length, window), overflows, "{prompt} {output} {window}");
        }
    }

    #[test]
    fn a_server_that_cut_a_prompt_shows_in_what_it_read() {
        for (reported, sent, window) in [
            (4_095, 30_000, Some(4_095)),
            (5_999, 10_000, Some(5_999)),
            (6_000, 10_000, None),
            (1_000, 1_999, None),
            (1_000, 2_000, Some(1_000)),
            (0, 30_000, None),
            (511, 30_000, None),
            (512, u64::MAX, Some(512)),
        ] {
            assert_eq!(served(reported, sent), window, "{reported} of {sent}");
        }
    }
}
