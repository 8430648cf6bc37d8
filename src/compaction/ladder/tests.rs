//! Tests of the ladder.

mod elided;
mod unread;

use super::*;
use crate::{
    compaction::{
        lines::path,
        plan::{Demand, NothingToDo},
    },
    conversation::tokens::{Estimator, Scale},
};
use serde_json::{Value, json};
use std::cell::RefCell;

fn message(message: Value) -> Value {
    json!({"type": "message", "message": message})
}

/// A text of so many tokens.
fn words(tokens: usize) -> String {
    "abc ".repeat(tokens)
}

fn user(tokens: usize) -> Value {
    message(json!({"role": "user", "content": [{"type": "text", "text": words(tokens)}]}))
}

fn answer(tokens: usize) -> Value {
    message(json!({"role": "assistant", "content": [{"type": "text", "text": words(tokens)}], "stopReason": "stop"}))
}

fn calls(ids: &[String]) -> Value {
    let call = |id: &String| json!({"type": "toolCall", "id": id, "name": "r", "arguments": {}});
    let calls: Vec<Value> = ids.iter().map(call).collect();
    message(json!({"role": "assistant", "content": calls, "stopReason": "toolUse"}))
}

fn call(ids: &[&str]) -> Value {
    calls(&ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>())
}

fn result(call: &str, tokens: usize) -> Value {
    message(json!({"role": "toolResult", "toolCallId": call, "toolName": "r", "isError": false,
        "content": [{"type": "text", "text": words(tokens)}]}))
}

/// A message of the user with an image of so many bytes.
fn shown(bytes: usize) -> Value {
    message(json!({"role": "user", "content": [
        {"type": "text", "text": "look"}, {"type": "image", "mimeType": "image/png", "data": "A".repeat(bytes)}]}))
}

fn pin(entry: &str) -> Value {
    json!({"type": "custom", "customType": "abridged.pin", "data": {"entryId": entry}})
}

fn edit(target: &str, text: &str) -> Value {
    json!({"type": "context_edit", "targetId": target, "replacement": {"content": [{"type": "text", "text": text}]}})
}

fn budget(threshold: u64) -> Budget {
    Budget { window: threshold * 5 / 4, threshold, reserve: threshold / 8, system: 0, tools: 0, pins: 0 }
}

fn demand(threshold: u64) -> Demand {
    Demand {
        keep: 0,
        explicit: true,
        scale: Scale::new(Estimator::Chars, 1.0),
        budget: budget(threshold),
        tokens_before: 100_000,
        may_stay: threshold,
        insists: false,
    }
}

/// The plan that keeps everything from an entry on.
fn keeping(lines: &[Value], from: usize, demand: Demand) -> Plan {
    let path = path(lines);
    let sent = path[from..].iter().filter(|entry| entry.is_conversation());
    let keep = sent.map(|entry| u64::from(entry.tokens(Estimator::Chars))).sum();
    let plan = plan::plan(path, Demand { keep, ..demand }, Arc::default()).expect("a plan");
    assert_eq!(plan.first_kept(), from);
    plan
}

/// The same, for which no tail was named: a request without answer stays in any case.
fn asking(lines: &[Value], from: usize, threshold: u64) -> Plan {
    let mut plan = keeping(lines, from, demand(threshold));
    plan.demand.explicit = false;
    plan
}

const NO_PRUNING: PruneSettings =
    PruneSettings { protect_tokens: u64::MAX, minimum_savings: 0, protected_tools: Vec::new(), cache_seconds: 300 };

const NO_RULES: Rules<'static> = Rules { settings: &NO_PRUNING, tools: &[] };

fn summary(text: &str) -> Summary {
    Summary { text: Clean::assembled(text), short: Clean::default(), files: FileLists::default() }
}

fn climbed(plan: Plan, prune: &PruneSettings) -> Draft {
    climb(plan, Rules { settings: prune, tools: &[] }, &|_, _| summary("A summary.")).expect("a draft")
}

fn targets(draft: &Draft) -> Vec<&str> {
    draft.edits.iter().map(|edit| edit.target_id.as_str()).collect()
}

