//! The shell of a session: the one task that feeds its core and performs the effects.
//!
//! Requests arrive through a mailbox, results of work as messages, and cancels bypass both. The task waits for nothing but
//! the next of these. Work that takes longer than a few milliseconds (opening, planning, summarizing, writing) runs on
//! the blocking pool, and counting in a thread of its own.

mod background;
mod reads;

use super::{
    core::{Core, Input, Moment, Over},
    effects::{Answer, Effects, IdleTurn, Read, Sent, Ticket, TicketNumber, Turning, world::World},
    forking::Forking,
    founding::{Founding, Told},
    handle::{CancelReply, HandOver, Inbox, Mail, SharedGlance, Urgent},
    idle_turn::Turn,
    jobs::{self, DraftOrder, Job},
    log_work::{LogDone, LogFacts, LogWork},
    open::{Form, Opened},
    operation::listed::Listed,
    recording::{End, Given, Request, live::Recording},
    shared::Shared,
    source::{self, SourceOrder},
};
use crate::{
    ask::request::Origin,
    clock,
    conversation::{entry::Entry, tokens},
    ids::{OperationId, SessionId},
    log::{Log, Unfinished, memory::Ephemeral, sealed::Blocking},
    models::learned::Change,
    protocol::{
        errors::Failure,
        events::Event,
        types::{Status, StatusAnswer, SubscribeAnswer, SubscribeParams, Subscription},
    },
    session::{
        core::{command::Command, commands::status},
        jobs::{
            draft::DraftJob,
            pool::{self, Report},
            transfer::{TransferJob, TransferOrder},
            turn::{TurnJob, TurnOrder},
        },
    },
    wire::{
        outbox::{About, Missed, Outbox},
        rpc::Reply,
    },
};
use std::{
    collections::HashMap,
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// A message of the shell's own work.
#[expect(clippy::large_enum_variant, reason = "a few wait at a time")]
enum Message {
    Input(Input),
    /// A read was answered; with the answer, where a recording needs it.
    Answered(TicketNumber, Option<Given>),
    /// The log is back. No result: its work ended in a panic.
    Log(Box<dyn Log>, Option<LogDone>),
    /// The turn of the session for idle maintenance has come.
    IdleTurn(OwnedSemaphorePermit),
}

/// A request that waits for its answer.
enum Waiting {
    Reply(Reply),
    Cancel(CancelReply),
    HandOver(HandOver, Reply),
}

impl Waiting {
    /// The request, where requests are kept.
    fn request(&self) -> Option<Request> {
        let kept = match self {
            Self::Reply(reply) | Self::HandOver(_, reply) => reply.request(),
            Self::Cancel(reply) => reply.request(),
        };
        kept.map(Request::from)
    }
}

impl Answer {
    /// Sends it.
    pub(super) fn send(self, reply: Reply) {
        match self {
            Self::Result(result) => reply.ok(&result),
            Self::Pieces(pieces) => reply.pieces(pieces),
            Self::Failed(failure) => reply.fail(&failure),
        }
    }
}

/// A panic in the core. The session cannot go on.
struct Defect;

/// The parts of the shell that perform effects.
struct Shell {
    session: SessionId,
    cwd: String,
    /// `None` while work on the log runs.
    log: Option<Box<dyn Log>>,
    /// The list in its lock.
    listed: Option<Listed>,
    effects: Effects,
    requests: HashMap<TicketNumber, Waiting>,
    next_ticket: TicketNumber,
    outbox: Arc<Outbox>,
    glance: SharedGlance,
    shared: Shared,
    /// Bytes that this session keeps in memory.
    share: u64,
    /// The version of the learned windows that the core knows.
    windows: u64,
    /// The version of the registrations that the core knows.
    hooks: u64,
    messages: mpsc::UnboundedSender<Message>,
    urgent: mpsc::UnboundedSender<Box<Urgent>>,
    recording: Option<Box<Recording>>,
    turn: Turn,
}

/// Runs a session until it is closed.
pub async fn run(mut opened: Opened, form: Form, inbox: Inbox, outbox: Arc<Outbox>) {
    let (messages, mut results) = mpsc::unbounded_channel();
    let Inbox { mut mailbox, mut urgent, urgent_sender, shared, glance } = inbox;
    let session = opened.state.id.clone();
    tracing::info!(
        %session,
        ?form,
        access = ?opened.log.access(),
        context_tokens = opened.state.usage().context_tokens,
        left_behind = opened.left_behind.len(),
        "session opened"
    );
    // Opening a session subscribes to its events.
    outbox.wants(&session, true);
    let (id, cwd) = (session.clone(), opened.state.cwd().to_owned());
    let log = std::mem::replace(&mut opened.log, Box::new(Ephemeral));
    let facts = LogFacts::of(&*log);
    let mut shell = Shell {
        session,
        cwd,
        listed: log.register().map(|register| Listed::new(register, &opened.left_behind)),
        log: Some(log),
        effects: Effects::default(),
        requests: HashMap::new(),
        next_ticket: 0,
        outbox,
        glance,
        shared,
        share: 0,
        // Windows may have been learned while the session was opened.
        windows: 0,
        hooks: 0,
        messages,
        urgent: urgent_sender,
        recording: None,
        turn: Turn::No,
    };
    let (seed, at) = (seed(), shell.moment());
    if let Some(recorder) = shell.shared.recorder.clone() {
        let recording = Recording::begin(recorder, &opened, form, &facts, seed, &at);
        shell.log = shell.log.take().map(|log| recording.tap(log, opened.state.file.as_deref()));
        shell.recording = Some(Box::new(recording));
    }
    shell.glance.set_percent(opened.state.usage().percent);
    let mut core = Core::new(opened.state, opened.left_behind, facts, seed, &at);
    shell.effects = core.effects().clone();
    shell.perform();
    shell.look(&core);
    let ended = loop {
        match core.over() {
            Over::Yes => break Ok(()),
            Over::WithoutCommands if mailbox.is_empty() => break Ok(()),
            Over::WithoutCommands | Over::No => {}
        }
        // One input at a time, so that a cancel waits after at most one.
        let fed = if let Ok(urgent) = urgent.try_recv() {
            shell.on_urgent(&mut core, *urgent, &mut mailbox)
        } else if let Ok(message) = results.try_recv() {
            shell.on_message(&mut core, message)
        } else if core.takes_commands()
            && let Ok(mail) = mailbox.try_recv()
        {
            shell.deliver(&mut core, *mail)
        } else if core.is_due() {
            let fed = shell.feed(&mut core, Input::Turn);
            tokio::task::yield_now().await;
            fed
        } else {
            let wake_at = core.wake_at(shell.awake_elsewhere());
            tokio::select! { biased;
                Some(urgent) = urgent.recv() => shell.on_urgent(&mut core, *urgent, &mut mailbox),
                Some(message) = results.recv() => shell.on_message(&mut core, message),
                Some(mail) = mailbox.recv(), if core.takes_commands() => shell.deliver(&mut core, *mail),
                () = until(wake_at) => shell.feed(&mut core, Input::Tick),
                else => break Ok(()),
            }
        };
        if let Err(defect) = fed {
            break Err(defect);
        }
    };
    mailbox.close();
    tracing::info!(session = %id, "session closed");
    if let Err(Defect) = ended {
        tracing::error!(session = %id, "a defect of abridged ended the session");
        shell.record_end(End::Defect);
        // Dropping the core ends its operations and answers its requests.
        drop(core);
        return shell.perform();
    }
    while let Ok(mail) = mailbox.try_recv() {
        let _ = shell.deliver(&mut core, *mail);
    }
    shell.record_end(End::Closed);
    if form == Form::Ephemeral {
        // Nothing opens it again.
        shell.shared.hooks.forget(&id, shell.shared.hooks.own(&id).as_ref());
    }
    let tickets = core.end();
    shell.perform();
    if let Some(listed) = &shell.listed {
        listed.settle();
    }
    // Closes the file, and waits for a store.
    let log = shell.log.take();
    let _ = tokio::task::spawn_blocking(move || drop(log)).await;
    for ticket in tickets {
        ticket.ok(&());
    }
    shell.perform();
}

/// A seed for the ids of a session.
#[expect(clippy::disallowed_methods, reason = "ids of sessions are random")]
fn seed() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0
}

