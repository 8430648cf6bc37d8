//! Recoveries from answers that failed: their start, their end, and the contexts that wait for them.

use super::*;
use crate::{
    compaction::recovery::Share,
    log::error::StoreError,
    models::learned::Taught,
    protocol::{
        SessionConfigure, SessionContext,
        errors::Nothing,
        events::{RecoveryAction, RecoveryOutcome, RecoveryReason},
        types::{Initiator, Outcome},
    },
    session::{
        core::{
            Input, Over,
            held::{Held, answer, draft, events, job, learned, log_work, message, outcomes, plan, usages, written},
        },
        effects::Effect,
        jobs::{DraftOrder, Job},
        log_work::LogDone,
        state::SessionData,
    },
    settings::{Layers, layers::Source},
};
use serde_json::Value;

/// An append of an answer that the provider refused.
pub(super) fn refused(held: &mut Held, number: u64) {
    let answer = json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
        "errorMessage": "context_length_exceeded"});
    held.append_with(number, json!({"messages": [answer]}));
}

pub(super) fn next(effects: &[Effect], number: u64) -> Value {
    answer(effects, number).expect("an answer")["next"].clone()
}

/// The recoveries that started, and the outcomes of those that ended.
pub(super) fn recoveries(effects: &[Effect]) -> (usize, Vec<RecoveryOutcome>) {
    let starts = events(effects).filter(|event| matches!(event, Event::RecoveryStart { .. })).count();
    let outcome = |event: &Event| match event {
        Event::RecoveryEnd { outcome, .. } => Some(*outcome),
        _ => None,
    };
    (starts, events(effects).filter_map(outcome).collect())
}

/// A refusal is appended and answered. The entries of its recovery are being written.
pub(super) fn due(held: &mut Held, number: u64) -> crate::session::log_work::LogWork {
    refused(held, number);
    let work = log_work(held.turn()).expect("a write");
    let effects = held.back(work);
    assert_eq!(next(&effects, number)["reason"], "overflow");
    log_work(effects).expect("a second write")
}

pub(super) fn is_answered(effects: &[Effect], number: u64) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Answer(it, _) if *it == number))
}

/// Replaces the settings.
pub(super) fn set(held: &mut Held, mut settings: Value) {
    settings["tokens"]["estimator"] = "chars".into();
    held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
}

pub(super) fn wait_for_context(held: &mut Held, number: u64) -> Vec<Effect> {
    held.call::<SessionContext>(number, json!({"wait": true}));
    held.turn()
}

#[test]
fn a_recovery_whose_entries_cannot_be_written_has_its_start_and_its_end() {
    let mut held = Held::new();
    let _ = due(&mut held, 1);
    let effects = held.lose_log();
    assert_eq!(recoveries(&effects), (1, vec![RecoveryOutcome::Failed]));
    assert_eq!(held.core.over(), Over::Yes);
}

#[test]
fn a_recovery_that_is_cancelled_before_its_start_has_its_start_and_its_end() {
    let mut held = Held::new();
    let work = due(&mut held, 1);
    let cancelled = held.cancel(2);
    let named = answer(&cancelled, 2).expect("an answer");
    assert_eq!(named["cancelled"][0]["kind"], "recovery");
    let again = held.cancel(3);
    assert_eq!(answer(&again, 3).expect("an answer")["cancelled"], named["cancelled"], "it has not ended");
    assert_eq!(recoveries(&held.back(work)), (1, vec![RecoveryOutcome::Cancelled]));
    assert!(!held.turn().iter().any(|effect| matches!(effect, Effect::Start(_))));
}

#[test]
fn the_end_of_a_session_cancels_a_recovery_before_its_start() {
    let mut held = Held::new();
    let work = due(&mut held, 1);
    held.feed(Input::Stop);
    assert_eq!(recoveries(&held.back(work)), (1, vec![RecoveryOutcome::Cancelled]));
    assert_eq!(held.core.over(), Over::Yes);
}

#[test]
fn the_entries_of_a_recovery_are_written_behind_those_of_another_program() {
    let mut held = Held::new();
    let work = due(&mut held, 1);
    let leaf = held.core.state().path().last().expect("a leaf").id.clone();
    held.disk.append_as_another(&message("other", Some(leaf.as_str()))).expect("an entry");
    let effects = held.back(work);
    let again = log_work(effects).expect("another write");
    assert!(written(Some(&again)).iter().any(|kind| kind == "context_edit"));
    assert_eq!(recoveries(&held.back(again)), (1, Vec::new()));
}

