//! Decisions of the core of a session: the order of its work, and its end.

use super::{
    Input, Over,
    held::{
        Held, answer, answered, built, compacted_messages, cost, draft, events, job, log_work, message, notices,
        outcomes, usages, written,
    },
};
use crate::{
    log::Access,
    models::ModelRef,
    protocol::{
        SessionConfigure, SessionContext, SessionEntries, SessionPin, SessionStatus, events::Event, types::Outcome,
    },
    session::{
        core::command::Command,
        effects::Effect,
        jobs::{IndexBuilt, Job},
        log_work::LogWork,
        state::SessionData,
    },
};
use serde_json::json;

/// A session whose read of all entries runs. The request has number 1.
fn reading() -> Held {
    let mut held = Held::new();
    held.call::<SessionEntries>(1, json!({"branch": "all"}));
    assert!(held.turn().iter().any(|effect| matches!(effect, Effect::Read(1, _))));
    held
}

#[test]
fn a_session_is_not_over_before_its_reads() {
    let mut held = reading();
    held.send(2, Command::Close);
    held.turn();
    assert_eq!(held.core.over(), Over::No);
    held.feed(Input::Answered);
    assert_eq!(held.core.over(), Over::Yes);
}

#[test]
fn a_session_is_not_over_before_its_index_job() {
    let mut held = Held::indexed_below(0);
    held.call::<SessionEntries>(1, json!({"branch": "all"}));
    assert!(matches!(job(held.turn()), Job::Index(..)));
    held.feed(Input::Stop);
    assert_eq!(held.core.over(), Over::No);
    let effects = held.feed(Input::Indexed(IndexBuilt::Stopped));
    assert_eq!(answer(&effects, 1), Some("request_cancelled".into()));
    assert_eq!(held.core.over(), Over::Yes);
}

#[test]
fn costs_are_recorded_before_a_session_ends() {
    for (end, over) in [(Input::Stop, Over::Yes), (Input::Finish, Over::WithoutCommands)] {
        let mut held = Held::new();
        let order = held.begin_draft(1);
        held.feed(Input::Reported(order.id, cost()));
        held.cancel(2);
        held.feed(end);
        assert_eq!(held.core.over(), Over::No);
        let work = log_work(held.turn());
        assert_eq!(written(work.as_ref()), ["usage"]);
        held.back(work.expect("a write"));
        assert_eq!(held.core.over(), over);
    }
}

#[test]
fn a_command_behind_a_close_does_nothing() {
    let mut held = reading();
    held.send(2, Command::Close);
    held.append(3);
    held.send(4, Command::Close);
    assert!(log_work(held.turn()).is_none());
    assert!(!held.core.is_due() && !held.core.takes_commands());
    held.feed(Input::Answered);
    assert_eq!(held.core.over(), Over::Yes);
    let effects = held.core.effects().clone();
    let closes: Vec<_> = held.core.end().iter().map(super::Ticket::number).collect();
    assert_eq!(closes, [2, 4], "closes are answered when the file is closed");
    assert_eq!(answer(&effects.take(), 3), Some("not_found".into()));
}

#[test]
fn a_finish_behind_a_close_leaves_the_close_its_answer() {
    let mut held = reading();
    held.send(2, Command::Close);
    held.turn();
    assert!(answered(&held.feed(Input::Finish)).is_empty());
    held.feed(Input::Answered);
    assert_eq!(held.core.over(), Over::Yes);
    let closes: Vec<_> = held.core.end().iter().map(super::Ticket::number).collect();
    assert_eq!(closes, [2]);
}

#[test]
fn a_session_that_finishes_answers_the_commands_that_wait_for_its_index() {
    let mut held = Held::indexed_below(0);
    held.call::<SessionEntries>(1, json!({"branch": "all"}));
    let index = job(held.turn());
    held.feed(Input::Finish);
    assert_eq!(held.core.over(), Over::No);
    held.feed(built(index));
    assert!(held.turn().iter().any(|effect| matches!(effect, Effect::Read(1, _))));
    held.feed(Input::Answered);
    assert_eq!(held.core.over(), Over::WithoutCommands);
}

