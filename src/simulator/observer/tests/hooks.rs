//! Faults of hooks.

use super::{super::*, play::*};
use crate::{
    ask::{client::Unanswered, rank::Rank},
    compaction::request::Cause,
    conversation::{entry::Entry, spending::Trigger},
    log::Inside,
    protocol::{
        events::{Event, HookOutcome},
        types::{CompactionResult, HookEvent, OnFailure, Outcome, SummaryMethod},
    },
    session::{
        hooks::Hooks as Registered,
        jobs::{DraftOrder, Focus},
        operations::idle,
        stop::Stop,
    },
};
use HookEvent::{SessionBeforeCompact, SessionCompacting};
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// The client registers these hooks, with 1000 ms for an answer.
fn registers(play: &mut Play, events: &[HookEvent], on_failure: OnFailure) {
    let events = events.iter().copied().collect();
    let hooks = Registered { events, timeout: Duration::from_millis(1_000), on_failure };
    play.observer.feeds(&Input::Hooks(Arc::new(hooks)));
}

/// A compaction begins with its draft. Both hooks are registered.
fn begins(play: &mut Play) -> Verdict {
    registers(play, &[SessionBeforeCompact, SessionCompacting], OnFailure::Continue);
    drafts(play)
}

/// A compaction begins with its draft.
fn drafts(play: &mut Play) -> Verdict {
    let entries = [play.append(&"one ".repeat(200))?, play.append(&"two ".repeat(200))?];
    play.plans("a", &entries)?;
    play.started("a")?;
    draft(play, &entries)
}

fn draft(play: &mut Play, entries: &[Arc<Entry>]) -> Verdict {
    let mut request = play.order("a", entries, Stop::default()).request;
    request.keep_recent_tokens = Some(0);
    let settings = request.settings.clone();
    let plan = request.plan(&|| false).unwrap_or_else(|why| unreachable!("a plan: {why:?}")).plan;
    let order = DraftOrder {
        id: "a".into(),
        trigger: Trigger::Manual,
        tokens: None,
        plan,
        focus: Focus::default(),
        hooks: None,
        candidates: Vec::new(),
        native: None,
        live: None,
        only: None,
        settings,
        deadline: None,
        rank: Rank::foreground(),
        stop: Stop::default(),
    };
    play.effect(Effect::Start(Box::new(Job::Draft(order))))
}

/// The client is asked and answers after so many milliseconds.
fn asks(play: &mut Play, hook: HookEvent, after_ms: u64, answer: Result<Value, Unanswered>) -> Verdict {
    let (operation, deadline_ms) = ("a".into(), Some(1_000));
    play.observer.hook_is_asked(Called { operation, hook, deadline_ms, after_ms: Some(after_ms), answer });
    play.records(vec![Inside::Hook { hook: hook.name().to_owned() }])?;
    play.emit(Some("a"), Event::HookStart { hook })
}

fn ends(play: &mut Play, hook: HookEvent, outcome: HookOutcome) -> Verdict {
    play.emit(Some("a"), Event::HookEnd { hook, outcome, duration_ms: 1, error_message: None })?;
    play.records(Vec::new())
}

/// A summary of a hook.
fn replace() -> Value {
    json!({"action": "replace", "compaction": {"summary": "of a hook", "preserveData": {"own": 1}}})
}

/// The compaction is written with this summary and data. It ends as one of a hook.
fn written(play: &mut Play, summary: &str, data: Value) -> Verdict {
    let fields = [
        ("summary", json!(summary)),
        ("firstKeptEntryId", Value::Null),
        ("tokensBefore", json!(500)),
        ("method", json!("hook")),
        ("fromHook", json!(true)),
        ("preserveData", data),
    ];
    let compaction = play.entry("compaction", &fields);
    play.write(std::slice::from_ref(&compaction))?;
    play.announce(&compaction, Some("a"))?;
    play.emit(Some("a"), Event::UsageUpdated { usage: usage(100) })?;
    play.publish(idle())?;
    let result = CompactionResult { from_hook: true, method: SummaryMethod::Hook, ..result(&compaction, 100) };
    play.emit(Some("a"), end(Outcome::Completed, Some(result)))
}

