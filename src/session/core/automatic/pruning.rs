//! Prunings that no client asks for: whether one suffices and pays.

use crate::{
    compaction::{
        decide::Why,
        prune::{Pruned, pays::Considered},
    },
    session::core::{
        base::Base,
        commands::prune::{self, Share},
        edit::Staged,
        upkeep::Upkeep,
    },
};

/// The edits of a pruning that brings the context below the threshold. Superseded reads leave alone where the context is
/// then as small as after a compaction. A pruning that costs more than it saves is left to the compaction, unless the
/// last one did not complete. `why`: the reason of the decision at the leaf.
pub(in crate::session::core) fn that_suffices(base: &mut Base, upkeep: &mut Upkeep, why: Why) -> Option<Staged> {
    if why == Why::Images {
        return prune::without_old_images(&base.state, &mut base.stamps);
    }
    let settings = &base.state.settings().settings.prune;
    let fullness = base.state.measure();
    let budget = fullness.budget.attainable().unwrap_or(fullness.budget);
    let left = |pruned: &Pruned| fullness.context_tokens.saturating_sub(fullness.scale.size(pruned.tokens_saved));
    let mut considered = Considered::Nothing { minimum: settings.minimum_savings };
    let mut chosen = None;
    for (share, most) in [(Share::Superseded, budget.target()), (Share::All, budget.threshold)] {
        let pruned = prune::pruned(&base.state, settings, share);
        if pruned.edits.is_empty() {
            continue;
        }
        let left = left(&pruned);
        if left > most {
            let saved = fullness.scale.size(pruned.tokens_saved);
            considered = Considered::TooLittle { saved, left, threshold: budget.threshold };
            continue;
        }
        let judged = prune::judged(&base.state, &pruned, base.stamps.now());
        considered = Considered::Judged(judged);
        if judged.pays() || upkeep.rest.is_some() {
            chosen = Some((pruned, judged));
            break;
        }
    }
    upkeep.pruning = Some(considered);
    let (pruned, judged) = chosen?;
    let why = format!("the context was over the threshold; {}", prune::described(&pruned, &judged));
    prune::staged(&base.state, pruned, &mut base.stamps).ok().map(|staged| Staged { why, ..staged })
}

#[cfg(test)]
mod tests {
    use crate::session::core::standing::Standing;
    use crate::{
        protocol::{
            SessionPrune,
            events::{Event, Reason},
        },
        session::core::{
            Input,
            held::{Held, answer, events, line, log_work, outcomes, started, written},
        },
        settings::{Layers, layers::Source},
    };
    use jiff::Timestamp;
    use serde_json::{Value, json};

    /// Time between the entries of a history and the decision, in seconds.
    const MINUTE: i64 = 60;

    /// Calls of `tool`, each with the path and the size of its result in tokens, and an answer that reports `cached` tokens.
    fn history(calls: &[(&str, &str, usize)], cached: u64) -> Vec<String> {
        let user = json!({"role": "user", "content": "Read the parts.", "timestamp": 1});
        let mut messages = vec![user];
        let counted = |sum: usize, cached: u64| {
            let input = (sum as u64 + 100).saturating_sub(cached);
            json!({"input": input, "output": 5, "cacheRead": cached, "cacheWrite": 0, "totalTokens": input + cached + 5})
        };
        let mut sum = 0;
        for (at, (tool, path, tokens)) in calls.iter().enumerate() {
            let call = json!([{"type": "toolCall", "id": format!("c{at}"), "name": tool, "arguments": {"path": path}}]);
            messages.push(json!({"role": "assistant", "content": call, "stopReason": "toolUse", "provider": "p",
                "model": "m", "usage": counted(sum, 0), "timestamp": 1}));
            sum += tokens;
            let text = "word".repeat(*tokens);
            messages.push(json!({"role": "toolResult", "toolCallId": format!("c{at}"), "toolName": tool,
                "content": [{"type": "text", "text": text}], "timestamp": 1}));
        }
        messages
            .push(json!({"role": "assistant", "content": [{"type": "text", "text": "Read."}], "stopReason": "stop",
            "provider": "p", "model": "m", "usage": counted(sum, cached), "timestamp": 1}));
        let parent = |at: usize| at.checked_sub(1).map(|before| format!("e{before}"));
        let of =
            |(at, message)| line(&format!("e{at}"), parent(at).as_deref(), "message", json!({ "message": message }));
        messages.into_iter().enumerate().map(of).collect()
    }

    /// A session of a history that ended so many seconds ago, with this threshold.
    fn session(lines: &[String], threshold: u64, seconds: i64) -> Held {
        let mut held = Held::of(lines, u64::MAX);
        let ended: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        held.at.wall = Timestamp::from_second(ended.as_second() + seconds).expect("a time");
        let model = json!({"provider": "p", "id": "m", "contextWindow": 200_000});
        let settings = json!({"tokens": {"estimator": "chars"}, "models": [model], "defaultModel": "p/m",
            "prune": {"protectTokens": 5_000, "minimumSavings": 1_000}, "compaction": {"thresholdTokens": threshold}});
        held.feed(Input::Layers(Layers::of(vec![(Source::Global, settings)])));
        held
    }