#[test]
fn an_edit_and_a_compaction_of_a_cut_path_wait_for_the_index() {
    let mut held = Held::of(&compacted_messages(), 0);
    held.edit::<SessionPin>(1, json!({"text": "keep this"}));
    let effects = held.turn();
    assert!(log_work(effects).is_none(), "a pin before the path may be unknown");
    let mut held = Held::of(&compacted_messages(), 0);
    held.compact(1);
    assert!(matches!(job(held.turn()), Job::Index(..)));
}

#[test]
fn entries_of_another_program_are_read_before_the_next_command() {
    let mut held = Held::new();
    held.disk.append_as_another(&message("other", Some("e39"))).expect("an entry");
    held.call::<SessionStatus>(1, json!({}));
    held.feed(Input::FileTouched);
    let work = log_work(held.turn());
    assert!(matches!(work, Some(LogWork::CatchUp(..))));
    assert!(answered(&held.back(work.expect("a read"))).is_empty());
    assert_eq!(answered(&held.turn()), [1]);
}

#[test]
fn commands_wait_outside_while_the_log_is_out() {
    let mut held = Held::new();
    assert!(held.core.takes_commands());
    held.append(1);
    let work = log_work(held.turn()).expect("a write");
    assert!(!held.core.takes_commands());
    held.back(work);
    assert!(held.core.takes_commands());
}

/// A session whose draft is being written, with a context that waits for its end.
fn committing() -> (Held, LogWork) {
    let mut held = Held::new();
    let order = held.begin_draft(1);
    held.call::<SessionContext>(2, json!({"wait": true}));
    assert!(answered(&held.turn()).is_empty());
    held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
    let work = log_work(held.turn()).expect("a write");
    (held, work)
}

#[test]
fn a_stop_answers_the_contexts_that_wait_for_a_write() {
    let (mut held, work) = committing();
    let effects = held.feed(Input::Stop);
    assert_eq!(answer(&effects, 2), Some("request_cancelled".into()));
    assert_eq!(outcomes(&held.back(work)), [Outcome::Completed]);
    assert_eq!(held.core.over(), Over::Yes);
}

#[test]
fn a_cancel_during_the_write_of_a_draft_names_nothing() {
    let (mut held, work) = committing();
    let effects = held.cancel(3);
    assert_eq!(answer(&effects, 3), Some(json!({"cancelled": []})));
    assert!(outcomes(&held.feed(Input::RequestCancelled(1))).is_empty());
    assert_eq!(outcomes(&held.back(work)), [Outcome::Completed]);
}

#[test]
fn a_cancel_of_another_operation_leaves_a_plan_alone() {
    let mut held = Held::new();
    held.compact(1);
    let Job::Plan(order) = job(held.turn()) else { unreachable!("a compaction is planned first") };
    let ticket = held.ticket(2);
    let effects = held.feed(Input::Cancel(Some("another".into()), ticket));
    assert_eq!(answer(&effects, 2), Some(json!({"cancelled": []})));
    assert!(outcomes(&effects).is_empty() && !order.stop.requested());
}

#[test]
fn cancelled_compactions_are_answered_in_the_order_of_their_requests() {
    let mut held = Held::of(&compacted_messages(), 0);
    held.compact(1);
    held.compact(2);
    held.turn();
    let effects = held.cancel(3);
    assert_eq!(answered(&effects), [3, 1, 2], "the first one waits for the index");
    let mut held = Held::new();
    held.compact(1);
    held.compact(2);
    held.turn();
    assert_eq!(answered(&held.cancel(3)), [3, 1, 2], "the first one is planned");
}

#[test]
fn entries_that_were_read_for_a_command_serve_no_other() {
    let mut held = Held::new();
    let params = json!({"sessionId": "held", "parentEntryId": "branch", "messages": [{"role": "wrong"}]});
    held.send(1, Command::Append(serde_json::from_value(params).expect("params")));
    held.append_with(2, json!({"parentEntryId": "branch"}));
    let work = log_work(held.turn()).expect("a read");
    held.back(work);
    assert_eq!(answer(&held.turn(), 1), Some("invalid_params".into()));
    assert!(matches!(log_work(held.turn()), Some(LogWork::Fetch(_))));
}

