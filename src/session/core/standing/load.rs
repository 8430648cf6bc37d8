//! The load of a session: the lengths of its queues.

use crate::session::core::Core;

/// The lengths of the queues of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Commands that wait for their turn.
    pub waiting: usize,
    /// Commands that wait for the index.
    pub index: usize,
    /// Contexts that wait for the end of a compaction.
    pub held: usize,
    /// Reads that run.
    pub reads: usize,
    /// Open requests that the client cancelled.
    pub cancelled: usize,
    /// Costs that are not in the file.
    pub costs: usize,
}

impl Load {
    /// The lengths of the queues of a session.
    #[must_use]
    pub fn of(core: &Core) -> Self {
        let base = &core.base;
        Self {
            waiting: base.queue.len() + core.unbegun.len(),
            index: base.index.commands.len(),
            held: base.waiting.len(),
            reads: base.reads.len(),
            cancelled: base.effects.cancelled(),
            costs: if base.writable().is_ok() { base.costs.len() } else { 0 },
        }
    }

    /// Whether nothing waits and nothing runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
