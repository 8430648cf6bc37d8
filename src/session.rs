//! One session: a pure core that decides, and a shell that acts.
//!
//! `core` handles one input at a time and adds effects to a list. `shell` is the task that feeds it and performs the
//! effects. `commands` has the handlers of the methods.

pub mod core;
mod data;
pub mod effects;
pub mod fault;

pub mod forking;
pub mod founding;
pub mod gate;
pub mod handle;
pub mod hooks;
mod idle_turn;
pub mod jobs;
pub mod kind;
pub mod log_work;
pub mod open;
pub mod operation;
pub mod operations;
pub mod recording;
pub mod shared;
pub mod shell;
pub mod source;
pub mod state;
pub mod stop;
