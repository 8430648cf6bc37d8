//! Compactions after the turn: each waits for a complete answer without calls, and starts after it.

use super::{
    Rule, Verdict, Violation,
    file::File,
    requests::{Asked, Requests},
    require,
};
use crate::{
    conversation::entry::{Body, Entry},
    ids::OperationId,
    log::{Access, Unfinished},
    protocol::types::Outcome,
    session::effects::TicketNumber,
};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// The compactions after the turn of a life of a session.
#[derive(Debug, Default)]
pub struct Later {
    /// Those that the answer of their request has introduced.
    introduced: HashSet<OperationId>,
    /// Those of them that have not started.
    pending: Vec<OperationId>,
    /// Those of them whose work another compaction, or a reset, has done. They end as skipped.
    superseded: HashSet<OperationId>,
    /// The operations that were planned, by whether the turn was over then.
    planned: HashMap<OperationId, bool>,
    /// Whether a turn that was over starts nothing: the session was opened or moved, and no message came since.
    rests: bool,
    /// Whether the client was told that the newest entry could not be written.
    is_unrecorded: bool,
    /// Those that have ended, in this life or one before.
    over: HashSet<OperationId>,
}

impl Later {
    /// A plan is asked for.
    pub fn plans(&mut self, id: &OperationId, file: &File) {
        self.planned.insert(id.clone(), turn_is_over(file));
    }

    /// Whether the turn was over when an operation was planned.
    pub fn was_over(&self, id: &OperationId) -> Option<bool> {
        self.planned.get(id).copied()
    }

    /// A request for a compaction was answered. `ends`: whether an operation that has not started was cancelled.
    pub fn answered(
        &mut self,
        asked: &Asked,
        result: &Value,
        ends: impl Fn(&OperationId) -> bool,
        file: &File,
    ) -> Verdict {
        let id = result["operationId"].as_str().map(OperationId::from).filter(|_| asked.comes_later());
        let Some(id) = id else { return Ok(()) };
        if let Some(outcome) = result["outcome"].as_str() {
            let is_over = outcome == "cancelled" || result["skippedReason"] == "superseded";
            return self.began_behind_turn(&id, is_over, file);
        }
        if self.pending.contains(&id) {
            return Ok(());
        }
        // A compaction that was planned after the turn starts with its answer.
        let starts_now = self.was_over(&id) == Some(true);
        let other = self.pending.iter().find(|id| !ends(id) && !starts_now);
        require(other.is_none(), Rule::RefusedWhileBusy, || {
            format!("{id:?} is to start after the turn, and {other:?} is, too")
        })?;
        self.introduced.insert(id.clone());
        self.pending.push(id);
        Ok(())
    }

    /// An operation starts.
    pub fn starts(&mut self, id: &OperationId) {
        self.pending.retain(|pending| pending != id);
    }

    /// An operation ends.
    pub fn ends(&mut self, id: &OperationId, outcome: Option<Outcome>, file: &File) -> Verdict {
        if !self.introduced.contains(id) {
            return Ok(());
        }
        self.over.insert(id.clone());
        // A compaction that gives way is not planned.
        let gives_way = outcome == Some(Outcome::Skipped) && !self.planned.contains_key(id);
        self.began_behind_turn(id, outcome == Some(Outcome::Cancelled) || gives_way, file)
    }

    fn began_behind_turn(&self, id: &OperationId, is_excused: bool, file: &File) -> Verdict {
        let was_over = self.planned.get(id).is_some_and(|over| *over);
        require(was_over || is_excused || file.another_wrote(), Rule::AfterTheTurn, || {
            format!("{id:?} was planned before the turn was over")
        })
    }

    /// An append was answered: the operation that `next` names starts after the turn that it ends. `runs`: whether an
    /// operation runs.
    pub fn named_next(
        &self,
        asked: &Asked,
        result: &Value,
        runs: impl Fn(&OperationId) -> bool,
        requests: &Requests,
        file: &File,
    ) -> Verdict {
        let next = &result["next"];
        let id = next["operationId"].as_str().map(OperationId::from).filter(|_| next["reason"] == "manual");
        let Some(id) = id.filter(|id| !runs(id)) else { return Ok(()) };
        let waits = self.pending.contains(&id) || requests.waiting_for_compaction().any(Asked::comes_later);
        // Its entries are announced after the answer.
        let newest = file.chain().find(|entry| entry.outline().is_some());
        let is_over = newest.is_some_and(|newest| ends_turn(newest, file));
        let is_due = waits && (is_over || file.another_wrote());
        require(is_due, Rule::NextIsDue, || format!("append {} names {id:?}, which is not due", asked.number))
    }

    /// An entry was announced.
    pub fn announced(&mut self, entry: &Entry) {
        if matches!(entry.body, Body::Compaction(_) | Body::ResetBoundary(_)) {
            self.superseded.extend(self.pending.iter().cloned());
        }
        if entry.is_ours("after_turn") {
            self.is_unrecorded = false;
        }
    }

    /// The client is told that the newest entry could not be written.
    pub fn not_recorded(&mut self) {
        self.is_unrecorded = true;
    }

