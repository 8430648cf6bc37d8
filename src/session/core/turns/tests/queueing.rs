//! The queue of messages.

use super::{Play, queue_of};
use crate::{
    ids::OperationId,
    protocol::{SessionClearQueue, SessionCompact, SessionHandoff, SessionNavigate, errors::Failure, types::Outcome},
    session::{
        core::{
            Input,
            held::{Held, draft, line, message, outcomes, plan},
        },
        founding::Founding,
        jobs::Job,
    },
};
use serde_json::{Value, json};

#[test]
fn the_queue_is_there_after_a_restart_and_waits_for_the_user() {
    let mut play = Play::new();
    play.begin(1, "First.");
    play.prompt(2, json!({"message": "A."}));
    play.prompt(3, json!({"message": "B."}));
    let mut play = play.reopened();
    assert_eq!((play.queue(), play.has_step()), (queue_of([&[], &["A.", "B."]]), false));
    let turn = play.begin(4, "Now.");
    play.answer(&turn, "Yes.", &[], "stop");
    play.route();
    let mut play = play.reopened();
    assert_eq!(play.queue(), queue_of([&[], &["B."]]), "the first is a message of the conversation");
    play.held.call::<SessionClearQueue>(5, json!({}));
    play.perform(Vec::new());
    assert_eq!(play.result(5)["followUp"][0]["text"], json!("B."));
    assert_eq!(play.reopened().queue(), queue_of([&[], &[]]));
}

#[test]
fn a_message_that_a_crash_parts_from_its_queue_is_delivered_once() {
    let waiting = |id: &str| json!({"id": id, "turn": "t", "message": id});
    let data = json!({"sessionId": "held", "steering": [], "followUp": [waiting("A"), waiting("B")]});
    let queue = line("q0", Some("e0"), "custom", json!({"customType": "abridged.queue", "data": data}));
    let delivered = json!({"message": {"role": "user", "content": "A", "timestamp": 1, "queuedId": "A"}});
    let lines = [message("e0", None), queue, line("m0", Some("q0"), "message", delivered)];
    assert_eq!(Play::of(Held::of(&lines, u64::MAX), 100_000).queue(), queue_of([&[], &["B"]]));
    let other = lines.map(|line| line.replace("\"held\"", "\"parent\""));
    assert_eq!(Play::of(Held::of(&other, u64::MAX), 100_000).queue(), queue_of([&[], &[]]), "that of a fork's parent");
}

#[test]
fn the_queue_survives_a_compaction_and_a_move() {
    let mut play = Play::new();
    play.begin(1, "First.");
    play.prompt(2, json!({"message": "A."}));
    play.held.compact(3);
    play.perform(Vec::new());
    play.compact();
    assert_eq!(play.ends(), [Outcome::Cancelled], "the turn gives way");
    assert_eq!(outcomes(&play.seen), [Outcome::Completed]);
    let mut play = play.reopened();
    assert_eq!(play.queue(), queue_of([&[], &["A."]]));
    play.held.command::<SessionNavigate>(4, json!({"targetEntryId": "e5"}));
    play.perform(Vec::new());
    assert_eq!(play.held.core.state().visible_leaf(), Some("e4".into()));
    assert_eq!(play.queue(), queue_of([&[], &["A."]]));
    assert_eq!(play.reopened().queue(), queue_of([&[], &["A."]]));
}

#[test]
fn each_message_of_the_queue_has_a_turn_of_its_own() {
    let mut play = Play::new();
    let turn = play.begin(1, "First.");
    for number in 2..5 {
        play.prompt(number, json!({"message": format!("Message {number}.")}));
    }
    play.prompt(5, json!({"message": "Steers.", "behavior": "steer"}));
    let mut ids: Vec<Value> = (1..5).map(|number| play.result(number)["turnId"].clone()).collect();
    assert_eq!(play.result(5)["turnId"], json!(turn));
    ids.dedup();
    assert_eq!(ids.len(), 4);
    play.answer(&turn, "Done.", &[], "stop");
    assert_eq!(play.asked(), turn, "it is steered");
    play.answer(&turn, "Done.", &[], "stop");
    assert_eq!(json!(play.route()), ids[1]);
}

#[test]
fn messages_beyond_the_limits_of_the_queue_are_refused_and_a_large_one_alone_is_not() {
    let mut play = Play::new();
    play.begin(1, "First.");
    play.prompt(2, json!({"message": "x".repeat(2 << 20)}));
    assert_eq!(play.result(2)["disposition"], json!("queued"));
    play.prompt(3, json!({"message": "One more."}));
    assert_eq!(play.result(3), json!("overloaded"));
    let mut play = Play::new();
    play.begin(1, "First.");
    for number in 2..66 {
        play.prompt(number, json!({"message": "A."}));
        assert_eq!(play.result(number)["disposition"], json!("queued"));
    }
    play.prompt(66, json!({"message": "B."}));
    assert_eq!(play.result(66), json!("overloaded"));
    assert_eq!(play.queue()[1].len(), 64);
}

#[test]
fn a_message_that_steers_a_turn_that_is_cancelled_waits_first_in_the_queue() {
    let mut play = Play::new();
    play.begin(1, "First.");
    play.prompt(2, json!({"message": "Later."}));
    play.prompt(3, json!({"message": "Steers.", "behavior": "steer"}));
    assert_eq!(play.queue(), queue_of([&["Steers."], &["Later."]]));
    play.told();
    play.cancel(4);
    assert!(play.told().contains(&"queue_changed"));
    assert_eq!(play.queue(), queue_of([&[], &["Steers.", "Later."]]));
    assert_eq!(play.reopened().queue(), queue_of([&[], &["Steers.", "Later."]]));
}

