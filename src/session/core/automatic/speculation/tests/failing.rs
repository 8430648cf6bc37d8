//! Summaries ahead that come to nothing.

use super::*;
use crate::session::core::standing::Standing;
use crate::{
    ask::{purpose::Purpose, request::Update, spent::Spent},
    compaction::fruitless,
    conversation::{message::Usage as Tokens, spending::Trigger},
    protocol::{SessionConfigure, notices::NoticeCode},
    session::jobs::progress::Progress,
    summary::model::writer::Step,
};

/// The cost of a request in which so many tokens were sent. Its provider reports one.
fn lied(id: &OperationId, sent: u64) -> Input {
    let usage = Tokens { input: 1, total: 1, ..Tokens::default() };
    let (purpose, model) = (Purpose::Compaction, ModelRef::parse("p/m").expect("a name"));
    let spent = Spent { purpose, model, trigger: Trigger::Speculative, usage, estimated: false, sent };
    Input::Reported(id.clone(), Progress::Summary(Step::Request(purpose, Update::Spent(spent))))
}

/// A request of so many tokens failed, and its provider may have read it.
fn at_stake(id: &OperationId, tokens: u64) -> Input {
    Input::Reported(id.clone(), Progress::Summary(Step::Request(Purpose::Compaction, Update::AtStake(tokens))))
}

/// Orders the draft of a plan, and returns its order.
fn drafting(held: &mut Held, order: PlanOrder) -> DraftOrder {
    let id = order.id.clone();
    let made = PlanMade { candidates: vec![Ok(candidate(Way::Client))], ..plan(order) };
    let Job::Draft(order) = job(held.feed(Input::Planned(id, Ok(made)))) else { unreachable!("a draft") };
    order
}

/// The models write nothing that can be used.
fn refuse(held: &mut Held, order: DraftOrder) -> Vec<Effect> {
    let id = order.id.clone();
    let mut draft = draft(order);
    draft.made.rejected.push(crate::summary::made::Rejected::model(None, "it has no headings".to_owned()));
    held.feed(Input::Drafted(id, Ok(draft)))
}

fn codes(effects: &[Effect]) -> Vec<NoticeCode> {
    let code = |event: &Event| if let Event::Notice { code, .. } = event { Some(*code) } else { None };
    events(effects).filter_map(code).collect()
}

fn tokens(held: &Held) -> u64 {
    held.core.base.state.measure().context_tokens
}

/// Tokens that the next one may take.
fn tokens_left(held: &Held) -> u64 {
    held.core.upkeep.ahead.tokens(&Standing::of(&held.core).facts())
}

#[test]
fn a_refused_one_waits_for_a_quarter_more_and_the_second_is_told() {
    let mut held = near_of(&messages(), json!({"thresholdTokens": 14_000}));
    let order = planning(say(&mut held, 1, long(3_000))).expect("a summary begins ahead");
    let begun = tokens(&held);
    let order = drafting(&mut held, order);
    let span = held.core.upkeep.ahead.making.as_ref().expect("one is made").begun.span;
    assert!(span > 4_000, "{span}");
    assert_eq!(codes(&refuse(&mut held, order)), []);
    let until = begun + span / 4;
    let said = why(&mut held, 3);
    assert!(said.contains(&format!("below {until} tokens")) && said.contains("it has no headings"), "{said}");
    // A message of the user does not lift it.
    let mut number = 4;
    while tokens(&held) + 500 < until {
        assert!(planning(say(&mut held, number, long(250))).is_none(), "{} of {until}", tokens(&held));
        number += 1;
    }
    let order = planning(say(&mut held, number, long(700))).expect("the next one");
    assert!(tokens(&held) >= until && tokens(&held) < 14_000);
    let order = drafting(&mut held, order);
    assert_eq!(codes(&refuse(&mut held, order)), [NoticeCode::SpeculationRests]);
    assert!(planning(say(&mut held, number + 1, user("go on"))).is_none());
}

#[test]
fn the_text_about_the_rest_names_the_bound_its_end_and_the_error() {
    let mut held = near();
    let order = ask(&mut held);
    held.feed(at_stake(&order.id, 2 * WINDOW - 1_000));
    refuse(&mut held, order);
    let said = why(&mut held, 3);
    for part in ["took 47000 of 48000 tokens", "No setting raises", "may begin at", "UTC", "it has no headings"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("made ahead below"), "{said}");
}

