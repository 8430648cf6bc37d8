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
    ids::OperationId,
    protocol::events::Reason,
    redact::Clean,
    session::{
        core::{
            base::Base,
            transfers::{self, Relays, handing_off},
            work::{HandingOff, Task, Unstarted, Work},
        },
        effects::Ticket,
        founding::HANDOFF,
        jobs::{
            Focus,
            transfer::{HandoffOrder, Maintenance, TransferWork},
        },
        kind::{Handoff, OperationKind, Product, Transfer},
        operation::Operation,
        operations::{Asked, End},
        state::State,
        stop::Stop,
    },
    settings::Strategy,
};
use std::{sync::Arc, time::Duration};

/// The part of the path that maintenance hands off, where the turn has settled and the client goes on with the new
/// session.
pub(in crate::session::core) fn part_to_relay(state: &State, relays: &Relays, reason: Reason) -> Option<Path> {
    if reason == Reason::Threshold && hands_off(state, relays) { settled_part(state) } else { None }
}

/// Starts maintenance that hands the conversation off.
pub(in crate::session::core) fn begin(
    base: &mut Base,
    id: OperationId,
    reason: Reason,
    asked: Asked<Ticket>,
    covered: Path,
) {
    // The end of the handoff stops its work, and the maintenance may go on.
    let usage = base.state.usage();
    let unstarted = Unstarted { id, kind: OperationKind::Relay(reason), asked, stop: Stop::default() };
    let around = base.open(unstarted, usage.clone());
    let trigger = around.kind.trigger();
    let handoff = Handoff { goal: None, is_draft: false, document: Arc::default() };
    let kind = OperationKind::Transfer(Transfer::Handoff(handoff));
    let operation = base.open_inside(around, kind, usage, Stop::default());
    let room =
        handing_off::room_beside(&base.state, &mut base.stamps, &Clean::default()).ok().flatten().unwrap_or_default();
    let settings = base.state.settings().clone();
    let order = HandoffOrder {
        is_warm: base.is_cache_warm(),
        view: base.state.view().of(&covered),
        path: covered.clone(),
        goal: None,
        instructions: None,
        only: None,
        maintenance: Some(Maintenance {
            trigger,
            tokens: base.costs.tokens_for(trigger, None, &base.facts()),
            deadline: Duration::from_secs(settings.settings.compaction.deadline_seconds),
        }),
        fullness: base.state.measure(),
        room,
    };
    let model = base.state.model(&covered);
    let task = Task::Handoff(HandingOff { goal: None, covered, is_draft: false, saves: false });
    transfers::make_text(base, operation, task, TransferWork::Handoff(Box::new(order)), model);
}

/// The end of the maintenance around a handoff that ends. Without a document there is none: the maintenance goes on in place.
pub(in crate::session::core) fn end_around(end: &End<Product>) -> Option<End<Product>> {
    match end {
        End::Completed(product) => product.new_session().cloned().map(|new| End::Completed(Product::Relayed(new))),
        End::Cancelled => Some(End::Cancelled),
        End::Failed(_) | End::Skipped(_) => None,
    }
}

/// Maintenance goes on in place, because there is no document.
pub(in crate::session::core) fn go_on_in_place(base: &mut Base, around: Operation) {
    tracing::info!("no document; the maintenance goes on in place");
    base.plan(around.id.clone(), Cause::Due, None, around.stop.clone());
    base.work = Work::Preparing(around, Focus::default());
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
pub(in crate::session::core) fn hands_off(state: &State, relays: &Relays) -> bool {
    state.measure().compaction.strategy == Strategy::Handoff
        && !relays.replaced
        && client_follows_handoffs(state, relays)
}
