//! Sessions whose host or provider does not tell the truth, drawn from a seed.

use crate::{
    ids::random::SplitMix64,
    provider::TroubleKind,
    session::effects::Sent,
    simulator::{
        action::{Action, Ahead, Compacting, Counts, Format, Indexed, Request, Said, Scenario, Setup, Way},
        lies::{Beyond, Gives, Named, Report, Stated, Told, Truth},
        script::{End, Fault, Script, Step, Text},
        setup,
    },
};

/// Sets the draws of these sessions apart from others of a seed.
const LIES: u64 = 0x11e5;

/// Sets the draws of messages that come while a model runs apart from the others, which stay as they are.
const STEERING: u64 = 0x57ee;

/// One of so many requests is followed by a message of the user before its answer.
const STEERED: u64 = 8;

/// One of so many seeds has a session in which someone lies.
const SHARE: u64 = 4;

/// Whether someone lies in the session of a seed.
#[must_use]
pub fn lies(seed: u64) -> bool {
    SplitMix64::new(seed ^ LIES).below(SHARE) == 0
}

/// The session of a seed with a host and a provider that have a truth of their own.
#[must_use]
pub fn scenario(seed: u64) -> Scenario {
    let mut random = SplitMix64::new(!seed ^ LIES);
    let setup = drawn_setup(&mut random);
    let steering = SplitMix64::new(!seed ^ STEERING);
    let mut host =
        Host { random: random.fork(), steering, setup: &setup, reports: Report::True, names: Named::Omitted };
    host.nature();
    let mut actions = Vec::new();
    for _ in 0..5 + random.below(14) {
        host.turn(&mut actions);
    }
    Scenario { seed, setup, actions }
}

fn drawn_setup(random: &mut SplitMix64) -> Setup {
    let window = 6_000 + 2_000 * random.below(10);
    let own = match random.below(8) {
        0 => window / 2,
        1 => window / 4 * 3,
        2 => window * 2,
        _ => window,
    };
    let stated = match random.below(8) {
        0 => Stated::Nothing,
        1 => Stated::Wrong([0, 1, 500, own / 5, own * 4 / 5, own * 3][random.below(6) as usize]),
        2 | 3 => Stated::Parts,
        _ => Stated::Window,
    };
    let beyond = if random.below(6) == 0 { Beyond::Cuts } else { Beyond::Refuses(stated) };
    let truth = Truth {
        window: own,
        density: [80, 90, 100, 100, 115, 130][random.below(6) as usize],
        untold: [0, 0, 300, 1_000][random.below(4) as usize],
        reserved: [0, 0, 1_000, own / 2, own][random.below(5) as usize],
        beyond,
    };
    let models = 1 + u32::try_from(random.below(2)).unwrap_or(0);
    Setup {
        history: 0,
        indexed: if random.below(2) == 0 { Indexed::AtOnce } else { Indexed::Later },
        counts: if random.below(4) == 0 { Counts::Tokenizer } else { Counts::Chars },
        window,
        keep_recent: window / 10 + random.below(window / 5),
        models,
        way: if random.below(3) == 0 { Way::Client } else { Way::Provider },
        script: script(random, models),
        ahead: [Ahead::Auto, Ahead::On, Ahead::On, Ahead::Off][random.below(4) as usize],
        truth: Some(truth),
        ..Setup::default()
    }
}

/// Summarizers: good ones, or such as give nothing of use for ever.
fn script(random: &mut SplitMix64, models: u32) -> Script {
    let step = match random.below(8) {
        0 => Step::says(Text::NoHeadings),
        1 => Step::says(Text::Refusal),
        2 => Step::says(Text::Empty),
        3 => {
            let kinds = [TroubleKind::Unwilling, TroubleKind::Broken, TroubleKind::Denied, TroubleKind::Refused];
            let kind = random.one_of(&kinds).copied().unwrap_or(TroubleKind::Broken);
            Step::ends(End::Fails(Fault::new(kind)))
        }
        _ => return Script::default(),
    };
    Script { models: (0..models).map(|number| (setup::model(number), vec![step.clone()])).collect() }
}

/// A host that obeys `next`, and its user.
struct Host<'a> {
    random: SplitMix64,
    steering: SplitMix64,
    setup: &'a Setup,
    reports: Report,
    names: Named,
}