type Fault = fn(&mut Play) -> Verdict;

const FAULTS: &[(Rule, &str, Fault)] = &[
    (Rule::HooksEnd, "a hook starts twice", |play| {
        begins(play)?;
        asks(play, SessionBeforeCompact, 1, Ok(Value::Null))?;
        ends(play, SessionBeforeCompact, HookOutcome::Ok)?;
        asks(play, SessionBeforeCompact, 1, Ok(Value::Null))
    }),
    (Rule::HooksEnd, "a hook ends twice", |play| {
        begins(play)?;
        asks(play, SessionBeforeCompact, 1, Ok(Value::Null))?;
        ends(play, SessionBeforeCompact, HookOutcome::Ok)?;
        ends(play, SessionBeforeCompact, HookOutcome::Ok)
    }),
    (Rule::HooksEnd, "a compaction ends before its hook", |play| {
        begins(play)?;
        asks(play, SessionBeforeCompact, 1, Ok(Value::Null))?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))
    }),
    (Rule::HooksRegistered, "a hook that is not registered starts", |play| {
        registers(play, &[SessionBeforeCompact], OnFailure::Continue);
        drafts(play)?;
        play.emit(Some("a"), Event::HookStart { hook: SessionCompacting })
    }),
    (Rule::HooksRegistered, "a hook that was registered behind the draft is asked", |play| {
        drafts(play)?;
        registers(play, &[SessionBeforeCompact], OnFailure::Continue);
        let answer = Ok(Value::Null);
        let (operation, hook) = ("a".into(), SessionBeforeCompact);
        play.observer.hook_is_asked(Called { operation, hook, deadline_ms: Some(1_000), after_ms: None, answer });
        play.done()
    }),
    (Rule::HooksRegistered, "a hook starts behind a summary of another one", |play| {
        begins(play)?;
        asks(play, SessionBeforeCompact, 1, Ok(replace()))?;
        ends(play, SessionBeforeCompact, HookOutcome::Replaced)?;
        asks(play, SessionCompacting, 1, Ok(Value::Null))
    }),
    (Rule::HookOutcome, "an error counts as an answer", |play| {
        begins(play)?;
        asks(play, SessionBeforeCompact, 1, Err(Unanswered::Gone))?;
        ends(play, SessionBeforeCompact, HookOutcome::Ok)
    }),
    (Rule::HookOutcome, "a hook is cancelled, and its compaction goes on", |play| {
        begins(play)?;
        asks(play, SessionBeforeCompact, 1, Ok(Value::Null))?;
        ends(play, SessionBeforeCompact, HookOutcome::Cancelled)?;
        play.done()
    }),
    (Rule::LateHook, "an answer behind the deadline is used", |play| {
        begins(play)?;
        asks(play, SessionBeforeCompact, 1_001, Ok(Value::Null))?;
        ends(play, SessionBeforeCompact, HookOutcome::Ok)
    }),
    (Rule::LateHook, "an answer at the deadline is not used", |play| {
        begins(play)?;
        asks(play, SessionBeforeCompact, 1_000, Ok(Value::Null))?;
        ends(play, SessionBeforeCompact, HookOutcome::Timeout)
    }),
    (Rule::HookCancels, "a compaction that a hook cancels fails", |play| {
        begins(play)?;
        asks(play, SessionBeforeCompact, 1, Ok(json!({"action": "cancel"})))?;
        ends(play, SessionBeforeCompact, HookOutcome::Cancelled)?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))
    }),
    (Rule::CancelWasAsked, "a hook that failed ends its compaction, which is to go on", |play| {
        begins(play)?;
        asks(play, SessionBeforeCompact, 1, Err(Unanswered::Gone))?;
        ends(play, SessionBeforeCompact, HookOutcome::Error)?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Cancelled, None))
    }),
    (Rule::HookReplaces, "another summary is written", |play| {
        begins(play)?;
        asks(play, SessionBeforeCompact, 1, Ok(replace()))?;
        ends(play, SessionBeforeCompact, HookOutcome::Replaced)?;
        written(play, "of a model", json!({"own": 1}))
    }),
    (Rule::RefusedIsNotUsed, "a summary under our key replaces", |play| {
        begins(play)?;
        let answer = json!({"action": "replace", "compaction": {"summary": "x", "preserveData": {"abridged": 1}}});
        asks(play, SessionBeforeCompact, 1, Ok(answer))?;
        ends(play, SessionBeforeCompact, HookOutcome::Replaced)
    }),
    (Rule::RefusedIsNotUsed, "a summary that was refused is written", |play| {
        begins(play)?;
        asks(play, SessionBeforeCompact, 1, Ok(replace()))?;
        ends(play, SessionBeforeCompact, HookOutcome::Error)?;
        written(play, "of a hook", json!({"own": 1}))
    }),
    (Rule::HookDataKept, "the data of a hook is not written", |play| {
        begins(play)?;
        asks(play, SessionBeforeCompact, 1, Ok(replace()))?;
        ends(play, SessionBeforeCompact, HookOutcome::Replaced)?;
        written(play, "of a hook", json!({}))
    }),
    (Rule::HookDataKept, "the data of the compaction before is not carried on", |play| {
        registers(play, &[SessionBeforeCompact], OnFailure::Continue);
        let fields =
            [("summary", json!("x")), ("firstKeptEntryId", Value::Null), ("preserveData", json!({"other": 1}))];
        let before = play.entry("compaction", &fields);
        play.write(std::slice::from_ref(&before))?;
        play.announce(&before, None)?;
        let entries = [before, play.append(&"one ".repeat(200))?, play.append(&"two ".repeat(200))?];
        play.plans("a", &entries)?;
        play.started("a")?;
        draft(play, &entries)?;
        asks(play, SessionBeforeCompact, 1, Ok(replace()))?;
        ends(play, SessionBeforeCompact, HookOutcome::Replaced)?;
        written(play, "of a hook", json!({"own": 1}))
    }),
    (Rule::NoneAheadWithHooks, "a summary is made ahead", |play| {
        let entry = play.append(&"one ".repeat(200))?;
        registers(play, &[SessionCompacting], OnFailure::Continue);
        let mut order = play.order("a", &[entry], Stop::default());
        order.request.cause = Cause::Ahead;
        play.effect(Effect::Start(Box::new(Job::Plan(order))))
    }),
    (Rule::NoneAheadWithHooks, "a summary that is made ahead goes on", |play| {
        let entry = play.append(&"one ".repeat(200))?;
        let mut order = play.order("a", &[entry], Stop::default());
        order.request.cause = Cause::Ahead;
        play.effect(Effect::Start(Box::new(Job::Plan(order))))?;
        registers(play, &[SessionCompacting], OnFailure::Continue);
        play.done()
    }),
];

#[test]
fn each_rule_can_fail() {
    for (rule, fault, play) in FAULTS {
        let found = play(&mut Play::new()).map_err(|violation| violation.rule);
        assert_eq!(found, Err(*rule), "{fault}");
    }
}

#[test]
fn hooks_without_a_fault_pass() -> Verdict {
    let mut play = Play::new();
    begins(&mut play)?;
    asks(&mut play, SessionBeforeCompact, 1_000, Ok(replace()))?;
    ends(&mut play, SessionBeforeCompact, HookOutcome::Replaced)?;
    play.done()?;
    written(&mut play, "of a hook", json!({"own": 1}))?;
    let mut play = Play::new();
    registers(&mut play, &[SessionBeforeCompact], OnFailure::Abort);
    drafts(&mut play)?;
    asks(&mut play, SessionBeforeCompact, 2_000, Ok(replace()))?;
    ends(&mut play, SessionBeforeCompact, HookOutcome::Timeout)?;
    play.publish(idle())?;
    play.emit(Some("a"), end(Outcome::Cancelled, None))
}
