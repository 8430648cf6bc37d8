//! A recording of sessions: what each was opened with, and its inputs with their times. A replay gives the same answers,
//! events and file.
//!
//! A recording is a file of JSON lines. The first line of a session has everything that its core begins with, the seed of
//! its ids included. Each further line is one input. Results of work are recorded only as far as the outside decided them:
//! a replay makes plans, extracted summaries, indexes and counts again.

pub mod live;
pub mod mask;
pub mod outcome;
pub mod played;
pub mod recorder;
pub mod replay;
pub mod requests;
pub mod sourcing;
pub mod tap;
pub mod transferring;

use super::{
    core::{Input, Moment},
    effects::{Answer, IdleTurn, Sent, TicketNumber},
    founding::Unfounded,
    hooks::Hooks,
    jobs::{self, IndexBuilt, progress::Progress, turn::TurnReport},
    open::Form,
    state::Beginning,
};
use crate::{
    compaction::draft::{Draft, Supplied},
    conversation::entry::raw,
    ids::{EntryId, OperationId, SessionId},
    log::{Stats, Unfinished},
    models::learned::Learned,
    protocol::errors::Failure,
    redact::Clean,
    settings::Layers,
    summary::{
        lost::Lost,
        made::{Made, SummaryMethod},
        model::writer::Native,
    },
    wire::{rpc::Kept, transport::Piece},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use outcome::{Failing, LogCall};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sourcing::Sourcing;
use std::{
    path::PathBuf,
    time::{Duration, Instant},
};
use transferring::Transferring;

/// Version of the format.
pub const VERSION: u32 = 1;

/// Files up to this size are recorded with their bytes; of a larger file the path and the length.
pub const LARGEST_CONTENT: u64 = 16 << 20;

/// Answers up to this size are recorded where the outside decided them, in bytes of JSON.
pub const LARGEST_ANSWER: usize = 1 << 20;

/// A line of a recording.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Line {
    /// A session was opened.
    Opened(Box<Opening>),
    /// A session was given an input.
    Input(Box<Fed>),
    /// A session ended.
    Ended {
        /// Number of the session.
        life: u64,
        /// The way in which it ended.
        end: End,
    },
}

/// The way in which a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// By its core.
    Closed,
    /// By a panic in its core.
    Defect,
}

/// The values that a session begins with.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Opening {
    /// Version of the format.
    pub version: u32,
    /// Number of the session in the recording. A session that is opened again gets another one.
    pub life: u64,
    /// Its id.
    pub session_id: SessionId,
    /// Seed of the ids of its entries and operations.
    pub seed: u64,
    /// Time of day.
    pub wall: String,
    /// Whether the tables of the tokenizer were loaded when the task of the session began.
    pub tokenizer: bool,
    /// Bytes that the other sessions kept in memory.
    pub awake_elsewhere: u64,
    /// The way in which it was opened.
    pub form: Form,
    /// Path of its file.
    pub file: Option<PathBuf>,
    /// Its file. An ephemeral session has the lines that its file would have.
    pub content: Content,
    /// The values beside the file.
    pub beginning: Beginning,
    /// Operations that the last owner had not ended.
    pub left_behind: Vec<Unfinished>,
    /// Disk operations of the opening.
    pub stats: Stats,
}

/// The bytes of a file at the opening.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Content {
    /// The bytes.
    Bytes(Bytes),
    /// The beginning of a large file.
    Beginning {
        /// Path of the file.
        path: PathBuf,
        /// Number of bytes at the opening.
        length: u64,
    },
}

/// Bytes as JSON: a text, or base64 where they are none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bytes {
    /// A text.
    Text(String),
    /// Other bytes.
    Other {
        /// In base64.
        base64: String,
    },
    /// No bytes.
    #[default]
    None,
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) if text.is_empty() => Self::None,
            Ok(text) => Self::Text(text),
            Err(error) => Self::Other { base64: STANDARD.encode(error.as_bytes()) },
        }
    }
}

