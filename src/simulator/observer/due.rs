//! Maintenance that has not started: the operations that an answer has named, and those that may start by themselves.

use super::{Rule, Verdict, file::File, requests::Asked, require};
use crate::{
    conversation::entry::Entry,
    ids::OperationId,
    session::effects::{Sent, TicketNumber},
};
use serde_json::Value;
use std::{collections::HashMap, sync::Arc};

/// Turns in which nothing runs, from a failed answer that came during maintenance to its recovery.
const TURNS: u32 = 4;

/// The state of an operation that `next` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has not started.
    New,
    /// It runs.
    Open,
    /// It has ended.
    Ended,
}

/// An operation that `next` has named.
#[derive(Debug)]
struct Named {
    id: OperationId,
    /// Whether it starts after a write.
    behind_write: bool,
}

/// The cause of an operation that no request asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A change of the model.
    Switch,
    /// A failed answer.
    Answer,
    /// The size of the context.
    Size,
}

/// Maintenance that is due in a life of a session.
#[derive(Debug, Default)]
pub struct Due {
    /// Ids that an answer has introduced, with the way of its request.
    introduced: HashMap<OperationId, (TicketNumber, Sent)>,
    /// Operations that `next` has named and that have not started.
    next: Vec<Named>,
    /// A failed answer came that no recovery was named for. One may start by itself in one of so many turns.
    reported: u32,
    /// Whether pruning or a larger model made room in this input. A compaction may follow by itself.
    relieved: bool,
    /// The model was changed while something ran. It is decided about in one of so many turns in which nothing runs.
    undecided: u32,
    /// The model was changed, and no compaction was named for it. One may start by itself after the work that runs.
    switched: bool,
    /// A navigation has not moved. A compaction may start by itself in one of so many turns in which nothing runs.
    stayed: u32,
    /// The turn that the daemon runs, around all operations.
    turn: Option<OperationId>,
    /// Whether the messages of a turn may start something: a turn runs, or nothing has started since its end.
    turned: bool,
}

/// Whether a compaction below the threshold may be due because the prompt cache is cold: the newest message reports nothing, and
/// an answer before it did. The time between them is not known here: an append may stall on its way, and the clock may be set.
fn may_be_cold(file: &File) -> bool {
    let mut messages = file.chain().filter(|entry| entry.outline().is_some() || entry.compaction().is_some());
    let reports = |entry: &Arc<Entry>| entry.outline().is_some_and(|outline| outline.measured().is_some());
    let is_cold = messages.next().is_some_and(|newest| !reports(newest));
    // After a compaction only a report since then counts.
    is_cold && messages.take_while(|entry| entry.compaction().is_none()).any(reports)
}

impl Due {
    /// The answer of a request introduces an operation.
    pub fn introduces(&mut self, asked: &Asked, id: OperationId) {
        let by = self.introduced.entry(id).or_insert((asked.number, asked.sent));
        // One answer outside of a batch suffices.
        if asked.sent == Sent::Alone {
            by.1 = Sent::Alone;
        }
    }

    /// An operation of an earlier life waits. Its start event introduces it.
    pub fn recalls(&mut self, id: OperationId) {
        self.introduced.insert(id, (0, Sent::InBatch));
    }

    /// The operations that an answer has introduced.
    pub fn introduced(&self) -> impl Iterator<Item = &OperationId> {
        self.introduced.keys()
    }

    /// The operations that `next` has named and that have not started.
    pub fn named(&self) -> impl Iterator<Item = &OperationId> {
        self.next.iter().map(|next| &next.id)
    }

    /// Whether a compaction may start by itself after a change of the model.
    pub fn is_switched(&self) -> bool {
        self.switched
    }

    /// The request whose answer has introduced an operation.
    pub fn introduced_by(&self, id: &OperationId) -> Option<(TicketNumber, Sent)> {
        self.introduced.get(id).copied()
    }

    /// An append was answered: its `next` names the operation that runs, or one that starts after it.
    pub fn named_next(&mut self, asked: &Asked, result: &Value, standing: Standing, file: &File) -> Verdict {
        let last = asked.params["messages"].as_array().and_then(|messages| messages.last());
        // An answer that is whole may report a prompt that the provider cut. Below 512 tokens nothing is taken for cut.
        let ends_badly = last.is_some_and(|last| {
            let reported = ["input", "cacheRead", "cacheWrite"].iter().filter_map(|part| last["usage"][part].as_u64());
            let may_be_cut = reported.fold(0, u64::saturating_add) >= 512;
            last["stopReason"] == "error" || last["stopReason"] == "length" || may_be_cut
        });
        let next = &result["next"];
        let id = next["operationId"].as_str().map(OperationId::from).filter(|_| standing != Standing::Open);
        let Some(id) = id else {
            self.reported = if ends_badly { TURNS } else { self.reported };
            return Ok(());
        };
        if next["reason"] == "manual" {
            // One after the turn, which its own request has introduced.
            self.next.push(Named { id, behind_write: false });
            return Ok(());
        }
        let usage = &result["usage"];
        let by_answer = next["reason"] == "overflow" || next["reason"] == "incomplete";
        let repeats = next["willRetry"] == true;
        let is_due = match by_answer {
            // An answer that is whole came from a request over the window.
            true => last.is_some_and(|last| last["role"] == "assistant") && (ends_badly || !repeats),
            false => {
                let is_large = usage["contextTokens"].as_u64() > usage["thresholdTokens"].as_u64();
                (is_large || may_be_cold(file)) && usage["autoCompaction"] == true
            }
        };
        require(is_due, Rule::NextIsDue, || format!("{id:?} is due at {usage}: {next}"))?;
        self.names(asked, id, standing, by_answer)
    }

