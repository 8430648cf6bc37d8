//! Tests of parts without a core.

use super::{
    lock::Lock,
    log_gate::{Back, FollowUp, LogGate},
    switches::Switches,
    waiting_contexts::{Starts, WaitingContext, WaitingContexts},
};
use crate::{
    log::{Access, Stats, Unfinished},
    protocol::{errors::Failure, events::Reason, types::ContextParams},
    session::{
        core::command::Command,
        effects::{Effect, Effects, Sent, Ticket},
        kind::OperationKind,
        log_work::LogFacts,
        operations::End,
        state::ModelInForce,
        stop::Stop,
    },
};
use serde_json::json;

fn facts(end: u64) -> LogFacts {
    LogFacts { access: Access::Write, end, stats: Stats::default() }
}

fn ticket(effects: &Effects, number: u64) -> Ticket {
    effects.ticket(number, Sent::Alone)
}

fn answers(effects: &Effects) -> Vec<u64> {
    let number = |effect| match effect {
        Effect::Answer(number, _) => Some(number),
        _ => None,
    };
    effects.take().into_iter().filter_map(number).collect()
}

#[test]
fn a_log_is_in_one_place() {
    let mut log = LogGate::here(facts(1));
    assert!(log.is_free() && log.is_here());
    log.writes(FollowUp::Recovery { id: "r".into(), stop: Stop::default() });
    assert!(!log.is_here() && matches!(log.follow_up(), FollowUp::Recovery { .. }));
    assert!(matches!(log.is_back(facts(2)), Back::Written));
    assert_eq!(log.facts().end, 2);
    log.waits_for_counts();
    assert!(log.is_here() && !log.is_free(), "it is here, and takes no work");
    assert!(log.take_counted() && log.is_free() && !log.take_counted());
}

#[test]
fn a_cancel_takes_the_command_for_which_the_log_is_out() {
    let effects = Effects::default();
    let mut log = LogGate::here(facts(1));
    for (command, is_taken) in [(Command::Close, false), (compact(), true)] {
        log.fetches(command, ticket(&effects, 1));
        assert_eq!(log.take_fetching().is_some(), is_taken);
        assert_eq!(matches!(log.is_back(facts(1)), Back::Read), is_taken, "the result of the read is ignored");
    }
}

fn compact() -> Command {
    Command::Compact(serde_json::from_value(json!({"sessionId": "s"})).expect("params"))
}

#[test]
fn a_lock_names_an_operation_until_it_is_released() {
    let effects = Effects::default();
    let named = |lock: &Lock, open: &[&str]| {
        lock.record(open.iter().map(|id| unfinished(id)).collect(), &effects);
        let recorded = effects.take().into_iter().find_map(|effect| match effect {
            Effect::Record(operations) => Some(operations),
            _ => None,
        });
        recorded.expect("a record").iter().map(|it| it.operation_id.to_string()).collect::<Vec<_>>()
    };
    let mut lock = Lock::default();
    assert_eq!(named(&lock, &["a"]), ["a"]);
    lock.keep(Some(unfinished("b")));
    lock.keep(None);
    assert_eq!(named(&lock, &["a"]), ["a", "b"]);
    assert_eq!(named(&lock, &["b"]), ["b"], "it is named once");
    assert!(lock.release() && !lock.keeps() && !lock.release());
    assert_eq!(named(&lock, &[]), [] as [&str; 0]);
}

fn unfinished(id: &str) -> Unfinished {
    Unfinished {
        operation_id: id.into(),
        kind: "compaction".to_owned(),
        reason: "manual".to_owned(),
        started_at: String::new(),
        inside: Vec::new(),
    }
}

#[test]
fn a_change_of_the_model_is_decided_about_once() {
    let (small, large) = (in_force("small"), in_force("large"));
    let mut switches = Switches::default();
    assert!(!switches.note(&small, &small) && !switches.is_pending());
    assert!(switches.note(&large, &small) && switches.is_pending());
    assert!(switches.hold_contexts(None));
    assert_eq!(switches.take().and_then(|it| it.former), large.model);
    assert!(switches.take().is_none() && !switches.hold_contexts(None));
    let running = OperationKind::Compaction(Reason::ModelSwitch);
    assert!(switches.hold_contexts(Some(&running)), "contexts wait for the compaction, too");
    switches.note(&large, &small);
    switches.cancelled(Some(&"another".into()));
    assert!(switches.is_pending(), "a cancel of one operation forgets no change");
    switches.cancelled(None);
    assert!(!switches.is_pending());
}

fn in_force(model: &str) -> ModelInForce {
    let model = serde_json::from_value(json!({"provider": "p", "id": model})).expect("a model");
    ModelInForce { model: Some(model), window: 1 }
}

#[test]
fn waiting_contexts_start_nothing_after_maintenance_that_came_to_nothing() {
    let effects = Effects::default();
    let mut waiting = WaitingContexts::default();
    let params: ContextParams = serde_json::from_value(json!({"sessionId": "s", "wait": true})).expect("params");
    for number in [1, 2] {
        let (params, ticket) = (params.clone(), ticket(&effects, number));
        waiting.push(WaitingContext { params, ticket, starts: Starts::Maintenance });
    }
    assert!(waiting.ask_for_maintenance());
    let failed = || End::Failed(Failure::Cancelled);
    waiting.go_on_after(&OperationKind::Compaction(Reason::Idle), &failed());
    assert!(waiting.ask_for_maintenance(), "no context waits for idle maintenance");
    waiting.go_on_after(&OperationKind::Compaction(Reason::Threshold), &failed());
    assert!(!waiting.ask_for_maintenance());
    waiting.go_on_after(&OperationKind::BY_CLIENT, &failed());
    assert!(waiting.ask_for_maintenance(), "a client's compaction says nothing about the next one");
    effects.cancel(1);
    waiting.end_cancelled();
    assert_eq!((answers(&effects), waiting.len()), (vec![1], 1));
    waiting.fail(&Failure::Cancelled);
    assert_eq!((answers(&effects), waiting.is_empty()), (vec![2], true));
}
