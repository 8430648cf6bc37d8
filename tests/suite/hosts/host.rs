//! A host with its own loop, and the provider that it asks.

use super::wire::{self, Connection, Ended};
use crate::{
    provider::{Asked, Format, Provider, Refusal, Step, Stop, Trouble},
    summarizing::good_model,
    support::{Daemon, Home, text_of},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// A seeded sequence of numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number in a range.
    pub fn within(&mut self, range: std::ops::Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// Whether an event of this percentage happens.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// Faults of a provider beside its window. The number is a percentage of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// 429, with a text that speaks of tokens.
    TokensPerMinute(u64),
    /// 500.
    Broken(u64),
    /// A stop at the limit of the output, with text.
    LengthText(u64),
    /// A stop at the limit of the output in the middle of a call.
    LengthCall(u64),
    /// A stop at the limit of the output with nothing before it.
    LengthNothing(u64),
    /// A refusal as too long, in the words of the format, of a request that fits.
    Overflow(u64),
    /// The connection ends in the middle of the answer.
    CutOff(u64),
}

/// The window that the host states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stated {
    /// The one that the provider enforces.
    Right,
    /// A larger one, in percent of the one that the provider enforces.
    Larger(u64),
    /// None.
    No,
}

/// A run of a host.
#[derive(Debug, Clone)]
pub struct Run {
    pub format: Format,
    pub seed: u64,
    pub turns: usize,
    pub window: u64,
    /// The window in the second third of the turns, if it is another one.
    pub meanwhile: Option<u64>,
    pub stated: Stated,
    /// Characters of the JSON for a token of the provider.
    pub chars_per_token: f64,
    pub refusal: Refusal,
    pub faults: Vec<Fault>,
    /// Whether the provider also writes summaries.
    pub summarizer: bool,
    /// Largest size of a tool result, in tokens of the peers' count.
    pub largest_result: u64,
}

impl Run {
    pub fn of(format: Format, seed: u64) -> Self {
        Self {
            format,
            seed,
            turns: 100,
            window: 16_000,
            meanwhile: None,
            stated: Stated::Right,
            chars_per_token: 4.6,
            refusal: Refusal::Numbers,
            faults: Vec::new(),
            summarizer: false,
            largest_result: 2_000,
        }
    }
}

/// The end of a turn, as the host sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TurnEnd {
    /// An answer without calls.
    Answered,
    /// An answer that reached the limit of the output, with text.
    Cut,
    /// The provider failed, also when asked again.
    Failed,
    /// An overflow from which the session did not recover.
    Overflow,
    /// The daemon has no context that fits.
    NoContext,
}

/// The facts of a run.
#[derive(Debug, Default)]
pub struct Told {
    pub ends: BTreeMap<TurnEnd, usize>,
    /// Requests of the host.
    pub requests: usize,
    /// Requests of the host that the provider refused as too long: the size of the context by the daemon, and the error.
    pub refused: Vec<String>,
    /// Requests right behind a recovery that the provider refused as too long.
    pub refused_again: Vec<String>,
    /// How often each fault of the run was met.
    pub faults: Vec<usize>,
    /// Requests that lack something that each has to have.
    pub lacking: Vec<String>,
    /// Requests that the provider refused as invalid.
    pub invalid: Vec<String>,
    pub compactions: usize,
    pub recoveries: usize,
    /// Starts without an end, and ends without a start.
    pub unpaired: Vec<String>,
}

const PIN: &str = "PIN-7: the release branch is frozen.";
/// A host gives a turn up behind so many requests.
const LONGEST_TURN: usize = 30;

/// A host in the middle of its run.
struct Host {
    run: Run,
    random: Random,
    daemon: Daemon,
    session: String,
    connection: Connection,
    told: Told,
}

