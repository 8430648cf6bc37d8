//! What a person runs in a shell. What works on sessions speaks the protocol to a daemon of its own, like any client;
//! the rest only looks.

pub mod client;
pub mod compact;
pub mod demo;
pub mod doctor;
pub mod model;
mod models;
mod paint;
pub mod schema;
