//! The work that starts: answers of writes with the maintenance that follows them, and maintenance without a request.

use super::{
    Core, Moment,
    automatic::{self, AtLeaf, resuming, speculating, switching},
    commands::{
        append::{Append, Asker},
        compacting::delayed,
        context::{self, Way},
    },
    due::{Due, DueCompaction, DueRecovery, DueRepeat},
    edit::{EditWrite, Staged},
    idle::{self, IdleWork, maintenance},
    parts::{
        queue,
        waiting_contexts::{Starts, WaitingContext, must_fit},
    },
    recovering::{self, Begun, MayStart, judging, reported, reports},
    standing::{self, Standing},
    step::Step,
    transfers::relaying,
    turns::Outlook,
    writing::{appends, edits},
};
use crate::{
    compaction::decide::Why,
    conversation::message::outline::Role,
    protocol::{
        errors::Failure,
        events::Reason,
        types::{ContextParams, Next},
    },
    session::{
        effects::Ticket,
        fault::{Fault, planted},
        kind::OperationKind,
        operations::{Asked, Follows, Kind as _},
    },
};

impl Standing<'_> {
    /// `next` of an append or an edit: the maintenance that is due, or the one that runs.
    fn next(&self, due: Option<&Due>) -> Next {
        let base = &self.core.base;
        let (operation_id, reason, will_retry) = match (due, base.work.operation()) {
            (Some(Due::Repeat(DueRepeat { max_output, why, .. })), _) => {
                return Next::Retry { will_retry: true, max_output_tokens: *max_output, why: why.clone() };
            }
            (Some(Due::Recovery(due)), _) => {
                (due.id.clone(), OperationKind::Recovering(due.reason).cause(), due.repeats_the_turn())
            }
            (Some(Due::Delayed(request)), _) => (request.id.clone(), request.kind.cause(), false),
            (Some(Due::Compaction(due)), _) => (due.id.clone(), OperationKind::Compaction(due.reason).cause(), false),
            (_, Some(operation)) if self.is_maintenance(operation) => {
                let operation = base.relay().unwrap_or(operation);
                let repeats =
                    operation.kind.repeats_the_turn() || self.core.recoveries.repeat_after_maintenance(&base.state);
                (operation.id.clone(), operation.kind.cause(), repeats)
            }
            _ => return Next::None,
        };
        Next::Maintenance { operation_id, reason, will_retry, will_continue: false }
    }

    fn at_leaf(&self) -> AtLeaf {
        let (decision, may_start) = (self.decision(), self.may_maintain());
        let is_due = may_start && standing::is_due(&decision);
        AtLeaf { decision, is_due, may_start }
    }

    fn maintenance(&self) -> MayStart {
        match () {
            () if self.may_maintain() => MayStart::Now { rests: self.rests() },
            () if self.maintains() => MayStart::Later,
            () => MayStart::No,
        }
    }
}

/// Answers of writes.
impl Core {
    /// Appends are on disk. Where a compaction seems to be due, the decision waits for counts.
    pub(super) fn appended(&mut self, appends: Vec<Append>) {
        if Standing::of(self).seems_due() && self.base.log.is_free() {
            self.base.log.waits_for_counts();
            self.uncounted = Some(Step::AnswerAppends(appends));
            return;
        }
        self.answer_appends(appends);
    }

