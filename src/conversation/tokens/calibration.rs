//! The line from our estimates to a provider's token counts.
//!
//! The model of a report is `overhead + factor × estimate`. The overhead is the part of every request that no message
//! shows: system prompt, tools, additions of the provider. The factor is the ratio of the two tokenizers. Both are fitted
//! to the reports of one model by weighted least squares on relative errors, so that small contexts determine the overhead
//! and large contexts the factor. Without reports the fit is the prior.

use serde::{Deserialize, Serialize};

/// The expected relative error of a report.
const NOISE: f64 = 0.02;

/// The expected absolute error of a report, in tokens: separators, roles, dates in a system prompt.
const NOISE_TOKENS: f64 = 50.0;

/// The expected relative error of the growth between two reports. It is larger than `NOISE`, because the text of a single
/// message may be denser than the average.
const GROWTH_NOISE: f64 = 0.1;

/// The expected error of the prior for the factor of an unknown tokenizer.
const FACTOR_SPREAD: f64 = 0.25;

/// The range of the factor. Every tokenizer in use is within it, compared with `o200k_base` or characters/4.
const FACTORS: std::ops::RangeInclusive<f64> = 0.5..=3.0;

/// The factor by which each new report reduces the weight of the reports before it.
const FADE: f64 = 0.95;

/// The sums of a weighted least-squares fit over the reports of one model. Every compaction carries them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Calibration {
    weight: f64,
    estimated: f64,
    reported: f64,
    estimated_squared: f64,
    product: f64,
    /// The sums over growths between two reports, which do not depend on the overhead.
    growth_squared: f64,
    growth_product: f64,
    /// Tokens of announced instructions that the line takes for a part of the earlier reports. The next report decides.
    #[serde(skip_serializing_if = "is_zero")]
    taken_for_old: f64,
    /// Tokens of announced instructions that the line takes for new. The next report decides.
    #[serde(skip_serializing_if = "is_zero")]
    taken_for_new: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}

/// The expected line before the first report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prior {
    /// Reported over estimated tokens.
    pub factor: f64,
    /// Reported tokens that are in every request beside the messages.
    pub overhead: f64,
    /// The possible error of the overhead.
    pub spread: f64,
}

/// The line that fits the reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// Reported over estimated tokens.
    pub factor: f64,
    /// Reported tokens that are in every request beside the messages.
    pub overhead: f64,
    /// Whether the reports say more of the factor than the prior does.
    pub learned: bool,
}

impl Calibration {
    /// Adds a report of `reported` tokens for messages of `estimated` tokens.
    fn learn(&mut self, estimated: f64, reported: f64) {
        let weight = 1.0 / ((NOISE * reported).powi(2) + NOISE_TOKENS.powi(2));
        self.fade();
        self.weight += weight;
        self.estimated += weight * estimated;
        self.reported += weight * reported;
        self.estimated_squared += weight * estimated * estimated;
        self.product += weight * estimated * reported;
    }

    /// Adds the growth between two reports of one context. The size of the beginning of that context is unknown.
    fn learn_growth(&mut self, estimated: f64, reported: f64) {
        let weight = 1.0 / ((GROWTH_NOISE * reported).powi(2) + NOISE_TOKENS.powi(2));
        self.fade();
        self.growth_squared += weight * estimated * estimated;
        self.growth_product += weight * estimated * reported;
    }

    /// Moves the line: every later request has this many reported tokens more than those before. The number may be negative.
    fn shift(&mut self, by: f64) {
        self.reported = (self.reported + by * self.weight).max(0.0);
        self.product = (self.product + by * self.estimated).max(0.0);
    }

    fn fade(&mut self) {
        let Self { weight, estimated, reported, estimated_squared, product, growth_squared, growth_product, .. } = self;
        for sum in [weight, estimated, reported, estimated_squared, product, growth_squared, growth_product] {
            *sum *= FADE;
        }
    }

