//! Tests of compactions after the turn.

mod moved;

use super::{AfterTurn, Step};
use crate::{
    compaction::request::PlanRequest,
    conversation::entry::Stamps,
    ids::ModelRef,
    log::Access,
    protocol::{
        events::{Event, Reason},
        types::{CompactParams, Initiator, Outcome},
    },
    session::{
        core::{
            Input, Over,
            command::Command,
            commands::status,
            held::{
                self, Held, answer, answered, events, job, line, log_work, messages, named, notices, outcomes, plan,
                written,
            },
        },
        effects::Effect,
        jobs::{Authors, Job},
        operations::Asked,
    },
    settings::{Layers, layers::Source},
};
use serde_json::{Value, json};

/// A session below its threshold.
fn session() -> Held {
    let mut held = Held::new();
    let model = json!({"provider": "p", "id": "m", "contextWindow": 16_000});
    let settings = json!({"tokens": {"estimator": "chars"}, "defaultModel": "p/m", "models": [model]});
    held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
    held
}

fn ask(held: &mut Held, number: u64, mut params: Value) -> Vec<Effect> {
    params["sessionId"] = "held".into();
    params["when"] = "after_turn".into();
    held.send(number, Command::Compact(serde_json::from_value(params).expect("params")));
    finish_write(held)
}

/// The effects of the next turn, and those of the write that it begins.
fn finish_write(held: &mut Held) -> Vec<Effect> {
    let (mut work, mut effects) = (None, Vec::new());
    for effect in held.turn() {
        match effect {
            Effect::Log(it) => work = Some(it),
            other => effects.push(other),
        }
    }
    effects.extend(work.into_iter().flat_map(|work| held.back(work)));
    effects
}

/// The effects of all that is due.
fn finish_all(held: &mut Held) -> Vec<Effect> {
    std::iter::from_fn(|| held.core.is_due().then(|| finish_write(held))).flatten().collect()
}

fn assistant(content: Value, stop: &str) -> Value {
    json!({"role": "assistant", "content": content, "stopReason": stop, "timestamp": 1})
}

fn done() -> Value {
    assistant(json!([{"type": "text", "text": "Done."}]), "stop")
}

fn started(effects: &[Effect]) -> usize {
    let manual = |event: &&Event| matches!(event, Event::CompactionStart { reason: Reason::Manual, .. });
    events(effects).filter(manual).count()
}

#[test]
fn the_part_alone_has_one_compaction_and_knows_when_its_entry_is_to_be_written() {
    let held = session();
    let (state, mut stamps) = (held.core.state(), Stamps::seeded(1, jiff::Timestamp::UNIX_EPOCH));
    let mut part = AfterTurn::default();
    let params: CompactParams = serde_json::from_value(json!({"sessionId": "held"})).expect("params");
    for _ in 0..2 {
        let steps = part.ask(params.clone(), Asked::Unasked, state, &mut stamps);
        assert!(matches!(*steps, [Step::Write(_)]));
        assert!(part.waits() && !part.is_due(state.path()), "the turn goes on");
    }
    assert!(!part.must_write(Access::Write));
    assert_eq!(part.take(Some(&"another".into())).map(|it| it.id), None);
    let id = part.status().expect("it waits").operation_id;
    assert_eq!(part.withdraw(None, Access::Write).map(|it| it.id), Some(id));
    assert!(part.must_write(Access::Read) && !part.waits(), "a cancel waits for its entry");
    let steps = part.write_due(Ok(()), state, &mut stamps);
    assert!(matches!(*steps, [Step::Release]), "no path names it");
    assert!(!part.must_write(Access::Write));
}

#[test]
fn it_starts_behind_the_next_answer_without_calls_which_names_it() {
    let mut held = session();
    let id = answer(&ask(&mut held, 1, json!({})), 1).expect("an answer at once")["operationId"].clone();
    let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
    for (number, message) in [
        (2, json!({"role": "user", "content": "Go on.", "timestamp": 1})),
        (3, assistant(call, "toolUse")),
        (4, json!({"role": "toolResult", "toolCallId": "c", "content": "x", "timestamp": 1})),
        (5, assistant(json!([]), "aborted")),
    ] {
        assert_eq!(started(&held.write_message(number, &message)), 0, "behind message {number}");
        assert!(!held.core.is_due());
    }
    let effects = held.write_message(6, &done());
    let next = &answer(&effects, 6).expect("an answer")["next"];
    assert_eq!((&next["operationId"], &next["reason"]), (&id, &json!("manual")));
    assert_eq!(started(&effects), 1);
}

