//! Tests of idle maintenance.

use crate::{
    protocol::{
        SessionActivity, SessionConfigure, SessionContext, SessionPrune, SessionRunIdle, SessionStatus,
        errors::Failure,
        events::{Event, Reason},
        types::{Outcome, SessionParams},
    },
    session::{
        core::{
            Input,
            command::{Command, CommandMethod},
            held::{
                Held, answer, compacted_messages, draft, events, line, log_work, message, messages, outcomes, plan,
                started,
            },
        },
        effects::{Effect, IdleTurn, Turning},
        jobs::{DraftOrder, Job, PlanOrder},
    },
    settings::{Layers, layers::Source},
};
use serde_json::{Value, json};
use std::{collections::VecDeque, time::Duration};

const TIMEOUT: Duration = Duration::from_secs(300);

fn settings(compaction: &Value) -> Input {
    let mut settings = json!({"tokens": {"estimator": "chars"}, "compaction": {
        "idleEnabled": true, "idleThresholdTokens": 1_000, "idleTimeoutSeconds": TIMEOUT.as_secs(),
        "keepRecentTokens": 500,
    }});
    for (key, value) in compaction.as_object().into_iter().flatten() {
        settings["compaction"][key] = value.clone();
    }
    Input::Layers(Layers::of(vec![(Source::Global, settings)]))
}

fn answered() -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stopReason": "stop", "timestamp": 1})
}

fn user() -> Value {
    json!({"role": "user", "content": "Go on.", "timestamp": 1})
}

/// A session of messages that end with an answer. Its timer does not run.
fn opened() -> Held {
    let mut lines = messages();
    lines.push(line("last", Some("e39"), "message", json!({"message": answered()})));
    of(&lines)
}

fn of(lines: &[String]) -> Held {
    let mut held = Held::of(lines, u64::MAX);
    held.feed(settings(&json!({})));
    held
}

/// The same after an append.
fn idle() -> Held {
    let mut held = opened();
    held.write_with(1, json!({ "messages": &[user(), answered()] }));
    held
}

fn turns(effects: &[Effect]) -> Vec<Turning> {
    let turning = |effect: &Effect| match effect {
        Effect::IdleTurn(turning) => Some(*turning),
        _ => None,
    };
    effects.iter().filter_map(turning).collect()
}

/// Lets the time pass until the session asks for its turn. Returns the time that passed, or `None` where it asks for none.
fn asks(held: &mut Held) -> Option<Duration> {
    let begin = held.at.now;
    while let Some(at) = held.core.wake_at(0) {
        held.at.now = held.at.now.max(at);
        let effects = held.feed(Input::Tick);
        if turns(&effects) == [Turning::Ask] {
            return Some(held.at.now - begin);
        }
    }
    None
}

/// Gives the session its turn, and lets it plan.
fn plans(held: &mut Held) -> PlanOrder {
    held.feed(Input::IdleTurn(IdleTurn::Comes));
    loop {
        let mut effects = held.feed(Input::Tick);
        let job = effects.iter().position(|effect| matches!(effect, Effect::Start(_)));
        if let Some(job) = job {
            let Effect::Start(job) = effects.swap_remove(job) else { unreachable!("a job") };
            let Job::Plan(order) = *job else { unreachable!("a plan") };
            return order;
        }
        let work = log_work(effects).expect("a session that sleeps reads its path");
        held.back(work);
    }
}

/// The plan is made.
fn starts(held: &mut Held, order: PlanOrder) -> (Vec<Effect>, DraftOrder) {
    let id = order.id.clone();
    let mut effects = held.feed(Input::Planned(id, Ok(plan(order))));
    let job = effects.iter().position(|effect| matches!(effect, Effect::Start(_))).expect("a draft");
    let Effect::Start(job) = effects.remove(job) else { unreachable!("a job") };
    let Job::Draft(order) = *job else { unreachable!("a draft") };
    (effects, order)
}

/// A session whose idle maintenance runs.
fn running() -> (Held, DraftOrder) {
    let mut held = idle();
    asks(&mut held).expect("the timer runs");
    let order = plans(&mut held);
    let (_, order) = starts(&mut held, order);
    (held, order)
}

