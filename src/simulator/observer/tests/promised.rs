//! Streams with compactions after the turn, limits of the client, or requests to models that break a rule.

use super::{
    super::{Clocks, Rule, limits},
    Fault,
    play::*,
};
use crate::{
    conversation::spending::Trigger,
    protocol::{
        events::{Event, Reason, Strategy},
        notices::{NoticeCode, Warning},
        types::Outcome,
    },
    session::{core::Input, effects::Effect, jobs::progress::Progress, operations::idle},
    summary::model::writer::Step,
};
use serde_json::json;

/// A request for a compaction after the turn, and its answer.
fn later(play: &mut Play, operation: &str) -> super::super::Verdict {
    let request = play.send("session/compact", json!({"when": "after_turn"}));
    play.answer(request, &json!({ "operationId": operation }))
}

/// The entry of a compaction after the turn.
fn stores(play: &mut Play, operation: &str) -> super::super::Verdict {
    let params = json!({"sessionId": "simulated", "when": "after_turn"});
    let data = json!({"operationId": operation, "since": "2026-01-01T00:00:00.000Z", "params": params});
    let entry = play.entry("custom", &[("customType", json!("abridged.after_turn")), ("data", data)]);
    play.write(std::slice::from_ref(&entry))?;
    later(play, operation)?;
    play.announce(&entry, None)
}

/// A cancel, and its answer at once.
fn cancels(play: &mut Play, operations: &[&str]) -> super::super::Verdict {
    let cancel = play.cancel(json!({}));
    let all: Vec<_> = operations.iter().map(|id| json!({"operationId": id, "kind": "compaction"})).collect();
    play.answer(cancel, &json!({ "cancelled": all }))
}

/// The client is told that an entry could not be written.
fn tells(play: &mut Play) -> super::super::Verdict {
    play.emit(None, Event::from(Warning::new(NoticeCode::AfterTurnNotRecorded, "x", "y")))
}

fn answers(play: &mut Play) -> super::super::Verdict {
    let message = json!({"role": "assistant", "content": [], "stopReason": "stop", "timestamp": 1});
    let entry = play.entry("message", &[("message", message.clone())]);
    let request = play.send("session/append", json!({ "messages": [message] }));
    play.write(std::slice::from_ref(&entry))?;
    play.answer(request, &appended(&entry))?;
    play.announce(&entry, None)
}

