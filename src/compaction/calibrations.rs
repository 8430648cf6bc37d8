//! The calibrations of the models that reported on a path. A compaction carries them, and a reopened session continues
//! from there.

use crate::{
    conversation::{
        entry::{CarriedCalibration, CarriedModel, Entry, Preserved},
        evidence::Line,
        instructions::Difference,
        path::Chosen,
        tokens::{
            Estimator, Scale,
            calibration::{Basis, Calibration, Fit, Learner, Prior},
        },
    },
    ids::ModelRef,
};

/// The number of models whose calibrations a compaction carries.
const MOST_MODELS: usize = 4;

/// The most models whose reports are remembered: the latest ones. Each report is compared with those of all of them.
pub const MOST_REMEMBERED: usize = 32;

/// The expected deviation of the overhead from the announced system prompt and tools, in tokens.
const UNKNOWN_OVERHEAD: f64 = 10_000.0;

/// The calibrations of the models that reported, by one estimator.
#[derive(Debug, Clone)]
pub struct Calibrations {
    estimator: Estimator,
    /// The calibration of each model, the latest one last.
    learners: Vec<(Option<ModelRef>, Learner)>,
    /// The model of the path.
    model: Chosen,
    /// The overhead in the latest compaction, if its calibrations are of another estimator.
    carried_overhead: Option<f64>,
}

/// The expectation before any report.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// Reported over estimated tokens.
    pub factor: f64,
    /// The estimated tokens of the announced system prompt and tools.
    pub announced: u64,
    /// The largest overhead that reports can prove, in reported tokens. With a larger one a session could not have got as
    /// far as it did.
    pub most: f64,
}

impl Calibrations {
    /// No calibrations.
    #[must_use]
    pub fn new(estimator: Estimator) -> Self {
        Self { estimator, learners: Vec::new(), model: Chosen::default(), carried_overhead: None }
    }

    /// Continues from what a compaction carries. It includes all reports before the compaction.
    pub fn restore(&mut self, preserved: &Preserved) {
        // With nothing kept, no other entry names the model.
        if let Some(CarriedModel { model, chosen }) = preserved.model.clone() {
            self.model = Chosen { model: Some(model), is_chosen: chosen };
        }
        if preserved.overhead.is_none() && preserved.calibrations.is_empty() {
            return;
        }
        let name = self.estimator.name();
        let known = preserved.calibrations.iter().filter(|it| it.estimator == name);
        self.learners = known.map(|it| (it.model.clone(), Learner::from(it.sums))).collect();
        let other_estimator = self.learners.is_empty() && !preserved.calibrations.is_empty();
        self.carried_overhead = preserved.overhead.filter(|_| other_estimator).map(|overhead| overhead as f64);
    }

    /// The calibrations for a compaction: those of the latest models.
    #[must_use]
    pub fn carried(&self) -> Vec<CarriedCalibration> {
        let taught: Vec<_> = self.learners.iter().filter(|(_, learner)| !learner.calibration().is_empty()).collect();
        let latest = &taught[taught.len().saturating_sub(MOST_MODELS)..];
        let carried = latest.iter().map(|(model, learner)| CarriedCalibration {
            model: model.clone(),
            estimator: self.estimator.name().to_owned(),
            sums: *learner.calibration(),
        });
        carried.collect()
    }

    /// Takes the model that an entry chooses, or that answered in it.
    pub fn choose(&mut self, entry: &Entry) {
        self.model.take(entry);
    }

    /// Takes a believed report of a model.
    pub fn report(&mut self, of: Option<&ModelRef>, estimated: u64, reported: u64, basis: Basis) {
        let known = self.learners.iter().position(|(model, _)| model.as_ref() == of);
        let mut current = match known {
            Some(place) => self.learners.remove(place),
            None => (of.cloned(), Learner::default()),
        };
        current.1.report(estimated, reported, basis);
        self.learners.push(current);
        if self.learners.len() > MOST_REMEMBERED {
            self.learners.remove(0);
        }
    }

    /// The overhead of a model's requests changed by so many reported tokens.
    pub fn jump(&mut self, of: Option<&ModelRef>, by: i64) {
        if let Some((_, learner)) = self.learners.iter_mut().find(|(model, _)| model.as_ref() == of) {
            learner.shift(by as f64);
        }
    }

