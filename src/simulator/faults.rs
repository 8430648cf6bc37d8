//! Planted faults: the seeds find each of them.

use super::{
    client::{self, lying},
    observer::{Observer, Rule, Violation},
    script::{self, End, Script, Step},
    setup,
    world::World,
};
use crate::{
    provider::TroubleKind,
    session::fault::{Fault, plant},
};

/// Each fault, the rule that it breaks first, and a seed that breaks it. Other seeds find it too.
const FAULTS: &[(Fault, Rule, u64)] = &[
    (Fault::EventBeforeAnswer, Rule::AnswerIntroduces, 0),
    (Fault::AnnouncedBeforeWrite, Rule::AnnouncedIsDurable, 0),
    (Fault::NotAnnounced, Rule::AnnouncedInOrder, 0),
    (Fault::ForgottenEntry, Rule::Chained, 13),
    (Fault::AppendsReversed, Rule::AppendOrder, 0),
    (Fault::ExpectedLeafIgnored, Rule::ExpectedLeaf, 4),
    (Fault::NeverAnswered, Rule::Answered, 3),
    (Fault::AnsweredTwice, Rule::AnsweredOnce, 5),
    (Fault::LostEnd, Rule::SettledOnce, 0),
    (Fault::LostEndOfCrash, Rule::EveryStartEnds, 0),
    (Fault::SecondEnd, Rule::EndedOnce, 0),
    (Fault::LateResult, Rule::HeldContext, 127),
    (Fault::LostRetryEnd, Rule::RetriesEnd, 3),
    (Fault::JobGoesOn, Rule::JobsStop, 0),
    (Fault::StartNotRecorded, Rule::StartIsRecorded, 0),
    (Fault::InsideNotRecorded, Rule::StartIsRecorded, 3),
    (Fault::LostInsideOfCrash, Rule::InnerEndsFirst, 15),
    (Fault::RecordStays, Rule::RecordEmpties, 0),
    (Fault::StatusAfterStart, Rule::StatusChanges, 0),
    (Fault::StatusAfterEnd, Rule::StatusBeforeEnd, 0),
    (Fault::NamedTooEarly, Rule::AnswerIntroduces, 0),
    (Fault::SettledEarly, Rule::OrderAfterEnd, 2),
    (Fault::SettledTwice, Rule::SettledOnce, 0),
    (Fault::SettledBeforeWork, Rule::NothingBehindSettled, 45),
    (Fault::AnsweredBeforeEnd, Rule::WaitingAnswer, 5),
    (Fault::NoUsageBeforeEnd, Rule::EndFollowsEntry, 0),
    (Fault::CancelQueues, Rule::CancelWaitsForNothing, 1),
    (Fault::CancelNamesNothing, Rule::CancelWasAsked, 5),
    (Fault::ContextNotHeld, Rule::HeldContext, 2),
    (Fault::CancelledRemembered, Rule::QueuesBounded, 3),
    (Fault::CostDropped, Rule::CostsKept, 7),
    (Fault::OverWindow, Rule::RequestFits, 14),
    (Fault::NextNotStarted, Rule::NextRuns, 0),
    (Fault::AlwaysDue, Rule::NextIsDue, 14),
    (Fault::ChangedPathCovered, Rule::CoveredUnchanged, 52),
    (Fault::StaleSpliced, Rule::SplicedUnchanged, 621),
    (Fault::SplicedEarly, Rule::SplicedWhenDue, 3),
    (Fault::AheadAnnounced, Rule::AheadIsQuiet, 3),
    (Fault::BusyIgnored, Rule::RefusedWhileBusy, 26),
    (Fault::HeldStays, Rule::Answered, 127),
    (Fault::CloseWaits, Rule::EndsWhatRuns, 14),
    (Fault::CancelledAppendWritten, Rule::CancelledAnswer, 10),
    (Fault::CancelledEditWritten, Rule::CancelledAnswer, 26),
    (Fault::CancelledContextAnswered, Rule::CancelledAnswer, 3),
    (Fault::UsageNotSent, Rule::UsageFollowsEntries, 0),
    (Fault::LostLogGoesOn, Rule::LostLogEnds, 19),
    (Fault::JobOfUnstarted, Rule::JobsStop, 61),
    (Fault::StaleCompacted, Rule::ExpectedLeaf, 4),
    (Fault::AnswerStays, Rule::RecoveryFollowsEdit, 0),
    (Fault::AttemptsForgotten, Rule::AttemptsAreBounded, 0),
    (Fault::StaleForgotten, Rule::StaleCompactsNothing, 3),
    (Fault::OffForgotten, Rule::OffIsOff, 14),
    (Fault::SwitchAssumed, Rule::PromotionFits, 34),
    (Fault::FailureForgotten, Rule::FailedRefuses, 8),
    (Fault::RoomAssumed, Rule::RecoveredFits, 346),
    (Fault::RateLimitRecovered, Rule::RecoveryWasNeeded, 1),
    (Fault::RestForgotten, Rule::NoLoop, 114),
    (Fault::RetryNotSaid, Rule::RecoveryAgrees, 0),
    (Fault::TurnAssumed, Rule::AfterTheTurn, 7),
    (Fault::LaterForgotten, Rule::LaterStarts, 23),
    (Fault::LimitsForgotten, Rule::LimitsHold, 0),
    (Fault::OutputUnlimited, Rule::OutputFits, 0),
    (Fault::IdleCallIgnored, Rule::IdleAwaitsNoAnswer, 6),
    (Fault::IdleMessageIgnored, Rule::IdleAwaitsNoAnswer, 34),
    (Fault::IdleStays, Rule::IdleGivesWay, 47),
    (Fault::IdleTurnAssumed, Rule::IdleHasItsTurn, 6),
    (Fault::IdleTurnKept, Rule::IdleLeavesItsTurn, 6),
    (Fault::CeilingForgotten, Rule::BudgetHolds, 43),
    (Fault::LostHookEnd, Rule::HooksEnd, 10),
    (Fault::HookAssumed, Rule::HooksRegistered, 10),
    (Fault::HookFailureHidden, Rule::HookOutcome, 3),
    (Fault::HookDeadlineStretched, Rule::LateHook, 3),
    (Fault::HookCancelSkips, Rule::HookCancels, 46),
    (Fault::HookSummaryRenamed, Rule::HookReplaces, 3),
    (Fault::HookKeyAllowed, Rule::RefusedIsNotUsed, 7),
    (Fault::HookDataDropped, Rule::HookDataKept, 18),
    (Fault::AheadOfHooks, Rule::NoneAheadWithHooks, 7),
    (Fault::LeafMisnamed, Rule::LeafIsNamed, 7),
    (Fault::SummaryOnBranch, Rule::SummaryAtTarget, 13),
    (Fault::StateForgotten, Rule::ThereAndBack, 180),
    (Fault::TailNamed, Rule::UnreadStays, 0),
    (Fault::CancelNotWritten, Rule::AnsweredIsDurable, 69),
];

