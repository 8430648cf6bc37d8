//! Random interleavings of requests and of the work that they start, against what the wire's order says.

use super::*;
use std::{
    cell::RefCell,
    collections::{BTreeSet, HashSet},
    rc::Rc,
};

/// The number of a request, by which its answer is found.
pub(super) type Number = usize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Ok,
    Refused,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quality {
    Good,
    /// Its settings are wrong: it opens nothing.
    Bad,
}

#[derive(Debug)]
pub(super) enum Command {
    Append(Number),
    Compact(Number),
    Close(Number),
    Describe(Number),
    Leave,
}

impl Command {
    fn number(&self) -> Option<Number> {
        match self {
            Self::Append(number) | Self::Compact(number) | Self::Close(number) | Self::Describe(number) => {
                Some(*number)
            }
            Self::Leave => None,
        }
    }
}

/// How a load finds its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    Id,
    Path,
    /// It makes the session.
    New,
}

pub(super) struct Load {
    pub(super) number: Number,
    pub(super) quality: Quality,
    pub(super) by: By,
}

/// A mailbox, and whether somebody takes from it.
pub(super) struct Mailbox {
    open: bool,
    commands: VecDeque<Command>,
    /// Commands that came when nobody took them any more. They are refused.
    late: Vec<Command>,
}

pub(super) type Mailboxes = Rc<RefCell<Vec<Mailbox>>>;

pub(super) struct Fake(pub(super) Mailboxes);

impl World for Fake {
    type Door = usize;
    type Inbox = usize;
    type Command = Command;
    type Load = Load;
    type Delete = Number;

    fn door(&self) -> (usize, usize) {
        let mut mailboxes = self.0.borrow_mut();
        mailboxes.push(Mailbox { open: true, commands: VecDeque::new(), late: Vec::new() });
        (mailboxes.len() - 1, mailboxes.len() - 1)
    }

    fn send(&self, door: &usize, _: &SessionId, command: Command) -> bool {
        let mailbox = &mut self.0.borrow_mut()[*door];
        match mailbox.open {
            true => mailbox.commands.push_back(command),
            false => mailbox.late.push(command),
        }
        mailbox.open
    }

    fn is_open(&self, door: &usize) -> bool {
        self.0.borrow()[*door].open
    }

    fn closes(&self, command: &Command) -> bool {
        matches!(command, Command::Close(_) | Command::Leave)
    }

    fn can_be_cancelled(&self, command: &Command) -> bool {
        matches!(command, Command::Compact(_))
    }

    fn knows_its_file(&self, load: &Load) -> bool {
        load.by != By::Id
    }

    fn describe(&self, load: Load) -> Option<Command> {
        Some(Command::Describe(load.number))
    }

    fn leave(&self) -> Command {
        Command::Leave
    }
}

/// Work that was started and goes on when it is chosen.
enum Task {
    Resolve { ticket: Ticket, session: usize },
    Open { session: usize, life: Life, inbox: usize, before: Option<usize>, load: Load },
    Run { session: usize, life: Life, inbox: usize },
    Delete { session: usize, life: Life, inbox: usize, before: Option<usize>, was_open: bool, number: Number },
}

/// A session as the order of the wire has it.
#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    exists: bool,
    open: bool,
}

/// Steps of a run of the model beside requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    /// Every answer is that of the wire's order. Files have two paths.
    Strict,
    /// Loads are given up on, and sessions end by themselves: every request is answered, and nothing is lost.
    Wild,
}

struct Model {
    run: Run,
    seed: u64,
    registry: Registry<Fake>,
    mailboxes: Mailboxes,
    tasks: Vec<Task>,
    ids: Vec<SessionId>,
    /// The files that are there, and the life that holds the lock of each.
    files: BTreeSet<usize>,
    locks: HashMap<usize, Life>,
    wanted: Vec<Wanted>,
    /// The answers that each request may get, and the one it got.
    may: Vec<Vec<Answer>>,
    answers: Vec<Option<Answer>>,
    /// Loads by path that are not decided, with their sessions.
    undecided: Vec<(Number, Ticket, usize)>,
    log: Vec<String>,
}

const SESSIONS: usize = 4;

/// The file of this session is outside of the data folder. A load by id does not find it.
const OUTSIDE: usize = 3;

