//! One question to the client about an operation: its start and its end, the time for its answer, and its failure.

use crate::{
    ask::{
        access::ModelAccess,
        client::{HookCall, Unanswered},
        clock::{after, within},
    },
    protocol::{
        errors::Failure,
        events::HookOutcome,
        types::{HookEvent, OnFailure},
    },
    session::{
        gate::Gate,
        hooks::Hooks,
        jobs::progress::{HookStep, Progress, Tell},
    },
    text::{self, faults},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The longest reason of a hook that is sent on, in characters. The texts of a client have any length, and an event a limit.
const LONGEST_REASON: usize = 1_000;

/// Asks the client the hooks of one operation.
#[derive(Clone, Copy)]
pub struct Questions<'a> {
    /// The hooks of the session.
    pub hooks: &'a Hooks,
    /// Access to the client and to the clock.
    pub access: &'a ModelAccess,
    /// Receives the steps.
    pub tell: Tell<'a>,
}

/// The reason why a hook has no usable answer.
pub enum Unusable {
    /// Its time is over.
    Late,
    /// The client answered with an error or another form, or is gone.
    Wrong(String),
}

impl Questions<'_> {
    /// The answer of the client. None where it is null.
    ///
    /// # Errors
    /// When no usable answer comes in time.
    pub async fn ask<T: DeserializeOwned>(&self, name: &'static str, params: Value) -> Result<Option<T>, Unusable> {
        let clock = &*self.access.routes.clock;
        let asked = self.access.routes.client.hook(HookCall { name, params });
        match within(clock, after(clock.now(), self.hooks.timeout), asked).await {
            None => Err(Unusable::Late),
            Some(Err(unanswered)) => Err(Unusable::Wrong(unanswered.to_string())),
            Some(Ok(answer)) => {
                faults::read_value(answer).map_err(|problem| Unusable::Wrong(Unanswered::Garbled(problem).to_string()))
            }
        }
    }

    /// The time for an answer, in milliseconds.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        u64::try_from(self.hooks.timeout.as_millis()).ok()
    }

    /// Reports that a hook begins. The gate opens when its start event was sent.
    #[must_use]
    pub fn begins(&self, hook: HookEvent) -> Gate {
        let sent = Gate::default();
        (self.tell)(Progress::Hook(HookStep::HookBegins { hook, sent: sent.clone() }));
        sent
    }

    /// Reports that a hook has ended.
    pub fn ends(&self, hook: HookEvent, outcome: HookOutcome, why: Option<String>) {
        let why = why.as_deref().map(clipped);
        (self.tell)(Progress::Hook(HookStep::HookEnds { hook, outcome, why }));
    }

    /// Ends a hook that failed, as its registration says.
    ///
    /// # Errors
    /// When the registration says `abort`.
    pub fn fails(&self, hook: HookEvent, unusable: Unusable) -> Result<(), Failure> {
        let (outcome, why) = match unusable {
            Unusable::Late => (HookOutcome::Timeout, format!("no answer within {} ms", self.hooks.timeout.as_millis())),
            Unusable::Wrong(why) => (HookOutcome::Error, why),
        };
        self.ends(hook, outcome, Some(why));
        match self.hooks.on_failure {
            OnFailure::Continue => Ok(()),
            OnFailure::Abort => Err(Failure::Cancelled),
        }
    }
}

/// A reason without its middle where it is long.
#[must_use]
pub fn clipped(why: &str) -> String {
    text::clip_middle(why, LONGEST_REASON, " … ")
}
