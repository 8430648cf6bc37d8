//! The queue of all outbound frames. The order of the puts is the order on the wire; a thread of its own writes them.
//!
//! No put waits. When the client reads too slowly, a waiting event is first replaced by the newer one of its kind, then
//! events that are not durable are dropped, and at last the events of a session are dropped for one
//! `session/resync_required`. Answers are never dropped.

#![expect(clippy::disallowed_methods, reason = "the epoch and the deadline of a close")]

use crate::{
    ids::{EntryId, OperationId, SessionId},
    protocol::{
        events::{Envelope, Event, Keeping},
        notifications::{Notification as _, ResyncParams, ResyncRequired, SessionEvent},
        whole_of, whole_of_event,
    },
    wire::{
        event_log,
        fit::notification,
        trace::Trace,
        transport::{Chosen, Framing, Piece, put_frame, write_pieces},
    },
};
use serde::Serialize;
use std::{
    collections::{HashMap, HashSet, VecDeque},
    io::{BufWriter, Write},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// The most frames that wait.
const MOST_FRAMES: usize = 1_024;
/// The most bytes that wait.
const MOST_BYTES: usize = 8 << 20;

/// Unread answers at which no more requests are read from the client: about 16 MiB of small answers.
const MOST_UNREAD: usize = 1 << 16;

/// Durable events that are kept for replay: the number for a session,
const MOST_KEPT: usize = 4_096;
/// the bytes for a session,
const MOST_KEPT_BYTES: usize = 1 << 20;
/// and the bytes for all sessions.
const MOST_KEPT_BYTES_OF_ALL: usize = 32 << 20;

/// The queue.
pub struct Outbox {
    /// The epoch: the id of this process of the daemon.
    epoch: String,
    state: Mutex<State>,
    /// Something is in the queue, or it was closed.
    filled: Condvar,
    /// The queue is empty and everything is written.
    emptied: Condvar,
    /// Some answers have left, or the queue was closed.
    answered: Condvar,
    in_flight: AtomicUsize,
}

#[derive(Default)]
struct State {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// The state of each session's events.
    told: HashMap<SessionId, Told>,
    /// Bytes kept of all sessions.
    kept_bytes: usize,
    opted_out: HashSet<String>,
    writing: bool,
    closed: bool,
}

/// The events of a session.
#[derive(Default)]
struct Told {
    /// The number of the last one.
    last: u64,
    /// The durable events that are kept for replay, oldest first.
    kept: VecDeque<(u64, String)>,
    kept_bytes: usize,
    /// The number of the newest durable event that is not kept any more.
    forgotten: u64,
    /// True while the client is not subscribed.
    muted: bool,
}

/// The client sends requests and reads no answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client reads no answers, and {MOST_UNREAD} wait")]
pub struct NobodyReads;

/// The state of a subscriber that missed events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// All durable events since are kept; their number.
    Kept(usize),
    /// Some events are not kept any more, or the epoch is another one.
    Forgotten,
}

struct Frame {
    json: Json,
    kind: FrameKind,
}

/// The JSON of a frame, on one line.
enum Json {
    Text(String),
    /// Of a large answer.
    Pieces(Vec<Piece>),
}

impl Json {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Pieces(pieces) => pieces.iter().map(|piece| piece.as_str().len()).sum(),
        }
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

enum FrameKind {
    /// Number of requests that the frame answers.
    Answer {
        requests: usize,
    },
    Event {
        session: SessionId,
        seq: u64,
        durable: bool,
        replaceable: Option<&'static str>,
    },
    Resync {
        session: SessionId,
        dropped: u64,
    },
    Notification,
    /// No frame: called when those before it are written.
    Written(Box<dyn FnOnce() + Send>),
}

/// The subjects of an event.
#[derive(Debug, Clone, Default)]
pub struct About {
    /// An entry.
    pub entry: Option<EntryId>,
    /// An operation.
    pub operation: Option<OperationId>,
    /// A turn.
    pub turn: Option<OperationId>,
}

impl About {
    /// The operation, or the turn, that an event is about.
    #[must_use]
    pub fn of(id: Option<OperationId>, event: &Event) -> Self {
        match event.is_of_turn() {
            true => Self { turn: id, ..Self::default() },
            false => Self { operation: id, ..Self::default() },
        }
    }
}

impl Outbox {
    /// A queue with a new epoch.
    #[must_use]
    pub fn new() -> Self {
        Self {
            epoch: uuid::Uuid::new_v4().simple().to_string(),
            state: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            answered: Condvar::new(),
            in_flight: AtomicUsize::new(0),
        }
    }

