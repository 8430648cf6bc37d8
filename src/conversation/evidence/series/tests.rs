//! Reports of one model about one context.

use super::*;

const PLAIN: Line = Line { factor: 1.0, overhead: 0.0, is_learned: false };

fn bounds(window: Option<u64>) -> Bounds {
    Bounds { line: PLAIN, window, estimator: Estimator::Tiktoken, is_whole: true }
}

fn whole(tokens: u64) -> Estimate {
    Estimate { all: tokens, solid: tokens }
}

fn report(prompt: u64) -> Report {
    Report { prompt, uncached: None }
}

/// The verdicts on reports of these estimates and prompts, in their order.
fn verdicts(window: Option<u64>, reports: &[(u64, u64)]) -> Vec<Verdict> {
    let mut series = Series::default();
    let judge = |&(estimate, prompt): &(u64, u64)| series.judge(whole(estimate), report(prompt), &bounds(window));
    reports.iter().map(judge).map(|standing| standing.verdict).collect()
}

#[test]
fn an_overhead_that_changes_within_a_context_is_a_jump() {
    let jumps = |reports: &[(u64, u64)]| -> Vec<i64> {
        let mut series = Series::default();
        let judge = |&(estimate, prompt): &(u64, u64)| series.judge(whole(estimate), report(prompt), &bounds(None));
        reports.iter().map(judge).map(|standing| standing.jump).collect()
    };
    let known = [(5_000, 5_100), (6_000, 6_100)];
    assert_eq!(jumps(&[known[0], known[1], (7_000, 9_500), (8_000, 10_500)]), [0, 0, 0, 2_400]);
    assert_eq!(jumps(&[(5_000, 9_100), (6_000, 10_100), (7_000, 9_000), (8_000, 10_000)]), [0, 0, 0, -2_100]);
    assert_eq!(jumps(&[(5_000, 9_100), (6_000, 10_100)]), [0, 0], "nothing was known before");
}

#[test]
fn the_first_report_near_the_estimate_counts_and_the_next_one_confirms_it() {
    use Verdict::{Believed, Unconfirmed, Waits};
    assert_eq!(
        verdicts(None, &[(10_000, 11_000), (11_000, 12_100), (12_000, 13_100)]),
        [Unconfirmed, Believed, Believed]
    );
    assert_eq!(
        verdicts(None, &[(10_000, 11_000), (10_400, 11_400), (10_900, 11_900)]),
        [Unconfirmed, Unconfirmed, Believed],
        "a small growth confirms nothing"
    );
    assert_eq!(verdicts(None, &[(10_000, 13_751), (10_000, 13_751)]), [Waits, Waits]);
    assert_eq!(verdicts(None, &[(10_000, 13_750), (10_000, 6_250)]), [Unconfirmed, Unconfirmed]);
}

#[test]
fn an_overhead_that_nobody_announced_is_believed_with_the_second_report() {
    use Verdict::{Believed, Waits};
    assert_eq!(
        verdicts(Some(200_000), &[(1_000, 21_000), (2_000, 22_100), (4_000, 24_000)]),
        [Waits, Believed, Believed]
    );
    let mut series = Series::default();
    series.judge(whole(1_000), report(21_000), &bounds(None));
    assert_eq!(series.judge(whole(2_000), report(22_000), &bounds(None)).confirms, Some((1_000, 21_000)));
}

#[test]
fn a_report_without_the_cached_part_is_refused() {
    use Verdict::{Refused, Unconfirmed};
    let reports = [(2_000, 2_000), (6_000, 2_200), (9_000, 900), (12_000, 7_199)];
    let short = Refused(Doubt::TooSmall);
    assert_eq!(verdicts(None, &reports), [Unconfirmed, short, short, short]);
    assert_eq!(verdicts(None, &[(1_999, 10), (2_000, 1_199)])[1], short);
    let images = Estimate { all: 10_000, solid: 1_000 };
    let standing = Series::default().judge(images, report(1_100), &bounds(None));
    assert_ne!(standing.verdict, short, "images and thinking may be absent from a request");
}

