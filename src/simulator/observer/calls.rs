//! Requests to models: a compaction sends few beyond its planned chunks.

use super::{Rule, Verdict, require};
use crate::protocol::events::Event;

/// Most requests beyond the planned chunks: retries, refused answers, other candidates, the short summary.
const MOST_BEYOND_PLAN: u64 = 12;

/// The requests of the compaction that runs.
#[derive(Debug, Default)]
pub struct Calls {
    /// Number of the requests so far.
    sent: u64,
    /// Number of the requests before its start.
    before: u64,
    /// The most chunks that it planned for a model.
    planned: u64,
}

impl Calls {
    /// So many requests were sent so far.
    pub fn sent(&mut self, sent: u64) {
        self.sent = sent;
    }

    /// It plans so many chunks.
    pub fn plans(&mut self, chunks: usize) {
        self.planned = self.planned.max(chunks as u64);
    }

    /// An event is sent.
    pub fn event(&mut self, event: &Event) -> Verdict {
        match event {
            Event::CompactionStart { .. } => (self.before, self.planned) = (self.sent, 0),
            Event::CompactionEnd { .. } => {
                let (sent, planned) = (self.sent - self.before, self.planned);
                return require(sent <= planned + MOST_BEYOND_PLAN, Rule::CallsAreBounded, || {
                    format!("{sent} requests were sent for {planned} chunks")
                });
            }
            _ => {}
        }
        Ok(())
    }
}
