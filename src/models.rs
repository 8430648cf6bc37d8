//! Models by name, and how large their windows are.

pub use crate::ids::ModelRef;
pub mod catalog;
pub mod known;

use crate::settings::{CompactionSettings, Settings};

/// The window of a model nobody told us about, in tokens: the smallest among current models that agents use.
const DEFAULT_WINDOW: u64 = 128_000;

/// The window of a model and who said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// In tokens.
    pub tokens: u64,
    /// `setting` or `default`.
    pub source: &'static str,
}

/// The window of a model: configured, else the default.
#[must_use]
pub fn window(settings: &Settings, model: Option<&ModelRef>) -> Window {
    match model.and_then(|model| settings.model(model)).and_then(|model| model.context_window) {
        Some(tokens) => Window { tokens, source: "setting" },
        None => Window { tokens: DEFAULT_WINDOW, source: "default" },
    }
}

/// How a window is divided, in tokens. Made by `of`, which keeps the parts in proportion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The whole window.
    pub window: u64,
    /// A context over this is compacted.
    pub threshold: u64,
    /// Room kept for the next answer: at most half of the window.
    pub reserve: u64,
    /// The system prompt. Nothing makes it smaller.
    pub system: u64,
    /// The tools. Nothing makes them smaller.
    pub tools: u64,
    /// What is pinned. It is in every context.
    pub pins: u64,
}

impl Budget {
    /// Divides a window.
    #[must_use]
    pub fn of(window: u64, settings: &CompactionSettings, system: u64, tools: u64) -> Self {
        let overhead = system + tools;
        let window = window.max(2);
        let reserve = settings.reserve_tokens.min(window / 2);
        let fifteen_percent = window * 15 / 100;
        let threshold = match (settings.threshold_tokens, settings.threshold_percent) {
            (tokens @ 1.., _) => tokens.unsigned_abs().clamp(1, window - 1),
            (_, percent @ 1..) => window * percent.unsigned_abs().clamp(1, 99) / 100,
            // The reserve gives way before the threshold falls below what cannot be made smaller.
            _ => match window - reserve.max(fifteen_percent) {
                below if below <= overhead => window - fifteen_percent,
                threshold => threshold,
            },
        };
        Self { window, threshold: threshold.max(1), reserve, system, tools, pins: 0 }
    }

    /// The same with room for what is pinned.
    #[must_use]
    pub fn with_pins(self, pins: u64) -> Self {
        Self { pins, ..self }
    }

    /// What no compaction makes smaller.
    #[must_use]
    pub fn overhead(&self) -> u64 {
        self.system + self.tools
    }

    /// Whether system prompt and tools alone are over the threshold, so that no compaction can help.
    #[must_use]
    pub fn hopeless(&self) -> bool {
        self.overhead() >= self.threshold
    }

    /// What a compaction aims at: 80 % of the threshold, so that the next one is not due at once.
    #[must_use]
    pub fn target(&self) -> u64 {
        self.threshold * 4 / 5
    }

    /// What is left of the target for summary and kept messages.
    #[must_use]
    pub fn available(&self) -> u64 {
        self.target().saturating_sub(self.overhead() + self.pins)
    }

    /// The largest summary.
    #[must_use]
    pub fn summary_cap(&self) -> u64 {
        (self.reserve * 4 / 5).min(self.available() / 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threshold(window: u64, overhead: u64) -> u64 {
        Budget::of(window, &CompactionSettings::default(), overhead, 0).threshold
    }

    #[test]
    fn thresholds_are_those_of_the_peers_where_theirs_work() {
        assert_eq!(threshold(200_000, 0), 170_000);
        assert_eq!(threshold(128_000, 0), 108_800);
        assert_eq!(threshold(64_000, 0), 47_616);
    }

    #[test]
    fn a_small_window_keeps_a_threshold_that_can_be_met() {
        assert_eq!(threshold(16_384, 0), 8_192, "the peers come to 0 here and compact for ever");
        assert_eq!(threshold(16_384, 9_000), 13_927, "the reserve gives way");
        assert!(Budget::of(16_384, &CompactionSettings::default(), 10_000, 5_000).hopeless());
    }

    #[test]
    fn explicit_thresholds_win_and_are_clamped() {
        let with = |tokens, percent| {
            let settings =
                CompactionSettings { threshold_tokens: tokens, threshold_percent: percent, ..Default::default() };
            Budget::of(100_000, &settings, 0, 0).threshold
        };
        assert_eq!(with(5, 50), 5);
        assert_eq!(with(500_000, -1), 99_999);
        assert_eq!(with(-1, 50), 50_000);
        assert_eq!(with(-1, 100), 99_000);
    }

    #[test]
    fn a_model_is_named_in_two_ways() {
        let read = |json: &str| serde_json::from_str::<ModelRef>(json).map(|model| model.to_string()).ok();
        assert_eq!(read(r#""openrouter/a/b""#).as_deref(), Some("openrouter/a/b"));
        assert_eq!(read(r#"{"provider":"p","id":"m"}"#).as_deref(), Some("p/m"));
        assert_eq!(read(r#""nothing""#), None);
    }
}
