//! A session whose log and jobs are in the hands of a test.

use crate::{
    ask::{purpose::Purpose, request::Update, spent::Spent},
    compaction::{draft::Draft, ladder},
    conversation::{
        entry::{Header, HeaderKind, VERSION},
        message::Usage,
        spending::Trigger,
    },
    log::{Log, error::StoreError, files::Opened, memory::Disk, sealed::Blocking},
    models::{ModelRef, learned::Learned},
    protocol::{
        events::{Event, Reason},
        types::Outcome,
    },
    session::{
        core::{
            Core, Input, Moment,
            command::{Command, CommandMethod, SessionMethod},
            edit::EditMethod,
        },
        effects::{Answer, Effect, Sent, Ticket, TicketNumber},
        jobs::{self, DraftOrder, Job, PlanMade, PlanOrder, progress::Progress},
        log_work::{LogDone, LogFacts, LogWork},
        state::{Capabilities, ModelChoice, SessionData, State},
    },
    settings::{Layers, layers::Source, trust::Trust},
    summary::{cleaner::Cleaner, model::writer::Step},
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
    /// The file.
    pub disk: Disk,
    /// The time of the next input.
    pub at: Moment,
}

/// A window of a model as two refusals state it.
pub fn learned(model: &str, window: u64) -> Learned {
    let row = json!({"model": model, "contextWindow": window, "origin": "refusal", "refusals": 2});
    serde_json::from_value(json!({"windows": [row], "forgotten": {}})).expect("windows")
}

/// A line of a file.
pub fn line(id: &str, parent: Option<&str>, kind: &str, fields: Value) -> String {
    let mut line = json!({"type": kind, "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z"});
    if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
        line.extend(fields);
    }
    line.to_string()
}

/// The text of a message.
fn text() -> String {
    "Look at src/parser/part.rs and mend what its test says. ".repeat(8)
}

/// A line with a message of a user.
pub fn message(id: &str, parent: Option<&str>) -> String {
    line(id, parent, "message", json!({"message": {"role": "user", "content": text(), "timestamp": 1}}))
}

/// A line with an answer.
fn answer_line(id: &str, parent: Option<&str>) -> String {
    let content = json!([{"type": "text", "text": text()}]);
    let answer = json!({"role": "assistant", "content": content, "stopReason": "stop", "timestamp": 1});
    line(id, parent, "message", json!({ "message": answer }))
}

/// 40 messages, `e0` to `e39`, of which `e38` is an answer, which shows that a model has read those before it; `e0` has another
/// one after it that is on a branch of its own.
pub fn messages() -> Vec<String> {
    let first = [message("e0", None), message("branch", Some("e0"))];
    let rest = (1..40).map(|at| {
        let (id, parent) = (format!("e{at}"), format!("e{}", at - 1));
        if at == 38 { answer_line(&id, Some(&parent)) } else { message(&id, Some(&parent)) }
    });
    first.into_iter().chain(rest).collect()
}

/// The messages, and a compaction after them that keeps from `e10` on.
pub fn compacted_messages() -> Vec<String> {
    let fields = json!({"summary": "A parser was mended.", "firstKeptEntryId": "e10", "tokensBefore": 100});
    messages().into_iter().chain([line("c1", Some("e39"), "compaction", fields)]).collect()
}

impl Held {
    /// A session of these messages with its index.
    pub fn new() -> Self {
        Self::indexed_below(u64::MAX)
    }

    /// The same. Its index is made at the opening if the file has fewer than `bytes` bytes.
    pub fn indexed_below(bytes: u64) -> Self {
        Self::of(&messages(), bytes)
    }

    /// A session of these lines.
    pub fn of(lines: &[String], indexed_below: u64) -> Self {
        let disk = disk(lines, indexed_below);
        let opened = disk.open().expect("it opens");
        Self::opened(disk, opened, SessionData::default(), None)
    }

    /// A session that is only read.
    pub fn read_only() -> Self {
        Self::read_only_of(&messages())
    }

