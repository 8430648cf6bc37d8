//! Commands of the shell. Commands that change sessions speak the protocol to a daemon of their own, like any client; the
//! others only read.

mod cells;
pub mod chat;
pub mod client;
mod columns;
pub mod compact;
pub mod demo;
pub mod doctor;
mod generated;
mod interrupt;
pub mod model;
mod models;
mod named;
mod other_agents;
mod paint;
pub mod print;
pub mod report;
mod session_commands;
pub mod sessions;
mod spent;
pub mod tree;
pub mod watch;
mod wrap;

pub use generated::{man, schema};
pub use other_agents::{continuing, hook, importing};
pub use session_commands::{export, search, show, stored, tail, undo};
