//! Clients that draw their actions from a seed.

pub mod lying;
mod tree;
pub mod turning;

use super::{
    action::{
        Action, Ahead, Compacting, Configured, Counts, Error, Format, Idle, Indexed, Method, OtherWrite, Pinned,
        Prices, Reported, Request, Rights, Said, Scenario, Setup, Tuning, Unsynced, Way, Which, WhichOperation,
    },
    hooks::{self, Hooking},
    hosts::Host,
    script::Script,
    setup, situations,
};
use crate::{ids::random::SplitMix64, session::effects::Sent};

/// Sets the draws of idleness apart from the others of a seed.
const IDLENESS: u64 = 0x1d1e;

/// Sets the draws of summaries ahead apart from the others of a seed.
const AHEAD: u64 = 0xa4ead;

/// Sets the draws of hooks apart from the others of a seed.
const HOOKS: u64 = 0x400c5;

/// Sets the draws of navigations apart from the others of a seed.
const TREE: u64 = 0x7ee;

/// The character of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// A host that waits for each answer.
    Calm,
    /// A host that sends many requests at once.
    Chatty,
    /// A client that ignores what it is told.
    Hostile,
    /// A client that cancels all the time.
    Cancelling,
    /// A host beside another program that writes to the same file.
    TwoWriters,
    /// A host on a computer that is killed and whose disk fails.
    Failing,
    /// A host with a loop of turns against a provider that enforces its window.
    Looping,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 8] = [
        Self::Calm,
        Self::Chatty,
        Self::Hostile,
        Self::Cancelling,
        Self::TwoWriters,
        Self::Failing,
        Self::Looping,
        Self::Looping,
    ];
}

/// The scenario of a seed.
#[must_use]
pub fn scenario(seed: u64) -> Scenario {
    let mut random = SplitMix64::new(seed);
    let profile = *random.one_of(&Profile::ALL).unwrap_or(&Profile::Calm);
    scenario_of(seed, profile, &mut random)
}

/// The scenario of a seed, with this client.
#[must_use]
pub fn scenario_of(seed: u64, profile: Profile, random: &mut SplitMix64) -> Scenario {
    let setup = drawn_setup(random, profile);
    let mut client = Client { random: random.fork(), profile, size: 0, window: setup.window };
    let length = 20 + random.below(80);
    let mut actions = Vec::new();
    client.overhead(&mut actions);
    while (actions.len() as u64) < length {
        client.acts(&mut actions);
    }
    let mut scenario = Scenario { seed, setup, actions };
    situations::add(&mut scenario, random);
    // Draws of its own: the scenarios without idleness stay as they are.
    situations::add_idleness(&mut scenario, &mut SplitMix64::new(seed ^ IDLENESS));
    scenario.setup.ceiling = ceiling(seed);
    let mut random = SplitMix64::new(seed ^ AHEAD);
    let aheads = [Ahead::Auto, Ahead::Auto, Ahead::On, Ahead::Off];
    let prices = [Prices::Unknown, Prices::Listed, Prices::WithoutCache, Prices::Free];
    scenario.setup.ahead = aheads[random.below(4) as usize];
    scenario.setup.prices = prices[random.below(4) as usize];
    situations::add_growth(&mut scenario, &mut random);
    hooks::draws::add(&mut scenario, &mut SplitMix64::new(seed ^ HOOKS));
    tree::add(&mut scenario, &mut SplitMix64::new(seed ^ TREE));
    scenario
}

/// The ceiling of tokens of every fourth scenario. It is drawn apart, so that the others stay as they are.
fn ceiling(seed: u64) -> Option<u64> {
    let mut random = SplitMix64::new(!seed);
    let ceilings = [0, 700, 3_000, 20_000];
    (random.below(4) == 0).then(|| random.one_of(&ceilings).copied()).flatten()
}

