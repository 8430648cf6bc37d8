//! Hooks from a seed. They are drawn after everything else of it, so that a scenario without hooks stays as it is.

use super::{Adds, At, Events, Fails, Keeps, Registered, Reply, Says, Supplies};
use crate::{
    ids::random::SplitMix64,
    session::effects::Sent,
    simulator::action::{Action, Compacting, Pinned, Request, Rights, Said, Scenario, Which, WhichOperation},
};

/// Adds hooks to every third scenario: a registration, answers, changes of the registration, and clients that send requests
/// while a hook is asked.
pub fn add(scenario: &mut Scenario, random: &mut SplitMix64) {
    if random.below(3) != 0 {
        return;
    }
    let mut draws = Draws(random);
    scenario.setup.hooks.registered = if draws.chance(85) { draws.registered() } else { Registered::default() };
    scenario.setup.hooks.before = (0..draws.0.below(6)).map(|_| draws.reply()).collect();
    scenario.setup.hooks.compacting = (0..draws.0.below(6)).map(|_| draws.addition()).collect();
    for _ in 0..1 + draws.0.below(4) {
        let actions = if draws.chance(25) { vec![Action::Hooks(draws.change())] } else { draws.calls_back() };
        let place = usize::try_from(draws.0.below(scenario.actions.len() as u64 + 1)).unwrap_or(0);
        scenario.actions.splice(place..place, actions);
    }
}

struct Draws<'a>(&'a mut SplitMix64);

impl Draws<'_> {
    fn chance(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    fn few(&mut self, end: u64) -> u32 {
        u32::try_from(self.0.below(end)).unwrap_or(0)
    }

    fn registered(&mut self) -> Registered {
        let events = [Events::Before, Events::Compacting, Events::Both, Events::Both][self.few(4) as usize];
        let timeout_ms = [100, 1_000, 30_000, 600_000][self.few(4) as usize];
        let fails = if self.chance(25) { Fails::Abort } else { Fails::Continue };
        Registered { events, timeout_ms, fails }
    }

    fn change(&mut self) -> Registered {
        if self.chance(40) { Registered::default() } else { self.registered() }
    }

    fn at(&mut self) -> At {
        match self.0.below(20) {
            0..9 => At::Milliseconds(self.0.below(100)),
            9..13 => At::Milliseconds(self.0.below(5_000)),
            13..15 => At::Milliseconds(self.0.below(40_000)),
            15 => At::Deadline,
            16 | 17 => At::Late(1 + self.0.below(1_000)),
            18 => At::Late(1),
            _ => At::Never,
        }
    }

    fn data(&mut self) -> Option<u32> {
        let number = self.few(9);
        self.chance(50).then_some(number)
    }

    fn reply(&mut self) -> Reply {
        let says = match self.0.below(36) {
            0..3 => Says::Continue,
            3 => Says::Null,
            4 => Says::Cancel,
            5 => Says::CancelWithReason,
            6..15 => Says::Replace(Supplies {
                chars: [0, 60, 600][self.few(3) as usize],
                keeps: [Keeps::Default, Keeps::Default, Keeps::Planned, Keeps::More][self.few(4) as usize],
                details: self.chance(50),
                data: self.data(),
            }),
            15 => Says::EmptySummary,
            16 => Says::LongSummary([5_000, 100_000, 400_000][self.few(3) as usize]),
            17 | 18 => Says::TaggedSummary,
            19 => Says::StrangeEntry,
            20 | 21 => Says::SummaryWithOurKey,
            22 => Says::NoSummary,
            23 => Says::UnknownAction,
            24 => Says::Number,
            25 => Says::Adds(Adds::default()),
            26 => Says::Error,
            27 => Says::Gone,
            _ => Says::Replace(Supplies::default()),
        };
        Reply { at: self.at(), says }
    }

    fn addition(&mut self) -> Reply {
        let says = match self.0.below(16) {
            0 | 1 => Says::Null,
            2 => Says::Cancel,
            3..11 => Says::Adds(Adds { context: self.few(4), prompt: self.chance(30), data: self.data() }),
            11 => Says::AddsOurKey,
            12 => Says::AddsWrongType,
            13 => Says::Number,
            14 => Says::Error,
            _ => Says::Gone,
        };
        Reply { at: self.at(), says }
    }

    /// A compaction with hooks. While one of them is asked, the client sends something else.
    fn calls_back(&mut self) -> Vec<Action> {
        let send = |request| Action::Send(request, Sent::Alone);
        let says = |chars| send(Request::Append { messages: vec![Said::User(chars)], parent: None, expected: None });
        let mut actions = vec![says(200 + self.few(2_000)), says(20 + self.few(200)), Action::Wait(2_000)];
        if self.chance(30) {
            actions.push(Action::Hooks(self.registered()));
        }
        let compacting = Compacting { keep_recent_tokens: Some(self.0.below(60)), ..Compacting::default() };
        actions.push(send(Request::Compact(compacting.clone())));
        actions.push(Action::Wait([20, 60, 200, 1_000][self.few(4) as usize]));
        for _ in 0..=self.0.below(3) {
            match self.0.below(12) {
                0 => actions.push(send(Request::Entries { since: None, all: false, limit: Some(20) })),
                1 => actions.push(send(Request::Entry(Which::Newest(self.few(8))))),
                2 | 3 => actions.push(says(20 + self.few(300))),
                4 => actions.push(send(Request::Compact(compacting.clone()))),
                5 => actions.push(Action::Cancel(WhichOperation::All)),
                6 => actions.push(Action::CancelRequest(0)),
                7 => actions.push(send(Request::Undo)),
                8 => actions.push(send(Request::Pin(Pinned::Entry(Which::Newest(self.few(8)))))),
                9 => actions.push(send(Request::Context { leaf: None, format: None, wait: Some(true) })),
                10 => actions.push(Action::Hooks(self.change())),
                _ => {
                    actions.extend([send(Request::Close), Action::Wait(1_000), Action::Open(Rights::Write)]);
                    return actions;
                }
            }
        }
        actions.push(Action::Wait(self.0.below(90_000)));
        actions
    }
}
