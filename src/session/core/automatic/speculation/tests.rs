//! Tests of summaries ahead of the threshold.

mod failing;

use super::*;
use crate::session::core::standing::Standing;
use crate::{
    compaction::request::Cause,
    models::candidates::Way,
    protocol::{
        SessionPin, SessionStatus, SessionUndoCompaction, SessionUsage,
        events::{Event, Reason},
        types::Outcome,
    },
    provider::{Api, Endpoint, KeySource},
    session::{
        core::{
            Input,
            command::Command,
            held::{Held, answer, draft, events, job, line, log_work, messages, outcomes, plan, started, written},
        },
        effects::Effect,
        jobs::{DraftOrder, Job},
    },
    settings::{Layers, layers::Source},
};
use serde_json::{Value, json};
use std::time::Duration;

/// The threshold. The 40 messages of the session have about 6,000 tokens.
const THRESHOLD: u64 = 9_000;
const WINDOW: u64 = 24_000;

fn set(held: &mut Held, compaction: Value) {
    set_in(held, WINDOW, compaction);
}

fn set_in(held: &mut Held, window: u64, compaction: Value) {
    let mut all = json!({"thresholdTokens": THRESHOLD, "keepRecentTokens": 500, "reserveTokens": 4_000});
    let Value::Object(more) = compaction else { unreachable!("an object") };
    all.as_object_mut().expect("an object").extend(more);
    let models = json!([
        {"provider": "p", "id": "m", "contextWindow": window},
        {"provider": "p", "id": "other", "contextWindow": window},
    ]);
    let settings =
        json!({"tokens": {"estimator": "chars"}, "defaultModel": "p/m", "models": models, "compaction": all});
    held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
}

fn near_of(lines: &[String], compaction: Value) -> Held {
    let mut held = Held::of(lines, u64::MAX);
    set(&mut held, compaction);
    held
}

/// A session near its threshold.
fn near() -> Held {
    near_of(&messages(), json!({}))
}

/// Writes the costs and failures that wait.
fn record(held: &mut Held) {
    while !held.core.base.costs.is_empty() {
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
    }
}

/// Appends a message after the costs that wait, and returns the effects after its write.
fn say(held: &mut Held, number: u64, message: Value) -> Vec<Effect> {
    record(held);
    held.write_message(number, &message)
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text, "timestamp": 1})
}

/// A message of about so many tokens.
fn long(tokens: u64) -> Value {
    user(&"word ".repeat(usize::try_from(tokens * 4 / 5).expect("a size")))
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop", "timestamp": 1})
}

/// The plan that was ordered, if one was.
fn planning(effects: Vec<Effect>) -> Option<PlanOrder> {
    effects.into_iter().find_map(|effect| match effect {
        Effect::Start(job) => match *job {
            Job::Plan(order) => Some(order),
            _ => None,
        },
        _ => None,
    })
}

fn candidate(way: Way) -> Candidate {
    let model = ModelRef::parse("p/m").expect("a name");
    Candidate { model, window: WINDOW, output: None, thinks: false, way }
}

fn at(base_url: &str) -> Way {
    let base_url = base_url.to_owned();
    Way::Provider(Endpoint { api: Api::Anthropic, base_url, key: KeySource::None, headers: Vec::new() })
}

/// A summary begins ahead.
fn begin(held: &mut Held) -> PlanOrder {
    let order = planning(say(held, 1, user("go on"))).expect("a summary begins ahead");
    assert_eq!(order.request.cause, Cause::Ahead);
    order
}

/// The models are asked for a summary ahead.
fn ask(held: &mut Held) -> DraftOrder {
    let order = begin(held);
    let id = order.id.clone();
    let made = PlanMade { candidates: vec![Ok(candidate(Way::Client))], ..plan(order) };
    let Job::Draft(order) = job(held.feed(Input::Planned(id, Ok(made)))) else { unreachable!("a draft") };
    order
}

/// The draft of a model.
fn written_by_model(order: DraftOrder) -> Draft {
    let mut draft = draft(order);
    draft.made = crate::summary::made::Made::by_model(ModelRef::parse("p/m").expect("a model"));
    draft
}

