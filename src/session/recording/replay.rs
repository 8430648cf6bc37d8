//! Replays the recording of a session: its core gets the same inputs at the same times, over a file in memory.

use super::{
    Clock, Content, Drafting, End, Fed, Given, Indexing, Line, Opening, Planning, Recorded, Request, VERSION,
    played::PlayedLog, requests,
};
use crate::{
    compaction::{draft::Draft, ladder},
    conversation::entry::Entry,
    ids::{EntryId, OperationId},
    log::{
        Access, Log, Unfinished,
        blobs::Blobs,
        bytes::{self, Shared},
        files::INDEXED_AT_ONCE,
        header,
        history::{History, library},
        memory::Ephemeral,
        sealed::Blocking,
        source::{Source, Tail},
    },
    models::learned::{Change, Learned},
    protocol::{
        errors::Failure,
        events::{Event, Keeping},
        types::{Status, StatusAnswer, SubscribeParams},
    },
    session::{
        core::{Core, Input, Moment, command::Command},
        effects::{Answer, Effects, Read, Sent, TicketNumber, Turning, world::World},
        forking::Forking,
        jobs::{self, DraftOrder, IndexBuilt, Job, PlanMade, PlanOrder, floor, no_model},
        log_work::{LogFacts, LogWork},
        open::{Form, Opened},
        state::{Beginning, State},
        stop::Stop,
    },
    summary::{cleaner::Cleaner, extractive::Summary, files::FileLists, made::SummaryMethod},
    wire::outbox::About,
};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    io,
    path::Path,
    sync::Arc,
    time::Instant,
};

/// A session of a recording.
#[derive(Debug)]
pub struct Session {
    /// Its beginning.
    pub opening: Opening,
    /// Its inputs.
    pub inputs: Vec<Fed>,
    /// Its end. `None` where the recording ends before.
    pub end: Option<End>,
}

/// The reason why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum Unplayable {
    /// The format is another one.
    #[error("the recording has version {0}, and this program replays version {VERSION}")]
    Version(u64),
    /// A line is not in the format.
    #[error("line {0} of the recording is invalid: {1}")]
    Line(usize, String),
    /// The beginning of a session cannot be made again.
    #[error("the session cannot be opened: {0}")]
    Opening(String),
    /// An input does not fit what came before it.
    #[error("input {0} does not fit those before it: {1}")]
    Input(usize, String),
}

/// The sessions of a recording, in the order of their openings. A last line that was cut off is left out.
///
/// # Errors
/// When the format is another one, or a line is invalid.
pub fn read(text: &str) -> Result<Vec<Session>, Unplayable> {
    let mut sessions: BTreeMap<u64, Session> = BTreeMap::new();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let invalid = |what: String| Unplayable::Line(number + 1, what);
        let parsed = match serde_json::from_str::<Line>(line) {
            Ok(parsed) => parsed,
            Err(_) if !line.ends_with('\n') => break,
            Err(error) => return Err(other_version(line).unwrap_or_else(|| invalid(error.to_string()))),
        };
        match parsed {
            Line::Opened(opening) if opening.version != VERSION => {
                return Err(Unplayable::Version(u64::from(opening.version)));
            }
            Line::Opened(opening) => {
                sessions.insert(opening.life, Session { opening: *opening, inputs: Vec::new(), end: None });
            }
            Line::Input(fed) => {
                let session = sessions.get_mut(&fed.life);
                session.ok_or_else(|| invalid("its session was not opened".to_owned()))?.inputs.push(*fed);
            }
            Line::Ended { life, end } => {
                let session = sessions.get_mut(&life);
                session.ok_or_else(|| invalid("its session was not opened".to_owned()))?.end = Some(end);
            }
        }
    }
    Ok(sessions.into_values().collect())
}

/// The error of a line in another version of the format.
fn other_version(line: &str) -> Option<Unplayable> {
    let value: Value = serde_json::from_str(line).ok()?;
    let version = value["opened"]["version"].as_u64()?;
    (version != u64::from(VERSION)).then_some(Unplayable::Version(version))
}

