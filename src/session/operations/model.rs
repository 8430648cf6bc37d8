//! Random operations of kinds that exist only here, held against the rules of the contract by reading what was sent.

mod left;

use super::*;
use crate::{
    log,
    protocol::{
        events::{RetrySource, Severity},
        notices::NoticeCode,
        types::{Breakdown, Outcome, UsageSource},
    },
    session::operation::{OpenOperations, Operation, Outlet},
};
use proptest::prelude::*;
use std::{
    collections::{HashMap, HashSet},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Mutex},
    time::Duration,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sort {
    /// Gives way to a recovery, and to nothing else.
    Turn,
    Maintenance,
    Recovery,
    /// Runs in the background, has no events and gives way to everything.
    Speculation,
}

/// An operation knows its number, so that its events are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Tested {
    sort: Sort,
    number: usize,
}

impl Kind for Tested {
    type Product = ();
    type Answer = Sent;

    fn name(&self) -> &'static str {
        match self.sort {
            Sort::Turn => "turn",
            Sort::Maintenance => "maintenance",
            Sort::Recovery => "recovery",
            Sort::Speculation => "speculation",
        }
    }

    fn cause(&self) -> String {
        self.number.to_string()
    }

    fn read(name: &str, cause: &str) -> Option<Self> {
        let sorts = [Sort::Turn, Sort::Maintenance, Sort::Recovery, Sort::Speculation];
        let number = cause.parse().ok()?;
        sorts.into_iter().map(|sort| Self { sort, number }).find(|kind| kind.name() == name)
    }

    fn standing(&self) -> Standing {
        match self.sort {
            Sort::Turn => Standing::Foreground(StatusKind::Running),
            Sort::Maintenance => Standing::Foreground(StatusKind::Compacting),
            Sort::Recovery => Standing::Foreground(StatusKind::Retrying),
            Sort::Speculation => Standing::Background,
        }
    }

    fn gives_way_to(&self, other: &Self) -> bool {
        match self.sort {
            Sort::Speculation => true,
            Sort::Turn => other.sort == Sort::Recovery,
            Sort::Maintenance | Sort::Recovery => false,
        }
    }

    fn start(&self, _: &Usage) -> Option<Event> {
        (self.sort != Sort::Speculation).then(|| named("start", self.number))
    }

    fn end(&self, ended: &Ended<'_, ()>) -> Option<Event> {
        let outcome = format!("{:?}", ended.end.outcome());
        (self.sort != Sort::Speculation).then(|| Event::Notice {
            severity: Severity::Info,
            code: NoticeCode::OperationInterrupted,
            title: format!("end {}", self.number),
            detail: Some(outcome),
        })
    }

    fn started(&self, _: &OperationId) -> Sent {
        Sent::Started(self.number)
    }

    fn ended(&self, _: &OperationId, _: &End<()>) -> Sent {
        Sent::Ended(self.number)
    }
}

fn named(what: &str, number: usize) -> Event {
    Event::Notice {
        severity: Severity::Info,
        code: NoticeCode::OperationInterrupted,
        title: format!("{what} {number}"),
        detail: None,
    }
}

/// A step, as far as the rules speak of it.
#[derive(Debug, Clone, PartialEq)]
enum Sent {
    Publish(Status),
    Status(Status),
    Start(usize),
    End(usize, String),
    RetryStart(usize),
    RetryEnd(usize),
    /// The retries that the lock lists, by the numbers of their operations.
    Record(Vec<usize>),
    Progress(OperationId),
    Notice(Option<OperationId>),
    Settled {
        aborted: bool,
    },
    Started(usize),
    Ended(usize),
}

#[derive(Clone, Default)]
struct Wire(Arc<Mutex<Vec<Sent>>>);

impl Outlet<Tested> for Wire {
    type Request = usize;

