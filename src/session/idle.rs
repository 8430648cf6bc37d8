//! The idle time of a session, and its share of the memory that all sessions keep.

#![expect(clippy::disallowed_methods, reason = "waits for idle sessions")]

use crate::ask::access::ModelAccess;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// An idle session drops the bodies of its entries after this time.
const SLEEPS_AFTER: Duration = Duration::from_secs(60);

/// Bytes of lines that the other sessions keep before a session that was opened and never used drops its bodies early.
/// With the parsed parts the memory is about one and a half times that.
const MANY_AWAKE: u64 = 24 << 20;
const UNUSED_SLEEPS_AFTER: Duration = Duration::from_millis(200);

/// Bytes of lines that the other sessions keep before a used session drops its bodies early. Reading them again costs
/// 4 ms for each megabyte.
const TOO_MANY_AWAKE: u64 = 256 << 20;
const USED_SLEEPS_AFTER: Duration = Duration::from_secs(5);

/// Idle time before the index is built in the background.
const INDEXES_AFTER: Duration = Duration::from_millis(50);

/// Time between a failed index and the next try: a disk may come back.
const RETRIES_AFTER: Duration = Duration::from_secs(10);

/// State that the sessions of a daemon share.
#[derive(Clone)]
pub struct Shared {
    /// Bytes of lines that all sessions keep in memory.
    awake: Arc<AtomicU64>,
    /// One session at a time counts tokens.
    counting: Arc<Semaphore>,
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

/// The idle time of a session and its share of the memory.
pub(in crate::session) struct Idle {
    since: Instant,
    /// Whether the session had a request since it was opened.
    used: bool,
    shared: Shared,
    share: u64,
}

/// Work for an idle session, with its time.
#[derive(Clone, Copy)]
pub(in crate::session) enum IdleWork {
    Index(Instant),
    Sleep(Instant),
}

impl Idle {
    pub(in crate::session) fn new(shared: Shared) -> Self {
        Self { since: Instant::now(), used: false, shared, share: 0 }
    }

    /// Waits until no other session counts. The turn lasts as long as the value is kept.
    pub(in crate::session) fn turn_to_count(&self) -> impl Future<Output = Option<OwnedSemaphorePermit>> + use<> {
        let counting = self.shared.counting.clone();
        async move { counting.acquire_owned().await.ok() }
    }

    /// The ways to ask a model.
    pub(in crate::session) fn access(&self) -> Arc<ModelAccess> {
        self.shared.access.clone()
    }

    /// Starts the idle time anew.
    pub(in crate::session) fn touch(&mut self) {
        self.since = Instant::now();
        self.used = true;
    }

    /// Delays the next work after a failure, so that it is not tried in a loop.
    pub(in crate::session) fn postpone(&mut self) {
        self.since = Instant::now() + RETRIES_AFTER;
    }

    /// The time at which a session without an index builds it.
    pub(in crate::session) fn indexes_at(&self) -> Instant {
        self.since + INDEXES_AFTER
    }

    /// The time at which the bodies are dropped.
    pub(in crate::session) fn sleeps_at(&self) -> Instant {
        let others = self.shared.awake.load(Ordering::Relaxed).saturating_sub(self.share);
        self.since
            + match self.used {
                false if others > MANY_AWAKE => UNUSED_SLEEPS_AFTER,
                true if others > TOO_MANY_AWAKE => USED_SLEEPS_AFTER,
                _ => SLEEPS_AFTER,
            }
    }

    /// Sets the bytes that this session keeps in memory.
    pub(in crate::session) fn share(&mut self, bytes: u64) {
        let all = &self.shared.awake;
        all.fetch_add(bytes, Ordering::Relaxed);
        all.fetch_sub(self.share, Ordering::Relaxed);
        self.share = bytes;
    }

    /// Waits for the time of the work; forever without work.
    pub(in crate::session) async fn over(work: Option<IdleWork>) {
        match work {
            Some(IdleWork::Index(at) | IdleWork::Sleep(at)) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.share(0);
    }
}