    /// The same with these lines.
    pub fn read_only_of(lines: &[String]) -> Self {
        let disk = disk(lines, u64::MAX);
        let opened = disk.open_read_only().expect("it opens");
        Self::opened(disk, opened, SessionData::default(), None)
    }

    /// A session of these lines whose file the user does not trust.
    pub fn untrusted(lines: &[String]) -> Self {
        let disk = disk(lines, u64::MAX);
        let opened = disk.open().expect("it opens");
        Self::trusted_so_far(disk, opened, SessionData::default(), None, Trust::Untrusted)
    }

    /// A session for which the client gave these data and this model when it opened it.
    pub fn given(data: SessionData, model: ModelRef) -> Self {
        Self::given_lines(&messages(), data, model)
    }

    /// The same with these lines.
    pub fn given_lines(lines: &[String], data: SessionData, model: ModelRef) -> Self {
        let disk = disk(lines, u64::MAX);
        let opened = disk.open().expect("it opens");
        Self::opened(disk, opened, data, Some(model))
    }

    /// The session, opened again after its process died.
    pub fn reopened(self) -> Self {
        let Self { core, log, disk, .. } = self;
        drop((core, log));
        disk.crash();
        let opened = disk.open().expect("it opens");
        Self::opened(disk, opened, SessionData::default(), None)
    }

    /// The same, opened to read.
    pub fn reopened_read_only(self) -> Self {
        let Self { core, log, disk, .. } = self;
        drop((core, log));
        disk.crash();
        let opened = disk.open_read_only().expect("it opens");
        Self::opened(disk, opened, SessionData::default(), None)
    }

    fn opened(disk: Disk, opened: Opened, given: SessionData, model: Option<ModelRef>) -> Self {
        Self::trusted_so_far(disk, opened, given, model, Trust::Trusted)
    }

    fn trusted_so_far(disk: Disk, opened: Opened, given: SessionData, model: Option<ModelRef>, trust: Trust) -> Self {
        let layers = Layers::of(vec![(Source::Global, json!({"tokens": {"estimator": "chars"}}))]);
        let state = State::new(opened.header, None, opened.title, opened.history, given, model, &layers, trust);
        let at = Moment { now: Instant::now(), wall: Timestamp::UNIX_EPOCH, awake_elsewhere: 0, tokenizer: false };
        let (facts, left_behind) = (LogFacts::of(&*opened.log), opened.left_behind);
        let state = state.expect("a state");
        Self { core: Core::new(state, left_behind, facts, 1, &at), log: opened.log, disk, at }
    }

    /// Gives an input to the core and takes the effects.
    pub fn feed(&mut self, input: Input) -> Vec<Effect> {
        self.core.on(&self.at, input);
        self.core.effects().take()
    }

    /// The next unit of work.
    pub fn turn(&mut self) -> Vec<Effect> {
        self.feed(Input::Turn)
    }

    /// The ticket of a request.
    pub fn ticket(&self, number: TicketNumber) -> Ticket {
        self.core.effects().ticket(number, Sent::Alone)
    }

    /// Sends a request.
    pub fn send(&mut self, number: TicketNumber, command: Command) {
        let ticket = self.ticket(number);
        self.feed(Input::Command(command, ticket));
    }

    /// Sends a request in a batch.
    pub fn send_in_batch(&mut self, number: TicketNumber, command: Command) {
        let ticket = self.core.effects().ticket(number, Sent::InBatch);
        self.feed(Input::Command(command, ticket));
    }

    /// Sends a request of a kind of its own.
    pub fn command<M: CommandMethod>(&mut self, number: TicketNumber, params: Value) {
        self.send(number, M::command(serde_json::from_value(of_session(params)).expect("params")));
    }

    /// Sends a request that writes nothing.
    pub fn call<M: SessionMethod>(&mut self, number: TicketNumber, params: Value) {
        self.send(number, Command::call::<M>(serde_json::from_value(of_session(params)).expect("params")));
    }

    /// Sends a request that writes entries.
    pub fn edit<M: EditMethod>(&mut self, number: TicketNumber, params: Value) {
        self.send(number, Command::edit::<M>(serde_json::from_value(of_session(params)).expect("params")));
    }

