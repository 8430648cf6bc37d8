//! A turn that runs, by its phase.

use super::{
    Maintained, Outlook,
    own::{Own, Said},
};
use crate::{
    ask::{
        client::Executed,
        request::{RetryOutcome, Update},
        spent::Spent,
    },
    conversation::message::Usage,
    ids::CallId,
    protocol::{
        errors::Failure,
        events::{DeltaKind, Event, Reason, RetrySource},
    },
    provider::Delta,
    session::{
        core::base::Base,
        jobs::{
            Job,
            turn::{ExecuteOrder, ToolCall, TurnOrder},
        },
        kind::{OperationKind, Product},
        operation::Operation,
        operations::End,
    },
};

/// The most answers in a row that call nothing but tools that there are not. A chosen number: a model that errs reads the names of
/// the tools in the first result, and each further answer costs the whole context.
const MOST_LOST: u32 = 5;

/// A turn that runs.
pub(super) struct Running {
    pub operation: Operation,
    pub phase: Phase,
    pub reminder: Reminder,
    /// The answers in a row that called nothing but tools that there are not.
    lost: u32,
    /// The text of the answer so far, and the place of the part that grows.
    heard: String,
    part: usize,
    /// The cost of the newest attempt of the request. The message of an answer has its own, and an attempt that failed has none.
    spent: Option<Spent>,
    /// Results of calls that the client does not execute.
    unexecuted: Vec<Own>,
}

/// The message that lets the model go on after a compaction. There is one at most until the user writes or a tool is executed: a
/// model that is cut off again and again would be asked without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reminder {
    None,
    /// It is written before the next request.
    Due,
    Given,
}

/// The phase of a turn.
pub(super) enum Phase {
    /// The model is asked as soon as no other work runs.
    Ready,
    /// The model is asked.
    Asking,
    /// Messages are to be written.
    Writing,
    /// The client executes tools.
    Executing {
        /// The calls without a result, with the names of their tools.
        open: Vec<(CallId, String)>,
        /// Results that are not on disk.
        unwritten: usize,
    },
    /// The answer was cut off because the window is full. The turn goes on after the compaction that runs, or ends.
    Compacting(String),
    /// The turn is over, and ends in this way after the maintenance that runs.
    Ending(End<Product>),
}

impl Running {
    /// A turn that has started.
    pub fn of(operation: Operation) -> Self {
        Self {
            operation,
            phase: Phase::Ready,
            reminder: Reminder::None,
            lost: 0,
            heard: String::new(),
            part: 0,
            spent: None,
            unexecuted: Vec::new(),
        }
    }

