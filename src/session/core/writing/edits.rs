//! Requests that write entries which are neither messages nor compactions.

use crate::{
    conversation::{entry::Entry, undo::Undoing},
    log::history::History,
    protocol::{errors::Failure, types::Next},
    session::{
        core::{
            base::Base,
            command::Command,
            edit::{self, Edit, EditWrite},
            step::{Step, Write},
        },
        effects::Ticket,
    },
    wire::outbox::About,
};
use std::sync::Arc;

impl Write for EditWrite {
    fn entries(&self) -> Vec<Arc<Entry>> {
        self.staged.entries.clone()
    }

    fn take_added(&mut self, added: Arc<Entry>) {
        self.staged.entries.push(added);
    }

    fn take_undoing(&mut self) -> Option<Undoing> {
        self.staged.undoing.take().map(|undoing| *undoing)
    }

    fn set_undone(&mut self, entries: Vec<Arc<Entry>>) {
        self.staged.entries = entries;
    }

    fn written(self: Box<Self>, base: &mut Base) -> Vec<Step> {
        if self.staged.stores_model() {
            base.state.stored_model();
        }
        if self.staged.stores_data() {
            base.state.stored_data();
        }
        if self.staged.clears() {
            base.state.change(History::trim);
        }
        base.count();
        vec![Step::Edited(self)]
    }

    fn not_written(self: Box<Self>, _: &mut Base, failure: &Failure) -> Vec<Step> {
        self.ticket.fail(failure);
        Vec::new()
    }

    fn again(self: Box<Self>, base: &mut Base) -> Vec<Step> {
        base.queue.put_back(Command::Edit(self.edit), self.ticket);
        Vec::new()
    }
}

/// Makes the entries of a request. A request without entries is answered immediately.
pub(in crate::session::core) fn begin(base: &mut Base, edit: Box<dyn Edit>, ticket: Ticket) -> Option<Step> {
    if ticket.cancelled() {
        ticket.fail(&Failure::Cancelled);
        return None;
    }
    let busy = || if edit.rewrites_context() { base.free() } else { Ok(()) };
    if let Err(failure) = base.writable().and_then(|()| busy()) {
        ticket.fail(&failure);
        return None;
    }
    match edit.stage(&base.state, &mut base.stamps) {
        Ok(staged) if staged.entries.is_empty() => {
            base.count();
            return Some(Step::Edited(Box::new(EditWrite { edit, staged, ticket })));
        }
        Ok(staged) => return Some(Step::Write(Box::new(EditWrite { edit, staged, ticket }))),
        Err(edit::NotStaged::NeedsIndex) => base.await_index(Command::Edit(edit), ticket),
        Err(edit::NotStaged::NeedsEntries(fetch)) => base.fetch(fetch, Command::Edit(edit), ticket),
        Err(edit::NotStaged::Failed(failure)) => ticket.fail(&failure),
    }
    None
}

/// Answers an edit, announces its entries, and sends its event.
pub(in crate::session::core) fn answer(base: &Base, write: EditWrite, next: Next) {
    let EditWrite { edit, mut staged, ticket } = write;
    (staged.next, staged.status) = (next, base.operations.status());
    ticket.answer(edit.answer(&base.state, &staged));
    for entry in &staged.entries {
        base.effects.announce(entry, None);
    }
    if !staged.entries.is_empty()
        && let Some(event) = edit.event(&base.state, &staged)
    {
        base.effects.emit(About::default(), event);
    }
}