/// Waits for a time; forever without one.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

impl Shell {
    #[expect(clippy::disallowed_methods, reason = "the core is given the time")]
    fn moment(&self) -> Moment {
        Moment {
            now: Instant::now(),
            wall: clock::now(),
            awake_elsewhere: self.awake_elsewhere(),
            tokenizer: tokens::ready(),
        }
    }

    fn awake_elsewhere(&self) -> u64 {
        self.shared.awake.load(Ordering::Relaxed).saturating_sub(self.share)
    }

    /// Gives an input to the core and performs the effects.
    fn feed(&mut self, core: &mut Core, input: Input) -> Result<(), Defect> {
        let windows = &self.shared.access.windows;
        let version = windows.version();
        if version != self.windows {
            self.windows = version;
            let learned = windows.learned();
            self.handle(core, Input::Windows(learned))?;
        }
        let version = self.shared.hooks.version();
        if version != self.hooks {
            self.hooks = version;
            let hooks = self.shared.hooks.of(&self.session);
            if hooks != *core.hooks() {
                self.handle(core, Input::Hooks(hooks))?;
            }
        }
        self.handle(core, input)
    }

    fn handle(&mut self, core: &mut Core, input: Input) -> Result<(), Defect> {
        let at = self.moment();
        if let Some(recording) = &mut self.recording {
            let request = match &input {
                Input::Command(_, ticket) | Input::Cancel(_, ticket) => self.requests.get(&ticket.number()),
                _ => None,
            };
            recording.input(&at, &input, request.and_then(Waiting::request));
        }
        let handled = catch_unwind(AssertUnwindSafe(|| core.on(&at, input)));
        self.perform();
        self.look(core);
        handled.map_err(|_| Defect)
    }

