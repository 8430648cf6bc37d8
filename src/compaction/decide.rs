//! The decision at a safe point: whether the context is compacted now, and why.
//!
//! The decision is a function of facts. The session asks it after each append, and `session/usage` shows the same answer
//! as a sentence.

use super::{ahead, gauge::Fullness, images, plan, resting};
use crate::{
    conversation::{
        entry::{Attempts, Entry},
        path::Path,
    },
    models::Budget,
    settings::Switch,
};
use std::{fmt, sync::Arc};

/// The facts of a decision.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// The size of the current context, in tokens.
    pub context_tokens: u64,
    /// The parts of the window.
    pub budget: Budget,
    /// Whether automatic compaction is on.
    pub automatic: Automatic,
    /// Up to this size, in tokens, automatic compaction rests, because a compaction on this path was undone.
    pub rests_to: Option<u64>,
    /// The turn at the leaf.
    pub turn: Turn,
    /// Whether the threshold acts between the calls of a turn.
    pub mid_turn: bool,
    /// An automatic compaction that did not complete.
    pub rest: Option<Rest>,
    /// Maintenances since the last good answer or message of the user.
    pub maintenances: u32,
    /// Whether there is anything that a summary could stand for.
    pub matter: Matter,
    /// Whether the context is refused, because it is over a window that somebody stated.
    pub refused: bool,
    /// The images of the context.
    pub images: Images,
    /// Up to this size, in tokens, the context does not wait for the summary that is being made ahead of the threshold.
    pub goes_on_to: Option<u64>,
    /// The size over which the context is compacted because its prompt cache is cold, in tokens. `None` where the cache may be warm,
    /// or the settings compact for no cold cache.
    pub cold_over: Option<u64>,
}

/// The entries that a compaction could summarize.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Matter {
    /// There are some.
    Some,
    /// All entries are pinned, or stand from the first message of the user on that no model has read.
    None,
}

impl Matter {
    /// The matter on a path.
    #[must_use]
    pub fn on(path: &Path) -> Self {
        let kept = &path[path.first_kept()..];
        let pinned = path.pinned();
        let counts = |entry: &Arc<Entry>| entry.is_conversation() && !pinned.contains(&entry.id);
        // Where only results follow the newest answer, no message of the user waits, and a long batch is not searched for one.
        let end = match path.batch().answer() {
            Some(_) => kept.len(),
            None => plan::unread_requests(kept).first().copied().unwrap_or(kept.len()),
        };
        if kept[..end].iter().any(counts) { Self::Some } else { Self::None }
    }
}

/// The images of a context, as base64, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Images {
    /// All of them.
    pub bytes: usize,
    /// Those that are pinned, which stay.
    pub pinned: usize,
}

impl Images {
    /// The images of a path whose context has these bytes of them. Pinned ones are looked up where the budget is not kept.
    #[must_use]
    pub fn of(bytes: usize, path: &Path) -> Self {
        match bytes {
            bytes if bytes > images::BUDGET => Self { bytes, pinned: images::pinned_bytes(path) },
            bytes => Self { bytes, pinned: 0 },
        }
    }

    /// Whether they are over their budget, and some of them can leave.
    #[must_use]
    pub fn are_too_large(self) -> bool {
        self.bytes > images::BUDGET && self.bytes > self.pinned
    }
}

/// Whether automatic compaction is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Automatic {
    /// It is on.
    On,
    /// `compaction.enabled` is false, or `ABRIDGED_DISABLE_AUTOCOMPACT` is set.
    Disabled,
    /// `compaction.strategy` is `off`.
    StrategyOff,
    /// The session is only read.
    ReadOnly,
}

impl From<Switch> for Automatic {
    fn from(switch: Switch) -> Self {
        match switch {
            Switch::On => Self::On,
            Switch::Disabled => Self::Disabled,
            Switch::StrategyOff => Self::StrategyOff,
        }
    }
}