fn drawn_setup(random: &mut SplitMix64, profile: Profile) -> Setup {
    let window = match random.below(10) {
        0..6 => 600 << random.below(5),
        6..8 => 4_000 << random.below(4),
        8 => 128_000,
        _ => 1_000_000 << random.below(2),
    };
    let models = u32::try_from(random.below(4)).unwrap_or(0);
    let names: Vec<String> = (0..models).map(setup::model).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let rights = match (random.below(12), profile) {
        (0, Profile::Calm | Profile::Chatty | Profile::TwoWriters) => Rights::Read,
        (1, _) => Rights::Ephemeral,
        _ => Rights::Write,
    };
    let script = if profile == Profile::Calm { Script::default() } else { Script::random(random, &names) };
    let history = match random.below(3) {
        0 => 0,
        1 => random.below(20),
        _ => random.below(200),
    };
    let history_seed = random.draw();
    Setup {
        rights,
        history: u32::try_from(history).unwrap_or(0),
        history_seed,
        indexed: if random.below(2) == 0 { Indexed::AtOnce } else { Indexed::Later },
        counts: if random.below(4) == 0 { Counts::Tokenizer } else { Counts::Chars },
        window,
        keep_recent: random.below((window / 2).min(20_000)),
        models,
        way: if random.below(3) == 0 { Way::Client } else { Way::Provider },
        script,
        promotes: random.below(3) == 0,
        switches: random.below(2) == 0,
        idle: Idle::default(),
        ceiling: None,
        ahead: Ahead::Auto,
        prices: Prices::Unknown,
        hooks: Hooking::default(),
        truth: None,
        stored: rights == Rights::Write && history_seed.is_multiple_of(4),
    }
}

/// A client.
struct Client {
    random: SplitMix64,
    profile: Profile,
    /// Estimated size of what it appended, in tokens.
    size: u64,
    window: u64,
}