    /// Whether there is no report and no growth.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.weight == 0.0 && self.growth_squared == 0.0
    }

    /// Whether the overhead is known from a report. Growths between reports do not tell it.
    #[must_use]
    pub fn knows_the_overhead(&self) -> bool {
        self.weight > 0.0
    }

    /// The line with the least error against the reports and the prior.
    #[must_use]
    pub fn fit(&self, prior: &Prior) -> Fit {
        if self.is_empty() || !self.is_sane() {
            return Fit { factor: prior.factor, overhead: prior.overhead, learned: false };
        }
        let trust = 1.0 / FACTOR_SPREAD.powi(2);
        let trust_overhead = 1.0 / prior.spread.max(1.0).powi(2);
        let weight = self.weight + trust_overhead;
        let squared = self.estimated_squared + self.growth_squared + trust;
        let reported = self.reported + trust_overhead * prior.overhead;
        let product = self.product + self.growth_product + trust * prior.factor;
        let determinant = weight * squared - self.estimated * self.estimated;
        let factor =
            ((weight * product - self.estimated * reported) / determinant).clamp(*FACTORS.start(), *FACTORS.end());
        let mut fit = Fit { factor, overhead: (reported - factor * self.estimated) / weight, learned: false };
        if fit.overhead < 0.0 {
            fit = Fit { factor: (product / squared).clamp(*FACTORS.start(), *FACTORS.end()), overhead: 0.0, ..fit };
        }
        if self.weight == 0.0 {
            fit.overhead = prior.overhead;
        }
        let information = determinant / weight - trust;
        Fit { learned: information >= trust, ..fit }
    }

    /// Whether reports can make these sums. A file may contain sums of another program.
    fn is_sane(&self) -> bool {
        let Self { weight, estimated, reported, estimated_squared, product, .. } = *self;
        let Self { growth_squared, growth_product, taken_for_old, taken_for_new, .. } = *self;
        let growths = [growth_squared, growth_product, taken_for_old, taken_for_new];
        let mut sums = [weight, estimated, reported, estimated_squared, product].into_iter().chain(growths);
        // Cauchy-Schwarz holds for sums of reports. It keeps the determinant positive.
        sums.all(|sum| sum.is_finite() && sum >= 0.0)
            && weight * estimated_squared >= estimated * estimated * (1.0 - 1e-6)
    }
}

/// Takes the reports of one model in their order and adds the credible ones to a calibration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learner {
    calibration: Calibration,
    /// The number of credible reports.
    taken: u32,
    /// The last credible report of this context: estimated and reported tokens.
    before: Option<(u64, u64)>,
    /// A report far off the line. The next report confirms or refutes it.
    doubted: Option<(u64, u64)>,
}

/// The part of the context that the estimate of a report covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The estimate covers all messages of the request.
    Whole,
    /// The estimate covers the messages since some entry.
    Since,
}

impl Learner {
    /// The largest credible report, in tokens. No model has a larger window.
    const LARGEST: u64 = 20_000_000;
    /// The smallest growth that is used, in tokens.
    const LEAST_GROWTH: u64 = 200;
    /// The smallest context that is checked for a cut prompt, in estimated tokens. The additions of a provider dominate
    /// smaller ones.
    const SMALLEST: u64 = 2_000;

    /// A learner that continues from a calibration.
    #[must_use]
    pub fn from(calibration: Calibration) -> Self {
        let taken = if calibration.is_empty() { 0 } else { 3 };
        Self { calibration, taken, before: None, doubted: None }
    }

    /// The calibration of the credible reports.
    #[must_use]
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    /// Takes a growth of every later request, in estimated tokens. It may be negative. `old` is the size of announced
    /// instructions that the overhead of the earlier reports is taken to contain.
    pub fn grow(&mut self, estimated: f64, old: f64) {
        let factor = self.line().factor;
        self.shift(factor * estimated);
        if self.calibration.knows_the_overhead() {
            self.calibration.taken_for_old += factor * old;
            self.calibration.taken_for_new += factor * estimated.max(0.0);
        }
    }

