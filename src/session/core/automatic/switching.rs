//! A change of the model, or of its window, by the client: the conversation is compacted until it fits the new one.
//!
//! The change is stored at once. While the conversation is being compacted, requests for a context to send wait.

use super::pruning;
use crate::session::core::{
    base::Base,
    commands::prune,
    due::{Due, DueCompaction},
    edit::Staged,
    parts::switches::Switched,
    upkeep::Upkeep,
};
use crate::{
    compaction::decide::{Decision, Facts, Why, at_threshold},
    protocol::events::Reason,
    session::{core::standing::Standing, effects::Ticket, operations::Asked, state::State},
};

impl Standing<'_> {
    /// Whether the context is too large for the new model by an estimate, while entries are being counted.
    pub(in crate::session::core) fn seems_too_large(&self) -> bool {
        self.core.base.counting.runs() && self.may_maintain() && decision_after_switch(&self.core.base.state).is_due()
    }
}

impl Upkeep {
    /// Notes a change of the model or of its window by entries that are on disk.
    pub(in crate::session::core) fn note_switch(&mut self, state: &State, staged: &Staged) {
        let Some(before) = &staged.before else { return };
        if self.switches.note(before, &state.model_in_force()) {
            self.rest = None;
        }
    }
}

/// The maintenance that is due after a change of the model. `asked`: whether the answer of its request names it. `why`: the
/// reason of the decision at the leaf.
pub(in crate::session::core) fn due(
    base: &mut Base,
    upkeep: &mut Upkeep,
    asked: Asked<Ticket>,
    why: Why,
) -> Option<Due> {
    let Switched { former } = upkeep.switches.take()?;
    if !decision_after_switch(&base.state).is_due() {
        return None;
    }
    if let Some(staged) = pruning::that_suffices(base, upkeep, why) {
        let event = prune::event(&staged, &staged.why);
        return Some(Due::Relief(staged, event));
    }
    let id = base.stamps.operation();
    Some(Due::Compaction(DueCompaction { id, reason: Reason::ModelSwitch, asked, former }))
}

/// The decision at the leaf after a change of the model. A turn that goes on holds back only the threshold.
fn decision_after_switch(state: &State) -> Decision {
    let facts = state.measure().facts(state.path(), None, None);
    at_threshold(Facts { mid_turn: true, ..facts })
}

#[cfg(test)]
mod tests {
    use crate::{
        protocol::{
            SessionConfigure, SessionContext, SessionPin, SessionUndoCompaction,
            errors::Failure,
            events::{Event, ModelChange, Reason},
            types::Outcome,
        },
        session::{
            core::{
                Input, Over,
                command::Command,
                held::{
                    Held, answer, answered, compacted_messages, draft, events, job, learned, line, log_work, messages,
                    named, outcomes, plan, started, written,
                },
            },
            effects::Effect,
            jobs::{Job, PlanOrder},
        },
        settings::{Layers, layers::Source},
    };
    use serde_json::{Value, json};

    /// A session of these lines with the models `p/large`, `p/small` and `p/tiny`.
    fn session(lines: &[String], compaction: &Value, estimator: &str) -> Held {
        let mut held = Held::of(lines, u64::MAX);
        let model = |id: &str, window: u64| json!({"provider": "p", "id": id, "contextWindow": window});
        let settings = json!({
            "tokens": {"estimator": estimator},
            "compaction": compaction,
            "prune": {"protectTokens": 500, "minimumSavings": 100},
            "defaultModel": "p/large",
            "models": [model("large", 100_000), model("small", 4_000), model("tiny", 3_000)],
        });
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
        held
    }

    /// Sends a change of the model, and returns the effects after its write.
    fn switch(held: &mut Held, number: u64, model: &str) -> Vec<Effect> {
        held.edit::<SessionConfigure>(number, json!({ "model": model }));
        let work = log_work(held.turn()).expect("a write");
        held.back(work)
    }

    fn order(effects: Vec<Effect>) -> PlanOrder {
        let Job::Plan(order) = job(effects) else { unreachable!("a compaction is planned first") };
        order
    }