#[test]
fn it_starts_at_once_where_the_turn_is_over() {
    let mut lines = messages();
    lines.push(line("answer", Some("e39"), "message", json!({"message": done()})));
    let mut held = Held::of(&lines, u64::MAX);
    let effects = ask(&mut held, 1, json!({}));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Start(_))), "it is planned");
}

#[test]
fn it_waits_for_the_repeat_of_an_answer_that_was_removed() {
    let mut lines = messages();
    lines.push(line("answer", Some("e39"), "message", json!({"message": done()})));
    let removal = json!({"targetId": "answer", "replacement": null});
    lines.push(line("removal", Some("answer"), "context_edit", removal));
    let mut held = Held::of(&lines, u64::MAX);
    let effects = ask(&mut held, 1, json!({}));
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Start(_))), "it is not planned");
    assert_eq!(started(&held.write_message(2, &done())), 1);
}

#[test]
fn it_starts_behind_a_compaction_that_runs_and_is_skipped_where_nothing_is_left() {
    let mut held = session();
    let order = held.begin_draft(1);
    assert!(answer(&ask(&mut held, 2, json!({"initiator": "agent"})), 2).expect("it is taken").is_object());
    assert_eq!(started(&held.write_message(3, &done())), 0);
    let failed = Err(crate::protocol::errors::Failure::Cancelled);
    assert_eq!(outcomes(&held.feed(Input::Drafted(order.id, failed))), [Outcome::Cancelled]);
    let effects = held.turn();
    assert_eq!(started(&effects), 1);
    let Job::Plan(order) = job(effects) else { unreachable!("it is planned when it starts") };
    let nothing = crate::protocol::errors::Failure::NothingToCompact(super::Nothing::AlreadyCompacted);
    assert_eq!(outcomes(&held.feed(Input::Planned(order.id, Err(nothing)))), [Outcome::Skipped]);
}

#[test]
fn an_agent_is_refused_below_half_of_the_threshold() {
    let mut held = Held::new();
    let refused = ask(&mut held, 1, json!({"initiator": "agent"}));
    assert_eq!(answer(&refused, 1), Some(json!("nothing_to_compact")));
    assert!(answer(&ask(&mut held, 2, json!({})), 2).expect("a person may").is_object());
}

#[test]
fn a_session_that_is_only_read_refuses_it() {
    let mut lines = messages();
    for over in [false, true] {
        let mut held = Held::read_only_of(&lines);
        assert_eq!(answer(&ask(&mut held, 1, json!({})), 1), Some(json!("storage_error")), "the turn is over: {over}");
        lines.push(line("answer", Some("e39"), "message", json!({"message": done()})));
    }
}

#[test]
fn an_answer_that_was_cut_off_is_no_end_of_a_turn() {
    let mut held = session();
    ask(&mut held, 1, json!({}));
    let cut = assistant(json!([{"type": "text", "text": "It is"}]), "length");
    assert_eq!(started(&held.write_message(2, &cut)), 0);
    assert_eq!(started(&held.write_message(3, &done())), 1);
}

#[test]
fn it_begins_and_ends_at_once_in_a_session_that_finishes() {
    let mut held = session();
    held.feed(Input::Finish);
    let effects = ask(&mut held, 1, json!({"wait": true}));
    assert_eq!((started(&effects), outcomes(&effects)), (1, vec![Outcome::Cancelled]));
    assert_eq!(answer(&effects, 1).expect("an answer")["outcome"], "cancelled");
}

