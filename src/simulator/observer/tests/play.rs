//! A session made by hand, for streams of inputs and effects.

use super::super::*;
use crate::{
    compaction::request::{Cause, Initiator, PlanRequest},
    conversation::entry::{self, Entry, Header, HeaderKind, Stamps, raw},
    ids::{OperationId, SessionId},
    log::{Inside, Log, Unfinished, sealed::Blocking},
    models::learned::Learned,
    protocol::{
        events::{Event, Reason, RetrySource, Strategy},
        types::{Breakdown, CompactionResult, Extent, Outcome, Status, StatusKind, SummaryMethod, Usage, UsageSource},
    },
    session::{
        core::{Moment, command::Command},
        effects::{Effects, IdleTurn, Turning},
        jobs::{Authors, Job, PlanOrder},
        log_work::{AppendWork, LogFacts, LogWork},
        operations::idle,
        state::{SessionData, State},
        stop::Stop,
    },
    settings::{Layers, trust::Trust},
    wire::outbox::About,
};
use jiff::Timestamp;
use serde_json::json;
use std::{sync::Arc, time::Instant};

/// A session made by hand.
pub struct Play {
    pub observer: Observer,
    pub disk: Disk,
    pub log: Box<dyn Log>,
    pub stamps: Stamps,
    pub leaf: Option<EntryId>,
    /// The first entry that a compaction keeps: the newest message of the user.
    pub kept: Option<EntryId>,
    pub requests: TicketNumber,
}

pub fn moment() -> Moment {
    Moment { now: Instant::now(), wall: Timestamp::UNIX_EPOCH, awake_elsewhere: 0, tokenizer: false }
}

pub fn usage(tokens: u64) -> Usage {
    Usage {
        context_tokens: tokens,
        context_window: Some(1_000),
        percent: None,
        threshold_tokens: Some(800),
        reserve_tokens: 100,
        source: UsageSource::Estimate,
        auto_compaction: crate::compaction::resting::AutoCompaction::Set(true),
        window_source: "setting".to_owned(),
        can_undo: false,
        breakdown: Breakdown { system: 0, tools: 0, summary: 0, messages: tokens },
        estimator: "chars".to_owned(),
        cold_resume: None,
    }
}

pub fn compacting(operation: Option<&str>) -> Status {
    Status {
        kind: StatusKind::Compacting,
        operation_id: operation.map(OperationId::from),
        reason: Some("manual".to_owned()),
    }
}

pub fn start() -> Event {
    Event::CompactionStart {
        reason: Reason::Manual,
        strategy: Strategy::ContextFull,
        tokens_before: 500,
        context_window: 1_000,
        threshold_tokens: 800,
        will_retry: false,
    }
}

pub fn end(outcome: Outcome, result: Option<CompactionResult>) -> Event {
    Event::CompactionEnd {
        reason: Reason::Manual,
        outcome,
        result: result.map(Box::new),
        new_session_id: None,
        error: None,
        error_message: None,
        skipped_reason: None,
        will_retry: false,
        will_continue: false,
        duration_ms: 1,
        usage: usage(100),
    }
}

pub fn result(entry: &Entry, tokens_after: u64) -> CompactionResult {
    CompactionResult {
        form: None,
        saved: None,
        entry_id: Some(entry.id.clone()),
        summary: None,
        short_summary: None,
        first_kept_entry_id: None,
        tokens_before: 500,
        tokens_after,
        details: Value::Null,
        from_hook: false,
        method: SummaryMethod::Extractive,
        model: None,
        parts: None,
        rejected: Vec::new(),
        usage: None,
        covered: Extent::default(),
        kept: Extent::default(),
        lost: None,
        shortened: Vec::new(),
        rehydration: None,
    }
}

pub fn unfinished(operation: &str) -> Unfinished {
    Unfinished {
        operation_id: operation.into(),
        kind: "compaction".to_owned(),
        reason: "manual".to_owned(),
        started_at: String::new(),
        inside: Vec::new(),
    }
}

/// Operation `a` with these hooks and retries inside of it.
pub fn with(inside: Vec<Inside>) -> Unfinished {
    Unfinished { inside, ..unfinished("a") }
}

impl Play {
    pub fn new() -> Self {
        let header = Header {
            kind: HeaderKind::Session,
            version: entry::VERSION,
            id: SessionId::from("by-hand"),
            timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
            cwd: "/".to_owned(),
            parent_session: None,
            title: None,
            rest: serde_json::Map::new(),
        };
        let disk = Disk::new(header, &[]).expect("a disk");
        let mut observer = Observer::default();
        observer.opens(&disk, Access::Write).expect("an empty session");
        let log = disk.open().expect("it opens").log;
        Self {
            observer,
            disk,
            log,
            stamps: Stamps::seeded(1, Timestamp::UNIX_EPOCH),
            leaf: None,
            kept: None,
            requests: 0,
        }
    }

