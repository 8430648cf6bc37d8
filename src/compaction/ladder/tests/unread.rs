//! Messages that no model has read: they stay, and lose their middles where they do not fit.

use super::*;
use crate::compaction::draft::Shortened;
use proptest::{collection::vec, prelude::*};

/// A conversation, and then these messages.
fn waiting(messages: Vec<Value>) -> Vec<Value> {
    [vec![user(500), answer(500)], messages].concat()
}

/// The completed draft of a compaction that is due.
fn due(lines: &[Value], threshold: u64) -> Draft {
    due_with(lines, demand(threshold))
}

fn due_with(lines: &[Value], demand: Demand) -> Draft {
    let demand = Demand { explicit: false, keep: 1, ..demand };
    let plan = plan::plan(path(lines), demand, Arc::default()).expect("a plan");
    completed(climbed(plan, &NO_PRUNING))
}

/// The characters of entries that are cut.
fn sizes(draft: &Draft, entries: &[&str]) -> Vec<usize> {
    entries.iter().map(|entry| left(draft, entry).chars().count()).collect()
}

fn named(draft: &Draft) -> Vec<&str> {
    draft.shortened.iter().map(|it| it.entry.as_str()).collect()
}

#[test]
fn messages_in_a_row_share_the_room_and_small_ones_stay_whole() {
    let failed = message(json!({"role": "assistant", "content": [], "stopReason": "aborted"}));
    for between in [user(50), failed] {
        let draft = due(&waiting(vec![user(50_000), between, user(30_000), user(20)]), 20_000);
        assert_eq!((first_kept(&draft), named(&draft), targets(&draft).len()), (Some("e2"), vec!["e2", "e4"], 2));
        let sizes = sizes(&draft, &["e2", "e4"]);
        assert!(sizes[0].abs_diff(sizes[1]) < 20 && sizes[0] > 28_000, "{sizes:?}");
        // Messages that fill the window are cut as little as 90 % of the threshold allow.
        assert!((17_800..=18_000).contains(&draft.tokens_after), "{}", draft.tokens_after);
        let before: Vec<u64> = draft.shortened.iter().map(|it| it.before).collect();
        assert_eq!(before, [50_000, 30_000]);
    }
}

#[test]
fn a_large_message_of_another_role_between_them_loses_its_middle_too() {
    let developer = message(json!({"role": "developer", "content": words(60_000)}));
    let custom = json!({"type": "custom_message", "customType": "x", "content": words(60_000), "display": true});
    let command = message(json!({"role": "bashExecution", "command": "cat", "output": words(60_000)}));
    for other in [developer, custom, command] {
        let draft = due(&waiting(vec![user(40_000), other.clone(), user(20)]), 20_000);
        assert_eq!((first_kept(&draft), named(&draft)), (Some("e2"), vec!["e2", "e3"]), "{}", draft.tokens_after);
        let [Shortened { before: 40_000, .. }, Shortened { before, .. }] = draft.shortened[..] else {
            panic!("{:?}", draft.shortened)
        };
        assert!((60_000..60_010).contains(&before), "{before}");
        let sizes = sizes(&draft, &["e2", "e3"]);
        assert!(sizes[0].abs_diff(sizes[1]) < 20 && sizes[0] > 28_000, "{sizes:?}");
        assert_eq!(left(&draft, "e3").matches("left out").count(), 1);
    }
}

#[test]
fn a_hundred_tiny_messages_stay_whole() {
    let draft = due(&waiting((0..100).map(|_| user(20)).collect()), 4_000);
    assert_eq!((first_kept(&draft), targets(&draft).len(), draft.shortened.len()), (Some("e2"), 0, 0));
    let mut messages: Vec<Value> = (0..100).map(|_| user(20)).collect();
    messages.insert(50, user(30_000));
    let draft = due(&waiting(messages), 4_000);
    assert_eq!((first_kept(&draft), named(&draft)), (Some("e2"), vec!["e52"]));
}

#[test]
fn where_not_even_their_ends_fit_the_oldest_are_summarized_and_named() {
    let draft = due(&waiting((0..100).map(|_| user(200)).collect()), 4_000);
    let kept = draft.plan.kept().len();
    assert!((10..=50).contains(&kept), "{kept} are kept");
    assert!(draft.tokens_after <= 4_000, "{}", draft.tokens_after);
    assert_eq!(draft.shortened.len(), 100, "each one is named");
    let (gone, cut): (Vec<_>, Vec<_>) = draft.shortened.iter().partition(|it| it.after == 0);
    assert_eq!((gone.len(), cut.len()), (100 - kept, kept));
    assert!(draft.shortened.iter().all(|it| it.before == 200));
    assert_eq!(draft.shortened[0].entry.as_str(), "e2");
    let alone = due(&waiting(vec![user(50_000)]), 1_000);
    assert_eq!((first_kept(&alone), named(&alone)), (Some("e2"), vec!["e2"]), "the newest one stays");
}

