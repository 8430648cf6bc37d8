//! The messages that wait for a turn. They are in the file before their requests are answered, and each is delivered once, in
//! order. After a cancel, a failure or a restart they wait for the user.
//!
//! An entry of the file has the whole queue, and the newest one on the path counts. A message that is delivered names its place in
//! the queue, so that a crash between the message and the entry after it delivers nothing twice.

use super::queued::{Lists, QueueWrite, QueueWritten, Waiting, entry_of};
use crate::{
    conversation::{
        entry::{Entry, Stamps},
        path::Path,
    },
    ids::{EntryId, OperationId, SessionId},
    log::Access,
    protocol::{
        errors::Failure,
        events::Event,
        types::{Behavior, Disposition, PromptAnswer, Queue},
    },
    session::{
        core::{
            base::Base,
            step::{Step, Write},
            work::Work,
        },
        effects::{Answer, Ticket},
        kind::Product,
        log_work::Adds,
        operation::Operation,
        operations::End,
        state::State,
    },
    wire::outbox::About,
};
use std::sync::Arc;

/// The most messages that wait. A chosen number, far above those that a person writes during a turn.
const MOST: usize = 64;

/// The most bytes of messages that wait, where it is not one alone. A chosen number: each change writes all of them, so 64 messages
/// write at most 64 MiB.
const MOST_BYTES: usize = 1 << 20;

/// The messages that wait for a turn.
#[derive(Default)]
pub(in crate::session::core) struct Prompts {
    lists: Lists,
    /// Whether they wait for the user: nothing starts with them.
    is_paused: bool,
    /// Whether the newest entry on the path may have another queue.
    is_outdated: bool,
    /// Whether an entry of this session has a queue with messages.
    is_used: bool,
    /// The messages that the session which is being made takes over. No message is added or written meanwhile.
    carried: Vec<EntryId>,
}

impl Prompts {
    /// The queue of an opened session. It waits for the user.
    pub fn recalled(state: &State) -> Self {
        let mut lists = Lists::on(state.path(), &state.id);
        lists.rest();
        Self { is_used: !lists.is_empty(), lists, is_paused: true, ..Self::default() }
    }

    /// The queue on the wire.
    pub fn queue(&self) -> Queue {
        self.lists.queue()
    }

    /// The event with the queue.
    pub fn event(&self) -> Event {
        Event::QueueChanged { queue: self.queue() }
    }

    /// Nothing starts with them before the user sends a message.
    pub fn pause(&mut self, base: &Base) {
        self.is_paused = true;
        if self.lists.rest() {
            base.effects.emit(About::default(), self.event());
        }
    }

    /// The user has sent a message: they follow it.
    pub fn go_on(&mut self) {
        self.is_paused = false;
    }

    /// The messages that steer the turn.
    pub fn steering(&self) -> &[Waiting] {
        &self.lists.steering
    }

    /// Whether a message steers the turn.
    pub fn steers(&self) -> bool {
        !self.lists.steering.is_empty()
    }

    /// The message that the next turn begins with.
    pub fn next(&self) -> Option<&Waiting> {
        self.lists.iter().next()
    }

    /// Whether a turn begins with one of them.
    pub fn is_next(&self) -> bool {
        !self.is_paused && !self.lists.is_empty()
    }

    /// Whether the newest entry on the path may have another queue.
    pub fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// The session is on another path, or another program has written to it. A session that is only read shows the queue of its
    /// file.
    pub fn moved(&mut self, base: &Base) {
        let state = &base.state;
        if base.writable().is_ok() {
            self.is_outdated = self.is_used && Lists::on(state.path(), &state.id) != self.lists;
            return;
        }
        let mut there = Lists::on(state.path(), &state.id);
        there.rest();
        if there != self.lists {
            self.lists = there;
            base.effects.emit(About::default(), self.event());
        }
    }

    /// Adds a message. The request is answered with this turn when the queue is on disk.
    pub fn add(
        &mut self,
        base: &mut Base,
        waiting: Waiting,
        behavior: Behavior,
        turn_id: OperationId,
        ticket: Ticket,
    ) -> Option<Step> {
        let answer = PromptAnswer { turn_id, disposition: Disposition::Queued };
        let former = self.lists.clone();
        match behavior {
            Behavior::Steer => self.lists.steering.push(waiting),
            Behavior::FollowUp => self.lists.follow_up.push(waiting),
        }
        let is_alone = former.is_empty();
        if !is_alone && (self.lists.iter().count() > MOST || self.lists.bytes() > MOST_BYTES) {
            let waiting = former.iter().count();
            self.lists = former;
            return Some(Step::fail(ticket, &Failure::QueueFull { waiting }));
        }
        self.is_used = true;
        self.write(base, Some((ticket, Answer::ok(&answer))), former, None)
    }

    /// Takes all messages out but this one, with which a turn starts. The request is answered when the queue is on disk.
    pub fn clear(&mut self, base: &mut Base, starts: Option<&EntryId>, ticket: Ticket) -> Option<Step> {
        let mut taken = self.lists.clone();
        taken.retain(|id| Some(id) != starts);
        let answer = Answer::ok(&taken.queue());
        if taken.is_empty() {
            return Some(Step::Answer(ticket, answer));
        }
        let former = self.lists.clone();
        self.lists.retain(|id| Some(id) == starts);
        self.write(base, Some((ticket, answer)), former, None)
    }

    /// Messages are on disk as messages of the conversation. Returns whether there were any.
    pub fn delivered(&mut self, ids: &[EntryId]) -> bool {
        self.lists.retain(|id| !ids.contains(id));
        !ids.is_empty()
    }