    /// Moves the line and the reports that later ones are compared with, by a number of reported tokens.
    pub fn shift(&mut self, by: f64) {
        self.calibration.shift(by);
        for (_, reported) in self.before.iter_mut().chain(&mut self.doubted) {
            *reported = reported.saturating_add_signed(by.round() as i64);
        }
    }

    /// Decides by a report whether instructions that were announced since the last one are old or new: by the possibility
    /// that is nearest to the report. A report that is far from each of them leaves the line where it is.
    fn settle_instructions(&mut self, report: (u64, u64)) {
        /// The largest relative distance of a report from its possibility: the accuracy that sizes promise.
        const NEAR: f64 = 0.15;
        let old = std::mem::take(&mut self.calibration.taken_for_old);
        let new = std::mem::take(&mut self.calibration.taken_for_new);
        let above = self.off_the_line(report);
        let distance = |by: &f64| (above - by).abs();
        let nearest = [0.0, old, -new, old - new].into_iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        if let Some(by) = nearest.filter(|by| distance(by) <= NOISE_TOKENS + NEAR * report.1 as f64) {
            self.shift(by);
        }
    }

    /// Ends the series of reports of one context. The next report is no growth since the last one.
    pub fn interrupt(&mut self) {
        self.before = None;
        self.doubted = None;
    }

    /// Takes a report. These reports are ignored: zero or over `LARGEST`; far below the size of the request (the provider
    /// cuts the prompt silently); not growing with the context; far off all earlier reports. Two successive reports of the
    /// last two kinds that agree replace all earlier reports.
    pub fn report(&mut self, estimated: u64, reported: u64, basis: Basis) {
        if reported == 0 || reported > Self::LARGEST {
            return;
        }
        let cut = basis == Basis::Whole && estimated >= Self::SMALLEST && reported * 10 < estimated * 6;
        if basis == Basis::Whole && !cut {
            self.settle_instructions((estimated, reported));
        }
        let stalled = self.before.is_some_and(|before| Self::stalls(before, (estimated, reported)));
        if cut || stalled && basis == Basis::Since {
            return;
        }
        match basis {
            Basis::Whole if stalled || self.is_off_the_line(estimated, reported) => {
                let report = (estimated, reported);
                let Some(first) = self.doubted else {
                    self.doubted = Some(report);
                    return;
                };
                if !(agree(first, report) && (!stalled || self.leaves_room(first, report))) {
                    // A small growth confirms nothing and refutes nothing: the first report waits for the next one.
                    if !stalled || report.0 >= first.0 + Self::LEAST_GROWTH {
                        self.doubted = Some(report);
                    }
                    return;
                }
                // The two reports agree: the overhead changed with the first of them. Counts that fell do not change the
                // factor.
                match stalled {
                    true => self.calibration.shift(self.off_the_line(first).midpoint(self.off_the_line(report))),
                    false => *self = Self::default(),
                }
                self.doubted = None;
                self.learn(first.0, first.1);
                self.learn(estimated, reported);
            }
            Basis::Whole => {
                self.doubted = None;
                self.learn(estimated, reported);
            }
            Basis::Since => {
                if let Some((before, then)) = self.before
                    && estimated >= before + Self::LEAST_GROWTH
                    && reported >= then + Self::LEAST_GROWTH
                    && reported - then <= 3 * (estimated - before)
                {
                    self.calibration.learn_growth((estimated - before) as f64, (reported - then) as f64);
                    self.taken += 1;
                }
                self.before = Some((estimated, reported));
            }
        }
    }

    fn learn(&mut self, estimated: u64, reported: u64) {
        self.calibration.learn(estimated as f64, reported as f64);
        self.taken += 1;
        self.before = Some((estimated, reported));
    }

