//! The reports of one model about one context, in their order. The context grows from report to report. A rewrite begins
//! another series.

use super::{Bounds, Doubt, Estimate, LARGEST, Line, Report, SMALLEST_WINDOW, Verdict, is_too_small};
use crate::conversation::tokens::Estimator;

/// Least growth of a context that tells anything about a report, in estimated tokens.
const LEAST_GROWTH: u64 = 500;

/// Growth over which reports of a believed series have to grow, too, in estimated tokens.
const STALLED_AFTER: u64 = 1_500;

/// Share by which a report may be off its expectation: the accuracy that a size has without a true report.
const NEAR: f64 = 0.35;

/// The same where reports of the model give the expectation: the accuracy that a size has after a true report.
const NEAR_OF_KNOWN: f64 = 0.15;

/// Deviation of any report from its expectation, in tokens: a date, or a note of the host, in a system prompt.
const NOISE: f64 = 250.0;

/// The same where reports of the model give the expectation.
const NOISE_OF_KNOWN: f64 = 100.0;

/// Deviation of the growth between two reports, in tokens: separators and roles.
const FRAMES: f64 = 150.0;

/// Reports of about the same size in a row that show a cut prompt.
const SATURATED: u32 = 3;

/// A report with the estimate of its request, in tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    estimate: Estimate,
    prompt: u64,
}

/// A report that another one has to confirm.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Waiting {
    sample: Sample,
    /// Tokens above the expectation; negative below it.
    excess: f64,
    /// Whether it is near the expectation, and counts meanwhile.
    counts: bool,
}

/// A verdict with its circumstances, as in `Standing`.
struct Judged {
    verdict: Verdict,
    doubt: Option<Doubt>,
    confirms: Option<(u64, u64)>,
}

impl From<Verdict> for Judged {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, doubt: None, confirms: None }
    }
}

/// Reports in a row that are smaller than the messages of their requests, and of about the same size.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Short {
    prompt: u64,
    times: u32,
}

/// The reports of a model about a context.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// The newest believed report of this context.
    base: Option<Sample>,
    /// An older one, which tells whether the reports grow with the context.
    older: Option<Sample>,
    waiting: Option<Waiting>,
    short: Option<Short>,
    /// The estimate of the request of the newest report of any worth.
    before: Option<Estimate>,
    /// The largest prompt that was believed, also before the last rewrite.
    largest: u64,
    /// Refused and contradicted reports in a row, also before the last rewrite.
    doubted: u32,
}

/// The standing of a report in its series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The judgement.
    pub verdict: Verdict,
    /// An earlier report that this one confirms: the estimate of its request and its prompt.
    pub confirms: Option<(u64, u64)>,
    /// Tokens that every request has more since the confirmed report than before it: the overhead changed within a context
    /// whose earlier reports were believed. Negative where it has less.
    pub jump: i64,
    /// The window of a server that cuts prompts, as three reports show it, in tokens.
    pub saturated: Option<u64>,
    /// Reports in a row that are not believed, this one included.
    pub doubted: u32,
    /// The reported prompt, in tokens.
    pub reported: u64,
    /// The prompt that was expected, in tokens.
    pub expected: u64,
    /// The reason of the doubt, also of an earlier report that this one contradicts.
    pub doubt: Option<Doubt>,
}

impl Series {
    /// The context was rewritten. Earlier reports are about another context.
    pub fn rewritten(&mut self) {
        self.base = None;
        self.older = None;
        self.waiting = None;
        self.before = None;
        self.short = None;
    }

    /// The largest prompt that was believed, in tokens.
    #[must_use]
    pub fn largest(&self) -> Option<u64> {
        Some(self.largest).filter(|tokens| *tokens > 0)
    }

    /// Every later request has this many reported tokens more: the announced instructions grew. The number may be negative.
    pub fn shift(&mut self, by: i64) {
        let waiting = self.waiting.iter_mut().map(|waiting| &mut waiting.sample);
        for sample in self.base.iter_mut().chain(&mut self.older).chain(waiting) {
            sample.prompt = sample.prompt.saturating_add_signed(by);
        }
    }

