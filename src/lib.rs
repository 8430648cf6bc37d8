//! abridged owns the sessions of LLM agents and keeps them inside the model's context window.

pub mod context;
pub mod entry;
pub mod ids;
pub mod message;
pub mod models;
pub mod prompts;
pub mod settings;
pub mod text;
pub mod tokens;
pub mod tree;
pub mod session;
pub mod maintenance;
pub mod summary;
pub mod protocol;
pub mod outbox;
pub mod rpc;
pub mod transport;
pub mod cli;
pub mod daemon;
pub mod serve;
