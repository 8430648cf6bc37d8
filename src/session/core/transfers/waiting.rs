//! Extracts that wait. None stands between a call and its result, and a tool may run for hours: an extract waits beside the
//! work, so contexts are answered and other operations start meanwhile.

use crate::{
    ids::OperationId,
    session::{
        core::{step::Step, work::Task},
        jobs::transfer::TransferText,
        operation::Operation,
        state::State,
    },
};
use std::collections::VecDeque;

/// A finished extract that waits for the results of open calls.
pub(in crate::session::core) struct Waiting {
    operation: Operation,
    task: Task,
    text: Option<TransferText>,
}

/// Finished extracts that wait for the results of open calls, the oldest first.
#[derive(Default)]
pub(in crate::session::core) struct Extracts(VecDeque<Waiting>);

impl Extracts {
    /// Whether one of them may be written now. The path of a session that sleeps is not here.
    pub fn are_due(&self, state: &State) -> bool {
        !self.0.is_empty() && !state.history().is_asleep() && !state.path().batch().is_open()
    }

    /// Adds a transfer, which waits until the open calls have their results.
    pub fn wait(&mut self, operation: Operation, task: Task, text: Option<TransferText>) {
        operation.waits();
        self.0.push_back(Waiting { operation, task, text });
    }

    /// Takes out the one that has waited longest, which goes on.
    pub fn next(&mut self) -> Option<Step> {
        let Waiting { operation, task, text } = self.0.pop_front()?;
        operation.goes_on(task.is_introduced());
        Some(Step::Deliver(operation, task, text))
    }

    /// Forgets those whose operations a cancel has ended.
    pub fn forget_ended(&mut self) {
        self.0.retain(|waiting| waiting.operation.is_open());
    }

    /// The operations of all of them.
    pub fn operations(&self) -> Vec<OperationId> {
        self.0.iter().map(|waiting| waiting.operation.id.clone()).collect()
    }

    /// The operation of one whose request the client has cancelled.
    pub fn without_request(&self) -> Option<OperationId> {
        let cancelled = self.0.iter().find(|waiting| waiting.operation.request_cancelled());
        cancelled.map(|waiting| waiting.operation.id.clone())
    }
}

/// Whether the entries of a transfer wait for the results of open calls.
pub(in crate::session::core) fn must_wait(state: &State, task: &Task) -> bool {
    !task.may_part_a_batch() && state.path().batch().is_open()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        conversation::path::Path,
        ids::SessionId,
        protocol::{SessionReference, events::Event},
        redact::Clean,
        session::{
            core::{
                Input, Over,
                command::CommandMethod as _,
                held::{Held, answer, events, job, line, log_work, message, written},
            },
            effects::Effect,
            jobs::{Job, transfer::ReferenceText},
            source::Source,
        },
    };
    use serde_json::{Value, json};

    fn calls() -> Value {
        let call = json!([{"type": "toolCall", "id": "c", "name": "read", "arguments": {}}]);
        json!({"role": "assistant", "content": call, "stopReason": "toolUse", "timestamp": 1})
    }

    fn result() -> Value {
        json!({"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": [], "isError": false, "timestamp": 1})
    }

    /// A reference with number 1 that waits for an open call.
    fn waiting(wait: bool) -> (Held, Vec<Effect>) {
        let mut held = Held::of(&[message("e0", None), line("e1", Some("e0"), "label", json!({}))], u64::MAX);
        let params = json!({"sessionId": "held", "fromSessionId": "other", "question": "Which port?", "wait": wait});
        held.send(1, SessionReference::command(serde_json::from_value(params).expect("params")));
        let Job::Source(order) = job(held.turn()) else { unreachable!("the source is looked for first") };
        let source = Source { id: SessionId::from("other"), file: None, path: Path::of(&[]) };
        held.feed(Input::Sourced(order.id.clone(), Ok(source)));
        held.write_message(2, &calls());
        let text = ReferenceText { text: Clean::assembled("port 4711"), details: json!({}), lack: None };
        held.feed(Input::Transferred(order.id, Ok(TransferText::Reference(text))));
        let effects = held.turn();
        assert!(!held.core.is_due(), "it waits");
        (held, effects)
    }

    fn count(effects: &[Effect], kind: &str) -> usize {
        events(effects).filter(|event| event.kind() == kind).count()
    }

    #[test]
    fn a_session_is_idle_while_an_extract_waits_and_busy_while_it_is_written() {
        let (mut held, effects) = waiting(false);
        assert_eq!((count(&effects, "status_changed"), count(&effects, "settled")), (1, 1));
        assert!(held.core.base.operations.idle().is_ok());
        let effects = held.write_message(3, &result());
        assert_eq!(count(&effects, "settled"), 0);
        let effects = held.turn();
        assert_eq!(count(&effects, "status_changed"), 1);
        assert!(held.core.base.operations.idle().is_err());
        let work = log_work(effects).expect("a write");
        assert_eq!(written(Some(&work)), ["custom_message"]);
        let effects = held.back(work);
        assert_eq!((count(&effects, "status_changed"), count(&effects, "settled")), (1, 1));
    }

    #[test]
    fn a_status_does_not_name_a_reference_whose_request_waits() {
        let (mut held, _) = waiting(true);
        held.write_message(3, &result());
        let named = events(&held.turn()).any(|event| match event {
            Event::StatusChanged { status } => status.operation_id.is_some(),
            _ => false,
        });
        assert!(!named);
    }

    #[test]
    fn a_cancel_by_the_operation_or_by_its_request_ends_an_extract_that_waits() {
        let (mut held, _) = waiting(false);
        let effects = held.cancel(3);
        assert_eq!(answer(&effects, 3).expect("an answer")["cancelled"][0]["kind"], "reference");
        assert_eq!(count(&effects, "notice"), 1, "its end is told");
        let (mut with_request, _) = waiting(true);
        let effects = with_request.feed(Input::RequestCancelled(1));
        assert_eq!(answer(&effects, 1).expect("an answer")["outcome"], "cancelled");
        assert_eq!(count(&effects, "notice"), 0, "the answer tells it");
        for mut held in [held, with_request] {
            held.write_message(4, &result());
            assert!(log_work(held.turn()).is_none(), "nothing of it is written");
        }
    }

    #[test]
    fn the_end_of_the_session_ends_an_extract_that_waits() {
        for input in [Input::Finish, Input::Stop] {
            let (mut held, _) = waiting(true);
            let effects = held.feed(input);
            assert_eq!(answer(&effects, 1).expect("an answer")["outcome"], "cancelled");
            assert_ne!(held.core.over(), Over::No);
        }
    }
}
