//! Tests of summaries of branches.

use super::*;
use crate::conversation::tokens::Estimator;
use serde_json::Value;

const SCALE: Scale = Scale::new(Estimator::Chars, 1.0);

fn entry(id: &str, kind: &str, fields: Value) -> Arc<Entry> {
    let mut line = json!({"type": kind, "id": id, "parentId": null, "timestamp": "2026-01-01T00:00:00.000Z"});
    line.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    Arc::new(Entry::parse(line.to_string().into()).expect("a line"))
}

fn user(id: &str, text: &str) -> Arc<Entry> {
    entry(id, "message", json!({"message": {"role": "user", "content": text, "timestamp": 1}}))
}

/// A message of this size in the transcript, in tokens.
fn sized(id: &str, tokens: usize) -> Arc<Entry> {
    user(id, &"x".repeat(tokens * 4 - "[User]: ".len()))
}

fn call(id: &str, tool: &str, path: &str) -> Arc<Entry> {
    let call = json!({"type": "toolCall", "id": id, "name": tool, "arguments": {"path": path}});
    let message = json!({"role": "assistant", "content": [call], "stopReason": "toolUse", "timestamp": 1});
    entry(id, "message", json!({"message": message}))
}

/// The summary of a compaction or a branch, of this size in the transcript.
fn summary(id: &str, kind: &str, tokens: usize, details: Value) -> Arc<Entry> {
    let label = if kind == "compaction" { "[Summary of an earlier part]: " } else { "[Summary of another branch]: " };
    let text = "s".repeat(tokens * 4 - label.len());
    let more = json!({"summary": text, "firstKeptEntryId": "x", "tokensBefore": 1, "fromId": "x", "details": details});
    entry(id, kind, more)
}

fn prepared(left: &[Arc<Entry>], budget: u64, pinned: &[&str]) -> Prepared {
    let pinned = left.iter().filter(|entry| pinned.contains(&entry.id.as_str()));
    let pins: Vec<_> = pinned.map(|entry| LeftPin { entry: entry.id.clone(), text: entry.pinned_text() }).collect();
    let clean = |text: &str| Clean::assembled(text.replace("secret", "[X]"));
    Prepared::of(
        left,
        &Demand {
            pins: &pins,
            budget,
            scale: SCALE,
            tools: &[],
            secrets: Secrets::Redacted,
            clean: &clean,
            stop: &|| false,
        },
    )
}

/// The ids of the messages that are summarized.
fn chosen(prepared: &Prepared) -> Vec<&str> {
    prepared.span().messages().into_iter().map(|entry| entry.id.as_str()).collect()
}

#[test]
fn the_newest_messages_are_chosen_up_to_the_budget() {
    let left = [sized("a", 10), sized("b", 20), sized("c", 30)];
    for (budget, expected, left_out) in [
        (60, vec!["a", "b", "c"], 0),
        (59, vec!["b", "c"], 1),
        (50, vec!["b", "c"], 1),
        (49, vec!["c"], 2),
        (0, vec!["c"], 2),
    ] {
        let prepared = prepared(&left, budget, &[]);
        assert_eq!((chosen(&prepared), prepared.left_out), (expected, left_out), "{budget}");
    }
    assert!(chosen(&prepared(&[], 100, &[])).is_empty());
}

#[test]
fn a_message_behind_the_first_one_that_does_not_fit_is_not_chosen() {
    let left = [sized("a", 5), sized("b", 50), sized("c", 30)];
    assert_eq!(chosen(&prepared(&left, 40, &[])), ["c"]);
}

#[test]
fn one_summary_may_still_enter_below_nine_tenths_of_the_budget() {
    for kind in ["compaction", "branch_summary"] {
        let left = [sized("a", 5), summary("s", kind, 500, json!({})), sized("c", 89)];
        assert_eq!(chosen(&prepared(&left, 100, &[])), ["s", "c"], "{kind}");
        let left = [sized("a", 5), summary("s", kind, 500, json!({})), sized("c", 90)];
        assert_eq!(chosen(&prepared(&left, 100, &[])), ["c"], "{kind}");
    }
}

#[test]
fn a_compaction_counts_as_a_message_with_its_summary() {
    let left = [summary("s", "compaction", 20, json!({})), sized("c", 10)];
    let prepared = prepared(&left, 100, &[]);
    let read: Vec<String> = prepared.span().history().iter().filter_map(|entry| piece(entry, &str::to_owned)).collect();
    assert!(read[0].starts_with("[Summary of an earlier part]: sss"), "{read:?}");
    assert_eq!(read.len(), 2, "once");
}

