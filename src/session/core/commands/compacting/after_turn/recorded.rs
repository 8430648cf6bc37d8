//! The write of the entry about the compaction after the turn, and its outcome.

use crate::{
    conversation::entry::Entry,
    ids::OperationId,
    protocol::{errors::Failure, types::CompactParams},
    session::effects::Ticket,
};
use std::sync::Arc;

/// A request for a compaction after the turn, while its entry is being written.
pub(in crate::session::core) struct Asker {
    /// The id of the compaction.
    pub id: OperationId,
    /// The request, if it does not wait for the end of the compaction.
    pub reply: Option<Ticket>,
    /// The request before it, if there was one.
    pub former: Option<Former>,
}

/// A request that a newer one has replaced. It counts again where the newer one cannot be stored.
pub(in crate::session::core) struct Former {
    pub params: CompactParams,
    /// Whether an answer introduces the compaction.
    pub is_introduced: bool,
}

/// The entry about the compaction after the turn, with the request that it answers.
pub(in crate::session::core) struct AfterTurnWrite {
    pub entry: Arc<Entry>,
    pub asker: Option<Asker>,
}

/// The outcome of a write of the entry about the compaction after the turn.
pub(in crate::session::core) enum Recorded {
    /// It is on disk.
    Written(AfterTurnWrite),
    /// It could not be written.
    Failed(Option<Asker>, Failure),
    /// Another program was faster.
    Again(Option<Asker>),
}