#[test]
fn its_answer_names_it_before_its_status_does_unless_it_leaves_with_a_batch() {
    let mut held = session();
    let id = answer(&ask(&mut held, 1, json!({})), 1).expect("an answer")["operationId"].clone();
    assert_eq!(named(&held.write_message(2, &done())), [id.as_str().map(str::to_owned)]);
    let mut held = session();
    let params = json!({"sessionId": "held", "when": "after_turn"});
    held.send_in_batch(1, Command::Compact(serde_json::from_value(params).expect("params")));
    finish_write(&mut held);
    assert_eq!(named(&held.write_message(2, &done())), [None]);
}

#[test]
fn it_is_planned_as_it_was_asked_for() {
    let mut held = session();
    let params =
        json!({"keepRecentTokens": 700, "initiator": "agent", "method": "extractive", "instructions": "Briefly."});
    ask(&mut held, 1, params);
    let Job::Plan(order) = job(held.write_message(2, &done())) else { unreachable!("it is planned") };
    let PlanRequest { keep_recent_tokens, initiator, insists, .. } = order.request;
    assert_eq!((keep_recent_tokens, initiator, insists), (Some(700), Initiator::Agent, true));
    assert_eq!(order.authors, Authors::Nobody);

    let mut held = session();
    ask(&mut held, 1, json!({"model": "p/other"}));
    let Job::Plan(order) = job(held.write_message(2, &done())) else { unreachable!("it is planned") };
    assert_eq!(order.authors, Authors::Only(ModelRef { provider: "p".into(), id: "other".into() }));

    let mut held = session();
    ask(&mut held, 1, json!({}));
    let Job::Plan(order) = job(held.write_message(2, &done())) else { unreachable!("it is planned") };
    let PlanRequest { keep_recent_tokens, initiator, insists, .. } = order.request;
    assert_eq!((keep_recent_tokens, initiator, insists), (None, Initiator::User, false));
    assert_eq!(order.authors, Authors::Anyone);
}

#[test]
fn its_summary_follows_its_instructions() {
    let mut held = session();
    ask(&mut held, 1, json!({"keepRecentTokens": 500, "instructions": "Briefly."}));
    let Job::Plan(order) = job(held.write_message(2, &done())) else { unreachable!("it is planned") };
    let id = order.id.clone();
    let Job::Draft(order) = job(held.feed(Input::Planned(id, Ok(plan(order))))) else { unreachable!("a draft") };
    assert_eq!(order.focus.instructions.as_deref(), Some("Briefly."));
}

#[test]
fn a_cancel_stops_it_behind_its_start() {
    let mut held = session();
    ask(&mut held, 1, json!({}));
    let Job::Plan(order) = job(held.write_message(2, &done())) else { unreachable!("it is planned") };
    assert_eq!(outcomes(&held.cancel(3)), [Outcome::Cancelled]);
    assert!(order.stop.requested());
}

#[test]
fn a_cancel_of_another_operation_or_request_leaves_it() {
    let mut held = session();
    assert_eq!(answered(&ask(&mut held, 1, json!({"wait": true}))), [0; 0]);
    let ticket = held.ticket(2);
    let cancelled = held.feed(Input::Cancel(Some("another".into()), ticket));
    assert_eq!(answer(&cancelled, 2), Some(json!({"cancelled": []})));
    assert_eq!(outcomes(&held.feed(Input::RequestCancelled(7))), []);
    assert_eq!(started(&held.write_message(3, &done())), 1);
}

/// The compactions that wait, as `session/status` lists them.
fn waiting(held: &Held) -> Vec<String> {
    status::answer(&held.core).waiting.into_iter().map(|it| it.operation_id.to_string()).collect()
}

fn id_of(effects: &[Effect], number: u64) -> String {
    answer(effects, number).expect("an answer")["operationId"].as_str().expect("an id").to_owned()
}

fn skipped(effects: &[Effect]) -> Vec<String> {
    let reason = |event: &Event| match event {
        Event::CompactionEnd { skipped_reason, .. } => {
            skipped_reason.map(|reason| json!(reason).as_str().unwrap_or_default().to_owned())
        }
        _ => None,
    };
    events(effects).filter_map(reason).collect()
}