/// The draft is made and written.
fn completes(held: &mut Held, order: DraftOrder) -> Vec<Effect> {
    held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
    let work = log_work(held.turn()).expect("a write");
    held.back(work)
}

fn kinds(effects: &[Effect]) -> Vec<&'static str> {
    events(effects).map(Event::kind).filter(|kind| *kind != "compaction_progress").collect()
}

fn ends(effects: &[Effect]) -> Vec<Outcome> {
    let end = |event: &Event| match event {
        Event::IdleEnd { outcome, .. } => Some(*outcome),
        _ => None,
    };
    events(effects).filter_map(end).collect()
}

fn run_idle(held: &mut Held, number: u64) -> Vec<Effect> {
    held.call::<SessionRunIdle>(number, json!({}));
    let mut effects = held.turn();
    while held.core.base.state.history().is_asleep() && effects.iter().any(|effect| matches!(effect, Effect::Log(_))) {
        let work = log_work(effects).expect("work");
        held.back(work);
        effects = held.turn();
    }
    effects
}

fn activity(held: &mut Held, number: u64) -> Vec<Effect> {
    let params: SessionParams = serde_json::from_value(json!({"sessionId": "held"})).expect("params");
    let ticket = held.ticket(number);
    held.feed(Input::Command(SessionActivity::command(params), ticket))
}

#[test]
fn a_session_that_is_idle_is_compacted_between_the_two_events_of_its_maintenance() {
    let mut held = idle();
    assert_eq!(asks(&mut held), Some(TIMEOUT));
    held.at.now += Duration::from_secs(7);
    let order = plans(&mut held);
    let (effects, order) = starts(&mut held, order);
    assert_eq!(kinds(&effects), ["idle_start", "compaction_start"]);
    let start = events(&effects).next().expect("the start");
    let Event::IdleStart { context_tokens, idle_seconds } = start else { unreachable!("it is first") };
    assert_eq!((*context_tokens, *idle_seconds), (held.core.base.state.usage().context_tokens, 307));
    assert_eq!(started(&effects), [Reason::Idle]);
    held.call::<SessionStatus>(2, json!({}));
    let status = answer(&held.turn(), 2).expect("an answer");
    assert_eq!(status["session"]["status"], json!({"type": "idle"}));
    let listed: Vec<&Value> = status["operations"].as_array().expect("a list").iter().collect();
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0]["kind"], &listed[0]["reason"]), (&json!("idle"), &json!("idle")));
    let effects = completes(&mut held, order);
    let entries = kinds(&effects).iter().filter(|kind| **kind == "entry_appended").count();
    assert!(entries > 0);
    assert_eq!(kinds(&effects)[entries..], ["usage_updated", "compaction_end", "idle_end"]);
    assert_eq!((outcomes(&effects), ends(&effects)), (vec![Outcome::Completed], vec![Outcome::Completed]));
    assert_eq!(turns(&effects), [Turning::Leave]);
    assert_eq!(asks(&mut held), None, "the next append starts the timer");
}

#[test]
fn idle_maintenance_waits_while_the_prompt_cache_is_warm() {
    for (cached, waits) in [(0, 60), (2_000, 301)] {
        let mut held = opened();
        held.feed(settings(&json!({"idleTimeoutSeconds": 60})));
        let mut answer = answered();
        answer["usage"] = json!({"input": 2_000, "output": 5, "cacheRead": cached, "cacheWrite": 0});
        held.write_with(1, json!({ "messages": &[user(), answer] }));
        let begin = held.at.now;
        let mut passed = None;
        // Both clocks go on, and the bodies are dropped after a minute.
        while let Some(at) = held.core.wake_at(0) {
            let step = at.saturating_duration_since(held.at.now);
            held.at.now += step;
            held.at.wall += jiff::SignedDuration::try_from(step).expect("a short time");
            if !turns(&held.feed(Input::Tick)).is_empty() {
                passed = Some((held.at.now - begin).as_secs());
                break;
            }
        }
        assert!(passed.is_some_and(|passed| (waits..waits + 2).contains(&passed)), "{cached}: {passed:?}");
    }
}

