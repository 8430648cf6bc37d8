//! Compaction of a session: the decision, the plan and the draft. The result of a function depends on its arguments alone.

pub mod calibrations;
pub mod draft;
pub mod gauge;
pub mod ladder;
pub mod meter;
pub mod plan;
pub mod preview;
pub mod prune;
pub mod request;

use crate::models::Budget;

/// The input of the decision to compact.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// The size of the current context, in tokens.
    pub context_tokens: u64,
    /// The parts of the window.
    pub budget: Budget,
    /// Whether automatic compaction is on.
    pub auto: bool,
    /// Whether a compaction on this path was undone. Automatic compaction is then off.
    pub undone: bool,
    /// Whether a message follows the last compaction.
    pub anything_new: bool,
}

/// The decision to compact or not, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The context is over the threshold and is compacted.
    Compact(String),
    /// The context stays.
    Nothing(String),
}

impl Decision {
    /// The reason as a sentence for the user.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::Compact(why) | Self::Nothing(why) => why,
        }
    }
}

/// Decides whether the context is compacted at its current size.
#[must_use]
pub fn at_threshold(facts: &Facts) -> Decision {
    let Facts { context_tokens: tokens, budget, .. } = facts;
    let threshold = budget.threshold;
    if tokens <= &threshold {
        let room = threshold - tokens;
        return Decision::Nothing(format!(
            "The context has {tokens} tokens, {room} below the threshold of {threshold}; nothing to do."
        ));
    }
    let over = format!("The context has {tokens} tokens, over the threshold of {threshold}");
    if !facts.auto {
        return Decision::Nothing(format!(
            "{over}, but automatic compaction is off; session/compact works all the same."
        ));
    }
    if facts.undone {
        return Decision::Nothing(format!(
            "{over}, but a compaction was undone here; it starts again after a manual session/compact."
        ));
    }
    if budget.hopeless() {
        return Decision::Nothing(format!(
            "{over}, but system prompt and tools alone take {}; no compaction can help. Use a larger model or fewer tools.",
            budget.overhead()
        ));
    }
    if !facts.anything_new {
        return Decision::Nothing(format!(
            "{over}, but nothing came since the last compaction that could be condensed."
        ));
    }
    Decision::Compact(format!("{over}; a compaction is due."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::CompactionSettings;

    #[test]
    fn every_decision_states_its_reason() {
        let facts = |tokens, auto, undone, overhead| Facts {
            context_tokens: tokens,
            budget: Budget::of(200_000, &CompactionSettings::default(), overhead, 0),
            auto,
            undone,
            anything_new: true,
        };
        let why = |facts| at_threshold(&facts).why().to_owned();
        assert!(why(facts(170_000, true, false, 0)).contains("0 below the threshold of 170000"));
        assert_eq!(
            why(facts(170_001, true, false, 0)),
            "The context has 170001 tokens, over the threshold of 170000; a compaction is due."
        );
        assert!(why(facts(180_000, false, false, 0)).contains("automatic compaction is off"));
        assert!(why(facts(180_000, true, true, 0)).contains("was undone here"));
        assert!(why(facts(199_000, true, false, 198_000)).contains("system prompt and tools alone"));
    }
}
