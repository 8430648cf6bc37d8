//! The progress of an operation. It only grows, whatever model begins anew.

use crate::{
    models::ModelRef,
    protocol::events::{Event, Stage},
};
use std::time::Instant;

/// The progress that was sent.
#[derive(Debug, Default)]
pub(super) struct Forward {
    /// The steps that are done and all steps, by stage.
    steps: [(usize, usize); 5],
    /// The part of the whole operation, in thousandths.
    thousandths: u32,
    model: Option<ModelRef>,
    /// The begin of the summary.
    summarizes_since: Option<Instant>,
    sent: Option<Stage>,
}

/// The part of an operation at which a stage begins and ends, in thousandths. Nearly all of the time goes into the summary.
fn share_of(stage: Stage) -> (u32, u32) {
    match stage {
        Stage::Pruning => (0, 20),
        Stage::Hook => (20, 50),
        Stage::Summarizing => (50, 900),
        Stage::Checking => (900, 950),
        Stage::Writing => (950, 1_000),
    }
}

impl Forward {
    /// The event for these steps of a stage; `None` where nothing is new. `model`: the model that is asked.
    pub fn to(
        &mut self,
        stage: Stage,
        (done, total): (usize, usize),
        model: Option<ModelRef>,
        now: Instant,
    ) -> Option<Event> {
        let steps = &mut self.steps[stage as usize];
        let before = (*steps, self.thousandths, self.sent, self.model.clone());
        *steps = (steps.0.max(done), steps.1.max(total));
        let (done, total) = *steps;
        self.model = model.or(self.model.take()).filter(|_| stage == Stage::Summarizing);
        self.sent = Some(stage);
        let (from, to) = share_of(stage);
        let part = (to - from) as usize * done.min(total) / total.max(1);
        self.thousandths = self.thousandths.max(from + part as u32);
        if before == (*steps, self.thousandths, self.sent, self.model.clone()) {
            return None;
        }
        let since = (stage == Stage::Summarizing).then(|| *self.summarizes_since.get_or_insert(now));
        let elapsed = since.map(|since| now.saturating_duration_since(since));
        let remaining = elapsed
            .filter(|_| done > 0)
            .map(|elapsed| elapsed.as_millis() * (total.saturating_sub(done)) as u128 / done as u128);
        Some(Event::CompactionProgress {
            stage,
            done,
            total,
            share: f64::from(self.thousandths) / 1_000.0,
            model: self.model.clone(),
            remaining_ms: remaining.and_then(|remaining| u64::try_from(remaining).ok()),
        })
    }

    /// All steps of a stage.
    pub fn all(&self, stage: Stage) -> usize {
        self.steps[stage as usize].1.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn event(
        forward: &mut Forward,
        stage: Stage,
        steps: (usize, usize),
        model: Option<&str>,
        at: Instant,
    ) -> Option<(usize, usize, u32, Option<u64>)> {
        let model = model.map(|id| ModelRef { provider: "p".into(), id: id.into() });
        match forward.to(stage, steps, model, at)? {
            Event::CompactionProgress { done, total, share, remaining_ms, .. } => {
                Some((done, total, (share * 1_000.0).round() as u32, remaining_ms))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn another_model_that_begins_anew_takes_nothing_back() {
        let (mut forward, start) = (Forward::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        assert_eq!(event(&mut forward, Stage::Summarizing, (0, 1), None, at(0)), Some((0, 1, 50, None)));
        assert_eq!(event(&mut forward, Stage::Summarizing, (0, 1), None, at(0)), None, "nothing is new");
        assert_eq!(event(&mut forward, Stage::Summarizing, (0, 4), Some("a"), at(0)), Some((0, 4, 50, None)));
        assert_eq!(event(&mut forward, Stage::Summarizing, (2, 4), Some("a"), at(10)), Some((2, 4, 475, Some(10_000))));
        // The second model has larger chunks.
        assert_eq!(event(&mut forward, Stage::Summarizing, (0, 2), Some("b"), at(12)), Some((2, 4, 475, Some(12_000))));
        assert_eq!(event(&mut forward, Stage::Summarizing, (1, 2), Some("b"), at(13)), None);
        assert_eq!(event(&mut forward, Stage::Checking, (1, 1), None, at(20)), Some((1, 1, 950, None)));
        assert_eq!(
            event(&mut forward, Stage::Hook, (0, 1), None, at(20)),
            Some((0, 1, 950, None)),
            "a share never falls"
        );
        assert_eq!(forward.all(Stage::Summarizing), 4);
        assert_eq!(event(&mut forward, Stage::Writing, (1, 1), None, at(21)), Some((1, 1, 1_000, None)));
    }
}
