//! The tokens of summaries that are made ahead and used by no compaction.

use super::super::{Rule, Verdict, require};
use crate::{
    ids::OperationId,
    protocol::{events::Event, types::Usage},
};

/// Milliseconds of an hour.
const HOUR: i64 = 3_600_000;

/// The most tokens of an hour that come to nothing, in windows. After them no request is sent.
const WINDOWS: u64 = 2;
/// The part of a size that the session may count, in percent. It counts by a tokenizer, and the models of the simulator by a
/// quarter of the characters: their texts have up to eight characters in a token.
const COUNTED: u64 = 50;
/// Tokens that may come beside each window: the instructions of its request, which are large beside a small window.
const INSTRUCTIONS: u64 = 1_000;

/// A time by both clocks, in milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clocks {
    /// The time of day since 1970. It may be set forward and back.
    pub day: i64,
    /// The clock of timers, which no one sets.
    pub timers: i64,
}

impl Clocks {
    /// Whether it is of the last hour. A session that is open forgets tokens by the clock of timers, and one that is opened
    /// by the time of day.
    fn is_recent(self, now: Self) -> bool {
        now.day - self.day < HOUR && now.timers - self.timers < HOUR
    }
}

/// Tokens of requests, each with the time of its request.
type Tokens = Vec<(Clocks, u64)>;

/// The tokens of summaries ahead, in a life of a session.
#[derive(Debug, Default)]
pub struct Spending {
    /// Tokens of all requests so far.
    sent: u64,
    /// Of those that came to nothing.
    wasted: Tokens,
    /// Of the summary that was begun last, unless a compaction began with it.
    ahead: Option<(OperationId, Tokens)>,
    /// The tokens of the last hour at the newest request.
    at_request: Option<u64>,
}

impl Spending {
    /// A life begins.
    pub fn opens(&mut self) {
        // A request that was in flight at a kill leaves no record in the file, so the next life cannot count it.
        self.ahead = None;
        self.at_request = None;
    }

    /// Requests of so many tokens were sent to models until now.
    pub fn sent(&mut self, tokens: u64, now: Clocks) {
        let new = tokens - std::mem::replace(&mut self.sent, tokens);
        let Some((_, spent)) = self.ahead.as_mut().filter(|_| new > 0) else { return };
        self.wasted.retain(|(at, _)| at.is_recent(now));
        let recent = self.wasted.iter().chain(spent.iter()).filter(|(at, _)| at.is_recent(now));
        self.at_request = Some(recent.map(|(_, tokens)| tokens).sum());
        spent.push((now, new));
    }

    /// A summary begins ahead.
    pub fn begins(&mut self, id: &OperationId) {
        self.comes_to_nothing();
        self.ahead = Some((id.clone(), Vec::new()));
    }

    /// An event of an operation is sent.
    pub fn event(&mut self, id: Option<&OperationId>, event: &Event) {
        if !matches!(
            event,
            Event::CompactionStart { .. } | Event::RecoveryStart { .. } | Event::BranchSummaryStart { .. }
        ) {
            return;
        }
        // A compaction that begins with it uses it.
        self.ahead.take_if(|(ahead, _)| Some(&*ahead) == id);
        self.comes_to_nothing();
    }

    fn comes_to_nothing(&mut self) {
        self.wasted.extend(self.ahead.take().into_iter().flat_map(|(_, spent)| spent));
    }

    /// An input was handled.
    pub fn after_input(&mut self, usage: Option<&Usage>) -> Verdict {
        let (Some(spent), Some(window)) = (self.at_request.take(), usage.and_then(|usage| usage.context_window)) else {
            return Ok(());
        };
        let most = WINDOWS * (window * 100 / COUNTED + INSTRUCTIONS);
        require(spent <= most, Rule::SpendingIsBounded, || {
            format!("a summary is asked for ahead behind {spent} tokens without use, in a window of {window}")
        })
    }
}
