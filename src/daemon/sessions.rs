//! Opens, reaches, closes and deletes the sessions of a running daemon, as the registry decides.

#![expect(clippy::disallowed_methods, reason = "opens session files")]

use super::{
    Daemon, idle_status, lock,
    registry::{Cancel, Decided, FileOf, Life, Request, Step, Ticket, World},
    routes::DaemonMethod,
    stores,
};
use crate::{
    agents::transcript::Origin,
    clock,
    conversation::{entry::Stamps, tokens},
    ids::SessionId,
    log::sealed::Blocking,
    protocol::{
        Method, SessionCancel, SessionDelete, SessionImport, SessionList, SessionLoad, SessionNew,
        errors::Failure,
        types::{
            CancelAnswer, CancelParams, ForkAnswer, ImportAnswer, ImportParams, LONGEST_PATH, LONGEST_TITLE,
            ListParams, LoadAnswer, LoadParams, NewParams, Object, SessionAnswer, SessionParams,
        },
    },
    session::{
        core::commands::status,
        forking::Forking,
        founding::{Founding, Keeping, Told},
        handle::{self, Glance, Handle, Inbox, Mail, Urgent},
        hooks::Hooks,
        open::{self, Form, Opened},
        shared::Shared,
        shell,
        state::Capabilities,
    },
    settings::checked,
    wire::rpc::Reply,
};
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// The longest time that requests wait for a load by path that may be about their session. A file on a network mount
/// that does not answer takes longer; a file on any other disk takes far less.
const LONGEST_HOLD: Duration = Duration::from_secs(5);

/// `retryAfterMs` of a request that is refused because too many wait.
const TRY_AGAIN: u64 = 50;

/// The sessions of the daemon, for the registry.
pub(super) struct Doors(pub(super) Shared);

/// A request that opens a session.
pub(super) struct Load {
    from: From,
    asker: Asker,
}

/// The one that a session is opened for.
enum Asker {
    /// A client.
    Client(Reply),
    /// A session whose summary begins it.
    Session(Told),
}

impl Asker {
    /// A flag that is set when the request is cancelled.
    fn stopped(&self) -> Arc<AtomicBool> {
        let stopped = Arc::new(AtomicBool::new(false));
        if let Self::Client(reply) = self {
            let stopped = stopped.clone();
            reply.on_cancel(move || stopped.store(true, Ordering::Relaxed));
        }
        stopped
    }

    fn ok(self, answer: &Answer) {
        match self {
            Self::Client(reply) => reply.ok(answer),
            Self::Session(told) => told(Ok(answer.file())),
        }
    }

    fn fail(self, failure: &Failure) {
        match self {
            Self::Client(reply) => reply.fail(failure),
            Self::Session(told) => told(Err(failure.clone().into())),
        }
    }
}

/// A request that deletes a session.
pub(super) struct Delete {
    /// The registration of this session alone, which goes with it.
    hooks: Option<Arc<Hooks>>,
    reply: Reply,
}

enum From {
    New(Box<NewParams>),
    Load(Box<LoadParams>),
    Import(Box<ImportParams>),
    Founded(Box<Founding>),
    Forked(Box<Forking>),
}

impl From {
    fn form(&self) -> Form {
        match self {
            Self::New(params) if params.ephemeral == Some(true) => Form::Ephemeral,
            Self::New(_) => Form::New,
            Self::Founded(founding) if founding.keeping == Keeping::Memory => Form::Ephemeral,
            Self::Forked(forking) if forking.keeping == Keeping::Memory => Form::Ephemeral,
            Self::Founded(_) | Self::Forked(_) | Self::Import(_) => Form::Loaded,
            Self::Load(params) if params.read_only == Some(true) => Form::ReadOnly,
            Self::Load(_) => Form::Loaded,
        }
    }
}

impl World for Doors {
    type Door = Handle;
    type Inbox = Inbox;
    type Command = Mail;
    type Load = Load;
    type Delete = Delete;

