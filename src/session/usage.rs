//! How full a session is: the provider's last report where it still holds, an estimate where not.

use super::instructions::Instructions;
use crate::{
    compaction::{
        self, Facts,
        meter::{Anchor, Meter},
        plan,
    },
    conversation::{
        path::Path,
        tokens::{Estimator, calibration::Fit, safe_factor, scaled},
    },
    models::{self, Budget, ModelRef},
    protocol::types::{Breakdown, Usage, UsageSource},
    settings::{CompactionSettings, Settings, Strategy},
};

/// The settings, model and instructions that a path is measured with.
pub struct Gauge<'a> {
    /// The settings in force.
    pub settings: &'a Settings,
    /// The model the context is for.
    pub model: Option<&'a ModelRef>,
    /// The window that its provider taught, in tokens.
    pub learned: Option<u64>,
    /// The system prompt and the tools.
    pub instructions: &'a Instructions,
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct Measure {
    /// As clients see it.
    pub usage: Usage,
    /// How the window is divided.
    pub budget: Budget,
    /// What an estimate is multiplied with.
    pub factor: f64,
    /// Reported over estimated tokens, once the reports say more of it than what was expected.
    pub calibration: Option<f64>,
    /// By what was estimated.
    pub estimator: Estimator,
    /// The settings for this model.
    pub compaction: CompactionSettings,
}

/// The largest part of the window that an overhead may be which nobody announced.
const LARGEST_OVERHEAD: f64 = 0.75;

impl Gauge<'_> {
    /// Measures what a meter has summed up.
    #[must_use]
    pub fn measure(&self, meter: &Meter) -> Measure {
        let estimator = meter.estimator();
        let window = models::window(self.settings, self.learned, self.model);
        let compaction = self.settings.compaction_for(self.model);
        let announced = self.instructions.tokens(estimator);
        let expected = safe_factor(estimator, self.model.map(|model| model.provider.as_str()));
        let fit = meter.fit(expected, announced.0 + announced.1, window.tokens as f64 * LARGEST_OVERHEAD);
        let size = |tokens: u64| scaled(tokens, fit.factor);
        let (system, tools) = overhead(&fit, announced, meter.knows_the_overhead());
        let budget = Budget::of(window.tokens, &compaction, system, tools).with_pins(size(meter.pins()));
        let (anchor, after) = meter.anchor();
        let (context_tokens, source) = match anchor {
            Anchor::Report(reported) => (reported + size(after), UsageSource::Provider),
            Anchor::Compaction { tokens, overhead } => {
                (with_overhead(tokens, overhead, system + tools) + size(after), UsageSource::Estimate)
            }
            Anchor::None => (system + tools + size(meter.sent()), UsageSource::Estimate),
        };
        let summary = size(meter.summary());
        let usage = Usage {
            context_tokens,
            context_window: Some(budget.window),
            percent: Some((context_tokens as f64 / budget.window as f64 * 1_000.0).round() / 10.0),
            threshold_tokens: Some(budget.threshold),
            reserve_tokens: budget.reserve,
            source,
            auto_compaction: compaction.enabled && compaction.strategy != Strategy::Off,
            window_source: window.source.name().to_owned(),
            breakdown: Breakdown {
                system,
                tools,
                summary,
                messages: context_tokens.saturating_sub(system + tools + summary),
            },
            estimator: estimator.name().to_owned(),
        };
        let calibration = fit.learned.then_some(fit.factor);
        Measure { usage, budget, factor: fit.factor, calibration, estimator, compaction }
    }
}

/// Tokens of the system prompt, with all that nobody announced, and of the tools. What was announced is sent for sure, so
/// the reports of a time before it do not make it less than its estimate allows.
fn overhead(fit: &Fit, (system, tools): (u64, u64), known: bool) -> (u64, u64) {
    /// The least that a report makes of an estimate.
    const LEAST: f64 = 0.7;
    let (system, tools) = (scaled(system, fit.factor), scaled(tools, fit.factor));
    let announced = system + tools;
    if !known {
        return (system, tools);
    }
    let total = fit.overhead.max(announced as f64 * LEAST).round() as u64;
    match total.checked_sub(announced) {
        Some(rest) => (system + rest, tools),
        None => {
            let tools = tools * total / announced.max(1);
            (total - tools, tools)
        }
    }
}

/// The count of a compaction as it would be with another overhead. A small difference comes from the estimate alone.
fn with_overhead(tokens: u64, then: u64, now: u64) -> u64 {
    let noise = (then / 10).max(500);
    if then.abs_diff(now) <= noise { tokens } else { tokens.saturating_sub(then) + now }
}

impl Measure {
    /// What the threshold says of this path.
    #[must_use]
    pub fn decision(&self, path: &Path) -> compaction::Decision {
        compaction::at_threshold(&Facts {
            context_tokens: self.usage.context_tokens,
            budget: self.budget,
            auto: self.usage.auto_compaction,
            undone: path.has_undo(),
            anything_new: plan::anything_new(path),
        })
    }
}
