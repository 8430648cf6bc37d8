//! Sessions that outlive their machine: their lines are rows of a PostgreSQL database, and the local file is a cache of them.
//!
//! `home` opens and makes the sessions of a folder or of a store. `server` has the operations that a store needs of its
//! database, and what can happen to them; `postgres` performs them, and `memory` has a database for tests. `stored` writes a
//! session, `followed` reads one that another daemon writes, and `pages` reads what the cache does not have yet.

pub mod address;
pub mod cache;
pub mod facts;
pub mod followed;
pub mod home;
pub mod memory;
pub mod pages;
pub mod postgres;
pub mod rows;
pub mod server;
pub mod stored;
