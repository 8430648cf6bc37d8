//! The ends of turns: by a cancel, and after the maintenance inside of them.

use super::{Play, compacting_inside, queue_of, refused};
use crate::{
    protocol::{SessionConfigure, SessionPrompt, types::Outcome},
    session::{
        core::{
            Input,
            held::{Held, messages},
        },
        jobs::{
            Job,
            turn::{TurnOrder, TurnReport},
        },
    },
    settings::{Layers, layers::Source},
};
use serde_json::json;

#[test]
fn a_cancel_keeps_the_text_that_was_sent_and_the_queue() {
    let mut play = Play::new();
    let turn = play.begin(1, "First.");
    play.hear(&turn, "I am at ");
    play.prompt(2, json!({"message": "Later."}));
    play.told();
    play.cancel(3);
    assert_eq!(play.result(3), json!({"cancelled": [{"turnId": turn, "kind": "turn"}]}));
    assert_eq!(play.told(), ["turn_end", "status_changed", "entry_appended", "settled"]);
    play.answer(&turn, "Late.", &[], "stop");
    assert_eq!(play.said(), ["user: First.", "assistant: I am at "]);
    assert_eq!((play.queue(), play.has_step()), (queue_of([&[], &["Later."]]), false));
    let turn = play.begin(4, "Now.");
    play.answer(&turn, "Yes.", &[], "stop");
    let next = play.route();
    assert_eq!(play.said()[2..], ["user: Now.", "assistant: Yes.", "user: Later."]);
    play.answer(&next, "Done.", &[], "stop");
}

#[test]
fn a_cancel_ends_open_calls_before_their_turn() {
    let mut play = Play::new();
    let turn = play.begin(1, "Read.");
    play.answer(&turn, "I read.", &[("c1", "read"), ("c2", "read")], "toolUse");
    let TurnOrder::Execute(order) = play.step() else { panic!("the tools are executed") };
    play.execute(&turn, "c1", "first");
    play.told();
    play.cancel(2);
    assert_eq!(play.told(), ["tool_end", "turn_end", "status_changed", "settled"]);
    assert!(order.stop.requested());
    play.execute(&turn, "c2", "late");
    assert_eq!(play.said().last().map(String::as_str), Some("toolResult: first"));
}

#[test]
fn a_cancel_before_the_start_ends_the_turn_at_its_start_and_keeps_the_message() {
    let mut play = Play::new();
    play.prompt(1, json!({"message": "First."}));
    let TurnOrder::Route(order) = play.step() else { panic!("the model is looked for first") };
    play.cancel(2);
    assert_eq!(play.result(2)["cancelled"][0]["turnId"], json!(order.id));
    play.report(&order.id, TurnReport::Routed(None));
    assert_eq!(play.ends(), [Outcome::Cancelled]);
    assert_eq!((play.said(), play.has_step()), (vec!["user: First.".to_owned()], false));
}

#[test]
fn a_cancel_during_a_compaction_inside_a_turn_ends_the_turn() {
    let (mut play, _) = compacting_inside();
    play.cancel(2);
    assert_eq!((play.ends(), play.has_step()), (vec![Outcome::Cancelled], false));
    play.prompt(3, json!({"message": "Again."}));
    let TurnOrder::Route(order) = play.step() else { panic!("the model is looked for first") };
    play.report(&order.id, TurnReport::Routed(None));
    play.jobs.retain(|job| !matches!(job, Job::Plan(order) if order.stop.requested()));
    play.compact();
    let turn = play.asked();
    play.answer(&turn, "Yes.", &[], "stop");
    assert_eq!(play.ends(), [Outcome::Cancelled, Outcome::Completed]);
}

#[test]
fn a_cancel_keeps_messages_that_wait_for_other_work_in_the_queue() {
    let mut play = Play::new();
    play.held.append(1);
    let effects = play.held.turn();
    play.held.command::<SessionPrompt>(2, json!({"message": "First."}));
    play.held.command::<SessionPrompt>(3, json!({"message": "Second."}));
    play.cancel(4);
    assert_eq!(play.result(4), json!({"cancelled": []}));
    play.perform(effects);
    assert_eq!((play.result(2)["disposition"].clone(), play.has_step()), (json!("queued"), false));
    assert_eq!(play.queue(), queue_of([&[], &["First.", "Second."]]));
    play.begin(5, "Go on.");
}

#[test]
fn a_turn_whose_answer_comes_while_the_context_is_compacted_ends_after_the_compaction() {
    let mut play = Play::new();
    let model = |id: &str, window: u64| json!({"provider": "p", "id": id, "contextWindow": window});
    let settings = json!({"tokens": {"estimator": "chars"}, "defaultModel": "p/m",
        "models": [model("m", 100_000), model("small", 4_000)],
        "compaction": {"speculative": false, "keepRecentTokens": 500}});
    play.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
    let turn = play.begin(1, "Mend it.");
    play.held.edit::<SessionConfigure>(2, json!({"model": "p/small"}));
    play.perform(Vec::new());
    assert!(play.told().contains(&"compaction_start"));
    play.answer(&turn, "It is mended.", &[], "stop");
    assert_eq!(play.ends(), [], "the compaction runs");
    play.compact();
    let told = play.told();
    let at = |kind: &str| told.iter().position(|it| *it == kind).expect("an event");
    assert!(at("compaction_end") < at("turn_end") && at("turn_end") < at("settled"), "{told:?}");
    assert_eq!(told.iter().filter(|kind| **kind == "settled").count(), 1);
}

#[test]
fn a_turn_that_cannot_start_settles_after_the_compaction_that_its_message_starts() {
    let mut play = Play::of(Held::of(&messages(), u64::MAX), 12_000);
    let text = "x".repeat(24_000);
    play.prompt(1, json!({"message": "First."}));
    play.prompt(2, json!({ "message": text }));
    let TurnOrder::Route(order) = play.step() else { panic!("the model is looked for first") };
    play.report(&order.id, TurnReport::Routed(None));
    let turn = play.asked();
    play.told();
    play.answer(&turn, "Yes.", &[], "stop");
    let TurnOrder::Route(order) = play.step() else { panic!("the model is looked for first") };
    play.report(&order.id, TurnReport::Routed(Some(refused("it has no address"))));
    let told = play.told();
    let at = |kind: &str| told.iter().position(|it| *it == kind).expect("an event");
    assert!(at("turn_start") < at("compaction_start") && !told.contains(&"settled"), "{told:?}");
}
