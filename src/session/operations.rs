//! The open operations of a session. The order of ends, the status and `settled` follow from them, and are derived here
//! and nowhere else.
//!
//! This module is pure: a change returns the steps that the session performs in their order, and the time comes in. A kind
//! of operation is a trait, so that tests prove the rules with kinds of their own.

mod end;
mod inside;
mod left;
#[cfg(test)]
mod model;
mod waiting;

use end::untold;
pub use end::{End, Ended, hook_end, retry_end};
use inside::Inside;
pub use left::interrupted;

use super::stop::Stop;
use crate::{
    ids::OperationId,
    log::Unfinished,
    protocol::{
        errors::Failure,
        events::Event,
        notices::Warning,
        types::{Cancelled, RunningOperation, Status, StatusKind, Usage},
    },
};
use std::time::Instant;

/// A kind of operation with its cause: everything in which kinds differ.
pub trait Kind: Clone {
    /// The result of a completed operation.
    type Product;
    /// The answer of a request that asks for an operation.
    type Answer;

    /// The name in `session/status`, in answers, in errors and in the lock.
    fn name(&self) -> &'static str;
    /// The cause in `session/status` and in the lock.
    fn cause(&self) -> String;
    /// The kind that a lock names. `None` where this version does not know the name.
    fn read(name: &str, cause: &str) -> Option<Self>;
    /// Whether the session is busy while an operation of this kind runs.
    fn standing(&self) -> Standing;
    /// Whether an operation of this kind is cancelled when one of the other kind starts. If not, the other is refused.
    fn gives_way_to(&self, other: &Self) -> bool;
    /// Whether an operation of this kind runs inside of one of the other kind, where one is open.
    fn runs_inside(&self, _: &Self) -> bool {
        false
    }
    /// Whether the session goes on without input after an operation inside of one of this kind.
    fn goes_on_after_inner(&self) -> bool {
        false
    }
    /// The start event, if the kind has one. `before` is the usage at the start.
    fn start(&self, before: &Usage) -> Option<Event>;
    /// The end event, if the kind has one.
    fn end(&self, ended: &Ended<'_, Self::Product>) -> Option<Event>;
    /// The notice about an end that no end event tells.
    fn untold(&self, _: &End<Self::Product>) -> Option<Warning> {
        None
    }
    /// The event after everything else that an end sends, if the kind has one.
    fn last(&self, _: &End<Self::Product>) -> Option<Event> {
        None
    }
    /// The answer of a request that does not wait for the end.
    fn started(&self, id: &OperationId) -> Self::Answer;
    /// The answer of a request that waited for the end.
    fn ended(&self, id: &OperationId, end: &End<Self::Product>) -> Self::Answer;
}

/// Whether the session is busy while an operation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The session is busy: it has this status, and settles after the end.
    Foreground(StatusKind),
    /// The session is as idle as without it. Operations inside of it are in the background, too.
    Background,
}

/// Whether the session starts more work after the operations that run, without input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Follows {
    /// The session settles when the last operation in the foreground ends.
    #[default]
    Nothing,
    /// The session settles after that work.
    Work,
}

/// Names an open operation. Ids do not: a part has the id of its whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(u64);

/// The place of an operation among those that are open.
#[derive(Debug, Clone)]
pub enum Place {
    /// In no other operation.
    Top(OperationId),
    /// Inside another operation, with an id of its own.
    Inside(Key, OperationId),
    /// A part of another operation: it has the id and the status of the whole. The id here is used where the whole has
    /// ended.
    PartOf(Key, OperationId),
}

/// The request for an operation, and whether its answer introduces the id to the client.
#[derive(Debug)]
pub enum Asked<W> {
    /// The request is answered before all events and introduces the id.
    Answered(W),
    /// The request is answered before all events, but its answer leaves with its batch. The start event introduces the id.
    Batched(W),
    /// The request is answered after the end. The start event introduces the id.
    Waits(W),
    /// The request is answered after the end. An answer of another request has introduced the id.
    Joins(W),
    /// An answer of another request has introduced the id.
    Introduced,
    /// No request asked for it. The start event introduces the id.
    Unasked,
}

