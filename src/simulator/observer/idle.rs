//! Idle maintenance: it starts where nobody waits for an answer, in its turn among the sessions, and gives way to activity.

use super::{Rule, Verdict, file::File, operations::Operations, require};
use crate::{
    conversation::entry::Entry,
    ids::{CallId, OperationId},
    session::{
        core::Input,
        effects::{IdleTurn, Turning},
        stop::Stop,
    },
};
use serde_json::Value;
use std::{collections::HashSet, sync::Arc};

/// The input that is handled, as far as it concerns idle maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum During {
    /// A read, a report, or news from elsewhere.
    #[default]
    Other,
    /// A tick. Only then idle maintenance begins.
    Tick,
    /// A request that changes the session, or `session/activity`.
    Activity,
    /// Work of the session, for which idle maintenance may end.
    Work,
}

/// The turn of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Turn {
    #[default]
    No,
    Asked,
    Comes,
}

/// Idle maintenance in a life of a session.
#[derive(Debug, Default)]
pub struct Idling {
    during: During,
    turn: Turn,
    /// A plan whose maintenance has not started.
    planned: Option<(OperationId, Stop)>,
}

impl Idling {
    /// An input goes into the core.
    pub fn feeds(&mut self, input: &Input) {
        self.during = match input {
            Input::Tick => During::Tick,
            Input::Command(command, _) if command.is_activity() => During::Activity,
            Input::Finish | Input::Stop | Input::Log(..) | Input::Turn | Input::Counted => During::Work,
            _ => During::Other,
        };
        if matches!(input, Input::IdleTurn(IdleTurn::Comes)) {
            self.turn = Turn::Comes;
        }
    }

    /// The session asks for its turn, or leaves it.
    pub fn turns(&mut self, turning: Turning) -> Verdict {
        let (before, rule, after) = match turning {
            Turning::Ask => (self.turn == Turn::No, Rule::IdleLeavesItsTurn, Turn::Asked),
            Turning::Leave => (self.turn != Turn::No, Rule::IdleHasItsTurn, Turn::No),
        };
        self.planned.take_if(|_| turning == Turning::Leave);
        self.turn = after;
        require(before, rule, || format!("the session wishes {turning:?} twice"))
    }

    /// A plan is asked for. Returns whether it is one of idle maintenance.
    pub fn plans(&mut self, id: &OperationId, stop: &Stop, file: &File) -> Result<bool, super::Violation> {
        if self.during != During::Tick {
            return Ok(false);
        }
        require(self.turn == Turn::Comes, Rule::IdleHasItsTurn, || format!("{id:?} is planned without its turn"))?;
        let waits = awaited(file);
        require(waits.is_none() || file.another_wrote(), Rule::IdleAwaitsNoAnswer, || {
            format!("{id:?} is planned while {} waits", waits.unwrap_or_default())
        })?;
        self.planned = Some((id.clone(), stop.clone()));
        Ok(true)
    }

    /// Idle maintenance starts.
    pub fn starts(&mut self, id: &OperationId) -> Verdict {
        let planned = self.planned.take();
        require(planned.as_ref().is_some_and(|(planned, _)| planned == id), Rule::StartWasAsked, || {
            format!("{id:?} was not planned at a tick; {planned:?} was")
        })?;
        require(self.turn == Turn::Comes, Rule::IdleHasItsTurn, || format!("{id:?} starts without its turn"))
    }

    /// Whether idle maintenance may end as cancelled, though no cancel names it.
    pub fn may_give_way(&self) -> bool {
        matches!(self.during, During::Activity | During::Work)
    }

    /// An input was handled. After it so many contexts wait for an end.
    pub fn after_input(&self, operations: &Operations, held: usize) -> Verdict {
        let runs = operations.idle_that_can_end().or(self.planned.as_ref().map(|(id, _)| id));
        require(runs.is_none() || self.during != During::Activity, Rule::IdleGivesWay, || {
            format!("{runs:?} goes on behind an activity")
        })?;
        let waits = held > 0 && operations.running().is_none() && !operations.log_is_out();
        require(runs.is_none() || !waits || operations.is_counting(), Rule::IdleGivesWay, || {
            format!("{held} contexts wait while {runs:?} runs alone")
        })
    }

    /// Nothing runs.
    pub fn at_rest(&self) -> Verdict {
        require(self.turn == Turn::No, Rule::IdleLeavesItsTurn, || format!("the turn is {:?} at rest", self.turn))
    }
}

/// The call that waits for its result at the leaf, or the message that waits for its answer.
fn awaited(file: &File) -> Option<String> {
    let mut answered: HashSet<CallId> = HashSet::new();
    let messages = file.announced_chain().filter(|entry| entry.outline().is_some() && known(file, entry));
    for (number, entry) in messages.enumerate() {
        let line: Value = serde_json::from_str(entry.line()).unwrap_or_default();
        let message = &line["message"];
        match message["role"].as_str().unwrap_or_default() {
            "user" | "developer" if number == 0 => return Some(format!("message {:?}", entry.id)),
            "toolResult" => answered.extend(message["toolCallId"].as_str().map(CallId::from)),
            "assistant" if file.removal_of(&entry.id).is_none() => {
                let failed = matches!(message["stopReason"].as_str(), Some("error" | "aborted"));
                let calls = message["content"].as_array().into_iter().flatten();
                let mut calls = calls.filter(|block| block["type"] == "toolCall" && !failed);
                let open =
                    calls.find(|call| call["id"].as_str().is_some_and(|id| !answered.contains(&CallId::from(id))));
                return match open {
                    Some(call) => Some(format!("call {}", call["id"])),
                    None if !answered.is_empty() => Some("the result".to_owned()),
                    None => None,
                };
            }
            _ => return None,
        }
    }
    None
}

fn known(file: &File, entry: &Arc<Entry>) -> bool {
    file.newest(&entry.id).is_some_and(|place| file.is_announced(place))
}
