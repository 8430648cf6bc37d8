//! Recoveries: an answer that a turn cannot go on from leaves the context, and the turn gets a context to be repeated with.
//!
//! The edit that removes the answer is written before the recovery starts. A recovery that compacts is an operation around
//! its compaction, and both have one id.

mod judging;
mod reported;

use self::{judging::Judged, reported::Reported};
use super::{
    Append, Core, LogState, WaitsFor, Write,
    commands::{configure, context::too_large},
    due::{Due, DueCompaction, DueRecovery},
    edit::Staged,
    work::Work,
};
use crate::{
    compaction::{
        decide::Automatic,
        ladder::Floor,
        recovery::{self, Facts, Remedy, Share, Trouble, Verdict},
        request::Cause,
    },
    conversation::{
        attempts::Attempt,
        entry::{Attempts, Body, Entry},
        message::outline::Role,
    },
    ids::{EntryId, OperationId},
    models::{self, Budget, ModelRef, SaidBy},
    protocol::{
        errors::Failure,
        events::{Event, ModelChange, Reason, RecoveryReason},
        types::{Cancelled, Initiator},
    },
    session::{
        effects::Ticket,
        fault::{Fault, planted},
        jobs::{Job, PlanOrder},
        kind::{OperationKind, Product, RECOVERY, Recovery},
        operation::Operation,
        operations::{Asked, End, Place},
        stop::Stop,
    },
    settings::Switch,
};
use serde_json::json;
use std::sync::Arc;

/// The recoveries of a session.
#[derive(Default)]
pub(super) struct Recoveries {
    /// The recovery whose compaction runs.
    running: Option<Operation>,
    /// Failed answers that were appended while maintenance ran, oldest first.
    reported: Vec<Reported>,
    /// The context that was given to a client last.
    given: Option<Given>,
    /// A recovery that failed.
    failed: Option<Failed>,
}

/// The state in which a context was given to a client.
#[derive(PartialEq, Eq)]
struct Given {
    /// The compaction in force.
    compaction: Option<EntryId>,
    model: Option<ModelRef>,
}

/// A recovery that failed. Until the session goes on from its leaf there is no context to repeat the turn with.
struct Failed {
    leaf: Option<EntryId>,
    why: String,
}

impl Core {
    /// The maintenance that the answer at the end of these appends needs.
    pub(super) fn due_after_answer(&mut self, appends: &[Append], asked: Asked<Ticket>) -> Option<Due> {
        let judged = self.judge_last(appends)?;
        match judged.verdict {
            Verdict::Usable | Verdict::Shortened => None,
            Verdict::OverWindow => {
                let on = self.state.measure().compaction.switch() == Switch::On;
                (on && !self.rests() && self.may_maintain()).then(|| {
                    let id = self.stamps.operation();
                    Due::Compaction(DueCompaction { id, reason: Reason::Overflow, asked, former: None })
                })
            }
            Verdict::Unusable(trouble) if self.may_maintain() => {
                self.recovery(&judged, trouble, asked).map(Due::Recovery)
            }
            Verdict::Unusable(_) => {
                self.report(judged.answer);
                None
            }
        }
    }

