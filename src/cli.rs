//! What a person runs in a shell. Each of these speaks the protocol to a daemon of its own, like any client.

pub mod client;
pub mod compact;
pub mod demo;
pub mod schema;
