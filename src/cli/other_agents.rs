//! Commands about the sessions of other agents: lists, imports, sessions written for them, and their hooks.

pub mod continuing;
mod found;
pub mod hook;
pub mod importing;
pub(super) mod list;
