//! The reply of a request: one answer, in its place among the events, and the cancel state of the request.

use crate::{
    protocol::{
        errors::Failure,
        events::Severity,
        notices::NoticeCode,
        notifications::{Notice, NoticeParams, Notification as _},
    },
    text,
    wire::{
        fit,
        outbox::Outbox,
        transport::{Piece, escaped_len},
    },
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

/// The most notifications that wait for their turn. More are dropped, because a notification has no answer with which
/// the client could be asked to retry. As many as commands may wait for one session.
pub(super) const MOST_NOTIFICATIONS: usize = 1_024;

/// The size that no error reaches, in bytes. The frame around it is small but for the client's id.
const LARGEST_ERROR: usize = fit::SOFT_FRAME - 1_024;

/// The most keys that an answer names as ignored, and the most bytes of each.
const MOST_IGNORED: usize = 64;
const LONGEST_IGNORED: usize = 256;

/// Answers one request. Where it is dropped without an answer, the request is answered with `internal`.
pub struct Reply {
    pub(super) to: Option<To>,
    pub(super) ticket: Arc<Ticket>,
    /// The place of a notification among those that wait, held until this is dropped.
    pub(super) _counted: Option<Counted>,
    /// Method and params, where requests are kept.
    pub(super) kept: Option<Box<Kept>>,
    /// The keys of its params that the method does not know. The answer names them.
    pub(super) ignored: Option<Box<Ignored>>,
}

/// A request as the client sent it.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Its id; a notification has none.
    pub id: Option<Box<RawValue>>,
    /// Its method.
    pub method: String,
    /// Its params.
    pub params: Option<Box<RawValue>>,
}

/// Keys of params that a method does not know.
pub(super) struct Ignored {
    method: &'static str,
    keys: Vec<String>,
}

impl Ignored {
    /// A result with `_meta.ignored`; as it is where it is no object.
    fn noted_in(&self, mut result: Value) -> Value {
        if let Some(result) = result.as_object_mut() {
            let meta = result.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert("ignored".to_owned(), json!(self.keys));
            }
        }
        result
    }

    /// The first piece of an object with `_meta.ignored` in front. None where the piece begins no object.
    fn noted_before(&self, first: &str) -> Option<String> {
        let rest = first.strip_prefix('{')?;
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        Some(format!("{{\"_meta\":{}{comma}{rest}", json!({"ignored": self.keys})))
    }

    /// The notice after an answer that has no place for the keys.
    fn notice(&self) -> NoticeParams {
        let keys: Vec<_> = self.keys.iter().map(|key| format!("`{key}`")).collect();
        NoticeParams {
            severity: Severity::Warning,
            code: NoticeCode::ParamsIgnored,
            title: "Params were ignored".to_owned(),
            detail: Some(format!("`{}` does not know {}", self.method, keys.join(", "))),
        }
    }
}

/// A notification that is not done yet.
pub(super) struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.notifications.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The place of an answer.
pub(super) struct To {
    pub(super) id: Box<RawValue>,
    pub(super) sink: Sink,
    pub(super) rpc: Arc<Shared>,
}

/// Whether an answer leaves alone.
pub(super) enum Sink {
    Single,
    /// The answers of a batch leave together.
    Batch(Arc<Batch>),
}

/// The answers of a batch.
pub(super) struct Batch {
    /// Each in its pieces: together they may be larger than the memory.
    answers: Mutex<Vec<Vec<Piece>>>,
    shared: Arc<Shared>,
}

