//! Requests that wait for their turn: refused while an operation runs, cancelled while they wait, and ended with the session.

pub mod daemon;

use super::{
    Rule, Verdict,
    file::File,
    operations::Operations,
    requests::{Asked, Requests},
    require,
};
use crate::{
    ids::EntryId,
    protocol::errors::Failure,
    session::{effects::TicketNumber, jobs::Job, log_work::LogWork, stop::Stop},
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The request whose handling ends the session.
#[derive(Debug, Default)]
enum Ending {
    /// None.
    #[default]
    No,
    /// `session/close`, which waits for the requests before it.
    Close,
    /// A stop, which waits for nothing.
    Stop,
}

/// The requests of a life, by their turns.
#[derive(Debug, Default)]
pub struct Turns {
    /// The newest request that has reached the core.
    newest: TicketNumber,
    /// The newest request that a write may answer, while one is out.
    written: Option<TicketNumber>,
    /// Requests that were cancelled before their turn, each with the number of lines in the file then.
    cancelled: BTreeMap<TicketNumber, usize>,
    /// Contexts with `wait` that came before the index. They wait for no append that waits for the index.
    before_index: BTreeSet<TicketNumber>,
    ending: Ending,
    /// Whether the session is to end when it is idle.
    finishes: bool,
    /// Whether the log is lost.
    lost: bool,
    /// The log came back, and no turn has begun since.
    before_turn: bool,
    /// Stops the index that is being built.
    index: Option<Stop>,
}

impl Turns {
    /// A request reaches the core.
    pub fn reached(&mut self, number: TicketNumber, requests: &Requests, is_indexed: bool) {
        self.newest = self.newest.max(number);
        if !is_indexed && requests.open(number).is_some_and(Asked::waits_as_context) {
            self.before_index.insert(number);
        }
        let closes = requests.open(number).is_some_and(|asked| asked.method == "session/close");
        if closes && matches!(self.ending, Ending::No) {
            self.ending = Ending::Close;
        }
    }

    /// Whether a request may have had its turn before the index was there, and waited for the end of a compaction since.
    pub fn is_from_before_index(&self, number: TicketNumber) -> bool {
        self.before_index.contains(&number)
    }

    /// The session is told to end now.
    pub fn stops(&mut self) {
        self.ending = Ending::Stop;
    }

    /// The session is told to end when it is idle.
    pub fn finishes(&mut self) {
        self.finishes = true;
    }

    /// Whether a compaction after the turn may end as cancelled: no turn comes.
    pub fn may_end_later(&self) -> bool {
        self.finishes
    }

    /// Whether the session ends, so that its operations may end as cancelled.
    pub fn ends(&self) -> bool {
        self.lost || !matches!(self.ending, Ending::No)
    }

    /// Whether the log is lost.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// The log is back, or lost.
    pub fn log_is_back(&mut self, is_lost: bool) {
        self.written = None;
        self.lost |= is_lost;
        self.before_turn = true;
    }

    /// A turn begins.
    pub fn begins(&mut self) {
        self.before_turn = false;
    }

    /// Work is given to the log.
    pub fn log_goes_out(&mut self, work: &LogWork) -> Verdict {
        self.written = matches!(work, LogWork::Append(_) | LogWork::Undo(_)).then_some(self.newest);
        require(!self.lost, Rule::LostLogEnds, || "a lost log is given work".to_owned())
    }

    /// A job starts.
    pub fn job_starts(&mut self, job: &Job) {
        if let Job::Index(_, stop) = job {
            self.index = Some(stop.clone());
        }
    }

    /// The client cancels a request, while the file has so many lines.
    pub fn request_cancelled(&mut self, number: TicketNumber, requests: &Requests, lines: usize) {
        let Some(asked) = requests.open(number) else { return };
        let may_be_written = self.written.is_some_and(|newest| number <= newest);
        if waits(asked) && !may_be_written {
            self.cancelled.insert(number, lines);
        }
    }

    /// Whether the client cancelled a request before its turn.
    pub fn is_cancelled(&self, number: TicketNumber) -> bool {
        self.cancelled.contains_key(&number)
    }

    /// A request was refused.
    pub fn refused(&self, asked: &Asked, failure: &Failure) -> Verdict {
        let may = matches!(
            failure,
            Failure::Cancelled
                | Failure::Storage { .. }
                | Failure::Store { .. }
                | Failure::NotFound { .. }
                | Failure::Overloaded { .. }
        );
        require(may || self.lost || !self.is_cancelled(asked.number), Rule::CancelledAnswer, || {
            format!("{} {} was cancelled, and is refused with {failure:?}", asked.method, asked.number)
        })
    }

    /// Whether the entries of an append were in the file before its request was cancelled. Its answer may wait for counts.
    fn was_written(&self, asked: &Asked, result: &Value, file: &File) -> bool {
        let first = result["entryIds"][0].as_str().map(EntryId::from).filter(|_| asked.method == "session/append");
        let place = first.and_then(|id| file.newest(&id));
        place.zip(self.cancelled.get(&asked.number)).is_some_and(|(place, lines)| place < *lines)
    }

    /// A request was answered with a result.
    pub fn answered(&self, asked: &Asked, result: &Value, operations: &Operations, file: &File) -> Verdict {
        let compacts = matches!(asked.method, "session/compact" | "session/navigate");
        let ended_as_cancelled = compacts && (result["outcome"] == "cancelled" || result["outcome"].is_null());
        let may = ended_as_cancelled || self.was_written(asked, result, file);
        require(may || !self.is_cancelled(asked.number), Rule::CancelledAnswer, || {
            format!("{} {} was cancelled while it waited, and is answered", asked.method, asked.number)
        })?;
        let rewrites = match asked.method {
            "session/undo_compaction" | "session/reset" => true,
            "session/prune" => asked.params["dryRun"] != true,
            _ => false,
        };
        let busy = operations.busy();
        require(!rewrites || busy.is_none(), Rule::RefusedWhileBusy, || {
            format!("{} {} is answered while {busy:?} works on the context", asked.method, asked.number)
        })
    }

    /// An input was handled. After it so many commands wait for their turn, and so many contexts for an end.
    pub fn after_input(&self, waiting: usize, held: usize, operations: &Operations) -> Verdict {
        let busy = operations.busy();
        // A compaction that was cancelled before its start ends with the turn after the log's return.
        let ends = operations.log_is_out() || self.before_turn && operations.is_planned();
        let decides = operations.is_counting() || operations.may_decide();
        require(held == 0 || busy.is_some() || ends || decides, Rule::HeldContext, || {
            format!("{held} contexts wait, and nothing runs")
        })?;
        require(!self.lost || busy.is_none(), Rule::LostLogEnds, || format!("{busy:?} goes on without a log"))?;
        let ends = match self.ending {
            Ending::No => false,
            // The requests before it may wait.
            Ending::Close => waiting == 0 && !operations.log_is_out(),
            Ending::Stop => true,
        };
        if !ends {
            return Ok(());
        }
        let goes_on = operations.that_can_stop();
        require(goes_on.is_none(), Rule::EndsWhatRuns, || format!("{goes_on:?} goes on in a session that ends"))?;
        let builds = self.index.as_ref().is_some_and(|stop| !stop.requested());
        require(!builds, Rule::EndsWhatRuns, || "the index is built for a session that ends".to_owned())
    }

    /// Nothing runs.
    pub fn at_rest(&self) -> Verdict {
        require(!self.lost, Rule::LostLogEnds, || "the session goes on without its log".to_owned())
    }
}

/// Whether a request can be cancelled while it waits.
fn waits(asked: &Asked) -> bool {
    match asked.method {
        "session/append"
        | "session/undo_compaction"
        | "session/reset"
        | "session/pin"
        | "session/unpin"
        | "session/label"
        | "session/prune"
        | "session/configure"
        | "session/navigate" => true,
        "settings/set" => asked.params["scope"] == "session",
        "session/compact" => asked.params["dryRun"] != true,
        _ => asked.waits_as_context(),
    }
}