/// A summary is ready.
fn ready(held: &mut Held) -> OperationId {
    let order = ask(held);
    let id = order.id.clone();
    let effects = held.feed(Input::Drafted(id.clone(), Ok(written_by_model(order))));
    assert_eq!(events(&effects).count(), 0);
    let recorded = effects.iter().any(|effect| matches!(effect, Effect::Record(running) if running.is_empty()));
    assert!(recorded, "the lock lists it no more");
    assert!(held.turn().is_empty(), "the threshold is not crossed");
    id
}

fn status(held: &mut Held, number: u64) -> Value {
    held.call::<SessionStatus>(number, json!({}));
    answer(&held.turn(), number).expect("an answer")
}

fn why(held: &mut Held, number: u64) -> String {
    record(held);
    held.call::<SessionUsage>(number, json!({}));
    answer(&held.turn(), number).expect("an answer")["why"].as_str().expect("a text").to_owned()
}

#[test]
fn a_summary_begins_in_the_background_near_the_threshold() {
    let mut held = near();
    let effects = say(&mut held, 1, user("go on"));
    assert_eq!(answer(&effects, 1).expect("an answer")["next"], json!({"type": "none"}));
    let kinds: Vec<_> = events(&effects).map(Event::kind).collect();
    assert_eq!(kinds, ["entry_appended", "usage_updated"]);
    let order = planning(effects).expect("a plan");
    let status = status(&mut held, 2);
    assert_eq!(status["session"]["status"], json!({"type": "idle"}));
    assert_eq!(status["operations"][0]["operationId"], json!(order.id));
    assert_eq!(status["operations"][0]["kind"], "speculation");
    assert!(why(&mut held, 3).starts_with(&format!("A summary is being made ahead ({}).", order.id)));
    // One at a time.
    assert!(planning(say(&mut held, 4, user("and on"))).is_none());
}

#[test]
fn no_summary_begins_far_below_the_threshold_or_where_it_is_switched_off() {
    for compaction in [
        json!({"thresholdTokens": 15_000}),
        json!({"speculative": false}),
        json!({"enabled": false}),
        json!({"strategy": "off"}),
    ] {
        let mut held = near_of(&messages(), compaction.clone());
        assert!(planning(say(&mut held, 1, user("go on"))).is_none(), "{compaction}");
    }
}

#[test]
fn no_summary_begins_where_old_results_leave_at_the_threshold() {
    let mut lines = messages();
    let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
    let call = json!({"role": "assistant", "content": call, "stopReason": "toolUse", "timestamp": 1});
    let result = json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "timestamp": 1,
        "content": [{"type": "text", "text": "word ".repeat(400)}]});
    lines.push(line("a", Some("e39"), "message", json!({ "message": call })));
    lines.push(line("r", Some("a"), "message", json!({ "message": result })));
    let read = json!({"role": "assistant", "content": [{"type": "text", "text": "Read."}], "stopReason": "stop", "timestamp": 1});
    lines.push(line("s", Some("r"), "message", json!({ "message": read })));
    let mut held = near_of(&lines, json!({}));
    assert!(planning(say(&mut held, 1, user("go on"))).is_some());
    let mut held = Held::of(&lines, u64::MAX);
    let settings = json!({"tokens": {"estimator": "chars"}, "prune": {"protectTokens": 0, "minimumSavings": 100},
        "compaction": {"thresholdTokens": THRESHOLD}});
    held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
    assert!(planning(say(&mut held, 1, user("go on"))).is_none());
}

