//! abridged owns the sessions of LLM agents and keeps them inside the model's context window.

pub mod caller;
pub mod cli;
pub mod context;
pub mod daemon;
pub mod entry;
pub mod ids;
pub mod index;
pub mod maintenance;
pub mod message;
pub mod models;
pub mod outbox;
pub mod path;
pub mod prompts;
pub mod protocol;
pub mod provider;
pub mod regular;
pub mod rpc;
pub mod secret;
pub mod serve;
pub mod session;
pub mod settings;
pub mod summary;
pub mod text;
pub mod tokens;
pub mod transport;
pub mod watch;