#[test]
fn a_report_over_a_named_window_is_refused_unless_the_estimate_is_over_it() {
    let over = Verdict::Refused(Doubt::OverWindow);
    assert_eq!(verdicts(Some(20_000), &[(13_000, 3_000_000)]), [over]);
    assert_eq!(verdicts(Some(20_000), &[(20_001, 20_100)]), [Verdict::Unconfirmed]);
    assert_eq!(verdicts(Some(20_000), &[(20_000, 20_001)]), [over]);
    assert_eq!(verdicts(None, &[(1_000, 20_000_001)]), [over]);
}

#[test]
fn a_cached_part_that_is_counted_twice_shows_in_the_other_reading() {
    let mut series = Series::default();
    let plain = bounds(None);
    for tokens in [10_000, 11_000] {
        series.judge(whole(tokens), report(tokens), &plain);
    }
    let twice = |prompt, uncached| Report { prompt, uncached: Some(uncached) };
    let standing = series.clone().judge(whole(12_000), twice(23_000, 12_000), &plain);
    assert_eq!(standing.verdict, Verdict::Refused(Doubt::CountedTwice));
    let standing = series.clone().judge(whole(12_000), twice(12_000, 1_000), &plain);
    assert_eq!(standing.verdict, Verdict::Believed, "the cached part is a part");
}

#[test]
fn sums_over_the_steps_of_a_turn_are_contradicted() {
    let mut series = Series::default();
    let doubts: Vec<_> = (0..8_u64)
        .map(|turn| {
            let size = 6_000 + turn * 3_000;
            series.judge(whole(size), report(size * 2 - 1_500), &bounds(Some(200_000)))
        })
        .collect();
    assert!(doubts.iter().all(|standing| standing.verdict != Verdict::Believed), "{doubts:?}");
    assert!(doubts.last().is_some_and(|standing| standing.doubted >= 3), "{doubts:?}");
}

#[test]
fn a_constant_is_never_believed() {
    for constant in [4_000, 30_000, 3_000_000] {
        let reports: Vec<(u64, u64)> = (0..20).map(|turn| (1_000 + turn * 800, constant)).collect();
        let believed = verdicts(None, &reports).into_iter().filter(|verdict| *verdict == Verdict::Believed).count();
        assert_eq!(believed, 0, "{constant}");
    }
}

#[test]
fn a_jump_from_a_believed_report_needs_another_after_enough_growth() {
    use Verdict::{Believed, Unconfirmed, Waits};
    let steady = [(10_000, 10_000), (11_000, 11_000)];
    let jump = |rest: &[(u64, u64)]| verdicts(None, &[&steady[..], rest].concat())[2..].to_vec();
    assert_eq!(jump(&[(12_000, 22_000), (12_499, 22_499), (12_500, 22_500)]), [Waits, Waits, Believed]);
    assert_eq!(jump(&[(12_000, 22_000), (13_000, 13_000)]), [Waits, Believed], "a single one is forgotten");
    assert_eq!(jump(&[(12_000, 22_000), (13_000, 23_501)]), [Waits, Waits], "it grows with the context");
    assert_eq!(verdicts(None, &steady), [Unconfirmed, Believed]);
}

#[test]
fn reports_that_do_not_grow_with_the_context_are_not_believed_step_by_step() {
    let stalled: Vec<(u64, u64)> = (0..12).map(|turn| (8_000 + turn * 600, 8_000)).collect();
    let believed = verdicts(None, &stalled).iter().filter(|it| **it == Verdict::Believed).count();
    assert!(believed <= 3, "{believed}");
    let grows: Vec<(u64, u64)> = (0..12).map(|turn| (8_000 + turn * 600, 8_000 + turn * 400)).collect();
    let believed = verdicts(None, &grows).iter().filter(|it| **it == Verdict::Believed).count();
    assert_eq!(believed, 11, "thin text");
}

