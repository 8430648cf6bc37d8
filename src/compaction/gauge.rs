//! The fullness of a session: the provider's last report if it still holds, or else an estimate.

use super::{
    calibrations::Expected,
    ladder::Floor,
    meter::{self, Anchor, Meter, Since},
    plan,
};
use crate::{
    conversation::{
        entry::Entry,
        instructions::Instructions,
        path::Path,
        tokens::{Scale, calibration::Fit},
    },
    models::{self, Budget, ModelRef, SaidBy, learned::Taught},
    settings::{CompactionSettings, Settings},
};
use std::sync::Arc;

/// The settings, model and instructions that a path is measured with.
pub struct Gauge<'a> {
    /// The settings in force.
    pub settings: &'a Settings,
    /// The model of the context.
    pub model: Option<&'a ModelRef>,
    /// The windows that its provider taught.
    pub learned: Taught,
    /// The system prompt and the tools.
    pub instructions: &'a Instructions,
}

/// The fullness of a context.
#[derive(Debug, Clone)]
pub struct Fullness {
    /// Size of the context, in tokens.
    pub context_tokens: u64,
    /// The size that starts maintenance, in tokens. It is smaller where a report counts that no other one confirms yet.
    pub evident_tokens: u64,
    /// Source of that size. After a report that is not believed it is the estimate.
    pub source: Source,
    /// Whether a report is a part of that size.
    pub is_anchored: bool,
    /// Estimated size of its messages, in tokens.
    pub messages: u64,
    /// Size of the summary in it, in tokens.
    pub summary_tokens: u64,
    /// Size of its images, in bytes.
    pub image_bytes: usize,
    /// The parts of the window, with the sizes of system prompt and tools.
    pub budget: Budget,
    /// Source of the window.
    pub window_source: SaidBy,
    /// The scale of the session.
    pub scale: Scale,
    /// Reported over estimated tokens, if the reports determine it.
    pub calibration: Option<f64>,
    /// The settings for this model.
    pub compaction: CompactionSettings,
}

/// Source of a context's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The provider's last report, plus an estimate of the entries after it.
    Report,
    /// An estimate of the whole context.
    Estimate,
}

/// Largest share of the window that an unannounced overhead may have.
const LARGEST_OVERHEAD: f64 = 0.75;

impl Gauge<'_> {
    /// Measures the path of a meter.
    #[must_use]
    pub fn measure(&self, meter: &Meter) -> Fullness {
        let estimator = meter.estimator();
        let window = models::window(self.settings, self.learned, self.model);
        let compaction = self.settings.compaction_for(self.model);
        let (announced_system, announced_tools) = self.instructions.tokens(estimator);
        let calibrations = meter.calibrations();
        let fit = calibrations.fit(Expected {
            factor: Scale::expected(estimator, self.model.map(|model| model.provider.as_str())).factor(),
            announced: announced_system + announced_tools,
            most: window.tokens as f64 * LARGEST_OVERHEAD,
        });
        let scale = Scale::new(estimator, fit.factor);
        let size = |tokens: u64| scale.size(tokens);
        let (system, tools) = match calibrations.is_empty() {
            true => (size(announced_system), size(announced_tools)),
            false => overhead(&fit, size(announced_system), size(announced_tools)),
        };
        let budget = Budget::of(window.tokens, &compaction, system, tools).with_pins(size(meter.pins()));
        let sized = |Since { anchor, messages, announced }: Since| {
            let grown = |tokens: u64| match announced {
                0.. => tokens + size(announced.unsigned_abs()),
                _ => tokens.saturating_sub(size(announced.unsigned_abs())),
            };
            match anchor {
                Anchor::Report(reported) => (grown(reported) + size(messages), Source::Report),
                Anchor::Compaction { tokens, overhead, same_estimator } => {
                    let now = match same_estimator {
                        true => system + tools,
                        false if self.instructions.are_the_same_as(meter.instructions()) => grown(overhead),
                        false => without_noise(grown(overhead), system + tools),
                    };
                    (tokens.saturating_sub(overhead) + now + size(messages), Source::Estimate)
                }
                Anchor::None => (system + tools + size(meter.sent()), Source::Estimate),
            }
        };
        let (counted, estimated) = (sized(meter.since()), sized(meter.confirmed()));
        // A report over the window that no other one confirms is no size of a context that was sent.
        let fits = counted.0 <= window.tokens || window.source == SaidBy::Default;
        let counts = fits || counted.0 <= estimated.0;
        let (context_tokens, anchor) = if counts { counted } else { estimated };
        let source = if meter.newest_counts() { anchor } else { Source::Estimate };
        let evident_tokens = estimated.0.min(context_tokens);
        Fullness {
            context_tokens,
            evident_tokens,
            source,
            is_anchored: anchor == Source::Report,
            messages: size(meter.sent()),
            summary_tokens: size(meter.summary()),
            image_bytes: meter.image_bytes(),
            budget,
            window_source: window.source,
            scale,
            calibration: fit.learned.then_some(fit.factor),
            compaction,
        }
    }
}

