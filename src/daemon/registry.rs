//! The registry of sessions: the open ones, those that are being opened or closed, and the requests that wait for them.
//!
//! The registry is the only owner of this state, does no I/O, and is used under one lock. Each opening of a session
//! starts a life with a unique number. A life ends with `retire`, which removes that life and no other.
//!
//! Requests about one session begin in the order of the wire. A request waits for
//! - a life of its session that is being opened;
//! - a load by path that is before it and not decided, where its session is not open, because the path may lead to it, or
//!   where the session is open from that very path.
//!
//! A load by path waits only for a load, close or delete of its session that is before it and waits itself. Loads of
//! one path are decided together. A load that takes too long to decide stops holding other requests.
//!
//! Two paths can lead to one session, so the decision on one load says nothing about earlier loads of other paths.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod model;

use crate::ids::SessionId;
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

/// Requests that wait for one life, or for loads by path, before more are refused. As many as a mailbox takes.
const MOST_WAITING: usize = 1_024;

/// Loads by path that are not decided before more are refused. Each has a thread.
const MOST_PENDING: usize = 64;

/// Sessions that are not open any more and are remembered, so that a late cancel finds nothing and no error.
const REMEMBERED: usize = 256;

/// The types and operations of sessions, as the registry needs them.
pub(super) trait World {
    /// The sending end of a session's mailbox.
    type Door: Clone;
    /// The receiving end of the mailbox.
    type Inbox;
    /// A request to a session.
    type Command;
    /// A request that opens a session.
    type Load;
    /// A request that deletes a session.
    type Delete;

    /// Makes the mailbox of a session that is yet to be opened.
    fn door(&self) -> (Self::Door, Self::Inbox);
    /// Sends a command. Returns false where the session refused it; the refusal is already answered.
    fn send(&self, door: &Self::Door, id: &SessionId, command: Self::Command) -> bool;
    /// Returns true while a session receives from the door.
    fn is_open(&self, door: &Self::Door) -> bool;
    /// Returns true where this command ends the session.
    fn closes(&self, command: &Self::Command) -> bool;
    /// Returns true where a cancel stops this command before it begins.
    fn can_be_cancelled(&self, command: &Self::Command) -> bool;
    /// Returns true where a load finds its file without the registry: a load by path, or one that makes a new session.
    fn knows_its_file(&self, load: &Self::Load) -> bool;
    /// Turns a load of a session that is already open into a command for it.
    fn describe(&self, load: Self::Load) -> Option<Self::Command>;
    /// The command that ends a session and is not answered.
    fn leave(&self) -> Self::Command;
}

/// The number of a life. No two lives have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Life(u64);

/// The number of a load by path that is not decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// The file of a life, once it was opened; `None` in it for a session without one.
pub(super) type FileOf = Arc<OnceLock<Option<PathBuf>>>;

/// Work that follows from a change of the registry. The caller performs the steps in order, under the same lock.
pub(super) enum Step<W: World> {
    /// Opens a session when the life before it is gone.
    Open { id: SessionId, life: Life, door: W::Door, inbox: W::Inbox, before: Option<W::Door>, load: W::Load },
    /// Deletes a session when the life before is gone. `session` is the file of the life that was open.
    Delete {
        id: SessionId,
        life: Life,
        inbox: W::Inbox,
        before: Option<W::Door>,
        session: Option<FileOf>,
        delete: W::Delete,
    },
    /// Refuses a request to a session that is not open.
    NotOpen(SessionId, W::Command),
    /// Refuses a request that waited for a life of this session, which could not be opened.
    Failed(SessionId, W::Command),
    /// Refuses a request because too many wait.
    TooMany(Request<W>),
}

/// A request that waits.
pub(super) enum Request<W: World> {
    Command(W::Command),
    Load(W::Load),
    Delete(W::Delete),
}

/// The session that a load by path is about.
pub(super) enum Decided<'a> {
    /// The file's header has this id.
    Is(&'a SessionId),
    /// The path leads to no session.
    Nothing,
}

/// The answer to a cancel.
pub(super) enum Cancel<W: World> {
    /// The session answers.
    Ask(W::Door),
    /// Nothing runs; these commands waited and are cancelled.
    Nothing(Vec<W::Command>),
    /// There is no such session.
    NotOpen,
}