#[test]
fn a_rewrite_begins_another_series() {
    let mut series = Series::default();
    for tokens in [40_000, 41_000] {
        series.judge(whole(tokens), report(tokens), &bounds(None));
    }
    series.rewritten();
    let old = series.judge(whole(10_000), report(41_500), &bounds(None));
    assert_eq!(old.verdict, Verdict::Waits, "the size before the rewrite");
    assert_eq!(series.judge(whole(11_000), report(11_000), &bounds(None)).verdict, Verdict::Unconfirmed);
}

#[test]
fn three_equal_reports_of_a_growing_context_show_a_server_that_cuts_prompts() {
    let saturated = |reports: &[(u64, u64)]| {
        let mut series = Series::default();
        let judge = |&(estimate, prompt): &(u64, u64)| series.judge(whole(estimate), report(prompt), &bounds(None));
        reports.iter().map(judge).fold(None, |found, standing| standing.saturated.or(found))
    };
    assert_eq!(saturated(&[(7_000, 4_096), (8_000, 4_090), (9_000, 4_080)]), Some(4_080));
    assert_eq!(saturated(&[(7_000, 4_096), (8_000, 4_090)]), None, "twice is chance");
    assert_eq!(saturated(&[(7_000, 4_096), (8_000, 3_000), (9_000, 4_090)]), None, "not in a row");
    assert_eq!(saturated(&[(7_000, 4_096), (10_000, 4_090), (13_000, 4_080), (16_000, 4_080)]), None, "the new part");
    let half = [(12_000, 2_990), (12_600, 2_990), (13_200, 2_990), (13_800, 2_990)];
    let after = |largest: u64| [&[(5_000, largest), (6_000, largest + 1_000)][..], &half].concat();
    assert_eq!(saturated(&after(4_900)), Some(5_900), "half of the window is read");
    assert_eq!(saturated(&after(5_000)), None, "a far longer prompt was read before");
    assert_eq!(saturated(&[(3_000, 1_000), (4_000, 1_000), (5_000, 1_000)]), None, "no window is that small");
}

#[test]
fn announced_instructions_move_the_expectation() {
    let mut series = Series::default();
    for tokens in [10_000, 11_000] {
        series.judge(whole(tokens), report(tokens), &bounds(None));
    }
    series.shift(8_000);
    assert_eq!(series.judge(whole(12_000), report(20_000), &bounds(None)).verdict, Verdict::Believed);
}

/// An estimate of which only a part is certainly in the request.
fn partly(all: u64, solid: u64) -> Estimate {
    Estimate { all, solid }
}

/// The standing of the last of these reports.
fn last(bounds: &Bounds, reports: &[(u64, u64)]) -> Standing {
    let mut series = Series::default();
    let judge = |&(estimate, prompt): &(u64, u64)| series.judge(whole(estimate), report(prompt), bounds);
    reports.iter().map(judge).last().expect("a report")
}

#[test]
fn a_rewrite_forgets_the_growth_and_the_cuts_before_it() {
    let believed = || {
        let mut series = Series::default();
        for tokens in [5_000, 6_000] {
            series.judge(whole(tokens), report(tokens), &bounds(None));
        }
        series.rewritten();
        series
    };
    let thin = believed().judge(whole(10_000), report(6_900), &bounds(None));
    assert_eq!(thin.verdict, Verdict::Unconfirmed, "it stalls only beside the reports before");
    let cut = |series: &mut Series, reports: &[(u64, u64)]| {
        let judge = |&(estimate, prompt): &(u64, u64)| series.judge(whole(estimate), report(prompt), &bounds(None));
        reports.iter().map(judge).last().and_then(|standing| standing.saturated)
    };
    let reports = [(20_000, 9_000), (20_600, 8_990), (21_200, 8_980)];
    assert_eq!(cut(&mut believed(), &reports), Some(8_980), "the first of them is no new part");
    let mut series = Series::default();
    assert_eq!(cut(&mut series, &[(7_000, 4_096), (8_000, 4_090)]), None);
    series.rewritten();
    assert_eq!(cut(&mut series, &[(9_000, 4_080)]), None, "the third of a row that has ended");
}