    /// Sends a message to append.
    pub fn append(&mut self, number: TicketNumber) {
        self.append_with(number, json!({}));
    }

    /// Sends an append with these params, of one message where they name none.
    pub fn append_with(&mut self, number: TicketNumber, params: Value) {
        let mut params = of_session(params);
        if params["messages"].is_null() {
            params["messages"] = json!([{"role": "user", "content": "go on", "timestamp": 1}]);
        }
        self.send(number, Command::Append(serde_json::from_value(params).expect("params")));
    }

    /// Appends a message of a user, and returns the effects after its write.
    pub fn write(&mut self, number: TicketNumber) -> Vec<Effect> {
        self.write_with(number, json!({}))
    }

    /// The same with this message.
    pub fn write_message(&mut self, number: TicketNumber, message: &Value) -> Vec<Effect> {
        self.write_with(number, json!({ "messages": [message] }))
    }

    /// The same with these params. A session that slept reads its path first.
    pub fn write_with(&mut self, number: TicketNumber, params: Value) -> Vec<Effect> {
        self.append_with(number, params);
        loop {
            let work = log_work(self.turn()).expect("work on the log");
            let is_read = matches!(work, LogWork::Fetch(_) | LogWork::Wake(..));
            let effects = self.back(work);
            if !is_read {
                return effects;
            }
        }
    }

    /// Sends an extracted compaction.
    pub fn compact(&mut self, number: TicketNumber) {
        let params = of_session(json!({"keepRecentTokens": 500, "wait": true, "method": "extractive"}));
        self.send(number, Command::Compact(serde_json::from_value(params).expect("params")));
    }

    /// Sends a cancel of all that runs.
    pub fn cancel(&mut self, number: TicketNumber) -> Vec<Effect> {
        let ticket = self.ticket(number);
        self.feed(Input::Cancel(None, ticket))
    }

    /// Sends a compaction, and goes on until its draft is to be made.
    pub fn begin_draft(&mut self, number: TicketNumber) -> DraftOrder {
        self.compact(number);
        let order = plan_order(self.turn());
        let id = order.id.clone();
        draft_order(self.feed(Input::Planned(id, Ok(plan(order)))))
    }

    /// From here on the client asks the model that a context names.
    pub fn switches_models(&mut self) {
        self.core
            .base
            .state
            .set_capabilities(Capabilities { model_choice: ModelChoice::Context, ..Capabilities::default() });
    }

    /// Estimated tokens of a request with the context at the leaf, without any factor.
    pub fn plain_request(&self) -> u64 {
        let state = self.core.state();
        let (system, tools) = state.instructions().tokens(state.estimator());
        state.meter(state.estimator()).sent() + system + tools
    }

    /// Work on the log is done, and the log comes back.
    pub fn back(&mut self, work: LogWork) -> Vec<Effect> {
        let done = work.run(&mut *self.log, &Blocking::is_allowed_here());
        let facts = self.facts();
        self.feed(Input::Log(Some(done), facts))
    }

    /// The log comes back without a result.
    pub fn lose_log(&mut self) -> Vec<Effect> {
        let facts = self.facts();
        self.feed(Input::Log(None, facts))
    }

    /// The write that is out fails.
    pub fn refuse_write(&mut self) -> Vec<Effect> {
        let error = StoreError::Changed { path: "/held".into(), what: "it was cut".to_owned() };
        let failed = LogDone::Wrote { appended: Err(error), path: None, undone: None, added: Vec::new() };
        let facts = self.facts();
        self.feed(Input::Log(Some(failed), facts))
    }

    /// The facts about the log.
    pub fn facts(&self) -> LogFacts {
        LogFacts::of(&*self.log)
    }
}

fn disk(lines: &[String], indexed_below: u64) -> Disk {
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
    let disk = Disk::new(header, lines).expect("a disk");
    disk.index_at_once(indexed_below);
    disk
}

fn of_session(mut params: Value) -> Value {
    params["sessionId"] = "held".into();
    params
}

/// The result of a job that builds an index.
pub fn built(job: Job) -> Input {
    let Job::Index(work, stop) = job else { unreachable!("an index is built") };
    Input::Indexed(jobs::index(work, &stop, &Blocking::is_allowed_here()))
}

