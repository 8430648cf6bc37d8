//! An open session in a world: its loop, and its effects.

use super::{World, tampering, trace};
use crate::{
    ask::clock::{Clock as _, after},
    conversation::{entry::Entry, tokens},
    ids::OperationId,
    log::{
        Access, Log, Register,
        error::StoreError,
        history::{History, library::Indexing},
        memory::Ephemeral,
        sealed::Blocking,
        store::memory::Database,
    },
    protocol::{errors::Failure, types::CancelAnswer},
    session::{
        core::{Core, Input, Over, command::Command},
        effects::{Answer, Effect, Effects, IdleTurn, Read, Sent, TicketNumber},
        founding::Founding,
        hooks::Hooks,
        jobs::{self, IndexBuilt, PlanOrder},
        log_work::{LogDone, LogFacts, LogWork},
        open::Opened,
        state::Capabilities,
        state::{SessionData, State},
        stop::Stop,
    },
    settings::{Layers, trust::Trust},
    simulator::{
        action::{PanicAt, Rights},
        observer::{Clocks, Violation},
        setup,
        tasks::Tasks,
    },
};
use std::{
    any::Any,
    collections::{BTreeMap, HashSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// An open session.
pub struct Life {
    core: Core,
    effects: Effects,
    pub(super) log: Option<Box<dyn Log>>,
    /// The register of its lock.
    pub(super) register: Option<Arc<dyn Register>>,
    /// Messages that bypass the mailbox.
    pub urgent: VecDeque<Urgent>,
    /// Results that have arrived.
    pub(super) messages: VecDeque<Message>,
    /// Requests that wait outside of the core.
    pub mailbox: VecDeque<Mail>,
    /// Work and results by their time.
    pub(super) due: BTreeMap<(Instant, u64), Due>,
    pub(super) next_due: u64,
    /// Drafts in the making.
    pub(super) tasks: Tasks<()>,
    pub(super) reports: Arc<Mutex<Vec<Input>>>,
    /// The version of the learned windows that the core knows.
    windows: u64,
    /// Requests that the core has.
    pub(super) delivered: HashSet<TicketNumber>,
    /// Requests that were cancelled in the mailbox.
    cancelled: HashSet<TicketNumber>,
    pub(super) turn: Turn,
    /// The registration of hooks that the session was given last.
    hooks: Arc<Hooks>,
}

/// The turn of the session for idle maintenance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    No,
    Asked,
    Mine,
}

/// A message that bypasses the mailbox.
pub enum Urgent {
    /// `session/cancel`
    Cancel(Option<OperationId>, TicketNumber),
    /// `$/cancelRequest`
    RequestCancelled(TicketNumber),
    /// Settings below the session's own.
    Layers(Layers),
    /// The file was touched.
    FileTouched,
    /// The session ends when it is idle.
    Finish,
    /// The session ends now.
    Stop,
}

/// A request in the mailbox.
pub struct Mail {
    /// Its number.
    pub number: TicketNumber,
    /// Its command.
    pub command: Command,
    /// The way in which it was sent.
    pub sent: Sent,
}

/// A result for the core.
#[expect(clippy::large_enum_variant, reason = "a few wait at a time")]
pub(super) enum Message {
    Input(Input),
    /// The log comes back. No result: its work ended in a panic.
    Log(Box<dyn Log>, Option<LogDone>),
}

/// Work that begins, or a result that arrives, at its time.
#[expect(clippy::large_enum_variant, reason = "a few live at a time")]
pub(super) enum Due {
    Log(Box<dyn Log>, LogWork),
    Read(TicketNumber, Read),
    Index(Indexing, Stop),
    Plan(PlanOrder),
    Found(OperationId, Box<Founding>),
    Count(Vec<Arc<Entry>>),
    /// The turn for idle maintenance comes.
    Turn,
    Arrives(Message),
}

impl Life {
    /// The core.
    pub fn core(&self) -> &Core {
        &self.core
    }
}

impl World<'_> {
    /// Opens the session.
    pub(super) fn open(&mut self, rights: Rights) -> Result<(), Violation> {
        // An ephemeral session ends with its process.
        if self.surroundings.rights == Rights::Ephemeral && self.lives > 0 {
            return Ok(());
        }
        self.surroundings.rights = rights;
        let access = match rights {
            Rights::Write => Access::Write,
            Rights::Read => Access::Read,
            Rights::Ephemeral => Access::Ephemeral,
        };
        // A session is opened when its database answers. Changes of the last life may arrive later.
        self.database.iter().for_each(Database::recover);
        self.observer.opens(&self.disk, access)?;
        self.tampering.opens();
        let mut opened = self
            .opened(rights)
            .map_err(|error| Violation::of_world(format!("the session cannot be opened: {error}")))?;
        opened =
            opened.knowing(self.access.windows.learned(), self.surroundings.tokenizer, Capabilities::of(&self.access));
        let log = std::mem::replace(&mut opened.log, Box::new(Ephemeral));
        self.lives += 1;
        // No two lives make the same ids.
        let seed = self.seed.wrapping_add(1).wrapping_mul(self.lives);
        let core = Core::new(opened.state, opened.left_behind, LogFacts::of(&*log), seed, &self.moment());
        self.life = Some(Life {
            effects: core.effects().clone(),
            core,
            register: log.register(),
            log: Some(log),
            urgent: VecDeque::new(),
            messages: VecDeque::new(),
            mailbox: VecDeque::new(),
            due: BTreeMap::new(),
            next_due: 0,
            tasks: Tasks::default(),
            reports: Arc::default(),
            windows: self.access.windows.version(),
            delivered: HashSet::new(),
            cancelled: HashSet::new(),
            turn: Turn::No,
            hooks: Arc::default(),
        });
        if let Some(life) = &self.life
            && self.lives > 1
            && rights != Rights::Ephemeral
        {
            self.observer.reopened(&life.core, &self.disk)?;
        }
        self.perform()
    }

    fn opened(&self, rights: Rights) -> Result<Opened, String> {
        let layers = setup::layers(self.setup, self.surroundings.tuning);
        let state = |header, title, history| {
            let given = SessionData::default();
            State::new(header, None, title, history, given, None, &layers, Trust::Trusted)
                .map_err(|it| format!("{it:?}"))
        };
        let opened = match rights {
            Rights::Ephemeral => {
                let state = state(setup::header(), None, History::in_memory(Vec::new()))?;
                return Ok(Opened { state, log: Box::new(Ephemeral), left_behind: Vec::new() });
            }
            Rights::Write => self.disk.open(),
            Rights::Read => self.disk.open_read_only(),
        };
        let opened = opened.map_err(|error| error.to_string())?;
        let mut state = state(opened.header, opened.title, opened.history)?;
        state.repairs = opened.repairs;
        state.repairs.extend(state.invalid_settings());
        Ok(Opened { state, log: opened.log, left_behind: opened.left_behind })
    }

    /// The process is killed, and the session is opened again.
    fn crash(&mut self) -> Result<(), Violation> {
        self.disk.crash();
        self.life = None;
        self.surroundings.kill = None;
        self.surroundings.panic = None;
        self.surroundings.fails_read = false;
        self.view.open.clear();
        self.observer.crashed();
        *self.report.seen.entry("crash".to_owned()).or_default() += 1;
        self.open(self.surroundings.rights)
    }

    /// The next time at which something happens.
    pub(super) fn next_time(&self) -> Option<Instant> {
        let life = self.life.as_ref()?;
        let due = life.due.first_key_value().map(|((at, _), _)| *at);
        let tick = life.core.wake_at(self.surroundings.awake_elsewhere);
        [due, self.clock.next_alarm(), tick].into_iter().flatten().min()
    }

    /// Handles one input, if there is one without waiting. Returns whether there was.
    pub(super) fn step(&mut self) -> Result<bool, Violation> {
        self.collect()?;
        let awake_elsewhere = self.surroundings.awake_elsewhere;
        let Some(life) = &mut self.life else { return Ok(false) };
        match life.core.over() {
            Over::Yes => return self.close().map(|()| true),
            Over::WithoutCommands if life.mailbox.is_empty() => return self.close().map(|()| true),
            Over::WithoutCommands | Over::No => {}
        }
        if let Some(urgent) = life.urgent.pop_front() {
            self.on_urgent(urgent)?;
        } else if let Some(message) = life.messages.pop_front() {
            let input = match message {
                Message::Input(input) => input,
                Message::Log(log, done) => {
                    let facts = LogFacts::of(&*log);
                    life.log = Some(log);
                    Input::Log(done, facts)
                }
            };
            self.feed(input)?;
        } else if life.core.takes_commands()
            && let Some(mail) = life.mailbox.pop_front()
        {
            self.deliver(mail)?;
        } else if life.core.is_due() {
            self.feed(Input::Turn)?;
        } else if life.core.wake_at(awake_elsewhere).is_some_and(|at| at <= self.clock.now()) {
            self.feed(Input::Tick)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Runs the work whose time has come, and takes its results.
    fn collect(&mut self) -> Result<(), Violation> {
        loop {
            let now = self.clock.now();
            let Some(life) = &mut self.life else { return Ok(()) };
            life.tasks.poll();
            let reports = std::mem::take(&mut *life.reports.lock().unwrap_or_else(PoisonError::into_inner));
            life.messages.extend(reports.into_iter().map(Message::Input));
            match life.due.first_entry() {
                Some(first) if first.key().0 <= now => {
                    let due = first.remove();
                    self.work(due)?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn work(&mut self, due: Due) -> Result<(), Violation> {
        let message = match due {
            Due::Log(mut log, work) => {
                let appends = matches!(work, LogWork::Append(_) | LogWork::Undo(_));
                let done = self.work_with(&mut *log, work)?;
                // Only a torn append takes the file from its owner.
                if appends && self.surroundings.rights == Rights::Write && !self.disk.is_owned() {
                    return self.crash();
                }
                Message::Log(log, done)
            }
            Due::Read(request, read) => {
                let answer = caught(|| match read {
                    Read::Session(read) => read(&Blocking::is_allowed_here()),
                    Read::Outside(read) => read(&self.access, &Blocking::is_allowed_here()),
                    // No client of the world asks for one: it would wait for models on virtual time.
                    Read::Draft(read) => (read.answer)(Err(Failure::Cancelled)),
                })?;
                let answer = tampering::answer(request, answer, &self.view.open);
                self.answer(request, &answer)?;
                Message::Input(Input::Answered)
            }
            Due::Index(work, stop) => match jobs::index(work, &stop, &Blocking::is_allowed_here()) {
                IndexBuilt::Lost => return Err(Violation::of_world("a panic in the work on the index")),
                built => Message::Input(Input::Indexed(built)),
            },
            Due::Plan(order) => {
                let id = order.id.clone();
                Message::Input(Input::Planned(id, caught(|| jobs::plan(order, &self.access))?))
            }
            Due::Found(id, founding) => {
                let lines = founding.lines();
                let made = match self.random.below(4) {
                    0 => Err(Failure::Internal(format!("{} lines cannot be written", lines.len())).into()),
                    _ => Ok(None),
                };
                Message::Input(Input::Founded(id, made))
            }
            Due::Count(entries) => {
                tokens::load();
                self.surroundings.tokenizer = true;
                entries.iter().for_each(|entry| entry.count());
                Message::Input(Input::Counted)
            }
            Due::Turn => {
                // A session that has left the queue may get its turn all the same.
                if let Some(life) = self.life.as_mut().filter(|life| life.turn != Turn::Mine) {
                    life.turn = Turn::Mine;
                    life.messages.push_back(Message::Input(Input::IdleTurn(IdleTurn::Comes)));
                }
                return Ok(());
            }
            Due::Arrives(message) => {
                if let Some(life) = &mut self.life {
                    life.messages.push_back(message);
                }
                return Ok(());
            }
        };
        self.later(Due::Arrives(message));
        Ok(())
    }

    /// Performs work on the log. No result: it ended in a panic.
    fn work_with(&mut self, log: &mut dyn Log, work: LogWork) -> Result<Option<LogDone>, Violation> {
        let fails = &mut self.surroundings.fails_read;
        let failed = match &work {
            LogWork::Fetch(_) if std::mem::take(fails) => Some(LogDone::Fetched(Err(unreadable()))),
            LogWork::Wake(..) if std::mem::take(fails) => Some(LogDone::Woke(Err(unreadable()))),
            _ => None,
        };
        match self.surroundings.panic.take() {
            Some(PanicAt::Begin) => Ok(None),
            Some(PanicAt::End) => caught(|| work.run(log, &Blocking::is_allowed_here())).map(|_| None),
            None if failed.is_some() => Ok(failed),
            None => caught(|| work.run(log, &Blocking::is_allowed_here())).map(Some),
        }
    }

    /// Lets something happen after a random delay.
    pub(super) fn later(&mut self, due: Due) {
        let longest = match self.random.below(8) {
            0..4 => 200,
            4..6 => 3_000,
            6 => 50_000,
            _ => 1_000_000,
        };
        let at = after(self.clock.now(), Duration::from_micros(self.random.below(longest)));
        if let Some(life) = &mut self.life {
            life.next_due += 1;
            life.due.insert((at, life.next_due), due);
        }
    }

    fn on_urgent(&mut self, urgent: Urgent) -> Result<(), Violation> {
        match urgent {
            Urgent::Cancel(which, number) => {
                let lives = self.lives;
                // A cancel finds the compactions that wait.
                while let Some(mail) = self.life.as_mut().and_then(|life| life.mailbox.pop_front()) {
                    self.deliver(mail)?;
                }
                let Some(life) = self.life.as_mut().filter(|_| self.lives == lives) else { return Ok(()) };
                let ticket = life.effects.ticket(number, Sent::Alone);
                self.feed(Input::Cancel(which, ticket))
            }
            Urgent::RequestCancelled(request) => {
                let Some(life) = &mut self.life else { return Ok(()) };
                if life.mailbox.iter().any(|mail| mail.number == request) {
                    life.cancelled.insert(request);
                    return Ok(());
                }
                if !life.delivered.contains(&request) {
                    return Ok(());
                }
                self.feed(Input::RequestCancelled(request))
            }
            Urgent::Layers(layers) => self.feed(Input::Layers(layers)),
            Urgent::FileTouched => self.feed(Input::FileTouched),
            Urgent::Finish => self.feed(Input::Finish),
            Urgent::Stop => self.feed(Input::Stop),
        }
    }

    /// Gives a request to the core.
    fn deliver(&mut self, mail: Mail) -> Result<(), Violation> {
        let Some(life) = &mut self.life else { return Ok(()) };
        if life.cancelled.remove(&mail.number) {
            life.urgent.push_back(Urgent::RequestCancelled(mail.number));
        }
        life.delivered.insert(mail.number);
        let ticket = life.effects.ticket(mail.number, mail.sent);
        self.feed(Input::Command(mail.command, ticket))
    }

    /// Gives an input to the core and performs the effects.
    fn feed(&mut self, input: Input) -> Result<(), Violation> {
        let version = self.access.windows.version();
        if let Some(life) = &mut self.life
            && life.windows != version
        {
            life.windows = version;
            self.handle(Input::Windows(self.access.windows.learned()))?;
        }
        let lives = self.lives;
        if let Some(life) = &mut self.life
            && life.hooks != self.surroundings.hooks
        {
            life.hooks = self.surroundings.hooks.clone();
            self.handle(Input::Hooks(self.surroundings.hooks.clone()))?;
        }
        // The process may have died of it.
        if self.lives == lives { self.handle(input) } else { Ok(()) }
    }

    fn handle(&mut self, input: Input) -> Result<(), Violation> {
        let lives = self.lives;
        let at = self.moment();
        self.report.steps += 1;
        let timers = i64::try_from(self.clock.passed().as_millis()).unwrap_or(i64::MAX);
        let now = Clocks { day: at.wall.as_millisecond(), timers };
        self.observer.models_were_asked(self.models.count(), self.models.tokens(), self.models.aimless(), now);
        for call in self.models.take_calls() {
            self.observer.hook_is_asked(call);
        }
        self.observer.feeds(&input);
        self.tell(|| format!("  <- {}", trace::input(&input)));
        let Some(life) = &mut self.life else { return Ok(()) };
        if let Some(input) = self.tampering.input(input, &self.view.open) {
            caught(|| life.core.on(&at, input))?;
        }
        self.perform()?;
        while let Some(life) = self.life.as_mut().filter(|_| self.lives == lives)
            && let Some(input) = self.tampering.late_input()
        {
            caught(|| life.core.on(&at, input))?;
            self.perform()?;
        }
        // Each input takes its time.
        self.clock.advance(Duration::from_micros(self.random.below(300)));
        match &self.life {
            Some(life) if self.lives == lives => self.observer.after_input(&life.core, &self.disk),
            _ => Ok(()),
        }
    }

    /// Ends the session, as its shell does.
    fn close(&mut self) -> Result<(), Violation> {
        while let Some(mail) = self.life.as_mut().and_then(|life| life.mailbox.pop_front()) {
            self.deliver(mail)?;
        }
        let Some(life) = self.life.take() else { return Ok(()) };
        let Life { core, effects, log, urgent, .. } = life;
        let (tickets, lives) = (core.end(), self.lives);
        let last = self.tampering.effects(effects.take(), &self.view.open, None);
        self.perform_all(last)?;
        if self.lives != lives {
            // It was killed meanwhile.
            return Ok(());
        }
        // Closes the file.
        drop(log);
        for ticket in tickets {
            ticket.ok(&());
        }
        let last = self.tampering.effects(effects.take(), &self.view.open, None);
        self.perform_all(last)?;
        if self.lives != lives {
            return Ok(());
        }
        for urgent in urgent {
            if let Urgent::Cancel(_, number) = urgent {
                self.answer(number, &Answer::ok(&CancelAnswer { cancelled: Vec::new() }))?;
            }
        }
        self.surroundings.kill = None;
        Ok(())
    }

    /// Performs the effects in their order.
    fn perform(&mut self) -> Result<(), Violation> {
        let Some(life) = &self.life else { return Ok(()) };
        let effects = self.tampering.effects(life.effects.take(), &self.view.open, Some(&life.core));
        self.perform_all(effects)
    }

    fn perform_all(&mut self, effects: Vec<Effect>) -> Result<(), Violation> {
        for effect in effects {
            self.tell(|| format!("    -> {}", trace::effect(&effect)));
            self.observer.performed(&effect, &self.disk)?;
            self.note(&effect);
            effect.perform(self)?;
            match &mut self.surroundings.kill {
                None => {}
                Some(0) => return self.crash(),
                Some(left) => *left -= 1,
            }
        }
        Ok(())
    }

    /// Answers a request whose answer is no effect.
    fn answer(&mut self, request: TicketNumber, answer: &Answer) -> Result<(), Violation> {
        self.tell(|| format!("    => {request}: {}", trace::answer(answer)));
        self.observer.answered(request, answer, &self.disk)?;
        self.note_answer(request, answer);
        self.view.answer(request, answer);
        Ok(())
    }
}

fn unreadable() -> StoreError {
    StoreError::Changed { path: "session".into(), what: "a simulated read failed".to_owned() }
}

/// Runs code of the session. A panic is a violation.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Violation> {
    let text = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned())).unwrap_or_default()
    };
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| Violation::of_world(format!("a panic: {}", text(panic))))
}