    /// The expected line of a model's reports: by its own reports, else by those of other models, else by the announced
    /// instructions of this estimated size.
    #[must_use]
    pub fn line(&self, of: Option<&ModelRef>, announced: u64) -> Line {
        let factor = Scale::expected(self.estimator, of.map(|model| model.provider.as_str())).factor();
        let knows = |learner: &&Learner| learner.calibration().knows_the_overhead();
        let own = self.learners.iter().find(|(model, _)| model.as_ref() == of).map(|(_, learner)| learner);
        if let Some(Fit { factor, overhead, .. }) = own.filter(knows).map(Learner::line) {
            return Line { factor, overhead, is_learned: true };
        }
        let other = self.learners.iter().rev().map(|(_, learner)| learner).find(knows).map(|it| it.line().overhead);
        let overhead = other.or(self.carried_overhead).unwrap_or(factor * announced as f64);
        Line { factor, overhead, is_learned: false }
    }

    /// The model of the path.
    #[must_use]
    pub fn model(&self) -> Option<&ModelRef> {
        self.model.model.as_ref()
    }

    /// Ends the series of reports: the context was rewritten.
    pub fn interrupt(&mut self) {
        self.learners.iter_mut().for_each(|(_, learner)| learner.interrupt());
    }

    /// Takes other instructions, which every later request contains. `before` is the estimated size of the earlier ones.
    /// Returns the growth of a request in estimated tokens. A part that was not announced before may have been in earlier
    /// reports: its excess over the unannounced overhead is growth, and the next report decides about the rest.
    pub fn announce(&mut self, difference: Difference, before: u64) -> i64 {
        let current = self.learners.iter().rev().find(|(model, _)| model.as_ref() == self.model());
        let taught = |learner: &&Learner| learner.calibration().knows_the_overhead();
        let latest = || self.learners.iter().rev().map(|(_, learner)| learner).find(taught);
        let line = match current.map(|(_, learner)| learner).filter(taught).or_else(latest) {
            Some(learner) => learner.line(),
            None => Fit {
                factor: Scale::expected(self.estimator, self.model().map(|model| model.provider.as_str())).factor(),
                overhead: self.carried_overhead.unwrap_or_default(),
                learned: false,
            },
        };
        let unannounced = (line.overhead / line.factor - before as f64).max(0.0);
        let excess = (difference.added as f64 - unannounced).max(0.0);
        let (growth, old) = (difference.growth as f64 + excess, difference.added as f64 - excess);
        self.learners.iter_mut().for_each(|(_, learner)| learner.grow(growth, old));
        self.carried_overhead = self.carried_overhead.map(|overhead| (overhead + line.factor * growth).max(0.0));
        growth.round() as i64
    }

    /// The line that fits the reports of the current model and the expectation. Reports that by themselves mean an overhead
    /// over `expected.most` are ignored: a compaction must not fail because of them.
    #[must_use]
    pub fn fit(&self, expected: Expected) -> Fit {
        let Expected { factor, announced, most } = expected;
        let announced = factor * announced as f64;
        let prior = match self.carried_overhead.filter(|carried| *carried <= most) {
            Some(overhead) => Prior { factor, overhead, spread: overhead / 10.0 + 500.0 },
            None => Prior { factor, overhead: announced, spread: announced / 4.0 + UNKNOWN_OVERHEAD },
        };
        let taught = |learner: &Learner| {
            let alone = learner.calibration().fit(&Prior { spread: 1e9, ..prior });
            !learner.calibration().is_empty() && alone.overhead <= most.max(announced)
        };
        let current = self.learners.iter().find(|(model, learner)| model.as_ref() == self.model() && taught(learner));
        // Another model received the same instructions and counted them with another tokenizer.
        let other = self.learners.iter().rev().find(|(model, learner)| {
            model.as_ref() != self.model() && taught(learner) && learner.calibration().knows_the_overhead()
        });
        let prior = match other {
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

    /// Whether there is any calibration, or an overhead that a compaction carries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.carried_overhead.is_none() && self.learners.iter().all(|(_, learner)| learner.calibration().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_that_mean_an_overhead_over_the_possible_one_are_ignored() {
        let mut calibrations = Calibrations::new(Estimator::Tiktoken);
        (1..=6).for_each(|at| calibrations.report(None, at * 1_000, 100_000 + at * 1_000, Basis::Whole));
        let fit = |most: f64, announced: u64| calibrations.fit(Expected { factor: 1.0, announced, most });
        let ignored = Fit { factor: 1.0, overhead: 2_000.0, learned: false };
        assert_eq!(fit(75_000.0, 2_000), ignored);
        // A larger window has room for it, and so have announced instructions of that size.
        for fit in [fit(150_000.0, 2_000), fit(75_000.0, 110_000)] {
            assert!((97_000.0..103_000.0).contains(&fit.overhead), "{fit:?}");
        }
    }
}
