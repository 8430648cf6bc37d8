//! The daemon: the registry of open sessions, and the handler of each method.

mod connection;
mod files;
mod fitting;
mod hooks;
pub mod listing;
mod registry;
mod routes;
pub mod serve;
mod sessions;
mod settings;
mod sources;
pub mod stores;
mod tools;

use crate::{
    ask::access::ModelAccess,
    log::store::home::Home,
    protocol::{
        errors::Failure,
        types::{Status, StatusKind},
    },
    session::{hooks::Registrations, recording::recorder::Recorder, shared::Shared, stop::Stop},
    wire::{caller::Caller, outbox::Outbox, rpc::Service},
};
use connection::Connection;
use files::SessionFiles;
use registry::Registry;
use sessions::Doors;
use settings::LiveSettings;
use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;
use tools::DefaultTools;

/// The folders of the daemon.
#[derive(Debug, Clone)]
pub struct Places {
    /// The data folder. Session files are below its folder `sessions`.
    pub data: PathBuf,
    /// The config folder, with `settings.json`.
    pub config: PathBuf,
}

impl Places {
    /// `$ABRIDGED_DATA_DIR` and `$ABRIDGED_CONFIG_DIR`, else the platform's own folders.
    ///
    /// # Errors
    /// When a variable is not set and there is no home folder.
    #[expect(clippy::disallowed_methods, reason = "the environment of the process")]
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

    /// The folder of the session files.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.data.join("sessions")
    }

    /// The global settings file.
    #[must_use]
    pub fn settings(&self) -> PathBuf {
        self.config.join("settings.json")
    }
}

/// The time that running operations get when the daemon ends, then the time in which they are cancelled. Both together,
/// with the last writes, stay under the two seconds of the protocol.
const PATIENCE: Duration = Duration::from_millis(1_200);
const LONGEST_CANCEL: Duration = Duration::from_millis(500);

/// The daemon.
pub struct Daemon {
    outbox: Arc<Outbox>,
    places: Places,
    home: Home,
    settings: Arc<LiveSettings>,
    /// The lock is held while the steps of a change are performed. No step waits.
    registry: Mutex<Registry<Doors>>,
    connection: Connection,
    /// True when the process ends. A session that opens after that handles its requests and closes.
    finishing: AtomicBool,
    /// Sends requests to the client.
    pub caller: Arc<Caller>,
    access: Arc<ModelAccess>,
    /// The hooks that the client answers.
    hooks: Arc<Registrations>,
    /// The tools of sessions that begin without tools of their own.
    tools: DefaultTools,
    /// Stops the work on messages that belong to no session.
    fits: Stop,
    /// The recording of all sessions.
    recorder: Option<Recorder>,
    files: SessionFiles,
    /// The tasks that end before the process does.
    tasks: TaskTracker,
    runtime: tokio::runtime::Handle,
    /// `exit` was received, or the process that `initialize` named is gone.
    pub exit: Notify,
}

/// The exit code after `exit` without `shutdown`, as in LSP.
pub const EXIT_UNASKED: i32 = 1;

impl Daemon {
    /// A daemon that answers into `outbox`.
    #[must_use]
    pub fn new(outbox: Arc<Outbox>, places: Places, runtime: tokio::runtime::Handle) -> Arc<Self> {
        let home = Home::Folder(places.sessions());
        Self::in_home(home, None, outbox, places, runtime)
    }

    /// A daemon that answers into `outbox`, whose sessions are at home there, and are recorded.
    #[must_use]
    pub fn in_home(
        home: Home,
        recorder: Option<Recorder>,
        outbox: Arc<Outbox>,
        places: Places,
        runtime: tokio::runtime::Handle,
    ) -> Arc<Self> {
        let caller = Arc::new(Caller::new(outbox.clone()));
        let access = ModelAccess::new(caller.clone(), &places.data);
        let shared = Shared::new(access.clone()).recorded_by(recorder.clone());
        let daemon = Arc::new(Self {
            settings: Arc::new(LiveSettings::read(&places, outbox.clone())),
            files: SessionFiles::new(outbox.clone(), &places.data),
            registry: Mutex::new(Registry::new(Doors(shared.clone()))),
            caller,
            recorder,
            access,
            hooks: shared.hooks.clone(),
            tools: DefaultTools::default(),
            fits: Stop::default(),
            outbox,
            places,
            home,
            finishing: AtomicBool::new(false),
            connection: Connection::default(),
            tasks: TaskTracker::new(),
            runtime,
            exit: Notify::new(),
        });
        if let Some(store) = daemon.home.store() {
            stores::tell_outages(store, daemon.outbox.clone());
            store.server().keep();
        }
        let weak = Arc::downgrade(&daemon);
        let _ = shared.founder.set(Box::new(move |founding, told| match weak.upgrade() {
            Some(daemon) => daemon.found(founding, told),
            None => told(Err(Failure::Cancelled.into())),
        }));
        let weak = Arc::downgrade(&daemon);
        let _ = shared.forker.set(Box::new(move |forking, reply| match weak.upgrade() {
            Some(daemon) => daemon.fork(forking, reply),
            None => reply.fail(&Failure::Cancelled),
        }));
        let weak = Arc::downgrade(&daemon);
        let _ = shared.sources.set(Box::new(move |from, told| match weak.upgrade() {
            Some(daemon) => daemon.source(from, told),
            None => told(Err(Failure::Cancelled)),
        }));
        let weak = Arc::downgrade(&daemon);
        daemon.settings.watch(move |path| {
            if let Some(daemon) = weak.upgrade() {
                daemon.path_changed(&path);
            }
        });
        daemon
    }

    /// The place where the sessions are.
    fn home(&self) -> Home {
        self.home.clone()
    }

    /// The methods of a connection to this daemon.
    #[must_use]
    pub fn service(self: &Arc<Self>) -> Service<Self> {
        let daemon = self.clone();
        let gate = move |method: &str| daemon.connection.gate(method);
        let mut service = Service::new(self.clone(), self.outbox.clone(), self.caller.clone(), gate);
        if self.recorder.is_some() {
            service.keep_requests();
        }
        routes::add_to(&mut service);
        self.connection.set_requests(service.shared());
        service
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

    /// Ends all sessions. Running operations have `PATIENCE` to end by themselves; then they are cancelled, with
    /// their end events.
    pub async fn finish_sessions(&self) {
        self.finishing.store(true, Ordering::SeqCst);
        self.fits.request();
        self.tasks.close();
        self.finish_when_idle();
        if tokio::time::timeout(PATIENCE, self.tasks.wait()).await.is_err() {
            self.stop_sessions();
            let _ = tokio::time::timeout(LONGEST_CANCEL, self.tasks.wait()).await;
        }
    }

    /// Answers all open requests with `request_cancelled`, because the process ends.
    pub fn abandon_requests(&self) {
        self.connection.abandon_requests();
    }

    /// Returns true after `shutdown` was received.
    #[must_use]
    pub fn asked_to_shut_down(&self) -> bool {
        self.connection.is_shut_down()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn idle_status() -> Status {
    Status { kind: StatusKind::Idle, operation_id: None, reason: None }
}