    /// Asks for a context to send.
    fn ask(held: &mut Held, number: u64) -> Vec<Effect> {
        held.call::<SessionContext>(number, json!({"format": "messages", "wait": true}));
        held.turn()
    }

    #[test]
    fn a_model_with_a_smaller_window_starts_a_compaction_that_its_answer_names() {
        let mut held = session(&messages(), &json!({}), "chars");
        let effects = switch(&mut held, 1, "p/small");
        let configured = answer(&effects, 1).expect("an answer");
        assert_eq!(
            (&configured["next"]["reason"], &configured["next"]["willRetry"]),
            (&json!("model_switch"), &json!(false))
        );
        assert_eq!(configured["session"]["model"]["id"], "small");
        let kinds: Vec<&str> = events(&effects).map(Event::kind).collect();
        assert_eq!(
            kinds,
            ["entry_appended", "model_changed", "usage_updated", "status_changed", "compaction_start"],
            "behind the answer"
        );
        let before = effects.iter().take_while(|effect| !matches!(effect, Effect::Emit(..)));
        assert!(
            before.into_iter().any(|effect| matches!(effect, Effect::Answer(1, _))),
            "the answer precedes all events"
        );
        let changed = events(&effects).find_map(|event| match event {
            Event::ModelChanged { from, to, reason } => Some((from.clone().map(|it| it.id), to.id.clone(), *reason)),
            _ => None,
        });
        assert_eq!(changed, Some((Some("large".to_owned()), "small".to_owned(), ModelChange::User)));
        assert_eq!(started(&effects), [Reason::ModelSwitch]);
        let order = order(effects);
        assert_eq!(order.id.as_str(), configured["next"]["operationId"].as_str().expect("an id"));
        assert_eq!(order.former.map(|former| former.id).as_deref(), Some("large"));
    }

    #[test]
    fn a_model_that_holds_the_conversation_starts_nothing() {
        let mut held = session(&messages(), &json!({}), "chars");
        for (number, model, changes) in [(1, "p/large", 0), (2, "p/large", 0)] {
            let effects = switch(&mut held, number, model);
            assert_eq!(answer(&effects, number).expect("an answer")["next"]["type"], "none");
            let changed = events(&effects).filter(|event| matches!(event, Event::ModelChanged { .. })).count();
            assert_eq!((changed, started(&effects).len()), (changes, 0));
        }
    }

    #[test]
    fn a_context_waits_until_the_conversation_fits_the_new_model() {
        let mut held = session(&messages(), &json!({}), "chars");
        let order = order(switch(&mut held, 1, "p/small"));
        assert_eq!(answered(&ask(&mut held, 2)), [0; 0], "it is held");
        let id = order.id.clone();
        let Job::Draft(order) = job(held.feed(Input::Planned(id, Ok(plan(order))))) else {
            unreachable!("a plan leads to a draft")
        };
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        let work = log_work(held.turn()).expect("a write");
        let effects = held.back(work);
        assert_eq!(outcomes(&effects), [Outcome::Completed]);
        let context = answer(&effects, 2);
        assert!(context.is_none_or(|context| context.is_object()), "it is answered in pieces");
        assert_eq!(answered(&effects), [2]);
    }

    #[test]
    fn a_context_that_waits_for_a_compaction_that_fails_is_refused() {
        let mut held = session(&messages(), &json!({}), "chars");
        switch(&mut held, 1, "p/tiny");
        ask(&mut held, 2);
        let cancelled = held.cancel(3);
        assert_eq!(outcomes(&cancelled), [Outcome::Cancelled]);
        assert_eq!(answer(&cancelled, 2), Some(json!("context_overflow")));
        assert_eq!(answer(&ask(&mut held, 4), 4), Some(json!("context_overflow")), "no other one starts");
        let again = switch(&mut held, 5, "p/small");
        assert_eq!(started(&again), [Reason::ModelSwitch], "another model is another beginning");
    }

    #[test]
    fn without_automatic_compaction_nothing_starts_and_contexts_are_refused() {
        let mut held = session(&messages(), &json!({"enabled": false}), "chars");
        let effects = switch(&mut held, 1, "p/small");
        assert_eq!(answer(&effects, 1).expect("an answer")["next"]["type"], "none");
        assert_eq!(started(&effects), []);
        assert_eq!(answer(&ask(&mut held, 2), 2), Some(json!("context_overflow")));
    }