/// An effect of a replay.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Performed {
    /// A request was answered.
    Answer {
        /// Its ticket.
        ticket: TicketNumber,
        /// The answer.
        answer: Given,
    },
    /// An event was sent, or kept for a later subscription.
    Event {
        /// Its entry.
        entry: Option<EntryId>,
        /// Its operation.
        operation: Option<OperationId>,
        /// Its way to the client.
        reach: Reach,
        /// Type and payload.
        event: Value,
    },
    /// The open operations were recorded in the lock.
    Record(Vec<Unfinished>),
    /// The status was set.
    Publish(Status),
    /// The client was subscribed, with this snapshot.
    Subscribed {
        /// Ticket of its request.
        ticket: TicketNumber,
        /// The snapshot.
        snapshot: Value,
    },
    /// A request was handed over to the daemon.
    HandedOver(TicketNumber),
    /// The windows that were learned changed.
    Taught(Change),
    /// The number of bytes in memory was set.
    Share(u64),
}

/// The way of an event to the client. Slow reading is not replayed: a daemon drops events that wait too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The client was subscribed. The event has a number.
    Sent,
    /// The client was not subscribed. The event has a number, and a later subscription may get it.
    Kept,
    /// The client was not subscribed. The event has no number and is lost.
    Lost,
}

impl Reach {
    fn of(event: &Event, subscribed: Subscribed) -> Self {
        match (subscribed, event.keeping()) {
            (Subscribed::Yes, _) => Self::Sent,
            (Subscribed::No, Keeping::Durable) => Self::Kept,
            (Subscribed::No, _) => Self::Lost,
        }
    }
}

/// Whether the client gets the events of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subscribed {
    Yes,
    No,
}

/// The result of a replay.
#[derive(Debug)]
pub struct Replayed {
    /// The effects, in their order.
    pub performed: Vec<Performed>,
    /// The bytes of the file. `None` for an ephemeral session.
    pub file: Option<Vec<u8>>,
    /// The requests, by their tickets.
    pub requests: BTreeMap<TicketNumber, Request>,
    /// The end of the session. `None` where the recording ends before.
    pub end: Option<End>,
}

impl Replayed {
    /// A hash of all effects and of the file.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(serde_json::to_vec(&self.performed).unwrap_or_default());
        hash.update(self.file.as_deref().unwrap_or_default());
        format!("{:x}", hash.finalize())
    }

    /// The answers, by the tickets of their requests.
    #[must_use]
    pub fn answers(&self) -> BTreeMap<TicketNumber, &Given> {
        let mut answers = BTreeMap::new();
        for performed in &self.performed {
            if let Performed::Answer { ticket, answer } = performed {
                answers.insert(*ticket, answer);
            }
        }
        answers
    }
}

/// Replays a session. `files` reads the large file of a session that was recorded by its path. The times of the inputs count
/// from `start`.
///
/// # Errors
/// When the recording does not fit this program.
pub fn replay(
    session: Session,
    files: &dyn Fn(&Path) -> Result<Vec<u8>, io::Error>,
    start: Instant,
) -> Result<Replayed, Unplayable> {
    let Session { opening, inputs, end } = session;
    let mut replay = Replay::open(opening, files, start)?;
    replay.perform();
    for (number, fed) in inputs.into_iter().enumerate() {
        replay.feed(fed).map_err(|what| Unplayable::Input(number + 1, what))?;
    }
    replay.end(end);
    Ok(Replayed {
        performed: replay.performed,
        file: replay.log.and_then(|log| log.bytes()).or(replay.file),
        requests: replay.requests,
        end,
    })
}

/// A session in a replay.
struct Replay {
    core: Option<Core>,
    clock: Clock,
    log: Option<PlayedLog>,
    /// The bytes of a log that was lost.
    file: Option<Vec<u8>>,
    effects: Effects,
    performed: Vec<Performed>,
    subscribed: Subscribed,
    requests: BTreeMap<TicketNumber, Request>,
    /// Work on the log that has not come back.
    work: Option<LogWork>,
    /// Jobs that have not come back.
    index: Option<library::Indexing>,
    count: Option<Vec<Arc<Entry>>>,
    plans: HashMap<OperationId, PlanOrder>,
    drafts: HashMap<OperationId, DraftOrder>,
}

