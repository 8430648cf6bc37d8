//! Sessions on virtual time, with models that follow a script. Everything repeats with its seed.
//!
//! Built for tests, or with the feature `simulator`. Time is in [`crate::ask::virtual_clock`], because requests to models are
//! tested on it too.

pub mod action;
pub mod client;
pub mod found;
pub mod hooks;
mod hosts;
pub mod lies;
pub mod long;
pub mod models;
pub mod observer;
pub mod pool;
pub mod script;
pub mod seeds;
pub mod setup;
pub mod shrink;
pub mod simpler;
pub mod situations;
pub mod tasks;
pub mod view;
pub mod words;
pub mod world;

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;
