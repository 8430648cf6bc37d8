//! One session: one task that owns its state. Commands arrive through a mailbox, results of work as inputs, and cancels
//! bypass both. The task waits for nothing but the next of these.
//!
//! Work that takes longer than a few milliseconds (opening, counting, planning, summarizing, writing) runs on the
//! blocking pool and comes back as an `Input`. No command is handled while a write is out: an answer sees every append
//! before it, and appends that arrive meanwhile become the next write together.

mod background;
pub mod command;
pub mod commands;
mod costs;
pub mod draft_job;
pub mod edit;
pub mod handle;
pub mod idle;
pub mod kind;
pub mod open;
pub mod operation;
pub mod operations;
mod pool;
pub mod relayer;
mod result;
pub mod state;
pub mod stop;
mod work;
mod writing;

use crate::{
    compaction::{draft::Draft, request::Planned},
    conversation::{entry::Entry, path::Path, tokens},
    ids::{OperationId, SessionId},
    log::{Access, Appended, Grown, Log, error::StoreError, history::Indexed},
    protocol::{
        errors::Failure,
        events::Event,
        types::{AppendParams, ContextParams, Status, Usage},
    },
    session::commands::append::Staged,
    summary::model::writer::Step,
    wire::{
        outbox::{About, Outbox},
        rpc::Reply,
    },
};
use background::{FileChanges, IndexWait};
use command::Command;
use costs::{CostEntries, Costs};
use edit::Edit;
use handle::{Inbox, SharedStatus, Urgent};
use idle::Idle;
use open::Opened;
use operation::OpenOperations;
use state::State;
use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use stop::Stop;
use tokio::sync::mpsc;
use work::Work;

/// A result of work.
enum Input {
    /// Work on the file is done.
    Back { log: Box<dyn Log>, done: Done },
    /// Work on the file ended in a panic.
    Lost,
    /// A request that only reads was answered.
    Answered,
    /// The index was built; `None` if the work was stopped.
    Indexed(Result<Option<Indexed>, StoreError>),
    /// A plan was made, or cannot be made.
    Planned { id: OperationId, result: Result<Planned, Failure> },
    /// A report on a draft in the making.
    Told { id: OperationId, step: Step },
    /// A draft was made, or cannot be made.
    Drafted { id: OperationId, result: Result<Draft, Failure> },
    /// Estimated entries were counted by the tokenizer.
    Counted,
}

/// Results of work on the file.
enum Done {
    /// A write, with the new path where the entries do not continue the old one.
    Wrote { appended: Result<Appended, StoreError>, path: Option<Result<Path, StoreError>>, what: Box<Write> },
    /// The path was read again.
    Woke(Result<Path, StoreError>),
    /// The entries of other programs were read.
    CaughtUp(Result<Grown, StoreError>),
}

/// A write, with the requests that it answers.
enum Write {
    Appends(Vec<Append>),
    Compaction {
        costs: CostEntries,
        entry: Arc<Entry>,
        /// Entries with which other programs read the data that the compaction carries.
        mirrors: Vec<Arc<Entry>>,
        draft: Box<Draft>,
    },
    /// Costs of model requests whose compaction was not written.
    Costs(CostEntries),
    Edit {
        edit: Box<dyn Edit>,
        staged: edit::Staged,
        reply: Reply,
    },
}

/// An append that is being written.
struct Append {
    params: AppendParams,
    staged: Staged,
    reply: Reply,
}

/// Sends the events of one session.
#[derive(Clone)]
pub struct Emitter {
    outbox: Arc<Outbox>,
    session: SessionId,
    /// The status that clients were sent last, for `session/list`.
    status: SharedStatus,
}

impl Emitter {
    /// The emitter of a session.
    #[must_use]
    pub fn new(outbox: Arc<Outbox>, session: SessionId, status: SharedStatus) -> Self {
        // Opening a session subscribes to its events.
        outbox.wants(&session, true);
        Self { outbox, session, status }
    }

