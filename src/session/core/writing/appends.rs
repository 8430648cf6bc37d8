//! Appends: consecutive ones become one write, and each is answered with the maintenance that follows.

use crate::{
    conversation::{
        entry::{Entry, Stamps},
        mirroring,
    },
    protocol::{
        errors::Failure,
        types::{AppendAnswer, AppendParams},
    },
    session::{
        core::{
            Core,
            command::Command,
            commands::append::Append,
            parts::log_gate::{Unanswered, Write},
            recovering::reports,
            standing::Standing,
        },
        effects::Ticket,
        state::State,
    },
};
use std::sync::Arc;

/// Appends that are written together.
struct Appends(Vec<Append>);

impl Write for Appends {
    fn entries(&self) -> Vec<Arc<Entry>> {
        self.0.iter().flat_map(|append| append.staged.entries.clone()).collect()
    }

    fn take_added(&mut self, added: Arc<Entry>) {
        if let Some(last) = self.0.last_mut() {
            last.staged.entries.push(added);
        }
    }

    fn written(self: Box<Self>, core: &mut Core) {
        core.appended(self.0);
    }

    fn not_written(self: Box<Self>, _: &mut Core, failure: &Failure) {
        self.0.into_iter().for_each(|append| append.ticket.fail(failure));
    }

    fn again(self: Box<Self>, core: &mut Core) {
        for Append { params, ticket, .. } in self.0.into_iter().rev() {
            core.queue.put_back(Command::Append(params), ticket);
        }
    }
}

impl Unanswered for Appends {
    fn counted(self: Box<Self>, core: &mut Core) {
        core.answer_appends(self.0);
    }
}

impl Core {
    /// Writes an append, with those that follow it in the queue.
    pub(in crate::session::core) fn append(&mut self, params: AppendParams, ticket: Ticket) {
        let mut appends = self.in_a_row(params, ticket);
        if !appends.is_empty() {
            add_lines_for_others(&self.state, &mut self.stamps, &mut appends);
            self.write(Box::new(Appends(appends)));
        }
    }

    /// Consecutive appends become one write. An append with a condition has to see those before it, so it begins the
    /// next write. A failed answer is decided about before the next append.
    fn in_a_row(&mut self, params: AppendParams, ticket: Ticket) -> Vec<Append> {
        let mut appends = Vec::new();
        self.stage(params, ticket, &mut appends);
        loop {
            match self.queue.next() {
                Some((Command::Append(params), ticket))
                    if !appends.last().is_some_and(Append::may_be_recovered)
                        && params.parent_entry_id.is_none()
                        && params.expected_leaf_id.is_none()
                        && self.index.commands.is_empty()
                        && self.log.is_free() =>
                {
                    if !self.stage(params, ticket, &mut appends) {
                        return appends;
                    }
                }
                Some((command, ticket)) => {
                    self.queue.put_back(command, ticket);
                    return appends;
                }
                None => return appends,
            }
        }
    }

    /// Appends are on disk. Where a compaction seems to be due, the decision waits for counts.
    fn appended(&mut self, appends: Vec<Append>) {
        for append in &appends {
            if append.params.context_id.is_some() {
                self.recoveries.contexts.is_answered(&append.context, &append.staged.entries, &self.state);
            }
            self.learn_from(&append.staged.entries);
        }
        self.count();
        if Standing::of(self).seems_due() && self.log.is_free() {
            return self.log.waits_for_counts(Box::new(Appends(appends)));
        }
        self.answer_appends(appends);
    }

    /// Answers appends that are on disk, announces their entries, and starts the maintenance that is due.
    fn answer_appends(&mut self, appends: Vec<Append>) {
        self.has_changed();
        let remark = self.heed_report(&appends);
        let model = appends.first().and_then(|append| append.model.clone());
        let due = self.due_after(&appends);
        let newest = appends.last().and_then(|append| append.staged.entries.last().cloned());
        let usage = self.state.usage();
        let last = appends.len().saturating_sub(1);
        for (at, Append { staged, ticket, .. }) in appends.into_iter().enumerate() {
            let visible = staged.entries.iter().filter(|entry| !entry.is_marker());
            ticket.ok(&AppendAnswer {
                entry_ids: visible.map(|entry| entry.id.clone()).collect(),
                leaf_entry_id: self.state.visible_leaf(),
                usage: usage.clone(),
                next: self.next(due.as_ref().filter(|_| at == last)),
            });
            for entry in &staged.entries {
                self.effects.announce(entry, None);
            }
        }
        self.send_usage(usage.clone());
        reports::tell_of_model(&self.effects, &self.state, model);
        if let Some(newest) = newest {
            self.tell_of(&newest);
        }
        if let Some((code, title, detail)) = remark {
            self.effects.warn(code, title, detail);
        }
        self.tell_of_window();
        match due {
            None => self.look_ahead(&usage),
            due => self.start_due(due),
        }
    }
}

/// Adds the lines that other programs lack: texts since a compaction between a call and its result, edits of results
/// without a call, and all that a torn write or another program's form left out. Entries on another branch get none,
/// because these lines belong to the current path.
fn add_lines_for_others(state: &State, stamps: &mut Stamps, appends: &mut [Append]) {
    let (path, prompts) = (state.path(), &state.settings().prompts);
    let staged: Vec<Arc<Entry>> = appends.iter().flat_map(|append| append.staged.entries.clone()).collect();
    if !path.continues_with_all(&staged) || !mirroring::may_be_needed(path, &staged, prompts) {
        return;
    }
    let mirrors = mirroring::with_mirrors(path, &staged, prompts, stamps);
    if let Some(last) = appends.last_mut() {
        last.staged.entries.extend(mirrors);
    }
}