impl Bytes {
    /// The bytes. `None` for base64 that is invalid.
    #[must_use]
    pub fn to_vec(&self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.clone().into_bytes()),
            Self::Other { base64 } => STANDARD.decode(base64).ok(),
            Self::None => Some(Vec::new()),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// An input of a session, with its time.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fed {
    /// Number of the session.
    pub life: u64,
    /// Time since the opening, in nanoseconds.
    pub at: u64,
    /// Time of day.
    pub wall: String,
    /// Whether the tables of the tokenizer are loaded, where that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<bool>,
    /// Bytes that the other sessions keep in memory, where they changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awake_elsewhere: Option<u64>,
    /// The input.
    pub input: Recorded,
}

/// A request as the client sent it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Its id; a notification has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Box<RawValue>>,
    /// Its method.
    pub method: String,
    /// Its params.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
}

impl From<&Kept> for Request {
    fn from(kept: &Kept) -> Self {
        Self { id: kept.id.clone(), method: kept.method.clone(), params: kept.params.clone() }
    }
}

/// An input, as far as a replay cannot make it again.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Recorded {
    /// A request that waits for its turn.
    Command {
        /// Its ticket.
        ticket: TicketNumber,
        /// The way in which it was sent.
        sent: Sent,
        /// The request.
        request: Request,
        /// The file that a `session/load` names, without links and `..`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<PathBuf>,
    },
    /// A request of which the daemon does the work.
    HandOver {
        /// Its ticket.
        ticket: TicketNumber,
        /// The request.
        request: Option<Request>,
    },
    /// A close that has no answer.
    Leave {
        /// Its ticket.
        ticket: TicketNumber,
    },
    /// `session/cancel`.
    Cancel {
        /// Its ticket.
        ticket: TicketNumber,
        /// The operation that it names.
        operation: Option<OperationId>,
        /// The request.
        request: Option<Request>,
    },
    /// The client cancelled the request with this ticket.
    RequestCancelled(TicketNumber),
    /// The settings below the session's own changed.
    Layers(Layers),
    /// The windows that providers taught changed.
    Windows(Learned),
    /// The hooks that the client answers changed.
    Hooks(Hooks),
    /// The session's file was touched.
    FileTouched,
    /// The session ends when no operation runs.
    Finish,
    /// The session ends now.
    Stop,
    /// The next of what is due.
    Turn,
    /// The time of a timer has come.
    Tick,
    /// Work on the log is done.
    Log {
        /// The call of the log, where the work made one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<LogCall>,
        /// The error of reading the path again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unread: Option<Failing>,
    },
    /// A panic lost the log.
    LogLost,
    /// A read was answered.
    Answered {
        /// Its ticket.
        ticket: TicketNumber,
        /// The answer, where the outside decided it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Given>,
    },
    /// The index was built, or not.
    Indexed(Indexing),
    /// A plan was made, or not.
    Planned(OperationId, Planning),
    /// A report on a draft in the making.
    Reported(OperationId, Progress),
    /// A draft was made, or not, and the facts that its summary does not have.
    Drafted(OperationId, Drafting, #[serde(default)] Option<Box<Lost>>),
    /// The text of a transfer was made, or not.
    Transferred(OperationId, Transferring),
    /// `Input::Turned`
    Turned(OperationId, TurnReport),
    /// The source of a reference was found, or not.
    Sourced(OperationId, Sourcing),
    /// A session was made, or not.
    Founded(OperationId, Option<Unfounded>, #[serde(default)] Option<PathBuf>),
    /// Estimated entries were counted by the tokenizer.
    Counted,
    /// The turn for idle maintenance has come, or waits.
    IdleTurn(IdleTurn),
}

/// An answer that the outside decided.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Given {
    /// The result.
    Result(Box<RawValue>),
    /// The error of the response.
    Error(Box<RawValue>),
    /// A result that is too large for a recording, of this number of bytes.
    TooLarge(usize),
}