#[test]
fn the_timer_is_started_by_appends_and_activity_and_by_nothing_else() {
    let mut held = opened();
    held.call::<SessionStatus>(1, json!({}));
    held.turn();
    assert_eq!(asks(&mut held), None);
    activity(&mut held, 2);
    held.turn();
    assert_eq!(asks(&mut held), Some(TIMEOUT));
    let mut held = idle();
    held.at.now += Duration::from_secs(200);
    activity(&mut held, 2);
    held.turn();
    assert_eq!(asks(&mut held), Some(TIMEOUT));
    let mut held = idle();
    held.at.now += Duration::from_secs(200);
    held.call::<SessionStatus>(2, json!({}));
    held.turn();
    assert_eq!(asks(&mut held), Some(TIMEOUT - Duration::from_secs(200)), "a read changes nothing");
    held.feed(settings(&json!({"idleEnabled": false})));
    held.write_with(3, json!({ "messages": &[user(), answered()] }));
    assert_eq!(asks(&mut held), None, "it is off");
}

#[test]
fn nothing_starts_while_somebody_waits_for_an_answer() {
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "bash", "arguments": {}});
    let calls =
        json!({"role": "assistant", "content": [call("a"), call("b")], "stopReason": "toolUse", "timestamp": 1});
    let result = |id: &str| {
        json!({"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": [], "isError": false,
            "timestamp": 1})
    };
    let aborted = json!({"role": "assistant", "content": [], "stopReason": "aborted", "timestamp": 1});
    for (messages, skipped) in [
        (vec![user()], Some("unanswered_message")),
        (vec![calls.clone()], Some("unanswered_call")),
        (vec![calls.clone(), result("a")], Some("unanswered_call")),
        (vec![calls.clone(), result("b"), result("a")], Some("unanswered_message")),
        (vec![user(), aborted], None),
        (vec![user(), answered()], None),
    ] {
        let mut held = opened();
        held.write_with(1, json!({ "messages": &messages }));
        assert_eq!(asks(&mut held).is_none(), skipped.is_some(), "{messages:?}");
        if let Some(skipped) = skipped {
            assert_eq!(answer(&run_idle(&mut held, 2), 2), Some(json!({ "skipped": skipped })), "{messages:?}");
        }
    }
}

#[test]
fn a_request_to_run_says_why_nothing_runs() {
    let skipped = |held: &mut Held| answer(&run_idle(held, 9), 9).expect("an answer")["skipped"].clone();
    let mut held = opened();
    held.feed(settings(&json!({"idleThresholdTokens": 100_000})));
    assert_eq!(skipped(&mut held), "below_threshold");
    for off in [json!({"enabled": false}), json!({"strategy": "off"})] {
        held.feed(settings(&off));
        assert_eq!(skipped(&mut held), "disabled");
    }
    held.feed(settings(&json!({})));
    held.begin_draft(2);
    assert_eq!(skipped(&mut held), "busy");
    let mut held = Held::read_only();
    held.feed(settings(&json!({})));
    assert_eq!(answer(&run_idle(&mut held, 1), 1), Some(json!("storage_error")));
    let mut held = opened();
    held.feed(Input::Finish);
    assert_eq!(skipped(&mut held), "busy");
    let undo = json!({"customType": "abridged.undo", "data": {"compactionEntryId": "c1"}});
    let mut lines = compacted_messages();
    lines.push(line("u1", Some("c1"), "custom", undo));
    lines.push(line("last", Some("u1"), "message", json!({"message": answered()})));
    assert_eq!(skipped(&mut of(&lines)), "undone");
}