/// The plan of a compaction that runs is made, then its draft.
fn drafted(held: &mut Held, effects: Vec<Effect>) -> DraftOrder {
    let Job::Plan(order) = job(effects) else { unreachable!("a plan is made first") };
    let id = order.id.clone();
    let Job::Draft(order) = job(held.feed(Input::Planned(id, Ok(plan(order))))) else { unreachable!("a draft") };
    order
}

#[test]
fn a_cancel_ends_the_compaction_before_its_recovery() {
    let mut held = Held::new();
    let work = due(&mut held, 1);
    let effects = held.back(work);
    drafted(&mut held, effects);
    let cancelled = held.cancel(2);
    assert_eq!(answer(&cancelled, 2).expect("an answer")["cancelled"].as_array().map(Vec::len), Some(1));
    let ends: Vec<&str> = events(&cancelled).map(Event::kind).collect();
    assert_eq!(ends, ["compaction_end", "recovery_end", "status_changed", "settled"]);
    assert!(is_answered(&wait_for_context(&mut held, 3), 3));
}

#[test]
fn contexts_wait_for_a_recovery_and_are_answered_behind_it() {
    let mut held = Held::new();
    let work = due(&mut held, 1);
    let effects = held.back(work);
    let order = drafted(&mut held, effects);
    assert!(!is_answered(&wait_for_context(&mut held, 2), 2));
    held.call::<SessionContext>(3, json!({}));
    assert!(is_answered(&held.turn(), 3), "as the session stands");
    held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
    let work = log_work(held.turn()).expect("a write");
    let effects = held.back(work);
    assert_eq!(outcomes(&effects), [Outcome::Completed]);
    assert_eq!(recoveries(&effects).1, [RecoveryOutcome::Recovered]);
    assert!(is_answered(&effects, 2));
}

#[test]
fn a_recovery_that_fails_holds_back_no_later_request() {
    let branch = json!({"parentEntryId": "e10"});
    for (params, refused_again) in [(json!({}), false), (branch, false), (Value::Null, true)] {
        let mut held = Held::new();
        let work = due(&mut held, 1);
        let effects = held.back(work);
        let order = drafted(&mut held, effects);
        if !params.is_null() {
            held.append_with(2, params);
            let work = log_work(held.turn()).expect("a write");
            held.back(work);
        }
        let failed = held.feed(Input::Drafted(order.id, Err(Failure::Internal("it failed".to_owned()))));
        assert_eq!(recoveries(&failed).1, [RecoveryOutcome::Failed]);
        let effects = wait_for_context(&mut held, 3);
        assert!(is_answered(&effects, 3));
        assert_eq!(answer(&effects, 3) == Some(json!("context_overflow")), refused_again);
    }
}

/// The write that is out fails.
pub(super) fn refuse_write(held: &mut Held) -> Vec<Effect> {
    let error = StoreError::Changed { path: "/held".into(), what: "it was cut".to_owned() };
    let facts = held.facts();
    held.feed(Input::Log(
        Some(LogDone::Wrote { appended: Err(error), path: None, undone: None, added: Vec::new() }),
        facts,
    ))
}

#[test]
fn a_recovery_whose_write_fails_refuses_the_context_until_the_session_goes_on() {
    let mut held = Held::new();
    let _ = due(&mut held, 1);
    let effects = refuse_write(&mut held);
    assert_eq!(recoveries(&effects), (1, vec![RecoveryOutcome::Failed]));
    assert!(answer(&wait_for_context(&mut held, 2), 2).is_some_and(|answer| answer.is_string()), "it is refused");
    held.append(3);
    let work = log_work(held.turn()).expect("a write");
    held.back(work);
    let effects = wait_for_context(&mut held, 4);
    assert!(is_answered(&effects, 4) && !answer(&effects, 4).is_some_and(|answer| answer.is_string()));
}

