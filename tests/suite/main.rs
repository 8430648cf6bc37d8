//! The daemon from outside: the real binary over real pipes, and the pure core under properties.

mod architecture;
mod cli;
mod compaction;
mod conservation;
mod envelope;
mod json_schema;
mod reading;
mod schema;
mod settings;
mod storage;
mod support;
mod transcripts;
