//! A long operation from its start event to its end event, with everybody who waits for it.
//!
//! Made by sending the start; whatever becomes of it, dropping it sends the end. So there is no start without its end
//! on any path, a panic included.

use super::Emitter;
use crate::{
    conversation::entry::{self, Entry},
    ids::OperationId,
    log::lock::Unfinished,
    protocol::{
        errors::Failure,
        events::{ChunkSource, Event, Reason, RetrySource, Severity, Stage, Strategy},
        types::{
            CompactAnswer, CompactionResult, Outcome, Rejected, RunningOperation, Status, StatusKind, SummaryMethod,
            Usage,
        },
    },
    summary::made::Made,
    wire::{outbox::About, rpc::Reply, transport::escaped_len},
};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// The one kind there is so far.
pub const COMPACTION: &str = "compaction";

/// Summary text goes out in pieces of this size, in bytes: far below the limit of a frame even when escaped.
const CHUNK: usize = 8 * 1024;

/// A result larger than this goes out without its summary, in bytes as JSON: the frame around it takes up to 2 KiB more,
/// and none may pass 60 KiB.
const LARGEST_RESULT: usize = 58 * 1024;

/// Stops an operation from anywhere.
#[derive(Debug, Clone, Default)]
pub struct Stop(CancellationToken);

impl Stop {
    /// Asks for it.
    pub fn request(&self) {
        self.0.cancel();
    }

    /// Whether it was asked for.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until it is.
    pub async fn wait(&self) {
        self.0.cancelled().await;
    }
}

/// A compaction that runs.
pub struct Operation {
    /// Its id.
    pub id: OperationId,
    /// Why it runs.
    pub reason: Reason,
    /// Stops it.
    pub stop: Stop,
    emitter: Emitter,
    started_at: String,
    started: Instant,
    /// How full the context was: what an end without a result says.
    usage: Usage,
    waiting: Vec<Reply>,
    /// How often each part of the summary was begun.
    attempts: HashMap<ChunkSource, u32>,
    /// The tries again that were told and have not ended.
    retries: Vec<(RetrySource, u32)>,
    ended: bool,
}

/// How an operation ended.
pub enum End {
    /// It wrote an entry.
    Completed(Box<CompactionResult>),
    /// Somebody stopped it.
    Cancelled,
    /// It could not be done.
    Failed(Failure),
}

impl Operation {
    /// Sends the start. The answer that introduces the id goes out first; one that waits for the end, or leaves with
    /// its batch, cannot, and then the start event introduces it.
    pub fn start(id: OperationId, usage: Usage, stop: Stop, reply: Reply, wait: bool, emitter: Emitter) -> Self {
        let mut status =
            Status { kind: StatusKind::Compacting, operation_id: Some(id.clone()), reason: Some("manual".to_owned()) };
        emitter.becomes(&status);
        let introduced = !wait && !reply.in_batch();
        let mut waiting = Vec::new();
        if wait {
            waiting.push(reply);
        } else {
            reply.ok(&CompactAnswer::Started { operation_id: id.clone() });
        }
        let operation = Self {
            id,
            reason: Reason::Manual,
            stop,
            emitter,
            started_at: entry::now(),
            started: Instant::now(),
            usage,
            waiting,
            attempts: HashMap::new(),
            retries: Vec::new(),
            ended: false,
        };
        if !introduced {
            status.operation_id = None;
        }
        operation.emitter.emit(About::default(), &Event::StatusChanged { status });
        operation.emit(&Event::CompactionStart {
            reason: operation.reason,
            strategy: Strategy::ContextFull,
            tokens_before: operation.usage.context_tokens,
            context_window: operation.usage.context_window.unwrap_or(0),
            threshold_tokens: operation.usage.threshold_tokens.unwrap_or(0),
            will_retry: false,
        });
        operation
    }

    /// What stands in the lock of an operation that is to start now.
    #[must_use]
    pub fn about_to_start(id: &OperationId) -> Unfinished {
        let (kind, reason) = (COMPACTION.to_owned(), "manual".to_owned());
        Unfinished { operation_id: id.clone(), kind, reason, started_at: entry::now() }
    }

    /// What the session is doing meanwhile.
    #[must_use]
    pub fn status(&self) -> Status {
        Status { kind: StatusKind::Compacting, operation_id: Some(self.id.clone()), reason: Some("manual".to_owned()) }
    }

    /// As it stands in the lock while it runs.
    #[must_use]
    pub fn note(&self) -> Unfinished {
        let RunningOperation { operation_id, kind, reason, started_at } = self.describe();
        Unfinished { operation_id, kind, reason, started_at }
    }

    /// As `session/status` shows it.
    #[must_use]
    pub fn describe(&self) -> RunningOperation {
        RunningOperation {
            operation_id: self.id.clone(),
            kind: COMPACTION.to_owned(),
            reason: "manual".to_owned(),
            started_at: self.started_at.clone(),
        }
    }

    /// Whether the client cancelled a request that waits for the end.
    #[must_use]
    pub fn request_cancelled(&self) -> bool {
        self.waiting.iter().any(Reply::cancelled)
    }

    /// Sends an event of this operation.
    pub fn emit(&self, event: &Event) {
        self.emitter.emit(About { entry: None, operation: Some(self.id.clone()) }, event);
    }

    /// Sends how far it is.
    pub fn progress(&self, stage: Stage, done: usize, total: usize) {
        self.emit(&Event::CompactionProgress { stage, done, total });
    }

