//! Summaries ahead that came to nothing: when the next one may begin, and what the client is told.

use super::Ahead;
use crate::{
    compaction::fruitless::{self, Refused},
    conversation::{
        entry::{Entry, milliseconds},
        spending::{Cost, Recent, Trigger},
    },
    ids::{ModelRef, OperationId},
    protocol::notices::{NoticeCode, Warning},
    session::{
        core::{
            costs::{FailedAhead, FailureAhead, Hour},
            parts::facts::Facts,
            step::Step,
        },
        fault::{Fault, planted},
        operation::Operation,
        state::State,
    },
    settings::Sourced,
    text,
};
use sha2::{Digest as _, Sha256};
use std::{sync::Arc, time::Instant};

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

    /// Records the tokens of a summary without use. Before the file was read, its costs are found there.
    pub fn spend(&mut self, tokens: u64, now: Instant) {
        if let Some(unused) = &mut self.unused {
            unused.add(tokens, now);
        }
    }

    /// The tokens of the last hour without use.
    fn unused_tokens(&self, now: Instant) -> u64 {
        let unused = self.unused.as_ref().filter(|_| !planted(Fault::UnusedForgotten));
        unused.map_or(0, |unused| unused.tokens(now))
    }

    /// Takes the newest failure since the last compaction from the file. Its rest holds for the same settings and the same model.
    fn recall(&mut self, state: &State) {
        let path = state.path();
        let recent = &path[path.foundation().map_or(0, |place| place + 1)..];
        let found = |place: usize| Some((place, FailedAhead::of(&recent[place])?.failure?));
        let Some((place, failure)) = (0..recent.len()).rev().find_map(found) else { return };
        let FailureAhead { context_tokens, span, row, model, settings, why } = failure;
        // The model is compared where the rest is asked for.
        let is_same = settings == digest(state.settings());
        // A model answered since.
        let is_over = recent[place + 1..].iter().any(|entry| speculative(entry).is_some());
        let (refused, settings) = (Refused { context_tokens, span }, state.settings().clone());
        self.row = if is_over { 0 } else { row };
        self.last = is_same.then_some(Failed { refused, settings, model });
        self.why = Some(why);
    }

    /// The last one, where the next waits for more to summarize.
    fn refused(&self, state: &State) -> Option<&Failed> {
        let failed = self.last.as_ref()?;
        let fullness = state.measure();
        // A reload may make equal settings anew.
        let (made_with, now) = (&failed.settings, state.settings());
        let same = (Arc::ptr_eq(made_with, now) || made_with == now) && failed.model == state.model(state.path());
        (same && failed.refused.holds(fullness.context_tokens, fullness.budget.threshold)).then_some(failed)
    }

    /// Forgets the rest: what is to be summarized is new.
    pub fn begins_anew(&mut self) {
        self.last = None;
    }
}