impl Fullness {
    /// The same with a window that is bounded by a size that a provider rejected. Where system prompt and tools nearly fill
    /// it, the threshold is in the middle of what is left.
    #[must_use]
    pub fn bounded(self, bound: u64) -> Self {
        let Budget { window, system, tools, pins, .. } = self.budget;
        let mut budget = Budget::of(window.min(bound), &self.compaction, system, tools).with_pins(pins);
        if budget.overhead() >= budget.threshold {
            budget.threshold = (budget.overhead() + budget.window) / 2;
        }
        Self { budget, ..self }
    }

    /// The budget of a decision. A report may show an overhead that nobody announced and that is too large to be inferred. As
    /// long as the context fits the window, no compaction changes that.
    #[must_use]
    pub fn with_reported_overhead(&self) -> Budget {
        let known = self.budget.overhead() + self.messages;
        let unknown = if self.is_anchored { self.context_tokens.saturating_sub(known) } else { 0 };
        let is_large = (self.budget.overhead() + unknown) as f64 > self.budget.window as f64 * LARGEST_OVERHEAD;
        match is_large && self.context_tokens <= self.budget.window {
            true => Budget { system: self.budget.system + unknown, ..self.budget },
            false => self.budget,
        }
    }

    /// Whether the context is over a window that somebody stated. No provider takes it.
    #[must_use]
    pub fn is_over_its_window(&self) -> bool {
        self.evident_tokens > self.budget.window && self.window_source != SaidBy::Default
    }

    /// The parts of the context of a path, if it is over a window that somebody stated.
    #[must_use]
    pub fn too_large(&self, path: &Path) -> Option<Floor> {
        self.is_over_its_window().then(|| self.floor(path))
    }

    /// The parts of the context of a path that no compaction summarizes.
    #[must_use]
    pub fn floor(&self, path: &Path) -> Floor {
        let kept = &path[path.first_kept()..];
        let turn = kept.iter().rposition(|entry| entry.starts_turn() && !entry.is_pinned_text()).unwrap_or(0);
        let begin = plan::unread_requests(kept).first().map_or(turn, |request| turn.min(*request));
        let all_pinned = path.pinned();
        let is_pinned = |entry: &Entry| all_pinned.contains(&entry.id);
        let size = |entries: &[Arc<Entry>], pinned: bool| {
            let counted = entries.iter().filter(|entry| is_pinned(entry) == pinned);
            self.scale.size(counted.map(|entry| meter::sent(entry, self.scale.estimator())).sum())
        };
        let Budget { system, tools, window, .. } = self.budget;
        let pins = self.budget.pins + size(kept, true);
        let rest = self.context_tokens.saturating_sub(self.budget.overhead() + pins);
        Floor { system, tools, pins, latest_turn: size(&kept[begin..], false).min(rest), window }
    }
}