#[test]
fn a_request_to_run_needs_neither_the_timer_nor_the_setting() {
    let mut held = opened();
    held.feed(settings(&json!({"idleEnabled": false})));
    let effects = run_idle(&mut held, 1);
    assert_eq!((answer(&effects, 1), turns(&effects)), (None, vec![Turning::Ask]));
    let order = plans(&mut held);
    let id = order.id.clone();
    let (effects, order) = starts(&mut held, order);
    assert_eq!(answer(&effects, 1), Some(json!({"operationId": id})));
    let said = effects.iter().position(|effect| matches!(effect, Effect::Answer(1, _)));
    let start = effects.iter().position(|effect| matches!(effect, Effect::Emit(..)));
    assert!(said < start, "the answer introduces the id");
    assert_eq!(answer(&run_idle(&mut held, 2), 2), Some(json!({"skipped": "busy"})));
    assert_eq!(ends(&completes(&mut held, order)), [Outcome::Completed]);
}

#[test]
fn a_request_to_run_behind_other_sessions_is_told_so_and_runs_in_its_turn() {
    let mut held = opened();
    run_idle(&mut held, 1);
    assert_eq!(answer(&held.feed(Input::IdleTurn(IdleTurn::Waits)), 1), Some(json!({"skipped": "queued"})));
    assert_eq!(answer(&run_idle(&mut held, 2), 2), Some(json!({"skipped": "queued"})));
    let order = plans(&mut held);
    assert_eq!(kinds(&starts(&mut held, order).0), ["idle_start", "compaction_start"]);
}

#[test]
fn nothing_is_sent_where_nothing_can_be_compacted_and_nothing_is_tried_before_the_next_append() {
    use crate::protocol::errors::Nothing;
    let mut held = idle();
    asks(&mut held).expect("the timer runs");
    let order = plans(&mut held);
    let effects = held.feed(Input::Planned(order.id, Err(Failure::NothingToCompact(Nothing::WouldNotShrink))));
    assert!(events(&effects).next().is_none());
    assert_eq!(turns(&effects), [Turning::Leave]);
    assert_eq!(answer(&run_idle(&mut held, 2), 2), Some(json!({"skipped": "nothing_to_compact"})));
    activity(&mut held, 3);
    held.turn();
    assert_eq!(asks(&mut held), None);
    held.write_with(4, json!({ "messages": &[user(), answered()] }));
    assert_eq!(asks(&mut held), Some(TIMEOUT));
}

#[test]
fn activity_ends_maintenance_and_starts_the_timer_again() {
    let (mut held, order) = running();
    held.at.now += Duration::from_secs(5);
    let effects = activity(&mut held, 2);
    assert_eq!(kinds(&effects), ["compaction_end", "idle_end"]);
    assert_eq!(ends(&effects), [Outcome::Cancelled]);
    assert_eq!(turns(&effects), [Turning::Leave]);
    assert!(order.stop.requested());
    held.turn();
    assert_eq!(asks(&mut held), Some(TIMEOUT), "it does not rest");
}

#[test]
fn reads_do_not_end_maintenance_and_are_not_held_by_it() {
    let (mut held, order) = running();
    held.call::<SessionStatus>(2, json!({}));
    assert!(answer(&held.turn(), 2).is_some());
    held.call::<SessionContext>(3, json!({"wait": true}));
    assert!(held.turn().iter().any(|effect| matches!(effect, Effect::Answer(3, _) | Effect::Read(3, _))));
    assert_eq!(ends(&completes(&mut held, order)), [Outcome::Completed]);
}

#[test]
fn maintenance_gives_way_to_each_request_that_changes_the_session() {
    let gives_way = |send: &dyn Fn(&mut Held)| {
        let (mut held, _) = running();
        send(&mut held);
        (held.core.base.work.is_none(), held)
    };
    let (free, mut held) = gives_way(&|held| held.compact(3));
    assert!(free);
    let effects = held.turn();
    assert_eq!(answer(&effects, 3), None, "it is not busy");
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Start(_))), "it is planned");
    let (free, mut held) = gives_way(&|held| held.edit::<SessionPrune>(3, json!({})));
    assert!(free && answer(&held.turn(), 3).is_none_or(|answer| answer != "busy"));
    assert!(gives_way(&|held| held.edit::<SessionConfigure>(3, json!({"model": "p/other"}))).0);
    assert!(gives_way(&|held| held.append(3)).0);
    assert!(!gives_way(&|held| held.call::<SessionStatus>(3, json!({}))).0);
}

