//! The ceiling of automatic maintenance: `compaction.maxTokensPerHour`. Below it models are asked, above it summaries are
//! extracted.

use crate::{
    conversation::{
        entry::Entry,
        spending::{Recent, Spending, Trigger},
    },
    protocol::{
        notices::{NoticeCode, Warning},
        types::{Spent, SpentInHour},
    },
    session::{
        core::{
            costs::{CostEntries, Costs},
            parts::facts::Facts,
        },
        fault::{Fault, planted},
    },
};
use std::{sync::Arc, time::Instant};

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
    Reported,
    /// It did, and the client does not know it yet.
    New(Warning),
}

impl Costs {
    /// Whether the ceiling has room for so many tokens of automatic maintenance.
    pub fn have_room_for(&self, tokens: u64, facts: &Facts) -> bool {
        self.tokens_left(facts).is_none_or(|left| tokens <= left)
    }

    /// Tokens that automatic maintenance may still spend, if they are limited.
    fn tokens_left(&self, facts: &Facts) -> Option<u64> {
        Some(ceiling(facts)?.saturating_sub(self.hour.tokens(facts.now)))
    }

    /// Tokens that the models of an operation may take, if they are limited. `most`: a limit beside the ceiling.
    pub fn tokens_for(&self, trigger: Trigger, most: Option<u64>, facts: &Facts) -> Option<u64> {
        let left = self.tokens_left(facts).filter(|_| trigger.is_automatic() && !planted(Fault::CeilingForgotten));
        left.into_iter().chain(most).min()
    }

    /// The costs of the file with those that are written before a compaction. Their ages are those of the clock of timers.
    /// `unused`: the tokens of summaries ahead without use.
    pub fn carried(&self, entries: &CostEntries, unused: Recent, facts: &Facts) -> Spending {
        let mut spent = facts.state.history().spending().clone();
        entries.entries.iter().filter_map(|entry: &Arc<Entry>| entry.cost()).for_each(|cost| spent.add(&cost));
        spent.recent = self.hour.by_wall(facts.now, facts.wall);
        spent.unused = unused;
        spent
    }

    /// The costs of the session as clients see them, those included that are not in the file yet.
    pub fn spent(&self, facts: &Facts) -> Spent {
        let mut spending = facts.state.history().spending().clone();
        self.waiting.iter().for_each(|(_, spent)| spending.add(&spent.cost()));
        let tokens = self.hour.tokens(facts.now);
        Spent::new(&spending, SpentInHour { tokens, most: ceiling(facts), left: self.tokens_left(facts) })
    }

    /// Records the tokens for whose lack a compaction asked no model.
    pub fn lacked(&mut self, tokens: Option<u64>) {
        self.budget.lacked = tokens;
    }

    /// Whether the compaction that ends asked no model for lack of tokens. A client is told so once for each time without
    /// models.
    pub fn take_lack(&mut self, facts: &Facts) -> Lack {
        let (Some(needed), Some(ceiling)) = (self.budget.lacked.take(), ceiling(facts)) else {
            return Lack::None;
        };
        if self.extracting(facts).is_some() {
            return Lack::Reported;
        }
        let wait = ceiling.checked_sub(needed).map(|most| self.hour.falls_to(most, facts.now));
        self.budget.told = Some(Extracting { ceiling, until: wait.map(|wait| facts.now + wait) });
        let detail = match wait {
            Some(wait) => format!(
                "A summary may take {needed} tokens, and automatic maintenance took {} of the {ceiling} that \
                 compaction.maxTokensPerHour allows in an hour. Its summaries are extracted without a model until {}. A \
                 compaction that a client asks for still asks a model.",
                self.hour.tokens(facts.now),
                facts.time_of_day(wait)
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
    fn extracting(&self, facts: &Facts) -> Option<Extracting> {
        let told = self.budget.told?;
        let goes_on = told.until.is_none_or(|until| facts.now < until);
        Some(told).filter(|told| goes_on && ceiling(facts) == Some(told.ceiling))
    }

    /// The ceiling as a reason for which automatic maintenance asks no model now.
    pub fn why_extracted(&self, facts: &Facts) -> Option<String> {
        let ceiling = ceiling(facts)?;
        let spent = self.hour.tokens(facts.now);
        let until = match self.extracting(facts) {
            Some(Extracting { until, .. }) => until.map(|until| until.saturating_duration_since(facts.now)),
            None if spent < ceiling => return None,
            None => ceiling.checked_sub(1).map(|most| self.hour.falls_to(most, facts.now)),
        };
        let until = until.map(|wait| format!(" until {}", facts.time_of_day(wait))).unwrap_or_default();
        Some(format!(
            "Automatic summaries are extracted{until}: {spent} of the {ceiling} tokens of compaction.maxTokensPerHour are spent."
        ))
    }
}

fn ceiling(facts: &Facts) -> Option<u64> {
    facts.state.settings().settings.compaction.ceiling()
}