#[test]
fn the_files_are_those_of_all_entries_and_of_their_summaries() {
    let details =
        |name: &str| json!({"readFiles": [format!("{name}.read")], "modifiedFiles": [format!("{name}.changed")]});
    let by_hook = json!({"summary": "s", "fromId": "x", "fromHook": true, "details": details("hook")});
    let left = [
        summary("s1", "compaction", 20, details("one")),
        summary("s2", "branch_summary", 20, details("two")),
        entry("s3", "branch_summary", by_hook),
        call("a", "read", "one.changed"),
        call("b", "edit", "secret.rs"),
        call("c", "read", "new.rs"),
        sized("d", 10),
    ];
    let prepared = prepared(&left, 10, &[]);
    assert_eq!(chosen(&prepared), ["d"]);
    assert_eq!(prepared.files.read_files, ["one.read", "two.read", "new.rs"]);
    assert_eq!(prepared.files.modified_files, ["one.changed", "two.changed", "[X].rs"]);
}

#[test]
fn a_pinned_entry_is_kept_word_for_word_and_not_summarized() {
    let left = [user("a", "Never push to main."), user("b", "Fix it."), user("c", "The port is 8080.")];
    let prepared = prepared(&left, 1_000, &["a", "c"]);
    assert_eq!(chosen(&prepared), ["b"]);
    let pins: Vec<&str> = prepared.pins.iter().map(|pin| &**pin).collect();
    assert_eq!(pins, ["Never push to main.", "The port is 8080."]);
    let whole = Frame::of(&prepared, &Prompts::default(), 2_000, SCALE)
        .expect("room")
        .around(&Clean::assembled("## Goal\nfix"))
        .expect("fits");
    assert!(whole.ends_with("word for word:\n\nNever push to main.\n\nThe port is 8080."), "{whole}");
}

#[test]
fn only_messages_and_summaries_are_something_to_summarize() {
    let nothing = [
        entry("a", "model_change", json!({"provider": "p", "modelId": "m"})),
        entry("b", "label", json!({"targetId": "x", "label": "here"})),
        entry(
            "c",
            "message",
            json!({"message": {"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1}}),
        ),
        entry("d", "branch_summary", json!({"summary": " ", "fromId": "x"})),
    ];
    assert!(!has_content(&nothing) && !has_content(&[]));
    for more in
        [user("e", "hi"), summary("e", "compaction", 20, json!({})), summary("e", "branch_summary", 20, json!({}))]
    {
        assert!(has_content(&[&nothing[..], &[more]].concat()));
    }
}

#[test]
fn the_texts_around_a_summary_leave_it_the_rest_of_the_room() {
    let details =
        json!({"readFiles": (0..40).map(|at| format!("/src/{at}.rs")).collect::<Vec<_>>(), "modifiedFiles": []});
    let left = [summary("s", "branch_summary", 20, details), sized("a", 900), sized("b", 10)];
    let prepared = prepared(&left, 100, &[]);
    for room in [100, 200, 400, 1_000, 10_000] {
        let Some(frame) = Frame::of(&prepared, &Prompts::default(), room, SCALE) else {
            assert!(room < 150, "{room}");
            continue;
        };
        let whole = frame.around(&Clean::assembled("x".repeat(frame.room as usize * 4))).expect("it fits");
        assert!(SCALE.text(&whole) <= room && frame.room <= MOST, "{room}");
        assert!(whole.contains("2 oldest messages"), "{whole}");
        assert!(frame.around(&Clean::assembled("x".repeat(room as usize * 4))).is_none());
    }
}

#[test]
fn a_text_of_a_hook_gets_the_pins_that_it_lacks() {
    let left = [user("a", "Never push to main."), user("b", "Fix it."), user("c", "The port is 8080.")];
    let prepared = prepared(&left, 1_000, &["a", "c"]);
    let frame = Frame::of(&prepared, &Prompts::default(), 2_000, SCALE).expect("room");
    let whole = frame.behind(&Clean::assembled("Mine. The port is 8080. "), &prepared).expect("it fits");
    assert!(whole.starts_with("Mine. The port is 8080.\n\n## Pinned"), "{whole}");
    assert!(whole.ends_with("Never push to main.") && whole.matches("8080").count() == 1, "{whole}");
}

#[test]
fn pinned_texts_without_room_are_counted() {
    let pins = ["old", "new"].map(|name| Clean::assembled(format!("{name} {}", "x".repeat(400))));
    let text = pinned_texts(&pins, 150, SCALE);
    assert!(text.contains("new xxx") && !text.contains("old xxx"), "{text}");
    assert!(text.contains("1 older pinned texts"), "{text}");
}
