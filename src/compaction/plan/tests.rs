//! Tests of plans.

use super::*;
use crate::{compaction::lines::path, conversation::tokens::Estimator};
use proptest::{collection::vec, prelude::*};
use serde_json::json;

fn message(message: Value) -> Value {
    json!({"type": "message", "message": message})
}

/// A message of the user of so many tokens.
fn user(tokens: usize) -> Value {
    message(json!({"role": "user", "content": "abc ".repeat(tokens)}))
}

fn answer(tokens: usize, stop: &str, calls: &[&str]) -> Value {
    let mut content = vec![json!({"type": "text", "text": "abc ".repeat(tokens)})];
    let call = |id: &&str| json!({"type": "toolCall", "id": id, "name": "r", "arguments": {}});
    content.extend(calls.iter().map(call));
    message(json!({"role": "assistant", "content": content, "stopReason": stop}))
}

fn said(tokens: usize) -> Value {
    answer(tokens, "stop", &[])
}

fn result(call: &str) -> Value {
    let text = json!([{"type": "text", "text": "abc"}]);
    message(json!({"role": "toolResult", "toolCallId": call, "toolName": "r", "isError": false, "content": text}))
}

fn edit(target: &str, replacement: Value) -> Value {
    json!({"type": "context_edit", "targetId": target, "replacement": replacement})
}

fn label() -> Value {
    json!({"type": "label", "targetId": "e0", "label": "here"})
}

fn compaction(first_kept: &str, ours: Value) -> Value {
    json!({"type": "compaction", "summary": "s", "firstKeptEntryId": first_kept, "tokensBefore": 1,
        "preserveData": {"abridged": ours}})
}

fn demand(keep: u64) -> Demand {
    let budget = Budget { window: 10_000, threshold: 8_000, reserve: 1_000, system: 0, tools: 0, pins: 0 };
    let scale = Scale::new(Estimator::Chars, 1.0);
    Demand { keep, explicit: false, scale, budget, tokens_before: 0, may_stay: 8_000, insists: false }
}

fn explicit(keep: u64) -> Demand {
    Demand { explicit: true, ..demand(keep) }
}

/// The first kept entry.
fn kept(lines: &[Value], demand: Demand) -> Result<Option<String>, NothingToDo> {
    let plan = plan(path(lines), demand, Arc::default())?;
    Ok(plan.first_kept_id().map(ToString::to_string))
}

fn from(entry: &str) -> Result<Option<String>, NothingToDo> {
    Ok(Some(entry.to_owned()))
}

#[test]
fn each_entry_has_a_role_for_a_cut() {
    let execution = |excluded: bool| {
        message(json!({"role": "bashExecution", "command": "ls", "output": "a", "excludeFromContext": excluded}))
    };
    let rows = [
        (user(1), Kind::TurnStart),
        (answer(1, "stop", &["a"]), Kind::Message),
        (result("a"), Kind::ToolResult),
        (answer(1, "error", &[]), Kind::Metadata),
        (said(2), Kind::Metadata),
        (said(3), Kind::Message),
        (execution(true), Kind::Metadata),
        (execution(false), Kind::TurnStart),
        (message(json!({"role": "system", "content": "abc ".repeat(9)})), Kind::Metadata),
        (label(), Kind::Metadata),
        (json!({"type": "custom_message", "customType": "x", "content": "y", "display": true}), Kind::TurnStart),
        (compaction("e0", json!({})), Kind::Compaction),
        (edit("e4", Value::Null), Kind::Metadata),
        (edit("e5", json!({"content": "x"})), Kind::Metadata),
    ];
    let path = path(&rows.clone().map(|(line, _)| line));
    let steps = Window::of(&path).steps(Estimator::Chars);
    for (step, (line, kind)) in steps.iter().zip(&rows) {
        assert_eq!(step.kind, *kind, "{line}");
        let is_sized = !matches!(kind, Kind::Metadata | Kind::Compaction);
        assert_eq!(step.tokens > 0, is_sized, "{line}");
    }
}