    /// This life of the daemon.
    #[must_use]
    pub fn epoch(&self) -> &str {
        &self.epoch
    }

    /// Requests whose answers have not left yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Waits until a client that does not read has read enough for another request to be taken from it. `ping`, cancels
    /// and what is refused are answered however many wait, so their answers would grow without end.
    ///
    /// # Errors
    /// When no answer is written for `longest`.
    pub fn wait_for_room(&self, longest: Duration) -> Result<(), NobodyReads> {
        if self.in_flight() < MOST_UNREAD {
            return Ok(());
        }
        let mut state = self.lock();
        loop {
            let before = self.in_flight();
            if before < MOST_UNREAD || state.closed {
                return Ok(());
            }
            let waited = self.answered.wait_timeout(state, longest).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            if waited.1.timed_out() && self.in_flight() == before {
                return Err(NobodyReads);
            }
        }
    }

    /// Counts a request that was read and will be answered.
    pub fn expect_answer(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// Event types the client does not want.
    pub fn opt_out(&self, types: Vec<String>) {
        self.lock().opted_out = types.into_iter().collect();
    }

    /// Puts an answer into the queue, for so many requests that were expected.
    pub fn answer(&self, json: String, requests: usize) {
        self.push(&mut self.lock(), json, FrameKind::Answer { requests });
    }

    /// Puts a request to the client into the queue.
    pub fn request(&self, json: String) {
        // Like an answer it is never dropped, but nobody counts on it.
        self.push(&mut self.lock(), json, FrameKind::Answer { requests: 0 });
    }

    /// Puts a large answer into the queue, for so many requests that were expected.
    pub fn answer_in_pieces(&self, pieces: Vec<Piece>, requests: usize) {
        self.push(&mut self.lock(), Json::Pieces(pieces), FrameKind::Answer { requests });
    }

    /// Puts a notification that belongs to no session into the queue. Where as many wait as the queue has frames, it is
    /// dropped: the client has not read for long, and what they tell can be asked for.
    pub fn notify(&self, method: &str, params: impl Serialize) {
        let mut state = self.lock();
        if state.full() {
            let waiting = state.frames.iter().filter(|frame| matches!(frame.kind, FrameKind::Notification)).count();
            if waiting >= MOST_FRAMES {
                tracing::warn!(method, "the client does not read; a notification was dropped");
                return;
            }
        }
        self.push(&mut state, notification(method, params, whole_of(method)), FrameKind::Notification);
    }

    /// Puts an event into the queue and gives it its number.
    pub fn event(&self, session: &SessionId, about: &About, event: &Event) {
        event_log::log(session, about.operation.as_ref().or(about.turn.as_ref()), about.entry.as_ref(), event);
        let payload = crate::conversation::entry::raw(event);
        let ts = crate::conversation::entry::timestamp(crate::clock::now());
        let mut state = self.lock();
        if state.opted_out.contains(event.kind()) {
            return;
        }
        let keeping = event.keeping();
        let durable = keeping == Keeping::Durable;
        let replaceable = (keeping == Keeping::Replaceable).then(|| event.kind());
        let render = |seq: u64| {
            let envelope = Envelope {
                session_id: session,
                epoch: &self.epoch,
                seq,
                ts: &ts,
                durable,
                entry_id: about.entry.as_ref(),
                operation_id: about.operation.as_ref(),
                turn_id: about.turn.as_ref(),
                event: &payload,
            };
            notification(SessionEvent::NAME, envelope, whole_of_event(event))
        };
        let muted = state.told.get(session).is_some_and(|told| told.muted);
        if muted && !durable {
            return;
        }
        if state.full() && !muted {
            if state.replace_waiting(session, replaceable, &render) || !durable {
                return;
            }
            self.drop_events(&mut state, session);
        }
        let told = state.told.entry(session.clone()).or_default();
        told.last += 1;
        let seq = told.last;
        let json = render(seq);
        if durable {
            state.keep(session, seq, json.clone());
        }
        if !muted {
            self.push(&mut state, json, FrameKind::Event { session: session.clone(), seq, durable, replaceable });
        }
    }

    /// The number of a session's last event.
    #[must_use]
    pub fn last_seq(&self, session: &SessionId) -> u64 {
        self.lock().told.get(session).map_or(0, |told| told.last)
    }

    /// The state of a subscriber that has seen all events up to `after`.
    #[must_use]
    pub fn missed(&self, session: &SessionId, epoch: &str, after: u64) -> Missed {
        let state = self.lock();
        let never = Told::default();
        let told = state.told.get(session).unwrap_or(&never);
        if epoch != self.epoch || after > told.last || after < told.forgotten {
            return Missed::Forgotten;
        }
        Missed::Kept(told.kept.iter().filter(|(seq, _)| *seq > after).count())
    }

    /// Sends the kept events after `after` again, with their old numbers.
    pub fn replay(&self, session: &SessionId, after: u64) {
        let mut state = self.lock();
        let kept = state.told.get(session).into_iter().flat_map(|told| told.kept.iter().cloned());
        let missed: Vec<(u64, String)> = kept.filter(|(seq, _)| *seq > after).collect();
        for (seq, json) in missed {
            let kind = FrameKind::Event { session: session.clone(), seq, durable: true, replaceable: None };
            self.push(&mut state, json, kind);
        }
    }

    /// Starts or stops sending a session's events. Durable events are kept for replay in both cases.
    pub fn wants(&self, session: &SessionId, wanted: bool) {
        self.lock().told.entry(session.clone()).or_default().muted = !wanted;
    }

    /// Drops the waiting events of a session and puts one `session/resync_required` in their place.
    fn drop_events(&self, state: &mut State, session: &SessionId) {
        let mut dropped = 0;
        state.frames.retain(|frame| match &frame.kind {
            FrameKind::Event { session: it, .. } if it == session => {
                dropped += 1;
                false
            }
            FrameKind::Resync { session: it, dropped: before } if it == session => {
                dropped += before;
                false
            }
            _ => true,
        });
        state.bytes = state.frames.iter().map(|frame| frame.json.len()).sum();
        let last = state.told.get(session).map_or(0, |told| told.last);
        let params = ResyncParams { session_id: session.clone(), epoch: self.epoch.clone(), last_seq: last, dropped };
        let json = notification(ResyncRequired::NAME, params, None);
        self.push(state, json, FrameKind::Resync { session: session.clone(), dropped });
    }

    fn push(&self, state: &mut State, json: impl Into<Json>, kind: FrameKind) {
        if state.closed {
            return;
        }
        let json = json.into();
        state.bytes += json.len();
        state.frames.push_back(Frame { json, kind });
        if !state.writing {
            self.filled.notify_one();
        }
    }

    /// Calls `then` when all frames before are written. Never, where the client is gone or the queue is closed.
    pub fn when_written(&self, then: impl FnOnce() + Send + 'static) {
        self.push(&mut self.lock(), String::new(), FrameKind::Written(Box::new(then)));
    }

    /// Closes the queue. Frames that wait are still written.
    pub fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
        self.answered.notify_all();
    }

