//! Summaries ahead of the threshold. One is made in the background while the context still has room. It has no event and
//! changes nothing, until a compaction is due: that one begins with it.

mod failing;
#[cfg(test)]
mod tests;

use crate::{
    ask::rank::Rank,
    compaction::{
        ahead::{self, Speed},
        decide::{Rest, Why},
        draft::Draft,
        fruitless::Refused,
        gauge::Fullness,
        meter, plan,
        request::Cause,
    },
    conversation::{
        entry::{Body, Entry},
        message::outline::Role,
        path::Path,
    },
    ids::{EntryId, ModelRef, OperationId},
    models::candidates::Candidate,
    protocol::{
        errors::Failure,
        events::{Event, Reason},
        types::{Initiator, Usage},
    },
    session::{
        core::{
            Core,
            commands::prune::{self, Share},
            work::Work,
        },
        effects::Ticket,
        fault::{Fault, planted},
        jobs::{Authors, Focus, Job, PlanMade, PlanOrder},
        kind::OperationKind,
        operation::Operation,
        operations::{Asked, End, Place},
        state::State,
        stop::Stop,
    },
    settings::{Sourced, Speculative},
    wire::outbox::About,
};
use failing::Failing;
use std::{sync::Arc, time::Instant};

/// The summary that is made ahead, and what decides when the next one begins.
#[derive(Default)]
pub(in crate::session::core) struct Ahead {
    making: Option<Making>,
    /// Settings and model with which no model writes a summary ahead.
    unwritten: Option<(Arc<Sourced>, Option<ModelRef>)>,
    /// The end of one that was cancelled, gave way or became stale. Until the next message of the user, or growth of 5 %,
    /// none begins.
    rest: Option<Rest>,
    /// Those that came to nothing.
    failing: Failing,
    /// The growth of the session and the time of its summaries.
    speed: Speed,
    /// The compaction that waits for a summary that was begun ahead of it.
    taken_over: Option<OperationId>,
    /// The begin of the draft that is being made, for a compaction or ahead of one.
    drafting_since: Option<Instant>,
}

/// A summary that is made ahead.
struct Making {
    /// The id of its operation, and of the compaction that begins with it.
    id: OperationId,
    /// Its operation in the background, until it is ready. Another one that starts ends it.
    operation: Option<Operation>,
    covered: Covered,
    /// The settings and the model that it is made with.
    settings: Arc<Sourced>,
    model: Option<ModelRef>,
    /// Stops its job. The operation has another one, because the compaction that takes the job over ends the operation.
    stop: Stop,
    rank: Rank,
    phase: Phase,
    /// The sizes at its begin.
    begun: Refused,
    /// The tokens that its requests took, that were sent with them, or that a failed one may have taken.
    charged: u64,
}

/// The phase of a summary that is made ahead.
enum Phase {
    Planning,
    Drafting {
        /// The entries before this place are summarized.
        cut: usize,
    },
    Ready {
        draft: Box<Draft>,
        /// Whether nothing was decided since.
        is_new: bool,
    },
}

/// The path that a summary was planned for. An entry never changes its parent, so the two ends name all that is between.
struct Covered {
    first: Option<EntryId>,
    last: Option<EntryId>,
    entries: usize,
}

impl Covered {
    fn of(path: &Path) -> Self {
        let id = |entry: Option<&Arc<Entry>>| entry.map(|entry| entry.id.clone());
        Self { first: id(path.first()), last: id(path.last()), entries: path.len() }
    }

    /// Whether a path has grown from it.
    fn begins(&self, path: &Path) -> bool {
        let id = |place: usize| path.get(place).map(|entry| &entry.id);
        let last = self.entries.checked_sub(1);
        path.len() >= self.entries && id(0) == self.first.as_ref() && last.and_then(id) == self.last.as_ref()
    }

    /// The covered part of a path whose entries were read again. None where the path has not grown from it.
    fn of_again(&self, path: &Path) -> Option<Path> {
        self.begins(path).then(|| path.up_to(self.last.as_ref()?)).flatten()
    }
}

impl Making {
    /// Whether a session is as it was when the summary began, but for messages after it.
    fn is_current(&self, state: &State) -> bool {
        let path = state.path();
        self.covered.begins(path)
            && Arc::ptr_eq(&self.settings, state.settings())
            && self.model == state.model(path)
            && path[self.covered.entries..].iter().all(|entry| !self.is_changed_by(entry, path))
    }

