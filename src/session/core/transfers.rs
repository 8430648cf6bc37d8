//! Transfers: operations that carry knowledge to another place. Each makes a text beside the session, if it needs one, and
//! delivers it in one write.

mod behind;
mod handing_off;
mod navigating;
mod referring;
pub mod relaying;
mod waiting;

pub(super) use relaying::Relays;
pub(super) use waiting::Extracts;

use super::{
    Core,
    command::TransferRequest,
    costs::CostEntries,
    parts::log_gate::Write,
    work::{Task, TransferPhase, Work},
};
use crate::{
    conversation::{
        entry::{Entry, Stamp},
        mirroring,
    },
    ids::{EntryId, OperationId},
    protocol::{
        errors::Failure,
        events::{ChunkSource, Event, ModelChange, Stage},
    },
    redact::Secrets,
    session::{
        effects::Ticket,
        jobs::{defect, transfer::TransferText},
        kind::{Handoff, OperationKind, Product, Reference, Transfer, Transferred},
        operation::Operation,
        operations::{Asked, End, Place},
        state::State,
        stop::Stop,
    },
    wire::outbox::About,
};
use serde_json::Value;
use std::sync::Arc;

/// The entries of a transfer, on their way to the disk.
pub(super) struct Delivery {
    task: Box<Task>,
    text: Option<TransferText>,
    costs: CostEntries,
    entries: Vec<Arc<Entry>>,
    /// The event after those of the entries.
    event: Option<Event>,
    result: Transferred,
}

impl Write for Delivery {
    fn entries(&self) -> Vec<Arc<Entry>> {
        self.costs.entries.iter().chain(&self.entries).cloned().collect()
    }

    fn take_added(&mut self, added: Arc<Entry>) {
        self.entries.push(added);
    }

    fn written(self: Box<Self>, core: &mut Core) {
        core.delivered(*self, Ok(()));
    }

    fn not_written(self: Box<Self>, core: &mut Core, failure: &Failure) {
        core.delivered(*self, Err(failure.clone()));
    }

    fn again(self: Box<Self>, core: &mut Core) {
        core.deliver_again(*self);
    }
}

impl Core {
    /// Handles a request for a transfer.
    pub(super) fn transfer(&mut self, request: TransferRequest, ticket: Ticket) {
        if ticket.cancelled() {
            return ticket.fail(&Failure::Cancelled);
        }
        let writable = if request.writes_here() { self.log.writable(&self.state) } else { Ok(()) };
        let free = writable.and_then(|()| self.work.nothing_planned());
        if let Err(failure) = free.and_then(|()| self.operations.room_for(&OperationKind::BY_CLIENT)) {
            return ticket.fail(&failure);
        }
        match request {
            TransferRequest::Navigate(params) => self.navigate(params, ticket),
            TransferRequest::Reference(params) => self.refer(params, ticket),
            TransferRequest::Handoff(params) => self.hand_off(params, ticket),
        }
    }

    /// Starts the operation of a transfer.
    fn start_transfer(&mut self, id: &OperationId, kind: Transfer, asked: Asked<Ticket>, stop: &Stop) -> Operation {
        let kind = OperationKind::Transfer(kind);
        self.open(kind, Place::Top(id.clone()), asked, self.state.usage(), stop.clone())
    }

    /// The text of a transfer was made, or cannot be made.
    pub(super) fn transfer_made(&mut self, id: &OperationId, result: Result<TransferText, Failure>) {
        let (mut operation, task) = match self.work.take() {
            Work::Transfer(operation, TransferPhase::Making(task)) if operation.id == *id => (operation, task),
            other => {
                self.work = other;
                return;
            }
        };
        match result {
            _ if operation.is_stopped() => self.finish(operation, End::Cancelled),
            Ok(text) => {
                tell_extracted(&mut operation, &text);
                self.work = Work::Transfer(operation, TransferPhase::Made(task, Some(text)));
            }
            Err(Failure::Cancelled) => self.finish(operation, End::Cancelled),
            Err(failure) => self.finish(operation, End::Failed(failure)),
        }
    }

    /// Delivers a text. The log is here.
    pub(super) fn deliver(&mut self, operation: Operation, task: Task, text: Option<TransferText>) {
        if operation.is_stopped() {
            return self.finish(operation, End::Cancelled);
        }
        if !waiting::may_deliver(&self.state, &task) {
            return self.set_aside(operation, task, text);
        }
        let delivery = match task {
            Task::Navigation(navigating) => self.staged_navigation(navigating, text),
            Task::Reference { is_introduced } => self.staged_reference(is_introduced, text),
            Task::Handoff(handing) => return self.hand_over(operation, handing, text),
        };
        match delivery {
            Ok(delivery) if delivery.entries.is_empty() => {
                self.costs.put_back(delivery.costs);
                self.finish(operation, End::Completed(Product::Transferred(delivery.result)));
            }
            Ok(delivery) => {
                operation.commits();
                let model = self.state.model(self.state.path());
                self.work = Work::Transfer(operation, TransferPhase::Writing { model });
                self.write(Box::new(delivery));
            }
            Err(failure) => self.finish(operation, End::Failed(failure)),
        }
    }

    /// The entries of a transfer are on disk, or could not be written.
    fn delivered(&mut self, delivery: Delivery, result: Result<(), Failure>) {
        let (operation, model) = match self.work.take() {
            Work::Transfer(operation, TransferPhase::Writing { model }) => (operation, model),
            other => {
                self.work = other;
                return;
            }
        };
        if let Err(failure) = result {
            self.costs.put_back(delivery.costs);
            return self.finish(operation, End::Failed(failure));
        }
        // An operation without a start event is not introduced to a client that waits for its end.
        let id = delivery.task.is_introduced().then(|| operation.id.clone());
        self.recoveries.forget_failed(&self.state);
        self.has_changed();
        self.count();
        for entry in delivery.entries() {
            self.effects.announce(&entry, id.clone());
        }
        if let Some(event) = delivery.event {
            self.effects.emit(About { entry: None, operation: id.clone() }, event);
        }
        if let Some(to) = self.state.model(self.state.path()).filter(|to| model.as_ref() != Some(to)) {
            // The change of the model stands on the branch that was left.
            self.upkeep.switches.forget();
            let changed = Event::ModelChanged { from: model, to, reason: ModelChange::Restore };
            self.effects.emit(About { entry: None, operation: id.clone() }, changed);
        }
        self.sent_usage = self.state.usage();
        self.effects.emit(About { entry: None, operation: id }, Event::UsageUpdated { usage: self.sent_usage.clone() });
        self.finish(operation, End::Completed(Product::Transferred(delivery.result)));
    }

    /// Another program was faster. The transfer is looked at again after its entries.
    fn deliver_again(&mut self, delivery: Delivery) {
        let Delivery { task, text, costs, .. } = delivery;
        self.costs.put_back(costs);
        match self.work.take() {
            Work::Transfer(operation, TransferPhase::Writing { .. }) => {
                operation.commits_no_more();
                self.work = Work::Transfer(operation, TransferPhase::Made(task, text));
            }
            other => self.work = other,
        }
    }
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
fn tell_extracted(operation: &mut Operation, text: &TransferText) {
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