/// Runs a host to its end.
pub fn run(run: Run) -> Told {
    let provider = Provider::start(run.format);
    provider.counts_json(run.chars_per_token).refuses_with(run.refusal);
    let random = Mutex::new(Random::new(run.seed + 1_000));
    let faults = run.faults.clone();
    let met = Arc::new(Mutex::new(vec![0; faults.len()]));
    let meets = met.clone();
    provider.otherwise(move |asked: &Asked| {
        let mut random = random.lock().expect("a lock");
        answer(asked, &faults, &mut meets.lock().expect("a lock"), &mut random)
    });
    let home = Home::new();
    home.settings(&settings(&run, &provider));
    let mut daemon = Daemon::at(home);
    let params = json!({
        "cwd": "/project", "model": "test/model", "systemPrompt": "You are careful.",
        "tools": [{"name": "read", "description": "Reads a file.", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}],
    });
    let session = daemon.ok("session/new", params)["session"]["sessionId"].as_str().expect("an id").to_owned();
    daemon.ok("session/pin", json!({"sessionId": session, "text": PIN}));
    let connection = Connection::to(&provider, run.format);
    let random = Random::new(run.seed);
    let mut host = Host { run, random, daemon, session, connection, told: Told::default() };
    let turns = host.run.turns;
    for turn in 0..turns {
        let meanwhile = host.run.meanwhile.filter(|_| turn * 3 / turns == 1);
        provider.window(meanwhile.unwrap_or(host.run.window));
        let end = host.turn(turn);
        *host.told.ends.entry(end).or_default() += 1;
    }
    host.daemon.ok("session/context", json!({"sessionId": host.session, "wait": true}));
    host.settle();
    let asked = provider.asked();
    let invalid =
        asked.iter().filter_map(|asked| asked.refused.clone().filter(|refused| *refused != Trouble::Overflow));
    host.told.invalid = invalid.map(|trouble| format!("{trouble:?}")).collect();
    host.told.faults = met.lock().expect("a lock").clone();
    host.told
}

fn settings(run: &Run, provider: &Provider) -> String {
    let mut model = json!({"provider": "test", "id": "model"});
    if run.summarizer {
        model["api"] = json!(run.format.api());
        model["baseUrl"] = json!(provider.base_url());
    }
    match run.stated {
        Stated::Right => model["contextWindow"] = json!(run.window),
        Stated::Larger(percent) => model["contextWindow"] = json!(run.window * percent / 100),
        Stated::No => {}
    }
    json!({"models": [model], "retry": {"baseDelayMs": 100}}).to_string()
}

/// The answer of the model: a fault, a call, a text, or a summary where one is asked for.
fn answer(asked: &Asked, faults: &[Fault], met: &mut [usize], random: &mut Random) -> Step {
    if asked.body["tools"].is_null() {
        return good_model(asked);
    }
    let text = |random: &mut Random| format!("Answer. {}", text_of(random.within(20..400) as usize, "answer"));
    for (fault, met) in faults.iter().zip(met) {
        let (percent, step): (u64, fn(String) -> Step) = match *fault {
            Fault::TokensPerMinute(percent) => (percent, |_| Step::rate_limited(1)),
            Fault::Broken(percent) => (percent, |_| Step::server_error()),
            Fault::LengthText(percent) => (percent, |text| Step::answer(&text).stop(Stop::Length)),
            Fault::LengthCall(percent) => (percent, |_| Step::call("read", json!({"path": "src/"})).stop(Stop::Length)),
            Fault::LengthNothing(percent) => (percent, |_| Step::empty().stop(Stop::Length)),
            Fault::Overflow(percent) => (percent, |_| Step::overflow().header(wire::FAULT, "overflow")),
            Fault::CutOff(percent) => (percent, |text| Step::answer(&text).cut_after(0)),
        };
        if random.percent(percent) {
            *met += 1;
            return step(text(random));
        }
    }
    if random.percent(45) {
        let call = Step::call("read", json!({"path": format!("src/part_{}.rs", random.within(0..90))}));
        let second = random.percent(30);
        return if second { call.tool_call("read", json!({"path": "src/other.rs"})) } else { call };
    }
    Step::answer(&text(random))
}

impl Host {
    fn append(&mut self, messages: &[Value], beside: Value) -> Value {
        let mut params = json!({"sessionId": self.session, "format": self.run.format.api(), "messages": messages});
        for (name, value) in beside.as_object().expect("fields") {
            params[name] = value.clone();
        }
        self.daemon.ok("session/append", params)
    }