    pub fn send(&mut self, method: &'static str, params: Value) -> TicketNumber {
        self.send_as(method, params, Sent::Alone)
    }

    pub fn send_as(&mut self, method: &'static str, params: Value, sent: Sent) -> TicketNumber {
        self.requests += 1;
        self.observer.sent(self.requests, method, params, sent);
        self.requests
    }

    pub fn entry(&mut self, kind: &str, fields: &[(&str, Value)]) -> Arc<Entry> {
        let stamp = self.stamps.stamp();
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, raw(value))).collect();
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, &**value)).collect();
        let line = entry::line(kind, &stamp, self.leaf.as_ref(), &fields);
        self.leaf = Some(stamp.id);
        Arc::new(Entry::parse(line.into()).expect("an entry"))
    }

    pub fn says(&mut self, text: &str) -> Arc<Entry> {
        self.entry("message", &[("message", json!({"role": "user", "content": text, "timestamp": 1}))])
    }

    pub fn compaction(&mut self) -> Arc<Entry> {
        let fields =
            [("summary", json!("short")), ("firstKeptEntryId", json!(self.kept)), ("tokensBefore", json!(500))];
        self.entry("compaction", &fields)
    }

    pub fn effect(&mut self, effect: Effect) -> Verdict {
        self.observer.performed(&effect, &self.disk)?;
        match effect {
            Effect::Record(operations) => self.log.register().expect("a lock").record(operations),
            Effect::Log(work) => {
                let done = work.run(&mut *self.log, &Blocking::is_allowed_here());
                let facts = LogFacts::of(&*self.log);
                self.observer.feeds(&Input::Log(Some(done), facts));
            }
            _ => {}
        }
        Ok(())
    }

    pub fn write(&mut self, entries: &[Arc<Entry>]) -> Verdict {
        self.effect(Effect::Log(LogWork::Append(Box::new(AppendWork {
            entries: entries.to_vec(),
            leaf: None,
            continues: true,
            source: None,
            library: None,
            adds: None,
            leads_to: None,
            count: None,
        }))))
    }

    pub fn answer(&mut self, request: TicketNumber, result: &Value) -> Verdict {
        self.effect(Effect::Answer(request, Answer::ok(result)))
    }

    pub fn emit(&mut self, operation: Option<&str>, event: Event) -> Verdict {
        self.effect(Effect::Emit(About::of(operation.map(OperationId::from), &event), event))
    }

    pub fn announce(&mut self, entry: &Entry, operation: Option<&str>) -> Verdict {
        let event = Event::EntryAppended { entry: None, entry_type: Some(entry.kind.clone()) };
        let about = About { entry: Some(entry.id.clone()), operation: operation.map(OperationId::from), turn: None };
        self.effect(Effect::Emit(about, event))
    }

    pub fn publish(&mut self, status: Status) -> Verdict {
        self.effect(Effect::Publish(status))
    }

    pub fn status(&mut self, status: Status) -> Verdict {
        self.emit(None, Event::StatusChanged { status })
    }

    /// An append from its request to its events.
    pub fn append(&mut self, text: &str) -> Result<Arc<Entry>, Violation> {
        let request = self.send("session/append", json!({"messages": [{"role": "user", "content": text}]}));
        let entry = self.says(text);
        self.kept = Some(entry.id.clone());
        self.write(std::slice::from_ref(&entry))?;
        self.answer(request, &appended(&entry))?;
        self.announce(&entry, None)?;
        Ok(entry)
    }

    /// A request for a compaction, its answer and its start.
    pub fn started(&mut self, operation: &str) -> Verdict {
        let request = self.send("session/compact", json!({}));
        self.effect(Effect::Record(vec![unfinished(operation)]))?;
        self.publish(compacting(Some(operation)))?;
        self.answer(request, &json!({"operationId": operation}))?;
        self.status(compacting(Some(operation)))?;
        self.emit(Some(operation), start())
    }

    /// The lock lists operation `a` with these hooks and retries inside of it.
    pub fn records(&mut self, inside: Vec<Inside>) -> Verdict {
        self.effect(Effect::Record(vec![with(inside)]))
    }

    /// The steps after an end.
    pub fn settles(&mut self) -> Verdict {
        self.status(idle())?;
        self.emit(None, Event::Settled { aborted: false })?;
        self.effect(Effect::Record(Vec::new()))
    }

    /// The write of a compaction, up to the published status.
    pub fn written(&mut self, operation: &str) -> Result<Arc<Entry>, Violation> {
        let compaction = self.compaction();
        self.write(std::slice::from_ref(&compaction))?;
        self.announce(&compaction, Some(operation))?;
        self.emit(Some(operation), Event::UsageUpdated { usage: usage(100) })?;
        self.publish(idle())?;
        Ok(compaction)
    }

    pub fn cancel(&mut self, params: Value) -> TicketNumber {
        let request = self.send("session/cancel", params);
        let ticket = Effects::default().ticket(request, Sent::Alone);
        self.observer.feeds(&Input::Cancel(None, ticket));
        request
    }

    /// A request, up to the core.
    pub fn reaches(&mut self, method: &'static str, params: Value) -> TicketNumber {
        let request = self.send(method, params);
        let ticket = Effects::default().ticket(request, Sent::Alone);
        self.observer.feeds(&Input::Command(Command::with(|_, _| {}), ticket));
        request
    }

    /// A panic in work on the log.
    pub fn loses_log(&mut self) {
        let facts = LogFacts::of(&*self.log);
        self.observer.feeds(&Input::Log(None, facts));
    }

    /// The order of a plan for these entries.
    pub fn order(&self, operation: &str, entries: &[Arc<Entry>], stop: Stop) -> PlanOrder {
        let core = self.core();
        let state = core.state();
        let request = PlanRequest {
            is_counted: true,
            path: Path::of(entries),
            settings: state.settings().clone(),
            model: None,
            learned: Learned::default(),
            instructions: state.instructions().clone(),
            cwd: None,
            keep_recent_tokens: None,
            initiator: Initiator::User,
            cause: Cause::Asked,
            insists: false,
        };
        PlanOrder { id: operation.into(), request, authors: Authors::Anyone, former: None, stop }
    }

    pub fn plans(&mut self, operation: &str, entries: &[Arc<Entry>]) -> Result<Stop, Violation> {
        let stop = Stop::default();
        let order = self.order(operation, entries, stop.clone());
        self.effect(Effect::Start(Box::new(Job::Plan(order))))?;
        Ok(stop)
    }

    /// The turn of the session for idle maintenance comes, and a tick begins.
    pub fn has_turn(&mut self) -> Verdict {
        self.effect(Effect::IdleTurn(Turning::Ask))?;
        self.observer.feeds(&Input::IdleTurn(IdleTurn::Comes));
        self.observer.feeds(&Input::Tick);
        Ok(())
    }

    pub fn core_of(disk: &Disk) -> Core {
        let opened = disk.open_read_only().expect("it opens");
        let layers = Layers::default();
        let given = SessionData::default();
        let state = State::new(opened.header, None, opened.title, opened.history, given, None, &layers, Trust::Trusted);
        let state = state.expect("a state");
        let facts = LogFacts::of(&*opened.log);
        Core::new(state, Vec::new(), facts, 1, &moment())
    }

    pub fn core(&self) -> Core {
        Self::core_of(&self.disk)
    }

    /// An input is over.
    pub fn done(&mut self) -> Verdict {
        let core = self.core();
        self.observer.after_input(&core, &self.disk)
    }

    pub fn rests(&mut self) -> Verdict {
        let core = self.core();
        self.observer.at_rest(&core, &self.disk)
    }

    pub fn crash(&mut self) {
        self.disk.crash();
        self.observer.crashed();
    }

    pub fn opens(&mut self) -> Verdict {
        self.observer.opens(&self.disk, Access::Write)?;
        self.log = self.disk.open().expect("it opens").log;
        Ok(())
    }
}

pub fn appended(entry: &Entry) -> Value {
    json!({"entryIds": [entry.id], "leafEntryId": entry.id})
}

/// The same at this size, with an operation that follows.
pub fn appended_before(entry: &Entry, next: &str, tokens: u64) -> Value {
    json!({"entryIds": [entry.id], "leafEntryId": entry.id, "usage": usage(tokens),
        "next": {"type": "maintenance", "operationId": next, "reason": "threshold"}})
}

pub fn retry() -> Event {
    Event::RetryStart {
        source: RetrySource::History,
        attempt: 1,
        max_attempts: 3,
        delay_ms: 100,
        error: Failure::Cancelled.data(),
        error_message: String::new(),
    }
}

pub fn retry_end(success: bool) -> Event {
    Event::RetryEnd { source: RetrySource::History, success, attempt: 1, error: None, error_message: None }
}
