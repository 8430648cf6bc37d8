//! Cancels: what they name, and the order of the ends.

use crate::{
    log::{Appended, Grown},
    protocol::{SessionNavigate, errors::Failure, types::Outcome},
    session::{
        core::{
            Input, Over,
            command::CommandMethod as _,
            held::{Held, answer, draft, job, log_work, outcomes},
        },
        effects::Effect,
        jobs::{Job, progress::Progress},
        log_work::{LogDone, LogWork},
    },
    summary::model::writer::Step,
};
use serde_json::json;

#[test]
fn a_compaction_that_was_cancelled_during_a_write_ends_before_the_session_does() {
    let mut held = Held::new();
    held.compact(1);
    assert!(matches!(job(held.turn()), Job::Plan(_)));
    held.append(2);
    let work = log_work(held.turn()).expect("a write");
    let cancelled = held.cancel(3);
    let named = answer(&cancelled, 3).expect("a cancel is answered immediately");
    assert_eq!(named["cancelled"].as_array().map(Vec::len), Some(1));
    assert!(outcomes(&cancelled).is_empty(), "the lock is with the writer");
    held.feed(Input::Stop);
    held.back(work);
    assert_eq!(held.core.over(), Over::No);
    let ended = held.turn();
    assert_eq!(outcomes(&ended), [Outcome::Cancelled]);
    assert!(answer(&ended, 1).is_some());
    assert_eq!(held.core.over(), Over::Yes);
}

#[test]
fn a_compaction_that_was_cancelled_in_the_queue_ends_behind_the_one_that_is_written_again() {
    let mut held = Held::new();
    let order = held.begin_draft(1);
    held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
    assert!(log_work(held.turn()).is_some());
    held.compact(2);
    let cancelled = held.cancel(3);
    let named = answer(&cancelled, 3).expect("a cancel is answered immediately");
    assert_eq!(named["cancelled"].as_array().map(Vec::len), Some(1), "the first one is being written");

    // Another program was faster.
    let behind = LogDone::Wrote {
        appended: Ok(Appended::Behind(Grown::default())),
        path: None,
        undone: None,
        added: Vec::new(),
    };
    let facts = held.facts();
    held.feed(Input::Log(Some(behind), facts));
    let id = named["cancelled"][0]["operationId"].as_str().expect("an id").into();
    let ticket = held.ticket(4);
    let again = held.feed(Input::Cancel(Some(id), ticket));
    assert!(answer(&again, 4).is_some() && outcomes(&again).is_empty());
    let effects = held.turn();
    assert!(outcomes(&effects).is_empty() && answer(&effects, 2).is_none());
    let work = log_work(effects).expect("a write");
    assert_eq!(outcomes(&held.back(work)), [Outcome::Completed]);
    assert_eq!(outcomes(&held.turn()), [Outcome::Cancelled]);
}

#[test]
fn the_end_of_a_compaction_is_recorded_while_the_log_is_out() {
    let mut held = Held::new();
    held.begin_draft(1);
    held.append(2);
    assert!(log_work(held.turn()).is_some());
    let effects = held.cancel(3);
    assert_eq!(outcomes(&effects), [Outcome::Cancelled]);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Record(open) if open.is_empty())));
    held.lose_log();
    assert_eq!(held.core.over(), Over::Yes);
}

#[test]
fn a_late_draft_of_a_cancelled_compaction_leaves_the_next_one_alone() {
    let mut held = Held::new();
    let first = held.begin_draft(1).id;
    assert_eq!(outcomes(&held.cancel(2)), [Outcome::Cancelled]);
    let second = held.begin_draft(3).id;
    let late = held.feed(Input::Drafted(first.clone(), Err(Failure::Cancelled)));
    assert!(outcomes(&late).is_empty() && answer(&late, 3).is_none());
    let step = Progress::Summary(Step::Progress { done: 1, total: 2, model: None });
    assert!(held.feed(Input::Reported(first, step.clone())).is_empty(), "a late report is not sent");
    assert!(!held.feed(Input::Reported(second.clone(), step)).is_empty());
    let ended = held.feed(Input::Drafted(second, Err(Failure::Cancelled)));
    assert_eq!(outcomes(&ended), [Outcome::Cancelled]);
}