    fn perform(&self, step: Step<usize, Sent>) {
        let sent = match step {
            Step::Publish(status) => Sent::Publish(status),
            Step::Answer(request, answer) => {
                assert!(answer == Sent::Started(request) || answer == Sent::Ended(request));
                answer
            }
            Step::Emit(None, Event::StatusChanged { status }) => Sent::Status(status),
            Step::Emit(None, Event::Settled { aborted }) => Sent::Settled { aborted },
            Step::Emit(Some(_), Event::RetryStart { attempt, .. }) => Sent::RetryStart(attempt as usize),
            Step::Emit(Some(_), Event::RetryEnd { attempt, .. }) => Sent::RetryEnd(attempt as usize),
            Step::Emit(Some(id), Event::CompactionProgress { .. }) => Sent::Progress(id),
            Step::Emit(of, Event::Notice { title, detail, .. }) => match title.split_once(' ') {
                Some(("start", number)) => Sent::Start(number.parse().expect("a number")),
                Some(("end", number)) => Sent::End(number.parse().expect("a number"), detail.unwrap_or_default()),
                _ => Sent::Notice(of),
            },
            other => panic!("{other:?}"),
        };
        self.0.lock().expect("nobody panics with it").push(sent);
    }
}

impl Wire {
    /// A record of the lock.
    fn record(&self, open: &[Unfinished]) {
        let attempt = |inside: &log::Inside| match inside {
            log::Inside::Retry { attempt, .. } => *attempt as usize,
            log::Inside::Hook { .. } | log::Inside::Tool { .. } => unreachable!("no client is asked"),
        };
        let listed = open.iter().flat_map(|it| &it.inside).map(attempt).collect();
        self.0.lock().expect("nobody panics with it").push(Sent::Record(listed));
    }
}

type Held = Operation<Tested, Wire>;

fn opening(kind: Tested, place: Place, asked: Asked<usize>, usage: Usage, stop: Stop) -> Opening<Tested, usize> {
    Opening { kind, place, asked, usage, stop, started: Instant::now(), started_at: String::new() }
}

fn usage() -> Usage {
    Usage {
        context_tokens: 1,
        context_window: None,
        percent: None,
        threshold_tokens: None,
        reserve_tokens: 0,
        source: UsageSource::Estimate,
        auto_compaction: crate::compaction::resting::AutoCompaction::Set(true),
        window_source: "default".to_owned(),
        can_undo: false,
        breakdown: Breakdown::default(),
        estimator: "chars".to_owned(),
        cold_resume: None,
    }
}

#[derive(Debug, Clone, Copy)]
enum Where {
    Top,
    Inside(usize),
    PartOf(usize),
}

#[derive(Debug, Clone, Copy)]
enum How {
    Answered,
    Batched,
    Waits,
    Introduced,
    Unasked,
}

/// A step of a history. A number selects one of the held operations.
#[derive(Debug, Clone, Copy)]
enum Act {
    Open(Sort, Where, How),
    Complete(usize),
    Fail(usize),
    Drop(usize),
    Panic(usize),
    Commit(usize),
    CommitAgain(usize),
    RetryStarts(usize),
    RetryEnds(usize),
    Progress(usize),
    Cancel(Option<usize>),
}

fn act() -> impl Strategy<Value = Act> {
    let sort = prop_oneof![
        Just(Sort::Turn),
        Just(Sort::Maintenance),
        Just(Sort::Maintenance),
        Just(Sort::Recovery),
        Just(Sort::Speculation)
    ];
    let place = prop_oneof![
        Just(Where::Top),
        (0..8_usize).prop_map(Where::Inside),
        (0..8_usize).prop_map(Where::Inside),
        (0..8_usize).prop_map(Where::PartOf)
    ];
    let how = prop_oneof![
        Just(How::Answered),
        Just(How::Batched),
        Just(How::Waits),
        Just(How::Introduced),
        Just(How::Unasked)
    ];
    prop_oneof![
        6 => (sort, place, how).prop_map(|(sort, place, how)| Act::Open(sort, place, how)),
        2 => (0..8_usize).prop_map(Act::Complete),
        1 => (0..8_usize).prop_map(Act::Fail),
        1 => (0..8_usize).prop_map(Act::Drop),
        1 => (0..8_usize).prop_map(Act::Panic),
        2 => (0..8_usize).prop_map(Act::Commit),
        1 => (0..8_usize).prop_map(Act::CommitAgain),
        2 => (0..8_usize).prop_map(Act::RetryStarts),
        1 => (0..8_usize).prop_map(Act::RetryEnds),
        1 => (0..8_usize).prop_map(Act::Progress),
        2 => prop::option::of(0..8_usize).prop_map(Act::Cancel),
    ]
}