/// Plans, drafts and writes the compaction that starts with these effects.
fn complete(held: &mut Held, effects: Vec<Effect>) -> Vec<Effect> {
    let Job::Plan(order) = job(effects) else { unreachable!("it is planned") };
    let id = order.id.clone();
    let mut all = held.feed(Input::Planned(id, Ok(plan(order))));
    let at = all.iter().position(|effect| matches!(effect, Effect::Start(_))).expect("a draft");
    let Job::Draft(order) = job(vec![all.remove(at)]) else { unreachable!("a draft") };
    all.extend(held.feed(Input::Drafted(order.id.clone(), Ok(held::draft(order)))));
    all.extend(finish_all(held));
    all
}

#[test]
fn its_answer_follows_its_entry_on_disk_and_fails_with_it() {
    let mut held = session();
    let params = json!({"sessionId": "held", "when": "after_turn"});
    held.send(1, Command::Compact(serde_json::from_value(params).expect("params")));
    let effects = held.turn();
    assert_eq!(answered(&effects), [0; 0]);
    let work = log_work(effects).expect("a write");
    assert_eq!(written(Some(&work)), ["custom"]);
    let effects = held.refuse_write();
    assert_eq!(answer(&effects, 1), Some(json!("storage_error")));
    assert_eq!((started(&effects), waiting(&held)), (0, vec![]));
    assert_eq!(started(&held.write_message(2, &done())), 0);
}

#[test]
fn it_is_listed_while_it_waits() {
    let mut held = session();
    let id = id_of(&ask(&mut held, 1, json!({"instructions": "Briefly."})), 1);
    let status = json!(status::answer(&held.core));
    assert_eq!(status["operations"], json!([]));
    let listed = &status["waiting"][0];
    assert_eq!((&listed["operationId"], &listed["when"]), (&json!(id), &json!("after_turn")));
    assert_eq!((&listed["kind"], &listed["hasInstructions"]), (&json!("compaction"), &json!(true)));
    assert!(listed["since"].as_str().is_some_and(|since| since.ends_with('Z')), "{listed}");
    held.write_message(2, &done());
    let status = json!(status::answer(&held.core));
    assert_eq!((&status["waiting"], &status["operations"][0]["operationId"]), (&json!([]), &json!(id)));
}

#[test]
fn nothing_is_busy_because_of_it() {
    let mut held = session();
    ask(&mut held, 1, json!({}));
    assert!(held.core.base.free().is_ok());
    assert_eq!(held.core.base.operations.status().kind, crate::protocol::types::StatusKind::Idle);
    held.begin_draft(2);
}

#[test]
fn a_second_request_has_its_id_and_its_params_count() {
    let mut held = session();
    let first = id_of(&ask(&mut held, 1, json!({"instructions": "Old."})), 1);
    let second = id_of(&ask(&mut held, 2, json!({"keepRecentTokens": 500, "instructions": "New."})), 2);
    assert_eq!((&second, waiting(&held)), (&first, vec![first.clone()]));
    let Job::Plan(order) = job(held.write_message(3, &done())) else { unreachable!("it is planned") };
    let id = order.id.clone();
    finish_all(&mut held);
    let Job::Draft(order) = job(held.feed(Input::Planned(id, Ok(plan(order))))) else { unreachable!("a draft") };
    assert_eq!(order.focus.instructions.as_deref(), Some("New."));
}

#[test]
fn a_second_request_whose_entry_cannot_be_written_changes_nothing() {
    let mut held = session();
    ask(&mut held, 1, json!({"instructions": "Old."}));
    let params = json!({"sessionId": "held", "when": "after_turn", "wait": true, "keepRecentTokens": 1});
    held.send(2, Command::Compact(serde_json::from_value(params).expect("params")));
    held.turn();
    assert_eq!(answer(&held.refuse_write(), 2), Some(json!("storage_error")));
    let Job::Plan(order) = job(held.write_message(3, &done())) else { unreachable!("it is planned") };
    assert_eq!(order.request.keep_recent_tokens, None);
}