    /// Answers appends that are on disk, announces their entries, and starts the maintenance that is due.
    pub(super) fn answer_appends(&mut self, appends: Vec<Append>) {
        self.has_changed();
        let remark = reports::heed_report(&mut self.base, &mut self.upkeep.notices, &appends);
        let model = appends.first().and_then(|append| append.model.clone());
        let newest = appends.last().and_then(|append| append.staged.entries.last().cloned());
        let due = self.due_after(&appends);
        let usage = self.base.state.usage();
        let (runs, last) = (Standing::of(self).next(None), Standing::of(self).next(due.as_ref()));
        appends.iter().for_each(|append| {
            if let Asker::Turn(own) = &append.asker {
                self.turns.begins(&mut self.base, own);
            }
        });
        let own = appends::answer(&self.base, appends, &usage, &runs, &last);
        self.base.send_measured(usage.clone());
        reports::report_model(&self.base.effects, &self.base.state, model);
        newest.iter().for_each(|newest| judging::report_cut_off(&self.base, newest));
        if let Some((code, title, detail)) = remark {
            self.base.effects.warn(code, title, detail);
        }
        self.base.report_window();
        self.upkeep.cold.report(&self.base);
        if !own.is_empty() {
            match due {
                Some(_) => self.base.operations.follow(Follows::Work),
                None => self.settle(),
            }
            let outlook = Outlook::of(due.as_ref(), self.recoveries.is_pending());
            own.into_iter().for_each(|own| self.turns.written(&mut self.base, own, outlook));
        }
        match due {
            Some(due) => self.start(due),
            None => {
                self.upkeep.ahead.grew_to(usage.context_tokens, self.base.now);
                // Nearly all appends end here.
                let is_near = usage.context_tokens > usage.threshold_tokens.unwrap_or(0) / 2;
                if is_near && Standing::of(self).may_look_ahead() {
                    let decision = Standing::of(self).decision();
                    speculating::begin(&mut self.base, &mut self.upkeep.ahead, &decision, &usage);
                }
            }
        }
    }

    /// The maintenance that is due after these appends.
    fn due_after(&mut self, appends: &[Append]) -> Option<Due> {
        let mut entries = appends.iter().flat_map(|append| &append.staged.entries);
        if entries.any(|entry| entry.is_from(Role::User)) {
            self.upkeep.rest = None;
            self.upkeep.ahead.goes_on();
        }
        let introduces = appends.last().is_some_and(Append::introduces);
        let asked = || if introduces { Asked::Introduced } else { Asked::Unasked };
        // A late result may stand on another branch, whose turn is none of this one.
        let leaf = self.base.state.path().visible_leaf();
        if appends.iter().flat_map(|append| &append.staged.entries).any(|entry| Some(&entry.id) == leaf) {
            self.upkeep.after_turn.message_came();
        }
        let may_start = Standing::of(self).maintenance();
        let due = self.recoveries.due_after(&mut self.base, appends, asked(), may_start);
        if due.is_some() {
            return due;
        }
        let after_turn = &mut self.upkeep.after_turn;
        if may_start.is_now()
            && !self.turns.is_steered()
            && let Some(due) = after_turn.take_due(self.base.state.path())
        {
            return Some(due);
        }
        // Nearly all appends end here, with one decision.
        let why = Standing::of(self).decision().why;
        if why == Why::Below {
            return None;
        }
        tracing::debug!(session = %self.base.state.id, ?why, ?may_start, "whether a compaction starts");
        let at_leaf = Standing::of(self).at_leaf();
        if let Some(relief) = automatic::relief(&mut self.base, &mut self.upkeep, &at_leaf) {
            return Some(relief);
        }
        at_leaf.is_due.then(|| {
            let id = speculating::compaction_id(&mut self.base, &self.upkeep);
            Due::Compaction(DueCompaction { id, reason: Reason::Threshold, asked: asked(), former: None })
        })
    }

    /// The entries of an edit are on disk. Where a compaction seems to be due, the answer waits for counts.
    pub(super) fn edited(&mut self, write: Box<EditWrite>) {
        self.upkeep.note_switch(&self.base.state, &write.staged);
        if self.upkeep.switches.is_pending() && Standing::of(self).seems_too_large() && self.base.log.is_free() {
            self.base.log.waits_for_counts();
            self.uncounted = Some(Step::AnswerEdit(write));
            return;
        }
        self.answer_edit(*write);
    }

