//! Requests that write entries which are neither messages nor compactions.

use crate::{
    conversation::{entry::Entry, undo::Undoing},
    log::history::History,
    protocol::errors::Failure,
    session::{
        core::{
            Core,
            command::Command,
            edit::{self, Edit},
            parts::log_gate::{Unanswered, Write},
            standing::Standing,
        },
        effects::Ticket,
        operations::Asked,
    },
    wire::outbox::About,
};
use std::sync::Arc;

/// An edit with its entries.
struct EditWrite {
    edit: Box<dyn Edit>,
    staged: edit::Staged,
    ticket: Ticket,
}

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

    fn written(self: Box<Self>, core: &mut Core) {
        let Self { edit, staged, ticket } = *self;
        core.edited(edit, staged, ticket);
    }

    fn not_written(self: Box<Self>, _: &mut Core, failure: &Failure) {
        self.ticket.fail(failure);
    }

    fn again(self: Box<Self>, core: &mut Core) {
        core.queue.put_back(Command::Edit(self.edit), self.ticket);
    }
}

impl Unanswered for EditWrite {
    fn counted(self: Box<Self>, core: &mut Core) {
        core.answer_edit(&*self.edit, self.staged, self.ticket);
    }
}

impl Core {
    /// Makes the entries of a request and writes them. A request without entries is answered immediately.
    pub(in crate::session::core) fn edit(&mut self, edit: Box<dyn Edit>, ticket: Ticket) {
        if ticket.cancelled() {
            return ticket.fail(&Failure::Cancelled);
        }
        let busy = || if edit.rewrites_context() { Standing::of(self).free() } else { Ok(()) };
        if let Err(failure) = self.log.writable(&self.state).and_then(|()| busy()) {
            return ticket.fail(&failure);
        }
        match edit.stage(&self.state, &mut self.stamps) {
            Ok(staged) if staged.entries.is_empty() => self.edited(edit, staged, ticket),
            Ok(staged) => self.write(Box::new(EditWrite { edit, staged, ticket })),
            Err(edit::NotStaged::NeedsIndex) => self.await_index(Command::Edit(edit), ticket),
            Err(edit::NotStaged::NeedsEntries(fetch)) => self.fetch(fetch, Command::Edit(edit), ticket),
            Err(edit::NotStaged::Failed(failure)) => ticket.fail(&failure),
        }
    }

    /// The entries of a request are on disk. Where a compaction seems to be due, the answer waits for counts.
    fn edited(&mut self, edit: Box<dyn Edit>, staged: edit::Staged, ticket: Ticket) {
        if staged.stores_model() {
            self.state.stored_model();
        }
        if staged.stores_data() {
            self.state.stored_data();
        }
        if staged.clears() {
            self.state.change(History::trim);
        }
        self.note_switch(&staged);
        self.count();
        if self.upkeep.switches.is_pending() && Standing::of(self).seems_too_large() && self.log.is_free() {
            return self.log.waits_for_counts(Box::new(EditWrite { edit, staged, ticket }));
        }
        self.answer_edit(&*edit, staged, ticket);
    }

    /// Answers a request whose entries are on disk, sends its events, and starts the maintenance that is due.
    fn answer_edit(&mut self, edit: &dyn Edit, mut staged: edit::Staged, ticket: Ticket) {
        self.recoveries.forget_failed(&self.state);
        if !staged.entries.is_empty() {
            self.has_changed();
        }
        // Only the answer of a change of the model names what follows.
        let is_named = staged.before.is_some() && !ticket.in_batch();
        let due = self.due_after_edit(if is_named { Asked::Introduced } else { Asked::Unasked });
        staged.next = self.next(due.as_ref());
        ticket.answer(edit.answer(self, &staged));
        for entry in &staged.entries {
            self.effects.announce(entry, None);
        }
        if !staged.entries.is_empty()
            && let Some(event) = edit.event(&self.state, &staged)
        {
            self.effects.emit(About::default(), event);
        }
        self.send_usage(self.state.usage());
        self.tell_of_window();
        if staged.clears() {
            self.leave_superseded();
        }
        self.start_due(due);
    }
}
