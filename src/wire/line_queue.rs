//! Lines on their way into a new file. A thread of its own writes them, so nobody waits for the disk.

use crate::regular;
use std::{
    borrow::Cow,
    collections::VecDeque,
    io::{self, BufWriter, Write},
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// A line of the file.
pub trait Line: Send + 'static {
    /// The bytes that it takes in the queue.
    fn bytes(&self) -> usize;

    /// Its text, without a newline. The thread of the file calls it.
    fn text(&self) -> Cow<'_, str>;
}

impl Line for String {
    fn bytes(&self) -> usize {
        self.len()
    }

    fn text(&self) -> Cow<'_, str> {
        self.into()
    }
}

/// A new file, as its errors name it.
#[derive(Debug, Clone, Copy)]
pub struct NewFile<'a> {
    /// Its path.
    pub path: &'a Path,
    /// Its name in an error, such as `trace`.
    pub name: &'static str,
    /// The option that names the path.
    pub option: &'static str,
}

/// The lines that wait for a file. Clones share them.
pub struct LineQueue<T>(Arc<Shared<T>>);

struct Shared<T> {
    /// The most bytes that are not written yet.
    most: usize,
    state: Mutex<State<T>>,
    /// Lines wait, or the queue is to be closed.
    filled: Condvar,
    /// Everything is written.
    emptied: Condvar,
}

struct State<T> {
    lines: VecDeque<T>,
    /// Their bytes, and those of the line that is being written.
    bytes: usize,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Lines are taken.
    Open,
    /// The process ends: lines that wait are written, and no more are taken.
    Closing,
    /// Nothing is written any more.
    Over,
}

impl<T> Clone for LineQueue<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Line> LineQueue<T> {
    /// A queue that nobody writes yet.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let state = Mutex::new(State { lines: VecDeque::new(), bytes: 0, phase: Phase::Open });
        Self(Arc::new(Shared { most, state, filled: Condvar::new(), emptied: Condvar::new() }))
    }

    /// Makes the file and starts the thread that writes it. `failed` is called with the reason where the disk fails; the queue has
    /// ended then.
    ///
    /// # Errors
    /// When there is something of that name already, or the file cannot be made: what to do next.
    pub fn start(&self, file: NewFile<'_>, failed: impl FnOnce(&str) + Send + 'static) -> Result<(), String> {
        let NewFile { path, name, option } = file;
        let made = regular::make(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{}: there is something of this name already; name a new file with {option}", path.display())
            }
            _ => format!(
                "{}: the {name} cannot be made ({error}); name a new file in a folder that exists with {option}",
                path.display()
            ),
        })?;
        let queue = self.clone();
        let write = move || {
            if let Err(error) = queue.write_to(made) {
                failed(&format!("it could not be written ({error})"));
            }
        };
        let thread = std::thread::Builder::new().name(format!("abridged-{name}")).spawn(write);
        thread.map(drop).map_err(|error| format!("a thread cannot be made: {error}"))
    }

    /// Whether lines are taken.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.lock().phase == Phase::Open
    }

    /// Whether a line has room.
    #[must_use]
    pub fn has_room(&self, line: &T) -> bool {
        self.lock().bytes + line.bytes() <= self.0.most
    }

    /// Adds a line, also one without room: the caller decides. A queue that has ended takes none.
    pub fn push(&self, line: T) {
        let mut state = self.lock();
        if state.phase == Phase::Open {
            state.bytes += line.bytes();
            state.lines.push_back(line);
            self.0.filled.notify_one();
        }
    }

    /// Ends the queue at once. Lines that wait are not written. Returns whether it had not ended.
    pub fn end(&self) -> bool {
        let ended = State { lines: VecDeque::new(), bytes: 0, phase: Phase::Over };
        let before = std::mem::replace(&mut *self.lock(), ended);
        self.0.emptied.notify_all();
        self.0.filled.notify_one();
        before.phase != Phase::Over
    }

    /// Ends the queue. Waits until it is written, at most this time.
    pub fn close(&self, longest: Duration) {
        let mut state = self.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Closing;
        }
        self.0.filled.notify_one();
        let wait = self.0.emptied.wait_timeout_while(state, longest, |state| state.phase != Phase::Over);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes lines until the queue ends. An error of the disk ends it.
    fn write_to(&self, file: impl Write) -> io::Result<()> {
        let written = self.write_lines(&mut BufWriter::new(file));
        self.end();
        written
    }

    fn write_lines(&self, file: &mut impl Write) -> io::Result<()> {
        loop {
            while let Some(line) = self.next() {
                file.write_all(line.text().as_bytes())?;
                file.write_all(b"\n")?;
                let mut state = self.lock();
                // The queue may have ended meanwhile.
                state.bytes = state.bytes.saturating_sub(line.bytes());
            }
            file.flush()?;
            let mut state = self.lock();
            while state.lines.is_empty() && state.phase == Phase::Open {
                state = self.0.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.lines.is_empty() {
                return Ok(());
            }
        }
    }

    fn next(&self) -> Option<T> {
        self.lock().lines.pop_front()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::{
        sync::mpsc::{Receiver, Sender, channel},
        thread::JoinHandle,
    };

    /// A disk that gives each write away and waits for a permission.
    pub(in crate::wire) struct SlowDisk {
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

    impl<T: Line> LineQueue<T> {
        /// Writes to a slow disk: its thread, its writes, and their permissions.
        pub(in crate::wire) fn start_slowly(&self) -> (JoinHandle<io::Result<()>>, Receiver<Vec<u8>>, Sender<()>) {
            let ((written, writes), (permit, go_on)) = (channel(), channel());
            let queue = self.clone();
            (std::thread::spawn(move || queue.write_to(SlowDisk { written, go_on })), writes, permit)
        }

        /// Waits until nothing waits.
        pub(in crate::wire) fn drained(&self) {
            while self.lock().bytes > 0 {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn a_line_counts_until_it_is_written() {
        const MOST: usize = 1 << 20;
        let queue = LineQueue::new(MOST);
        let (thread, writes, permit) = queue.start_slowly();
        let half = || "x".repeat(MOST / 2);
        queue.push(half());
        assert_eq!(writes.recv().map(|bytes| bytes.len()), Ok(MOST / 2));
        assert!(queue.has_room(&half()));
        queue.push(half());
        assert!(!queue.has_room(&"x".to_owned()), "a line is being written, and one waits");
        assert!(queue.end() && !queue.end(), "it ends once");
        queue.push(half());
        assert!(!queue.is_open(), "an ended queue takes no line");
        drop(permit);
        thread.join().expect("the thread ends").expect("the disk takes it");
        assert_eq!(queue.lock().bytes, 0);
    }

    #[test]
    fn a_close_writes_the_lines_that_wait() {
        let queue = LineQueue::new(100);
        queue.push("one".to_owned());
        queue.push("two".to_owned());
        let (thread, writes, permit) = queue.start_slowly();
        drop(permit);
        queue.close(Duration::from_secs(60));
        thread.join().expect("the thread ends").expect("the disk takes it");
        assert_eq!(writes.iter().flatten().collect::<Vec<u8>>(), b"one\ntwo\n");
    }

    #[test]
    fn a_disk_that_fails_ends_the_queue() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::other("no room"))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let queue = LineQueue::new(100);
        queue.push("one".to_owned());
        assert!(queue.write_to(Broken).is_err());
        assert!(!queue.is_open());
    }
}