#[test]
fn the_largest_prompt_is_known_after_smaller_ones() {
    let mut series = Series::default();
    assert_eq!(series.largest(), None);
    for (tokens, rewrite) in [(5_000, false), (6_000, true), (2_000, false), (2_600, false)] {
        series.judge(whole(tokens), report(tokens), &bounds(None));
        rewrite.then(|| series.rewritten());
    }
    assert_eq!(series.largest(), Some(6_000));
}

#[test]
fn a_report_about_a_part_of_the_context_is_believed_at_once() {
    let part = Bounds { is_whole: false, ..bounds(None) };
    assert_eq!(last(&part, &[(1_000, 21_000)]).verdict, Verdict::Believed);
}

#[test]
fn believed_reports_end_a_row_of_doubted_and_of_cut_ones() {
    let row = [(10_000, 1_000), (11_000, 1_000)];
    let good = [(12_000, 12_000), (13_000, 13_000)];
    assert_eq!(last(&bounds(None), &row).doubted, 2);
    assert_eq!(last(&bounds(None), &[row, good].concat()).doubted, 0);
    let cut = [(7_000, 4_096), (8_000, 8_000), (9_000, 4_090), (10_000, 4_080)];
    assert_eq!(last(&bounds(None), &cut).saturated, None);
    let new_part = [(7_000, 4_096), (8_000, 4_090), (12_000, 4_085), (12_500, 4_080)];
    assert_eq!(last(&bounds(None), &new_part).saturated, None);
    assert_eq!(last(&bounds(None), &[(3_000, 1_000), (3_200, 1_000), (3_400, 1_000)]).saturated, None, "too small");
}

#[test]
fn the_line_of_a_model_gives_the_expectation() {
    let dense = Bounds { line: Line { factor: 1.5, overhead: 0.0, is_learned: true }, ..bounds(None) };
    assert_eq!(last(&dense, &[(10_000, 15_000)]).verdict, Verdict::Unconfirmed);
    assert_eq!(last(&dense, &[(10_000, 15_000), (11_000, 16_500), (21_000, 31_500)]).verdict, Verdict::Believed);
    let learned = Bounds { line: Line { is_learned: true, ..PLAIN }, ..bounds(None) };
    assert_eq!(last(&learned, &[(10_000, 12_000)]).verdict, Verdict::Waits, "15 % are allowed");
    assert_eq!(last(&bounds(None), &[(10_000, 12_000)]).verdict, Verdict::Unconfirmed, "35 % are allowed");
    let twice = Bounds { line: Line { factor: 2.0, ..PLAIN }, ..bounds(None) };
    assert_eq!(last(&twice, &[(10_000, 50_000), (11_000, 52_700)]).verdict, Verdict::Believed, "a dense growth");
}

#[test]
fn estimates_by_characters_allow_larger_deviations() {
    let chars = Bounds { estimator: Estimator::Chars, ..bounds(None) };
    let known = [(10_000, 10_000), (11_000, 11_000), (12_000, 14_500)];
    assert_eq!(last(&chars, &known).verdict, Verdict::Believed);
    assert_eq!(last(&bounds(None), &known).verdict, Verdict::Waits);
    let jump = [(10_000, 30_000), (11_000, 32_500)];
    assert_eq!(last(&chars, &jump).verdict, Verdict::Believed);
    assert_eq!(last(&bounds(None), &jump).verdict, Verdict::Waits);
    assert_eq!(last(&bounds(None), &[(10_000, 30_000), (11_000, 31_450)]).verdict, Verdict::Believed, "separators");
    assert_eq!(last(&bounds(None), &[(1_000, 1_000), (1_500, 1_500), (2_000, 2_450)]).verdict, Verdict::Waits);
}

