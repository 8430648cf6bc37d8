//! What sessions ask models with: providers over HTTP, the client, and what was learned of windows. One for a daemon.

use crate::{
    models::learned::Learned,
    provider::http::Http,
    regular,
    wire::{caller::Caller, outbox::Outbox},
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::Notify;

/// The most bytes of the file of learned windows that are read. A window takes less than a hundred.
const LARGEST: u64 = 1 << 20;

/// What models are asked with.
pub struct Means {
    /// Asks providers.
    pub http: Http,
    /// Asks the client.
    pub caller: Arc<Caller>,
    /// The windows that providers taught.
    pub learned: Learned,
    /// How many summaries are being made, over all sessions.
    turns: Turns,
    client_runs_models: AtomicBool,
    /// Where what was learned is kept.
    kept_in: PathBuf,
}

/// What was learned of windows by daemons that keep their things in `data`. Blocks for a moment.
#[must_use]
pub fn learned(data: &Path) -> Learned {
    let text = regular::read(&kept_in(data), LARGEST).ok();
    let windows: Option<BTreeMap<String, u64>> = text.and_then(|text| serde_json::from_slice(&text).ok());
    Learned::of(windows.unwrap_or_default())
}

fn kept_in(data: &Path) -> PathBuf {
    data.join("learned-windows.json")
}

/// So many at the same time, however many that is allowed to be at the moment.
#[derive(Debug, Default)]
struct Turns {
    taken: Mutex<u64>,
    freed: Notify,
}

/// A turn, as long as it is kept.
#[derive(Debug)]
pub struct Turn<'a>(&'a Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.freed.notify_waiters();
    }
}

impl Means {
    /// Those of a daemon that talks through `outbox` and keeps its things in `data`.
    #[must_use]
    pub fn new(outbox: Arc<Outbox>, data: &Path) -> Arc<Self> {
        Arc::new(Self {
            http: Http::default(),
            caller: Arc::new(Caller::new(outbox)),
            learned: learned(data),
            turns: Turns::default(),
            client_runs_models: AtomicBool::new(false),
            kept_in: kept_in(data),
        })
    }

    /// Whether the client said that it runs models.
    #[must_use]
    pub fn client_runs_models(&self) -> bool {
        self.client_runs_models.load(Ordering::SeqCst)
    }

    /// The client says so.
    pub fn the_client_runs_models(&self) {
        self.client_runs_models.store(true, Ordering::SeqCst);
    }

    /// Waits until fewer than `most` summaries are being made.
    pub async fn turn(&self, most: u64) -> Turn<'_> {
        loop {
            let freed = self.turns.freed.notified();
            tokio::pin!(freed);
            // Heard from here on, so that nothing falls between looking and waiting.
            freed.as_mut().enable();
            {
                let mut taken = self.turns.taken.lock().unwrap_or_else(PoisonError::into_inner);
                if *taken < most.max(1) {
                    *taken += 1;
                    return Turn(&self.turns);
                }
            }
            freed.await;
        }
    }

    /// Keeps what was learned for the next daemon. What cannot be written is learned again.
    pub fn keep_learned_soon(self: &Arc<Self>) {
        let means = self.clone();
        tokio::task::spawn_blocking(move || means.keep_learned());
    }

    fn keep_learned(&self) {
        let text = serde_json::to_string_pretty(&self.learned.all()).unwrap_or_default();
        let written = self.kept_in.parent().map_or(Ok(()), fs::create_dir_all);
        let written = written.and_then(|()| regular::replace(&self.kept_in, text.as_bytes()));
        if let Err(error) = written {
            tracing::debug!(%error, "what was learned of windows is not kept");
        }
    }
}