    /// Lets others see the number of entries.
    fn look(&self, core: &Core) {
        self.glance.set_entry_count(core.state().history().entry_count());
    }

    fn on_urgent(
        &mut self,
        core: &mut Core,
        urgent: Urgent,
        mailbox: &mut mpsc::Receiver<Box<Mail>>,
    ) -> Result<(), Defect> {
        match urgent {
            Urgent::Cancel(which, reply) => {
                // A cancel finds the compactions that wait.
                while let Ok(mail) = mailbox.try_recv() {
                    self.deliver(core, *mail)?;
                }
                let ticket = self.ticket(Waiting::Cancel(reply), Sent::Alone);
                self.feed(core, Input::Cancel(which, ticket))
            }
            Urgent::Layers(layers) => self.feed(core, Input::Layers(layers)),
            Urgent::RequestCancelled(request) if self.requests.contains_key(&request) => {
                self.feed(core, Input::RequestCancelled(request))
            }
            Urgent::RequestCancelled(_) => Ok(()),
            Urgent::FileTouched => self.feed(core, Input::FileTouched),
            Urgent::Look(look) => {
                look(core.state());
                Ok(())
            }
            Urgent::Finish => self.feed(core, Input::Finish),
            Urgent::Stop => self.feed(core, Input::Stop),
        }
    }

    fn on_message(&mut self, core: &mut Core, message: Message) -> Result<(), Defect> {
        match message {
            Message::Input(input) => self.feed(core, input),
            Message::Answered(ticket, answer) => {
                if let Some(recording) = &mut self.recording {
                    recording.answered(ticket, answer);
                }
                self.feed(core, Input::Answered)
            }
            Message::Log(log, done) => {
                let facts = LogFacts::of(&*log);
                self.log = Some(log);
                self.feed(core, Input::Log(done, facts))
            }
            Message::IdleTurn(permit) => {
                let stall = Duration::from_secs(core.state().settings().settings.compaction.stall_seconds);
                self.turn = Turn::take(permit, stall);
                self.feed(core, Input::IdleTurn(IdleTurn::Comes))
            }
        }
    }