/// The cancel state of a request, shared by its reply and the table of requests.
#[derive(Default)]
pub(super) struct Ticket {
    cancelled: AtomicBool,
    on_cancel: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

/// The requests that wait for their answers.
pub struct Shared {
    pub(super) outbox: Arc<Outbox>,
    pub(super) waiting: Mutex<HashMap<String, Arc<Ticket>>>,
    /// Notifications that are not done yet.
    notifications: AtomicUsize,
    /// True after the client was told that notifications are dropped.
    told_of_dropped: AtomicBool,
}

#[derive(Serialize)]
struct Answer<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

/// An answer that is an error, with shorter texts where it is too large.
fn failed(id: &RawValue, failure: &Failure) -> String {
    let mut error = json!(failure.object());
    // The id is the client's, and whole.
    fit::shorten(&mut error, |error| escaped_len(&error.to_string()) < LARGEST_ERROR);
    let answer = Answer::<()> { jsonrpc: "2.0", id, result: None, error: Some(error) };
    serde_json::to_string(&answer).expect("our own types are always JSON")
}

impl To {
    fn ok(&self, result: &impl Serialize) {
        let answer = Answer { jsonrpc: "2.0", id: &self.id, result: Some(result), error: None };
        let json = serde_json::to_string(&answer).expect("our own types are always JSON");
        self.rpc.send(&self.id, &self.sink, json);
    }
}

impl Shared {
    pub(super) fn new(outbox: Arc<Outbox>) -> Self {
        Self {
            outbox,
            waiting: Mutex::default(),
            notifications: AtomicUsize::new(0),
            told_of_dropped: AtomicBool::new(false),
        }
    }

    fn send(&self, id: &RawValue, sink: &Sink, json: String) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(id.get());
        match sink {
            Sink::Single => self.outbox.answer(json, 1),
            Sink::Batch(batch) => batch.add(vec![Piece::Text(json)]),
        }
    }

    fn send_pieces(&self, id: &RawValue, sink: &Sink, frame: Vec<Piece>) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(id.get());
        match sink {
            Sink::Single => self.outbox.answer_in_pieces(frame, 1),
            Sink::Batch(batch) => batch.add(frame),
        }
    }

    /// Counts a notification; none where too many wait already.
    pub(super) fn count_notification(self: &Arc<Self>) -> Option<Counted> {
        let one_more = |waiting: usize| (waiting < MOST_NOTIFICATIONS).then_some(waiting + 1);
        self.notifications.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        self.told_of_dropped.store(false, Ordering::Relaxed);
        Some(Counted(self.clone()))
    }

    /// Reports a dropped notification, once for a burst of them.
    pub(super) fn dropped(&self, method: &str) {
        tracing::warn!(method, "too many notifications wait; one was dropped");
        if !self.told_of_dropped.swap(true, Ordering::Relaxed) {
            let notice = NoticeParams {
                severity: Severity::Error,
                code: NoticeCode::NotificationsDropped,
                title: "Notifications were dropped".to_owned(),
                detail: Some(format!(
                    "{MOST_NOTIFICATIONS} notifications wait already; `{method}` and what follows was not done. Send \
                     requests, and wait for their answers"
                )),
            };
            self.outbox.notify(Notice::NAME, notice);
        }
    }

    /// Answers all open requests with `request_cancelled`, because the process ends.
    pub fn abandon(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        for id in waiting.into_keys().filter_map(|id| RawValue::from_string(id).ok()) {
            self.outbox.answer(failed(&id, &Failure::Abandoned), 1);
        }
    }

    /// Cancels a request: the holder of its reply is called.
    pub fn cancel(&self, id: &RawValue) {
        let ticket = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).get(id.get()).cloned();
        let Some(ticket) = ticket else { return };
        ticket.cancelled.store(true, Ordering::SeqCst);
        let told = ticket.on_cancel.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(told) = told {
            told();
        }
    }
}

impl Batch {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { answers: Mutex::default(), shared }
    }

    fn add(&self, answer: Vec<Piece>) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
    }
}

/// The last answer of a batch lets all of them leave.
impl Drop for Batch {
    fn drop(&mut self) {
        let answers = std::mem::take(self.answers.get_mut().unwrap_or_else(PoisonError::into_inner));
        if !answers.is_empty() {
            let requests = answers.len();
            let mut frame = Vec::new();
            for (at, answer) in answers.into_iter().enumerate() {
                frame.push(Piece::Text(if at == 0 { "[" } else { "," }.to_owned()));
                frame.extend(answer);
            }
            frame.push(Piece::Text("]".to_owned()));
            self.shared.outbox.answer_in_pieces(frame, requests);
        }
    }
}