    fn door(&self) -> (Handle, Inbox) {
        handle::mailbox(self.0.clone())
    }

    fn send(&self, door: &Handle, id: &SessionId, mail: Mail) -> bool {
        door.send(id, mail)
    }

    fn is_open(&self, door: &Handle) -> bool {
        door.is_open()
    }

    fn closes(&self, mail: &Mail) -> bool {
        mail.closes()
    }

    fn can_be_cancelled(&self, mail: &Mail) -> bool {
        mail.can_be_cancelled()
    }

    fn knows_its_file(&self, load: &Load) -> bool {
        match &load.from {
            From::New(_) | From::Founded(_) | From::Forked(_) | From::Import(_) => true,
            From::Load(params) => params.path.is_some(),
        }
    }

    fn describe(&self, Load { from, asker }: Load) -> Option<Mail> {
        match (from, asker) {
            (From::Load(params), Asker::Client(reply)) => Some(Mail::Describe(params, reply)),
            // No other session has a fresh id.
            (_, Asker::Client(reply)) => Some(Mail::Command(status::command(), reply)),
            (_, Asker::Session(told)) => {
                told(Err(Failure::Internal("there is a session with this id".to_owned()).into()));
                None
            }
        }
    }

    fn leave(&self) -> Mail {
        Mail::Leave
    }
}

/// A life of a session. Its drop retires the life, on every way out.
struct Tenancy {
    daemon: Arc<Daemon>,
    id: SessionId,
    life: Life,
    /// The reason that requests which wait for it are given where a defect ends it.
    failure: Failure,
}

impl Drop for Tenancy {
    fn drop(&mut self) {
        let mut registry = lock(&self.daemon.registry);
        let steps = registry.retire(&self.id, self.life);
        self.daemon.perform(steps, &self.failure);
    }
}

/// Refuses a misspelt key of a client's settings. Other unknown keys are named in the answer.
fn check_keys<M: Method>(settings: Option<&Object>, reply: &mut Reply) -> Result<(), Failure> {
    let Some(settings) = settings else { return Ok(()) };
    let unknown = checked::unknown(&settings.0);
    if let Some((key, advice)) = unknown.iter().find_map(|it| Some((&it.key, it.advice.as_ref()?))) {
        let what = format!("there is no such setting; {advice}");
        return Err(Failure::params(format!("settings.{key}"), what));
    }
    reply.also_ignored(M::NAME, unknown.into_iter().map(|it| format!("settings.{}", it.key)).collect());
    Ok(())
}

impl DaemonMethod for SessionNew {
    fn handle(daemon: &Arc<Daemon>, params: NewParams, mut reply: Reply) {
        if let Err(failure) = check_keys::<Self>(params.settings.as_ref(), &mut reply) {
            return reply.fail(&failure);
        }
        let tools = params.tools.or_else(|| daemon.tools.get());
        let params = NewParams { tools, ..params };
        let id = SessionId::fresh(clock::now());
        let mut registry = lock(&daemon.registry);
        let steps = registry.load(&id, Load { from: From::New(Box::new(params)), asker: Asker::Client(reply) });
        daemon.perform(steps, &Failure::no_session(id.as_str()));
    }
}

impl DaemonMethod for SessionLoad {
    fn handle(daemon: &Arc<Daemon>, params: LoadParams, mut reply: Reply) {
        if let Err(failure) = check_keys::<Self>(params.settings.as_ref(), &mut reply) {
            return reply.fail(&failure);
        }
        match (params.session_id.clone(), params.path.clone()) {
            (Some(id), None) => {
                let mut registry = lock(&daemon.registry);
                let steps =
                    registry.load(&id, Load { from: From::Load(Box::new(params)), asker: Asker::Client(reply) });
                daemon.perform(steps, &Failure::no_session(id.as_str()));
            }
            (None, Some(path)) => daemon.load_by_path(PathBuf::from(path), params, reply),
            _ => reply.fail(&Failure::params("sessionId", "give either sessionId or path")),
        }
    }
}

