//! `session/cancel`, requests that the client cancels, and the end of a session that cancels what runs.

use crate::{
    ids::OperationId,
    protocol::{
        errors::Nothing,
        types::{Cancelled, IdleSkipped},
    },
    session::{
        core::{
            Core,
            command::Command,
            standing::Standing,
            transfers,
            work::{TransferPhase, Unbegun, Unstarted, Work},
        },
        effects::{Ticket, TicketNumber},
        kind::OperationKind,
        operations::{Asked, Cancelling, End, Kind as _, Place},
        stop::Stop,
    },
};

impl Standing<'_> {
    /// Whether compactions that were cancelled before their starts may start and end now. A start follows the write before it,
    /// but not the answers that wait for counts. A compaction whose write was too late is still open when the
    /// log is back, and is written first. So is the entry which says that a compaction waits no more for the end of the turn:
    /// after its end event no restart brings it back.
    pub(in crate::session::core) fn may_end_cancelled(&self) -> bool {
        self.core.log.is_here()
            && !self.core.cancelled.is_empty()
            && !self.core.upkeep.after_turn.must_write(self.core.log.facts().access)
            && self.core.work.operation().is_none_or(|operation| !operation.is_open())
    }
}

impl Core {
    /// Cancels the operation with this id, or without one all that runs and the compactions that wait for their turn. The
    /// answer goes out before the end events. Only the answer that names a compaction after the turn waits, for the entry
    /// after which no restart brings that one back.
    pub(in crate::session::core) fn cancel(&mut self, which: Option<&OperationId>, ticket: Ticket) {
        let access = self.log.facts().access;
        self.idle.rounds.arm(self.now);
        let round = which.is_none().then(|| self.take_unstarted_round()).flatten();
        let cancelling = self.operations.cancel(which);
        let mut unstarted: Vec<Unstarted> = self.work.take_unstarted(which).into_iter().collect();
        unstarted.extend(self.upkeep.after_turn.withdraw(which, access).map(Unstarted::from));
        if which.is_none() {
            unstarted.extend(self.take_waiting());
        }
        let due = self.recoveries.cancel_due(which, &self.log.follow_up());
        self.upkeep.switches.cancelled(which);
        let before = self.cancelled.iter().filter(|it| matches!(it.end, End::Cancelled)).map(|it| &it.request);
        let before = before.filter(|request| which.is_none_or(|which| *which == request.id));
        let named =
            |request: &Unstarted| Cancelled { operation_id: request.id.clone(), kind: request.kind.name().to_owned() };
        let all = cancelling.named.iter().cloned().chain(before.chain(&unstarted).map(named)).chain(due);
        let answer = self.upkeep.after_turn.answer_cancel(ticket, all.collect());
        self.follow_after_turn(answer);
        self.effects.turn_idle(round.and_then(|round| round.ends(IdleSkipped::Cancelled)));
        self.leave_unstarted(unstarted);
        self.end_cancelled(cancelling);
        self.end_unstarted([] as [Unstarted; 0]);
    }

    /// Cancels what runs, but not a draft that is being written. The ends are sent at once, and late results are ignored.
    pub(in crate::session::core) fn stop_running(&mut self, which: Option<&OperationId>) {
        let round = which.is_none().then(|| self.take_unstarted_round()).flatten();
        let cancelling = self.operations.cancel(which);
        self.recoveries.cancel_due(which, &self.log.follow_up());
        self.upkeep.switches.cancelled(which);
        let access = self.log.facts().access;
        let delayed = match which {
            Some(_) => self.upkeep.after_turn.take(which),
            None => self.upkeep.after_turn.take_at_end(access),
        };
        let unstarted = self.work.take_unstarted(which).into_iter().chain(delayed.map(Unstarted::from));
        let unstarted: Vec<Unstarted> = unstarted.collect();
        self.effects.turn_idle(round.and_then(|round| round.ends(IdleSkipped::Cancelled)));
        self.leave_unstarted(unstarted);
        self.end_cancelled(cancelling);
        self.end_unstarted([] as [Unstarted; 0]);
    }