/// An operation that is about to start.
pub struct Opening<K, W> {
    /// Its kind and cause.
    pub kind: K,
    /// Its place and id.
    pub place: Place,
    /// Its request.
    pub asked: Asked<W>,
    /// The usage now.
    pub usage: Usage,
    /// Stops its work.
    pub stop: Stop,
    /// The time now.
    pub started: Instant,
    /// The time now, in RFC 3339.
    pub started_at: String,
}

/// A step that the session performs.
#[expect(clippy::large_enum_variant, reason = "a few steps live for a moment")]
#[derive(Debug)]
pub enum Step<W, A> {
    /// Sets the status that other tasks see.
    Publish(Status),
    /// Sends an event, of an operation or of the session.
    Emit(Option<OperationId>, Event),
    /// Answers a request.
    Answer(W, A),
}

/// The steps of a change, in their order.
type Steps<K, W> = Vec<Step<W, <K as Kind>::Answer>>;

/// How far an open operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A cancel ends it at once.
    Running,
    /// Its result is being written. A cancel does not end it.
    Committing,
    /// It was cancelled while an operation inside of it committed, and ends right after that one.
    Stopping,
    /// It waits for the client. The session goes on as without it.
    Waiting,
}

/// An open operation.
struct Open<K, W> {
    key: Key,
    id: OperationId,
    kind: K,
    parent: Option<Key>,
    /// The id is that of the parent.
    part: Part,
    phase: Phase,
    usage: Usage,
    started: Instant,
    started_at: String,
    stop: Stop,
    /// Hooks and retries whose end was not sent, in the order of their starts.
    inside: Vec<Inside>,
    waiting: Vec<W>,
}

/// Whether an operation is a part of its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    OfParent,
}

/// An operation that was taken out, with its end.
struct Closed<K: Kind, W> {
    open: Open<K, W>,
    end: End<K::Product>,
    /// Whether the operation around it goes on.
    continues: bool,
}

/// The operations that a cancel ends.
#[derive(Debug)]
pub struct Cancelling {
    /// The operations as the answer names them, inner ones first.
    pub named: Vec<Cancelled>,
    keys: Vec<Key>,
}

impl Cancelling {
    /// Whether no operation ends now.
    #[must_use]
    pub fn ends_nothing(&self) -> bool {
        self.keys.is_empty()
    }
}

/// The open operations of a session in the order of their starts, so that an operation stands after the one that it runs
/// in.
pub struct Operations<K: Kind, W> {
    open: Vec<Open<K, W>>,
    /// The status that was sent last.
    sent: Status,
    next: u64,
    follows: Follows,
    /// `settled` that waits for the work that follows, and whether the last operation was cancelled.
    owed: Option<bool>,
}

impl<K: Kind, W> Default for Operations<K, W> {
    fn default() -> Self {
        Self { open: Vec::new(), sent: idle(), next: 0, follows: Follows::Nothing, owed: None }
    }
}

/// The status of a session in which nothing runs.
#[must_use]
pub fn idle() -> Status {
    Status { kind: StatusKind::Idle, operation_id: None, reason: None }
}