    /// Gives a request to the core.
    #[expect(clippy::disallowed_methods, reason = "a path is compared as the disk has it")]
    fn deliver(&mut self, core: &mut Core, mail: Mail) -> Result<(), Defect> {
        let (command, ticket) = match mail {
            Mail::Command(command, reply) => (command, self.ticket_for(reply)),
            Mail::Describe(params, reply) => {
                let asked = params.path.as_ref().and_then(|path| std::path::Path::new(path).canonicalize().ok());
                if let Some(recording) = &mut self.recording {
                    recording.asks_for(asked.clone());
                }
                let describe =
                    move |core: &mut Core, ticket: Ticket| ticket.with(status::describe(core, *params, asked));
                (Command::with(describe), self.ticket_for(reply))
            }
            Mail::HandOver(hand_over, reply) => {
                (Command::HandOver, self.ticket(Waiting::HandOver(hand_over, reply), Sent::Alone))
            }
            Mail::Leave => {
                self.next_ticket += 1;
                (Command::Close, self.effects.ticket(self.next_ticket, Sent::Alone))
            }
        };
        self.feed(core, Input::Command(command, ticket))
    }

    /// A ticket for a request. The core learns when the client cancels it.
    fn ticket_for(&mut self, reply: Reply) -> Ticket {
        let sent = if reply.in_batch() { Sent::InBatch } else { Sent::Alone };
        let (number, urgent) = (self.next_ticket + 1, self.urgent.clone());
        reply.on_cancel(move || drop(urgent.send(Box::new(Urgent::RequestCancelled(number)))));
        self.ticket(Waiting::Reply(reply), sent)
    }

    fn ticket(&mut self, waiting: Waiting, sent: Sent) -> Ticket {
        self.next_ticket += 1;
        self.requests.insert(self.next_ticket, waiting);
        self.effects.ticket(self.next_ticket, sent)
    }

    /// Performs the effects, in their order.
    fn perform(&mut self) {
        for effect in self.effects.take() {
            let Ok(()) = effect.perform(self);
        }
    }

    fn count(&self, entries: Vec<Arc<Entry>>) {
        let (turn, messages) = (self.shared.counting.clone(), self.messages.clone());
        tokio::spawn(async move {
            // One session at a time: counting takes a core, and answers take the other.
            let turn = turn.acquire_owned().await;
            let counted = background::run("abridged-count", move || {
                tokens::load();
                entries.iter().for_each(|entry| entry.count());
                drop(turn);
            });
            if !counted.await {
                tracing::error!("entries were not counted; their estimates stand");
            }
            send(&messages, Message::Input(Input::Counted));
        });
    }

    /// Looks for another session.
    fn source(&self, SourceOrder { id, from }: SourceOrder) {
        let messages = self.messages.clone();
        let told: source::Told = Box::new(move |result| send(&messages, Message::Input(Input::Sourced(id, result))));
        match self.shared.sources.get() {
            Some(finder) => finder(from, told),
            None => told(Err(Failure::no_session(from.as_str()))),
        }
    }

    /// Makes a session beside this one.
    fn found(&self, id: OperationId, founding: Founding) {
        let messages = self.messages.clone();
        let told: Told = Box::new(move |result| send(&messages, Message::Input(Input::Founded(id, result))));
        match self.shared.founder.get() {
            Some(founder) => founder(founding, told),
            None => told(Err(Failure::Internal("no daemon makes sessions here".to_owned()).into())),
        }
    }

