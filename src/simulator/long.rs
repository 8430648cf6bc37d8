//! Long sessions: a host that obeys has thousands of turns with a provider that enforces its window by a count of its own,
//! over hours with pauses, jumps of the clock and crashes.
//!
//! The host reads its answers, so its actions are no scenario. A run repeats with its seed.

use super::{
    action::{
        Action, Ahead, Configured, Counts, Error, Idle, Indexed, Pinned, Prices, Reported, Request, Rights, Said,
        Scenario, Setup, Way, Which,
    },
    hooks::Hooking,
    observer::{Observer, Violation},
    script::Script,
    setup,
    world::{Report, World},
};
use crate::{ids::random::SplitMix64, protocol::errors::Failure, session::effects::Sent};

/// Requests of a turn, beyond those that its tools need. Each may be refused, recovered from and cut off by a crash.
const MOST_REQUESTS: u64 = 12;

/// Compactions of a turn, beyond one for each request.
const MOST_COMPACTIONS: u64 = 6;

/// Time after which a request counts as one that is never answered, in steps of two seconds.
const MOST_WAITS: u32 = 3_600;

/// The numbers of a long session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Long {
    /// The run.
    pub report: Report,
    /// Turns with an answer.
    pub answered: u64,
    /// Turns that ended with `context_overflow`.
    pub refused: u64,
    /// Contexts that were given.
    pub contexts: u64,
    /// Requests that the provider refused.
    pub overflows: u64,
    /// Crashes.
    pub crashes: u64,
    /// Hours on the session's clock.
    pub hours: u64,
    /// The window of the session at first, in tokens, and the share of the system prompt in it, in percent.
    pub window: (u64, u64),
    /// The last refusal.
    pub refusal: String,
}

/// The end of a turn.
enum End {
    Answered,
    Refused,
}

/// A host.
struct Host<'a> {
    world: World<'a>,
    random: SplitMix64,
    /// The window of the provider, in tokens.
    window: u64,
    /// Its count, in percent of a token for four bytes.
    percent: u64,
    /// Its refusal.
    refusal: Error,
    /// Size of a usual text, in characters.
    chars: u64,
    /// One in so many requests is cut off by a crash. Zero: none.
    crashes: u64,
    long: Long,
}

/// Runs a session of so many turns.
///
/// # Errors
/// When it breaks a rule.
pub fn run(seed: u64, turns: u64) -> Result<Long, Violation> {
    runs(seed, turns, &mut None)
}

/// Runs a session of so many turns, and returns its actions, inputs and effects in words.
#[must_use]
pub fn traced(seed: u64, turns: u64) -> Vec<String> {
    let mut trace = Some(Vec::new());
    let end = runs(seed, turns, &mut trace);
    let mut lines = trace.unwrap_or_default();
    lines.extend(end.err().map(|violation| violation.to_string()));
    lines
}

fn runs(seed: u64, turns: u64, trace: &mut Option<Vec<String>>) -> Result<Long, Violation> {
    let mut random = SplitMix64::new(seed);
    let setup = drawn(&mut random);
    let window = setup.window;
    let scenario = Scenario { seed, setup, actions: Vec::new() };
    let mut observer = Observer::default();
    let mut world = World::new(&scenario, &mut observer);
    world.trace = trace.take();
    let own = if random.below(4) == 0 { window * 3 / 4 } else { window };
    let percent = [100, 100, 90, 130, 180][usize::try_from(random.below(5)).unwrap_or(0)];
    let refusal = if random.below(2) == 0 { Error::Overflow } else { Error::OverflowOf(own) };
    let crashes = [0, 100, 400][usize::try_from(random.below(3)).unwrap_or(0)];
    // Larger texts cost time, and nothing else.
    let chars = (window / 40).clamp(60, 4_000);
    let mut host = Host { world, random, window: own, percent, refusal, chars, crashes, long: Long::default() };
    let end = host.all(window, turns);
    *trace = host.world.trace.take();
    end.map(|()| host.long)
}