impl Replay {
    fn open(
        opening: Opening,
        files: &dyn Fn(&Path) -> Result<Vec<u8>, io::Error>,
        start: Instant,
    ) -> Result<Self, Unplayable> {
        let unopened = |what: &dyn ToString| Unplayable::Opening(what.to_string());
        let content = match &opening.content {
            Content::Bytes(bytes) => bytes.to_vec().ok_or_else(|| unopened(&"its bytes are no base64"))?,
            Content::Beginning { path, length } => {
                let mut bytes = files(path).map_err(|error| unopened(&format!("{}: {error}", path.display())))?;
                if (bytes.len() as u64) < *length {
                    return Err(unopened(&format!("{} is shorter than it was", path.display())));
                }
                bytes.truncate(usize::try_from(*length).unwrap_or(usize::MAX));
                bytes
            }
        };
        let at = Moment {
            now: start,
            wall: opening.wall.parse().map_err(|error| unopened(&error))?,
            awake_elsewhere: opening.awake_elsewhere,
            tokenizer: opening.tokenizer,
        };
        let Beginning { counts, capabilities, .. } = opening.beginning;
        let seed = opening.seed;
        let (opened, log, facts) = opened(opening, content).map_err(|error| unopened(&error))?;
        let (learned, opened) = opened;
        let Opened { state, left_behind, .. } = opened.knowing(learned, counts, capabilities);
        let core = Core::new(state, left_behind, facts, seed, &at);
        Ok(Self {
            effects: core.effects().clone(),
            core: Some(core),
            clock: Clock::new(&at),
            log: Some(log),
            file: None,
            performed: Vec::new(),
            // Opening a session subscribes to its events.
            subscribed: Subscribed::Yes,
            requests: BTreeMap::new(),
            work: None,
            index: None,
            count: None,
            plans: HashMap::new(),
            drafts: HashMap::new(),
        })
    }

    fn feed(&mut self, fed: Fed) -> Result<(), String> {
        let at = self.clock.moment(&fed).ok_or("its time of day is invalid")?;
        let input = self.input(fed.input)?;
        self.core.as_mut().ok_or("the session has ended")?.on(&at, input);
        self.perform();
        Ok(())
    }

    /// The input that was recorded, with the results of work made again.
    fn input(&mut self, recorded: Recorded) -> Result<Input, String> {
        let ticket = |number| self.effects.ticket(number, Sent::Alone);
        Ok(match recorded {
            Recorded::Command { ticket: number, sent, request, asked } => {
                let command = requests::command(&request, asked).map_err(|error| error.to_string())?;
                self.requests.insert(number, request);
                Input::Command(command, self.effects.ticket(number, sent))
            }
            Recorded::HandOver { ticket: number, request } => {
                let ticket = ticket(number);
                self.requests.extend(request.map(|request| (number, request)));
                Input::Command(Command::HandOver, ticket)
            }
            Recorded::Leave { ticket: number } => Input::Command(Command::Close, ticket(number)),
            Recorded::Cancel { ticket: number, operation, request } => {
                let ticket = ticket(number);
                self.requests.extend(request.map(|request| (number, request)));
                Input::Cancel(operation, ticket)
            }
            Recorded::RequestCancelled(number) => Input::RequestCancelled(number),
            Recorded::Layers(layers) => Input::Layers(layers),
            Recorded::Windows(windows) => Input::Windows(windows),
            Recorded::Hooks(hooks) => Input::Hooks(Arc::new(hooks)),
            Recorded::FileTouched => Input::FileTouched,
            Recorded::Finish => Input::Finish,
            Recorded::Stop => Input::Stop,
            Recorded::Turn => Input::Turn,
            Recorded::Tick => Input::Tick,
            Recorded::Log { call, unread } => {
                let (Some(work), Some(log)) = (self.work.take(), &mut self.log) else {
                    return Err("the log was not out".to_owned());
                };
                log.next(call);
                let done = work.run(log.as_log(), &Blocking::is_allowed_here());
                let done = match unread {
                    Some(failing) => failing.in_place_of(done),
                    None => done,
                };
                Input::Log(Some(done), LogFacts::of(log.as_log()))
            }
            Recorded::LogLost => {
                self.work = None;
                self.file = self.log.take().and_then(|log| log.bytes());
                Input::Log(None, LogFacts::of(&Ephemeral))
            }
            Recorded::Answered { ticket, answer } => {
                if let Some(answer) = answer {
                    self.performed.push(Performed::Answer { ticket, answer });
                }
                Input::Answered
            }
            Recorded::Indexed(indexing) => {
                let work = self.index.take().ok_or("no index was to be built")?;
                Input::Indexed(match indexing {
                    Indexing::Made => jobs::index(work, &Stop::default(), &Blocking::is_allowed_here()),
                    Indexing::Stopped => IndexBuilt::Stopped,
                    Indexing::Failed(failing) => IndexBuilt::Failed(failing.into()),
                    Indexing::Lost => IndexBuilt::Lost,
                })
            }
            Recorded::Planned(id, planning) => {
                let order = self.plans.remove(&id).ok_or("nothing was to be planned")?;
                Input::Planned(id, planned(order, planning))
            }
            Recorded::Reported(id, step) => Input::Reported(id, step),
            Recorded::Drafted(id, drafting, lost) => {
                let order = self.drafts.remove(&id).ok_or("nothing was to be drafted")?;
                let draft = drafted(order, drafting).map(ladder::completed);
                Input::Drafted(id, draft.map(|draft| Draft { lost, ..draft }))
            }
            Recorded::Transferred(id, transferring) => Input::Transferred(id, transferring.into()),
            Recorded::Turned(id, report) => Input::Turned(id, report),
            Recorded::Sourced(id, sourcing) => Input::Sourced(id, sourcing.into()),
            Recorded::Founded(id, failed, file) => Input::Founded(id, failed.map_or(Ok(file), Err)),
            Recorded::IdleTurn(turn) => Input::IdleTurn(turn),
            Recorded::Counted => {
                let entries = self.count.take().ok_or("nothing was to be counted")?;
                entries.iter().for_each(|entry| entry.count());
                Input::Counted
            }
        })
    }