#[test]
fn a_summary_that_is_ready_is_spliced_in_when_the_threshold_is_crossed() {
    let mut held = near();
    let id = ready(&mut held);
    assert!(why(&mut held, 2).starts_with(&format!("A summary ({id}) is ready")));
    assert_eq!(status(&mut held, 3)["operations"], json!([]), "it does not run any more");
    let effects = say(&mut held, 4, long(3_000));
    let next = &answer(&effects, 4).expect("an answer")["next"];
    assert_eq!((&next["operationId"], &next["reason"]), (&json!(id), &json!("threshold")));
    assert_eq!(started(&effects), [Reason::Threshold]);
    assert!(planning(effects).is_none(), "nothing is planned");
    let work = log_work(held.turn()).expect("the compaction is written at once");
    assert_eq!(written(Some(&work))[0], "compaction");
    let effects = held.back(work);
    let end = events(&effects).find_map(|event| match event {
        Event::CompactionEnd { outcome, result, .. } => Some((*outcome, result.as_ref()?.method)),
        _ => None,
    });
    assert_eq!(end, Some((Outcome::Completed, crate::protocol::types::SummaryMethod::Llm)));
    let path = held.core.state().path();
    let kept: Vec<bool> = path.iter().map(|entry| entry.compaction().is_some()).collect();
    assert!(kept.last() == Some(&true) && path.len() > 2, "the messages that came since are kept");
}

#[test]
fn requests_go_on_over_the_threshold_while_the_summary_is_made() {
    let mut held = Held::new();
    set_in(&mut held, 17_000, json!({"thresholdTokens": 12_000, "reserveTokens": 8_500}));
    let order = ask(&mut held);
    let effects = say(&mut held, 2, long(4_700));
    assert_eq!(answer(&effects, 2).expect("an answer")["next"], json!({"type": "none"}));
    assert!(started(&effects).is_empty());
    let why = why(&mut held, 3);
    assert!(why.contains("requests go on up to 12750 tokens"), "{why}");
    // Over the window without half of the reserve the context waits for it.
    let effects = say(&mut held, 4, long(400));
    assert_eq!(answer(&effects, 4).expect("an answer")["next"]["operationId"], json!(order.id));
    assert_eq!(started(&effects), [Reason::Threshold]);
    assert!(planning(effects).is_none(), "the job goes on");
    assert!(!order.stop.requested() && order.rank.is_foreground());
    held.feed(Input::Drafted(order.id.clone(), Ok(written_by_model(order))));
    assert_eq!(written(log_work(held.turn()).as_ref())[0], "compaction");
}

#[test]
fn a_summary_that_is_ready_over_the_threshold_is_spliced_in_without_a_request() {
    let mut held = near();
    let order = ask(&mut held);
    say(&mut held, 2, long(3_000));
    let effects = held.feed(Input::Drafted(order.id.clone(), Ok(written_by_model(order))));
    assert!(started(&effects).is_empty() && held.core.is_due());
    assert_eq!(started(&held.turn()), [Reason::Threshold]);
    assert!(log_work(held.turn()).is_some());
}

#[test]
fn a_summary_that_is_ready_waits_for_the_results_of_open_calls() {
    let mut held = near();
    let order = ask(&mut held);
    let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {"x": "word ".repeat(2_500)}}]);
    say(&mut held, 2, json!({"role": "assistant", "content": call, "stopReason": "toolUse", "timestamp": 1}));
    held.feed(Input::Drafted(order.id.clone(), Ok(written_by_model(order))));
    assert!(started(&held.turn()).is_empty());
    assert!(!held.core.is_due());
    let result = json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "timestamp": 1, "content": []});
    assert_eq!(started(&say(&mut held, 3, result)), [Reason::Threshold]);
}

/// Whether a summary is made on after something that happens. If not, its job stops.
fn behind(happens: impl FnOnce(&mut Held)) -> bool {
    let mut held = near();
    let order = ask(&mut held);
    happens(&mut held);
    let goes_on = held.core.upkeep.ahead.making.is_some();
    assert_eq!(order.stop.requested(), !goes_on, "its job stops with it");
    goes_on
}

fn write(held: &mut Held) {
    let work = log_work(held.turn()).expect("a write");
    held.back(work);
}