#[test]
fn requests_without_answer_and_open_calls_are_found() {
    let open = || answer(1, "toolUse", &["a", "b"]);
    let failed = || answer(1, "error", &[]);
    for (lines, unread, pending) in [
        (vec![user(1)], vec![0], None),
        (vec![user(1), label()], vec![0], None),
        (vec![user(1), failed()], vec![0], None),
        (vec![user(1), failed(), user(1)], vec![0, 2], None),
        (vec![user(1), user(1), edit("e0", Value::Null)], vec![1], None),
        (vec![user(1), said(1), edit("e1", Value::Null)], vec![0], None),
        (vec![user(1), said(1)], vec![], None),
        (vec![user(1), open(), result("a")], vec![], Some(1)),
        (vec![user(1), open(), result("a"), result("b")], vec![], None),
        (vec![user(1), open(), failed(), label()], vec![], Some(1)),
        (vec![user(1), open(), user(1)], vec![2], None),
    ] {
        let path = path(&lines);
        let window = Window::of(&path);
        assert_eq!((unread_requests(&path), window.pending()), (unread, pending), "{lines:?}");
    }
}

#[test]
fn a_tail_has_its_size_without_the_answers_that_are_in_no_context() {
    let gone = [
        vec![answer(500, "aborted", &[]), label()],
        vec![answer(500, "error", &[]), label()],
        vec![said(500), edit("e3", Value::Null)],
    ];
    for gone in gone {
        let before = vec![user(1_000), said(1_000), user(1_000)];
        let lines = [before, gone, vec![user(1_000), said(1_000)]].concat();
        for (keep, first, size) in
            [(2_000, "e5", 2_000), (2_001, "e2", 3_000), (3_000, "e2", 3_000), (3_001, "e1", 4_000)]
        {
            let plan = plan(path(&lines), explicit(keep), Arc::default()).expect("a plan");
            let steps = Window::of(plan.kept()).steps(Estimator::Chars);
            // Entries that are in no context stay with the message after them.
            let sent = steps.iter().position(|step| step.tokens > 0).expect("a message");
            assert_eq!(plan.kept()[sent].id.as_str(), first, "keeping {keep}");
            let kept: u64 = steps.iter().map(|step| step.tokens).sum();
            assert_eq!((kept, kept >= keep), (size, true), "keeping {keep}");
        }
    }
}

#[test]
fn a_tail_that_has_exactly_the_demanded_size_is_long_enough() {
    let lines: Vec<Value> = (0..10).map(|at| if at % 2 == 0 { user(1_000) } else { said(1_000) }).collect();
    assert_eq!(kept(&lines, demand(2_000)), from("e8"));
    assert_eq!(kept(&lines, demand(2_001)), from("e7"));
}

#[test]
fn open_calls_stay_and_a_request_stays_where_no_tail_is_named() {
    let asked = [user(10), said(10), user(10)];
    assert_eq!(kept(&asked, demand(0)), from("e2"));
    assert_eq!(kept(&asked, explicit(0)), Ok(None));
    let open = [user(10), answer(10, "toolUse", &["a"])];
    assert_eq!(kept(&open, explicit(0)), from("e1"));
}

fn empty() -> Value {
    message(json!({"role": "assistant", "content": [], "stopReason": "stop"}))
}

fn developer() -> Value {
    message(json!({"role": "developer", "content": "abc"}))
}

fn custom() -> Value {
    json!({"type": "custom_message", "customType": "x", "content": "y", "display": true})
}

