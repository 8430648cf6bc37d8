//! The compaction after the turn in the file: an entry with its request, or one that says that it waits no more.

use crate::{
    conversation::{entry::Entry, mirroring, path::Path},
    ids::{OperationId, SessionId},
    log::{Access, Unfinished},
    protocol::{errors::Failure, notices::NoticeCode, types::CompactParams},
    session::{
        core::{
            Core,
            commands::compacting::BY_CLIENT,
            due::{AfterTurn, Delayed},
            work::Request,
            writing::Write,
        },
        effects::Ticket,
        jobs::defect,
        log_work::Adds,
        operations::{Asked, Kind as _},
        stop::Stop,
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

/// A request for a compaction after the turn, while its entry is being written.
pub(in crate::session::core) struct Asker {
    /// The id of the compaction.
    pub id: OperationId,
    /// The request, if it does not wait for the end of the compaction.
    pub reply: Option<Ticket>,
    /// The params of the request before it, if there was one.
    pub former: Option<CompactParams>,
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

/// The entry about the compaction after the turn, with the request that it answers.
struct AfterTurnWrite {
    entry: Arc<Entry>,
    asker: Option<Asker>,
}

impl Write for AfterTurnWrite {
    fn entries(&self) -> Vec<Arc<Entry>> {
        vec![self.entry.clone()]
    }

    fn written(self: Box<Self>, core: &mut Core) {
        core.delayed_is_written(&self.entry, self.asker);
    }

    fn not_written(self: Box<Self>, core: &mut Core, failure: &Failure) {
        core.delayed_is_not_written(failure, self.asker);
    }

    fn again(self: Box<Self>, core: &mut Core) {
        core.write_delayed_for(self.asker);
    }
}

impl Core {
    /// Takes the compaction that waited when the file was closed, or when its owner died. It starts after the next turn. One
    /// that had started has its end among those `left_behind`.
    pub(in crate::session::core) fn recall_delayed(&mut self, left_behind: &[Unfinished]) {
        if self.writable().is_err() {
            return;
        }
        let Some(Stored { operation_id: id, since, params }) = Stored::on(self.state.path(), &self.state.id) else {
            return;
        };
        if let Some(left) = left_behind.iter().find(|left| left.operation_id == id) {
            self.upkeep.after_turn.is_unwritten = true;
            self.upkeep.after_turn.begun = Some(left.clone());
            return;
        }
        let request = Request { id, kind: BY_CLIENT, params, asked: Asked::Unasked, stop: Stop::default() };
        self.upkeep.after_turn.waiting = Some(Delayed { request, since, rests: true });
    }

    /// Makes the entry about the compaction after the turn for a path that the session moves to, where that path says something
    /// else. It stands in the same write as the move: no restart after it brings back a compaction that is over, or loses one
    /// that waits.
    pub(in crate::session::core) fn delayed_there(&mut self) -> Option<Adds> {
        if self.log_facts().access != Access::Write {
            return None;
        }
        let waits = self.upkeep.after_turn.waiting.as_ref();
        let waits = waits.map(|delayed| (delayed.request.id.clone(), Stored::of(delayed)));
        let (session, stamp) = (self.state.id.clone(), self.stamps.stamp());
        Some(Box::new(move |there: &Path| {
            let stored = Stored::on(there, &session).map(|stored| stored.operation_id);
            let (id, data) = waits.unzip();
            let is_outdated = stored != id;
            let data = data.unwrap_or_else(|| json!({ "operationId": stored }));
            let fields = [("customType", "abridged.after_turn".into()), ("data", data)];
            let leaf = there.last().map(|leaf| &leaf.id);
            is_outdated.then(|| mirroring::entry_of("custom", &stamp, leaf, &fields)).flatten()
        }))
    }

    /// The compaction has started. The lock names it until the file does not.
    pub(in crate::session::core) fn delayed_has_begun(&mut self, id: &OperationId) {
        if self.entry_is_outdated() {
            let begun = self.operations.unfinished().into_iter().find(|it| it.operation_id == *id);
            self.upkeep.after_turn.begun = begun;
        }
    }

    /// The newest entry is on disk, or cannot be written: the lock names what runs.
    fn entry_is_settled(&mut self) {
        if self.upkeep.after_turn.begun.take().is_some() {
            self.record_running();
        }
        self.answer_withdrawn();
    }

    /// The log is lost: no entry can say that a compaction which has started waits no more.
    pub(in crate::session::core) fn begun_is_lost(&mut self) {
        if self.upkeep.after_turn.begun.is_some() {
            self.delayed_is_not_written(&defect(), None);
        }
    }

    /// Whether an entry about the compaction after the turn has to be written.
    pub(in crate::session::core) fn must_write_delayed(&self) -> bool {
        let AfterTurn { is_unwritten, withdrawn, .. } = &self.upkeep.after_turn;
        withdrawn.is_some() || *is_unwritten && self.writable().is_ok()
    }

    /// The session is on another path, whose newest entry may be outdated.
    pub(in crate::session::core) fn delayed_is_elsewhere(&mut self) {
        if let Some(delayed) = &mut self.upkeep.after_turn.waiting {
            delayed.rests = true;
        }
        self.upkeep.after_turn.is_unwritten = self.entry_is_outdated();
    }

    /// Whether the newest entry on the path names another compaction than the one that waits.
    fn entry_is_outdated(&self) -> bool {
        let waits = self.upkeep.after_turn.waiting.as_ref().map(|delayed| &delayed.request.id);
        Stored::on(self.state.path(), &self.state.id).as_ref().map(|stored| &stored.operation_id) != waits
    }

    /// Writes the entry about the compaction after the turn, where the path says something else.
    pub(in crate::session::core) fn write_delayed(&mut self) {
        if self.state.history().is_asleep() {
            return self.wake();
        }
        match (self.entry_is_outdated(), self.writable()) {
            (true, Ok(())) => self.write_delayed_for(None),
            (true, Err(failure)) => {
                self.upkeep.after_turn.is_unwritten = false;
                self.delayed_is_not_written(&failure, None);
            }
            (false, _) => {
                self.upkeep.after_turn.is_unwritten = false;
                self.entry_is_settled();
            }
        }
    }

    /// Answers the cancels of a compaction that no restart brings back, or whose entry cannot be written.
    fn answer_withdrawn(&mut self) {
        if self.upkeep.after_turn.is_unwritten {
            return;
        }
        let withdrawn = self.upkeep.after_turn.withdrawn.take();
        let cancels = withdrawn.into_iter().flat_map(|withdrawn| withdrawn.cancels);
        cancels.for_each(|(ticket, all)| ticket.cancelled_these(all));
    }

    /// Writes the entry about the compaction after the turn, and answers the request when it is on disk.
    pub(in crate::session::core) fn write_delayed_for(&mut self, asker: Option<Asker>) {
        self.upkeep.after_turn.is_unwritten = false;
        let data = match &self.upkeep.after_turn.waiting {
            Some(delayed) => Stored::of(delayed),
            None => {
                let over = asker.as_ref().map(|asker| asker.id.clone());
                json!({ "operationId": over.or_else(|| Some(Stored::on(self.state.path(), &self.state.id)?.operation_id)) })
            }
        };
        let fields = [("customType", "abridged.after_turn".into()), ("data", data)];
        let leaf = self.state.path().last().map(|leaf| &leaf.id);
        match mirroring::entry_of("custom", &self.stamps.stamp(), leaf, &fields) {
            Some(entry) => self.write(Box::new(AfterTurnWrite { entry, asker })),
            None => self.delayed_is_not_written(&defect(), asker),
        }
    }

    /// The entry about the compaction after the turn once more, for the same write as a compaction that may cover the first.
    pub(in crate::session::core) fn delayed_again(&mut self, behind: &Entry) -> Option<Arc<Entry>> {
        let data = Stored::of(self.upkeep.after_turn.waiting.as_ref()?);
        let fields = [("customType", "abridged.after_turn".into()), ("data", data)];
        mirroring::entry_of("custom", &self.stamps.stamp(), Some(&behind.id), &fields)
    }

    /// The entry is on disk.
    fn delayed_is_written(&mut self, entry: &Arc<Entry>, asker: Option<Asker>) {
        if let Some(Asker { id, reply: Some(ticket), .. }) = asker {
            ticket.ok(&BY_CLIENT.started(&id));
        }
        self.announce(entry, None);
        self.entry_is_settled();
    }

    /// The entry cannot be written. The request fails, and the one before it counts again.
    pub(in crate::session::core) fn delayed_is_not_written(&mut self, failure: &Failure, asker: Option<Asker>) {
        let Some(Asker { id, reply, former }) = asker else {
            self.warn(
                NoticeCode::AfterTurnNotRecorded,
                "The compaction after the turn could not be recorded",
                format!("{failure}. After a restart of the daemon the session may have another one than now."),
            );
            return self.entry_is_settled();
        };
        let waiting = &mut self.upkeep.after_turn.waiting;
        let refused = match (waiting.as_mut().filter(|delayed| delayed.request.id == id), former) {
            (Some(delayed), Some(former)) => {
                delayed.request.params = former;
                match reply {
                    Some(_) => None,
                    None => std::mem::replace(&mut delayed.request.asked, Asked::Introduced).into_request(),
                }
            }
            (Some(_), None) => waiting.take().and_then(|delayed| delayed.request.asked.into_request()),
            // It was cancelled meanwhile, which answers a request that waits.
            (None, _) => None,
        };
        reply.into_iter().chain(refused).for_each(|ticket| ticket.fail(failure));
    }
}
