//! The running sums of a path: how much of it a model would be sent, what the last report says, and what all reports say
//! of the estimates. An append adds to them; anything that rewrites the context has them computed again.

use crate::{
    conversation::{
        context,
        entry::{Body, CarriedCalibration, Entry},
        message::outline::Role,
        path::{Path, Revision},
        tokens::{
            self, Estimator,
            calibration::{Basis, Calibration, Fit, Learner, Prior},
        },
    },
    ids::ModelRef,
    prompts::Prompts,
};
use std::sync::Arc;

/// Compactions carry the calibrations of so many models, the latest.
const MOST_MODELS: usize = 4;

/// Tokens within which the overhead is expected to be that of the announced system prompt and tools.
const UNKNOWN_OVERHEAD: f64 = 10_000.0;

/// The running sums of a path.
#[derive(Debug, Clone)]
pub struct Meter {
    estimator: Estimator,
    /// The path that was measured: its revision, its length, its last entry.
    revision: Revision,
    length: usize,
    last: Option<Arc<Entry>>,
    /// Estimated tokens of all messages that would be sent.
    sent: u64,
    anchor: Anchor,
    /// Estimated tokens of what follows the anchor.
    after: u64,
    /// Estimated tokens of the summary.
    summary: u64,
    /// Tokens of pinned texts that stand in the summary message, by characters: this is asked for all the time.
    pins: u64,
    /// The calibration of each model, the current one last.
    learners: Vec<(Option<ModelRef>, Learner)>,
    model: Option<ModelRef>,
    /// The overhead that a compaction carries whose calibration is of another estimator.
    carried_overhead: Option<u64>,
}

/// A count that holds for the path up to some entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// None: everything is estimated.
    None,
    /// The provider reported it with an answer.
    Report(u64),
    /// It was estimated for the compaction in force, with this overhead in it.
    Compaction { tokens: u64, overhead: u64 },
}

impl Meter {
    /// Measures a path. With `Tiktoken` this counts what was not counted before, which may take a while.
    #[must_use]
    pub fn of(path: &Path, prompts: &Prompts, estimator: Estimator) -> Self {
        let mut meter = Self {
            estimator,
            revision: path.revision(),
            length: 0,
            last: None,
            sent: 0,
            anchor: Anchor::None,
            after: 0,
            summary: path.compaction().map_or(0, |place| u64::from(path[place].tokens(estimator))),
            pins: pinned(path),
            learners: Vec::new(),
            model: None,
            carried_overhead: None,
        };
        let last_rewrite = path.last_rewrite();
        // A path in memory may begin earlier than the same path read from its file. Only the entries of both count.
        let beginning = path.beginning();
        // The size of the context before a path that begins in the middle is unknown up to the last rewrite.
        let mut basis = if path.is_cut() || beginning > 0 { Basis::Since } else { Basis::Whole };
        for (place, entry) in path.iter().enumerate().skip(beginning) {
            if !entry.rewrites() {
                meter.add(entry, basis);
                continue;
            }
            meter.rewritten(entry);
            basis = match entry.body {
                // Nothing of the context is left.
                Body::ResetBoundary => Basis::Whole,
                _ => Basis::Since,
            };
            if Some(place) == last_rewrite {
                basis = Basis::Whole;
                meter.sent = context::build(&path.through(place), prompts).tokens(estimator);
                meter.anchor = match entry.compaction().and_then(|compaction| compaction.measured()) {
                    Some((tokens, overhead)) if path.compaction() == Some(place) => {
                        Anchor::Compaction { tokens, overhead }
                    }
                    _ => Anchor::None,
                };
            }
        }
        if last_rewrite.is_none() && path.is_cut() {
            meter.sent = context::build(path, prompts).tokens(estimator);
        }
        meter.stands_at(path);
        meter
    }

    /// Follows the path to where it has grown to; measures it anew where it has not only grown.
    pub fn follow(&mut self, path: &Path, prompts: &Prompts, estimator: Estimator) {
        let same = |last: &Arc<Entry>| path.get(self.length - 1).is_some_and(|entry| Arc::ptr_eq(entry, last));
        let goes_on =
            self.estimator == estimator && self.revision == path.revision() && self.last.as_ref().is_none_or(same);
        if !goes_on || self.length > path.len() {
            *self = Self::of(path, prompts, estimator);
            return;
        }
        for entry in &path[self.length..] {
            // Nothing else keeps the revision.
            debug_assert!(entry.is_plain() || self.length == 0);
            self.add(entry, Basis::Whole);
        }
        self.stands_at(path);
    }

    fn stands_at(&mut self, path: &Path) {
        self.length = path.len();
        self.last = path.last().cloned();
    }

    fn rewritten(&mut self, entry: &Entry) {
        self.sent = 0;
        self.after = 0;
        self.learners.iter_mut().for_each(|(_, learner)| learner.interrupt());
        let Some(preserved) = entry.compaction().and_then(|compaction| compaction.preserved()) else { return };
        // With nothing kept, no entry of the path names the model.
        self.model = preserved.model.clone().or(self.model.take());
        if preserved.overhead.is_none() && preserved.calibrations.is_empty() {
            return;
        }
        // It knows all reports before it, those of entries that are not in memory any more too.
        let name = self.estimator.name();
        let known = preserved.calibrations.iter().filter(|it| it.estimator == name);
        self.learners = known.map(|it| (it.model.clone(), Learner::from(it.sums))).collect();
        let inferred = self.learners.is_empty() && !preserved.calibrations.is_empty();
        self.carried_overhead = preserved.overhead.filter(|_| inferred);
    }