impl Model {
    fn new(run: Run, seed: u64) -> Self {
        let mailboxes = Mailboxes::default();
        Self {
            run,
            seed: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            registry: Registry::new(Fake(mailboxes.clone())),
            mailboxes,
            tasks: Vec::new(),
            ids: (0..SESSIONS).map(|at| SessionId::from(format!("s{at}").as_str())).collect(),
            files: BTreeSet::new(),
            locks: HashMap::new(),
            wanted: vec![Wanted::default(); SESSIONS],
            may: Vec::new(),
            answers: Vec::new(),
            undecided: Vec::new(),
            log: Vec::new(),
        }
    }

    fn below(&mut self, end: usize) -> usize {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        usize::try_from(self.seed >> 33).unwrap_or_default() % end
    }

    /// A new request that may be answered so.
    fn begin(&mut self, what: &str, session: usize, expected: Answer) -> Number {
        self.may.push(vec![expected]);
        self.answers.push(None);
        self.log.push(format!("{} {what} s{session}", self.answers.len() - 1));
        self.answers.len() - 1
    }

    fn answer(&mut self, number: Number, answer: Answer) {
        self.log.push(format!("    {number} is {answer:?}"));
        let strict = self.run == Run::Strict;
        assert!(
            !strict || self.may[number].contains(&answer),
            "request {number}: {answer:?}, not {:?}",
            self.may[number]
        );
        assert_eq!(self.answers[number].replace(answer), None, "request {number} is answered twice");
    }

    fn refuse(&mut self, request: Request<Fake>) {
        let number = match request {
            Request::Command(command) => command.number(),
            Request::Load(load) => Some(load.number),
            Request::Delete(number) => Some(number),
        };
        if let Some(number) = number {
            self.answer(number, Answer::Refused);
        }
    }

    fn session_of(&self, id: &SessionId) -> usize {
        self.ids.iter().position(|it| it == id).expect("an id of ours")
    }

    fn perform(&mut self, steps: Vec<Step<Fake>>) {
        for step in steps {
            match step {
                Step::Open { id, life, inbox, before, load, .. } => {
                    let session = self.session_of(&id);
                    self.tasks.push(Task::Open { session, life, inbox, before, load });
                }
                Step::Delete { id, life, inbox, before, session: file, delete } => {
                    let (session, was_open) = (self.session_of(&id), file.is_some());
                    self.tasks.push(Task::Delete { session, life, inbox, before, was_open, number: delete });
                }
                Step::NotOpen(_, command) | Step::Failed(_, command) => self.refuse(Request::Command(command)),
                Step::TooMany(request) => self.refuse(request),
            }
        }
    }

    /// A load by path that is not decided may be overtaken by what closes or opens the session.
    fn loosen(&mut self, session: usize) {
        for (number, ticket, of) in &self.undecided {
            let likely = self.registry.pending.get(ticket).is_some_and(|pending| pending.likely.is_some());
            if *of == session && !likely {
                self.may[*number] = vec![Answer::Ok, Answer::Refused];
            }
        }
    }

    /// A request that waits for a load by path finds the session open where another load opened it meanwhile.
    fn may_find_it_open(&mut self, number: Number) {
        if !self.registry.pending.is_empty() {
            self.may[number].push(Answer::Ok);
        }
    }

