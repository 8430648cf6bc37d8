//! A summary by models: material, request, chunks, and the gate that its text has to pass.

pub mod brief;
pub mod check;
pub mod fold;
pub mod language;
pub mod material;
pub mod musts;
pub mod summarizer;
pub mod transcript;
pub mod writer;