impl DaemonMethod for SessionImport {
    fn handle(daemon: &Arc<Daemon>, params: ImportParams, reply: Reply) {
        let invalid = Failure::if_longer("title", params.title.as_deref(), LONGEST_TITLE)
            .and_then(|()| Failure::if_longer("cwd", params.cwd.as_deref(), LONGEST_PATH))
            .and_then(|()| match params.cwd.as_deref().filter(|cwd| !Path::new(cwd).is_absolute()) {
                Some(cwd) => Err(Failure::relative_path("cwd", cwd)),
                None => Ok(()),
            });
        if let Err(failure) = invalid {
            return reply.fail(&failure);
        }
        let id = SessionId::fresh(clock::now());
        let mut registry = lock(&daemon.registry);
        let load = Load { from: From::Import(Box::new(params)), asker: Asker::Client(reply) };
        let steps = registry.load(&id, load);
        daemon.perform(steps, &Failure::no_session(id.as_str()));
    }
}

impl DaemonMethod for SessionList {
    fn handle(daemon: &Arc<Daemon>, params: ListParams, reply: Reply) {
        let listing = daemon.clone();
        daemon.runtime.spawn_blocking(daemon.tracked(move || {
            let listed = match listing.home.store() {
                Some(store) => stores::list(store, &params),
                None => Ok(listing.files.catalog.list(&params)),
            };
            let mut answer = match listed {
                Ok(answer) => answer,
                Err(failure) => return reply.fail(&failure),
            };
            let registry = lock(&listing.registry);
            for session in &mut answer.sessions {
                if let Some(handle) = registry.door(&session.session_id) {
                    let Glance { status, percent, entry_count } = handle.glance.get();
                    session.status = Some(status);
                    session.percent = percent;
                    session.entry_count = entry_count;
                }
            }
            drop(registry);
            listing.files.catalog.remember(&answer.sessions);
            reply.ok(&answer);
        }));
    }
}

impl DaemonMethod for SessionDelete {
    fn handle(daemon: &Arc<Daemon>, params: SessionParams, reply: Reply) {
        let hooks = daemon.hooks.own(&params.session_id);
        let mut registry = lock(&daemon.registry);
        let steps = registry.delete(&params.session_id, Delete { hooks, reply });
        daemon.perform(steps, &Failure::no_session(params.session_id.as_str()));
    }
}

impl DaemonMethod for SessionCancel {
    fn handle(daemon: &Arc<Daemon>, params: CancelParams, reply: Reply) {
        let cancel = lock(&daemon.registry).cancel(&params.session_id);
        match cancel {
            Cancel::Ask(door) => {
                door.send_urgent(Urgent::Cancel(params.operation_id, handle::CancelReply::from(reply)))
            }
            Cancel::Nothing(commands) => {
                reply.ok(&CancelAnswer { cancelled: Vec::new() });
                commands.into_iter().for_each(|command| command.refuse(&Failure::Cancelled));
            }
            Cancel::NotOpen => reply.fail(&Failure::no_session(params.session_id.as_str())),
        }
    }
}

impl Daemon {
    /// Sends a command to a session.
    pub(super) fn send(self: &Arc<Self>, id: &SessionId, command: Mail) {
        let mut registry = lock(&self.registry);
        let steps = registry.command(id, command);
        self.perform(steps, &Failure::no_session(id.as_str()));
    }

    /// Makes a session for the summary of another one, and opens it.
    pub(super) fn found(self: &Arc<Self>, founding: Founding, told: Told) {
        let id = founding.id().clone();
        let mut registry = lock(&self.registry);
        let load = Load { from: From::Founded(Box::new(founding)), asker: Asker::Session(told) };
        let steps = registry.load(&id, load);
        self.perform(steps, &Failure::no_session(id.as_str()));
    }

    /// Makes a session of the lines of another one, opens it, and answers the request.
    pub(super) fn fork(self: &Arc<Self>, forking: Forking, reply: Reply) {
        let id = forking.id().clone();
        let mut registry = lock(&self.registry);
        let load = Load { from: From::Forked(Box::new(forking)), asker: Asker::Client(reply) };
        let steps = registry.load(&id, load);
        self.perform(steps, &Failure::no_session(id.as_str()));
    }

