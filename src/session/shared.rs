//! State of all sessions of a daemon.

use super::{forking::Forker, founding::Founder, hooks::Registrations, recording::recorder::Recorder, source::Finder};
use crate::ask::access::ModelAccess;
use std::sync::{Arc, OnceLock, atomic::AtomicU64};
use tokio::sync::Semaphore;

/// State that the sessions of a daemon share.
#[derive(Clone)]
pub struct Shared {
    /// Bytes of lines that all sessions keep in memory.
    pub(super) awake: Arc<AtomicU64>,
    /// One session at a time counts tokens.
    pub(super) counting: Arc<Semaphore>,
    /// One session at a time has idle maintenance, in the order in which they ask.
    pub(super) idling: Arc<Semaphore>,
    /// The ways to ask a model.
    pub access: Arc<ModelAccess>,
    /// The hooks that the client answers.
    pub hooks: Arc<Registrations>,
    /// Makes sessions; empty where there is no daemon.
    pub founder: Arc<OnceLock<Founder>>,
    /// Makes forks; empty where there is no daemon.
    pub forker: Arc<OnceLock<Forker>>,
    /// Finds the sources of references; empty where there is no daemon.
    pub sources: Arc<OnceLock<Finder>>,
    /// The recording of all sessions.
    pub(super) recorder: Option<Recorder>,
}

impl Shared {
    /// State for the sessions of a daemon.
    #[must_use]
    pub fn new(access: Arc<ModelAccess>) -> Self {
        Self {
            awake: Arc::default(),
            counting: one_at_a_time(),
            idling: one_at_a_time(),
            access,
            hooks: Arc::default(),
            founder: Arc::default(),
            forker: Arc::default(),
            sources: Arc::default(),
            recorder: None,
        }
    }

    /// The same with a recording of all sessions.
    #[must_use]
    pub fn recorded_by(self, recorder: Option<Recorder>) -> Self {
        Self { recorder, ..self }
    }
}

fn one_at_a_time() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(1))
}