    /// Judges the report of a request.
    pub fn judge(&mut self, estimate: Estimate, report: Report, bounds: &Bounds) -> Standing {
        let sample = Sample { estimate, prompt: report.prompt };
        let before = self.before.replace(estimate);
        let expected = self.expected(estimate, bounds.line);
        let known = self.base.is_some();
        let Judged { verdict, doubt, confirms } = match self.refusal(sample, report, expected, bounds) {
            Some(doubt) => Judged { doubt: Some(doubt), ..Verdict::Refused(doubt).into() },
            None if self.is_near(sample.prompt, expected, bounds) && !self.stalls(sample) => match self.base {
                Some(_) => self.believe(sample).into(),
                None => self.first(sample, expected, bounds),
            },
            None if !bounds.is_whole => self.believe(sample).into(),
            None => self.far(sample, expected, bounds),
        };
        let jump = if known && confirms.is_some() { sample.prompt as f64 - expected } else { 0.0 };
        let saturated = match verdict {
            Verdict::Refused(Doubt::TooSmall) => self.is_cut(sample, before),
            _ => {
                self.short = None;
                None
            }
        };
        match (verdict, doubt) {
            (Verdict::Believed, _) => self.doubted = 0,
            (_, Some(_)) => self.doubted += 1,
            _ => {}
        }
        let expected = expected.round() as u64;
        let jump = jump.round() as i64;
        Standing { verdict, confirms, jump, saturated, doubted: self.doubted, reported: sample.prompt, expected, doubt }
    }

    /// Whether a prompt is nearer to the expectation of one request than to that of another.
    #[must_use]
    pub fn is_nearer(&self, prompt: u64, one: Estimate, other: Estimate, line: Line) -> bool {
        let off = |estimate| (prompt as f64 - self.expected(estimate, line)).abs();
        off(one) < off(other)
    }

    /// The expected prompt of a request, in tokens.
    fn expected(&self, estimate: Estimate, line: Line) -> f64 {
        match self.base {
            Some(base) => base.prompt as f64 + line.factor * (estimate.all as f64 - base.estimate.all as f64),
            None => line.at(estimate.all),
        }
    }

    /// The reason why no request can have had this prompt.
    fn refusal(&self, sample: Sample, report: Report, expected: f64, bounds: &Bounds) -> Option<Doubt> {
        let Sample { estimate, prompt } = sample;
        let over = |window: u64| prompt > window && expected <= window as f64;
        match () {
            () if is_too_small(prompt, estimate.solid) => Some(Doubt::TooSmall),
            () if prompt > LARGEST || bounds.window.is_some_and(over) => Some(Doubt::OverWindow),
            // The other reading of the same report fits.
            () if !self.is_near(prompt, expected, bounds) => report
                .uncached
                .filter(|uncached| *uncached < prompt && self.is_near(*uncached, expected, bounds))
                .filter(|uncached| prompt <= uncached.saturating_mul(2))
                .map(|_| Doubt::CountedTwice),
            () => None,
        }
    }

    /// Whether a prompt is near the expectation. Without a known line the tolerance is larger.
    fn is_near(&self, prompt: u64, expected: f64, bounds: &Bounds) -> bool {
        let known = self.base.is_some() || bounds.line.is_learned;
        let share = if known && bounds.estimator == Estimator::Tiktoken { NEAR_OF_KNOWN } else { NEAR };
        let noise = if known { NOISE_OF_KNOWN } else { NOISE };
        (prompt as f64 - expected).abs() <= share * expected + noise
    }

    /// Whether the reports do not grow with the context. Each of them may be near the one before.
    fn stalls(&self, sample: Sample) -> bool {
        /// Least part of its estimated growth that the prompt of a context grows by.
        const LEAST: f64 = 0.3;
        let Some(older) = self.older else { return false };
        let grown = sample.estimate.solid.saturating_sub(older.estimate.solid);
        grown >= STALLED_AFTER && sample.prompt as f64 - (older.prompt as f64) < LEAST * grown as f64
    }

    fn believe(&mut self, sample: Sample) -> Verdict {
        let is_old = |older: Sample| sample.estimate.solid.saturating_sub(older.estimate.solid) >= 2 * STALLED_AFTER;
        if self.waiting.is_some_and(|waiting| !waiting.counts) || self.older.is_none_or(is_old) {
            self.older = Some(sample);
        }
        self.base = Some(sample);
        self.waiting = None;
        self.largest = self.largest.max(sample.prompt);
        Verdict::Believed
    }