    /// Performs the steps of a change of the registry. The caller holds the lock of the registry, so that no request
    /// comes in between; no step waits or takes the lock. `failure` is the reason of a life that could not be opened.
    fn perform(self: &Arc<Self>, steps: Vec<Step<Doors>>, failure: &Failure) {
        for step in steps {
            match step {
                Step::Open { id, life, door, inbox, before, load } => self.start(id, life, door, inbox, before, load),
                Step::Delete { id, life, inbox, before, session, delete } => {
                    self.start_delete(id, life, inbox, before, session, delete);
                }
                Step::NotOpen(id, command) => command.refuse(&Failure::no_session(id.as_str())),
                Step::Failed(id, command) => command.refuse(&Failure::not_opened(id.as_str(), failure)),
                Step::TooMany(request) => {
                    tracing::warn!("too many requests wait for a session; one was refused");
                    let failure = Failure::Overloaded { retry_after_ms: TRY_AGAIN };
                    match request {
                        Request::Command(command) => command.refuse(&failure),
                        Request::Load(load) => load.asker.fail(&failure),
                        Request::Delete(delete) => delete.reply.fail(&failure),
                    }
                }
            }
        }
    }

    /// Reads the session id from the file on a thread, because the disk may not answer, then decides the load.
    fn load_by_path(self: &Arc<Self>, path: PathBuf, params: LoadParams, reply: Reply) {
        let load = Load { from: From::Load(Box::new(params)), asker: Asker::Client(reply) };
        let ticket = match lock(&self.registry).load_path(&path, load) {
            Ok(Some(ticket)) => ticket,
            Ok(None) => return,
            Err(load) => return load.asker.fail(&Failure::Overloaded { retry_after_ms: TRY_AGAIN }),
        };
        let (tell, mut told) = oneshot::channel();
        let home = self.home();
        // A thread of its own: a read that blocks for good would take one of the pool from all sessions.
        let thread = std::thread::Builder::new().name("abridged-peek".to_owned()).spawn(move || {
            let _ = tell.send(open::peek(&path, &home));
        });
        if let Err(error) = thread {
            tracing::warn!(%error, "no thread for a load by path");
        }
        let daemon = self.clone();
        let decide = async move {
            let found = match tokio::time::timeout(LONGEST_HOLD, &mut told).await {
                Ok(found) => found,
                Err(_) => {
                    daemon.stop_holding(ticket);
                    told.await
                }
            };
            match found {
                Ok(Ok((id, _))) => daemon.decided(ticket, Ok(id)),
                Ok(Err(error)) => daemon.decided(ticket, Err(error.into())),
                // The thread could not be made, or ended in a defect.
                Err(_) => daemon.decided(ticket, Err(Failure::Overloaded { retry_after_ms: TRY_AGAIN })),
            }
        };
        self.tasks.spawn_on(decide, &self.runtime);
    }

    fn stop_holding(self: &Arc<Self>, ticket: Ticket) {
        let mut registry = lock(&self.registry);
        let steps = registry.stop_holding(ticket);
        self.perform(steps, &Failure::Cancelled);
    }

    fn decided(self: &Arc<Self>, ticket: Ticket, found: Result<SessionId, Failure>) {
        let mut registry = lock(&self.registry);
        match &found {
            Ok(id) => {
                let (_, steps) = registry.decide(ticket, Decided::Is(id));
                self.perform(steps, &Failure::no_session(id.as_str()));
            }
            Err(failure) => {
                let (failed, steps) = registry.decide(ticket, Decided::Nothing);
                failed.into_iter().for_each(|load| load.asker.fail(failure));
                self.perform(steps, failure);
            }
        }
        drop(registry);
        self.finish_if_finishing();
    }

