//! The daemon: which sessions are open, and which method goes where.

mod files;
mod settings;

use crate::{
    ids::SessionId,
    outbox::Outbox,
    protocol::{
        self, Initialize, Method,
        errors::Failure,
        types::{
            AnyJson, CancelAcpParams, CancelLspParams, CancelParams, Empty, InitializeAnswer, InitializeParams, Limits,
            ListParams, LoadAnswer, LoadParams, NewParams, Nothing, ServerCapabilities, ServerInfo, SessionAnswer,
            SessionParams, SettingsGetParams, Status, StatusKind,
        },
    },
    rpc::{MOST_IN_BATCH, MOST_IN_FLIGHT, Reply, Service, Shared},
    session::{
        self, Emitter, background,
        handle::{self, Command, Handle, Inbox, Note, Urgent},
        header,
        means::Means,
        open::{self, Opened},
    },
    transport::LARGEST_FRAME,
};
use files::SessionFiles;
use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use settings::LiveSettings;
use std::{
    collections::{HashMap, VecDeque},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

/// Events and notifications stay under this, in bytes.
const SOFT_FRAME: usize = 60 * 1024;

/// Where the daemon keeps its things.
#[derive(Debug, Clone)]
pub struct Places {
    /// Sessions live in here, under `sessions`.
    pub data: PathBuf,
    /// `settings.json` is in here.
    pub config: PathBuf,
}

impl Places {
    /// `$ABRIDGED_DATA_DIR` and `$ABRIDGED_CONFIG_DIR`, else the platform's own folders.
    ///
    /// # Errors
    /// When neither says where, because there is no home folder.
    pub fn from_environment() -> Result<Self, String> {
        use etcetera::BaseStrategy;
        let own = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let platform = etcetera::choose_base_strategy();
        let place = |name: &str, folder: fn(&etcetera::base_strategy::Xdg) -> PathBuf| match (own(name), &platform) {
            (Some(own), _) => Ok(own),
            (None, Ok(platform)) => Ok(folder(platform).join("abridged")),
            (None, Err(error)) => Err(format!("there is no home folder ({error}); set {name}")),
        };
        Ok(Self {
            data: place("ABRIDGED_DATA_DIR", BaseStrategy::data_dir)?,
            config: place("ABRIDGED_CONFIG_DIR", BaseStrategy::config_dir)?,
        })
    }

    /// Where sessions live.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.data.join("sessions")
    }

    /// The global settings.
    #[must_use]
    pub fn settings(&self) -> PathBuf {
        self.config.join("settings.json")
    }
}

/// How long running work may go on when the daemon ends, and how long cancelling it may take. Together with what is left
/// to write it must stay under two seconds.
const PATIENCE: Duration = Duration::from_millis(1_200);
const LONGEST_CANCEL: Duration = Duration::from_millis(500);

/// How often we look whether the client still lives.
const PARENT_CHECK: Duration = Duration::from_millis(250);

/// How far a connection is.
mod stage {
    pub(super) const NEW: u8 = 0;
    pub(super) const READY: u8 = 1;
    pub(super) const SHUT_DOWN: u8 = 2;
}

/// A load by path whose session is not known yet, and what was sent behind it that may be about that session.
#[derive(Default)]
struct Unresolved {
    resolving: bool,
    held: VecDeque<Held>,
}

enum Held {
    Load(PathBuf, Box<LoadParams>, Reply),
    Command(SessionId, Command),
}

/// The daemon.
pub struct Daemon {
    outbox: Arc<Outbox>,
    places: Places,
    settings: Arc<LiveSettings>,
    sessions: Mutex<HashMap<SessionId, Handle>>,
    /// Sessions that were closed and may still have to let go of their file.
    leaving: Mutex<HashMap<SessionId, Handle>>,
    unresolved: Mutex<Unresolved>,
    stage: AtomicU8,
    /// The process ends: a session that opens only now does what was asked of it and closes.
    finishing: AtomicBool,
    methods: OnceLock<Vec<&'static str>>,
    requests: OnceLock<Arc<Shared>>,
    /// What models are asked with, the client among them.
    pub means: Arc<Means>,
    files: SessionFiles,
    /// What all sessions have in common.
    in_common: background::Shared,
    /// Everything that must end before the process does.
    tasks: TaskTracker,
    runtime: tokio::runtime::Handle,
    /// `exit` was received, or the process that `initialize` named is gone.
    pub exit: Notify,
}

