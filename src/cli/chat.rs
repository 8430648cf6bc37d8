//! `abridged chat`: a conversation in the terminal. It is a client of the protocol like any other: the daemon runs the turns.

mod demo;
mod screen;

use super::{
    client::{Client, Speaker, Start},
    compact::refused,
    demo::Home,
    interrupt,
    model::Named,
};
use screen::Screen;
use serde_json::{Value, json};
use std::{
    io::{self, BufRead, IsTerminal},
    path::PathBuf,
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

/// Options of `abridged chat`.
pub struct Request {
    /// The model that answers. Default: the one of the settings.
    pub model: Option<Named>,
    /// A model of this program answers, without a key and without a network.
    pub demo: bool,
    /// The new file with a trace of the dialogue.
    pub trace: Option<PathBuf>,
}

/// The lines that are no messages.
const HELP: &str = "/compact [TOPICS]  summarize the older part now
/undo              undo the last compaction
/pin TEXT          keep a text through every compaction
/quit              leave; Ctrl-C stops the answer, or leaves where there is none";

/// Something that happens.
enum Happening {
    /// A frame of the daemon; none when it is gone.
    Frame(Option<Value>),
    /// A line of the person; none at the end.
    Line(Option<String>),
    /// Ctrl-C.
    Interrupt,
}

/// Talks to a model until the person leaves.
///
/// # Errors
/// When the daemon cannot be started or ends, or no session can be made.
#[expect(clippy::disallowed_methods, reason = "the folder of the person")]
pub fn run(request: &Request) -> Result<i32, String> {
    let folder = std::env::current_dir().map_err(|error| format!("the folder cannot be found: {error}"))?;
    let over = match (request.demo, request.model.as_ref().map(|model| model.choose(&folder))) {
        (true, _) => Some(demo::settings()),
        (false, None) => None,
        (false, Some(Ok(chosen))) => Some(json!({ "models": chosen.models })),
        (false, Some(Err(why))) => return Ok(refused(&why)),
    };
    let home = request.demo.then(Home::make).transpose()?;
    let start = Start {
        home: home.as_ref().map(|home| home.folder.as_path()),
        over: over.as_ref(),
        data: None,
        capabilities: if request.demo { json!({"llm": {}}) } else { json!({}) },
        is_apart: true,
        trace: request.trace.as_deref(),
    };
    let mut client = Client::start_as(start, |_, _| {})?;
    let mut params = json!({ "cwd": folder });
    if let Some(model) = &request.model {
        params["model"] = json!(model.model);
    }
    let session = client.call("session/new", params)?["session"].clone();
    let (sender, happenings) = mpsc::channel();
    let frames = sender.clone();
    let speaker = client.follow(move |frame| drop(frames.send(Happening::Frame(frame))));
    listen(&sender);
    let mut chat = Chat { speaker, session, screen: Screen::new(io::stdin().is_terminal()), is_busy: false };
    chat.begin();
    chat.talk(&happenings)?;
    chat.speaker.end()?;
    Ok(0)
}

/// Passes on the lines of stdin and Ctrl-C.
fn listen(sender: &Sender<Happening>) {
    let lines = sender.clone();
    thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if lines.send(Happening::Line(Some(line))).is_err() {
                return;
            }
        }
        drop(lines.send(Happening::Line(None)));
    });
    let interrupts = sender.clone();
    interrupt::on_ctrl_c(move || interrupts.send(Happening::Interrupt).is_ok());
}

/// A conversation.
struct Chat {
    speaker: Speaker,
    session: Value,
    screen: Screen,
    /// Whether something runs.
    is_busy: bool,
}

impl Chat {
    fn begin(&mut self) {
        let model = &self.session["model"];
        let name = match model.is_object() {
            true => format!("{}/{}", model["provider"].as_str().unwrap_or(""), model["id"].as_str().unwrap_or("")),
            false => "no model: name one with --model, or try --demo".to_owned(),
        };
        self.screen.note(&format!("{name}. /help says what else there is."));
        self.screen.ask();
    }

