//! The end of the rest after an undo.

use crate::{compaction::resting, ids::EntryId, protocol::notices::NoticeCode, session::core::base::Base};

/// Tells once for each undo that automatic compaction acts again on its path.
/// `reported`: the undo of which the client was told.
pub(in crate::session::core) fn report(base: &Base, reported: &mut Option<EntryId>) {
    let path = base.state.path();
    let undo = path.iter().rev().find(|entry| path.has_undo() && entry.undoes().is_some());
    let Some(undo) = undo.map(|entry| entry.id.clone()).filter(|id| reported.as_ref() != Some(id)) else {
        return;
    };
    *reported = Some(undo);
    let fullness = base.state.measure();
    let (tokens, window) = (fullness.context_tokens, fullness.budget.window);
    let until = resting::rests_to(&fullness.with_reported_overhead());
    base.effects.inform(
        NoticeCode::AutoCompactionResumes,
        "Automatic compaction acts again after an undo",
        format!(
            "It rested up to {until} tokens. The context has {tokens} of a window of {window}, so a compaction starts. \
             session/undo_compaction takes it back; compaction.enabled: false keeps the whole conversation."
        ),
    );
}

#[cfg(test)]
mod tests {
    use crate::{
        compaction::resting::AutoCompaction::{self, Resting},
        ids::EntryId,
        protocol::{
            SessionConfigure, SessionContext, SessionUndoCompaction, SessionUsage,
            events::{Event, Reason},
            notices::NoticeCode,
        },
        session::{
            core::{
                Input,
                held::{Held, answer, compacted_messages, draft, events, job, line, log_work, outcomes, plan, started},
            },
            effects::Effect,
            jobs::{Job, PlanOrder},
        },
        settings::{Layers, layers::Source},
    };
    use serde_json::{Value, json};

    /// The window of `p/m`. A rest ends at `UNTIL`.
    const WINDOW: u64 = 10_000;
    const UNTIL: u64 = 9_000;

    fn set(held: &mut Held, window: Option<u64>, mut compaction: Value) {
        compaction["reserveTokens"] = json!(2_000);
        let models = [("m", window), ("large", Some(50_000))]
            .map(|(id, window)| json!({"provider": "p", "id": id, "contextWindow": window}));
        let settings = json!({"tokens": {"estimator": "chars"}, "compaction": compaction, "defaultModel": "p/m",
            "models": models});
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
    }

    /// A session whose compaction was undone.
    fn undone(window: Option<u64>, compaction: Value) -> Held {
        let mut held = Held::of(&compacted_messages(), u64::MAX);
        set(&mut held, window, compaction);
        undo(&mut held, 1);
        held
    }

