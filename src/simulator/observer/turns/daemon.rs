//! Turns that the daemon runs, in sessions whose clients ask for them at any time: each start has one end, also over crashes, each
//! message that was accepted is in the conversation once or waits, and no tool is executed twice.

use super::super::{Rule, Verdict, require};
use crate::{
    conversation::entry::Entry,
    ids::OperationId,
    log::{Access, Unfinished, memory::Disk},
    protocol::{events::Event, types::Status},
    session::{
        core::{Core, turns::queue_in_file},
        effects::{Answer, Effect, TicketNumber},
        jobs::{Job, turn::TurnOrder},
    },
    wire::outbox::About,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The turns of a session.
#[derive(Debug, Default)]
pub struct DaemonTurns {
    /// Requests without an answer, with their texts.
    asked: BTreeMap<TicketNumber, Option<String>>,
    /// Messages that were accepted.
    accepted: Vec<String>,
    /// Messages that a client took out of the queue.
    cleared: BTreeSet<String>,
    /// Requests that take messages out.
    clears: BTreeSet<TicketNumber>,
    /// Turns, and their calls and retries, whose end was not sent.
    open: Vec<(OperationId, String)>,
    /// Turns that a life before has left without an end. Calls and retries of them end with them.
    owed: BTreeSet<String>,
    /// Turns of lives before. The process may have died between an end and its record, and the next one sends an end again.
    before: BTreeSet<String>,
    /// Whether the lock of this life names its turns.
    has_lock: bool,
    /// Turns and calls that have ended.
    ended: BTreeSet<(String, String)>,
    executed: BTreeSet<(String, String)>,
    /// Turns that answers have introduced.
    introduced: BTreeSet<String>,
    /// Whether a process died before it had answered a message. The queue may have its turn.
    unanswered: bool,
}

/// Whether an id is that of a turn.
pub fn is_turn(id: &OperationId) -> bool {
    id.as_str().starts_with("turn-")
}

impl DaemonTurns {
    /// A request is sent.
    pub fn sent(&mut self, request: TicketNumber, method: &str, params: &Value) {
        match method {
            "session/prompt" => {
                self.asked.insert(request, params["message"].as_str().map(str::to_owned));
            }
            "session/clear_queue" => {
                self.clears.insert(request);
            }
            _ => {}
        }
    }

    /// A life begins with this record in its lock. A start may be recorded that was not sent.
    pub fn opens(&mut self, running: &[Unfinished], access: Access) {
        self.has_lock = access == Access::Write;
        self.before.extend(running.iter().map(|it| it.operation_id.to_string()));
        if access == Access::Ephemeral {
            self.owed.clear();
        }
    }

    /// The process dies.
    pub fn crashed(&mut self) {
        let turns = self.open.drain(..).filter(|(_, inside)| inside.is_empty() && self.has_lock);
        self.owed.extend(turns.map(|(turn, _)| turn.to_string()));
        self.before.append(&mut self.introduced.clone());
        self.ended.clear();
        self.unanswered |= !self.asked.is_empty();
        self.asked.clear();
        if !std::mem::take(&mut self.clears).is_empty() {
            self.may_be_cleared();
        }
    }

    /// Whether this status names a turn that an answer has introduced. A turn of the queue may be left out.
    pub fn is_introduced_in(&self, turn: &OperationId, status: &Status) -> bool {
        let is_known = self.unanswered || self.introduced.contains(turn.as_str());
        is_known && status.operation_id.as_ref() == Some(turn)
    }

    /// A request that takes messages out has failed, before or after its write.
    fn may_be_cleared(&mut self) {
        self.cleared.extend(self.accepted.iter().cloned());
    }

    /// An effect.
    ///
    /// # Errors
    /// When it breaks a rule.
    pub fn performed(&mut self, effect: &Effect) -> Verdict {
        match effect {
            Effect::Emit(About { turn: Some(turn), .. }, event) => self.sends(turn, event),
            Effect::Answer(request, answer) => self.answers(*request, answer),
            Effect::Start(job) => match &**job {
                Job::Turn(TurnOrder::Execute(order)) => {
                    for call in &order.calls {
                        let call = (order.id.to_string(), call.id.to_string());
                        require(self.executed.insert(call.clone()), Rule::ToolOnce, || format!("{call:?} again"))?;
                    }
                    Ok(())
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn sends(&mut self, turn: &OperationId, event: &Event) -> Verdict {
        let what = match event {
            Event::TurnStart {} => (true, String::new()),
            Event::TurnEnd { .. } => (false, String::new()),
            Event::ToolStart { tool_call_id, .. } => (true, tool_call_id.to_string()),
            Event::ToolEnd { tool_call_id, .. } => (false, tool_call_id.to_string()),
            Event::RetryStart { attempt, .. } => (true, format!("retry {attempt}")),
            Event::RetryEnd { attempt, .. } => (false, format!("retry {attempt}")),
            _ => return Ok(()),
        };
        let (starts, what) = (what.0, (turn.clone(), what.1));
        let is_open = self.open.contains(&what);
        if starts {
            if what.1.is_empty() {
                self.introduced.insert(turn.to_string());
            }
            require(!is_open, Rule::StartedOnce, || format!("{what:?} starts again"))?;
            // A model may name calls of different answers alike.
            let call = (what.0.to_string(), what.1.clone());
            if !what.1.is_empty() {
                self.ended.remove(&call);
                self.executed.remove(&call);
            }
            self.open.push(what);
            return Ok(());
        }
        let inner = self.open.iter().any(|(of, call)| of == turn && what.1.is_empty() && !call.is_empty());
        require(!inner, Rule::InnerEndsFirst, || format!("{turn:?} ends before its calls"))?;
        let was_before = self.before.contains(turn.as_str());
        if what.1.is_empty() {
            self.owed.remove(turn.as_str());
        }
        require(is_open || was_before, Rule::EndedOnce, || format!("{what:?} ends, and has not started"))?;
        self.open.retain(|it| *it != what);
        let is_first = self.ended.insert((what.0.to_string(), what.1.clone()));
        require(is_first, Rule::EndedOnce, || format!("{what:?} ends again"))
    }

    fn answers(&mut self, request: TicketNumber, answer: &Answer) -> Verdict {
        let result = match answer {
            Answer::Result(result) => serde_json::from_str::<Value>(result.get()).unwrap_or_default(),
            _ => Value::Null,
        };
        if self.clears.remove(&request) {
            if result.is_null() {
                self.may_be_cleared();
            }
            for list in ["steering", "followUp"] {
                let texts = result[list].as_array().into_iter().flatten();
                self.cleared.extend(texts.filter_map(|it| it["text"].as_str().map(str::to_owned)));
            }
        }
        self.introduced.extend(result["turnId"].as_str().map(str::to_owned));
        if let Some(Some(text)) = self.asked.remove(&request)
            && result["disposition"].is_string()
        {
            self.accepted.push(text);
        }
        Ok(())
    }

    /// An input was handled.
    ///
    /// # Errors
    /// When a turn of a life before has no end.
    pub fn after_input(&self) -> Verdict {
        let none = self.owed.is_empty() || !self.has_lock;
        require(none, Rule::EveryStartEnds, || format!("no end of {:?}, which a life before has left", self.owed))
    }

    /// Everything was answered, and nothing runs. The entries of an ephemeral session are on no disk.
    ///
    /// # Errors
    /// When a turn is open, or a message is lost or was delivered twice.
    pub fn at_rest(&self, core: &Core, disk: &Disk) -> Verdict {
        require(self.open.is_empty(), Rule::EveryStartEnds, || format!("{:?} have no end", self.open))?;
        if core.state().file.is_none() {
            return Ok(());
        }
        let queue = queue_in_file(core.state());
        let waiting: Vec<&str> = queue.steering.iter().chain(&queue.follow_up).map(|it| it.text.as_str()).collect();
        let text = String::from_utf8_lossy(&disk.bytes()).into_owned();
        let mut said: BTreeMap<String, usize> = BTreeMap::new();
        for line in text.lines() {
            let Ok(entry) = Entry::parse(line.into()) else { continue };
            if entry.kind != "message" {
                continue;
            }
            let line: Value = serde_json::from_str(line).unwrap_or_default();
            if let Some(text) = line["message"]["content"].as_str().filter(|text| text.starts_with("prompt ")) {
                *said.entry(text.to_owned()).or_default() += 1;
            }
        }
        for text in &self.accepted {
            let times = said.get(text).copied().unwrap_or(0);
            let waits = waiting.iter().filter(|waiting| *waiting == text).count();
            let right = times + waits == 1 || self.cleared.contains(text) && times + waits == 0;
            require(right, Rule::DeliveredOnce, || format!("{text:?} was delivered {times} times, and {waits} wait"))?;
        }
        let twice = said.iter().find(|(_, times)| **times > 1);
        require(twice.is_none(), Rule::DeliveredOnce, || format!("{twice:?} times"))
    }
}
