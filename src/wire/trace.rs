//! A trace of the wire: each frame in and out, without its secrets, as a line of JSON in a new file.
//!
//! A thread of its own writes the file. The daemon never waits for it: where too many frames wait, the trace says how many are
//! missing; where the file cannot be written, the trace ends with a warning.

mod line;

use crate::{
    regular,
    wire::{trace::line::Shown, transport::Piece},
};
use jiff::Timestamp;
use std::{
    collections::VecDeque,
    io::{self, BufWriter, Write},
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The most bytes of frames that are not written yet. The frames of some hundred requests with large answers fit.
const MOST_BYTES: usize = 16 << 20;

/// The bytes that a frame takes in the queue beside its text, about.
const BESIDE: usize = 128;

/// The way of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client.
    In,
    /// To the client.
    Out,
}

/// The trace of a process. Clones share it.
#[derive(Clone)]
pub struct Trace(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Lines wait, or the trace is to be closed.
    filled: Condvar,
    /// Everything is written.
    emptied: Condvar,
    now: fn() -> Timestamp,
    /// Called with the reason where the trace ends before the process.
    ended: Box<dyn Fn(&str) + Send + Sync>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// Their bytes, and those of the line that is being written.
    bytes: usize,
    /// Frames that had no room since the last one that had.
    missing: u64,
    phase: Phase,
}

/// A line that waits for the disk.
enum Waiting {
    Frame(Timestamp, Direction, Shown),
    Skipped(Timestamp),
    Missing(Timestamp, u64),
}

