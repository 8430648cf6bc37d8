//! The daemon from outside: the real binary over real pipes, and the pure core under properties.

mod architecture;
mod broken_files;
mod browsing;
mod cli;
mod compaction;
mod conservation;
mod editing;
mod envelope;
mod failing_disk;
mod following;
mod json_schema;
mod kills;
mod mended;
mod mutations;
mod mutator;
mod prompts;
mod proof;
mod reading;
mod schema;
mod settings;
mod stdout;
mod storage;
mod subscribing;
mod support;
mod transcripts;
mod wire;
