//! Commands that write files made from the program itself.

pub mod man;
pub mod schema;
