//! Turns that the daemon runs, in sessions whose clients ask for them at any time: each start has one end, also over crashes, each
//! message that was accepted is in the conversation once or waits, and no tool is executed twice.
//!
//! The other rules of the observer are about hosts, and are not asked in these sessions.

use super::super::{Rule, Verdict, require};
use crate::{
    conversation::entry::Entry,
    ids::OperationId,
    log::memory::Disk,
    protocol::events::Event,
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
    /// Turns and calls whose end was not sent.
    open: Vec<(OperationId, String)>,
    /// Turns and calls that have ended.
    ended: BTreeSet<(String, String)>,
    executed: BTreeSet<(String, String)>,
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

    /// The process dies.
    pub fn crashed(&mut self) {
        self.open.clear();
        // The end of a turn may be sent and its record not be written: the next process sends an end again, to other clients.
        self.ended.clear();
        self.asked.clear();
        if !std::mem::take(&mut self.clears).is_empty() {
            self.may_be_cleared();
        }
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
            _ => return Ok(()),
        };
        let (starts, what) = (what.0, (turn.clone(), what.1));
        let is_open = self.open.contains(&what);
        if starts {
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
        if let Some(Some(text)) = self.asked.remove(&request)
            && result["disposition"].is_string()
        {
            self.accepted.push(text);
        }
        Ok(())
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