    /// Whether the reported tokens fell or did not grow with the context between two reports.
    fn stalls((estimated_then, reported_then): (u64, u64), (estimated, reported): (u64, u64)) -> bool {
        let grown = estimated.saturating_sub(estimated_then);
        let fell = estimated >= estimated_then && reported + reported_then / 20 + 1_000 < reported_then;
        fell || grown >= Self::LEAST_GROWTH && reported < reported_then + grown * 3 / 10
    }

    /// Whether two reports after a fall grow with the context and are large enough for all messages. The reports of a
    /// provider that cuts the prompt are not.
    fn leaves_room(&self, first: (u64, u64), second: (u64, u64)) -> bool {
        let factor = self.line().factor;
        let grown = second.0.saturating_sub(first.0);
        let grew = (second.1 as f64 - first.1 as f64) / (factor * grown as f64);
        grown >= Self::LEAST_GROWTH && (0.5..=1.6).contains(&grew) && second.1 as f64 >= 0.9 * factor * second.0 as f64
    }

    /// The distance of a report above the line, in tokens.
    fn off_the_line(&self, (estimated, reported): (u64, u64)) -> f64 {
        let line = self.line();
        reported as f64 - line.overhead - line.factor * estimated as f64
    }

    /// The line of the reports alone.
    #[must_use]
    pub fn line(&self) -> Fit {
        self.calibration.fit(&Prior { factor: 1.0, overhead: 0.0, spread: 100_000.0 })
    }

    /// Whether a report is far off the line. The tolerance is larger while there are fewer than three reports.
    fn is_off_the_line(&self, estimated: u64, reported: u64) -> bool {
        let reported = reported as f64;
        if self.taken == 0 {
            return false;
        }
        let line = self.line();
        let expected = line.overhead + line.factor * estimated as f64;
        let allowed = if self.taken < 3 { 3.0 } else { 1.4 };
        reported > expected * allowed + 1_000.0 || reported * allowed + 1_000.0 < expected
    }
}