#[test]
fn an_edit_that_makes_the_request_smaller_or_a_limit_larger_gives_a_context_behind_a_failed_recovery() {
    let tools = |number: usize| {
        let tool =
            json!({"name": "read", "description": "Reads a file. ".repeat(number), "inputSchema": {"type": "object"}});
        json!({ "tools": [tool] })
    };
    for (edit, lifts) in [
        (tools(200), false),
        (tools(20), true),
        (json!({"contextWindow": 100_000}), false),
        (json!({"contextWindow": 300_000}), true),
        (json!({"maxOutputTokens": 8_000}), true),
    ] {
        let mut held = Held::new();
        for (number, params) in [(1, tools(100)), (2, json!({"contextWindow": 200_000})), (4, edit.clone())] {
            if number == 4 {
                let _ = due(&mut held, 3);
                refuse_write(&mut held);
            }
            held.edit::<SessionConfigure>(number, params);
            let work = log_work(held.turn()).expect("a write");
            held.back(work);
        }
        let refused = answer(&wait_for_context(&mut held, 5), 5).is_some_and(|answer| answer.is_string());
        assert_eq!(!refused, lifts, "{edit}");
    }
}

#[test]
fn a_cancel_of_another_operation_leaves_a_recovery_before_its_start() {
    let mut held = Held::new();
    let work = due(&mut held, 1);
    let ticket = held.ticket(2);
    let cancelled = held.feed(Input::Cancel(Some("another".into()), ticket));
    assert_eq!(answer(&cancelled, 2).expect("an answer")["cancelled"], json!([]));
    assert_eq!(recoveries(&held.back(work)), (1, Vec::new()));
}

#[test]
fn only_the_last_of_several_appends_names_the_recovery() {
    let mut held = Held::new();
    held.append(1);
    refused(&mut held, 2);
    let work = log_work(held.turn()).expect("a write");
    assert_eq!(written(Some(&work)), ["message", "message"]);
    let effects = held.back(work);
    assert_eq!(next(&effects, 1), json!({"type": "none"}));
    assert_eq!(next(&effects, 2)["reason"], "overflow");
}

#[test]
fn a_second_refusal_behind_the_same_change_compacts() {
    let mut held = Held::new();
    wait_for_context(&mut held, 1);
    held.edit::<SessionConfigure>(2, json!({"model": "p/other"}));
    let work = log_work(held.turn()).expect("a write");
    held.back(work);
    for (number, expected) in [(3, RecoveryAction::Retry), (4, RecoveryAction::Compact)] {
        let work = due(&mut held, number);
        let effects = held.back(work);
        assert_eq!(action(&effects), Some(expected), "request {number}");
    }
}

#[test]
fn appends_behind_a_failed_answer_are_another_write() {
    let mut held = Held::new();
    refused(&mut held, 1);
    held.append(2);
    let work = log_work(held.turn()).expect("a write");
    assert_eq!(written(Some(&work)), ["message"]);
    assert_eq!(next(&held.back(work), 1)["reason"], "overflow");
}

#[test]
fn a_lock_that_names_a_recovery_is_settled_as_failed() {
    let kind = OperationKind::Recovery(Recovery {
        reason: RecoveryReason::Incomplete,
        removed: None,
        action: crate::protocol::events::RecoveryAction::Compact,
    });
    use crate::session::operations::Kind;
    let read = OperationKind::read(kind.name(), &kind.cause()).expect("a kind");
    assert_eq!(read.reason(), Reason::Incomplete);
    assert!(matches!(read, OperationKind::Recovery(_)));
}

/// A recovery whose compaction is being planned, with the id of both.
fn compacting(held: &mut Held) -> OperationId {
    let work = due(held, 1);
    let Job::Plan(order) = job(held.back(work)) else { unreachable!("a plan is made first") };
    order.id
}

/// The end of a recovery: its outcome, whether the turn is repeated, the code of its error, and its sentence.
fn end(effects: &[Effect]) -> (RecoveryOutcome, bool, Option<String>, String) {
    let end = events(effects).find_map(|event| match event {
        Event::RecoveryEnd { outcome, will_retry, error, error_message } => {
            let code = error.as_ref().map(|error| error.code.to_string());
            Some((*outcome, *will_retry, code, error_message.clone().unwrap_or_default()))
        }
        _ => None,
    });
    end.expect("an end")
}

fn is_refused(effects: &[Effect], number: u64) -> bool {
    answer(effects, number) == Some(json!("context_overflow"))
}