    /// Ends the operations that a cancel selected. Contexts that waited for them, or for a decision that the cancel has
    /// dropped, are answered.
    pub(in crate::session::core) fn end_cancelled(&mut self, cancelling: Cancelling) {
        if !cancelling.ends_nothing() {
            // A transfer whose write is under way completes.
            if let Work::Transfer(operation, TransferPhase::Making(_) | TransferPhase::Made(..)) = &self.work {
                let kind = operation.kind.clone();
                self.transfer_ends(&kind, &End::Cancelled);
            }
            self.settle();
            self.operations.end_cancelled(cancelling, &self.sent_usage);
            self.upkeep.extracts.forget_ended();
            if let Some(operation) = self.work.operation()
                && operation.has_ended()
            {
                let kind = self.upkeep.relays.around().map_or(&operation.kind, |around| &around.kind).clone();
                self.rests_after(&kind, &End::Cancelled);
                self.held.go_on_after(&kind, &End::Cancelled);
                self.work = Work::None;
                self.recoveries.forget_cancelled();
                self.upkeep.relays.forget_cancelled();
                let turning = self.idle.rounds.leave_ended();
                self.effects.turn_idle(turning);
            }
            self.record_running();
        }
        self.answer_held();
    }

    /// Takes out the compactions and transfers that were sent before a cancel and have not been handled.
    fn take_waiting(&mut self) -> Vec<Unstarted> {
        let fetching = self.log.take_fetching();
        let for_index = self.index.commands.take_out(Command::can_be_cancelled);
        let waiting = fetching.into_iter().chain(for_index).chain(self.queue.take_out(Command::can_be_cancelled));
        let request = |(command, ticket)| match command {
            Command::Compact(params) => {
                let id = self.stamps.operation();
                let asked = Asked::by(ticket, params.wait);
                Some(Unstarted { id, kind: OperationKind::BY_CLIENT, asked, stop: Stop::default() })
            }
            Command::Transfer(request) => {
                let id = self.stamps.operation();
                let asked = Asked::by(ticket, request.wait());
                Some(Unstarted { id, kind: transfers::kind_of(&self.state, &request), asked, stop: Stop::default() })
            }
            _ => None,
        };
        waiting.filter_map(request).collect()
    }

    /// Ends compactions that were cancelled before their starts were sent, or leaves them to the turns.
    pub(in crate::session::core) fn end_unstarted<R: Into<Unstarted>>(
        &mut self,
        requests: impl IntoIterator<Item = R>,
    ) {
        self.leave_unstarted(requests);
        if Standing::of(self).may_end_cancelled() {
            self.begin_all_cancelled();
        }
    }

    /// Leaves compactions that were cancelled before their starts to the turns. `settled` waits for their ends.
    fn leave_unstarted(&mut self, requests: impl IntoIterator<Item = impl Into<Unstarted>>) {
        let cancelled = |request: Unstarted| Unbegun { request, end: End::Cancelled };
        self.leave_unbegun(requests.into_iter().map(Into::into).map(cancelled));
    }

    /// The same for operations that end before their starts in any way.
    pub(in crate::session::core) fn leave_unbegun(&mut self, unbegun: impl IntoIterator<Item = Unbegun>) {
        let before = self.cancelled.len();
        self.cancelled.extend(unbegun);
        self.cancelled[before..].iter().for_each(|it| it.request.stop.request());
        self.settle();
    }

    /// Another compaction, a reset or a handoff has done the work of the compaction after the turn, which ends as skipped.
    pub(in crate::session::core) fn leave_superseded(&mut self) {
        let superseded = self.upkeep.after_turn.take(None);
        let end = End::Skipped(Nothing::Superseded);
        self.leave_unbegun(superseded.map(|request| Unbegun { request: request.into(), end }));
    }

    /// Starts and ends the compactions that were cancelled before their starts.
    pub(in crate::session::core) fn begin_all_cancelled(&mut self) {
        while !self.cancelled.is_empty() {
            let Unbegun { request: Unstarted { id, kind, asked, stop }, end } = self.cancelled.remove(0);
            let usage = self.state.usage();
            let operation = self.open(kind, Place::Top(id), asked, usage, stop);
            self.finish(operation, end);
        }
    }