    fn draft(&self, order: DraftOrder) {
        let id = order.id.clone();
        let job = DraftJob {
            session: self.session.clone(),
            order,
            access: self.shared.access.clone(),
            may_block: Some(Blocking::is_allowed_here),
        };
        let messages = self.messages.clone();
        pool::spawn(job, move |report| {
            let input = match report {
                Report::Step(step) => Input::Reported(id.clone(), step),
                Report::Made(result) => Input::Drafted(id.clone(), result),
            };
            send(&messages, Message::Input(input));
        });
    }

    fn transfer(&self, order: TransferOrder) {
        let id = order.id.clone();
        let origin = Origin { session: self.session.clone(), operation: id.clone(), trigger: order.trigger() };
        let job =
            TransferJob { origin, order, access: self.shared.access.clone(), may_block: Blocking::is_allowed_here };
        let messages = self.messages.clone();
        pool::spawn_transfer(job, move |report| {
            let input = match report {
                Report::Step(step) => Input::Reported(id.clone(), step),
                Report::Made(result) => Input::Transferred(id.clone(), result),
            };
            send(&messages, Message::Input(input));
        });
    }

    fn run_turn(&self, order: TurnOrder) {
        let (id, session) = (order.id().clone(), self.session.clone());
        let job = TurnJob { session, order, access: self.shared.access.clone(), may_block: Blocking::is_allowed_here };
        let messages = self.messages.clone();
        pool::spawn_turn(job, move |report| send(&messages, Message::Input(Input::Turned(id.clone(), report))));
    }

    /// Asks for the turn of this session for idle maintenance.
    fn ask_for_turn(&mut self) {
        let (all, messages) = (self.shared.idling.clone(), self.messages.clone());
        if let Ok(permit) = all.clone().try_acquire_owned() {
            return send(&messages, Message::IdleTurn(permit));
        }
        self.turn = Turn::wait(all, move |permit| send(&messages, Message::IdleTurn(permit)));
        send(&self.messages, Message::Input(Input::IdleTurn(IdleTurn::Waits)));
    }

    fn record_end(&self, end: End) {
        if let Some(recording) = &self.recording {
            recording.ended(end);
        }
    }

    /// Runs work on the blocking pool. Its result comes back as an input.
    fn spawn(&self, work: impl FnOnce() -> Input + Send + 'static) {
        let messages = self.messages.clone();
        tokio::task::spawn_blocking(move || send(&messages, Message::Input(work())));
    }
}

impl World for Shell {
    type Broken = Infallible;

    fn record(&mut self, operations: Vec<Unfinished>) {
        if let Some(listed) = &self.listed {
            listed.record(operations, &self.outbox);
        }
    }

    fn publish(&mut self, status: Status) {
        self.glance.set_status(status);
    }

    fn emit(&mut self, about: About, event: Event) {
        if let Event::UsageUpdated { usage } = &event {
            self.glance.set_percent(usage.percent);
        }
        self.outbox.event(&self.session, &about, &event);
    }

    fn answer(&mut self, request: TicketNumber, answer: Answer) {
        match self.requests.remove(&request) {
            Some(Waiting::Reply(reply) | Waiting::HandOver(_, reply)) => answer.send(reply),
            Some(Waiting::Cancel(reply)) => reply.answer(answer),
            // A close that the daemon decided has no answer.
            None => {}
        }
    }

    fn work_on_log(&mut self, work: LogWork) -> Result<(), Infallible> {
        let Some(mut log) = self.log.take() else { return Ok(()) };
        let messages = self.messages.clone();
        // Most changes of the file are the session's own writes, and cost no thread.
        if matches!(work, LogWork::CatchUp(..)) && !log.may_have_grown() {
            let done = work.run(&mut *log, &Blocking::is_allowed_here());
            send(&messages, Message::Log(log, Some(done)));
            return Ok(());
        }
        tokio::task::spawn_blocking(move || {
            let done = catch_unwind(AssertUnwindSafe(|| work.run(&mut *log, &Blocking::is_allowed_here()))).ok();
            // Its lock still takes the records of ends.
            send(&messages, Message::Log(log, done));
        });
        Ok(())
    }