#[test]
fn a_recovery_whose_compaction_finds_nothing_fails() {
    let mut held = Held::new();
    let id = compacting(&mut held);
    let ended = held.feed(Input::Planned(id, Err(Failure::NothingToCompact(Nothing::WouldNotShrink))));
    assert_eq!(outcomes(&ended), [Outcome::Skipped]);
    let (outcome, will_retry, code, message) = end(&ended);
    assert_eq!((outcome, will_retry, code.as_deref()), (RecoveryOutcome::Failed, false, Some("nothing_to_compact")));
    assert!(message.starts_with("Context overflow recovery failed: "), "{message}");
    let retried = events(&ended).any(|event| matches!(event, Event::CompactionEnd { will_retry: true, .. }));
    assert!(!retried);
    assert!(is_refused(&wait_for_context(&mut held, 2), 2));
}

#[test]
fn a_recovery_whose_compaction_is_cancelled_is_cancelled_and_refuses_no_context() {
    let mut held = Held::new();
    let id = compacting(&mut held);
    let ended = held.feed(Input::Planned(id, Err(Failure::Cancelled)));
    assert_eq!(end(&ended), (RecoveryOutcome::Cancelled, false, None, String::new()));
    let effects = wait_for_context(&mut held, 2);
    assert!(is_answered(&effects, 2) && !is_refused(&effects, 2));
}

#[test]
fn the_end_of_a_recovery_is_recorded_in_the_lock() {
    let mut held = Held::new();
    let id = compacting(&mut held);
    let ended = held.feed(Input::Planned(id, Err(Failure::Cancelled)));
    let last = ended.iter().rev().find_map(|effect| match effect {
        Effect::Record(open) => Some(open.len()),
        _ => None,
    });
    assert_eq!(last, Some(0));
}

#[test]
fn a_recovery_that_fails_refuses_the_context_unless_an_answer_came() {
    let assistant = |stop: &str, error: Value| {
        json!({"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stopReason": stop, "timestamp": 1,
            "errorMessage": error})
    };
    let command = json!({"role": "bashExecution", "command": "ls", "output": "src", "exitCode": 0, "cancelled": false,
        "truncated": false, "timestamp": 1});
    for (message, refused_again) in [
        (assistant("stop", json!(null)), false),
        (assistant("error", json!("the connection was reset")), true),
        (command, true),
    ] {
        let mut held = Held::new();
        let id = compacting(&mut held);
        held.append_with(2, json!({"messages": [message]}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        held.feed(Input::Planned(id, Err(Failure::Internal("it failed".to_owned()))));
        assert_eq!(is_refused(&wait_for_context(&mut held, 3), 3), refused_again, "{message}");
    }
}

#[test]
fn a_request_in_a_format_of_a_provider_waits_for_a_recovery() {
    let mut held = Held::new();
    set(&mut held, json!({"defaultModel": "p/m"}));
    let id = compacting(&mut held);
    held.call::<SessionContext>(2, json!({"format": "anthropic"}));
    let effects = held.turn();
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Read(2, _))), "it is held");
    let ended = held.feed(Input::Planned(id, Err(Failure::Cancelled)));
    assert!(ended.iter().any(|effect| matches!(effect, Effect::Read(2, _))));
}

#[test]
fn the_context_of_an_entry_is_not_the_one_to_repeat() {
    let mut held = Held::new();
    wait_for_context(&mut held, 1);
    held.edit::<SessionConfigure>(2, json!({"model": "p/other"}));
    let work = log_work(held.turn()).expect("a write");
    held.back(work);
    held.call::<SessionContext>(3, json!({"leafEntryId": "e10"}));
    held.turn();
    let work = due(&mut held, 4);
    assert_eq!(action(&held.back(work)), Some(RecoveryAction::Retry));
}

/// The action of the recovery that starts.
fn action(effects: &[Effect]) -> Option<RecoveryAction> {
    events(effects).find_map(|event| match event {
        Event::RecoveryStart { action, .. } => Some(*action),
        _ => None,
    })
}

/// An append of an answer that came through, whose report is the estimate of its request.
fn measured(held: &mut Held, number: u64) -> Vec<Effect> {
    let input = held.plain_request();
    let usage = json!({"input": input, "output": 10, "cacheRead": 0, "cacheWrite": 0, "totalTokens": input + 10});
    // Together with the estimate of the messages, two of these are enough growth to confirm a report.
    let text = "Done. ".repeat(if number > 100 { 500 } else { 1 });
    let answer = json!({"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop",
        "timestamp": 1, "usage": usage});
    held.append_with(number, json!({"messages": [answer]}));
    let work = log_work(held.turn()).expect("a write");
    held.back(work)
}

