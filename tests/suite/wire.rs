//! A client for tests that kill: it reads frames as they come, and takes the end of the stream as an answer too.

use crate::support::{Home, without_keys};
use abridged::wire::transport::Framing;
use serde_json::{Value, json};
use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::Duration,
};

/// Longer than anything takes, even on a busy machine: it only bounds how long a failure hangs.
const LONG: Duration = Duration::from_secs(60);

/// The binary under test; the long versions may be run with an optimized one.
pub fn binary() -> Command {
    Command::new(env::var("ABRIDGED_PROOF_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_abridged").to_owned()))
}

/// A daemon that keeps its things in `home`, which outlives it.
pub fn command(home: &Home) -> Command {
    let mut command = binary();
    command
        .env("ABRIDGED_DATA_DIR", home.path("data"))
        .env("ABRIDGED_CONFIG_DIR", home.path("config"))
        .env_remove("ABRIDGED_DISABLE_AUTOCOMPACT");
    without_keys(&mut command);
    command
}

/// A number from the environment: how long a long version is.
pub fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// Whether long properties run with all of their cases, as in `.ci/run`.
pub fn is_whole() -> bool {
    env::var_os("ABRIDGED_WHOLE").is_some()
}

/// The number of cases of a long property: the one that the environment names, or all of them where it has `ABRIDGED_WHOLE`, as
/// in `.ci/run`, or else a part.
pub fn cases(name: &str, part: u32, all: u32) -> u32 {
    let usual = if is_whole() { all } else { part };
    u32::try_from(number(name, usual.into())).unwrap_or_else(|_| panic!("{name} is too large"))
}

/// Numbers that look random and are the same for the same seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // Zero would stay zero.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    /// Below `end`, which is not zero.
    pub fn below(&mut self, end: usize) -> usize {
        (self.roll() % end as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A daemon and everything it said.
pub struct Peer {
    child: Child,
    to: Option<ChildStdin>,
    frames: Receiver<String>,
    /// Every frame so far, in order.
    pub said: Vec<Value>,
    /// The same as they stood on the wire.
    pub wire: Vec<String>,
    next_id: u64,
}

impl Peer {
    /// A daemon that was greeted.
    pub fn start(home: &Home) -> Self {
        let mut peer = Self::of(command(home));
        peer.ok("initialize", json!({"protocolVersion": 1}));
        peer
    }

    pub fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary starts");
        let to = child.stdin.take();
        let mut from = BufReader::new(child.stdout.take().expect("a pipe"));
        let (frames, received) = channel();
        std::thread::spawn(move || {
            let mut line = Vec::new();
            // Half a line at the end is what a kill leaves.
            while from.read_until(b'\n', &mut line).is_ok() && line.ends_with(b"\n") {
                if frames.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
                line.clear();
            }
        });
        Self { child, to, frames: received, said: Vec::new(), wire: Vec::new(), next_id: 1 }
    }

    /// Sends a request without waiting; its id. A daemon that is dead already does not read it.
    pub fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.begin_with(method, &params.to_string())
    }

    /// The same with params as they are to stand on the wire.
    pub fn begin_with(&mut self, method: &str, params: &str) -> u64 {
        let (id, frame) = self.request(method, params);
        self.write(frame.as_bytes());
        id
    }

    /// A request that is still to be written.
    pub fn request(&mut self, method: &str, params: &str) -> (u64, String) {
        let id = self.next_id;
        self.next_id += 1;
        (id, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"))
    }

    pub fn write(&mut self, bytes: &[u8]) {
        let to = self.to.as_mut().expect("stdin is open");
        let _ = to.write_all(bytes).and_then(|()| to.flush());
    }

    /// The stream requests are written to.
    pub fn stdin(&mut self) -> &mut ChildStdin {
        self.to.as_mut().expect("stdin is open")
    }

    /// Takes in the next frame; false at the end of the stream.
    pub fn hear(&mut self) -> bool {
        match self.frames.recv_timeout(LONG) {
            Ok(frame) => {
                self.take_in(frame);
                true
            }
            Err(RecvTimeoutError::Disconnected) => false,
            Err(RecvTimeoutError::Timeout) => panic!("the daemon says nothing; so far: {:#?}", self.said),
        }
    }

    /// Takes in what may come without anything being asked.
    pub fn hear_within(&mut self, longest: Duration) -> bool {
        let frame = self.frames.recv_timeout(longest);
        frame.map(|frame| self.take_in(frame)).is_ok()
    }

    fn take_in(&mut self, frame: String) {
        self.said.push(serde_json::from_str(&frame).unwrap_or_else(|error| panic!("{error} in stdout: {frame}")));
        self.wire.push(frame);
    }

    /// The answer to a request if it came already.
    pub fn answered(&self, id: u64) -> Option<Result<Value, Value>> {
        let frame = self.said.iter().find(|frame| frame["id"] == id && frame.get("method").is_none())?;
        Some(match frame.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(frame["result"].clone()),
        })
    }

    pub fn answer(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            if let Some(answer) = self.answered(id) {
                return answer;
            }
            assert!(self.hear(), "the daemon ended; it said: {:#?}", self.said);
        }
    }

    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.begin(method, &params);
        self.answer(id)
    }

    pub fn ok(&mut self, method: &str, params: Value) -> Value {
        self.call(method, params).unwrap_or_else(|error| panic!("{method} failed: {error:#}"))
    }

    /// The events of a type so far, each with its operation.
    pub fn events(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.said.iter().map(|frame| &frame["params"]).filter(move |params| params["event"]["type"] == kind)
    }

    /// Kills it as the power would, and takes in what it had said before.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
        while self.hear() {}
    }

    /// Ends it in order, and takes in what it still says.
    pub fn end(&mut self) {
        self.to = None;
        while self.hear() {}
        assert!(self.child.wait().expect("a child can be waited for").success());
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first whole frame of what the daemon wrote, and the bytes behind it. Every byte belongs to a frame.
pub fn first_frame(framing: Framing, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    match framing {
        Framing::Ndjson => {
            let end = bytes.iter().position(|byte| *byte == b'\n')?;
            Some((&bytes[..end], &bytes[end + 1..]))
        }
        Framing::ContentLength => {
            const HEADER: &[u8] = b"Content-Length: ";
            let text = bytes.strip_prefix(HEADER).or_else(|| {
                assert!(HEADER.starts_with(bytes), "a frame begins with its header");
                None
            })?;
            let end = text.windows(4).position(|it| it == b"\r\n\r\n")?;
            let length: usize =
                std::str::from_utf8(&text[..end]).ok().and_then(|it| it.parse().ok()).expect("a number");
            text[end + 4..].split_at_checked(length)
        }
    }
}
