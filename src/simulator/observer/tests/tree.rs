//! Streams with navigations that break a rule.

use super::{
    super::{Rule, Verdict, Violation, contexts},
    Fault,
    play::*,
};
use crate::{
    conversation::entry::Entry,
    ids::EntryId,
    log::Unfinished,
    protocol::{
        events::Event,
        types::{Outcome, Status, StatusKind},
    },
    session::{effects::Effect, operations::idle},
};
use serde_json::json;
use std::sync::Arc;

fn moving(operation: Option<&str>) -> Status {
    Status { kind: StatusKind::SummarizingBranch, operation_id: operation.map(Into::into), reason: None }
}

fn changed(old: Option<&EntryId>, new: Option<&EntryId>, summary: Option<&EntryId>) -> Event {
    let (old_leaf_id, new_leaf_id) = (old.cloned(), new.cloned());
    Event::TreeChanged { old_leaf_id, new_leaf_id, summary_entry_id: summary.cloned(), label: None }
}

/// A request for a navigation, up to its status.
fn begins(play: &mut Play, operation: &str, kind: &str) -> Verdict {
    let request = play.send("session/navigate", json!({}));
    play.effect(Effect::Record(vec![Unfinished { kind: kind.to_owned(), ..unfinished(operation) }]))?;
    play.publish(moving(Some(operation)))?;
    play.answer(request, &json!({ "operationId": operation }))?;
    play.status(moving(Some(operation)))
}

/// The line that moves the leaf after an entry.
fn moves(play: &mut Play, operation: &str, target: &EntryId) -> Verdict {
    play.leaf = Some(target.clone());
    let data = json!({"targetEntryId": target});
    let marker = play.entry("custom", &[("customType", json!("abridged.leaf")), ("data", data)]);
    play.write(std::slice::from_ref(&marker))?;
    play.announce(&marker, Some(operation))
}

/// Two messages, and a navigation to the first one.
fn moved(play: &mut Play) -> Result<(Arc<Entry>, Arc<Entry>), Violation> {
    let (one, two) = (play.append("one")?, play.append("two")?);
    play.done()?;
    begins(play, "a", "navigation")?;
    moves(play, "a", &one.id)?;
    Ok((one, two))
}

fn ends(play: &mut Play) -> Verdict {
    play.publish(idle())?;
    play.settles()?;
    play.done()
}

/// A summary after an entry, announced.
fn summarized(play: &mut Play, behind: &EntryId, target: &EntryId) -> Result<Arc<Entry>, Violation> {
    begins(play, "a", "branch_summary")?;
    let (target_entry_id, common_ancestor_id) = (target.clone(), None);
    play.emit(
        Some("a"),
        Event::BranchSummaryStart { old_leaf_id: None, target_entry_id, common_ancestor_id, entry_count: 1 },
    )?;
    play.leaf = Some(behind.clone());
    let summary = play.entry("branch_summary", &[("fromId", json!("x")), ("summary", json!("short"))]);
    play.write(std::slice::from_ref(&summary))?;
    play.announce(&summary, Some("a"))?;
    Ok(summary)
}

fn answers(play: &mut Play, text: &str) -> Result<Arc<Entry>, Violation> {
    let message =
        json!({"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop", "timestamp": 1});
    let entry = play.entry("message", &[("message", message)]);
    play.write(std::slice::from_ref(&entry))?;
    play.announce(&entry, None)?;
    Ok(entry)
}

#[test]
fn navigations_without_a_fault_pass() -> Result<(), Violation> {
    let mut play = Play::new();
    let (one, two) = moved(&mut play)?;
    play.emit(Some("a"), changed(Some(&two.id), Some(&one.id), None))?;
    ends(&mut play)?;
    begins(&mut play, "b", "navigation")?;
    moves(&mut play, "b", &two.id)?;
    play.emit(Some("b"), changed(Some(&one.id), Some(&two.id), None))?;
    ends(&mut play)?;
    let mut play = Play::new();
    let (one, two) = (answers(&mut play, "one")?, answers(&mut play, "two")?);
    let summary = summarized(&mut play, &one.id, &one.id)?;
    play.emit(Some("a"), changed(Some(&two.id), Some(&summary.id), Some(&summary.id)))?;
    play.publish(idle())?;
    let (summary_entry_id, outcome) = (Some(summary.id.clone()), Outcome::Completed);
    play.emit(Some("a"), Event::BranchSummaryEnd { outcome, summary_entry_id, error: None, error_message: None })?;
    play.settles()?;
    play.rests()
}