#[test]
fn a_second_request_whose_entry_cannot_be_written_introduces_no_id() {
    let request = |params: Value| Command::Compact(serde_json::from_value(params).expect("params"));
    let params = |wait: bool| json!({"sessionId": "held", "when": "after_turn", "wait": wait});
    // The first one is in a batch, waits for the end, or introduces the id with its answer.
    for (in_batch, first_waits, second_waits) in
        [(true, false, false), (true, false, true), (false, true, false), (false, false, true)]
    {
        let mut held = session();
        match in_batch {
            true => held.send_in_batch(1, request(params(first_waits))),
            false => held.send(1, request(params(first_waits))),
        }
        finish_write(&mut held);
        held.send(2, request(params(second_waits)));
        held.turn();
        assert_eq!(answer(&held.refuse_write(), 2), Some(json!("storage_error")));
        let id = waiting(&held).pop().filter(|_| !in_batch && !first_waits);
        assert_eq!(named(&held.write_message(3, &done())), [id], "{in_batch} {first_waits} {second_waits}");
    }
}

#[test]
fn a_second_request_may_wait_for_the_end_and_a_third_is_busy() {
    let mut held = session();
    let id = id_of(&ask(&mut held, 1, json!({})), 1);
    assert_eq!(answered(&ask(&mut held, 2, json!({"wait": true}))), [0; 0]);
    assert_eq!(answer(&ask(&mut held, 3, json!({"wait": true})), 3), Some(json!("busy")));
    assert_eq!(id_of(&ask(&mut held, 4, json!({})), 4), id);
    held.cancel(5);
    let effects = finish_all(&mut held);
    assert_eq!(answer(&effects, 2).map(|it| it["operationId"].clone()), Some(json!(id)), "it still waits");
}

#[test]
fn its_first_status_names_it_where_one_of_two_requests_introduced_its_id() {
    for waits in [[false, true], [true, false]] {
        let mut held = session();
        let answers = [1, 2].map(|number| ask(&mut held, number, json!({"wait": waits[number as usize - 1]})));
        assert_eq!(answers.iter().flat_map(|effects| answered(effects)).count(), 1, "{waits:?}");
        let id = waiting(&held).pop();
        assert_eq!(named(&held.write_message(3, &done())), [id], "{waits:?}");
    }
}

#[test]
fn a_cancel_names_it_and_its_end_follows_the_entry_that_says_so() {
    for by_id in [true, false] {
        let mut held = session();
        let id = id_of(&ask(&mut held, 1, json!({})), 1);
        let ticket = held.ticket(2);
        let effects = held.feed(Input::Cancel(by_id.then(|| id.as_str().into()), ticket));
        assert_eq!(waiting(&held), [""; 0]);
        let turn = held.turn();
        assert_eq!((started(&effects), started(&turn)), (0, 0), "the entry is not on disk");
        let again = held.cancel(3);
        assert_eq!(
            [&effects, &turn, &again].map(|effects| answered(effects)),
            [[0; 0]; 3],
            "a kill would bring it back"
        );
        let effects = held.back(log_work(turn).expect("the entry"));
        for cancel in [2, 3] {
            assert_eq!(answer(&effects, cancel).expect("an answer")["cancelled"][0]["operationId"], json!(id));
        }
        assert_eq!(started(&effects), 0);
        let effects = finish_all(&mut held);
        assert_eq!((started(&effects), outcomes(&effects)), (1, vec![Outcome::Cancelled]));
        let mut held = held.reopened();
        assert_eq!((started(&held.write_message(3, &done())), waiting(&held)), (0, vec![]));
    }
}

#[test]
fn a_cancel_stops_what_runs_before_its_answer_waits_for_the_entry() {
    let mut held = session();
    let id = id_of(&ask(&mut held, 1, json!({})), 1);
    let running = held.begin_draft(2).id;
    let effects = held.cancel(3);
    assert_eq!((answer(&effects, 3), outcomes(&effects)), (None, vec![Outcome::Cancelled]));
    let effects = finish_all(&mut held);
    let named = answer(&effects, 3).expect("an answer")["cancelled"].clone();
    let named: Vec<&str> =
        named.as_array().expect("a list").iter().filter_map(|it| it["operationId"].as_str()).collect();
    assert_eq!(named, [running.as_str(), id.as_str()]);
}