/// The turn at the leaf of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Calls of the newest answer have no result yet.
    CallsOpen,
    /// The newest message is a tool result, and no call is open: the model goes on.
    Between,
    /// The newest message is no result: a request of the user, or an answer without calls.
    Whole,
}

impl Turn {
    /// The turn at the leaf. A message that is no result closes the calls before it.
    #[must_use]
    pub fn at_leaf(path: &Path) -> Self {
        let batch = path.batch();
        match () {
            () if batch.is_open() => Self::CallsOpen,
            () if batch.has_results() => Self::Between,
            () => Self::Whole,
        }
    }
}

/// The time after an automatic compaction that was cancelled, failed or was skipped. Until the next message of the user, or
/// until the context has grown by 5 %, none starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rest {
    /// The size of the context at its end, in tokens.
    pub context_tokens: u64,
    /// The threshold at its end, in tokens. Below a smaller one, of another model, the compaction is another one.
    pub threshold: u64,
}

impl Rest {
    /// Whether a context of this size waits.
    #[must_use]
    pub fn holds(self, context_tokens: u64, threshold: u64) -> bool {
        let growth = (self.context_tokens / 20).max(1);
        threshold >= self.threshold && context_tokens < self.context_tokens.saturating_add(growth)
    }
}

/// Most maintenances in a row without progress.
pub const MOST_MAINTENANCES: u32 = 3;

/// A reason of a decision. `Due` and `Cold` compact, and `Images` removes old images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The context is over the threshold.
    Due,
    /// The context is not over the threshold.
    Below,
    /// The prompt cache of the context is cold, and the context is over the bound for that.
    Cold {
        /// The bound, in tokens.
        over: u64,
    },
    /// Automatic compaction is off.
    Off(Automatic),
    /// A compaction was undone on this path, and the context still has room.
    Undone {
        /// The size up to which automatic compaction rests, in tokens.
        until: u64,
    },
    /// The images of the context are over their budget.
    Images,
    /// System prompt, tools and pins leave no room for a conversation.
    Overhead,
    /// The context is over a threshold that no compaction can meet, and not over the one that stands in.
    Unattainable {
        /// The one that stands in, in tokens.
        instead: u64,
    },
    /// There is nothing to summarize before the messages of the user that no model has read, and half of the reserve is free
    /// for the answer.
    TooShort,
    /// Calls of the newest answer have no result yet.
    CallsOpen,
    /// The turn goes on, and `compaction.midTurn` is false.
    MidTurn,
    /// The last automatic compaction did not complete.
    Resting,
    /// Several maintenances in a row led to no answer.
    NoProgress,
    /// A summary is being made ahead, and the context still has room for requests.
    Ahead {
        /// The size at which the context waits for it, in tokens.
        until: u64,
    },
}

/// A decision: its reason, and the facts that the reason names.
#[derive(Debug, Clone, Copy)]
pub struct Decision {
    /// The reason.
    pub why: Why,
    facts: Facts,
}

/// Decides whether the context is compacted now.
#[must_use]
pub fn at_threshold(facts: Facts) -> Decision {
    let Facts { context_tokens, budget, automatic, turn, .. } = facts;
    let too_large = facts.images.are_too_large();
    let attainable = budget.attainable().map(|budget| budget.threshold);
    let rests_to = facts.rests_to.filter(|until| context_tokens <= *until);
    let why = match () {
        () if context_tokens <= budget.threshold && !too_large => match cold_over(&facts) {
            Some(over) => Why::Cold { over },
            None => Why::Below,
        },
        () if automatic != Automatic::On => Why::Off(automatic),
        () if too_large && turn == Turn::CallsOpen => Why::CallsOpen,
        () if too_large => Why::Images,
        () if rests_to.is_some() => Why::Undone { until: rests_to.unwrap_or_default() },
        () if attainable.is_none() => Why::Overhead,
        () if attainable.is_some_and(|instead| context_tokens <= instead) => {
            Why::Unattainable { instead: attainable.unwrap_or_default() }
        }
        () if facts.matter == Matter::None && context_tokens <= resting::rests_to(&budget) => Why::TooShort,
        () if turn == Turn::CallsOpen => Why::CallsOpen,
        // No answer comes from a context that is refused.
        () if turn == Turn::Between && !facts.mid_turn && !facts.refused => Why::MidTurn,
        () if facts.rest.is_some_and(|rest| rest.holds(context_tokens, budget.threshold)) => Why::Resting,
        () if facts.maintenances >= MOST_MAINTENANCES => Why::NoProgress,
        () => match facts.goes_on_to.filter(|until| context_tokens <= *until) {
            Some(until) => Why::Ahead { until },
            None => Why::Due,
        },
    };
    Decision { why, facts }
}

