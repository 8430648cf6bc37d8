//! The form of a row.

use super::{
    dialect::Dialect,
    truth::{Counts, Exchange, History},
};
use serde_json::Value;

/// A row of the table: a host, and the right reaction to its reports.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The report in a few words. It is the name of the model, too.
    pub name: &'static str,
    /// The provider of the model.
    pub provider: &'static str,
    /// The program or the API that makes this report, with its version where it matters.
    pub program: &'static str,
    /// A place where the report is documented or was seen.
    pub source: &'static str,
    pub dialect: Dialect,
    /// Makes the report of an exchange.
    pub report: fn(&Exchange, &History) -> Value,
    pub counts: Counts,
    pub habits: Habits,
    pub deserves: Deserves,
}

/// The differences between hosts, beside their reports.
#[derive(Debug, Clone, Copy)]
pub struct Habits {
    /// It announces its system prompt.
    pub announces: bool,
    /// Every fifth request has an image.
    pub images: bool,
    /// Its answers begin with thinking.
    pub thinks: bool,
    /// Tokens of reasoning in each answer that no message shows.
    pub hidden: u64,
    /// It writes Chinese.
    pub chinese: bool,
    /// Another program reads the session before each append.
    pub is_watched: bool,
    /// It names the context of each answer.
    pub names_contexts: bool,
    /// The event in the middle of the session.
    pub middle: Middle,
}

/// An event before the turn in the middle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Middle {
    Nothing,
    /// The session goes on with another model, which has another tokenizer.
    OtherModel {
        factor: f64,
    },
    /// The daemon is killed, and another one loads the session.
    NewProcess,
    /// The provider adds tokens to each request: a server with tools was connected.
    MoreTools,
    /// The host announces the system prompt that was there all the time.
    Announces,
}

/// The right reaction to the reports of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deserves {
    /// Each report is believed.
    Belief,
    /// The report of a row is believed at the latest after this many others that were not.
    BeliefAfter(usize),
    /// Each report is believed. It is near the truth: the count of another tokenizer, or all but the newest message.
    Near,
    /// Some reports are right, and some are wrong. Only the sizes matter.
    Caution,
    /// No report is believed. There may be a notice.
    Disbelief,
    /// No report is believed, and one notice says so.
    Notice,
    /// The window is learned.
    Window,
}

/// The window that a host states, apart from the part that its provider fills in each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// No session of the table fills it.
    Wide,
    /// A session is compacted several times.
    Narrow,
}

impl Room {
    pub fn window(self) -> u64 {
        match self {
            Self::Wide => 200_000,
            Self::Narrow => 12_000,
        }
    }

    /// The tokens of tools that are connected in the middle. The request still fits the window.
    pub fn more_tools(self) -> u64 {
        match self {
            Self::Wide => 9_000,
            Self::Narrow => 2_400,
        }
    }
}

impl Row {
    pub fn new(
        name: &'static str,
        provider: &'static str,
        program: &'static str,
        source: &'static str,
        dialect: Dialect,
        report: fn(&Exchange, &History) -> Value,
        deserves: Deserves,
    ) -> Self {
        let counts = Counts { factor: 1.0, unannounced: 0, image: 750, thinking: true, cut: None };
        let habits = Habits {
            announces: true,
            images: false,
            thinks: false,
            hidden: 0,
            chinese: false,
            is_watched: false,
            names_contexts: false,
            middle: Middle::Nothing,
        };
        Self { name, provider, program, source, dialect, report, counts, habits, deserves }
    }

    /// The same with a tokenizer that makes so many tokens of each piece.
    pub fn factor(self, factor: f64) -> Self {
        Self { counts: Counts { factor, ..self.counts }, ..self }
    }

    /// The same with so many tokens in each request that nobody announces.
    pub fn unannounced(self, unannounced: u64) -> Self {
        Self {
            counts: Counts { unannounced, ..self.counts },
            habits: Habits { announces: false, ..self.habits },
            ..self
        }
    }

    /// The same with a server that cuts prompts over a size to another one.
    pub fn cut_to(self, over: u64, to: u64) -> Self {
        Self { counts: Counts { cut: Some((over, to)), ..self.counts }, ..self }
    }

    /// The same with so much reasoning in each answer.
    pub fn hidden(self, hidden: u64) -> Self {
        Self { habits: Habits { hidden, ..self.habits }, ..self }
    }

    /// The same with an event in the middle.
    pub fn middle(self, middle: Middle) -> Self {
        Self { habits: Habits { middle, ..self.habits }, ..self }
    }

    /// The same with another way to count.
    pub fn counts(mut self, change: impl FnOnce(&mut Counts)) -> Self {
        change(&mut self.counts);
        self
    }

    /// The same with changed habits.
    pub fn habits(mut self, change: impl FnOnce(&mut Habits)) -> Self {
        change(&mut self.habits);
        self
    }

    /// The window that the host states.
    pub fn window(&self, room: Room) -> u64 {
        let more = if self.habits.middle == Middle::MoreTools { room.more_tools() } else { 0 };
        // A reserve of 15 % is free beside the instructions, too.
        room.window() + (self.counts.unannounced + more) * 20 / 17
    }

    /// The number of reports that may pass until the daemon believes them, the last one included.
    pub fn patience(&self) -> usize {
        match self.deserves {
            Deserves::BeliefAfter(others) => others + 1,
            _ => 1,
        }
    }

    /// Whether its server runs on this machine.
    pub fn is_local(&self) -> bool {
        matches!(self.provider, "ollama" | "lmstudio" | "llamacpp")
    }
}
