//! A conversation as a session file records it: entries, messages, the path through them, and the context for a model.

pub mod attempts;
pub mod batch;
pub mod calls;
pub mod context;
pub mod entry;
pub mod evidence;
pub mod instructions;
pub mod message;
pub mod mirroring;
pub mod path;
pub mod restating;
pub mod spending;
pub mod tokens;
pub mod tools;
pub mod undo;