#[test]
fn messages_that_no_model_has_read_stay_where_no_tail_is_named() {
    let failed = |stop: &str| answer(10, stop, &[]);
    let hundred: Vec<Value> = (0..100).map(|_| user(1)).collect();
    for (more, first) in [
        (vec![user(10), user(10)], "e2"),
        (hundred, "e2"),
        (vec![user(10), developer(), user(10)], "e2"),
        (vec![user(10), custom()], "e2"),
        (vec![user(10), failed("aborted"), user(10)], "e2"),
        (vec![user(10), failed("error"), label(), user(10)], "e2"),
        (vec![user(10), said(10), edit("e3", Value::Null), user(10)], "e2"),
        (vec![user(10), empty(), user(10)], "e4"),
        (vec![answer(10, "toolUse", &["a"]), user(10), user(10)], "e3"),
        (vec![developer(), user(10), user(10)], "e3"),
        (vec![user(10), said(10), user(10)], "e4"),
    ] {
        let lines = [vec![user(10), said(10)], more].concat();
        let plan = plan(path(&lines), demand(1), Arc::default()).expect("a plan");
        for plan in [plan.keeping_least(), plan] {
            assert_eq!(plan.first_kept_id().map(EntryId::as_str), Some(first), "{lines:?}");
        }
    }
    let named = [user(10), said(10), user(10), user(10)];
    assert_eq!(kept(&named, explicit(1)), from("e3"));
    assert_eq!(kept(&named, explicit(0)), Ok(None));
}

#[test]
fn a_result_behind_a_message_that_no_model_has_read_stays_with_its_call() {
    let lines = [user(10), said(10), answer(10, "toolUse", &["a", "b"]), result("a"), user(10), result("b")];
    let plan = plan(path(&lines), demand(1), Arc::default()).expect("a plan").keeping_least();
    assert_eq!(plan.first_kept_id().map(EntryId::as_str), Some("e2"));
}

#[test]
fn a_context_of_messages_that_no_model_has_read_is_only_edited_where_half_of_the_reserve_is_not_free() {
    let sized = |tokens_before| Demand { tokens_before, ..demand(5_000) };
    let lines = [user(4_500), user(4_500)];
    assert_eq!(kept(&lines, sized(9_500)), Err(NothingToDo::TooShort));
    assert_eq!(kept(&lines, sized(9_501)), from("e0"));
}

/// An entry of any kind that may be near messages of the user, and whether a model has read the entries before it.
fn any_entry() -> impl Strategy<Value = (Value, bool)> {
    let unread = |line: Value| (line, false);
    prop_oneof![
        4 => (1_usize..40).prop_map(move |tokens| unread(user(tokens))),
        2 => (1_usize..40).prop_map(|tokens| (said(tokens), true)),
        1 => Just((answer(5, "toolUse", &["a"]), true)),
        1 => Just(unread(result("a"))),
        1 => Just(unread(answer(5, "aborted", &[]))),
        1 => Just(unread(answer(5, "error", &[]))),
        1 => Just((empty(), true)),
        1 => Just(unread(developer())),
        1 => Just(unread(custom())),
        1 => Just(unread(label())),
    ]
}

proptest! {
    #[test]
    fn no_plan_summarizes_a_message_that_no_model_has_read(
        entries in vec(any_entry(), 1..24),
        keep in 1_u64..100,
        less in 0_u64..100,
    ) {
        let lines: Vec<Value> = entries.iter().map(|(line, _)| line.clone()).collect();
        let read = entries.iter().rposition(|(_, reads)| *reads).map_or(0, |place| place + 1);
        let waits = |place: &usize| lines[*place]["message"]["role"] == "user";
        let Some(first) = (read..lines.len()).find(waits) else { return Ok(()) };
        let sized = Demand { tokens_before: 20_000, ..demand(keep) };
        let Ok(plan) = plan(path(&lines), sized, Arc::default()) else { return Ok(()) };
        for plan in [plan.keeping(less), plan.keeping_least(), plan] {
            prop_assert!(plan.first_kept() <= first, "{} of {first}", plan.first_kept());
        }
    }
}