    /// The recovery from an answer.
    fn recovery(&mut self, judged: &Judged, trouble: Trouble, asked: Asked<Ticket>) -> Option<DueRecovery> {
        let reason = match trouble {
            Trouble::TooLong => RecoveryReason::Overflow,
            Trouble::WindowFull | Trouble::CutOff => RecoveryReason::Incomplete,
        };
        if let (Some(outline), Some((window, _))) = (judged.answer.outline(), judged.stated)
            && !outline.failed
            && let Some(model) = outline.model.clone().or_else(|| self.state.model(self.state.path()))
        {
            self.state.learned.see(&model, window);
        }
        let given = self.recoveries.given.as_ref();
        let stale = given.is_some_and(|given| *given != self.given_now());
        if stale {
            // A client that asks for no other context is not told the same again.
            self.recoveries.given = Some(self.given_now());
        }
        let facts = Facts {
            trouble,
            automatic: match planted(Fault::OffForgotten) {
                true => Automatic::On,
                false => self.state.measure().compaction.switch().into(),
            },
            stale: stale && !planted(Fault::StaleForgotten),
            larger: self.larger_model(),
            attempts: match planted(Fault::AttemptsForgotten) {
                true => Attempts::default(),
                false => Attempts::before(self.state.path(), &judged.answer.id),
            },
        };
        match recovery::remedy(facts) {
            Remedy::None => None,
            remedy => Some(DueRecovery {
                id: self.stamps.operation(),
                reason,
                asked,
                removed: judged.answer.id.clone(),
                earlier: Vec::new(),
                remedy,
                stated: judged.stated,
                model: self.state.model(self.state.path()),
                stop: Stop::default(),
            }),
        }
    }

    /// The model that the settings name for a context that is too large for the session's, if the client asks the model that
    /// a context names and the context is below its threshold.
    pub(super) fn larger_model(&self) -> Option<ModelRef> {
        let settings = &self.state.settings().settings;
        if !settings.context_promotion.enabled || !self.state.client_switches_models() && !planted(Fault::SwitchAssumed)
        {
            return None;
        }
        let model = self.state.model(self.state.path())?;
        let larger = ModelRef::parse(settings.model(&model)?.promote_to.as_deref()?)?;
        let fullness = self.state.measure();
        let window = models::window(settings, self.state.learned.window(&larger), Some(&larger));
        let Budget { system, tools, .. } = fullness.budget;
        let budget = Budget::of(window.tokens, &settings.compaction_for(Some(&larger)), system, tools);
        let known = window.source != SaidBy::Default;
        let takes_it = window.tokens > fullness.budget.window && fullness.context_tokens <= budget.threshold;
        (known && takes_it).then_some(larger)
    }

    /// Records that a client was given the context at the leaf.
    pub(super) fn gives_context(&mut self) {
        self.recoveries.given = Some(self.given_now());
    }

    fn given_now(&self) -> Given {
        let path = self.state.path();
        Given { compaction: path.compaction().map(|place| path[place].id.clone()), model: self.state.model(path) }
    }

    /// Writes the entries of a recovery, which starts behind them.
    pub(super) fn write_recovery(&mut self, due: DueRecovery) {
        match self.entries_of(&due) {
            Ok(staged) => self.write(Write::Recovery { staged, due }),
            Err(failure) => self.recover(due, Err(failure)),
        }
    }

    /// The entries of a recovery: the answer leaves the context, the attempt is recorded, the model changes.
    fn entries_of(&mut self, due: &DueRecovery) -> Result<Staged, Failure> {
        let keeps = planted(Fault::AnswerStays) && due.attempted().is_some();
        let mut staged = match keeps {
            true => Staged::default(),
            false => self.removal(due.earlier.iter().chain([&due.removed]))?,
        };
        let (state, stamps) = (&self.state, &mut self.stamps);
        if let Some(reason) = due.attempted() {
            staged.add_custom(state, stamps, "attempt", json!(Attempt { reason }))?;
        }
        if let Remedy::Promote(larger) = &due.remedy {
            staged.add(state, stamps, "model_change", &configure::model_fields(larger))?;
        }
        Ok(staged)
    }