#[test]
fn another_reading_is_a_cached_part_counted_twice_only_where_it_fits() {
    let mut series = Series::default();
    for tokens in [10_000, 11_000] {
        series.judge(whole(tokens), report(tokens), &bounds(None));
    }
    let verdict = |prompt, uncached| {
        series.clone().judge(whole(12_000), Report { prompt, uncached: Some(uncached) }, &bounds(None)).verdict
    };
    assert_eq!(verdict(23_000, 12_000), Verdict::Refused(Doubt::CountedTwice));
    assert_eq!(verdict(9_000, 12_000), Verdict::Waits, "the other reading is larger");
    assert_eq!(verdict(23_000, 18_000), Verdict::Waits, "the other reading does not fit either");
    assert_eq!(verdict(25_000, 12_000), Verdict::Waits, "no cached part is larger than the prompt");
}

#[test]
fn reports_stall_by_their_growth_since_an_older_one() {
    use Verdict::{Believed, Waits};
    let known = [(8_000, 8_000), (9_000, 9_000)];
    let after = |rest: &[(u64, u64)]| last(&bounds(None), &[&known[..], rest].concat()).verdict;
    assert_eq!(after(&[(9_500, 9_000)]), Believed, "the growth is small");
    assert_eq!(after(&[(10_600, 9_000)]), Waits);
    assert_eq!(after(&[(10_600, 9_100)]), Waits);
    assert_eq!(after(&[(10_600, 9_600)]), Believed, "thin text");
    assert_eq!(after(&[(9_600, 9_000), (10_200, 9_000), (10_600, 9_000)]), Waits, "in small steps");
    let long: Vec<(u64, u64)> = (10..=20).map(|step| (step * 1_000, step * 1_000)).collect();
    let stalled = [20_600, 21_200, 21_800, 22_400, 23_000].map(|estimate| (estimate, 20_000));
    assert_eq!(after(&[&long[..], &stalled].concat()), Waits, "the growth of long ago does not count");
    let less = [(5_000, 9_100), (6_000, 10_100), (7_000, 9_000), (8_000, 10_000), (8_600, 10_600)];
    assert_eq!(last(&bounds(None), &less).verdict, Believed, "a confirmed jump begins the comparison anew");
}

#[test]
fn a_report_that_waits_is_confirmed_contradicted_or_forgotten() {
    use Verdict::{Believed, Unconfirmed, Waits};
    let forgotten = [(10_000, 10_000), (11_000, 11_000), (12_000, 22_000), (13_000, 13_000), (14_000, 24_000)];
    assert_eq!(verdicts(None, &forgotten)[2..], [Waits, Believed, Waits]);
    assert_eq!(
        verdicts(None, &[(10_000, 13_751), (11_000, 14_750), (12_000, 15_750)]),
        [Waits, Unconfirmed, Believed],
        "one far from the estimate confirms none near it"
    );
    assert_eq!(
        verdicts(None, &[(10_000, 13_751), (10_300, 13_800), (10_850, 14_350)]),
        [Waits, Unconfirmed, Believed],
        "one near the estimate takes its place"
    );
    assert_eq!(
        verdicts(None, &[(10_000, 11_000), (10_400, 11_400), (10_700, 11_700)]),
        [Unconfirmed, Unconfirmed, Believed],
        "the growth counts from the first one"
    );
    let doubt = |reports: &[(u64, u64)]| last(&bounds(None), reports).doubt;
    assert_eq!(doubt(&[(10_000, 30_000), (10_200, 50_000)]), Some(Doubt::Contradicted));
    assert_eq!(doubt(&[(10_000, 30_000), (10_100, 30_600)]), None, "about the same size");
    let mut series = Series::default();
    series.judge(whole(10_000), report(30_000), &bounds(None));
    let with_images = series.judge(partly(11_000, 10_100), report(32_000), &bounds(None));
    assert_eq!((with_images.verdict, with_images.doubt), (Waits, None), "images may have grown");
}