/// A session with two believed reports, whose window is set below the size of its context afterwards.
fn over_its_window(compaction: &Value) -> Held {
    let mut held = Held::new();
    with_window(&mut held, 100_000, compaction.clone());
    for number in [101, 102] {
        measured(&mut held, number);
    }
    with_window(&mut held, 5_000, compaction.clone());
    held
}

pub(super) fn with_window(held: &mut Held, tokens: u64, compaction: Value) {
    let models = json!([{"provider": "p", "id": "m", "contextWindow": tokens}]);
    set(held, json!({"defaultModel": "p/m", "compaction": compaction, "models": models}));
}

#[test]
fn a_prompt_over_the_window_is_compacted_where_a_compaction_may_start() {
    let over = |held: &mut Held, number| next(&measured(held, number), number);
    let mut held = over_its_window(&json!({}));
    let effects = measured(&mut held, 1);
    assert_eq!(next(&effects, 1)["reason"], "overflow");
    let Job::Plan(order) = job(effects) else { unreachable!("a plan is made first") };
    held.feed(Input::Planned(order.id, Err(Failure::Internal("it failed".to_owned()))));
    held.append_with(
        2,
        json!({"messages": [{"role": "assistant", "content": [], "stopReason": "aborted", "timestamp": 1}]}),
    );
    let work = log_work(held.turn()).expect("a write");
    assert_eq!(next(&held.back(work), 2), json!({"type": "none"}), "it rests");

    assert_eq!(over(&mut over_its_window(&json!({"enabled": false})), 1), json!({"type": "none"}), "it is off");

    let mut held = over_its_window(&json!({}));
    let order = held.begin_draft(1);
    let running = over(&mut held, 2);
    assert_eq!((&running["operationId"], &running["reason"]), (&json!(order.id), &json!("manual")));
}

#[test]
fn a_limit_that_an_error_states_is_not_seen_as_a_cut_prompt() {
    let mut held = Held::new();
    set(&mut held, json!({"defaultModel": "p/m", "tokens": {"learnWindow": false}}));
    let answer = json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
        "errorMessage": "prompt is too long: 21000 tokens > 16000 maximum"});
    held.append_with(1, json!({"messages": [answer]}));
    let work = log_work(held.turn()).expect("a write");
    held.back(work);
    assert_eq!(held.core.state().taught(Some(&named("p/m"))), Taught::default());
}

fn named(model: &str) -> ModelRef {
    ModelRef::parse(model).expect("a name")
}

/// A session of a client that asks the model that a context names. `p/m` names `p/large`, which has this window and these
/// settings for compaction.
fn promoting(window: u64, compaction: Value, data: SessionData) -> Held {
    let mut held = Held::given(data, named("p/m"));
    held.switches_models();
    let small = json!({"provider": "p", "id": "m", "contextWindow": 10_000, "promoteTo": "p/large"});
    let large = json!({"provider": "p", "id": "large", "contextWindow": window, "compaction": compaction});
    set(&mut held, json!({"models": [small, large]}));
    held
}

#[test]
fn a_larger_model_takes_a_context_up_to_its_threshold() {
    let size = promoting(20_000, json!({}), SessionData::default()).core.base.state.measure().context_tokens;
    for (threshold, expected) in [(size, true), (size - 1, false)] {
        let held = promoting(20_000, json!({"thresholdTokens": threshold}), SessionData::default());
        assert_eq!(promotion::larger_model(&held.core.base).is_some(), expected, "{threshold} of {size}");
    }
    for (window, expected) in [(10_001, true), (10_000, false)] {
        let held = promoting(window, json!({"thresholdPercent": 99}), SessionData::default());
        assert_eq!(promotion::larger_model(&held.core.base).is_some(), expected, "{window}");
    }
}

