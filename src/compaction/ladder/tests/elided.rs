//! Tests of texts that lose their middle.

use super::*;
use crate::{
    compaction::{draft::Shortened, ladder::elide::ends},
    conversation::{entry::Stamp, spending::Spending},
};
use proptest::{collection::vec, prelude::*};

/// A result of these lines.
fn printed(call: &str, lines: &[String]) -> Value {
    message(json!({"role": "toolResult", "toolCallId": call, "toolName": "r", "isError": false,
        "content": [{"type": "text", "text": lines.join("\n")}]}))
}

/// So many different lines of ten tokens.
fn lines_of(name: &str, count: usize) -> Vec<String> {
    (0..count).map(|at| format!("{name} {at:06} {}", "x".repeat(31 - name.len()))).collect()
}

/// A conversation that ends in results of so many lines, which no model has read.
fn batch(counts: &[usize]) -> Vec<Value> {
    let ids: Vec<String> = (0..counts.len()).map(|at| format!("c{at}")).collect();
    let mut lines = vec![user(500), answer(500), user(10), calls(&ids)];
    lines.extend(ids.iter().zip(counts).map(|(id, count)| printed(id, &lines_of(id, *count))));
    lines
}

/// The draft of a compaction that is due.
fn due(lines: &[Value], threshold: u64) -> Draft {
    let mut plan = keeping(lines, 2, demand(threshold));
    plan.demand.explicit = false;
    climbed(plan, &NO_PRUNING)
}

fn edited_chars(draft: &Draft, entry: &str) -> usize {
    left(draft, entry).chars().count()
}

#[test]
fn an_oversized_result_that_no_model_has_read_fills_the_target() {
    let draft = due(&batch(&[9_000]), 50_000);
    assert!(draft.tokens_after < 2_000, "the rung leaves as much of any result: {}", draft.tokens_after);
    let beside = draft.tokens_after - Estimator::Chars.of_text(&left(&draft, "e4"));
    let draft = completed(draft);
    // The target is 40,000 tokens. A step of a level is one in 256, and two lines are left out as wholes.
    assert!((39_800..=40_000).contains(&draft.tokens_after), "{}", draft.tokens_after);
    let [Shortened { entry, before, after }] = &draft.shortened[..] else { panic!("{:?}", draft.shortened) };
    assert_eq!((entry.as_str(), *before, *after), ("e4", 90_000, draft.tokens_after - beside));
    let text = left(&draft, "e4");
    let known = lines_of("c0", 9_000);
    assert!(text.starts_with(&known[..1_000].join("\n")) && text.ends_with(&known[8_500..].join("\n")));
    let lines: Vec<&str> = text.lines().collect();
    let gaps = lines.iter().filter(|line| known.iter().all(|it| it != *line)).count();
    assert_eq!(gaps, 1, "lines are whole, but the note about the middle");
}

#[test]
fn results_of_one_batch_share_the_room_and_small_ones_stay_whole() {
    let draft = completed(due(&batch(&[9_000, 3_000, 300, 9_000, 50]), 50_000));
    assert!((39_500..=40_000).contains(&draft.tokens_after), "{}", draft.tokens_after);
    let mut cut: Vec<&str> = draft.shortened.iter().map(|it| it.entry.as_str()).collect();
    cut.sort_unstable();
    assert_eq!((cut, targets(&draft).len()), (vec!["e4", "e5", "e7"], 3), "e6 has its text again");
    let sizes = ["e4", "e5", "e7"].map(|entry| edited_chars(&draft, entry));
    let (least, most) = (sizes.iter().min().expect("one"), sizes.iter().max().expect("one"));
    assert!(most - least <= 200, "{sizes:?}");
}

#[test]
fn a_result_that_a_model_has_read_and_one_that_is_pinned_are_not_restored() {
    let mut lines = batch(&[9_000, 9_000]);
    lines.extend([answer(10), call(&["d"]), printed("d", &lines_of("d", 9_000)), pin("e4")]);
    let mut plan = keeping(&lines, 2, demand(250_000));
    plan.demand.explicit = false;
    let draft = completed(climbed(plan, &NO_PRUNING));
    assert_eq!(edited_chars(&draft, "e5") / 200, 20, "4,000 characters are left");
    let named: Vec<&str> = draft.shortened.iter().map(|it| it.entry.as_str()).collect();
    assert_eq!((named, targets(&draft)), (vec![], vec!["e5"]), "the unread one has its text again");
}