/// Faults of trust, in sessions in which someone lies.
const TRUST: &[(Fault, Rule, u64)] = &[
    (Fault::DeliveredLeaves, Rule::NoDeliveredAnswerLeaves, 0),
    (Fault::ReportLearned, Rule::NoWindowFromALie, 0),
    (Fault::OverflowAssumed, Rule::OverflowOnlyWhereNothingFits, 3),
    (Fault::SizeHalved, Rule::FitsTheTrueWindow, 12),
    (Fault::UnusedForgotten, Rule::SpendingIsBounded, 3),
    (Fault::AtStakeForgotten, Rule::SpendingIsBounded, 0),
];

/// Seeds of a usual run.
const SEEDS: u64 = 300;

/// The broken rule of a seed. For a fault of retries every model fails twice before it answers.
fn broken_by(seed: u64, fault: Fault) -> Option<Violation> {
    let mut scenario = client::scenario(seed);
    if fault == Fault::LostRetryEnd {
        let fails = Step::ends(End::Fails(script::Fault { kind: TroubleKind::Throttled, retry_after_ms: None }));
        let steps = vec![fails.clone(), fails, Step::default()];
        let models = (0..scenario.setup.models).map(|number| (setup::model(number), steps.clone()));
        scenario.setup.script = Script { models: models.collect() };
    }
    World::run(&scenario, &mut Observer::default()).err()
}

/// The broken rule of a seed in whose session someone lies.
fn broken_by_lies(seed: u64, _: Fault) -> Option<Violation> {
    World::run(&lying::scenario(seed), &mut Observer::default()).err()
}

/// Tests run beside each other, and a fault is planted into the sessions of one thread.
#[test]
fn each_planted_fault_of_the_first_half_is_found() {
    finds(&FAULTS[..FAULTS.len() / 2], broken_by);
}

#[test]
fn each_planted_fault_of_the_second_half_is_found() {
    finds(&FAULTS[FAULTS.len() / 2..], broken_by);
}

#[test]
fn each_planted_fault_of_trust_is_found() {
    finds(TRUST, broken_by_lies);
}

fn finds(faults: &[(Fault, Rule, u64)], broken_by: fn(u64, Fault) -> Option<Violation>) {
    let wrong = faults.iter().filter_map(|(fault, rule, seed)| wrong(*fault, *rule, *seed, broken_by));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The error of the row of a fault, with the row that is right.
fn wrong(fault: Fault, rule: Rule, seed: u64, broken_by: fn(u64, Fault) -> Option<Violation>) -> Option<String> {
    let _planted = plant(fault);
    let seeds = std::iter::once(seed).chain(0..SEEDS);
    let found = seeds.map(|seed| (seed, broken_by(seed, fault))).find(|(_, found)| found.is_some());
    match found {
        Some((seed, Some(violation))) if violation.rule == rule => {
            eprintln!("{fault:?}: seed {seed}, {violation}");
            None
        }
        other => {
            let breaks = |seed: &u64| broken_by(*seed, fault).is_some_and(|violation| violation.rule == rule);
            let seed = (0..10 * SEEDS).find(breaks);
            Some(format!("{fault:?} breaks {rule:?} at seed {seed:?}, and is found by {other:?}"))
        }
    }
}