/// The facts of an operation.
struct Fact {
    kind: Tested,
    how: How,
    parent: Option<usize>,
    is_part: bool,
    id: OperationId,
    stop: Stop,
    committing: bool,
    /// It was cancelled while one in it was committing.
    stopping: bool,
}

/// Reads what was sent, and knows of the operations only what a client knows.
#[derive(Default)]
struct Reader {
    /// By the number of the operation.
    facts: Vec<Fact>,
    /// The operation that is being opened, until its start was sent.
    opening: Option<usize>,
    /// Operations whose start was sent and whose end was not, in the order of the starts.
    open: Vec<usize>,
    ended: HashSet<usize>,
    answers: HashMap<usize, usize>,
    published: Option<Status>,
    status: Option<Status>,
    /// An operation in the foreground has started since the session settled.
    busy: bool,
    last_outcome: String,
    /// Retries without an end, by the number of their operation, which is their attempt.
    retries: HashMap<usize, i64>,
    /// The retries that the lock lists.
    recorded: Vec<usize>,
}

impl Reader {
    fn lineage(&self, number: usize) -> Vec<usize> {
        std::iter::successors(Some(number), |number| self.facts[*number].parent).collect()
    }

    fn is_inside(&self, inner: usize, outer: usize) -> bool {
        inner != outer && self.lineage(inner).contains(&outer)
    }

    fn counts(&self, number: usize) -> bool {
        self.lineage(number).iter().all(|it| self.facts[*it].kind.sort != Sort::Speculation)
    }

    fn runs(&self) -> bool {
        self.open.iter().any(|it| self.counts(*it))
    }

    /// The status that the open operations give.
    fn derived(&self) -> Status {
        let Some(mut at) = self.open.iter().rev().copied().find(|it| self.counts(*it)) else { return idle() };
        while self.facts[at].is_part {
            at = self.facts[at].parent.expect("a part has a whole");
        }
        let fact = &self.facts[at];
        let Standing::Foreground(kind) = fact.kind.standing() else { unreachable!("it counts") };
        Status { kind, operation_id: Some(fact.id.clone()), reason: Some(fact.kind.cause()) }
    }

