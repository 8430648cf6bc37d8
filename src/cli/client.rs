//! The other end of the protocol: a child that serves, and a dialogue with it.

#![expect(clippy::disallowed_methods, reason = "a command of a person")]

use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// Told of each line: `>` ours, `<` the daemon's.
type Watch = Box<dyn FnMut(char, &str)>;

/// A dialogue with a daemon of our own.
pub struct Client {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    next_id: u64,
    /// Events that came while an answer was waited for.
    events: VecDeque<Value>,
    watch: Watch,
}

impl Client {
    /// Starts a daemon and greets it. With `home`, its settings and sessions are in there and nowhere else; with `over`,
    /// these settings lie over those of its files. They go by the environment: nobody else sees them, and they are
    /// nowhere when it has ended.
    ///
    /// # Errors
    /// When it cannot be started or does not greet back.
    pub fn start(
        home: Option<&Path>,
        over: Option<&Value>,
        watch: impl FnMut(char, &str) + 'static,
    ) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
        let mut command = Command::new(program);
        command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(home) = home {
            command.env("ABRIDGED_DATA_DIR", home.join("data")).env("ABRIDGED_CONFIG_DIR", home.join("config"));
        }
        if let Some(over) = over {
            command.env("ABRIDGED_SETTINGS", over.to_string());
        }
        let mut child = command.spawn().map_err(|error| format!("the daemon cannot be started: {error}"))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the daemon has no pipes".to_owned());
        };
        let from = BufReader::new(from);
        let mut client =
            Self { child, to: Some(to), from, next_id: 1, events: VecDeque::new(), watch: Box::new(watch) };
        let info = json!({ "name": "abridged-cli", "version": env!("CARGO_PKG_VERSION") });
        client.call("initialize", json!({ "protocolVersion": 1, "clientInfo": info }))?;
        Ok(client)
    }

    /// Sends a request and waits for its answer. What comes before it is kept for `next_event`.
    ///
    /// # Errors
    /// When the answer is an error: its text.
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let frame = self.read()?;
            if frame["id"] == id && frame.get("method").is_none() {
                return match frame.get("error") {
                    Some(error) => Err(error["message"].as_str().unwrap_or("an error without a text").to_owned()),
                    None => Ok(frame["result"].clone()),
                };
            }
            self.events.push_back(frame);
        }
    }

    /// The next notification.
    ///
    /// # Errors
    /// When the daemon is gone.
    pub fn next_event(&mut self) -> Result<Value, String> {
        match self.events.pop_front() {
            Some(event) => Ok(event),
            None => self.read(),
        }
    }

    /// A notification that has arrived, if there is one.
    pub fn arrived(&mut self) -> Option<Value> {
        self.events.pop_front()
    }

    /// Ends the dialogue: the daemon ends with its stdin.
    ///
    /// # Errors
    /// When it did not end well.
    pub fn end(mut self) -> Result<(), String> {
        self.to = None;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("the daemon ended with {status}")) }
    }

    fn send(&mut self, frame: &Value) -> Result<(), String> {
        let mut line = frame.to_string();
        (self.watch)('>', &line);
        line.push('\n');
        let to = self.to.as_mut().ok_or("the dialogue is over")?;
        to.write_all(line.as_bytes()).map_err(|error| format!("the daemon does not listen: {error}"))
    }

    fn read(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        let read = self.from.read_line(&mut line).map_err(|error| format!("the daemon cannot be read: {error}"))?;
        if read == 0 {
            return Err("the daemon ended; what it said of it stands above".to_owned());
        }
        (self.watch)('<', line.trim_end());
        serde_json::from_str(&line).map_err(|error| format!("the daemon sent no JSON: {error}"))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.child.wait();
    }
}