#[test]
fn a_failed_one_waits_too_and_other_settings_let_the_next_one_begin() {
    let mut held = near();
    let order = ask(&mut held);
    held.feed(Input::Drafted(order.id, Err(Failure::Internal("the client answers errors".to_owned()))));
    for number in 2..20 {
        assert!(planning(say(&mut held, number, user("go on"))).is_none(), "message {number}");
    }
    set(&mut held, json!({"keepRecentTokens": 600}));
    assert!(planning(say(&mut held, 20, user("go on"))).is_some());
}

#[test]
fn a_success_ends_the_row() {
    let mut held = near();
    let order = ask(&mut held);
    refuse(&mut held, order);
    set(&mut held, json!({"keepRecentTokens": 600}));
    let order = planning(say(&mut held, 2, user("go on"))).expect("the next one");
    let order = drafting(&mut held, order);
    held.feed(Input::Drafted(order.id.clone(), Ok(written_by_model(order))));
    set(&mut held, json!({"keepRecentTokens": 700}));
    let order = planning(say(&mut held, 3, user("go on"))).expect("the next one");
    let order = drafting(&mut held, order);
    assert_eq!(codes(&refuse(&mut held, order)), [], "it is the first again");
}

#[test]
fn a_success_lets_the_next_one_begin_with_the_settings_that_failed() {
    let mut held = near();
    let order = ask(&mut held);
    refuse(&mut held, order);
    set(&mut held, json!({"keepRecentTokens": 600}));
    let order = planning(say(&mut held, 2, user("go on"))).expect("the next one");
    let order = drafting(&mut held, order);
    held.feed(Input::Drafted(order.id.clone(), Ok(written_by_model(order))));
    set(&mut held, json!({}));
    assert!(planning(say(&mut held, 3, user("go on"))).is_some());
}

#[test]
fn a_written_compaction_ends_the_rest_also_over_a_reopening() {
    for reopens in [false, true] {
        let mut held = near();
        let order = ask(&mut held);
        let begun = held.core.upkeep.ahead.making.as_ref().expect("one is made").begun;
        refuse(&mut held, order);
        record(&mut held);
        let order = held.begin_draft(2);
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        let mut held = if reopens { reopened(held) } else { held };
        let mut number = 3;
        while planning(say(&mut held, number, long(250))).is_none() {
            number += 1;
        }
        let (size, until) = (tokens(&held), begun.until(THRESHOLD));
        assert!(size < until, "{size} of {until}, {reopens}");
    }
}

#[test]
fn a_request_of_a_summary_that_a_compaction_has_taken_over_has_a_use() {
    for (report, costs) in [(lied as fn(&OperationId, u64) -> Input, 1), (at_stake, 0)] {
        let mut held = near();
        let order = ask(&mut held);
        // Over its threshold the context goes on for a while without the summary.
        let mut number = 2;
        while started(&say(&mut held, number, long(3_500))).is_empty() {
            number += 1;
        }
        assert!(held.core.base.work.drafting(&order.id).is_some(), "a compaction begins with it");
        held.feed(report(&order.id, 5_000));
        assert_eq!(tokens_left(&held), fruitless::most(WINDOW));
        assert_eq!(held.core.base.costs.len(), costs, "no failure of a summary ahead is recorded");
    }
}

#[test]
fn a_context_that_is_larger_than_the_bound_is_no_reason_without_tokens() {
    let mut held = near();
    set_in(&mut held, 2_000, json!({}));
    assert!(tokens(&held) > fruitless::most(2_000));
    let said = why(&mut held, 1);
    assert!(!said.contains("No summary is made ahead"), "{said}");
}