    /// Publishes the status, before its event is sent: a client that acts on the event finds the new status.
    pub fn becomes(&self, status: &Status) {
        self.status.set(status.clone());
    }

    /// Sends an event.
    pub fn emit(&self, about: About, event: &Event) {
        self.outbox.event(&self.session, &about, event);
    }
}

/// The log, which is away while a write is out.
enum Writer {
    Ready(Box<dyn Log>),
    /// End of the file when the log left, in bytes.
    Away {
        end: u64,
    },
}

/// Requests that only read. Each runs on the blocking pool and sends its own answer.
#[derive(Default)]
struct Reads {
    /// The number of them that run.
    running: usize,
    /// Stops them.
    stop: Stop,
}

/// One session.
pub struct Session {
    state: State,
    writer: Writer,
    work: Work,
    operations: OpenOperations,
    emitter: Emitter,
    /// Commands taken from the mailbox that were not handled yet.
    commands: VecDeque<Command>,
    costs: Costs,
    /// Requests for the context that wait for the end of the compaction.
    waiting: Vec<(ContextParams, Reply)>,
    reads: Reads,
    index: IndexWait,
    changes: FileChanges,
    idle: Idle,
    /// Tokens are being counted in the background.
    counting: bool,
    ending: Ending,
    /// The usage that was sent last.
    told: Usage,
    inputs: mpsc::UnboundedSender<Box<Input>>,
    urgent: mpsc::UnboundedSender<Box<Urgent>>,
}

/// Whether the session ends, and the requests that wait for the end.
enum Ending {
    No,
    WhenIdle,
    Now(Vec<Reply>),
}

/// Runs a session until it is closed.
pub async fn run(opened: Opened, inbox: Inbox, emitter: Emitter) {
    let (inputs, mut results) = mpsc::unbounded_channel();
    let Inbox { mut mailbox, mut urgent, urgent_sender, shared, .. } = inbox;
    let Opened { state, log, left_behind } = opened;
    let told = state.usage();
    let mut session = Session {
        state,
        writer: Writer::Ready(log),
        work: Work::None,
        operations: OpenOperations::new(emitter.clone()),
        emitter,
        commands: VecDeque::new(),
        costs: Costs::default(),
        waiting: Vec::new(),
        reads: Reads::default(),
        index: IndexWait::default(),
        changes: FileChanges::default(),
        idle: Idle::new(shared),
        counting: false,
        ending: Ending::No,
        told,
        inputs,
        urgent: urgent_sender,
    };
    session.end_interrupted(left_behind);
    while !session.over(&mailbox) {
        // One input at a time, so that a cancel waits behind at most one.
        if let Ok(urgent) = urgent.try_recv() {
            session.on_urgent(*urgent, &mut mailbox);
        } else if let Ok(input) = results.try_recv() {
            session.on_input(*input);
        } else if session.work(&mut mailbox) {
            tokio::task::yield_now().await;
        } else {
            let idle_work = session.next_idle_work();
            tokio::select! { biased;
                Some(urgent) = urgent.recv() => session.on_urgent(*urgent, &mut mailbox),
                Some(input) = results.recv() => session.on_input(*input),
                Some(command) = mailbox.recv(), if session.listens() => session.commands.push_back(*command),
                () = Idle::over(idle_work) => session.do_idle_work(),
                else => break,
            }
        }
    }
    mailbox.close();
    while let Ok(command) = mailbox.try_recv() {
        session.commands.push_back(*command);
    }
    session.end();
}

impl Session {
    fn listens(&self) -> bool {
        matches!(self.writer, Writer::Ready(_))
    }

    fn idle(&self) -> bool {
        self.listens()
            && self.work.is_none()
            && self.commands.is_empty()
            && self.reads.running == 0
            && self.index.commands.is_empty()
            && self.all_noted()
    }

    /// Whether the costs of model requests are in the file, as far as it can be written.
    fn all_noted(&self) -> bool {
        self.costs.is_empty() || self.writable().is_err()
    }

