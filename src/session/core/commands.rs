//! The methods of an open session, a file for each family.

pub mod append;
mod close;
pub(in crate::session::core) mod compacting;
pub mod configure;
pub(in crate::session::core) mod context;
pub mod entries;
mod export;
pub(in crate::session::core) mod founding;
mod idle;
mod label;
pub mod notices;
mod pins;
pub(in crate::session::core) mod prune;
mod reset;
mod search;
pub mod settings;
pub mod status;
mod subscribe;
mod tree;
pub(in crate::session::core) mod turns;
mod undo;
mod usage;
