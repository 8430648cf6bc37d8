//! Compactions of a session: requests, plans, drafts and writes.

use crate::{
    ask::{
        failed::Failed,
        purpose::Purpose,
        request::{RetryOutcome, Update},
    },
    compaction::meter,
    ids::ModelRef,
    protocol::{
        SessionContext,
        errors::{Failure, Nothing},
        events::{HookOutcome, Reason},
        types::{HookEvent, Outcome},
    },
    session::{
        core::{
            Input,
            command::Command,
            held::{
                Held, answer, answered, compacted_messages, cost, draft, job, learned, line, log_work, message,
                messages, notices, outcomes, plan, started, written,
            },
        },
        effects::Effect,
        gate::Gate,
        jobs::{
            Job, PlanOrder,
            progress::{HookStep, Progress},
        },
        log_work::LogWork,
    },
    settings::{Layers, layers::Source},
    summary::model::writer::Step,
};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn the_cost_of_a_cancelled_draft_is_recorded() {
    let mut held = Held::new();
    let order = held.begin_draft(1);
    assert_eq!(outcomes(&held.cancel(2)), [Outcome::Cancelled]);
    held.feed(Input::Reported(order.id, cost()));
    assert_eq!(written(log_work(held.turn()).as_ref()), ["usage"]);
}

#[test]
fn hooks_and_retries_are_in_the_lock_from_before_their_start_to_their_end_also_while_the_log_is_out() {
    let mut held = Held::new();
    let id = held.begin_draft(1).id;
    held.append(2);
    let work = log_work(held.turn()).expect("a write");
    let model = ModelRef { provider: "p".to_owned(), id: "m".to_owned() };
    let failed = Failed::unfit(model, "the server is busy");
    let begins = HookStep::HookBegins { hook: HookEvent::SessionCompacting, sent: Gate::default() };
    let ends = HookStep::HookEnds { hook: HookEvent::SessionCompacting, outcome: HookOutcome::Ok, why: None };
    let of = |update| Progress::Summary(Step::Request(Purpose::Compaction, update));
    let (most, delay) = (3, Duration::ZERO);
    for (step, is_start, listed) in [
        (Progress::Hook(begins), true, 1),
        (Progress::Hook(ends), false, 0),
        (of(Update::RetryStart { attempt: 1, most, delay, failed }), true, 1),
        (of(Update::RetryEnd { attempt: 1, outcome: RetryOutcome::Answered }), false, 0),
    ] {
        let effects = held.feed(Input::Reported(id.clone(), step));
        let record = effects.iter().position(|effect| match effect {
            Effect::Record(open) => open.len() == 1 && open[0].inside.len() == listed,
            _ => false,
        });
        let event = effects.iter().position(|effect| match effect {
            Effect::Emit(_, event) => matches!(event.kind(), "hook_start" | "hook_end" | "retry_start" | "retry_end"),
            _ => false,
        });
        let (record, event) = (record.expect("a record"), event.expect("an event"));
        assert_eq!(record < event, is_start, "{listed}");
    }
    held.back(work);
}

#[test]
fn a_draft_is_not_written_over_a_context_that_was_cleared() {
    let more = [message("f0", Some("c1")), message("f1", Some("f0")), message("f2", Some("f1"))];
    let compacted = compacted_messages().into_iter().chain(more).collect();
    for (lines, leaf) in [(messages(), "e39"), (compacted, "f2")] {
        let mut held = Held::of(&lines, u64::MAX);
        let order = held.begin_draft(1);
        held.disk.append_as_another(&line("cleared", Some(leaf), "reset_boundary", json!({}))).expect("an entry");
        held.feed(Input::FileTouched);
        let work = log_work(held.turn()).expect("a read");
        held.back(work);
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        assert_eq!(outcomes(&held.turn()), [Outcome::Failed], "behind {leaf}");
    }
}

#[test]
fn a_cancel_before_a_write_is_repeated_ends_the_compaction() {
    let mut held = Held::new();
    let order = held.begin_draft(1);
    held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
    let work = log_work(held.turn()).expect("a write");
    held.disk.append_as_another(&message("other", Some("e39"))).expect("an entry");
    assert!(outcomes(&held.back(work)).is_empty());
    assert_eq!(outcomes(&held.cancel(2)), [Outcome::Cancelled]);
}