/// The bound for a cold cache, where a context below its threshold is over it. Such a compaction is only advisable: nothing starts
/// for it inside of a turn, after an undo, or where an automatic compaction did not complete.
fn cold_over(facts: &Facts) -> Option<u64> {
    let over = facts.cold_over.filter(|over| facts.context_tokens > *over)?;
    let rests = facts.rests_to.is_some_and(|until| facts.context_tokens <= until)
        || facts.rest.is_some_and(|rest| rest.holds(facts.context_tokens, facts.budget.threshold))
        || facts.maintenances >= MOST_MAINTENANCES;
    let may = facts.automatic == Automatic::On && facts.turn == Turn::Whole && facts.matter == Matter::Some;
    (may && !rests).then_some(over)
}

impl Decision {
    /// Whether it is about the bytes of images, and not about tokens.
    #[must_use]
    pub fn is_about_images(&self) -> bool {
        self.facts.images.are_too_large() && self.facts.context_tokens <= self.facts.budget.threshold
    }

    /// Whether a summary begins ahead of the threshold. `growth`: tokens by which the context is expected to grow while the
    /// summary is made.
    #[must_use]
    pub fn begins_ahead(&self, growth: u64) -> bool {
        let waits = matches!(
            self.why,
            Why::Below | Why::Unattainable { .. } | Why::Undone { .. } | Why::CallsOpen | Why::MidTurn
        );
        let Some(budget) = self.facts.budget.attainable() else { return false };
        // A compaction is due where the rest after an undo ends.
        let budget = Budget { threshold: self.facts.rests_to.unwrap_or(budget.threshold), ..budget };
        waits && self.facts.automatic == Automatic::On && self.facts.context_tokens > ahead::begins_at(&budget, growth)
    }

    /// Whether the context is compacted now.
    #[must_use]
    pub fn is_due(&self) -> bool {
        matches!(self.why, Why::Due | Why::Images | Why::Cold { .. })
    }

    /// Whether the context is compacted before the next request, since less than half of the reserve is free for the answer, or
    /// the request would pay for all of it.
    #[must_use]
    pub fn is_due_before_a_request(&self) -> bool {
        let pays = matches!(self.why, Why::Cold { .. });
        self.is_due() && (pays || self.facts.context_tokens > resting::rests_to(&self.facts.budget))
    }
}