    /// Answers an edit whose entries are on disk, sends its events, and starts the maintenance that is due.
    pub(super) fn answer_edit(&mut self, write: EditWrite) {
        self.recoveries.forget_failed(&self.base.state);
        if !write.staged.entries.is_empty() {
            self.has_changed();
        }
        let clears = write.staged.clears();
        // Only the answer of a change of the model names what follows.
        let is_named = write.staged.before.is_some() && !write.ticket.in_batch();
        let due = self.due_after_switch(if is_named { Asked::Introduced } else { Asked::Unasked });
        let next = Standing::of(self).next(due.as_ref());
        edits::answer(&self.base, write, next);
        self.base.send_usage();
        self.base.report_window();
        if clears {
            self.leave_superseded();
        }
        due.into_iter().for_each(|due| self.start(due));
    }

    /// The maintenance that is due after a change of the model. Where other work runs, the change is decided about after it.
    fn due_after_switch(&mut self, asked: Asked<Ticket>) -> Option<Due> {
        if !self.upkeep.switches.is_pending() || !Standing::of(self).may_maintain() {
            return None;
        }
        let why = Standing::of(self).decision().why;
        switching::due(&mut self.base, &mut self.upkeep, asked, why)
    }
}

/// Maintenance.
impl Core {
    /// Starts maintenance.
    pub(super) fn start(&mut self, due: Due) {
        let step = match due {
            Due::Recovery(due) => Some(recovering::write(&mut self.base, due)),
            Due::Repeat(due) => reported::remove_repeated(&mut self.base, &due.removed),
            Due::Relief(staged, event) => Some(automatic::write_relief(staged, event)),
            Due::Compaction(due) => return self.start_compaction(due),
            Due::Delayed(request) => {
                self.idle_gives_way();
                self.upkeep.moves = delayed::begin(&mut self.base, &mut self.upkeep.after_turn, *request);
                None
            }
        };
        self.follow(step);
    }

    /// Starts a compaction at the threshold, if it is still due.
    pub(super) fn start_if_due(&mut self) {
        if Standing::of(self).maintenance_is_due() {
            self.start_unasked();
        }
    }

    /// Starts a compaction at the threshold that no answer has named.
    pub(super) fn start_unasked(&mut self) {
        let id = speculating::compaction_id(&mut self.base, &self.upkeep);
        self.start_compaction(DueCompaction { id, reason: Reason::Threshold, asked: Asked::Unasked, former: None });
    }

    /// Starts a compaction, or the handoff that takes its place.
    fn start_compaction(&mut self, due: DueCompaction) {
        if planted(Fault::NextNotStarted) {
            return;
        }
        self.idle_gives_way();
        if matches!(Standing::of(self).decision().why, Why::Cold { .. }) {
            self.upkeep.cold.compacts(&self.base.state, self.base.stamps.now());
        }
        resuming::report(&self.base, &mut self.upkeep.resumed);
        // Messages that wait follow here, and nobody may be there to follow them elsewhere.
        let may_relay = !self.turns.follows();
        match relaying::part_to_relay(&self.base.state, &self.upkeep.relays, due.reason).filter(|_| may_relay) {
            None => automatic::begin(&mut self.base, &mut self.upkeep, due),
            Some(covered) => {
                let steps = self.upkeep.ahead.throw_away(&self.base.facts());
                self.follow(steps);
                relaying::begin(&mut self.base, due.id, due.reason, due.asked, covered);
            }
        }
    }

    /// Starts the maintenance that is due, for a request that waits for it.
    pub(super) fn maintain(&mut self) {
        self.idle_gives_way();
        let at_leaf = Standing::of(self).at_leaf();
        match automatic::relief(&mut self.base, &mut self.upkeep, &at_leaf) {
            Some(relief) => self.start(relief),
            None => self.start_unasked(),
        }
    }

    /// Starts a recovery whose entries were written, or could not be.
    pub(super) fn recover(&mut self, due: DueRecovery, written: Result<Staged, Failure>) {
        let (recovery, end) = match recovering::begin(&mut self.base, &self.upkeep.relays, due, written) {
            Begun::Compacts => return,
            Begun::Ends(recovery, end) => (recovery, end),
            Begun::KeepsContext(recovery) => (recovery, Standing::of(self).with_room()),
        };
        self.recoveries.ends(&mut self.base, &recovery, &end);
        self.close(recovery, end, Vec::new());
    }

