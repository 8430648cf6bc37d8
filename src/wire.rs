//! The connection to the client: frames, requests, and the queue of answers and events.

pub mod caller;
mod event_log;
pub mod fit;
pub mod line_queue;
pub mod outbox;
pub mod rpc;
pub mod trace;
pub mod transport;