/// The registry.
pub(super) struct Registry<W: World> {
    world: W,
    sessions: HashMap<SessionId, Lives<W>>,
    /// The sessions that are open or being opened, by the paths they were loaded from and by those of their files.
    files: HashMap<PathBuf, (SessionId, Life)>,
    pending: BTreeMap<Ticket, Pending>,
    /// Requests that wait for loads by path, and these loads, in the order of the wire.
    held: VecDeque<Held<W>>,
    /// Order of the last close of each session, kept while loads that may have come before it are pending or wait.
    closed: HashMap<SessionId, u64>,
    recent: VecDeque<SessionId>,
    last: u64,
}

/// The lives of one session. `current` takes requests; the lives in `leaving` were told to end, the newest last.
struct Lives<W: World> {
    current: Option<Resident<W>>,
    leaving: Vec<(Life, W::Door)>,
}

struct Resident<W: World> {
    life: Life,
    door: W::Door,
    file: FileOf,
    /// The keys of `files` for this life.
    paths: Vec<PathBuf>,
    phase: Phase<W>,
}

enum Phase<W: World> {
    /// The requests that wait until the session is open, in the order of the wire.
    Opening(VecDeque<(u64, Request<W>)>),
    Open,
}

struct Pending {
    path: PathBuf,
    /// The session that is open from this path.
    likely: Option<SessionId>,
    /// True while requests wait for this load.
    holds: bool,
}

struct Held<W: World> {
    order: u64,
    to: To,
    request: Request<W>,
}

enum To {
    Session(SessionId),
    /// A load by path.
    Path(Ticket),
}

impl<W: World> Registry<W> {
    pub(super) fn new(world: W) -> Self {
        Self {
            world,
            sessions: HashMap::new(),
            files: HashMap::new(),
            pending: BTreeMap::new(),
            held: VecDeque::new(),
            closed: HashMap::new(),
            recent: VecDeque::new(),
            last: 0,
        }
    }

    /// Takes a request to a session.
    pub(super) fn command(&mut self, id: &SessionId, command: W::Command) -> Vec<Step<W>> {
        self.request(id, Request::Command(command))
    }

    /// Opens a session, or describes it where it is open. A load by id waits for loads by path before it: one of them
    /// may open the session from a file outside of the data folder, which an id does not find.
    pub(super) fn load(&mut self, id: &SessionId, load: W::Load) -> Vec<Step<W>> {
        self.request(id, Request::Load(load))
    }

    /// Deletes a session.
    pub(super) fn delete(&mut self, id: &SessionId, delete: W::Delete) -> Vec<Step<W>> {
        self.request(id, Request::Delete(delete))
    }

    /// Takes a load by path. With a ticket, the caller reads the session id from the file and calls `decide`. Without
    /// one, a load of the same path is pending, and its decision counts for this one too.
    ///
    /// # Errors
    /// Returns the load where too many are pending or wait.
    pub(super) fn load_path(&mut self, path: &Path, load: W::Load) -> Result<Option<Ticket>, W::Load> {
        let order = self.next();
        let same = self.pending.iter().find(|(_, pending)| pending.path == path).map(|(ticket, _)| *ticket);
        if self.held.len() >= MOST_WAITING || same.is_none() && self.pending.len() >= MOST_PENDING {
            return Err(load);
        }
        let ticket = same.unwrap_or(Ticket(order));
        self.held.push_back(Held { order, to: To::Path(ticket), request: Request::Load(load) });
        if same.is_some() {
            return Ok(None);
        }
        let likely = self.files.get(path).map(|(id, _)| id.clone());
        self.pending.insert(ticket, Pending { path: path.to_owned(), likely, holds: true });
        Ok(Some(ticket))
    }

    /// Decides the loads of a ticket. Returns the loads whose path leads to no session, for the caller to answer, and
    /// the next steps.
    pub(super) fn decide(&mut self, ticket: Ticket, decided: Decided<'_>) -> (Vec<W::Load>, Vec<Step<W>>) {
        let Some(pending) = self.pending.remove(&ticket) else { return Default::default() };
        let id = match decided {
            Decided::Is(id) => Some(id.clone()),
            Decided::Nothing => None,
        };
        let mine = |held: &Held<W>| match &held.to {
            To::Path(it) => *it == ticket,
            To::Session(it) => id.as_ref() == Some(it),
        };
        let taken = self.take_held(mine);
        let (mut failed, mut steps) = (Vec::new(), Vec::new());
        if let Some(id) = &id {
            for Held { order, to, request } in taken {
                steps.extend(self.again(id, order, request));
                if matches!(to, To::Path(_)) {
                    self.lies_at(id, &pending.path);
                }
            }
        } else {
            failed.extend(taken.into_iter().filter_map(|held| match held.request {
                Request::Load(load) => Some(load),
                Request::Command(_) | Request::Delete(_) => None,
            }));
        }
        steps.extend(self.release());
        self.forget_closed();
        (failed, steps)
    }

