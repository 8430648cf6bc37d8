//! Summaries: what stands for the part of a session that is not sent any more.

pub mod extractive;
pub mod files;
mod ledger;
pub mod made;
pub mod model;
mod sections;
pub mod span;
mod todo;

/// What stands between the two parts of a summary whose cut split a turn.
pub const SPLIT_TURN: &str = "\n\n---\n\n**Turn Context (split turn):**\n\n";
