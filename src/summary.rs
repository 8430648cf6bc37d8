//! Summaries: what stands for the part of a session that is not sent any more.

pub mod brief;
pub mod check;
pub mod extractive;
pub mod files;
pub mod fold;
pub mod language;
mod ledger;
pub mod made;
pub mod material;
pub mod redact;
pub mod rules;
mod salient;
mod sections;
mod todo;
pub mod transcript;

/// What stands between the two parts of a summary whose cut split a turn.
pub const SPLIT_TURN: &str = "\n\n---\n\n**Turn Context (split turn):**\n\n";