impl<K: Kind, W> Operations<K, W> {
    /// Starts an operation. Operations that give way to it are cancelled first; the session does not settle in between.
    /// An operation whose parent has ended or was cancelled has its start and is cancelled at once.
    pub fn start(&mut self, opening: Opening<K, W>) -> (Key, OperationId, Steps<K, W>) {
        let Opening { kind, place, asked, usage, stop, started, started_at } = opening;
        let key = Key(self.next);
        self.next += 1;
        let wanted = match &place {
            Place::Top(_) => self.open.iter().rev().find(|open| kind.runs_inside(&open.kind)).map(|open| open.key),
            Place::Inside(parent, _) | Place::PartOf(parent, _) => Some(*parent),
        };
        let parent = wanted.filter(|parent| self.is_open(*parent));
        let too_late = parent != wanted || parent.is_some_and(|parent| self.is_stopping(parent));
        let (id, part) = match place {
            Place::Top(id) | Place::Inside(_, id) => (id, Part::Whole),
            Place::PartOf(whole, spare) => match self.find(whole) {
                Some(whole) => (whole.id.clone(), Part::OfParent),
                None => (spare, Part::Whole),
            },
        };
        let gone: Vec<_> = self.giving_way(&kind, parent).into_iter().map(|key| (key, End::Cancelled)).collect();
        let mut waiting = Vec::new();
        let mut answers = Vec::new();
        // The id of a part was introduced with its whole.
        let introduced =
            part == Part::OfParent || matches!(asked, Asked::Answered(_) | Asked::Joins(_) | Asked::Introduced);
        match asked {
            Asked::Answered(request) | Asked::Batched(request) => {
                answers.push(Step::Answer(request, kind.started(&id)));
            }
            Asked::Waits(request) | Asked::Joins(request) => waiting.push(request),
            Asked::Introduced | Asked::Unasked => {}
        }
        let event = kind.start(&usage);
        let usage_now = usage.clone();
        let inside = Vec::new();
        let phase = Phase::Running;
        let of = id.clone();
        let open = Open { key, id, kind, parent, part, phase, usage, started, started_at, stop, inside, waiting };
        self.open.push(open);
        // After the new one: it holds a cancelled operation that it starts in, whose last other one gives way.
        let gone = self.take_out(gone);
        if self.busy().is_some() {
            self.owed = None;
        }

        let status = self.status();
        let mut steps = vec![Step::Publish(status.clone())];
        let (last, gone_answers) = ends(gone, Some(&usage_now), started, &mut steps);
        steps.extend(last.into_iter().chain(gone_answers));
        steps.extend(answers);
        if self.sent != status {
            self.sent = status.clone();
            let hidden = !introduced && status.operation_id.as_ref() == Some(&of);
            let operation_id = status.operation_id.filter(|_| !hidden);
            steps.push(Step::Emit(None, Event::StatusChanged { status: Status { operation_id, ..status } }));
        }
        steps.extend(event.map(|event| Step::Emit(Some(of.clone()), event)));
        if too_late {
            steps.extend(self.end(key, End::Cancelled, None, Vec::new(), started));
        }
        (key, of, steps)
    }

    /// Ends an operation, and before it those inside of it. `usage` is the usage now; without it the end says the usage of
    /// the start. `notices` are a title and a detail each.
    pub fn end(
        &mut self,
        key: Key,
        end: End<K::Product>,
        usage: Option<&Usage>,
        notices: Vec<Warning>,
        now: Instant,
    ) -> Steps<K, W> {
        self.close(vec![(key, end)], usage, notices, now)
    }

    /// Records whether the session starts more work without input. Sends `settled` where it waited for work, and none
    /// follows.
    pub fn follow(&mut self, follows: Follows) -> Steps<K, W> {
        self.follows = follows;
        match self.owed.take_if(|_| follows == Follows::Nothing) {
            Some(aborted) => vec![Step::Emit(None, Event::Settled { aborted })],
            None => Vec::new(),
        }
    }

    /// Ends the operations that a cancel selected, inner ones first.
    pub fn end_cancelled(&mut self, cancelling: Cancelling, usage: &Usage, now: Instant) -> Steps<K, W> {
        let ends = cancelling.keys.into_iter().map(|key| (key, End::Cancelled)).collect();
        self.close(ends, Some(usage), Vec::new(), now)
    }

    /// Selects the operations that a cancel ends: all, or those with the id and the ones inside of them. An operation that
    /// is being written is not selected; one around it ends right after it. The status is published as it will be, so that
    /// the client finds it so when the answer arrives.
    pub fn cancel(&mut self, which: Option<&OperationId>) -> (Cancelling, Steps<K, W>) {
        let meant = |open: &Open<K, W>| which.is_none_or(|which| open.id == *which);
        let hit: Vec<Key> =
            self.open.iter().filter(|open| self.lineage(open).any(meant)).map(|open| open.key).collect();
        let (later, keys): (Vec<Key>, Vec<Key>) = hit.into_iter().rev().partition(|key| self.is_committing(*key));
        for open in &mut self.open {
            if later.contains(&open.key) && open.phase == Phase::Running {
                open.phase = Phase::Stopping;
            }
        }
        let named = self.open.iter().rev().filter(|open| {
            let stops = keys.contains(&open.key) || (later.contains(&open.key) && open.phase == Phase::Stopping);
            stops && open.part == Part::Whole
        });
        let named = named.map(|open| Cancelled::of(open.id.clone(), open.kind.name()));
        let named = named.collect();
        let gone = self.ending_with(&keys);
        let after = self.status_of(|open| !gone.contains(&open.key));
        let steps = if keys.is_empty() { Vec::new() } else { vec![Step::Publish(after)] };
        (Cancelling { named, keys }, steps)
    }