    /// Whether an entry after the covered ones changes what is summarized.
    fn is_changed_by(&self, entry: &Entry, path: &Path) -> bool {
        if planted(Fault::StaleSpliced) {
            return false;
        }
        let is_summarized = |id: &EntryId| path.position(id).is_none_or(|place| place < self.cut());
        let target = |data: &serde_json::Value| Some(EntryId::from(data.get("entryId")?.as_str()?));
        let pins = || entry.ours("pin").or_else(|| entry.ours("unpin")).and_then(target);
        match &entry.body {
            Body::ResetBoundary(_) | Body::Compaction(_) => true,
            Body::ContextEdit(edit) => {
                let removes = edit.replacement.is_none();
                is_summarized(&edit.target_id) || self.edits(&edit.target_id) || removes && self.covers_unread(path)
            }
            _ => entry.undoes().is_some() || pins().is_some_and(|id| is_summarized(&id)),
        }
    }

    /// Whether it summarizes a message of the user that no model has read: the answer after it was removed.
    fn covers_unread(&self, path: &Path) -> bool {
        let unread = path.len() - plan::unread(path).len();
        path.iter().take(self.cut()).skip(unread).any(|entry| entry.is_from(Role::User))
    }

    /// The place before which all is summarized. Nothing more than the covered entries is.
    fn cut(&self) -> usize {
        match &self.phase {
            Phase::Planning => self.covered.entries,
            Phase::Drafting { cut } => *cut,
            Phase::Ready { draft, .. } => draft.plan.first_kept(),
        }
    }

    /// Whether the draft replaces the content of a kept entry.
    fn edits(&self, id: &EntryId) -> bool {
        matches!(&self.phase, Phase::Ready { draft, .. } if draft.edits.iter().any(|edit| edit.target_id == *id))
    }

    /// Whether it is ready, or its operation was not ended by a cancel or by another operation.
    fn goes_on(&self) -> bool {
        self.operation.as_ref().is_none_or(Operation::is_open)
    }

    fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready { .. })
    }
}

impl Ahead {
    /// Lets another one begin: a message of the user came.
    pub fn goes_on(&mut self) {
        self.rest = None;
    }

    /// Lets another one begin after one that no model wrote: a compaction was written.
    pub fn begins_anew(&mut self) {
        self.failing.begins_anew();
    }

    /// Whether one is ready about which nothing was decided.
    pub fn is_new(&self) -> bool {
        matches!(&self.making, Some(Making { phase: Phase::Ready { is_new: true, .. }, .. }))
    }

    /// Records the begin of a draft.
    pub fn drafting_begins(&mut self, now: Instant) {
        self.drafting_since = Some(now);
    }

    /// Records the end of a draft.
    pub fn drafting_ends(&mut self, now: Instant, draft: &Draft) {
        if let Some(since) = self.drafting_since.take()
            && !draft.origin().is_extracted()
        {
            self.speed.took(now.saturating_duration_since(since));
        }
    }

    /// Whether a summary is being made. Its costs are written after the leaf, so the session does not sleep.
    pub fn runs(&self) -> bool {
        self.making.as_ref().is_some_and(|making| !making.is_ready())
    }

    /// Times of the newest summaries, in milliseconds.
    pub fn summary_times(&self) -> Vec<u64> {
        self.speed.times()
    }

    /// Whether the summary that is made ahead has this id.
    pub fn is(&self, id: &OperationId) -> bool {
        self.making.as_ref().is_some_and(|making| making.id == *id)
    }
}

