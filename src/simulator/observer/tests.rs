//! Each rule fails: a stream of inputs and effects made by hand breaks it. A stream without a fault passes.

mod ahead;
mod hooks;
mod inside;
mod play;
mod promised;
mod recovered;
mod tree;
mod trusted;

use super::*;
use crate::{
    ask::{purpose::Purpose, spent::Spent},
    conversation::{
        entry::{Entry, raw},
        spending::Trigger,
    },
    ids::ModelRef,
    log::Inside,
    models::learned::{Address, LearnedWindow, Server, WindowOrigin},
    protocol::{
        events::Event,
        notices::{NoticeCode, Warning},
        types::{Outcome, Usage},
    },
    session::{
        core::command::Command,
        effects::{Effects, Turning},
        operations::idle,
    },
    wire::outbox::About,
};
use play::*;
use serde_json::json;

#[test]
fn a_life_without_a_fault_passes() -> Result<(), Violation> {
    let mut play = Play::new();
    play.append("one")?;
    play.done()?;
    play.append("two")?;
    play.started("a")?;
    play.done()?;
    play.append("three")?;
    let compaction = play.written("a")?;
    play.emit(Some("a"), end(Outcome::Completed, Some(result(&compaction, 100))))?;
    play.status(idle())?;
    let notice = Event::from(Warning::new(NoticeCode::QualityMayDegrade, "x", "y"));
    play.emit(Some("a"), notice)?;
    play.emit(None, Event::Settled { aborted: false })?;
    play.effect(Effect::Record(Vec::new()))?;
    play.started("b")?;
    let cancel = play.cancel(json!({}));
    play.publish(idle())?;
    play.answer(cancel, &json!({"cancelled": [{"operationId": "b"}]}))?;
    play.publish(idle())?;
    play.emit(Some("b"), end(Outcome::Cancelled, None))?;
    play.settles()?;
    play.done()?;
    play.started("c")?;
    play.crash();
    play.opens()?;
    play.emit(Some("c"), end(Outcome::Failed, None))?;
    play.effect(Effect::Record(Vec::new()))?;
    let core = play.core();
    play.observer.reopened(&core, &play.disk)?;
    play.append("four")?;
    play.rests()
}

type Fault = fn(&mut Play) -> Verdict;