#[test]
fn results_that_no_model_has_read_stay_with_their_call_where_no_tail_is_named() {
    let call = || answer(10, "toolUse", &["a"]);
    let failed = || answer(1, "error", &[]);
    for (more, first) in [
        (vec![result("a")], "e2"),
        (vec![result("a"), user(10)], "e2"),
        (vec![result("a"), failed(), label()], "e2"),
        (vec![result("a"), said(10), user(10)], "e5"),
        (vec![user(10)], "e3"),
    ] {
        let lines = [vec![user(10), said(10), call()], more].concat();
        assert_eq!(kept(&lines, demand(1)), from(first), "{}", lines.len());
        let least = plan(path(&lines), demand(1), Arc::default()).expect("a plan").keeping_least();
        let asks = lines[lines.len() - 1]["message"]["role"] == "user";
        assert_eq!(least.first_kept(), lines.len() - usize::from(asks), "they leave where nothing else helps");
    }
    for none in [demand(0), explicit(0)] {
        assert_eq!(kept(&[user(10), said(10), call(), result("a")], none), Ok(None));
    }
}

#[test]
fn behind_a_compaction_only_new_messages_or_a_large_context_are_compacted() {
    let mut lines = vec![user(3_000), said(3_000), compaction("e1", json!({})), label()];
    let sized = |tokens_before| Demand { tokens_before, ..demand(20_000) };
    assert_eq!(kept(&lines, sized(0)), Err(NothingToDo::AlreadyCompacted));
    assert_eq!(kept(&lines, sized(8_000)), Err(NothingToDo::AlreadyCompacted));
    assert_eq!(kept(&lines, sized(8_001)), Ok(None), "less is kept than demanded");
    let explicit = Demand { explicit: true, ..sized(8_001) };
    assert_eq!(kept(&lines, explicit), Err(NothingToDo::AlreadyCompacted));
    lines.push(user(10));
    assert_eq!(kept(&lines, sized(0)), Err(NothingToDo::TooShort));
}

#[test]
fn a_request_alone_is_only_edited_where_half_of_the_reserve_is_not_free() {
    let sized = |tokens_before| Demand { tokens_before, ..demand(5_000) };
    assert_eq!(kept(&[user(9_000)], sized(9_500)), Err(NothingToDo::TooShort));
    assert_eq!(kept(&[user(9_000)], sized(9_501)), from("e0"));
}

#[test]
fn a_demanded_tail_leaves_room_for_the_summary_and_a_named_one_is_as_named() {
    let lines: Vec<Value> = (0..10).map(|at| if at % 2 == 0 { user(1_000) } else { said(1_000) }).collect();
    assert_eq!(kept(&lines, explicit(20_000)), Err(NothingToDo::TooShort));
    // 6400 tokens are the target, and 800 are for the summary.
    assert_eq!(kept(&lines, demand(20_000)), from("e4"));
    let least = |keep| Demand { scale: Scale::new(Estimator::Chars, 2.0), ..demand(keep) };
    assert_eq!(kept(&lines, least(1)), from("e9"));
    assert_eq!(kept(&lines, least(0)), Ok(None));
}

#[test]
fn the_message_that_an_earlier_compaction_carries_is_carried_on() {
    let ours = json!({"newestUserMessage": {"entryId": "old", "text": "Mend it."}});
    let mut lines = vec![said(10), compaction("e0", ours), said(10)];
    let carried = |lines: &[Value], demand| {
        let plan = plan(path(lines), demand, Arc::default()).expect("a plan");
        plan.carried().map(|it| (it.entry_id.to_string(), it.text.chars().count()))
    };
    assert_eq!(carried(&lines, explicit(0)), Some(("old".to_owned(), 8)));
    lines.push(user(10));
    assert_eq!(carried(&lines, explicit(1)), None, "a newer one is kept");
    assert_eq!(carried(&lines, explicit(0)), Some(("e3".to_owned(), 40)));
    // A third of 6400 tokens, at three characters each.
    let (_, chars) = carried(&[user(2_000), said(10)], explicit(1)).expect("a message");
    assert!((6_400..6_500).contains(&chars), "{chars}");
}

