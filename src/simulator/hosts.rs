//! Hosts with a loop of turns against a provider: one obeys `next`, one ignores it, one appends in the wrong order, one
//! answers twice, one reports failures that are old or come twice.

use super::action::{
    Action, Compacting, Configured, Error, Format, Provider, Reported, Request, Said, Tuning, WhichOperation,
};
use crate::{ids::random::SplitMix64, session::effects::Sent};

/// A host.
pub struct Host<'a> {
    random: &'a mut SplitMix64,
    /// Window of the session's model, in tokens.
    window: u64,
    provider: Provider,
}

impl<'a> Host<'a> {
    /// A host and its provider, which may be wrong about its window.
    pub fn drawn(random: &'a mut SplitMix64, window: u64) -> Self {
        let percent = [100, 100, 100, 95, 130, 180][usize::try_from(random.below(6)).unwrap_or(0)];
        let own = match random.below(4) {
            0 => window / 2,
            1 => window / 10,
            _ => window,
        };
        let states = match random.below(5) {
            0 | 1 => None,
            2 => Some(random.below(2 * window).max(1)),
            _ => Some(own),
        };
        Self { random, window, provider: Provider { window: own.max(200), percent, states } }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    fn few(&mut self, end: u64) -> u32 {
        u32::try_from(self.random.below(end)).unwrap_or(0)
    }

    /// A turn.
    pub fn turn(&mut self) -> Vec<Action> {
        match self.below(19) {
            16 | 17 => self.compacts_later(),
            18 => self.states_limits(),
            0..4 => self.obeys(),
            4 | 5 => self.works(),
            6 => self.ignores(),
            7 => self.confuses(),
            8 => self.answers_twice(),
            9 => self.two_overflows(),
            10 => self.old_request(),
            11 | 12 => self.refused_again(),
            13 => self.cut_off(),
            14 => self.full(),
            _ => self.switched_off(),
        }
    }

    /// Turns that use the window up.
    pub fn turns(&mut self, count: u64) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..count {
            actions.extend([self.asks(), self.context(), Action::Wait(4_000), self.answers(), Action::Wait(100)]);
        }
        actions
    }

    /// A text that takes up to a fifth of the window, in characters.
    fn chars(&mut self) -> u32 {
        let most = (self.window * 4 / 5).clamp(200, 20_000);
        20 + self.few(most)
    }

    fn asks(&mut self) -> Action {
        let chars = self.chars();
        if self.below(20) == 0 { append(vec![Said::Images(1 + self.few(4))]) } else { append(vec![Said::User(chars)]) }
    }

    fn answers(&mut self) -> Action {
        append(vec![Said::Provided(self.provider)])
    }

    /// Asks for the context of a request.
    fn context(&mut self) -> Action {
        let formats = [Format::Anthropic, Format::OpenaiChat, Format::OpenaiResponses, Format::Google];
        let format = (self.below(3) == 0).then(|| formats[self.few(4) as usize]);
        let wait = if format.is_some() && self.below(2) == 0 { None } else { Some(true) };
        send(Request::Context { leaf: None, format, wait })
    }

    fn refuses(&mut self) -> Action {
        let window = self.window;
        let error = match self.below(8) {
            0..3 => Error::Overflow,
            3 => Error::OverflowOf(1 + self.below(2 * window)),
            4 => Error::OverflowOf(window),
            5 => Error::TooManyBytes,
            6 => Error::ThrottledTokens,
            _ => Error::Unknown,
        };
        append(vec![Said::Failed(error, Reported::Nothing)])
    }

    fn pause(&mut self) -> Action {
        match self.below(4) {
            0 => Action::Steps(1 + self.few(5)),
            1 => Action::Wait(self.below(50)),
            _ => Action::Wait(20_000),
        }
    }

    fn obeys(&mut self) -> Vec<Action> {
        let mut actions = vec![self.asks(), Action::Wait(50)];
        for _ in 0..=self.below(3) {
            actions.extend([self.context(), Action::Wait(30_000), self.answers(), Action::Wait(50)]);
        }
        actions
    }