#[test]
fn a_summary_is_thrown_away_where_what_it_covers_is_changed() {
    let pin = |entry: &'static str| {
        move |held: &mut Held| {
            held.edit::<SessionPin>(2, json!({"entryId": entry}));
            write(held);
        }
    };
    assert!(!behind(pin("e1")), "a pin of a summarized entry");
    assert!(behind(pin("e39")), "a pin of a kept entry");
    let branch = |held: &mut Held| {
        held.append_with(2, json!({"parentEntryId": "e20"}));
        write(held);
    };
    assert!(!behind(branch), "another branch");
    let other = |held: &mut Held| {
        let mut message = assistant("Yes.");
        (message["provider"], message["model"]) = ("p".into(), "other".into());
        say(held, 2, message);
    };
    assert!(!behind(other), "another model");
    assert!(!behind(|held| set(held, json!({"keepRecentTokens": 700}))), "other settings");
    assert!(behind(|held| set(held, json!({}))), "the same settings");
    assert!(!behind(|held| drop(held.feed(Input::Finish))), "the end of the session");
    assert!(!behind(|held| drop(held.feed(Input::Stop))), "a stop of the session");
    let manual = |held: &mut Held| {
        held.begin_draft(2);
    };
    assert!(!behind(manual), "a compaction by hand");
    assert!(behind(|held| drop(say(held, 2, user("and on")))), "a message");
}

#[test]
fn an_edit_of_a_summarized_entry_throws_the_summary_away() {
    // Without the answer e38 no model has read the messages before it.
    for (target, goes_on) in [("e1", false), ("e38", false), ("e39", true)] {
        let mut held = near();
        ready(&mut held);
        let edit = line("edit", Some("e40"), "context_edit", json!({"targetId": target, "replacement": null}));
        let leaf = held.core.state().path().last().expect("a leaf").id.to_string();
        let edit = edit.replace("\"e40\"", &format!("\"{leaf}\""));
        held.disk.append_as_another(&edit).expect("an entry");
        held.feed(Input::FileTouched);
        write(&mut held);
        assert_eq!(held.core.upkeep.ahead.making.is_some(), goes_on, "{target}");
    }
}

#[test]
fn a_cancel_names_and_stops_it_and_none_begins_before_the_next_message_of_the_user() {
    for by_id in [true, false] {
        let mut held = near();
        let order = ask(&mut held);
        let ticket = held.ticket(2);
        let effects = held.feed(Input::Cancel(by_id.then(|| order.id.clone()), ticket));
        let cancelled = &answer(&effects, 2).expect("an answer")["cancelled"];
        assert_eq!(*cancelled, json!([{"operationId": order.id, "kind": "speculation"}]));
        assert_eq!(events(&effects).count(), 0);
        assert!(order.stop.requested());
        assert!(planning(say(&mut held, 3, assistant("Yes."))).is_none());
        assert!(planning(say(&mut held, 4, user("go on"))).is_some());
    }
}

#[test]
fn a_late_result_of_a_summary_that_was_thrown_away_is_ignored() {
    let mut held = near();
    let order = ask(&mut held);
    held.cancel(2);
    held.feed(Input::Drafted(order.id.clone(), Ok(written_by_model(order))));
    assert!(held.core.upkeep.ahead.making.is_none());
    assert!(!held.core.is_due());
}

#[test]
fn a_summary_that_no_model_writes_is_not_made_ahead() {
    let local = candidate(at("http://127.0.0.1:11434/v1"));
    for (speculative, candidates, begins) in [
        (json!("auto"), vec![], false),
        (json!("auto"), vec![Ok(local.clone())], false),
        (json!(true), vec![Ok(local)], true),
        (json!("auto"), vec![Ok(candidate(at("https://api.example.com")))], true),
    ] {
        let mut held = near_of(&messages(), json!({"speculative": speculative}));
        let order = begin(&mut held);
        let (id, made) = (order.id.clone(), PlanMade { candidates, ..plan(order) });
        let drafts = held.feed(Input::Planned(id, Ok(made))).iter().any(|effect| matches!(effect, Effect::Start(_)));
        assert_eq!(drafts, begins);
        assert_eq!(held.core.upkeep.ahead.making.is_some(), begins);
        if !begins {
            assert!(planning(say(&mut held, 2, user("go on"))).is_none(), "that does not change");
            set(&mut held, json!({"speculative": true}));
            assert!(planning(say(&mut held, 3, user("go on"))).is_some(), "other settings");
        }
    }
}