/// A fault for each rule.
const FAULTS: &[(Rule, &str, Fault)] = &[
    (Rule::AnsweredOnce, "a second answer", |play| {
        let request = play.send("session/usage", json!({}));
        play.answer(request, &json!({}))?;
        play.answer(request, &json!({}))
    }),
    (Rule::Answered, "no answer", |play| {
        play.send("session/usage", json!({}));
        play.rests()
    }),
    (Rule::NoDefect, "an internal error", |play| {
        let request = play.send("session/usage", json!({}));
        play.effect(Effect::Answer(request, Answer::Failed(Failure::Internal("x".to_owned()))))
    }),
    (Rule::AnswerIntroduces, "an append is announced before its answer", |play| {
        let request = play.send("session/append", json!({"messages": [{"role": "user", "content": "x"}]}));
        let entry = play.says("x");
        play.write(std::slice::from_ref(&entry))?;
        play.announce(&entry, None)?;
        play.answer(request, &appended(&entry))
    }),
    (Rule::AnswerIntroduces, "the status names an operation that only its start introduces", |play| {
        play.send("session/compact", json!({"wait": true}));
        play.effect(Effect::Record(vec![unfinished("a")]))?;
        play.publish(compacting(Some("a")))?;
        play.status(compacting(Some("a")))
    }),
    (Rule::AnswerIntroduces, "an event of an operation that never started", |play| {
        play.emit(Some("a"), Event::UsageUpdated { usage: usage(1) })
    }),
    (Rule::StartWasAsked, "a manual compaction without a request", |play| {
        play.effect(Effect::Record(vec![unfinished("a")]))?;
        play.publish(compacting(Some("a")))?;
        play.status(compacting(None))?;
        play.emit(Some("a"), start())
    }),
    (Rule::RequestFits, "a request over its window is answered", |play| {
        let request = play.send("session/context", json!({"format": "anthropic"}));
        play.answer(request, &json!({"body": {}, "usage": usage(1_001)}))
    }),
    (Rule::NextRuns, "an append names an operation that does not start", |play| {
        let request = play.send("session/append", json!({"messages": [{"role": "user", "content": "x"}]}));
        let entry = play.says("x");
        play.write(std::slice::from_ref(&entry))?;
        play.answer(request, &appended_before(&entry, "a", 900))?;
        play.announce(&entry, None)?;
        play.done()
    }),
    (Rule::NextIsDue, "an append names an operation below the threshold", |play| {
        let request = play.send("session/append", json!({"messages": [{"role": "user", "content": "x"}]}));
        let entry = play.says("x");
        play.write(std::slice::from_ref(&entry))?;
        play.answer(request, &appended_before(&entry, "a", 800))
    }),
    (Rule::WaitingAnswer, "the end is answered before it is sent", |play| {
        let request = play.send("session/compact", json!({"wait": true}));
        play.effect(Effect::Record(vec![unfinished("a")]))?;
        play.publish(compacting(Some("a")))?;
        play.status(compacting(None))?;
        play.emit(Some("a"), start())?;
        play.answer(request, &json!({"operationId": "a", "outcome": "completed"}))
    }),
    (Rule::HeldContext, "a context that waits is answered during a compaction", |play| {
        play.started("a")?;
        let request = play.send("session/context", json!({"wait": true}));
        play.answer(request, &json!({"messages": [], "entryIds": []}))
    }),
    (Rule::HeldContext, "a context waits for no operation", |play| {
        play.send("session/context", json!({"wait": true}));
        play.observer.turns.after_input(0, 1, &play.observer.operations)
    }),
    (Rule::HeldContext, "a context waits behind the turn that ends a cancelled plan", |play| {
        play.plans("a", &[])?.request();
        play.observer.turns.log_is_back(false);
        play.observer.turns.after_input(0, 1, &play.observer.operations)?;
        play.observer.feeds(&Input::Turn);
        play.observer.turns.after_input(0, 1, &play.observer.operations)
    }),
    (Rule::HeldContext, "a context waits for a plan that was cancelled while the log was here", |play| {
        play.plans("a", &[])?.request();
        play.observer.turns.after_input(0, 1, &play.observer.operations)
    }),
    (Rule::RefusedWhileBusy, "an undo during a compaction", |play| {
        play.started("a")?;
        let request = play.send("session/undo_compaction", json!({}));
        play.answer(request, &json!({}))
    }),
    (Rule::RefusedWhileBusy, "a prune during the plan of a compaction", |play| {
        play.plans("a", &[])?;
        let request = play.send("session/prune", json!({}));
        play.answer(request, &json!({"entryIds": []}))
    }),
    (Rule::CancelledAnswer, "an append that was cancelled in the queue is written", |play| {
        let request = play.reaches("session/append", json!({"messages": [{"role": "user", "content": "x"}]}));
        play.observer.feeds(&Input::RequestCancelled(request));
        let entry = play.says("x");
        play.write(std::slice::from_ref(&entry))?;
        play.answer(request, &appended(&entry))
    }),
    (Rule::CancelledAnswer, "a cancelled request is refused for another reason", |play| {
        let request = play.reaches("session/prune", json!({}));
        play.observer.feeds(&Input::RequestCancelled(request));
        let failure = Failure::params("protectTokens", "no number");
        play.effect(Effect::Answer(request, Answer::Failed(failure)))
    }),
    (Rule::EndsWhatRuns, "an operation goes on in a closed session", |play| {
        play.started("a")?;
        play.reaches("session/close", json!({}));
        play.done()
    }),
    (Rule::EndsWhatRuns, "a plan goes on in a stopped session", |play| {
        play.plans("a", &[])?;
        play.observer.feeds(&Input::Stop);
        play.done()
    }),
    (Rule::LostLogEnds, "an operation goes on without a log", |play| {
        play.started("a")?;
        play.loses_log();
        play.done()
    }),
    (Rule::LostLogEnds, "a lost log is given work", |play| {
        play.loses_log();
        let entry = play.says("x");
        play.write(&[entry])
    }),
    (Rule::LostLogEnds, "the session stays open", |play| {
        play.loses_log();
        play.rests()
    }),
    (Rule::UsageFollowsEntries, "the usage of an append is not sent", |play| {
        play.done()?;
        let request = play.send("session/append", json!({"messages": [{"role": "user", "content": "x"}]}));
        let entry = play.says("x");
        play.write(std::slice::from_ref(&entry))?;
        play.answer(request, &json!({"entryIds": [entry.id], "leafEntryId": entry.id, "usage": usage(7)}))?;
        play.announce(&entry, None)?;
        play.done()
    }),
    (Rule::UsageFollowsEntries, "the usage of an append precedes its entry", |play| {
        let request = play.send("session/append", json!({"messages": [{"role": "user", "content": "x"}]}));
        let entry = play.says("x");
        play.write(std::slice::from_ref(&entry))?;
        play.answer(request, &json!({"entryIds": [entry.id], "leafEntryId": entry.id, "usage": usage(7)}))?;
        play.emit(None, Event::UsageUpdated { usage: usage(7) })?;
        play.announce(&entry, None)
    }),
    (Rule::AnswersSeeAppends, "a read overtakes an append", |play| {
        play.disk.index_at_once(1 << 20);
        play.append("x")?;
        play.done()?;
        play.send("session/append", json!({"messages": [{"role": "user", "content": "x"}]}));
        let request = play.send("session/usage", json!({}));
        play.answer(request, &json!({}))
    }),
    (Rule::AnswersSeeAppends, "a context that waits and came behind the index overtakes an append", |play| {
        play.disk.index_at_once(1 << 20);
        play.append("x")?;
        play.done()?;
        play.send("session/append", json!({"messages": [{"role": "user", "content": "x"}]}));
        let request = play.reaches("session/context", json!({"wait": true}));
        play.answer(request, &json!({"messages": [], "entryIds": []}))
    }),
    (Rule::StatusAnswer, "a status that was not published", |play| {
        let request = play.send("session/status", json!({}));
        play.answer(request, &json!({"session": {"status": {"type": "compacting"}}, "operations": []}))
    }),
    (Rule::StatusAnswer, "an operation that does not run", |play| {
        let request = play.send("session/status", json!({}));
        let operations = json!([{"operationId": "a"}]);
        play.answer(request, &json!({"session": {"status": {"type": "idle"}}, "operations": operations}))
    }),
    (Rule::AppendOrder, "a later append is written first", |play| {
        let params = json!({"messages": [{"role": "user", "content": "x"}]});
        let first = play.send("session/append", params.clone());
        let second = play.send("session/append", params);
        let entries = [play.says("x"), play.says("x")];
        play.write(&entries)?;
        play.answer(second, &appended(&entries[0]))?;
        play.answer(first, &appended(&entries[1]))
    }),
    (Rule::ExpectedLeaf, "a message came behind the expected leaf", |play| {
        let first = play.append("x")?;
        play.append("y")?;
        let messages = json!([{"role": "user", "content": "z"}]);
        let request = play.send("session/append", json!({"messages": messages, "expectedLeafId": first.id}));
        let entry = play.says("z");
        play.write(std::slice::from_ref(&entry))?;
        play.answer(request, &appended(&entry))
    }),
    (Rule::ExpectedLeaf, "a compaction covers a message behind the expected leaf", |play| {
        let entries = [play.append("x")?, play.append("y")?];
        play.plans("a", &entries)?;
        let request = play.send("session/compact", json!({"expectedLeafId": entries[0].id}));
        play.answer(request, &json!({"operationId": "a"}))
    }),
    (Rule::MessageKept, "another text is written", |play| {
        let request = play.send("session/append", json!({"messages": [{"role": "user", "content": "x"}]}));
        let entry = play.says("y");
        play.write(std::slice::from_ref(&entry))?;
        play.answer(request, &appended(&entry))
    }),
    (Rule::AnsweredIsDurable, "an append is answered before its write", |play| {
        let request = play.send("session/append", json!({"messages": [{"role": "user", "content": "x"}]}));
        let entry = play.says("x");
        play.answer(request, &appended(&entry))
    }),
    (Rule::AnnouncedIsDurable, "an entry is announced before its write", |play| {
        let entry = play.says("x");
        play.announce(&entry, None)
    }),
    (Rule::AnnouncedIsDurable, "an entry is announced with another line", |play| {
        let entry = play.says("x");
        play.write(std::slice::from_ref(&entry))?;
        let sent = crate::protocol::types::Entry(raw(&json!({"type": "message", "id": entry.id})));
        let about = About { entry: Some(entry.id.clone()), ..About::default() };
        play.effect(Effect::Emit(about, Event::EntryAppended { entry: Some(sent), entry_type: None }))
    }),
    (Rule::AnnouncedOnce, "an entry is announced twice", |play| {
        let entry = play.append("x")?;
        play.announce(&entry, None)
    }),
    (Rule::AnnouncedInOrder, "an entry is left out", |play| {
        let entries = [play.says("x"), play.says("y")];
        play.write(&entries)?;
        play.announce(&entries[1], None)
    }),
    (Rule::AnnouncedInOrder, "the last entry is never announced", |play| {
        let entry = play.says("x");
        play.write(&[entry])?;
        play.rests()
    }),
    (Rule::Chained, "an entry follows an earlier one", |play| {
        let first = play.append("x")?;
        play.append("y")?;
        play.leaf = Some(first.id.clone());
        play.append("z").map(drop)
    }),
    (Rule::BytesStay, "a byte is another one", |play| {
        play.append("x")?;
        play.observer.file.look(&play.disk)?;
        let changed = String::from_utf8_lossy(&play.disk.bytes()).replace("\"x\"", "\"y\"");
        play.disk = Disk::of(changed.into_bytes());
        play.rests()
    }),
    (Rule::StartedOnce, "a second start", |play| {
        play.started("a")?;
        play.emit(Some("a"), start())
    }),
    (Rule::EndedOnce, "a second end", |play| {
        play.started("a")?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))?;
        play.emit(Some("a"), end(Outcome::Failed, None))
    }),
    (Rule::EveryStartEnds, "no end", |play| {
        play.started("a")?;
        play.rests()
    }),
    (Rule::EveryStartEnds, "no end after a crash", |play| {
        play.started("a")?;
        play.crash();
        play.opens()?;
        play.done()
    }),
    (Rule::InnerEndsFirst, "the outer operation of a crash ends first", |play| {
        play.log.register().expect("a lock").record(vec![unfinished("a"), unfinished("b")]);
        play.crash();
        play.opens()?;
        play.emit(Some("a"), end(Outcome::Failed, None))
    }),
    (Rule::OneCompaction, "a second compaction", |play| {
        play.started("a")?;
        let request = play.send("session/compact", json!({}));
        play.effect(Effect::Record(vec![unfinished("a"), unfinished("b")]))?;
        play.answer(request, &json!({"operationId": "b"}))?;
        play.publish(compacting(Some("b")))?;
        play.emit(Some("b"), start())
    }),
    (Rule::NothingAfterTheEnd, "progress after the end", |play| {
        play.started("a")?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))?;
        play.settles()?;
        play.emit(Some("a"), Event::UsageUpdated { usage: usage(1) })
    }),
    (Rule::RetriesEnd, "an end during a retry", |play| {
        play.started("a")?;
        play.records(vec![Inside::Retry { retry: "history".to_owned(), attempt: 1 }])?;
        play.emit(Some("a"), retry())?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))
    }),
    (Rule::RetriesEnd, "the end of a retry that did not start", |play| {
        play.started("a")?;
        play.emit(Some("a"), retry_end(true))
    }),
    (Rule::StartIsRecorded, "a start that the lock does not list", |play| {
        let request = play.send("session/compact", json!({}));
        play.publish(compacting(Some("a")))?;
        play.answer(request, &json!({"operationId": "a"}))?;
        play.status(compacting(Some("a")))?;
        play.emit(Some("a"), start())
    }),
    (Rule::StartIsRecorded, "the record forgets an operation", |play| {
        play.started("a")?;
        play.effect(Effect::Record(Vec::new()))
    }),
    (Rule::RecordEmpties, "an operation is left in the lock", |play| {
        play.started("a")?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))?;
        play.status(idle())?;
        play.emit(None, Event::Settled { aborted: false })?;
        play.rests()
    }),
    (Rule::JobsStop, "a job goes on after the end", |play| {
        play.plans("a", &[])?;
        play.started("a")?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))?;
        play.settles()?;
        play.done()
    }),
    (Rule::JobsStop, "the plan of a cancelled request goes on", |play| {
        play.send("session/compact", json!({}));
        play.plans("a", &[])?;
        let cancel = play.cancel(json!({}));
        play.answer(cancel, &json!({"cancelled": [{"operationId": "a"}]}))?;
        play.done()
    }),
    (Rule::RecordEmpties, "a closed session leaves an ended operation in the lock", |play| {
        play.started("a")?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))?;
        play.status(idle())?;
        play.emit(None, Event::Settled { aborted: false })?;
        play.opens()
    }),
    (Rule::EndFollowsEntry, "the end precedes the announcement", |play| {
        play.started("a")?;
        let compaction = play.compaction();
        play.write(std::slice::from_ref(&compaction))?;
        play.emit(Some("a"), Event::UsageUpdated { usage: usage(100) })?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Completed, Some(result(&compaction, 100))))
    }),
    (Rule::EndFollowsEntry, "the usage precedes the announcement", |play| {
        play.started("a")?;
        let compaction = play.compaction();
        play.write(std::slice::from_ref(&compaction))?;
        play.emit(Some("a"), Event::UsageUpdated { usage: usage(100) })?;
        play.announce(&compaction, Some("a"))?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Completed, Some(result(&compaction, 100))))
    }),
    (Rule::StatusBeforeStart, "the status flips behind the start", |play| {
        let request = play.send("session/compact", json!({}));
        play.effect(Effect::Record(vec![unfinished("a")]))?;
        play.answer(request, &json!({"operationId": "a"}))?;
        play.emit(Some("a"), start())
    }),
    (Rule::StatusBeforeEnd, "the end is sent while the session is busy", |play| {
        play.started("a")?;
        play.emit(Some("a"), end(Outcome::Failed, None))
    }),
    (Rule::StatusChanges, "a status that is not published", |play| play.status(compacting(None))),
    (Rule::StatusChanges, "a status that did not change", |play| play.status(idle())),
    (Rule::StatusChanges, "a status that is not sent", |play| {
        play.publish(compacting(Some("a")))?;
        play.done()
    }),
    (Rule::OrderAfterEnd, "an answer before it settles", |play| {
        play.started("a")?;
        let request = play.send("session/usage", json!({}));
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))?;
        play.answer(request, &json!({}))
    }),
    (Rule::OrderAfterEnd, "a notice before the status", |play| {
        play.started("a")?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))?;
        let notice = Event::from(Warning::new(NoticeCode::QualityMayDegrade, "x", "y"));
        play.emit(Some("a"), notice)
    }),
    (Rule::SettledOnce, "settled twice", |play| {
        play.started("a")?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))?;
        play.settles()?;
        play.emit(None, Event::Settled { aborted: false })
    }),
    (Rule::SettledOnce, "settled while an operation runs", |play| {
        play.started("a")?;
        play.emit(None, Event::Settled { aborted: false })
    }),
    (Rule::SettledOnce, "never settled", |play| {
        play.started("a")?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))?;
        play.status(idle())?;
        play.done()
    }),
    (Rule::SettledOnce, "never settled behind work that may follow", |play| {
        play.started("a")?;
        let request = play.send("session/context", json!({"wait": true}));
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))?;
        play.status(idle())?;
        play.answer(request, &json!({"messages": [], "entryIds": []}))?;
        play.done()
    }),
    (Rule::NothingBehindSettled, "an operation starts behind it", |play| {
        play.started("a")?;
        let request = play.send("session/append", json!({"messages": [{"role": "user", "content": "x"}]}));
        let entry = play.says("x");
        play.write(std::slice::from_ref(&entry))?;
        play.answer(request, &appended_before(&entry, "b", 900))?;
        play.announce(&entry, None)?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Failed, None))?;
        play.settles()?;
        play.effect(Effect::Record(vec![unfinished("b")]))?;
        play.publish(compacting(Some("b")))?;
        play.status(compacting(Some("b")))?;
        play.emit(Some("b"), start())
    }),
    (Rule::IdleAwaitsNoAnswer, "a message waits for its answer", |play| {
        play.append("one")?;
        play.has_turn()?;
        play.plans("a", &[]).map(drop)
    }),
    (Rule::IdleGivesWay, "its plan survives an activity", |play| {
        play.has_turn()?;
        play.plans("a", &[])?;
        let request = play.send("session/activity", json!({}));
        let ticket = Effects::default().ticket(request, Sent::Alone);
        play.observer.feeds(&Input::Command(Command::Activity, ticket));
        play.done()
    }),
    (Rule::IdleHasItsTurn, "it is planned without its turn", |play| {
        play.observer.feeds(&Input::Tick);
        play.plans("a", &[]).map(drop)
    }),
    (Rule::IdleHasItsTurn, "it leaves a turn that it does not have", |play| {
        play.effect(Effect::IdleTurn(Turning::Leave))
    }),
    (Rule::IdleLeavesItsTurn, "it keeps its turn", |play| {
        play.has_turn()?;
        play.rests()
    }),
    (Rule::CancelWaitsForNothing, "another answer comes first", |play| {
        let other = play.send("session/usage", json!({}));
        play.cancel(json!({}));
        play.answer(other, &json!({}))
    }),
    (Rule::CancelWaitsForNothing, "the answer waits for a later input", |play| {
        play.cancel(json!({}));
        play.done()
    }),
    (Rule::CancelNamesAll, "an operation goes on", |play| {
        play.started("a")?;
        let cancel = play.cancel(json!({}));
        play.answer(cancel, &json!({"cancelled": []}))
    }),
    (Rule::CancelNamesAll, "a compaction that waits goes on", |play| {
        play.send("session/compact", json!({}));
        let cancel = play.cancel(json!({}));
        play.answer(cancel, &json!({"cancelled": []}))
    }),
    (Rule::CancelledEnds, "a cancelled operation does not end", |play| {
        play.started("a")?;
        let cancel = play.cancel(json!({"operationId": "a"}));
        play.answer(cancel, &json!({"cancelled": [{"operationId": "a"}]}))?;
        play.done()
    }),
    (Rule::CancelledEnds, "an operation survives its request", |play| {
        let request = play.send("session/compact", json!({"wait": true}));
        play.effect(Effect::Record(vec![unfinished("a")]))?;
        play.publish(compacting(Some("a")))?;
        play.status(compacting(None))?;
        play.emit(Some("a"), start())?;
        play.observer.feeds(&Input::RequestCancelled(request));
        play.done()
    }),
    (Rule::CancelWasAsked, "no request cancels", |play| {
        play.started("a")?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Cancelled, None))
    }),
    (Rule::CancelledWritesNothing, "a cancelled compaction is in the file", |play| {
        play.started("a")?;
        play.written("a")?;
        play.emit(Some("a"), end(Outcome::Cancelled, None))
    }),
    (Rule::ContextValid, "a result without its call", |play| {
        let request = play.send("session/context", json!({}));
        let messages = json!([{"role": "toolResult", "toolCallId": "x", "content": []}]);
        play.answer(request, &json!({"messages": messages, "entryIds": [null]}))
    }),
    (Rule::ContextSurvives, "a message is another one", |play| {
        play.append("x")?;
        play.done()?;
        let changed = String::from_utf8_lossy(&play.disk.bytes()).replace("\"x\"", "\"y\"");
        play.crash();
        play.opens()?;
        let core = Play::core_of(&Disk::of(changed.into_bytes()));
        play.observer.reopened(&core, &play.disk)
    }),
    (Rule::UsageSurvives, "the reopened session counts another size", |play| {
        play.append("x")?;
        play.done()?;
        play.observer.contexts.miscount();
        play.crash();
        play.opens()?;
        let core = play.core();
        play.observer.reopened(&core, &play.disk)
    }),
    (Rule::NoMessageLost, "a message of the user is not in the context", |play| {
        let before = play.core();
        play.append("x")?;
        contexts::sound(&before, before.state().path(), &play.observer.file)
    }),
    (Rule::PinsStay, "a pin is not in the context", |play| {
        let before = play.core();
        let fields = [("customType", json!("abridged.pin")), ("content", json!("x")), ("display", json!(true))];
        let pin = play.entry("custom_message", &fields);
        let carried = json!({"abridged": {}});
        let fields = [("summary", json!("s")), ("tokensBefore", json!(1)), ("preserveData", carried)];
        let gone = play.entry("compaction", &fields);
        play.write(&[pin, gone])?;
        play.observer.file.look(&play.disk)?;
        contexts::sound(&before, before.state().path(), &play.observer.file)
    }),
    (Rule::CoveredUnchanged, "the path that is covered was undone", |play| {
        play.append("x")?;
        let gone = play.says("on another branch");
        play.leaf.clone_from(&gone.parent);
        play.plans("a", &[gone])?;
        play.started("a")?;
        let compaction = play.written("a")?;
        play.emit(Some("a"), end(Outcome::Completed, Some(result(&compaction, 100))))
    }),
    (Rule::CompactionFits, "more is left than the window has", |play| {
        let entry = play.append("x")?;
        play.plans("a", &[entry])?;
        play.started("a")?;
        let compaction = play.written("a")?;
        play.emit(Some("a"), end(Outcome::Completed, Some(result(&compaction, 2_000))))
    }),
    (Rule::CompactionFits, "more is left than the window has for which it was planned again", |play| {
        let entry = play.append("x")?;
        play.plans("a", std::slice::from_ref(&entry))?;
        play.started("a")?;
        let smaller = Usage { context_window: Some(500), ..usage(400) };
        play.emit(Some("a"), Event::UsageUpdated { usage: smaller })?;
        play.plans("a", &[entry])?;
        let compaction = play.written("a")?;
        play.emit(Some("a"), end(Outcome::Completed, Some(result(&compaction, 900))))
    }),
    (Rule::PruningKeepsLimits, "a pruning saves next to nothing", |play| {
        let entry = play.append("x")?;
        play.emit(None, pruned(&entry, 49))
    }),
    (Rule::PruningKeepsLimits, "a pruning takes the newest result", |play| {
        let result =
            json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "content": "x", "timestamp": 1});
        let result = play.entry("message", &[("message", result)]);
        play.write(std::slice::from_ref(&result))?;
        play.announce(&result, None)?;
        play.emit(None, pruned(&result, 50))
    }),
    (Rule::CostsKept, "a cost is not in the file", |play| {
        let model = ModelRef { provider: "p".to_owned(), id: "m".to_owned() };
        let spent = Spent {
            purpose: Purpose::Compaction,
            model,
            trigger: Trigger::Threshold,
            usage: Default::default(),
            estimated: false,
            sent: 0,
        };
        play.observer.feeds(&Input::Reported(
            "a".into(),
            Progress::Summary(Step::Request(Purpose::Compaction, Update::Spent(spent))),
        ));
        play.rests()
    }),
    (Rule::QueuesBounded, "a command waits at rest", |play| {
        let mut core = play.core();
        let ticket = Effects::default().ticket(1, Sent::Alone);
        core.on(&moment(), Input::Command(Command::with(|_, _| {}), ticket));
        play.observer.at_rest(&core, &play.disk)
    }),
    (Rule::SaneNumbers, "a window of no tokens", |play| {
        let model = ModelRef { provider: "p".to_owned(), id: "m".to_owned() };
        let server = Server { model, address: Address::Usual };
        play.effect(Effect::Teach(Change::Learned(LearnedWindow::undated(server, 0, WindowOrigin::Refusal))))
    }),
    (Rule::SaneNumbers, "more bytes are shared than there are", |play| play.effect(Effect::Share(1 << 40))),
];

/// A pruning of one entry that nobody asked for.
fn pruned(entry: &Entry, tokens_saved: u64) -> Event {
    let why = "the context was over the threshold; it saves some".to_owned();
    Event::Pruned { entry_ids: vec![entry.id.clone()], tokens_saved, why }
}

#[test]
fn each_rule_can_fail() {
    for (rule, fault, play) in FAULTS {
        let found = play(&mut Play::new()).map_err(|violation| violation.rule);
        assert_eq!(found, Err(*rule), "{fault}");
    }
}