impl Given {
    /// An answer as JSON, up to a size in bytes.
    #[must_use]
    pub fn of(answer: &Answer, most: usize) -> Self {
        let result = match answer {
            Answer::Result(result) => Some(result.clone()),
            Answer::Pieces(pieces) => {
                let length: usize = pieces.iter().map(|piece| piece.as_str().len()).sum();
                if length > most {
                    return Self::TooLarge(length);
                }
                RawValue::from_string(pieces.iter().map(Piece::as_str).collect()).ok()
            }
            Answer::Failed(failure) => return Self::Error(raw(&failure.object())),
        };
        match result {
            Some(result) if result.get().len() <= most => Self::Result(result),
            other => Self::TooLarge(other.map_or(0, |result| result.get().len())),
        }
    }
}

/// The result of building an index.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Indexing {
    /// It was built.
    Made,
    /// It was stopped.
    Stopped,
    /// The file could not be read.
    Failed(Failing),
    /// The work ended in a panic.
    Lost,
}

/// The result of planning.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Planning {
    /// A plan, or the error of planning. A replay plans again.
    Done,
    /// No model can be asked.
    NoModel,
    /// It was stopped.
    Cancelled,
    /// It ended in a defect.
    Defect(String),
}

/// The result of drafting.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Drafting {
    /// The extracted draft, or the error of it. A replay extracts again.
    Extracted(Made),
    /// A model wrote the summary.
    Written {
        /// The whole text.
        text: Clean,
        /// Two sentences for a person.
        short: Clean,
        /// Its origin.
        made: Made,
    },
    /// A hook supplied the summary, or additions to it.
    Supplied {
        /// The first kept entry, which a hook may name.
        first_kept: Option<EntryId>,
        /// The whole text.
        text: Clean,
        /// Two sentences for a person.
        short: Clean,
        /// Its origin.
        made: Made,
        /// The other parts.
        supplied: Supplied,
    },
    /// A draft with the provider's own compaction beside the summary.
    Native(Box<Drafting>, Native),
    /// It was stopped.
    Cancelled,
    /// It ended in a defect.
    Defect(String),
}

impl From<&Result<jobs::PlanMade, Failure>> for Planning {
    fn from(result: &Result<jobs::PlanMade, Failure>) -> Self {
        match result {
            Err(Failure::Cancelled) => Self::Cancelled,
            Err(Failure::Internal(what)) => Self::Defect(what.clone()),
            Err(Failure::InvalidParams { .. }) => Self::NoModel,
            Ok(_) | Err(_) => Self::Done,
        }
    }
}

impl From<&Result<Draft, Failure>> for Drafting {
    fn from(result: &Result<Draft, Failure>) -> Self {
        if let Ok(draft) = result
            && let Some(native) = &draft.native
        {
            let readable = Draft { native: None, ..draft.clone() };
            return Self::Native(Box::new(Self::from(&Ok(readable))), (**native).clone());
        }
        match result {
            Ok(Draft { made, summary, supplied, plan, .. })
                if made.method == SummaryMethod::Hook || *supplied != Supplied::default() =>
            {
                Self::Supplied {
                    first_kept: plan.first_kept_id().cloned(),
                    text: summary.text.clone(),
                    short: summary.short.clone(),
                    made: made.clone(),
                    supplied: supplied.clone(),
                }
            }
            Ok(Draft { made, summary, .. }) if !made.is_extracted() => {
                Self::Written { text: summary.text.clone(), short: summary.short.clone(), made: made.clone() }
            }
            Ok(draft) => Self::Extracted(draft.made.clone()),
            Err(Failure::Cancelled) => Self::Cancelled,
            Err(Failure::Internal(what)) => Self::Defect(what.clone()),
            Err(_) => Self::Extracted(Made::default()),
        }
    }
}

/// Parts of an input that the core does not see.
#[derive(Debug, Default)]
pub struct Beside {
    /// The request of a ticket.
    pub request: Option<Request>,
    /// The file that a `session/load` names.
    pub asked: Option<PathBuf>,
    /// The call of the log.
    pub call: Option<LogCall>,
    /// The read that was answered, and its answer where the outside decided it.
    pub answered: Option<(TicketNumber, Option<Given>)>,
}