#[test]
fn maintenance_that_waits_for_its_turn_gives_way_and_leaves_the_queue() {
    let mut held = idle();
    asks(&mut held).expect("the timer runs");
    assert_eq!(turns(&activity(&mut held, 2)), [Turning::Leave]);
    let effects = held.feed(Input::IdleTurn(IdleTurn::Comes));
    assert_eq!(turns(&effects), [Turning::Leave], "a turn that comes too late goes to the next one");
    held.turn();
    assert_eq!(turns(&run_idle(&mut held, 3)), [Turning::Ask]);
    assert_eq!(answer(&activity(&mut held, 4), 3), Some(json!({"skipped": "busy"})));
}

#[test]
fn a_plan_that_activity_overtakes_starts_nothing() {
    let mut held = idle();
    asks(&mut held).expect("the timer runs");
    let order = plans(&mut held);
    let (id, stop) = (order.id.clone(), order.stop.clone());
    assert_eq!(turns(&activity(&mut held, 2)), [Turning::Leave]);
    assert!(stop.requested());
    assert!(kinds(&held.feed(Input::Planned(id, Ok(plan(order))))).is_empty());
}

#[test]
fn a_cancel_names_maintenance_which_then_rests_until_the_next_message_of_the_user() {
    let (mut held, order) = running();
    let effects = held.cancel(2);
    let cancelled = json!([{"operationId": order.id, "kind": "idle"}]);
    assert_eq!(answer(&effects, 2).expect("an answer")["cancelled"], cancelled);
    assert_eq!((kinds(&effects), turns(&effects)), (vec!["compaction_end", "idle_end"], vec![Turning::Leave]));
    assert_eq!(answer(&run_idle(&mut held, 3), 3), Some(json!({"skipped": "resting"})));
    held.write_with(4, json!({ "messages": &[user(), answered()] }));
    assert_eq!(asks(&mut held), Some(TIMEOUT));
}

#[test]
fn a_request_to_run_that_is_cancelled_starts_nothing() {
    let mut held = opened();
    run_idle(&mut held, 1);
    let effects = held.feed(Input::RequestCancelled(1));
    assert_eq!((answer(&effects, 1), turns(&effects)), (Some(json!("request_cancelled")), vec![Turning::Leave]));
    run_idle(&mut held, 2);
    assert_eq!(answer(&held.cancel(3), 2), Some(json!({"skipped": "cancelled"})));
}

#[test]
fn a_text_that_is_pinned_behind_a_call_does_not_answer_it() {
    let call = json!([{"type": "toolCall", "id": "c", "name": "read", "arguments": {}}]);
    let call = json!({"role": "assistant", "content": call, "stopReason": "toolUse", "timestamp": 1});
    let pin = json!({"customType": "abridged.pin", "content": "Remember.", "display": true});
    let mut lines = messages();
    lines.push(line("c1", Some("e39"), "message", json!({ "message": call })));
    lines.push(line("p1", Some("c1"), "custom_message", pin));
    let mut held = of(&lines);
    assert_eq!(answer(&run_idle(&mut held, 1), 1), Some(json!({"skipped": "unanswered_call"})));
}

#[test]
fn a_cancel_is_answered_before_the_request_to_run_that_it_ends() {
    let mut held = idle();
    run_idle(&mut held, 7);
    let effects = held.cancel(8);
    let answered: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Answer(number, _) => Some(*number),
            _ => None,
        })
        .collect();
    assert_eq!(answered, [8, 7]);
    let cancel = effects.iter().position(|effect| matches!(effect, Effect::Answer(8, _)));
    let leaves = effects.iter().position(|effect| matches!(effect, Effect::IdleTurn(Turning::Leave)));
    assert!(leaves > cancel, "{:?}", kinds(&effects));
}

