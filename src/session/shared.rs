//! State of all sessions of a daemon.

use crate::ask::access::ModelAccess;
use std::sync::{Arc, atomic::AtomicU64};
use tokio::sync::Semaphore;

/// State that the sessions of a daemon share.
#[derive(Clone)]
pub struct Shared {
    /// Bytes of lines that all sessions keep in memory.
    pub(super) awake: Arc<AtomicU64>,
    /// One session at a time counts tokens.
    pub(super) counting: Arc<Semaphore>,
    /// The ways to ask a model.
    pub access: Arc<ModelAccess>,
}

impl Shared {
    /// State for the sessions of a daemon.
    #[must_use]
    pub fn new(access: Arc<ModelAccess>) -> Self {
        Self { awake: Arc::default(), counting: Arc::new(Semaphore::new(1)), access }
    }
}