    /// Operations that end with these: they themselves, and those around them that were cancelled before and wait for the
    /// last one inside.
    fn ending_with(&self, keys: &[Key]) -> Vec<Key> {
        let mut gone = keys.to_vec();
        for open in self.open.iter().rev().filter(|open| open.phase == Phase::Stopping) {
            let mut inside = self.open.iter().filter(|it| it.parent == Some(open.key)).peekable();
            if inside.peek().is_some() && inside.all(|it| gone.contains(&it.key)) {
                gone.push(open.key);
            }
        }
        gone
    }

    /// The result of the operation is being written from here on. A cancel does not end it.
    pub fn commits(&mut self, key: Key) {
        self.enter(key, Phase::Running, Phase::Committing);
    }

    /// The write has to be repeated. Until then a cancel ends the operation; one that came meanwhile stops its work.
    pub fn commits_no_more(&mut self, key: Key) {
        self.enter(key, Phase::Committing, Phase::Running);
        if let Some(open) = self.find(key).filter(|_| self.is_stopping(key)) {
            open.stop.request();
        }
    }

    /// Whether the operation, or one around it, was cancelled and waits for one inside of it.
    fn is_stopping(&self, key: Key) -> bool {
        self.find(key).is_some_and(|open| self.lineage(open).any(|it| it.phase == Phase::Stopping))
    }

    fn enter(&mut self, key: Key, from: Phase, to: Phase) {
        if let Some(open) = self.find_mut(key).filter(|open| open.phase == from) {
            open.phase = to;
        }
    }

    /// Whether the operation has not ended.
    pub fn is_open(&self, key: Key) -> bool {
        self.find(key).is_some()
    }

    /// The requests that wait for the end of an operation.
    pub fn waiting(&self, key: Key) -> &[W] {
        self.find(key).map_or(&[], |open| &open.waiting)
    }

    /// The status of the session: that of the innermost operation in the foreground.
    pub fn status(&self) -> Status {
        self.status_of(|_| true)
    }

    /// Whether an operation of this name is open.
    pub fn runs(&self, name: &str) -> bool {
        self.open.iter().any(|open| open.kind.name() == name)
    }

    /// The innermost operation in the foreground: its id and the name of its kind.
    pub fn busy(&self) -> Option<(&OperationId, &'static str)> {
        let innermost = self.open.iter().rev().find(|open| self.status_kind(open).is_some());
        innermost.map(|open| (&open.id, self.whole(open).kind.name()))
    }

    /// The operation because of which one of this kind is refused: the innermost that does not give way to it, or cannot
    /// because it is being written.
    pub fn blocking(&self, wanted: &K) -> Option<(&OperationId, &'static str)> {
        let stays = |open: &&Open<K, W>| {
            open.phase != Phase::Waiting && !open.kind.gives_way_to(wanted) || self.is_committing(open.key)
        };
        let blocking = self.open.iter().rev().find(stays);
        blocking.map(|open| (&open.id, self.whole(open).kind.name()))
    }

    /// As `session/status` lists them, outer ones first. A part is not listed beside its whole.
    pub fn list(&self) -> Vec<RunningOperation> {
        let wholes = self.open.iter().filter(|open| open.part == Part::Whole);
        wholes.map(|open| RunningOperation::from(open.unfinished())).collect()
    }

    /// As the lock lists them, outer ones first, with the parts.
    pub fn unfinished(&self) -> Vec<Unfinished> {
        self.open.iter().map(Open::unfinished).collect()
    }

    /// The same with an operation that is about to start.
    pub fn unfinished_with(&self, opening: &Opening<K, W>) -> Vec<Unfinished> {
        let operation_id = match &opening.place {
            Place::Top(id) | Place::Inside(_, id) => Some(id.clone()),
            Place::PartOf(whole, _) => self.find(*whole).map(|whole| whole.id.clone()),
        };
        let about = operation_id.map(|operation_id| Unfinished {
            operation_id,
            kind: opening.kind.name().to_owned(),
            reason: opening.kind.cause(),
            started_at: opening.started_at.clone(),
            inside: Vec::new(),
        });
        self.unfinished().into_iter().chain(about).collect()
    }