/// What `exit` means without `shutdown` before it, in LSP's words an error.
pub const EXIT_UNASKED: i32 = 1;

impl Daemon {
    /// A daemon that answers into `outbox`.
    #[must_use]
    pub fn new(outbox: Arc<Outbox>, places: Places, runtime: tokio::runtime::Handle) -> Arc<Self> {
        let means = Means::new(outbox.clone(), &places.data);
        let daemon = Arc::new(Self {
            settings: Arc::new(LiveSettings::read(&places, outbox.clone())),
            files: SessionFiles::new(outbox.clone(), &places.data),
            in_common: background::Shared::new(means.clone()),
            means,
            outbox,
            places,
            sessions: Mutex::default(),
            leaving: Mutex::default(),
            unresolved: Mutex::default(),
            finishing: AtomicBool::new(false),
            stage: AtomicU8::new(stage::NEW),
            methods: OnceLock::new(),
            requests: OnceLock::new(),
            tasks: TaskTracker::new(),
            runtime,
            exit: Notify::new(),
        });
        let weak = Arc::downgrade(&daemon);
        daemon.settings.watch(move |path| {
            if let Some(daemon) = weak.upgrade() {
                daemon.path_changed(&path);
            }
        });
        daemon
    }

    /// Something changed in a folder that is watched.
    fn path_changed(&self, path: &Path) {
        self.settings.changed(path);
        self.files.changed(path);
    }

