//! A request to a model, the reports on its way, and its answer.

use super::{allowance::Allowance, content::Content, failed::Failed, purpose::Purpose, retry::Policy, spent::Spent};
use crate::{
    conversation::{message::Usage, spending::Trigger},
    ids::{OperationId, SessionId},
    models::{
        candidates::{Candidate, Way},
        dialects,
    },
    provider::{
        self, Cache, Delta, Effort, OnDemand, Reasoning, ToolChoice, Trouble, TroubleKind,
        overflow::{Overflow, Reservation, is_far_off},
    },
};
use serde::{Deserialize, Serialize};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Request to a model.
#[derive(Debug, Clone)]
pub struct Request {
    /// Purpose of the answer.
    pub purpose: Purpose,
    /// Session and operation of the request.
    pub origin: Origin,
    /// Model to ask, and how.
    pub candidate: Candidate,
    /// Its texts.
    pub content: Content,
    /// Whether the model may call the tools.
    pub tool_choice: ToolChoice,
    /// Largest answer, in tokens, its thinking not included. `UNLIMITED`: the provider decides.
    pub max_tokens: u64,
    /// How much a model thinks that can.
    pub reasoning: Reasoning,
    /// Whether the request is the beginning of later ones.
    pub cache: Cache,
    /// Its retries.
    pub retry: Policy,
    /// Its limits of time and number.
    pub limits: Limits,
}

/// The largest answer of a request that names no limit.
pub const UNLIMITED: u64 = u64::MAX;

/// Session and operation of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Session.
    pub session: SessionId,
    /// Operation.
    pub operation: OperationId,
    /// Reason of the operation.
    pub trigger: Trigger,
}

/// Limits of a request.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Longest silence of a provider. After it the answer counts as stalled.
    pub stall: Duration,
    /// Longest wait for one answer of the client. None: no limit.
    pub client: Option<Duration>,
    /// End of the time for the request, its retries included. None: no limit.
    pub until: Option<Instant>,
    /// The input by an estimate, in tokens, which is charged where no report states it. 0: unknown.
    pub input: u64,
    /// Number of requests that may still be sent. None: no limit.
    pub quota: Option<Arc<Quota>>,
    /// Tokens that the work may still take, and the most that this request may take. None: no limit.
    pub tokens: Option<(Arc<Allowance>, u64)>,
}

/// A number of requests that may still be sent, shared by all requests of one piece of work.
#[derive(Debug)]
pub struct Quota {
    left: AtomicUsize,
    exceeded: String,
}

impl Quota {
    /// A quota of `most` requests. `exceeded` is the error text of a request beyond it.
    #[must_use]
    pub fn new(most: usize, exceeded: impl Into<String>) -> Self {
        Self { left: AtomicUsize::new(most), exceeded: exceeded.into() }
    }

    /// Adds requests.
    pub fn add(&self, more: usize) {
        self.left.fetch_add(more, Ordering::Relaxed);
    }

    /// Takes one request.
    ///
    /// # Errors
    /// When none is left.
    pub fn take(&self) -> Result<(), Trouble> {
        let one_less = |left: usize| left.checked_sub(1);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => Ok(()),
            Err(_) => Err(Trouble::new(TroubleKind::TooMany, self.exceeded.clone())),
        }
    }
}

/// Report on a request while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Update {
    /// An attempt begins. Pieces of an earlier one are void.
    Begins,
    /// A piece of the answer.
    Delta(Delta),
    /// The answer is complete.
    Complete,
    /// The request failed and is sent again after a wait.
    RetryStart {
        /// Number of the retry, from 1.
        attempt: u32,
        /// Most retries of this request.
        most: u32,
        /// Wait before it.
        delay: Duration,
        /// The failure before it.
        failed: Failed,
    },
    /// A retry ended. Exactly one for each start.
    RetryEnd {
        /// Number of the retry.
        attempt: u32,
        /// Its outcome.
        outcome: RetryOutcome,
    },
    /// An attempt had a cost.
    Spent(Spent),
    /// An attempt at a summary ahead of the threshold failed without a report, and its provider may have read the input. Its
    /// size by an estimate, in tokens. It is no cost.
    AtStake(u64),
}

/// Outcome of a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RetryOutcome {
    /// The model answered.
    Answered,
    /// The request failed again.
    Failed(Failed),
    /// The request was cancelled.
    Cancelled,
}

/// Answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// Text, tool calls, stop reason, and the usage of the attempt that succeeded.
    pub answer: provider::Answer,
    /// Usage of all attempts together.
    pub cost: Usage,
    /// The window that the provider stated where it refused a larger answer first, in tokens.
    pub limit: Option<u64>,
}

/// Tokens that thinking takes beside the answer where it should not: a model that thinks does so even then, and the limit
/// of a provider counts both. An effort that the request names gets its room from the codec.
#[must_use]
pub fn thinking_room(candidate: &Candidate, reasoning: Reasoning) -> u64 {
    if candidate.thinks && reasoning == Reasoning::Off { Effort::Minimal.room() } else { 0 }
}

impl Request {
    /// The request as a provider's codec takes it.
    #[must_use]
    pub fn for_provider(&self) -> provider::Request {
        let Candidate { model, output, thinks, .. } = &self.candidate;
        let most = self.max_tokens.saturating_add(thinking_room(&self.candidate, self.reasoning));
        provider::Request {
            model: dialects::model(&model.id),
            system: self.content.system().map(str::to_owned),
            history: self.content.history().to_vec(),
            turns: self.content.turns().to_vec(),
            question: self.content.question().map(str::to_owned),
            tools: self.content.tools().to_vec(),
            tool_choice: self.tool_choice,
            max_tokens: match output {
                Some(output) => Some(most.min(*output)),
                None => Some(most).filter(|most| *most < UNLIMITED),
            },
            ceiling: *output,
            reasoning: if *thinks { self.reasoning } else { Reasoning::Unsaid },
            cache: self.cache.clone(),
            has_bound_thinking: self.content.has_bound_thinking(),
            compaction: self.on_demand(),
        }
    }

    /// The compaction that it asks for in the place of an answer.
    fn on_demand(&self) -> Option<OnDemand> {
        match &self.candidate.way {
            Way::OnDemand(_) => Some(OnDemand { instructions: self.content.instructions().map(str::to_owned) }),
            _ => None,
        }
    }

    /// The request with a smaller answer, where it was refused for the room kept for its answer alone. None for any other
    /// trouble, and where too little room is left.
    #[must_use]
    pub fn with_less_output(&self, trouble: &Trouble) -> Option<Box<Self>> {
        let refused = trouble.reservation()?;
        // The provider also counts the room for thinking.
        let beside = refused.output().saturating_sub(self.max_tokens);
        let most = refused.next_output(self.limits.input)?.checked_sub(beside)?;
        let helps = most >= Reservation::LEAST_OUTPUT && most < self.max_tokens;
        helps.then(|| Box::new(Self { max_tokens: most, ..self.clone() }))
    }

    /// Forgets the sizes that a refusal of this request states, where they are far off its estimate.
    pub fn doubt(&self, trouble: &mut Trouble) {
        let input = self.limits.input;
        let far_off = match trouble.kind {
            _ if input == 0 => false,
            // Some count the room for the answer, and some do not.
            TroubleKind::Overflow(Overflow { requested: Some(size), .. }) => {
                is_far_off(size, input) && is_far_off(size, input.saturating_add(self.max_tokens))
            }
            TroubleKind::Reserved(refused) => is_far_off(refused.input(), input),
            _ => false,
        };
        if far_off {
            trouble.kind = TroubleKind::Overflow(Overflow::default());
        }
    }
}