    fn request(&mut self) {
        let session = self.below(SESSIONS);
        let id = self.ids[session].clone();
        let Wanted { exists, open } = self.wanted[session];
        let if_it = |is: bool| if is { Answer::Ok } else { Answer::Refused };
        let quality = if self.below(3) == 0 { Quality::Bad } else { Quality::Good };
        let opens = exists && quality == Quality::Good;
        let steps = match self.below(12) {
            0 if !exists && self.run == Run::Strict => {
                // A new session has an id that no request had before, so nothing is on its way to it.
                if self.tasks.is_empty() && self.registry.pending.is_empty() {
                    let number = self.begin("new", session, Answer::Ok);
                    self.files.insert(session);
                    self.wanted[session] = Wanted { exists: true, open: true };
                    self.registry.load(&id, Load { number, quality: Quality::Good, by: By::New })
                } else {
                    Vec::new()
                }
            }
            0 if !exists => {
                self.files.insert(session);
                self.wanted[session].exists = true;
                Vec::new()
            }
            0 | 1 => {
                let loads = open || opens && session != OUTSIDE;
                let number = self.begin(&format!("load {quality:?}"), session, if_it(loads));
                self.wanted[session].open |= loads;
                self.may_find_it_open(number);
                self.registry.load(&id, Load { number, quality, by: By::Id })
            }
            2 | 3 => {
                let loads = open || opens;
                let number = self.begin(&format!("load by path {quality:?}"), session, if_it(loads));
                self.wanted[session].open |= loads;
                let path = PathBuf::from(format!("/{}/{session}.jsonl", self.below(2)));
                let same = |ticket| self.registry.pending.get(ticket).is_some_and(|pending| pending.path == path);
                // Loads by two paths of one file are decided in any order.
                if self.undecided.iter().any(|(_, ticket, of)| *of == session && !same(ticket)) {
                    self.loosen(session);
                    self.may[number] = vec![Answer::Ok, Answer::Refused];
                }
                match self.registry.load_path(&path, Load { number, quality, by: By::Path }) {
                    Ok(Some(ticket)) => {
                        self.undecided.push((number, ticket, session));
                        self.tasks.push(Task::Resolve { ticket, session });
                    }
                    Ok(None) => {
                        let first = self.registry.pending.iter().find(|(_, pending)| pending.path == path);
                        let (ticket, _) = first.expect("a load of the same path is pending");
                        self.undecided.push((number, *ticket, session));
                    }
                    Err(load) => self.refuse(Request::Load(load)),
                }
                Vec::new()
            }
            4 | 5 => {
                let number = self.begin("close", session, if_it(open));
                self.wanted[session].open = false;
                self.loosen(session);
                self.registry.command(&id, Command::Close(number))
            }
            6 if session != OUTSIDE => {
                let number = self.begin("delete", session, if_it(exists));
                self.wanted[session] = Wanted::default();
                self.loosen(session);
                self.registry.delete(&id, number)
            }
            7 => {
                let number = self.begin("compact", session, if_it(open));
                self.may[number].push(Answer::Cancelled);
                self.may_find_it_open(number);
                self.registry.command(&id, Command::Compact(number))
            }
            8 => {
                self.log.push(format!("cancel s{session}"));
                if let Cancel::Nothing(commands) = self.registry.cancel(&id) {
                    for number in commands.iter().filter_map(Command::number) {
                        self.answer(number, Answer::Cancelled);
                    }
                }
                Vec::new()
            }
            _ => {
                let number = self.begin("append", session, if_it(open));
                self.may_find_it_open(number);
                self.registry.command(&id, Command::Append(number))
            }
        };
        self.perform(steps);
    }

    fn gone(&self, door: Option<usize>) -> bool {
        door.is_none_or(|door| !self.mailboxes.borrow()[door].open)
    }

    /// Takes some task further.
    fn work(&mut self) {
        if self.tasks.is_empty() {
            return;
        }
        let at = self.below(self.tasks.len());
        let task = self.tasks.swap_remove(at);
        match task {
            Task::Resolve { ticket, session } => {
                if self.run == Run::Wild && self.below(4) == 0 {
                    let steps = self.registry.stop_holding(ticket);
                    self.perform(steps);
                    return self.tasks.push(Task::Resolve { ticket, session });
                }
                self.undecided.retain(|(_, it, _)| *it != ticket);
                let id = self.ids[session].clone();
                let there = self.files.contains(&session);
                self.log.push(format!("    path of s{session} is decided"));
                let decided = if there { Decided::Is(&id) } else { Decided::Nothing };
                let (failed, steps) = self.registry.decide(ticket, decided);
                for load in failed {
                    self.refuse(Request::Load(load));
                }
                self.perform(steps);
            }
            Task::Open { before, .. } | Task::Delete { before, .. } if !self.gone(before) => self.tasks.push(task),
            Task::Open { session, life, inbox, load, .. } => {
                let id = self.ids[session].clone();
                let found = self.files.contains(&session) && (load.by != By::Id || session != OUTSIDE);
                if load.quality == Quality::Bad || !found {
                    self.log.push(format!("    s{session} {life:?} fails"));
                    self.answer(load.number, Answer::Refused);
                    self.mailboxes.borrow_mut()[inbox].open = false;
                    let steps = self.registry.retire(&id, life);
                    return self.perform(steps);
                }
                self.log.push(format!("    s{session} {life:?} is open"));
                let other = self.locks.insert(session, life);
                assert_eq!(other, None, "the session is locked by another life of ours");
                self.answer(load.number, Answer::Ok);
                let path = PathBuf::from(format!("/0/{session}.jsonl"));
                let steps = self.registry.opened(&id, life, Some(&path));
                self.perform(steps);
                self.tasks.push(Task::Run { session, life, inbox });
            }
            Task::Run { session, life, inbox } if self.run == Run::Wild && self.below(20) == 0 => {
                self.log.push(format!("    s{session} ends by itself"));
                self.locks.remove(&session);
                let left = std::mem::take(&mut self.mailboxes.borrow_mut()[inbox].commands);
                left.into_iter().for_each(|command| self.refuse(Request::Command(command)));
                self.end(session, life, inbox);
            }
            Task::Run { session, life, inbox } => {
                let command = self.mailboxes.borrow_mut()[inbox].commands.pop_front();
                if let Some(number) = command.as_ref().and_then(Command::number) {
                    self.answer(number, Answer::Ok);
                }
                if !matches!(command, Some(Command::Close(_) | Command::Leave)) {
                    return self.tasks.push(Task::Run { session, life, inbox });
                }
                self.locks.remove(&session);
                let left = std::mem::take(&mut self.mailboxes.borrow_mut()[inbox].commands);
                assert_eq!(left.len(), 0, "a command was sent behind a close");
                self.end(session, life, inbox);
            }
            Task::Delete { session, life, inbox, was_open, number, .. } => {
                let there = self.files.remove(&session);
                assert!(there || !was_open, "an open session has its file");
                self.answer(number, if there { Answer::Ok } else { Answer::Refused });
                self.end(session, life, inbox);
            }
        }
    }