/// The tokens of the system prompt, with the unannounced overhead, and of the tools. Instructions that a client gives for a
/// load alone are in later requests for certain, and not in the reports before: those do not reduce them below the least
/// that a report makes of an estimate.
fn overhead(fit: &Fit, system: u64, tools: u64) -> (u64, u64) {
    /// The least reported over estimated tokens.
    const LEAST: f64 = 0.7;
    let announced = system + tools;
    let total = fit.overhead.max(announced as f64 * LEAST).round() as u64;
    match total.checked_sub(announced) {
        Some(rest) => (system + rest, tools),
        None => {
            let tools = tools * total / announced.max(1);
            (total - tools, tools)
        }
    }
}

/// The overhead of a compaction that another estimator measured: `then` in the compaction, `now` by this estimator. A
/// difference of up to a tenth, or 500 tokens, is one of the estimators.
fn without_noise(then: u64, now: u64) -> u64 {
    let noise = (then / 10).max(500);
    if then.abs_diff(now) <= noise { then } else { now }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_instructions_count_at_least_seven_tenths_of_their_estimate() {
        let divided = |reported: f64| overhead(&Fit { factor: 1.0, overhead: reported, learned: true }, 1_000, 3_000);
        assert_eq!(divided(0.0), (700, 2_100));
        assert_eq!(divided(3_000.0), (750, 2_250));
        assert_eq!(divided(6_000.0), (3_000, 3_000));
    }

    #[test]
    fn a_difference_between_estimators_is_noise_up_to_a_tenth_or_500_tokens() {
        for (then, now, counted) in [
            (10_000, 11_000, 10_000),
            (10_000, 11_001, 11_001),
            (10_000, 8_999, 8_999),
            (100, 600, 100),
            (100, 601, 601),
        ] {
            assert_eq!(without_noise(then, now), counted, "{then} and {now}");
        }
    }

    #[test]
    fn a_rejected_size_bounds_the_window_and_leaves_room_beside_the_overhead() {
        let fullness = |overhead: u64| {
            let compaction = CompactionSettings::default();
            Fullness {
                context_tokens: 60_000,
                evident_tokens: 60_000,
                source: Source::Estimate,
                is_anchored: false,
                messages: 60_000 - overhead,
                summary_tokens: 0,
                image_bytes: 0,
                budget: Budget::of(100_000, &compaction, overhead, 0).with_pins(500),
                window_source: SaidBy::Setting,
                scale: Scale::new(crate::conversation::tokens::Estimator::Chars, 1.0),
                calibration: None,
                compaction,
            }
        };
        for (overhead, bound, window, threshold) in
            [(1_000, 200_000, 100_000, 83_616), (1_000, 40_000, 40_000, 30_000), (34_000, 40_000, 40_000, 37_000)]
        {
            let bounded = fullness(overhead).bounded(bound);
            let Budget { window: of, threshold: over, pins, .. } = bounded.budget;
            assert_eq!((of, over, pins), (window, threshold, 500), "{overhead} of {bound}");
        }
    }

    #[test]
    fn an_overhead_that_only_a_report_shows_counts_over_three_quarters_of_the_window_and_within_it() {
        let compaction = CompactionSettings::default();
        let fullness = |context_tokens: u64, messages: u64, source: Source| Fullness {
            context_tokens,
            evident_tokens: context_tokens,
            source,
            is_anchored: source == Source::Report,
            messages,
            summary_tokens: 0,
            image_bytes: 0,
            budget: Budget::of(16_000, &compaction, 1_000, 500),
            window_source: SaidBy::Setting,
            scale: Scale::new(crate::conversation::tokens::Estimator::Chars, 1.0),
            calibration: None,
            compaction: compaction.clone(),
        };
        let system = |context_tokens, messages, source| {
            fullness(context_tokens, messages, source).with_reported_overhead().system
        };
        assert_eq!(system(13_001, 1_000, Source::Report), 11_501);
        assert_eq!(system(13_000, 1_000, Source::Report), 1_000, "that much is inferred");
        assert_eq!(system(13_001, 1_000, Source::Estimate), 1_000);
        assert_eq!(system(16_000, 1_000, Source::Report), 14_500);
        assert_eq!(system(16_001, 1_000, Source::Report), 1_000, "a context over the window is compacted");
    }
}