    fn find(&self, key: Key) -> Option<&Open<K, W>> {
        self.open.iter().find(|open| open.key == key)
    }

    fn find_mut(&mut self, key: Key) -> Option<&mut Open<K, W>> {
        self.open.iter_mut().find(|open| open.key == key)
    }

    /// An operation and those that it runs in, inner ones first.
    fn lineage<'a>(&'a self, open: &'a Open<K, W>) -> impl Iterator<Item = &'a Open<K, W>> {
        std::iter::successors(Some(open), |open| self.find(open.parent?))
    }

    /// Whether the operation, or one inside of it, is being written.
    fn is_committing(&self, key: Key) -> bool {
        let mut committing = self.open.iter().filter(|open| open.phase == Phase::Committing);
        committing.any(|open| self.lineage(open).any(|it| it.key == key))
    }

    /// The operation itself, or the one that it is a part of.
    fn whole<'a>(&'a self, open: &'a Open<K, W>) -> &'a Open<K, W> {
        self.lineage(open).find(|open| open.part == Part::Whole).unwrap_or(open)
    }

    /// The status that an operation gives the session; `None` in the background.
    fn status_kind(&self, open: &Open<K, W>) -> Option<StatusKind> {
        let in_background =
            |open: &Open<K, W>| open.phase == Phase::Waiting || open.kind.standing() == Standing::Background;
        if self.lineage(open).any(in_background) {
            return None;
        }
        match self.whole(open).kind.standing() {
            Standing::Foreground(status) => Some(status),
            Standing::Background => None,
        }
    }

    /// The status of the session, if only these operations were open.
    fn status_of(&self, open: impl Fn(&Open<K, W>) -> bool) -> Status {
        let mut innermost = self.open.iter().rev().filter(|it| open(it));
        let status = innermost.find_map(|open| {
            let kind = self.status_kind(open)?;
            let whole = self.whole(open);
            Some(Status { kind, operation_id: Some(whole.id.clone()), reason: Some(whole.kind.cause()) })
        });
        status.unwrap_or_else(idle)
    }

    /// Operations that end for one of this kind to start in `parent`. Those that it starts in stay, and one in the
    /// background ends none in the foreground.
    fn giving_way(&self, wanted: &K, parent: Option<Key>) -> Vec<Key> {
        let parent_in_background =
            parent.and_then(|parent| self.find(parent)).is_some_and(|parent| self.status_kind(parent).is_none());
        let in_background = parent_in_background || wanted.standing() == Standing::Background;
        let around: Vec<Key> = parent
            .and_then(|parent| self.find(parent))
            .map(|parent| self.lineage(parent).map(|open| open.key).collect())
            .unwrap_or_default();
        let gives_way = |open: &&Open<K, W>| {
            let may_end = open.phase == Phase::Running && !self.is_committing(open.key);
            let outranked = in_background && self.status_kind(open).is_some();
            !around.contains(&open.key) && may_end && !outranked && open.kind.gives_way_to(wanted)
        };
        self.open.iter().rev().filter(gives_way).map(|open| open.key).collect()
    }

