//! The costs of a session whose prompt cache is cold.

use super::State;
use crate::{
    compaction::cold::{self, ColdResume},
    protocol::types::{SessionInfo, Status, Usage},
};
use jiff::Timestamp;

impl State {
    /// The costs of the next request, if the prompt cache is cold and the context is large.
    #[must_use]
    pub fn cold_resume(&self, now: Timestamp) -> Option<ColdResume> {
        let (path, model) = (self.path(), self.model(self.path()));
        cold::resume(path, &self.measure(), &self.settings().settings, model.as_ref(), now)
    }

    /// The usage with these costs.
    #[must_use]
    pub fn usage_at(&self, now: Timestamp) -> Usage {
        Usage { cold_resume: self.cold_resume(now).map(Box::new), ..self.usage() }
    }

    /// The session as the protocol has it, with the costs of a cold cache at a time.
    #[must_use]
    pub fn info_at(&self, status: Status, now: Timestamp) -> SessionInfo {
        SessionInfo { usage: self.usage_at(now), ..self.info(status) }
    }
}