/// A fault for each rule.
const FAULTS: &[(Rule, &str, Fault)] = &[
    (Rule::AfterTheTurn, "it is planned behind a message of the user", |play| {
        play.append("x")?;
        later(play, "a")?;
        play.effect(Effect::Record(vec![unfinished("a")]))?;
        play.publish(compacting(Some("a")))?;
        play.status(compacting(Some("a")))?;
        play.emit(Some("a"), start())?;
        play.plans("a", &[])?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Skipped, None))
    }),
    (Rule::LaterStarts, "it does not start behind an answer", |play| {
        play.append("x")?;
        later(play, "a")?;
        play.observer.left_alone()?;
        answers(play)?;
        play.observer.left_alone()
    }),
    (Rule::RefusedWhileBusy, "a second one is taken", |play| {
        later(play, "a")?;
        later(play, "b")
    }),
    (Rule::CancelNamesAll, "a cancel does not name it", |play| {
        later(play, "a")?;
        let cancel = play.cancel(json!({}));
        play.answer(cancel, &json!({"cancelled": []}))
    }),
    (Rule::AnsweredIsDurable, "a restart brings back one that was cancelled", |play| {
        stores(play, "a")?;
        cancels(play, &["a"])
    }),
    (Rule::AnsweredIsDurable, "a restart brings it back, and the client was told so of an earlier one", |play| {
        stores(play, "a")?;
        tells(play)?;
        cancels(play, &["a"]).expect("the client was told");
        stores(play, "b")?;
        cancels(play, &["a", "b"])
    }),
    (Rule::EndedOnce, "a restart brings back one that has ended", |play| {
        stores(play, "a")?;
        play.effect(Effect::Record(vec![unfinished("a")]))?;
        play.publish(compacting(Some("a")))?;
        play.status(compacting(Some("a")))?;
        play.emit(Some("a"), start())?;
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Skipped, None))?;
        play.settles()?;
        play.crash();
        play.opens()
    }),
    (Rule::CancelNamesAll, "a cancel does not name an operation that follows an append", |play| {
        let request = play.send("session/append", json!({"messages": [{"role": "user", "content": "x"}]}));
        let entry = play.says("x");
        play.write(std::slice::from_ref(&entry))?;
        play.answer(request, &appended_before(&entry, "next", 900))?;
        cancels(play, &[])
    }),
    (Rule::LaterStarts, "it is forgotten with its process", |play| {
        play.append("x")?;
        stores(play, "a")?;
        play.crash();
        play.opens()?;
        play.observer.left_alone()?;
        answers(play)?;
        play.observer.left_alone()
    }),
    (Rule::LimitsHold, "the window is larger than the client states", |play| {
        let request = play.send("session/configure", json!({"contextWindow": 500}));
        play.answer(request, &json!({"session": {"usage": {"contextWindow": 1_000}}, "next": {"type": "none"}}))
    }),
    (Rule::LimitsHold, "the window that is stored is forgotten", |play| {
        let model = json!({"provider": "p", "id": "m"});
        let choice = play.entry("model_change", &[("provider", json!("p")), ("modelId", json!("m"))]);
        let data = json!({"limits": {"model": model, "contextWindow": 500}});
        let entry = play.entry("custom", &[("customType", json!("abridged.session")), ("data", data)]);
        play.write(&[choice, entry])?;
        play.observer.file.look(&play.disk)?;
        limits::hold(&play.core(), &play.observer.file)?;
        play.disk
            .append_as_another(
                &json!({"type": "custom", "id": "c", "parentId": play.leaf, "timestamp": "2026-01-01T00:00:00.000Z",
                "customType": "abridged.session", "data": {}})
                .to_string(),
            )
            .expect("an entry");
        limits::hold(&play.core(), &play.observer.file)
    }),
    (Rule::OutputFits, "the answer does not fit beside the context", |play| {
        let end = json!({"usage": usage(600), "maxOutputTokens": 401});
        limits::fit(&end, &play.observer.file)
    }),
    (Rule::CallsAreBounded, "a model is asked again and again", |play| {
        play.observer.models_were_asked(7, 0, (0, 0), Clocks::default());
        play.started("a")?;
        play.observer
            .feeds(&Input::Reported("a".into(), Progress::Summary(Step::Progress { done: 0, total: 2, model: None })));
        play.observer.models_were_asked(7 + 2 + 12 + 1, 0, (0, 0), Clocks::default());
        play.publish(idle())?;
        play.emit(Some("a"), end(Outcome::Skipped, None))
    }),
    (Rule::BudgetHolds, "a model is asked when the tokens of the hour are spent", |play| {
        let budget = &mut play.observer.budget;
        budget.event(&Event::CompactionStart {
            reason: Reason::Threshold,
            strategy: Strategy::ContextFull,
            tokens_before: 500,
            context_window: 1_000,
            threshold_tokens: 800,
            will_retry: false,
        });
        budget.sent(1, 0);
        budget.holds(Some(100))?;
        budget.spends(Trigger::Manual, 1_000);
        budget.spends(Trigger::Threshold, 100);
        // An hour later they are forgotten, and above another ceiling they are few.
        budget.sent(2, 3_600_000);
        budget.holds(Some(100))?;
        budget.sent(3, 60_000);
        budget.holds(Some(101))?;
        budget.sent(4, 60_000);
        budget.holds(Some(100))
    }),
];

#[test]
fn each_rule_can_fail() {
    for (rule, fault, play) in FAULTS {
        let found = play(&mut Play::new()).map_err(|violation| violation.rule);
        assert_eq!(found, Err(*rule), "{fault}");
    }
}
