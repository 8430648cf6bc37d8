//! Commands about one session: what it says, and its last compaction taken back.

pub mod export;
mod opened;
pub mod search;
pub mod show;
pub mod stored;
pub mod tail;
pub mod undo;

pub(super) use opened::{Opened, Rights, open};