    /// Answers a request for a context, holds it, or refuses it.
    pub(super) fn context(&mut self, params: ContextParams, ticket: Ticket, starts: Starts) {
        if must_fit(&params) {
            // Its decision needs counts, and none are made at the opening.
            self.base.count_at_rest();
        }
        match Standing::of(self).way(&params, starts) {
            Way::Answer => return context::answer(&mut self.base, params, ticket),
            Way::TooLarge(floor) => {
                let why = self.upkeep.relays.or_goes_on_elsewhere(Standing::of(self).why());
                return ticket.fail(&Failure::OverWindow { floor, why });
            }
            Way::Hold | Way::Maintain if self.base.waiting.len() >= queue::FULL => {
                return ticket.fail(&Failure::Overloaded { retry_after_ms: queue::TRY_AGAIN });
            }
            Way::Hold => {}
            // A start follows the answer and the events of the write before it.
            Way::Maintain if !self.base.log.is_free() => {
                return self.base.queue.put_back(context::command(params), ticket);
            }
            Way::Maintain => self.maintain(),
        }
        self.base.waiting.push(WaitingContext { params, ticket, starts });
    }
}

/// Decisions about events that came while other work ran.
impl Core {
    /// Decides about failed answers.
    pub(super) fn decide_reported(&mut self) {
        if Standing::of(self).may_maintain() {
            let step = self.recoveries.decide_reported(&mut self.base);
            self.follow(step);
        } else {
            self.recoveries.forget_reported();
            self.answer_contexts();
        }
    }

    /// Decides about a change of the model.
    pub(super) fn decide_switch(&mut self) {
        let due = self.due_after_switch(Asked::Unasked);
        self.upkeep.switches.forget();
        match due {
            Some(due) => self.start(due),
            None => self.answer_contexts(),
        }
    }

    /// Decides about the maintenance that was due at the end of a transfer: entries that came while it ran may have crossed the
    /// threshold, and no answer named maintenance then, because none could start.
    pub(super) fn decide_after_transfer(&mut self) {
        self.upkeep.after_transfer = false;
        if Standing::of(self).maintenance_is_due() {
            self.maintain();
        } else {
            self.answer_contexts();
        }
    }
}

/// Work ahead of the threshold, and work of an idle session.
impl Core {
    /// Decides about a summary that is ready: where the threshold was crossed while it was made, it is spliced in now, or
    /// thrown away where too much came since. Then the next append starts a compaction.
    pub(super) fn decide_ahead(&mut self) {
        self.upkeep.ahead.decided();
        let is_due = Standing::of(self).maintenance_is_due() || planted(Fault::SplicedEarly);
        if self.base.state.history().is_asleep() || !is_due || Standing::of(self).decision().why == Why::Images {
            return;
        }
        if self.upkeep.ahead.serving(&self.base.state).is_some() {
            return self.start_unasked();
        }
        let steps = self.upkeep.ahead.throw_away(&self.base.facts());
        self.follow(steps);
    }

    /// Performs the work of an idle session, if it is time.
    pub(super) fn tick(&mut self, at: &Moment) {
        let work = Standing::of(self).idle_work(at.awake_elsewhere);
        match work.filter(|work| work.at() <= at.now) {
            Some(IdleWork::Maintain(_)) => {
                let objection = Standing::of(self).idle_check().objection();
                maintenance::go_on(&mut self.base, &mut self.idle.rounds, objection);
            }
            Some(IdleWork::Index(_)) => self.base.start_indexing(),
            Some(IdleWork::Sleep(_)) => {
                let at_leaf = Standing::of(self).idle_check().objection_at_leaf();
                let warm_until = Standing::of(self).warm_until();
                self.idle.rounds.sleeps(at_leaf, warm_until);
                self.upkeep.ahead.sleep();
                idle::sleep(&mut self.base, &mut self.idle);
            }
            None => {}
        }
    }
}