    /// Calls, and results in several appends.
    fn works(&mut self) -> Vec<Action> {
        let calls = 1 + self.few(3);
        let reported = self.reported();
        let mut actions = vec![self.asks(), self.context(), Action::Wait(20_000)];
        actions.push(append(vec![Said::Calls(calls, reported)]));
        for _ in 0..calls {
            let chars = if self.below(2_000) == 0 { 5_000_000 } else { self.chars() };
            actions.extend([append(vec![Said::Result(0, chars)]), Action::Wait(10)]);
        }
        actions.extend([self.context(), self.pause(), self.answers()]);
        actions
    }

    fn ignores(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..=self.below(4) {
            actions.extend([self.asks(), self.answers(), self.refuses()]);
        }
        actions.push(self.pause());
        actions
    }

    fn confuses(&mut self) -> Vec<Action> {
        let chars = self.chars();
        let (answer, ask) = (self.answers(), self.asks());
        vec![answer, append(vec![Said::Result(0, chars), Said::Calls(1, Reported::Nothing), Said::Stray(40)]), ask]
    }

    fn answers_twice(&mut self) -> Vec<Action> {
        vec![self.asks(), self.context(), self.pause(), self.answers(), self.answers(), self.context(), self.pause()]
    }

    fn two_overflows(&mut self) -> Vec<Action> {
        let mut actions = vec![self.asks(), self.context(), Action::Wait(20_000), self.refuses()];
        if self.below(2) == 0 {
            actions.push(Action::Steps(1 + self.few(6)));
        }
        actions.extend([self.refuses(), self.context(), self.pause()]);
        actions
    }

    fn old_request(&mut self) -> Vec<Action> {
        let compact = Compacting { keep_recent_tokens: Some(self.below(200)), ..Compacting::default() };
        let between = match self.below(3) {
            0 => send(Request::Configure(Configured::Model(self.few(2)))),
            _ => send(Request::Compact(compact)),
        };
        let mut actions = vec![self.asks(), self.context(), Action::Wait(20_000), between, Action::Wait(20_000)];
        actions.extend([self.refuses(), self.pause(), self.refuses(), self.pause(), self.context(), self.pause()]);
        actions
    }

    /// The same request again and again, over crashes and cancels.
    fn refused_again(&mut self) -> Vec<Action> {
        let mut actions = vec![self.asks(), self.asks(), self.context(), Action::Wait(20_000)];
        for _ in 0..2 + self.below(4) {
            let error =
                if self.below(2) == 0 { Error::Overflow } else { Error::OverflowOf(1 + self.below(self.window)) };
            actions.extend([append(vec![Said::Failed(error, Reported::Nothing)]), self.pause()]);
            match self.below(10) {
                0 | 1 => actions.extend([Action::Crash(self.few(25)), self.pause()]),
                2 => actions.push(Action::Cancel(WhichOperation::All)),
                3 => actions.push(Action::CancelRequest(0)),
                _ => actions.extend([self.context(), Action::Wait(20_000)]),
            }
        }
        actions
    }

    fn cut_off(&mut self) -> Vec<Action> {
        let mut actions = vec![self.asks(), self.context(), Action::Wait(20_000)];
        for _ in 0..1 + self.below(5) {
            let (reported, chars) = (self.reported(), self.chars());
            let said = match self.below(3) {
                0 => Said::CutCall(reported),
                1 => Said::CutEmpty(reported),
                _ => Said::CutOff(chars, reported),
            };
            actions.extend([append(vec![said]), self.pause(), self.context(), self.pause()]);
            if self.below(6) == 0 {
                actions.push(Action::Crash(self.few(25)));
            }
        }
        actions
    }