#[test]
fn a_session_that_is_only_read_refuses_what_it_would_write() {
    let mut held = Held::read_only();
    assert_eq!(held.facts().access, Access::Read);
    held.append(1);
    held.edit::<SessionPin>(2, json!({"text": "keep this"}));
    held.compact(3);
    for number in 1..=3 {
        let effects = held.turn();
        assert_eq!(answer(&effects, number), Some("storage_error".into()));
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Log(_) | Effect::Start(_))));
    }
}

#[test]
fn the_usage_of_a_session_is_not_sent_during_a_compaction() {
    let mut held = Held::new();
    held.begin_draft(1);
    let layers = json!({"tokens": {"estimator": "chars"}, "compaction": {"reserveTokens": 9_000}});
    let source = crate::settings::layers::Source::Global;
    let effects = held.feed(Input::Layers(crate::settings::Layers::of(vec![(source, layers.clone())])));
    assert!(events(&effects).any(|event| matches!(event, Event::SettingsChanged { .. })));
    assert_eq!(usages(&effects), 0);
    let mut held = Held::new();
    let effects = held.feed(Input::Layers(crate::settings::Layers::of(vec![(source, layers)])));
    assert_eq!(usages(&effects), 1);
}

#[test]
fn appends_behind_an_answer_that_was_cut_off_are_another_write() {
    let mut held = Held::new();
    let content = json!([{"type": "text", "text": "It is"}]);
    let cut = json!({"role": "assistant", "content": content, "stopReason": "length", "timestamp": 1});
    held.append(1);
    held.append_with(2, json!({"messages": [cut]}));
    held.append(3);
    let work = log_work(held.turn()).expect("a write");
    assert_eq!(written(Some(&work)), ["message", "message"]);
    let effects = held.back(work);
    assert_eq!((notices(&effects), usages(&effects)), (vec!["The answer is cut off"], 1));
}

#[test]
fn an_append_with_a_condition_sees_those_before_it() {
    let mut held = Held::new();
    held.append(1);
    held.append_with(2, json!({"expectedLeafId": "e39"}));
    let work = log_work(held.turn()).expect("a write");
    assert_eq!(written(Some(&work)), ["message"]);
    held.back(work);
    assert_eq!(answer(&held.turn(), 2), Some("content_modified".into()));
}

#[test]
fn a_session_that_finishes_answers_a_context_that_waits_for_counts() {
    let mut held = Held::new();
    let model = json!({"provider": "p", "id": "m", "contextWindow": 4_000});
    let settings = json!({"tokens": {"estimator": "auto"}, "models": [model], "defaultModel": "p/m"});
    held.feed(Input::Layers(crate::settings::Layers::of(vec![(crate::settings::layers::Source::Global, settings)])));
    held.call::<SessionContext>(1, json!({"wait": true}));
    assert!(answered(&held.turn()).is_empty());
    held.feed(Input::Finish);
    assert_eq!(held.core.over(), Over::No);
    held.at.tokenizer = true;
    assert_eq!(answered(&held.feed(Input::Counted)), [1]);
    assert_eq!(held.core.over(), Over::WithoutCommands);
}

#[test]
fn the_first_edit_of_a_session_has_its_entries_counted() {
    let given = SessionData { settings: Some(json!({"tokens": {"estimator": "auto"}})), ..SessionData::default() };
    let mut held = Held::given(given, ModelRef { provider: "p".to_owned(), id: "m".to_owned() });
    held.edit::<SessionConfigure>(1, json!({"title": "Parts"}));
    let work = log_work(held.turn()).expect("a write");
    assert!(matches!(job(held.back(work)), Job::Count(_)));
}

#[test]
fn a_compaction_has_no_entries_counted_that_it_covers() {
    let is_count = |effect: &Effect| matches!(effect, Effect::Start(job) if matches!(**job, Job::Count(_)));
    let given = SessionData { settings: Some(json!({"tokens": {"estimator": "auto"}})), ..SessionData::default() };
    let mut held = Held::given(given, ModelRef { provider: "p".to_owned(), id: "m".to_owned() });
    held.compact(1);
    assert!(!held.turn().iter().any(is_count));
    held.call::<SessionStatus>(2, json!({}));
    assert!(!held.turn().iter().any(is_count), "a client looks at it meanwhile");
    held.cancel(3);
    held.call::<SessionStatus>(4, json!({}));
    assert!(held.turn().iter().any(is_count));
}