    fn read(&mut self, request: TicketNumber, read: Read) {
        self.run_read(request, read);
    }

    fn start(&mut self, job: Job) {
        match job {
            Job::Count(entries) => self.count(entries),
            Job::Index(work, stop) => {
                self.spawn(move || Input::Indexed(jobs::index(work, &stop, &Blocking::is_allowed_here())));
            }
            Job::Plan(order) => {
                let access = self.shared.access.clone();
                self.spawn(move || Input::Planned(order.id.clone(), jobs::plan(order, &access)));
            }
            Job::Draft(order) => self.draft(order),
            Job::Transfer(order) => self.transfer(order),
            Job::Turn(order) => self.run_turn(order),
            Job::Source(order) => self.source(order),
            Job::Found(id, founding) => self.found(id, *founding),
        }
    }

    fn teach(&mut self, change: Change) {
        self.shared.access.windows.teach(change);
    }

    fn share(&mut self, bytes: u64) {
        let all = &self.shared.awake;
        all.fetch_add(bytes, Ordering::Relaxed);
        all.fetch_sub(self.share, Ordering::Relaxed);
        self.share = bytes;
    }

    /// Subscribes and answers. The session alone makes its events, so none comes between the answer and the missed events.
    fn subscribe(&mut self, request: TicketNumber, params: SubscribeParams, snapshot: StatusAnswer) {
        let (outbox, session) = (self.outbox.clone(), self.session.clone());
        outbox.wants(&session, true);
        let missed = params.after.as_ref().map(|seen| outbox.missed(&session, &seen.epoch, seen.seq));
        let (status, replayed) = match missed {
            Some(Missed::Kept(count)) => (Subscription::Ok, count),
            Some(Missed::Forgotten) => (Subscription::Expired, 0),
            None => (Subscription::Ok, 0),
        };
        let answer = SubscribeAnswer {
            epoch: outbox.epoch().to_owned(),
            seq: outbox.last_seq(&session),
            status,
            replayed,
            snapshot: (!matches!(missed, Some(Missed::Kept(_)))).then_some(snapshot),
        };
        self.answer(request, Answer::ok(&answer));
        if let (Some(Missed::Kept(_)), Some(seen)) = (missed, params.after) {
            outbox.replay(&session, seen.seq);
        }
    }

    fn unsubscribe(&mut self, request: TicketNumber) {
        self.outbox.wants(&self.session, false);
        self.answer(request, Answer::ok(&()));
    }

    fn hand_over(&mut self, request: TicketNumber) {
        if let Some(Waiting::HandOver(hand_over, reply)) = self.requests.remove(&request) {
            hand_over(&self.cwd, reply);
        }
    }

    /// Hands a fork over to the daemon.
    fn fork(&mut self, request: TicketNumber, forking: Forking) {
        let Some(Waiting::Reply(reply)) = self.requests.remove(&request) else { return };
        match self.shared.forker.get() {
            Some(forker) => forker(forking, reply),
            None => reply.fail(&Failure::Internal("no daemon makes forks here".to_owned())),
        }
    }

    fn turn(&mut self, turning: Turning) {
        match turning {
            Turning::Ask => self.ask_for_turn(),
            Turning::Leave => self.turn = Turn::No,
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.share(0);
    }
}

/// Sends a message to the session. The session is gone only when the daemon ends. Nothing waits for the result then.
fn send(messages: &mpsc::UnboundedSender<Message>, message: Message) {
    let _ = messages.send(message);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ask::{access::ModelAccess, routes::Routes},
        ids::EntryId,
        log::{Access, Appended, Grown, Register, Stats, Unfinished, error::StoreError, store::home::Home},
        models::windows::Windows,
        protocol::SessionCompact,
        session::{
            core::{command::CommandMethod as _, held::messages},
            handle, open,
        },
        settings::Layers,
        wire::{caller::Caller, rpc::Service, transport::Chosen},
    };
    use serde_json::{Value, json};
    use std::{fs, sync::Mutex};