/// The text that an edit leaves of an entry.
fn left(draft: &Draft, entry: &str) -> String {
    let edit = draft.edits.iter().find(|edit| edit.target_id.as_str() == entry).expect("an edit");
    let content = edit.replacement.as_ref().expect("content").content.read();
    content.as_str().or(content[0]["text"].as_str()).expect("a text").to_owned()
}

fn first_kept(draft: &Draft) -> Option<&str> {
    draft.plan.first_kept_id().map(EntryId::as_str)
}

#[test]
fn a_defect_of_the_extraction_leaves_a_plain_floor() {
    let long: Vec<Value> = (0..20).flat_map(|_| [user(100), answer(400)]).collect();
    let demand = Demand { keep: 1_000, ..demand(10_000) };
    let plan = plan::plan(path(&long), demand, Arc::default()).expect("a plan");
    let settings = Settings::default();
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        assert!(asked.get() > 1, "a planted panic");
        false
    };
    let draft = extracted(plan, &settings, &Cleaner::new(&settings), Wishes::default(), &stop).expect("a draft");
    assert!(draft.summary.text.starts_with("## Critical Context\n- abc abc"), "{}", &*draft.summary.text);
    assert!(draft.tokens_after <= goal(&draft.plan));
}

#[test]
fn a_draft_needs_no_ladder_where_the_largest_summary_fits_and_the_context_gets_smaller() {
    let room = |lines: &[Value], demand: Demand| {
        let plan = plan::plan(path(lines), demand, Arc::default()).expect("a plan");
        room_at_once(&plan)
    };
    let long: Vec<Value> = (0..20).flat_map(|_| [user(100), answer(400)]).collect();
    let demand = Demand { keep: 1_000, insists: false, tokens_before: 0, ..demand(10_000) };
    assert_eq!(room(&long, demand), Some(demand.budget.summary_cap()));
    assert_eq!(room(&long, Demand { keep: 9_500, ..demand }), None, "the kept part leaves no room");
    let short: Vec<Value> = (0..2).flat_map(|_| [user(10), answer(40)]).collect();
    assert_eq!(room(&short, Demand { keep: 50, ..demand }), None, "the headings alone are larger than the context");
    assert!(room(&short, Demand { keep: 50, insists: true, ..demand }).is_some());
    let mut pictures = long.clone();
    pictures.push(shown(images::BUDGET + 1));
    assert_eq!(room(&pictures, demand), None, "images have to go");
}

#[test]
fn old_results_are_pruned_that_are_neither_pinned_nor_edited() {
    let ids = ["a", "b", "c", "d"];
    let mut lines = vec![user(5), answer(5), user(10), call(&ids)];
    lines.extend(ids.map(|id| result(id, 1_500)));
    lines.extend([answer(10), pin("e4"), edit("e5", "short")]);
    let prune = PruneSettings {
        protect_tokens: 1_000,
        minimum_savings: 1_000,
        protected_tools: Vec::new(),
        cache_seconds: 300,
    };
    let draft = climbed(keeping(&lines, 2, demand(4_000)), &prune);
    assert_eq!((targets(&draft), first_kept(&draft)), (vec!["e6"], Some("e2")));
    assert_eq!(left(&draft, "e6"), "[Output truncated - 1500 tokens]");
}

#[test]
fn only_oversized_results_lose_their_middle() {
    let ids = ["a", "b", "c", "d"];
    let mut lines = vec![user(5), answer(5), user(3_000), call(&ids)];
    lines.extend([result("a", 10_000), result("b", 1_900), result("c", 2_100), result("d", 3_000)]);
    lines.extend([answer(10), pin("e7")]);
    let draft = climbed(keeping(&lines, 2, demand(10_500)), &NO_PRUNING);
    assert_eq!((targets(&draft), first_kept(&draft)), (vec!["e4", "e6"], Some("e2")));
    let text = left(&draft, "e4");
    assert!((4_000..4_200).contains(&text.chars().count()), "{}", text.chars().count());
    assert!(text.contains("of these 10000 tokens"), "{text}");
}