#[test]
fn a_cancel_whose_entry_cannot_be_written_is_answered_with_a_notice() {
    let mut held = session();
    ask(&mut held, 1, json!({}));
    held.cancel(2);
    held.turn();
    let effects = held.refuse_write();
    assert!(answer(&effects, 2).expect("an answer")["cancelled"][0].is_object());
    assert_eq!(notices(&effects), ["The compaction after the turn could not be recorded"]);
}

#[test]
fn a_cancel_is_answered_where_its_log_is_lost() {
    let mut held = session();
    ask(&mut held, 1, json!({}));
    held.cancel(2);
    held.turn();
    let mut effects = held.lose_log();
    effects.extend(finish_all(&mut held));
    assert!(answer(&effects, 2).expect("an answer")["cancelled"][0].is_object());
    assert_eq!(notices(&effects), ["The compaction after the turn could not be recorded"]);
    let told = effects.iter().position(|effect| matches!(effect, Effect::Emit(_, Event::Notice { .. })));
    let answered = effects.iter().position(|effect| matches!(effect, Effect::Answer(2, _)));
    assert!(told < answered, "the client knows that a restart may bring it back");
}

#[test]
fn a_cancel_while_its_entry_is_written_ends_it_too() {
    let mut held = session();
    let params = json!({"sessionId": "held", "when": "after_turn"});
    held.send(1, Command::Compact(serde_json::from_value(params).expect("params")));
    let work = log_work(held.turn()).expect("a write");
    assert_eq!(answered(&held.cancel(2)), [0; 0]);
    let effects = held.back(work);
    assert!(answer(&effects, 1).expect("an answer").is_object());
    let effects = finish_all(&mut held);
    assert!(answer(&effects, 2).expect("an answer")["cancelled"][0].is_object());
    assert_eq!((started(&effects), outcomes(&effects)), (1, vec![Outcome::Cancelled]));
    assert_eq!(waiting(&held.reopened()), [""; 0]);
}

#[test]
fn a_cancelled_request_ends_it() {
    let mut held = session();
    ask(&mut held, 1, json!({"wait": true}));
    held.feed(Input::RequestCancelled(1));
    assert_eq!(outcomes(&finish_all(&mut held)), [Outcome::Cancelled]);
}

#[test]
fn the_end_of_the_session_ends_one_that_a_request_waits_for_and_keeps_any_other() {
    for input in [|| Input::Finish, || Input::Stop] {
        let mut held = session();
        assert_eq!(answered(&ask(&mut held, 1, json!({"wait": true}))), [0; 0]);
        held.feed(input());
        assert_eq!(held.core.over(), Over::No, "its end is to be written");
        let effects = finish_all(&mut held);
        assert_eq!((started(&effects), outcomes(&effects)), (1, vec![Outcome::Cancelled]));
        assert_eq!(answer(&effects, 1).expect("an answer")["outcome"], "cancelled");
        assert_ne!(held.core.over(), Over::No);
        assert_eq!(waiting(&held.reopened()), [""; 0]);

        let mut held = session();
        let id = id_of(&ask(&mut held, 1, json!({})), 1);
        assert_eq!(outcomes(&held.feed(input())), []);
        assert_ne!(held.core.over(), Over::No);
        assert_eq!(waiting(&held.reopened()), [id]);
    }
}

#[test]
fn it_waits_again_behind_a_restart_and_starts_with_the_next_turn() {
    let mut held = session();
    let id = id_of(&ask(&mut held, 1, json!({"keepRecentTokens": 500, "instructions": "Briefly."})), 1);
    let mut held = held.reopened();
    assert!(!held.core.is_due(), "the opening writes nothing");
    assert_eq!(waiting(&held), std::slice::from_ref(&id));
    let effects = held.write_message(2, &done());
    assert_eq!(answer(&effects, 2).expect("an answer")["next"]["operationId"], json!(id));
    let effects = complete(&mut held, effects);
    assert_eq!(outcomes(&effects), [Outcome::Completed]);
    let mut held = held.reopened();
    assert_eq!(waiting(&held), [""; 0]);
    assert_eq!(started(&held.write_message(3, &done())), 0, "it has run");
}