    /// Whether the client knows that the file may bring back a compaction which was cancelled.
    pub fn is_unrecorded(&self) -> bool {
        self.is_unrecorded
    }

    /// Whether an operation that waits gives way.
    pub fn is_superseded(&self, id: &OperationId) -> bool {
        self.superseded.contains(id)
    }

    /// The operations that wait for the end of the turn.
    pub fn pending(&self) -> &[OperationId] {
        &self.pending
    }

    /// The session was left alone for a long time, and nothing runs.
    pub fn left_alone(&self, requests: &Requests, file: &File) -> Verdict {
        let waiting = requests.waiting_for_compaction().find(|asked| asked.comes_later()).map(|asked| asked.number);
        let waits = !self.pending.is_empty() || waiting.is_some();
        let free = !file.another_wrote();
        require(!(waits && free && !self.rests && turn_is_over(file)), Rule::LaterStarts, || {
            format!("the turn is over, and {:?} or that of request {waiting:?} never started", self.pending)
        })
    }

    /// The session is at another entry.
    pub fn moves(&mut self) {
        self.rests = true;
    }

    /// A message came.
    pub fn goes_on(&mut self) {
        self.rests = false;
    }

    /// The compaction of this life that waits by the file: an opening now would bring it back.
    pub fn brought_back(&self, file: &File) -> Option<OperationId> {
        stored(file).filter(|id| self.introduced.contains(id) && !file.another_wrote())
    }

    /// A life begins: the compaction that waits by the file waits on, unless it had started. Returns it.
    pub fn opens(
        &mut self,
        file: &File,
        running: &[Unfinished],
        access: Access,
    ) -> Result<Option<OperationId>, Violation> {
        let (mut over, may_be_outdated) = (std::mem::take(&mut self.over), self.is_unrecorded);
        let waits = stored(file).filter(|_| access == Access::Write);
        if let Some(id) = &waits {
            let has_started = running.iter().any(|left| left.operation_id == *id);
            let is_back = !has_started && over.contains(id) && !may_be_outdated && !file.another_wrote();
            require(!is_back, Rule::EndedOnce, || format!("{id:?} has ended, and a restart brings it back"))?;
            match has_started {
                true => over.insert(id.clone()),
                false => over.remove(id),
            };
        }
        let waits = waits.filter(|id| running.iter().all(|left| left.operation_id != *id));
        *self = Self {
            rests: true,
            is_unrecorded: may_be_outdated,
            over,
            introduced: waits.iter().cloned().collect(),
            pending: waits.iter().cloned().collect(),
            ..Self::default()
        };
        Ok(waits)
    }
}

/// The compaction that waits by the newest entry of the file.
fn stored(file: &File) -> Option<OperationId> {
    // A session is opened from its newest compaction on that is not undone.
    let mut undone = HashSet::new();
    let mut since = file.chain().take_while(|entry| {
        undone.extend(entry.undoes());
        let cuts = matches!(entry.body, Body::Compaction(_) | Body::ResetBoundary(_));
        !cuts || undone.contains(&entry.id)
    });
    let newest = since.find_map(|entry| entry.ours("after_turn"))?;
    newest["params"].is_object().then(|| newest["operationId"].as_str().map(OperationId::from))?
}

/// Whether the newest message that was announced ends its turn. A message of a write that was not confirmed is in the file,
/// and not in the session.
fn turn_is_over(file: &File) -> bool {
    let known = |entry: &&Arc<Entry>| file.newest(&entry.id).is_some_and(|place| file.is_announced(place));
    let mut messages = file.announced_chain().filter(|entry| entry.outline().is_some());
    messages.find(known).is_some_and(|newest| ends_turn(newest, file))
}

/// Whether a message is a complete answer without calls that stands in the context.
fn ends_turn(message: &Entry, file: &File) -> bool {
    if file.removal_of(&message.id).is_some() {
        return false;
    }
    let line: Value = serde_json::from_str(message.line()).unwrap_or_default();
    let message = &line["message"];
    let calls = message["content"].as_array().is_some_and(|blocks| blocks.iter().any(|it| it["type"] == "toolCall"));
    let is_whole = !matches!(message["stopReason"].as_str(), Some("error" | "aborted" | "length"));
    message["role"] == "assistant" && is_whole && !calls
}

/// The request that waits for the end of an operation which the answer of another one has introduced.
pub fn joined(requests: &Requests) -> Option<TicketNumber> {
    requests.waiting_for_compaction().find(|asked| asked.comes_later()).map(|asked| asked.number)
}

/// The request that asks for the operation that starts now, among those that are answered at its end.
pub fn owner(later: &Later, id: &OperationId, requests: &Requests) -> Option<TicketNumber> {
    let waiting = || requests.waiting_for_compaction();
    let found = match later.was_over(id) {
        // It was planned before its start. One that comes later would have been first after a turn.
        Some(false) => waiting().find(|asked| !asked.comes_later()),
        Some(true) => None,
        // It starts before it is planned, or was cancelled before.
        None => waiting().find(|asked| asked.comes_later()),
    };
    found.or_else(|| waiting().next()).map(|asked| asked.number)
}