#[test]
fn old_images_leave_and_the_newest_and_the_pinned_stay() {
    let lines = [user(5), answer(5), shown(40), answer(5), shown(40), answer(5), shown(40), answer(5), pin("e2")];
    let draft = climbed(keeping(&lines, 2, demand(3_000)), &NO_PRUNING);
    assert_eq!((targets(&draft), first_kept(&draft)), (vec!["e4"], Some("e2")));
    let lines = [user(5), answer(5), shown(40), answer(5), shown(40)];
    let draft = climbed(asking(&lines, 2, 900), &NO_PRUNING);
    assert_eq!(targets(&draft), ["e4"], "the last rung removes the newest, too");
}

#[test]
fn the_tail_is_halved_until_it_fits() {
    let mut lines = vec![user(5), answer(5)];
    lines.extend((0..8).map(|at| if at % 2 == 0 { user(500) } else { answer(500) }));
    let draft = climbed(keeping(&lines, 2, demand(1_300)), &NO_PRUNING);
    assert_eq!(first_kept(&draft), Some("e8"));
}

#[test]
fn the_edits_of_a_shorter_tail_are_those_of_its_entries() {
    let lines = [user(5), answer(5), user(1_500), answer(1_500), user(10), call(&["a", "b"]), result("a", 10_000)];
    let caps = RefCell::new(Vec::new());
    let write = |_: &Plan, cap: u64| {
        caps.borrow_mut().push(cap);
        summary("A summary.")
    };
    let draft = climb(keeping(&lines, 2, demand(3_000)), NO_RULES, &write).expect("a draft");
    assert_eq!((targets(&draft), first_kept(&draft)), (vec!["e6"], Some("e5")));
    assert_eq!(caps.take(), [160, 300], "no ledger of the last rung is needed");
    let lines =
        [user(5), answer(5), user(10), call(&["a"]), result("a", 10_000), answer(10), answer(1_500), answer(1_500)];
    let draft = climbed(keeping(&lines, 2, demand(2_000)), &NO_PRUNING);
    assert_eq!((targets(&draft), first_kept(&draft)), (vec![], Some("e7")));
}

#[test]
fn before_anything_is_clipped_the_ledger_becomes_short() {
    let lines = [user(3_000), answer(3_000), user(10), call(&["a", "b", "c"]), result("a", 10_000), result("b", 1_300)];
    let caps = RefCell::new(Vec::new());
    let write = |_: &Plan, cap: u64| {
        caps.borrow_mut().push(cap);
        summary(&words(cap as usize))
    };
    let mut demand = demand(3_200);
    demand.budget.reserve = 1_200;
    let draft = climb(keeping(&lines, 3, demand), NO_RULES, &write).expect("a draft");
    // A cut that keeps the same is no rung.
    assert_eq!(caps.take(), [853, 500]);
    assert_eq!((targets(&draft), draft.summary.text.len()), (vec!["e4"], 2_000));
}

#[test]
fn a_request_that_fills_the_window_is_clipped_as_little_as_its_threshold_allows() {
    let lines = [user(50), answer(50), user(50_000)];
    let after = |threshold| {
        let plan = asking(&lines, 2, threshold);
        let draft = climbed(plan, &NO_PRUNING);
        assert_eq!(targets(&draft), ["e2"]);
        draft.tokens_after
    };
    // A context of up to 90 % is taken.
    assert!((17_900..=18_000).contains(&after(20_000)), "{}", after(20_000));
    assert!((5_370..=5_400).contains(&after(6_000)), "{}", after(6_000));
}

#[test]
fn only_long_results_and_the_request_are_clipped() {
    let open = [user(5), answer(5), user(10), call(&["a", "b", "c"]), result("a", 10), result("b", 1_900)];
    let draft = climbed(keeping(&open, 3, demand(1_000)), &NO_PRUNING);
    assert_eq!(targets(&draft), ["e5"]);
    // The summary of a shorter tail makes nothing smaller, so an earlier message of the user is still there.
    let lines = [user(5), answer(5), user(900), answer(20), user(50_000)];
    let written = RefCell::new(0);
    let write = |_: &Plan, _: u64| {
        *written.borrow_mut() += 1;
        summary(&words(if *written.borrow() == 1 { 10 } else { 2_000 }))
    };
    let draft = climb(asking(&lines, 2, 2_000), NO_RULES, &write).expect("a draft");
    assert_eq!((targets(&draft), first_kept(&draft)), (vec!["e4"], Some("e2")));
}

