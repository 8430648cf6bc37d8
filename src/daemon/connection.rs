//! The connection: its stages from `initialize` to `exit`, and the methods that are about no session.

use super::{Daemon, lock, routes::DaemonMethod, settings::tell_of_windows};
use crate::{
    protocol::{
        self, CancelAcp, CancelLsp, Discover, Exit, Initialize, Initialized, Method, Ping, Shutdown,
        errors::Failure,
        types::{
            AnyJson, CancelAcpParams, CancelLspParams, Empty, InitializeAnswer, InitializeParams, Limits, Nothing,
            ServerCapabilities, ServerInfo,
        },
    },
    wire::{
        fit::SOFT_FRAME,
        rpc::{self, MOST_IN_BATCH, MOST_IN_FLIGHT, Reply},
        transport::LARGEST_FRAME,
    },
};
use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use serde_json::value::RawValue;
use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

/// Interval at which the daemon checks whether the client's process lives.
const PARENT_CHECK: Duration = Duration::from_millis(250);

/// The stage of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    #[default]
    New,
    Ready,
    ShutDown,
}

/// The connection to the client.
#[derive(Default)]
pub(super) struct Connection {
    stage: Mutex<Stage>,
    requests: OnceLock<Arc<rpc::Shared>>,
}

impl Connection {
    /// Whether a method may be called now.
    ///
    /// # Errors
    /// Before `initialize`, and after `shutdown`.
    pub(super) fn gate(&self, method: &str) -> Result<(), Failure> {
        match (*lock(&self.stage), method) {
            (_, Exit::NAME) | (Stage::Ready, _) | (Stage::New, Initialize::NAME) => Ok(()),
            (Stage::New, _) => Err(Failure::NotInitialized),
            (Stage::ShutDown, _) => Err(Failure::InvalidRequest("`shutdown` was sent; only `exit` is left".to_owned())),
        }
    }

    /// Sets the requests that wait for their answers.
    pub(super) fn set_requests(&self, requests: Arc<rpc::Shared>) {
        let _ = self.requests.set(requests);
    }

    fn cancel(&self, id: &RawValue) {
        self.requests.get().inspect(|requests| requests.cancel(id));
    }

    /// Answers the requests that still wait: the process ends.
    pub(super) fn abandon_requests(&self) {
        self.requests.get().inspect(|requests| requests.abandon());
    }

    /// Leaves the stage `New`. False where the connection has left it before.
    fn begin(&self) -> bool {
        let mut stage = lock(&self.stage);
        let first = *stage == Stage::New;
        if first {
            *stage = Stage::Ready;
        }
        first
    }

    fn shut_down(&self) {
        *lock(&self.stage) = Stage::ShutDown;
    }

    /// Whether `shutdown` was received, or the client's process is gone.
    pub(super) fn is_shut_down(&self) -> bool {
        *lock(&self.stage) == Stage::ShutDown
    }
}

impl DaemonMethod for Initialize {
    fn handle(daemon: &Arc<Daemon>, params: InitializeParams, reply: Reply) {
        if let Some(version) = params.protocol_version.filter(|version| *version != protocol::VERSION) {
            return reply.fail(&Failure::UnsupportedProtocolVersion(version));
        }
        if !daemon.connection.begin() {
            return reply.fail(&Failure::AlreadyInitialized);
        }
        if let Some(process) = params.process_id.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
            end_with(daemon, process);
        }
        let capabilities = params.capabilities.unwrap_or_default();
        daemon.outbox.opt_out(capabilities.events.unwrap_or_default().opt_out);
        if capabilities.llm.is_some() {
            daemon.access.the_client_runs_models();
        }
        if capabilities.model_switch.is_some() {
            daemon.access.the_client_switches_models();
        }
        if capabilities.session_replaced.is_some() {
            daemon.access.the_client_follows_sessions();
        }
        let wrong_hooks = capabilities.hooks.and_then(|hooks| daemon.register_claimed(&hooks));
        let mut methods: Vec<_> = protocol::methods().iter().map(|method| method.name).collect();
        methods.sort_unstable();
        reply.ok(&InitializeAnswer {
            protocol_version: protocol::VERSION,
            server_info: ServerInfo { name: "abridged", version: env!("CARGO_PKG_VERSION") },
            capabilities: ServerCapabilities {
                methods,
                context_formats: vec!["messages", "anthropic", "openai_chat", "openai_responses", "google"],
                compaction_methods: vec!["llm", "extractive"],
            },
            limits: Limits {
                max_inbound_frame_bytes: LARGEST_FRAME,
                soft_outbound_frame_bytes: SOFT_FRAME,
                max_in_flight_requests: MOST_IN_FLIGHT,
                max_batch_requests: MOST_IN_BATCH,
            },
            epoch: daemon.outbox.epoch().to_owned(),
            data_dir: daemon.places.data.display().to_string(),
        });
        wrong_hooks.into_iter().for_each(|notice| daemon.notify(notice));
        daemon.settings.greeted();
        tell_of_windows(&daemon.access.windows, daemon.outbox.clone());
        let daemon = daemon.clone();
        // No other program writes to the cache of a store.
        if daemon.home.store().is_none() {
            daemon.runtime.clone().spawn_blocking(move || daemon.files.watch(daemon.settings.watcher()));
        }
    }
}

/// Ends the daemon when the client's process dies. stdin alone does not tell: another process may hold it open.
fn end_with(daemon: &Arc<Daemon>, process: Pid) {
    let ending = daemon.clone();
    daemon.runtime.spawn(async move {
        while test_kill_process(process) != Err(Errno::SRCH) {
            tokio::time::sleep(PARENT_CHECK).await;
        }
        ending.connection.shut_down();
        ending.exit.notify_one();
    });
}

impl DaemonMethod for Initialized {
    fn handle(_: &Arc<Daemon>, Nothing {}: Nothing, reply: Reply) {
        reply.ok(&());
    }
}

impl DaemonMethod for Shutdown {
    fn handle(daemon: &Arc<Daemon>, Nothing {}: Nothing, reply: Reply) {
        daemon.connection.shut_down();
        let ending = daemon.clone();
        daemon.runtime.spawn(async move {
            ending.finish_sessions().await;
            reply.ok(&());
        });
    }
}

impl DaemonMethod for Exit {
    fn handle(daemon: &Arc<Daemon>, Nothing {}: Nothing, reply: Reply) {
        reply.ok(&());
        daemon.exit.notify_one();
    }
}

impl DaemonMethod for Ping {
    fn handle(_: &Arc<Daemon>, Nothing {}: Nothing, reply: Reply) {
        reply.ok(&Empty {});
    }
}

impl DaemonMethod for Discover {
    fn handle(_: &Arc<Daemon>, Nothing {}: Nothing, reply: Reply) {
        reply.ok(&AnyJson(protocol::schema::openrpc()));
    }
}

impl DaemonMethod for CancelLsp {
    fn handle(daemon: &Arc<Daemon>, CancelLspParams { id }: CancelLspParams, reply: Reply) {
        daemon.connection.cancel(&id);
        reply.ok(&());
    }
}

impl DaemonMethod for CancelAcp {
    fn handle(daemon: &Arc<Daemon>, CancelAcpParams { request_id }: CancelAcpParams, reply: Reply) {
        daemon.connection.cancel(&request_id);
        reply.ok(&());
    }
}
