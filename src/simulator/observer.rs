//! The checker of the simulator: it sees what a client and a reader of the disk see, and states every rule a second time.
//!
//! It knows nothing of the decisions of a core. The world tells it each request that goes in and each effect before it acts
//! on the effect. A file of `observer/` holds the rules of one subject; [`Rule`] lists them all.

mod ahead;
mod budget;
mod calls;
mod cancels;
mod contexts;
mod due;
mod events;
mod file;
mod founded;
mod hooks;
mod idle;
mod later;
mod limits;
mod names;
mod operations;
mod prunings;
mod recoveries;
mod requests;
mod rules;
mod status;
mod turns;

#[cfg(test)]
mod tests;

use crate::{
    ask::request::Update,
    compaction::request::Cause,
    conversation::path::Path,
    ids::{EntryId, OperationId},
    log::{Access, memory::Disk},
    models::learned::Change,
    protocol::errors::Failure,
    session::{
        core::{Core, Input, standing::load::Load},
        effects::{Answer, Effect, Sent, TicketNumber},
        jobs::{Job, progress::Progress, turn::TurnOrder},
        log_work::LogDone,
        operations::Follows,
    },
    simulator::{hooks::Called, lies::Truth, lies::exchanges::Exchange},
    summary::model::writer::Step,
};
use budget::Budget;
use calls::Calls;
use cancels::Cancels;
use contexts::Contexts;
use file::File;
use hooks::Hooks;
use idle::Idling;
use later::Later;
pub use names::named;
use operations::Operations;
use recoveries::Recoveries;
use requests::{Asked, Requests};
pub use rules::Rule;
pub use rules::spending::Clocks;
use rules::spending::Spending;
use rules::trust::Trust;
use serde_json::Value;
use status::StatusLine;
use status::usage::UsageSent;
use std::fmt;
use turns::Turns;
use turns::daemon::DaemonTurns;

/// A broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The facts.
    pub detail: String,
}

impl Violation {
    /// A violation of a rule that the world checks.
    #[must_use]
    pub fn of_world(detail: impl Into<String>) -> Self {
        Self { rule: Rule::World, detail: detail.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.detail)
    }
}

/// The result of a check.
pub type Verdict = Result<(), Violation>;

/// A broken rule, as a result.
fn broken<T>(rule: Rule, detail: impl Into<String>) -> Result<T, Violation> {
    Err(Violation { rule, detail: detail.into() })
}

/// Requires a fact.
fn require(fact: bool, rule: Rule, detail: impl FnOnce() -> String) -> Verdict {
    if fact { Ok(()) } else { broken(rule, detail()) }
}

/// The checker.
#[derive(Debug, Default)]
pub struct Observer {
    /// Inputs so far. Expensive checks are due at some of them.
    steps: u64,
    requests: Requests,
    file: File,
    operations: Operations,
    later: Later,
    status: StatusLine,
    cancels: Cancels,
    contexts: Contexts,
    recoveries: Recoveries,
    turns: Turns,
    usage: UsageSent,
    calls: Calls,
    idling: Idling,
    budget: Budget,
    hooks: Hooks,
    trust: Trust,
    spending: Spending,
    /// The size that the session shared last.
    shared: Option<u64>,
    marks: Marks,
    /// The rules about turns, in a session whose client lets the daemon run them.
    daemon: Option<Box<DaemonTurns>>,
}

/// Facts of a life of a session.
#[derive(Debug, Default)]
struct Marks {
    /// Whether the index was there after the last input.
    indexed: bool,
    /// Whether a write failed in this life.
    write_failed: bool,
}

impl Observer {
    /// A checker for a session whose client lets the daemon run turns.
    #[must_use]
    pub fn of_turns() -> Self {
        let mut observer = Self { daemon: Some(Box::default()), ..Self::default() };
        // The daemon asks the larger model itself.
        observer.recoveries.client_switches_models();
        observer
    }

