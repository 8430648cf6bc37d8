//! The strategy `handoff`: maintenance at the threshold hands the conversation off to a new session, where the client follows
//! it there. Where no model writes a document, the maintenance summarizes in place.

use super::handing_off::messages_of;
use crate::{
    compaction::{plan, request::Cause},
    conversation::{
        entry::{Body, Entry},
        message::outline::Role,
        path::Path,
    },
    ids::{OperationId, SessionId},
    protocol::{events::Reason, notices::Warning, types::Initiator},
    redact::Clean,
    session::{
        core::{
            Core,
            commands::compacting::planning,
            standing::Standing,
            transfers::handing_off,
            work::{HandingOff, Task, TransferPhase, Work},
        },
        effects::Ticket,
        founding::HANDOFF,
        jobs::{
            Authors, Focus, Job, PlanOrder,
            transfer::{HandoffOrder, Maintenance, TransferOrder, TransferWork},
        },
        kind::{Handoff, OperationKind, Product, Transfer},
        operation::Operation,
        operations::{Asked, End, Place},
        state::State,
        stop::Stop,
    },
    settings::Strategy,
};
use std::{sync::Arc, time::Duration};

/// The handoffs of a session by its maintenance.
#[derive(Default)]
pub(in crate::session::core) struct Relays {
    /// Whether the host has asked for a handoff.
    pub asked: bool,
    /// Whether another session goes on in the place of this one. A host that stays here is not handed off again.
    replaced: bool,
    /// The session of the last handoff, which goes on in the place of this one.
    pub successor: Option<SessionId>,
    /// The maintenance around the handoff that runs.
    around: Option<Operation>,
}

impl Relays {
    /// The maintenance around the handoff that runs.
    pub fn around(&self) -> Option<&Operation> {
        self.around.as_ref()
    }

    /// The reason why no request fits this session, with the session in which the conversation goes on.
    pub fn or_goes_on_elsewhere(&self, why: String) -> String {
        match &self.successor {
            // The text of a recovery that failed may name it.
            Some(new) if !why.contains(new.as_str()) => {
                format!("{why} Session {new} goes on in the place of this one: open it with session/load.")
            }
            _ => why,
        }
    }

    /// Forgets the maintenance that a cancel has ended.
    pub fn forget_cancelled(&mut self) {
        self.around = None;
    }
}

impl Core {
    /// The part of the path that maintenance hands off, where the turn has settled and the client goes on with the new
    /// session.
    pub(in crate::session::core) fn part_to_relay(&self, reason: Reason) -> Option<Path> {
        if reason == Reason::Threshold && relays(&self.state, &self.upkeep.relays) {
            settled_part(&self.state)
        } else {
            None
        }
    }

    /// Starts maintenance that hands the conversation off.
    pub(in crate::session::core) fn relay(
        &mut self,
        id: OperationId,
        reason: Reason,
        asked: Asked<Ticket>,
        covered: Path,
    ) {
        self.speculate(|ahead, facts| ahead.throw_away(facts));
        // The end of the handoff stops its work, and the maintenance may go on.
        let (stop, usage) = (Stop::default(), self.state.usage());
        let (kind, place) = (OperationKind::Relay(reason), Place::Top(id.clone()));
        let around = self.open(kind, place, asked, usage.clone(), Stop::default());
        let handoff = Handoff { goal: None, is_draft: false, document: Arc::default() };
        let (kind, place) = (OperationKind::Transfer(Transfer::Handoff(handoff)), around.part(self.stamps.operation()));
        let operation = self.open(kind, place, Asked::Introduced, usage, stop.clone());
        let room = handing_off::room_beside(&self.state, &mut self.stamps, &Clean::default())
            .ok()
            .flatten()
            .unwrap_or_default();
        let (settings, trigger) = (self.state.settings().clone(), around.kind.trigger());
        let order = HandoffOrder {
            view: self.state.view().of(&covered),
            path: covered.clone(),
            goal: None,
            instructions: None,
            only: None,
            maintenance: Some(Maintenance {
                trigger,
                tokens: self.costs.tokens_for(
                    trigger,
                    self.upkeep.ahead.tokens(&Standing::of(self).facts()),
                    &Standing::of(self).facts(),
                ),
                deadline: Duration::from_secs(settings.settings.compaction.deadline_seconds),
            }),
            fullness: self.state.measure(),
            room,
        };
        let model = self.state.model(&covered);
        let work = TransferWork::Handoff(Box::new(order));
        self.effects.start(Job::Transfer(TransferOrder { id, work, settings, model, stop }));
        let handing = HandingOff { goal: None, covered, is_draft: false, saves: false };
        self.upkeep.relays.around = Some(around);
        self.work = Work::Transfer(operation, TransferPhase::Making(Box::new(Task::Handoff(handing))));
    }

