//! Appends: consecutive ones become one write.

use crate::{
    conversation::{
        entry::{Entry, Stamps},
        mirroring,
    },
    protocol::{
        errors::Failure,
        types::{AppendAnswer, AppendParams, Next, Usage},
    },
    session::{
        core::{
            base::Base,
            command::Command,
            commands::append::{self, Append, Asker},
            parts::log_gate::FollowUp,
            step::{Step, Write},
            turns::Own,
        },
        effects::Ticket,
        jobs::defect,
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

    fn written(self: Box<Self>, base: &mut Base) -> Vec<Step> {
        for append in &self.0 {
            if append.params.context_id.is_some() {
                base.contexts.is_answered(&append.context, &append.staged.entries, &base.state);
            }
            base.learn_from(&append.staged.entries);
        }
        base.count();
        vec![Step::Appended(self.0)]
    }

    fn follow_up(&self) -> FollowUp {
        let is_of_turn = |append: &Append| matches!(append.asker, Asker::Turn(_));
        if self.0.iter().any(is_of_turn) { FollowUp::Turn } else { FollowUp::None }
    }

    fn not_written(self: Box<Self>, _: &mut Base, failure: &Failure) -> Vec<Step> {
        let failed = |append: Append| match append.asker {
            Asker::Client(ticket) => Step::fail(ticket, failure),
            Asker::Turn(own) => Step::OwnNotWritten(own, failure.clone()),
        };
        self.0.into_iter().map(failed).collect()
    }

    fn lost(self: Box<Self>) -> Vec<Step> {
        let lost = |append: Append| match append.asker {
            Asker::Client(_) => None,
            Asker::Turn(own) => Some(Step::OwnNotWritten(own, defect())),
        };
        self.0.into_iter().filter_map(lost).collect()
    }

    fn again(self: Box<Self>, base: &mut Base) -> Vec<Step> {
        let mut steps = Vec::new();
        for Append { params, asker, .. } in self.0.into_iter().rev() {
            match asker {
                Asker::Client(ticket) => base.queue.put_back(Command::Append(params), ticket),
                Asker::Turn(own) => steps.push(Step::OwnAgain(own)),
            }
        }
        steps
    }
}

/// Writes an append, with those that follow it in the queue.
pub(in crate::session::core) fn begin(base: &mut Base, params: AppendParams, ticket: Ticket) -> Option<Step> {
    let appends = in_a_row(base, params, ticket);
    (!appends.is_empty()).then(|| write(base, appends))
}

/// Writes appends.
pub(in crate::session::core) fn write(base: &mut Base, mut appends: Vec<Append>) -> Step {
    add_lines_for_others(&base.state, &mut base.stamps, &mut appends);
    Step::Write(Box::new(Appends(appends)))
}

/// Consecutive appends become one write. An append with a condition has to see those before it, so it begins the next write. A
/// failed answer is decided about before the next append.
fn in_a_row(base: &mut Base, params: AppendParams, ticket: Ticket) -> Vec<Append> {
    let mut appends = Vec::new();
    append::stage(base, params, ticket, &mut appends);
    loop {
        match base.queue.next() {
            Some((Command::Append(params), ticket))
                if !appends.last().is_some_and(Append::may_be_recovered)
                    && params.parent_entry_id.is_none()
                    && params.expected_leaf_id.is_none()
                    && base.index.commands.is_empty()
                    && base.log.is_free() =>
            {
                if !append::stage(base, params, ticket, &mut appends) {
                    return appends;
                }
            }
            Some((command, ticket)) => {
                base.queue.put_back(command, ticket);
                return appends;
            }
            None => return appends,
        }
    }
}

/// Answers appends, and announces their entries. `last` is the `next` of the last one. Returns the messages of turns among them.
pub(in crate::session::core) fn answer(
    base: &Base,
    appends: Vec<Append>,
    usage: &Usage,
    next: &Next,
    last: &Next,
) -> Vec<Own> {
    let newest = appends.len().saturating_sub(1);
    let mut own = Vec::new();
    for (at, Append { staged, asker, .. }) in appends.into_iter().enumerate() {
        let visible = staged.entries.iter().filter(|entry| !entry.is_marker());
        let turn = match asker {
            Asker::Client(ticket) => {
                ticket.ok(&AppendAnswer {
                    entry_ids: visible.map(|entry| entry.id.clone()).collect(),
                    leaf_entry_id: base.state.visible_leaf(),
                    usage: usage.clone(),
                    next: if at == newest { last } else { next }.clone(),
                });
                None
            }
            Asker::Turn(of_turn) => {
                let turn = of_turn.turn.clone();
                own.push(*of_turn);
                Some(turn)
            }
        };
        for entry in &staged.entries {
            base.effects.announce_of_turn(entry, turn.clone());
        }
    }
    own
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