#[test]
fn an_extracted_or_failed_summary_is_thrown_away_and_the_compaction_asks_again() {
    for fails in [true, false] {
        let mut held = near();
        let order = ask(&mut held);
        let id = order.id.clone();
        let result = if fails { Err(Failure::Internal("it failed".to_owned())) } else { Ok(draft(order)) };
        held.feed(Input::Drafted(id.clone(), result));
        assert!(held.core.upkeep.ahead.making.is_none());
        let effects = say(&mut held, 2, long(3_000));
        assert_eq!(started(&effects), [Reason::Threshold]);
        let order = planning(effects).expect("it is planned");
        assert_eq!((order.request.cause, order.id != id), (Cause::Due, true));
    }
}

#[test]
fn a_summary_that_leaves_no_room_is_not_spliced_in() {
    let mut held = near();
    let id = ready(&mut held);
    let effects = say(&mut held, 2, long(6_200));
    assert_eq!(started(&effects), [Reason::Threshold]);
    let order = planning(effects).expect("a compaction of its own");
    assert_ne!(order.id, id);
    assert!(held.core.upkeep.ahead.making.is_some(), "it may serve if that one fails");
}

#[test]
fn a_compaction_that_waited_for_too_small_a_summary_is_planned_again() {
    let mut held = near_of(&messages(), json!({"thresholdTokens": 8_000, "keepRecentTokens": 4_000}));
    let order = ask(&mut held);
    let id = order.id.clone();
    assert_eq!(started(&say(&mut held, 2, long(15_000))), [Reason::Threshold]);
    let effects = held.feed(Input::Drafted(id.clone(), Ok(written_by_model(order))));
    let again = planning(effects).expect("it is planned again");
    assert_eq!((again.id.clone(), again.request.cause), (id.clone(), Cause::Due));
    let Job::Draft(order) = job(held.feed(Input::Planned(id.clone(), Ok(plan(again))))) else { unreachable!() };
    held.feed(Input::Drafted(id, Ok(draft(order))));
    assert_eq!(written(log_work(held.turn()).as_ref())[0], "compaction");
}

#[test]
fn a_compaction_by_hand_that_is_written_throws_a_ready_summary_away() {
    let mut held = near();
    ready(&mut held);
    let order = held.begin_draft(2);
    held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
    let work = log_work(held.turn()).expect("a write");
    assert_eq!(outcomes(&held.back(work)), [Outcome::Completed]);
    assert!(held.core.upkeep.ahead.making.is_none());
    held.edit::<SessionUndoCompaction>(3, json!({}));
    write(&mut held);
    assert!(planning(say(&mut held, 4, user("go on"))).is_none(), "a compaction was undone here");
}

#[test]
fn a_ready_summary_outlives_the_sleep_of_its_session() {
    let mut held = near();
    let id = ready(&mut held);
    held.at.now = held.core.wake_at(0).expect("it sleeps");
    held.feed(Input::Tick);
    assert!(held.core.state().history().is_asleep());
    let path = |held: &Held| match &held.core.upkeep.ahead.making.as_ref().expect("it is there").phase {
        Phase::Ready { draft, .. } => draft.plan.path().len(),
        _ => 0,
    };
    assert_eq!(path(&held), 0, "it holds no entries");
    held.append_with(2, json!({"messages": [long(3_000)]}));
    let woken = log_work(held.turn()).expect("the path is read");
    held.back(woken);
    assert_eq!(path(&held), 41);
    let work = log_work(held.turn()).expect("a write");
    let effects = held.back(work);
    assert_eq!(answer(&effects, 2).expect("an answer")["next"]["operationId"], json!(id));
    assert_eq!(written(log_work(held.turn()).as_ref())[0], "compaction");
}