    fn over(&self, mailbox: &mpsc::Receiver<Box<Command>>) -> bool {
        // Costs are recorded before the session ends.
        if !self.costs.is_empty() && self.work.is_none() && self.writable().is_ok() {
            return false;
        }
        match self.ending {
            Ending::No => false,
            Ending::WhenIdle => self.idle() && mailbox.is_empty(),
            Ending::Now(_) => {
                let quiet = self.listens() && self.work.is_none() && self.reads.running == 0;
                quiet && !self.index.building && self.all_noted()
            }
        }
    }

    /// Closes the file, and then answers the requests that wait for it. Everything is on disk, and no work runs.
    fn end(mut self) {
        let gone = Failure::no_session(self.state.id.as_str());
        for command in self.index.commands.drain(..).chain(self.commands.drain(..)) {
            match command {
                Command::Close(reply) => reply.ok(&()),
                command => command.refuse(&gone),
            }
        }
        for (_, reply) in self.waiting.drain(..) {
            reply.fail(&gone);
        }
        let replies = match std::mem::replace(&mut self.ending, Ending::No) {
            Ending::Now(replies) => replies,
            Ending::No | Ending::WhenIdle => Vec::new(),
        };
        drop(self);
        for reply in replies {
            reply.ok(&());
        }
    }

    /// Handles the next draft or command, unless a write is out. Returns false if there is none.
    fn work(&mut self, mailbox: &mut mpsc::Receiver<Box<Command>>) -> bool {
        if !self.listens() {
            return false;
        }
        match self.work.take() {
            Work::Planned(request, result) => {
                self.begin(request, *result);
                return true;
            }
            Work::Drafted(operation, draft) => {
                self.commit(operation, *draft);
                return true;
            }
            other => self.work = other,
        }
        if !self.all_noted() && self.work.is_none() {
            let costs = self.take_costs();
            self.write(Write::Costs(costs));
            return true;
        }
        if matches!(self.ending, Ending::Now(_)) {
            return false;
        }
        if self.catches_up() {
            return true;
        }
        let Some(command) = self.next_command(mailbox) else { return false };
        self.idle.touch();
        match command {
            command if self.waits_for_index(&command) => self.await_index(command),
            command if self.state.history().is_asleep() && !command.closes() => {
                self.commands.push_front(command);
                self.wake();
            }
            Command::Append(params, reply) => {
                let mut appends = self.appends_in_a_row(params, reply, mailbox);
                if !appends.is_empty() {
                    self.add_texts_held_back(&mut appends);
                    self.write(Write::Appends(appends));
                }
            }
            Command::Edit(edit, reply) => self.edit(edit, reply),
            Command::Compact(params, reply) => {
                self.compact(params, reply);
                self.count();
            }
            Command::Call(call, reply) => {
                call(self, reply);
                // Not at the opening: a client may open a thousand sessions and look at one.
                self.count();
            }
            Command::Close(reply) => self.leave(Some(reply)),
            Command::Leave => self.leave(None),
        }
        true
    }

    /// Whether a command needs the index first. A write needs it to know its path. A later write and a close stay
    /// behind.
    fn waits_for_index(&self, command: &Command) -> bool {
        if self.index.commands.iter().any(Command::writes) {
            return command.writes() || command.closes();
        }
        matches!(command, Command::Compact(..) | Command::Edit(..))
            && self.state.history().index().is_none()
            && self.state.path().lacks_its_past()
    }

    fn next_command(&mut self, mailbox: &mut mpsc::Receiver<Box<Command>>) -> Option<Command> {
        self.commands.pop_front().or_else(|| mailbox.try_recv().ok().map(|command| *command))
    }

    /// Consecutive appends become one write. An append with a condition has to see those before it, so it begins the
    /// next write.
    fn appends_in_a_row(
        &mut self,
        params: AppendParams,
        reply: Reply,
        mailbox: &mut mpsc::Receiver<Box<Command>>,
    ) -> Vec<Append> {
        let mut appends = Vec::new();
        self.stage(params, reply, &mut appends);
        loop {
            match self.next_command(mailbox) {
                Some(Command::Append(params, reply))
                    if params.parent_entry_id.is_none()
                        && params.expected_leaf_id.is_none()
                        && self.index.commands.is_empty() =>
                {
                    self.stage(params, reply, &mut appends);
                }
                Some(command) => {
                    self.commands.push_front(command);
                    return appends;
                }
                None => return appends,
            }
        }
    }

