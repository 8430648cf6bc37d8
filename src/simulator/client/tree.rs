//! Navigations from a seed. They are drawn after everything else of it, so that a scenario without navigations stays as it
//! is.

use crate::{
    ids::random::SplitMix64,
    session::effects::Sent,
    simulator::action::{
        Action, Compacting, Method, Navigating, Pinned, Reported, Request, Rights, Said, Scenario, Target, Which,
        WhichOperation,
    },
};

/// Adds navigations to every third scenario: to any entry and back, with summaries, cancels, appends, and crashes between.
pub fn add(scenario: &mut Scenario, random: &mut SplitMix64) {
    if random.below(3) != 0 {
        return;
    }
    let mut draws = Draws(random);
    for _ in 0..1 + draws.0.below(6) {
        let actions = draws.tour();
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

    fn target(&mut self) -> Target {
        Target::Entry(match self.0.below(20) {
            0 => Which::Unknown,
            1 => Which::Leaf,
            2..12 => Which::Newest(self.few(20)),
            _ => Which::Oldest(self.few(300)),
        })
    }

    fn navigation(&mut self, target: Target) -> Navigating {
        Navigating {
            target,
            summarize: [None, Some(false), Some(true)][self.few(3) as usize],
            label: self.chance(25).then(|| self.few(9)),
            wait: [None, Some(true), Some(true), Some(false)][self.few(4) as usize],
        }
    }

    /// A navigation and what comes with it.
    fn tour(&mut self) -> Vec<Action> {
        let target = self.target();
        let mut actions = vec![self.goes(target)];
        match self.0.below(12) {
            0 => actions.push(Action::Cancel(WhichOperation::All)),
            1 => actions.push(Action::CancelRequest(self.few(2))),
            2 => actions.push(Action::Crash(self.few(20))),
            3 => actions.push(Action::Steps(1 + self.few(5))),
            4 => {
                actions.push(Action::Steps(1 + self.few(5)));
                actions.push(Action::Cancel(WhichOperation::All));
            }
            _ => {}
        }
        for _ in 0..self.0.below(4) {
            self.rests(&mut actions);
            let request = self.between();
            actions.push(Action::Send(request, Sent::Alone));
        }
        self.rests(&mut actions);
        if self.chance(60) {
            actions.push(self.goes(Target::Left));
            self.rests(&mut actions);
        }
        if self.chance(15) {
            actions.extend([
                Action::Send(Request::Close, Sent::Alone),
                Action::Wait(2_000),
                Action::Open(Rights::Write),
            ]);
        }
        actions
    }

    fn goes(&mut self, target: Target) -> Action {
        let navigation = self.navigation(target);
        Action::Send(Request::Navigate(navigation), if self.chance(10) { Sent::InBatch } else { Sent::Alone })
    }

    fn rests(&mut self, actions: &mut Vec<Action>) {
        if self.chance(75) {
            actions.push(Action::Wait(1 + self.0.below(3_000)));
        }
    }

    fn between(&mut self) -> Request {
        let which = Which::Newest(self.few(20));
        match self.0.below(12) {
            0 => Request::Pin(Pinned::Entry(which)),
            1 => Request::Unpin(Pinned::Entry(which)),
            2 => Request::Undo,
            3 => Request::Label(which, Some(self.few(9))),
            4 => Request::Compact(Compacting {
                method: Some(Method::Extractive),
                keep_recent_tokens: Some(self.0.below(200)),
                ..Compacting::default()
            }),
            5 => Request::Context { leaf: Some(which), format: None, wait: None },
            6 => {
                Request::Append { messages: vec![Said::User(20 + self.few(200))], parent: Some(which), expected: None }
            }
            7 => {
                let messages = vec![Said::Calls(2, Reported::Nothing), Said::Result(0, 60)];
                Request::Append { messages, parent: None, expected: None }
            }
            _ => {
                let messages = vec![Said::User(20 + self.few(300)), Said::Answer(30, Reported::Nothing)];
                Request::Append { messages, parent: None, expected: None }
            }
        }
    }
}
