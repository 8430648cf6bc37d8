//! Models by name, and how large their windows are.

pub use crate::ids::ModelRef;
pub mod caches;
pub mod candidates;
pub mod catalog;
pub mod dialects;
pub mod known;
pub mod learned;
pub mod patterns;
pub mod prices;
pub mod windows;

use crate::settings::{CompactionSettings, Settings};
use learned::{Reach, Taught};

/// The window of a model nobody knows, in tokens: the smallest among current models that agents use.
const DEFAULT_WINDOW: u64 = 128_000;

/// The window of a model and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// In tokens.
    pub tokens: u64,
    /// The source of the number.
    pub source: SaidBy,
}

/// The output limit of a model and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// In tokens.
    pub tokens: u64,
    /// The source of the number.
    pub source: SaidBy,
}

/// The source of a model's limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaidBy {
    /// The settings.
    Setting,
    /// The provider itself, when it was asked for more than it takes.
    Learned,
    /// The catalog of known models.
    Catalog,
    /// The default.
    Default,
}

impl SaidBy {
    /// Its name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Setting => "setting",
            Self::Learned => "learned",
            Self::Catalog => "catalog",
            Self::Default => "default",
        }
    }
}

/// The window that the client states for a model, or else the settings, in tokens.
#[must_use]
pub fn named_window(settings: &Settings, model: Option<&ModelRef>) -> Option<u64> {
    settings.stated.window(model).or_else(|| model.and_then(|model| settings.model(model))?.context_window)
}

/// Whether the settings allow a provider's own compaction for a model.
#[must_use]
pub fn may_send_native(settings: &Settings, model: &ModelRef) -> bool {
    let said = settings.model(model).and_then(|model| model.native_compaction);
    settings.compaction_for(Some(model)).remote_enabled && said != Some(false)
}

/// The window of a model: stated by the client or configured, else learned from its provider, else known, else the default.
/// A learned window limits a larger named one where it is certain enough: a server may serve a smaller window than it was
/// set up for. A window that is only seen limits no named one.
#[must_use]
pub fn window(settings: &Settings, learned: impl Into<Taught>, model: Option<&ModelRef>) -> Window {
    let Taught { stated: learned, seen } = learned.into();
    let named = named_window(settings, model);
    let known = || model.and_then(|model| known::known(&model.provider, &model.id));
    let (tokens, source) = match (named, learned) {
        (Some(named), Some(learned)) if learned.tokens < named && learned.reach == Reach::Everywhere => {
            (learned.tokens, SaidBy::Learned)
        }
        (Some(named), _) => (named, SaidBy::Setting),
        (None, Some(learned)) => (learned.tokens, SaidBy::Learned),
        (None, None) => match known() {
            Some(known) => (known.window, SaidBy::Catalog),
            None => (DEFAULT_WINDOW, SaidBy::Default),
        },
    };
    match seen {
        Some(seen) if source != SaidBy::Setting && seen < tokens => Window { tokens: seen, source: SaidBy::Learned },
        _ => Window { tokens, source },
    }
}

/// The window that the client, a setting or the catalog names. A learned window and the default are no names.
#[must_use]
pub fn known_window(settings: &Settings, model: Option<&ModelRef>) -> Option<u64> {
    let known = || model.and_then(|model| known::known(&model.provider, &model.id));
    named_window(settings, model).or_else(|| known().map(|known| known.window))
}

/// The most a model answers: stated by the client or configured, else known; nothing where nobody said.
#[must_use]
pub fn output_limit(settings: &Settings, model: Option<&ModelRef>) -> Option<Limit> {
    let stated = settings.stated.output(model);
    let set = stated.or_else(|| settings.model(model?)?.max_output_tokens);
    let known = || model.and_then(|model| known::known(&model.provider, &model.id))?.output;
    let set = set.map(|tokens| Limit { tokens, source: SaidBy::Setting });
    set.or_else(|| known().map(|tokens| Limit { tokens, source: SaidBy::Catalog }))
}

/// Whether a model thinks before it answers: configured, else known; nothing where nobody said.
#[must_use]
pub fn reasoning(settings: &Settings, model: &ModelRef) -> Option<bool> {
    let set = settings.model(model).and_then(|model| model.reasoning);
    set.or_else(|| known::known(&model.provider, &model.id).map(|model| model.reasoning))
}

/// Room of the smallest compacted context beside system prompt, tools and pins, in tokens: the frames, a ledger of 500 and
/// the newest message of the user, clipped, times the safe factor of estimates.
const LEAST_ROOM: u64 = 800;

/// The parts of a window, in tokens. `of` keeps them in proportion.
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
    /// The pins, which are in every context.
    pub pins: u64,
}