    fn add(&mut self, entry: &Entry, basis: Basis) {
        let tokens = sent(entry, self.estimator);
        if let Body::ModelChange { provider, model } = &entry.body {
            self.model = Some(ModelRef { provider: provider.clone(), id: model.clone() });
        }
        if let Some(model) = entry.outline().and_then(|outline| outline.model.as_ref()) {
            self.model = Some(model.clone());
        }
        let Some(usage) = entry.outline().and_then(|outline| outline.measured()) else {
            self.sent += tokens;
            self.after += match entry.is_from(Role::System) {
                true => u64::from(entry.tokens(self.estimator)),
                false => tokens,
            };
            return;
        };
        let prompt = usage.prompt_tokens();
        let (estimated, reported) = match prompt {
            0 => (self.sent + tokens, usage.context_tokens()),
            prompt => (self.sent, prompt),
        };
        self.learner().report(estimated, reported, basis);
        self.sent += tokens;
        self.after = 0;
        self.anchor = Anchor::Report(usage.context_tokens());
    }

    /// What the current model taught.
    fn learner(&mut self) -> &mut Learner {
        let known = self.learners.iter().position(|(model, _)| *model == self.model);
        let current = match known {
            Some(place) => self.learners.remove(place),
            None => (self.model.clone(), Learner::default()),
        };
        self.learners.push(current);
        let last = self.learners.len() - 1;
        &mut self.learners[last].1
    }

    /// How the provider counts: the line that fits the reports of the current model. `factor` and `announced`, the estimate
    /// of system prompt and tools, are expected before any report. Where the reports by themselves mean an overhead of more
    /// than `most`, they are nonsense: no session could have come that far, and a compaction must not be refused because of
    /// it.
    #[must_use]
    pub fn fit(&self, factor: f64, announced: u64, most: f64) -> Fit {
        let expected = factor * announced as f64;
        let announced = Prior { factor, overhead: expected, spread: expected / 4.0 + UNKNOWN_OVERHEAD };
        let prior = match self.carried_overhead.map(|carried| carried as f64).filter(|carried| *carried <= most) {
            Some(overhead) => Prior { factor, overhead, spread: overhead / 10.0 + 500.0 },
            None => announced,
        };
        let taught = |learner: &Learner| {
            let alone = learner.calibration().fit(&Prior { spread: 1e9, ..prior });
            !learner.calibration().is_empty() && alone.overhead <= most.max(expected)
        };
        let mut latest = self.learners.iter().rev().filter(|(_, learner)| taught(learner));
        let current = self.learners.iter().find(|(model, learner)| *model == self.model && taught(learner));
        // Another model was told the same; only its tokenizer is another one.
        let prior = match latest.find(|(model, _)| *model != self.model) {
            Some((_, learner)) => {
                let overhead = learner.calibration().fit(&prior).overhead;
                Prior { factor, overhead, spread: overhead / 4.0 + 1_000.0 }
            }
            None => prior,
        };
        match current {
            Some((_, learner)) => learner.calibration().fit(&prior),
            None => Calibration::default().fit(&prior),
        }
    }

    /// Whether anything is known of the overhead beside what was announced.
    #[must_use]
    pub fn knows_the_overhead(&self) -> bool {
        self.carried_overhead.is_some() || self.learners.iter().any(|(_, learner)| !learner.calibration().is_empty())
    }

    /// What a compaction carries of it.
    #[must_use]
    pub fn carried(&self) -> Vec<CarriedCalibration> {
        let taught = self.learners.iter().filter(|(_, learner)| !learner.calibration().is_empty());
        let taught: Vec<_> = taught.collect();
        let latest = &taught[taught.len().saturating_sub(MOST_MODELS)..];
        let carried = latest.iter().map(|(model, learner)| CarriedCalibration {
            model: model.clone(),
            estimator: self.estimator.name().to_owned(),
            sums: *learner.calibration(),
        });
        carried.collect()
    }

    /// The estimator of its sums.
    #[must_use]
    pub fn estimator(&self) -> Estimator {
        self.estimator
    }

    /// Estimated tokens of all messages that would be sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The newest count, and the estimated tokens of what follows it.
    #[must_use]
    pub fn anchor(&self) -> (Anchor, u64) {
        (self.anchor, self.after)
    }

    /// Estimated tokens of the summary.
    #[must_use]
    pub fn summary(&self) -> u64 {
        self.summary
    }

    /// Estimated tokens of pinned texts in the summary message.
    #[must_use]
    pub fn pins(&self) -> u64 {
        self.pins
    }
}

/// Estimated tokens of what is sent of an entry by itself.
#[must_use]
pub fn sent(entry: &Entry, estimator: Estimator) -> u64 {
    let unsent = |outline: &crate::conversation::message::outline::Outline| match outline.role {
        Role::System => true,
        Role::Assistant => outline.failed || outline.empty,
        Role::User | Role::Developer | Role::Custom => outline.silent,
        Role::ToolResult | Role::Execution | Role::Summary => false,
    };
    if !entry.in_context() || entry.outline().is_some_and(unsent) {
        return 0;
    }
    u64::from(entry.tokens(estimator))
}

fn pinned(path: &Path) -> u64 {
    let texts = context::texts_of_pins(path, path.first_kept(), path.pins());
    texts.iter().map(|(_, text)| tokens::utf16_len(text).div_ceil(4) as u64).sum()
}
