//! Streams with a recovery that break a rule.

use super::{
    super::{Rule, Verdict, Violation, status::usage::UsageSent},
    Fault,
    play::*,
};
use crate::{
    conversation::entry::Entry,
    ids::OperationId,
    log::Unfinished,
    protocol::{
        errors::Failure,
        events::{Event, ModelChange, Reason, RecoveryAction, RecoveryOutcome, RecoveryReason, Strategy},
        types::{Outcome, Status, StatusKind},
    },
    session::{
        effects::{Answer, Effect},
        operations::idle,
    },
};
use serde_json::{Value, json};
use std::sync::Arc;

const TOO_LONG: &str = "prompt is too long";

fn recovery(operation: &str) -> Unfinished {
    Unfinished { kind: "recovery".to_owned(), reason: "overflow".to_owned(), ..unfinished(operation) }
}

fn recovering(operation: &str) -> Status {
    Status {
        kind: StatusKind::Compacting,
        operation_id: Some(OperationId::from(operation)),
        reason: Some("overflow".to_owned()),
    }
}

fn compaction_start(reason: Reason, tokens_before: u64, will_retry: bool) -> Event {
    Event::CompactionStart {
        reason,
        strategy: Strategy::ContextFull,
        tokens_before,
        context_window: 1_000,
        threshold_tokens: 800,
        will_retry,
    }
}

fn compaction_end(reason: Reason, outcome: Outcome, left: Option<(&Entry, u64)>, will_retry: bool) -> Event {
    let mut end = end(outcome, left.map(|(entry, tokens)| result(entry, tokens)));
    if let Event::CompactionEnd { reason: of, will_retry: retries, usage, .. } = &mut end {
        (*of, *retries) = (reason, will_retry);
        usage.context_tokens = if outcome == Outcome::Completed { 100 } else { 900 };
    }
    end
}

fn recovery_end(outcome: RecoveryOutcome) -> Event {
    let will_retry = outcome == RecoveryOutcome::Recovered;
    Event::RecoveryEnd { outcome, will_retry, error: None, error_message: None }
}

impl Play {
    /// An append of an answer that failed, whose `next` names a recovery.
    fn fails(&mut self, next: &str, error: &str) -> Result<Arc<Entry>, Violation> {
        let message = json!({"role": "assistant", "content": [], "stopReason": "error", "errorMessage": error});
        let request = self.send("session/append", json!({"messages": [message]}));
        let entry = self.entry("message", &[("message", message)]);
        self.write(std::slice::from_ref(&entry))?;
        self.answer(
            request,
            &json!({"entryIds": [entry.id], "leafEntryId": entry.id, "usage": usage(900),
                "next": {"type": "maintenance", "operationId": next, "reason": "overflow", "willRetry": true}}),
        )?;
        self.announce(&entry, None)?;
        // The edit is announced in a later input.
        self.observer.usage = UsageSent::default();
        Ok(entry)
    }

    /// The edit that removes an answer, written and announced.
    fn removes(&mut self, answer: &Entry) -> Result<Arc<Entry>, Violation> {
        let edit = self.entry("context_edit", &[("targetId", json!(answer.id)), ("replacement", Value::Null)]);
        self.write(std::slice::from_ref(&edit))?;
        self.announce(&edit, None)?;
        Ok(edit)
    }

    /// The start of a recovery from an answer.
    fn recovers(&mut self, operation: &str, answer: &Entry, action: RecoveryAction) -> Verdict {
        self.effect(Effect::Record(vec![recovery(operation)]))?;
        self.publish(recovering(operation))?;
        self.status(recovering(operation))?;
        let removed_entry_id = Some(answer.id.clone());
        self.emit(Some(operation), Event::RecoveryStart { reason: RecoveryReason::Overflow, removed_entry_id, action })
    }

    /// A failed answer, its edit and the start of the recovery.
    fn fails_and_recovers(&mut self, operation: &str, action: RecoveryAction) -> Verdict {
        let answer = self.fails(operation, TOO_LONG)?;
        self.removes(&answer)?;
        self.recovers(operation, &answer, action)
    }

    /// The start of the compaction of a recovery.
    fn compacts_inside(&mut self, operation: &str) -> Verdict {
        self.effect(Effect::Record(vec![recovery(operation), unfinished(operation)]))?;
        self.publish(recovering(operation))?;
        self.emit(Some(operation), compaction_start(Reason::Overflow, 900, true))
    }

    /// The write and the end of the compaction of a recovery.
    fn compacted_inside(&mut self, operation: &str, tokens_after: u64) -> Verdict {
        self.compacted_from(operation, 500, tokens_after)
    }