    #[test]
    fn open_calls_wait_for_their_results() {
        let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
        let call = json!({"message": {"role": "assistant", "content": call, "stopReason": "toolUse", "timestamp": 1}});
        let mut lines = messages();
        lines.push(line("call", Some("e39"), "message", call));
        let mut held = session(&lines, &json!({"midTurn": true}), "chars");
        let effects = switch(&mut held, 1, "p/small");
        assert_eq!(started(&effects), []);
        assert_eq!(answer(&ask(&mut held, 2), 2), Some(json!("context_overflow")));
        held.append(3);
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(started(&held.back(work)), [Reason::Threshold]);
    }

    #[test]
    fn a_change_while_a_compaction_runs_is_decided_about_behind_it() {
        let mut held = session(&messages(), &json!({}), "chars");
        let order = held.begin_draft(1);
        let effects = switch(&mut held, 2, "p/small");
        let next = &answer(&effects, 2).expect("an answer")["next"];
        assert_eq!((&next["reason"], &next["operationId"]), (&json!("manual"), &json!(order.id)));
        assert_eq!(answered(&ask(&mut held, 3)), [0; 0]);
        let id = order.id.clone();
        let failed = held.feed(Input::Drafted(id, Err(Failure::Cancelled)));
        assert_eq!(outcomes(&failed), [Outcome::Cancelled]);
        assert_eq!(answered(&failed), [1], "the context still waits");
        let behind = held.turn();
        assert_eq!(started(&behind), [Reason::ModelSwitch]);
        assert_eq!(answer(&held.cancel(4), 3), Some(json!("context_overflow")));
    }

    #[test]
    fn a_cancel_of_all_work_forgets_a_change_that_waits() {
        let mut held = session(&messages(), &json!({}), "chars");
        held.begin_draft(1);
        switch(&mut held, 2, "p/small");
        ask(&mut held, 3);
        let cancelled = held.cancel(4);
        assert_eq!(outcomes(&cancelled), [Outcome::Cancelled]);
        assert!(answered(&cancelled).contains(&3));
        assert!(!held.core.is_due());
    }

