//! The daemon: which sessions are open, and which method goes where.

mod files;
pub mod listing;
mod registry;
pub mod serve;
mod sessions;
mod settings;

use crate::{
    ask::means::Means,
    protocol::{
        self, Initialize, Method,
        errors::Failure,
        types::{
            AnyJson, CancelAcpParams, CancelLspParams, Empty, InitializeAnswer, InitializeParams, Limits, Nothing,
            ServerCapabilities, ServerInfo, SessionParams, SettingsGetParams, Status, StatusKind,
        },
    },
    session::{
        background,
        handle::{Command, Note},
    },
    wire::{
        outbox::Outbox,
        rpc::{MOST_IN_BATCH, MOST_IN_FLIGHT, Reply, Service, Shared},
        transport::LARGEST_FRAME,
    },
};
use files::SessionFiles;
use registry::Registry;
use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use sessions::Doors;
use settings::LiveSettings;
use std::{
    path::PathBuf,
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

/// The daemon.
pub struct Daemon {
    outbox: Arc<Outbox>,
    places: Places,
    settings: Arc<LiveSettings>,
    /// Held while steps of it are done, which never wait.
    registry: Mutex<Registry<Doors>>,
    stage: AtomicU8,
    /// The process ends: a session that opens only now does what was asked of it and closes.
    finishing: AtomicBool,
    methods: OnceLock<Vec<&'static str>>,
    requests: OnceLock<Arc<Shared>>,
    /// What models are asked with, the client among them.
    pub means: Arc<Means>,
    files: SessionFiles,
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
            registry: Mutex::new(Registry::new(Doors(background::Shared::new(means.clone())))),
            means,
            outbox,
            places,
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

    /// Work that the process waits for before it ends.
    fn tracked<T>(&self, work: impl FnOnce() -> T + Send + 'static) -> impl FnOnce() -> T + Send + 'static {
        let token = self.tasks.token();
        move || {
            let result = work();
            drop(token);
            result
        }
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
            self.stop_sessions();
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
