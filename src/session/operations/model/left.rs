//! The ends of operations whose process died.

use super::*;

fn left(kind: &str, cause: &str) -> Unfinished {
    Unfinished {
        operation_id: format!("{kind}-{cause}").into(),
        kind: kind.to_owned(),
        reason: cause.to_owned(),
        started_at: String::new(),
        inside: Vec::new(),
    }
}

/// The id and the title of each event.
fn ends_of<K: Kind>(left_behind: Vec<Unfinished>) -> Vec<(String, String)> {
    let event = |(id, event): (OperationId, Event)| match event {
        Event::Notice { title, .. } => (id.to_string(), title),
        Event::CompactionEnd { reason, outcome: Outcome::Failed, result: None, duration_ms: 0, .. } => {
            (id.to_string(), format!("compaction_end {reason:?}"))
        }
        Event::TurnEnd { outcome: Outcome::Failed, stop_reason: None, .. } => (id.to_string(), "a turn".to_owned()),
        Event::ToolEnd { tool_call_id, is_error: true } => (id.to_string(), format!("a call {tool_call_id}")),
        other => panic!("{other:?}"),
    };
    interrupted::<K>(left_behind, &usage()).into_iter().map(event).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(id, title)| ((*id).to_owned(), (*title).to_owned())).collect()
}

/// The title of the notice about a kind that is not known here.
const UNKNOWN: &str = "An operation of another version of abridged was interrupted";

#[test]
fn interrupted_operations_end_by_their_kind_inner_ones_first() {
    let left_behind =
        vec![left("turn", "1"), left("recovery", "2"), left("speculation", "3"), left("maintenance", "4")];
    let expected = [("maintenance-4", "end 4"), ("recovery-2", "end 2"), ("turn-1", "end 1")];
    assert_eq!(ends_of::<Tested>(left_behind), pairs(&expected), "speculation has no events");
    let left_behind = vec![left("turn", "1"), left("dream", "2"), left("maintenance", "3")];
    let expected = [("maintenance-3", "end 3"), ("dream-2", UNKNOWN), ("turn-1", "end 1")];
    assert_eq!(ends_of::<Tested>(left_behind), pairs(&expected), "the others end as ever");
}

#[test]
fn interrupted_compactions_end_with_their_reason() {
    use crate::session::kind::OperationKind;
    let kinds =
        ["manual", "overflow", "model_switch", "moonlight", ""].map(|reason| left("compaction", reason)).to_vec();
    let expected = [
        ("compaction-", "compaction_end Manual"),
        ("compaction-moonlight", "compaction_end Manual"),
        ("compaction-model_switch", "compaction_end ModelSwitch"),
        ("compaction-overflow", "compaction_end Overflow"),
        ("compaction-manual", "compaction_end Manual"),
    ];
    assert_eq!(ends_of::<OperationKind>(kinds), pairs(&expected));
    assert_eq!(ends_of::<OperationKind>(vec![left("dream", "manual")]), pairs(&[("dream-manual", UNKNOWN)]));
}

#[test]
fn an_interrupted_turn_ends_after_its_open_calls() {
    use crate::session::kind::OperationKind;
    let call = log::Inside::Tool { call: "c1".into() };
    let turn = Unfinished { inside: vec![call], ..left("turn", "prompt") };
    let expected = [("turn-prompt", "a call c1"), ("turn-prompt", "a turn")];
    assert_eq!(ends_of::<OperationKind>(vec![turn]), pairs(&expected));
}

#[test]
fn hooks_and_retries_of_a_process_that_died_end_before_their_operation() {
    let hook = |hook: &str| log::Inside::Hook { hook: hook.to_owned() };
    let retry = |retry: &str, attempt| log::Inside::Retry { retry: retry.to_owned(), attempt };
    let left_behind = vec![
        Unfinished { inside: vec![hook("session_before_tree")], ..left("speculation", "1") },
        Unfinished { inside: vec![hook("before_dinner"), retry("dream", 7)], ..left("dream", "2") },
        Unfinished {
            inside: vec![hook("session_compacting"), retry("history", 3), retry("turn_prefix", 1)],
            ..left("maintenance", "4")
        },
    ];
    let event = |(id, event): (OperationId, Event)| {
        let what = match event {
            Event::HookEnd { hook, outcome, duration_ms: 0, error_message: Some(_) } => format!("{hook:?} {outcome:?}"),
            Event::RetryEnd { source, success: false, attempt, error: Some(error), error_message: Some(_) } => {
                format!("{source:?} {attempt} {}", error.code)
            }
            Event::Notice { title, .. } => title,
            other => panic!("{other:?}"),
        };
        (id.to_string(), what)
    };
    let ends: Vec<_> = interrupted::<Tested>(left_behind, &usage()).into_iter().map(event).collect();
    let expected = [
        ("maintenance-4", "TurnPrefix 1 internal"),
        ("maintenance-4", "History 3 internal"),
        ("maintenance-4", "SessionCompacting Error"),
        ("maintenance-4", "end 4"),
        ("dream-2", UNKNOWN),
        ("speculation-1", "SessionBeforeTree Error"),
    ];
    assert_eq!(ends, pairs(&expected), "names of another version have no end here");
}

#[test]
fn a_notice_about_an_unknown_kind_is_short() {
    use crate::session::kind::OperationKind;
    let (_, event) = interrupted::<OperationKind>(vec![left(&"\u{1}".repeat(10_000), "")], &usage()).remove(0);
    let Event::Notice { detail: Some(detail), .. } = event else { panic!("{event:?}") };
    assert!(detail.len() < 1_000, "{detail}");
}