#[test]
fn the_room_is_that_beside_the_summary_that_the_draft_has_in_the_end() {
    let draft = due(&batch(&[9_000]), 50_000);
    let summary = words(4_000);
    let with = draft.clone().with_summary(
        crate::redact::Clean::assembled(summary),
        None,
        crate::summary::made::Made::default(),
    );
    let (without, with) = (completed(draft), completed(with));
    assert!((39_800..=40_000).contains(&with.tokens_after), "{}", with.tokens_after);
    assert!(edited_chars(&without, "e4") - edited_chars(&with, "e4") > 15_000);
}

#[test]
fn a_draft_stays_smaller_than_the_context_before() {
    let lines = batch(&[500]);
    let mut plan = keeping(&lines, 2, demand(10_000));
    (plan.demand.tokens_before, plan.demand.explicit) = (0, false);
    let draft = climbed(plan, &NO_PRUNING);
    let cut = elide::without_oversized(&draft);
    assert!(cut.tokens_after < draft.tokens_after);
    let before = size_before(&draft.plan);
    let restored = completed(Draft { summary: summary(&words(1_500)), ..cut.clone() }.with_edits(cut.edits.clone()));
    assert!(restored.tokens_after < before, "{} of {before}", restored.tokens_after);
}

#[test]
fn another_compaction_of_the_same_results_leaves_their_cuts_and_names_them_no_more() {
    let draft = completed(due(&batch(&[9_000, 9_000]), 50_000));
    let stamp = Stamp { id: "c".into(), timestamp: String::new() };
    let path = draft.plan.path().clone();
    let parent = path.last().map(|leaf| leaf.id.clone());
    let line = draft.line(&stamp, parent.as_ref(), &path, None, draft.tokens_after, Spending::default());
    let path = path.with(Arc::new(Entry::parse(line.into()).expect("an entry")));
    let again = |threshold: u64| {
        let demand = Demand { explicit: false, insists: true, keep: 1, ..demand(threshold) };
        let plan = plan::plan(path.clone(), Demand { tokens_before: 200_000, ..demand }, Arc::default());
        completed(climbed(plan.expect("a plan"), &NO_PRUNING))
    };
    let same = again(50_000);
    assert_eq!((same.shortened.as_slice(), &same.edits), (&[][..], &draft.edits));
    let smaller = again(20_000);
    assert!((15_800..=16_000).contains(&smaller.tokens_after), "{}", smaller.tokens_after);
    for entry in ["e4", "e5"] {
        let text = left(&smaller, entry);
        assert_eq!((text.matches("left out").count(), text.matches("of these 90000 tokens").count()), (1, 1));
    }
    let before: Vec<u64> = smaller.shortened.iter().map(|it| it.before).collect();
    assert_eq!(before, [90_000, 90_000]);
}

#[test]
fn unread_results_are_cut_before_they_leave_and_leave_with_a_call_that_is_too_large() {
    let mut lines = batch(&[150, 150, 150]);
    let small = completed(due(&lines, 2_500));
    assert_eq!((first_kept(&small), small.shortened.len()), (Some("e2"), 3), "{}", small.tokens_after);
    assert!(small.tokens_after > 2_000, "{}", small.tokens_after);
    let arguments = json!({"text": words(5_000)});
    lines[3]["message"]["content"][0]["arguments"] = arguments;
    let large = completed(due(&lines, 2_500));
    assert_eq!((first_kept(&large), large.shortened.len()), (None, 0));
}

#[test]
fn unread_results_are_not_pruned() {
    let prune =
        PruneSettings { protect_tokens: 0, minimum_savings: 0, protected_tools: Vec::new(), cache_seconds: 300 };
    let mut plan = keeping(&batch(&[9_000, 9_000]), 2, demand(50_000));
    plan.demand.explicit = false;
    let draft = completed(climbed(plan, &prune));
    assert_eq!(draft.shortened.len(), 2);
    assert!(["e4", "e5"].iter().all(|entry| left(&draft, entry).starts_with("c")));
}

