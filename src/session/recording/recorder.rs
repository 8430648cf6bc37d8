//! The file of a recording, written by a thread of its own. A session never waits for it: where the disk is too slow or
//! fails, the recording ends, and the client gets a notice.

#![expect(clippy::disallowed_methods, reason = "the salt of a recording")]

use super::{Line, mask::Mask};
use crate::{
    protocol::{
        events::Severity,
        notices::NoticeCode,
        notifications::{Notice, NoticeParams, Notification as _},
    },
    wire::{
        line_queue::{LineQueue, NewFile},
        outbox::Outbox,
    },
};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The most bytes that are not written yet.
const MOST_BYTES: usize = 64 << 20;

/// The recording of a process. Clones share it.
#[derive(Clone)]
pub struct Recorder {
    queue: LineQueue<String>,
    lives: Arc<AtomicU64>,
    mask: Mask,
    outbox: Arc<Outbox>,
}

impl Recorder {
    /// Makes the file and starts its thread.
    ///
    /// # Errors
    /// When there is a file already, or it cannot be made: what to do next.
    pub fn start(path: &Path, outbox: Arc<Outbox>) -> Result<Self, String> {
        let mask = Mask::new(uuid::Uuid::new_v4().as_u128());
        let recorder = Self { queue: LineQueue::new(MOST_BYTES), lives: Arc::default(), mask, outbox };
        let file = NewFile { path, name: "recording", option: "--record" };
        let told = recorder.outbox.clone();
        recorder.queue.start(file, move |why| ended(&told, why))?;
        Ok(recorder)
    }

    /// The number of a session that is opened now, from 1.
    #[must_use]
    pub fn next_life(&self) -> u64 {
        self.lives.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Masks the secrets of settings.
    #[must_use]
    pub fn mask(&self) -> Mask {
        self.mask
    }

    /// Adds a line. It does not wait. A recording with a gap cannot be replayed, so it ends where too many bytes wait.
    pub fn add(&self, line: &Line) {
        if !self.queue.is_open() {
            return;
        }
        let Ok(text) = serde_json::to_string(line) else { return };
        if self.queue.has_room(&text) {
            self.queue.push(text);
        } else if self.queue.end() {
            ended(&self.outbox, "the disk is too slow: more than 64 MiB wait to be written");
        }
    }

    /// Ends the recording. Waits until it is written, at most this time.
    pub fn close(&self, longest: Duration) {
        self.queue.close(longest);
    }
}

/// Tells that the recording ended before the process. The lines so far can be replayed.
fn ended(outbox: &Outbox, why: &str) {
    let notice = NoticeParams {
        severity: Severity::Warning,
        code: NoticeCode::RecordingEnded,
        title: "The recording has ended".to_owned(),
        detail: Some(format!("{why}. The sessions go on. The recording can be replayed up to here")),
    };
    outbox.notify(Notice::NAME, notice);
    // After the notice: stderr may be a file on the same full disk.
    tracing::warn!(why, "the recording has ended");
}
