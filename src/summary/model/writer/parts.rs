//! The parts of a summary that are written so far. A part that passed the gate stays: neither the other part nor a later
//! candidate costs it.

use super::{Part, Written};
use crate::{
    redact::Clean,
    summary::{
        made::{Made, PartOrigin, SummaryPart},
        model::{check::Accepted, material::Material},
    },
};

/// A part that passed the gate.
#[derive(Debug, Clone)]
pub(super) struct Done {
    /// Its text.
    pub text: Accepted,
    /// Its origin. None: the previous summary, which stays without a request.
    pub by: Option<PartOrigin>,
}

/// The written parts.
#[derive(Debug, Default)]
pub(super) struct Parts {
    history: Option<Done>,
    turn_prefix: Option<Done>,
}

impl Parts {
    /// Whether a part is written.
    pub fn has(&self, part: Part) -> bool {
        match part {
            Part::History => self.history.is_some(),
            Part::TurnPrefix => self.turn_prefix.is_some(),
            Part::Short => false,
        }
    }

    /// Whether no part is written.
    pub fn is_empty(&self) -> bool {
        self.history.is_none() && self.turn_prefix.is_none()
    }

    /// Keeps a part.
    pub fn keep(&mut self, part: Part, done: Done) {
        match part {
            Part::History => self.history = Some(done),
            Part::TurnPrefix => self.turn_prefix = Some(done),
            Part::Short => {}
        }
    }

    /// The whole summary with its origin; none while a part is missing. `last`: the origin of a summary that no request
    /// was needed for.
    pub fn whole(&self, material: &Material, last: &PartOrigin) -> Option<(Clean, Made)> {
        if self.history.is_none() && material.has_history() || self.turn_prefix.is_none() && !material.prefix.is_empty()
        {
            return None;
        }
        let text = |done: &Option<Done>| done.as_ref().map(|done| done.text.clone());
        let by = |done: &Option<Done>| done.as_ref().and_then(|done| done.by.clone());
        let (history, turn_prefix) = (by(&self.history), by(&self.turn_prefix));
        let any = history.clone().or_else(|| turn_prefix.clone()).unwrap_or_else(|| last.clone());
        let made = Made::of_parts(history.unwrap_or_else(|| any.clone()), turn_prefix.unwrap_or(any));
        let text = material.compose(text(&self.history).as_ref(), text(&self.turn_prefix).as_ref());
        Some((text, made))
    }

    /// The part that a model wrote, where the other part is missing.
    pub fn half(self) -> Option<(Written, Made)> {
        let extracted = PartOrigin::default();
        match (self.history, self.turn_prefix) {
            (Some(Done { text, by: Some(by) }), None) => {
                Some((Written::Part(SummaryPart::History, text), Made::of_parts(by, extracted)))
            }
            (None, Some(Done { text, by: Some(by) })) => {
                Some((Written::Part(SummaryPart::TurnPrefix, text), Made::of_parts(extracted, by)))
            }
            _ => None,
        }
    }
}