    fn read(&mut self, sent: &Sent) {
        match sent {
            Sent::Publish(status) => self.published = Some(status.clone()),
            Sent::Start(number) => {
                assert!(!self.ended.contains(number) && !self.open.contains(number), "one start");
                self.opening = None;
                self.open.push(*number);
                assert_eq!(self.published, Some(self.derived()), "the status flips before the start");
                self.busy |= self.counts(*number);
                if matches!(self.facts[*number].how, How::Answered | How::Batched) {
                    assert_eq!(self.answers.get(number), Some(&1), "the answer comes before the start");
                }
            }
            Sent::End(number, outcome) => {
                assert!(self.open.contains(number), "one end for each start");
                let inner = self.open.iter().find(|it| self.is_inside(**it, *number));
                assert_eq!(inner, None, "{number} ends before the one inside of it");
                self.open.retain(|it| it != number);
                self.ended.insert(*number);
                self.last_outcome.clone_from(outcome);
                let named = self.published.as_ref().and_then(|status| status.operation_id.as_ref());
                let runs = |id: &OperationId| self.open.iter().chain(&self.opening).any(|it| self.facts[*it].id == *id);
                assert!(named.is_none_or(runs), "the status flips before the end");
                assert_eq!(self.retries.get(number).copied().unwrap_or(0), 0, "its retries end before it");
            }
            Sent::Status(status) => {
                let published = self.published.clone().expect("it was published");
                let named_by_start = |fact: &Fact| {
                    let introduced = fact.is_part || matches!(fact.how, How::Answered | How::Introduced);
                    !introduced && published.operation_id.as_ref() == Some(&fact.id)
                };
                let hidden = self.opening.is_some_and(|opening| named_by_start(&self.facts[opening]));
                let operation_id = published.operation_id.clone().filter(|_| !hidden);
                assert_eq!(
                    *status,
                    Status { operation_id, ..published.clone() },
                    "the id is named once it is introduced"
                );
                assert_ne!(self.status.as_ref().unwrap_or(&idle()), &published, "a status is sent when it changed");
                self.status = Some(published);
            }
            Sent::Settled { aborted } => {
                assert!(self.busy && !self.runs(), "a session settles once, when nothing runs that counts");
                assert_eq!(self.status, Some(idle()), "the status comes before");
                assert_eq!(*aborted, self.last_outcome == "Cancelled");
                self.busy = false;
            }
            Sent::Started(number) => {
                *self.answers.entry(*number).or_default() += 1;
                assert!(!self.open.contains(number), "the answer introduces the id");
            }
            Sent::Ended(number) => {
                *self.answers.entry(*number).or_default() += 1;
                assert!(!self.open.contains(number), "the answer waits for the end");
                assert!(self.runs() || self.opening.is_some() || !self.busy, "the answer waits for `settled`");
            }
            Sent::RetryStart(number) => {
                assert!(self.recorded.contains(number), "a retry is recorded before its start");
                *self.retries.entry(*number).or_default() += 1;
            }
            Sent::RetryEnd(number) => *self.retries.entry(*number).or_default() -= 1,
            Sent::Record(listed) => {
                for (number, open) in &self.retries {
                    let recorded = listed.iter().filter(|it| *it == number).count();
                    assert!(recorded as i64 >= *open, "the lock lists each retry that is open");
                }
                self.recorded.clone_from(listed);
            }
            Sent::Notice(of) => {
                assert!(of.is_some(), "a notice names its operation");
                assert_eq!(self.status.clone().unwrap_or_else(idle), self.derived(), "the status comes before notices");
            }
            Sent::Progress(id) => assert!(self.facts.iter().any(|fact| fact.id == *id)),
        }
    }
}

#[derive(Default)]
struct World {
    wire: Wire,
    operations: Option<OpenOperations<Tested, Wire>>,
    held: Vec<(usize, Held)>,
    reader: Reader,
}

impl World {
    fn operations(&mut self) -> OpenOperations<Tested, Wire> {
        self.operations.get_or_insert_with(|| OpenOperations::new(self.wire.clone(), Instant::now())).clone()
    }

    fn pick(&self, nth: usize) -> Option<usize> {
        (!self.held.is_empty()).then(|| nth % self.held.len())
    }

    fn is_open(&self, number: usize) -> bool {
        self.held.iter().any(|(it, held)| *it == number && held.is_open())
    }

    /// The open operations, outer ones first: their order is that of their numbers.
    fn open(&self) -> Vec<usize> {
        let mut open: Vec<usize> = self.held.iter().filter(|(_, held)| held.is_open()).map(|(it, _)| *it).collect();
        open.sort_unstable();
        open
    }

    fn commits(&self, number: usize) -> bool {
        let inside = |it: &usize| *it == number || self.reader.is_inside(*it, number);
        self.open().iter().filter(|it| inside(it)).any(|it| self.reader.facts[*it].committing)
    }