    /// The entries with which answers leave the context.
    fn removal<'a>(&mut self, answers: impl Iterator<Item = &'a EntryId>) -> Result<Staged, Failure> {
        let mut staged = Staged::default();
        for answer in answers {
            let fields = [("targetId", json!(answer)), ("replacement", json!(null))];
            staged.add(&self.state, &mut self.stamps, "context_edit", &fields)?;
        }
        Ok(staged)
    }

    /// Starts a recovery whose entries were written, or could not be.
    pub(super) fn recover(&mut self, due: DueRecovery, written: Result<Staged, Failure>) {
        let action = due.action();
        let DueRecovery { id, reason, asked, removed, remedy, stated, model, stop, .. } = due;
        let kind = OperationKind::Recovery(Recovery { reason, removed: Some(removed), action });
        let entries = written.as_ref().map(|staged| staged.entries.clone()).unwrap_or_default();
        let (choices, others): (Vec<_>, Vec<_>) =
            entries.iter().partition(|entry| matches!(entry.body, Body::ModelChange { .. }));
        if !choices.is_empty() {
            self.state.stored_model();
        }
        self.count();
        others.iter().for_each(|entry| self.announce(entry, None));
        self.send_usage(self.state.usage());
        let opening = self.opening(kind, Place::Top(id), asked, self.state.usage(), stop.clone());
        let operation = self.start_operation(opening);
        // It is in force, also where the recovery was cancelled while it was being written.
        choices.iter().for_each(|entry| self.announce(entry, Some(operation.id.clone())));
        if let (Ok(_), Remedy::Promote(to)) = (&written, &remedy) {
            operation.emit(Event::ModelChanged { from: model, to: to.clone(), reason: ModelChange::Promotion });
        }
        let end = match (written, remedy) {
            _ if stop.requested() => End::Cancelled,
            (Err(failure), _) => End::Failed(failure),
            (Ok(_), Remedy::Compact(share)) => return self.compact_inside(operation, reason, share, stated),
            (Ok(_), Remedy::GiveUp(attempts)) => End::Failed(self.given_up(reason, attempts)),
            (Ok(_), Remedy::Promote(_) | Remedy::Retry | Remedy::None) => self.with_room(),
        };
        self.end_recovery(operation, end, Vec::new());
    }

    /// The end of a recovery that leaves the context as it is. It fails where no request with this context fits the window
    /// and no maintenance makes the context smaller.
    fn with_room(&self) -> End<Product> {
        let decision = self.decision();
        match too_large(&self.state.measure()) {
            Some(floor) if !decision.is_due() && !planted(Fault::RoomAssumed) => {
                End::Failed(Failure::OverWindow { floor, why: decision.to_string() })
            }
            _ => End::Completed(Product::Recovered),
        }
    }

    /// Starts the compaction of a recovery.
    fn compact_inside(
        &mut self,
        recovery: Operation,
        reason: RecoveryReason,
        share: Share,
        stated: Option<(u64, u64)>,
    ) {
        let (place, stop) = (recovery.part(self.stamps.operation()), Stop::default());
        let kind = OperationKind::Recovering(reason);
        let opening = self.opening(kind, place, Asked::Introduced, self.state.usage(), stop.clone());
        let compaction = self.start_operation(opening);
        let request = self.plan_request(None, Initiator::User, Cause::Rejected { share, stated });
        self.start(Job::Plan(PlanOrder { id: compaction.id.clone(), request, method: None, former: None, stop }));
        self.work = Work::Preparing(compaction, None);
        self.recoveries.running = Some(recovery);
    }

    /// Ends the recovery around a compaction that has ended. The end of the compaction comes first, and `notices` behind both.
    pub(super) fn finish_inside(&mut self, compaction: Operation, end: End<Product>, notices: Vec<(String, String)>) {
        let end = match end {
            // The plan has a smaller window than the model: the rejected size bounds it.
            End::Failed(Failure::ContextOverflow(floor)) => {
                let window = self.state.measure().budget.window;
                End::Failed(Failure::ContextOverflow(Floor { window, ..floor }))
            }
            end => end,
        };
        let around = match &end {
            End::Completed(_) => End::Completed(Product::Recovered),
            End::Cancelled => End::Cancelled,
            End::Failed(failure) => End::Failed(failure.clone()),
            End::Skipped(nothing) => End::Skipped(*nothing),
        };
        compaction.finish(end, &self.sent_usage, Vec::new());
        if let Some(recovery) = self.recoveries.running.take() {
            self.end_recovery(recovery, around, notices);
        }
    }

    /// Ends a recovery.
    fn end_recovery(&mut self, recovery: Operation, end: End<Product>, notices: Vec<(String, String)>) {
        let why = match &end {
            End::Completed(_) | End::Cancelled => None,
            End::Failed(failure) => Some(failure.to_string()),
            End::Skipped(nothing) => Some(Failure::NothingToCompact(*nothing).to_string()),
        };
        let leaf = self.state.visible_leaf();
        if matches!(end, End::Completed(_)) {
            // Messages that came meanwhile may be over the window again.
            self.held.iter_mut().for_each(|context| context.waits_for = WaitsFor::Decision);
        }
        let why = why.filter(|_| !planted(Fault::FailureForgotten) && !self.went_on(&recovery));
        self.recoveries.failed = why.map(|why| Failed { leaf, why: recovery.kind.failed(&why) });
        self.settle();
        recovery.finish(end, &self.sent_usage, notices);
        self.record_running();
        self.answer_held();
    }

    /// Whether the conversation went on while a recovery ran: with a message of the user, with an answer, or on another branch.
    fn went_on(&self, recovery: &Operation) -> bool {
        let OperationKind::Recovery(Recovery { removed: Some(removed), .. }) = &recovery.kind else { return false };
        let path = self.state.path();
        let answers = |entry: &Entry| entry.outline().is_some_and(|it| it.role == Role::Assistant && !it.failed);
        let goes_on = |entry: &Arc<Entry>| entry.is_from(Role::User) || answers(entry);
        path.position(removed).is_none_or(|place| path[place + 1..].iter().any(goes_on))
    }

    /// Forgets the recovery that a cancel has ended.
    pub(super) fn forget_cancelled_recovery(&mut self) {
        self.recoveries.running.take_if(|recovery| !recovery.is_open());
    }

    /// Cancels a recovery that starts behind the write that runs, and names it.
    pub(super) fn cancel_due_recovery(&mut self, which: Option<&OperationId>) -> Option<Cancelled> {
        if which.is_none() {
            self.recoveries.reported.clear();
        }
        let LogState::Writing(_, Write::Recovery { due, .. }) = &self.log else { return None };
        let named = which.is_none_or(|which| *which == due.id) && !due.stop.requested();
        if named {
            due.stop.request();
        }
        named.then(|| Cancelled { operation_id: due.id.clone(), kind: RECOVERY.to_owned() })
    }

    /// The error of a recovery whose attempts are used up.
    fn given_up(&self, reason: RecoveryReason, attempts: u32) -> Failure {
        let why = match reason {
            RecoveryReason::Overflow => format!(
                "The provider refused it {} times in a row, and {attempts} attempts to make it smaller are used up. Use a \
                 larger model, fewer tools, or a shorter message.",
                attempts + 1
            ),
            RecoveryReason::Incomplete => format!(
                "The answer was cut off {} times in a row. Use a model with a larger window or output limit, or ask for \
                 less at once.",
                attempts + 1
            ),
        };
        Failure::OverWindow { floor: self.state.measure().floor(), why }
    }

    /// The reason for which there is no context to repeat the turn with, if its recovery failed.
    pub(super) fn failed_recovery(&self) -> Option<&str> {
        let leaf = self.state.path().visible_leaf();
        let failed = self.recoveries.failed.as_ref().filter(|failed| failed.leaf.as_ref() == leaf);
        failed.map(|failed| failed.why.as_str())
    }

    /// Whether requests for the context wait for a recovery.
    pub(super) fn recovers(&self) -> bool {
        self.recoveries.running.is_some() || !self.recoveries.reported.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        log::error::StoreError,
        protocol::{
            SessionConfigure, SessionContext,
            events::{RecoveryAction, RecoveryOutcome, RecoveryReason},
            types::Outcome,
        },
        session::{
            core::{
                Input, Over,
                held::{
                    Held, answer, built, draft, events, job, line, log_work, message, notices, outcomes, plan, written,
                },
            },
            effects::Effect,
            jobs::DraftOrder,
            log_work::LogDone,
        },
    };
    use serde_json::Value;

    /// An append of an answer that the provider refused.
    fn refused(held: &mut Held, number: u64) {
        let answer = json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
            "errorMessage": "context_length_exceeded"});
        held.append_with(number, json!({"messages": [answer]}));
    }

    fn next(effects: &[Effect], number: u64) -> Value {
        answer(effects, number).expect("an answer")["next"].clone()
    }

    /// The recoveries that started, and the outcomes of those that ended.
    fn recoveries(effects: &[Effect]) -> (usize, Vec<RecoveryOutcome>) {
        let starts = events(effects).filter(|event| matches!(event, Event::RecoveryStart { .. })).count();
        let outcome = |event: &Event| match event {
            Event::RecoveryEnd { outcome, .. } => Some(*outcome),
            _ => None,
        };
        (starts, events(effects).filter_map(outcome).collect())
    }

    /// A refusal is appended and answered. The entries of its recovery are being written.
    fn due(held: &mut Held, number: u64) -> crate::session::log_work::LogWork {
        refused(held, number);
        let work = log_work(held.turn()).expect("a write");
        let effects = held.back(work);
        assert_eq!(next(&effects, number)["reason"], "overflow");
        log_work(effects).expect("a second write")
    }

    fn is_answered(effects: &[Effect], number: u64) -> bool {
        effects.iter().any(|effect| matches!(effect, Effect::Answer(it, _) if *it == number))
    }

    fn wait_for_context(held: &mut Held, number: u64) -> Vec<Effect> {
        held.call::<SessionContext>(number, json!({"wait": true}));
        held.turn()
    }

    #[test]
    fn a_recovery_whose_entries_cannot_be_written_has_its_start_and_its_end() {
        let mut held = Held::new();
        let _ = due(&mut held, 1);
        let effects = held.lose_log();
        assert_eq!(recoveries(&effects), (1, vec![RecoveryOutcome::Failed]));
        assert_eq!(held.core.over(), Over::Yes);
    }

    #[test]
    fn a_recovery_that_is_cancelled_before_its_start_has_its_start_and_its_end() {
        let mut held = Held::new();
        let work = due(&mut held, 1);
        let cancelled = held.cancel(2);
        let named = answer(&cancelled, 2).expect("an answer");
        assert_eq!(named["cancelled"][0]["kind"], "recovery");
        let again = held.cancel(3);
        assert_eq!(answer(&again, 3).expect("an answer")["cancelled"], json!([]), "it is named once");
        assert_eq!(recoveries(&held.back(work)), (1, vec![RecoveryOutcome::Cancelled]));
        assert!(!held.turn().iter().any(|effect| matches!(effect, Effect::Start(_))));
    }

    #[test]
    fn the_end_of_a_session_cancels_a_recovery_before_its_start() {
        let mut held = Held::new();
        let work = due(&mut held, 1);
        held.feed(Input::Stop);
        assert_eq!(recoveries(&held.back(work)), (1, vec![RecoveryOutcome::Cancelled]));
        assert_eq!(held.core.over(), Over::Yes);
    }

    #[test]
    fn the_entries_of_a_recovery_are_written_behind_those_of_another_program() {
        let mut held = Held::new();
        let work = due(&mut held, 1);
        let leaf = held.core.state().path().last().expect("a leaf").id.clone();
        held.disk.append_as_another(&message("other", Some(leaf.as_str()))).expect("an entry");
        let effects = held.back(work);
        let again = log_work(effects).expect("another write");
        assert!(written(Some(&again)).iter().any(|kind| kind == "context_edit"));
        assert_eq!(recoveries(&held.back(again)), (1, Vec::new()));
    }

    /// The plan of a compaction that runs is made, then its draft.
    fn drafted(held: &mut Held, effects: Vec<Effect>) -> DraftOrder {
        let Job::Plan(order) = job(effects) else { unreachable!("a plan is made first") };
        let id = order.id.clone();
        let Job::Draft(order) = job(held.feed(Input::Planned(id, Ok(plan(order))))) else { unreachable!("a draft") };
        order
    }

    #[test]
    fn a_cancel_ends_the_compaction_before_its_recovery() {
        let mut held = Held::new();
        let work = due(&mut held, 1);
        let effects = held.back(work);
        drafted(&mut held, effects);
        let cancelled = held.cancel(2);
        assert_eq!(answer(&cancelled, 2).expect("an answer")["cancelled"].as_array().map(Vec::len), Some(1));
        let ends: Vec<&str> = events(&cancelled).map(Event::kind).collect();
        assert_eq!(ends, ["compaction_end", "recovery_end", "status_changed", "settled"]);
        assert!(is_answered(&wait_for_context(&mut held, 3), 3));
    }

    #[test]
    fn contexts_wait_for_a_recovery_and_are_answered_behind_it() {
        let mut held = Held::new();
        let work = due(&mut held, 1);
        let effects = held.back(work);
        let order = drafted(&mut held, effects);
        assert!(!is_answered(&wait_for_context(&mut held, 2), 2));
        held.call::<SessionContext>(3, json!({}));
        assert!(is_answered(&held.turn(), 3), "as the session stands");
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        let work = log_work(held.turn()).expect("a write");
        let effects = held.back(work);
        assert_eq!(outcomes(&effects), [Outcome::Completed]);
        assert_eq!(recoveries(&effects).1, [RecoveryOutcome::Recovered]);
        assert!(is_answered(&effects, 2));
    }

    #[test]
    fn a_recovery_that_fails_holds_back_no_later_request() {
        let branch = json!({"parentEntryId": "e10"});
        for (params, refused_again) in [(json!({}), false), (branch, false), (Value::Null, true)] {
            let mut held = Held::new();
            let work = due(&mut held, 1);
            let effects = held.back(work);
            let order = drafted(&mut held, effects);
            if !params.is_null() {
                held.append_with(2, params);
                let work = log_work(held.turn()).expect("a write");
                held.back(work);
            }
            let failed = held.feed(Input::Drafted(order.id, Err(Failure::Internal("it failed".to_owned()))));
            assert_eq!(recoveries(&failed).1, [RecoveryOutcome::Failed]);
            let effects = wait_for_context(&mut held, 3);
            assert!(is_answered(&effects, 3));
            assert_eq!(answer(&effects, 3) == Some(json!("context_overflow")), refused_again);
        }
    }

    #[test]
    fn a_refusal_during_a_compaction_is_decided_about_behind_it() {
        for smaller in [true, false] {
            let mut held = Held::new();
            let order = held.begin_draft(1);
            refused(&mut held, 2);
            let work = log_work(held.turn()).expect("a write");
            let effects = held.back(work);
            assert_eq!(next(&effects, 2)["operationId"], json!(order.id), "next names the compaction that runs");
            let effects = match smaller {
                true => {
                    held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
                    let work = log_work(held.turn()).expect("a write");
                    held.back(work)
                }
                false => held.feed(Input::Drafted(order.id, Err(Failure::Internal("it failed".to_owned())))),
            };
            assert_eq!(outcomes(&effects).len(), 1);
            let work = log_work(held.turn()).expect("the answer leaves the context");
            let kinds = written(Some(&work));
            assert!(kinds.contains(&"context_edit".to_owned()), "{kinds:?}");
            let effects = held.back(work);
            assert_eq!(recoveries(&effects).0, usize::from(!smaller));
        }
    }

    /// A refusal was appended while a draft was made, and a context waits. The compaction ends with a failure.
    fn reported(held: &mut Held, behind: &[Value]) -> Vec<Effect> {
        let order = held.begin_draft(1);
        refused(held, 2);
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        for message in behind {
            held.append_with(3, json!({"messages": [message]}));
            let work = log_work(held.turn()).expect("a write");
            held.back(work);
        }
        assert!(!is_answered(&wait_for_context(held, 4), 4));
        held.feed(Input::Drafted(order.id, Err(Failure::Internal("it failed".to_owned()))))
    }

    #[test]
    fn a_refusal_that_the_conversation_went_on_behind_only_leaves_the_context() {
        let good = json!({"role": "assistant", "content": [{"type": "text", "text": "Done."}], "stopReason": "stop",
            "timestamp": 1});
        for behind in [json!({"role": "user", "content": "go on", "timestamp": 1}), good] {
            let mut held = Held::new();
            reported(&mut held, &[behind]);
            let work = log_work(held.turn()).expect("the answer leaves the context");
            assert_eq!(written(Some(&work)), ["context_edit"]);
            let effects = held.back(work);
            assert_eq!(recoveries(&effects).0, 0);
            let kinds: Vec<&str> = events(&effects).map(Event::kind).collect();
            assert!(kinds.contains(&"entry_appended"), "{kinds:?}");
            assert!(is_answered(&effects, 4));
        }
    }

    #[test]
    fn a_refusal_that_cannot_leave_the_context_does_not_hold_it() {
        let user = json!({"role": "user", "content": "go on", "timestamp": 1});
        let mut held = Held::new();
        reported(&mut held, std::slice::from_ref(&user));
        assert!(log_work(held.turn()).is_some());
        let effects = refuse_write(&mut held);
        assert_eq!(notices(&effects), ["A failed answer could not be removed from the context"]);
        assert!(is_answered(&effects, 4));

        let mut held = Held::new();
        reported(&mut held, &[user]);
        let work = log_work(held.turn()).expect("a write");
        let leaf = held.core.state().path().last().expect("a leaf").id.clone();
        held.disk.append_as_another(&message("other", Some(leaf.as_str()))).expect("an entry");
        assert!(is_answered(&held.back(work), 4), "another program was faster");
    }

    /// The write that is out fails.
    fn refuse_write(held: &mut Held) -> Vec<Effect> {
        let error = StoreError::Changed { path: "/held".into(), what: "it was cut".to_owned() };
        let facts = held.facts();
        held.feed(Input::Log(Some(LogDone::Wrote { appended: Err(error), path: None, undone: None }), facts))
    }

    #[test]
    fn a_recovery_whose_write_fails_refuses_the_context_until_the_session_goes_on() {
        let mut held = Held::new();
        let _ = due(&mut held, 1);
        let effects = refuse_write(&mut held);
        assert_eq!(recoveries(&effects), (1, vec![RecoveryOutcome::Failed]));
        assert!(answer(&wait_for_context(&mut held, 2), 2).is_some_and(|answer| answer.is_string()), "it is refused");
        held.append(3);
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        let effects = wait_for_context(&mut held, 4);
        assert!(is_answered(&effects, 4) && !answer(&effects, 4).is_some_and(|answer| answer.is_string()));
    }

    #[test]
    fn a_cancel_of_all_forgets_a_refusal_that_is_not_decided_about() {
        for all in [true, false] {
            let mut held = Held::new();
            let order = held.begin_draft(1);
            refused(&mut held, 2);
            let work = log_work(held.turn()).expect("a write");
            held.back(work);
            let ticket = held.ticket(3);
            held.feed(Input::Cancel((!all).then(|| order.id.clone()), ticket));
            assert_eq!(log_work(held.turn()).is_none(), all);
        }
    }

    #[test]
    fn a_cancel_of_another_operation_leaves_a_recovery_before_its_start() {
        let mut held = Held::new();
        let work = due(&mut held, 1);
        let ticket = held.ticket(2);
        let cancelled = held.feed(Input::Cancel(Some("another".into()), ticket));
        assert_eq!(answer(&cancelled, 2).expect("an answer")["cancelled"], json!([]));
        assert_eq!(recoveries(&held.back(work)), (1, Vec::new()));
    }

    #[test]
    fn only_the_last_of_several_appends_names_the_recovery() {
        let mut held = Held::new();
        held.append(1);
        refused(&mut held, 2);
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(written(Some(&work)), ["message", "message"]);
        let effects = held.back(work);
        assert_eq!(next(&effects, 1), json!({"type": "none"}));
        assert_eq!(next(&effects, 2)["reason"], "overflow");
    }

    #[test]
    fn a_second_refusal_behind_the_same_change_compacts() {
        let mut held = Held::new();
        wait_for_context(&mut held, 1);
        held.edit::<SessionConfigure>(2, json!({"model": "p/other"}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        for (number, expected) in [(3, RecoveryAction::Retry), (4, RecoveryAction::Compact)] {
            let work = due(&mut held, number);
            let effects = held.back(work);
            let action = events(&effects).find_map(|event| match event {
                Event::RecoveryStart { action, .. } => Some(*action),
                _ => None,
            });
            assert_eq!(action, Some(expected), "request {number}");
        }
    }

    #[test]
    fn a_refusal_behind_a_compaction_of_another_program_waits_for_the_index() {
        let fields = json!({"summary": "A parser was mended.", "firstKeptEntryId": "e10", "tokensBefore": 100});
        let mut lines = crate::session::core::held::messages();
        lines.push(line("c1", Some("e39"), "compaction", fields));
        let mut held = Held::of(&lines, 0);
        refused(&mut held, 1);
        let work = log_work(held.turn()).expect("a write");
        let effects = held.back(work);
        assert_eq!(next(&effects, 1), json!({"type": "none"}));
        assert!(!is_answered(&wait_for_context(&mut held, 2), 2), "the context waits");
        let rest = held.feed(built(job(effects)));
        let work = log_work(rest).or_else(|| log_work(held.turn())).expect("the rest of the index, or the entries");
        let effects = held.back(work);
        let started = match recoveries(&effects).0 {
            0 => {
                let work = log_work(held.turn()).expect("the entries of the recovery");
                recoveries(&held.back(work)).0
            }
            started => started,
        };
        assert_eq!(started, 1);
    }

    #[test]
    fn all_answers_that_fail_during_a_compaction_leave_the_context() {
        let mut held = Held::new();
        let order = held.begin_draft(1);
        for (number, id) in [(2, "a"), (3, "b")] {
            let call = json!({"type": "toolCall", "id": id, "name": "read", "arguments": {}});
            let cut = json!({"role": "assistant", "content": [call], "stopReason": "length", "timestamp": 1});
            held.append_with(number, json!({"messages": [cut]}));
            let work = log_work(held.turn()).expect("a write");
            held.back(work);
        }
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        let work = log_work(held.turn()).expect("the compaction");
        held.back(work);
        let work = log_work(held.turn()).expect("the answers leave the context");
        let removed = written(Some(&work)).iter().filter(|kind| *kind == "context_edit").count();
        assert_eq!(removed, 2, "in one write");
    }

    #[test]
    fn appends_behind_a_failed_answer_are_another_write() {
        let mut held = Held::new();
        refused(&mut held, 1);
        held.append(2);
        let work = log_work(held.turn()).expect("a write");
        assert_eq!(written(Some(&work)), ["message"]);
        assert_eq!(next(&held.back(work), 1)["reason"], "overflow");
    }

    #[test]
    fn a_lock_that_names_a_recovery_is_settled_as_failed() {
        let kind = OperationKind::Recovery(Recovery {
            reason: RecoveryReason::Incomplete,
            removed: None,
            action: crate::protocol::events::RecoveryAction::Compact,
        });
        use crate::session::operations::Kind;
        let read = OperationKind::read(kind.name(), &kind.cause()).expect("a kind");
        assert_eq!(read.reason(), Reason::Incomplete);
        assert!(matches!(read, OperationKind::Recovery(_)));
    }
}