/// A plan as its job makes it, without a model.
pub fn plan(order: PlanOrder) -> PlanMade {
    let planned = order.request.plan(&|| false).unwrap_or_else(|_| unreachable!("there is enough to compact"));
    PlanMade { planned, candidates: Vec::new(), native: None, only: None }
}

/// A draft as its job makes it, without a model.
pub fn draft(order: DraftOrder) -> Draft {
    let draft = ladder::extracted(
        order.plan,
        &order.settings.settings,
        &Cleaner::new(&order.settings.settings),
        Default::default(),
        &|| false,
    );
    draft.unwrap_or_else(|_| unreachable!("it fits"))
}

/// The report of a draft on a cost.
pub fn cost() -> Progress {
    let model = ModelRef { provider: "scripted".to_owned(), id: "writer".to_owned() };
    let usage = Usage { input: 10, output: 1, cache_read: 0, cache_write: 0, total: 11 };
    let spent = Step::Request(
        Purpose::Compaction,
        Update::Spent(Spent {
            purpose: Purpose::Compaction,
            model,
            trigger: Trigger::Threshold,
            usage,
            estimated: false,
            sent: 0,
        }),
    );
    Progress::Summary(spent)
}

/// The events that were sent.
pub fn events(effects: &[Effect]) -> impl Iterator<Item = &Event> {
    effects.iter().filter_map(|effect| match effect {
        Effect::Emit(_, event) => Some(event),
        _ => None,
    })
}

/// The titles of the notices that were sent.
pub fn notices(effects: &[Effect]) -> Vec<&str> {
    let mut titles = Vec::new();
    for event in events(effects) {
        if let Event::Notice { title, .. } = event {
            titles.push(title.as_str());
        }
    }
    titles
}

/// The reasons of the compactions that started.
pub fn started(effects: &[Effect]) -> Vec<Reason> {
    let start = |event: &Event| match event {
        Event::CompactionStart { reason, .. } => Some(*reason),
        _ => None,
    };
    events(effects).filter_map(start).collect()
}

/// The operation that each `status_changed` names.
pub fn named(effects: &[Effect]) -> Vec<Option<String>> {
    let status = |event: &Event| match event {
        Event::StatusChanged { status } => Some(status.operation_id.as_ref().map(ToString::to_string)),
        _ => None,
    };
    events(effects).filter_map(status).collect()
}

/// The numbers of `usage_updated` that were sent.
pub fn usages(effects: &[Effect]) -> usize {
    events(effects).filter(|event| matches!(event, Event::UsageUpdated { .. })).count()
}

/// The requests that were answered, in order.
pub fn answered(effects: &[Effect]) -> Vec<TicketNumber> {
    let number = |effect: &Effect| match effect {
        Effect::Answer(number, _) => Some(*number),
        _ => None,
    };
    effects.iter().filter_map(number).collect()
}

/// The work that was given to the log.
pub fn log_work(effects: Vec<Effect>) -> Option<LogWork> {
    effects.into_iter().find_map(|effect| match effect {
        Effect::Log(work) => Some(work),
        _ => None,
    })
}

/// The types of the entries of an append that was given to the log, or an empty list.
pub fn written(work: Option<&LogWork>) -> Vec<String> {
    match work {
        Some(LogWork::Append(work)) => work.entries.iter().map(|entry| entry.kind.clone()).collect(),
        _ => Vec::new(),
    }
}

fn plan_order(effects: Vec<Effect>) -> PlanOrder {
    let Job::Plan(order) = job(effects) else { unreachable!("a compaction is planned first") };
    order
}

fn draft_order(effects: Vec<Effect>) -> DraftOrder {
    let Job::Draft(order) = job(effects) else { unreachable!("a plan leads to a draft") };
    order
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

/// The job that was started.
pub fn job(effects: Vec<Effect>) -> Job {
    let job = effects.into_iter().find_map(|effect| match effect {
        Effect::Start(job) => Some(*job),
        _ => None,
    });
    job.expect("a job")
}
