//! Transfers: operations that carry knowledge to another place. Each makes a text beside the session, if it needs one, and
//! delivers it in one write.

pub(super) mod delivery;
pub(super) mod handing_off;
mod navigating;
pub(super) mod referring;
pub mod relaying;
mod relays;
pub(super) mod waiting;

pub(super) use relays::Relays;
pub(super) use waiting::Extracts;

use self::delivery::Delivery;
use super::{
    base::Base,
    command::TransferRequest,
    parts::switches::Switches,
    step::{Step, Write},
    turns::prompts::Prompts,
    work::{Task, TransferPhase, Unstarted, Work},
};
use crate::{
    conversation::{
        entry::{Entry, Stamp},
        mirroring,
    },
    ids::{EntryId, ModelRef, OperationId},
    protocol::{
        errors::Failure,
        events::{ChunkSource, Event, ModelChange, Stage},
    },
    redact::Secrets,
    session::{
        effects::Ticket,
        jobs::{
            Job, defect,
            transfer::{TransferOrder, TransferText, TransferWork},
        },
        kind::{Handoff, OperationKind, Product, Reference, Transfer},
        operation::Operation,
        operations::{Asked, End},
        state::State,
        stop::Stop,
    },
    wire::outbox::About,
};
use serde_json::Value;
use std::sync::Arc;

impl Write for Delivery {
    fn entries(&self) -> Vec<Arc<Entry>> {
        self.costs.entries.iter().chain(&self.entries).cloned().collect()
    }

    fn take_added(&mut self, added: Arc<Entry>) {
        self.entries.push(added);
    }

    fn written(self: Box<Self>, _: &mut Base) -> Vec<Step> {
        vec![Step::Delivered(self, Ok(()))]
    }

    fn not_written(self: Box<Self>, _: &mut Base, failure: &Failure) -> Vec<Step> {
        vec![Step::Delivered(self, Err(failure.clone()))]
    }

    /// The transfer is looked at again.
    fn again(self: Box<Self>, base: &mut Base) -> Vec<Step> {
        let Self { task, text, costs, .. } = *self;
        base.costs.put_back(costs);
        match base.work.take() {
            Work::Transfer(operation, TransferPhase::Writing { .. }) => {
                operation.commits_no_more();
                base.work = Work::Transfer(operation, TransferPhase::Made(task, text));
            }
            other => base.work = other,
        }
        Vec::new()
    }
}

/// Handles a request for a transfer.
pub(super) fn begin(base: &mut Base, relays: &mut Relays, request: TransferRequest, ticket: Ticket) -> Option<Step> {
    if ticket.cancelled() {
        return Some(Step::fail(ticket, &Failure::Cancelled));
    }
    let writable = if request.writes_here() { base.writable() } else { Ok(()) };
    let free = writable.and_then(|()| base.work.nothing_planned());
    if let Err(failure) = free.and_then(|()| base.operations.room_for(&OperationKind::BY_CLIENT)) {
        return Some(Step::fail(ticket, &failure));
    }
    match request {
        TransferRequest::Navigate(params) => navigating::navigate(base, params, ticket),
        TransferRequest::Reference(params) => referring::refer(base, params, ticket),
        TransferRequest::Handoff(params) => handing_off::hand_off(base, relays, params, ticket),
    }
}

/// Starts the operation of a transfer.
fn open(base: &Base, id: OperationId, kind: Transfer, asked: Asked<Ticket>) -> Operation {
    let kind = OperationKind::Transfer(kind);
    base.open(Unstarted { id, kind, asked, stop: Stop::default() }, base.state.usage())
}

/// Starts the job that makes the text of a transfer. `model`: the one of the path that the text is about.
fn make_text(base: &mut Base, operation: Operation, task: Task, work: TransferWork, model: Option<ModelRef>) {
    let (id, stop, settings) = (operation.id.clone(), operation.stop.clone(), base.state.settings().clone());
    base.effects.start(Job::Transfer(TransferOrder { id, work, settings, model, stop }));
    base.work = Work::Transfer(operation, TransferPhase::Making(Box::new(task)));
}

/// The text of a transfer was made, or cannot be made.
pub(super) fn made(base: &mut Base, id: &OperationId, result: Result<TransferText, Failure>) -> Option<Step> {
    let (mut operation, task) = match base.work.take() {
        Work::Transfer(operation, TransferPhase::Making(task)) if operation.id == *id => (operation, task),
        other => {
            base.work = other;
            return None;
        }
    };
    match result {
        _ if operation.is_stopped() => Some(Step::end(operation, End::Cancelled)),
        Ok(text) => {
            send_extracted(&mut operation, &text);
            base.work = Work::Transfer(operation, TransferPhase::Made(task, Some(text)));
            None
        }
        Err(Failure::Cancelled) => Some(Step::end(operation, End::Cancelled)),
        Err(failure) => Some(Step::end(operation, End::Failed(failure))),
    }
}