#[test]
fn each_failure_in_a_row_doubles_the_time_until_the_next_maintenance_up_to_a_day() {
    let mut held = idle();
    let mut expected = TIMEOUT;
    for round in 0..12 {
        assert_eq!(asks(&mut held), Some(expected), "round {round}");
        let order = plans(&mut held);
        let (_, order) = starts(&mut held, order);
        let effects = held.feed(Input::Drafted(order.id, Err(Failure::Internal("it failed".to_owned()))));
        assert_eq!(ends(&effects), [Outcome::Failed]);
        held.write_with(10 + round, json!({ "messages": &[user(), answered()] }));
        expected = (expected * 2).min(Duration::from_secs(86_400));
    }
    asks(&mut held).expect("the timer runs");
    let order = plans(&mut held);
    let (_, order) = starts(&mut held, order);
    assert_eq!(ends(&completes(&mut held, order)), [Outcome::Completed]);
    held.write_with(30, json!({ "messages": &[user(), answered()] }));
    assert_eq!(asks(&mut held), None, "the context is small");
    let long = json!({"role": "user", "content": "A long text. ".repeat(2_000), "timestamp": 1});
    held.write_with(31, json!({ "messages": &[long, answered()] }));
    assert_eq!(asks(&mut held), Some(TIMEOUT));
}

#[test]
fn a_summary_that_no_model_writes_fails_and_one_without_a_model_or_a_budget_completes() {
    use crate::summary::made::Rejected;
    for (rejected, unaffordable, outcome) in
        [(1, None, Outcome::Failed), (0, None, Outcome::Completed), (1, Some(9_000), Outcome::Completed)]
    {
        let (mut held, order) = running();
        let id = order.id.clone();
        let mut made = draft(order);
        made.made.rejected = vec![Rejected::model(None, "it was away".to_owned()); rejected];
        made.made.unaffordable = unaffordable;
        let effects = held.feed(Input::Drafted(id, Ok(made)));
        let effects = match log_work(held.turn()) {
            Some(work) => held.back(work),
            None => effects,
        };
        assert_eq!(ends(&effects), [outcome], "{rejected} {unaffordable:?}");
    }
}

#[test]
fn a_clock_that_jumps_by_a_day_starts_one_maintenance_at_most() {
    let mut held = idle();
    held.at.now += Duration::from_secs(86_400);
    assert!(asks(&mut held).is_some());
    let order = plans(&mut held);
    let (_, order) = starts(&mut held, order);
    held.at.now += Duration::from_secs(86_400);
    completes(&mut held, order);
    assert_eq!(asks(&mut held), None);
    let mut held = opened();
    held.write_with(1, json!({ "messages": &[user()] }));
    held.at.now += Duration::from_secs(86_400);
    assert_eq!(asks(&mut held), None, "the model is to answer");
}

#[test]
fn entries_of_another_program_end_maintenance() {
    let (mut held, _) = running();
    held.disk.append_as_another(&message("other", Some("e39"))).expect("an entry");
    held.feed(Input::FileTouched);
    let work = log_work(held.turn()).expect("a read");
    assert_eq!(ends(&held.back(work)), [Outcome::Cancelled]);
}

#[test]
fn a_session_that_ends_ends_its_maintenance() {
    let (mut held, _) = running();
    assert_eq!(ends(&held.feed(Input::Finish)), [Outcome::Cancelled]);
    let (mut held, _) = running();
    assert_eq!(ends(&held.feed(Input::Stop)), [Outcome::Cancelled]);
    let mut held = opened();
    run_idle(&mut held, 1);
    held.send(2, Command::Close);
    assert_eq!(answer(&held.turn(), 1), Some(json!({"skipped": "cancelled"})));
}

/// A result that is being written is not thrown away.
#[test]
fn maintenance_that_is_being_written_completes() {
    let (mut held, order) = running();
    held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
    let work = log_work(held.turn()).expect("a write");
    assert!(events(&activity(&mut held, 2)).next().is_none());
    assert_eq!(ends(&held.back(work)), [Outcome::Completed]);
}