    fn start(&mut self, sort: Sort, place: Where, how: How) {
        let number = self.reader.facts.len();
        let kind = Tested { sort, number };
        let picked = match place {
            Where::Top => None,
            Where::Inside(nth) | Where::PartOf(nth) => self.pick(nth),
        };
        let spare = OperationId::from(format!("spare-{number}"));
        let (place, parent) = match (place, picked) {
            (Where::Inside(_), Some(at)) => (self.held[at].1.inside(spare), Some(self.held[at].0)),
            (Where::PartOf(_), Some(at)) => (self.held[at].1.part(spare), Some(self.held[at].0)),
            _ => (Place::Top(format!("own-{number}").into()), None),
        };
        let too_late = parent.is_some_and(|parent| {
            !self.is_open(parent) || self.reader.lineage(parent).iter().any(|it| self.reader.facts[*it].stopping)
        });
        let is_part = matches!(place, Place::PartOf(..));
        let parent = parent.filter(|parent| self.is_open(*parent));
        let around = parent.map(|parent| self.reader.lineage(parent)).unwrap_or_default();
        let in_background = sort == Sort::Speculation || parent.is_some_and(|parent| !self.reader.counts(parent));
        let gives_way = |it: &usize| {
            let fact = &self.reader.facts[*it];
            (!in_background || !self.reader.counts(*it))
                && !around.contains(it)
                && fact.kind.gives_way_to(&kind)
                && !fact.stopping
                && !self.commits(*it)
        };
        let before = self.open();
        let gone: Vec<usize> = before.iter().copied().filter(gives_way).collect();
        let asked = match how {
            How::Answered => Asked::Answered(number),
            How::Batched => Asked::Batched(number),
            How::Waits => Asked::Waits(number),
            How::Introduced => Asked::Introduced,
            How::Unasked => Asked::Unasked,
        };
        let opening = opening(kind, place, asked, usage(), Stop::default());
        let operations = self.operations();
        let announced = operations.unfinished_with(&opening);
        let held = operations.start(opening);
        assert!(is_part && parent.is_none() || announced.last().is_some_and(|it| it.operation_id == held.id));
        let is_part = is_part && parent.is_some();
        let (id, stop) = (held.id.clone(), held.stop.clone());
        let fact = Fact { kind, how, parent, is_part, id, stop, committing: false, stopping: false };
        self.reader.facts.push(fact);
        self.reader.opening = Some(number);
        self.held.push((number, held));
        assert_eq!(self.is_open(number), !too_late, "one whose parent is over has its start and its end");
        for it in before.into_iter().filter(|it| !self.reader.facts[*it].stopping) {
            let gave_way = gone.iter().any(|gone| it == *gone || self.reader.is_inside(it, *gone));
            assert_eq!(
                self.is_open(it),
                !gave_way,
                "those that give way end with the ones inside of them, and no others"
            );
        }
    }