    #[test]
    fn a_compaction_of_a_branch_that_was_left_holds_back_no_other() {
        let mut held = session(&messages(), &json!({"thresholdTokens": 2_000}), "chars");
        held.append(1);
        let work = log_work(held.turn()).expect("a write");
        let order = order(held.back(work));
        let id = order.id.clone();
        let Job::Draft(order) = job(held.feed(Input::Planned(id, Ok(plan(order))))) else {
            unreachable!("a plan leads to a draft")
        };
        held.append_with(2, json!({"parentEntryId": "e38"}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        let mut effects = held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        effects.extend(held.turn());
        assert_eq!(outcomes(&effects), [Outcome::Failed]);
        held.append_with(3, json!({"messages": [{"role": "assistant", "content": "Yes.", "timestamp": 1}]}));
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(started(&held.back(work)), [Reason::Threshold]);
    }

    #[test]
    fn a_change_that_seems_too_large_waits_for_counts() {
        let mut held = session(&messages(), &json!({"thresholdTokens": 2_000}), "auto");
        assert_eq!(answered(&switch(&mut held, 1, "p/small")), [0; 0]);
        held.at.tokenizer = true;
        let effects = held.feed(Input::Counted);
        assert_eq!(answer(&effects, 1).expect("an answer")["next"]["reason"], "model_switch");
    }

    /// Sends a change of these values, and returns the effects after its write.
    fn configure(held: &mut Held, number: u64, params: &Value) -> Vec<Effect> {
        held.edit::<SessionConfigure>(number, params.clone());
        let work = log_work(held.turn()).expect("a write");
        held.back(work)
    }

    /// A call of `bash`, and its result.
    fn called() -> [Value; 2] {
        let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
        [
            json!({"role": "assistant", "content": call, "stopReason": "toolUse", "timestamp": 1}),
            json!({"role": "toolResult", "toolCallId": "c", "content": "x", "timestamp": 1}),
        ]
    }

    #[test]
    fn only_a_change_of_the_model_or_its_window_is_a_beginning() {
        let mut held = session(&messages(), &json!({"thresholdTokens": 2_000}), "chars");
        for (number, params) in [(1, json!({"model": "p/large"})), (2, json!({"contextWindow": 100_000}))] {
            assert_eq!(started(&configure(&mut held, number, &params)), [], "{params}");
        }
        let effects = configure(&mut held, 3, &json!({"contextWindow": 50_000}));
        assert_eq!(started(&effects), [Reason::ModelSwitch]);
        assert_eq!(order(effects).former, None, "the model is the same");
    }

    #[test]
    fn a_window_over_the_one_that_the_provider_states_changes_nothing() {
        let mut held = session(&messages(), &json!({"thresholdTokens": 2_000}), "chars");
        held.feed(Input::Windows(learned("p/large", 5_000)));
        assert_eq!(started(&configure(&mut held, 1, &json!({"contextWindow": 50_000}))), []);
    }

    #[test]
    fn a_change_ends_the_rest_behind_a_compaction_that_was_cancelled() {
        let [call, result] = called();
        let mut held = session(&messages(), &json!({}), "chars");
        switch(&mut held, 1, "p/tiny");
        held.cancel(2);
        held.write_message(3, &call);
        assert_eq!(started(&switch(&mut held, 4, "p/small")), [], "a call is open");
        assert_eq!(started(&held.write_message(5, &result)), [Reason::Threshold]);
    }

    #[test]
    fn a_change_that_waits_is_not_named_by_the_answer_of_another_edit() {
        let mut held = session(&messages(), &json!({}), "chars");
        let order = held.begin_draft(1);
        switch(&mut held, 2, "p/small");
        held.edit::<SessionPin>(3, json!({"text": "keep this"}));
        let work = log_work(held.turn()).expect("a write");
        let ticket = held.ticket(4);
        held.feed(Input::Cancel(Some(order.id.clone()), ticket));
        let effects = held.back(work);
        assert_eq!((started(&effects), named(&effects)), (vec![Reason::ModelSwitch], vec![None]));
    }

    #[test]
    fn a_change_while_a_compaction_runs_waits_for_no_counts() {
        let mut held = session(&messages(), &json!({}), "auto");
        held.begin_draft(1);
        assert_eq!(answered(&switch(&mut held, 2, "p/small")), [2]);
    }

    #[test]
    fn a_change_to_a_model_that_seems_to_hold_the_conversation_waits_for_no_counts() {
        let mut held = session(&messages(), &json!({}), "auto");
        assert_eq!(answered(&configure(&mut held, 1, &json!({"contextWindow": 50_000}))), [1]);
    }

    #[test]
    fn another_edit_waits_for_no_counts() {
        let mut held = session(&messages(), &json!({"thresholdTokens": 2_000}), "auto");
        assert_eq!(answered(&configure(&mut held, 1, &json!({"title": "Parts"}))), [1]);
    }

    #[test]
    fn a_change_in_a_batch_is_named_by_the_start_of_its_compaction() {
        let mut held = session(&messages(), &json!({}), "chars");
        let params = json!({"sessionId": "held", "model": "p/small"});
        let command = Command::edit::<SessionConfigure>(serde_json::from_value(params).expect("params"));
        held.send_in_batch(1, command);
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(named(&held.back(work)), [None]);
        let mut held = session(&messages(), &json!({}), "chars");
        let effects = switch(&mut held, 1, "p/small");
        assert_eq!(named(&effects), [Some(order(effects).id.to_string())]);
    }

    #[test]
    fn old_results_leave_where_that_makes_room_for_the_new_model() {
        let [call, result] = called();
        let mut lines =
            vec![line("u", None, "message", json!({"message": {"role": "user", "content": "Read.", "timestamp": 1}}))];
        for at in 0..4 {
            let (mut call, mut result) = (call.clone(), result.clone());
            call["content"][0]["id"] = format!("c{at}").into();
            result["toolCallId"] = format!("c{at}").into();
            result["toolName"] = "bash".into();
            result["content"] = json!([{"type": "text", "text": "A line of the part. ".repeat(200)}]);
            for (id, message) in [(format!("a{at}"), call), (format!("r{at}"), result)] {
                let before: Value = serde_json::from_str(lines.last().expect("a line")).expect("JSON");
                lines.push(line(&id, before["id"].as_str(), "message", json!({ "message": message })));
            }
        }
        let mut held = session(&lines, &json!({}), "chars");
        let effects = switch(&mut held, 1, "p/small");
        assert_eq!(started(&effects), []);
        assert_eq!(written(log_work(effects).as_ref()), ["context_edit"; 3]);
    }

    #[test]
    fn an_undone_compaction_and_a_turn_that_goes_on_hold_it_back_in_no_way() {
        let mut held = session(&compacted_messages(), &json!({}), "chars");
        held.edit::<SessionUndoCompaction>(1, json!({}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        assert_eq!(started(&switch(&mut held, 2, "p/small")), [Reason::ModelSwitch]);

        let mut held = session(&messages(), &json!({"midTurn": false}), "chars");
        for (number, message) in [1, 2].into_iter().zip(called()) {
            held.write_message(number, &message);
        }
        assert_eq!(started(&switch(&mut held, 3, "p/small")), [Reason::ModelSwitch]);
    }

    #[test]
    fn a_change_is_decided_about_behind_an_automatic_compaction_that_failed() {
        let mut held = session(&messages(), &json!({"thresholdTokens": 2_000}), "chars");
        held.append(1);
        let work = log_work(held.turn()).expect("a write");
        let order = order(held.back(work));
        switch(&mut held, 2, "p/small");
        let failed = held.feed(Input::Planned(order.id, Err(Failure::Internal("it failed".to_owned()))));
        assert_eq!(outcomes(&failed), [Outcome::Failed]);
        assert_eq!(started(&held.turn()), [Reason::ModelSwitch]);
    }

    #[test]
    fn a_change_starts_nothing_in_a_session_that_finishes() {
        let mut held = session(&messages(), &json!({}), "chars");
        let order = held.begin_draft(1);
        switch(&mut held, 2, "p/small");
        held.feed(Input::Finish);
        held.feed(Input::Drafted(order.id, Err(Failure::Cancelled)));
        assert_eq!(started(&held.turn()), []);
        assert!(!held.core.is_due());
        assert_eq!(held.core.over(), Over::WithoutCommands);
    }

    #[test]
    fn a_context_waits_for_the_decision_about_a_change_alone() {
        let mut held = session(&messages(), &json!({}), "chars");
        let order = held.begin_draft(1);
        configure(&mut held, 2, &json!({"contextWindow": 50_000}));
        ask(&mut held, 3);
        let failed = held.feed(Input::Drafted(order.id, Err(Failure::Cancelled)));
        assert_eq!(answered(&failed), [1]);
        assert_eq!(answered(&held.turn()), [3]);
    }

    #[test]
    fn a_request_in_the_format_of_a_provider_waits_for_the_compaction_behind_a_change_and_for_no_other() {
        for switched in [true, false] {
            let mut held = session(&messages(), &json!({"thresholdTokens": 3_000}), "chars");
            let effects = match switched {
                true => configure(&mut held, 1, &json!({"contextWindow": 50_000})),
                false => held.write_message(1, &json!({"role": "user", "content": "Go on.", "timestamp": 1})),
            };
            let reason = if switched { Reason::ModelSwitch } else { Reason::Threshold };
            assert_eq!(started(&effects), [reason]);
            held.call::<SessionContext>(2, json!({"format": "anthropic"}));
            let is_read = held.turn().iter().any(|effect| matches!(effect, Effect::Read(2, _)));
            assert_eq!(is_read, !switched);
        }
    }

    #[test]
    fn a_cancel_of_one_operation_leaves_a_change_that_waits() {
        let mut held = session(&messages(), &json!({}), "chars");
        let order = held.begin_draft(1);
        switch(&mut held, 2, "p/small");
        let ticket = held.ticket(3);
        assert_eq!(outcomes(&held.feed(Input::Cancel(Some(order.id), ticket))), [Outcome::Cancelled]);
        assert_eq!(started(&held.turn()), [Reason::ModelSwitch]);
    }
}
