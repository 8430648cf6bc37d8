//! A host with its own loop. It reports the usage of each answer in the way of its row.

use super::{
    dialect::Dialect,
    material,
    measured::Measured,
    row::{Middle, Room, Row},
    truth::Provider,
};
use crate::support::Daemon;
use serde_json::{Value, json};

/// A host in the middle of its session. The daemon is absent while it is replaced.
struct Host<'a> {
    daemon: &'a mut Option<Daemon>,
    row: &'a Row,
    session: String,
    /// The name of the model.
    model: String,
    provider: Provider,
    measured: Measured,
    /// The system prompt that the session knows.
    announced: String,
    /// The beginnings of its answers.
    answers: Vec<String>,
}

/// Runs the session of a row.
pub fn run(daemon: &mut Option<Daemon>, row: &Row, model: &str, room: Room) -> Measured {
    let announced = if row.habits.announces { material::instructions() } else { String::new() };
    let (session, provider) = (String::new(), Provider::new(row.counts));
    let model = format!("{model} {room:?}");
    let mut host = Host {
        daemon,
        row,
        session,
        model,
        provider,
        measured: Measured::new(row, room),
        announced,
        answers: Vec::new(),
    };
    host.session = host.open("session/new", room);
    for turn in 0..material::TURNS {
        if turn == material::TURNS / 2 {
            host.middle(room);
        }
        host.turn(turn);
    }
    let context = host.ask("session/context", json!({"wait": true}));
    host.ask("session/close", json!({}));
    host.look();
    host.measured.ended(&host.answers, &context)
}

impl Host<'_> {
    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        params["sessionId"] = json!(self.session);
        self.daemon.as_mut().expect("a daemon").ok(method, params)
    }

    /// Makes or loads the session.
    fn open(&mut self, method: &str, room: Room) -> String {
        let provider = self.row.provider;
        let models = match self.row.is_local() {
            true => {
                json!([{"provider": provider, "id": self.model, "api": "openai_chat", "baseUrl": "http://127.0.0.1:9/v1"}])
            }
            false => json!([]),
        };
        let compaction = json!({"keepRecentTokens": 1_500, "reserveTokens": 2_500, "speculative": false});
        let params = json!({"cwd": "/project", "model": {"provider": provider, "id": self.model},
            "systemPrompt": self.announced, "contextWindow": self.row.window(room),
            "settings": {"models": models, "compaction": compaction, "retry": {"enabled": false}}});
        let mut params = params;
        if method == "session/new" {
            params["ephemeral"] = json!(self.row.habits.middle != Middle::NewProcess);
        }
        self.ask(method, params)["session"]["sessionId"].as_str().expect("an id").to_owned()
    }

    fn middle(&mut self, room: Room) {
        match self.row.habits.middle {
            Middle::Nothing => {}
            Middle::OtherModel { factor } => {
                self.provider.other_model(factor);
                self.measured.forget(0);
                let model = json!({"provider": self.row.provider, "id": format!("another {}", self.model)});
                self.ask("session/configure", json!({"model": model, "contextWindow": self.row.window(room)}));
            }
            Middle::NewProcess => {
                self.look();
                let daemon = self.daemon.take().expect("a daemon");
                *self.daemon = Some(daemon.restarted());
                self.open("session/load", room);
            }
            Middle::MoreTools => {
                self.provider.counts.unannounced += room.more_tools();
                self.measured.forget(self.row.patience());
            }
            Middle::Announces => {
                self.announced = material::instructions();
                self.provider.announced(&self.announced);
                self.ask("session/configure", json!({"systemPrompt": self.announced}));
            }
        }
    }

    fn append(&mut self, mut params: Value) -> Value {
        if self.row.habits.is_watched {
            self.ask("session/context", json!({}));
            self.ask("session/usage", json!({}));
        }
        params["format"] = json!(self.row.dialect.name());
        self.ask("session/append", params)
    }

    /// Reads the events so far.
    fn look(&mut self) {
        let events = std::mem::take(&mut self.daemon.as_mut().expect("a daemon").events);
        self.measured.saw(&events);
    }

    /// A request of the user, calls with their results, and the last answer.
    fn turn(&mut self, turn: usize) {
        let (dialect, habits) = (self.row.dialect, self.row.habits);
        let text = if habits.chinese { material::request_in_chinese(turn) } else { material::request(turn) };
        let request = if habits.images && turn % 5 == 2 { dialect.user_with_image(&text) } else { dialect.user(&text) };
        self.append(json!({"messages": [request]}));
        self.provider.history.turn = self.provider.history.exchanges.len();
        for step in 0..=material::calls(turn) {
            let id = format!("call{turn}x{step}");
            let call = (step < material::calls(turn)).then_some(id.as_str());
            let text = material::answer(turn, step);
            self.answers.push(text[..12].to_owned());
            let thinking = habits.thinks.then(|| material::thinking(turn, step));
            let context = self.ask("session/context", json!({"format": dialect.name(), "wait": true}));
            let body = context.get("body").unwrap_or(&context);
            let announced = if dialect == Dialect::Plain { self.announced.as_str() } else { "" };
            let prompt = self.provider.ask(body, announced, &text, habits.hidden);
            self.measured.sent(turn, prompt, &context);
            let usage = (self.row.report)(&self.provider.history.now(), &self.provider.history);
            let mut answer = dialect.answer(&text, call, thinking.as_deref(), &usage);
            if habits.names_contexts {
                answer["contextId"] = context["contextId"].clone();
            }
            let appended = self.append(answer);
            if !usage.is_null() {
                self.measured.reported(&self.provider.history.now(), dialect.prompt(&usage), &appended);
            }
            if call.is_some() {
                self.append(json!({"messages": [dialect.result(&id, &material::result(turn, step))]}));
            }
        }
    }
}