    /// The session is about to be opened: for the first time, again after a crash, or again after it was closed.
    ///
    /// # Errors
    /// When a durable line has changed, or a closed session left something open.
    pub fn opens(&mut self, disk: &Disk, access: Access) -> Verdict {
        self.daemon.iter_mut().for_each(|daemon| daemon.opens(&disk.running(), access));
        self.status = StatusLine::default();
        self.cancels = Cancels::default();
        (self.turns, self.usage) = (Turns::default(), UsageSent::default());
        (self.idling, self.hooks) = (Idling::default(), Hooks::default());
        self.recoveries.opens();
        (self.shared, self.marks) = (None, Marks::default());
        self.requests.opens();
        self.file.opens(disk, access)?;
        self.budget.opens(&self.file.entries());
        self.spending.opens();
        self.trust.opens(access);
        self.operations.opens(&disk.running(), access)?;
        if let Some(waiting) = self.later.opens(&self.file, &disk.running(), access)? {
            self.operations.due.recalls(waiting);
        }
        Ok(())
    }

    /// An input goes into the core.
    pub fn feeds(&mut self, input: &Input) {
        self.recoveries.feeds(input);
        self.idling.feeds(input);
        match input {
            Input::Command(_, ticket) => self.turns.reached(ticket.number(), &self.requests, self.marks.indexed),
            Input::Cancel(_, ticket) => {
                self.cancels.reaches(ticket.number(), &self.requests, &self.operations, &self.later)
            }
            Input::RequestCancelled(request) => {
                self.cancels.reaches(*request, &self.requests, &self.operations, &self.later);
                self.turns.request_cancelled(*request, &self.requests, self.file.count());
            }
            Input::Stop => {
                self.status.told_to_end();
                self.turns.stops();
            }
            Input::Finish => {
                self.status.told_to_end();
                self.turns.finishes();
            }
            Input::Hooks(hooks) => self.hooks.registers(hooks),
            Input::Turn => {
                self.turns.begins();
                self.operations.turn_begins(self.marks.indexed);
            }
            Input::Planned(id, result) => self.operations.planned(id, result.is_ok()),
            Input::Drafted(id, result) => {
                self.budget.drafted(id);
                self.operations.drafted(id, result.as_ref().ok());
            }
            Input::Reported(operation, Progress::Summary(Step::Request(_, Update::Spent(spent)))) => {
                self.budget.spends(spent.trigger, spent.usage.context_tokens());
                self.operations.spent(operation);
            }
            Input::Reported(_, Progress::Summary(Step::Progress { total, .. })) => self.calls.plans(*total),
            Input::Founded(id, result) => self.operations.founded.ends(id, result.is_ok()),
            Input::Counted => self.operations.counted(),
            Input::Log(done, _) => {
                // Lines of a write that was not confirmed, or was lost, are not announced.
                self.marks.write_failed |= matches!(done, None | Some(LogDone::Wrote { appended: Err(_), .. }));
                self.operations.log_is_back();
                self.turns.log_is_back(done.is_none());
            }
            _ => {}
        }
    }

    /// The client asks the model that a context names.
    pub fn client_switches_models(&mut self) {
        self.recoveries.client_switches_models();
    }

    /// The client is asked by a hook.
    pub fn hook_is_asked(&mut self, call: Called) {
        self.hooks.asked(call);
    }

    /// The provider has a truth of its own.
    pub fn knows(&mut self, truth: Truth) {
        self.trust.knows(truth);
    }

    /// A request of the host to its provider ended.
    pub fn exchanged(&mut self, exchange: Exchange) {
        self.trust.exchanged(exchange);
    }

    /// So many requests were sent to models until now. Models may have read so many of their tokens. `aimless`: the same numbers of
    /// those without a purpose, which in a session with turns are those of turns.
    pub fn models_were_asked(&mut self, requests: u64, tokens: u64, aimless: (u64, u64), now: Clocks) {
        let of_turns = if self.daemon.is_some() { aimless } else { (0, 0) };
        let (requests, tokens) = (requests - of_turns.0, tokens - of_turns.1);
        self.spending.sent(tokens, now);
        self.budget.sent(requests, now.day);
        self.calls.sent(requests);
    }

    /// A request is sent. `session/cancel` is a request too.
    pub fn sent(&mut self, request: TicketNumber, method: &'static str, params: Value, sent: Sent) {
        if let Some(daemon) = &mut self.daemon {
            daemon.sent(request, method, &params);
        }
        self.status.request_sent();
        self.requests.sent(request, method, params, sent);
    }

    /// Whether the session may start work without input. A turn that ends may be followed by a message of the queue.
    fn follows(&self) -> Follows {
        if self.daemon.is_some() { Follows::Work } else { self.operations.follows(&self.requests) }
    }

