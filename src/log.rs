//! The file of a session: reading it, following it, and the right to append to it.

pub mod blobs;
pub mod error;
pub mod follower;
pub mod header;
pub mod history;
pub mod index;
pub mod indexing;
pub mod lines;
pub mod lock;
pub mod migrate;
pub mod names;
pub mod pieces;
pub mod repair;
pub mod store;
pub mod walk;