#[test]
fn the_note_of_a_cut_names_the_size_that_the_notice_names() {
    let image = |tokens: usize| {
        let mut message = shown(40);
        message["message"]["content"][0]["text"] = words(tokens).into();
        message
    };
    let lines = waiting(vec![image(50_000), edit("e2", &words(40_000)), user(30_000), image(20_000)]);
    let scale = Scale::new(Estimator::Chars, 1.35);
    let draft = due_with(&lines, Demand { scale, ..demand(20_000) });
    assert_eq!(named(&draft), ["e2", "e4", "e5"]);
    for Shortened { entry, before, .. } in &draft.shortened {
        let text = left(&draft, entry.as_str());
        assert!(
            text.contains(&format!("of these {before} tokens")),
            "{before} in {}",
            text.split('\u{2026}').nth(1).expect("a note")
        );
    }
    assert_eq!(draft.shortened[1].before, 30_000 * 135 / 100);
}

#[test]
fn a_context_below_the_window_has_no_message_summarized_that_no_model_has_read() {
    let demand = Demand { explicit: false, keep: 1, tokens_before: 4_900, ..demand(4_000) };
    let lines = waiting((0..25).map(|_| user(195)).collect());
    let plan = plan::plan(path(&lines), demand, Arc::default()).expect("a plan");
    let draft = climb(plan, NO_RULES, &|_, _| summary("A summary."));
    let first = draft.as_ref().map(|draft| first_kept(draft).map(str::to_owned));
    assert!(matches!(first.as_ref().map(Option::as_deref), Ok(Some("e2")) | Err(NoDraft::WouldNotShrink)), "{first:?}");
}

#[test]
fn a_message_that_is_hardly_longer_than_the_room_of_each_stays_whole() {
    let draft = due(&waiting(vec![user(20_000), user(4_550)]), 10_000);
    assert_eq!((targets(&draft), named(&draft)), (vec!["e2"], vec!["e2"]));
    assert!(draft.tokens_after <= 9_000, "{}", draft.tokens_after);
}

#[test]
fn a_message_whose_cut_makes_it_no_smaller_is_named() {
    let text = format!("a{}b", " ".repeat(6_000));
    let spaces = message(json!({"role": "user", "content": [{"type": "text", "text": text}]}));
    let scale = Scale::new(Estimator::Tiktoken, 1.0);
    let draft = due_with(&waiting(vec![user(50_000), spaces, user(20)]), Demand { scale, ..demand(1_000) });
    assert_eq!((targets(&draft), named(&draft)), (vec!["e2", "e3"], vec!["e2", "e3"]));
    assert!(draft.shortened[1].after >= draft.shortened[1].before, "{:?}", draft.shortened);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_cut_makes_a_message_clearly_smaller_and_is_named(
        sizes in vec(prop_oneof![20_usize..150, 100_usize..2_000], 1..60), threshold in 1_000_u64..4_000,
    ) {
        let lines = waiting(sizes.iter().map(|size| user(*size)).collect());
        let demand = Demand { explicit: false, keep: 1, ..demand(threshold) };
        let plan = plan::plan(path(&lines), demand, Arc::default()).expect("a plan");
        let Ok(draft) = climb(plan, NO_RULES, &|_, _| summary("A summary.")).map(completed) else { return Ok(()) };
        for target in targets(&draft) {
            prop_assert!(named(&draft).contains(&target), "{} is not named", target);
            let place: usize = target[1..].parse().expect("a number");
            let (before, after) = (sizes[place - 2] * 4, left(&draft, target));
            let note = after.lines().find(|line| line.contains("left out to save room")).expect("a note");
            let gain = before.saturating_sub(after.chars().count());
            prop_assert!(gain >= (before / 10).min(1_000) && gain > note.chars().count(), "{} of {} with {}", gain, before, note);
        }
    }

    #[test]
    fn they_stay_fit_and_share_fairly(sizes in vec(prop_oneof![1_usize..60, 60_usize..20_000], 1..8), threshold in 4_000_u64..30_000) {
        let messages: Vec<Value> = sizes.iter().map(|size| user(*size)).collect();
        let draft = due(&waiting(messages), threshold);
        prop_assert_eq!(first_kept(&draft), Some("e2"));
        prop_assert!(draft.tokens_after <= threshold, "{} of {}", draft.tokens_after, threshold);
        let id = |at: usize| format!("e{}", at + 2);
        let cut: Vec<usize> = (0..sizes.len()).filter(|at| targets(&draft).contains(&id(*at).as_str())).collect();
        let named: Vec<String> = named(&draft).into_iter().map(str::to_owned).collect();
        prop_assert_eq!(named, cut.iter().map(|at| id(*at)).collect::<Vec<_>>());
        let chars: Vec<usize> = cut.iter().map(|at| left(&draft, &id(*at)).chars().count()).collect();
        let (least, most) = (chars.iter().min().copied().unwrap_or_default(), chars.iter().max().copied().unwrap_or_default());
        prop_assert!(most - least < 20, "{:?}", chars);
        let whole = (0..sizes.len()).filter(|at| !cut.contains(at)).map(|at| sizes[at] * 4).max().unwrap_or_default();
        // A cut that saves less than a tenth, or than its note, is not made.
        let hardly = (whole / 10).clamp(200, 1_000);
        prop_assert!(cut.is_empty() || whole <= most + hardly, "a whole message of {} characters beside {:?}", whole, chars);
    }
}