impl Core {
    /// Begins a summary ahead of the threshold, if the context is near it and nothing else is to happen. `usage`: the usage
    /// after the append.
    pub(in crate::session::core) fn look_ahead(&mut self, usage: &Usage) {
        self.upkeep.ahead.speed.grew_to(self.now, usage.context_tokens);
        // Nearly all appends end here.
        if usage.context_tokens <= usage.threshold_tokens.unwrap_or(0) / 2 || !self.may_look_ahead() {
            return;
        }
        self.recall_times();
        let decision = self.decision();
        let begins = decision.begins_ahead(self.upkeep.ahead.speed.growth()) && !self.rests_ahead();
        if !begins || self.reaches_the_threshold_otherwise() {
            return;
        }
        let (id, stop, rank) = (self.stamps.operation(), Stop::default(), Rank::background());
        let kind = OperationKind::Speculation;
        let opening = self.opening(kind, Place::Top(id.clone()), Asked::Unasked, usage.clone(), Stop::default());
        let request = self.plan_request(None, Initiator::User, Cause::Ahead);
        let (settings, model) = (request.settings.clone(), request.model.clone());
        let covered = Covered::of(self.state.path());
        let operation = Some(self.start_operation(opening));
        self.start(Job::Plan(PlanOrder {
            id: id.clone(),
            request,
            authors: Authors::Anyone,
            former: None,
            stop: stop.clone(),
        }));
        self.upkeep.ahead.drafting_begins(self.now);
        let phase = Phase::Planning;
        let begun = Refused { context_tokens: usage.context_tokens, span: 0 };
        let making = Making { id, operation, covered, settings, model, stop, rank, phase, begun, charged: 0 };
        self.upkeep.ahead.making = Some(making);
    }

    /// Takes the times of summaries that the entry carries which the context begins with.
    fn recall_times(&mut self) {
        let path = self.state.path();
        let carried = path.foundation().and_then(|place| path[place].preserved());
        if let Some(carried) = carried {
            self.upkeep.ahead.speed.recall(&carried.summary_times);
        }
    }

    /// Whether a summary may begin ahead.
    fn may_look_ahead(&self) -> bool {
        // A decision waits for the tokenizer.
        if self.upkeep.ahead.making.is_some() || self.counting.runs() || !self.may_maintain() {
            return false;
        }
        // A hook is told of a compaction, and not of a summary that may never be used.
        if self.hooks().concerns_compaction() && !planted(Fault::AheadOfHooks) {
            return false;
        }
        let state = &self.state;
        let unwritten = self.upkeep.ahead.unwritten.as_ref().is_some_and(|(settings, model)| {
            Arc::ptr_eq(settings, state.settings()) && *model == state.model(state.path())
        });
        if unwritten || self.maintenance_may_follow() {
            return false;
        }
        // A handoff uses no summary. Whether the turn has settled at the threshold is not known before.
        if self.relays() {
            return false;
        }
        let fullness = state.measure();
        let holds = |rest: Rest| rest.holds(fullness.context_tokens, fullness.budget.threshold);
        fullness.compaction.speculative != Speculative::Fixed(false)
            && !self.upkeep.ahead.rest.is_some_and(holds)
            && self.costs.have_room_for(fullness.context_tokens, &self.facts())
    }

    /// Whether old tool results leave, or a larger model is chosen, when the threshold is crossed. That needs no summary.
    fn reaches_the_threshold_otherwise(&self) -> bool {
        let pruned = prune::pruned(&self.state, &self.state.settings().settings.prune, Share::All);
        let prunes = || prune::judged(&self.state, &pruned, self.stamps.now()).pays();
        !pruned.edits.is_empty() && prunes() || self.larger_model().is_some()
    }

    /// Takes the plan of the summary that is made ahead.
    pub(in crate::session::core) fn planned_ahead(&mut self, result: Result<PlanMade, Failure>) {
        let Some(making) = &mut self.upkeep.ahead.making else { return };
        let Ok(made) = result else { return self.throw_away() };
        let speculative = making.settings.settings.compaction_for(making.model.as_ref()).speculative;
        let mut candidates = made.candidates.iter().filter_map(|candidate| candidate.as_ref().ok());
        // Without a model the summary takes no time. A model on this machine would lose its cache.
        let may_write = |first: &Candidate| speculative == Speculative::Fixed(true) || !first.is_local();
        if !candidates.next().is_some_and(may_write) {
            self.upkeep.ahead.unwritten = Some((making.settings.clone(), making.model.clone()));
            return self.throw_away();
        }
        let plan = &made.planned.plan;
        let span = plan.summarized().iter().map(|entry| meter::sent(entry, plan.demand.scale.estimator())).sum();
        making.begun.span = plan.demand.scale.size(span);
        making.phase = Phase::Drafting { cut: plan.first_kept() };
        let (id, rank, stop) = (making.id.clone(), making.rank.clone(), making.stop.clone());
        self.order_draft(id, &OperationKind::Speculation, made, Focus::default(), rank, stop);
    }