    fn cancel(&mut self, which: Option<usize>) {
        let which = which.and_then(|nth| self.pick(nth)).map(|at| self.held[at].1.id.clone());
        let open = self.open();
        let meant = |it: &usize| which.as_ref().is_none_or(|id| self.reader.facts[*it].id == *id);
        let hit: Vec<usize> = open.iter().copied().filter(|it| self.reader.lineage(*it).iter().any(meant)).collect();
        let (late, now): (Vec<usize>, Vec<usize>) = hit.iter().partition(|it| self.commits(**it));
        let operations = self.operations();
        let cancelling = operations.cancel(which.as_ref());
        let named: Vec<OperationId> = cancelling.named.iter().filter_map(|it| it.id().cloned()).collect();
        assert_eq!(cancelling.ends_nothing(), now.is_empty());
        // The answer leaves here, and the status is already what it will be.
        let seen = self.wire.0.lock().expect("a list").last().cloned();
        operations.end_cancelled(cancelling, &usage());
        if !now.is_empty() {
            let after = operations.status();
            assert_eq!(seen, Some(Sent::Publish(after)), "the status is what it will be when the answer leaves");
        }
        for it in &late {
            let fact = &mut self.reader.facts[*it];
            fact.stopping |= !fact.committing;
        }
        let stops = |it: &&usize| now.contains(it) || self.reader.facts[**it].stopping;
        let wholes = hit.iter().filter(stops).filter(|it| !self.reader.facts[**it].is_part);
        let mut expected: Vec<OperationId> = wholes.map(|it| self.reader.facts[*it].id.clone()).collect();
        expected.reverse();
        assert_eq!(named, expected, "each is named once, inner ones first");
        // An operation that was cancelled before ends with the last one inside of it.
        let reader = &self.reader;
        let stopping = |it: &usize| reader.facts[*it].stopping;
        let follows = |it: &usize| {
            let mut inside =
                open.iter().filter(|other| *other != it && reader.lineage(**other).contains(it)).peekable();
            stopping(it) && inside.peek().is_some() && inside.all(|it| now.contains(it) || stopping(it))
        };
        let ends = |it: &usize| now.contains(it) || follows(it);
        assert!(open.iter().all(|it| self.is_open(*it) != ends(it)), "these end, and no others");
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Open(sort, place, how) => self.start(sort, place, how),
            Act::Cancel(which) => self.cancel(which),
            Act::Complete(nth) | Act::Fail(nth) | Act::Drop(nth) | Act::Panic(nth) => {
                let Some(at) = self.pick(nth) else { return };
                let (_, held) = self.held.remove(at);
                let notices = || vec![Warning::new(NoticeCode::QualityMayDegrade, "a title", "a detail")];
                match act {
                    Act::Complete(_) => held.finish(End::Completed(()), &usage(), notices()),
                    Act::Fail(_) => held.finish(End::Failed(Failure::Cancelled), &usage(), Vec::new()),
                    Act::Drop(_) => drop(held),
                    _ => {
                        let panicked = catch_unwind(AssertUnwindSafe(|| {
                            let _held = held;
                            resume_unwind(Box::new(()))
                        }));
                        assert!(panicked.is_err());
                    }
                }
            }
            Act::Commit(nth)
            | Act::CommitAgain(nth)
            | Act::RetryStarts(nth)
            | Act::RetryEnds(nth)
            | Act::Progress(nth) => {
                let Some(at) = self.pick(nth) else { return };
                let before = self.wire.0.lock().expect("a list").len();
                let (number, held) = &self.held[at];
                let fact = &mut self.reader.facts[*number];
                let attempt = u32::try_from(*number).expect("a small number");
                match act {
                    Act::Commit(_) => {
                        held.commits();
                        fact.committing |= held.is_open() && !fact.stopping;
                    }
                    Act::CommitAgain(_) => {
                        held.commits_no_more();
                        fact.committing = false;
                    }
                    Act::RetryStarts(_) => {
                        let wire = self.wire.clone();
                        let record = |open: Vec<Unfinished>| wire.record(&open);
                        held.retry_starts(
                            RetrySource::History,
                            attempt,
                            3,
                            Duration::ZERO,
                            &Failure::Cancelled,
                            record,
                        );
                    }
                    Act::RetryEnds(_) => {
                        let wire = self.wire.clone();
                        held.retry_ends(RetrySource::History, attempt, None, |open| wire.record(&open));
                    }
                    _ => held.emit(Event::CompactionProgress {
                        stage: crate::protocol::events::Stage::Writing,
                        done: 0,
                        total: 1,
                        share: 0.0,
                        model: None,
                        remaining_ms: None,
                    }),
                }
                let (number, open) = (*number, held.is_open());
                assert!(open || self.wire.0.lock().expect("a list").len() == before, "one that has ended is silent");
                let stopping = |it: &usize| self.reader.facts[*it].stopping;
                if matches!(act, Act::CommitAgain(_)) && open && self.reader.lineage(number).iter().any(stopping) {
                    assert!(self.reader.facts[number].stop.requested(), "the cancel that came meanwhile counts");
                }
            }
        }
    }

    /// Reads what an act sent, and compares what is open.
    fn check(&mut self) {
        let sent = std::mem::take(&mut *self.wire.0.lock().expect("a list"));
        sent.iter().for_each(|sent| self.reader.read(sent));
        self.reader.opening = None;
        let operations = self.operations();
        let status = self.reader.derived();
        assert_eq!(operations.status(), status);
        assert_eq!(self.reader.published.clone().unwrap_or_else(idle), status, "others see the same");
        assert_eq!(self.reader.status.clone().unwrap_or_else(idle), status, "the client was told");
        assert_eq!(
            self.reader.busy,
            self.reader.runs(),
            "it has settled when nothing runs that counts, and not before"
        );
        assert_eq!(operations.idle().is_ok(), !self.reader.runs());

        let open = self.open();
        let seen = open.iter().filter(|it| self.reader.facts[**it].kind.sort != Sort::Speculation);
        assert_eq!(self.reader.open, seen.copied().collect::<Vec<_>>(), "what is open has a start and no end");
        let recorded: Vec<String> = operations.unfinished().into_iter().map(|it| it.reason).collect();
        assert_eq!(recorded, open.iter().map(ToString::to_string).collect::<Vec<_>>(), "the lock lists all");
        let inside: usize = operations.unfinished().iter().map(|it| it.inside.len()).sum();
        assert_eq!(inside as i64, self.reader.retries.values().sum::<i64>(), "with the retries inside of them");
        let wholes = open.iter().filter(|it| !self.reader.facts[**it].is_part).map(ToString::to_string);
        let listed: Vec<String> = operations.list().into_iter().map(|it| it.reason).collect();
        assert_eq!(listed, wholes.collect::<Vec<_>>(), "each id is listed once");
        for (number, fact) in self.reader.facts.iter().enumerate() {
            let is_open = open.contains(&number);
            assert!(is_open || fact.stop.requested(), "the work of what has ended is stopped");
            let holds = open.iter().any(|it| self.reader.is_inside(*it, number));
            assert!(!(is_open && fact.stopping) || holds, "one that was cancelled ends with the last one in it");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_of_operations_hold_whatever_happens_to_them(
        acts in prop::collection::vec(act(), 1..40),
        from_the_end in any::<bool>(),
    ) {
        let mut world = World::default();
        for act in acts {
            world.act(act);
            world.check();
        }
        while !world.held.is_empty() {
            let at = if from_the_end { world.held.len() - 1 } else { 0 };
            drop(world.held.remove(at));
            world.check();
        }
        for (number, fact) in world.reader.facts.iter().enumerate() {
            let answers = usize::from(!matches!(fact.how, How::Introduced | How::Unasked));
            prop_assert_eq!(world.reader.answers.get(&number).copied().unwrap_or(0), answers, "one answer");
            let silent = fact.kind.sort == Sort::Speculation;
            prop_assert_eq!(world.reader.ended.contains(&number), !silent, "one end");
        }
        prop_assert!(world.reader.retries.values().all(|open| *open == 0));
    }
}

#[test]
fn one_operation_blocks_another_unless_it_gives_way() {
    let wire = Wire::default();
    let operations = OpenOperations::<Tested, Wire>::new(wire, Instant::now());
    let open = |sort, number| {
        let place = Place::Top(format!("own-{number}").into());
        operations.start(opening(Tested { sort, number }, place, Asked::Unasked, usage(), Stop::default()))
    };
    let busy = |sort| match operations.room_for(&Tested { sort, number: 9 }) {
        Err(Failure::Busy { operation_id, kind }) => Some((operation_id.to_string(), kind)),
        _ => None,
    };
    let speculation = open(Sort::Speculation, 0);
    assert_eq!(busy(Sort::Turn), None, "speculation gives way");
    assert!(operations.idle().is_ok(), "and does not count");
    let turn = open(Sort::Turn, 1);
    assert!(!speculation.is_open(), "and ends");
    assert_eq!(busy(Sort::Recovery), None, "a turn gives way to a recovery");
    assert_eq!(busy(Sort::Maintenance), Some(("own-1".to_owned(), "turn")));
    turn.commits();
    assert_eq!(busy(Sort::Recovery), Some(("own-1".to_owned(), "turn")), "but not while it is written");
    turn.commits_no_more();
    let recovery = open(Sort::Recovery, 2);
    assert!(!turn.is_open());
    assert_eq!(busy(Sort::Recovery), Some(("own-2".to_owned(), "recovery")));
    drop(recovery);
    assert_eq!(busy(Sort::Recovery), None);

    let turn = open(Sort::Turn, 3);
    let kind = Tested { sort: Sort::Maintenance, number: 4 };
    let inner = operations.start(opening(kind, turn.inside("inner".into()), Asked::Unasked, usage(), Stop::default()));
    inner.commits();
    let recovery = open(Sort::Recovery, 5);
    assert!(turn.is_open() && inner.is_open(), "what is being written, and what it runs in, gives way to nothing");
    drop(recovery);
}