    /// Answers a waiting request that the client cancelled. A compaction ends with its request. A command that waits for
    /// its turn is answered then.
    pub(in crate::session::core) fn request_cancelled(&mut self, request: TicketNumber) {
        self.effects.cancel(request);
        self.held.end_cancelled();
        if self.idle.rounds.request_cancelled(|| self.work.request_cancelled()) {
            self.end_unstarted_round(IdleSkipped::Cancelled);
        }
        let delayed = self.upkeep.after_turn.take_without_request();
        self.end_unstarted(delayed);
        if let Some(id) = self.upkeep.extracts.without_request() {
            self.stop_running(Some(&id));
        }
        if self.work.request_cancelled() {
            let id = self.work.id().cloned();
            self.stop_running(id.as_ref());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        log::{Appended, Grown},
        protocol::{SessionNavigate, errors::Failure, types::Outcome},
        session::{
            core::{
                Input, Over,
                command::CommandMethod as _,
                held::{Held, answer, draft, job, log_work, outcomes},
            },
            effects::Effect,
            jobs::{Job, progress::Progress},
            log_work::{LogDone, LogWork},
        },
        summary::model::writer::Step,
    };
    use serde_json::json;

    #[test]
    fn a_compaction_that_was_cancelled_during_a_write_ends_before_the_session_does() {
        let mut held = Held::new();
        held.compact(1);
        assert!(matches!(job(held.turn()), Job::Plan(_)));
        held.append(2);
        let work = log_work(held.turn()).expect("a write");
        let cancelled = held.cancel(3);
        let named = answer(&cancelled, 3).expect("a cancel is answered immediately");
        assert_eq!(named["cancelled"].as_array().map(Vec::len), Some(1));
        assert!(outcomes(&cancelled).is_empty(), "the lock is with the writer");
        held.feed(Input::Stop);
        held.back(work);
        assert_eq!(held.core.over(), Over::No);
        let ended = held.turn();
        assert_eq!(outcomes(&ended), [Outcome::Cancelled]);
        assert!(answer(&ended, 1).is_some());
        assert_eq!(held.core.over(), Over::Yes);
    }

    #[test]
    fn a_compaction_that_was_cancelled_in_the_queue_ends_behind_the_one_that_is_written_again() {
        let mut held = Held::new();
        let order = held.begin_draft(1);
        held.feed(Input::Drafted(order.id.clone(), Ok(draft(order))));
        assert!(log_work(held.turn()).is_some());
        held.compact(2);
        let cancelled = held.cancel(3);
        let named = answer(&cancelled, 3).expect("a cancel is answered immediately");
        assert_eq!(named["cancelled"].as_array().map(Vec::len), Some(1), "the first one is being written");

        // Another program was faster.
        let behind =
            LogDone::Wrote { appended: Ok(Appended::Behind(Grown::default())), path: None, undone: None, added: None };
        let facts = held.facts();
        held.feed(Input::Log(Some(behind), facts));
        let id = named["cancelled"][0]["operationId"].as_str().expect("an id").into();
        let ticket = held.ticket(4);
        let again = held.feed(Input::Cancel(Some(id), ticket));
        assert!(answer(&again, 4).is_some() && outcomes(&again).is_empty());
        let effects = held.turn();
        assert!(outcomes(&effects).is_empty() && answer(&effects, 2).is_none());
        let work = log_work(effects).expect("a write");
        assert_eq!(outcomes(&held.back(work)), [Outcome::Completed]);
        assert_eq!(outcomes(&held.turn()), [Outcome::Cancelled]);
    }

    #[test]
    fn the_end_of_a_compaction_is_recorded_while_the_log_is_out() {
        let mut held = Held::new();
        held.begin_draft(1);
        held.append(2);
        assert!(log_work(held.turn()).is_some());
        let effects = held.cancel(3);
        assert_eq!(outcomes(&effects), [Outcome::Cancelled]);
        assert!(effects.iter().any(|effect| matches!(effect, Effect::Record(open) if open.is_empty())));
        held.lose_log();
        assert_eq!(held.core.over(), Over::Yes);
    }

    #[test]
    fn a_late_draft_of_a_cancelled_compaction_leaves_the_next_one_alone() {
        let mut held = Held::new();
        let first = held.begin_draft(1).id;
        assert_eq!(outcomes(&held.cancel(2)), [Outcome::Cancelled]);
        let second = held.begin_draft(3).id;
        let late = held.feed(Input::Drafted(first.clone(), Err(Failure::Cancelled)));
        assert!(outcomes(&late).is_empty() && answer(&late, 3).is_none());
        let step = Progress::Summary(Step::Progress { done: 1, total: 2 });
        assert!(held.feed(Input::Reported(first, step.clone())).is_empty(), "a late report is not sent");
        assert!(!held.feed(Input::Reported(second.clone(), step)).is_empty());
        let ended = held.feed(Input::Drafted(second, Err(Failure::Cancelled)));
        assert_eq!(outcomes(&ended), [Outcome::Cancelled]);
    }

    fn named(effects: &[Effect], number: u64) -> usize {
        answer(effects, number).expect("an answer")["cancelled"].as_array().map_or(0, Vec::len)
    }

    #[test]
    fn a_cancel_with_an_id_leaves_compactions_that_wait_for_their_turn() {
        let mut held = Held::new();
        held.append(1);
        let work = log_work(held.turn()).expect("a write");
        held.compact(2);
        let ticket = held.ticket(3);
        assert_eq!(named(&held.feed(Input::Cancel(Some("another".into()), ticket)), 3), 0);
        held.back(work);
        assert!(matches!(job(held.turn()), Job::Plan(_)));
    }

    #[test]
    fn a_compaction_that_waits_for_its_cancelled_end_is_named_again() {
        let mut held = Held::new();
        held.append(1);
        assert!(log_work(held.turn()).is_some());
        held.compact(2);
        assert_eq!(named(&held.cancel(3), 3), 1);
        assert_eq!(named(&held.cancel(4), 4), 1);
        let ticket = held.ticket(5);
        assert_eq!(named(&held.feed(Input::Cancel(Some("another".into()), ticket)), 5), 0);
    }

    #[test]
    fn a_stop_ends_what_runs_and_what_is_planned() {
        let mut held = Held::new();
        held.begin_draft(1);
        let stopped = held.feed(Input::Stop);
        assert_eq!(outcomes(&stopped), [Outcome::Cancelled]);
        assert!(answer(&stopped, 1).is_some());

        let mut held = Held::new();
        held.compact(1);
        assert!(matches!(job(held.turn()), Job::Plan(_)));
        let stopped = held.feed(Input::Stop);
        assert_eq!(outcomes(&stopped), [Outcome::Cancelled]);
        assert!(answer(&stopped, 1).is_some());
    }

    #[test]
    fn a_cancel_stops_the_planning_of_a_compaction_that_cannot_start_yet() {
        let mut held = Held::new();
        held.compact(1);
        let Job::Plan(order) = job(held.turn()) else { unreachable!("a plan is made first") };
        held.append(2);
        assert!(log_work(held.turn()).is_some());
        held.cancel(3);
        assert!(order.stop.requested());
    }

    #[test]
    fn a_cancel_takes_a_navigation_while_its_way_is_read() {
        let mut held = Held::new();
        let params = json!({"sessionId": "held", "targetEntryId": "branch", "summarize": true, "wait": true});
        held.send(1, SessionNavigate::command(serde_json::from_value(params).expect("params")));
        let read = log_work(held.turn()).expect("the way is read");
        let cancelled = held.cancel(2);
        assert_eq!(named(&cancelled, 2), 1);
        let mut effects = held.back(read);
        while held.core.is_due() {
            effects.extend(held.turn());
        }
        assert_eq!(answer(&effects, 1).expect("an answer")["outcome"], "cancelled");
        assert!(log_work(effects).is_none() && held.core.over() == Over::No);
        assert_eq!(held.core.state().visible_leaf(), Some("e39".into()));

        // The next one reads its own way.
        let params = json!({"sessionId": "held", "targetEntryId": "branch"});
        held.send(3, SessionNavigate::command(serde_json::from_value(params).expect("params")));
        assert!(matches!(log_work(held.turn()), Some(LogWork::Fetch(_))));
    }

    #[test]
    fn a_cancelled_end_is_recorded_in_the_lock() {
        let mut held = Held::new();
        held.begin_draft(1);
        let cancelled = held.cancel(2);
        assert!(cancelled.iter().any(|effect| matches!(effect, Effect::Record(open) if open.is_empty())));
    }

    #[test]
    fn a_request_that_is_cancelled_ends_its_compaction_and_nothing_else() {
        let mut held = Held::new();
        held.begin_draft(1);
        let refused = json!({"role": "assistant", "content": [], "stopReason": "error", "timestamp": 1,
            "errorMessage": "context_length_exceeded"});
        held.append_with(2, json!({"messages": [refused]}));
        let work = log_work(held.turn()).expect("a write");
        held.back(work);
        assert_eq!(outcomes(&held.feed(Input::RequestCancelled(1))), [Outcome::Cancelled]);
        assert!(log_work(held.turn()).is_some(), "the refusal is decided about");
    }
}