    fn perform(&mut self) {
        for effect in self.effects.take() {
            let Ok(()) = effect.perform(self);
        }
    }

    fn end(&mut self, end: Option<End>) {
        let Some(core) = self.core.take() else { return };
        match end {
            Some(End::Closed) => {
                let tickets = core.end();
                self.perform();
                tickets.into_iter().for_each(|ticket| ticket.ok(&()));
                self.perform();
            }
            Some(End::Defect) => {
                drop(core);
                self.perform();
            }
            None => {}
        }
    }
}

impl World for Replay {
    type Broken = Infallible;

    fn record(&mut self, operations: Vec<Unfinished>) {
        self.performed.push(Performed::Record(operations));
    }

    fn publish(&mut self, status: Status) {
        self.performed.push(Performed::Publish(status));
    }

    fn emit(&mut self, about: About, event: Event) {
        self.performed.push(Performed::Event {
            entry: about.entry,
            operation: about.operation,
            reach: Reach::of(&event, self.subscribed),
            event: serde_json::to_value(&event).unwrap_or_default(),
        });
    }

    fn answer(&mut self, ticket: TicketNumber, answer: Answer) {
        self.performed.push(Performed::Answer { ticket, answer: Given::of(&answer, usize::MAX) });
    }

    fn work_on_log(&mut self, work: LogWork) -> Result<(), Infallible> {
        self.work = Some(work);
        Ok(())
    }

    fn read(&mut self, ticket: TicketNumber, read: Read) {
        match read {
            Read::Session(read) => self.answer(ticket, read(&Blocking::is_allowed_here())),
            // The answer was recorded.
            Read::Outside(_) | Read::Draft(_) => {}
        }
    }

    fn start(&mut self, job: Job) {
        match job {
            Job::Count(entries) => self.count = Some(entries),
            Job::Index(work, _) => self.index = Some(work),
            Job::Plan(order) => drop(self.plans.insert(order.id.clone(), order)),
            Job::Draft(order) => drop(self.drafts.insert(order.id.clone(), order)),
            // The outcome was recorded.
            Job::Found(..) | Job::Transfer(_) | Job::Source(_) | Job::Turn(_) => {}
        }
    }

    fn teach(&mut self, change: Change) {
        self.performed.push(Performed::Taught(change));
    }

    fn share(&mut self, bytes: u64) {
        self.performed.push(Performed::Share(bytes));
    }

    fn subscribe(&mut self, ticket: TicketNumber, _: SubscribeParams, snapshot: StatusAnswer) {
        self.subscribed = Subscribed::Yes;
        let snapshot = serde_json::to_value(&snapshot).unwrap_or_default();
        self.performed.push(Performed::Subscribed { ticket, snapshot });
    }

    fn unsubscribe(&mut self, ticket: TicketNumber) {
        self.subscribed = Subscribed::No;
        self.answer(ticket, Answer::ok(&()));
    }

    fn hand_over(&mut self, ticket: TicketNumber) {
        self.performed.push(Performed::HandedOver(ticket));
    }

    fn fork(&mut self, ticket: TicketNumber, _: Forking) {
        self.performed.push(Performed::HandedOver(ticket));
    }

    /// The turn was recorded.
    fn turn(&mut self, _: Turning) {}
}