#[test]
fn another_model_lets_the_next_one_begin_also_over_a_reopening() {
    for reopens in [false, true] {
        let mut held = near();
        let order = ask(&mut held);
        refuse(&mut held, order);
        record(&mut held);
        held.edit::<SessionConfigure>(2, json!({"model": "p/other"}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        let mut held = if reopens { reopened(held) } else { held };
        assert!(planning(say(&mut held, 3, user("go on"))).is_some(), "{reopens}");
    }
}

#[test]
fn the_rest_is_told_once_and_equal_settings_do_not_end_it() {
    let mut held = near();
    let mut order = ask(&mut held);
    for (number, told) in [(2, vec![]), (3, vec![NoticeCode::SpeculationRests]), (4, vec![])] {
        assert_eq!(codes(&refuse(&mut held, order)), told, "{number}");
        set(&mut held, json!({"keepRecentTokens": 600 + number}));
        let next = planning(say(&mut held, number, user("go on"))).expect("the next one");
        order = drafting(&mut held, next);
    }
    refuse(&mut held, order);
    // As a settings file that is read again.
    set(&mut held, json!({"keepRecentTokens": 604}));
    assert!(planning(say(&mut held, 5, user("go on"))).is_none());
}

#[test]
fn a_request_of_a_summary_that_is_being_made_has_a_use_until_it_ends() {
    let mut held = near();
    let order = ask(&mut held);
    held.feed(lied(&order.id, 5_000));
    assert_eq!(tokens_left(&held), fruitless::most(WINDOW));
    refuse(&mut held, order);
    assert_eq!(tokens_left(&held), fruitless::most(WINDOW) - 5_000);
}

/// Appends short messages while other settings make each summary stale, and reports a request of each one by `report`. With
/// `late` the report follows the end of its summary. Returns the session and the tokens that were sent.
fn spend(report: fn(&OperationId, u64) -> Input, late: bool) -> (Held, u64) {
    let mut held = near();
    let (mut sent, mut ended) = (0, None);
    for number in 1..200 {
        set(&mut held, json!({"keepRecentTokens": 500 + number}));
        let planned = planning(say(&mut held, number, user("go")));
        if let Some((id, span)) = ended.take() {
            held.feed(report(&id, span));
        }
        let Some(order) = planned else { continue };
        let order = drafting(&mut held, order);
        let span = tokens(&held);
        // The report of the summary before this one came when this one had begun.
        let unreported = if late { span } else { 0 };
        assert!(
            order.tokens.is_some_and(|most| sent + most <= 2 * WINDOW + unreported),
            "{:?} beside {sent}",
            order.tokens
        );
        match late {
            true => ended = Some((order.id, span)),
            false => drop(held.feed(report(&order.id, span))),
        }
        sent += span;
    }
    // The last one is thrown away, too.
    set(&mut held, json!({"keepRecentTokens": 499}));
    assert!(say(&mut held, 200, user("go")).len() > 1);
    (held, sent)
}

#[test]
fn those_that_come_to_nothing_take_at_most_two_windows_an_hour_however_little_is_reported() {
    for report in [lied, at_stake] {
        let (mut held, sent) = spend(report, false);
        assert!(sent > WINDOW && sent <= fruitless::most(WINDOW), "{sent}");
        let said = why(&mut held, 201);
        assert!(said.contains(&format!("took {sent} of {} tokens", fruitless::most(WINDOW))), "{said}");
        held.at.now += Duration::from_secs(3_661);
        assert!(planning(say(&mut held, 202, user("go on"))).is_some(), "the hour is over");
    }
}

#[test]
fn a_request_that_reports_after_the_end_of_its_summary_counts_too() {
    for report in [lied, at_stake] {
        let (mut held, sent) = spend(report, true);
        assert!(sent > WINDOW && sent <= fruitless::most(WINDOW) + WINDOW, "{sent}");
        let said = why(&mut held, 201);
        assert!(said.contains(&format!("took {sent} of {} tokens", fruitless::most(WINDOW))), "{said}");
    }
}

#[test]
fn a_failed_request_that_may_have_been_read_is_no_cost() {
    let mut held = near();
    let order = ask(&mut held);
    held.feed(at_stake(&order.id, 1_000));
    held.feed(Input::Drafted(order.id, Err(Failure::Internal("the provider failed".to_owned()))));
    assert_eq!(held.core.base.costs.spent(&Standing::of(&held.core).facts()).total.requests, 0);
    let work = log_work(held.turn()).expect("a write");
    assert_eq!(written(Some(&work)), ["custom"], "one entry, and no cost");
    held.back(work);
    assert_eq!(
        (held.core.base.costs.spent(&Standing::of(&held.core).facts()).total.requests, held.core.base.costs.len()),
        (0, 0)
    );
    assert_eq!(tokens_left(&held), fruitless::most(WINDOW) - 1_000);
}

/// The session, read again from its file.
fn reopened(mut held: Held) -> Held {
    record(&mut held);
    let mut held = held.reopened();
    set(&mut held, json!({}));
    held
}

#[test]
fn a_failure_is_kept_over_a_reopening_with_its_tokens_its_rest_and_its_number() {
    let fail = |held: &mut Held, order: DraftOrder| {
        held.feed(at_stake(&order.id, 1_000));
        held.feed(Input::Drafted(order.id, Err(Failure::Internal("status 500".to_owned()))))
    };
    let mut held = near();
    let order = ask(&mut held);
    let before = held.core.base.state.visible_leaf();
    assert_eq!(codes(&fail(&mut held, order)), []);
    record(&mut held);
    assert_eq!(held.core.base.state.visible_leaf(), before);
    let mut held = reopened(held);
    for number in 2..6 {
        assert!(planning(say(&mut held, number, user("go on"))).is_none(), "message {number}");
    }
    assert_eq!(tokens_left(&held), fruitless::most(WINDOW) - 1_000);
    let said = why(&mut held, 6);
    assert!(said.contains("because the last one failed") && said.contains("status 500"), "{said}");
    // Other settings let the next one begin. It is the second in a row.
    set(&mut held, json!({"keepRecentTokens": 600}));
    let order = planning(say(&mut held, 7, user("go on"))).expect("the next one");
    let order = drafting(&mut held, order);
    assert_eq!(codes(&fail(&mut held, order)), [NoticeCode::SpeculationRests]);
    let mut held = reopened(held);
    assert!(planning(say(&mut held, 8, user("go on"))).is_some(), "made with other settings");
    assert_eq!(tokens_left(&held), fruitless::most(WINDOW) - 2_000);
}

#[test]
fn an_answer_of_a_model_since_the_failure_ends_the_row_over_a_reopening() {
    let mut held = near();
    let order = ask(&mut held);
    refuse(&mut held, order);
    set(&mut held, json!({"keepRecentTokens": 600}));
    let order = planning(say(&mut held, 2, user("go on"))).expect("the next one");
    let order = drafting(&mut held, order);
    held.feed(lied(&order.id, 1));
    held.feed(Input::Drafted(order.id.clone(), Ok(written_by_model(order))));
    let mut held = reopened(held);
    set(&mut held, json!({"keepRecentTokens": 700}));
    let order = planning(say(&mut held, 3, user("go on"))).expect("the next one");
    let order = drafting(&mut held, order);
    assert_eq!(codes(&refuse(&mut held, order)), [], "it is the first again");
}

#[test]
fn failed_requests_take_at_most_two_windows_an_hour_over_reopenings() {
    let mut held = near();
    let mut sent = 0;
    for number in 1..60 {
        held = reopened(held);
        set(&mut held, json!({"keepRecentTokens": 500 + number}));
        let Some(order) = planning(say(&mut held, 1, user("go"))) else { continue };
        let order = drafting(&mut held, order);
        let span = tokens(&held);
        held.feed(at_stake(&order.id, span));
        // The process dies before the end of the summary.
        sent += span;
    }
    assert!(sent > WINDOW && sent <= fruitless::most(WINDOW), "{sent}");
    let said = why(&mut held, 2);
    assert!(said.contains("No setting raises") && said.contains("may begin at"), "{said}");
    held = reopened(held);
    held.at.wall += Duration::from_secs(3_661);
    assert!(planning(say(&mut held, 2, user("go on"))).is_some(), "the hour is over");
}

#[test]
fn a_failure_is_not_recorded_in_a_session_that_is_only_read() {
    let mut held = near();
    let order = ask(&mut held);
    held.feed(at_stake(&order.id, 1_000));
    record(&mut held);
    let mut held = held.reopened_read_only();
    held.feed(at_stake(&order.id, 1_000));
    assert!(log_work(held.turn()).is_none());
}

#[test]
fn a_compaction_carries_the_tokens_that_came_to_nothing_before_it() {
    for (minutes, begins) in [(10, false), (61, true)] {
        let at = Held::new().at.wall - jiff::SignedDuration::from_mins(minutes);
        let carried = json!({"unused": [[at.as_millisecond(), 2 * WINDOW - 1_000]]});
        let mut lines = vec![
            line("m", None, "message", json!({"message": {"role": "user", "content": "go"}})),
            line(
                "c",
                Some("m"),
                "compaction",
                json!({"summary": "s", "firstKeptEntryId": "m", "tokensBefore": 9,
                    "preserveData": {"abridged": {"entryId": "c", "spent": carried}}}),
            ),
        ];
        let mut first: Value = serde_json::from_str(&messages()[0]).expect("JSON");
        first["parentId"] = "c".into();
        lines.push(first.to_string());
        lines.extend(messages().into_iter().skip(1));
        let mut held = near_of(&lines, json!({}));
        assert_eq!(
            held.core.upkeep.ahead.unused_by_wall(&Standing::of(&held.core).facts()).is_empty(),
            begins,
            "{minutes}"
        );
        assert_eq!(planning(say(&mut held, 1, user("go on"))).is_some(), begins, "{minutes}");
    }
}

#[test]
fn costs_before_a_compaction_are_those_that_it_carries() {
    let mut held = Held::new();
    let usage = json!({"input": 2 * WINDOW - 1_000, "output": 0, "cacheRead": 0, "cacheWrite": 0});
    let cost = json!({"kind": "compaction", "purpose": "compaction", "trigger": "speculative", "provider": "p",
        "model": "m", "usage": usage});
    let mut cost: Value = serde_json::from_str(&line("cost", Some("m"), "usage", cost)).expect("JSON");
    cost["timestamp"] = held.at.wall.to_string().into();
    let compaction = json!({"summary": "s", "firstKeptEntryId": "m", "tokensBefore": 9,
        "preserveData": {"abridged": {"entryId": "c", "spent": {"unused": []}}}});
    let mut first: Value = serde_json::from_str(&messages()[0]).expect("JSON");
    first["parentId"] = "c".into();
    let mut lines = vec![
        line("m", None, "message", json!({"message": {"role": "user", "content": "go"}})),
        cost.to_string(),
        line("c", Some("cost"), "compaction", compaction),
        first.to_string(),
    ];
    lines.extend(messages().into_iter().skip(1));
    held = near_of(&lines, json!({}));
    assert!(planning(say(&mut held, 1, user("go on"))).is_some());
}

#[test]
fn costs_of_the_file_count_where_they_came_to_nothing_within_the_hour() {
    for (trigger, minutes, begins) in [("speculative", 10, false), ("speculative", 61, true), ("threshold", 10, true)] {
        let mut held = Held::new();
        let at = held.at.wall - jiff::SignedDuration::from_mins(minutes);
        let usage = json!({"input": 2 * WINDOW - 1_000, "output": 0, "cacheRead": 0, "cacheWrite": 0});
        let mut lines = messages();
        let mut cost: Value = serde_json::from_str(&line(
            "cost",
            Some("e39"),
            "usage",
            json!({"kind": "compaction",
            "purpose": "compaction", "trigger": trigger, "provider": "p", "model": "m", "usage": usage}),
        ))
        .expect("JSON");
        cost["timestamp"] = at.to_string().into();
        lines.push(cost.to_string());
        held = near_of(&lines, json!({}));
        assert_eq!(planning(say(&mut held, 1, user("go on"))).is_some(), begins, "{trigger} {minutes}");
    }
}

#[test]
fn the_part_alone_counts_the_tokens_that_came_to_nothing() {
    let held = near();
    let (facts, mut part) = (Standing::of(&held.core).facts(), Ahead::default());
    assert!(part.may_begin(facts.state) && !part.rests(&facts), "the file has none");
    assert!(part.charge(&"gone".into(), 1_000, None, facts.now), "its summary was thrown away");
    assert_eq!(part.tokens(&facts), fruitless::most(WINDOW) - 1_000);
    assert!(part.throw_away(&facts).is_empty() && !part.is_stale(facts.state), "there is none");
    assert!(part.charge(&"gone".into(), 2 * WINDOW, None, facts.now));
    assert!(part.rests(&facts), "no tokens are left");
}