/// The reason as a sentence for a person.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { context_tokens: tokens, budget, .. } = &self.facts;
        let threshold = budget.threshold;
        if self.why == Why::Below {
            let room = threshold.saturating_sub(*tokens);
            return write!(
                f,
                "The context has {tokens} tokens, {room} below the threshold of {threshold}; nothing to do."
            );
        }
        if let Why::Cold { over } = self.why {
            return write!(
                f,
                "The context has {tokens} tokens, over the {over} above which a session with a cold prompt cache is compacted; a \
                 compaction is due (compaction.coldResume)."
            );
        }
        match self.facts.images {
            images if images.are_too_large() => write!(
                f,
                "The images of the context have {} bytes, over the budget of {}",
                images.bytes,
                images::BUDGET
            )?,
            _ => write!(f, "The context has {tokens} tokens, over the threshold of {threshold}")?,
        }
        match self.why {
            Why::Due | Why::Below | Why::Cold { .. } => write!(f, "; a compaction is due."),
            Why::Images => write!(f, "; old ones are due to leave."),
            Why::Off(Automatic::StrategyOff) => write!(
                f,
                ", but automatic compaction is off: compaction.strategy is \"off\"; session/compact works all the same."
            ),
            Why::Off(Automatic::ReadOnly) => {
                write!(f, ", but the session was loaded with readOnly: true; load it without to compact it.")
            }
            Why::Off(_) => write!(
                f,
                ", but automatic compaction is off: compaction.enabled is false; session/compact works all the same."
            ),
            Why::Undone { until } => write!(
                f,
                ", but a compaction was undone here; automatic compaction rests until the context has more than {until} \
                 tokens, or until a manual session/compact."
            ),
            Why::Overhead if budget.overhead() >= threshold => write!(
                f,
                ", but system prompt and tools alone take {}; no compaction can help. Use a larger model or fewer tools.",
                budget.overhead()
            ),
            Why::Overhead => write!(
                f,
                ", but system prompt, tools and pins take {} of a window of {}, which leaves no room for a conversation; \
                 no compaction is due, because none can help. Use a larger model or fewer tools.",
                budget.overhead() + budget.pins,
                budget.window
            ),
            Why::Unattainable { instead } => write!(
                f,
                ", which no compaction can meet: system prompt, tools, pins, a summary and the newest message take more. \
                 A compaction is due over {instead}; raise compaction.thresholdTokens or compaction.thresholdPercent."
            ),
            Why::TooShort => write!(
                f,
                ", but nothing before the newest messages, which no model has read, can be summarized; a compaction is due \
                 after their answer, or over {} tokens.",
                resting::rests_to(budget)
            ),
            Why::CallsOpen => {
                write!(f, ", but tool calls have no result yet; a compaction is due when the last result is appended.")
            }
            Why::MidTurn => write!(
                f,
                ", but the turn goes on and compaction.midTurn is false; a compaction is due after an answer without calls."
            ),
            Why::NoProgress => write!(
                f,
                ", but {} maintenances in a row led to no answer; the next one is due after an answer or a message of the \
                 user.",
                self.facts.maintenances
            ),
            Why::Ahead { until } => write!(
                f,
                ", and its summary is being made; requests go on up to {until} tokens, where they wait for it."
            ),
            Why::Resting => write!(
                f,
                ", but the last automatic compaction did not complete; the next one is due after a message of the user, \
                 or when the context has grown by 5 %."
            ),
        }
    }
}