#[test]
fn a_turn_that_was_over_at_the_opening_starts_nothing() {
    let mut held = session();
    let id = id_of(&ask(&mut held, 1, json!({})), 1);
    held.append_with(2, json!({"messages": [done()]}));
    let work = log_work(held.turn()).expect("a write");
    // The process dies before it records the start.
    held.back(work);
    let mut held = held.reopened();
    assert!(!held.core.is_due());
    assert_eq!(waiting(&held), [id]);
    assert_eq!(started(&held.write_message(3, &json!({"role": "user", "content": "Go on.", "timestamp": 1}))), 0);
    assert_eq!(started(&held.write_message(4, &done())), 1);
}

/// Writes the records among these effects into the lock.
fn record(held: &mut Held, effects: Vec<Effect>) {
    for effect in effects {
        if let Effect::Record(operations) = effect {
            held.log.register().expect("a lock").record(operations);
        }
    }
}

/// The number of operations that the last record among these effects lists.
fn recorded_last(effects: &[Effect]) -> Option<usize> {
    effects.iter().rev().find_map(|effect| match effect {
        Effect::Record(operations) => Some(operations.len()),
        _ => None,
    })
}

#[test]
fn one_that_ran_when_the_process_died_does_not_wait_again() {
    let mut held = session();
    ask(&mut held, 1, json!({}));
    let effects = held.write_message(2, &done());
    record(&mut held, effects);
    let mut held = held.reopened();
    assert_eq!(waiting(&held), [""; 0]);
    finish_all(&mut held);
    let mut held = held.reopened();
    assert_eq!(started(&held.write_message(3, &done())), 0);
}

#[test]
fn one_that_ran_does_not_wait_again_where_the_process_dies_twice_before_its_entry_is_written() {
    let mut held = session();
    ask(&mut held, 1, json!({}));
    let effects = held.write_message(2, &done());
    record(&mut held, effects);
    for _ in 0..2 {
        held = held.reopened();
        let effects = held.core.effects().take();
        assert_eq!(outcomes(&effects), [Outcome::Failed], "it is interrupted");
        record(&mut held, effects);
    }
    let effects = finish_all(&mut held);
    assert_eq!(recorded_last(&effects), Some(0), "the file says that it waits no more");
    record(&mut held, effects);
    let held = held.reopened();
    assert_eq!(outcomes(&held.core.effects().take()), []);
    assert_eq!(waiting(&held), [""; 0]);
}

#[test]
fn one_that_was_cancelled_while_another_program_is_before_its_entry_does_not_wait_again() {
    let mut held = session();
    ask(&mut held, 1, json!({}));
    let effects = held.write_message(2, &done());
    record(&mut held, effects);
    let work = log_work(held.turn()).expect("its entry");
    assert_eq!(outcomes(&held.cancel(3)), [Outcome::Cancelled]);
    let leaf = held.core.state().path().last().expect("a leaf").id.clone();
    held.disk.append_as_another(&held::message("other", Some(leaf.as_str()))).expect("an entry");
    let effects = held.back(work);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Log(_))), "it is written again");
    record(&mut held, effects);
    assert_eq!(waiting(&held.reopened()), [""; 0]);
}

#[test]
fn the_lock_names_none_that_has_ended_where_its_entry_cannot_be_written() {
    for lose in [Held::lose_log as fn(&mut Held) -> Vec<Effect>, Held::refuse_write] {
        let mut held = session();
        ask(&mut held, 1, json!({}));
        held.write_message(2, &done());
        let mut effects = held.turn();
        held.cancel(3);
        effects.extend(lose(&mut held));
        assert_eq!(notices(&effects), ["The compaction after the turn could not be recorded"]);
        assert_eq!(recorded_last(&effects), Some(0));
    }
}

#[test]
fn a_session_that_is_only_read_has_none_that_waits() {
    let mut held = session();
    ask(&mut held, 1, json!({}));
    let held = held.reopened_read_only();
    assert_eq!(waiting(&held), [""; 0]);
    assert!(!held.core.is_due());
}