/// Whether two doubted reports describe the same line.
fn agree(first: (u64, u64), second: (u64, u64)) -> bool {
    second.1 >= first.1 && second.1 - first.1 <= 3 * second.0.abs_diff(first.0) + 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRIOR: Prior = Prior { factor: 1.0, overhead: 0.0, spread: 10_000.0 };

    fn learned(reports: &[(u64, u64)]) -> Fit {
        let mut learner = Learner::default();
        reports.iter().for_each(|(estimated, reported)| learner.report(*estimated, *reported, Basis::Whole));
        learner.calibration().fit(&PRIOR)
    }

    fn near(value: f64, wanted: f64, part: f64) -> bool {
        (value - wanted).abs() <= wanted * part + 100.0
    }

    proptest! {
        /// Any tokenizer between 0.7 and 1.5 of ours, any overhead.
        #[test]
        fn the_line_is_found(
            factor in 0.7..1.5_f64,
            overhead in 0_u64..60_000,
            steps in prop::collection::vec(300_u64..4_000, 6..40),
        ) {
            let mut estimated = 0;
            let reports: Vec<_> = steps.iter().map(|step| {
                estimated += step;
                (estimated, overhead + (estimated as f64 * factor) as u64)
            }).collect();
            let fit = learned(&reports);
            // The line is used for contexts much smaller than the last one.
            for part in [0.1, 0.3, 1.0] {
                let size = estimated as f64 * part;
                let (found, wanted) = (fit.overhead + fit.factor * size, overhead as f64 + factor * size);
                prop_assert!(near(found, wanted, 0.1), "{fit:?}: {found} instead of {wanted}");
            }
        }
    }

    #[test]
    fn without_reports_the_fit_is_the_prior() {
        let fit = Calibration::default().fit(&Prior { factor: 1.2, overhead: 700.0, spread: 100.0 });
        assert_eq!(fit, Fit { factor: 1.2, overhead: 700.0, learned: false });
    }

    #[test]
    fn growth_alone_settles_the_factor_and_leaves_the_overhead() {
        let mut learner = Learner::default();
        for at in 0..10 {
            learner.report(at * 1_000, 40_000 + at * 1_300, Basis::Since);
        }
        let fit = learner.calibration().fit(&Prior { overhead: 500.0, ..PRIOR });
        assert!(fit.learned && near(fit.factor, 1.3, 0.02), "{fit:?}");
        assert_eq!(fit.overhead, 500.0);
    }

    #[test]
    fn a_provider_that_cuts_the_prompt_teaches_nothing() {
        let right: Vec<(u64, u64)> = (1..=4).map(|at| (at * 1_000, 500 + at * 1_000)).collect();
        let mut cut = right.clone();
        cut.extend((5..40).map(|at| (at * 1_000, 4_600)));
        let (right, cut) = (learned(&right), learned(&cut));
        assert!(near(cut.overhead, right.overhead, 0.1) && near(cut.factor, right.factor, 0.1), "{cut:?}");
    }

    #[test]
    fn zero_absurd_and_shrinking_reports_teach_nothing() {
        let mut reports: Vec<(u64, u64)> = (1..=8).map(|at| (at * 1_000, 5_000 + at * 1_200)).collect();
        let fit = learned(&reports);
        for odd in [0, 1, 7, 9_000, 2_000_000, u64::MAX] {
            reports.insert(5, (5_500, odd));
            let with = learned(&reports);
            assert!(near(with.overhead, fit.overhead, 0.05) && near(with.factor, fit.factor, 0.03), "{odd}: {with:?}");
        }
    }

    #[test]
    fn an_overhead_that_changes_is_followed() {
        let mut reports: Vec<(u64, u64)> = (1..=8).map(|at| (at * 1_000, 2_000 + at * 1_000)).collect();
        reports.extend((9..=12).map(|at| (at * 1_000, 40_000 + at * 1_000)));
        let fit = learned(&reports);
        assert!(near(fit.overhead + fit.factor * 12_000.0, 52_000.0, 0.05), "{fit:?}");
    }

    #[test]
    fn an_overhead_that_shrinks_is_followed_within_a_few_reports() {
        for (before, after) in [(8_000, 0), (20_000, 2_000), (20_000, 16_000)] {
            for step in [150, 400, 1_000] {
                let mut reports: Vec<(u64, u64)> = (1..=10).map(|at| (at * step, before + at * step)).collect();
                reports.extend((11..=15).map(|at| (at * step, after + at * step)));
                let fit = learned(&reports);
                let (found, wanted) = (fit.overhead + fit.factor * step as f64, (after + step) as f64);
                assert!(near(found, wanted, 0.1), "{before} to {after} by {step}: {fit:?}");
            }
        }
    }

    #[test]
    fn a_provider_that_drops_old_turns_teaches_nothing() {
        for overhead in [500, 20_000] {
            let right: Vec<(u64, u64)> = (1..=10).map(|at| (at * 1_000, overhead + at * 1_000)).collect();
            let mut dropping = right.clone();
            // The count saws between the limit and what is left when the oldest turns are dropped.
            dropping.extend((11..60).map(|at| (at * 1_000, overhead + 10_000 - [2_400, 2_200, 100][at as usize % 3])));
            let (right, dropping) = (learned(&right), learned(&dropping));
            assert!(
                near(dropping.overhead, right.overhead, 0.1) && near(dropping.factor, right.factor, 0.1),
                "{dropping:?}"
            );
        }
    }

    #[test]
    fn sums_that_no_report_makes_are_ignored() {
        for sums in [
            serde_json::json!({"weight": -1.0, "estimated": 5.0}),
            serde_json::json!({"weight": 1.0, "estimated": 1e9, "reported": 1.0}),
        ] {
            let calibration: Calibration = serde_json::from_value(sums).expect("sums");
            assert_eq!(calibration.fit(&PRIOR), Fit { factor: 1.0, overhead: 0.0, learned: false });
        }
    }
}
