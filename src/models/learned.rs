//! Windows as providers taught them: from limits in errors, and from prompts that were cut without an error. A value: each
//! session has a copy, and `windows.rs` has the one that all sessions learn into.

use super::ModelRef;
use std::{collections::BTreeMap, sync::Arc};

/// The windows that were learned. Cheap to clone. A clone stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learned(Arc<BTreeMap<String, u64>>);

impl Learned {
    /// The windows that were learned before.
    #[must_use]
    pub fn of(mut windows: BTreeMap<String, u64>) -> Self {
        windows.retain(|_, window| plausible(*window));
        Self(Arc::new(windows))
    }

    /// The window of a model, in tokens.
    #[must_use]
    pub fn window(&self, model: &ModelRef) -> Option<u64> {
        self.0.get(&model.to_string()).copied()
    }

    /// Learns a window. Returns true if it is new. A number that can be no window is ignored.
    pub fn learn(&mut self, model: &ModelRef, window: u64) -> bool {
        let new = plausible(window) && self.window(model) != Some(window);
        if new {
            Arc::make_mut(&mut self.0).insert(model.to_string(), window);
        }
        new
    }

    /// All of them, by `"provider/id"`.
    #[must_use]
    pub fn all(&self) -> &BTreeMap<String, u64> {
        &self.0
    }
}

/// Whether a number can be a window that an agent works in, in tokens. A smaller one would leave a session stuck, on the
/// word of one server.
fn plausible(window: u64) -> bool {
    (1_024..=20_000_000).contains(&window)
}
