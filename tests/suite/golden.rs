//! Sessions that pi and oh-my-pi wrote, and what they sent to their models next. `tests/interop/pi/record.js` makes both.

use crate::{
    pi_reader::{Session, plain, plain_chat},
    provider::{Format, Provider},
    summarizing::{compact, good_model, settings},
    support::{Daemon, Home},
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
    /// The messages that were sent.
    sent: Vec<Value>,
    /// The same in the form in which programs are compared.
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
            sent: messages.clone(),
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

    /// Whether the conversation before its compaction is in an archive.
    fn is_archived(&self) -> bool {
        self.name.starts_with("archived")
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
    recordings("oh-my-pi").iter().filter(|it| !it.is_archived()).for_each(|recording| recording.holds(&mut daemon));
}

/// The texts of a message's blocks.
fn texts(message: &Value) -> Vec<&str> {
    message["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str()).collect()
}

/// The text of an archive stands for its pictures, which are made of it.
#[test]
fn a_context_has_the_archive_that_oh_my_pi_sent() {
    let mut daemon = Daemon::start();
    let archived: Vec<_> = recordings("oh-my-pi").into_iter().filter(Recording::is_archived).collect();
    let pictures = |recording: &Recording| recording.sent[0].to_string().contains("image_url");
    assert_eq!(archived.iter().map(pictures).collect::<Vec<_>>(), [true, false]);
    for recording in archived {
        let session = recording.load(&mut daemon);
        let context = daemon.context(&session);
        let messages = context["messages"].as_array().expect("messages");
        let [ours] = texts(&messages[0])[..] else { panic!("{:#}", messages[0]) };
        let theirs = texts(&recording.sent[0]);
        let is_own = |line: &&str| !line.starts_with("----");
        let lines: Vec<&str> = theirs.iter().flat_map(|text| text.lines()).filter(is_own).collect();
        assert!(lines.len() > 20, "{lines:#?}");
        for line in lines {
            assert!(ours.contains(line), "{}: {line}", recording.name);
        }
        assert!((0..10).all(|at| ours.contains(&format!("Item 1-{at}: part {at} belongs to shelf {}.\n", at * 7))));
        let rest: Vec<Value> = messages[1..].iter().flat_map(plain).collect();
        let theirs: Vec<Value> = recording.sent[1..].iter().flat_map(plain_chat).collect();
        same(&recording.name, &rest, &theirs);
        if recording.name.ends_with("pictures") {
            // These stand in the picture alone.
            for at in (0..650).step_by(10) {
                assert!(ours.contains(&format!("Item 1-{at}: part {at} belongs to shelf {}.", at * 7)), "{at}");
            }
        }
    }
}

/// Archives of older versions have no text beside their pictures.
#[test]
fn the_pictures_of_an_archive_without_a_text_are_sent() {
    let mut daemon = Daemon::start();
    let recordings = recordings("oh-my-pi");
    let recording = recordings.iter().find(|it| it.name == "archived-with-pictures").expect("a recording");
    let session = recording.load(&mut daemon);
    let path = daemon.ok("session/status", json!({"sessionId": session}))["session"]["path"].clone();
    daemon.ok("session/close", json!({"sessionId": session}));
    let path = PathBuf::from(path.as_str().expect("a path"));
    let mut lines = Vec::new();
    for line in fs::read_to_string(&path).expect("a file").lines() {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        if let Some(Value::Object(archive)) = line.pointer_mut("/preserveData/snapcompact") {
            archive.remove("text").expect("a text");
        }
        lines.push(format!("{line}\n"));
    }
    fs::write(&path, lines.concat()).expect("a file");
    let session = daemon.load(&path);
    let image = |of: &Value| plain_chat(of).into_iter().find(|part| part.get("image").is_some());
    let theirs = image(&recording.sent[0]).expect("a picture");
    let params = json!({"sessionId": session, "format": "openai_chat", "model": "openai/gpt-5"});
    daemon.ok("session/configure", json!({"sessionId": session, "model": "openai/gpt-5"}));
    let body = daemon.ok("session/context", params)["body"].clone();
    let messages = body["messages"].as_array().expect("messages");
    assert_eq!(messages.iter().find_map(image), Some(theirs));
    let context = daemon.context(&session)["messages"][0].to_string();
    assert!(context.contains("Item 1-3:") && context.contains("Item 1-640:"), "the ends are texts");
    assert!(context.contains("1 images have the next part"), "{context}");
}

#[test]
fn an_archive_goes_into_the_next_summary_and_not_into_its_data() {
    for method in ["llm", "extractive"] {
        let provider = Provider::start(Format::OpenAiChat);
        provider.otherwise(good_model);
        let home = Home::new();
        home.settings(&settings(&provider, Format::OpenAiChat, json!({})));
        let mut daemon = Daemon::at(home);
        let recordings = recordings("oh-my-pi");
        let recording = recordings.iter().find(|it| it.name == "archived").expect("a recording");
        let session = recording.load(&mut daemon);
        let answer = compact(&mut daemon, &session, json!({"method": method, "keepRecentTokens": 10}));
        assert_eq!(answer["result"]["method"], method, "{answer:#}");
        let summary = answer["result"]["summary"].as_str().expect("a summary");
        let told = match method {
            "llm" => provider.asked().iter().map(|asked| asked.text()).collect(),
            _ => summary.to_owned(),
        };
        assert!(told.contains("part 3 belongs to shelf 21"), "{method}: {told}");
        let id = answer["result"]["entryId"].clone();
        let line = daemon.ok("session/entry", json!({"sessionId": session, "entryId": id}))["entry"].clone();
        assert_eq!(line["preserveData"].get("snapcompact"), None, "{line:#}");
        let context = daemon.context(&session)["messages"].to_string();
        assert!(!context.contains("Read HISTORY fully") || method == "extractive", "{context}");
    }
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
