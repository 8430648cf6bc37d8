//! The file of a recording, written by a thread of its own. A session never waits for it: where the disk is too slow or
//! fails, the recording ends, and the client gets a notice.

#![expect(clippy::disallowed_methods, reason = "the salt of a recording")]

use super::{Line, mask::Mask};
use crate::{
    protocol::{
        events::Severity,
        notifications::{Notice, NoticeParams, Notification as _},
    },
    regular,
    wire::outbox::Outbox,
};
use std::{
    collections::VecDeque,
    fs::File,
    io::{self, BufWriter, Write as _},
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The most bytes that wait for the disk.
const MOST_BYTES: usize = 64 << 20;

/// The recording of a process. Clones share it.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Lines wait, or the recording is to be closed.
    filled: Condvar,
    /// Everything is written.
    emptied: Condvar,
    lives: AtomicU64,
    mask: Mask,
    outbox: Arc<Outbox>,
}

#[derive(Default)]
struct State {
    lines: VecDeque<String>,
    bytes: usize,
    phase: Phase,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Lines are taken.
    #[default]
    Open,
    /// The process ends: lines that wait are written, and no more are taken.
    Closing,
    /// Nothing is written any more.
    Over,
}

impl Recorder {
    /// Makes the file and starts its thread.
    ///
    /// # Errors
    /// When there is a file already, or it cannot be made.
    pub fn start(path: &Path, outbox: Arc<Outbox>) -> Result<Self, String> {
        let file = regular::make(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{}: there is a file already; name one that is not there yet for --record", path.display())
            }
            _ => format!("{}: the recording cannot be made ({error})", path.display()),
        })?;
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            lives: AtomicU64::new(0),
            mask: Mask::new(uuid::Uuid::new_v4().as_u128()),
            outbox,
        });
        let writing = shared.clone();
        let write = move || writing.write(file);
        let thread = std::thread::Builder::new().name("abridged-record".to_owned()).spawn(write);
        thread.map_err(|error| format!("a thread cannot be made: {error}"))?;
        Ok(Self(shared))
    }

    /// The number of a session that is opened now, from 1.
    #[must_use]
    pub fn next_life(&self) -> u64 {
        self.0.lives.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Masks the secrets of settings.
    #[must_use]
    pub fn mask(&self) -> Mask {
        self.0.mask
    }

    /// Adds a line. It does not wait.
    pub fn add(&self, line: &Line) {
        if self.0.lock().phase != Phase::Open {
            return;
        }
        let Ok(mut text) = serde_json::to_string(line) else { return };
        text.push('\n');
        let mut state = self.0.lock();
        if state.phase != Phase::Open {
            return;
        }
        if state.bytes + text.len() > MOST_BYTES {
            self.0.end(&mut state, "the disk is too slow: more than 64 MiB wait to be written");
            return;
        }
        state.bytes += text.len();
        state.lines.push_back(text);
        self.0.filled.notify_one();
    }

    /// Ends the recording. Waits until it is written, at most this time.
    pub fn close(&self, longest: Duration) {
        let mut state = self.0.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Closing;
        }
        self.0.filled.notify_one();
        let wait = self.0.emptied.wait_timeout_while(state, longest, |state| state.phase != Phase::Over);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the recording before the process ends. The lines so far can be replayed.
    fn end(&self, state: &mut State, why: &str) {
        *state = State { phase: Phase::Over, ..State::default() };
        self.emptied.notify_all();
        self.filled.notify_one();
        let notice = NoticeParams {
            severity: Severity::Warning,
            title: "The recording has ended".to_owned(),
            detail: Some(format!("{why}. The sessions go on. The recording can be replayed up to here")),
        };
        self.outbox.notify(Notice::NAME, notice);
        // Behind the notice: stderr may be a file on the same full disk.
        tracing::warn!(why, "the recording has ended");
    }

    /// Writes lines until the recording ends.
    fn write(&self, file: File) {
        let mut file = BufWriter::new(file);
        loop {
            let mut state = self.lock();
            while state.lines.is_empty() && state.phase == Phase::Open {
                state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let lines = std::mem::take(&mut state.lines);
            state.bytes = 0;
            if lines.is_empty() {
                state.phase = Phase::Over;
                return self.emptied.notify_all();
            }
            drop(state);
            let written = lines.iter().try_for_each(|line| file.write_all(line.as_bytes()));
            if let Err(error) = written.and_then(|()| file.flush()) {
                return self.end(&mut self.lock(), &format!("it could not be written ({error})"));
            }
        }
    }
}