    /// The methods of a connection to this daemon.
    #[must_use]
    pub fn service(self: &Arc<Self>) -> Service<Self> {
        let daemon = self.clone();
        let gate = move |method: &str| daemon.gate(method);
        let mut service = Service::new(self.clone(), self.outbox.clone(), self.means.caller.clone(), gate);
        service.method::<Initialize>(Self::initialize);
        service.method::<protocol::Initialized>(|_, Nothing {}, reply| reply.ok(&()));
        service.method::<protocol::Shutdown>(Self::shut_down);
        service.method::<protocol::Exit>(|daemon, Nothing {}, reply| {
            reply.ok(&());
            daemon.exit.notify_one();
        });
        service.method::<protocol::Ping>(|_, Nothing {}, reply| reply.ok(&Empty {}));
        service.method::<protocol::Discover>(|_, Nothing {}, reply| reply.ok(&AnyJson(protocol::schema::openrpc())));
        service.method::<protocol::SessionNew>(Self::session_new);
        service.method::<protocol::SessionLoad>(Self::session_load);
        service.method::<protocol::SessionList>(Self::session_list);
        service.method::<protocol::SessionClose>(Self::session_close);
        service.method::<protocol::SessionDelete>(Self::session_delete);
        service.method::<protocol::SessionStatus>(|daemon, params, reply| {
            daemon.send(&params.session_id, reply, Command::Status);
        });
        service.method::<protocol::SessionAppend>(|daemon, params, reply| {
            daemon.send(&params.session_id.clone(), reply, |reply| Command::Append(params, reply));
        });
        service.method::<protocol::SessionContext>(|daemon, params, reply| {
            daemon.send(&params.session_id.clone(), reply, |reply| Command::Context(params, reply));
        });
        service.method::<protocol::SessionEntries>(|daemon, params, reply| {
            daemon.send(&params.session_id.clone(), reply, |reply| Command::Entries(params, reply));
        });
        service.method::<protocol::SessionEntry>(|daemon, params, reply| {
            daemon.send(&params.session_id.clone(), reply, |reply| Command::Entry(params, reply));
        });
        service.method::<protocol::SessionUsage>(|daemon, params, reply| {
            daemon.send(&params.session_id, reply, Command::Usage);
        });
        service.method::<protocol::SessionCancel>(Self::session_cancel);
        service.method::<protocol::SessionCompact>(|daemon, params, reply| {
            daemon.send(&params.session_id.clone(), reply, |reply| Command::Compact(params, reply));
        });
        service.method::<protocol::SessionSearch>(|daemon, params, reply| {
            daemon.send(&params.session_id.clone(), reply, |reply| Command::Search(params, reply));
        });
        service.method::<protocol::SessionTree>(|daemon, params, reply| {
            daemon.send(&params.session_id.clone(), reply, |reply| Command::Tree(params, reply));
        });
        service.method::<protocol::SessionExport>(|daemon, params, reply| {
            daemon.send(&params.session_id.clone(), reply, |reply| Command::Export(params, reply));
        });
        service.method::<protocol::SessionSubscribe>(|daemon, params, reply| {
            daemon.send(&params.session_id.clone(), reply, |reply| Command::Subscribe(params, reply));
        });
        service.method::<protocol::SessionUnsubscribe>(|daemon, params, reply| {
            daemon.send(&params.session_id, reply, Command::Unsubscribe);
        });
        service.method::<protocol::SessionClearQueue>(|daemon, params, reply| {
            daemon.send(&params.session_id, reply, Command::ClearQueue);
        });
        service.method::<protocol::SessionUndoCompaction>(|daemon, params, reply| {
            daemon.note(&params.session_id, reply, Note::Undo);
        });
        service.method::<protocol::SessionPrune>(|daemon, params, reply| {
            daemon.note(&params.session_id.clone(), reply, Note::Prune(params));
        });
        service.method::<protocol::SessionPin>(|daemon, params, reply| {
            daemon.note(&params.session_id.clone(), reply, Note::Pin(params));
        });
        service.method::<protocol::SessionUnpin>(|daemon, params, reply| {
            daemon.note(&params.session_id.clone(), reply, Note::Unpin(params));
        });
        service.method::<protocol::SessionLabel>(|daemon, params, reply| {
            daemon.note(&params.session_id.clone(), reply, Note::Label(params));
        });
        service.method::<protocol::SessionConfigure>(|daemon, params, reply| {
            daemon.note(&params.session_id.clone(), reply, Note::Configure(Box::new(params)));
        });
        service.method::<protocol::SettingsGet>(Self::settings_get);
        service.method::<protocol::ModelsList>(Self::models_list);
        service.method::<protocol::SettingsSet>(Self::settings_set);
        service.method::<protocol::CancelLsp>(|daemon, CancelLspParams { id }, reply| {
            daemon.requests.get().inspect(|requests| requests.cancel(&id));
            reply.ok(&());
        });
        service.method::<protocol::CancelAcp>(|daemon, CancelAcpParams { request_id }, reply| {
            daemon.requests.get().inspect(|requests| requests.cancel(&request_id));
            reply.ok(&());
        });
        let _ = self.methods.set(service.names());
        let _ = self.requests.set(service.shared());
        service
    }

    fn gate(&self, method: &str) -> Result<(), Failure> {
        match (self.stage.load(Ordering::SeqCst), method) {
            (_, "exit") | (stage::READY, _) => Ok(()),
            (stage::NEW, Initialize::NAME) => Ok(()),
            (stage::NEW, _) => Err(Failure::NotInitialized),
            _ => Err(Failure::InvalidRequest("`shutdown` was sent; only `exit` is left".to_owned())),
        }
    }