    /// Takes a report near the estimate of a context that no report is believed of yet.
    fn first(&mut self, sample: Sample, expected: f64, bounds: &Bounds) -> Judged {
        let excess = sample.prompt as f64 - expected;
        match self.waiting {
            Some(waiting) if waiting.counts && waiting.agrees(sample, excess, bounds) => self.confirm(waiting, sample),
            // A small growth confirms nothing. The first report waits for the next one.
            Some(waiting) if waiting.counts && waiting.growth(sample) < LEAST_GROWTH => Verdict::Unconfirmed.into(),
            _ => {
                self.waiting = Some(Waiting { sample, excess, counts: true });
                Verdict::Unconfirmed.into()
            }
        }
    }

    /// Takes a report far from the expectation.
    fn far(&mut self, sample: Sample, expected: f64, bounds: &Bounds) -> Judged {
        let excess = sample.prompt as f64 - expected;
        let doubt = match self.waiting {
            Some(waiting) if waiting.agrees(sample, excess, bounds) => return self.confirm(waiting, sample),
            Some(waiting) if waiting.growth(sample) < LEAST_GROWTH && waiting.is_beside(sample) => {
                return Verdict::Waits.into();
            }
            Some(_) => Some(Doubt::Contradicted),
            None => None,
        };
        self.waiting = Some(Waiting { sample, excess, counts: false });
        Judged { doubt, ..Verdict::Waits.into() }
    }

    /// Believes a report and the earlier one that agrees with it.
    fn confirm(&mut self, waiting: Waiting, sample: Sample) -> Judged {
        let Sample { estimate, prompt } = waiting.sample;
        Judged { confirms: Some((estimate.all, prompt)), ..self.believe(sample).into() }
    }

    /// Takes a report that is smaller than its request. Returns the window of a server that cuts prompts, where reports in a
    /// row stay the same while the context grows, and none is the part that a cache lacked.
    fn is_cut(&mut self, sample: Sample, before: Option<Estimate>) -> Option<u64> {
        let Sample { estimate, prompt } = sample;
        let grown = before.map_or(0, |before| estimate.all.saturating_sub(before.all));
        let is_new_part = prompt.saturating_mul(2) < grown.saturating_mul(3);
        // Ollama cuts to half of its window, so the largest prompt that it read may be twice as long.
        if is_new_part || prompt.saturating_mul(2) < self.largest || prompt < SMALLEST_WINDOW {
            self.short = None;
            return None;
        }
        let times = match self.short {
            Some(short) if short.prompt.abs_diff(prompt) <= short.prompt / 50 => short.times + 1,
            _ => 1,
        };
        self.short = Some(Short { prompt, times });
        (times >= SATURATED).then_some(prompt.max(self.largest))
    }
}

impl Waiting {
    /// Growth of the context since it, in estimated tokens.
    fn growth(&self, sample: Sample) -> u64 {
        sample.estimate.solid.saturating_sub(self.sample.estimate.solid)
    }

    /// Whether two reports of about one context have about one size.
    fn is_beside(&self, sample: Sample) -> bool {
        let by = sample.prompt.abs_diff(self.sample.prompt);
        by <= 2 * sample.estimate.all.abs_diff(self.sample.estimate.all) + 500
    }

    /// Whether a report after enough growth is above the expectation by the same number of tokens.
    fn agrees(&self, sample: Sample, excess: f64, bounds: &Bounds) -> bool {
        /// Deviation of a growth from its estimate. Single messages are denser or thinner than the average.
        const DEVIATION: f64 = 0.35;
        let growth = self.growth(sample);
        let all = sample.estimate.all.saturating_sub(self.sample.estimate.all) as f64;
        let most = match bounds.estimator {
            Estimator::Tiktoken => DEVIATION,
            Estimator::Chars => 2.0,
        };
        let off = excess - self.excess;
        let grew = bounds.line.factor * all;
        growth >= LEAST_GROWTH && off >= -(DEVIATION * grew + FRAMES) && off <= most * grew + FRAMES
    }
}

#[cfg(test)]
mod tests;