    /// Handles what happens until the person leaves.
    fn talk(&mut self, happenings: &Receiver<Happening>) -> Result<(), String> {
        // Without a terminal the answers to all lines are waited for.
        let waits = !io::stdin().is_terminal();
        let mut is_over = false;
        while let Ok(happening) = happenings.recv() {
            match happening {
                Happening::Frame(None) => return Err("the daemon ended; what it said of it stands above".to_owned()),
                Happening::Frame(Some(frame)) => self.frame(&frame)?,
                Happening::Line(None) => is_over = true,
                Happening::Line(Some(line)) => {
                    if self.line(line.trim())? == Goes::Away {
                        return Ok(());
                    }
                }
                Happening::Interrupt if self.is_busy => self.send("session/cancel", json!({}))?,
                Happening::Interrupt => return Ok(()),
            }
            if is_over && (!waits || self.speaker.open() == 0 && !self.is_busy) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Handles a line of the person.
    fn line(&mut self, line: &str) -> Result<Goes, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "" => self.screen.ask(),
            "/quit" | "/exit" => return Ok(Goes::Away),
            "/help" => {
                self.screen.note(HELP);
                self.screen.ask();
            }
            "/compact" if rest.is_empty() => self.send("session/compact", json!({}))?,
            "/compact" => self.send("session/compact", json!({ "instructions": rest }))?,
            "/undo" => self.send("session/undo_compaction", json!({}))?,
            "/pin" => self.send("session/pin", json!({ "text": rest }))?,
            word if word.starts_with('/') => {
                self.screen.note(&format!("there is no {word}; /help lists what there is"));
                self.screen.ask();
            }
            _ => self.send("session/prompt", json!({ "message": line }))?,
        }
        Ok(Goes::On)
    }

    fn send(&mut self, method: &str, mut params: Value) -> Result<(), String> {
        params["sessionId"] = self.session["sessionId"].clone();
        self.speaker.request(method, &params).map(drop)
    }

    /// Shows a frame of the daemon, or answers its request.
    fn frame(&mut self, frame: &Value) -> Result<(), String> {
        if frame["method"] == "llm/complete" {
            return self.speaker.answer(&frame["id"], &json!({ "message": demo::answer(&frame["params"]) }));
        }
        if frame["method"] == "tool/call" {
            let text = "this client executes no tools";
            return self.speaker.answer(&frame["id"], &json!({ "content": text, "isError": true }));
        }
        if frame.get("method").is_none() {
            if self.speaker.is_answered(frame) {
                self.answered(frame);
            }
            return Ok(());
        }
        let event = &frame["params"]["event"];
        match event["type"].as_str() {
            Some("status_changed") if event["status"]["type"] == "idle" => {}
            Some("status_changed") => self.is_busy = true,
            Some("settled") => {
                self.is_busy = false;
                self.screen.settle(event["aborted"] == true);
            }
            _ => self.screen.show(event),
        }
        Ok(())
    }

    /// Shows the answer of a request, unless events show it.
    fn answered(&mut self, frame: &Value) {
        let error = frame["error"]["message"].as_str();
        let result = &frame["result"];
        // The turn or the compaction that it starts has no event yet. It settles at its end.
        self.is_busy |= result["disposition"].is_string() || result["operationId"].is_string();
        match error {
            Some(error) => self.screen.note(error),
            None if result["disposition"] == "queued" => self.screen.note("it waits for the end of the answer"),
            None if result.get("entryId").is_some() => self.screen.note("pinned"),
            None if result.get("leafEntryId").is_some() => self.screen.note("the compaction is undone"),
            None => return,
        }
        if !self.is_busy {
            self.screen.ask();
        }
    }
}

/// Whether the conversation goes on after a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    Away,
}
