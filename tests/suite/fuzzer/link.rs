//! A running daemon and the bytes between: both framings, its stderr, and kills.

use crate::{
    support::Home,
    wire::{command, first_frame},
};
use abridged::wire::transport::Framing;
use serde_json::{Value, json};
use std::{
    io::{Read, Write},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread::JoinHandle,
    time::Duration,
};

pub struct Link {
    child: Child,
    to: Option<ChildStdin>,
    frames: Receiver<Value>,
    framing: Framing,
    log: Option<JoinHandle<String>>,
}

/// An item that a client hears within a time.
pub enum Heard {
    Frame(Value),
    Nothing,
    /// The daemon closed its stdout.
    End,
}

impl Link {
    pub fn start(home: &Home, framing: Framing) -> Self {
        let mut command = command(home);
        // A relative path of a random request leads into the folder of the test.
        command.current_dir(home.0.path()).env("HOME", home.0.path()).env("ABRIDGED_LOG", "error");
        // A request may remove the limits of the global file, and a client that is silent would be waited for longer than the test.
        command.env("ABRIDGED_SETTINGS", r#"{"compaction":{"stallSeconds":1,"deadlineSeconds":4}}"#);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("the binary starts");
        let to = child.stdin.take();
        let mut from = child.stdout.take().expect("a pipe");
        let mut errors = child.stderr.take().expect("a pipe");
        let log = std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let (frames, received) = channel();
        std::thread::spawn(move || {
            let (mut unread, mut piece) = (Vec::new(), vec![0; 1 << 16]);
            while let Ok(count @ 1..) = from.read(&mut piece) {
                unread.extend_from_slice(&piece[..count]);
                while let Some((frame, rest)) = first_frame(framing, &unread) {
                    let frame = serde_json::from_slice(frame)
                        .unwrap_or_else(|error| json!(format!("{error}: {}", String::from_utf8_lossy(frame))));
                    if frames.send(frame).is_err() {
                        return;
                    }
                    unread = rest.to_vec();
                }
            }
        });
        Self { child, to, frames: received, framing, log: Some(log) }
    }

    /// Sends a frame. A daemon that is dead does not read it.
    pub fn send(&mut self, frame: &Value) {
        let text = frame.to_string();
        let bytes = match self.framing {
            Framing::Ndjson => format!("{text}\n"),
            Framing::ContentLength => format!("Content-Length: {}\r\n\r\n{text}", text.len()),
        };
        let to = self.to.as_mut().expect("stdin is open");
        let _ = to.write_all(bytes.as_bytes()).and_then(|()| to.flush());
    }

    pub fn hear(&self, longest: Duration) -> Heard {
        match self.frames.recv_timeout(longest) {
            Ok(frame) => Heard::Frame(frame),
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::End,
        }
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Ends stdin.
    pub fn end(&mut self) {
        self.to = None;
    }

    /// Waits for the process; what it wrote to stderr.
    pub fn log(&mut self) -> String {
        let _ = self.child.wait();
        self.log.take().and_then(|log| log.join().ok()).unwrap_or_default()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