#[test]
fn a_session_sleeps_behind_the_summary_that_it_makes() {
    let mut held = near();
    let order = ask(&mut held);
    assert_eq!(held.core.wake_at(0), None);
    held.feed(Input::Drafted(order.id.clone(), Ok(written_by_model(order))));
    held.turn();
    assert!(held.core.wake_at(0).is_some());
}

#[test]
fn a_summary_that_becomes_ready_too_late_is_thrown_away_and_the_next_append_starts_a_compaction() {
    let mut held = near();
    let order = ask(&mut held);
    say(&mut held, 2, long(6_000));
    held.feed(Input::Drafted(order.id.clone(), Ok(written_by_model(order))));
    assert!(started(&held.turn()).is_empty());
    assert!(held.core.upkeep.ahead.making.is_none());
    let effects = say(&mut held, 3, assistant("Yes."));
    assert_eq!(started(&effects), [Reason::Threshold]);
    assert_ne!(answer(&effects, 3).expect("an answer")["next"]["type"], "none");
}

#[test]
fn a_summary_leaves_room_for_the_messages_up_to_the_threshold() {
    let mut held = near();
    let context = held.core.state().measure().context_tokens;
    let demand = plan(begin(&mut held)).planned.plan.demand;
    assert!(demand.budget.threshold < THRESHOLD && demand.budget.threshold >= context, "{demand:?}");
}

#[test]
fn a_compaction_that_becomes_due_while_a_summary_is_planned_makes_a_plan_of_its_own() {
    let mut held = near();
    let order = begin(&mut held);
    let effects = say(&mut held, 2, long(12_500));
    assert_eq!(started(&effects), [Reason::Threshold]);
    let own = planning(effects).expect("a plan");
    assert_eq!((own.request.cause, own.id != order.id), (Cause::Due, true));
    assert!(order.stop.requested());
}

#[test]
fn a_summary_begins_while_open_calls_hold_the_compaction_back() {
    let open = || {
        let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {"x": "word ".repeat(4_000)}}]);
        json!({"role": "assistant", "content": call, "stopReason": "toolUse", "timestamp": 1})
    };
    let mut held = near_of(&messages(), json!({"thresholdTokens": 12_500}));
    assert!(planning(say(&mut held, 1, user("go on"))).is_none(), "below half of the threshold");
    let effects = say(&mut held, 2, open());
    assert!(Standing::of(&held.core).decision().to_string().contains("tool calls have no result"));
    assert!(planning(effects).is_some());
    let result = json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "timestamp": 1, "content": []});
    let mut mid_turn = near_of(&messages(), json!({"thresholdTokens": 9_000, "midTurn": false, "speculative": false}));
    say(&mut mid_turn, 1, open());
    set(&mut mid_turn, json!({"thresholdTokens": 9_000, "midTurn": false}));
    assert!(planning(say(&mut mid_turn, 2, result)).is_some(), "the turn goes on");
}

#[test]
fn no_summary_begins_beside_other_maintenance_or_without_a_budget() {
    let mut held = near();
    held.begin_draft(1);
    assert!(planning(say(&mut held, 2, user("go on"))).is_none(), "a compaction runs");

    let mut held = near();
    let later = json!({"sessionId": "held", "when": "after_turn"});
    held.send(1, Command::Compact(serde_json::from_value(later).expect("params")));
    let work = log_work(held.turn()).expect("its entry");
    held.back(work);
    assert!(planning(say(&mut held, 2, user("go on"))).is_none(), "a compaction waits for the end of the turn");

    let mut held = near_of(&messages(), json!({"maxTokensPerHour": 5_000}));
    assert!(planning(say(&mut held, 1, user("go on"))).is_none(), "the budget has no room");
    let mut held = near_of(&messages(), json!({"maxTokensPerHour": 50_000}));
    assert!(planning(say(&mut held, 1, user("go on"))).is_some());
}