#[test]
fn an_entry_of_another_session_makes_none_wait() {
    let params = json!({"sessionId": "another", "when": "after_turn"});
    let data = json!({"operationId": "op", "since": "2026-01-01T00:00:00.000Z", "params": params});
    let mut lines = messages();
    let fields = json!({"customType": "abridged.after_turn", "data": data});
    lines.push(line("forked", Some("e39"), "custom", fields));
    assert_eq!(waiting(&Held::of(&lines, u64::MAX)), [""; 0]);
}

#[test]
fn it_gives_way_to_a_compaction_by_hand_that_completes_and_to_no_other() {
    for (completes, reasons) in [(true, vec!["superseded"]), (false, vec![])] {
        let mut held = session();
        let id = id_of(&ask(&mut held, 1, json!({})), 1);
        let order = held.begin_draft(2);
        let id_of_draft = order.id.clone();
        let result = match completes {
            true => Ok(held::draft(order)),
            false => Err(crate::protocol::errors::Failure::Cancelled),
        };
        let mut effects = held.feed(Input::Drafted(id_of_draft, result));
        effects.extend(finish_all(&mut held));
        assert_eq!(skipped(&effects), reasons);
        let settled = events(&effects).filter(|event| event.kind() == "settled").count();
        assert_eq!((started(&effects), settled), (usize::from(completes), 1));
        let left = if completes { vec![] } else { vec![id] };
        assert_eq!(waiting(&held), left);
        assert_eq!(waiting(&held.reopened()), left);
    }
}

#[test]
fn it_gives_way_to_a_reset() {
    let mut held = session();
    ask(&mut held, 1, json!({}));
    assert_eq!(answered(&ask(&mut held, 2, json!({"wait": true}))), [0; 0]);
    held.edit::<crate::protocol::SessionReset>(3, json!({}));
    let effects = finish_all(&mut held);
    assert_eq!(skipped(&effects), ["superseded"]);
    assert_eq!(answer(&effects, 2).expect("an answer")["skippedReason"], "superseded");
    let mut held = held.reopened();
    assert_eq!((started(&held.write_message(4, &done())), waiting(&held)), (0, vec![]));
}

#[test]
fn it_waits_on_behind_an_automatic_compaction_also_after_a_restart() {
    let mut held = session();
    let id = id_of(&ask(&mut held, 1, json!({})), 1);
    let first = held.core.state().path().last().expect("its entry").id.clone();
    let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
    for (number, message) in [
        (5, json!({"role": "user", "content": "Wait. ".repeat(300), "timestamp": 1})),
        (6, assistant(call, "toolUse")),
        (7, json!({"role": "toolResult", "toolCallId": "c", "content": "x", "timestamp": 1})),
    ] {
        held.write_message(number, &message);
    }
    let model = json!({"provider": "p", "id": "m", "contextWindow": 16_000});
    let settings = json!({"tokens": {"estimator": "chars"}, "defaultModel": "p/m", "models": [model],
        "compaction": {"thresholdTokens": 2_000, "keepRecentTokens": 200}});
    held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
    let go_on = json!({"role": "user", "content": "Go on. ".repeat(300), "timestamp": 1});
    let effects = held.write_message(2, &go_on);
    let effects = complete(&mut held, effects);
    assert_eq!((outcomes(&effects), skipped(&effects)), (vec![Outcome::Completed], vec![]));
    let path = held.core.state().path();
    assert!(path.iter().all(|entry| entry.id != first), "the compaction covers its first entry");
    assert_eq!(waiting(&held), std::slice::from_ref(&id));
    assert_eq!(waiting(&held.reopened()), [id]);
}

#[test]
fn it_moves_with_the_session_to_another_branch() {
    let mut held = session();
    ask(&mut held, 1, json!({}));
    held.write_message(2, &json!({"role": "user", "content": "Go on.", "timestamp": 1}));
    let params = json!({"sessionId": "held", "parentEntryId": "e9", "messages": [{"role": "user", "content": "x", "timestamp": 1}]});
    held.append_with(3, params);
    finish_all(&mut held);
    let listed = waiting(&held);
    assert_eq!(listed.len(), 1);
    assert_eq!(waiting(&held.reopened()), listed);
}
