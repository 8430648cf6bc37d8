//! How the sessions of a daemon reach models.

use super::{client::Client, routes::Routes, slots::Slots, support::Supports};
use crate::{
    ids::{ModelRef, SessionId},
    models::{
        learned::{Change, LearnedWindow, Server, WindowOrigin},
        windows::Windows,
    },
    settings::Settings,
};
use jiff::Timestamp;
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Access to models, shared by all sessions of a daemon.
pub struct ModelAccess {
    /// Sends requests.
    pub routes: Routes,
    /// The windows that providers taught.
    pub windows: Windows,
    /// Summaries that are made at the same time.
    pub summaries: Slots,
    /// The models that compact on demand.
    pub supports: Supports,
    client_runs_models: AtomicBool,
    client_switches_models: AtomicBool,
    client_follows_sessions: AtomicBool,
}

impl ModelAccess {
    /// Access over HTTP and by `client`, for a daemon that keeps its files in `data`. Blocks while it reads one of them.
    #[must_use]
    pub fn new(client: Arc<dyn Client>, data: &Path) -> Arc<Self> {
        Self::of(Routes::new(client), Windows::read(data))
    }

    /// Access by these routes.
    #[must_use]
    pub fn of(routes: Routes, windows: Windows) -> Arc<Self> {
        Arc::new(Self {
            routes,
            windows,
            summaries: Slots::default(),
            supports: Supports::default(),
            client_runs_models: AtomicBool::new(false),
            client_switches_models: AtomicBool::new(false),
            client_follows_sessions: AtomicBool::new(false),
        })
    }

    /// Learns the window of a model, which a request in this session showed, for all sessions.
    pub fn learn(&self, settings: &Settings, model: &ModelRef, tokens: u64, origin: WindowOrigin, session: &SessionId) {
        let now = Timestamp::from_millisecond(self.routes.clock.timestamp_ms()).unwrap_or_default();
        let row = LearnedWindow::new(Server::of(settings, model), tokens, origin, now, session);
        self.windows.teach(Change::Learned(row));
    }

    /// Whether the client runs models.
    #[must_use]
    pub fn client_runs_models(&self) -> bool {
        self.client_runs_models.load(Ordering::SeqCst)
    }

    /// Records that the client runs models.
    pub fn the_client_runs_models(&self) {
        self.client_runs_models.store(true, Ordering::SeqCst);
    }

    /// Whether the client asks the model that a context names.
    #[must_use]
    pub fn client_switches_models(&self) -> bool {
        self.client_switches_models.load(Ordering::SeqCst)
    }

    /// Records that the client asks the model that a context names.
    pub fn the_client_switches_models(&self) {
        self.client_switches_models.store(true, Ordering::SeqCst);
    }

    /// Whether the client goes on with the session that `session_replaced` names.
    #[must_use]
    pub fn client_follows_sessions(&self) -> bool {
        self.client_follows_sessions.load(Ordering::SeqCst)
    }

    /// Records that the client goes on with the session that `session_replaced` names.
    pub fn the_client_follows_sessions(&self) {
        self.client_follows_sessions.store(true, Ordering::SeqCst);
    }
}