impl Reply {
    /// Answers with a result.
    pub fn ok(mut self, result: &impl Serialize) {
        let Some(to) = self.to.take() else { return };
        match self.ignored.take() {
            None => to.ok(result),
            Some(ignored) => {
                let result = ignored.noted_in(serde_json::to_value(result).expect("our own types are always JSON"));
                to.ok(&result);
                if !result.is_object() {
                    to.rpc.outbox.notify(Notice::NAME, ignored.notice());
                }
            }
        }
    }

    /// Answers with a result that is JSON already, in pieces that make one line.
    pub fn pieces(mut self, mut result: Vec<Piece>) {
        if let Some(to) = self.to.take() {
            let ignored = self.ignored.take();
            if let (Some(ignored), Some(first)) = (&ignored, result.first_mut())
                && let Some(noted) = ignored.noted_before(first.as_str())
            {
                *first = Piece::Text(noted);
            }
            let id = serde_json::to_string(&to.id).expect("an id is always JSON");
            let mut frame = vec![Piece::Text(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":"))];
            frame.extend(result);
            frame.push(Piece::Text("}".to_owned()));
            to.rpc.send_pieces(&to.id, &to.sink, frame);
        }
    }

    /// Names keys of the params that the method does not know in the answer: the first ones, and the beginning of a long one.
    pub(super) fn ignored(&mut self, method: &'static str, keys: Vec<String>) {
        let keys =
            keys.into_iter().take(MOST_IGNORED).map(|key| text::shortened(key, LONGEST_IGNORED)).collect::<Vec<_>>();
        self.ignored = (!keys.is_empty()).then(|| Box::new(Ignored { method, keys }));
    }

    /// Names more keys of the params in the answer, such as those of a member.
    pub fn also_ignored(&mut self, method: &'static str, keys: Vec<String>) {
        let before = self.ignored.take().map(|ignored| ignored.keys).unwrap_or_default();
        self.ignored(method, before.into_iter().chain(keys).collect());
    }

    /// Answers with an error.
    pub fn fail(mut self, failure: &Failure) {
        self.send_failure(failure);
    }

    /// Answers with a result or an error.
    pub fn with<T: Serialize>(self, result: Result<T, Failure>) {
        match result {
            Ok(result) => self.ok(&result),
            Err(failure) => self.fail(&failure),
        }
    }

    fn send_failure(&mut self, failure: &Failure) {
        if let Some(to) = self.to.take() {
            tracing::debug!(id = to.id.get(), error = ?failure.code(), "request failed");
            to.rpc.send(&to.id, &to.sink, failed(&to.id, failure));
        }
    }

    /// Returns true after the client cancelled the request.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.ticket.cancelled.load(Ordering::SeqCst)
    }

    /// Calls `told` when the client cancels the request; at once where it is cancelled already.
    pub fn on_cancel(&self, told: impl FnOnce() + Send + 'static) {
        *self.ticket.on_cancel.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(told));
        if self.cancelled() {
            let told = self.ticket.on_cancel.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(told) = told {
                told();
            }
        }
    }

    /// The request that it answers, where requests are kept.
    #[must_use]
    pub fn request(&self) -> Option<&Kept> {
        self.kept.as_deref()
    }

    /// Returns true for a member of a batch. Its answer is sent with the others, so it cannot introduce an id before
    /// events name it.
    #[must_use]
    pub fn in_batch(&self) -> bool {
        matches!(self.to, Some(To { sink: Sink::Batch(_), .. }))
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.send_failure(&Failure::Internal(
            "this request ended without an answer, which is a defect of abridged; the session can be loaded again"
                .to_owned(),
        ));
    }
}
