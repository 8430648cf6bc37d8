//! The load of a session: the lengths of its queues.

use super::Core;

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
    /// Whether nothing waits and nothing runs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Core {
    /// The lengths of the queues.
    #[must_use]
    pub fn load(&self) -> Load {
        Load {
            waiting: self.queue.len() + self.cancelled.len(),
            index: self.index.commands.len(),
            held: self.held.len(),
            reads: self.reads.len(),
            cancelled: self.effects.cancelled(),
            costs: if self.log.writable(&self.state).is_ok() { self.costs.len() } else { 0 },
        }
    }
}