    /// A change of the model was answered: its `next` names the operation that runs, or one that starts after the answer.
    pub fn named_switch(&mut self, asked: &Asked, result: &Value, standing: Standing, busy: bool) -> Verdict {
        if busy {
            // It begins after the operation that runs or is planned, in a turn.
            (self.reported, self.undecided) = (TURNS, TURNS);
        }
        let (next, usage) = (&result["next"], &result["session"]["usage"]);
        let id = next["operationId"].as_str().map(OperationId::from).filter(|_| standing != Standing::Open);
        let Some(id) = id else {
            self.switched |= !asked.params["model"].is_null() || asked.params.get("contextWindow").is_some();
            return Ok(());
        };
        let is_large =
            usage["contextTokens"].as_u64() > usage["thresholdTokens"].as_u64() && usage["autoCompaction"] == true;
        let is_due = is_large && next["reason"] == "model_switch" && next["willRetry"] == false;
        require(is_due, Rule::NextIsDue, || format!("{id:?} is due at {usage}: {next}"))?;
        self.names(asked, id, standing, false)
    }

    fn names(&mut self, asked: &Asked, id: OperationId, standing: Standing, behind_write: bool) -> Verdict {
        require(standing != Standing::Ended, Rule::NextRuns, || {
            format!("`next` of {} names {id:?}, which has ended", asked.number)
        })?;
        self.introduces(asked, id.clone());
        self.next.push(Named { id, behind_write });
        Ok(())
    }

    /// A turn begins in which nothing runs. A recovery that is due starts in one of the first.
    pub fn turn_begins(&mut self) {
        self.reported = self.reported.saturating_sub(1);
        self.undecided = self.undecided.saturating_sub(1);
        self.stayed = self.stayed.saturating_sub(1);
    }

    /// Whether a failed answer or a change of the model may wait for a decision.
    pub fn may_decide(&self) -> bool {
        self.reported > 0 || self.undecided > 0
    }

    /// A navigation has not moved. Maintenance that became due while it ran starts in one of the next turns.
    pub fn stayed(&mut self) {
        (self.stayed, self.undecided) = (TURNS, TURNS);
    }

    /// Pruning or a larger model made room.
    pub fn relieved(&mut self) {
        self.relieved = true;
    }

    /// An operation starts. Returns whether an answer has introduced it, or it may start by itself. `waits`: a request for
    /// a context that is to fit waits.
    pub fn starts(&mut self, id: &OperationId, cause: Option<Cause>, waits: bool) -> bool {
        self.next.retain(|next| next.id != *id);
        let introduced = self.introduced.contains_key(id);
        let by_itself = match cause {
            None => false,
            Some(Cause::Switch) => std::mem::take(&mut self.switched),
            Some(Cause::Size) => self.relieved || waits || self.stayed > 0,
            Some(Cause::Answer) => self.reported > 0,
        };
        if cause == Some(Cause::Answer) && !introduced {
            self.reported = 0;
        }
        introduced || by_itself
    }

    /// An input was handled.
    pub fn after_input(&mut self, log_is_out: bool) -> Verdict {
        self.relieved = false;
        let late = self.next.iter().find(|next| !(next.behind_write && log_is_out));
        require(late.is_none(), Rule::NextRuns, || format!("{late:?} never started"))
    }

    /// The process dies.
    pub fn crashed(&mut self) {
        self.next.clear();
        self.turn = None;
    }

    /// A turn that the daemon runs is about to start.
    pub fn turn_comes(&mut self) {
        self.turned = true;
    }

    /// A turn that the daemon runs starts, or ends.
    pub fn turns(&mut self, turn: Option<OperationId>) {
        self.turn = turn;
    }

    /// The turn that the daemon runs.
    pub fn turn(&self) -> Option<&OperationId> {
        self.turn.as_ref()
    }

    /// An operation starts. Whether the messages of a turn may be the reason.
    pub fn starts_by_turn(&mut self) -> bool {
        std::mem::replace(&mut self.turned, self.turn.is_some())
    }
}
