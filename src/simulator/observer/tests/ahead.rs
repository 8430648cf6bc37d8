//! Faults of summaries that are made ahead of the threshold.

use super::{super::*, play::*};
use crate::{
    compaction::{ladder, request::Cause},
    conversation::{entry::Entry, spending::Trigger},
    protocol::{
        events::{Event, Reason, Strategy},
        types::Outcome,
    },
    session::{jobs::PlanOrder, operations::idle, stop::Stop},
    summary::cleaner::Cleaner,
};
use serde_json::json;
use std::sync::Arc;

/// A summary of these entries begins ahead of its compaction.
fn begins(play: &mut Play, operation: &str, entries: &[Arc<Entry>]) -> Verdict {
    let order = order(play, operation, entries);
    play.effect(Effect::Start(Box::new(Job::Plan(order))))
}

fn order(play: &Play, operation: &str, entries: &[Arc<Entry>]) -> PlanOrder {
    let mut order = play.order(operation, entries, Stop::default());
    order.request.cause = Cause::Ahead;
    order.request.keep_recent_tokens = Some(0);
    order
}

/// The summary of these entries is ready. It keeps none of them.
fn ready(play: &mut Play, operation: &str, entries: &[Arc<Entry>]) -> Verdict {
    begins(play, operation, entries)?;
    let request = order(play, operation, entries).request;
    let settings = request.settings.clone();
    let plan = request.plan(&|| false).unwrap_or_else(|why| unreachable!("a plan: {why:?}")).plan;
    let draft =
        ladder::extracted(plan, &settings.settings, &Cleaner::new(&settings.settings), Default::default(), &|| false);
    let draft = draft.unwrap_or_else(|_| unreachable!("it fits"));
    play.observer.feeds(&Input::Drafted(operation.into(), Ok(draft)));
    play.done()
}

/// The compaction of a summary starts at this size, in tokens. Its threshold is 800.
fn splices(play: &mut Play, operation: &str, tokens_before: u64) -> Verdict {
    play.effect(Effect::Record(vec![unfinished(operation)]))?;
    play.publish(compacting(Some(operation)))?;
    play.status(compacting(None))?;
    let start = Event::CompactionStart {
        reason: Reason::Threshold,
        strategy: Strategy::ContextFull,
        tokens_before,
        context_window: 1_000,
        threshold_tokens: 800,
        will_retry: false,
    };
    play.emit(Some(operation), start)
}

/// The compaction is written, and keeps what is after this entry.
fn ends(play: &mut Play, operation: &str, first_kept: Option<&Arc<Entry>>) -> Verdict {
    let compaction = play.written(operation)?;
    let mut result = result(&compaction, 100);
    result.first_kept_entry_id = first_kept.map(|entry| entry.id.clone());
    play.emit(Some(operation), end(Outcome::Completed, Some(result)))
}

type Fault = fn(&mut Play) -> Verdict;

const FAULTS: &[(Rule, &str, Fault)] = &[
    (Rule::OneAhead, "two are made at a time", |play| {
        let entry = play.append("x")?;
        begins(play, "a", std::slice::from_ref(&entry))?;
        begins(play, "b", &[entry])
    }),
    (Rule::OneAhead, "one is made while a compaction runs", |play| {
        let entry = play.append("x")?;
        play.started("a")?;
        begins(play, "b", &[entry])
    }),
    (Rule::SplicedUnchanged, "an entry that is covered was pinned", |play| {
        let entries = [play.append(&"one ".repeat(200))?, play.append(&"two ".repeat(200))?];
        ready(play, "a", &entries)?;
        let data = json!({"entryId": entries[0].id});
        let pin = play.entry("custom", &[("customType", json!("abridged.pin")), ("data", data)]);
        play.write(std::slice::from_ref(&pin))?;
        play.announce(&pin, None)?;
        splices(play, "a", 900)?;
        ends(play, "a", Some(&entries[1]))
    }),
    (Rule::SplicedWhenDue, "the context is at its threshold", |play| {
        let entries = [play.append(&"one ".repeat(200))?, play.append(&"two ".repeat(200))?];
        ready(play, "a", &entries)?;
        splices(play, "a", 800)
    }),
    (Rule::SplicedAsDrafted, "an entry is kept that the draft covers", |play| {
        let entries = [play.append(&"one ".repeat(200))?, play.append(&"two ".repeat(200))?];
        ready(play, "a", &entries)?;
        splices(play, "a", 900)?;
        ends(play, "a", Some(&entries[1]))
    }),
    (Rule::AheadIsQuiet, "the usage is sent when its plan was made", |play| {
        let entry = play.append("x")?;
        begins(play, "a", &[entry])?;
        play.observer.feeds(&Input::Planned("a".into(), Err(Failure::Cancelled)));
        play.emit(None, Event::UsageUpdated { usage: usage(100) })?;
        play.done()
    }),
    (Rule::BudgetHolds, "a model is asked ahead when the tokens of the hour are spent", |play| {
        let budget = &mut play.observer.budget;
        budget.drafts_ahead(&"a".into());
        budget.sent(1, 0);
        budget.holds(Some(100))?;
        budget.spends(Trigger::Speculative, 100);
        budget.drafted(&"a".into());
        budget.sent(2, 0);
        budget.holds(Some(100))?;
        budget.drafts_ahead(&"b".into());
        budget.sent(3, 0);
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

#[test]
fn a_summary_that_was_ready_passes() -> Verdict {
    let mut play = Play::new();
    let entries = [play.append(&"one ".repeat(200))?, play.append(&"two ".repeat(200))?];
    ready(&mut play, "a", &entries)?;
    play.append("three")?;
    splices(&mut play, "a", 900)?;
    ends(&mut play, "a", None)?;
    play.status(idle())?;
    play.emit(None, Event::Settled { aborted: false })
}
