//! Summaries ahead that came to nothing: when the next one may begin, and what the client is told.

use crate::{
    compaction::fruitless::{self, Refused},
    conversation::{
        path::Path,
        spending::{Recent, Trigger},
    },
    ids::{ModelRef, OperationId},
    protocol::notices::NoticeCode,
    session::{
        core::{Core, costs::Hour},
        fault::{Fault, planted},
    },
    settings::Sourced,
};
use std::sync::Arc;

/// The failures in a row after which the client is told.
const TOLD_AFTER: u32 = 2;

/// The summaries ahead that came to nothing.
#[derive(Default)]
pub(super) struct Failing {
    /// The last one, where no model wrote it.
    last: Option<Failed>,
    /// The number of those in a row that no model wrote.
    row: u32,
    /// Their tokens of the last hour. None until they are read from the file.
    unused: Option<Hour>,
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
    /// Forgets the failures: a summary was written, or a compaction has shortened the context.
    pub fn succeeds(&mut self) {
        (self.last, self.row) = (None, 0);
    }

    /// Forgets the rest: what is to be summarized is new.
    pub fn begins_anew(&mut self) {
        self.last = None;
    }
}

/// The tokens without use in the file: those that the last compaction carries, and all behind it.
fn in_file(path: &Path) -> Recent {
    let foundation = path.foundation();
    let carried = foundation.and_then(|place| path[place].preserved()?.spent.as_ref());
    let mut unused = carried.map(|spent| spent.unused.clone()).unwrap_or_default();
    let since = foundation.map_or(0, |place| place + 1);
    let costs = path[since..].iter().filter_map(|entry| entry.cost());
    costs.filter(|cost| cost.trigger == Trigger::Speculative).for_each(|cost| unused.add(cost.at, cost.tokens()));
    unused
}

impl Core {
    /// The tokens of the last hour without use, as the file has them.
    fn unused_in_file(&self) -> Hour {
        Hour::opened(&in_file(self.state.path()), self.now, self.stamps.now())
    }

    /// The tokens of the last hour without use, by the time of day, for the entry of a compaction.
    pub(in crate::session::core) fn unused_by_wall(&self) -> Recent {
        let (now, wall) = (self.now, self.stamps.now());
        match &self.upkeep.ahead.failing.unused {
            Some(unused) => unused.by_wall(now, wall),
            None => self.unused_in_file().by_wall(now, wall),
        }
    }

    /// Records the tokens of a summary without use. Before the file was read, its costs are found there.
    pub(super) fn spend_unused(&mut self, tokens: u64) {
        if let Some(unused) = &mut self.upkeep.ahead.failing.unused {
            unused.add(tokens, self.now);
        }
    }

    fn unused_tokens(&self) -> u64 {
        let unused = self.upkeep.ahead.failing.unused.as_ref().filter(|_| !planted(Fault::UnusedForgotten));
        unused.map_or(0, |unused| unused.tokens(self.now))
    }

    /// Counts the tokens that a request for a summary ahead took, or may have taken. A request that is cancelled with its
    /// summary reports after it, and has no use. A compaction uses the requests of the summary that it took over.
    pub(in crate::session::core) fn charge_ahead(&mut self, id: &OperationId, tokens: u64) {
        if let Some(making) = self.upkeep.ahead.making.as_mut().filter(|making| making.id == *id) {
            making.charged = making.charged.saturating_add(tokens);
        } else if self.work.drafting(id).is_none() {
            self.spend_unused(tokens);
        }
    }

    /// Tokens that the next summary ahead may take.
    pub(in crate::session::core) fn tokens_ahead(&self) -> u64 {
        fruitless::most(self.state.measure().budget.window).saturating_sub(self.unused_tokens())
    }

    /// Whether no summary begins ahead, because earlier ones came to nothing.
    pub(super) fn rests_ahead(&mut self) -> bool {
        if self.upkeep.ahead.failing.unused.is_none() {
            self.upkeep.ahead.failing.unused = Some(self.unused_in_file());
        }
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
        let tokens = self.unused_tokens();
        (tokens > 0 && self.tokens_ahead() < fullness.context_tokens).then(|| {
            format!(
                "No summary is made ahead: those of the last hour that came to nothing took {tokens} of {} tokens.",
                fruitless::most(fullness.budget.window)
            )
        })
    }
}
