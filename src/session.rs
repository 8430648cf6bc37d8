//! session
mod migrate;
pub mod store;
