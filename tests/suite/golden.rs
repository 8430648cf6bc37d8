//! Sessions that pi and oh-my-pi wrote, and what they sent to their models next. `tests/interop/pi/record.js` makes both.

use crate::{
    pi_reader::{Session, plain, plain_chat},
    support::Daemon,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A recorded session.
struct Recording {
    name: String,
    path: PathBuf,
    /// The messages that were sent, each in the form in which programs are compared.
    messages: Vec<Value>,
    /// The system prompt and the tools that were sent, where the file has them.
    system: Option<String>,
    tools: Vec<Value>,
}

fn recordings(program: &str) -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(program);
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|it| it.expect("a file").path()).collect();
    found.retain(|path| path.extension().is_some_and(|it| it == "jsonl"));
    found.sort();
    assert!(found.len() >= 8, "recordings are missing: {found:?}");
    found.into_iter().map(Recording::of).collect()
}

impl Recording {
    fn of(path: PathBuf) -> Self {
        let sent = fs::read(path.with_extension("sent.json")).expect("what was sent");
        let sent: Value = serde_json::from_slice(&sent).expect("JSON");
        let messages = sent["messages"].as_array().expect("messages");
        let system = messages.iter().find(|message| message["role"] == "system");
        Self {
            name: path.file_stem().expect("a name").to_string_lossy().into_owned(),
            messages: messages.iter().flat_map(plain_chat).collect(),
            system: system.and_then(|message| Some(message["content"].as_str()?.to_owned())),
            tools: sent["tools"].as_array().cloned().unwrap_or_default(),
            path,
        }
    }

    /// Loads a copy of the session, which lies where its program would put it; its id.
    fn load(&self, daemon: &mut Daemon) -> String {
        let agent = daemon.home.path("agent");
        let folder = agent.join("sessions/-project");
        fs::create_dir_all(&folder).expect("a folder");
        let blobs = self.path.with_file_name("blobs");
        if blobs.is_dir() {
            fs::create_dir_all(agent.join("blobs")).expect("a folder");
            for blob in fs::read_dir(blobs).expect("a folder") {
                let blob = blob.expect("a file");
                fs::copy(blob.path(), agent.join("blobs").join(blob.file_name())).expect("a copy");
            }
        }
        let path = folder.join(format!("{}.jsonl", self.name));
        fs::copy(&self.path, &path).expect("a copy");
        daemon.load(&path)
    }

    /// The messages of the daemon's context have what the program sent, in the same order.
    fn holds(&self, daemon: &mut Daemon) {
        let session = self.load(daemon);
        let context = daemon.ok("session/context", json!({"sessionId": session}));
        let messages = context["messages"].as_array().expect("messages");
        same(&self.name, &messages.iter().flat_map(plain).collect::<Vec<_>>(), &self.messages);
    }

    /// The request that the daemon would make.
    fn request(&self, daemon: &mut Daemon) -> Value {
        let session = self.load(daemon);
        daemon.ok("session/context", json!({"sessionId": session, "format": "openai_chat"}))["body"].clone()
    }
}

/// Fails with the first part that differs.
fn same(name: &str, ours: &[Value], theirs: &[Value]) {
    // Images are long.
    let shown = |part: Option<&Value>| part.map(|part| part.to_string().chars().take(300).collect::<String>());
    if let Some(at) = (0..ours.len().max(theirs.len())).find(|&at| ours.get(at) != theirs.get(at)) {
        panic!("{name} differs at {at}:\n  ours   {:?}\n  theirs {:?}", shown(ours.get(at)), shown(theirs.get(at)));
    }
}

#[test]
fn a_context_has_the_messages_that_pi_sent() {
    let mut daemon = Daemon::start();
    recordings("pi").iter().for_each(|recording| recording.holds(&mut daemon));
}

#[test]
fn a_context_has_the_messages_that_oh_my_pi_sent() {
    let mut daemon = Daemon::start();
    recordings("oh-my-pi").iter().for_each(|recording| recording.holds(&mut daemon));
}

#[test]
fn a_request_has_the_images_that_were_sent() {
    for program in ["pi", "oh-my-pi"] {
        let mut daemon = Daemon::start();
        let recording = recordings(program).into_iter().find(|it| it.name == "tools-and-images").expect("a recording");
        let images = |parts: &mut dyn Iterator<Item = Value>| -> Vec<Value> {
            parts.filter(|part| part.get("image").is_some()).collect()
        };
        let theirs = images(&mut recording.messages.iter().cloned());
        assert_eq!(theirs.len(), 2);
        let request = recording.request(&mut daemon);
        let messages = request["messages"].as_array().expect("messages");
        same(program, &images(&mut messages.iter().flat_map(plain_chat)), &theirs);
    }
}

#[test]
fn a_request_has_the_system_prompt_and_the_tools_that_pi_sent() {
    let mut daemon = Daemon::start();
    for recording in recordings("pi") {
        let request = recording.request(&mut daemon);
        let system = request["messages"][0]["content"].as_str().map(str::to_owned);
        assert_eq!(system, recording.system, "{}: the system prompt", recording.name);
        let plain = |tool: &Value| {
            let function = &tool["function"];
            (function["name"].clone(), function["description"].clone(), function["parameters"].clone())
        };
        let tools = request["tools"].as_array().into_iter().flatten().map(plain);
        let theirs = recording.tools.iter().map(plain);
        assert!(tools.eq(theirs), "{}: the tools are {:#}", recording.name, request["tools"]);
    }
}

/// The second reader knows pi's rules: its contexts are those that pi sent.
#[test]
fn the_second_reader_reads_what_pi_sent() {
    for recording in recordings("pi") {
        let text = fs::read_to_string(&recording.path).expect("a file");
        let read: Vec<Value> = Session::parse(&text).context().iter().flat_map(|it| plain(&it.message)).collect();
        same(&recording.name, &read, &recording.messages);
    }
}
