//! The connection to the client: frames, requests, and the queue of answers and events.

pub mod caller;
pub mod fit;
pub mod outbox;
pub mod rpc;
pub mod trace;
pub mod transport;