/// Delivers a text. The log is here.
pub(super) fn deliver(
    base: &mut Base,
    prompts: &mut Prompts,
    operation: Operation,
    task: Task,
    text: Option<TransferText>,
) -> Option<Step> {
    let delivery = match task {
        // A session that ends gets no results of its open calls any more.
        task if operation.is_stopped() || waiting::must_wait(&base.state, &task) => Err(Failure::Cancelled),
        Task::Navigation(navigating) => navigating::staged(base, navigating, text),
        Task::Reference { is_introduced } => referring::staged(base, is_introduced, text),
        Task::Handoff(handing) => return handing_off::hand_over(base, prompts, operation, handing, text),
    };
    Some(match delivery {
        Ok(delivery) if delivery.entries.is_empty() => {
            base.costs.put_back(delivery.costs);
            Step::end(operation, End::Completed(Product::Transferred(delivery.result)))
        }
        Ok(delivery) => {
            operation.commits();
            let model = base.state.model(base.state.path());
            base.work = Work::Transfer(operation, TransferPhase::Writing { model });
            Step::Write(Box::new(delivery))
        }
        Err(Failure::Cancelled) => Step::end(operation, End::Cancelled),
        Err(failure) => Step::end(operation, End::Failed(failure)),
    })
}

/// The entries of a transfer are on disk, or could not be written.
pub(super) fn delivered(
    base: &mut Base,
    switches: &mut Switches,
    delivery: Delivery,
    result: Result<(), Failure>,
) -> Option<Step> {
    let (operation, model) = match base.work.take() {
        Work::Transfer(operation, TransferPhase::Writing { model }) => (operation, model),
        other => {
            base.work = other;
            return None;
        }
    };
    if let Err(failure) = result {
        base.costs.put_back(delivery.costs);
        return Some(Step::end(operation, End::Failed(failure)));
    }
    // An operation without a start event is not introduced to a client that waits for its end.
    let id = delivery.task.is_introduced().then(|| operation.id.clone());
    base.count();
    for entry in delivery.entries() {
        base.effects.announce(&entry, id.clone());
    }
    if let Some(event) = delivery.event {
        base.effects.emit(About::of(id.clone(), &event), event);
    }
    if let Some(to) = base.state.model(base.state.path()).filter(|to| model.as_ref() != Some(to)) {
        // The change of the model stands on the branch that was left.
        switches.forget();
        let changed = Event::ModelChanged { from: model, to, reason: ModelChange::Restore };
        base.effects.emit(About::of(id.clone(), &changed), changed);
    }
    base.sent_usage = base.state.usage();
    base.effects
        .emit(About { operation: id, ..About::default() }, Event::UsageUpdated { usage: base.sent_usage.clone() });
    Some(Step::end(operation, End::Completed(Product::Transferred(delivery.result))))
}

/// Whether texts of requests lose their secrets.
fn secrets(state: &State) -> Secrets {
    state.settings().settings.redaction.secrets()
}

/// The kind of a transfer that was cancelled before its start.
pub(super) fn kind_of(state: &State, request: &TransferRequest) -> OperationKind {
    let transfer = match request {
        TransferRequest::Navigate(params) => Transfer::Navigation(navigating::unstarted_navigation(state, params)),
        TransferRequest::Reference(params) => Transfer::Reference(Reference::of(params)),
        TransferRequest::Handoff(params) => Transfer::Handoff(Handoff::of(params, secrets(state))),
    };
    OperationKind::Transfer(transfer)
}

/// The end of a summary, and the pieces of a text that no model wrote. Those of a model were sent while it wrote them.
fn send_extracted(operation: &mut Operation, text: &TransferText) {
    let Some(summary) = text.branch().and_then(|branch| branch.summary.as_ref()) else { return };
    operation.arrives(Stage::Summarizing);
    if summary.made.is_extracted() {
        operation.moves_to(ChunkSource::Branch, 1);
        operation.begins(ChunkSource::Branch);
        operation.chunks(ChunkSource::Branch, &summary.text);
    }
}

/// An entry of these fields.
fn entry_of(
    kind: &str,
    stamp: &Stamp,
    parent: Option<&EntryId>,
    fields: &[(&str, Value)],
) -> Result<Arc<Entry>, Failure> {
    mirroring::entry_of(kind, stamp, parent, fields).ok_or_else(defect)
}