    fn initialize(self: &Arc<Self>, params: InitializeParams, reply: Reply) {
        if let Some(version) = params.protocol_version.filter(|version| *version != protocol::VERSION) {
            return reply.fail(&Failure::UnsupportedProtocolVersion(version));
        }
        let first = self.stage.compare_exchange(stage::NEW, stage::READY, Ordering::SeqCst, Ordering::SeqCst);
        if first.is_err() {
            return reply.fail(&Failure::AlreadyInitialized);
        }
        if let Some(process) = params.process_id.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
            self.end_with(process);
        }
        let capabilities = params.capabilities.unwrap_or_default();
        self.outbox.opt_out(capabilities.events.unwrap_or_default().opt_out);
        if capabilities.llm.is_some() {
            self.means.the_client_runs_models();
        }
        reply.ok(&InitializeAnswer {
            protocol_version: protocol::VERSION,
            server_info: ServerInfo { name: "abridged", version: env!("CARGO_PKG_VERSION") },
            capabilities: ServerCapabilities {
                methods: self.methods.get().cloned().unwrap_or_default(),
                context_formats: vec!["messages", "anthropic", "openai_chat", "openai_responses", "google"],
                compaction_methods: vec!["llm", "extractive"],
            },
            limits: Limits {
                max_inbound_frame_bytes: LARGEST_FRAME,
                soft_outbound_frame_bytes: SOFT_FRAME,
                max_in_flight_requests: MOST_IN_FLIGHT,
                max_batch_requests: MOST_IN_BATCH,
            },
            epoch: self.outbox.epoch().to_owned(),
            data_dir: self.places.data.display().to_string(),
        });
        self.settings.greeted();
        let daemon = self.clone();
        self.runtime.spawn_blocking(move || daemon.files.watch(daemon.settings.watcher()));
    }

    /// A client that dies without closing our stdin, because somebody else holds it too, takes us with it.
    fn end_with(self: &Arc<Self>, process: Pid) {
        let daemon = self.clone();
        self.runtime.spawn(async move {
            while test_kill_process(process) != Err(Errno::SRCH) {
                tokio::time::sleep(PARENT_CHECK).await;
            }
            daemon.stage.store(stage::SHUT_DOWN, Ordering::SeqCst);
            daemon.exit.notify_one();
        });
    }

    fn shut_down(self: &Arc<Self>, Nothing {}: Nothing, reply: Reply) {
        self.stage.store(stage::SHUT_DOWN, Ordering::SeqCst);
        let daemon = self.clone();
        self.runtime.spawn(async move {
            daemon.finish_sessions().await;
            reply.ok(&());
        });
    }

    fn send(&self, id: &SessionId, reply: Reply, command: impl FnOnce(Reply) -> Command) {
        let mut unresolved = lock(&self.unresolved);
        let command = command(reply);
        let behind_others = unresolved.held.iter().any(|held| matches!(held, Held::Command(it, _) if it == id));
        let known = lock(&self.sessions).contains_key(id);
        if behind_others || unresolved.resolving && !known {
            unresolved.held.push_back(Held::Command(id.clone(), command));
        } else {
            self.deliver(id, command);
        }
    }

    fn note(&self, id: &SessionId, reply: Reply, note: Note) {
        self.send(id, reply, |reply| Command::Note(Box::new(note), reply));
    }

    fn deliver(&self, id: &SessionId, command: Command) {
        let handle = lock(&self.sessions).get(id).cloned();
        let Some(handle) = handle else { return command.refuse(&Failure::no_session(id.as_str())) };
        let closes = matches!(command, Command::Close(_));
        if handle.send(id, command) && closes {
            // Whoever loads it from here on opens it anew.
            lock(&self.sessions).remove(id);
            lock(&self.leaving).insert(id.clone(), handle);
        }
    }

    fn load_by_path(self: &Arc<Self>, path: PathBuf, params: Box<LoadParams>, reply: Reply) {
        let mut unresolved = lock(&self.unresolved);
        if unresolved.resolving {
            unresolved.held.push_back(Held::Load(path, params, reply));
        } else {
            unresolved.resolving = true;
            self.resolve(path, *params, reply);
        }
    }

    /// Whose session it is stands in the file, and a file may be on a disk that sleeps.
    fn resolve(self: &Arc<Self>, path: PathBuf, params: LoadParams, reply: Reply) {
        let daemon = self.clone();
        self.runtime.spawn_blocking(self.tracked(move || {
            match header::peek(&path) {
                Ok(found) => daemon.load_registered(found.header.id, params, move || Ok(path), reply),
                Err(error) => reply.fail(&error.into()),
            }
            daemon.resolved();
        }));
    }

    /// The session of a load by path is known now, or will never be: what was sent behind it goes on, up to the next
    /// such load.
    fn resolved(self: &Arc<Self>) {
        let mut unresolved = lock(&self.unresolved);
        while let Some(held) = unresolved.held.pop_front() {
            match held {
                Held::Command(id, command) => self.deliver(&id, command),
                Held::Load(path, params, reply) => return self.resolve(path, *params, reply),
            }
        }
        unresolved.resolving = false;
        drop(unresolved);
        if self.finishing.load(Ordering::SeqCst) {
            self.finish_when_idle();
        }
    }

    /// Sessions end when they have nothing more to do; but not while something may be held that is for one of them.
    fn finish_when_idle(&self) {
        if !lock(&self.unresolved).resolving {
            self.tell_sessions(|| Urgent::Finish);
        }
    }

    fn tell_sessions(&self, urgent: fn() -> Urgent) {
        for handle in lock(&self.sessions).values().chain(lock(&self.leaving).values()) {
            handle.send_urgent(urgent());
        }
    }

    fn session_cancel(self: &Arc<Self>, params: CancelParams, reply: Reply) {
        let handle = lock(&self.sessions).get(&params.session_id).cloned();
        match handle {
            Some(handle) => handle.send_urgent(Urgent::Cancel(params.operation_id, reply)),
            None => reply.fail(&Failure::no_session(params.session_id.as_str())),
        }
    }

    fn session_new(self: &Arc<Self>, params: NewParams, reply: Reply) {
        let id = SessionId::fresh();
        let Some(inbox) = self.register(&id) else {
            return;
        };
        let (daemon, opened_id) = (self.clone(), id.clone());
        let open = move || {
            let layers = daemon.settings.layers_for(&params.cwd);
            let opened = open::new(opened_id, params, &daemon.places.sessions(), &layers)?;
            Ok(opened.knowing(&daemon.means.learned))
        };
        self.start(id, inbox, open, reply, |opened, reply| {
            reply.ok(&SessionAnswer { session: opened.state.info(idle()) });
        });
    }

    fn session_load(self: &Arc<Self>, params: LoadParams, reply: Reply) {
        match (params.session_id.clone(), params.path.clone()) {
            (Some(id), None) => {
                let sessions = self.places.sessions();
                let find = {
                    let id = id.clone();
                    move || open::find(&id, &sessions)
                };
                self.load_registered(id, params, find, reply);
            }
            (None, Some(path)) => self.load_by_path(PathBuf::from(path), Box::new(params), reply),
            _ => reply.fail(&Failure::params("sessionId", "give either sessionId or path")),
        }
    }

    /// Work that the process waits for before it ends.
    fn tracked<T>(&self, work: impl FnOnce() -> T + Send + 'static) -> impl FnOnce() -> T + Send + 'static {
        let token = self.tasks.token();
        move || {
            let result = work();
            drop(token);
            result
        }
    }

    /// Opens a session, or describes it if it is open already: from the same file, that is.
    fn load_registered(
        self: &Arc<Self>,
        id: SessionId,
        params: LoadParams,
        find: impl FnOnce() -> Result<PathBuf, Failure> + Send + 'static,
        reply: Reply,
    ) {
        let Some(inbox) = self.register(&id) else {
            let handle = lock(&self.sessions).get(&id).cloned();
            return match handle {
                Some(handle) => drop(handle.send(&id, Command::Describe(Box::new(params), reply))),
                None => reply.fail(&Failure::no_session(id.as_str())),
            };
        };
        let daemon = self.clone();
        self.start(
            id,
            inbox,
            move || {
                let path = find()?;
                let layers = daemon.settings.layers_for(&header::peek(&path)?.header.cwd);
                let opened = open::load(&path, params, &daemon.places.sessions(), &layers)?;
                Ok(opened.knowing(&daemon.means.learned))
            },
            reply,
            |opened, reply| {
                let session = opened.state.info(idle());
                let indexed = opened.state.history().index().is_some();
                reply.ok(&LoadAnswer { session, indexed, repairs: opened.state.repairs() });
            },
        );
    }

    /// Opens a session and runs it until it is closed. It is answered before its first event.
    fn start(
        self: &Arc<Self>,
        id: SessionId,
        inbox: Inbox,
        open: impl FnOnce() -> Result<Opened, Failure> + Send + 'static,
        reply: Reply,
        answer: fn(&Opened, Reply),
    ) {
        let daemon = self.clone();
        // Taken now: a close that comes before the task below runs is about this very session, not about the one before.
        let before = lock(&self.leaving).remove(&id);
        let session = async move {
            if let Some(before) = before {
                before.gone().await;
            }
            let (settings, handle) = (daemon.settings.clone(), lock(&daemon.sessions).get(&id).cloned());
            let open = move || {
                let opened = open()?;
                let following = handle.map(|handle| settings.follow(&opened.state, handle));
                Ok((opened, following))
            };
            let opened = tokio::task::spawn_blocking(open).await;
            match opened
                .unwrap_or_else(|_| Err(Failure::Internal("a defect of abridged kept the session closed".to_owned())))
            {
                Ok((opened, _following)) => {
                    let handle = lock(&daemon.sessions).get(&id).cloned();
                    let _watched = opened
                        .state
                        .file
                        .as_ref()
                        .zip(handle)
                        .map(|(file, handle)| daemon.watch_file(file, &id, handle));
                    answer(&opened, reply);
                    if daemon.finishing.load(Ordering::SeqCst) {
                        daemon.finish_when_idle();
                    }
                    let emitter = Emitter::new(daemon.outbox.clone(), id.clone(), inbox.status.clone());
                    session::run(opened, inbox, emitter).await;
                }
                Err(failure) => {
                    lock(&daemon.sessions).remove(&id);
                    reply.fail(&failure);
                    inbox.refuse(&failure);
                }
            }
            // A session that was closed may have been opened again meanwhile.
            lock(&daemon.sessions).retain(|it, handle| *it != id || handle.is_open());
            lock(&daemon.leaving).retain(|it, handle| *it != id || handle.is_open());
        };
        self.tasks.spawn_on(session, &self.runtime);
    }

    /// Takes the place of a session; none if it is taken.
    fn register(&self, id: &SessionId) -> Option<Inbox> {
        let mut sessions = lock(&self.sessions);
        if sessions.get(id).is_some_and(Handle::is_open) {
            return None;
        }
        let (handle, inbox) = handle::mailbox(self.in_common.clone());
        sessions.insert(id.clone(), handle);
        Some(inbox)
    }

    fn session_list(self: &Arc<Self>, params: ListParams, reply: Reply) {
        let daemon = self.clone();
        self.runtime.spawn_blocking(self.tracked(move || {
            let mut answer = daemon.files.catalog.list(&params);
            let open = lock(&daemon.sessions);
            for session in &mut answer.sessions {
                session.status = open.get(&session.session_id).map(|handle| handle.status.get());
            }
            drop(open);
            reply.ok(&answer);
        }));
    }

    fn session_close(self: &Arc<Self>, params: SessionParams, reply: Reply) {
        self.send(&params.session_id, reply, Command::Close);
    }

    fn settings_get(self: &Arc<Self>, params: SettingsGetParams, reply: Reply) {
        match params.session_id {
            Some(id) => self.send(&id, reply, Command::Settings),
            None => reply.ok(&self.settings.general()),
        }
    }

    /// Ends all sessions: what runs has a while to end by itself, then it is cancelled with its end events.
    pub async fn finish_sessions(&self) {
        self.finishing.store(true, Ordering::SeqCst);
        self.tasks.close();
        self.finish_when_idle();
        if tokio::time::timeout(PATIENCE, self.tasks.wait()).await.is_err() {
            self.tell_sessions(|| Urgent::Stop);
            let _ = tokio::time::timeout(LONGEST_CANCEL, self.tasks.wait()).await;
        }
    }

    /// Tells those who still wait that nothing will come any more.
    pub fn abandon_requests(&self) {
        self.requests.get().inspect(|requests| requests.abandon());
    }

    /// Whether `shutdown` was answered or is about to be.
    #[must_use]
    pub fn asked_to_shut_down(&self) -> bool {
        self.stage.load(Ordering::SeqCst) == stage::SHUT_DOWN
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn idle() -> Status {
    Status { kind: StatusKind::Idle, operation_id: None, reason: None }
}
