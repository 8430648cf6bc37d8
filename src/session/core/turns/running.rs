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

/// The most answers in a row whose calls cannot be executed. A chosen number: a model that errs reads the reason in the first
/// result, and each further answer costs the whole context.
const MOST_LOST: u32 = 5;

/// The most characters of unreadable arguments that the model is shown again. A chosen number.
const MOST_QUOTED: usize = 500;

/// A turn that runs.
pub(super) struct Running {
    pub operation: Operation,
    pub phase: Phase,
    pub reminder: Reminder,
    /// The answers in a row none of whose calls could be executed.
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

    /// The model has answered, or failed. Returns the text that the user saw of an answer that failed.
    pub fn request_ends(&mut self, base: &mut Base, has_failed: bool) -> String {
        self.phase = Phase::Writing;
        let heard = std::mem::take(&mut self.heard);
        if !has_failed {
            self.spent = None;
            return String::new();
        }
        self.attempt_failed(base);
        heard
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

    /// Lets the client execute the calls. One of a tool that there is not, or with arguments that cannot be read, has its result at
    /// once. Returns the end of the turn, if the model makes no other calls again and again.
    fn execute(&mut self, base: &mut Base, calls: Vec<ToolCall>) -> Option<End<Product>> {
        let known: Vec<String> =
            base.state.instructions().tools().unwrap_or_default().iter().filter_map(name_of).collect();
        let record = |open| base.lock.record(open, &base.effects);
        for ToolCall { id, name, arguments, .. } in &calls {
            self.operation.tool_starts(id.clone(), name.clone(), arguments.clone(), record);
        }
        let open = calls.iter().map(|call| (call.id.clone(), call.name.clone())).collect();
        self.phase = Phase::Executing { open, unwritten: 0 };
        let is_fit = |call: &ToolCall| known.contains(&call.name) && call.unreadable.is_none();
        let (calls, others): (Vec<_>, Vec<_>) = calls.into_iter().partition(is_fit);
        for ToolCall { id, name, unreadable, .. } in others {
            let what = match unreadable {
                _ if known.is_empty() => format!("there is no tool {name:?}; this session has no tools"),
                _ if !known.contains(&name) => format!("there is no tool {name:?}; the tools are {}", known.join(", ")),
                arguments => {
                    let arguments: String = arguments.unwrap_or_default().chars().take(MOST_QUOTED).collect();
                    format!("the tool was not called, because its arguments are no JSON object: {arguments}")
                }
            };
            self.executed(base, &id, true);
            let turn = self.operation.id.clone();
            self.unexecuted.push(Own::result(turn, id, &name, Executed::failed(what)));
        }
        if calls.is_empty() {
            self.lost += 1;
            if self.lost == MOST_LOST {
                let what = format!(
                    "the model made only calls that cannot be executed, {MOST_LOST} times in a row, of tools that there are not or \
                     with arguments that are no JSON; see whether the session has its tools (tools/set), then call session/continue"
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