    /// The end of a life in two parts, between which other tasks may work.
    fn end(&mut self, session: usize, life: Life, inbox: usize) {
        self.mailboxes.borrow_mut()[inbox].open = false;
        let id = self.ids[session].clone();
        for _ in 0..self.below(3) {
            self.work();
        }
        let steps = self.registry.retire(&id, life);
        self.perform(steps);
        let late = std::mem::take(&mut self.mailboxes.borrow_mut()[inbox].late);
        assert!(late.is_empty() || self.run == Run::Wild, "a command was sent to a session that ended");
        late.into_iter().for_each(|command| self.refuse(Request::Command(command)));
    }

    /// Lets everything come to its end, and looks whether nothing is left over.
    fn settle(&mut self) {
        let quiet = |task: &Task| matches!(task, Task::Run { inbox, .. } if self.mailboxes.borrow()[*inbox].commands.is_empty());
        if !self.tasks.iter().all(quiet) {
            for _ in 0..10_000 {
                self.work();
            }
        }
        for (number, answer) in self.answers.iter().enumerate() {
            assert!(answer.is_some(), "request {number} is not answered");
        }
        assert!(self.registry.held.is_empty() && self.registry.pending.is_empty() && self.registry.closed.is_empty());
        let running = self.tasks.iter().filter(|task| matches!(task, Task::Run { .. })).count();
        assert_eq!(running, self.tasks.len(), "only open sessions have work");
        assert_eq!(self.registry.doors().count(), running, "the registry has the lives that there are");
        let known: HashSet<_> = self.registry.files.values().map(|(_, life)| *life).collect();
        assert_eq!(known.len(), running, "each open session is found by its file");
        for session in 0..SESSIONS {
            let open = self.registry.door(&self.ids[session]).is_some();
            assert_eq!(
                open,
                self.locks.contains_key(&session),
                "s{session} is reachable while it is locked, and no longer"
            );
            if self.run == Run::Strict {
                assert_eq!(open, self.wanted[session].open, "s{session}");
                assert_eq!(self.files.contains(&session), self.wanted[session].exists, "s{session}");
            } else {
                self.wanted[session] = Wanted { exists: self.files.contains(&session), open };
            }
        }
    }
}

/// Prints what was asked before a failure.
struct Told<'a>(&'a mut Model, u64, Outcome);

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Unknown,
    Passed,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if self.2 == Outcome::Unknown {
            let from = self.0.log.len().saturating_sub(60);
            eprintln!("{:?}, seed {}:\n{}", self.0.run, self.1, self.0.log[from..].join("\n"));
        }
    }
}

fn run(kind: Run, seeds: u64) {
    for seed in 1..=seeds {
        let mut model = Model::new(kind, seed);
        let mut told = Told(&mut model, seed, Outcome::Unknown);
        for _ in 0..60 {
            // Bursts of requests, with more or less work between them.
            let (requests, pace) = (told.0.below(12) + 1, told.0.below(4));
            for _ in 0..requests {
                told.0.request();
                for _ in 0..told.0.below(pace + 1) {
                    told.0.work();
                }
            }
            if told.0.below(3) == 0 {
                told.0.settle();
            }
        }
        told.0.settle();
        told.2 = Outcome::Passed;
    }
}

#[test]
fn requests_are_answered_as_the_order_of_the_wire_says() {
    run(Run::Strict, 150);
}

#[test]
fn no_session_is_lost_whatever_overtakes_what() {
    run(Run::Wild, 150);
}