    /// Runs a turn to its end.
    fn turn(&mut self, turn: usize) -> TurnEnd {
        let marker = format!("Turn {turn}: ");
        let request = format!("{marker}{}", text_of(self.random.within(10..300) as usize, "ask"));
        self.append(&[wire::user(self.run.format, &request)], json!({}));
        let (mut failures, mut recovers) = (0, false);
        for _ in 0..LONGEST_TURN {
            let asked = json!({"sessionId": self.session, "format": self.run.format.api(), "wait": true});
            let context = match self.daemon.call("session/context", asked) {
                Ok(context) => context,
                Err(error) => {
                    assert_eq!(error["data"]["code"], "context_overflow", "{error}");
                    return TurnEnd::NoContext;
                }
            };
            let body = &context["body"];
            let text = body.to_string();
            for needed in [marker.as_str(), PIN] {
                if !text.contains(needed) {
                    self.told.lacking.push(format!("turn {turn}: {needed}"));
                }
            }
            self.told.requests += 1;
            let Some(response) = self.connection.post("model", body) else {
                // A host may report it, or only ask again.
                if self.random.percent(50) {
                    let lost = json!({"stopReason": "error", "errorMessage": "the connection was closed"});
                    assert_eq!(self.append(&[], lost)["next"], json!({"type": "none"}));
                }
                failures += 1;
                if failures == 4 {
                    return TurnEnd::Failed;
                }
                continue;
            };
            if response.status != 200 {
                let overflow = response.status == 400;
                if overflow && !response.fault {
                    self.told
                        .refused
                        .push(format!("turn {turn}, {}: {}", context["usage"]["contextTokens"], response.text));
                }
                if overflow && !response.fault && recovers {
                    self.told.refused_again.push(format!("turn {turn}: {}", response.text));
                }
                let failed = self.append(&[], json!({"stopReason": "error", "errorMessage": response.text}));
                recovers = failed["next"]["willRetry"] == true;
                if recovers {
                    assert!(overflow, "only an overflow is recovered from: {}", response.text);
                    continue;
                }
                failures += 1;
                if overflow || failures == 4 {
                    return if overflow { TurnEnd::Overflow } else { TurnEnd::Failed };
                }
                continue;
            }
            let whole: Value = serde_json::from_str(&response.text).expect("JSON");
            let answer = wire::answer(self.run.format, &whole);
            let appended = match self.random.percent(50) {
                // The whole answer has its end inside.
                true => self.append(&[whole], json!({})),
                false => self.append(&answer.messages, answer.beside),
            };
            recovers = appended["next"]["willRetry"] == true;
            if recovers {
                continue;
            }
            if answer.ended == Ended::Length {
                return TurnEnd::Cut;
            }
            if answer.calls.is_empty() {
                return TurnEnd::Answered;
            }
            let largest = self.run.largest_result;
            let sizes = answer.calls.iter().map(|_| self.random.within(5..largest) as usize);
            let texts: Vec<String> = sizes.map(|size| text_of(size, "part")).collect();
            for message in wire::results(self.run.format, &answer.calls, &texts) {
                self.append(&[message], json!({}));
            }
        }
        panic!("turn {turn} does not end: {:?}", self.run);
    }

    /// Compares starts with ends.
    fn settle(&mut self) {
        let events: Vec<&Value> = self.daemon.events.iter().map(|frame| &frame["params"]).collect();
        let mut open: BTreeMap<(String, String), i64> = BTreeMap::new();
        for event in events {
            let kind = event["event"]["type"].as_str().unwrap_or_default();
            let id = event["operationId"].as_str().unwrap_or_default().to_owned();
            self.told.compactions += usize::from(kind == "compaction_end" && event["event"]["outcome"] == "completed");
            self.told.recoveries += usize::from(kind == "recovery_start");
            if let Some(what) = kind.strip_suffix("_start") {
                *open.entry((what.to_owned(), id)).or_default() += 1;
            } else if let Some(what) = kind.strip_suffix("_end") {
                *open.entry((what.to_owned(), id)).or_default() -= 1;
            }
        }
        let unpaired = open.iter().filter(|(_, count)| **count != 0);
        self.told.unpaired = unpaired.map(|(key, count)| format!("{key:?}: {count}")).collect();
    }
}
