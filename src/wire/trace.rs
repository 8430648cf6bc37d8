//! A trace of the wire: each frame in and out, without its secrets, as a line of JSON in a new file.
//!
//! The daemon never waits for the file: where too many frames wait, the trace says how many are
//! missing; where the file cannot be written, the trace ends with a warning.

mod line;

use crate::wire::{
    line_queue::{Line, LineQueue, NewFile},
    trace::line::Shown,
    transport::Piece,
};
use jiff::Timestamp;
use std::{
    borrow::Cow,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
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
pub struct Trace {
    queue: LineQueue<Waiting>,
    /// Frames that had no room since the last one that had.
    missing: Arc<Mutex<u64>>,
    now: fn() -> Timestamp,
}

/// A line that waits for the disk.
enum Waiting {
    Frame(Timestamp, Direction, Shown),
    Skipped(Timestamp),
    Missing(Timestamp, u64),
}

impl Line for Waiting {
    fn bytes(&self) -> usize {
        match self {
            Self::Frame(_, _, shown) => shown.len() + BESIDE,
            Self::Skipped(_) | Self::Missing(..) => BESIDE,
        }
    }

    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Frame(at, direction, shown) => line::of_frame(*at, *direction, shown),
            Self::Skipped(at) => line::of_skipped(*at),
            Self::Missing(at, frames) => line::of_missing(*at, *frames),
        }
        .into()
    }
}

impl Trace {
    /// Makes the file and starts its thread. Lines have the time of `now`. `ended` is called with the reason where the trace ends
    /// before the process.
    ///
    /// # Errors
    /// When there is a file already, or it cannot be made: what to do next.
    pub fn start(
        path: &Path,
        now: fn() -> Timestamp,
        ended: impl FnOnce(&str) + Send + 'static,
    ) -> Result<Self, String> {
        let trace = Self::new(now);
        trace.queue.start(NewFile { path, name: "trace", option: "--trace" }, ended)?;
        Ok(trace)
    }

    fn new(now: fn() -> Timestamp) -> Self {
        Self { queue: LineQueue::new(MOST_BYTES), missing: Arc::default(), now }
    }

    /// Adds a frame of the client. It does not wait.
    pub fn inbound(&self, frame: &[u8]) {
        self.add(|at| Waiting::Frame(at, Direction::In, Shown::of_bytes(frame)));
    }

    /// Adds a frame of the client that was skipped. It does not wait.
    pub fn skipped(&self) {
        self.add(Waiting::Skipped);
    }

    /// Adds a frame to the client. It does not wait.
    pub fn outbound(&self, frame: &str) {
        self.add(|at| Waiting::Frame(at, Direction::Out, Shown::of_bytes(frame.as_bytes())));
    }

    /// Adds a large frame to the client. It does not wait.
    pub fn outbound_in_pieces(&self, pieces: &[Piece]) {
        self.add(|at| Waiting::Frame(at, Direction::Out, Shown::of_pieces(pieces)));
    }

    /// Adds a frame, or counts it where it has no room. The count is locked meanwhile, so the times grow with the lines.
    fn add(&self, frame: impl FnOnce(Timestamp) -> Waiting) {
        if !self.queue.is_open() {
            return;
        }
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (self.now)();
        let frame = frame(at);
        if !self.queue.has_room(&frame) {
            *missing += 1;
            return;
        }
        self.put_missing(at, std::mem::take(&mut *missing));
        self.queue.push(frame);
    }

    /// Adds the line about the frames that had no room.
    fn put_missing(&self, at: Timestamp, missing: u64) {
        if missing > 0 {
            self.queue.push(Waiting::Missing(at, missing));
        }
    }

    /// Ends the trace. Waits until it is written, at most this time.
    pub fn close(&self, longest: Duration) {
        let missing = std::mem::take(&mut *self.missing.lock().unwrap_or_else(PoisonError::into_inner));
        self.put_missing((self.now)(), missing);
        self.queue.close(longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn lines(text: Vec<u8>) -> Vec<Value> {
        let text = String::from_utf8(text).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[test]
    fn frames_without_room_are_counted_and_nobody_waits_for_the_disk() {
        let trace = Trace::new(|| Timestamp::UNIX_EPOCH);
        let (thread, writes, permit) = trace.queue.start_slowly();
        let frame = format!("\"{}\"", "x".repeat(60 << 10));
        trace.outbound(&frame);
        let mut text = writes.recv().expect("the disk is asked");
        let fitting = MOST_BYTES / (frame.len() + BESIDE);
        for _ in 0..fitting + 3 {
            trace.outbound(&frame);
        }
        drop(permit);
        trace.queue.drained();
        trace.outbound("1");
        trace.close(Duration::from_secs(60));
        thread.join().expect("the thread ends").expect("the disk takes it");
        text.extend(writes.iter().flatten());
        let lines = lines(text);
        // The frame that is being written counts.
        assert_eq!(lines.len(), fitting + 2);
        assert_eq!((&lines[fitting]["missing"], &lines[fitting + 1]["frame"]), (&Value::from(4), &Value::from(1)));
    }

    #[test]
    fn frames_without_room_at_the_end_are_counted_too() {
        let trace = Trace::new(|| Timestamp::UNIX_EPOCH);
        let frame = format!("\"{}\"", "x".repeat(60 << 10));
        let fitting = MOST_BYTES / (frame.len() + BESIDE);
        for _ in 0..fitting + 2 {
            trace.outbound(&frame);
        }
        let (thread, writes, permit) = trace.queue.start_slowly();
        drop(permit);
        trace.close(Duration::from_secs(60));
        thread.join().expect("the thread ends").expect("the disk takes it");
        let lines = lines(writes.iter().flatten().collect());
        assert_eq!((lines.len(), &lines[fitting]["missing"]), (fitting + 1, &Value::from(2)));
    }
}