#[test]
fn a_promotion_stores_the_model_and_says_it() {
    let mut held = promoting(100_000, json!({}), SessionData::default());
    let work = due(&mut held, 1);
    let effects = held.back(work);
    assert_eq!(action(&effects), Some(RecoveryAction::PromoteModel));
    let state = held.core.state();
    assert_eq!(state.model(state.path()), Some(named("p/large")), "the client gave another one at the opening");
    let changed = events(&effects).find_map(|event| match event {
        Event::ModelChanged { from, to, reason } => Some((from.clone(), to.clone(), *reason)),
        _ => None,
    });
    assert_eq!(changed, Some((Some(named("p/m")), named("p/large"), ModelChange::Promotion)));
    assert_eq!(usages(&effects), 1);
}

#[test]
fn a_promotion_announces_the_model_as_part_of_its_recovery() {
    let mut held = promoting(100_000, json!({}), SessionData::default());
    let work = due(&mut held, 1);
    let effects = held.back(work);
    let operation = effects.iter().find_map(|effect| match effect {
        Effect::Emit(about, Event::EntryAppended { entry: Some(entry), .. }) => {
            let entry = serde_json::to_value(entry).expect("JSON");
            (entry["type"] == "model_change").then(|| about.operation.is_some())
        }
        _ => None,
    });
    assert_eq!(operation, Some(true));
}

#[test]
fn the_windows_that_a_larger_model_has_shown_limit_it() {
    let larger = named("anthropic/claude-opus-4-5");
    for (teach, expected) in [(0, true), (1, false), (2, false)] {
        let mut held = Held::given(SessionData::default(), named("p/m"));
        held.switches_models();
        let small =
            json!({"provider": "p", "id": "m", "contextWindow": 10_000, "promoteTo": "anthropic/claude-opus-4-5"});
        set(&mut held, json!({"models": [small]}));
        match teach {
            0 => {}
            1 => held.core.base.state.learned = learned("anthropic/claude-opus-4-5", 9_000),
            _ => held.core.base.state.learned.see(&larger, 9_000),
        }
        assert_eq!(promotion::larger_model(&held.core.base).is_some(), expected, "{teach}");
    }
}

#[test]
fn system_prompt_and_tools_count_for_a_larger_model() {
    let text = "rule ".repeat(15_500);
    let prompt = SessionData { system_prompt: Some(text.clone()), ..SessionData::default() };
    let tool = json!({"name": "read", "description": text, "parameters": {"type": "object"}});
    let tools = SessionData { tools: Some(vec![tool]), ..SessionData::default() };
    for (data, expected) in [(prompt, true), (tools, true)] {
        let held = promoting(40_000, json!({"reserveTokens": 16_384}), data);
        let fullness = held.core.base.state.measure();
        let (threshold, overhead) = (40_000 - 16_384, fullness.budget.overhead());
        assert!(overhead > threshold && fullness.context_tokens > threshold, "the reserve gives way: {overhead}");
        assert_eq!(promotion::larger_model(&held.core.base).is_some(), expected);
    }
}

/// The order of the plan that starts.
fn plan_order(effects: Vec<Effect>) -> crate::session::jobs::PlanOrder {
    let Job::Plan(order) = job(effects) else { unreachable!("a plan is made first") };
    order
}

#[test]
fn the_compaction_of_a_recovery_knows_what_was_rejected() {
    let mut held = Held::new();
    for (number, error, share, stated) in [
        (1, "prompt is too long: 21000 tokens > 16000 maximum", Share::WHOLE, Some((16_000, 21_000))),
        (2, "context_length_exceeded", Share::SMALLER, None),
    ] {
        let answer =
            json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1, "errorMessage": error});
        held.append_with(number, json!({"messages": [answer]}));
        let work = log_work(held.turn()).expect("a write");
        let work = log_work(held.back(work)).expect("a second write");
        let order = plan_order(held.back(work));
        assert_eq!(order.request.cause, Cause::Rejected { share, stated });
        assert_eq!(order.request.initiator, Initiator::User);
        held.feed(Input::Planned(order.id, Err(Failure::Internal("it failed".to_owned()))));
    }
}

#[test]
fn a_cancel_stops_the_job_of_a_recovery() {
    let mut held = Held::new();
    let work = due(&mut held, 1);
    let order = plan_order(held.back(work));
    held.cancel(2);
    assert!(order.stop.requested());
}

/// An append of an answer that was cut off before any text and had the window not full.
fn cut_off(held: &mut Held, number: u64) {
    let usage = json!({"input": 2_850, "output": 10, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2_860});
    let answer = json!({"role": "assistant", "content": [], "stopReason": "length", "timestamp": 1, "usage": usage});
    held.append_with(number, json!({"messages": [answer]}));
    let work = log_work(held.turn()).expect("a write");
    held.back(work);
}

