//! How full a session is: the provider's last report where it still holds, an estimate where not.

use crate::{
    context::{self, Context},
    entry::Entry,
    maintenance::{self, Facts, plan},
    message::outline::Outline,
    models::{self, Budget, ModelRef},
    path::Path,
    prompts::Prompts,
    protocol::types::{Breakdown, Usage, UsageSource},
    settings::{CompactionSettings, EstimatorSetting, Settings, Strategy},
    tokens::{self, Calibration, Estimator, factor, scaled},
};
use serde_json::Value;
use std::sync::Arc;

/// What is measured against what.
pub struct Gauge<'a> {
    /// The settings in force.
    pub settings: &'a Settings,
    /// The prompts in force.
    pub prompts: &'a Prompts,
    /// The model the context is for.
    pub model: Option<&'a ModelRef>,
    /// The window that its provider taught, in tokens.
    pub learned: Option<u64>,
    /// What the model is told before everything.
    pub system_prompt: Option<&'a str>,
    /// The tools it is given.
    pub tools: Option<&'a [Value]>,
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
    /// Reported over estimated tokens, once anything was reported.
    pub calibration: Option<f64>,
    /// By what was estimated.
    pub estimator: Estimator,
    /// The settings for this model.
    pub compaction: CompactionSettings,
}

/// Reports further back say nothing more about how well we estimate now.
const CALIBRATION_SPAN: usize = 400;

impl Gauge<'_> {
    /// By what a decision estimates; counting may be needed first.
    #[must_use]
    pub fn estimator(&self) -> Estimator {
        match self.settings.tokens.estimator {
            EstimatorSetting::Auto => Estimator::Tiktoken,
            EstimatorSetting::Chars => Estimator::Chars,
        }
    }

    /// Measures a path without counting much: where more than a few entries are not counted yet, by their characters.
    #[must_use]
    pub fn measure(&self, path: &Path) -> Measure {
        self.measure_built(path, None)
    }

    /// The same, where its context was built already.
    #[must_use]
    pub fn measure_built(&self, path: &Path, context: Option<&Context>) -> Measure {
        /// So many uncounted tokens are counted on the way: about a millisecond.
        const COUNTED_AT_ONCE: u64 = 4_000;
        let wanted = self.estimator();
        let uncounted = path[path.first_kept()..].iter().filter(|entry| entry.tokens_known(wanted).is_none());
        let uncounted: u64 = uncounted.map(|entry| u64::from(entry.tokens(Estimator::Chars))).sum();
        let ready = wanted == Estimator::Chars || tokens::ready();
        let estimator = if ready && uncounted <= COUNTED_AT_ONCE { wanted } else { Estimator::Chars };
        self.measure_with(path, estimator, context)
    }

    /// Measures a path by an estimator, counting what it needs.
    #[must_use]
    pub fn measure_by(&self, path: &Path, estimator: Estimator) -> Measure {
        self.measure_with(path, estimator, None)
    }

    fn measure_with(&self, path: &Path, estimator: Estimator, context: Option<&Context>) -> Measure {
        let calibration = calibrate(path, estimator);
        let provider = self.model.map(|model| model.provider.as_str());
        let factor = factor(&calibration, estimator, provider);
        let text = |text: &str| match estimator {
            Estimator::Tiktoken => u64::from(tokens::of_text(text)),
            Estimator::Chars => tokens::utf16_len(text).div_ceil(4) as u64,
        };
        let size = |text_tokens: u64| scaled(text_tokens, factor);
        let system = size(self.system_prompt.map_or(0, text));
        let tools = size(self.tools.map_or(0, |tools| tools.iter().map(|tool| text(&tool.to_string())).sum()));

        let window = models::window(self.settings, self.learned, self.model);
        let compaction = self.settings.compaction_for(self.model);
        let pins = context::texts_of_pins(path, path.first_kept(), path.pins());
        // Roughly: this is asked for all the time.
        let pins = size(pins.iter().map(|(_, pinned)| tokens::utf16_len(pinned).div_ceil(4) as u64).sum());
        let budget = Budget::of(window.tokens, &compaction, system, tools).with_pins(pins);
        let sum = |entries: &[Arc<Entry>]| -> u64 {
            entries.iter().filter(|entry| entry.in_context()).map(|entry| u64::from(entry.tokens(estimator))).sum()
        };
        let (context_tokens, source) = match anchor(path) {
            Some((place, reported)) => (reported + size(sum(&path[place + 1..])), UsageSource::Provider),
            None => {
                let tokens = context
                    .map_or_else(|| context::build(path, self.prompts).tokens(estimator), |it| it.tokens(estimator));
                (system + tools + size(tokens), UsageSource::Estimate)
            }
        };
        let summary = path.compaction().map_or(0, |place| size(u64::from(path[place].tokens(estimator))));
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
        };
        Measure { usage, budget, factor, calibration: calibration.ratio(), estimator, compaction }
    }
}

impl Measure {
    /// What the threshold says of this path.
    #[must_use]
    pub fn decision(&self, path: &Path) -> maintenance::Decision {
        maintenance::at_threshold(&Facts {
            context_tokens: self.usage.context_tokens,
            budget: self.budget,
            auto: self.usage.auto_compaction,
            undone: path.has_undo(),
            anything_new: plan::anything_new(path),
        })
    }
}

/// The newest answer whose usage still says how large the context is: it came through, and nothing before it was
/// rewritten since.
fn anchor(path: &Path) -> Option<(usize, u64)> {
    let since = path.last_rewrite().map_or(0, |place| place + 1);
    let measured = |(place, entry): (usize, &Arc<Entry>)| Some((place, entry.outline()?.measured()?.context_tokens()));
    path.iter().enumerate().skip(since).rev().find_map(measured)
}

/// Compares how the context grew from answer to answer by the provider's count and by ours.
fn calibrate(path: &Path, estimator: Estimator) -> Calibration {
    let mut calibration = Calibration::default();
    let mut before: Option<u64> = None;
    let mut estimated = 0;
    for entry in &path[path.len().saturating_sub(CALIBRATION_SPAN)..] {
        if entry.in_context() {
            match entry.tokens_known(estimator) {
                Some(tokens) => estimated += u64::from(tokens),
                // Not counted: nothing can be said about the growth across it.
                None => before = None,
            }
        } else if entry.compaction().is_some() || entry.kind == "context_edit" {
            before = None;
        }
        let Some(usage) = entry.outline().and_then(Outline::measured) else { continue };
        let reported = usage.context_tokens();
        if let Some(before) = before {
            calibration.learn(reported.saturating_sub(before), estimated);
        }
        before = Some(reported);
        estimated = 0;
    }
    calibration
}
