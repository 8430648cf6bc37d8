//! Summaries ahead of the threshold. One is made in the background while the context still has room. It has no event and
//! changes nothing, until a compaction is due: that one begins with it.

mod failing;
#[cfg(test)]
mod tests;

use crate::{
    ask::rank::Rank,
    compaction::{
        ahead::{self, Speed},
        decide::{Decision, Rest},
        draft::Draft,
        fruitless::Refused,
        gauge::Fullness,
        meter, plan,
        request::PlanRequest,
    },
    conversation::{
        entry::{Body, Entry},
        message::outline::Role,
        path::Path,
    },
    ids::{EntryId, ModelRef, OperationId},
    models::candidates::Candidate,
    protocol::errors::Failure,
    session::{
        core::{commands::compacting::ordering::ToDraft, parts::facts::Facts, step::Step},
        fault::{Fault, planted},
        jobs::{Authors, Focus, PlanMade, PlanOrder},
        operation::Operation,
        state::State,
        stop::Stop,
    },
    settings::{Sourced, Speculative},
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

/// A summary that was made ahead, or is being made, as the compaction takes it over.
pub(in crate::session::core) struct Spliced {
    /// Its operation in the background, until it is ready.
    pub operation: Option<Operation>,
    /// Stops its job.
    pub stop: Stop,
    /// The draft, if it is ready.
    pub draft: Option<Box<Draft>>,
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
        let target = |data: serde_json::Value| Some(EntryId::from(data.get("entryId")?.as_str()?));
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
    /// Records the size of the context after an append.
    pub fn grew_to(&mut self, context_tokens: u64, now: Instant) {
        self.speed.grew_to(now, context_tokens);
    }

    /// Lets another one begin: a message of the user came.
    pub fn goes_on(&mut self) {
        self.rest = None;
    }

    /// Lets another one begin after one that no model wrote: a compaction was written.
    pub fn begins_anew(&mut self) {
        self.failing.begins_anew();
    }

    /// Whether another one may begin: none is there, models write them, and the last one was not thrown away here.
    pub fn may_begin(&self, state: &State) -> bool {
        let unwritten = self.unwritten.as_ref().is_some_and(|(settings, model)| {
            Arc::ptr_eq(settings, state.settings()) && *model == state.model(state.path())
        });
        let fullness = state.measure();
        let holds = |rest: Rest| rest.holds(fullness.context_tokens, fullness.budget.threshold);
        self.making.is_none()
            && !unwritten
            && fullness.compaction.speculative != Speculative::Fixed(false)
            && !self.rest.is_some_and(holds)
    }

    /// Whether another one begins by this decision, for the growth of the session and the failures before.
    pub fn is_due(&mut self, decision: &Decision, facts: &Facts) -> bool {
        let path = facts.state.path();
        // The entry with which the context begins carries the times of summaries.
        let carried = path.foundation().and_then(|place| path[place].preserved());
        if let Some(carried) = carried {
            self.speed.recall(&carried.summary_times);
        }
        decision.begins_ahead(self.speed.growth()) && !self.rests(facts)
    }

    /// Begins one, as an operation in the background. Returns the order of its plan.
    pub fn begin(
        &mut self,
        operation: Operation,
        request: PlanRequest,
        context_tokens: u64,
        now: Instant,
    ) -> PlanOrder {
        let (id, stop) = (operation.id.clone(), Stop::default());
        self.drafting_begins(now);
        self.making = Some(Making {
            id: id.clone(),
            operation: Some(operation),
            covered: Covered::of(&request.path),
            settings: request.settings.clone(),
            model: request.model.clone(),
            stop: stop.clone(),
            rank: Rank::background(),
            phase: Phase::Planning,
            begun: Refused { context_tokens, span: 0 },
            charged: 0,
        });
        PlanOrder { id, request, authors: Authors::Anyone, former: None, stop }
    }

    /// Takes the plan.
    pub fn planned(&mut self, result: Result<PlanMade, Failure>, facts: &Facts) -> Vec<Step> {
        let Some(making) = &mut self.making else { return Vec::new() };
        let Ok(made) = result else { return self.throw_away(facts) };
        let speculative = making.settings.settings.compaction_for(making.model.as_ref()).speculative;
        let mut candidates = made.candidates.iter().filter_map(|candidate| candidate.as_ref().ok());
        // Without a model the summary takes no time. A model on this machine would lose its cache.
        let may_write = |first: &Candidate| speculative == Speculative::Fixed(true) || !first.is_local();
        if !candidates.next().is_some_and(may_write) {
            self.unwritten = Some((making.settings.clone(), making.model.clone()));
            return self.throw_away(facts);
        }
        let plan = &made.planned.plan;
        let span = plan.summarized().iter().map(|entry| meter::sent(entry, plan.demand.scale.estimator())).sum();
        making.begun.span = plan.demand.scale.size(span);
        making.phase = Phase::Drafting { cut: plan.first_kept() };
        let (id, rank, stop) = (making.id.clone(), making.rank.clone(), making.stop.clone());
        // Its requests are a part of the tokens that summaries without use may take.
        let most = Some(self.tokens(facts));
        vec![Step::DraftAhead(ToDraft { id, made, focus: Focus::default(), rank, stop, most })]
    }

    /// Takes the draft.
    pub fn drafted(&mut self, result: Result<Draft, Failure>, facts: &Facts) -> Vec<Step> {
        // An extracted summary takes no time, and the models may answer when it is due.
        let draft = match result {
            Ok(draft) if draft.origin().is_extracted() => return self.extracted(&draft, facts),
            Ok(draft) => draft,
            Err(failure) => return self.fail(failure.to_string(), facts),
        };
        self.drafting_ends(facts.now, &draft);
        self.failing.succeeds();
        let Some(making) = &mut self.making else { return Vec::new() };
        making.phase = Phase::Ready { draft: Box::new(draft), is_new: true };
        making.operation.take().map(Step::EndAhead).into_iter().collect()
    }

    /// Ends a summary that no model wrote.
    fn extracted(&mut self, draft: &Draft, facts: &Facts) -> Vec<Step> {
        let made = draft.origin();
        let asked = self.making.as_ref().is_some_and(|making| making.charged > 0);
        match made.rejected.last() {
            // The models are not to blame where none was asked.
            _ if made.unaffordable.is_some() && !asked => self.throw_away(facts),
            Some(last) => self.fail(last.why.clone(), facts),
            None => self.fail("no model was asked".to_owned(), facts),
        }
    }

    /// Throws it away.
    pub fn throw_away(&mut self, facts: &Facts) -> Vec<Step> {
        let Some(making) = self.making.take() else { return Vec::new() };
        making.stop.request();
        self.failing.spend(making.charged, facts.now);
        let fullness = facts.state.measure();
        self.rest = Some(Rest { context_tokens: fullness.context_tokens, threshold: fullness.budget.threshold });
        making.operation.map(Step::EndAhead).into_iter().collect()
    }

    /// Whether it was cancelled, gave way, or no longer stands for what is in the session.
    pub fn is_stale(&self, state: &State) -> bool {
        let is_current = |making: &Making| state.history().is_asleep() || making.is_current(state);
        self.making.as_ref().is_some_and(|making| !making.goes_on() || !is_current(making))
    }

    /// Drops the path that a ready summary was planned for: its entries leave the memory.
    pub fn sleep(&mut self) {
        if let Some(Making { phase: Phase::Ready { draft, .. }, .. }) = &mut self.making {
            draft.plan.set_path(Path::default());
        }
    }

    /// Gives a ready summary its path again.
    pub fn wake(&mut self, facts: &Facts) -> Vec<Step> {
        let Some(Making { phase: Phase::Ready { draft, .. }, covered, .. }) = &mut self.making else {
            return Vec::new();
        };
        match covered.of_again(facts.state.path()) {
            Some(path) => {
                draft.plan.set_path(path);
                Vec::new()
            }
            None => self.throw_away(facts),
        }
    }

    /// Whether one is ready about which nothing was decided.
    pub fn is_new(&self) -> bool {
        matches!(&self.making, Some(Making { phase: Phase::Ready { is_new: true, .. }, .. }))
    }

    /// It is decided about one that is ready.
    pub fn decided(&mut self) {
        if let Some(Making { phase: Phase::Ready { is_new, .. }, .. }) = &mut self.making {
            *is_new = false;
        }
    }

    /// The id of the summary with which a compaction may begin.
    pub fn serving(&self, state: &State) -> Option<&OperationId> {
        let making = self.making.as_ref()?;
        let serves = match &making.phase {
            _ if !making.goes_on() || !making.is_current(state) => false,
            // Nothing is lost with a plan.
            Phase::Planning => false,
            Phase::Drafting { .. } => true,
            Phase::Ready { draft, .. } => leaves_room(draft, state),
        };
        serves.then_some(&making.id)
    }

    /// Takes out the summary with this id, for the compaction that begins with it.
    pub fn splice(&mut self, id: &OperationId, path: &Path) -> Option<Spliced> {
        let Making { operation, covered, stop, rank, phase, .. } = self.making.take_if(|making| making.id == *id)?;
        rank.raise();
        let draft = match phase {
            Phase::Planning | Phase::Drafting { .. } => {
                self.taken_over = Some(id.clone());
                None
            }
            Phase::Ready { mut draft, .. } => {
                // Another program may have written, and the entries were read again.
                covered.of_again(path).into_iter().for_each(|path| draft.plan.set_path(path));
                Some(draft)
            }
        };
        Some(Spliced { operation, stop, draft })
    }

    /// Whether too many messages came while a compaction waited for the summary with which it began.
    pub fn is_outgrown(&mut self, compaction: &OperationId, draft: &Draft, state: &State) -> bool {
        let was_ahead = self.taken_over.take_if(|id| id == compaction).is_some();
        was_ahead && state.path().grew_from(draft.plan.path()) && !leaves_room(draft, state)
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

    /// The sentence about a summary that is made ahead, or about the rest of them.
    pub fn why(&self, facts: &Facts) -> Option<String> {
        let Some(making) = &self.making else { return self.why_none(facts) };
        let id = &making.id;
        Some(match making.is_ready() {
            true => format!("A summary ({id}) is ready and is spliced in when a compaction is due."),
            false => format!("A summary is being made ahead ({id})."),
        })
    }

    /// The size up to which the context does not wait for the summary that is being made.
    pub fn goes_on_to(&self, state: &State) -> Option<u64> {
        let budget = || state.measure().budget;
        self.runs().then(budget).map(|budget| ahead::waits_beyond(&budget.attainable().unwrap_or(budget)))
    }
}

/// Whether the context after a draft that was begun ahead leaves room for the conversation.
fn leaves_room(draft: &Draft, state: &State) -> bool {
    let Fullness { budget, scale, .. } = state.measure();
    let then = draft.plan.demand;
    // Reports that came since may have changed the scale.
    let sent = draft.tokens_after.saturating_sub(then.budget.overhead()) as f64;
    let sent = (sent * scale.factor() / then.scale.factor()).ceil() as u64;
    let newer = &state.path()[draft.plan.path().len()..];
    let newer: u64 = newer.iter().map(|entry| meter::sent(entry, scale.estimator())).sum();
    let size = budget.overhead() + sent + scale.size(newer);
    ahead::leaves_room(size, &budget.attainable().unwrap_or(budget))
}
