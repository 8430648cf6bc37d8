//! A world with one session: a core, a disk in memory, scripted models and virtual time, in one thread and from one seed.
//!
//! The world performs effects as the shell of a session does, in the order of its loop: urgent messages before results,
//! results before requests, requests before work that is due. The delay of every result is drawn from the seed, so results
//! arrive in every order that threads could bring about.

mod effects;
mod life;
mod requests;
mod tampering;
mod trace;

use super::{
    action::{Action, OtherWrite, PanicAt, Rights, Scenario, Setup, Tuning, Unsynced},
    lies::exchanges::Exchanges,
    models::Models,
    observer::{Observer, Violation},
    setup,
    view::View,
};
use crate::{
    ask::{access::ModelAccess, clock::Clock as _, virtual_clock::VirtualClock},
    ids::ModelRef,
    ids::random::SplitMix64,
    log::{
        memory::{Disk, Unconfirmed},
        store::memory::{Database, Loss},
    },
    models::{
        learned::{Address, Change, LearnedWindow, Server, WindowOrigin},
        windows::Windows,
    },
    session::{
        core::Moment,
        effects::{Sent, TicketNumber},
        fault::{Fault, planted},
        hooks::Hooks,
    },
};
use jiff::Timestamp;
use life::{Life, Urgent};
use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};
use tampering::Tampering;

/// Inputs after which a session that is left alone counts as one that never rests.
const MOST_STEPS: u64 = 200_000;

/// The longest time until a session that is left alone has nothing to do.
const REST: Duration = Duration::from_secs(3_600);

/// A finished run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Inputs that were handled.
    pub steps: u64,
    /// A hash of all effects in their order.
    pub hash: u64,
    /// Effects by their kind, answers by their method and result.
    pub seen: BTreeMap<String, u64>,
}

impl Report {
    /// Adds the numbers of another run.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        for (kind, count) in &other.seen {
            *self.seen.entry(kind.clone()).or_default() += count;
        }
    }
}

/// A world.
pub struct World<'a> {
    setup: &'a Setup,
    seed: u64,
    observer: &'a mut Observer,
    pub(super) clock: VirtualClock,
    /// Draws the delays of results. Each action starts it anew, so that an action that is left out changes little else.
    random: SplitMix64,
    /// Number of equal actions so far, by their hash.
    equal: HashMap<u64, u64>,
    pub(super) disk: Disk,
    /// The database with the lines, where the file is a cache.
    pub(super) database: Option<Database>,
    access: Arc<ModelAccess>,
    models: Models,
    surroundings: Surroundings,
    pub(super) view: View,
    life: Option<Life>,
    tampering: Tampering,
    /// Sessions that were opened so far.
    pub(super) lives: u64,
    next_ticket: TicketNumber,
    hasher: DefaultHasher,
    pub(super) report: Report,
    /// Actions, inputs and effects in their order, if a person reads them.
    pub(super) trace: Option<Vec<String>>,
}

/// The facts about the process and the disk that actions change.
struct Surroundings {
    rights: Rights,
    tuning: Tuning,
    awake_elsewhere: u64,
    /// Whether the tables of the tokenizer are loaded.
    tokenizer: bool,
    /// Effects until the process is killed.
    kill: Option<u32>,
    /// A panic in the next work on the log.
    panic: Option<PanicAt>,
    /// Whether the next read of entries fails.
    fails_read: bool,
    /// The rest of half a line of another program.
    half: Option<String>,
    /// Time for which other sessions have the turn when this one asks for it next.
    others_idle: Duration,
    /// The registration of hooks.
    hooks: Arc<Hooks>,
}

impl<'a> World<'a> {
    /// Runs a scenario to its end.
    ///
    /// # Errors
    /// When the session breaks a rule.
    pub fn run(scenario: &'a Scenario, observer: &'a mut Observer) -> Result<Report, Violation> {
        let mut world = Self::new(scenario, observer);
        world.runs(scenario)?;
        Ok(world.report)
    }

    /// Runs a scenario, and returns its actions, inputs and effects in words.
    #[must_use]
    pub fn traced(scenario: &'a Scenario, observer: &'a mut Observer) -> Vec<String> {
        let mut world = Self::new(scenario, observer);
        world.trace = Some(Vec::new());
        let end = world.runs(scenario);
        world.tell(|| format!("{end:?}"));
        world.trace.unwrap_or_default()
    }

    fn runs(&mut self, scenario: &Scenario) -> Result<(), Violation> {
        self.open(scenario.setup.rights)?;
        for action in &scenario.actions {
            self.performs(action)?;
        }
        self.end()?;
        self.report.hash = self.hasher.finish();
        Ok(())
    }

    /// Performs an action.
    pub(super) fn performs(&mut self, action: &Action) -> Result<(), Violation> {
        self.tell(|| format!("{action:?}"));
        self.draw_anew(action);
        self.act(action)
    }