    fn undo(held: &mut Held, number: u64) -> Vec<Effect> {
        held.edit::<SessionUndoCompaction>(number, json!({}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work)
    }

    fn tokens(held: &Held) -> u64 {
        held.core.state().measure().context_tokens
    }

    fn auto(held: &Held) -> AutoCompaction {
        held.core.state().usage().auto_compaction
    }

    /// Appends a message that makes the context this large.
    fn grow_to(held: &mut Held, number: u64, size: u64) -> Vec<Effect> {
        let missing = size - tokens(held);
        let factor = held.core.state().measure().scale.factor();
        let text = "word".repeat((missing as f64 / factor) as usize);
        held.append_with(number, json!({"messages": [{"role": "user", "content": text, "timestamp": 1}]}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work)
    }

    fn codes(effects: &[Effect]) -> Vec<NoticeCode> {
        let code = |event: &Event| if let Event::Notice { code, .. } = event { Some(*code) } else { None };
        events(effects).filter_map(code).collect()
    }

    fn why(held: &mut Held, number: u64) -> String {
        held.call::<SessionUsage>(number, json!({}));
        answer(&held.turn(), number).expect("an answer")["why"].as_str().expect("a text").to_owned()
    }

    fn planned(effects: Vec<Effect>) -> PlanOrder {
        match job(effects) {
            Job::Plan(order) => order,
            _ => unreachable!("a compaction begins with a plan"),
        }
    }

    #[test]
    fn after_an_undo_it_rests_and_says_until_when_and_acts_again_beyond() {
        let mut held = undone(Some(WINDOW), json!({}));
        let before = tokens(&held);
        assert!(before < 8_000, "below the threshold");
        assert_eq!(auto(&held), Resting);
        assert!(why(&mut held, 2).contains("acts again over 9000 tokens"));
        let effects = grow_to(&mut held, 3, UNTIL - 200);
        assert_eq!((started(&effects), auto(&held)), (vec![], Resting), "{} tokens", tokens(&held));
        assert!(tokens(&held) > 8_000, "over the threshold");
        let said = why(&mut held, 4);
        assert!(said.contains("a compaction was undone here") && said.contains("more than 9000 tokens"), "{said}");
        let effects = grow_to(&mut held, 5, UNTIL + 200);
        assert_eq!(auto(&held), AutoCompaction::Set(true));
        assert_eq!(answer(&effects, 5).expect("an answer")["next"]["reason"], "threshold");
        assert_eq!(
            (started(&effects), codes(&effects)),
            (vec![Reason::Threshold], vec![NoticeCode::AutoCompactionResumes])
        );
    }

    #[test]
    fn the_notice_comes_once_for_an_undo_and_again_for_the_next_one() {
        let mut held = undone(Some(WINDOW), json!({}));
        let order = planned(grow_to(&mut held, 2, UNTIL + 200));
        let failure = crate::protocol::errors::Failure::Internal("it failed".to_owned());
        held.feed(Input::Planned(order.id, Err(failure)));
        let effects = grow_to(&mut held, 3, UNTIL + 900);
        assert_eq!((started(&effects), codes(&effects)), (vec![Reason::Threshold], vec![]));
        let order = planned(effects);
        let effects = held.feed(Input::Planned(order.id.clone(), Ok(plan(order))));
        let Job::Draft(order) = job(effects) else { unreachable!("a draft follows a plan") };
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        let work = log_work(held.turn()).expect("a compaction is written");
        assert_eq!(outcomes(&held.back(work)), [crate::protocol::types::Outcome::Completed]);
        assert_eq!(auto(&held), AutoCompaction::Set(true));
        // Each undo is the person's will, and starts nothing.
        let effects = undo(&mut held, 4);
        assert_eq!(started(&effects), []);
        assert_eq!(started(&held.turn()), []);
        let effects = grow_to(&mut held, 5, UNTIL + 1_500);
        assert_eq!(
            (started(&effects), codes(&effects)),
            (vec![Reason::Threshold], vec![NoticeCode::AutoCompactionResumes])
        );
    }

    #[test]
    fn a_context_over_the_window_after_an_undo_waits_for_a_compaction() {
        let mut held = undone(Some(50_000), json!({}));
        grow_to(&mut held, 2, 12_000);
        set(&mut held, Some(WINDOW), json!({}));
        held.call::<SessionContext>(3, json!({"format": "anthropic"}));
        let effects = held.turn();
        assert_eq!((started(&effects), answer(&effects, 3)), (vec![Reason::Threshold], None));
    }

    #[test]
    fn a_rest_has_its_end_in_every_kind_of_window() {
        // The default window has 128,000 tokens.
        for (window, compaction, until) in [
            (None, json!({}), 127_000),
            (Some(WINDOW), json!({"thresholdPercent": 50}), UNTIL),
            (Some(WINDOW), json!({"thresholdTokens": 2_000}), UNTIL),
            (Some(WINDOW), json!({"thresholdPercent": 99}), 9_900),
        ] {
            let mut held = undone(window, compaction.clone());
            let effects = grow_to(&mut held, 2, until - 50);
            assert_eq!((started(&effects), auto(&held)), (vec![], Resting), "{window:?} {compaction}");
            let effects = grow_to(&mut held, 3, until + 50);
            assert_eq!(started(&effects), [Reason::Threshold], "{window:?} {compaction}");
        }
    }

    #[test]
    fn a_session_that_is_switched_off_does_not_rest() {
        assert_eq!(auto(&undone(Some(WINDOW), json!({"enabled": false}))), AutoCompaction::Set(false));
    }

    #[test]
    fn another_model_ends_a_rest_where_its_window_is_too_small() {
        for (window, starts) in [(9_500, vec![]), (7_000, vec![Reason::ModelSwitch])] {
            let mut held = undone(Some(WINDOW), json!({}));
            grow_to(&mut held, 2, 8_200);
            held.edit::<SessionConfigure>(3, json!({"contextWindow": window}));
            let work = log_work(held.turn()).expect("a write");
            assert_eq!(started(&held.back(work)), starts, "{window}");
        }
    }

    #[test]
    fn a_session_that_is_opened_again_still_rests() {
        let mut lines = compacted_messages();
        let leaf: Value = serde_json::from_str(lines.last().expect("a line")).expect("JSON");
        let leaf = leaf["id"].as_str().expect("an id").to_owned();
        let compaction = lines.iter().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let mut compaction = compaction.filter(|line| line["type"] == "compaction").map(|line| line["id"].clone());
        let data = json!({"customType": "abridged.undo", "data": {"compactionEntryId": compaction.next_back()}});
        lines.push(line("undo", Some(&leaf), "custom", data));
        let mut held = Held::of(&lines, u64::MAX);
        set(&mut held, Some(WINDOW), json!({}));
        assert_eq!(auto(&held), Resting);
        assert_eq!(held.core.state().path().last().map(|entry| entry.id.clone()), Some(EntryId::from("undo")));
        assert_eq!(started(&grow_to(&mut held, 1, UNTIL + 200)), [Reason::Threshold]);
    }

    #[test]
    fn a_summary_begins_ahead_of_the_end_of_a_rest_and_not_before() {
        let speculative = json!({"speculative": true, "thresholdTokens": 30_000});
        let mut held = undone(Some(100_000), speculative);
        // The rest ends at 99,000, and the headroom is an eighth of that.
        let effects = grow_to(&mut held, 2, 60_000);
        assert!(!plans(&effects), "the threshold alone begins none");
        let effects = grow_to(&mut held, 3, 88_000);
        assert!(plans(&effects), "{} tokens", tokens(&held));
        assert_eq!(started(&effects), []);
    }

    fn plans(effects: &[Effect]) -> bool {
        effects.iter().any(|effect| matches!(effect, Effect::Start(job) if matches!(**job, Job::Plan(_))))
    }
}