fn set(held: &mut Held, settings: &Value) {
    held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings.clone())])));
}

/// A session over its threshold.
fn over(compaction: &Value) -> Held {
    let mut held = Held::new();
    set(&mut held, &json!({"tokens": {"estimator": "chars"}, "compaction": compaction}));
    held
}

fn planned(effects: Vec<Effect>) -> PlanOrder {
    let Job::Plan(order) = job(effects) else { unreachable!("it is planned") };
    order
}

#[test]
fn a_dry_run_waits_for_no_end_of_a_turn() {
    let mut held = Held::new();
    let params = json!({"sessionId": "held", "dryRun": true, "when": "after_turn"});
    held.send(1, Command::Compact(serde_json::from_value(params).expect("params")));
    assert!(held.turn().iter().any(|effect| matches!(effect, Effect::Read(1, _))));
}

#[test]
fn a_plan_knows_the_learned_window() {
    let mut held = over(&json!({}));
    set(&mut held, &json!({"tokens": {"estimator": "chars"}, "defaultModel": "p/m"}));
    held.feed(Input::Windows(learned("p/m", 9_000)));
    held.compact(1);
    let order = planned(held.turn());
    assert_eq!(order.request.learned.all().map(|row| row.context_window).collect::<Vec<_>>(), [9_000]);
}

#[test]
fn a_context_that_waits_for_a_plan_is_answered_where_there_is_none() {
    let mut held = Held::new();
    held.compact(1);
    let order = planned(held.turn());
    held.call::<SessionContext>(2, json!({"wait": true}));
    assert_eq!(answered(&held.turn()), [0; 0]);
    let nothing = Failure::NothingToCompact(Nothing::AlreadyCompacted);
    assert_eq!(answered(&held.feed(Input::Planned(order.id, Err(nothing)))), [1, 2]);
}

#[test]
fn only_an_automatic_compaction_has_a_deadline() {
    let mut held = over(&json!({"thresholdTokens": 2_000, "deadlineSeconds": 70}));
    assert_eq!(held.begin_draft(1).deadline, None);
    held.cancel(2);
    let order = planned(held.write(3));
    let id = order.id.clone();
    let Job::Draft(order) = job(held.feed(Input::Planned(id, Ok(plan(order))))) else { unreachable!("a draft") };
    assert_eq!(order.deadline, Some(std::time::Duration::from_secs(70)));
}

#[test]
fn a_client_is_told_once_that_automatic_compaction_hands_nothing_off() {
    let mut held = over(&json!({"thresholdTokens": 2_000, "strategy": "handoff"}));
    let failed = || Failure::Internal("it failed".to_owned());
    let manual = held.begin_draft(1);
    assert!(notices(&held.feed(Input::Drafted(manual.id, Err(failed())))).is_empty());
    for (number, told) in [(2, 1), (3, 0)] {
        let order = planned(held.write(number));
        let effects = held.feed(Input::Planned(order.id, Err(failed())));
        assert_eq!(notices(&effects).len(), told, "append {number}");
    }
}

/// A session with three compactions.
fn compacted_often() -> Held {
    let mut lines = compacted_messages();
    for (id, before) in [("c2", "f1"), ("c3", "f2")] {
        let parent = if id == "c2" { "c1" } else { "c2" };
        lines.push(message(before, Some(parent)));
        let fields = json!({"summary": "A parser was mended.", "firstKeptEntryId": "e10", "tokensBefore": 100});
        lines.push(line(id, Some(before), "compaction", fields));
    }
    for at in 3..10 {
        lines.push(message(&format!("f{at}"), Some(&if at == 3 { "c3".to_owned() } else { format!("f{}", at - 1) })));
    }
    let held = Held::of(&lines, u64::MAX);
    assert_eq!(held.core.state().path().compactions(), 3);
    held
}