    /// The log of a file. Its appends panic.
    #[derive(Debug)]
    struct Panicking {
        log: Box<dyn Log>,
        /// The numbers of operations that the lock was given.
        records: Arc<Mutex<Vec<usize>>>,
    }

    /// The register of the lock of that file.
    #[derive(Debug)]
    struct Counting {
        register: Arc<dyn Register>,
        records: Arc<Mutex<Vec<usize>>>,
    }

    impl Register for Counting {
        fn record(&self, operations: Vec<Unfinished>) {
            self.records.lock().expect("a list").push(operations.len());
            self.register.record(operations);
        }
    }

    impl Log for Panicking {
        fn access(&self) -> Access {
            self.log.access()
        }

        fn append(&mut self, _: &[String], _: Option<&EntryId>) -> Result<Appended, StoreError> {
            panic!("an append of a test")
        }

        fn catch_up(&mut self, leaf: Option<&EntryId>) -> Result<Grown, StoreError> {
            self.log.catch_up(leaf)
        }

        fn may_have_grown(&self) -> bool {
            self.log.may_have_grown()
        }

        fn end(&self) -> u64 {
            self.log.end()
        }

        fn register(&self) -> Option<Arc<dyn Register>> {
            Some(Arc::new(Counting { register: self.log.register()?, records: self.records.clone() }))
        }

        fn stats(&self) -> Stats {
            self.log.stats()
        }
    }

    #[tokio::test]
    async fn a_log_whose_append_panicked_records_the_end_of_its_compaction() {
        let home = tempfile::tempdir().expect("a folder");
        let file = home.path().join("session.jsonl");
        let header = json!({"type": "session", "version": 3, "id": "held", "timestamp": "2026-01-01T00:00:00.000Z",
            "cwd": "/"});
        let lines: Vec<String> = [header.to_string()].into_iter().chain(messages()).collect();
        fs::write(&file, format!("{}\n", lines.join("\n"))).expect("a file");
        let params = serde_json::from_value(json!({"path": file})).expect("params");
        let sessions = Home::Folder(home.path().to_owned());
        let mut opened = open::load(&file, params, &sessions, &Layers::of(Vec::new()), &Blocking::is_allowed_here())
            .unwrap_or_else(|failure| unreachable!("it opens: {failure}"));
        let records = Arc::new(Mutex::new(Vec::new()));
        opened.log = Box::new(Panicking { log: opened.log, records: records.clone() });

        let outbox = Arc::new(Outbox::new());
        let caller = Arc::new(Caller::new(outbox.clone()));
        let access = ModelAccess::of(Routes::new(caller.clone()), Windows::in_memory());
        let (handle, inbox) = handle::mailbox(Shared::new(access));
        let mut service = Service::new(Arc::new(handle), outbox.clone(), caller, |_| Ok(()));
        service.method::<SessionCompact>(|handle, params, reply| {
            let id = params.session_id.clone();
            handle.send(&id, Mail::Command(SessionCompact::command(params), reply));
        });
        let params = json!({"sessionId": "held", "keepRecentTokens": 500, "method": "extractive", "wait": true});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "session/compact", "params": params});
        service.frame(request.to_string().as_bytes());
        run(opened, Form::Loaded, inbox, outbox.clone()).await;
        // Also where the client has not read the end: the session was closed, and the lock is free.
        let mut records = std::mem::take(&mut *records.lock().expect("a list"));
        records.dedup();
        assert_eq!(records, [1, 0], "its start, and its end behind the panic");

        outbox.close();
        let mut written = Vec::new();
        outbox.write_to(&mut written, &Chosen::default());
        let frames = String::from_utf8(written).expect("text");
        let frames = frames.lines().map(|frame| serde_json::from_str::<Value>(frame).expect("JSON"));
        let answers: Vec<Value> = frames.filter(|frame| frame["id"] == 1).collect();
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0]["result"]["outcome"], "failed");
    }
}