#[test]
fn a_result_gets_its_text_and_not_its_images_back() {
    let mut lines = batch(&[9_000, 300]);
    let image = json!({"type": "image", "mimeType": "image/png", "data": "A".repeat(40)});
    lines[5]["message"]["content"].as_array_mut().expect("blocks").push(image);
    lines.push(shown(40));
    let draft = due(&lines, 50_000);
    let draft = completed(with_edits(&draft, &image_edits(&draft, 1)));
    assert_eq!(left(&draft, "e5"), lines_of("c1", 300).join("\n"));
    let content = serde_json::to_string(&draft.edits).expect("JSON");
    assert!(!content.contains("image/png"), "the image left");
}

/// Lines of any length, in characters of one to four bytes.
fn any_text() -> impl Strategy<Value = String> {
    let line = (
        prop_oneof![Just("a"), Just("ä"), Just("€"), Just("😀"), Just("b c")],
        prop_oneof![0_usize..90, 0_usize..1_600],
    );
    let text = vec(line.prop_map(|(part, times)| part.repeat(times)), 1..60).prop_map(|lines| lines.join("\n"));
    (text, any::<bool>()).prop_map(|(text, ends)| if ends { text + "\n" } else { text })
}

proptest! {
    #[test]
    fn ends_are_lines_and_grow_with_their_limit(text in any_text(), most in 3_usize..6_000, more in 0_usize..2_000) {
        let length = text.chars().count();
        let both = |most| ends(&text, length, most);
        prop_assert_eq!(both(length), None);
        let Some((head, tail)) = both(most) else { return Ok(()) };
        prop_assert!(text.starts_with(head) && text.ends_with(tail));
        let (of_head, of_tail) = (head.chars().count(), tail.chars().count());
        let (front, back) = (most - most / 3, most / 3);
        prop_assert!(of_head <= front && of_tail <= back);
        // Less than a line is lost by whole lines.
        prop_assert!(of_head + elide::LONGEST_LINE >= front && of_tail + elide::LONGEST_LINE >= back, "{} {}", of_head, of_tail);
        let long = |line: &str| line.chars().count() > elide::LONGEST_LINE;
        let line_at = |at: usize| {
            let start = text[..at].rfind('\n').map_or(0, |before| before + 1);
            (start, text[at..].find('\n').map_or(text.len(), |after| at + after))
        };
        let cut = head.len();
        let (start, end) = line_at(cut);
        prop_assert!(cut == start || cut == end || start == 0 || long(&text[start..end]), "the head ends in a line");
        let cut = text.len() - tail.len();
        let (start, end) = line_at(cut);
        prop_assert!(cut == start || cut == end || end + 1 >= text.len() || long(&text[start..end]), "the tail begins in a line");
        if let Some((longer_head, longer_tail)) = both(most + more) {
            prop_assert!(longer_head.len() >= head.len() && longer_tail.len() >= tail.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn unread_results_fit_their_room_and_grow_with_it(
        texts in vec(any_text(), 1..5),
        threshold in 3_000_u64..30_000,
        limits in [1_000_u64..40_000, 1_000_u64..40_000],
    ) {
        let ids: Vec<String> = (0..texts.len()).map(|at| format!("c{at}")).collect();
        let mut lines = vec![user(500), answer(500), user(10), calls(&ids)];
        lines.extend(ids.iter().zip(&texts).map(|(id, text)| printed(id, std::slice::from_ref(text))));
        let draft = due(&lines, threshold);
        let goal = draft.tokens_after.max(goal(&draft.plan));
        let done = completed(draft.clone());
        let room = if draft.tokens_after > self::goal(&draft.plan) { threshold * 9 / 10 } else { goal };
        prop_assert!((draft.tokens_after..=room.max(draft.tokens_after)).contains(&done.tokens_after));
        let cut = with_edits(&draft, &elide::cut_to(&draft, 0).edits);
        let [less, more] = { let mut limits = limits; limits.sort_unstable(); limits };
        let [small, large] = [less, more].map(|limit| elide::restored(cut.clone(), &[], limit));
        for (limit, draft) in [(less, &small), (more, &large)] {
            prop_assert!(draft.tokens_after <= limit.max(cut.tokens_after));
        }
        prop_assert!(small.tokens_after <= large.tokens_after);
        let chars = |draft: &Draft, at: usize| {
            let id = format!("e{}", at + 4);
            if targets(draft).contains(&id.as_str()) { edited_chars(draft, &id) } else { usize::MAX }
        };
        prop_assert!((0..texts.len()).all(|at| chars(&small, at) <= chars(&large, at)));
    }
}
