//! A daemon over pipes, and its client.

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, BufWriter, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Instant,
};

/// The binary that this bench was built with.
pub const THIS: &str = env!("CARGO_BIN_EXE_abridged");

/// A running daemon with a data folder of its own. It is killed on drop.
pub struct Daemon {
    child: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
    line: String,
    home: tempfile::TempDir,
}

impl Daemon {
    /// Starts this build's binary and waits for the answer to `initialize`.
    pub fn start() -> Self {
        Self::of(Path::new(THIS))
    }

    /// Starts any binary, in an empty folder.
    pub fn of(binary: &Path) -> Self {
        Self::at(binary, tempfile::tempdir().expect("a folder"))
    }

    /// Kills this daemon and starts another one in the same folder.
    pub fn again(mut self) -> Self {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let empty = tempfile::tempdir().expect("a folder");
        Self::at(Path::new(THIS), std::mem::replace(&mut self.home, empty))
    }

    fn at(binary: &Path, home: tempfile::TempDir) -> Self {
        let mut child = Command::new(binary)
            .env("ABRIDGED_DATA_DIR", home.path().join("data"))
            .env("ABRIDGED_CONFIG_DIR", home.path().join("config"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let to = BufWriter::new(child.stdin.take().expect("a pipe"));
        // A read takes all that the pipe has, which is 64 KiB.
        let from = BufReader::with_capacity(1 << 20, child.stdout.take().expect("a pipe"));
        let mut daemon = Self { child, to, from, line: String::new(), home };
        daemon.call("initialize", json!({"protocolVersion": 1}));
        daemon
    }

    /// The folder that holds its data and its settings.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes into the buffer before the pipe.
    pub fn write(&mut self, bytes: &[u8]) {
        self.to.write_all(bytes).expect("it reads");
    }

    /// Writes a request into the buffer before the pipe.
    pub fn send(&mut self, id: u64, method: &str, params: &Value) {
        writeln!(self.to, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .expect("it reads");
    }

    /// Sends the buffer.
    pub fn flush(&mut self) {
        self.to.flush().expect("it reads");
    }

    /// The next frame.
    pub fn read(&mut self) -> &str {
        self.line.clear();
        self.from.read_line(&mut self.line).expect("it writes");
        &self.line
    }

    /// The frame that was read last.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// The next answer; events are skipped.
    pub fn answer(&mut self) -> Value {
        self.answer_with_arrival().0
    }

    /// The next answer, and the time when its line was there: reading a long one as JSON takes a client a while.
    pub fn answer_with_arrival(&mut self) -> (Value, Instant) {
        loop {
            self.read();
            let arrival = Instant::now();
            let frame: Value = serde_json::from_str(&self.line).expect("JSON");
            if frame.get("method").is_none() {
                assert!(frame.get("error").is_none(), "{frame}");
                return (frame["result"].clone(), arrival);
            }
        }
    }

    /// Sends a request and reads its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.send(1, method, &params);
        self.flush();
        self.answer()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
