//! abridged owns the sessions of LLM agents and keeps them inside the model's context window.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests touch the world"))]

pub mod agents;
pub mod ask;
pub mod cli;
pub mod clock;
pub mod compaction;
pub mod conversation;
pub mod daemon;
pub mod ids;
pub mod log;
pub mod models;
pub mod prompts;
pub mod protocol;
pub mod provider;
pub mod redact;
pub mod regular;
pub mod session;
pub mod settings;
#[cfg(any(test, feature = "simulator"))]
pub mod simulator;
pub mod summary;
pub mod text;
pub mod watch;
pub mod wire;