    /// An effect, before the world acts on it.
    ///
    /// # Errors
    /// When it breaks a rule.
    pub fn performed(&mut self, effect: &Effect, disk: &Disk) -> Verdict {
        if let Some(daemon) = &mut self.daemon {
            daemon.performed(effect)?;
        }
        self.file.look(disk)?;
        self.cancels.permits(effect)?;
        self.status.permits(effect, self.follows())?;
        self.operations.performs(effect);
        match effect {
            Effect::Record(operations) => self.operations.recorded(operations),
            Effect::Open(_) => Ok(()),
            Effect::Publish(status) => {
                self.status.published(status);
                self.operations.moves.published(status);
                Ok(())
            }
            Effect::Emit(about, event) => self.emitted(about, event, disk),
            Effect::Answer(request, answer) => self.answered_by_core(*request, answer, disk),
            Effect::Log(work) => {
                let appends = self.requests.branching();
                self.operations.log_goes_out(work);
                self.operations.moves.log_goes_out(work, &self.file);
                self.turns.log_goes_out(work)?;
                self.trust.writes(work, &self.file)?;
                self.file.given(work, appends)
            }
            Effect::Read(request, _) => self.left_to_world(*request),
            // The effect answers.
            Effect::Subscribe(request, ..)
            | Effect::Unsubscribe(request)
            | Effect::HandOver(request)
            | Effect::Fork(request, _) => {
                let asked = self.requests.answered(*request)?;
                self.sees_appends(&asked)
            }
            Effect::Start(job) => {
                self.turns.job_starts(job);
                match &**job {
                    // Its message is written, whether its model can be asked or not.
                    Job::Turn(TurnOrder::Route(_)) => self.operations.due.turn_comes(),
                    Job::Turn(TurnOrder::Ask(_)) => self.recoveries.asks(),
                    _ => {}
                }
                let mut idles = false;
                if let Job::Plan(order) = &**job {
                    idles = self.idling.plans(&order.id, &order.stop, &self.file)?;
                    self.later.plans(&order.id, &self.file);
                    self.hooks.plans(order)?;
                    if order.request.cause == Cause::Ahead {
                        self.spending.begins(&order.id);
                    }
                }
                if let Job::Draft(order) = &**job {
                    self.hooks.drafts(order);
                }
                if let Job::Draft(order) = &**job
                    && self.operations.ahead(Some(&order.id)).is_some()
                {
                    self.budget.drafts_ahead(&order.id);
                }
                self.operations.job_starts(job, idles)
            }
            Effect::IdleTurn(turning) => self.idling.turns(*turning),
            Effect::Teach(Change::Learned(row)) => {
                let model = &row.model;
                require(row.context_window > 0, Rule::SaneNumbers, || {
                    format!("the window of {model} is learned as zero")
                })?;
                self.trust.learns(row.context_window)
            }
            Effect::Teach(Change::Accepted(..) | Change::Forgotten(_)) => Ok(()),
            Effect::Share(bytes) => {
                let before = self.shared.replace(*bytes);
                let most = self.file.most_in_memory();
                require(before != Some(*bytes), Rule::SaneNumbers, || format!("{bytes} bytes are shared twice"))?;
                require(*bytes <= most, Rule::SaneNumbers, || format!("{bytes} bytes are shared of a file of {most}"))
            }
        }
    }

    /// The answer of a request that the core left to the world.
    ///
    /// # Errors
    /// When it breaks a rule.
    pub fn answered(&mut self, request: TicketNumber, answer: &Answer, disk: &Disk) -> Verdict {
        self.file.look(disk)?;
        let asked = self.requests.answered_by_world(request)?;
        self.defect(answer, &asked)?;
        if asked.method == "session/context" {
            self.contexts.answered(&asked, answer, &self.file, self.steps)?;
            self.trust.gives(&asked, answer)?;
        }
        Ok(())
    }

