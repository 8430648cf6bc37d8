//! A session whose log and jobs are in the hands of a test.

use crate::{
    conversation::entry::{Header, HeaderKind, VERSION},
    log::{Log, memory::Disk},
    protocol::{events::Event, types::Outcome},
    session::{
        core::{Core, Input, Moment, command::Command},
        effects::{Answer, Effect, Sent, Ticket, TicketNumber},
        jobs::Job,
        log_work::{LogFacts, LogWork},
        state::{SessionData, State},
    },
    settings::{Layers, layers::Source, trust::Trust},
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::time::Instant;

/// A session whose log is in the hands of the test.
pub struct Held {
    /// The core.
    pub core: Core,
    /// The log.
    pub log: Box<dyn Log>,
    /// The time of the next input.
    pub at: Moment,
}

impl Held {
    /// A session of 40 messages; the first has another one behind it that is on a branch of its own.
    pub fn new() -> Self {
        Self::indexed_below(u64::MAX)
    }

    /// The same. Its index is made at the opening if the file has fewer than `bytes` bytes.
    pub fn indexed_below(bytes: u64) -> Self {
        let text = "Look at src/parser/part.rs and mend what its test says. ".repeat(8);
        let line = |id: &str, parent: Option<&str>| {
            let message = json!({"role": "user", "content": text, "timestamp": 1});
            let fields = json!({"type": "message", "id": id, "parentId": parent,
                "timestamp": "2026-01-01T00:00:00.000Z", "message": message});
            fields.to_string()
        };
        let ids: Vec<String> = (0..40).map(|at| format!("e{at}")).collect();
        let lines = ids.iter().enumerate().map(|(at, id)| line(id, at.checked_sub(1).map(|at| ids[at].as_str())));
        let lines: Vec<String> = lines
            .take(1)
            .chain([line("branch", Some("e0"))])
            .chain(ids.iter().enumerate().skip(1).map(|(at, id)| line(id, Some(&ids[at - 1]))))
            .collect();
        let header = Header {
            kind: HeaderKind::Session,
            version: VERSION,
            id: "held".into(),
            timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
            cwd: "/".to_owned(),
            parent_session: None,
            title: None,
            rest: Map::new(),
        };
        let disk = Disk::new(header, &lines).expect("a disk");
        disk.index_at_once(bytes);
        let opened = disk.open().expect("it opens");
        let layers = Layers::of(vec![(Source::Global, json!({"tokens": {"estimator": "chars"}}))]);
        let (given, trust) = (SessionData::default(), Trust::Trusted);
        let state = State::new(opened.header, None, opened.title, opened.history, given, None, &layers, trust);
        let at = Moment { now: Instant::now(), wall: Timestamp::UNIX_EPOCH, awake_elsewhere: 0, tokenizer: false };
        let facts = LogFacts::of(&*opened.log);
        let state = state.expect("a state");
        Self { core: Core::new(state, Vec::new(), facts, 1, &at), log: opened.log, at }
    }

    /// Gives an input to the core and takes the effects.
    pub fn feed(&mut self, input: Input) -> Vec<Effect> {
        self.core.on(&self.at, input);
        self.core.effects().take()
    }

    /// The ticket of a request.
    pub fn ticket(&self, number: TicketNumber) -> Ticket {
        self.core.effects().ticket(number, Sent::Alone)
    }

    /// Sends an extracted compaction.
    pub fn compact(&mut self, number: TicketNumber) {
        let params = json!({"sessionId": "held", "keepRecentTokens": 500, "wait": true, "method": "extractive"});
        let command = Command::Compact(serde_json::from_value(params).expect("params"));
        let ticket = self.ticket(number);
        self.feed(Input::Command(command, ticket));
    }

    /// Sends a message to append.
    pub fn append(&mut self, number: TicketNumber) {
        let params = json!({"sessionId": "held", "messages": [{"role": "user", "content": "go on", "timestamp": 1}]});
        let command = Command::Append(serde_json::from_value(params).expect("params"));
        let ticket = self.ticket(number);
        self.feed(Input::Command(command, ticket));
    }

    /// The facts about the log.
    pub fn facts(&self) -> LogFacts {
        LogFacts::of(&*self.log)
    }
}

/// The answer of a request: its result, or the code of its error.
pub fn answer(effects: &[Effect], number: TicketNumber) -> Option<Value> {
    effects.iter().find_map(|effect| match effect {
        Effect::Answer(of, Answer::Failed(failure)) if *of == number => Some(failure.data().code.to_string().into()),
        Effect::Answer(of, Answer::Result(result)) if *of == number => serde_json::from_str(result.get()).ok(),
        _ => None,
    })
}

/// The outcomes of the compactions that ended.
pub fn outcomes(effects: &[Effect]) -> Vec<Outcome> {
    let outcome = |effect: &Effect| match effect {
        Effect::Emit(_, Event::CompactionEnd { outcome, .. }) => Some(*outcome),
        _ => None,
    };
    effects.iter().filter_map(outcome).collect()
}

/// The work that the log was given.
pub fn log_work(effects: Vec<Effect>) -> Option<LogWork> {
    effects.into_iter().find_map(|effect| match effect {
        Effect::Log(work) => Some(work),
        _ => None,
    })
}

/// The job that was started.
pub fn job(effects: Vec<Effect>) -> Job {
    let job = effects.into_iter().find_map(|effect| match effect {
        Effect::Start(job) => Some(*job),
        _ => None,
    });
    job.expect("a job")
}
