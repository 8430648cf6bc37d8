//! The daemon from outside: the real binary over real pipes, and the pure core under properties.

mod architecture;
mod browsing;
mod cli;
mod compaction;
mod conservation;
mod editing;
mod envelope;
mod following;
mod json_schema;
mod reading;
mod schema;
mod settings;
mod storage;
mod subscribing;
mod support;
mod transcripts;