#[test]
fn a_plan_sees_past_pins_markers_and_system_messages() {
    let pin = json!({"type": "custom", "customType": "abridged.pin", "data": {"entryId": "e1"}});
    let system = message(json!({"role": "system", "content": "abc ".repeat(9)}));
    let mut lines = vec![user(10), said(10), user(10), system, said(10)];
    let planned = |lines: &[Value]| plan(path(lines), explicit(20), Arc::default()).expect("a plan");
    let before = planned(&lines);
    assert_eq!(before.kept_tokens(), 20);
    assert_eq!(before.span().said_by_user_later(), ["abc ".repeat(10)]);
    lines.push(pin);
    let after = planned(&lines);
    assert_eq!(after.hash(), before.hash(), "a marker is no part of the conversation");
    let summarized = |plan: &Plan| plan.summarized().iter().map(|entry| entry.id.to_string()).collect::<Vec<_>>();
    assert_eq!((summarized(&before), summarized(&after)), (vec!["e0".into(), "e1".into()], vec!["e0".to_owned()]));
}

#[test]
fn a_tail_begins_at_any_message_that_is_no_result_and_has_no_open_call_before_it() {
    let calls = |ids: &[&str]| answer(100, "toolUse", ids);
    let begins = |lines: &[Value], entry: &str| {
        let plan = plan(path(lines), explicit(100), Arc::default()).expect("a plan");
        plan.keeping_from(&entry.into()).map(|plan| {
            let split = if plan.splits_a_turn() { " in a turn" } else { "" };
            format!("{}{split}", plan.first_kept_id().expect("a tail"))
        })
    };
    let lines = [user(100), calls(&["c"]), result("c"), label(), said(100), user(100), said(100)];
    assert_eq!(begins(&lines, "e5"), Ok("e5".to_owned()));
    // The label before a message goes with it.
    assert_eq!(begins(&lines, "e4"), Ok("e3 in a turn".to_owned()));
    assert_eq!(begins(&lines, "e3"), Ok("e3 in a turn".to_owned()));
    assert_eq!(begins(&lines, "e2"), Err(NoCut::Result));
    assert_eq!(begins(&lines, "e1"), Ok("e1 in a turn".to_owned()));
    assert_eq!(begins(&lines, "e0"), Err(NoCut::First));
    assert_eq!(begins(&lines, "nowhere"), Err(NoCut::NotInContext));
    assert_eq!(begins(&[user(100), said(100), user(100), said(100), label()], "e4"), Err(NoCut::NotInContext));
    let open = [user(100), said(100), user(100), calls(&["c", "d"]), result("c"), user(100), said(100)];
    assert_eq!(begins(&open[..5], "e3"), Ok("e3 in a turn".to_owned()));
    assert_eq!(begins(&open[..5], "e4"), Err(NoCut::Result));
    let again = [user(100), said(100), compaction("e1", json!({})), user(100), said(100), user(100), said(100)];
    assert_eq!(begins(&again, "e0"), Err(NoCut::NotInContext), "an earlier compaction covers it");
    assert_eq!(begins(&again, "e2"), Err(NoCut::NotInContext), "it is a compaction");
    assert_eq!(begins(&again, "e3"), Ok("e3".to_owned()));
}

#[test]
fn data_of_other_programs_is_carried_and_that_of_providers_is_not() {
    let data = json!({"abridged": {}, "memory": [1], "openaiRemoteCompaction": {}, "anthropicCompaction": {}});
    let mut line = compaction("e1", json!({}));
    line["preserveData"] = data;
    let lines = [user(100), said(100), line.clone(), user(900), said(900)];
    let carried = |lines: &[Value]| {
        let plan = plan(path(lines), explicit(100), Arc::default()).expect("a plan");
        json!(plan.carried_data())
    };
    assert_eq!(carried(&lines), json!({"memory": [1]}));
    line["preserveData"] = json!("a text");
    assert_eq!(carried(&[user(100), said(100), line, user(900), said(900)]), json!({}));
}
