//! The recording of one running session.

use super::{
    Beside, Clock, Content, End, Given, LARGEST_CONTENT, Line, Opening, Recorded, Request, VERSION,
    recorder::Recorder,
    tap::{LastCall, Tapped},
};
use crate::{
    conversation::entry::Entry,
    log::{Log, bytes::Bytes, header::header_line},
    regular::{self, Links},
    session::{
        core::{Input, Moment},
        effects::TicketNumber,
        log_work::LogFacts,
        open::{Form, Opened},
    },
};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Records the inputs of a session.
pub struct Recording {
    recorder: Recorder,
    life: u64,
    clock: Clock,
    last_call: LastCall,
    asked: Option<PathBuf>,
    answered: Option<(TicketNumber, Option<Given>)>,
}

impl Recording {
    /// Records the beginning of a session at this moment. Reads its file. Secrets of settings are masked.
    #[must_use]
    pub fn begin(recorder: Recorder, opened: &Opened, form: Form, log: &LogFacts, seed: u64, at: &Moment) -> Self {
        let life = recorder.next_life();
        let content = content(opened, log.end).unwrap_or_else(|error| {
            tracing::warn!(%error, "the session file is missing in the recording");
            Content::Bytes(super::Bytes::None)
        });
        let (mask, mut beginning) = (recorder.mask(), opened.state.beginning());
        beginning.layers = mask.layers(&beginning.layers);
        if let Some(settings) = &mut beginning.given.settings {
            mask.settings(settings);
        }
        recorder.add(&Line::Opened(Box::new(Opening {
            version: VERSION,
            life,
            session_id: opened.state.id.clone(),
            seed,
            wall: at.wall.to_string(),
            tokenizer: at.tokenizer,
            awake_elsewhere: at.awake_elsewhere,
            form,
            file: opened.state.file.clone(),
            content,
            beginning,
            left_behind: opened.left_behind.clone(),
            stats: log.stats,
        })));
        let (last_call, clock) = (LastCall::default(), Clock::new(at));
        Self { recorder, life, clock, last_call, asked: None, answered: None }
    }

    /// The log with its calls recorded.
    #[must_use]
    pub fn tap(&self, log: Box<dyn Log>, file: Option<&Path>) -> Box<dyn Log> {
        match file {
            Some(file) => Box::new(Tapped::new(log, file.to_owned(), self.last_call.clone())),
            None => log,
        }
    }

    /// Keeps the file that the next request names.
    pub fn asks_for(&mut self, file: Option<PathBuf>) {
        self.asked = file;
    }

    /// Keeps the read that was answered, with its answer where the outside decided it.
    pub fn answered(&mut self, ticket: TicketNumber, answer: Option<Given>) {
        self.answered = Some((ticket, answer));
    }

    /// Records an input.
    pub fn input(&mut self, at: &Moment, input: &Input, request: Option<Request>) {
        let call = if matches!(input, Input::Log(..)) { self.last_call.take() } else { None };
        let answered = if matches!(input, Input::Answered) { self.answered.take() } else { None };
        let asked = if matches!(input, Input::Command(..)) { self.asked.take() } else { None };
        let mask = self.recorder.mask();
        let request = request.map(|mut request| {
            mask.request(&mut request);
            request
        });
        let recorded = match Recorded::of(input, Beside { request, asked, call, answered }) {
            Recorded::Layers(layers) => Recorded::Layers(mask.layers(&layers)),
            recorded => recorded,
        };
        self.recorder.add(&self.clock.line(self.life, at, recorded));
    }

    /// Records the end.
    pub fn ended(&self, end: End) {
        self.recorder.add(&Line::Ended { life: self.life, end });
    }
}

/// The file of a session as it was read up to `end`, in bytes. Other programs may have written since.
fn content(opened: &Opened, end: u64) -> Result<Content, io::Error> {
    let Some(path) = &opened.state.file else {
        let lines = opened.state.path().iter().map(|entry: &std::sync::Arc<Entry>| entry.line());
        let header = header_line(opened.state.header());
        let text: String = std::iter::once(header.as_str()).chain(lines).flat_map(|line| [line, "\n"]).collect();
        return Ok(Content::Bytes(text.into_bytes().into()));
    };
    let bytes = Bytes::from(regular::open(path, Links::Followed)?);
    let is_torn = opened.state.repairs.iter().any(|repair| repair.kind == "torn_tail");
    let length = if is_torn { bytes.length()? } else { end };
    if length > LARGEST_CONTENT {
        return Ok(Content::Beginning { path: path.clone(), length });
    }
    let mut bytes = bytes.beginning(usize::try_from(length).unwrap_or(0))?;
    if is_torn {
        // The piece of a line has no newline.
        let end = usize::try_from(end).unwrap_or(usize::MAX).min(bytes.len());
        let piece = bytes[end..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - end);
        bytes.truncate(end + piece);
    }
    Ok(Content::Bytes(bytes.into()))
}
