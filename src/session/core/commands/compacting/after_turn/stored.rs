//! The compaction after the turn in the file: an entry with its request, or one that says that it waits no more.

use super::{
    AfterTurn, Delayed, cancelled,
    recorded::{AfterTurnWrite, Asker, Former, Recorded},
    request,
};
use crate::{
    conversation::{
        entry::{Entry, Stamp, Stamps},
        mirroring,
        path::Path,
    },
    ids::{EntryId, OperationId, SessionId},
    log::{Access, Unfinished},
    protocol::{
        errors::Failure,
        notices::{NoticeCode, Warning},
        types::CompactParams,
    },
    session::{
        core::{
            base::Base,
            step::{Step, Write},
            work::Request,
        },
        effects::Answer,
        jobs::defect,
        kind::OperationKind,
        log_work::Adds,
        operations::{Asked, Kind as _},
        state::State,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// The data of an `abridged.after_turn` entry of a compaction that waits. Without `params` the compaction waits no more.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    operation_id: OperationId,
    /// Time of the first request, in RFC 3339.
    since: String,
    /// Params of the newest request. A copy of the entry in a forked session names another session.
    params: CompactParams,
}

impl Stored {
    /// The compaction that waits by the newest entry on a path.
    fn on(path: &Path, session: &SessionId) -> Option<Self> {
        let stored = Self::deserialize(path.after_turn()?).ok()?;
        (stored.params.session_id == *session).then_some(stored)
    }

    fn of(delayed: &Delayed) -> Value {
        let Delayed { request: Request { id, params, .. }, since, .. } = delayed;
        // No request waits for it after a restart, and the leaf was compared when it was asked for.
        let params = CompactParams { wait: None, expected_leaf_id: None, ..params.clone() };
        let mut data = json!(Self { operation_id: id.clone(), since: since.clone(), params });
        if let Some(params) = data["params"].as_object_mut() {
            params.retain(|_, value| !value.is_null());
        }
        data
    }
}

impl Write for AfterTurnWrite {
    fn entries(&self) -> Vec<Arc<Entry>> {
        vec![self.entry.clone()]
    }

    fn written(self: Box<Self>, _: &mut Base) -> Vec<Step> {
        vec![Step::AfterTurn(Recorded::Written(*self))]
    }

    fn not_written(self: Box<Self>, _: &mut Base, failure: &Failure) -> Vec<Step> {
        vec![Step::AfterTurn(Recorded::Failed(self.asker, failure.clone()))]
    }

    fn again(self: Box<Self>, _: &mut Base) -> Vec<Step> {
        vec![Step::AfterTurn(Recorded::Again(self.asker))]
    }
}

/// An entry with this data after `parent`.
fn entry_of(data: Value, parent: Option<&EntryId>, stamp: &Stamp) -> Option<Arc<Entry>> {
    let fields = [("customType", "abridged.after_turn".into()), ("data", data)];
    mirroring::entry_of("custom", stamp, parent, &fields)
}

impl AfterTurn {
    /// The compaction that waited when the file was closed, or when its owner died. It starts after the next turn. One that
    /// had started has its end among those `left_behind`: the lock names it until an entry says that it waits no more.
    pub fn recalled(state: &State, access: Access, left_behind: &[Unfinished]) -> (Self, Option<Unfinished>) {
        let stored = Stored::on(state.path(), &state.id).filter(|_| access != Access::Read);
        let Some(Stored { operation_id: id, since, params }) = stored else { return Default::default() };
        match left_behind.iter().find(|left| left.operation_id == id) {
            Some(left) => (Self { is_unwritten: true, ..Self::default() }, Some(left.clone())),
            None => {
                let request = request(id, params, Asked::Unasked);
                (Self { waiting: Some(Delayed { request, since, rests: true }), ..Self::default() }, None)
            }
        }
    }

    /// Makes the entry about the compaction for a path that the session moves to, where that path says something else. It
    /// stands in the same write as the move: no restart after it brings back a compaction that is over, or loses one that
    /// waits.
    pub fn entry_there(&self, session: &SessionId, access: Access, stamps: &mut Stamps) -> Option<Adds> {
        if access != Access::Write {
            return None;
        }
        let waits = self.waiting.as_ref().map(|delayed| (delayed.request.id.clone(), Stored::of(delayed)));
        let (session, stamp) = (session.clone(), stamps.stamp());
        Some(Box::new(move |there: &Path| {
            let stored = Stored::on(there, &session).map(|stored| stored.operation_id);
            let (id, data) = waits.unzip();
            let is_outdated = stored != id;
            let data = data.unwrap_or_else(|| json!({ "operationId": stored }));
            let entry = is_outdated.then(|| entry_of(data, there.last().map(|leaf| &leaf.id), &stamp));
            entry.flatten().into_iter().collect()
        }))
    }

    /// The entry about a compaction that waits once more, for the same write as a compaction that may cover the first.
    pub fn entry_again(&self, parent: &EntryId, stamps: &mut Stamps) -> Option<Arc<Entry>> {
        entry_of(Stored::of(self.waiting.as_ref()?), Some(parent), &stamps.stamp())
    }

    /// Whether an entry about the compaction has to be written.
    pub fn must_write(&self, access: Access) -> bool {
        self.withdrawn.is_some() || self.is_unwritten && access != Access::Read
    }

    /// Whether the newest entry on the path names another compaction than the one that waits.
    pub(super) fn is_outdated(&self, state: &State) -> bool {
        let waits = self.waiting.as_ref().map(|delayed| &delayed.request.id);
        Stored::on(state.path(), &state.id).as_ref().map(|stored| &stored.operation_id) != waits
    }

    /// Writes the entry about the compaction, where the path says something else. `writable`: whether the file takes entries.
    pub fn write_due(&mut self, writable: Result<(), Failure>, state: &State, stamps: &mut Stamps) -> Vec<Step> {
        if state.history().is_asleep() {
            return vec![Step::Wake];
        }
        match (self.is_outdated(state), writable) {
            (true, Ok(())) => self.write(None, state, stamps),
            (true, Err(failure)) => {
                self.is_unwritten = false;
                self.not_written(&failure, None)
            }
            (false, _) => {
                self.is_unwritten = false;
                self.settled()
            }
        }
    }

    /// Writes the entry about the compaction, and answers the request when it is on disk.
    pub(super) fn write(&mut self, asker: Option<Asker>, state: &State, stamps: &mut Stamps) -> Vec<Step> {
        self.is_unwritten = false;
        let data = match &self.waiting {
            Some(delayed) => Stored::of(delayed),
            None => {
                let over = asker.as_ref().map(|asker| asker.id.clone());
                json!({ "operationId": over.or_else(|| Some(Stored::on(state.path(), &state.id)?.operation_id)) })
            }
        };
        match entry_of(data, state.path().last().map(|leaf| &leaf.id), &stamps.stamp()) {
            Some(entry) => vec![Step::Write(Box::new(AfterTurnWrite { entry, asker }))],
            None => self.not_written(&defect(), asker),
        }
    }

    /// Goes on after a write of the entry.
    pub fn recorded(&mut self, outcome: Recorded, state: &State, stamps: &mut Stamps) -> Vec<Step> {
        match outcome {
            Recorded::Written(write) => self.written(write),
            Recorded::Failed(asker, failure) => self.not_written(&failure, asker),
            Recorded::Again(asker) => self.write(asker, state, stamps),
        }
    }

    /// The entry is on disk.
    fn written(&mut self, AfterTurnWrite { entry, asker }: AfterTurnWrite) -> Vec<Step> {
        let started = |id: &OperationId| Answer::ok(&OperationKind::BY_CLIENT.started(id));
        let answer = asker.and_then(|Asker { id, reply, .. }| Some(Step::Answer(reply?, started(&id))));
        answer.into_iter().chain([Step::Announce(entry)]).chain(self.settled()).collect()
    }

    /// The entry cannot be written. The request fails, and the one before it counts again.
    fn not_written(&mut self, failure: &Failure, asker: Option<Asker>) -> Vec<Step> {
        let Some(Asker { id, reply, former }) = asker else {
            let warning = Warning::new(
                NoticeCode::AfterTurnNotRecorded,
                "The compaction after the turn could not be recorded",
                format!("{failure}. After a restart of the daemon the session may have another one than now."),
            );
            return [Step::Warn(warning)].into_iter().chain(self.settled()).collect();
        };
        let refused = match (self.waiting.as_mut().filter(|delayed| delayed.request.id == id), former) {
            (Some(delayed), Some(Former { params, is_introduced })) => {
                delayed.request.params = params;
                let waiting = std::mem::replace(&mut delayed.request.asked, Asked::Unasked).into_request();
                // The newer request is the one that is answered now, or else the one that waits.
                let (older, newer) = if reply.is_some() { (waiting, None) } else { (None, waiting) };
                delayed.request.asked = Asked::left_by_newer(older, is_introduced);
                newer
            }
            (Some(_), None) => self.waiting.take().and_then(|delayed| delayed.request.asked.into_request()),
            // It was cancelled meanwhile, which answers a request that waits.
            (None, _) => None,
        };
        let fail = |ticket| Step::Answer(ticket, Answer::Failed(failure.clone()));
        reply.into_iter().chain(refused).map(fail).collect()
    }

    /// The log is lost: no entry can say that the compaction which has started waits no more.
    pub fn lost(&mut self) -> Vec<Step> {
        self.not_written(&defect(), None)
    }

    /// The newest entry is on disk, or cannot be written: the lock names what runs. The cancels of a compaction that no restart
    /// brings back, or whose entry cannot be written, are answered.
    fn settled(&mut self) -> Vec<Step> {
        let mut steps = vec![Step::Release];
        if !self.is_unwritten {
            steps.extend(self.withdrawn.take().into_iter().flat_map(|it| it.cancels).map(cancelled));
        }
        steps
    }
}