impl Client {
    fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    fn few(&mut self, end: u64) -> u32 {
        u32::try_from(self.random.below(end)).unwrap_or(0)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn maybe<T>(&mut self, percent: u64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance(percent).then(|| make(self))
    }

    /// A system prompt that takes up to 95 % of a window.
    fn overhead(&mut self, actions: &mut Vec<Action>) {
        if self.window > 64_000 || !self.chance(15) {
            return;
        }
        let percent = [50, 70, 84, 90, 95][self.few(5) as usize];
        let chars = u32::try_from(self.window * 4 * percent / 100).unwrap_or(0);
        actions.push(Action::Send(Request::Configure(Configured::Prompt(Some(chars))), Sent::Alone));
    }

    /// Adds the next actions.
    fn acts(&mut self, actions: &mut Vec<Action>) {
        let turns = if self.profile == Profile::Looping { 60 } else { 4 };
        if self.chance(turns) {
            let mut host = Host::drawn(&mut self.random, self.window);
            let turn = host.turn();
            return actions.extend(turn);
        }
        if self.profile == Profile::Looping && self.random.below(2_000) == 0 {
            let count = self.below(300);
            let turns = Host::drawn(&mut self.random, self.window).turns(count);
            return actions.extend(turns);
        }
        let (others, faults, cancels, wrong) = match self.profile {
            Profile::Calm => (1, 0, 2, 0),
            Profile::Looping => (1, 4, 4, 1),
            Profile::Chatty => (2, 1, 5, 2),
            Profile::Hostile => (4, 2, 10, 30),
            Profile::Cancelling => (1, 1, 35, 3),
            Profile::TwoWriters => (25, 1, 5, 3),
            Profile::Failing => (2, 20, 5, 3),
        };
        let drawn = self.below(100);
        if drawn < others {
            self.other_program(actions);
        } else if drawn < others + faults {
            self.fault(actions);
        } else if drawn < others + faults + cancels {
            actions.push(self.cancel());
        } else if drawn < others + faults + cancels + 4 {
            actions.push(self.surroundings());
        } else {
            let request = if self.chance(wrong) { self.wrong_request() } else { self.request() };
            let sent = if self.chance(12) { Sent::InBatch } else { Sent::Alone };
            let closes = request == Request::Close;
            actions.push(Action::Send(request, sent));
            if closes {
                self.reopens(actions);
            }
        }
        self.pause(actions);
    }

    fn pause(&mut self, actions: &mut Vec<Action>) {
        let hurry = match self.profile {
            Profile::Calm | Profile::Looping => 10,
            Profile::TwoWriters | Profile::Failing => 40,
            Profile::Chatty | Profile::Hostile | Profile::Cancelling => 60,
        };
        if self.chance(hurry) {
            if self.chance(30) {
                actions.push(Action::Steps(1 + self.few(6)));
            }
            return;
        }
        let millis = match self.below(20) {
            0..8 => self.below(5),
            8..14 => self.below(200),
            14..17 => self.below(5_000),
            17..19 => self.below(90_000),
            _ => self.below(1_000_000),
        };
        actions.push(Action::Wait(millis));
    }

    fn reopens(&mut self, actions: &mut Vec<Action>) {
        if self.chance(70) {
            actions.push(Action::Wait(1 + self.below(3_000)));
        }
        actions.push(Action::Open(if self.chance(85) { Rights::Write } else { Rights::Read }));
    }

    fn which(&mut self) -> Which {
        match self.below(20) {
            0..6 => Which::Leaf,
            6..14 => Which::Newest(self.few(12)),
            14..19 => Which::Oldest(self.few(300)),
            _ => Which::Unknown,
        }
    }

    fn cancel(&mut self) -> Action {
        match self.below(10) {
            0..4 => Action::Cancel(WhichOperation::All),
            4..6 => Action::Cancel(WhichOperation::Newest(self.few(3))),
            6 => Action::Cancel(WhichOperation::Unknown),
            _ => Action::CancelRequest(self.few(4)),
        }
    }

    fn surroundings(&mut self) -> Action {
        match self.below(7) {
            0 => Action::Layers(self.tuning()),
            1 => Action::WindowLearned(500 + self.below(2 * self.window)),
            2 => Action::AwakeElsewhere(self.random.below(3) << 28),
            3 => Action::WallJumps([-3_600_000, 3_600_000, 86_400_000, -1][self.few(4) as usize]),
            _ => Action::FileTouched,
        }
    }

    fn tuning(&mut self) -> Tuning {
        match self.below(11) {
            7 => Tuning::StrategyOff,
            8 => Tuning::NoMidTurn,
            9 => Tuning::NoPromotion,
            10 => Tuning::NoLearning,
            0 => Tuning::None,
            1 | 2 => Tuning::KeepRecent(self.below(2_000)),
            3 => Tuning::Window(500 + self.below(30_000)),
            4 => Tuning::ThresholdPercent(i64::try_from(self.below(99)).unwrap_or(50)),
            5 => Tuning::NoCompaction,
            _ => Tuning::NoModels,
        }
    }

    fn other_program(&mut self, actions: &mut Vec<Action>) {
        let parent = if self.chance(70) { Which::Leaf } else { self.which() };
        let messages = (0..=self.below(3)).map(|_| self.said()).collect();
        let write = match self.below(10) {
            0..5 => OtherWrite::Entries { parent, messages },
            5..7 => OtherWrite::Race { parent, messages },
            7 => OtherWrite::Half(u8::try_from(self.below(101)).unwrap_or(50)),
            8 => OtherWrite::Rest,
            _ => OtherWrite::Garbage,
        };
        actions.push(Action::Other(write));
        if self.chance(80) {
            actions.push(Action::FileTouched);
        }
    }

    fn fault(&mut self, actions: &mut Vec<Action>) {
        match self.below(10) {
            0..4 => actions.push(Action::Crash(self.few(30))),
            4 => actions.push(Action::Tear(self.few(3_000))),
            5 | 6 => {
                actions.push(Action::Room(self.few(2_000)));
                for _ in 0..self.below(4) {
                    self.acts(actions);
                }
                actions.push(Action::MakeRoom);
            }
            7 => actions.push(Action::FailSync(if self.chance(50) { Unsynced::Kept } else { Unsynced::Lost })),
            8 => {
                actions.push(Action::Finish);
                self.reopens(actions);
            }
            _ => {
                actions.push(Action::Stop);
                self.reopens(actions);
            }
        }
    }

    fn request(&mut self) -> Request {
        match self.below(100) {
            0..38 => self.append(),
            38..56 => Request::Compact(self.compacting()),
            56..59 => Request::Undo,
            59 => Request::Reset,
            60..64 => Request::Pin(self.pinned()),
            64..66 => Request::Unpin(self.pinned()),
            66..68 => {
                let target = self.which();
                Request::Label(target, self.maybe(70, |it| it.few(9)))
            }
            68..71 => Request::Prune {
                protect: self.maybe(60, |it| it.below(2_000)),
                minimum: self.maybe(60, |it| it.below(200)),
                dry_run: self.maybe(30, |it| it.chance(50)),
            },
            71..75 => Request::Configure(self.configured()),
            75..77 => Request::Set(self.tuning()),
            77..84 => Request::Context {
                leaf: self.maybe(25, Self::which),
                format: self.maybe(40, |it| {
                    let formats = [
                        Format::Messages,
                        Format::Anthropic,
                        Format::OpenaiChat,
                        Format::OpenaiResponses,
                        Format::Google,
                    ];
                    formats[it.few(5) as usize]
                }),
                wait: self.maybe(60, |it| it.chance(80)),
            },
            84..87 => Request::Entries {
                since: self.maybe(40, Self::which),
                all: self.chance(50),
                limit: self.maybe(30, |it| it.few(50)),
            },
            87 => Request::Entry(self.which()),
            88 => Request::Tree(self.maybe(30, Self::which)),
            89 => Request::Search(self.few(200)),
            90 => Request::Usage,
            91..95 => Request::Status,
            95 => Request::Settings,
            96 => {
                if self.chance(50) {
                    Request::Subscribe
                } else {
                    Request::Unsubscribe
                }
            }
            97 => Request::ClearQueue,
            98 => {
                if self.chance(50) {
                    Request::Load
                } else {
                    Request::HandOver
                }
            }
            _ => Request::Close,
        }
    }

    /// A request of a client that ignores what it is told.
    fn wrong_request(&mut self) -> Request {
        match self.below(8) {
            0 => Request::Append { messages: Vec::new(), parent: None, expected: None },
            1 => {
                let kind = self.few(5);
                Request::Append { messages: vec![self.said(), Said::Invalid(kind)], parent: None, expected: None }
            }
            2 => {
                let messages = vec![self.said()];
                Request::Append { messages, parent: Some(Which::Unknown), expected: None }
            }
            3 => {
                let messages = vec![self.said()];
                Request::Append { messages, parent: None, expected: Some(Which::Oldest(0)) }
            }
            4 => Request::Configure(Configured::NoModel),
            5 => Request::Set(Tuning::Invalid),
            6 => Request::Pin(Pinned::Text(self.few(9), 500_000)),
            _ => Request::Compact(Compacting { expected: Some(Which::Oldest(0)), ..self.compacting() }),
        }
    }

    fn append(&mut self) -> Request {
        let messages = (0..=self.below(4)).map(|_| self.said()).collect();
        Request::Append { messages, parent: self.maybe(8, Self::which), expected: self.maybe(10, Self::which) }
    }

    fn compacting(&mut self) -> Compacting {
        let mut compacting = Compacting {
            wait: self.maybe(60, |it| it.chance(75)),
            dry_run: self.maybe(15, |it| it.chance(80)),
            method: self.maybe(30, |it| if it.chance(50) { Method::Llm } else { Method::Extractive }),
            keep_recent_tokens: self.maybe(70, |it| it.random.below(it.window / 2)),
            instructions: self.maybe(15, |it| it.few(9)),
            expected: self.maybe(8, Self::which),
            by_agent: self.chance(15),
            after_turn: self.chance(15),
            new_session: false,
        };
        // An eighth of the sizes.
        compacting.new_session = compacting.keep_recent_tokens.is_some_and(|keep| keep % 8 == 3);
        compacting
    }

    fn pinned(&mut self) -> Pinned {
        if self.chance(50) { Pinned::Entry(self.which()) } else { Pinned::Text(self.few(5), 20 + self.few(300)) }
    }

    fn configured(&mut self) -> Configured {
        match self.below(11) {
            7 | 8 => Configured::Window(self.maybe(70, |it| 1 + it.random.below(2 * it.window))),
            9 => Configured::Output(self.maybe(70, |it| 1 + it.random.below(it.window))),
            0 | 1 => Configured::Model(self.few(4)),
            2 => Configured::Thinking(self.maybe(70, |it| it.few(3))),
            3 => Configured::Title(self.maybe(70, |it| it.few(9))),
            4 => Configured::Prompt(self.maybe(70, |it| it.few(2_000))),
            5 => Configured::Tools(self.few(4)),
            6 => Configured::All(self.few(3)),
            _ => Configured::Nothing,
        }
    }

    fn chars(&mut self) -> u32 {
        let chars = match self.below(20) {
            0..14 => 5 + self.few(120),
            14..19 => self.few(600),
            _ if self.chance(90) => self.few(4_000),
            // Too large for its event.
            _ => 47_000 + self.few(4_000),
        };
        self.size += u64::from(chars) / 4;
        chars
    }

    fn said(&mut self) -> Said {
        match self.below(44) {
            40 => Said::CutCall(self.reported()),
            41 => Said::CutEmpty(self.reported()),
            42 => Said::OfAnother(self.chars(), self.reported()),
            43 => Said::Images(1 + self.few(3)),
            0..10 => Said::User(self.chars()),
            10..18 => Said::Answer(self.chars(), self.reported()),
            18 => Said::CutOff(self.chars(), self.reported()),
            19 | 20 => Said::Failed(self.error(), self.reported()),
            21 => Said::Aborted(self.chars()),
            22..27 => Said::Calls(1 + self.few(3), self.reported()),
            27..33 => {
                let place = if self.chance(70) { 0 } else { self.few(4) };
                Said::Result(place, self.chars())
            }
            33 => Said::Stray(self.chars()),
            34 => Said::Image(self.chars()),
            35 => Said::Custom(self.chars()),
            36 => Said::Developer(self.chars()),
            37 => Said::Execution(self.chars()),
            _ => Said::Thinking(self.chars(), self.reported()),
        }
    }

    fn reported(&mut self) -> Reported {
        let lies = if self.profile == Profile::Hostile { 40 } else { 8 };
        if self.chance(lies) {
            return match self.below(9) {
                6 => Reported::Huge,
                7 => Reported::Percent(99),
                8 => Reported::Percent(1 + self.few(120)),
                0 => Reported::Zero,
                1 => Reported::Absurd,
                2 => Reported::Total(self.below(100_000)),
                3 => Reported::Input(self.size / 3),
                4 => Reported::Input(self.size * 5),
                _ if self.profile == Profile::Hostile => Reported::Negative,
                _ => Reported::Nothing,
            };
        }
        if self.chance(50) { Reported::Input(self.size) } else { Reported::Nothing }
    }

    fn error(&mut self) -> Error {
        match self.below(7) {
            4 => Error::ThrottledTokens,
            5 => Error::TooManyBytes,
            6 => Error::Unknown,
            0 => Error::Overflow,
            1 => Error::OverflowOf(1_000 + self.below(2 * self.window)),
            2 => Error::Throttled,
            _ => Error::Broken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_pair_of_settings_that_decide_about_maintenance_happens_in_300_seeds() {
        let mut pairs = HashSet::new();
        let mut values = HashSet::new();
        for setup in (0..300).map(|seed| scenario(seed).setup) {
            let drawn = [
                format!("ahead {:?}", setup.ahead),
                format!("prices {:?}", setup.prices),
                format!("idle {}", setup.idle.seconds > 0),
                format!("ceiling {:?}", setup.ceiling),
                format!("promotes {}", setup.promotes),
            ];
            for (at, one) in drawn.iter().enumerate() {
                values.insert((at, one.clone()));
                pairs.extend(drawn[at + 1..].iter().map(|other| (one.clone(), other.clone())));
            }
        }
        let of = |at: usize| values.iter().filter(|(of, _)| *of == at).count();
        assert_eq!([0, 1, 2, 3, 4].map(of), [3, 4, 2, 5, 2]);
        let expected: usize =
            (0..5).flat_map(|one| (one + 1..5).map(move |other| (one, other))).map(|(a, b)| of(a) * of(b)).sum();
        assert_eq!(pairs.len(), expected);
    }
}