#[test]
fn quality_is_a_matter_of_a_notice_once_in_an_hour_and_where_a_model_was_to_write() {
    use crate::{
        models::ModelRef,
        summary::made::{Made, Rejected},
    };
    let by_model = || Made::by_model(ModelRef::parse("p/m").expect("a model"));
    let stood_in = || Made { rejected: vec![Rejected::model(None, "it is empty".to_owned())], ..Made::default() };
    let mut held = compacted_often();
    set(
        &mut held,
        &json!({"tokens": {"estimator": "chars"}, "compaction": {"keepRecentTokens": 50, "enabled": false}}),
    );
    let mut told = |number: u64, made: Made, minutes: u64| {
        held.at.now += std::time::Duration::from_secs(60 * minutes);
        for more in 0..4 {
            let text = "Look at src/parser/part.rs and mend what its test says. ".repeat(60);
            let message = json!({"role": "user", "content": text, "timestamp": 1});
            held.append_with(10 * number + more, json!({ "messages": [message] }));
            let work = log_work(held.turn()).expect("a write");
            held.back(work);
        }
        let order = held.begin_draft(10 * number + 9);
        let id = order.id.clone();
        let mut made_here = draft(order);
        made_here.made = made;
        held.feed(Input::Drafted(id, Ok(made_here)));
        let work = log_work(held.turn()).expect("a write");
        notices(&held.back(work)).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(told(1, Made::default(), 0), none, "no model was to write it");
    assert_eq!(told(2, by_model(), 0), ["Quality may degrade after repeated compactions"]);
    assert_eq!(told(3, by_model(), 59), none);
    assert_eq!(told(4, stood_in(), 0), none, "it is the same notice");
    assert_eq!(told(5, stood_in(), 1), ["No model could write the summary"]);
    assert_eq!(told(6, by_model(), 60), ["Quality may degrade after repeated compactions"]);
}

#[test]
fn a_compaction_that_fails_warns_of_no_summary_of_summaries() {
    let mut held = compacted_often();
    let order = held.begin_draft(1);
    assert!(notices(&held.feed(Input::Drafted(order.id, Err(Failure::Cancelled)))).is_empty());
}

#[test]
fn a_context_that_messages_bring_over_its_window_meanwhile_starts_the_compaction_that_is_due() {
    for completes in [true, false] {
        let mut held = Held::new();
        let model = json!({"provider": "p", "id": "m", "contextWindow": 6_000});
        set(&mut held, &json!({"tokens": {"estimator": "chars"}, "models": [model], "defaultModel": "p/m"}));
        let order = held.begin_draft(1);
        let text = json!({"role": "user", "content": "a word ".repeat(6_000), "timestamp": 1});
        held.append_with(2, json!({"messages": [text]}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        held.call::<SessionContext>(3, json!({"wait": true}));
        assert_eq!(answered(&held.turn()), [0; 0]);
        let effects = match completes {
            true => {
                held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
                let work = log_work(held.turn()).expect("a write");
                held.back(work)
            }
            false => held.feed(Input::Drafted(order.id, Err(Failure::Internal("it failed".to_owned())))),
        };
        assert_eq!(started(&effects), [Reason::Threshold], "the one by hand completes: {completes}");
        assert_eq!(answer(&effects, 3), None);
    }
}

#[test]
fn an_end_is_recorded() {
    let mut held = Held::new();
    let order = held.begin_draft(1);
    let effects = held.feed(Input::Drafted(order.id, Err(Failure::Internal("it failed".to_owned()))));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Record(open) if open.is_empty())));
}

#[test]
fn the_size_behind_a_compaction_has_the_messages_that_came_during_it() {
    let size = |newer: bool| {
        let mut held = Held::new();
        let order = held.begin_draft(1);
        let mut added = 0;
        if newer {
            held.write(2);
            let state = held.core.state();
            let last = state.path().last().expect("a leaf");
            added = state.measure().scale.size(meter::sent(last, state.estimator()));
        }
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        let Some(LogWork::Append(work)) = log_work(held.turn()) else { unreachable!("it is written") };
        let entry: Value = serde_json::from_str(work.entries[0].line()).expect("JSON");
        entry["tokensAfter"].as_u64().expect("a size") - added
    };
    assert_eq!(size(true), size(false));
}
