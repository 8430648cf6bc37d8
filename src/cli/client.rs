//! The other end of the protocol: a child that serves, and a dialogue with it.

#![expect(clippy::disallowed_methods, reason = "a command of a person")]

use serde_json::{Value, json};
use std::{
    collections::{HashSet, VecDeque},
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};
use tracing::level_filters::LevelFilter;

/// The way in which a daemon is started.
pub struct Start<'a> {
    /// Its settings and sessions are in here and nowhere else.
    pub home: Option<&'a Path>,
    /// Settings over those of its files. They go by the environment: nobody else sees them, and they are nowhere when it has
    /// ended.
    pub over: Option<&'a Value>,
    /// Its data folder, in the place of the one of the environment.
    pub data: Option<&'a Path>,
    /// The capabilities of the client.
    pub capabilities: Value,
    /// Whether Ctrl-C in the terminal does not reach it.
    pub is_apart: bool,
    /// The new file with a trace of the dialogue. Without one the environment of this process says.
    pub trace: Option<&'a Path>,
}

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
    /// Starts a daemon and greets it.
    ///
    /// # Errors
    /// When it cannot be started or does not greet back.
    pub fn start_as(start: Start<'_>, watch: impl FnMut(char, &str) + 'static) -> Result<Self, String> {
        let Start { home, over, data, capabilities, is_apart, trace } = start;
        let program = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
        let mut command = Command::new(program);
        command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(home) = home {
            command.env("ABRIDGED_DATA_DIR", home.join("data")).env("ABRIDGED_CONFIG_DIR", home.join("config"));
            command.env_remove("ABRIDGED_STORE");
        }
        if let Some(data) = data {
            command.env("ABRIDGED_DATA_DIR", data);
        }
        if let Some(over) = over {
            command.env("ABRIDGED_SETTINGS", over.to_string());
        }
        if let Some(level) = LevelFilter::current().into_level() {
            command.arg("--log").arg(level.to_string());
        }
        if let Some(trace) = trace {
            command.arg("--trace").arg(trace);
        }
        if is_apart {
            command.process_group(0);
        }
        let mut child = command.spawn().map_err(|error| format!("the daemon cannot be started: {error}"))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the daemon has no pipes".to_owned());
        };
        let from = BufReader::new(from);
        let mut client =
            Self { child, to: Some(to), from, next_id: 1, events: VecDeque::new(), watch: Box::new(watch) };
        let info = json!({ "name": "abridged-cli", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": 1, "clientInfo": info, "capabilities": capabilities });
        client.call("initialize", params)?;
        Ok(client)
    }

    /// The id of the daemon's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
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
            // A request that is refused before its id is read has an answer without one.
            if frame["id"].is_null() && frame["error"].is_object() {
                return Err(frame["error"]["message"].as_str().unwrap_or("an error without a text").to_owned());
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

    /// Gives all frames from here on to `take`, on a thread of its own; none when the daemon is gone.
    pub fn follow(mut self, take: impl Fn(Option<Value>) + Send + 'static) -> Speaker {
        let (to, next_id) = (self.to.take(), self.next_id);
        std::mem::take(&mut self.events).into_iter().for_each(|frame| take(Some(frame)));
        let Self { child, from, .. } = self;
        std::thread::spawn(move || {
            for line in from.lines() {
                let Ok(line) = line else { break };
                take(serde_json::from_str(&line).ok());
            }
            take(None);
        });
        Speaker { child, to, next_id, open: HashSet::new() }
    }

    /// Ends the dialogue: the daemon ends with its stdin.
    ///
    /// # Errors
    /// When it did not end well.
    pub fn end(mut self) -> Result<(), String> {
        self.to = None;
        ended(&mut self.child)
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

/// Waits for the end of a daemon.
fn ended(child: &mut Child) -> Result<(), String> {
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("the daemon ended with {status}")) }
}

/// The end of a dialogue that sends.
pub struct Speaker {
    child: Child,
    to: Option<ChildStdin>,
    next_id: u64,
    /// Requests without an answer.
    open: HashSet<u64>,
}

impl Speaker {
    /// Sends a request. Returns its id.
    ///
    /// # Errors
    /// When the daemon does not listen.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<u64, String> {
        let id = self.next_id;
        self.next_id += 1;
        self.open.insert(id);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        Ok(id)
    }

    /// Answers a request of the daemon.
    ///
    /// # Errors
    /// When the daemon does not listen.
    pub fn answer(&mut self, id: &Value, result: &Value) -> Result<(), String> {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }))
    }

    /// Takes in an answer. Returns whether it is one of a request of ours.
    pub fn is_answered(&mut self, frame: &Value) -> bool {
        frame["id"].as_u64().is_some_and(|id| self.open.remove(&id))
    }

    /// The number of requests without an answer.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Ends the dialogue: the daemon ends with its stdin.
    ///
    /// # Errors
    /// When it did not end well.
    pub fn end(mut self) -> Result<(), String> {
        self.to = None;
        ended(&mut self.child)
    }

    fn send(&mut self, frame: &Value) -> Result<(), String> {
        let to = self.to.as_mut().ok_or("the dialogue is over")?;
        to.write_all(format!("{frame}\n").as_bytes()).map_err(|error| format!("the daemon does not listen: {error}"))
    }
}
