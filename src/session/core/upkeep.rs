//! The facts about maintenance that no entry stores.

use super::{
    automatic::{cold::ColdPauses, speculation::Ahead},
    commands::{compacting::after_turn::AfterTurn, notices::SentNotices},
    parts::switches::Switches,
    transfers::{Extracts, Relays},
};
use crate::{
    compaction::{decide::Rest, prune::pays::Considered},
    ids::{EntryId, OperationId},
};

/// The facts about maintenance that no entry stores.
#[derive(Default)]
pub(super) struct Upkeep {
    /// An automatic compaction that did not complete.
    pub rest: Option<Rest>,
    /// A change of the model that is not decided about.
    pub switches: Switches,
    /// Whether maintenance was due at the end of a transfer, and is not decided about.
    pub after_transfer: bool,
    /// The compaction that waits for the end of the turn.
    pub after_turn: AfterTurn,
    /// The summary that is made ahead.
    pub ahead: Ahead,
    /// The pauses after which the prompt cache was cold.
    pub cold: ColdPauses,
    /// The notices that were sent.
    pub notices: SentNotices,
    /// Handoffs by maintenance.
    pub relays: Relays,
    /// Extracts that wait for the results of open calls, the oldest first.
    pub extracts: Extracts,
    /// The compaction whose summary goes into a new session.
    pub moves: Option<OperationId>,
    /// The undo after which automatic compaction acts again, as the client was told.
    pub resumed: Option<EntryId>,
    /// The last decision about a pruning.
    pub pruning: Option<Considered>,
}
