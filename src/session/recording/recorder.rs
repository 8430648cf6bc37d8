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
    regular,
    wire::outbox::Outbox,
};
use std::{
    collections::VecDeque,
    io::{self, BufWriter},
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// The most bytes that are not written yet.
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
    /// The lines that wait for the disk.
    lines: VecDeque<String>,
    /// Their bytes, and those of the line that is being written.
    bytes: usize,
    phase: Phase,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
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
        let shared = Arc::new(Shared::new(Mask::new(uuid::Uuid::new_v4().as_u128()), outbox));
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
        self.0.add(text);
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
    fn new(mask: Mask, outbox: Arc<Outbox>) -> Self {
        Self {
            state: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            lives: AtomicU64::new(0),
            mask,
            outbox,
        }
    }

    /// Adds a line. Ends the recording where too many bytes wait.
    fn add(&self, line: String) {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return;
        }
        if state.bytes + line.len() > MOST_BYTES {
            self.end(&mut state, "the disk is too slow: more than 64 MiB wait to be written");
            return;
        }
        state.bytes += line.len();
        state.lines.push_back(line);
        self.filled.notify_one();
    }

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
            code: NoticeCode::RecordingEnded,
            title: "The recording has ended".to_owned(),
            detail: Some(format!("{why}. The sessions go on. The recording can be replayed up to here")),
        };
        self.outbox.notify(Notice::NAME, notice);
        // After the notice: stderr may be a file on the same full disk.
        tracing::warn!(why, "the recording has ended");
    }

    /// Writes lines until the recording ends.
    fn write(&self, file: impl io::Write) {
        if let Err(error) = self.write_lines(&mut BufWriter::new(file)) {
            self.end(&mut self.lock(), &format!("it could not be written ({error})"));
        }
    }

    fn next_line(&self) -> Option<String> {
        self.lock().lines.pop_front()
    }

    fn write_lines(&self, file: &mut impl io::Write) -> io::Result<()> {
        loop {
            while let Some(line) = self.next_line() {
                file.write_all(line.as_bytes())?;
                let mut state = self.lock();
                // The recording may have ended meanwhile.
                state.bytes = state.bytes.saturating_sub(line.len());
            }
            file.flush()?;
            let mut state = self.lock();
            while state.lines.is_empty() && state.phase == Phase::Open {
                state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.lines.is_empty() {
                state.phase = Phase::Over;
                self.emptied.notify_all();
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A disk that reports each write and waits for a permission.
    struct SlowDisk {
        began: Sender<usize>,
        go_on: Receiver<()>,
    }

    impl io::Write for SlowDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.began.send(bytes.len());
            let _ = self.go_on.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_counts_until_it_is_written() {
        let recording = Arc::new(Shared::new(Mask::new(1), Arc::new(Outbox::new())));
        let ((began, begins), (permit, go_on)) = (channel(), channel());
        let writing = recording.clone();
        let thread = std::thread::spawn(move || writing.write(SlowDisk { began, go_on }));
        let half = MOST_BYTES / 2;
        let line = || "x".repeat(half);
        let phase = || recording.lock().phase;
        let bytes = || recording.lock().bytes;
        recording.add(line());
        assert_eq!(begins.recv(), Ok(half));
        recording.add(line());
        assert_eq!((phase(), bytes()), (Phase::Open, MOST_BYTES));
        permit.send(()).expect("the disk waits");
        assert_eq!(begins.recv(), Ok(half));
        assert_eq!(bytes(), half, "the first line is written");
        recording.add(line());
        assert_eq!(phase(), Phase::Open);
        recording.add("x".to_owned());
        assert_eq!(phase(), Phase::Over, "a line is being written, and one waits");
        drop(permit);
        thread.join().expect("the thread ends");
        assert_eq!(bytes(), 0);
    }
}