fn drawn(random: &mut SplitMix64) -> Setup {
    let window = match random.below(8) {
        0..6 => 4_000 << random.below(4),
        6 => 128_000,
        _ => 1_000_000 << random.below(2),
    };
    let models = 1 + u32::try_from(random.below(3)).unwrap_or(0);
    let names: Vec<String> = (0..models).map(setup::model).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let script = if random.below(2) == 0 { Script::default() } else { Script::random(random, &names) };
    Setup {
        rights: Rights::Write,
        history: 0,
        history_seed: 0,
        indexed: Indexed::Later,
        counts: Counts::Chars,
        window,
        keep_recent: window / 8,
        models,
        way: if random.below(3) == 0 { Way::Client } else { Way::Provider },
        script,
        promotes: random.below(6) == 0,
        switches: random.below(2) == 0,
        idle: Idle::default(),
        ceiling: None,
        ahead: Ahead::Auto,
        prices: Prices::Unknown,
        hooks: Hooking::default(),
        truth: None,
        stored: false,
    }
}

impl Host<'_> {
    fn all(&mut self, window: u64, turns: u64) -> Result<(), Violation> {
        self.begins(window)?;
        for _ in 0..turns {
            self.turns()?;
        }
        self.ends()
    }

    fn begins(&mut self, window: u64) -> Result<(), Violation> {
        self.world.performs(&Action::Open(Rights::Write))?;
        // Above 85 % of the window the rest is too small for any conversation.
        let percent = [0, 0, 10, 50, 70, 80, 95][self.few(7) as usize];
        self.long.window = (window, percent);
        if percent > 0 && window < 64_000 {
            let chars = u32::try_from(window * 4 * percent / 100).unwrap_or(0);
            self.asks(Request::Configure(Configured::Prompt(Some(chars))))?;
        }
        self.asks(Request::Pin(Pinned::Text(7, 60)))?;
        Ok(())
    }

    fn few(&mut self, end: u64) -> u32 {
        u32::try_from(self.random.below(end)).unwrap_or(0)
    }

    /// Sends a request and waits for its answer. Returns whether it came, and no crash before it.
    fn asks(&mut self, request: Request) -> Result<bool, Violation> {
        if self.crashes > 0 && self.random.below(self.crashes) == 0 {
            let effects = self.few(20);
            self.world.performs(&Action::Crash(effects))?;
        }
        let lives = self.world.lives;
        self.world.performs(&Action::Send(request.clone(), Sent::Alone))?;
        for _ in 0..MOST_WAITS {
            self.world.performs(&Action::Wait(2_000))?;
            if self.world.lives != lives {
                self.long.crashes += 1;
                return Ok(false);
            }
            if self.world.view.open.is_empty() {
                return Ok(true);
            }
        }
        Err(Violation::of_world(format!("no answer to {request:?}")))
    }

    /// Appends a message. After a crash it is sent again, unless it is in the file.
    fn says(&mut self, said: Said) -> Result<(), Violation> {
        let append = |said: Said| Request::Append { messages: vec![said], parent: None, expected: None };
        while !self.asks(append(said.clone()))? {
            if self.world.view.newest_is_in(&self.world.disk.bytes()) {
                break;
            }
        }
        Ok(())
    }

    /// A turn, and a pause.
    fn turns(&mut self) -> Result<(), Violation> {
        let before = self.compactions();
        let contexts = self.long.contexts;
        match self.turn()? {
            End::Answered => self.long.answered += 1,
            End::Refused => self.long.refused += 1,
        }
        let (compactions, contexts) = (self.compactions() - before, self.long.contexts - contexts);
        if compactions > contexts + MOST_COMPACTIONS {
            return Err(Violation::of_world(format!("{compactions} compactions in a turn of {contexts} requests")));
        }
        let pause = match self.random.below(40) {
            0 => 60_000 + self.random.below(1_200_000),
            1 => {
                let jump = [-3_600_000, 3_600_000, -1][self.few(3) as usize];
                self.world.performs(&Action::WallJumps(jump))?;
                1_000
            }
            _ => self.random.below(8_000),
        };
        self.world.performs(&Action::Wait(pause))
    }

    fn turn(&mut self) -> Result<End, Violation> {
        let chars = 20 + self.few(2 * self.chars);
        self.says(Said::User(chars))?;
        let mut rounds = if self.random.below(3) == 0 { 1 + self.random.below(4) } else { 0 };
        for _ in 0..rounds + MOST_REQUESTS {
            let context = Request::Context { leaf: None, format: None, wait: Some(true) };
            if !self.asks(context)? {
                continue;
            }
            match &self.world.view.refused {
                None => {}
                Some(refused @ (Failure::OverWindow { .. } | Failure::ContextOverflow(_))) => {
                    self.long.refusal = format!("{refused:?}");
                    return Ok(End::Refused);
                }
                refused => return Err(Violation::of_world(format!("a context is refused with {refused:?}"))),
            };
            if !self.world.view.has_newest {
                return Err(Violation::of_world("a context lacks the newest message of the user".to_owned()));
            }
            self.long.contexts += 1;
            // A quarter of the bytes, as most providers count about one token for four letters.
            let counted = self.world.view.bytes / 4 * self.percent / 100;
            if counted > self.window {
                self.long.overflows += 1;
                self.says(Said::Failed(self.refusal, Reported::Nothing))?;
            } else if rounds > 0 {
                rounds -= 1;
                self.works(counted)?;
            } else {
                let chars = 20 + self.few(self.chars);
                self.says(Said::Answer(chars, Reported::Input(counted)))?;
                return Ok(End::Answered);
            }
        }
        Err(Violation::of_world("a turn does not end".to_owned()))
    }

    /// An answer with calls, and their results.
    fn works(&mut self, counted: u64) -> Result<(), Violation> {
        let calls = 1 + self.few(2);
        self.says(Said::Calls(calls, Reported::Input(counted)))?;
        for _ in 0..calls {
            let chars = match self.random.below(60) {
                0 => self.chars * 60,
                1..6 => self.chars * 10,
                _ => self.chars,
            };
            let chars = 20 + self.few(chars);
            self.says(Said::Result(0, chars))?;
        }
        Ok(())
    }

    fn compactions(&self) -> u64 {
        let starts = |(kind, _): &(&String, &u64)| kind.starts_with("event compaction_start");
        self.world.report.seen.iter().filter(starts).map(|(_, count)| *count).sum()
    }

    fn ends(&mut self) -> Result<(), Violation> {
        self.long.hours = self.world.clock.passed().as_secs() / 3_600;
        self.asks(Request::Unpin(Pinned::Entry(Which::Unknown)))?;
        self.world.end()?;
        self.long.report = std::mem::take(&mut self.world.report);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::tests::is_whole;
    use std::env;

    /// The session of a usual run.
    const SEED: u64 = 6;

    /// Turns of a whole run, which take ten hours.
    const TURNS: u64 = 2_000;

    /// Turns of a usual run.
    const SOME_TURNS: u64 = 500;

    /// `ABRIDGED_SIM_LONG` is another seed, which is traced.
    #[test]
    fn a_session_of_many_hours_ends_each_turn() {
        let turns = if is_whole() { TURNS } else { SOME_TURNS };
        let seed = env::var("ABRIDGED_SIM_LONG").ok().and_then(|seed| seed.parse().ok());
        if let Some(seed) = seed {
            eprintln!("{}", traced(seed, turns).join("\n"));
        }
        let long = run(seed.unwrap_or(SEED), turns).unwrap_or_else(|violation| panic!("{violation}"));
        assert_eq!(long.answered + long.refused, turns, "every turn ends");
        let compactions = long.report.seen.get("event compaction_end completed").copied().unwrap_or_default();
        assert!(long.hours >= turns / 200 && long.crashes > turns / 200 && compactions > turns / 20, "{long:#?}");
    }

    #[test]
    fn sessions_of_many_windows_end_each_turn() {
        let mut all = Long::default();
        for seed in 2..10 {
            let long = run(seed, 40).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
            assert_eq!(long.answered + long.refused, 40, "seed {seed}: every turn ends");
            all.refused += long.refused;
            all.overflows += long.overflows;
            all.crashes += long.crashes;
        }
        assert!(all.refused > 0 && all.overflows > 0 && all.crashes > 0, "{all:#?}");
    }
}