    /// Writes the queue, where the path has another one.
    pub fn write_due(&mut self, base: &mut Base) -> Option<Step> {
        self.is_outdated = false;
        let is_right = Lists::on(base.state.path(), &base.state.id) == self.lists;
        let former = self.lists.clone();
        if is_right || base.writable().is_err() { None } else { self.write(base, None, former, None) }
    }

    fn write(
        &mut self,
        base: &mut Base,
        asker: Option<(Ticket, Answer)>,
        former: Lists,
        ends: Option<End<Product>>,
    ) -> Option<Step> {
        let parent = base.state.path().last().map(|leaf| leaf.id.clone());
        match entry_of(&self.lists, &base.state.id, parent.as_ref(), &mut base.stamps) {
            Some(entry) => Some(Step::Write(Box::new(QueueWrite { entry, asker, former, ends }))),
            None => {
                self.lists = former;
                let failure = Failure::Internal("the queue is no entry, which is a defect of abridged".to_owned());
                let failed = asker.map(|(ticket, _)| Step::fail(ticket, &failure));
                failed.or_else(|| ended(base, ends))
            }
        }
    }

    /// Takes the outcome of a write of the queue.
    pub fn recorded(&mut self, base: &mut Base, outcome: QueueWritten) -> Option<Step> {
        match outcome {
            QueueWritten::Written(QueueWrite { entry, asker, ends, .. }) => {
                let changes = asker.is_some() || ends.is_some();
                asker.into_iter().for_each(|(ticket, answer)| ticket.answer(answer));
                base.effects.announce(&entry, None);
                if changes {
                    base.effects.emit(About::default(), self.event());
                }
                ended(base, ends)
            }
            QueueWritten::Failed(QueueWrite { asker, former, ends, .. }, failure) => {
                self.lists = former;
                asker.into_iter().for_each(|(ticket, _)| ticket.fail(&failure));
                ended(base, ends)
            }
            QueueWritten::Again(QueueWrite { asker, former, ends, .. }) => self.write(base, asker, former, ends),
        }
    }

    /// The entry with the queue without some messages, which are delivered in the same write.
    pub fn entry_without(
        &self,
        delivered: &[EntryId],
        session: &SessionId,
        parent: Option<&EntryId>,
        stamps: &mut Stamps,
    ) -> Option<Arc<Entry>> {
        let mut lists = self.lists.clone();
        lists.retain(|id| !delivered.contains(id));
        entry_of(&lists, session, parent, stamps)
    }

    /// The entry with the queue once more, for the same write as a compaction that may cover the first.
    pub fn entry_again(&self, session: &SessionId, parent: &EntryId, stamps: &mut Stamps) -> Option<Arc<Entry>> {
        if self.lists.is_empty() { None } else { entry_of(&self.lists, session, Some(parent), stamps) }
    }

    /// The entry with the queue for a session that takes this one's place. None where there is no queue, or another program has it.
    pub fn entry_for(&mut self, base: &mut Base, session: &SessionId, parent: &EntryId) -> Option<Arc<Entry>> {
        if base.writable().is_err() {
            return None;
        }
        self.carried = self.lists.iter().map(|waiting| waiting.id.clone()).collect();
        self.entry_again(session, parent, &mut base.stamps)
    }

    /// The session that takes this one's place was made: its messages leave the queue, and after that the operation ends. Nobody is
    /// told of that session before, so that a crash leaves no message in two of them.
    pub fn replaced(&mut self, base: &mut Base, operation: Operation, end: End<Product>) -> Option<Step> {
        let carried = std::mem::take(&mut self.carried);
        let is_made = matches!(&end, End::Completed(product) if product.replaces_session());
        if !is_made || carried.is_empty() {
            return Some(Step::end(operation, end));
        }
        let former = self.lists.clone();
        self.lists.retain(|id| !carried.contains(id));
        base.work = Work::Committing(operation);
        self.write(base, None, former, Some(end))
    }

    /// Makes the entry with the queue for a path that the session moves to, where that path has another queue.
    pub fn entry_there(&self, session: &SessionId, access: Access, stamps: &mut Stamps) -> Option<Adds> {
        if access != Access::Write || !self.is_used {
            return None;
        }
        let (lists, session, mut stamps) = (self.lists.clone(), session.clone(), stamps.fork());
        Some(Box::new(move |there: &Path| {
            let is_right = Lists::on(there, &session) == lists;
            let leaf = there.last().map(|leaf| &leaf.id);
            if is_right { Vec::new() } else { entry_of(&lists, &session, leaf, &mut stamps).into_iter().collect() }
        }))
    }
}

/// The end of the operation that a write of the queue was part of.
fn ended(base: &mut Base, ends: Option<End<Product>>) -> Option<Step> {
    ends.and_then(|end| Some(Step::end(base.work.take_committing()?, end)))
}

impl Write for QueueWrite {
    fn entries(&self) -> Vec<Arc<Entry>> {
        vec![self.entry.clone()]
    }

    fn written(self: Box<Self>, _: &mut Base) -> Vec<Step> {
        vec![Step::Queue(QueueWritten::Written(*self))]
    }

    fn not_written(self: Box<Self>, _: &mut Base, failure: &Failure) -> Vec<Step> {
        vec![Step::Queue(QueueWritten::Failed(*self, failure.clone()))]
    }

    fn again(self: Box<Self>, _: &mut Base) -> Vec<Step> {
        vec![Step::Queue(QueueWritten::Again(*self))]
    }
}