    fn writable(&self) -> Result<(), Failure> {
        match &self.writer {
            Writer::Ready(log) if log.access() == Access::Read => Err(Failure::Storage {
                path: self.state.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default(),
                errno: None,
                what: "the session was loaded with readOnly: true; close it, then load it without, to write to it"
                    .to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn on_urgent(&mut self, urgent: Urgent, mailbox: &mut mpsc::Receiver<Box<Command>>) {
        match urgent {
            Urgent::Cancel(which, reply) => {
                while let Ok(command) = mailbox.try_recv() {
                    self.commands.push_back(*command);
                }
                self.cancel(which.as_ref(), reply);
            }
            Urgent::Layers(layers) => self.relayer(layers),
            Urgent::TakenBack => self.end_cancelled_requests(),
            Urgent::FileTouched => self.changes.pending = true,
            Urgent::Finish => {
                if matches!(self.ending, Ending::No) {
                    self.ending = Ending::WhenIdle;
                }
            }
            Urgent::Stop => {
                self.stop_running(None);
                self.reads.stop.request();
                for (_, reply) in self.waiting.drain(..) {
                    reply.fail(&Failure::Cancelled);
                }
                if !matches!(self.ending, Ending::Now(_)) {
                    self.ending = Ending::Now(Vec::new());
                }
            }
        }
    }

    fn on_input(&mut self, input: Input) {
        match input {
            Input::Back { log, done } => self.back(log, done),
            Input::Lost => self.lost(),
            Input::Answered => self.reads.running -= 1,
            Input::Indexed(result) => self.indexed(result),
            Input::Planned { id, result } => self.planned(&id, result),
            Input::Told { id, step } => self.told(&id, step),
            Input::Drafted { id, result } => self.drafted(&id, result),
            Input::Counted => {
                self.counting = false;
                self.count();
                if self.work.is_none() {
                    self.tell_usage(self.state.usage());
                }
            }
        }
    }

    /// Counts the estimated entries of the context in the background.
    fn count(&mut self) {
        let wanted = self.state.wanted_estimator();
        if self.counting || self.state.history().is_asleep() || self.state.estimator() == wanted {
            return;
        }
        let path = self.state.path();
        let uncounted = |entry: &&Arc<Entry>| entry.tokens_known(wanted).is_none();
        let entries: Vec<Arc<Entry>> = path[path.first_kept()..].iter().filter(uncounted).cloned().collect();
        if entries.is_empty() {
            return self.state.settle_estimator();
        }
        self.counting = true;
        let (turn, inputs) = (self.idle.turn_to_count(), self.inputs.clone());
        tokio::spawn(async move {
            // One session at a time: counting takes a core, and answers take the other.
            let turn = turn.await;
            let counted = tokio::task::spawn_blocking(move || {
                tokens::load();
                entries.iter().for_each(|entry| entry.count());
                drop(turn);
            });
            let _ = counted.await;
            let _ = inputs.send(Box::new(Input::Counted));
        });
    }

    /// Runs a read on the blocking pool. The read answers its request.
    fn spawn_read(&mut self, work: impl FnOnce() + Send + 'static) {
        self.reads.running += 1;
        self.spawn(move || {
            let _ = catch_unwind(AssertUnwindSafe(work));
            Input::Answered
        });
    }

    /// Runs work on the blocking pool; its result comes back as an input.
    fn spawn(&self, work: impl FnOnce() -> Input + Send + 'static) {
        let inputs = self.inputs.clone();
        tokio::task::spawn_blocking(move || {
            // The session is gone only when the daemon ends. Nothing waits for the result then.
            let _ = inputs.send(Box::new(work()));
        });
    }
}