/// A session that begins with these values, its log, and the facts about it.
fn opened(opening: Opening, content: Vec<u8>) -> Result<((Learned, Opened), PlayedLog, LogFacts), Failure> {
    let Opening { form, file, beginning, left_behind, stats, .. } = opening;
    let Beginning { given, model, layers, trust, windows, images, .. } = beginning;
    let shared = Shared::from(content);
    let bytes = bytes::Bytes::Memory(shared.clone());
    let path = file.clone().unwrap_or_else(|| "ephemeral".into());
    let found = header::of(&path, &bytes)?;
    let source = Source::of(path, bytes, &found);
    let mut title = None;
    let mut repairs = Vec::new();
    let mut known = 0;
    let mut end = shared.length() as u64;
    let history = match form {
        Form::New | Form::Ephemeral => {
            let (entries, _) = source.entries_between(source.floor(), end)?;
            let entries: Vec<_> = entries.into_iter().map(|placed| placed.entry).collect();
            known = entries.len();
            match form {
                Form::Ephemeral => History::in_memory(entries),
                _ => History::of_new_file(source.clone().into(), source.floor(), entries),
            }
        }
        Form::Loaded | Form::ReadOnly => {
            let loaded = source.clone().load(&found, INDEXED_AT_ONCE, &Blocking::is_allowed_here())?;
            if let Tail::Old { entries } = loaded.tail {
                known = entries;
            }
            (title, repairs, end) = (found.title, loaded.repairs, loaded.durable);
            loaded.history
        }
    };
    let state = State::new(found.header, file, title, history, given, model, &layers, trust);
    let mut state = state.map_err(Failure::invalid_settings)?;
    state.set_images(images.map(Blobs::of));
    if matches!(form, Form::Loaded | Form::ReadOnly) {
        state.repairs = repairs;
        state.repairs.extend(state.invalid_settings());
    }
    let log = match form {
        Form::Ephemeral => PlayedLog::Ephemeral(Ephemeral),
        Form::New | Form::Loaded => PlayedLog::of(Access::Write, shared, source, end, known, stats),
        Form::ReadOnly => PlayedLog::of(Access::Read, shared, source, end, known, stats),
    };
    let facts = LogFacts::of(log.as_ref_log());
    let placeholder: Box<dyn Log> = Box::new(Ephemeral);
    Ok(((windows, Opened { state, log: placeholder, left_behind }), log, facts))
}

fn planned(order: PlanOrder, planning: Planning) -> Result<PlanMade, Failure> {
    match planning {
        Planning::Done => {
            let planned = order.request.plan(&|| false)?;
            Ok(PlanMade { planned, candidates: Vec::new(), native: None, only: None })
        }
        Planning::NoModel => Err(no_model()),
        Planning::Cancelled => Err(Failure::Cancelled),
        Planning::Defect(what) => Err(Failure::Internal(what)),
    }
}

fn drafted(order: DraftOrder, drafting: Drafting) -> Result<Draft, Failure> {
    let extracted = |order: DraftOrder| {
        let settings = &order.settings.settings;
        floor::extracted(order.plan, &order.focus, settings, &Cleaner::new(settings), &|| false)
    };
    match drafting {
        Drafting::Supplied { first_kept, text, short, made, supplied } if made.method == SummaryMethod::Hook => {
            let plan = first_kept.map_or(Ok(order.plan.clone()), |id| order.plan.keeping_from(&id));
            let summary = Summary { text, short, files: FileLists::default() };
            let rules = (&order.settings.settings).into();
            let defect = |what: String| Failure::Internal(what);
            let plan = plan.map_err(|no| defect(no.to_string()))?;
            let draft = ladder::supplied(plan, summary, rules).map_err(|unfit| defect(unfit.to_string()))?;
            Ok(Draft { made, supplied, ..draft })
        }
        Drafting::Supplied { text, short, made, supplied, .. } => {
            let mut order = order;
            order.focus.context.extend(supplied.context.iter().cloned());
            let floor = Draft { supplied, ..extracted(order)? };
            Ok(match made.is_extracted() {
                true => Draft { made, ..floor },
                false => floor.with_summary(text, Some(short), made),
            })
        }
        Drafting::Extracted(made) => Ok(Draft { made, ..extracted(order)? }),
        Drafting::Written { text, short, made } => Ok(extracted(order)?.with_summary(text, Some(short), made)),
        Drafting::Native(drafting, native) => Ok(drafted(order, *drafting)?.with_native(native)),
        Drafting::Cancelled => Err(Failure::Cancelled),
        Drafting::Defect(what) => Err(Failure::Internal(what)),
    }
}
