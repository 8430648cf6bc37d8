//! Parts of a session that own their state and see nothing of the core.

pub mod contexts;
pub(super) mod facts;
pub(super) mod lock;
pub(super) mod log_gate;
pub mod queue;
pub(super) mod reads;
pub(super) mod switches;
#[cfg(test)]
mod tests;
pub(super) mod waiting_contexts;