fn named(effects: &[Effect], number: u64) -> usize {
    answer(effects, number).expect("an answer")["cancelled"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_cancel_with_an_id_leaves_compactions_that_wait_for_their_turn() {
    let mut held = Held::new();
    held.append(1);
    let work = log_work(held.turn()).expect("a write");
    held.compact(2);
    let ticket = held.ticket(3);
    assert_eq!(named(&held.feed(Input::Cancel(Some("another".into()), ticket)), 3), 0);
    held.back(work);
    assert!(matches!(job(held.turn()), Job::Plan(_)));
}

#[test]
fn a_compaction_that_waits_for_its_cancelled_end_is_named_again() {
    let mut held = Held::new();
    held.append(1);
    assert!(log_work(held.turn()).is_some());
    held.compact(2);
    assert_eq!(named(&held.cancel(3), 3), 1);
    assert_eq!(named(&held.cancel(4), 4), 1);
    let ticket = held.ticket(5);
    assert_eq!(named(&held.feed(Input::Cancel(Some("another".into()), ticket)), 5), 0);
}

#[test]
fn a_stop_ends_what_runs_and_what_is_planned() {
    let mut held = Held::new();
    held.begin_draft(1);
    let stopped = held.feed(Input::Stop);
    assert_eq!(outcomes(&stopped), [Outcome::Cancelled]);
    assert!(answer(&stopped, 1).is_some());

    let mut held = Held::new();
    held.compact(1);
    assert!(matches!(job(held.turn()), Job::Plan(_)));
    let stopped = held.feed(Input::Stop);
    assert_eq!(outcomes(&stopped), [Outcome::Cancelled]);
    assert!(answer(&stopped, 1).is_some());
}

#[test]
fn a_cancel_stops_the_planning_of_a_compaction_that_cannot_start_yet() {
    let mut held = Held::new();
    held.compact(1);
    let Job::Plan(order) = job(held.turn()) else { unreachable!("a plan is made first") };
    held.append(2);
    assert!(log_work(held.turn()).is_some());
    held.cancel(3);
    assert!(order.stop.requested());
}

#[test]
fn a_cancel_takes_a_navigation_while_its_way_is_read() {
    let mut held = Held::new();
    let params = json!({"sessionId": "held", "targetEntryId": "branch", "summarize": true, "wait": true});
    held.send(1, SessionNavigate::command(serde_json::from_value(params).expect("params")));
    let read = log_work(held.turn()).expect("the way is read");
    let cancelled = held.cancel(2);
    assert_eq!(named(&cancelled, 2), 1);
    let mut effects = held.back(read);
    while held.core.is_due() {
        effects.extend(held.turn());
    }
    assert_eq!(answer(&effects, 1).expect("an answer")["outcome"], "cancelled");
    assert!(log_work(effects).is_none() && held.core.over() == Over::No);
    assert_eq!(held.core.state().visible_leaf(), Some("e39".into()));

    // The next one reads its own way.
    let params = json!({"sessionId": "held", "targetEntryId": "branch"});
    held.send(3, SessionNavigate::command(serde_json::from_value(params).expect("params")));
    assert!(matches!(log_work(held.turn()), Some(LogWork::Fetch(_))));
}

#[test]
fn a_cancelled_end_is_recorded_in_the_lock() {
    let mut held = Held::new();
    held.begin_draft(1);
    let cancelled = held.cancel(2);
    assert!(cancelled.iter().any(|effect| matches!(effect, Effect::Record(open) if open.is_empty())));
}

#[test]
fn a_request_that_is_cancelled_ends_its_compaction_and_nothing_else() {
    let mut held = Held::new();
    held.begin_draft(1);
    let refused = json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
        "errorMessage": "context_length_exceeded"});
    held.append_with(2, json!({"messages": [refused]}));
    let work = log_work(held.turn()).expect("a write");
    held.back(work);
    assert_eq!(outcomes(&held.feed(Input::RequestCancelled(1))), [Outcome::Cancelled]);
    assert!(log_work(held.turn()).is_some(), "the refusal is decided about");
}