    /// Reports fill the window, whatever the texts are.
    fn full(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..1 + self.below(5) {
            let (chars, reported) = (self.chars(), self.reported());
            let said =
                if self.below(6) == 0 { Said::OfAnother(chars, reported) } else { Said::Answer(chars, reported) };
            actions.extend([self.asks(), self.context(), self.pause(), append(vec![said]), self.pause()]);
        }
        actions
    }

    /// A compaction after the turn, and the end of the turn.
    fn compacts_later(&mut self) -> Vec<Action> {
        let later = Compacting {
            wait: (self.below(2) == 0).then_some(true),
            keep_recent_tokens: Some(self.below(200)),
            by_agent: self.below(4) == 0,
            after_turn: true,
            ..Compacting::default()
        };
        let (chars, calls) = (self.chars(), 1 + self.few(2));
        let mut actions = vec![self.asks(), self.context(), Action::Wait(20_000)];
        actions.push(append(vec![Said::Calls(calls, Reported::Nothing)]));
        actions.extend([send(Request::Compact(later.clone())), self.pause()]);
        actions.extend(match self.below(12) {
            0 => vec![send(Request::Compact(later)), self.pause()],
            1 => vec![Action::CancelRequest(0), self.pause()],
            2 => vec![Action::Cancel(WhichOperation::Newest(0)), self.pause()],
            3 => vec![Action::Cancel(WhichOperation::All)],
            4 => vec![Action::Crash(self.few(25)), self.pause()],
            5 => vec![send(Request::Compact(Compacting::default())), self.pause()],
            _ => Vec::new(),
        });
        actions.extend((0..calls).map(|_| append(vec![Said::Result(0, chars)])));
        actions.extend([self.context(), self.pause(), self.answers(), self.pause(), self.context(), self.pause()]);
        actions
    }

    /// The host states the limits of its model, and goes on.
    fn states_limits(&mut self) -> Vec<Action> {
        let percent = [10, 25, 50, 90, 110, 200][self.few(6) as usize];
        let window = (self.below(6) > 0).then_some((self.window * percent / 100).max(1));
        let mut actions = vec![send(Request::Configure(Configured::Window(window))), self.pause()];
        if self.below(3) == 0 {
            let output = (self.below(4) > 0).then_some(1 + self.below(self.window));
            actions.push(send(Request::Configure(Configured::Output(output))));
        }
        if self.below(4) == 0 {
            actions.extend([Action::Crash(self.few(25)), self.pause()]);
        }
        actions.extend(match self.below(3) {
            0 => self.full(),
            1 => self.works(),
            _ => self.obeys(),
        });
        actions
    }

    fn switched_off(&mut self) -> Vec<Action> {
        let off = [
            Tuning::NoCompaction,
            Tuning::StrategyOff,
            Tuning::NoMidTurn,
            Tuning::NoPromotion,
            Tuning::NoLearning,
            Tuning::None,
        ];
        let (one, other) = (off[self.few(6) as usize], off[self.few(6) as usize]);
        let mut actions = vec![Action::Layers(one), send(Request::Set(other)), Action::Wait(10)];
        for _ in 0..=self.below(3) {
            actions.extend(match self.below(4) {
                0 => self.full(),
                1 => self.cut_off(),
                2 => self.refused_again(),
                _ => self.works(),
            });
        }
        if self.below(2) == 0 {
            actions.extend([Action::Layers(Tuning::None), send(Request::Set(Tuning::None))]);
        }
        actions
    }

    fn reported(&mut self) -> Reported {
        match self.below(12) {
            0 => Reported::Zero,
            1 => Reported::Huge,
            2 => Reported::Percent(50),
            3 => Reported::Percent(84),
            4 => Reported::Percent(90),
            5 | 6 => Reported::Percent(99),
            7 => Reported::Percent(101),
            8 => Reported::Percent(150),
            9 => Reported::Percent(1),
            _ => Reported::Nothing,
        }
    }
}

fn append(messages: Vec<Said>) -> Action {
    send(Request::Append { messages, parent: None, expected: None })
}

fn send(request: Request) -> Action {
    Action::Send(request, Sent::Alone)
}
