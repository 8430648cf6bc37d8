//! The methods of an open session: one file for each family.

pub mod append;
pub mod browse;
pub mod compacting;
pub mod completing;
pub mod export;
pub mod notes;
pub mod read;
pub mod request;
pub mod search;
pub mod telling;
pub mod undoing;
