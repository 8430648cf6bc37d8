//! Tampering with events and with the status.

use crate::{
    protocol::{
        events::{Event, HookOutcome, RecoveryAction, RecoveryOutcome},
        types::{StatusKind, SummaryMethod, Usage},
    },
    session::{effects::Effect, fault::Fault},
    wire::outbox::About,
};

/// The event of an effect.
fn event(effect: &Effect) -> Option<&Event> {
    match effect {
        Effect::Emit(_, event) => Some(event),
        _ => None,
    }
}

/// Whether an effect is the start of an operation.
fn is_start(effect: &Effect) -> bool {
    let starts = |event: &Event| event.kind().ends_with("_start");
    event(effect)
        .is_some_and(|event| starts(event) && !matches!(event, Event::RetryStart { .. } | Event::HookStart { .. }))
}

/// Whether an effect is the end of an operation.
fn is_end(effect: &Effect) -> bool {
    event(effect).is_some_and(|event| event.kind().ends_with("_end")) && !is_inner_end(effect)
}

/// Whether an effect is the end of a hook or of a retry.
fn is_inner_end(effect: &Effect) -> bool {
    matches!(event(effect), Some(Event::RetryEnd { .. } | Event::HookEnd { .. }))
}

fn is_settled(effect: &Effect) -> bool {
    matches!(event(effect), Some(Event::Settled { .. }))
}

fn is_usage(effect: &Effect) -> bool {
    matches!(event(effect), Some(Event::UsageUpdated { .. }))
}

/// The size of the context.
pub(super) fn usage(usage: Usage) -> Effect {
    Effect::Emit(About::default(), Event::UsageUpdated { usage })
}

/// Tampers with the ends of operations whose process died.
pub(super) fn of_a_crash(fault: Fault, effects: &mut Vec<Effect>) {
    match fault {
        Fault::LostEndOfCrash => effects.retain(|effect| !is_end(effect) && !is_inner_end(effect)),
        Fault::LostInsideOfCrash => effects.retain(|effect| !is_inner_end(effect)),
        _ => {}
    }
}

/// `recovers_by`: the action of the newest recovery.
pub(super) fn tamper(fault: Fault, effects: &mut Vec<Effect>, recovers_by: &mut Option<RecoveryAction>) {
    match fault {
        Fault::LostEnd => effects.retain(|effect| !is_end(effect)),
        Fault::LostRetryEnd => effects.retain(|effect| !matches!(event(effect), Some(Event::RetryEnd { .. }))),
        Fault::LostHookEnd => effects.retain(|effect| !matches!(event(effect), Some(Event::HookEnd { .. }))),
        Fault::SecondEnd => double(effects, is_end),
        Fault::SettledTwice => double(effects, is_settled),
        Fault::StatusAfterStart => publish_after(effects, is_start),
        Fault::StatusAfterEnd => publish_after(effects, is_end),
        Fault::NamedTooEarly => name_early(effects),
        Fault::SettledEarly => {
            let changed = effects.iter().position(|it| matches!(event(it), Some(Event::StatusChanged { .. })));
            let settled = effects.iter().position(is_settled);
            if let Some((changed, settled)) = changed.zip(settled).filter(|(changed, settled)| changed < settled) {
                effects[changed..=settled].rotate_right(1);
            }
        }
        Fault::SettledBeforeWork if !effects.iter().any(is_settled) => {
            let idles = |effect: &Effect| matches!(event(effect), Some(Event::StatusChanged { status }) if status.kind == StatusKind::Idle);
            if let Some(at) = effects.iter().position(idles) {
                effects.insert(at + 1, Effect::Emit(About::default(), Event::Settled { aborted: false }));
            }
        }
        Fault::AnsweredBeforeEnd => {
            if let Some(end) = effects.iter().position(is_end) {
                let after = effects.split_off(end);
                let (answers, others): (Vec<_>, Vec<_>) =
                    after.into_iter().partition(|effect| matches!(effect, Effect::Answer(..)));
                effects.extend(answers.into_iter().chain(others));
            }
        }
        Fault::NoUsageBeforeEnd => {
            let end = effects.iter().position(|it| matches!(event(it), Some(Event::CompactionEnd { .. })));
            if let Some(usage) = end.and_then(|end| effects[..end].iter().rposition(is_usage)) {
                effects.remove(usage);
            }
        }
        Fault::AnnouncedBeforeWrite => super::work::announce_before_write(effects),
        _ => effects.iter_mut().for_each(|effect| alter(fault, effect, recovers_by)),
    }
}

/// Alters the fields of an event.
fn alter(fault: Fault, effect: &mut Effect, recovers_by: &mut Option<RecoveryAction>) {
    let Effect::Emit(_, event) = effect else { return };
    match (fault, event) {
        (_, Event::RecoveryStart { action, .. }) => *recovers_by = Some(*action),
        (Fault::RoomAssumed, Event::RecoveryEnd { outcome, will_retry, error, error_message, .. })
            if *recovers_by == Some(RecoveryAction::Retry) && *outcome == RecoveryOutcome::Failed =>
        {
            (*outcome, *will_retry, *error, *error_message) = (RecoveryOutcome::Recovered, true, None, None);
        }
        (Fault::FailureForgotten, Event::RecoveryEnd { outcome, will_retry, .. })
            if *recovers_by == Some(RecoveryAction::Retry) && *outcome == RecoveryOutcome::Recovered =>
        {
            (*outcome, *will_retry) = (RecoveryOutcome::Failed, false);
        }
        (Fault::RetryNotSaid, Event::RecoveryEnd { outcome: RecoveryOutcome::Recovered, will_retry, .. }) => {
            *will_retry = false;
        }
        (Fault::HookFailureHidden, Event::HookEnd { outcome: outcome @ HookOutcome::Error, .. }) => {
            *outcome = HookOutcome::Ok;
        }
        (Fault::HookSummaryRenamed, Event::CompactionEnd { result: Some(result), .. })
            if result.method == SummaryMethod::Hook =>
        {
            result.method = SummaryMethod::Extractive;
        }
        (Fault::LeafMisnamed, Event::TreeChanged { old_leaf_id, new_leaf_id, .. }) => {
            new_leaf_id.clone_from(old_leaf_id);
        }
        _ => {}
    }
}

/// Sends events twice.
fn double(effects: &mut Vec<Effect>, is_meant: fn(&Effect) -> bool) {
    let twice = |effect: Effect| match &effect {
        Effect::Emit(about, event) if is_meant(&effect) => vec![Effect::Emit(about.clone(), event.clone()), effect],
        _ => vec![effect],
    };
    *effects = std::mem::take(effects).into_iter().flat_map(twice).collect();
}

/// Publishes the status after an event instead of before it.
fn publish_after(effects: &mut [Effect], is_meant: fn(&Effect) -> bool) {
    for at in 0..effects.len() {
        if is_meant(&effects[at])
            && let Some(publish) = effects[..at].iter().rposition(|effect| matches!(effect, Effect::Publish(_)))
        {
            effects[publish..=at].rotate_left(1);
        }
    }
}

/// Names an operation in `status_changed` before its start introduces it.
fn name_early(effects: &mut [Effect]) {
    for at in 0..effects.len() {
        let start = effects[at..].iter().find(|effect| is_start(effect));
        let Some(Effect::Emit(About { operation: Some(id), .. }, _)) = start else { return };
        let id = id.clone();
        if let Effect::Emit(_, Event::StatusChanged { status }) = &mut effects[at]
            && status.kind != StatusKind::Idle
        {
            status.operation_id.get_or_insert(id);
        }
    }
}