    /// Adds a line to the trace.
    fn tell(&mut self, line: impl FnOnce() -> String) {
        let passed = self.clock.passed();
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{passed:?} {}", line()));
        }
    }

    /// A world whose session is not open yet.
    pub(super) fn new(scenario: &'a Scenario, observer: &'a mut Observer) -> Self {
        let (setup, seed) = (&scenario.setup, scenario.seed);
        let clock = VirtualClock::seeded(seed);
        let models = Models::new(clock.clone(), setup.script.clone()).hooking(setup.hooks.clone());
        let access = ModelAccess::of(models.routes(), Windows::in_memory());
        if setup.way == super::action::Way::Client {
            access.the_client_runs_models();
        }
        if setup.switches || planted(Fault::SwitchAssumed) {
            access.the_client_switches_models();
        }
        if setup.switches {
            observer.client_switches_models();
        }
        if let Some(truth) = setup.truth {
            observer.knows(truth);
        }
        let (disk, ids) = setup::disk(setup);
        let database = setup.stored.then(Database::default);
        if let Some(database) = &database {
            disk.keep_in(database).unwrap_or_else(|error| unreachable!("the database is empty: {error}"));
        }
        let mut view = View::new(setup::header().id, ids);
        view.exchanges = Exchanges::with(setup.truth);
        let surroundings = Surroundings {
            rights: setup.rights,
            tuning: Tuning::None,
            awake_elsewhere: 0,
            tokenizer: false,
            kill: None,
            panic: None,
            fails_read: false,
            half: None,
            others_idle: Duration::ZERO,
            hooks: Arc::new(setup.hooks.registered.hooks()),
        };
        Self {
            setup,
            seed,
            observer,
            view,
            clock,
            random: SplitMix64::new(seed),
            equal: HashMap::new(),
            disk,
            database,
            access,
            models,
            surroundings,
            life: None,
            tampering: Tampering::default(),
            lives: 0,
            next_ticket: 0,
            hasher: DefaultHasher::new(),
            report: Report::default(),
            trace: None,
        }
    }

    fn draw_anew(&mut self, action: &Action) {
        let mut hasher = DefaultHasher::new();
        action.hash(&mut hasher);
        let hash = hasher.finish();
        let equal = self.equal.entry(hash).or_default();
        *equal += 1;
        self.random = SplitMix64::new(self.seed ^ hash ^ equal.rotate_left(32));
    }

    fn act(&mut self, action: &Action) -> Result<(), Violation> {
        match action {
            Action::Steps(most) => {
                for _ in 0..*most {
                    if !self.step()? {
                        break;
                    }
                }
            }
            Action::Wait(millis) => self.run_for(Duration::from_millis(*millis))?,
            Action::Send(request, sent) => self.send(request, *sent),
            Action::Cancel(which) => self.send_cancel(*which),
            Action::CancelRequest(place) => {
                if let Some(request) = self.view.open_request(*place) {
                    self.urge(Urgent::RequestCancelled(request));
                }
            }
            Action::Layers(tuning) => {
                self.surroundings.tuning = *tuning;
                self.urge(Urgent::Layers(setup::layers(self.setup, *tuning)));
            }
            Action::Hooks(registered) => self.surroundings.hooks = Arc::new(registered.hooks()),
            Action::WindowLearned(window) => {
                if let Some(model) = ModelRef::parse(&format!("local/{}", setup::model(0))) {
                    let server = Server { model, address: Address::Unknown };
                    let row = LearnedWindow::undated(server, *window, WindowOrigin::Refusal);
                    // It counts over the windows of the settings, too.
                    let confirmed = LearnedWindow { refusals: 2, ..row };
                    self.access.windows.teach(Change::Learned(confirmed));
                }
            }
            Action::AwakeElsewhere(bytes) => self.surroundings.awake_elsewhere = *bytes,
            Action::OthersIdle(millis) => self.surroundings.others_idle = Duration::from_millis(*millis),
            Action::FileTouched => self.urge(Urgent::FileTouched),
            Action::Other(write) => self.write_as_another(write),
            Action::Room(number) if self.database.is_some() => self.lose(*number),
            Action::MakeRoom if self.database.is_some() => self.reach(),
            Action::FailSync(unsynced) if self.database.is_some() => {
                let loss = if *unsynced == Unsynced::Kept { Loss::After } else { Loss::Late };
                self.database.iter().for_each(|database| database.lose([loss]));
            }
            Action::Room(bytes) => self.disk.leave_room(*bytes as usize),
            Action::MakeRoom => self.disk.make_room(),
            Action::FailSync(unsynced) => self.disk.fail_sync_once(match unsynced {
                Unsynced::Kept => Unconfirmed::Kept,
                Unsynced::Lost => Unconfirmed::Lost,
            }),
            Action::FailRead => self.surroundings.fails_read = true,
            Action::PanicLog(at) => self.surroundings.panic = self.life.as_ref().map(|_| *at),
            Action::Stall(millis) => self.clock.advance(Duration::from_millis(*millis)),
            Action::WallJumps(millis) => self.clock.shift_wall(*millis),
            Action::Finish => self.urge(Urgent::Finish),
            Action::Stop => self.urge(Urgent::Stop),
            Action::Crash(effects) if self.life.is_some() => self.surroundings.kill = Some(*effects),
            Action::Tear(bytes) if self.life.is_some() && self.surroundings.rights == Rights::Write => {
                self.disk.crash_torn(*bytes as usize);
            }
            Action::Crash(_) | Action::Tear(_) => {}
            Action::Open(rights) if self.life.is_none() => self.open(*rights)?,
            Action::Open(_) => {}
        }
        Ok(())
    }

    fn urge(&mut self, urgent: Urgent) {
        if let Some(life) = &mut self.life {
            life.urgent.push_back(urgent);
        }
    }

    /// Loses the next requests to the database, in the ways that a number gives.
    fn lose(&self, number: u32) {
        let mut random = SplitMix64::new(u64::from(number));
        let losses: Vec<Loss> = (0..=random.below(8))
            .map(|_| match random.below(6) {
                0 => Loss::Unsent,
                1 => Loss::Before,
                2 => Loss::After,
                3 => Loss::Late,
                _ => Loss::None,
            })
            .collect();
        self.database.iter().for_each(|database| database.lose(losses.iter().copied()));
    }

    /// The database can be reached again, and changes that were on their way arrive.
    fn reach(&self) {
        if let Some(database) = &self.database {
            database.recover();
            database.arrive();
        }
    }

    fn write_as_another(&mut self, write: &OtherWrite) {
        // The cache of a store belongs to its process.
        if self.surroundings.rights == Rights::Ephemeral || self.database.is_some() {
            return;
        }
        let disk = &self.disk;
        match write {
            OtherWrite::Entries { parent, messages } if self.surroundings.half.is_none() => {
                disk.write_as_another(self.view.lines_of_another(*parent, messages).as_bytes());
            }
            OtherWrite::Race { parent, messages } if self.surroundings.half.is_none() => {
                disk.race(self.view.lines_of_another(*parent, messages).as_bytes());
            }
            OtherWrite::Half(percent) if self.surroundings.half.is_none() => {
                let mut line = self.view.lines_of_another(super::action::Which::Leaf, &[super::action::Said::User(60)]);
                let rest = line.split_off(line.len() * usize::from(*percent).min(100) / 100);
                disk.write_as_another(line.as_bytes());
                self.surroundings.half = Some(rest);
            }
            OtherWrite::Rest => {
                if let Some(rest) = self.surroundings.half.take() {
                    disk.write_as_another(rest.as_bytes());
                }
            }
            OtherWrite::Garbage => disk.write_as_another(b"{\"type\": no entry at all\n"),
            _ => {}
        }
    }

    /// The time and the facts of an input.
    fn moment(&self) -> Moment {
        Moment {
            now: self.clock.now(),
            wall: Timestamp::from_millisecond(self.clock.timestamp_ms()).unwrap_or(Timestamp::UNIX_EPOCH),
            awake_elsewhere: self.surroundings.awake_elsewhere,
            tokenizer: self.surroundings.tokenizer,
        }
    }

    /// Lets the time pass. The session handles its inputs meanwhile.
    fn run_for(&mut self, duration: Duration) -> Result<(), Violation> {
        let until = self.clock.now() + duration;
        let most = self.report.steps + MOST_STEPS;
        loop {
            if self.step()? {
                if self.report.steps > most {
                    return Err(Violation::of_world("the session never rests".to_owned()));
                }
                continue;
            }
            match self.next_time() {
                Some(at) if at <= until => self.clock.advance_to(at),
                _ => break,
            }
        }
        self.clock.advance_to(until);
        Ok(())
    }

    /// Runs the session until nothing is left, opens it again and compares.
    pub(super) fn end(&mut self) -> Result<(), Violation> {
        self.surroundings.kill = None;
        (self.surroundings.panic, self.surroundings.fails_read) = (None, false);
        self.disk.make_room();
        self.reach();
        self.act(&Action::Other(OtherWrite::Rest))?;
        if self.life.is_none() {
            self.open(self.surroundings.rights)?;
        }
        self.run_for(REST)?;
        if self.life.is_some() {
            self.observer.left_alone()?;
        }
        // A model that never answers is asked without a deadline.
        self.send_cancel(super::action::WhichOperation::All);
        self.run_for(REST)?;
        self.check_rest()?;
        self.send(&super::action::Request::Close, Sent::Alone);
        self.run_for(REST)?;
        if self.life.is_some() {
            return Err(Violation::of_world("a session that was closed goes on".to_owned()));
        }
        if !self.view.open.is_empty() {
            return Err(Violation::of_world(format!(
                "requests have no answer when the session is closed: {:?}",
                self.view.open
            )));
        }
        if self.surroundings.rights != Rights::Ephemeral {
            self.open(self.surroundings.rights)?;
            self.run_for(REST)?;
            self.check_rest()?;
        }
        Ok(())
    }

    fn check_rest(&mut self) -> Result<(), Violation> {
        match &self.life {
            Some(life) => self.observer.at_rest(life.core(), &self.disk),
            None => Ok(()),
        }
    }
}
