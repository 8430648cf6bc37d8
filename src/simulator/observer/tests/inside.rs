//! Hooks and retries in the lock: a stream that breaks each of their rules.

use super::{super::*, play::*};
use crate::{
    log::Inside,
    protocol::{
        events::{Event, HookOutcome},
        types::{HookEvent, Outcome},
    },
};

/// The history is summarized once more.
const RETRY: fn() -> Inside = || Inside::Retry { retry: "history".to_owned(), attempt: 1 };
/// The client is asked.
const HOOK: fn() -> Inside = || Inside::Hook { hook: "session_before_tree".to_owned() };

/// The lock of a process that died lists an operation with these hooks and retries inside of it.
fn left(play: &mut Play, inside: Vec<Inside>) -> Verdict {
    play.log.register().expect("a lock").record(vec![with(inside)]);
    play.crash();
    play.opens()
}

fn hook_ends(outcome: HookOutcome) -> Event {
    Event::HookEnd { hook: HookEvent::SessionBeforeTree, outcome, duration_ms: 0, error_message: None }
}

type Fault = fn(&mut Play) -> Verdict;

const FAULTS: &[(Rule, &str, Fault)] = &[
    (Rule::StartIsRecorded, "a retry that the lock does not list", |play| {
        play.started("a")?;
        play.emit(Some("a"), retry())
    }),
    (Rule::RecordEmpties, "a retry that has ended is left in the lock", |play| {
        play.started("a")?;
        play.records(vec![RETRY()])?;
        play.emit(Some("a"), retry())?;
        play.emit(Some("a"), retry_end(true))?;
        play.done()
    }),
    (Rule::InnerEndsFirst, "an operation of a crash ends before its hook", |play| {
        left(play, vec![HOOK()])?;
        play.emit(Some("a"), end(Outcome::Failed, None))
    }),
    (Rule::InnerEndsFirst, "the outer one of two ends first", |play| {
        left(play, vec![HOOK(), RETRY()])?;
        play.emit(Some("a"), hook_ends(HookOutcome::Error))
    }),
    (Rule::InnerEndsFirst, "the lock has forgotten a retry that was open", |play| {
        play.started("a")?;
        play.records(vec![RETRY()])?;
        play.emit(Some("a"), retry())?;
        play.records(Vec::new())?;
        play.crash();
        play.opens()?;
        play.emit(Some("a"), end(Outcome::Failed, None))
    }),
    (Rule::EveryStartEnds, "a retry of a crash has no end", |play| {
        left(play, vec![RETRY()])?;
        play.done()
    }),
    (Rule::EveryStartEnds, "a retry of a crash ends well", |play| {
        left(play, vec![RETRY()])?;
        play.emit(Some("a"), retry_end(true))
    }),
    (Rule::EveryStartEnds, "a hook of a crash ends well", |play| {
        left(play, vec![HOOK()])?;
        play.emit(Some("a"), hook_ends(HookOutcome::Ok))
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
fn hooks_and_retries_of_a_crash_that_end_inner_ones_first_pass() -> Verdict {
    let mut play = Play::new();
    left(&mut play, vec![HOOK(), RETRY()])?;
    play.emit(Some("a"), retry_end(false))?;
    play.emit(Some("a"), hook_ends(HookOutcome::Error))?;
    play.emit(Some("a"), end(Outcome::Failed, None))?;
    play.effect(Effect::Record(Vec::new()))?;
    play.done()
}