    /// Releases the requests that wait for a load by path, because it takes too long.
    pub(super) fn stop_holding(&mut self, ticket: Ticket) -> Vec<Step<W>> {
        let Some(pending) = self.pending.get_mut(&ticket) else { return Vec::new() };
        pending.holds = false;
        self.release()
    }

    /// Marks a life as open, with its file, and sends the requests that waited for it.
    pub(super) fn opened(&mut self, id: &SessionId, life: Life, file: Option<&Path>) -> Vec<Step<W>> {
        let Some(resident) = self.current_mut(id).filter(|resident| resident.life == life) else { return Vec::new() };
        let _ = resident.file.set(file.map(Path::to_owned));
        let waiting = match std::mem::replace(&mut resident.phase, Phase::Open) {
            Phase::Opening(waiting) => waiting,
            Phase::Open => return Vec::new(),
        };
        if let Some(file) = file {
            self.lies_at(id, file);
        }
        let steps = waiting.into_iter().flat_map(|(order, request)| self.again(id, order, request)).collect();
        self.forget_closed();
        steps
    }

    /// Removes a life that was closed, ended by itself, or could not be opened. Requests that waited for it fail, up to
    /// the next load, which opens the session again.
    pub(super) fn retire(&mut self, id: &SessionId, life: Life) -> Vec<Step<W>> {
        let Some(lives) = self.sessions.get_mut(id) else { return Vec::new() };
        lives.leaving.retain(|(it, _)| *it != life);
        let ended = lives.current.take_if(|resident| resident.life == life);
        let gone = lives.current.is_none() && lives.leaving.is_empty();
        if gone {
            self.sessions.remove(id);
        }
        if gone && !self.recent.contains(id) {
            self.recent.truncate(REMEMBERED - 1);
            self.recent.push_front(id.clone());
        }
        let Some(resident) = ended else { return Vec::new() };
        self.forget_paths(&resident);
        let Phase::Opening(waiting) = resident.phase else { return Vec::new() };
        let mut steps = Vec::new();
        for (order, request) in waiting {
            match request {
                // A load by path that came before it may open the session yet.
                request if self.waits_for_a_path(id, order, &request) => steps.extend(self.again(id, order, request)),
                Request::Command(command) if self.current(id).is_none() => {
                    steps.push(Step::Failed(id.clone(), command))
                }
                request => steps.extend(self.again(id, order, request)),
            }
        }
        self.forget_closed();
        steps
    }

    /// Cancels the waiting commands of a session, at once.
    pub(super) fn cancel(&mut self, id: &SessionId) -> Cancel<W> {
        let world = &self.world;
        let cancels = |request: &Request<W>| matches!(request, Request::Command(it) if world.can_be_cancelled(it));
        let mut cancelled = Vec::new();
        let mut known = self.recent.contains(id);
        if let Some(lives) = self.sessions.get_mut(id) {
            match &mut lives.current {
                Some(Resident { phase: Phase::Open, door, .. }) => return Cancel::Ask(door.clone()),
                Some(Resident { phase: Phase::Opening(waiting), .. }) => {
                    let (taken, left) = std::mem::take(waiting).into_iter().partition(|(_, it)| cancels(it));
                    *waiting = left;
                    cancelled.extend(VecDeque::into_iter(taken).map(|(_, request)| request));
                }
                None => {}
            }
            known = true;
        }
        known |= self.pending.values().any(|pending| pending.holds);
        let about = |held: &Held<W>| matches!(&held.to, To::Session(it) if it == id);
        let (taken, left) =
            std::mem::take(&mut self.held).into_iter().partition(|it| about(it) && cancels(&it.request));
        self.held = left;
        cancelled.extend(VecDeque::into_iter(taken).map(|held: Held<W>| held.request));
        let command = |request| match request {
            Request::Command(command) => Some(command),
            Request::Load(_) | Request::Delete(_) => None,
        };
        let cancelled: Vec<_> = cancelled.into_iter().filter_map(command).collect();
        if known || !cancelled.is_empty() { Cancel::Nothing(cancelled) } else { Cancel::NotOpen }
    }

    /// The door of a session that is open or being opened.
    pub(super) fn door(&self, id: &SessionId) -> Option<&W::Door> {
        self.current(id).map(|resident| &resident.door)
    }

