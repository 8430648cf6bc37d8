//! The daemon from outside: the real binary over real pipes, and the pure core under properties.

mod architecture;
mod broken_files;
mod cli;
mod compaction;
mod conservation;
mod envelope;
mod failing_disk;
mod json_schema;
mod kills;
mod mutations;
mod mutator;
mod not_yet;
mod proof;
mod reading;
mod schema;
mod settings;
mod stdout;
mod storage;
mod support;
mod transcripts;
mod wire;