/// The tokens of the last hour without use in the file: those that the last compaction carries, and all after it.
fn unused_in_file(facts: &Facts) -> Hour {
    let path = facts.state.path();
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
    Hour::opened(&unused, facts.now, facts.wall)
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

impl Ahead {
    /// The tokens of the last hour without use, by the time of day, for the entry of a compaction.
    pub fn unused_by_wall(&self, facts: &Facts) -> Recent {
        match &self.failing.unused {
            Some(unused) => unused.by_wall(facts.now, facts.wall),
            None => unused_in_file(facts).by_wall(facts.now, facts.wall),
        }
    }

    /// Counts the tokens that a request for a summary ahead took, or may have taken. A request that is cancelled with its
    /// summary reports after it, and has no use. A compaction uses the requests of the summary that it took over:
    /// `compaction`, if one with this id makes its draft. Returns false where they have a use.
    pub fn charge(&mut self, id: &OperationId, tokens: u64, compaction: Option<&Operation>, now: Instant) -> bool {
        match (self.making.as_mut().filter(|making| making.id == *id), compaction) {
            (Some(making), _) => making.charged = making.charged.saturating_add(tokens),
            (None, None) => self.failing.spend(tokens, now),
            (None, Some(_)) => return false,
        }
        true
    }

    /// Tokens that the next summary ahead may take.
    pub fn tokens(&self, facts: &Facts) -> u64 {
        fruitless::most(facts.state.measure().budget.window).saturating_sub(self.failing.unused_tokens(facts.now))
    }

    /// Whether no summary begins, because earlier ones came to nothing.
    pub(super) fn rests(&mut self, facts: &Facts) -> bool {
        if self.failing.unused.is_none() {
            self.failing.unused = Some(unused_in_file(facts));
            self.failing.recall(facts.state);
        }
        self.failing.refused(facts.state).is_some() || self.tokens(facts) < facts.state.measure().context_tokens
    }

    /// Ends a summary that no model wrote.
    pub(super) fn fail(&mut self, why: String, facts: &Facts) -> Vec<Step> {
        let Some(making) = &self.making else { return Vec::new() };
        let (refused, settings, model) = (making.begun, making.settings.clone(), making.model.clone());
        let mut steps = self.throw_away(facts);
        self.goes_on();
        let failing = &mut self.failing;
        failing.row = failing.row.saturating_add(1);
        let row = failing.row;
        let Refused { context_tokens, span } = refused;
        let (digest, recorded) = (digest(&settings), text::head(&why, LONGEST_RECORDED).to_owned());
        let failure = FailureAhead { context_tokens, span, row, model: model.clone(), settings: digest, why: recorded };
        failing.last = Some(Failed { refused, settings, model });
        failing.why = Some(why.clone());
        steps.push(Step::RecordFailure(FailedAhead { tokens: 0, failure: Some(failure) }));
        if row == TOLD_AFTER {
            let next = match self.used_up(facts) {
                Some(said) => format!("The next one waits: {said}"),
                None => {
                    let until = refused.until(facts.state.measure().budget.threshold);
                    format!("The next one begins when the context has {until} tokens.")
                }
            };
            steps.push(Step::Warn(Warning::new(
                NoticeCode::SpeculationRests,
                "Summaries ahead of the threshold rest",
                format!(
                    "{TOLD_AFTER} in a row came to nothing. The last reason: {why}. {next} Compactions are not affected. \
                     compaction.speculative: false switches such summaries off."
                ),
            )));
        }
        steps
    }

    /// The sentences about the tokens of the last hour, where too few are left for the next one.
    fn used_up(&self, facts: &Facts) -> Option<String> {
        let fullness = facts.state.measure();
        let (tokens, most) = (self.failing.unused_tokens(facts.now), fruitless::most(fullness.budget.window));
        if tokens == 0 || self.tokens(facts) >= fullness.context_tokens {
            return None;
        }
        let said = format!(
            "those of the last hour that came to nothing took {tokens} of {most} tokens. No setting raises this bound."
        );
        // No time helps a context that is larger than the bound.
        let wait = most.checked_sub(fullness.context_tokens).zip(self.failing.unused.as_ref());
        Some(match wait.map(|(least, unused)| unused.falls_to(least, facts.now)) {
            Some(wait) => format!("{said} The next one may begin at {}.", facts.time_of_day(wait)),
            None => said,
        })
    }

    /// The sentence about the rest of summaries ahead.
    pub(super) fn why_none(&self, facts: &Facts) -> Option<String> {
        if let Some(said) = self.used_up(facts) {
            let error = self.failing.why.as_ref().map(|why| format!(" The last one failed: {why}."));
            return Some(format!("No summary is made ahead: {said}{}", error.unwrap_or_default()));
        }
        let (failed, why) = self.failing.refused(facts.state).zip(self.failing.why.as_ref())?;
        let until = failed.refused.until(facts.state.measure().budget.threshold);
        Some(format!("No summary is made ahead below {until} tokens, because the last one failed: {why}."))
    }
}