    /// An input was handled, and its effects were performed.
    ///
    /// # Errors
    /// When the state breaks a rule.
    pub fn after_input(&mut self, core: &Core, disk: &Disk) -> Verdict {
        self.steps += 1;
        if let Some(daemon) = &self.daemon {
            daemon.after_input()?;
        }
        self.file.look(disk)?;
        self.file.stays(disk, self.steps)?;
        let waits =
            !self.later.pending().is_empty() || self.requests.waiting_for_compaction().any(|asked| asked.comes_later());
        self.cancels.after_input(&self.operations, waits)?;
        self.status.after_input(self.follows())?;
        self.operations.after_input()?;
        self.operations.inside_is_open(&disk.running())?;
        self.hooks.after_input(self.operations.ahead(None))?;
        if !self.operations.log_is_out() {
            self.file.log_is_here();
        }
        let load = Load::of(core);
        self.idling.after_input(&self.operations, load.held)?;
        self.turns.after_input(load.waiting + load.index, load.held, &self.operations)?;
        self.usage.after_input(core)?;
        self.recoveries.after_input(core)?;
        self.trust.measured(self.recoveries.usage())?;
        self.spending.after_input(self.recoveries.usage())?;
        self.budget.holds(core.state().settings().settings.compaction.ceiling())?;
        self.marks.indexed = core.state().history().index().is_some();
        self.bounded(core)?;
        self.contexts.after_input(core, &self.file, self.steps)
    }