#[test]
fn an_entry_of_another_program_that_rewrites_the_context_throws_the_summary_away() {
    for (kind, fields) in [
        ("reset_boundary", json!({})),
        ("compaction", json!({"summary": "Done.", "firstKeptEntryId": "e0", "tokensBefore": 100})),
    ] {
        let mut held = near();
        ready(&mut held);
        let leaf = held.core.state().path().last().expect("a leaf").id.clone();
        held.disk.append_as_another(&line("x", Some(leaf.as_str()), kind, fields)).expect("an entry");
        held.feed(Input::FileTouched);
        write(&mut held);
        assert!(held.core.upkeep.ahead.making.is_none(), "{kind}");
    }
}

#[test]
fn an_edit_of_a_result_that_the_draft_shortens_throws_it_away() {
    for (shortened, goes_on) in [("e39", false), ("e38", true)] {
        let mut held = near();
        let order = ask(&mut held);
        let mut draft = written_by_model(order);
        let target_id = shortened.into();
        draft.edits.push(crate::conversation::entry::ContextEdit { target_id, replacement: None });
        let id = held.core.upkeep.ahead.making.as_ref().expect("it is there").id.clone();
        held.feed(Input::Drafted(id, Ok(draft)));
        held.turn();
        let leaf = held.core.state().path().last().expect("a leaf").id.clone();
        let edit = json!({"targetId": "e39", "replacement": null});
        held.disk.append_as_another(&line("x", Some(leaf.as_str()), "context_edit", edit)).expect("an entry");
        held.feed(Input::FileTouched);
        write(&mut held);
        assert_eq!(held.core.upkeep.ahead.making.is_some(), goes_on, "{shortened}");
    }
}

#[test]
fn a_summary_begins_earlier_where_the_session_grows_fast_in_the_time_of_its_summaries() {
    // Its usual begin is half of the threshold; here the headroom is an eighth.
    let begins = |carried: Value| {
        let mut lines = messages();
        let preserve = json!({"abridged": {"entryId": "c", "summaryTimes": carried}});
        let compaction =
            json!({"summary": "Done.", "firstKeptEntryId": "e0", "tokensBefore": 9, "preserveData": preserve});
        lines.push(line("c", Some("e39"), "compaction", compaction));
        let mut held = Held::of(&lines, u64::MAX);
        set_in(&mut held, 200_000, json!({"thresholdTokens": 100_000, "reserveTokens": 16_384}));
        say(&mut held, 1, long(25_000));
        held.at.now += Duration::from_secs(5);
        planning(say(&mut held, 2, long(25_000))).is_some()
    };
    assert!(!begins(json!([])), "73,000 tokens are below 87,500");
    assert!(begins(json!([20_000])), "34,000 tokens came in 5 seconds");
}

#[test]
fn the_time_of_a_summary_counts_where_a_model_wrote_it() {
    let times = |held: &Held| held.core.upkeep.ahead.summary_times();
    let mut held = near();
    let order = ask(&mut held);
    held.at.now += Duration::from_secs(7);
    held.feed(Input::Drafted(order.id.clone(), Ok(written_by_model(order))));
    assert_eq!(times(&held), [7_000]);

    for (by_model, expected) in [(true, vec![3_000]), (false, vec![])] {
        let mut held = near();
        let order = held.begin_draft(1);
        held.at.now += Duration::from_secs(3);
        let id = order.id.clone();
        let made = if by_model { written_by_model(order) } else { draft(order) };
        held.feed(Input::Drafted(id, Ok(made)));
        assert_eq!(times(&held), expected, "by a model: {by_model}");
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        let path = held.core.state().path();
        let carried = path.compaction().and_then(|place| path[place].compaction()?.preserved()).expect("data");
        assert_eq!(carried.summary_times, expected, "the compaction carries it");
    }
}