    /// Waits until all frames are written, at most this time.
    pub fn wait_empty(&self, longest: Duration) {
        let end = Instant::now() + longest;
        let mut state = self.lock();
        while !state.frames.is_empty() || state.writing {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.emptied.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Writes frames until the queue is closed and empty, or the client is gone.
    pub fn write_to(&self, out: impl Write, framing: &Chosen) {
        self.write_traced(out, framing, None);
    }

    /// The same with a trace of the frames, each of which is in it before it is written.
    pub fn write_traced(&self, mut out: impl Write, framing: &Chosen, trace: Option<&Trace>) {
        let mut bytes = Vec::new();
        loop {
            let mut state = self.lock();
            state.writing = false;
            while state.frames.is_empty() {
                self.emptied.notify_all();
                if state.closed {
                    return;
                }
                state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let frames = std::mem::take(&mut state.frames);
            state.bytes = 0;
            state.writing = true;
            drop(state);

            bytes.clear();
            let framing = *framing.get().unwrap_or(&Framing::Ndjson);
            let mut answered = 0;
            let mut written = Ok(());
            let mut calls = Vec::new();
            for frame in frames {
                match &frame.json {
                    Json::Text(_) if matches!(frame.kind, FrameKind::Written(_)) => {}
                    Json::Text(json) => {
                        trace.inspect(|trace| trace.outbound(json));
                        put_frame(framing, json, &mut bytes);
                    }
                    Json::Pieces(pieces) => {
                        trace.inspect(|trace| trace.outbound_in_pieces(pieces));
                        written = written.and_then(|()| {
                            let mut out = BufWriter::with_capacity(64 << 10, &mut out);
                            out.write_all(&bytes)?;
                            write_pieces(framing, pieces, &mut out)?;
                            out.flush()
                        });
                        bytes.clear();
                    }
                }
                match frame.kind {
                    FrameKind::Answer { requests } => answered += requests,
                    FrameKind::Written(call) => calls.push(call),
                    FrameKind::Event { .. } | FrameKind::Resync { .. } | FrameKind::Notification => {}
                }
            }
            let written = written.and_then(|()| out.write_all(&bytes)).and_then(|()| out.flush());
            {
                // A thread that waits for room looks at it under this lock.
                let _state = self.lock();
                self.in_flight.fetch_sub(answered, Ordering::Relaxed);
                self.answered.notify_all();
            }
            if written.is_err() {
                // The client does not read any more; stdin will end too, and the daemon with it.
                let mut state = self.lock();
                state.closed = true;
                state.frames.clear();
                state.writing = false;
                self.emptied.notify_all();
                self.answered.notify_all();
                return;
            }
            calls.into_iter().for_each(|call| call());
            // A burst must not keep its memory.
            bytes.shrink_to(1 << 20);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Outbox {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// Keeps a durable event for replay.
    fn keep(&mut self, session: &SessionId, seq: u64, json: String) {
        let Self { told, kept_bytes, .. } = self;
        let Some(of_session) = told.get_mut(session) else { return };
        *kept_bytes += json.len();
        of_session.kept_bytes += json.len();
        of_session.kept.push_back((seq, json));
        while of_session.kept.len() > MOST_KEPT || of_session.kept_bytes > MOST_KEPT_BYTES {
            *kept_bytes -= of_session.forget();
        }
        while *kept_bytes > MOST_KEPT_BYTES_OF_ALL {
            let Some(largest) = told.values_mut().max_by_key(|told| told.kept_bytes) else { return };
            *kept_bytes -= largest.forget();
        }
    }

    fn full(&self) -> bool {
        self.frames.len() >= MOST_FRAMES || self.bytes >= MOST_BYTES
    }

    /// Puts the newer value in the place of a waiting one of its kind.
    fn replace_waiting(
        &mut self,
        session: &SessionId,
        kind: Option<&'static str>,
        render: &dyn Fn(u64) -> String,
    ) -> bool {
        let Some(kind) = kind else { return false };
        for frame in self.frames.iter_mut().rev() {
            if let FrameKind::Event { session: it, seq, replaceable: Some(waiting), durable: false } = &frame.kind
                && it == session
                && *waiting == kind
            {
                self.bytes -= frame.json.len();
                frame.json = render(*seq).into();
                self.bytes += frame.json.len();
                return true;
            }
        }
        false
    }
}

impl Told {
    /// Drops the oldest kept event. Returns the bytes that this frees.
    fn forget(&mut self) -> usize {
        let Some((seq, json)) = self.kept.pop_front() else { return 0 };
        self.forgotten = seq;
        self.kept_bytes -= json.len();
        json.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{events::Severity, notices::NoticeCode};
    use serde_json::Value;

    fn written(outbox: &Outbox) -> Vec<Value> {
        outbox.close();
        let mut out = Vec::new();
        outbox.write_to(&mut out, &Chosen::default());
        let text = String::from_utf8(out).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("a frame is JSON")).collect()
    }

    fn notice(size: usize) -> Event {
        Event::Notice {
            severity: Severity::Info,
            code: NoticeCode::ParamsIgnored,
            title: "x".repeat(size),
            detail: None,
        }
    }

    fn chunk() -> Event {
        Event::SummaryChunk {
            source: crate::protocol::events::ChunkSource::History,
            part: 1,
            attempt: 1,
            text: String::new(),
        }
    }

    #[test]
    fn events_are_numbered_without_a_gap_and_answers_keep_their_place() {
        let outbox = Outbox::new();
        let session: SessionId = "s".into();
        outbox.event(&session, &About::default(), &notice(1));
        outbox.answer("{\"id\":1}".to_owned(), 0);
        outbox.event(&"other".into(), &About::default(), &notice(1));
        outbox.event(&session, &About::default(), &notice(1));
        let frames = written(&outbox);
        let seqs: Vec<_> = frames.iter().map(|frame| frame["params"]["seq"].as_u64()).collect();
        assert_eq!(seqs, [Some(1), None, Some(1), Some(2)]);
    }

    #[test]
    fn what_was_missed_is_kept_up_to_a_limit_and_told_apart_from_what_was_forgotten() {
        let outbox = Outbox::new();
        let (session, epoch): (SessionId, _) = ("s".into(), outbox.epoch().to_owned());
        assert_eq!(outbox.missed(&session, &epoch, 0), Missed::Kept(0));
        for _ in 0..3 {
            outbox.event(&session, &About::default(), &notice(1));
            outbox.event(&session, &About::default(), &chunk());
        }
        assert_eq!(outbox.missed(&session, &epoch, 1), Missed::Kept(2));
        assert_eq!(outbox.missed(&session, &epoch, 6), Missed::Kept(0));
        assert_eq!(outbox.missed(&session, &epoch, 7), Missed::Forgotten, "nobody has seen that yet");
        assert_eq!(outbox.missed(&session, "another life", 1), Missed::Forgotten);
        outbox.wants(&session, false);
        outbox.event(&session, &About::default(), &notice(2));
        outbox.replay(&session, 3);
        let seqs: Vec<u64> = written(&outbox).iter().filter_map(|frame| frame["params"]["seq"].as_u64()).collect();
        assert_eq!(seqs, [1, 2, 3, 4, 5, 6, 5, 7]);

        let outbox = Outbox::new();
        let epoch = outbox.epoch().to_owned();
        for _ in 0..30 {
            outbox.event(&session, &About::default(), &notice(MOST_KEPT_BYTES / 20));
        }
        assert_eq!(outbox.missed(&session, &epoch, 11), Missed::Kept(19));
        assert_eq!(outbox.missed(&session, &epoch, 10), Missed::Forgotten);
        for _ in 0..=MOST_KEPT {
            outbox.event(&session, &About::default(), &notice(1));
        }
        assert_eq!(outbox.missed(&session, &epoch, 31), Missed::Kept(MOST_KEPT));
        assert_eq!(outbox.missed(&session, &epoch, 30), Missed::Forgotten);
    }

    #[test]
    fn all_sessions_together_are_kept_within_a_limit() {
        let outbox = Outbox::new();
        for at in 0..40 * 19 {
            let session = SessionId::from(format!("{}", at / 19));
            outbox.event(&session, &About::default(), &notice(MOST_KEPT_BYTES / 20));
        }
        let kept = outbox.lock().kept_bytes;
        assert!(kept <= MOST_KEPT_BYTES_OF_ALL && kept > MOST_KEPT_BYTES_OF_ALL - 2 * MOST_KEPT_BYTES, "{kept}");
    }

    #[test]
    fn notifications_that_nobody_reads_are_not_kept_without_end() {
        let outbox = Outbox::new();
        for _ in 0..MOST_FRAMES + 5 {
            outbox.notify("notice", ());
        }
        assert_eq!(written(&outbox).len(), MOST_FRAMES);
    }

    /// Answers are never dropped, so requests are not read while too many answers wait.
    #[test]
    fn requests_wait_for_a_client_that_does_not_read_answers() {
        let outbox = std::sync::Arc::new(Outbox::new());
        let waits = || {
            let (outbox, (said, hears)) = (outbox.clone(), std::sync::mpsc::channel());
            std::thread::spawn(move || {
                let _ = said.send(outbox.wait_for_room(Duration::from_secs(20)));
            });
            hears
        };
        (1..MOST_UNREAD).for_each(|_| outbox.expect_answer());
        assert_eq!(outbox.wait_for_room(Duration::ZERO), Ok(()));
        outbox.expect_answer();
        assert_eq!(outbox.wait_for_room(Duration::ZERO), Err(NobodyReads));
        let hears = waits();
        outbox.answer("{}".to_owned(), 2);
        let (writing, chosen) = (outbox.clone(), Chosen::default());
        let writer = std::thread::spawn(move || writing.write_to(std::io::sink(), &chosen));
        assert_eq!(hears.recv(), Ok(Ok(())), "two answers were read");
        // An end frees everybody.
        (0..9).for_each(|_| outbox.expect_answer());
        let hears = waits();
        outbox.close();
        assert_eq!(hears.recv(), Ok(Ok(())), "the queue is closed");
        writer.join().expect("the writer ends");
    }

    #[test]
    fn a_full_queue_drops_what_may_go_then_asks_the_client_to_look_afresh() {
        let outbox = Outbox::new();
        let session: SessionId = "s".into();
        for _ in 0..MOST_FRAMES {
            outbox.event(&session, &About::default(), &notice(1));
        }
        outbox.event(&session, &About::default(), &chunk());
        outbox.answer("{\"id\":1}".to_owned(), 0);
        for _ in 0..3 {
            outbox.event(&session, &About::default(), &notice(1));
        }
        let frames = written(&outbox);
        let methods: Vec<_> = frames.iter().map(|frame| frame["method"].as_str().unwrap_or("answer")).collect();
        assert_eq!(methods, ["answer", "session/resync_required", "session/event", "session/event", "session/event"]);
        assert_eq!(frames[1]["params"]["dropped"], 1_024);
        assert_eq!(frames[1]["params"]["lastSeq"], 1_024);
        assert_eq!(frames[2]["params"]["seq"], 1_025);
    }
}