impl Fullness {
    /// The facts of a decision for this path. `cold_over`: the size over which it is compacted because its cache is cold.
    #[must_use]
    pub fn facts(&self, path: &Path, rest: Option<Rest>, cold_over: Option<u64>) -> Facts {
        // Below the threshold nothing else decides, and the path is not searched.
        let is_cold = cold_over.is_some_and(|over| self.evident_tokens > over);
        let over = self.evident_tokens > self.budget.threshold || self.image_bytes > images::BUDGET || is_cold;
        let turn = if over { Turn::at_leaf(path) } else { Turn::Whole };
        // Open calls decide before them, and a long batch has many results to search.
        let maintenances = if over && turn != Turn::CallsOpen { Attempts::of(path).all() } else { 0 };
        Facts {
            context_tokens: self.evident_tokens,
            budget: self.with_reported_overhead(),
            automatic: self.compaction.switch().into(),
            rests_to: path.has_undo().then(|| resting::rests_to(&self.with_reported_overhead())),
            turn,
            mid_turn: self.compaction.mid_turn,
            rest,
            matter: if over { Matter::on(path) } else { Matter::Some },
            images: Images::of(self.image_bytes, path),
            refused: self.is_over_its_window(),
            maintenances,
            goes_on_to: None,
            cold_over,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compaction::lines, settings::CompactionSettings};
    use serde_json::{Value, json};

    fn facts(context_tokens: u64) -> Facts {
        Facts {
            context_tokens,
            budget: Budget::of(200_000, &CompactionSettings::default(), 0, 0),
            automatic: Automatic::On,
            rests_to: None,
            turn: Turn::Whole,
            mid_turn: true,
            rest: None,
            matter: Matter::Some,
            refused: false,
            images: Images::default(),
            maintenances: 0,
            goes_on_to: None,
            cold_over: None,
        }
    }

    #[test]
    fn each_reason_has_its_facts_and_its_sentence() {
        let large = Budget::of(200_000, &CompactionSettings::default(), 198_000, 0);
        let thresholds = CompactionSettings { threshold_tokens: 1, ..CompactionSettings::default() };
        let one = Budget::of(200_000, &thresholds, 0, 0);
        let tiny = Budget::of(900, &CompactionSettings::default(), 300, 0);
        let heavy = Images { bytes: 15_000_001, pinned: 0 };
        let over = facts(170_001);
        for (facts, why, says) in [
            (facts(170_000), Why::Below, "0 below the threshold of 170000; nothing to do."),
            (over, Why::Due, "The context has 170001 tokens, over the threshold of 170000; a compaction is due."),
            (
                Facts { automatic: Automatic::Disabled, ..over },
                Why::Off(Automatic::Disabled),
                "compaction.enabled is false",
            ),
            (
                Facts { automatic: Automatic::StrategyOff, ..over },
                Why::Off(Automatic::StrategyOff),
                "compaction.strategy is \"off\"",
            ),
            (Facts { automatic: Automatic::ReadOnly, ..over }, Why::Off(Automatic::ReadOnly), "readOnly: true"),
            (
                Facts { rests_to: Some(170_001), ..over },
                Why::Undone { until: 170_001 },
                "rests until the context has more",
            ),
            (Facts { rests_to: Some(170_000), ..over }, Why::Due, "is due"),
            (Facts { rests_to: Some(191_808), ..facts(170_000) }, Why::Below, "nothing to do"),
            (
                Facts { budget: large, ..facts(199_000) },
                Why::Overhead,
                "system prompt and tools alone take 198000; no compaction can help",
            ),
            (
                Facts { budget: tiny, ..facts(900) },
                Why::Overhead,
                "system prompt, tools and pins take 300 of a window of 900, which leaves no room for a conversation",
            ),
            (Facts { budget: one, ..facts(170_000) }, Why::Unattainable { instead: 170_000 }, "due over 170000"),
            (Facts { budget: one, ..over }, Why::Due, "over the threshold of 1; a compaction is due"),
            (Facts { matter: Matter::None, ..over }, Why::TooShort, "no model has read, can be summarized"),
            (
                Facts { matter: Matter::None, ..facts(191_808) },
                Why::TooShort,
                "a compaction is due after their answer, or over 191808 tokens",
            ),
            (Facts { matter: Matter::None, ..facts(191_809) }, Why::Due, "is due"),
            (Facts { images: heavy, ..facts(500) }, Why::Images, "have 15000001 bytes, over the budget of 15000000"),
            (Facts { images: heavy, rests_to: Some(191_808), mid_turn: false, ..over }, Why::Images, "due to leave"),
            (Facts { images: heavy, turn: Turn::CallsOpen, ..facts(500) }, Why::CallsOpen, "tool calls have no result"),
            (
                Facts { images: heavy, automatic: Automatic::Disabled, ..facts(500) },
                Why::Off(Automatic::Disabled),
                "over the budget of 15000000, but automatic compaction is off",
            ),
            (Facts { images: Images { pinned: 15_000_001, ..heavy }, ..facts(500) }, Why::Below, "nothing to do"),
            (Facts { images: Images { bytes: 15_000_000, pinned: 0 }, ..facts(500) }, Why::Below, "nothing to do"),
            (Facts { maintenances: 3, ..over }, Why::NoProgress, "3 maintenances in a row led to no answer"),
            (Facts { maintenances: 2, ..over }, Why::Due, "is due"),
            (
                Facts { goes_on_to: Some(170_001), ..over },
                Why::Ahead { until: 170_001 },
                "its summary is being made; requests go on up to 170001 tokens",
            ),
            (Facts { goes_on_to: Some(170_000), ..over }, Why::Due, "is due"),
            (Facts { turn: Turn::CallsOpen, ..over }, Why::CallsOpen, "tool calls have no result yet"),
            (Facts { turn: Turn::Between, mid_turn: false, ..over }, Why::MidTurn, "compaction.midTurn is false"),
            (Facts { turn: Turn::Between, mid_turn: false, refused: true, ..over }, Why::Due, "is due"),
            (Facts { turn: Turn::Between, ..over }, Why::Due, "is due"),
            (Facts { turn: Turn::Whole, mid_turn: false, ..over }, Why::Due, "is due"),
            (
                Facts { rest: Some(Rest { context_tokens: 165_000, threshold: 170_000 }), ..over },
                Why::Resting,
                "did not complete",
            ),
            (
                Facts { rest: Some(Rest { context_tokens: 161_907, threshold: 170_000 }), ..over },
                Why::Resting,
                "did not complete",
            ),
            (Facts { rest: Some(Rest { context_tokens: 161_906, threshold: 170_000 }), ..over }, Why::Due, "is due"),
            (Facts { rest: Some(Rest { context_tokens: 165_000, threshold: 170_001 }), ..over }, Why::Due, "is due"),
        ] {
            let decision = at_threshold(facts);
            assert_eq!(decision.why, why);
            assert!(decision.to_string().contains(says), "{decision}");
            assert_eq!(decision.is_due(), matches!(why, Why::Due | Why::Images));
        }
        let with_images = |facts| at_threshold(Facts { images: heavy, ..facts });
        assert!(with_images(facts(500)).is_about_images());
        assert!(with_images(facts(170_000)).is_about_images());
        assert!(!with_images(over).is_about_images(), "it is about tokens, too");
        assert!(!at_threshold(facts(500)).is_about_images());
    }

    #[test]
    fn a_cold_context_below_its_threshold_is_compacted_where_nothing_speaks_against_it() {
        let cold = Facts { cold_over: Some(80_000), ..facts(80_001) };
        let decision = at_threshold(cold);
        assert_eq!(decision.why, Why::Cold { over: 80_000 });
        assert!(decision.is_due() && decision.is_due_before_a_request() && !decision.is_about_images());
        let says = "has 80001 tokens, over the 80000 above which a session with a cold prompt cache is compacted; a compaction is due";
        assert!(decision.to_string().contains(says), "{decision}");
        let rest = Some(Rest { context_tokens: 80_000, threshold: 170_000 });
        for facts in [
            Facts { context_tokens: 80_000, ..cold },
            Facts { cold_over: None, ..cold },
            Facts { automatic: Automatic::Disabled, ..cold },
            Facts { automatic: Automatic::ReadOnly, ..cold },
            Facts { turn: Turn::Between, ..cold },
            Facts { turn: Turn::CallsOpen, ..cold },
            Facts { matter: Matter::None, ..cold },
            Facts { rests_to: Some(191_808), ..cold },
            Facts { rest, ..cold },
            Facts { maintenances: MOST_MAINTENANCES, ..cold },
        ] {
            assert_eq!(at_threshold(facts).why, Why::Below, "{facts:?}");
        }
        let necessary = at_threshold(Facts { cold_over: None, ..facts(170_001) });
        assert_eq!(necessary.why, Why::Due, "the threshold does not ask for a cold cache");
        assert_eq!(at_threshold(Facts { cold_over: Some(1), ..facts(170_001) }).why, Why::Due);
    }

    #[test]
    fn of_several_reasons_the_first_one_is_named() {
        let mut facts = Facts {
            budget: Budget::of(200_000, &CompactionSettings { threshold_tokens: 1, ..Default::default() }, 199_500, 0),
            automatic: Automatic::Disabled,
            rests_to: Some(200_000),
            turn: Turn::CallsOpen,
            mid_turn: false,
            rest: Some(Rest { context_tokens: 199_900, threshold: 1 }),
            matter: Matter::None,
            images: Images { bytes: images::BUDGET + 1, pinned: 0 },
            maintenances: MOST_MAINTENANCES,
            ..facts(191_000)
        };
        let mut named = Vec::new();
        let changes: [fn(&mut Facts); 10] = [
            |facts| facts.automatic = Automatic::On,
            |facts| facts.turn = Turn::Between,
            |facts| facts.images = Images::default(),
            |facts| facts.rests_to = None,
            |facts| facts.budget.system = 0,
            |facts| facts.turn = Turn::CallsOpen,
            |facts| facts.matter = Matter::Some,
            |facts| facts.turn = Turn::Between,
            |facts| facts.mid_turn = true,
            |facts| facts.rest = None,
        ];
        for change in changes {
            named.push(at_threshold(facts).why);
            change(&mut facts);
        }
        named.push(at_threshold(facts).why);
        let off = Why::Off(Automatic::Disabled);
        use Why::{CallsOpen, MidTurn, NoProgress, Overhead, Resting, TooShort, Undone};
        assert_eq!(
            named,
            [
                off,
                CallsOpen,
                Why::Images,
                Undone { until: 200_000 },
                Overhead,
                TooShort,
                TooShort,
                CallsOpen,
                MidTurn,
                Resting,
                NoProgress
            ]
        );
    }

    #[test]
    fn a_rest_ends_with_growth_or_a_smaller_threshold() {
        let rest = Rest { context_tokens: 10, threshold: 5 };
        for (context_tokens, threshold, holds) in [(10, 5, true), (11, 5, false), (10, 6, true), (10, 4, false)] {
            assert_eq!(rest.holds(context_tokens, threshold), holds, "{context_tokens} over {threshold}");
        }
    }

    fn path(messages: &[Value]) -> Path {
        let line = |message: &Value| json!({"type": "message", "message": message});
        lines::path(&messages.iter().map(line).collect::<Vec<_>>())
    }

    fn message(role: &str) -> Value {
        json!({"type": "message", "message": {"role": role, "content": [{"type": "text", "text": "x"}]}})
    }

    fn ours(name: &str, data: Value) -> Value {
        json!({"type": "custom", "customType": format!("abridged.{name}"), "data": data})
    }

    fn compaction(first_kept: &str) -> Value {
        json!({"type": "compaction", "summary": "s", "firstKeptEntryId": first_kept, "tokensBefore": 1,
            "preserveData": {"abridged": {}}})
    }

    #[test]
    fn a_summary_could_stand_for_entries_before_the_request_that_are_kept_and_not_pinned() {
        let (user, answer) = (message("user"), message("assistant"));
        let mut failed = answer.clone();
        failed["message"]["stopReason"] = "error".into();
        let pin = |entry: &str| ours("pin", json!({"entryId": entry}));
        let label = json!({"type": "label", "targetId": "e0", "label": "here"});
        for (lines, matter) in [
            (vec![user.clone()], Matter::None),
            (vec![user.clone(), answer.clone()], Matter::Some),
            (vec![user.clone(), user.clone()], Matter::None),
            (vec![answer.clone(), user.clone(), user.clone()], Matter::Some),
            (vec![user.clone(), failed, user.clone()], Matter::None),
            (vec![label, user.clone()], Matter::None),
            (vec![answer.clone(), pin("e0"), user.clone()], Matter::None),
            (vec![answer.clone(), pin("e2"), user.clone()], Matter::Some),
            (vec![user.clone(), answer.clone(), compaction("e2"), user.clone()], Matter::None),
            (vec![user.clone(), answer.clone(), user.clone(), compaction("e1"), user.clone()], Matter::Some),
        ] {
            assert_eq!(Matter::on(&lines::path(&lines)), matter, "{lines:?}");
        }
    }

    #[test]
    fn the_facts_of_a_path_are_searched_where_it_is_over_its_threshold() {
        let pinned = json!({"type": "message", "message": {"role": "user", "content": [
            {"type": "image", "mimeType": "image/png", "data": "A".repeat(40)}]}});
        let undo = ours("undo", json!({"compactionEntryId": "e1"}));
        let attempt = ours("attempt", json!({"reason": "overflow"}));
        let path = lines::path(&[pinned, compaction("e0"), undo, ours("pin", json!({"entryId": "e0"})), attempt]);
        let compaction = CompactionSettings::default();
        let facts = |context_tokens, image_bytes| {
            let fullness = Fullness {
                context_tokens,
                evident_tokens: context_tokens,
                source: crate::compaction::gauge::Source::Estimate,
                is_anchored: false,
                messages: context_tokens,
                summary_tokens: 0,
                image_bytes,
                budget: Budget::of(200_000, &compaction, 0, 0),
                window_source: crate::models::SaidBy::Setting,
                scale: crate::conversation::tokens::Scale::new(crate::conversation::tokens::Estimator::Chars, 1.0),
                calibration: None,
                compaction: compaction.clone(),
            };
            let facts = fullness.facts(&path, None, None);
            (facts.rests_to, facts.maintenances, facts.matter, facts.images.pinned)
        };
        let rests_to = Some(191_808);
        assert_eq!(facts(170_001, 0), (rests_to, 1, Matter::None, 0));
        assert_eq!(facts(1, images::BUDGET + 1), (rests_to, 1, Matter::None, 40));
        assert_eq!(facts(170_000, images::BUDGET), (rests_to, 0, Matter::Some, 0), "nothing else decides");
    }

    #[test]
    fn the_turn_at_the_leaf_is_read_from_calls_and_results() {
        let user = json!({"role": "user", "content": "go", "timestamp": 1});
        let answer = |calls: &[&str], stop: &str| {
            let calls: Vec<Value> =
                calls.iter().map(|id| json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {}})).collect();
            json!({"role": "assistant", "content": calls, "stopReason": stop, "timestamp": 1, "api": "openai-completions",
                "provider": "p", "model": "m",
                "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2}})
        };
        let result = |id: &str| {
            json!({"role": "toolResult", "toolCallId": id, "toolName": "bash", "isError": false, "timestamp": 1,
                "content": [{"type": "text", "text": "x"}]})
        };
        for (messages, turn) in [
            (vec![], Turn::Whole),
            (vec![user.clone()], Turn::Whole),
            (vec![user.clone(), answer(&[], "stop")], Turn::Whole),
            (vec![user.clone(), answer(&["a", "b"], "toolUse")], Turn::CallsOpen),
            (vec![user.clone(), answer(&["a", "b"], "toolUse"), result("b")], Turn::CallsOpen),
            (vec![user.clone(), answer(&["a", "b"], "toolUse"), result("b"), result("a")], Turn::Between),
            (vec![user.clone(), answer(&["a"], "toolUse"), user.clone()], Turn::Whole),
            (vec![user.clone(), answer(&["a"], "error")], Turn::Whole),
            (vec![result("never called")], Turn::Between),
        ] {
            assert_eq!(Turn::at_leaf(&path(&messages)), turn, "{messages:?}");
        }
    }
}