    /// Returns true for a session that is open or being opened.
    pub(super) fn is_current(&self, id: &SessionId) -> bool {
        lock(&self.registry).door(id).is_some()
    }

    /// The session that is open from this file.
    pub(super) fn session_at(&self, file: &Path) -> Option<Handle> {
        lock(&self.registry).door_at(file).cloned()
    }

    /// Opens a session and runs it until it is closed. The answer is sent before the first event.
    fn start(
        self: &Arc<Self>,
        id: SessionId,
        life: Life,
        door: Handle,
        inbox: Inbox,
        before: Option<Handle>,
        load: Load,
    ) {
        let daemon = self.clone();
        let defect = Failure::Internal("a defect of abridged kept the session closed".to_owned());
        // Made here: the life is retired also where its task never runs.
        let tenancy = Tenancy { daemon: daemon.clone(), id: id.clone(), life, failure: defect.clone() };
        let session = async move {
            if let Some(before) = before {
                before.gone().await;
            }
            let Load { from, asker } = load;
            let form = from.form();
            let (opening, handle, opened_id) = (daemon.clone(), door.clone(), id.clone());
            let stopped = asker.stopped();
            let open = move || {
                let blocking = Blocking::is_allowed_here().until(stopped);
                let (opened, answer) = opening.open(opened_id, from, &blocking)?;
                let following = opening.settings.follow(&opened.state, handle);
                Ok((opened, answer, following))
            };
            let opened = tokio::task::spawn_blocking(open).await;
            let (opened, answer, _following) = match opened.unwrap_or(Err(defect)) {
                Ok(opened) => opened,
                Err(failure) => {
                    let mut registry = lock(&daemon.registry);
                    asker.fail(&failure);
                    let steps = registry.retire(&id, life);
                    return daemon.perform(steps, &failure);
                }
            };
            let file = opened.state.file.as_deref().map(|file| file.canonicalize().unwrap_or_else(|_| file.to_owned()));
            let _watched = opened.state.file.as_deref().map(|file| daemon.watch_file(file));
            let _followed = daemon.follow(&opened, &id, &door);
            {
                // A client that has the answer finds the session open.
                let mut registry = lock(&daemon.registry);
                asker.ok(&answer);
                let steps = registry.opened(&id, life, file.as_deref());
                daemon.perform(steps, &tenancy.failure);
            }
            daemon.finish_if_finishing();
            shell::run(opened, form, inbox, daemon.outbox.clone()).await;
        };
        self.tasks.spawn_on(session, &self.runtime);
    }

    /// Reads or makes a session file. Returns the answer to its request, too. Blocks.
    fn open(&self, id: SessionId, from: From, blocking: &Blocking) -> Result<(Opened, Answer), Failure> {
        let home = self.home();
        let mut answer: Box<dyn FnOnce(&Opened) -> Answer> = Box::new(Answer::new);
        let opened = match from {
            From::New(params) => {
                let layers = self.settings.layers_for(&params.cwd);
                open::new(id, *params, &home, &layers, Stamps::system())?
            }
            From::Founded(founding) => {
                let layers = self.settings.layers_for(&founding.header.cwd);
                open::found(*founding, &home, &layers, blocking)?
            }
            From::Forked(forking) => {
                let layers = self.settings.layers_for(&forking.header.cwd);
                let (opened, editor_text) = open::fork(*forking, &home, &layers, blocking)?;
                answer = Box::new(|opened| Answer::fork(opened, editor_text));
                opened
            }
            From::Import(params) => {
                let (_, cwd) = open::peek(Path::new(&params.path), &home)?;
                let layers = self.settings.layers_for(params.cwd.as_deref().unwrap_or(&cwd));
                let (opened, origin) = open::import(id, *params, &home, &layers, blocking)?;
                answer = Box::new(|opened| Answer::import(opened, origin));
                opened
            }
            From::Load(params) => {
                answer = Box::new(Answer::load);
                let path = match &params.path {
                    Some(path) => PathBuf::from(path),
                    None => open::find(&id, &home)?,
                };
                let (_, cwd) = open::peek(&path, &home)?;
                let layers = self.settings.layers_for(&cwd);
                let opened = open::load(&path, *params, &home, &layers, blocking)?;
                if opened.state.id != id {
                    let what = format!("{}: another session took its place meanwhile; load it again", path.display());
                    return Err(Failure::Storage { path: path.display().to_string(), errno: None, what });
                }
                opened
            }
        };
        self.access.windows.refresh();
        let opened = opened.knowing(self.access.windows.learned(), tokens::ready(), Capabilities::of(&self.access));
        let answer = answer(&opened);
        Ok((opened, answer))
    }