#[test]
fn a_thousand_sessions_that_become_idle_at_once_run_one_after_the_other() {
    const SESSIONS: usize = 1_000;
    const DRAFT: Duration = Duration::from_secs(2);
    let lines: Vec<String> = messages().into_iter().take(9).collect();
    let mut first = of(&lines);
    first.write_with(1, json!({ "messages": &[user(), answered()] }));
    let (begin, hour) = (first.at.now, Duration::from_secs(3_600));
    let mut sessions: Vec<Held> = std::iter::once(first)
        .chain((1..SESSIONS).map(|_| {
            let mut held = of(&lines);
            held.feed(settings(&json!({"idleThresholdTokens": 500})));
            held.at.now = begin;
            held.write_with(1, json!({ "messages": &[user(), answered()] }));
            held
        }))
        .collect();
    sessions[0].feed(settings(&json!({"idleThresholdTokens": 500})));
    let (mut queue, mut ticks, mut done) = (VecDeque::new(), 0_usize, 0_usize);
    let mut now = begin;
    while now < begin + hour {
        // Timers whose time has come.
        let next = sessions.iter().filter_map(|held| held.core.wake_at(0)).min();
        now = now.max(next.unwrap_or(begin + hour));
        for (number, held) in sessions.iter_mut().enumerate() {
            if held.core.wake_at(0).is_some_and(|at| at <= now) {
                held.at.now = now;
                ticks += 1;
                if turns(&held.feed(Input::Tick)) == [Turning::Ask] {
                    queue.push_back(number);
                }
            }
        }
        // The turns, one after the other.
        while let Some(number) = queue.pop_front() {
            let held = &mut sessions[number];
            held.at.now = now;
            let order = plans(held);
            let (_, order) = starts(held, order);
            now += DRAFT;
            held.at.now = now;
            let effects = completes(held, order);
            assert_eq!(turns(&effects), [Turning::Leave]);
            done += 1;
        }
    }
    assert_eq!(done, SESSIONS);
    assert!(now >= begin + TIMEOUT + DRAFT * u32::try_from(SESSIONS).expect("few"), "one at a time");
    assert!(ticks <= 4 * SESSIONS, "{ticks} wakeups in an hour");
}

/// A summary ahead of the threshold runs in the background, and its end starts no timer.
#[test]
fn a_timer_that_ends_while_other_work_runs_starts_anew() {
    let mut held = idle();
    held.core.upkeep.after_transfer = true;
    held.at.now += TIMEOUT;
    // The bodies are dropped first.
    for _ in 0..2 {
        assert!(turns(&held.feed(Input::Tick)).is_empty());
    }
    held.core.upkeep.after_transfer = false;
    assert_eq!(asks(&mut held), Some(TIMEOUT));
}

#[test]
fn a_compaction_that_waits_for_the_end_of_the_turn_keeps_no_idle_maintenance_back() {
    let mut held = idle();
    let later = json!({"sessionId": "held", "when": "after_turn"});
    let params: crate::protocol::types::CompactParams = serde_json::from_value(later).expect("params");
    held.core.upkeep.after_turn =
        crate::session::core::commands::compacting::after_turn::AfterTurn::resting("later", params);
    held.at.now += TIMEOUT;
    // The bodies are dropped first.
    let asked = (0..2).any(|_| turns(&held.feed(Input::Tick)) == [Turning::Ask]);
    assert!(asked);
}

#[test]
fn a_context_that_waits_for_counts_starts_the_compaction_that_is_due_after_idle_maintenance_gave_way() {
    let (mut held, _) = running();
    let models = json!([{"provider": "p", "id": "m", "contextWindow": 3_000}]);
    let settings = json!({"tokens": {"estimator": "auto"}, "models": models, "defaultModel": "p/m"});
    held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
    held.call::<SessionContext>(7, json!({"format": "anthropic"}));
    assert_eq!(answer(&held.turn(), 7), None, "it waits for counts");
    activity(&mut held, 8);
    held.at.tokenizer = true;
    let effects = held.feed(Input::Counted);
    assert_eq!((started(&effects), answer(&effects, 7)), (vec![Reason::Threshold], None));
}
