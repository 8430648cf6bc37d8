//! One session: a pure core that decides, and a shell that acts.
//!
//! `core` handles one input at a time and adds effects to a list. `shell` is the task that feeds it and performs the
//! effects. `commands` has the handlers of the methods.

mod background;
pub mod command;
pub mod commands;
pub mod core;
mod costs;
mod counting;
pub mod draft_job;
pub mod edit;
pub mod effects;
pub mod handle;
pub mod idle;
pub mod jobs;
pub mod kind;
pub mod log_work;
pub mod open;
pub mod operation;
pub mod operations;
mod pool;
pub mod queue;
pub mod relayer;
mod result;
pub mod shell;
pub mod state;
pub mod stop;
mod work;
mod writing;
