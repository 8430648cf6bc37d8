//! The messages that wait for a turn, as data, and the entry of the file that has them.

use crate::{
    conversation::{
        entry::{Entry, Stamps},
        mirroring,
        path::Path,
    },
    ids::{EntryId, OperationId, SessionId},
    protocol::{
        errors::Failure,
        types::{PromptMessage, Queue, Queued},
    },
    session::{
        effects::{Answer, Ticket},
        kind::Product,
        operations::End,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::{collections::HashSet, sync::Arc};

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::session::core) struct Waiting {
    /// Its id in the queue.
    pub id: EntryId,
    /// The turn that it begins, where it steers none.
    pub turn: OperationId,
    pub message: PromptMessage,
}

/// The messages that wait, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Lists {
    pub steering: Vec<Waiting>,
    pub follow_up: Vec<Waiting>,
}

/// The data of an `abridged.queue` entry.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    /// A copy of the entry in a forked session names another session.
    session_id: SessionId,
    #[serde(flatten)]
    lists: Lists,
}

/// The queue on its way to the disk.
pub(in crate::session::core) struct QueueWrite {
    pub(super) entry: Arc<Entry>,
    /// The request, with its answer.
    pub(super) asker: Option<(Ticket, Answer)>,
    /// The queue before the request.
    pub(super) former: Lists,
    /// The end of the operation that hands the queue over to another session.
    pub(super) ends: Option<End<Product>>,
}

/// The outcome of a write of the queue.
pub(in crate::session::core) enum QueueWritten {
    /// It is on disk.
    Written(QueueWrite),
    /// It could not be written.
    Failed(QueueWrite, Failure),
    /// Another program was faster.
    Again(QueueWrite),
}

impl Lists {
    /// The queue on the wire.
    pub fn queue(&self) -> Queue {
        let queued = |waiting: &Waiting| Queued { id: waiting.id.to_string(), text: waiting.message.text() };
        let [steering, follow_up] = [&self.steering, &self.follow_up].map(|list| list.iter().map(queued).collect());
        Queue { steering, follow_up }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.steering.iter().chain(&self.follow_up)
    }

    pub fn retain(&mut self, keeps: impl Fn(&EntryId) -> bool) {
        self.steering.retain(|waiting| keeps(&waiting.id));
        self.follow_up.retain(|waiting| keeps(&waiting.id));
    }

    /// No turn runs that they steer: they wait for turns of their own. Returns whether there were any.
    pub fn rest(&mut self) -> bool {
        let steering = std::mem::take(&mut self.steering);
        let is_any = !steering.is_empty();
        self.follow_up.splice(0..0, steering);
        is_any
    }

    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    pub fn bytes(&self) -> usize {
        self.iter().map(|waiting| json!(waiting.message).to_string().len()).sum()
    }

    /// The queue of the newest entry on a path, without the messages that were delivered after it.
    pub fn on(path: &Path, session: &SessionId) -> Self {
        let Some((place, data)) = path.queue() else { return Self::default() };
        let Ok(Stored { session_id, mut lists }) = Stored::deserialize(data) else { return Self::default() };
        if session_id != *session || lists.is_empty() {
            return Self::default();
        }
        let delivered: HashSet<EntryId> = path[place + 1..].iter().filter_map(|entry| entry.queued_id()).collect();
        lists.retain(|id| !delivered.contains(id));
        lists
    }
}

/// The entry with a queue.
pub(super) fn entry_of(
    lists: &Lists,
    session: &SessionId,
    parent: Option<&EntryId>,
    stamps: &mut Stamps,
) -> Option<Arc<Entry>> {
    let stored = Stored { session_id: session.clone(), lists: lists.clone() };
    let fields = [("customType", "abridged.queue".into()), ("data", json!(stored))];
    mirroring::entry_of("custom", &stamps.stamp(), parent, &fields)
}