    /// Takes operations out, each after those inside of it. An operation around them that was cancelled before follows
    /// the last one inside of it.
    fn take_out(&mut self, ends: Vec<(Key, End<K::Product>)>) -> Vec<Closed<K, W>> {
        let mut closed: Vec<Closed<K, W>> = Vec::new();
        for (key, end) in ends {
            let Some(open) = self.find(key) else { continue };
            let (mut around, name) = (open.parent, open.kind.name());
            let inside: Vec<Key> = self.open.iter().rev().filter(|it| it.key != key).map(|it| it.key).collect();
            for inner in inside {
                let is_inside = self.find(inner).is_some_and(|it| self.lineage(it).any(|it| it.key == key));
                if is_inside && let Some(open) = self.remove(inner) {
                    let end = match end {
                        End::Cancelled => End::Cancelled,
                        _ => {
                            End::Failed(Failure::Internal(format!("the {name} that it was a part of ended before it")))
                        }
                    };
                    closed.push(Closed { open, end, continues: false });
                }
            }
            let outer = around.and_then(|parent| self.find(parent));
            let continues = outer.is_some_and(|outer| outer.kind.goes_on_after_inner());
            closed.extend(self.remove(key).map(|open| Closed { open, end, continues }));
            while let Some(parent) = around.and_then(|parent| self.find(parent))
                && parent.phase == Phase::Stopping
                && !self.open.iter().any(|it| it.parent == Some(parent.key))
            {
                let key = parent.key;
                around = parent.parent;
                closed.extend(self.remove(key).map(|open| Closed { open, end: End::Cancelled, continues: false }));
            }
        }
        closed
    }

    fn remove(&mut self, key: Key) -> Option<Open<K, W>> {
        let at = self.open.iter().position(|open| open.key == key)?;
        Some(self.open.remove(at))
    }

    /// Ends operations: the status that other tasks see, the end events, the new status, the notices, `settled` where
    /// nothing is left in the foreground, and the answers of the requests that waited.
    fn close(
        &mut self,
        ending: Vec<(Key, End<K::Product>)>,
        usage: Option<&Usage>,
        notices: Vec<Warning>,
        now: Instant,
    ) -> Steps<K, W> {
        let was_busy = self.busy().is_some();
        let of = ending.first().and_then(|(key, _)| self.find(*key)).map(|open| open.id.clone());
        let closed = self.take_out(ending);
        let Some(last) = closed.last() else { return Vec::new() };
        let aborted = matches!(last.end, End::Cancelled);
        let untold = untold(&closed);
        let status = self.status();
        let mut steps = vec![Step::Publish(status.clone())];
        let (last, answers) = ends(closed, usage, now, &mut steps);
        if self.sent != status {
            self.sent = status.clone();
            steps.push(Step::Emit(None, Event::StatusChanged { status }));
        }
        for (of, notice) in untold.into_iter().chain(notices.into_iter().map(|notice| (of.clone(), notice))) {
            steps.push(Step::Emit(of, notice.into()));
        }
        if self.settles(was_busy, aborted) {
            steps.push(Step::Emit(None, Event::Settled { aborted }));
        }
        steps.extend(last);
        steps.extend(answers);
        steps
    }
}

/// Adds the end events of operations that were taken out, and returns the events after everything else and the answers of
/// the requests that waited for them.
fn ends<K: Kind, W>(
    closed: Vec<Closed<K, W>>,
    usage: Option<&Usage>,
    now: Instant,
    steps: &mut Steps<K, W>,
) -> (Steps<K, W>, Steps<K, W>) {
    let (mut last, mut answers) = (Vec::new(), Vec::new());
    for Closed { open, end, continues } in closed {
        open.stop.request();
        for inside in open.inside.into_iter().rev() {
            steps.push(Step::Emit(Some(open.id.clone()), inside.cut_off(now)));
        }
        let duration = now.saturating_duration_since(open.started);
        let usage = usage.unwrap_or(&open.usage);
        let event = open.kind.end(&Ended { end: &end, usage, duration, continues });
        steps.extend(event.map(|event| Step::Emit(Some(open.id.clone()), event)));
        last.extend(open.kind.last(&end).map(|event| Step::Emit(Some(open.id.clone()), event)));
        let answered = open.waiting.into_iter().map(|request| Step::Answer(request, open.kind.ended(&open.id, &end)));
        answers.extend(answered);
    }
    (last, answers)
}

impl<K: Kind, W> Open<K, W> {
    fn unfinished(&self) -> Unfinished {
        Unfinished {
            operation_id: self.id.clone(),
            kind: self.kind.name().to_owned(),
            reason: self.kind.cause(),
            started_at: self.started_at.clone(),
            inside: self.inside.iter().map(Inside::recorded).collect(),
        }
    }
}

impl From<Unfinished> for RunningOperation {
    fn from(unfinished: Unfinished) -> Self {
        let Unfinished { operation_id, kind, reason, started_at, .. } = unfinished;
        Self { operation_id, kind, reason, started_at }
    }
}
