//! Compaction of a session: the decision, the plan and the draft. The result of a function depends on its arguments alone.

pub mod ahead;
pub mod calibrations;
pub mod cold;
pub mod decide;
pub mod draft;
pub mod fruitless;
pub mod gauge;
pub mod images;
pub mod ladder;
#[cfg(test)]
mod lines;
pub mod meter;
pub mod native;
pub mod plan;
pub mod preview;
pub mod prune;
pub mod recovery;
pub mod rehydrate;
pub mod request;
pub mod resting;
pub mod style;