    /// A compaction of a context that was refused at this size.
    fn compacted_from(&mut self, operation: &str, tokens_before: u64, tokens_after: u64) -> Verdict {
        let entry = self.compaction();
        self.write(std::slice::from_ref(&entry))?;
        self.announce(&entry, Some(operation))?;
        self.emit(Some(operation), Event::UsageUpdated { usage: usage(100) })?;
        self.publish(recovering(operation))?;
        let left = Some((&*entry, tokens_after));
        let mut end = compaction_end(Reason::Overflow, Outcome::Completed, left, true);
        if let Event::CompactionEnd { result: Some(result), .. } = &mut end {
            result.tokens_before = tokens_before;
        }
        self.emit(Some(operation), end)
    }

    fn recovery_ends(&mut self, operation: &str, outcome: RecoveryOutcome) -> Verdict {
        self.publish(idle())?;
        self.emit(Some(operation), recovery_end(outcome))?;
        self.settles()
    }

    /// A recovery whose compaction is skipped.
    fn recovery_fails(&mut self, operation: &str) -> Verdict {
        self.fails_and_recovers(operation, RecoveryAction::Compact)?;
        self.compacts_inside(operation)?;
        self.publish(recovering(operation))?;
        self.emit(Some(operation), compaction_end(Reason::Overflow, Outcome::Skipped, None, false))?;
        self.recovery_ends(operation, RecoveryOutcome::Failed)
    }

    /// A compaction by the threshold that is skipped, as an append names it.
    fn compaction_is_skipped(&mut self, operation: &str) -> Verdict {
        let message = json!({"role": "toolResult", "toolCallId": "x", "content": "y"});
        let request = self.send("session/append", json!({"messages": [message]}));
        let entry = self.entry("message", &[("message", message)]);
        self.write(std::slice::from_ref(&entry))?;
        self.answer(request, &appended_before(&entry, operation, 900))?;
        self.announce(&entry, None)?;
        self.effect(Effect::Record(vec![unfinished(operation)]))?;
        self.publish(compacting(Some(operation)))?;
        self.status(compacting(Some(operation)))?;
        self.emit(Some(operation), compaction_start(Reason::Threshold, 900, false))?;
        self.publish(idle())?;
        self.emit(Some(operation), compaction_end(Reason::Threshold, Outcome::Skipped, None, false))?;
        self.settles()
    }

    fn asks_for_context(&mut self, answer: Answer) -> Verdict {
        let request = self.send("session/context", json!({"wait": true}));
        self.effect(Effect::Answer(request, answer))
    }

    fn given(&mut self) -> Verdict {
        self.asks_for_context(Answer::ok(&json!({"messages": [], "entryIds": []})))
    }
}

fn refused() -> Answer {
    let floor = crate::compaction::ladder::Floor { system: 0, tools: 0, pins: 0, latest_turn: 1, window: 1 };
    Answer::Failed(Failure::OverWindow { floor, why: "x".to_owned() })
}

#[test]
fn a_recovery_without_a_fault_passes() -> Result<(), Violation> {
    let mut play = Play::new();
    play.append("one")?;
    play.done()?;
    play.given()?;
    play.done()?;
    play.fails_and_recovers("a", RecoveryAction::Compact)?;
    play.compacts_inside("a")?;
    play.compacted_inside("a", 100)?;
    play.recovery_ends("a", RecoveryOutcome::Recovered)?;
    play.given()?;
    play.append("two")?;
    play.recovery_fails("b")?;
    play.asks_for_context(refused())?;
    // Both ends are due in the life after a crash, that of the compaction first.
    play.append("three")?;
    play.fails_and_recovers("c", RecoveryAction::Compact)?;
    play.compacts_inside("c")?;
    play.crash();
    play.opens()?;
    play.emit(Some("c"), compaction_end(Reason::Overflow, Outcome::Failed, None, false))?;
    play.emit(Some("c"), recovery_end(RecoveryOutcome::Failed))?;
    play.effect(Effect::Record(Vec::new()))?;
    play.done()
}