    /// Takes the draft of the summary that is made ahead.
    pub(in crate::session::core) fn drafted_ahead(&mut self, result: Result<Draft, Failure>) {
        // An extracted summary takes no time, and the models may answer when it is due.
        let draft = match result {
            Ok(draft) if draft.origin().is_extracted() => return self.extracted_ahead(&draft),
            Ok(draft) => draft,
            Err(failure) => return self.fail_ahead(failure.to_string()),
        };
        self.upkeep.ahead.drafting_ends(self.now, &draft);
        self.upkeep.ahead.failing.succeeds();
        let Some(making) = &mut self.upkeep.ahead.making else { return };
        making.phase = Phase::Ready { draft: Box::new(draft), is_new: true };
        let operation = making.operation.take();
        self.end_quietly(operation);
        if planted(Fault::AheadAnnounced) {
            let usage = self.state.usage();
            self.emit(About::default(), Event::UsageUpdated { usage });
        }
    }

    /// Ends a summary that no model wrote.
    fn extracted_ahead(&mut self, draft: &Draft) {
        let made = draft.origin();
        let asked = self.upkeep.ahead.making.as_ref().is_some_and(|making| making.charged > 0);
        match made.rejected.last() {
            // The models are not to blame where none was asked.
            _ if made.unaffordable.is_some() && !asked => self.throw_away(),
            Some(last) => self.fail_ahead(last.why.clone()),
            None => self.fail_ahead("no model was asked".to_owned()),
        }
    }

    /// Decides about a summary that is ready: where the threshold was crossed while it was made, it is spliced in now, or
    /// thrown away where too much came since. Then the next append starts a compaction.
    pub(in crate::session::core) fn decide_ahead(&mut self) {
        if let Some(Making { phase: Phase::Ready { is_new, .. }, .. }) = &mut self.upkeep.ahead.making {
            *is_new = false;
        }
        let is_due = self.maintenance_is_due() || planted(Fault::SplicedEarly);
        if self.state.history().is_asleep() || !is_due || self.decision().why == Why::Images {
            return;
        }
        match self.has_summary_ahead() {
            true => self.start_unasked(),
            false => self.throw_away(),
        }
    }

    /// Throws away a summary that was cancelled, gave way, or no longer stands for what is in the session.
    pub(in crate::session::core) fn review_ahead(&mut self) {
        let Some(making) = &self.upkeep.ahead.making else { return };
        let ends = !self.goes_on();
        let stale = !self.state.history().is_asleep() && !making.is_current(&self.state);
        if ends || !making.goes_on() || stale || self.hooks().concerns_compaction() {
            self.throw_away();
        }
    }

    /// Ends a summary that is made ahead.
    pub(in crate::session::core) fn throw_away(&mut self) {
        let Some(making) = self.upkeep.ahead.making.take() else { return };
        making.stop.request();
        self.spend_unused(making.charged);
        let fullness = self.state.measure();
        self.upkeep.ahead.rest =
            Some(Rest { context_tokens: fullness.context_tokens, threshold: fullness.budget.threshold });
        self.end_quietly(making.operation);
    }

    /// Ends an operation that has no events.
    fn end_quietly(&mut self, operation: Option<Operation>) {
        if let Some(operation) = operation {
            operation.finish(End::Cancelled, &self.sent_usage, Vec::new());
            self.record_running();
        }
    }

    /// Drops the path that a ready summary was planned for: its entries leave the memory.
    pub(in crate::session::core) fn sleep_ahead(&mut self) {
        if let Some(Making { phase: Phase::Ready { draft, .. }, .. }) = &mut self.upkeep.ahead.making {
            draft.plan.set_path(Path::default());
        }
    }

    /// Gives a ready summary its path again.
    pub(in crate::session::core) fn wake_ahead(&mut self) {
        let Some(making) = &mut self.upkeep.ahead.making else { return };
        let Phase::Ready { draft, .. } = &mut making.phase else { return };
        match making.covered.of_again(self.state.path()) {
            Some(path) => draft.plan.set_path(path),
            None => self.throw_away(),
        }
    }

    /// Whether a compaction may begin with the summary that is made ahead.
    fn serves(&self, making: &Making) -> bool {
        if !making.goes_on() || !making.is_current(&self.state) {
            return false;
        }
        match &making.phase {
            // Nothing is lost with a plan.
            Phase::Planning => false,
            Phase::Drafting { .. } => true,
            Phase::Ready { draft, .. } => self.leaves_room(draft),
        }
    }