    /// The door of the session that is open from this path.
    pub(super) fn door_at(&self, path: &Path) -> Option<&W::Door> {
        self.files.get(path).and_then(|(id, _)| self.door(id))
    }

    /// The doors of all lives, those that are leaving too.
    pub(super) fn doors(&self) -> impl Iterator<Item = &W::Door> {
        self.sessions.values().flat_map(|lives| {
            let current = lives.current.iter().map(|resident| &resident.door);
            current.chain(lives.leaving.iter().map(|(_, door)| door))
        })
    }

    /// The doors of all lives for which no request waits here.
    pub(super) fn doors_without_requests(&self) -> impl Iterator<Item = &W::Door> {
        let waited_for = |id: &SessionId| {
            let likely = |pending: &Pending| pending.likely.as_ref() == Some(id) && pending.holds;
            self.pending.values().any(likely)
                || self.held.iter().any(|it| matches!(&it.to, To::Session(it) if it == id))
        };
        self.sessions.iter().filter(move |(id, _)| !waited_for(id)).flat_map(|(_, lives)| {
            let current = lives.current.iter().map(|resident| &resident.door);
            current.chain(lives.leaving.iter().map(|(_, door)| door))
        })
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn current(&self, id: &SessionId) -> Option<&Resident<W>> {
        self.sessions.get(id)?.current.as_ref()
    }

    fn current_mut(&mut self, id: &SessionId) -> Option<&mut Resident<W>> {
        self.sessions.get_mut(id)?.current.as_mut()
    }

    fn request(&mut self, id: &SessionId, request: Request<W>) -> Vec<Step<W>> {
        let order = self.next();
        self.again(id, order, request)
    }

    /// Forwards a request, or queues it in its place.
    fn again(&mut self, id: &SessionId, order: u64, request: Request<W>) -> Vec<Step<W>> {
        if self.waits_for_a_path(id, order, &request) {
            if self.held.len() >= MOST_WAITING {
                return vec![Step::TooMany(request)];
            }
            let at = self.held.partition_point(|held| held.order < order);
            self.held.insert(at, Held { order, to: To::Session(id.clone()), request });
            return Vec::new();
        }
        self.now(id, order, request)
    }

    /// Forwards a request to a session, or queues it for the life that is being opened.
    fn now(&mut self, id: &SessionId, order: u64, request: Request<W>) -> Vec<Step<W>> {
        if let Some(Resident { phase: Phase::Opening(waiting), .. }) = self.current_mut(id) {
            if waiting.len() >= MOST_WAITING {
                return vec![Step::TooMany(request)];
            }
            // A load by path that was decided late stands before what came after it.
            let at = waiting.partition_point(|(other, _)| *other <= order);
            waiting.insert(at, (order, request));
            return Vec::new();
        }
        match request {
            Request::Command(command) => self.send(id, order, command),
            Request::Load(load) => self.open_or_describe(id, order, load),
            Request::Delete(delete) => self.begin_delete(id, order, delete),
        }
    }

    /// Returns true where a request waits for a load by path that came before it.
    fn waits_for_a_path(&self, id: &SessionId, order: u64, request: &Request<W>) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let open = self.current(id).is_some();
        let mut before = self.pending.iter().filter(|(ticket, pending)| pending.holds && ticket.0 < order);
        if open {
            return before.any(|(_, pending)| pending.likely.as_ref() == Some(id));
        }
        let waits = match request {
            // It opens the session now, unless a request that opens or ends the session has to begin before.
            Request::Load(load) if self.world.knows_its_file(load) => self.changes_before(id, order),
            Request::Load(_) | Request::Command(_) | Request::Delete(_) => true,
        };
        before.next().is_some() && waits
    }

    /// Returns true where an earlier request that waits opens, closes or deletes this session.
    fn changes_before(&self, id: &SessionId, order: u64) -> bool {
        let changes = |request: &Request<W>| match request {
            Request::Command(command) => self.world.closes(command),
            Request::Load(_) | Request::Delete(_) => true,
        };
        let about = |held: &Held<W>| held.order < order && matches!(&held.to, To::Session(it) if it == id);
        self.held.iter().any(|held| about(held) && changes(&held.request))
    }

    fn send(&mut self, id: &SessionId, order: u64, command: W::Command) -> Vec<Step<W>> {
        let Some(door) = self.door(id).cloned() else { return vec![Step::NotOpen(id.clone(), command)] };
        let closes = self.world.closes(&command);
        if self.world.send(&door, id, command) && closes {
            // A load from here on opens it anew.
            self.let_go(id, order);
        }
        Vec::new()
    }

