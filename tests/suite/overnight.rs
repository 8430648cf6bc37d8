//! An agent that works for a long time: turns with tools in every format, a window that the provider enforces, faults of the
//! provider, messages in between, cancels, compactions and kills.

use crate::{
    provider::{Asked, Format, Provider, Step, Stop, Trouble},
    summarizing::good_model,
    support::{Daemon, at_once, text_of},
    turning::{daemon, event, kind, text_in},
    wire::{Dice, cases},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

/// Longer than a turn takes, even on a busy machine.
const LONG: Duration = Duration::from_secs(120);

const WINDOW: u64 = 32_000;

/// A model with a tool. It reads some files of a few thousand tokens, then it says that it is done. A part of its answers fail.
fn worker(seed: u64) -> impl Fn(&Asked) -> Step + Send + Sync {
    let (dice, number, refused) = (Mutex::new(Dice::new(seed)), AtomicU64::new(0), AtomicU64::new(0));
    move |asked: &Asked| {
        if !asked.body.to_string().contains("Reads a file.") || asked.text().contains("at most two sentences") {
            return good_model(asked);
        }
        let mut dice = dice.lock().expect("dice");
        let path = || json!({"path": format!("file {}", number.fetch_add(1, Relaxed))});
        let works = Step::call("read", path());
        match dice.roll() % 40 {
            0 => Step::server_error(),
            1 => Step::overloaded(),
            2 => Step::answer("I begin to read.").pieces(6).cut_after(3),
            3 => Step::answer("I begin to read.").pieces(3).error_in_stream(Trouble::Overloaded),
            // A window that is not full. Three such refusals in a row end a turn.
            4 if number.load(Relaxed) > refused.swap(number.load(Relaxed), Relaxed) + 2 => Step::overflow(),
            5 => Step::answer("I read until there is no").stop(Stop::Length),
            6 => works.stop(Stop::Length),
            7 => Step::call("write", path()),
            8 => Step::answer("Done with it.").pieces(5).split_utf8(),
            9 => Step::answer("I read several.")
                .tool_call("read", path())
                .tool_call("read", path())
                .tool_call("read", path()),
            10..28 => works,
            _ => Step::answer("Done with it.").pieces(3),
        }
    }
}

/// A client, and its record of a session.
struct Client {
    daemon: Daemon,
    session: String,
    dice: Dice,
    /// Messages that were accepted.
    sent: Vec<String>,
    /// Turns without an end.
    open: BTreeSet<String>,
    /// The number of turns that ended, by their outcome.
    ends: BTreeMap<String, usize>,
    /// Calls that were executed, each with its turn.
    executed: BTreeSet<(String, String)>,
    compactions: usize,
    kills: usize,
}

impl Client {
    /// Sends a message. Returns whether it was accepted.
    fn prompt(&mut self, behavior: &str) -> bool {
        let message = format!("Task {}: {}", self.sent.len(), text_of(60, "task"));
        let params = json!({"sessionId": self.session, "message": message, "behavior": behavior});
        let id = self.daemon.begin("session/prompt", params);
        let is_accepted = self.daemon.answer(id).is_ok();
        if is_accepted {
            self.sent.push(message);
        }
        is_accepted
    }

    /// Looks at a frame, and executes the tool that it asks for.
    fn take(&mut self, frame: &Value) {
        let of = |name: &str| frame["params"][name].as_str().unwrap_or_default().to_owned();
        match kind(frame) {
            "turn_start" => assert!(self.open.insert(of("turnId")), "{frame} starts again"),
            "turn_end" => {
                let is_left =
                    event(frame)["errorMessage"].as_str().is_some_and(|it| it.contains("the process that ran it"));
                assert!(self.open.remove(&of("turnId")) || is_left, "{frame} ends, and has not started");
                assert!(event(frame)["outcome"] != "failed" || is_left, "{frame} fails");
                *self.ends.entry(event(frame)["outcome"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
            }
            "compaction_end" => self.compactions += 1,
            "tool/call" => {
                let call = (of("turnId"), of("toolCallId") + &frame["params"]["arguments"].to_string());
                assert!(self.executed.insert(call), "{frame} is asked for twice");
                let (tokens, fails) = (100 + self.dice.roll() % 4_000, self.dice.roll() < u64::MAX / 8);
                let tokens = usize::try_from(tokens).expect("a size");
                let result = json!({"content": text_of(tokens, "file"), "isError": fails});
                self.daemon.send(&json!({"jsonrpc": "2.0", "id": frame["id"], "result": result}));
            }
            _ => {}
        }
    }

    /// Serves the session until it settles with an empty queue. An impatient person is among its users.
    fn serve(&mut self) {
        let mut frames = std::mem::take(&mut self.daemon.events);
        let end = Instant::now() + LONG;
        let mut has_settled = false;
        loop {
            for frame in frames.drain(..) {
                // Work that starts ends with another `settled`. A count or a notice may follow one.
                has_settled = kind(&frame) == "settled" || has_settled && !kind(&frame).ends_with("_start");
                self.take(&frame);
            }
            if has_settled && self.is_at_rest() {
                return;
            }
            match self.dice.roll() % 300 {
                0 => drop(self.prompt("steer")),
                1 => drop(self.prompt("follow_up")),
                2 => drop(self.daemon.ok("session/cancel", json!({"sessionId": self.session}))),
                3 => {
                    let id = self.daemon.begin("session/compact", json!({"sessionId": self.session}));
                    let _ = self.daemon.answer(id);
                }
                4 => return self.kill(),
                _ => {}
            }
            frames.append(&mut self.daemon.events);
            if frames.is_empty() {
                let left = end.saturating_duration_since(Instant::now());
                let frame = self.daemon.frame_within(left).unwrap_or_else(|| panic!("{:?} does not end", self.open));
                frames.push(frame);
            }
        }
    }

    /// Takes frames until the session is at rest. It may have settled before.
    fn rest(&mut self) {
        let end = Instant::now() + LONG;
        while !self.is_at_rest() {
            let mut frames = std::mem::take(&mut self.daemon.events);
            if frames.is_empty() {
                let left = end.saturating_duration_since(Instant::now());
                frames.push(self.daemon.frame_within(left).unwrap_or_else(|| panic!("{:?} does not end", self.open)));
            }
            frames.iter().for_each(|frame| self.take(frame));
        }
    }

    fn is_at_rest(&mut self) -> bool {
        let status = self.daemon.ok("session/status", json!({"sessionId": self.session}));
        self.daemon.events.is_empty() && status["session"]["status"]["type"] == "idle"
    }

    /// The process dies, and another one ends its turns.
    fn kill(&mut self) {
        self.kills += 1;
        self.daemon.kill();
        // Frames that nobody has read are lost, an end of a turn among them.
        self.open.clear();
        let home = std::mem::replace(&mut self.daemon.home, crate::support::Home::new());
        self.daemon = Daemon::at(home);
        self.daemon.ok("session/load", json!({"sessionId": self.session}));
    }
}

/// The messages in a session file: role and text.
fn messages_of(file: &str) -> Vec<(String, String)> {
    let file = fs::read_to_string(file).expect("a file");
    let entries = file.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let messages = entries.filter(|entry| entry["type"] == "message").map(|entry| entry["message"].clone());
    messages.map(|message| (message["role"].as_str().expect("a role").to_owned(), text_in(&message))).collect()
}

#[test]
fn an_agent_works_through_a_night() {
    let turns = cases("ABRIDGED_TURNS", 10, 250) as usize;
    at_once(Format::ALL, |format| {
        let provider = Provider::start(format);
        provider.strict(true).window(WINDOW).otherwise(worker(7));
        let limits = json!({"models": [{"provider": "test", "id": "model", "api": format.api(),
            "baseUrl": provider.base_url(), "contextWindow": WINDOW, "maxOutputTokens": 2_000}],
            "retry": {"baseDelayMs": 100, "maxRetries": 8}, "compaction": {"keepRecentTokens": 4_000}});
        let (daemon, session) = daemon(&provider, format, limits);
        let mut client = Client {
            daemon,
            session,
            dice: Dice::new(11),
            sent: Vec::new(),
            open: BTreeSet::new(),
            ends: BTreeMap::new(),
            executed: BTreeSet::new(),
            compactions: 0,
            kills: 0,
        };
        while client.ends.values().sum::<usize>() < turns {
            match client.prompt("follow_up") {
                true => client.serve(),
                false => client.rest(),
            }
            provider.forget_bodies();
        }
        client.rest();
        let Client { mut daemon, session, sent, open, ends, executed, compactions, kills, .. } = client;
        let numbers =
            format!("{format:?}: {ends:?}, {compactions} compactions, {kills} kills, {} calls", executed.len());
        eprintln!("{numbers}");
        assert!(open.is_empty(), "{numbers}: {open:?}");
        assert!(compactions > 0 && ends["completed"] > turns / 2, "{numbers}");
        let status = daemon.ok("session/status", json!({"sessionId": session}));
        let queue = status["queue"].to_string();
        let said = messages_of(status["session"]["path"].as_str().expect("a file"));
        for message in &sent {
            let delivered = said.iter().filter(|(role, text)| role == "user" && text == message).count();
            let waits = usize::from(queue.contains(message.as_str()));
            assert_eq!(delivered + waits, 1, "{numbers}: {message}");
        }
        let results = said.iter().filter(|(role, _)| role == "toolResult").count();
        assert!(results > executed.len() / 2, "{numbers}, {results} results");
        let refused: Vec<_> = provider.asked().into_iter().filter_map(|it| it.refused).collect();
        assert!(refused.iter().all(|it| *it == Trouble::Overflow), "{numbers}: {refused:?}");
        assert!(refused.len() <= turns / 10 + 1, "{numbers}: {} requests over the window", refused.len());
    });
}