    /// Whether the model is asked as soon as no other work runs.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready) && self.operation.is_open()
    }

    /// Whether the model is asked.
    pub fn is_asking(&self) -> bool {
        matches!(self.phase, Phase::Asking)
    }

    /// A request begins, or its text is void.
    pub fn begins(&mut self) {
        self.heard.clear();
        self.part = 0;
    }

    /// Sends a report of the request.
    pub fn heard(&mut self, base: &mut Base, update: Update) {
        if !self.is_asking() {
            return;
        }
        let (kind, text) = match update {
            Update::Begins => return self.begins(),
            Update::Delta(Delta::Part(part)) => {
                self.part = part;
                return;
            }
            Update::Delta(Delta::Text(text)) => {
                self.heard.push_str(&text);
                (DeltaKind::Text, text)
            }
            Update::Delta(Delta::Thinking(text)) => (DeltaKind::Thinking, text),
            Update::Delta(Delta::Call(text)) => (DeltaKind::ToolCall, text),
            Update::Spent(spent) => {
                self.attempt_failed(base);
                self.spent = Some(spent);
                return;
            }
            Update::RetryStart { attempt, most, delay, failed } => {
                self.attempt_failed(base);
                let failure = Failure::from(&failed);
                let record = |open| base.lock.record(open, &base.effects);
                return self.operation.retry_starts(RetrySource::Turn, attempt, most, delay, &failure, record);
            }
            Update::RetryEnd { attempt, outcome } => {
                let failure = match outcome {
                    RetryOutcome::Answered => None,
                    RetryOutcome::Failed(failed) => Some(Failure::from(&failed)),
                    RetryOutcome::Cancelled => Some(Failure::Cancelled),
                };
                let record = |open| base.lock.record(open, &base.effects);
                return self.operation.retry_ends(RetrySource::Turn, attempt, failure.as_ref(), record);
            }
            Update::Complete | Update::AtStake(_) => return,
        };
        if !text.is_empty() {
            self.operation.emit(Event::MessageDelta { content_index: self.part, kind, text });
        }
    }

    /// The newest attempt of the request has failed. Its cost is written, if it has one.
    fn attempt_failed(&mut self, base: &mut Base) {
        let spent = self.spent.take().filter(|spent| spent.usage != Usage::default());
        spent.into_iter().for_each(|spent| base.costs.add(self.operation.id.clone(), spent, base.now));
    }

    /// The model has answered, or failed.
    pub fn request_ends(&mut self, base: &mut Base, has_failed: bool) {
        self.phase = Phase::Writing;
        if has_failed {
            self.attempt_failed(base);
        }
        self.spent = None;
    }

    /// The answer is on disk. Returns the end of the turn, if it is over.
    pub fn answered(
        &mut self,
        base: &mut Base,
        said: Said,
        outlook: Outlook,
        has_steering: bool,
    ) -> Option<End<Product>> {
        let Said { calls, stop, failed } = said;
        self.heard.clear();
        match failed {
            _ if outlook.repeats => self.phase = Phase::Ready,
            Some(failed) => return Some(End::Failed(Failure::from(&failed))),
            // A call of an answer that was cut off may be half of one.
            None if stop == "length" && outlook.compacts => self.phase = Phase::Compacting(stop),
            None if stop == "length" || calls.is_empty() => {
                if !has_steering {
                    return Some(End::Completed(Product::Answered(stop)));
                }
                self.phase = Phase::Ready;
            }
            None => return self.execute(base, calls),
        }
        None
    }

    /// Lets the client execute the calls. A tool that there is not has its result at once. Returns the end of the turn, if the model
    /// calls nothing else again and again.
    fn execute(&mut self, base: &mut Base, calls: Vec<ToolCall>) -> Option<End<Product>> {
        let known: Vec<String> =
            base.state.instructions().tools().unwrap_or_default().iter().filter_map(name_of).collect();
        let record = |open| base.lock.record(open, &base.effects);
        for ToolCall { id, name, arguments } in &calls {
            self.operation.tool_starts(id.clone(), name.clone(), arguments.clone(), record);
        }
        let open = calls.iter().map(|call| (call.id.clone(), call.name.clone())).collect();
        self.phase = Phase::Executing { open, unwritten: 0 };
        let (calls, others): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| known.contains(&call.name));
        for ToolCall { id, name, .. } in others {
            let what = match known.is_empty() {
                true => format!("there is no tool {name:?}; this session has no tools"),
                false => format!("there is no tool {name:?}; the tools are {}", known.join(", ")),
            };
            self.executed(base, &id, true);
            let turn = self.operation.id.clone();
            self.unexecuted.push(Own::result(turn, id, &name, Executed::failed(what)));
        }
        if calls.is_empty() {
            self.lost += 1;
            if self.lost == MOST_LOST {
                let what = format!(
                    "the model called only tools that there are not, {MOST_LOST} times in a row; set the tools of the session \
                     with tools/set, then call session/continue"
                );
                let failure = Failure::Provider { provider: None, model: None, status: None, retryable: false, what };
                return Some(End::Failed(failure));
            }
        } else {
            (self.lost, self.reminder) = (0, Reminder::None);
            let (id, stop) = (self.operation.id.clone(), self.operation.stop.clone());
            base.effects.start(Job::Turn(TurnOrder::Execute(ExecuteOrder { id, calls, stop })));
        }
        None
    }

    /// The results of calls that the client does not execute.
    pub fn unexecuted(&mut self) -> Option<Vec<Own>> {
        Some(std::mem::take(&mut self.unexecuted)).filter(|results| !results.is_empty())
    }

    /// A call has its result. Returns the name of its tool. The second result of a call counts for nothing.
    pub fn executed(&mut self, base: &mut Base, call: &CallId, is_error: bool) -> Option<String> {
        let Phase::Executing { open, unwritten } = &mut self.phase else { return None };
        let at = open.iter().position(|(id, _)| id == call)?;
        let (_, name) = open.remove(at);
        *unwritten += 1;
        self.operation.tool_ends(call, is_error, |open| base.lock.record(open, &base.effects));
        Some(name)
    }

    /// A result is on disk. After the last one the model is asked.
    pub fn result_is_written(&mut self) {
        if let Phase::Executing { open, unwritten } = &mut self.phase {
            *unwritten = unwritten.saturating_sub(1);
            if open.is_empty() && *unwritten == 0 {
                self.phase = Phase::Ready;
            }
        }
    }

    /// Maintenance of this kind has ended. Returns the end of the turn, if it cannot go on. `continues`: a message lets the model go
    /// on after a compaction.
    pub fn maintained(&mut self, kind: &OperationKind, end: &Maintained, continues: bool) -> Option<End<Product>> {
        if matches!(self.phase, Phase::Ending(_))
            && let Phase::Ending(end) = std::mem::replace(&mut self.phase, Phase::Ready)
        {
            return Some(end);
        }
        let is_compacted = matches!(end, Maintained::Done);
        match (kind, end) {
            (OperationKind::Recovery(_), Maintained::Not(failure)) => return Some(End::Failed(failure.clone())),
            (OperationKind::Recovery(_), Maintained::Cancelled) => return Some(End::Cancelled),
            (OperationKind::Compaction(Reason::Threshold) | OperationKind::Relay(_), _) => {
                let continues = continues && is_compacted && self.reminder != Reminder::Given;
                if let Phase::Compacting(stop) = &self.phase {
                    if !continues {
                        return Some(End::Completed(Product::Answered(stop.clone())));
                    }
                    self.phase = Phase::Ready;
                }
                if self.reminder != Reminder::Given {
                    self.reminder = if continues && self.is_ready() { Reminder::Due } else { Reminder::None };
                }
            }
            _ => {}
        }
        None
    }

    /// The message with the text that the user saw of an answer that was cut off.
    pub fn rest(&mut self) -> Option<Own> {
        let heard = std::mem::take(&mut self.heard);
        let is_said = self.is_asking() && !heard.trim().is_empty();
        is_said.then(|| Own::rest(self.operation.id.clone(), &heard))
    }
}

fn name_of(tool: &serde_json::Value) -> Option<String> {
    tool["name"].as_str().map(str::to_owned)
}