    /// 2,000 tokens that may leave before 28,000 that stay.
    const LITTLE: [(&str, &str, usize); 3] = [("bash", "x", 2_000), ("read", "a", 24_000), ("bash", "y", 6_000)];

    /// The reason that `session/usage` has for the last decision about a pruning.
    fn considered(held: &Held) -> String {
        held.core.upkeep.pruning.map(|it| it.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_warm_cache_is_left_to_the_compaction_and_a_cold_one_is_pruned() {
        for (cached, seconds, prunes, says) in [
            (30_000, MINUTE, false, "the prompt cache is warm (last answer 60 s ago): writing 30"),
            (30_000, 300, false, "the prompt cache is warm"),
            (30_000, 301, true, "the last answer is 301 s old"),
            (30_000, -301, true, "the last answer is 301 s old"),
            (30_000, 86_400, true, "the last answer is 86400 s old"),
            (0, MINUTE, true, "no answer reports cached tokens"),
        ] {
            let mut held = session(&history(&LITTLE, cached), 31_000, seconds);
            let effects = held.write(1);
            assert_eq!(started(&effects), if prunes { vec![] } else { vec![Reason::Threshold] }, "{cached} {seconds}");
            assert!(considered(&held).contains(says), "{}", considered(&held));
            assert_eq!(written(log_work(effects).as_ref()).len(), usize::from(prunes));
        }
    }

    #[test]
    fn a_warm_cache_is_broken_where_that_pays() {
        let much = [("bash", "x", 24_000), ("read", "a", 2_000), ("bash", "y", 6_000)];
        let mut held = session(&history(&much, 30_000), 31_000, MINUTE);
        let work = log_work(held.write(1)).expect("the pruning");
        let effects = held.back(work);
        let why = events(&effects).find_map(|event| match event {
            Event::Pruned { why, .. } => Some(why.clone()),
            _ => None,
        });
        let why = why.expect("an event");
        assert!(
            why.starts_with("the context was over the threshold; it saves 2") && why.contains("not more than"),
            "{why}"
        );
        assert!(considered(&held).starts_with("Old results were pruned: "), "{}", considered(&held));
    }

    #[test]
    fn a_pruning_is_made_at_any_cost_where_the_last_compaction_did_not_complete() {
        let mut held = session(&history(&LITTLE, 30_000), 32_100, MINUTE);
        assert_eq!(started(&held.write(1)), [Reason::Threshold], "{}", Standing::of(&held.core).why());
        assert_eq!(outcomes(&held.cancel(2)).len(), 1);
        let answer =
            json!({"role": "assistant", "content": [{"type": "text", "text": "word".repeat(1_700)}], "timestamp": 1});
        held.append_with(3, json!({"messages": [answer]}));
        let work = log_work(held.turn()).expect("a write");
        let effects = held.back(work);
        assert!(considered(&held).contains("more than"), "{}", considered(&held));
        assert_eq!(started(&effects), []);
        assert_eq!(written(log_work(effects).as_ref()), ["context_edit"]);
    }

    #[test]
    fn superseded_reads_leave_alone_where_the_target_of_a_compaction_is_met() {
        let calls =
            |older: usize| [("bash", "x", 3_000), ("read", "a", older), ("read", "a", 12_000), ("bash", "y", 6_000)];
        for (older, edits) in [(12_000, vec!["e4"]), (2_000, vec!["e4", "e2"])] {
            let lines = history(&calls(older), 0);
            let threshold = 22_000 + older as u64;
            let mut held = session(&lines, threshold.min(28_000), MINUTE);
            let why = Standing::of(&held.core).decision().why;
            let staged = super::that_suffices(&mut held.core.base, &mut held.core.upkeep, why).expect("a pruning");
            let about: Vec<_> = staged.about.iter().map(|id| id.as_str()).collect();
            assert_eq!(about, edits, "{}", staged.why);
            assert!(staged.why.contains("superseded reads of files: 1; it saves "), "{}", staged.why);
        }
    }

    #[test]
    fn nothing_is_pruned_for_less_than_the_minimum_and_usage_says_so() {
        let mut held = session(&history(&[("read", "a", 20_000), ("bash", "y", 6_000)], 0), 25_000, MINUTE);
        assert_eq!(started(&held.write(1)), [Reason::Threshold]);
        let expected =
            "No results were pruned: those that may leave have fewer than 1000 tokens (prune.minimumSavings).";
        assert_eq!(considered(&held), expected);
    }

    #[test]
    fn a_client_prunes_at_any_cost() {
        let mut held = session(&history(&LITTLE, 30_000), 190_000, MINUTE);
        held.edit::<SessionPrune>(1, json!({}));
        let work = log_work(held.turn()).expect("the edits");
        let effects = held.back(work);
        assert_eq!(answer(&effects, 1).expect("an answer")["entryIds"], json!(["e2"]));
        let of = |event: &Event| match event {
            Event::Pruned { why, .. } => Some(why.clone()),
            _ => None,
        };
        let why: Value = events(&effects).find_map(of).expect("an event").into();
        let why = why.as_str().expect("a text");
        assert!(why.starts_with("session/prune was called; it saves 1") && why.contains("more than"), "{why}");
    }
}