#[test]
fn a_clipped_message_keeps_its_images_and_one_note_on_its_middle() {
    let mut request = shown(40);
    request["message"]["content"][0]["text"] = words(50_000).into();
    let draft = climbed(asking(&[user(50), answer(50), request], 2, 20_000), &NO_PRUNING);
    assert_eq!(draft.edits[0].replacement.as_ref().expect("content").content.read()[1]["type"], "image");
    // It lost its middle as an oversized result before.
    let lines = [user(5), answer(5), user(10), call(&["a", "b"]), result("a", 10_000)];
    let text = left(&climbed(keeping(&lines, 3, demand(1_000)), &NO_PRUNING), "e4");
    assert!(text.contains("of these 10000 tokens") && text.matches("left out").count() == 1, "{text}");
}

#[test]
fn content_that_an_edit_replaced_does_not_come_back_when_its_replacement_is_cut_anew() {
    let edits = [edit("e4", &"xyz ".repeat(9_000)), edit("e2", "Another entry.")];
    let mut lines = vec![user(5), answer(5), user(10), call(&["a", "b"]), result("a", 10_000)];
    lines.extend(edits);
    let text = left(&climbed(keeping(&lines, 3, demand(1_000)), &NO_PRUNING), "e4");
    assert!(text.starts_with("xyz ") && text.ends_with("xyz "), "{text}");
    assert!(text.contains("of these 9000 tokens") && text.matches("left out").count() == 1, "{text}");
}

#[test]
fn the_notices_of_a_message_of_images_alone_are_clipped_again() {
    let image = json!({"type": "image", "mimeType": "image/png", "data": "AAAA"});
    let gap = json!({"type": "text", "text": " "});
    let images = message(json!({"role": "user", "content": vec![[image, gap]; 20].concat()}));
    let mut draft = climbed(keeping(&[user(5), answer(5), images], 2, demand(100_000)), &NO_PRUNING);
    draft = with_edits(&draft, &image_edits(&draft, 0));
    for less in [100, 50] {
        let before = draft.tokens_after;
        draft = elide::cut_to(&draft, before - less);
        assert!(draft.tokens_after < before);
        assert_eq!(targets(&draft), ["e2"], "an edit replaces the one before");
        assert!(left(&draft, "e2").starts_with("[Image left out to save room"), "{}", left(&draft, "e2"));
    }
}

#[test]
fn many_small_results_are_all_pruned_but_pinned_ones() {
    let ids: Vec<String> = (0..100).map(|at| format!("c{at}")).collect();
    let mut lines = vec![user(5), answer(5), user(10), calls(&ids)];
    lines.extend(ids.iter().skip(1).map(|id| result(id, 38)));
    lines.push(pin("e4"));
    let draft = climbed(keeping(&lines, 3, demand(2_500)), &NO_PRUNING);
    assert_eq!(draft.edits.len(), 98);
    assert!(!targets(&draft).contains(&"e4"));
}

#[test]
fn bytes_of_images_over_their_budget_leave_down_to_the_target() {
    const MILLION: usize = 1_000_000;
    let draft = |sizes: [usize; 4], more: &[Value]| {
        let mut lines = vec![user(5), answer(5)];
        lines.extend(sizes.map(|size| shown(size * MILLION)));
        lines.extend_from_slice(more);
        climbed(keeping(&lines, 2, demand(100_000)), &NO_PRUNING)
    };
    assert_eq!(targets(&draft([2, 2, 6, 6], &[])), ["e2", "e3"]);
    assert_eq!(targets(&draft([2, 2, 6, 5], &[])), [""; 0], "they are within the budget");
    assert_eq!(targets(&draft([2, 2, 6, 6], &[pin("e2")])), ["e3", "e4"]);
}

#[test]
fn a_rung_is_tried_only_where_nothing_fits_and_taken_only_where_it_is_smaller() {
    let draft = climbed(keeping(&[user(5), answer(5), user(5)], 2, demand(1_000)), &NO_PRUNING);
    let of = |tokens_after| Draft { tokens_after, ..draft.clone() };
    for (best, goal, rung, after) in
        [(100, 100, 50, 100), (101, 100, 50, 50), (101, 100, 101, 101), (101, 100, 200, 101)]
    {
        let mut ladder = Ladder { best: of(best), goal };
        ladder.try_rung(|_| of(rung));
        assert_eq!(ladder.best.tokens_after, after, "{rung} for {best}");
    }
}

