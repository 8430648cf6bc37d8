//! The client's knowledge: sessions, entries and operations that it was told of.

use super::record::Asked;
use crate::wire::Dice;
use serde_json::Value;
use std::path::PathBuf;

/// A session that was opened once.
#[derive(Debug, Clone)]
pub struct Session {
    pub id: String,
    pub path: Option<PathBuf>,
    pub open: bool,
    pub entries: Vec<String>,
    pub context: Option<String>,
    pub tokens: u64,
    pub epoch: String,
    pub seq: u64,
}

#[derive(Debug, Default)]
pub struct Known {
    pub sessions: Vec<Session>,
    pub operations: Vec<String>,
    /// Number of compactions that were completed.
    pub compactions: usize,
}

impl Known {
    pub fn session(&mut self, id: &str) -> Option<&mut Session> {
        self.sessions.iter_mut().find(|session| session.id == id)
    }

    /// Any entry of any session, perhaps one of this session.
    pub fn entry(&self, dice: &mut Dice, session: &str) -> Option<String> {
        let own = self.sessions.iter().find(|it| it.id == session).filter(|_| dice.below(20) > 0);
        let of = own.or_else(|| (!self.sessions.is_empty()).then(|| dice.pick(&self.sessions)))?;
        if of.entries.is_empty() {
            return None;
        }
        // Mostly one of the newer ones.
        let from = if dice.below(3) > 0 { of.entries.len().saturating_sub(12) } else { 0 };
        Some(dice.pick(&of.entries[from..]).clone())
    }

    /// Takes in a frame of the daemon.
    pub fn learn(&mut self, frame: &Value, of: Option<&Asked>) {
        if frame["method"] == "session/event" {
            return self.event(&frame["params"]);
        }
        let (Some(of), Some(result)) = (of, frame.get("result")) else { return };
        if result["session"]["sessionId"].is_string() && of.method != "session/status" {
            self.opened(&result["session"]);
        }
        let Some(session) = self.session(of.session()) else { return };
        match of.method.as_str() {
            "session/close" => session.open = false,
            "session/delete" => {
                let id = session.id.clone();
                self.sessions.retain(|session| session.id != id);
            }
            "session/context" => {
                session.context = result["contextId"].as_str().map(str::to_owned);
                session.tokens = result["usage"]["contextTokens"].as_u64().unwrap_or_default();
            }
            _ => {}
        }
    }

    fn opened(&mut self, info: &Value) {
        let id = info["sessionId"].as_str().unwrap_or_default().to_owned();
        let path = info["path"].as_str().map(PathBuf::from);
        match self.session(&id) {
            Some(session) => (session.open, session.path) = (true, path),
            None => self.sessions.push(Session {
                id,
                path,
                open: true,
                entries: Vec::new(),
                context: None,
                tokens: 0,
                epoch: String::new(),
                seq: 0,
            }),
        }
    }

    fn event(&mut self, params: &Value) {
        let event = &params["event"];
        if event["type"] == "compaction_end" && event["outcome"] == "completed" {
            self.compactions += 1;
        }
        if let Some(operation) = params["operationId"].as_str()
            && self.operations.last().is_none_or(|last| last != operation)
        {
            self.operations.push(operation.to_owned());
        }
        let Some(session) = self.session(params["sessionId"].as_str().unwrap_or_default()) else { return };
        session.epoch = params["epoch"].as_str().unwrap_or_default().to_owned();
        session.seq = params["seq"].as_u64().unwrap_or_default();
        if let Some(entry) = params["entryId"].as_str().filter(|_| event["type"] == "entry_appended") {
            session.entries.push(entry.to_owned());
        }
    }

    /// The process ended, and no session is open.
    pub fn ended(&mut self) {
        self.sessions.retain(|session| session.path.is_some());
        for session in &mut self.sessions {
            session.open = false;
            session.context = None;
        }
        self.operations.clear();
    }
}