impl Host<'_> {
    fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    fn few(&mut self, end: u64) -> u32 {
        u32::try_from(self.random.below(end)).unwrap_or(0)
    }

    /// A host mostly reports in one way, and names contexts in one way.
    fn nature(&mut self) {
        self.reports = match self.below(14) {
            0..4 => Report::True,
            4 => Report::Nothing,
            5 => Report::Zero,
            6 | 7 => Report::Uncached,
            8 => Report::Steps,
            9 => Report::Constant([3_000_000, 100, self.setup.window, self.setup.window / 2][self.few(4) as usize]),
            10 => Report::Doubled,
            11 => Report::Late(self.few(3)),
            12 => Report::BeforeRewrite,
            _ => Report::OfAnother([20, 45, 170, 400][self.few(4) as usize]),
        };
        self.names = match self.below(6) {
            0..2 => Named::Right,
            2 => Named::Wrong,
            3 => Named::Stale,
            _ => Named::Omitted,
        };
    }

    fn chars(&mut self) -> u32 {
        let most = self.setup.window * 4 / 5;
        let most = if self.below(12) == 0 { most } else { most / 5 };
        20 + self.few(most)
    }

    /// The host tells of the answer to its newest request.
    fn tells(&mut self, gives: Gives) -> Action {
        let (mut reports, mut names) = (self.reports, self.names);
        if self.below(20) == 0 && reports != Report::True {
            reports = Report::Nothing;
        }
        if self.below(20) == 0 {
            names = Named::Omitted;
        }
        append(Said::Told(Told { gives, reports, names }))
    }

    fn context(&mut self) -> Action {
        let formats = [Format::Anthropic, Format::OpenaiChat, Format::OpenaiResponses, Format::Google];
        let format = (self.below(3) == 0).then(|| formats[self.few(4) as usize]);
        let wait = if format.is_some() && self.below(2) == 0 { None } else { Some(true) };
        send(Request::Context { leaf: None, format, wait })
    }

    fn turn(&mut self, actions: &mut Vec<Action>) {
        let chars = self.chars();
        actions.extend([append(Said::User(chars)), Action::Wait(50)]);
        for _ in 0..self.below(3) {
            self.request(actions);
            let calls = 1 + self.few(2);
            let tells = self.tells(Gives::Calls(calls));
            actions.extend([tells, Action::Wait(50)]);
            for _ in 0..calls {
                let chars = self.chars();
                actions.extend([append(Said::Result(0, chars)), Action::Wait(20)]);
            }
        }
        self.request(actions);
        if self.below(12) == 0 {
            let limit = 1 + self.below(self.setup.window);
            let throttled = self.tells(Gives::Throttled(limit));
            actions.extend([throttled, Action::Wait(5_000)]);
        }
        let chars = self.chars() / 2;
        let tells = self.tells(Gives::Text(chars));
        actions.extend([tells, Action::Wait(50)]);
        let pause = match self.below(4) {
            0 => self.below(400_000),
            _ => self.below(9_000),
        };
        actions.push(Action::Wait(pause));
    }

    /// The host asks for a context, and its provider works on it. Someone may act meanwhile.
    fn request(&mut self, actions: &mut Vec<Action>) {
        let context = self.context();
        actions.extend([context, Action::Wait(30_000)]);
        match self.below(30) {
            0 => actions.extend([send(Request::Undo), Action::Wait(500)]),
            1 => {
                let keep_recent_tokens = Some(self.below(self.setup.keep_recent));
                let compact = Request::Compact(Compacting { keep_recent_tokens, ..Compacting::default() });
                actions.extend([send(compact), Action::Wait(20_000)]);
            }
            2 => actions.extend([Action::Crash(self.few(20)), Action::Wait(500)]),
            // A person looks at the session.
            3 => actions.push(send(Request::Context { leaf: None, format: None, wait: None })),
            4 => actions.push(send(Request::Usage)),
            _ => {}
        }
        // The user types while the model runs.
        if self.steering.below(STEERED) == 0 {
            let chars = 20 + u32::try_from(self.steering.below(self.setup.window)).unwrap_or(0);
            actions.extend([append(Said::User(chars)), Action::Wait(50)]);
        }
    }
}

fn append(said: Said) -> Action {
    send(Request::Append { messages: vec![said], parent: None, expected: None })
}

fn send(request: Request) -> Action {
    Action::Send(request, Sent::Alone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_lie_is_drawn_in_a_quarter_of_400_seeds() {
        let seeds: Vec<u64> = (0..400).filter(|seed| lies(*seed)).collect();
        assert!((70..130).contains(&seeds.len()), "{}", seeds.len());
        let kind = |debug: String| debug.split(['(', ' ']).next().unwrap_or_default().to_owned();
        let (mut reports, mut names, mut beyond) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let (mut throttled, mut undone, mut useless) = (false, false, false);
        for Scenario { setup, actions, .. } in seeds.into_iter().map(scenario) {
            let Truth { beyond: end, .. } = setup.truth.expect("a truth");
            beyond.insert(match end {
                Beyond::Refuses(stated) => kind(format!("{stated:?}")),
                Beyond::Cuts => "Cuts".to_owned(),
            });
            useless |= !setup.script.models.is_empty();
            for action in actions {
                match action {
                    Action::Send(Request::Append { messages, .. }, _) => {
                        for said in messages {
                            let Said::Told(told) = said else { continue };
                            reports.insert(kind(format!("{:?}", told.reports)));
                            names.insert(kind(format!("{:?}", told.names)));
                            throttled |= matches!(told.gives, Gives::Throttled(_));
                        }
                    }
                    Action::Send(Request::Undo, _) => undone = true,
                    _ => {}
                }
            }
        }
        assert_eq!((reports.len(), names.len(), beyond.len()), (10, 4, 5), "{reports:?} {names:?} {beyond:?}");
        assert!(throttled && undone && useless);
    }
}