#[test]
fn a_repeat_of_a_context_over_the_window_needs_maintenance() {
    for (compaction, expected, code) in [
        (json!({"enabled": false}), RecoveryOutcome::Failed, Some("context_overflow")),
        (json!({}), RecoveryOutcome::Recovered, None),
    ] {
        let mut held = Held::new();
        let other = |window: u64| {
            let models = json!([{"provider": "p", "id": "other", "contextWindow": window}]);
            json!({"compaction": compaction, "models": models})
        };
        set(&mut held, other(100_000));
        wait_for_context(&mut held, 1);
        held.edit::<SessionConfigure>(2, json!({"model": "p/other"}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        set(&mut held, other(3_000));
        let work = due(&mut held, 3);
        let effects = held.back(work);
        assert_eq!(action(&effects), Some(RecoveryAction::Retry));
        let (outcome, _, of, _) = end(&effects);
        assert_eq!((outcome, of.as_deref()), (expected, code));
    }
}

/// An answer that was cut off while a draft was made, a long output after it, and a context over the window that waits with
/// number 9. The entries of the recovery are being written.
fn reported_over_window() -> (Held, crate::session::log_work::LogWork) {
    let mut held = Held::new();
    with_window(&mut held, 7_000, json!({}));
    let order = held.begin_draft(1);
    cut_off(&mut held, 2);
    let output = "line ".repeat(2_000);
    let command = json!({"role": "bashExecution", "command": "ls", "output": output, "exitCode": 0, "cancelled": false,
        "truncated": false, "timestamp": 1});
    held.append_with(3, json!({"messages": [command]}));
    let work = log_work(held.turn()).expect("a write");
    held.back(work);
    assert!(!is_answered(&wait_for_context(&mut held, 9), 9));
    held.feed(Input::Drafted(order.id, Err(Failure::Internal("it failed".to_owned()))));
    let work = log_work(held.turn()).expect("a write");
    (held, work)
}

#[test]
fn a_context_that_waited_for_a_repeat_is_compacted_if_it_does_not_fit() {
    let (mut held, work) = reported_over_window();
    let effects = held.back(work);
    assert_eq!(recoveries(&effects), (1, vec![RecoveryOutcome::Recovered]));
    assert!(!is_answered(&effects, 9));
    assert_eq!(plan_order(effects).request.cause, Cause::Due);
}

#[test]
fn a_context_that_waited_for_a_cancelled_recovery_starts_no_compaction() {
    let (mut held, work) = reported_over_window();
    held.cancel(4);
    let effects = held.back(work);
    assert_eq!(recoveries(&effects), (1, vec![RecoveryOutcome::Cancelled]));
    assert!(is_refused(&effects, 9));
}

#[test]
fn an_overflow_of_a_recovery_names_the_window_of_the_model() {
    let mut held = Held::new();
    with_window(&mut held, 10_000, json!({}));
    let id = compacting(&mut held);
    let floor = Floor { system: 1, tools: 2, pins: 3, latest_turn: 4, window: 77 };
    let ended = held.feed(Input::Planned(id, Err(Failure::ContextOverflow(floor))));
    let errors: Vec<Value> = events(&ended)
        .filter_map(|event| match event {
            Event::CompactionEnd { error, .. } | Event::RecoveryEnd { error, .. } => error.as_ref(),
            _ => None,
        })
        .map(|error| serde_json::to_value(error).expect("JSON"))
        .collect();
    assert_eq!(errors.len(), 2);
    for error in errors {
        assert!(error.to_string().contains("10000") && !error.to_string().contains("77"), "{error}");
    }
}

#[test]
fn notices_come_behind_the_end_of_a_recovery() {
    let mut held = Held::new();
    with_window(&mut held, 10_000, json!({"strategy": "handoff"}));
    let id = compacting(&mut held);
    let ended = held.feed(Input::Planned(id, Err(Failure::Internal("it failed".to_owned()))));
    let kinds: Vec<&str> = events(&ended).map(Event::kind).collect();
    assert_eq!(kinds[..2], ["compaction_end", "recovery_end"]);
    assert!(kinds.contains(&"notice"), "{kinds:?}");
}