impl Recorded {
    /// An input with the parts that the core does not see.
    #[must_use]
    pub fn of(input: &Input, beside: Beside) -> Self {
        let Beside { request, asked, call, answered } = beside;
        match input {
            Input::Command(command, ticket) => {
                let (number, sent) = (ticket.number(), ticket.sent());
                match request {
                    _ if command.is_handed_over() => Self::HandOver { ticket: number, request },
                    Some(request) => Self::Command { ticket: number, sent, request, asked },
                    None => Self::Leave { ticket: number },
                }
            }
            Input::Cancel(operation, ticket) => {
                Self::Cancel { ticket: ticket.number(), operation: operation.clone(), request }
            }
            Input::RequestCancelled(ticket) => Self::RequestCancelled(*ticket),
            Input::Layers(layers) => Self::Layers(layers.clone()),
            Input::Windows(learned) => Self::Windows(learned.clone()),
            Input::Hooks(hooks) => Self::Hooks(Hooks::clone(hooks)),
            Input::FileTouched => Self::FileTouched,
            Input::Finish => Self::Finish,
            Input::Stop => Self::Stop,
            Input::Turn => Self::Turn,
            Input::Tick => Self::Tick,
            Input::Log(None, _) => Self::LogLost,
            Input::Log(Some(done), _) => Self::Log { call, unread: Failing::of_reading(done) },
            Input::Answered => {
                let (ticket, answer) = answered.unwrap_or_default();
                Self::Answered { ticket, answer }
            }
            Input::Indexed(built) => Self::Indexed(match built {
                IndexBuilt::Made(_) => Indexing::Made,
                IndexBuilt::Stopped => Indexing::Stopped,
                IndexBuilt::Failed(error) => Indexing::Failed(error.into()),
                IndexBuilt::Lost => Indexing::Lost,
            }),
            Input::Planned(id, result) => Self::Planned(id.clone(), result.into()),
            Input::Reported(id, step) => Self::Reported(id.clone(), step.clone()),
            Input::Drafted(id, result) => {
                Self::Drafted(id.clone(), result.into(), result.as_ref().ok().and_then(|draft| draft.lost.clone()))
            }
            Input::Transferred(id, result) => Self::Transferred(id.clone(), result.into()),
            Input::Turned(id, report) => Self::Turned(id.clone(), report.clone()),
            Input::Sourced(id, result) => Self::Sourced(id.clone(), result.into()),
            Input::Founded(id, outcome) => {
                Self::Founded(id.clone(), outcome.clone().err(), outcome.clone().ok().flatten())
            }
            Input::Counted => Self::Counted,
            Input::IdleTurn(turn) => Self::IdleTurn(*turn),
        }
    }
}

/// The clock of a recorded session: its times count from the opening.
#[derive(Debug)]
pub struct Clock {
    opened: Instant,
    tokenizer: bool,
    awake_elsewhere: u64,
}

impl Clock {
    /// A clock that begins at the opening of a session.
    #[must_use]
    pub fn new(at: &Moment) -> Self {
        Self { opened: at.now, tokenizer: at.tokenizer, awake_elsewhere: at.awake_elsewhere }
    }

    /// An input at a moment, as a line.
    pub fn line(&mut self, life: u64, at: &Moment, input: Recorded) -> Line {
        let tokenizer = (at.tokenizer != self.tokenizer).then_some(at.tokenizer);
        let awake_elsewhere = (at.awake_elsewhere != self.awake_elsewhere).then_some(at.awake_elsewhere);
        (self.tokenizer, self.awake_elsewhere) = (at.tokenizer, at.awake_elsewhere);
        let since = at.now.saturating_duration_since(self.opened);
        let at_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Line::Input(Box::new(Fed { life, at: at_ns, wall: at.wall.to_string(), tokenizer, awake_elsewhere, input }))
    }

    /// The moment of a recorded input. `None` where its time of day is invalid.
    pub fn moment(&mut self, fed: &Fed) -> Option<Moment> {
        self.tokenizer = fed.tokenizer.unwrap_or(self.tokenizer);
        self.awake_elsewhere = fed.awake_elsewhere.unwrap_or(self.awake_elsewhere);
        Some(Moment {
            now: self.opened + Duration::from_nanos(fed.at),
            wall: fed.wall.parse().ok()?,
            awake_elsewhere: self.awake_elsewhere,
            tokenizer: self.tokenizer,
        })
    }
}
