//! How full a session is: the provider's last report where it still holds, an estimate where not.

use crate::{
    compaction::{
        self, Facts,
        calibrations::Expected,
        meter::{Anchor, Meter, Since},
        plan,
    },
    conversation::{
        instructions::Instructions,
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
        let (announced_system, announced_tools) = self.instructions.tokens(estimator);
        let calibrations = meter.calibrations();
        let fit = calibrations.fit(Expected {
            factor: safe_factor(estimator, self.model.map(|model| model.provider.as_str())),
            announced: announced_system + announced_tools,
            most: window.tokens as f64 * LARGEST_OVERHEAD,
        });
        let size = |tokens: u64| scaled(tokens, fit.factor);
        let (system, tools) = match calibrations.is_empty() {
            true => (size(announced_system), size(announced_tools)),
            false => overhead(&fit, size(announced_system), size(announced_tools)),
        };
        let budget = Budget::of(window.tokens, &compaction, system, tools).with_pins(size(meter.pins()));
        let Since { anchor, messages, announced } = meter.since();
        let grown = |tokens: u64| match announced {
            0.. => tokens + size(announced.unsigned_abs()),
            _ => tokens.saturating_sub(size(announced.unsigned_abs())),
        };
        let (context_tokens, source) = match anchor {
            Anchor::Report(reported) => (grown(reported) + size(messages), UsageSource::Provider),
            Anchor::Compaction { tokens, overhead, same_estimator } => {
                let now = match same_estimator {
                    true => system + tools,
                    false => without_noise(grown(overhead), system + tools),
                };
                (tokens.saturating_sub(overhead) + now + size(messages), UsageSource::Estimate)
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
