//! Windows as providers taught them: what an error says of a limit, and where a prompt was cut without a word. Shared by
//! all sessions; what is known of a model is known of it everywhere.

use super::ModelRef;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The windows that were learned. Cheap to clone; every clone learns what one does.
#[derive(Debug, Clone, Default)]
pub struct Learned(Arc<Mutex<BTreeMap<String, u64>>>);

impl Learned {
    /// The windows that were learned before.
    #[must_use]
    pub fn of(mut windows: BTreeMap<String, u64>) -> Self {
        windows.retain(|_, window| plausible(*window));
        Self(Arc::new(Mutex::new(windows)))
    }

    /// The window of a model, in tokens.
    #[must_use]
    pub fn window(&self, model: &ModelRef) -> Option<u64> {
        self.windows().get(&model.to_string()).copied()
    }

    /// Learns a window. Whether that is news; what can be no window is none.
    pub fn learn(&self, model: &ModelRef, window: u64) -> bool {
        plausible(window) && self.windows().insert(model.to_string(), window) != Some(window)
    }

    /// All of them, by `"provider/id"`.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, u64> {
        self.windows().clone()
    }

    fn windows(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a number can be a window that an agent works in, in tokens. A smaller one would leave a session stuck, on the
/// word of one server.
fn plausible(window: u64) -> bool {
    (1_024..=20_000_000).contains(&window)
}
