//! The ceiling of automatic maintenance: no request of it is sent when the tokens of the last hour have reached the
//! ceiling. So the tokens of an hour pass it by no more than the requests in flight report beyond their claims.

use super::{Rule, Verdict, require};
use crate::{
    conversation::{entry::Entry, spending::Trigger},
    ids::OperationId,
    protocol::events::{Event, Reason},
};
use std::sync::Arc;

/// Milliseconds of an hour.
const HOUR: i64 = 3_600_000;

/// The tokens of automatic maintenance, with the times of day at which their reports reached the session.
#[derive(Debug, Default)]
pub struct Budget {
    spent: Vec<(i64, u64)>,
    /// The time of the last input.
    now: i64,
    /// Number of the requests to models so far.
    requests: u64,
    /// Whether the compaction that runs is automatic.
    automatic: bool,
    /// The summary that is made ahead of a compaction.
    ahead: Option<OperationId>,
    /// Tokens of the last hour when automatic maintenance sent its latest requests.
    at_request: Option<u64>,
}

impl Budget {
    /// The session is opened. It knows the costs that its file has.
    pub fn opens(&mut self, entries: &[Arc<Entry>]) {
        let costs = entries.iter().filter_map(|entry| entry.cost()).filter(|cost| cost.trigger.is_automatic());
        self.spent = costs.map(|cost| (cost.at, cost.tokens())).collect();
        (self.automatic, self.ahead, self.at_request) = (false, None, None);
    }

    /// So many requests were sent to models until now.
    pub fn sent(&mut self, requests: u64, now: i64) {
        self.now = now;
        if requests > self.requests && (self.automatic || self.ahead.is_some()) {
            let recent = self.spent.iter().filter(|(at, _)| now - at < HOUR).map(|(_, tokens)| *tokens);
            self.at_request = Some(recent.fold(0, u64::saturating_add));
        }
        self.requests = requests;
    }

    /// A request reported its cost.
    pub fn spends(&mut self, trigger: Trigger, tokens: u64) {
        if trigger.is_automatic() {
            self.spent.push((self.now, tokens));
        }
    }

    /// The draft of a summary begins ahead of its compaction.
    pub fn drafts_ahead(&mut self, id: &OperationId) {
        self.ahead = Some(id.clone());
    }

    /// A draft was made, or cannot be made.
    pub fn drafted(&mut self, id: &OperationId) {
        self.ahead.take_if(|ahead| ahead == id);
    }

    /// An event is sent.
    pub fn event(&mut self, event: &Event) {
        match event {
            // It ends a summary that is made ahead, or takes it over.
            Event::CompactionStart { reason, .. } => {
                (self.automatic, self.ahead) = (*reason != Reason::Manual, None);
            }
            Event::CompactionEnd { .. } => self.automatic = false,
            _ => {}
        }
    }

    /// An input was handled under this ceiling.
    ///
    /// # Errors
    /// When an automatic compaction sent a request above it.
    pub fn holds(&mut self, ceiling: Option<u64>) -> Verdict {
        let (Some(spent), Some(ceiling)) = (self.at_request.take(), ceiling) else { return Ok(()) };
        require(spent < ceiling, Rule::BudgetHolds, || format!("a model is asked at {spent} of {ceiling} tokens"))
    }
}