    /// Ends a handoff and the maintenance around it. Without a document the maintenance goes on in place.
    pub(in crate::session::core) fn finish_relay(
        &mut self,
        handoff: Operation,
        end: End<Product>,
        notices: Vec<Warning>,
    ) {
        let Some(around) = self.upkeep.relays.around.take() else { return };
        let ends = match &end {
            End::Completed(product) => product.new_session().cloned().map(|new| End::Completed(Product::Relayed(new))),
            End::Cancelled => Some(End::Cancelled),
            End::Failed(_) | End::Skipped(_) => None,
        };
        let Some(ends) = ends else {
            tracing::info!("no document; the maintenance goes on in place");
            let (id, stop) = (around.id.clone(), around.stop.clone());
            handoff.finish(end, &self.sent_usage, Vec::new());
            self.record_running();
            let request = planning::plan_request(&self.state, None, Initiator::User, Cause::Due);
            self.effects.start(Job::Plan(PlanOrder { id, request, authors: Authors::Anyone, former: None, stop }));
            self.work = Work::Preparing(around, Focus::default());
            return;
        };
        self.upkeep.relays.replaced |= matches!(ends, End::Completed(_));
        self.rests_after(&around.kind.clone(), &ends);
        self.settle();
        handoff.finish(end, &self.sent_usage, Vec::new());
        around.finish(ends, &self.sent_usage, notices);
        self.record_running();
        self.answer_held();
    }
}

/// The path up to the last answer, where only messages of the user follow it that no model has read: they wait for the new
/// session. None in the middle of a turn.
fn settled_part(state: &State) -> Option<Path> {
    let path = state.path();
    let unread = plan::unread(path);
    let answer = &path[(path.len() - unread.len()).checked_sub(1)?].id;
    // An answer among them failed, or is in no context.
    let waits = |entry: &Entry| !entry.in_context() || entry.is_from(Role::User) || entry.is_from(Role::Assistant);
    let goes_along = |entry: &Arc<Entry>| waits(entry) && !entry.rewrites();
    let settled = !path.batch().is_open() && unread.iter().all(goes_along);
    let covered = path.up_to(answer).filter(|_| settled)?;
    (messages_of(&covered) >= 2).then_some(covered)
}

/// Whether the client goes on with the session that a handoff makes. It declares so, or it has asked for a handoff of this
/// session or of the one that it comes from.
pub(in crate::session::core) fn client_follows_handoffs(state: &State, relays: &Relays) -> bool {
    let carries = |body: &Body| matches!(body, Body::CustomMessage(custom) if custom.custom_type == HANDOFF);
    state.client_follows_sessions() || relays.asked || state.path().iter().any(|entry| carries(&entry.body))
}

/// Whether maintenance at the threshold hands off where the turn has settled.
pub(in crate::session::core) fn relays(state: &State, relays: &Relays) -> bool {
    state.measure().compaction.strategy == Strategy::Handoff
        && !relays.replaced
        && client_follows_handoffs(state, relays)
}