    /// Whether the context after a draft that was begun ahead leaves room for the conversation.
    fn leaves_room(&self, draft: &Draft) -> bool {
        let Fullness { budget, scale, .. } = self.state.measure();
        let then = draft.plan.demand;
        // Reports that came since may have changed the scale.
        let sent = draft.tokens_after.saturating_sub(then.budget.overhead()) as f64;
        let sent = (sent * scale.factor() / then.scale.factor()).ceil() as u64;
        let newer = &self.state.path()[draft.plan.path().len()..];
        let newer: u64 = newer.iter().map(|entry| meter::sent(entry, scale.estimator())).sum();
        let size = budget.overhead() + sent + scale.size(newer);
        ahead::leaves_room(size, &budget.attainable().unwrap_or(budget))
    }

    /// Takes the draft of a compaction that began while its summary was being made. Too many messages may have come since:
    /// then the compaction is planned again, and nothing is returned.
    pub(in crate::session::core) fn draft_begun_ahead(
        &mut self,
        operation: Operation,
        draft: Draft,
    ) -> Option<(Operation, Draft)> {
        let was_ahead = self.upkeep.ahead.taken_over.take_if(|id| *id == operation.id).is_some();
        if !was_ahead || !self.state.path().grew_from(draft.plan.path()) || self.leaves_room(&draft) {
            return Some((operation, draft));
        }
        let (id, stop) = (operation.id.clone(), operation.stop.clone());
        let request = self.plan_request(None, Initiator::User, Cause::Due);
        self.start(Job::Plan(PlanOrder { id, request, authors: Authors::Anyone, former: None, stop }));
        self.work = Work::Preparing(operation, Focus::default());
        None
    }

    /// Whether a compaction that is due begins with a summary that is made ahead.
    pub(in crate::session::core) fn has_summary_ahead(&self) -> bool {
        self.upkeep.ahead.making.as_ref().is_some_and(|making| self.serves(making))
    }

    /// The id of a compaction that is due at the threshold: that of the summary with which it begins.
    pub(in crate::session::core) fn compaction_id(&mut self) -> OperationId {
        match &self.upkeep.ahead.making {
            Some(making) if self.serves(making) && self.part_to_relay(Reason::Threshold).is_none() => making.id.clone(),
            _ => self.stamps.operation(),
        }
    }

    /// Begins a compaction with the summary that is made ahead under its id. Returns the request where there is none.
    pub(in crate::session::core) fn splice(
        &mut self,
        kind: OperationKind,
        id: &OperationId,
        asked: Asked<Ticket>,
    ) -> Option<Asked<Ticket>> {
        if !self.upkeep.ahead.is(id) {
            return Some(asked);
        }
        let Making { operation, covered, stop, rank, phase, .. } = self.upkeep.ahead.making.take()?;
        self.end_quietly(operation);
        rank.raise();
        let opening = self.opening(kind, Place::Top(id.clone()), asked, self.state.usage(), stop);
        let operation = self.start_operation(opening);
        self.work = match phase {
            Phase::Planning | Phase::Drafting { .. } => {
                self.upkeep.ahead.taken_over = Some(id.clone());
                Work::Drafting(operation)
            }
            Phase::Ready { mut draft, .. } => {
                // Another program may have written, and the entries were read again.
                covered.of_again(self.state.path()).into_iter().for_each(|path| draft.plan.set_path(path));
                Work::Drafted(operation, draft)
            }
        };
        None
    }

    /// The sentence about a summary that is made ahead.
    pub(in crate::session::core) fn why_ahead(&self) -> Option<String> {
        let Some(making) = &self.upkeep.ahead.making else { return self.why_none_ahead() };
        let id = &making.id;
        Some(match making.is_ready() {
            true => format!("A summary ({id}) is ready and is spliced in when a compaction is due."),
            false => format!("A summary is being made ahead ({id})."),
        })
    }

    /// The size up to which the context does not wait for the summary that is being made.
    pub(in crate::session::core) fn goes_on_to(&self) -> Option<u64> {
        let making = self.upkeep.ahead.making.as_ref()?;
        let budget = self.state.measure().budget;
        (!making.is_ready()).then(|| ahead::waits_beyond(&budget.attainable().unwrap_or(budget)))
    }
}