    /// A part of the summary is begun anew: what was sent of it before is void.
    pub fn begins(&mut self, source: ChunkSource) {
        *self.attempts.entry(source).or_default() += 1;
    }

    /// Sends that a request is sent again after a while.
    pub fn retry_starts(&mut self, source: RetrySource, attempt: u32, most: u32, delay: Duration, failure: &Failure) {
        self.retries.push((source, attempt));
        self.emit(&Event::RetryStart {
            source,
            attempt,
            max_attempts: most,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            error: failure.data(),
            error_message: failure.to_string(),
        });
    }

    /// Sends how that went.
    pub fn retry_ends(&mut self, source: RetrySource, attempt: u32, failure: Option<&Failure>) {
        let Some(at) = self.retries.iter().position(|it| *it == (source, attempt)) else { return };
        self.retries.remove(at);
        self.emit(&Event::RetryEnd {
            source,
            success: failure.is_none(),
            attempt,
            error: failure.map(Failure::data),
            error_message: failure.map(ToString::to_string),
        });
    }

    /// Sends a part of the summary, piece by piece.
    pub fn chunks(&self, source: ChunkSource, text: &str) {
        let attempt = self.attempts.get(&source).copied().unwrap_or(1);
        let mut rest = text;
        while !rest.is_empty() {
            let mut end = rest.len().min(CHUNK);
            while !rest.is_char_boundary(end) {
                end -= 1;
            }
            let (piece, tail) = rest.split_at(end);
            self.emit(&Event::SummaryChunk { source, attempt, text: piece.to_owned() });
            rest = tail;
        }
    }

    /// What is sent along with the end, the summary only where it is short enough.
    #[must_use]
    pub fn result(&self, entry: &Entry, made: &Made) -> Option<Box<CompactionResult>> {
        let entry_id = &entry.id;
        let compaction = entry.compaction()?;
        let first_kept = compaction.first_kept_entry_id.clone().filter(|id| id != entry_id);
        let tokens_after = serde_json::from_str::<serde_json::Value>(entry.line()).ok()?["tokensAfter"].as_u64()?;
        let mut result = Box::new(CompactionResult {
            entry_id: entry_id.clone(),
            summary: Some(compaction.summary.clone()),
            short_summary: compaction.short_summary.clone(),
            first_kept_entry_id: first_kept,
            tokens_before: compaction.tokens_before as u64,
            tokens_after,
            details: compaction.details.clone().unwrap_or_default(),
            from_hook: false,
            method: if made.by.is_some() { SummaryMethod::Llm } else { SummaryMethod::Extractive },
            model: made.by.clone(),
            rejected: made.rejected.iter().map(Rejected::from).collect(),
        });
        let too_large = |result: &CompactionResult| escaped_len(entry::raw(result).get()) > LARGEST_RESULT;
        if too_large(&result) {
            result.summary = None;
        }
        while too_large(&result) && halve(&mut result.details) {}
        while too_large(&result) && result.rejected.pop().is_some() {}
        Some(result)
    }

    /// Sends the end, the status after it, that the session has settled, and then the answers that waited.
    pub fn finish(mut self, end: End, usage: Usage, notices: Vec<(&str, String)>) {
        self.usage = usage;
        self.end(end, notices);
    }

    fn end(&mut self, end: End, notices: Vec<(&str, String)>) {
        self.ended = true;
        // Whatever was on its way is not waited for any more.
        while let Some((source, attempt)) = self.retries.first().copied() {
            self.retry_ends(source, attempt, Some(&Failure::Cancelled));
        }
        let idle = Status { kind: StatusKind::Idle, operation_id: None, reason: None };
        self.emitter.becomes(&idle);
        let aborted = matches!(end, End::Cancelled);
        let (outcome, result, failure) = match end {
            End::Completed(result) => (Outcome::Completed, Some(result), None),
            End::Cancelled => (Outcome::Cancelled, None, None),
            End::Failed(failure) => (Outcome::Failed, None, Some(failure)),
        };
        self.emit(&Event::CompactionEnd {
            reason: self.reason,
            outcome,
            result: result.clone(),
            new_session_id: None,
            error: failure.as_ref().map(Failure::data),
            error_message: failure.as_ref().map(ToString::to_string),
            skipped_reason: None,
            will_retry: false,
            will_continue: false,
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            usage: self.usage.clone(),
        });
        self.emitter.emit(About::default(), &Event::StatusChanged { status: idle });
        for (title, detail) in notices {
            let title = title.to_owned();
            self.emit(&Event::Notice { severity: Severity::Warning, title, detail: Some(detail) });
        }
        self.emitter.emit(About::default(), &Event::Settled { aborted });
        let answer = CompactAnswer::Ended {
            operation_id: self.id.clone(),
            outcome,
            result,
            error: failure.as_ref().map(Failure::data),
        };
        for reply in self.waiting.drain(..) {
            reply.ok(&answer);
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if !self.ended {
            let what = "the compaction ended unexpectedly, which is a defect of abridged; nothing was changed";
            self.end(End::Failed(Failure::Internal(what.to_owned())), Vec::new());
        }
    }
}

/// Lists of files that are too long are read from the entry: the older half of each goes. False where nothing is left
/// to go.
fn halve(details: &mut serde_json::Value) -> bool {
    let mut gone = false;
    for list in ["readFiles", "modifiedFiles"] {
        if let Some(files) = details.get_mut(list).and_then(serde_json::Value::as_array_mut) {
            gone |= !files.is_empty();
            files.drain(..files.len().div_ceil(2));
        }
    }
    gone
}
