//! The ceiling of automatic maintenance: `compaction.maxTokensPerHour`. Below it models are asked, above it summaries are
//! extracted.

use crate::{
    conversation::{
        entry::Entry,
        spending::{Spending, Trigger},
    },
    protocol::{
        notices::{NoticeCode, Warning},
        types::{Spent, SpentInHour},
    },
    session::{
        core::{Core, costs::CostEntries},
        fault::{Fault, planted},
    },
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The facts about the ceiling that no entry stores.
#[derive(Default)]
pub(in crate::session::core) struct Budget {
    /// The tokens for whose lack the compaction that is being written asked no model.
    lacked: Option<u64>,
    /// The time of extracted summaries that the client was told of.
    told: Option<Extracting>,
}

/// A time in which no model is asked, because too few tokens are left.
#[derive(Clone, Copy)]
struct Extracting {
    /// The ceiling at its beginning. Another one ends it.
    ceiling: u64,
    /// Its end. None: no hour has enough tokens.
    until: Option<Instant>,
}

/// Whether a compaction asked no model for lack of tokens.
pub(in crate::session::core) enum Lack {
    /// It did not lack any.
    None,
    /// It did, as the client knows.
    Told,
    /// It did, and the client does not know it yet.
    New(Warning),
}

impl Core {
    /// Whether the ceiling has room for so many tokens of automatic maintenance.
    #[must_use]
    pub fn may_spend(&self, tokens: u64) -> bool {
        self.tokens_left().is_none_or(|left| tokens <= left)
    }

    /// Tokens that automatic maintenance may still spend, if they are limited.
    fn tokens_left(&self) -> Option<u64> {
        Some(self.ceiling()?.saturating_sub(self.costs.hour().tokens(self.now)))
    }

    fn ceiling(&self) -> Option<u64> {
        self.state.settings().settings.compaction.ceiling()
    }

    /// Tokens that the models of an operation may take, if they are limited.
    pub(in crate::session::core) fn tokens_for(&self, trigger: Trigger) -> Option<u64> {
        let left = self.tokens_left().filter(|_| trigger.is_automatic() && !planted(Fault::CeilingForgotten));
        match trigger {
            Trigger::Speculative => left.into_iter().chain([self.tokens_ahead()]).min(),
            _ => left,
        }
    }

    /// The costs of the file with those that are written before a compaction. Their ages are those of the clock of timers.
    pub(in crate::session::core) fn carried_costs(&self, costs: &CostEntries) -> Spending {
        let mut spent = self.state.history().spending().clone();
        costs.entries.iter().filter_map(|entry: &Arc<Entry>| entry.cost()).for_each(|cost| spent.add(&cost));
        spent.recent = self.costs.hour().by_wall(self.now, self.stamps.now());
        spent.unused = self.unused_by_wall();
        spent
    }

    /// The costs of the session as clients see them, those included that are not in the file yet.
    pub(in crate::session::core) fn spent(&self) -> Spent {
        let mut spending = self.state.history().spending().clone();
        self.costs.waiting.iter().for_each(|(_, spent)| spending.add(&spent.cost()));
        let tokens = self.costs.hour().tokens(self.now);
        Spent::new(&spending, SpentInHour { tokens, most: self.ceiling(), left: self.tokens_left() })
    }

    /// Records the tokens for whose lack a compaction asked no model.
    pub(in crate::session::core) fn lacked_tokens(&mut self, lacked: Option<u64>) {
        self.costs.budget.lacked = lacked;
    }

    /// Whether the compaction that ends asked no model for lack of tokens. A client is told so once for each time without
    /// models.
    pub(in crate::session::core) fn lack_of_tokens(&mut self) -> Lack {
        let (Some(needed), Some(ceiling)) = (self.costs.budget.lacked.take(), self.ceiling()) else {
            return Lack::None;
        };
        if self.extracting().is_some() {
            return Lack::Told;
        }
        let wait = ceiling.checked_sub(needed).map(|most| self.costs.hour().falls_to(most, self.now));
        self.costs.budget.told = Some(Extracting { ceiling, until: wait.map(|wait| self.now + wait) });
        let detail = match wait {
            Some(wait) => format!(
                "A summary may take {needed} tokens, and automatic maintenance took {} of the {ceiling} that \
                 compaction.maxTokensPerHour allows in an hour. Its summaries are extracted without a model until {}. A \
                 compaction that a client asks for still asks a model.",
                self.costs.hour().tokens(self.now),
                self.time_of_day(wait)
            ),
            None => format!(
                "A summary may take {needed} tokens, more than the {ceiling} that compaction.maxTokensPerHour allows in an \
                 hour. Automatic summaries are extracted without a model until the setting is larger or the conversation \
                 is shorter. A compaction that a client asks for still asks a model."
            ),
        };
        let title = "Automatic maintenance may ask no model now";
        Lack::New(Warning::new(NoticeCode::TokenCeilingReached, title, detail))
    }

    /// The time in which no model is asked, as the client was told.
    fn extracting(&self) -> Option<Extracting> {
        let told = self.costs.budget.told?;
        let goes_on = told.until.is_none_or(|until| self.now < until);
        Some(told).filter(|told| goes_on && self.ceiling() == Some(told.ceiling))
    }

    /// The ceiling as a reason for which automatic maintenance asks no model now.
    pub(in crate::session::core) fn why_extracted(&self) -> Option<String> {
        let ceiling = self.ceiling()?;
        let spent = self.costs.hour().tokens(self.now);
        let until = match self.extracting() {
            Some(Extracting { until, .. }) => until.map(|until| until.saturating_duration_since(self.now)),
            None if spent < ceiling => return None,
            None => ceiling.checked_sub(1).map(|most| self.costs.hour().falls_to(most, self.now)),
        };
        let until = until.map(|wait| format!(" until {}", self.time_of_day(wait))).unwrap_or_default();
        Some(format!(
            "Automatic summaries are extracted{until}: {spent} of the {ceiling} tokens of compaction.maxTokensPerHour are spent."
        ))
    }

    /// The time of day after a wait, in whole minutes, rounded up.
    pub(in crate::session::core) fn time_of_day(&self, wait: Duration) -> String {
        let minute = Duration::from_secs(59);
        let at = self.stamps.now().checked_add(wait.saturating_add(minute)).unwrap_or(self.stamps.now());
        at.strftime("%H:%M UTC").to_string()
    }
}