/// A fault for each rule.
const FAULTS: &[(Rule, &str, Fault)] = &[
    (Rule::LeafIsNamed, "another leaf is named", |play| {
        let (_, two) = moved(play)?;
        play.emit(Some("a"), changed(Some(&two.id), Some(&two.id), None))
    }),
    (Rule::LeafIsNamed, "another leaf before is named", |play| {
        let (one, _) = moved(play)?;
        play.emit(Some("a"), changed(Some(&one.id), Some(&one.id), None))
    }),
    (Rule::StartWasAsked, "no request asks for a navigation", |play| {
        play.effect(Effect::Record(vec![Unfinished { kind: "navigation".to_owned(), ..unfinished("a") }]))?;
        play.publish(moving(Some("a")))?;
        play.status(moving(None))
    }),
    (Rule::SummaryAtTarget, "the summary stands on the branch that is left", |play| {
        let (one, two) = (answers(play, "one")?, answers(play, "two")?);
        let summary = summarized(play, &two.id, &one.id)?;
        play.emit(Some("a"), changed(Some(&two.id), Some(&summary.id), Some(&summary.id)))
    }),
    (Rule::CancelledWritesNothing, "a cancelled summary is in the file", |play| {
        let one = answers(play, "one")?;
        summarized(play, &one.id, &one.id)?;
        play.publish(idle())?;
        let (outcome, summary_entry_id) = (Outcome::Cancelled, None);
        play.emit(Some("a"), Event::BranchSummaryEnd { outcome, summary_entry_id, error: None, error_message: None })
    }),
    (Rule::EveryStartEnds, "a summary of a branch has no end", |play| {
        let one = answers(play, "one")?;
        summarized(play, &one.id, &one.id)?;
        play.rests()
    }),
    (Rule::ThereAndBack, "a pin is gone at the way back", |play| {
        let one = play.append("one")?;
        let fields = [("summary", json!("s")), ("tokensBefore", json!(1)), ("firstKeptEntryId", json!(one.id))];
        let compaction = play.entry("compaction", &fields);
        play.write(std::slice::from_ref(&compaction))?;
        play.announce(&compaction, None)?;
        let data = json!({"compactionEntryId": compaction.id});
        let undo = play.entry("custom", &[("customType", json!("abridged.undo")), ("data", data)]);
        play.write(std::slice::from_ref(&undo))?;
        play.announce(&undo, None)?;
        play.done()?;
        begins(play, "a", "navigation")?;
        moves(play, "a", &one.id)?;
        play.emit(Some("a"), changed(Some(&compaction.id), Some(&one.id), None))?;
        ends(play)?;
        begins(play, "b", "navigation")?;
        moves(play, "b", &compaction.id)?;
        play.emit(Some("b"), changed(Some(&one.id), Some(&compaction.id), None))?;
        play.done()
    }),
    (Rule::ResultAtItsCall, "a result stands where its call is not", |play| {
        let one = answers(play, "one")?;
        let call = json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {}});
        let calls = json!({"role": "assistant", "content": [call], "stopReason": "toolUse", "timestamp": 1});
        let calls = play.entry("message", &[("message", calls)]);
        play.write(std::slice::from_ref(&calls))?;
        play.announce(&calls, None)?;
        begins(play, "a", "navigation")?;
        moves(play, "a", &one.id)?;
        let result = json!({"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": []});
        let request = play.send("session/append", json!({"messages": [result]}));
        let result = play.entry("message", &[("message", result)]);
        play.write(std::slice::from_ref(&result))?;
        play.answer(request, &appended(&result))
    }),
    (Rule::OtherBranchesStayOut, "an entry of another branch is in the context", |play| {
        let one = answers(play, "one")?;
        answers(play, "two")?;
        let before = play.core();
        play.leaf = Some(one.id.clone());
        let marker = play.entry("custom", &[("customType", json!("abridged.leaf")), ("data", json!({}))]);
        play.write(std::slice::from_ref(&marker))?;
        play.observer.file.look(&play.disk)?;
        contexts::sound(&before, before.state().path(), &play.observer.file)
    }),
    (Rule::LeafSurvives, "the session is opened at another leaf", |play| {
        let before = play.core();
        play.append("x")?;
        play.crash();
        play.opens()?;
        play.observer.reopened(&before, &play.disk)
    }),
];

#[test]
fn each_rule_of_navigations_can_fail() {
    for (rule, fault, play) in FAULTS {
        let found = play(&mut Play::new()).map_err(|violation| violation.rule);
        assert_eq!(found, Err(*rule), "{fault}");
    }
}