/// A fault for each rule.
const FAULTS: &[(Rule, &str, Fault)] = &[
    (Rule::UnreadStays, "the older of two messages in a row is summarized", |play| {
        play.append("one")?;
        play.append("two")?;
        play.fails_and_recovers("a", RecoveryAction::Compact)?;
        play.compacts_inside("a")?;
        play.compacted_from("a", 600, 100)
    }),
    (Rule::RecoveryFollowsEdit, "a recovery starts before its edit is announced", |play| {
        let answer = play.fails("a", TOO_LONG)?;
        let edit = play.entry("context_edit", &[("targetId", json!(answer.id)), ("replacement", Value::Null)]);
        play.write(&[edit])?;
        play.recovers("a", &answer, RecoveryAction::Compact)
    }),
    (Rule::RecoveryFollowsEdit, "a recovery compacts a context with its answer", |play| {
        let answer = play.fails("a", TOO_LONG)?;
        play.recovers("a", &answer, RecoveryAction::Compact)?;
        play.compacts_inside("a")
    }),
    (Rule::RecoveryWasNeeded, "a rate limit that mentions tokens", |play| {
        let answer = play.fails("a", "429: too many tokens per minute")?;
        play.removes(&answer)?;
        play.recovers("a", &answer, RecoveryAction::Compact)
    }),
    (Rule::NextRuns, "a recovery that an append names does not start behind its write", |play| {
        let answer = play.fails("a", TOO_LONG)?;
        play.removes(&answer)?;
        play.done()
    }),
    (Rule::StartWasAsked, "a recovery that no append names", |play| {
        play.effect(Effect::Record(vec![recovery("a")]))?;
        play.publish(recovering("a"))?;
        play.status(Status { operation_id: None, ..recovering("a") })?;
        let (reason, action) = (RecoveryReason::Overflow, RecoveryAction::Retry);
        play.emit(Some("a"), Event::RecoveryStart { reason, removed_entry_id: None, action })
    }),
    (Rule::OneCompaction, "a recovery starts during a compaction", |play| {
        let answer = play.fails("b", TOO_LONG)?;
        play.started("a")?;
        play.removes(&answer)?;
        play.effect(Effect::Record(vec![unfinished("a"), recovery("b")]))?;
        play.emit(
            Some("b"),
            Event::RecoveryStart {
                reason: RecoveryReason::Overflow,
                removed_entry_id: Some(answer.id.clone()),
                action: RecoveryAction::Retry,
            },
        )
    }),
    (Rule::StartedOnce, "a recovery compacts twice", |play| {
        play.fails_and_recovers("a", RecoveryAction::Compact)?;
        play.compacts_inside("a")?;
        play.compacted_inside("a", 100)?;
        play.compacts_inside("a")
    }),
    (Rule::InnerEndsFirst, "a recovery ends before its compaction", |play| {
        play.fails_and_recovers("a", RecoveryAction::Compact)?;
        play.compacts_inside("a")?;
        play.publish(idle())?;
        play.emit(Some("a"), recovery_end(RecoveryOutcome::Failed))
    }),
    (Rule::EndedOnce, "a recovery ends twice", |play| {
        play.recovery_fails("a")?;
        play.emit(Some("a"), recovery_end(RecoveryOutcome::Failed))
    }),
    (Rule::EveryStartEnds, "a recovery never ends", |play| {
        play.fails_and_recovers("a", RecoveryAction::Retry)?;
        play.rests()
    }),
    (Rule::StartIsRecorded, "the lock lists the recovery and not its compaction", |play| {
        play.fails_and_recovers("a", RecoveryAction::Compact)?;
        play.emit(Some("a"), compaction_start(Reason::Overflow, 900, true))
    }),
    (Rule::HeldContext, "a context in a provider's format is answered during a recovery", |play| {
        play.fails_and_recovers("a", RecoveryAction::Compact)?;
        let request = play.send("session/context", json!({"format": "anthropic"}));
        play.answer(request, &json!({"body": {}, "usage": usage(1)}))
    }),
    (Rule::OrderAfterEnd, "a context that waits is answered before the session settles", |play| {
        play.fails_and_recovers("a", RecoveryAction::Retry)?;
        play.publish(idle())?;
        play.emit(Some("a"), recovery_end(RecoveryOutcome::Recovered))?;
        play.given()
    }),
    (Rule::RecoveryAgrees, "a recovery has recovered, and its compaction was skipped", |play| {
        play.fails_and_recovers("a", RecoveryAction::Compact)?;
        play.compacts_inside("a")?;
        play.publish(recovering("a"))?;
        play.emit(Some("a"), compaction_end(Reason::Overflow, Outcome::Skipped, None, false))?;
        play.publish(idle())?;
        play.emit(Some("a"), recovery_end(RecoveryOutcome::Recovered))
    }),
    (Rule::RecoveryAgrees, "a recovery that is to retry compacts", |play| {
        play.fails_and_recovers("a", RecoveryAction::Retry)?;
        play.compacts_inside("a")
    }),
    (Rule::RecoveryAgrees, "a model is promised and not chosen", |play| {
        play.fails_and_recovers("a", RecoveryAction::PromoteModel)?;
        play.publish(idle())?;
        play.emit(Some("a"), recovery_end(RecoveryOutcome::Recovered))
    }),
    (Rule::RecoveryAgrees, "a compaction says that a turn is repeated, and no recovery runs", |play| {
        let request = play.send("session/compact", json!({}));
        play.effect(Effect::Record(vec![unfinished("a")]))?;
        play.publish(compacting(Some("a")))?;
        play.answer(request, &json!({"operationId": "a"}))?;
        play.status(compacting(Some("a")))?;
        play.emit(Some("a"), compaction_start(Reason::Manual, 900, true))
    }),
    (Rule::AttemptsAreBounded, "a third overflow in a row, over a crash", |play| {
        play.append("x")?;
        play.recovery_fails("a")?;
        play.recovery_fails("b")?;
        play.crash();
        play.opens()?;
        play.fails_and_recovers("c", RecoveryAction::Compact)?;
        play.compacts_inside("c")
    }),
    (Rule::AttemptShrinks, "more is left than was rejected", |play| {
        play.fails_and_recovers("a", RecoveryAction::Compact)?;
        play.compacts_inside("a")?;
        play.compacted_inside("a", 901)
    }),
    (Rule::AttemptShrinks, "the second attempt leaves more than 70 %", |play| {
        play.recovery_fails("a")?;
        play.fails_and_recovers("b", RecoveryAction::Compact)?;
        play.compacts_inside("b")?;
        play.compacted_inside("b", 631)
    }),
    (Rule::RecoveredFits, "a context right behind a recovery is refused", |play| {
        play.fails_and_recovers("a", RecoveryAction::Retry)?;
        play.recovery_ends("a", RecoveryOutcome::Recovered)?;
        play.asks_for_context(refused())
    }),
    (Rule::FailedRefuses, "a context right behind a failed recovery is answered", |play| {
        play.recovery_fails("a")?;
        play.given()
    }),
    (Rule::OffIsOff, "automatic maintenance is off", |play| {
        play.append("x")?;
        play.done()?;
        let answer = play.fails("a", TOO_LONG)?;
        play.observer.recoveries.switches_off();
        play.removes(&answer)?;
        play.recovers("a", &answer, RecoveryAction::Compact)?;
        play.compacts_inside("a")
    }),
    (Rule::PromotionFits, "the larger model has no larger window", |play| {
        play.observer.client_switches_models();
        promotes(play)
    }),
    (Rule::PromotionFits, "the client asks a model of its own", promotes),
    (Rule::StaleCompactsNothing, "a compaction is newer than the request that failed", |play| {
        play.append("x")?;
        play.done()?;
        play.given()?;
        play.done()?;
        play.started("m")?;
        let compaction = play.written("m")?;
        play.emit(Some("m"), end(Outcome::Completed, Some(result(&compaction, 100))))?;
        play.settles()?;
        play.done()?;
        play.fails_and_recovers("a", RecoveryAction::Compact)?;
        play.compacts_inside("a")
    }),
    (Rule::NoLoop, "a compaction that was skipped is repeated at once", |play| {
        play.compaction_is_skipped("a")?;
        play.compaction_is_skipped("b")
    }),
    (Rule::RemovedStaysOut, "the context has an answer that was removed", |play| {
        let before = play.append("x")?;
        let core = play.core();
        play.removes(&before)?;
        play.observer.file.look(&play.disk)?;
        super::super::contexts::sound(&core, core.state().path(), &play.observer.file)
    }),
];

/// A change of the model to a larger one, which has the same window.
fn promotes(play: &mut Play) -> Verdict {
    play.append("x")?;
    play.done()?;
    let answer = play.fails("a", TOO_LONG)?;
    play.removes(&answer)?;
    play.recovers("a", &answer, RecoveryAction::PromoteModel)?;
    let to = crate::ids::ModelRef { provider: "p".to_owned(), id: "larger".to_owned() };
    play.emit(Some("a"), Event::ModelChanged { from: None, to, reason: ModelChange::Promotion })?;
    play.recovery_ends("a", RecoveryOutcome::Recovered)?;
    play.done()
}

#[test]
fn messages_whose_ends_take_half_of_a_refused_context_may_be_summarized() -> Result<(), Violation> {
    let mut play = Play::new();
    play.append("one")?;
    play.append("two")?;
    play.fails_and_recovers("a", RecoveryAction::Compact)?;
    play.compacts_inside("a")?;
    play.compacted_from("a", 599, 100)
}

#[test]
fn each_rule_of_recoveries_can_fail() {
    for (rule, fault, play) in FAULTS {
        let found = play(&mut Play::new()).map_err(|violation| violation.rule);
        assert_eq!(found, Err(*rule), "{fault}");
    }
}