    /// The process of the session dies. Effects that were not performed are lost.
    pub fn crashed(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            daemon.crashed();
        }
        self.requests.crashed();
        self.calls = Calls::default();
        self.hooks.crashed();
        self.operations.crashed();
    }

    /// The session was opened again. Its first effects may be performed before or after this call.
    ///
    /// # Errors
    /// When the context or the usage is another one.
    pub fn reopened(&mut self, core: &Core, disk: &Disk) -> Verdict {
        self.file.look(disk)?;
        self.file.stays(disk, 0)?;
        self.contexts.reopened(core, &self.file)
    }

    /// Nothing came for a long time.
    ///
    /// # Errors
    /// When something should have started.
    pub fn left_alone(&self) -> Verdict {
        if self.operations.running().is_some() || self.operations.log_is_out() {
            return Ok(());
        }
        self.later.left_alone(&self.requests, &self.file)
    }

    /// Everything was answered, and nothing runs.
    ///
    /// # Errors
    /// When something is left.
    pub fn at_rest(&mut self, core: &Core, disk: &Disk) -> Verdict {
        if let Some(daemon) = &self.daemon {
            daemon.at_rest(core, disk)?;
        }
        self.after_input(core, disk)?;
        self.file.stays(disk, 0)?;
        self.requests.at_rest()?;
        self.status.at_rest()?;
        self.turns.at_rest()?;
        self.operations.at_rest(&disk.running())?;
        self.idling.at_rest()?;
        self.cancels.at_rest(&self.operations)?;
        if !self.marks.write_failed {
            self.file.at_rest()?;
            self.operations.costs(&self.file)?;
        }
        let load = Load::of(core);
        require(load.is_empty(), Rule::QueuesBounded, || format!("at rest there are {load:?}"))?;
        self.contexts.at_rest(core, &self.file)
    }

    fn bounded(&self, core: &Core) -> Verdict {
        let load = Load::of(core);
        // A compaction after the turn may be left of a request that was answered.
        let open = self.requests.held_by_core() + self.later.pending().len();
        let waiting = load.waiting + load.index + load.held;
        require(waiting <= open, Rule::QueuesBounded, || format!("{open} requests are open, and {load:?} wait"))?;
        require(load.reads <= 1_024, Rule::QueuesBounded, || format!("{load:?}"))?;
        require(load.waiting <= 2_048 + 1_024, Rule::QueuesBounded, || format!("{load:?}"))?;
        require(load.index <= 1_024, Rule::QueuesBounded, || format!("{load:?}"))?;
        require(load.held <= 1_024, Rule::QueuesBounded, || format!("{load:?}"))?;
        require(load.cancelled <= open, Rule::QueuesBounded, || format!("{open} requests are open, and {load:?}"))
    }

    /// Failures of storage, which excuse lines without an announcement, and defects.
    fn defect(&mut self, answer: &Answer, asked: &Asked) -> Verdict {
        match answer {
            // The requests of a lost write.
            Answer::Failed(Failure::Internal(_)) if self.turns.is_lost() => Ok(()),
            Answer::Failed(Failure::Internal(what)) => broken(Rule::NoDefect, format!("{}: {what}", asked.method)),
            Answer::Failed(Failure::Storage { .. } | Failure::Store { .. }) => {
                self.marks.write_failed = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn left_to_world(&mut self, request: TicketNumber) -> Verdict {
        let asked = self.requests.left_to_world(request)?;
        self.sees_appends(&asked)?;
        self.turns.answered(&asked, &Value::Null, &self.operations, &self.file)?;
        if asked.method == "session/context" {
            self.recoveries.gives(&asked, None)?;
        }
        self.held(&asked)
    }

    fn held(&self, asked: &Asked) -> Verdict {
        let runs = self.operations.running();
        let waits = asked.waits_as_context() || asked.must_fit() && self.operations.recovers();
        require(!waits || runs.is_none(), Rule::HeldContext, || {
            format!("request {} is answered while {runs:?} runs", asked.number)
        })
    }

    /// A read that was sent after an append sees it.
    fn sees_appends(&self, asked: &Asked) -> Verdict {
        // Not a compaction: a cancel answers it out of turn.
        let reads = matches!(asked.method, "session/context" | "session/status" | "session/usage" | "session/entries");
        if !reads || !self.marks.indexed || self.turns.is_from_before_index(asked.number) {
            return Ok(());
        }
        let waiting = self.requests.append_before(asked.number);
        require(waiting.is_none(), Rule::AnswersSeeAppends, || {
            format!("request {} is answered before append {waiting:?}", asked.number)
        })
    }

    fn answered_by_core(&mut self, request: TicketNumber, answer: &Answer, disk: &Disk) -> Verdict {
        let asked = self.requests.answered(request)?;
        self.defect(answer, &asked)?;
        let result = || match answer {
            Answer::Result(json) => serde_json::from_str(json.get()).unwrap_or_default(),
            Answer::Failed(_) | Answer::Pieces(_) => Value::Null,
        };
        if let Answer::Failed(failure) = answer {
            self.operations.refused(&asked, failure);
            self.turns.refused(&asked, failure)?;
            if asked.method == "session/context" {
                let may_end = self.recoveries.may_end();
                self.recoveries.gives(&asked, Some(failure))?;
                self.trust.refuses(&asked, failure, may_end, &self.file)?;
            }
            return self.cancels.answered(&asked, None, &self.operations, &self.later, &self.file, &disk.running());
        }
        self.sees_appends(&asked)?;
        let named = if matches!(asked.method, "session/compact" | "session/append" | "session/configure") {
            result()
        } else {
            Value::Null
        };
        self.turns.answered(&asked, &named, &self.operations, &self.file)?;
        match asked.method {
            "session/configure" => {
                self.recoveries.rewritten(&named);
                limits::answered(&asked, &named)?;
                self.operations.named_switch(&asked, &named)?;
            }
            "session/append" => {
                self.later.goes_on();
                self.usage.answered(&named);
                self.requests.appended(&asked, &named, &self.file)?;
                let runs = |id: &OperationId| self.operations.is_open(id);
                self.later.named_next(&asked, &named, runs, &self.requests, &self.file)?;
                self.operations.named_next(&asked, &named, &self.file)?;
                self.recoveries.appended(&asked, &named, &self.file);
            }
            "session/cancel" => {
                self.cancels.answered(
                    &asked,
                    Some(&result()),
                    &self.operations,
                    &self.later,
                    &self.file,
                    &disk.running(),
                )?;
            }
            "session/compact" => {
                let ends = |id: &OperationId| self.cancels.was_named(id) || self.turns.may_end_later();
                self.later.answered(&asked, &named, ends, &self.file)?;
                self.operations.answered(&asked, &named)?;
                self.operations.expected_leaf(&asked, &named, &self.file)?;
            }
            "session/context" => {
                self.held(&asked)?;
                self.recoveries.gives(&asked, None)?;
                self.contexts.answered(&asked, answer, &self.file, self.steps)?;
                self.trust.gives(&asked, answer)?;
            }
            "session/navigate" => self.operations.navigated(&asked, &result(), &self.file)?,
            "session/run_idle" => self.operations.answered(&asked, &result())?,
            "session/status" => {
                let result = result();
                self.status.answered(&result)?;
                self.operations.listed(&result)?;
            }
            "session/label" | "session/pin" => {
                let result = result();
                self.recoveries.rewritten(&Value::Null);
                self.requests.edited(&asked, &result, &self.file)?;
            }
            "session/unpin" | "session/undo_compaction" | "session/reset" | "session/prune" | "settings/set" => {
                if asked.method == "session/undo_compaction" {
                    self.later.moves();
                }
                self.recoveries.rewritten(&Value::Null);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The ids of the entries of a path.
fn ids(path: &Path) -> Vec<EntryId> {
    path.iter().map(|entry| entry.id.clone()).collect()
}
