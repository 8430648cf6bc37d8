//! The operations that the lock of a session names, for the process that finds it after a crash.

use crate::{
    log::Unfinished,
    session::effects::{Effect, Effects},
};

/// The lock: it names the operations that are open, and one more.
#[derive(Default)]
pub(in crate::session::core) struct Lock {
    /// The compaction after the turn that has started, or that the owner before has left behind, while the entry which says that
    /// it waits no more is not on disk. The lock names it until then, also after its end: a restart does not bring it back.
    begun: Option<Unfinished>,
}

impl Lock {
    /// Names an operation, if there is one, until it is released.
    pub fn keep(&mut self, begun: Option<Unfinished>) {
        self.begun = begun.or(self.begun.take());
    }

    /// Whether it names an operation beside those that are open.
    pub fn keeps(&self) -> bool {
        self.begun.is_some()
    }

    /// Names only the operations that are open. Returns whether there was another one.
    pub fn release(&mut self) -> bool {
        self.begun.take().is_some()
    }

    /// Records these operations, and the one that it keeps.
    pub fn record(&self, mut operations: Vec<Unfinished>, effects: &Effects) {
        if let Some(begun) = &self.begun
            && operations.iter().all(|it| it.operation_id != begun.operation_id)
        {
            operations.push(begun.clone());
        }
        effects.push(Effect::Record(operations));
    }
}