impl Budget {
    /// Divides a window.
    #[must_use]
    pub fn of(window: u64, settings: &CompactionSettings, system: u64, tools: u64) -> Self {
        let overhead = system + tools;
        let window = window.max(2);
        let reserve = settings.reserve(window);
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

    /// The parts that no compaction makes smaller: system prompt and tools.
    #[must_use]
    pub fn overhead(&self) -> u64 {
        self.system + self.tools
    }

    /// The budget with a threshold that a compaction can meet: its own, else the one that no setting names, else the largest
    /// one. None where system prompt, tools and pins leave no room for a conversation, so that no compaction can help.
    #[must_use]
    pub fn attainable(self) -> Option<Self> {
        let fifteen_percent = self.window * 15 / 100;
        let thresholds =
            [self.threshold, self.window - self.reserve.max(fifteen_percent), self.window - fifteen_percent];
        let least = self.overhead().saturating_add(self.pins).saturating_add(LEAST_ROOM);
        let threshold = thresholds.into_iter().find(|threshold| least <= *threshold)?;
        Some(Self { threshold, ..self })
    }

    /// The budget with this threshold, in tokens, if it is lower and leaves room for a conversation.
    #[must_use]
    pub fn with_threshold_at(self, tokens: u64) -> Self {
        let least = self.overhead().saturating_add(self.pins).saturating_add(LEAST_ROOM);
        Self { threshold: self.threshold.min(tokens.max(least)), ..self }
    }

    /// The largest context that leaves room for an answer.
    #[must_use]
    pub fn usable(&self) -> u64 {
        self.window - self.reserve.min(self.window * 15 / 100)
    }

    /// The target of a compaction: 80 % of the threshold, so that the next one is not due at once.
    #[must_use]
    pub fn target(&self) -> u64 {
        self.threshold * 4 / 5
    }

    /// The room for summary and kept messages within the target.
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
    use super::{learned::Stated, *};

    fn threshold(window: u64, overhead: u64) -> u64 {
        Budget::of(window, &CompactionSettings::default(), overhead, 0).threshold
    }

    #[test]
    fn thresholds_are_those_of_the_peers_where_theirs_work() {
        assert_eq!(threshold(200_000, 0), 170_000);
        assert_eq!(threshold(128_000, 0), 108_800);
        assert_eq!(threshold(64_000, 0), 48_000, "a quarter of a small window is the reserve");
    }

    #[test]
    fn a_reserve_that_nobody_set_is_a_quarter_of_a_small_window_and_one_that_was_set_holds() {
        for (set, window, reserve) in [
            (None, 1_000_000, 16_384),
            (None, 65_536, 16_384),
            (None, 32_000, 8_000),
            (None, 8_192, 2_048),
            (None, 2, 0),
            (Some(16_384), 32_000, 16_000),
            (Some(16_384), 40_000, 16_384),
            (Some(6_000), 32_000, 6_000),
            (Some(0), 32_000, 0),
        ] {
            let settings = CompactionSettings { reserve_tokens: set, ..Default::default() };
            assert_eq!(Budget::of(window, &settings, 0, 0).reserve, reserve, "{set:?} of {window}");
        }
    }

    #[test]
    fn a_small_window_keeps_a_threshold_that_can_be_met() {
        assert_eq!(threshold(16_384, 0), 12_288, "the peers come to 0 here and compact for ever");
        assert_eq!(threshold(16_384, 13_000), 13_927, "the reserve gives way");
        assert_eq!(Budget::of(16_384, &CompactionSettings::default(), 10_000, 5_000).attainable(), None);
    }

    #[test]
    fn a_threshold_that_cannot_be_met_gives_way_to_one_that_can() {
        let attainable = |window, threshold_tokens, overhead, pins| {
            let settings = CompactionSettings { threshold_tokens, ..Default::default() };
            let budget = Budget::of(window, &settings, overhead, 0).with_pins(pins);
            budget.attainable().map(|budget| budget.threshold)
        };
        assert_eq!(attainable(200_000, 50_000, 10_000, 0), Some(50_000));
        assert_eq!(attainable(200_000, 1, 0, 0), Some(170_000));
        assert_eq!(attainable(200_000, 10_799, 10_000, 0), Some(170_000));
        assert_eq!(attainable(200_000, 10_800, 10_000, 0), Some(10_800));
        assert_eq!(attainable(200_000, 10_800, 10_000, 1), Some(170_000), "pins stay, too");
        assert_eq!(attainable(4_000, -1, 2_300, 0), Some(3_400), "the reserve gives way");
        assert_eq!(attainable(200_000, -1, 190_000, 0), None, "95 % of the window");
        assert_eq!(attainable(100, -1, 0, 0), None);
        assert_eq!(attainable(2_000_000, -1, 1_690_000, 0), Some(1_700_000));
    }

    #[test]
    fn the_parts_of_a_budget_are_in_proportion() {
        let budget = |window, reserve, system, pins| {
            let settings = CompactionSettings { reserve_tokens: Some(reserve), ..Default::default() };
            Budget::of(window, &settings, system, 0).with_pins(pins)
        };
        let parts = |budget: Budget| (budget.target(), budget.available(), budget.summary_cap());
        assert_eq!(parts(budget(100_000, 16_000, 10_000, 7_000)), (67_200, 50_200, 12_800), "the reserve bounds it");
        assert_eq!(parts(budget(100_000, 50_000, 10_000, 0)), (40_000, 30_000, 10_000), "the room bounds it");
        let usable = |reserve| budget(100_000, reserve, 0, 0).usable();
        assert_eq!((usable(10_000), usable(16_000)), (90_000, 85_000));
        // A threshold at the overhead itself gives way, too.
        assert_eq!((threshold(16_384, 12_287), threshold(16_384, 12_288)), (12_288, 13_927));
        let meets = |overhead| {
            let settings =
                CompactionSettings { reserve_tokens: Some(30_000), threshold_tokens: 1, ..Default::default() };
            Budget::of(100_000, &settings, overhead, 0).attainable().map(|budget| budget.threshold)
        };
        assert_eq!(meets(69_200), Some(70_000), "the reserve holds as long as it can");
        assert_eq!(meets(69_201), Some(85_000));
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
        let least = |window, threshold_tokens, threshold_percent| {
            let settings = CompactionSettings { threshold_tokens, threshold_percent, ..Default::default() };
            Budget::of(window, &settings, 0, 0).threshold
        };
        assert_eq!((least(0, 5, -1), least(1, 5, -1), least(2, -1, 1)), (1, 1, 1), "no threshold is 0");
    }

    #[test]
    fn who_is_nearer_to_a_model_says_what_it_takes() {
        let json = serde_json::json!({"models": [
            {"provider": "anthropic", "id": "claude-opus-4-5", "contextWindow": 100_000, "maxOutputTokens": 9,
             "reasoning": false},
            {"provider": "anthropic", "id": "claude-opus-4-6"},
        ]});
        let settings: Settings = serde_json::from_value(json).expect("right");
        let of = |name: &str, learned| {
            let window = window(&settings, learned, ModelRef::parse(name).as_ref());
            (window.tokens, window.source.name())
        };
        assert_eq!(of("anthropic/claude-opus-4-5", None), (100_000, "setting"));
        assert_eq!(of("anthropic/claude-opus-4-5", Some(200_000)), (100_000, "setting"));
        assert_eq!(of("anthropic/claude-opus-4-5", Some(8_192)), (8_192, "learned"));
        assert_eq!(of("anthropic/claude-opus-4-6", None), (1_000_000, "catalog"), "configured, but not its window");
        assert_eq!(of("anthropic/claude-opus-4-6", Some(200_000)), (200_000, "learned"));
        assert_eq!(of("anthropic/claude-haiku-4-5", None), (200_000, "catalog"));
        assert_eq!(of("anthropic/claude-haiku-4-5", Some(300_000)), (300_000, "learned"));
        assert_eq!(of("p/m", None), (128_000, "default"));
        assert_eq!(of("p/m", Some(4_096)), (4_096, "learned"));
        assert_eq!(of("", None), (128_000, "default"), "no model at all");
        let single = |name: &str| {
            let stated = Some(Stated { tokens: 8_192, reach: Reach::WhereNoneIsNamed });
            let window = window(&settings, Taught { stated, seen: None }, ModelRef::parse(name).as_ref());
            (window.tokens, window.source.name())
        };
        assert_eq!(single("anthropic/claude-opus-4-5"), (100_000, "setting"), "one refusal may be wrong");
        assert_eq!(single("anthropic/claude-opus-4-6"), (8_192, "learned"), "nobody names its window");
        let taught = Taught { seen: Some(4_096), ..Taught::from(Some(4_000)) };
        let stated = window(&settings, taught, ModelRef::parse("p/m").as_ref());
        assert_eq!(stated.tokens, 4_000, "the smaller one");
        let seen = |name: &str| {
            let taught = Taught { stated: None, seen: Some(4_096) };
            let window = window(&settings, taught, ModelRef::parse(name).as_ref());
            (window.tokens, window.source.name())
        };
        assert_eq!(seen("anthropic/claude-opus-4-5"), (100_000, "setting"));
        assert_eq!(seen("anthropic/claude-haiku-4-5"), (4_096, "learned"));
        assert_eq!(seen("p/m"), (4_096, "learned"));

        let limits = |name: &str| {
            let model = ModelRef::parse(name).expect("a name");
            let limit = output_limit(&settings, Some(&model)).map(|limit| (limit.tokens, limit.source.name()));
            (limit, reasoning(&settings, &model))
        };
        assert_eq!(limits("anthropic/claude-opus-4-5"), (Some((9, "setting")), Some(false)));
        assert_eq!(limits("anthropic/claude-opus-4-6"), (Some((128_000, "catalog")), Some(true)));
        assert_eq!(limits("openai/gpt-4o"), (Some((16_384, "catalog")), Some(false)));
        assert_eq!(limits("openrouter/x-ai/grok-4.20"), (None, Some(true)));
        assert_eq!(limits("p/m"), (None, None));
    }

    #[test]
    fn a_model_is_named_in_two_ways() {
        let read = |json: &str| serde_json::from_str::<ModelRef>(json).map(|model| model.to_string()).ok();
        assert_eq!(read(r#""openrouter/a/b""#).as_deref(), Some("openrouter/a/b"));
        assert_eq!(read(r#"{"provider":"p","id":"m"}"#).as_deref(), Some("p/m"));
        assert_eq!(read(r#""nothing""#), None);
    }
}