#[test]
fn a_draft_is_worth_writing_where_it_is_small_enough() {
    let draft = climbed(keeping(&[user(5), answer(5), user(5)], 2, demand(1_000)), &NO_PRUNING);
    let accepted = |tokens_after, before, goal, insists| {
        let mut best = Draft { tokens_after, ..draft.clone() };
        best.plan.demand.budget =
            Budget { window: 10_000, threshold: 8_000, reserve: 1_000, system: 100, tools: 50, pins: 30 };
        best.plan.demand.insists = insists;
        Ladder { best, goal }.accepted(before).map(|draft| draft.tokens_after)
    };
    let latest_turn =
        |latest_turn| NoDraft::TooLarge(Floor { system: 100, tools: 50, pins: 30, latest_turn, window: 10_000 });
    for (after, before, goal, insists, expected) in [
        (8_000, 8_001, 0, false, Ok(8_000)),
        (8_000, 8_000, 0, false, Err(NoDraft::WouldNotShrink)),
        (8_000, 8_000, 0, true, Ok(8_000)),
        (8_500, 8_501, 8_500, false, Ok(8_500)),
        (8_500, 8_501, 8_499, false, Err(NoDraft::WouldNotShrink)),
        // Over the threshold it leaves room for an answer, and is at least 5 % smaller.
        (9_000, 9_473, 0, false, Ok(9_000)),
        (9_000, 9_472, 0, false, Err(NoDraft::WouldNotShrink)),
        (9_001, 20_000, 0, false, Err(latest_turn(8_821))),
        (9_900, 9_999, 0, false, Err(NoDraft::WouldNotShrink)),
        (9_900, 10_000, 0, false, Err(latest_turn(9_720))),
    ] {
        assert_eq!(accepted(after, before, goal, insists), expected, "{after} of {before}");
    }
}

#[test]
fn a_summary_is_shorter_than_the_part_that_it_replaces() {
    for (tokens, cap) in [(50, 160), (1_000, 500), (100_000, 2_000)] {
        let mut demand = demand(100_000);
        demand.budget.reserve = 2_500;
        let plan = keeping(&[user(1), answer(tokens - 1), user(5)], 2, demand);
        assert_eq!(summary_cap(&plan), cap, "of {tokens}");
    }
    let half = Demand { scale: Scale::new(Estimator::Chars, 0.5), ..demand(100_000) };
    let plan = keeping(&[user(1), answer(999), user(5)], 2, half);
    assert_eq!(summary_cap(&plan), 250, "as a provider counts that finds half of the tokens");
    let compaction =
        json!({"type": "compaction", "summary": "word ".repeat(1_000), "firstKeptEntryId": "e0", "tokensBefore": 1});
    let mut demand = demand(100_000);
    demand.budget.reserve = 10_000;
    let plan = keeping(&[user(100), compaction, user(100), user(5)], 2, demand);
    let previous = plan.span().replaced(Estimator::Chars) - plan.span().said(Estimator::Chars);
    assert!(
        summary_cap(&plan) >= previous && summary_cap(&plan) <= previous + 100,
        "an earlier summary keeps its size"
    );
}

#[test]
fn edits_of_an_earlier_compaction_apply_to_kept_entries_that_no_later_edit_changes() {
    let carried: Vec<Value> =
        ["e1", "e2", "e3"].map(|target| json!({"targetId": target, "replacement": {"content": "carried"}})).into();
    let compaction = json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "e0", "tokensBefore": 1,
        "preserveData": {"abridged": {"edits": carried}}});
    let lines = [user(5), answer(5), user(5), answer(5), compaction, edit("e3", "later"), user(5)];
    let plan = keeping(&lines, 2, demand(1_000));
    let edits = carried_edits(&plan);
    assert_eq!(edits.iter().map(|edit| edit.target_id.as_str()).collect::<Vec<_>>(), ["e2"]);
}

