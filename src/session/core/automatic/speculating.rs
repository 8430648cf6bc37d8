//! Summaries ahead of the threshold, as the session begins them, performs their steps and splices them in.

use crate::{
    compaction::{decide::Why, request::Cause},
    ids::OperationId,
    protocol::{
        events::Reason,
        types::{Initiator, Usage},
    },
    session::{
        core::{
            Core,
            automatic::speculation::{Ahead, Spliced, Step},
            commands::{
                compacting::planning,
                prune::{self, Share},
            },
            parts::facts::Facts,
            recovering::promotion,
            standing::Standing,
            transfers::relaying,
            work::Work,
        },
        effects::Ticket,
        fault::{Fault, planted},
        jobs::{Focus, Job},
        kind::OperationKind,
        operations::{Asked, End, Place},
        stop::Stop,
    },
    wire::outbox::About,
};

impl Standing<'_> {
    /// Whether a summary may begin ahead.
    fn may_look_ahead(&self) -> bool {
        // A decision waits for the tokenizer.
        if self.core.counting.runs() || !self.core.upkeep.ahead.may_begin(&self.core.state) || !self.may_maintain() {
            return false;
        }
        // A hook is told of a compaction, and not of a summary that may never be used.
        if self.core.hooks().concerns_compaction() {
            return false;
        }
        // A handoff uses no summary. Whether the turn has settled at the threshold is not known before.
        !self.maintenance_may_follow()
            && !relaying::relays(&self.core.state, &self.core.upkeep.relays)
            && self.core.costs.have_room_for(self.core.state.measure().context_tokens, &self.facts())
    }
}

impl Core {
    /// Performs the steps of the summaries ahead.
    pub(in crate::session::core) fn speculate(&mut self, steps: impl FnOnce(&mut Ahead, &Facts) -> Vec<Step>) {
        let facts = Facts::of(&self.state, &self.recoveries.contexts, self.now, &self.stamps);
        for step in steps(&mut self.upkeep.ahead, &facts) {
            match step {
                Step::Draft { id, made, rank, stop } => {
                    self.order_draft(id, &OperationKind::Speculation, made, Focus::default(), rank, stop);
                }
                Step::End(operation) => {
                    operation.finish(End::Cancelled, &self.sent_usage, Vec::new());
                    self.record_running();
                }
                Step::Record(failed) => self.costs.add_failed(failed),
                Step::Warn(warning) => self.effects.emit(About::default(), warning.into()),
            }
        }
    }

    /// Begins a summary ahead of the threshold, if the context is near it and nothing else is to happen. `usage`: the usage
    /// after the append.
    pub(in crate::session::core) fn look_ahead(&mut self, usage: &Usage) {
        self.upkeep.ahead.grew_to(usage.context_tokens, self.now);
        // Nearly all appends end here.
        if usage.context_tokens <= usage.threshold_tokens.unwrap_or(0) / 2 || !Standing::of(self).may_look_ahead() {
            return;
        }
        let decision = Standing::of(self).decision();
        let facts = Facts::of(&self.state, &self.recoveries.contexts, self.now, &self.stamps);
        if !self.upkeep.ahead.is_due(&decision, &facts)
            || prunes_enough(&facts)
            || promotion::larger_model(&self.state).is_some()
        {
            return;
        }
        let (id, kind) = (self.stamps.operation(), OperationKind::Speculation);
        let request = planning::plan_request(&self.state, None, Initiator::User, Cause::Ahead);
        let operation = self.open(kind, Place::Top(id), Asked::Unasked, usage.clone(), Stop::default());
        let order = self.upkeep.ahead.begin(operation, request, usage.context_tokens, self.now);
        self.effects.start(Job::Plan(order));
    }

    /// Decides about a summary that is ready: where the threshold was crossed while it was made, it is spliced in now, or
    /// thrown away where too much came since. Then the next append starts a compaction.
    pub(in crate::session::core) fn decide_ahead(&mut self) {
        self.upkeep.ahead.decided();
        let is_due = Standing::of(self).maintenance_is_due() || planted(Fault::SplicedEarly);
        if self.state.history().is_asleep() || !is_due || Standing::of(self).decision().why == Why::Images {
            return;
        }
        match self.upkeep.ahead.serving(&self.state) {
            Some(_) => self.start_unasked(),
            None => self.speculate(Ahead::throw_away),
        }
    }

    /// The id of a compaction that is due at the threshold: that of the summary with which it begins.
    pub(in crate::session::core) fn compaction_id(&mut self) -> OperationId {
        match self.upkeep.ahead.serving(&self.state) {
            Some(id) if self.part_to_relay(Reason::Threshold).is_none() => id.clone(),
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
        let spliced = self.upkeep.ahead.splice(id, self.state.path());
        let Some(Spliced { operation, stop, draft }) = spliced else { return Some(asked) };
        self.speculate(|_, _| operation.map(Step::End).into_iter().collect());
        let operation = self.open(kind, Place::Top(id.clone()), asked, self.state.usage(), stop);
        self.work = match draft {
            Some(draft) => Work::Drafted(operation, draft),
            None => Work::Drafting(operation),
        };
        None
    }
}

/// Whether old tool results leave when the threshold is crossed. That needs no summary.
fn prunes_enough(facts: &Facts) -> bool {
    let pruned = prune::pruned(facts.state, &facts.state.settings().settings.prune, Share::All);
    !pruned.edits.is_empty() && prune::judged(facts.state, &pruned, facts.wall).pays()
}
