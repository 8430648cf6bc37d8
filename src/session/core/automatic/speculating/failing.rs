//! Summaries ahead that came to nothing: when the next one may begin, and what the client is told.

use crate::{
    compaction::fruitless::{self, Refused},
    conversation::{
        entry::{Entry, milliseconds},
        path::Path,
        spending::{Cost, Recent, Trigger},
    },
    ids::{ModelRef, OperationId},
    protocol::notices::NoticeCode,
    session::{
        core::{
            Core,
            costs::{FailedAhead, FailureAhead, Hour},
        },
        fault::{Fault, planted},
    },
    settings::Sourced,
    text,
};
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// The failures in a row after which the client is told.
const TOLD_AFTER: u32 = 2;

/// Longest reason in the file, in characters.
const LONGEST_RECORDED: usize = 400;

/// The summaries ahead that came to nothing.
#[derive(Default)]
pub(super) struct Failing {
    /// The last one, where no model wrote it.
    last: Option<Failed>,
    /// The number of those in a row that no model wrote.
    row: u32,
    /// The reason of the newest failure, for a person.
    why: Option<String>,
    /// Their tokens of the last hour. None until they are read from the file.
    unused: Option<Hour>,
}

/// A summary that no model wrote.
struct Failed {
    refused: Refused,
    /// The settings and the model that it was made with. Others may do better.
    settings: Arc<Sourced>,
    model: Option<ModelRef>,
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

/// The tokens without use in the file: those that the last compaction carries, and all after it.
fn in_file(path: &Path) -> Recent {
    let foundation = path.foundation();
    let carried = foundation.and_then(|place| path[place].preserved()?.spent.as_ref());
    let mut unused = carried.map(|spent| spent.unused.clone()).unwrap_or_default();
    let since = foundation.map_or(0, |place| place + 1);
    for entry in &path[since..] {
        match speculative(entry) {
            Some(cost) => unused.add(cost.at, cost.tokens()),
            None => FailedAhead::of(entry)
                .iter()
                .for_each(|failed| unused.add(milliseconds(&entry.timestamp), failed.tokens)),
        }
    }
    unused
}

/// The cost of a request for a summary ahead.
fn speculative(entry: &Entry) -> Option<Cost> {
    entry.cost().filter(|cost| cost.trigger == Trigger::Speculative)
}

/// A text that other settings have not, also in another process.
fn digest(settings: &Sourced) -> String {
    let text = serde_json::to_vec(&settings.settings).unwrap_or_default();
    format!("{:x}", Sha256::digest(text))[..16].to_owned()
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
    /// Returns false where they have a use.
    pub(in crate::session::core) fn charge_ahead(&mut self, id: &OperationId, tokens: u64) -> bool {
        if let Some(making) = self.upkeep.ahead.making.as_mut().filter(|making| making.id == *id) {
            making.charged = making.charged.saturating_add(tokens);
        } else if self.work.drafting(id).is_none() {
            self.spend_unused(tokens);
        } else {
            return false;
        }
        true
    }

    /// Tokens that the next summary ahead may take.
    pub(in crate::session::core) fn tokens_ahead(&self) -> u64 {
        fruitless::most(self.state.measure().budget.window).saturating_sub(self.unused_tokens())
    }

    /// Whether no summary begins ahead, because earlier ones came to nothing.
    pub(super) fn rests_ahead(&mut self) -> bool {
        if self.upkeep.ahead.failing.unused.is_none() {
            self.upkeep.ahead.failing.unused = Some(self.unused_in_file());
            self.recall_failed();
        }
        self.refused_ahead().is_some() || self.tokens_ahead() < self.state.measure().context_tokens
    }

    /// Takes the newest failure since the last compaction from the file. Its rest holds for the same settings and the same model.
    fn recall_failed(&mut self) {
        let path = self.state.path();
        let recent = &path[path.foundation().map_or(0, |place| place + 1)..];
        let found = |place: usize| Some((place, FailedAhead::of(&recent[place])?.failure?));
        let Some((place, failure)) = (0..recent.len()).rev().find_map(found) else { return };
        let FailureAhead { context_tokens, span, row, model, settings, why } = failure;
        // The model is compared where the rest is asked for.
        let is_same = settings == digest(self.state.settings());
        // A model answered since.
        let is_over = recent[place + 1..].iter().any(|entry| speculative(entry).is_some());
        let (refused, settings) = (Refused { context_tokens, span }, self.state.settings().clone());
        let failing = &mut self.upkeep.ahead.failing;
        failing.row = if is_over { 0 } else { row };
        failing.last = is_same.then_some(Failed { refused, settings, model });
        failing.why = Some(why);
    }

    /// The last one, where the next waits for more to summarize.
    fn refused_ahead(&self) -> Option<&Failed> {
        let failed = self.upkeep.ahead.failing.last.as_ref()?;
        let fullness = self.state.measure();
        // A reload may make equal settings anew.
        let (made_with, now) = (&failed.settings, self.state.settings());
        let same =
            (Arc::ptr_eq(made_with, now) || made_with == now) && failed.model == self.state.model(self.state.path());
        (same && failed.refused.holds(fullness.context_tokens, fullness.budget.threshold)).then_some(failed)
    }

    /// Ends a summary that no model wrote.
    pub(super) fn fail_ahead(&mut self, why: String) {
        let Some(making) = &self.upkeep.ahead.making else { return };
        let (refused, settings, model) = (making.begun, making.settings.clone(), making.model.clone());
        self.throw_away();
        self.upkeep.ahead.goes_on();
        let failing = &mut self.upkeep.ahead.failing;
        failing.row = failing.row.saturating_add(1);
        let row = failing.row;
        let Refused { context_tokens, span } = refused;
        let (digest, recorded) = (digest(&settings), text::head(&why, LONGEST_RECORDED).to_owned());
        let failure = FailureAhead { context_tokens, span, row, model: model.clone(), settings: digest, why: recorded };
        failing.last = Some(Failed { refused, settings, model });
        failing.why = Some(why.clone());
        if !planted(Fault::AtStakeForgotten) {
            self.costs.add_failed(FailedAhead { tokens: 0, failure: Some(failure) });
        }
        if row == TOLD_AFTER {
            let next = match self.used_up() {
                Some(said) => format!("The next one waits: {said}"),
                None => {
                    let until = refused.until(self.state.measure().budget.threshold);
                    format!("The next one begins when the context has {until} tokens.")
                }
            };
            self.warn(
                NoticeCode::SpeculationRests,
                "Summaries ahead of the threshold rest",
                format!(
                    "{TOLD_AFTER} in a row came to nothing. The last reason: {why}. {next} Compactions are not affected. \
                     compaction.speculative: false switches such summaries off."
                ),
            );
        }
    }

    /// The sentences about the tokens of the last hour, where too few are left for the next one.
    fn used_up(&self) -> Option<String> {
        let fullness = self.state.measure();
        let (tokens, most) = (self.unused_tokens(), fruitless::most(fullness.budget.window));
        if tokens == 0 || self.tokens_ahead() >= fullness.context_tokens {
            return None;
        }
        let said = format!(
            "those of the last hour that came to nothing took {tokens} of {most} tokens. No setting raises this bound."
        );
        // No time helps a context that is larger than the bound.
        let wait = most.checked_sub(fullness.context_tokens).zip(self.upkeep.ahead.failing.unused.as_ref());
        Some(match wait.map(|(least, unused)| unused.falls_to(least, self.now)) {
            Some(wait) => format!("{said} The next one may begin at {}.", self.facts().time_of_day(wait)),
            None => said,
        })
    }

    /// The sentence about the rest of summaries ahead.
    pub(super) fn why_none_ahead(&self) -> Option<String> {
        let failing = &self.upkeep.ahead.failing;
        if let Some(said) = self.used_up() {
            let error = failing.why.as_ref().map(|why| format!(" The last one failed: {why}."));
            return Some(format!("No summary is made ahead: {said}{}", error.unwrap_or_default()));
        }
        let (failed, why) = self.refused_ahead().zip(failing.why.as_ref())?;
        let until = failed.refused.until(self.state.measure().budget.threshold);
        Some(format!("No summary is made ahead below {until} tokens, because the last one failed: {why}."))
    }
}