#[test]
fn a_ready_summary_is_thrown_away_where_the_session_wakes_on_another_branch() {
    let mut held = near();
    ready(&mut held);
    held.at.now = held.core.wake_at(0).expect("it sleeps");
    held.feed(Input::Tick);
    held.disk
        .append_as_another(&line("x", Some("e20"), "message", json!({"message": user("Elsewhere.")})))
        .expect("one");
    held.feed(Input::FileTouched);
    write(&mut held);
    held.append_with(2, json!({"messages": [user("go on")]}));
    while let Some(work) = log_work(held.turn()) {
        held.back(work);
    }
    assert!(held.core.upkeep.ahead.making.as_ref().is_none_or(|making| matches!(making.phase, Phase::Planning)));
}

#[test]
fn an_undone_compaction_throws_the_summary_away() {
    let mut lines = messages();
    lines.push(line(
        "c",
        Some("e39"),
        "compaction",
        json!({"summary": "Done.", "firstKeptEntryId": "e0", "tokensBefore": 9}),
    ));
    let mut held = near_of(&lines, json!({}));
    ready(&mut held);
    held.edit::<SessionUndoCompaction>(2, json!({}));
    write(&mut held);
    assert!(held.core.upkeep.ahead.making.is_none());
}

#[test]
fn no_summary_begins_where_a_larger_model_takes_the_context_at_the_threshold() {
    for (switches, begins) in [(true, false), (false, true)] {
        let mut held = Held::new();
        if switches {
            held.switches_models();
        }
        let models = json!([
            {"provider": "p", "id": "m", "contextWindow": WINDOW, "promoteTo": "p/large"},
            {"provider": "p", "id": "large", "contextWindow": 200_000},
        ]);
        let settings = json!({"tokens": {"estimator": "chars"}, "defaultModel": "p/m", "models": models,
            "compaction": {"thresholdTokens": THRESHOLD, "keepRecentTokens": 500}});
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
        assert_eq!(planning(say(&mut held, 1, user("go on"))).is_some(), begins, "it switches: {switches}");
    }
}

#[test]
fn a_ready_summary_is_spliced_in_where_another_program_has_written_behind_it() {
    let mut held = near();
    let id = ready(&mut held);
    let leaf = held.core.state().path().last().expect("a leaf").id.clone();
    let theirs = line("x", Some(leaf.as_str()), "message", json!({"message": user("From another program.")}));
    held.disk.append_as_another(&theirs).expect("an entry");
    held.feed(Input::FileTouched);
    write(&mut held);
    let reread = held.core.state().path().up_to(&leaf).expect("a path");
    held.core.base.state.change(|history| history.set_path(crate::conversation::path::Path::of(&copied(&reread))));
    assert_eq!(started(&say(&mut held, 2, long(3_000))), [Reason::Threshold]);
    let work = log_work(held.turn()).expect("the compaction is written");
    assert_eq!(outcomes(&held.back(work)), [Outcome::Completed]);
    assert!(held.core.upkeep.ahead.making.is_none(), "{id:?}");
}

/// The same entries, read again.
fn copied(path: &Path) -> Vec<Arc<Entry>> {
    path.iter().map(|entry| Arc::new(Entry::parse(entry.line().into()).expect("an entry"))).collect()
}

#[test]
fn no_summary_begins_on_an_estimate_before_the_tokenizer_counts() {
    let mut held = Held::new();
    let model = json!({"provider": "p", "id": "m", "contextWindow": WINDOW});
    let settings = json!({"defaultModel": "p/m", "models": [model],
        "compaction": {"thresholdTokens": THRESHOLD, "keepRecentTokens": 500}});
    held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
    assert!(held.core.base.counting.runs());
    assert!(planning(say(&mut held, 1, user("go on"))).is_none());
}

#[test]
fn no_summary_begins_where_the_threshold_hands_off() {
    for (strategy, follows, begins) in
        [("handoff", true, false), ("handoff", false, true), ("context_full", true, true)]
    {
        let mut held = near_of(&messages(), json!({"strategy": strategy}));
        held.core.upkeep.relays.asked = follows;
        let planned = planning(say(&mut held, 1, user("go on")));
        assert_eq!(planned.is_some(), begins, "{strategy}, {follows}");
        let settled = planning(say(&mut held, 2, assistant("Yes.")));
        assert!(settled.is_none(), "{strategy}, {follows}");
    }
}