/// A session with two messages that wait, and the session that a handoff makes.
fn handing_off() -> (Play, OperationId, Founding) {
    let mut play = Play::new();
    play.begin(1, "First.");
    play.prompt(2, json!({"message": "A."}));
    play.prompt(3, json!({"message": "B."}));
    play.cancel(4);
    play.held.command::<SessionHandoff>(5, json!({"document": "The goal is a release."}));
    play.perform(Vec::new());
    let at = play.jobs.iter().position(|job| matches!(job, Job::Found(..))).expect("a session is made");
    let Job::Found(id, founding) = play.jobs.remove(at) else { unreachable!("it is one") };
    (play, id, *founding)
}

#[test]
fn the_queue_goes_along_with_a_handoff() {
    let (mut play, id, founding) = handing_off();
    let lines: Vec<String> = founding.lines().iter().map(|line| line.replace(founding.id().as_str(), "held")).collect();
    assert_eq!(Play::of(Held::of(&lines, u64::MAX), 100_000).queue(), queue_of([&[], &["A.", "B."]]));
    play.told();
    play.feed(Input::Founded(id, Ok(None)));
    let told = play.told();
    let at = |kind: &str| told.iter().position(|it| *it == kind).expect("an event");
    assert!(at("entry_appended") < at("queue_changed") && at("queue_changed") < at("handoff_end"), "{told:?}");
    assert_eq!(play.queue(), queue_of([&[], &[]]));
    assert_eq!(play.reopened().queue(), queue_of([&[], &[]]));
}

#[test]
fn the_queue_stays_where_a_handoff_fails_and_a_message_after_one_begins_a_turn_here() {
    let (mut play, id, _) = handing_off();
    play.feed(Input::Founded(id, Err(Failure::Internal("no disk".to_owned()).into())));
    assert_eq!(play.queue(), queue_of([&[], &["A.", "B."]]));
    let (mut play, id, _) = handing_off();
    play.prompt(6, json!({"message": "C."}));
    play.feed(Input::Founded(id, Ok(None)));
    let turn = play.route();
    assert_eq!(play.result(6), json!({"turnId": turn, "disposition": "started"}));
    assert_eq!(play.said().last().map(String::as_str), Some("user: C."));
}

/// A session that compacts, in which a message waits for the end.
fn waiting() -> Play {
    let mut play = Play::new();
    play.held.compact(1);
    play.perform(Vec::new());
    let at = play.jobs.iter().position(|job| matches!(job, Job::Plan(_))).expect("a plan");
    let Job::Plan(order) = play.jobs.remove(at) else { unreachable!("it is one") };
    play.feed(Input::Planned(order.id.clone(), Ok(plan(order))));
    play.prompt(2, json!({"message": "Typed meanwhile."}));
    assert_eq!(play.result(2)["disposition"], json!("queued"));
    play.told();
    play
}

#[test]
fn a_message_that_waits_for_a_compaction_stays_in_the_queue_when_that_is_cancelled() {
    let mut play = waiting();
    play.cancel(3);
    let told = play.told();
    assert!(told.contains(&"compaction_end") && told.contains(&"settled") && !play.has_step(), "{told:?}");
    assert_eq!(play.queue(), queue_of([&[], &["Typed meanwhile."]]));
    play.begin(4, "Go on.");
}

#[test]
fn a_cancel_of_nothing_keeps_no_message_back() {
    let mut play = waiting();
    let ticket = play.held.ticket(3);
    play.feed(Input::Cancel(Some("unknown".into()), ticket));
    let at = play.jobs.iter().position(|job| matches!(job, Job::Draft(_))).expect("a draft");
    let Job::Draft(order) = play.jobs.remove(at) else { unreachable!("it is one") };
    play.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
    play.route();
}

#[test]
fn a_message_whose_turn_starts_is_not_taken_out_of_the_queue() {
    let mut play = Play::new();
    let turn = play.begin(1, "First.");
    for (number, text) in [(2, "A."), (3, "B.")] {
        play.prompt(number, json!({ "message": text }));
    }
    play.answer(&turn, "Done.", &[], "stop");
    play.held.call::<SessionClearQueue>(4, json!({}));
    play.perform(Vec::new());
    assert_eq!(play.result(4)["followUp"], json!([{"id": play.result(4)["followUp"][0]["id"], "text": "B."}]));
    assert_eq!(play.queue(), queue_of([&[], &["A."]]));
    play.route();
    assert_eq!(play.said().last().map(String::as_str), Some("user: A."));
    assert_eq!(play.reopened().queue(), queue_of([&[], &[]]));
}

#[test]
fn a_compaction_after_the_turn_waits_for_the_messages_that_steer_it() {
    let mut play = Play::new();
    let turn = play.begin(1, "First.");
    play.prompt(2, json!({"message": "Steers.", "behavior": "steer"}));
    play.held.command::<SessionCompact>(3, json!({"when": "after_turn", "method": "extractive"}));
    play.perform(Vec::new());
    play.told();
    play.answer(&turn, "Done.", &[], "stop");
    assert_eq!(play.asked(), turn, "it is steered");
    assert!(!play.told().contains(&"compaction_start"));
    play.answer(&turn, "Done.", &[], "stop");
    let told = play.told();
    let at = |kind: &str| told.iter().position(|it| *it == kind).expect("an event");
    assert!(at("turn_end") < at("compaction_start"), "{told:?}");
}
