//! Summaries ahead that came to nothing: when the next one may begin, and what the client is told.

use super::Making;
use crate::{
    ask::spent::Spent,
    compaction::fruitless::{self, Refused, Wasted},
    conversation::{path::Path, spending::Trigger},
    ids::{ModelRef, OperationId},
    protocol::notices::NoticeCode,
    session::core::Core,
    settings::Sourced,
};
use jiff::Timestamp;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The failures in a row after which the client is told.
const TOLD_AFTER: u32 = 2;

/// The summaries ahead that came to nothing.
#[derive(Default)]
pub(super) struct Failing {
    /// The last one, where no model wrote it.
    last: Option<Failed>,
    /// The number of those in a row that no model wrote.
    row: u32,
    wasted: Wasted,
    /// Whether the costs of the file were read.
    knows_file: bool,
}

/// A summary that no model wrote.
struct Failed {
    refused: Refused,
    /// The settings and the model that it was made with. Others may do better.
    settings: Arc<Sourced>,
    model: Option<ModelRef>,
    why: String,
}

impl Failing {
    /// Records the tokens of one that came to nothing.
    pub fn wastes(&mut self, making: &Making, now: Instant) {
        self.wasted.add(making.charged, now);
    }

    /// Reads the costs of the file once. Those behind the last compaction came to nothing.
    fn read(&mut self, path: &Path, now: Instant, wall: Timestamp) {
        if std::mem::replace(&mut self.knows_file, true) {
            return;
        }
        let since = path.foundation().map_or(0, |place| place + 1);
        let costs = path[since..].iter().filter_map(|entry| entry.cost());
        for cost in costs.filter(|cost| cost.trigger == Trigger::Speculative) {
            let age = wall.as_millisecond().saturating_sub(cost.at).max(0).unsigned_abs();
            self.wasted.add_earlier(cost.tokens(), Duration::from_millis(age), now);
        }
    }

    /// Forgets the failures: a summary was written, or a compaction has shortened the context.
    pub fn succeeds(&mut self) {
        (self.last, self.row) = (None, 0);
    }

    /// Forgets the rest: what is to be summarized is new.
    pub fn begins_anew(&mut self) {
        self.last = None;
    }
}

impl Core {
    /// Counts the tokens of a request for the summary that is made ahead. A provider may report too few of them.
    pub(in crate::session::core) fn charge_ahead(&mut self, id: &OperationId, spent: &Spent) {
        if let Some(making) = self.upkeep.ahead.making.as_mut().filter(|making| making.id == *id) {
            making.charged = making.charged.saturating_add(spent.usage.context_tokens().max(spent.sent));
        }
    }

    /// Tokens that the next summary ahead may take.
    pub(in crate::session::core) fn tokens_ahead(&self) -> u64 {
        self.upkeep.ahead.failing.wasted.left(self.state.measure().budget.window, self.now)
    }

    /// Whether no summary begins ahead, because earlier ones came to nothing.
    pub(super) fn rests_ahead(&mut self) -> bool {
        let (path, now, wall) = (self.state.path(), self.now, self.stamps.now());
        self.upkeep.ahead.failing.read(path, now, wall);
        self.refused_ahead().is_some() || self.tokens_ahead() < self.state.measure().context_tokens
    }

    /// The last one, where the next waits for more to summarize.
    fn refused_ahead(&self) -> Option<&Failed> {
        let failed = self.upkeep.ahead.failing.last.as_ref()?;
        let fullness = self.state.measure();
        let same =
            Arc::ptr_eq(&failed.settings, self.state.settings()) && failed.model == self.state.model(self.state.path());
        (same && failed.refused.holds(fullness.context_tokens, fullness.budget.threshold)).then_some(failed)
    }

    /// Ends a summary that no model wrote.
    pub(super) fn fail_ahead(&mut self, why: String) {
        let Some(making) = &self.upkeep.ahead.making else { return };
        let (refused, settings, model) = (making.begun, making.settings.clone(), making.model.clone());
        self.throw_away();
        self.upkeep.ahead.goes_on();
        let failing = &mut self.upkeep.ahead.failing;
        failing.last = Some(Failed { refused, settings, model, why: why.clone() });
        failing.row = failing.row.saturating_add(1);
        if failing.row == TOLD_AFTER {
            let until = refused.until(self.state.measure().budget.threshold);
            self.warn(
                NoticeCode::SpeculationRests,
                "Summaries ahead of the threshold rest",
                format!(
                    "{TOLD_AFTER} in a row came to nothing. The last reason: {why}. The next one begins when the context has \
                     {until} tokens. Compactions are not affected. compaction.speculative: false switches such summaries off."
                ),
            );
        }
    }

    /// The sentence about the rest of summaries ahead.
    pub(super) fn why_none_ahead(&self) -> Option<String> {
        if let Some(Failed { refused, why, .. }) = self.refused_ahead() {
            let until = refused.until(self.state.measure().budget.threshold);
            return Some(format!("No summary is made ahead below {until} tokens, because the last one failed: {why}."));
        }
        let fullness = self.state.measure();
        let tokens = self.upkeep.ahead.failing.wasted.tokens(self.now);
        (tokens > 0 && self.tokens_ahead() < fullness.context_tokens).then(|| {
            format!(
                "No summary is made ahead: those of the last hour that came to nothing took {tokens} of {} tokens.",
                fruitless::most(fullness.budget.window)
            )
        })
    }
}
