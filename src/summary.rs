//! Summaries of a part of a conversation.

mod archived;
pub mod branch;
pub mod cleaner;
mod cues;
mod current;
pub mod extractive;
pub mod files;
mod harness;
mod heard;
mod ledger;
pub mod lost;
pub mod made;
pub mod model;
pub mod passages;
mod prose;
mod read_lines;
mod sections;
pub mod shell;
pub mod span;
mod statements;
pub mod todo;
mod words;

/// Separator between the two parts of a summary whose span ends inside a turn.
pub const SPLIT_TURN: &str = "\n\n---\n\n**Turn Context (split turn):**\n\n";