    fn start_delete(
        self: &Arc<Self>,
        id: SessionId,
        life: Life,
        inbox: Inbox,
        before: Option<Handle>,
        session: Option<FileOf>,
        Delete { hooks, reply }: Delete,
    ) {
        let failure = Failure::no_session(id.as_str());
        let tenancy = Tenancy { daemon: self.clone(), id: id.clone(), life, failure };
        let home = self.home();
        let (registrations, gone) = (self.hooks.clone(), id.clone());
        let work = async move {
            let _tenancy = tenancy;
            // A load from here on waits for the end of this.
            let _inbox = inbox;
            if let Some(before) = before {
                before.gone().await;
            }
            let delete = move || match session.as_ref().and_then(|file| file.get()) {
                Some(Some(file)) => home.delete(file).map_err(Failure::from),
                // It had no file, and is gone with its memory.
                Some(None) => Ok(()),
                None => home.delete(&open::find(&id, &home)?).map_err(Failure::from),
            };
            let deleted = tokio::task::spawn_blocking(delete).await.unwrap_or_else(|_| {
                Err(Failure::Internal("a defect of abridged kept the session from being deleted".to_owned()))
            });
            if deleted.is_ok() {
                registrations.forget(&gone, hooks.as_ref());
            }
            reply.with(deleted);
        };
        self.tasks.spawn_on(work, &self.runtime);
    }

    fn finish_if_finishing(&self) {
        if self.finishing.load(Ordering::SeqCst) {
            self.finish_when_idle();
        }
    }

    /// Tells the sessions to end when they are idle, except those for which a request waits in the registry.
    pub(super) fn finish_when_idle(&self) {
        lock(&self.registry).doors_without_requests().for_each(|handle| handle.send_urgent(Urgent::Finish));
    }

    /// Tells all sessions to end now.
    pub(super) fn stop_sessions(&self) {
        lock(&self.registry).doors().for_each(|handle| handle.send_urgent(Urgent::Stop));
    }
}

/// The answer to a request that opened a session.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    New(Box<SessionAnswer>),
    Load(Box<LoadAnswer>),
    Import(Box<ImportAnswer>),
    Fork(Box<ForkAnswer>),
}

impl Answer {
    /// The file of the session.
    fn file(&self) -> Option<PathBuf> {
        let session = match self {
            Self::New(answer) => &answer.session,
            Self::Load(answer) => &answer.session,
            Self::Import(answer) => &answer.session,
            Self::Fork(answer) => &answer.session,
        };
        session.path.as_ref().map(PathBuf::from)
    }

    fn new(opened: &Opened) -> Self {
        Self::New(Box::new(SessionAnswer { session: opened.state.info(idle_status()) }))
    }

    fn import(opened: &Opened, origin: Origin) -> Self {
        let session = opened.state.info(idle_status());
        Self::Import(Box::new(ImportAnswer { session, origin, repairs: opened.state.repairs() }))
    }

    fn fork(opened: &Opened, editor_text: Option<String>) -> Self {
        Self::Fork(Box::new(ForkAnswer { session: opened.state.info(idle_status()), editor_text }))
    }

    fn load(opened: &Opened) -> Self {
        let session = opened.state.info_at(idle_status(), clock::now());
        let indexed = opened.state.history().index().is_some();
        Self::Load(Box::new(LoadAnswer { session, indexed, repairs: opened.state.repairs() }))
    }
}