impl Waiting {
    fn len(&self) -> usize {
        match self {
            Self::Frame(_, _, shown) => shown.len() + BESIDE,
            Self::Skipped(_) | Self::Missing(..) => BESIDE,
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Frame(at, direction, shown) => line::of_frame(*at, *direction, shown),
            Self::Skipped(at) => line::of_skipped(*at),
            Self::Missing(at, frames) => line::of_missing(*at, *frames),
        }
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Frames are taken.
    #[default]
    Open,
    /// The process ends: frames that wait are written, and no more are taken.
    Closing,
    /// Nothing is written any more.
    Over,
}

impl Trace {
    /// Makes the file and starts its thread. Lines have the time of `now`. `ended` is called with the reason where the trace ends before the process.
    ///
    /// # Errors
    /// When there is a file already, or it cannot be made.
    pub fn start(
        path: &Path,
        now: fn() -> Timestamp,
        ended: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let file = regular::make(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{}: there is a file already; name one that is not there yet for --trace", path.display())
            }
            _ => format!("{}: the trace cannot be made ({error})", path.display()),
        })?;
        let shared = Arc::new(Shared::new(now, ended));
        let writing = shared.clone();
        let thread = std::thread::Builder::new().name("abridged-trace".to_owned()).spawn(move || writing.write(file));
        thread.map_err(|error| format!("a thread cannot be made: {error}"))?;
        Ok(Self(shared))
    }

    /// Adds a frame of the client. It does not wait.
    pub fn inbound(&self, frame: &[u8]) {
        self.0.add(|at| Waiting::Frame(at, Direction::In, Shown::of_bytes(frame)));
    }

    /// Adds a frame of the client that was skipped. It does not wait.
    pub fn skipped(&self) {
        self.0.add(Waiting::Skipped);
    }

    /// Adds a frame to the client. It does not wait.
    pub fn outbound(&self, frame: &str) {
        self.0.add(|at| Waiting::Frame(at, Direction::Out, Shown::of_bytes(frame.as_bytes())));
    }

    /// Adds a large frame to the client. It does not wait.
    pub fn outbound_in_pieces(&self, pieces: &[Piece]) {
        self.0.add(|at| Waiting::Frame(at, Direction::Out, Shown::of_pieces(pieces)));
    }

    /// Ends the trace. Waits until it is written, at most this time.
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
    fn new(now: fn() -> Timestamp, ended: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let ended = Box::new(ended);
        Self { state: Mutex::default(), filled: Condvar::new(), emptied: Condvar::new(), now, ended }
    }

    /// Adds a frame, or counts it where it has no room. The lock is held meanwhile, so the times grow with the lines.
    fn add(&self, frame: impl FnOnce(Timestamp) -> Waiting) {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return;
        }
        let at = (self.now)();
        let frame = frame(at);
        if state.bytes + frame.len() > MOST_BYTES {
            state.missing += 1;
            return;
        }
        let was_empty = state.waiting.is_empty();
        state.put_missing(at);
        state.put(frame);
        if was_empty {
            self.filled.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes lines until the trace ends.
    fn write(&self, file: impl Write) {
        let Err(error) = self.write_lines(&mut BufWriter::new(file)) else { return };
        *self.lock() = State { phase: Phase::Over, ..State::default() };
        self.emptied.notify_all();
        (self.ended)(&format!("it could not be written ({error})"));
    }

    fn write_lines(&self, file: &mut impl Write) -> io::Result<()> {
        loop {
            while let Some(waiting) = self.next() {
                let mut line = waiting.line();
                line.push('\n');
                file.write_all(line.as_bytes())?;
                self.lock().bytes -= waiting.len();
            }
            file.flush()?;
            let mut state = self.lock();
            while state.waiting.is_empty() && state.phase == Phase::Open {
                state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.waiting.is_empty() && state.missing == 0 {
                state.phase = Phase::Over;
                self.emptied.notify_all();
                return Ok(());
            }
            if state.waiting.is_empty() {
                state.put_missing((self.now)());
            }
        }
    }

    fn next(&self) -> Option<Waiting> {
        self.lock().waiting.pop_front()
    }
}

impl State {
    fn put(&mut self, waiting: Waiting) {
        self.bytes += waiting.len();
        self.waiting.push_back(waiting);
    }

    /// Adds the line about the frames that had no room.
    fn put_missing(&mut self, at: Timestamp) {
        match std::mem::take(&mut self.missing) {
            0 => {}
            missing => self.put(Waiting::Missing(at, missing)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A disk that gives each write away and waits for a permission.
    struct SlowDisk {
        written: Sender<Vec<u8>>,
        go_on: Receiver<()>,
    }

    impl Write for SlowDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.written.send(bytes.to_vec());
            let _ = self.go_on.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn frames_without_room_are_counted_and_nobody_waits_for_the_disk() {
        let shared = Arc::new(Shared::new(|| Timestamp::UNIX_EPOCH, |_| panic!("it does not end")));
        let ((written, writes), (permit, go_on)) = (channel(), channel());
        let writing = shared.clone();
        let thread = std::thread::spawn(move || writing.write(SlowDisk { written, go_on }));
        let trace = Trace(shared);
        let frame = format!("\"{}\"", "x".repeat(60 << 10));
        trace.outbound(&frame);
        let mut text = writes.recv().expect("the disk is asked");
        let fitting = MOST_BYTES / (frame.len() + BESIDE);
        for _ in 0..fitting + 3 {
            trace.outbound(&frame);
        }
        drop(permit);
        while trace.0.lock().bytes > 0 {
            std::thread::yield_now();
        }
        trace.outbound("1");
        trace.close(Duration::from_secs(60));
        thread.join().expect("the thread ends");
        text.extend(writes.iter().flatten());
        let text = String::from_utf8(text).expect("text");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        // The frame that is being written counts.
        assert_eq!(lines.len(), fitting + 2);
        assert_eq!((&lines[fitting]["missing"], &lines[fitting + 1]["frame"]), (&Value::from(4), &Value::from(1)));
    }

    #[test]
    fn frames_without_room_at_the_end_are_counted_too() {
        let shared = Shared::new(|| Timestamp::UNIX_EPOCH, |_| panic!("it does not end"));
        shared.lock().missing = 2;
        shared.lock().phase = Phase::Closing;
        let mut file = Vec::new();
        shared.write(&mut file);
        let line: Value = serde_json::from_slice(&file).expect("one line");
        assert_eq!(line["missing"], 2);
    }
}