    /// Moves the current life to the leaving ones. Returns its file.
    fn let_go(&mut self, id: &SessionId, order: u64) -> Option<FileOf> {
        let lives = self.sessions.get_mut(id)?;
        let resident = lives.current.take()?;
        lives.leaving.push((resident.life, resident.door.clone()));
        self.forget_paths(&resident);
        if !self.pending.is_empty() {
            self.closed.insert(id.clone(), order);
        }
        Some(resident.file)
    }

    fn open_or_describe(&mut self, id: &SessionId, order: u64, load: W::Load) -> Vec<Step<W>> {
        match self.door(id).cloned() {
            Some(door) if self.world.is_open(&door) => {
                if let Some(describe) = self.world.describe(load) {
                    self.world.send(&door, id, describe);
                }
                return Vec::new();
            }
            // It ended by itself and is not retired yet.
            Some(_) => drop(self.let_go(id, order)),
            None => {}
        }
        let life = Life(self.next());
        let (door, inbox) = self.world.door();
        // A close that came after this load and was not held back counts.
        let closed = self.closed.get(id).copied().filter(|closed| *closed > order);
        let waiting = closed.map(|closed| (closed, Request::Command(self.world.leave()))).into_iter().collect();
        let lives = self.sessions.entry(id.clone()).or_insert_with(|| Lives { current: None, leaving: Vec::new() });
        let before = lives.leaving.last().map(|(_, door)| door.clone());
        let phase = Phase::Opening(waiting);
        lives.current = Some(Resident { life, door: door.clone(), file: FileOf::default(), paths: Vec::new(), phase });
        let mut steps = vec![Step::Open { id: id.clone(), life, door, inbox, before, load }];
        for held in self.take_held(|held| matches!(&held.to, To::Session(it) if it == id)) {
            steps.extend(self.again(id, held.order, held.request));
        }
        steps
    }

    fn begin_delete(&mut self, id: &SessionId, order: u64, delete: W::Delete) -> Vec<Step<W>> {
        if let Some(door) = self.door(id).cloned()
            && self.world.is_open(&door)
            && !self.world.send(&door, id, self.world.leave())
        {
            return vec![Step::TooMany(Request::Delete(delete))];
        }
        let session = self.let_go(id, order);
        let life = Life(self.next());
        // A load from here on waits until the file is gone.
        let (door, inbox) = self.world.door();
        let lives = self.sessions.entry(id.clone()).or_insert_with(|| Lives { current: None, leaving: Vec::new() });
        let before = lives.leaving.last().map(|(_, door)| door.clone());
        lives.leaving.push((life, door));
        vec![Step::Delete { id: id.clone(), life, inbox, before, session, delete }]
    }

    /// Forwards the held requests that have nothing to wait for any more.
    fn release(&mut self) -> Vec<Step<W>> {
        let held = self.take_held(|held| matches!(held.to, To::Session(_)));
        let mut steps = Vec::new();
        for Held { order, to, request } in held {
            if let To::Session(id) = to {
                steps.extend(self.again(&id, order, request));
            }
        }
        steps
    }

    fn take_held(&mut self, wanted: impl Fn(&Held<W>) -> bool) -> VecDeque<Held<W>> {
        if self.held.is_empty() {
            return VecDeque::new();
        }
        let (taken, left) = std::mem::take(&mut self.held).into_iter().partition(wanted);
        self.held = left;
        taken
    }

    /// Records that the current life of a session came from this path.
    fn lies_at(&mut self, id: &SessionId, path: &Path) {
        let Some(resident) = self.current_mut(id) else { return };
        let life = resident.life;
        if !resident.paths.iter().any(|it| it == path) {
            resident.paths.push(path.to_owned());
        }
        self.files.insert(path.to_owned(), (id.clone(), life));
    }

    /// Drops the closes that no load by path can precede any more: no load is pending, and none waits for a life.
    fn forget_closed(&mut self) {
        if self.pending.is_empty() {
            let sessions = &self.sessions;
            let being_opened = |id: &SessionId| {
                let current = sessions.get(id).and_then(|lives| lives.current.as_ref());
                matches!(current, Some(Resident { phase: Phase::Opening(waiting), .. }) if !waiting.is_empty())
            };
            self.closed.retain(|id, _| being_opened(id));
        }
    }

    fn forget_paths(&mut self, resident: &Resident<W>) {
        for path in &resident.paths {
            if self.files.get(path).is_some_and(|(_, life)| *life == resident.life) {
                self.files.remove(path);
            }
        }
    }
}