#[test]
fn a_plan_may_shrink_a_context_that_is_larger_than_its_least_draft() {
    let lines = [user(5), answer(5), user(10), answer(10)];
    let plan = keeping(&lines, 2, Demand { tokens_before: 0, ..demand(100_000) });
    let least = Draft::extracted(plan.clone(), summary(&"word ".repeat(30)), Vec::new()).tokens_after;
    let may = |tokens_before, threshold, insists| {
        let mut plan = plan.clone();
        plan.demand = Demand { tokens_before, insists, ..demand(threshold) };
        may_shrink(&plan)
    };
    assert!(may(least + 1, 100_000, false));
    assert!(!may(least, 100_000, false));
    assert!(may(least, 100_000, true), "it is demanded all the same");
    assert!(may(least, least - 1, false), "the draft alone decides over the goal");
    assert!(!may(least, least, false));
}

#[test]
fn a_cancelled_extraction_has_no_draft() {
    let plan = keeping(&[user(5), answer(5), user(5)], 2, demand(1_000));
    let settings = Settings::default();
    assert_eq!(
        extracted(plan, &settings, &Cleaner::new(&settings), Wishes::default(), &|| true).err(),
        Some(NoDraft::Cancelled)
    );
    assert_eq!(plan::plan(path(&[]), demand(1_000), Arc::default()).err(), Some(NothingToDo::Empty));
}

#[test]
fn a_supplied_summary_keeps_its_cut_and_only_edits_make_its_draft_smaller() {
    let lines = [user(900), answer(900), user(10), call(&["a"]), result("a", 5_000), answer(10)];
    let draft = |lines: &[Value], words: usize, threshold: u64, tokens_before: u64, insists: bool| {
        let plan = keeping(lines, 2, Demand { tokens_before, insists, ..demand(threshold) });
        supplied(plan, summary(&self::words(words)), NO_RULES)
    };
    let whole = draft(&lines, 100, 8_000, 0, false).expect("it fits");
    assert_eq!((first_kept(&whole), targets(&whole).len()), (Some("e2"), 0));
    let smaller = draft(&lines, 100, 3_000, 0, false).expect("it fits without the middle of the result");
    assert_eq!((first_kept(&smaller), targets(&smaller)), (Some("e2"), vec!["e4"]));
    // Keeping less would lose messages that this summary is not about.
    let lines = [user(900), answer(900), user(1_000), answer(2_000), user(500), answer(10)];
    let large = draft(&lines, 100, 3_000, 0, true).expect_err("it does not fit");
    assert!(matches!(large, Unfit::Large { after, goal: 3_000 } if after > 3_500), "{large:?}");
    // It is larger than the two messages that it replaces.
    let lines = [user(40), answer(40), user(100), answer(100)];
    let grows = |insists| draft(&lines, 200, 200_000, 0, insists);
    assert!(matches!(grows(false), Err(Unfit::NotSmaller { after, before }) if after >= before));
    assert!(grows(true).is_ok());
}

#[test]
fn a_todo_list_becomes_short_where_nothing_else_makes_a_draft_fit() {
    let tasks: Vec<Value> =
        (0..30).map(|at| json!({"content": format!("task {at} {}", words(20)), "status": "pending"})).collect();
    let call = json!({"type": "toolCall", "id": "t", "name": "TodoWrite", "arguments": {"todos": tasks}});
    let said = message(json!({"role": "assistant", "content": [call], "stopReason": "toolUse"}));
    let named = |pinned: usize| {
        let lines = [user(pinned), pin("e0"), said.clone(), result("t", 1), answer(5_000), user(1)];
        let plan = keeping(&lines, 5, demand(2_000));
        let rules = Rules { settings: &PruneSettings::default(), tools: &[] };
        let draft = climb(plan, rules, &|_, _| summary("x")).ok()?;
        Some((draft.plan.todos(draft.plan.path()).expect("a list").open.len(), draft.tokens_after))
    };
    let found: Vec<(usize, u64)> = (1_000..1_900).step_by(25).filter_map(named).collect();
    let (most, least) = (found[0].0, found[found.len() - 1].0);
    assert!(least >= 1 && least < most, "{found:?}");
    assert!(found.windows(2).all(|pair| pair[1].0 <= pair[0].0), "the room alone decides: {found:?}");
}
